"""Put the rows of many tables together: number blocks, join sizes with times, leave out repeats."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.nsys.stats.kinds import table_name
from nsw.readers.nsys.stats.reports import why_not
from nsw.readers.nsys.stats.summed_traces import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from nsw.readers.model import Options, Report
    from nsw.readers.nsys.stats.columns import Marks
    from nsw.readers.nsys.stats.grids import Grid
    from nsw.readers.nsys.stats.reports import Kind
    from nsw.tables import Row

# Which report a table is from and how it is printed: a report printed twice in one way is two runs.
Origin: TypeAlias = tuple[str, ...]
_ROUNDED: Final = 0.06  # ns a call that a total is off where it was made of a mean with one decimal


class Collected:
    """The tables of a report as they fill."""

    def __init__(self, report: Report, options: Options) -> None:
        self.rank: int | None = None
        self._report = report
        self._options = options
        self._rows: dict[str, list[Row]] = {}
        self._chunks: dict[str, list[pa.Table]] = {}
        self._blocks: Counter[str] = Counter()
        self._seen: dict[tuple[str, int | None, int], list[tuple[float, Origin]]] = {}
        self._halves: dict[tuple[str, frozenset[tuple[str, Any]]], list[list[Row]]] = {}
        self._unread: dict[str, int] = {}
        self._repeats: list[tuple[str, int]] = []
        self._tallies: list[Tally] = []
        self._messages: list[tuple[Grid, int | None, list[Row]]] = []

    def kernels(self, rows: list[Row], grid: Grid) -> None:
        """gpu_summary rows of kernels, or of kernels and copies; either may be in another table too."""
        groups = {
            "kernels": [r for r in rows if r["kind"] == "kernel"],
            "copies": [r for r in rows if r["kind"] != "kernel"],
        }
        told = {group for group, some in groups.items() if some and self._was_told(group, some, grid)}
        new = {group for group, some in groups.items() if some} - told
        if told:
            self._repeats.append((f"the {told.pop()} of {_name(grid)}" if new else _name(grid), grid.line))
        if not new:
            return
        chosen = [r for r in rows if ("kernels" if r["kind"] == "kernel" else "copies") in new]
        counters = ("kernels", "copies") if "copies" in new else ("kernels",)
        self._add("gpu_summary", chosen, self._next_block(*counters, part=grid.part))
        if "copies" in new:
            self._halves.setdefault(("copies", _counts(groups["copies"])), []).append(groups["copies"])

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
            return
        timed = {(row["name"], row["calls"]): row for row in copies}
        for row in rows:
            _fill(timed[row["name"], row["calls"]], row)

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

    def events(self, kind: Kind, grid: Grid, marks: Marks) -> None:
        """Rows of a trace that is added up."""
        if not grid.part or not self._tallies:
            self._tallies.append(Tally(kind, grid, self.rank))
        self._tallies[-1].add(grid, marks)

    def messages(self, rows: list[Row], grid: Grid) -> None:
        """Bytes that MPI calls sent; their times come in another table."""
        self._messages.append((grid, self.rank, rows))

    def unread(self, what: str, grid: Grid) -> None:
        """A table that nsw has no place for."""
        self._unread.setdefault(what, grid.line)

    def finish(self) -> None:
        """Hand the tables to the report."""
        for tally in self._tallies:
            self._finish(tally)
        for grid, rank, rows in self._messages:
            self.rank = rank
            self._finish_messages(grid, rows)
        self._say_repeats()
        for what, line in self._unread.items():
            reason, fix = why_not(what)
            self._report.warn(f"not read: {what}; {reason}", line=line, fix=fix)
        self._report.tables.update({table: rows for table, rows in self._rows.items() if rows})
        for table, chunks in self._chunks.items():
            import pyarrow as pa

            self._report.tables[table] = pa.concat_tables(chunks)

    def _say_repeats(self) -> None:
        if not self._repeats:
            return
        names, line = ", ".join(dict.fromkeys(name for name, _ in self._repeats)), self._repeats[0][1]
        if len(self._repeats) == 1:
            verbs = ("repeat", "were") if names.startswith("the ") else ("repeats", "was")
            self._report.warn("{} {} rows of a table before it and {} left out".format(names, *verbs), line=line)
        else:
            said = f"{len(self._repeats)} tables repeat rows of tables before them and were left out"
            self._report.warn(f"{said}: {names}", line=line)

    def _finish(self, tally: Tally) -> None:
        name = _name(tally.first)
        if tally.contradictions:
            self._report.error(
                f"{len(tally.contradictions)} rows of {name} contradict themselves (start and duration make another"
                " end) and are left out",
                line=tally.contradictions[0],
                fix="copy or print the report again",
            )
        if tally.unended:
            self._report.warn(f"{tally.unended} events of {name} had not ended when the trace did: left out")
        self.rank = tally.rank
        self.simple(tally.table, tally.rows(), tally.first)

    def _finish_messages(self, grid: Grid, rows: list[Row]) -> None:
        """Put bytes beside the times of the same calls, where those are here too."""
        timed = {
            (row.get("rank"), row["name"], row["calls"]): row
            for row in self._rows.get("communication", ())
            if row["library"] == "mpi" and row.get("total_ns") is not None
        }
        alone = []
        for row in rows:
            other = timed.get((self.rank, row["name"], row["calls"]))
            if other is None:
                alone.append(row)
            else:
                other["total_bytes"] = row["total_bytes"]  # exact, where a trace has rounded sizes
                other.pop("total_bytes_pm", None)
        self.simple("communication", alone, grid)

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
        """Whether the rows are left out (and reported), since an earlier table has them."""
        told = bool(rows) and self._was_told(table, rows, grid)
        if told:
            self._repeats.append((_name(grid), grid.line))
        return told

    def _was_told(self, table: str, rows: list[Row], grid: Grid) -> bool:
        """Whether another report of nsys, or another format of it, gave the same calls and the same time."""
        if grid.part:
            return False
        if table == "um_summary":
            return self._has_faults(rows)
        calls = sum(row.get("calls") or 0 for row in rows)
        total = float(sum(row.get("total_ns") or row.get("projected_ns") or 0 for row in rows))
        origin = (grid.style, grid.report or "", *grid.headers)
        before = self._seen.setdefault((table, self.rank, calls), [])
        near = max(1.0, _ROUNDED * calls)
        told = bool(total) and any(abs(total - other) <= near and by != origin for other, by in before)
        before.append((total, origin))
        return told

    def _has_faults(self, rows: list[Row]) -> bool:
        """Whether these are the CPU page faults, by instruction, that the totals have too."""
        before = [(r["name"], r.get("calls")) for r in self._rows.get("um_summary", ())]
        return len(rows) == 1 and (rows[0]["name"], rows[0]["calls"]) in before

    def _other_half(self, which: str, rows: list[Row]) -> list[Row] | None:
        waiting = self._halves.get((which, _counts(rows)))
        return waiting.pop(0) if waiting else None


def _name(grid: Grid) -> str:
    return grid.report or table_name(grid.titles, grid.headers)


def _counts(rows: list[Row]) -> frozenset[tuple[str, Any]]:
    return frozenset((row["name"], row["calls"]) for row in rows)


def _fill(row: Row, other: Row) -> None:
    """Add what `other` knows and `row` does not."""
    for key, value in other.items():
        if row.get(key) is None:
            row[key] = value
