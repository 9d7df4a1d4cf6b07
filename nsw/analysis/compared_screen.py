"""The answer of a comparison: what differs around it, the verdict in a line, a row a case, and what did it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import (
    Block,
    Cell,
    Column,
    ColumnPart,
    Evidence,
    Finding,
    Intervals,
    Note,
    Table,
    Waterfall,
    columns_and_rows,
)
from nsw.analysis.certainty import Estimate, Verdict
from nsw.analysis.comparison import is_time_unit
from nsw.analysis.conditions import disturbance_notes
from nsw.analysis.figures import find_outliers
from nsw.analysis.first_screen import HEADLINE
from nsw.analysis.sides import (
    CHIP,
    DIFFERENT_GPUS,
    DIFFERENT_PROGRAMS,
    GPU_TIME,
    ITERATION,
    MEAN_ITERATION,
    RUN_TIME,
    Compared,
    Side,
    comparable_subjects,
    is_as_much_copied,
    match_cases,
    split_kernel_metric,
)
from nsw.quantities import (
    BYTES,
    TIMES,
    common_unit,
    factor_digits,
    format_change,
    format_ns,
    format_time_change,
    percent_digits,
    rate_units,
)
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.difference import Difference

__all__ = [
    "Comparison",
    "comparison_blocks",
    "has_factors",
    "interval_text",
    "invalid_run_lines",
    "is_undecided_by_single_runs",
    "log_ratio_to_percent",
    "verdict_text",
]

_ROWS: Final = 15
_EXPLAINED: Final = 3
_DISTURBANCES: Final = 2  # of the runs that are named
_CASES_NAMED: Final = 3
_UNLIKE: Final = 0.05  # of a time, by which the traced runs and the figure change unlike
_SHORT: Final = 18  # characters of a name that a table's heading has room for
_NONE_PCT: Final = 0.1  # of a value: a change below it prints as none
_MOST: Final = 0.5  # of what all functions change, from which a function is what did it
_LARGE: Final = math.log(2)  # logarithm from which a change is a factor, as on every screen
_METRIC_ORDER: Final = (
    "Order: the kernel with most GPU time first, of each its time, then what changed most: of % by points, of all else"
    " by the part of the larger value."
)
_BETWEEN: Final = "between: where the change lies, by the scatter of the runs"
_SINGLE_RUNS: Final = (
    "between: where the change lies if runs scatter by {} %, which is assumed of 1 run a side. Repeats measure it."
)
_FEW_RUNS: Final = f"{_BETWEEN}; below 7 a side at least 10 % is assumed"
_WORK_DECIDES: Final = (
    "Work over time decides: divide the work of an iteration by its time on each side, or begin a recipe that takes a"
    " figure from what the program prints (`nsw init -- COMMAND`)."
)
_DECIDED: Final = ("faster", "slower", "higher", "lower")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides beside each other.

    Attributes:
        first: What is compared with.
        second: What is compared.
        by: What is compared, one of nsw.analysis.sides.BY.
        rows: A row a quantity of a case.
        lone: The cases of each side that the other lacks.
        differs: What differs between the sides beside the program, a line each.
        programs: How their programs differ.
        explained: What did it, by case.
        at_equal_clocks: Of cases that are compute-bound and not comparable by their clocks: as if these were equal.
        gpus: How many GPUs each side of a case ran on, where that is known.
        counters: What changed in kernels by their counters, a sentence a case.
        doubts: Why figures are set aside, a sentence a case.
        functions: The same sides by function, where both have functions of the CPU.
        profiler: What measured these.
    """

    first: Side
    second: Side
    by: str
    rows: tuple[Compared, ...]
    lone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    differs: tuple[str, ...] = ()
    programs: str | None = None
    explained: Mapping[str, Difference] = field(default_factory=dict)
    at_equal_clocks: tuple[Compared, ...] = ()
    gpus: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    counters: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[Compared, ...] = ()
    profiler: str = ""


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """What differs, headline, table, findings, in this order."""
    blocks: list[Block] = [Note("differs", f"Not alike: {line}", tone="warning") for line in comparison.differs]
    if comparison.programs:
        blocks.append(Note("programs", f"Programs: {comparison.programs}", tone="aside"))
    blocks.append(Note(HEADLINE, _comparison_headline(comparison), tone="heading"))
    notes = dict.fromkeys((comparison.first.note or "", comparison.second.note or ""))
    shared_note = next(iter(notes)) if len(notes) == 1 else ""
    is_one_campaign = comparison.first.source == comparison.second.source
    names = (comparison.first.name if is_one_campaign else _full_side_name(comparison.first),
             _full_side_name(comparison.second))  # fmt: skip
    sides = ", ".join(
        f"{letter}: {name}{f' ({side.note})' if side.note and not shared_note else ''}"
        for letter, name, side in zip("AB", names, (comparison.first, comparison.second), strict=True)
    )
    if any(max(row.runs) > 1 for row in comparison.rows):
        sides += "; means of the runs, whose ratio is the change (`nsw summarize` prints medians)"
    blocks.append(Note("sides", sides, tone="aside"))
    blocks += [Note("note", shared_note, tone="aside")] if shared_note else []
    if comparison.rows:
        blocks.append(_changes_table(comparison))
        if comparison.by == "metric":
            blocks.append(Note("legend", _METRIC_ORDER, tone="aside"))
        blocks += [Note("legend", text, tone="aside") for text in _interval_legends(comparison)]
    blocks += [Note("gpus", text) for text in _efficiency_lines(comparison)]
    as_factors = has_factors(comparison.rows)
    blocks += [
        Finding(
            "equal clocks",
            f"{_case_prefix(comparison, row)}{row.what} at equal clocks:"
            f" {verdict_text(row, as_factors=as_factors)}. Both sides are compute-bound, and each run's value is scaled"
            " by its clock to that of the first side.",
            evidence=(Evidence("conditions", (row.case,)), Evidence("metrics", (row.case,))),
        )
        for row in comparison.at_equal_clocks
    ]
    blocks += [
        Finding("cold start", text, evidence=(Evidence("figures", (case,)),))
        for case, text in comparison.doubts.items()
    ]
    blocks += [
        *_missing_part_notes(comparison),
        *_explanation_blocks(comparison),
        *(
            Finding(
                "counters",
                f"{f'{case}: ' if len(comparison.counters) > 1 else ''}{text}",
                evidence=(Evidence("metrics", (case,)),),
            )
            for case, text in comparison.counters.items()
        ),
        *_undecided_row_notes(comparison),
        *_note_blocks(comparison),
    ]
    return [
        *blocks,
        *_interval_plot_blocks(comparison),
        *(_waterfall_blocks(comparison, explained) for explained in comparison.explained.values()),
    ]


