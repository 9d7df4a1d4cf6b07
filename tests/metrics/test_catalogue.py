"""The catalogue fits itself and the chips: every name of an expression exists on every chip that it is used on."""

import subprocess
import sys
from pathlib import Path

import pytest

from nsw.metrics import ncu_names
from nsw.metrics.catalogue import (
    chips_by_name,
    evaluate_expression,
    find_chip,
    find_metric,
    metric_groups_by_name,
    metric_names_by_alias,
    metric_names_in_expression,
    metrics_by_name,
    parse_expression,
)
from nsw.metrics.printed_metrics import ncu_name_of_label, portable_metric
from nsw.metrics.requests import ncu_metric_request

MEASURED = [
    chip for chip in chips_by_name().values() if chip.names == chip.name
]  # whose list of ncu's metric names nsw has


def test_every_name_that_is_asked_of_a_chip_is_in_the_list_of_that_chip():
    wrong = {}
    for chip in MEASURED:
        there = set(ncu_names.base_names(chip))
        for metric in metrics_by_name().values():
            for name in (
                metric_names_in_expression(metric.measured_on(chip).expressions[0])
                if metric.measured_on(chip).expressions
                else ()
            ):
                base, suffix = ncu_names.split_base_and_suffix(name)
                if not ncu_names.is_made_by_ncu(name) and (
                    base not in there or not ncu_names.base_name_takes_suffix(base, suffix)
                ):
                    wrong.setdefault(metric.name, []).append((chip.name, name))
    assert wrong == {}


def test_what_no_tool_measures_on_a_chip_has_a_reason():
    silent = [
        (metric.name, chip.name)
        for chip in MEASURED
        for metric in metrics_by_name().values()
        if not metric.measured_on(chip).expressions and not metric.measured_on(chip).reason
    ]
    assert silent == []


def test_every_metric_is_measured_by_some_tool_and_every_exception_is_of_a_metric_and_a_chip():
    known = {chip.name for chip in MEASURED}
    for metric in metrics_by_name().values():
        assert metric.nvprof or metric.ncu.expressions, metric.name
        assert metric.by_chip.keys() <= known, metric.name
        for measured in (metric.ncu, *metric.by_chip.values()):
            assert [metric_names_in_expression(e) for e in measured.expressions] == [
                metric_names_in_expression(e) for e in measured.expressions if metric_names_in_expression(e)
            ]


def test_groups_and_aliases_name_metrics():
    assert {name for group in metric_groups_by_name().values() for name in group.metrics} <= metrics_by_name().keys()
    assert set(metric_names_by_alias().values()) <= metrics_by_name().keys()
    assert not metric_names_by_alias().keys() & metrics_by_name().keys()
    assert not metric_groups_by_name().keys() & (metrics_by_name().keys() | metric_names_by_alias().keys())
    assert {"occupancy", "memory", "compute", "roofline", "tensor", "stalls"} <= metric_groups_by_name().keys()


@pytest.mark.parametrize(
    ("written", "chip"),
    [
        ("GH100", "gh100"),
        ("9.0", "gh100"),
        ("NVIDIA H100 80GB HBM3", "gh100"),
        ("NVIDIA H200", "gh100"),
        ("Tesla P100-SXM2-16GB", "gp100"),
        ("NVIDIA A100-SXM4-40GB", "ga100"),
        ("Tesla V100-PCIE-16GB", "gv100"),
        ("NVIDIA L4", "ad104"),
        ("NVIDIA L40S", "ad102"),
        ("NVIDIA T400 4GB", "tu117"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "ga103"),
        ("NVIDIA GeForce GTX 1080 Ti", "gp102"),
        ("AMD Instinct MI300X", None),
        (None, None),
    ],
)
def test_a_chip_is_found_by_name_capability_and_product(written, chip):
    found = find_chip(written)
    assert (found and found.name) == chip


def test_chips_that_have_no_list_of_their_own_use_one_that_exists():
    lists = {chip.name for chip in MEASURED}
    assert {chip.names for chip in chips_by_name().values() if chip.names} == lists
    old = [c for c in chips_by_name().values() if c.capability and c.capability < (7, 0)]
    assert old
    assert all(c.names is None for c in old)


def test_expressions_are_computed_from_the_values_of_their_names():
    text = "100 * (a__x.sum + b__y.avg.per_second) / c__z.sum"
    assert metric_names_in_expression(text) == ("a__x.sum", "b__y.avg.per_second", "c__z.sum")
    assert evaluate_expression(text, {"a__x.sum": 1.0, "b__y.avg.per_second": 2.0, "c__z.sum": 4.0}) == 75.0


@pytest.mark.parametrize("text", ["a**2", "f(a)", "a; b", "", "'a'", "a if b else c", "-a"])
def test_nothing_but_names_numbers_and_the_four_operations_is_an_expression(text):
    with pytest.raises(ValueError, match="not an expression"):
        parse_expression(text)


def test_the_fma_of_a_precision_counts_twice():
    fma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    values = dict.fromkeys(metric_names_in_expression(find_metric("flop_count_sp").ncu.expressions[0]), 1.0)
    assert evaluate_expression(find_metric("flop_count_sp").ncu.expressions[0], values | {fma: 10.0}) == 22.0


@pytest.mark.parametrize("group", ["diagnosis", "roofline"])
def test_of_an_h100_only_names_are_asked_that_its_ncu_lists(group):
    asked = ncu_metric_request([group], find_chip("gh100"))
    assert not [
        name for name in asked.metrics if name.startswith("derived__")
    ]  # left out by ncu where only metrics are asked
    assert "l1tex__t_bytes.sum.peak_sustained" in asked.metrics  # of which a quarter is the peak there
    assert group != "diagnosis" or not asked.absent


def test_labels_of_a_details_page_are_names_of_ncu():
    assert (
        ncu_name_of_label("L1: Data Pipe Lsu Wavefronts")
        == "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
    )
    assert ncu_name_of_label("Stall Barrier") == "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
    assert ncu_name_of_label("Duration (gpu__time_duration.sum)") == "gpu__time_duration.sum"
    assert ncu_name_of_label("Registers Per Thread") == ""
    assert portable_metric("Average Bytes Per Sector For Global Loads", "byte/sector").factor == 3.125  # of 32


def test_the_page_of_names_is_current():
    root = Path(__file__).parents[2]
    command = [sys.executable, "tools/metrics_page.py", "--check"]
    assert subprocess.run(command, check=False, cwd=root).returncode == 0, "run: python tools/metrics_page.py"
