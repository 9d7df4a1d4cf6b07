"""What became of a campaign, told by others than nsw: each program leaves a line when it begins and when it ends, and
squeue and sacct list what was submitted. Only what nsw itself says of a run is taken from its ledger."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger_rows import State

if TYPE_CHECKING:
    from .places import Real


@dataclass
class Outcome:
    """What became of it. All but `reported`, `reasons` and `untold` is told by programs and by Slurm."""

    runs: int = 0
    kills: int = 0
    phases: Counter[str] = field(default_factory=Counter)  # what nsw was at when it was killed
    ends: int = 0  # of the controller
    clients: Counter[str] = field(default_factory=Counter)  # sbatch killed before, amid, after
    before: list[int] = field(default_factory=list)  # runs submitted at each kill of nsw
    submitted: int = 0  # tasks that Slurm lists
    taken_back: int = 0  # attempts that nsw claimed after the controller forgot or could not launch their job
    again: int = 0  # tasks that Slurm lists beyond one a run and one for each that was taken back
    done: int = 0  # programs that began once and ended once
    twice: list[int] = field(default_factory=list)  # programs that began more often
    reported: int = 0  # runs not done, with their reason
    reasons: Counter[str] = field(default_factory=Counter)
    untold: list[str] = field(default_factory=list)  # runs not done, without a reason
    wrong: list[str] = field(default_factory=list)  # what nsw says and the programs do not
    stuck: list[str] = field(default_factory=list)  # campaigns that could not be continued to their end

    def add(self, other: Outcome) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def good(self) -> bool:
        """Each run was done exactly once, or is reported with its reason; none was submitted again."""
        faults = self.twice or self.untold or self.wrong or self.stuck or self.again
        return not faults and self.done + self.reported == self.runs


def ledgers(place: Real) -> list[Path]:
    return list((place.work / "campaigns").glob("[!.]*/campaign.db"))


@dataclass(frozen=True)
class Book:
    """How many runs a ledger holds: submitted, left to submit, in doubt, over. Without a ledger nothing is known."""

    submitted: int = 0
    left: int = -1
    doubt: int = 0
    finished: int = 0


def book_of(place: Real) -> Book:
    """From a copy of the ledger, which is left as a kill left it; empty when it was caught amid a write."""
    found = ledgers(place)
    if not found:
        return Book()
    with tempfile.TemporaryDirectory() as folder:
        for file in found[0].parent.glob("campaign.db*"):
            with suppress(FileNotFoundError):  # a journal, whose write is over
                shutil.copy(file, folder)
        try:
            with closing(sqlite3.connect(Path(folder) / "campaign.db")) as db:
                rows = db.execute("SELECT state, count(*) FROM tasks WHERE kind = 'run' GROUP BY state").fetchall()
        except sqlite3.DatabaseError:
            return Book()
    counts: Counter[str] = Counter(dict(rows))
    left, doubt = counts.pop("planned", 0), counts.pop("intent", 0)
    over = counts["done"] + counts["failed"] + counts["lost"]
    return Book(sum(counts.values()), left, doubt, over)


def evidence(place: Real, runs: int, code: int | None, listed: dict[tuple[str, str], int]) -> Outcome:
    """Weigh what the programs, the batch system (tasks `listed` by job name and id) and nsw say at the end."""
    found = Outcome(runs=runs, clients=Counter((place.work / "clients").read_text().split()))
    found_ledgers = ledgers(place)
    if code not in {0, 1} or len(found_ledgers) != 1:
        said = (place.work / "said").read_text().splitlines()
        found.stuck.append(f"exit {code}, {len(found_ledgers)} campaigns: {' | '.join(said[-3:])}")
    if not found_ledgers:
        return found
    began, ended = _ran(place)
    folder = found_ledgers[0].parent
    with ledger_to_read(CampaignFolder(found_ledgers[0].parent)) as book:
        rows = book.runs()
    for row in rows:
        n = int(row.params["n"])
        once = began[n] == ended[n] == 1
        found.done += once
        if began[n] > 1:
            found.twice.append(n)
        if (row.state is State.DONE) != once:
            found.wrong.append(f"{row.id}: {row.state} ({row.reason}); it began {began[n]} times, ended {ended[n]}")
        elif row.state in {State.FAILED, State.LOST} and row.reason:
            found.reported += 1
            found.reasons[f"{row.state}: {row.reason}"] += 1
        elif not once:
            found.untold.append(row.id)
    found.submitted = sum(listed.values())
    found.taken_back = sum(
        claim.read_text().startswith("state=withdrawn") for claim in folder.glob("scratch/runs/*/attempt-*/claim")
    )
    found.again = _again(listed, runs + found.taken_back)
    return found


def _ran(place: Real) -> tuple[Counter[int], Counter[int]]:
    """How often each program began and ended."""
    began: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    for line in (place.work / "ran").read_text().splitlines():
        word, n = line.split()
        (began if word == "begin" else ended)[int(n)] += 1
    return began, ended


def _again(listed: dict[tuple[str, str], int], wanted: int) -> int:
    """Tasks under a name that was submitted before, and all beyond what was wanted."""
    first = {name: min(int(job) for known, job in listed if known == name) for name, _ in listed}
    same_name = sum(tasks for (name, job), tasks in listed.items() if int(job) != first[name])
    return same_name + max(0, sum(listed.values()) - same_name - wanted)
