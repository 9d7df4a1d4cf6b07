"""What an analysis answers with: typed blocks, each with its evidence.

Whoever shows them (a terminal, Markdown, JSON, a page) needs to know no analysis, and a block that it has no picture
for is a table: every block of numbers has columns and rows, and says which columns play which part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Literal

Unit = Literal[
    "text", "name", "sentence", "count", "number", "plain", "times", "ns", "byte", "byte/s", "FLOP/s", "GB/s", "%",
    "change %", "faster %", "faster x", "longer %", "longer x", "range", "achieved and limit %", "names and ns",
    "whole %", "change factor", "faster factor", "longer factor",
]  # fmt: skip
# of those that hold numbers: which a table aligns to the right
NUMBERS: Final[frozenset[Unit]] = frozenset({
    "count", "number", "plain", "times", "ns", "byte", "byte/s", "FLOP/s", "GB/s", "%", "change %", "faster %",
    "faster x", "longer %", "longer x", "range", "achieved and limit %", "whole %", "change factor", "faster factor",
    "longer factor",
})  # fmt: skip

Pair = tuple[float | None, float | None]
Cell = str | int | float | bool | Pair | tuple[tuple[str, float], ...] | None
Shown = Literal["always", "full", "data"]
Tone = Literal["plain", "warning", "aside", "heading"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows that prove what a block says.

    Attributes:
        table: What `nsw summarize --table` takes, or `runs`.
        cases: Whose rows; empty: those of all cases.
    """

    table: str
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a block.

    Attributes:
        name: Its key, the same in each version of nsw.
        title: Its heading for people.
        unit: Of its cells; `change factor` is per cent that people see as a factor, `range` (least, most), `achieved
            and limit %` a pair, `names and ns` several pairs of a name and its time.
    """

    name: str
    title: str
    unit: Unit = "text"


ColumnPart = tuple[Column, "Callable[..., Cell]"]  # a column, and what makes its cell of a member


def columns_and_rows(
    parts: Iterable[ColumnPart | None], members: Sequence[Any]
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    """The columns that there are (those left out are None), and a row a member."""
    present_parts = [part for part in parts if part is not None]
    rows = tuple(tuple(cell(member) for _, cell in present_parts) for member in members)
    return tuple(column for column, _ in present_parts), rows


def drop_empty_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    """The columns in which some row has a value, and these cells of the rows."""
    filled = [n for n in range(len(columns)) if any(row[n] not in {None, ""} for row in rows)]
    return tuple(columns[n] for n in filled), tuple(tuple(row[n] for n in filled) for row in rows if filled)


def names_with_column(columns: Iterable[Column], *names: str) -> tuple[str, ...]:
    """Those of the names that there are columns of."""
    column_names = {column.name for column in columns}
    return tuple(name for name in names if name in column_names)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer.

    Attributes:
        name: What it is, the same in each version of nsw: `scaling`, `hotspots`.
        evidence: The rows that prove it; empty where it states no number.
        case: The case that it belongs to; None: to the campaign.
        shown: The form of the answer that has it: the first screen and the full one, only that, or as data only.
    """

    kind: ClassVar[str] = "block"
    name: str
    _: KW_ONLY
    evidence: tuple[Evidence, ...] = ()
    case: str | None = None
    shown: Shown = "always"


@dataclass(frozen=True, slots=True)
class Finding(Block):
    """What the numbers say, which a person can act on.

    Attributes:
        text: Whole sentences.
        brief: The same in one sentence, where there is one.
        cause: The id of its cause (docs/causes.md), where a rule says it.
        healthy: It says what binds where nothing is wasted.
        remedy: What to try, the part of `text` that says so.
        gain_pct: The most that a cure wins, in per cent of the case's time; None: not estimated.
    """

    kind: ClassVar[str] = "finding"
    text: str
    brief: str | None = None
    cause: str | None = None
    remedy: str | None = None
    healthy: bool = False
    gain_pct: float | None = None

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases whose rows prove it."""
        return tuple(dict.fromkeys(case for proof in self.evidence for case in proof.cases))


@dataclass(frozen=True, slots=True)
class Note(Block):
    """A sentence beside the numbers: what is missing, what to beware of, the heading of a case."""

    kind: ClassVar[str] = "note"
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Table(Block):
    """Columns and rows.

    Attributes:
        title: Above it.
        columns: Those of each row, in their order.
        rows: The cells; None is what is not known.
        wide: The name of the column that gives way where there is little room.
        least: Names of columns that may go where there is no room, the least important first.
        repeats: How many of the first columns are left out of a row that repeats them.
        goes_on: Columns that find no room follow in another table below, instead of going.
        whole: Columns of shares that add up to 100: several in each row, the cells of a single one together. Rounding
            changes neither the first nor the last.
        best: Row and column of the best cell, which a screen marks.
        omitted: How many rows it lacks of all that there are.
        by_weight: The numbers of all rows, the weightiest first, where that is not their order: where there is no room
            for all, the first of these stay.
    """

    kind: ClassVar[str] = "table"
    drawn: ClassVar[tuple[str, ...]] = ()  # the fields that say what is drawn of it; a plain table has no picture
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    wide: str | None = None
    least: tuple[str, ...] = ()
    repeats: int = 0
    goes_on: bool = False
    whole: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    omitted: int = 0
    by_weight: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Hold the rows to the columns."""
        names = [column.name for column in self.columns]
        wrong = [row for row in self.rows if len(row) != len(names)]
        part_names = [name for part in self.parts.values() for name in ((part,) if isinstance(part, str) else part)]
        unknown = {name for name in (self.wide, *self.least, *part_names) if name is not None} - set(names)
        if wrong or unknown:
            raise ValueError(f"block {self.name}: {len(wrong)} rows have another length, no columns {unknown}")

    @property
    def parts(self) -> dict[str, str | tuple[str, ...]]:
        """Which column (or columns) plays which part in a picture of it."""
        return {name: getattr(self, name) for name in self.drawn}


