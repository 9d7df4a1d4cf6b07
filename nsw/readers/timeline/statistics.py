"""Exact statistics of durations by group: medians are medians, sums are integers, whatever the size."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from nsw.tables import TableData
from nsw.tables.parquet_tables import distinct_values_and_codes

if TYPE_CHECKING:
    import pyarrow as pa

L = TypeVar("L", bound=Hashable)
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Chosen: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_CHUNK = 1 << 20  # values turned to floats at a time
_LARGEST = 2**62
_NARROW = 2**31


@dataclass(frozen=True, slots=True)
class Grouped:
    """Values of several groups: those of `keys[i]` are `values[bounds[i]:bounds[i + 1]]`, ascending."""

    keys: tuple[int, ...]
    bounds: tuple[int, ...]
    values: IntArray

    def values_of(self, index: int) -> IntArray:
        """The sorted values of the group at `index`."""
        return self.values[self.bounds[index] : self.bounds[index + 1]]

    def merged(self, indices: Sequence[int]) -> IntArray:
        """The sorted values of several groups together."""
        if len(indices) == 1:
            return self.values_of(indices[0])
        return np.sort(np.concatenate([self.values_of(i) for i in indices]), kind="stable")  # quick on sorted pieces


def group_by_key(keys: IntArray, values: IntArray) -> Grouped:
    """The values by key.

    Args:
        keys: Shape (n,), ids of the groups; any integers.
        values: Shape (n,), integers of any width.

    Raises:
        OverflowError: The values are so large that their sums are no int64: no durations.
    """
    if len(keys) == 0:
        return Grouped((), (0,), np.empty(0, np.int64))
    low, high = require_sums(values)
    first, last = int(keys.min()), int(keys.max())
    bits = (high - low).bit_length()
    needed = (last - first).bit_length() + bits
    if needed < 63:
        is_narrow = needed < 31 and min(first, low) >= -_NARROW and max(last, high) < _NARROW
        return _group_by_packing(keys, values, first, low, bits, np.int32 if is_narrow else np.int64)
    order = np.lexsort((values, keys))
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return Grouped(tuple(ordered[starts].tolist()), (*starts.tolist(), len(keys)), values[order].astype(np.int64))


def require_sums(values: IntArray) -> tuple[int, int]:
    """The least and the greatest of some values.

    Raises:
        OverflowError: They are so large that their sums are no int64: no durations.
    """
    low, high = int(values.min()), int(values.max())
    if max(abs(low), abs(high)) * len(values) >= _LARGEST:
        raise OverflowError("durations too large to be added")
    return low, high


def _group_by_packing(
    keys: IntArray, values: IntArray, first: int, low: int, bits: int, width: type[np.signedinteger[Any]]
) -> Grouped:
    """Key and value in one integer, sorted once: some five times faster than an indirect sort."""
    packed = keys.astype(width)
    packed -= first
    packed <<= bits
    packed += values
    packed -= low
    packed.sort()
    group_keys: list[int] = []
    bounds = [0]
    while bounds[-1] < len(packed):
        key = int(packed[bounds[-1]]) >> bits
        group_keys.append(key + first)
        after = (key + 1) << bits
        # of the array's own type: for another one numpy would copy the array
        is_last = after > np.iinfo(width).max
        bounds.append(len(packed) if is_last else int(np.searchsorted(packed, width(after))))
    packed &= (1 << bits) - 1
    packed += low
    return Grouped(tuple(group_keys), tuple(bounds), packed)


def distinct(values: IntArray) -> list[int]:
    """The different values, ascending; that all are alike, as is usual of processes and devices, is soon known."""
    few: list[int] = (values[:1] if bool((values == values[:1]).all()) else np.unique(values)).tolist()
    return few


def merge_by_label(grouped: Grouped, labels: Sequence[L]) -> dict[L, IntArray]:
    """Sorted values by label, where `labels[i]` is that of group i: several groups may share one."""
    return {label: grouped.merged(indices) for label, indices in _indices_of_labels(labels).items()}


def _indices_of_labels(labels: Sequence[L]) -> dict[L, list[int]]:
    indices: dict[L, list[int]] = {}
    for index, label in enumerate(labels):
        indices.setdefault(label, []).append(index)
    return indices


def duration_statistics(values: IntArray) -> dict[str, Any]:
    """total, calls, avg, med, min, max, stddev in ns, of sorted values; one value has no deviation."""
    n = len(values)
    total = int(values.sum())
    middle = (int(values[(n - 1) // 2]) + int(values[n // 2])) / 2
    return {
        "total_ns": float(total),
        "calls": n,
        "avg_ns": total / n,
        "med_ns": middle,
        "min_ns": float(values[0]),
        "max_ns": float(values[-1]),
        "stddev_ns": _standard_deviation(values, total / n),
    }


def _standard_deviation(values: IntArray, mean: float) -> float | None:
    if len(values) < 2:
        return None
    squares = 0.0
    for start in range(0, len(values), _CHUNK):
        deviations: np.ndarray[Any, Any] = values[start : start + _CHUNK] - mean
        deviations *= deviations  # a dot product would wake threads that wait for each other where cores are few
        squares += float(deviations.sum())
    return math.sqrt(squares / (len(values) - 1))


def with_shares(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, most time first, each with its `time_pct` of the rows' sum."""
    total = sum(r["total_ns"] for r in rows if r["total_ns"] is not None)
    for row in rows:
        has_share = row["total_ns"] is not None and total > 0
        row["time_pct"] = 100.0 * row["total_ns"] / total if has_share else None
    return sorted(rows, key=lambda r: (-(r["total_ns"] or 0.0), str(r["name"])))


