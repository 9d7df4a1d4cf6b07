"""What `ncu --query-metrics --chip CHIP` prints -> the base names of the metrics that this ncu knows on the chip."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 200_000  # names; an ncu of 2025 lists some 5,500
# a row: the name, at least two blanks or the column's end, the type; what is longer goes on in an indented line
_ROW: Final = re.compile(r"([A-Za-z][\w.]*__\w+)\s+(?:Counter|Ratio|Throughput)\b")
_OLD_ROW: Final = re.compile(r"([A-Za-z][\w.]*__\w+)(?:\s{2,}\S.*)?\s*")  # before 2023: the name and its description


def words(ncu: str, chip: str) -> tuple[str, ...]:
    """The command that asks an ncu; it needs no GPU."""
    return (ncu, "--query-metrics", "--chip", chip)


def listed(text: str) -> frozenset[str]:
    """The base names in what ncu printed; empty where it printed none."""
    found: set[str] = set()
    for line in text.splitlines():
        row = _ROW.match(line) or _OLD_ROW.fullmatch(line)
        if row is not None:
            found.add(row[1])
            if len(found) >= _MOST:
                break
    return frozenset(found)
