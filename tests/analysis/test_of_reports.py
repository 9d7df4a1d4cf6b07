"""The answer of reports: which results count as one case, and what is said of kernels with counters alone."""

from dataclasses import replace

import pytest

from nsw.analysis.blocks import Note
from nsw.analysis.first_screen import first_screen_blocks
from nsw.analysis.kernels import Advice, LongLaunches, Stall
from nsw.analysis.of_reports import ReadReport, _join_phases, summarize_reports

from .made import KERNEL, gpu_row
from .test_steady import MS, iterations_row, part, phase_row, whole


def shown(*reports):
    blocks = first_screen_blocks(summarize_reports("a.txt", reports))
    table = next((block for block in blocks if block.name == "answer"), None)
    return blocks[0].text, [] if table is None else list(table.rows)


def test_a_file_with_several_results_has_a_row_each_and_no_sum():
    gpu = [gpu_row("k", 9 * MS, block=0), gpu_row("k", MS, block=3), gpu_row("m", 3 * MS, block=3)]
    headline, rows = shown(ReadReport("a.txt", {"gpu_summary": gpu}))
    assert headline == "a.txt: 2 results with GPU work: 4.000 ms (result 4) to 9.000 ms (result 1: 100 % k)"
    assert rows == [("result 1", 9 * MS, "100 % k"), ("result 4", 4 * MS, "75 % m")]


@pytest.mark.parametrize(
    ("commands", "names"),
    [(("./nbody", "./nbody 15"), ["result 2 (./nbody 15)", "result 1 (./nbody)"]),
     (("./nbody", "./nbody"), ["result 2", "result 1"]), ((), ["result 2", "result 1"])],
)  # fmt: skip
def test_results_of_different_commands_are_named_by_them(commands, names):
    gpu = [gpu_row("k", (1 + block) * MS, block=block) for block in (0, 1)]
    facts = [{"block": block, "key": "command", "text": text} for block, text in enumerate(commands)]
    _, rows = shown(ReadReport("a.txt", {"gpu_summary": gpu, "facts": facts}))
    assert sorted(row[0] for row in rows) == sorted(names)


def test_a_kind_of_work_that_took_no_time_is_no_error():
    gpu = [gpu_row("k", 9 * MS), gpu_row("[CUDA memset]", 0, kind="memset")]
    headline, _ = shown(ReadReport("a.txt", {"gpu_summary": gpu}))
    assert "k" in headline


def test_results_of_processes_are_named_by_them():
    gpu = [gpu_row("k", (1 + block) * MS, block=block, pid=70 + block) for block in (0, 1)]
    _, rows = shown(ReadReport("a.txt", {"gpu_summary": gpu}))
    assert sorted(row[0] for row in rows) == ["process 70", "process 71"]
    _, rows = shown(ReadReport("a.txt", {"gpu_summary": [row | {"pid": 7} for row in gpu]}))
    assert sorted(row[0] for row in rows) == ["result 1", "result 2"]


def test_results_of_the_same_largest_part_have_it_in_the_headline_and_copies_count_together():
    ways = [gpu_row(f"[CUDA memcpy {way}]", 3 * MS, kind="memcpy") for way in ("HtoD", "DtoH")]
    kernels = [gpu_row(name, 5 * MS) for name in "km"]
    gpu = [row | {"block": block} for block in (0, 1) for row in (*ways, *kernels)]
    headline, rows = shown(ReadReport("a.txt", {"gpu_summary": gpu}))
    assert headline == "a.txt: 2 results with GPU work, each 38 % copies"
    assert [row[2] for row in rows] == ["38 % copies"] * 2


def test_a_share_in_the_headline_is_of_something():
    gpu = [gpu_row("[CUDA memcpy HtoD]", 6 * MS, kind="memcpy"), gpu_row("k", 4 * MS)]
    assert shown(ReadReport("a.txt", {"gpu_summary": gpu}))[0] == "a.txt: 60 % of GPU time is copies"


def test_of_several_files_the_results_have_the_names_of_their_files():
    several = ReadReport("a.txt", {"gpu_summary": [gpu_row("k", MS, block=0), gpu_row("k", MS, block=1)]})
    _, rows = shown(several, ReadReport("b.txt", {"gpu_summary": [gpu_row("k", MS, block=0)]}))
    assert [row[0] for row in rows] == ["a.txt: result 1", "a.txt: result 2", "b.txt"]


