"""Tables of metrics and events in forms of their own: those of CUDA 5.0, and values of single units of a GPU."""

import sqlite3

import pytest

from nsw.readers import read
from nsw.tables import full_rows

EVENTS = """\
======== Profiling result:
\t\tInvocations         Avg         Min         Max  Event Name
Device 0
\tKernel: axpy(float, float*, float*)
\t\t          4        4000        1000        7000  branch
\t\t          4        4001        1001        7001  warps_launched
Device 1
\tKernel: gemm(float*, int)
\t\t          3        5000        2000        8000  branch
"""
EVENTS_CSV = """\
======== Profiling result:
"Device","Event Name","Invocations","Avg","Min","Max","Kernel"
0,"branch",4,4000,1000,7000,"axpy(float, float*, float*)"
0,"warps_launched",4,4001,1001,7001,"axpy(float, float*, float*)"
1,"branch",3,5000,2000,8000,"gemm(float*, int)"
"""
TRACE_CSV = """\
======== Profiling result:
"Device","Context","Stream","Event Name","Kernel","Values"
0,1,7,"branch","axpy(float, float*, float*)","1000"
1,2,7,"branch","gemm(float*, int)","2000"
"""
TRACE = """\
======== Profiling result:
  Device   Context    Stream  Event Name      Kernel  Values
       0         1         7      branch  axpy(float  1000
       0         1         7  warps_laun  axpy(float  1001
"""
UNITS = """\
======== Profiling result:
======== Event result:
Invocations                                Event Name         Min         Max         Avg       Total
Device "Tesla V100-SXM2-16GB (1)"
    Kernel: axpy(float, float*)
          4                                    branch        1000        7000        4000       16000
          4                      branch (3 instances)           -           -  [        400        401        402 ]           -

======== Metric result:
Invocations                               Metric Name                        Metric Description         Min         Max         Avg
Device "Tesla V100-SXM2-16GB (1)"
    Kernel: axpy(float, float*)
          4           branch_efficiency (2 instances)                         Branch Efficiency           -           -  [     12.50%     13.50% ]
          4              l2_utilization (2 instances)                      L2 Cache Utilization           -           -  [    Low (2)    Low (3) ]
"""
UNITS_CSV = """\
======== Profiling result:
======== Event result:
"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"
"Tesla V100-SXM2-16GB (1)","axpy(float, float*)",4,"branch",1000,7000,4000,16000
"Tesla V100-SXM2-16GB (1)","axpy(float, float*)",4,"branch (3 instances)",,,"400,401,402",

======== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla V100-SXM2-16GB (1)","axpy(float, float*)",4,"branch_efficiency (2 instances)","Branch Efficiency",,,"12.500000%,13.500000%"
"Tesla V100-SXM2-16GB (1)","axpy(float, float*)",4,"l2_utilization (2 instances)","L2 Cache Utilization",,,""Low (2)","Low (3)""
"""
UNITS_TRACE = """\
======== Profiling result:
         Device   Context    Stream                Kernel  branch (0)  branch (1)
Tesla V100-SXM2         1         7   axpy(float, float*)         100         101
"""


def metrics(report):
    return list(full_rows("metrics", report.tables.get("metrics", [])))


def said(report):
    return " | ".join(p.message for p in report.problems)


@pytest.mark.parametrize("text", [EVENTS, EVENTS_CSV])
def test_events_of_cuda_5_have_their_gpu_by_its_number(load, text):
    report = load(text)
    assert not report.problems
    found = [[r[c] for c in ("device", "metric", "invocations", "min", "max", "avg")] for r in metrics(report)]
    assert found == [
        [0, "branch", 4, 1000, 7000, 4000],
        [0, "warps_launched", 4, 1001, 7001, 4001],
        [1, "branch", 3, 2000, 8000, 5000],
    ]
    assert metrics(report)[2]["kernel"] == "gemm(float*, int)"
    assert {r["device_name"] for r in metrics(report)} == {None}


def test_a_trace_of_cuda_5_events_has_a_row_a_launch(load):
    found = [(r["device"], r["kernel"], r["metric"], r["value"]) for r in metrics(load(TRACE_CSV))]
    assert found == [(0, "axpy(float, float*, float*)", "branch", 1000), (1, "gemm(float*, int)", "branch", 2000)]


