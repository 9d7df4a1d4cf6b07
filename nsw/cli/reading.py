"""`nsw read`: reports of any profiler as tables, or the rows of them that a person asks for."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

from nsw.analysis.blocks import Block, Finding, Note, Table
from nsw.analysis.iteration_lanes import TIMELINE, iteration_lanes
from nsw.apart import can_fork, run_isolated
from nsw.cli.application import command
from nsw.cli.options import Plot, ReadingLimits, ReadTarget, argument, option, size_option
from nsw.cli.output import Target, print_on_stderr, several_tables_error
from nsw.errors import Exit, LimitError, NswError, UsageError, did_you_mean
from nsw.present import emit
from nsw.present.emit import flat_kernels, flat_points
from nsw.present.problems import Merged, show_merged
from nsw.present.rows_view import show_report, show_rows
from nsw.present.terminal import TextTable, console, page_output
from nsw.present.untrusted_text import as_json, print_untrusted
from nsw.quantities import size
from nsw.safe_files import make_file
from nsw.tables import TABLES, full_rows
from nsw.tables.exported import exported_tables_hint
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.of_reports import ReadReport
    from nsw.analysis.summary import Summary
    from nsw.readers.detect import ReportSearch
    from nsw.readers.model import Report

_SOURCES: Final = frozenset({"metrics", "launches", "rules", "gpu_summary"})  # what they are computed from
_MOST_ROWS: Final = 20
_OF_TIMELINE: Final = ("gpu_trace", "nvtx_trace", "iteration_trace", "gpu_metric_trace", "cpu_trace", "collectives")
_MADE_OF: Final = {
    "hotspots": "gpu_summary",
    "copies": "gpu_summary",
    "api": "api_summary",
}  # what a report has of a campaign's table
_OF_ANSWER: Final = {
    "results": "anything measured",
    "stragglers": "timelines of four ranks or more that meet in collectives",
    "iteration_times": "timelines in which something repeats",
}  # tables computed of an answer, and what they need
_BLOCKS: Final = {"iteration_times": "iterations"}  # of the answer, which have another name than their rows' table
_GAPS_OF_CAUSE: Final = {"data-loader": ("input", "spawn")}  # the rows that prove a finding
_SIDES: Final = 4  # reports whose conditions find room beside each other
_TEST: Final = re.compile(r"(\w+)\s*(!=|>=|<=|=|~|>|<)\s*(.*)", re.DOTALL)
_STDIN: Final = "<stdin>"
_PIECE: Final = 1 << 20
_TOLD_EVERY_S: Final = 0.5


@command("nsw read report.sqlite --table gpu_summary -o gpu.csv")
def read(
    files: Annotated[
        list[Path] | None,
        argument(
            help="Reports of nsys (.nsys-rep, .sqlite), ncu (.ncu-rep, .csv), nvprof, PyTorch, perf and others"
            " (--formats lists all), also packed with gzip; - is standard input."
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        option(
            "--table",
            "-t",
            help="Only this table, such as gaps; may be repeated. Traces (gpu_trace, api_trace ...), kernels and"
            " roofline are made only on request.",
        ),
    ] = None,
    steps: Annotated[
        str | None, option("--steps", help="The NVTX range that marks an iteration of the program.")
    ] = None,
    where: Annotated[
        list[str] | None,
        option(
            "--where",
            metavar="TEST",
            help="Only rows with name~gemm, kind=memcpy, calls>10 (times in ns); may be repeated.",
        ),
    ] = None,
    launch: Annotated[int | None, option("--launch", help="Only rows of this launch (Nsight Compute).")] = None,
    top: Annotated[int | None, option("--top", min=1, help="At most this many rows of each table.")] = None,
    full: Annotated[bool, option("--full", help="All findings and tables; on a terminal through PAGER.")] = False,
    formats: Annotated[bool, option("--formats", help="List the formats that can be read.")] = False,
    plot: Plot = None,
    max_unpacked: Annotated[
        str | None,
        option(
            "--max-unpacked",
            metavar="SIZE",
            help="The most that a packed file may unpack to, such as 20G; larger ones are refused.",
        ),
    ] = None,
    *,
    target: ReadTarget,
    limits: ReadingLimits,
) -> int:
    """Read reports of any profiler: what they show, and their tables."""
    from nsw.readers.detect import ReportSearch, read_many, report_bytes, report_of_limit_error, takes_long_to_read
    from nsw.readers.model import Options

    tests = _row_conditions(where or (), launch)  # what is wrong with them is reported before a large report is read
    if formats:
        return _list_formats(target)
    if not files:
        hint = "`nsw read FILE...`, or `... | nsw read -`; `nsw read --formats` lists what can be read"
        raise UsageError("no file was named", hint=hint)
    for file in files:
        _refuse_campaign_name(file)
    request = _Request(table or [], tests, top, full, plot, target)
    target.check_plot(plot)
    wanted_tables = request.wanted_tables()
    largest = size_option("--max-unpacked", max_unpacked)
    options = Options(wanted_tables, max_unpacked=largest, steps=steps, limits=limits)
    search = ReportSearch()
    with _standard_input(files) as standard_input:
        paths = list(search.find_files_to_read(standard_input.files))

        def answer(reports: Iterable[Report]) -> int:
            return request.answer(standard_input.with_names(reports), search, several=len(paths) > 1)

        forks, is_long = can_fork(), takes_long_to_read(paths)
        if len(paths) > 1 or not paths or not forks:
            reports_read = read_many(paths, options, 1 if forks and not is_long else None)
            return answer(_with_progress(reports_read, len(paths) if is_long else 0))
        # one file is read and printed in one process with limits: its tables need not be sent to another
        path = paths[0]
        try:
            return run_isolated(lambda: answer(read_many([path], options)), subject=f"reading {path}",
                                size=report_bytes(path), limits=options.limits)  # fmt: skip
        except LimitError as fault:
            return answer([report_of_limit_error(path, fault)])


@dataclass(frozen=True, slots=True)
class _Request:
    """What a person asks for of the reports."""

    tables: list[str]
    tests: Sequence[_Condition]
    top: int | None
    full: bool
    plot: str | None
    target: Target

    def wanted_tables(self) -> frozenset[str] | None:
        """The tables that have to be read; None: all.

        Raises:
            UsageError: There is no such table, or rows are chosen for a plot.
        """
        names = (*TABLES, *emit.COMPUTED)
        for name in self.tables:
            if name not in names:
                raise UsageError(
                    f"there is no table {name}", hint=did_you_mean(name, names) or f"tables: {', '.join(names)}"
                )
        computed = _computed_table(self.tables)
        if self.target.is_of_plot and (self.tables or self.tests or self.top or self.full):
            raise UsageError(
                "--table, --where, --launch, --top and --full choose rows, and a plot has none",
                hint="`nsw read FILE --plot NAME -o plot.svg`",
            )
        if self.plot == TIMELINE:
            return frozenset(_OF_TIMELINE)
        if computed in _OF_ANSWER:
            return None
        return _SOURCES if computed else frozenset(self.tables) if self.tables else None

    def answer(self, reports: Iterable[Report], search: ReportSearch, *, several: bool) -> int:
        """Print or write what was asked for; the exit code."""
        computed, target, top = _computed_table(self.tables), self.target, self.top
        table_check = _TableCheck(self.tables, several=several)
        recognised = search.drop_unrecognised_reports(reports)
        if target.is_of_plot:
            chosen = _Reports(recognised)
            code = _put_plot(chosen, self.plot, target)
        elif computed:
            chosen = _Reports(_filter_rows(recognised, self.tests, None))
            write_table = _put_table_of_answer if computed in _OF_ANSWER else _put_computed_table
            code = write_table(computed, chosen, target, top)
        else:
            chosen = _Reports(_filter_rows(table_check.check_reports(recognised), self.tests, top), search=search)
            is_whole = not (self.tables or self.tests or top)
            max_rows = _MOST_ROWS if top is None else top
            _put_tables(chosen, self.tables, target, max_rows=max_rows, is_whole=is_whole, full=self.full)
            code = Exit.GOOD
        return max(code, chosen.code, _report_search(search), table_check.report_missing_tables())


def _refuse_campaign_name(file: Path) -> None:
    """Raise where a campaign is named in place of a file.

    Raises:
        UsageError: It is the id of a campaign, or its beginning.
    """
    from nsw.engine import folder as folders

    name = str(file)
    if not os.path.lexists(file) and any(f.id.startswith(name) for f in folders.existing(folders.root(None))):
        raise UsageError(f"{name} is a campaign, and no file", hint=f"`nsw summarize {name}` has its answer")


@dataclass(slots=True)
class _Reports:
    """The reports, once; what was wrong with those that were looked at so far."""

    reports: Iterable[Report]
    code: int = Exit.GOOD
    problems: Merged = field(default_factory=Merged)
    search: ReportSearch | None = None  # that found them
    counts_notes: bool = False  # of tools, instead of printing them
    notes: Counter[str] = field(default_factory=Counter)  # by tool

    def __iter__(self) -> Iterator[Report]:
        for report in self.reports:
            for problem in report.problems:
                if problem.is_note and self.counts_notes and report.tables:
                    self.notes[report.tool or ""] += 1
                    continue
                self.problems.add(report.path, problem.level, problem.message, problem.fix, line=problem.line)
                if problem.severity == "error":
                    self.code = Exit.SOME_FAILED
            yield report

    def print_problems(self) -> None:
        """Say on stderr what is wrong: problems have no place in a file of rows."""
        for _, text in self.problems.lines():
            print_on_stderr(text)


def _put_tables(
    reports: _Reports, tables: list[str], target: Target, *, max_rows: int, is_whole: bool, full: bool
) -> None:
    answers = is_whole and not full
    if not target.is_of_rows:
        with target.stdout_to_output():
            if target.format == "json":
                _print_json(reports, kernels=not tables, is_whole=is_whole)
            elif target.format == "html":
                _print_page(reports, answers=answers)
            elif answers:
                _show_answer(reports)
            else:
                _show_reports(reports, kernels=not tables, max_rows=max_rows, answers=full and is_whole)
        return
    if target.format == "parquet" and target.output is None:
        raise UsageError("--format parquet writes files", hint="name a file or a folder with --output")
    if target.is_folder:
        _write_folder(reports, target)
    else:
        _put_one_table(reports, tables, target)


def _put_plot(reports: _Reports, name: str | None, target: Target) -> int:
    """Write a plot of what the reports show; a timeline is of their traces.

    Raises:
        UsageError: There is no such plot.
    """
    from nsw.analysis.answer.registry import answer_blocks
    from nsw.present.plots import plot_of

    if name == TIMELINE:
        blocks: list[Block] = _timeline_blocks(reports)
    else:
        looked_at = [_as_read_report(report) for report in reports if report.tables]
        blocks = list(answer_blocks(_summarize(looked_at))) if looked_at else []
    reports.print_problems()
    target.put_plot(plot_of(blocks, name, [TIMELINE]))
    return Exit.GOOD


def _timeline_blocks(reports: Iterable[Report]) -> list[Block]:
    """One iteration of the reports together, as a block; none where they have no iterations."""
    traces: dict[str, list[dict[str, Any]]] = {name: [] for name in _OF_TIMELINE}
    names = []
    for report in reports:
        names.append(Path(report.path).name)
        for name in _OF_TIMELINE:
            traces[name] += (row | {"report": report.path} for row in full_rows(name, report.tables.get(name, [])))
    lanes = iteration_lanes(names[0] if len(names) == 1 else plural(len(names), "report"), *traces.values())
    return [lanes] if lanes else []


def _report_search(search: ReportSearch) -> int:
    """Report on stderr how many files were no reports; 1 where the folders contain no report at all."""
    if not search.folders:
        return Exit.GOOD
    if other_files := _other_files_text(search):
        print_on_stderr(other_files)
    folder_names = ", ".join(str(f) for f in search.folders)
    if search.reports == 0:
        hints = dict.fromkeys(filter(None, map(exported_tables_hint, search.folders)))
        print_on_stderr("\n".join([f"no report in {folder_names}", *(f"  hint: {hint}" for hint in hints)]))
    return Exit.GOOD if search.reports else Exit.SOME_FAILED


def _other_files_text(search: ReportSearch) -> str:
    """How many files of the folders were no reports; nothing where all were."""
    count = len(search.searched) - search.reports
    names = ", ".join(str(folder) for folder in search.folders)
    return f"{plural(count, 'other file')} in {names}: no known report format" if count else ""


@dataclass(slots=True)
class _TableCheck:
    """Of several reports some may lack a table that was asked for; that all do is an error."""

    tables: list[str]
    several: bool
    lacking: int = 0
    with_rows: int = 0

    def check_reports(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports; one of several that has no rows of these tables, and no other fault, has a warning."""
        from nsw.readers.model import LackReason

        for report in reports:
            self.with_rows += any(len(t) for t in report.tables.values())
            if self.several and report.lack is LackReason.TABLES:
                self.lacking += 1
                report.problems = [replace(p, severity="warning") for p in report.problems]
            yield report

    def report_missing_tables(self) -> int:
        """Say on stderr that no report has the tables; 1 then."""
        if self.with_rows or not self.lacking:
            return Exit.GOOD
        print_on_stderr(f"none of the files has data for {', '.join(self.tables)}")
        return Exit.SOME_FAILED


