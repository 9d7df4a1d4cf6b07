"""The lines of a program's output as it was printed, out of a notebook's JSON or the source of a web page."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

from nsw.readers.text.ranked_lines import as_shown, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsw.readers.text.ranked_lines import Line

_CELL = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*')
_ENTITY = re.compile(r"&[lg]t;")  # no name of C++ holds one
_TAG_NAME = "(?:html|body|p|pre|code|samp|kbd|div|span)"
_OPENED = re.compile(rf"(?:<{_TAG_NAME}(?:\s[^<>]{{0,200}})?>)+", re.IGNORECASE)
_CLOSED = re.compile(rf"(?:</{_TAG_NAME}>|<br ?/?>)+\s*\Z", re.IGNORECASE)
# What an author, a version control or a log puts before each line.
_LEAD = re.compile(
    r"""\ufeff?(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,12}[ ])?
    (?:\+?[ ]{0,3}(?:/{2,3}|\#(?![ ]SMs[ ])|;|%|!|--|>|\*)(?:[ ]|\Z) | \+(?=[ \[=]|\Z))?""",  # `# SMs` is ncu's
    re.VERBOSE,
)


def pasted_lines(path: Path) -> Iterator[Line]:
    """The lines of a file with their numbers; see `text_lines`."""
    in_cell = False
    for number, text in text_lines(path):
        if '"' not in text and "&" not in text:
            in_cell = False
            yield number, _untagged(text) if "<" in text else text
            continue
        told = unquoted(text, in_cell=in_cell)
        in_cell = told is not text and text.rstrip().endswith(",")
        told = _untagged(told) if "<" in told else told
        yield number, html.unescape(told) if _ENTITY.search(told) and "<t" not in told else told


def _untagged(text: str) -> str:
    """A line without the tags of a web page that begin or end its text."""
    opened = _OPENED.match(text)
    return _CLOSED.sub("", text[opened.end() :] if opened else text)


def without_lead(text: str) -> str:
    """A line without the marks of a comment, a quotation or a difference, or a log's time, before it."""
    found = _LEAD.match(text)
    return text[found.end() :] if found else text


def unquoted(text: str, *, in_cell: bool = False) -> str:
    r"""A line of an output that a notebook keeps as JSON, `"12 cuInit\n",`; any other as it is.

    `in_cell`: the line before was one, so that this may be the last of them, which has no line end of its own.
    """
    found = _CELL.fullmatch(text)
    if found is None or not (in_cell or found[1].endswith('\\n"')):
        return text
    try:
        told = json.loads(found[1])
    except ValueError:
        return text
    return as_shown(str(told).removesuffix("\n"))
