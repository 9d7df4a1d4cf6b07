"""Launches that ncu lists but could not measure: its zeros are no results."""

import pytest

from nsw.readers import read
from nsw.readers.ncu import csv_reader as ncu_csv
from nsw.tables.parquet_tables import full_rows

HEADER = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
NOTHING, SOME = '"(0, 0, 0)","(0, 0, 0)"', '"(64, 1, 1)","(16, 1, 1)"'


def launch(number, sizes):
    return f'"{number}","42","app","127.0.0.1","k","1","7",{sizes},"0","9.0",'


def details(*launches):
    lines = [HEADER + '"Section Name","Metric Name","Metric Unit","Metric Value"']
    for number, sizes, cycles in launches:
        begin = launch(number, sizes) + '"S",'
        lines += [
            begin + '"Duration","ns","0"',
            begin + f'"Elapsed Cycles","cycle","{cycles}"',
            begin + '"Waves","","n/a"',
        ]
    return "\n".join(lines) + "\n"


def tables(path, text):
    path.write_text(text)
    report = read(path)
    return report, {name: list(full_rows(name, table)) for name, table in report.tables.items()}


def test_zeros_of_a_launch_without_threads_are_absent_and_it_is_said(tmp_path):
    report, found = tables(tmp_path / "r.csv", details((3, NOTHING, "0"), (4, SOME, "0"), (5, NOTHING, "0")))
    assert [(x["launch_id"], x["grid"], x["duration_ns"]) for x in found["launches"]] == [
        (3, None, None), (4, "(16, 1, 1)", 0.0), (5, None, None),
    ]  # fmt: skip
    assert [m["value"] for m in found["metrics"]] == [None, None, None, 0.0, 0.0, None, None, None, None]
    (problem,) = report.problems
    assert problem.severity == "warning"
    assert problem.message.startswith("launch 3 (k) and 1 more were not measured")


UNMEASURED = """\
  k(float*) (0, 0, 0)x(0, 0, 0), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Elapsed Cycles                cycle      (!) nan
    ----------------------- ----------- ------------
"""


@pytest.mark.parametrize(("error", "has_hint"), [("==ERROR== LaunchFailed\n", False), ("", True)])
def test_a_launch_without_values_is_said_without_a_second_hint_where_an_error_has_one(tmp_path, error, has_hint):
    report, _ = tables(tmp_path / "r.txt", error + "[1] app@127.0.0.1\n" + UNMEASURED)
    (problem,) = (p for p in report.problems if "was not measured" in p.message)
    assert problem.message.startswith("launch 0 (k) was not measured: ncu wrote size 0 and no values")
    assert (problem.fix is not None) == has_hint


def test_a_figure_that_is_not_zero_stays(tmp_path):
    _, found = tables(tmp_path / "r.csv", details((0, NOTHING, "17")))
    assert [m["value"] for m in found["metrics"]] == [None, 17.0, None]


def test_what_is_known_of_the_gpu_without_measuring_stays(tmp_path):
    text = (
        HEADER + '"device__attribute_ecc_enabled","sm__cycles_active.sum"\n'
        + '"","","","","","","","","","","","","cycle"\n' + launch(0, NOTHING) + '"0","0"\n'
    )  # fmt: skip
    _, found = tables(tmp_path / "r.csv", text)
    assert {m["metric"]: m["value"] for m in found["metrics"]} == {
        "device__attribute_ecc_enabled": 0.0,
        "sm__cycles_active.sum": None,
    }


def test_a_large_file_is_read_the_same(tmp_path, monkeypatch):
    text = details(*((i, SOME, "12") for i in range(3000)), (3000, NOTHING, "0"))
    exact = tables(tmp_path / "r.csv", text)[1]
    monkeypatch.setattr(ncu_csv, "LARGE", 1)
    report, found = tables(tmp_path / "r.csv", text)
    assert found == exact
    assert found["launches"][-1]["grid"] is None
    assert [p.message[:14] for p in report.problems] == ["launch 3000 (k"]


