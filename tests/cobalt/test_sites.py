"""The example sites of Cobalt machines, and the commands of a training course for them, written as recipes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.site.load import read_sites

ROOT = Path(__file__).parents[2]
SITES = ROOT / "recipes" / "sites"
COURSE = ROOT / "recipes" / "cooley_profiling.yaml"

# pass of the recipe -> what the course types by hand, the program aside
TYPED = {
    "kernels": "nvprof --log-file timing.log",
    "launches": "nvprof --print-gpu-trace --log-file traces.log",
    "visual": "nvprof -o analysis.nvvp",
    "system": "nsys profile",
    "all-metrics": "nvprof --metrics all --log-file all-metrics.log",
    "analysis": "nvprof --analysis-metrics -o analysis.nvvp",
    "gemm": 'nvprof --profile-from-start off --kernels "::gemm:1" --metrics all --log-file selective-profile.log',
    "gemm-ipc": 'nvprof --kernels "::gemm:1" --metrics ipc --log-file selective-profile.log',
    "warps": 'nvprof --kernels "::gemm:1" --events warps_launched --log-file selective-profile.log',
}
LONG = {"-o": "--export-profile", "-m": "--metrics", "-e": "--events"}
# what nsw adds, and why
ADDED = {
    "--profile-child-processes": "python may start others",
    "--csv": "nothing is rounded, and tables are read from it",
    "--normalized-time-unit": "the same",
    "--print-api-trace": "a trace of launches without the calls that made them says little",
    "--force-overwrite": "a second attempt in the same folder",
    "--log-file": "of analysis: its metrics are read from it too",
    "--kernels": "NCCL's kernels are not run again by themselves",
    "--trace": "nsys: what is traced", "--sample": "nsys: no CPU sampling unless asked for",
    "--cpuctxsw": "nsys: the same", "--output": "nsys: the report's name",
}  # fmt: skip


def nsw(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nsw", *words], capture_output=True, text=True, check=False, cwd=ROOT)


def options(command: list[str]) -> dict[str, str | None]:
    """Options with their values; `--a=b` and `--a b` are the same."""
    found: dict[str, str | None] = {}
    for word, after in zip(command, [*command[1:], "-"], strict=True):
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            found[LONG.get(name, name)] = value if equals else None if after.startswith("-") else after
    return found


@pytest.fixture(scope="module")
def script() -> str:
    return nsw("render", COURSE, "--site", "cooley", "--sites", SITES / "cooley.yaml").stdout


def profiler_of(script: str, name: str) -> list[str]:
    """The words of a pass up to its program."""
    line = next(line for line in script.splitlines() if f"nsw_run case.{name}.r1 " in line)
    words = shlex.split(line)[3:]
    return words[: words.index("python")]


@pytest.mark.parametrize("name", ["cooley.yaml", "theta.yaml"])
def test_an_example_site_is_without_faults(name):
    assert all(found.site.scheduler == "cobalt" for found in read_sites(SITES / name))


@pytest.mark.parametrize("name", TYPED)
def test_each_command_of_the_course_is_in_the_script_with_all_its_options(script, name):
    typed, made = shlex.split(TYPED[name]), profiler_of(script, name)
    assert made[0] == typed[0]
    asked, given = options(typed[1:]), options(made[1:])
    assert set(asked) <= set(given)
    for option, value in asked.items():
        if option == "--kernels":
            assert re.fullmatch(r"::gemm:\^?\(?1\)?\$?", given[option] or ""), given
        elif option == "--metrics":
            assert value in (given[option] or "").split(",")
        elif option not in {"--log-file", "--export-profile"}:
            assert given[option] == value
    assert set(given) - set(asked) <= set(ADDED)


def test_the_courses_submission_is_in_the_scripts_head(script):
    lines = script.splitlines()
    under = lines.index("#!/bin/bash -l") + 1
    head = lines[under : under + 5]
    assert all(line.startswith("#COBALT ") for line in head)
    words = [word for line in head for word in line.split()[1:]]
    assert options(words) | {"-t": "60"} == {
        "-n": "1", "-t": "60", "-q": "training", "-A": "training", "--attrs": "nox11:filesystems=home,theta-fs0",
    }  # fmt: skip


def test_tensor_core_kernels_are_measured_with_the_tool_of_the_time(tmp_path):
    (tmp_path / "r.yaml").write_text(
        "nsw: 1\nname: t\napp: {command: python train.py}\npasses:\n"
        '  - counters: {tool: ncu, launches: {skip: 0}, kernels: {exclude: []}, options: [--kernel-id, "::s884:1"], metrics: ["set:full"]}\n'
        "resources: {gpus: 1}\n"
    )
    (tmp_path / "s.yaml").write_text(
        "nsw: 1\nsites:\n  v100: {scheduler: cobalt, scratch: /lus/x, profilers: {ncu: nv-nsight-cu-cli}, gpus: {chip: gv100}}\n"
    )
    shown = nsw("render", tmp_path / "r.yaml", "--site", "v100", "--sites", tmp_path / "s.yaml")
    line = next(line for line in shown.stdout.splitlines() if "nsw_run case.counters.r1 " in line)
    words = shlex.split(line)[3:]
    assert "nv-nsight-cu-cli" in words
    assert words[words.index("--kernel-id") + 1] == "::s884:1"


def test_on_theta_a_recipe_that_asks_for_gpus_is_refused_at_its_line():
    refused = nsw("plan", COURSE, "--site", "theta", "--sites", SITES / "theta.yaml")
    assert refused.returncode == 2
    assert "1 GPU asked, but site theta has none" in refused.stderr
    assert "cooley_profiling.yaml" in refused.stderr
    assert "or use its CPUs: `resources: {gpus: 0}`, baseline and host passes" in " ".join(refused.stderr.split())


def test_on_theta_passes_that_measure_gpus_are_left_out_with_the_reason(tmp_path):
    recipe = tmp_path / "r.yaml"
    start = "nsw: 1\nname: t\napp: {command: python a.py}\nresources: {gpus: 0}\n"
    passes = "baseline, timeline, counters, {host: {tool: cprofile}}"
    recipe.write_text(f"{start}passes: [{passes}]\n")
    planned = nsw("plan", recipe, "--site", "theta", "--sites", SITES / "theta.yaml", "--format", "json")
    assert planned.returncode == 0, planned.stderr
    found = json.loads(planned.stdout)
    assert {run["pass"] for run in found["runs"]} == {"baseline", "host"}
    assert {one["what"] for one in found["absent"]} == {"pass timeline", "pass counters"}
    assert all(one["reason"].startswith("the site has no GPUs; baseline and host passes") for one in found["absent"])
    recipe.write_text(f"{start}passes: [{{timeline: {{tool: nsys}}}}]\n")
    shown = nsw("render", recipe, "--site", "theta", "--sites", SITES / "theta.yaml").stdout
    assert "nsys profile" in shown  # who names it wants what it records of CPUs


def test_on_theta_programs_start_through_aprun(tmp_path):
    (tmp_path / "r.yaml").write_text(
        "nsw: 1\nname: t\napp:\n  command: python tf2_mnist.py\n"
        '  launcher: {kind: aprun, processes: 64, options: [-N, "64", -cc, depth]}\n'
        "passes: [baseline: {}]\nresources: {gpus: 0}\n"
    )
    shown = nsw("render", tmp_path / "r.yaml", "--site", "theta", "--sites", SITES / "theta.yaml").stdout
    assert 'aprun -n 64 -N 64 -cc depth bash "$nsw" rank python tf2_mnist.py' in shown
    assert "#COBALT --attrs mcdram=flat:numa=quad:filesystems=home,theta-fs0" in shown


@pytest.mark.parametrize("site", ["cooley", "cooley-from-afar"])
def test_a_script_that_is_shown_names_the_folder_on_the_site(site):
    shown = nsw("render", COURSE, "--site", site, "--sites", SITES / "cooley.yaml")
    user = os.environ.get("USER", "USER") if site == "cooley" else "USER"
    folder = f"/lus/theta-fs0/projects/training/{user}/nsw/CAMPAIGN"
    assert f"nsw_scratch={folder}" in shown.stdout
    assert f"its folder on the site is {folder}" in shown.stderr
