"""Cells of blocks as texts for people, by the unit of their column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.quantities import change, duration, number, percent, rate, size, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.blocks import Cell, Table, Unit


def as_text(cell: Cell, unit: Unit) -> str:
    """One cell; `-` for what is not known."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return _TEXTS.get(unit, str)(cell)


def cells(block: Table) -> list[list[str]]:
    """All cells of a block; what the first columns repeat of the row above is left out."""
    found, above = [], None
    for row in block.rows:
        texts = [as_text(cell, column.unit) for cell, column in zip(row, block.columns, strict=True)]
        head = row[: block.repeats]
        if block.repeats and head == above:
            texts[: block.repeats] = [""] * block.repeats
        above = head
        found.append(texts)
    return found


def _count(value: Any) -> str:
    """A count, which is a mean where it is not a whole number."""
    return f"{value:,.0f}" if value == int(value) else number(value)


def _occupancy(pair: Any) -> str:
    achieved, limit = pair
    if limit is None:
        return percent(achieved)
    return f"{'-' if achieved is None else f'{achieved:,.1f}'} of {percent(limit)}"


_TEXTS: Final[Mapping[Unit, Callable[[Any], str]]] = {
    "count": _count,
    "number": number,
    "plain": str,
    "times": lambda value: f"{value:,.2f}",
    "ns": duration,
    "byte": size,
    "byte/s": rate,
    "FLOP/s": lambda value: rate(value, "FLOP"),
    "GB/s": lambda value: f"{value:,.1f}",
    "%": percent,
    "change %": change,
    "range": lambda pair: spread(*pair),
    "achieved and limit %": _occupancy,
    "names and ns": lambda pairs: ", ".join(f"{name} {duration(ns)}" for name, ns in pairs),
}
