"""Phases of nvprof's databases: NVTX ranges if any, else the repetition of the kernels, else one phase and why."""

import struct

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

from .test_nvprof_sqlite import Profile

UPLOAD = 50_000_000  # ns of the one copy before the first kernel: set-up, and most of all GPU time
STEPS, SLOW = 14, 3


class Program:
    """A database of a program that uploads, and then trains: three kernels and a copy a step, the first ones slow."""

    def __init__(self, path):
        self.made = Profile(path)
        self.clock, self.correlation, self.marker = 1_000_000, 0, 0
        self.steady = {}

    def call(self, cbid, duration=900):
        self.correlation += 1
        self.made.add("RUNTIME", cbid=cbid, start=self.clock, end=self.clock + duration, processId=123, threadId=1,
                      correlationId=self.correlation)  # fmt: skip

    def copy(self, size, duration):
        self.call(31)
        start = self.clock + 1000
        self.made.add("MEMCPY", copyKind=1, srcKind=1, dstKind=3, bytes=size, start=start, end=start + duration,
                      deviceId=0, contextId=1, streamId=7, correlationId=self.correlation)  # fmt: skip
        self.clock = start + duration

    def kernel(self, name, duration):
        self.call(211)
        self.made.kernel(name, self.clock + 1000, duration, self.correlation)
        self.clock += 1000 + duration

    def range(self, name, start):
        self.marker += 1
        both = {"id": self.marker, "objectKind": 2, "objectId": struct.pack("<II", 123, 1) + b"\0" * 4}
        self.made.add("MARKER", flags=2, timestamp=start, name=self.made.string(name), **both)
        self.made.add("MARKER", flags=4, timestamp=self.clock, **both)

    def train(self, *, ranges=None):
        self.copy(1 << 26, UPLOAD)
        for step in range(STEPS):
            start, times = self.clock, 10 if step < SLOW else 1
            self.copy(4096, 2000)
            for name, duration in (("_Z4gemmPfS_S_i", 9000), ("_Z4reluPf", 3000), ("_Z4stepPf", 5000)):
                self.kernel(name, duration * times)
            self.clock += 500
            if ranges:
                self.range(ranges.format(step), start)
        return self.made.close()


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path / "run.nvvp")


def tables(path, **options):
    report = read(path, Options(**options))
    assert [p for p in report.problems if p.severity == "error"] == []
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


def by_phase(found):
    return {row["phase"]: row for row in found["phases"]}


def test_the_kernels_that_repeat_make_the_phases(program):
    found = tables(program.train())
    phases = by_phase(found)
    assert {row["found_by"] for row in found["phases"]} == {"kernel_sequence"}
    assert phases["setup"]["gpu_ns"] == UPLOAD + 2000, "the upload, and the copy before the first kernel"
    assert phases["warmup"]["iterations"] == SLOW
    assert phases["steady"]["iterations"] == STEPS - SLOW
    (row,) = found["iterations"]
    assert row["med_ns"] == pytest.approx(9000 + 3000 + 5000 + 2000 + 4 * 1000 + 500)


def test_ranges_that_repeat_go_before_the_kernels(program):
    found = tables(program.train(ranges="step {}"))
    assert {(row["found_by"], row["name"]) for row in found["phases"]} == {("nvtx", "step #")}
    phases = by_phase(found)
    assert phases["setup"]["gpu_ns"] == UPLOAD
    assert (phases["warmup"]["iterations"], phases["steady"]["iterations"]) == (SLOW, STEPS - SLOW)


def test_what_was_done_in_the_phases_adds_up_to_the_whole(program):
    found = tables(program.train(ranges="step"))
    for summary in ("gpu_summary", "api_summary"):
        whole = {(row["name"]): (row["calls"], row["total_ns"]) for row in found[summary]}
        parts = {}
        for row in found["phase_summary"]:
            if row["summary"] == summary:
                calls, total = parts.get(row["name"], (0, 0.0))
                parts[row["name"]] = (calls + row["calls"], total + row["total_ns"])
        assert parts == whole
    steady = [r for r in found["phase_summary"] if r["phase"] == "steady" and r["summary"] == "gpu_summary"]
    assert sum(row["time_pct"] for row in steady) == pytest.approx(100)
    copies = next(row for row in steady if row["kind"] == "memcpy")
    assert copies["time_pct"] == pytest.approx(100 * 2000 / 19000)


def test_an_iteration_each_is_made_only_where_it_is_asked_for(program):
    path = program.train()
    assert "iteration_trace" not in tables(path)
    found = tables(path, tables=frozenset({"iteration_trace"}))
    assert set(found) == {"iteration_trace"}
    assert [row["phase"] for row in found["iteration_trace"]] == ["warmup"] * SLOW + ["steady"] * (STEPS - SLOW)


def test_copies_have_the_kind_of_the_hosts_memory(program):
    program.copy(1 << 26, UPLOAD)
    program.kernel("_Z4gemmPfS_S_i", 5000)
    program.copy(100, 1000)
    (row,) = tables(program.made.close())["host_copies"]
    assert (row["direction"], row["memory"], row["calls"]) == ("to the GPU", "pageable", 1)


def test_without_repetition_there_is_one_phase_and_why(program):
    program.copy(100, 1000)
    program.kernel("_Z4gemmPfS_S_i", 5000)
    found = tables(program.made.close())
    (row,) = found["phases"]
    assert (row["phase"], row["found_by"]) == ("all", "none")
    assert "sequence of kernels repeats" in row["reason"]
    assert row["gpu_ns"] == 6000
    assert "phase_summary" not in found


def test_an_operation_without_a_call_or_times_is_no_obstacle(program):
    program.made.kernel("_Z4gemmPfS_S_i", 2_000_000, 400, 0)
    program.made.add("MEMCPY", copyKind=1, start=0, end=0, correlationId=5)
    program.made.add("RUNTIME", cbid=31, start="x", end=3)
    (row,) = tables(program.made.close())["phases"]
    assert row["gpu_ns"] == 400
