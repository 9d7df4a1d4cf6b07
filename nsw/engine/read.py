"""Collected reports become the campaign's tables, as its recipe and site ask."""

from __future__ import annotations

import re
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.source_lines import select_useful_source_rows
from nsw.engine import validity
from nsw.engine.collect import AGAIN, CONDITIONS_FILE, KEPT_FILES, read_tail, second_start
from nsw.engine.folder import CampaignFolder, run_of
from nsw.engine.ledger_rows import NOTE, Reading, RunRow, State
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import EARLIER_FIGURES, INVALID_FIGURES, load_rows, replace_rows, table_files
from nsw.engine.validity import dropped_samples, empty_window, failed_checks, fewer_launches, window_gap
from nsw.errors import CampaignError
from nsw.plan.counters import counted_ranks, passes_of
from nsw.profilers.files_of_one_recording import FileToRead, files_to_read, recording_files_from
from nsw.profilers.model import NODE_ARCHIVES
from nsw.readers.conditions import condition_rows, energy_figure_rows
from nsw.readers.detect import read_many
from nsw.readers.messages import known_problems_in_file
from nsw.readers.model import Options, Report
from nsw.readers.nsys.export.binary import is_readable
from nsw.readers.program_figures import read_figure_rows
from nsw.recipe.passes import drawn_ranks, is_share
from nsw.recipe.units import show_value
from nsw.tables import full_rows as table_rows
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsw.engine.ledger import Ledger
    from nsw.recipe.model import Figure, Recipe
    from nsw.recipe.passes import TimelinePass

__all__ = [
    "RankLocations",
    "expected_ranks",
    "missing_nodes",
    "missing_rank_severity",
    "missing_ranks",
    "missing_ranks_sentence",
    "rank_locations",
    "read_reports",
    "read_traces",
    "reading",
    "reading_fault",
    "reports_of",
]

_FLUSH_EVERY_S: Final = 30.0
_PART = re.compile(r"\w+\.(rank|node)(\d{1,6})\.")  # as profilers are told to name the report of each process or node
_MAY_LEAVE_NONE = frozenset({"ncu", "nvprof"})  # of a process that runs no kernel
# what nsys says of a process that runs on when its recording ends, which is as it should be in a window
_ENDED_EARLY: Final = re.compile("Not all .* events might have been collected")
_CUT_OFF: Final = re.compile(
    r"CUPTI buffers: \d+ of \d+\. Some CUPTI events might be missing|incomplete CUPTI events dropped"
)
_LOGS: Final = "`nsw logs {}`"
_RANKS_IN_MESSAGE = 4  # ranks in a message


def rank_of(report: str) -> int | None:
    """The rank in the name of a report; None where one report is of all processes, or of those of a node."""
    match = _PART.match(report)
    return int(match[2]) if match and match[1] == "rank" else None


def missing_nodes(reports: Iterable[str], nodes: int) -> list[int]:
    """The nodes, counted from 0, that left no report, where there is a profiler on each."""
    present = {int(match[2]) for match in map(_PART.match, reports) if match and match[1] == "node"}
    return sorted({*range(nodes)} - present) if present else []


def missing_ranks(reports: Iterable[str], expected: Collection[int] | None) -> tuple[list[int], int]:
    """The ranks that left no report, and how many processes there should be reports of.

    Args:
        reports: Names of the files that a run left.
        expected: The ranks that were profiled; None: not known, and those below a rank with a report are missed.
    """
    present = {rank for rank in map(rank_of, reports) if rank is not None}
    if not present:
        return [], 0
    every = range(max(present) + 1) if expected is None else expected
    return sorted({*every} - present), len(every)


def missing_ranks_sentence(missing: list[int], total: int) -> str:
    """What is missing, such as `no report of ranks 1, 3: 2 of 4 processes left one`."""
    numbers = first_names([str(rank) for rank in missing], _RANKS_IN_MESSAGE)
    several = "ranks" if len(missing) > 1 else "rank"
    return f"no report of {several} {numbers}: {total - len(missing)} of {total:,} processes left one"


def missing_rank_severity(tool: str | None) -> str:
    """`warning` where a process without a kernel leaves no report; else `error`."""
    return "warning" if tool in _MAY_LEAVE_NONE else "error"


