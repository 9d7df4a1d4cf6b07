"""One cell, row, unit or mark of a sound text report changed, and what of the tables may change for it without a word."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    Row = dict[str, Any]

_NUMBER = re.compile(r"(?<![\w.,(<])-?\d[\d,]{0,20}(?:\.\d{1,9})?(?![)>:\d])")
_UNITS = ("ns", "us", "ms", "s", "usecond", "msecond", "nsecond", "MB", "KB", "GB/s", "MB/s", "%", "cycle", "byte")
_UNIT = re.compile(rf"(?<=\d)(?:{'|'.join(map(re.escape, _UNITS))})(?![\w/])|\((?:ns|us|ms|s|MB|KB|bytes)\)")
KINDS = ("digit", "power", "sign", "mark", "unit", "double row", "drop row", "swap rows")
# what follows from one figure
_FAMILIES = (
    ("value", "portable_value", "duration_ns", "portable"), ("total_ns",), ("time_pct",), ("avg", "portable_value"),
    ("metric", "portable", "portable_unit", "portable_value"), ("unit", "portable", "portable_unit", "portable_value",
     "duration_ns"), ("name", "short_name", "kind", "mangled_name", "module"), ("grid",), ("block_size",),
    ("kernel", "short_name", "mangled_name"), ("min_ns",), ("launch_id",), ("speedup_pct", "speedup_type", "message"), ("total_bytes",),
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


# what a line above several rows holds for all of them
_HEADING = frozenset(
    ("host", "process", "pid", "device", "device_name", "compute_capability", "kernel", "short_name", "mangled_name",
     "grid", "block_size", "launch_id", "context", "stream", "address", "invocations")
)  # fmt: skip
# Silent changes that no reader could know: the file holds nothing that they contradict.
ONE_CELL = "a figure or a text that the file holds once"
HEADING = "a host, process, device, kernel or size, in one line or in the rows below it"
ABSENT = "a row that is not there"
COPIED = "a copied event that has no id of its own"
ORDER = "rows in another order"


def verdict(kind: str, sound: dict[str, Any], changed: dict[str, Any], *, said: bool) -> str:
    """What became of a change: "same", "said", "spread" (silent, and more than was changed), or why nobody could know.

    Args:
        kind: Of the change.
        sound: Tables of the sound report, as lists of rows.
        changed: Those of the changed one.
        said: Whether a problem is new.
    """
    lost, new = _difference(sound, changed), _difference(changed, sound)
    if not lost and not new:
        return "same"
    return "said" if said else _unknowable(kind, lost, new) or "spread"


def _unknowable(kind: str, lost: list[tuple[str, Row]], new: list[tuple[str, Row]]) -> str | None:
    if kind == "double row" and not lost and all(table.endswith("_trace") for table, _ in new):
        return COPIED
    columns = _changed_columns(lost, new)
    if columns is not None and columns <= _HEADING:
        return HEADING
    is_alone = max(Counter(table for table, _ in lost).values(), default=0) == 1
    follows = columns is not None and (len(columns) <= 1 or any(columns <= set(family) for family in _FAMILIES))
    if is_alone and follows:
        return ONE_CELL
    if kind == "drop row" and len(new) <= 1:
        return ABSENT
    return ORDER if kind == "swap rows" and len(lost) <= 2 and len(new) <= 2 else None


def _difference(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, Row]]:
    """The rows that only the first has, less the number of their block."""
    found = []
    for table, rows in one.items():
        count = Counter(repr({**row, "block": 0}) for row in other.get(table, []))
        for row in rows:
            key = repr({**row, "block": 0})
            count[key] -= 1
            if count[key] < 0:
                found.append((table, {**row, "block": 0}))
    return found


def _changed_columns(lost: list[tuple[str, Row]], new: list[tuple[str, Row]]) -> set[str] | None:
    """The columns in which rows differ, one by one; None where they are no pairs of the same tables."""
    if len(lost) != len(new) or not lost:
        return None
    columns = set()
    for (table, before), (other, after) in zip(lost, new, strict=True):
        if table != other:
            return None
        columns |= {c.removesuffix("_pm") for c in before if before[c] != after.get(c)}
    return columns
