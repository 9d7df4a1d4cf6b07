"""How busy the parts of a GPU were: nsys's samples of an H100, by part of the iteration."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.model import Report

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "h100" / "sampled.sqlite.gz"
SHARES = ("sms_active_pct", "sm_issue_pct", "tensor_pct", "warps_pct", "dram_read_pct", "dram_write_pct", "pcie_rx_pct")


@pytest.fixture
def export(tmp_path) -> Path:
    path = tmp_path / "sampled.sqlite"
    path.write_bytes(gzip.decompress(FIXTURE.read_bytes()))
    return path


def changed(export: Path, *statements: str) -> Report:
    connection = sqlite3.connect(export)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return read(export)


def parts(report: Report) -> dict[Any, dict[str, Any]]:
    """The rows by part, those of kernels and ranges by name."""
    return {row.get("name") or row["part"]: row for row in report.tables["gpu_metrics"]}


def test_products_use_the_tensor_cores_sums_the_memory_and_uploads_pcie(export):
    found = parts(read(export))
    assert {"iteration", "computing", "copies", "idle", "step", "product", "stream", "upload"} <= found.keys()
    assert "nccl" not in found
    assert found["product"]["tensor_pct"] == pytest.approx(94, abs=1)
    assert found["stream"]["tensor_pct"] == 0
    assert found["stream"]["dram_read_pct"] + found["stream"]["dram_write_pct"] == pytest.approx(89, abs=1)
    assert found["upload"]["pcie_rx_pct"] == pytest.approx(91, abs=1)
    assert found["copies"]["sms_active_pct"] == 0
    assert found["iteration"]["tensor_pct"] == pytest.approx(61, abs=1)
    assert found["iteration"].get("nvlink_rx_pct") is None  # which this machine has none of
    (kernel,) = (row for row in found.values() if row["part"] == "kernel" and row["name"].startswith("nvjet"))
    assert kernel["tensor_pct"] == pytest.approx(found["product"]["tensor_pct"], abs=0.5)


def test_the_times_of_the_parts_add_up_to_the_iterations(export):
    report = read(export)
    found = parts(report)
    assert sum(found[part]["time_ns"] for part in ("computing", "copies", "idle")) == found["iteration"]["time_ns"]
    (use,) = report.tables["gpu_use"]
    assert found["iteration"]["time_ns"] == use["span_ns"]
    assert found["computing"]["time_ns"] + found["copies"]["time_ns"] == use["busy_ns"]


def intervals(connection: sqlite3.Connection, name: str) -> Iterator[tuple[int, int]]:
    """From the first to the last kernel of each range of that name, by their correlation."""
    query = """SELECT min(k.start), max(k.end) FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        ON r.start >= n.start AND r.end <= n.end JOIN CUPTI_ACTIVITY_KIND_KERNEL k
        ON k.correlationId = r.correlationId WHERE n.text = ? GROUP BY n.rowid"""
    yield from connection.execute(query, (name,))


@pytest.mark.parametrize("name", ["product", "stream"])
def test_sqlite_itself_finds_the_same_means(export, name):
    connection = sqlite3.connect(export)
    values = [
        value
        for start, end in intervals(connection, name)
        for (value,) in connection.execute(
            "SELECT value FROM GPU_METRICS JOIN TARGET_INFO_GPU_METRICS USING (typeId, metricId)"
            " WHERE metricName = 'Tensor Active [Throughput %]' AND timestamp >= ? AND timestamp + 100000 <= ?",
            (start, end),
        )
    ]
    row = parts(read(export))[name]
    assert row["tensor_pct"] == pytest.approx(sum(values) / len(values), abs=1)
    assert row["samples"] == pytest.approx(len(values), abs=12)  # one of each range may reach a tenth beyond it


def test_a_row_of_the_trace_has_all_shares_of_a_sample(export):
    report = read(export, Options(frozenset({"gpu_metric_trace"})))
    assert report.tables.keys() == {"gpu_metric_trace"}
    trace = list(full_rows("gpu_metric_trace", report.tables["gpu_metric_trace"]))
    assert len(trace) == 1013
    assert all(row["device"] == 0 and row["pid"] for row in trace)
    assert all(row[share] is not None for row in trace for share in SHARES)
    assert [row["start_ns"] for row in trace] == sorted(row["start_ns"] for row in trace)
    assert {round(row["duration_ns"], -3) for row in trace} == {100_000}
    assert all(row["nvlink_rx_pct"] is None for row in trace)


def test_the_other_metrics_with_the_same_names_are_no_shares(export):
    """Compute Warps in Flight is also there in warps, up to 55 of an SM, and NVLink in several parts."""
    found = parts(read(export))["stream"]["warps_pct"]
    split = changed(
        export,
        "INSERT INTO TARGET_INFO_GPU_METRICS SELECT typeId, 90, 'NVLink RX Requests User Data [Throughput %]'"
        " FROM TARGET_INFO_GPU_METRICS LIMIT 1",
        "INSERT INTO TARGET_INFO_GPU_METRICS SELECT typeId, 91, 'NVLink RX Responses User Data [Throughput %]'"
        " FROM TARGET_INFO_GPU_METRICS LIMIT 1",
        "INSERT INTO GPU_METRICS (timestamp, typeId, metricId, value)"
        " SELECT timestamp, typeId, column1, 3 + column1 - 90 FROM GPU_METRICS, (VALUES (90), (91)) WHERE metricId = 2",
    )
    assert found == pytest.approx(84, abs=1)
    assert parts(split)["iteration"]["nvlink_rx_pct"] == 7


def test_a_gpu_that_the_process_counts_otherwise_is_found(export):
    expected = parts(read(export))["product"]
    report = changed(
        export,
        "UPDATE GPU_METRICS SET typeId = typeId + 3",
        "UPDATE TARGET_INFO_GPU_METRICS SET typeId = typeId + 3",
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)",
        f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, {expected['pid']})",
    )
    assert parts(report)["product"] == expected


def test_samples_of_a_gpu_on_which_nobody_works_are_in_the_trace_alone(export):
    report = changed(
        export,
        "UPDATE GPU_METRICS SET typeId = typeId + 3",
        "UPDATE TARGET_INFO_GPU_METRICS SET typeId = typeId + 3",
    )
    assert "gpu_metrics" not in report.tables
    trace = read(export, Options(frozenset({"gpu_metric_trace"}))).tables["gpu_metric_trace"]
    assert {(row["device"], row["pid"]) for row in full_rows("gpu_metric_trace", trace)} == {(3, None)}


def test_parts_shorter_than_the_samples_say_so(export):
    report = changed(export, "DELETE FROM GPU_METRICS WHERE (timestamp / 100000) % 20 != 0")  # 500 Hz
    found = parts(report)
    assert found["iteration"]["tensor_pct"] == pytest.approx(61, abs=8)
    assert found["idle"]["missing"] == "0 samples of 2,000 us, and 5 are needed"
    assert found["idle"].get("tensor_pct") is None
    assert "upload" not in found


def test_exports_with_the_raw_timestamp_alone_are_read(export):
    expected = read(export).tables["gpu_metrics"]
    report = changed(export, "ALTER TABLE GPU_METRICS RENAME COLUMN timestamp TO rawTimestamp")
    assert report.tables["gpu_metrics"] == expected


def test_metrics_without_names_are_a_problem_and_the_rest_is_read(export):
    report = changed(export, "DROP TABLE TARGET_INFO_GPU_METRICS")
    (problem,) = (p for p in report.problems if p.severity == "error")
    assert "GPU_METRICS: its metrics have no names that nsw knows in TARGET_INFO_GPU_METRICS" in problem.message
    assert "gpu_metrics" not in report.tables
    assert {"gpu_summary", "iterations", "gpu_use"} <= report.tables.keys()


def test_values_below_zero_are_none_and_not_zero(export):
    tensor = "metricId = (SELECT metricId FROM TARGET_INFO_GPU_METRICS WHERE metricName LIKE 'Tensor%')"
    expected = parts(read(export))["product"]["tensor_pct"]
    some = changed(export, f"UPDATE GPU_METRICS SET value = -1 WHERE {tensor} AND (timestamp / 100000) % 2 = 0")
    assert parts(some)["product"]["tensor_pct"] == pytest.approx(expected, abs=1)
    none = parts(changed(export, f"UPDATE GPU_METRICS SET value = -1 WHERE {tensor}"))["product"]
    assert none.get("tensor_pct") is None
    assert none["dram_read_pct"] > 0


@pytest.mark.parametrize("column", ["timestamp", "value"])
def test_absurd_numbers_are_a_problem_and_the_rest_is_read(export, column):
    report = changed(export, f"UPDATE GPU_METRICS SET {column} = 9223372036854775807 WHERE rowid = 7")
    (problem,) = (p for p in report.problems if p.severity == "error")
    assert "GPU_METRICS: contains numbers that cannot be times or clocks" in problem.message
    assert "gpu_metrics" not in report.tables
    assert "gpu_use" in report.tables
