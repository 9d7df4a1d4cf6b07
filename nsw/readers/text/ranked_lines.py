"""The lines of a job's output: of any encoding, without colours and progress bars, told apart by rank."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, TypeAlias

from nsw.readers.text.line_blocks import line_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

Line: TypeAlias = tuple[int, str]
Ranked: TypeAlias = "tuple[int | None, Iterable[Line]]"

LOOKED_AT = 2000  # lines that tell whether a launcher labelled them
_HELD = 4_000_000  # labelled lines that are sorted by rank in memory
# colours, titles of terminals, and what only moves or erases
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00\x08]")
# srun --label, mpirun --tag-output (Open MPI 4 and 5), Intel MPI -l
_LABEL = re.compile(r"^(?: *(\d{1,5}): ?|\[(?:\d+,)?(\d{1,5})\](?:<std\w+>)?:? ?)(?=.)")


def text_lines(path: Path) -> Iterator[Line]:
    """Numbered lines, from 1; a line of many megabytes comes in pieces with one number."""
    for first, block in line_blocks(path):
        if "\r" not in block and "\x1b" not in block:
            yield from enumerate(block.split("\n"), first)
            continue
        for number, text in enumerate(block.split("\n"), first):
            yield number, as_shown(text)


def as_shown(line: str) -> str:
    """A line without its end, without colours, and without what a progress bar drew over."""
    before, _, drawn = line.rstrip("\r").rpartition("\r")
    if before.startswith('"') and before.count('"') % 2:
        drawn = line.replace("\r", "")  # the end of a line of source code, in a cell of CSV
    return CONTROL.sub("", drawn) if "\x1b" in drawn else drawn


def is_labelled(first: Sequence[Line]) -> bool:
    """Whether the first `LOOKED_AT` lines tell that a launcher put the number of a rank before each."""
    labelled = sum(_LABEL.match(text) is not None for _, text in first)
    return labelled >= 4 and labelled >= 0.6 * sum(bool(text.strip()) for _, text in first)


def by_rank(lines: Iterator[Line]) -> Iterator[Ranked]:
    """The lines of each rank where a launcher put its number before each, else all lines and None."""
    first = list(itertools.islice(lines, LOOKED_AT))
    everything = itertools.chain(first, lines)
    if not is_labelled(first):
        yield None, everything
        return
    ranks: dict[int | None, list[Line]] = {}
    for number, text in itertools.islice(everything, _HELD):
        label = _LABEL.match(text)
        rank = int(label[1] or label[2]) if label else None
        ranks.setdefault(rank, []).append((number, text[label.end() :] if label else text))
    yield from sorted(ranks.items(), key=lambda item: -1 if item[0] is None else item[0])
    yield None, everything
