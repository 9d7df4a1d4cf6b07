"""What the readers of Nsight Compute's pages gather: launches, their metrics, rules, facts -> tables."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.ncu.rules_and_problems import say_other_marks
from nsw.readers.ncu.unmeasured_launches import forget_sizes, needs_measuring, unless_zero
from nsw.readers.ncu.values import ABSENCE, Value, in_ns
from nsw.readers.text.quantities import has_other_mark

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pyarrow as pa

    from nsw.readers.model import Options, Report
    from nsw.tables.data import Row, TableData

ARROW_ROWS: Final = 20_000  # more metrics than this become an Arrow table instead of dicts

# The metric that tells how long a launch took: by label, by name, and both (--print-metric-name).
DURATIONS: Final = frozenset({"Duration", "gpu__time_duration.sum", "Duration (gpu__time_duration.sum)"})
DEVICE_NAMES: Final = frozenset({"device__attribute_display_name"})

# Columns of the metrics table that belong to the launch (or the summary), not to the metric.
OWNED: Final = (
    "block", "rank", "host", "pid", "device", "launch_id", "kernel", "invocations", "device_name",
)  # fmt: skip
_RULED: Final = ("block", "rank", "host", "pid", "device", "launch_id", "kernel")
_NAMES: Final = ("section", "metric", "description", "unit")
_SPREAD: Final = ("min", "max", "avg")
_NAN: Final = float("nan")

Names: TypeAlias = "tuple[str | None, str, str | None, str | None]"  # section, metric, description, unit


@dataclass(slots=True)
class Results:
    """Launches in order of appearance, and metrics as columns: a report may hold a million of them.

    A metric or rule points at its owner, the row of its launch or of its summary over launches.
    """

    launches: dict[Hashable, Row] = field(default_factory=dict)
    summaries: dict[Hashable, Row] = field(default_factory=dict)
    rules: list[tuple[Row, Row]] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    owners: list[Row] = field(default_factory=list)
    names: list[Names] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))  # of a launch; NaN: none
    halves: array[float] = field(default_factory=lambda: array("d"))
    texts: dict[int, str] = field(default_factory=dict)  # of the few metrics that have one, by their place
    spreads: dict[int, tuple[Value, Value, Value]] = field(default_factory=dict)  # likewise: min, max, avg
    other_marks: Counter[str] = field(default_factory=Counter)  # no numbers by the mark of the rest
    lost: int = 0  # launches without a header, which are counted in the numbers of those behind them

    @property
    def empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.launches or self.owners or self.facts)

    def launch(self, key: Hashable, **columns: Any) -> Row:
        """The row of a launch, made when its key is new; columns are those of the launches table."""
        row = self.launches.get(key)
        if row is None:
            row = self.launches[key] = columns
        return row

    def summary(self, key: Hashable, **columns: Any) -> Row:
        """The owner of a summary's metrics, made when its key is new; no row of the launches table."""
        row = self.summaries.get(key)
        if row is None:
            row = self.summaries[key] = columns
        return row

    def metric(self, owner: Row, names: Names, value: Value) -> None:
        """One metric of one launch, which may tell the launch's duration or the GPU's name."""
        if value.text is not None:
            self.texts[len(self.owners)] = value.text
            if has_other_mark(value.text):
                self.other_marks[value.text] += 1
        self.owners.append(owner)
        self.names.append(names)
        self.numbers.append(_NAN if value.number is None else value.number)
        self.halves.append(_NAN if value.half is None else value.half)
        if names[1] in DURATIONS:
            note_duration(owner, names[3], value)
        elif value.text and names[1] in DEVICE_NAMES:
            owner["device_name"] = value.text

    def spread(self, owner: Row, names: Names, least: Value, most: Value, mean: Value) -> None:
        """One metric over many launches."""
        self.spreads[len(self.owners)] = (least, most, mean)
        self.metric(owner, names, Value(text=mean.text or least.text or most.text))

    def rule(self, owner: Row, **columns: Any) -> None:
        """One piece of advice on a launch; columns are those of the rules table."""
        self.rules.append((owner, columns))

    def fill(self, report: Report, options: Options) -> None:
        """Put the tables that were asked for, and that have rows, into the report."""
        say_other_marks(report, self.other_marks)
        rows = [*self.launches.values(), *self.summaries.values()]
        if unmeasured := forget_sizes(rows, report):
            self._forget_zeros(unmeasured)
        name_kernels(rows)
        made: dict[str, TableData] = {}
        if self.launches:
            made["launches"] = [_less(row, "invocations") for row in self.launches.values()]
        if self.owners:
            made["metrics"] = self.metric_table() if len(self.owners) > ARROW_ROWS else self.metric_rows()
        if self.rules:
            made["rules"] = [{c: owner.get(c) for c in _RULED} | columns for owner, columns in self.rules]
        if self.facts:
            made["facts"] = self.facts
        report.tables |= {name: table for name, table in made.items() if options.wants(name)}

    def _forget_zeros(self, unmeasured: set[int]) -> None:
        for i, (owner, names) in enumerate(zip(self.owners, self.names, strict=True)):
            if id(owner) not in unmeasured or not needs_measuring(names[1]):
                continue
            if self.numbers[i] == 0:
                self.numbers[i] = self.halves[i] = _NAN
            if i in self.spreads:
                least, most, mean = self.spreads[i]
                self.spreads[i] = (unless_zero(least), unless_zero(most), unless_zero(mean))

    def metric_rows(self) -> list[Row]:
        """The metrics as row dicts."""
        columns = zip(self.owners, self.names, self.numbers, self.halves, strict=True)
        return [
            {c: owner.get(c) for c in OWNED}
            | dict(zip(_NAMES, names, strict=True))
            | {"text": self.texts.get(i), "value": known(number), "value_pm": known(half)}
            | _spread(self.spreads.get(i))
            for i, (owner, names, number, half) in enumerate(columns)
        ]

    def metric_table(self) -> pa.Table:
        """The metrics as an Arrow table; strings are dictionaries, for they repeat."""
        import pyarrow as pa

        from nsw.tables.data import arrow_schema

        types = {f.name: f.type for f in arrow_schema("metrics")}
        made: dict[str, pa.Array] = {}

        def put(column: str, cells: list[Any], places: pa.Array | None = None) -> None:
            """A column at a time, for a million Python objects are large; `places` say where cells repeat."""
            if not pa.types.is_string(types[column]):
                each = pa.array(cells, type=types[column])
                made[column] = each if places is None else each.take(places)
            elif places is None:
                made[column] = dictionary(cells)
            else:
                few = dictionary(cells)
                made[column] = pa.DictionaryArray.from_arrays(few.indices.take(places), few.dictionary)

        owners = {id(o): o for o in self.owners}
        at = {key: i for i, key in enumerate(owners)}
        places = pa.array([at[id(o)] for o in self.owners], type=pa.int32())
        for c in OWNED:
            put(c, [o.get(c) for o in owners.values()], places)
        names = {n: i for i, n in enumerate(dict.fromkeys(self.names))}
        places = pa.array([names[n] for n in self.names], type=pa.int32())
        for i, c in enumerate(_NAMES):
            put(c, [n[i] for n in names], places)
        put("text", [self.texts.get(i) for i in range(len(self.owners))])
        made |= {"value": nullable(self.numbers), "value_pm": nullable(self.halves)}
        if self.spreads:
            each = [_spread(self.spreads.get(i)) for i in range(len(self.owners))]
            for c in each[0]:
                put(c, [spread[c] for spread in each])
        return pa.table(made)


