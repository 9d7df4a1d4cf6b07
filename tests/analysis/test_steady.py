"""The steady state of made campaigns, each of a kind that misleads a naive reading."""

from types import SimpleNamespace

import pytest

from nsw.analysis.answer.cases import case_blocks
from nsw.analysis.cases import summarize_cases
from nsw.analysis.comparison import scaling_curve
from nsw.analysis.rules.registry import find_hits_by_case, merge_hits_to_findings
from nsw.analysis.steady import (
    gpu_labels,
    rows_of_working_gpus,
    steady_state_columns,
    steady_state_rows,
    summarize_nccl_waiting,
)
from nsw.tables.columns import Columns

from .made import figure_row, gpu_row, make_run

MS = 1e6


def part(
    phase, name, total, *, summary="gpu_summary", kind="kernel", calls=1, pid=1, device=0, run="r", report="a", **more
):
    """A row of phase_summary."""
    return {"run": run, "report": report, "pid": pid, "device": device, "phase": phase, "summary": summary, "kind": kind,
            "name": name, "short_name": name, "total_ns": total, "calls": calls, **more}  # fmt: skip


def phase_row(phase, duration, *, gpu=0.0, busy=0.0, api=0.0, iterations=None, pid=1, run="r", report="a"):
    return {"run": run, "report": report, "pid": pid, "phase": phase, "duration_ns": duration, "gpu_ns": gpu,
            "gpu_busy_ns": busy, "api_ns": api, "iterations": iterations, "found_by": "nvtx", "name": "step"}  # fmt: skip


def iterations_row(
    median=1 * MS,
    *,
    mean=None,
    slowest=None,
    number=3,
    busy=90.0,
    med_busy=None,
    memory=5.0,
    nccl=0.0,
    pid=1,
    run="r",
    report="a",
):
    return {"run": run, "report": report, "pid": pid, "found_by": "nvtx", "name": "step", "iterations": 20, "warmup": 2,
            "steady": 18, "med_ns": median, "avg_ns": mean or median, "min_ns": 0.9 * median, "max_ns": slowest or 1.1 * median, "slowest": number,
            "slowest_gpu_busy_pct": 3.0, "gpu_busy_pct": busy, "med_gpu_busy_pct": busy if med_busy is None else med_busy,
            "med_gpu_ns": 0.9 * median, "med_memory_pct": memory, "med_memory_alone_pct": memory,
            "med_communication_pct": nccl, "med_communication_alone_pct": nccl}  # fmt: skip


def whole(parts):
    """The rows of gpu_summary that the parts add up to."""
    totals = {}
    for row in parts:
        if row["summary"] == "gpu_summary":
            key = row["run"], row["report"], row["kind"], row["name"]
            totals[key] = totals.get(key, 0) + row["total_ns"]
    return [
        gpu_row(name, total, kind=kind, run=run, report=report) for (run, report, kind, name), total in totals.items()
    ]


def timeline(name="r", case="c", **params):
    return make_run(name, case, params=params, pass_name="timeline", pass_kind="timeline")


def told(parts, iterations, *, phases=(), runs=None, figures=(), **more):
    """The cases of a campaign with these rows, and what the rules say of them but for kernels that need counters."""
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "iterations": iterations, "phases": list(phases),
              "figures": list(figures),
              **more, "communication": [r | {"library": "nccl"} for r in parts if r["summary"] == "communication"]}  # fmt: skip
    cases = summarize_cases(runs or [timeline()], tables, 0.9)
    findings = merge_hits_to_findings(find_hits_by_case(cases), several=len(cases) > 1)
    return cases, [f.text for f in findings if "no counters tell what binds it" not in f.text]


UPLOAD = [
    part("setup", "[CUDA memcpy HtoD]", 25 * MS, kind="memcpy", total_bytes=10**8),
    part("setup", "cuLibraryLoadData", 170 * MS, summary="api_summary", kind=None),
    part("setup", "cudaMemcpyAsync", 26 * MS, summary="api_summary", kind=None),
    part("steady", "[CUDA memcpy HtoD]", 1 * MS, kind="memcpy", calls=18, total_bytes=10**6),
    part("steady", "gemm", 20 * MS, calls=36),
    part("steady", "cudaLaunchKernel", 5 * MS, summary="api_summary", kind=None),
]


