"""One cell, row, unit or mark is changed: nothing that is read changes, or only that, or a problem says so.

NSW_EXPLORE=1 changes 2,000 and prints by format how many went by in silence (`pytest -s`), and of those that no reader
could know, why: the file holds nothing that they contradict (`mutations.py` names the reasons).
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from nsw.readers import read
from nsw.tables import rows

from . import mutations, seeds
from .damage import EXPLORES

REPORTS = {
    (format_id, name): data.decode()
    for format_id in ("nvprof-text", "nsys-stats", "ncu-csv", "ncu-text", "torch-table")
    for name, data in seeds.make()[format_id].items()
    if isinstance(data, bytes)
    and name not in {"refused.txt", "tiled-stats-refused.txt", "naive-session.csv", "naive-raw.csv"}
}
MOST = 2000 // len(REPORTS) + 1 if EXPLORES else 8
# Silent changes that spread, of each report at most: what is known to be left, and must not grow.
KNOWN = {
    "cpu.txt": 1,  # a time that lost its point, of so few samples that their shares prove nothing
    "ncu-mixed.csv": 1,  # the ID of a row at the beginning of the file
}


def tables(path, text):
    path.write_text(text, newline="")
    report = read(path)
    return {t: list(rows(t, data)) for t, data in report.tables.items()}, {p.message for p in report.problems}


@pytest.fixture(scope="module")
def counts():
    found: Counter[tuple[str, str]] = Counter()
    yield found
    for format_id in sorted({f for f, _ in found}):
        told = {verdict: count for (f, verdict), count in found.items() if f == format_id}
        same, said, spread = (told.pop(verdict, 0) for verdict in ("same", "said", "spread"))
        total = same + said + spread + sum(told.values())
        print(f"{format_id}: {total} changes: {same} same, {said} said; silent: {spread} spread,"
              f" {sum(told.values())} that nobody could know:")  # fmt: skip
        print(*(f"  {count:4} {why}" for why, count in sorted(told.items())), sep="\n")


@pytest.mark.parametrize(("format_id", "name"), sorted(REPORTS))
def test_a_change_is_alone_or_said(tmp_path, counts, format_id, name):
    text = REPORTS[format_id, name]
    sound, before = tables(tmp_path / name, text)
    rng = random.Random(None if EXPLORES else name)
    spread = []
    for kind, changed in islice(mutations.mutated(text, rng), MOST):
        found, after = tables(tmp_path / name, changed)
        verdict = mutations.verdict(kind, sound, found, said=bool(after - before))
        counts[format_id, verdict] += 1
        if verdict == "spread":
            line = next((b for a, b in zip(text.split("\n"), changed.split("\n"), strict=False) if a != b), "")
            spread.append(f"{kind}: {line.strip()}")
    assert EXPLORES or len(spread) <= KNOWN.get(name, 0), "\n".join(spread)
