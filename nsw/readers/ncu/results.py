"""What the readers of Nsight Compute's pages gather -> tables, and what they leave out."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.messages import SEE_MESSAGES
from nsw.readers.model import Options, Report
from nsw.readers.ncu.values import ABSENCE, PrintedValue, PrintedValues, time_in_ns
from nsw.readers.text.quantities import has_other_mark
from nsw.resources import csv_rows
from nsw.tables.parquet_tables import Row, TableData
from nsw.wording import singular_or_count

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.readers.timeline.statistics import IntArray

__all__ = [
    "ARROW_ROWS",
    "RULE_COLUMNS",
    "Names",
    "NcuResults",
    "OmittedLines",
    "arrow_with_nan_as_null",
    "ncu_version_in_facts",
    "none_if_nan",
    "section_title",
    "session_fact_rows",
    "to_arrow_column",
    "to_arrow_dictionary",
    "warn_of_guessed_decimal_mark",
]


ARROW_ROWS: Final = 20_000  # more metrics than this become an Arrow table instead of dicts

# The metric that tells how long a launch took: by label, by name, and both (--print-metric-name).
DURATIONS: Final = frozenset({"Duration", "gpu__time_duration.sum", "Duration (gpu__time_duration.sum)"})
DEVICE_NAMES: Final = frozenset({"device__attribute_display_name"})

# Columns of the metrics table that belong to the launch (or the summary), not to the metric.
OWNED: Final = (
    "block", "rank", "host", "pid", "device", "launch_id", "kernel", "invocations", "device_name",
)  # fmt: skip
_RULED: Final = ("block", "rank", "host", "pid", "device", "launch_id", "kernel")
RULE_COLUMNS: Final = ("section", "rule", "type", "message", "speedup_type")  # as `Page.ruled` gives them
_ADVICE: Final = (*RULE_COLUMNS, "speedup_pct", "speedup_pct_pm")
_NAMES: Final = ("section", "metric", "description", "unit")
_SPREAD: Final = ("min", "max", "avg")
_NAN: Final = float("nan")
SUMMARY: Final = -1  # the id of an owner that is no launch

Names: TypeAlias = "tuple[str | None, str, str | None, str | None]"  # section, metric, description, unit


@dataclass(slots=True)
class NcuResults:
    """Owners, metrics and rules as columns: a report may hold a million of them.

    An owner is a launch or a summary over launches. Owners, metrics and rules are numbered from 0 in their order.
    """

    common: list[Row] = field(default_factory=list)  # columns of the launches table that owners may share
    common_of: array[int] = field(default_factory=lambda: array("i"))  # of each owner
    launch_ids: array[int] = field(default_factory=lambda: array("q"))  # of each owner; negative: a summary
    names: dict[Names, int] = field(default_factory=dict)
    owner_of: array[int] = field(default_factory=lambda: array("i"))  # of each metric
    name_of: array[int] = field(default_factory=lambda: array("i"))  # of each metric
    numbers: array[float] = field(default_factory=lambda: array("d"))  # of each metric of a launch; NaN: none
    halves: array[float] = field(default_factory=lambda: array("d"))
    texts: dict[int, str] = field(default_factory=dict)  # of the few metrics that have one, by their place
    # likewise: min, max, avg
    spreads: dict[int, tuple[PrintedValue, PrintedValue, PrintedValue]] = field(default_factory=dict)
    rule_of: array[int] = field(default_factory=lambda: array("i"))  # of each rule: its owner
    advice: dict[str, list[Any]] = field(default_factory=lambda: {c: [] for c in _ADVICE})  # behind `advice_tables`
    advice_tables: list[pa.Table] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    next_id: int = 0  # of the next launch in a page that does not number them
    durations: array[float] = field(default_factory=lambda: array("d"))  # of each owner, in ns; NaN: none
    duration_halves: array[float] = field(default_factory=lambda: array("d"))
    device_names: dict[int, str] = field(default_factory=dict)  # of the owners that have it among their metrics

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.common_of or self.facts)

    def add_owner(self, launch_id: int, **columns: Any) -> int:
        """Add an owner by the columns of the launches table; returns its number.

        Args:
            launch_id: The id of the launch; `SUMMARY` for a summary.
            columns: Its other columns.
        """
        self.common_of.append(self.add_common_columns(columns))
        self.launch_ids.append(launch_id)
        return len(self.common_of) - 1

    def add_common_columns(self, columns: Row) -> int:
        """Add columns that owners have in common; returns their index in `common`."""
        self.common.append(columns)
        return len(self.common) - 1

    def common_columns_of_owner(self, owner: int) -> Row:
        """What an owner may have in common with others, which must not be changed."""
        return self.common[self.common_of[owner]]

    def code_of_names(self, names: Names) -> int:
        """The number of a metric's names."""
        return self.names.setdefault(names, len(self.names))

    def add_metric(self, owner: int, names: Names, value: PrintedValue) -> None:
        """Add one metric of one launch.

        Args:
            owner: The number of the launch or the summary.
            names: Section, metric, description and unit.
            value: The value, in that unit.
        """
        if value.text is not None:
            self.texts[len(self.numbers)] = value.text
        self.owner_of.append(owner)
        self.name_of.append(self.code_of_names(names))
        self.numbers.append(_NAN if value.number is None else value.number)
        self.halves.append(_NAN if value.half is None else value.half)

    def add_metrics(self, owner_of: IntArray, name_of: IntArray, values: PrintedValues) -> None:
        """Add many metrics of launches; each array has one element per metric.

        Args:
            owner_of: The number of its owner.
            name_of: The number that `code_of_names` gave.
            values: The values, each in the unit of its name.
        """
        first = len(self.numbers)
        self.texts.update((first + at, text) for at, text in zip(values.text_positions, values.texts, strict=True))
        self.owner_of.frombytes(owner_of.astype("i").tobytes())
        self.name_of.frombytes(name_of.astype("i").tobytes())
        self.numbers.frombytes(values.numbers.tobytes())
        self.halves.frombytes(values.halves.tobytes())

    def add_metric_over_launches(
        self, owner: int, names: Names, minimum: PrintedValue, maximum: PrintedValue, mean: PrintedValue
    ) -> None:
        """Add one metric over many launches.

        Args:
            owner: The number of the summary.
            names: Section, metric, description and unit.
            minimum: The least value of a launch, in that unit.
            maximum: The greatest.
            mean: The mean.
        """
        self.spreads[len(self.numbers)] = (minimum, maximum, mean)
        self.add_metric(owner, names, PrintedValue(text=mean.text or minimum.text or maximum.text))

    def add_rule(self, owner: int, **columns: Any) -> None:
        """One piece of advice on a launch; columns are those of the rules table."""
        self.rule_of.append(owner)
        for title, cells in self.advice.items():
            cells.append(columns.get(title))

    def add_rules(self, rule_of: IntArray, advice: pa.Table) -> None:
        """Many of them, with the number of the owner of each."""
        self._pack_rules_as_arrow()
        self.rule_of.frombytes(rule_of.astype("i").tobytes())
        self.advice_tables.append(advice)

    def _pack_rules_as_arrow(self) -> None:
        import pyarrow as pa

        if self.advice["rule"]:
            columns = {c: to_arrow_column("rules", c, cells) for c, cells in self.advice.items()}
            columns["message"] = columns["message"].dictionary_decode()  # few repeat
            self.advice_tables.append(pa.table(columns))
            self.advice = {c: [] for c in _ADVICE}

    def fill_report(self, report: Report, options: Options) -> None:
        """Put the tables that were asked for, and that have rows, into the report."""
        report_other_decimal_marks(report, Counter(filter(has_other_mark, self.texts.values())))
        if len(self.numbers) > ARROW_ROWS:
            import pyarrow as pa

            pa.default_memory_pool().release_unused()  # the tables take as much again
        self._set_durations_from_metrics()
        codes = {code for names, code in self.names.items() if names[1] in DEVICE_NAMES}
        texts = self.texts.items() if codes else ()
        self.device_names = {self.owner_of[at]: text for at, text in texts if text and self.name_of[at] in codes}
        add_kernel_names(self.common)
        self._clear_unmeasured_launches(report)
        launches = [owner for owner, launch_id in enumerate(self.launch_ids) if launch_id >= 0]
        tables: dict[str, TableData] = {}
        if launches:
            is_large = len(launches) > ARROW_ROWS
            tables["launches"] = self._launch_table(launches) if is_large else [*map(self._owner_row, launches)]
        if self.numbers:
            tables["metrics"] = self._metric_table() if len(self.numbers) > ARROW_ROWS else self._metric_rows()
        if self.rule_of:
            tables["rules"] = self._rule_table() if len(self.rule_of) > ARROW_ROWS else self._rule_rows()
        if self.facts:
            tables["facts"] = self.facts
        report.tables |= {name: table for name, table in tables.items() if options.wants(name)}

    def _set_durations_from_metrics(self) -> None:
        """Take each owner's duration from its metrics; of two that are printed, the one with more digits."""
        import numpy as np

        absent = array("d", [_NAN]) * len(self.common_of)
        self.durations, self.duration_halves = absent, absent[:]
        half_in_ns = cache(time_in_ns)
        name_of, numbers, halves = np.asarray(self.name_of), np.asarray(self.numbers), np.asarray(self.halves)
        places, times, widths = [], [], []
        for names, code in self.names.items():
            if names[1] not in DURATIONS or time_in_ns(0, unit := names[3]) is None:
                continue
            at = np.flatnonzero((name_of == code) & ~np.isnan(numbers))
            places.append(at)
            times.append(np.fromiter((time_in_ns(number, unit) for number in numbers[at].tolist()), float, len(at)))
            widths.append([half if isnan(half) else half_in_ns(half, unit) or 0.0 for half in halves[at].tolist()])
        if not places:
            return
        at, time, width = (np.concatenate(parts) for parts in (places, times, widths))
        owners = np.asarray(self.owner_of)[at]
        order = np.lexsort((at, np.nan_to_num(width), owners))
        owners, first = np.unique(owners[order], return_index=True)
        np.asarray(self.durations)[owners] = time[order[first]]
        np.asarray(self.duration_halves)[owners] = width[order[first]]

    def _clear_unmeasured_launches(self, report: Report) -> None:
        """Make the sizes and figures of launches that never ran absent, and say so once.

        A launch without threads does not exist: CUDA refuses it, so these sizes are ncu's way to say nothing.
        """
        sizeless = {i for i, row in enumerate(self.common) if row.get("grid") == NO_SIZE == row.get("block_size")}
        unmeasured = [owner for owner, common in enumerate(self.common_of) if common in sizeless] if sizeless else []
        if not unmeasured:
            return
        unmeasured.sort(key=lambda owner: self.launch_ids[owner] < 0)
        first = unmeasured[0]
        described = _describe_unmeasured(
            self.common_columns_of_owner(first), self.launch_ids[first], len(unmeasured) - 1
        )
        for common in sizeless:
            self.common[common] |= {"grid": None, "block_size": None}
        for owner in unmeasured:
            self.durations[owner] = self.duration_halves[owner] = _NAN
        had_zeros = self._clear_zero_metrics(frozenset(unmeasured))
        wrote = "only zeros for its size and figures" if had_zeros else "size 0 and no values"
        report.warn(f"{described}: ncu wrote {wrote}, which are absent here", fix=SEE_MESSAGES)

    def _clear_zero_metrics(self, unmeasured: frozenset[int]) -> bool:
        """Make the zeros of launches absent; whether there are any."""
        names, had_zeros = list(self.names), False
        for i, (owner, code) in enumerate(zip(self.owner_of, self.name_of, strict=True)):
            if owner not in unmeasured or names[code][1].startswith(_OF_THE_GPU):
                continue
            if self.numbers[i] == 0:
                self.numbers[i] = self.halves[i] = _NAN
                had_zeros = True
            if i in self.spreads:
                minimum, maximum, mean = self.spreads[i]
                self.spreads[i] = (absent_if_zero(minimum), absent_if_zero(maximum), absent_if_zero(mean))
        return had_zeros

    def _owner_row(self, owner: int) -> Row:
        """An owner by the columns of the launches table, and the invocations of a summary."""
        row = self.common_columns_of_owner(owner) | {
            "duration_ns": none_if_nan(self.durations[owner]),
            "duration_ns_pm": none_if_nan(self.duration_halves[owner]),
        }
        if self.launch_ids[owner] >= 0:
            row["launch_id"] = self.launch_ids[owner]
        if owner in self.device_names:
            row["device_name"] = self.device_names[owner]
        return row

    def _owner_column(self, table: str, name: str, owners: pa.Array) -> pa.Array:
        """A column of a table whose rows belong to these owners; they have it in common but for id and device name."""
        import numpy as np
        import pyarrow as pa

        if name == "launch_id":
            ids = np.asarray(self.launch_ids)
            return pa.array(ids.astype(np.int32) if ids.max() < 1 << 31 else ids, mask=ids < 0).take(owners)
        cells, codes = [columns.get(name) for columns in self.common], np.array(self.common_of)
        if name == "device_name" and self.device_names:
            words = {text: len(cells) + i for i, text in enumerate(dict.fromkeys(self.device_names.values()))}
            codes[list(self.device_names)] = [words[text] for text in self.device_names.values()]
            cells += words
        return to_arrow_column(table, name, cells, pa.array(codes).take(owners))

    def _launch_table(self, launches: list[int]) -> pa.Table:
        """The launches as an Arrow table, a column at a time, for half a million dicts are large."""
        import numpy as np
        import pyarrow as pa

        owners = pa.array(launches, pa.int32())
        names = dict.fromkeys(name for columns in self.common for name in columns if name != "invocations")
        names |= {"launch_id": None} | ({"device_name": None} if self.device_names else {})
        columns = {name: self._owner_column("launches", name, owners) for name in names}
        for name, numbers in (("duration_ns", self.durations), ("duration_ns_pm", self.duration_halves)):
            columns[name] = arrow_with_nan_as_null(np.asarray(numbers)[launches])
        return pa.table(columns)

    def _metric_rows(self) -> list[Row]:
        owners = [{c: row.get(c) for c in OWNED} for row in map(self._owner_row, range(len(self.common_of)))]
        names = [dict(zip(_NAMES, name_parts, strict=True)) for name_parts in self.names]
        columns = zip(self.owner_of, self.name_of, self.numbers, self.halves, strict=True)
        return [
            owners[owner]
            | names[code]
            | {"text": self.texts.get(i), "value": none_if_nan(number), "value_pm": none_if_nan(half)}
            | _min_max_avg_columns(self.spreads.get(i))
            for i, (owner, code, number, half) in enumerate(columns)
        ]

    def _metric_table(self) -> pa.Table:
        """The metrics as an Arrow table, a column at a time, for a million Python objects are large."""
        import pyarrow as pa

        owners, names = pa.array(self.owner_of, pa.int32()), pa.array(self.name_of, pa.int32())
        columns = {name: self._owner_column("metrics", name, owners) for name in OWNED}
        columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
        for i, name in enumerate(_NAMES):
            columns[name] = to_arrow_column("metrics", name, [name_parts[i] for name_parts in self.names], names)
        columns["text"] = self._text_column()
        columns |= {"value": arrow_with_nan_as_null(self.numbers), "value_pm": arrow_with_nan_as_null(self.halves)}
        if self.spreads:
            each = [_min_max_avg_columns(self.spreads.get(i)) for i in range(len(self.numbers))]
            columns |= {c: to_arrow_column("metrics", c, [spread[c] for spread in each]) for c in each[0]}
        return pa.table(columns)

    def _text_column(self) -> pa.DictionaryArray:
        """The texts of the few metrics that have one."""
        import numpy as np
        import pyarrow as pa

        words = {text: code for code, text in enumerate(dict.fromkeys(self.texts.values()))}
        codes, is_absent = np.zeros(len(self.numbers), np.int32), np.ones(len(self.numbers), bool)
        positions = np.fromiter(self.texts, np.int64, len(self.texts))
        codes[positions], is_absent[positions] = [words[text] for text in self.texts.values()], False
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=is_absent), pa.array(list(words), pa.string()))

    def _rule_rows(self) -> list[Row]:
        owners = [{c: row.get(c) for c in _RULED} for row in map(self._owner_row, range(len(self.common_of)))]
        advice: list[Row] = [row for table in self.advice_tables for row in table.to_pylist()]
        advice += [dict(zip(self.advice, cells, strict=True)) for cells in zip(*self.advice.values(), strict=True)]
        return [owners[owner] | row for owner, row in zip(self.rule_of, advice, strict=True)]

    def _rule_table(self) -> pa.Table:
        import pyarrow as pa

        owners = pa.array(self.rule_of, pa.int32())
        columns = {c: self._owner_column("rules", c, owners) for c in _RULED}
        self._pack_rules_as_arrow()
        advice = pa.concat_tables(self.advice_tables).unify_dictionaries().combine_chunks()
        return pa.table({**columns, **dict(zip(advice.column_names, advice.columns, strict=True))})


