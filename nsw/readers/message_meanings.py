"""What the profilers say of themselves -> problems that say what it means and what to do.

The messages are data (data/messages.toml), for every reader that meets the tools' own lines and for whoever reads
the standard error of a profiling job. A message is looked up without its prefix (`==123== Warning: `).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from nsw.readers.model import Problem

Severity = Literal["error", "warning"]
_LONGEST: Final = 400  # characters of a message that are repeated to the user


@dataclass(frozen=True, slots=True)
class Message:
    """A message that nsw knows: how bad it is, what it means, what to do.

    `is_outcome`: it says that nothing came of it, and not why. `is_hang`: a kernel that is run again does not end.
    """

    tools: frozenset[str]
    pattern: re.Pattern[str]
    severity: Severity
    explanation: str
    fix: str | None = None
    is_outcome: bool = False
    is_hang: bool = False

    def matches(self, tool: str, text: str) -> bool:
        """Whether `tool` said this."""
        return tool in self.tools and self.pattern.search(text) is not None


@cache
def messages() -> tuple[Message, ...]:
    """Every message that is known; of several that match, the first counts."""
    import tomllib

    text = files("nsw.readers").joinpath("data/messages.toml").read_text(encoding="utf-8")
    return tuple(
        Message(
            frozenset(m["tools"]),
            re.compile(m["pattern"]),
            m["severity"],
            m["explanation"],
            m.get("fix"),
            m.get("outcome", False),
            m.get("hang", False),
        )
        for m in tomllib.loads(text)["message"]
    )


def explain(tool: str, text: str) -> Message | None:
    """What is known of a message of `tool` (nvprof, ncu, nsys, pytorch), or None."""
    text = text[: 4 * _LONGEST]
    return next((m for m in messages() if m.matches(tool, text)), None)


def known_message(tool: str, text: str, *, line: int | None = None, severity: str | None = None) -> Problem | None:
    """The problem that a tool's message makes.

    Args:
        tool: Who said it: nvprof, ncu, nsys, pytorch.
        text: The message, less its prefix.
        line: Where it is.
        severity: What the tool itself called it ("error", "warning"); None when it said so in passing, and
            then only what nsw knows is a problem.
    """
    said = text.strip()[:_LONGEST]
    known = explain(tool, text)
    if known is not None:
        return Problem(known.severity, f"{tool}: {said} ({known.explanation})", line, known.fix)
    if severity is None:
        return None
    return Problem("error" if severity == "error" else "warning", f"{tool}: {said}", line)
