"""Rows with a time of more than ten years are left out and reported, whatever was read."""

import json

import pytest

from nsw.readers import Options, read
from nsw.readers.checks.impossible_times import LONGEST_NS, leave_out_impossible_times
from nsw.readers.model import Report
from nsw.tables import TABLES, as_arrow, rows

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
    leave_out_impossible_times(report)
    known = NAMES & set(TABLES[table].names)
    left = [
        {k: v for k, v in row.items() if k in known or k in times_of(table)}
        for row in rows(table, report.tables[table])
    ]
    return [{k: v for k, v in row.items() if v is not None} for row in left], [p.message for p in report.problems]


@pytest.mark.parametrize("made", [lambda _, found: found, as_arrow])
@pytest.mark.parametrize(("table", "column", "most"), TIMES)
def test_a_time_of_more_than_ten_years_costs_its_row(table, column, most, made):
    names = {k: "gemm" for k in NAMES & set(TABLES[table].names) if k != "launch_id"}
    good = names | {column: most}
    bad = names | {column: most * 2, **({f"{column}_pm": 5} if f"{column}_pm" in TABLES[table].names else {})}
    assert checked(table, [good, good], made) == ([good, good], [])
    found, said = checked(table, [good, bad, good], made)
    assert len(said) == 1
    assert f"of {table} is left out: {'gemm' if names else ''}: {column} {most * 2:g} is more than ten years" in said[0]
    # a launch keeps its other figures, which are in other tables
    assert found == ([good, names, good] if table == "launches" else [good, good])


@pytest.mark.parametrize("made", [lambda _, found: found, as_arrow])
def test_starts_may_count_from_1970_and_what_is_absent_is_no_time(made):
    found = [{"name": "f", "start_ns": 1_700_000_000 * 10**9}, {"name": "g", "duration_ns": None}]
    assert checked("gpu_trace", found, made) == ([{"name": "f"}, {"name": "g"}], [])


@pytest.mark.parametrize("made", [lambda _, found: found, as_arrow])
def test_of_many_rows_the_first_are_named(made):
    found, said = checked("api_trace", [{"name": f"call{n}", "duration_ns": 10**18} for n in range(9)], made)
    assert found == []
    assert len(said) == 6
    assert "call4" in said[4]
    assert said[5] == "9 rows of api_trace in all hold times of more than ten years"


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
    assert "a row of api_trace is left out: cudaFree: duration_ns 5e+17" in report.problems[0].message
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
