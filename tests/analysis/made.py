"""Runs, rows and cases, made of what a test is about."""

from types import SimpleNamespace

from nsw.analysis.cases import CaseSummary, Copy, Share
from nsw.analysis.figures import Figure
from nsw.analysis.kernels import KernelRow


def make_run(name="r", case="c", *, params=None, pass_name="baseline", pass_kind="baseline"):
    return SimpleNamespace(
        id=name, case_id=case, params=params or {}, pass_name=pass_name, pass_kind=pass_kind, repeat=1, state="done",
        seconds=None, host=None,
    )  # fmt: skip


def gpu_row(name, total, *, kind="kernel", calls=1, run="r", report="a", **more):
    return {"run": run, "report": report, "name": name, "short_name": name, "kind": kind, "total_ns": total,
            "calls": calls, **more}  # fmt: skip


def figure_row(value, *, run="r", name="speed", unit="images/s"):
    return {"run": run, "name": name, "value": value, "unit": unit}


def case(value=None, *, unit="images/s", profiled=False, runs=1, communication=None, gpu_ns=None, copies_ns=0.0,
         others=(), **params):  # fmt: skip
    """A case with one figure `speed` (or none); `others` are more figures."""
    name = "_".join(f"{k}-{v}" for k, v in params.items()) or "case"
    pass_name = "timeline" if profiled else "baseline"
    mine = () if value is None else (Figure("speed", unit, pass_name, profiled, value, value, value, runs),)
    copies = (Copy("HtoD", 1, copies_ns, None, None),) if copies_ns else ()
    top = () if gpu_ns is None else (Share("k", "kernel", "kernel", gpu_ns, 1, 100.0, 100.0),)
    return CaseSummary(name, params, 1, gpu_ns, gpu_ns, communication, top, copies=copies, figures=(*mine, *others))


KERNEL = KernelRow(
    "k(float*)", "k", 10, 10, 10e6, None, "counters", sm_pct=50.0, memory_pct=60.0, dram_bytes_per_s=None, dram_pct=20.0,
    achieved_occupancy_pct=90.0, theoretical_occupancy_pct=100.0, occupancy_limiter=None, registers=32.0,
    shared_memory_bytes=44_000.0, shapes=(), tensor_pct=None, stalls=(), roofline=None, advice=None,
)  # fmt: skip
