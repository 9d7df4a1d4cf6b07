"""PyTorch's `key_averages().table()`: the tables in a program's output or in Markdown, of PyTorch 0.4 to today.

A table that was copied out of a document has tabs between its cells and no dashes, and some of its rows are torn: only
whole ones are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsw.readers.messages import problem_of_known_message
from nsw.readers.model import Options, Problem, Report, Sample
from nsw.readers.text import lines as printed
from nsw.readers.text.known_words import meaning_by_pattern, meaning_by_word
from nsw.readers.text.quantities import Quantity, digits, duration, parse_integer, percent, size
from nsw.tables import Row
from nsw.wording import plural

__all__ = ["read", "sniff"]


# a line that may be the header; `_Table.is_known` decides
_NAME = re.compile(r"\bName\b(?=\s\s|\t| *\|)")
_TIMES = re.compile(r"\b(?:Self \w+|(?:CPU|CUDA|XPU|HPU|MPS) (?:total|time))\b")
_LEAD = re.compile(r"^(?:\d{4}-\S+Z|\s*(?:#|//|>|\*)+) ")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_DASHES = re.compile(r"(?<!-)-{4,}+(?: {2,}+-{4,}+)++")
_RULE = re.compile(r"[|\s:-]+")
_FOOTER = re.compile(r"\b((?:Self )?[A-Za-z0-9]+) time total: +([\d.]+ ?(?:us|ms|s))\b")
_TORN_FOOTER = re.compile(r"\b(?!Self\b)\w{0,2}lf (?:CPU|CUDA) time total:")
_ANY_FOOTER = re.compile(r"\bSelf [A-Za-z0-9]+ time total:")
_SPOKEN = re.compile("CUPTI|CUDA profil|[Pp]rofiler ")
_MOST_SAID = 50
_TITLES = re.compile(r"\s{2,}|\s*\|\s*")
_ENOUGH_TITLES = 4
_CALLS = re.compile(r"# of Call[s:]{0,2}")  # the last title, which a page may have cut
_MARKUP = re.compile(r"""(?:<|\b)(?:="" )?td="".*|<td>.*|=\"\"""")  # what is left of a page's cells in a name
_MOST_TORN = 40  # rows whose lines are named
_AGAIN = "copy or print the table again"
_ABSENT = frozenset({"", "-", "--", "n/a", "none", "nan", "nan%", "inf", "nanus"})  # what stands for no figure

_FIXED = meaning_by_word("torch-table")
# the accelerator's columns carry its name: CUDA, XPU, HPU ...
_DEVICE = meaning_by_pattern("torch-table device")
_UNREAD = frozenset({"CUDA total %", "XPU total %", "Node ID", "Overload Name", ""})
_FLOPS = re.compile(r"(?:Total )?([KMGTP]?)FLOP[Ss]")
_FLOPS_POWER = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}


def sniff(sample: Sample) -> int:
    """By the header of the table near the beginning, or its footer anywhere."""
    if sample.is_binary:
        return 0
    before = ""
    for raw in sample.text.replace("**", "").split("\n"):
        line = printed.visible_line(raw)
        if _may_be_header(line) and _Table(line, before).is_known:
            return 92
        before = line if line.strip() else before
    return 60 if sample.contains("Self CPU time total:") else 0