@dataclass(frozen=True, slots=True)
class Durations:
    """The durations of one name, and the sum of their sizes where they have any (bytes)."""

    grouped: Grouped
    indices: Sequence[int]  # of the groups that have the name
    size: int | None

    @property
    def values(self) -> IntArray:
        """The sorted durations (ns), merged when they are asked for: not those of all names at once."""
        return self.grouped.merged(self.indices)


@dataclass(frozen=True, slots=True)
class Groups:
    """Durations by key and part; `keys[i]`, `parts[i]` and `sizes[i]` are those of group i of `grouped`."""

    grouped: Grouped
    keys: list[int]
    parts: list[int]
    sizes: list[int] | None

    @classmethod
    def from_durations(
        cls, keys: IntArray, durations: IntArray, parts: IntArray | None, count: int, sizes: IntArray | None = None
    ) -> Groups:
        """Group durations by key and part.

        Args:
            keys: The key of each row, an integer.
            durations: The duration of each row (ns).
            parts: The part of each row, from 0 to `count` - 1; None: part 0 for all.
            count: How many parts there are.
            sizes: The bytes of each row, summed per group; None: the rows have no sizes.

        Raises:
            OverflowError: The durations are too large to be added.
        """
        low, span = int(keys.min()), int(keys.max()) - int(keys.min())
        numbers: IntArray | None = None
        if (span + 1) * count >= _LARGEST:
            numbers, keys = np.unique(keys, return_inverse=True)
            low = 0
        is_narrow = (span + 1) * count < _NARROW and keys.itemsize < 8
        code: IntArray = keys.astype(np.int32 if is_narrow else np.int64)
        code -= low
        if parts is not None:
            code *= count
            code += parts
        each = 1 if parts is None else count
        grouped = group_by_key(code, durations)
        pairs = [(c // each + low, c % each) for c in grouped.keys]
        if numbers is not None:
            pairs = [(int(numbers[k]), p) for k, p in pairs]
        totals = None
        if sizes is not None:
            added = np.zeros(len(grouped.keys), np.int64)
            np.add.at(added, np.searchsorted(np.array(grouped.keys), code), sizes)
            totals = added.tolist()
        return cls(grouped, [k for k, _ in pairs], [p for _, p in pairs], totals)

    def durations_by_label(self, label: Callable[[int], L | None]) -> dict[L, Durations]:
        """All durations by the label of their key; a key without label is left out."""
        return {name: durations for (name, _), durations in self._merge_durations(label, lambda _: 0).items()}

    def by_part(self, label: Callable[[int], L | None]) -> dict[int, dict[L, Durations]]:
        """The durations of each part by the label of their key."""
        durations_by_part: dict[int, dict[L, Durations]] = {}
        for (name, part), durations in self._merge_durations(label, lambda part: part).items():
            durations_by_part.setdefault(part, {})[name] = durations
        return durations_by_part

    def _merge_durations(
        self, label: Callable[[int], L | None], part: Callable[[int], int]
    ) -> dict[tuple[L, int], Durations]:
        names = {key: label(key) for key in dict.fromkeys(self.keys)}
        labels: list[Any] = [
            None if names[key] is None else (names[key], part(p)) for key, p in zip(self.keys, self.parts, strict=True)
        ]
        sums: dict[Any, int] = {}
        for name, size in zip(labels, self.sizes or (), strict=False):
            sums[name] = sums.get(name, 0) + size
        return {
            name: Durations(self.grouped, indices, sums.get(name))
            for name, indices in _indices_of_labels(labels).items() if name is not None
        }  # fmt: skip


ABSENT: Final = -1
_INT64_LIMIT: Final = 2.0**63


def whole_numbers(data: TableData, column: str) -> tuple[IntArray, Chosen]:
    """A column's values (`ABSENT` where there are none, fractions cut off), and which rows have one.

    Both have shape (rows,). NaN and infinity are absent, as in all tables, and what no int64 holds.
    """
    if not isinstance(data, list):
        return _whole_numbers_of_arrow(data, column)
    cells = [row.get(column) for row in data]
    is_present = [value is not None and abs(value) < _INT64_LIMIT for value in cells]  # of NaN that is false
    values = [value if present else ABSENT for value, present in zip(cells, is_present, strict=True)]
    return np.array(values, np.int64), np.array(is_present, bool)


def text_codes(data: TableData, column: str, chosen: Chosen | None = None) -> tuple[IntArray, list[str]]:
    """A column of texts: which of them each chosen row has, and these texts, in the order of their first rows.

    Where there is no text it is empty.

    Args:
        data: The table.
        column: Its name; a table may lack it.
        chosen: Shape (rows,), the rows that are looked at; None: all.
    """
    texts, codes = distinct_values_and_codes(data, column)
    return _by_first_row(codes if chosen is None else codes[chosen], [text or "" for text in texts])


def _whole_numbers_of_arrow(data: pa.Table, column: str) -> tuple[IntArray, Chosen]:
    import pyarrow.compute as pc

    if column not in data.column_names:
        return np.full(data.num_rows, ABSENT, np.int64), np.zeros(data.num_rows, bool)
    is_present = data[column].is_valid().to_numpy()
    # filled first: numpy has no absent integer, and would make fractions of all
    values = pc.fill_null(data[column], ABSENT).to_numpy()
    if values.dtype.kind == "f":
        is_present = is_present & (np.abs(values) < _INT64_LIMIT)
        values = np.where(is_present, values, ABSENT)
    return values.astype(np.int64, copy=False), is_present


def _by_first_row(codes: IntArray, texts: Sequence[str]) -> tuple[IntArray, list[str]]:
    """The same with each text once, numbered in the order of their first rows."""
    first = np.full(len(texts), len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several values for one place the last one counts
    text_index: dict[str, int] = {}
    numbers = np.zeros(len(texts), np.int64)
    for code in np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))].tolist():
        numbers[code] = text_index.setdefault(texts[code], len(text_index))
    return numbers[codes], list(text_index)
