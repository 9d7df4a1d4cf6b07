"""One row a kernel: weighted over its launches, whoever measured them, with the roof that it is under."""

import gzip
from pathlib import Path

import pytest

from nsw.analysis.cases import summarize_cases
from nsw.analysis.kernels import kernel_table, kernel_table_of_report
from nsw.analysis.roofline import data_sheet_mismatch_sentences, roofline_points
from nsw.readers import read
from nsw.tables import to_arrow

from .made import gpu_row, make_run

H200 = Path(__file__).parents[1] / "fixtures" / "h200"
UNITS = {"duration": "ns", "sm_throughput": "%", "dram_bytes": "byte"}


def metric(name, value, *, launch=0, kernel="k", **more):
    given = {"launch_id": launch, "kernel": kernel, "metric": name, "portable": name, "portable_value": value}
    return given | {"portable_unit": UNITS.get(name, "")} | more


def launches(*each):
    """Rows of launches given as maps of portable values."""
    return [
        metric(name, value, launch=at, kernel=values.get("kernel", "k"))
        for at, values in enumerate(each) for name, value in values.items() if name != "kernel"
    ]  # fmt: skip


def only(found):
    (row,) = found
    return row


def test_shares_are_weighted_by_time_and_amounts_are_means_of_a_launch():
    rows = launches(
        {"duration": 1000.0, "sm_throughput": 10.0, "dram_bytes": 100.0},
        {"duration": 3000.0, "sm_throughput": 30.0, "dram_bytes": 300.0},
    )
    row = only(kernel_table({"metrics": rows}))
    assert (row.time_ns, row.launches, row.share_pct, row.time_from) == (4000.0, 2, 100.0, "counters")
    assert row.sm_pct == 25.0
    assert row.metrics["dram_bytes"] == 200.0
    assert row.metrics["duration"] == 2000.0


@pytest.mark.parametrize("first", ["fill", "step"])
def test_a_kernel_launched_once_before_all_others_stands_last(first):
    steps = [{"duration": 100.0, "kernel": "step"}] * 3
    fill = {"duration": 900.0, "kernel": "fill"}
    rows = kernel_table({"metrics": launches(*([fill, *steps] if first == "fill" else [*steps, fill]))})
    assert [row.name for row in rows] == (["step", "fill"] if first == "fill" else ["fill", "step"])


def test_passes_through_shared_memory_are_amounts_too():
    row = only(kernel_table({"metrics": launches(
        {"duration": 1000.0, "shared_wavefronts": 4.0, "inst_executed_shared_loads": 1.0},
        {"duration": 9000.0, "shared_wavefronts": 40.0, "inst_executed_shared_loads": 10.0},
    )}))  # fmt: skip
    assert row.metrics["shared_wavefronts"] == pytest.approx(4 * row.metrics["inst_executed_shared_loads"])


def test_launches_that_take_many_times_as_long_as_the_others_are_counted_apart():
    (row,) = kernel_table({"metrics": launches(*({"duration": time} for time in (300.0, 302.0, 3.0, 2.0, 4.0)))})
    assert row.long_launches == (2, 301.0, 3, 3.0)
    (row,) = kernel_table({"metrics": launches(*({"duration": time} for time in (300.0, 302.0, 110.0)))})
    assert row.long_launches is None


def test_a_summary_over_launches_weighs_as_all_of_them():
    rows = [
        metric("sm_throughput", 10.0, launch=None, invocations=9),
        metric("duration", 100.0, launch=None, invocations=9),
        metric("sm_throughput", 20.0, launch=None, invocations=1, device=1),
        metric("duration", 100.0, launch=None, invocations=1, device=1),
    ]
    row = only(kernel_table({"metrics": rows}))
    assert (row.launches, row.time_ns, row.sm_pct) == (10, 1000.0, 11.0)


def test_without_any_time_launches_weigh_alike_and_nothing_is_made_up():
    row = only(kernel_table({"metrics": launches({"sm_throughput": 10.0}, {"sm_throughput": 20.0})}))
    assert (row.sm_pct, row.time_ns, row.share_pct, row.time_from) == (15.0, None, None, None)


def test_a_launch_without_a_time_weighs_as_the_others_of_its_kernel():
    rows = launches(
        {"duration": 100.0, "sm_throughput": 10.0}, {"sm_throughput": 30.0}, {"duration": 900.0, "kernel": "other"}
    )
    row = {r.name: r for r in kernel_table({"metrics": rows})}["k"]
    assert row.sm_pct == 20.0
    assert row.time_ns == 100.0


