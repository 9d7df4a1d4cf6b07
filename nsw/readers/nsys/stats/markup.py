"""Tables that `nsys stats` prints as JSON or HTML: the rows of an array of objects, the cells of a <table>."""

from __future__ import annotations

import html
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.text.ranked_lines import Line

_MOST_LINES = 1000  # of one object or one row of HTML
_LONGEST = 1 << 24  # characters of an array in one line
_PAIR = re.compile(r'\s*"([^"]*)"\s*:\s*(.*?),?\s*')
_CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL | re.IGNORECASE)
_OBJECT_ENDS = re.compile(r"\s*\},?\s*\]?\s*")


def json_rows(lines: Iterator[Line]) -> Iterator[tuple[int, dict[str, str]]]:
    """The objects of an array as its lines come, numbers as they are printed; up to what is none."""
    for number, text in lines:
        if text.strip() in ("", "["):
            continue
        compact = text.strip()
        if compact.startswith("[{"):
            yield from ((number, row or {}) for row in _objects(compact))
            return
        if not compact.startswith("{"):
            if '":' in compact or _OBJECT_ENDS.fullmatch(compact):
                yield number, {}  # of an object whose beginning is lost
                continue
            return
        parts = [compact]
        if not _OBJECT_ENDS.fullmatch(compact[-2:]) or compact.count("{") > compact.count("}"):
            for _, more in itertools.islice(lines, _MOST_LINES):
                parts.append(more)
                if _OBJECT_ENDS.fullmatch(more):
                    break
        row = _object(parts)
        yield number, row or {}
        if row is None:
            return
        if parts[-1].rstrip().endswith("]"):
            return


def _objects(text: str) -> list[dict[str, str] | None]:
    """The rows of an array in one line, None for what is none."""
    if len(text) > _LONGEST:
        return []
    try:
        found = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return []
    return list(map(_texts, found))


def _object(parts: list[str]) -> dict[str, str] | None:
    text = "\n".join(parts).strip().rstrip("]").rstrip().rstrip(",")
    try:
        return _texts(json.loads(text, parse_int=str, parse_float=str))
    except (ValueError, RecursionError):
        return _pairs(parts)


def _pairs(parts: list[str]) -> dict[str, str] | None:
    """Line by line: versions until 2024 leave the quotes within a name as they are."""
    row: dict[str, str] = {}
    for line in parts:
        if line.strip() in ("{", "}", "},", "}]"):
            continue
        found = _PAIR.fullmatch(line)
        if found is None:
            return None
        value = found[2]
        row[found[1]] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    return row


def _texts(found: Any) -> dict[str, str] | None:
    if not isinstance(found, dict) or any(isinstance(v, dict | list) for v in found.values()):
        return None
    return {key: "" if value is None else str(value) for key, value in found.items()}


def html_rows(lines: Iterable[Line]) -> Iterator[tuple[int, list[str]]]:
    """The cells of each <tr> up to the end of the table, titles first; none of a row that is cut off."""
    parts: list[str] = []
    first = 0
    for number, text in lines:
        if len(parts) > _MOST_LINES:
            return
        if "<tr" in text.lower():
            if _is_begun(parts):
                yield first, []
            parts, first = [], number
        parts.append(text)
        if "</tr>" in text.lower():
            yield first, [" ".join(html.unescape(cell).split()) for cell in _CELL.findall("\n".join(parts))]
            parts = []
        if "</table>" in text.lower():
            break
    if _is_begun(parts):
        yield first, []


def _is_begun(parts: list[str]) -> bool:
    """Whether the lines hold the beginning of a row."""
    return any("<td" in part.lower() for part in parts)