def _with_progress(reports: Iterator[Report], total: int) -> Iterator[Report]:
    """The reports, with a progress bar on a terminal when there are many."""
    out = console(sys.stderr)
    if not total or not out.is_terminal:
        yield from reports
        return
    from rich.progress import track

    yield from track(reports, "reading", total=total, console=out, transient=True)


def _print_json(reports: Iterable[Report], *, kernels: bool, is_whole: bool) -> None:
    """One object, written report by report and row by row: a large trace is never held as text.

    Of whole reports their answer follows, since rows that were chosen have none.
    """
    from nsw.analysis.kernels import kernel_table_of_report
    from nsw.present.summary_view import findings_data, headline_of

    write = sys.stdout.write
    looked_at: list[ReadReport] = []
    write(f'{{"nsw_json": {emit.JSON_VERSION}, "reports": [')
    for number, report in enumerate(reports):
        head: dict[str, Any] = {
            "path": report.path, "tool": report.tool, "format": report.format, "tool_version": report.tool_version,
            "problems": report.problems,
        }  # fmt: skip
        if kernel_rows := kernel_table_of_report(report.tables) if kernels else ():
            head |= {"kernels": kernel_rows}
        write((", " if number else "") + emit.strict_json(head)[:-1] + ', "tables": {')
        for at, (name, data) in enumerate(report.tables.items()):
            write((", " if at else "") + as_json(name) + ": [")
            if isinstance(data, list):
                for row_number, row in enumerate(full_rows(name, data)):
                    write((", " if row_number else "") + as_json(row))
            else:
                for chunk in emit.json_rows(name, data):
                    emit.write_utf8(chunk)
            write("]")
        write("}}")
        if is_whole and _has_answer(report):
            looked_at.append(_as_read_report(report))
    write("]")
    if is_whole:
        summary = _summarize(looked_at) if looked_at else None
        answer = {"headline": summary and headline_of(summary), "findings": findings_data(summary) if summary else []}
        write(", " + emit.strict_json(answer)[1:-1])
    write("}\n")


