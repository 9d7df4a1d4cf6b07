"""A GPU that is idle in the steady state: why, as far as the timeline tells, and where a naive reading is wrong."""

import pytest

from nsw.analysis.rules.timeline import busy_pct

from .made import figure_row, make_run
from .test_steady import MS, iterations_row, part, timeline, told

US = 1e3
KERNELS = part("steady", "k", 18 * MS)


def idle(busy=32.0, *, median=4 * MS, operations=125.0, gap=0.1 * MS, **more):
    """A row of table iterations of 18 steady iterations."""
    row = iterations_row(median, busy=busy, **more)
    return row | {"med_gpu_ops": operations, "med_longest_gap_ns": gap}


def call(name, calls, each, **more):
    """API calls of the steady state: how many in each of the 18 iterations, and the ns of one."""
    return part("steady", name, 18 * calls * each, summary="api_summary", kind=None, calls=18 * calls, **more)


LAUNCHES = call("cudaLaunchKernel", 125, 8 * US)


def said(*rows, parts=(KERNELS, LAUNCHES), **more):
    return told(list(parts), list(rows), **more)[1]


def test_many_short_kernels_are_limited_by_their_launches():
    (text,) = said(idle())
    assert text == (
        "The GPU is idle 68 % of an iteration of 4 ms: 125 operations, one every 32 us, keep it busy for 10.2 us each, a"
        " launch call 8 us. The host cannot launch faster: launch them together as CUDA graphs, or give it fewer and larger"
        " operations (fused kernels, torch.compile, a larger batch)."
    )


def test_one_long_gap_is_something_else_that_the_host_does():
    (text,) = said(idle(gap=2 * MS))
    assert "idle 68 % of an iteration of 4 ms: 2 ms of that are one gap, and no CUDA call explains it. " in text
    assert "`host: {tool: torch}` (PyTorch) or `host: {tool: cprofile}` (Python)" in text
    assert "graphs" not in text


@pytest.mark.parametrize(
    ("name", "advice"),
    [("cudaMalloc", "cudaMallocAsync"), ("cudaFree", "cudaMallocAsync"), ("cudaMemcpy", "pinned"),
     ("cuModuleLoadData", "Move it out of the loop")],
)  # fmt: skip
def test_a_call_that_takes_much_of_the_idle_time_explains_it(name, advice):
    (text,) = said(idle(gap=2 * MS), parts=[KERNELS, LAUNCHES, call(name, 2, 0.5 * MS)])
    assert f"idle 68 % of an iteration of 4 ms: the host spends 1 ms of it in {name}. " in text
    assert advice in text


def test_a_copy_that_the_host_waits_for_does_not_explain_idleness():
    """cudaMemcpy takes 1 ms on the host because the GPU copies for that long."""
    copies = part("steady", "[CUDA memcpy Host-to-Device]", 18 * MS, kind="memcpy")
    (text,) = said(idle(), parts=[KERNELS, LAUNCHES, copies, call("cudaMemcpy", 2, 0.5 * MS)])
    assert "cudaMemcpy" not in text


def test_waits_after_launches_are_named_and_their_time_is_not():
    """A wait takes as long as the kernel: its time is no reason, its number is."""
    (text,) = said(idle(), parts=[KERNELS, LAUNCHES, call("cudaDeviceSynchronize", 100, 20 * US)])
    assert "the host waits for the GPU 100 times in it" in text
    assert "Synchronise less often" in text


def test_with_graphs_the_advice_is_not_to_use_graphs():
    (text,) = said(idle(), parts=[KERNELS, LAUNCHES, call("cudaGraphLaunch", 2, 20 * US)])
    assert "put more of the iteration into graphs" in text
    assert "larger batch" not in text


def test_of_tables_without_gaps_it_is_not_said_why_a_gpu_is_idle():
    """It may be one long gap; a call that takes as long is a reason with and without."""
    assert said(idle(gap=None)) == []
    assert len(said(idle(gap=None), parts=[KERNELS, call("cudaFree", 2, 0.5 * MS)])) == 1


def test_a_gap_is_never_longer_than_all_idle_time():
    """Both are medians, of different iterations perhaps."""
    assert "idle 68 % of an iteration of 4 ms: 2.72 ms of that are one gap" in said(idle(gap=2.8 * MS))[0]


