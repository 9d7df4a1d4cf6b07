"""The command that reports the end of a campaign: `notify:` of the recipe, else of the site."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final

from nsw.campaign.judge import error_line
from nsw.campaign.ledger_rows import ENDED
from nsw.campaign.recipe_lock import locked_recipe
from nsw.wording import headline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger

_SECONDS: Final = 60.0


def notify(folder: CampaignFolder, ledger: Ledger, *, good: bool) -> str | None:
    """Run the command on this machine, in the campaign's folder; what went wrong with it, or None.

    It learns of the campaign by its environment: NSW_CAMPAIGN (its id), NSW_CAMPAIGN_FOLDER, NSW_VERDICT (good or bad),
    NSW_RUNS and a number for each way to end (NSW_DONE, NSW_FAILED ...), NSW_MESSAGE (a line for people).
    """
    command = locked_recipe(folder).notify or ledger.site().get("notify")
    if not command:
        return None
    words = ["bash", "-c", command, "nsw"] if isinstance(command, str) else [str(word) for word in command]
    fault = _run(words, folder, _environment(folder, ledger.counts(), good=good))
    return f"notify: {fault}" if fault else None


def _environment(folder: CampaignFolder, counts: Mapping[str, int], *, good: bool) -> dict[str, str]:
    return {
        "NSW_CAMPAIGN": folder.id,
        "NSW_CAMPAIGN_FOLDER": str(folder.path.absolute()),
        "NSW_VERDICT": "good" if good else "bad",
        "NSW_RUNS": str(sum(counts.values())),
        **{f"NSW_{state.upper()}": str(counts.get(state, 0)) for state in ENDED},
        "NSW_MESSAGE": f"{folder.id}: {headline(dict(counts))}",
    }


def _run(words: Sequence[str], folder: CampaignFolder, environment: Mapping[str, str]) -> str | None:
    try:
        process = subprocess.Popen(
            words,
            cwd=folder.path,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as fault:
        return f"{words[0]} cannot be started: {fault.strerror}"
    try:
        _, stderr = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"{words[0]} did not end within {_SECONDS:.0f} s"
    if process.returncode == 0:
        return None
    message = error_line(stderr)
    return f"{words[0]} failed (exit status {process.returncode})" + (f": {message}" if message else "")
