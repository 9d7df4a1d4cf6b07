"""Two sides of a comparison: which of their cases belong together, and what each run of them measured.

A side is a campaign, some of its cases, or reports. What is compared is a quantity of a run: a figure that its program
printed, or what its report says of an iteration. Runs that a block of one job holds are pairs (nsw/plan/jobs.py); all
others are samples.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

from nsw.analysis.cases import rows_by_run
from nsw.analysis.certainty import (
    ALPHA,
    ASSUMED,
    EQUIVALENCE,
    Estimate,
    Floor,
    Verdict,
    alpha_at_look,
    estimate_from_pairs,
    estimate_from_runs,
    significant_by_false_discovery_rate,
)
from nsw.analysis.comparison import is_smaller_better, is_time_unit
from nsw.analysis.conditions import incomparable_reason, median_sm_clock_mhz
from nsw.analysis.groups import group_by, sum_by
from nsw.analysis.idle_gpu import find_most_idle_gpu
from nsw.analysis.kernel_classes import classify_gpu_operation
from nsw.analysis.rules.pairs import SET_ASIDE
from nsw.analysis.steady import steady_state_rows
from nsw.quantities import is_energy, size
from nsw.tables.names import short_name
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nsw.recipe.units import Tolerance
    from nsw.tables.parquet_tables import TableData

    Row = Mapping[str, Any]

__all__ = [
    "BY",
    "CHIP",
    "COMMIT",
    "DIFFERENT_GPUS",
    "DIFFERENT_PROGRAMS",
    "FILES",
    "GPU_TIME",
    "ITERATION",
    "MEAN_ITERATION",
    "ORDER",
    "RUN_TIME",
    "Adding",
    "Compared",
    "Match",
    "Quantity",
    "Side",
    "are_of_recipes",
    "comparable_subjects",
    "compare_sides",
    "comparison_refusal_reason",
    "different_kernels_text",
    "environment_difference_lines",
    "figure_doubts",
    "is_as_much_copied",
    "match_cases",
    "measured_values",
    "paired_figure_values",
    "program_difference_text",
    "scale_to_equal_clocks",
    "split_kernel_metric",
    "unmatched_cases",
]

BY: Final = ("case", "figure", "kernel", "class", "range", "metric", "function")
By = Literal["case", "figure", "kernel", "class", "range", "metric", "function"]
ITERATION: Final = "iteration"  # the median one
MEAN_ITERATION: Final = "mean iteration"  # where a report's own screen takes it, since many iterations pause
_OF_IDLE_GPU: Final = ("iterations", "phase_summary", "gpu_use")
_FEW_ITERATIONS: Final = 6  # of more the median hardly scatters
GPU_TIME: Final = "GPU time"
RUN_TIME: Final = "run time"
_FEW: Final = ("case", "figure")  # of which each decides by itself; of the many others some differ by chance
_BARE: Final = "baseline"  # the kind of pass that no profiler changes
_OTHER_UNITS: Final = "the units are unlike: {} and {}"
_NO_RATIO: Final = "no ratio (0 or less)"
# units of metrics that follow from the program and its launch: they scatter only where the program does
_COUNTS: Final = frozenset({"inst", "inst/warp", "FLOP", "request", "block", "thread", "register/thread", "byte/block"})
_EXACT: Final = Floor(0.0, 0.0)
_COPIED: Final = "copied to a GPU in an iteration"  # of reports, whose program no recipe names
_COPIED_ALIKE: Final = 1.1  # times
DIFFERENT_PROGRAMS: Final = "different programs"  # why the times of two reports have no verdict
DIFFERENT_GPUS: Final = "different numbers of GPUs"  # likewise: what an iteration does on them is not known


@dataclass(frozen=True, slots=True)
class Adding:
    """Pairs that are added until they decide: what they cost (`3 min 20 s of 40 min`), and why no more are added.

    `ended` is empty while pairs are still added.
    """

    cost: str
    ended: str


@dataclass(frozen=True, slots=True)
class Side:
    """One side.

    Attributes:
        name: As the user named it.
        source: The campaign, or the report: runs of the same job of one source can be pairs.
        runs: Its runs that are done, without warm-up (id, case_id, params, pass_name, pass_kind, repeat, submission,
            seconds).
        tables: Rows by table, each with `run`.
        figure: The figure that the recipe reports first; None: it has none.
        higher_is_better: By figure, as far as the recipe says.
        in_blocks: Whether repeats of its cases ran in random order in one job.
        conditions: What was measured on, by name: chip, driver, commit ...
        copied_bytes: What reports copy to each GPU in an iteration; None: not known, or a recipe names the program.
        floors: The noise floor of each figure.
        classes: Of kernels, from the recipe.
        gate: How much its figures may change, from the recipe.
        note: A person's note on the campaign.
        trace: Gives the rows of traces of a run by their names, read from its report; None where none can be read here.
        invalid: Which of its runs are invalid and why, as a sentence; empty: none.
        same_program: Whether the other side is this very program, as `nsw noise` runs it.
        counters: Gives the tables of counters that there are, as columns; None: there are none.
        adding: Of pairs that are added until they decide; None: their number was fixed before.
        doubts: Gives why a figure of a case is set aside, a sentence by figure and case; None: nothing can tell.
    """

    name: str
    source: str
    runs: Sequence[Any]
    tables: Mapping[str, Sequence[Row]]
    figure: str | None = None
    higher_is_better: Mapping[str, bool | None] = field(default_factory=dict)
    in_blocks: bool = False
    conditions: Mapping[str, str] = field(default_factory=dict)
    copied_bytes: float | None = None
    floors: Mapping[str, Floor] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    gate: Mapping[str, Tolerance] = field(default_factory=dict)
    note: str | None = None
    trace: Callable[[Collection[str], Any], Mapping[str, Sequence[Row]]] | None = None
    invalid: str = ""
    same_program: bool = False
    counters: Callable[[], Mapping[str, TableData]] | None = None
    adding: Adding | None = None
    doubts: Callable[[], Mapping[tuple[str, str], str]] | None = None

    _by_run: dict[str, Mapping[Any, Sequence[Row]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rows(self, table: str) -> Callable[[str], Sequence[Row]]:
        """What gives the rows of a table that a run has."""
        by_run = self._by_run.get(table)
        if by_run is None:
            by_run = self._by_run[table] = rows_by_run(self.tables.get(table, ()))
        return lambda run: by_run.get(run, ())

    @property
    def figures(self) -> set[str]:
        """The names of its figures: those of its recipe, and those that were measured."""
        return {*self.higher_is_better, *(row["name"] for row in self.tables.get("figures", ()))}

    @property
    def cases(self) -> dict[str, list[Any]]:
        """Its runs by case."""
        return group_by(self.runs, lambda run: run.case_id)


@dataclass(frozen=True, slots=True)
class Match:
    """A case of both sides: its name in words, its runs on the first side and on the second."""

    name: str
    first: Sequence[Any]
    second: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a run measured: `value` in `unit`; `higher_is_better` None: neither is."""

    value: float
    unit: str | None
    higher_is_better: bool | None


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantity of both sides.

    Attributes:
        case: The case's name.
        what: The figure, kernel, class, range, metric or function.
        unit: Of the values.
        first: The median of the first side's runs.
        second: The same of the second side.
        runs: How many runs each side has.
        higher_is_better: None: neither is.
        estimate: The difference; None where there is none, and `missing` says why, or a metric is 0 on a side.
        missing: Why there is none.
        weight: How much of an iteration changed, ns; the logarithm's size where there is no time.
        means: The geometric means of both sides' values that the estimate compares, whose ratio it is; without an
            estimate the arithmetic ones, None of a side that lacks it.
    """

    case: str
    what: str
    unit: str | None
    first: float | None
    second: float | None
    runs: tuple[int, int]
    higher_is_better: bool | None
    estimate: Estimate | None
    missing: str | None = None
    weight: float = 0.0
    means: tuple[float | None, float | None] | None = None

    @property
    def gain(self) -> float | None:
        """The logarithm by which the second side is better, of a figure without direction more."""
        if self.estimate is None:
            return None
        return -self.estimate.log_ratio if self.higher_is_better is False else self.estimate.log_ratio

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of `gain`."""
        if self.estimate is None:
            return None
        low, high = self.estimate.low, self.estimate.high
        return (-high, -low) if self.higher_is_better is False else (low, high)

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `higher`, `lower`, `same`, `gone`, `new`, `cannot tell`."""
        if self.estimate is None and self.missing is None and 0 in {self.first, self.second}:
            return "same" if self.first == self.second else "gone" if self.first else "new"
        if self.estimate is None:
            return str(Verdict.UNDECIDED)
        if self.estimate.verdict not in {Verdict.MORE, Verdict.LESS}:
            return str(self.estimate.verdict)
        if self.higher_is_better is None:
            return "higher" if self.estimate.verdict is Verdict.MORE else "lower"
        return "faster" if (self.gain or 0.0) > 0 else "slower"


# --- which cases belong together ------------------------------------------------------------------------------------


def match_cases(first: Side, second: Side) -> list[Match]:
    """The cases of both sides that belong together, in the order of the second side.

    They are those whose parameters are equal, but for those of which each side has one value: that is what is compared.
    Where each side has one case, these two are.
    """
    first_cases, second_cases = first.cases, second.cases
    if len(first_cases) == len(second_cases) == 1:
        (name, runs), first_runs = next(iter(second_cases.items())), next(iter(first_cases.values()))
        return [Match(name, first_runs, runs)]
    # a parameter of the sides has one value on each of them (or none), and these differ
    values = _parameter_values(first_cases), _parameter_values(second_cases)
    sets = {key: [side.get(key, set()) for side in values] for key in {*values[0], *values[1]}}
    side_parameters = {key for key, (old, new) in sets.items() if max(len(old), len(new)) == 1 and old != new}
    first_by_key = {_case_key(runs[0].params, side_parameters): runs for runs in first_cases.values()}
    return [
        Match(
            ", ".join(f"{name}={value}" for name, value in runs[0].params.items() if name not in side_parameters)
            or case,
            first_by_key[key],
            runs,
        )
        for case, runs in second_cases.items()
        if (key := _case_key(runs[0].params, side_parameters)) in first_by_key
    ]


def unmatched_cases(first: Side, second: Side, matched: Iterable[Match]) -> tuple[list[str], list[str]]:
    """Return the cases of each side that the other lacks.

    Args:
        first: The first side.
        second: The second side.
        matched: The cases that both have, as `match_cases` returns them.
    """
    pairs = [(match.first[0].case_id, match.second[0].case_id) for match in matched]
    seen = {old for old, _ in pairs}, {new for _, new in pairs}
    return [case for case in first.cases if case not in seen[0]], [case for case in second.cases if case not in seen[1]]


def _parameter_values(cases: Mapping[str, Sequence[Any]]) -> dict[str, set[str]]:
    items = (item for runs in cases.values() for item in runs[0].params.items())
    return {key: {repr(value) for _, value in values} for key, values in group_by(items, itemgetter(0)).items()}


def _case_key(params: Mapping[str, Any], side_parameters: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, repr(value)) for key, value in params.items() if key not in side_parameters))


# --- what a run measured --------------------------------------------------------------------------------------------

Measured = dict[str, dict[str, Quantity]]  # by what and run


def _figures_by_run(side: Side, runs: Sequence[Any]) -> Measured:
    """The figures of the bare runs; of one that only profiled runs print, those of the first pass that has it."""
    measured: Measured = {}
    passes: dict[str, str] = {}
    rows = side.rows("figures")
    for run in sorted(runs, key=lambda run: run.pass_kind != _BARE):
        for row in rows(run.id):
            name, unit = row["name"], row.get("unit")
            if passes.setdefault(name, run.pass_name) == run.pass_name:
                better = side.higher_is_better.get(name)
                better = not is_smaller_better(unit) if better is None else better
                measured.setdefault(name, {})[run.id] = Quantity(row["value"], unit, better)
    return measured


def _main_measure_by_run(side: Side, runs: Sequence[Any]) -> Measured:
    """The first of these that there is: the figure of the recipe, an iteration, the GPU's time, the run's time."""
    figures = _figures_by_run(side, runs)
    if figures:
        name = side.figure if side.figure in figures else next((name for name in figures if not is_energy(name)), None)
        if name is not None:
            return {name: figures[name]}
    rows, gpu = side.rows("iterations"), side.rows("gpu_summary")
    what, times = ITERATION, {r.id: statistics.fmean(row["med_ns"] for row in rows(r.id)) for r in runs if rows(r.id)}
    if not times:
        what, times = GPU_TIME, {r.id: sum(row.get("total_ns") or 0 for row in gpu(r.id)) for r in runs if gpu(r.id)}
    if not times:
        what, times = RUN_TIME, {r.id: r.seconds for r in runs if r.pass_kind == _BARE and r.seconds}
    unit = "s" if what == RUN_TIME else "ns"
    quantities = {run: Quantity(time, unit, higher_is_better=False) for run, time in times.items()}
    return {what: quantities} if quantities else {}


def _is_mean_iteration_shown(side: Side, runs: Sequence[Any]) -> bool:
    """Whether the screen of these runs alone speaks of the mean iteration."""
    tables = {name: [row for run in runs for row in side.rows(name)(run.id)] for name in _OF_IDLE_GPU}
    idle = find_most_idle_gpu(tables["iterations"], {**tables, "gaps": (), "host_copies": ()})
    return idle is not None and idle.is_mean


def _mean_iteration_by_run(side: Side, runs: Sequence[Any]) -> Measured:
    rows = side.rows("iterations")
    times = {run.id: statistics.fmean(row["avg_ns"] for row in rows(run.id)) for run in runs if rows(run.id)}
    return {MEAN_ITERATION: {run: Quantity(ns, "ns", higher_is_better=False) for run, ns in times.items()}}


def measured_values(side: Side, runs: Sequence[Any]) -> Measured:
    """Return the figures of a case by name and run; the main measure where it has none.

    Args:
        side: The side.
        runs: The runs of the case.
    """
    return _figures_by_run(side, runs) or _main_measure_by_run(side, runs)


def _quantities_by_name(runs: Sequence[Any], values_of: Callable[[str], Mapping[str, Quantity]]) -> Measured:
    """What `values_of` gives of each run (its id)."""
    measured: Measured = {}
    for run in runs:
        for what, quantity in values_of(run.id).items():
            measured.setdefault(what, {})[run.id] = quantity
    return measured


def _gpu_time_by_name(side: Side, runs: Sequence[Any], name_of: Callable[[Row], str]) -> Measured:
    """GPU time of an iteration, of the whole run where there are none, by what `name_of` calls a row of gpu_summary."""
    gpu, parts, iterations = (side.rows(table) for table in ("gpu_summary", "phase_summary", "iterations"))

    def quantities_of_run(run: str) -> dict[str, Quantity]:
        times = sum(row["steady"] for row in iterations(run)) or 1
        steady = steady_state_rows("gpu_summary", gpu(run), parts(run))
        sums = sum_by((name_of(row), (row.get("total_ns") or 0.0) / times) for row in steady)
        return {name: Quantity(ns, "ns", higher_is_better=False) for name, ns in sums.items()}

    return _quantities_by_name(runs, quantities_of_run)


def _gpu_time_by_range(side: Side, runs: Sequence[Any]) -> Measured:
    """GPU time of a call of an NVTX range."""
    rows = side.rows("nvtx_gpu_summary")
    return _quantities_by_name(
        runs,
        lambda run: {
            str(row["name"]): Quantity(row["gpu_ns"] / row["calls"], "ns", higher_is_better=False)
            for row in rows(run)
            if row.get("calls") and row.get("gpu_ns")
        },
    )


_DURATION: Final = "duration"  # the metric that is a kernel's time


def _metric_of_kernel(row: Mapping[str, Any]) -> str:
    return f"{row['portable']} of {short_name(str(row['kernel']))}"


def split_kernel_metric(row_name: str) -> tuple[str, str]:
    """The metric and the kernel of a row of metrics: `duration of gemm`."""
    metric, _, kernel = row_name.partition(" of ")
    return metric, kernel


def _mean_metrics_by_kernel(side: Side, runs: Sequence[Any]) -> Measured:
    """The mean of each portable metric over the launches of a kernel."""
    rows = side.rows("metrics")

    def quantities_of_run(run: str) -> dict[str, Quantity]:
        portable = (row for row in rows(run) if row.get("portable") and row.get("portable_value") is not None)
        return {
            what: Quantity(
                statistics.fmean(row["portable_value"] for row in launches), launches[-1].get("portable_unit"), None
            )
            for what, launches in group_by(portable, _metric_of_kernel).items()
        }

    return _quantities_by_name(runs, quantities_of_run)


def _time_by_kernel(side: Side, runs: Sequence[Any]) -> Measured:
    """GPU time by kernel; where only counters were measured the mean launch of each."""
    return _gpu_time_by_name(side, runs, lambda row: str(row.get("short_name") or row["name"])) or {
        split_kernel_metric(what)[1]: {run: replace(value, higher_is_better=False) for run, value in by_run.items()}
        for what, by_run in _mean_metrics_by_kernel(side, runs).items()
        if split_kernel_metric(what)[0] == _DURATION
    }


def _own_time_by_function(side: Side, runs: Sequence[Any]) -> Measured:
    """Each function's own time, of a sampling profiler without times its share, by the first pass that has any."""
    rows = side.rows("functions")
    profiled = [run for run in runs if rows(run.id)]

    def quantities_of_run(run: str) -> dict[str, Quantity]:
        column, unit = next(
            ((name, unit) for name, unit in _OWN if any(row.get(name) is not None for row in rows(run))),
            ("samples", None),
        )
        scale = 1e9 if unit == "ns" else 1
        sums = sum_by((_function_with_file(row), (row.get(column) or 0.0) * scale) for row in rows(run))
        return {name: Quantity(value, unit, False if unit == "ns" else None) for name, value in sums.items()}

    return _quantities_by_name([run for run in profiled if run.pass_name == profiled[0].pass_name], quantities_of_run)