def test_a_one_time_upload_is_no_copying_of_the_iterations():
    phases = [phase_row("setup", 400 * MS, gpu=25 * MS, api=196 * MS), phase_row("steady", 30 * MS, iterations=18)]
    (case,), found = told(UPLOAD, [iterations_row(memory=4.8)], phases=phases)
    assert found == []
    assert case.gpu_ns == 21 * MS
    assert [(h.name, round(h.share_pct, 1)) for h in case.hotspots] == [("gemm", 95.2)]
    (copy,) = case.copies
    assert (copy.total_ns, copy.total_bytes) == (1 * MS, 10**6)
    setup = case.phases[0]
    assert (setup.phase, setup.duration_ns, setup.api_ns) == ("setup", 400 * MS, 196 * MS)
    # the call of the upload takes the time of the upload once more
    assert setup.what == (("cuLibraryLoadData", 170 * MS), ("[CUDA memcpy HtoD]", 25 * MS))


def test_api_calls_of_set_up_are_not_among_those_of_the_case():
    tables = {"gpu_summary": whole(UPLOAD), "phase_summary": UPLOAD,
              "api_summary": [gpu_row("cuLibraryLoadData", 170 * MS), gpu_row("cudaLaunchKernel", 5 * MS)]}  # fmt: skip
    (case,) = summarize_cases([timeline()], tables, 0.9)
    assert [(a.name, a.share_pct) for a in case.api] == [("cudaLaunchKernel", 100.0)]


def test_without_iterations_the_same_copies_are_told_with_what_is_in_them():
    rows = [gpu_row("[CUDA memcpy HtoD]", 26 * MS, kind="memcpy"), gpu_row("gemm", 20 * MS)]
    cases = summarize_cases([timeline()], {"gpu_summary": rows}, 0.9)
    (found,) = merge_hits_to_findings(find_hits_by_case(cases), several=False)
    assert found.text.startswith("57 % of all GPU time is copies between host and GPU, 100 % of them to")


def test_shares_of_a_timeline_without_iterations_say_so_with_the_reason_and_what_to_do():
    row = {"run": "r", "report": "a", "pid": 1, "phase": "all", "found_by": "none", "reason": "nothing repeats"}
    tables = {"gpu_summary": [gpu_row("gemm", 20 * MS)], "phases": [row]}
    (case,) = summarize_cases([timeline()], tables, 0.9)
    (note,) = (b for b in case_blocks(SimpleNamespace(cases=[case], cover=0.9)) if b.name == "phases")
    assert note.text.startswith("no iterations were found (nothing repeats): what follows is of the whole run, set-up")
    assert "`report: {steps: {nvtx: RANGE}}`" in note.text


def test_copies_in_every_iteration_are_told_with_their_speed():
    large = [*UPLOAD[:3], UPLOAD[3] | {"total_bytes": 5 * 10**6}, *UPLOAD[4:]]
    (text,) = told(large, [iterations_row(memory=40.0)])[1]
    assert text == (
        "36 % of an iteration is copying to the GPU at 5.000 GB/s, as slow as from pageable memory. If it is"
        " pageable, pinned memory (cudaHostAlloc, in PyTorch pin_memory=True) reaches the link's speed (PCIe 3 x8: 6 GB/s, x16: 12, PCIe 4: 25, PCIe 5: 50)"
        " and lets copies run beside kernels. Gain: at most 22 % of the time."
    )
    figures = [figure_row(110.0, run="b"), figure_row(100.0)]  # the profiler slows it 1.1 times
    (text,) = told(large, [iterations_row(memory=40.0)], runs=[make_run("b", "c"), timeline()], figures=figures)[1]
    assert text.startswith("40 % of an iteration is copying to the GPU")
    within = [part("steady", "[CUDA memcpy Device-to-Device]", 9 * MS, kind="memcpy")]
    assert told(within, [iterations_row(memory=40.0)])[1] == []


