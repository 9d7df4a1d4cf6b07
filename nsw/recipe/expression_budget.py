"""What an expression of a recipe may cost: how large a value may become, and how many steps there may be.

Every operation that can make something larger than what it was given asks here first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jinja2.exceptions import SecurityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST: Final = 100_000  # characters of a text, items of a list with all that is in them
LARGEST_OUTPUT: Final = 1_000_000  # characters of a text with expressions in it, beyond what the text itself has
MOST_BITS: Final = 4096  # of a whole number
_STEPS: Final = 50_000  # of one expression: some tenths of a second
_FREE: Final = 20  # steps of an expression that count for it alone
_ALL_STEPS: Final = 5_000_000  # of all expressions of a recipe together
_A_STEP: Final = 1000  # characters that cost a step more
_NUMBER: Final = 8  # what a number, or anything else without a length, counts for


class Budget:
    """The steps of one expression, and of all of a recipe."""

    def __init__(self) -> None:
        self._spent = 0
        self._all = 0

    def renew(self) -> None:
        """Begin another recipe."""
        self._all = self._spent = 0

    def begin(self) -> None:
        """Begin another expression."""
        self._all += max(0, self._spent - _FREE)
        self._spent = 0

    def spend(self, steps: int = 1) -> None:
        """Take steps.

        Raises:
            SecurityError: There were too many.
        """
        self._spent += steps
        if self._spent > _STEPS:
            raise SecurityError(f"it takes more than {_STEPS:,} steps")
        if self._all + self._spent > _ALL_STEPS:
            raise SecurityError(f"with the expressions before it, it takes more than {_ALL_STEPS:,} steps")

    def make(self, size: int) -> None:
        """Make room for a value of this size, before it is made.

        Raises:
            SecurityError: It would be too large.
        """
        if size > LONGEST:
            raise SecurityError(f"it makes more than {LONGEST:,} characters or items")
        self.spend(1 + size // _A_STEP)


def size_of(value: object, most: int = LONGEST) -> int:
    """Characters of a text, items of a list, with what is in them; what is more than `most` is not counted on."""
    size = 0
    waiting: list[Iterator[Any]] = [iter((value,))]
    while waiting and size <= most:
        each = next(waiting[-1], waiting)
        if each is waiting:
            waiting.pop()
        elif isinstance(each, str | bytes):
            size += len(each)
        elif isinstance(each, dict):
            size += len(each)
            waiting += (iter(each), iter(each.values()))
        elif isinstance(each, list | tuple | set | frozenset):
            size += len(each)
            waiting.append(iter(each))
        elif isinstance(each, range):
            size += len(each) * _NUMBER
        else:
            size += _NUMBER
    return size


def check_number(value: object) -> None:
    """Hold whole numbers to a length.

    Raises:
        SecurityError: It is too long.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise SecurityError(f"the number has more than {MOST_BITS} bits")


def printf_size(text: str, values: object, most: int = LONGEST) -> int:
    """The most characters that `text % values` may give.

    Raises:
        SecurityError: A width is in the values.
    """
    size, fields, at = len(text), 0, text.find("%")
    while at >= 0:
        at, width = _field(text, at + 1)
        size += width
        fields += 1
        at = text.find("%", at)
    return size + fields * size_of(values, most)


def _field(text: str, at: int) -> tuple[int, int]:
    """The end of a field that begins behind its %, as Python reads it, and how wide it says it is."""
    if text[at : at + 1] == "(":
        depth = 1
        while depth and at + 1 < len(text):
            at += 1
            depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    width = number = 0
    while at < len(text) and text[at] in "-+ #0123456789.*hlL":
        if text[at] == "*":
            raise SecurityError("the format takes a width from its values")
        number = min(number * 10 + int(text[at]), LONGEST + 1) if text[at].isdigit() else 0
        width = max(width, number)
        at += 1
    return at + 1, 2 * width  # width and precision


def joined(parts: Iterable[str], more: int) -> str:
    """The parts as one text, which may be `more` characters longer than any result.

    Raises:
        SecurityError: They are too long.
    """
    found, room = [], LARGEST_OUTPUT + more
    for part in parts:
        room -= len(part)
        if room < 0:
            raise SecurityError(f"it makes a text of more than {LARGEST_OUTPUT:,} characters")
        found.append(part)
    return "".join(found)
