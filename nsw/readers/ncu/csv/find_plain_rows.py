"""Which lines of a details page are plain rows of metrics or of rules, and where their cells are, by numpy.

A plain row has every field in quotes, no quote within a field of its names and values, and ids that are
numbers. All other lines are odd: `line_by_line.py` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from nsw.readers.ncu.csv.page import split

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.readers.ncu.csv.page import Page

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_QUOTE, _COMMA, _NEWLINE, _RETURN = b'",\n\r'
_ZERO: Final = ord("0")
_RULED: Final = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
_DIGITS: Final = 18  # of an id that fits 64 bits


class OddFileError(Exception):
    """The file is not as regular as this way of reading needs; the exact way reads it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of a details page are: those of the launch, from `start` names, `value`, those of rules."""

    page: Page
    start: int
    value: int

    @property
    def metric_fields(self) -> int:
        """How many fields of a metric row tell of the metric."""
        return self.value + 1 - self.start

    @property
    def rule_fields(self) -> int:
        """How many fields of a row of a rule tell of the rule; 0 where the page has no rules."""
        return len(self.page.header) - self.start if "Rule Name" in self.page.at else 0


def layout_of(page: Page) -> Layout | None:
    """The layout of a page as ncu writes it; None of other pages."""
    if page.kind != "details" or not page.quoted or page.header[:2] != ("ID", "Process ID"):
        return None
    start, value = page.names_at
    ruled = [i for name, i in page.at.items() if name in _RULED]
    return Layout(page, start, value) if start and min(ruled, default=value + 1) > value else None


@dataclass(frozen=True, slots=True)
class Rows:
    """Plain rows of one kind: their lines in the piece, and the places of the quotes of their names and values."""

    lines: Numbers
    quotes: Numbers  # two a field

    def cell(self, column: int) -> tuple[Numbers, Numbers]:
        """Where the cells of a column begin and end; of those that tell of the metric or rule, the first is 0."""
        return self.quotes[:, 2 * column] + 1, self.quotes[:, 2 * column + 1]

    def cells(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """Where the text of some columns, with their quotes, begins and ends."""
        return self.quotes[:, 2 * first], self.quotes[:, 2 * last + 1] + 1


class Piece:
    """Whole lines of a details page, as UTF-8."""

    def __init__(self, data: bytes | bytearray, layout: Layout) -> None:
        self.data, self.layout = data, layout
        self.bytes = np.frombuffer(data, dtype=np.uint8)
        self.ends = np.flatnonzero(self.bytes == _NEWLINE)
        self.begins = np.concatenate((np.zeros(1, dtype=np.int64), self.ends[:-1] + 1))
        self.quotes = np.flatnonzero(self.bytes == _QUOTE).astype(np.int32)
        self.first = np.searchsorted(self.quotes, self.begins)
        self.count = np.diff(self.first, append=len(self.quotes))
        self.ids, self.pids, sound = self._keys()
        self.heads: dict[int, list[str]] = {}  # of lines whose launch has quotes within its fields
        self.metrics, self.rules = self._rows(sound)

    def drop_metrics(self, wrong: Numbers) -> None:
        """Some rows of metrics are odd after all."""
        self.metrics = Rows(self.metrics.lines[~wrong], self.metrics.quotes[~wrong])

    @property
    def plain(self) -> Numbers:
        """For each line whether it is a plain row."""
        found = np.zeros(len(self.ends), dtype=bool)
        found[self.metrics.lines] = True
        found[self.rules.lines] = True
        return found

    def told(self, lines: Numbers) -> Numbers:
        """How many bytes of some lines tell of the launch."""
        last = self.quotes[np.minimum(self.first[lines] + 2 * self.layout.start - 1, len(self.quotes) - 1)]
        return np.where(np.isin(lines, list(self.heads)), 0, last - self.begins[lines])

    def line(self, number: int) -> str:
        """One line, less its end."""
        return self.data[self.begins[number] : self.ends[number]].decode()

    def _keys(self) -> tuple[Numbers, Numbers, Numbers]:
        """Id and process of each line, and whether both are there."""
        sound = self.count >= 2 * (self.layout.start + self.layout.metric_fields)
        if b"\x1b" in self.data or b"\r" in self.data:
            sound &= ~self._redrawn()
        lines = np.flatnonzero(sound)
        places = self.quotes[self.first[lines][:, None] + np.arange(5)]
        good = (places[:, 0] == self.begins[lines]) & self._separated(places)
        ids, whole_ids = self._whole(places[:, 0] + 1, places[:, 1])
        pids, whole_pids = self._whole(places[:, 2] + 1, places[:, 3])
        sound[lines] = good & whole_ids & whole_pids
        keys = np.zeros((2, len(sound)), dtype=np.int64)
        keys[0, lines], keys[1, lines] = ids, pids
        return keys[0], keys[1], sound

    def _redrawn(self) -> Numbers:
        """For each line whether it has a colour in it, or was drawn over."""
        marks = np.flatnonzero((self.bytes[:-1] == _RETURN) & (self.bytes[1:] != _NEWLINE))
        marks = np.concatenate((marks, np.flatnonzero(self.bytes == 0x1B)))
        found = np.zeros(len(self.ends), dtype=bool)
        found[np.searchsorted(self.ends, marks)] = True
        return found

    def _separated(self, places: Numbers) -> Numbers:
        """For each row of quotes that open and close fields whether `","` is all that is between two fields."""
        closing, opening = places[:, 1:-1:2], places[:, 2::2]
        good: Numbers = ((opening - closing == 2) & (self.bytes[closing + 1] == _COMMA)).all(axis=1)
        return good

    def _whole(self, begins: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
        """Cells as whole numbers, and whether they are that: digits, without a zero in front."""
        length = ends - begins
        sound = (length > 0) & (length <= _DIGITS)
        value = np.zeros(len(begins), dtype=np.int64)
        for place in range(int(length[sound].max(initial=0))):
            here = sound & (place < length)
            digit = self.bytes[np.where(here, begins + place, 0)].astype(np.int64) - _ZERO
            sound &= ~here | ((digit >= 0) & (digit <= 9))
            value = np.where(here, value * 10 + digit, value)
        sound &= (length == 1) | (self.bytes[np.where(sound, begins, 0)] != _ZERO)
        return value, sound

    def _rows(self, sound: Numbers) -> tuple[Rows, Rows]:
        """The plain rows of metrics and of rules."""
        layout = self.layout
        kinds = [n for n in (layout.metric_fields, layout.rule_fields) if n]
        left = sound.copy()
        found = []
        for find in (self._plain, self._with_quotes):
            for fields in kinds:
                rows = find(left, fields)
                left[rows.lines] = False
                found.append(rows)
        none = Rows(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64))
        metrics, rules = found[:: len(kinds)], found[1::2] if len(kinds) > 1 else [none]
        return _together(metrics), _together(rules)

    def _plain(self, among: Numbers, fields: int) -> Rows:
        """Rows without a quote within any field."""
        start = self.layout.start
        lines = np.flatnonzero(among & (self.count == 2 * (start + fields)))
        places = self.quotes[self.first[lines][:, None] + np.arange(2 * (start + fields))]
        tails = places[:, 2 * start :]
        good = self._separated(places) & self._ended(lines, tails[:, -1], fields) & self._named(tails, fields)
        return Rows(lines[good], tails[good])

    def _with_quotes(self, among: Numbers, fields: int) -> Rows:
        """Rows with quotes within what tells of the launch: each different launch is taken apart."""
        start = self.layout.start
        lines = np.flatnonzero(among & (self.count > 2 * (start + fields)))
        ends = self.first[lines] + self.count[lines]
        tails = self.quotes[(ends - 2 * fields)[:, None] + np.arange(2 * fields)]
        good = self._separated(tails) & self._ended(lines, tails[:, -1], fields) & self._named(tails, fields)
        good &= self.bytes[tails[:, 0] - 1] == _COMMA
        lines, tails = lines[good], tails[good]
        heads = strings(self.data, self.begins[lines], tails[:, 0] - 1).dictionary_encode()
        cells = [_head(text, start) for text in heads.dictionary.to_pylist()]
        known = [cells[code] for code in heads.indices.to_pylist()]
        self.heads |= {line: c for line, c in zip(lines.tolist(), known, strict=True) if c is not None}
        good = np.array([c is not None for c in known], dtype=bool)
        return Rows(lines[good], tails[good])

    def _ended(self, lines: Numbers, last: Numbers, fields: int) -> Numbers:
        """For each line whether it ends as a row of so many fields: with a comma where those of rules are missing."""
        end = self.ends[lines] - (self.bytes[self.ends[lines] - 1] == _RETURN)
        cut = self.layout.start + fields < len(self.layout.page.header)
        good: Numbers = end - last == 2 if cut else end - last == 1
        return good & (self.bytes[last + 1] == _COMMA) if cut else good

    def _named(self, tails: Numbers, fields: int) -> Numbers:
        """For each row whether it names a metric, or a rule and nothing of a metric."""
        at, start = self.layout.page.at, self.layout.start

        def filled(name: str) -> Numbers:
            i = at[name] - start
            wide: Numbers = tails[:, 2 * i + 1] - tails[:, 2 * i] > 1
            return wide

        if fields == self.layout.metric_fields:
            return filled("Metric Name")
        return filled("Rule Name") & ~(filled("Metric Name") | filled("Metric Unit") | filled("Metric Value"))


def _together(parts: list[Rows]) -> Rows:
    """Rows of one kind in the order of their lines."""
    if not any(len(p.lines) for p in parts[1:]):
        return parts[0]
    lines = np.concatenate([p.lines for p in parts])
    order = np.argsort(lines)
    return Rows(lines[order], np.concatenate([p.quotes for p in parts])[order])


def _head(text: str, fields: int) -> list[str] | None:
    """The cells of a launch's columns, if they are written as the csv module would write them."""
    cells = split(text, ",")
    if cells is None or len(cells) != fields:
        return None
    return cells if text == ",".join('"' + c.replace('"', '""') + '"' for c in cells) else None


def strings(data: bytes | bytearray, begins: Numbers, ends: Numbers) -> pa.StringArray:
    """Parts of the data, in their order and without overlap, as an Arrow array."""
    import pyarrow as pa

    count = len(begins)
    if not count:
        return pa.array([], type=pa.string())
    # every second string of one that goes on without a gap: Arrow copies what is taken
    offsets = np.empty(2 * count, dtype=np.int32)
    offsets[0::2], offsets[1::2] = begins, ends
    every = pa.StringArray.from_buffers(2 * count - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    return every.take(pa.array(np.arange(0, 2 * count - 1, 2)))
