"""What the parts of the loop share: a campaign in the hands of the process that drives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.campaign.collect import run_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.takeover_archive import Handover
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport


def _nobody(_ids: list[str]) -> None:
    pass


def _silence(_text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Driven:
    """A campaign whose lock this process holds.

    Args:
        folder: Its folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: Its folder on the site.
        handover: What another machine takes the campaign over with; None on this machine.
        say: Prints a line for the user.
        changed: Called with the ids of runs and builds that changed their state, once that is written down.
    """

    folder: CampaignFolder
    ledger: Ledger
    scheduler: Scheduler
    transport: Transport
    scratch: str
    changed: Callable[[list[str]], object] = _nobody
    handover: Handover | None = None
    say: Callable[[str], object] = _silence

    def home(self, run: str, attempt: int) -> str:
        """The folder of an attempt of a run or build on the site."""
        return run_folder(self.scratch, run, attempt)

    def script(self, job: str) -> Path:
        """The script of a job, in the campaign's folder."""
        return self.folder.script(job).absolute()
