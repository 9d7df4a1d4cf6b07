"""Durations by name for a whole report, and by name, process and phase: grouped once, merged as asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nsw.readers.timeline.statistics import Grouped, group, merge

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from nsw.readers.timeline.array_types import IntArray

    L = TypeVar("L", bound=Hashable)

_LARGEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Some:
    """The sorted durations of one name (ns), and the sum of their sizes where they have any (bytes)."""

    values: IntArray
    size: int | None


@dataclass(frozen=True, slots=True)
class Groups:
    """Durations by key and part; `keys[i]`, `parts[i]` and `sizes[i]` are those of group i of `grouped`."""

    grouped: Grouped
    keys: list[int]
    parts: list[int]
    sizes: list[int] | None

    @classmethod
    def of(
        cls, keys: IntArray, durations: IntArray, parts: IntArray | None, count: int, sizes: IntArray | None = None
    ) -> Groups:
        """Group durations (ns) by key and part; parts are 0 to `count` - 1, all 0 where there are None.

        Raises:
            OverflowError: They are so large that they are no durations.
        """
        import numpy as np

        low, span = int(keys.min()), int(keys.max()) - int(keys.min())
        numbers: IntArray | None = None
        if (span + 1) * count >= _LARGEST:
            numbers, keys = np.unique(keys, return_inverse=True)
            low = 0
        code = keys.astype(np.int64)
        code -= low
        if parts is not None:
            code *= count
            code += parts
        each = 1 if parts is None else count
        grouped = group(code, durations)
        found = [(c // each + low, c % each) for c in grouped.keys]
        if numbers is not None:
            found = [(int(numbers[k]), p) for k, p in found]
        totals = None
        if sizes is not None:
            added = np.zeros(len(grouped.keys), np.int64)
            np.add.at(added, np.searchsorted(np.array(grouped.keys), code), sizes)
            totals = added.tolist()
        return cls(grouped, [k for k, _ in found], [p for _, p in found], totals)

    def merged(self, label: Callable[[int], L | None]) -> dict[L, Some]:
        """All durations by the label of their key; a key without label is left out."""
        return {name: some for (name, _), some in self._merged(label, lambda _: 0).items()}

    def by_part(self, label: Callable[[int], L | None]) -> dict[int, dict[L, Some]]:
        """The durations of each part by the label of their key."""
        found: dict[int, dict[L, Some]] = {}
        for (name, part), some in self._merged(label, lambda part: part).items():
            found.setdefault(part, {})[name] = some
        return found

    def _merged(self, label: Callable[[int], L | None], part: Callable[[int], int]) -> dict[tuple[L, int], Some]:
        names = {key: label(key) for key in dict.fromkeys(self.keys)}
        labels: list[Any] = [
            None if names[key] is None else (names[key], part(p)) for key, p in zip(self.keys, self.parts, strict=True)
        ]
        sums: dict[Any, int] = {}
        for name, size in zip(labels, self.sizes or (), strict=False):
            sums[name] = sums.get(name, 0) + size
        return {
            name: Some(values, sums.get(name)) for name, values in merge(self.grouped, labels).items()
            if name is not None
        }  # fmt: skip
