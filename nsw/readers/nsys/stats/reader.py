"""`nsys stats` and `nsys profile --stats=true`: text and CSV of 2019 to 2026, also inside a job's output."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nsw.readers.message_meanings import known_message
from nsw.readers.model import Options, Problem, Report, Sample
from nsw.readers.nsys.stats import rows as make
from nsw.readers.nsys.stats import traces
from nsw.readers.nsys.stats.columns import (
    Marks,
    column,
    decide_marks,
    has_two_time_units,
    have_units,
    is_clipped,
    is_row,
    unknown_unit,
)
from nsw.readers.nsys.stats.grids import find_grids
from nsw.readers.nsys.stats.kinds import kind_of, table_name
from nsw.readers.nsys.stats.merge_tables import Collected
from nsw.readers.nsys.stats.reports import TABLES, Kind, announced, name_of_file, names_ranges
from nsw.readers.text.lines import by_rank, text_lines
from nsw.readers.text.quantities import Votes
from nsw.readers.timeline.phases_from_traces import TRACES, add_phases, wanted
from nsw.wording import one_or

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.readers.nsys.stats.grids import Grid

# blanks before a title never cross a line: each of many blank lines would be a beginning
_HEADER = re.compile(
    r'^(?:.{0,60}?[\s>:|"])??"?Time ?\(%\)"?[\s,;|]+"?Total Time'
    r'|^[^\w\n]*+Total \((?:[KMGT]?i?B)\)"?[\s,;|]+"?(?:Count|Operations)'
    r"|^[^\w\n]*+Start \(\w+\)[\s,;|]+Duration \(\w+\)[\s,;|]+(?:CorrId|Name)|^PID[,\t]TID[,\t]DevId"
    r'|^[^\S\n]*+(?:\[\s*+)?(?:\{\s*+)?"(?:Time \(%\)|Start \(\w+\)|Total \([KMGT]?i?B\))"\s*:'
    r"|^[^\S\n]*+<th>(?:Time \(%\)|Start \(\w+\)|Total \([KMGT]?i?B\)|Range)</th>"
    r"|^API Start \(\w+\)[,\t]|^[^\w\n]*+Range[\s,;|]+Style[\s,;|]+Total Proj",
    re.MULTILINE,
)
_UNITLESS = re.compile(
    r"^[^\S\n]*+Time(?:[,\t;]| +)Total Time(?:[,\t;]| +)(?:Instances|Num Calls|Count)\b", re.MULTILINE
)
_WORDS = ("Total Time (", "CUDA API Statistics", "CUDA Kernel Statistics", "' stats report", "StdDev (ns)")
# titles that no other tool gives a column
_OWN_TITLES = (
    "Projected Start (",
    "DurNonChild (",
    "CollSendSize (",
    "Kernel Dur (",
    "CPU Instruction Address",
    "DtoH Migration Size (",
    "DtoH Migration size (",
    "Total Message Volume",
)
# nsys stats refused, and said nothing else
_ONLY_SAID = re.compile(
    r"\s*(?:WARNING: Existing SQLite export found|ERROR: Report '|SKIPPED: .* does not contain"
    r"|Generating SQLite file |usage: nsys |Exportation error: "
    r"|\*\* [^\n]{1,200}\s+Report was successfully run, but no data)"
)
_VERSION = re.compile(r"(?:nsight-systems(?:-cli)?[-/]|Nsight Systems version )(20\d\d\.\d+\.\d+)", re.IGNORECASE)
_PROCESSING = re.compile(r"Processing \[.{1,400}?\] with \[(?:.{0,400}?[/\\])?(\w+)\.py\]")
_ADVICE = re.compile(r"[/\\]rules[/\\][\w-]+\.py\]")
_BARE_ROW = re.compile(r"\s*-?\d[\d.]*(?:[,;\t]|\s+)-?\d[\d.]*(?:[,;\t]|\s+)")
_AGAIN = "copy or print the report again"
_SIMPLE = {
    "api": make.api_calls, "osrt": make.calls, "openacc": make.openacc, "openmp": make.calls, "nvtx": make.nvtx,
    "nvtx_gpu": make.nvtx_gpu, "mpi": make.mpi, "um": make.unified_memory,
}  # fmt: skip
_COMPLAINT = re.compile(
    r"(?:SKIPPED|ERROR|Error|FATAL ERROR|WARNING|Importer error status): *\S|.*Exportation error: |usage: nsys "
    r"|Report was successfully run, but no data"
)


def sniff(sample: Sample) -> int:
    """By the headers of nsys's tables near the beginning, or its titles anywhere."""
    if sample.is_binary:
        return 0
    if _HEADER.search(sample.text):
        return 90
    if any(title in sample.text for title in _OWN_TITLES):
        return 80
    if _PROCESSING.search(sample.text) or _UNITLESS.search(sample.text):
        return 75
    if ("Processing [" in sample.text and "SKIPPED: " in sample.text) or _ONLY_SAID.match(sample.text):
        return 70
    return 60 if sample.contains(*_WORDS) else 0