@pytest.mark.parametrize(
    ("more", "shown"),
    [({}, None), ({"tensor_ops_int8": 0.0}, 0.0), ({"tensor_ops_fp16": 8.0}, 49.5), ({"flop_count_hp": 0.0}, 49.5)],
)
def test_fp16_instructions_are_no_work_of_the_tensor_cores(more, shown):
    """On an H100 the tensor pipe of a kernel of HFMA2 and HADD2 is 49.5 % busy, without a tensor operation."""
    measured = {"duration": 1000.0, "tensor_active": 49.5, "flop_count_hp": 3e10}
    measured |= {f"tensor_ops_{kind}": 0.0 for kind in ("fp16", "bf16", "tf32", "fp8", "fp64")}
    assert only(kernel_table({"metrics": launches(measured | more)})).tensor_pct == shown
    unknown = {"duration": 1000.0, "tensor_active": 49.5, "flop_count_hp": 3e10}
    assert only(kernel_table({"metrics": launches(unknown)})).tensor_pct == 49.5


def test_without_counted_flop_neither_tensor_cores_nor_a_roof_are_claimed():
    """ncu counts no FLOP of a range: its pipe may have been busy with HFMA2, and it may compute something."""
    measured = {"duration": 1000.0, "tensor_active": 49.5, "dram_bytes": 1e6, "dram_bytes_peak": 1000.0,
                "dram_frequency": 2e9} | {f"tensor_ops_{kind}": 0.0 for kind in ("fp16", "bf16", "tf32", "fp8", "fp64")}  # fmt: skip
    row = only(kernel_table({"metrics": launches(measured)}))
    assert (row.tensor_pct, row.roofline) == (None, None)
    counted = {f"flop_count_{kind}": 0.0 for kind in ("hp", "sp", "dp")}
    row = only(kernel_table({"metrics": launches(measured | counted)}))
    assert row.tensor_pct == 49.5
    assert row.roofline is not None
    assert (row.roofline.level, row.roofline.share_pct) == ("DRAM", pytest.approx(50.0))


def test_kernels_are_in_the_order_of_their_time():
    rows = launches(
        {"duration": 1.0, "kernel": "a"}, {"duration": 9.0, "kernel": "b"}, {"duration": 2.0, "kernel": "a"}
    )
    assert [(r.name, r.share_pct) for r in kernel_table({"metrics": rows})] == [("b", 75.0), ("a", 25.0)]


@pytest.mark.parametrize("timeline", [None, {"k": (500.0, 1), "other": (1500.0, 1)}])
def test_a_range_has_no_share_of_the_time_of_kernels_and_takes_none_from_them(timeline):
    rows = launches({"duration": 500.0}, {"duration": 1500.0, "kernel": "other"}, {"duration": 9e3, "kernel": "range"})
    found = {r.name: r for r in kernel_table({"metrics": rows}, timeline)}
    assert {name: row.share_pct for name, row in found.items()} == {"k": 25.0, "other": 75.0, "range": None}
    assert found["range"].time_ns == 9e3
    own = [
        {"kernel": "range", "launch_id": 2, "grid": "(1, 1, 1)", "block_size": "(32, 1, 1)"}
    ]  # a kernel of this name
    assert {r.name: r for r in kernel_table({"metrics": rows, "launches": own}, timeline)}["range"].share_pct > 80


def test_a_range_of_a_real_report_has_a_time_and_no_share():
    report = read(H200.parent / "h100" / "range-details.csv")
    row = only(kernel_table_of_report(report.tables))
    assert (row.name, row.time_ns, row.share_pct) == ("range", 4_906_208 + 537_120, None)


def test_a_range_has_no_figures_of_a_launch_for_ncu_gives_means_over_the_launches_in_it():
    row = only(kernel_table_of_report(read(H200 / "range-raw.csv").tables))
    assert (row.name, row.share_pct, row.registers, row.theoretical_occupancy_pct) == ("range", None, None, None)
    assert row.achieved_occupancy_pct == pytest.approx(53.7, abs=0.1)
    assert not [name for name in row.metrics if name.startswith(("launch", "occupancy_limit", "waves", "blocks"))]


