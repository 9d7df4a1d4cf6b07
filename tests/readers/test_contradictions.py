"""Damage that contradicts the file itself is reported, and what it spoils is left out."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.readers.checks.launches_against_metrics import check_launches
from nsw.readers.model import Report
from nsw.tables import rows as as_rows
from nsw.tables.data import as_arrow

KERNELS = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"


def rows(tmp_path: Path, text: str, table: str, name: str = "x.csv"):
    """The rows of a table of a file with this text, and what is said of it."""
    path = tmp_path / name
    path.write_text(text)
    report = read(path, Options())
    return list(report.tables.get(table, [])), [(p.severity, p.message) for p in report.problems]


def kernel(share: float, total: int, calls: int, name: str) -> str:
    mean = total / calls
    return f"{share},{total},{calls},{mean:.1f},{mean:.1f},{mean:.0f},{mean:.0f},0.0,{name}\n"


def test_sound_shares_and_totals_are_said_nothing_of(tmp_path):
    text = KERNELS + kernel(60.0, 600, 6, "a") + kernel(30.0, 300, 3, "b") + kernel(10.0, 100, 1, "c")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a", "b", "c"]
    assert said == []


def test_an_api_call_among_kernels_is_of_a_table_whose_titles_are_lost(tmp_path):
    text = KERNELS + kernel(60.0, 600, 6, "a") + kernel(40.0, 9000, 9, "cudaMalloc")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a"]
    assert [s for s, m in said if "cudaMalloc: it is a CUDA API call" in m] == ["error"]


def test_shares_of_a_table_do_not_exceed_all_there_is(tmp_path):
    text = KERNELS + kernel(90.0, 900, 9, "a") + kernel(10.0, 100, 1, "b") + kernel(50.0, 7, 1, "c")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a", "b"]
    assert len(said) == 1
    assert "add up to 150.0 %" in said[0][1]


def test_a_total_that_does_not_fit_its_share_is_left_out(tmp_path):
    text = KERNELS + kernel(60.0, 600, 6, "a") + kernel(30.0, 390, 3, "b") + kernel(10.0, 100, 1, "c")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a", "c"]
    assert len(said) == 1
    assert "b: 390 ns are not 30 %" in said[0][1]


def test_the_same_in_nvprofs_text(tmp_path):
    head = '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,ms,ms,ms,\n'
    line = '"GPU activities",{0},{1}.000000,{2},{3}.000000,{3}.000000,{3}.000000,"{4}"\n'
    cells = [(60.0, 6, 2, 3, "a"), (30.0, 7, 1, 7, "b"), (10.0, 1, 1, 1, "c")]
    found, said = rows(tmp_path, head + "".join(line.format(*c) for c in cells), "gpu_summary")
    assert [r["name"] for r in found] == ["a", "c"]
    assert "b: 7e+06 ns are not 30 %" in said[0][1]


@pytest.mark.parametrize(("cells", "why"), [
    ("60.0,900,10,100.0,100.0,95,120,1.0,a", "total_ns 900 is below 10 calls of min_ns 95"),
    ("60.0,1000,-10,100.0,100.0,95,120,1.0,a", "calls is -10"),
    ("60.0,-1000,10,100.0,100.0,95,120,1.0,a", "total_ns is -1000"),
])  # fmt: skip
def test_a_row_that_cannot_be_is_left_out(tmp_path, cells, why):
    found, said = rows(tmp_path, KERNELS + cells + "\n", "gpu_summary")
    assert found == []
    assert any(why in message for _, message in said), said


def test_a_negative_projection_is_left_out(tmp_path):
    head = (
        "Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns),"
        "Proj Min (ns),Proj Max (ns),Proj StdDev (ns),Total GPU Ops,Avg GPU Ops,Avg Range Lvl,Avg Num Child\n"
    )
    line = "{},PushPop,{},900,2,50.0,50.0,40,60,1.0,4,2.0,0.0,0.0\n"
    found, said = rows(tmp_path, head + line.format("a", 100) + line.format("b", -100), "nvtx_gpu_summary")
    assert [r["name"] for r in found] == ["a"]
    assert "b: projected_ns is -100" in said[0][1]


def test_a_unit_that_nsw_does_not_know_is_said(tmp_path):
    found, said = rows(tmp_path, KERNELS.replace("(ns)", "(ks)") + kernel(100.0, 600, 6, "a"), "gpu_summary")
    assert found[0].get("total_ns") is None
    assert ("error", "nsw does not know the unit 'ks' of 'Total Time (ks)': figures in it are absent") in said


@pytest.mark.parametrize(("place", "column"), [(0, "time_pct"), (3, "avg_ns")])
def test_one_cell_of_nsys_with_another_decimal_mark_does_not_change_the_others(tmp_path, place, column):
    sound = kernel(60.0, 600, 6, "a") + kernel(40.0, 400, 4, "b")
    cells = sound.split(",")
    cells[place] = '"' + cells[place].replace(".", ",") + '"'
    before, said = rows(tmp_path, KERNELS + sound, "gpu_summary")
    assert said == []
    found, said = rows(tmp_path, KERNELS + ",".join(cells), "gpu_summary")
    del before[0][column], before[0][f"{column}_pm"]
    assert found == before
    assert [s for s, m in said if "another decimal mark" in m] == ["error"]


def torch_table(cuda: str = "1.000ms", own: str = "4.000ms", total: str = "4.000ms", calls: str = "2") -> str:
    dashes = "  ".join(["-" * 12] * 8)
    titles = "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "# of Calls"
    cells = [
        ("aten::mm", "50.00%", "4.000ms", "50.00%", "4.000ms", "2.000ms", cuda, "2"),
        ("aten::add", "50.00%", own, "50.00%", total, "2.000ms", "1.000ms", calls),
    ]
    lines = ["  ".join(f"{c:>12}" for c in line) for line in (titles, *cells)]
    return "\n".join([dashes, lines[0], dashes, *lines[1:], dashes, "Self CPU time total: 8.000ms\n"])


def test_a_sound_table_of_pytorch_is_said_nothing_of(tmp_path):
    found, said = rows(tmp_path, torch_table(), "operators", "t.txt")
    assert len(found) == 2
    assert said == []


@pytest.mark.parametrize(("damage", "why"), [
    ({"calls": "-2"}, "calls is -2"), ({"own": "9.000ms"}, "self_cpu_ns 9e+06 is above cpu_ns 4e+06"),
    ({"calls": "3"}, "3 calls of 2e+06 ns are no 4e+06 ns"), ({"total": "-4.000ms"}, "cpu_ns is -4e+06"),
])  # fmt: skip
def test_an_operator_that_cannot_be_is_left_out(tmp_path, damage, why):
    found, said = rows(tmp_path, torch_table(**damage), "operators", "t.txt")
    assert [r["name"] for r in found] == ["aten::mm"]
    assert any(f"aten::add: {why}" in message for _, message in said), said


@pytest.mark.parametrize("cell", ["1,557ms", "1.5xs", "12"])
def test_a_cell_of_pytorch_that_is_no_time_is_absent_and_said(tmp_path, cell):
    found, said = rows(tmp_path, torch_table(cuda=cell), "operators", "t.txt")
    assert found[0].get("self_device_ns") is None
    assert ("error", f"'{cell}' below 'Self CUDA' is not a figure and is left out") in said


NCU = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def metric(name: str, unit: str, value: str, number: int = 0, kernel: str = "k(int)", grid: str = "(8, 1, 1)") -> str:
    launch = f'"{number}","7","a","h","{kernel}","1","7","(128, 1, 1)","{grid}","0","9.0"'
    return f'{launch},"S","{name}","{unit}","{value}"\n'


def test_one_cell_with_another_decimal_mark_does_not_change_the_others(tmp_path):
    text = NCU + metric("DRAM Frequency", "Ghz", "3,18") + metric("Elapsed Cycles", "cycle", "10,688")
    found, said = rows(tmp_path, text + metric("Duration", "us", "7.232"), "metrics")
    assert [r["value"] for r in found] == [None, 10688.0, 7.232]
    assert said == [
        (
            "error",
            "a figure is written with another decimal mark than the rest ('3,18'): kept as text, without a number",
        )
    ]


def test_a_file_with_decimal_commas_is_read_as_such(tmp_path):
    text = NCU + metric("DRAM Frequency", "Ghz", "3,18") + metric("Elapsed Cycles", "cycle", "10.688")
    found, said = rows(tmp_path, text + metric("Duration", "us", "7,23"), "metrics")
    assert [r["value"] for r in found] == [3.18, 10688.0, 7.23]
    assert said == []


def test_one_id_is_of_one_kernel(tmp_path):
    text = NCU + metric("Duration", "us", "7.23") + metric("Duration", "us", "99.50", kernel="other(int)")
    found, said = rows(tmp_path, text + metric("Duration", "us", "5.25", number=1), "launches")
    assert [(r["launch_id"], r["kernel"], r["duration_ns"]) for r in found] == [
        (0, "k(int)", 7230.0),
        (1, "k(int)", 5250.0),
    ]
    assert [m for _, m in said] == [
        "ID 0 belongs to two launches: rows whose kernel or size differs from its first row are left out"
    ]


def test_a_row_that_stands_twice_is_read_once(tmp_path):
    text = NCU + metric("Duration", "us", "7.23") + metric("Cycles", "cycle", "9") + metric("Cycles", "cycle", "9")
    found, said = rows(tmp_path, text, "metrics")
    assert [r["metric"] for r in found] == ["Duration", "Cycles"]
    assert said == [("error", "a launch has the same metric twice (Cycles of k(int)): the second is left out")]


def test_no_launch_lasts_less_than_nothing(tmp_path):
    text = NCU + metric("Duration", "us", "-5.25") + metric("Change", "%", "-1.5")
    found, said = rows(tmp_path, text, "metrics")
    assert [r["metric"] for r in found] == ["Change"]
    assert [s for s, _ in said] == ["error", "error"]
    found, _ = rows(tmp_path, text, "launches")
    assert found[0]["duration_ns"] is None


def test_figures_of_another_launch_do_not_stand_below_a_header(tmp_path):
    text = NCU + metric("Duration", "us", "7.23") + metric("Grid Size", "", "9")
    text += metric("Duration", "us", "1.00", number=1) + metric("Grid Size", "", "8", number=1)
    found, said = rows(tmp_path, text, "metrics")
    assert {r["launch_id"] for r in found} == {1}
    why = "grid (8, 1, 1) in its header, 9 in its section"
    assert said == [("error", f"figures of another launch are below the header of k(int): {why}: they are left out")]
    assert [r["duration_ns"] for r in rows(tmp_path, text, "launches")[0]] == [None, 1000.0]


@pytest.mark.parametrize("sizes", [(8, 8), (8, 9), (9, 8), (8,)])
def test_columns_tell_of_figures_of_another_launch_what_rows_tell(sizes):
    """Where all sizes are their headers', in the order of the launches, columns show it; else the rows are compared."""
    tables = {
        "metrics": [
            {"pid": 1, "launch_id": at, "kernel": "k", "metric": name, "value": value}
            for at, size in enumerate(sizes)
            for name, value in (("Duration", 1.0), ("Grid Size", float(size)))
        ],
        "launches": [{"pid": 1, "launch_id": at, "kernel": "k", "grid": "(8, 1, 1)"} for at in (0, 1)],
    }
    by_rows = Report("x.csv", tables=dict(tables))
    by_columns = Report("x.csv", tables={name: as_arrow(name, found) for name, found in tables.items()})
    check_launches(by_rows)
    check_launches(by_columns)
    assert [p.message for p in by_columns.problems] == [p.message for p in by_rows.problems]
    assert bool(by_rows.problems) is (9 in sizes)
    values = [[row["value"] for row in as_rows("metrics", of.tables["metrics"])] for of in (by_columns, by_rows)]
    assert values[0] == values[1]


