"""A campaign that nobody drives here, seen from its site: what has become of its runs, with nothing written down.

It works on a copy of the ledger. Nothing is submitted, cancelled, throttled, brought or claimed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nsw.campaign.folder import LEDGER, run_folder
from nsw.campaign.judge import judge, read_statuses
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_meta_keys import OWNED_BY, SCRATCH
from nsw.campaign.ledger_rows import IN_FLIGHT, State
from nsw.campaign.takeover_archive import ARCHIVE, unpack
from nsw.schedulers.batch import BatchScheduler
from nsw.schedulers.create import create
from nsw.schedulers.model import Answer, Phase
from nsw.transport.model import Unreadable, read

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger_rows import RunRow
    from nsw.transport.model import Transport

_UNKNOWN = Answer(Phase.UNKNOWN)


class Onlooker:
    """Looks at a campaign's runs on their site.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
    """

    def __init__(self, folder: CampaignFolder, transport: Transport) -> None:
        self._transport = transport
        self._copy = tempfile.TemporaryDirectory(prefix="nsw-watch-")
        path = Path(self._copy.name) / LEDGER
        with Ledger(folder.ledger, read_only=True) as ledger:
            path.write_bytes(ledger.snapshot())
            self.scratch = ledger.meta(SCRATCH)
            own, site = ledger.meta(OWNED_BY), ledger.checked_site()
        self.elsewhere: str | None = None  # the nsw on another machine that owns the campaign: user, host, since when
        self.changed_any = False  # the site knows more than the ledger here
        if transport.remote and own is not None and (owner := self._owner())[0] not in {"", own}:
            self._bring_state(path)
            self.elsewhere = owner[1] or "who that is, the site does not say"
        self.ledger = Ledger(path)
        scheduler = create(site, transport, self.scratch, folder.id)
        self._scheduler = scheduler if isinstance(scheduler, BatchScheduler) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, fault: object, trace: object) -> None:
        try:
            self.ledger.__exit__(kind, fault, trace)
        finally:
            self._copy.cleanup()

    def _owner(self) -> tuple[str, str]:
        """Token and name of the owner, as the site has it."""
        text = (read(self._transport, f"{self.scratch}/owner", 4096) or b"").decode(errors="replace")
        token, _, about = text.partition("\n")
        return token, about.partition("\n")[0].strip()

    def _bring_state(self, path: Path) -> None:
        """Where an nsw elsewhere drives the campaign, its ledger is the one that knows."""
        archive = path.with_name("archive")
        self._transport.get_many([(f"{self.scratch}/{ARCHIVE}", archive)])
        path.write_bytes(unpack(archive.read_bytes())[LEDGER])

    def look(self) -> list[RunRow]:
        """The runs that are in another state than at the last look.

        Raises:
            UnreachableError: The site gave no answer.
        """
        flying = [run for run in self.ledger.runs() if run.state in IN_FLIGHT]
        if not flying:
            return []
        answers = self._ask()
        said = {run.id: answers.get(run.submission or "", {}).get(run.task, _UNKNOWN) for run in flying}
        homes = {
            run.id: run_folder(self.scratch, run.id, run.attempt)
            for run in flying
            if said[run.id].phase is not Phase.QUEUED
        }
        statuses = read_statuses(self._transport, homes.values()) if homes else {}
        changed: list[str] = []
        with self.ledger.transaction():
            for run in flying:
                answer, status = said[run.id], statuses.get(homes.get(run.id, ""))
                if isinstance(status, Unreadable):
                    continue
                if run.state is State.INTENT and status is None:
                    continue  # whether it was submitted is looked up by who drives the campaign
                verdict = judge(answer, status)
                if (verdict.state, verdict.reason) == (run.state, run.reason):
                    continue
                times = {} if status is None else {"started": status.started, "ended": status.ended}
                self.ledger.update_tasks([run.id], state=verdict.state, reason=verdict.reason, **times)
                changed.append(run.id)
        self.changed_any = self.changed_any or bool(changed)
        return self.ledger.runs_named(changed)

    def _ask(self) -> dict[str, dict[int, Answer]]:
        """What the scheduler says of each task, by submission."""
        if self._scheduler is None:
            return {}
        runs = {run.submission for run in self.ledger.runs() if run.state in IN_FLIGHT}
        submitted = [one for one in self.ledger.submissions("submitted", _NoScripts()) if one.name in runs]
        return self._scheduler.look(submitted) if submitted else {}

    def flying(self) -> int:
        """How many runs the scheduler has."""
        counts = self.ledger.counts()
        return sum(counts.get(state, 0) for state in IN_FLIGHT)


class _NoScripts(dict[str, Path]):
    """A watcher needs no script."""

    def __missing__(self, job: str) -> Path:
        return Path(job)
