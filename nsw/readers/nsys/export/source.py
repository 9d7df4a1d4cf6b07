"""What the tables of an nsys export are read through: a database or a folder of Parquet files alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from nsw.readers.invariants import LONGEST_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.readers.timeline.statistics import IntArray

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


class TableFault(Exception):  # noqa: N818  it names a fault of the file
    """A table of the export cannot be read, or holds what its column cannot hold."""

    def __init__(self, table: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"{table}: {problem}")
        self.table = table
        self.problem = problem
        self.fix = fix  # what to do; None where it is damaged


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
            return [NULL if text is None else self._code(text) for text in texts]

    def _code(self, text: str) -> int:
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
        """The integer columns in batches of rows; a column that the table lacks is all NULL.

        `text` names a text column; its codes come as column `TEXT`, NULL where the text is. No batch is empty.
        """

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table, of any type; none without such a table, None for an absent column."""

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
    """The batch with column `DURATION`, taken here and not in SQL, where a text less a text is 0.

    Rows that end before they start, or last longer than any program, are left out and noted in `contradictions`; so is
    GPU work that starts before the recording does.

    Raises:
        TableFault: Times so far apart that they are none.
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


def narrow(values: IntArray) -> IntArray:
    """A copy in half the room where the integers fit; at least one. A copy frees the other columns of a batch."""
    fits = int(values.min()) >= -(2**31) and int(values.max()) < 2**31
    return values.astype(np.int32) if fits else values.copy()


def total(table: str, values: IntArray) -> int:
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
