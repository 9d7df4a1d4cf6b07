"""Speeds of collectives: nccl-tests' definitions, and a recording of two H200s beside the clock of the program."""

from pathlib import Path

import pytest

from nsw.analysis.collective_speed import collective_speed_text, collective_speeds
from nsw.readers import Options, read
from nsw.readers.timeline.bandwidth import Collective, bandwidth_rows, bus_factor

H200 = Path(__file__).parents[1] / "fixtures/h200"
MIB = 1 << 20
# us a call of 20 by CUDA events around them, without a profiler, of messages whose smaller buffer has 256 MiB
MEASURED_US = {
    "AllReduce": 898.61, "AllGather": 1051.47, "ReduceScatter": 1055.03, "Broadcast": 745.40, "AllToAll": 481.15,
    "Send": 750.32,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return [row for rank in (0, 1) for row in read(H200 / f"collectives-rank{rank}.json.gz").tables["bandwidth"]]


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [("AllReduce", 2, 1.0), ("AllReduce", 8, 1.75), ("AllGather", 8, 0.875), ("ReduceScatter", 4, 0.75),
     ("AllToAll", 4, 0.75), ("Broadcast", 8, 1.0), ("Reduce", 8, 1.0), ("Send", 2, 1.0), ("Recv", 2, 1.0),
     ("AllReduce", 1, None), ("AllReduce", None, None), ("Gather", 8, None)],
)  # fmt: skip
def test_the_buses_share_of_each_kind(operation, ranks, factor):
    assert bus_factor(operation, ranks) == factor


@pytest.mark.parametrize("name", MEASURED_US)
def test_speeds_of_a_recording_are_those_by_the_programs_own_clock(rows, name):
    message = (512 if name in {"AllGather", "ReduceScatter"} else 256) * MIB
    row = next(row for row in rows if row["name"] == name and row["message_bytes"] == message)
    speed = message / MEASURED_US[name] * 1e6
    assert row["calls"] == 6
    assert row["alg_bytes_per_s"] == pytest.approx(speed, rel=0.02)
    halved = name in {"AllGather", "ReduceScatter", "AllToAll"}
    assert row["bus_bytes_per_s"] == pytest.approx(speed / (1 + halved), rel=0.02)


def test_the_rank_that_waits_least_tells_the_speed_beside_nvlink(rows):
    speeds = collective_speeds(rows, ["NVIDIA H200"])
    small = next(s for s in speeds if s.name == "AllReduce" and s.message_bytes == 16 * MIB)
    assert small.calls == 12
    assert small.med_ns == min(r["med_ns"] for r in rows if r["name"] == "AllReduce" and r["message_bytes"] == 16 * MIB)
    assert (small.nvlink_bytes_per_s, small.nvlink_pct) == (450e9, pytest.approx(small.bus_bytes_per_s / 4.5e9))
    assert collective_speed_text(speeds).startswith("; ReduceScatter of 512.0 MiB reaches 25")
    assert collective_speed_text(speeds).endswith(" GB/s on the bus, 57 % of NVLink's 450.0 GB/s")
    assert collective_speed_text(collective_speeds(rows, ["NVIDIA L4"])).endswith(" GB/s on the bus")
    assert collective_speeds(rows, ["NVIDIA H200", "NVIDIA L4"])[0].nvlink_pct is None


def test_what_has_no_size_or_ranks_has_no_speed():
    rows = bandwidth_rows([Collective("AllReduce", 8, None, 100), Collective("AllReduce", None, 4096, 100)])
    by_size = {row["message_bytes"]: row for row in rows}
    assert (by_size[None]["alg_bytes_per_s"], by_size[None]["bus_bytes_per_s"]) == (None, None)
    assert (by_size[4096]["alg_bytes_per_s"], by_size[4096]["bus_bytes_per_s"]) == (40.96e9, None)
    assert collective_speeds(rows, ["NVIDIA H200"]) == ()
    assert collective_speed_text(()) == ""


def test_a_report_without_sizes_says_where_they_are():
    report = read(H200 / "tiled.sqlite.gz", Options(tables=frozenset({"bandwidth"})))
    problem = next(p for p in report.problems if p.message == "holds nothing of bandwidth")
    assert problem.fix.startswith("the sizes of NCCL's messages are in traces of PyTorch's profiler")
