"""nvprof's traces (--print-gpu-trace, --print-api-trace): the columns of text and CSV, read the same way.

The title line says which columns there are: 15 in CUDA 6, more since; with --metrics each metric is a column of its
own, with --print-api-trace the calls of the CUDA API are between the operations of the GPU. A trace of OpenACC
(--print-openacc-trace) does not name the threads of its events: they are summed in full, as under nvprof's title
`OpenACC (incl)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from nsw.readers.nvprof.text.counters import add_value, metric_value
from nsw.readers.nvprof.text.summaries import Figures, add_openacc
from nsw.readers.nvprof.vocabulary import SAMPLES, Columns, Sampled, split_device, whole_ns
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import TIME_UNITS, parse_integer, rate, size, size_factor
from nsw.tables.names import api_name_without_version, gpu_operation_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.nvprof.text.state import Sink, Stream

__all__ = ["COUNTER_HEADER", "HEADER", "TraceColumns", "TraceTable"]


Time: TypeAlias = "tuple[int | None, float | None]"  # ns, and half of its last digit; None: exact
_OPENACC: Final = re.compile(r"acc_[a-z_]+(?:\[[\w ]+\])?(?:@|\Z)")
_MARKS: Final = ("[Range start]", "[Range end]", "[Marker]")


def is_aside(name: str) -> bool:
    """Whether the name of a row of a trace is of one of these."""
    if name[:1] == "[":
        return name in SAMPLES or name.startswith(_MARKS)
    return name.startswith("acc_") and _OPENACC.match(name) is not None


@dataclass(slots=True)
class _Sum:
    calls: int
    total: float
    half: float
    minimum: Time
    maximum: Time

    def figures(self, overall: float) -> Figures:
        """Calls, share of the whole, total, mean, least and greatest with their twins."""
        share = 100.0 * self.total / overall if overall else None
        total = (float(self.total), self.half or None)
        mean = (self.total / self.calls, self.half / self.calls or None)
        return (self.calls, share, None, *total, *mean, *self.minimum, *self.maximum)


class Asides:
    """What of one report's traces is of these kinds, summed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._openacc: dict[tuple[tuple[str, Any], ...], dict[str, _Sum]] = {}
        self._sampled = Sampled()

    def add(self, origin: dict[str, Any], name: str, took: Time, device: int | None, sample: str) -> bool:
        """Sum one row of a trace; returns whether its cells fit its name.

        Args:
            origin: Block, rank and process id of the row.
            name: The name of the row, for which `is_aside` holds.
            took: The duration (ns) and its uncertainty.
            device: The device of a sample; None where it is not known.
            sample: The cell of a sample: values between strokes.
        """
        if name.startswith(_MARKS):
            return True  # a range begins or ends: there is no table of single ranges
        if name in SAMPLES:
            if device is None:
                self._sink.note("samples of clocks and temperatures in a trace: the GPU is not named")
            return self._sampled.add({**origin, "device": device}, name, sample)
        if took[0] is None:
            return False
        sums = self._openacc.setdefault(tuple(origin.items()), {})
        entry = sums.get(name)
        if entry is None:
            sums[name] = _Sum(1, took[0], took[1] or 0.0, took, took)
            return True
        entry.calls += 1
        entry.total += took[0]
        entry.half += took[1] or 0.0
        entry.minimum, entry.maximum = (
            min(entry.minimum, took, key=_nanoseconds),
            max(entry.maximum, took, key=_nanoseconds),
        )
        return True

    def __call__(self) -> None:
        """Hand them over: the report is read."""
        for fact in self._sampled.fact_rows():
            self._sink.add("facts", fact)
        for origin, sums in self._openacc.items():
            origin_values = tuple(value for _, value in origin)
            if ("openacc", origin_values) in self._sink.summed:
                continue  # the same report has nvprof's own summary
            self._sink.note("OpenACC events of a trace are summed in full: each with those that ran within it")
            overall = sum(s.total for s in sums.values())
            for name, event_sum in sorted(sums.items(), key=lambda item: (-item[1].total, item[0])):
                add_openacc(self._sink, origin_values, name, event_sum.figures(overall))


def asides_of(sink: Sink) -> Asides:
    """Those of a report, which has one of them."""
    asides = next((m for m in sink.at_end if isinstance(m, Asides)), None)
    if asides is None:
        asides = Asides(sink)
        sink.at_end.append(asides)
    return asides


def _nanoseconds(time: Time) -> int:
    return time[0] or 0