@pytest.mark.parametrize(
    ("given", "rows"),
    [("a16 a2 a8", "a2 a8 a16"), ("a8 a16 a2", "a8 a16 a2")],
    ids=["as a shell sorts them", "as a person gave them"],
)
def test_reports_whose_names_a_shell_sorted_stand_in_the_order_of_their_numbers(given, rows):
    reports = [ReadReport(name, {"gpu_summary": [gpu_row("k", MS)]}) for name in given.split()]
    assert [row[0] for row in shown(*reports)[1]] == rows.split()


def test_reports_with_iterations_have_their_time_and_not_the_time_of_all_kernels():
    parts = [part("steady", "k", 18 * MS)]
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "phases": [phase_row("steady", 18 * MS)],
              "iterations": [iterations_row(MS, busy=100.0)]}  # fmt: skip
    without = {"gpu_summary": [gpu_row("k", 9 * MS)]}
    assert [row[1] for row in shown(ReadReport("a", tables), ReadReport("b", tables))[1]] == [MS, MS]
    assert [row[1:3] for row in shown(ReadReport("a", tables), ReadReport("b", without))[1]] == [
        (MS, 18 * MS), (None, 9 * MS),
    ]  # fmt: skip


def test_of_several_reports_with_iterations_a_line_says_why_none_is_the_best():
    parts = [part("steady", "k", 18 * MS)]
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "phases": [phase_row("steady", 18 * MS)],
              "iterations": [iterations_row(MS, busy=100.0)]}  # fmt: skip
    for names, count in ((["a"], 0), (["a", "b"], 1)):
        blocks = first_screen_blocks(summarize_reports("a.txt", [ReadReport(name, tables) for name in names]))
        assert [block.text[:20] for block in blocks if block.name == "best"] == ["None is called best:"] * count


def test_reports_of_unlike_numbers_of_processes_say_how_many():
    parts = [part("steady", "k", 18 * MS)]
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "phases": [phase_row("steady", 18 * MS)],
              "iterations": [iterations_row(MS, busy=100.0)]}  # fmt: skip
    ranks = [iterations_row(MS, busy=100.0) | {"pid": pid} for pid in (1, 2, 3)]
    reports = (ReadReport("a", tables), ReadReport("b", tables | {"iterations": ranks}))
    assert [row[:2] for row in shown(*reports)[1]] == [("a", 1), ("b", 3)]


def test_a_trace_with_several_results_is_summed_for_each():
    trace = [{"name": "k", "kind": "kernel", "duration_ns": MS, "block": block} for block in (0, 0, 1)]
    _, rows = shown(ReadReport("a.txt", {"gpu_trace": trace}))
    assert [row[1] for row in rows] == [2 * MS, MS]


@pytest.mark.parametrize(
    ("grid", "block", "duration", "says"),
    [((4, 1, 1), (4, 1, 1), MS, "k runs on 16 threads"), ((1, 1, 1), (1, 1, 1), MS, "k runs on 1 thread"),
     ((4, 1, 1), (256, 1, 1), MS, "k takes 1.000 ms in one launch"),
     ((4, 1, 1), (4, 1, 1), 5e3, "k takes 5.000 us in one launch"),
     ((None, None, None), (None, None, None), MS, "k takes 1.000 ms in one launch")],
)  # fmt: skip
def test_a_long_kernel_of_few_threads_is_named(grid, block, duration, says):
    shape = dict(zip(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), (*grid, *block), strict=True))
    trace = [{"name": "k", "short_name": "k", "kind": "kernel", "duration_ns": duration} | shape]
    assert shown(ReadReport("a.txt", {"gpu_trace": trace}))[0] == f"a.txt: {says}"


def test_a_long_kernel_of_one_block_is_named_in_a_timeline_too():
    summary = [gpu_row("add", 100 * MS) | {"blocks": 1}, gpu_row("[CUDA memcpy HtoD]", MS, kind="memcpy")]
    assert shown(ReadReport("a.sqlite", {"gpu_summary": summary}))[0] == "a.sqlite: add runs on 1 block"
    summary[0]["blocks"] = 2
    assert shown(ReadReport("a.sqlite", {"gpu_summary": summary}))[0] != "a.sqlite: add runs on 1 block"