def _interval_legends(comparison: Comparison) -> list[str]:
    """What the intervals follow from; nothing where there are none."""
    estimates = [row.estimate for row in comparison.rows if row.estimate is not None]
    assumed = [e for e in estimates if e.floor is not None and not e.floor.measured]
    if not assumed:
        return [_BETWEEN] if estimates and comparison.by != "metric" else []
    if any(not math.isinf(e.floor.freedom) for e in assumed if e.floor):
        return ["between: where the change lies, by the scatter of the iterations: record more of them"]
    if all(e.runs == 1 for e in assumed):
        return [_SINGLE_RUNS.format(_assumed_scatter_text(assumed[0]))]
    is_noise_useless = comparison.first.same_program or comparison.second.adding is not None
    noise = "" if is_noise_useless else " (`nsw noise RECIPE` measures it)"
    return [_FEW_RUNS + noise]


# --- in words -------------------------------------------------------------------------------------------------------


def log_ratio_to_percent(log: float) -> float:
    """The per cent of a logarithm of a ratio."""
    return 100 * math.expm1(log)


def has_factors(rows: Iterable[Compared]) -> bool:
    """Whether changes of these rows, or ends of where they lie, are so large that all beside them are factors."""
    estimates = [row.estimate for row in rows if row.estimate is not None]
    return any(abs(log) >= _LARGE for each in estimates for log in (each.log_ratio, each.low, each.high))


def verdict_text(row: Compared, *, as_factors: bool | None = None) -> str:
    """The verdict with the change of the value: `11 % faster (9.2 to 13 %)`, `the same within 0.8 %`, `cannot tell`.

    Of a time: `takes 46 % longer (40 to 52 %)`; of one run a side with the scatter that its interval assumes.

    Args:
        row: The row.
        as_factors: Whether changes are factors on this screen, `1.49x slower (1.06x to 2.09x)`; None: by this row.
    """
    estimate = row.estimate
    if estimate is None:
        return row.missing or row.verdict
    as_factors = has_factors([row]) if as_factors is None else as_factors
    if row.verdict == "same":
        return f"the same within {percent_digits(log_ratio_to_percent(estimate.largest_log_ratio))} %"
    interval = interval_text(row, as_factors=as_factors)
    if row.verdict not in _DECIDED:
        return f"{row.verdict} ({interval})"
    assumed = f" if runs scatter by {_assumed_scatter_text(estimate)} %" if _is_by_assumed_scatter(row) else ""
    verb = "takes " if is_time_unit(row.unit) and not as_factors else ""
    return f"{verb}{_change_text(row, estimate.log_ratio, as_factors=as_factors)} ({interval}{assumed})"