def _put_one_table(reports: _Reports, tables: list[str], target: Target) -> None:
    report_list = list(reports)
    present = {name for r in report_list for name, data in r.tables.items() if len(data)}
    chosen_names = tables or sorted(present - {"facts"} or present)  # facts are beside a table, as its description
    if len(chosen_names) != 1:
        raise several_tables_error(target.format, chosen_names)
    (name,) = chosen_names
    if target.format == "parquet" and target.output is not None:
        with emit.ParquetFiles({name: target.output}) as files:
            for report in report_list:
                _add_tables(files, report, {name})
        print_untrusted(f"{target.output}: {plural(files.written.get(name, 0), 'row')}")
    else:
        report_rows = (
            row | {"report": r.path} for r in report_list if name in r.tables for row in full_rows(name, r.tables[name])
        )
        target.put_rows(report_rows, TABLES[name].column_names)
    reports.print_problems()


def _write_folder(reports: _Reports, target: Target) -> None:
    """Every table of all reports as FOLDER/TABLE.csv or .parquet, report by report: what is held is one report."""
    folder = target.folder()
    kind = emit.ParquetFiles if target.format == "parquet" else emit.CsvFiles
    with kind({name: folder / f"{name}.{target.format}" for name in TABLES}) as files:
        for report in reports:
            _add_tables(files, report, set(TABLES))
    reports.print_problems()
    for name, count in files.written.items():
        print_untrusted(f"{folder / name}.{target.format}: {plural(count, 'row')}")


