"""`nsw compare`: two sides, each a campaign, cases of one, or reports, as what an analysis compares.

A side is named by the campaign's folder, id or its beginning, by a baseline (`nsw baseline`), by `CAMPAIGN:RUNS` with
runs as `--case` names them, by runs of the newest campaign alone, or by a report or a folder of reports. Two cases of
a campaign may be named behind it. A campaign with both sides in it, of `nsw run --against`, is named alone.
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw import safe_files
from nsw.analysis import difference as difference_module
from nsw.analysis import sides as sides_module
from nsw.analysis.cases import CaseSummary, summarize_cases
from nsw.analysis.certainty import EQUIVALENCE, Floor
from nsw.analysis.compared_screen import Comparison, has_factors, is_undecided_by_single_runs
from nsw.analysis.conditions import CLOCKS_DIFFER
from nsw.analysis.difference import Difference, Operation, explain_difference, renamed_kernel_names
from nsw.analysis.rules.binding import is_compute_bound
from nsw.analysis.rules.pairs import counter_changes_text
from nsw.analysis.sides import CHIP, COMMIT, FILES, Adding, By, Compared, Match, Side, compare_sides, match_cases
from nsw.analysis.spent import with_mean_iteration
from nsw.analysis.summary import OF_KERNELS
from nsw.apart import can_fork
from nsw.campaign.answers import Results, results
from nsw.campaign.baselines import read_baselines
from nsw.campaign.selection import Selection
from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger_rows import UNTIL, VERSIONS, State
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import EARLIER_FIGURES, load_rows_lazily, load_tables
from nsw.errors import CampaignError, UsageError
from nsw.quantities import change_of_speed, duration, format_ns, seconds
from nsw.recipe.matrix import AFTER, BEFORE, ITSELF, SIDE
from nsw.recipe.units import parse_price
from nsw.resources import user_folder
from nsw.tables import full_rows
from nsw.tables.exported import exported_tables_hint
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.model import LockedGit, Recipe
    from nsw.tables.parquet_tables import TableData

__all__ = [
    "PAIRS",
    "Noise",
    "UnlikeError",
    "both_sides",
    "compare",
    "compare_own_sides",
    "difference_of",
    "measure_noise",
    "measure_scatter",
    "measured_conditions",
    "noise_floors",
    "program_conditions",
    "save_noise",
    "side_of",
    "side_of_campaign",
    "sides_of",
]

_TABLES: Final = (
    "figures", "gpu_summary", "phase_summary", "iterations", "nvtx_gpu_summary", "nvtx_summary", "phases",
    "api_summary", "communication", "functions", "conditions", "gpu_use",
)  # fmt: skip
_OF_COUNTERS: Final = ("case", "figure", "kernel", "metric")  # subjects that counters of kernels explain
_TRACES: Final = {  # by whose columns kernels are matched
    "gpu_trace": ("name", "correlation", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    "api_trace": ("correlation", "pid", "tid", "start_ns"),
    "nvtx_trace": ("style", "name", "pid", "tid", "start_ns", "duration_ns"),
}
_CASE: Final = "a case of a campaign is CAMPAIGN:CASE"
_OUTSIDE: Final = 0.05  # of all GPU time: a change outside of the iterations that is told
_EXPLAINED: Final = 3  # cases of which it is said what did it


class UnlikeError(UsageError):
    """The two sides cannot be compared, or have nothing in common."""


def compare(first: Side, second: Side, by: By = "case", equivalence: float = EQUIVALENCE) -> Comparison:
    """Compare two sides.

    Args:
        first: What is compared with, such as the program before a change.
        second: What is compared.
        by: What a row is: case, figure, kernel, class, range, metric or function.
        equivalence: Differences below count as none; a logarithm of the ratio (0.01: about 1 %).

    Raises:
        UnlikeError: They ran on unlike chips, or have no case in common; one has invalid runs alone.
    """
    for side in (first, second):
        if side.invalid and not side.runs:
            raise UnlikeError(f"nothing of {side.name} can be compared: {side.invalid}")
    if reason := sides_module.comparison_refusal_reason(first, second):
        raise UnlikeError(reason, hint="compare runs on the same chip; `nsw run RECIPE --against REF` runs both there")
    pairs = match_cases(first, second)
    if not pairs:
        raise UnlikeError(
            f"{first.name} and {second.name} have no case in common",
            hint="name one case of each: `nsw compare A:CASE B:CASE`",
        )
    rows = tuple(compare_sides(first, second, by, equivalence))
    differs = sides_module.environment_difference_lines(first, second)
    if (kernels := sides_module.different_kernels_text(first, second, pairs)) is not None:
        differs.insert(0, f"{kernels} ({sides_module.DIFFERENT_PROGRAMS}, whose times have no verdict)")
        rows = tuple(
            replace(row, estimate=None, missing=row.missing or sides_module.DIFFERENT_PROGRAMS) for row in rows
        )
    differs += filter(None, (_change_outside_iterations_text(first, second, match) for match in pairs))
    gpus = {match.name: counts for match in pairs if (counts := _gpus_of_both(match, first, second)) is not None}
    explained = _explain_changes(first, second, pairs, rows) if by in {"case", "figure"} else {}
    if by == "case" and not sides_module.are_of_recipes(first, second):
        unlike = {case for case, counts in gpus.items() if counts[0] != counts[1]}
        rows = tuple(
            replace(row, estimate=None, missing=sides_module.DIFFERENT_GPUS)
            if row.case in unlike and row.estimate
            else row
            for row in rows
        )
    lone = sides_module.unmatched_cases(first, second, pairs)
    is_of_figures = by in {"case", "figure"}
    by_function = "function" in sides_module.comparable_subjects(first, second) if is_of_figures else False
    profiled = (run for run in second.runs if second.rows("functions")(run.id))
    return Comparison(
        first, second, by, rows, (tuple(lone[0]), tuple(lone[1])),
        differs=tuple(differs), programs=sides_module.program_difference_text(first, second),
        explained=explained,
        at_equal_clocks=tuple(_scale_to_equal_clocks(first, second, pairs, rows)) if is_of_figures else (),
        gpus=gpus,
        counters=_explain_by_counters(first, second, pairs) if by in _OF_COUNTERS else {},
        doubts=_figure_doubts_by_case(first, second, pairs, rows) if is_of_figures else {},
        functions=tuple(compare_sides(first, second, "function")) if by_function else (),
        profiler=next((run.tool for run in profiled if hasattr(run, "tool")), "") if by_function else "",
    )  # fmt: skip


def _change_outside_iterations_text(first: Side, second: Side, match: Match) -> str:
    """How GPU work before and behind the iterations changed, which no row compares; empty: little, or not known."""
    gpus = _gpus_of_both(match, first, second)
    if gpus is not None and gpus[0] != gpus[1]:
        return ""
    before, after = (
        _gpu_ns_outside_iterations(side, runs) for side, runs in ((first, match.first), (second, match.second))
    )
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}
    totals = sum(before.values()), sum(after.values())
    all_ns = max(
        sum(row["total_ns"] or 0.0 for run in runs for row in side.rows("gpu_summary")(run.id)) / max(len(runs), 1)
        for side, runs in ((first, match.first), (second, match.second))
    )
    if not all(totals) or abs(totals[1] - totals[0]) < _OUTSIDE * all_ns:
        return ""
    largest = max(changes, key=lambda name: abs(changes[name]))
    times = f"{format_ns(before.get(largest, 0.0))} and {format_ns(after.get(largest, 0.0))}"
    return (
        f"GPU work outside of the iterations, which alone are compared: {format_ns(totals[0])} and"
        f" {format_ns(totals[1])} ({largest}: {times})"
    )


def _gpu_ns_outside_iterations(side: Side, runs: Sequence[Any]) -> dict[str, float]:
    """GPU time of each operation before and behind the iterations of a run, the mean, ns; empty: it has none."""
    outside: dict[str, float] = {}
    for run in runs:
        steady = [row for row in side.rows("phase_summary")(run.id) if row["phase"] == "steady"]
        if not steady:
            return {}
        rows = [(row, 1) for row in side.rows("gpu_summary")(run.id)]
        rows += [(row, -1) for row in steady if row["summary"] == "gpu_summary"]
        for row, sign in rows:
            name = row.get("short_name") or row["name"]
            outside[name] = outside.get(name, 0.0) + sign * (row["total_ns"] or 0.0) / len(runs)
    return outside


def _gpus_of_both(match: Match, first: Side, second: Side) -> tuple[int, int] | None:
    """How many GPUs the runs of each side have: as the plan gave them, of reports as their iterations show."""
    counts = [
        {getattr(run, "gpus", 0) or len(side.rows("iterations")(run.id)) for run in runs}
        for side, runs in ((first, match.first), (second, match.second))
    ]
    return (counts[0].pop(), counts[1].pop()) if all(len(count) == 1 for count in counts) else None


def _scale_to_equal_clocks(
    first: Side, second: Side, pairs: Sequence[Match], rows: Sequence[Compared]
) -> Iterator[Compared]:
    """Scale rows whose sides ran at different clocks to equal clocks, for cases that are compute-bound."""
    matches_by_name = {match.name: match for match in pairs}
    for row in rows:
        match = matches_by_name[row.case]
        if (row.missing or "").startswith(CLOCKS_DIFFER) and all(
            _is_compute_bound(side, runs) for side, runs in ((first, match.first), (second, match.second))
        ):
            scaled = sides_module.scale_to_equal_clocks(row, match, (first, second))
            yield from [scaled] if scaled is not None else []


def _is_compute_bound(side: Side, runs: Sequence[Any]) -> bool:
    return side.counters is not None and is_compute_bound(_case_with_counters(side, runs, side.counters()))


def _case_with_counters(side: Side, runs: Sequence[Any], counters: Mapping[str, TableData]) -> CaseSummary:
    tables = {name: _rows_of_runs(side, name, runs) for name in _TABLES}
    (case,) = summarize_cases(runs, tables, 1.0, counters, side.classes)
    return case


def _figure_doubts_by_case(
    first: Side, second: Side, pairs: Sequence[Match], rows: Sequence[Compared]
) -> dict[str, str]:
    """Why figures of cases are set aside, with the kernels' times, which hold in their place."""
    texts = {}
    for match in pairs:
        doubts = [doubt for row in rows if row.case == match.name
                  for doubt in sides_module.figure_doubts((first, second), match, row.what)]  # fmt: skip
        if doubts:
            times = [
                sum(kernel.launch_ns or 0.0 for kernel in _case_with_counters(side, runs, side.counters()).kernels)
                for side, runs in ((first, match.first), (second, match.second)) if side.counters is not None
            ]  # fmt: skip
            instead = ""
            if all(times) and len(times) == 2:
                change = change_of_speed(times[0] / times[1], is_time=True, as_factor=has_factors(rows) or None)
                instead = f" A launch of its kernels takes {duration(times[0])} and {duration(times[1])}: {change}."
            texts[match.name] = " ".join(dict.fromkeys(doubts)) + instead
    return texts