_REMEMBERED: Final = 8192  # different rows, less their times, whose reading is kept
_GRID = re.compile(r"\(?(\d{1,10})[ ,]+(\d{1,10})[ ,]+(\d{1,10})\)?\Z")
_CORRELATION = re.compile(r"(.*?)(?<!\s)\s++\[(\d{1,18})\]\Z", re.DOTALL)  # each row of blanks is tried once
_CALL = re.compile(r"(cu(?:da)?[A-Z\d]\w*)(?:\s+\((.*)\))?\s*\Z", re.DOTALL)
_METRIC = re.compile(r"[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)*(?:\s*\(.*\))?\Z")

# Title -> the column it feeds; text and CSV, all versions.
COLUMN_OF_TITLE: Final = meaning_by_word("nvprof-trace")
_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
VARYING: Final = frozenset(("start", "duration", "correlation", "bytes", "bytes_per_s", "unified"))
_OWN_COLUMNS = ("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm", "correlation")
_API_COLUMNS = ("block", "rank", "pid")
_GPU_COLUMNS = (
    *("block", "rank", "pid", "device", "device_name", "kind", "context", "stream", *_DIMENSIONS, "registers"),
    *("static_smem_bytes", "static_smem_bytes_pm", "dynamic_smem_bytes", "dynamic_smem_bytes_pm"),
    *("src_memory", "dst_memory"),
)
_MOVED = ("bytes", "bytes_pm", "bytes_per_s", "bytes_per_s_pm")
_NO_VALUE: Final = (None, None)
Pair: TypeAlias = "tuple[float | None, float | None]"  # a value and its twin
_took = lru_cache(_REMEMBERED)(whole_ns)  # durations repeat, starts do not


class _Alike(NamedTuple):
    """What rows have in common that differ in times, ids and sizes alone."""

    kind: Literal["call", "work"]  # of the CUDA API, of the GPU
    shared: tuple[Any, ...]
    is_copy: bool = False  # so that what Unified Memory moved is its size


