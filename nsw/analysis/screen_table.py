"""What first screens share: their table, its cells, and the figure that they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import (
    Block,
    Cell,
    Column,
    ColumnPart,
    Evidence,
    Note,
    Table,
    columns_and_rows,
    drop_empty_columns,
    names_with_column,
)
from nsw.analysis.case_gain import leading_hit
from nsw.analysis.comparison import is_smaller_better, least_disturbed_figure
from nsw.analysis.rules.pairs import SET_ASIDE
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, time_without_profiler
from nsw.analysis.single_case import TABLE
from nsw.quantities import is_energy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

__all__ = [
    "CASES_NAMED",
    "WASTE_PCT",
    "Screen",
    "figure_median",
    "figure_to_show",
    "first_problem_text",
    "has_divided_time",
    "has_uneven_gpus",
    "is_smaller_figure_better",
    "kernel_columns",
    "legend_notes",
    "mean_gpu_busy_pct",
    "milliseconds_change_text",
    "parameter_value_cell",
    "parameter_value_text",
    "screen_table",
    "slowest_case",
    "two_digit_factor_text",
]  # fmt: skip

WASTE_PCT: Final = 20.0  # of a case's time that could be won, from which it counts as wasted
CASES_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class Screen:
    """What a kind of answer says: its headline without the conditions, and its table."""

    headline: str
    table: Table | None


def screen_table(
    parts: Sequence[ColumnPart | None], members: Sequence[Any], evidence: str, cases: Sequence[str], *,
    wide: str | None = None, droppable: Sequence[str] = (), repeats: int = 0, omitted: int = 0,
    whole: Sequence[str] = (),
) -> Table:  # fmt: skip
    """The table of a first screen, with the columns that have a value.

    Args:
        parts: Each column with what makes a member's cell; None is a column that is not wanted.
        members: What the rows are of, in their order.
        evidence: The table that proves it.
        cases: The cases whose rows prove it.
        wide: The column that gives way where there is little room.
        droppable: Columns that may go, the least important first.
        repeats: How many of the first columns are left out of a row that repeats them.
        omitted: How many cases have no row.
        whole: Columns of shares that add up to 100.
    """
    columns, rows = drop_empty_columns(*columns_and_rows(parts, members))
    title = "The cases that weigh most" if omitted > 0 else ""
    return Table(
        TABLE, title, columns, rows, wide=next(iter(names_with_column(columns, wide or "")), None),
        least=names_with_column(columns, *droppable), repeats=repeats, whole=names_with_column(columns, *whole),
        omitted=omitted, evidence=(Evidence(evidence, tuple(cases)),),
    )  # fmt: skip


_LEGEND: Final = {
    "gpu_ratio": "{title}: the same of the GPU's work of an iteration",
    "efficiency_pct": "efficiency: what each GPU achieves, beside the fewest GPUs",
    "mfu_pct": "MFU: model FLOP/s, of the GPUs' dense peak",
    "copies_pct": "alone: no other kernel at work",
    "exposed_pct": "alone: no other kernel at work",
    "dram_pct": "of DRAM: of the memory's peak rate, by the largest kernel",
    "measured": "share: of the launches that were measured",
    "of_roof_pct": "of peak: of the busiest part's peak rate",
    "gld_efficiency": "used: of the bytes that are moved",
    "gst_efficiency": "used: of the bytes that are moved",
}  # what a heading cannot say, by column


def legend_notes(table: Table) -> list[Block]:
    """A line that explains the words of a table, those that it has."""
    meanings = [_LEGEND[c.name].format(title=c.title) for c in table.columns if c.name in _LEGEND]
    if {"figure", "kernel_ns"} <= {column.name for column in table.columns}:
        meanings.append("kernel: a launch in the profiled runs")
    if any(SET_ASIDE in row for row in table.rows):
        meanings.append(f"{SET_ASIDE}: no ratio, since the kernels' times contradict the figure, or the baseline's")
    return [Note("legend", "; ".join(dict.fromkeys(meanings)), tone="aside")] if meanings else []


def figure_to_show(summary: Summary) -> tuple[str, str] | None:
    """Name and unit of the figure that was asked for, else of the first that the program printed."""
    figures = [figure for case in summary.cases for figure in case.figures]
    printed = next((figure for figure in figures if not is_energy(figure.name)), None)
    chosen = next((figure for figure in figures if figure.name == summary.figure), printed)
    return (chosen.name, chosen.unit or chosen.name) if chosen else None


def figure_median(case: CaseSummary, name: str) -> float | None:
    """The median of a figure of a case; None where it was not measured."""
    figure = least_disturbed_figure(case, name)
    return figure.median if figure else None


def figure_range(case: CaseSummary, name: str) -> tuple[float, float] | None:
    """The least and the most of a figure of a case; None where its runs were not repeated."""
    figure = least_disturbed_figure(case, name)
    return (figure.least, figure.most) if figure and figure.runs > 1 else None


def slowest_case(summary: Summary) -> CaseSummary | None:
    """The case with the worst figure, of those whose time is divided; None where none is."""
    cases = [case for case in summary.cases if has_divided_time(case)]
    if (figure := figure_to_show(summary)) is not None:
        pick = max if is_smaller_figure_better(summary, *figure) else min
        cases = [case for case in cases if figure_median(case, figure[0]) is not None]
        return pick(cases, key=lambda case: figure_median(case, figure[0]) or 0.0) if cases else None
    return cases[0] if cases else None


def has_divided_time(case: CaseSummary) -> bool:
    """Whether a profiler divided the time of a case."""
    return bool(case.spent or case.kernels or case.functions or case.api or case.host)


def is_smaller_figure_better(summary: Summary, name: str | None, unit: str | None) -> bool:
    """Whether a smaller figure is better: as the recipe says of the figure that it compares, else by the unit.

    Args:
        summary: The answer.
        name: The figure's.
        unit: Its unit.
    """
    is_unsaid = summary.higher_is_better is None or name != summary.figure
    return is_smaller_better(unit) if is_unsaid else not summary.higher_is_better


def first_problem_text(hits: Sequence[Hit]) -> str:
    """What is wrong with a case, in a few words: that of the finding which its row names."""
    hit = leading_hit(hits)
    return hit.what if hit else ""


def kernel_columns(case_of: Callable[[Any], CaseSummary]) -> list[ColumnPart]:
    """The columns of the most expensive kernel by counters of each member's case."""
    return [
        (
            Column("kernel_ns", "kernel, mean", "ns"),
            lambda each: next((k.launch_ns for k in case_of(each).kernels), None),
        ),
        (
            Column("dram_pct", "of DRAM", "whole %"),
            lambda each: next((k.dram_pct for k in case_of(each).kernels), None),
        ),
    ]


