"""Traces of PyTorch's profiler: sums, operators, where a step's time went, and files that are not whole."""

import gzip
import json
import random
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers import read, untrusted_files
from nsw.readers.model import Options, Sample
from nsw.readers.pytorch import kineto, kineto_events
from nsw.readers.pytorch.kineto_steps import CATEGORIES, intersect_spans, merge_spans, subtract_spans, uses_tensor_cores
from nsw.tables import full_rows


def span(category, name, start, duration, *, pid=9, tid=9, **args):
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


def kernel(name, start, duration, device=0, **args):
    return span("kernel", name, start, duration, pid=device, tid=7, device=device, stream=7, **args)


def memory(allocated, reserved, device=0, kind=1):
    args = {"Total Allocated": allocated, "Total Reserved": reserved, "Device Id": device, "Device Type": kind}
    return {"ph": "i", "name": "[memory]", "ts": 1, "args": args}


# One step of 100 us: 10 data loader, then a matrix product whose kernel goes on after the host has finished.
EVENTS = [
    span("user_annotation", "ProfilerStep#3", 1000.0, 100.0, **{"External id": 1}),
    span("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 1000.0, 10.0),
    span("cpu_op", "aten::linear", 1010.0, 50.0, **{"External id": 2}),
    span("cpu_op", "aten::addmm", 1015.0, 40.0, **{"External id": 3}),
    span("cuda_runtime", "cudaLaunchKernel", 1020.0, 5.0, correlation=77),
    kernel("sm80_xmma_gemm_f16", 1030.0, 90.0, correlation=77, **{"External id": 3, "blocks per SM": 2.0, "est. achieved occupancy %": 50}),
    kernel("axpy", 1025.0, 5.0, correlation=77, **{"blocks per SM": 20.0, "est. achieved occupancy %": 0}),
    span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1022.0, 4.0, pid=0, device=0, stream=7, bytes=4096, correlation=77),
    span("gpu_memset", "Memset (Device)", 1021.0, 0.5, pid=0, device=0, bytes=64, correlation=77),
    span("gpu_user_annotation", "ProfilerStep#3", 1030.0, 90.0, pid=0),
    memory(100, 2000), memory(900, 2000), memory(300, 2000), memory(5, 6, device=-1, kind=0),
]  # fmt: skip
HEADER = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "Tesla T4", "numSms": 40, "totalGlobalMem": 15637086208}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
}


def document(events=EVENTS, **header):
    return json.dumps({**HEADER, **header, "traceEvents": events, "traceName": "t"}, indent=1)


def read_text(tmp_path, text, name="trace.json", tables=None):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return kineto.read(path, Options(tables))


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def fact(report, key, device=None):
    return next(
        (
            f["value"] if f["value"] is not None else f["text"]
            for f in table(report, "facts")
            if f["key"] == key and f["device"] == device
        ),
        None,
    )


def pick(row, *columns):
    return tuple(row[c] for c in columns)


def test_gpu_work_is_summed_by_name(tmp_path):
    report = read_text(tmp_path, document([*EVENTS, kernel("axpy", 1200.0, 7.0)]))
    got = [
        pick(r, "kind", "name", "calls", "total_ns", "min_ns", "max_ns", "total_bytes", "device", "rank")
        for r in table(report, "gpu_summary")
    ]
    assert got == [
        ("kernel", "sm80_xmma_gemm_f16", 1, 90_000, 90_000, 90_000, None, 0, 3),
        ("kernel", "axpy", 2, 12_000, 5_000, 7_000, None, 0, 3),
        ("memcpy", "Memcpy HtoD (Pinned -> Device)", 1, 4_000, 4_000, 4_000, 4096, 0, 3),
        ("memset", "Memset (Device)", 1, 500, 500, 500, 64, 0, 3),
    ]
    assert sum(r["time_pct"] for r in table(report, "gpu_summary")) == pytest.approx(100)
    assert not report.problems


def test_kernels_of_two_devices_under_one_name_have_no_device(tmp_path):
    report = read_text(tmp_path, document([kernel("a", 1, 2, 0), kernel("a", 1, 2, 1), kernel("b", 1, 1, 1)]))
    assert {r["name"]: r["device"] for r in table(report, "gpu_summary")} == {"a": None, "b": 1}