class TraceColumns:
    """Turns the cells of a row, as many as there are titles, into rows of the tables."""

    def __init__(self, stream: Stream, titles: Sequence[str], units: Sequence[str] = ()) -> None:
        self._stream = stream
        self._at: dict[str, int] = {}
        self._metrics: list[tuple[int, str]] = []
        for index, title in enumerate(titles):
            column = COLUMN_OF_TITLE.get(title)
            if column is None and _METRIC.match(title):
                self._metrics.append((index, title))
            elif column:
                self._at.setdefault(column, index)
        self.width = len(titles)
        self._units: list[str | None] = [u.strip() or None for u in units] + [None] * (self.width - len(units))
        columns = [c for c in self._at if c not in {*VARYING, "name"}]
        self._positions = {column: position for position, column in enumerate(columns)}
        self._rest = _cells_getter([self._at[c] for c in columns])
        self._operation = lru_cache(_REMEMBERED)(self._read_operation)
        self._tables: dict[str, Columns] = {}
        if "start" in self._at:
            self._tables["work"] = stream.sink.table("gpu_trace", _GPU_COLUMNS, (*_OWN_COLUMNS, *_MOVED))
            self._tables["call"] = stream.sink.table("api_trace", _API_COLUMNS, _OWN_COLUMNS)

    def add(self, cells: Sequence[str]) -> bool:
        """One row; whether its cells are what the titles say."""
        name, start = self._cell_of(cells, "name"), self._read_cell(whole_ns, cells, "start")
        if not name or (start[0] is None and "start" in self._at):
            return False
        if is_aside(name):
            took, device = self._read_cell(_took, cells, "duration"), split_device(self._cell_of(cells, "device"))[1]
            return asides_of(self._stream.sink).add(
                self._stream.origin(), name, took, device, self._cell_of(cells, "system")
            )
        alike, id_in_name = self._shared_cells(cells, name)
        printed = parse_integer(self._cell_of(cells, "correlation"))
        correlation = id_in_name if printed is None or (id_in_name is not None and alike.kind == "work") else printed
        if (table := self._tables.get(alike.kind)) is not None:
            moved: tuple[float | None, ...] = ()
            if alike.kind == "work":
                is_unified = alike.is_copy and self._cell_of(
                    cells, "unified"
                )  # of other events it is an address, a count
                size_column = "unified" if is_unified else "bytes"
                moved = self._read_cell(_byte_size, cells, size_column) + self._read_cell(
                    _byte_rate, cells, "bytes_per_s"
                )
            own_cells = (*start, *self._read_cell(_took, cells, "duration"), correlation, *moved)
            table.append((*self._stream.origin_values(), *alike.shared), own_cells)
        if self._metrics and alike.kind == "work":
            self._add_metrics(cells, alike.shared[-1], correlation)
        return True

    def _unit_of(self, column: str) -> str | None:
        return self._units[self._at[column]] if column in self._at else None

    def _cell_of(self, cells: Sequence[str], column: str) -> str:
        at = self._at.get(column)
        return "" if at is None else cells[at].strip()

    def _read_cell(
        self, read: Callable[[str, str | None], tuple[Any, Any]], cells: Sequence[str], column: str
    ) -> tuple[Any, Any]:
        """A cell in the unit of its column."""
        at = self._at.get(column)
        return _NO_VALUE if at is None else read(cells[at].strip(), self._units[at])

    def _shared_cells(self, cells: Sequence[str], name: str) -> tuple[_Alike, int | None]:
        """What the row shares with others, and the id in its name."""
        call = _CALL.match(name) if name.startswith("cu") and self._cell_of(cells, "device") in {"", "-"} else None
        if call is not None:
            match = _CORRELATION.match(call[2] or "")
            return _Alike("call", (api_name_without_version(call[1]),)), match and int(match[2])
        if name.endswith("]") and (match := _CORRELATION.match(name)):
            return _Alike("work", self._operation(match[1], self._rest(cells)), "Memcpy" in match[1]), int(match[2])
        return _Alike("work", self._operation(name, self._rest(cells)), "Memcpy" in name), None

    def _read_operation(self, name: str, rest: tuple[str, ...]) -> tuple[Any, ...]:
        """What rows with these cells share, from the device on."""
        cells = {column: rest[position].strip() for column, position in self._positions.items()}
        get = cells.get
        device_name, device = split_device(get("device", ""))
        return (
            device,
            device_name,
            gpu_operation_kind(name),
            parse_integer(get("context", "")),
            parse_integer(get("stream", "")),
            *_grid_and_block(cells),
            parse_integer(get("registers", "")),
            *self._size_pair(cells, "static_smem"),
            *self._size_pair(cells, "dynamic_smem"),
            memory_kind(get("src_memory", "")),
            memory_kind(get("dst_memory", "")),
            name,
        )

    def _size_pair(self, cells: dict[str, str], column: str) -> Pair:
        return _byte_size(cells.get(column, ""), self._unit_of(column))

    def _add_metrics(self, cells: Sequence[str], name: str, correlation: int | None) -> None:
        for at, metric in self._metrics:
            printed = cells[at].strip()
            if printed not in {"", "-"}:
                value = metric_value(cells[at] + ((self._units[at] or "") if printed[-1:].isdigit() else ""))
                add_value(self._stream, correlation, name, metric, self._cell_of(cells, "device"), value)


def _byte_size(text: str, unit: str | None) -> Pair:
    return size(text, unit, base=1024) or _NO_VALUE


def _byte_rate(text: str, unit: str | None) -> Pair:
    return rate(text, unit, base=1024) or _NO_VALUE


