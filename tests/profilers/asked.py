"""What a counters pass asks of its profiler, from the words of the recipe without their nesting."""

from typing import Any

from nsw.metrics.requests import MetricRequest
from nsw.profilers.model import Counting
from nsw.recipe.passes import CountersPass, Kernels, Launches, Within

KERNELS, LAUNCHES, WITHIN = (
    {"names", "regex", "exclude"},
    {"skip", "count", "warmup"},
    {"nvtx", "domain", "start_end", "instances"},
)


def counting(*, metrics=(), events=(), sets=(), sections=(), chosen=None, **how: Any) -> Counting:
    """Without a word on kernels and launches all of them are measured."""
    parts = [{name: how.pop(name) for name in names & set(how)} for names in (KERNELS, LAUNCHES, WITHIN)]
    wanted = CountersPass.model_construct(
        kernels=Kernels.model_construct(**{"exclude": []} | parts[0]),
        launches=Launches.model_construct(**parts[1]),
        within=Within.model_construct(**parts[2]) if parts[2] else None,
        **how,
    )
    return Counting(MetricRequest(metrics, events, sets, sections, {}), wanted, chosen)
