"""nvprof's tables of metrics and events as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nsw.readers.quantities import Quantity, number, size_factor, split_unit

if TYPE_CHECKING:
    from nsw.readers.nvprof_state import Sink, Stream

HEADER = re.compile(
    r"\s*Invocations\s+(?P<what>Metric|Event) Name(?:\s+(?:Metric|Event) Description)?"
    r"\s+Min\s+Max\s+Avg(?P<total>\s+Total)?\s*\Z"
)
_VALUE = (
    r"(?:[A-Za-z]+ \(\d+\)|[-+]?[\d.,]+(?:[eE][-+]?\d+)?(?:%|[KMGT]?B(?:/s)?)?|-?nan%?|-?inf%?|<OVERFLOW>|n/a|N/A|-)"
)
_ROW = re.compile(
    rf"\s*(?P<calls>\d+)\s+(?P<name>[A-Za-z_]\w*)\s+(?:(?P<text>\S.*?)\s+)??"
    rf"(?P<values>{_VALUE}(?:\s+{_VALUE}){{2,3}})\s*\Z"
)
_VALUES = re.compile(_VALUE)
_ROWISH = re.compile(r"\s*\d+\s+[a-z][a-z0-9]*(?:_\w+)+(?:\s|\Z)")
_NAME = re.compile(r"[a-z_]\w*\Z")  # as all of nvprof's: what begins otherwise is a description without its name
_KERNEL = re.compile(r"\s*Kernel:\s(.*\S)\s*\Z")
_DEVICE = re.compile(r'(?:==\d+==\s*|={8}\s*)?\s*Device "([^"]*)"\s*\Z')
_LEVEL = re.compile(r"([A-Za-z]+) \((\d{1,3})\)\Z")
_SIGNATURE = re.compile(r"\s+\S.*\([^()]*\)(?: \[\d+\])?\s*\Z")  # of a kernel whose line lost its "Kernel:"
_CORRELATION = re.compile(r"\s+\[\d+\]\Z")
_MOST_CONTINUATIONS = 8
_DAMAGED = "a row of metrics is cut short or damaged"


class Value(NamedTuple):
    """One printed value: the number, its unit, or the text where it is no number."""

    quantity: Quantity | None
    unit: str | None
    text: str | None


def metric_value(printed: str) -> Value:
    """`64.607GB/s`, `92.62%`, `Low (2)` (which is 2), `0.834779`, `n/a`."""
    printed = printed.strip()
    if level := _LEVEL.match(printed):
        return Value(Quantity(float(level[2]), None), None, level[1])
    digits, unit = split_unit(printed)
    quantity = number(digits)
    if quantity is None or len(unit) > 12:
        return Value(None, None, printed if printed not in {"", "-"} else None)
    return Value(quantity, unit or None, None)


def add_metric(
    sink: Sink, stream: Stream, kernel: str, metric: str, description: str | None, calls: int | None, values: list[str]
) -> None:
    """One row; `values` are least, greatest, mean as printed (a total of events is their sum: not kept)."""
    read = [metric_value(v) for v in values[:3]]
    unit = read[-1].unit
    row: dict[str, Any] = {
        **stream.origin(),
        "device": stream.device,
        "device_name": stream.device_name,
        "kernel": _CORRELATION.sub("", kernel),
        "metric": metric,
        "description": description,
        "unit": unit,
        "invocations": calls,
        "text": read[-1].text if read[-1].quantity is None else None,
    }
    for column, value in zip(("min", "max", "avg"), read, strict=False):
        if (quantity := in_unit(value, unit)) is not None:
            row[column], row[column + "_pm"] = quantity
    sink.add("metrics", row)


def in_unit(value: Value, unit: str | None) -> Quantity | None:
    """The value in the unit of its row: nvprof picks one for each cell (`0.00000B/s  4.0291GB/s  1.2132GB/s`)."""
    if value.quantity is None or value.unit == unit:
        return value.quantity
    factor = size_factor((value.unit or "").removesuffix("/s"), 1024)
    wanted = size_factor((unit or "").removesuffix("/s"), 1024)
    if factor is None or wanted is None or (value.unit or "").endswith("/s") != (unit or "").endswith("/s"):
        return None
    ratio = factor / wanted
    return Quantity(value.quantity.value * ratio, None if value.quantity.pm is None else value.quantity.pm * ratio)


class MetricTable:
    """One table of metrics or events being read: devices, in them kernels, in them rows."""

    def __init__(self, sink: Sink, stream: Stream, *, columns: int, number: int) -> None:
        self._sink = sink
        self._stream = stream
        self._columns = columns  # of values in each row: least, greatest, mean, of events also the total
        self._kernel: str | None = None
        self._open_name = 0  # continuation lines that the kernel's name may still have
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a device, a kernel or a row."""
        if device := _DEVICE.match(text):
            self._stream.set_device(device[1])
            return True
        if kernel := _KERNEL.match(text):
            self._kernel, self._open_name = kernel[1], _MOST_CONTINUATIONS
            return True
        found = _ROW.match(text)
        if found is None:
            return self._take_rest(number, text)
        if self._kernel is None:
            self._sink.fault("a metric without the kernel it is of", number, "copy the report again")
            return True
        self._open_name = 0
        values = _VALUES.findall(found["values"])
        if len(values) != self._columns or not _NAME.match(found["name"]):
            self._sink.fault(_DAMAGED, number, "copy the report again")
            return True
        self.rows += 1
        description = (found["text"] or "").strip() or None
        add_metric(self._sink, self._stream, self._kernel, found["name"], description, int(found["calls"]), values)
        return True

    def _take_rest(self, number: int, text: str) -> bool:
        if _ROWISH.match(text):
            self._sink.fault(_DAMAGED, number, "copy the report again")
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
