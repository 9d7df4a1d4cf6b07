"""A GPU that is idle in the steady state: why, as far as the timeline tells, and where a naive reading is wrong."""

from dataclasses import replace

import pytest

from nsw.analysis.blocks import Note, Table
from nsw.analysis.cases import _start_time, _traced_time, summarize_cases
from nsw.analysis.first_screen import find_headline, first_screen_blocks
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct
from nsw.analysis.rules.registry import find_hits_by_case, merge_hits_to_findings
from nsw.analysis.summary import CampaignData, ReportRequest, summarize

from .made import figure_row, make_run
from .test_steady import MS, iterations_row, part, phase_row, timeline, told, whole

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
    """What is said of GPUs whose gaps are one of `gap` and short ones between launches."""
    return told(list(parts), list(rows), gaps=[gap_row for row in rows for gap_row in gaps_of(row)], **more)[1]


def gaps_of(row):
    """Rows of gaps: the longest one of a row of iterations, and what is left of its idle time."""
    share = max((row.get(name) or 0.0 for name in ("gpu_busy_pct", "med_gpu_busy_pct")), default=0.0)
    idle_ns, longest = row["med_ns"] * (1 - share / 100), row["med_longest_gap_ns"] or 0.0
    long = min(longest, idle_ns) if longest >= idle_ns / 2 else 0.0
    lengths = {"long": long, "short": idle_ns - long}
    origin = {name: row.get(name) for name in ("run", "report", "pid", "device", "rank")}
    return [gap("launch", length, 1 / 18, ns) | origin for length, ns in lengths.items() if ns]


def gap(cause, length, gaps, each, **more):
    """A row of gaps: how many in each of the 18 iterations, and the ns of one."""
    return {"run": "r", "report": "a", "pid": 1, "device": 0, "phase": "steady", "cause": cause, "length": length,
            "gaps": 18 * gaps, "total_ns": 18 * gaps * each, "med_ns": each} | {
            name: 18 * value for name, value in more.items()}  # fmt: skip


def use(**more):
    """A row of gpu_use of 18 iterations of 4 ms, whose GPU works 1.28 ms; numbers are of an iteration."""
    numbers = {"span_ns": 4 * MS, "busy_ns": 1.28 * MS, "operations": 125, "kernels": 125, "kernel_ns": 1.28 * MS,
               "computing_ns": 1.28 * MS, "launches": 125, "cuda_ns": 1 * MS, "wait_ns": 0, "copy_ns": 0, "waits": 0,
               "values": 0} | more  # fmt: skip
    kept = {"streams", "lock_threads", "host_ns", "period", "slow", "slower_ns", "slower_gpu_ns",
            "slower_copy_ns", "slower_input_ns", "slower_spawns", "spawns", "slower_operations", "slower_pct",
            "compiles", "late_compiles", "compile_ns",
            "earlier_iterations", "earlier_ns", "earlier_loads", "earlier_load_ns"}  # fmt: skip
    return {"run": "r", "report": "a", "pid": 1, "device": 0, "phase": "steady", "iterations": 18} | {
        name: value if name in kept or value is None else 18 * value for name, value in numbers.items()
    }


def explained(*gaps, copies=(), busy=32.0, operations=125.0, parts=(KERNELS, LAUNCHES), **numbers):
    """What is said of a GPU that is idle 68 % of iterations of 4 ms, with these gaps."""
    tables = {"gaps": list(gaps), "gpu_use": [use(**numbers)], "host_copies": list(copies)}
    return told(list(parts), [idle(busy, operations=operations)], **tables)[1]


def faults(texts):
    """The sentences that name one."""
    return [text for text in texts if " is busy " not in text]


def test_many_short_kernels_are_limited_by_their_launches():
    (text,) = explained(gap("launch", "middle", 125, 21.8 * US))
    assert text == (
        "The GPU is idle 68 % of an iteration of 4 ms: launch-bound: 125 operations an iteration keep it"
        " busy for 10.2 us each; the host takes 32 us for each of 125 launches, 24 us of that between CUDA calls (Python,"
        " the framework). Launch them together as CUDA graphs, or give the host fewer and larger operations (fused kernels, a"
        " larger batch). Gain: at most 68 % of the time."
    )


def test_a_gain_without_iterations_is_of_the_time_that_its_sentence_names():
    whole_run = use() | {"iterations": None, "phase": "all"}
    tables = {"gaps": [gap("launch", "middle", 125, 21.8 * US)], "gpu_use": [whole_run], "host_copies": []}
    (text,) = told([part("all", "k", 18 * MS)], [], **tables)[1]
    assert "idle 68 % of the 72.1 ms from its first kernel on: launch-bound" in text
    assert text.endswith("Gain: at most 68 % of that time.")


def unsplit(*gaps, copied=(), **numbers):
    """The screen and the findings of a case without iterations, with these gaps and short ones between launches."""
    tables = {"gpu_summary": whole(parts := [part("all", "k", 18 * MS)]), "phase_summary": parts, "iterations": [],
              "gaps": [gap("launch", "middle", 125, 21.8 * US), *gaps], "host_copies": [*copied],
              "gpu_use": [use(**numbers) | {"iterations": None, "phase": "all"}]}  # fmt: skip
    summary = summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest())
    return first_screen_blocks(summary), [finding.text for finding in summary.findings]


def test_without_iterations_long_gaps_that_come_again_count_and_one_that_is_much_of_them_is_told_to_be_left_out():
    long = gap("launch", "long", 2, 3 * MS)
    blocks, (text, launches) = unsplit(long | {"gaps": 37, "total_ns": long["total_ns"] + 200 * MS, "max_ns": 200 * MS})
    assert text.startswith(
        "The GPU is idle 87 % of the 180 ms without rare long gaps: 108 ms of that are 36 gaps of 3 ms, in which the host"
    )
    assert any(
        "Left out are 200 ms of the 380 ms from the first kernel on: gaps of 500 us" in block.text
        for block in blocks
        if isinstance(block, Note)
    )
    assert "launch-bound" in launches  # most of the time that is not the host's
    assert "long gaps take 200 ms of 380 ms" in blocks[0].text
    few_take_all = long | {"med_ns": 0.6 * MS, "max_ns": 20 * MS}  # as where a compiler works
    _, (text, _) = unsplit(few_take_all)
    assert "idle 75 % of the 93.7 ms without rare long gaps: launch-bound" in text
    regular = gap("copy", "long", 6 / 18, 100 * MS, from_gpu=6 / 18, to_gpu=6 / 18) | {"max_ns": 150 * MS}
    assert (
        "600 ms of that are 6 gaps of 100 ms, in which the host makes no CUDA call, between a copy"
        in unsplit(regular)[1][0]
    )
    for may_be_setup in (gap("launch", "long", 1, 3 * MS), gap("load", "long", 2, 3 * MS)):
        _, (text,) = unsplit(may_be_setup)
        assert "idle 68 % of the 72.1 ms without rare long gaps" in text


def test_variants_of_a_kernel_of_the_program_count_together_in_a_timeline():
    rows = [
        part("steady", f"void filter<{radius}>(float*)", ns * MS) | {"short_name": "filter"}
        for radius, ns in ((3, 20), (9, 36))
    ]
    tables = {"gpu_summary": whole([*rows, LAUNCHES]), "phase_summary": [*rows, LAUNCHES], "gaps": [], "host_copies": [],
              "gpu_use": [use()], "iterations": [idle(98.0)]}  # fmt: skip
    texts = [f.text for f in summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest()).findings]
    assert any("filter is 100 % of its work" in text for text in texts)


def test_a_gain_of_copies_without_iterations_is_of_the_time_that_its_sentence_names():
    _, (text, *_) = unsplit(copied=[copies(memory="pageable", each=2 * MS)])
    assert text.startswith("50 % of the time is copying pageable memory to the GPU")
    assert text.endswith("% of that time.")


def test_the_mean_iteration_is_spoken_of_where_the_median_one_is_much_longer():
    gaps = [gap("launch", "middle", 125, 21.8 * US)]
    tables = {"gaps": gaps, "gpu_use": [use(span_ns=3 * MS, busy_ns=1.28 * MS)], "host_copies": []}
    (text,) = told([KERNELS, LAUNCHES], [idle(mean=3 * MS)], **tables)[1]
    assert "idle 57 % of the mean iteration of 3 ms" in text
    (text,) = told([KERNELS, LAUNCHES], [idle()], **tables)[1]
    assert "of an iteration of 4 ms" in text  # slow iterations, which gpu_use leaves out, make the mean as long
    tables["gpu_use"] = [use(span_ns=3.6 * MS)]
    assert "of an iteration of 4 ms" in told([KERNELS, LAUNCHES], [idle(mean=3.6 * MS)], **tables)[1][0]


def test_a_launch_whose_time_is_in_the_call_is_the_drivers():
    (text,) = explained(gap("launch", "middle", 125, 21.8 * US), cuda_ns=3.5 * MS)
    assert "the host takes 32 us for each of 125 launches, 28 us of that in CUDA calls" in text


def test_a_host_that_is_a_little_late_is_not_called_launch_bound():
    """A profiler adds some us to each launch."""
    assert faults(explained(gap("launch", "middle", 125, 9 * US), busy=72.0)) == []


SLOW = {"period": 6, "slow": 3, "slower_ns": 54 * MS, "slower_gpu_ns": 0, "slower_pct": 69.0}


def paused(*gaps, phases=(), around=(), **numbers):
    """The screen and the findings of a case whose iterations of 4 ms take 13 ms on average, for gaps that are long."""
    parts, short = [KERNELS, LAUNCHES, *around], gap("launch", "middle", 125, 21.8 * US)
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "gaps": [short, *gaps],
              "iterations": [idle(9.85, med_busy=32.0, mean=13 * MS)],
              "gpu_use": [use(span_ns=13 * MS, **numbers)], "phases": list(phases)}  # fmt: skip
    summary = summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest())
    return first_screen_blocks(summary), [finding.text for finding in summary.findings]


def test_a_headline_names_idle_time_where_it_is_more_than_any_work():
    """No cause wins a fifth of the time, so that none is the headline."""
    gaps = [gap(cause, "middle", 1, 0.7 * MS) for cause in ("allocate", "copy", "migration")] + [
        gap("queued", "short", 9, 30 * US)
    ]
    for busy, says in ((40.0, "the GPU is idle 60 % of that"), (85.0, "is k")):
        parts = [*(part("steady", f"k{n}", 6 * MS) for n in range(3)), LAUNCHES]
        tables = {"gpu_summary": whole(parts), "phase_summary": parts, "iterations": [idle(busy)], "gaps": gaps,
                  "gpu_use": [use()], "host_copies": []}  # fmt: skip
        summary = summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest())
        assert says in find_headline(first_screen_blocks(summary))


