"""rocprofv3's CSV of kernels, in the columns that AMD's documentation shows."""

from __future__ import annotations

import pytest

from nsw.readers import read
from tests.fuzz.seeds import ROCPROF_STATS, ROCPROF_TRACE


@pytest.fixture
def report(tmp_path):
    def of(text, name="1_kernel_trace.csv"):
        path = tmp_path / name
        path.write_text(text)
        return read(path)

    return of


def test_a_dispatch_is_a_row_with_its_start_since_the_first(report):
    rows = report(ROCPROF_TRACE).tables["gpu_trace"]
    assert [(row["short_name"], row["start_ns"], row["duration_ns"]) for row in rows] == [
        ("add", 0, 11040), ("subtract", 14520, 11040), ("add", 25560, 9720),
    ]  # fmt: skip
    assert [(row["stream"], row["correlation"], row["registers"]) for row in rows] == [(1, 1, 8), (1, 2, 12), (2, 3, 8)]
    assert [row["smem_bytes"] for row in rows] == [0, 512, 0]


def test_a_grid_is_counted_in_blocks_not_in_work_items(report):
    row = report(ROCPROF_TRACE).tables["gpu_trace"][1]
    assert [row[f"block_{axis}"] for axis in "xyz"] == [64, 2, 1]
    assert [row[f"grid_{axis}"] for axis in "xyz"] == [16, 512, 1]


def test_the_trace_is_summed_to_what_the_statistics_say(report):
    of_trace = report(ROCPROF_TRACE).tables["gpu_summary"]
    of_statistics = report(ROCPROF_STATS, "1_kernel_stats.csv").tables["gpu_summary"]
    for summed, printed in zip(of_trace, of_statistics, strict=True):
        for column in ("name", "short_name", "calls", "total_ns", "avg_ns", "min_ns", "max_ns"):
            assert summed[column] == printed[column]
        assert summed["time_pct"] == pytest.approx(printed["time_pct"], abs=printed["time_pct_pm"])


def test_the_columns_of_earlier_versions_are_read(report):
    text = ROCPROF_TRACE.replace('"Stream_Id",', '"Pool",').replace("LDS_Block_Size", "Group_Segment_Size")
    row = report(text).tables["gpu_trace"][1]
    assert (row["stream"], row["smem_bytes"]) == (None, 512)


@pytest.mark.parametrize("damaged", ['"add(', "1,2,3", '"KERNEL_DISPATCH","Agent 4",1' + ',"x"' * 19, "x" * 300_000])
def test_a_damaged_row_is_left_out_alone_with_its_line(report, damaged):
    found = report(ROCPROF_TRACE + damaged + "\n")
    assert [(p.severity, p.line) for p in found.problems] == [("error", 5)]
    assert len(found.tables["gpu_trace"]) == 3


@pytest.mark.parametrize("name", ["hipMalloc", "hsa_signal_create", "KERNEL_DISPATCH", "MEMORY_COPY_HOST_TO_DEVICE"])
def test_statistics_of_what_is_no_kernel_are_refused(report, name):
    found = report(ROCPROF_STATS.replace("subtract(float*, int)", name), "1_hip_api_stats.csv")
    assert [row["short_name"] for row in found.tables["gpu_summary"]] == ["add"]
    assert [(p.severity, p.line) for p in found.problems] == [("error", 3)]


def test_mangled_names_are_shown_as_people_write_them(report):
    row = report(ROCPROF_TRACE.replace("subtract(float*, int)", "_Z8subtractPfi.kd")).tables["gpu_trace"][1]
    assert (row["name"], row["mangled_name"]) == ("subtract(float*, int)", "_Z8subtractPfi")
