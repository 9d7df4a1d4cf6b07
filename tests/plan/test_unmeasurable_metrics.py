"""Metrics are checked against the site's chip before anything is submitted, each at its line."""

import pytest

from nsw.errors import InputError
from nsw.metrics import find_chip
from nsw.plan.build import metric_faults
from nsw.recipe.load import load_recipe_text

HEAD = "nsw: 1\nname: t\napp: {command: ./prog}\nresources: {gpus: 0}\npasses:\n  - baseline\n  - counters: "


def of_metrics(planner, counters, site):
    """The faults of a recipe with these counters; none where it can be planned."""
    try:
        planner.plan(HEAD + counters + "\n", f"scheduler: local, {site}")
    except InputError as refused:
        return refused.diagnostics
    return ()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("l2_global_load_bytes", "l2_global_load_bytes is not measured on gh100: the counters lts__t_bytes_equiv"),
        ("dram__bytes_op_read.sum", "gh100 has no metric dram__bytes_op_read; gb202, gr100 have it"),
        ("smsp__inst_executed_pipe_fp16.sum", "gh100 has no metric smsp__inst_executed_pipe_fp16"),
    ],
)
def test_a_metric_that_the_chip_lacks_is_told_at_its_place(planner, metrics, message):
    (fault,) = of_metrics(planner, f"{{metrics: [ipc, 'set:full', {metrics}]}}", "gpus: {chip: gh100}")
    assert fault.message.startswith(message)
    assert fault.mark.line == 7
    assert fault.source_line[fault.mark.column - 1 :].startswith(metrics)


def test_the_same_recipe_is_good_where_the_chip_has_it(planner):
    counters = "{metrics: [ipc, l2_global_load_bytes]}"
    assert of_metrics(planner, counters, "gpus: {chip: gv100}, profilers: {ncu: /no/ncu}") == ()


def test_auto_is_nvprof_on_a_chip_that_ncu_does_not_measure(planner):
    (fault,) = of_metrics(planner, "{metrics: [ipc, tensor_active]}", "gpus: {chip: gp100}")
    assert fault.message == "tensor_active is not measured on gp100: nvprof has no such metric"


def test_a_tool_that_does_not_measure_the_chip_is_told_at_its_word(planner):
    (fault,) = of_metrics(planner, "{tool: nvprof, metrics: [ipc]}", "gpus: {chip: ga100}")
    assert fault.message == "nvprof does not measure counters on ga100 (compute capability 8.0): ncu does"
    assert fault.source_line[fault.mark.column - 1 :].startswith("nvprof")


def test_a_misspelt_chip_is_told_and_a_new_one_is_not_judged(planner):
    (fault,) = of_metrics(planner, "{metrics: [ipc]}", "gpus: {chip: gh10}")
    assert fault.message == "there is no chip gh10"
    assert fault.hint == "did you mean 'gh100'?"
    assert of_metrics(planner, "{metrics: [ipc]}", "gpus: {chip: zz999}") == ()


def test_a_later_stage_can_check_with_the_chip_and_the_versions_that_it_found():
    loaded = load_recipe_text(HEAD + "{metrics: [ipc, tensor_ops_bf16]}\n")
    (fault,) = metric_faults(loaded, find_chip("Tesla V100-SXM2-16GB"))
    assert fault.message.startswith("tensor_ops_bf16 is not measured on gv100")
    (fault,) = metric_faults(loaded, find_chip("gv100"), {"ncu": "2025.4.1.0"})
    assert fault.message == "ncu 2025.4.1.0 no longer measures gv100: ncu 2025.2 is the last that does"
    assert list(metric_faults(loaded, find_chip("gh100"))) == []
