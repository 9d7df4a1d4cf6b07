"""Reports and rows of any table on a terminal: as many columns as fit, by their importance, and a word on the others.

Numbers are never cut: a cut number is a wrong number. Names give way first, then whole columns: the first ones of a
table's list stay at least, and columns that are not listed follow in the table's own order. Advice of Nsight Compute is
a paragraph each, since a table has no room for sentences with addresses.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from nsw.present.problems import LABELS, STYLES
from nsw.present.terminal import TextTable, shorten_middle
from nsw.present.untrusted_text import clean_line
from nsw.quantities import MOMENTS, Quantity, duration, format_moment, in_one_unit, number, percent, rate, size
from nsw.resources import csv_rows
from nsw.tables import TABLES, TRACES, full_rows, row_count
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from nsw.present.problems import Merged
    from nsw.readers.model import Report


# whole numbers of which there can be more or fewer; all others without a unit name something, such as a process
COUNTS: Final = frozenset({
    "calls", "primitive_calls", "samples", "allocations", "invocations", "matches", "iterations", "warmup", "steady",
    "gaps", "to_gpu", "from_gpu", "writing", "opening", "late_calls", "operations", "waits", "values", "streams",
    "default_stream", "lock_threads", "slow", "slower_operations", "slower_spawns", "slowest_spawns", "spawns",
    "earlier_loads", "period", "gpu_ops", "med_gpu_ops", "collectives", "channels", "compiles", "late_compiles",
    "kernels", "blocks", "threads", "copies", "launches", "measured", "runs", "baseline_runs", "cores", "ranks",
})  # fmt: skip


_ORIGIN: Final = ("host", "rank", "pid", "device")  # where a launch was, shown where it is not the same for all

_LEAST_NAME: Final = 40  # characters of a kernel's name


@cache
def important_columns(of: str) -> dict[str, list[str]]:
    """The columns of each table, the most important first, as first_columns.csv lists them.

    Args:
        of: `reports`, or `campaigns` for the tables that a summary makes; there the columns of parameters follow the
            case.
    """
    rows = csv_rows("present/first_columns.csv")
    return {row["table"]: row["columns"].split() for row in rows if row["shown_of"] == of}


def show_rules(out: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print type, estimated speed-up, rule and launch of each row of table `rules`, and its message below.

    Args:
        out: Where to.
        title: Above them.
        rows: The rows.
    """
    out.print(title, style="bold")
    before: tuple[object, ...] | None = None
    varies = [c for c in _ORIGIN if len({row.get(c) for row in rows}) > 1]
    for row in rows:
        launch_key = (*(row.get(c) for c in varies), row.get("run"), row.get("launch_id"), row.get("kernel"))
        if launch_key != before:
            out.print()
            out.print(_rule_launch(row, varies, out.width), style="bold")
        before = launch_key
        out.print(f"  {_rule_headline(row)}")
        out.print(f"    {clean_line(row.get('message') or '')}")
    out.print()


def _rule_launch(row: Mapping[str, Any], varies: Sequence[str], width: int) -> str:
    words = [f"{column} {clean_line(row.get(column))}" for column in varies]
    words += [clean_line(row["run"])] if row.get("run") is not None else []
    words += [f"launch {row['launch_id']}"] if row.get("launch_id") is not None else []
    launch_text = ", ".join(words)
    kernel = shorten_middle(clean_line(row.get("kernel") or ""), max(_LEAST_NAME, width - len(launch_text) - len(": ")))
    return ": ".join(part for part in (launch_text, kernel) if part) or "all launches"


def _rule_headline(row: Mapping[str, Any]) -> str:
    speedup = row.get("speedup_pct")
    gain = None if speedup is None else f"estimated speed-up {percent(speedup)}"
    if gain and row.get("speedup_type"):
        gain += f" ({clean_line(row['speedup_type'])})"
    facts = (row.get("type"), gain, row.get("rule"), row.get("section"))
    return ", ".join(clean_line(fact) for fact in facts if fact)