def _function_with_file(row: Row) -> str:
    location = row.get("file") or row.get("module")
    return f"{row['name']} ({PurePath(location).name})" if location else str(row["name"])


_LARGE_SHARE: Final = 0.01
_OWN: Final = (("self_s", "ns"), ("cpu_time_s", "ns"), ("self_pct", "%"))  # VTune's cpu_time_s is the function's own

_MEASURED: Final[Mapping[str, Callable[[Side, Sequence[Any]], Measured]]] = {
    "case": _main_measure_by_run,
    "figure": _figures_by_run,
    "kernel": _time_by_kernel,
    "class": lambda side, runs: _gpu_time_by_name(
        side, runs, lambda row: classify_gpu_operation(row["name"], row["kind"], side.classes)
    ),
    "range": _gpu_time_by_range,
    "metric": _mean_metrics_by_kernel,
    "function": _own_time_by_function,
}


# --- both beside each other -----------------------------------------------------------------------------------------


def compare_sides(first: Side, second: Side, by: By = "case", tolerance: float = EQUIVALENCE) -> list[Compared]:
    """A row for each quantity of each case of both sides, the largest first where there are many.

    Metrics begin with those of the kernel that takes most of the GPU's time, and of a kernel with what changed most.

    Of many kernels beside each other some differ by chance: there only those are decided that are shown together
    (nsw/analysis/certainty.py).

    Args:
        first: What is compared with, such as the program before a change.
        second: What is compared.
        by: What is compared.
        tolerance: Differences below count as none.
    """
    compared: list[Compared] = []
    for match in match_cases(first, second):
        measured = _MEASURED[by](first, match.first), _MEASURED[by](second, match.second)
        if all(ITERATION in side for side in measured) and by == "case":
            both = (first, match.first), (second, match.second)
            if any(_is_mean_iteration_shown(*each) for each in both):
                measured = _mean_iteration_by_run(*both[0]), _mean_iteration_by_run(*both[1])
        if by in {"kernel", "metric"}:
            measured = _pair_only_kernels(*measured, by)
        quantities = dict.fromkeys((*measured[1], *measured[0]))
        if by == "function":
            quantities = {name: None for name in quantities if any(_is_large_function(name, side) for side in measured)}
        compared += [
            _compare_quantity(match, quantity, (first, second), measured, tolerance, by) for quantity in quantities
        ]
    if by in _FEW:
        return compared
    if by != "metric":
        return sorted(_withdraw_chance_verdicts(compared), key=lambda row: -row.weight)
    # how long kernels take is the question, and what was counted beside it does not make its answer less certain
    times = [row for row in compared if split_kernel_metric(row.what)[0] == _DURATION]
    counters = [row for row in compared if split_kernel_metric(row.what)[0] != _DURATION]
    decided = [*_withdraw_chance_verdicts(times), *_withdraw_chance_verdicts(counters)]
    return _in_order_of_kernel_time(decided, first, second)