def test_of_a_range_there_is_no_advice_on_how_one_kernel_was_launched():
    rules = [{"kernel": "range", "launch_id": 0, "rule": "LaunchConfiguration", "section": "Launch Statistics",
              "message": "m", "speedup_pct": 82.0, "speedup_type": "local"},
             {"kernel": "range", "launch_id": 0, "rule": "Bottleneck", "section": "s",
              "message": "m", "speedup_pct": 5.0, "speedup_type": "local"}]  # fmt: skip
    rows = launches({"duration": 1.0, "kernel": "range"})
    assert only(kernel_table({"metrics": rows, "rules": rules})).advice.rule == "Bottleneck"
    own = [{"kernel": "range", "launch_id": 0, "grid": "(1, 1, 1)", "block_size": "(32, 1, 1)"}]
    row = only(kernel_table({"metrics": rows, "rules": rules, "launches": own}))
    assert row.advice.rule == "LaunchConfiguration"


def test_the_timeline_has_the_times_where_there_is_one():
    rows = launches({"duration": 1000.0, "sm_throughput": 10.0}, {"duration": 10.0, "kernel": "other"})
    found = {r.name: r for r in kernel_table({"metrics": rows}, {"k": (500.0, 10), "unmeasured": (1500.0, 1)})}
    assert (found["k"].time_ns, found["k"].launches, found["k"].measured) == (500.0, 10, 1)
    assert (found["k"].share_pct, found["k"].time_from) == (25.0, "timeline")
    assert found["other"].time_from == "counters"


def test_names_that_differ_in_spaces_are_one_kernel():
    rows = launches({"duration": 1000.0, "kernel": "k(const float *, int)"})
    (row,) = kernel_table({"metrics": rows}, {"k(const float*,int)": (500.0, 10)})
    assert (row.time_ns, row.time_from, row.share_pct) == (500.0, "timeline", 100.0)


def test_columns_give_what_rows_give():
    rows = launches({"duration": 1000.0, "sm_throughput": 10.0}, {"duration": 3000.0, "kernel": "b"})
    rules = [{"kernel": "k", "launch_id": 0, "rule": "r", "message": "m", "speedup_pct": 5.0, "speedup_type": "global"}]
    shapes = [{"kernel": "k", "launch_id": 0, "grid": "(1, 1, 1)", "block_size": "(32, 1, 1)"}]
    plain = {"metrics": rows, "rules": rules, "launches": shapes}
    columns = {name: to_arrow(name, data) for name, data in plain.items()}
    assert kernel_table(columns) == kernel_table(plain)


def test_what_limits_occupancy_is_named_unless_nothing_does():
    limits = {"occupancy_limit_registers": 4.0, "occupancy_limit_shared_memory": 4.0, "occupancy_limit_warps": 16.0}
    row = only(kernel_table({"metrics": launches(limits | {"theoretical_occupancy": 25.0})}))
    assert row.occupancy_limiter == "registers, shared memory"
    row = only(kernel_table({"metrics": launches(limits | {"theoretical_occupancy": 100.0})}))
    assert row.occupancy_limiter is None


@pytest.fixture(scope="module")
def resnet():
    """Three kernels of ResNet-50 on an H100, by a word of their names."""
    found = kernel_table_of_report(read(H200.parent / "h100" / "resnet50-raw.csv").tables)
    return {word: next(k for k in found if word in k.name) for word in ("threshold", "bn_bw_1C11", "max_pool_backward")}


def test_a_grid_with_fewer_blocks_than_fit_the_gpu_limits_occupancy(resnet):
    assert resnet["bn_bw_1C11"].occupancy_limiter == "grid"  # 64 blocks for 132 SMs
    assert resnet["max_pool_backward"].occupancy_limiter is None
    both = {"occupancy_limit_registers": 1.0, "theoretical_occupancy": 25.0, "waves_per_sm": 0.6}
    assert only(kernel_table({"metrics": launches(both)})).occupancy_limiter == "grid, registers"
    assert only(kernel_table({"metrics": launches(both | {"waves_per_sm": 0.98})})).occupancy_limiter == "registers"


def test_a_kernel_without_flop_is_under_the_roof_of_a_memory(resnet):
    roof = resnet["threshold"].roofline
    assert (roof.level, roof.precision, roof.side, roof.ceilings) == ("DRAM", "", "memory", "report")
    assert roof.share_pct == pytest.approx(resnet["threshold"].dram_pct, abs=0.5)
    assert resnet["threshold"].points == ()


