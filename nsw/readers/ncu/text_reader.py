"""`ncu` without `--csv`: the details, raw, summary and session pages as text, also inside job logs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nsw.readers.messages import NcuMessageCollector
from nsw.readers.model import Options, Report, Sample
from nsw.readers.ncu.results import SUMMARY, NcuResults, OmittedLines, ncu_version_in_facts, session_fact_rows
from nsw.readers.ncu.values import ValueParser, decide_decimal_mark, name_or_unit_is_number
from nsw.readers.text.lines import Line, Span, lines_by_rank, ruled_cells, ruled_spans, text_lines
from nsw.tables.parquet_tables import Row
from nsw.wording import singular_or_count

__all__ = ["read", "sniff"]


_DASHES: Final = re.compile(r"\s*-++(?: ++-++)++\s*")
_RULE_LINE: Final = re.compile(r"\s*-{5} -{40,}\s*")  # between two pieces of advice, no table


@dataclass(frozen=True, slots=True)
class ColumnSpans:
    """Where the columns of a table begin and end, in characters."""

    spans: tuple[Span, ...]

    def cut_cells(self, line: str) -> list[str] | None:
        """The cells of one line; None when the line is no row, because text is between the columns."""
        if not line.strip() or line[: self.spans[0][0]].strip():
            return None
        return ruled_cells(line, self.spans, is_last_open=True)

    def cell_fills_column(self, line: str, column: int) -> bool:
        """Whether the cell fills its column, so that the next line may go on with it."""
        start, end = self.spans[column]
        return len(line) >= end and " " not in (line[start], line[end - 1])


def parse_dashes(line: str) -> ColumnSpans | None:
    """The columns of a line of dashes; None for other lines."""
    if "--" not in line or not _DASHES.fullmatch(line) or _RULE_LINE.fullmatch(line):
        return None
    return ColumnSpans(ruled_spans(line))


_SIZE = r"\(\d+, ?\d+, ?\d+\)"
_ANY_SIZE: Final = r"\((?:-?\d+, ?){2}-?\d+\)"
_PROCESS: Final = re.compile(r"\s{0,4}\[(\d{1,18})\] ?(.*)@([^\s@]+)\s*")
# `, Context 1, Stream 7, Device 0, CC 8.9`, the later parts only in newer versions
_CONTEXT: Final = re.compile(
    r"(?:, )?Context (?P<context>\d{1,18})(?:, Stream (?P<stream>\d{1,18}))?"
    r"(?:, Device (?P<device>\d{1,9}))?(?:, CC (?P<cc>\d+\.\w+))?\s*"
)
_SUMMARY: Final = re.compile(
    r"(?:, Device (?P<device>\d{1,9}))?(?:, CC (?P<cc>\d+\.\w+))?, Invocations (?P<count>[\d,.]{1,18})\s*"
)
_NEGATIVE: Final = re.compile(rf"{_ANY_SIZE}x{_ANY_SIZE}\Z")  # where sizes are not found: one is below zero
_GEOMETRY: Final = re.compile(rf"(?P<grid>{_SIZE})x(?P<block>{_SIZE})\Z")
_DATE: Final = re.compile(r"(?:, |\A)\d{4}-\w{3}-\d{1,2} \d\d:\d\d:\d\d\Z")
_PIECE: Final = re.compile(r"\)x\(-?\d|\), Context \d|, Context \d+, Stream|, CC \d+\.\d+\s*\Z")
_BRACKETS: Final = (("(", ")"), ("<", ">"))
_FUNCTION: Final = re.compile(r"(?:void )?[A-Za-z_~][\w:~]*(?:<.*>)?")  # a name that lacks its parameters
_DEVICE: Final = re.compile(r"\s+Device (\d{1,9}), CC (\d+\.\w+)\s*")


@dataclass(frozen=True, slots=True)
class LaunchHeader:
    """What a header tells, in the columns of the launches table; `invocations` of a summary only."""

    columns: Row
    invocations: int | None = None


def parse_process_line(line: str) -> Row | None:
    """The process of `[3662034] instructionMix@127.0.0.1`."""
    if (match := _PROCESS.fullmatch(line)) is None:
        return None
    return {"pid": int(match[1]), "process": match[2].strip() or None, "host": match[3]}


def parse_device_line(line: str) -> Row | None:
    """The device of a line that has nothing else, as `--print-summary per-gpu` writes it."""
    match = _DEVICE.fullmatch(line)
    return {"device": int(match[1]), "compute_capability": match[2]} if match else None


def parse_launch_header(line: str, previous_line: str) -> LaunchHeader | None:
    """The launch or summary that a line announces; its name may be on the line before."""
    summary = _last_match_in_line(_SUMMARY, line, ", Invocations ")
    context_match = None if summary else _last_match_in_line(_CONTEXT, line, "Context ")
    match = summary or context_match
    if match is None:
        return None
    head = line[: match.start()].strip()
    geometry = _GEOMETRY.search(head)
    if geometry is None and _NEGATIVE.search(head):
        return None
    date = _DATE.search(head)
    name = (head[: geometry.start()] if geometry else head[: date.start()] if date else head).strip()
    name = _kernel_name_over_two_lines(name, previous_line, is_lone=geometry is not None)
    if not name or not (geometry or date or line[:1].isspace()) or name.count(")") > name.count("("):
        return None
    columns: Row = {"kernel": name, "compute_capability": match["cc"], "device": _int_or_none(match["device"])}
    if geometry:
        columns |= {"grid": _normalize_size(geometry["grid"]), "block_size": _normalize_size(geometry["block"])}
    columns = {k: v for k, v in columns.items() if v is not None}
    if summary:
        count = re.sub(r"\D", "", summary["count"])
        return LaunchHeader(columns, int(count)) if count else None
    return LaunchHeader(columns | {"context": _int_or_none(match["context"]), "stream": _int_or_none(match["stream"])})


def _kernel_name_over_two_lines(name: str, previous_line: str, *, is_lone: bool) -> str:
    """A kernel's name with its beginning, where that is on the line before: wrapped, or above its sizes."""
    beginning = previous_line.strip()
    if not name:
        return beginning if is_lone else ""
    is_open = any(beginning.count(open_) > beginning.count(close) for open_, close in _BRACKETS)
    is_cut = any(name.count(close) > name.count(open_) for open_, close in _BRACKETS) and is_open
    is_called = (
        name.startswith("(") and not name.startswith("(anonymous") and _FUNCTION.fullmatch(beginning) is not None
    )
    if not previous_line[:1].isspace() or not (is_cut or is_called):
        return name
    joined = f"{beginning}{' ' if beginning.endswith(',') else ''}{name}"
    return joined if all(joined.count(open_) == joined.count(close) for open_, close in _BRACKETS) else name


