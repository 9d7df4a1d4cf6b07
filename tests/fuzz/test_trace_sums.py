"""The sums of a damaged trace of PyTorch are those of its own events, as a few lines of this file add them up."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import read
from nsw.tables import full_rows

from . import seeds
from .damage import TIMES

EXAMPLES = 100 * TIMES
calm = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=EXAMPLES)
GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
_MOST_US = 9e15  # in ns an int64
_TEN_YEARS = 3653 * 24 * 3600 * 10**9  # ns


def copied(event, number):
    """The event as a later step of the program has it: with a time and ids of its own."""
    ids = {key: value + 100 * number for key, value in event["args"].items() if key in {"correlation", "External id"}}
    return event | {"ts": event["ts"] + 1000 * number, "args": event["args"] | ids}


WHOLE = [copied(event, number) for number in range(3) for event in json.loads(seeds.KINETO)["traceEvents"]]

VALUES = st.one_of(
    st.sampled_from([None, True, "", "text", "12.5", "1e999", "-3", [], {}, [1], {"a": 1}, -1, -0.5, 0, 10**15, 8 * 10**15, 10**16]),
    st.sampled_from([10**400, 1e300, float("inf"), float("-inf"), float("nan"), 2**63, -(2**63), 1.25, 1e-9]),
    st.integers(0, 10**6), st.floats(0, 1e6),
)  # fmt: skip
KEYS = st.sampled_from(["ts", "dur", "ts", "dur", "name", "cat", "ph", "pid", "tid", "args"])
EDITS = st.lists(
    st.tuples(st.integers(0, len(WHOLE) - 1), st.sampled_from(["set", "drop", "twice", "again"]), KEYS, VALUES),
    min_size=1, max_size=6,
)  # fmt: skip


def written(edits):
    """The trace as text, with keys that are dropped, there twice or of other values, and events that are there twice."""
    events = [list(event.items()) for event in WHOLE]
    for number, how, key, value in edits:
        pairs = events[number]
        match how:
            case "set":
                events[number] = [(k, value if k == key else v) for k, v in pairs]
            case "drop":
                events[number] = [(k, v) for k, v in pairs if k != key]
            case "twice":
                events[number] = [*pairs, (key, value)]
            case "again":
                events.append(pairs)
    objects = ["{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in e) + "}" for e in events]
    return '{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(objects) + "\n]}"


def nanoseconds(value):
    """A time in microseconds, a number or the text of one; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        exact = isinstance(value, int)
        number = value if exact else float(value)
        if not exact and not math.isfinite(number):
            return None
    except ValueError:
        return None
    return None if abs(number) >= _MOST_US else round(number * 1000)


def timed(text, categories):
    """(name, duration) of each event of some categories that can be counted."""
    found = []
    for event in json.loads(text)["traceEvents"]:
        kind, name = event.get("cat"), event.get("name")
        if event.get("ph") != "X" or not isinstance(kind, str) or kind.lower() not in categories:
            continue
        start, took = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if isinstance(name, str) and start is not None and took is not None and 0 <= took <= _TEN_YEARS:
            found.append((name, took))
    return found


def by_name(pairs):
    total: Counter[str] = Counter()
    for name, value in pairs:
        total[name] += value
    return dict(total)


@calm
@given(EDITS)
def test_sums_are_those_of_the_events(tmp_path, edits):
    path = tmp_path / "trace.json"
    text = written(edits)
    path.write_text(text)
    report = read(path)
    if any("too large to be added" in p.message for p in report.problems):
        assert not report.tables
        return
    tables = {name: list(full_rows(name, data)) for name, data in report.tables.items()}
    for table, categories in (("gpu_summary", GPU), ("api_summary", CALLS)):
        events, found = timed(text, categories), tables.get(table, [])
        assert by_name((r["name"], r["total_ns"]) for r in found) == pytest.approx(by_name(events), rel=1e-12)
        assert by_name((r["name"], r["calls"]) for r in found) == by_name((n, 1) for n, _ in events)
        durations = {took for _, took in events}
        assert {r[c] for r in found for c in ("min_ns", "max_ns")} <= {float(d) for d in durations}
    operators = tables.get("operators", [])
    events = timed(text, {"cpu_op"})
    calls = by_name((r["name"], r["calls"]) for r in operators if r["name"] in dict(events))
    most = by_name((n, 1) for n, _ in events)
    assert calls.keys() == most.keys()
    assert all(0 < calls[n] <= most[n] for n in most)  # an operator that only calls another of its name is one with it
    gpu = sum(took for _, took in timed(text, GPU))
    for row in operators:
        most = sum(took for name, took in timed(text, {"cpu_op", "user_annotation"}) if name == row["name"])
        assert 0 <= (row["self_cpu_ns"] or 0) <= (row["cpu_ns"] or 0) <= most * (1 + 1e-12)
        assert 0 <= (row["self_device_ns"] or 0) <= gpu * (1 + 1e-12)


def test_durations_beyond_an_int64_are_refused_in_so_many_words(tmp_path):
    path = tmp_path / "trace.json"
    kernel = next(event for event in WHOLE if event.get("cat") == "kernel")
    events = [copied(kernel, number) | {"dur": 3 * 10**14} for number in range(20)]  # of nine years each
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    (problem,) = read(path).problems
    assert problem.message.startswith("no summary: durations too large to be added")


@calm
@given(EDITS)
def test_an_event_that_cannot_be_counted_is_told_of(tmp_path, edits):
    path = tmp_path / "trace.json"
    text = written([e for e in edits if e[2] in {"ts", "dur", "name"}] or [(0, "drop", "dur", None)])
    path.write_text(text)
    spans = [e for e in json.loads(text)["traceEvents"] if e["ph"] == "X"]
    if len(timed(text, GPU | CALLS | {"cpu_op"})) < len(spans):
        assert read(path).problems
