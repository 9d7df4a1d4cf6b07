"""Model FLOP/s and MFU: worked out by hand from a timeline's iterations and from figures of unprofiled runs."""

import pytest

from nsw.analysis.model_flops import StepFlops
from nsw.analysis.summary import ReportRequest
from nsw.campaign.answers import _step_flops_by_case as flops_by_case
from nsw.recipe.load import load_recipe_text

from .made import figure_row, make_run
from .test_first_screen import screen, summarized
from .test_steady import MS, iterations_row, part, timeline, whole

# half of the dense BF16 peak (989.4 TFLOP/s) of two GPUs, for 10 ms
STEP = StepFlops(989.4e12 * 0.010, "bf16")
H200 = [{"run": "r", "key": "gpu_name", "text": "NVIDIA H200"}]


def traced(**changed):
    """The rows of a timeline with iterations of 10 ms, in 8 of which kernels compute."""
    parts = [part("steady", "gemm", 18 * 8 * MS, calls=18), part("steady", "ncclKernel", 18 * MS, calls=18)]
    row = iterations_row(10 * MS, busy=90.0, memory=0.0, nccl=100 / 9)
    return {"gpu_summary": whole(parts), "phase_summary": parts, "iterations": [row], "facts": H200} | changed


def answer(runs=None, asked=STEP, gpus=2, show=screen, **tables):
    runs = runs or [timeline()]
    for run in runs:
        run.gpus = gpus
    return show(runs, ReportRequest(flops={run.case_id: asked for run in runs}), **tables)


def flops_of(**how):
    (flops,) = answer(show=summarized, **how).model_flops
    return flops


def test_an_iteration_of_the_timeline_is_a_step():
    flops = flops_of(**traced())
    assert flops.flop_per_s == pytest.approx(989.4e12)
    assert flops.peak_flop_per_s == pytest.approx(2 * 989.4e12)
    assert flops.mfu_pct == pytest.approx(50)
    assert flops.computing_mfu_pct == pytest.approx(50 / 0.8)


def test_a_single_case_says_whether_waits_or_kernels_limit_it():
    assert answer(**traced())["mfu"].text == (
        "MFU 50.0 %: 494.7 TFLOP/s a GPU of 989.4 TFLOP/s (dense BF16), 10 ms a step by the timeline. Kernels compute"
        " 80 % of a step: if nothing waited, MFU would be 62 %."
    )
    busy = traced(iterations=[iterations_row(10 * MS, busy=98.0, memory=0.0)])
    assert answer(**busy)["mfu"].text.endswith("98 % of a step: only faster kernels raise MFU.")
    waiting = traced(iterations=[iterations_row(10 * MS, busy=40.0, memory=0.0)])
    assert "40 % of a step, at 125 % of the peak: check value" in answer(**waiting)["mfu"].text


@pytest.mark.parametrize(
    ("value", "unit"),
    [(20.0, "ms/step"), (0.02, "s per iteration"), (20e3, "us/it"), (20e3, "microseconds / iter"), (50.0, "steps/s")],
)
def test_a_figure_of_an_unprofiled_run_counts_before_the_timeline(value, unit):
    runs = [make_run("b"), timeline()]
    runs[1].case_id = runs[0].case_id
    flops = flops_of(runs=runs, **traced(figures=[figure_row(value, run="b", name="step", unit=unit)]))
    assert (flops.step_ns, flops.step_by) == (pytest.approx(20 * MS), "figure step")
    assert flops.mfu_pct == pytest.approx(25)


@pytest.mark.parametrize("unit", ["ms", "images/s", "s/epoch", "stepsize/s"])
def test_other_units_are_no_time_of_a_step(unit):
    flops = flops_of(runs=[make_run("r")], figures=[figure_row(20.0, unit=unit)], facts=H200)
    assert flops.mfu_pct is None
    assert flops.missing.startswith("no step time was measured: add a pass `timeline: {}`")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"facts": []}, "no report names its GPU"),
        ({"facts": [*H200, H200[0] | {"text": "NVIDIA L4"}]}, "its GPUs differ (NVIDIA H200, NVIDIA L4)"),
        ({"facts": [H200[0] | {"text": "NVIDIA H200 MIG 1g.18gb"}]}, "a part of a GPU (NVIDIA H200 MIG 1g.18gb) has no"),
        ({"facts": [H200[0] | {"text": "Tesla V100-SXM2-16GB"}]}, "the data sheet of Tesla V100-SXM2 has no peak for BF16"),
        ({"facts": [H200[0] | {"text": "NVIDIA Next"}]}, "the peaks of NVIDIA Next are not known"),
        ({"gpus": 0}, "its runs were given no GPU"),
        ({"asked": StepFlops(1e15, "bf16")}, "1e+15 FLOP in 10 ms a step (timeline) are 5054 % of the dense BF16 peak"),
        ({"asked": "expected a number above 0, found 0.0"}, "report.flops_per_step: expected a number above 0"),
    ],
)  # fmt: skip
def test_where_there_is_no_mfu_its_reason_is_said(changed, reason):
    flops = flops_of(**traced(**changed))
    assert flops.mfu_pct is None
    assert flops.missing.startswith(reason)
    assert answer(**traced(**changed))["mfu"].text.startswith(f"no MFU of c: {reason}")


def test_the_jobs_gpu_counts_where_no_report_names_one():
    runs, rows = [make_run("r")], [figure_row(10.0, unit="ms/step")]
    named = StepFlops(STEP.flop, "bf16", "NVIDIA H200")
    assert flops_of(runs=runs, figures=rows, asked=named).mfu_pct == pytest.approx(50)
    mixed = StepFlops(STEP.flop, "bf16", "NVIDIA H200 | NVIDIA L4")
    assert flops_of(runs=runs, figures=rows, asked=mixed).missing == "its GPUs differ (NVIDIA H200 | NVIDIA L4)"


def test_cases_beside_each_other_have_a_column_and_those_without_flops_none():
    runs = [make_run(f"n{n}", f"n{n}", params={"n": n}) for n in (1, 2)]
    figures = [figure_row(ms, run=run.id, unit="ms/step") for run, ms in zip(runs, (20.0, 40.0), strict=True)]
    tables = {"figures": figures, "facts": [H200[0] | {"run": run.id} for run in runs]}
    for how in (
        {},
        {"axis": "n", "kind": "strong", "figure": "speed"},
        {"compare": "n", "baseline": 1, "figure": "speed"},
    ):
        asked = ReportRequest(flops={run.case_id: STEP for run in runs}, **how)
        for run in runs:
            run.gpus = 1
        shown = screen(runs, asked, **tables)
        at = [column.name for column in shown["answer"].columns].index("mfu_pct")
        assert shown["answer"].rows[-1][at] == pytest.approx(25)
        assert "MFU: model FLOP/s, of the GPUs' dense peak" in shown["legend"].text
        assert "mfu" not in shown
    plain = screen(runs, **tables)["answer"]
    assert "mfu_pct" not in [column.name for column in plain.columns]


def test_the_recipes_formula_is_computed_for_each_case():
    recipe = load_recipe_text("""nsw: 1
name: t
app: {command: ./train}
matrix: {batch: [0, 8]}
report: {flops_per_step: {value: '{{ 6 * 7e9 * batch * 4096 }}', precision: bf16}}
""").recipe
    flops = flops_by_case(recipe.report.flops_per_step, {"c0": {"batch": 0}, "c8": {"batch": 8}}, None)
    assert flops == {"c0": "expected a number above 0, found 0.0", "c8": StepFlops(6 * 7e9 * 8 * 4096, "bf16")}