@pytest.mark.parametrize(
    ("found_by", "rest", "says"),
    [("kernel_sequence", 18, "its kernels repeat every"), ("kernel_sequence", 19, "51 % of GPU time is"),
     ("nvtx", 19, "an iteration takes")],
)  # fmt: skip
def test_kernels_that_repeat_make_iterations_only_where_they_are_most_of_the_work(found_by, rest, says):
    """Set-up does not count; marks of the program always make some."""
    parts = [part("setup", "[CUDA memcpy HtoD]", 0.1 * MS, kind="memcpy"), part("steady", "k", 18 * MS),
             part("end", "[CUDA memcpy DtoD]", rest * MS, kind="memcpy")]  # fmt: skip
    phases = [phase_row(row["phase"], row["total_ns"], gpu=row["total_ns"]) for row in parts]
    iterations = [iterations_row(MS, busy=100.0) | {"found_by": found_by}]
    tables = {"gpu_summary": whole(parts), "phase_summary": parts, "phases": phases, "iterations": iterations}
    assert says in shown(ReadReport("a.txt", tables))[0]
    late = [phase | {"start_ns": 3000 * MS + n * MS} for n, phase in enumerate(phases)]
    blocks = first_screen_blocks(summarize_reports("a", [ReadReport("a.txt", tables | {"phases": late})]))
    notes = [block.text for block in blocks if isinstance(block, Note)]
    assert any("The program runs 3 s before its first CUDA call, 99 % of 3.04 s." in text for text in notes)


def test_phases_that_are_joined_lack_what_none_of_them_has():
    phases = [phase_row("setup", 2 * MS) | {"api_ns": None}, phase_row("end", 3 * MS) | {"api_ns": None}]
    joined = _join_phases(phases)
    assert (joined["phase"], joined["duration_ns"], joined["api_ns"]) == ("all", 5 * MS, None)
    assert _join_phases([phases[0], phases[1] | {"api_ns": MS}])["api_ns"] == MS


def counted(*kernels):
    return shown(ReadReport("a.txt", {}, tuple(kernels)))


def test_of_kernels_without_times_the_one_that_wastes_most_is_named_with_what():
    bare = replace(KERNEL, sm_pct=None, memory_pct=None, dram_pct=None, time_ns=None, launches=1.0)
    columns = replace(bare, short_name="cols", metrics={"gld_efficiency": 12.5, "gst_efficiency": 29.0})
    rows = replace(bare, short_name="rows", metrics={"gld_efficiency": 80.0}, achieved_occupancy_pct=3.0)
    headline, table = counted(rows, columns)
    assert headline == (
        "a.txt: 2 kernels, without times, cols uses 12 % of the bytes that it loads and 29 % of the bytes that it"
        " stores, occupancy 90 %"
    )
    assert [row[2:] for row in table] == [(80.0, None), (12.5, 29.0)]
    assert counted(rows, rows)[0] == "a.txt: 2 kernels, without times, occupancy 3 %, loads used 80 %"


BARE = replace(KERNEL, sm_pct=None, memory_pct=None, dram_pct=None, time_ns=None, achieved_occupancy_pct=None)


@pytest.mark.parametrize(
    ("metric", "does"),
    [("flop_count_sp", "does 75 % of the FLOP"), ("inst_executed", "executes 75 % of the instructions")],
)
def test_of_kernels_without_times_the_one_that_works_most_is_named_with_what_binds_it(metric, does):
    small = replace(BARE, short_name="small", launches=1.0, metrics={metric: 100.0, "gld_efficiency": 90.0})
    used = {"alu_fu_utilization": 45.0, "flop_sp_efficiency": 12.0, "gld_efficiency": 12.5}
    large = replace(
        BARE, short_name="large", launches=2.0, metrics={metric: 150.0} | used, levels=("alu_fu_utilization",)
    )
    headline, _ = counted(small, large)
    assert headline == (f"a.txt: large {does}, ALU at level 5 of 10, FP32 at 12 % of its peak")
    headline, _ = counted(replace(small, metrics={"gld_efficiency": 90.0}), large)  # its work was not counted
    assert "without times" in headline


