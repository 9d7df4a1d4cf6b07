"""Rows that break an invariant are left out and reported, whatever was read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers import Options, read
from nsw.readers.invariants import LONGEST_NS, broken_invariant, leave_out_broken_rows
from nsw.readers.model import Report
from nsw.tables import TABLES, full_rows, to_arrow

NAMES = {"kernel", "name", "phase", "launch_id"}


def times_of(table):
    """The columns that hold how long something took, and the longest that may be."""
    units = {"ns": LONGEST_NS, "s": LONGEST_NS // 10**9}
    kinds = {"int64": int, "float64": float}
    found = {c.name: kinds[c.type](units[c.unit]) for c in TABLES[table].columns if c.unit in units}
    return {c: most for c, most in found.items() if not c.endswith("_pm") and c != "start_ns"}


TIMES = [(table, column, most) for table in TABLES for column, most in times_of(table).items()]


def checked(table, found, made):
    report = Report("x", tables={table: made(table, found)})
    leave_out_broken_rows(report)
    known = NAMES & set(TABLES[table].column_names)
    left = [
        {k: v for k, v in row.items() if k in known or k in times_of(table)}
        for row in full_rows(table, report.tables[table])
    ]
    return [{k: v for k, v in row.items() if v is not None} for row in left], [p.message for p in report.problems]


@pytest.mark.parametrize("made", [lambda _, found: found, to_arrow])
@pytest.mark.parametrize(("table", "column", "most"), TIMES)
def test_a_time_of_more_than_ten_years_costs_its_row(table, column, most, made):
    names = {k: "gemm" for k in NAMES & set(TABLES[table].column_names) if k != "launch_id"}
    good = names | {column: most}
    bad = names | {column: most * 2, **({f"{column}_pm": 5} if f"{column}_pm" in TABLES[table].column_names else {})}
    assert checked(table, [good, good], made) == ([good, good], [])
    found, said = checked(table, [good, bad, good], made)
    assert len(said) == 1
    assert (
        f"of {table} contradicts itself and is left out: {'gemm' if names else ''}: {column} {most * 2:g} is more than ten years"
        in said[0]
    )
    # a launch keeps its other figures, which are in other tables
    assert found == ([good, names, good] if table == "launches" else [good, good])


@pytest.mark.parametrize("made", [lambda _, found: found, to_arrow])
def test_starts_may_count_from_1970_and_what_is_absent_is_no_time(made):
    found = [{"name": "f", "start_ns": 1_700_000_000 * 10**9}, {"name": "g", "duration_ns": None}]
    assert checked("gpu_trace", found, made) == ([{"name": "f"}, {"name": "g"}], [])


@pytest.mark.parametrize("made", [lambda _, found: found, to_arrow])
def test_of_many_rows_the_first_are_named(made):
    found, said = checked("api_trace", [{"name": f"call{n}", "duration_ns": 10**18} for n in range(9)], made)
    assert found == []
    assert len(said) == 6
    assert "call4" in said[4]
    assert said[5] == "9 rows of api_trace in all contradict themselves"


SUMMARY = """==1== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   50.00%  {0}s         1  {0}s  {0}s  {0}s  gemm
                   50.00%  1.5000s         1  1.5000s  1.5000s  1.5000s  relu
"""
STATS = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
STATS += "50.0,{0}000000000,1,{0}000000000.0,{0}000000000.0,{0}000000000,{0}000000000,0.0,gemm\n"
STATS += "50.0,1500000000,1,1500000000.0,1500000000.0,1500000000,1500000000,0.0,relu\n"


@pytest.mark.parametrize(("text", "name"), [(SUMMARY, "out.txt"), (STATS, "out.csv")])
def test_a_summary_loses_the_row_alone(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text.format(400_000_000))
    report = read(path)
    assert [row["name"] for row in report.tables["gpu_summary"]] == ["relu"]
    (said,) = [p for p in report.problems if "ten years" in p.message]
    assert (said.severity, said.fix is not None) == ("error", True)
    path.write_text(text.format(2))
    assert [row["name"] for row in read(path).tables["gpu_summary"]] == ["gemm", "relu"]


def test_a_printed_trace_loses_the_row_and_a_trace_of_pytorch_the_event(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text('==1== API calls:\n"Start","Duration","Name","Correlation_ID"\ns,s,,\n'
                    '1.5,2.5,"cudaMalloc",7\n2.5,500000000.0,"cudaFree",8\n')  # fmt: skip
    report = read(path)
    assert [row["name"] for row in report.tables["api_trace"]] == ["cudaMalloc"]
    assert (
        "a row of api_trace contradicts itself and is left out: cudaFree: duration_ns 5e+17"
        in report.problems[0].message
    )
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": 6,
        "dur": 100,
        "args": {"device": 0},
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel, kernel | {"dur": 4 * 10**14}]}))
    report = read(path, Options())
    assert [row["total_ns"] for row in report.tables["gpu_summary"]] == [100_000]
    assert report.problems[0].message == "1 event has no valid time or duration and left out"


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
        ({"med_ns": 61.0}, "med_ns 61 is above max_ns 60"),
        ({"max_ns": 100.0}, "max_ns 100 is above total_ns 90"),
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
    found = broken_invariant("metrics" if "min" in more else "gpu_summary", SOUND | more)
    assert found is None if said is None else said in (found or "")


def test_such_a_row_is_left_out_and_named_and_the_others_stay():
    wrong = [SOUND | {"name": f"w{i}", "min_ns": 99.0} for i in range(9)]
    report = Report("f", tables={"gpu_summary": [SOUND, *wrong], "facts": [{"key": "a", "value": 1.0}]})
    leave_out_broken_rows(report)
    assert report.tables["gpu_summary"] == [SOUND]
    assert len(report.problems) == 6
    assert "w0" in report.problems[0].message
    assert "9 rows" in report.problems[-1].message


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
    known = [{c: v for c, v in row.items() if c in TABLES[table].column_names} for row in data]
    arrow = to_arrow(table, known)
    known = arrow.to_pylist()
    if coded:
        arrow = arrow.set_column(arrow.column_names.index("name"), "name", arrow["name"].dictionary_encode())
    small, large = (Report("f", tables={table: held}) for held in (known, arrow))
    leave_out_broken_rows(small)
    leave_out_broken_rows(large)
    assert small.problems == large.problems
    assert list(full_rows(table, small.tables[table])) == list(full_rows(table, large.tables[table]))


def test_titles_that_were_swapped_do_not_give_numbers_of_another_meaning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Min","Avg","Max","Name"\n,%,us,,us,us,us,\n'
        '"GPU activities",60.0,30.0,3,10.0,5.0,15.0,"gemm"\n"GPU activities",40.0,20.0,1,20.0,20.0,20.0,"one"\n'
    )
    report = read(path)
    assert [r["name"] for r in full_rows("gpu_summary", report.tables["gpu_summary"])] == ["one"]
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
    assert [r["metric"] for r in full_rows("metrics", report.tables["metrics"])] == ["dram_read_throughput"]
    assert any("dram_write_throughput" in p.message for p in report.problems)
