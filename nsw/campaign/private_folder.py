"""A campaign's folder on the site, closed to other users, and the file with the secrets there and here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nsw.campaign.ledger_rows import State
from nsw.errors import CampaignError, UnreachableError
from nsw.plan.command import FILE, PRIVATE
from nsw.schedulers.model import JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.transport.model import Transport

# symbolic, so that the set-group-id bit of a project's folder stays
_MODES = {"nobody": "u=rwx,go=", "group": "u=rwx,g=rx,o="}
# where others may write too, one of them may have put a link there first, or a folder, which root could close
_MAKE = """
[ -e "$1/$3" ] || made=new
mkdir -p -- "$1" || exit
[ ! -L "$1" ] || { echo "it is a symbolic link, which nsw does not follow" >&2; exit 1; }
[ "$EUID" -ne 0 ] || [ -O "$1" ] || { echo "it belongs to another user" >&2; exit 1; }
chmod -- "$2" "$1" || exit
[ -z "$3" ] || mkdir -p -- "$1/$3" || exit
echo "${made-}"
"""
_COMMAND_S = 60.0
_READS_SECRETS = b"\n    nsw_secrets "  # of the job's template


def write_secrets(file: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:  # noqa: PTH123
        out.write(text)


def prepare(folder: CampaignFolder, transport: Transport, scratch: str, share: str) -> bool:
    """Make the campaign's folder on the site, closed to others, with a folder for jobs and the secrets in it.

    Returns:
        Whether it, or the folder for jobs, was not there.

    Raises:
        CampaignError: The site does not let it be made or closed.
        UnreachableError: The connection was lost.
    """
    is_new = _make(transport, scratch, _MODES[share], JOBS)
    if folder.secrets.exists():
        _make(transport, f"{scratch}/{PRIVATE}", _MODES["nobody"])
        transport.stage([(folder.secrets, f"{scratch}/{FILE}")])
    return is_new


def forget_secrets(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
    """Remove the secrets, here and on the site, once no retry needs them: every run is done and lacks nothing."""
    open_runs = sum(n for state, n in ledger.counts().items() if state != State.DONE)
    if open_runs or ledger.incomplete() or ledger.unreadable() or not folder.secrets.exists():
        return
    done = transport.run(["rm", "-f", "--", f"{scratch}/{FILE}"], timeout=_COMMAND_S)
    if done.returncode == 0:
        folder.secrets.unlink()


def lacks_secrets(folder: CampaignFolder, jobs: Iterable[str]) -> bool:
    """Whether the script of one of these jobs reads the secrets, and the file with them was removed."""
    if folder.secrets.exists():
        return False
    scripts = (folder.script(job) for job in jobs)
    return any(_READS_SECRETS in script.read_bytes() for script in scripts if script.exists())


def _make(transport: Transport, there: str, mode: str, inside: str = "") -> bool:
    """Make a folder there; whether it was not there before."""
    done = transport.run(["bash", "-c", _MAKE, "nsw", there, mode, inside], timeout=_COMMAND_S)
    if done.timed_out:
        raise UnreachableError(f"the campaign's folder {there} could not be made: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CampaignError(
            f"the campaign's folder {there} cannot be made and closed to other users: {done.stderr.strip()}",
            hint="name another folder as the site's scratch",
        )
    return done.stdout.strip() == "new"