@pytest.mark.parametrize(("alone", "said"), [(8.0, None), (10.0, "9 % of an iteration"), (40.0, "36 % of an")])
def test_copies_that_kernels_hide_cost_nothing_and_are_not_told(alone, said):
    """Batches that are copied ahead on a stream of their own: much of the GPU's time, and none of the program's."""
    _, found = told(UPLOAD, [iterations_row(memory=41.0) | {"med_memory_alone_pct": alone}])
    assert [text.startswith(said) for text in found] == [True] if said else found == []


def test_copies_of_a_single_iteration_are_not_those_of_all():
    """A checkpoint in one iteration of 18: most of the steady state's GPU time, and nothing of the median iteration."""
    parts = [
        part("steady", "gemm", 20 * MS, calls=18),
        part("steady", "[CUDA memcpy DtoH]", 80 * MS, kind="memcpy", calls=1),
    ]
    cases, found = told(parts, [iterations_row(memory=0.0, slowest=84 * MS, number=12)])
    assert cases[0].copies[0].total_ns == 80 * MS
    (text,) = found
    assert text.startswith(
        "Iteration 12 of 20 (counted from 0) takes 84 ms, 84 times the median of 1 ms, with a GPU at work 3 % of it; the"
        " report does not tell what the host does then. Look at what the host does there. "
    )


def ranks(*nccl, calls=40):
    """A report of several ranks: each computes 50 ms and spends the time given in NCCL."""
    return [
        row
        for device, time in enumerate(nccl)
        for row in (
            part("steady", "gemm", 50 * MS, pid=device, device=device, calls=18),
            part("steady", "ncclDevKernel_AllReduce", time, pid=device, device=device, calls=calls),
            part(
                "steady",
                "AllReduce",
                time,
                pid=device,
                device=device,
                calls=calls,
                summary="communication",
                kind="nccl",
            ),
        )
    ]


def scaled(parts):
    """One GPU beside those of `parts`, with NCCL alone for 36 % of an iteration."""
    one = part("steady", "gemm", 50 * MS, run="one", report="b")
    rows = [iterations_row(nccl=40.0, pid=n) for n in sorted({row["pid"] for row in parts})]
    return told([*parts, one], rows, runs=[timeline("one", "n-1", n=1), timeline("r", "n-2", n=2)])


ALONE = "n-2: NCCL alone takes 36 % of an iteration"


def test_ranks_that_wait_for_a_late_one_do_not_communicate_much():
    cases, found = scaled(ranks(5 * MS, 40 * MS, 40 * MS, 40 * MS))
    waiting = cases[1].waiting
    assert waiting.pct == pytest.approx(100 * 3 * 35 / 325)
    assert waiting.late == "the process on GPU 0"
    (text,) = found
    assert text == (
        f"{ALONE}; 30 % of an iteration is waiting: the process on GPU 0 reaches the collectives last. Look at what its host does"
        " there, not at the network. Gain: at most 48 % of the time."
    )


def test_ranks_that_take_equally_long_communicate():
    (text,) = scaled(ranks(40 * MS, 41 * MS, 40 * MS, 40 * MS))[1]
    assert text.startswith(f"{ALONE}, on all ranks alike: no rank is late throughout: the collectives begin after")


def test_ranks_that_do_not_do_the_same_tell_nothing_of_waiting():
    parts = ranks(5 * MS, 40 * MS)
    parts[2]["calls"] = 39
    cases, (text,) = scaled(parts)
    assert cases[1].waiting is None
    assert text.startswith(f"{ALONE}, which may be waiting for a late rank")


def test_a_report_a_rank_names_the_rank():
    parts = [
        row | {"report": f"rank{row['device']}", "rank": row["device"], "device": 0} for row in ranks(5 * MS, 40 * MS)
    ]
    assert scaled(parts)[0][1].waiting.late == "rank 0"


def test_set_up_of_nccl_is_no_share_of_it():
    parts = [*ranks(1 * MS, 1 * MS), part("setup", "ncclDevKernel_Broadcast", 400 * MS, pid=1, device=1),
             part("setup", "Broadcast", 400 * MS, summary="communication", kind="nccl", pid=1, device=1)]  # fmt: skip
    cases, _ = told(parts, [iterations_row()])
    assert cases[0].communication_pct == pytest.approx(100 * 2 / 102)


