"""What a reader does to a line of twice the length takes about twice as long: the square of it would not end."""

from __future__ import annotations

import json
import time

import pytest

from nsw.readers import read
from nsw.readers.registry import FORMATS
from nsw.readers.text.lines import Lines

from . import seeds

SHORT = 2048  # characters
TIMES = 4  # as long a line
MOST = 9  # times as long it may take; the square would be 16
SLOW = 0.15  # s of CPU time: what takes less is let pass, since a machine does other things too

# What is repeated: blanks, rules, numbers, names, brackets and quotes that do not end.
UNITS = (
    " ",
    "\t",
    "-",
    "- ",
    "--- ",
    "|",
    "| ",
    ",",
    "1,",
    "1",
    "1 ",
    "0.",
    "a",
    "a ",
    "(",
    "<",
    "::",
    '"',
    '",',
    "[",
    "'",
    "=",
    ".",
    "%",
)
_WHERE = 2  # lines of a report that are made long: a title, a row
TEXTS = [
    pytest.param(name, data, id=f"{format_.id}-{name}")
    for format_ in FORMATS for name, data in seeds.make().get(format_.id, {}).items()  # test_every_reader asks for more
    if isinstance(data, bytes) and not (b"\0" in data[:4096] or data[:2] == b"\x1f\x8b")
]  # fmt: skip


def seconds(path, data):
    path.write_bytes(data)
    before = time.process_time()
    read(path)
    return time.process_time() - before


