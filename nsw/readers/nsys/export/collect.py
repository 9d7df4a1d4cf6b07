"""One pass over a table of timed events: the durations by key, who caused them, and when they were."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from nsw.readers.nsys.export.source import DURATION, NULL, Source, TableFault, has_columns, narrow, require_integers
from nsw.readers.timeline.statistics import Grouped, group, require_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.statistics import IntArray

_FEW: Final = 64  # values that a column is compared with one by one
_BATCH: Final = 65536  # rows
_MOST_SHORT: Final = 1 << 15  # numbers of int16


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
        return group(self.keys, self.durations)

    def batches(self, distinct: str, column: str) -> Iterator[Batch]:
        """Start, end, and two columns more of all rows, some at a time."""
        values = np.array(self.distinct[distinct])
        for at in range(0, len(self.keys), _BATCH):
            rows = slice(at, at + _BATCH)
            start = self.columns["start"][rows].astype(np.int64)
            yield {
                "start": start,
                "end": start + self.durations[rows],
                column: self.columns[column][rows].astype(np.int64),
                distinct: values[self.codes[distinct][rows]],
            }

    def only(self, column: str) -> int | None:
        """The value of a column that all rows share, or None."""
        values = self.distinct.get(column, [])
        return values[0] if len(values) == 1 and NULL not in values else None


def collect(
    source: Source,
    table: str,
    key: str,
    *,
    distinct: Sequence[str] = (),
    keep: Sequence[str] = (),
    companion: str | None = None,
    may_be_unended: bool = False,
) -> Collected | None:
    """Durations of `table` by column `key`; None when there is no such table or it has no rows with an end.

    Raises:
        TableFault: The table is damaged.
    """
    if not has_columns(source, table, key, "start", "end"):
        return None
    parts: dict[str, list[IntArray]] = {c: [] for c in (key, DURATION, *keep)}
    interned = {c: _Interned() for c in distinct}
    codes: dict[str, list[IntArray]] = {c: [] for c in distinct}
    first: dict[int, int] = {}
    unended = 0
    columns = [key, DURATION, *distinct, *keep, *([companion] if companion else [])]
    for scanned in source.scan(table, list(dict.fromkeys(columns))):
        batch = _ended_rows(scanned) if may_be_unended else scanned
        unended += len(scanned[key]) - len(batch[key])
        if not len(batch[key]):
            continue
        require_integers(table, batch, key, DURATION)
        for column, values in parts.items():
            values.append(narrow(batch[column]))
        for column in distinct:
            codes[column].append(interned[column].codes(batch[column]))
        if companion:
            _remember(first, batch[key], batch[companion])
    if not parts[key]:
        return None
    joined = {column: np.concatenate(parts.pop(column)) for column in list(parts)}
    refuse_sums(table, joined[DURATION])
    collected = Collected(
        table, joined[key], joined[DURATION], {c: i.values for c, i in interned.items()},
        {c: np.concatenate(codes.pop(c)) for c in list(codes)}, {c: joined[c] for c in keep},
        first, unended,
    )  # fmt: skip
    if not keep:
        _ = collected.grouped  # while other tables are scanned
    return collected


def refuse_sums(table: str, durations: IntArray) -> None:
    """Refuse durations that are so large that they are none, before they are added up."""
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
            return np.full(len(column), self._code(low), self._type())
        numbers = np.full(len(column), -1, np.int32)
        for code, value in enumerate(self.values[:_FEW]):
            numbers[column == value] = code
        while len(rest := np.flatnonzero(numbers < 0)):
            if len(self.values) >= _FEW:
                fresh, inverse = np.unique(column[rest], return_inverse=True)
                numbers[rest] = np.array([self._code(v) for v in fresh.tolist()], np.int32)[inverse]
                break
            value = int(column[rest[0]])
            numbers[column == value] = self._code(value)
        return numbers.astype(self._type())

    def _code(self, value: int) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]

    def _type(self) -> type:
        return np.int16 if len(self.values) < _MOST_SHORT else np.int32


def _remember(first: dict[int, int], keys: IntArray, values: IntArray) -> None:
    """Note the first value of each key that was not met in the rows before."""
    fresh = np.flatnonzero(~np.isin(keys, np.fromiter(first, np.int64, len(first)), kind=None))
    if len(fresh):
        new, at = np.unique(keys[fresh], return_index=True)
        first.update(zip(new.tolist(), values[fresh[at]].tolist(), strict=True))
