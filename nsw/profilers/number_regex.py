"""Ranges of whole numbers as regular expressions, which is how ncu and nvprof are told ordinals of launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def one_of(numbers: Iterable[int]) -> str:
    """An expression that these numbers fit and no others."""
    return f"^({'|'.join(str(number) for number in sorted(set(numbers)))})$"


def from_to(first: int, last: int | None) -> str:
    """An expression that the numbers `first` to `last` fit and no others, in a few characters a digit.

    Args:
        first: At least 1.
        last: At least `first`; None: there is no last one.
    """
    if last is None:
        digits = len(str(first))
        parts = [*_between(first, 10**digits - 1), f"[1-9][0-9]{{{digits},}}"]
    else:
        parts = list(_between(first, last))
    return f"^({'|'.join(parts)})$"


def _between(first: int, last: int) -> Iterator[str]:
    """Expressions for blocks such as 37-39, 40-99, 100-299 that together make the range."""
    at = first
    while at <= last:
        size = 1  # the widest block 10^n that starts here and ends within
        while at % (size * 10) == 0 and at + size * 10 - 1 <= last:
            size *= 10
        blocks = min((last - at + 1) // size, 10 - at // size % 10)
        yield _block(at // size, blocks, len(str(size)) - 1)
        at += blocks * size


def _block(head: int, blocks: int, free: int) -> str:
    """`blocks` heads from `head` on, which share all but their last digit, with `free` digits of any value behind."""
    prefix, digit = str(head)[:-1], head % 10
    own = str(digit) if blocks == 1 else f"[{digit}-{digit + blocks - 1}]"
    return prefix + own + ("" if free == 0 else "[0-9]" if free == 1 else f"[0-9]{{{free}}}")
