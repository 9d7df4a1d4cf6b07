"""Figures: what a program says of itself on its output, by the recipe's regular expressions.

Output is read in pieces, and the time is linear in its length for every expression whose matches lie within a line. A
line is searched as a whole up to 4096 characters; a longer one in pieces that overlap, each as if it were a line.
Windows of several lines overlap too, so that a match over lines is found unless it is very long.
"""

from __future__ import annotations

import math
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from nsw.apart import limited, run_isolated
from nsw.errors import LimitError
from nsw.safe_files import open_text, open_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Line", "figures", "first_lines", "line_at"]

_WINDOW: Final = 1 << 16  # characters that are searched at a time
_OVERLAP: Final = 1 << 13  # characters that a match over several lines may have, at least
_LINE: Final = 1 << 12  # `.*x=(.)` looks at a line once for each of its characters
_BEFORE: Final = 1 << 10  # characters in front of a window that `^`, `\b` and the like may look at
_BREAK: Final = re.compile(r".*[^\w.,+-]", re.DOTALL)  # up to where no number or word is cut
_SECONDS: Final = 5.0  # for the expression of one figure, beside what it may take for each byte
_SECONDS_A_BYTE: Final = 4e-6


def figures(output: Path, specs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of table `figures`, one for each figure wanted; `value` is None when it was not found.

    `line` of a row is the first line with a number of it, `at` its place for `line_at`. `no_number` is the last
    text that was matched and is no number, where there is no value; `too_slow`: its expression was given up.

    Args:
        output: The program's standard output.
        specs: name -> an object with regex, unit and pick.
    """
    size = output.stat().st_size
    if threading.current_thread() is threading.main_thread():
        return _find(output, specs, size)
    # the signals that end an expression reach the main thread alone
    return run_isolated(_find, output, dict(specs), size, subject=f"reading the figures of {output}", size=size)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a program's output; `number` counts from 1, as `grep -n` does. `too_slow`: its regex was given up."""

    number: int = 0
    text: str = ""
    too_slow: bool = False


def first_lines(output: Path, regexes: Sequence[str]) -> list[Line | None]:
    """The first line that each regular expression matches in; None where it matches nowhere.

    Args:
        output: The program's output.
        regexes: The regular expressions.
    """
    size = output.stat().st_size
    if threading.current_thread() is threading.main_thread():
        return _first_lines(output, regexes, size)
    return run_isolated(_first_lines, output, regexes, size, subject=f"searching {output}", size=size)


def _first_lines(output: Path, regexes: Sequence[str], size: int) -> list[Line | None]:
    seconds = _SECONDS + size * _SECONDS_A_BYTE
    searches = [_Search(regex, seconds) for regex in regexes]
    _go_through(output, searches)
    return [
        Line(too_slow=True) if search.gave_up else None if search.first is None else line_at(output, search.first)
        for search in searches
    ]


def line_at(output: Path, offset: int) -> Line:
    r"""Return the line of a place in a program's output.

    Args:
        output: The output.
        offset: The place in characters, each end of a line (also `\r\n`) being one.
    """
    number = 0
    with open_to_read(output) as file:
        for number, data in enumerate(file, 1):
            line = data.decode(errors="replace")
            length = len(line.replace("\r\n", "\n"))
            if offset < length:
                begin, end = line.rfind("\r", 0, offset) + 1, line.find("\r", offset)
                return Line(number, line[begin : end if end >= 0 else None].strip("\n"))
            offset -= length
    return Line(number)


def _find(output: Path, specs: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
    seconds = _SECONDS + size * _SECONDS_A_BYTE
    searches = [_FigureSearch(name, spec, seconds) for name, spec in specs.items()]
    _go_through(output, searches)
    return [search.row() for search in searches]


def _go_through(output: Path, searches: Sequence[_Search]) -> None:
    with open_text(output, errors="replace") as file:  # a carriage return, as of a progress bar, ends a line too
        for window in _windows(file):
            for search in searches:
                search.go_through(window)


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of the output: text[start:end]. Matches that begin behind `stop` are left to the next one.

    `offset` is the place of the text in the whole output.
    """

    text: str
    offset: int
    start: int
    stop: int
    end: int


def _windows(file: TextIO) -> Iterator[_Window]:
    text, offset, at, is_last = "", 0, 0, False
    while not is_last or at < len(text):
        if not is_last and len(text) - at < _WINDOW:
            chunk = file.read(4 * _WINDOW)
            before = max(0, at - _BEFORE)
            text, offset, at, is_last = text[before:] + chunk, offset + before, at - before, not chunk
            continue
        stop, end = _bounds(text, at, is_last=is_last)
        yield _Window(text, offset, at, stop, end)
        at = stop


def _bounds(text: str, at: int, *, is_last: bool) -> tuple[int, int]:
    """Where the window that begins here stops and ends."""
    end = min(at + _WINDOW, len(text))
    if (long := _long_line(text, at, end)) is not None:
        if long > at:
            return long, long
        half = at + _LINE // 2
        words = _BREAK.match(text, half + _LINE // 4, at + _LINE)
        return half, words.end() if words else at + _LINE
    if is_last and end == len(text):
        return end, end
    end = text.rindex("\n", at, end) + 1
    return end - _OVERLAP, end


def _long_line(text: str, at: int, end: int) -> int | None:
    """Where the first line begins, from here, that goes on for more than _LINE."""
    while end - at > _LINE:
        newline = text.rfind("\n", at, at + _LINE + 1)
        if newline < 0:
            return at
        at = newline + 1
    return None


class _Search:
    """Where a regular expression matches first, in the whole output; `gave_up`: it took too long."""

    def __init__(self, regex: str, seconds: float) -> None:
        self._regex = re.compile(regex, re.MULTILINE)
        self._left = seconds
        self._end = 0  # of the last match, in the whole output
        self.first: int | None = None
        self.gave_up = False

    def go_through(self, window: _Window) -> None:
        """Take the matches that begin in a window, unless the expression took too long."""
        if self.gave_up:
            return
        started_at = time.process_time()
        try:
            with limited("a figure", seconds=max(0.001, self._left)):
                self._take(window)
        except LimitError:
            self.gave_up = True
        self._left -= time.process_time() - started_at

    def _take(self, window: _Window) -> None:
        if self.first is None and (match := next(iter(self._matches(window)), None)) is not None:
            self.first = window.offset + match.start()

    def _matches(self, window: _Window) -> list[re.Match[str]]:
        start = max(window.start, self._end - window.offset)
        matches = list(self._regex.finditer(window.text, start, window.end))
        while matches and matches[-1].start() >= window.stop:
            matches.pop()
        if matches:
            self._end = window.offset + matches[-1].end()
        return matches


class _FigureSearch(_Search):
    """What was found of a figure so far."""

    def __init__(self, name: str, spec: Any, seconds: float) -> None:
        super().__init__(spec.regex, seconds)
        self._name, self._unit, self._pick = name, spec.unit, spec.pick
        self._numbers = _Numbers()
        self._no_number: str | None = None
        self._line: str | None = None

    def row(self) -> dict[str, Any]:
        """The row of table `figures`."""
        value = None if self.gave_up else self._numbers.picked(self._pick)
        count = self._numbers.count
        row = {"name": self._name, "value": value, "unit": self._unit, "matches": count}
        if self.gave_up:
            return row | {"too_slow": True}
        if self._line is not None:
            row |= {"line": self._line, "at": self.first}
        return row | ({"no_number": self._no_number} if self._no_number is not None and not count else {})

    def _take(self, window: _Window) -> None:
        if matches := self._matches(window):
            texts = [match[1] or "" for match in matches]
            numbers = list(map(_number, texts))
            if self._line is None:
                match = next((m for m, number in zip(matches, numbers, strict=True) if number is not None), None)
                if match is not None:
                    self._line, self.first = _line_of(match), window.offset + match.start()
            self._numbers.add([number for number in numbers if number is not None])
            self._no_number = texts[-1]


def _line_of(match: re.Match[str]) -> str:
    text, begin = match.string, match.string.rfind("\n", 0, match.start()) + 1
    end = match.string.find("\n", match.end())
    return text[begin : end if end >= 0 else None]


class _Numbers:
    """Of numbers that come some at a time, what a figure may be."""

    def __init__(self) -> None:
        self.count = 0
        self._first = self._last = math.nan
        self._max = -math.inf
        self._sums: list[float] = []
        self._all_finite = True

    def add(self, numbers: Sequence[float]) -> None:
        """The next numbers."""
        if not numbers:
            return
        if not self.count:
            self._first = numbers[0]
        self.count += len(numbers)
        self._last = numbers[-1]
        self._all_finite = self._all_finite and all(map(math.isfinite, numbers))
        if self._all_finite:
            self._max = max(self._max, *numbers)
            self._sums.append(_sum(numbers))

    def picked(self, pick: str) -> float | None:
        """The one that is asked for; None where there is none, or a program that diverged says nan or inf."""
        if pick in {"first", "last"}:
            value = self._first if pick == "first" else self._last
        elif not self.count or not self._all_finite:  # to leave out what is not finite would make it look healthy
            return None
        elif pick == "max":
            value = self._max
        else:
            value = _sum(self._sums) / (self.count if pick == "mean" else 1)
        return value if math.isfinite(value) else None


def _sum(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


# 1,234.5 is a number with separators; 3,14 is a decimal comma or a list, and no number that could be vouched for
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


def _number(text: str) -> float | None:
    plain = text.strip()
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return None
