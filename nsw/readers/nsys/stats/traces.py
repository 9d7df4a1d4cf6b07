"""Traces that `nsys stats` prints, one row an event: a column at a time, since there may be millions of rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from nsw.readers.nsys.stats.columns import Marks, column
from nsw.readers.nsys.stats.rows import Cells, named
from nsw.tables import as_arrow
from nsw.tables.names import api_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from nsw.readers.nsys.stats.grids import Grid
    from nsw.readers.text.quantities import Quantity

_DEVICE = re.compile(r"(.*?) ?\((\d{1,9})\)")
_IDS = {
    "corrid": "correlation", "ctx": "context", "strm": "stream", "pid": "pid", "tid": "tid",
    "result": "return_value",
    "grdx": "grid_x", "grdy": "grid_y", "grdz": "grid_z", "blkx": "block_x", "blky": "block_y",
    "blkz": "block_z",
    "reg/trd": "registers", "devid": "device",
}  # fmt: skip
_BYTES = {
    "stcsmem": "static_smem_bytes",
    "dymsmem": "dynamic_smem_bytes",
    "bytes": "bytes",
    "throughput": "bytes_per_s",
}
_MEMORY = {"srcmemkd": "src_memory", "dstmemkd": "dst_memory"}
_EXTENTS = {"gridxyz": "grid", "blockxyz": "block"}

V = TypeVar("V")


def gpu_trace(grid: Grid, marks: Marks) -> pa.Table:
    """gpu_trace rows."""
    columns = Columns(grid, marks)
    return columns.table("gpu_trace", {
        **columns.named("name"), **columns.events("start", "duration"), **columns.bytes(), **columns.devices(),
        **{ours: columns.each(theirs, lambda text: text.lower() or None) for theirs, ours in _MEMORY.items()},
    })  # fmt: skip


def api_trace(grid: Grid, marks: Marks) -> pa.Table:
    """api_trace rows."""
    columns = Columns(grid, marks)
    names = {"name": columns.each("name", api_name)}
    return columns.table("api_trace", names | columns.events("start", "duration"))


def launch_trace(grid: Grid, marks: Marks) -> tuple[pa.Table, pa.Table]:
    """gpu_trace and api_trace rows of a table that has both in a row."""
    columns = Columns(grid, marks)
    kernels = columns.named("kernel name") | columns.events("kernel start", "kernel dur") | columns.extents()
    calls = {"name": columns.each("api function", api_name)} | columns.events("api start", "api dur")
    kernels.pop("tid", None)
    calls.pop("device", None)
    return columns.table("gpu_trace", kernels), columns.table("api_trace", calls)


class Columns:
    """The cells of a table by column; None stands for a column that is not there."""

    def __init__(self, grid: Grid, marks: Marks) -> None:
        self._cells = Cells(grid, marks)
        self._rows = len(grid.rows)
        texts = zip(*(cells for _, cells in grid.rows), strict=True)
        self._texts = {column(h).name: column_ for h, column_ in zip(grid.headers, texts, strict=False)}

    def table(self, name: str, columns: Mapping[str, Sequence[Any] | None]) -> pa.Table:
        """The columns that are there, with the types of the schema."""
        import pyarrow as pa

        from nsw.tables.data import arrow_schema

        types = {field.name: field.type for field in arrow_schema(name)}
        made = {key: pa.array(values, types[key]) for key, values in columns.items() if values is not None}
        return as_arrow(name, pa.table(made))

    def each(self, name: str, convert: Callable[[str], V]) -> list[V] | None:
        """A column with each different text converted once."""
        texts = self._texts.get(name)
        if texts is None:
            return None
        converted = {text: convert(text) for text in set(texts)}
        return [converted[text] for text in texts]

    def texts(self, name: str) -> Sequence[str]:
        """A column as it is printed; empty cells where there is no such column."""
        return self._texts.get(name) or [""] * self._rows

    def counts(self, name: str) -> Sequence[int | None]:
        """A column of whole numbers."""
        return self._whole(name) or [None] * self._rows

    def times(self, name: str) -> Sequence[Quantity | None]:
        """A column of times in nanoseconds."""
        return self.each(name, lambda text: self._cells.as_time(name, text)) or [None] * self._rows

    def sizes(self, name: str) -> Sequence[Quantity | None]:
        """A column of sizes in bytes."""
        return self.each(name, lambda text: self._cells.as_bytes(name, text)) or [None] * self._rows

    def named(self, name: str) -> dict[str, Sequence[Any] | None]:
        """Kind and names of GPU work."""
        rows = self.each(name, named)
        return {key: rows and [row.get(key) for row in rows] for key in ("kind", "name", "short_name", "mangled_name")}

    def events(self, start: str, duration: str) -> dict[str, Sequence[Any] | None]:
        """Ids, start and duration."""
        found: dict[str, Sequence[Any] | None] = {ours: self._whole(theirs) for theirs, ours in _IDS.items()}
        for theirs, ours in ((start, "start_ns"), (duration, "duration_ns")):
            whole = self._cells.has_nanoseconds(theirs) and self._plain(theirs)
            if whole:
                found[ours] = whole
            else:
                found |= self._quantities(theirs, ours, self._cells.as_time, whole=True)
        return found

    def bytes(self) -> dict[str, Sequence[Any] | None]:
        """Sizes and rates."""
        found: dict[str, Sequence[Any] | None] = {}
        for theirs, ours in _BYTES.items():
            found |= self._quantities(theirs, ours, self._cells.as_bytes)
        return found

    def devices(self) -> dict[str, Sequence[Any] | None]:
        """Name and number of each row's GPU, out of `NVIDIA H100 (0)`."""
        found = self.each("device", _DEVICE.fullmatch)
        if found is None:
            return {}
        return {
            "device_name": [device and device[1] for device in found],
            "device": [device and int(device[2]) for device in found],
        }

    def extents(self) -> dict[str, Sequence[Any] | None]:
        """Grid and block out of cells such as `  128    1    1`."""
        found: dict[str, Sequence[Any] | None] = {}
        for theirs, ours in _EXTENTS.items():
            sizes = self.each(theirs, _extent)
            for place, axis in enumerate("xyz"):
                found[f"{ours}_{axis}"] = sizes and [size and size[place] for size in sizes]
        return found

    def _whole(self, name: str) -> Sequence[int | None] | None:
        return self._plain(name) or self.each(name, self._cells.as_count)

    def _plain(self, name: str) -> list[int] | None:
        """A column of nothing but digits, which need no marks to be read."""
        texts = self._texts.get(name, ())
        joined = "".join(texts)
        plain = joined.isascii() and joined.isdigit() and all(texts) and len(max(texts, key=len)) < 19
        return list(map(int, texts)) if plain else None

    def _quantities(
        self, theirs: str, ours: str, convert: Callable[[str, str], Quantity | None], *, whole: bool = False
    ) -> dict[str, Sequence[Any] | None]:
        """A column of numbers and its `_pm` twin."""
        found = self.each(theirs, lambda text: convert(theirs, text))
        if found is None:
            return {}
        values = [q and (_whole(q.value) if whole else q.value) for q in found]
        return {ours: values, f"{ours}_pm": [q and q.pm for q in found]}


def _whole(value: float) -> int | None:
    return round(value) if abs(value) < 2**62 else None


def _extent(text: str) -> tuple[int, ...] | None:
    parts = text.split()
    return tuple(map(int, parts)) if len(parts) == 3 and all(p.isdigit() and len(p) < 10 for p in parts) else None
