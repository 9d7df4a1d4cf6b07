"""Blocks of plain rows and the odd lines between them -> columns of launches, metrics and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nsw.readers.ncu.csv.block import NO_TEXT, Values, values_of
from nsw.readers.ncu.csv.find_plain_rows import Layout, Numbers, OddFileError, layout_of
from nsw.readers.ncu.csv.line_by_line import Scan
from nsw.readers.ncu.csv.page import OWNER_COLUMNS, Page
from nsw.readers.ncu.csv.tables import Columns, fill
from nsw.readers.ncu.messages import Messages
from nsw.readers.ncu.results import Results
from nsw.readers.ncu.rules_and_problems import RULE_COLUMNS, LeftOut, say_other_marks, warn_of_guess
from nsw.readers.ncu.unmeasured_launches import NO_SIZE
from nsw.readers.ncu.values import EVIDENCE_VALUES, Marks, Parser, decide_marks
from nsw.readers.text.lines import LONGEST, as_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsw.readers.model import Options, Report
    from nsw.readers.ncu.csv.block import Block, Coded
    from nsw.readers.ncu.results import Names
    from nsw.readers.text.lines import Line
    from nsw.tables.data import Row


@dataclass(slots=True)
class _OddMetric:
    line: int
    run: int
    names: Names
    text: str


@dataclass(slots=True)
class _OddLines(Scan):
    """Lines that are no plain rows, read as in any file; what they tell goes to the columns, with its line."""

    here: int = 0
    ended: Callable[[], None] = lambda: None
    found: list[tuple[int, Row, Names, str]] = field(default_factory=list)
    advice: list[tuple[int, Row, Row, str]] = field(default_factory=list)
    new: list[tuple[int, tuple[Any, ...], Row]] = field(default_factory=list)

    def see(self, number: int, line: str) -> None:
        self.here = number
        known = len(self.results.launches)
        Scan.see(self, number, line)
        if len(self.results.launches) > known:
            key = next(reversed(self.results.launches))
            assert isinstance(key, tuple)
            self.new.append((number, key, self.results.launches[key]))
        self.advice += [(number, *rule) for rule in self.waiting.rules]
        self.waiting.rules.clear()

    def metric(self, owner: Row, names: Names, text: str) -> None:
        self.found.append((self.here, owner, names, text))

    def begin(self, page: Page) -> None:
        if layout_of(page) is None:
            raise OddFileError
        Scan.begin(self, page)

    def end_page(self) -> None:
        self.ended()


@dataclass(slots=True)
class _Held:
    """A block whose values wait for more evidence of how numbers are written."""

    number: int
    block: Block | None
    runs: int
    odd: list[_OddMetric]


class Gather:
    """Takes the pieces of a file in their order."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.messages, self.left = Messages(), LeftOut()
        self.odd = _OddLines(report, Results(), self.messages, self.left, None, 0)
        self.odd.ended = self.end_page
        self.columns = Columns()
        self.layout: Layout | None = None
        self.marks: Marks | None = None
        self.held: list[_Held] = []
        self.evidence = 0
        self.next = 0  # the line behind the last odd one
        self.owners: dict[int, int] = {}  # the run of each launch of an odd line

    def header(self, number: int, line: str) -> None:
        """Another page begins."""
        self.one(number, line)
        if self.odd.pending or self.odd.page is None:
            raise OddFileError
        self.layout = layout_of(self.odd.page)
        self.take_odd(number, None, 0)

    def lines(self, lines: Iterable[Line]) -> None:
        """Lines that are not worth a block."""
        first = self.next
        for number, line in lines:
            self.one(number, line)
        self.take_odd(first, None, 0)

    def one(self, number: int, line: str) -> None:
        """One odd line; those that wait for the line behind them are released when that is a plain row."""
        if len(line) > LONGEST:
            raise OddFileError
        if number != self.next:
            self.odd.release()
        self.odd.feed(number, line)
        self.next = number + 1

    def add(self, number: int, block: Block) -> None:
        """A block whose first line has this number."""
        page = self.odd.page
        for at, line in block.odd:
            self.one(number + at, as_shown(line))
        if self.next != number + block.lines:
            self.odd.release()
        if self.odd.page is not page:
            raise OddFileError
        runs = self.columns.add_runs(
            number + block.run_lines, np.full(len(block.ids), self.odd.block), block.ids, block.pids, block.owners
        )
        self.columns.add_rules(number + block.rule_lines, runs + block.rule_runs, block.rules)
        self.take_odd(number, block, runs)

    def take_odd(self, number: int, block: Block | None, runs: int) -> None:
        """What the odd lines of a piece told, and its plain rows."""
        odd = self.odd
        self.add_launches(odd.new)
        metrics = [_OddMetric(line, self.owners[id(o)], names, text) for line, o, names, text in odd.found]
        self.add_advice(odd.advice)
        for found in (odd.new, odd.found, odd.advice):
            found.clear()
        if block is None and not metrics:
            return
        self.held.append(_Held(number, block, runs, metrics))
        self.evidence += len(metrics) + (len(block.printed) if block is not None else 0)
        if self.marks is not None:
            self.keep(self.marks)
        elif self.evidence >= EVIDENCE_VALUES:
            self.decide()

    def add_launches(self, new: list[tuple[int, tuple[Any, ...], Row]]) -> None:
        """Launches of odd lines, as runs of one row each."""
        cells = [_cells(key, owner) for _, key, owner in new]
        blocks, ids, pids = (np.array([owner[c] for _, _, owner in new], dtype=np.int64) for c in _KEY)
        coded = {name: _each([c[name] for c in cells]) for name in OWNER_COLUMNS[2:]}
        first = self.columns.add_runs(np.array([line for line, _, _ in new], dtype=np.int64), blocks, ids, pids, coded)
        self.owners |= {id(owner): first + i for i, (_, _, owner) in enumerate(new)}

    def add_advice(self, advice: list[tuple[int, Row, Row, str]]) -> None:
        """Rules of odd lines."""
        if not advice:
            return
        runs = np.array([self.owners[id(owner)] for _, owner, _, _ in advice], dtype=np.int32)
        told = [_each([rule[name] for _, _, rule, _ in advice]) for name in RULE_COLUMNS]
        gains = _each([gain for _, _, _, gain in advice])
        self.columns.add_rules(np.array([line for line, _, _, _ in advice]), runs, [*told, gains])

    def decide(self) -> Marks:
        """How the numbers of the page are written."""
        texts: list[tuple[str, str | None]] = []
        for held in self.held:
            texts += _texts(held, EVIDENCE_VALUES - len(texts))
        self.marks = decide_marks(texts)
        self.keep(self.marks)
        return self.marks

    def keep(self, marks: Marks) -> None:
        """Put what was held into the columns."""
        for held in self.held:
            if held.block is not None and held.block.values is None:
                held.block.values = values_of(held.block.printed, marks)
            self.columns.add_metrics(*_metrics(held, marks))
        self.held.clear()

    def end_page(self) -> None:
        """The lines that follow are of another page."""
        self.take_odd(self.next, None, 0)
        marks = self.marks if self.marks is not None else self.decide()
        self.marks, self.evidence, self.layout = None, 0, None
        self.odd.page = None
        if marks.guessed:
            warn_of_guess(self.report, self.odd.block)
        self.columns.end_page(Parser(marks))

    def fill(self, options: Options) -> None:
        """The tables and problems of the whole file."""
        self.odd.finish()
        if not self.columns.runs or NO_SIZE in self.columns.owners["Grid Size"].known:
            raise OddFileError
        say_other_marks(self.report, self.columns.other_marks())
        fill(self.columns, self.report, options)
        self.left.tell(self.report, empty=False)
        self.messages.tell(self.report, empty=False)


