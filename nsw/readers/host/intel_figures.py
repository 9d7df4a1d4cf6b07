"""What VTune and APS print of a whole run -> facts, whose keys tell the same as those of other profilers.

A metric is known by its name and those of the metrics that it stands below: `Packed` below `SP FLOPs`. Its unit is in
the value (`8.7% of Pipeline Slots`, `3.218 GHz`); VTune's CSV has none, and there the name tells it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from nsw.readers.text.known_words import meaning_by_pattern
from nsw.readers.text.quantities import Quantity, duration, number, percent, rate, size
from nsw.resources import csv_rows
from nsw.tables import Row

__all__ = ["IntelSummary", "is_known_metric", "metric_facts", "parse_seconds", "snake_case_key"]


def names_by_content(content: str) -> dict[str, str]:
    """The names of metrics of one kind, each with what it means."""
    rows = csv_rows("readers/data/intel_metrics.csv")
    return {row["name"]: row["meaning"] for row in rows if row["content"] == content}


# a metric's name in lower case -> the beginning of its key; the unit is the end: _s, _pct, _hz, _bytes ...
_STEMS: Final = names_by_content("figure")
_TEXTS: Final = names_by_content("text")
# names that mean nothing without that of the metric above them
_PARTS: Final = names_by_content("part")
_CORES: Final = "-core)"  # `Performance-core (P-core)`: some of the cores, whose metrics are not the CPU's
# what the cores at work are out of
_TOTAL_KEYS: Final = {"cpu_use": "logical_cpus", "physical_core_use": "physical_cores"}
_REMARK: Final = re.compile(r"\s*\([^()]*\)\Z")
_OUT_OF: Final = re.compile(r"([\d.,]{1,20}) out of ([\d.,]+)")
_FIRST: Final = re.compile(r"([\d.,]+)\s*([^\s\d(]+(?:/\w+)?)?")
_SHARE: Final = re.compile(r"[\d.]+\s*s(?:ec)?\s+\(?([\d.]+%)")
_HERTZ: Final = {"hz": 0, "khz": 3, "mhz": 6, "ghz": 9}
_RATES: Final = re.compile(r"[KMGT]?B/s(?:ec)?\Z", re.IGNORECASE)
_LONGEST: Final = 120  # characters of a name
_LOWEST_HZ: Final = 1e6  # of a CPU; a number below it is in GHz

# what a bare number is, by the end of the metric's name; others are plain numbers
_BARE: Final = meaning_by_pattern("intel numbers", flags=re.IGNORECASE)
_RATES_OF_FLOP: Final = "gflops"  # no share of anything, though its name ends so
_UNITS: Final = {"s": "s", "pct": "%", "hz": "Hz", "bytes": "byte", "bytes_per_s": "byte/s", "cores": None, "": None}


class _Figure(NamedTuple):
    """A value with the end of its key."""

    end: str
    quantity: Quantity


class IntelSummary:
    """The facts of one block of a report: each key once, as it comes first."""

    def __init__(self, origin: Row) -> None:
        self.origin = origin
        self.facts: list[Row] = []
        self._keys: set[str] = set()
        self._path: list[tuple[int, str]] = []  # the metrics above the next, each with its blanks or level

    def enter_metric(self, depth: int, name: str) -> list[str]:
        """Put a metric below those that it stands under, and give their names and its own."""
        self._path = [*((at, above) for at, above in self._path if at < depth), (depth, name)]
        return [above for _, above in self._path]

    def add_metric(self, metric_path: Sequence[str], printed_value: str) -> bool:
        """Take a metric where it has a figure, or a text that is known by its name; tell whether it did."""
        figures = metric_facts(metric_path, printed_value)
        for fact in figures:
            if fact["key"] not in self._keys:
                self._keys.add(fact["key"])
                self.facts.append(fact | self.origin)
        return bool(figures)


def metric_facts(metric_path: Sequence[str], printed_value: str) -> list[Row]:
    """The facts that a metric tells: its value, its share, and how many of how many cores.

    Args:
        metric_path: Its name, behind those of the metrics that it stands below.
        printed_value: Its value, as printed.
    """
    name = _metric_name(metric_path)
    if len(name) > _LONGEST:
        return []
    if (key := _TEXTS.get(name.lower())) is not None:
        return [{"key": key, "text": printed_value.strip()}] if printed_value.strip() else []
    stem = _key_stem(metric_path, name)
    facts = [] if (figure := _parse_figure(name, printed_value)) is None else [_fact_row(stem, figure)]
    if (share := _SHARE.match(printed_value)) is not None and (fraction := percent(share[1])) is not None:
        facts.append(_fact_row(stem, _Figure("pct", fraction)))
    if stem in _TOTAL_KEYS and (cores := _OUT_OF.search(printed_value)) is not None:
        used, total = number(cores[1]), number(cores[2])
        facts += [_fact_row(stem, _Figure("cores", used))] if used is not None else []
        facts += [_fact_row(_TOTAL_KEYS[stem], _Figure("", total))] if total is not None else []
    return facts


def is_known_metric(name: str) -> bool:
    """Whether it is a metric of which the key is that of other profilers, or a text that is kept."""
    return name.strip().lower() in {**_STEMS, **_TEXTS}


def parse_seconds(text: str) -> Quantity | None:
    """A time in s; `0s` is none at all, and not one below half a second."""
    time = duration(text)
    return time and Quantity(time.value / 1e9, time.pm / 1e9 if time.pm and time.value else None)


def snake_case_key(name: str) -> str:
    """A name as part of a key: `FP Arith/Mem Rd Instr. Ratio` is fp_arith_mem_rd_instr_ratio."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _metric_name(metric_path: Sequence[str]) -> str:
    """The name, with those above it without which it means nothing, less a remark in parentheses."""
    at = len(metric_path) - 1
    while at > 0 and metric_path[at].strip().lower() in _PARTS:
        at -= 1
    name = " ".join(part.strip().rstrip(":") for part in metric_path[at:])
    if len(name) > _LONGEST:
        return name
    return name if name.endswith(("(%)", "(sec)")) else _REMARK.sub("", name)


