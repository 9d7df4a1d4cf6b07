"""A counters pass of a recipe -> what its profiler is asked for: metrics in its own names, kernels, launches, range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.metrics import find_chip, for_ncu, for_nvprof, unsupported
from nsw.metrics.requests import tools_for
from nsw.profilers.model import Counting
from nsw.profilers.ncu import named_version
from nsw.profilers.variables import CHOSEN
from nsw.recipe.counters import NCCL
from nsw.recipe.profiler_names import AUTO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.metrics import Chip, MetricRequest
    from nsw.plan.launchers import Launch
    from nsw.recipe.counters import CountersPass

# the whole program is run again for each pass, all its processes together
WHOLE_PROGRAM: Final = frozenset({"application", "app-range"})


def tools(one: CountersPass, chip: Chip | None) -> tuple[str, ...]:
    """The tools that may measure a pass on a chip (None: not known), the best first."""
    return tools_for(chip) if one.tool == AUTO else (one.tool,)


def dropped(tool: str, path: str, chip: str | None) -> str | None:
    """Why the version that a tool's folder names does not measure a chip; None: it does, or nobody knows."""
    at = find_chip(chip)
    named = named_version(path)
    return unsupported("ncu", at, named) if tool == "ncu" and at is not None and named is not None else None


def requested(one: CountersPass, tool: str | None, chip: str | None) -> MetricRequest:
    """What a pass's metrics are to a tool, and which of them it does not measure."""
    at = find_chip(chip)
    return for_nvprof(one.metrics, at) if tool == "nvprof" else for_ncu(one.metrics, at, one.replay)


def counting(one: CountersPass, tool: str, chip: str | None) -> Counting:
    """What the tool is asked for.

    Args:
        one: The recipe's pass.
        tool: ncu or nvprof.
        chip: The site's chip; None: not known, and the names that most chips have are asked for.
    """
    asked = requested(one, tool, chip)
    kernels, launches, within = one.kernels, one.launches, one.within
    return Counting(
        metrics=asked.metrics,
        events=asked.events,
        sets=asked.sets,
        sections=asked.sections,
        names=tuple(kernels.names or ()),
        regex=kernels.regex,
        exclude=left_out(one),
        skip=launches.skip or 0,
        count=launches.count,
        warmup=launches.warmup or 0,
        nvtx=within.nvtx if within else None,
        domain=within.domain if within else None,
        start_end=within.start_end if within else False,
        instances=tuple(within.instances or ()) if within else (),
        replay=one.replay,
        clocks=one.clocks,
        cache=one.cache,
        children=one.processes == "all",
        chosen=CHOSEN if one.is_guided else None,
    )


def left_out(one: CountersPass) -> tuple[str, ...]:
    """What is left out; by default NCCL, where single kernels are run again, unless kernels are named."""
    if one.kernels.exclude is not None:
        return tuple(one.kernels.exclude)
    return (NCCL,) if one.replay == "kernel" and one.kernels.names is None else ()


def starts_each(one: CountersPass, how: Launch) -> bool:
    """Whether each process of torchrun gets a profiler of its own unless the recipe says otherwise.

    One around torchrun profiles all its processes, and `ranks: first` is the default of counters. Where the whole
    program is run again, all processes must be.
    """
    return how.kind == "torchrun" and how.layout.total != 1 and one.replay not in WHOLE_PROGRAM and one.ranks != "all"


def replay_fault(one: CountersPass, how: Launch, *, each: bool) -> str | None:
    """Why the program cannot be run again as a whole under this launcher; None: it can, or need not."""
    if one.replay not in WHOLE_PROGRAM or not each:
        return None
    return (
        f"replay: {one.replay} starts the program again for each pass, which {how.kind} cannot do for its processes one"
        " by one: use replay: kernel, or app: launcher: profiler: outside"
    )


def ranks(one: CountersPass, *, each: bool) -> str | Sequence[int]:
    """Which ranks are profiled: one profiler around all processes profiles all, unless ranks are asked for."""
    return one.ranks or ("first" if each else "all")