def _add_tables(files: Any, report: Report, names: set[str]) -> None:
    for name in names & report.tables.keys():
        files.add(name, report.tables[name], report.path)


def _show_answer(reports: _Reports) -> None:
    """The first screen of all reports together, and what is wrong with them."""
    from nsw.present.summary_view import show_summary

    out = console()
    brief = out.is_terminal  # where the headline is to stay in sight; `--full` has the hints
    looked_at = []
    reports.counts_notes = True
    for report in reports:
        if _has_answer(report):
            looked_at.append(_as_read_report(report))
        elif report.tables:
            print_untrusted(f"{Path(report.path).name}: nothing was measured")
    if looked_at:
        from nsw.analysis.of_reports import reports_by_case

        files = {
            renamed.name: report.name for renamed, report in zip(_named_by_files(looked_at), looked_at, strict=True)
        }
        cases = reports_by_case(_named_by_files(looked_at))

        summary = _summarize(looked_at)

        def evidence_command(block: Block) -> str | None:
            case = next((case for evidence in block.evidence for case in evidence.cases), "")
            names = [_MADE_OF.get(evidence.table, evidence.table) for evidence in block.evidence]
            members = cases.get(case) or next(iter(cases.values()))
            report_path = files.get(members[0].name, members[0].name)
            lacks_counters = (
                isinstance(block, Finding) and "`ncu " in block.text and not any(r.kernels for r in members)
            )
            if lacks_counters and (counters := _counters_beside(report_path)):
                return f"nsw read {shlex.join([report_path, counters])}"
            for report in members:
                tables = {name for name, data in report.tables.items() if data}
                tables |= {"kernels", "roofline"} if report.kernels else set()
                tables |= {"stragglers"} if case in summary.by_id and summary.by_id[case].stragglers else set()
                chosen = "".join(f" --table {name}" for name in dict.fromkeys(names) if name in tables)
                if isinstance(block, Finding) and (gaps := _GAPS_OF_CAUSE.get(block.cause or "")) and "gaps" in names:
                    causes = [row["cause"] for row in full_rows("gaps", report.tables.get("gaps", []))]
                    if named := [cause for cause in gaps if cause in causes]:
                        test = f"cause={named[0]}" if len(named) == 1 else f"cause~{'|'.join(named)}"
                        chosen = f" --table gaps --where {shlex.quote(test)}"
                if isinstance(block, Finding) and "iterations" in tables and case in summary.by_id:
                    chosen = _slow_iterations_options(summary.by_id[case], block.cause) or chosen
                if chosen:
                    sources = members if report.kernels else [report]  # of kernels a timeline has the times
                    paths = [shlex.quote(files.get(source.name, source.name)) for source in sources]
                    return f"nsw read {' '.join(dict.fromkeys(paths))}{chosen}"
            return None

        def whole_table_command(table: Table) -> str:
            command = evidence_command(table) if len(looked_at) == 1 else None
            if command is None:
                return "--full" if len(looked_at) == 1 else "--table results"
            rows = len(looked_at[0].tables.get(command.rpartition(" ")[2], ()))
            return f"{command} --top {rows}" if rows > _MOST_ROWS else command

        notes = "".join(f", and {plural(count, 'note')} of {tool}" for tool, count in reports.notes.items())
        next_command = f"`--full` prints all tables{notes}"
        below = [text for _, text in reports.problems.lines(brief=brief)]
        below += [text] if reports.search and (text := _other_files_text(reports.search)) else []
        show_summary(out, summary, full=False, next_command=next_command, proof=evidence_command,
                     rows_command=whole_table_command, below=below)  # fmt: skip
    show_merged(out, reports.problems, brief=brief and bool(looked_at))