def interval_text(row: Compared, *, as_factors: bool, directed: bool = True) -> str:
    """Where the change of a row lies: `5.3 to 52 %`, `1.06x to 2.09x`, `49 % slower to 50 % faster`.

    Args:
        row: A row with an estimate.
        as_factors: Whether changes are factors on this screen.
        directed: Whether the change beside it names its direction, which holds for both ends; else they have signs.
    """
    estimate: Any = row.estimate
    low, high = estimate.low, estimate.high
    if low == high:
        return "exact"
    if not directed and (low * high <= 0 or not as_factors):
        ends = [format_change(log_ratio_to_percent(end), 0, as_factor=as_factors) for end in (low, high)]
    elif low * high <= 0:
        return " to ".join(_change_text(row, end, as_factors=as_factors) for end in (low, high))
    else:
        ends = [_size_text(end, as_factors=as_factors) for end in (low, high)]
        ends = ends if low > 0 else ends[::-1]
    return " to ".join(ends) if as_factors else f"{ends[0].removesuffix(' %')} to {ends[1]}"


def _change_text(row: Compared, log: float, *, as_factors: bool) -> str:
    return f"{_size_text(log, as_factors=as_factors)} {_direction_word(row, log, as_factors=as_factors)}"


def _size_text(log: float, *, as_factors: bool) -> str:
    """The size of a change, of either sign."""
    return (
        f"{factor_digits(math.exp(abs(log)))}x" if as_factors else f"{percent_digits(abs(log_ratio_to_percent(log)))} %"
    )


def _is_by_assumed_scatter(row: Compared) -> bool:
    """Whether a verdict of one run a side follows from a scatter that nothing measured."""
    floor = row.estimate and row.estimate.floor
    return row.verdict in _DECIDED and bool(floor and not floor.measured) and min(row.runs) == 1


def _is_undecided_zero(row: Compared) -> bool:
    """Whether values are equal as printed, and the runs do not show that they are: `the same` would say so."""
    return row.verdict == "cannot tell" and abs(log_ratio_to_percent(row.gain or 0.0)) < _NONE_PCT


def _are_single_runs_equal(row: Compared) -> bool:
    """Whether single runs are equal as printed, which does not tell that their programs are."""
    return is_undecided_by_single_runs(row) and _is_undecided_zero(row)


def _assumed_scatter_text(estimate: Estimate) -> str:
    return percent_digits(100 * estimate.floor.run) if estimate.floor else "0"


def _direction_word(row: Compared, log: float, *, as_factors: bool = False) -> str:
    """The change of a value in a word: a time is longer or less, a rate faster or slower, all else more or less."""
    is_more = log > 0
    if is_time_unit(row.unit) and not as_factors:
        return "longer" if is_more else "less time"
    if is_time_unit(row.unit) or row.higher_is_better:
        return "faster" if is_more != is_time_unit(row.unit) else "slower"
    if row.higher_is_better is None:
        return "higher" if is_more else "lower"
    return "more" if is_more else "less"


def _run_counts_text(estimate: Estimate) -> str:
    return plural(estimate.runs, "pair") if estimate.is_paired else f"{plural(estimate.runs, 'run')} a side"


def _full_side_name(side: Side) -> str:
    """The side's name, with its campaign where it names only cases."""
    campaign = side.source.rpartition("/")[2]
    return side.name if campaign in side.name else f"{side.name} of {campaign}"


def _short_side_names(comparison: Comparison) -> tuple[str, str]:
    """Of the sides, for a table: their own where they are short."""
    names = comparison.first.name, comparison.second.name
    return names if max(map(len, names)) <= _SHORT and len(set(names)) > 1 else ("A", "B")


def _comparison_headline(comparison: Comparison) -> str:
    names = "{1} beside {0}".format(*_short_side_names(comparison))
    rows, as_factors = comparison.rows, has_factors(comparison.rows)
    kind_name = {"case": "cases", "class": "classes", "range": "NVTX ranges"}.get(comparison.by, f"{comparison.by}s")
    if not rows:
        subjects = comparable_subjects(comparison.first, comparison.second)
        hint = f"; {' or '.join(f'`--by {subject}`' for subject in subjects)} would compare these" if subjects else ""
        return f"{names}: no {kind_name} that can be compared{hint}"
    if len(rows) == 1:
        row = rows[0]
        if comparison.second.adding is not None and _are_pairs_undecided(row):
            return f"{names}: {row.what}: {_undecided_pairs_text(comparison, row)}"
        runs = ", equal in these runs" if _are_single_runs_equal(row) else ""
        runs += f", {_run_counts_text(row.estimate)}" if row.estimate else ""
        if row.missing in {DIFFERENT_PROGRAMS, DIFFERENT_GPUS} and row.unit == "ns":
            first, second = _short_side_names(comparison)
            times = f"{format_ns(row.first or 0.0)} in {first}, {format_ns(row.second or 0.0)} in {second}"
            return f"{row.missing}: {row.what} {times}"
        verdict = verdict_text(row, as_factors=as_factors)
        explained = comparison.explained.get(row.case) if row.what in {ITERATION, MEAN_ITERATION} else None
        is_alike = row.estimate is None or is_as_much_copied(comparison.first, comparison.second)
        runs += "" if is_alike else ", if an iteration does as much work"
        whole = explained.traced_change if row.verdict in _DECIDED and explained else ""
        whole = f"; {whole}" if whole else ""
        return f"{names}: {row.what}: {verdict}{runs}{whole}{_most_changed_function_text(comparison)}"
    counts = Counter(row.missing or row.verdict for row in rows)
    words = {
        verdict: f"{verdict}{_change_range_text(rows, verdict, as_factors=as_factors)}"
        for verdict in _DECIDED
        if counts[verdict]
    }
    equal = sum(map(_are_single_runs_equal, rows))
    of_equal = f" ({equal} equal in these runs)" if equal else ""
    words |= {"gone": "gone", "new": "new", "same": "the same", "cannot tell": f"cannot be told{of_equal}"}
    words |= {DIFFERENT_PROGRAMS: "in both"}
    parts = [f"{counts[outcome]} {text}" for outcome, text in words.items() if counts[outcome]]
    parts += [f"{count} {outcome}" for outcome, count in counts.items() if outcome not in words]
    single = next((row.estimate for row in rows if row.estimate and _is_by_assumed_scatter(row)), None)
    assumed = f"; if runs scatter by {_assumed_scatter_text(single)} %, {_run_counts_text(single)}" if single else ""
    return f"{names}, {len(rows)} {kind_name}: {', '.join(parts)}{assumed}{_most_changed_function_text(comparison)}"


