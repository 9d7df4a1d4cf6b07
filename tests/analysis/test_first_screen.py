"""The first screen: which table and headline follow from what the recipe varies and what was measured."""

import io
from dataclasses import replace

import pytest

from nsw.analysis import several_cases
from nsw.analysis.first_screen import first_screen_blocks
from nsw.analysis.kernel_classes import classify_gpu_operation
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.present.summary_view import show_summary
from nsw.present.terminal import console
from nsw.recipe.load import load_recipe_text

from .made import KERNEL, case, figure_row, gpu_row, make_run
from .test_steady import MS, iterations_row, part, timeline


def summarized(runs, asked=None, **tables):
    return summarize(CampaignData("sums-20261124-160605-5a9e", "s", None, runs, tables), asked or ReportRequest())


def screen(runs, asked=None, **tables):
    """Its blocks by their names; the headline as text."""
    blocks = first_screen_blocks(summarized(runs, asked, **tables))
    return {block.name: block for block in blocks} | {"headline": blocks[0].text}


def measured(unit="images/s", **figures):
    """Runs and their figures: `b8_n2=120.0`."""
    runs, rows = [], []
    for name, value in figures.items():
        params = {word[0]: int(word[1:]) for word in name.split("_")}
        runs.append(make_run(name, name, params=params))
        rows += [] if value is None else [figure_row(value, run=name, unit=unit)]
    return runs, rows


WEAK = ReportRequest(axis="n", kind="weak", figure="speed")


def test_efficiency_at_the_end_of_the_axis_from_best_to_worst():
    runs, figures = measured(b8_n1=100.0, b8_n2=120.0, b16_n1=100.0, b16_n2=190.0)
    shown = screen(runs, WEAK, figures=figures)
    assert shown["headline"] == "95 % efficiency at n=2, b=16; 60 % at b=8 (1 run each)"
    assert [row[:4] for row in shown["answer"].rows] == [(8, 100.0, 120.0, 60.0), (16, 100.0, 190.0, 95.0)]


def test_of_one_series_each_point_has_a_row():
    runs, figures = measured(n1=100.0, n2=190.0, n4=300.0)
    shown = screen(runs, WEAK, figures=figures)
    assert shown["headline"] == "75 % efficiency at n=4 (1 run each)"
    assert [row[0] for row in shown["answer"].rows] == [1, 2, 4]


def test_a_table_explains_the_words_that_it_uses_and_no_others():
    runs, figures = measured(n1=100.0, n2=190.0)
    legend = screen(runs, WEAK, figures=figures)["legend"]
    assert legend.text == "efficiency: what each GPU achieves, beside the fewest GPUs"
    assert "legend" not in screen(runs, figures=figures)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({(1, 0): (100, 110), (1, 1): (150, 160)}, "a=1 is 48 % faster than a=0 (speed) (2 runs each)"),
        ({(1, 0): (100, 130), (1, 1): (120, 150)}, "a=1 changes nothing beyond the scatter of the runs (17 % faster by speed)"),
        ({(1, 0): (100, 110), (1, 1): (150, 160), (2, 0): (100, 130), (2, 1): (110, 140)},
         "a=1 helps 1 of 2, 1 within the scatter of its runs (8.7 to 48 % faster by speed)"),
        ({(1, 0): (100, 130), (1, 1): (120, 150), (2, 0): (100, 130), (2, 1): (90, 120)},
         "a=1 changes nothing beyond the scatter of the runs (8.7 % slower to 17 % faster by speed)"),
    ],
)  # fmt: skip
def test_pairs_of_variants_whose_repeats_overlap_neither_help_nor_slow(values, says):
    runs = [make_run(f"{b}-{a}-{n}", f"b{b}_a{a}", params={"b": b, "a": a}) for b, a in values for n in range(2)]
    figures = [figure_row(values[b, a][n], run=f"{b}-{a}-{n}") for b, a in values for n in range(2)]
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"].startswith(says)