NCU_TEXT = """\
[7] a@127.0.0.1
{header}
    Section: GPU Speed Of Light Throughput
    -------------- ----------- ------------
    Metric Name    Metric Unit Metric Value
    -------------- ----------- ------------
    Elapsed Cycles       cycle        2,229
    -------------- ----------- ------------
"""
GEOMETRY = "(512, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"


@pytest.mark.parametrize(("header", "kernel"), [
    (f"  void fft<4, E<16>, float>(args_t<T9>) {GEOMETRY}", "void fft<4, E<16>, float>(args_t<T9>)"),
    (f"  void fft<4, E<16>, float>\n(args_t<T9>) {GEOMETRY}", "void fft<4, E<16>, float>(args_t<T9>)"),
    (f"  void fft<4, E<16>,\nfloat>(args_t<T9>) {GEOMETRY}", "void fft<4, E<16>, float>(args_t<T9>)"),
    (f"  void fft<4, E<16>, float>(args_t<T9>)\n {GEOMETRY}", "void fft<4, E<16>, float>(args_t<T9>)"),
    (f"  something else\n  (anonymous namespace)::fft(int) {GEOMETRY}", "(anonymous namespace)::fft(int)"),
])  # fmt: skip
def test_a_header_over_two_lines_keeps_its_kernel(tmp_path, header, kernel):
    found, _ = rows(tmp_path, NCU_TEXT.format(header=header), "launches", "x.txt")
    assert [r["kernel"] for r in found] == [kernel]


