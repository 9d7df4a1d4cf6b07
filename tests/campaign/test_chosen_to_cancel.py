"""What `nsw cancel --case` ends: runs that are not over, and reductions that would begin when their run is done."""

import pytest

from nsw.campaign.cancel import cancellable_runs
from nsw.campaign.selection import Selection
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import Kind, State
from nsw.plan.model import REDUCTION, Job, Plan, Resources, Run


def task(id_):
    return (Run(id_, f"case-{id_[0]}", {"n": 1}, "p", "baseline", None, 1, ("true",), {}, Resources(), ()),)


@pytest.mark.parametrize(
    ("state", "chosen"),
    [
        (State.RUNNING, ["a1", f"a1{REDUCTION}"]),  # done, it may be, before anybody ends it
        (State.DONE, [f"a1{REDUCTION}"]),
        (State.FAILED, []),
    ],
)
def test_a_reduction_is_ended_with_the_run_that_is_meant_unless_that_failed(tmp_path, state, chosen):
    folder = CampaignFolder(tmp_path)
    folder.trust()
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (Job("j", Resources(), (task("a1"), task("b1"))),)))
        ledger.add_tasks(
            Kind.REDUCTION, [Job("r", Resources(), tuple(task(f"{one}{REDUCTION}") for one in ("a1", "b1")))]
        )
        ledger.update_tasks(["a1"], state=state)
    assert cancellable_runs(folder, Selection(only=("case-a",))) == chosen