@pytest.mark.parametrize(
    ("levels", "alu", "dram", "busy_dram"),
    [(("alu_fu_utilization", "dram_utilization"), "at level 5 of 10", "at level 1 of 10", "at level 8 of 10"),
     ((), "45 % busy", "5 % busy", "75 % busy")],
)  # fmt: skip
def test_loads_that_cost_little_are_not_in_the_headline(levels, alu, dram, busy_dram):
    metrics = {"alu_fu_utilization": 45.0, "dram_utilization": 5.0, "gld_efficiency": 12.5}
    idle = replace(BARE, metrics=metrics, levels=levels)
    assert counted(idle)[0] == f"a.txt: k, ALU {alu}, DRAM {dram}"
    headline, _ = counted(replace(idle, metrics=metrics | {"dram_utilization": 75.0}))
    assert headline == f"a.txt: k, DRAM {busy_dram}, 12 % of the loaded bytes used"


def test_cycles_without_a_ready_warp_say_more_than_issue_slots():
    metrics = {"issue_slot_utilization": 9.7, "No Eligible": 90.3, "active_warps_per_scheduler": 2.0}
    assert counted(replace(BARE, metrics=metrics))[0] == (
        "a.txt: k, no warp ready in 90 % of cycles, 2.0 warps a scheduler"
    )


def test_a_kernel_that_is_all_of_the_work_has_its_time_once():
    one = gpu_row("k", 5 * MS) | {"calls": 1}
    assert shown(ReadReport("a.txt", {"gpu_summary": [one]}))[0] == "a.txt: k takes 5.000 ms in one launch"


@pytest.mark.parametrize(("launches", "says"), [(1, "k takes 5.000 ms in one launch"), (20, "100 % of GPU time is k")])
def test_many_short_copies_beside_a_kernel_change_nothing(launches, says):
    pages = gpu_row("[CUDA memcpy Unified Host-to-Device]", 0.01 * MS, kind="memcpy", calls=48)
    kernel = gpu_row("k", 5 * MS, calls=launches)
    assert shown(ReadReport("a.txt", {"gpu_summary": [kernel, pages]}))[0] == f"a.txt: {says}"


@pytest.mark.parametrize(
    ("kernel_ms", "says"),
    [
        (3, "75 % of GPU time is kernels, k0 most (19 %); copies take 25 %"),
        (1, "50 % of GPU time is copies"),
    ],
)
def test_a_copy_is_the_largest_part_only_where_kernels_are_not_most(kernel_ms, says):
    kernels = [gpu_row(f"k{n}", kernel_ms * MS, calls=100) for n in range(4)]
    copy = gpu_row("[CUDA memcpy DtoH]", 4 * MS, kind="memcpy", calls=103)
    assert shown(ReadReport("a.txt", {"gpu_summary": [copy, *kernels]}))[0] == f"a.txt: {says}"


@pytest.mark.parametrize(
    ("kernel_us", "launches", "more", "says"),
    [(1.7, 2, (), "90.00 ms of copies to the GPU, 3.400 us of kernels, nothing copied back"),
     (500.0, 2, (), "99 % of GPU time is copies"),
     (1.7, 200, (), "100 % of GPU time is copies"),
     (1.7, 2, (gpu_row("[CUDA memcpy DtoH]", MS, kind="memcpy", calls=1),), "100 % of GPU time is copies")],
)  # fmt: skip
def test_large_inputs_of_kernels_that_do_nothing_are_doubted(kernel_us, launches, more, says):
    copy = gpu_row("[CUDA memcpy HtoD]", 90 * MS, kind="memcpy", calls=2, total_bytes=550e6)
    kernel = gpu_row("conv", launches * kernel_us * 1e3, calls=launches)
    assert shown(ReadReport("a.txt", {"gpu_summary": [copy, kernel, *more]}))[0] == f"a.txt: {says}"