@pytest.mark.parametrize(("damage", "why"), [
    (
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1000 WHERE rowid = 2",
        "CUPTI_ACTIVITY_KIND_KERNEL: a row ends before it starts: left out",
    ),
    (
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -1 WHERE rowid = 2",
        "CUPTI_ACTIVITY_KIND_KERNEL: a row starts before time 0: left out",
    ),
    (
        f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + {4 * 10**17} WHERE rowid = 2",
        "CUPTI_ACTIVITY_KIND_KERNEL: a row lasts more than ten years: left out",
    ),
    (
        "DELETE FROM StringIds WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL)",
        "a name is not in StringIds: shown as 'string ",
    ),
    (
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = NULL WHERE rowid = 1",
        "1 CUDA call or GPU operation has no correlation id",
    ),
    ("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = NULL", "CUDA calls or GPU operations have no correlation id"),
])  # fmt: skip
def test_an_export_that_contradicts_itself_is_said_to(tmp_path, export, damage, why):
    sound = read(export)
    with sqlite3.connect(export) as database:
        database.execute(damage)
    damaged = read(export)
    before = {p.message for p in sound.problems}
    new = [p for p in damaged.problems if p.message not in before]
    assert len(new) == 1
    assert new[0].severity == "error"
    assert why in new[0].message
    lost = "left out" in why
    calls = [sum(r["calls"] for r in report.tables["gpu_summary"]) for report in (sound, damaged)]
    assert calls[0] - calls[1] == lost


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "t.sqlite"
    path.write_bytes(gzip.decompress((Path(__file__).parents[1] / "fixtures/h200/tiled.sqlite.gz").read_bytes()))
    return path