def _explain_by_counters(first: Side, second: Side, pairs: Sequence[Match]) -> dict[str, str]:
    """What changed in kernels that both sides measured counters of, a sentence a case."""
    counters = [side.counters() if side.counters is not None else {} for side in (first, second)]
    if not all("metrics" in tables for tables in counters):
        return {}
    texts = {
        match.name: counter_changes_text(
            *(
                _case_with_counters(side, runs, tables).kernels
                for side, runs, tables in zip((first, second), (match.first, match.second), counters, strict=True)
            )
        )
        for match in pairs[:_EXPLAINED]
    }
    return {name: text for name, text in texts.items() if text}


def _explain_changes(first: Side, second: Side, pairs: Sequence[Match], rows: Sequence[Any]) -> dict[str, Difference]:
    """What did it, of the cases that changed most; of single runs also what differs where that decides nothing."""
    changed = sorted(
        (row for row in rows if row.verdict in {"faster", "slower"} or is_undecided_by_single_runs(row)),
        key=lambda row: -abs(row.gain or 0.0),
    )
    matches_by_name = {match.name: match for match in pairs}
    explained: dict[str, Difference] = {}
    for name in list(dict.fromkeys(row.case for row in changed))[:_EXPLAINED]:
        gain = next((row.gain for row in changed if row.case == name and row.what != sides_module.ITERATION), None)
        difference = difference_of(matches_by_name[name], first, second, gain)
        if difference is not None:
            explained[name] = difference
    return explained