def places(lines):
    """Where lines are made long: the widest title, and rows behind it; at their beginning, within and at their end."""
    widest = max(range(len(lines)), key=lambda n: len(lines[n][:300]))
    for number in sorted({widest, len(lines) // 2, len(lines) - 2} & set(range(len(lines))))[:_WHERE]:
        text = lines[number]
        for at in sorted({0, text.find(b" ") + 1, len(text) // 2, len(text)}):
            yield number, at


def longer(lines, number, at, unit, length):
    more = unit.encode() * (length // len(unit))
    return b"\n".join([*lines[:number], lines[number][:at] + more + lines[number][at:], *lines[number + 1 :]])


def check(path, whole, long, short, said):
    """Hold a long line to the time of one a fourth as long."""
    if (taken := seconds(path, long) - whole) < SLOW:
        return
    once = max(1e-3, *(seconds(path, short) - whole for _ in range(2)))
    assert min(taken, seconds(path, long) - whole) / once < MOST, said


@pytest.mark.parametrize(("name", "data"), TEXTS)
def test_a_long_line_takes_time_by_its_length(name, data, tmp_path):
    path, lines = tmp_path / name, data[:6000].split(b"\n")
    whole = min(seconds(path, b"\n".join(lines)) for _ in range(2))
    for number, at in places(lines):
        for unit in UNITS:
            long = longer(lines, number, at, unit, SHORT * TIMES)
            short = longer(lines, number, at, unit, SHORT)
            check(path, whole, long, short, f"line {number + 1}, column {at}: {SHORT * TIMES} of {unit!r}")


# What took the square of its length once: the beginning of a line, what is repeated, the end.
KNOWN = (
    ("Name", " ", ""), ("Name", " ", "Self CPU"), ("", "-", "  x"), ("", "--- ", "x"), ("", "+---", "x"), ("[1] ", "@", " x"),
    ("    Section: a", " ", "b"), ("    OPT   a", " ", "b"), ("    Kernel: a", " ", "b"), ("==5==", " ", "Device x"),
    (" 83.33%  3.03999s  a", " ", "b"), ("1  a (2 instances)", " ", "[ 1 2 ]"), ("1  a_b  c", " ", "1 2 x"),
    ('"a","', ",", '"'), ("    a", "  1", " x"), ("  1  2.0  ", "a", "%"), ("", "\n", "x"), ("", " \n", "x"),
    ("0", " ", "\x01"), ("1.5e3", "\t", "-"),
)  # fmt: skip


@pytest.mark.parametrize("line", KNOWN, ids=lambda line: repr("..".join(line)))
def test_what_took_the_square_of_a_line_takes_time_by_its_length(line, tmp_path):
    begin, unit, end = line
    for param in TEXTS:
        name, data = param.values
        path, lines = tmp_path / name, data[:3000].split(b"\n")
        whole = min(seconds(path, b"\n".join(lines)) for _ in range(2))
        long, short = (
            b"\n".join([*lines, (begin + unit * (length // len(unit)) + end).encode(), *lines[-3:]])
            for length in (SHORT * TIMES, SHORT)
        )
        check(path, whole, long, short, f"{name}: {begin}{unit}...{end}")


# The same within a report: its format and name, the line that it is put before.
WITHIN = (
    ("nsys-stats", "sum.csv", 0, ("Processing [", "0", "")),
    ("nvprof-text", "cpu.txt", 4, ("0.0% ", "\t", "x")),
)


@pytest.mark.parametrize(("format_id", "name", "at", "line"), WITHIN, ids=lambda value: str(value)[:20])
def test_a_long_line_before_another_takes_time_by_its_length(format_id, name, at, line, tmp_path):
    begin, unit, end = line
    path, lines = tmp_path / name, seeds.make()[format_id][name].split(b"\n")
    whole = min(seconds(path, b"\n".join(lines)) for _ in range(2))
    long, short = (
        b"\n".join([*lines[:at], (begin + unit * length + end).encode(), *lines[at:]])
        for length in (SHORT * TIMES, SHORT)
    )
    check(path, whole, long, short, f"{name}: {begin}{unit}...{end}")


# Names of kernels, of which the whole is one word of a trace: the beginning, what is repeated, the end.
NAMES = (
    *(("gemm", unit, "(") for unit in UNITS), ("hmma sgemm_0x0_", "0", ""), ("hmma sgemm_", "0", ""), ("hmma ", "sgemm_0x0_", ""),
    ("hmma 64x", "0", ""), ("nccl", "nccl", ""), ("void f<", "(anonymous namespace)::", ""), ("_ZN", "S_", "E"),
)  # fmt: skip
TRACE = json.loads(seeds.KINETO)


def trace_of(kernels):
    """A trace with these kernels, each a name and a device, one after another."""
    model = next(event for event in TRACE["traceEvents"] if event.get("cat") == "kernel")
    made = [
        {**model, "name": name, "ts": 100 + 20 * n, "args": {**model["args"], "device": device, "correlation": 10 + n}}
        for n, (name, device) in enumerate(kernels)
    ]
    return json.dumps({**TRACE, "traceEvents": [*TRACE["traceEvents"], *made]}).encode()


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr("..".join(name)))
def test_a_long_name_of_a_kernel_takes_time_by_its_length(name, tmp_path):
    begin, unit, end = name
    path = tmp_path / "trace.json"
    whole = min(seconds(path, trace_of([("gemm", 0)])) for _ in range(2))
    long, short = (trace_of([(begin + unit * (length // len(unit)) + end, 0)]) for length in (SHORT * TIMES, SHORT))
    check(path, whole, long, short, f"{begin}{unit}...{end}")


def test_a_trace_of_many_devices_takes_time_by_their_number(tmp_path):
    path, many = tmp_path / "trace.json", 1000
    whole = min(seconds(path, trace_of([("gemm", 0)])) for _ in range(2))
    long, short = (trace_of([(f"gemm_{n}", n) for n in range(count)]) for count in (many * TIMES, many))
    check(path, whole, long, short, f"{many * TIMES} kernels, each on a device and with a name of its own")


def test_titles_that_no_rows_follow_take_no_hundreds_of_lines_each(tmp_path, monkeypatch):
    taken, take = [], Lines.take
    monkeypatch.setattr(Lines, "take", lambda lines: taken.append(1) or take(lines))
    title, row = seeds.NSYS_CSV.split("\n")[:2]
    path, many = tmp_path / "sum.csv", 1000
    for table in ([title], [title, row]):
        taken.clear()
        path.write_text("\n".join(table * many))
        read(path)
        assert len(taken) < 20 * many * len(table), (
            f"{table}: each line was taken {len(taken) / many / len(table):.0f} times"
        )
