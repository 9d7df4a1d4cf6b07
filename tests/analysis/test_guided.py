"""Guided counters: the kernels that cover the asked share, representative launches of their shapes, few ordinals."""

import re

import pytest

from nsw.analysis.guided import LaunchRequest, NothingMatched, Within, choose_kernel_launches
from nsw.engine.stages import _first_process_and_gpu, _profiled_kernels
from tests.recorded import alexnet


def launch(name, duration, grid=1, mangled=True, **more):
    return {
        "kind": "kernel", "name": f"void {name}(float*)", "short_name": name, "duration_ns": duration, "start_ns": 0,
        "mangled_name": f"_Z{len(name)}{name}Pf" if mangled else None, "grid_x": grid, **more,
    }  # fmt: skip


def numbered(launches):
    return [row | {"correlation": n} for n, row in enumerate(launches)]


# ten steps: gemm in two shapes, relu three times, a rare kernel, NCCL
STEP = [launch("gemm", 500, 1), launch("relu", 10), launch("gemm", 300, 2), launch("relu", 11), launch("relu", 12),
        launch("rare", 5), launch("ncclAllReduce", 400)]  # fmt: skip
PROGRAM = numbered(STEP * 10)


def filters(arguments):
    """The kernels and the ordinals that ncu would take."""
    assert arguments[:3] == ("--kernel-name-base", "mangled", "--kernel-id")
    _, _, kind, names, ordinals = arguments[3].split(":")
    assert kind == "regex"
    return re.compile(names), re.compile(ordinals)


def measured(chosen, trace):
    """What ncu would measure, as (name, ordinal, grid): it counts the launches of each kernel."""
    names, ordinals = filters(chosen.arguments)
    counts, found = {}, []
    for row in trace:
        counts[row["mangled_name"]] = counts.get(row["mangled_name"], 0) + 1
        if names.search(row["mangled_name"]) and ordinals.search(str(counts[row["mangled_name"]])):
            found.append((row["short_name"], counts[row["mangled_name"]], row["grid_x"]))
    return found


def test_the_kernels_that_make_the_share_are_measured_and_nccl_is_not():
    chosen = choose_kernel_launches(PROGRAM, LaunchRequest(exclude=("nccl",), cover=0.9, sample=4), "ncu")
    assert chosen.kernels == ("gemm",)
    assert chosen.share == pytest.approx(8000 / 12380)  # of all kernels' time, NCCL's too
    found = measured(chosen, PROGRAM)
    assert len(found) == chosen.launches == 4
    assert {grid for _, _, grid in found} == {1, 2}  # both shapes
    assert min(ordinal for _, ordinal, _ in found) > 2  # not the first of the program
    assert (chosen.along, chosen.extrapolated) == (0, 16)


def test_ordinals_that_serve_several_kernels_are_preferred_and_what_comes_along_is_told():
    chosen = choose_kernel_launches(PROGRAM, LaunchRequest(exclude=("nccl",), cover=1.0, sample=3), "ncu")
    assert set(chosen.kernels) == {"gemm", "relu", "rare"}
    found = measured(chosen, PROGRAM)
    assert len(found) == chosen.launches
    for kernel in ("gemm", "relu", "rare"):
        assert sum(name == kernel for name, _, _ in found) >= 3
    assert chosen.along == len(found) - 9
    assert chosen.along <= 3


def test_top_and_at_most_limit_the_kernels_and_a_share_that_was_not_reached_is_told():
    assert choose_kernel_launches(PROGRAM, LaunchRequest(top=2), "ncu").kernels == ("gemm", "ncclAllReduce")
    chosen = choose_kernel_launches(PROGRAM, LaunchRequest(cover=0.99, at_most=1), "ncu")
    assert chosen.kernels == ("gemm",)
    assert "(asked: 99% of 4 kernels, at most 1 of them)" in chosen.sentence


def test_names_and_expressions_choose_among_the_kernels():
    assert choose_kernel_launches(PROGRAM, LaunchRequest(names=("rare",)), "ncu").kernels == ("rare",)
    assert choose_kernel_launches(PROGRAM, LaunchRequest(regex="re|gemm", exclude=("^rare",)), "ncu").kernels == (
        "gemm",
        "relu",
    )
    templated = numbered([launch("ns::f<int>", 5), launch("g", 1)])
    assert choose_kernel_launches(templated, LaunchRequest(names=("f",)), "ncu").kernels == ("ns::f<int>",)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (LaunchRequest(regex="gemn"), "its filter matched 0 of 4 kernels; nearest: gemm"),
        (
            LaunchRequest(names=("x",)),
            "its filter matched 0 of 4 kernels; the most expensive are: gemm, ncclAllReduce, relu",
        ),
    ],
)
def test_a_filter_that_matches_nothing_is_told_before_the_job_with_what_is_near(asked, told):
    with pytest.raises(NothingMatched) as caught:
        choose_kernel_launches(PROGRAM, asked, "ncu")
    assert str(caught.value).startswith(told)


