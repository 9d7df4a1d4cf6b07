"""Runs that need the same GPU go one after the other, also where the site lets many run at a time."""

import os
import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import in_folder

RECIPE = """nsw: 1
name: t
app: {command: "bash -c 'mkdir HOME/busy || echo two at once; sleep 0.3; rmdir HOME/busy'"}
matrix: {n: [1, 2, 3, 4]}
passes: [baseline]
resources: {gpus: 1, time: 1m}
"""


@pytest.fixture
def campaign(home, monkeypatch):
    """Four runs of one GPU each, done on a machine that has one, on a site that lets many run at a time."""
    smi = home / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\n[ \"$1\" = -L ] && echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    (home / "sites.yaml").write_text("nsw: 1\nsites:\n  mine: {scheduler: local, limits: {max_in_flight: 4}}\n")
    (home / "r.yaml").write_text(RECIPE.replace("HOME", str(home)))
    in_folder(home, "run", "r.yaml", "--site", "mine", "--sites", "sites.yaml", exits=0)
    (folder,) = home.glob("campaigns/*")
    return folder


def test_four_runs_never_share_the_gpu_of_this_machine(campaign, nsw):
    printed = list(campaign.glob("reports/*/stdout"))
    assert [file.read_text() for file in printed] == [""] * 4
    assert "at the same time" not in nsw("summarize", str(campaign)).out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("gpus=0", "ran at the same time on GPU 0 of "),
        ("gpus=", "and neither was given a GPU of its own (CUDA_VISIBLE_DEVICES is not set)"),
    ],
)
def test_an_answer_names_runs_that_were_on_one_gpu_at_the_same_time(campaign, nsw, given, told):
    for status in campaign.glob("reports/*/status"):
        status.write_text(status.read_text().replace("gpus=0", given))
    with closing(sqlite3.connect(campaign / "campaign.db")) as ledger, ledger:
        ledger.execute("UPDATE tasks SET started = (SELECT min(started) FROM tasks) WHERE id < 'n-3'")
        ledger.execute("UPDATE tasks SET ended = (SELECT max(ended) FROM tasks) WHERE id < 'n-3'")
    said = " ".join(nsw("summarize", str(campaign)).out.split())
    assert told in said
    assert said.count("n-1.baseline.r1 and n-2.baseline.r1") == 1
    assert "as did 4 more pairs" in said