def _pair_only_kernels(first: Measured, second: Measured, by: By) -> tuple[Measured, Measured]:
    """Both sides, whose only kernels have one name where each has one: what was rewritten often has another name."""
    sides = [
        {name: name if by == "kernel" else split_kernel_metric(name)[1] for name in side if not name.startswith("[")}
        for side in (first, second)
    ]
    (old, *more_old), (new, *more_new) = (list(dict.fromkeys(names.values())) or [""] for names in sides)
    if more_old or more_new or not old or not new or old == new:
        return first, second
    pair = f"{old} -> {new}"
    return tuple(  # type: ignore[return-value]  # two
        {
            name
            if name not in names
            else pair
            if by == "kernel"
            else f"{split_kernel_metric(name)[0]} of {pair}": by_run
            for name, by_run in side.items()
        }
        for side, names in zip((first, second), sides, strict=True)
    )


def _in_order_of_kernel_time(rows: Iterable[Compared], first: Side, second: Side) -> list[Compared]:
    """Rows of metrics by their kernel's share of the GPU's time on both sides, then by their change.

    A kernel's first row is its time; what one side lacks comes last.
    """
    shares: dict[str, dict[str, float]] = {}
    for match in match_cases(first, second):
        both = _gpu_time_shares(first, match.first), _gpu_time_shares(second, match.second)
        shares[match.name] = sum_by((kernel, share) for side in both for kernel, share in side.items())

    def sort_key(row: Compared) -> tuple[bool, float, str, str, bool, float, bool]:
        metric, kernel = split_kernel_metric(row.what)
        is_lone = row.first is None or row.second is None
        share = shares[row.case].get(kernel, 0.0)
        return is_lone, -share, row.case, kernel, metric != _DURATION, -_visible_change(row), row.estimate is not None

    return sorted(rows, key=sort_key)