def test_of_many_kernels_without_times_it_is_said_how_to_get_them_and_not_their_range():
    kernels = [
        replace(KERNEL, short_name=f"k{n}", time_ns=None, metrics={"sm_efficiency": 10.0 * n}, sm_pct=None)
        for n in range(1, 11)
    ]
    headline, _ = shown(ReadReport("a.txt", {}, tuple(kernels)))
    assert headline.startswith("a.txt: 10 kernels, without times (`nvprof` without --metrics")
    old = tuple(replace(kernel, device_name="Tesla P100-SXM2-16GB") for kernel in kernels)
    assert "ncu" in headline
    assert "ncu" not in shown(ReadReport("a.txt", {}, old))[0]  # which knows no Pascal
    headline, _ = shown(ReadReport("a.txt", {}, tuple(kernels[:8])))
    assert "SMs at work 10 % (k1) to 80 % (k8)" in headline


def test_copies_slower_than_any_link_point_to_it_and_slow_ones_both_ways_say_which():
    copy = gpu_row("[CUDA memcpy HtoD]", 90 * MS, kind="memcpy", total_bytes=40e6)
    blocks = first_screen_blocks(
        summarize_reports("a.txt", [ReadReport("a.txt", {"gpu_summary": [copy, gpu_row("k", 10 * MS)]})])
    )
    assert any("look at the link" in getattr(block, "text", "") for block in blocks)
    both = [
        gpu_row(f"[CUDA memcpy {way}]", ms * MS, kind="memcpy", total_bytes=ms * 3e6, calls=10)
        for way, ms in (("HtoD", 30), ("DtoH", 60))
    ]
    headline, _ = shown(ReadReport("a.txt", {"gpu_summary": [*both, gpu_row("k", 10 * MS)]}))
    assert "slow copies from the GPU, 3 GB/s" in headline


def test_kernels_whose_metrics_have_no_value_are_told():
    none = replace(KERNEL, sm_pct=None, memory_pct=None, dram_pct=None, time_ns=None, achieved_occupancy_pct=None)
    assert counted(none, none) == ("a.txt: 2 kernels, of which no metric has a value", [])


def test_a_kernel_of_very_unequal_launches_is_not_headed_by_their_mean():
    row = replace(KERNEL, long_launches=LongLaunches(4, 303e3, 12, 2.9e3), metrics={"duration": 77.9e3})
    assert counted(row)[0].startswith("a.txt: k takes 303.0 us in 4 of 16 launches, 2.900 us in the others")


def test_of_a_kernel_whose_bound_is_not_known_what_was_measured_is_told():
    bare = replace(
        KERNEL, memory_pct=None, sm_pct=19.4, dram_pct=None, dram_bytes_per_s=350e9, time_ns=MS, time_from="counters"
    )
    timed = replace(bare, metrics={"duration": MS})
    assert (
        counted(timed)[0]
        == "a.txt: k takes 1.000 ms a launch, SM at 19 % of its peak, occupancy 90 % of at most 100 %, DRAM 350.0 GB/s"
    )
    limited = replace(
        bare, occupancy_limiter="registers", metrics={"shared_bank_conflicts": 2e6, "shared_wavefronts": 8e6}
    )
    assert counted(limited)[0].endswith("at most 100 % (registers), 2 million bank conflicts of shared memory")
    few = replace(limited, metrics=limited.metrics | {"shared_bank_conflicts": 1e6})
    assert counted(few)[0].endswith("at most 100 % (registers)")
    advice = Advice("Occupancy", "It can be 1. It is limited by registers. More warps help.", 20.0, "global")
    ruled = replace(bare, achieved_occupancy_pct=None, advice=advice, metrics={"gld_efficiency": 50.0})
    assert counted(ruled)[0].endswith("ncu: It is limited by registers")
    other = replace(bare, sm_pct=None, achieved_occupancy_pct=None, time_ns=None,
                    metrics={"gld_transactions": 8.0, "Label": 1.0, "A label": 3.0, "sm_frequency": 1e9})  # fmt: skip
    assert counted(other) == (
        "a.txt: k has only 4 metrics, and no time", [("k", "gld_transactions", 8.0, "sector"), ("k", "Label", 1.0, "")],
    )  # fmt: skip
    untimed = replace(bare, metrics={"threads": 1.0}, time_ns=None)
    assert counted(untimed)[0] == "a.txt: k, SM at 19 % of its peak, occupancy 90 % of at most 100 %"