# of the job's machinery: lines `rank RANK LOCAL NODE BOOT CPUS VISIBLE [START]`, `gpu NODE INDEX UUID NAME`, and
# `cores NODE ALL PLANNED`: the CPUs that a node has, and how many a rank was to have
RANKS_FILE: Final = "ranks.tsv"
_MAX_RANKS_BYTES: Final = 16 << 20  # bytes
_SKEW: Final = 0.05  # of a run's time, between the starts of its first and its last rank
_LEAST_SKEW_S: Final = 1.0  # clocks of nodes differ by less


@dataclass(frozen=True, slots=True)
class RankLocations:
    """The ranks of a run; no rows for a run of one process."""

    rows: tuple[Mapping[str, Any], ...] = ()
    cores: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def crowded_cores_sentence(self) -> str | None:
        """A sentence where the ranks of a node are bound to fewer CPU cores than they were to have; else None."""
        for host, (every, planned) in self.cores.items():
            bound = [row["cpus"] for row in self.rows if row["host"] == host]
            if len(bound) < 2 or None in bound or every in bound:  # not bound, or not known
                continue
            there = len(frozenset[int]().union(*map(_parse_number_list, bound)))
            wanted = len(bound) * max(planned, 1)
            if there < wanted:
                return (
                    f"{len(bound)} ranks of {host} were bound to {there} CPU core{'s' if there > 1 else ''} in all,"
                    f" and {wanted} were planned"
                )
        return None

    def start_skew_sentence(self, started_s: float | None, ended_s: float | None) -> str | None:
        """A sentence where a considerable part of a run passed between the starts of its first and last rank.

        Clocks of nodes may differ, and nothing here tells by how much.
        """
        rows = sorted((row for row in self.rows if row["start_delay_s"] is not None), key=itemgetter("start_delay_s"))
        if not rows or started_s is None or ended_s is None:
            return None
        first, last, took_s = rows[0], rows[-1], ended_s - started_s
        delay_s = last["start_delay_s"]
        if took_s <= 0 or delay_s < max(_SKEW * took_s, _LEAST_SKEW_S):
            return None
        clocks = ", by clocks of two nodes, which may differ" if first["host"] != last["host"] else ""
        return (
            f"rank {last['rank']} ({last['host']}) started {delay_s:.1f} s after rank {first['rank']}"
            f" ({first['host']}), {delay_s / took_s:.0%} of the run{clocks}"
        )

    @property
    def local_ranks(self) -> dict[int, int]:
        """Each rank's place on its node."""
        return {row["rank"]: row["local_rank"] for row in self.rows}

    @property
    def nodes(self) -> int:
        """How many nodes there are ranks on."""
        return len({(row["host"], row["boot"]) for row in self.rows})


def rank_locations(home: Path) -> RankLocations:
    """The ranks of a run by the file in its folder; lines that nsw does not write are passed over."""
    lines = [
        line.split("\t")
        for line in (read_tail(home / RANKS_FILE, _MAX_RANKS_BYTES) or b"")
        .decode(errors="backslashreplace")
        .splitlines()
    ]
    uuids: dict[str, dict[str, str]] = {}
    for line in lines:
        if line[0] == "gpu" and len(line) == 5:
            uuids.setdefault(line[1], {})[line[2]] = line[3]
    core_lines = [line for line in lines if line[0] == "cores" and len(line) == 4 and line[3].isdecimal()]
    cores = {line[1]: (line[2], int(line[3])) for line in core_lines}
    rank_lines = [line for line in lines if _is_rank_line(line)]
    first_s = min((_start_s(line) for line in rank_lines if len(line) == 8), default=None)
    return RankLocations(tuple(_rank_row(line, uuids, first_s) for line in rank_lines), cores)


def _parse_number_list(ranges: str) -> frozenset[int]:
    """Parse a list of numbers as Linux writes it, such as `0-3,8`; empty for other text."""
    pairs = [part.split("-") for part in ranges.split(",") if re.fullmatch(r"\d{1,6}(-\d{1,6})?", part)]
    return frozenset(number for pair in pairs for number in range(int(pair[0]), int(pair[-1]) + 1))


def _is_rank_line(line: list[str]) -> bool:
    has_start = len(line) == 8 and re.fullmatch(r"\d{1,12}\.\d{1,9}", line[7]) is not None
    return line[0] == "rank" and (has_start or len(line) == 7) and line[1].isdecimal() and line[2].isdecimal()


