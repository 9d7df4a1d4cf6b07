"""Guided counters on a whole-node site: small cases side by side on the GPUs of a node, stage after stage, nsw killed between.

Stand-ins take the place of nsys and ncu, since there is no GPU: nsys gives a recorded timeline of an H200, and ncu writes
down what it was asked for. Each runs the program.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli import test_guided_from_lockfile as guided
from tests.contract.campaigns import folder, runs, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from .places import Cobalt

RUN_PROGRAM = """
for word; do [ "$word" != ./program ] || exec "$@"; shift; done
exit 0
"""
# two of a stage must run at once: each waits for the other
PROGRAM = """#!/bin/bash
stage=${PWD#*/runs/}; stage=${stage#*.}; stage=${stage%%.*}
echo "$stage $1 $CUDA_VISIBLE_DEVICES $COBALT_JOBID" >>WORK/ran
until [ "$(grep -c "^$stage " WORK/ran)" -ge 2 ] && [ -e "WORK/go.$stage" ]; do sleep 0.1; done
"""
SITES = """
nsw: 1
sites:
  s:
    scheduler: cobalt
    whole_nodes: true
    gpus: {per_node: 2, chip: gh100}
    profilers: {nsys: WORK/bin/nsys, ncu: WORK/bin/ncu}
    limits: {runs_per_job: 2, max_in_flight: 4, max_walltime: 3h}
"""
RECIPE = guided.RECIPE.replace("gpus: 0", "gpus: 1")
WORDS = ("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes")


@pytest.fixture
def work(cobalt: Cobalt) -> Path:
    """A folder with the stand-ins, a recipe and its program."""
    work = cobalt.work
    (work / "bin").mkdir()
    for name, text in (("nsys", guided.NSYS), ("ncu", guided.NCU)):
        (work / "bin" / name).write_text(text.replace("HOME", str(work)) + RUN_PROGRAM)
        (work / "bin" / name).chmod(0o755)
    guided.record(work, guided.FIRST)
    (work / "ncu-version").write_text("2024.1")
    (work / "sites.yaml").write_text(SITES.replace("WORK", str(work)))
    (work / "recipe.yaml").write_text(RECIPE)
    (work / "program").write_text(PROGRAM.replace("WORK", str(work)))
    (work / "program").chmod(0o755)
    return work


def ran(work: Path) -> list[list[str]]:
    """Stage, parameter, GPUs and job of each program that began."""
    file = work / "ran"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def test_small_cases_share_a_node_in_each_stage_and_nsw_is_killed_between_them(cobalt: Cobalt, work: Path) -> None:
    plan = json.loads(cobalt.nsw("plan", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--json").stdout)
    first = cobalt.start(*WORDS)
    wait_until(lambda: len(ran(work)) == 2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (work / "go.timeline").touch()
    wait_until(lambda: not cobalt.cqm()["jobs"])
    assert {stage for stage, *_ in ran(work)} == {"timeline"}
    (work / "go.counters").touch()
    done = cobalt.nsw("resume", "--root", "campaigns")
    assert done.stderr.count("chosen    n-") == 2, done.stderr
    assert runs(cobalt) == [("done", "")] * 4
    for stage in ("timeline", "counters"):
        programs = [rest for name, *rest in ran(work) if name == stage]
        assert sorted(n for n, _, _ in programs) == ["1", "2"]
        assert sorted(gpus for _, gpus, _ in programs) == ["0", "1"]
        assert len({job for _, _, job in programs}) == 1
    assert cobalt.cqm()["next"] - 1 == 2
    assert all("--kernel-id" in words for words in guided.asked(folder(cobalt)))
    # a node for each stage, two hours and a minute
    assert plan["node_hours_at_most"] == pytest.approx(2 * 121 / 60)
    assert plan["gpu_hours_at_most"] == pytest.approx(2 * plan["node_hours_at_most"])
