"""Columns of launches, metrics and rules, gathered over a large file -> tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nsw.readers.ncu.csv.block import NO_TEXT
from nsw.readers.ncu.csv.find_plain_rows import OddFileError
from nsw.readers.ncu.csv.page import OWNER_COLUMNS, range_names
from nsw.readers.ncu.results import ARROW_ROWS, DEVICE_NAMES, DURATIONS, dictionary, nullable
from nsw.readers.ncu.rules_and_problems import RULE_COLUMNS, section_title
from nsw.readers.ncu.values import in_ns, whole
from nsw.readers.text.quantities import has_other_mark

if TYPE_CHECKING:
    from nsw.readers.model import Options, Report
    from nsw.readers.ncu.csv.block import Coded, Values
    from nsw.readers.ncu.csv.find_plain_rows import Numbers
    from nsw.readers.ncu.results import Names
    from nsw.readers.ncu.values import Parser

_EXACT = 2.0**53  # whole numbers below are exact


class Codes:
    """Words that repeat, each with a code, and a code for each row."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.parts: list[Numbers] = []

    def add(self, codes: Numbers, words: list[Any]) -> None:
        """Rows with codes of their own; NO_TEXT stays."""
        table = [self.known.setdefault(w, len(self.known)) for w in words]
        self.parts.append(np.array([*table, NO_TEXT], dtype=np.int32)[codes])

    def take(self) -> Numbers:
        """The codes of all rows, which are let go."""
        parts, self.parts = self.parts, []
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


@dataclass(slots=True)
class Columns:
    """What blocks add, in the order of the file but for runs and rules of odd lines."""

    runs: int = 0
    run_lines: list[Numbers] = field(default_factory=list)
    keys: list[Numbers] = field(default_factory=list)  # block, id, process
    owners: dict[str, Codes] = field(default_factory=lambda: {n: Codes() for n in OWNER_COLUMNS[2:]})
    metric_runs: list[Numbers] = field(default_factory=list)
    names: Codes = field(default_factory=Codes)
    texts: Codes = field(default_factory=Codes)
    numbers: list[Numbers] = field(default_factory=list)
    halves: list[Numbers] = field(default_factory=list)
    rule_lines: list[Numbers] = field(default_factory=list)
    rule_runs: list[Numbers] = field(default_factory=list)
    rules: list[Codes] = field(default_factory=lambda: [Codes() for _ in RULE_COLUMNS])
    gains: list[Coded] = field(default_factory=list)  # of the page, as printed
    speedups: list[Numbers] = field(default_factory=list)

    def add_runs(self, lines: Numbers, blocks: Numbers, ids: Numbers, pids: Numbers, owners: dict[str, Coded]) -> int:
        """Runs of rows of one launch each; the number of the first."""
        first = self.runs
        self.runs += len(ids)
        if not len(ids):
            return first
        self.run_lines.append(lines)
        self.keys.append(np.stack((blocks, ids, pids)))
        absent: Coded = (np.zeros(len(ids), dtype=np.int32), [None])
        for name, column in self.owners.items():
            column.add(*owners.get(name, absent))
        return first

    def add_metrics(self, runs: Numbers, codes: Numbers, names: list[Names], values: Values) -> None:
        """Metrics, in the order of the file."""
        self.metric_runs.append(runs.astype(np.int32, copy=False))
        self.names.add(codes, names)
        self.numbers.append(values.numbers)
        self.halves.append(values.halves)
        self.texts.add(*(values.shown or (np.full(len(runs), NO_TEXT), [])))

    def add_rules(self, lines: Numbers, runs: Numbers, told: list[Coded]) -> None:
        """Rules: the columns of RULE_COLUMNS, and the estimated speed-up as printed."""
        if not len(lines):
            return
        self.rule_lines.append(lines)
        self.rule_runs.append(runs)
        for column, cells in zip(self.rules, told, strict=False):
            column.add(*cells)
        self.gains.append(told[-1])

    def other_marks(self) -> Counter[str]:
        """The values that are no numbers by the decimal mark of the rest, and how often each is there."""
        known = self.texts.known
        marked = {text: code for text, code in known.items() if text and has_other_mark(text)}
        if not marked:
            return Counter()
        counts = np.zeros(len(known), np.int64)
        for part in self.texts.parts:
            counts += np.bincount(part[part != NO_TEXT], minlength=len(known))
        return Counter({text: int(counts[code]) for text, code in marked.items()})

    def end_page(self, parse: Parser) -> None:
        """Read the speed-ups of a page's rules."""
        for codes, words in self.gains:
            found = [parse((w or "").removesuffix("%")) for w in words]
            pairs = [[np.nan if n is None else n for n in (value.number, value.half)] for value in found]
            self.speedups.append(np.array(pairs, dtype=float).reshape(-1, 2)[codes])
        self.gains.clear()