def test_a_kernel_without_time_is_said_with_its_launch():
    bare = replace(BARE, metrics={"DRAM Bandwidth": 7e9, "A label": 3.0}, shapes=(("(2, 1, 1)", "(128, 1, 1)"),))
    assert counted(bare)[0] == (
        "a.txt: k has 2 blocks of 128 threads, DRAM 7.000 GB/s, no time (`ncu --set basic` measures it)"
    )


def test_of_many_kernels_of_which_none_takes_much_none_is_named():
    rows = [replace(KERNEL, short_name=f"k{n}", share_pct=8.0, metrics={"duration": 1e4 * n}) for n in range(9, 21)]
    assert counted(*rows)[0] == "a.txt: 12 kernels, none above 8 % of their time; 96 % of it bound by L1 or L2"
    assert counted(replace(rows[0], share_pct=50.0), *rows[1:])[0].startswith(
        "a.txt: k9 takes 50 % of the kernels' time"
    )
    variants = [replace(rows[0], share_pct=share) for share in (50.0, 30.0)]
    assert counted(*variants, rows[1])[0].startswith("a.txt: k9 (2 variants) takes 80 % of the kernels' time")
    passes = [replace(row, name=f"f<{n}>", short_name=f"f<{n}>") for n, row in enumerate(rows[:6])]
    assert counted(*passes, *rows[6:])[0] == (
        "a.txt: f takes 48 % of the kernels' time in 6 variants; 48 % bound by L1 or L2"
    )


def test_a_column_that_no_shown_row_fills_and_the_use_of_hardly_any_stores_are_left_out():
    metrics = {"duration": 1e4, "gst_efficiency": 12.5, "inst_executed": 1e9, "l2_bytes": 32 * 1e6}
    rows = [replace(KERNEL, short_name=f"k{n}", share_pct=6.0, metrics=metrics) for n in range(16)]
    assert not any(12.5 in row for row in counted(*rows)[1])
    full = [replace(row, metrics=metrics | {"l2_bytes": 32 * 1e8}) for row in rows]
    assert all(12.5 in row for row in counted(*full)[1])
    assert len(counted(*rows[:15], full[15])[1][0]) == len(counted(*rows)[1][0])


def test_warps_that_wait_for_tensor_cores_are_no_fault():
    metrics = {"No Eligible": 90.0, "issue_slot_utilization": 10.0}
    row = replace(BARE, name="mine", short_name="mine", metrics=metrics, achieved_occupancy_pct=None)
    assert "no warp ready in 90 % of cycles" in counted(row)[0]
    assert "%" not in counted(replace(row, name="cutlass_80_tensorop_s16816gemm"))[0]


def test_of_latency_the_headline_has_what_leaves_few_warps():
    gemv = replace(KERNEL, name="cublasGemv", short_name="gemv", memory_pct=50.0, theoretical_occupancy_pct=16.7,
                   occupancy_limiter="registers")  # fmt: skip
    for waves, says in (
        (1.5, "bound by latency: 1.3 warps a scheduler, occupancy at most 17 % (registers)"),
        (0.7, "bound by latency: 0.7 waves of blocks, 1.3 warps a scheduler"),  # all blocks have room
        (0.02, "bound by latency: 0.02 waves of blocks, 1.3 warps a scheduler"),
    ):
        few = {"waves_per_sm": waves, "active_warps_per_scheduler": 1.33}
        assert counted(replace(gemv, metrics=few))[0].endswith(says)


def test_a_headline_says_that_a_part_binds_only_where_that_is_near_its_roof():
    for busy, waiting, says in (
        (80.0, 45.0, ", bound by DRAM, 80 % of its peak"),
        (66.0, 45.0, ", no part of the GPU above 66 % of its peak (DRAM), 45 % of the active warps wait for memory"),
        (66.0, 20.0, ", no part of the GPU above 66 % of its peak (DRAM)"),
        (40.0, 45.0, ", bound by latency: 45 % of the active warps wait for memory"),
        (40.0, 20.0, ", bound by latency: no part of the GPU above 40 % of its peak (DRAM)"),
    ):
        stalls = (Stall("memory dependency", waiting),)
        kernel = replace(
            KERNEL,
            dram_pct=busy,
            memory_pct=busy,
            sm_pct=20.0,
            stalls=stalls,
            metrics={"eligible_warps_per_cycle": 1.0},
        )
        assert says in counted(kernel)[0], says


