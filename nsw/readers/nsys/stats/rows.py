"""Rows of the schema out of the tables of `nsys stats`: statistics, traces, and traces that are added up.

Traces may have millions of rows: they are read a column at a time. Those that nsw has no trace for are added up to the
summary that they are the events of: NVTX push/pop ranges, the GPU work of ranges, MPI calls, page faults by
instruction. Where times were printed in another unit than ns their half-widths are known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from nsw.readers.nsys import size_is_of_sent_bytes
from nsw.readers.nsys.stats.reports import Kind, Marks, nvtx_style, openacc_kind, parse_header, title_unit
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import TIME_UNITS, Quantity, size_factor
from nsw.readers.timeline.statistics import duration_statistics, with_shares
from nsw.tables import Row, to_arrow
from nsw.tables.names import api_name_without_version, gpu_operation_kind, name_columns_by_printed_name

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.readers.nsys.stats.grids import Grid

_COUNTS = ("num calls", "calls", "instances", "count", "operations", "range instances")
_STATISTICS = ("avg", "med", "min", "max", "stddev")
_LONG = 1000  # rows
_DEVICE = re.compile(r"(.*?) ?\((\d{1,9})\)")
_IDS = meaning_by_word("nsys-trace ids")
_BYTES = meaning_by_word("nsys-trace sizes")
_MEMORY = {"srcmemkd": "src_memory", "dstmemkd": "dst_memory"}
_EXTENTS = {"gridxyz": "grid", "blockxyz": "block"}

V = TypeVar("V")


def set_quantity(row: Row, target: str, quantity: Quantity | None) -> None:
    """Set a column and, where the number was rounded, the column of its uncertainty, `{target}_pm`.

    Args:
        row: The row, which is changed.
        target: The column.
        quantity: The value in the column's unit; None leaves the row as it is.
    """
    if quantity is not None:
        row[target] = quantity.value
        if quantity.pm is not None:
            row[f"{target}_pm"] = quantity.pm


class Columns:
    """The cells of a table by the name of their column, as numbers of the schema's units."""

    def __init__(self, grid: Grid, marks: Marks) -> None:
        texts = zip(*(cells for _, cells in grid.rows), strict=True)
        self._texts = {parse_header(h).name: column_ for h, column_ in zip(grid.headers, texts, strict=False)}
        self._units = {parse_header(h).name: parse_header(h).unit or title_unit(grid.titles) for h in grid.headers}
        self._marks = marks
        self._rows = len(grid.rows)
        self._factors: dict[str, int | None] = {}  # bytes in a column's unit

    def table(self, name: str, columns: Mapping[str, Sequence[Any] | None]) -> pa.Table:
        """The columns that are there, with the types of the schema."""
        import pyarrow as pa

        from nsw.tables.parquet_tables import arrow_schema

        types = {field.name: field.type for field in arrow_schema(name)}
        arrays = {key: pa.array(values, types[key]) for key, values in columns.items() if values is not None}
        return to_arrow(name, pa.table(arrays))

    def rows(self, columns: Mapping[str, Sequence[Any] | None]) -> list[Row]:
        """The columns that are there, as rows; a figure that cannot be read is left out of its row."""
        present = {key: values for key, values in columns.items() if values is not None}
        figures = {key for key in present if key.endswith("_pm") or f"{key}_pm" in present}
        return [
            {key: cell for key, cell in zip(present, cells, strict=True) if cell is not None or key not in figures}
            for cells in zip(*present.values(), strict=True)
        ]

    def convert_column(self, name: str, convert: Callable[[str], V]) -> list[V] | None:
        """A column, converted; of a long one each different text once. None where there is no such column."""
        texts = self._texts.get(name)
        if texts is None:
            return None
        converted = {text: convert(text) for text in (set(texts) if len(texts) > _LONG else texts)}
        return [converted[text] for text in texts]

    def texts(self, *names: str) -> Sequence[str]:
        """The first of the columns that is there, as it is printed; empty cells where none is."""
        return next((self._texts[name] for name in names if name in self._texts), [""] * self._rows)

    def counts(self, *names: str) -> Sequence[int | None]:
        """The first of the columns that is there, as whole numbers."""
        title = next((name for name in names if name in self._texts), "")
        return self._parse_integers(title) or [None] * self._rows

    def times(self, name: str) -> Sequence[Quantity | None]:
        """A column of times in nanoseconds."""
        return self.convert_column(name, lambda text: self._as_time(name, text)) or [None] * self._rows

    def sizes(self, name: str) -> Sequence[Quantity | None]:
        """A column of sizes in bytes."""
        return self.convert_column(name, lambda text: self._as_bytes(name, text)) or [None] * self._rows

    def size_column(self, name: str, target: str) -> dict[str, Sequence[Any] | None]:
        """A column of sizes, or of bytes a second, and its `_pm` twin."""
        return self._quantity_columns(name, target, self._as_bytes)

    def time_columns(self, targets: Mapping[str, str]) -> dict[str, Sequence[Any] | None]:
        """Columns of times in nanoseconds and their `_pm` twins, by the names of the printed ones."""
        columns: dict[str, Sequence[Any] | None] = {}
        for name, target in targets.items():
            columns |= self._quantity_columns(name, target, self._as_time)
        return columns

    def statistics_columns(self) -> dict[str, Sequence[Any] | None]:
        """Calls, shares and times of a summary."""
        times = {name: f"{name}_ns" for name in _STATISTICS} | {"total time": "total_ns"}
        shares = self._quantity_columns("time", "time_pct", lambda _, text: self._parse_percent(text))
        return {"calls": self.counts(*_COUNTS)} | shares | self.time_columns(times)

    def kind_and_names(self, *names: str) -> dict[str, Sequence[Any] | None]:
        """Kind and names of GPU work, out of the first of the columns that is there."""
        texts = self.texts(*names)
        row_of_text = {text: kind_and_names(text) for text in set(texts)}
        rows = [row_of_text[text] for text in texts]
        return {key: [row.get(key) for row in rows] for key in ("kind", "name", "short_name", "mangled_name")}

    def event_columns(self, start: str, duration: str) -> dict[str, Sequence[Any] | None]:
        """Ids, start and duration."""
        columns: dict[str, Sequence[Any] | None] = {
            target: self._parse_integers(header) for header, target in _IDS.items()
        }
        for header, target in ((start, "start_ns"), (duration, "duration_ns")):
            integers = (self._units.get(header) or "ns").lower() == "ns" and self._plain_integers(header)
            if integers:
                columns[target] = integers
            else:
                columns |= self._quantity_columns(header, target, self._as_time, rounded=True)
        return columns

    def device_columns(self) -> dict[str, Sequence[Any] | None]:
        """Name and number of each row's GPU, out of `NVIDIA H100 (0)`."""
        matches = self.convert_column("device", _DEVICE.fullmatch)
        if matches is None:
            return {}
        return {
            "device_name": [device and device[1] for device in matches],
            "device": [device and int(device[2]) for device in matches],
        }

    def extent_columns(self) -> dict[str, Sequence[Any] | None]:
        """Grid and block out of cells such as `  128    1    1`."""
        columns: dict[str, Sequence[Any] | None] = {}
        for header, target in _EXTENTS.items():
            sizes = self.convert_column(header, _parse_dimensions)
            for index, axis in enumerate("xyz"):
                columns[f"{target}_{axis}"] = sizes and [size and size[index] for size in sizes]
        return columns

    def _parse_integers(self, name: str) -> Sequence[int | None] | None:
        return self._plain_integers(name) or self.convert_column(name, self._as_count)

    def _plain_integers(self, name: str) -> list[int] | None:
        """A column of nothing but digits, which need no marks to be read."""
        texts = self._texts.get(name, ())
        joined = "".join(texts)
        plain = joined.isascii() and joined.isdigit() and all(texts) and len(max(texts, key=len)) < 19
        return list(map(int, texts)) if plain else None

    def _quantity_columns(
        self, header: str, target: str, convert: Callable[[str, str], Quantity | None], *, rounded: bool = False
    ) -> dict[str, Sequence[Any] | None]:
        """A column of numbers and its `_pm` twin."""
        quantities = self.convert_column(header, lambda text: convert(header, text))
        if quantities is None:
            return {}
        values = [q and (_round_if_small(q.value) if rounded else q.value) for q in quantities]
        return {target: values, f"{target}_pm": [q and q.pm for q in quantities]}

    def _parse_percent(self, text: str) -> Quantity | None:
        """A share, which is always rounded."""
        digits = self._marks.digits(text.removesuffix("%"))
        return digits.scaled() if digits else None

    def _as_count(self, text: str) -> int | None:
        digits = self._marks.digits(text)
        integer = digits.mantissa * 10**digits.exponent if digits and digits.exponent >= 0 else None
        return integer if integer is not None and abs(integer) < 2**63 else None

    def _as_time(self, name: str, text: str) -> Quantity | None:
        """Nanoseconds; nsys prints whole ones where no title has a unit."""
        power = TIME_UNITS.get((self._units.get(name) or "ns").lower())
        digits = self._marks.digits(text)
        if digits is None or power is None:
            return None
        exact = power == 0 and digits.exponent >= 0
        return Quantity(digits.scaled().value, None) if exact else digits.scaled(power)

    def _as_bytes(self, name: str, text: str) -> Quantity | None:
        """Bytes, or bytes a second."""
        if name not in self._factors:
            self._factors[name] = size_factor(re.sub(r"(?:ps|/s)$", "", self._units.get(name) or "?"), 1000)
        factor = self._factors[name]
        digits = self._marks.digits(text)
        if digits is None or factor is None:
            return None
        value, half = digits.scaled()
        exact = factor == 1 and digits.exponent >= 0
        return Quantity(value * factor, None if exact or half is None else half * factor)


