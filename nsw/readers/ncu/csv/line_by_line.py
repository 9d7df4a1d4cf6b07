"""The lines of `ncu --csv` one by one: which page they are on, and what each of them tells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nsw.readers.ncu.csv.page import Page, page_of, split
from nsw.readers.ncu.csv.source_page import SourceRows
from nsw.readers.ncu.rules_and_problems import LeftOut, rule_of, warn_of_guess
from nsw.readers.ncu.session import session_fact
from nsw.readers.ncu.values import EVIDENCE_VALUES, Parser, decide_marks, is_misplaced, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.model import Report
    from nsw.readers.ncu.messages import Messages
    from nsw.readers.ncu.results import Names, Results
    from nsw.readers.text.lines import Line
    from nsw.tables.data import Row

_TITLED: Final = ('"Kernel Name","', '"Function Name","', '"File Path","', '"File Name","')  # of a source page
_JOINED: Final = 200  # lines that one quoted field may span
_NEW_ROW: Final = re.compile(r'"\d+"[,;\t]"\d+"[,;\t]')
_ROW_START: Final = re.compile(r'"?(?:\d+|0x[0-9a-fA-F]+)"?[,;\t]')


@dataclass(slots=True)
class Waiting:
    """Rows of one page as text: their decimal mark is known when all have been seen."""

    metrics: list[tuple[Row, Names, str]] = field(default_factory=list)
    spreads: list[tuple[Row, Names, tuple[str, str, str]]] = field(default_factory=list)
    rules: list[tuple[Row, Row, str]] = field(default_factory=list)


@dataclass(slots=True)
class Scan:
    """One stream of lines: which page it is on, and what has been seen of it."""

    report: Report
    results: Results
    messages: Messages
    left: LeftOut
    rank: int | None
    blocks: int
    source: SourceRows = field(default_factory=SourceRows)
    page: Page | None = None
    units: list[str] = field(default_factory=list)
    waiting: Waiting = field(default_factory=Waiting)
    columns: list[tuple[int, Names]] = field(default_factory=list)
    names: dict[Names, Names] = field(default_factory=dict)
    parse: Parser | None = None  # once enough values have been seen to decide the marks of the page
    at: int = 0  # the line
    head: str = "\0"  # how the rows of the last launch begin, and the launch
    owner: Row = field(default_factory=dict)
    middles: dict[str, Names] = field(default_factory=dict)  # what is between that and the value
    aside: tuple[int, int] = (0, 0)  # fields of a table between the rows, and its last line
    pending: list[Line] = field(default_factory=list)  # lines of a row whose quotes are still open

    def run(self, lines: Iterable[Line]) -> None:
        """Read all lines to their end."""
        for number, line in lines:
            if not self.pending and line.startswith(self.head) and self.known_row(line):
                continue
            self.feed(number, line)
        self.finish()

    def feed(self, number: int, line: str) -> None:
        """Read one line; one that begins a field of several lines waits for the rest of them."""
        if self.pending:
            if not _NEW_ROW.match(line) and len(self.pending) < _JOINED:
                self.pending.append((number, line))
                if line.count('"') % 2:
                    joined, self.pending = self.pending, []
                    self.see(joined[0][0], "\n".join(text for _, text in joined))
                return
            self.release()
        if self.page is not None and _NEW_ROW.match(line) and line.count('"') % 2:
            self.pending = [(number, line)]
        else:
            self.see(number, line)

    def release(self) -> None:
        """Read the lines that waited as lines: their field did not end."""
        waiting, self.pending = self.pending, []
        for number, line in waiting:
            self.see(number, line)

    def finish(self) -> None:
        """There are no more lines."""
        self.release()
        self.end_page()

    def see(self, number: int, line: str) -> None:
        """Take a row, a header, or a message."""
        if line.startswith(self.head) and self.known_row(line):
            return
        if (page := page_of(line)) is not None:
            self.end_page()
            self.begin(page)
        elif self.is_title(line):
            self.end_page()
        elif self.page is None or not self.take(line, number):
            self.messages.see(line, number)

    def is_title(self, line: str) -> bool:
        """Whether the line names what a source page is of."""
        is_place = self.page is None or self.page.kind == "source"
        return is_place and line.startswith(_TITLED) and self.source.title(split(line, ",") or [])

    def begin(self, page: Page) -> None:
        """A header: the lines below are of its page."""
        if page.kind == "source":
            self.source.begin()
        elif page.kind != "session":
            self.blocks += 1
        self.page, self.units, self.columns = page, [], []
        self.head, self.middles = "\0", {}

    def known_row(self, line: str) -> bool:
        """Take a metric of the last launch, by text alone, when a row with the same names was read before."""
        end = len(line) - (2 if line.endswith('",') else 1)
        at = line.rfind(',"', 0, end)
        if at < 0 or line[end] != '"' or '"' in (value := line[at + 2 : end]):
            return False
        names = self.middles.get(line[len(self.head) : at])
        if names is None:
            return False
        self.metric(self.owner, names, value)
        return True

    def learn(self, page: Page, row: list[str], line: str, owner: Row, names: Names) -> None:
        """Remember a row of metrics for `known_row`, if it is quoted as ncu does it."""
        start, value = page.names_at
        if not start:
            return
        head, middle = ('"' + '","'.join(cells) + '"' for cells in (row[:start], row[start:value]))
        if line.removesuffix(",") == f'{head},{middle},"{row[value]}"':
            self.head, self.owner = f"{head},", owner
            self.middles[middle] = names

    def metric(self, owner: Row, names: Names, text: str) -> None:
        """One metric: read at once when the marks are known, else when enough have come or the page ends."""
        if self.parse is not None:
            self.results.metric(owner, names, self.parse(text))
            return
        waiting = self.waiting.metrics
        waiting.append((owner, names, text))
        if len(waiting) >= EVIDENCE_VALUES:
            self.decide()

    def decide(self) -> Parser:
        """How the page's numbers are written; the metrics that waited for it are read."""
        waiting = self.waiting
        texts = [(t, names[3]) for _, names, t in waiting.metrics]
        texts = texts or [(t, names[3]) for _, names, ts in waiting.spreads for t in ts]
        parse = self.parse = Parser(decide_marks(texts))
        for owner, names, text in waiting.metrics:
            self.results.metric(owner, names, parse(text))
        waiting.metrics.clear()
        return parse

    @property
    def block(self) -> int:
        """The number of the page among those with results."""
        return self.blocks - 1

    def take(self, line: str, number: int) -> bool:
        """Whether the line was a row of the page."""
        page, self.at = self.page, number
        assert page is not None
        if page.delimiter not in line:
            return False
        if page.quoted and not line.startswith('"'):  # what its first cell held is lost
            return self.is_damaged(page, line, number)
        row = split(line, page.delimiter) if line.count('"') % 2 == 0 else None
        if row is not None and self.row(page, row, line):
            return True
        self.source.line = None  # the line of source code that this may have been is not known
        if row is not None and self.is_aside(row, number):
            return True
        return self.is_damaged(page, line, number)

    def is_damaged(self, page: Page, line: str, number: int) -> bool:
        """Whether a line that is no row looks like one; it is told of then."""
        if not (_ROW_START.match(line) or (page.quoted and line.count('","') * 2 > len(page.header))):
            return False
        self.left.damaged.append(number)
        return True

    def is_aside(self, row: list[str], number: int) -> bool:
        """Whether the fields are of a small table between the rows: of the NUMA affinity of GPUs, of NVLinks."""
        size, last = self.aside
        begins = 1 < len(row) < 12 and all(cell and not cell[0].isdigit() for cell in row)
        if not begins and (size, last) != (len(row), number - 1):
            return False
        self.aside = (len(row), number)
        return True

    def row(self, page: Page, row: list[str], line: str) -> bool:
        """Whether the fields were a row of the page."""
        if page.kind == "session":
            self.results.facts += session_fact(page.header, row, self.rank)
            return True
        if page.kind == "source":
            return self.source.row(page, row, self.rank)
        if page.kind == "raw" and page.is_units(row):
            self.units = self.units or row
            return True
        if page.kind == "summary":
            return self.summary_row(page, row)
        owner = self.launch(page, row)
        if owner is None:
            return False
        if not page.is_of(row, owner):
            self.left.of_two.setdefault(page.key(row)[0], self.at)
            return True
        if page.kind == "raw":
            self.raw_row(page, row, owner)
            return True
        return self.details_row(page, row, owner, line)

    def launch(self, page: Page, row: list[str]) -> Row | None:
        """The launch that a row is of; None when it is no row of this page."""
        if not page.is_sized(row):
            return None
        key = (self.block, *page.key(row))
        known = self.results.launches.get(key)  # an id that is known needs no second look
        if known is None and page.fits(row):
            known = self.results.launch(key, **page.owner(row, self.block, self.rank))
        return known

    def details_row(self, page: Page, row: list[str], owner: Row, line: str) -> bool:
        """A metric of a launch, or a rule, or both; whether it was one."""
        section, name, label, unit = page.named(row)
        names: Names = (section or None, name, label or None, unit)
        if is_misplaced(name, unit) or (not name and row[page.at["Metric Value"]]):
            return False
        if name:
            names = self.names.setdefault(names, names)  # they repeat from launch to launch
            self.metric(owner, names, row[page.at["Metric Value"]])
        if len(row) > page.least and (found := rule_of(page, row)):
            self.waiting.rules.append((owner, *found))
        elif not name and any(page.ruled(row)[1:]):
            return False  # advice without its rule
        elif name and page.quoted:
            self.learn(page, row, line, owner, names)
        return True

    def raw_row(self, page: Page, row: list[str], owner: Row) -> None:
        """All metrics of a launch."""
        units = self.units
        if not self.columns:
            self.columns = [(i, (None, page.header[i], None, units[i] if units else None)) for i in page.metrics]
        for i, names in self.columns:
            self.metric(owner, names, row[i])

    def summary_row(self, page: Page, row: list[str]) -> bool:
        """A metric over launches; whether it was one."""
        if not page.fits(row):
            return False
        about = {k: v for k, v in page.owner(row, self.block, self.rank).items() if k != "launch_id"}
        about["invocations"] = whole(page.field(row, "Invocations"))
        owner = self.results.summary(tuple(about.values()), **about)
        section, name, _, unit = page.named(row)
        names = (section or None, name, None, unit)
        if is_misplaced(name, unit):
            return False
        least, most, mean = (row[page.at[c]] for c in ("Minimum", "Maximum", "Average"))
        self.waiting.spreads.append((owner, names, (least, most, mean)))
        return True

    def end_page(self) -> None:
        """Read the numbers of the page, now that its decimal mark can be decided."""
        if self.source.end():
            warn_of_guess(self.report, self.source.block)
        parse = self.parse or self.decide()
        waiting, self.waiting, self.page, self.parse = self.waiting, Waiting(), None, None
        if parse.marks.guessed:
            warn_of_guess(self.report, self.block)
        for owner, names, texts_ in waiting.spreads:
            self.results.spread(owner, names, *map(parse, texts_))
        for owner, told, gain in waiting.rules:
            speedup = parse(gain.removesuffix("%"))
            self.results.rule(owner, **told, speedup_pct=speedup.number, speedup_pct_pm=speedup.half)