def waits_note(*kernels):
    blocks = first_screen_blocks(summarize_reports("a.txt", [ReadReport("a.txt", {}, kernels)]))
    return next((block.text for block in blocks if block.name == "passes"), "")


def test_latency_without_stalls_names_the_sections_that_tell_what_warps_wait_for():
    gemv = replace(KERNEL, short_name="gemv", name="void gemv<Params>()", memory_pct=54.0, occupancy_limiter=None)
    assert waits_note(gemv) == (
        "Not measured: what the warps of gemv wait for."
        " `ncu --section WarpStateStats --section SchedulerStats` shows it."
    )
    counted = replace(gemv, metrics={"active_warps_per_scheduler": 8.0})
    assert (
        waits_note(counted) == "Not measured: what the warps of gemv wait for. `ncu --section WarpStateStats` shows it."
    )
    assert waits_note(replace(gemv, metrics={"active_warps_per_scheduler": 1.3})) == ""
    assert waits_note(replace(gemv, name="void gemv<cublasGemvParams>()")) == ""
    stalls = (Stall("memory dependency", 80.0),)
    assert waits_note(replace(gemv, stalls=stalls)) == ""


def test_a_report_that_has_nothing_for_the_screen_says_where_to_look():
    assert shown(ReadReport("a.txt", {"facts": []})) == ("a.txt: has only what `--full` prints", [])


@pytest.mark.parametrize(("calls", "rows"), [(19, [("cudaFree", MS, 19)]), (20, [("cudaFree", MS, 100.0, 20)])])
def test_few_calls_have_no_shares(calls, rows):
    row = {"name": "cudaFree", "short_name": "cudaFree", "kind": None, "total_ns": MS, "calls": calls}
    assert shown(ReadReport("a.txt", {"api_summary": [row]}))[1] == rows


def test_unified_memory_that_a_report_has_in_a_table_of_its_own_is_gpu_work():
    def um(name, calls):
        return {"name": name, "calls": calls, "total_ns": 3 * MS, "total_bytes": 4096.0 * calls}

    unified = [um("Host To Device", 999), um("Device To Host", 1), um("Gpu page fault groups", 5)]
    headline, rows = shown(
        ReadReport("a.txt", {"gpu_summary": [gpu_row("k", MS, time_pct=100.0)], "um_summary": unified})
    )
    assert headline == "a.txt: 1,000 page migrations take 6 ms, kernels 1 ms"
    gpu = [gpu_row("k", 4 * MS, block=0), gpu_row("k", 20 * MS, block=1)]
    faults = um("Gpu page fault groups", 5)
    headline, _ = shown(ReadReport("a.txt", {"gpu_summary": gpu[:1], "um_summary": [faults]}))
    assert headline == "a.txt: GPU page faults take 3 ms, kernels 4 ms"
    headline, _ = shown(
        ReadReport("a.txt", {"gpu_summary": gpu, "um_summary": [faults | {"block": 0}, faults | {"block": 1}]})
    )
    assert headline.endswith(
        "1 of 2 results with GPU work could save 75 % of its 4.000 ms of GPU time: result 1: GPU page faults take 3 ms"
    )
    assert [row[:2] for row in rows] == [
        ("[Unified Memory Memcpy HtoD]", 3 * MS),
        ("[Unified Memory Memcpy DtoH]", 3 * MS),
        ("k", MS),
    ]
    traced = [gpu_row("k", MS), gpu_row("[CUDA memcpy Unified Host-to-Device]", 9 * MS, kind="um")]
    assert len(shown(ReadReport("a.txt", {"gpu_summary": traced, "um_summary": unified}))[1]) == 2


def operator(name, device_ns, cpu_ns, block=0):
    return {"name": name, "self_device_ns": device_ns, "self_cpu_ns": cpu_ns, "calls": 1, "block": block}


