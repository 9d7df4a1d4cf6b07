"""One line of a site check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REACHING: Final = frozenset({"connection", "host key", "login"})  # without one of these a site cannot be asked anything


class Verdict(StrEnum):
    """How a check went; `SKIPPED`: it could not be made, or does not matter here."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was looked at, how it went, what was found, what to do."""

    what: str
    verdict: Verdict
    found: str
    fix: str = ""
