"""The command lines of nvprof for counters and for timelines that keep every event."""

import re

import pytest

from nsw.profilers import nvprof
from nsw.profilers.model import Request
from tests.profilers import asked as recipe

PROGRAM = ("./prog", "8")
CSV = ("--csv", "--normalized-time-unit", "ns", "--log-file", "counters.%p.nvprof.csv")


def profile(**how):
    return nvprof.profile(
        Request("nvprof", PROGRAM, counting=recipe.counting(**{"metrics": ("ipc", "gld_efficiency"), **how}))
    )


def scopes(**how):
    """What follows each --kernels: (scope, the words for what is measured in it)."""
    found = profile(**how).command
    at = [i for i, word in enumerate(found) if word == "--kernels"]
    return [(found[i + 1], found[i + 2 : i + 4]) for i in at]


def test_the_whole_command_line():
    assert profile().command == (
        "nvprof", "--profile-child-processes", *CSV, "--metrics", "ipc,gld_efficiency", *PROGRAM,
    )  # fmt: skip
    assert profile().reports == ("counters*.nvprof.csv",)


def test_events_stand_beside_metrics():
    found = profile(events=("warps_launched", "branch")).command
    assert found[-4:] == ("--events", "warps_launched,branch", *PROGRAM)


def test_each_name_is_a_scope_of_its_own_with_the_metrics_behind_it():
    found = scopes(names=("gemm", "conv2d"), skip=10, count=3)
    assert [measured for _, measured in found] == [("--metrics", "ipc,gld_efficiency")] * 2
    for (scope, _), name in zip(found, ("gemm", "conv2d"), strict=True):
        _, _, pattern, ordinals = scope.split(":")
        assert [n for n in range(30) if re.search(ordinals, str(n))] == [11, 12, 13]
        assert re.search(pattern, f"void ns::{name}<float>(float*)")
        assert re.search(pattern, name)
        assert not re.search(pattern, f"my_{name}")


def test_an_expression_and_what_is_left_out_are_one_scope():
    ((scope, _),) = scopes(regex="gemm|conv", exclude=("nccl",))
    _, _, pattern, ordinals = scope.split(":")
    names = ["sgemm", "conv", "ncclConv", "relu", "nccl_gemm"]
    assert ([n for n in names if re.search(pattern, n)], ordinals) == (["sgemm", "conv"], "")


def test_what_a_timeline_chose_stands_for_filter_and_metrics():
    found = profile(chosen="CHOSEN", names=("ignored",)).command
    assert found[-3:] == ("CHOSEN", *PROGRAM)
    assert "--metrics" not in found
    assert nvprof.nvprof_metric_options(recipe.counting(metrics=("ipc",)).metrics) == ("--metrics", "ipc")


def test_the_program_is_run_again_without_following_its_children():
    found = profile(replay="application").command
    assert found[1:3] == ("--replay-mode", "application")
    assert "--profile-child-processes" not in found


def test_the_metrics_of_the_visual_profilers_analysis_go_into_a_file_for_it():
    done = profile(sets=("analysis",), metrics=())
    assert "counters.%p.nvvp" in done.command
    assert "--analysis-metrics" in done.command
    assert done.reports == ("counters*.nvprof.csv", "counters*.nvvp")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"nvtx": "step"}, "nvprof cannot measure within an NVTX range"),
        ({"replay": "range"}, "nvprof has no replay: range"),
        ({"warmup": 3}, "nvprof counts the launches of each kernel"),
        ({"clocks": "base"}, "nvprof cannot lock clocks"),
        ({"cache": "all"}, "nvprof cannot flush caches"),
        ({"sections": ("Occupancy",)}, "nvprof has no sections"),
        ({"sets": ("full",)}, "nvprof has no sets of ncu's"),
    ],
)
def test_what_nvprof_cannot_do_is_said(asked, told):
    assert profile(**asked).impossible.startswith(told)


def test_clocks_and_caches_as_nvprof_leaves_them_are_nothing_to_ask():
    assert profile(clocks="none", cache="none").impossible is None


def test_a_timeline_of_every_event():
    trace = nvprof.profile(Request("nvprof", PROGRAM, report="trace"))
    assert trace.command[-4:] == ("--print-gpu-trace", "--print-api-trace", *PROGRAM)
    file = nvprof.profile(Request("nvprof", PROGRAM, report="file", per_rank=True, rank_variable="PMI_RANK"))
    assert file.command[2:5] == ("--export-profile", "timeline.rank%q{PMI_RANK}.%p.nvvp", "--force-overwrite")
    assert file.reports == ("timeline*.nvvp",)