# left out on a terminal: the long form of what another column tells
_HIDDEN: Final = frozenset({"run", "report", "mangled_name", "description"})
_NAMES: Final = ("short_name", "name", "kernel", "message", "text")
_ALSO_NAMES: Final = ("metric", "source", "key", "kernel", "section", "file", "module", "input_shapes")
_OF_UNIT: Final[Mapping[str, Callable[[float], str]]] = {
    "ns": duration, "byte": size, "byte/s": rate, "FLOP/s": partial(rate, unit_name="FLOP"),
}  # fmt: skip
_FIXED_COLUMNS: Final = 3  # columns that never go: the first by importance
_OF_A_RUN: Final = 5  # columns that must have room beside the run
_NAMED: Final = 8  # columns with one value that are named
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
_SUFFIXES: Final = {"_ns": "ns", "_bytes": "byte", "bytes_per_s": "byte/s", "flop_per_s": "FLOP/s"}
# what the headings of a computed table cannot say
_ASIDES: Final[Mapping[str, str]] = {
    "figures": "a row is of the runs of a case's pass, in `nsw query` of a run: the first screen prints the median,"
    " `nsw compare` the geometric mean; stddev: sample standard deviation (n - 1)",
    "scaling": "computing, copies with no kernel beside them, nccl_alone and idle add up to the iteration",
    "roofline": "share: flop_per_s of roof_flop_per_s, the most that the peaks allow at this intensity (FLOP/byte of"
    " the level), empty where a peak is not known; side: which peak is the limit there; ceilings: where the peaks are"
    " from",
}
_KNOWN_COLUMNS: Final = frozenset(TABLES["api_summary"].column_names)  # names and statistics need no explanation
_FLOPS: Final = "flops"
# headings that say more, or the same as those of other tables: of cProfile, which measures wall time, and of cases
_TITLES: Final = {"cpu_time_s": "cumulative (s)", "case_id": "case", "void": "set aside"}
_START: Final = "start_ns"
_COMPARED: Final = (
    ("avg_ns", "med_ns", "min_ns", "max_ns", "stddev_ns"),  # statistics of the same durations
    ("iteration_ns", "computing_ns", "copies_ns", "nccl_alone_ns", "idle_ns"),  # a sum and its parts
)
_FEWEST: Final = 3  # decimals of it


def show_rows(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[str], *, table_name: str,
    parameters: Collection[str] | None = None, keep: Iterable[str] = (), explain: bool = False,
    among: Iterable[Mapping[str, Any]] = (),
) -> None:  # fmt: skip
    """Print rows.

    Args:
        out: Where to.
        title: Above them.
        rows: The rows.
        columns: Their columns, in order.
        table_name: The table that they are of, whose important columns are shown first.
        parameters: Of a table that a summary makes, the columns of the recipe's parameters, shown as they were typed.
        keep: Columns that are shown though they are usually left out.
        explain: Whether what the table and its columns mean follows, where the schema of tables has it.
        among: All rows that these were cut from, by which kernels of one short name are numbered; empty: these.
    """
    if table_name == "rules" and parameters is None:
        show_rules(out, title, rows)
        return
    rows, is_numbered = _number_short_names(rows, among or rows)
    kept_columns = set(keep)
    shown_columns = [
        c
        for c in columns
        if (c in kept_columns or (c not in _HIDDEN and not c.endswith("_pm")))
        and any(r.get(c) is not None for r in rows)
    ]
    if "short_name" in shown_columns:
        shown_columns = [c for c in shown_columns if c not in {"name", "kernel"}]
    if "block" in shown_columns and not any(row.get("block") for row in rows):  # the only one, nearly always
        shown_columns.remove("block")
    important = important_columns("reports" if parameters is None else "campaigns").get(table_name, [])
    typed = [c for c in shown_columns if c in (parameters or ())]
    # a person's own number or word, which no unit and no rounding may change
    rows = [{**row, **{c: clean_line(row[c]) for c in typed if row.get(c) is not None}} for row in rows]
    listed = [c for c in important if c in shown_columns and c not in typed]
    rest = [c for c in shown_columns if c not in listed and c not in typed]
    # the most important first; parameters follow what never goes
    order = [*listed[:_FIXED_COLUMNS], *typed, *listed[_FIXED_COLUMNS:], *rest]
    if "run" in shown_columns and len({row["run"] for row in rows}) > 1:
        _show_runs(out, title, rows, shown_columns, order)
        return
    meaning = _column_meanings(table_name, shown_columns) if explain else {}
    fitted, cells = _fitted_table(title, rows, shown_columns, order)
    if is_column_a_line := len(rows) == 1 and bool(meaning) and bool(fitted.hidden_headings(out.width)):
        heads = zip(shown_columns, _column_headings(rows, shown_columns), strict=True)
        lines = [(head, cells[column][0], meaning.get(column, "")) for column, head in heads]
        out.print(TextTable(title, ("column", "value>", "meaning"), lines))
    else:
        printed_columns = _show_rows(out, title, rows, shown_columns, order)
        meaning = {column: text for column, text in meaning.items() if column in printed_columns}
    if is_numbered:
        out.print(f"([1], [2]: kernels with one short name and different names, which {_ELSEWHERE} has)", style="dim")
    if parameters is not None and table_name in _ASIDES:
        out.print(f"({_ASIDES[table_name]})", style="dim")
    if explain and table_name in TABLES:
        titles = dict(zip(shown_columns, _column_headings(rows, shown_columns), strict=True))
        meanings = [
            f"  {titles[column].partition(' (')[0]}: {_meaning_of_values(text, {row.get(column) for row in rows})}"
            for column, text in meaning.items()
            if not is_column_a_line and column not in _KNOWN_COLUMNS
        ]
        out.print("\n".join([f"{table_name}: {TABLES[table_name].meaning}", *meanings]), style="dim")


