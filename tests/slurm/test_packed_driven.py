"""Several runs in one task over fake commands: what a lost or held job may begin again, and what it must not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsw.campaign.selection import Selection
from nsw.cli import running
from nsw.engine.ledger_rows import NeedState, State
from nsw.errors import CampaignError

from .test_driven import campaign

__all__ = ["campaign"]


@pytest.fixture
def packed(campaign, fake):
    """Three runs in one task, each of which writes its number to `ran`."""
    it = campaign(f"bash -c 'echo {{{{ n }}}} >> {fake.work}/ran'", packed=3)
    it.rounds(2)
    return it


def wrote(it, n: int, name: str, text: str) -> None:
    """A run's first attempt left a file."""
    home = Path(it.scratch) / f"runs/n-{n}.baseline.r1/attempt-1"
    home.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)


def ran(fake) -> list[str]:
    return (fake.work / "ran").read_text().split()


def end(it, fake, job: int) -> None:
    fake.execute(job)
    fake.set(job, -1, "COMPLETED")
    it.rounds(2)


@pytest.mark.parametrize(("name", "text"), [("claim", "state=running\n"), ("status", "state=failed\nexit_code=1\n")])
def test_a_task_that_was_lost_after_one_of_its_runs_began_begins_no_run_again_by_itself(packed, fake, name, text):
    wrote(packed, 2, name, text)
    fake.forget(1, squeue=False, sacct=False)
    packed.rounds(6)
    assert len(fake.jobs()) == 1
    assert packed.states == ["lost", "lost" if name == "claim" else "failed", "lost"]
    packed.retry()
    packed.rounds()
    end(packed, fake, 2)
    assert (packed.states, ran(fake)) == (["done"] * 3, ["1", "2", "3"])


def test_a_task_that_was_lost_after_a_run_was_done_is_submitted_again_for_the_others(packed, fake):
    wrote(packed, 1, "status", "state=done\nexit_code=0\n")
    fake.forget(1, squeue=False, sacct=False)
    packed.rounds(4)
    end(packed, fake, 2)
    assert (packed.states, ran(fake)) == (["done"] * 3, ["2", "3"])


def test_what_begins_while_its_task_is_withdrawn_keeps_the_others_from_being_submitted_again(packed, fake, monkeypatch):
    withdrawing = packed.driver._watching._withdrawing
    claim = withdrawing.withdraw

    def late(runs):
        wrote(packed, 2, "claim", "state=running\n")
        return claim(runs)

    monkeypatch.setattr(withdrawing, "withdraw", late)
    fake.forget(1, squeue=False, sacct=False)
    packed.rounds(6)
    assert (len(fake.jobs()), packed.states) == (1, ["lost"] * 3)


def test_a_held_task_of_which_a_run_may_still_go_on_is_not_ended_for_the_others(packed, fake):
    wrote(packed, 1, "claim", "state=running\n")
    fake.set(1, -1, "PENDING", "launch failed requeued held")
    packed.rounds(8)
    assert json.loads((fake.state / "jobs/1/-1.json").read_text())["state"] == "PENDING"
    assert State.FAILED not in packed.states
    packed.rounds(5)  # ten polls after it has been so for two minutes
    assert packed.states == ["failed"] * 3
    assert len(fake.jobs()) == 1


def test_a_canary_that_was_done_and_left_nothing_is_really_done_again(campaign, fake):
    it = campaign(
        f"bash -c 'echo {{{{ n }}}} >> {fake.work}/ran'", extra="canary: runs above 2\n", fault=lambda _run: "no metric"
    )
    it.rounds()
    fake.execute(1)
    fake.set(1, -1, "COMPLETED")
    with pytest.raises(CampaignError, match="no metric"):
        it.rounds(2)
    running.retry([], str(it.folder.path), None, selection=Selection())
    it.fault = lambda _run: None
    it.open()
    it.rounds()
    end(it, fake, 2)
    assert ran(fake) == ["1", "1"]
    assert it.run(1).attempt == 2
    assert it.states[0] == "done"


def test_a_canary_is_done_again_after_its_neighbour_was(campaign, fake):
    it = campaign(
        "bash -c '[ {{ n }} != 2 ]'", packed=3, extra="canary: runs above 2\n", fault=lambda _run: "no metric"
    )
    it.rounds()
    fake.execute(1)
    fake.set(1, -1, "COMPLETED")
    with pytest.raises(CampaignError, match="no metric"):
        it.rounds(2)
    assert it.states == ["done", "failed", "done"]
    for job in (2, 3):
        running.retry(["n-2.baseline.r1"] if job == 2 else [], str(it.folder.path), None, selection=Selection())
        it.open()
        it.rounds()
        assert len(fake.jobs()) == job
        fake.execute(job)
        fake.set(job, -1, "COMPLETED")
        it.ledger.record_canary_verdict(NeedState.REFUSED)
        it.rounds(2)
    assert it.run(1).attempt == 3