def _rank_row(line: list[str], uuids: Mapping[str, Mapping[str, str]], first_s: float | None) -> Mapping[str, Any]:
    _, rank, local, node, boot, cpus, visible, *start = line
    node_uuids = uuids.get(node, {})
    seen = [] if visible == "none" else visible.split(",") if visible else list(node_uuids)
    return {
        "rank": int(rank),
        "local_rank": int(local),
        "host": node,
        "boot": boot,
        "cpus": cpus if cpus != "-" else None,
        "gpus": ",".join(node_uuids.get(gpu, gpu) for gpu in seen) or None,
        "start_delay_s": _start_s(line) - first_s if start and first_s is not None else None,
    }


def _start_s(line: list[str]) -> float:
    return float(line[7])


class _RunResult:
    """What the reports and the output of a run hold: rows by table, problems, and required figures that are absent."""

    def __init__(self, run: RunRow) -> None:
        self.run = run
        self.measured = run.state is State.DONE and run.repeat > 0
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.problems: list[tuple[str | None, str, str, str | None]] = []
        self.lacking = 0
        self.invalid: list[str] = []
        self.lost: list[str] = []  # the messages that records are missing
        self.unreadable: list[str] = []  # those that a report, or a part of it, cannot be read
        self.not_as_asked: list[str] = []

    @property
    def reading(self) -> Reading:
        """What became of the reports: an error that is no missing figure and no check counts first."""
        errors = sum(severity == "error" for _, severity, _, _ in self.problems)
        if errors > self.lacking + len(self.invalid):
            return Reading.UNREADABLE
        return Reading.INCOMPLETE if self.lacking else Reading.READ

    def add(self, table: str, rows: Iterable[Mapping[str, Any]], report: str) -> None:
        """Add rows of a report, unless the run measured nothing.

        What a failed run did until then, and what a warm-up did, is no measurement of the case: the reports are kept
        and what is wrong in them is reported, but none of their rows is averaged with those of good runs.
        """
        if not self.measured:
            return
        rank = rank_of(report.rpartition("/")[2])
        for row in rows:
            rank_column = {} if rank is None or row.get("rank") is not None else {"rank": rank}
            self.tables.setdefault(table, []).append({**row, "run": self.run.id, "report": report} | rank_column)

    def report(self, severity: str, message: str, fix: str | None = None, *, file: str | None = None) -> None:
        """Add a problem, once."""
        if all(message != message_before for _, _, message_before, _ in self.problems):
            self.problems.append((file, severity, message, fix))