def difference_of(match: Match, first: Side, second: Side, gain: float | None = None) -> Difference | None:
    """What did it in a case of both sides; None where a side has no GPU work.

    It is that of the median iteration; of the mean one where a side's own screen speaks of it, or where only slow
    iterations explain what a figure gains.

    Args:
        match: The case.
        first: The side that has its first runs.
        second: The side that has its second runs.
        gain: The logarithm by which the figure that is explained is better on the second side; None: there is none.
    """
    cases: list[CaseSummary] = []
    work: list[list[Operation]] = []
    traced_runs: list[Any] = []
    iterations: list[list[Mapping[str, Any]]] = []
    for side, runs in ((first, match.first), (second, match.second)):
        tables = {name: _rows_of_runs(side, name, runs) for name in _TABLES}
        (case,) = summarize_cases(runs, tables, 1.0, classes=side.classes)
        traced = {run.id for run in runs if run.pass_name == case.traced_by}
        traced_tables = {name: [row for row in rows if row["run"] in traced] for name, rows in tables.items()}
        cases.append(case)
        iterations.append(traced_tables["iterations"])
        traced_runs.append(next((run for run in runs if run.id in traced), None))
        work.append(
            difference_module.gpu_operations_by_name(
                traced_tables["gpu_summary"],
                traced_tables["phase_summary"],
                traced_tables["iterations"],
                case.measured,
                side.classes,
            )
        )
    if names := renamed_kernel_names(work[0], work[1]):
        work = [
            _add_kernel_context(side, operations, run, names)
            for side, operations, run in zip((first, second), work, traced_runs, strict=True)
        ]
    mean_cases = [
        replace(case, spent=with_mean_iteration(case.spent, rows)) if case.spent is not None else case
        for case, rows in zip(cases, iterations, strict=True)
    ]
    mean = explain_difference(match.name, (mean_cases[0], mean_cases[1]), (work[0], work[1]))
    if mean is None or not mean.is_mean or any(case.spent is not None and case.spent.is_mean for case in cases):
        return mean
    median = explain_difference(match.name, (cases[0], cases[1]), (work[0], work[1]))
    if median is None or gain is None or median.explains(gain) or not mean.explains(gain):
        return median
    slower, name = (cases[1], second.name) if mean.ns > 0 else (cases[0], first.name)
    slow: Any = slower.iterations  # which a mean iteration has
    text = (
        f"Slow iterations do it: iteration {slow.slowest} of {slow.count + slow.warmup} (counted from 0) of {name}"
        f" takes {format_ns(slow.most_ns)}, the median ones {format_ns(median.before)} and {format_ns(median.after)}"
    )
    return replace(mean, slowest=text)