def test_operators_nest_and_gpu_work_belongs_to_who_launched_it(tmp_path):
    report = read_text(tmp_path, document())
    got = {
        r["name"]: pick(r, "calls", "cpu_ns", "self_cpu_ns", "device_ns", "self_device_ns")
        for r in table(report, "operators")
    }
    assert got == {"aten::linear": (1, 50_000, 10_000, 90_000, 0), "aten::addmm": (1, 40_000, 35_000, 90_000, 90_000)}
    assert [pick(r, "name", "calls", "total_ns") for r in table(report, "api_summary")] == [
        ("cudaLaunchKernel", 1, 5000)
    ]
    assert ("ProfilerStep*", 1, 100_000) in [
        pick(r, "name", "calls", "total_ns") for r in table(report, "nvtx_summary")
    ]
    assert [pick(r, "name", "calls", "projected_ns") for r in table(report, "nvtx_gpu_summary")] == [
        ("ProfilerStep*", 1, 90_000)
    ]


def test_an_operator_that_only_calls_another_of_its_name_is_one_call_with_it(tmp_path):
    events = [
        span("cpu_op", "aten::sum", 0, 100, **{"External id": 1}),
        span("cpu_op", "aten::sum", 10, 80, **{"External id": 2}),
        span("cpu_op", "aten::sum", 20, 60, **{"External id": 3}),
        span("cuda_runtime", "cudaLaunchKernel", 30, 5),
        span("cpu_op", "aten::empty", 40, 10, **{"External id": 4}),
        kernel("reduce", 50, 7, **{"External id": 3}),
        # two children of one name are calls of their own, and so is one beside a CUDA call
        span("cpu_op", "aten::cat", 200, 50), span("cpu_op", "aten::cat", 201, 9), span("cpu_op", "aten::cat", 211, 9),
        span("cpu_op", "aten::mul", 300, 50), span("cpu_op", "aten::mul", 301, 9), span("cuda_runtime", "x", 311, 9),
    ]  # fmt: skip
    report = read_text(tmp_path, document(events))
    got = {
        r["name"]: pick(r, "calls", "cpu_ns", "self_cpu_ns", "device_ns", "self_device_ns")
        for r in table(report, "operators")
    }
    assert got == {
        "aten::sum": (1, 100_000, 85_000, 7_000, 7_000),
        "aten::empty": (1, 10_000, 10_000, 0, 0),
        "aten::cat": (3, 68_000, 50_000, 0, 0),
        "aten::mul": (2, 59_000, 41_000, 0, 0),
    }


def test_a_step_lasts_to_the_end_of_its_gpu_work_and_its_parts_add_up(tmp_path):
    report = read_text(tmp_path, document())
    parts = {c: fact(report, f"step_{c}_ns") for c in CATEGORIES}
    assert parts == {
        "kernel": 95_000, "memcpy": 3_000, "memset": 500, "communication": 0, "runtime": 1_500,
        "dataloader": 10_000, "cpu": 10_000, "other": 0,
    }  # fmt: skip
    assert sum(parts.values()) == fact(report, "step_time_ns") == 120_000


def test_how_a_gpu_was_used(tmp_path):
    report = read_text(tmp_path, document())
    assert fact(report, "gpu_utilization_pct", 0) == pytest.approx(100 * 95 / 120)
    assert fact(report, "mean_blocks_per_sm", 0) == pytest.approx((90 * 2 + 5 * 20) / 95)
    assert fact(report, "mean_est_achieved_occupancy_pct", 0) == pytest.approx(90 * 50 / 95)
    assert fact(report, "est_sm_efficiency_pct", 0) == pytest.approx(100 * 95 / 120)
    assert fact(report, "tensor_core_time_pct", 0) == 100  # no operator is known to have launched axpy
    assert fact(report, "tensor_core_eligible_pct") == 100
    assert fact(report, "peak_device_allocated_bytes", 0) == 900
    assert fact(report, "gpu_name", 0) == "Tesla T4"
    assert fact(report, "ranks") == 8


