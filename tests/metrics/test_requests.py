"""What portable names become for each tool and chip, and what cannot be asked for."""

import pytest

from nsw.metrics import find_chip, find_metric_faults, ncu_metric_request, nvprof_metric_request

GH100, GV100, GB202, GP100 = (find_chip(name) for name in ("gh100", "gv100", "gb202", "gp100"))


def test_a_portable_name_is_what_the_chip_calls_it():
    assert ncu_metric_request(["dram_read_bytes"], GH100).metrics == ("dram__bytes_read.sum",)
    assert ncu_metric_request(["dram_read_bytes"], GB202).metrics == ("dram__bytes_op_read.sum",)
    assert ncu_metric_request(["dram_read_bytes"], None).metrics == ("dram__bytes_read.sum",)
    assert nvprof_metric_request(["dram_read_bytes"], GP100).metrics == ("dram_read_bytes",)
    assert nvprof_metric_request(["dram_bytes"], GP100).metrics == ("dram_read_bytes", "dram_write_bytes")


def test_ipc_is_of_an_sm_and_not_of_a_quarter_of_it():
    assert ncu_metric_request(["ipc"], GV100).metrics == ("sm__inst_executed.avg.per_cycle_active",)


def test_groups_sets_sections_and_raw_names_are_taken_and_nothing_is_asked_twice():
    asked = ncu_metric_request(
        ["flop", "flop_count_sp", "set:full", "section:Occupancy", "sm__cycles_active.avg", "sm__cycles_active.avg"],
        GH100,
    )
    assert asked.sets == ("full",)
    assert asked.sections == ("Occupancy",)
    assert asked.metrics.count("sm__cycles_active.avg") == 1
    assert len(asked.metrics) == 10
    assert asked.absent == {}


def test_what_a_group_holds_and_a_chip_lacks_is_left_out_with_the_reason():
    asked = ncu_metric_request(["tensor"], GV100)
    assert "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active" in asked.metrics
    assert asked.absent["tensor_ops_bf16"] == "the tensor cores of this chip do not have this precision"
    assert find_metric_faults(["tensor"], GV100) == []


def test_nvprof_gets_events_and_no_names_of_ncu():
    asked = nvprof_metric_request(["ipc", "event:warps_launched", "sm__cycles_active.avg", "set:full"])
    assert asked.metrics == ("ipc",)
    assert asked.events == ("warps_launched",)
    assert asked.absent.keys() == {"sm__cycles_active.avg", "set:full"}


@pytest.mark.parametrize(
    ("name", "chip", "message", "hint"),
    [
        ("achieved_ocupancy", None, "there is no metric achieved_ocupancy", "did you mean 'achieved_occupancy'?"),
        ("rooflin", GH100, "there is no metric rooflin", "did you mean 'roofline'?"),
        ("sm__warp_active.avg", GH100, "gh100 has no metric sm__warp_active", "did you mean sm__warps_active.avg?"),
        ("sm__warp_active.avg", None, "no chip has a metric sm__warp_active", "did you mean sm__warps_active.avg?"),
        ("sm__warps_active.foo", GH100, "sm__warps_active does not take .foo", "it takes one of .sum"),
        ("sm__throughput.sum", GH100, "sm__throughput does not take .sum", "it takes .avg.pct_of_peak"),
        ("dram__bytes_op_read.sum", GH100, "gh100 has no metric dram__bytes_op_read; gb202, gr100 have it", None),
        ("l2_global_load_bytes", GH100, "l2_global_load_bytes is not measured on gh100: the counters lts__t_", None),
        ("tensor_active", GP100, "tensor_active is not measured on gp100: nvprof has no such metric", None),
        ("sm__cycles_active.avg", GP100, "sm__cycles_active.avg is a name of Nsight Compute", None),
        ("set:ful", GH100, "ncu has no set ful", "did you mean set:full?"),
        ("section:Occupanzy", GH100, "ncu has no section Occupanzy", "did you mean section:Occupancy?"),
    ],
)
def test_a_metric_that_cannot_be_had_is_named_with_why_and_what_is_near(name, chip, message, hint):
    (fault,) = find_metric_faults(["ipc", name], chip)
    assert fault.index == 1
    assert fault.message.startswith(message)
    assert hint is None or hint in (fault.hint or "")


def test_the_sites_own_list_of_names_decides_where_there_is_one():
    assert find_metric_faults(["sm__brand_new.sum"], GH100, site_names={"sm__brand_new"}) == []
    (fault,) = find_metric_faults(["sm__warps_active.avg"], GH100, site_names={"sm__brand_new"})
    assert "sm__warps_active" in fault.message


@pytest.mark.parametrize(
    "name",
    [
        "launch__grid_size", "sm__maximum_warps_per_active_cycle_pct", "smsp__pcsamp_sample_count",
        "FBSP.TriageCompute.dramc__throughput.avg.pct_of_peak_sustained_elapsed", "breakdown:sm__throughput.avg",
        "pmsampling:sm__cycles_active.avg", "regex:sm__inst.*", "sm__inst_executed", "sm__throughput",
        "sm__inst_executed.avg.peak_sustained_active.per_second", "l1tex__t_sector_hit_rate.pct",
    ],
)  # fmt: skip
def test_ncus_own_names_are_taken_as_ncu_takes_them(name):
    assert find_metric_faults([name], GH100) == []


def test_of_a_range_metrics_of_instructions_are_left_out_of_groups_and_refused_alone():
    asked = ncu_metric_request(["roofline", "smsp__sass_inst_executed.sum"], GH100, "range")
    assert not any("__sass_" in name for name in asked.metrics)  # ncu measures nothing where one is among them
    why = "replay: range has no metrics of instructions"
    flop = [f"flop_count_{kind}" for kind in ("hp", "sp", "dp")]
    peaks = [f"fp{bits}_fma_peak" for bits in (16, 32, 64)]
    assert asked.absent == dict.fromkeys((*flop, *peaks, "smsp__sass_inst_executed.sum"), why)
    found = find_metric_faults(
        ["roofline", "flop", "ipc", "gld_efficiency", "smsp__sass_inst_executed.sum"], GH100, replay="range"
    )
    assert [(one.index, one.message) for one in found] == [
        (1, f"nothing of the group flop is measured: {why}"),
        (3, f"gld_efficiency is not measured: {why}"),
        (4, f"smsp__sass_inst_executed.sum is not measured: {why}"),
    ]
    assert find_metric_faults(["flop", "gld_efficiency"], GH100, replay="application") == []


def test_ncu_takes_one_set():
    (fault,) = find_metric_faults(["set:full", "section:Occupancy", "set:full", "set:roofline"], None)
    assert (fault.index, fault.message) == (3, "ncu takes one set, and set:full is named before")