def _add_kernel_context(side: Side, work: list[Operation], run: Any, names: frozenset[str]) -> list[Operation]:
    """Add shapes and ranges to the kernels of `names`, by which they are matched; unchanged where no report is here."""
    if side.trace is None or run is None:
        return work
    try:
        traces = side.trace(_TRACES, run)
    except CampaignError:  # its report is gone, or its exporter
        return work
    launches = [row for row in traces.get("gpu_trace", ()) if row["name"] in names]
    return difference_module.add_shapes_and_ranges(
        work, launches, traces.get("api_trace", ()), traces.get("nvtx_trace", ())
    )


def _rows_of_runs(side: Side, table: str, runs: Sequence[Any]) -> list[Mapping[str, Any]]:
    rows = side.rows(table)
    return [row for run in runs for row in rows(run.id)]


# --- a side by its name ---------------------------------------------------------------------------------------------


def sides_of(words: Sequence[str], root: Path | None, by: By) -> tuple[Side, Side]:
    """Load both sides that a person named: two sides, or one campaign that holds both.

    Args:
        words: Two names of sides, a campaign and two of its cases, or a campaign that holds both sides; none: the
            newest campaign.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.
        by: What is compared, which decides the tables to load.

    Raises:
        UsageError: There are more than three words, or the campaign holds one side.
        UnlikeError: All runs of one side are invalid.
        CampaignError: There is no such campaign, run or report.
    """
    if len(words) == 1 and Path(words[0]).exists() and not (Path(words[0]) / folders.LEDGER).exists():
        raise UsageError(f"{words[0]} is one side", hint="`nsw compare A B` takes two: reports, campaigns or cases")
    if len(words) < 2:
        folder = folders.find(folders.root(root), words[0] if words else None)
        both = both_sides(folder, by)
        if both is None and (invalid := side_of_campaign(folder, by=by).invalid):
            raise UnlikeError(f"{folder.id} has no valid runs of both sides: {invalid}")
        if both is None:
            raise UsageError(
                f"{folder.id} holds one side",
                hint="`nsw compare A B` names two campaigns, `nsw compare CAMPAIGN CASE CASE` two cases of one;"
                " `nsw run --against` runs both sides in pairs",
            )
        return both
    if len(words) == 3:  # a campaign and two of its cases
        parent = folders.root(root)
        try:
            folders.find(parent, read_baselines(parent).get(words[0], words[0]))
        except CampaignError as fault:
            hint = f"{fault.hint or ''}; the campaign comes first: `nsw compare CAMPAIGN CASE CASE`"
            raise UsageError(fault.message, hint=hint.removeprefix("; ")) from None
        words = [f"{words[0]}:{case}" for case in words[1:]]
    if len(words) != 2:
        raise UsageError(
            f"nsw compare takes two sides, and {len(words)} were named",
            hint="`nsw compare A B`, `nsw compare CAMPAIGN CASE CASE`, or the campaign of `nsw run --against`",
        )
    first, second = (side_of(word, root, by) for word in words)
    return first, second