def test_sm_efficiency_adds_up_what_runs_at_once_and_counts_a_full_gpu_as_one(tmp_path):
    blocks = [(0.0, 60.0, 0.25), (40.0, 30.0, 0.5), (50.0, 10.0, 7.0), (100.0, 10.0, 0.0)]
    kernels = [kernel("k", start, took, **{"blocks per SM": value}) for start, took, value in blocks]
    report = read_text(tmp_path, document([span("cpu_op", "a", 0.0, 200.0), *kernels]))
    used = 40 * 0.25 + 10 * 0.75 + 10 * 1 + 10 * 0.5
    assert fact(report, "est_sm_efficiency_pct", 0) == pytest.approx(100 * used / 200)


def test_the_first_step_begins_behind_the_work_of_the_steps_before_it(tmp_path):
    events = [
        span("user_annotation", "ProfilerStep#8", 100.0, 50.0),
        span("cuda_runtime", "cudaLaunchKernel", 110.0, 1.0, correlation=1),
        kernel("old", 90.0, 30.0, correlation=0), kernel("mine", 125.0, 40.0, correlation=1),
    ]  # fmt: skip
    report = read_text(tmp_path, document(events))
    assert (fact(report, "step_time_ns"), fact(report, "step_kernel_ns")) == (45_000, 40_000)


def test_a_trace_without_steps_is_one_step_of_its_operators_and_what_they_launched(tmp_path):
    events = [
        span("cuda_runtime", "cudaFree", 0.0, 5.0, correlation=9),
        span("cpu_op", "aten::mm", 10.0, 20.0, **{"External id": 1}),
        span("cuda_runtime", "cudaLaunchKernel", 12.0, 2.0, correlation=1),
        kernel("gemm", 20.0, 30.0, correlation=1, **{"External id": 1}),
        span("user_annotation", "epoch", 10.0, 15.0),
        span("cuda_runtime", "cudaDeviceSynchronize", 40.0, 60.0, correlation=2),
    ]
    report = read_text(tmp_path, document(events))
    assert (fact(report, "steps"), fact(report, "step_time_ns")) == (0, 40_000)
    assert [fact(report, f"step_{c}_ns") for c in ("kernel", "runtime", "cpu", "other")] == [30_000, 2_000, 8_000, 0]


def test_only_the_kernels_of_the_lowest_eligible_operator_are_eligible(tmp_path):
    events = [
        span("cpu_op", "aten::linear", 0.0, 100.0, **{"External id": 1}),
        span("cpu_op", "aten::addmm", 10.0, 20.0, **{"External id": 2}),
        span("cpu_op", "aten::copy_", 40.0, 20.0, **{"External id": 3}),
        kernel("bias", 1.0, 1.0, **{"External id": 1}), kernel("gemm", 11.0, 6.0, **{"External id": 2}),
        kernel("cast", 41.0, 3.0, **{"External id": 3}), kernel("nobody's", 60.0, 90.0),
        span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50.0, 500.0, pid=0, device=0, **{"External id": 3}),
    ]  # fmt: skip
    assert fact(read_text(tmp_path, document(events)), "tensor_core_eligible_pct") == pytest.approx(60)


def test_what_is_not_in_a_trace_is_absent(tmp_path):
    report = read_text(tmp_path, document([kernel("axpy", 1.0, 2.0)], distributedInfo=None))
    assert fact(report, "mean_blocks_per_sm", 0) is None
    assert fact(report, "tensor_core_eligible_pct") is None
    assert table(report, "gpu_summary")[0]["rank"] is None
    assert "operators" not in report.tables


def test_collectives_have_their_bytes(tmp_path):
    args = {"Collective name": "allreduce", "In msg nelems": 1000, "dtype": "BFloat16"}
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    report = read_text(tmp_path, document([kernel(name, 1.0, 2.0, **args), kernel(name, 9.0, 4.0, **args)]))
    [row] = table(report, "communication")
    assert pick(row, "library", "name", "calls", "total_ns", "total_bytes") == ("nccl", "AllReduce", 2, 6000, 4000)
    assert (fact(report, "step_communication_ns"), fact(report, "step_kernel_ns")) == (6000, 0)