def fill(columns: Columns, report: Report, options: Options) -> None:
    """Put the tables that were asked for, and that have rows, into the report."""
    places, first = _launches(columns)
    for name in ("Kernel Name", "Grid Size", "Block Size"):
        told = np.concatenate(columns.owners[name].parts)
        if (told != told[first][places]).any():
            raise OddFileError  # rows of one id that do not tell the same of its launch
    metric_launch = places[np.concatenate(columns.metric_runs)] if columns.metric_runs else places[:0]
    columns.metric_runs.clear()
    pa.default_memory_pool().release_unused()
    tables = _Tables(columns, first, metric_launch)
    if options.wants("launches"):
        made = tables.launches()
        report.tables["launches"] = made if made.num_rows > ARROW_ROWS else made.to_pylist()
    if len(metric_launch) and options.wants("metrics"):
        report.tables["metrics"] = tables.metrics()
    if columns.rule_runs and options.wants("rules"):
        report.tables["rules"] = tables.rules(places)


def _launches(columns: Columns) -> tuple[Numbers, Numbers]:
    """The launch of each run, and the first run of each launch; launches are in the order of their first lines."""
    keys = np.concatenate(columns.keys, axis=1)
    order = np.argsort(np.concatenate(columns.run_lines), kind="stable")
    combined = np.zeros(len(order), dtype=np.int64)
    for part in keys:
        different, codes = np.unique(part, return_inverse=True)
        combined = combined * len(different) + codes
    _, first, codes = np.unique(combined[order], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    places = np.empty(len(order), dtype=np.int32)
    places[order] = rank[codes]
    return places, order[np.sort(first)]


class _Tables:
    """The tables; launches are told from their first runs."""

    def __init__(self, columns: Columns, first: Numbers, metric_launch: Numbers) -> None:
        from nsw.tables.names import names_of

        self.columns, self.metric_launch = columns, metric_launch
        self.names, self.texts = columns.names.take(), columns.texts.take()
        self.numbers, self.halves = _all(columns.numbers), _all(columns.halves)
        block, number, pid = np.concatenate(columns.keys, axis=1)[:, first]
        cells = {n: (c.take()[first], list(c.known)) for n, c in columns.owners.items()}
        self.owned: dict[str, pa.Array] = {"block": _small(block), "pid": _small(pid), "launch_id": _small(number)}
        for ours, theirs in (("host", "Host Name"), ("process", "Process Name"), ("grid", "Grid Size"),
                             ("block_size", "Block Size"), ("compute_capability", "CC")):  # fmt: skip
            self.owned[ours] = _words(*cells[theirs])
        self.owned["nvtx"] = _ranges(cells["NVTX"], cells["NVTX 2"])
        for ours, theirs in (("device", "Device"), ("context", "Context"), ("stream", "Stream")):
            codes, words = cells[theirs]
            self.owned[ours] = pa.array([whole(w) for w in words], type=pa.int64()).take(pa.array(codes))
        self.owned["device_name"] = self._device_names(*cells["Device"])
        codes, kernels = cells["Kernel Name"]
        names = names_of(k for k in kernels if k)
        for ours, theirs in (("kernel", "name"), ("mangled_name", "mangled_name"), ("short_name", "short_name")):
            self.owned[ours] = _words(codes, [names[k][theirs] if k else None for k in kernels])

    def _device_names(self, codes: Numbers, words: list[str | None]) -> pa.Array:
        """The name that stands for the device, or the last one among the launch's metrics."""
        every = [None if whole(w) is not None else w for w in words] + list(self.columns.texts.known)
        codes = codes.copy()
        rows = np.flatnonzero(self._named(DEVICE_NAMES) & (self.texts != NO_TEXT))
        codes[self.metric_launch[rows]] = self.texts[rows] + len(words)
        return _words(codes, every)

    def _named(self, wanted: frozenset[str]) -> Numbers:
        codes = [code for names, code in self.columns.names.known.items() if names[1] in wanted]
        return np.isin(self.names, codes)

    def launches(self) -> pa.Table:
        """The launches."""
        value, half = self._durations()
        made = {k: v for k, v in self.owned.items() if k != "duration_ns"}
        return pa.table(made | {"duration_ns": nullable(value), "duration_ns_pm": nullable(half)})

    def _durations(self) -> tuple[Numbers, Numbers]:
        """How long each launch took; of several that are printed, the first with most digits."""
        rows = np.flatnonzero(self._named(DURATIONS) & ~np.isnan(self.numbers))
        times, halves = self._in_ns(rows)
        known = ~np.isnan(times)
        rows, times, halves = rows[known], times[known], halves[known]
        launch = self.metric_launch[rows]
        order = np.lexsort((rows, np.nan_to_num(halves), launch))
        launch = launch[order]
        best = order[np.append(True, launch[1:] != launch[:-1])[: len(launch)]]
        value, half = (np.full(len(self.owned["block"]), np.nan) for _ in range(2))
        value[self.metric_launch[rows[best]]] = times[best]
        half[self.metric_launch[rows[best]]] = halves[best]
        return value, half

    def _in_ns(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Durations and their half-widths in ns; NaN where the unit is none of time."""
        times, halves = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        units = [names[3] for names in self.columns.names.known]
        for code in np.unique(self.names[rows]).tolist():
            here = np.flatnonzero(self.names[rows] == code)
            for half in np.unique(self.halves[rows[here]]).tolist():
                same = self.halves[rows[here]]
                mine = here[np.isnan(same) if np.isnan(half) else same == half]
                times[mine] = _moved(self.numbers[rows[mine]], half, units[code])
                found = None if np.isnan(half) else in_ns(half, units[code])
                halves[mine] = np.nan if found is None else found
        return times, halves

    def metrics(self) -> pa.Table:
        """The metrics; columns that are null in every row are left out."""
        launch = pa.array(self.metric_launch)
        self.metric_launch = self.metric_launch[:0]
        made = self._of(launch, ("block", "pid", "device", "launch_id", "host", "kernel", "device_name"))
        for i, name in enumerate(("section", "metric", "description", "unit")):
            made[name] = _words(self.names, [n[i] for n in self.columns.names.known])
        made["text"] = _words(self.texts, list(self.columns.texts.known))
        made["value"], made["value_pm"] = nullable(self.numbers), nullable(self.halves)
        return pa.table(made)

    def rules(self, places: Numbers) -> pa.Table:
        """The rules, one row each."""
        order = np.argsort(_all(self.columns.rule_lines), kind="stable")
        launch = pa.array(places[_all(self.columns.rule_runs)][order])
        made = self._of(launch, ("block", "pid", "device", "launch_id", "host", "kernel"))
        for name, column in zip(RULE_COLUMNS, self.columns.rules, strict=True):
            words = list(column.known)
            if name == "section":
                words = [word and section_title(word) for word in words]
            made[name] = _words(column.take()[order], words)
        speedups = _all(self.columns.speedups)[order]
        made["speedup_pct"], made["speedup_pct_pm"] = nullable(speedups[:, 0]), nullable(speedups[:, 1])
        return pa.table(made)

    def _of(self, launch: pa.Array, names: tuple[str, ...]) -> dict[str, pa.Array]:
        """Columns of rows that belong to these launches."""
        made = {}
        for name in names:
            each = self.owned[name]
            if pa.types.is_dictionary(each.type):
                made[name] = pa.DictionaryArray.from_arrays(each.indices.take(launch), each.dictionary)
            else:
                made[name] = each.take(launch)
        return made


def _small(numbers: Numbers) -> pa.Array:
    """Whole numbers, in half the space where they fit: there are a million of some."""
    fits = numbers.max(initial=0) < 1 << 31
    return pa.array(numbers.astype(np.int32) if fits else numbers)


def _all(parts: list[Numbers]) -> Numbers:
    found = np.concatenate(parts) if parts else np.empty(0)
    parts.clear()
    return found


def _words(codes: Numbers, words: list[str | None]) -> pa.DictionaryArray:
    """Words by their codes; None and NO_TEXT are null."""
    few = dictionary([*words, None])  # NO_TEXT is the last
    return pa.DictionaryArray.from_arrays(few.indices.take(pa.array(codes % (len(words) + 1))), few.dictionary)


def _moved(values: Numbers, half: float, unit: str | None) -> Numbers:
    """Times in ns, their decimal digits moved as by `in_ns`; NaN when the unit is none of time.

    All have as many decimals as the half-width tells.
    """
    one = in_ns(1.0, unit)
    if one is None:
        return np.full(len(values), np.nan)
    decimals = 0 if np.isnan(half) else round(-np.log10(half * 2))
    digits = np.rint(values * 10.0**decimals)
    power = round(np.log10(one)) - decimals
    # both exact below 2 ** 53: one rounding, as when the text is read
    moved: Numbers = digits * 10.0**power if power >= 0 else digits / 10.0**-power
    for i in np.flatnonzero(np.abs(digits) >= _EXACT).tolist():
        moved[i] = in_ns(float(values[i]), unit)
    return moved


def _ranges(pushed: Coded, started: Coded) -> pa.Array:
    """The NVTX ranges of each launch, of both kinds; few of the pairs are different."""
    pairs, codes = np.unique(np.stack((pushed[0], started[0])), axis=1, return_inverse=True)
    words = [range_names(pushed[1][one], started[1][other]) for one, other in pairs.T.tolist()]
    return _words(codes.reshape(-1).astype(np.int32), words)