def _gpu_time_shares(side: Side, runs: Sequence[Any]) -> dict[str, float]:
    """Each kernel's part of the GPU's time: of a timeline, else of the launches that counters were measured of."""
    measured = _gpu_time_by_name(side, runs, lambda row: str(row.get("short_name") or short_name(row["name"])))
    times = sum_by((kernel, quantity.value) for kernel, by_run in measured.items() for quantity in by_run.values())
    if not times:
        rows = (row for run in runs for row in side.rows("metrics")(run.id) if row.get("portable") == _DURATION)
        times = sum_by((short_name(str(row["kernel"])), row.get("portable_value") or 0.0) for row in rows)
    total = sum(times.values())
    return {kernel: time / total for kernel, time in times.items()} if total else {}


def _visible_change(row: Compared) -> float:
    """The size of a change, 0 to 1: a percentage's in points, of all else the part of the larger value."""
    if row.first is None or row.second is None:
        return 0.0
    scale = 100.0 if row.unit == "%" else max(abs(row.first), abs(row.second))
    return abs(row.second - row.first) / scale if scale else 0.0


def scale_to_equal_clocks(row: Compared, match: Match, sides: tuple[Side, Side]) -> Compared | None:
    """The row as if all runs had the first side's clock, where the time follows the clock (the caller knows that).

    Args:
        row: A row of a time or a rate that is not comparable.
        match: The case.
        sides: Both sides.

    Returns:
        None where a run's clock is not known, or the row is of something else.
    """
    measured = [
        _figures_by_run(side, runs).get(row.what, {})
        for side, runs in zip(sides, (match.first, match.second), strict=True)
    ]
    clocks = [
        {run: median_sm_clock_mhz(_condition_rows(side, [run])) for run in values}
        for side, values in zip(sides, measured, strict=True)
    ]
    base = median_sm_clock_mhz(_condition_rows(sides[0], measured[0]))
    power = 1 if is_time_unit(row.unit) else -1 if (row.unit or "").endswith("/s") else 0
    if base is None or not power or None in {*clocks[0].values(), *clocks[1].values()}:
        return None
    logs = [
        [math.log(values[run].value * ((clock or base) / base) ** power) for run, clock in side_clocks.items()]
        for values, side_clocks in zip(measured, clocks, strict=True)
    ]
    return replace(row, missing=None, estimate=estimate_from_runs(logs[0], logs[1], _noise_floor(sides, row.what)))


