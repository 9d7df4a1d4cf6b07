"""Rows of the schema out of the rows of `nsys stats`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.readers.nsys.stats.columns import Marks, column
from nsw.readers.nsys.stats.kinds import nvtx_style, openacc_kind, title_unit
from nsw.readers.text.quantities import TIME_UNITS, Quantity, size_factor
from nsw.readers.timeline.communication_by_name import bytes_are_sent
from nsw.tables.names import api_name, gpu_kind, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.readers.nsys.stats.grids import Grid
    from nsw.tables import Row

_COUNTS = ("num calls", "calls", "instances", "count", "operations", "range instances")
_TIMES = {
    "avg": "avg_ns",
    "med": "med_ns",
    "min": "min_ns",
    "max": "max_ns",
    "stddev": "stddev_ns",
    "total time": "total_ns",
}


class Cells:
    """The cells of one row by the name of their column, as numbers of the schema's units."""

    def __init__(self, grid: Grid, marks: Marks) -> None:
        self._columns = {column(h).name: (place, column(h).unit) for place, h in enumerate(grid.headers)}
        self._title_unit = title_unit(grid.titles)
        self._marks = marks
        self.cells: list[str] = []
        self.titles = grid.titles
        self.report = grid.report
        self._factors: dict[str, int | None] = {}  # bytes in a column's unit

    def text(self, name: str) -> str:
        """The cell as printed; empty where there is no such column."""
        found = self._columns.get(name)
        return self.cells[found[0]] if found else ""

    def count(self, *names: str) -> int | None:
        """A whole number out of the first of the columns that is there."""
        for name in names:
            if name in self._columns:
                return self.as_count(self.text(name))
        return None

    def time(self, name: str) -> Quantity | None:
        """Nanoseconds."""
        return self.as_time(name, self.text(name))

    def bytes(self, name: str) -> Quantity | None:
        """Bytes, or bytes a second."""
        return self.as_bytes(name, self.text(name))

    def percent(self, name: str) -> Quantity | None:
        """A share, which is always rounded."""
        found = self._marks.digits(self.text(name).removesuffix("%"))
        return found.scaled() if found else None

    def as_count(self, text: str) -> int | None:
        """A cell as a whole number."""
        found = self._marks.digits(text)
        whole = found.mantissa * 10**found.exponent if found and found.exponent >= 0 else None
        return whole if whole is not None and abs(whole) < 2**63 else None

    def as_time(self, name: str, text: str) -> Quantity | None:
        """A cell of column `name` in nanoseconds."""
        power = TIME_UNITS.get((self._unit(name) or "ns").lower())
        found = self._marks.digits(text)
        if found is None or power is None:
            return None
        exact = power == 0 and found.exponent >= 0
        return Quantity(found.scaled().value, None) if exact else found.scaled(power)

    def as_bytes(self, name: str, text: str) -> Quantity | None:
        """A cell of column `name` in bytes, or bytes a second."""
        if name not in self._factors:
            self._factors[name] = size_factor(re.sub(r"(?:ps|/s)$", "", self._unit(name) or "?"), 1000)
        factor = self._factors[name]
        found = self._marks.digits(text)
        if found is None or factor is None:
            return None
        value, half = found.scaled()
        exact = factor == 1 and found.exponent >= 0
        return Quantity(value * factor, None if exact or half is None else half * factor)

    def has_nanoseconds(self, name: str) -> bool:
        """Whether the column's times are whole nanoseconds, as nsys prints them unless told otherwise."""
        return (self._unit(name) or "ns").lower() == "ns"

    def _unit(self, name: str) -> str | None:
        found = self._columns.get(name)
        return (found[1] if found else None) or self._title_unit


def put(row: Row, target: str, quantity: Quantity | None) -> None:
    """Set a column and, where the number was rounded, its `_pm` twin."""
    if quantity is not None:
        row[target] = quantity.value
        if quantity.pm is not None:
            row[f"{target}_pm"] = quantity.pm


def _each(grid: Grid, marks: Marks, make: Callable[[Cells], Row | None]) -> Iterator[Row]:
    cells = Cells(grid, marks)
    for _, cells.cells in grid.rows:
        row = make(cells)
        if row is not None:
            yield row


def _statistics(cells: Cells) -> Row:
    row: dict[str, Any] = {"calls": cells.count(*_COUNTS)}
    put(row, "time_pct", cells.percent("time"))
    for name, target in _TIMES.items():
        put(row, target, cells.time(name))
    return row


def named(name: str) -> Row:
    """The name of a GPU row and what to call it; one that is mangled (option `mangled`) is read too."""
    return {"kind": gpu_kind(name)} | names_of((name,))[name]


