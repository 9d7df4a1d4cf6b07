"""The summary of GPU clocks, temperature, power and fan, as `nvprof -i FILE` prints it.

Device "Tesla V100-SXM2-16GB (0)"
Count         Avg         Min         Max
SM Clock (MHz)         3     1313.00     1312.00     1314.00
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.devices import split_device
from nsw.readers.nvprof.system import QUANTITIES, system_rows
from nsw.readers.text.quantities import number

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

_HEADER: Final = re.compile(r"\s*Count\s+Avg\s+Min\s+Max\s*\Z")
_CSV_HEADER: Final = re.compile(r'\s*"","Device","Count","Avg","Min","Max"\s*\Z')
_NUMBER: Final = r"\d+(?:\.\d+)?"
_NAME: Final = "|".join(map(re.escape, QUANTITIES))
_ROW: Final = re.compile(rf"\s*(?P<name>{_NAME})\s+(\d+)\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*\Z")
_CSV_ROW: Final = re.compile(rf'"(?P<name>{_NAME})","([^"]*)",(\d+),({_NUMBER}),({_NUMBER}),({_NUMBER})\s*\Z')
_ROWISH: Final = re.compile(rf'\s*"?(?:{_NAME})')
_DEVICE: Final = re.compile(r'\s*Device "([^"]{1,200})"\s*\Z')


def system_table(sink: Sink, stream: Stream, text: str) -> RowTaker | None:
    """The table that a line of titles begins; None for other lines."""
    if _CSV_HEADER.match(text):
        return _SystemTable(sink, stream, _CSV_ROW)
    return _SystemTable(sink, stream, _ROW) if _HEADER.match(text) else None


class _SystemTable:
    """One summary of samples being read."""

    def __init__(self, sink: Sink, stream: Stream, row: re.Pattern[str]) -> None:
        self._sink = sink
        self._stream = stream
        self._row = row

    def take(self, line: int, text: str) -> bool:
        """Read a row, or a line that names the GPU of the next."""
        found = self._row.match(text)
        if found is None:
            return self._take_other(line, text)
        _, *cells = found.groups()
        device = self._stream.device if self._row is _ROW else split_device(cells.pop(0))[1]
        count, *values = (number(cell) for cell in cells)
        if count is not None:
            origin = {**self._stream.origin(), "device": device}
            kept = [v for v in values if v is not None]
            for fact in system_rows(origin, QUANTITIES[found["name"]], int(count.value), kept):
                self._sink.add("facts", fact)
        return True

    def _take_other(self, line: int, text: str) -> bool:
        if (device := _DEVICE.match(text)) is not None:
            self._stream.set_device(device[1])
            return True
        if _ROWISH.match(text):
            self._sink.fault("a row of clocks and temperatures is cut short or damaged", line)
            return True
        return False
