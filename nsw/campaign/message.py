"""A line for people, alone in its file: a plan has this event and no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Message:
    """A line for people: a warning, or what nsw does that no other event reports."""

    text: str
    level: Literal["info", "warning", "error"] = "info"

    def __str__(self) -> str:
        return self.text if self.level == "info" else f"{self.level}: {self.text}"
