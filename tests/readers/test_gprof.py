"""gprof's text: a real profile, and forms that others print."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsw.readers import read

PROFILE = Path(__file__).parents[1] / "fixtures" / "cpu" / "host.gprof.txt"


def functions(path):
    report = read(path)
    assert not [p for p in report.problems if p.severity == "error"], report.problems
    return {row["name"]: row for row in report.tables["functions"]}


def test_the_flat_profile_and_the_call_graph_make_one_row_a_function():
    found = functions(PROFILE)
    assert (found["step"]["calls"], found["step"]["self_s"], found["step"]["self_pct"]) == (100, 0.49, 79.16)
    assert found["iterate"]["cpu_time_s"] == pytest.approx(0.62)
    assert found["main"]["self_s"] == 0  # in the graph alone
    assert found["main"].get("calls") is None  # nobody was seen to call it


def test_recursive_calls_are_counted_apart():
    row = functions(PROFILE)["levels"]
    assert (row["calls"], row["primitive_calls"]) == (21891, 1)


def test_the_time_of_all_is_that_of_the_rows():
    facts = {row["key"]: row["value"] for row in read(PROFILE).tables["facts"]}
    assert facts == {"sampling_hz": 100, "cpu_time_s": 0.62}
    assert sum(row["self_s"] for row in functions(PROFILE).values()) == pytest.approx(facts["cpu_time_s"])


@pytest.mark.parametrize(
    ("part", "names"),
    [("flat", {"step", "norm", "iterate", "levels"}), ("graph", {"step", "norm", "iterate", "levels", "main"})],
)
def test_each_part_is_read_alone(tmp_path, part, names):
    flat, graph = PROFILE.read_text().split("\t\t\tCall graph")
    path = tmp_path / "part.txt"
    path.write_text(flat if part == "flat" else "\t\t\tCall graph" + graph)
    assert functions(path).keys() == names


CYCLE = """\
index % time    self  children    called     name
[1]     90.0    0.20    0.70       3+5   <cycle 1 as a whole> [1]
                0.15    0.40       4             even(int, long) <cycle 1> [2]
-----------------------------------------------
                                   4             odd <cycle 1> [3]
[2]     55.0    0.15    0.40       4         even(int, long) <cycle 1> [2]
-----------------------------------------------
"""


def test_functions_that_call_each_other_have_their_own_times_and_no_sum(tmp_path):
    path = tmp_path / "cycle.txt"
    path.write_text(CYCLE)
    found = functions(path)
    assert found.keys() == {"even(int, long)"}
    assert found["even(int, long)"]["cpu_time_s"] == pytest.approx(0.55)


def test_functions_of_one_name_have_no_time_with_callees(tmp_path):
    path = tmp_path / "twice.txt"
    path.write_text(PROFILE.read_text().replace(" norm [4]", " step [4]").replace("  norm\n", "  step\n"))
    report = read(path)
    assert [row.get("cpu_time_s") for row in report.tables["functions"] if row["name"] == "step"] == [None, None]
    assert report.problems[0].message.endswith("of functions with the same name: step")


def test_a_damaged_row_is_said(tmp_path):
    path = tmp_path / "damaged.txt"
    path.write_text(PROFILE.read_text().replace("21.00      0.62", "21.00      0.6#"))
    assert [(p.message, p.line) for p in read(path).problems] == [
        ("a row that does not have gprof's columns was left out", 7)
    ]
