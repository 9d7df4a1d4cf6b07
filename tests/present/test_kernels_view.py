"""The kernel table: whatever the width, no number of it is cut, and what is left out is said."""

import io

import pytest

from nsw.analysis.answer.kernels import kernel_table_blocks
from nsw.analysis.kernels import kernel_table
from nsw.present.emit import flat_kernels
from nsw.present.summary_view import show_blocks
from nsw.present.terminal import console

UNITS = {"duration": "ns", "gld_throughput": "byte/s", "ipc": "inst/cycle"}
VALUES = {
    "duration": 123456.0, "sm_throughput": 98.76, "memory_throughput": 12.3, "dram_throughput": 4.321e12,
    "dram_utilization": 91.2, "achieved_occupancy": 61.4, "theoretical_occupancy": 62.5, "ipc": 3.21,
    "occupancy_limit_registers": 2.0, "registers_per_thread": 168.0, "static_shared_memory": 49152.0,
    "stall_wait": 44.0, "gld_throughput": 1.5e9,
}  # fmt: skip


def kernels(count, **changed):
    rows = [
        {"launch_id": at, "kernel": f"void a_name_that_is_rather_long_{at:03}<float>(float*)", "metric": name,
         "portable": name, "portable_value": value * (count - at), "portable_unit": UNITS.get(name, "%")}
        for at in range(count) for name, value in (VALUES | changed).items()
    ]  # fmt: skip
    return kernel_table({"metrics": rows})


def printed(found, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    show_blocks(console(stream), kernel_table_blocks(found), "always")
    return stream.getvalue()


@pytest.mark.parametrize("width", [50, 80, 100, 140, 200, 300])
def test_no_number_is_cut_at_any_width(width, monkeypatch):
    text = printed(kernels(1), width, monkeypatch)
    for number in ("123.5", "(us)", "100.0", "98.8", "12.3", "4,321.0", "(GB/s)", "91.2", "61.4 of 62.5 %", "168",
                   "48.00", "(KiB)", "wait 44 %", "1.500", "3.21", "registers"):  # fmt: skip
        assert number in text
    assert all(len(line) <= width for line in text.splitlines())


def test_twenty_kernels_are_shown_and_the_rest_summed_up(monkeypatch):
    text = printed(kernels(30), 140, monkeypatch)
    assert text.count("rather_long") + text.count("…") >= 20
    assert "(10 kernels more, 11.8 % of the time: --format json has all)" in text


def test_a_set_of_many_metrics_does_not_flood_the_table(monkeypatch):
    text = printed(kernels(1, **{f"gst_{n}": 1.0 for n in range(30)}), 140, monkeypatch)
    assert "gst_1" not in text
    assert "ipc" not in text


def test_flat_rows_have_every_metric_as_a_column():
    row, _ = flat_kernels(kernels(2))
    assert row["ipc"] == 6.42
    assert (row["stall_1"], row["stall_1_pct"], row["stall_2"]) == ("wait", 88.0, None)
    assert not any(isinstance(value, dict | list | tuple) for value in row.values())


def test_a_ceiling_that_is_not_the_data_sheets_is_said(monkeypatch):
    rows = [{"launch_id": 0, "kernel": "k", "metric": n, "portable": n, "portable_value": v, "portable_unit": "",
             "device_name": "NVIDIA H200"} for n, v in {"duration": 1.0, "fp32_fma_peak": 8448.0}.items()]  # fmt: skip
    text = printed(kernel_table({"metrics": rows}), 200, monkeypatch)
    assert "warning: the report's FP32 ceiling is 16,896 FLOP a cycle, the data sheet of H200-SXM-141GB has" in text


def test_names_that_look_alike_have_one_number_in_all_parts_of_a_table(monkeypatch):
    middles = [f"{size}x{tile}" for size in ("first", "second") for tile in ("a", "b", "c")]
    rows = [
        {"launch_id": at, "kernel": f"sm90_xmma_gemm_f32_{middle}_warpgroup_execute_kernel_cublas", "metric": name,
         "portable": name, "portable_value": value, "portable_unit": UNITS.get(name, "%")}
        for at, middle in enumerate(middles) for name, value in (VALUES | {"registers_per_thread": 100.0 + at}).items()
    ]  # fmt: skip
    text = printed(kernel_table({"metrics": rows}), 100, monkeypatch)
    names = [line.split("…")[0].split()[0] for line in text.splitlines() if "xmma" in line]
    assert len(names) > 6
    assert names == [f"[{1 + at % 6}]" for at in range(len(names))]