def _are_pairs_undecided(row: Compared) -> bool:
    return row.verdict == "cannot tell" and row.estimate is not None and row.estimate.is_paired


def _undecided_pairs_text(comparison: Comparison, row: Compared) -> str:
    """Of pairs that are added until they decide: `not decided after 12 pairs (price reached): the difference ...`."""
    estimate: Any = row.estimate
    adding = comparison.second.adding
    ended = adding.ended if adding is not None and adding.ended else "more are to be added"
    between = interval_text(row, as_factors=has_factors(comparison.rows))
    return f"not decided after {_run_counts_text(estimate)} ({ended}): the difference is {between}"


def _change_range_text(rows: Sequence[Compared], verdict: str, *, as_factors: bool) -> str:
    """By how much the values of one verdict changed, of times in which direction."""
    decided = [(row, row.estimate.log_ratio) for row in rows if row.verdict == verdict and row.estimate is not None]
    decided.sort(key=lambda change: abs(log_ratio_to_percent(change[1])))
    ends = dict.fromkeys(_size_text(log, as_factors=as_factors) for _, log in (decided[0], decided[-1]))
    sizes = " to ".join(ends) if as_factors else " to ".join(end.removesuffix(" %") for end in ends) + " %"
    words = {_direction_word(row, log, as_factors=as_factors) for row, log in decided}
    direction = f" {words.pop()}" if len(words) == 1 and words != {verdict} else ""
    return f" ({sizes}{direction})"


def _most_changed_function_text(comparison: Comparison) -> str:
    """The function that changed most with the case that changed most; empty where none has most of the change.

    Nor where others change as much the other way: of a program that runs for a given time they always do.
    """
    row = max((row for row in comparison.rows if row.verdict in _DECIDED), key=_change_size, default=None)
    if row is None or row.higher_is_better is None:
        return ""
    changes = [
        ((each.second or 0.0) - (each.first or 0.0), each) for each in comparison.functions if each.case == row.case
    ]
    sign = 1 if row.verdict == "slower" else -1
    most, function = max(changes, key=lambda change: sign * change[0], default=(0.0, None))
    if function is None or sign * most < _MOST * sum(sign * ns for ns, _ in changes if sign * ns > 0) or not most:
        return ""
    if sign * sum(ns for ns, _ in changes) < _MOST * sign * most:
        return ""
    name = function.what.rpartition(" (")[0] or function.what
    change = (
        f"{format_ns(abs(most))} {'more' if most > 0 else 'less'} in `{name}`"
        if function.unit == "ns"
        else f"`{name}` takes {function.second or 0.0:.0f} % of the samples, {function.first or 0.0:.0f} % before"
    )
    return f"; {_case_prefix(comparison, row)}{change}" + (f" ({comparison.profiler})" if comparison.profiler else "")


# --- the table ------------------------------------------------------------------------------------------------------


