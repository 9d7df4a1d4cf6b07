"""py-spy's stacks: real ones, held against a count of their lines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nsw.readers import read

CPU = Path(__file__).parents[1] / "fixtures" / "cpu"
OWN = CPU / "host.rate100.pyspy.txt"
NATIVE = CPU / "pyspy-native.txt"


def counted(path):
    """Samples by the innermost frame, by hand."""
    found = Counter()
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        found[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
    return found


@pytest.mark.parametrize("path", [OWN, NATIVE])
def test_each_function_has_the_samples_that_hit_it(path):
    rows = {row["name"]: row["samples"] for row in read(path).tables["functions"]}
    for name, samples in counted(path).items():
        if not name.startswith("process"):
            assert rows[name] == samples
    assert sum(rows.values()) == counted(path).total()


def test_the_rate_in_nsws_own_name_gives_seconds():
    found = read(OWN)
    rows = {row["name"]: row for row in found.tables["functions"]}
    assert rows["square"]["self_s"] == counted(OWN)["square"] / 100
    assert rows["step"]["cpu_time_s"] == rows["square"]["self_s"]
    assert (rows["square"]["file"], rows["square"]["line"]) == ("/tmp/heat/heat.py", 7)
    assert {row["key"]: row["value"] for row in found.tables["facts"]}["sampling_hz"] == 100


def test_without_a_rate_there_are_shares_and_no_seconds():
    rows = {row["name"]: row for row in read(NATIVE).tables["functions"]}
    assert rows["square"].get("self_s") is None
    assert rows["square"]["self_pct"] > 90
    assert rows["square"]["line"] is None  # which was running, not where it begins


def test_a_function_in_a_library_has_it_as_module():
    rows = read(NATIVE).tables["functions"]
    assert {row["module"] for row in rows if row["name"].startswith("0x")} == {"libc.so.6"}


def test_samples_outside_of_python_are_kept(tmp_path):
    path = tmp_path / "raw.txt"
    path.write_text('process 7:"python a;b.py" 3\nprocess 7:"bash -c "$@"; python a;b.py";f (a.py:4) 1\n')
    assert [(row["name"], row["self_pct"]) for row in read(path).tables["functions"]] == [
        ("[no Python function]", 75), ("f", 25),
    ]  # fmt: skip


def test_a_line_without_a_count_is_said(tmp_path):
    path = tmp_path / "host.rate100.pyspy.txt"
    path.write_text("f (a.py:4) 1\ng (a.py:5)\n")
    assert [(p.message, p.line) for p in read(path).problems] == [("no stack with a count behind it; left out", 2)]


def test_a_function_that_calls_itself_is_on_a_stack_once(tmp_path):
    path = tmp_path / "host.rate10.pyspy.txt"
    path.write_text("f (a.py:4);f (a.py:4);f (a.py:4) 5\n")
    (row,) = read(path).tables["functions"]
    assert (row["self_s"], row["cpu_time_s"]) == (0.5, 0.5)
