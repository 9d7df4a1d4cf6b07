"""The ledger: what is intended is in it before it is submitted, all of a change or nothing, and no run under two names."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NOTE, SITE_DATA, BuildRow, Kind, NeedReason, Reading, State
from nsw.engine.submit import submission_name, submissions
from nsw.errors import CampaignError
from nsw.plan.model import Absent, Job, Plan, Resources, Run
from nsw.schedulers.model import NO_ID, Submission

SCRIPTS = {"j": Path("j.sh"), "k": Path("k.sh")}


def run(id_, gpus=0):
    return Run(id_, f"case-{id_[0]}", {"n": 1}, "p", "baseline", None, 1, ("true",), {}, Resources(gpus=gpus), ())


@pytest.fixture
def path(tmp_path):
    """Two runs in the first task of a job, one in its second, and another job."""
    first = Job("j", Resources(), ((run("a1"), run("a2", gpus=2)), (run("b1"),)))
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.add_plan(Plan("n", "s", ("c",), (first, Job("k", Resources(), ((run("c1"),),)))))
    return tmp_path / "campaign.db"


@pytest.fixture
def ledger(path):
    with Ledger(path) as opened:
        yield opened


def both(attempt=1):
    return Submission(f"nsw-{attempt}", "j", SCRIPTS["j"], attempt, (0, 1), 2)


def pending(ledger, limit=10, *, leave_builds=False):
    return ledger.pending(limit, leave_builds=leave_builds)


def states(ledger):
    return {r.id: (str(r.state), r.attempt) for r in ledger.runs()}


def test_what_is_planned_is_pending_task_by_task_under_the_next_attempt(ledger):
    assert pending(ledger) == [("j", 0, 1, 2), ("j", 1, 1, 0), ("k", 0, 1, 0)]
    assert pending(ledger, 2) == [("j", 0, 1, 2)]  # so many runs are looked at
    assert (ledger.runs_per_task(), ledger.has_planned()) == (2, True)


def test_only_what_is_chosen_is_pending_with_the_other_runs_of_its_task(ledger):
    ledger.choose(["a2"])
    assert pending(ledger) == [("j", 0, 1, 2)]
    ledger.update_tasks(["a1", "a2"], state=State.DONE)
    assert not ledger.has_planned()


def test_an_intent_outlives_the_nsw_that_had_it(path, ledger):
    ledger.record_intent(both())
    ledger.close()
    with Ledger(path) as later:
        assert later.submissions("intent", SCRIPTS.__getitem__) == [both()]
        assert states(later) == {"a1": ("intent", 1), "a2": ("intent", 1), "b1": ("intent", 1), "c1": ("planned", 0)}
        assert later.waiting() == ["a1", "a2", "b1", "c1"]


def test_a_submission_that_never_was_costs_no_attempt(ledger):
    ledger.record_intent(both())
    ledger.withdraw(both())
    assert set(states(ledger).values()) == {("planned", 0)}
    assert ledger.submissions("intent", SCRIPTS.__getitem__) == []
    ledger.record_intent(both())  # the same name may be taken again


def test_one_name_is_never_intended_twice(ledger):
    ledger.record_intent(both())
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        ledger.record_intent(both())


def test_what_was_over_in_the_meantime_is_submitted_no_more(ledger):
    ledger.record_intent(both())
    ledger.update_tasks(["a2"], state=State.CANCELLED)
    ledger.record_native_id(both(), "77")
    assert states(ledger)["a1"] == ("submitted", 1)
    assert states(ledger)["a2"] == ("cancelled", 1)
    assert [one.id for one in ledger.tasks_in_flight(both())] == ["a1", "b1"]
    assert (ledger.native_id("nsw-1"), ledger.native_ids()) == ("77", {"nsw-1": "77"})
    ledger.withdraw(both())  # too late: the scheduler has it
    assert states(ledger)["a1"] == ("submitted", 1)
    assert [(s.name, s.native_id) for s in ledger.submissions("submitted", SCRIPTS.__getitem__)] == [("nsw-1", "77")]


def test_what_is_done_again_keeps_nothing_of_how_it_ended_and_gets_the_next_attempt(ledger):
    ledger.record_intent(both())
    ledger.record_native_id(both(), "77")
    ended = {"state": State.FAILED, "reason": "r", "exit_code": 3, "started": 1.0, "ended": 2.0}
    ledger.update_tasks(["a1", "b1"], reading=Reading.COLLECTED, **ended)
    assert ledger.unread() == 2
    ledger.release(["b1"])
    (again,) = ledger.runs_named(["b1"])
    assert (again.state, again.reason, again.exit_code, again.started, again.ended) == (State.PLANNED, *[None] * 4)
    assert again.reading is Reading.NONE
    assert pending(ledger) == [("j", 1, 2, 0), ("k", 0, 1, 0)]
    assert [one.id for one in ledger.tasks_in_flight(both())] == ["a2"]
    assert ledger.unread() == 1


def test_a_change_that_breaks_off_is_taken_back_as_a_whole(ledger):
    def breaks_off():
        with ledger.transaction():
            ledger.update_tasks(["a1"], state=State.DONE)
            with ledger.transaction():
                ledger.set_meta(NOTE, "value")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaks_off()
    assert (states(ledger)["a1"], ledger.meta(NOTE)) == (("planned", 0), None)
    with ledger.transaction():
        ledger.update_tasks(["a1"], state=State.DONE)
    assert ledger.counts() == {"done": 1, "planned": 3}


def test_a_submission_of_many_tasks_moves_all_of_them(tmp_path):
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        tasks = tuple((run(f"{letter}1"),) for letter in "abcd")
        made.add_plan(Plan("n", "s", ("c",), (Job("j", Resources(), tasks),)))
        some = Submission("nsw-1", "j", SCRIPTS["j"], 1, (0, 1, 3))
        made.record_intent(some)
        made.record_native_id(some, "77")
        assert [str(r.state) for r in made.runs()] == ["submitted", "submitted", "planned", "submitted"]
        assert [one.id for one in made.tasks_in_flight(some)] == ["a1", "b1", "d1"]
        assert made.planned(["c1", "d1", "e1"]) == ["c1"]


@pytest.fixture
def built(tmp_path):
    """A build in a job, two runs that need it, and one that needs it and that was read of the first."""
    made = replace(run("build"), command=("bash", "-c", "x", "app", "make"), app="app-x")
    runs = (replace(run("a1"), app="app-x"), replace(run("a2"), app="app-x"))
    later = replace(run("b1"), app="app-x", needs="case-a.p")
    jobs = (Job("j", Resources(), tuple((one,) for one in runs)), Job("k", Resources(), ((later,),)))
    plan = Plan("n", "s", ("c",), jobs, builds=(Job("m", Resources(), ((made,),), build="job"),))
    with Ledger(tmp_path / "campaign.db", create=True) as ledger:
        ledger.add_plan(plan)
        yield ledger


MAKE = Submission("nsw-b", "m", Path("m.sh"), 1, (0,))


def test_a_build_is_a_task_as_a_run_is(built):
    planned = BuildRow("build", "m", "app-x", "job", "make", 600, 0)
    assert built.builds() == [planned]
    assert (built.needed_by(), built.counts()) == ({"build": ["j", "k"]}, {"planned": 3})
    built.record_intent(MAKE)
    built.record_native_id(MAKE, "78")
    assert [(one.id, one.kind) for one in built.tasks_in_flight(MAKE)] == [("build", Kind.BUILD)]
    built.update_tasks(["build"], state=State.FAILED, reason="r", exit_code=2, started=1.0, ended=2.0)
    built.release(["build"])
    assert built.builds() == [replace(planned, attempt=1)]


def test_what_needs_a_build_goes_after_it_or_with_it_where_the_scheduler_can_be_trusted(built):
    assert pending(built, leave_builds=True) == [("m", 0, 1, 0)]
    built.record_intent(MAKE)
    assert pending(built, leave_builds=True) == []
    built.record_native_id(MAKE, "78")
    assert built.native_dependencies("j") == ("78",)
    assert pending(built, leave_builds=False) == []
    assert pending(built, leave_builds=True) == [("j", 0, 1, 0), ("j", 1, 1, 0)]
    built.update_tasks(["build"], state=State.DONE)
    built.meet_done()
    assert built.native_dependencies("j") == ()
    assert pending(built) == [("j", 0, 1, 0), ("j", 1, 1, 0)]
    built.release_stage(["b1"])
    assert pending(built) == [("j", 0, 1, 0), ("j", 1, 1, 0), ("k", 0, 1, 0)]


def test_runs_of_one_task_wait_for_each_others_builds(tmp_path):
    """Two programs are measured in pairs: one without the other is not measured."""
    makes = [
        replace(run(id_), command=("bash", "-c", "x", app, "make"), app=app) for id_, app in (("m1", "a"), ("m2", "b"))
    ]
    builds = tuple(Job(made.id, Resources(), ((made,),), build="job") for made in makes)
    pair = Job("j", Resources(), ((replace(run("a1"), app="a"), replace(run("a2"), app="b")),))
    with Ledger(tmp_path / "campaign.db", create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (pair,), builds=builds))
        assert [row.app for row in ledger.runs()] == ["a", "b"]
        for number, made in enumerate(makes):
            assert pending(ledger, leave_builds=True)[0][0] == made.id
            submission = Submission(f"nsw-{number}", made.id, Path("m.sh"), 1, (0,), 0)
            ledger.record_intent(submission)
            ledger.record_native_id(submission, f"7{number}")
        assert pending(ledger, leave_builds=True) == [("j", 0, 1, 0)]
        assert ledger.native_dependencies("j") == ("70", "71")
        ledger.update_tasks(["m1"], state=State.DONE)
        ledger.meet_done()
        assert ledger.native_dependencies("j") == ("71",)
        ledger.update_tasks(["m2"], state=State.FAILED)
        assert {one.task for one in ledger.doomed()} == {"a1", "a2"}


def test_a_build_under_an_id_that_nobody_knows_is_waited_for_by_nsw(built):
    built.record_intent(MAKE)
    built.record_native_id(MAKE, NO_ID)
    assert (pending(built, leave_builds=True), built.native_dependencies("j")) == ([], ())


def test_a_build_that_only_other_runs_than_the_chosen_need_is_not_begun(built):
    built.update_tasks(["a1"], state=State.DONE)
    built.choose(["a1"])
    assert pending(built) == []


def test_a_task_of_another_kind_needs_its_run_to_be_done(ledger):
    """The seam for reductions: a kind, a job, a need."""
    ledger.add_tasks(Kind.REDUCTION, [Job("r", Resources(), ((run("a1.reduce"),),))])
    ledger.add_needs([("a1.reduce", "a1", NeedReason.RUN)])
    assert ("r", 0, 1, 0) not in pending(ledger)
    ledger.update_tasks(["a1"], state=State.FAILED, reason="r")
    assert [(one.task, one.source, one.state) for one in ledger.doomed()] == [("a1.reduce", "a1", State.FAILED)]
    assert ledger.dependents(["a1"]) == ["a1.reduce"]
    ledger.update_tasks(["a1"], state=State.DONE)
    ledger.meet_done()
    assert (pending(ledger)[0], ledger.doomed()) == (("r", 0, 1, 0), [])
    assert ledger.counts() == {"done": 1, "planned": 3}  # of runs


def test_what_is_known_of_a_campaign_before_anything_happened(ledger):
    assert (ledger.calls(), ledger.has_login_shell(), ledger.absent()) == ({}, False, [])
    ledger.set_calls({"squeue": 3})
    ledger.set_meta(SITE_DATA, {"login_shell": True})
    assert (ledger.calls(), ledger.has_login_shell()) == ({"squeue": 3}, True)


def test_what_could_not_be_planned_is_kept_with_its_reason(tmp_path):
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.add_plan(Plan("n", "s", (), (), absent=(Absent("pass timeline", "no nsys here", ("a", "b")),)))
        assert made.absent() == [("pass timeline", "no nsys here", 2)]
        assert made.runs_per_task() == 1


def test_why_things_wait_is_told_once_a_reason_with_the_first_run(ledger):
    ledger.update_tasks(["a1", "b1"], state=State.QUEUED, reason="Priority")
    ledger.update_tasks(["a2"], state=State.QUEUED, reason="Resources")
    assert ledger.why_waiting() == [(State.QUEUED, "Priority", "a1", 2), (State.QUEUED, "Resources", "a2", 1)]


def test_runs_are_found_by_name_in_the_order_of_the_plan(ledger):
    assert [r.id for r in ledger.runs_named(["c1", "a1", "a2", "b1", "unknown"])] == ["a1", "a2", "b1", "c1"]
    assert ledger.runs_named([]) == []


def test_names_are_completed_in_the_order_of_the_plan(ledger):
    ledger.update_tasks(["a2"], state=State.FAILED)
    assert ledger.names("a", 9) == ["a1", "a2"]
    assert ledger.names("", 3) == ["a1", "a2", "b1"]
    assert ledger.names("", 9, states=[State.FAILED]) == ["a2"]
    assert ledger.names("case-", 9, column="case_id") == ["case-a", "case-b", "case-c"]


def test_problems_of_a_run_are_replaced_and_stand_in_the_order_of_the_plan(ledger):
    ledger.set_problems("b1", [("r", "error", "later", None)])
    ledger.set_problems("a1", [("r", "error", "old", None)])
    ledger.set_problems("a1", [("r", "warning", "new", "fix it"), (None, "error", "more", None)])
    assert ledger.problems() == [
        ("a1", "r", "warning", "new", "fix it"), ("a1", None, "error", "more", None), ("b1", "r", "error", "later", None),
    ]  # fmt: skip


@pytest.mark.parametrize(("version", "age"), [(1, "an older"), (999, "a newer")])
def test_a_ledger_of_another_version_is_refused_with_its_age(path, version, age):
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(CampaignError, match=age):
        Ledger(path)


def test_what_is_no_ledger_is_said(tmp_path):
    with pytest.raises(CampaignError, match="is not a campaign"):
        Ledger(tmp_path / "campaign.db")
    (tmp_path / "campaign.db").write_bytes(b"no database, though it is long enough to be one" * 99)
    with pytest.raises(CampaignError, match="is damaged"):
        Ledger(tmp_path / "campaign.db")


class Folder:
    id = "campaign"

    def script(self, job):
        return SCRIPTS[job]


def test_tasks_are_handed_over_job_by_job_in_groups_of_what_may_be_together():
    pending = [("j", 0, 1, 2), ("j", 1, 1, 4), ("j", 3, 1, 0), ("j", 2, 2, 0), ("k", 0, 1, 0)]
    found = submissions(Folder(), pending, 3)
    assert [(s.job, s.attempt, s.tasks, s.gpus) for s in found] == [
        ("j", 1, (0, 1), 4), ("j", 1, (3,), 0), ("j", 2, (2,), 0), ("k", 1, (0,), 0),
    ]  # fmt: skip
    assert [len(s.tasks) for s in submissions(Folder(), pending, 0)] == [1] * 5
    later = [("j", task, 1, 0) for task in (50, 51, 52, 53)]
    assert [s.tasks for s in submissions(Folder(), later, 3)] == [(50, 51, 52), (53,)]


def test_the_name_of_a_submission_is_its_own_and_always_the_same():
    one = ("campaign", "j", 0, 1)
    assert submission_name(*one) == submission_name(*one) == "j-" + submission_name(*one)[2:]
    others = [("other", "j", 0, 1), ("campaign", "k", 0, 1), ("campaign", "j", 1, 1), ("campaign", "j", 0, 2)]
    assert len({submission_name(*name) for name in (one, *others)}) == 5


@pytest.mark.parametrize(
    ("job", "longest", "begins"),
    [
        ("alexnet-scaling-j3", 64, "alexnet-scaling-j3-"),
        ("alexnet-scaling-j3", 15, "nsw-"),
        ("3d-stencil-j1", 64, "nsw-3d-stencil-j1-"),
        ("x" * 80 + "-j12", 64, "x" * 43 + "-j12-"),
    ],
)
def test_the_name_of_a_submission_begins_with_that_of_the_job_in_the_plan(job, longest, begins):
    name = submission_name("campaign", job, 0, 1, longest)
    assert name.startswith(begins)
    assert len(name) <= longest
    assert name != submission_name("other", job, 0, 1, longest)
