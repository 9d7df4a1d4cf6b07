"""The lines of a job's output: of any encoding, without colours and progress bars, told apart by rank; their cells."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

from nsw.readers.model import Sample
from nsw.safe_files import open_to_read

__all__ = [
    "CONTROL",
    "LONGEST",
    "LOOKED_AT",
    "Hits",
    "Line",
    "LineBlock",
    "Lines",
    "Ranked",
    "Span",
    "Stacks",
    "delimited_cells",
    "is_labelled",
    "line_blocks",
    "lines_by_rank",
    "ruled_cells",
    "ruled_spans",
    "spaced_cells",
    "text_lines",
    "visible_line",
]


Line: TypeAlias = tuple[int, str]
LineBlock: TypeAlias = tuple[int, str]
Ranked: TypeAlias = "tuple[int | None, Iterable[Line]]"
Span: TypeAlias = tuple[int, int]  # where a column begins and ends, in characters

LONGEST: Final = 1 << 17  # bytes read at a time; a line of more than twice as many is given in pieces
LOOKED_AT = 2000  # lines that tell whether a launcher labelled them
_MAX_SORTED_LINES = 4_000_000  # labelled lines that are sorted by rank in memory
# colours, titles of terminals, and what only moves or erases
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00\x08]")
# srun --label, mpirun --tag-output (Open MPI 4 and 5), Intel MPI -l
_LABEL = re.compile(r"^(?: *(\d{1,5}): ?|\[(?:\d+,)?(\d{1,5})\](?:<std\w+>)?:? ?)(?=.)")
_DASHES: Final = re.compile(r"-+")
_GAP: Final = re.compile(r"\s{2,}")


def line_blocks(path: Path, size: int = LONGEST) -> Iterator[LineBlock]:
    r"""Lines joined by `\n`, less the last line end, and the number of the first, from 1.

    A piece of a line that is too long is a block of its own; the pieces have one number.

    Args:
        path: The file.
        size: About how many bytes a block has.
    """
    number, rest, sample = 1, "", Sample(path)
    for piece in _read_pieces(path, size):
        rest += piece
        cut = rest.rfind("\n")
        if cut >= 0:
            block, rest = rest[:cut], rest[cut + 1 :]
            yield number, sample.without_numbers(block)
            number += block.count("\n") + 1
        if len(rest) > LONGEST:
            yield number, rest
            rest = ""
    if rest:
        yield number, sample.without_numbers(rest)


def _read_pieces(path: Path, size: int) -> Iterator[str]:
    """The text of a file; Python's own file of text decodes 8 KiB at a time, which takes five times as long."""
    decoder = codecs.getincrementaldecoder(Sample(path).encoding)("replace")
    with open_to_read(path) as file:
        while data := file.read(size):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def text_lines(path: Path) -> Iterator[Line]:
    """Numbered lines, from 1; a line of many megabytes comes in pieces with one number."""
    for first, block in line_blocks(path):
        if "\r" not in block and "\x1b" not in block:
            yield from enumerate(block.split("\n"), first)
            continue
        for number, text in enumerate(block.split("\n"), first):
            yield number, visible_line(text)


def visible_line(line: str) -> str:
    """A line without its end, without colours, and without what a progress bar drew over."""
    before, _, drawn = line.rstrip("\r").rpartition("\r")
    if before.startswith('"') and before.count('"') % 2:
        drawn = line.replace("\r", "")  # the end of a line of source code, in a cell of CSV
    return CONTROL.sub("", drawn) if "\x1b" in drawn else drawn


def is_labelled(first: Sequence[Line]) -> bool:
    """Whether the first `LOOKED_AT` lines tell that a launcher put the number of a rank before each."""
    labelled = sum(_LABEL.match(text) is not None for _, text in first)
    return labelled >= 4 and labelled >= 0.6 * sum(bool(text.strip()) for _, text in first)


def lines_by_rank(lines: Iterator[Line]) -> Iterator[Ranked]:
    """The lines of each rank where a launcher put its number before each, else all lines and None."""
    first = list(itertools.islice(lines, LOOKED_AT))
    all_lines = itertools.chain(first, lines)
    if not is_labelled(first):
        yield None, all_lines
        return
    ranks: dict[int | None, list[Line]] = {}
    for number, text in itertools.islice(all_lines, _MAX_SORTED_LINES):
        label = _LABEL.match(text)
        rank = int(label[1] or label[2]) if label else None
        ranks.setdefault(rank, []).append((number, text[label.end() :] if label else text))
    yield from sorted(ranks.items(), key=lambda item: -1 if item[0] is None else item[0])
    yield None, all_lines


class Lines:
    """Lines that can be looked at before they are taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._source = iter(lines)
        self._waiting: deque[Line] = deque()

    def take(self) -> Line | None:
        """The next line, or None at the end."""
        return self._waiting.popleft() if self._waiting else next(self._source, None)

    def peek(self, ahead: int = 0) -> Line | None:
        """A line to come, or None at the end."""
        while len(self._waiting) <= ahead:
            line = next(self._source, None)
            if line is None:
                return None
            self._waiting.append(line)
        return self._waiting[ahead]

    def give_back(self, lines: Iterable[Line]) -> None:
        """Put lines back, the first of them to be taken first."""
        self._waiting.extendleft(reversed(list(lines)))


def ruled_spans(text: str, start: int = 0) -> tuple[Span, ...]:
    """The columns that the dashes of a line are under, from `start` on."""
    return tuple(dashes.span() for dashes in _DASHES.finditer(text, start))


def ruled_cells(text: str, spans: Sequence[Span], *, is_last_open: bool = False) -> list[str] | None:
    """The cells of one line; None where text is between the columns.

    Args:
        text: The line.
        spans: The columns.
        is_last_open: Whether the last cell may be longer than its column.
    """
    if any(text[stop:start].strip() for (_, stop), (start, _) in itertools.pairwise(spans)):
        return None
    cells = [text[start:stop].strip() for start, stop in spans]
    if is_last_open:
        cells[-1] = text[spans[-1][0] :].strip()
    return cells


def delimited_cells(text: str, delimiter: str) -> list[str]:
    """The cells of a row of CSV; none where it is no CSV: a cell is longer than Python's csv module takes."""
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def spaced_cells(text: str) -> list[str]:
    """The cells of a line in which two blanks or more are between them."""
    return _GAP.split(text.strip())


Frame = TypeVar("Frame")


@dataclass(slots=True)
class Hits:
    """What samples say of one function; weights are in the unit of the samples, such as cycles or ns."""

    samples: int = 0
    own_weight: float = 0
    total: float = 0


@dataclass(slots=True)
class Stacks(Generic[Frame]):
    """The functions of all stacks; one that calls itself is on a stack once."""

    hits: dict[Frame, Hits] = field(default_factory=dict)
    samples: int = 0
    weight: float = 0

    def add(self, frames: Sequence[Frame], samples: int = 1, weight: float | None = None) -> None:
        """Count a stack, the function that was hit first, its callers behind it."""
        weight = samples if weight is None else weight
        self.samples += samples
        self.weight += weight
        for frame in dict.fromkeys(frames):
            self.hits.setdefault(frame, Hits()).total += weight
        hit = self.hits[frames[0]]
        hit.samples += samples
        hit.own_weight += weight

    def by_weight(self) -> Iterator[tuple[Frame, Hits]]:
        """The functions, those that take most first."""
        yield from sorted(self.hits.items(), key=lambda item: (-item[1].own_weight, -item[1].total))
