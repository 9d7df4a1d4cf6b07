"""The lines of a YAML file as they may be shown: printable, of a sensible length, without secrets."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.recipe.secret_guesses import guessed_spans
from nsw.recipe.secret_names import passwords
from nsw.recipe.secret_spans import secret_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import Mark
    from nsw.recipe.secret_spans import Place, Span

LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_LINE = 400  # a longer line is cut behind the fault when it is shown
_COMMENT = re.compile(r"(?<=\s)#.*")
# text: to compile it takes 5 ms, and only a line that is shown needs it
_UNPRINTABLE = r"[^\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\ue000-\ufefe\uff00-\U0010ffff]"


class ShownLines:
    """A text whose lines are shown beside faults; where its secrets are is found once, for the first of them.

    Args:
        text: What is shown.
        source: What was parsed, if it is another text with the same columns.
        below: The keys that `source` stands below.
        hidden: What is secret whatever the text says.
    """

    def __init__(
        self, text: str, source: str | None = None, below: Sequence[str] = (), hidden: Sequence[Span] = ()
    ) -> None:
        self._text = text
        self._source = text if source is None else source
        self._below = below
        self._hidden = hidden

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return LINE_END.split(self._text)

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        return [0, *(m.end() for m in LINE_END.finditer(self._text))]

    def hides(self, mark: Mark | None) -> bool:
        """Whether something secret stands at a place."""
        if mark is None:
            return False
        begin = (mark.line - 1, mark.column - 1)
        end = (mark.end_line - 1, mark.end_column - 1) if mark.end_line else begin
        return bool(self._overlapping(begin, max(end, (begin[0], begin[1] + 1))))

    def at(self, mark: Mark | None) -> str | None:
        """The line that a mark is on, fit for a terminal; None when it is hopelessly long."""
        if mark is None or mark.line > len(self.lines) or mark.column > _LONGEST_LINE:
            return None
        line = self._masked(mark.line - 1)[: _LONGEST_LINE + mark.column]
        return re.sub(_UNPRINTABLE, "\ufffd", line)

    def _masked(self, row: int) -> str:
        """A line with `*` for what is secret; columns stay."""
        line = self.lines[row]
        characters = list(line)
        last = None
        for begin, end in self._overlapping((row, 0), (row + 1, 0)):
            first = begin[1] if begin[0] == row else len(line) - len(line.lstrip())
            last = min(end[1], len(line)) if end[0] == row else len(line)
            characters[first:last] = "*" * max(0, last - first)
        if last is not None and (comment := _COMMENT.search(line, last)):  # it may tell of a secret that was or will be
            characters[comment.start() :] = "*" * (len(line) - comment.start())
        for first, end_ in passwords("".join(characters)):
            characters[first:end_] = "*" * (end_ - first)
        return "".join(characters)

    def _overlapping(self, begin: Place, end: Place) -> list[Span]:
        """The secret places that have something between two places."""
        spans = self._spans
        index = bisect_right(spans, begin, key=lambda span: span[1])  # the first that ends behind `begin`
        found = []
        while index < len(spans) and spans[index][0] < end:
            found.append(spans[index])
            index += 1
        return found

    @cached_property
    def _spans(self) -> list[Span]:
        """All secret places in the order of the text, none overlapping."""
        spans, is_yaml = secret_spans(self._source, self._below)
        spans += self._hidden
        if not is_yaml:
            spans += [(self._place(begin), self._place(end)) for begin, end in guessed_spans(self._text)]
        joined: list[Span] = []
        for begin, end in sorted(span for span in spans if span[0] < span[1]):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        return joined

    def _place(self, offset: int) -> Place:
        row = bisect_right(self.starts, offset) - 1
        return row, offset - self.starts[row]