def test_pauses_that_take_more_than_the_usual_iterations_are_in_the_iteration_that_is_spoken_of():
    (headline, table, *_), (text,) = paused(gap("launch", "long", 1, 9 * MS))
    assert text.startswith(
        "The GPU is idle 90 % of the mean iteration of 13 ms: 9 ms of that are one gap, in which the host"
    )
    assert "the mean iteration takes 13.00 ms (median 4.000 ms)" in headline.text
    assert [column.title for column in table.columns][2] == "of the mean iteration"
    assert table.rows[-1][:3] == ("GPU idle", pytest.approx(0.9015 * 13 * MS), pytest.approx(90.15))
    assert table.rows[-1][-1] == "77 % the host, 23 % launches"


def test_iterations_that_are_the_lesser_part_of_the_time_are_told_to_be_that():
    steady = phase_row("steady", 234 * MS, iterations=18)
    around = [phase_row("setup", 200 * MS, busy=1 * MS, api=30 * MS), phase_row("end", 50 * MS), steady]
    blocks, (text,) = paused(gap("launch", "long", 1, 9 * MS), phases=around)
    headline, notes = blocks[0], [block.text for block in blocks if isinstance(block, Note)]
    assert "13.00 ms (median 4.000 ms) for 234 ms of 484 ms, " in headline.text
    assert (
        "Shares and gains are of the iterations, without 200 ms before them (CUDA calls 30 ms, GPU busy 1 ms) and 50 ms"
        " behind them (GPU busy 0 ns)." in notes
    )
    assert text.endswith("% of the iterations' time.")
    for took, is_named in ((40 * MS, True), (20 * MS, False)):
        start = [part("setup", "assign", took), part("setup", "move", 5 * MS)]
        blocks, _ = paused(phases=[phase_row("setup", 200 * MS, busy=80 * MS), steady], around=start)
        text = next(block.text for block in blocks if isinstance(block, Note) and block.text.startswith("Shares"))
        assert ("(GPU busy 80 ms, 50 % of that assign)" in text) == ("assign" in text) == is_named
    for busy_ms, parts in (
        (80, "3.62 s outside of CUDA calls, as imports, data and compiling are; GPU busy 80 ms"),
        (3500, "CUDA calls 300 ms, GPU busy 3.5 s"),  # for which the host waits
    ):
        blocks, _ = paused(phases=[phase_row("setup", 4000 * MS, busy=busy_ms * MS, api=300 * MS), steady])
        text = next(block.text for block in blocks if isinstance(block, Note) and block.text.startswith("Shares"))
        assert f"without 4 s before them ({parts})" in text
    (headline, *_), (text,) = paused(gap("launch", "long", 1, 9 * MS), phases=[phase_row("setup", 50 * MS), steady])
    assert "234 ms" not in headline.text
    (seven_tenths, *_), _ = paused(gap("launch", "long", 1, 9 * MS), phases=[phase_row("setup", 100 * MS), steady])
    assert "for 234 ms of 334 ms" in seven_tenths.text
    assert text.endswith("% of the time.")


def test_operations_of_few_iterations_are_not_in_the_usual_one():
    rows = [
        part("steady", "k", 18 * MS, calls=18),
        part("steady", "[CUDA memcpy Host-to-Device]", 9 * MS, calls=1),
        LAUNCHES,
    ]
    for median, copies in ((1 * MS, 0), (1.5 * MS, 1)):  # the median one has what the mean one has but for the copies
        tables = {"gpu_summary": whole(rows), "phase_summary": rows, "gaps": [], "gpu_use": [use()], "host_copies": [],
                  "iterations": [idle(90.0) | {"med_gpu_ns": median}]}  # fmt: skip
        blocks = first_screen_blocks(summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest()))
        names = [row[0] for block in blocks if isinstance(block, Table) for row in block.rows]
        assert ("k" in names, sum("memcpy" in str(name) for name in names)) == (True, copies)


def test_gaps_of_few_iterations_are_counted_over_all_of_them():
    _, (text,) = paused(gap("launch", "long", 1 / 6, 54 * MS, write_ns=50 * MS))
    assert "9 ms of that are 3 gaps of 54 ms on average in 18 iterations, in which the host writes files" in text


def test_a_stall_of_some_iterations_is_told_once():
    """What is known of the gaps is told with the slow iterations; of gaps that tell nothing the iterations alone."""
    _, (text,) = paused(gap("launch", "long", 1 / 6, 54 * MS, writing=1 / 6), **SLOW)
    assert text.startswith(
        "The GPU is idle 90 % of the mean iteration of 13 ms: 9 ms of that are 3 gaps of 54 ms on average in 18 iterations: every"
        " 6th iteration takes 54 ms longer than the usual 4 ms, in which the host computes or formats, and writes: a log."
    )
    (_, table, *_), (text,) = paused(gap("launch", "long", 1 / 6, 54 * MS), **SLOW)
    assert text.startswith("Every 6th iteration takes 54 ms longer than the usual 4 ms; the GPU has no more work in it")
    assert table.rows[-1][-1] == "77 % slow iterations, 23 % launches"
    _, texts = paused(gap("launch", "long", 1 / 6, 20 * MS, writing=1 / 6), **SLOW)  # others
    assert any(text.startswith("Every 6th") for text in texts)
    assert any("and writes: a log" in text for text in texts)


def test_each_cause_of_idle_time_has_a_sentence_and_the_rest_is_left_to_the_table():
    """2.72 ms are idle: 1.62 ms in a long gap, 0.6 ms in calls that allocate, the rest in a copy."""
    rows = (
        gap("launch", "long", 1, 1.62 * MS),
        gap("allocate", "middle", 6, 0.1 * MS),
        gap("copy", "middle", 1, 0.5 * MS),
    )
    first, second = explained(*rows)
    assert first.startswith(
        "The GPU is idle 68 % of an iteration of 4 ms: 1.62 ms of that are one gap, in which the host"
    )
    assert second.startswith("For 600 us of the same idle time the host allocates and frees memory. ")
    assert "copies" not in first + second


LONG = gap("launch", "long", 1, 2 * MS)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (LONG, "are one gap, in which the host makes no CUDA call. "),
        (gap("synchronise", "long", 1, 2 * MS, to_gpu=1), "makes no CUDA call, and then copies its input to the GPU"),
        (gap("launch", "long", 1, 2 * MS, read_ns=1.8 * MS), "in which the host reads files (90 % of that time)"),
        (gap("launch", "long", 1, 2 * MS, write_ns=1 * MS, open_ns=0.6 * MS), "in which the host writes files (80 % of"),
        (gap("launch", "long", 1, 2 * MS, write_ns=0.01 * MS, writing=1), "in which the host computes or formats, and writes"),
        (gap("launch", "long", 1, 2 * MS, lock_ns=1.9 * MS), "waits for its other threads"),
        (gap("launch", "long", 1, 2 * MS, cuda_ns=1.9 * MS), "in which the host is in CUDA calls"),
        (gap("input", "long", 1, 2 * MS, to_gpu=1), "in which the host receives its input from another process, and then"),
        (gap("launch", "long", 1, 2 * MS, from_gpu=1, opening=1, open_ns=0.01 * MS), "and opens or closes a file: it writes them"),
        (gap("synchronise", "long", 1, 2 * MS, to_gpu=1, from_gpu=1), "it works on what it read back, or prepares its input"),
    ],
)  # fmt: skip
def test_a_gap_of_milliseconds_is_what_the_host_does_in_it(row, says):
    (text,) = explained(row, lock_threads=3)
    assert "The GPU is idle 68 % of an iteration of 4 ms: 2.72 ms of that are one gap, " in text
    assert says in text
    assert "graphs" not in text


def test_a_host_that_loads_modules_in_each_iteration_compiles_again_and_one_that_loads_a_few_does_not():
    each, few = (call("cuModuleLoadData", count, 50 * US) for count in (1, 0.5))
    (text,) = explained(LONG, parts=(KERNELS, LAUNCHES, each))
    assert "in which the host computes: modules are loaded in each iteration, as a compiler compiles again. " in text
    (text,) = explained(LONG, parts=(KERNELS, LAUNCHES, few))
    assert "makes no CUDA call" in text


def test_a_library_that_loads_modules_in_gaps_of_its_own_compiles_nothing_in_the_others():
    plan = gap("load", "long", 1, 0.6 * MS)
    long = gap("launch", "long", 1, 2 * MS, to_gpu=1)
    first, second = explained(long, plan, parts=(KERNELS, LAUNCHES, call("cuModuleLoadData", 1, 50 * US)))
    assert "in which the host makes no CUDA call, and then copies its input to the GPU" in first
    assert "loads modules, as a library does for each plan or handle. Make plans and handles of libraries" in second


def test_writes_that_are_in_the_gaps_between_launches_too_are_no_log():
    log = gap("launch", "long", 3, 0.7 * MS, writing=3)
    (text,) = explained(log)
    assert "and writes: a log" in text
    (text,) = explained(log, gap("launch", "middle", 4, 50 * US, writing=3))
    assert "a log" not in text
    for write_ns, is_log in ((0.01 * MS, False), (0.5 * MS, True)):  # XLA wakes its threads by short ones
        long = gap("launch", "long", 3, 0.7 * MS, writing=3, write_ns=write_ns)
        texts = explained(long, parts=[part("steady", "loop_add_fusion", 18 * MS), LAUNCHES])
        assert any("a log" in text or "writes files" in text for text in texts) is is_log


def test_input_of_a_program_that_started_processes_is_of_its_workers_and_comes_before_the_gpus_work():
    torch = [part("steady", "void at::native::multi_tensor_apply_kernel<Adam>", 18 * MS), LAUNCHES]
    late = gap("launch", "long", 1, 2.7 * MS, to_gpu=1, writing=1, read_ns=2 * MS)
    workers, step = explained(late, parts=torch, spawns=2)
    assert "waits for input, which it then copies to the GPU, from processes that it started (a DataLoader's" in workers
    assert "Once input comes in time: fused=True" in step
    own, step = explained(late, parts=torch, spawns=0)
    assert "in which the host reads files" in own
    assert "Once input comes in time" not in step


def test_gaps_of_a_few_launches_are_cured_with_the_launches():
    launches, short = gap("launch", "middle", 120, 18 * US), gap("launch", "long", 1, 0.55 * MS)
    (text,) = explained(launches, short)
    assert "launch-bound" in text
    assert "the host makes no CUDA call" not in text
    assert "more of idle time" not in text


