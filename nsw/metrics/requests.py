"""What a pass's `metrics:` ask of each tool: portable names, groups, a tool's own names, ncu's sets and sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.metrics import expressions, ncu_names
from nsw.metrics.catalogue import Metric, find, groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.metrics.chips import Chip

SET, SECTION, EVENT = "set:", "section:", "event:"
ALL: Final = "all"  # nvprof's word for all its metrics
ANALYSIS: Final = "analysis"  # nvprof's set of what the Visual Profiler's guided analysis needs
NO_EQUIVALENT: Final = "Nsight Compute has no equivalent"
NOT_IN_NVPROF: Final = "nvprof has no such metric"
RANGES: Final = frozenset({"range", "app-range"})  # replay modes
# in the names of metrics of patched instructions (smsp__sass_*, and the peaks sm__sass_*), which ncu refuses of a range
_PATCHED: Final = "__sass_"


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask of a tool.

    Attributes:
        metrics: The tool's own metric names, each once, in the order that they were asked for.
        events: nvprof's events (`--events`).
        sets: ncu's sets (`--set`), or nvprof's `analysis` (`--analysis-metrics`).
        sections: ncu's sections (`--section`).
        absent: Portable names that this tool or chip does not measure, each with why; those that only a group asked
            for are among them.
    """

    metrics: tuple[str, ...]
    events: tuple[str, ...]
    sets: tuple[str, ...]
    sections: tuple[str, ...]
    absent: Mapping[str, str]


def refused_of(replay: str, parts: Iterable[str]) -> str | None:
    """Why ncu does not measure these names of its own under a replay mode; None: it does."""
    if replay in RANGES and any(_PATCHED in part for part in parts):
        return f"replay: {replay} has no metrics of instructions"
    return None


def for_ncu(names: Sequence[str], chip: Chip | None = None, replay: str = "kernel") -> Request:
    """What to ask of ncu on a chip (None: by the names that most chips have) under a replay mode."""
    asked: dict[str, None] = {}
    absent: dict[str, str] = {}
    for name, metric in _each(names):
        how = metric.on(chip) if metric is not None else None
        if how is not None and metric is not None and not how.expressions:
            absent[metric.name] = how.why or NO_EQUIVALENT
            continue
        parts = (name,) if how is None else expressions.names(how.expressions[0])
        if why := refused_of(replay, parts):
            absent[metric.name if metric is not None else name] = why
        else:
            asked.update(dict.fromkeys(parts))
    absent |= {f"{EVENT}{name}": "ncu has no events" for name in _behind(EVENT, names)}
    return Request(tuple(asked), (), _behind(SET, names), _behind(SECTION, names), absent)


def for_nvprof(names: Sequence[str], chip: Chip | None = None) -> Request:  # noqa: ARG001  nvprof refuses by itself
    """What to ask of nvprof."""
    asked: dict[str, None] = {}
    absent: dict[str, str] = {}
    for name, metric in _each(names):
        if metric is not None and metric.nvprof is None:
            absent[metric.name] = NOT_IN_NVPROF
        elif metric is None and ncu_names.is_raw(name):
            absent[name] = "it is a name of Nsight Compute"
        elif metric is None or metric.nvprof is None:
            asked.setdefault(name)
        else:
            asked.update(dict.fromkeys(expressions.names(metric.nvprof)))
    sets = _behind(SET, names)
    absent |= {f"{SET}{name}": "nvprof has no such set" for name in sets if name != ANALYSIS}
    absent |= {f"{SECTION}{name}": "nvprof has no sections" for name in _behind(SECTION, names)}
    return Request(tuple(asked), _behind(EVENT, names), tuple({ANALYSIS} & {*sets}), (), absent)


def portable_names(names: Sequence[str]) -> tuple[str, ...]:
    """The portable names among those asked for, groups resolved, each once."""
    return tuple(dict.fromkeys(metric.name for _, metric in _each(names) if metric is not None))


def _each(names: Sequence[str]) -> Iterator[tuple[str, Metric | None]]:
    """Every metric asked for, with its entry in the catalogue; None: a tool's own name."""
    for name in names:
        if name.startswith((SET, SECTION, EVENT)):
            continue
        if (group := groups().get(name)) is not None:
            yield from ((member, find(member)) for member in group.metrics)
        else:
            yield name, find(name)


def _behind(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.removeprefix(prefix) for name in names if name.startswith(prefix)))
