"""The first screen of programs or parameters beside each other: a row a case, or a grid of two parameters."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Cell, Column, ColumnPart, Evidence, Table
from nsw.analysis.cases import rows_by_run
from nsw.analysis.comparison import figure_heading, least_disturbed_figure
from nsw.analysis.kernel_classes import COPIES
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, time_without_profiler
from nsw.analysis.screen_table import (
    WASTE_PCT,
    Screen,
    figure_median,
    figure_range,
    figure_to_show,
    first_problem_text,
    has_uneven_gpus,
    is_smaller_figure_better,
    kernel_columns,
    largest_hit,
    mean_gpu_busy_pct,
    mfu_column,
    parameter_value_cell,
    parameter_value_text,
    screen_table,
)
from nsw.analysis.single_case import TABLE, main_time_section
from nsw.analysis.spent import NOT_SHOWN
from nsw.quantities import duration, format_magnitude, number
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

__all__ = ["best_two_cases", "side_by_side_screen"]

_ROWS: Final = 15  # of a campaign's table; of more cases those that weigh most
_NEAR: Final = 0.95  # of the best
_IN_ORDER: Final = 10  # cases that stay in the order of the matrix: more are sorted
_COLUMNS: Final = 8  # of a grid
_MORE_FIGURES: Final = 2  # beside the first, that have a column


def side_by_side_screen(summary: Summary) -> Screen:
    """A row a case: its figure, how busy its GPU is, what is wrong and what to do."""
    cases = summary.cases
    names = [name for name in cases[0].params if len({repr(c.params.get(name)) for c in cases}) > 1] if cases else []
    figure = figure_to_show(summary)
    hits = summary.hits
    by_run = cache(lambda: {name: rows_by_run(rows) for name, rows in summary.tables.items()})
    repeated = any(f.runs > 1 for case in cases for f in case.figures)
    if figure and not any(hits.values()) and (grid := _figure_grid_table(summary, names, figure)) is not None:
        return Screen(
            f"{_campaign_name(summary)}: {plural(len(cases), 'case')}{_best_figure_text(summary, names, figure)}", grid
        )
    units = {f.name: f.unit or f.name for case in cases for f in case.figures}
    more_figures = [item for item in units.items() if figure and item[0] != figure[0]][:_MORE_FIGURES]
    is_uneven = any(hit.cause == "slow-iteration" for case_hits in hits.values() for hit in case_hits)
    busy_title = "GPU busy, median iteration" if is_uneven else "GPU busy"
    parts: list[ColumnPart | None] = [
        *(
            (Column(f"param.{name}", name), lambda c, name=name: parameter_value_cell(c.params.get(name)))
            for name in names
        ),
        (Column("case", "case" if summary.site else "report"), lambda c: c.id) if not names else None,
        (Column("processes", "processes", "count"), _process_count)
        if not names and len({*map(_process_count, cases)} - {None}) > 1
        else None,
        (Column("iteration_ns", "an iteration", "ns"), _iteration_ns) if not figure else None,
        (Column("gpu_ns", "GPU time", "ns"), lambda c: c.gpu_ns)
        if not figure and not all(map(_iteration_ns, cases))
        else None,
        (Column("top", "largest part", "name"), lambda c: _largest_time_share_cell(c, by_run)) if not figure else None,
        (Column("figure", figure_heading(*figure, is_median=repeated), "number"), lambda c: figure_median(c, figure[0]))
        if figure
        else None,
        (Column("figure_range", "its range", "range"), lambda c: figure_range(c, figure[0])) if figure else None,
        *(
            (
                Column(f"figure.{name}", figure_heading(name, unit, is_median=repeated), "number"),
                lambda c, name=name: figure_median(c, name),
            )
            for name, unit in more_figures
        ),
        mfu_column(summary, lambda c: c.id),
        (Column("busy_pct", busy_title, "whole %"), mean_gpu_busy_pct),
        (Column("least_busy_pct", "least busy GPU", "whole %"), least_gpu_busy_pct)
        if any(map(has_uneven_gpus, cases))
        else None,
        *kernel_columns(lambda c: c),
        (Column("what", "what is wrong"), lambda c: first_problem_text(hits.get(c.id, ()))),
        (Column("do", "do"), lambda c: hit.do if (hit := largest_hit(hits.get(c.id, ()))) is not None else ""),
    ]
    order = sorted(range(len(cases)), key=lambda at: (-_hits_weight(hits.get(cases[at].id, ())), at))
    if figure and not any(hits.values()):
        sign = 1 if is_smaller_figure_better(summary, *figure) else -1
        values = [figure_median(case, figure[0]) for case in cases]
        order.sort(key=lambda at: (values[at] is None, sign * (values[at] or 0.0)))
    most_rows = _ROWS if summary.site else len(cases)  # other commands print a campaign's cases
    shown_cases = order[:most_rows] if len(cases) > _IN_ORDER else sorted(order)
    table = screen_table(parts, [cases[at] for at in shown_cases], "figures", [case.id for case in cases],
                   wide="what" if figure else "top",
                   droppable=(*(f"figure.{name}" for name, _ in reversed(more_figures)), "figure_range", "kernel_ns",
                              "top"),
                   omitted=len(cases) - len(shown_cases)) if cases else None  # fmt: skip
    headline = f"{_campaign_name(summary)}: "
    count = plural(len(cases), "case" if summary.site else "result")
    count += " with GPU work" if not summary.site and all(case.gpu_ns for case in cases) else ""
    if any(hits.values()):
        headline += _waste_text([cases[at] for at in order], hits, count)
    elif figure or any(_largest_time_share_cell(case, by_run) for case in cases):
        headline += count
        largest = {_largest_time_share_cell(case, by_run) for case in cases} if not figure else set()
        longest = max(cases, key=lambda case: case.gpu_ns or 0.0)
        if len(largest) == 1:
            headline += f", each {largest.pop()}"
        elif not summary.site and longest.gpu_ns:
            shortest = min(cases, key=lambda case: case.gpu_ns or math.inf)
            headline += (
                f": {duration(shortest.gpu_ns)} ({shortest.id}) to {duration(longest.gpu_ns)} ({longest.id}:"
                f" {_largest_time_share_cell(longest, by_run)})"
            )
    else:
        return Screen(headline + f"nothing was measured of {count}", None)
    return Screen(headline + (_best_figure_text(summary, names, figure) if figure else ""), table)


def _waste_text(order: Sequence[CaseSummary], hits: Mapping[str, Sequence[Hit]], count: str) -> str:
    """How many cases waste much of their time, and which wastes most; those that are idle without a known cause apart.

    Args:
        order: The cases, that which could win most first.
        hits: Of each case.
        count: How many cases there are, in words.
    """
    curable = {id_: [hit for hit in case_hits if hit.is_curable] for id_, case_hits in hits.items()}
    wasted = sum(_hits_weight(case_hits) >= WASTE_PCT for case_hits in curable.values())
    unexplained = sum(_hits_weight(hits[id_]) >= WASTE_PCT > _hits_weight(curable[id_]) for id_ in hits)
    first = next((case for case in order if wasted and curable.get(case.id)), order[0])
    problem = f"{first.id}: {first_problem_text(hits[first.id]).partition(',')[0]}"
    most = f", most of all {problem}" if max(wasted, unexplained) > 1 else f": {problem}"
    if unexplained and not wasted:
        return (
            f"{unexplained} of {count} are idle {WASTE_PCT:.0f} % of their time or more, and why is not measured{most}"
        )
    saved = f"save {WASTE_PCT:.0f} % of their time or more"
    if wasted == 1:
        saved = f"save {_hits_weight(curable[first.id]):.0f} % of its time"
    more = f"; {unexplained} more are idle as long, and why is not measured" if unexplained else ""
    return (f"{wasted} of {count} could {saved}{most}" if wasted else f"none could {saved}; most in {problem}") + more


def _campaign_name(summary: Summary) -> str:
    """The campaign's name without the moment, or the report's."""
    return summary.campaign.rsplit("-", 3)[0] if summary.site else summary.campaign


def _figure_grid_table(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> Table | None:
    """The figure over two parameters, the best marked; None where the cases do not make a grid."""
    if len(names) != 2:
        return None
    values = [
        list(dict.fromkeys(parameter_value_text(case.params.get(name)) for case in summary.cases)) for name in names
    ]
    down, across = sorted((0, 1), key=lambda at: -len(values[at])) if len(values[1]) > _COLUMNS else (0, 1)
    cells = {tuple(parameter_value_text(case.params.get(name)) for name in names): case for case in summary.cases}
    if min(map(len, values)) < 2 or not len(cells) == len(summary.cases) > _IN_ORDER or len(values[across]) > _COLUMNS:
        return None
    best = _best_case(summary, figure)

    grid = [[cells.get((y, x) if down == 0 else (x, y)) for x in values[across]] for y in values[down]]
    marked = [(at, n) for at, row in enumerate(grid) for n, case in enumerate(row, 1) if best and case is best]
    repeats = [
        f for case in summary.cases if (f := least_disturbed_figure(case, figure[0])) and f.runs > 1 and f.least > 0
    ]
    notes = ["* best"] if best else []
    if repeats:
        notes.append(
            f"repeats differ by up to {format_magnitude(max(100 * (f.most / f.least - 1) for f in repeats), 0)}"
        )
    return Table(
        TABLE, f"{figure_heading(*figure, is_median=bool(repeats))}: {'; '.join(notes)}",
        (Column(f"param.{names[down]}", names[down]),
         *(Column(f"at.{value}", f"{names[across]}={value}", "number") for value in values[across])),
        tuple((y, *(figure_median(case, figure[0]) if case else None for case in row))
              for y, row in zip(values[down], grid, strict=True)),
        best=next(iter(marked), None),
        least=tuple(f"at.{value}" for n, value in enumerate(values[across], 1) if n not in {at[1] for at in marked}),
        evidence=(Evidence("figures", tuple(case.id for case in summary.cases)),),
    )  # fmt: skip


def _best_case(summary: Summary, figure: tuple[str, str]) -> CaseSummary | None:
    """The case with the best figure of all."""
    with_value = [(value, case) for case in summary.cases if (value := figure_median(case, figure[0]))]
    pick = min if is_smaller_figure_better(summary, *figure) else max
    return pick(with_value, key=lambda item: item[0])[1] if len(with_value) > 1 else None


def _largest_time_share_cell(case: CaseSummary, by_run: Callable[[], Mapping[str, Mapping[str, Any]]]) -> Cell:
    """What takes most of a case's time, and how much of it: copies count together."""
    copies = case.spent.share_pct(COPIES) if case.spent else 0.0
    largest = next((part for part in case.spent.shown if part.name != NOT_SHOWN), None) if case.spent else None
    if case.spent and largest and not case.iterations and 100 * largest.ns > copies * case.spent.gpu_ns:
        return f"{100 * largest.ns / case.spent.gpu_ns:.0f} % {largest.name}"
    if copies and copies >= (case.hotspots[0].share_pct if case.hotspots else 0.0):
        return f"{copies:.0f} % {COPIES}"
    if shares := case.hotspots or case.functions or case.api:
        return f"{shares[0].share_pct:.0f} % {shares[0].short_name}"
    if len(case.kernels) > 1 and case.kernels[0].share_pct is not None:
        return f"{case.kernels[0].share_pct:.0f} % {case.kernels[0].short_name}"
    case_tables = {name: rows.get(case.id, ()) for name, rows in by_run().items()}
    section = main_time_section(case, case_tables)
    return section[0] if section else ""


