"""Numbers that remember how they were written: `1e3`, `0x10` and `1.10` reach a program as they are in the file.

They compare, compute and go into JSON as the numbers that they are; only as text are they what was written.
"""

from __future__ import annotations

from typing import Any


class _Written:
    """A number and its text."""

    text = ""

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class WrittenInt(_Written, int):
    """A whole number and its text."""


class WrittenFloat(_Written, float):
    """Another number and its text."""


def written(value: float, text: str) -> int | float:
    """The number with its text, or itself where Python writes it the same way."""
    if str(value) == text:
        return value
    made = WrittenInt(value) if isinstance(value, int) else WrittenFloat(value)
    made.text = text
    return made


def plain(value: Any) -> Any:
    """A number without its text, and everything else as it is."""
    if isinstance(value, WrittenInt):
        return int(value)
    return float(value) if isinstance(value, WrittenFloat) else value


def as_text(value: object) -> str:
    """A value as a program gets it: a number as it was written, true and false as YAML has them."""
    return str(value).lower() if isinstance(value, bool) else str(value)