_KEY = ("block", "launch_id", "pid")
_OWNED = (
    "process", "host", "kernel", "context", "stream", "block_size", "grid", "device", "compute_capability",
    "nvtx",
)  # fmt: skip


def _cells(key: tuple[Any, ...], owner: Row) -> dict[str, str | None]:
    """The cells of a launch's columns, as printed."""
    if key[1:] != (str(owner["launch_id"]), str(owner["pid"])):
        raise OddFileError  # `07` is another id than `7`
    cells = {name: owner[column] for name, column in zip(OWNER_COLUMNS[2:-1], _OWNED, strict=True)}
    cells[OWNER_COLUMNS[-1]] = None  # its ranges are among those of the column before
    if owner["device"] is None:
        cells["Device"] = owner["device_name"]
    return {name: None if cell is None else str(cell) for name, cell in cells.items()}


def _each(cells: list[str | None]) -> Coded:
    """Cells without looking which are the same."""
    return np.arange(len(cells), dtype=np.int32), cells


def _texts(held: _Held, most: int) -> list[tuple[str, str | None]]:
    """The first values as printed, with their units, in their order."""
    block = held.block
    plain: list[tuple[str, str | None]] = []
    if block is not None:
        codes, names = block.names
        units = [names[code][3] for code in codes[:most].tolist()]
        plain = list(zip(block.printed.slice(0, most).to_pylist(), units, strict=True))
    if not held.odd:
        return plain
    lines = (held.number + block.metric_lines[:most]).tolist() if block is not None else []
    every = sorted(
        [*zip(lines, plain, strict=True), *((o.line, (o.text, o.names[3])) for o in held.odd)], key=lambda e: e[0]
    )
    return [value for _, value in every[:most]]


def _metrics(held: _Held, marks: Marks) -> tuple[Numbers, Numbers, list[Names], Values]:
    """Runs, names and values of a block's metrics, those of odd lines in their places."""
    block = held.block
    if not held.odd:
        assert block is not None
        assert block.values is not None
        return held.runs + block.metric_runs, *block.names, block.values
    names = [o.names for o in held.odd]
    lines, runs = np.array([o.line for o in held.odd]), np.array([o.run for o in held.odd], dtype=np.int32)
    codes = np.arange(len(names), dtype=np.int32)
    values = values_of(pa.array([o.text for o in held.odd], type=pa.string()), marks)
    if block is not None:
        assert block.values is not None
        lines = np.concatenate((held.number + block.metric_lines, lines))
        runs = np.concatenate((held.runs + block.metric_runs, runs))
        codes = np.concatenate((block.names[0], codes + len(block.names[1])))
        names = block.names[1] + names
        values = _joined(block.values, values)
    order = np.argsort(lines, kind="stable")
    shown = None if values.shown is None else (values.shown[0][order], values.shown[1])
    return runs[order], codes[order], names, Values(values.numbers[order], values.halves[order], shown)


def _joined(one: Values, other: Values) -> Values:
    codes, words = zip(*(v.shown or (np.full(len(v.numbers), NO_TEXT), []) for v in (one, other)), strict=True)
    moved = np.where(codes[1] == NO_TEXT, NO_TEXT, codes[1] + len(words[0]))
    return Values(
        np.concatenate((one.numbers, other.numbers)),
        np.concatenate((one.halves, other.halves)),
        (np.concatenate((codes[0], moved)), words[0] + words[1]),
    )
