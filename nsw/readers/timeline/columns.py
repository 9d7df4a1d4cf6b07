"""Columns of millions of rows in little memory: narrow integers, values that all rows share, sums in four bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np

from nsw.readers.timeline.statistics import IntArray

__all__ = [
    "WIDTHS", "GrowingColumn", "RunningSums", "column_of_codes", "constant_column", "many_rows", "narrowest_copy",
    "row_slices", "search_near", "select_rows", "stretch_or_mask",
]  # fmt: skip


WIDTHS: Final = (np.int8, np.int16, np.int32, np.int64)
_BOUNDS: Final = [(width, np.iinfo(width).min, np.iinfo(width).max) for width in WIDTHS]
_AT_A_TIME: Final = 1 << 14  # rows that the processor's cache holds
_SMALL, _LARGE = 1 << 20, 32 << 20  # bytes; from the larger on malloc asks the system for each array
_MANY: Final = 1 << 20  # rows
_LIMIT: Final = 2**32  # that four bytes do not hold


class GrowingColumn:
    """Integers that come in parts, in the least room where they fit: large arrays, which leave no holes when freed."""

    def __init__(self, narrowest: type[np.signedinteger[Any]] = np.int8) -> None:
        """Begin an empty column whose values are at least so wide."""
        self._count, self._room = 0, constant_column(narrowest(0), 0)

    @classmethod
    def of_parts(cls, parts: Iterable[IntArray], narrowest: type[np.signedinteger[Any]] = np.int8) -> IntArray:
        """The parts of a column one behind the other."""
        column = cls(narrowest)
        for part in parts:
            column.add(part)
        return column.values

    def add(self, part: IntArray) -> None:
        """Add values at the end."""
        if not len(part):
            return
        low, high, count = int(part.min()), int(part.max()), self._count + len(part)
        width = np.promote_types(_width(low, high), self._room.dtype)
        if low == high and (not self._count or (self._room.strides == (0,) and self._room[0] == low)):
            self._room = constant_column(width.type(low), count)
        else:
            if count > len(self._room) or width != self._room.dtype or self._room.strides == (0,):
                size = 2 * count * width.itemsize
                room = np.empty((size if size < _SMALL else max(size, _LARGE)) // width.itemsize, width)
                room[: self._count] = self._room[: self._count]
                self._room = room
            self._room[self._count : count] = part
        self._count = count

    @property
    def values(self) -> IntArray:
        """All of them; where they are alike, a column that takes no memory and cannot be written."""
        return self._room[: self._count]


def column_of_codes(values: Sequence[int], codes: IntArray) -> IntArray:
    """The value of each row, by its code."""
    of_code = np.array(values)
    return GrowingColumn.of_parts(of_code[codes[rows]] for rows in many_rows(len(codes)))


def narrowest_copy(values: IntArray) -> IntArray:
    """A copy in the least room where the integers fit; at least one. A copy frees the other columns of a batch."""
    low, high = int(values.min()), int(values.max())
    width = _width(low, high)
    return constant_column(width(low), len(values)) if low == high else values.astype(width)


def _width(low: int, high: int) -> type[np.signedinteger[Any]]:
    """The narrowest type that holds both."""
    return next(width for width, lower, upper in _BOUNDS if lower <= low and high <= upper)


def constant_column(value: np.signedinteger[Any], count: int) -> IntArray:
    """A column with one value for all rows, which takes no memory; it cannot be written."""
    return np.broadcast_to(value, (count,))


def select_rows(column: IntArray, rows: Any, count: int) -> IntArray:
    """The chosen rows of a column; where all share a value, they go on to take no memory.

    Args:
        column: The column.
        rows: What chooses them: a slice, an index or a mask.
        count: How many they are.
    """
    selected: IntArray = column[:count] if column.strides == (0,) else column[rows]
    return selected


def stretch_or_mask(mask: Any) -> Any:
    """What chooses the same rows as a mask: a slice, which copies nothing, where they are one stretch."""
    first, last = int(np.argmax(mask)), len(mask) - int(np.argmax(mask[::-1]))
    return slice(first, last) if np.count_nonzero(mask) == last - first else mask


def row_slices(count: int, at_a_time: int = _AT_A_TIME) -> Iterator[slice]:
    """All of so many rows, some at a time: what is computed of some takes no memory that grows with all."""
    return (slice(at, min(at + at_a_time, count)) for at in range(0, count, at_a_time))


def many_rows(count: int) -> Iterator[slice]:
    """As `row_slices`, of so many rows that what is done once for each slice takes no time."""
    return row_slices(count, _MANY)


def search_near(in_order: IntArray, times: IntArray, side: Literal["left", "right"] = "left") -> IntArray:
    """As `np.searchsorted`, and quick where the times are close together: only what lies between them is searched.

    Args:
        in_order: Times in order, ns.
        times: Those that are searched, ns.
        side: Whether the place before or behind those that are equal is meant.
    """
    if not len(times):
        return np.zeros(0, np.int64)
    low, high = np.searchsorted(in_order, (times.min(), times.max()), side).tolist()
    return np.asarray(np.searchsorted(in_order[low:high], times, side) + low)


class RunningSums:
    """The sums of the first values of many, none below zero: in four bytes a value, where they are small enough."""

    def __init__(self, count: int, parts: Iterable[IntArray]) -> None:
        """Add up `count` values, which come in parts as those of `row_slices`."""
        self._within: IntArray = np.empty(count, np.uint32)  # its part
        bases = [0]
        for rows, values in zip(row_slices(count), parts, strict=True):
            sums = np.cumsum(values, dtype=np.int64)
            if sums[-1] >= _LIMIT:
                self._within = self._within.astype(np.int64, copy=False)
            self._within[rows] = sums
            bases.append(bases[-1] + int(sums[-1]))
        self._bases = np.array(bases)
        self.total = bases[-1]

    @classmethod
    def of_values(cls, values: IntArray) -> RunningSums:
        """Those of an array."""
        return cls(len(values), (values[rows] for rows in row_slices(len(values))))

    def before(self, counts: IntArray) -> IntArray:
        """The sums of the first values, of so many each."""
        if not len(self._within):
            return np.zeros(len(counts), np.int64)
        last = counts - 1
        return np.where(last >= 0, self._bases[last // _AT_A_TIME] + self._within[last], 0)