def _last_match_in_line(pattern: re.Pattern[str], line: str, word: str) -> re.Match[str] | None:
    """The match that ends the line; names hold commas and may hold the word itself."""
    at = line.rfind(word)
    if at < 0:
        return None
    # the pattern begins a little before its word: `, Device 0, CC 8.9, Invocations 14`
    for start in (line.rfind(", Device ", 0, at), at - 2, at):
        if start >= 0 and (match := pattern.fullmatch(line, start)):
            return match
    return None


def _int_or_none(text: str | None) -> int | None:
    return int(text) if text else None


def _normalize_size(text: str) -> str:
    return "(" + ", ".join(re.findall(r"\d+", text)) + ")"


_MESSAGE: Final = re.compile(r"^.{0,80}?==(?:PROF|WARNING|ERROR)== ", re.MULTILINE)
_SECTION: Final = re.compile(r"\s*Section: (\S.*)")
_TABLE_NAME: Final = re.compile(r"\s*Table Name : (\S.*)")
_RULE: Final = re.compile(r"\s{2,}(OPT|WRN|INF|ERR|WARN|INFO)   (.*)")
_GAIN: Final = re.compile(r"Est(?:\.|imated) (?:(Local|Global) )?Speedup: ([\d.,]+)\s*%")
_ANY_GAIN: Final = re.compile(r"Est(?:\.|imated) (?:(?:Local|Global) )?Speedup:")
_RULE_INDENT: Final = 10  # columns before the text of advice
_SESSION_TITLES: Final = ("Launch Attribute", "Session Attribute", "Process Id", "Device Attribute")
_TITLE: Final = "Metric Name"
_CHART: Final = "Roofline Chart"
_DISTRIBUTION: Final = "Workload Distribution"  # a table with four rows of one name
_OF_INSTANCES: Final = ("avg", "max", "min", "sum")
_SECTION_WORD: Final = "Section: "
_INDENT: Final = 4
_NUMBER: Final = re.compile(r"-?(?=[.,]*+\d)[\d.,]++\Z")
# A name that ends with a number, or two numbers in one cell: the blanks that told the columns are lost.
_RUN_ON: Final = re.compile(r"(?:^\D.*\s-?[\d.,]*\d|\(!\) \w+)\Z")
_TWO_NUMBERS: Final = re.compile(r"\d\s+-?\d")
_ELLIPSIS: Final = re.compile(r"\s*\[?(?:\.{3,}|\u2026)\]?\s*")  # an author's, for rows left out
_MOST_HEADLESS: Final = 5  # that are reported
_AGAIN: Final = "print the report again: ncu --import REPORT --page details"


