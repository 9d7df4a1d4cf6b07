"""The schema of every table, from schema.csv: one row there is one column of a table, with its type, unit and meaning.

A row without a column is the table itself, `*names` the columns that several tables share; all begin with `*origin`:
where a row comes from. nsw fills its `run` and `report` itself, the reader the rest where the report has it.

Readers fill these columns and no others; what a report does not say is null, never zero. A column
`x` that may come from rounded text has a twin `x_pm`, half the width of the last printed digit:
`4.2567ms` is x = 4256700, x_pm = 50. A null twin says that x is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from nsw.resources import csv_rows

Type = Literal["int64", "float64", "string", "bool"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `rounded` ones have a `_pm` twin in the table."""

    name: str
    type: Type
    unit: str | None
    meaning: str
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in order, with the twins of the rounded ones at the end."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        twins = tuple(
            Column(f"{c.name}_pm", "float64", c.unit, f"half-width of the rounding of {c.name}; null: exact")
            for c in self.columns
            if c.rounded
        )
        object.__setattr__(self, "columns", self.columns + twins)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(c.name for c in self.columns)


def _read_schema() -> dict[str, Table]:
    """The tables by name."""
    meanings: dict[str, str] = {}
    columns: dict[str, list[Column]] = {}  # of a table, or of a group that tables share
    for row in csv_rows("tables/schema.csv"):
        table, name = row["table"], row["column"]
        if not name:
            meanings[table], columns[table] = row["meaning"], [*columns["*origin"]]
        elif name.startswith("*"):
            columns[table] += columns[name]
        else:
            column = Column(name, cast("Type", row["type"]), row["unit"] or None, row["meaning"], bool(row["rounded"]))
            columns.setdefault(table, []).append(column)
    return {name: Table(name, meaning, tuple(columns[name])) for name, meaning in meanings.items()}


TABLES: Mapping[str, Table] = MappingProxyType(_read_schema())

# Made by default; the rest, one row an event, only when the file holds nothing else or when asked for.
TRACES = frozenset({"gpu_trace", "api_trace", "iteration_trace", "nvtx_trace", "gpu_metric_trace", "cpu_trace"})


_JSON_TYPES: Final = {"int64": "integer", "float64": "number", "string": "string", "bool": "boolean"}


def tables_json_schema() -> dict[str, Any]:
    """JSON Schema of the tables of reports: an object with an array of rows for each table name."""
    return {
        "type": "object",
        "description": "Tables of reports: a row is an object, what a report does not say is null.",
        "properties": {
            table.name: {
                "type": "array",
                "description": table.meaning,
                "items": {
                    "type": "object",
                    "properties": {
                        c.name: {
                            "type": [_JSON_TYPES[c.type], "null"],
                            "description": c.meaning + (f" [{c.unit}]" if c.unit else ""),
                        }
                        for c in table.columns
                    },
                },
            }
            for table in TABLES.values()
        },
    }
