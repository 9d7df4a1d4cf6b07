"""`perf stat`: counts of events over a whole run, as JSON lines (-j), cells with a separator (-x), or text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nsw.readers.host.perf_report import OF_USER, Event
from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.lines import text_lines
from nsw.readers.text.quantities import Quantity, Votes, number, proven_mark
from nsw.tables import Row

__all__ = ["read", "sniff"]


_KEYS: Final = meaning_by_word("perf-stat")
_METRICS: Final = {"CPUs utilized": "cpu_use_cores", "insn per cycle": "ipc", "insns per cycle": "ipc"}
_TIMES: Final = {"msec": 1e-3, "ns": 1e-9}
# of one kind of a hybrid CPU's cores: cpu_atom/cycles/, armv8_cortex_a53/instructions/
_OF_CORES: Final = re.compile(r"(?:cpu_[a-z]+|armv\d\w*)/([\w-]+)/")
_NS: Final = frozenset({"duration_time", "user_time", "system_time"})
_TITLE: Final = "Performance counter stats for"
_SEPARATED: Final = re.compile(
    r"(?:[\d.]{1,30}|<not \w{1,20}>)([^\w\s.<>])\w{0,8}\1[\w./:=-]{1,200}\1\d{1,20}\1\d{1,3}\.\d\d"
)
_PRINTED: Final = re.compile(
    r" {0,40}(<not (?:counted|supported)>|[\d.,\u00a0\u202f]{1,60}) {1,10}(?:(msec|ns|Joules|[KMG]i?B|%) {1,10})?"
    r"(?!(?:msec|ns|seconds)\b)([\w./:=,@-]{1,200})(?: {1,80}([#(\[].{0,200}))?"
)
_MORE: Final = re.compile(r" {1,80}#(?: .{0,200})?")  # one more figure of the event above
_OF_PART: Final = re.compile(r"(?:CPU\d|S\d{1,4}-|N\d{1,4} | {1,12}\d{1,6}\.\d{9} {2,})")
_METRIC: Final = re.compile(r"# {1,20}([\d.,]{1,30}) {1,10}([A-Za-z][\w /]{0,60}\w)")
_NUMBER: Final = re.compile(r"\d[\d.,]{0,40}")
_SWAPPED: Final = str.maketrans(".,", ",.")
_RUNNING: Final = re.compile(r"[(\[](\d{1,3}\.\d\d)%[)\]]")
_SECONDS: Final = re.compile(r" {0,40}([\d.,]{1,30}) (?:\+- .{1,40} )?seconds (time elapsed|user|sys)")
_LASTED: Final = {"time elapsed": "elapsed_s", "user": "user_s", "sys": "system_s"}
_PARTS: Final = frozenset({"interval", "cpu", "core", "die", "socket", "node", "thread", "cache", "cluster"})


@dataclass(frozen=True, slots=True)
class _EventCount:
    """One event: its count as printed, and what perf reckons from it."""

    value: str
    unit: str
    event: str
    running_pct: float | None  # of the time; less than all: scaled up from there
    metric: tuple[str, str] = ("", "")

    @property
    def plain_event(self) -> str:
        """The event without its modifiers, such as :u, and without the kind of core."""
        return _OF_CORES.sub(r"\1", re.sub(r"[:/][ukhGHpPSDe]+\Z", "", self.event))

    @property
    def fact_key(self) -> str:
        """The key of its fact."""
        return _KEYS.get(self.plain_event) or re.sub(r"\W+", "_", self.plain_event).strip("_")

    @property
    def seconds_scale(self) -> float | None:
        """What makes seconds of the count; None: it is no time."""
        return _TIMES.get("ns" if self.plain_event in _NS else self.unit)

    @property
    def is_well_formed(self) -> bool:
        """Whether its value is a number, empty or perf's `<...>` for none, and a time has its unit."""
        is_counted = self.value.startswith("<") or not self.value or number(self.value) is not None
        return is_counted and (
            self.seconds_scale is not None or self.value.startswith("<") or not self.fact_key.endswith("_s")
        )


