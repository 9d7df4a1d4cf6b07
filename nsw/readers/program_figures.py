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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from nsw.apart import limited_block, run_isolated
from nsw.errors import LimitError
from nsw.safe_files import open_text, open_to_read

__all__ = ["Answer", "OutputLine", "first_matching_lines", "line_at_offset", "read_figure_rows"]


Query = TypeVar("Query")
Answer = TypeVar("Answer")

_WINDOW: Final = 1 << 16  # characters that are searched at a time
_OVERLAP: Final = 1 << 13  # characters that a match over several lines may have, at least
_LINE: Final = 1 << 12  # `.*x=(.)` looks at a line once for each of its characters
_BEFORE: Final = 1 << 10  # characters in front of a window that `^`, `\b` and the like may look at
_BREAK: Final = re.compile(r".*[^\w.,+-]", re.DOTALL)  # up to where no number or word is cut
_SECONDS: Final = 5.0  # for the expression of one figure, beside what it may take for each byte
_SECONDS_A_BYTE: Final = 4e-6


def read_figure_rows(output_file: Path, figure_specs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of table `read_figure_rows`, one for each figure wanted; `value` is None when it was not found.

    `line` of a row is the first line with a number of it, `at` its place for `line_at_offset`. `no_number` is the last
    text that was matched and is no number, where there is no value; `too_slow`: its expression was given up.

    Args:
        output_file: The program's standard output.
        figure_specs: name -> an object with regex, unit and pick.
    """
    return _search_on_main_thread(_find_figures, output_file, dict(figure_specs), "reading the figures of")


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of a program's output; `number` counts from 1, as `grep -n` does. `too_slow`: its regex was given up."""

    number: int = 0
    text: str = ""
    too_slow: bool = False


def first_matching_lines(output_file: Path, regexes: Sequence[str]) -> list[OutputLine | None]:
    """The first line that each regular expression matches in; None where it matches nowhere.

    Args:
        output_file: The program's output.
        regexes: The regular expressions.
    """
    return _search_on_main_thread(_first_matching_lines, output_file, regexes, "searching")


def _search_on_main_thread(
    search: Callable[[Path, Query, int], list[Answer]], output: Path, query: Query, activity: str
) -> list[Answer]:
    """What a search gives, of another process where this is not the main thread.

    The signals that end an expression reach the main thread alone.
    """
    size = output.stat().st_size
    if threading.current_thread() is threading.main_thread():
        return search(output, query, size)
    return run_isolated(search, output, query, size, subject=f"{activity} {output}", size=size)


def _first_matching_lines(output: Path, regexes: Sequence[str], size: int) -> list[OutputLine | None]:
    seconds = _SECONDS + size * _SECONDS_A_BYTE
    searches = [_FirstMatchSearch(regex, seconds) for regex in regexes]
    _search_output(output, searches)
    return [search.first_line(output) for search in searches]


def line_at_offset(output_file: Path, offset: int) -> OutputLine:
    r"""Return the line of a place in a program's output.

    Args:
        output_file: The output.
        offset: The place in characters, each end of a line (also `\r\n`) being one.
    """
    number = 0
    with open_to_read(output_file) as file:
        for number, data in enumerate(file, 1):
            line = data.decode(errors="replace")
            length = len(line.replace("\r\n", "\n"))
            if offset < length:
                begin, end = line.rfind("\r", 0, offset) + 1, line.find("\r", offset)
                return OutputLine(number, line[begin : end if end >= 0 else None].strip("\n"))
            offset -= length
    return OutputLine(number)


def _find_figures(output: Path, specs: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
    seconds = _SECONDS + size * _SECONDS_A_BYTE
    searches = [_FigureSearch(name, spec, seconds) for name, spec in specs.items()]
    _search_output(output, searches)
    return [search.figure_row() for search in searches]


def _search_output(output: Path, searches: Sequence[_FirstMatchSearch]) -> None:
    with open_text(output, errors="replace") as file:  # a carriage return, as of a progress bar, ends a line too
        for window in _read_windows(file):
            for search in searches:
                search.search_window(window)


@dataclass(frozen=True, slots=True)
class _OutputWindow:
    """A stretch of the output: text[start:end]. Matches that begin behind `stop` are left to the next one.

    `offset` is the place of the text in the whole output.
    """

    text: str
    offset: int
    start: int
    stop: int
    end: int


def _read_windows(file: TextIO) -> Iterator[_OutputWindow]:
    text, offset, at, is_last = "", 0, 0, False
    while not is_last or at < len(text):
        if not is_last and len(text) - at < _WINDOW:
            chunk = file.read(4 * _WINDOW)
            before = max(0, at - _BEFORE)
            text, offset, at, is_last = text[before:] + chunk, offset + before, at - before, not chunk
            continue
        stop, end = _window_stop_and_end(text, at, is_last=is_last)
        yield _OutputWindow(text, offset, at, stop, end)
        at = stop


def _window_stop_and_end(text: str, start: int, *, is_last: bool) -> tuple[int, int]:
    """Where the window that begins here stops and ends."""
    end = min(start + _WINDOW, len(text))
    if (long := _first_long_line_start(text, start, end)) is not None:
        if long > start:
            return long, long
        half = start + _LINE // 2
        words = _BREAK.match(text, half + _LINE // 4, start + _LINE)
        return half, words.end() if words else start + _LINE
    if is_last and end == len(text):
        return end, end
    end = text.rindex("\n", start, end) + 1
    return end - _OVERLAP, end


def _first_long_line_start(text: str, start: int, end: int) -> int | None:
    """Where the first line begins, from here, that goes on for more than _LINE."""
    while end - start > _LINE:
        newline = text.rfind("\n", start, start + _LINE + 1)
        if newline < 0:
            return start
        start = newline + 1
    return None


class _FirstMatchSearch:
    """Where a regular expression matches first, in the whole output; `gave_up`: it took too long."""

    def __init__(self, regex: str, seconds: float) -> None:
        self._regex = re.compile(regex, re.MULTILINE)
        self._left = seconds
        self._end = 0  # of the last match, in the whole output
        self.first: int | None = None
        self.gave_up = False

    def first_line(self, output: Path) -> OutputLine | None:
        """The line of the first match; None: there is none."""
        if self.gave_up:
            return OutputLine(too_slow=True)
        return None if self.first is None else line_at_offset(output, self.first)

    def search_window(self, window: _OutputWindow) -> None:
        """Take the matches that begin in a window, unless the expression took too long."""
        if self.gave_up:
            return
        started_at = time.process_time()
        try:
            with limited_block("a figure", seconds=max(0.001, self._left)):
                self._keep_first_match(window)
        except LimitError:
            self.gave_up = True
        self._left -= time.process_time() - started_at

    def _keep_first_match(self, window: _OutputWindow) -> None:
        if self.first is None and (match := next(iter(self._matches_in_window(window)), None)) is not None:
            self.first = window.offset + match.start()

    def _matches_in_window(self, window: _OutputWindow) -> list[re.Match[str]]:
        start = max(window.start, self._end - window.offset)
        matches = list(self._regex.finditer(window.text, start, window.end))
        while matches and matches[-1].start() >= window.stop:
            matches.pop()
        if matches:
            self._end = window.offset + matches[-1].end()
        return matches


class _FigureSearch(_FirstMatchSearch):
    """What was found of a figure so far."""

    def __init__(self, name: str, spec: Any, seconds: float) -> None:
        super().__init__(spec.regex, seconds)
        self._name, self._unit, self._pick = name, spec.unit, spec.pick
        self._numbers = _NumberTally()
        self._no_number: str | None = None
        self._line: str | None = None

    def figure_row(self) -> dict[str, Any]:
        """The row of table `read_figure_rows`."""
        value = None if self.gave_up else self._numbers.pick_number(self._pick)
        count = self._numbers.count
        row = {"name": self._name, "value": value, "unit": self._unit, "matches": count}
        if self.gave_up:
            return row | {"too_slow": True}
        if self._line is not None:
            row |= {"line": self._line, "at": self.first}
        return row | ({"no_number": self._no_number} if self._no_number is not None and not count else {})

    def _keep_first_match(self, window: _OutputWindow) -> None:
        if matches := self._matches_in_window(window):
            texts = [match[1] or "" for match in matches]
            numbers = list(map(_parse_number, texts))
            if self._line is None:
                match = next((m for m, number in zip(matches, numbers, strict=True) if number is not None), None)
                if match is not None:
                    self._line, self.first = _line_of_match(match), window.offset + match.start()
            self._numbers.add([number for number in numbers if number is not None])
            self._no_number = texts[-1]


def _line_of_match(match: re.Match[str]) -> str:
    text, begin = match.string, match.string.rfind("\n", 0, match.start()) + 1
    end = match.string.find("\n", match.end())
    return text[begin : end if end >= 0 else None]


class _NumberTally:
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
            self._sums.append(_exact_sum(numbers))

    def pick_number(self, pick: str) -> float | None:
        """The one that is asked for; None where there is none, or a program that diverged says nan or inf."""
        if pick in {"first", "last"}:
            value = self._first if pick == "first" else self._last
        elif not self.count or not self._all_finite:  # to leave out what is not finite would make it look healthy
            return None
        elif pick == "max":
            value = self._max
        else:
            value = _exact_sum(self._sums) / (self.count if pick == "mean" else 1)
        return value if math.isfinite(value) else None


def _exact_sum(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


# 1,234.5 is a number with separators; 3,14 is a decimal comma or a list, and no number that could be vouched for
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


def _parse_number(text: str) -> float | None:
    plain = text.strip()
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return None
