"""What the tables of an nsys export are read through: a database or a folder of Parquet files alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from nsw.readers.invariants import LONGEST_NS
from nsw.readers.timeline.columns import WIDTHS, GrowingColumn, constant_column, row_slices
from nsw.readers.timeline.statistics import Grouped, IntArray, group_by_key, require_sums

Batch: TypeAlias = dict[str, IntArray]

NULL = -(2**63)  # stands for SQL's NULL in an integer column; no time, size or id of a report is this
DURATION = "duration"  # a made-up column that `scan` gives: end less start
TEXT = "text_code"  # a made-up column that `scan` gives where asked: index into `Vocabulary.texts`

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_GPU_WORK = (KERNEL, MEMCPY, MEMSET, GRAPH)  # a call may have begun before the recording did
NVTX = "NVTX_EVENTS"
_TIMED: Final = (NVTX, RUNTIME, KERNEL, MEMCPY, MEMSET, GRAPH)
_STRINGS: Final = "StringIds"
_IDS: Final = frozenset({"demangledName", "shortName", "mangledName", "nameId", "textId", "srcFile"})  # of StringIds
_MOST_STRINGS: Final = 10_000_000


class TableFault(Exception):  # noqa: N818  it names a fault of the file
    """A table of the export cannot be read, or holds what its column cannot hold."""

    def __init__(self, table: str, problem: str) -> None:
        super().__init__(f"{table}: {problem}")
        self.table = table
        self.problem = problem


@dataclass(slots=True)
class Contradictions:
    """What of an export cannot be, gathered while it is read.

    `backwards`: by table, start and end of rows that end before they start, start before time 0 or last for years; they
    are left out. `nameless`: ids that StringIds lacks.

    Threads share it: each adds in one call of a dict or set, which Python does not interrupt, and it is looked at when
    all of them have ended.
    """

    backwards: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    nameless: set[int] = field(default_factory=set)


class Vocabulary:
    """The different texts that scans met, numbered in order of first sight.

    Threads share it: the lock keeps two of them from giving one number to two texts. Texts are only added, so that
    `texts` can be read at any time.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._adding = Lock()

    def codes(self, texts: Iterable[str | None]) -> list[int]:
        """The number of each text, `NULL` for None."""
        with self._adding:
            return [NULL if text is None else self._code_of_text(text) for text in texts]

    def _code_of_text(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]