def test_collectives_of_one_size_have_a_row_with_their_speed(tmp_path):
    def collective(name, start, took, elements, **args):
        args = {
            "Collective name": name,
            "In msg nelems": elements,
            "Out msg nelems": 4 * elements,
            "Group size": 4,
        } | args
        return kernel("ncclDevKernel_x()", start, took, dtype="Half", **args)

    events = [
        collective("_allgather_base", 1.0, 4.0, 1000), collective("_allgather_base", 9.0, 4.0, 1000),
        collective("allgather_into_tensor_coalesced", 20.0, 4.0, 1000),  # several in one kernel, which tells one
        collective("send", 30.0, 2.0, 1000, **{"Out msg nelems": 1000}), collective("allreduce", 40.0, 2.0, "many"),
    ]  # fmt: skip
    got = {row["name"]: row for row in table(read_text(tmp_path, document(events)), "bandwidth")}
    columns = ("ranks", "message_bytes", "calls", "alg_bytes_per_s", "bus_bytes_per_s")
    assert pick(got["AllGather"], *columns) == (4, 8000, 2, 2e9, 1.5e9)
    assert pick(got["Send"], *columns) == (2, 2000, 1, 1e9, 1e9)
    assert pick(got["AllReduce"], *columns) == (4, None, 1, None, None)
    assert len(got) == 3


@pytest.mark.parametrize(
    ("dtype", "each"),
    [("Float", 4), ("Half", 2), ("BFloat16", 2), ("Double", 8), ("Int", 4), ("Long", 8), ("Short", 2), ("Byte", 1),
     ("Char", 1), ("Bool", 1), ("Float8_e4m3fn", 1), ("Float8_e5m2", 1), ("ComplexFloat", None)],
)  # fmt: skip
def test_a_collective_moves_as_many_bytes_as_its_elements_have(tmp_path, dtype, each):
    args = {"Collective name": "allreduce", "In msg nelems": 1000, "dtype": dtype}
    report = read_text(tmp_path, document([kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 1.0, 2.0, **args)]))
    assert table(report, "communication")[0]["total_bytes"] == (each and 1000 * each)


def test_shares_of_the_gpu_are_of_what_all_operators_launched(tmp_path):
    work = [("aten::mm", 30), ("aten::mm", 30), ("aten::add", 15), ("aten::view", None)]
    events = []
    for number, (name, took) in enumerate(work, 1):
        events.append(span("cpu_op", name, 100.0 * number, 10.0, **{"External id": number}))
        events += [kernel("k", 100.0 * number, float(took), **{"External id": number})] if took else []
    got = {
        r["name"]: pick(r, "calls", "device_ns", "device_avg_ns", "self_device_pct", "self_cpu_pct", "cpu_avg_ns")
        for r in table(read_text(tmp_path, document(events)), "operators")
    }
    assert got == {
        "aten::mm": (2, 60_000, 30_000, 80, 50, 10_000),
        "aten::add": (1, 15_000, 15_000, 20, 25, 10_000),
        "aten::view": (1, 0, 0, 0, 25, 10_000),
    }


@pytest.mark.parametrize("args", [{}, {"memory bandwidth (GB/s)": -1.0}, {"memory bandwidth (GB/s)": "7"}])
def test_the_rate_of_a_copy_is_that_of_the_trace_or_absent(tmp_path, args):
    rated = [{"memory bandwidth (GB/s)": 0.25}, {"memory bandwidth (GB/s)": 12}, args]
    copies = [
        span("gpu_memcpy", "Memcpy DtoD (Device -> Device)", float(n), 1.0, **more) for n, more in enumerate(rated)
    ]
    report = read_text(tmp_path, document(copies), tables=frozenset({"gpu_trace"}))
    assert [r["bytes_per_s"] for r in table(report, "gpu_trace")] == [2.5e8, 1.2e10, None]


@pytest.mark.parametrize("grid", [[1, 2], [1, -2, 3], [1, 2.5, 3], "1,2,3", None])
def test_a_grid_that_is_none_is_absent_as_a_whole(tmp_path, grid):
    report = read_text(
        tmp_path, document([kernel("k", 1.0, 1.0, grid=grid, block=[32, 4, 1])]), tables=frozenset({"gpu_trace"})
    )
    (row,) = table(report, "gpu_trace")
    assert pick(row, "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z") == (None, None, None, 32, 4, 1)


def test_a_long_trace_of_the_gpu_is_whole_and_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(kineto, "_CHUNK", 3)
    events = [kernel(f"k{n}", float((7 * n) % 10), 1.0) for n in range(10)]
    report = read_text(tmp_path, document(events), tables=frozenset({"gpu_trace"}))
    assert [r["start_ns"] for r in table(report, "gpu_trace")] == [1000 * n for n in range(10)]
    assert {r["name"] for r in table(report, "gpu_trace")} == {f"k{n}" for n in range(10)}


