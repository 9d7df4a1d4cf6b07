"""Put the rows of many tables together: number blocks, join sizes with times, leave out repeats."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from nsw.readers.nsys_stats_kinds import report_name

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from nsw.readers.model import Options, Report
    from nsw.readers.nsys_stats_columns import Marks
    from nsw.readers.nsys_stats_grid import Grid
    from nsw.tables import Row

# Which report a table is from and how it is printed: a report printed twice in one way is two runs.
Origin: TypeAlias = tuple[str, ...]


class Collected:
    """The tables of a report as they fill."""

    def __init__(self, report: Report, options: Options) -> None:
        self.rank: int | None = None
        self._report = report
        self._options = options
        self._rows: dict[str, list[Row]] = {}
        self._chunks: dict[str, list[pa.Table]] = {}
        self._blocks: Counter[str] = Counter()
        self._seen: dict[tuple[str, int, float], Origin] = {}
        self._halves: dict[tuple[str, frozenset[tuple[str, Any]]], list[list[Row]]] = {}
        self._unread: dict[str, int] = {}

    def kernels(self, rows: list[Row], grid: Grid) -> None:
        """gpu_summary rows of kernels, or of kernels and copies."""
        if rows and not self._is_repeat("kernels", [r for r in rows if r["kind"] == "kernel"], grid):
            with_copies = any(r["kind"] != "kernel" for r in rows)
            counters = ("kernels", "copies") if with_copies else ("kernels",)
            self._add("gpu_summary", rows, self._next_block(*counters, part=grid.part))

    def copies(self, rows: list[Row], grid: Grid) -> None:
        """gpu_summary rows of copies, by time; their bytes come in another table."""
        if not rows or self._is_repeat("copies", rows, grid):
            return
        sizes = self._other_half("sizes", rows)
        if sizes is None:
            self._add("gpu_summary", rows, self._next_block("copies", part=grid.part))
            self._halves.setdefault(("copies", _counts(rows)), []).append(rows)
        else:
            for bare in sizes:
                _fill(bare, next(r for r in rows if r["name"] == bare["name"]))

    def sizes(self, rows: list[Row], grid: Grid) -> None:
        """The bytes of copies: joined with their times where a table has the same names and counts."""
        copies = self._other_half("copies", rows)
        if copies is None:
            self._add("gpu_summary", rows, self._next_block("copies", part=grid.part))
            self._halves.setdefault(("sizes", _counts(rows)), []).append(rows)
        else:
            for bare in copies:
                _fill(bare, next(r for r in rows if r["name"] == bare["name"]))

    def simple(self, table: str, rows: list[Row], grid: Grid) -> None:
        """Rows that need nothing but their block."""
        if rows and not self._is_repeat(table, rows, grid):
            self._add(table, rows, self._next_block(table, part=grid.part))

    def trace(self, table: str, make: Callable[[Grid, Marks], pa.Table], grid: Grid, marks: Marks) -> None:
        """Rows of a trace, of which there may be millions; made only where they are wanted."""
        block = self._next_block(table, part=grid.part)
        if not grid.rows or not self._options.wants(table):
            return
        import pyarrow as pa

        made = make(grid, marks)
        for name, value in (("block", block), ("rank", self.rank)):
            place = made.schema.get_field_index(name)
            made = made.set_column(place, made.schema.field(place), pa.repeat(pa.scalar(value, pa.int64()), len(made)))
        self._chunks.setdefault(table, []).append(made)

    def unread(self, what: str, grid: Grid) -> None:
        """A table that nsw has no place for."""
        self._unread.setdefault(what, grid.line)

    def finish(self) -> None:
        """Hand the tables to the report."""
        for what, line in self._unread.items():
            self._report.warn(f"not read: {what}; nsw has no table for it", line=line)
        self._report.tables.update({table: rows for table, rows in self._rows.items() if rows})
        for table, chunks in self._chunks.items():
            import pyarrow as pa

            self._report.tables[table] = pa.concat_tables(chunks)

    def _add(self, table: str, rows: list[Row], block: int) -> None:
        if not self._options.wants(table):
            return
        for row in rows:
            row["block"] = block
            if self.rank is not None:
                row["rank"] = self.rank
        self._rows.setdefault(table, []).extend(rows)

    def _next_block(self, *counters: str, part: int) -> int:
        block = max(self._blocks[c] for c in counters)
        if part:  # the table has its number
            return block - 1
        for counter in counters:
            self._blocks[counter] = block + 1
        return block

    def _is_repeat(self, table: str, rows: list[Row], grid: Grid) -> bool:
        """Whether another report of nsys, or another format of it, gave the same calls and the same time."""
        if grid.part or not rows:
            return False
        calls, total = (sum(row.get(key) or 0 for row in rows) for key in ("calls", "total_ns"))
        origin = (grid.style, *grid.headers)
        before = self._seen.setdefault((table, calls, float(total)), origin)
        if before == origin or not total:
            return False
        name = report_name(grid.titles, grid.headers)
        self._report.warn(f"{name} repeats rows of a table before it and was left out", line=grid.line)
        return True

    def _other_half(self, which: str, rows: list[Row]) -> list[Row] | None:
        waiting = self._halves.get((which, _counts(rows)))
        return waiting.pop(0) if waiting else None


def _counts(rows: list[Row]) -> frozenset[tuple[str, Any]]:
    return frozenset((row["name"], row["calls"]) for row in rows)


def _fill(row: Row, other: Row) -> None:
    """Add what `other` knows and `row` does not."""
    for key, value in other.items():
        if row.get(key) is None:
            row[key] = value