class Source(Protocol):
    """The tables of one export. Every method raises `TableFault` where the table is damaged.

    Threads share it: `columns` is complete before they start, and whatever a method opens is closed when it returns.
    """

    contradictions: Contradictions

    vocabulary: Vocabulary  # of all scans

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """The columns of each table found."""

    def scan(self, table: str, columns: Sequence[str], *, text: str | None = None) -> Iterator[Batch]:
        """Yield integer columns in batches of rows; a column that the table lacks is all NULL. No batch is empty.

        Args:
            table: The table of the export.
            columns: Its integer columns; `DURATION` adds `start`, `end` and their difference (ns).
            text: A text column: its codes in `vocabulary` become column `TEXT`, NULL where it is NULL; None: no texts.
        """

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table, of any type; none without such a table, None for an absent column.

        Args:
            table: The table of the export.
            columns: The columns, in the order of the values of a row.
            at_most: How many rows are read.
        """

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """The texts of these ids in StringIds; ids without text are left out."""


def has_columns(source: Source, table: str, *columns: str) -> bool:
    """Whether the export has the table with all these columns."""
    return source.columns.get(table, frozenset()).issuperset(columns)


def require_integers(table: str, batch: Batch, *columns: str) -> None:
    """Refuse NULL where every row of a sound export has a number.

    Raises:
        TableFault: A row has none; the table is damaged, and statistics over the rest would be invented.
    """
    for column in columns:
        if len(batch[column]) and bool((batch[column] == NULL).any()):
            raise TableFault(table, f"rows without a number in column {column}")


def with_duration(table: str, batch: Batch, contradictions: Contradictions) -> Batch:
    """Add column `DURATION` (ns) to a batch. It is not computed in SQL, where a text less a text is 0.

    Rows that end before they start, or last longer than any program, are left out and noted in `contradictions`; so is
    GPU work that starts before the recording does.

    Args:
        table: The table of the export.
        batch: Its rows, with columns `start` and `end` (ns); NULL where there is none.
        contradictions: Gets the rows that are left out.

    Raises:
        TableFault: The times are too far apart to be times.
    """
    start, end = batch["start"], batch["end"]
    absent = (start == NULL) | (end == NULL)
    has_absent = bool(absent.any())
    known_start, known_end = (start[~absent], end[~absent]) if has_absent else (start, end)
    low = high = 0
    if len(known_start):
        low = min(int(known_start.min()), int(known_end.min()))
        high = max(int(known_start.max()), int(known_end.max()))
        if high - low > 2**61:
            raise TableFault(table, "contains numbers that cannot be times")
    duration = (
        np.where(absent, NULL, np.where(absent, 0, end) - np.where(absent, 0, start)) if has_absent else end - start
    )
    timed = batch | {DURATION: duration}
    backwards = (duration < 0) & ~absent if has_absent else duration < 0
    if high - low > LONGEST_NS:
        backwards |= (duration > LONGEST_NS) & ~absent
    if low < 0 and table in _GPU_WORK:
        backwards |= (start < 0) & ~absent
    if not backwards.any():
        return timed
    pairs = zip(start[backwards].tolist(), end[backwards].tolist(), strict=True)
    contradictions.backwards.setdefault(table, set()).update(pairs)
    return {name: values[~backwards] for name, values in timed.items()}


def checked_total(table: str, values: IntArray) -> int:
    """The sum of sizes or counts.

    Raises:
        TableFault: They are negative or too large to be true.
    """
    if len(values) == 0:
        return 0
    if int(values.min()) < 0 or int(values.max()) * len(values) >= 2**62:
        raise TableFault(table, "contains numbers that cannot be sizes or counts")
    return int(values.sum())


def process_of(global_id: int) -> int:
    """The process id in a serialized global id (hardware 8 bits, VM 8, process 24, thread 24)."""
    return (global_id >> 24) & 0xFFFFFF


_FEW: Final = 64  # values that a column is compared with one by one


@dataclass
class Collected:
    """What a pass found.

    `keys` and `durations` (ns) are those of every row; `distinct` the values met in each column asked for, where
    `codes` has the place of each row's value; `columns` other columns of every row; `companions` for each key the first
    value of the companion column, where it has one; `unended` counts the rows that have no end and were left out.
    """

    table: str
    keys: IntArray
    durations: IntArray
    distinct: dict[str, list[int]]
    codes: dict[str, IntArray] = field(default_factory=dict)
    columns: dict[str, IntArray] = field(default_factory=dict)
    companions: dict[int, int] = field(default_factory=dict)
    unended: int = 0

    @cached_property
    def grouped(self) -> Grouped:
        """The durations by key."""
        return group_by_key(self.keys, self.durations)

    def batches(self, distinct: str, *columns: str) -> Iterator[Batch]:
        """Start, end, and these columns of all rows, some at a time."""
        values = np.array(self.distinct[distinct])
        for rows in row_slices(len(self.keys)):
            start = self.columns["start"][rows]
            yield {
                "start": start,
                "end": start + self.durations[rows],
                distinct: values[self.codes[distinct][rows]],
                **{column: self.columns[column][rows] for column in columns},
            }

    def shared_device(self) -> int | None:
        """The GPU of all rows, or None where they are of several."""
        values = self.distinct.get("deviceId", [])
        return values[0] if len(values) == 1 and NULL not in values else None


def collect_durations(
    source: Source,
    table: str,
    key: str,
    *,
    distinct: Sequence[str] = (),
    keep: Sequence[str] = (),
    derive: Mapping[str, tuple[Sequence[str], Callable[[Batch], IntArray]]] | None = None,
    companion: str | None = None,
    may_be_unended: bool = False,
) -> Collected | None:
    """Collect the durations of `table` by column `key`; None when there is no such table or no row has an end.

    Args:
        source: The export.
        table: The table.
        key: The integer column to group by, such as the id of a name.
        distinct: Columns whose distinct values are collected, with the index of each row's value.
        keep: Columns that are kept for every row.
        derive: More such columns, each with those that it is made of.
        companion: A column whose first value is kept for each key; None: no such column.
        may_be_unended: Whether rows without an end are counted and left out instead of refused.

    Raises:
        TableFault: The table is damaged.
    """
    if not has_columns(source, table, key, "start", "end"):
        return None
    derive = derive or {}
    # sums and differences of times need a width that the times themselves may not
    parts = {c: GrowingColumn(np.int64 if c == "start" else np.int8) for c in (key, DURATION, *keep, *derive)}
    interned = {c: _Interned() for c in distinct}
    codes = {c: GrowingColumn() for c in distinct}
    first: dict[int, int] = {}
    unended = 0
    columns = [key, DURATION, *distinct, *keep, *([companion] if companion else [])]
    columns += [column for needed, _ in derive.values() for column in needed]
    for scanned in source.scan(table, list(dict.fromkeys(columns))):
        batch = _ended_rows(scanned) if may_be_unended else scanned
        unended += len(scanned[key]) - len(batch[key])
        if not len(batch[key]):
            continue
        require_integers(table, batch, key, DURATION)
        for column, values in parts.items():
            values.add(derive[column][1](batch) if column in derive else batch[column])
        for column in distinct:
            codes[column].add(interned[column].codes(batch[column]))
        if companion:
            _note_first_values(first, batch[key], batch[companion])
    joined = {column: values.values for column, values in parts.items()}
    if not len(joined[key]):
        return None
    refuse_sums(table, joined[DURATION])
    collected = Collected(
        table, joined[key], joined[DURATION], {c: i.values for c, i in interned.items()},
        {c: values.values for c, values in codes.items()}, {c: joined[c] for c in (*keep, *derive)},
        first, unended,
    )  # fmt: skip
    if not keep:
        _ = collected.grouped  # while other tables are scanned
    return collected


def refuse_sums(table: str, durations: IntArray) -> None:
    """Refuse durations that are too large to be added.

    Raises:
        TableFault: Their sum may exceed an int64.
    """
    try:
        require_sums(durations)
    except OverflowError as fault:
        raise TableFault(table, str(fault)) from fault


def _ended_rows(batch: Batch) -> Batch:
    """The rows that have an end."""
    ended = batch[DURATION] != NULL
    return batch if ended.all() else {name: values[ended] for name, values in batch.items()}


class _Interned:
    """The different values of a column, numbered in order of first sight."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._numbers: dict[int, int] = {}

    def codes(self, column: IntArray) -> IntArray:
        """The number of each value."""
        low, high = int(column.min()), int(column.max())
        if low == high:
            return constant_column(self._type()(self._code_of_value(low)), len(column))
        numbers = np.full(len(column), -1, np.int32)
        for code, value in enumerate(self.values[:_FEW]):
            numbers[column == value] = code
        while len(rest := np.flatnonzero(numbers < 0)):
            if len(self.values) >= _FEW:
                fresh, inverse = np.unique(column[rest], return_inverse=True)
                numbers[rest] = np.array([self._code_of_value(v) for v in fresh.tolist()], np.int32)[inverse]
                break
            value = int(column[rest[0]])
            numbers[column == value] = self._code_of_value(value)
        return numbers.astype(self._type())

    def _code_of_value(self, value: int) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]

    def _type(self) -> type[np.signedinteger[Any]]:
        return next(t for t in WIDTHS if len(self.values) <= np.iinfo(t).max)


