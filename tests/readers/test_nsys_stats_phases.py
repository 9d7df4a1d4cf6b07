"""Phases of traces that `nsys stats` printed: by the kernels that repeat, where the text holds enough."""

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

GPU = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
)
API = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
STEPS = 12


def texts(durations=("5000", "3000", "2000"), steps=STEPS):
    """A copy before all, then steps of three kernels each, 1 us apart; the calls that launched them."""
    device = "NVIDIA H200 (0),1,,7"
    gpu = f"1000,900000,1,,,,,,,,,,1.000,1000.0,Pageable,Device,{device},[CUDA memcpy Host-to-Device]\n"
    api = "500,901000,cudaMemcpy,0,1,9,9,20,prog\n"
    start, correlation = 1_000_000, 1
    for _ in range(steps):
        for name, duration in zip(("gemm", "relu", "sgd"), durations, strict=True):
            correlation += 1
            gpu += f"{start},{duration},{correlation},8,1,1,32,1,1,16,0.000,0.000,,,,,{device},{name}(float *)\n"
            api += f"{start - 800},500,cudaLaunchKernel,0,{correlation},9,9,20,prog\n"
            start += int(duration or 1000) + 1000
    return GPU + gpu, API + api


def tables(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    report = read(path, Options(**options))
    assert [p for p in report.problems if p.severity == "error"] == []
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


@pytest.mark.parametrize("calls", [False, True])
def test_a_trace_whose_kernels_repeat_has_phases(tmp_path, calls):
    gpu, api = texts()
    found = tables(tmp_path, gpu + ("\n" + api if calls else ""))
    phases = {row["phase"]: row for row in found["phases"]}
    assert phases["setup"]["gpu_ns"] == 900_000
    assert phases["steady"]["iterations"] == STEPS
    assert {row["found_by"] for row in found["phases"]} == {"kernel_sequence"}
    (row,) = found["iterations"]
    assert row["med_ns"] == 13_000
    steady = [r for r in found["phase_summary"] if r["phase"] == "steady" and r["summary"] == "gpu_summary"]
    assert {r["short_name"]: (r["calls"], r["total_ns"]) for r in steady} == {
        "gemm": (STEPS, 5000 * STEPS), "relu": (STEPS, 3000 * STEPS), "sgd": (STEPS, 2000 * STEPS)
    }  # fmt: skip
    in_calls = [r["calls"] for r in found["phase_summary"] if r["summary"] == "api_summary" and r["phase"] == "steady"]
    assert in_calls == ([3 * STEPS] if calls else [])


def test_what_does_not_repeat_or_has_no_times_has_no_phases(tmp_path):
    assert "phases" not in tables(tmp_path, texts(steps=3)[0])
    assert "phases" not in tables(tmp_path, texts(durations=("5000", "", "2000"))[0])


def test_phases_alone_may_be_asked_for(tmp_path):
    gpu, _ = texts()
    assert set(tables(tmp_path, gpu, tables=frozenset({"phases"}))) == {"phases"}
    assert len(tables(tmp_path, gpu, tables=frozenset({"iteration_trace"}))["iteration_trace"]) == STEPS
    assert set(tables(tmp_path, gpu, tables=frozenset({"gpu_trace"}))) == {"gpu_trace"}
