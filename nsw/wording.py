"""Counts in words, for messages, logs and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_ORDER = ("done", "running", "queued", "submitted", "intent", "planned", "failed", "invalid", "lost", "cancelled")
_SEVERAL = {"case": "cases", "pass": "passes"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF  # how Python decodes a byte that is no UTF-8 (surrogateescape)
_NAMES_IN_LINE = 4  # of what is absent for one reason


def plural(count: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def escape_surrogates(text: str) -> str:
    r"""The text as UTF-8 can hold it: `\xff` for a byte of a name that is no UTF-8, `\ud800` for other surrogates.

    SQLite, Parquet and most programs refuse such a text.
    """
    return text if text.isascii() else _SURROGATE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code & 0xFF:02x}" if _FIRST_BYTE <= code <= _LAST_BYTE else f"\\u{code:04x}"


def singular_or_count(count: int, singular: str, several: str) -> str:
    """Return `a figure is` for one, `7 figures are` for more.

    Args:
        count: How many there are.
        singular: The text for one, such as `a figure is`.
        several: What follows the number of more, such as `figures are`.
    """
    return singular if count == 1 else f"{count} {several}"


def first_names(names: Sequence[str], limit: int = 1, noun: str = "", between: str = ", ") -> str:
    """Return the first names and how many more there are: `a, b and 3 more`.

    Args:
        names: All names.
        limit: How many to list.
        noun: The noun after the number, such as `kernels`; empty: none.
        between: What is between two names.
    """
    left = len(names) - limit
    return between.join(names[:limit]) + (f" and {left:,} more{noun and ' ' + noun}" if left > 0 else "")


def headline(counts: Mapping[str, int], incomplete: int = 0, unreadable: int = 0) -> str:
    """`24 runs: 20 done (2 without a required figure, 1 with missing or unreadable reports), 1 running, 3 failed`.

    Args:
        counts: How many runs are in each state.
        incomplete: How many that are done lack a required figure.
        unreadable: How many that are done have missing or unreadable reports.
    """
    total = sum(counts.values())
    parts = {s: f"{counts[s]} {s}" for s in _ORDER if counts.get(s)}
    but = [f"{incomplete} without a required figure"] if incomplete else []
    but += [f"{unreadable} with missing or unreadable reports"] if unreadable else []
    if but and "done" in parts:
        parts["done"] += f" ({', '.join(but)})"
    return f"{plural(total, 'run')}: " + ", ".join(parts.values())


def absent_lines(absent: Iterable[tuple[str, str, int]]) -> list[str]:
    """`missing: pass NAME (3 runs): WHY`; cases or passes that are absent for one reason share a line.

    Args:
        absent: What (`case NAME`, `pass NAME`), why, how many runs.
    """
    together: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for what, why, runs in absent:
        kind, _, name = what.partition(" ")
        together.setdefault((kind, why), []).append((name, runs))
    lines = []
    for (kind, why), some in together.items():
        names = first_names([name for name, _ in some], _NAMES_IN_LINE)
        what = f"{kind if len(some) == 1 else _SEVERAL.get(kind, kind)} {names}"
        lines.append(f"missing: {what} ({plural(sum(runs for _, runs in some), 'run')}): {why}")
    return lines
