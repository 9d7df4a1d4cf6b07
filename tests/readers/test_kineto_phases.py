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
    # the GPU falls behind in the second step, which is therefore longer than those after it
    assert [r["phase"] for r in found["gpu_trace"]] == ["setup", *["warmup"] * 4, *["steady"] * 20]


def loaded(waits, lag, work=2 * MS):
    """Steps that load for `waits` each, one behind the other, and then launch a kernel of `work` that starts `lag` later."""
    events, now = [], 50 * MS
    for at, wait in enumerate(waits):
        length = wait + 1 * MS + work
        events.append(span(f"ProfilerStep#{at}", "user_annotation", now, length))
        events.append(span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "cpu_op", now, wait))
        events.append(span("cudaLaunchKernel", "cuda_runtime", now + wait, 5.0, correlation=at + 1))
        events.append(span("gemm", "kernel", now + wait + lag, work, correlation=at + 1, device=0))
        now += length
    return events


def test_steps_last_from_mark_to_mark(tables):
    waits = [50 * MS, 22 * MS, 62 * MS]
    found = tables(loaded(waits, 0.1 * MS), tables=frozenset({"iteration_trace", "phases"}))
    assert [r["duration_ns"] for r in found["iteration_trace"]] == [1000 * (wait + 3 * MS) for wait in waits]
    (steady,) = [r for r in found["phases"] if r["phase"] == "steady"]
    assert steady["duration_ns"] == sum(r["duration_ns"] for r in found["iteration_trace"])


def test_a_step_that_the_gpu_works_on_for_longer_lasts_until_then(tables):
    found = tables(loaded([10 * MS] * 4, 5 * MS), tables=frozenset({"iteration_trace"}))
    assert [r["duration_ns"] for r in found["iteration_trace"]] == [17e6, 13e6, 13e6, 13e6]
    ends = [r["start_ns"] + r["duration_ns"] for r in found["iteration_trace"]]
    assert [r["gpu_busy_ns"] for r in found["iteration_trace"]] == [2e6] * 4
    assert ends == [17e6, 30e6, 43e6, 56e6]


def test_marks_of_a_program_take_no_longer_together_than_from_the_first_to_the_last(tables):
    events = loaded([1 * MS, 60 * MS, 60 * MS], 0.1 * MS)
    events = [e | {"name": e["name"].replace("ProfilerStep#", "train step ")} for e in events]
    found = tables(events, tables=frozenset({"iteration_trace", "iterations"}))
    assert {r["found_by"] for r in found["iterations"]} == {"nvtx"}
    trace = found["iteration_trace"]
    assert sum(r["duration_ns"] for r in trace) <= sum(e["dur"] for e in events if "step" in e["name"]) * 1000


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