def read(path: Path, options: Options) -> Report:
    """Fill the summaries and traces that the text holds; tables without a place in nsw are warned of."""
    report = Report(str(path), tool="nsys", format="nsys-stats")
    # phases follow from traces, which need not be asked for themselves
    asked = options.tables
    more = asked is not None and bool(wanted(options))
    collected = Collected(report, replace(options, tables=asked | {*TRACES}) if asked is not None and more else options)
    votes, gaps = Votes(), _Gaps()
    of_file = name_of_file(path.stem)
    for rank, lines in by_rank(text_lines(path)):
        collected.rank = rank
        kind: Kind = "other"
        untitled = _Untitled(report)
        for found in find_grids(lines):
            if isinstance(found, tuple):
                _note(report, *found)
                untitled.line(*found)
                continue
            untitled.table(found)
            if not _has_titles(report, found):
                continue
            marks = decide_marks(found.headers, (cells for _, cells in found.rows), votes) or Marks()
            found.report = announced(found.titles) or of_file
            if found.part == 0:
                kind = kind_of(found.headers, found.titles, [cells[-1] for _, cells in found.rows], found.report)
                _note_doubts(report, kind, found)
            _note_faults(report, found)
            _put(collected, kind, found, marks)
            gaps.of_table(found, marks)
        gaps.orphans += [untitled.orphan] if untitled.orphan is not None else []
    collected.finish()
    add_phases(report, options)
    for name in TRACES if more else ():
        if not options.wants(name):
            report.tables.pop(name, None)
    if any(report.tables.values()):
        report.problems = [_softer(p) for p in report.problems]
    gaps.say(report)
    return report


def _has_titles(report: Report, grid: Grid) -> bool:
    """Whether a table has titles that tell its figures; an error of the report where it has none."""
    if not have_units(grid.headers):
        report.error(
            "the titles of a table have no units (:nohdrunit): its rows are left out",
            line=grid.line,
            fix="print the report with its units",
        )
        return False
    if grid.is_damaged or has_two_time_units(grid.headers):
        report.error("the titles of a table are damaged: its rows are left out", line=grid.line, fix=_AGAIN)
        return False
    return True


class _Gaps:
    """What is left out of the tables of a whole file, which is told once, at its end."""

    def __init__(self) -> None:
        self.orphans: list[int] = []  # first lines of tables without titles
        self._other_marks: list[tuple[str, int]] = []
        self._strange_units: dict[str, tuple[str, int]] = {}

    def of_table(self, grid: Grid, marks: Marks) -> None:
        """Take note of figures that cannot be read."""
        for header in grid.headers:
            if (unit := unknown_unit(header)) is not None:
                self._strange_units.setdefault(unit, (header, grid.line))
        self._other_marks += [(text, grid.line) for text in marks.other]

    def say(self, report: Report) -> None:
        """Add them to the report's problems."""
        if self.orphans:
            report.error("rows of a table have no titles and are left out", line=self.orphans[0], fix=_AGAIN)
        if self._other_marks:
            figures = one_or(len(self._other_marks), "a figure is", "figures are")
            text, line = self._other_marks[0]
            report.error(
                f"{figures} written with another decimal mark than the rest ('{text}'): absent here",
                line=line,
                fix=_AGAIN,
            )
        for unit, (header, line) in self._strange_units.items():
            report.error(
                f"nsw does not know the unit '{unit}' of '{header}': figures in it are absent", line=line, fix=_AGAIN
            )