def test_one_point_or_no_figure_is_no_scaling():
    runs, figures = measured(n1=100.0)
    assert screen(runs, WEAK, figures=figures)["headline"].startswith("n1: speed 100.0 images/s")
    runs, figures = measured(n1=None, n2=None)
    assert "efficiency" not in screen(runs, WEAK, figures=figures)["headline"]


def test_cases_of_one_place_on_the_axis_are_a_sweep_over_the_rest():
    runs, figures = measured(b8_n1=100.0, b16_n1=190.0)
    shown = screen(runs, WEAK, figures=figures)
    assert "best 190.0 images/s at b=16" in shown["headline"]
    assert "efficiency" not in str(shown["answer"])


def test_of_repeats_the_efficiency_has_its_range():
    runs = [make_run(f"n{n}-{at}", f"n{n}", params={"n": n}) for n in (1, 2) for at in range(3)]
    values = {"n1": (100.0, 95.0, 105.0), "n2": (180.0, 170.0, 185.0)}
    figures = [figure_row(values[run.case_id][int(run.id[-1])], run=run.id) for run in runs]
    shown = screen(runs, WEAK, figures=figures)
    assert shown["headline"].endswith("(3 runs each)")
    assert shown["answer"].rows[-1][-1] == "81 to 97 %"


def test_along_one_number_it_is_said_where_the_figure_is_best_and_hardly_gains():
    runs, figures = measured(b1=10.0, b2=19.0, b4=30.0, b8=30.5, b16=31.0)
    assert screen(runs, figures=figures)["headline"] == (
        "sums: 5 cases; best 31.00 images/s at b=16, within 5 % of it from 4 on (1 run each)"
    )


def test_a_time_is_best_where_it_is_least():
    runs, figures = measured(unit="ms", b1=10.0, b2=5.0)
    assert screen(runs, figures=figures)["headline"] == "sums: 2 cases; best 5.00 ms at b=2 (1 run each)"


def test_without_a_timeline_it_is_said_what_shows_the_gpu_and_without_a_profile_what_shows_the_program():
    runs, figures = measured(b1=10.0)
    assert "`- host: {tool: cprofile}` (of Python)" in screen(runs, figures=figures)["passes"].text
    runs[0].gpus = 1
    assert "`- timeline: {}` among the recipe's passes shows it" in screen(runs, figures=figures)["passes"].text


def test_of_many_cases_those_are_shown_of_which_most_could_be_won():
    names = [f"b{at}" for at in range(1, 21)]
    runs = [timeline(name, name, b=at) for at, name in enumerate(names)]
    rows = [iterations_row(busy=10.0 + at, run=name) | {"med_gpu_ops": 100.0, "med_longest_gap_ns": 0.0}
            for at, name in enumerate(names)]  # fmt: skip
    parts = [part("steady", "k", 18 * MS, run=name) for name in names]
    gpu = [gpu_row("k", 18 * MS, run=name) for name in names]
    shown = screen(runs, gpu_summary=gpu, iterations=rows, phase_summary=parts)
    assert [row[0] for row in shown["answer"].rows] == list(range(15))
    assert shown["answer"].title == "The cases that weigh most"
    assert shown["answer"].omitted == 5
    assert shown["headline"].startswith(
        "sums: 20 of 20 cases are idle 20 % of their time or more, and why is not measured, most of all b1: idle 90 %"
    )


def profiled(free, held):
    """The note on what the profiler slowed, with these figures of the baseline and the timeline."""
    runs = [make_run(f"b{at}", "c") for at in range(len(free))] + [timeline(f"t{at}", "c") for at in range(len(held))]
    figures = [figure_row(value, run=run.id) for run, value in zip(runs, (*free, *held), strict=True)]
    note = screen(runs, figures=figures, gpu_summary=[gpu_row("k", MS, run="t0")]).get("slowed")
    return note and note.text


@pytest.mark.parametrize(
    ("free", "held", "times"),
    [((98.0, 100.0, 103.0), (79.0, 80.0, 82.0), "1.2x"),  # 1.25
     ((70.0, 100.0, 130.0), (60.0, 80.0, 90.0), None),  # within the scatter of the runs
     ((100.0,), (10.0,), "10.0x"), ((100.0,), (95.0,), None), ((100.0,), (120.0,), None)],
)  # fmt: skip
def test_a_profiler_that_slowed_the_program_is_told(free, held, times):
    said = f"The profiler slowed c {times}: iterations and their idle time are corrected for it." if times else None
    assert profiled(free, held) == said