class _Reader:
    """Reads the reports of one campaign's runs, as its recipe and site ask.

    Args:
        folder: The campaign's folder.
        ledger: Its open ledger.
    """

    def __init__(self, folder: CampaignFolder, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        self._recipe = locked_recipe(folder)
        self._chip = (ledger.site().get("gpus") or {}).get("chip")
        not_reduced = ledger.reductions((State.FAILED, State.LOST, State.CANCELLED))
        self._unreduced = {run_of(row.id): f"{row.id} {row.state}: {row.reason or 'no reason'}" for row in not_reduced}

    @property
    def options(self) -> Options:
        """What is asked of the readers."""
        steps = self._recipe.report.steps
        nsys = (self._ledger.site().get("profilers") or {}).get("nsys")
        return Options(nsys=nsys, steps=steps.nvtx, warmup=steps.warmup)

    def read(self, runs: Sequence[RunRow], options: Options) -> Generator[_RunResult]:
        """The tables of each run's reports, one run after the other."""
        files = [reports_of(self._folder, run) for run in runs]
        reports = read_many([file for several in files for file in several], options)
        for run, run_files in zip(runs, files, strict=True):
            read = _RunResult(run)
            file_parts = files_to_read(path.name for path in run_files)
            for file in run_files:
                self._add_report(read, file, next(reports), file_parts[file.name])
            yield read

    def check(self, read: _RunResult) -> None:
        """Add what the run's other files tell, and what of the recipe's wishes is not there."""
        run = read.run
        home = self._folder.reports / run.id
        for stream in ("stderr", "stdout", "after.log") if run.tool else ():
            for tool_message in known_problems_in_file(run.tool or "", home / stream):
                read.report(
                    tool_message.level, tool_message.message, tool_message.fix, file=f"reports/{run.id}/{stream}"
                )
                read.lost += [tool_message.message] if tool_message.is_loss else []
        landed = rank_locations(home)
        if landed.rows and run.repeat:  # also of a run that failed: where its ranks landed may be why
            source_columns = {"run": run.id, "report": f"reports/{run.id}/{RANKS_FILE}"}
            rows = ({name: value for name, value in row.items() if name != "boot"} for row in landed.rows)
            read.tables["ranks"] = [row | source_columns for row in rows]
        reports = [file.name for file in reports_of(self._folder, run)]
        if run.state is not State.DONE:  # it has a reason of its own
            if NODE_ARCHIVES in run.reports and landed.rows and not reports:
                read.report("warning", "its nodes packed no report: what its ranks had recorded is lost")
            return
        if landed.crowded_cores_sentence is not None:
            fix = "bind each to its own: `resources: {cpus_per_task: N}`, or the launcher's own option"
            read.report("warning", landed.crowded_cores_sentence, fix, file=f"reports/{run.id}/{RANKS_FILE}")
        if (skew := landed.start_skew_sentence(run.started, run.ended)) is not None:
            fix = "the launcher, or what it loads for each rank, takes that long: column start_delay_s of table ranks"
            read.report("warning", skew, fix, file=f"reports/{run.id}/{RANKS_FILE}")
        self._report_missing_reports(read, reports)
        missing = self._report_missing_ranks(read, reports, landed)
        # warn of ranks whose traces have fewer iterations than others'
        for report, sentence in validity.reports_ended_early(read.tables.get("iterations", ())):
            read.report("warning", sentence, f"see how that rank ended: {_LOGS.format(read.run.id)}", file=report)
        self._judge_losses(read, len(reports), self._recipe.allow_missing - missing)
        if (twice := second_start(self._folder, run.id)) is not None:
            fact = {"key": "started_again", "value": None, "unit": None, "text": twice}
            read.add("facts", [fact], f"reports/{run.id}/{AGAIN}")
        self._compare_counters(read)
        figures = self._read_figures(read, home / "stdout")
        self._read_conditions(read, home / CONDITIONS_FILE)
        self._check_validity(read, figures)

    def _add_report(self, read: _RunResult, file: Path, report: Report, part: FileToRead) -> None:
        source = str((file.parent / part.source).relative_to(self._folder.path))
        for table, data in report.tables.items():
            if part.reads_table(table):
                rows = table_rows(table, data)
                read.add(table, select_useful_source_rows(rows) if table == "source_metrics" else rows, source)
        name = str(file.relative_to(self._folder.path))
        window = self._windowed_timeline(read.run)
        problems = [p for p in report.problems if window is None or not _ENDED_EARLY.search(p.message)]
        facts = table_rows("facts", report.tables.get("facts", []))
        recorded_s = next((row["value"] / 1e9 for row in facts if row["key"] == "duration_ns"), None)
        phases = table_rows("phases", report.tables.get("phases", []))
        if window is not None and validity.is_recorded_to_its_end(window, recorded_s, phases):
            problems = [p for p in problems if not _CUT_OFF.search(p.message)]
        read.problems += [(name, p.level, p.message, p.fix) for p in problems]
        read.lost += [p.message for p in problems if p.is_loss]
        read.unreadable += [p.message for p in problems if p.severity == "error" and not p.is_loss]
        if window is None or not report.tables:
            return
        if gap := window_gap(window, len(recording_files_from(file)), recorded_s):
            gap = gap if (rank := rank_of(file.name)) is None else f"rank {rank}: {gap}"
            read.problems.append((name, "warning", gap, f"ask for less, or run longer: {_LOGS.format(read.run.id)}"))
            read.lost.append(gap)

    def _windowed_timeline(self, run: RunRow) -> TimelinePass | None:
        """The pass of a run, where it records a part of the program."""
        passes = (each for each in passes_of(self._recipe) if each.name == run.pass_name)
        return next((each for each in passes if each.kind == "timeline" and each.is_windowed), None)

    def _report_missing_reports(self, read: _RunResult, reports: Sequence[str]) -> None:
        run = read.run
        if (reason := self._unreduced.get(run.id)) is not None:
            fix = f"`nsw retry {run.id}` reduces it again, `nsw fetch {run.id}` downloads the report itself"
            read.report("error", f"its report was not reduced on the site: {reason}", fix)
        elif run.reports and not reports:
            window = self._windowed_timeline(run)
            question = window and empty_window(window)
            reason = f": {question}" if question else ""
            fix = f"see its output: {_LOGS.format(run.id)}"
            read.report("error", f"{run.tool or 'the profiler'} left no report{reason}", fix)

    def _report_missing_ranks(self, read: _RunResult, reports: Sequence[str], landed: RankLocations) -> int:
        """Report the processes and nodes that left no report; return how many, which no figure of the run counts."""
        run = read.run
        fix = f"`nsw logs {run.id}` may say why, `nsw retry {run.id}` measures it again"
        allowed = self._recipe.allow_missing
        if without := missing_nodes(reports, landed.nodes):
            nodes = f"node{'s' if len(without) > 1 else ''} {', '.join(map(str, without))} of {landed.nodes}"
            read.report("warning" if len(without) <= allowed else "error", f"no report of {nodes}", fix)
        missing, total = missing_ranks(reports, expected_ranks(self._recipe, run.pass_name, landed.local_ranks))
        if missing:
            on_node = ", nor one of a node that could not pack" if NODE_ARCHIVES in run.reports else ""
            fix = f"a process that ends by a signal or by _exit leaves none{on_node}; {fix}"
            severity = "warning" if len(missing) <= allowed else missing_rank_severity(run.tool)
            read.report(severity, missing_ranks_sentence(missing, total), fix)
        return len(without) + len(missing)

    def _judge_losses(self, read: _RunResult, reports: int, allowed: int) -> None:
        """Make it an error that more reports are incomplete than the recipe allows, and else a warning.

        Args:
            read: The run.
            reports: How many reports it has; what cannot be read is allowed where another can.
            allowed: How many may be incomplete beside those that are not there.
        """
        unreadable = {report for report, _, message, _ in read.problems if message in read.unreadable}
        messages = {*read.lost, *(read.unreadable if len(unreadable) < reports else ())}
        incomplete = {report for report, _, message, _ in read.problems if message in messages}
        severity = "error" if len(incomplete) > allowed else "warning"
        read.problems = [
            (report, severity if message in messages else other, message, fix)
            for report, other, message, fix in read.problems
        ]

    def _compare_counters(self, read: _RunResult) -> None:
        """Compare what a counters pass measured with what it was asked for: metrics, and launches that were chosen."""
        run = read.run
        passes = passes_of(self._recipe)
        counters_pass = next((p for p in passes if p.name == run.pass_name and p.kind == "counters"), None)
        if counters_pass is None:
            return
        from nsw.analysis.guided import TABLE, match_chosen_launches, unmatched_launch_sentences
        from nsw.analysis.unmeasured import find_unmeasured_metrics, unmeasured_metric_sentences

        metrics, launches = read.tables.get("metrics", []), read.tables.get("launches", [])
        if few := fewer_launches(counters_pass, launches):
            read.report("warning", few, f"ask for fewer, or see how the program ended: {_LOGS.format(run.id)}")
        if dropped := dropped_samples(metrics):
            read.report("warning", dropped, "options: [--pm-sampling-interval=N], with N larger, takes fewer")
        absent = find_unmeasured_metrics(
            counters_pass.metrics, run.tool or "ncu", self._chip, counters_pass.replay, metrics, launches
        )
        sentences_and_fixes = unmeasured_metric_sentences(absent)
        rows = load_rows(self._folder, TABLE) if counters_pass.is_guided else []
        if chosen := [row for row in rows if row["run"] == run.id]:
            compared = match_chosen_launches(chosen, launches)
            read.tables[TABLE] = [{**row, "run": run.id} for row in compared]
            sentences_and_fixes += unmatched_launch_sentences(compared)
        for text, fix in sentences_and_fixes:
            read.report("warning", text, fix)
        read.not_as_asked = [text for text, _ in sentences_and_fixes]

    def _check_validity(self, read: _RunResult, figure_rows: Sequence[Mapping[str, Any]]) -> None:
        """Report the recipe's checks that do not hold; of an invalid run no row is left but its figures, aside."""
        run = read.run
        if not self._recipe.check or not run.repeat:
            return
        for failure in failed_checks(
            self._recipe.check, self._folder.reports / run.id, figure_rows, profiled=run.tool is not None
        ):
            file = failure.file and f"reports/{run.id}/{failure.file}"
            if failure.undecided:
                read.report("warning", failure.sentence, f"`nsw retry {run.id}` runs it again", file=file)
                continue
            fix = f"`nsw retry {run.id}` runs it again; where the recipe's check is wrong, correct it and `nsw reread`"
            read.report("error", failure.sentence, fix, file=file)
            read.invalid.append(failure.sentence)
        if read.invalid:
            kept = {INVALID_FIGURES: read.tables.get("figures", []), "ranks": read.tables.get("ranks", [])}
            read.tables = {table: rows for table, rows in kept.items() if rows}

    def _read_figures(self, read: _RunResult, output: Path) -> list[dict[str, Any]]:
        """Find the figures in what a run printed; that a required one is not there is an error, of another a note."""
        if not output.exists():
            return []
        source = str(output.relative_to(self._folder.path))
        requested_figures = self._recipe.app.figures
        rows = read_figure_rows(output, requested_figures)
        columns = ("name", "value", "unit", "matches")
        values = ({name: row[name] for name in columns} for row in rows if row["value"] is not None)
        read.add("figures", values, source)
        for row in (row for row in rows if row["value"] is None):
            figure = requested_figures[row["name"]]
            read.lacking += figure.required
            read.problems.append((source, *_missing_figure_problem(row, figure, read.run.id)))
        return rows

    def _read_conditions(self, read: _RunResult, file: Path) -> None:
        """Read what was sampled beside a run; the energy is a figure, unless the program prints one of that name."""
        if not file.exists():
            return
        source = str(file.relative_to(self._folder.path))
        read.add("conditions", condition_rows(file, start_s=read.run.started, end_s=read.run.ended), source)
        tables = read.tables
        energies = energy_figure_rows(
            tables.get("conditions", ()), tables.get("figures", ()), tables.get("iterations", ())
        )
        read.add("figures", (row for row in energies if row["name"] not in self._recipe.app.figures), source)


def _missing_figure_problem(row: Mapping[str, Any], figure: Figure, run: str) -> tuple[str, str, str | None]:
    """Severity, message and fix of a figure that has no value."""
    name, text = row["name"], row.get("no_number")
    reread = "`nsw reread` (in another file: `--recipe FILE`)"
    if "too_slow" in row:
        what = (
            f"figure {name} was given up: its regex {show_value(figure.regex)} takes too long on the program's output"
        )
        fix = f"write it without a repetition of a repetition, such as (a+)+, then {reread}"
        return "error" if figure.required else "warning", what, fix
    if not figure.required and not row["matches"] and text is None:
        return "note", f"without figure {name}, which is not required", None
    reason = "is not a number: nan or inf" if row["matches"] else "was not found"
    if text is not None:
        reason = f"is not a number: its regex matched {show_value(text)}"
    what = f"figure {name} {reason} in the program's output"
    if not figure.required:
        return "warning", what, None
    if text is None:
        aim = "correct it"
    elif re.fullmatch(r"-?\d+,\d+", text):  # ([\d.]+) would take 3 of 3,14
        aim = "let the program print a point for the decimal comma (`LC_ALL: C` in app.env can do it),"
        reread = "run it again"
    else:
        aim = "put the number alone into its group, such as ([\\d.]+),"
    fix = (
        f"compare the recipe's regex with what `nsw logs {run}` shows, {aim} and {reread};"
        " `required: false` allows a run without it"
    )
    return "error", f"required {what}", fix


def reading(folder: CampaignFolder, ledger: Ledger) -> Generator[tuple[int, int]]:
    """Read the reports of every collected run and write the tables, a run at a time.

    Yields how many runs are read, of how many. A run counts as read once its rows are in the files: ended early, some
    are read again later.
    """
    reader = _Reader(folder, ledger)
    waiting = ledger.runs(states=(State.DONE, State.FAILED), reading=Reading.COLLECTED)
    batch: list[_RunResult] = []
    flushed = time.monotonic()
    with closing(reader.read(waiting, reader.options)) as every:  # its processes end with it
        for number, read in enumerate(every, 1):
            reader.check(read)
            batch.append(read)
            yield number, len(waiting)
            if time.monotonic() - flushed > _FLUSH_EVERY_S:
                _write_batch(folder, ledger, batch)
                batch, flushed = [], time.monotonic()
    _write_batch(folder, ledger, batch)


def read_reports(folder: CampaignFolder, ledger: Ledger, progress: Callable[[int, int], object]) -> None:
    """Read the reports of every collected run and write the tables, as `reading` does, until all are read.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        progress: Called after each run with (runs read, runs in all).
    """
    for done, total in reading(folder, ledger):
        progress(done, total)


def read_traces(
    folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow], names: Collection[str]
) -> Iterator[tuple[RunRow, dict[str, list[dict[str, Any]]], list[tuple[str, str | None]]]]:
    """Read rows of traces from collected reports, run after run; nothing is written.

    Args:
        folder: The campaign, which nsw must act for: it names the program that exports reports.
        ledger: Its ledger.
        runs: The runs whose reports are read.
        names: The tables to read.

    Returns:
        An iterator over each run with its rows by table, and the errors of its reports, each with what to do.

    Raises:
        CampaignError: The campaign was made elsewhere.
    """
    try:
        folder.require_trust()  # it names the program that exports reports
    except CampaignError as fault:
        files = [file for run in runs for file in reports_of(folder, run)]
        if files and not any(map(is_readable, files)):
            message = f"{fault.message}, and its reports need an nsys: none is found here (NSW_NSYS, PATH)"
            raise CampaignError(message, hint=fault.hint) from None
        raise
    reader = _Reader(folder, ledger)
    options = replace(reader.options, tables=frozenset(names), max_unpacked=folder.max_unpacked, limits=folder.limits)
    return (
        (read.run, read.tables, [(message, fix) for _, severity, message, fix in read.problems if severity == "error"])
        for read in reader.read(runs, options)
    )