def comparable_subjects(first: Side, second: Side) -> list[By]:
    """What `--by` can compare of these sides: both have it in some case."""
    pairs = match_cases(first, second)
    return [by for by in BY if any(_MEASURED[by](first, p.first) and _MEASURED[by](second, p.second) for p in pairs)]


def _compare_quantity(
    match: Match,
    quantity: str,
    sides: tuple[Side, Side],
    measured: tuple[Measured, Measured],
    tolerance: float,
    by: By,
) -> Compared:
    first, second = (values.get(quantity, {}) for values in measured)
    sample = next(iter((second or first).values()))
    medians = [statistics.median(q.value for q in side.values()) if side else None for side in (first, second)]
    row = Compared(
        match.name,
        quantity,
        sample.unit,
        medians[0],
        medians[1],
        (len(first), len(second)),
        sample.higher_is_better,
        None,
    )
    pairs = _paired_run_values(match, sides, first, second)
    missing = _missing_value_reason(sides, first, second)
    values = [{q.value for q in side.values()} for side in (first, second)]
    if by == "metric" and missing == _NO_RATIO and {0.0} in values:
        return replace(row, means=(medians[0], medians[1]))
    if missing is None and by in _FEW and figure_doubts(sides, match, quantity):
        missing = f"{SET_ASIDE}: the kernels' times contradict it"
    if missing is None and not pairs:
        missing = incomparable_reason(_condition_rows(sides[0], first), _condition_rows(sides[1], second))
    if missing is not None:
        lone = (medians[1] or 0.0) - (medians[0] or 0.0)
        means = [statistics.fmean(q.value for q in side.values()) if side else None for side in (first, second)]
        return replace(
            row, means=(means[0], means[1]), missing=missing, weight=abs(lone) if sample.unit == "ns" else 0.0
        )
    is_exact = by == "metric" and (sample.unit in _COUNTS or len(set.union(*values)) == 1)
    floor = _EXACT if is_exact else _noise_floor(sides, quantity)
    if quantity in {ITERATION, MEAN_ITERATION} and not floor.measured:
        floor = _raise_for_scattered_iterations(floor, match, sides, quantity)
    before = [a for a, _ in pairs] or [q.value for q in first.values()]
    after = [b for _, b in pairs] or [q.value for q in second.values()]
    row = replace(row, means=(_geometric_mean(before), _geometric_mean(after)))
    if pairs:
        alpha = alpha_at_look(max(run.repeat for run in match.second)) if sides[1].adding else ALPHA
        logs = [math.log(b / a) for a, b in pairs]
        estimate = estimate_from_pairs(logs, floor, tolerance, exact=by in _FEW, alpha=alpha)
        row = replace(row, runs=(len(pairs), len(pairs)))
    else:
        estimate = estimate_from_runs([math.log(a) for a in before], [math.log(b) for b in after], floor, tolerance)
    estimate = replace(estimate, floor=None) if is_exact else estimate
    size = abs((medians[1] or 0.0) - (medians[0] or 0.0)) if sample.unit == "ns" else abs(estimate.log_ratio)
    return replace(row, estimate=estimate, weight=size)