def _less(row: Row, column: str) -> Row:
    return {k: v for k, v in row.items() if k != column} if column in row else row


def known(number: float) -> float | None:
    """NaN becomes None."""
    return None if isnan(number) else number


def nullable(numbers: Iterable[float]) -> pa.Array:
    """An Arrow column in which NaN is null."""
    import numpy as np
    import pyarrow as pa

    plain = np.asarray(numbers)
    return pa.array(plain, mask=np.isnan(plain))


def _spread(values: tuple[Value, Value, Value] | None) -> Row:
    row: Row = {}
    for column, value in zip(_SPREAD, values or (ABSENCE,) * 3, strict=True):
        row[column], row[f"{column}_pm"] = value.number, value.half
    return row


def dictionary(cells: list[str | None]) -> pa.DictionaryArray:
    """An Arrow dictionary array of strings that repeat, without an array of all of them in between."""
    import pyarrow as pa

    places: dict[str, int] = {}
    indices = [None if c is None else places.setdefault(c, len(places)) for c in cells]
    return pa.DictionaryArray.from_arrays(pa.array(indices, type=pa.int32()), pa.array(list(places), type=pa.string()))


def note_duration(launch: Row, unit: str | None, value: Value) -> None:
    """Keep a launch's duration; of two that are printed, the one with more digits."""
    time = None if value.number is None else in_ns(value.number, unit)
    if time is None:
        return
    half = None if value.half is None else in_ns(value.half, unit)
    known = launch.get("duration_ns")
    if known is None or (launch.get("duration_ns_pm") or 0.0) > (half or 0.0):
        launch["duration_ns"], launch["duration_ns_pm"] = time, half


def name_kernels(rows: Iterable[Row]) -> None:
    """Demangle the kernels' names, all at once, and give launches their short names."""
    from nsw.tables.names import names_of

    rows = [r for r in rows if r.get("kernel")]
    known = names_of({r["kernel"] for r in rows})
    for row in rows:
        names = known[row["kernel"]]
        if names["mangled_name"]:
            row["mangled_name"], row["kernel"] = names["mangled_name"], names["name"]
        if "invocations" not in row:
            row["short_name"] = names["short_name"]