def reading_fault(
    folder: CampaignFolder, ledger: Ledger, run: RunRow, progress: Callable[[int, int], object]
) -> str | None:
    """Read the reports, and return what is wrong with those of one run; None when nothing is.

    The canary is judged by it.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        run: The run to judge.
        progress: Called after each run with (runs read, runs in all).
    """
    read_reports(folder, ledger, progress)
    wrong = [message for id_, _, severity, message, _ in ledger.problems() if id_ == run.id and severity == "error"]
    kind = run.pass_kind
    if not wrong and kind == "counters" and run.repeat:
        measured = any(row["run"] == run.id for row in load_rows(folder, "metrics"))
        wrong = [] if measured else ["its report holds no metric: did the kernel filter match anything?"]
    return "; ".join(wrong) or None


def reports_of(folder: CampaignFolder, run: RunRow) -> list[Path]:
    """The files that a run's profiler left and that are read, in order of their names."""
    home = folder.reports / run.id
    if not home.is_dir():
        return []
    return [home / n for n in files_to_read(p.name for p in home.iterdir() if _is_report(p))]


def expected_ranks(recipe: Recipe, pass_name: str, local_ranks: Mapping[int, int]) -> frozenset[int] | None:
    """The ranks that a pass profiles where each process has its own profiler; None: they were not counted.

    Args:
        recipe: The recipe.
        pass_name: The pass.
        local_ranks: The ranks of the run as they landed, each with its place on its node; empty: not known.
    """
    pass_ = next((pass_ for pass_ in recipe.passes if pass_.name == pass_name), None)
    if pass_ is None or pass_.kind == "baseline":
        return None
    ranks = counted_ranks(pass_, each=True) if pass_.kind == "counters" else pass_.ranks
    if ranks == "first":
        return frozenset({0})
    if is_share(ranks):
        ranks = drawn_ranks(ranks, len(local_ranks), recipe.name) if local_ranks else "all"
    if not isinstance(ranks, str):
        return frozenset(ranks or ())
    profiled = (rank for rank, local in local_ranks.items() if ranks == "all" or local == 0)
    return frozenset(profiled) or None


def _is_report(path: Path) -> bool:
    """Whether a profiler left this file; an nsw that was killed leaves hidden parts of files."""
    return path.is_file() and path.name not in KEPT_FILES and not path.name.startswith(".")


def _write_batch(folder: CampaignFolder, ledger: Ledger, batch: Sequence[_RunResult]) -> None:
    if not batch:
        return
    merged: dict[str, list[dict[str, Any]]] = {
        path.stem: [] for path in table_files(folder) if path.stem != EARLIER_FIGURES
    }
    for read in batch:
        for table, rows in read.tables.items():
            merged.setdefault(table, []).extend(rows)
    replace_rows(folder, merged, [read.run.id for read in batch], ledger.meta(NOTE))
    with ledger.transaction():
        for read in batch:
            ledger.update_tasks([read.run.id], reading=read.reading)
            if read.invalid:
                more = f" (and {plural(len(read.invalid) - 1, 'more check')})" if len(read.invalid) > 1 else ""
                ledger.update_tasks([read.run.id], state=State.INVALID, reason=f"{read.invalid[0]}{more}")
            ledger.set_problems(read.run.id, read.problems, read.not_as_asked)
