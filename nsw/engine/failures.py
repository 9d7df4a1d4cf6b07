"""Failures of jobs that people report: what nsw says of each first, and what to do; the table is failures.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nsw.resources import toml_data

__all__ = ["JobFailure", "failures", "known_failure"]


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A failure that is known; `cause` is None where the scheduler's reason has said it."""

    name: str
    pattern: re.Pattern[str]
    remedy: str
    cause: str | None = None
    over_time: bool = False

    def described(self, detail: str) -> str:
        """A run's reason with the cause before and the remedy behind it."""
        return f"{self.cause}: {detail}; {self.remedy}" if self.cause else f"{detail}; {self.remedy}"


@cache
def failures() -> tuple[JobFailure, ...]:
    """Every failure of the table; of several that match, the first counts."""
    return tuple(
        JobFailure(
            name, re.compile(row["pattern"], re.MULTILINE), row["remedy"], row.get("cause"), row.get("over_time", False)
        )
        for name, row in toml_data("engine/failures.toml").items()
    )


def known_failure(detail: str, stderr: str, *, over_time: bool) -> JobFailure | None:
    """The failure that a run's reason or its stderr shows; None where it is none of the table.

    Args:
        detail: What the scheduler and the run itself say of its end.
        stderr: The end of what it said.
        over_time: Whether it was over its time.
    """
    text = f"{detail}\n{stderr}"
    return next((f for f in failures() if f.over_time <= over_time and f.pattern.search(text)), None)