def trace(**changes) -> str:
    """A trace of an operator, its call and its kernel; `changes` are of the kernel."""
    ids = {"External id": 5}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 6, "dur": 100}
    args = {"device": 0, "stream": 7, "correlation": 9, "shared memory": 64, **ids}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 10, "args": ids},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 3,
         "args": {"correlation": 9, **ids}},
        kernel | {"args": args} | changes,
    ]  # fmt: skip
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


def test_a_sound_trace_is_said_nothing_of(tmp_path):
    found, said = rows(tmp_path, trace(), "operators", "t.json")
    assert [r["device_ns"] for r in found] == [100_000]
    assert said == []


@pytest.mark.parametrize("ids", [{}, {"External id": 6}])
def test_operators_have_no_device_time_where_kernels_name_none(tmp_path, ids):
    found, said = rows(tmp_path, trace(args={"correlation": 9, **ids}), "operators", "t.json")
    assert [r.get("device_ns") for r in found] == [None]
    assert said == [
        (
            "warning",
            "kernels of 100 % of the time have no operator's External id: device times of operators lack them",
        )
    ]


@pytest.mark.parametrize(("changes", "why"), [
    ({"ph": "B"}, "1 event of a kernel, call or operator is not whole"),
    ({"ph": None}, "1 event of a kernel, call or operator is not whole"),
    ({"ph": "x"}, "1 event of a kernel, call or operator is not whole"),
    ({"dur": -3}, "1 event has no valid time"),
])  # fmt: skip
def test_a_kernel_without_a_duration_is_left_out_and_said(tmp_path, changes, why):
    found, said = rows(tmp_path, trace(**changes), "gpu_summary", "t.json")
    assert found == []
    assert any(severity == "error" and why in message for severity, message in said), said


def test_a_kernel_that_is_in_a_trace_twice_is_said(tmp_path):
    document = json.loads(trace())
    document["traceEvents"].append(document["traceEvents"][-1])
    _, said = rows(tmp_path, json.dumps(document), "gpu_summary", "t.json")
    assert [s for s, m in said if "a kernel or copy is in the trace twice" in m] == ["error"]


