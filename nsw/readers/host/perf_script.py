"""`perf script`: a block a sample, its call stack from the function that was hit to the outermost one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from nsw.readers.host.perf_report import OF_USER, Event
from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import Stacks, text_lines
from nsw.readers.text.quantities import Quantity

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.tables import Row

__all__ = ["read", "sniff"]

Frame: TypeAlias = tuple[str, str | None]  # symbol, module

# COMMAND PID[/TID] [[CPU]] TIME: [PERIOD] EVENT: [ADDRESS SYMBOL (MODULE)]
_SAMPLE: Final = re.compile(
    r"\S.{0,40}? {1,8}(?:-1|\d{1,10})(?:/\d{1,10})? {1,8}(?:\[\d{1,6}\] {1,4})?\d{1,12}\.\d{6,9}: {1,12}"
    r"(?:(\d{1,18}) )?([\w./:-]{1,200}):(?: {1,20}|\Z)(.*)"
)
_FRAME: Final = re.compile(r"\s{0,40}[0-9a-f]{1,16} (.{1,4000}) \((.{0,4000})\)\Z")
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]{1,16}\Z")
_UNKNOWN: Final = "[unknown]"


def sniff(sample: Sample) -> int:
    """Sure by a first line that is a sample, and a stack or a place behind it."""
    lines = [line for line in sample.text[:20_000].splitlines() if line.strip() and not line.startswith("#")][:2]
    match = _SAMPLE.match(lines[0]) if lines else None
    if match is None:
        return 0
    return 90 if _FRAME.match(match[3]) or (len(lines) > 1 and _FRAME.match(lines[1])) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, the most expensive first, and `facts`."""
    report = Report(str(path), tool="perf", format="perf-script")
    events: dict[str, _Event] = {}
    current: _Event | None = None
    bad = []
    has_periods: bool | None = None
    for number, text in text_lines(path):
        if match := _SAMPLE.match(text):
            _finish(current)
            has_periods = match[1] is not None if has_periods is None else has_periods
            if has_periods != (match[1] is not None):
                current = None
                bad.append(number)
                continue
            current = events.setdefault(match[2], _Event(Event(match[2])))
            current.begin(match[1], match[3])
        elif not text.strip():
            _finish(current)
        elif not text.startswith("#") and (current is None or not current.take(text)):
            bad.append(number)
    _finish(current)
    wrong = "neither a sample nor a place in its stack; left out"
    report.errors([wrong] * len(bad), f"{len(bad)} such lines in all", lines=bad)
    first = next(iter(events.values()), None)
    if first is None or not first.stacks.samples:
        report.error("no sample with a place in it", fix="perf script -F comm,pid,tid,time,period,event,ip,sym,dso")
        return report
    if other_events := sorted(name for name, event in events.items() if event is not first):
        report.warn(f"samples of {first.event.name} only; the file has {', '.join(other_events)} too")
    if first.event.is_of_user:
        report.warn(OF_USER)
    if options.wants("functions"):
        report.tables["functions"] = first.functions()
    if options.wants("facts"):
        report.tables["facts"] = [
            {"key": "samples", "value": first.stacks.samples},
            {"key": "event", "text": first.event.name},
        ]
    return report


def _finish(event: _Event | None) -> None:
    if event is not None:
        event.end()


@dataclass(slots=True)
class _Event:
    """The samples of one event."""

    event: Event
    stacks: Stacks[Frame] = field(default_factory=Stacks)
    frames: list[Frame] = field(default_factory=list)
    period: int | None = None

    def begin(self, period: str | None, frame_text: str) -> None:
        self.period = int(period) if period is not None else None
        if frame_text:
            self.take(frame_text)

    def take(self, text: str) -> bool:
        """Add a place to the stack; whether it is one."""
        match = _FRAME.match(text)
        if match is None:
            return False
        module = None if match[2] == _UNKNOWN else match[2]
        self.frames.append((_OFFSET.sub("", match[1]), module))
        return True

    def end(self) -> None:
        if self.frames:
            self.stacks.add(self.frames, 1, 1 if self.period is None else self.period)
            self.frames = []

    def functions(self) -> list[Row]:
        return [self._row(frame, *hits) for frame, hits in
                ((f, (h.samples, h.own_weight, h.total)) for f, h in self.stacks.by_weight())]  # fmt: skip

    def _row(self, frame: Frame, samples: int, own_weight: float, total: float) -> Row:
        row: Row = {
            "name": frame[0],
            "module": frame[1],
            "samples": samples,
            "self_pct": 100 * own_weight / (self.stacks.weight or 1),
        }
        column = self.event.column if self.period is not None else None
        if column is not None:
            row |= self.event.amount(column, Quantity(own_weight, None))
        if column == "self_s":
            row |= self.event.amount("cpu_time_s", Quantity(total, None))
        return row
