"""The decimal mark of printed numbers: what one of them proves, and what most of them do.

Proof is a mark that occurs once with other digits behind it than a group has, or with nothing but a zero before it, or
the later of two different marks. A mark that repeats separates groups.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.text.quantities import Mark

THREE: Final = (3,)
_MARKED: Final = re.compile(r"[+-]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009 _]*%?")
_OTHER_MARK: Final = re.compile(
    r"[+-]?(?:\d+\.\d+|\d[\d.]*,[\d.,]*\d|\d{1,3}(?:\.\d{3}){2,})"
)  # versions have points only


def is_marked(text: str) -> bool:
    """Whether the text is a number with a comma or a point."""
    return ("," in text or "." in text) and _MARKED.fullmatch(text) is not None


def last_marks(text: str) -> tuple[Mark, Mark]:
    """The mark that occurs last in a number, and the other one."""
    return (",", ".") if text.rfind(",") > text.rfind(".") else (".", ",")


def proven_mark(text: str, groups: tuple[int, ...] = THREE) -> Mark | None:
    """The decimal mark that one number proves; None where it proves none.

    Args:
        text: As printed.
        groups: How many digits a group can have.
    """
    if not is_marked(text):
        return None
    mark, other = last_marks(text)
    if other in text:
        return mark if text.count(mark) == 1 else None
    if text.count(mark) > 1:
        return other
    head, _, tail = text.lstrip("+-").rstrip("%").partition(mark)
    proves = len(tail) not in groups or head == "0" or len(head) > max(groups)
    return mark if proves and tail.isdigit() else None


def has_other_mark(text: str) -> bool:
    """Whether a text that is no number would be one with the other decimal mark, or with its groups in order."""
    return _OTHER_MARK.fullmatch(text) is not None


class Votes:
    """Numbers that prove a decimal mark. One is no proof against others: it may be the damaged one."""

    def __init__(self) -> None:
        self._votes: Counter[str] = Counter()

    def add(self, marks: Iterable[Mark | None]) -> None:
        """Count what numbers prove."""
        self._votes.update(filter(None, marks))

    def join(self, others: Votes) -> None:
        """Count those of others too."""
        self._votes += others._votes

    @property
    def total(self) -> int:
        """How many there are."""
        return self._votes.total()

    @property
    def winner(self) -> Mark | None:
        """The mark that most of them prove, of equally many the point; None without any."""
        if not self._votes:
            return None
        return "," if self._votes[","] > self._votes["."] else "."
