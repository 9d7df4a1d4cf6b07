"""Columns of a recipe's parameters: named `param.NAME`, so that none is taken for a column of nsw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.analysis.blocks import Column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.blocks import Cell, Unit


def column(parameter: str, unit: Unit = "text") -> Column:
    """The column of a parameter."""
    return Column(f"param.{parameter}", parameter, unit)


def columns(parameters: Iterable[str]) -> tuple[Column, ...]:
    """The columns of several."""
    return tuple(column(name) for name in parameters)


def cell(value: Any) -> Cell:
    """A parameter's value; what is no number and no text is shown as Python writes it."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