def test_the_pages_as_text_and_summaries_too(tmp_path):
    head = "[42] app@127.0.0.1\n"
    table = (
        "    Section: S\n"
        "    ----------- ----------- ------------\n"
        "    Metric Name Metric Unit Metric Value\n"
        "    ----------- ----------- ------------\n"
        "    Duration             ns            0\n"
        "    ----------- ----------- ------------\n"
    )
    one = head + "  k (0, 0, 0)x(0, 0, 0), Context 1, Stream 7, Device 0, CC 9.0\n" + table
    report, found = tables(tmp_path / "r.txt", one)
    assert (found["launches"][0]["duration_ns"], found["metrics"][0]["value"]) == (None, None)
    many = (
        "  k (0, 0, 0)x(0, 0, 0), Device 0, CC 9.0, Invocations 2\n"
        "    Section: S\n"
        "    ----------- ----------- ------------ ------------ ------------\n"
        "    Metric Name Metric Unit      Minimum      Maximum      Average\n"
        "    ----------- ----------- ------------ ------------ ------------\n"
        "    Duration             ns            0            0            0\n"
        "    ----------- ----------- ------------ ------------ ------------\n"
    )
    report, found = tables(tmp_path / "r.txt", many)
    assert [(m["min"], m["max"], m["avg"], m["invocations"]) for m in found["metrics"]] == [(None, None, None, 2)]
    assert report.problems[0].message.startswith("the launches of k were not measured")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Segmentation fault (core dumped)\n", "ended with 'Segmentation fault'"),
        (
            "----- ------ -----\nKernel Name        k(int)       \n----- ------ -----\nAddress     Source     Warp S\n",
            "ncu's source page as text",
        ),
    ],
)
def test_what_stands_in_place_of_a_page_is_named(tmp_path, text, said):
    report, _ = tables(tmp_path / "r.txt", text)
    assert said in report.problems[0].message
    assert report.problems[0].fix


REQUESTED = ["sm__pipe_tensor_active.avg", "flop_count_sp.sum", "sm__cycles_active.avg", "dram__bytes.sum"]


def with_values(path, *values):
    """The problems of a report of as many of these metrics, with these values."""
    begin = launch(0, SOME) + '"Command line profiler metrics",'
    rows = [begin + f'"{metric}","","{value}"' for metric, value in zip(REQUESTED, values, strict=False)]
    return tables(
        path, "\n".join([HEADER + '"Section Name","Metric Name","Metric Unit","Metric Value"', *rows]) + "\n"
    )[0].problems


def test_names_that_no_ncu_has_are_reported_with_the_right_ones(tmp_path):
    (problem,) = with_values(tmp_path / "some.csv", "n/a", "n/a", "17", "18")
    assert problem.severity == "warning"
    assert problem.message == (
        "2 of 4 metrics have no value (nan, n/a): ncu has no metric sm__pipe_tensor_active.avg, flop_count_sp.sum"
    )
    assert problem.fix == (
        "`nsw metrics show flop_count_sp` lists ncu's names;"
        " sm__pipe_tensor_active.avg: did you mean sm__pipe_tensor_cycles_active.avg?"
    )
    (problem,) = with_values(tmp_path / "all.csv", "n/a")
    assert problem.severity == "error"
    assert problem.message.startswith("none of its metrics has a value (nan, n/a): ncu has no metric sm__pipe_tensor_")
    assert problem.fix == "did you mean sm__pipe_tensor_cycles_active.avg?"


def test_names_that_ncu_has_are_left_to_the_chip_and_shown_in_the_hint(tmp_path):
    assert with_values(tmp_path / "some.csv", "1", "2", "17", "n/a") == []
    path = tmp_path / "all.csv"
    path.write_text(
        HEADER + '"Section Name","Metric Name","Metric Unit","Metric Value"\n'
        + launch(0, SOME) + '"Command line profiler metrics","dram__bytes.sum","","n/a"\n'
    )  # fmt: skip
    (problem,) = read(path).problems
    assert problem.severity == "error"
    assert "`nsw metrics show dram__bytes.sum`" in problem.fix