def test_the_trace_of_the_gpu_is_given_when_asked_for(tmp_path):
    events = [
        kernel("b", 20.5, 2.0, grid=[2, 3, 1], block=[128, 1, 1], **{"registers per thread": 32}),
        *EVENTS[7:8],
        kernel("a", 10.25, 1.0),
    ]
    assert "gpu_trace" not in read_text(tmp_path, document(events)).tables
    report = read_text(tmp_path, document(events), tables=frozenset({"gpu_trace"}))
    assert set(report.tables) == {"gpu_trace"}
    got = [
        pick(r, "name", "start_ns", "duration_ns", "grid_y", "block_x", "registers", "bytes")
        for r in table(report, "gpu_trace")
    ]
    assert got == [
        ("a", 0, 1000, None, None, None, None),
        ("b", 10_250, 2000, 3, 128, 32, None),
        ("Memcpy HtoD (Pinned -> Device)", 1_011_750, 4000, None, None, None, 4096),
    ]
    assert table(report, "gpu_trace")[2]["src_memory"] == "pinned"


def test_whole_microseconds_of_old_traces_are_known_to_be_rounded(tmp_path):
    events = [
        kernel("a", 1621401187223005, 3),
        kernel("a", 1621401187223010, 4),
        span("Operator", "aten::add", 1621401187223001, 9),
    ]
    report = read_text(tmp_path, document(events))
    assert pick(table(report, "gpu_summary")[0], "total_ns", "total_ns_pm", "max_ns_pm") == (7000, 1000, 500)
    assert pick(table(report, "operators")[0], "cpu_ns", "cpu_ns_pm") == (9000, 500)


@pytest.mark.parametrize(("ts", "dur"), [("1.5", "2.25"), (1.5, 2.25), (1500e-3, "2.25")])
def test_times_may_be_text(ts, dur, tmp_path):
    [row] = table(read_text(tmp_path, document([kernel("a", ts, dur)])), "gpu_summary")
    assert row["total_ns"] == 2250


@pytest.mark.parametrize("fault", [{"ts": None}, {"dur": "x"}, {"dur": -1}, {"name": 7}, {"ts": 1e300}])
def test_events_without_a_time_are_left_out_and_counted(fault, tmp_path):
    faulty = kernel("b", 1.0, 2.0) | fault
    report = read_text(tmp_path, document([faulty, kernel("a", 1.0, 2.0), faulty, kernel("a", 9.0, 0.0)]))
    assert [pick(r, "name", "calls", "min_ns") for r in table(report, "gpu_summary")] == [("a", 2, 0)]
    assert "2 events have no valid time" in report.problems[0].message


