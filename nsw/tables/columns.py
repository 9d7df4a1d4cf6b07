"""What the tables' columns are: type, unit, meaning; and the columns that many tables share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(c.name for c in self.columns)


def integer(name: str, unit: str | None, meaning: str, *, rounded: bool = False) -> Column:
    """A column of int64."""
    return Column(name, "int64", unit, meaning, rounded)


def real(name: str, unit: str | None, meaning: str, *, rounded: bool = False) -> Column:
    """A column of float64."""
    return Column(name, "float64", unit, meaning, rounded)


def text(name: str, meaning: str) -> Column:
    """A column of strings."""
    return Column(name, "string", None, meaning)


# Where a row comes from. `run` and `report` are filled by nsw itself; the rest by the reader where the report tells.
ORIGIN = (
    text("run", "the campaign's run that the report is of; null outside a campaign"),
    text("report", "path of the report, below the campaign's folder where there is one"),
    integer("block", None, "which result block of the report: 0 for the first (nvprof: process or run)"),
    integer("rank", None, "MPI or distributed rank"),
    text("host", "host name"),
    integer("pid", None, "process id"),
    integer("device", None, "GPU ordinal as the process saw it"),
)

NAMES = (
    text("name", "as in the report, demangled where it was mangled, less a correlation id at its end"),
    text(
        "short_name",
        "for people: the function's own name, without return type, template arguments, parameters",
    ),
    text("mangled_name", "the mangled name where the report had one"),
)

STATISTICS = (
    real(
        "time_pct",
        "%",
        "share of its table as printed (nsys stats: kernels and copies apart), else of all",
        rounded=True,
    ),
    real("total_ns", "ns", "sum of the durations", rounded=True),
    integer("calls", None, "how many"),
    real("avg_ns", "ns", "mean duration", rounded=True),
    real("med_ns", "ns", "median duration", rounded=True),
    real("min_ns", "ns", "shortest duration", rounded=True),
    real("max_ns", "ns", "longest duration", rounded=True),
    real("stddev_ns", "ns", "sample standard deviation of the durations (n - 1)", rounded=True),
)

PHASE = text("phase", "setup | warmup | steady | end | all (no iterations were found in the process)")
PHASE_OF_ROW = text("phase", "setup | warmup | steady | end; null: no iterations were found in the process")
