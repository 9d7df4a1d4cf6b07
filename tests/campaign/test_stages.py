"""Stages: a run that waits until another pass of its case was read, and does what that decides."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nsw.campaign.start import Ingredients, make_campaign_folders
from nsw.engine import stages
from nsw.engine.builds import Builds
from nsw.engine.driven import DrivenCampaign
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SCRATCH, Choice, Reading, State
from nsw.engine.loop import Driver
from nsw.engine.stages import choice_file, release_dependents
from nsw.plan.jobs import pack_jobs
from nsw.plan.model import AROUND_S, Plan, Resources, Run
from nsw.profilers.model import CHOSEN
from nsw.schedulers.local import LocalScheduler
from nsw.schedulers.model import Submission
from nsw.scripts.render import render_job
from nsw.transport.local import LocalTransport
from tests.campaign.stand_ins import Fed

CASES = ("n-1", "n-2")


def first(case: str, command=("sh", "-c", "echo saw $0 >report", "it")) -> Run:
    return Run(f"{case}.look.r1", case, {}, "look", "timeline", "x", 1, (*command[:-1], case), {}, Resources(time_s=60),
               ("report",))  # fmt: skip


def second(case: str) -> Run:
    return Run(f"{case}.measure.r1", case, {}, "measure", "counters", "x", 1, ("printf", "%s\\n", CHOSEN, "end"), {},
               Resources(time_s=60), needs=f"{case}.look")  # fmt: skip


class Campaign:
    def __init__(self, root: Path, runs, choose):
        plan = Plan("t", "here", CASES, pack_jobs("t", runs, runs_per_task=1, max_array=100))

        def render(job, campaign, scratch):
            return render_job(plan, job, scheduler="local", campaign=campaign, scratch=scratch)

        self.folder = make_campaign_folders(root, plan, Ingredients({"name": "t"}, {}, None, render))
        self.choose, self.reads = choose, []
        self.open()

    def open(self):
        self.ledger = Ledger(self.folder.ledger)
        scratch, transport = self.ledger.meta(SCRATCH), LocalTransport()
        it = DrivenCampaign(self.folder, self.ledger, LocalScheduler(Path(scratch), parallel=2), transport, scratch)
        stages = self.stages = Fed(it, self.read, self.choose)
        self.builds = Builds(it)
        self.driver = Driver(it, stages=stages)
        self.builds.prepare()
        self.driver.recover()

    def read(self):
        some = self.ledger.runs(reading=Reading.COLLECTED)
        self.reads.append({run.id: str(run.state) for run in self.ledger.runs()})
        self.ledger.update_tasks([run.id for run in some], reading=Reading.READ)

    def states(self):
        return {run.id: str(run.state) for run in self.ledger.runs()}

    def output(self, run):
        return (self.folder.reports / run / "stdout").read_text()


def what_it_saw(folder):
    def choose(run, sources):
        return Choice((f"--for={run.id}", "a b'c$(d)"), 30, sources[0].id, "as seen")

    return choose


@pytest.fixture
def campaign(tmp_path):
    made = []

    def make(runs=None, choose=None):
        runs = runs or [run for case in CASES for run in (first(case), second(case))]
        made.append(Campaign(tmp_path / "campaigns", runs, choose or what_it_saw(tmp_path)))
        return made[-1]

    yield make
    for one in made:
        one.ledger.close()


def test_the_second_stage_gets_what_the_first_one_decided(campaign):
    it = campaign()
    it.driver.run(0.05)
    assert set(it.states().values()) == {"done"}
    assert it.output("n-2.measure.r1") == "--for=n-2.measure.r1\na b'c$(d)\nend\n"


def test_on_this_machine_reading_begins_only_when_the_first_stage_is_over_for_all_cases(campaign):
    it = campaign()
    it.driver.run(0.05)
    assert {run: state for run, state in it.reads[0].items() if ".look." in run} == {
        "n-1.look.r1": "done", "n-2.look.r1": "done",
    }  # fmt: skip
    assert {state for run, state in it.reads[0].items() if ".measure." in run} == {"planned"}


def test_what_is_decided_is_in_the_ledger_before_the_run_and_survives_the_end_of_nsw(campaign):
    it = campaign()
    while "n-1.measure.r1" not in it.ledger.choices():
        it.driver.round()
        it.driver._campaign.scheduler.wait(0.02)
    it.ledger.close()  # as a kill would
    it.choose = lambda _run, _sources: pytest.fail("it was chosen already")
    it.open()
    it.driver.run(0.05)
    assert set(it.states().values()) == {"done"}


def test_a_source_that_failed_skips_what_waits_for_it_and_nothing_else(campaign):
    failing = Run("n-1.look.r1", "n-1", {}, "look", "timeline", "x", 1, ("false",), {}, Resources(time_s=60))
    it = campaign([failing, second("n-1"), first("n-2"), second("n-2")])
    it.driver.run(0.05)
    assert it.states() == {"n-1.look.r1": "failed", "n-1.measure.r1": "cancelled", "n-2.look.r1": "done",
                           "n-2.measure.r1": "done"}  # fmt: skip
    measure = it.ledger.runs_named(["n-1.measure.r1"])[0]
    reason = "n-1.look.r1, which it is chosen from, gave nothing (failed: exit status 1)"
    assert measure.reason.startswith(f"skipped: {reason}")
    assert stages._hopeless_reason([measure]).startswith(reason)  # of what is chosen from that one
    assert it.ledger.dependents(["n-1.look.r1"]) == ["n-1.measure.r1"]


def test_a_rule_that_finds_nothing_skips_the_run_with_its_reason(campaign):
    it = campaign(choose=lambda _run, _sources: "the filter matched 0 of 41 kernels")
    it.driver.run(0.05)
    run = it.ledger.runs_named(["n-1.measure.r1"])[0]
    assert (run.state, run.reason) == (State.CANCELLED, "skipped: the filter matched 0 of 41 kernels")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: file.unlink(), "the file of chosen arguments is missing"),
        (lambda file: file.write_text(file.read_text() + "--more\n"), "the file of chosen arguments was changed"),
        (
            lambda file: file.write_text(choice_file("other.r1", 1, Choice(("x",), None, "s"))),
            "the file of chosen arguments is another run's",
        ),
    ],
)
def test_a_script_refuses_a_missing_or_a_wrong_file(campaign, monkeypatch, change, reason):
    stage = LocalTransport.stage

    def staged(self, files):
        stage(self, files)
        for _, there in files:
            if "/choices/" in there:
                change(Path(there))

    monkeypatch.setattr(LocalTransport, "stage", staged)
    it = campaign([first("n-1"), second("n-1")])
    it.driver.run(0.05)
    run = it.ledger.runs_named(["n-1.measure.r1"])[0]
    assert run.state is State.FAILED
    assert reason in run.reason
    assert it.output("n-1.measure.r1") == "" if (it.folder.reports / "n-1.measure.r1/stdout").exists() else True


def test_a_choice_is_kept_word_by_word(campaign):
    it = campaign([first("n-1")])
    words = ("--kernel-name", "regex:a|b c", "ü", '"')
    it.ledger.record_choice("n-1.look.r1", Choice(words, 7, "s", "note"))
    assert it.ledger.choices() == {"n-1.look.r1": Choice(words, 7, "s", "note")}
    assert json.loads(it.ledger._db.execute("SELECT arguments FROM choices").fetchone()[0]) == list(words)


def again(it, *ids, choose_again=False):
    """As `nsw retry` does."""
    it.open()
    with it.ledger.transaction():
        it.ledger.release(ids)
        todo = release_dependents(it.ledger, ids, choose_again=choose_again)
    it.ledger.close()
    it.open()
    return todo


def test_a_choice_shortens_the_limit_of_the_first_attempt_only(campaign):
    it = campaign([first("n-1"), second("n-1")])
    it.driver.run(0.05)
    scratch = Path(it.ledger.meta(SCRATCH))
    (one,) = [run for run in it.ledger.runs() if run.id == "n-1.measure.r1"]
    for attempt, seconds, limit in ((1, 30 + AROUND_S, "30"), (2, None, "")):
        submission = Submission("name", one.job, Path("script"), attempt, (one.task,))
        assert it.stages.prepare(submission).walltime_s == seconds
        line = (scratch / "choices" / one.id / f"attempt-{attempt}").read_text().splitlines()[0]
        assert line.split(" ")[5] == limit  # after a run that was cut off, it is the plan's


def test_a_retried_first_stage_releases_what_was_skipped_for_it(campaign, tmp_path):
    looking = first("n-1", ("sh", "-c", f"test -e {tmp_path}/cure && echo saw >report", "it"))
    it = campaign([looking, second("n-1"), first("n-2"), second("n-2")])
    it.driver.run(0.05)
    assert it.states()["n-1.measure.r1"] == "cancelled"
    it.ledger.close()
    (tmp_path / "cure").touch()
    assert again(it, "n-1.look.r1") == ["n-1.look.r1", "n-1.measure.r1"]
    it.driver.run(0.05)
    assert set(it.states().values()) == {"done"}
    assert it.output("n-1.measure.r1").startswith("--for=n-1.measure.r1\n")
    assert it.ledger.runs_named(["n-2.measure.r1"])[0].reason is None


def test_finished_dependents_of_a_retried_first_stage_stay_and_are_marked(campaign):
    it = campaign()
    it.driver.run(0.05)
    it.ledger.close()
    assert again(it, "n-1.look.r1") == ["n-1.look.r1"]
    it.driver.run(0.05)
    (old,), (other,) = (it.ledger.runs_named([f"{case}.measure.r1"]) for case in CASES)
    assert (old.state, old.attempt, other.reason) == (State.DONE, 1, None)
    assert old.reason == "older than the run that it was chosen from, which is run again"


def test_a_retried_second_stage_keeps_its_choice_unless_it_is_to_choose_again(campaign):
    it = campaign([first("n-1"), second("n-1")])
    it.driver.run(0.05)
    it.ledger.close()
    it.choose = lambda _run, _sources: pytest.fail("it was chosen already")
    again(it, "n-1.measure.r1")
    assert list(it.ledger.choices()) == ["n-1.measure.r1"]
    it.ledger.close()
    again(it, "n-1.measure.r1", choose_again=True)
    assert it.ledger.choices() == {}


def test_any_repeat_that_was_read_satisfies_a_need(campaign):
    failing = replace(first("n-1"), command=("false",))
    other = replace(first("n-1"), id="n-1.look.r2", repeat=2)
    seen = []
    it = campaign([failing, other, second("n-1")], lambda _run, sources: seen.extend(sources) or Choice((), None, "s"))
    it.driver.run(0.05)
    assert it.states() == {"n-1.look.r1": "failed", "n-1.look.r2": "done", "n-1.measure.r1": "done"}
    assert [run.id for run in seen] == ["n-1.look.r2"]


class Gathering:
    """Stages over a scheduler that has arrays of two, and a clock that the test turns."""

    def __init__(self, it, most=2):
        self.now, self.ledger, self.reads = 0.0, it.ledger, 0
        driven = SimpleNamespace(
            ledger=it.ledger, scheduler=SimpleNamespace(shares_machine=False, batches=True, most_tasks=lambda: most),
            changed=lambda _ids: None,
        )  # fmt: skip
        choose = lambda run, _sources: Choice((), None, run.id)  # noqa: E731
        self.stages = Fed(driven, self.read_all, choose, lambda: self.now)

    def read_all(self):
        self.reads += 1
        some = self.ledger.runs(reading=Reading.COLLECTED)
        self.ledger.update_tasks([run.id for run in some], reading=Reading.READ)

    def read(self, *runs):
        self.ledger.update_tasks(runs, state=State.DONE, reading=Reading.READ)
        self.stages.advance()

    @property
    def waiting(self):
        return [run for runs in self.ledger.waiting_for_stages().values() for run in runs]


THREE = [run for n in "123" for run in (first(f"n-{n}"), second(f"n-{n}"))]
MEASURED = [f"n-{n}.measure.r1" for n in "123"]


@pytest.fixture
def gathering(campaign):
    return Gathering(campaign(THREE))


@pytest.fixture(params=["first time", "retried"])
def large_arrays(campaign, request):
    """Three cases whose second stage waits, for the first time or since a retry, and fits into one array."""
    it = campaign(THREE)
    if request.param == "retried":
        before = Gathering(it, 100)
        looks = [f"n-{n}.look.r1" for n in "123"]
        it.ledger.update_tasks(looks, state=State.FAILED)
        before.stages.advance()
        assert set(it.states().values()) == {"failed", "cancelled"}
        it.ledger.close()
        assert sorted(again(it, *looks)) == sorted(it.states())
    return Gathering(it, 100)


def test_what_could_go_waits_for_others_until_the_stage_ends(gathering):
    gathering.ledger.update_tasks(["n-2.look.r1"], state=State.FAILED)
    gathering.read("n-1.look.r1")
    assert gathering.waiting == ["n-1.measure.r1", "n-3.measure.r1"]
    gathering.ledger.update_tasks(["n-3.look.r1"], state=State.FAILED)
    gathering.stages.advance()
    gathering.stages.advance()
    assert gathering.waiting == []


def test_it_waits_until_every_source_is_read_and_not_only_done(large_arrays):
    stage = large_arrays
    stage.ledger.update_tasks(["n-1.look.r1"], state=State.DONE, reading=Reading.COLLECTED)
    stage.stages.advance()
    assert (stage.reads, stage.waiting) == (1, MEASURED)
    stage.ledger.update_tasks(["n-2.look.r1"], state=State.DONE, reading=Reading.COLLECTED)
    stage.ledger.update_tasks(["n-3.look.r1"], state=State.DONE, reading=Reading.NONE)
    stage.now = 19.0  # too early to read again
    stage.stages.advance()
    assert (stage.reads, stage.waiting) == (1, MEASURED)
    stage.now = 20.0
    stage.stages.advance()
    assert (stage.reads, stage.waiting) == (2, MEASURED)  # the reports of n-3 are on their way
    stage.ledger.update_tasks(["n-3.look.r1"], reading=Reading.COLLECTED)
    stage.now = 40.0
    stage.stages.advance()
    assert (stage.reads, stage.waiting) == (3, [])


def test_what_cannot_be_read_keeps_nobody_waiting(large_arrays):
    stage = large_arrays
    stage.ledger.update_tasks(["n-2.look.r1"], state=State.DONE, reading=Reading.UNREADABLE)
    stage.ledger.update_tasks(["n-3.look.r1"], state=State.LOST)
    stage.read("n-1.look.r1")
    assert stage.waiting == []
    assert {run.id: str(run.state) for run in stage.ledger.runs_named(MEASURED)} == {
        "n-1.measure.r1": "planned", "n-2.measure.r1": "cancelled", "n-3.measure.r1": "cancelled",
    }  # fmt: skip


def test_it_goes_when_an_array_is_full(gathering):
    gathering.read("n-1.look.r1")
    assert len(gathering.waiting) == 3
    gathering.read("n-2.look.r1")
    assert gathering.waiting == ["n-3.measure.r1"]


def test_an_array_is_full_of_tasks_of_one_job(campaign):
    other = [
        replace(second(f"n-{n}"), id=f"n-{n}.more.r1", pass_name="more", resources=Resources(time_s=60, nodes=2))
        for n in "123"
    ]
    stage = Gathering(campaign([*THREE, *other]))
    stage.read("n-1.look.r1")
    assert len(stage.waiting) == 6  # two runs could go, and they are of two jobs
    stage.read("n-2.look.r1")
    assert stage.waiting == ["n-3.measure.r1", "n-3.more.r1"]


def test_it_goes_after_ten_minutes(large_arrays):
    stage = large_arrays
    stage.read("n-1.look.r1")
    stage.now = 599.0
    stage.stages.advance()
    assert len(stage.waiting) == 3
    stage.now = 600.0
    stage.stages.advance()
    assert stage.waiting == ["n-2.measure.r1", "n-3.measure.r1"]
    stage.now = 1000.0  # the next ones have ten minutes of their own
    stage.read("n-2.look.r1")
    assert stage.waiting == ["n-2.measure.r1", "n-3.measure.r1"]