def _best_figure_text(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> str:
    """Where a figure is best, and along one number from where on it hardly gains."""
    cases, less = summary.cases, is_smaller_figure_better(summary, *figure)
    with_value = [(value, case) for case in cases if (value := figure_median(case, figure[0]))]
    best = _best_case(summary, figure)
    is_numeric = all(isinstance(case.params.get(name), int | float) for case in cases for name in names)
    if best is None or not names or (any(summary.hits.values()) and not is_numeric):
        return ""
    value = figure_median(best, figure[0]) or 0.0
    at = ", ".join(f"{name}={parameter_value_text(best.params.get(name))}" for name in names)
    sentence = f"; best {number(value)} {figure[1]} at {at}{_tied_cases_text(cases, best, figure[0])}"
    if len(names) > 1 or len(with_value) < 3 or not is_numeric:
        return sentence
    near = [c.params[names[0]] for v, c in with_value if (v <= value / _NEAR if less else v >= value * _NEAR)]
    knee = min(near)
    return sentence + (f", within 5 % of it from {knee} on" if knee < best.params[names[0]] else "")


def _tied_cases_text(cases: Iterable[CaseSummary], best: CaseSummary, name: str) -> str:
    """Which cases' repeats reach those of the best, or that none do; nothing where it did not repeat."""
    top = least_disturbed_figure(best, name)
    if top is None or top.runs < 2:
        return ""
    figures = ((case, least_disturbed_figure(case, name)) for case in cases if case is not best)
    alike = [case.id for case, figure in figures if figure and figure.most >= top.least and figure.least <= top.most]
    if not alike:
        return ", whose runs beat those of all other cases"
    return f", and {first_names(alike, 2)} may be as good: repeats overlap"


def best_two_cases(summary: Summary) -> tuple[CaseSummary, CaseSummary] | None:
    """The second best case and the best, of cases beside each other; None where these did not repeat.

    Places on a scaling axis, and variants at several places, are no rivals.
    """
    figure = figure_to_show(summary)
    if figure is None or summary.curve is not None or any(variant.series for variant in summary.variants):
        return None
    rivals = [(value, case) for case in summary.cases if (value := figure_median(case, figure[0])) is not None]
    rivals.sort(key=lambda rival: rival[0], reverse=is_smaller_figure_better(summary, *figure))
    pair = rivals[-2:]
    if len(pair) < 2 or any((f := least_disturbed_figure(c, figure[0])) is None or f.runs < 2 for _, c in pair):
        return None
    return pair[0][1], pair[1][1]


def _iteration_ns(case: CaseSummary) -> float | None:
    """The time of an iteration; None where the case has none."""
    spent = time_without_profiler(case)
    return spent.span_ns if spent and spent.is_iteration else None


def _process_count(case: CaseSummary) -> int | None:
    """How many processes have iterations; None where none has."""
    return case.iterations.processes if case.iterations else None


def _hits_weight(hits: Sequence[Hit]) -> float:
    """What the largest thing that is wrong wastes, per cent of the case's time."""
    return max((hit.gain_pct for hit in hits if not hit.costs_accuracy), default=0.0)
