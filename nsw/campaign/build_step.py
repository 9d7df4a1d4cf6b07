"""The recipe's build step: once a campaign, in the folder of the application's files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nsw.errors import CampaignError

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.transport.model import Transport

_LIMIT_S = 3600.0
_TAIL = 25


def prepare(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
    """Put the application's files on the site and build them, unless an earlier nsw did.

    Raises:
        CampaignError: The build failed; it holds the end of what it printed.
    """
    if ledger.meta("prepared"):
        return
    target = f"{scratch}/app"
    if any(folder.app.iterdir()):
        transport.put(folder.app, target)
    words = json.loads(ledger.meta("build") or "null")
    if words:
        result = transport.run(words, timeout=_LIMIT_S, cwd=target)
        output = result.stdout + result.stderr
        (folder.path / "build.txt").write_text(output)
        if result.returncode != 0:
            how = "did not end within an hour" if result.timed_out else f"failed with exit status {result.returncode}"
            tail = "\n".join("  | " + line for line in output.splitlines()[-_TAIL:])
            raise CampaignError(
                f"the build step {how}: {' '.join(words)}\n{tail}",
                hint=f"mend it and start again; the whole output is in {folder.path / 'build.txt'}",
            )
    ledger.set_meta("prepared", "yes")