@pytest.mark.parametrize(
    ("copy_ns", "rows"),
    [(2 * MS, ["aten::copy_"]), (0.0, ["ncclDevKernel_AllGather(int)", "Memcpy HtoD (Pinned -> Device)"])],
)  # fmt: skip
def test_the_gpus_side_of_operators_is_shown_only_where_no_operator_has_its_time(copy_ns, rows):
    operators = [
        operator("aten::copy_", copy_ns, 5.0), operator("Memcpy HtoD (Pinned -> Device)", 0.9 * MS, 0.0),
        operator("ncclDevKernel_AllGather(int)", 1.1 * MS, 0.0), operator("range", 9 * MS, 0.0), operator("range", 0.0, 3.0),
    ]  # fmt: skip
    assert [row[0] for row in shown(ReadReport("a.txt", {"operators": operators}))[1]] == rows


def test_each_table_of_operators_is_a_result():
    operators = [operator("aten::mm", MS, 5.0), operator("aten::add", MS, 5.0, block=1)]
    headline, rows = shown(ReadReport("a.txt", {"operators": operators}))
    assert headline == "a.txt: 2 results"
    assert rows == [(f"result {n}", f"aten::{name} takes 1.000 ms in 1 call") for n, name in ((1, "mm"), (2, "add"))]


@pytest.mark.parametrize(
    ("kernel_pct", "copy_pct", "copy_ms", "headline"),
    [(50.0, 100.0, 2.5, "40 % of GPU time is k"),  # two tables: half of the kernels is cut off
     (50.0, 30.0, 3.0, "50 % of GPU time is k"),  # one table, of which 20 % are cut off
     (62.5, 37.5, 3.0, "62 % of GPU time is k, 5.000 ms of 8.000 ms"),
     (98.0, 100.0, 3.0, "62 % of GPU time is k, 5.000 ms of 8.000 ms")],
)  # fmt: skip
def test_what_a_report_cuts_off_counts_by_the_shares_that_its_tables_print(kernel_pct, copy_pct, copy_ms, headline):
    copy = gpu_row("[CUDA memcpy DtoD]", copy_ms * MS, kind="memcpy", time_pct=copy_pct)
    gpu = [gpu_row("k", 5 * MS, time_pct=kernel_pct), copy]
    assert shown(ReadReport("a.txt", {"gpu_summary": gpu}))[0] == f"a.txt: {headline}"


def test_of_iterations_with_nccl_it_is_told_what_of_them_it_takes_alone():
    parts = [part("steady", "ncclKernel_AllReduce", 12 * MS), part("steady", "k", 6 * MS)]
    row = iterations_row(MS, busy=90.0, memory=0.0) | {
        "med_communication_pct": 66.7,
        "med_communication_alone_pct": 10.0,
    }
    headline, rows = shown(
        ReadReport("a.txt", {"gpu_summary": whole(parts), "phase_summary": parts, "iterations": [row]})
    )
    assert headline == "a.txt: an iteration takes 1.000 ms, NCCL alone takes 9 % of it"
    assert [row[0] for row in rows] == ["k", "NCCL alone", "the rest", "GPU idle"]


@pytest.mark.parametrize(("kernels", "is_joined"), [(("k",), True), (("k", "m"), False), ((), None)])
def test_counters_that_are_of_no_timeline_are_named(kernels, is_joined):
    timeline = ReadReport("t.sqlite", {"gpu_summary": [gpu_row("k", 9 * MS) | {"kind": "kernel"}]})
    counters = [ReadReport("c.csv", {}, tuple(replace(KERNEL, name=name, short_name=name) for name in kernels))]
    summary = summarize_reports("all", [timeline, *(counters if kernels else ())])
    assert (summary.note is None) is (is_joined is not False)
    assert is_joined is not False or summary.note == "Not joined with a timeline: c.csv (t.sqlite has no kernel m)."


def test_counters_are_of_a_timeline_whose_names_have_casts_and_namespaces_that_ncu_leaves_out():
    long = "void at::native::multi_tensor<at::native::<unnamed>::Meta<(int)1>, (unsigned long)2>(T1 *)"
    timeline = ReadReport("t.sqlite", {"gpu_summary": [gpu_row(long, 9 * MS) | {"kind": "kernel"}]})
    printed = "void multi_tensor<unnamed>::Meta<1>, 2>(T1*)"
    counters = ReadReport("c.csv", {}, (replace(KERNEL, name=printed, short_name="multi_tensor"),))
    summary = summarize_reports("all", [timeline, counters])
    assert summary.note is None
    (case,) = summary.cases
    assert [kernel.time_ns for kernel in case.kernels] == [9 * MS]
