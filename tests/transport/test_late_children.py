"""A submit command that takes too long: nothing that it started may hand its job over after nsw has looked for it."""

from pathlib import Path

import pytest

from nsw.schedulers import batch
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.model import Submission
from nsw.schedulers.slurm import Slurm
from nsw.transport.local import LocalTransport

# its child has no output open, outlives it, and submits as soon as `go` is there
SBATCH = """#!/usr/bin/env bash
( echo $BASHPID >>HERE/children; until [ -e HERE/go ]; do sleep 0.02; done; echo late >>HERE/submitted
) </dev/null >/dev/null 2>&1 &
sleep 600
"""


def lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    file = tmp_path / "bin" / "sbatch"
    file.parent.mkdir()
    file.write_text(SBATCH.replace("HERE", str(tmp_path)))
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")
    monkeypatch.setattr(batch, "_EACH_S", 0.0)
    return tmp_path


def test_after_a_timeout_of_sbatch_nothing_of_its_process_group_is_left(sbatch, monkeypatch):
    script = sbatch / "job.sh"
    script.write_text("#!/bin/sh\n")
    scheduler = BatchScheduler(Slurm(), LocalTransport(), str(sbatch), "c-1", Limits())
    monkeypatch.setattr(BatchScheduler, "_can_throttle", lambda _self: False)
    children = sbatch / "children"
    for seconds in (0.5, 2.0, 8.0, 32.0):  # until the machine was fast enough for the child to begin
        monkeypatch.setattr(batch, "_SUBMIT_S", seconds)
        (outcome,) = scheduler.submit([Submission("nsw-1", "j", script, 1, (0,))])
        assert outcome.native is None
        assert outcome.doubt is not None  # its name is looked up next
        assert outcome.doubt.passing
        if children.exists():
            break
    (sbatch / "go").touch()
    pids = children.read_text().split()
    assert pids
    assert not [pid for pid in pids if lives(pid)]
    assert not (sbatch / "submitted").exists()