def test_launches_before_the_warm_up_are_counted_and_not_taken():
    chosen = choose_kernel_launches(PROGRAM, LaunchRequest(names=("rare",), sample=10, warmup=35), "ncu")
    assert sorted(ordinal for _, ordinal, _ in measured(chosen, PROGRAM)) == [6, 7, 8, 9, 10]


def test_a_launch_of_unusual_duration_stands_for_nobody():
    odd = numbered([launch("k", 1000 if n == 7 else 10) for n in range(20)])
    assert 8 not in {
        ordinal for _, ordinal, _ in measured(choose_kernel_launches(odd, LaunchRequest(sample=5), "ncu"), odd)
    }


def test_template_instances_are_told_apart_by_their_mangled_names_else_the_function_counts():
    trace = numbered([launch("f<1>", 9), launch("f<2>", 1)])
    names, _ = filters(choose_kernel_launches(trace, LaunchRequest(top=1), "ncu").arguments)
    assert not names.search("_Z4f<2>Pf")
    plain = numbered([launch("f", 9, mangled=False), launch("g", 1, mangled=False)])
    assert choose_kernel_launches(plain, LaunchRequest(top=1), "ncu").arguments[1] == "function"


def test_nvprof_gets_one_filter_with_what_is_measured_behind_it():
    chosen = choose_kernel_launches(
        PROGRAM, LaunchRequest(names=("gemm", "relu"), sample=2), "nvprof", ("--metrics", "ipc")
    )
    assert chosen.arguments[0] == "--kernels"
    assert chosen.arguments[2:] == ("--metrics", "ipc")
    _, _, names, ordinals = chosen.arguments[1].split(":")
    assert re.search(names, "void ns::gemm<float>(float*)")
    assert not re.search(names, "my_gemm")
    assert re.search(ordinals, chosen.arguments[1].rsplit("(", 1)[1].split("|")[0].rstrip(")$"))


def test_a_recorded_training_run_is_covered_by_few_launches(tmp_path):
    (tmp_path / "timeline.sqlite").write_bytes(alexnet("g2-b32"))
    trace = _profiled_kernels(tmp_path)
    assert len({row["pid"] for row in trace}) == 1
    chosen = choose_kernel_launches(trace, LaunchRequest(exclude=("nccl",), cover=0.9, at_most=20, sample=5), "ncu")
    assert len(chosen.kernels) == 20
    assert not any("nccl" in name for name in chosen.kernels)
    found = measured(chosen, sorted(trace, key=lambda row: row["correlation"]))
    assert len(found) == chosen.launches < 0.15 * len(trace)
    assert {name for name, _, _ in found} == set(chosen.kernels)


def test_inside_a_range_of_a_recorded_run_the_launches_of_the_range_are_counted(tmp_path):
    (tmp_path / "timeline.sqlite").write_bytes(alexnet("g2-b32"))
    every, first = (_profiled_kernels(tmp_path, within=Within("step", instances=some)) for some in ((), (1,)))
    assert len(every) == 20 * len(first) + 2  # as many in each of 20 steps; two more once
    assert (
        choose_kernel_launches(first, LaunchRequest(cover=0.9), "ncu").launches > 0
    )  # also of a step of the warm-up, asked for by number
    with pytest.raises(NothingMatched, match="the timeline has no NVTX range stepp; nearest: step"):
        _profiled_kernels(tmp_path, within=Within("stepp"))


def test_kernels_of_set_up_and_warm_up_are_counted_and_not_chosen():
    """Autotuning tries a kernel for a long time before the first step; ncu counts its launches all the same."""
    before = [launch("tune", 90_000) for _ in range(6)] + [launch("gemm", 70_000, 9) for _ in range(3)]
    steps = [row | {"phase": "steady"} for row in STEP * 10]
    trace = numbered(
        [*(row | {"phase": "setup"} for row in before[:5]), *(row | {"phase": "warmup"} for row in before[5:]), *steps]
    )
    chosen = choose_kernel_launches(trace, LaunchRequest(exclude=("nccl",), cover=0.9, sample=4), "ncu")
    assert chosen.kernels == ("gemm",)
    assert chosen.share == pytest.approx(8000 / 12380)
    found = measured(chosen, trace)
    assert {grid for _, _, grid in found} == {1, 2}
    assert min(ordinal for _, ordinal, _ in found) > 3


def test_kernels_of_a_stray_context_are_not_those_that_are_chosen_from():
    """Process 2 began on GPU 0, and works on GPU 1."""
    rows = [{"pid": 2, "device": 0, "duration_ns": 3_000}, {"pid": 1, "device": 0, "duration_ns": 5_000_000},
            {"pid": 2, "device": 1, "duration_ns": 5_000_000}]  # fmt: skip
    assert _first_process_and_gpu(rows) == (1, 0)
    assert _first_process_and_gpu([row for row in rows if row["pid"] == 2]) == (2, 1)
    assert _first_process_and_gpu([{"duration_ns": 1}]) == (None, None)
