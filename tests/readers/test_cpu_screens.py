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
SCREENS = {
    "no device that does next to nothing": (LOADER, "DataLoader takes 63 % of CPU time", "46.2"),
    "functions": (printed.HOTSPOTS_CSV, "conv_forward takes 76 % of self time", "reduce<float, 4>"),
    "what is named": (busy_summary(), "conv_forward takes 23 % of self time", "[Others]"),
    "allocations": (printed.MEMORY, "malloc_check takes 100 % of the memory that is allocated", "GiB"),
    "instructions": (printed.FUNCTION_EVENTS, "conv_forward takes 97 % of the instructions", "41,000,500,000"),
    "what to mend": (printed.UARCH, "0.868 of 128 logical CPUs are at work", "pipeline slots that wait for memory   30 %"),
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