def test_the_shared_memory_of_a_trace_is_static_and_dynamic_together(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(trace())
    (row,) = as_rows("gpu_trace", read(path, Options(frozenset({"gpu_trace"}))).tables["gpu_trace"])
    assert (row["smem_bytes"], row["static_smem_bytes"], row["dynamic_smem_bytes"]) == (64, None, None)


MEANS = '==1== Metric result:\n"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'


@pytest.mark.parametrize(("printed", "half"), [
    ("361.900000MB/s,361.950000MB/s,361.442566MB/s", 1e6 / 1024**2), ("700.0KB/s,800.0KB/s,0.000000B/s", 1e6),
    ("361.400000MB/s,361.500000MB/s,361.442567MB/s", 5e-7), ("1.250GB/s,1.250GB/s,1.250GB/s", 5e-4),
])  # fmt: skip
def test_nvprofs_means_of_throughputs_are_known_to_a_megabyte(tmp_path, printed, half):
    found, said = rows(tmp_path, MEANS + f'"T (0)","k(int)",2,"gld","G",{printed}\n', "metrics")
    assert [r["avg_pm"] for r in found] == [pytest.approx(half)]
    assert said == []


def test_rules_name_their_section_as_metrics_do_and_have_a_half_width(tmp_path):
    head = NCU.strip() + ',"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
    rule = metric("", "", "").strip().replace('"S"', '"SpeedOfLight"') + ',"R","OPT","Do.","global","12.34"\n'
    plain = metric("Duration", "us", "7.23").strip() + ',"","","","",""\n'
    found, said = rows(tmp_path, head + plain + rule, "rules")
    assert said == []
    assert [(r["section"], r["speedup_pct"], r["speedup_pct_pm"]) for r in found] == [
        ("GPU Speed Of Light Throughput", 12.34, 0.005)
    ]


def test_a_row_that_is_printed_twice_is_read_once(tmp_path):
    text = KERNELS + kernel(60.0, 600, 6, "a") + kernel(0.0, 4, 1, "b") * 2
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a", "b"]
    assert [m for _, m in said] == ["a row of gpu_summary contradicts itself and is left out: b: it is there twice"]


def test_rows_without_titles_are_said(tmp_path):
    text = KERNELS + kernel(60.0, 600, 6, "a") + "\n" + kernel(90.0, 900, 9, "cudaMalloc")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert [r["name"] for r in found] == ["a"]
    assert said == [("error", "rows of a table have no titles and are left out")]


def test_titles_with_two_units_of_time_are_damaged(tmp_path):
    text = KERNELS.replace("StdDev (ns)", "StdDev (us)") + kernel(100.0, 600, 6, "a")
    found, said = rows(tmp_path, text, "gpu_summary")
    assert found == []
    assert ("error", "the titles of a table are damaged: its rows are left out") in said


SIZES = "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n"


def test_a_copy_that_only_one_of_two_tables_has_is_not_counted_twice(tmp_path):
    names = ["[CUDA memcpy Host-to-Device]", "[CUDA memcpy Device-to-Host]", "[CUDA memset]"]
    text = KERNELS + "".join(kernel(share, 100, 1, name) for share, name in zip((33.3, 33.3, 33.3), names, strict=True))
    sizes = [f"0.5,1,0.5,0.5,0.5,0.5,0.0,{name}\n" for name in names]
    found, said = rows(tmp_path, text + "\n" + SIZES + "".join(sizes), "gpu_summary")
    assert [(r["name"], r["total_bytes"]) for r in found] == [(name, 500000.0) for name in names]
    assert said == []
    sizes[2] = sizes[2].replace(",1,", ",10,", 1)
    found, said = rows(tmp_path, text + "\n" + SIZES + "".join(sizes), "gpu_summary")
    assert [(r["name"], r.get("total_bytes")) for r in found] == [(names[0], 5e5), (names[1], 5e5), (names[2], None)]
    assert len(said) == 1
    assert said[0][1].endswith("[CUDA memset]: the table of copies by time has no such row, or another count")


def test_an_operator_that_is_printed_twice_is_read_once(tmp_path):
    lines = torch_table().splitlines(keepends=True)
    found, said = rows(tmp_path, "".join([*lines[:4], lines[3], *lines[4:]]), "operators", "t.txt")
    assert [r["name"] for r in found] == ["aten::mm", "aten::add"]
    assert [m for _, m in said] == ["a row of operators is there twice: the second is left out: aten::mm"]


def test_operators_by_a_shape_that_is_not_printed_may_be_alike(tmp_path):
    lines = torch_table().splitlines(keepends=True)
    other = lines[3].replace("4.000ms", "3.000ms").replace("2.000ms", "1.500ms")
    found, said = rows(tmp_path, "".join([*lines[:4], lines[3], other, *lines[4:]]), "operators", "t.txt")
    assert len(found) == 4
    assert said == []


@pytest.mark.parametrize("total", ["8,000ms", "-8.000ms"])
def test_a_total_of_pytorch_that_is_no_time_is_said(tmp_path, total):
    found, said = rows(tmp_path, torch_table().replace("8.000ms", total), "facts", "t.txt")
    assert found == []
    assert ("error", "a total below a table is damaged: it is left out") in said


def test_a_row_of_another_launch_among_those_of_one_is_left_out(tmp_path):
    text = NCU + "".join(metric(f"M{n}", "cycle", "5") for n in range(3)) + metric("Cycles", "cycle", "9", number=8)
    found, said = rows(tmp_path, text + metric("M4", "cycle", "7"), "metrics")
    assert {r["launch_id"] for r in found} == {0}
    assert [m for _, m in said] == [
        "a row of launch 8 of process 7 is among those of launch 0 of process 7 and is left out"
    ]


@pytest.mark.parametrize("mean", ["3,0000GB/s", "3.0000ms"])
def test_a_metric_with_values_of_two_kinds_is_left_out(tmp_path, mean):
    row = '"T (0)","k(int)",2,"gld","G",1.2500GB/s,4.5000GB/s,{}\n'
    found, said = rows(tmp_path, MEANS + row.format("2.0000GB/s") + row.format(f'"{mean}"'), "metrics")
    assert len(found) == 1
    assert [m for _, m in said] == ["a row of a CSV table is cut short or damaged"]


@pytest.mark.parametrize(
    "line", ["==-7== NVPROF is profiling process 7, command: ./a", "==7== NVPROF is profiling process -7"]
)
def test_a_damaged_line_of_a_process_is_said(tmp_path, line):
    _, said = rows(tmp_path, f"{line}\n{MEANS}", "facts")
    assert "the line that names a process and its command is damaged" in [m for _, m in said]


def test_launches_and_calls_of_a_trace_are_there_once(tmp_path):
    text = '==1== API calls:\n"Start","Duration","Name","Correlation_ID"\nms,us,,\n10.125,1.5,"cudaMalloc",7\n'
    path = tmp_path / "t.csv"
    path.write_text(f'==1== Profiling result:\n{text}10.125,1.5,"cudaMalloc",7\n')
    report = read(path, Options(frozenset({"api_trace"})))
    assert len(report.tables["api_trace"]) == 1
    assert [p.message for p in report.problems] == [
        "a row of api_trace is there twice: the second is left out: cudaMalloc"
    ]


def test_rows_behind_the_end_of_a_table_of_ncu_are_said(tmp_path):
    text = NCU_TEXT.format(header=f"  k(int) {GEOMETRY}")
    dashes = "    -------------- ----------- ------------\n"
    row = "    Elapsed Cycles       cycle        2,229\n"
    _, said = rows(tmp_path, text.replace(f"{dashes}{row}", f"{row}{dashes}{row}"), "metrics", "x.txt")
    assert any("not match the header" in m for _, m in said), said


RANGE = Path(__file__).parents[1] / "fixtures" / "h200" / "ncu-range.csv"


@pytest.mark.parametrize(("cycles", "severity"), [("-2", "warning"), ("-304,287", "error")])
def test_a_count_below_zero_is_left_out_and_slightly_below_it_is_no_damage(tmp_path, cycles, severity):
    """ncu 2025.3 wrote -2 sectors of a range with set:full on an H200."""
    text = RANGE.read_text()
    assert text.count('"304,287"') == 1
    found, said = rows(tmp_path, text.replace('"304,287"', f'"{cycles}"'), "metrics")
    whole, before = rows(tmp_path, text, "metrics")
    assert len(found) == len(whole) - 1
    assert [s for s, m in said if "below zero and left out" in m or "slightly below zero" in m] == [severity]
    assert not any("below zero" in m for _, m in before)
