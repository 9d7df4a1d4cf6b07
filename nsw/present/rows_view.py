"""Rows of any table on a terminal: as many columns as fit, by their importance, and a word on those that do not.

Numbers are never cut: a cut number is a wrong number. Names give way first, then whole columns.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from nsw.present.elided_names import elided
from nsw.present.rules_view import show_rules
from nsw.present.terminal import duration, number, rate, size, table
from nsw.present.untrusted_text import clean
from nsw.quantities import MOMENTS, Quantity, in_one_unit, moment
from nsw.tables.importance import COUNTS, IMPORTANT, IMPORTANT_IN_SUMMARIES
from nsw.tables.names import numbered
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rich.console import Console

    from nsw.present.fitted_tables import Fitted

# left out on a terminal: the long form of what another column tells
_HIDDEN: Final = frozenset({"run", "report", "mangled_name", "description"})
_NAMES: Final = ("short_name", "name", "kernel", "message", "text")
_ALSO_NAMES: Final = ("metric", "source", "key", "kernel", "section", "file", "module", "input_shapes")
_OF_UNIT: Final[Mapping[str, Callable[[float], str]]] = {
    "ns": duration, "byte": size, "byte/s": rate, "FLOP/s": partial(rate, of="FLOP"),
}  # fmt: skip
_KEPT: Final = 3  # columns that never go: the first by importance
_OF_A_RUN: Final = 5  # columns that must have room beside the run
_SAID_ONCE: Final = 60  # characters of what is the same in every row
_ELSEWHERE: Final = "--format csv"
_UNITS: Final[Mapping[str, str]] = {
    c.name: c.unit for t in TABLES.values() for c in t.columns if c.unit is not None and c.unit in _OF_UNIT
} | {
    "bytes_per_s": "byte/s", "time_ns": "ns", "dram_bytes_per_s": "byte/s", "peak_bytes_per_s": "byte/s",
    "shared_memory_bytes": "byte", "flop_per_s": "FLOP/s", "roof_flop_per_s": "FLOP/s", "peak_flop_per_s": "FLOP/s",
    "modelled_flop_per_s": "FLOP/s", "measured_flop_per_s": "FLOP/s",
}  # fmt: skip
_ENDS: Final = (("_pct", "%"), ("_s", "s"))  # of names of columns whose numbers have one unit already
# what the headings of a computed table cannot say
_ASIDES: Final[Mapping[str, str]] = {
    "roofline": "share: flop_per_s of roof_flop_per_s, the most that the peaks allow at this intensity (FLOP/byte of"
    " the level), empty where a peak is not known; side: which peak is the limit there; ceilings: where the peaks are"
    " from",
}
_FLOPS: Final = "flops"
# headings that say more, or the same as those of other tables: of cProfile, which measures wall time, and of cases
_TITLES: Final = {"cpu_time_s": "cumulative (s)", "case_id": "case"}
_START: Final = "start_ns"
_COMPARED: Final = ("avg_ns", "med_ns", "min_ns", "max_ns", "stddev_ns")  # statistics of the same durations
_FEWEST: Final = 3  # decimals of it


def show_rows(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[str], *, of: str,
    parameters: Collection[str] | None = None, keep: Iterable[str] = (),
) -> None:  # fmt: skip
    """Print rows.

    Args:
        out: Where to.
        title: Above them.
        rows: The rows.
        columns: Their columns, in order.
        of: The table that they are of, whose important columns are shown first.
        parameters: Of a table that a summary makes, the columns of the recipe's parameters, shown as they were typed.
        keep: Columns that are shown though they are usually left out.
    """
    if of == "rules" and parameters is None:
        show_rules(out, title, rows)
        return
    kept = set(keep)
    wanted = [
        c for c in columns
        if (c in kept or (c not in _HIDDEN and not c.endswith("_pm"))) and any(r.get(c) is not None for r in rows)
    ]  # fmt: skip
    if "short_name" in wanted:
        wanted = [c for c in wanted if c not in {"name", "kernel"}]
    if "block" in wanted and not any(row.get("block") for row in rows):  # the only one, nearly always
        wanted.remove("block")
    important = (IMPORTANT if parameters is None else IMPORTANT_IN_SUMMARIES).get(of, ())
    typed = [c for c in wanted if c in (parameters or ())]
    rows = [row if not typed else {**row, **{c: _as_typed(row.get(c)) for c in typed}} for row in rows]
    order = _by_importance(wanted, important, typed)
    if "run" in wanted and len({row["run"] for row in rows}) > 1:
        _show_runs(out, title, rows, wanted, order)
        return
    _show(out, title, rows, wanted, order)
    if parameters is not None and of in _ASIDES:
        out.print(f"({_ASIDES[of]})", style="dim")


def _show_runs(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], wanted: Sequence[str], order: Sequence[str]
) -> None:
    """Rows of several runs in one table, or where that has no room for what is important in a table each."""
    without = [c for c in order if c != "run"]
    order = [without[0], "run", *without[1:]]
    made, _ = _made(title, rows, wanted, order)
    hidden = made.hidden(out.width)
    if not any(c in hidden for c in _heads(rows, order[:_OF_A_RUN])):
        _show(out, title, rows, wanted, order)
        return
    columns = [c for c in wanted if c != "run"]
    for run, some in groupby(rows, key=lambda row: row["run"]):
        _show(out, f"{title} of {clean(run)}", list(some), columns, without)


def _show(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], wanted: Sequence[str], order: Sequence[str]
) -> None:
    made, cells = _made(title, rows, wanted, order)
    everywhere: list[str] = []
    if made.hidden(out.width):  # what is the same in every row is printed once
        same = [c for c in cells if c not in order[:_KEPT] and _constant(cells[c]) is not None]
        heads = dict(zip(wanted, _heads(rows, wanted), strict=True))
        everywhere = [_with_unit(c, heads[c], elided(str(cells[c][0]), _SAID_ONCE)) for c in same]
        wanted, order = [c for c in wanted if c not in same], [c for c in order if c not in same]
        made, _ = _made(title, rows, wanted, order)
    out.print(made)
    if everywhere:
        out.print("(in each of these rows: " + ", ".join(everywhere) + ")", style="dim")


def _made(
    title: str, rows: Sequence[Mapping[str, Any]], wanted: Sequence[str], order: Sequence[str]
) -> tuple[Fitted, dict[str, list[str | None]]]:
    """The table, and its cells by column."""
    with_own_unit = {"value", "unit"} <= set(wanted)
    cells = {c: [_cell(c, r, with_own_unit) for r in rows] for c in wanted}
    if "short_name" in cells and _are_instances(rows):
        cells["short_name"] = list(numbered([name or "" for name in cells["short_name"]]))
    if _START in cells:
        cells[_START] = _starts([row.get(_START) for row in rows])
    heads = dict(zip(wanted, _heads(rows, wanted), strict=True))
    for c in wanted:
        cells[c] = [
            None if text is None else str(text) for text in in_one_unit(heads[c], cells[c], _beside(c, rows))[1]
        ]
    numbers = {c: heads[c] + (">" if _is_number(rows, c) else "") for c in wanted}
    wide = next((c for c in _NAMES if c in wanted), None)
    least = [heads[c] for c in reversed(order[_KEPT:]) if c != wide]
    made = table(
        title, [numbers[c] for c in wanted], zip(*(cells[c] for c in wanted), strict=True),
        wide=None if wide is None else heads[wide], names=_ALSO_NAMES, least=least, elsewhere=_ELSEWHERE,
    )  # fmt: skip
    return made, cells


def _by_importance(wanted: Sequence[str], important: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """The columns, the most important first; parameters follow what never goes."""
    listed = [c for c in important if c in wanted and c not in parameters]
    rest = [c for c in wanted if c not in listed and c not in parameters]
    return [*listed[:_KEPT], *parameters, *listed[_KEPT:], *rest]


def _as_typed(value: Any) -> str | None:
    """A person's own number or word, which no unit and no rounding may change."""
    return None if value is None else clean(value)


