"""Two sides beside each other: which cases belong together, which runs are pairs, what is said of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from nsw.analysis.certainty import Floor
from nsw.analysis.compared_screen import Comparison, comparison_blocks, log_ratio_to_percent, verdict_text
from nsw.analysis.difference import (
    Change,
    Difference,
    Operation,
    add_shapes_and_ranges,
    explain_difference,
    renamed_kernel_names,
)
from nsw.analysis.first_screen import find_headline
from nsw.analysis.gate import Outcome, gate_outcome, judge_rules
from nsw.analysis.sides import (
    Adding,
    Side,
    compare_sides,
    comparison_refusal_reason,
    environment_difference_lines,
    match_cases,
    program_difference_text,
    unmatched_cases,
)
from nsw.campaign.compare import compare
from nsw.present.summary_view import as_text, column_texts
from nsw.recipe.units import parse_tolerance

QUIET = Floor(0.005, 0.005, 11)


@dataclass(frozen=True)
class Run:
    id: str
    case_id: str
    params: dict[str, Any] = field(default_factory=dict)
    pass_name: str = "baseline"
    pass_kind: str = "baseline"
    repeat: int = 1
    submission: str = "j1-1"
    state: str = "done"
    host: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Spent:
    span_ns: float
    computing_pct: float
    idle_pct: float
    copies_pct: float = 0.0
    exposed_pct: float = 0.0
    is_mean: bool = False


@dataclass(frozen=True)
class Case:
    spent: Spent | None
    traced_ns: float = 0.0


def side(name: str, values: dict[str, list[float]], *, unit: str = "images/s", source: str = "", **how: Any) -> Side:
    """A side with a figure; `values` has those of the repeats of each case, such as `n=1`, in one job."""
    runs, rows = [], []
    for case, some in values.items():
        params = dict(part.split("=") for part in case.split(",") if part)
        for repeat, value in enumerate(some, 1):
            id_ = f"{name}.{case}.r{repeat}"
            runs.append(Run(id_, f"{name} {case}", params, repeat=repeat))
            rows.append({"run": id_, "name": "speed", "value": value, "unit": unit})
    return Side(name, source or name, runs, {"figures": rows}, "speed", **how)


def test_cases_belong_together_by_the_parameters_that_are_not_compared():
    first = side("a", {"side=before,n=1": [1.0], "side=before,n=2": [1.0], "side=before,n=4": [1.0]})
    second = side("b", {"side=after,n=2": [1.0], "side=after,n=1": [1.0]})
    pairs = match_cases(first, second)
    assert [(m.name, m.first[0].params["n"]) for m in pairs] == [("n=2", "2"), ("n=1", "1")]
    assert unmatched_cases(first, second, pairs) == (["a side=before,n=4"], [])
    assert len(match_cases(side("a", {"n=1": [1.0]}), side("b", {"m=7": [1.0]}))) == 1  # one case each


@pytest.mark.parametrize(
    ("unit", "after", "verdict"),
    [
        ("images/s", 110.0, "10 % faster"),
        ("images/s", 90.0, "10 % slower"),
        ("images/s", 400.0, "4x faster"),
        ("ms/step", 90.0, "takes 10 % less time"),
        ("ms/step", 146.0, "takes 46 % longer"),
        ("ms/step", 400.0, "4x slower"),
        ("s", 25.0, "4x faster"),
        ("s", 3000.0, "30x slower"),
    ],
)
def test_faster_is_more_of_a_rate_and_less_of_a_time(unit, after, verdict):
    how = {"unit": unit, "floors": {"speed": QUIET}}
    (row,) = compare_sides(side("a", {"": [100.0, 100.1, 99.9]}, **how), side("b", {"": [after] * 3}, **how))
    assert verdict_text(row).startswith(verdict)


def test_runs_of_a_block_are_pairs_and_all_others_are_not():
    noisy = [100.0, 120.0, 80.0, 110.0, 95.0, 105.0, 90.0]
    better = [value * 1.05 for value in noisy]
    how = {"source": "c", "in_blocks": True}
    (pairs,) = compare_sides(side("a", {"": noisy}, **how), side("b", {"": better}, **how))
    assert pairs.verdict == "faster"
    assert pairs.estimate.is_paired
    (runs,) = compare_sides(side("a", {"": noisy}), side("b", {"": better}))
    assert runs.verdict == "cannot tell"
    of_retry = side("b", {"": better}, **how)
    moved = replace(of_retry, runs=[replace(run, submission="j1-2") for run in of_retry.runs])
    (retried,) = compare_sides(side("a", {"": noisy}, **how), moved)
    assert not retried.estimate.is_paired


def test_unlike_units_and_values_without_a_ratio_are_no_comparison():
    (row,) = compare_sides(side("a", {"": [1.0]}), side("b", {"": [1.0]}, unit="ms"))
    assert row.missing == "the units are unlike: images/s and ms"
    (row,) = compare_sides(side("a", {"": [0.0]}), side("b", {"": [1.0]}))
    assert "no ratio" in row.missing


def test_unlike_chips_are_refused_and_what_else_differs_is_said():
    first = side("a", {"": [1.0]}, conditions={"chip": "H100", "driver": "550", "files": "x=1\ny=2"})
    second = side("b", {"": [1.0]}, conditions={"chip": "A100", "driver": "560", "files": "x=1\ny=3"})
    assert comparison_refusal_reason(first, second) == "the chips are unlike: a ran on H100, b on A100"
    assert environment_difference_lines(first, second) == ["chip: H100 and A100", "driver: 550 and 560"]
    assert program_difference_text(first, second) == "y changed"
    assert program_difference_text(first, first) is None
    assert comparison_refusal_reason(first, first) is None
    assert environment_difference_lines(first, first) == []


def test_work_is_unlike_only_where_iterations_copy_clearly_more():
    def lines(*copied: float | None) -> list[str]:
        return environment_difference_lines(*(side("a", {"": [1.0]}, copied_bytes=each) for each in copied))

    assert lines(605e3, 586e3) == lines(0.0, 0.0) == lines(None, None) == []
    assert lines(1024.0, 2048.0) == ["copied to a GPU in an iteration: 1.000 KiB and 2.000 KiB"]
    assert lines(None, 1024.0) == ["copied to a GPU in an iteration: not known and 1.000 KiB"]


def iterations_side(name: str, avg_ns: float, most_ns: float, count: int = 100, figures: Any = ()) -> Side:
    """A report whose median iteration takes 10 ms, 8 of them on the GPU."""
    common = {"run": name, "host": "h", "pid": 1, "rank": None, "device": 0}
    busy_pct = 100 * 8e6 / avg_ns
    row = {
        **common, "found_by": "nvtx", "name": "step", "iterations": count, "warmup": 0, "steady": count, "med_ns": 10e6,
        "avg_ns": avg_ns, "min_ns": 10e6, "max_ns": most_ns, "stddev_ns": avg_ns / 10, "med_gpu_ns": 8e6,
        "med_gpu_ops": 1, "gpu_busy_pct": busy_pct, "med_gpu_busy_pct": 80.0, "med_memory_pct": 0.0,
        "med_memory_alone_pct": 0.0, "med_communication_pct": 0.0, "med_communication_alone_pct": 0.0,
        "slowest": 11, "slowest_gpu_busy_pct": 1.0,
    }  # fmt: skip
    use = {**common, "iterations": count, "span_ns": count * avg_ns, "busy_ns": count * 8e6, "operations": count}
    gpu = {**common, "name": "gemm", "kind": "kernel", "total_ns": count * 8e6, "calls": count}
    tables = {"iterations": [row], "gpu_use": [use], "gpu_summary": [gpu], "figures": figures}
    return Side(name, name, [Run(name, name, pass_name="timeline", pass_kind="timeline")], tables)


def test_where_a_report_speaks_of_the_mean_iteration_both_sides_do():
    waiting, mended = iterations_side("a", 20e6, 60e6), iterations_side("b", 10e6, 10e6)
    for sides, times in (((waiting, mended), (20e6, 10e6)), ((mended, waiting), (10e6, 20e6))):
        comparison = compare(*sides)
        (row,) = comparison.rows
        assert (row.what, row.first, row.second) == ("mean iteration", *times)
        (explained,) = comparison.explained.values()
        assert (explained.before, explained.after) == pytest.approx(times)
        assert explained.sentence.startswith("The mean iteration takes 10.00 ms ")
    assert [row.what for row in compare(mended, mended).rows] == ["iteration"]


def test_where_slow_iterations_alone_explain_a_figure_they_are_named():
    usual, slow = (
        iterations_side(name, ns, longest, 25, [{"run": name, "name": "speed", "value": 1e9 / ns, "unit": "steps/s"}])
        for name, ns, longest in (("a", 10e6, 10e6), ("b", 14e6, 110e6))
    )
    (finding,) = (block for block in comparison_blocks(compare(usual, slow)) if block.name == "difference")
    assert "The mean iteration takes 4.000 ms more: the GPU waits 4.000 ms more for the host" in finding.text
    assert "Slow iterations do it: iteration 11 of 25 (counted from 0) of b takes 110 ms" in finding.text


def test_the_screen_says_verdict_sizes_and_what_would_decide():
    cases = {"n=1": [100.0, 101.0, 99.0], "n=2": [100.0, 101.0, 99.0]}
    after = {"n=1": [120.0, 121.0, 119.0], "n=2": [101.0, 103.0, 100.0]}
    how = {"floors": {"speed": QUIET}}
    first, second = side("a", cases, **how), side("b", after, **how)
    made = Comparison(first, second, "case", tuple(compare_sides(first, second)), differs=("driver: 1 and 2",))
    blocks = comparison_blocks(made)
    assert blocks[0].text == "Not alike: driver: 1 and 2"
    assert find_headline(blocks) == "b beside a, 2 cases: 1 faster (20 %), 1 cannot be told"
    (finding,) = (block for block in blocks if block.name == "cannot tell")
    assert "n=2: 3 runs a side would have shown a difference of" in finding.text
    assert re.search(r"about \d+ more runs? of each side would decide: `repeats: \d+` in the recipe", finding.text)


def text_of_blocks(first: Side, second: Side, **more: Any) -> str:
    comparison = Comparison(first, second, "case", tuple(compare_sides(first, second)), **more)
    return "\n".join(block.text for block in comparison_blocks(comparison) if hasattr(block, "text"))


@pytest.mark.parametrize(
    ("gpus", "unit", "text"),
    [
        ((1, 4), "images/s", "b has 4 times the GPUs and 2.67 times the images/s: 67 % efficiency"),
        ((4, 1), "images/s", "a has 4 times the GPUs and 0.375 times the images/s: 9 % efficiency"),
        ((2, 2), "images/s", ""),
        ((1, 4), "ms", ""),
    ],
)
def test_rates_over_unlike_numbers_of_gpus_have_a_factor_and_an_efficiency(gpus, unit, text):
    difference = explain_difference(
        "a ", (Case(Spent(3e6, 75.0, 25.0)), Case(Spent(5e6, 75.0, 25.0))),
        tuple([Operation("gemm", "kernel", "GEMM", ns, 1)] for ns in (1e6, 2e6)),
    )  # fmt: skip
    more = {"gpus": {"b ": gpus}, "explained": {"b ": difference}}
    shown = text_of_blocks(side("a", {"": [300.0]}, unit=unit), side("b", {"": [800.0]}, unit=unit), **more)
    assert text in shown
    assert ("efficiency" in shown) is bool(text)
    assert ("The figure is of all GPUs, an iteration is that of one" in shown) is (gpus[0] != gpus[1] and unit != "ms")


def test_reports_of_different_programs_have_times_and_no_verdict_and_a_changed_program_has_one():
    def report(name: str, copied: float, **kernels: float) -> Side:
        rows = [{"run": name, "name": k, "kind": "kernel", "total_ns": ns, "calls": 1} for k, ns in kernels.items()]
        return Side(name, name, [Run(name, name)], {"gpu_summary": rows}, copied_bytes=copied)

    before, another = report("a", 1e6, conv=3e6, mul=1e6), report("b", 1e3, linear=1e6, mul=2e3)
    blocks = comparison_blocks(compare(before, another))
    assert blocks[0].text == (
        "Not alike: kernels: 1 in a alone, 1 in b alone, 1 in both (different programs, whose times have no verdict)"
    )
    assert find_headline(blocks) == "different programs: GPU time 4 ms in a, 1 ms in b"
    for by in ("case", "kernel"):
        rows = compare(before, another, by).rows
        assert {row.missing for row in rows} <= {"different programs", "only in a", "only in b"}
        assert all(row.first or row.second for row in rows)
    fused = report("b", 1.05e6, linear=1e6, mul=2e3)  # as much is copied: the same work by other kernels
    part = report("b", 1e3, conv=1e6, mul=2e3)
    for after in (fused, part):
        assert [row.verdict for row in compare(before, after).rows] == ["faster"]


def test_gpu_work_outside_of_the_iterations_that_changes_much_is_told_with_what_changed():
    def report(name: str, outside: float) -> Side:
        def row(kernel: str, ns: float, **more: Any) -> dict[str, Any]:
            return {
                "run": name,
                "report": name,
                "pid": 1,
                "name": kernel,
                "kind": "kernel",
                "total_ns": ns,
                "calls": 10,
                **more,
            }

        steady = {"phase": "steady", "summary": "gpu_summary", "device": 0}
        tables = {
            "gpu_summary": [row("step", 40e6), row("assign", outside)],
            "phase_summary": [row("step", 40e6, **steady), row("assign", outside, **steady | {"phase": "setup"})],
        }
        return Side(name, name, [Run(name, name)], tables)

    (line,) = compare(report("a", 60e6), report("b", 12e6)).differs
    assert line == (
        "GPU work outside of the iterations, which alone are compared: 60 ms and 12 ms (assign: 60 ms and 12 ms)"
    )
    assert compare(report("a", 60e6), report("b", 58e6)).differs == ()


def test_reports_of_counters_of_different_programs_have_no_verdict_and_one_kernel_a_side_is_a_pair():
    def report(name: str, **kernels: float) -> Side:
        rows = [{"run": name, "name": k, "kind": "kernel", "total_ns": ns, "calls": 1} for k, ns in kernels.items()]
        return Side(name, name, [Run(name, name)], {"gpu_summary": rows})

    lattice, solver = report("a", stream=3e6, collide=1e6), report("b", csrmv=2e6, dot=1e6)
    assert {row.missing for row in compare(lattice, solver).rows} == {"different programs"}
    naive, rewritten = report("a", naive=3e6), report("b", tiled=1e6)
    (row,) = compare(naive, rewritten, "kernel").rows
    assert (row.what, row.first, row.second, row.verdict) == ("naive -> tiled", 3e6, 1e6, "faster")
    metrics = [{"run": n, "kernel": n, "portable": "duration", "portable_value": ns, "portable_unit": "ns"}
               for n, ns in (("a", 3e6), ("b", 1e6))]  # fmt: skip
    sides = [Side(n, n, [Run(n, n)], {"metrics": metrics}) for n in "ab"]
    assert [(row.what, row.verdict) for row in compare(*sides, "metric").rows] == [("duration of a -> b", "lower")]
    assert [(row.what, row.verdict) for row in compare(*sides, "kernel").rows] == [("a -> b", "faster")]


def test_what_was_counted_beside_a_kernel_does_not_make_its_time_less_certain():
    def report(name: str, duration: float, count: int) -> Side:
        values = {"duration": (duration, "ns")} | {f"rate_{n}": (1.0 + n / 1000, "GB/s") for n in range(count)}
        rows = [{"run": name, "kernel": "k", "portable": metric, "portable_value": value * (1 + (name == "b") / 1000),
                 "portable_unit": unit} for metric, (value, unit) in values.items()]  # fmt: skip
        return Side(name, name, [Run(name, name)], {"metrics": rows})

    for count in (0, 60):
        rows = compare(report("a", 1.08e6, count), report("b", 1.63e6, count), "metric").rows
        assert [row.verdict for row in rows if row.what == "duration of k"] == ["higher"]


def test_a_note_of_both_sides_is_printed_once():
    first, second = side("a", {"": [1.0]}, note="recorded"), side("b", {"": [1.0]}, note="recorded")
    assert text_of_blocks(first, second).count("recorded") == 1
    assert "A: a of a (recorded), B: b" in text_of_blocks(first, side("b", {"": [1.0]})).replace(
        "A: a (", "A: a of a ("
    )


def test_what_disturbed_the_runs_is_beside_their_verdict():
    quiet = {"steal_pct": 0.0, "load_before": 0.1, "cores": 2, "host": "n1", "memory_before_mib": 0.0,
             "busy_before_pct": 0.0, "ecc_errors": 0.0, "sm_mhz": None, "memory_mhz": None, "gpu": None,
             "heat_limited_pct": 0.0, "setting_limited_pct": 0.0, "power_limited_pct": 0.0}  # fmt: skip
    values = [100.0, 101.0, 99.0, 100.0, 180.0]
    first, second = side("before", {"": values}), side("after", {"": [100.0] * 5})
    assert "outlier: before..r5: speed is 180.0 images/s, 1.8 times the median of 5 repeats" in text_of_blocks(
        first, second
    )
    loaded = [quiet | {"run": run.id, "load_before": 9.0} for run in second.runs[:1]]
    second = side("after", {"": [100.0] * 5})
    calm = text_of_blocks(first, second)
    second = replace(second, tables={**second.tables, "conditions": loaded})
    text = text_of_blocks(first, second)
    assert "the host n1 was loaded during after..r1: 9 processes ran on its 2 cores" in text
    assert "was loaded" not in calm


# --- what did it ----------------------------------------------------------------------------------------------------


def test_the_parts_of_a_difference_add_up_to_it():
    before = [Operation("gemm_a", "kernel", "GEMM", 1.2e6, 2), Operation("relu", "kernel", "elementwise", 3e5, 4)]
    after = [Operation("relu", "kernel", "elementwise", 3.1e5, 4)]
    sides = Case(Spent(2e6, 75.0, 25.0)), Case(Spent(1e6, 31.0, 69.0))
    made = explain_difference("n=1", sides, (before, after))
    assert made.ns == pytest.approx(-1e6)
    assert sum(change.ns for change in made.changes) == pytest.approx(made.ns)
    assert made.sentence == (
        "An iteration takes 1.000 ms less: gemm_a is gone, 1.200 ms less; the GPU waits 0.190 ms more for the host;"
        " the rest takes 0.010 ms more"
    )
    whole = explain_difference("n=1", (Case(None), Case(None)), (before, after))
    assert not whole.of_iteration
    assert sum(change.ns for change in whole.changes) == pytest.approx(whole.ns) == pytest.approx(3.1e5 - 1.5e6)


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({}, "renamed"),
        ({"group": "reduction"}, "new"),
        ({"calls": 3}, "new"),
        ({"shapes": frozenset({"other"})}, "new"),
        ({"ranges": frozenset({"forward"})}, "renamed"),
    ],
)
def test_a_kernel_of_another_name_is_the_same_by_class_launches_shape_and_range(changes, how):
    old = Operation("gemm_v1", "kernel", "GEMM", 5e5, 2, shapes=frozenset({"(8,1,1)"}))
    new = Operation(**({"name": "gemm_v2", "kind": "kernel", "group": "GEMM", "ns": 4e5, "calls": 2,
                        "shapes": frozenset({"(8,1,1)"})} | changes))  # fmt: skip
    made = explain_difference("", (Case(None), Case(None)), ([old], [new]))
    assert how in {change.how for change in made.changes}
    # traces are read for shapes and ranges of such kernels alone
    bare = [replace(operation, shapes=frozenset(), ranges=frozenset()) for operation in (old, new)]
    is_alike = changes.keys() <= {"shapes", "ranges"}
    assert renamed_kernel_names(bare[:1], bare[1:]) == ({"gemm_v1", "gemm_v2"} if is_alike else set())


def test_a_single_kernel_in_place_of_a_single_one_is_that_one_written_anew():
    old = Operation("rows", "kernel", "other", 5e5, 2, shapes=frozenset({"(8,1,1)"}))
    new = replace(old, name="rows_by_warps", ns=4e5, shapes=frozenset({"(256,1,1)"}))
    also = replace(new, name="sums")
    for after, how in (
        ([new], {"renamed"}),
        ([replace(new, calls=4)], {"gone", "new"}),
        ([new, also], {"gone", "new"}),
    ):
        made = explain_difference("", (Case(None), Case(None)), ([old], after))
        assert {change.how for change in made.changes if change.what != "idle"} == how


def test_many_small_kernels_of_a_difference_are_named_by_their_class():
    changes = [Change(f"gemm{n}", "changed", 1e6, 1.1e6, group="GEMM") for n in range(20)]
    difference = Difference("c", True, 50e6, 53e6, (*changes, Change("idle", None, 0.0, 1e6)))
    assert difference.sentence == (
        "An iteration takes 3.000 ms more: the GPU waits 1.000 ms more for the host; GEMM kernels take 2.000 ms more"
    )


@pytest.mark.parametrize(("traced_s", "says"), [((6.0, 5.0), True), ((6.0, 3.0), False), ((0.0, 5.0), False)])
def test_how_long_both_are_traced_is_said_where_it_changes_unlike_an_iteration(traced_s, says):
    traced_ns = (traced_s[0] * 1e9, traced_s[1] * 1e9)
    text = Difference("c", True, 20e6, 10e6, (), traced_ns=traced_ns).traced_sentence
    assert text == ("From the first CUDA call to the last they take 6 s and 5 s." if says else "")


@pytest.mark.parametrize(("traced_s", "says"), [((6.0, 5.8), True), ((6.0, 3.2), False)])
def test_an_iterations_change_that_the_whole_hardly_shows_is_said_with_that_of_the_whole(traced_s, says):
    difference = Difference("c", True, 20e6, 10e6, (), traced_ns=(traced_s[0] * 1e9, traced_s[1] * 1e9))
    assert difference.traced_change == ("from the first CUDA call to the last 6 s -> 5.8 s" if says else "")


def test_marks_are_the_shapes_of_launches_and_the_innermost_ranges_around_them():
    shape = dict(
        zip(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), (8, 1, 1, 128, 1, 1), strict=True)
    )
    trace = [{"name": "k", "correlation": n, **shape} for n in (1, 2)] + [{"name": "[copy]", "correlation": 3}]
    calls = [{"correlation": n, "pid": 1, "tid": 2, "start_ns": 100 * n} for n in (1, 2, 3)]
    ranges = [
        {"style": "pushpop", "pid": 1, "tid": 2, "name": name, "start_ns": start, "duration_ns": length}
        for name, start, length in (("step 7", 0, 1000), ("forward", 90, 20), ("done", 150, 10))
    ]
    work = [Operation(name, "kernel", "other", 1.0, 1) for name in ("k", "[copy]", "absent")]
    first, second, third = add_shapes_and_ranges(work, trace, calls, ranges)
    assert first.shapes == {"[8, 1, 1, 128, 1, 1]"}
    assert first.ranges == {"forward", "step #"}
    assert (second.shapes, second.ranges) == (frozenset(), {"step #"})
    assert (third.shapes, third.ranges) == (frozenset(), frozenset())


# --- the gate -------------------------------------------------------------------------------------------------------


def gate(first: Side, second: Side, rule: str, figure: str = "speed") -> Outcome:
    lone = unmatched_cases(first, second, match_cases(first, second))
    made = Comparison(
        first, second, "figure", tuple(compare_sides(first, second, "figure")), (tuple(lone[0]), tuple(lone[1]))
    )
    return gate_outcome(judge_rules(made, {figure: parse_tolerance(rule)} if rule else {}))


def test_a_figure_that_a_summary_sets_aside_has_neither_ratio_nor_verdict():
    first = side("a", {"n=1": [1.0] * 3, "n=2": [1.0] * 3}, floors={"speed": QUIET})
    second = side("b", {"n=1": [9.0] * 3, "n=2": [9.0] * 3}, floors={"speed": QUIET})
    doubtful = replace(first, doubts=lambda: {("speed", "a n=1"): "a cold start is in it"})
    cold, warm = compare_sides(doubtful, second)
    assert (cold.estimate, cold.missing) == (None, "set aside: the kernels' times contradict it")
    assert warm.verdict == "faster"
    assert gate(doubtful, side("b", {"n=1": [9.0] * 3}), "-2%") == "undecided"


@pytest.mark.parametrize(
    ("ratio", "rule", "outcome"),
    [
        (0.9, "-2%", "failed"),
        (0.9, "-30%", "passed"),
        (1.1, "-2%", "passed"),
        (1.1, "+2%", "failed"),
        (0.9, "+2%", "passed"),
        (0.985, "-2%", "undecided"),
        (0.985, "-2% or undecided", "passed"),
    ],
)
def test_a_rule_fails_only_where_the_whole_interval_is_beyond_it(ratio, rule, outcome):
    how = {"floors": {"speed": QUIET}}
    first = side("a", {"": [100.0, 100.5, 99.5]}, **how)
    second = side("b", {"": [100.0 * ratio, 100.5 * ratio, 99.5 * ratio]}, **how)
    assert gate(first, second, rule) == outcome


def test_a_gate_without_rule_figure_or_case_never_passes():
    one, two = side("a", {"n=1": [1.0] * 3}), side("b", {"n=1": [1.0] * 3, "n=2": [1.0] * 3})
    how = {"floors": {"speed": QUIET}}
    same = side("a", {"n=1": [1.0] * 3}, **how)
    assert gate(same, same, "-2%") == "passed"
    assert gate(same, same, "") == "undecided"
    assert gate(same, same, "-2%", "other") == "undecided"
    assert gate(one, two, "-2%") == "undecided"
    assert math.isfinite(compare_sides(same, same)[0].estimate.low)


def test_the_columns_are_the_means_whose_ratio_is_the_change():
    first, second = (
        side("a", {"": [100.0, 110.0, 150.0]}, floors={"speed": QUIET}),
        side("b", {"": [80.0, 120.0, 90.0]}),
    )
    (row,) = compare_sides(first, second)
    assert row.means == pytest.approx((118.167, 95.244), rel=1e-4)
    table = next(
        block for block in comparison_blocks(Comparison(first, second, "case", (row,))) if block.name == "comparison"
    )
    cells = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    assert cells["second"] / cells["first"] == pytest.approx(1 + cells["change_pct"] / 100)
    assert [column.title for column in table.columns[:2]] == ["a, mean images/s", "b, mean images/s"]


@pytest.mark.parametrize(
    ("change", "unit", "text"),
    [(-9.0, "faster %", "9 % slower"), (9.0, "faster %", "9 % faster"), (2000.0, "faster %", "21x faster"),
     (46.3, "longer %", "46 % longer"), (-31.6, "longer %", "32 % less time"), (2000.0, "longer %", "21x slower")],
)  # fmt: skip
def test_a_change_of_speed_or_time_is_printed_with_its_direction(change, unit, text):
    assert as_text(change, unit) == text


def test_a_screen_has_one_notation_of_changes_in_the_direction_of_their_word():
    first = side("a", {"n=1": [100.0], "n=2": [100.0]})
    for after, change, between, verdict in (
        ({"n=1": [67.0], "n=2": [98.0]}, "1.49x slower", "1.06x to 2.1x", "1 slower (1.49x)"),
        ({"n=1": [900.0], "n=2": [98.0]}, "9x faster", "6.39x to 13x", "1 faster (9x)"),
    ):
        comparison = Comparison(first, side("b", after), "case", tuple(compare_sides(first, side("b", after))))
        table = next(block for block in comparison_blocks(comparison) if block.name == "comparison")
        texts = dict(zip([column.name for column in table.columns], column_texts(table), strict=True))
        assert (texts["change_pct"][0], texts["interval"][0]) == (change, between)
        assert (texts["change_pct"][1], texts["interval"][1]) == ("1.02x slower", "1.44x slower to 1.38x faster")
        assert verdict in find_headline(comparison_blocks(comparison))
    undecided = compare_sides(first, side("b", {"n=1": [99.0], "n=2": [50.0]}))[0]
    assert verdict_text(undecided) == "cannot tell (30 % slower to 39 % faster)"


@pytest.mark.parametrize("by", ["case", "figure"])
def test_a_time_that_grew_from_1_75_to_2_56_takes_46_percent_longer_wherever_it_is_printed(by):
    how = {"unit": "s", "floors": {"speed": QUIET}}
    sides = side("a", {"": [1.75, 1.751, 1.749]}, **how), side("b", {"": [2.56] * 3}, **how)
    made = Comparison(*sides, by, tuple(compare_sides(*sides, by)))
    blocks = comparison_blocks(made)
    assert "takes 46 % longer" in find_headline(blocks)
    table = next(block for block in blocks if block.name == "comparison")
    assert "46 % longer" in [
        as_text(*cell) for cell in zip(table.rows[0], [c.unit for c in table.columns], strict=True)
    ]
    (judged,) = judge_rules(made, {"speed": parse_tolerance("+2%")})
    assert (judged.outcome, judged.why[:17]) == ("failed", "takes 46 % longer")
    assert log_ratio_to_percent(made.rows[0].gain) == pytest.approx(-31.6, abs=0.1)  # as in JSON: of the speed


def with_functions(name: str, *rows: dict[str, Any]) -> Side:
    """A side of three runs, each with these rows of table functions."""
    runs = [Run(f"{name}{n}", "c", pass_name="host", repeat=n) for n in range(3)]
    functions = [{"run": run.id, **row} for run in runs for row in rows]
    return Side(name, name, runs, {"functions": functions}, floors={"slow (p.py)": QUIET})


def test_functions_are_compared_by_their_own_time_without_those_that_take_nothing():
    first, second = (
        with_functions(
            name,
            {"name": "slow", "file": "/x/p.py", "self_s": seconds},
            {"name": "tiny", "file": "/x/p.py", "self_s": 1e-6},
        )
        for name, seconds in (("a", 1.0), ("b", 2.0))
    )
    (row,) = compare_sides(first, second, "function")
    assert (row.what, row.unit, row.verdict, row.means) == ("slow (p.py)", "ns", "slower", pytest.approx((1e9, 2e9)))


@pytest.mark.parametrize(
    ("after", "says"), [(1.81, "; 810 ms more in `slow` (cprofile)"), (0.4, "; 600 ms less in `slow` (cprofile)")]
)
def test_the_verdict_names_the_function_that_did_it(after, says):
    def with_figure(name, seconds):
        rows = [{"name": "slow", "file": "/x/p.py", "self_s": seconds}, {"name": "even", "self_s": 1.0}]
        made = with_functions(name, *rows)
        figures = [{"run": run.id, "name": "wall", "value": seconds + 1.0, "unit": "s"} for run in made.runs]
        return replace(made, tables={**made.tables, "figures": figures}, floors={"wall": QUIET})

    sides = with_figure("a", 1.0), with_figure("b", after)
    functions = tuple(compare_sides(*sides, "function"))
    made = Comparison(*sides, "case", tuple(compare_sides(*sides)), functions=functions, profiler="cprofile")
    assert find_headline(comparison_blocks(made)).endswith(says)


def test_a_function_that_takes_over_anothers_time_did_nothing():
    def with_figure(name, function, seconds):
        made = with_functions(name, {"name": function, "file": "/x/p.py", "self_s": 1.0})
        figures = [{"run": run.id, "name": "wall", "value": seconds, "unit": "s"} for run in made.runs]
        return replace(made, tables={**made.tables, "figures": figures}, floors={"wall": QUIET})

    sides = with_figure("a", "by_loop", 1.0), with_figure("b", "by_index", 2.0)
    functions = tuple(compare_sides(*sides, "function"))
    assert {row.what: row.means for row in functions} == {"by_index (p.py)": (None, 1e9), "by_loop (p.py)": (1e9, None)}
    made = Comparison(*sides, "case", tuple(compare_sides(*sides)), functions=functions, profiler="cprofile")
    assert "by_index" not in find_headline(comparison_blocks(made))


def test_samples_of_functions_are_compared_by_their_share():
    sides = [with_functions(n, {"name": "f", "module": "libm.so", "self_pct": 40.0, "samples": 4}) for n in "ab"]
    (row,) = compare_sides(*sides, "function")
    assert (row.what, row.unit, row.higher_is_better) == ("f (libm.so)", "%", None)


def test_without_kernels_it_is_said_what_can_be_compared():
    sides = [with_functions(n, {"name": "f", "self_s": 1.0}) for n in "ab"]
    head = find_headline(comparison_blocks(Comparison(*sides, "kernel", ())))
    assert head == "b beside a: no kernels that can be compared; `--by function` would compare these"


def test_of_the_same_program_no_more_pairs_are_asked_for():
    sides = [side(n, {"": [100.0, 110.0, 90.0]}, same_program=True) for n in "ab"]
    blocks = comparison_blocks(Comparison(*sides, "case", tuple(compare_sides(*sides))))
    assert {"cannot tell", "floor"}.isdisjoint(block.name for block in blocks)


def test_pairs_that_were_added_decide_by_their_look_and_the_answer_says_what_they_cost():
    values = [100.0, 102.0, 99.0, 101.0, 100.0, 98.0, 101.5, 100.0]
    how = {"in_blocks": True, "source": "c", "adding": Adding("3 min of 40 min", "price reached")}
    first = side("before", {"": values}, **how)

    def answer(factor: float, count: int = 8) -> str:
        second = side("after", {"": [factor * value for value in values[:count]]}, **how)
        comparison = Comparison(first, second, "case", tuple(compare_sides(first, second)))
        return " ".join(block.text for block in comparison_blocks(comparison) if hasattr(block, "text"))

    assert "10 % faster (10 to 10 %), 8 pairs" in answer(1.1)
    assert "Pairs were added until they decide: 8 pairs, 3 min of 40 min." in answer(1.1)
    undecided = answer(1.1, 7)
    assert (
        "speed: not decided after 7 pairs (price reached): the difference is 3.2 % slower to 25 % faster" in undecided
    )
    assert "nsw noise" not in undecided  # it would not decide either