def test_one_slow_iteration_is_told_and_its_neighbours_are_not():
    assert told(UPLOAD, [iterations_row(slowest=2.9 * MS)])[1] == []
    (text,) = told(UPLOAD, [iterations_row(slowest=84 * MS, number=7)])[1]
    assert text.startswith("Iteration 7 of 20 (counted from 0) takes 84 ms, 84 times the median of 1 ms")


def test_one_slow_iteration_does_not_make_the_others_wait_for_the_host():
    """Of 18 iterations one takes 84 ms with an idle GPU: over all time a GPU is busy 18 %, in an iteration 90 %."""
    (text,) = told(UPLOAD, [iterations_row(slowest=84 * MS, number=7, busy=17.6, med_busy=90.0)])[1]
    assert text.startswith("Iteration 7 of 20 (counted from 0) takes 84 ms")


def test_scaling_is_that_of_the_bare_program_and_one_spoiled_repeat_does_not_move_it():
    """The mean of the repeats says 135 %, the runs under the profiler 60 %."""
    runs, figures = [], []
    for n, bare, held in ((1, (100, 100, 11), 50), (2, (190, 190, 190), 60)):
        for at, value in enumerate((*bare, held)):
            kind = "timeline" if value == held else "baseline"
            runs.append(make_run(f"n{n}-{at}", f"n-{n}", params={"n": n}, pass_name=kind, pass_kind=kind))
            figures.append(figure_row(float(value), run=f"n{n}-{at}"))
    curve = scaling_curve(told([], [], runs=runs, figures=figures)[0], axis="n", kind="weak", figure="speed")
    assert [point.efficiency_pct for point in curve.points] == [100, 95]


def steady(name, rows, parts):
    """The times of a run's steady state, of its rows and of its columns."""
    of_rows = [row["total_ns"] for row in steady_state_rows(name, rows, parts)]
    assert steady_state_columns(name, [Columns.from_rows(rows)], [Columns.from_rows(parts)])["total_ns"] == of_rows
    return of_rows


def test_a_report_without_phases_counts_whole_beside_one_with_them():
    parts = [part("setup", "k", 90), part("steady", "k", 10)]
    rows = [*whole(parts), gpu_row("k", 7, report="b")]
    assert sorted(steady("gpu_summary", rows, parts)) == [7, 10]


def test_a_report_whose_steady_state_has_none_of_a_table_counts_none():
    parts = [part("setup", "cuInit", 90, summary="api_summary"), part("steady", "k", 10)]
    assert steady("api_summary", [gpu_row("cuInit", 90)], parts) == []


def test_a_process_without_iterations_beside_others_counts_whole():
    parts = [part("setup", "k", 90), part("steady", "k", 10), part("all", "k", 5, pid=2)]
    assert sorted(steady("gpu_summary", whole(parts), parts)) == [5, 10]


def test_steady_rows_are_in_the_order_in_which_their_reports_begin():
    parts = [part("steady", "k", 1) | {"report": report} for report in ("b", "a", "b")]
    parts = [row | {"total_ns": at} for at, row in enumerate(parts)]
    assert steady("gpu_summary", [], parts) == [0, 2, 1]


def test_repeats_are_the_mean_of_their_steady_states():
    parts = [
        part(p, "k", t, run=r) for r in ("r0", "r1") for p, t in (("setup", 90), ("steady", 10 if r == "r0" else 20))
    ]
    runs = [timeline("r0"), timeline("r1")]
    phases = [phase_row("steady", 5, run=r, iterations=18) for r in ("r0", "r1")]
    iterations = [iterations_row(1 * MS, run="r0"), iterations_row(3 * MS, run="r1", slowest=9 * MS)]
    (case,), _ = told(parts, iterations, runs=runs, phases=phases)
    assert (case.gpu_ns, case.measured, case.iterations.processes) == (15, 2, 1)
    assert (case.iterations.med_ns, case.iterations.most_ns, case.iterations.gpu_ns) == (2 * MS, 9 * MS, 1.8 * MS)