GPU_TRACE = """\
======== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput    Device   Context    Stream  Name
     0ns  1.0000us            (128 1 1)       (256 1 1)        32        0B        0B         -           -         0         1         7  axpy(float*)
20.000us  2.0000us                    -               -         -         -         -  4.0000KB  1.9073GB/s         1         2         7  [CUDA memcpy HtoD]
30.000us  2.0000us                    -               -         -         -         -  4.0000KB  1.9073GB/s         1         2         7  [CUDA memcpy HtoD]
"""


def test_a_trace_of_cuda_5_has_its_gpu_by_its_number(load):
    report = load(GPU_TRACE)
    assert not report.problems
    found = list(full_rows("gpu_trace", report.tables["gpu_trace"]))
    assert [(r["device"], r["device_name"], r["context"], r["bytes"]) for r in found] == [
        (0, None, 1, None),
        (1, None, 2, 4096),
        (1, None, 2, 4096),
    ]
    shifted = load(GPU_TRACE.replace("         0         1         7  axpy", "         0         7  axpy"))
    assert len(shifted.tables["gpu_trace"]) == 2
    assert "damaged" in said(shifted)


def test_names_of_ten_characters_are_no_names(load):
    report = load(TRACE)
    assert not report.tables.get("metrics")
    assert "ten characters" in said(report)


@pytest.mark.parametrize(
    "text",
    [
        EVENTS.replace("        7000  branch", "  branch"),
        EVENTS.replace("\tKernel: axpy(float, float*, float*)\n", ""),
        TRACE_CSV.replace(',"1000"', ""),
        TRACE_CSV.replace('"1000"', '"1000 1001"'),
    ],
)
def test_damaged_events_are_told(load, text):
    report = load(text)
    assert "damaged" in said(report)
    assert 1000 not in {r["min"] for r in metrics(report)} | {r["value"] for r in metrics(report)}


@pytest.mark.parametrize("text", [UNITS, UNITS_CSV])
def test_single_units_of_a_gpu_are_rows_with_their_mean(load, text):
    report = load(text)
    assert not report.problems
    found = {r["metric"]: (r["avg"], r["unit"], r["min"], r["description"]) for r in metrics(report)}
    assert found == {
        "branch": (4000, None, 1000, None),
        "branch (0)": (400, None, None, None),
        "branch (1)": (401, None, None, None),
        "branch (2)": (402, None, None, None),
        "branch_efficiency (0)": (12.5, "%", None, "Branch Efficiency"),
        "branch_efficiency (1)": (13.5, "%", None, "Branch Efficiency"),
        "l2_utilization (0)": (2, None, None, "L2 Cache Utilization"),
        "l2_utilization (1)": (3, None, None, "L2 Cache Utilization"),
    }
    assert {(r["device"], r["kernel"], r["invocations"]) for r in metrics(report)} == {(1, "axpy(float, float*)", 4)}


def test_a_trace_of_single_units_has_them_in_columns(load):
    assert [(r["metric"], r["value"]) for r in metrics(load(UNITS_TRACE))] == [("branch (0)", 100), ("branch (1)", 101)]


@pytest.mark.parametrize(
    "text",
    [
        UNITS.replace("        402 ]", " ]"),
        UNITS.replace("400        401", "4o0        401"),
        UNITS_CSV.replace("400,401,402", "400,401"),
        UNITS_CSV.replace('"axpy(float, float*)",4,"branch (3', '4,"branch (3'),
    ],
)
def test_a_unit_that_is_missing_is_told(load, text):
    report = load(text)
    assert "damaged" in said(report)
    assert not {"branch (0)", "branch (1)"} & {r["metric"] for r in metrics(report)}


def test_single_units_of_a_database_are_rows_too(tmp_path):
    path = tmp_path / "run.nvvp"
    db = sqlite3.connect(path)
    db.executescript(
        """
        CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
        INSERT INTO StringTable VALUES (1, 'axpy');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(name INT, start INT, end INT, deviceId INT, correlationId INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 10, 20, 0, 1), (1, 30, 40, 0, 2);
        CREATE TABLE CUPTI_ACTIVITY_KIND_EVENT_INSTANCE(id INT, domain INT, instance INT, value INT, correlationId INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_EVENT_INSTANCE
        VALUES (6, 0, 0, 100, 1), (6, 0, 1, 101, 1), (6, 0, 0, 300, 2), (6, 0, 1, 301, 2);
        """
    )
    db.close()
    found = [(r["metric"], r["invocations"], r["min"], r["max"], r["avg"]) for r in metrics(read(path))]
    assert found == [("branch (0)", 2, 100, 300, 200), ("branch (1)", 2, 101, 301, 201)]