def test_fp16_instructions_that_only_move_constants_give_no_precision(resnet):
    """Of max_pool_backward 94 % of what counts as FLOP are such moves; it adds in FP32."""
    of = resnet["max_pool_backward"]
    assert of.metrics["flop_count_hp"] > 10 * of.metrics["flop_count_sp"]
    assert (of.roofline.level, of.roofline.precision) == ("DRAM", "FP32")
    assert {p.precision for p in of.points} == {"FP32"}


@pytest.mark.parametrize("real", [{"flop_count_hp_add": 1.0}, {"flop_count_hp": 5e12}, {"flop_count_hp_mul": None}])
def test_fp16_that_is_computed_in_is_a_precision(real):
    moves = {"duration": 1e9, "flop_count_hp": 1e9, "flop_count_hp_add": 0.0, "flop_count_hp_mul": 0.0,
             "dram_bytes": 1e9, "fp16_fma_peak": 1e4, "sm_frequency": 1e9}  # fmt: skip
    assert roofline_points(moves) == ()
    assert [p.precision for p in roofline_points(moves | real)] == ["FP16"]


def test_the_two_stalls_that_most_warps_are_in_are_named_and_sums_only_where_their_parts_are_not_known():
    parts = {"stall_wait": 20.0, "stall_memory_dependency": 50.0, "stall_barrier": 30.0, "stall_not_selected": 90.0,
             "stall_exec_dependency": 60.0, "stall_sync": 30.0}  # fmt: skip
    row = only(kernel_table({"metrics": launches(parts)}))
    assert [(s.reason, s.pct) for s in row.stalls] == [("memory dependency", 50.0), ("barrier", 30.0)]
    nvprof = {"stall_memory_dependency": 50.0, "stall_exec_dependency": 40.0, "stall_sync": 0.0}
    row = only(kernel_table({"metrics": launches(nvprof)}))
    assert [s.reason for s in row.stalls] == ["memory dependency", "exec dependency"]


def rule(name, pct, *, kind="global", launch=0):
    return {"kernel": "k", "launch_id": launch, "rule": name, "section": "s", "message": f"{name} says",
            "speedup_pct": pct, "speedup_type": kind}  # fmt: skip


def test_the_best_advice_is_the_global_one_that_saves_most_over_all_launches():
    rows = launches(*[{"duration": 1.0}] * 4)
    rules = [rule("rare", 60.0), *(rule("often", 20.0, launch=n) for n in range(4)), rule("local", 90.0, kind="local")]
    advice = only(kernel_table({"metrics": rows, "rules": [*rules, rule("none", None)]})).advice
    assert (advice.rule, advice.speedup_pct, advice.message) == ("often", 20.0, "often says")


def test_a_kernel_whose_grid_is_too_small_is_not_advised_to_make_room_for_more_blocks():
    small = rule("SOLBottleneck", None) | {"message": "This kernel grid is too small to fill the available resources"}
    rules = [rule("TheoreticalOccupancy", 80.0), rule("other", 20.0)]
    for more, best in (([], "TheoreticalOccupancy"), ([small], "other")):
        assert (
            only(kernel_table({"metrics": launches({"duration": 1.0}), "rules": [*rules, *more]})).advice.rule == best
        )


def test_a_rule_that_says_the_same_of_a_launch_twice_counts_once():
    advice = only(kernel_table({"metrics": launches({"duration": 1.0}), "rules": [rule("r", 40.0)] * 2})).advice
    assert advice.speedup_pct == 40.0


def test_events_without_a_portable_name_are_kept_where_they_are_few():
    rows = [metric("x", None, portable=None, metric="warps_launched", avg=7.0, invocations=2, launch_id=None)]
    assert only(kernel_table({"metrics": rows})).metrics == {"warps_launched": 7.0}


def test_of_no_metrics_there_is_no_table():
    assert kernel_table({}) == ()
    assert kernel_table({"metrics": []}) == ()


@pytest.fixture(scope="module")
def naive(tmp_path_factory):
    raw = tmp_path_factory.mktemp("raw") / "naive-raw.csv"
    raw.write_bytes(gzip.decompress((H200 / "naive-raw.csv.gz").read_bytes()))
    return only(kernel_table_of_report(read(raw).tables))


