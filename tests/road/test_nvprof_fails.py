"""A user is told why nvprof profiled nothing, and what to do. A stand-in says what the real one says."""

import os

import pytest

NO_DRIVER = (
    "======== Warning: unable to locate cuda driver library, GPU profiling skipped\n"
    "======== Warning: No profile data collected.\n"
)
TOO_NEW = (
    "======== Warning: nvprof is not supported on devices with compute capability 8.0 and higher.\n"
    "                  Use NVIDIA Nsight Systems for GPU tracing and CPU sampling and NVIDIA Nsight Compute for GPU"
    " profiling.\n"
    "                  Refer https://developer.nvidia.com/tools-overview for more details.\n"
)


@pytest.fixture
def stand_in(road):
    """An nvprof on PATH that runs the program and says `text`, in its log file or on stderr, as the real one does."""

    def make(text: str, where: str, *, code: int = 0, runs: bool = True) -> None:
        folder, to = road.home / "bin", {"log": '"$log"', "stderr": "&2"}[where]
        folder.mkdir()
        (folder / "text").write_text(text)
        (folder / "nvprof").write_text(
            "#!/usr/bin/env bash\n"
            "while [ $# -gt 0 ]; do case $1 in --log-file) log=${2//%p/$$}; shift 2;; --normalized-time-unit) shift 2;;\n"
            "  -*) shift;; *) break;; esac; done\n"
            + ('"$@" || exit 9\n' if runs else "")
            + f"cat '{folder}/text' >{to}\nexit {code}\n"
        )
        (folder / "nvprof").chmod(0o755)
        road.environment["PATH"] = f"{folder}:{os.environ['PATH']}"

    return make


RECIPE = (
    "nsw: 1\nname: t\nresources: {gpus: 0, time: 1m}\nrepeats: 2\n"
    "passes: [baseline, timeline: {tool: nvprof}]\napp: {command: echo hello}\n"
)


def problems(road):
    return {(p["severity"], p["message"], p["fix"]) for p in road.status()["problems"]}


@pytest.mark.parametrize("where", ["log", "stderr"])
def test_without_a_driver_the_answer_says_so_and_what_to_do(road, stand_in, where):
    stand_in(NO_DRIVER, where)
    done = road.run(RECIPE)
    flat = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1
    assert "no NVIDIA driver on this machine: nothing was profiled" in flat
    assert "hint: run where a GPU and its driver are" in flat
    assert "it may not have used the GPU" not in flat
    assert flat.count("no NVIDIA driver on this machine") == 1
    assert {r["reading"] for r in road.runs().values() if r["pass"] == "timeline"} == {"unreadable"}


@pytest.mark.parametrize("where", ["log", "stderr"])
@pytest.mark.parametrize(("code", "runs"), [(0, True), (1, False)])
def test_on_a_gpu_that_is_too_new_the_answer_says_so_and_names_the_other_tools(road, stand_in, where, code, runs):
    stand_in(TOO_NEW, where, code=code, runs=runs)
    done = road.run(RECIPE)
    flat = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1
    assert "this GPU is too new for nvprof" in flat
    assert "hint: profile with nsys (timeline) and ncu (counters)" in flat


def test_the_runs_without_a_profiler_are_not_touched_by_its_trouble(road, stand_in):
    stand_in(TOO_NEW, "log")
    road.run(RECIPE)
    states = {(r["pass"], r["state"], r["reading"]) for r in road.runs().values()}
    assert states == {("baseline", "done", "read"), ("timeline", "done", "unreadable")}


def test_a_program_that_prints_what_a_profiler_might_say_is_not_taken_for_one(road, stand_in):
    stand_in("", "stderr")
    text = RECIPE.replace(
        "echo hello", "\"echo 'No profile data collected'; echo 'no such thing: database error' >&2\""
    )
    road.run(text.replace("[baseline, timeline: {tool: nvprof}]", "[timeline: {tool: nvprof}]"))
    assert {m for _, m, _ in problems(road)} == {"nvprof left no report"}
