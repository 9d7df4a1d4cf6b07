"""The canary: the first run goes ahead alone, and the rest only when it came back well."""

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import State
from nsw.engine.stages import refused_canary, release_canary, waive_canary
from nsw.errors import CanaryError, Exit
from nsw.plan.model import Job, Plan, Resources, Run
from tests.campaign.stand_ins import Judged


def run(id_: str, reports: tuple[str, ...] = ()) -> Run:
    return Run(id_, "c", {}, "p", "timeline", None, 1, ("true",), {}, Resources(), reports)


@pytest.fixture
def ledger(plain):
    plain.hold_for_canary()
    return plain


@pytest.fixture
def plain(tmp_path):
    job = Job("j", Resources(), ((run("plain"),), (run("profiled", ("*.x",)),), (run("other", ("*.x",)),)))
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.add_plan(Plan("n", "s", ("c",), (job,)))
        yield made


def allowed(ledger: Ledger) -> list[int]:
    return [task for _, task, _, _ in ledger.pending(10, leave_builds=True)]


def test_the_first_run_that_leaves_a_report_goes_ahead_alone(ledger):
    assert allowed(ledger) == [1]


def test_the_rest_is_held_while_it_is_away(ledger):
    ledger.update_tasks(["profiled"], state=State.RUNNING)
    canary = Judged(ledger)
    canary.check()
    assert allowed(ledger) == []


def test_the_rest_follows_when_it_came_back_well(ledger):
    ledger.update_tasks(["profiled"], state=State.DONE)
    canary = Judged(ledger, lambda _run: None)
    canary.check()
    assert allowed(ledger) == [0, 2]


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (State.DONE, "holds no metric"),
        (State.FAILED, "alone and failed: exit status 3"),
        (State.LOST, "alone and was lost: exit status 3"),
    ],
)
def test_the_rest_stays_where_it_is_when_something_is_wrong_until_a_person_goes_on(ledger, state, part):
    ledger.update_tasks(["profiled"], state=state, reason="exit status 3")
    canary = Judged(ledger, lambda _run: "its report holds no metric")
    with pytest.raises(CanaryError, match=part) as raised:
        canary.check()
    assert raised.value.exit_code is Exit.SOME_FAILED
    assert refused_canary(ledger) == ["profiled"]
    Judged(ledger).check()  # the next nsw
    assert allowed(ledger) == [0, 2]
    waive_canary(ledger)
    assert refused_canary(ledger) == []


def test_what_shares_the_task_of_the_canary_goes_with_it(tmp_path):
    job = Job("j", Resources(), ((run("plain"), run("profiled", ("*.x",))), (run("other", ("*.x",)),)))
    with Ledger(tmp_path / "campaign.db", create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (job,)))
        ledger.hold_for_canary()
        assert allowed(ledger) == [0]
        ledger.update_tasks(["profiled"], state=State.DONE)
        Judged(ledger).check()
        assert allowed(ledger) == [0, 1]


def test_a_run_that_a_person_names_goes_without_the_canary(ledger):
    ledger.update_tasks(["profiled"], state=State.CANCELLED)
    release_canary(ledger, ["other"], by_name=True)
    assert allowed(ledger) == [2]
    release_canary(ledger, ["profiled"], by_name=True)
    ledger.release(["profiled"])
    assert allowed(ledger) == [1, 2]


def test_a_campaign_that_wants_none_is_left_alone(plain):
    ledger = plain
    Judged(ledger).check()
    assert allowed(ledger) == [0, 1, 2]


def test_thousands_that_wait_for_the_canary_are_passed_over_within_the_budget_of_a_statement(tmp_path):
    """A query that goes over all open needs for each task would be ended by the ledger's guard."""
    job = Job("j", Resources(), tuple((run(f"r{n}"),) for n in range(4000)))
    with Ledger(tmp_path / "campaign.db", create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (job,)))
        ledger.hold_for_canary()
        ledger.update_tasks(["r0"], state=State.RUNNING)
        assert allowed(ledger) == []
