"""`nsys stats` and `nsys profile --stats=true`: text and CSV of 2019 to 2026, also inside a job's output."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.messages import problem_of_known_message
from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys.stats import reports
from nsw.readers.nsys.stats import rows as make
from nsw.readers.nsys.stats.grids import Grid, find_grids
from nsw.readers.nsys.stats.rows import Tally
from nsw.readers.text.lines import lines_by_rank, text_lines
from nsw.readers.text.quantities import Votes
from nsw.tables import Row
from nsw.wording import singular_or_count

if TYPE_CHECKING:
    import pyarrow as pa


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
_ONLY_MESSAGES = re.compile(
    r"\s*(?:WARNING: Existing SQLite export found|ERROR: Report '|SKIPPED: .* does not contain"
    r"|Generating SQLite file |usage: nsys |Exportation error: "
    r"|\*\* [^\n]{1,200}\s+Report was successfully run, but no data)"
)
_VERSION = re.compile(r"(?:nsight-systems(?:-cli)?[-/]|Nsight Systems version )(20\d\d\.\d+\.\d+)", re.IGNORECASE)
_PROCESSING = re.compile(r"Processing \[.{1,400}?\] with \[(?:.{0,400}?[/\\])?(\w+)\.py\]")
_ADVICE = re.compile(r"[/\\]rules[/\\][\w-]+\.py\]")
_BARE_ROW = re.compile(r"\s*-?\d[\d.]*(?:[,;\t]|\s+)-?\d[\d.]*(?:[,;\t]|\s+)")
_TRACES = ("gpu_trace", "api_trace")
_TITLE: Final = (
    r"(?:Time|Total|Total Time|Start|API Start|Projected Start|Total Proj Time) ?\((?:%|[num]?s|[KMGT]?i?B)\)"
)
_UNREAD_FORMS: Final = {
    "in boxes (--format table)": re.compile(rf"\|\s*{_TITLE}\s*\|"),
    "as HTML (--format hdoc or htable)": re.compile(rf"<th[^>]*>{_TITLE}</th>", re.IGNORECASE),
    "as JSON (--format json)": re.compile(rf'"{_TITLE}"\s*:'),
}
_AGAIN = "copy or print the report again"
_SIMPLE = {
    "api": make.api_call_rows, "osrt": make.call_rows, "openacc": make.openacc_rows, "openmp": make.call_rows,
    "nvtx": make.nvtx_rows, "nvtx_gpu": make.nvtx_gpu_rows, "mpi": make.mpi_rows, "um": make.unified_memory_rows,
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
    if ("Processing [" in sample.text and "SKIPPED: " in sample.text) or _ONLY_MESSAGES.match(sample.text):
        return 70
    return 60 if sample.contains(*_WORDS) else 0


def read(path: Path, options: Options) -> Report:
    """Fill the summaries and traces that the text holds; tables without a place in nsw are warned of."""
    report = Report(str(path), tool="nsys", format="nsys-stats")
    # phases follow from traces, which need not be asked for themselves
    requested = options.tables
    with_phases = requested is not None and bool(options.phase_tables())
    collected = Collected(
        report, replace(options, tables=requested | {*_TRACES}) if requested is not None and with_phases else options
    )
    votes, gaps = Votes(), _Gaps()
    file_report = reports.name_of_file(path.stem)
    for rank, lines in lines_by_rank(text_lines(path)):
        collected.rank = rank
        kind: reports.Kind = "other"
        untitled = _Untitled(report)
        for grid in find_grids(lines):
            if isinstance(grid, tuple):
                _note_line_outside_tables(report, *grid)
                untitled.take_line(*grid)
                gaps.note_line(*grid)
                continue
            untitled.take_table()
            if not _has_titles(report, grid):
                continue
            marks = reports.decide_marks(grid.headers, (cells for _, cells in grid.rows), votes) or reports.Marks()
            grid.report = reports.announced_name(grid.titles) or file_report
            if grid.part == 0:
                kind = reports.kind_of(grid.headers, grid.titles, [cells[-1] for _, cells in grid.rows], grid.report)
                _note_doubts(report, kind, grid)
            _note_faults(report, grid)
            _add_table(collected, kind, grid, marks)
            gaps.note_table(grid, marks)
    collected.finish()
    if "gpu_trace" in report.tables:
        from nsw.readers.timeline.process_phases import add_phases  # with numpy

        add_phases(report, options)
    for name in _TRACES if with_phases else ():
        if not options.wants(name):
            report.tables.pop(name, None)
    if any(report.tables.values()):
        # what nsys could not do beside the tables that are here only says that more was asked for
        report.problems = [replace(p, severity="warning") for p in report.problems]
    gaps.add_problems(report)
    return report


def _has_titles(report: Report, grid: Grid) -> bool:
    """Whether a table has titles that tell its figures; an error of the report where it has none."""
    if not reports.have_units(grid.headers):
        report.error(
            "the titles of a table have no units (:nohdrunit): its rows are left out",
            line=grid.line,
            fix="print the report with its units",
        )
        return False
    if grid.is_damaged:
        report.error("the titles of a table are damaged: its rows are left out", line=grid.line, fix=_AGAIN)
        return False
    return True


class _Gaps:
    """What is left out of the tables of a whole file, which is told once, at its end."""

    def __init__(self) -> None:
        self._other_marks: list[tuple[str, int]] = []
        self._strange_units: dict[str, tuple[str, int]] = {}
        self._unread: dict[str, int] = {}  # the first line of a table of each form that is not read

    def note_line(self, number: int, text: str) -> None:
        """Take note of a line outside of tables that has a title of a form which is not read."""
        for form, title in _UNREAD_FORMS.items():
            if "(" in text and title.search(text):
                self._unread.setdefault(form, number)

    def note_table(self, grid: Grid, marks: reports.Marks) -> None:
        """Take note of figures that cannot be read."""
        for header in grid.headers:
            if (unit := reports.unknown_unit(header)) is not None:
                self._strange_units.setdefault(unit, (header, grid.line))
        self._other_marks += [(text, grid.line) for text in marks.rejected]

    def add_problems(self, report: Report) -> None:
        """Add them to the report's problems."""
        for form, line in self._unread.items():
            report.error(f"tables of nsys stats {form} are not read", line=line, fix="print them with --format csv")
        if self._other_marks:
            figures = singular_or_count(len(self._other_marks), "a figure is", "figures are")
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
    """Sees rows without titles, and advice: rows after the name of a report (`:nohdr`)."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._name = ""
        self._is_advised = False

    def take_line(self, number: int, text: str) -> None:
        """Take a line that is outside of tables."""
        if match := _PROCESSING.match(text.lstrip()):
            self._name = match[1]
            if _ADVICE.search(text):
                self._name = ""
                if not self._is_advised:
                    self._report.warn("not read: the advice of nsys analyze; nsw has no table for it", line=number)
                self._is_advised = True
        elif self._name and _BARE_ROW.match(text):
            self._report.error(
                f"{self._name} was printed without titles, or without units (:nohdr, :nohdrunit): it is not read",
                line=number,
                fix="print it with its titles and their units",
            )
            self._name = ""

    def take_table(self) -> None:
        """Take note of a table that has its titles."""
        self._name = ""


def _add_table(collected: Collected, kind: reports.Kind, grid: Grid, marks: reports.Marks) -> None:
    """Hand the rows of one table over."""
    match kind:
        case "kernels":
            collected.add_kernels(make.kernel_rows(grid, marks), grid)
        case "launches":
            collected.add_kernels(make.launch_rows(grid, marks), grid)
        case "copies":
            collected.add_copies(make.kernel_rows(grid, marks), grid)
        case "sizes":
            collected.add_sizes(make.size_rows(grid, marks), grid)
        case "gpu":
            gpu, api = make.gpu_and_api_rows(grid, marks)
            collected.add_kernels(gpu, grid)
            collected.add_simple("api_summary", api, grid)
        case "api" | "osrt" | "openacc" | "openmp" | "nvtx" | "nvtx_gpu" | "mpi" | "um":
            collected.add_simple(reports.TABLES[kind], _SIMPLE[kind](grid, marks), grid)
        case "gpu_trace":
            collected.add_trace("gpu_trace", make.gpu_trace, grid, marks)
        case "api_trace":
            collected.add_trace("api_trace", make.api_trace, grid, marks)
        case "launch_trace":
            collected.add_trace("gpu_trace", lambda *table: make.launch_trace(*table)[0], grid, marks)
            collected.add_trace("api_trace", lambda *table: make.launch_trace(*table)[1], grid, marks)
        case "nvtx_trace" | "nvtx_gpu_trace" | "mpi_trace" | "cpu_faults":
            collected.add_events(kind, grid, marks)
        case "mpi_sizes":
            collected.add_messages(make.message_rows(grid, marks), grid)
        case "other":
            collected.note_unread(grid.report or reports.table_name(grid.titles, grid.headers), grid)


def _note_line_outside_tables(report: Report, number: int, text: str) -> None:
    """A line outside of tables: the tool's version, or a complaint of nsys."""
    if report.tool_version is None and (version := _VERSION.search(text)):
        report.tool_version = version[1]
    message = text.strip()
    if _COMPLAINT.match(message) and (
        problem := problem_of_known_message("nsys", message, line=number, severity="warning")
    ):
        report.problems.append(problem)


