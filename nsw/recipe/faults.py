"""A fault of one value, before it is known where in a file the value is."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LONGEST = 48  # characters of a value that a message repeats


class Fault(ValueError):  # noqa: N818  # a fault of the file, not an error of the program
    """What is wrong with one value.

    Attributes:
        message: What was found and what was expected.
        hint: What to do.
        offset: Where in the value's text the fault is.
        path: Where below the value it is, when the value is a list or a map.
    """

    def __init__(self, message: str, *, hint: str | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.offset = offset
        self.path: tuple[str | int, ...] = ()


def each(parse: Callable[[object], T], items: list[Any] | tuple[Any, ...]) -> list[T]:
    """Every item parsed.

    Raises:
        Fault: Of the first that cannot be; its `path` says which.
    """
    return [within(index, parse, item) for index, item in enumerate(items)]


def within(part: str | int, parse: Callable[[object], T], value: object) -> T:
    """A value of a list or map parsed, its fault placed below `part`."""
    try:
        return parse(value)
    except Fault as fault:
        fault.path = (part, *fault.path)
        raise


def show_value(value: object) -> str:
    """A value as a message names it: short, on one line, with nothing that a terminal would obey."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."
        return f"'{plain(short)}'"
    return str(value)[:_LONGEST]


def plain(text: str) -> str:
    """The text with control and format characters written as escapes, so that a terminal shows them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) for c in text)


def _escaped(character: str) -> str:
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return character.encode("unicode_escape").decode("ascii")
    return character
