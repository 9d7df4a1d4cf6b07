"""A campaign that was moved, with its folder on the site inside its own: its paths become those of the new place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsw.campaign.folder import LEDGER
from nsw.campaign.ledger_rows import SCRATCH
from nsw.scripts.quoting import quote

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger


def follow(folder: CampaignFolder, ledger: Ledger) -> None:
    """Write the new place into the ledger and the job scripts; the caller holds the campaign's lock.

    A copy, whose original is still there, keeps the original's folder. A folder on the site outside the campaign's own
    does not move with it. Jobs that were submitted before go on in the old place.
    """
    was, now = Path(ledger.meta(SCRATCH)), (folder.path / "scratch").absolute()
    if was == now or was.name != now.name or not now.is_dir() or (was.parent / LEDGER).exists():
        return
    for script in folder.scripts.glob("*.sh"):
        made = script.with_suffix(".new")
        made.write_text(script.read_text(encoding="utf-8").replace(quote(str(was)), quote(str(now))), encoding="utf-8")
        made.chmod(script.stat().st_mode)
        made.replace(script)
    ledger.set_meta(SCRATCH, str(now))