def sniff(sample: Sample) -> int:
    """Certain by the key of its JSON or by its title; likely where lines have the separators."""
    text = sample.text
    if '"counter-value"' in text[:4000]:
        return 100
    if _TITLE in text:
        return 90
    lines = (line for line in text[:4000].splitlines() if line.strip() and not line.startswith("#"))
    return 80 if _SEPARATED.match(next(lines, "")) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `facts`, one for each event that was counted and each metric that perf makes of it.

    perf's text may be amid the program's output, once for each run: a block each.
    """
    report = Report(str(path), tool="perf", format="perf-stat")
    counts: list[_EventCount] = []
    facts: list[Row] = []
    bad = []
    is_amid = Sample(path).contains(_TITLE)
    block, has_lasted, is_over = -1 if is_amid else 0, False, False
    has_comma = is_amid and _has_decimal_comma(path)
    for line, printed in text_lines(path):
        text = _NUMBER.sub(lambda match: match[0].translate(_SWAPPED), printed) if has_comma else printed
        if _TITLE in text:
            block, has_lasted, is_over = block + 1, False, False
        elif not text.strip() or text.startswith("#") or block < 0 or is_over:
            continue
        elif lasted := _SECONDS.match(text):
            if (value := number(lasted[1])) is not None:
                facts.append(_fact_row(_LASTED[lasted[2]], value, "s") | {"block": block})
            has_lasted = True
        elif is_amid and has_lasted:
            is_over = True  # what the program printed next
        else:
            try:
                counted = list(_parse_count_line(text.rstrip()))
            except ValueError as fault:
                report.error(str(fault), line=line)
                continue
            if not counted and _MORE.fullmatch(text.rstrip()):
                continue
            if not counted or not all(count.is_well_formed for count in counted):
                bad.append(line)
                continue
            counts += counted
            facts += [fact | {"block": block} for count in counted for fact in _count_facts(count)]
    wrong = "no count of an event; left out"
    report.errors([wrong] * len(bad), f"{len(bad)} such lines in all", lines=bad)
    _warn_of_uncounted_events(report, counts)
    if options.wants("facts"):
        report.tables["facts"] = _facts_summed_over_cores(facts)
    return report


def _has_decimal_comma(path: Path) -> bool:
    """Whether perf printed numbers as most of Europe writes them: 1.234,5."""
    votes = Votes()
    votes.add(proven_mark(match[0].rstrip(".,")) for match in _NUMBER.finditer(Sample(path).text))
    return votes.winner == ","


def _facts_summed_over_cores(facts: Sequence[Row]) -> list[Row]:
    """The facts with counts of both kinds of cores added, and instructions a cycle of both."""
    merged: dict[tuple[int, str], Row] = {}
    for fact in facts:
        at = fact["block"], fact["key"]
        if at not in merged:
            merged[at] = fact
        elif fact["key"] not in _METRICS.values() and fact["unit"] is None:
            merged[at] = merged[at] | {"value": merged[at]["value"] + fact["value"]}
    for (block, key), fact in merged.items():
        counts = [merged[block, name]["value"] for name in ("instructions", "cycles") if (block, name) in merged]
        is_of_both = key == "ipc" and sum(f["block"] == block and f["key"] == key for f in facts) > 1
        if is_of_both and len(counts) == 2 and counts[1]:
            merged[block, key] = fact | {"value": counts[0] / counts[1], "value_pm": None}
    return list(merged.values())


def _parse_count_line(text: str) -> Iterator[_EventCount]:
    """The count of a line.

    Raises:
        ValueError: It is of a part of the machine or of the run.
    """
    if text.lstrip().startswith("{"):
        yield from _parse_json_line(text)
    elif _OF_PART.match(text):
        raise ValueError(
            "counts by parts of the machine or of the run are not read: count without -I, -A and --per-..."
        )
    elif match := _SEPARATED.match(text):
        cells = text.split(match[1])
        metric = (cells[5], cells[6]) if len(cells) > 6 else ("", "")
        yield _EventCount(cells[0], cells[1], cells[2], float(cells[4]), metric)
    elif match := _PRINTED.fullmatch(text):
        rest = (match[4] or "").removeprefix("(msec)").lstrip()
        is_old_clock = match[3].startswith(("task-clock", "cpu-clock")) and "." in match[1]
        reckoned, running = _METRIC.match(rest), _RUNNING.search(rest)
        yield _EventCount(
            match[1], match[2] or ("msec" if is_old_clock else ""), match[3], float(running[1]) if running else None,
            (reckoned[1], reckoned[2]) if reckoned else ("", ""),
        )  # fmt: skip


def _parse_json_line(text: str) -> Iterator[_EventCount]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(entry, dict):
        return
    if parts := sorted(_PARTS & entry.keys()):
        raise ValueError(f"counts by {', '.join(parts)} are not read: count without -I, -A and --per-...")
    fields = {name: str(value) for name, value in entry.items()}
    if "event" in fields and "counter-value" in fields:
        running = number(fields.get("pcnt-running", ""))
        metric = (fields.get("metric-value", ""), fields.get("metric-unit", ""))
        yield _EventCount(
            fields["counter-value"], fields.get("unit", ""), fields["event"], running.value if running else None, metric
        )
    elif "metric-value" in fields:  # one more metric of the event before
        yield _EventCount("", "", "", None, (fields["metric-value"], fields.get("metric-unit", "")))


def _warn_of_uncounted_events(report: Report, counts: Sequence[_EventCount]) -> None:
    for marker, reason in (
        ("<not supported>", "this machine does not offer them: a virtual machine, or a CPU without such counters"),
        ("<not counted>", "they were never scheduled: the program ended before, or the counters were in use"),
    ):
        if names := [count.event for count in counts if count.value == marker]:
            report.warn(f"perf did not count {', '.join(names)}: {reason}")
    if shared := [c.event for c in counts if c.running_pct is not None and 0 < c.running_pct < 99.995]:
        report.warn(f"scaled up from a part of the run, since counters took turns: {', '.join(shared)}")
    if any(Event(count.event).is_user_only for count in counts):
        report.warn(OF_USER)


def _count_facts(count: _EventCount) -> Iterator[Row]:
    value, scale = number(count.value), count.seconds_scale
    if value is not None and count.event:
        if scale is not None:
            value = Quantity(value.value * scale, None if value.pm is None else value.pm * scale)
        elif value.pm is not None and value.value.is_integer():  # JSON has six places behind each count
            value = Quantity(value.value, None)
        yield _fact_row(count.fact_key, value, "s" if scale is not None else count.unit or None)
    metric = number(count.metric[0])
    if metric is None:
        return
    if count.metric[1] in _METRICS:
        yield _fact_row(_METRICS[count.metric[1]], metric, None)
    elif count.metric[1] == "GHz" and count.fact_key == "cycles":
        yield _fact_row("frequency_hz", Quantity(metric.value * 1e9, (metric.pm or 0) * 1e9), "Hz")


def _fact_row(key: str, value: Quantity, unit: str | None) -> dict[str, Any]:
    return {"key": key, "value": value.value, "value_pm": value.pm, "unit": unit}