def _geometric_mean(values: Sequence[float]) -> float:
    """The mean of ratios; a single value as it is, which logarithms would change in its last digit."""
    return values[0] if len(values) == 1 else statistics.geometric_mean(values)


def figure_doubts(sides: tuple[Side, Side], match: Match, figure: str) -> list[str]:
    """Why a figure of a case is no measure of the program on either side, a sentence each; empty: none is known.

    Args:
        sides: Both sides.
        match: The case.
        figure: The figure's name.
    """
    keys = [(figure, runs[0].case_id) for runs in (match.first, match.second)]
    doubts = [side.doubts() if side.doubts is not None else {} for side in sides]
    return list(dict.fromkeys(side[key] for side, key in zip(doubts, keys, strict=True) if key in side))


def _is_large_function(name: str, measured: Measured) -> bool:
    """Whether a function takes so much that its change can matter: many small ones beside it would hide it."""
    total = sum(quantity.value for values in measured.values() for quantity in values.values())
    return sum(quantity.value for quantity in measured.get(name, {}).values()) >= _LARGE_SHARE * total > 0


def paired_figure_values(first: Side, second: Side) -> dict[str, list[list[tuple[float, float]]]]:
    """The values of pairs, by figure, a list a case."""
    by_figure: dict[str, list[list[tuple[float, float]]]] = {}
    for match in match_cases(first, second):
        values = _figures_by_run(first, match.first), _figures_by_run(second, match.second)
        for figure in values[0].keys() & values[1].keys():
            pairs = _paired_run_values(match, (first, second), values[0][figure], values[1][figure])
            if pairs and all(value > 0 for pair in pairs for value in pair):
                by_figure.setdefault(figure, []).append(pairs)
    return by_figure