def _counters_beside(report_path: str) -> str | None:
    """The file with counters of kernels that lies beside a report under its name; None where none does."""
    from nsw.readers.detect import detect_format
    from nsw.readers.model import Sample

    path = Path(report_path)
    for file in map(path.with_suffix, (".csv", ".ncu-rep")):
        with suppress(OSError):  # it is not there, or nobody may read it
            if (detected := detect_format(Sample(file))) is not None and detected[0].tool == "ncu":
                return str(file)
    return None


def _slow_iterations_options(case: CaseSummary, cause: str | None) -> str:
    """The options that print the iterations a finding calls slow; empty where it is of something else."""
    usual_ns = case.iterations.med_ns if case.iterations else 0.0
    slower_ns = {
        "slow-iteration": (case.iterations.most_ns - usual_ns) if case.iterations else 0.0,
        "periodic-slow-iteration": case.idle_gpu.use.get("slower_ns", 0.0) if case.idle_gpu else 0.0,
    }.get(cause or "", 0.0)
    bound = float(f"{usual_ns + slower_ns / 2:.3g}")
    return f" --table iteration_trace --where 'duration_ns>{bound:.0f}'" if slower_ns else ""


def _has_answer(report: Report) -> bool:
    """Whether there is an answer: figures, or that its program failed."""
    return report.failed is not None or _has_figures(report)


def _has_figures(report: Report) -> bool:
    """Whether anything was measured: a command and versions are facts without figures."""
    facts = full_rows("facts", report.tables.get("facts", []))
    tables = (data for name, data in report.tables.items() if name != "facts")
    return any(map(len, tables)) or any(fact["value"] is not None for fact in facts)


def _as_read_report(report: Report) -> ReadReport:
    """The parts of a report that an answer uses."""
    from nsw.analysis.kernels import kernel_table_of_report
    from nsw.analysis.of_reports import LOOKED_AT, ReadReport

    tables = {name: report.tables[name] for name in LOOKED_AT if name in report.tables}
    return ReadReport(report.path, tables, kernel_table_of_report(report.tables), report.failed)


def _named_by_files(reports: Sequence[ReadReport]) -> list[ReadReport]:
    """The reports by their files' names."""
    return [replace(report, name=name) for report, name in zip(reports, _distinct_names(reports), strict=True)]


def _summarize(reports: Sequence[ReadReport]) -> Summary:
    from nsw.analysis.of_reports import summarize_reports

    named_reports = _named_by_files(reports)
    return summarize_reports(
        named_reports[0].name if len(named_reports) == 1 else plural(len(named_reports), "report"), named_reports
    )


def _report_conditions(report: Report) -> dict[str, str]:
    """The hardware and software that a report says it was measured with."""
    facts = full_rows("facts", report.tables.get("facts", []))
    chips = dict.fromkeys(row["text"] for row in facts if row["key"] == "gpu_name" and row["text"])
    tool = " ".join(filter(None, (report.tool, report.tool_version)))
    return {
        name: value for name, value in {"chip": " | ".join(chips), "tool": tool, "report": report.path}.items() if value
    }