def _ends_with_number(line: str) -> bool:
    """Whether an indented line ends with a number, and perhaps a name or a unit before it."""
    body = line.rstrip()
    number = body.rsplit(None, 1)[-1] if body else ""
    before = body[: len(body) - len(number)]
    if _NUMBER.match(number) is None or len(before) < _INDENT or not before[:_INDENT].isspace():
        return False
    return before.strip() in {"", "%"} or before[-2:].isspace()


def sniff(sample: Sample) -> int:
    """Sure when a launch's header and a section are in the file; less so for ncu's messages alone."""
    if sample.is_binary:
        return 0
    if sample.contains("Section: ") and sample.contains(", Context ", ", Invocations "):
        return 85
    if sample.contains("Metric Name") and sample.contains(", Context ", ", Invocations "):
        return 75
    if sample.contains("Session Attribute") and sample.contains("Launch Attribute", "Device Attribute"):
        return 75
    if _MESSAGE.search(sample.text):
        return 70
    if "Section: " in sample.text and "Metric Name" in sample.text and "Metric Unit" in sample.text:
        return 60  # cut out of a report: the launch is missing, which `read` says
    return 40 if sample.contains("==PROF== ", "==ERROR== ", "No kernels were profiled") else 0


def read(path: Path, options: Options) -> Report:
    """Launches numbered from 0 in order, their metrics and rules; every stream of a rank by itself."""
    report = Report(str(path), tool="ncu", format="ncu-text")
    results, messages, left = NcuResults(), NcuMessageCollector(), OmittedLines()
    for rank, lines in lines_by_rank(text_lines(path)):
        scan = _TextScan(results, messages, rank)
        scan.read_lines(lines)
        if scan.parse_collected_numbers():
            report.warn(
                "no number shows which mark is the decimal one; read '1,234' as 1234 and '1.234' as 1.234",
                fix="print again with LC_ALL=C",
            )
        left.damaged += scan.damaged
        if bare := scan.lines_of_launches_without_figures():
            report.error(
                f"{singular_or_count(len(bare), 'a launch has', 'launches have')} no figure that could be read",
                line=bare[0],
                fix=_AGAIN,
            )
        if scan.unclosed:
            stopped = singular_or_count(
                len(scan.unclosed), "a table stops before its end", "tables stop before their ends"
            )
            report.warn(f"{stopped}: rows may be missing", line=next((n for n in scan.unclosed if n), None), fix=_AGAIN)
        for number in scan.headless[:_MOST_HEADLESS]:
            report.error("the header of a launch is missing: its figures are left out", line=number, fix=_AGAIN)
    results.fill_report(report, options)
    left.add_problems_to_report(report, has_no_results=results.is_empty)
    report.tool_version = ncu_version_in_facts(results.facts)
    messages.add_problems_to_report(report, has_no_results=results.is_empty)
    return report