def test_where_the_time_of_a_single_case_goes():
    parts = [part("steady", "gemm", 90 * MS, calls=18), part("steady", "reduce_kernel", 18 * MS, calls=36)]
    rows = [iterations_row(10 * MS, busy=60.0, memory=0.0) | {"med_gpu_ns": 6 * MS}]
    gpu = [gpu_row("gemm", 90 * MS), gpu_row("reduce_kernel", 18 * MS)]
    shown = screen([timeline()], gpu_summary=gpu, iterations=rows, phase_summary=parts)
    assert shown["headline"] == "c: an iteration takes 10.00 ms, 50 % of that is gemm (1 run each)"
    assert [row[:4] for row in shown["answer"].rows] == [
        ("gemm", 5 * MS, 50.0, 1.0), ("reduce_kernel", 1 * MS, 10.0, 2.0), ("GPU idle", 4 * MS, 40.0, None),
    ]  # fmt: skip


def test_kernels_that_run_side_by_side_take_no_share_of_an_iteration():
    parts = [part("steady", "price", 720 * MS, calls=72)]
    rows = [iterations_row(10 * MS, busy=100.0, memory=0.0) | {"med_gpu_ns": 40 * MS}]
    shown = screen([timeline()], gpu_summary=[gpu_row("price", 720 * MS)], iterations=rows, phase_summary=parts)
    assert "4.0 launches of price at a time on average" in shown["headline"]


NAMES = [f"nvjet_{n}" for n in range(9)]


@pytest.mark.parametrize(
    ("names", "rows"),
    [(NAMES[:8], NAMES[:8]), (NAMES, ["GEMM"]), ([*NAMES, "mine", "yours", "ours"], ["GEMM", "other kernels"]),
     ([*NAMES, "mine", "yours", "ours", "theirs"], [*NAMES[:8], "the rest"])],
)  # fmt: skip
def test_kernels_are_classed_where_they_are_many_and_most_names_tell_a_class(names, rows):
    shown = screen([timeline()], gpu_summary=[gpu_row(name, MS) for name in names])
    assert [row[0] for row in shown["answer"].rows] == rows


def test_copies_have_their_speed():
    copy = gpu_row("[CUDA memcpy HtoD]", MS, kind="memcpy", total_bytes=8 << 20)
    rows = screen([timeline()], gpu_summary=[gpu_row("k", MS), copy])["answer"].rows
    assert [row[-1] for row in rows] == [None, (8 << 20) * 1e3]


def test_of_a_report_without_kernels_it_is_said():
    rows = [gpu_row("[CUDA memset]", MS, kind="memset"), gpu_row("[CUDA memcpy HtoD]", 2 * MS, kind="memcpy")]
    assert screen([timeline()], gpu_summary=rows)["headline"].startswith("c: 2 GPU operations and no kernel, 3.000 ms")


def test_of_a_profile_of_the_cpu_the_functions_are_shown():
    rows = [
        {"run": "r", "report": "a", "name": name, "self_s": s, "calls": 2} for name, s in (("load", 3.0), ("step", 1.0))
    ]
    shown = screen([make_run()], functions=rows)
    assert shown["headline"] == "c: load takes 75 % of self time (1 run each)"
    assert [row[:3] for row in shown["answer"].rows] == [("load", 3e9, 75.0), ("step", 1e9, 25.0)]


def test_where_there_is_no_finding_the_command_for_the_slowest_case_is_named():
    runs, figures = measured(unit="ms", b1=10.0, b2=50.0, b3=20.0)
    rows = [{"run": run.id, "report": "a", "name": "load", "self_s": 3.0, "calls": 2} for run in runs]
    data = CampaignData("sums-20261124-160605-5a9e", "s", None, runs, {"figures": figures, "functions": rows})
    stream = io.StringIO()
    show_summary(console(stream), summarize(data, ReportRequest()), full=False, campaign="sums")
    assert stream.getvalue().endswith("`nsw summarize sums --case b2` shows where the time of the slowest case goes\n")


