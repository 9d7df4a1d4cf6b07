"""The speed of collectives in an answer: behind what NCCL takes, and as a table of the full answer."""

import pytest

from nsw.analysis.answer.registry import answer_blocks

from .made import make_run
from .test_first_screen import summarized
from .test_steady import MS, iterations_row, part, timeline, whole

H200 = {"run": "r", "key": "gpu_name", "text": "NVIDIA H200"}


def speed(rank, med_ns, **changed):
    """A row of table bandwidth of a run under PyTorch's profiler: an AllReduce of 256 MiB on two GPUs."""
    rate = (1 << 28) / med_ns * 1e9
    return {"run": "t", "report": str(rank), "name": "AllReduce", "ranks": 2, "message_bytes": 1 << 28, "calls": 6,
            "med_ns": med_ns, "alg_bytes_per_s": rate, "bus_bytes_per_s": rate} | changed  # fmt: skip


def answer(*speeds):
    runs = [timeline(), make_run("t", "c", pass_name="torch", pass_kind="host")]
    parts = [part("steady", "gemm", 18 * 5 * MS, calls=18), part("steady", "ncclKernel", 18 * 4 * MS, calls=18)]
    steps = [iterations_row(10 * MS, busy=90.0, memory=0.0, nccl=400 / 9)]
    return summarized(runs, gpu_summary=whole(parts), phase_summary=parts, iterations=steps, facts=[H200],
                      bandwidth=list(speeds))  # fmt: skip


def test_what_nccl_takes_is_said_with_the_speed_of_the_rank_that_waits_least():
    [text] = [f.text for f in answer(speed(0, 2 * MS), speed(1, 1 * MS)).findings if "NCCL alone takes" in f.text]
    assert "; AllReduce of 256.0 MiB reaches 268.4 GB/s on the bus, 60 % of NVLink's 450.0 GB/s" in text


@pytest.mark.parametrize("speeds", [(), (speed(0, 1 * MS, bus_bytes_per_s=None),)])
def test_without_sizes_nothing_is_said_of_speeds(speeds):
    summary = answer(*speeds)
    assert not any("on the bus" in finding.text for finding in summary.findings)
    assert "bandwidth" not in [block.name for block in answer_blocks(summary)]


def test_the_full_answer_has_a_row_a_kind_and_size_those_that_move_most_first():
    small = speed(0, 10e3, message_bytes=1 << 10, calls=9)
    [table] = [block for block in answer_blocks(answer(small, speed(0, 1 * MS))) if block.name == "bandwidth"]
    assert [row[:4] for row in table.rows] == [("AllReduce", 2, 1 << 28, 6), ("AllReduce", 2, 1 << 10, 9)]
    assert table.columns[-1].title == "of NVLink"