def to_arrow_column(table: str, name: str, cells: list[Any], indices: pa.Array | None = None) -> pa.Array:
    """A column of a table; strings are dictionaries, for they repeat, and numbers are small where they can be.

    Args:
        table: The name of the table.
        name: The name of the column.
        cells: The cells, or those that repeat.
        indices: Which of the cells each row has.
    """
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    type_ = arrow_schema(table).field(name).type
    if not pa.types.is_string(type_):
        is_small = pa.types.is_integer(type_) and all(cell is None or abs(cell) < 1 << 31 for cell in cells)
        each = pa.array(cells, type=pa.int32() if is_small else type_)
        return each if indices is None else each.take(indices)
    few = to_arrow_dictionary(cells)
    return few if indices is None else pa.DictionaryArray.from_arrays(few.indices.take(indices), few.dictionary)


def none_if_nan(number: float) -> float | None:
    """The number in its own unit; None for NaN."""
    return None if isnan(number) else number


def arrow_with_nan_as_null(numbers: Iterable[float]) -> pa.Array:
    """An Arrow column in which NaN is null."""
    import numpy as np
    import pyarrow as pa

    plain = np.asarray(numbers)
    return pa.array(plain, mask=np.isnan(plain))


def _min_max_avg_columns(values: tuple[PrintedValue, PrintedValue, PrintedValue] | None) -> Row:
    row: Row = {}
    for column, value in zip(_SPREAD, values or (ABSENCE,) * 3, strict=True):
        row[column], row[f"{column}_pm"] = value.number, value.half
    return row