def test_a_table_in_the_order_of_the_matrix_knows_which_cases_weigh_most():
    runs, figures = measured(unit="ms", b1=50.0, b2=10.0, b3=20.0)
    table = screen(runs, figures=figures)["answer"]
    assert ([row[0] for row in table.rows], table.by_weight) == ([1, 2, 3], (1, 2, 0))


def printed_screen(runs, figures):
    stream = io.StringIO()
    data = CampaignData("sums-20261124-160605-5a9e", "s", None, runs, {"figures": figures})
    show_summary(console(stream), summarize(data, ReportRequest()), full=False, campaign="sums")
    return stream.getvalue()


def test_where_repeats_decide_which_case_is_best_the_comparison_with_the_next_is_named():
    runs = [make_run(f"b{b}-{n}", f"b{b}", params={"b": b}) for b in (1, 2, 3) for n in range(2)]
    figures = [figure_row(value, run=run.id) for run, value in zip(runs, (10, 11, 30, 31, 20, 21), strict=True)]
    printed = printed_screen(runs, figures)
    assert "best 30.50 images/s at b=2, whose runs beat those of all other cases (2 runs each)" in printed
    assert printed.endswith("`nsw compare sums b3 b2` shows how much the second gains, and how certain that is\n")
    assert "nsw compare" not in printed_screen(runs[::2], figures[::2])


def test_of_two_cases_the_comparison_is_named():
    runs, figures = measured(b1=10.0, b2=50.0)
    assert "`nsw compare sums b1 b2` shows how much the second gains" in printed_screen(runs, figures)


def test_below_idle_time_whose_gaps_old_tables_lack_stands_the_command_that_reads_them_again():
    kernels = [part("steady", "gemm", 20 * MS, calls=36)]
    rows = [iterations_row(4 * MS, busy=32.0) | {"med_gpu_ops": 125.0, "med_longest_gap_ns": 2 * MS}]
    tables = {"gpu_summary": kernels, "phase_summary": kernels, "iterations": rows}
    data = CampaignData("sums-20261124-160605-5a9e", "s", None, [timeline()], tables)
    printed = []
    for reports in ("readable", "absent"):
        stream = io.StringIO()
        answer = summarize(replace(data, reports=reports), ReportRequest())
        show_summary(console(stream), answer, full=False, campaign="sums")
        printed.append(stream.getvalue())
    assert "\n  `nsw reread sums`\n" in printed[0]
    assert "\n  `nsw reread" not in printed[1]
    assert "Record the timeline again" in printed[1]


def test_a_function_that_only_waits_is_not_what_a_headline_begins_with():
    rows = [
        {"run": "r", "name": name, "self_s": s, "calls": 2} for name, s in (("time.sleep", 3.0), ("decode_mcu", 1.0))
    ]
    shown = screen([make_run(pass_kind="host")], functions=rows)
    assert shown["headline"].startswith("c: decode_mcu takes 25 % of self time, 75 % is waiting (time.sleep)")
    assert [row[:2] for row in shown["answer"].rows] == [("time.sleep", "waiting"), ("decode_mcu", "decoding JPEG")]


def test_of_api_calls_alone_those_are_shown():
    calls = [{"run": "r", "report": "a", "name": "cudaFree", "total_ns": 5.0, "calls": 100}]
    assert screen([make_run()], api_summary=calls)["headline"].startswith("c: cudaFree takes 100 % of CUDA API time")


def test_a_case_of_which_nothing_was_read_says_so():
    shown = screen([make_run()])
    assert shown["headline"] == "c: nothing was read"
    assert "answer" not in shown


CLASSES = """nsw: 1
name: t
app: {command: ./train}
report: {classes: {halo: '^(un)?pack_', chemistry: 'react_\\w+'}}
"""


