"""A campaign's loop over fake commands with a clock of its own: what a real Slurm takes minutes or an accident for."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from nsw.campaign.selection import Selection, job_ids
from nsw.cli import running
from nsw.cli.options import RecipeOptions
from nsw.engine.builds import Builds
from nsw.engine.collect import Collector
from nsw.engine.driven import DrivenCampaign
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import AT_A_TIME, SCRATCH, STOPPED, State
from nsw.engine.loop import Driver, reset_failures
from nsw.engine.poll import Withdrawal
from nsw.errors import CampaignError
from nsw.recipe.load import Overrides
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.slurm import Slurm
from nsw.transport import local
from nsw.transport.local import LocalTransport
from tests.campaign.stand_ins import Judged

from .test_faults import Clock

SITES = """
nsw: 1
sites:
  s: {scheduler: slurm, limits: {runs_per_job: PACKED}}
"""
RECIPE = """
nsw: 1
name: t
app:
  command: PROGRAM
matrix: {n: [1, 2, 3]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""


class Campaign:
    """A campaign on the fake Slurm; `round` lets time pass and the loop turn."""

    def __init__(self, fake, folder, limits, fault):
        self.fake, self.folder, self.clock = fake, folder, Clock()
        self.ledger = Ledger(folder.ledger)
        self.scratch = self.ledger.meta(SCRATCH)
        self.limits, self.fault = limits, fault
        self.open()

    def open(self):
        """As a new nsw does."""
        clock = self.clock
        self.scheduler = BatchScheduler(Slurm(), LocalTransport(), self.scratch, self.folder.id, self.limits,
                                        clock=clock, sleep=clock.sleep, draw=lambda: 0.5)  # fmt: skip
        self.told = []
        it = DrivenCampaign(self.folder, self.ledger, self.scheduler, LocalTransport(), self.scratch, self.told.extend)
        self.builds = Builds(it)
        self.driver = Driver(it, Judged(it, self.fault))
        self.builds.prepare()
        self.driver.recover()

    def rounds(self, number=1):
        for _ in range(number):
            self.clock.now += 61
            self.driver.round()

    def run(self, n):
        return self.ledger.runs_named([f"n-{n}.baseline.r1"])[0]

    def claim(self, n, facts=""):
        """Let the first attempt of a run have begun; the folder where it is, with these facts in its claim."""
        home = Path(self.scratch) / f"runs/n-{n}.baseline.r1/attempt-1"
        home.mkdir(parents=True)
        (home / "claim").write_text(f"state=running\n{facts}")
        return home

    def complete(self, job, *tasks):
        """Carry tasks of a job out, to a good end."""
        for index in tasks:
            self.fake.execute(job, index)
            self.fake.set(job, index, "COMPLETED")

    @property
    def states(self):
        return [str(r.state) for r in self.ledger.runs()]

    def retry_all(self):
        with self.ledger.transaction():
            self.ledger.release([r.id for r in self.ledger.runs()])

    def retry(self):
        with self.ledger.transaction():
            self.ledger.release([r.id for r in self.ledger.runs() if r.state in {State.FAILED, State.LOST}])


@pytest.fixture
def campaign(fake, monkeypatch):
    opened = []

    def make(program="'true'", packed=1, extra="", limits=None, fault=lambda _run: None):
        fake.hold()
        (fake.work / "sites.yaml").write_text(SITES.replace("PACKED", str(packed)))
        (fake.work / "recipe.yaml").write_text(dedent(RECIPE.replace("PROGRAM", program)) + extra)
        found = []
        monkeypatch.setattr(running, "carry_out", lambda run, **_: found.append(run.folder) or 0)
        options = RecipeOptions(str(fake.work / "recipe.yaml"), "s", [fake.work / "sites.yaml"], Overrides())
        running.run(options, fake.work / "campaigns", yes=True)
        opened.append(Campaign(fake, found[0], limits or Limits(), fault))
        return opened[-1]

    yield make
    for one in opened:
        one.ledger.close()


def test_why_a_run_waits_is_kept_in_the_ledger(campaign, fake):
    it = campaign()
    it.rounds()
    fake.set(1, 1, "PENDING", "QOSMaxGRESPerUser")
    it.rounds()
    assert it.run(1).reason == "others in the queue come first (Priority)"
    assert it.run(2).reason.startswith("a limit of the QOS for a user is reached")


def test_what_waits_as_it_did_is_looked_at_no_more(campaign, monkeypatch):
    it = campaign()
    it.rounds(2)
    looked, asked = [], it.scheduler.calls()["squeue"]
    monkeypatch.setattr(Collector, "status", lambda _self, *one: looked.append(one))
    monkeypatch.setattr(it.ledger, "runs", lambda *_: pytest.fail("the ledger was read"))
    monkeypatch.setattr(it.ledger, "update_tasks", lambda *_, **__: pytest.fail("the ledger was written"))
    it.rounds(3)
    assert it.scheduler.calls()["squeue"] - asked == 3
    assert looked == []


def test_of_runs_that_wait_for_another_reason_now_all_know_it_and_one_tells_of_it(campaign, fake):
    it = campaign()
    it.rounds(2)
    it.told.clear()
    for index in range(3):
        fake.set(1, index, "PENDING", "Resources")
    it.rounds()
    assert {r.reason for r in it.ledger.runs()} == {"waits for free nodes (Resources)"}
    assert it.told == ["n-1.baseline.r1"]


def test_what_another_nsw_left_in_flight_is_judged_by_the_next(campaign, fake):
    it = campaign()
    it.rounds(2)
    it.complete(1, 0)
    it.open()
    it.rounds()
    assert it.states == ["done", "queued", "queued"]


@pytest.mark.parametrize("reason", ["DependencyNeverSatisfied", "job requeued in held state", "PartitionTimeLimit"])
def test_a_task_that_would_never_begin_is_cancelled_and_reported_and_the_others_go_on(campaign, fake, reason):
    it = campaign()
    it.rounds()
    fake.set(1, 1, "PENDING", reason)
    it.rounds(2)
    assert it.run(2).state is State.QUEUED
    assert reason in it.run(2).reason
    it.rounds()
    assert it.states == ["queued", "failed", "queued"]
    assert it.run(2).reason.startswith("it would never have begun: ")
    assert reason in it.run(2).reason
    states = [json.loads((fake.state / f"jobs/1/{i}.json").read_text())["state"] for i in range(3)]
    assert states == ["PENDING", "CANCELLED", "PENDING"]


def test_a_reason_to_wait_for_ever_that_comes_and_goes_is_not_believed(campaign, fake):
    it = campaign()
    it.rounds()
    for _ in range(3):
        fake.set(1, 1, "PENDING", "PartitionTimeLimit")
        it.rounds()
        fake.set(1, 1, "PENDING", "Priority")
        it.rounds()
    assert it.states == ["queued", "queued", "queued"]


def test_what_the_first_launch_of_a_job_finished_counts_though_the_controller_holds_a_second(campaign, fake):
    it = campaign()
    it.rounds()
    fake.set(1, 0, "PENDING", "launch failed requeued held")
    claimed = it.claim(1)
    it.rounds(5)
    assert it.run(1).state is State.QUEUED
    (claimed / "claim").unlink()
    fake.execute(1, 0)
    it.rounds()
    assert it.run(1).state is State.DONE


def test_what_the_controller_holds_before_it_began_is_submitted_again_and_its_first_job_does_nothing(campaign, fake):
    it = campaign()
    it.rounds()
    fake.set(1, 1, "PENDING", "launch failed requeued held")
    it.rounds(3)
    assert it.run(2).state is State.SUBMITTED
    assert it.run(2).attempt == 2
    assert "it had not begun, and is submitted again" in it.run(2).reason
    assert json.loads((fake.state / "jobs/1/1.json").read_text())["state"] == "CANCELLED"
    fake.execute(1, 1, restart=1)
    assert [p.name for p in (Path(it.scratch) / "runs/n-2.baseline.r1").glob("attempt-*/*")] == ["claim"]


def test_a_job_that_a_confused_controller_started_twice_does_nothing_the_second_time_and_nsw_says_so(campaign, fake):
    it = campaign()
    it.rounds()
    begun = it.claim(1)
    it.complete(1, 0)
    it.rounds(6)
    assert sorted(p.name for p in begun.iterdir()) == ["again", "claim"]  # `again` names the job that came too late
    assert it.run(1).state is State.FAILED
    assert "started a second time by a scheduler that had lost its state" in it.run(1).reason
    assert "job 1_0 started it a second time and left it alone" in it.run(1).reason


def second_job(fake, first=1):
    """A job of the same name and tasks: a submission that arrived after it was looked up and made again."""
    jobs = fake.state / "jobs"
    number = max(int(p.name) for p in jobs.iterdir()) + 1
    shutil.copytree(jobs / str(first), jobs / str(number))
    file = jobs / str(number) / "job.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"id": number}))
    return number


@pytest.mark.parametrize(("ends", "state"), [("done", State.DONE), (None, State.FAILED)])
def test_of_two_jobs_the_one_that_claimed_a_run_is_believed(campaign, fake, ends, state):
    it = campaign()
    it.rounds()
    other = second_job(fake)
    home = it.claim(1, f"job_id={other}_0\nstart=1.0\n")
    fake.set(1, 0, "COMPLETED")  # it found the run claimed, and ended well
    fake.set(other, 0, "RUNNING")
    it.rounds(8)
    assert it.run(1).state is State.RUNNING
    if ends:
        (home / "status").write_text(f"state={ends}\njob_id={other}_0\nstart=1.0\nend=2.0\nexit_code=0\n")
    fake.set(other, 0, "COMPLETED")
    it.rounds(8)
    assert it.run(1).state is state


def test_a_run_that_another_job_than_nsws_own_did_says_so(campaign, fake):
    it = campaign()
    it.rounds()
    other = second_job(fake)  # as of a wrapper that submits twice
    fake.execute(other, 0)
    fake.set(1, 0, "RUNNING")  # it finds the run done after nsw has seen that
    it.rounds(6)
    assert it.run(1).state is State.DONE
    assert it.run(1).reason == "job 1_0 started it a second time and left it alone"


def test_a_job_that_is_started_anew_after_its_run_was_done_is_no_second_one(campaign, fake):
    it = campaign()
    it.rounds()
    fake.execute(1, 0)
    fake.execute(1, 0, restart=1)
    fake.set(1, 0, "COMPLETED")
    it.rounds(6)
    assert (it.run(1).state, it.run(1).reason) == (State.DONE, None)


def test_a_lost_run_that_ended_after_all_is_believed_by_the_next_nsw(campaign, fake):
    it = campaign()
    it.rounds()
    home = it.claim(1, "job_id=1_0\nstart=1.0\n")
    fake.forget(1, squeue=False, sacct=False)
    it.rounds(8)
    assert it.run(1).state is State.LOST
    (home / "status").write_text("state=done\njob_id=1_0\nstart=1.0\nend=2.0\nexit_code=0\n")
    (home / "stdout").write_text("said")
    it.open()
    assert it.run(1).state is State.DONE
    assert (it.folder.reports / "n-1.baseline.r1/stdout").read_text() == "said"


def test_cancel_ends_the_job_that_claimed_a_run_too(campaign, fake):
    it = campaign()
    it.rounds()
    other = second_job(fake)
    it.claim(1, f"job_id={other}_0\nstart=1.0\n")
    fake.set(1, 0, "COMPLETED")
    fake.set(other, 0, "RUNNING")
    it.rounds(3)
    it.driver.cancel()
    assert json.loads((fake.state / f"jobs/{other}/0.json").read_text())["state"] == "CANCELLED"


@pytest.mark.parametrize("accepted", [True, False])
def test_an_sbatch_that_fails_with_unknown_words_is_looked_up_and_never_refused_at_once(campaign, fake, accepted):
    it = campaign()
    for _ in range(1 if accepted else 3):
        fake.fault("sbatch", rc=1, stderr="site-log: cannot write /var/log/site.log", after=accepted)
    it.rounds(8)
    if accepted:
        assert len(fake.jobs()) == 1
        assert it.states == ["queued"] * 3
    else:
        assert fake.jobs() == []
        assert it.states == ["failed"] * 3
        assert "cannot write /var/log/site.log" in it.run(1).reason
        assert "the same came 3 times, and no job of that name appeared" in it.run(1).reason


@pytest.mark.parametrize(
    "words",
    [
        "Connection timed out", "Broken pipe", "Unspecified error", "Invalid job credential",
        "Invalid partition name specified",
    ],
)  # fmt: skip
def test_a_refusal_of_what_was_accepted_all_the_same_is_not_believed(campaign, fake, words):
    it = campaign()
    fake.fault("sbatch", rc=1, stderr=f"sbatch: error: Batch job submission failed: {words}", after=True)
    it.rounds(2)
    assert len(fake.jobs()) == 1
    assert it.states == ["queued"] * 3


def test_a_known_refusal_is_believed_once_one_look_up_found_no_job_of_that_name(campaign, fake):
    it = campaign()
    fake.fault("sbatch", rc=1, stderr="sbatch: error: Batch job submission failed: Invalid qos specification")
    asked = it.scheduler.calls().get("squeue", 0)
    it.rounds()
    assert it.states == ["failed"] * 3
    assert it.scheduler.calls()["squeue"] - asked == 1
    assert it.scheduler.calls()["sbatch"] == 1


def test_a_known_refusal_whose_name_cannot_be_looked_up_is_in_doubt(campaign, fake):
    it = campaign()
    fake.fault(
        "sbatch", rc=1, stderr="sbatch: error: Batch job submission failed: Invalid qos specification", after=True
    )
    for _ in range(4):
        fake.fault("squeue", rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    it.rounds()
    assert it.states == ["intent"] * 3
    assert "Invalid qos" in it.run(1).reason
    it.rounds(2)
    assert len(fake.jobs()) == 1
    assert it.states == ["queued"] * 3


def test_a_run_that_ended_well_and_whose_folder_is_gone_says_so(campaign, fake):
    it = campaign()
    it.rounds()
    fake.execute(1, 0)
    home = Path(it.scratch) / "runs/n-1.baseline.r1"
    home.rename(home.with_name("elsewhere"))
    fake.set(1, 0, "COMPLETED")
    it.rounds(6)
    assert it.run(1).state is State.FAILED
    assert it.run(1).reason == f"its job ended well, and {home}/attempt-1 is not there: moved or removed since"
    home.with_name("elsewhere").rename(home)
    it.open()
    assert it.run(1).state is State.DONE


TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@pytest.mark.parametrize("found_out", [True, False], ids=["not found", "not asked"])
@pytest.mark.parametrize("again", [True, False], ids=["another nsw", "the same nsw"])
def test_a_submission_that_arrives_after_a_cancel_begins_nothing(campaign, fake, found_out, again):
    it = campaign()
    fake.fault("sbatch", rc=1, stderr=TIMED_OUT)
    for _ in range(1 if found_out else 20):
        fake.fault("sbatch", rc=1, stderr=TIMED_OUT)
    if not found_out:
        for _ in range(40):
            fake.fault("squeue", rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
    late = it.scheduler.submit
    sent = []
    it.scheduler.submit = lambda some: sent.extend(some) or late(some)
    it.rounds()
    if again and found_out:
        it.open()
    it.driver.cancel()
    assert it.states == ["cancelled"] * 3
    shutil.rmtree(fake.state / "faults", ignore_errors=True)
    (outcome,) = late(sent[:1])  # the controller takes it now
    assert outcome.native == "1/0"
    for index in range(3):
        fake.execute(1, index)
    for n in (1, 2, 3):
        files = sorted(p.name for p in (Path(it.scratch) / f"runs/n-{n}.baseline.r1").glob("attempt-*/*"))
        assert "stdout" not in files
        assert "status" not in files
    it.retry_all()
    it.rounds(2)
    assert it.states == ["queued"] * 3
    assert [it.run(n).attempt for n in (1, 2, 3)] == [2, 2, 2]


def test_a_run_that_began_before_its_late_submission_was_claimed_is_not_called_cancelled(campaign, fake):
    it = campaign()
    fake.fault("sbatch", rc=1, stderr=TIMED_OUT)
    for _ in range(40):
        fake.fault("squeue", rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
    it.rounds()
    it.claim(2, "job_id=7_1\nstart=1.0\n")
    it.driver.cancel()
    assert it.states[0] == it.states[2] == "cancelled"
    assert it.states[1] != "cancelled"


def state_of(fake, job: int, index: int) -> str | None:
    file = fake.state / f"jobs/{job}/{index}.json"
    return json.loads(file.read_text())["state"] if file.exists() else None


def two_jobs_of_a_name(campaign, fake):
    """The campaign whose submission timed out and was made again: the first job arrived after all."""
    it = campaign()
    for _ in range(2):
        fake.fault("sbatch", rc=1, stderr=TIMED_OUT)
    it.rounds(2)
    it.rounds(2)
    other = second_job(fake)
    return it, other


def test_a_job_that_arrives_after_its_name_was_submitted_again_is_cancelled_too_and_begins_nothing(campaign, fake):
    it, other = two_jobs_of_a_name(campaign, fake)
    it.driver.cancel()
    assert it.states == ["cancelled"] * 3
    for job in (1, other):
        assert [state_of(fake, job, index) for index in range(3)] == ["CANCELLED"] * 3
    for index in range(3):  # as a controller does that lost the cancellation
        fake.execute(other, index)
    assert not list(Path(it.scratch).glob("runs/*/attempt-1/stdout"))
    it.retry_all()
    it.rounds(2)
    assert [it.run(n).attempt for n in (1, 2, 3)] == [2, 2, 2]


@pytest.mark.parametrize("is_listed", [True, False])
def test_cancel_ends_the_job_that_began_a_run_while_the_job_that_nsw_submitted_waits(campaign, fake, is_listed):
    it, other = two_jobs_of_a_name(campaign, fake)
    it.claim(1, f"job_id={other}_0\nstart=1.0\n")
    fake.set(other, 0, "RUNNING")
    if not is_listed:
        fake.fault("squeue", rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
    it.driver.cancel()
    assert it.states == ["cancelled"] * 3
    assert [state_of(fake, job, 0) for job in (1, other)] == ["CANCELLED"] * 2


def test_a_run_that_another_job_of_its_name_does_is_running_though_its_own_job_waits(campaign, fake):
    it, other = two_jobs_of_a_name(campaign, fake)
    home = it.claim(1, f"job_id={other}_0\nstart=1.0\n")
    fake.set(other, 0, "RUNNING")
    it.rounds(2)
    assert it.states == ["running", "queued", "queued"]
    (home / "status").write_text(f"state=done\njob_id={other}_0\nstart=1.0\nend=2.0\nexit_code=0\n")
    fake.set(other, 0, "COMPLETED")
    it.rounds(2)
    assert it.states == ["done", "queued", "queued"]


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize(("code", "words"), [(72, "is missing on the site"), (73, "the disk or the quota")])
def test_exit_statuses_of_nsws_own_are_known_from_squeue_and_from_sacct(campaign, fake, code, words, is_listed):
    it = campaign()
    it.rounds()
    for index in range(3):
        fake.set(1, index, "FAILED", "NonZeroExitCode", f"{code}:0")
    fake.forget(1, squeue=is_listed, sacct=not is_listed)
    it.rounds(2)
    assert it.states == ["failed"] * 3
    assert words in it.run(1).reason


@pytest.mark.parametrize("word", ["CANCELLED", "NODE_FAIL"])
def test_a_run_that_failed_by_the_schedulers_word_alone_and_ended_well_is_believed_by_the_next_nsw(
    campaign, fake, word
):
    it = campaign()
    it.rounds()
    home = it.claim(1, "job_id=1_0\nstart=1.0\n")
    fake.set(1, 0, word)
    it.rounds(2)
    assert it.run(1).state is State.FAILED
    (home / "status").write_text("state=running\njob_id=1_0\nstart=1.0\n")
    it.open()
    assert it.run(1).state is State.FAILED
    (home / "status").write_text("state=done\njob_id=1_0\nstart=1.0\nend=2.0\nexit_code=0\n")
    (home / "stdout").write_text("said")
    it.open()
    assert (it.run(1).state, it.run(1).reason) == (State.DONE, None)
    assert (it.folder.reports / "n-1.baseline.r1/stdout").read_text() == "said"


def test_why_and_since_when_a_submission_is_in_doubt_is_in_the_ledger_until_it_is_known(campaign, fake):
    down = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    it = campaign()
    fake.fault("sbatch", rc=1, stderr=down)
    for _ in range(40):
        fake.fault("squeue", rc=1, stderr=down)
    it.rounds()
    assert it.states == ["intent"] * 3
    ((state, reason, first, count),) = it.ledger.why_waiting()
    assert (state, first, count) == (State.INTENT, "n-1.baseline.r1", 3)
    assert re.match(
        r"not submitted, as far as is known, since 20\d\d-\d\d-\d\d \d\d:\d\d UTC: sbatch: exit status 1; ", reason
    )
    assert "Unable to contact slurm controller" in reason
    it.rounds(2)
    assert it.ledger.why_waiting() == [(state, reason, first, count)]
    for left in fake.state.glob("faults/squeue*"):
        left.unlink()
    it.rounds(4)
    assert it.states == ["queued"] * 3
    assert not any("as far as is known" in (run.reason or "") for run in it.ledger.runs())


@pytest.mark.parametrize("code", [137, 143])
def test_an_sbatch_that_is_killed_again_and_again_fails_no_run(campaign, fake, code):
    it = campaign()
    said = []
    it.scheduler.say = said.append
    for _ in range(5):
        fake.fault("sbatch", rc=code, stderr="")
    it.rounds(12)
    assert len(fake.jobs()) == 1
    assert it.states == ["queued"] * 3
    assert said == ["sbatch failed 3 times in a row (it was killed); nsw keeps trying, once a minute"]


def test_what_begins_while_nsw_gives_it_up_is_left_to_run(campaign, fake, monkeypatch):
    it = campaign()
    it.rounds()
    fake.set(1, 0, "PENDING", "launch failed requeued held")
    withdraw = Withdrawal.withdraw

    def late(self, runs):
        for run in runs:
            begun = Path(it.scratch) / f"runs/{run.id}/attempt-1"
            begun.mkdir(parents=True)
            (begun / "claim").write_text("state=running\n")
        return withdraw(self, runs)

    monkeypatch.setattr(Withdrawal, "withdraw", late)
    it.rounds(3)
    assert it.run(1).state is State.QUEUED
    assert json.loads((fake.state / "jobs/1/0.json").read_text())["state"] == "PENDING"


def test_a_fault_that_stays_is_not_tried_for_ever(campaign, fake):
    it = campaign()
    for job in range(1, 5):
        it.rounds(2)
        fake.forget(job, squeue=False, sacct=False)
        it.rounds(3)
    assert it.states == ["lost"] * 3
    assert it.run(1).reason == "squeue and sacct do not know its job any more"
    assert it.run(1).attempt == 4


def test_a_job_that_nobody_knows_is_submitted_again_unless_it_began(campaign, fake):
    it = campaign()
    it.rounds(2)
    fake.forget(1, squeue=False, sacct=False)
    it.claim(2)
    it.rounds(3)
    assert it.states == ["submitted", "lost", "submitted"]
    assert it.run(2).reason == (
        "squeue and sacct do not know its job any more; it had begun and may still be running: only `nsw retry` begins it again"
    )
    fake.execute(1, 0)
    it.rounds()
    it.complete(2, 0, 2)
    it.rounds(6)
    assert it.states == ["done", "lost", "done"]
    assert [it.run(n).attempt for n in (1, 2, 3)] == [2, 1, 2]


def test_a_begun_task_that_vanishes_beside_its_siblings_is_lost_and_only_after_two_minutes(campaign, fake):
    fake.settings(accounting=False)
    it = campaign()
    it.rounds(2)
    for n in (1, 2):
        (fake.state / f"jobs/1/{n - 1}.json").unlink()
    it.claim(2, "start=1.0\n")
    it.rounds(2)
    assert it.states == ["cancelled", "running", "queued"]
    it.rounds(2)
    assert it.states == ["cancelled", "lost", "queued"]
    assert it.run(2).reason == (
        "squeue lists other tasks of its array and not this one; it had begun and may still be running: only `nsw retry` begins it again"
    )


def test_the_rest_of_an_array_that_slurmctld_forgot_is_submitted_again_though_sacct_knows_its_first_task(
    campaign, fake
):
    it = campaign()
    it.rounds(2)
    it.complete(1, 0)
    fake.forget(1, squeue=False)
    for n in (2, 3):
        (fake.state / f"jobs/1/{n - 1}.json").unlink()
    it.rounds()
    assert it.states == ["done", "submitted", "submitted"]
    assert it.run(2).reason.startswith("squeue does not list its job")
    it.rounds(2)
    assert it.states == ["done", "submitted", "submitted"]
    assert [it.run(n).attempt for n in (1, 2, 3)] == [1, 2, 2]
    assert it.run(2).reason == "squeue and sacct do not know its job any more; it had not begun, and is submitted again"


def test_a_begun_task_that_comes_back_into_the_queue_goes_on(campaign, fake):
    fake.settings(accounting=False)
    it = campaign()
    it.rounds(2)
    task = fake.state / "jobs/1/1.json"
    listed = task.read_text()
    task.unlink()
    it.claim(2, "start=1.0\n")
    it.rounds(2)
    task.write_text(listed)
    fake.set(1, 1, "RUNNING")
    it.rounds(4)
    assert it.states == ["queued", "running", "queued"]


def test_retry_failed_begins_again_what_was_lost_and_leaves_the_cancelled(campaign, fake):
    it = campaign()
    it.rounds(2)
    it.ledger.update_tasks(["n-1.baseline.r1"], state=State.LOST)
    it.ledger.update_tasks(["n-2.baseline.r1"], state=State.CANCELLED)
    it.ledger.update_tasks(["n-3.baseline.r1"], state=State.FAILED)
    running.retry([], str(it.folder.path), None, failed=True, selection=Selection())
    assert it.states == ["planned", "cancelled", "planned"]


def test_a_job_that_a_sibling_cluster_took_over_is_judged_by_what_its_run_wrote(campaign, fake):
    it = campaign()
    it.rounds()
    for index in range(3):
        fake.set(1, index, "REVOKED")
    it.rounds(2)
    assert it.states == ["submitted"] * 3
    assert "a sibling cluster runs it" in it.run(1).reason
    fake.execute(1, 0)
    it.rounds()
    assert it.states == ["done", "submitted", "submitted"]
    fake.forget(1, squeue=False)
    it.rounds(12)
    assert it.states[0] == "done"
    assert [job["name"] for job in fake.jobs()][1:], "what had not begun was submitted again under another name"


def test_what_a_job_finished_out_of_sight_is_not_done_again(campaign, fake):
    it = campaign()
    it.rounds(2)
    fake.forget(1, squeue=False, sacct=False)
    for n in (1, 2, 3):
        it.claim(n)
    it.rounds(3)
    assert it.states == ["lost"] * 3
    (Path(it.scratch) / "runs/n-1.baseline.r1/attempt-1/claim").unlink()
    fake.execute(1, 0)
    it.retry()
    it.rounds()
    it.complete(2, 0, 1, 2)
    it.rounds(6)
    assert it.states == ["done"] * 3
    assert [it.run(n).attempt for n in (1, 2, 3)] == [1, 2, 2]


def test_too_much_memory_without_cgroups_is_the_runs_reason(campaign, fake):
    it = campaign()
    it.rounds()
    (log,) = [j["output"].replace("%a", "1") for j in fake.jobs()]
    Path(log).write_text("slurmstepd: error: Job 1 exceeded memory limit (300000 > 204800), being killed\n")
    fake.set(1, 1, "FAILED", code="0:9")
    it.rounds()
    assert "out of memory: Job 1 exceeded memory limit" in it.run(2).reason


@pytest.mark.parametrize(
    ("state", "words"), [("NODE_FAIL", "a node of the job failed"), ("PREEMPTED", "preempted by another one")]
)
def test_a_task_that_lost_its_node_says_so(campaign, fake, state, words):
    it = campaign()
    it.rounds()
    fake.set(1, 2, state)
    it.rounds()
    assert words in it.run(3).reason


def test_a_preempted_task_that_is_put_back_runs_again_and_keeps_what_it_left(campaign, fake):
    it = campaign("'true'")
    it.rounds()
    home = Path(it.scratch) / "runs/n-1.baseline.r1"
    fake.execute(1, 0)
    fake.set(1, 0, "PENDING", "BeginTime")
    it.rounds()
    assert it.run(1).state is State.QUEUED
    assert "Slurm waits two minutes" in it.run(1).reason
    (home / "attempt-1/status").write_text("state=failed\nexit_code=143\n")
    fake.execute(1, 0, restart=1)
    fake.set(1, 0, "COMPLETED")
    it.rounds()
    assert it.run(1).state is State.DONE
    assert "exit_code=143" in (home / "attempt-1.before-restart-1/status").read_text()


def test_a_walltime_that_ends_a_packed_job_midway_costs_only_the_runs_that_were_not_done(campaign, fake):
    it = campaign(f"bash -c 'echo {{{{ n }}}} >> {fake.work}/ran'", packed=3)
    it.rounds()
    script = it.folder.script("t-j1")
    whole = script.read_text()
    second = whole.index("# n=2")
    script.write_text(whole[:second] + "exit 0\n" + whole[second:])
    fake.execute(1)
    script.write_text(whole)
    it.claim(2)
    fake.set(1, -1, "TIMEOUT")
    it.rounds()
    assert it.states == ["done", "failed", "failed"]
    assert it.run(2).reason == "the job was over its time limit of 2m in the middle of this run"
    assert it.run(3).reason == "the job was over its time limit of 2m before this run began"
    it.retry()
    it.rounds()
    it.complete(2, -1)
    it.rounds()
    assert it.states == ["done"] * 3
    assert (fake.work / "ran").read_text().split() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("TIMEOUT", "the job was over its time limit of 2m"),
        ("NODE_FAIL", "a node of the job failed"),
        ("OUT_OF_MEMORY", "the job ran out of memory"),
        ("CANCELLED", "the job was cancelled"),
    ],
)
def test_runs_that_never_began_tell_their_jobs_own_reason_and_retry_failed_does_them_again(campaign, state, words):
    it = campaign(packed=3)
    it.rounds()
    it.fake.set(1, -1, state)
    it.rounds()
    assert {r.reason.split(";")[0] for r in it.ledger.runs()} == {f"{words} before this run began"}
    running.retry([], str(it.folder.path), None, failed=True, selection=Selection())
    assert it.states == ["planned"] * 3


def test_only_what_failed_is_submitted_again_as_one_smaller_array(campaign, fake):
    it = campaign("bash -c '[ {{ n }} = 2 ]'")
    it.rounds()
    it.complete(1, 0, 1, 2)
    it.rounds()
    assert it.states == ["failed", "done", "failed"]
    it.retry()
    it.rounds()
    assert sorted(p.stem for p in (fake.state / "jobs/2").glob("[0-9]*.json")) == ["0", "2"]


def test_a_canary_goes_ahead_and_the_rest_follows_in_one_array(campaign, fake):
    it = campaign(extra="canary: on\n")
    it.rounds()
    assert len(fake.jobs()) == 1
    it.complete(1, -1)
    it.rounds(2)
    assert [len(list((fake.state / f"jobs/{n}").glob("[-0-9]*.json"))) for n in (1, 2)] == [1, 2]


def test_a_canary_that_shows_nothing_holds_the_rest_until_a_person_resumes(campaign, fake):
    it = campaign(extra="canary: runs above 2\n", fault=lambda _run: "its report holds no metric")
    it.rounds()
    it.complete(1, -1)
    with pytest.raises(CampaignError, match="its report holds no metric") as stopped:
        it.rounds(2)
    assert "nsw resume" in stopped.value.hint
    assert it.states == ["done", "planned", "planned"]
    it.open()
    it.rounds()
    assert it.states == ["done", "submitted", "submitted"]


def test_how_many_run_at_a_time_is_changed_while_they_run(campaign, fake):
    it = campaign(limits=Limits(in_flight=2))
    it.rounds()
    assert fake.jobs()[0]["throttle"] == "2"
    it.ledger.set_meta(AT_A_TIME, 1)
    it.rounds()
    assert fake.jobs()[0]["throttle"] == "1"
    it.ledger.set_meta(AT_A_TIME, 3)
    it.rounds()
    assert fake.jobs()[0]["throttle"] == "3"


def test_a_submission_in_doubt_from_before_midnight_is_found(campaign, fake):
    it = campaign()
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    it.rounds()
    file = fake.state / "jobs/1/job.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"squeue": False, "yesterday": True}))
    it.rounds()
    assert len(fake.jobs()) == 1
    assert it.states == ["submitted"] * 3


def test_a_submission_in_doubt_that_ran_and_is_forgotten_is_not_submitted_again(campaign, fake):
    it = campaign()
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    fake.fault("squeue", stderr="slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    it.rounds()
    for index in range(3):
        fake.execute(1, index)
    fake.forget(1, squeue=False, sacct=False)
    it.rounds(2)
    assert it.states == ["done"] * 3
    assert len(fake.jobs()) == 1


def test_what_was_cancelled_while_in_doubt_is_cancelled_when_it_is_found(campaign, fake):
    it = campaign()
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    it.rounds()
    it.driver.cancel()
    assert it.states == ["cancelled"] * 3
    it.rounds()
    assert [json.loads((fake.state / f"jobs/1/{i}.json").read_text())["state"] for i in range(3)] == ["CANCELLED"] * 3
    assert it.driver.round() is False


@pytest.mark.parametrize("again", [False, True])
def test_what_was_cancelled_while_in_doubt_is_in_doubt_until_its_job_is_cancelled(campaign, fake, again):
    it = campaign()
    fake.fault("sbatch", stderr="sbatch: error: Socket timed out", after=True)
    it.rounds()
    it.driver.cancel()
    for _ in range(4):
        fake.fault("scancel", stderr="scancel: error: Unable to contact slurm controller (connect failure)")
    it.rounds()
    if again:
        it.open()
    it.rounds()
    assert [json.loads((fake.state / f"jobs/1/{i}.json").read_text())["state"] for i in range(3)] == ["CANCELLED"] * 3
    assert it.driver.round() is False


def test_an_sbatch_that_is_killed_is_in_doubt_and_not_refused(campaign, fake):
    it = campaign()
    fake.fault("sbatch", rc=137, stderr="", after=True)
    it.rounds(2)
    assert len(fake.jobs()) == 1
    assert it.states == ["queued"] * 3


def test_the_reason_of_a_failed_run_ends_with_its_last_words(campaign, fake):
    it = campaign("bash -c 'echo first >&2; echo no such kernel >&2; exit 3'")
    it.rounds()
    it.complete(1, 0, 1, 2)
    it.rounds()
    assert it.run(1).reason == "exit status 3: no such kernel"


def test_a_refusal_after_the_plan_was_taken_names_the_line_that_asks(campaign, fake):
    it = campaign()
    fake.fault(
        "sbatch",
        stderr="sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
    )
    it.rounds()
    assert it.states == ["failed"] * 3
    reason = it.run(1).reason
    assert "sbatch refused the job: Requested time limit is invalid" in reason
    assert "; resources.time at " in reason
    assert "recipe.yaml:8:28; " in reason
    assert "`sinfo -o '%P %l'`" in reason


def test_each_run_has_the_job_id_that_squeue_shows(campaign):
    it = campaign()
    it.rounds()
    assert job_ids(it.ledger, it.ledger.runs()) == {f"n-{n}.baseline.r1": f"1_{n - 1}" for n in (1, 2, 3)}


def test_when_a_run_began_is_known_though_slurm_said_it_runs_before_the_job_did(campaign, fake):
    it = campaign()
    it.rounds()
    fake.set(1, 0, "RUNNING")
    it.rounds()
    assert (it.run(1).state, it.run(1).started) == (State.RUNNING, None)
    it.claim(1, "host=node1\nstart=123.5\n")
    it.rounds()
    assert (it.run(1).host, it.run(1).started) == ("node1", 123.5)


@pytest.mark.parametrize(
    ("code", "last"),
    [(1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"), (137, "")],
)
def test_an_sbatch_that_had_to_ask_several_times_is_in_doubt_when_its_last_try_is(campaign, fake, code, last):
    it = campaign()
    busy = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"
    fake.fault("sbatch", rc=code, stderr=f"{busy}\n{last}", after=True)
    it.rounds(2)
    assert len(fake.jobs()) == 1
    assert it.states == ["queued"] * 3


def test_a_cluster_that_does_not_say_what_it_is_set_to_is_asked_again(campaign, fake):
    it = campaign()
    it.rounds(2)
    it.open()
    fake.set(1, 0, "TIMEOUT")
    fake.forget(1, squeue=False)
    for _ in range(4):
        fake.fault("scontrol", stderr="slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)")
    it.rounds()
    assert "failed" not in it.states
    it.rounds()
    assert it.states == ["failed", "submitted", "submitted"]


def test_a_job_that_begins_anew_just_when_nsw_gives_it_up_does_nothing(campaign, fake):
    it = campaign(f"bash -c 'echo {{{{ n }}}} >> {fake.work}/ran'")
    it.rounds()
    (shared,) = Path(it.scratch).glob("scripts/nsw-*.sh")  # what the jobs share
    whole = shared.read_text()
    at = whole.index('  [ "$nsw_restart" = 0 ]')
    shared.write_text(f'{whole[:at]}  mkdir -p "$dir"; echo state=withdrawn >"$dir/claim"\n{whole[at:]}')
    fake.execute(1, 0, restart=1)
    assert not (fake.work / "ran").exists()


@pytest.mark.parametrize(("owner", "name", "call"), [(local, "_link_or_copy", 1), (local, "_link_or_copy", 2),
                                                     (Path, "rename", 2), (Path, "rename", 4)])  # fmt: skip
def test_what_an_earlier_attempt_left_is_kept_whole_though_nsw_is_killed_meanwhile(
    campaign, fake, monkeypatch, owner, name, call
):
    it = campaign("bash -c 'echo {{ n }}; exit 1'")
    for job in (1, 2):
        it.rounds()
        it.complete(job, 0, 1, 2)
        if job == 1:
            it.rounds()
            it.retry()
    real, calls = getattr(owner, name), []

    def killed(*given):
        calls.append(given)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(KeyboardInterrupt):
            it.rounds()
    it.open()
    it.rounds()
    home = it.folder.reports / "n-1.baseline.r1"
    kept = {"claim", "conditions.txt", "status", "stderr", "stdout"}
    assert {p.name for p in home.iterdir()} == kept | {"attempt-1"}
    assert {p.name for p in (home / "attempt-1").iterdir()} == kept
    assert ["attempt=1\n" in (home / at).read_text() for at in ("attempt-1/status", "status")] == [True, False]


def test_after_too_many_failures_what_waits_is_withdrawn_from_the_queue_until_a_person_goes_on(campaign, fake):
    it = campaign(extra="stop_after_failures: 1\n")
    it.rounds()
    fake.set(1, 0, "RUNNING")
    fake.set(1, 1, "FAILED", code="1:0")
    home = it.claim(1)
    it.rounds(2)
    assert it.states == ["running", "failed", "planned"]
    assert it.ledger.meta(STOPPED) == "1 run failed (stop_after_failures: 1)"
    assert it.run(3).reason == "withdrawn: too many runs failed"
    assert json.loads((fake.state / "jobs/1/2.json").read_text())["state"] == "CANCELLED"
    (home / "status").write_text("state=done\nexit_code=0\n")
    fake.set(1, 0, "COMPLETED")
    it.rounds(2)
    assert it.states == ["done", "failed", "planned"]
    assert not it.driver.round()
    assert len(fake.jobs()) == 1
    reset_failures(it.ledger)
    it.open()
    it.rounds()
    assert it.states == ["done", "failed", "submitted"]


def test_what_begins_while_it_is_withdrawn_goes_on(campaign, fake):
    it = campaign(extra="stop_after_failures: 1\n")
    it.rounds()
    fake.set(1, 1, "FAILED", code="1:0")
    home = Path(it.scratch) / "runs/n-3.baseline.r1/attempt-1"
    home.mkdir(parents=True)
    (home / "claim").write_text("state=running\n")  # a moment ago, as squeue does not know yet
    it.rounds(2)
    assert it.states == ["planned", "failed", "queued"]


def test_with_a_throttle_of_0_nothing_is_submitted_and_with_another_it_goes_on(campaign, fake):
    it = campaign()
    it.ledger.set_meta(AT_A_TIME, 0)
    it.rounds(2)
    assert fake.jobs() == []
    assert it.states == ["planned"] * 3
    it.ledger.set_meta(AT_A_TIME, 2)
    it.rounds()
    assert it.states == ["submitted"] * 3


def test_what_was_removed_from_the_folder_of_the_campaign_there_is_sent_again(campaign, fake):
    program = fake.work / "prog"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    it = campaign("./prog\n  files: [prog]")
    it.rounds()
    files = [*Path(it.scratch).glob("scripts/nsw-*.sh"), Path(it.scratch) / "app/prog"]
    for file in files:
        file.unlink()
    it.open()
    assert all(file.is_file() for file in files)
    it.complete(1, 0, 1, 2)
    it.rounds()
    assert it.states == ["done"] * 3