def _note_first_values(first: dict[int, int], keys: IntArray, values: IntArray) -> None:
    """Note the first value of each key that was not met in the rows before."""
    fresh = np.flatnonzero(~np.isin(keys, np.fromiter(first, np.int64, len(first)), kind=None))
    if len(fresh):
        new, at = np.unique(keys[fresh], return_index=True)
        first.update(zip(new.tolist(), values[fresh[at]].tolist(), strict=True))


class SplicedSource:
    """The tables of several exports; see `Source`. nsys leaves an export for each range that it was to capture.

    Each part begins where the one before ended: between two, nsys halts the program to write a report, and that time
    is none of the program's. Correlation ids go on counting from one to the next (seen with 2024.2 on an H200).

    Args:
        parts: The exports, in order of their time.

    Raises:
        TableFault: A table of a part is damaged.
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        self._parts = parts
        self.vocabulary = Vocabulary()
        self.contradictions = Contradictions()
        self.columns: dict[str, frozenset[str]] = {}
        self._texts: list[str] = []
        self._ids: list[tuple[IntArray, IntArray]] = []  # of each part: its ids, sorted, and those here
        self._shifts: list[int] = []  # ns
        numbers: dict[str, int] = {}
        end = None
        for part in parts:
            part.vocabulary, part.contradictions = self.vocabulary, self.contradictions
            for table, columns in part.columns.items():
                self.columns[table] = self.columns.get(table, frozenset()) | columns
            rows = part.rows(_STRINGS, ("id", "value"), at_most=_MOST_STRINGS)
            texts = dict(sorted((i, v) for i, v in rows if isinstance(i, int) and isinstance(v, str)))
            ids = [numbers.setdefault(text, len(numbers)) for text in texts.values()]
            self._ids.append((np.array(list(texts), np.int64), np.array(ids, np.int64)))
            # the first start and the last end (ns) of what a part holds; of what has no end nothing is taken
            times = [
                (int(batch["start"][ended].min()), int(batch["end"][ended].max()))
                for table in _TIMED
                for batch in part.scan(table, ("start", "end"))
                if (ended := batch["end"] != NULL).any()
            ]
            first, last = (min(start for start, _ in times), max(end for _, end in times)) if times else (0, 0)
            shift = 0 if end is None else end - first
            self._shifts.append(shift)
            end = last + shift
        self._texts = list(numbers)

    def scan(self, table: str, columns: Sequence[str], *, text: str | None = None) -> Iterator[Batch]:
        """Yield integer columns in batches of rows, as `Source.scan` does.

        Args:
            table: The table of the export.
            columns: Its integer columns; `DURATION` adds `start`, `end` and their difference (ns).
            text: A text column, whose codes become column `TEXT`; None: no texts.
        """
        for number, part in enumerate(self._parts):
            for batch in part.scan(table, columns, text=text):
                yield {name: self._shift_column(number, name, values) for name, values in batch.items()}

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Different rows of a small table, as `Source.rows` gives them; the parts' durations are added.

        Args:
            table: The table of the export.
            columns: The columns, in the order of the values of a row.
            at_most: How many rows are read.
        """
        every = chain.from_iterable(part.rows(table, columns, at_most=at_most) for part in self._parts)
        if table == "ANALYSIS_DETAILS" and list(columns) == ["duration"]:
            return [(sum(duration for (duration,) in every if isinstance(duration, int)),)]
        return list(dict.fromkeys(every))[:at_most]

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of StringIds; see `Source.strings`."""
        texts = {i: self._texts[i] for i in ids if 0 <= i < len(self._texts)}
        self.contradictions.nameless.update(set(ids) - texts.keys())
        return texts

    def _shift_column(self, number: int, name: str, values: IntArray) -> IntArray:
        """A column of a part as it is in the whole."""
        if name in ("start", "end"):
            return np.where(values == NULL, NULL, values + self._shifts[number])
        if name not in _IDS:
            return values
        own, common = self._ids[number]
        if not len(own):
            return values
        at = np.minimum(np.searchsorted(own, values), len(own) - 1)
        return np.where(own[at] == values, common[at], np.where(values == NULL, NULL, -1 - np.abs(values)))