def to_arrow_dictionary(cells: list[str | None]) -> pa.DictionaryArray:
    """An Arrow dictionary array of strings that repeat."""
    import pyarrow as pa

    return pa.array(cells, type=pa.string()).dictionary_encode()


def add_kernel_names(rows: Iterable[Row]) -> None:
    """Demangle the kernels' names, all at once, and give launches their short names."""
    from nsw.tables.names import name_columns_by_printed_name

    rows = [r for r in rows if r.get("kernel")]
    names_by_kernel = name_columns_by_printed_name({r["kernel"] for r in rows})
    for row in rows:
        names = names_by_kernel[row["kernel"]]
        if names["mangled_name"]:
            row["mangled_name"], row["kernel"] = names["mangled_name"], names["name"]
        if "invocations" not in row:
            row["short_name"] = names["short_name"]


# Sections by the identifier that rules name -> by the title that metrics have.
_SECTIONS: Final = {row["identifier"]: row["title"] for row in csv_rows("readers/data/ncu_sections.csv")}


@dataclass(slots=True)
class OmittedLines:
    """What stood in the file and is in no table."""

    damaged: list[int] = field(default_factory=list)
    of_two: dict[int | str, int] = field(default_factory=dict)  # ids of which rows name another kernel: the first line
    source_lines: int = 0  # without any figure
    repeated: int = 0  # of a source page, that are there twice

    def add_problems_to_report(self, report: Report, *, has_no_results: bool) -> None:
        """Name it: an error where it is damage, or all that the file held."""
        if self.damaged:
            rows = singular_or_count(len(self.damaged), "1 row does", "rows do")
            report.error(
                f"{rows} not match the header: left out",
                line=self.damaged[0],
                fix="print the report again: ncu --import REPORT --page raw --csv",
            )
        message = "belongs to two launches: rows whose kernel or size differs from its first row are left out"
        report.errors(
            [f"ID {number} {message}" for number in self.of_two],
            f"{len(self.of_two)} IDs in all belong to two launches",
            lines=list(self.of_two.values()),
            fix="print the report again: ncu --import REPORT --page details --csv",
        )
        if self.repeated:
            rows = singular_or_count(self.repeated, "a row is", "rows are")
            report.error(
                f"{rows} there twice in a source page: the second is left out",
                fix="print the page again: ncu --import REPORT --page source --csv",
            )
        if self.source_lines:
            (report.error if has_no_results else report.warn)(
                f"a source page of {self.source_lines} lines without figures",
                fix="print the page with them: ncu --import REPORT --page source --print-source sass --csv",
            )


