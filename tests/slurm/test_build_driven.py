"""Builds in jobs over fake commands with a clock of its own: what a real Slurm takes minutes or an accident for."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from nsw.engine.ledger_rows import State
from nsw.engine.poll import Poller
from nsw.errors import CampaignError
from nsw.schedulers.batch import Limits

from .test_driven import campaign

__all__ = ["campaign"]

BUILT = dedent("""\
    bash -c 'echo {{ n }}'
      build: {command: make all, where: job}""")

REFUSED = """sbatch: error: invalid partition specified: nope
sbatch: error: Batch job submission failed: Invalid partition name specified"""


@pytest.fixture
def built(campaign):
    """A campaign of three runs with a build."""
    return campaign(BUILT)


def build(it):
    (found,) = it.ledger.builds()
    return found


def states(fake, job: int) -> list[str]:
    return [json.loads(p.read_text())["state"] for p in sorted((fake.state / f"jobs/{job}").glob("[-0-9]*.json"))]


def end(it, fake, *, well: bool, build=None) -> None:
    """The build's job ends."""
    build = build or it.ledger.builds()[0]
    home = Path(it.scratch) / f"runs/{build.id}/attempt-{build.attempt}"
    home.mkdir(parents=True)
    (home / "stderr").write_text("cc1: all is lost\n")
    status = "state=done\nexit_code=0\n" if well else "state=failed\nexit_code=2\nreason=exit status 2\n"
    (home / "status").write_text(status)
    fake.set(fake.jobs()[0]["id"], -1, *(("COMPLETED",) if well else ("FAILED", "NonZeroExitCode", "2:0")))


def test_the_build_goes_first_and_the_runs_jobs_wait_for_it(built, fake):
    built.rounds(2)
    assert [job["after"] for job in fake.jobs()] == [None, "afterok:1"]
    assert (build(built).state, build(built).reason) == (State.QUEUED, "others in the queue come first (Priority)")
    end(built, fake, well=True)
    built.rounds()
    assert build(built).state is State.DONE
    assert built.states == ["queued"] * 3