def _column_meanings(table_name: str, shown_columns: Sequence[str]) -> dict[str, str]:
    """What the columns of a table of the schema mean; empty for other tables."""
    table = TABLES.get(table_name)
    return {c.name: c.meaning for c in table.columns if c.name in shown_columns} if table is not None else {}


def _meaning_of_values(meaning: str, values: set[Any]) -> str:
    """The meaning of a column; of one that lists its words, `a (...) | b | c, d`, those that these rows have."""
    first, *others = meaning.split(" | ")
    subject, colon, word = first.partition(": ")
    if not others or not re.match(r"[\w-]+(?: \(|\Z)", word):
        subject, colon, word = "", "", first
    parts = [word, *others]
    present = [part for part in parts if not values.isdisjoint(re.split(", |: ", part.partition(" (")[0]))]
    return f"{subject}{colon}{' | '.join(present or parts)}"


def _number_short_names(
    rows: Sequence[Mapping[str, Any]], among: Iterable[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """The rows with a number before each short name that kernels of several names have, and whether some has one.

    Args:
        rows: The rows.
        among: All rows that these were cut from: of these cases or runs.
    """

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row.get("case"), row.get("run"), row.get("short_name")

    names: dict[tuple[Any, ...], dict[Any, int]] = {}
    for row in among:
        if row.get("short_name") and row.get("name"):
            alike = names.setdefault(key(row), {})
            alike.setdefault(row["name"], len(alike) + 1)
    if all(len(alike) == 1 for alike in names.values()):
        return rows, False
    labelled_rows = [
        {**row, "short_name": f"[{alike[row['name']]}] {row['short_name']}"}
        if len(alike := names.get(key(row), {})) > 1
        else row
        for row in rows
    ]
    return labelled_rows, any(row is not old for row, old in zip(labelled_rows, rows, strict=True))


def _show_runs(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], shown_columns: Sequence[str], order: Sequence[str]
) -> None:
    """Rows of several runs in one table, or where that has no room for what is important in a table each."""
    without = [c for c in order if c != "run"]
    order = [without[0], "run", *without[1:]]
    fitted, _ = _fitted_table(title, rows, shown_columns, order)
    hidden = fitted.hidden_headings(out.width)
    if not any(c in hidden for c in _column_headings(rows, order[:_OF_A_RUN])):
        _show_rows(out, title, rows, shown_columns, order)
        return
    columns = [c for c in shown_columns if c != "run"]
    for run, run_rows in groupby(rows, key=lambda row: row["run"]):
        _show_rows(out, f"{title} of {clean_line(run)}", list(run_rows), columns, without)


def _show_rows(
    out: Console, title: str, rows: Sequence[Mapping[str, Any]], shown_columns: Sequence[str], order: Sequence[str]
) -> list[str]:
    """Print a table; the columns that it has."""
    fitted, cells = _fitted_table(title, rows, shown_columns, order)
    everywhere: list[str] = []
    if fitted.hidden_headings(out.width):  # what is the same in every row is printed once
        constant_columns = [
            c
            for c, texts in cells.items()
            if c not in order[:_FIXED_COLUMNS] and len(texts) > 1 and texts[0] is not None and len(set(texts)) == 1
        ]
        for c, head in zip(constant_columns, _column_headings(rows, constant_columns), strict=True):
            name, _, unit = head.partition(" (")  # `total 12.3 ms` of a column whose heading is `total (ms)`
            value = shorten_middle(str(cells[c][0]), _SAID_ONCE)
            everywhere.append(f"{name} {value} {unit.removesuffix(')')}" if unit else f"{c} {value}")
        shown_columns = [c for c in shown_columns if c not in constant_columns]
        order = [c for c in order if c not in constant_columns]
        fitted, _ = _fitted_table(title, rows, shown_columns, order)
    out.print(fitted)
    if everywhere:
        out.print(f"(in each of these rows: {first_names(everywhere, _NAMED)})", style="dim")
    hidden = {*fitted.hidden_headings(out.width)}
    return [
        c for c, head in zip(shown_columns, _column_headings(rows, shown_columns), strict=True) if head not in hidden
    ]


def _fitted_table(
    title: str, rows: Sequence[Mapping[str, Any]], shown_columns: Sequence[str], order: Sequence[str]
) -> tuple[TextTable, dict[str, list[str | None]]]:
    """The table, and its cells by column."""
    with_own_unit = {"value", "unit"} <= set(shown_columns)
    cells = {c: [_cell_text(c, r, with_own_unit) for r in rows] for c in shown_columns}
    if _START in cells:  # as milliseconds, with every digit that one of them has: events differ by little
        times = [row.get(_START) for row in rows]
        digits = next((n for n in range(_FEWEST, 6) if all((t or 0) % 10 ** (6 - n) == 0 for t in times)), 6)
        cells[_START] = [None if t is None else f"{t / 1e6:,.{digits}f}" for t in times]
    heads = dict(zip(shown_columns, _column_headings(rows, shown_columns), strict=True))
    for c in shown_columns:
        cells[c] = [
            None if text is None else str(text)
            for text in in_one_unit(heads[c], cells[c], _compared_values(c, rows))[1]
        ]
    numbers = {
        c: heads[c] + (">" if all(isinstance(r.get(c), int | float | None) for r in rows) else "")
        for c in shown_columns
    }
    wide = next((c for c in _NAMES if c in shown_columns), None)
    droppable = [heads[c] for c in reversed(order[_FIXED_COLUMNS:]) if c != wide]
    fitted = TextTable(
        title, [numbers[c] for c in shown_columns], zip(*(cells[c] for c in shown_columns), strict=True),
        wide=None if wide is None else heads[wide], names=_ALSO_NAMES, droppable=droppable, elsewhere=_ELSEWHERE,
    )  # fmt: skip
    return fitted, cells


def unit_of(column: str) -> str | None:
    """The unit of a column of a table that a summary makes, by its name; None where it has none."""
    ends = (*_SUFFIXES.items(), *(() if column.endswith("_per_s") else _ENDS))
    return _UNITS.get(column) or next((unit for end, unit in ends if column.endswith(end)), None)


def _column_headings(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """The headings, each with the unit of its column's numbers."""
    return [_column_heading(c, [r.get(c) for r in rows], _compared_values(c, rows)) for c in columns]


def _compared_values(column: str, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Values of the columns that a person compares with this one in a row: all of them have one unit."""
    group = next((columns for columns in _COMPARED if column in columns), ())
    return [value for row in rows for c in group if isinstance(value := row.get(c), int | float)]


def _column_heading(column: str, values: Sequence[Any], compared_values: Sequence[float]) -> str:
    if column == _START:
        return "start (ms)"
    if unit_of(column) in _OF_UNIT:
        cells = [format_cell(column, value) for value in values]
        if any(isinstance(shown_cell, Quantity) for shown_cell in cells):
            bare = column.removesuffix("_ns").removesuffix("_bytes")
            return in_one_unit(bare, cells, compared_values)[0]
    if column == _FLOPS:
        return f"{column} (FLOP)"
    if column in _TITLES:
        return _TITLES[column]
    for end, unit in _ENDS:
        if column.endswith(end) and any(isinstance(value, int | float) for value in values):
            return f"{column.removesuffix(end)} ({unit})"
    return column


def format_cell(column: str, value: Any) -> str | None:
    """A value for people, by the unit of its column."""
    if value is None or isinstance(value, str | bool):
        return value if value is None else clean_line(value)
    if isinstance(value, int | float) and (as_text := _OF_UNIT.get(unit_of(column) or "")):
        return as_text(value)
    if isinstance(value, int | float) and column in MOMENTS:
        return format_moment(value)
    if column in COUNTS and isinstance(value, float) and value.is_integer():  # a mean
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}" if column in COUNTS else str(value)
    return number(value) if isinstance(value, float) else clean_line(value)


def _cell_text(column: str, row: Mapping[str, Any], with_own_unit: bool) -> str | None:
    """A cell; of rows that name their own unit the value and the unit are shown in one for people."""
    value = row.get(column)
    if with_own_unit and column in {"value", "unit"}:
        number_, unit = row.get("value"), row.get("unit")
        if isinstance(number_, int | float) and unit in _OF_UNIT:
            number_text, _, unit_text = _OF_UNIT[str(unit)](number_).rpartition(" ")
            return number_text if column == "value" else unit_text
        if column == "value" and isinstance(value, float) and value.is_integer():
            return f"{int(value):,}"
    return format_cell(column, value)


_RANGES = 5  # names in a line
_OF_KERNELS = ("metrics", "launches", "rules")  # which the kernel table sums up
_SHARED = ("gpu_summary", "api_summary")
_FULL_SHARE = 101.0  # per cent: printed shares are rounded


def show_report(
    out: Console, report: Report, max_rows: int, reported: Merged, *, kernels: bool = True, explain: bool = False,
    notes: bool = True,
) -> None:  # fmt: skip
    """Print a report: its problems and the first rows of each table, without columns that have no values.

    Args:
        out: Where to.
        report: The report.
        max_rows: Rows of each table.
        reported: The problems that were printed before; those of this report are added.
        kernels: Whether metrics, launches and rules are one row a kernel instead.
        explain: Whether what the tables and their columns mean follows.
        notes: Whether its notes are printed, which are of the whole report.
    """
    tool_text = " ".join(str(p) for p in (report.tool, report.tool_version) if p) or "unknown"
    out.print(
        f"{clean_line(report.path)}: {clean_line(tool_text)}" + (f" ({report.format})" if report.format else ""),
        style="bold",
    )
    for problem in report.problems:
        if LABELS[problem.level] == LABELS["note"] and not notes:
            continue
        if not reported.add(report.path, problem.level, problem.message, problem.fix):
            continue
        position = f"line {problem.line}: " if problem.line else ""
        out.print(f"{LABELS[problem.level]}: {position}{clean_line(problem.message)}", style=STYLES[problem.level])
        if problem.fix:
            out.print(f"  hint: {clean_line(problem.fix)}")
    summed_up = kernels and _show_kernels(out, report)
    for name, data in report.tables.items():
        total = row_count(data)
        if not total or (summed_up and name in _OF_KERNELS):
            continue
        top = list(islice(full_rows(name, data), max_rows))
        among = () if name in TRACES else full_rows(name, data)
        omitted = f" (first {max_rows} of {total:,}; `--top {total}` prints all)" if total > max_rows else ""
        show_rows(out, name + omitted, top, TABLES[name].column_names, table_name=name, explain=explain, among=among)
        if name in _SHARED and sum(row["time_pct"] or 0.0 for row in top) > _FULL_SHARE:
            out.print(
                "(time (%) is the share within each part of the report, as printed; the sum is over 100 %)\n",
                style="dim",
            )


def _show_kernels(out: Console, report: Report) -> bool:
    """Print the kernel table; False where the report has no metrics of kernels."""
    if not row_count(report.tables.get("metrics", [])):
        return False
    from nsw.analysis.answer.kernels import kernel_table_blocks
    from nsw.analysis.kernels import kernel_table_of_report
    from nsw.present.summary_view import show_blocks

    kernel_rows = kernel_table_of_report(report.tables)
    if not any(kernel.metrics for kernel in kernel_rows):
        return False
    show_blocks(out, kernel_table_blocks(kernel_rows), "always")
    for line in _launch_facts(report):
        out.print(line)
    table_counts = ", ".join(
        f"{name} {row_count(report.tables[name]):,}" for name in _OF_KERNELS if name in report.tables
    )
    out.print(f"(weighted over the launches; rows of {table_counts}: `--table metrics` lists them)", style="dim")
    return True


def _launch_facts(report: Report) -> Iterator[str]:
    """The facts of the only launch, or the NVTX ranges of several launches."""
    launches = full_rows("launches", report.tables.get("launches", []))
    if row_count(report.tables.get("launches", [])) == 1:
        launch = next(iter(launches))
        launch_facts = (("grid", launch["grid"]), ("block", launch["block_size"]), ("NVTX", launch["nvtx"]))
        if any(fact for _, fact in launch_facts):
            yield f"launch {launch['launch_id']}: " + ", ".join(
                f"{fact_name} {clean_line(fact)}" for fact_name, fact in launch_facts if fact
            )
        return
    ranges = Counter(launch["nvtx"] for launch in launches if launch["nvtx"])
    if ranges:
        range_counts = [
            f"{clean_line(name)} ({times:,} launch{'' if times == 1 else 'es'})" for name, times in ranges.most_common()
        ]
        yield f"NVTX ranges: {first_names(range_counts, _RANGES)}"