def _changes_table(comparison: Comparison) -> Table:
    """A row a quantity; of more than 15 those that weigh most, in the order of the rows."""
    rows, by_metric = comparison.rows, comparison.by == "metric"
    kept_rows = _heaviest_rows(rows) if comparison.by in {"case", "figure"} else rows[:_ROWS]
    cases = len({row.case for row in rows}) > 1
    unit, scale = _common_unit(kept_rows)
    own_units = not unit and any(row.unit for row in kept_rows)
    scales = {id(row): _row_unit(row) if own_units else (unit, scale) for row in kept_rows}
    kernels = dict.fromkeys(split_kernel_metric(row.what)[1] for row in kept_rows) if by_metric else {}
    whats = len({row.what for row in rows}) > 1 or comparison.by not in {"case", "figure"}
    names = ("A", "B") if by_metric else _short_side_names(comparison)  # whose names need the room
    mean = "mean" if any(max(row.runs) > 1 for row in rows) else ""
    has_iterations = all(side.tables.get("iterations") for side in (comparison.first, comparison.second))
    per = " an iteration" if unit and has_iterations and comparison.by in {"kernel", "class"} else ""
    heading = ", ".join(["", *filter(None, [f"{mean or ('mean' if per else '')} {unit}{per}".strip()])])
    # in words where all are times, or all are better the larger
    are_times = [is_time_unit(row.unit) for row in rows]
    are_rates = not any(are_times) and all(row.higher_is_better for row in rows)
    as_factors = has_factors(rows)
    word = "longer" if all(are_times) else "faster" if are_rates else "change"
    change_unit: Any = f"{word} factor" if as_factors else f"{word} %"
    first, second = (
        (
            Column(key, f"{name}{heading}", "number"),
            lambda r, at=at: (
                None if (value := (r.means or (r.first, r.second))[at]) is None else value / scales[id(r)][1]
            ),
        )
        for at, (key, name) in enumerate(zip(("first", "second"), names, strict=True))
    )
    parts: list[ColumnPart | None] = [
        (Column("case", "case", "name"), lambda r: r.case) if cases else None,
        (Column("kernel", "kernel", "name"), lambda r: split_kernel_metric(r.what)[1]) if len(kernels) > 1 else None,
        (Column("what", comparison.by, "name"), lambda r: split_kernel_metric(r.what)[0] if by_metric else r.what)
        if whats else None,
        (Column("unit", "unit"), lambda r: scales[id(r)][0]) if own_units else None,
        first,
        second,
        (Column("change_pct", "change", change_unit),
         lambda r: None if r.estimate is None or _is_undecided_zero(r) else log_ratio_to_percent(r.estimate.log_ratio)),
        (Column("interval", "between"),
         lambda r: "-" if r.estimate is None else interval_text(r, as_factors=as_factors, directed=word != "change")),
        (Column("runs", "runs"), _row_run_counts_text),
        (Column("verdict", "verdict"),
         lambda r: r.missing or f"{'probably ' * _is_by_assumed_scatter(r)}{r.verdict}"),
    ]  # fmt: skip
    columns, cells = columns_and_rows(parts, kept_rows)
    titles = ["Those that weigh most"] if len(kept_rows) < len(rows) and not by_metric else []
    titles += [f"metrics of {next(iter(kernels))}"] if len(kernels) == 1 else []
    return Table(
        "comparison",
        title=": ".join(titles),
        columns=columns,
        rows=cells,
        wide="kernel" if len(kernels) > 1 else "what" if whats else "case" if cases else None,
        least=("runs", "interval"),
        repeats=[column.name for column in columns].index("what") if by_metric else 0,
        omitted=len(rows) - len(kept_rows),
        evidence=(
            Evidence(_source_table_name(comparison, kept_rows[0]), tuple(dict.fromkeys(row.case for row in kept_rows))),
        ),
    )


def _heaviest_rows(rows: Sequence[Compared]) -> Sequence[Compared]:
    """The rows that weigh most, in their order."""
    heaviest = sorted(range(len(rows)), key=lambda at: -_change_size(rows[at]))[:_ROWS]
    return [rows[at] for at in sorted(heaviest)]


_BEHIND: Final = {
    "function": "functions",
    "kernel": "gpu_summary", "class": "gpu_summary", "range": "nvtx_gpu_summary", "metric": "metrics",
    ITERATION: "iterations", GPU_TIME: "gpu_summary", RUN_TIME: "runs",
}  # fmt: skip


def _source_table_name(comparison: Comparison, row: Compared) -> str:
    """The table that a row was measured in."""
    return _BEHIND.get(comparison.by) or _BEHIND.get(row.what, "figures")


def _common_unit(rows: Sequence[Compared]) -> tuple[str, float]:
    """The unit of both sides, empty where they have none in common, and its size in what the rows are in."""
    units = {row.unit for row in rows}
    if units == {"ns"}:
        return common_unit([value for row in rows for value in (row.first, row.second) if value], TIMES)
    return (next(iter(units)) if len(units) == 1 else None) or "", 1.0


_UNITS: Final = {
    "ns": TIMES, "byte": BYTES, "byte/s": rate_units("B"), "FLOP/s": rate_units("FLOP"), "cycle/s": rate_units("cycle"),
}  # fmt: skip


def _row_unit(row: Compared) -> tuple[str, float]:
    """The unit of a row beside rows of other units, and its size in what the row is in."""
    values = [value for value in (row.first, row.second) if value]
    return common_unit(values, _UNITS[row.unit]) if row.unit in _UNITS else (row.unit or "", 1.0)


