"""Tables of events as nvprof of CUDA 5.0 printed them: a GPU is its number, and the name follows the values.

            Invocations         Avg         Min         Max  Event Name
    Device 0
            Kernel: axpy(float, float*)
                      4        4000        1000        7000  branch

Their traces have a row an event; as text with the first ten characters of names, which are of no use.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text.csv import cells_of
from nsw.readers.nvprof.text.metric_rows import add_metric, add_value
from nsw.readers.nvprof.text.values import metric_value
from nsw.readers.text.quantities import whole

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

_HEADER: Final = re.compile(r"\s*Invocations\s+Avg\s+Min\s+Max\s+Event Name\s*\Z")
_TRACE: Final = re.compile(r"\s*Device\s+Context\s+Stream\s+Event Name\s+Kernel\s+Values\s*\Z")
_CSV_TRACE: Final = re.compile(r'\s*"Device","Context","Stream","Event Name","Kernel","Values"\s*\Z')
_DEVICE: Final = re.compile(r"\s*Device (\d{1,4})\s*\Z")
_KERNEL: Final = re.compile(r"\s*Kernel: (\S.*)")
_VALUE: Final = r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|<OVERFLOW>|<OF>"
_ROW: Final = re.compile(rf"\s*(\d+)\s+({_VALUE})\s+({_VALUE})\s+({_VALUE})\s+([a-z_]\w*)\s*\Z")
_TRACE_ROW: Final = re.compile(r"\s*\d+\s+\d+\s+\d+\s+\S+\s+\S")
# Two numbers, or a value and a name at the line's end. The blanks behind the value are not given back: they would be
# shared out between the two repeats in every way there is.
_ROWISH: Final = re.compile(rf"\s*-?(?:\d+\s+){{2,}}|\s*(?:{_VALUE})\s++(?:.*\W(?=\w))?+[^\Wa-z_]*+[a-z_]\w*+\s*\Z")
_CSV_CELLS: Final = 6
_DAMAGED: Final = "a row of events is cut short or damaged"


def event_table(sink: Sink, stream: Stream, text: str) -> RowTaker | None:
    """The table that a line of titles begins; None for other lines."""
    if _HEADER.match(text):
        return _EventTable(sink, stream)
    if _CSV_TRACE.match(text):
        return _EventTrace(sink, stream)
    if _TRACE.match(text):
        sink.note("not read: a trace of events as text, which cuts names to ten characters (--csv keeps them whole)")
        return _CutTrace()
    return None


class _EventTable:
    """One table of events being read: devices, in them kernels, in them rows."""

    def __init__(self, sink: Sink, stream: Stream) -> None:
        self._sink = sink
        self._stream = stream
        self._kernel: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Read a device, a kernel or a row."""
        if (found := _ROW.match(text)) is not None and self._kernel is not None:
            calls, mean, least, most, name = found.groups()
            add_metric(self._sink, self._stream, self._kernel, name, None, whole(calls), [least, most, mean])
            return True
        if (device := _DEVICE.match(text)) is not None:
            self._stream.device, self._stream.device_name = int(device[1]), None
            self._kernel = None
            return True
        if (kernel := _KERNEL.match(text)) is not None:
            self._kernel = kernel[1].rstrip()
            return True
        if text[:1] == "=" or not _ROWISH.match(text):
            return False
        self._sink.fault(_DAMAGED, number)
        return True


class _EventTrace:
    """Launches and their events, as CSV."""

    def __init__(self, sink: Sink, stream: Stream) -> None:
        self._sink = sink
        self._stream = stream

    def take(self, number: int, text: str) -> bool:
        """Read a row."""
        if text[:1] == "=" or text.count(",") < _CSV_CELLS - 2:
            return False
        cells = cells_of(text.strip(), ",")
        device = whole(cells[0]) if cells else None
        value = metric_value(cells[-1]) if len(cells) == _CSV_CELLS else None
        if device is None or value is None or value.number is None or not cells[3] or not cells[4]:
            self._sink.fault(_DAMAGED, number)
            return True
        add_value(self._sink, self._stream, None, cells[4], cells[3], str(device), value)
        return True


class _CutTrace:
    """The same as text, passed over."""

    def take(self, _: int, text: str) -> bool:
        """Whether the line is one of its rows."""
        return _TRACE_ROW.match(text) is not None
