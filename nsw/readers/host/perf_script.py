"""`perf script`: a block a sample, its call stack from the function that was hit to the outermost one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from nsw.readers.host.perf_report import OF_USER, Event
from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import Stacks, text_lines
from nsw.readers.text.quantities import Quantity
from nsw.tables import Row

__all__ = ["read", "sniff"]


Frame: TypeAlias = tuple[str, str | None]  # symbol, module

# [COMMAND] [PID[/TID]] [[CPU]] [TIME:] [PERIOD] EVENT: [ADDRESS SYMBOL (MODULE)], as `perf script -F` asked for
_SAMPLE: Final = re.compile(
    r" {0,20}(?:\S.{0,40}? {1,8}(?:(?:-1|\d{1,10})(?:/\d{1,10})? {1,8})?(?:\[\d{1,6}\] {1,4})?)?"
    r"(?:\d{1,12}\.\d{6,9}: {1,12})?(?:(\d{1,18}) {1,4})?([A-Za-z][\w./:=,-]{1,200}):(?: {1,20}|\Z)(.*)"
)
# the same without an event
_UNNAMED: Final = re.compile(
    r" {0,20}\S.{0,40}? {1,8}(?:-1|\d{1,10})(?:/\d{1,10})? {0,8}(?:\[\d{1,6}\] {0,4})?"
    r"(?:\d{1,12}\.\d{6,9}:)?\s{0,12}"
)
_ADDRESS: Final = re.compile(r"\s{0,40}(?:[0-9a-f]{3,16}|0 \[unknown\]) ")
_FRAME: Final = re.compile(r"\s{0,40}[0-9a-f]{1,16} {1,2}(.{0,8000})\Z")
_MODULE: Final = re.compile(r" {0,2}\(([^()]{0,4000}(?:\(deleted\))?)\)\Z")
_SOURCE_LINE: Final = re.compile(r"\s{1,40}\S.{0,1000}:\d{1,9}\Z")
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]{1,16}\Z")
_UNKNOWN: Final = "[unknown]"
_NO_MODULES: Final = frozenset({_UNKNOWN, "inlined", ""})


def sniff(sample: Sample) -> int:
    """Sure by a first line that is a sample, and a stack or a place behind it."""
    lines = [line for line in sample.text[:20_000].splitlines() if line.strip() and not line.startswith("#")]
    sampled = _parse_sample_line(lines[0]) if lines else None
    if sampled is None:
        return 0
    # samples of a program that has no stack yet have none
    behind = next((line for line in lines[1:] if _parse_sample_line(line) is None), "")
    place = sampled[2] or (behind if behind[:1].isspace() else "")
    return 90 if _ADDRESS.match(place) and _FRAME.match(place) else 0


def _parse_sample_line(text: str) -> tuple[str | None, str, str] | None:
    """The period, the event and the rest of a line that begins a sample; None: it does not."""
    if match := _SAMPLE.match(text):
        return match[1], match[2], match[3]
    return (None, "", "") if _UNNAMED.fullmatch(text) else None


def read(path: Path, options: Options) -> Report:
    """Fill `function_rows`, the most expensive first, and `facts`."""
    report = Report(str(path), tool="perf", format="perf-script")
    events: dict[str, _EventSamples] = {}
    current: _EventSamples | None = None
    bad = []
    has_periods: bool | None = None
    for number, text in text_lines(path):
        if not text.strip():
            _end_open_sample(current)
        elif text.startswith("#") or (current is not None and current.add_frame_line(text)):
            continue
        elif sampled := _parse_sample_line(text):
            period, name, place = sampled
            _end_open_sample(current)
            has_periods = period is not None if has_periods is None else has_periods
            if has_periods != (period is not None):
                current = None
                bad.append(number)
                continue
            event = Event(name)
            current = events.setdefault(event.counted_quantity, _EventSamples(event))
            current.begin_sample(period, place)
        else:
            bad.append(number)
    _end_open_sample(current)
    wrong = "neither a sample nor a place in its stack; left out"
    report.errors([wrong] * len(bad), f"{len(bad)} such lines in all", lines=bad)
    sampled_events = [event for event in events.values() if event.stacks.samples]
    first = next(
        (e for e in sampled_events if e.event.count_column in {"self_s", "cycles"}), *sampled_events[:1] or (None,)
    )
    if first is None:
        report.error("no sample with a place in it", fix="perf script -F comm,pid,tid,time,period,event,ip,sym,dso")
        return report
    if others := [event for event in sampled_events if event is not first]:
        report.warn(
            f"samples of {first.event.name} only; what the others count is no part of that:"
            f" {'; '.join(f'{event.event.name}: {event.top_function}' for event in others)}"
        )
    if first.event.is_user_only:
        report.warn(OF_USER)
    if options.wants("functions"):
        report.tables["functions"] = first.function_rows()
    if options.wants("facts"):
        report.tables["facts"] = [{"key": "samples", "value": first.stacks.samples}]
        report.tables["facts"] += [{"key": "event", "text": first.event.name}] if first.event.name else []
    return report


def _end_open_sample(event: _EventSamples | None) -> None:
    if event is not None:
        event.end_sample()


@dataclass(slots=True)
class _EventSamples:
    """The samples of one event."""

    event: Event
    stacks: Stacks[Frame] = field(default_factory=Stacks)
    frames: list[Frame] = field(default_factory=list)
    period: int | None = None
    has_modules: bool = False  # a place without one is damaged then

    def begin_sample(self, period: str | None, frame_text: str) -> None:
        self.period = int(period) if period is not None else None
        if frame_text:
            self.add_frame_line(frame_text)

    def add_frame_line(self, text: str) -> bool:
        """Add a place to the stack; whether it is one."""
        match = _FRAME.match(text.rstrip())
        module = _MODULE.search(match[1]) if match else None
        if match is None or (self.has_modules and module is None):
            return bool(self.frames) and _SOURCE_LINE.match(text) is not None
        self.has_modules |= module is not None
        name = match[1][: module.start()] if module else match[1]
        path = None if module is None or module[1] in _NO_MODULES else module[1]
        self.frames.append((_OFFSET.sub("", name) or _UNKNOWN, path))
        return True

    def end_sample(self) -> None:
        if self.frames:
            self.stacks.add(self.frames, 1, 1 if self.period is None else self.period)
            self.frames = []

    @property
    def top_function(self) -> str:
        """The function with most of the event."""
        frame, hits = next(self.stacks.by_weight())
        return f"{frame[0]} {100 * hits.own_weight / (self.stacks.weight or 1):.0f} %"

    def function_rows(self) -> list[Row]:
        rows: list[Row] = []
        column = self.event.count_column if self.period is not None else None
        for (name, module), hits in self.stacks.by_weight():
            share = 100 * hits.own_weight / (self.stacks.weight or 1)
            row: Row = {"name": name, "module": module, "samples": hits.samples, "self_pct": share}
            if column is not None:
                row |= self.event.amount_columns(column, Quantity(hits.own_weight, None))
            if column == "self_s":
                row |= self.event.amount_columns("cpu_time_s", Quantity(hits.total, None))
            rows.append(row)
        return rows