def test_operations_of_which_one_takes_most_have_no_mean():
    parts = [part("steady", "step", 16 * MS, calls=18), part("steady", "tiny", 2 * MS, calls=18 * 124), LAUNCHES]
    (text,) = explained(gap("launch", "middle", 125, 21.8 * US), parts=parts)
    assert "125 operations an iteration keep it busy for 1.28 ms in all;" in text


def test_long_gaps_behind_values_that_are_hardly_longer_than_others_are_reads():
    reads = gap("value", "middle", 2, 450 * US), gap("value", "long", 2, 600 * US)
    (text,) = explained(*reads, values=4, waits=4)
    assert "the host reads 4 values of a few bytes back an iteration" in text
    assert "in which the host" not in text
    texts = explained(gap("value", "middle", 2, 450 * US), gap("value", "long", 1, 2 * MS), values=3, waits=3)
    assert "in which the host" in texts[0]


def test_idle_time_is_named_once_and_then_divided():
    first, second = explained(gap("launch", "middle", 125, 15 * US), gap("launch", "long", 1, 0.845 * MS))
    assert first.startswith("The GPU is idle 68 % of an iteration of 4 ms: launch-bound: ")
    assert second.startswith("845 us of the same idle time are one gap, in which the host makes no CUDA call. ")


def test_input_from_workers_is_told_from_other_gaps_of_the_host():
    torch = [part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES]
    received, other = gap("input", "long", 1, 1.2 * MS, to_gpu=1), gap("launch", "long", 1, 1.52 * MS)
    pageable = copies(memory="pageable", each=10 * US)
    first, second = explained(received, other, parts=torch, copies=[pageable])
    assert "1.52 ms of that are one gap, in which the host makes no CUDA call. " in first
    assert second.startswith(
        "1.2 ms of the same idle time are one gap, in which the host receives its input from a DataLoader's worker, and"
        " then copies it to the GPU. Where the workers are late: less work in the dataset's __getitem__"
    )
    for waits, says in (
        (
            {"poll_ns": 1.1 * MS},
            "(92 % of that time it waits for the worker), and then copies it to the GPU. The workers are",
        ),
        (
            {"poll_ns": 0.01 * MS},
            ", hardly waiting for it, and then copies it to the GPU. The batches are ready: DataLoader(",
        ),
        ({"poll_ns": 0.6 * MS}, "a DataLoader's worker, and then copies it to the GPU. Where the workers are late"),
        ({"poll_ns": 0.0, "read_ns": 0.8 * MS}, "Where the workers are late"),  # which a read may wait for
    ):
        text = explained(gap("input", "long", 1, 1.2 * MS, to_gpu=1, **waits), other, parts=torch, copies=[pageable])[1]
        assert says in text
    (together,) = explained(received, gap("launch", "long", 1, 1.52 * MS, to_gpu=1), parts=torch)
    assert "DataLoader's workers (more of them: num_workers" in together


def test_workers_that_are_started_again_are_told_apart_from_late_ones():
    torch = [part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES]
    received = gap("input", "long", 1, 1.5 * MS, to_gpu=1, poll_ns=1.4 * MS)
    restarts = gap("spawn", "long", 1 / 6, 7.3 * MS, to_gpu=1 / 6, poll_ns=0)
    late, restarted = explained(received, restarts, parts=torch, spawns=9)
    assert "1.5 ms of that are one gap" in late
    assert (
        "3 gaps of 7.3 ms on average in 18 iterations, in which the host starts processes, as an epoch does"
        in restarted
    )
    assert "persistent_workers=True" in restarted
    (text,) = explained(restarts, spawns=9)  # no DataLoader's
    assert "and then copies its input to the GPU" in text


def test_long_gaps_of_a_sentence_share_what_it_says():
    before_copy = gap("value", "long", 1, 1.8 * MS, to_gpu=1) | sides("kernel", "copy to the GPU, pageable", 3 << 20)
    others = gap("launch", "long", 2, 0.46 * MS) | sides("kernel", "kernel", None)
    first, second = explained(before_copy, others, spawns=0)
    assert (
        "1.8 ms of that are one gap, in which the host makes no CUDA call, and then copies its input to the GPU (each"
        in first
    )
    assert "before a copy of 3,145,728 bytes to the GPU from pageable memory)" in first
    assert "920 us of the same idle time are 2 gaps of 460 us, in which the host makes no CUDA call. " in second


def sides(before, behind, size):
    """What lies before and behind gaps, in columns of table gaps."""
    return {"before": before, "before_bytes": None, "behind": behind, "behind_bytes": size}


def test_writes_that_take_no_time_before_a_copy_of_input_are_no_log():
    (text,) = explained(gap("launch", "long", 1, 2.7 * MS, to_gpu=1, writing=1, write_ns=5 * US), spawns=0)
    assert "and then copies its input to the GPU" in text
    (text,) = explained(gap("launch", "long", 1, 2.7 * MS, to_gpu=1, writing=1, write_ns=200 * US), spawns=0)
    assert "and writes: a log" in text


def test_without_iterations_alike_long_gaps_come_again_though_a_compiler_works():
    alike = (
        gap("launch", "long", 1, 3 * MS) | {"max_ns": 6 * MS} | sides("kernel", "copy from the GPU, pinned", 1 << 20)
    )
    _, (text, _) = unsplit(alike, late_compiles=2, compiles=2, compile_ns=1 * MS)
    assert (
        "54 ms of that are 18 gaps of 3 ms, in which the host makes no CUDA call (each before a copy of 1,048,576"
        in text
    )
    _, (text,) = unsplit(alike | {"max_ns": 40 * MS}, late_compiles=2, compiles=2, compile_ns=1 * MS)
    assert "launch-bound" in text


@pytest.mark.parametrize(
    ("loads", "says"),
    [
        (
            (0, 0),
            "102 ms of that are one gap, in which the host makes no CUDA call, and then copies its input to the GPU",
        ),
        (
            (12, 90 * MS),
            "90 ms of that are 12 gaps of 7.5 ms in which modules are loaded: a library makes plans for new",
        ),
        ((3, 90 * MS), None),  # kernels at their first use
    ],
)
def test_work_of_the_iterations_that_was_slower_before_them_says_why(loads, says):
    earlier = {
        "earlier_iterations": 12.0,
        "earlier_ns": 150 * MS,
        "earlier_loads": loads[0],
        "earlier_load_ns": loads[1],
    }
    tables = {"gaps": [gap("launch", "long", 1 / 18, 110 * MS, to_gpu=1 / 18) | {"phase": "earlier"}],
              "gpu_use": [use(**earlier)], "host_copies": [],
              "phases": [phase_row("setup", 200 * MS), phase_row("steady", 72 * MS)]}  # fmt: skip
    texts = told([KERNELS, LAUNCHES], [idle(98.0)], **tables)[1]
    head = "The 150 ms before the iterations have the work of some 12 of them, which take 48 ms later; "
    if says is None:
        assert head not in " ".join(texts)
    else:
        assert texts[0].startswith(head + says)


def test_a_gain_of_slow_iterations_is_of_what_is_named():
    slow = {"period": 8, "slow": 3, "slower_ns": 3 * MS, "slower_pct": 30.0, "slower_gpu_ns": 0.4 * MS}
    longest = gap("launch", "long", 1 / 6, 2 * MS, from_gpu=1 / 6) | {"phase": "slow"}
    (text,) = explained(longest, busy=98.0, slower_copy_ns=0.4 * MS, slower_operations=2, **slow)
    assert "400 us of that are copies, more than in the others; 2 ms of that are one gap" in text
    assert text.endswith("Gain: at most 24 % of the time.")


def test_input_of_a_program_without_workers_is_to_be_made_on_the_gpu_or_ahead():
    torch = [part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES]
    own = gap("launch", "long", 1, 2.72 * MS, to_gpu=1)
    for spawns, says in (
        (0, "Copy once, before the loop, what does not change; make the rest on the GPU, or ahead, in a thread"),
        (None, "Prepare it ahead in DataLoader's workers"),
    ):
        (text,) = explained(own, parts=torch, spawns=spawns)
        assert says in text


def test_input_that_takes_longer_than_the_rest_needs_more_threads_than_one():
    longer = " ".join(explained(gap("launch", "long", 1, 2.72 * MS, to_gpu=1), spawns=0))
    assert "longer than the rest of an iteration (1.28 ms): one thread saves no more than 32 %, 3 of them" in longer
    assert "one thread" not in " ".join(explained(gap("launch", "long", 1, 2 * MS, to_gpu=1), spawns=0, busy=50.0))


def test_launches_that_come_late_behind_a_value_are_the_waits_fault():
    """The host has no lead after it, though the gap at the value itself is short."""

    def texts(**numbers):
        late = gap("launch", "middle", 20, 50 * US)
        return " ".join(explained(late, busy=75.0, **({"wait_ns": 1.5 * MS, "values": 1} | numbers)))

    says = "the host waits 1.5 ms an iteration for the GPU, where it reads a value back, so that its next launches come late"
    assert says in texts()
    assert "Gain: at most 25 %" in texts()
    assert says not in texts(wait_ns=0.3 * MS)  # a wait so short is none to cure
    assert says not in texts(values=0)
    assert "reads a value back" not in texts(wait_ns=0)
    assert "1.000 ms of idle time: launches" in texts(wait_ns=0)


def test_slow_iterations_that_wait_for_workers_are_said_to_wait_for_their_input():
    torch = [part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES]
    slow = {"slow": 3, "slower_ns": 54 * MS, "slower_gpu_ns": 0, "slower_input_ns": 54 * MS, "slower_pct": 69.0}
    tables = {"gaps": [gap("launch", "middle", 125, 21.8 * US), gap("input", "long", 1 / 6, 54 * MS, to_gpu=1 / 6)],
              "gpu_use": [use(span_ns=13 * MS, **slow)], "host_copies": []}  # fmt: skip
    rows = [idle(9.85, med_busy=32.0, mean=13 * MS)]
    first, *others = told(torch, rows, **tables)[1]
    assert (
        "3 gaps of 54 ms on average in 18 iterations, in which the host receives its input from a DataLoader's worker"
        in first
    )
    assert not any("longer than the usual" in text for text in others)


def test_slow_iterations_of_many_more_operations_are_another_part_of_the_program():
    slow = {"slow": 3, "slower_ns": 40 * MS, "slower_gpu_ns": 15 * MS, "slower_pct": 40.0}
    for operations, says in ((600, True), (125, False)):
        text = " ".join(explained(busy=98.0, **slow, slower_operations=operations))
        assert ("launches 600 more operations in each, one every 66.7 us" in text) is says


def test_operations_of_a_mean_iteration_are_those_of_all():
    _, (text,) = paused(gap("launch", "middle", 400, 21.8 * US), operations=525, launches=525, busy_ns=2 * MS)
    assert "launch-bound: 525 operations an iteration" in text


