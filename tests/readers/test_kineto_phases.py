"""Phases of PyTorch's traces: by its own step markers, by annotations, by the kernels."""

import json

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

MS = 1000.0  # in us


def span(name, category, start, duration, **args):
    where = {"pid": 0, "tid": 7} if category.startswith(("kernel", "gpu_mem")) else {"pid": 100, "tid": 100}
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": duration, "args": args, **where}


def loop(marker, steps=12, first=40 * MS, late=0.3 * MS):
    """An upload, then steps of 2 ms whose kernels run `late` after they are launched; the first step takes 40 ms."""
    events = [
        span("cudaMemcpyAsync", "cuda_runtime", 1 * MS, 20 * MS, correlation=1),
        span("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 2 * MS, 18 * MS, correlation=1, device=0, bytes=1 << 20),
    ]
    now, at = 50 * MS, 10
    for step in range(steps):
        length = first if step == 0 else 2 * MS
        if marker:
            events.append(span(marker.format(step + 3), "user_annotation", now, length - 1.0))
        for offset, duration, name in ((0.1 * MS, 0.6 * MS, "gemm"), (0.9 * MS, 0.5 * MS, "relu")):
            events.append(span("cudaLaunchKernel", "cuda_runtime", now + offset, 5.0, correlation=at))
            events.append(span(name, "kernel", now + offset + late, duration, correlation=at, device=0))
            at += 1
        now += length
    return [*events, span("cudaFree", "cuda_runtime", now + 1 * MS, 100.0, correlation=at)]


@pytest.fixture
def tables(tmp_path):
    def of(events, **options):
        path = tmp_path / "trace.pt.trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return {name: list(full_rows(name, data)) for name, data in read(path, Options(**options)).tables.items()}

    return of


@pytest.mark.parametrize(
    ("marker", "found_by", "name"),
    [("ProfilerStep#{}", "profiler_step", "ProfilerStep#"), ("train step {}", "nvtx", "train step #"),
     (None, "kernel_sequence", None)],
)  # fmt: skip
def test_iterations_by_whatever_tells_them(tables, marker, found_by, name):
    found = tables(loop(marker))
    (row,) = found["iterations"]
    assert (row["found_by"], row["name"], row["iterations"], row["warmup"]) == (found_by, name, 12, 1)
    assert row["med_ns"] == 2e6
    steady = {r["name"]: r["calls"] for r in found["phase_summary"] if r["phase"] == "steady"}
    assert steady == {"gemm": 11, "relu": 11, "cudaLaunchKernel": 22}
    setup = {r["name"]: r["total_ns"] for r in found["phase_summary"] if r["phase"] == "setup"}
    assert setup == {"Memcpy HtoD (Pageable -> Device)": 18e6, "cudaMemcpyAsync": 20e6}
    (upload,) = [r for r in found["gpu_summary"] if r["kind"] == "memcpy"]
    assert upload["total_ns"] == 18e6  # the whole stays the whole


def test_phases_begin_at_the_first_time_of_the_trace_and_add_up(tables):
    found = tables(loop("ProfilerStep#{}"))
    phases = found["phases"]
    assert [r["phase"] for r in phases] == ["setup", "warmup", "steady", "end"]
    assert phases[0]["start_ns"] == 0
    assert sum(r["gpu_ns"] for r in phases) == sum(r["total_ns"] for r in found["gpu_summary"])
    assert sum(r["api_ns"] for r in phases) == sum(r["total_ns"] for r in found["api_summary"])


def test_work_that_runs_after_its_step_belongs_to_the_step_that_launched_it(tables):
    found = tables(loop("ProfilerStep#{}", late=1.5 * MS), tables=frozenset({"iteration_trace", "gpu_trace"}))
    assert [r["gpu_ops"] for r in found["iteration_trace"]] == [2] * 12
    assert [r["phase"] for r in found["gpu_trace"]] == ["setup", *["warmup"] * 2, *["steady"] * 22]


def optimizer_steps():
    """Marks that launch none of the steps' kernels."""
    marks = (span("Optimizer.step#SGD.step", "user_annotation", 52 * MS + 2 * MS * n + 600, 1200.0) for n in range(12))
    return loop(None, first=2 * MS) + list(marks)


def test_a_mark_that_launches_little_of_the_work_is_no_iteration(tables):
    (row,) = tables(optimizer_steps())["iterations"]
    assert (row["found_by"], row["iterations"], row["med_ns"]) == ("kernel_sequence", 12, 2e6)


def test_a_mark_that_is_named_is_one_and_the_last_is_left_out_where_it_is_a_part(tables):
    (row,) = tables(optimizer_steps(), steps="Optimizer.step#SGD.step")["iterations"]
    assert (row["found_by"], row["iterations"], row["min_ns"], row["max_ns"]) == ("nvtx", 11, 2e6, 2e6)


def test_a_trace_of_whole_microseconds_has_phases_too(tables):
    events = [e | {"ts": int(e["ts"]), "dur": int(e["dur"])} for e in loop("ProfilerStep#{}")]
    (row,) = tables(events)["iterations"]
    assert row["med_ns"] == 2e6