def read(path: Path, options: Options) -> Report:
    """Fill `operators`, a block a table, and `facts` with the totals below each."""
    report = Report(str(path), tool="pytorch", format="torch-table")
    operators: list[Row] = []
    facts: list[Row] = []
    odd: list[tuple[int, str, str]] = []
    torn: list[int] = []
    block = -1
    for rank, lines in printed.lines_by_rank(printed.text_lines(path)):
        table: _Table | None = None
        before = ""
        for number, raw in lines:
            text = raw.replace("**", "")
            if _may_be_header(text) and (found_table := _Table(text, before)).is_known:
                table = found_table
                block += 1
            elif _TORN_FOOTER.search(text) is None and (
                totals := [_total_fact(match) for match in _FOOTER.finditer(text)]
            ):
                table = None
                block = _add_totals(totals, facts, {"block": max(block, 0), "rank": rank})
            elif _ANY_FOOTER.search(text) or _TORN_FOOTER.search(text):
                table = None
                report.error("a total below a table is damaged: it is left out", line=number, fix=_AGAIN)
            elif _are_damaged_titles(text):
                table = None
                report.error("the titles of a table are damaged: its rows are left out", line=number, fix=_AGAIN)
            elif table is not None:
                rows, taking = len(operators), table
                table = _take_line(taking, (number, text), operators, {"block": block, "rank": rank}, report)
                torn += [number] if taking.is_torn else []
                odd += [(number, *cell) for cell in taking.odd] if len(operators) > rows else []
            elif _SPOKEN.search(text) and (problem := problem_of_known_message("pytorch", text, line=number)):
                _note_once(report, problem)
            before = text if text.strip() else before
    report.errors(
        [f"'{cell[:40]}' below '{title}' is not a figure and is left out" for _, title, cell in odd],
        f"{len(odd)} cells in all are not figures",
        lines=[number for number, _, _ in odd],
        fix=_AGAIN,
    )
    if torn:
        line_list = ", ".join(map(str, torn[:_MOST_TORN])) + (" ..." if len(torn) > _MOST_TORN else "")
        message = f"{plural(len(torn), 'row')} of tables with tabs are torn"
        report.error(
            f"{message}, with cells that are lost or cut, and are left out: lines {line_list}", line=torn[0], fix=_AGAIN
        )
    if facts and not operators:
        report.warn("a table has totals, but none of its rows can be read", fix=_AGAIN)
    _drop_negative_times(operators, report)
    if options.wants("operators"):
        report.tables["operators"] = operators
    if options.wants("facts") and facts:
        report.tables["facts"] = facts
    return report


def _drop_negative_times(operators: Sequence[Row], report: Report) -> None:
    """Take out self times below zero: PyTorch subtracts callees that overlap (use_cuda of the legacy profiler)."""
    names = []
    for row in operators:
        for column in ("self_device_ns", "self_cpu_ns"):
            if (row.get(column) or 0) < 0:
                row.update(dict.fromkeys((column, f"{column}_pm", column.replace("_ns", "_pct"))))
                names.append(row["name"])
    if names:
        report.warn(
            f"PyTorch printed self times below zero, which are left out: {', '.join(dict.fromkeys(names[:5]))}",
            fix="profile with torch.profiler.profile: the legacy profiler subtracts callees that overlap",
        )


def _add_totals(totals: Sequence[Row], facts: list[Row], origin: Row) -> int:
    """Add the totals of a line; give the block that they are of: one more where its own totals are there already."""
    block, rank = origin["block"], origin["rank"]
    for total in totals:
        if any(f == total | {"block": block, "rank": rank} for f in facts[-2:]):
            continue  # a line that is there twice
        if any((f["key"], f["block"], f["rank"]) == (total["key"], block, rank) for f in facts[-8:]):
            block += 1  # of a table that is not here
        facts.append(total | {"block": block, "rank": rank})
    return int(block)


def _may_be_header(line: str) -> bool:
    """Whether the titles `Name` and then a time are in the line."""
    name = _NAME.search(line)  # the first: what is not behind it is behind no later one
    return name is not None and _TIMES.search(line, name.end()) is not None


def _are_damaged_titles(text: str) -> bool:
    """Whether a line that is no header has titles in every second column at least."""
    if "Self C" not in text and " total" not in text:
        return False
    titles = [" ".join(t.split()) for t in _TITLES.split(text.strip().strip("|"))]
    known_count = sum(t in _FIXED or any(p.fullmatch(t) for p, _ in _DEVICE) for t in titles)
    return known_count >= _ENOUGH_TITLES and 2 * known_count > len(titles)


def _note_once(report: Report, problem: Problem) -> None:
    """A message of the profiler; those that come again and again are kept once."""
    if len(report.problems) < _MOST_SAID and all(p.message != problem.message for p in report.problems):
        report.problems.append(problem)