def test_gaps_around_copies_on_the_gpu_are_none_around_copies_between_host_and_gpu():
    gaps = gap("copy", "short", 100, 15 * US)
    few = copies("to the GPU", "pinned", calls=50, each=2 * US, size=4096)
    inside = copies("on the GPU", None, calls=450, each=2 * US, size=4096)
    alone, among = (" ".join(explained(gaps, copies=rows)) for rows in ([few], [few, inside]))
    assert "2.72 ms of that are gaps around 50 small copies" in alone
    assert "272 us" in among
    assert "2.72 ms of that are gaps around" not in among


def test_a_loop_that_xla_compiled_is_not_told_to_be_compiled_where_no_iterations_are_known():
    whole_run = use() | {"iterations": None, "phase": "all"}
    row = {"run": "r", "report": "a", "style": "pushpop", "domain": "TSL", "total_ns": 1e9, "avg_ns": 1e6,
           "name": "Thunk:#name=jit(step)/while/body/add,hlo_op=add#"}  # fmt: skip
    tables = {"gaps": [gap("launch", "middle", 125, 21.8 * US)], "gpu_use": [whole_run], "host_copies": []}
    for count, is_loop in ((18 * 60, True), (18, False)):
        (text,) = told([part("all", "loop_add_fusion", 18 * MS)], [], nvtx_summary=[row | {"calls": count}], **tables)[
            1
        ]
        assert ("a compiled program (jax.jit) runs its loop step by step" in text) is is_loop


def test_a_kernel_that_outweighs_all_gains_comes_first_until_its_counters_are_known():
    tables = {"gaps": [gap("launch", "long", 1, 0.4 * MS)], "host_copies": []}
    for busy, first in ((90.0 - 1, "the kernel jacobi takes"), (70.0, "the GPU is idle")):
        rows = tables | {"gpu_use": [use(busy_ns=busy / 100 * 4 * MS)]}
        cases, _ = told([part("steady", "jacobi", 18 * MS), LAUNCHES], [idle(busy)], **rows)
        assert find_hits_by_case(cases)["c"][0].fact.startswith(first)


def test_a_program_without_python_is_not_told_of_its_profilers():
    (text,) = explained(LONG)
    assert "perf" in text
    assert "cprofile" not in text
    (text,) = explained(LONG, parts=(part("steady", "cupy_add__float32_float32", 18 * MS), LAUNCHES))
    assert "cprofile" in text


def test_a_loader_is_not_named_for_gaps_of_a_framework():
    texts = explained(gap("launch", "middle", 10, 200 * US, to_gpu=10), operations=10.0)
    assert "loader" not in " ".join(texts)


def test_memory_that_is_allocated_in_the_loop_is_named_with_its_call():
    parts = [KERNELS, LAUNCHES, call("cudaFree", 2, 0.5 * MS)]
    (text,) = explained(gap("allocate", "middle", 4, 0.5 * MS), parts=parts)
    assert "for 1 ms of that the host allocates and frees memory, most in cudaFree (1 ms an iteration). " in text
    assert "cudaMallocAsync" in text


def test_waits_after_each_operation_are_the_cause_and_a_wait_an_iteration_is_none():
    rows = [gap("synchronise", "short", 125, 10 * US), gap("launch", "short", 125, 5 * US)]
    (text,) = explained(*rows, waits=125, wait_ns=2 * MS)
    assert "the host synchronises with the GPU after each operation (125 waits for 125 operations an iteration)" in text
    assert faults(explained(gap("synchronise", "middle", 1, 0.4 * MS), busy=90 - 1, waits=1, wait_ns=2 * MS)) == []


def test_values_that_are_read_back_come_before_launches_which_no_graph_can_hold_then():
    rows = [gap("value", "middle", 17, 60 * US), gap("launch", "middle", 40, 30 * US)]
    (text,) = explained(*rows, values=17, waits=17)
    assert "the host reads 17 values of a few bytes back an iteration, waits for each, and only" in text


def test_launches_that_take_much_longer_than_what_a_value_read_costs_are_the_cause():
    rows = [gap("value", "middle", 1, 0.1 * MS), gap("launch", "middle", 120, 21 * US)]
    (text,) = explained(*rows, values=1, waits=1, wait_ns=1 * MS)
    assert "launch-bound: 125 operations an iteration" in text
    (text,) = explained(rows[0], gap("launch", "middle", 40, 21 * US), values=1, waits=1, wait_ns=2 * MS)
    assert "the host reads a value of a few bytes back an iteration" in text


def test_truth_values_that_are_read_back_are_conditions_to_remove_before_graphs():
    rows = [gap("value", "middle", 8, 10 * US), gap("launch", "middle", 120, 21 * US)]
    parts = [part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES]
    truth, number = ([copies("from the GPU", size=size)] for size in (1, 8))
    (text,) = explained(*rows, values=8, waits=8, copies=truth, parts=parts)
    assert "First remove conditions on tensors (`if tensor:`, validate_args of torch.distributions): 8 values" in text
    assert "conditions on tensors" not in " ".join(explained(*rows, values=8, waits=8, copies=number, parts=parts))


def test_recurrent_layers_that_are_launched_step_by_step_are_told_what_lets_them_run_whole_sequences():
    def text(steps):
        kernels = [part("steady", "void elemWiseRNNcell<float>", 9 * MS, calls=18 * steps),
                   part("steady", "void at::native::elementwise_kernel<Add>", 9 * MS, calls=18 * (125 - steps))]  # fmt: skip
        return " ".join(explained(gap("launch", "middle", 125, 21.8 * US), parts=[*kernels, LAUNCHES]))

    assert "padded rather than packed input" in text(30)
    assert "padded rather than packed input" not in text(20)


def test_cells_that_are_launched_step_by_step_are_told_to_become_layers_where_inputs_are_known():
    for steps, is_told in ((4, True), (1, False)):
        kernels = [part("steady", "void lstm_cell_forward<double>", 9 * MS, calls=18 * steps),
                   part("steady", "sm90_xmma_gemm", 9 * MS, calls=18 * (60 - steps))]  # fmt: skip
        text = " ".join(explained(gap("launch", "middle", 60, 45 * US), parts=[*kernels, LAUNCHES]))
        assert "launch-bound" in text
        assert ("nn.LSTM or nn.GRU runs whole sequences" in text) == is_told


@pytest.mark.parametrize(("values", "advice"), [(12, "compute there"), (3, "a convergence test every tenth")])
def test_many_values_of_an_iteration_are_no_convergence_test(values, advice):
    (text, *_) = explained(gap("value", "middle", values, 2.4 * MS / values), waits=0, values=values)
    assert advice in text


@pytest.mark.parametrize(("values", "begins"), [(4, "CUDA graphs"), (40, "First remove conditions on tensors")])
def test_graphs_come_first_where_conditions_are_far_apart(values, begins):
    copy = RESULTS | {"total_bytes": 18.0 * values, "med_bytes": 1.0, "calls": 18 * values}
    parts = (part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES)
    rows = [gap("launch", "middle", 125, 21.8 * US)]
    (text, *_) = explained(*rows, copies=[copy], parts=parts, values=values)
    assert f"(Python, the framework). {begins}" in text
    assert "conditions on tensors" in text


RESULTS = {"run": "r", "report": "a", "pid": 1, "device": 0, "phase": "steady", "direction": "from the GPU",
           "memory": "pinned", "calls": 18, "total_ns": 18 * 0.1 * MS, "alone_ns": 0.0, "late_pct": 0.0,
           "late_calls": 0}  # fmt: skip


@pytest.mark.parametrize(("size", "works"), [(1 << 20, True), (1 << 14, False)])
def test_a_long_gap_behind_large_results_is_work_on_them(size, works):
    copy = RESULTS | {"total_bytes": 18.0 * size, "med_bytes": float(size)}
    (text, *_) = explained(gap("launch", "long", 1, 2.7 * MS, from_gpu=1), copies=[copy])
    assert ("behind a copy of results to it: it works on them" in text) == works


@pytest.mark.parametrize(("kind", "count", "works"), [("value", 8, True), ("value", 1, False), ("launch", 8, False)])
def test_long_gaps_behind_many_values_of_an_iteration_are_work_on_them(kind, count, works):
    (text, *_) = explained(gap(kind, "long", count, 2.7 * MS / count))
    assert ("behind a copy of results to it: it works on them" in text) == works
    assert ("Do that on the GPU" in text) == works


def test_what_the_host_does_while_it_allocates_is_its_own_where_it_takes_longer():
    slow = gap("allocate", "long", 1, 2.7 * MS, cuda_ns=0.5 * MS)
    texts = explained(slow, parts=(KERNELS, LAUNCHES, call("cudaMalloc", 1, 0.5 * MS)))
    assert "2.22 ms of that are one gap, in which the host makes no CUDA call" in texts[0]
    assert "500 us of the same idle time the host allocates" in texts[1]
    calls = gap("allocate", "long", 1, 2.7 * MS, cuda_ns=2.6 * MS)
    (text,) = explained(calls, parts=(KERNELS, LAUNCHES, call("cudaMalloc", 1, 2.6 * MS)))
    assert "for 2.6 ms of that the host allocates" in text


@pytest.mark.parametrize(
    ("gaps", "advice"), [(1, "Prepare it ahead in DataLoader's workers"), (4, "Copy once, before the loop")]
)
def test_input_that_is_made_several_times_a_step_is_no_batch(gaps, advice):
    (text, *_) = explained(
        gap("launch", "long", gaps, 2.7 * MS / gaps, to_gpu=gaps),
        parts=(part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES),
    )
    assert "then copies its input to the GPU" in text
    assert advice in text


@pytest.mark.parametrize(("behind", "computes"), [(40, True), (4, False)])
def test_values_whose_results_go_back_to_the_gpu_are_computed_there(behind, computes):
    (text, *_) = explained(gap("value", "middle", 80, 30 * US, to_gpu=behind), waits=0, values=40)
    assert ("copies to the GPU what it computes from each" in text) == computes


def test_results_that_the_host_works_on_between_kernels_are_round_trips_and_no_slow_copies():
    def texts(own, behind=12):
        row = gap("copy", "middle", 12, 200 * US, cuda_ns=12 * (200 * US - own), from_gpu=behind)
        return " ".join(
            explained(row, copies=[copies("from the GPU", "pageable", calls=12, each=20 * US, size=262144)])
        )

    assert "12 times an iteration, for 2.72 ms of that, the next kernel waits while the host copies a result" in texts(
        60 * US
    )
    assert "works 60 us on it" in texts(60 * US)
    assert "the next kernel waits" not in texts(20 * US)  # the copy takes the time
    assert "the next kernel waits" not in texts(60 * US, behind=4)