def _print_page(reports: _Reports, *, answers: bool) -> None:
    """The answer as a page, with the tables of the reports; only these where rows of them were asked for."""
    from nsw.analysis.answer.registry import answer_blocks
    from nsw.analysis.of_reports import reports_by_case
    from nsw.present.page import EvidenceRows, page

    looked_at: list[ReadReport] = []
    rows_by_table: dict[str, list[dict[str, Any]]] = {}
    lengths: dict[str, int] = {}
    conditions: list[tuple[str, dict[str, str]]] = []
    reports.counts_notes = answers
    for report in reports:
        for name, data in report.tables.items():
            table_rows = rows_by_table.setdefault(name, [])
            table_rows += (
                {"case": Path(report.path).name} | row
                for row in islice(full_rows(name, data), EvidenceRows.max_rows - len(table_rows))
            )
            lengths[name] = lengths.get(name, 0) + len(data)
        conditions.append((Path(report.path).name, _report_conditions(report)))
        if report.tables and answers:
            looked_at.append(_as_read_report(report))
    summary = _summarize(looked_at) if looked_at else None
    case_of = {r.name: case for case, members in reports_by_case(_named_by_files(looked_at)).items() for r in members}
    for row in (row for table_rows in rows_by_table.values() for row in table_rows):
        row["case"] = case_of.get(row["case"], row["case"])
    blocks: list[Block] = list(answer_blocks(summary)) if summary else []
    blocks += [Note("problem", text, tone="warning") for _, text in reports.problems.lines()]
    behind = [
        EvidenceRows(name, page_rows, f"nsw read FILE --table {name}", lengths[name])
        for name, page_rows in sorted(rows_by_table.items())
        if page_rows
    ]
    title = summary.campaign if summary else "Tables of reports"
    sys.stdout.write(page(title, blocks, behind=behind, conditions=conditions[:_SIDES]))


def _distinct_names(reports: Sequence[ReadReport]) -> list[str]:
    """The files' own names where they differ, else their paths."""
    short = [Path(report.name).name for report in reports]
    return short if len(set(short)) == len(short) else [report.name for report in reports]


def _show_reports(reports: Iterable[Report], *, kernels: bool, max_rows: int, answers: bool) -> None:
    """Print the tables of each report; `answers`: behind the answer of all of them, with every finding."""
    from rich.segment import Segment, Segments

    from nsw.present.summary_view import ranked_blocks, show_blocks

    out = console()
    merged = Merged()
    looked_at = []
    with page_output(out) if answers else nullcontext():
        with out.capture() if answers else nullcontext() as printed:
            for report in reports:
                show_report(out, report, max_rows, merged, kernels=kernels, explain=not kernels, notes=kernels)
                if answers and _has_answer(report):
                    looked_at.append(_as_read_report(report))
        if looked_at:
            show_blocks(out, ranked_blocks(_summarize(looked_at), full=False), "full")
            out.print()
        if printed is not None:
            out.print(Segments([Segment(printed.get())]), end="")
    show_merged(out, merged, repeated=True)


def _list_formats(target: Target) -> int:
    from nsw.readers.registry import all_formats

    rows: list[dict[str, Any]] = [
        {"format": f.id, "tool": f.tool, "what": f.meaning, "versions": f.versions, "not_read": f.unread}
        for f in all_formats()
    ]
    heads = ("format", "tool", "what")

    def show() -> None:
        if target.format == "html":
            from nsw.present.page import EvidenceRows, page

            sys.stdout.write(
                page("Formats that nsw reads", [], behind=[EvidenceRows("formats", rows, "nsw read --formats")])
            )
        else:
            console().print(TextTable(None, heads, ([r[h] for h in heads] for r in rows)))

    target.put_data(rows, list(rows[0]), data=lambda: {"formats": rows}, show=show)
    return Exit.GOOD


# --- tables that are computed from the counters of a report -------------------------------------------------


def _computed_table(tables: Sequence[str]) -> str | None:
    """The computed table that is asked for; None: those of the reports themselves are.

    Raises:
        UsageError: It is asked for beside another table.
    """
    computed_names = [name for name in tables if name in emit.COMPUTED]
    if not computed_names:
        return None
    if len(set(tables)) > 1:
        raise UsageError(
            f"table {computed_names[0]} is computed from other tables of the report",
            hint=f"ask for it alone: --table {computed_names[0]}",
        )
    return computed_names[0]