def test_a_recipes_classes_are_counted_first():
    classes = load_recipe_text(CLASSES).recipe.report.classes
    assert classes == {"halo": r"^(un)?pack_", "chemistry": r"react_\w+"}
    assert (classify_gpu_operation("unpack_gemm", recipe_classes=classes), classify_gpu_operation("unpack_gemm")) == (
        "halo",
        "other kernels",
    )
    parts = [part("steady", "react_gemm", 90 * MS), part("steady", "nvjet_tst", 18 * MS)]
    gpu = [gpu_row("react_gemm", 90 * MS), gpu_row("nvjet_tst", 18 * MS)]
    shown = screen(
        [timeline()],
        ReportRequest(classes=classes),
        gpu_summary=gpu,
        iterations=[iterations_row()],
        phase_summary=parts,
    )
    assert [row[0] for row in shown["answer"].rows][:2] == ["chemistry", "GEMM"]


def sweep(sizes, blocks, value, *, repeats=1, **how):
    """The screen of a sweep of two parameters; `value` gives the figure of a case and repeat."""
    runs = [make_run(f"{s}-{b}-{n}", f"{s}-{b}", params={"size": s, "block": b}) for s in sizes for b in blocks
            for n in range(repeats)]  # fmt: skip
    figures = [figure_row(value(*map(int, run.id.split("-"))), run=run.id, **how) for run in runs]
    figures += [figure_row(1.0, run=run.id, name="memory", unit="MB") for run in runs]
    return screen(runs, figures=figures)


def test_two_parameters_make_a_grid_with_the_best_marked():
    shown = sweep((1, 2, 3), (1, 2, 4, 8), lambda size, block, n: size * 100.0 + block + n, repeats=2)
    assert (
        shown["headline"]
        == "sums: 12 cases; best 308.5 images/s at size=3, block=8, whose runs beat those of all other cases (2 runs each)"
    )
    table = shown["answer"]
    assert table.title == "speed, median images/s: * best; repeats differ by up to 1 %"
    assert shown["figures"].text == "Also measured: memory (`--figure memory` shows it)."
    assert [column.title for column in table.columns] == ["size", "block=1", "block=2", "block=4", "block=8"]
    assert table.rows[-1] == ("3", 301.5, 302.5, 304.5, 308.5)
    assert table.best == (len(table.rows) - 1, 4)


@pytest.mark.parametrize(("unit", "first"), [("images/s", 20.0), ("ms", 1.0)])
def test_a_long_sweep_is_sorted_by_its_figure(unit, first):
    runs, figures = measured(unit=unit, **{f"b{at}": float(at) for at in range(1, 21)})
    table = screen(runs, figures=figures)["answer"]
    assert table.rows[0][1] == first
    assert len(table.rows) == 15


def test_a_second_figure_and_the_ranges_of_repeats_have_columns():
    table = sweep((1,), (1, 2), lambda _size, block, n: block * 10.0 + n, repeats=2)["answer"]
    assert [column.title for column in table.columns] == [
        "block",
        "speed, median images/s",
        "its range",
        "memory, median MB",
    ]
    assert table.rows[0] == (1, 10.5, (10.0, 11.0), 1.0)


def test_scatter_of_a_case_is_said_before_anything_else():
    headline = sweep((1,), (1, 2), lambda _size, block, n: block * 27.0**n, repeats=2)["headline"]
    assert headline.startswith("Repeats of 1-1 differ 27 times (speed 1.00 to 27.00 images/s). ")
    assert "and 1-1 may be as good: repeats overlap" in headline


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({0: (90, 110), 1: (91, 112), 2: (80, 111)}, "a makes no difference beyond the scatter of the runs (2 runs"),
        ({0: (90, 110), 1: (91, 112), 2: (40, 60)},
         "a=1 is the fastest: a=2 2.03x slower; no difference beyond the scatter of the runs: a=0 (2 runs each)"),
        ({0: (100, 100), 1: (100, 100), 2: (98, 98)}, "a=0 is the fastest: a=2 2 % slower; no difference"),
    ],
)  # fmt: skip
def test_no_variant_is_slower_by_nothing(values, says):
    runs = [make_run(f"{a}-{n}", f"a{a}", params={"a": a}) for a in values for n in range(2)]
    figures = [figure_row(values[a][n], run=f"{a}-{n}") for a in values for n in range(2)]
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"].startswith(says)