def test_values_of_several_sizes_are_not_all_of_the_largest():
    rows = [gap("value", "middle", 17, 60 * US), gap("launch", "middle", 40, 30 * US)]
    sizes = [
        copies("from the GPU", size=size) | {"memory": memory} for memory, size in (("pageable", 128), ("pinned", 1))
    ]
    for rows_of_copies, says in (
        (sizes, "17 values of at most 128 bytes back"),
        (sizes[:1], "17 values of 128 bytes back"),
    ):
        (text,) = explained(*rows, values=17, waits=17, copies=rows_of_copies)
        assert says in text


def test_whole_graphs_are_of_the_framework_that_compiled_kernels_before_them():
    graphs = part("steady", "[CUDA graph 7]", 18 * MS, kind="graph")
    tables = {"gaps": [gap("launch", "middle", 125, 21.8 * US)], "gpu_use": [use()]}
    for name, is_jax in (("loop_multiply_fusion", True), ("mine", False)):
        parts = [graphs, part("setup", name, 18 * MS), LAUNCHES]
        (text,) = told(parts, [idle() | {"device": 0}], **tables)[1]
        assert ("jax.lax.scan" in text) is is_jax


def test_a_selection_by_data_is_told_from_values_that_are_read():
    select = part("steady", "void cub::DeviceSelectSweepKernel<int>()", 1 * MS, calls=18)
    rows = [gap("value", "middle", 1, 600 * US), gap("launch", "middle", 20, 30 * US)]
    (text,) = explained(*rows, values=1, waits=1, parts=[KERNELS, select, LAUNCHES])
    assert "the host waits for the size of a selection" in text
    launched = [gap("value", "middle", 4, 120 * US), gap("launch", "middle", 100, 25 * US)]
    texts = [
        explained(
            *launched, values=values, operations=100,
            parts=[part("steady", "void cub::DeviceSelectSweepKernel<int>()", 1 * MS, calls=18 * values), rest, LAUNCHES],
        )[0]
        for values, rest in ((40, part("steady", "k", 18 * MS, calls=18 * 20)), (4, part("steady", "k", 18 * MS, calls=18 * 96)))
    ]  # fmt: skip
    assert "selections by data (masks, nonzero, unique) are much of its launches" in texts[0]
    assert "launch-bound: 100 operations" in texts[1]  # far apart: a graph holds what lies between
    few = part("steady", "void cub::DeviceSelectSweepKernel<int>()", 1 * MS, calls=36)
    (text,) = explained(*rows, values=10, waits=10, parts=[KERNELS, few, LAUNCHES])
    assert "the host reads 10 values of a few bytes back an iteration" in text
    names = (
        "DeviceSelectSweepKernel<int>()",
        "DeviceCompactInitKernel<detail::select::A>()",
        "DeviceReduce<detail::select::A>()",
    )
    kernels = [part("steady", f"void cub::{name}", 1 * MS, calls=36) for name in names]  # of one selection
    (text,) = explained(*rows, values=10, waits=10, parts=[KERNELS, *kernels, LAUNCHES])
    assert "the host reads 10 values of a few bytes back an iteration" in text


def test_kernels_of_selections_without_values_for_them_are_no_selections():
    """As of the gradient of an embedding, which reads nothing back; the value is the loss's."""
    parts = [KERNELS, part("steady", "void cub::DeviceSelectSweepKernel", 1 * MS, calls=18 * 7), LAUNCHES]
    rows = [gap("value", "middle", 1, 2.4 * MS), gap("launch", "middle", 20, 10 * US)]
    text = " ".join(explained(*rows, values=1, waits=1, parts=parts))
    assert "selection" not in text
    assert "reads a value of a few bytes back" in text


def test_a_number_that_is_copied_to_the_gpu_is_no_input():
    def text(size):
        sides = {"before": "copy from the GPU, pinned", "behind": "copy to the GPU, pinned"}
        row = gap("launch", "long", 1, 2.72 * MS, to_gpu=1)
        return " ".join(explained(row | sides | {"before_bytes": 12, "behind_bytes": size}, spawns=0))

    assert "its input" in text(4096)
    assert "its input" not in text(4)
    assert "makes no CUDA call (each between a copy of 12 bytes from the GPU" in text(4)


def test_the_gain_of_short_gaps_is_of_the_time_of_all_iterations():
    rows = [gap("value", "middle", 1, 2.4 * MS)]
    slow = {"slow": 3, "slower_ns": 54 * MS, "slower_gpu_ns": 20 * MS}
    alone, beside = (" ".join(explained(*rows, values=1, waits=1, slower_pct=pct, **slow)) for pct in (9.9, 30.0))
    assert "Gain: at most 68 % of the time" in alone
    assert "Gain: at most 48 % of the time" in beside


def test_programs_of_xla_that_have_kernels_of_triton_are_jaxs():
    kernels = [part("steady", name, 9 * MS) for name in ("loop_add_fusion_1", "triton_softmax_1")]
    launches = gap("launch", "middle", 125, 21.8 * US)
    assert "under jax.jit" in " ".join(explained(launches, parts=[*kernels, LAUNCHES]))
    inductor = part("steady", "triton_poi_fused_add_0", 18 * MS)
    assert "torch.compile" in " ".join(explained(launches, parts=[inductor, LAUNCHES]))


def test_where_waits_are_most_of_little_idle_time_the_host_is_to_run_ahead():
    (text,) = explained(
        gap("launch", "short", 50, 6 * US), gap("synchronise", "short", 50, 18 * US), busy=70.0, waits=5
    )
    assert "waits for the GPU 0.900 ms" in text
    assert "Let the host run ahead" in text


def test_a_wait_behind_a_graph_is_no_fault():
    graphs = [KERNELS, call("cudaGraphLaunch", 2, 20 * US)]
    rows = [gap("synchronise", "middle", 2, 300 * US)]
    assert "synchronises" not in " ".join(explained(*rows, waits=125, parts=graphs))


def copies(direction="to the GPU", memory="pinned", calls=1, each=1 * MS, alone=1.0, size=16e6, late=9):
    return {"run": "r", "report": "a", "pid": 1, "device": 0, "phase": "steady", "direction": direction, "memory": memory,
            "calls": 18 * calls, "total_ns": 18 * calls * each, "alone_ns": 18 * calls * each * alone,
            "total_bytes": 18 * calls * size, "med_bytes": size, "late_calls": late * calls}  # fmt: skip


def named(row, **numbers):
    numbers = {"busy_ns": 4 * MS, "computing_ns": 2 * MS, "kernel_ns": 2 * MS} | numbers
    return explained(copies=[row], busy=98.0, **numbers)


def test_copies_are_told_to_be_pinned_only_where_their_memory_is_pageable():
    (text,) = named(copies(memory="pageable", each=2 * MS))
    assert text.startswith("50 % of an iteration is copying pageable memory to the GPU at 8.000 GB/s")
    assert "pageable" not in " ".join(named(copies(memory="pinned", each=2 * MS)))
    torch = (part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES)
    ways = ("to the GPU", "from the GPU")
    to_gpu, results = (named(copies(way, memory="pageable", each=2 * MS), parts=torch)[0] for way in ways)
    assert "DataLoader(pin_memory=True)" in to_gpu
    assert "Copy into one pinned tensor, made before the loop" in results


def test_as_many_copies_of_one_size_each_way_may_be_of_data_that_can_stay_on_the_gpu():
    to_gpu, back = (copies(way, memory="pageable", calls=2, each=MS) for way in ("to the GPU", "from the GPU"))
    says = "Each way are some 2 copies of 16 MB: what comes back to the GPU unchanged can stay there."
    numbers = {"busy": 98.0, "busy_ns": 4 * MS, "computing_ns": 2 * MS, "kernel_ns": 2 * MS}
    assert says in explained(copies=[to_gpu, back], **numbers)[0]
    other_size = copies("from the GPU", memory="pageable", calls=2, each=MS, size=12e6)
    tiny = [copy | {"med_bytes": 1024.0} for copy in (to_gpu, back)]  # among few large ones
    for alone in (tiny, [to_gpu], [to_gpu, copies("from the GPU", memory="pageable", calls=3, each=0.6 * MS)],
                  [to_gpu, other_size]):  # fmt: skip
        assert "Each way" not in " ".join(explained(copies=alone, **numbers))


def test_what_the_host_works_on_data_in_unified_memory_is_no_page_fault():
    """2.7 ms idle in gaps around migrations: faults take 125 us a gap at most."""
    paged = copies("from the GPU", memory="managed", calls=60, each=1 * US, size=4e4)
    texts = explained(gap("migration", "middle", 4, 0.675 * MS), copies=[paged])
    assert texts[0].startswith(
        "The GPU is idle 68 % of an iteration of 4 ms: for 2.22 ms of that the host works on data in unified memory. Do that"
    )
    many = explained(gap("migration", "middle", 27, 0.1 * MS), copies=[paged])
    assert "the host works" not in " ".join(many)


def test_gaps_before_copies_on_the_gpu_are_those_of_launches():
    rows = [gap("copy", "middle", 60, 22 * US), gap("launch", "middle", 60, 22 * US)]
    (text,) = explained(*rows, copies=[copies("on the GPU", memory=None, calls=60, each=1 * US)])
    assert "launch-bound: 125 operations" in text
    assert "Gain: at most 68 % of the time" in text
    (text,) = explained(*rows, copies=[copies(memory="pinned", calls=2, each=1 * US)])
    assert "Gain: at most 34 % of the time" in text


def test_large_copies_are_seen_among_small_ones_of_the_same_memory():
    mixed = copies(memory="pageable", each=2 * MS) | {"med_bytes": 8.0}
    assert "is copying pageable memory to the GPU" in " ".join(named(mixed))
    small = copies(memory="pageable", calls=4, each=0.4 * MS, size=6e4)
    assert "is copying pageable memory" not in " ".join(named(small))


def test_the_hosts_own_work_behind_a_copy_is_none_that_pinned_memory_saves():
    def gain(in_calls):
        row = gap("copy", "middle", 2, 0.4 * MS, cuda_ns=0.8 * MS * in_calls)
        (text,) = explained(row, busy=80.0, copies=[copies(memory="pageable", each=1 * MS)], busy_ns=3.2 * MS,
                            computing_ns=2.2 * MS)  # fmt: skip
        return int(text.rpartition("at most ")[2].partition(" %")[0])

    assert gain(1.0) - gain(0.5) == 10  # half of the 20 % in which the GPU waits


def test_copies_of_pageable_memory_have_the_rate_of_their_direction():
    rows = [copies(memory="pageable", each=2 * MS), copies("from the GPU", "pageable", each=0.4 * MS)]
    (text,) = explained(copies=rows, busy=98.0, busy_ns=4 * MS, computing_ns=2 * MS, kernel_ns=2 * MS)
    assert text.startswith("50 % of an iteration is copying pageable memory to the GPU at 8.000 GB/s, 10 % the other")


