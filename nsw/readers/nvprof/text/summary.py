"""nvprof's summary tables as text: with the Type column (since CUDA 9) and without, GPU, API, OpenACC, NVTX."""

from __future__ import annotations

import re
from itertools import repeat
from typing import TYPE_CHECKING

from nsw.readers.nvprof.text.summary_rows import (
    API,
    SECTIONS,
    add_summary_row,
    calls_of,
    figures_of,
    is_closed,
)
from nsw.readers.text.quantities import duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.text.state import Sink, Stream
    from nsw.readers.nvprof.text.summary_rows import OpenName

TIME = r"[\d.]+(?:[eE][-+]?\d+)?[num]?s"
# two columns of calls where kernels launched kernels
HEADER = re.compile(
    r"\s*(Type\s+)?Time ?\(%\)\s+Time\s+Calls(?:\s+\(host\)\s+Calls\s+\(device\))?\s+Avg\s+Min\s+Max\s+Name\s*\Z"
)
ROW = re.compile(
    rf"\s*(?:(?P<label>[A-Z][A-Za-z ]{{2,30}}(?:\((?:excl|incl)\))?):\s*)?(?P<pct>\d+(?:\.\d+)?)%\s+(?P<total>{TIME})"
    rf"\s+(?P<calls>\d+)(?:\s+(?P<device_calls>\d+|-))?\s+(?P<avg>{TIME})\s+(?P<min>{TIME})\s+(?P<max>{TIME})\s+(?P<name>\S.*)"
)
# With --normalized-time-unit a line of units follows the titles, and the rows have none.
_UNITS = re.compile(r"\s*%\s+([num]?s)\s+([num]?s)\s+([num]?s)\s+([num]?s)\s*\Z")
_UNITLESS_ROW = re.compile(ROW.pattern.replace("%", "", 1).replace(TIME, r"[\d.]+(?:[eE][-+]?\d+)?"))
# As nvprof of CUDA 5 wrote it: a share without its sign.
_BARE_ROW = re.compile(ROW.pattern.replace("%", "", 1))
_ROWISH = re.compile(r"\s*(?:[A-Z][A-Za-z ]{2,30}(?:\((?:excl|incl)\))?:\s*)?\d{1,3}\.\d\d?%(?:\s|\Z)")
_SHARELESS = re.compile(rf"(?<!\s)\s+{TIME}\s+\d+\s+{TIME}\s+{TIME}\s")  # a row without its share
_LABELLED = re.compile(r"\s*(GPU activities|API calls|Range|Open(?:ACC|MP) \((?:excl|incl)\)):\s*\S")
# a label that lost a word or its colon; of which section the rows below it are is known by what is left
_UNLABELLED = re.compile(rf"\s*(?P<label>[A-Za-z][\w() ]{{0,30}}:?)\s+\d+(?:\.\d+)?%\s+{TIME}\s+\d+\s+{TIME}\s")
_LEFT_OF_LABELS = {"GPU:": "gpu", "GPU": "gpu", "activities:": "gpu", "API:": "api", "API": "api", "calls:": "api"}
_MOST_CONTINUATIONS = 8
_TIMES = 3


class SummaryTable:
    """One summary table being read; follows the labels of the Type column."""

    def __init__(self, sink: Sink, stream: Stream, *, typed: bool, number: int) -> None:
        self._sink = sink
        self._stream = stream
        self._typed = typed
        self.number = number
        self.rows = 0
        self._units: Sequence[str | None] = (None,) * 4  # of total, mean, least, greatest, where rows have none
        self._open: OpenName | None = None  # of the row before
        self._continued = ""
        self._continuations = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row, or a line that a name goes on in."""
        if (found := self._row(text)) is not None:
            label, pct, total, calls, device_calls, avg, low, high, name = found.groups()
            times = map(duration, (total, avg, low, high), self._units)
            figures = figures_of(percent(pct), calls_of(calls, device_calls or ""), *times)
        elif not self.rows and (units := _UNITS.match(text)) is not None:
            self._units = units.groups()
            return True
        elif (labelled := _LABELLED.match(text)) is not None or _ROWISH.match(text):
            return self._fault(number, SECTIONS[labelled[1]] if labelled else None)
        elif (torn := _UNLABELLED.match(text)) is not None:
            return self._fault(number, _LEFT_OF_LABELS.get(torn["label"].strip(), "other"))
        elif _is_shareless(text):
            return self._fault(number, None)
        else:
            return self._take_continuation(text)
        self.rows += 1
        if label is not None:
            self._stream.section = SECTIONS.get(label, "other")
        elif self._stream.section is None:
            self._stream.section = "api" if API.match(name) else "gpu"
        self._open = add_summary_row(self._sink, self._stream, number, figures, name.rstrip())
        self._continued = "" if self._open is None else self._open.text
        self._continuations = 0
        return True

    def _fault(self, number: int, section: str | None) -> bool:
        """A row that is damaged; what follows is of its section all the same, where that is known."""
        self._sink.fault("a row of a summary is cut short or damaged", number)
        self._stream.section = section or self._stream.section
        self._open = None
        return True

    def _row(self, text: str) -> re.Match[str] | None:
        if self._units[0] is not None:
            return _UNITLESS_ROW.match(text)
        return ROW.match(text) or (None if self._typed else _BARE_ROW.match(text))

    def _take_continuation(self, text: str) -> bool:
        """A name that a terminal or a mail broke over lines: joined when that closes its brackets."""
        name = self._open
        if name is None or not text.strip() or text.startswith("=") or self._continuations >= _MOST_CONTINUATIONS:
            self._open = None if text.startswith("=") else name
            return False
        if self._continuations == 0 and HEADER.match(text):
            self._open = None
            return False
        self._continuations += 1
        self._continued += text.rstrip()
        if is_closed(self._continued):
            name.text = self._continued
            self._open = None
        return True


def _is_shareless(text: str) -> bool:
    """Whether `_SHARELESS` is in it, of which each of three words ends so."""
    return sum(map(str.endswith, text.split(), repeat("s"))) >= _TIMES and _SHARELESS.search(text) is not None