def test_a_build_in_doubt_is_looked_up_before_anything_is_submitted(built, fake):
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    fake.fault("squeue", stderr="slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    built.rounds()
    assert build(built).state is State.INTENT
    assert built.states == ["planned"] * 3
    built.open()
    assert build(built).state is State.SUBMITTED
    built.rounds()
    assert [job["after"] for job in fake.jobs()] == [None, "afterok:1"]


def test_runs_are_held_while_their_build_runs_under_an_id_that_nobody_knows(built, fake):
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    fake.fault("squeue", stderr="slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    built.rounds()
    home = Path(built.scratch) / "runs/build/attempt-1"
    home.mkdir(parents=True)
    (home / "claim").write_text("state=running\n")
    fake.forget(1, squeue=False, sacct=False)
    built.rounds(2)
    assert (build(built).state, len(fake.jobs())) == (State.RUNNING, 1)
    (home / "status").write_text("state=done\nexit_code=0\n")
    built.rounds()
    assert [job["after"] for job in fake.jobs()] == [None, None]


def test_a_build_that_never_reached_the_scheduler_is_submitted_under_the_same_name(built, fake):
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out")
    built.rounds()
    (name,) = [s.name for s in built.ledger.submissions("intent", Path)]
    built.rounds(2)
    assert [job["name"] == name for job in fake.jobs()] == [True, False]
    assert build(built).attempt == 1


def test_a_failed_build_fails_its_runs_with_a_reason_that_points_at_its_log(built, fake):
    built.rounds(2)
    end(built, fake, well=False)
    built.told.clear()
    built.rounds(2)
    assert build(built).reason == "exit status 2: cc1: all is lost"
    assert built.states == ["failed"] * 3
    assert built.run(2).reason == (
        "its build failed: exit status 2: cc1: all is lost; `nsw logs build` prints its output"
    )
    assert states(fake, 2) == ["CANCELLED"] * 3
    assert set(built.told) == {"build", *(f"n-{n}.baseline.r1" for n in (1, 2, 3))}
    with pytest.raises(CampaignError, match="exit status 2: make all") as told:
        built.builds.conclude()
    assert "nsw logs build" in told.value.hint


def test_a_failed_build_costs_the_runs_of_another_one_no_polls(campaign, fake):
    """Of two builds one fails; what waits for the other is asked for as seldom as before."""
    it = campaign(BUILT.replace("make all", "'make {{ n }}'"))
    it.rounds(2)
    end(it, fake, well=False, build=it.ledger.builds()[0])
    it.rounds()
    assert it.states == ["failed", "queued", "queued"]
    it.rounds(6)
    before = it.scheduler.calls()["squeue"]
    for _ in range(20):
        it.clock.now += 2
        it.driver.round()
    assert it.scheduler.calls()["squeue"] - before <= 1


def test_runs_whose_jobs_slurm_ended_itself_are_blamed_on_their_build_too(built, fake):
    built.rounds(2)
    end(built, fake, well=False)
    fake.fault("scancel", stderr="scancel: error: down")
    for index in range(3):
        fake.set(2, index, "CANCELLED")
    built.rounds()
    assert {r.reason.partition(":")[0] for r in built.ledger.runs()} == {"its build failed"}


def test_a_build_that_slurm_forgot_before_it_began_is_submitted_again_and_its_runs_after_it(built, fake):
    built.rounds(2)
    fake.forget(1, squeue=False, sacct=False)
    built.rounds(3)
    assert (build(built).state, build(built).attempt) == (State.SUBMITTED, 2)
    assert states(fake, 2) == ["CANCELLED"] * 3
    built.rounds()
    assert [job["after"] for job in fake.jobs()] == [None, "afterok:1", None, "afterok:3"]
    assert built.states == ["submitted"] * 3
    fake.execute(2, 0)  # should it begin all the same
    assert [p.name for p in (Path(built.scratch) / "runs/n-1.baseline.r1").glob("attempt-*/*")] == ["claim"]


def test_runs_that_slurm_forgot_with_their_build_wait_for_the_next_one(built, fake):
    built.rounds(2)
    for job in (1, 2):
        fake.forget(job, squeue=False, sacct=False)
    built.rounds(4)
    assert [job["after"] for job in fake.jobs()] == [None, "afterok:1", None, "afterok:3"]


def test_a_build_that_was_lost_after_it_began_is_not_waited_for(built, fake):
    built.rounds(2)
    begun = Path(built.scratch) / "runs/build/attempt-1"
    begun.mkdir(parents=True)
    (begun / "claim").write_text("state=running\n")
    fake.forget(1, squeue=False, sacct=False)
    built.rounds(3)
    assert build(built).state is State.LOST
    assert built.run(1).reason.startswith(
        "its build was lost: squeue and sacct do not know its job any more; it had begun"
    )
    assert built.states == ["failed"] * 3


def test_a_build_that_slurm_refuses_fails_its_runs_and_nothing_else_is_submitted(built, fake):
    fake.fault("sbatch", stderr=REFUSED)
    built.rounds(2)
    assert fake.jobs() == []
    assert build(built).state is State.FAILED
    assert built.states == ["failed"] * 3
    assert "invalid partition specified: nope" in built.run(1).reason


def test_cancel_ends_the_build_too(built, fake):
    built.rounds(2)
    built.driver.cancel()
    assert states(fake, 1) == ["CANCELLED"]
    assert (build(built).state, build(built).reason) == (State.CANCELLED, "cancelled by nsw cancel")
    assert built.states == ["cancelled"] * 3


def test_a_build_for_which_no_run_waits_any_more_is_ended(built, fake):
    built.rounds(2)
    for index in range(3):
        fake.set(2, index, "CANCELLED")
    built.rounds()
    assert states(fake, 1) == ["CANCELLED"]
    assert build(built).state is State.CANCELLED


def test_a_retry_builds_again_under_another_name(built, fake):
    built.rounds(2)
    end(built, fake, well=False)
    built.rounds()
    built.retry()
    built.open()
    built.rounds(2)
    assert build(built).attempt == 2
    assert [job["after"] for job in fake.jobs()] == [None, "afterok:1", None, "afterok:3"]
    assert len({job["name"] for job in fake.jobs()}) == 4


def test_a_build_that_was_done_out_of_sight_is_not_done_again(built, fake):
    built.rounds(2)
    home = Path(built.scratch) / "runs/build/attempt-1"
    home.mkdir(parents=True)
    (home / "claim").write_text("state=running\n")
    fake.forget(1, squeue=False, sacct=False)
    built.rounds(3)
    (home / "status").write_text("state=done\nexit_code=0\n")
    built.retry()
    built.open()
    assert build(built).state is State.DONE
    built.rounds()
    assert fake.jobs()[-1]["after"] is None
    assert len(fake.jobs()) == 3


def test_a_build_whose_runs_run_already_is_not_ended_though_its_own_word_is_late(built, fake):
    built.rounds(2)
    fake.set(1, -1, "COMPLETED")
    for index in range(3):
        fake.set(2, index, "RUNNING")
    built.rounds(2)
    assert build(built).state is not State.CANCELLED
    end(built, fake, well=True)
    fake.forget(2, squeue=False, sacct=False)
    built.rounds(5)
    assert build(built).state is State.DONE
    assert len(fake.jobs()) == 3, "the runs were submitted again"


def test_a_build_that_was_lost_is_not_begun_again_by_an_nsw_that_goes_on_where_one_was_killed(
    campaign, fake, monkeypatch
):
    it = campaign(BUILT, limits=Limits(in_flight=1))
    it.rounds()
    begun = Path(it.scratch) / "runs/build/attempt-1"
    begun.mkdir(parents=True)
    (begun / "claim").write_text("state=running\n")
    fake.forget(1, squeue=False, sacct=False)
    assert it.states == ["planned"] * 3
    it.rounds(2)

    def killed(_self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Poller, "fail_dependents", killed)
        with pytest.raises(KeyboardInterrupt):
            it.rounds()
    assert build(it).state is State.LOST
    it.open()
    it.rounds(2)
    assert (build(it).attempt, len(fake.jobs())) == (1, 1)
    assert it.states == ["failed"] * 3
