"""Clocks, temperature, power and fan of the GPUs that nvprof sampled (--system-profiling on), as facts of each GPU.

As text their summary, as `nvprof -i FILE` prints it of a database too:

    Device "Tesla V100-SXM2-16GB (0)"
                             Count         Avg         Min         Max
          SM Clock (MHz)         3     1313.00     1312.00     1314.00

or single samples among the rows of a trace, `1312/877` as `[SM/Memory Clock (MHz)]`.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.nvprof_devices import split_device
from nsw.readers.quantities import Quantity, number, whole

if TYPE_CHECKING:
    from nsw.readers.nvprof_database import Database
    from nsw.readers.nvprof_state import RowTaker, Sink, Stream

# As the summary names it -> key and unit.
_QUANTITIES: Final = {
    "SM Clock (MHz)": ("sm_clock", "MHz"),
    "Memory Clock (MHz)": ("memory_clock", "MHz"),
    "Temperature (C)": ("temperature", "C"),
    "Power (mW)": ("power", "mW"),
    "Fan (%)": ("fan", "%"),
}
# As a trace names it -> the quantities of its value, which a stroke parts.
SAMPLES: Final = {
    "[SM/Memory Clock (MHz)]": (("sm_clock", "MHz"), ("memory_clock", "MHz")),
    "[Temperature (C)]": (("temperature", "C"),),
    "[Power/Limit (mW)]": (("power", "mW"), ("power_limit", "mW")),
    "[Fan Speed (%)]": (("fan", "%"),),
}
# environmentKind of a database's records -> the quantities that its bytes begin with, each of four.
_RECORDS: Final = dict(enumerate(SAMPLES.values(), 1))
_ENVIRONMENT: Final = "CUPTI_ACTIVITY_KIND_ENVIRONMENT"
_HEADER: Final = re.compile(r"\s*Count\s+Avg\s+Min\s+Max\s*\Z")
_CSV_HEADER: Final = re.compile(r'\s*"","Device","Count","Avg","Min","Max"\s*\Z')
_NUMBER: Final = r"\d+(?:\.\d+)?"
_NAME: Final = "|".join(map(re.escape, _QUANTITIES))
_ROW: Final = re.compile(rf"\s*(?P<name>{_NAME})\s+(\d+)\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*\Z")
_CSV_ROW: Final = re.compile(rf'"(?P<name>{_NAME})","([^"]*)",(\d+),({_NUMBER}),({_NUMBER}),({_NUMBER})\s*\Z')
_ROWISH: Final = re.compile(rf'\s*"?(?:{_NAME})')
_DEVICE: Final = re.compile(r'\s*Device "([^"]{1,200})"\s*\Z')


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)


@dataclass(slots=True)
class Sampled:
    """Samples of the quantities of several GPUs, summed."""

    _sums: dict[tuple[tuple[tuple[str, Any], ...], str, str], _Sum] = field(default_factory=dict)

    def add(self, origin: dict[str, Any], name: str, value: str) -> bool:
        """A row of a trace; whether its value is what its name says."""
        quantities = SAMPLES[name]
        read = [whole(part) for part in value.split("/")]
        if len(read) != len(quantities) or None in read:
            return False
        for quantity, sample in zip(quantities, read, strict=True):
            self.add_sample(origin, quantity, float(sample or 0))
        return True

    def add_sample(self, origin: dict[str, Any], quantity: tuple[str, str], value: float) -> None:
        """One value of one quantity."""
        self._sums.setdefault((tuple(origin.items()), *quantity), _Sum()).add(value)

    def facts(self) -> list[dict[str, Any]]:
        """How many, their mean, least and greatest of each quantity."""
        found = []
        for (origin, key, unit), of in self._sums.items():
            values = [Quantity(v, None) for v in (of.total / of.count, of.least, of.most)]
            found += _facts(dict(origin), (key, unit), of.count, values)
        return found


def _facts(
    origin: dict[str, Any], quantity: tuple[str, str], count: int, values: list[Quantity]
) -> list[dict[str, Any]]:
    """The facts of a quantity; `values` are mean, least, greatest."""
    key, unit = quantity
    rows = [{**origin, "key": f"system_{key}_samples", "value": float(count)}]
    for which, value in zip(("avg", "min", "max"), values, strict=True):
        rows.append(
            {**origin, "key": f"system_{key}_{which}", "value": value.value, "value_pm": value.pm, "unit": unit}
        )
    return rows


def system_facts(database: Database) -> list[dict[str, Any]]:
    """The facts of a database's records; those of no known kind, or that are damaged, are told."""
    if not database.has(_ENVIRONMENT, "deviceId", "environmentKind", "data"):
        return []
    sampled, lost = Sampled(), 0
    for device, kind, data in database.rows(f"SELECT deviceId, environmentKind, data FROM {_ENVIRONMENT}"):  # noqa: S608
        quantities = _RECORDS.get(kind, ())
        if not quantities or not isinstance(data, bytes) or len(data) < 8 or not isinstance(device, int):
            lost += 1
            continue
        for quantity, value in zip(quantities, struct.unpack_from("<2I", data), strict=False):
            sampled.add_sample({"device": device}, quantity, float(value))
    if lost:
        database.report.warn(f"not read: {lost} samples of clocks, temperatures and power that are damaged")
    return sampled.facts()


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
            for fact in _facts(origin, _QUANTITIES[found["name"]], int(count.value), kept):
                self._sink.add("facts", fact)
        return True

    def _take_other(self, line: int, text: str) -> bool:
        if (device := _DEVICE.match(text)) is not None:
            self._stream.set_device(device[1])
            return True
        if _ROWISH.match(text):
            self._sink.fault("a row of clocks and temperatures is cut short or damaged", line, "copy the report again")
            return True
        return False