def compare_own_sides(folder: CampaignFolder) -> Comparison | None:
    """Both sides of a campaign; None where it holds one, or nothing of both was measured."""
    both = both_sides(folder, "case")
    return compare(*both) if both is not None and match_cases(*both) else None


def measure_noise(folder: CampaignFolder) -> tuple[list[Noise], Path]:
    """Keep how much the figures of a campaign scatter whose sides are the same program, and the file that has it.

    Raises:
        CampaignError: It holds no pairs of a figure.
    """
    both = both_sides(folder, "figure")
    pairs = sides_module.paired_figure_values(*both) if both is not None else {}
    noises = [
        measured_noise
        for figure, cases in pairs.items()
        if (measured_noise := measure_scatter(figure, cases)) is not None
    ]
    if both is None or not noises:
        raise CampaignError(
            f"{folder.id} has no two pairs of a figure", hint="`nsw status` says what became of its runs"
        )
    chip, name = both[1].conditions.get(CHIP), locked_recipe(folder).name
    return noises, save_noise(both[1].conditions["site"], chip, name, noises)


def both_sides(folder: CampaignFolder, by: By) -> tuple[Side, Side] | None:
    """Both sides of a campaign of `nsw run --against`, each with what was done; None where it has not both."""
    campaign_side = side_of_campaign(folder, by=by)
    if not any(SIDE in run.params for run in campaign_side.runs):
        return _sides_of_versions(folder, campaign_side)
    sides = [
        replace(campaign_side, name=value, runs=[run for run in campaign_side.runs if run.params.get(SIDE) == value])
        for value in (BEFORE, AFTER)
    ]
    if not all(side.runs for side in sides):
        return None
    lock = locked_recipe(folder).lock
    if lock is not None and lock.before is not None and lock.before.ref == ITSELF and not lock.before.files:
        sides = [replace(side, same_program=True) for side in sides]
    if lock is not None and lock.before is not None and lock.before.files:
        program = program_conditions(lock.before.git, lock.before.files)
        shared_conditions = {
            name: value for name, value in campaign_side.conditions.items() if name not in {COMMIT, FILES}
        }
        sides[0] = replace(sides[0], conditions=shared_conditions | program)
    return sides[0], sides[1]


def _sides_of_versions(folder: CampaignFolder, now: Side) -> tuple[Side, Side] | None:
    """The figures before the program's last change and those now, as two sides; None where none were kept."""
    rows = load_rows_lazily(folder, EARLIER_FIGURES)
    runs = [run for run in now.runs if run.id in {row["run"] for row in rows}]
    if not runs:
        return None
    with ledger_to_read(folder) as ledger:
        files = [version[0] for version in ledger.meta(VERSIONS)][-2:]
    earlier_conditions, theirs = (
        {name: value for name, value in now.conditions.items() if name not in {COMMIT, FILES}}
        | program_conditions(None, file_hashes)
        for file_hashes in (files if len(files) > 1 else ({}, {}))
    )
    both = replace(now, runs=runs, in_blocks=False)
    return (
        replace(both, name="earlier", tables={"figures": rows}, conditions=earlier_conditions, trace=None),
        replace(both, name="now", tables={"figures": now.tables["figures"]}, conditions=theirs),
    )