def test_the_fastest_variant_is_that_of_the_best_series():
    runs, figures = measured(s1_a0=1.0, s1_a1=4.0, s1_a2=2.0, s2_a0=20.0, s2_a1=10.0, s2_a2=5.0)
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"] == "a=0 is the fastest at s=2: a=1 2x slower, a=2 4x slower (1 run each)"


def test_of_times_the_series_that_takes_most_is_first():
    runs, figures = measured(unit="ms", s1_a0=1.0, s1_a1=4.0, s1_a2=2.0, s2_a0=20.0, s2_a1=10.0, s2_a2=5.0)
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"] == "a=2 is the fastest at s=2: a=0 4x slower, a=1 2x slower (1 run each)"
    assert [row[0] for row in shown["answer"].rows] == [2, 2, 2, 1, 1, 1]


def test_a_variant_that_is_the_fastest_of_each_series_is_named_once():
    runs, figures = measured(s1_a0=4.0, s1_a1=1.0, s1_a2=2.0, s2_a0=20.0, s2_a1=10.0, s2_a2=5.0)
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"] == "a=0 is the fastest at each s: a=1 2 to 4x slower, a=2 2 to 4x slower (1 run each)"
    assert [row[0] for row in shown["answer"].rows] == [1, 1, 1, 2, 2, 2]


def test_a_single_variant_is_no_fastest():
    runs, figures = measured(a0=4.0, a1=None, a2=None)
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"].startswith("only a=0 was measured: 4.00 images/s, nothing to compare it with")


def test_the_row_that_a_variant_does_not_help_is_marked():
    values = {(1, 0): (100, 110), (1, 1): (150, 160), (2, 0): (100, 130), (2, 1): (110, 140)}
    runs = [make_run(f"{b}-{a}-{n}", f"b{b}_a{a}", params={"b": b, "a": a}) for b, a in values for n in range(2)]
    figures = [figure_row(values[b, a][n], run=f"{b}-{a}-{n}") for b, a in values for n in range(2)]
    table = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)["answer"]
    assert [row[3:] for row in table.rows] == [
        ("helps", "36 to 60 % faster"), ("scatter", "15 % slower to 40 % faster")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("unit", "after", "says"),
    [("s", 2.56, "a=1 takes 46 % longer than a=0 (speed)"), ("s", 0.875, "a=1 is 2x faster than a=0 (speed)"),
     ("/s", 0.875, "a=1 is 2x slower than a=0 (speed)"), ("/s", 2.56, "a=1 is 46 % faster than a=0 (speed)"),
     ("/s", 175.0, "a=1 is 100x faster than a=0 (speed)"), ("/s", 1.7501, "a=1 is as fast as a=0 (speed)"),
     ("s", 175.0, "a=1 is 100x slower than a=0 (speed)")],
)  # fmt: skip
def test_the_change_of_a_time_or_a_rate_is_a_factor(unit, after, says):
    runs, figures = measured(unit=unit, a0=1.75, a1=after)
    shown = screen(runs, ReportRequest(compare="a", baseline=0, figure="speed"), figures=figures)
    assert shown["headline"].startswith(says)


def test_the_figure_that_is_asked_for_makes_the_grid():
    runs = [make_run(f"{s}-{b}", f"{s}-{b}", params={"size": s, "block": b}) for s in range(3) for b in range(4)]
    for run in runs:
        run.gpus = 0
    figures = [figure_row(1.0, run=run.id) for run in runs]
    figures += [figure_row(100.0 + at, run=run.id, name="memory", unit="bytes moved") for at, run in enumerate(runs)]
    shown = screen(runs, ReportRequest(figure="memory", higher_is_better=False), figures=figures)
    assert "best 100.0 bytes moved at size=0, block=0" in shown["headline"]
    assert shown["answer"].title == "memory, bytes moved: * best"
    assert shown["figures"].text == "Also measured: speed (`--figure speed` shows it)."


