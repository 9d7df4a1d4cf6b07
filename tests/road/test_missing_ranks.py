"""A process of several that leaves no report is missed, in every place where a person looks, and can be measured again."""

import json

import pytest

MPIRUN = """#!/bin/bash
n=$2; shift 2
for ((i = 0; i < n; i++)); do OMPI_COMM_WORLD_RANK=$i "$@" || exit; done
"""
# rank 1 ends in a way that leaves cProfile no time to write, until `cure` is there
PROGRAM = """\
import os, pathlib
if os.environ["OMPI_COMM_WORLD_RANK"] == "1" and not pathlib.Path(os.environ["CURE"]).exists():
    os._exit(0)
print("rank", os.environ["OMPI_COMM_WORLD_RANK"])
"""
RECIPE = """\
nsw: 1
name: t
resources: {gpus: 0, time: 2m}
app:
  command: ["{{ site.python }}", prog.py]
  files: [prog.py]
  env: {CURE: HOME/cure}
  launcher: {kind: mpirun, processes: 3}
passes: [host: {tool: cprofile}]
"""


@pytest.fixture(autouse=True)
def launcher(road, monkeypatch):
    """The launcher and the program."""
    (tools := road.home / "bin").mkdir()
    (tools / "mpirun").write_text(MPIRUN)
    (tools / "mpirun").chmod(0o755)
    (road.home / "prog.py").write_text(PROGRAM)
    monkeypatch.setenv("PATH", str(tools), prepend=":")


def test_a_rank_without_a_report_is_missed_and_measured_again(road):
    done = road.run(RECIPE.replace("HOME", str(road.home)), exits=1)
    (run,) = road.runs()
    assert f"error: {run}: no report of rank 1: 2 of 3 processes left one" in done.stderr
    assert f"`nsw retry {run}` measures it again" in done.stderr.replace(f"{road.command()[0]} -m nsw", "nsw")
    assert "1 run: 1 done (1 with missing or unreadable reports)" in done.stderr
    assert [line.split()[0] for line in road.nsw("status").stdout.splitlines() if "with missing or unreadable" in line][
        1:
    ] == [run]
    summary = road.nsw("summarize")
    told = f"1 run with missing or unreadable reports, such as {run}: `"
    assert (summary.returncode, told in summary.stdout) == (1, True), summary.stdout
    assert told in " ".join(json.loads(road.nsw("summarize", "--json").stdout)["missing"])
    assert road.nsw("logs", run).stdout.startswith(f"{run}: done, with missing or unreadable reports (`")
    assert road.runs()[run]["reading"] == "unreadable"

    nothing = road.nsw("retry", exits=0)  # where only a reader was missing, it would measure for nothing
    assert "1 run with missing or unreadable reports: " in nothing.stderr + nothing.stdout
    (road.home / "cure").touch()
    again = road.nsw("retry", run, exits=0)
    assert "again: 1 run: 1 done (1 with missing or unreadable reports)" in again.stderr + again.stdout
    assert road.runs()[run]["reading"] == "read"
    assert "no report of rank" not in road.nsw("problems").stdout


def test_a_recipe_may_allow_that_a_rank_leaves_no_report(road):
    road.run(RECIPE.replace("HOME", str(road.home)) + "allow_missing: 1\n", exits=0)
    (run,) = road.runs()
    assert f"warning: {run}: no report of rank 1: 2 of 3 processes left one" in road.nsw("problems").stdout
    assert road.runs()[run]["reading"] == "read"