def _change_size(row: Compared) -> float:
    return abs(row.gain or 0.0) if row.verdict in _DECIDED else 0.0


def _row_run_counts_text(row: Compared) -> str:
    if row.estimate is not None and row.estimate.is_paired:
        return plural(row.estimate.runs, "pair")
    return str(row.runs[0]) if row.runs[0] == row.runs[1] else f"{row.runs[0]} and {row.runs[1]}"


# --- plots alone ----------------------------------------------------------------------------------------------------


def _interval_plot_blocks(comparison: Comparison) -> list[Block]:
    """A ratio a row that has one, with its interval; of more than 15 those that weigh most."""
    heaviest_rows = _heaviest_rows([row for row in comparison.rows if row.gain is not None])
    if not heaviest_rows:
        return []
    first, second = _short_side_names(comparison)
    single, several = len({row.what for row in heaviest_rows}) == 1, len({row.case for row in heaviest_rows}) > 1
    oriented = all(row.higher_is_better is not None for row in heaviest_rows)
    columns = (
        Column("what", comparison.by, "name"),
        Column("ratio", f"{second}: times as fast as {first}" if oriented else f"{second} over {first}", "times"),
        Column("interval", "between", "range"),
        Column("runs", "runs"),
        Column("verdict", "verdict"),
    )
    rows = tuple(
        (
            ", ".join([*([row.case] if single or several else []), *([] if single else [row.what])]),
            math.exp(row.gain or 0.0),
            (math.exp(min(row.interval)), math.exp(max(row.interval))),
            _row_run_counts_text(row),
            row.verdict,
        )
        for row in heaviest_rows
        if row.interval is not None
    )
    title = f"{second} beside {first}" + (f": {heaviest_rows[0].what}" if single else "")
    return [
        Intervals(
            "intervals", title, columns, rows, label="what", value="ratio", interval="interval", verdict="verdict",
            shown="data",
            evidence=(Evidence(_source_table_name(comparison, heaviest_rows[0]),
             tuple(row.case for row in heaviest_rows)),),
        )
    ]  # fmt: skip


_BECAME: Final = {"gone": " (gone)", "new": " (new)", "renamed": " (renamed)"}
_STEPS: Final = 8


def _waterfall_blocks(comparison: Comparison, explained: Difference) -> Block:
    """From the time of the first side to that of the second, the parts that weigh most first."""
    first, second = _short_side_names(comparison)
    changes = sorted(explained.changes, key=lambda change: -abs(change.ns))
    steps = [(change.what + _BECAME.get(change.how or "", ""), change.ns) for change in changes[:_STEPS]]
    rest = sum(change.ns for change in changes[_STEPS:])
    steps += [("the rest", rest)] if rest else []
    rows: list[tuple[Cell, ...]] = [(first, 0.0, explained.before)]
    at = explained.before
    for step_name, ns in steps:
        rows.append((step_name, at, at + ns))
        at += ns
    rows.append((second, 0.0, explained.after))
    subject = "an iteration" if explained.of_iteration else "the GPU's work"
    return Waterfall(
        "waterfall", f"what changed in {subject} of {explained.case}",
        (Column("what", "part", "name"), Column("start_ns", "from", "ns"), Column("end_ns", "to", "ns")), tuple(rows),
        label="what", start="start_ns", end="end_ns", shown="data",
        evidence=(Evidence("gpu_summary", (explained.case,)),),
    )  # fmt: skip


# --- sentences ------------------------------------------------------------------------------------------------------


def _explanation_blocks(comparison: Comparison) -> list[Block]:
    """What did it, of the cases that changed most."""
    if comparison.by not in {"case", "figure"}:
        return []
    explained_rows = [
        row
        for row in comparison.rows
        if row.verdict in _DECIDED or is_undecided_by_single_runs(row) or row.missing == DIFFERENT_GPUS
    ]
    seen: dict[str, Compared] = {}
    for row in sorted(explained_rows, key=lambda row: -_change_size(row)):
        seen.setdefault(row.case, row)
    findings: list[Block] = [
        Finding(
            "difference",
            f"{_case_prefix(comparison, row)}{_outcome_text(comparison, row)}{_difference_sentence(comparison, row)}."
            f"{_traced_text(comparison, row)}",
            evidence=(Evidence(_source_table_name(comparison, row), (case,)), Evidence("gpu_summary", (case,))),
        )
        for case, row in seen.items()
        if case in comparison.explained
    ]
    return findings[:_EXPLAINED]  # fmt: skip


def _traced_text(comparison: Comparison, row: Compared) -> str:
    """How long the sides are traced in all, behind a row of iterations; else empty."""
    text = comparison.explained[row.case].traced_sentence if row.what in {ITERATION, MEAN_ITERATION} else ""
    return f" {text}" if text else ""


