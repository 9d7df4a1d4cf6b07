"""One cell or row of an export of events is changed: only the sums of that event change, or a problem says so.

Exports do not repeat what they hold, so that most changes of a time, a name or a size are silent, and no reader could know
them ("own"). Silent changes that spread to the sums of other events are counted, and must not grow. NSW_EXPLORE=1 makes
2,000 changes in all and prints how many went by in silence, by format (`pytest -s`).
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from nsw.readers import read
from nsw.tables import full_rows

from . import seeds
from .damage import EXPLORES

MOST = 2000 // 3 + 1 if EXPLORES else 25
SUMS = ("gpu_summary", "api_summary", "osrt_summary", "nvtx_summary", "nvtx_gpu_summary", "operators")
SHARES = (
    "time_pct",
    "self_cpu_pct",
    "cpu_pct",
    "self_device_pct",
    "device_pct",
    "block",
)  # of the whole, which changes
FEW = 3  # rows of a table: the event's own before and after, and that of what it is within
EVENTS = {
    "nsys-sqlite": ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"),
    "nvprof-sqlite": ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
}  # fmt: skip
FIELDS = ("ts", "dur", "name", "ph", "cat", "tid", "External id", "correlation")
KNOWN = {"nsys-sqlite": 1, "nvprof-sqlite": 0, "kineto": 3}  # silent changes that spread, at most, with fixed dice


def other(value, rng):
    """A value that may stand in its place."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return rng.choice([None, "aten::other", "B"])
    return rng.choice([None, -value, value * 10, value // 10, value + 1, 0])


def changed_databases(data, rng, tables):
    """Without end: what was changed, and the database after it."""
    while True:
        with closing(sqlite3.connect(":memory:")) as base:
            base.deserialize(data)
            table = rng.choice([t for (t,) in base.execute("SELECT name FROM sqlite_master") if t in tables])
            row = rng.choice([r for (r,) in base.execute(f'SELECT rowid FROM "{table}"')])
            names = [r[1] for r in base.execute(f'PRAGMA table_info("{table}")')]
            kind, name = rng.choice(("cell", "cell", "cell", "drop row", "double row")), rng.choice(names)
            kept = {r[1] for r in base.execute(f'PRAGMA table_info("{table}")') if r[3]}  # NOT NULL
            before = after = None
            if kind == "cell":
                (before,) = base.execute(f'SELECT "{name}" FROM "{table}" WHERE rowid = ?', (row,)).fetchone()
                after = other(before, rng)
                if after is None and name in kept:
                    continue
                base.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = ?', (after, row))
            elif kind == "drop row":
                base.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
            else:
                base.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" WHERE rowid = ?', (row,))
            base.commit()
            if before != after or kind != "cell":
                yield f"{kind} {table}.{name} {before} -> {after}", base.serialize()


def changed_traces(data, rng):
    """The same of a trace."""
    whole = json.loads(gzip.decompress(data))
    events = whole["traceEvents"]
    spans = [at for at, event in enumerate(events) if event.get("ph") == "X"]
    while True:
        at, kind = rng.choice(spans), rng.choice(("cell", "cell", "cell", "drop row", "double row"))
        event, field = json.loads(json.dumps(events[at])), rng.choice(FIELDS)
        holder = event if field in event else event.get("args", {})
        before = after = None
        if kind == "cell":
            if field not in holder:
                continue
            before = holder[field]
            holder[field] = after = other(before, rng)
            if before == after:
                continue
        made = [event] if kind == "cell" else [] if kind == "drop row" else [event, event]
        text = json.dumps(whole | {"traceEvents": [*events[:at], *made, *events[at + 1 :]]})
        yield f"{kind} {field} of {events[at]['name'][:40]} {before} -> {after}", gzip.compress(text.encode(), 1)


def sums(path):
    """Rows of the summaries without shares, and the problems."""
    report = read(path)
    found = Counter(
        (table, json.dumps({c: v for c, v in row.items() if c not in SHARES}, default=str))
        for table in SUMS
        for row in full_rows(table, report.tables.get(table, []))
    )
    return found, {p.message for p in report.problems}


@pytest.mark.parametrize("format_id", sorted(KNOWN))
def test_a_changed_event_is_alone_or_said(tmp_path, format_id):
    name, data = list(seeds.make()[format_id].items())[-1]
    rng = random.Random(None if EXPLORES else format_id)
    changes = changed_traces(data, rng) if format_id == "kineto" else changed_databases(data, rng, EVENTS[format_id])
    path = seeds.write(data, tmp_path / name)
    sound, before = sums(path)
    told, spread = Counter(), []
    for what, changed in (change for change, _ in zip(changes, range(MOST), strict=False)):
        found, after = sums(seeds.write(changed, path))
        tables = [Counter(table for table, _ in part.elements()) for part in (sound - found, found - sound)]
        if not any(tables):
            told["same"] += 1
        elif after - before:
            told["said"] += 1
        elif max(most for part in tables for most in [0, *part.values()]) <= FEW:
            told["own"] += 1
        else:
            told["spread"] += 1
            spread.append(f"{what}: {tables}")
    print(f"{format_id}: {dict(told)}", *spread[:40] if EXPLORES else (), sep="\n  ")
    assert EXPLORES or len(spread) <= KNOWN[format_id], "\n".join(spread)
