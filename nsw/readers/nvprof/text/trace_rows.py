"""The cells of nvprof's traces -> rows of gpu_trace, api_trace and metrics; the same for text and CSV."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from nsw.readers.nvprof.devices import split_device
from nsw.readers.nvprof.text.metric_rows import add_value
from nsw.readers.nvprof.text.numbers import (
    OddRowsError,
    counts,
    present,
    rates,
    sizes,
    spread,
    where_present,
    whole_times,
)
from nsw.readers.nvprof.text.other_trace_rows import asides_of, is_aside
from nsw.readers.nvprof.text.times import whole_ns
from nsw.readers.nvprof.text.values import metric_value
from nsw.readers.text.quantities import rate, size, whole
from nsw.tables.names import api_name, gpu_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.readers.nvprof.table_builder import Columns
    from nsw.readers.nvprof.text.state import Sink, Stream

_REMEMBERED: Final = 8192  # different rows, less their times, whose reading is kept
_GRID = re.compile(r"\(?(\d{1,10})[ ,]+(\d{1,10})[ ,]+(\d{1,10})\)?\Z")
_CORRELATION = re.compile(r"(.*?)(?<!\s)\s++\[(\d{1,18})\]\Z", re.DOTALL)  # each row of blanks is tried once
_CALL = re.compile(r"(cu(?:da)?[A-Z\d]\w*)(?:\s+\((.*)\))?\s*\Z", re.DOTALL)
_METRIC = re.compile(r"[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)*(?:\s*\(.*\))?\Z")

# Title -> the column it feeds; text and CSV, all versions.
KNOWN: Final = {
    "Start": "start",
    "Duration": "duration",
    "Grid Size": "grid",
    "Block Size": "block",
    "Grid X": "grid_x",
    "Grid Y": "grid_y",
    "Grid Z": "grid_z",
    "Block X": "block_x",
    "Block Y": "block_y",
    "Block Z": "block_z",
    "Regs*": "registers",
    "Regs": "registers",
    "Registers Per Thread": "registers",
    "SSMem*": "static_smem",
    "SSMem": "static_smem",
    "Static SMem": "static_smem",
    "DSMem*": "dynamic_smem",
    "DSMem": "dynamic_smem",
    "Dynamic SMem": "dynamic_smem",
    "Size": "bytes",
    "Throughput": "bytes_per_s",
    "SrcMemType": "src_memory",
    "DstMemType": "dst_memory",
    "Device": "device",
    "Context": "context",
    "Stream": "stream",
    "Name": "name",
    "Kernel": "name",
    "Correlation_ID": "correlation",
    "Unified Memory": "unified",
    "System": "system",
    "ID": "",
    "Parent ID": "",
    "Parent Block": "",
    "Virtual Address": "",
    "Secondary Address": "",
    "Src Dev": "",
    "Src Ctx": "",
    "Dst Dev": "",
    "Dst Ctx": "",
}
_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
VARYING: Final = frozenset(("start", "duration", "correlation", "bytes", "bytes_per_s", "unified"))
_NEEDED: Final = frozenset(("start", "duration", "name"))
_OWN = ("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm", "correlation")
_API_COLUMNS = ("block", "rank", "pid")
_GPU_COLUMNS = (
    *("block", "rank", "pid", "device", "device_name", "kind", "context", "stream", *_DIMENSIONS, "registers"),
    *("static_smem_bytes", "static_smem_bytes_pm", "dynamic_smem_bytes", "dynamic_smem_bytes_pm"),
    *("src_memory", "dst_memory"),
)
_MOVED = ("bytes", "bytes_pm", "bytes_per_s", "bytes_per_s_pm")
_NOTHING: Final = (None, None)
Pair: TypeAlias = "tuple[float | None, float | None]"  # a value and its twin
_took = lru_cache(_REMEMBERED)(whole_ns)  # durations repeat, starts do not


class _Alike(NamedTuple):
    """What rows have in common that differ in times, ids and sizes alone."""

    kind: Literal["call", "work"]  # of the CUDA API, of the GPU
    shared: tuple[Any, ...]
    is_copy: bool = False  # so that what Unified Memory moved is its size


class TraceColumns:
    """Turns the cells of a row, as many as there are titles, into rows of the tables."""

    def __init__(self, sink: Sink, stream: Stream, titles: Sequence[str], units: Sequence[str] = ()) -> None:
        self._sink = sink
        self._stream = stream
        self._at: dict[str, int] = {}
        self._metrics: list[tuple[int, str]] = []
        for index, title in enumerate(titles):
            column = KNOWN.get(title)
            if column is None and _METRIC.match(title):
                self._metrics.append((index, title))
            elif column:
                self._at.setdefault(column, index)
        self.width = len(titles)
        self._units: list[str | None] = [u.strip() or None for u in units] + [None] * (self.width - len(units))
        known = [column for title in titles if (column := KNOWN.get(title))]
        self._is_plain = not self._metrics and len(known) == len(set(known)) and set(known) >= _NEEDED
        columns = [c for c in self._at if c not in {*VARYING, "name"}]
        self._places = {column: place for place, column in enumerate(columns)}
        self._rest = _getter([self._at[c] for c in columns])
        self._operation = lru_cache(_REMEMBERED)(self._read_operation)
        self._known: dict[tuple[str, ...], _Alike] = {}
        self._tables: dict[str, Columns] = {}
        if "start" in self._at:
            self._tables["work"] = sink.table("gpu_trace", _GPU_COLUMNS, (*_OWN, *_MOVED))
            self._tables["call"] = sink.table("api_trace", _API_COLUMNS, _OWN)

    def add(self, cells: Sequence[str]) -> bool:
        """One row; whether its cells are what the titles say."""
        name, start = self._cell(cells, "name"), self._read(whole_ns, cells, "start")
        if not name or (start[0] is None and "start" in self._at):
            return False
        if is_aside(name):
            took, device = self._read(_took, cells, "duration"), split_device(self._cell(cells, "device"))[1]
            return asides_of(self._sink).add(self._stream.origin(), name, took, device, self._cell(cells, "system"))
        alike, named = self._alike(cells, name)
        printed = whole(self._cell(cells, "correlation"))
        correlation = named if printed is None or (named is not None and alike.kind == "work") else printed
        if (table := self._tables.get(alike.kind)) is not None:
            moved: tuple[float | None, ...] = ()
            if alike.kind == "work":
                is_unified = alike.is_copy and self._cell(cells, "unified")  # of other events it is an address, a count
                moved = (
                    *self._read(_byte_size, cells, "unified" if is_unified else "bytes"),
                    *self._read(_byte_rate, cells, "bytes_per_s"),
                )
            own = (*start, *self._read(_took, cells, "duration"), correlation, *moved)
            table.append((*self._stream.where(), *alike.shared), own)
        if self._metrics and alike.kind == "work":
            self._add_metrics(cells, alike.shared[-1], correlation)
        return True

    def add_all(self, columns: Sequence[Sequence[str]], fits: Callable[[Sequence[str]], bool] | None = None) -> None:
        """Rows whose times, ids and sizes are plain: what else they hold is read once of those that are alike.

        Args:
            columns: The cells of each title, all as many.
            fits: Whether the cells of a row are what their titles say; None: they are known to be.

        Raises:
            OddRowsError: Nothing was added, since not all are plain.
        """
        if not self._is_plain:
            raise OddRowsError
        at, took_at = self._at["start"], self._at["duration"]
        start, took = (
            whole_times(columns[at], self._units[at]),
            where_present(whole_times, columns[took_at], self._units[took_at]),
        )
        printed_names = list(map(str.strip, columns[self._at["name"]]))
        less = {name: less_id(name) for name in set(printed_names)}
        names, named = zip(*map(less.__getitem__, printed_names), strict=True)
        alike, which = self._sorted(columns, names, named, fits)
        kinds = {a.kind for a in alike}
        column = columns[self._at["correlation"]] if "correlation" in self._at else []
        printed = spread(column, counts(present(column))) if column else named
        ids = [
            other if id_ is None or (other is not None and alike[code].kind == "work") else id_
            for id_, other, code in zip(printed, named, which, strict=True)
        ]
        own: list[Sequence[Any]] = [*start, *took, ids]
        moved = self._moved(columns, [alike[code].is_copy for code in which]) if "work" in kinds else ()
        for kind in kinds & self._tables.keys():
            rows = [*own, *moved] if kind == "work" else own
            self._extend(kind, alike, which, rows)

    def _sorted(
        self,
        columns: Sequence[Sequence[str]],
        names: Sequence[str],
        named: Sequence[int | None],
        fits: Callable[[Sequence[str]], bool] | None,
    ) -> tuple[list[_Alike], list[int]]:
        """What rows have in common, and of each row which of these; `names` are less their ids, which are `named`."""
        codes: dict[tuple[str, ...], int] = {}
        which = [codes.setdefault(k, len(codes)) for k in zip(*self._rest(columns), names, strict=True)]
        firsts = dict(zip(reversed(which), range(len(which) - 1, -1, -1), strict=True))  # the row of each
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        for key, code in codes.items():
            if key not in self._known:
                row = firsts[code]
                cells = [column[row] for column in columns]
                name = self._cell(cells, "name")
                alike, id_ = self._alike(cells, name)
                if not name or id_ != named[row] or is_aside(name) or (fits and not fits(cells)):
                    raise OddRowsError
                self._known[key] = alike
        return [self._known[key] for key in codes], which

    def _moved(self, columns: Sequence[Sequence[str]], are_copies: Sequence[bool]) -> Iterable[Sequence[float | None]]:
        """Sizes and rates with their twins."""
        blank = [""] * len(are_copies)

        def printed(column: str) -> Sequence[str]:
            return list(map(str.strip, columns[self._at[column]])) if column in self._at else blank

        moved: tuple[list[Any], ...] = where_present(sizes, printed("bytes"), self._unit("bytes"))
        if "unified" in self._at and any(are_copies):  # of other events it is an address, a count
            unified = [cell if is_copy else "" for cell, is_copy in zip(printed("unified"), are_copies, strict=True)]
            pairs = zip(moved, where_present(sizes, unified, self._unit("unified")), strict=True)
            moved = tuple(
                [other if there else own for own, other, there in zip(*pair, unified, strict=True)] for pair in pairs
            )
        return (*moved, *where_present(rates, printed("bytes_per_s"), self._unit("bytes_per_s")))

    def _unit(self, column: str) -> str | None:
        return self._units[self._at[column]] if column in self._at else None

    def _extend(self, kind: str, alike: Sequence[_Alike], which: Sequence[int], own: Sequence[Sequence[Any]]) -> None:
        """Put the rows of one kind into its table."""
        where = self._stream.where()
        shared = [(*where, *a.shared) for a in alike if a.kind == kind]
        if len(shared) < len(alike):
            of_kind = [a.kind == kind for a in alike]
            chosen = [of_kind[code] for code in which]
            places = list(accumulate(of_kind, initial=0))
            which = [places[code] for code in compress(which, chosen)]
            own = [list(compress(column, chosen)) for column in own]
        self._tables[kind].extend(shared, which, own)

    def _cell(self, cells: Sequence[str], column: str) -> str:
        at = self._at.get(column)
        return "" if at is None else cells[at].strip()

    def _read(
        self, read: Callable[[str, str | None], tuple[Any, Any]], cells: Sequence[str], column: str
    ) -> tuple[Any, Any]:
        """A cell in the unit of its column."""
        at = self._at.get(column)
        return _NOTHING if at is None else read(cells[at].strip(), self._units[at])

    def _alike(self, cells: Sequence[str], name: str) -> tuple[_Alike, int | None]:
        """What the row shares with others, and the id in its name."""
        call = _CALL.match(name) if name.startswith("cu") and self._cell(cells, "device") in {"", "-"} else None
        if call is not None:
            found = _CORRELATION.match(call[2] or "")
            return _Alike("call", (api_name(call[1]),)), found and int(found[2])
        if name.endswith("]") and (found := _CORRELATION.match(name)):
            return _Alike("work", self._operation(found[1], self._rest(cells)), "Memcpy" in found[1]), int(found[2])
        return _Alike("work", self._operation(name, self._rest(cells)), "Memcpy" in name), None

    def _read_operation(self, name: str, rest: tuple[str, ...]) -> tuple[Any, ...]:
        """What rows with these cells share, from the device on."""
        cells = {column: rest[place].strip() for column, place in self._places.items()}
        get = cells.get
        device_name, device = split_device(get("device", ""))
        return (
            device, device_name, gpu_kind(name), whole(get("context", "")), whole(get("stream", "")),
            *_dimensions(cells), whole(get("registers", "")),
            *self._size(cells, "static_smem"), *self._size(cells, "dynamic_smem"),
            memory(get("src_memory", "")), memory(get("dst_memory", "")), name,
        )  # fmt: skip

    def _size(self, cells: dict[str, str], column: str) -> Pair:
        return _byte_size(cells.get(column, ""), self._unit(column))

    def _add_metrics(self, cells: Sequence[str], name: str, correlation: int | None) -> None:
        for at, metric in self._metrics:
            printed = cells[at].strip()
            if printed not in {"", "-"}:
                value = metric_value(cells[at] + ((self._units[at] or "") if printed[-1:].isdigit() else ""))
                add_value(self._sink, self._stream, correlation, name, metric, self._cell(cells, "device"), value)


def _byte_size(text: str, unit: str | None) -> Pair:
    return size(text, unit, base=1024) or _NOTHING


def _byte_rate(text: str, unit: str | None) -> Pair:
    return rate(text, unit, base=1024) or _NOTHING


def _getter(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The cells at these places as a tuple."""
    if len(places) < 2:
        return lambda cells: tuple(cells[p] for p in places)
    return itemgetter(*places)


def _dimensions(cells: dict[str, str]) -> tuple[int | None, ...]:
    if "grid" not in cells and "block" not in cells:
        return tuple(whole(cells.get(d, "")) for d in _DIMENSIONS)
    found = [_GRID.match(cells.get(which, "")) for which in ("grid", "block")]
    return tuple(n for f in found for n in (map(int, f.groups()) if f else (None, None, None)))


def memory(text: str) -> str | None:
    """Pageable -> pageable; "-" -> None."""
    return text.lower() if text not in {"", "-"} else None


def less_id(text: str) -> tuple[str, int | None]:
    r"""`kernel(int) [107]` and `cudaLaunch (kernel(int) [107])` less the id, and the id.

    A `\n`, which no line has, stands for it: a name that never had an id is another.
    """
    end = len(text) - text.endswith("])")
    if text[end - 1 : end] == "]":
        at = text.rfind(" [", 0, end)
        digits = text[at + 2 : end - 1]
        if at > 0 and len(digits) <= 18 and digits.isascii() and digits.isdigit():
            return f"{text[:at]}\n{text[end:]}", int(digits)
    return text, None