def section_title(name: str) -> str:
    """The title of a section, which metrics have, by what rules call it."""
    return _SECTIONS.get(name, name)


def report_other_decimal_marks(report: Report, figures: Counter[str]) -> None:
    """Report figures that are none by the decimal mark of the rest: how often each text is there."""
    if figures:
        several = singular_or_count(figures.total(), "a figure is", "figures are")
        report.error(
            f"{several} written with another decimal mark than the rest ('{next(iter(figures))}'): kept as text,"
            " without a number",
            fix="print the report again: ncu --import REPORT --page details --csv",
        )


def warn_of_guessed_decimal_mark(report: Report, block: int) -> None:
    """Say that a comma or a point could have meant either."""
    report.warn(
        f"block {block}: no number shows which mark is the decimal one; read '1,234' as 1234 and '1.234' as 1.234",
        fix="print again with LC_ALL=C",
    )


_DEVICE: Final = re.compile(r"Device (\d{1,6})")
_KEYS: Final = {"display_name": "gpu_name", "display_driver_version": "driver_version"}
_VERSION: Final = re.compile(r"(?<!\d)\d++(?:\.\d+)+")  # each number is tried once


def session_fact_rows(header: Sequence[str], row: Sequence[str], rank: int | None) -> list[Row]:
    """The facts of one line of a session page: one per device under `Device Attribute`, else one.

    Args:
        header: The titles of the line's table.
        row: The fields of the line.
        rank: The launcher's rank whose lines these are; None without ranks.

    Returns:
        Rows of the facts table; empty where the line holds no fact.
    """
    if len(row) < 2 or not row[0].strip():
        return []
    if header[0] == "Process Id":
        pid = row[0].strip()
        if not (pid.isascii() and pid.isdigit() and len(pid) < 19) or not row[1].strip():
            return []
        return [{"rank": rank, "key": "process_name", "text": row[1].strip(), "pid": int(pid)}]
    if header[0] != "Device Attribute":
        return [_session_fact_row(row[0], row[1], rank, None)] if row[1].strip() else []
    return [
        _session_fact_row(row[0], cell, rank, int(match[1]) if (match := _DEVICE.fullmatch(title.strip())) else None)
        for title, cell in zip(header[1:], row[1:], strict=False)
        if cell.strip()
    ]


