"""Iterations of a program: the part of a process's timeline that repeats.

They come from marks that repeat (NVTX ranges, PyTorch's step markers); without marks from the sequence of kernels
(nsw/readers/timeline/kernel_sequence.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.timeline.array_types import IntArray

FoundBy: TypeAlias = Literal["nvtx", "profiler_step", "kernel_sequence"]

FEWEST: Final = 3  # repetitions that make iterations of marks
_MANY: Final = 10  # a mark that repeats less often gives way to one inside it: epochs to steps
_COVERED: Final = 0.5  # of the time from the first mark's start to the last one's end
_WHOLE: Final = 0.9  # of the time: marks that take less are a part of an iteration each
_LOOKED_AT: Final = 64  # marks of most time; iterations take most of it
_DIGITS: Final = re.compile(r"\d+")
_STEP: Final = re.compile(
    r"(?i)(?<![a-z])(?:profiler|train|training)?[ _-]?(?:step|iter|iteration|(?:mini)?batch)(?![a-z])"
)


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of one process: `starts[i]` to `starts[i + 1]`, the last one to `end`; ns of the host's clock."""

    found_by: FoundBy
    name: str | None
    starts: IntArray
    end: int

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Marks:
    """The ranges of one name on one thread; ns of the host's clock, in order of start."""

    name: str
    starts: IntArray
    ends: IntArray
    launches: bool = True  # whether the thread makes CUDA calls

    @property
    def taken(self) -> int:
        """Their time together."""
        return int((self.ends - self.starts).sum())

    def repeats(self) -> bool:
        """Whether they follow one another often enough to be iterations, and take most of the time meanwhile."""
        if len(self.starts) < FEWEST:
            return False
        in_turn = bool((self.starts[1:] >= self.ends[:-1]).mean() > 0.99)  # recursion nests ranges of one name
        return in_turn and self.taken >= _COVERED * max(int(self.ends.max() - self.starts[0]), 1)


def generic(name: str) -> str:
    """A mark's name with its running numbers replaced, so that `step 1` and `step 2` are one name."""
    return _DIGITS.sub("#", name)


def _unnumbered(name: str) -> str:
    return generic(name).rstrip("# -_:([<")


def of_marks(found: Iterable[Marks], *, named: str | None = None) -> Iterations | None:
    """The marks that are a process's iterations, or None.

    Of marks that repeat: those that are called steps, iterations or batches; else the outermost, unless it repeats
    less than ten times and one inside it does more often.

    Args:
        found: The marks of the process, by name and thread.
        named: The name that a recipe gives; then only that one is looked at, however often it repeats.
    """
    marks = sorted(found, key=lambda m: -m.taken)
    if named is not None:
        for alike in (str, generic, _unnumbered):
            same = next((m for m in marks if alike(m.name) == alike(named)), None)
            if same is not None:
                return _iterations(same)
        return None
    candidates = [m for m in marks[:_LOOKED_AT] if m.launches and m.repeats()]
    if not candidates:
        return None
    steps = [m for m in candidates if _STEP.search(m.name)]
    pool = steps or candidates
    often = [m for m in pool if len(m.starts) >= _MANY]
    return _iterations((often or pool)[0])


def _iterations(marks: Marks) -> Iterations:
    """The iterations; where the marks cover a part of each only, the last one is not known whole, and is left out."""
    starts, ends = marks.starts, marks.ends
    if len(starts) > FEWEST and marks.taken < _WHOLE * int(ends.max() - starts[0]):
        return Iterations("nvtx", marks.name, starts[:-1], int(starts[-1]))
    return Iterations("nvtx", marks.name, starts, int(ends[-1]))