def _take_line(table: _Table, line: printed.Line, operators: list[Row], origin: Row, report: Report) -> _Table | None:
    """Take one line below a header; None where the table ends with it."""
    number, text = line[0], table.without_lead(line[1])
    table.is_torn = False
    if _FENCE.match(text):
        return None
    if not text.strip():
        table.after_blank = True
        return table
    spread, table.after_blank = table.after_blank and table.rows > 0, False
    if _DASHES.search(text) or ("---" in text and _RULE.fullmatch(text)):
        if not table.ruled:
            table.lay_out(text)
            return table
        return None if table.rows else table
    row = table.parse_row(text)
    if row is not None:
        table.rows += 1
        operators.append(row | origin)
    elif table.has_tabs:
        table.is_torn = "\t" in text.strip()
        return table if table.is_torn else None
    elif table.rows and (source_lines := table.more_source(text)):
        operators[-1]["source"] = f"{operators[-1].get('source') or ''}\n{source_lines}".strip()
    elif spread:  # a row may follow a blank line where an author put one between all lines; this is none
        return None
    else:
        report.warn("a line in a PyTorch table is not a row of it and was skipped", line=number)
    return table


@dataclass(slots=True)
class _Column:
    name: str
    read: Callable[[str], Quantity | None] | None  # None: text