def side_of(word: str, root: Path | None, by: By) -> Side:
    """Load a side by its name: a report or folder of reports, a baseline, a campaign, or CAMPAIGN:RUNS.

    Args:
        word: The name.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.
        by: What is compared, which decides the tables to load.

    Raises:
        CampaignError: There is no such campaign, run or report.
    """
    parent = folders.root(root)
    path = Path(word)
    if path.exists() and not (path / folders.LEDGER).exists():
        return _side_from_reports(word, path, by)
    word_of_baseline = read_baselines(parent).get(word)
    if word_of_baseline is not None:
        return replace(side_of_campaign(folders.find(parent, word_of_baseline), by=by), name=word)
    try:
        return side_of_campaign(folders.find(parent, word), by=by)
    except CampaignError as fault:
        campaign, colon, runs = word.rpartition(":")
        campaign_name = read_baselines(parent).get(campaign, campaign)
        try:
            folder = folders.find(parent, campaign_name if colon else None)
            return replace(side_of_campaign(folder, Selection((runs,)), by), name=runs)
        except (CampaignError, UsageError) as wrong_runs:
            if colon and isinstance(wrong_runs, UsageError):
                raise UsageError(f"{campaign} has no run {runs}", hint=wrong_runs.hint) from None
            if not colon and (path.suffix or len(path.parts) > 1):
                from nsw.readers.detect import explain_unopened_file

                reason = explain_unopened_file(path, "there is no such file")
                raise CampaignError(f"{word}: {reason.message}", hint=reason.fix) from None
            owners = [] if colon else _campaigns_with_case(parent, word)
            if len(owners) == 1:
                return replace(side_of_campaign(owners[0], Selection((word,)), by), name=word)
            nearest = wrong_runs if colon else fault
            hint = "; ".join(
                filter(None, (nearest.hint, None if colon or "did you mean" in (nearest.hint or "") else _CASE))
            )
            if owners:
                hint = f"{len(owners)} campaigns have this case: `{owners[-1].id}:{word}` is that of the newest"
            raise CampaignError(
                f"'{word}' is no campaign, baseline, run or report here: {nearest.message}", hint=hint
            ) from None


def _campaigns_with_case(parent: Path, case: str) -> list[CampaignFolder]:
    """The campaigns that have a case of this name, oldest first; of others that cannot be read none."""
    owners = []
    for folder in folders.existing(parent):
        with suppress(CampaignError, OSError), ledger_to_read(folder) as ledger:
            owners += [folder] if any(run.case_id == case for run in ledger.runs()) else []
    return owners


def side_of_campaign(
    folder: CampaignFolder,
    selection: Selection = Selection(),  # noqa: B008  it is frozen
    by: By = "case",
) -> Side:
    """A side that is a campaign, or some runs of one.

    Args:
        folder: The campaign.
        selection: Its runs.
        by: What is compared, which decides the tables to load.

    Raises:
        CampaignError: The campaign cannot be read.
    """
    with results(folder, selection) as campaign_results:
        runs = [run for run in campaign_results.runs if run.state is State.DONE and run.repeat]
        invalid = [run for run in campaign_results.runs if run.state is State.INVALID]
        recipe = locked_recipe(folder)
        conditions, note = measured_conditions(folder, campaign_results, recipe), campaign_results.note
    with ledger_to_read(folder) as ledger:
        until = ledger.meta(UNTIL)
    tables = (*_TABLES, "metrics") if by in {"metric", "kernel"} else _TABLES
    report = recipe.report
    figures = recipe.app.figures
    options = report.scaling or report.compare
    return Side(
        name=folder.id,
        source=str(folder.path),
        runs=runs,
        tables={name: load_rows_lazily(folder, name) for name in tables},
        figure=(options.figure if options else None) or next(iter(figures), None),
        higher_is_better={name: figure.higher_is_better for name, figure in figures.items()},
        in_blocks=recipe.interleave is not None,
        conditions=conditions,
        floors=noise_floors(campaign_results.site, conditions.get(CHIP), recipe.name),
        classes=report.classes,
        gate=report.gate,
        note=note,
        invalid=f"{plural(len(invalid), 'run')} invalid, such as {invalid[0].id}: {invalid[0].reason}"
        if invalid
        else "",
        trace=partial(_load_traces, folder) if folder.trusted else None,
        counters=partial(load_tables, folder, OF_KERNELS),
        adding=_added_pairs(until),
        doubts=cache(partial(_campaign_doubts, folder)) if report.compare else None,
    )


def _campaign_doubts(folder: CampaignFolder) -> dict[tuple[str, str], str]:
    """Why its summary sets figures aside, by figure and case."""
    with results(folder) as campaign_results:
        summary = campaign_results.summary
    return {(summary.figure or "", case): doubt.text for doubt in summary.doubts for case in doubt.cases}


def _added_pairs(until: Mapping[str, Any]) -> Adding | None:
    """The cost of the pairs added so far, and why adding ended; None for a fixed number of pairs."""
    if not until or "model" in until:  # what is added for a model are no pairs
        return None
    price, spent = parse_price(until["at_most"]), until.get("spent", 0.0)
    cost = f"{seconds(spent)} of {seconds(price.number)}" if price.unit == "second" else f"{spent:.2g} of {price}"
    return Adding(cost, until.get("ended", ""))