@pytest.mark.parametrize(("api", "first"), [(30 * MS, "outside CUDA calls"), (400 * MS, "cuInit"), (None, "cuInit")])
def test_set_up_says_how_much_of_it_is_no_cuda_call(api, first):
    """Imports and data take most of it: the calls that are named do not explain its length."""
    parts = [part("setup", "cuInit", 20 * MS, summary="api_summary", kind=None), part("steady", "k", 10 * MS)]
    rows = [phase_row("setup", 490 * MS, api=api), phase_row("steady", 20 * MS, iterations=18)]
    (case,), _ = told(parts, [iterations_row()], phases=rows)
    (shown,) = (b for b in case_blocks(SimpleNamespace(cases=[case], cover=0.9)) if b.name == "phases")
    (setup, *_) = shown.rows
    assert setup[3][0][0] == first
    assert setup[3][-1] == ("cuInit", 20 * MS)
    assert first == "cuInit" or setup[3][0][1] == 460 * MS


def gpu(device, *, run="r", report="a", rank=None, pid=1):
    return {"run": run, "report": report, "rank": rank, "pid": pid, "device": device}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([gpu(0), gpu(1)], ["GPU 0", "GPU 1"]),
        ([gpu(0), gpu(1), gpu(0, run="s", pid=9), gpu(1, run="s", pid=9)], ["GPU 0", "GPU 1"] * 2),
        ([gpu(0, pid=1), gpu(1, pid=2)], ["GPU 0", "GPU 1"]),
        ([gpu(0, pid=1), gpu(0, pid=2)], ["process 1", "process 2"]),
        ([gpu(0, report=f"rank{n}", rank=n, pid=n) for n in (0, 1)], ["rank 0", "rank 1"]),
        ([gpu(0, pid=1), gpu(1, pid=1), gpu(2, pid=2)], ["GPU 0 of process 1", "GPU 1 of process 1", "GPU 2"]),
        ([gpu(None)], ["process 1"]),
    ],
)
def test_a_gpu_is_called_by_what_tells_it_from_the_others(rows, names):
    assert gpu_labels(rows) == names


def test_work_of_a_stray_context_is_left_out_and_that_of_an_unknown_gpu_is_not():
    rows = Columns.from_rows([gpu(0), gpu(1), gpu(None), gpu(0, pid=2)])
    assert [*rows_of_working_gpus(rows, [gpu(1)]).rows("device", "pid")] == [(1, 1), (None, 1), (0, 2)]
    assert rows_of_working_gpus(rows, [gpu(None)]) is rows  # a table that was made before devices were read there


def test_operations_of_a_usual_iteration_are_counted_as_its_times_are():
    """A slow iteration with 36 times the operations of a usual one is in the sums, and not in the table."""
    work = [part("steady", "k", 53 * 0.5 * MS, calls=53 * 10)]
    rows = [iterations_row(4 * MS) | {"med_gpu_ns": 0.5 * MS}]
    (case,), _ = told(work, rows)
    (kernel,) = case.spent.parts
    assert (kernel.ns, kernel.operations) == (pytest.approx(0.5 * MS), pytest.approx(10))


def test_gaps_of_slow_iterations_are_no_part_of_what_a_late_rank_waits_for_in_each():
    talk = [
        part("steady", "AllReduce", ns, pid=n, kind="nccl", summary="communication") for n, ns in ((1, 1e6), (2, 9e6))
    ]
    columns = {
        "iterations": 10,
        "kernel_ns": 1e7,
        "communication_ns": 1e6,
        "kernels": 10,
        "blocks": 10,
        "delayed_pct": 0,
    }
    use = [{"run": "r", "report": "a", "pid": n} | columns for n in (1, 2)]
    gap = {"run": "r", "report": "a", "pid": 1, "length": "long", "gaps": 1, "to_gpu": 1, "total_ns": 50 * MS}
    waiting = [summarize_nccl_waiting(talk, 1e9, use, [gap | {"phase": phase}]) for phase in ("steady", "slow")]
    assert [(late.late_gap_ns, late.late_input) for late in waiting] == [(5 * MS, True), (0.0, False)]