class _Table:
    """The columns of one table, by its header and the dashes above it."""

    def __init__(self, header: str, before: str) -> None:
        self.rows = 0
        self.after_blank = False
        self.is_torn = False  # whether the last line is a row with tabs, and not whole
        self.has_tabs = "\t" in header.strip() and "|" not in header
        self.odd: list[tuple[str, str]] = []  # of the last row, title and text of cells that are no figures
        self.ruled = False
        self._spans: tuple[printed.Span, ...] = ()
        dashes = _DASHES.search(before)
        if dashes and header.startswith(before[: dashes.start()].rstrip()):
            self.lay_out(before)
            self.ruled = False  # the dashes below the header are still to come
        self.device: str | None = None
        titles = self._titles = self._split_at_gaps(self.without_lead(header))
        self._columns = [self._parse_header(name) for name in titles]
        known_names = [c.name for c in self._columns if c.name]
        figures = [c.name for c in self._columns if c.read is not None]
        # hand-made extracts leave columns out, but not out of one row
        self._needed = [c for c in ("self_cpu_ns", "calls") if c in known_names] or figures[:1]
        strange = [t for c, t in zip(self._columns, titles, strict=True) if not c.name and t not in _UNREAD]
        enough = len(known_names) >= max(3, 0.6 * len(self._columns)) and ("calls" in known_names or not strange)
        self.is_known = known_names[:1] == ["name"] and bool(figures) and enough

    def without_lead(self, text: str) -> str:
        """A line less what a log put before each line of the table."""
        return text if self._spans else _LEAD.sub("", text)

    def lay_out(self, dashes: str) -> None:
        """Learn where the columns are."""
        self.ruled = True
        match = _DASHES.search(dashes)
        if match and not self._spans:
            self._spans = printed.ruled_spans(dashes[: match.end()], match.start())

    def parse_row(self, text: str) -> Row | None:
        """A row of `operators`, or None where the line is none."""
        if self.has_tabs:
            return self._complete_row(text.rstrip("\n").split("\t"))
        for cells in (self._cut_at_spans(text), self._split_at_gaps(text)):
            if cells is not None and len(cells) == len(self._columns):
                row = self._row_of_cells(self._unswap_cells(cells))
                if row is not None:
                    return row
        return None

    def _complete_row(self, cells: Sequence[str]) -> Row | None:
        """A row with tabs, where no cell is lost or cut: the mean of its times is their sum over its calls."""
        cells = [cell.strip() for cell in cells[len(cells) - len(self._columns) :]]
        if len(cells) != len(self._columns) or not all(cells):
            return None
        row = self._row_of_cells([_MARKUP.sub("", cells[0]).strip(), *cells[1:]])
        return (
            None
            if row is None or self.odd or any(_contradicts_mean(row, *mean_columns) for mean_columns in _MEANS)
            else row
        )

    def more_source(self, text: str) -> str:
        """The text of a line that holds nothing but a further place in the source."""
        has_source = any(c.name == "source" for c in self._columns)
        return text.strip() if has_source and self._spans and not text[: self._spans[1][1]].strip() else ""

    def _cut_at_spans(self, text: str) -> list[str] | None:
        if not self._spans or len(self._spans) != len(self._columns):
            return None
        return printed.ruled_cells(text, self._spans)

    def _split_at_gaps(self, text: str) -> list[str]:
        if self.has_tabs:
            return [cell.strip() for cell in text.strip().split("\t")]
        return printed.spaced_cells(text[self._spans[0][0] if self._spans else 0 :])

    def _parse_header(self, header: str) -> _Column:
        name = " ".join(header.split())
        if _CALLS.fullmatch(name):
            name = "# of Calls"
        if name in _FIXED:
            return _Column(_FIXED[name], _cell_parser(_FIXED[name]))
        if flops := _FLOPS.fullmatch(name):
            power = _FLOPS_POWER[flops[1]]
            return _Column("flops", lambda text: (d := digits(text)) and d.scaled(power))
        for pattern, column in _DEVICE:
            if match := pattern.fullmatch(name):
                self.device = match[1].upper()
                return _Column(column, _cell_parser(column))
        return _Column("", None)

    def _unswap_cells(self, cells: list[str]) -> list[str]:
        """PyTorch prints FLOP below the header of the source, and the source below that of FLOP."""
        names = [c.name for c in self._columns]
        if "source" in names and "flops" in names:
            source, flops = names.index("source"), names.index("flops")
            if cells[source] == "--" or digits(cells[source]) is not None:
                cells = list(cells)
                cells[source], cells[flops] = cells[flops], cells[source]
        return cells

    def _row_of_cells(self, cells: list[str]) -> Row | None:
        row: Row = {"device_kind": self.device}
        self.odd = []
        for column, title, cell in zip(self._columns, self._titles, cells, strict=True):
            if column.name == "calls":
                row["calls"] = parse_integer(cell)
            elif column.read is None:
                row[column.name] = cell or None
            elif "," not in cell and (quantity := column.read(cell)) is not None:  # PyTorch groups no digits
                row[column.name] = quantity.value
                if quantity.pm is not None:
                    row[f"{column.name}_pm"] = quantity.pm
            elif cell.lower() not in _ABSENT:
                self.odd.append((title, cell))
        row.pop("", None)
        if not row.get("name") or any(row.get(column) is None for column in self._needed):
            return None
        return None if (row.get("calls") or 0) >= 2**63 else row


_MEANS = (("cpu_ns", "cpu_avg_ns"), ("device_ns", "device_avg_ns"))


def _contradicts_mean(row: Row, total: str, mean: str) -> bool:
    """Whether a sum is not the mean times the calls, as far as they are printed."""
    if row.get(total) is None or row.get(mean) is None:
        return False
    slack = row.get(f"{total}_pm", 0.0) + row["calls"] * row.get(f"{mean}_pm", 0.0)
    return bool(abs(row[total] - row["calls"] * row[mean]) > 2 * slack)


def _cell_parser(column: str) -> Callable[[str], Quantity | None] | None:
    if column.endswith("_ns"):
        return duration
    if column.endswith("_pct"):
        return percent
    if column.endswith("_bytes"):
        return lambda text: size(text, base=1024)
    return None


def _total_fact(match: re.Match[str]) -> Row:
    """`Self CUDA time total: 1.763ms` as the fact self_cuda_time_total_ns."""
    time = duration(match[2])
    key = f"{match[1].lower().replace(' ', '_')}_time_total_ns"
    return {"key": key, "unit": "ns", "value": time and time.value, "value_pm": time and time.pm}
