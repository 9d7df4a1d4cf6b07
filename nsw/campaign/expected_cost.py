"""What a plan will probably cost, by how long earlier campaigns of the recipe on the site took for the same cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.campaign import folder as folders
from nsw.campaign.ledger import BuildRow, Ledger, RunRow, State
from nsw.campaign.ledger_meta_keys import NAME, SITE
from nsw.campaign.owning_user import is_own
from nsw.errors import NswError

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.plan.model import Job, Plan, Run

_MOST_CAMPAIGNS: Final = 5  # the newest ones


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """What a plan will probably cost; of a case and pass that no earlier campaign did it is the limit."""

    gpu_hours: float
    node_hours: float


def expected_cost(root: Path, plan: Plan) -> ExpectedCost | None:
    """What a plan will probably cost; None where no earlier campaign did anything of it.

    Args:
        root: The folder of campaigns.
        plan: The plan.
    """
    took = _took(root, plan)
    if plan.replay or not any(_key(run) in took for run in plan.runs):
        return None
    gpu_s = node_s = 0.0
    for job in (*plan.builds, *plan.jobs, *plan.reductions):
        if job.place == "job":
            seconds = sum(min(plan.asked_s(job), _seconds(job, task, took)) for task in job.tasks)
            nodes = job.resources.nodes
            gpu_s += seconds * max(job.resources.gpus, plan.node_gpus * nodes)
            node_s += seconds * nodes
    return ExpectedCost(gpu_s / 3600, node_s / 3600)


def _seconds(job: Job, task: tuple[Run, ...], took: dict[str, float]) -> float:
    return max(sum(took.get(_key(run), run.resources.time_s) for run in lane) for lane in job.lanes(task))


def _took(root: Path, plan: Plan) -> dict[str, float]:
    """Seconds that each case and pass, build and reduction took when it was last done."""
    mine = [one for one in folders.existing(root) if one.id.startswith(f"{plan.name}-")]
    found: dict[str, float] = {}
    for folder in mine[: -_MOST_CAMPAIGNS - 1 : -1]:
        try:
            if not is_own(folder.path):
                continue
            with Ledger(folder.ledger, read_only=True) as ledger:
                if (ledger.meta(NAME), ledger.meta(SITE)) != (plan.name, plan.site):
                    continue
                rows: list[RunRow | BuildRow] = [*ledger.runs(), *ledger.builds(), *ledger.reductions()]
        except (NswError, OSError):
            continue
        times: dict[str, list[float]] = {}
        for row in rows:
            if row.state is State.DONE and row.seconds is not None:
                times.setdefault(_key(row), []).append(row.seconds)
        found = {key: max(some) for key, some in times.items()} | found
    return found


def _key(run: Run | RunRow | BuildRow) -> str:
    """The id without the number of the repeat."""
    return run.id if isinstance(run, BuildRow) else run.id.replace(f".r{run.repeat}", "")