def kernels(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows: kernels, or copies by time."""
    return list(_each(grid, marks, lambda c: named(c.text("name") or c.text("operation")) | _statistics(c)))


def combined(grid: Grid, marks: Marks) -> tuple[list[Row], list[Row]]:
    """gpu_summary and api_summary rows of a table of both.

    Where both are in it a row's share is one of API and GPU time together: no column means that.
    """
    gpu: list[Row] = []
    api: list[Row] = []
    cells = Cells(grid, marks)
    for _, cells.cells in grid.rows:
        name, category = cells.text("operation"), cells.text("category")
        if category == "CUDA_API":
            api.append({"name": api_name(name)} | _statistics(cells))
        else:
            gpu.append(named(name) | _statistics(cells))
    if api and gpu:
        for row in (*api, *gpu):
            row.pop("time_pct", None)
            row.pop("time_pct_pm", None)
    return gpu, api


def sizes(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows that have bytes and no time."""

    def make(cells: Cells) -> Row:
        row = named(cells.text("operation") or cells.text("name")) | {"calls": cells.count(*_COUNTS)}
        put(row, "total_bytes", cells.bytes("total"))
        return row

    return list(_each(grid, marks, make))


def calls(grid: Grid, marks: Marks) -> list[Row]:
    """Rows of calls: osrt_summary."""
    return list(_each(grid, marks, lambda c: {"name": c.text("name")} | _statistics(c)))


def api_calls(grid: Grid, marks: Marks) -> list[Row]:
    """api_summary rows: calls of CUDA less the version in their names."""
    return [row | {"name": api_name(row["name"])} for row in calls(grid, marks)]


def openacc(grid: Grid, marks: Marks) -> list[Row]:
    """openacc_summary rows."""
    return [row | {"kind": openacc_kind(row["name"])} for row in calls(grid, marks)]


def nvtx(grid: Grid, marks: Marks) -> list[Row]:
    """nvtx_summary rows."""

    def make(cells: Cells) -> Row:
        return {
            "name": range_name(cells.text("range")),
            "style": nvtx_style(cells.text("style"), cells.titles, cells.report),
        } | _statistics(cells)

    return list(_each(grid, marks, make))


def nvtx_gpu(grid: Grid, marks: Marks) -> list[Row]:
    """nvtx_gpu_summary rows: nsys prints the styles of one name apart."""
    found: dict[str, Row] = {}
    cells = Cells(grid, marks)
    for _, cells.cells in grid.rows:
        counts = cells.count("range instances"), cells.count("total gpu ops")
        name = range_name(cells.text("range"))
        alone = name not in found
        add_projected(found, name, *counts, cells.time("total proj time"))
        median = cells.time("proj med") if alone else None  # of two styles together no median is known
        found[name] |= {
            "projected_med_ns": median and median.value, "projected_med_ns_pm": median and median.pm,
        }  # fmt: skip
    return list(found.values())


def add_projected(
    found: dict[str, Row], name: str, calls: int | None, operations: int | None, projected: Quantity | None
) -> None:
    """Add figures to the row of a range; what one of them lacks, their sum lacks too."""
    row = found.setdefault(name, {"name": name, "calls": 0, "gpu_ops": 0, "projected_ns": 0.0})
    span = None if projected is None else projected.value
    for key, figure in (("calls", calls), ("gpu_ops", operations), ("projected_ns", span)):
        row[key] = None if figure is None or row[key] is None else row[key] + figure
    if projected is not None and projected.pm is not None:
        row["projected_ns_pm"] = row.get("projected_ns_pm", 0.0) + projected.pm


def range_name(text: str) -> str:
    """Newer versions put `:` before ranges of the default domain."""
    return text[1:] if re.match(r":[^:]", text) else text


def mpi(grid: Grid, marks: Marks) -> list[Row]:
    """Communication rows."""

    def make(cells: Cells) -> Row:
        return {"library": "mpi", "name": cells.text("name"), "pid": cells.count("pid")} | _statistics(cells)

    return list(_each(grid, marks, make))


def messages(grid: Grid, marks: Marks) -> list[Row]:
    """Communication rows that have the bytes that were sent, always whole ones here, and no times."""
    rows: list[Row] = []
    cells = Cells(grid, marks)
    for _, cells.cells in grid.rows:
        name, sent = cells.text("name"), cells.count("total message volume")
        if sent is not None and cells.text("source") != "coll_recv" and bytes_are_sent(name):
            rows.append({"library": "mpi", "name": name, "calls": cells.count("instances"), "total_bytes": float(sent)})
    return rows


def unified_memory(grid: Grid, marks: Marks) -> list[Row]:
    """um_summary rows out of the one row of totals."""
    rows: list[Row] = []
    for number, name in (
        ("total htod migration size", "Host To Device"),
        ("total dtoh migration size", "Device To Host"),
    ):
        rows.extend(_each(grid, marks, lambda c, n=number, t=name: _moved(c, n, t)))  # type: ignore[misc]
    for number, name in (("total cpu page faults", "CPU page faults"), ("total gpu pagefaults", "GPU page faults")):
        rows.extend(_each(grid, marks, lambda c, n=number, t=name: {"name": t, "calls": c.count(n)}))  # type: ignore[misc]
    return [row for row in rows if row.get("calls") is not None or row.get("total_bytes") is not None]


def _moved(cells: Cells, column_name: str, name: str) -> Row:
    row: Row = {"name": name}
    put(row, "total_bytes", cells.bytes(column_name))
    return row


def launches(grid: Grid, marks: Marks) -> list[Row]:
    """gpu_summary rows of the kernels' part of launch statistics; the sum is mean times count."""

    def make(cells: Cells) -> Row:
        row = named(cells.text("kernel name")) | {"calls": cells.count("count")}
        row |= {"pid": cells.count("pid"), "device": cells.count("devid")}
        for how in ("avg", "med", "min", "max", "stddev"):
            put(row, f"{how}_ns", cells.time(f"k{how}"))
        if row.get("avg_ns") is not None and row["calls"] is not None:
            row["total_ns"] = row["avg_ns"] * row["calls"]
            row["total_ns_pm"] = row.get("avg_ns_pm", 0.0) * row["calls"]
        return row

    return list(_each(grid, marks, make))
