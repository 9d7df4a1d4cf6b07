"""nvprof's metrics and events: values, the rows that text and CSV share, and the tables as text.

nvprof of CUDA 5.0 named a GPU by its number, and the event behind the values; its traces have a row an event:

        Invocations         Avg         Min         Max  Event Name
    Device 0
        Kernel: axpy(float, float*)
                  4        4000        1000        7000  branch

Of single units of a GPU (--aggregate-mode off) a row has all means, and neither least nor greatest. Each becomes a row,
named like the columns of a trace of them, `branch (0)`:

    4   branch (3 instances)           -           -  [        400        401        402 ]           -
    "Tesla V100 (0)","axpy(float*)",4,"branch (3 instances)",,,"400,401,402",
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from nsw.readers.nvprof.text.state import RowTaker, Stream, cells_of
from nsw.readers.nvprof.text.summaries import name_without_correlation
from nsw.readers.nvprof.vocabulary import Columns, split_device
from nsw.readers.text.quantities import number, parse_integer, size_factor, split_unit

__all__ = [
    "DAMAGED",
    "HEADER",
    "KERNEL",
    "UNITS_NAME",
    "UNITS_SIGN",
    "MetricTable",
    "add_metric",
    "add_units",
    "add_value",
    "are_of_one_kind",
    "event_table",
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
    shared = (*origin, metric, description, last.unit, last.text_alone, name_without_correlation(kernel))
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
            return self._take_units(number, text)
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

    def _take_units(self, number: int, text: str) -> bool:
        """A row of all units of a GPU."""
        if (match := _units_row(text)) is None:
            self._stream.sink.fault(DAMAGED, number)
        elif add_units(self._stream, number, self._kernel, parse_integer(match["calls"]), match):
            self.rows += 1
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
        cells = _GAP.split(text.strip())  # one that lost its invocations, or its name
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


_HEADER: Final = re.compile(r"\s*Invocations\s+Avg\s+Min\s+Max\s+Event Name\s*\Z")
_TRACE: Final = re.compile(r"\s*Device\s+Context\s+Stream\s+Event Name\s+Kernel\s+Values\s*\Z")
_CSV_TRACE: Final = re.compile(r'\s*"Device","Context","Stream","Event Name","Kernel","Values"\s*\Z')
_EVENT_DEVICE: Final = re.compile(r"\s*Device (\d{1,4})\s*\Z")
_KERNEL: Final = re.compile(r"\s*Kernel: (\S.*)")
_EVENT_VALUE: Final = r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|<OVERFLOW>|<OF>"
_EVENT_ROW: Final = re.compile(rf"\s*(\d+)\s+({_EVENT_VALUE})\s+({_EVENT_VALUE})\s+({_EVENT_VALUE})\s+([a-z_]\w*)\s*\Z")
_TRACE_ROW: Final = re.compile(r"\s*\d+\s+\d+\s+\d+\s+\S+\s+\S")
# Two numbers, or a value and a name at the line's end. The blanks behind the value are not given back: they would be
# shared out between the two repeats in every way there is.
_EVENT_ROWISH: Final = re.compile(
    rf"\s*-?(?:\d+\s+){{2,}}|\s*(?:{_EVENT_VALUE})\s++(?:.*\W(?=\w))?+[^\Wa-z_]*+[a-z_]\w*+\s*\Z"
)
_CSV_CELLS: Final = 6
_EVENT_DAMAGED: Final = "a row of events is cut short or damaged"


def event_table(stream: Stream, text: str) -> RowTaker | None:
    """The table of events that a line of titles begins; None for other lines.

    Args:
        stream: Takes the rows, and names process and device.
        text: The line.
    """
    if _HEADER.match(text):
        return _EventTable(stream)
    if _CSV_TRACE.match(text):
        return _EventTrace(stream)
    if _TRACE.match(text):
        stream.sink.note(
            "not read: a trace of events as text, which cuts names to ten characters (--csv keeps them whole)"
        )
        return _CutTrace()
    return None


class _EventTable:
    """One table of events being read: devices, in them kernels, in them rows."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._kernel: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Read a device, a kernel or a row."""
        if (match := _EVENT_ROW.match(text)) is not None and self._kernel is not None:
            calls, mean, minimum, maximum, name = match.groups()
            add_metric(self._stream, self._kernel, name, None, parse_integer(calls), [minimum, maximum, mean])
            return True
        if (device := _EVENT_DEVICE.match(text)) is not None:
            self._stream.device, self._stream.device_name = int(device[1]), None
            self._kernel = None
            return True
        if (kernel := _KERNEL.match(text)) is not None:
            self._kernel = kernel[1].rstrip()
            return True
        if text[:1] == "=" or not _EVENT_ROWISH.match(text):
            return False
        self._stream.sink.fault(_EVENT_DAMAGED, number)
        return True