@dataclass(frozen=True, slots=True)
class Curve(Table):
    """A line a series: `y` over `x`, one line for each combination of the columns `series`.

    `ideals` is the ideal y of each row, where there is one. A column of unit `range` is the scatter of y. `from_zero`
    is whether the axis of y begins there: of a level that hardly changes nobody would see it.
    """

    kind: ClassVar[str] = "curve"
    drawn: ClassVar[tuple[str, ...]] = ("x", "y", "series")
    x: str = ""
    y: str = ""
    series: tuple[str, ...] = ()
    ideals: tuple[float | None, ...] = ()
    from_zero: bool = True


@dataclass(frozen=True, slots=True)
class Bars(Table):
    """A bar a row: `value` beside its `label`, and beside the columns before it."""

    kind: ClassVar[str] = "bars"
    drawn: ClassVar[tuple[str, ...]] = ("label", "value")
    label: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class StackedBars(Table):
    """A bar a row, which its parts, the columns `values`, make up."""

    kind: ClassVar[str] = "stacked bars"
    drawn: ClassVar[tuple[str, ...]] = ("label", "values")
    label: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intervals(Table):
    """A ratio a row with its interval (a column of unit `range`) and its verdict; 1 is no difference."""

    kind: ClassVar[str] = "intervals"
    drawn: ClassVar[tuple[str, ...]] = ("label", "value", "interval", "verdict")
    label: str = ""
    value: str = ""
    interval: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Waterfall(Table):
    """A step a row, from `start` to `end`; the first and the last are wholes, those between lead from that to this."""

    kind: ClassVar[str] = "waterfall"
    drawn: ClassVar[tuple[str, ...]] = ("label", "start", "end")
    label: str = ""
    start: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Lanes(Table):
    """A box a row, `length` ns from `start` on, in the lane that the columns `lane` name; coloured by `series`.

    `level` is the column, if there is one, with the part of the lane's height that a box fills, in percent; null: all.
    `unmerged` are the same boxes before short neighbours became one, where a row stands for several: for zooming.
    """

    kind: ClassVar[str] = "lanes"
    drawn: ClassVar[tuple[str, ...]] = ("lane", "start", "length", "label", "series", "level")
    lane: tuple[str, ...] = ()
    start: str = ""
    length: str = ""
    label: str = ""
    series: tuple[str, ...] = ()
    level: tuple[str, ...] = ()
    unmerged: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class HeatMap(Table):
    """A field a row: `value` at `x` and `y`; `others` are columns that may be shown instead.

    A column of unit `range` is the scatter of the value before it.
    """

    kind: ClassVar[str] = "heat map"
    drawn: ClassVar[tuple[str, ...]] = ("x", "y", "value", "others")
    x: str = ""
    y: str = ""
    value: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A roof above the points of a scatter plot with logarithmic axes.

    Attributes:
        name: Of the roof: `FP32`, `DRAM`.
        y: Its height, where it is flat; None: it rises with x.
        slope: y for each x, where it rises; None: it is flat.
        source: Where it is from: report, data sheet.
    """

    name: str
    y: float | None
    slope: float | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Scatter(Table):
    """A point a row, under ceilings; one colour and shape for each combination of the columns `series`.

    The area of a point is its `size`, a share of 100 %, where that column is named.
    """

    kind: ClassVar[str] = "scatter"
    drawn: ClassVar[tuple[str, ...]] = ("x", "y", "label", "series", "size")
    x: str = ""
    y: str = ""
    label: str = ""
    series: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline(Table):
    """Stretches of time that follow each other: `length` (ns) of each `label`."""

    kind: ClassVar[str] = "timeline"
    drawn: ClassVar[tuple[str, ...]] = ("label", "length")
    label: str = ""
    length: str = ""