def _missing_value_reason(
    sides: tuple[Side, Side], first: Mapping[str, Quantity], second: Mapping[str, Quantity]
) -> str | None:
    for side, values in zip(sides, (first, second), strict=True):
        if not values:
            return f"only in {sides[1].name if side is sides[0] else sides[0].name}"
    units = {q.unit for q in first.values()}, {q.unit for q in second.values()}
    if units[0] != units[1]:
        return _OTHER_UNITS.format(*(", ".join(map(str, side_units)) for side_units in units))
    if any(q.value <= 0 for q in (*first.values(), *second.values())):
        return _NO_RATIO
    return None


def _condition_rows(side: Side, runs: Iterable[str]) -> list[Row]:
    """What was sampled beside these runs."""
    rows = side.rows("conditions")
    return [row for run in runs for row in rows(run)]


def _noise_floor(sides: tuple[Side, Side], quantity: str) -> Floor:
    return next((side.floors[quantity] for side in reversed(sides) if quantity in side.floors), ASSUMED)


def _raise_for_scattered_iterations(floor: Floor, match: Match, sides: tuple[Side, Side], quantity: str) -> Floor:
    """The floor, not below the error of a mean, or of a median of few iterations, by how much they scatter."""
    is_mean = quantity == MEAN_ITERATION
    rows = [
        row
        for side, runs in zip(sides, (match.first, match.second), strict=True)
        for run in runs
        for row in side.rows("iterations")(run.id)
        if row["steady"] > 1 and (is_mean or row["steady"] < _FEW_ITERATIONS) and row.get("stddev_ns")
    ]
    if not rows:
        return floor
    column = "avg_ns" if is_mean else "med_ns"
    error, steady = max((row["stddev_ns"] / row[column] / math.sqrt(row["steady"]), row["steady"]) for row in rows)
    return floor if error <= floor.run else Floor(math.sqrt(2) * error, error, steady - 1, measured=False)


def _paired_run_values(
    match: Match, sides: tuple[Side, Side], first: Mapping[str, Quantity], second: Mapping[str, Quantity]
) -> list[tuple[float, float]]:
    """The values of runs that one block of one job holds."""
    if sides[0].source != sides[1].source or not all(side.in_blocks for side in sides):
        return []
    first_by_repeat = {(run.submission, run.repeat): first[run.id].value for run in match.first if run.id in first}
    return [
        (first_by_repeat[block], second[run.id].value)
        for run in match.second
        if run.id in second and (block := (run.submission, run.repeat)) in first_by_repeat
    ]


