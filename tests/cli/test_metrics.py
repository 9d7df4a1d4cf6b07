"""`nsw metrics`: lists, explains, checks and translates, for people and as data."""

import json

from nsw.cli import completion


def test_a_metric_is_explained_with_what_each_tool_calls_it(nsw):
    done = nsw("metrics", "show", "achieved_occupancy", "tensor_ops_fp16", exits=0)
    assert "nvprof:    achieved_occupancy (times 100)" in done.out
    assert "sm__warps_active.avg.pct_of_peak_sustained_active" in done.out
    assert "tu102, tu104, tu106:" in done.out
    assert "tu116:     not there: this chip has no tensor cores" in done.out


def test_a_tools_own_name_is_explained_too(nsw):
    done = nsw("metrics", "show", "sm__warps_active.avg.pct_of_peak_sustained_active", "--json")
    (told,) = json.loads(done.out)["metrics"]
    assert told["portable"] == "achieved_occupancy"
    assert "gh100" in told["chips"]


def test_what_is_shown_fits_80_columns(nsw):
    done = nsw("metrics", "show", "gld_efficiency", "roofline", "stall_memory_dependency", "tensor_ops_fp16", exits=0)
    assert "for them\n" in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80 and " " in line.strip()] == []


def test_ls_has_groups_and_metrics_and_on_a_chip_what_it_measures(nsw):
    everything = json.loads(nsw("metrics", "ls", "--json").out)
    assert {"occupancy", "roofline"} <= {group["group"] for group in everything["groups"]}
    assert len(everything["metrics"]) > 200
    there = json.loads(nsw("metrics", "ls", "--chip", "V100", "--json").out)
    assert there["chip"] == "gv100"
    names = {row["metric"] for row in there["metrics"]}
    assert "achieved_occupancy" in names
    assert "tensor_ops_bf16" not in names
    assert nsw("metrics", "ls", "tensor", "--format", "csv").out.startswith("metric,family,unit,meaning,nvprof,ncu\n")
    raw = nsw("metrics", "ls", "sm__warps_active*", "--chip", "gh100", "--format", "csv").out
    assert "\nsm__warps_active," in raw


def test_check_names_what_a_chip_lacks_and_ends_with_2(nsw):
    done = nsw("metrics", "check", "ipc", "achieved_ocupancy", "l2_global_load_bytes", "--chip", "gh100", exits=2)
    assert "did you mean 'achieved_occupancy'?" in done.out
    assert "l2_global_load_bytes is not measured on gh100" in done.out
    assert "1 name of 3 can be asked for on gh100" in done.out
    assert nsw("metrics", "check", "roofline", "set:full", "--chip", "gh100").code == 0


def test_translate_prints_each_tools_argument(nsw):
    done = nsw("metrics", "translate", "ipc", "gld_efficiency", "--chip", "gv100", exits=0)
    assert "nvprof --metrics ipc,gld_efficiency\n" in done.out
    assert "ncu --metrics sm__inst_executed.avg.per_cycle_active,smsp__sass_average" in done.out
    back = json.loads(nsw("metrics", "translate", "sm__inst_executed.avg.per_cycle_active", "--json").out)
    assert back["metrics"][0]["metric"] == "ipc"
    assert (
        "nvprof" not in json.loads(nsw("metrics", "translate", "ipc", "--chip", "H100", "--json").out)["command_line"]
    )


def test_what_is_misspelt_is_said(nsw):
    assert "did you mean 'gh100'?" in nsw("metrics", "ls", "--chip", "gh10").err
    assert "there is no metric, group or family rooflin" in nsw("metrics", "ls", "rooflin").err
    assert "no metric was named" in nsw("metrics", "show").err
    assert nsw("metrics", "translate", "achieved_ocupancy").code == 2
    assert nsw("metrics", "show", "sm__warp_active.avg").code == 2


def test_names_are_completed():
    found = [item.value for item in completion.completions(["metrics", "show"], "achieved")]
    assert found == ["achieved_active_warps", "achieved_occupancy"]
    assert "roofline" in [item.value for item in completion.completions(["metrics", "ls"], "roof")]
    raw = [item.value for item in completion.completions(["metrics", "check", "ipc"], "sm__warps_act")]
    assert "sm__warps_active" in raw
    assert [item.value for item in completion.completions(["metrics", "ls", "--chip"], "gh")] == ["gh100"]
