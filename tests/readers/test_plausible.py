"""Rows whose figures contradict each other: a cell that went missing puts the others under the wrong titles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers import read
from nsw.readers.checks.plausible import contradiction, leave_out_contradictions
from nsw.readers.model import Report
from nsw.tables import TABLES, as_arrow, rows

SOUND = {
    "name": "k", "calls": 3, "time_pct": 40.0, "total_ns": 90.0, "total_ns_pm": 5.0, "avg_ns": 30.0, "avg_ns_pm": 1.0,
    "med_ns": 20.0, "min_ns": 10.0, "max_ns": 60.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, None),
        ({"min_ns": 31.5}, "min_ns 31.5 is above"),
        ({"min_ns": 30.9, "med_ns": 31.0}, None),  # within the rounding of the mean
        ({"avg_ns": None, "med_ns": None, "min_ns": 61.0}, "min_ns 61 is above max_ns 60"),
        ({"med_ns": 61.0}, "max_ns 60 is below med_ns 61"),
        ({"max_ns": 100.0}, "total_ns 90 is below max_ns 100"),
        ({"total_ns": 900.0}, "3 calls of 30 ns are no 900 ns"),
        ({"calls": 5}, None),  # two of them have no times
        ({"time_pct": 104.0}, "time_pct is 104"),
        ({"avg_ns": None, "med_ns": None, "total_ns": None}, None),
        ({"min": 2.0, "avg": 1.0, "max": 3.0}, "min 2 is above avg 1"),
        ({"min_ns": 60.5, "min_ns_pm": 0.5, "avg_ns": None, "med_ns": None}, None),  # as printed both may be 60
        ({"max_ns": None, "med_ns": None, "total_ns": None, "min_ns": 30.9}, None),
        ({"min": -2.0, "avg": -2.001, "max": -1.0}, None),  # as little outside as a positive one may be
        ({"min": -2.0, "avg": -2.1, "max": -1.0}, "min -2 is above avg -2.1"),
    ],
)
def test_what_cannot_be(more, said):
    found = contradiction(SOUND | more)
    assert found is None if said is None else said in (found or "")


def test_such_a_row_is_left_out_and_named_and_the_others_stay():
    wrong = [SOUND | {"name": f"w{i}", "min_ns": 99.0} for i in range(9)]
    report = Report("f", tables={"gpu_summary": [SOUND, *wrong], "facts": [{"key": "a", "value": 1.0}]})
    leave_out_contradictions(report)
    assert report.tables["gpu_summary"] == [SOUND]
    assert len(report.problems) == 6
    assert "w0" in report.problems[0].message
    assert "9 rows" in report.problems[-1].message


def test_a_number_is_no_name_but_of_a_range_it_may_be(tmp_path):
    rows_ = [
        SOUND | {"name": n}
        for n in ("1077.5300", "12.110ms", "41%", "", None, "7 kernel", "0.4   fclose", "2mm_kernel", "k")
    ]
    report = Report("f", tables={"gpu_summary": rows_, "nvtx_summary": rows_})
    leave_out_contradictions(report)
    assert [r["name"] for r in report.tables["gpu_summary"]] == ["7 kernel", "2mm_kernel", "k"]
    assert report.tables["nvtx_summary"] == rows_


VALUES = st.one_of(
    st.none(), st.sampled_from([0.0, 1.0, 9.0, 10.0, 30.0, 31.0, 60.0, 90.0, 100.06, 900.0, float("nan")])
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from([None, "", "k", "12.110ms", "7 kernel", "41%"]),
                "calls": st.sampled_from([None, 0, 1, 3, 10**12]),
                **{c: VALUES for c in SOUND if c not in {"name", "calls"}},
            }
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(["gpu_summary", "nvtx_summary", "um_summary"]),
    st.booleans(),
)
def test_a_large_table_loses_the_same_rows_as_a_small_one(data, table, coded):
    known = [{c: v for c, v in row.items() if c in TABLES[table].names} for row in data]
    arrow = as_arrow(table, known)
    known = arrow.to_pylist()
    if coded:
        arrow = arrow.set_column(arrow.column_names.index("name"), "name", arrow["name"].dictionary_encode())
    small, large = (Report("f", tables={table: held}) for held in (known, arrow))
    leave_out_contradictions(small)
    leave_out_contradictions(large)
    assert small.problems == large.problems
    assert list(rows(table, small.tables[table])) == list(rows(table, large.tables[table]))


def test_titles_that_were_swapped_do_not_give_numbers_of_another_meaning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Min","Avg","Max","Name"\n,%,us,,us,us,us,\n'
        '"GPU activities",60.0,30.0,3,10.0,5.0,15.0,"gemm"\n"GPU activities",40.0,20.0,1,20.0,20.0,20.0,"one"\n'
    )
    report = read(path)
    assert [r["name"] for r in rows("gpu_summary", report.tables["gpu_summary"])] == ["one"]
    assert any("gemm" in p.message for p in report.problems)


def test_the_mean_of_a_throughput_may_lie_a_little_outside(tmp_path):
    """nvprof prints so of one launch."""
    path = tmp_path / "a.txt"
    path.write_text(
        "==1== Metric result:\nInvocations  Metric Name  Metric Description  Min  Max  Avg\n"
        'Device "GeForce GTX 1070 (0)"\n    Kernel: copy(int)\n'
        "          1  dram_read_throughput  Device Memory Read Throughput  8.9867GB/s  8.9867GB/s  8.9863GB/s\n"
        "          1  dram_write_throughput  Device Memory Write Throughput  8.9867GB/s  8.9867GB/s  8.8863GB/s\n"
    )
    report = read(path)
    assert [r["metric"] for r in rows("metrics", report.tables["metrics"])] == ["dram_read_throughput"]
    assert any("dram_write_throughput" in p.message for p in report.problems)