class _EventTrace:
    """Launches and their events, as CSV."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def take(self, number: int, text: str) -> bool:
        """Read a row."""
        if text[:1] == "=" or text.count(",") < _CSV_CELLS - 2:
            return False
        cells = cells_of(text.strip(), ",")
        device = parse_integer(cells[0]) if cells else None
        value = metric_value(cells[-1]) if len(cells) == _CSV_CELLS else None
        if device is None or value is None or value.number is None or not cells[3] or not cells[4]:
            self._stream.sink.fault(_EVENT_DAMAGED, number)
            return True
        add_value(self._stream, None, cells[4], cells[3], str(device), value)
        return True


class _CutTrace:
    """The same as text, passed over."""

    def take(self, _: int, text: str) -> bool:
        """Whether the line is one of its rows."""
        return _TRACE_ROW.match(text) is not None


UNITS_SIGN: Final = " instances)"
UNITS_NAME: Final = r"(?P<name>[a-z_]\w*) \((?P<units>\d{1,6}) instances\)"
_INSTANCE_VALUE: Final = re.compile(
    r"[A-Z][a-z]+ \(\d+\)|[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)(?:%|[KMGT]?B(?:/s)?)?|<OVERFLOW>|<INVALID>"
)
_ROW_HEAD: Final = re.compile(rf"\s*(?P<calls>\d+)\s+{UNITS_NAME}\s+")
_ROW_TAIL: Final = re.compile(r"\[(?P<values>[^\[\]]*)\](?:\s+-)?\s*\Z")
_LISTED: Final = re.compile(r"\s*\d.*\s\[ +\S")  # one that lost a word
_BETWEEN: Final = re.compile(r'[\s,"]*')


def _units_row(text: str) -> Mapping[str, str] | None:
    """The parts of `1 name (4 instances)  What it is  -  -  [ 1 2 3 4 ]`."""
    head, tail = _ROW_HEAD.match(text), _ROW_TAIL.match(text, max(text.rfind("["), 0))
    if head is None or tail is None or not text[: tail.start()][-1:].isspace():
        return None
    parts = text[head.end() : tail.start()].rsplit(None, 2)  # a description, and no least and no most
    if parts[-2:] != ["-", "-"]:
        return None
    return {**head.groupdict(), **tail.groupdict(), "text": "".join(parts[:-2])}


def add_units(stream: Stream, number: int, kernel: str | None, calls: int | None, fields: Mapping[str, str]) -> bool:
    """Add a row per hardware unit from a line that lists the values of all units; returns whether it could be read.

    A line that cannot be read is reported.

    Args:
        stream: Takes the rows, and names process and device.
        number: The number of the line, from 1.
        kernel: The name of the kernel; None where the line is of no kernel.
        calls: The number of launches; None if it cannot be read.
        fields: The parts of the line: name, text (the description), units (their number) and values.
    """
    values = _INSTANCE_VALUE.findall(fields["values"])
    between = _INSTANCE_VALUE.sub("", fields["values"])
    if kernel is None or calls is None or len(values) != int(fields["units"]) or not _BETWEEN.fullmatch(between):
        stream.sink.fault(DAMAGED, number)
        return False
    for unit, value in enumerate(values):
        name = f"{fields['name']} ({unit})"
        add_metric(stream, kernel, name, fields["text"] or None, calls, ["-", "-", value])
    return True
