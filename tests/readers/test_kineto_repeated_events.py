"""Events that a trace of PyTorch's profiler holds twice are counted once, and reported."""

import gzip
import json
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.tables import rows

LENET = Path(__file__).parents[1] / "fixtures" / "h200" / "lenet-trace.json.gz"
TABLES = (
    "gpu_summary", "gpu_trace", "api_summary", "operators", "nvtx_summary", "nvtx_gpu_summary", "communication", "facts",
    "phases", "phase_summary", "iterations", "iteration_trace",
)  # fmt: skip
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def span(category, name, start, duration, pid=9, tid=9, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def step(number):
    """A training step with its operator, call, kernel, collective, range on the GPU and a pause of the profiler."""
    at, ids = 1000.5 * number, {"External id": 10 * number + 1}
    sent = {"Collective name": "allreduce", "In msg nelems": 100 * number, "dtype": "Float"}
    launch, gpu = {"correlation": 10 * number + 2}, {"device": 0, "stream": 7}
    return [
        span("user_annotation", f"ProfilerStep#{number}", at, 900.25, **{"External id": 10 * number + 5}),
        span("cpu_op", "aten::mm", at + 10, 300.125, **ids),
        span("cuda_runtime", "cudaLaunchKernel", at + 20, 5.5, **launch, **ids),
        span("overhead", "Buffer Flush", at + 100, 20.25, pid=-1, tid=0),
        span("kernel", "gemm", at + 40, 100.75, 0, 7, **gpu, **launch, **ids),
        span("kernel", NCCL, at + 200, 50.25, 0, 7, **gpu, **sent, **ids, correlation=10 * number + 3),
        span("gpu_user_annotation", "forward", at + 40, 300.25, 0, 7, **{"External id": 10 * number + 5}),
    ]


def steps():
    return [event for number in range(1, 9) for event in step(number)]


def figures(tmp_path, events, **header):
    """All tables and all problems."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    report = read(path, Options(frozenset(TABLES)))
    return {name: list(rows(name, data)) for name, data in report.tables.items()}, report.problems


@pytest.mark.parametrize("again", [lambda e: e + e, lambda e: e + e + e, lambda e: [x for x in e for _ in range(2)]])
@pytest.mark.parametrize("made", ["steps", "lenet"])
def test_a_trace_merged_with_itself_has_the_figures_of_one(tmp_path, made, again):
    document = json.loads(gzip.decompress(LENET.read_bytes())) if made == "lenet" else {"traceEvents": steps()}
    events = document.pop("traceEvents")
    once, problems = figures(tmp_path, events, **document)
    found, more = figures(tmp_path, again(events), **document)
    assert once.keys() >= {"gpu_summary", "gpu_trace", "api_summary", "operators", "facts", "phases"}
    assert found == once
    (said,) = [p for p in more if p not in problems]
    assert said.severity == "error"
    assert "kernels or copies and" in said.message
    assert "are in the trace twice, at one time under one id: counted once" in said.message


def test_how_many_there_are_twice_is_said(tmp_path):
    _, problems = figures(tmp_path, step(1) + step(2) + [step(1)[4], *step(2)[1:3]])
    assert [p.message for p in problems] == [
        "a kernel or copy and 2 calls, operators or ranges are in the trace twice, at one time under one id: counted once"
    ]
    _, problems = figures(tmp_path, [*step(1), step(1)[6]])
    assert [p.message.split(",")[0] for p in problems] == ["a call"]
    assert "operator or range is in the trace twice" in problems[0].message


@pytest.mark.parametrize("place", [1, 2, 4, 6])
@pytest.mark.parametrize(
    "changes", [{"ts": 1.5}, {"dur": 1.5}, {"name": "other"}, {"tid": 8}, {"args": {}}, {"args": {"correlation": 0, "External id": 0}}]
)  # fmt: skip
def test_what_differs_or_has_no_id_is_counted(tmp_path, place, changes):
    event = step(1)[place] | changes
    _, problems = figures(tmp_path, [*step(1), event])
    assert not any("twice" in p.message for p in problems)
    if "args" in changes:
        _, problems = figures(tmp_path, [*step(1), event, event])
        assert not any("twice" in p.message for p in problems)


@pytest.mark.parametrize("other", [{"stream": 8}, {"graph node id": 5}, {"device": 1}, {"correlation": 99}])
def test_kernels_of_other_streams_devices_and_graph_nodes_are_others(tmp_path, other):
    kernel = step(1)[4]
    found, problems = figures(tmp_path, [*step(1), kernel | {"args": kernel["args"] | other}])
    assert [row["calls"] for row in found["gpu_summary"] if row["name"] == "gemm"] == [2]
    assert not any("twice" in p.message for p in problems)