def _put_computed_table(name: str, reports: _Reports, target: Target, top: int | None) -> int:
    """Print or write a computed table, with at most `top` rows of each report; the code is 1 when there are none."""
    from nsw.analysis.of_reports import kernels_of_case, reports_by_case

    rows_of = flat_kernels if name == "kernels" else flat_points
    computed_rows: list[dict[str, Any]] = []
    seen: dict[str | None, Sequence[KernelRow]] = {}
    for members in reports_by_case([_as_read_report(report) for report in reports]).values():
        counted = members[-1].name  # behind its timeline, whose times the answer has too
        kernels = seen[counted] = kernels_of_case(members)[:top]
        computed_rows += [{"report": counted} | row for row in rows_of(kernels)]
    reports.print_problems()
    columns = emit.columns_of(computed_rows)
    if not computed_rows:
        lacks = (
            "the counters of a roofline (metrics: [roofline])" if any(seen.values()) else "hardware counters of kernels"
        )
        print_on_stderr(f"{name}: no rows: none of the files holds {lacks}")
    (target.of_table(name) if target.is_of_rows else target).put_data(
        computed_rows,
        columns,
        data=lambda: {"table": name, "rows": computed_rows},
        show=lambda: _show_computed_table(name, computed_rows, columns, seen),
    )
    return Exit.GOOD if computed_rows else Exit.SOME_FAILED


def _show_computed_table(
    name: str, computed_rows: list[dict[str, Any]], columns: Sequence[str],
    kernels: Mapping[str | None, Sequence[KernelRow]],
) -> None:  # fmt: skip
    from nsw.analysis.answer.kernels import kernel_table_blocks
    from nsw.present.summary_view import show_blocks, show_counters_behind_findings

    if name == "kernels" and computed_rows:
        all_kernels = [kernel for rows in kernels.values() for kernel in rows]
        show_blocks(console(), kernel_table_blocks(all_kernels, limit=None), "always")
        show_counters_behind_findings(console(), kernels if len(kernels) > 1 else {None: next(iter(kernels.values()))})
    elif computed_rows:
        show_rows(console(), name, computed_rows, columns, table_name=name, parameters=())


def _put_table_of_answer(name: str, reports: _Reports, target: Target, top: int | None) -> int:
    """Print or write a table of the answer of all reports together, whole; the code is 1 when it has no rows."""
    from nsw.analysis.answer.registry import answer_blocks
    from nsw.analysis.first_screen import BASES, HEADLINE
    from nsw.present.summary_view import ranked_blocks, show_blocks

    reports.counts_notes = True  # an answer has no more of them
    looked_at = [_as_read_report(report) for report in reports if _has_answer(report)]
    reports.print_problems()
    blocks: list[Block] = []
    answer_rows: list[dict[str, Any]] = []
    if looked_at and name == "results":
        blocks = ranked_blocks(_summarize(looked_at), full=False)
        blocks = [b for b in blocks if isinstance(b, Table) or b.name in {HEADLINE, "legend", *BASES}]
        tables = [block for block in blocks if isinstance(block, Table)]
        answer_rows = [dict(zip((c.name for c in b.columns), row, strict=True)) for b in tables for row in b.rows]
    elif looked_at:
        summary = _summarize(looked_at)
        blocks = [block for block in answer_blocks(summary) if block.name == _BLOCKS.get(name, name)]
        answer_rows = emit.flat_rows(summary, name)
    if not answer_rows:
        print_on_stderr(f"{name}: no rows: none of the files holds {_OF_ANSWER[name]}")
        return Exit.SOME_FAILED
    cut_blocks = [replace(block, rows=block.rows[:top]) if isinstance(block, Table) else block for block in blocks]
    (target.of_table(name) if target.is_of_rows else target).put_data(
        answer_rows[:top],
        emit.columns_of(answer_rows),
        data=lambda: {"table": name, "rows": answer_rows[:top]},
        show=lambda: show_blocks(console(), cut_blocks, "full"),
    )
    return Exit.GOOD


# --- rows that a person asks for ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Condition:
    """A column, what its value must be, and the words for it."""

    option: str
    column: str
    holds: Callable[[Any], bool]