def test_nan_and_raw_control_characters_are_survived(tmp_path):
    text = document([kernel("a", 1.0, 2.0, **{"blocks per SM": float("nan")}), kernel("b\tc", 1.0, 2.0)]).replace(
        "\\t", "\t"
    )
    report = read_text(tmp_path, text)
    assert sorted(r["name"] for r in table(report, "gpu_summary")) == ["a", "b\tc"]
    assert fact(report, "mean_blocks_per_sm", 0) is None
    assert not report.problems


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_cut_short_keeps_its_whole_events_and_says_where_it_ends(packed, tmp_path):
    text = document([kernel(f"k{n}", float(n), 1.0) for n in range(50)])
    data = text[: len(text) * 2 // 3].encode()
    if packed:
        data = gzip.compress(data)[:-9]
    report = read_text(tmp_path, data, "trace.json.gz" if packed else "trace.json")
    assert 20 < len(table(report, "gpu_summary")) < 40
    [problem] = report.problems
    assert problem.severity == "error"
    assert problem.line is not None
    assert problem.line > 100


def test_a_damaged_event_costs_itself_only(tmp_path):
    text = document([kernel(f"k{n}", float(n), 1.0) for n in range(5)]).replace('"k2"', '"k2')
    report = read_text(tmp_path, text)
    assert [r["name"] for r in table(report, "gpu_summary")][:2] == ["k0", "k1"]
    assert len(table(report, "gpu_summary")) >= 3
    assert report.problems[0].severity == "error"


def test_compressed_and_bare_lists_of_events_are_recognised_and_read(tmp_path):
    for name, data in (("a.json.gz", gzip.compress(document().encode())), ("b.json", json.dumps(EVENTS).encode())):
        report = read_text(tmp_path, data, name)
        assert kineto.sniff(Sample(tmp_path / name)) > 50
        assert len(table(report, "gpu_summary")) == 4


@pytest.mark.parametrize("window", [64, 700, 1 << 22])
@pytest.mark.parametrize("packed", [16, 100, 1 << 19])
@pytest.mark.parametrize("members", [1, 3])
def test_compressed_traces_are_whole_however_much_is_unpacked_at_a_time(tmp_path, monkeypatch, window, packed, members):
    """Also one of several gzip members, as `cat a.gz b.gz` makes it, with zeros behind it."""
    monkeypatch.setattr(kineto_events, "_WINDOW", window)
    for name, size in (("_WINDOW", window), ("_PACKED", packed)):
        monkeypatch.setattr(untrusted_files, name, size)
    text = document([kernel(f"k{n % 3}", 10.0 * n, 2.0) for n in range(60)]).encode()
    step = -(-len(text) // members)
    data = b"".join(gzip.compress(text[at : at + step]) for at in range(0, len(text), step))
    report = read_text(tmp_path, data + b"\0" * 300, "a.json.gz")
    assert not report.problems
    assert [pick(r, "name", "calls", "total_ns") for r in table(report, "gpu_summary")] == [
        (f"k{n}", 20, 40_000) for n in range(3)
    ]


def test_a_rank_in_the_files_name_is_a_guess_that_is_named(tmp_path):
    report = read_text(tmp_path, document(distributedInfo=None), "trace_rank-5.json")
    assert {r["rank"] for r in table(report, "gpu_summary")} == {5}
    assert [p.severity for p in report.problems] == ["warning"]


def test_host_and_process_in_the_name_that_pytorch_gives(tmp_path):
    report = read_text(tmp_path, document(), "node01_9.1621401187223.pt.trace.json")
    assert {pick(r, "host", "pid") for r in table(report, "gpu_summary")} == {("node01", 9)}
    other = read_text(tmp_path, document(), "worker_0.1621401187223.pt.trace.json")
    assert {pick(r, "host", "pid") for r in table(other, "gpu_summary")} == {(None, None)}


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", '{"traceEvent": []}', "", "\x1f\x8bxx"])
def test_other_files_are_not_taken_for_a_trace(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert kineto.sniff(Sample(path)) == 0


@pytest.mark.parametrize(
    ("process", "whose"),
    [
        ("/device:GPU:0", "the JAX or TensorFlow profiler"),
        ("/host:CPU", "the JAX or TensorFlow profiler"),
        ("/job:localhost/replica:0/task:0/device:GPU:0 Compute", "TensorFlow's timeline"),
        ("DistributedAdam_Allreduce/cond_12", "Horovod's timeline"),
        ("a game", "without events of PyTorch's profiler"),
    ],
)
def test_traces_of_other_tools_are_named(process, whose, tmp_path):
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": process}},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2.5, "name": "fusion"},
    ]
    path = tmp_path / "x.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    report = kineto.read(path, Options())
    assert not report.tables
    (problem,) = report.problems
    assert problem.severity == "error"
    assert whose in problem.message
    assert "nsys" in problem.fix


def test_a_trace_of_the_old_autograd_profiler_is_named(tmp_path):
    """Its events have no category, and the name of a process in place of its number."""
    event = {"ph": "X", "pid": "CPU functions", "tid": 1, "ts": 1.5, "dur": 2.5, "name": "aten::add", "args": {}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps([event]))
    (problem,) = kineto.read(path, Options()).problems
    assert "autograd profiler" in problem.message


def test_memory_does_not_grow_with_what_is_not_kept(tmp_path):
    arrow = {"ph": "s", "id": 1, "pid": 9, "tid": 9, "ts": 1.0, "cat": "ac2g", "name": "x" * 200}
    path = tmp_path / "t.json"
    path.write_text(document([kernel("a", 1.0, 2.0), *([arrow] * 60_000)]))
    assert path.stat().st_size > 15_000_000
    tracemalloc.start()
    report = kineto.read(path, Options())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table(report, "gpu_summary")) == 1
    assert peak < 30_000_000


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=12)


def moments(pairs):
    return {t for start, length in pairs for t in range(start, start + length)}


