"""A text file as blocks of whole lines, whatever its encoding; memory does not grow with the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from nsw.readers.model import Sample
from nsw.readers.text.notebook_lines import LARGEST, notebook_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LineBlock: TypeAlias = tuple[int, str]

LONGEST: Final = 1 << 17  # characters read at a time; a line of more than twice as many is given in pieces


def line_blocks(path: Path) -> Iterator[LineBlock]:
    r"""Lines joined by `\n`, less the last line end, and the number of the first, from 1.

    A piece of a line that is too long is a block of its own; the pieces have one number. Of a notebook, what it shows.
    """
    number, rest = 1, ""
    sample = Sample(path)
    with path.open(encoding=sample.encoding, errors="replace", newline="\n") as file:
        if sample.is_notebook and sample.size <= LARGEST:
            yield from notebook_lines(file)
            return
        while piece := file.read(LONGEST):
            rest += piece
            cut = rest.rfind("\n")
            if cut >= 0:
                block, rest = rest[:cut], rest[cut + 1 :]
                yield number, block
                number += block.count("\n") + 1
            if len(rest) > LONGEST:
                yield number, rest
                rest = ""
        if rest:
            yield number, rest