def slowed(bare, held, busy=32.0, unit="images/s"):
    runs = [make_run("b", "c"), timeline()]
    return said(idle(busy), runs=runs, figures=[figure_row(bare, run="b", unit=unit), figure_row(held, unit=unit)])


def test_the_profilers_part_is_taken_off_all_numbers_of_a_sentence():
    (text,) = slowed(160.0, 100.0)
    assert "idle 49 % of an iteration of 2.5 ms: 125 operations, one every 20 us, keep it busy for 10.2 us each" in text
    assert "idle 67 % of an iteration of 3.92 ms" in slowed(102.0, 100.0)[0]
    assert "idle 68 % of an iteration of 4 ms" in slowed(100.0, 160.0)[0]
    assert slowed(100.0, 160.0, unit="ms/step") == slowed(160.0, 100.0)
    for unit in ("samples per second", "tokens/sec", "1/s", "GFLOP/s"):
        assert slowed(160.0, 100.0, unit=unit) == slowed(160.0, 100.0)


def test_of_a_gap_only_what_is_left_without_the_profiler_is_told():
    runs, figures = [make_run("b", "c"), timeline()], [figure_row(160.0, run="b"), figure_row(100.0)]
    (text,) = said(idle(gap=2.6 * MS), runs=runs, figures=figures)
    assert "idle 49 % of an iteration of 2.5 ms: 1.22 ms of that are one gap" in text


@pytest.mark.parametrize(
    ("bare", "held", "unit"), [(200.0, 100.0, "images/s"), (100.0, 200.0, "ms"), (400.0, 100.0, "images/s")]
)
def test_a_host_that_the_profiler_alone_slows_is_not_told(bare, held, unit):
    """Twice as fast without it, the GPU is busy 64 %; four times as fast, always."""
    assert slowed(bare, held, unit=unit) == []


def test_a_profiler_that_slows_three_times_silences_nothing():
    assert "idle 70 % of an iteration of 1.33 ms" in slowed(300.0, 100.0, 10.0)[0]


def test_repeats_that_show_only_scatter_are_no_slowing():
    runs = [
        make_run("b1", "c"),
        make_run("b2", "c"),
        make_run("b3", "c"),
        timeline("r"),
        timeline("r2"),
        timeline("r3"),
    ]
    speeds = {"b1": 70.0, "b2": 160.0, "b3": 170.0, "r": 60.0, "r2": 100.0, "r3": 110.0}
    figures = [figure_row(value, run=run) for run, value in speeds.items()]
    parts, rows = (
        [part("steady", "k", 18 * MS, run=r) for r in ("r", "r2", "r3")],
        [idle(run=r) for r in ("r", "r2", "r3")],
    )
    assert "idle 68 % of an iteration of 4 ms" in told(parts, rows, runs=runs, figures=figures)[1][0]
    figures[0]["value"] = 150.0
    assert "idle 49 % of an iteration of 2.5 ms" in told(parts, rows, runs=runs, figures=figures)[1][0]


def test_a_figure_that_is_no_speed_does_not_count_as_the_profilers_part():
    assert "idle 68 % of an iteration of 4 ms" in slowed(3.0, 0.3, unit="loss")[0]


def test_one_slow_iteration_is_no_idleness_of_the_others():
    (text,) = said(idle(17.6, med_busy=90.0, slowest=84 * MS, number=7))
    assert text.startswith("Iteration 8 of 20 takes 84 ms")


def test_short_kernels_that_overlap_on_streams_keep_a_gpu_busy():
    """Their durations add up to more than the iteration; the share of time counts, not the sum."""
    assert said(idle(93.0) | {"med_gpu_ns": 9 * MS}) == []
    assert said(idle(32.0) | {"med_gpu_ns": 9 * MS}) != []


@pytest.mark.parametrize("row", [idle(0.0, operations=0.0), idle(None), idle() | {"steady": 2}])
def test_without_work_on_a_gpu_or_with_too_few_iterations_nothing_is_said(row):
    assert said(row) == []


def ranks(first, second, devices=(0, 1), nccl=40.0, hosts=(None, None)):
    rows = [
        idle(busy, pid=pid, nccl=nccl) | {"host": host}
        for pid, busy, host in zip((1, 2), (first, second), hosts, strict=True)
    ]
    parts = [part("steady", "k", 18 * MS, pid=pid, device=device) for pid, device in zip((1, 2), devices, strict=True)]
    return said(*rows, parts=parts)