def _note_doubts(report: Report, kind: reports.Kind, grid: Grid) -> None:
    """What a table does not say of itself, and what was asked for that changes its names."""
    names = {reports.parse_header(header).name for header in grid.headers}
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
    if reports.names_ranges(grid.titles):
        report.warn(
            "the names of kernels begin with those of the NVTX ranges around them (option nvtx-name)",
            line=grid.line,
            fix="print the report without :nvtx-name to have one row a kernel",
        )


def _note_faults(report: Report, grid: Grid) -> None:
    if grid.stray:
        lost = len(grid.stray)
        lines = singular_or_count(
            lost, "a line in a table of nsys is not a row", "lines in a table of nsys are not rows"
        )
        report.warn(f"{lines} of it (damaged, or another program's): skipped", line=grid.stray[0])
        grid.stray.clear()  # the next part of the table has the same list
    rows = grid.rows if grid.style != "csv" else ()  # only columns have widths
    clipped = [n for n, cells in rows if any(reports.is_clipped(c) for c in cells[:-1])]
    if clipped:
        report.warn(
            "nsys cut numbers to the width of their column; they are absent here",
            line=clipped[0],
            fix="print with --format csv",
        )


# Which report a table is from and how it is printed: a report printed twice in one way is two runs.
Origin: TypeAlias = tuple[str, ...]
_ROUNDED: Final = 0.06  # ns a call that a total is off where it was made of a mean with one decimal