def test_the_gain_of_pageable_copies_is_of_what_their_sentence_names():
    def text(other_way, waits):
        rows = [copies(memory="pageable", each=1 * MS), copies("from the GPU", "pageable", each=other_way * MS)]
        gaps = [gap("copy", "middle", 1, waits * MS, cuda_ns=waits * MS), gap("launch", "short", 1, (1.2 - waits) * MS)]
        texts = explained(*gaps, copies=rows, busy=70.0, busy_ns=2.8 * MS, computing_ns=1 * MS, kernel_ns=1 * MS)
        return next(text for text in texts if "pageable" in text)

    assert "25 % of an iteration is copying pageable memory to the GPU at 16.00 GB/s; pinned memory" in text(0.2, 0.05)
    assert text(0.2, 0.05).partition("Gain: ")[2] == text(0.01, 0.01).partition("Gain: ")[2]
    assert "GB/s, and 10 % waits for the host's part of such copies; pinned memory" in text(0.2, 0.4)


def test_copies_and_kernels_that_alternate_could_overlap_and_those_that_do_are_healthy():
    (text,) = named(copies(each=2 * MS))
    assert text.startswith(
        "50 % of an iteration is copying to the GPU at 8.000 GB/s with no kernel beside it: copies and"
    )
    (text,) = named(copies(each=2 * MS, alone=0.5))
    assert text.startswith(
        "The GPU is busy 98 % of an iteration of 4 ms, copies beside kernels; k is 100 % of its work."
    )
    (text,) = named(copies(each=4 * MS, alone=0.5))
    assert text.startswith("Copies to the GPU take 100 % of an iteration of 4 ms at 4.000 GB/s, and kernels run beside")
    assert "ncu" not in text


def test_a_librarys_kernel_is_not_sent_to_ncu():
    (text,) = explained(
        busy=98.0, parts=(part("steady", "nvjet_sm90_hsh_64x512_64x2_1x2_h_bz_coopB_NNT", 18 * MS), LAUNCHES)
    )
    assert text.endswith("is 100 % of its work.")


def test_of_a_busy_gpu_what_pytorch_could_fuse_is_named_where_it_is_much():
    def text(name):
        products = [part("steady", f"sm90_xmma_gemm_{way}", 5 * MS) for way in ("nn", "tn")]
        rows = [*products, part("steady", name, 8 * MS), LAUNCHES]
        return " ".join(explained(busy=98.0, parts=rows))

    fused = "44 % of its work is elementwise, normalisation and reduction kernels. Each of them passes over memory by"
    assert fused in text("void at::native::elementwise_kernel<Add>")
    assert "elementwise" not in text("triton_poi_fused_add_0")
    assert "elementwise" not in text("mine")


def test_its_share_is_the_headline_rather_than_that_of_the_largest_class():
    tables = {"gaps": [], "gpu_use": [use()], "host_copies": [], "iterations": [idle(98.0)]}

    def headline(*products):
        names = (f"sm90_xmma_{kind}_{ns}" for kind, ns in products)
        rows = [part("steady", name, ns * MS) for name, (_, ns) in zip(names, products, strict=True)]
        rows += [part("steady", f"void at::native::elementwise_kernel<{name}>", 4 * MS) for name in ("Add", "Mul")]
        rows.append(LAUNCHES)
        data = CampaignData("c", "", None, [timeline()], tables | {"gpu_summary": whole(rows), "phase_summary": rows})
        return find_headline(first_screen_blocks(summarize(data, ReportRequest())))

    fusible = "of GPU work is elementwise, normalisation and reduction"
    assert f"51 % {fusible}" in headline(("gemm", 3.9), ("fprop", 3.8))
    assert fusible not in headline(("gemm", 5), ("fprop", 4))  # nothing fuses products, which take more


def test_a_program_that_runs_long_before_its_first_cuda_call_is_told_so():
    def text(start_ns):
        rows = [phase_row("setup", 1000 * MS), phase_row("steady", 5000 * MS)]
        parts = [part("steady", "k", 18 * MS)]
        tables = {"phases": [row | {"start_ns": start_ns} for row in rows], "gpu_summary": whole(parts)}
        data = CampaignData("c", "", None, [timeline()], tables | {"phase_summary": parts})
        notes = [
            block.text for block in first_screen_blocks(summarize(data, ReportRequest())) if isinstance(block, Note)
        ]
        return " ".join(notes)

    assert "The program runs 3 s before its first CUDA call, 33 % of 9 s." in text(3e9)
    assert "before its first CUDA call" not in text(1.5e9)


def test_what_is_compiled_at_the_start_stands_before_an_iteration():
    rows = [part("steady", "loop_add_fusion", 18 * MS), LAUNCHES]
    compiled = {"run": "r", "report": "a", "style": "pushpop", "domain": "TSL", "name": "XlaCompile:#module=jit_f#",
                "calls": 1, "total_ns": 4000 * MS, "avg_ns": 4000 * MS}  # fmt: skip
    tables = {"gaps": [], "gpu_use": [use()], "host_copies": [], "iterations": [idle(98.0)], "nvtx_summary": [compiled],
              "phases": [phase_row("setup", 5000 * MS), phase_row("steady", 72 * MS)]}  # fmt: skip
    data = CampaignData("c", "", None, [timeline()], tables | {"gpu_summary": whole(rows), "phase_summary": rows})
    blocks = first_screen_blocks(summarize(data, ReportRequest()))
    assert find_headline(blocks).startswith("c: compiles 4 s, an iteration takes 4.000 ms")
    assert any("without 5 s before them (XLA compiles 4 s, GPU busy" in b.text for b in blocks if isinstance(b, Note))


def test_of_a_gpu_that_is_idle_in_part_its_own_largest_kernel_is_named_too():
    rows = [part("steady", "scan", 12 * MS * 3), LAUNCHES]
    short = (gap("launch", "short", 100, 6 * US), gap("queued", "short", 20, 30 * US))
    tables = {"gaps": list(short), "gpu_use": [use()], "host_copies": [], "iterations": [idle(70.0)],
              "gpu_summary": whole(rows), "phase_summary": rows}  # fmt: skip
    texts = [f.text for f in summarize(CampaignData("c", "", None, [timeline()], tables), ReportRequest()).findings]
    assert any("The kernel scan takes" in text for text in texts)
    assert any("is busy 70 % of an iteration" in text for text in texts)


def test_beside_another_fault_it_is_named_too_unless_that_is_of_kernels():
    rows = [
        part("steady", "sm90_xmma_gemm", 9 * MS),
        part("steady", "void at::native::elementwise_kernel<Add>", 8 * MS),
    ]
    long = gap("launch", "long", 1, 0.8 * MS)
    host, fusible = explained(long, busy=80.0, parts=[*rows, LAUNCHES])
    assert "one gap, in which the host" in host
    assert fusible.startswith(
        "47 % of the GPU's work is elementwise, normalisation and reduction kernels. Each of them"
    )
    assert "elementwise" not in " ".join(explained(long, busy=40.0, parts=[*rows, LAUNCHES])[1:])


def test_gaps_that_are_no_whole_number_an_iteration_have_a_decimal():
    (text,) = explained(gap("launch", "long", 1.56, 1.7 * MS))
    assert "2.72 ms of that are 1.6 gaps of 1.74 ms, in which" in text  # times their number they are what is said


def test_a_loop_in_a_compiled_step_is_told_from_steps_that_are_not_compiled():
    tables = {"gaps": [gap("launch", "short", 1200, 2.2 * US)], "gpu_use": [use()], "host_copies": []}
    for name, is_loop in (("XlaModule:#hlo_module=jit_step#", True), ("step", False)):
        (text,) = told([KERNELS, LAUNCHES], [idle(32.0, operations=1200.0) | {"name": name}], **tables)[1]
        assert ("jax.lax.scan(..., unroll=8)" in text) is is_loop


def test_iterations_of_copies_alone_are_not_healthy_though_no_kernel_could_hide_them():
    (text,) = named(copies(memory="pinned", each=3.8 * MS), computing_ns=0.1 * MS)
    assert text.startswith(
        "95 % of an iteration is copying to the GPU at 4.211 GB/s, with hardly a kernel to run beside"
    )
    assert "hardly a kernel" not in " ".join(named(copies(memory="pinned", each=2 * MS), computing_ns=1.9 * MS))


def test_small_copies_are_one_cause_and_few_large_ones_none():
    row = gap("copy", "short", 120, 15 * US)
    (text,) = explained(row, copies=[copies(calls=120, each=2 * US, size=2048)])
    assert "120 small copies (2 KiB the median)" in text
    assert "small" not in " ".join(explained(row, copies=[copies(calls=2, each=200 * US)]))


def test_small_copies_that_the_host_queues_are_a_cause_too():
    row = gap("queued", "short", 1100, 1.4 * US)
    (text,) = explained(row, copies=[copies("from the GPU", calls=1100, each=1.8 * US, size=256)], operations=1101.0)
    assert "1,100 small copies (256 bytes the median)" in text


def test_no_idle_time_is_of_small_copies_and_of_launches():
    """Of 2.72 ms between launches 192 of 209 operations are small copies."""
    (text,) = explained(
        gap("launch", "middle", 125, 21.8 * US), copies=[copies(calls=192, each=1 * US, size=256)], operations=209.0,
        launches=17, kernels=17,
    )  # fmt: skip
    assert "2.5 ms of that are gaps around 192 small copies (256 bytes the median)" in text


def test_waits_behind_small_copies_are_of_the_copies_where_the_gpu_does_little_else():
    row = gap("synchronise", "short", 120, 20 * US, to_gpu=120)
    many = [copies(calls=120, each=1 * US, size=400)]
    (text,) = explained(row, copies=many, waits=120, wait_ns=2 * MS, kernels=5)
    assert "gaps around 120 small copies (400 bytes the median)" in text
    (text,) = explained(row, copies=many, waits=120, wait_ns=2 * MS, kernels=125, operations=245.0)
    assert "the host synchronises with the GPU after each operation" in text


def test_a_pause_now_and_then_hides_no_waits_for_threads_that_are_in_each_iteration():
    often, seldom = gap("launch", "long", 20, 0.12 * MS), gap("value", "long", 0.1, 2 * MS)
    (text,) = explained(often, seldom, lock_threads=4, operations=50.0)
    assert "the host waits for its other threads: 4 wait for a lock in turn" in text


