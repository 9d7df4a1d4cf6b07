r"""What a Jupyter notebook shows, as lines: its JSON keeps a line as `"12 cuInit\n",`, or all of them as one text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST: Final = 64 << 20  # bytes; a line of a notebook may be as long as it, and is held in memory
_BEGIN: Final = re.compile(r'\s*\{\s*"(?:cells|metadata|nbformat|nbformat_minor|worksheets)"\s*:')
_CELLS: Final = re.compile(r'"cells"\s*:\s*\[')
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)(\s*:)?')


def is_notebook(head: str) -> bool:
    """Whether the beginning of a file is that of a notebook."""
    return _BEGIN.match(head) is not None and _CELLS.search(head) is not None


def notebook_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of all sources and outputs, each with the number of the line of JSON that it is in."""
    for number, line in enumerate(lines, 1):
        for found in _STRING.finditer(line):
            if found[2] is None:  # no key
                yield from ((number, text) for text in _told(found[1]))


def _told(quoted: str) -> list[str]:
    if "\\" not in quoted:
        return [quoted]
    try:
        told = str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        return [quoted]
    return told.removesuffix("\n").split("\n")
