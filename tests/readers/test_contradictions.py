"""Damage that contradicts the file itself is reported, and what it spoils is left out."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows as as_rows

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


@pytest.mark.parametrize(("cells", "why"), [
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
    ({"calls": "-2"}, "calls is -2"), ({"total": "-4.000ms"}, "cpu_ns is -4e+06"),
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


def test_no_launch_lasts_less_than_nothing(tmp_path):
    text = NCU + metric("Duration", "us", "-5.25") + metric("Change", "%", "-1.5")
    found, said = rows(tmp_path, text, "metrics")
    assert [r["metric"] for r in found] == ["Change"]
    assert [s for s, _ in said] == ["error", "error"]
    found, _ = rows(tmp_path, text, "launches")
    assert found[0]["duration_ns"] is None


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


SIZES = "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n"


@pytest.mark.parametrize("total", ["8,000ms", "-8.000ms"])
def test_a_total_of_pytorch_that_is_no_time_is_said(tmp_path, total):
    found, said = rows(tmp_path, torch_table().replace("8.000ms", total), "facts", "t.txt")
    assert found == []
    assert ("error", "a total below a table is damaged: it is left out") in said


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


def test_rows_behind_the_end_of_a_table_of_ncu_are_said(tmp_path):
    text = NCU_TEXT.format(header=f"  k(int) {GEOMETRY}")
    dashes = "    -------------- ----------- ------------\n"
    row = "    Elapsed Cycles       cycle        2,229\n"
    _, said = rows(tmp_path, text.replace(f"{dashes}{row}", f"{row}{dashes}{row}"), "metrics", "x.txt")
    assert any("not match the header" in m for _, m in said), said


RANGE = Path(__file__).parents[1] / "fixtures" / "h200" / "ncu-range.csv"
