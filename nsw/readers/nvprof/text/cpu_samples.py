"""nvprof's samples of the CPU (--cpu-profiling on) as text: the functions that were running.

A function follows its time after two blanks. Flat tables have no more; from the bottom up its callers are below it,
behind blanks and bars, and are left out:

    Time(%)      Time  Name
     48.87%  3.03999s  loop
     48.87%  3.03999s  | main

From the top down the time of a function is what its callees leave of it: nsw does not read these tables. What nvprof
left out is below the table: `Max stack depth: 2`, `Percentage threshold: 10%`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from nsw.readers.nvprof.text.state import AGAIN, Stream
from nsw.readers.nvprof.text.summaries import TIME
from nsw.readers.text.quantities import duration, number

__all__ = ["HEADER", "CpuTable"]

HALF_A_SHARE: Final = 0.005 + 1e-9  # %, of the printed two digits
HEADER = re.compile(r"\s*Time ?\(%\)\s+Time\s+Name\s*\Z")
_ROW = re.compile(rf"\s*(?P<share>\d+(?:\.\d+)?)%\s+(?P<time>{TIME})(?P<gap>\s+)(?P<name>\S.*)\Z")
_SHARE = re.compile(r"\s*\d+\.\d+%\s+\S")
_TORN = re.compile(r"\s*\d+\.\d+%(?:\s++(?:\d[\d.]*[num]?s?\s*)?)?\Z")  # a row that ends too early
_BRANCHES = re.compile(r"(?:[|] |  )*")
_BRANCH = ("|", "{{!")
_REMARK = re.compile(r"[\s|]*\[CCFF\] \(")  # of the compiler, on the row above
# `main /usr/bin/app (/src/app.c:20 0x2724a)`: --cpu-profiling-show-library, --cpu-profiling-scope instruction
_LOCATION = re.compile(r"(?P<name>.*?)(?P<module> /[^()]*?)?(?P<place> \((?:\S.*:\d+ )?0x[0-9a-f]+\))?\Z")
_LONGEST_NAME = 16_384  # characters; where a module or a place begins costs the square of them
_THREAD = re.compile(r"(?:==\d+==|={8}) Thread \d+\s*\Z")
_END = re.compile(r"(?:==\d+==|={8}) Data collected at \d{1,5}Hz frequency\s*\Z")
_LIMIT = re.compile(r"(?:==\d+==|={8}) (?P<what>Max stack depth: \d+|Percentage threshold: \d+%)\s*\Z")
_FLAT = "print them again: nvprof -i FILE --cpu-profiling-mode flat"
_FIX_LIMITED = "print them again without --cpu-profiling-max-depth and -percentage-threshold"
_UNREAD = {
    "top down": "CPU samples from the top down are not read",
    "unknown": "CPU samples without the title of their table are not read: their order is not known",
    "flattened": "CPU samples that lost their indentation are not read: callers look like functions of their own",
    "shares": "CPU samples as shares without times (nvprof of CUDA 6 and 7) are not read",
    "doubled": "CPU samples are not read: their shares exceed 100 %, so callers are listed among the functions",
    "limited": "CPU samples are not read: some are missing, and the rest do not add up to functions",
}


class _Row(NamedTuple):
    """What a line says, less the indentation."""

    name: str
    module: str | None
    has_place: bool
    time: float  # ns
    share: float


class CpuTable:
    """One table of CPU samples being read, from its title on."""

    def __init__(self, stream: Stream, title: str) -> None:
        self._sink = stream.sink
        self._origin = stream.origin()
        self._is_top_down = "top down" in title
        self._is_known = bool(title)
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}  # as they are in the table of functions
        self._is_summed = False  # rows of one function are several
        self._limits: list[str] = []
        self._may_begin = True
        self._is_open = True  # rows may follow
        self._is_reported = False
        self._began = 0
        self._shares, self._tops = 0.0, 0  # of the functions of the first thread
        self._is_later_thread = False

    def take(self, number: int, text: str) -> bool:
        """Read a row, the line of titles, or what is below the table."""
        if text[:1] == "=":
            return self._take_heading(number, text)
        # with blanks at the end of the pattern, each blank of a name would be tried as the first of them
        match = _ROW.match(text.rstrip()) if self._is_open else None
        if match is not None:
            self._may_begin = False
            return self._take_row(number, match)
        if self._may_begin and _SHARE.match(text):
            return self._leave_out("shares", number)
        if self._may_begin:
            self._may_begin = HEADER.match(text) is not None
            return self._may_begin
        if not self._is_open:
            return False
        if _TORN.match(text):
            if not self._is_reported:
                self._sink.fault("CPU samples are cut short or damaged", number)
            return True
        return _REMARK.match(text) is not None

    def end(self) -> None:
        """Nothing more of this table follows: what is still open was cut off."""
        self._check_shares()
        self._is_open = False

    def _check_shares(self) -> None:
        """Functions are all of the time: a caller that lost its branch is one too many, a lost line one too few."""
        off, max_deviation = self._shares - 100.0, (self._tops + 1) * HALF_A_SHARE
        if not self._tops or self._is_reported or (self._limits and off < max_deviation):
            return
        self._tops = 0  # reported once
        if off > max_deviation:
            self._withdraw_rows(self._began, "doubled")
        elif off < -max_deviation:
            missing = f"CPU samples: lines are missing, the functions make {self._shares:.2f} % of the time"
            self._sink.warn(missing, self._began, AGAIN)

    def _take_heading(self, number: int, text: str) -> bool:
        if _THREAD.match(text):
            self._is_later_thread = self._tops > 0
            self._is_summed = True
            return True
        if _END.match(text):
            self._is_open = False
            return True
        if (limit := _LIMIT.match(text)) is not None:
            self._limits.append(limit["what"])
            if not self._is_known or (self._is_summed and "threshold" in limit["what"]):
                self._withdraw_rows(number)
            elif self._rows and "threshold" in limit["what"]:
                self._sink.note(f"CPU samples: the functions below the threshold are not printed ({limit['what']})")
            return True
        self.end()
        return False

    def _take_row(self, number: int, match: re.Match[str]) -> bool:
        self._began = self._began or number
        if self._is_reported:
            return True
        if self._is_top_down:
            return self._leave_out("top down", number)
        if len(match["gap"]) == 1:
            return self._leave_out("flattened", number)
        row = _parse_row(match)
        if row is None:
            return self._leave_out("flattened", number)
        if len(match["gap"]) == 2 and not match["name"].startswith(_BRANCH):
            self._add_function(row)
        elif not self._is_known:
            self._withdraw_rows(number, "unknown")
        return True

    def _add_function(self, row: _Row) -> None:
        """A function of a flat table, or from the bottom up: its time is its own."""
        if not self._is_later_thread:
            self._shares += row.share
            self._tops += 1
        self._is_summed = self._is_summed or row.has_place
        key = (row.name, row.module) if self._is_summed else (row.name, row.module, len(self._rows))
        existing = self._rows.get(key)
        if existing is None:
            existing = self._rows[key] = {**self._origin, "name": row.name, "module": row.module, "self_s": 0.0}
            self._sink.add("functions", existing)
        existing["self_s"] = existing["cpu_time_s"] = round(existing["self_s"] * 1e9 + row.time, 3) / 1e9

    def _withdraw_rows(self, number: int, reason: str = "limited") -> None:
        """Take back what was read: it is not what the table seemed to say."""
        withdrawn = {id(row) for row in self._rows.values()}
        remaining = [row for row in self._sink.rows.get("functions", ()) if id(row) not in withdrawn]
        if remaining:
            self._sink.rows["functions"] = remaining
        else:
            self._sink.rows.pop("functions", None)
        self._rows.clear()
        message = f"{_UNREAD[reason]} ({'; '.join(self._limits)})" if self._limits else _UNREAD[reason]
        if not self._is_reported:
            self._warn_once(message, number, _FIX_LIMITED if reason == "limited" else AGAIN)

    def _leave_out(self, reason: str, number: int) -> bool:
        if not self._is_reported:
            self._warn_once(_UNREAD[reason], number, _FLAT)
        return True

    def _warn_once(self, message: str, number: int, fix: str) -> None:
        self._sink.warn(message, number, fix)
        self._is_reported = True


def _parse_row(match: re.Match[str]) -> _Row | None:
    time, share = duration(match["time"]), number(match["share"])
    name = _BRANCHES.sub("", match["name"], count=1)
    placed = _LOCATION.match(name) if len(name) <= _LONGEST_NAME else None
    if time is None or share is None or placed is None or not name:
        return None
    module = placed["module"]
    return _Row(placed["name"], module and module.strip(), placed["place"] is not None, time.value, share.value)