def as_spans(pairs):
    starts = np.array([s for s, _ in pairs], np.int64)
    return merge_spans(starts, starts + np.array([n for _, n in pairs], np.int64))


def covered(found):
    assert all(e <= s for e, s in zip(found[1], found[0][1:], strict=False))
    return {t for s, e in zip(*found, strict=True) for t in range(int(s), int(e))}


@given(spans, spans)
def test_spans_are_sets_of_moments(a, b):
    x, y = as_spans(a), as_spans(b)
    assert covered(x) == moments(a)
    both = intersect_spans(x, y)
    assert covered(both) == moments(a) & moments(b)
    assert covered(subtract_spans(x, both)) == moments(a) - moments(b)


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("volta_h884gemm_128x64_ldg8_tn", True),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_256x64_32x4_nn_align8>", True),
        ("nvjet_hsh_128x128_64x4_1x2_h_bz_TNN", True),
        ("volta_sgemm_128x64_tn", False),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x32x8_ffma_execute", False),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4", True),
        ("sm80_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32", True),
        ("sm80_xmma_wgrad_indexed_f16f16_f16f32_f32_nn_n_tilesize256x64x32_stage4", True),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_ffma", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", False),
        ("void at::native::vectorized_elementwise_kernel<4>", False),
    ],
)
def test_tensor_cores_are_told_by_names(name, uses):
    assert uses_tensor_cores(name) is uses


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_traces_never_raise(seed, tmp_path_factory):
    dice = random.Random(seed)
    data = bytearray(document().encode())
    for _ in range(dice.randrange(1, 12)):
        place = dice.randrange(len(data))
        match dice.randrange(3):
            case 0:
                del data[place : place + dice.randrange(60)]
            case 1:
                data[place : place + 1] = dice.choice(
                    [b'"', b"}", b"]", b"[[[", b"\xff", b"1e999", b"-", b"\\ud800", b"9" * 30, b"null"]
                )
            case _:
                data[place:place] = data[place : place + dice.randrange(300)]
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(bytes(data) if dice.random() < 0.7 else gzip.compress(bytes(data))[: dice.randrange(20, 3000)])
    report = kineto.read(path, Options(dice.choice([None, frozenset({"gpu_trace", "facts", "operators"})])))
    for name in report.tables:
        json.dumps(table(report, name), allow_nan=False)


def test_hostile_nesting_and_numbers_are_damage_and_no_more(tmp_path):
    for evil in ("[" * 100_000, '{"a":' * 100_000, "9" * 10_000):
        report = read_text(tmp_path, '{"traceEvents": [' + evil)
        assert any(p.severity == "error" for p in report.problems)


# What torch_tb_profiler 0.4.3 printed (us, per cent) of these traces when the names of newer categories were put back to
# those it knows (`Runtime`; no `gpu_user_annotation`): kernel, memcpy, memset, runtime, cpu, step; utilisation, SM
# efficiency, occupancy.
PLUGIN = {
    "lenet-trace.json.gz": (
        3655.8628, 542.4585, 41.9517, 47613.7451, 170910.2080, 227719.6089, 1.605423, 1.351682, 35.860853
    ),
    "03-fp32.json": (5344.1672, 135.7943, 2.9333, 203.3324, 3041.4362, 32149.7273, 16.622745, 16.256060, 55.063181),
    "04-amp.json": (2553.7108, 142.9517, 0.0, 787.1632, 5234.2674, 54160.4730, 4.715082, 4.204861, 52.078153),
}  # fmt: skip


@pytest.mark.parametrize("name", PLUGIN)
def test_the_summary_is_that_of_the_tensorboard_plugin(name):
    root = Path(__file__).resolve().parents[2]
    folders = (root / "tests" / "fixtures" / "h200", root.parent / "shared" / "corpus" / "chrome-trace")
    path = next((f / name for f in folders if (f / name).is_file()), None)
    if path is None:
        pytest.skip("no corpus of published reports here")
    report = kineto.read(path, Options())
    times = [fact(report, f"step_{c}_ns") for c in ("kernel", "memcpy", "memset", "runtime", "cpu", "time")]
    shares = ("gpu_utilization_pct", "est_sm_efficiency_pct", "mean_est_achieved_occupancy_pct")
    got = [t / 1000 for t in times] + [fact(report, key, 0) for key in shares]
    assert got == pytest.approx(PLUGIN[name], rel=3e-6, abs=0.2)
    assert got[-3:] == pytest.approx(PLUGIN[name][-3:], rel=1e-5)