def ncu_version_in_facts(facts: Iterable[Row]) -> str | None:
    """The version of the ncu that made the report, as its session page tells."""
    for fact in facts:
        if fact["key"] == "nsight_compute_target" and (match := _VERSION.search(fact.get("text") or "")):
            return match[0]
    return None


def _session_fact_row(name: str, cell: str, rank: int | None, device: int | None) -> Row:
    key = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")[:80]
    cell = cell.strip()
    fact: Row = {"rank": rank, "device": device, "key": _KEYS.get(key, key)}
    is_integer = cell.isascii() and cell.isdigit() and len(cell) < 16
    return fact | ({"value": float(cell)} if is_integer else {"text": cell})


NO_SIZE: Final = "(0, 0, 0)"
_OF_THE_GPU: Final = "device__attribute_"  # known without any measurement: a zero is a value


def absent_if_zero(value: PrintedValue) -> PrintedValue:
    """A value that is not zero."""
    return ABSENCE if value.number == 0 else value


def _describe_unmeasured(launch: Row, launch_id: int, other_count: int) -> str:
    kernel = launch.get("short_name") or launch.get("kernel")
    if "invocations" in launch:
        others = f" and of {other_count} more kernels" if other_count else ""
        return f"the launches of {kernel}{others} were not measured"
    subject = f"launch {launch_id} ({kernel})"
    return f"{subject} and {other_count} more were not measured" if other_count else f"{subject} was not measured"
