"""py-spy's raw format: a line a call stack, `outermost;...;innermost COUNT`, a frame being `function (file:line)`.

The format has no time. nsw's own recordings have the sampling rate in their name (host.rate100.pyspy.txt), and are made
with --function: their line numbers are those of definitions, where others have the line that was running.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import Hits, Stacks, text_lines
from nsw.tables import Row

__all__ = ["read", "sniff"]


_STACK: Final = re.compile(r"(.{0,200000}) (\d{1,15})\Z")
_FRAME: Final = re.compile(r"(.{1,2000}?) \(([^()]{1,2000}?)(?::(\d{1,9}))?\)\Z")
_NOT_A_FUNCTION: Final = re.compile(r"process -?\d{1,10}:|thread \(?(?:0x)?[0-9A-Fa-f]{1,16}\)?")
_COMMAND: Final = re.compile(r'(process -?\d{1,10}):".{0,4000}?"(?=;(?! )|\Z)')  # a shell's own `; ` goes on
_NSW_NAME: Final = re.compile(r"\.rate(\d{1,6})\.pyspy\.txt\Z")
_NATIVE: Final = re.compile(r"\.so(?:\.[\d.]{1,20})?\Z")
_LOOKED_AT: Final = 20  # lines


class _Function(NamedTuple):
    name: str
    file: str | None
    line: int | None
    module: str | None


_NO_FRAME: Final = _Function("[no Python function]", None, None, None)  # such as the start of the interpreter


def sniff(sample: Sample) -> int:
    """Sure where all of the first lines are stacks and one has a Python file in it; by nsw's own name certain."""
    if _NSW_NAME.search(sample.path.name):
        return 95
    lines = sample.text.splitlines()[:_LOOKED_AT]
    full_lines = lines if len(lines) < _LOOKED_AT else lines[:-1]  # the last may be cut
    stacks = [match for line in full_lines if (match := _STACK.match(line))]
    has_python = any(".py:" in match[1] or "process " in match[1][:8] for match in stacks)
    return 85 if full_lines and len(stacks) == len(full_lines) and has_python else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, the most expensive first, and `facts`."""
    report = Report(str(path), tool="py-spy", format="pyspy-raw")
    rate_match = _NSW_NAME.search(path.name)
    rate = int(rate_match[1]) if rate_match else 0
    stacks: Stacks[_Function] = Stacks()
    bad = []
    for number, text in text_lines(path):
        match = _STACK.match(text)
        if match is not None:
            frames = [
                frame
                for part in _COMMAND.sub(r"\1:", match[1]).split(";")  # a command line may hold semicolons itself
                if part and (frame := _parse_frame(part, with_line=rate_match is not None))
            ]
            stacks.add(frames[::-1] or [_NO_FRAME], int(match[2]))
        elif text.strip():
            bad.append(number)
    wrong = "no stack with a count behind it; left out"
    report.errors([wrong] * len(bad), f"{len(bad)} such lines in all", lines=bad)
    if options.wants("functions"):
        report.tables["functions"] = [_function_row(*item, stacks.samples, rate) for item in stacks.by_weight()]
    if options.wants("facts") and stacks.samples:
        report.tables["facts"] = [{"key": "samples", "value": stacks.samples}]
        if rate:
            report.tables["facts"].append({"key": "sampling_hz", "value": rate, "unit": "Hz"})
    return report


def _parse_frame(part: str, *, with_line: bool) -> _Function | None:
    if _NOT_A_FUNCTION.match(part):
        return None
    match = _FRAME.match(part)
    if match is None:
        return _Function(part, None, None, None)
    if _NATIVE.search(match[2]):
        return _Function(match[1], None, None, match[2])
    return _Function(match[1], match[2], int(match[3]) if with_line and match[3] else None, None)


def _function_row(function: _Function, hits: Hits, samples: int, rate: int) -> Row:
    row: Row = {**function._asdict(), "samples": hits.samples, "self_pct": 100 * hits.own_weight / (samples or 1)}
    if rate:
        row |= {"self_s": hits.own_weight / rate, "cpu_time_s": hits.total / rate}
    return row