def _parse_condition(text: str) -> _Condition:
    """`name=gemm`, `name~^void`, `calls>=10`: equal, a regular expression found in it, a comparison of numbers.

    Raises:
        UsageError: It is no test, or no table has such a column.
    """
    match, option = _TEST.fullmatch(text.strip()), f"--where {shlex.quote(text)}"
    if match is None:
        raise UsageError(
            f"--where {text}: expected a test of a column", hint="such as kind=memcpy, name~gemm, calls>10"
        )
    column, sign, value = match[1], match[2], match[3].strip()
    columns = sorted({c for t in TABLES.values() for c in t.column_names})
    if column not in columns:
        raise UsageError(f"--where {text}: no table has a column {column}", hint=did_you_mean(column, columns))
    if sign == "~":
        try:
            pattern = re.compile(value)
        except re.error as fault:
            raise UsageError(f"--where {text}: this regular expression is not valid: {fault}") from None
        return _Condition(option, column, lambda v: v is not None and pattern.search(str(v)) is not None)
    if sign in {"=", "!="}:
        return _Condition(option, column, lambda v: _equals_text(v, value) == (sign == "="))
    bound = _parse_number(value)
    if bound is None:
        raise UsageError(f"--where {text}: {value!r} is not a number", hint="times are ns, sizes bytes")
    compare: Mapping[str, Callable[[float], bool]] = {
        ">": lambda v: v > bound, "<": lambda v: v < bound, ">=": lambda v: v >= bound, "<=": lambda v: v <= bound,
    }  # fmt: skip
    return _Condition(option, column, lambda v: isinstance(v, int | float) and compare[sign](v))


def _row_conditions(conditions: Sequence[str], launch: int | None) -> list[_Condition]:
    """What must hold of a row: `--where`, and `--launch`.

    Raises:
        UsageError: A test is none.
    """
    tests = [_parse_condition(text) for text in conditions]
    if launch is not None:
        tests.append(_Condition(f"--launch {launch}", "launch_id", lambda v: v == launch))
    return tests


def _filter_rows(reports: Iterable[Report], tests: Sequence[_Condition], top: int | None) -> Iterator[Report]:
    """Keep the rows that match, at most `top` of a table; a table without one of the columns is left out."""
    for report in reports:
        if tests or top is not None:
            filtered = {}
            for name, data in report.tables.items():
                if {t.column for t in tests} <= set(TABLES[name].column_names):
                    matching = (r for r in full_rows(name, data) if all(t.holds(r[t.column]) for t in tests))
                    if first_rows := list(islice(matching, top)):
                        filtered[name] = first_rows
            if tests and report.tables and not filtered:
                report.warn(f"no row matches {' '.join(t.option for t in tests)}")
            report.tables = dict(filtered)
        yield report


def _equals_text(value: Any, text: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _parse_number(text)
        return number is not None and value == number
    return value is not None and str(value) == text


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# --- standard input, kept as a file, since readers look into a report more than once ------------------------


@dataclass(frozen=True, slots=True)
class _Input:
    """The files to read, `-` among them as one that is there; `named` calls it by its name again."""

    files: list[Path]
    stdin_file: Path | None = None

    def with_names(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports, that of standard input under its name, in what is said of it too."""
        path = str(self.stdin_file)
        for report in reports:
            if report.path == path:
                report.path = _STDIN
                report.problems = [
                    replace(p, message=p.message.replace(path, _STDIN), fix=p.fix and p.fix.replace(path, _STDIN))
                    for p in report.problems
                ]
            yield report


@contextmanager
def _standard_input(files: Sequence[Path]) -> Iterator[_Input]:
    """The files, with what comes on standard input where `-` is, as long as the block lasts.

    Raises:
        NswError: It cannot be kept.
    """
    if Path("-") not in files:
        yield _Input(list(files))
        return
    with tempfile.TemporaryDirectory(prefix="nsw-stdin-") as folder:
        stdin_copy = Path(folder) / _STDIN
        try:
            with make_file(stdin_copy) as target:
                _copy_input(sys.stdin.buffer, target)
        except OSError as fault:
            hint = "TMPDIR names another place for it"
            raise NswError(
                f"standard input cannot be stored in {folder}: {fault.strerror or fault}", hint=hint
            ) from None
        if not stdin_copy.stat().st_size:
            hint = "profilers print what they say of themselves on stderr: `nvprof ./app 2>&1 | nsw read -`"
            raise NswError("standard input was empty", hint=hint)
        yield _Input(list(dict.fromkeys(stdin_copy if file == Path("-") else file for file in files)), stdin_copy)


def _copy_input(source: BinaryIO, target: BinaryIO) -> None:
    """Copy standard input to a file; on a terminal, print how much has arrived."""
    shows_progress = sys.stderr.isatty()
    if shows_progress and sys.stdin.isatty():
        print("reading what you type or paste; Ctrl-D on a line of its own ends it", file=sys.stderr)
    count, last, has_printed = 0, time.monotonic(), False
    while piece := source.read1(_PIECE):  # type: ignore[attr-defined]  # of a buffered reader: what is there now
        target.write(piece)
        count += len(piece)
        if shows_progress and not sys.stdin.isatty() and time.monotonic() - last > _TOLD_EVERY_S:
            print(f"\r{size(count)} from standard input ", end="", file=sys.stderr, flush=True)
            last, has_printed = time.monotonic(), True
    if has_printed:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
