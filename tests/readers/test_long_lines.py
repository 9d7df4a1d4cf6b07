"""A line of CSV with a cell longer than Python's csv module takes costs its row, which is reported, and no more."""

import csv

import pytest

from nsw.readers import read
from nsw.tables import row_count

TOO_LONG = "x" * (csv.field_size_limit() + 1)
RESULT = "==1== Profiling result:\n"


def nsys_stats(name, _):
    return f'12.5,100,1,100.0,100.0,100,100,0.0,"{name}"\n'


def nvprof_summary(name, n):
    return f'"GPU activities",0.5,{n + 1}.5,1,{n + 1}.5,{n + 1}.5,{n + 1}.5,"{name}"\n'


def nvprof_trace(name, n):
    return f'{n}.5,1.5,"{name}",{n}\n'


def nvprof_metrics(name, n):
    return f'"Tesla V100 (0)","{name}",{n + 1},"ipc","Executed IPC",1.5,2.5,2.0\n'


def cuda_5_events(name, n):
    return f'0,1,7,"branch{n}","{name}","1000"\n'


def ncu_details(name, n):
    return f'"{n}","7","app","host","{name}","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","S","Duration","ns","{n + 9}"\n'


NCU = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
NCU += '"Section Name","Metric Name","Metric Unit","Metric Value"\n'
TABLES = {
    "nsys stats": (
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n",
        nsys_stats, "gpu_summary",
    ),
    "nvprof summary": (
        RESULT + '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n', nvprof_summary,
        "gpu_summary",
    ),
    "nvprof trace": (
        RESULT + '"Start","Duration","Name","Correlation_ID"\nms,us,,\n', nvprof_trace, "gpu_trace",
    ),
    "nvprof metrics": (
        '==1== Metric result:\n"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n',
        nvprof_metrics, "metrics",
    ),
    "CUDA 5 events": (
        '==1== Event result:\n"Device","Context","Stream","Event Name","Kernel","Values"\n', cuda_5_events, "metrics",
    ),
    "ncu details": (NCU, ncu_details, "metrics"),
}  # fmt: skip


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("name", TABLES)
def test_a_cell_that_is_too_long_costs_its_row(tmp_path, name, place):
    titles, row, table = TABLES[name]
    path = tmp_path / "report.csv"
    lines = [row(f"kernel{n}", n) for n in range(8)]
    path.write_text(titles + "".join(lines))
    whole = read(path)
    assert (row_count(whole.tables[table]), whole.problems) == (8, [])
    lines[place] = row(TOO_LONG, place)
    path.write_text(titles + "".join(lines))
    report = read(path)
    assert row_count(report.tables[table]) == 7
    assert len(report.problems) == 1
    assert not any(
        word in report.problems[0].message for word in ("Error", "limit")
    )  # of Python, which says nothing to a user


@pytest.mark.parametrize("text", ['{"loss": "' + TOO_LONG + '", "step": 1}\n', f'"{TOO_LONG}", 1, 2, 3, 4, 5, 6\n'])
def test_a_long_line_of_the_program_is_no_row(tmp_path, text):
    titles, row, table = TABLES["nvprof summary"]
    path = tmp_path / "report.csv"
    path.write_text(titles + row("kernel", 1) + text)
    report = read(path)
    assert row_count(report.tables[table]) == 1
    assert report.problems == []