def test_launches_between_which_threads_take_the_lock_in_turn_are_the_threads():
    often = gap("launch", "middle", 200, 0.012 * MS, lock_ns=200 * 0.008 * MS)
    (text,) = explained(often, lock_threads=3, operations=200.0)
    assert "between launches, the host waits for its other threads: 3 wait for a lock in turn" in text
    (text,) = explained(often, lock_threads=1, operations=200.0)
    assert "launch-bound" in text


def test_streams_that_the_default_stream_serialises_and_those_that_are_of_one_stream():
    numbers = {"busy_ns": 4 * MS, "computing_ns": 3.9 * MS, "kernel_ns": 3.9 * MS, "small_ns": 3.9 * MS}
    (text,) = explained(busy=98.0, streams=4, default_stream=30, **numbers)
    assert text.startswith("Kernels of 4 streams run 1.0 at a time, with work in the default stream between them")
    assert "default stream" not in " ".join(explained(busy=98.0, streams=4, default_stream=0, **numbers))
    waits = gap("queued", "short", 125, 9 * US)  # of streams whose kernels are too large for a quarter of the GPU
    larger = {"streams": 3, "kernel_ns": 2.6 * MS, "computing_ns": 2.6 * MS, "busy_ns": 2.88 * MS, "small_ns": 0.0}
    (text,) = explained(waits, busy=72.0, default_stream=30, **larger)
    assert text.startswith("Kernels of 3 streams run 1.0 at a time, with work in the default stream between them")
    assert faults(explained(waits, busy=72.0, default_stream=0, **larger)) == []
    (text,) = explained(busy=98.0, streams=1, default_stream=0, **numbers)
    assert "is kernels of at most 32 blocks, each of which fills a part of the GPU, one after the other" in text
    (text,) = explained(busy=98.0, streams=1, default_stream=0, **numbers, blocks=1250.0)
    assert "is kernels of 10 blocks on average, each of which" in text
    (text,) = explained(busy=98.0, streams=4, default_stream=0, **numbers)
    assert "one after the other in 4 streams, which wait for one another (events); where they are independent" in text
    (text,) = explained(busy=98.0, streams=1, **numbers | {"small_ns": 0.1 * MS})
    assert "k is 100 % of its work" in text


def test_iterations_that_are_slow_in_turn_are_told_with_their_period_and_what_differs():
    slow = {"period": 8, "slow": 3, "slower_ns": 2.4 * MS, "slower_pct": 30.0}
    (text,) = explained(busy=98.0, slower_gpu_ns=2.3 * MS, **slow)
    assert text.startswith(
        "Every 8th iteration takes 2.4 ms longer than the usual 4 ms; 2.3 ms of that are more work of"
    )
    (text,) = explained(busy=98.0, slower_gpu_ns=0.0, **slow)
    assert "the GPU has no more work in it; the report does not tell what the host does then. Do what" in text
    (text,) = explained(busy=98.0, slower_gpu_ns=0.1 * MS, slower_operations=50, **slow)
    assert (
        "takes 2.4 ms longer than the usual 4 ms; the host launches 50 more operations in it, one every 48 us" in text
    )
    assert "and they keep the GPU busy for 100 us: launch-bound. Launch them together as CUDA graphs" in text
    (text,) = explained(busy=98.0, slower_gpu_ns=0.0, slower_input_ns=2.2 * MS, **slow)
    assert "for 2.2 ms of that the GPU waits for input, which the host reads or receives. Prepare it beside" in text
    (text,) = explained(busy=98.0, slower_gpu_ns=0.0, slower_input_ns=1.2 * MS, **slow)
    assert "the report does not tell what the host does then" in text
    torch = (part("steady", "void at::native::elementwise_kernel<Add>", 18 * MS), LAUNCHES)
    text, _ = explained(busy=98.0, slower_gpu_ns=0.0, slower_spawns=2, parts=torch, **slow)
    assert (
        "starts processes in it, as an epoch does for its DataLoader's workers. DataLoader(persistent_workers" in text
    )
    (text,) = explained(busy=98.0, slower_gpu_ns=0.2 * MS, slower_operations=7, **slow)
    assert "7 more operations keep the GPU busy for 200 us of that; the report does not tell" in text
    of_usual = {"gaps": [], "host_copies": [], "gpu_use": [use(slower_operations=900, slower_gpu_ns=0.1 * MS, **slow)]}
    (text,) = told([KERNELS, LAUNCHES], [idle(98.0) | {"iterations": 23, "steady": 21}], **of_usual)[1]
    assert "the host launches 900 more operations in it" in text  # gpu_use counts the usual iterations alone
    (text,) = explained(busy=98.0, slower_gpu_ns=0.1 * MS, slower_operations=20, **slow)
    assert "the report does not tell what the host does then" in text
    assert "8th" not in " ".join(explained(busy=98.0, slower_gpu_ns=0.0, **slow | {"slower_pct": 4.0}))


def test_slow_iterations_of_many_launches_that_mostly_wait_for_the_host_are_not_launch_bound():
    slow = {"period": 8, "slow": 3, "slower_ns": 2.4 * MS, "slower_pct": 30.0, "slower_gpu_ns": 0.1 * MS}
    longest = gap("launch", "long", 1 / 6, 2 * MS, from_gpu=1 / 6) | {"phase": "slow"}
    (text,) = explained(longest, busy=98.0, slower_operations=50, **slow)
    assert "50 more operations keep the GPU busy for 100 us of that; 2 ms of that are one gap, in which" in text
    (text,) = explained(longest | {"length": "middle"}, busy=98.0, slower_operations=50, **slow)
    assert "launch-bound" in text


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({}, "in which the host makes no CUDA call; what it does then was not recorded. Do what happens there"),
        ({"to_gpu": 1}, "and then copies its input to the GPU. Copy once, before the loop, what does not change"),
        ({"from_gpu": 1}, "behind a copy of results to it: it works on them. Do that on the GPU"),
        ({"from_gpu": 1, "to_gpu": 1}, "between a copy of results to it and one of input to the GPU: it works on what"),
        ({"write_ns": 0.8 * MS}, "writes files (40 % of that time) and works on something else. Write from a thread"),
        ({"read_ns": 1.8 * MS}, "the host reads files (90 % of that time). Read ahead, beside the GPU's work,"),
        ({"cuda_ns": 1.9 * MS}, "the host is in CUDA calls (launches). "),
        ({"writing": 1, "write_ns": 1 * US}, "makes no CUDA call; what"),  # a line of a log takes none of the time
    ],
)  # fmt: skip
def test_a_slow_iteration_says_what_lies_before_and_behind_its_longest_gap(row, says):
    slow = {"period": 8, "slow": 3, "slower_ns": 2.4 * MS, "slower_pct": 30.0, "slower_gpu_ns": 0.0}
    values = {name: value / 6 for name, value in row.items()}  # of 18 iterations 3 are slow
    longest = gap("launch", "long", 1 / 6, 2 * MS, **values) | {"phase": "slow"}
    (text,) = explained(longest, busy=98.0, **slow)
    assert "the GPU has no more work in it; 2 ms of that are one gap, in which the host " in text
    assert says in text
    (text,) = explained(gap("launch", "long", 1 / 6, 1 * MS, **values) | {"phase": "slow"}, busy=98.0, **slow)
    assert "the report does not tell what the host does then" in text


@pytest.mark.parametrize(
    ("more", "gpu", "says"),
    [
        (4 * MS, 0, False),
        (4 * MS, 2 * MS, False),
        (12 * MS, 6 * MS, False),
        (12 * MS, 0, True),
        (4 * MS, 3.9 * MS, True),
    ],
)
def test_slow_iterations_at_unequal_distances_are_the_machines_unless_all_is_the_gpus_or_a_long_pause(more, gpu, says):
    slow = {"slow": 3, "slower_ns": more, "slower_gpu_ns": gpu, "slower_pct": 30.0}
    (text,) = explained(busy=98.0, **slow)
    assert ("3 of 18 iterations take" in text) is says


def test_what_is_won_of_launches_is_of_the_time_of_all_iterations():
    slow = {"period": 6, "slow": 3, "slower_ns": 12 * MS, "slower_gpu_ns": 0, "slower_pct": 40.0}
    usual, periodic = explained(gap("launch", "middle", 125, 21.8 * US), **slow)
    assert "launch-bound" in usual
    assert usual.endswith("Gain: at most 41 % of the time.")  # 68 % of 60 %
    assert periodic.startswith("Every 6th iteration")


def test_modules_in_half_of_the_slow_iterations_are_no_compiler():
    slow = {"slow": 2, "slower_ns": 30 * MS, "slower_gpu_ns": 0, "slower_pct": 30.0}
    loads = [call("cuLibraryLoadData", count / 18, 50 * US) for count in (1, 2)]
    one, each = (" ".join(explained(busy=98.0, parts=(KERNELS, LAUNCHES, load), **slow)) for load in loads)
    assert "a compiler compiles again" in each
    assert "compiles again" not in one
    waits = slow | {"slower_ns": 900 * MS, "compiles": 0}  # no gap of so long a pause ends with a module
    assert "compiles again" not in " ".join(explained(busy=98.0, parts=(KERNELS, LAUNCHES, loads[1]), **waits))
    evaluates = explained(busy=98.0, parts=(KERNELS, LAUNCHES, loads[1]), slower_operations=300, **slow)
    assert "of that: another phase of the program; " in " ".join(evaluates)


def test_what_xla_compiles_is_named_with_its_modules_and_those_that_are_compiled_again():
    def texts(*modules):
        parts = [part("steady", "loop_add_fusion", 18 * MS), LAUNCHES]
        ranges = [
            {"run": "r", "report": "a", "style": "pushpop", "domain": "TSL", "name": f"XlaCompile:#module={name}#",
             "calls": calls, "total_ns": ns * MS, "avg_ns": ns * MS / calls} for name, calls, ns in modules
        ]  # fmt: skip
        phases = [phase_row("steady", 6000 * MS, iterations=18)]
        tables = {"gaps": [], "gpu_use": [use()], "host_copies": [], "nvtx_summary": ranges}
        return " ".join(told(parts, [idle(98.0)], phases=phases, **tables)[1])

    again = texts(("jit_step", 2, 2400), ("jit_loss", 1, 600))
    assert "XLA compiles for 3 s of 6 s (from the first CUDA call to the last): jit_step (2 times) 2.4 s" in again
    assert "What is compiled several times differs in shapes or static arguments: pad to few shapes" in again
    apart = texts(("jit_step", 1, 2000), ("jit__mean", 3, 900))
    assert "Put operations that are compiled one by one (jit__...) into one jitted function" in apart
    assert "several times" not in apart
    assert "XLA" not in texts(("jit_step", 1, 1900))  # as the start of any program
    assert "XLA" not in texts(("XlaPass", 1, 100))
    loop = texts(("jit_leap", 10, 2000), ("jit_step", 1, 1000))
    assert "What differs between the calls of jit_leap is static or a shape: make it a traced value" in loop
    assert "Gain: at most 30 % of this run." in loop  # nine of ten
    assert "traced value" not in texts(("jit_leap", 3, 2000), ("jit_step", 1, 1000))


