"""Rows of any table on a terminal: as many columns as fit, in their order, and a word on those that do not.

Numbers are never cut: a cut number is a wrong number. Names give way first, then whole columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.present.terminal import duration, number, numbered, plural, rate, size, table
from nsw.present.text_of_others import clean
from nsw.quantities import Quantity, in_one_unit
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

# left out on a terminal: the long form of what another column tells
_HIDDEN = frozenset({"run", "report", "mangled_name", "description"})
_NAMES = ("short_name", "name", "kernel", "message", "text")
# what a table is looked at for comes before where it was measured
_FIRST = frozenset(
    {
        "metric",
        "unit",
        "value",
        "avg",
        "rule",
        "type",
        "message",
        "speedup_pct",
        "duration_ns",
        "total_ns",
        "calls",
        "time_pct",
        "self_s",
        "cpu_time_s",
    }
)
# numbers that name something: 1,884 is no process
_IDS = frozenset({
    "block", "rank", "pid", "tid", "device", "context", "stream", "correlation", "graph", "graph_node", "launch_id",
    "line", "return_value", "iteration", "slowest", "registers", "task", "exit_code",
})  # fmt: skip
_OF_UNIT = {"ns": duration, "byte": size, "byte/s": rate}
_LEAST_NAME = 24
_GAP = 3
_UNITS = {c.name: c.unit for t in TABLES.values() for c in t.columns if c.unit in {"ns", "byte", "byte/s"}} | {
    "bytes_per_s": "byte/s"
}


def show_rows(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[str], *, keep: Iterable[str] = ()
) -> None:
    """Print rows; `keep` names columns that are shown though they are usually left out."""
    kept = set(keep)
    wanted = [
        c for c in columns
        if (c in kept or (c not in _HIDDEN and not c.endswith("_pm"))) and any(r.get(c) is not None for r in rows)
    ]  # fmt: skip
    if "short_name" in wanted and "name" in wanted:
        wanted.remove("name")
    with_own_unit = {"value", "unit"} <= set(wanted)
    cells = {c: [_cell(c, r, with_own_unit) for r in rows] for c in wanted}
    if "short_name" in cells and _are_instances(rows):
        cells["short_name"] = list(numbered([name or "" for name in cells["short_name"]]))
    heads = {c: c + (">" if _is_number(rows, c) else "") for c in cells}
    for c in list(cells):
        bare = c.removesuffix("_ns").removesuffix("_bytes") if any(isinstance(v, Quantity) for v in cells[c]) else c
        heads[c], texts = in_one_unit(bare + heads[c].removeprefix(c), cells[c])
        cells[c] = [None if text is None else str(text) for text in texts]
    wide = next((c for c in _NAMES if c in wanted), None)
    shown, left_out = _fitting(cells, heads, wide, out.width)
    everywhere: dict[str, str] = {}
    told: dict[str, str] = {}
    if left_out:  # what is the same in every row is said once
        everywhere = {c: v for c in cells if c not in _FIRST and (v := _constant(cells[c])) is not None}
        told = {c: _with_unit(c, heads[c], v) for c, v in everywhere.items()}
        cells = {c: v for c, v in cells.items() if c not in everywhere}
        wide = next((c for c in _NAMES if c in cells), None)
        shown, left_out = _fitting(cells, heads, wide, out.width)
    out.print(table(title, [heads[c] for c in shown], zip(*(cells[c] for c in shown), strict=True), wide=wide))
    if everywhere:
        out.print("(in each of these rows: " + ", ".join(told.values()) + ")", style="dim")
    if left_out:
        out.print(
            f"({plural(len(left_out), 'column')} more at {_room(cells, heads)} columns of width, or with --format csv:"
            f" {', '.join(left_out)})",
            style="dim",
        )


def _are_instances(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each row is a kernel of its own: a launch or a device more of the same one is no other instance."""
    names = [r.get("name") for r in rows]
    return len(set(names)) == len(names)


def cell(column: str, value: Any) -> str | None:
    """A value for people, by the unit of its column."""
    if value is None or isinstance(value, str | bool):
        return value if value is None else clean(value)
    if isinstance(value, int | float) and column in _UNITS:
        return _OF_UNIT[_UNITS[column]](value)
    if isinstance(value, int) and column in _IDS:
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value) if isinstance(value, float) else clean(value)


def _cell(column: str, row: Mapping[str, Any], with_own_unit: bool) -> str | None:
    """A cell; of rows that name their own unit the value and the unit are shown in one for people."""
    value = row.get(column)
    if with_own_unit and column in {"value", "unit"}:
        number_, unit = row.get("value"), row.get("unit")
        if isinstance(number_, int | float) and unit in _OF_UNIT:
            shown, _, of = _OF_UNIT[unit](number_).rpartition(" ")
            return shown if column == "value" else of
        if column == "value" and isinstance(value, float) and value.is_integer():
            return f"{int(value):,}"
    return cell(column, value)


def _with_unit(column: str, head: str, value: str) -> str:
    """`total 12.3 ms` of a column whose heading is `total (ms)`."""
    name, _, unit = head.removesuffix(">").partition(" (")
    return f"{name} {value} {unit.removesuffix(')')}" if unit else f"{column} {value}"


def _constant(values: Sequence[str | None]) -> str | None:
    """The value of all of several rows; None where they differ."""
    return values[0] if len(values) > 1 and len(set(values)) == 1 else None


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return all(isinstance(r.get(column), int | float | None) for r in rows)


def _room(cells: Mapping[str, list[str | None]], heads: Mapping[str, str]) -> int:
    """How wide all columns are together."""
    return 2 + sum(_needs(cells, heads).values())


def _needs(cells: Mapping[str, list[str | None]], heads: Mapping[str, str]) -> dict[str, int]:
    """The room of each column; its heading wraps between words, as before the unit."""
    return {
        c: max([*(len(w) for w in heads[c].removesuffix(">").split()), *(len(v) for v in values if v)]) + _GAP
        for c, values in cells.items()
    }


def _fitting(
    cells: Mapping[str, list[str | None]], heads: Mapping[str, str], wide: str | None, width: int
) -> tuple[list[str], list[str]]:
    """The columns that fit, and those that do not; the wide one counts as little as it may become."""
    needs = _needs(cells, heads)
    if wide is not None:
        needs[wide] = min(needs[wide], _LEAST_NAME + _GAP)
    shown, room = ([wide] if wide else []), width - 1 - (needs[wide] if wide else 0)
    for column in sorted(cells, key=lambda c: c not in _FIRST):
        if column != wide and needs[column] <= room:
            shown.append(column)
            room -= needs[column]
        elif column != wide:
            room = min(room, 0)  # what follows in the table's order is not moved forward
    order = list(cells)
    return sorted(shown, key=order.index), [c for c in order if c not in shown]
