"""Figures: what a program says of itself on its output, by the recipe's regular expressions."""

from __future__ import annotations

import math
import re
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PICKS: dict[str, Callable[[list[float]], float]] = {
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
    "sum": sum,
    "mean": statistics.fmean,
    "max": max,
    "min": min,
}


def figures(output: str, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of table `figures`, one for each figure wanted; `value` is None when it was not found.

    `no_number` of a row is the last text that was matched and is no number, where there is no value.

    Args:
        output: The program's standard output.
        wanted: name -> an object with regex, unit and pick.
    """
    rows = []
    for name, spec in wanted.items():
        texts = [m[1] or "" for m in re.finditer(spec.regex, output, re.MULTILINE)]
        found = [n for n in map(_number, texts) if n is not None]
        value = float(_PICKS[spec.pick](found)) if found else None
        # a program that diverged says nan: to take another number for it would make it look healthy
        all_count = spec.pick not in {"first", "last"}
        known = value is not None and all(map(math.isfinite, [value, *(found if all_count else ())]))
        row = {"name": name, "value": value if known else None, "unit": spec.unit, "matches": len(found)}
        rows.append(row | ({"no_number": texts[-1]} if texts and not found else {}))
    return rows


# 1,234.5 is a number with separators; 3,14 is a decimal comma or a list, and no number that could be vouched for
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


def _number(text: str) -> float | None:
    plain = text.strip()
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return None