def _missing_part_notes(comparison: Comparison) -> list[Block]:
    """A line where the difference has no parts, or those of the GPU's work alone: what the sides lack."""
    changed = [row for row in comparison.rows if row.verdict in _DECIDED or is_undecided_by_single_runs(row)]
    explained, sides = comparison.explained, (comparison.first, comparison.second)
    is_divided = any(each.of_iteration for each in explained.values())
    is_lone = all(row.estimate is None for row in comparison.rows)
    has_gpu = any(CHIP in side.conditions or side.tables.get("gpu_summary") for side in sides)
    if comparison.by not in {"case", "figure"} or not has_gpu or is_divided or not (changed or is_lone):
        return []
    if comparison.doubts or any(row.missing == DIFFERENT_PROGRAMS for row in comparison.rows):
        return []
    lacking = [side.name for side in sides if not side.tables.get("iterations")]
    reason = "the tables do not separate NCCL from other work; `nsw reread` makes them again"
    if lacking:
        reason = f"{'neither side has a' if lacking[1:] else f'{lacking[0]} has no'} timeline with iterations"
    lost = "The difference is that of the GPU's work, without idle time" if explained else "The difference has no parts"
    return [Note("parts", f"{lost}: {reason}.", tone="aside")]


def is_undecided_by_single_runs(row: Compared) -> bool:
    """Whether a row cannot be told because each side has one run."""
    return row.verdict == "cannot tell" and row.estimate is not None and row.estimate.runs == 1


def _outcome_text(comparison: Comparison, row: Compared) -> str:
    if row.missing:
        return ""
    if is_undecided_by_single_runs(row):
        return "One run a side decides nothing; between these two: "
    return f"{verdict_text(row, as_factors=has_factors(comparison.rows))}. "


def _case_prefix(comparison: Comparison, row: Compared) -> str:
    """The name of a row's case, where there are several."""
    return f"{row.case}: " if len({row.case for row in comparison.rows}) > 1 else ""


def _efficiency_lines(comparison: Comparison) -> list[str]:
    """Of rates over different numbers of GPUs the factor of both, and the efficiency of the side with more.

    Of times what that would be if each GPU did as much work.
    """
    lines = []
    for row in comparison.rows:
        few, many = sorted(comparison.gpus.get(row.case, (0, 0)))
        if few == many or not few:
            continue
        is_second = comparison.gpus[row.case][1] == many
        side = comparison.second if is_second else comparison.first
        if row.missing == DIFFERENT_GPUS and row.first and row.second:
            times = many / few * (row.first / row.second if is_second else row.second / row.first)
            is_work_alike = comparison.first.copied_bytes and is_as_much_copied(comparison.first, comparison.second)
            if_alike = (
                "If each GPU does as much work an iteration, as what is copied to them suggests,"
                f" {side.name} does {times:.3g} times the work a second on {many / few:.3g} times the GPUs:"
                f" {100 * times * few / many:.0f} % efficiency. "
            )
            lines.append(f"{if_alike if is_work_alike else ''}{_WORK_DECIDES}")
        if not row.higher_is_better or row.estimate is None:
            continue
        times = math.exp(row.estimate.log_ratio if is_second else -row.estimate.log_ratio)
        lines.append(
            f"{_case_prefix(comparison, row)}{side.name} has {many / few:.3g} times the GPUs and {times:.3g} times the"
            f" {row.unit or row.what}: {100 * times * few / many:.0f} % efficiency"
        )
    return lines[:_EXPLAINED]


def _difference_sentence(comparison: Comparison, row: Compared) -> str:
    """The parts of the difference, and whether they are the figure's: an iteration can do other work than before."""
    explained, gpus = comparison.explained[row.case], comparison.gpus.get(row.case)
    gain = row.gain or 0.0
    in_time = explained.log_gain
    if explained.slowest:
        return f"{explained.sentence}. {explained.slowest}"
    if row.missing:
        return explained.sentence
    if explained.of_iteration and not explained.explains(gain):
        if gpus is not None and gpus[0] != gpus[1]:
            return f"{explained.sentence}. The figure is of all GPUs, an iteration is that of one"
        return f"{explained.sentence}. The figure does not change alike: iterations do other work than before"
    if row.what not in {ITERATION, MEAN_ITERATION, GPU_TIME} and abs(gain - in_time) > _UNLIKE and in_time:
        span = f"{format_ns(explained.before)} to {format_ns(explained.after)}"
        change = format_time_change(log_ratio_to_percent(-in_time), as_factor=has_factors(comparison.rows))
        return f"{explained.sentence}. That is of the traced runs: {span}, {change}"
    return explained.sentence