def mfu_column(summary: Summary, case_of: Callable[[Any], str]) -> ColumnPart | None:
    """The column of MFU of each member's case; None where the recipe has no FLOP of a step."""
    mfu_pct = {flops.case_id: flops.mfu_pct for flops in summary.model_flops}
    return (Column("mfu_pct", "MFU", "%"), lambda each: mfu_pct.get(case_of(each))) if mfu_pct else None


def mean_gpu_busy_pct(case: CaseSummary) -> float | None:
    """How much of an iteration the mean GPU is at work; of GPUs that processes share the only one that is known."""
    spent = time_without_profiler(case)
    return least_gpu_busy_pct(case) if spent is None or spent.idle_pct is None else 100 - spent.idle_pct


def has_uneven_gpus(case: CaseSummary) -> bool:
    """Whether some GPU is idle more than the mean, as printed."""
    spent = time_without_profiler(case)
    return spent is not None and None not in {spent.idle_pct, spent.most_idle_pct} and (
        round(spent.idle_pct or 0) != round(spent.most_idle_pct or 0)
    )  # fmt: skip


def parameter_value_cell(value: Any) -> Cell:
    """A value of a recipe as a cell."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def parameter_value_text(value: Any) -> str:
    """A value of a recipe as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def milliseconds_change_text(before: float | None, after: float | None) -> str:
    """Two times (ns) as milliseconds, `before -> after`."""
    return " -> ".join(f"{ns / 1e6:.3g}" if ns else "no iterations" for ns in (before, after))


def two_digit_factor_text(times: float) -> str:
    """How many times, in two digits."""
    return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
