"""Least and greatest of many slices of one array, in time that does not grow with the slices' lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from nsw.readers.timeline.columns import IntArray

_BLOCK = 32  # values folded into one before the table of powers is built; 1/32 of its memory
_SLICES = 1 << 16  # slices looked at a time


class Extremes:
    """`ufunc` (np.minimum or np.maximum) over slices of `values`."""

    def __init__(self, values: IntArray, ufunc: np.ufunc) -> None:
        import numpy as np

        self._values = values
        self._ufunc = ufunc
        self._levels: list[IntArray] = []
        if len(values) >= _BLOCK:
            whole = len(values) // _BLOCK
            self._levels.append(ufunc.reduce(values[: whole * _BLOCK].reshape(whole, _BLOCK), axis=1))
        while self._levels and len(self._levels[-1]) > (reach := 1 << (len(self._levels) - 1)):
            last = self._levels[-1]
            self._levels.append(np.asarray(ufunc(last[:-reach], last[reach:])))

    def of(self, low: IntArray, high: IntArray) -> IntArray:
        """The extreme of values[low[i]:high[i]] for each i; no slice may be empty."""
        import numpy as np

        out = np.empty(len(low), np.int64)
        for start in range(0, len(low), _SLICES):
            part = slice(start, start + _SLICES)
            out[part] = self._some(low[part], high[part])
        return out

    def _some(self, low: IntArray, high: IntArray) -> IntArray:
        import numpy as np

        first, last = -(-low // _BLOCK), high // _BLOCK  # blocks wholly inside
        inside = first < last
        out = self._values[low]
        self._fold(out, low, np.where(inside, first * _BLOCK, high))
        self._fold(out, np.where(inside, last * _BLOCK, high), high)
        if inside.any():
            out[inside] = self._ufunc(out[inside], self._blocks(first[inside], last[inside]))
        return out

    def _fold(self, out: IntArray, low: IntArray, high: IntArray) -> None:
        """Take short slices, of less than two blocks, into `out` value by value."""
        for step in range(int((high - low).max(initial=0))):
            here = low + step < high
            out[here] = self._ufunc(out[here], self._values[low[here] + step])

    def _blocks(self, first: IntArray, last: IntArray) -> IntArray:
        import numpy as np

        power = np.frexp((last - first).astype(np.float64))[1] - 1  # 2**power <= length
        out = np.empty(len(first), np.int64)
        for level in np.unique(power).tolist():
            mine = power == level
            table = self._levels[level]
            out[mine] = self._ufunc(table[first[mine]], table[last[mine] - (1 << level)])
        return out
