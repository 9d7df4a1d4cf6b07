"""pprof's text, TAU's own listing of profiles: a table a thread, then sums and means over all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nsw.readers.host.tau_profile import Timer, function_rows
from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import text_lines
from nsw.readers.text.quantities import Quantity, number
from nsw.tables import Row

__all__ = ["read", "sniff"]


_TITLES: Final = re.compile(r"\s{0,40}%Time +Exclusive +Inclusive +#Call +#Subrs +Inclusive Name")
_UNITS: Final = re.compile(r"\s{0,60}msec +total msec +usec/call")
_THREAD: Final = re.compile(r"\s{0,40}NODE (\d{1,7});CONTEXT (\d{1,7});THREAD (\d{1,7}):")
_SUMMARY: Final = re.compile(r"\s{0,40}FUNCTION SUMMARY \((\w{1,20})\):")
_ROW: Final = re.compile(
    r"\s{0,40}\d{1,3}\.\d {1,20}([\d.,:E+-]{1,30}) {1,20}([\d.,:E+-]{1,30}) {1,20}([\d.E+-]{1,30}) {1,20}[\d.E+-]{1,30}"
    r" {1,20}[\d.E+-]{1,30} (.{1,20000})"
)
_CLOCK: Final = re.compile(r"(?:(\d{1,9}):)?(\d{1,2}):(\d\d)\.(\d{3})|(\d{1,2}),(\d{3})")


@dataclass(slots=True)
class _Thread:
    rank: int | None
    is_total: bool = False
    is_unnamed: bool = False
    in_msec: bool = False
    timers: list[Timer] = field(default_factory=list)


def sniff(sample: Sample) -> int:
    """Certain by its titles."""
    return 90 if any(_TITLES.match(line) for line in sample.text.splitlines() if "%Time" in line) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`: those of each thread, or where only sums are there, those."""
    report = Report(str(path), tool="tau", format="tau-pprof")
    threads: list[_Thread] = []
    bad = []
    in_table, is_named = False, False
    for line, text in text_lines(path):
        if match := _THREAD.match(text):
            threads.append(_Thread(int(match[1])))
            is_named = True
        elif match := _SUMMARY.match(text):
            threads.append(_Thread(None, is_total=match[1] == "total"))
            in_table, is_named = False, True
        elif _TITLES.match(text):
            if not is_named:
                threads.append(_Thread(None, is_unnamed=True))
            in_table, is_named = True, False
        elif _UNITS.match(text) and threads:
            threads[-1].in_msec = True
        elif not text.strip():
            in_table = in_table and not threads[-1].timers
        elif in_table and not set(text.strip()) <= {"-"}:
            timer = _parse_timer(text)
            if timer is None:
                bad.append(line)
            else:
                threads[-1].timers.append(timer)
    used_threads = [thread for thread in threads if thread.rank is not None] or [
        t for t in threads if t.is_total or t.is_unnamed
    ]
    if unnamed := sum(thread.is_unnamed for thread in threads if thread not in used_threads):
        report.error(f"{unnamed} of its tables do not say of which thread they are, and were left out")
    if any(not thread.in_msec for thread in used_threads):
        report.error("pprof's table is not in msec: counts of other metrics are not read", fix="read profile.N.C.T")
        used_threads = [thread for thread in used_threads if thread.in_msec]
    wrong = "a row that does not have pprof's columns was left out"
    report.errors([wrong] * len(bad), f"{len(bad)} rows in all were left out", lines=bad)
    if options.wants("functions"):
        report.tables["functions"] = [
            {"block": n, "rank": thread.rank, **row}
            for n, thread in enumerate(used_threads)
            for row in function_rows(thread.timers, _timer_time_columns)
        ]
    return report


def _parse_timer(text: str) -> Timer | None:
    match = _ROW.fullmatch(text)
    if match is None:
        return None
    own_time, total, calls = _parse_milliseconds(match[1]), _parse_milliseconds(match[2]), number(match[3])
    if own_time is None or total is None or calls is None:
        return None
    return Timer(match[4].strip(), calls.value, own_time.value, total.value)


def _parse_milliseconds(text: str) -> Quantity | None:
    """Milliseconds as pprof prints them: `2:11.067` is 131067 ms, `11,900` is 11900 ms, `0.0206` is that many ms."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return number(text)
    hours, minutes, seconds, milliseconds, bare, behind = match.groups()
    if bare is not None:
        return Quantity(1000 * int(bare) + int(behind), None)
    return Quantity(((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(milliseconds), None)


def _timer_time_columns(timer: Timer) -> Row:
    """Times in s; pprof cuts whole ms, and prints three digits of less than one."""
    return {
        "self_s": timer.own_amount / 1e3, "self_s_pm": _printed_half_width_ms(timer.own_amount),
        "cpu_time_s": timer.total / 1e3, "cpu_time_s_pm": _printed_half_width_ms(timer.total),
    }  # fmt: skip


def _printed_half_width_ms(milliseconds: float) -> float:
    return 1e-3 if milliseconds >= 1 else 5e-7