def _cells_getter(positions: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The cells at these places as a tuple."""
    if len(positions) < 2:
        return lambda cells: tuple(cells[p] for p in positions)
    return itemgetter(*positions)


def _grid_and_block(cells: dict[str, str]) -> tuple[int | None, ...]:
    if "grid" not in cells and "block" not in cells:
        return tuple(parse_integer(cells.get(d, "")) for d in _DIMENSIONS)
    matches = [_GRID.match(cells.get(dimension, "")) for dimension in ("grid", "block")]
    return tuple(n for f in matches for n in (map(int, f.groups()) if f else (None, None, None)))


def memory_kind(text: str) -> str | None:
    """Pageable -> pageable; "-" -> None."""
    return text.lower() if text not in {"", "-"} else None


HEADER = re.compile(r"\s*Start\s+Duration\s.*\bName(?:\s+Correlation_ID)?\s*\Z")
COUNTER_HEADER = re.compile(r"\s*Device\s+Context\s+Stream\s+Kernel(?:\s+\S+)+\s*\Z")
_TITLE = re.compile(
    r"Parent ID|Parent Block [XYZ]|Parent Block|Grid Size|Block Size|Src Dev|Src Ctx|Dst Dev|Dst Ctx"
    r"|Unified Memory|Virtual Address|Secondary Address|[a-z]\w* \(\d+\)|\S+"
)
_GAP = re.compile(r"\s{2,}|\t")
_NUMBER = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?\Z|PC 0x")
_WORD = re.compile(r"\S+")
_MEASURED = ("start", "duration", "static_smem", "dynamic_smem", "bytes", "bytes_per_s", "unified")
_OF_CUDA_5 = re.compile(r"Throughput {4}Device {3}Context")  # where a GPU is its number
# By column: what a cell must be, unless it is "-" or empty: another means that a cell, or a title, is missing.
_CELLS = {column: re.compile(pattern) for column, pattern in meaning_by_word("nvprof-trace cells").items()}
# By column, or a title without one: what a cell looks like in rows whose columns run together.
_SHAPES = meaning_by_word("nvprof-trace shapes")
_LONGEST_SHAPE = 4096  # characters
_LOOKS_LIKE_A_START = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[num]?s(?:\s|\Z)")
_FIRSTS = frozenset("0123456789.,+-'\u00a0\u202f")  # how a number begins


def units_of(header: str, line: str) -> list[str] | None:
    """The unit of each title, "" for none, of the line below the titles; None when it is no line of units.

    A unit ends below the last letter of its title; where blanks were lost, as many units as titles that may have
    one are in their order.
    """
    words = [(m[0], m.end()) for m in _WORD.finditer(line)]
    if not words or not all(is_unit(word) for word, _ in words):
        return None
    titles = [(m[0], m.end()) for m in _TITLE.finditer(header)]
    at = {end: word for word, end in words}
    if len(at.keys() & {end for _, end in titles}) == len(words):
        return [at.get(end, "") for _, end in titles]
    measured = [i for i, (title, _) in enumerate(titles) if COLUMN_OF_TITLE.get(title) in _MEASURED]
    if len(measured) != len(words):
        return None
    below = dict(zip(measured, (word for word, _ in words), strict=True))
    return [below.get(i, "") for i in range(len(titles))]


def is_unit(word: str) -> bool:
    """Whether it is a unit of time, of size or of a rate."""
    return word in TIME_UNITS or size_factor(word.removesuffix("/s"), 1024) is not None


class TraceTable:
    """A trace being read from text: cells between two blanks or more, by shape where they run together."""

    def __init__(self, stream: Stream, header: str, number: int) -> None:
        titles = _TITLE.findall(header)  # two words where nvprof has two
        self._columns = TraceColumns(stream, titles)
        self._stream, self._header = stream, header
        self._has_units = False  # below the titles (--normalized-time-unit), and none in the rows
        self._titles = titles
        checks = _CELLS | {"device": _CELLS["context"]} if _OF_CUDA_5.search(header) else _CELLS
        self._checks = [checks.get(COLUMN_OF_TITLE.get(t) or "") for t in titles]
        self._timed = titles[:1] == ["Start"]
        self._shape: re.Pattern[str] | None = None
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row, or the line of units."""
        if not self.rows and not self._has_units and (units := units_of(self._header, text)) is not None:
            self._columns = TraceColumns(self._stream, self._titles, units)
            self._checks = [_NUMBER if unit else check for unit, check in zip(units, self._checks, strict=True)]
            self._has_units = True
            return True
        text = text.strip()
        if not text or text[0] == "=" or (self._timed and text[0] not in _FIRSTS):
            return False
        return self._take_cells(number, text)

    def _take_cells(self, number: int, text: str) -> bool:
        columns = self._columns
        cells = _GAP.split(text, columns.width - 1)
        if len(cells) == columns.width and self._cells_fit_titles(cells) and columns.add(cells):
            self.rows += 1
            return True
        if not text[0].isdigit():
            return False
        if self._shape is None:
            shapes = [_SHAPES.get(COLUMN_OF_TITLE.get(t) or t, r"\S+") for t in self._titles]
            self._shape = re.compile(r"\s+".join(f"({s})" for s in shapes) + r"\Z")
        match = self._shape.match(text[:_LONGEST_SHAPE])
        shaped_cells = list(match.groups()) if match else None
        if shaped_cells is not None and self._cells_fit_titles(shaped_cells) and columns.add(shaped_cells):
            self.rows += 1
            return True
        if _LOOKS_LIKE_A_START.match(text) or abs(len(cells) - columns.width) <= 1:
            self._stream.sink.fault("a row of a trace is cut short or damaged", number)
            return True
        return False

    def _cells_fit_titles(self, cells: Sequence[str]) -> bool:
        """Whether every cell is what its title says."""
        for check, cell in zip(self._checks, cells, strict=True):
            if check is not None and cell not in {"", "-"} and check.match(cell) is None:
                return False
        return True