def _heads(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """The headings, each with the unit of its column's numbers."""
    return [_head(c, [r.get(c) for r in rows], _beside(c, rows)) for c in columns]


def _beside(column: str, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Values of the columns that a person compares with this one in a row: all of them have one unit."""
    if column not in _COMPARED:
        return []
    return [value for row in rows for c in _COMPARED if isinstance(value := row.get(c), int | float)]


def _head(column: str, values: Sequence[Any], beside: Sequence[float]) -> str:
    if column == _START:
        return "start (ms)"
    if column in _UNITS:
        cells = [cell(column, value) for value in values]
        if any(isinstance(one, Quantity) for one in cells):
            bare = column.removesuffix("_ns").removesuffix("_bytes")
            return in_one_unit(bare, cells, beside)[0]
    if column == _FLOPS:
        return f"{column} (FLOP)"
    if column in _TITLES:
        return _TITLES[column]
    for end, unit in _ENDS:
        if column.endswith(end) and any(isinstance(value, int | float) for value in values):
            return f"{column.removesuffix(end)} ({unit})"
    return column


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
    if isinstance(value, int | float) and column in MOMENTS:
        return moment(value)
    if column in COUNTS and isinstance(value, float) and value.is_integer():  # a mean
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}" if column in COUNTS else str(value)
    return number(value) if isinstance(value, float) else clean(value)


def _starts(values: Sequence[int | None]) -> list[str | None]:
    """Nanoseconds as milliseconds, with every digit that one of them has: events differ by little."""
    digits = next((n for n in range(_FEWEST, 6) if all((v or 0) % 10 ** (6 - n) == 0 for v in values)), 6)
    return [None if v is None else f"{v / 1e6:,.{digits}f}" for v in values]


def _cell(column: str, row: Mapping[str, Any], with_own_unit: bool) -> str | None:
    """A cell; of rows that name their own unit the value and the unit are shown in one for people."""
    value = row.get(column)
    if with_own_unit and column in {"value", "unit"}:
        number_, unit = row.get("value"), row.get("unit")
        if isinstance(number_, int | float) and unit in _OF_UNIT:
            shown, _, of = _OF_UNIT[str(unit)](number_).rpartition(" ")
            return shown if column == "value" else of
        if column == "value" and isinstance(value, float) and value.is_integer():
            return f"{int(value):,}"
    return cell(column, value)


def _with_unit(column: str, head: str, value: str) -> str:
    """`total 12.3 ms` of a column whose heading is `total (ms)`."""
    name, _, unit = head.partition(" (")
    return f"{name} {value} {unit.removesuffix(')')}" if unit else f"{column} {value}"


def _constant(values: Sequence[str | None]) -> str | None:
    """The value of all of several rows; None where they differ."""
    return values[0] if len(values) > 1 and len(set(values)) == 1 else None


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return all(isinstance(r.get(column), int | float | None) for r in rows)
