"""A text report with one word or cell missing, blank or doubled, and what of its rows may differ for it."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = dict[str, Any]
    Tables = dict[str, list[Row]]

# Columns of text that a word of which may be missing; the second kind follows from the first.
_TEXTS = frozenset(
    ("name", "kernel", "message", "description", "rule", "process", "text", "source", "input_shapes", "metric", "section",
     "key", "host", "device_name", "domain", "grid", "block_size")
)  # fmt: skip
_FOLLOWING = frozenset(("kind", "short_name", "mangled_name", "type", "speedup_type"))
_CELLS = 60  # tried of a line that has more
_IGNORED = frozenset(
    ("run", "report", "block", "rank", "launch_id", "pid")
)  # which table or launch, not what was measured


def variants(text: str) -> Iterator[tuple[str, str]]:
    """What was done, and the text after it; of every word, and of every cell in lines with cells."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for what, changed in _variants(line):
            if changed != line:
                yield f"line {number + 1}: {what}", "\n".join([*lines[:number], changed, *lines[number + 1 :]])


def _variants(line: str) -> Iterator[tuple[str, str]]:
    cells = _cells(line)
    if len(cells) < 4:
        for word in re.finditer(r"\S+ *", line):
            bare = word[0].rstrip()
            yield f"without {bare!r}", line[: word.start()] + line[word.end() :]
            yield f"blank for {bare!r}", line[: word.start()] + " " * len(bare) + line[word.start() + len(bare) :]
        return
    mark = "\t" if "\t" in line else ","
    for at in range(0, len(cells), max(1, len(cells) // _CELLS)):
        cell = cells[at]
        yield f"without cell {cell!r}", mark.join([*cells[:at], *cells[at + 1 :]])
        yield f"empty for {cell!r}", mark.join([*cells[:at], "", *cells[at + 1 :]])
        yield f"twice {cell!r}", mark.join([*cells[:at], cell, *cells[at:]])


def _cells(line: str) -> list[str]:
    """The cells of a line of CSV with their quotes; one cell where the line is none."""
    if re.search(r"\S {2,}\S", line) or ", Context " in line or not re.search("[,\t]", line):
        return [line]
    return [c[0] for c in re.finditer(r'(?:"[^"]*"|[^,\t"])+|(?<=[,\t])(?=[,\t]|$)|^(?=[,\t])', line)]


def garbled(text: str) -> Iterator[tuple[str, str]]:
    """What was done, and the text after it; of every number that stands alone, with another character in it."""
    for found in re.finditer(r"(?<=[ ,\t\n\">])\d[\d.,]*\d(?=[ ,\t\n\"<%a-zA-Z])", text):
        middle = (found.start() + found.end()) // 2
        yield f"garbled {found[0]} at {found.start()}", f"{text[:middle]}#{text[middle + 1 :]}"


def cuts(text: str) -> Iterator[tuple[str, str]]:
    """The text up to the middle of each line."""
    for end in re.finditer(r"\n|\Z", text):
        start = text.rfind("\n", 0, end.start()) + 1
        if end.start() - start > 1:
            yield f"cut in {text[start : end.start()]!r}", text[: (start + end.start()) // 2]


def moved(base: Tables, found: Tables) -> list[tuple[str, Row]]:
    """Rows with a value that no row of the whole report has in that column beside the other values."""
    wrong = []
    for table, rows in found.items():
        whole = [_plain(row) for row in base.get(table, [])]
        left = Counter(map(_key, whole))
        for row in map(_plain, rows):
            if table == "facts" and row["value"] is None:
                continue
            if left[_key(row)]:
                left[_key(row)] -= 1
            elif not any(_fits(row, other) for other in whole):
                wrong.append((table, row))
    return wrong


def lost(base: Tables, found: Tables) -> int:
    """How many rows fewer there are."""
    return sum(max(0, len(rows) - len(found.get(table, []))) for table, rows in base.items() if table != "facts")


def _plain(row: Row) -> Row:
    return {k: v for k, v in row.items() if k not in _IGNORED and not k.endswith("_pm")}


def _key(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


def _fits(row: Row, whole: Row) -> bool:
    """Whether the row says nothing that the whole one does not: values are the same or absent, texts lack a part."""
    renamed = any(isinstance(row.get(c), str) and row[c] != whole[c] and _is_part(row[c], whole[c]) for c in _TEXTS)
    for column, value in row.items():
        if value in (None, "") or value == whole[column]:
            continue
        if column in _TEXTS and _is_part(value, whole[column]):
            continue
        if column in _FOLLOWING and renamed:
            continue
        return False
    return True


def _is_part(text: Any, whole: Any) -> bool:
    """Whether one text is the other less one piece."""
    if not (isinstance(text, str) and isinstance(whole, str)):
        return False
    short, long = sorted((re.sub(r"\W+", "", text), re.sub(r"\W+", "", whole)), key=len)
    return _alike(short, long) + _alike(short[::-1], long[::-1]) >= len(short)


def _alike(one: str, other: str) -> int:
    """With how many characters both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