def _load_traces(folder: CampaignFolder, names: Collection[str], run: Any) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    with results(folder) as campaign_results:
        return next((tables for _, tables in campaign_results.traces([run], names)), {})


def _side_from_reports(word: str, path: Path, by: By) -> Side:
    """A side made from reports that belong to no campaign: each is a run of one case."""
    from nsw.analysis.of_reports import LOOKED_AT, ReadReport, runs_and_tables_of_reports
    from nsw.readers.detect import ReportSearch, read_many

    search = ReportSearch()
    table_names = (*LOOKED_AT, "metrics") if by == "metric" else LOOKED_AT
    read, wrong, counters = [], [], []
    for report in search.drop_unrecognised_reports(
        read_many(list(search.find_files_to_read([path])), None, 1 if can_fork() else None)
    ):
        wrong += [problem.message for problem in report.problems if problem.severity == "error"]
        if report.tables:
            own_tables = {name: report.tables[name] for name in table_names if name in report.tables}
            read.append(ReadReport(report.path, _counted_kernel_times(report.tables) | own_tables))
            counters.append((report.path, {name: report.tables[name] for name in OF_KERNELS if name in report.tables}))
    if not read:
        hint = exported_tables_hint(path) or (wrong[0] if wrong else None)
        raise CampaignError(f"{path} holds no report that can be read", hint=hint)
    runs, tables = runs_and_tables_of_reports(read, {report.name: word for report in read})
    chips = {row["text"] for row in tables["facts"] if row["key"] == "gpu_name" and row.get("text")}
    conditions = {CHIP: " | ".join(sorted(chips))} if chips else {}
    work, copied_bytes = _work_per_iteration(tables)
    return Side(
        name=path.name, source=word, runs=runs, tables=tables, conditions=conditions | work, copied_bytes=copied_bytes,
        trace=_load_traces_of_report, counters=partial(_counters_of_reports, counters),
    )  # fmt: skip


def _counters_of_reports(reports: Sequence[tuple[str, Mapping[str, TableData]]]) -> dict[str, TableData]:
    """The tables of counters of reports, each row with the report that is its run."""
    names = dict.fromkeys(name for _, tables in reports for name in tables)
    return {
        name: [{**row, "run": path} for path, tables in reports for row in full_rows(name, tables.get(name, []))]
        for name in names
    }


def _load_traces_of_report(names: Collection[str], run: Any) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    from nsw.readers.detect import read_many
    from nsw.readers.model import Options

    options = Options(tables=frozenset(names))
    (report,) = read_many([Path(run.id)], options, 1 if can_fork() else None)
    return {name: list(full_rows(name, report.tables.get(name, []), _TRACES[name])) for name in names}


def _counted_kernel_times(tables: Mapping[str, TableData]) -> dict[str, TableData]:
    """The times of kernels that counters were measured of, as a timeline has them: ncu writes no other table."""
    from nsw.analysis.kernels import kernel_table_of_report

    rows = [
        {"name": kernel.name, "short_name": kernel.short_name, "kind": "kernel", "total_ns": kernel.time_ns,
         "calls": kernel.launches}
        for kernel in kernel_table_of_report(tables) if kernel.time_ns is not None
    ]  # fmt: skip
    return {"gpu_summary": rows} if rows else {}