def idle_only(texts):
    return [text for text in texts if "is idle" in text]


def test_a_rank_that_is_late_is_the_one_whose_gpu_is_idle_and_the_others_look_busy():
    """NCCL's kernels spin on the GPUs that wait: their share of time is no work."""
    (text,) = idle_only(ranks(48.0, 95.0))
    assert text.startswith("GPU 0 is idle 52 %")
    assert text.endswith("The others wait for it in NCCL kernels.")


def test_processes_without_nccl_may_wait_for_each_other():
    (text,) = ranks(48.0, 55.0, nccl=0.0)
    assert text.endswith("Or it waits for another process.")


@pytest.mark.parametrize("devices", [(0, 0), (None, None)])
def test_a_gpu_that_another_process_uses_is_not_called_idle(devices):
    assert ranks(48.0, 45.0, devices, nccl=0.0) == []
    assert len(ranks(20.0, 15.0, devices, nccl=0.0)) == 1  # both together do not fill it


def test_ranks_that_each_see_one_gpu_as_number_0_do_not_share_it():
    """CUDA_VISIBLE_DEVICES of each rank names another one; NCCL takes no two ranks on one GPU."""
    (text,) = idle_only(ranks(48.0, 95.0, (0, 0)))
    assert text.startswith("The GPU of process 1 is idle 52 %")


def test_gpus_of_two_nodes_are_not_one():
    assert len(ranks(48.0, 45.0, (0, 0), nccl=0.0, hosts=("n1", "n2"))) == 1
    assert ranks(48.0, 45.0, (0, 0), nccl=0.0, hosts=("n1", "n1")) == []


def test_of_several_cases_the_worst_is_told_and_the_others_are_named():
    runs = [timeline("a", "one"), timeline("b", "two"), timeline("d", "three")]
    rows = [idle(50.0, run="a"), idle(30.0, run="b"), idle(95.0, run="d")]
    parts = [part("steady", "k", 18 * MS, run=run) for run in "abd"]
    _, (text,) = told(parts, rows, runs=runs)
    assert text.startswith("two: the GPU is idle 70 %")
    assert text.endswith("Likewise one (50 %).")


def test_of_many_cases_a_few_are_named():
    names = "abdefgh"
    runs, rows = [timeline(n, f"case-{n}") for n in names], [idle(50.0 - at, run=n) for at, n in enumerate(names)]
    _, (text,) = told([part("steady", "k", 18 * MS, run=n) for n in names], rows, runs=runs)
    assert text.startswith("case-h: ")
    assert text.endswith("Likewise case-g (55 %), case-f (54 %), case-e (53 %), case-d (52 %) and 2 more.")


def test_cases_that_are_idle_for_different_reasons_have_a_sentence_each():
    runs = [timeline("a", "one"), timeline("b", "two"), timeline("d", "three")]
    rows = [idle(50.0, run="a"), idle(30.0, run="b", gap=2.5 * MS), idle(20.0, run="d")]
    parts = [part("steady", "k", 18 * MS, run=run) for run in "abd"]
    _, (first, second) = told(parts, rows, runs=runs)
    assert first.startswith("three: the GPU is idle 80 %")
    assert first.endswith("Likewise one (50 %).")
    assert second.startswith("two: the GPU is idle 70 %")
    assert "are one gap" in second


def test_of_repeats_the_middle_one_counts():
    runs = [timeline("a"), timeline("b"), timeline("d")]
    rows = [idle(busy, run=run) for run, busy in (("a", 20.0), ("b", 85.0), ("d", 90.0))]
    assert told([part("steady", "k", 18 * MS, run=run) for run in "abd"], rows, runs=runs)[1] == []


@pytest.mark.parametrize(("devices", "nccl", "busy"), [((0, 0), 0.0, None), ((0, 1), 0.0, 45.0), ((0, 0), 40.0, 45.0)])
def test_how_busy_a_gpu_is_that_processes_may_share_is_not_known(devices, nccl, busy):
    rows = [idle(share, pid=pid, nccl=nccl) for pid, share in ((1, 48.0), (2, 45.0))]
    parts = [part("steady", "k", 18 * MS, pid=pid, device=device) for pid, device in zip((1, 2), devices, strict=True)]
    (case,), _ = told(parts, rows)
    assert busy_pct(case) == busy