def calls_as_pytorch_counts(events):
    """Calls of each operator after torch.autograd's `_remove_dup_nodes`: an only child of its parent's name is its parent."""
    host = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"}
    spans = sorted((e for e in events if e["cat"] in host), key=lambda e: (e["ts"], -e["dur"]))
    above, below, stacks = {}, {}, {}
    for i, event in enumerate(spans):
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        while stack and spans[stack[-1]]["ts"] + spans[stack[-1]]["dur"] <= event["ts"]:
            stack.pop()
        above[i], below[i] = stack[-1] if stack else None, []
        if stack:
            below[stack[-1]].append(i)
        stack.append(i)
    gone = set()
    for i, event in enumerate(spans):
        parent = above[i]
        if parent is not None and spans[parent]["name"] == event["name"] and below[parent] == [i]:
            gone.add(i)
            below[parent] = below[i]
            for child in below[i]:
                above[child] = parent
    return Counter(e["name"] for i, e in enumerate(spans) if e["cat"] == "cpu_op" and i not in gone)


def test_published_traces_hold():
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "chrome-trace"
    if not folder.is_dir():
        pytest.skip("no corpus of published reports here")
    for path in sorted(folder.iterdir()):
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]
        report = kineto.read(path, Options())
        assert not report.problems
        for name, categories in (
            ("gpu_summary", ("kernel", "gpu_memcpy", "gpu_memset")),
            ("api_summary", ("cuda_runtime", "cuda_driver")),
        ):
            durations = [e["dur"] for e in events if e["cat"] in categories]
            assert sum(r["calls"] for r in table(report, name)) == len(durations)
            assert sum(r["total_ns"] for r in table(report, name)) == pytest.approx(1000 * sum(durations))
        assert {r["name"]: r["calls"] for r in table(report, "operators")} == calls_as_pytorch_counts(events)
        assert sum(fact(report, f"step_{c}_ns") for c in CATEGORIES) == pytest.approx(fact(report, "step_time_ns"))


def test_operators_have_the_times_of_pytorchs_own_table():
    """The same run: also what of an operator's time was the profiler's own is taken off."""
    root = Path(__file__).parents[1] / "fixtures" / "h200"
    traced = {r["name"]: r for r in read(root / "lenet-trace.json.gz").tables["operators"]}
    printed = [r for r in read(root / "lenet-table.txt").tables["operators"] if r["name"] in traced]
    assert {"aten::empty_strided", "aten::cudnn_convolution"} <= {r["name"] for r in printed}
    for row in printed:
        assert traced[row["name"]]["calls"] == row["calls"]
        half = (row["self_cpu_ns_pm"] or 0) + 0.5 * row["calls"]  # the trace has whole ns
        assert traced[row["name"]]["self_cpu_ns"] == pytest.approx(row["self_cpu_ns"], abs=half), row["name"]


def test_a_pause_of_the_profiler_is_taken_off_the_operator_around_it(tmp_path):
    def event(name, category, thread, start, duration):
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": thread and 7,
            "tid": thread,
            "ts": start,
            "dur": duration,
        }

    def own(*events):
        path = tmp_path / "t.json"
        path.write_text(json.dumps({"traceEvents": list(events)}))
        return {r["name"]: r["self_cpu_ns"] for r in read(path).tables["operators"]}

    one, other = event("aten::a", "cpu_op", 1, 0, 100), event("aten::b", "cpu_op", 2, 10, 50)
    assert own(one, event("Pause", "overhead", 0, 70, 20)) == {"aten::a": 80_000}
    call = event("cudaLaunchKernel", "cuda_runtime", 1, 65, 30)  # it is in a call, which is taken off already
    assert own(one, call, event("Pause", "overhead", 0, 70, 20)) == {"aten::a": 70_000}
    assert own(one, other, event("Pause", "overhead", 0, 70, 20)) == {"aten::a": 80_000, "aten::b": 50_000}
    both = own(one, other, event("Pause", "overhead", 0, 20, 20))  # in which of them is not known
    assert both == {"aten::a": 100_000, "aten::b": 50_000}