def _key_stem(metric_path: Sequence[str], name: str) -> str:
    """The beginning of the key; of a GPU, or of one kind of a machine's cores, with its name before it."""
    plain = re.sub(r"\s*\((?:%|sec)\)\Z", "", name)
    if (part := _machine_part(metric_path[:-1])) is not None:
        plain_stem = snake_case_key(plain)
        return plain_stem if plain_stem.startswith(part) else f"{part}_{plain_stem}"
    known_stem = _STEMS.get(plain.lower())
    return known_stem if known_stem is not None else re.sub(r"(?<=[a-z\d])_time\Z", "", snake_case_key(plain))


def _machine_part(metric_names_above: Sequence[str]) -> str | None:
    """The part of the machine whose metrics are below these: `gpu`, `p_core`; None: it is the CPU."""
    for name in map(str.strip, metric_names_above):
        if name == "GPU" or name.endswith(_CORES):
            return snake_case_key(name.rpartition("(")[2])
    return None


def _parse_figure(name: str, text: str) -> _Figure | None:
    """The first value of a text; None: it has none (N/A), or counts cores out of others."""
    match = _FIRST.match(text.strip())
    if match is None or re.match(r"[\d.,]+ out of", text.strip()):
        return None
    printed, unit = match[1].rstrip(".,"), match[2] or ""
    if unit.startswith("%"):
        return _figure_if_value("pct", percent(printed))
    if unit.lower() in _HERTZ:
        hertz = number(printed)
        power = 10.0 ** _HERTZ[unit.lower()]
        return _figure_if_value("hz", hertz and Quantity(hertz.value * power, (hertz.pm or 0.5) * power))
    if _RATES.match(unit):
        return _figure_if_value("bytes_per_s", rate(printed, unit))
    if unit and (bytes_ := size(printed, unit)) is not None:
        return _figure_if_value("bytes", bytes_)
    if unit and (time := parse_seconds(f"{printed}{unit}")) is not None:
        return _figure_if_value("s", time)
    if text.strip() not in {printed, match[1]}:  # a date, an address
        return None
    return _figure_without_unit(name, number(printed))


def _figure_without_unit(name: str, value: Quantity | None) -> _Figure | None:
    """A number without a unit, which is that of the metric."""
    if value is None or name.lower().endswith(_RATES_OF_FLOP):
        return _figure_if_value("", value)
    end = next((end for names, end in _BARE if names.search(name)), "")
    if end == "hz" and value.value < _LOWEST_HZ:
        value = Quantity(value.value * 1e9, value.pm and value.pm * 1e9)
    return _Figure(end, value)


def _figure_if_value(end: str, value: Quantity | None) -> _Figure | None:
    return None if value is None else _Figure(end, value)


def _fact_row(stem: str, figure: _Figure) -> Row:
    """A row of `facts`."""
    key = f"{stem}_{figure.end}" if figure.end else stem
    return {"key": key, "value": figure.quantity.value, "value_pm": figure.quantity.pm, "unit": _UNITS[figure.end]}