def kind_and_names(name: str) -> Row:
    """The name of a GPU row and what to call it; one that is mangled (option `mangled`) is read too."""
    return {"kind": gpu_operation_kind(name)} | name_columns_by_printed_name((name,))[name]


def kernel_rows(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows: kernels, or copies by time."""
    columns = Columns(grid, marks)
    return columns.rows(columns.kind_and_names("name", "operation") | columns.statistics_columns())


def gpu_and_api_rows(grid: Grid, marks: Marks) -> tuple[list[Row], list[Row]]:
    """gpu_summary and api_summary rows of a table of both.

    Where both are in it a row's share is one of API and GPU time together: no column means that.
    """
    gpu: list[Row] = []
    api: list[Row] = []
    columns = Columns(grid, marks)
    figures = columns.rows(columns.statistics_columns())
    for name, category, row in zip(columns.texts("operation"), columns.texts("category"), figures, strict=True):
        if category == "CUDA_API":
            api.append({"name": api_name_without_version(name)} | row)
        else:
            gpu.append(kind_and_names(name) | row)
    if api and gpu:
        for row in (*api, *gpu):
            row.pop("time_pct", None)
            row.pop("time_pct_pm", None)
    return gpu, api


def size_rows(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows that have bytes and no time."""
    columns = Columns(grid, marks)
    names = columns.kind_and_names("operation", "name") | {"calls": columns.counts(*_COUNTS)}
    return columns.rows(names | columns.size_column("total", "total_bytes"))


def call_rows(grid: Grid, marks: Marks) -> list[Row]:
    """Rows of calls: osrt_summary."""
    columns = Columns(grid, marks)
    return columns.rows({"name": columns.texts("name")} | columns.statistics_columns())


def api_call_rows(grid: Grid, marks: Marks) -> list[Row]:
    """api_summary rows: calls of CUDA less the version in their names."""
    return [row | {"name": api_name_without_version(row["name"])} for row in call_rows(grid, marks)]


def openacc_rows(grid: Grid, marks: Marks) -> list[Row]:
    """openacc_summary rows."""
    return [row | {"kind": openacc_kind(row["name"])} for row in call_rows(grid, marks)]


def nvtx_rows(grid: Grid, marks: Marks) -> list[Row]:
    """nvtx_summary rows."""
    columns = Columns(grid, marks)
    styles = [nvtx_style(cell, grid.titles, grid.report) for cell in columns.texts("style")]
    names = [*map(range_name, columns.texts("range"))]
    return columns.rows({"name": names, "style": styles, **columns.statistics_columns()})


def nvtx_gpu_rows(grid: Grid, marks: Marks) -> list[Row]:
    """nvtx_gpu_summary rows: nsys prints the styles of one name apart."""
    rows_by_name: dict[str, Row] = {}
    columns = Columns(grid, marks)
    figures = zip(
        map(range_name, columns.texts("range")), columns.counts("range instances"), columns.counts("total gpu ops"),
        columns.times("total proj time"), columns.times("proj med"), strict=True,
    )  # fmt: skip
    for name, instances, operations, projected, printed_median in figures:
        median = printed_median if name not in rows_by_name else None  # of two styles together no median is known
        add_projected(rows_by_name, name, instances, operations, projected)
        rows_by_name[name] |= {
            "projected_med_ns": median and median.value, "projected_med_ns_pm": median and median.pm,
        }  # fmt: skip
    return list(rows_by_name.values())


def add_projected(
    rows_by_name: dict[str, Row], name: str, calls: int | None, operations: int | None, projected: Quantity | None
) -> None:
    """Add figures to the row of a range; a figure that is missing once is missing in the sum.

    Args:
        rows_by_name: The rows by name of range; the range's row is made when it is new.
        name: The name of the range.
        calls: How often the range was entered.
        operations: The number of its GPU operations.
        projected: The duration of its projection onto the GPU (ns).
    """
    row = rows_by_name.setdefault(name, {"name": name, "calls": 0, "gpu_ops": 0, "projected_ns": 0.0})
    span = None if projected is None else projected.value
    for key, figure in (("calls", calls), ("gpu_ops", operations), ("projected_ns", span)):
        row[key] = None if figure is None or row[key] is None else row[key] + figure
    if projected is not None and projected.pm is not None:
        row["projected_ns_pm"] = row.get("projected_ns_pm", 0.0) + projected.pm


def range_name(text: str) -> str:
    """Newer versions put `:` before ranges of the default domain."""
    return text[1:] if re.match(r":[^:]", text) else text


def mpi_rows(grid: Grid, marks: Marks) -> list[Row]:
    """Communication rows."""
    columns = Columns(grid, marks)
    origin = {"library": ["mpi"] * len(grid.rows), "name": columns.texts("name"), "pid": columns.counts("pid")}
    return columns.rows(origin | columns.statistics_columns())


def message_rows(grid: Grid, marks: Marks) -> list[Row]:
    """Communication rows that have the bytes that were sent, always whole ones here, and no times."""
    columns = Columns(grid, marks)
    figures = zip(
        columns.texts("name"), columns.counts("instances"), columns.counts("total message volume"),
        columns.texts("source"), strict=True,
    )  # fmt: skip
    return [
        {"library": "mpi", "name": name, "calls": instances, "total_bytes": float(sent)}
        for name, instances, sent, source in figures
        if sent is not None and source != "coll_recv" and size_is_of_sent_bytes(name)
    ]


def unified_memory_rows(grid: Grid, marks: Marks) -> list[Row]:
    """um_summary rows out of the one row of totals."""
    columns = Columns(grid, marks)
    rows: list[Row] = []
    for way, name in (("htod", "Host To Device"), ("dtoh", "Device To Host")):
        moved = columns.rows(columns.size_column(f"total {way} migration size", "total_bytes"))
        rows += [{"name": name} | row for row in moved if "total_bytes" in row]
    for title, name in (("total cpu page faults", "CPU page faults"), ("total gpu pagefaults", "GPU page faults")):
        rows += [{"name": name, "calls": count} for count in columns.counts(title) if count is not None]
    return rows


def launch_rows(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows of the kernels' part of launch statistics; the sum is mean times count."""
    columns = Columns(grid, marks)
    ids = {"calls": columns.counts("count"), "pid": columns.counts("pid"), "device": columns.counts("devid")}
    times = columns.time_columns({f"k{name}": f"{name}_ns" for name in _STATISTICS})
    rows = columns.rows(columns.kind_and_names("kernel name") | ids | times)
    for row in rows:
        if row.get("avg_ns") is not None and row["calls"] is not None:
            row["total_ns"] = row["avg_ns"] * row["calls"]
            row["total_ns_pm"] = row.get("avg_ns_pm", 0.0) * row["calls"]
    return rows


def gpu_trace(grid: Grid, marks: Marks) -> pa.Table:
    """gpu_trace rows."""
    columns = Columns(grid, marks)
    sizes_and_rates: dict[str, Sequence[Any] | None] = {}
    for header, target in _BYTES.items():
        sizes_and_rates |= columns.size_column(header, target)
    return columns.table("gpu_trace", {
        **columns.kind_and_names("name"), **columns.event_columns("start", "duration"), **sizes_and_rates,
        **columns.device_columns(),
        **{to: columns.convert_column(header, lambda text: text.lower() or None) for header, to in _MEMORY.items()},
    })  # fmt: skip


def api_trace(grid: Grid, marks: Marks) -> pa.Table:
    """api_trace rows."""
    columns = Columns(grid, marks)
    names = {"name": columns.convert_column("name", api_name_without_version)}
    return columns.table("api_trace", names | columns.event_columns("start", "duration"))


def launch_trace(grid: Grid, marks: Marks) -> tuple[pa.Table, pa.Table]:
    """gpu_trace and api_trace rows of a table that has both in a row."""
    columns = Columns(grid, marks)
    kernels = columns.kind_and_names("kernel name") | columns.event_columns("kernel start", "kernel dur")
    kernels |= columns.extent_columns()
    calls: dict[str, Sequence[Any] | None] = columns.event_columns("api start", "api dur")
    calls["name"] = columns.convert_column("api function", api_name_without_version)
    kernels.pop("tid", None)
    calls.pop("device", None)
    return columns.table("gpu_trace", kernels), columns.table("api_trace", calls)


def _round_if_small(value: float) -> int | None:
    return round(value) if abs(value) < 2**62 else None


def _parse_dimensions(text: str) -> tuple[int, ...] | None:
    parts = text.split()
    return tuple(map(int, parts)) if len(parts) == 3 and all(p.isdigit() and len(p) < 10 for p in parts) else None


_LONGEST = 2**53  # ns, 104 days: exact as a float
TALLIED: dict[Kind, str] = {
    "nvtx_trace": "nvtx_summary",
    "nvtx_gpu_trace": "nvtx_gpu_summary",
    "mpi_trace": "communication",
    "cpu_faults": "um_summary",
}


@dataclass(slots=True)
class _Times:
    """Durations of one name in ns, and the greatest half-width among them: None where all are exact."""

    values: list[float] = field(default_factory=list)
    pm: float | None = None

    def add(self, duration: Quantity) -> None:
        self.values.append(duration.value)
        if duration.pm is not None:
            self.pm = max(self.pm or 0.0, duration.pm)


class Tally:
    """One printed trace as its parts come."""

    def __init__(self, kind: Kind, first: Grid, rank: int | None) -> None:
        self.table = TALLIED[kind]
        self.first = first
        self.rank = rank
        self.contradictions: list[int] = []  # lines of rows whose end is not their start and their duration
        self.unended = 0
        self._times: dict[str, _Times] = {}
        self._projected: dict[str, Row] = {}
        self._sent: dict[str, list[Quantity]] = {}
        self._ranks: set[int | None] = set()
        self._faults = 0
        self._take: Callable[[Grid, Columns], None] = {
            "nvtx_trace": self._add_ranges, "nvtx_gpu_trace": self._add_projections, "mpi_trace": self._add_mpi,
        }.get(kind, self._add_page_faults)  # fmt: skip

    def add(self, grid: Grid, marks: Marks) -> None:
        """Take the next rows of the trace."""
        if grid.rows:
            self._take(grid, Columns(grid, marks))

    def rows(self) -> list[Row]:
        """The summary."""
        if self._projected:
            return list(self._projected.values())
        if self._faults:
            return [{"name": "CPU page faults", "calls": self._faults}]
        if self.table == "nvtx_summary":
            return _with_exact_shares(
                [{"name": name, "style": "pushpop"} | _time_statistics(t) for name, t in self._times.items()]
            )
        return _with_exact_shares([self._mpi_row(name, times) for name, times in self._times.items()])

    def _mpi_row(self, name: str, times: _Times) -> Row:
        row: Row = {"library": "mpi", "name": name} | _time_statistics(times)
        if sent := self._sent.get(name):
            set_quantity(row, "total_bytes", _sum_quantities(sent))
        if len(self._ranks) == 1:
            row["rank"] = next(iter(self._ranks))
        return row

    def _add_ranges(self, grid: Grid, columns: Columns) -> None:
        names = columns.texts("name")
        for index, duration in self._ended_events(grid, columns):
            self._times.setdefault(range_name(names[index]), _Times()).add(duration)

    def _add_projections(self, grid: Grid, columns: Columns) -> None:
        del grid
        figures = zip(
            columns.texts("name"), columns.counts("rangeid"),
            columns.counts("numgpuops"), columns.times("projected duration"),
            strict=True,
        )  # fmt: skip
        for name, number, operations, projected in figures:
            if number is None:
                continue  # 2023 has a row of what was launched in no range
            add_projected(self._projected, range_name(name), 1, operations, projected)

    def _add_mpi(self, grid: Grid, columns: Columns) -> None:
        self._ranks |= set(columns.counts("rank"))
        names = columns.texts("event")
        sizes = [columns.sizes(name) for name in ("size", "collsendsize")]
        for index, duration in self._ended_events(grid, columns):
            name = names[index]
            self._times.setdefault(name, _Times()).add(duration)
            sent = next((size[index] for size in sizes if size[index] is not None), None)
            if sent is not None and size_is_of_sent_bytes(name):
                self._sent.setdefault(name, []).append(sent)

    def _add_page_faults(self, grid: Grid, columns: Columns) -> None:
        del grid
        self._faults += sum(count for count in columns.counts("cpu page faults") if count is not None)

    def _ended_events(self, grid: Grid, columns: Columns) -> Iterator[tuple[int, Quantity]]:
        """Place and duration of each event that has an end, and the end that it should have."""
        times = zip(columns.times("start"), columns.times("end"), columns.times("duration"), strict=True)
        for index, (start, end, duration) in enumerate(times):
            if duration is None and end is None and start is not None:
                self.unended += 1
            elif start is None or end is None or duration is None or not _times_agree(start, end, duration):
                self.contradictions.append(grid.rows[index][0])
            else:
                yield index, duration


def _times_agree(start: Quantity, end: Quantity, duration: Quantity) -> bool:
    slack = sum(q.pm or 0.0 for q in (start, end, duration))
    difference = abs(start.value + duration.value - end.value)
    return difference <= slack * 1.001 and 0 <= duration.value < _LONGEST


def _time_statistics(times: _Times) -> Row:
    import numpy as np

    values = np.sort(np.array(times.values, np.float64))
    n, pm = len(values), times.pm
    if pm is None and values[-1] * n < 2**62:
        return duration_statistics(values.astype(np.int64))
    row: dict[str, Any] = {"calls": n}
    set_quantity(row, "total_ns", Quantity(float(values.sum()), pm and n * pm))
    middle = (values[(n - 1) // 2] + values[n // 2]) / 2
    for key, value in (("avg", values.mean()), ("med", middle), ("min", values[0]), ("max", values[-1])):
        set_quantity(row, f"{key}_ns", Quantity(float(value), pm))
    if n > 1:  # no deviation from the mean moves by more than what all values together can
        set_quantity(row, "stddev_ns", Quantity(float(values.std(ddof=1)), pm and pm * math.sqrt(n / (n - 1))))
    return row


def _sum_quantities(quantities: Sequence[Quantity]) -> Quantity:
    widths = [q.pm for q in quantities if q.pm is not None]
    return Quantity(float(sum(q.value for q in quantities)), float(sum(widths)) if widths else None)


def _with_exact_shares(rows: list[Row]) -> list[Row]:
    """With shares of their sum, which rounded times do not have."""
    return rows if any("total_ns_pm" in row for row in rows) else with_shares(rows)