def test_a_baseline_that_was_not_selected_is_said_to_be_for_comparison():
    runs, figures = measured(b8_n1=100.0, b8_n2=120.0, b16_n1=100.0, b16_n2=190.0)
    summary = summarize(CampaignData("s-1-2-3", "s", None, runs, {"figures": figures}), WEAK).only({"b8_n2", "b16_n2"})
    assert first_screen_blocks(summary)[0].text.endswith("(1 run each, for comparison b8_n1, b16_n1)")


def test_columns_of_a_scaling_table_have_the_figures_name_and_unit():
    runs, figures = measured(n1=100.0, n2=190.0)
    assert screen(runs, WEAK, figures=figures)["answer"].columns[1].title == "speed, images/s"


def test_beside_a_slow_iteration_the_busy_share_is_that_of_the_median_one():
    runs = [timeline(f"b{at}", f"b{at}", b=at) for at in range(2)]
    rows = [iterations_row(busy=99.0, slowest=900 * MS, run="b0"), iterations_row(busy=99.0, run="b1")]
    parts = [part("steady", "k", 18 * MS, run=run.id) for run in runs]
    gpu = [gpu_row("k", 18 * MS, run=run.id) for run in runs]
    shown = screen(runs, gpu_summary=gpu, iterations=rows, phase_summary=parts)
    assert "GPU busy, median iteration" in [column.title for column in shown["answer"].columns]


def test_a_gpu_without_iterations_has_a_row_of_its_idle_time_and_shares_that_add_up():
    of_gpu = {"run": "r", "report": "a", "pid": 1, "device": 0, "phase": None}
    use = {**of_gpu, "span_ns": 100 * MS, "busy_ns": 16 * MS, "operations": 1000, "kernels": 1000, "iterations": None}
    gap = {**of_gpu, "cause": "launch", "length": "short", "gaps": 999, "total_ns": 84 * MS, "med_ns": 0.084 * MS}
    tables = {"gpu_summary": [gpu_row("touch", 16 * MS, calls=1000)], "gpu_use": [use], "gaps": [gap]}
    table = screen([timeline()], **tables)["answer"]
    assert table.columns[2].title == "of the time"
    assert [(row[0].partition(" (")[0], row[2]) for row in table.rows] == [("touch", 16.0), ("GPU idle", 84.0)]
    assert table.whole == ("share_pct",)


def test_what_runs_at_the_same_time_is_taken_off_so_that_shares_add_up():
    parts = [
        part("steady", "gemm", 0.8 * 18 * MS),
        part("steady", "[CUDA memcpy Host-to-Device]", 0.7 * 18 * MS, kind="memcpy"),
    ]
    row = iterations_row() | {"med_gpu_ns": 1.5 * MS}
    gpu = [gpu_row("gemm", 0.8 * 18 * MS), gpu_row("[CUDA memcpy Host-to-Device]", 0.7 * 18 * MS, kind="memcpy")]
    shown = screen([timeline()], gpu_summary=gpu, iterations=[row], phase_summary=parts)
    rows = {row[0]: row[2] for row in shown["answer"].rows}
    assert sum(rows.values()) == pytest.approx(100)
    assert rows["less what runs at the same time"] < 0
    largest = max(rows.values())
    assert f"{largest:.0f} % of that is gemm" in shown["headline"]


def test_where_kernels_overlap_the_headline_has_their_share_of_all_kernels_time():
    times = {"gemm": 0.8 * 18 * MS, "add": 0.6 * 18 * MS}
    parts = [part("steady", name, ns) for name, ns in times.items()]
    gpu = [gpu_row(name, ns) for name, ns in times.items()]
    rows = [iterations_row() | {"med_gpu_ns": 1.4 * MS}]
    shown = screen([timeline()], gpu_summary=gpu, iterations=rows, phase_summary=parts)
    assert "57 % of its GPU work is gemm" in shown["headline"]


def test_the_largest_part_of_a_report_of_counters_is_a_share_and_no_sentence():
    kernels = (replace(KERNEL, share_pct=26.0), replace(KERNEL, name="other", share_pct=20.0))
    assert several_cases._largest_time_share_cell(replace(case(), kernels=kernels), dict) == "26 % k"
