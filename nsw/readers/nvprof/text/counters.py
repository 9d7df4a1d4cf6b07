"""nvprof's metrics and events: values, the rows that text and CSV share, and the tables as text.

Rows of the single units of a GPU (--aggregate-mode off) are not read:

    4   branch (3 instances)           -           -  [        400        401        402 ]           -
    "Tesla V100 (0)","axpy(float*)",4,"branch (3 instances)",,,"400,401,402",
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.readers.nvprof.vocabulary import Columns, split_device
from nsw.readers.text.quantities import number, size_factor, split_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.text.state import Stream

__all__ = [
    "DAMAGED",
    "HEADER",
    "KERNEL",
    "UNITS_SIGN",
    "UNITS_UNREAD",
    "MetricTable",
    "add_metric",
    "add_value",
    "are_of_one_kind",
    "metric_value",
]


_LEVEL: Final = re.compile(r"([A-Za-z]+) \((\d{1,3})\)\Z")
_LONGEST_UNIT: Final = 12
_REMEMBERED: Final = 16384
_MEAN_STEP: Final = 1e6  # byte/s
_EXACTLY: Final = 1e3  # byte/s: a mean that is printed less exactly may be a multiple of 10^6 by chance


class Value(NamedTuple):
    """One printed value: the number, half of its last digit, its unit, the text where it is in words."""

    number: float | None
    pm: float | None
    unit: str | None
    text: str | None

    @property
    def text_alone(self) -> str | None:
        """The text of what is no number."""
        return self.text if self.number is None else None


@lru_cache(_REMEMBERED)
def metric_value(printed: str) -> Value:
    """`64.607GB/s`, `92.62%`, `Low (2)` (which is 2), `0.834779`, `n/a`."""
    printed = printed.strip()
    if level := _LEVEL.match(printed):
        return Value(float(level[2]), None, None, level[1])
    digits, unit = split_unit(printed)
    quantity = number(digits)
    if quantity is None or len(unit) > _LONGEST_UNIT:
        return Value(None, None, None, printed if printed not in {"", "-"} else None)
    return Value(quantity.value, quantity.pm, unit or None, None)


def are_of_one_kind(printed: Sequence[str]) -> bool:
    """Whether values can be the least, greatest and mean of one metric: numbers of one kind of unit, or words."""
    values = [metric_value(text) for text in printed]
    kinds = {_unit_kind(value.unit) for value in values if value.number is not None}
    return len(kinds) <= 1 and not any((value.text_alone or "")[:1].isdigit() for value in values)


def _unit_kind(unit: str | None) -> str:
    """What a unit counts, less its prefix: `GB/s` and `MB/s` are one kind."""
    return next((kind for kind in ("B/s", "B") if unit is not None and unit.endswith(kind)), unit or "")


def refine_mean(value: Value, maximum: float | None) -> Value:
    """The mean of a throughput with what nvprof knows of it: it computes them in whole 10^6 byte/s.

    `361.442566MB/s` is 379,000,000 byte/s and `0.000000B/s` anything below 10^6, though more digits are printed.
    """
    if value.number is None or value.number == maximum or value.pm is None or not (value.unit or "").endswith("B/s"):
        return value
    factor = size_factor((value.unit or "").removesuffix("/s"), 1024)
    if factor is None or value.pm * factor > _EXACTLY:
        return value
    rest = abs(value.number * factor - round(value.number * factor / _MEAN_STEP) * _MEAN_STEP)
    return value._replace(pm=_MEAN_STEP / factor) if rest <= value.pm * factor else value


def convert_to_unit(value: Value, unit: str | None) -> tuple[float | None, float | None]:
    """The value and its twin in the unit of its row.

    nvprof picks one for each cell (`0.00000B/s  4.0291GB/s  1.2132GB/s`); of what is no such unit there is none.
    """
    if value.number is None or value.unit == unit:
        return value.number, value.pm
    factor = size_factor((value.unit or "").removesuffix("/s"), 1024)
    row_factor = size_factor((unit or "").removesuffix("/s"), 1024)
    if factor is None or row_factor is None or (value.unit or "").endswith("/s") != (unit or "").endswith("/s"):
        return None, None
    ratio = factor / row_factor
    return value.number * ratio, None if value.pm is None else value.pm * ratio


_SHARED: Final = ("block", "rank", "pid", "device", "device_name", "metric", "description", "unit", "text")
_OWN_COLUMNS: Final = (
    "invocations", "min", "min_pm", "max", "max_pm", "avg", "avg_pm", "value", "value_pm", "launch_id",
)  # fmt: skip
_NO_LAUNCH: Final = (None, None, None)
_CORRELATION: Final = re.compile(r"\s+\[\d+\]\Z")


def _metrics_table(stream: Stream) -> Columns:
    return stream.sink.table("metrics", _SHARED, _OWN_COLUMNS, "kernel")


def add_metric(
    stream: Stream, kernel: str, metric: str, description: str | None, calls: int | None, values: list[str]
) -> None:
    """Add a row of a metric or an event over several launches.

    Args:
        stream: Takes the row, and names process and device.
        kernel: The name of the kernel.
        metric: The name of the metric or event.
        description: What nvprof prints about it; None if nothing.
        calls: The number of launches; None if it cannot be read.
        values: Least, greatest and mean, as printed; a fourth, the total of an event, is ignored.
    """
    *range_, mean = [metric_value(v) for v in values[:3]]
    read = [*range_, refine_mean(mean, range_[-1].number if range_ else None)]
    last = read[-1]
    origin = (*stream.origin_values(), stream.device, stream.device_name)
    spread = chain.from_iterable(convert_to_unit(value, last.unit) for value in read)
    shared = (*origin, metric, description, last.unit, last.text_alone, _without_correlation(kernel))
    _metrics_table(stream).append(shared, (calls, *spread, *_NO_LAUNCH))


def add_value(stream: Stream, launch: int | None, kernel: str, metric: str, device: str, value: Value) -> None:
    """Add a row of a metric or an event of one launch.

    Args:
        stream: Takes the row, and names its process.
        launch: The correlation id of the launch; None where none is printed.
        kernel: The name of the kernel.
        metric: The name of the metric or event.
        device: The device as printed: `Tesla V100-SXM2-16GB (0)`, or its ordinal alone.
        value: The value and its unit.
    """
    shared = (*_device_origin(stream, device), metric, None, value.unit, value.text_alone, kernel)
    _metrics_table(stream).append(shared, (*[None] * 7, value.number, value.pm, launch))


def _device_origin(stream: Stream, device: str | None) -> tuple[int | str | None, ...]:
    if device is None:
        return (*stream.origin_values(), stream.device, stream.device_name)
    name, ordinal = split_device(device)
    return (*stream.origin_values(), ordinal, name)


def _without_correlation(kernel: str) -> str:
    return _CORRELATION.sub("", kernel) if kernel.endswith("]") else kernel


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
_COLUMN_GAP = re.compile(r"\s{2,}|\t")
_ROWISH = re.compile(r"\s*\d+\s+[a-z][a-z0-9]*_\w+(?:\s|\Z)|\s{5,}\d+\s{2,}[a-z]\w*\s{2,}\S")
_NAME = re.compile(r"[a-z_]\w*\Z")  # as all of nvprof's: what begins otherwise is a description without its name
KERNEL = re.compile(r"\s*Kernel:\s(.*\S)\s*\Z")
_DEVICE = re.compile(r'(?:==\d+==|={8})?\s*Device "([^"]*)"\s*\Z')
_SIGNATURE = re.compile(r"\s+\S.*\([^()]*\)(?: \[\d+\])?\s*\Z")  # of a kernel whose line lost its "Kernel:"
_MOST_CONTINUATIONS = 8
DAMAGED = "a row of metrics is cut short or damaged"


@lru_cache(16384)
def _is_value(cell: str) -> bool:
    return _VALUES.fullmatch(cell) is not None


class MetricTable:
    """One table of metrics or events being read: devices, in them kernels, in them rows."""

    def __init__(self, stream: Stream, header: re.Match[str], number: int) -> None:
        self._stream = stream
        self._described = header["described"] is not None
        self._values = 3 if header["total"] is None else 4
        self._kernel, stream.kernel = stream.kernel, None
        self._open_name = 0  # continuation lines that the kernel's name may still have
        self._seen: set[str] = set()  # metrics of this kernel
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a device, a kernel or a row."""
        if UNITS_SIGN in text or ("[ " in text and _LISTED.match(text)):
            self._stream.sink.note(UNITS_UNREAD)
            return True
        cells = self._split_cells(text)
        if cells is None:
            return self._take_heading(number, text)
        self.rows += 1
        if self._kernel is None:
            self._stream.sink.fault("a metric without its kernel", number)
            return True
        self._open_name = 0
        calls, name, description, values = cells
        if not are_of_one_kind(values[:3]):
            self._stream.sink.fault(DAMAGED, number)
            return True
        if name in self._seen:
            self._kernel = None
            self._stream.sink.fault("a metric that its kernel already has: the kernel it belongs to is unknown", number)
            return True
        self._seen.add(name)
        add_metric(self._stream, self._kernel, name, description, int(calls), values)
        return True

    def _split_cells(self, text: str) -> tuple[str, str, str | None, list[str]] | None:
        """Invocations, name, description and values of a row."""
        cells = _GAP.split(text.strip())
        first = 3 if self._described else 2
        if len(cells) == first + self._values and cells[0].isdigit() and cells[0].isascii() and _NAME.match(cells[1]):
            values = cells[first:]
            if all(map(_is_value, values)):
                return cells[0], cells[1], cells[2] if self._described else None, values
        match = _ROWS[self._values].match(_WIDE_GAP.sub("  ", text))
        if match is None or not _NAME.match(match["name"]):
            return None
        description = (match["text"] or "").strip() or None
        return match["calls"], match["name"], description, _VALUES.findall(match["values"])

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
        cells = _COLUMN_GAP.split(text.strip())  # one that lost its invocations, or its name
        return len(cells) > self._values and all(map(_VALUES.fullmatch, cells[-self._values :]))

    def _take_rest(self, number: int, text: str) -> bool:
        if self._looks_like_a_row(text):
            self._stream.sink.fault(DAMAGED, number)
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


UNITS_SIGN: Final = " instances)"
UNITS_UNREAD: Final = "not read: the values of single units of a GPU (--aggregate-mode off)"
_LISTED: Final = re.compile(r"\s*\d.*\s\[ +\S")  # a row of them that lost a word