def _undecided_row_notes(comparison: Comparison) -> list[Block]:
    """What would decide those that cannot be told."""
    rows = [row for row in comparison.rows if row.verdict == "cannot tell" and row.estimate is not None]
    if not rows or comparison.by not in {"case", "figure"} or comparison.first.same_program:
        return []
    row = max(rows, key=lambda row: abs(row.gain or 0.0))
    estimate: Any = row.estimate
    if comparison.second.adding is not None and len(comparison.rows) > 1:
        return [
            Finding(
                "cannot tell",
                f"{each.case}: {_undecided_pairs_text(comparison, each)}",
                evidence=(Evidence(_source_table_name(comparison, each), (each.case,)),),
            )
            for each in rows[:_CASES_NAMED]
            if _are_pairs_undecided(each)
        ]
    decides = _runs_to_decide_text(estimate)
    others = {each.case: _runs_to_decide_text(each.estimate) == decides for each in rows if each.case != row.case}  # type: ignore[arg-type]
    alike, unlike = ([case for case, is_alike in others.items() if is_alike is expected] for expected in (True, False))
    likewise = f" Likewise {first_names(alike, _CASES_NAMED)}." if alike else ""
    likewise += f" Nor is {first_names(unlike, _CASES_NAMED)} decided." if unlike else ""
    detectable = percent_digits(log_ratio_to_percent(estimate.detectable))
    text = (
        f"{_case_prefix(comparison, row)}{_run_counts_text(estimate)} would have shown a difference of"
        f" {detectable} % or more with a chance of 80 %; {decides}.{likewise}"
    )
    return [Finding("cannot tell", text, evidence=(Evidence(_source_table_name(comparison, row), (row.case,)),))]


def _runs_to_decide_text(estimate: Estimate) -> str:
    """How many more pairs, or runs of each side, would decide: an estimate by the difference and scatter so far."""
    if estimate.runs == 1:
        return "how a single one scatters is not known: repeat it"
    if estimate.more_needed is None:
        return f"more than 200 {'pairs' if estimate.is_paired else 'runs of each side'} would be needed"
    more = plural(estimate.more_needed, "more pair" if estimate.is_paired else "more run")
    return (
        f"if further ones differ and scatter as these do, about {more}{'' if estimate.is_paired else ' of each side'}"
        f" would decide: `repeats: {estimate.runs + estimate.more_needed}` in the recipe"
    )


def _note_blocks(comparison: Comparison) -> list[Block]:
    estimates = [row.estimate for row in comparison.rows if row.estimate is not None]
    notes: list[Block] = []
    if any(e.verdict is Verdict.UNDECIDED and (e.low > 0 or e.high < 0) for e in estimates):
        text = f"Of {len(estimates)} beside each other some differ by chance: only what is beyond that is decided."
        notes.append(Note("many", text, tone="aside"))
    adding = comparison.second.adding
    if adding is not None:
        pairs = max((e.runs for e in estimates if e.is_paired), default=0)
        text = f"Pairs were added until they decide: {plural(pairs, 'pair')}, {adding.cost}."
        notes.append(Note("price", text, tone="aside"))
    same_campaign = comparison.first.source == comparison.second.source
    if any(not e.is_paired for e in estimates) and not (same_campaign and comparison.programs is not None):
        remedy = "`interleave: true` in the recipe" if same_campaign else "`nsw run RECIPE --against REF`"
        text = f"The runs are no pairs: a drift of the machine looks like a difference. {remedy} runs them in turns."
        notes.append(Note("no pairs", text, tone="aside"))
    if comparison.by in {"case", "figure"}:
        notes += _disturbance_notes(comparison)
    notes += [Note("invalid", f"not compared: {text}", tone="warning") for text in invalid_run_lines(comparison)]
    for side, cases in zip((comparison.first, comparison.second), comparison.lone, strict=True):
        if cases:
            notes.append(Note("missing", f"only in {side.name}: {first_names(cases, _CASES_NAMED)}", tone="warning"))
    return notes


def _disturbance_notes(comparison: Comparison) -> list[Block]:
    """What disturbed the runs, and those that are far from their repeats: they are part of the verdict."""
    sides = (comparison.first, comparison.second)
    by_case = {
        match.name: [
            row
            for side, runs in zip(sides, (match.first, match.second), strict=True)
            for run in runs
            for row in side.rows("conditions")(run.id)
        ]
        for match in match_cases(*sides)
    }
    compared = {row.what for row in comparison.rows if row.estimate is not None}
    outliers = [
        outlier
        for side in sides
        for outlier in find_outliers(side.runs, side.tables.get("figures", ()))
        if outlier.figure in compared
    ]
    far = sorted(outliers, key=lambda outlier: -abs(math.log(outlier.factor)) if outlier.factor > 0 else -math.inf)
    more = f" (and {len(far) - 1} more: `nsw problems`)" if far[1:] else ""
    return [
        *disturbance_notes(by_case)[:_DISTURBANCES],
        *(Note("outlier", f"outlier: {each.run}: {each.text}{more}", tone="warning") for each in far[:1]),
    ]


def invalid_run_lines(comparison: Comparison) -> list[str]:
    """Which runs of both sides are invalid; a campaign that holds both says it once."""
    return list(dict.fromkeys(filter(None, (comparison.first.invalid, comparison.second.invalid))))
