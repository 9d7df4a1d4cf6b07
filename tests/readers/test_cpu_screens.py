"""The first screen of `nsw read` for reports of CPUs: the sentence that counts, and the rows that show it."""

from pathlib import Path

import pytest

from nsw.cli.main import run
from tests.fakes import intel_reports as printed

ONEDNN = Path(__file__).parents[1] / "fixtures" / "onednn" / "convolution.txt"
BUSY = (("20.8% (1.662", "95.8% (7.662"), ("Memory Bound: 28.7%", "Memory Bound: 2.7%"),
        ("8.375s             20.4%", "98.375s            75.0%"))  # fmt: skip


def busy_summary():
    """VTune's summary of a program that uses its CPUs well, most of it in functions that are not named."""
    text = printed.SUMMARY
    for was, is_ in BUSY:
        text = text.replace(was, is_)
    return text


LOADER = """\
Name\tSelf CPU %\tSelf CPU\tCPU total %\tCPU total\tSelf CUDA\tSelf CUDA %\t# of Calls
DataLoader\t62.95%\t46.285ms\t80.59%\t59.257ms\t0.000us\t0.00%\t3
aten::item\t0.06%\t42.000us\t0.16%\t117.000us\t3.000us\t0.16%\t519
"""
NESTED = """\
Name\tSelf CPU %\tSelf CPU\tCPU total %\tCPU total\tCPU time avg\t# of Calls
aten::outer\t0.10%\t1.000ms\t80.10%\t801.000ms\t80.100ms\t10
aten::middle\t30.00%\t300.000ms\t80.00%\t800.000ms\t80.000ms\t10
aten::inner\t50.00%\t500.000ms\t50.00%\t500.000ms\t25.000ms\t20
aten::other\t19.90%\t199.000ms\t19.90%\t199.000ms\t19.900ms\t10
"""
LAUNCHES = """\
Name\tSelf CPU %\tSelf CPU\tCPU total %\tCPU total\tCPU time avg\tSelf CUDA\tSelf CUDA %\tCUDA total\t# of Calls
aten::small\t40.00%\t40.000ms\t60.00%\t60.000ms\t60.000us\t12.000ms\t80.00%\t12.000ms\t1000
aten::smaller\t10.00%\t10.000ms\t10.00%\t10.000ms\t50.000us\t3.000ms\t20.00%\t3.000ms\t200
Self CPU time total: 100.000ms
Self CUDA time total: 15.000ms
"""
POOR = """\
Function,CPU Time,CPU Time:Effective Time:Idle,CPU Time:Effective Time:Poor,CPU Time:Effective Time:Ok
step,8.5,0.5,8.0,0.0
halo,1.5,0.0,1.0,0.5
"""
SCREENS = {
    "few cores at work": (POOR, "report: 9.0 of 10.0 s run at poor CPU utilization", "Gain: at most 90 %"),  # of few cores at work no one knows how many there are
    "enough cores at work": (POOR.replace("8.0,0.0", "0.0,8.0"), "step takes 85 % of self time", "halo"),
    "an operator that contains the largest": (
        NESTED, "aten::outer takes 80 % of CPU time, 50 % in aten::inner, 30 % in aten::middle", "aten::other"),
    "parts of no other operator": (NESTED.replace("800.000", "900.000").replace("80.000ms\t", "90.000ms\t"),
                                   "aten::inner takes 50 % of CPU time", "aten::other"),
    "many small operators": (LAUNCHES, "launch-bound, the GPU works 15 ms in 100 ms of CPU time",
                             "idle at least 85 %: it works 15 ms in 100 ms of CPU time; each of 1,000 calls of aten::small"),
    "a GPU that works most of the time": (LAUNCHES.replace("15.000ms", "60.000ms"), "aten::small takes 80 % of the device's time", "aten::small"),
    "few operators": (LAUNCHES.replace("1000\n", "20\n").replace("60.000us", "3.000ms"), "aten::small takes 80 % of the device's time", "aten::small"),
    "no device that does next to nothing": (LOADER, "DataLoader takes 63 % of CPU time", "46.2"),
    "functions": (printed.HOTSPOTS_CSV, "conv_forward takes 76 % of self time", "reduce<float, 4>"),
    "what is named": (busy_summary(), "conv_forward takes 23 % of self time", "[Others]"),
    "allocations": (printed.MEMORY, "malloc_check takes 100 % of the memory that is allocated", "GiB"),
    "instructions": (printed.FUNCTION_EVENTS, "conv_forward takes 97 % of the instructions", "41,000,500,000"),
    "what to mend": (printed.UARCH, "report: 0.868 of 128 logical CPUs are at work", "pipeline slots that wait for memory   30 %"),
    "a whole run": (printed.APS_HTML.replace('"6.50%"', "null").replace('"16.60"', "null"), "takes 250.0 s, 9 % of it in MPI", "waits for files"),
}  # fmt: skip


@pytest.mark.parametrize("what", SCREENS)
def test_the_first_line_says_what_counts(what, tmp_path, capsys):
    text, said, shown = SCREENS[what]
    (tmp_path / "report").write_text(text)
    assert run(["read", str(tmp_path / "report")]) == 0
    out = capsys.readouterr().out
    assert said in out.splitlines()[0], out
    assert shown in out


def test_a_gpu_that_works_comes_before_the_cpu(tmp_path, capsys):
    was = "  DP GFLOPS:                                  6.63\n"
    assert was in printed.APS
    of_gpu = "  DP GFLOPS:  0.01\n  GPU Accumulated Time:  4732.36 s\n  GPU Stack Utilization:  93.75%\n"
    (tmp_path / "report").write_text(printed.APS.replace(was, of_gpu))
    assert run(["read", str(tmp_path / "report")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "the GPU is at work 94 % of the time" in lines[0]
    assert lines[4].split() == ["GPU", "stacks", "at", "work", "94", "%"]
    assert not [line for line in lines if "Block loops" in line or "march=native" in line or "CPU slots" in line]


def test_primitives_of_one_name_are_one_row_and_reorders_are_said(capsys):
    assert run(["read", str(ONEDNN)]) == 0
    out = capsys.readouterr().out
    reorder = ":abcd::f0 dst:f32::blocked:aBcd16b"
    lines = [line for line in ONEDNN.read_text().splitlines() if ",reorder," in line and reorder in line]
    [row] = [line for line in out.splitlines() if "reorder abcd to aBcd16b" in line]
    assert row.split()[-1] == str(len(lines))
    assert "61 % reorders" in out.splitlines()[0]
    assert "Keep one format from layer to layer" in out
