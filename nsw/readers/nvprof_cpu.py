"""nvprof's samples of the CPU (--cpu-profiling on) as text: the functions that were running, less who called them.

A function stands two blanks behind its time, its callers below it behind a bar or more blanks:

    Time(%)      Time  Name
     48.87%  3.03999s  loop
     48.87%  3.03999s  | main
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.readers.nvprof_summary import TIME
from nsw.readers.quantities import duration

if TYPE_CHECKING:
    from nsw.readers.nvprof_state import Sink, Stream

HEADER = re.compile(r"\s*Time ?\(%\)\s+Time\s+Name\s*\Z")
_ROW = re.compile(rf"\s*\d+(?:\.\d+)?%\s+(?P<time>{TIME})(?P<gap>\s+)(?P<name>\S.*?)\s*\Z")
_SHARE = re.compile(r"\s*\d+\.\d+%\s+\S")
_BRANCH = ("|", "{{!")
_UNREAD = {
    "callees": "CPU samples from the top down are not read: callers' times hold their callees'",
    "flattened": "CPU samples that lost their indentation are not read: callers look like functions of their own",
    "shares": "CPU samples as shares without times (nvprof of CUDA 6 and 7) are not read",
}


class CpuTable:
    """One table of CPU samples being read, from its title on."""

    def __init__(self, sink: Sink, stream: Stream, title: str) -> None:
        self._sink = sink
        self._stream = stream
        self._is_tree_of_callees = "top down" in title
        self._may_begin = True
        self._said = False

    def take(self, number: int, text: str) -> bool:
        """Read a row, or the line of titles."""
        found = _ROW.match(text)
        if found is None:
            if self._may_begin and _SHARE.match(text):
                return self._leave_out("shares", number)
            self._may_begin = HEADER.match(text) is not None
            return self._may_begin
        self._may_begin = False
        if self._is_tree_of_callees:
            return self._leave_out("callees", number)
        if len(found["gap"]) == 1:
            return self._leave_out("flattened", number)
        if len(found["gap"]) == 2 and not found["name"].startswith(_BRANCH):
            self._add(found["name"], found["time"])
        return True

    def _leave_out(self, why: str, number: int) -> bool:
        if not self._said:
            self._sink.warn(_UNREAD[why], number, "nvprof -i FILE --cpu-profiling-mode bottom-up prints what can be")
        self._said = True
        return True

    def _add(self, name: str, printed: str) -> None:
        time = duration(printed)
        row: dict[str, Any] = {**self._stream.origin(), "name": name}
        if time is not None:
            row["self_s"] = row["cpu_time_s"] = time.value / 1e9
        self._sink.add("functions", row)
