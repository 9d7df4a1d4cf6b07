"""One cell, row, unit or mark of a sound text report changed, and what of the tables may change for it without a word."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_NUMBER = re.compile(r"(?<![\w.,(<])-?\d[\d,]{0,20}(?:\.\d{1,9})?(?![)>:\d])")
_UNITS = ("ns", "us", "ms", "s", "usecond", "msecond", "nsecond", "MB", "KB", "GB/s", "MB/s", "%", "cycle", "byte")
_UNIT = re.compile(rf"(?<=\d)(?:{'|'.join(map(re.escape, _UNITS))})(?![\w/])|\((?:ns|us|ms|s|MB|KB|bytes)\)")
KINDS = ("digit", "power", "sign", "mark", "unit", "double row", "drop row", "swap rows")
# what follows from one figure
_FAMILIES = (
    ("value", "portable_value", "duration_ns", "portable"), ("total_ns",), ("time_pct",), ("avg", "portable_value"),
    ("metric", "portable", "portable_unit", "portable_value"), ("unit", "portable", "portable_unit", "portable_value",
     "duration_ns"), ("name", "short_name", "kind", "mangled_name"), ("grid",), ("block_size",),
    ("kernel", "short_name", "mangled_name"), ("min_ns",), ("launch_id",), ("speedup_pct", "message"), ("total_bytes",),
    ("bytes_per_s",), ("text", "value"), ("self_cpu_ns",), ("calls", "total_ns"), ("start_ns", "duration_ns"),
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Without end: the kind of a change, and the text after it."""
    lines = text.split("\n")
    while True:
        kind, at = rng.choice(KINDS), rng.randrange(len(lines))
        line = _changed(kind, lines[at], rng)
        if kind == "double row" and _NUMBER.search(lines[at]):
            yield kind, "\n".join([*lines[: at + 1], *lines[at:]])
        elif kind == "drop row" and _NUMBER.search(lines[at]):
            yield kind, "\n".join([*lines[:at], *lines[at + 1 :]])
        elif kind == "swap rows" and at + 1 < len(lines) and lines[at] != lines[at + 1]:
            yield kind, "\n".join([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])
        elif line is not None and line != lines[at]:
            yield kind, "\n".join([*lines[:at], line, *lines[at + 1 :]])


def _changed(kind: str, line: str, rng: random.Random) -> str | None:
    """A line with one number or unit changed; None where it has none."""
    found = list((_UNIT if kind == "unit" else _NUMBER).finditer(line))
    if not found:
        return None
    cell = rng.choice(found)
    old = cell[0]
    match kind:
        case "unit":
            new = f"({rng.choice(('ns', 'us', 'ks'))})" if old[0] == "(" else rng.choice((*_UNITS, "ks"))
        case "digit":
            at = rng.choice([i for i, c in enumerate(old) if c.isdigit()])
            new = old[:at] + rng.choice("0123456789") + old[at + 1 :]
        case "power":
            new = old.replace(".", "", 1) if "." in old else old + "0"
        case "sign":
            new = old[1:] if old[0] == "-" else f"-{old}"
        case "mark":
            new = old.translate(str.maketrans(",.", ".,"))
        case _:
            return None
    if "," in line or "\t" in line:  # cells, and no columns
        return line[: cell.start()] + new + line[cell.end() :]
    padded = new.rjust(len(old)) if len(new) < len(old) else new
    start = cell.start() - max(0, len(new) - len(old))  # columns keep their places where there is room
    room = line[max(start, 0) : cell.start()]
    return (line[:start] if room and not room.strip() else line[: cell.start()]) + padded + line[cell.end() :]


def verdict(kind: str, sound: dict[str, Any], changed: dict[str, Any], *, said: bool) -> str:
    """What became of a change: "same", "said", "own" (silent, and only what was changed), or "spread" (silent, and more).

    Args:
        kind: Of the change.
        sound: Tables of the sound report, as lists of rows.
        changed: Those of the changed one.
        said: Whether a problem is new.
    """
    lost, new = _difference(sound, changed), _difference(changed, sound)
    if not lost and not new:
        return "same"
    if said:
        return "said"
    if kind == "drop row":
        return "own" if not new or len(new) <= 1 else "spread"
    if kind == "double row":
        return "spread" if new else "own"
    if kind == "swap rows":
        return "own" if len(lost) <= 2 and len(new) <= 2 else "spread"
    return "own" if _is_of_one_cell(lost, new) else "spread"


def _difference(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for table, rows in one.items():
        count = Counter(map(repr, other.get(table, [])))
        for row in rows:
            count[repr(row)] -= 1
            if count[repr(row)] < 0:
                found.append((table, row))
    return found


def _is_of_one_cell(lost: list[tuple[str, dict[str, Any]]], new: list[tuple[str, dict[str, Any]]]) -> bool:
    """Whether rows differ in one figure and what follows from it; one row a table, or the rows of one launch."""
    if len(lost) != len(new):
        return False
    columns = set()
    for (table, before), (other, after) in zip(lost, new, strict=True):
        if table != other:
            return False
        columns |= {c.removesuffix("_pm") for c in before if before[c] != after.get(c)}
    per_table = Counter(table for table, _ in lost)
    if max(per_table.values()) > 1 and not columns & {"grid", "block_size", "kernel", "launch_id", "pid", "device"}:
        return False
    return len(columns) <= 1 or any(columns <= set(family) for family in _FAMILIES)
