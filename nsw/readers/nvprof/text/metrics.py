"""nvprof's tables of metrics and events as text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from nsw.readers.nvprof.text.metric_rows import add_metric
from nsw.readers.nvprof.text.values import are_of_one_kind

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import Sink, Stream

HEADER = re.compile(
    r"\s*Invocations\s+(?P<what>Metric|Event) Name(?P<described>\s+(?:Metric|Event) Description)?"
    r"\s+Min\s+Max\s+Avg(?P<total>\s+Total)?\s*\Z"
)
_VALUE = (
    r"(?:[A-Za-z]+ \(\d+\)|[-+]?[\d.,]+(?:[eE][-+]?\d+)?(?:%|[KMGT]?B(?:/s)?)?|-?nan%?|-?inf%?|<OVERFLOW>|n/a|N/A|-)"
)
_ROW = r"\s*(?P<calls>\d+)\s+(?P<name>[A-Za-z_]\w*)\s+(?:(?P<text>\S.*?)\s+)??(?P<values>%s(?:\s+%s){%d})\s*\Z"
_ROWS = {values: re.compile(_ROW % (_VALUE, _VALUE, values - 1)) for values in (2, 3, 4)}
_VALUES = re.compile(_VALUE)
_GAP = re.compile(r"\s{2,}|\t")
_WIDE_GAP = re.compile(r"\s{3,}")  # each blank of a gap would be tried as the end of the description
_APART = re.compile(r"\s{2,}|\t")
_ROWISH = re.compile(r"\s*\d+\s+[a-z][a-z0-9]*_\w+(?:\s|\Z)|\s{5,}\d+\s{2,}[a-z]\w*\s{2,}\S")
_NAME = re.compile(r"[a-z_]\w*\Z")  # as all of nvprof's: what begins otherwise is a description without its name
KERNEL = re.compile(r"\s*Kernel:\s(.*\S)\s*\Z")
_DEVICE = re.compile(r'(?:==\d+==|={8})?\s*Device "([^"]*)"\s*\Z')
_SIGNATURE = re.compile(r"\s+\S.*\([^()]*\)(?: \[\d+\])?\s*\Z")  # of a kernel whose line lost its "Kernel:"
_MOST_CONTINUATIONS = 8
_DAMAGED = "a row of metrics is cut short or damaged"


@lru_cache(16384)
def _is_value(cell: str) -> bool:
    return _VALUES.fullmatch(cell) is not None


class MetricTable:
    """One table of metrics or events being read: devices, in them kernels, in them rows."""

    def __init__(self, sink: Sink, stream: Stream, header: re.Match[str], number: int) -> None:
        self._sink = sink
        self._stream = stream
        self._described = header["described"] is not None
        self._values = 3 if header["total"] is None else 4
        self._kernel, stream.kernel = stream.kernel, None
        self._open_name = 0  # continuation lines that the kernel's name may still have
        self._seen: set[str] = set()  # metrics of this kernel
        self.number = number
        self.rows = 0

    @property
    def kernel(self) -> str | None:
        """Whose rows are being read."""
        return self._kernel

    def take(self, number: int, text: str) -> bool:
        """Read a device, a kernel or a row."""
        cells = self._cells(text)
        if cells is None:
            return self._take_heading(number, text)
        if self._kernel is None:
            self._sink.fault("a metric without its kernel", number)
            return True
        self._open_name = 0
        calls, name, description, values = cells
        if not are_of_one_kind(values[:3]):
            self._sink.fault(_DAMAGED, number)
            return True
        if name in self._seen:
            self._kernel = None
            self._sink.fault("a metric that its kernel already has: the kernel it belongs to is unknown", number)
            return True
        self._seen.add(name)
        self.rows += 1
        add_metric(self._sink, self._stream, self._kernel, name, description, int(calls), values)
        return True

    def _cells(self, text: str) -> tuple[str, str, str | None, list[str]] | None:
        """Invocations, name, description and values of a row."""
        cells = _GAP.split(text.strip())
        first = 3 if self._described else 2
        if len(cells) == first + self._values and cells[0].isdigit() and cells[0].isascii() and _NAME.match(cells[1]):
            values = cells[first:]
            if all(map(_is_value, values)):
                return cells[0], cells[1], cells[2] if self._described else None, values
        found = _ROWS[self._values].match(_WIDE_GAP.sub("  ", text))
        if found is None or not _NAME.match(found["name"]):
            return None
        description = (found["text"] or "").strip() or None
        return found["calls"], found["name"], description, _VALUES.findall(found["values"])

    def _take_heading(self, number: int, text: str) -> bool:
        if device := _DEVICE.match(text):
            self._stream.set_device(device[1])
            self._seen.clear()
            return True
        if kernel := KERNEL.match(text):
            self._seen.clear()
            self._kernel, self._open_name = kernel[1], _MOST_CONTINUATIONS
            return True
        if text.strip() == "Kernel:":
            self._kernel, self._open_name = None, 0
            return True
        return self._take_rest(number, text)

    def _looks_like_a_row(self, text: str) -> bool:
        narrow = _WIDE_GAP.sub("  ", text)
        if _ROWISH.match(text) or any(row.match(narrow) for row in _ROWS.values()):
            return True
        cells = _APART.split(text.strip())  # one that lost its invocations, or its name
        return len(cells) > self._values and all(map(_VALUES.fullmatch, cells[-self._values :]))

    def _take_rest(self, number: int, text: str) -> bool:
        if self._looks_like_a_row(text):
            self._sink.fault(_DAMAGED, number)
            return True
        if not self._open_name and _SIGNATURE.match(text):
            self._kernel = None  # what follows is of another kernel, perhaps of this one
        name = self._kernel
        if not self._open_name or name is None or not text.strip() or text.startswith("="):
            return False
        if name.count("(") <= name.count(")") and name.count("<") <= name.count(">"):
            return False
        self._open_name -= 1
        self._kernel = name + text.rstrip()
        return True