def test_what_xla_compiles_counts_of_all_phases_or_of_the_only_one():
    rows = [phase_row(phase, ns * MS) for phase, ns in (("setup", 4000), ("steady", 2000))]
    assert [_start_time([row | {"start_ns": ns} for row in rows[:1]]) for ns in (2e9, None)] == [2e9, 0.0]
    assert [_traced_time(part) for part in (rows, [phase_row("all", 700 * MS)], [])] == [6000 * MS, 700 * MS, 0.0]


def test_of_tables_made_before_gaps_were_measured_only_that_is_said():
    _, (text,) = told([KERNELS, LAUNCHES], [idle(gap=2 * MS)])
    assert text == (
        "The GPU is idle 68 % of an iteration of 4 ms: its tables were made before gaps were measured. Record the timeline"
        " again."
    )


@pytest.mark.parametrize(
    ("operations", "waited", "is_said"), [(2000.0, 0, True), (125.0, 0, False), (2000.0, 1, False)]
)
def test_without_gaps_thousands_of_short_operations_say_launch_bound(operations, waited, is_said):
    """Each works for 0.64 us, 1.36 us apart; where the host waits for the GPU for 1 ms meanwhile, that is no proof."""
    waits = call("cudaStreamSynchronize", 1, waited * MS)
    _, (text,) = told([KERNELS, waits], [idle(operations=operations)])
    assert ("probably launch-bound: 2,000 operations of 640 ns an iteration, 1.36 us apart" in text) == is_said


def test_without_cuda_calls_a_gap_has_no_cause_but_the_copy_behind_it():
    (text,) = explained(gap("launch", "middle", 125, 21.8 * US), launches=None, parts=(KERNELS,))
    assert text == (
        "The GPU is idle 68 % of an iteration of 4 ms: its report has no CUDA calls, which would show why. Record them:"
        " `nsys profile --trace=cuda`."
    )
    (text,) = explained(gap("launch", "long", 1, 2 * MS, to_gpu=1), launches=None, parts=(KERNELS,))
    assert "2.72 ms of that are one gap, in which the GPU waits for a copy to it." in text
    assert faults(explained(gap("launch", "middle", 125, 8 * US), launches=None, parts=(KERNELS,), busy=75.0)) == []


def slowed(bare, held, busy=32.0, unit="images/s"):
    runs = [make_run("b", "c"), timeline()]
    return said(idle(busy), runs=runs, figures=[figure_row(bare, run="b", unit=unit), figure_row(held, unit=unit)])


def test_the_profilers_part_is_taken_off_all_numbers_of_a_sentence():
    (text,) = slowed(160.0, 100.0)
    assert (
        "idle 49 % of an iteration of 2.5 ms: launch-bound: 125 operations an iteration, one every 20 us, keep" in text
    )
    assert "idle 67 % of an iteration of 3.92 ms" in slowed(102.0, 100.0)[0]
    assert "idle 68 % of an iteration of 4 ms" in slowed(100.0, 160.0)[0]
    assert slowed(100.0, 160.0, unit="ms/step") == slowed(160.0, 100.0)
    for unit in ("samples per second", "tokens/sec", "1/s", "GFLOP/s"):
        assert slowed(160.0, 100.0, unit=unit) == slowed(160.0, 100.0)


def test_of_a_gap_only_what_is_left_without_the_profiler_is_told():
    runs, figures = [make_run("b", "c"), timeline()], [figure_row(160.0, run="b"), figure_row(100.0)]
    (text,) = said(idle(gap=2.6 * MS), runs=runs, figures=figures)
    assert "idle 49 % of an iteration of 2.5 ms: 1.17 ms of that are one gap" in text


@pytest.mark.parametrize(
    ("bare", "held", "unit"), [(300.0, 100.0, "images/s"), (100.0, 300.0, "ms"), (400.0, 100.0, "images/s")]
)
def test_a_host_that_the_profiler_alone_slows_is_not_told(bare, held, unit):
    """Three times as fast without it, the GPU is busy 96 %; four times as fast, always."""
    assert "idle" not in " ".join(slowed(bare, held, unit=unit))


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
    assert text.startswith("Iteration 7 of 20 (counted from 0) takes 84 ms")


def test_short_kernels_that_overlap_on_streams_keep_a_gpu_busy():
    """Their durations add up to more than the iteration; the share of time counts, not the sum."""
    assert idle_only(said(idle(93.0) | {"med_gpu_ns": 9 * MS})) == []
    assert said(idle(32.0) | {"med_gpu_ns": 9 * MS}) != []


@pytest.mark.parametrize("row", [idle(0.0, operations=0.0), idle(None), idle() | {"steady": 1},
                                 idle(60.0) | {"steady": 2}])  # fmt: skip
def test_without_work_on_a_gpu_or_with_too_few_iterations_nothing_is_said(row):
    assert said(row) == []


def test_two_iterations_are_enough_where_the_gpu_is_idle_most_of_the_time():
    assert "idle 68 % of" in said(idle() | {"steady": 2})[0]


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
    assert "; the others wait for it in NCCL kernels. " in text


def test_processes_without_nccl_may_wait_for_each_other():
    (text,) = ranks(48.0, 55.0, nccl=0.0)
    assert ", or it waits for another process. " in text


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
    _, (text, healthy) = told(parts, rows, runs=runs)
    assert healthy.startswith("three: the GPU is busy 95 %")
    assert text.startswith("two: the GPU is idle 70 %")
    assert text.endswith("Likewise one (50 % idle).")


def test_of_many_cases_a_few_are_named():
    names = "abdefgh"
    runs, rows = [timeline(n, f"case-{n}") for n in names], [idle(50.0 - at, run=n) for at, n in enumerate(names)]
    _, (text,) = told([part("steady", "k", 18 * MS, run=n) for n in names], rows, runs=runs)
    assert text.startswith("case-h: ")
    assert text.endswith(
        "Likewise case-g (55 % idle), case-f (54 % idle), case-e (53 % idle), case-d (52 % idle) and 2 more."
    )


def test_cases_that_are_idle_for_different_reasons_have_a_sentence_each():
    runs = [timeline("a", "one"), timeline("b", "two"), timeline("d", "three")]
    rows = [idle(50.0, run="a"), idle(30.0, run="b", gap=2.5 * MS), idle(20.0, run="d")]
    parts = [part("steady", "k", 18 * MS, run=run) for run in "abd"]
    first, second = said(*rows, parts=parts, runs=runs)
    assert first.startswith("three: the GPU is idle 80 %")
    assert first.endswith("Likewise one (50 % idle).")
    assert second.startswith("two: the GPU is idle 70 %")
    assert "are one gap" in second


def test_of_repeats_the_middle_one_counts():
    runs = [timeline("a"), timeline("b"), timeline("d")]
    rows = [idle(busy, run=run) for run, busy in (("a", 20.0), ("b", 85.0), ("d", 90.0))]
    assert faults(said(*rows, parts=[part("steady", "k", 18 * MS, run=run) for run in "abd"], runs=runs)) == []


@pytest.mark.parametrize(("devices", "nccl", "busy"), [((0, 0), 0.0, None), ((0, 1), 0.0, 45.0), ((0, 0), 40.0, 45.0)])
def test_how_busy_a_gpu_is_that_processes_may_share_is_not_known(devices, nccl, busy):
    rows = [idle(share, pid=pid, nccl=nccl) for pid, share in ((1, 48.0), (2, 45.0))]
    parts = [part("steady", "k", 18 * MS, pid=pid, device=device) for pid, device in zip((1, 2), devices, strict=True)]
    (case,), _ = told(parts, rows)
    assert least_gpu_busy_pct(case) == busy


@pytest.mark.parametrize(("figures", "is_told"), [((), True), ((("b", 160.0), ("r", 100.0)), False)])
def test_idle_times_of_launches_are_said_to_be_those_of_the_traced_run_where_no_other_is_known(figures, is_told):
    parts = [KERNELS, LAUNCHES]
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "iterations": [idle()], "gaps": gaps_of(idle()),
              "figures": [figure_row(value, run=run) for run, value in figures]}  # fmt: skip
    runs = [make_run("b", "c"), timeline()] if figures else [timeline()]
    blocks = first_screen_blocks(summarize(CampaignData("c", "", None, runs, tables), ReportRequest()))
    assert any(block.name == "traced" for block in blocks) == is_told


def test_a_gpu_that_is_idle_in_part_for_no_single_cause_is_told_with_what_its_idle_time_goes_to():
    (text,) = explained(gap("launch", "short", 100, 6 * US), gap("queued", "short", 20, 30 * US), busy=70.0)
    assert text.startswith(
        "The GPU is busy 70 % of an iteration of 4 ms with 125 operations; 1.200 ms of idle time: launches 0.600 ms, starts"
        " of queued operations 0.600 ms. Fewer gaps: Launch them together as CUDA graphs"
    )
    rows = [
        part("steady", "void at::native::elementwise_kernel<Add>", 8 * MS),
        part("steady", "gemm", 9 * MS),
        LAUNCHES,
    ]
    (text,) = explained(gap("launch", "short", 100, 6 * US), gap("queued", "short", 20, 30 * US), busy=70.0, parts=rows)
    assert "47 % of the GPU's work is elementwise, normalisation and reduction kernels. torch.compile fuses" in text


def test_the_largest_kernel_of_ones_own_is_named_where_nothing_measured_tells_what_binds_it():
    def texts(busy, name, blocks=1000.0):
        rows = [part("steady", name, busy / 100 * 18 * 4 * MS)]
        tables = {
            "phase_summary": rows,
            "gpu_summary": whole(rows),
            "iterations": [idle(busy) | {"med_gpu_ns": busy / 100 * 4 * MS}],
        }
        (case,) = summarize_cases([timeline()], tables, 0.9)
        case = replace(case, sm_count=132.0, blocks={name: blocks})
        findings = merge_hits_to_findings(find_hits_by_case([case]), several=False)
        return " ".join(finding.text for finding in findings)

    few = "takes 60 % of the time, in launches of 188 blocks for 132 SMs; no counters"
    assert few in texts(60.0, "collide", blocks=188)
    named = "The kernel collide takes 60 % of the time; no counters tell what binds it. `ncu -k collide"
    assert named in texts(60.0, "collide")
    assert "no counters" not in texts(40.0, "collide")  # the GPU is idle longer
    assert "no counters" not in texts(60.0, "void at::native::elementwise_kernel<Add>")
