"""The canary: the first run goes ahead alone, and the rest only when it came back well."""

import pytest

from nsw.campaign.canary import Canary
from nsw.campaign.ledger import Ledger, State
from nsw.campaign.meta import CANARY
from nsw.errors import CanaryError, Exit
from nsw.plan.model import Job, Plan, Resources, Run


def run(id_: str, reports: tuple[str, ...] = ()) -> Run:
    return Run(id_, "c", {}, "p", "timeline", None, 1, ("true",), {}, Resources(), reports)


@pytest.fixture
def ledger(tmp_path):
    job = Job("j", Resources(), ((run("plain"),), (run("profiled", ("*.x",)),), (run("other", ("*.x",)),)))
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.add_plan(Plan("n", "s", ("c",), (job,)))
        made.set_meta(CANARY, "wanted")
        yield made


def allowed(canary: Canary, ledger: Ledger) -> list[int]:
    return [task for _, task, _, _ in canary.allowed(ledger.pending_tasks(10))]


def test_the_first_run_that_leaves_a_report_goes_ahead_alone(ledger):
    assert allowed(Canary(ledger), ledger) == [1]


def test_the_rest_is_held_while_it_is_away(ledger):
    ledger.update_runs(["profiled"], state=State.RUNNING)
    canary = Canary(ledger)
    canary.check()
    assert allowed(canary, ledger) == []


def test_the_rest_follows_when_it_came_back_well(ledger):
    ledger.update_runs(["profiled"], state=State.DONE)
    canary = Canary(ledger, lambda _run: None)
    canary.check()
    assert allowed(canary, ledger) == [0, 2]


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (State.DONE, "holds no metric"),
        (State.FAILED, "alone and failed: exit status 3"),
        (State.LOST, "alone and was lost: exit status 3"),
    ],
)
def test_the_rest_stays_where_it_is_when_something_is_wrong_until_a_person_goes_on(ledger, state, part):
    ledger.update_runs(["profiled"], state=state, reason="exit status 3")
    canary = Canary(ledger, lambda _run: "its report holds no metric")
    with pytest.raises(CanaryError, match=part) as raised:
        canary.check()
    assert raised.value.exit_code is Exit.SOME_FAILED
    canary.check()  # the next nsw
    assert allowed(canary, ledger) == [0, 2]


def test_a_campaign_that_wants_none_is_left_alone(ledger):
    ledger.set_meta(CANARY, "")
    assert allowed(Canary(ledger), ledger) == [0, 1, 2]