@dataclass(slots=True)
class _TextScan:
    """One stream of lines: what the next line belongs to."""

    results: NcuResults
    messages: NcuMessageCollector
    rank: int | None
    process: Row = field(default_factory=dict)
    device: Row = field(default_factory=dict)
    owner: int | None = None
    is_summary: bool = False
    section: str | None = None
    label: str | None = None
    names_table: bool = False  # the label is of the next table
    spread: int = 0  # the place of a row among those of one name
    columns: ColumnSpans | None = None
    titled: bool = False
    session: list[str] | None = None
    last: tuple[str, list[str]] | None = None
    advice: Row | None = None
    before: str = ""
    waiting: list[tuple[int, list[str | None], list[str]]] = field(default_factory=list)
    rules: list[tuple[int, Row, int]] = field(default_factory=list)  # launch, advice, line
    ended: ColumnSpans | None = None  # of the table that ended on the line before
    damaged: list[int] = field(default_factory=list)
    sections: set[str] = field(default_factory=set)  # of this launch so far
    tables: set[tuple[str | None, str | None]] = field(default_factory=set)  # of this launch: section, name
    unclosed: list[int] = field(default_factory=list)  # where a table stops without its closing dashes
    headless: list[int] = field(default_factory=list)  # where figures begin whose launch is not known
    at: int = 0  # the line
    has_content: bool = False  # whether this launch has a section or a figure
    is_doubtful: bool = False  # it follows the header of a launch that has neither: whose figures come next?
    plain: set[tuple[str | None, str]] = field(default_factory=set)  # its metrics outside of sections: table, name
    announced: list[tuple[int, int]] = field(default_factory=list)  # launches and summaries, and the line of each

    def read_lines(self, lines: Iterable[Line]) -> None:
        for number, line in lines:
            self.at = number
            if not (
                self.accept_table_line(line, number)
                or self.accept_advice_line(line)
                or self.accept_opening_line(line, number)
            ):
                if self.is_row_after_table_end(line):
                    self.damaged.append(number)
                else:
                    self.ended = None
                    self.messages.note_message_line(line, number)
            if line.strip():
                self.before = line
        self.close_table_early()

    def accept_opening_line(self, line: str, number: int) -> bool:
        """Whether the line begins something: a process, a launch, a section, a table, advice."""
        if (columns := parse_dashes(line)) is not None:
            self.columns, self.titled, self.last = columns, False, None
            return True
        if (process := parse_process_line(line)) is not None:
            self.process, self.device, self.owner, self.sections = process, {}, None, set()
        elif (header := parse_launch_header(line, self.before)) is not None:
            self.begin_launch(header, number)
        elif (device := parse_device_line(line)) is not None:
            self.device = device
        elif self.announced and _PIECE.search(line):  # a header that something broke in two
            self.owner, self.sections = None, set()
            self.results.next_id += 1
        elif (section := _SECTION.fullmatch(line)) is not None:
            self.begin_section(section[1].rstrip(), number)
        elif (name := _TABLE_NAME.fullmatch(line)) is not None:
            self.label, self.names_table = name[1].rstrip(), True
        elif self.owner is not None and (rule := _RULE.fullmatch(line)) is not None:
            self.advice = {"section": self.section, "type": rule[1][:3], "message": rule[2].rstrip()}
            self.rules.append((self.owner, self.advice, number))
        else:
            return False
        return True

    def begin_section(self, section: str, number: int) -> None:
        """A section begins; each occurs once in a launch, so another of the same name is of a launch without header."""
        if section in self.sections:
            self.owner, self.advice, self.sections = None, None, set()
            self.results.next_id += 1
        if self.owner is None and not self.sections:
            self.headless.append(number)
        self.sections.add(section)
        self.section, self.label, self.has_content = section, None, True

    def begin_launch(self, header: LaunchHeader, number: int) -> None:
        self.section = self.label = self.advice = None
        self.sections, self.tables, self.plain = set(), set(), set()
        self.is_doubtful, self.has_content = self.owner is not None and not self.has_content, False
        self.is_summary = header.invocations is not None
        columns: Row = {"block": 0, "rank": self.rank, **self.process, **self.device, **header.columns}
        if self.is_summary:
            columns["invocations"] = header.invocations
            self.owner = self.results.add_owner(SUMMARY, **columns)
        else:
            self.owner = self.results.add_owner(self.results.next_id, **columns)
            self.results.next_id += 1
        self.announced.append((self.owner, number))

    def accept_table_line(self, line: str, number: int) -> bool:
        """Whether the line belongs to the table that is open; a blank or foreign line ends it."""
        if self.columns is None:
            return False
        if (dashes := parse_dashes(line)) is not None:
            # below the titles, or a table's end, or (when nothing stood between) another table's begin
            is_end = (
                self.last is not None
                and not self.are_column_titles(self.last[1])
                and self.last[1][0] not in _SESSION_TITLES
            )
            is_torn = len(dashes.spans) < len(self.columns.spans) and self.titled
            if is_end:
                self.session, self.ended = None, self.columns
            self.columns, self.last = (None if is_end else self.columns if is_torn else dashes), None
            return True
        if _ELLIPSIS.fullmatch(line):
            return True
        cells = self.columns.cut_cells(line)
        if cells is None:
            if self.note_if_damaged_metric_row(line, number):
                return True
            self.close_table_early(number)
            return False
        if cells[0] in _SESSION_TITLES:
            self.session = cells
            return True
        if self.session is not None:
            self.add_session_fact(cells)
        elif self.are_column_titles(cells) and not self.titled:
            self.titled = True
            # a table that comes again: the line that names another section is damaged, unless ncu names the table, or
            # prints many of one chart, as --print-details all does
            is_named, self.names_table = self.names_table, False
            if (self.section, self.label) in self.tables and not is_named and _CHART not in (self.section or ""):
                self.section = None
            self.tables.add((self.section, self.label))
        elif not self.accept_metric_row(cells, number):
            if self.note_if_damaged_metric_row(line, number):
                return True
            self.close_table_early(number)
            return False
        self.last = (line, cells)
        return True

    def close_table_early(self, number: int | None = None) -> None:
        """A table stops without the dashes that end one."""
        if self.owner is not None and self.session is None and self.last is not None:
            self.unclosed.append(number or 0)
            is_short = self.columns is not None and len(self.last[0].rstrip()) < self.columns.spans[-1][1]
            if is_short and self.waiting and not self.are_column_titles(self.last[1]):
                self.waiting.pop()  # cut short: figures are at the right
                self.damaged.append(number or self.at)
        self.columns = self.last = self.session = None

    def is_row_after_table_end(self, line: str) -> bool:
        """Whether a line is a row of the table that ended right before it."""
        if self.ended is None or self.owner is None or not _ends_with_number(line):
            return False
        cells = self.ended.cut_cells(line)
        return cells is not None and bool(cells[0]) and _NUMBER.match(cells[-1]) is not None

    def note_if_damaged_metric_row(self, line: str, number: int) -> bool:
        """Whether a line that does not fit the columns is a row that lost or moved a cell; it is told of then."""
        if self.owner is None or not self.titled or not _ends_with_number(line):
            return False
        self.damaged.append(number)
        self.last = None
        return True

    def are_column_titles(self, cells: list[str]) -> bool:
        """Whether these are the titles, of which a word may be lost."""
        return cells[0] == _TITLE or cells[-1] in ("Metric Value", "Average")

    def add_session_fact(self, cells: list[str]) -> None:
        assert self.session is not None
        if not cells[0] and self.last is not None and self.results.facts and len(cells) == 2:
            self.results.facts[-1]["text"] = (self.results.facts[-1].get("text") or "") + cells[1]
        else:
            self.results.facts += session_fact_rows(self.session, cells, self.rank)

    def accept_metric_row(self, cells: list[str], number: int) -> bool:
        cell_count = 5 if self.is_summary else 3
        if self.owner is None or len(cells) != cell_count:
            return False
        if self.waiting and self.last is not None and self.continues_last_row(cells):
            _, names, texts = self.waiting[-1]
            names[1] = (names[1] or "") + cells[0]
            texts[-1] += cells[-1]
            return True
        if not cells[0]:
            return False
        has_values = any(cells[2:])  # all empty: ncu has no value for it, as in its CSV
        if (
            (has_values and not all(cells[2:]))
            or (not has_values and _RUN_ON.search(cells[0]) is not None)
            or _TITLE in cells[0]
            or cells[0].startswith(_SECTION_WORD)
            or any(_TWO_NUMBERS.search(cell.partition("(")[0]) for cell in cells[2:])
            or "  " in cells[0]
            or name_or_unit_is_number(cells[0], cells[1])
        ):
            self.damaged.append(number)
            return True
        if self.section is None and (self.is_doubtful or (self.label, cells[0]) in self.plain):
            self.headless.append(number)
            self.owner = None
            return True
        if self.label == _DISTRIBUTION:
            self.spread = self.spread + 1 if self.last is not None and self.last[1][0] == cells[0] else 0
            cells = [f"{cells[0]} ({_OF_INSTANCES[self.spread % 4]})", *cells[1:]]
        self.plain.add((self.label, cells[0]))
        self.has_content = True
        self.waiting.append((self.owner, [self.section, cells[0], self.label, cells[1]], cells[2:]))
        return True

    def continues_last_row(self, cells: list[str]) -> bool:
        """Whether this row holds the rest of the last one's name or value."""
        assert self.last is not None
        assert self.columns is not None
        line, last = self.last
        if last[0] == _TITLE or cells[1]:
            return False
        name_goes_on = bool(cells[0]) and self.columns.cell_fills_column(line, 0) and not any(cells[1:])
        # of instances, over several lines
        is_list = last[-1].count("(") > last[-1].count(")") or last[-1].endswith(";")
        value_goes_on = (
            not cells[0] and bool(cells[-1]) and (is_list or self.columns.cell_fills_column(line, len(cells) - 1))
        )
        return name_goes_on or value_goes_on

    def accept_advice_line(self, line: str) -> bool:
        """Whether the line goes on with a rule's message."""
        if self.advice is None:
            return False
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text or indent < _RULE_INDENT or text.startswith(">"):
            self.advice = None
            return False
        self.advice["message"] = f"{self.advice['message']} {text}".strip()
        return True

    def lines_of_launches_without_figures(self) -> list[int]:
        """The lines of launches of which nothing was read: ncu prints none without a figure."""
        with_figures = {owner for owner, _, _ in self.waiting}
        return [number for owner, number in self.announced if owner not in with_figures]

    def parse_collected_numbers(self) -> bool:
        """Read the numbers, now that the decimal mark can be decided; whether it was guessed."""
        marks = decide_decimal_mark((t, names[3]) for _, names, texts in self.waiting for t in texts)
        parse = ValueParser(marks)
        for owner, names, texts in self.waiting:
            metric_key = (names[0], names[1] or "", names[2], names[3])
            if len(texts) == 1:
                self.results.add_metric(owner, metric_key, parse(texts[0]))
            else:
                self.results.add_metric_over_launches(owner, metric_key, *map(parse, texts))
        for owner, advice, number in self.rules:
            if gain := _GAIN.match(advice["message"]):
                advice["message"] = advice["message"][gain.end() :].strip()
                advice["speedup_type"] = (gain[1] or "global").lower()
                speedup = parse(gain[2])
                advice["speedup_pct"], advice["speedup_pct_pm"] = speedup.number, speedup.half
            if not advice["message"] or _ANY_GAIN.match(advice["message"]):
                self.damaged.append(number)
            else:
                self.results.add_rule(owner, **advice)
        return marks.guessed
