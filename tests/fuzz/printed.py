"""The numbers that a text holds, in every unit that a reader may take them in, and which values are among them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile(r"\.?\d[\d.,'_\u00a0\u202f]*(?:[eE][-+]?\d{1,3})?")
# ns, us, ms, s; kilo to tera; nvprof's kilo to giga of 1024; FLOP in M and G
_SCALES = np.array(
    sorted({10.0**k for k in (-9, -6, -3, 0, 3, 6, 9, 12)} | {1024.0**k for k in (-3, -2, -1, 1, 2, 3, 4)})
)
_SLACK = 2e-9  # floats

# Columns that are reckoned or counted, and not printed. Column -> why.
DERIVED = {
    "block": "counted", "launch_id": "counted where the text has no ids", "rank": "of a prefix",
    "gpu_ops": "nvprof: sum over a range's rows", "gpu_ns": "likewise",
}  # fmt: skip


class Printed:
    """The numbers of one text."""

    def __init__(self, text: str) -> None:
        found = {n for token in _NUMBER.findall(text) for n in _meanings(token)} | {0.0}
        numbers = np.array(sorted(found))
        # a count of calls is the sum of those from the host and from the device
        self._values = np.unique(np.outer(numbers, _SCALES))

    def holds(self, value: float, half_width: float | None) -> bool:
        """Whether a printed number in some unit is the value, give or take its rounding."""
        value, width = abs(value), max(half_width or 0.0, 0.5) * (1 + _SLACK) if abs(value) > 1 else (half_width or 0.0)
        width = max(width, abs(value) * _SLACK)
        at = np.searchsorted(self._values, value - width)
        return bool(at < len(self._values) and self._values[at] <= value + width)

    def missing(self, tables: dict[str, list[dict[str, Any]]]) -> Iterable[tuple[str, str, float]]:
        """Values of tables that are not printed."""
        for table, rows in tables.items():
            for row in rows:
                for column, value in row.items():
                    if column in DERIVED or column.endswith("_pm") or not isinstance(value, int | float):
                        continue
                    level = column == "portable_value" and self.holds((value + 5) / 10, None)  # of nvprof: 0 to 10
                    if not level and not self.holds(value, row.get(f"{column}_pm")):
                        yield table, column, value


def _meanings(token: str) -> Iterable[float]:
    """What a token with marks may mean: the mark for groups or for decimals, the whole or its parts."""
    bare = token.rstrip(".,'_\u00a0\u202f").lstrip(",'_\u00a0\u202f")
    for text in {bare, *re.split("[,_]", bare)}:
        for plain in (
            re.sub("[,'_\u00a0\u202f]", "", text),
            re.sub("[.'_\u00a0\u202f]", "", text).replace(",", "."),
            re.sub("[.,'_\u00a0\u202f]", "", text),
        ):
            try:
                value = float(plain)
            except ValueError:
                continue
            if np.isfinite(value) and value < 1e30:
                yield value