def _withdraw_chance_verdicts(rows: Sequence[Compared]) -> Iterator[Compared]:
    """The rows, without the verdicts that so many comparisons do not bear."""
    shown = iter(significant_by_false_discovery_rate([row.estimate.chance for row in rows if row.estimate is not None]))
    for row in rows:
        if row.estimate is None or next(shown) or row.estimate.verdict not in {Verdict.MORE, Verdict.LESS}:
            yield row
        else:
            yield replace(row, estimate=row.estimate.undecided())


CHIP: Final = "chip"
COMMIT: Final = "commit"
_COMMAND: Final = "command"  # of a recipe
FILES: Final = "files"
ORDER: Final = (
    CHIP, "driver", "SM clock, at most", "memory clock", "power limit", "persistence mode", "ECC", "MIG", "CPU",
    "modules", "site", "nodes", "layout", "nsys", "ncu", "nvprof", "nvcc", "nsw", "command",
)  # fmt: skip
_UNKNOWN: Final = "not known"
_FILES_NAMED: Final = 2  # files by name


def comparison_refusal_reason(first: Side, second: Side) -> str | None:
    """Why the two cannot be compared; None where they can."""
    chips = [side.conditions.get(CHIP) for side in (first, second)]
    if all(chips) and chips[0] != chips[1]:
        return f"the chips are unlike: {first.name} ran on {chips[0]}, {second.name} on {chips[1]}"
    return None


def different_kernels_text(first: Side, second: Side, pairs: Sequence[Match]) -> str | None:
    """Which kernels the sides lack of each other, where most of the time of both is in those: no change of a program.

    Reports name no program. Where an iteration copies as much to the GPU on both sides, its work can be the same, and
    where each has one kernel one may be the other rewritten.

    Args:
        first: What is compared with.
        second: What is compared.
        pairs: The cases of both.
    """
    is_work_alike = bool(first.copied_bytes) and is_as_much_copied(first, second)
    if is_work_alike or are_of_recipes(first, second):
        return None
    times = [
        sum_by(
            (name, quantity.value)
            for runs in chosen
            for name, values in _MEASURED["kernel"](side, runs).items()
            for quantity in values.values()
        )
        for side, chosen in ((first, [pair.first for pair in pairs]), (second, [pair.second for pair in pairs]))
    ]
    lone = [times[0].keys() - times[1].keys(), times[1].keys() - times[0].keys()]
    if all(len(side) == 1 for side in times) or any(
        sum(t[name] for name in names) <= sum(t.values()) / 2 for t, names in zip(times, lone, strict=True)
    ):
        return None
    shared = len(times[0].keys() & times[1].keys())
    return f"kernels: {len(lone[0])} in {first.name} alone, {len(lone[1])} in {second.name} alone, {shared} in both"


def are_of_recipes(first: Side, second: Side) -> bool:
    """Whether a recipe names the program of a side: reports name none, nor the work of an iteration."""
    return any(_COMMAND in side.conditions for side in (first, second))


def environment_difference_lines(first: Side, second: Side) -> list[str]:
    """What differs between the two beside the program, a line each: `driver: 550.54 and 560.28`."""
    first_conditions, theirs = first.conditions, second.conditions
    if not is_as_much_copied(first, second):
        first_conditions, theirs = (
            {**side.conditions, **({} if side.copied_bytes is None else {_COPIED: size(side.copied_bytes)})}
            for side in (first, second)
        )
    names = [*ORDER, *sorted({*first_conditions, *theirs} - {*ORDER, COMMIT, FILES})]
    return [
        f"{name}: {first_conditions.get(name, _UNKNOWN)} and {theirs.get(name, _UNKNOWN)}"
        for name in names
        if first_conditions.get(name) != theirs.get(name)
    ]


def is_as_much_copied(first: Side, second: Side) -> bool:
    """Whether iterations of both sides copy about as much to a GPU: runs of one program differ by a little."""
    smaller, larger = sorted((first.copied_bytes or 0.0, second.copied_bytes or 0.0))
    return (first.copied_bytes is None) is (second.copied_bytes is None) and larger <= _COPIED_ALIKE * smaller


def program_difference_text(first: Side, second: Side) -> str | None:
    """How the programs differ: their commits, and which files changed; None where they are the same, or not known."""
    commits = [side.conditions.get(COMMIT) for side in (first, second)]
    files = [side.conditions.get(FILES) for side in (first, second)]
    parts = [" and ".join(commit or _UNKNOWN for commit in commits)] if commits[0] != commits[1] else []
    if None not in files and files[0] != files[1]:
        hashes = [dict(line.rsplit("=", 1) for line in (text or "").split("\n")) for text in files]
        changed = [name for name in sorted({*hashes[0], *hashes[1]}) if hashes[0].get(name) != hashes[1].get(name)]
        parts.append(f"{first_names(changed, _FILES_NAMED)} changed")
    return ", ".join(parts) or None
