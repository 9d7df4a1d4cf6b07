"""What a report prints as a metric -> the portable metric, and by what its value becomes the portable one.

A name of nvprof (`ipc`), a name of ncu on its raw page (`sm__warps_active.avg...`), a label of its details page
(`Achieved Occupancy`), or both (`Duration (gpu__time_duration.sum)`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from nsw.metrics import expressions, units
from nsw.metrics.catalogue import LEVEL, Metric, catalogue
from nsw.metrics.data_files import rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

LEVEL_WIDTH: Final = 5.0  # % on each side of the middle of a level


@dataclass(frozen=True, slots=True)
class Portable:
    """A printed metric as a portable one.

    Attributes:
        name: The portable metric.
        unit: Its unit.
        factor: The printed value times this is the portable one.
        is_level: The printed value is one of nvprof's levels instead; see `of_level`.
        rank: 0: this is how the metric is asked for; above: another that says the same, to be left aside where the
            report has the first.
    """

    name: str
    unit: str
    factor: float
    is_level: bool = False
    rank: int = 0


def of_level(level: float) -> tuple[float, float | None]:
    """The middle and half the width, in %, of one of nvprof's levels 0 (idle) to 10."""
    return (10 * level - LEVEL_WIDTH, LEVEL_WIDTH) if level > 0 else (0.0, None)


def portable(printed: str, unit: str | None, base: units.Base = 1000) -> Portable | None:
    """The portable metric of a printed name and unit; None: there is none.

    Args:
        printed: The metric's name in the report.
        unit: Its unit there; None or empty: it has none.
        base: What the tool's K is, see `units.parsed`.
    """
    told = units.parsed(unit or "", base)
    for found in _known().get(printed) or _known().get(_named_in_label(printed), ()):
        if found.times == LEVEL and told.kind != "%":
            return Portable(found.metric.name, found.metric.unit, 1.0, is_level=True)
        if found.is_label and unit and told.kind != units.parsed(found.metric.unit).kind:
            continue  # the same label with another unit is another metric
        times = 1.0 if found.times in {"", LEVEL} else float(found.times)
        return Portable(found.metric.name, found.metric.unit, told.factor * times, rank=found.rank)
    return None


def chosen(
    printed: Collection[tuple[str, str | None]], base: units.Base = 1000
) -> dict[tuple[str, str | None], Portable]:
    """The portable metrics of all names and units of a report, each portable one by its best source alone."""
    found = {key: to for key in printed if (to := portable(*key, base)) is not None}
    best: dict[str, int] = {}
    for to in found.values():
        best[to.name] = min(to.rank, best.get(to.name, to.rank))
    return {key: to for key, to in found.items() if to.rank == best[to.name]}


@dataclass(frozen=True, slots=True)
class _Source:
    metric: Metric
    times: str
    rank: int
    is_label: bool = False


@cache
def of_the_chip() -> frozenset[str]:
    """Names of ncu that stand for one portable metric by a factor that differs between chips."""
    factors: dict[str, set[str]] = {}
    for metric in catalogue().values():
        for _, name, factor in _alone(metric):
            factors.setdefault(name, set()).add(f"{metric.name} {factor}")
    return frozenset(
        name
        for name, different in factors.items()
        if len({text.split()[1] for text in different}) > 1 and len({text.split()[0] for text in different}) == 1
    )


def _alone(metric: Metric) -> Iterator[tuple[int, str, float]]:
    """The expressions of one name only: which alternative it is, the name, and the factor."""
    for measured in (metric.ncu, *metric.by_chip.values()):
        for rank, expression in enumerate(measured.expressions):
            names = expressions.names(expression)
            if len(names) == 1:
                yield rank, names[0], expressions.value(expression, {names[0]: 1.0}) or 0.0


@cache
def _known() -> Mapping[str, tuple[_Source, ...]]:
    """Every name and label that stands for one portable metric alone, up to a factor."""
    found: dict[str, tuple[_Source, ...]] = {}
    by_name = sorted(catalogue().values(), key=lambda m: m.name)
    for metric in by_name:
        for rank, name, factor in _alone(metric):
            if name not in of_the_chip():
                found.setdefault(name, (_Source(metric, str(factor), rank),))
    for metric in by_name:
        if metric.nvprof and metric.nvprof.isidentifier():
            found[metric.nvprof] = (_Source(metric, metric.times, 1),)  # ncu's source page has an inst_executed too
    for row in rows("labels.csv"):
        source = _Source(catalogue()[row["name"]], row["times"], int(row["rank"]), is_label=True)
        found[row["label"]] = (*found.get(row["label"], ()), source)
    return found


def _named_in_label(printed: str) -> str:
    """The name in `Duration (gpu__time_duration.sum)`, as --print-metric-name both prints it."""
    return printed.rpartition(" (")[2].removesuffix(")") if printed.endswith(")") and "__" in printed else ""
