"""A submission as its scheduler knows it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.schedulers.model import Submission

NO_ID = "ended"  # stored instead of an id when a submission had ended before its id was known
_ARRAY = re.compile(r"(?P<job>.+)/(?P<offset>-?\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Native:
    """The scheduler's id of a submission. Ids are opaque text.

    Stored as `123` or, for an array, `123/OFFSET`: the task of an array index is index + OFFSET.
    """

    job: str
    offset: int | None = None

    def __str__(self) -> str:
        return self.job if self.offset is None else f"{self.job}/{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> Native | None:
        """Read the stored form; None when there is no id."""
        if not text or text == NO_ID:
            return None
        match = _ARRAY.fullmatch(text)
        return cls(match["job"], int(match["offset"])) if match else cls(text)

    @classmethod
    def of(cls, submission: Submission, job: str, first_index: int = 0) -> Native:
        """The id of a submission; `first_index` is the array index of its first task."""
        return cls(job, submission.tasks[0] - first_index if len(submission.tasks) > 1 else None)

    def index(self, task: int) -> int | None:
        """The array index of a task; None for a job that is no array."""
        return None if self.offset is None else task - self.offset

    def tasks(self, indices: Sequence[int] | None, tasks: Sequence[int]) -> Iterable[int]:
        """The tasks of array indices; for a single job its only task. Empty when only one of both is an array."""
        if self.offset is None or indices is None:
            return tasks[:1] if self.offset is None and indices is None else ()
        return [index + self.offset for index in indices]


def spans(numbers: Iterable[int]) -> list[str]:
    """`0-3` and `7` of rising numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return [str(a) if a == b else f"{a}-{b}" for a, b in parts]
