"""What fault tests print when all is done: for each kind of fault how often it came, and what became of the runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.far.staged import Staged

    from .distant import Distant


@dataclass
class Row:
    """One kind of fault over one transport. What ran is told by the programs, what failed by nsw."""

    what: str
    campaigns: int = 0
    faults: int = 0
    started: int = 0  # nsw, in all
    runs: int = 0
    once: int = 0
    twice: int = 0
    submitted: int = 0  # tasks, as the batch system counts them
    reasons: Counter[str] = field(default_factory=Counter)  # of runs that failed
    wrong: list[str] = field(default_factory=list)

    def add(self, campaign: Staged, it: Distant, faults: int, started: int, *, may_fail: bool = False) -> None:
        """Count a campaign that is over.

        Args:
            campaign: The campaign.
            it: Its site.
            faults: How often something went wrong.
            started: How many nsw it took.
            may_fail: Whether runs may have failed, with a reason.
        """
        self.submitted += it.system.tasks(campaign.folder.id)
        self.campaigns += 1
        self.faults += faults
        self.started += started
        begun, states = Counter(campaign.begun()), campaign.states()
        self.runs += len(states)
        for run, (state, reason) in states.items():
            times = begun[run.removesuffix(".r1")]
            self.once += times == 1
            self.twice += times > 1
            if may_fail and state != "done" and reason:
                self.reasons[reason] += 1
            elif (state, times) != ("done", 1):
                self.wrong.append(f"{campaign.folder.id}: {run} is {state} ({reason}) and began {times} times")
        if not may_fail and (fault := campaign.fault()):
            self.wrong.append(fault)


ROWS: list[Row] = []


def row(what: str) -> Row:
    """A row of its own, or the one of that name."""
    found = next((one for one in ROWS if one.what == what), None)
    if found is None:
        found = Row(what)
        ROWS.append(found)
    return found


HEAD = (
    "",
    "campaigns",
    "faults",
    "nsw started",
    "runs",
    "submitted",
    "began once",
    "twice",
    "failed with a reason",
    "wrong",
)


def lines() -> list[str]:
    """The table."""
    cells = [HEAD]
    for row in ROWS:
        numbers = (
            row.campaigns,
            row.faults,
            row.started,
            row.runs,
            row.submitted,
            row.once,
            row.twice,
            row.reasons.total(),
            len(row.wrong),
        )
        cells.append((row.what, *map(str, numbers)))
    widths = [max(len(row[at]) for row in cells) for at in range(len(HEAD))]
    table = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
             for row in cells]  # fmt: skip
    reasons = [f"{row.what}: {number} failed: {reason}" for row in ROWS for reason, number in row.reasons.items()]
    return [*table, *([""] if reasons else []), *reasons]