class Collected:
    """The tables of a report as they fill."""

    def __init__(self, report: Report, options: Options) -> None:
        self.rank: int | None = None
        self._report = report
        self._options = options
        self._rows: dict[str, list[Row]] = {}
        self._chunks: dict[str, list[pa.Table]] = {}
        self._blocks: Counter[str] = Counter()
        self._seen: dict[tuple[str, int | None, int], list[tuple[float, Origin]]] = {}
        self._halves: dict[tuple[str, frozenset[tuple[str, Any]]], list[list[Row]]] = {}
        self._unread: dict[str, int] = {}
        self._repeats: list[tuple[str, int]] = []
        self._tallies: list[Tally] = []
        self._messages: list[tuple[Grid, int | None, list[Row]]] = []

    def add_kernels(self, rows: list[Row], grid: Grid) -> None:
        """gpu_summary rows of kernels, or of kernels and copies; either may be in another table too."""
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault("kernels" if row["kind"] == "kernel" else "copies", []).append(row)
        repeated = {group for group, group_rows in groups.items() if self._was_read_before(group, group_rows, grid)}
        new = groups.keys() - repeated
        if repeated:
            self._repeats.append(
                (f"the {repeated.pop()} of {_grid_name(grid)}" if new else _grid_name(grid), grid.line)
            )
        if not new:
            return
        chosen = [r for r in rows if ("kernels" if r["kind"] == "kernel" else "copies") in new]
        counters = ("kernels", "copies") if "copies" in new else ("kernels",)
        self._add_rows("gpu_summary", chosen, self._next_block(*counters, part=grid.part))
        if "copies" in new:
            self._halves.setdefault(("copies", _names_and_calls(groups["copies"])), []).append(groups["copies"])

    def add_copies(self, rows: list[Row], grid: Grid) -> None:
        """gpu_summary rows of copies, by time; their bytes come in another table."""
        if not rows or self._is_repeat("copies", rows, grid):
            return
        sizes = self._take_other_half("sizes", rows)
        if sizes is None:
            self._add_rows("gpu_summary", rows, self._next_block("copies", part=grid.part))
            self._halves.setdefault(("copies", _names_and_calls(rows)), []).append(rows)
        else:
            for bare in sizes:
                _fill_missing(bare, next(r for r in rows if r["name"] == bare["name"]))

    def add_sizes(self, rows: list[Row], grid: Grid) -> None:
        """The bytes of copies: joined with their times where a table has the same names and counts."""
        copies = self._take_other_half("copies", rows)
        if copies is None:
            self._add_rows("gpu_summary", rows, self._next_block("copies", part=grid.part))
            self._halves.setdefault(("sizes", _names_and_calls(rows)), []).append(rows)
            return
        timed = {(row["name"], row["calls"]): row for row in copies}
        for row in rows:
            _fill_missing(timed[row["name"], row["calls"]], row)

    def add_simple(self, table: str, rows: list[Row], grid: Grid) -> None:
        """Add a table whose rows need only a block; a repeat of a table that was read is left out.

        Args:
            table: The name of the table (nsw.tables.schema).
            rows: Its rows.
            grid: The printed table that they come from.
        """
        if rows and not self._is_repeat(table, rows, grid):
            self._add_rows(table, rows, self._next_block(table, part=grid.part))

    def add_trace(
        self, table: str, make: Callable[[Grid, reports.Marks], pa.Table], grid: Grid, marks: reports.Marks
    ) -> None:
        """Add the rows of a trace, which may be millions; they are made only where the table is wanted.

        Args:
            table: The name of the table (nsw.tables.schema).
            make: Makes the rows of the printed table, one row per operation; block and rank are then set.
            grid: The printed table, or its next rows.
            marks: How numbers are written.
        """
        block = self._next_block(table, part=grid.part)
        if not grid.rows or not self._options.wants(table):
            return
        import pyarrow as pa

        arrow_table = make(grid, marks)
        for name, value in (("block", block), ("rank", self.rank)):
            index = arrow_table.schema.get_field_index(name)
            arrow_table = arrow_table.set_column(
                index, arrow_table.schema.field(index), pa.repeat(pa.scalar(value, pa.int64()), len(arrow_table))
            )
        self._chunks.setdefault(table, []).append(arrow_table)

    def add_events(self, kind: reports.Kind, grid: Grid, marks: reports.Marks) -> None:
        """Add the rows of a trace that is summed instead of kept.

        Args:
            kind: The kind of trace.
            grid: The printed table, or its next rows.
            marks: How numbers are written.
        """
        if not grid.part or not self._tallies:
            self._tallies.append(Tally(kind, grid, self.rank))
        self._tallies[-1].add(grid, marks)

    def add_messages(self, rows: list[Row], grid: Grid) -> None:
        """Bytes that MPI calls sent; their times come in another table."""
        self._messages.append((grid, self.rank, rows))

    def note_unread(self, name: str, grid: Grid) -> None:
        """A table that nsw has no place for."""
        self._unread.setdefault(name, grid.line)

    def finish(self) -> None:
        """Hand the tables to the report."""
        for tally in self._tallies:
            self._finish_tally(tally)
        for grid, rank, rows in self._messages:
            self.rank = rank
            self._finish_messages(grid, rows)
        self._report_repeats()
        for name, line in self._unread.items():
            reason, fix = reports.unread_reason(name)
            self._report.warn(f"not read: {name}; {reason}", line=line, fix=fix)
        self._report.tables.update({table: rows for table, rows in self._rows.items() if rows})
        for table, chunks in self._chunks.items():
            import pyarrow as pa

            self._report.tables[table] = pa.concat_tables(chunks)

    def _report_repeats(self) -> None:
        if not self._repeats:
            return
        names, line = ", ".join(dict.fromkeys(name for name, _ in self._repeats)), self._repeats[0][1]
        if len(self._repeats) == 1:
            verbs = ("repeat", "were") if names.startswith("the ") else ("repeats", "was")
            self._report.warn("{} {} rows of a table before it and {} left out".format(names, *verbs), line=line)
        else:
            message = f"{len(self._repeats)} tables repeat rows of tables before them and were left out"
            self._report.warn(f"{message}: {names}", line=line)

    def _finish_tally(self, tally: Tally) -> None:
        name = _grid_name(tally.first)
        if tally.contradictions:
            self._report.error(
                f"{len(tally.contradictions)} rows of {name} contradict themselves (start and duration make another"
                " end) and are left out",
                line=tally.contradictions[0],
                fix="copy or print the report again",
            )
        if tally.unended:
            self._report.warn(f"{tally.unended} events of {name} had not ended when the trace did: left out")
        self.rank = tally.rank
        self.add_simple(tally.table, tally.rows(), tally.first)

    def _finish_messages(self, grid: Grid, rows: list[Row]) -> None:
        """Put bytes beside the times of the same calls, where those are here too."""
        timed = {
            (row.get("rank"), row["name"], row["calls"]): row
            for row in self._rows.get("communication", ())
            if row["library"] == "mpi" and row.get("total_ns") is not None
        }
        alone = []
        for row in rows:
            timed_row = timed.get((self.rank, row["name"], row["calls"]))
            if timed_row is None:
                alone.append(row)
            else:
                timed_row["total_bytes"] = row["total_bytes"]  # exact, where a trace has rounded sizes
                timed_row.pop("total_bytes_pm", None)
        self.add_simple("communication", alone, grid)

    def _add_rows(self, table: str, rows: list[Row], block: int) -> None:
        if not self._options.wants(table):
            return
        for row in rows:
            row["block"] = block
            if self.rank is not None:
                row["rank"] = self.rank
        self._rows.setdefault(table, []).extend(rows)

    def _next_block(self, *counters: str, part: int) -> int:
        block = max(self._blocks[c] for c in counters)
        if part:  # the table has its number
            return block - 1
        for counter in counters:
            self._blocks[counter] = block + 1
        return block

    def _is_repeat(self, table: str, rows: list[Row], grid: Grid) -> bool:
        """Whether the rows are left out (and reported), since an earlier table has them."""
        repeated = bool(rows) and self._was_read_before(table, rows, grid)
        if repeated:
            self._repeats.append((_grid_name(grid), grid.line))
        return repeated

    def _was_read_before(self, table: str, rows: list[Row], grid: Grid) -> bool:
        """Whether another report of nsys, or another format of it, gave the same calls and the same time."""
        if grid.part:
            return False
        if table == "um_summary":
            return self._has_faults(rows)
        calls = sum(row.get("calls") or 0 for row in rows)
        total = float(sum(row.get("total_ns") or row.get("projected_ns") or 0 for row in rows))
        origin = (grid.style, grid.report or "", *grid.headers)
        before = self._seen.setdefault((table, self.rank, calls), [])
        near = max(1.0, _ROUNDED * calls)
        repeated = bool(total) and any(
            abs(total - earlier_total) <= near and earlier_origin != origin for earlier_total, earlier_origin in before
        )
        before.append((total, origin))
        return repeated

    def _has_faults(self, rows: list[Row]) -> bool:
        """Whether these are the CPU page faults, by instruction, that the totals have too."""
        before = [(r["name"], r.get("calls")) for r in self._rows.get("um_summary", ())]
        return len(rows) == 1 and (rows[0]["name"], rows[0]["calls"]) in before

    def _take_other_half(self, half: str, rows: list[Row]) -> list[Row] | None:
        waiting = self._halves.get((half, _names_and_calls(rows)))
        return waiting.pop(0) if waiting else None


def _grid_name(grid: Grid) -> str:
    return grid.report or reports.table_name(grid.titles, grid.headers)


def _names_and_calls(rows: list[Row]) -> frozenset[tuple[str, Any]]:
    return frozenset((row["name"], row["calls"]) for row in rows)


def _fill_missing(row: Row, source: Row) -> None:
    """Add what `source` knows and `row` does not."""
    for key, value in source.items():
        if row.get(key) is None:
            row[key] = value