def _work_per_iteration(
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[dict[str, str], float | None]:
    """The GPUs and the bytes copied to each per iteration: without a recipe, they show if the work is alike."""
    work = {}
    gpus = Counter(row["run"] for row in tables["iterations"])
    iterations = sum(row["steady"] for row in tables["iterations"])
    if gpus:
        work["GPUs"] = " | ".join(str(count) for count in sorted(set(gpus.values())))
    copied = sum(
        row["total_bytes"] or 0
        for row in tables["host_copies"]
        if (row["phase"], row["direction"]) == ("steady", "to the GPU")
    )
    return work, copied / iterations if iterations else None


def measured_conditions(folder: CampaignFolder, results: Results, recipe: Recipe) -> dict[str, str]:
    """Return the conditions of a campaign's measurements by name, as far as its lock, ledger and tables record them.

    Args:
        folder: The campaign's folder, whose table facts names the chips.
        results: The campaign's results.
        recipe: The campaign's recipe with its lock.
    """
    lock = recipe.lock
    hosts = sorted({run.host for run in results.runs if run.host})
    command = recipe.app.command
    conditions = {"site": results.site, "command": command if isinstance(command, str) else shlex.join(command)}
    if hosts and not results.is_recorded:
        conditions["nodes"] = ", ".join(hosts)
    resources = recipe.resources
    amounts = [
        f"{word}s by case" if isinstance(count, str) else plural(count, word)  # a template says how many
        for count, word in ((resources.nodes, "node"), (resources.gpus, "GPU"))
        if count is not None
    ]
    conditions["layout"] = ", ".join([*amounts, recipe.app.launcher.kind])
    if lock is not None:
        conditions |= {"nsw": lock.version, **({} if results.is_recorded else lock.tools | lock.machine)}
        conditions |= program_conditions(lock.git, lock.files)
    chips = {row["text"] for row in load_rows_lazily(folder, "facts") if row["key"] == "gpu_name" and row.get("text")}
    if chips:
        conditions[CHIP] = " | ".join(sorted(chips))
    return {name: value for name, value in conditions.items() if value}


def program_conditions(git: LockedGit | None, files: Mapping[str, str]) -> dict[str, str]:
    """The program's commit and its files."""
    conditions = {} if git is None else {COMMIT: git.commit[:12] + (" with changes" if git.dirty else "")}
    if files:
        conditions[FILES] = "\n".join(f"{name}={digest}" for name, digest in sorted(files.items()))
    return conditions


PAIRS: Final = 12  # of which a floor is measured, unless somebody asks for more


@dataclass(frozen=True, slots=True)
class Noise:
    """How much a figure scatters: standard deviations of logarithms of a pair's ratio and of a run."""

    figure: str
    pair: float
    run: float
    freedom: int


def measure_scatter(figure: str, cases: Sequence[Sequence[tuple[float, float]]]) -> Noise | None:
    """The scatter of a figure's pairs around the mean of their case; None where no case has two.

    Args:
        figure: Its name.
        cases: The values of the pairs of each case.
    """
    several = [pairs for pairs in cases if len(pairs) > 1]
    freedom = sum(len(pairs) - 1 for pairs in several)
    if not freedom:
        return None
    ratios = [[log(second / first) for first, second in pairs] for pairs in several]
    sides = [[log(pair[side]) for pair in pairs] for pairs in several for side in (0, 1)]
    return Noise(figure, _pooled_deviation(ratios), _pooled_deviation(sides), freedom)


def _pooled_deviation(groups: Sequence[Sequence[float]]) -> float:
    """The pooled standard deviation within the groups."""
    squares = sum(statistics.variance(group) * (len(group) - 1) for group in groups)
    return math.sqrt(squares / sum(len(group) - 1 for group in groups))


def save_noise(site: str, chip: str | None, recipe: str, noises: Sequence[Noise]) -> Path:
    """Save measured noise in the user's state folder, in place of that of the same site, chip and recipe.

    Args:
        site: The site's name.
        chip: The GPU's name; None: it was measured without a GPU.
        recipe: The recipe's name.
        noises: One for each figure.

    Returns:
        The file.

    Raises:
        CampaignError: The file is damaged.
    """
    file = user_folder("state") / "noise.json"
    safe_files.make_folders(file.parent, 0o700)
    noises_by_key = _read_noises()
    noises_by_key[_noise_key(site, chip, recipe)] = [asdict(noise) for noise in noises]
    safe_files.write_text(file, json.dumps(noises_by_key, indent=1, sort_keys=True) + "\n")
    return file


def noise_floors(site: str, chip: str | None, recipe: str) -> Mapping[str, Floor]:
    """Return the noise floor of each figure that was measured on a site, chip and recipe.

    Args:
        site: The site's name.
        chip: The GPU's name; None: it was measured without a GPU.
        recipe: The recipe's name.

    Raises:
        CampaignError: The file is damaged.
    """
    return {
        noise["figure"]: Floor(noise["pair"], noise["run"], noise["freedom"])
        for noise in _read_noises().get(_noise_key(site, chip, recipe), ())
    }


def _noise_key(site: str, chip: str | None, recipe: str) -> str:
    return f"{site} / {chip or 'no GPU'} / {recipe}"


def _read_noises() -> dict[str, list[dict[str, Any]]]:
    try:
        file = user_folder("state") / "noise.json"
        text = safe_files.read_text(file)
    except OSError:  # nothing was measured yet, or there is no home
        return {}
    try:
        noises: dict[str, list[dict[str, Any]]] = json.loads(text)
    except ValueError as fault:
        raise CampaignError(f"{file} is damaged: {fault}", hint="remove it; `nsw noise` measures again") from None
    return noises