def test_the_flop_of_a_matrix_product_of_known_size_are_those(naive):
    assert naive.metrics["flop_count_sp"] == pytest.approx(2 * 256**3, rel=1e-6)
    assert naive.metrics["tensor_ops_fp16"] == 0.0


def test_a_kernel_that_reads_all_through_l1_is_under_the_roof_of_l1(naive):
    roof = naive.roofline
    assert (roof.level, roof.precision, roof.side, roof.ceilings) == ("L1", "FP32", "memory", "report")
    assert roof.peak_flop_per_s == pytest.approx(2 * 132 * 128 * 1.98e9, rel=0.01)
    assert roof.peak_bytes_per_s == pytest.approx(132 * 128 * 1.98e9, rel=0.01)
    assert roof.share_pct == pytest.approx(3.03, abs=0.01)
    assert {p.level for p in naive.points if p.precision == "FP32"} == {"DRAM", "L2", "L1"}


def test_the_ceilings_of_an_h200_are_those_of_its_data_sheet(naive):
    assert list(data_sheet_mismatch_sentences(naive.metrics, "NVIDIA H200")) == []
    (said,) = data_sheet_mismatch_sentences(dict(naive.metrics) | {"fp32_fma_peak": 8448.0}, "NVIDIA H200")
    assert said.startswith("the report's FP32 ceiling is 16,896 FLOP a cycle")


def test_details_page_and_raw_page_give_the_same_row(naive):
    details = only(kernel_table_of_report(read(H200 / "naive-details.csv").tables))
    for name in ("time_ns", "sm_pct", "memory_pct", "dram_bytes_per_s", "achieved_occupancy_pct", "registers"):
        assert getattr(details, name) == pytest.approx(getattr(naive, name), rel=2e-3), name
    assert details.advice.rule == "CPIStall"
    assert naive.stalls[0].reason == "lg throttle"
    assert naive.shapes == details.shapes == (("(8, 8, 1)", "(32, 32, 1)"),)


ONE = {"duration": 1e9, "flop_count_sp": 4e12, "dram_bytes": 1e12, "fp32_fma_peak": 1000.0, "sm_frequency": 1e9,
       "dram_bytes_peak": 1000.0, "dram_frequency": 1e9}  # fmt: skip


def test_a_roof_is_the_lower_of_compute_and_bandwidth_times_intensity():
    (memory,) = roofline_points(ONE | {"fp32_fma_peak": 10000.0})
    assert (memory.intensity, memory.roof_flop_per_s, memory.side, memory.share_pct) == (4.0, 4e12, "memory", 100.0)
    (compute,) = roofline_points(ONE | {"dram_bytes_peak": 10000.0, "fp32_fma_peak": 4000.0})
    assert (compute.roof_flop_per_s, compute.side, compute.share_pct) == (8e12, "compute", 50.0)


def test_ceilings_that_the_report_lacks_are_the_data_sheets_and_labelled_so():
    bare = {name: ONE[name] for name in ("duration", "flop_count_sp", "dram_bytes")}
    (unknown,) = roofline_points(bare)
    assert (unknown.roof_flop_per_s, unknown.ceilings, unknown.flop_per_s) == (None, None, 4e12)
    (known,) = roofline_points(bare, "Tesla P100-SXM2-16GB")
    assert (known.ceilings, known.peak_flop_per_s, known.peak_bytes_per_s) == ("data sheet", 10.6e12, 732e9)


def test_the_cases_of_a_campaign_have_their_own_kernels():
    runs = [make_run("r1", "a", pass_kind="counters"), make_run("r2", "b"), make_run("t1", "a", pass_kind="timeline")]
    rows = [row | {"run": "r1"} for row in launches({"duration": 10.0, "sm_throughput": 5.0})]
    gpu = {"gpu_summary": [gpu_row("k", 80.0, run="t1", calls=4), gpu_row("z", 20.0, run="t1")]}
    for metrics in (rows, to_arrow("metrics", rows)):
        first, second = summarize_cases(runs, gpu, 0.9, {"metrics": metrics})
        assert (first.kernels[0].time_ns, first.kernels[0].share_pct, first.kernels[0].launches) == (80.0, 80.0, 4)
        assert second.kernels == ()
    assert [case.kernels for case in summarize_cases(runs, gpu, 0.9)] == [(), ()]