class _Untitled:
    """Sees rows without titles, and advice: rows after the name of a report (`:nohdr`), or like those of a table."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._name = ""
        self._is_advised = False
        self._headers: list[str] = []  # of the last table of CSV
        self.orphan: int | None = None  # the first line of a table without titles

    def line(self, number: int, text: str) -> None:
        """Take a line that is outside of tables."""
        if found := _PROCESSING.match(text.lstrip()):
            self._name = found[1]
            if _ADVICE.search(text):
                self._advice(number)
        elif self._name and _BARE_ROW.match(text):
            self._report.error(
                f"{self._name} was printed without titles, or without units (:nohdr, :nohdrunit): it is not read",
                line=number,
                fix="print it with its titles and their units",
            )
            self._name = ""
        elif self.orphan is None and self._headers and _BARE_ROW.match(text) and self._is_row(text):
            self.orphan = number

    def _is_row(self, text: str) -> bool:
        """Whether a line has the cells of the last table."""
        cells = next(csv.reader([text], delimiter=max(",;\t", key=text.count)), [])
        return len(cells) == len(self._headers) and is_row(self._headers, cells)

    def _advice(self, number: int) -> None:
        self._name = ""
        if not self._is_advised:
            self._report.warn("not read: the advice of nsys analyze; nsw has no table for it", line=number)
        self._is_advised = True

    def table(self, found: Grid) -> None:
        """Take note of a table that has its titles."""
        self._name = ""
        self._headers = found.headers if found.style == "csv" else []


def _softer(problem: Problem) -> Problem:
    """What nsys could not do beside the tables that are here only says that more was asked for."""
    return replace(problem, severity="warning")


def _put(collected: Collected, kind: Kind, grid: Grid, marks: Marks) -> None:
    """Hand the rows of one table over."""
    match kind:
        case "kernels":
            collected.kernels(make.kernels(grid, marks), grid)
        case "launches":
            collected.kernels(make.launches(grid, marks), grid)
        case "copies":
            collected.copies(make.kernels(grid, marks), grid)
        case "sizes":
            collected.sizes(make.sizes(grid, marks), grid)
        case "gpu":
            gpu, api = make.combined(grid, marks)
            collected.kernels(gpu, grid)
            collected.simple("api_summary", api, grid)
        case "api" | "osrt" | "openacc" | "openmp" | "nvtx" | "nvtx_gpu" | "mpi" | "um":
            collected.simple(TABLES[kind], _SIMPLE[kind](grid, marks), grid)
        case "gpu_trace":
            collected.trace("gpu_trace", traces.gpu_trace, grid, marks)
        case "api_trace":
            collected.trace("api_trace", traces.api_trace, grid, marks)
        case "launch_trace":
            collected.trace("gpu_trace", lambda *table: traces.launch_trace(*table)[0], grid, marks)
            collected.trace("api_trace", lambda *table: traces.launch_trace(*table)[1], grid, marks)
        case "nvtx_trace" | "nvtx_gpu_trace" | "mpi_trace" | "cpu_faults":
            collected.events(kind, grid, marks)
        case "mpi_sizes":
            collected.messages(make.messages(grid, marks), grid)
        case "other":
            collected.unread(grid.report or table_name(grid.titles, grid.headers), grid)


def _note(report: Report, number: int, text: str) -> None:
    """A line outside of tables: the tool's version, or a complaint of nsys."""
    if report.tool_version is None and (version := _VERSION.search(text)):
        report.tool_version = version[1]
    said = text.strip()
    if _COMPLAINT.match(said) and (problem := known_message("nsys", said, line=number, severity="warning")):
        report.problems.append(problem)


def _note_doubts(report: Report, kind: Kind, grid: Grid) -> None:
    """What a table does not say of itself, and what was asked for that changes its names."""
    names = {column(header).name for header in grid.headers}
    if (
        kind == "nvtx"
        and grid.report is None
        and "style" not in names
        and not any("nvtx" in t.lower() for t in grid.titles)
    ):
        report.warn(
            "a table of ranges has no title: read as NVTX (graphics have the same columns)",
            line=grid.line,
            fix="leave the name of the file as nsys made it (..._nvtx_pushpop_sum.csv), or the lines before the table",
        )
    if names_ranges(grid.titles):
        report.warn(
            "the names of kernels begin with those of the NVTX ranges around them (option nvtx-name)",
            line=grid.line,
            fix="print the report without :nvtx-name to have one row a kernel",
        )


def _note_faults(report: Report, grid: Grid) -> None:
    if grid.stray:
        lost = len(grid.stray)
        lines = one_or(lost, "a line in a table of nsys is not a row", "lines in a table of nsys are not rows")
        report.warn(f"{lines} of it (damaged, or another program's): skipped", line=grid.stray[0])
        grid.stray.clear()  # the next part of the table has the same list
    rows = grid.rows if grid.style != "csv" else ()  # only columns have widths
    clipped = [n for n, cells in rows if any(is_clipped(c) for c in cells[:-1])]
    if clipped:
        report.warn(
            "nsys cut numbers to the width of their column; they are absent here",
            line=clipped[0],
            fix="print with --format csv",
        )
