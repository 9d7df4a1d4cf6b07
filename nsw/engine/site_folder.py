"""A campaign's folder on its site: closed to other users, with the secrets, and what lets runs begin again there."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.engine.folder import LEDGER, CampaignFolder, run_folder
from nsw.engine.handover import site_in_hand
from nsw.engine.ledger_rows import SCRATCH, State
from nsw.engine.places import WALK, refuse_strangers
from nsw.errors import CampaignError, CommandError, UnreachableError
from nsw.plan.command import FILE, PRIVATE
from nsw.resources import reducer
from nsw.safe_files import read_bytes, read_text, write_text
from nsw.schedulers.model import JOBS
from nsw.scripts.quoting import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.engine.ledger import Ledger
    from nsw.transport.model import Transport

__all__ = [
    "TOOLS",
    "follow_moved_folder",
    "forget_done",
    "forget_secrets",
    "lacks_secrets",
    "prepare",
    "reducer_to",
    "write_secrets",
]

TOOLS: Final = "tools"  # folder of nsw's own programs there
# symbolic, so that the set-group-id bit of a project's folder stays
_MODES: Final = {"nobody": "u=rwx,go=", "group": "u=rwx,g=rx,o="}
# where others may write too, one of them may have put a link there first, or a folder, which root could close
_MAKE: Final = (
    r"""
umask go-w
[ -e "$1/$3" ] || made=new
mkdir -p -- "$1" || exit
[ ! -L "$1" ] || { echo "it is a symbolic link, which nsw does not follow" >&2; exit 1; }
[ "$EUID" -ne 0 ] || [ -O "$1" ] || { echo "it belongs to another user" >&2; exit 1; }
chmod -- "$2" "$1" || exit
[ -z "$3" ] || mkdir -p -- "$1/$3" || exit
printf '%s\0' "${made-}"
"""
    + WALK
)
# kept under another name, beside what else the attempt left; done twice it does no more than once
_ASIDE: Final = r"""
for run in "$@"; do
  for file in "$run"/attempt-*/status; do
    [ ! -e "$file" ] || mv -f "$file" "$file.before-retry" || exit
  done
done
"""
_OTHER_SCRATCH: Final = "name another folder as the site's scratch"
_COMMAND_S: Final = 60.0
_ASIDE_S: Final = 120.0
_READS_SECRETS: Final = b"\n    nsw_secrets "  # of the job's template


def write_secrets(file: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    write_text(file, text, 0o600)


def make_folder(
    transport: Transport, scratch: str, site: Mapping[str, Any], warn: Callable[[str], object] = lambda _text: None
) -> bool:
    """Make the campaign's folder on the site, closed to others, with a folder for jobs; whether one was not there.

    Args:
        transport: The way to the site.
        scratch: The folder there.
        site: The site as data.
        warn: Called with a sentence where the owner of a folder above is not known.

    Raises:
        CampaignError: The site does not let it be made or closed, or a stranger could replace it.
        UnreachableError: The connection was lost.
    """
    mode = _MODES["group" if site.get("share") == "group" else "nobody"]
    is_new, walked = _make(transport, scratch, mode, JOBS)
    refuse_strangers(walked, scratch, site.get("trusted_owners") or (), warn, hint=_OTHER_SCRATCH)
    return is_new


def prepare(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    site: Mapping[str, Any],
    warn: Callable[[str], object] = lambda _text: None,
) -> bool:
    """Make the campaign's folder on the site, closed to others, with a folder for jobs and the secrets in it.

    Args:
        folder: The campaign.
        transport: The way to the site.
        scratch: The folder there.
        site: The site as data.
        warn: Called with a sentence where the owner of a folder above is not known.

    Returns:
        Whether it, or the folder for jobs, was not there.

    Raises:
        CampaignError: The site does not let it be made or closed, or a stranger could replace it.
        UnreachableError: The connection was lost.
    """
    is_new = make_folder(transport, scratch, site, warn)
    if folder.secrets.exists():
        _make(transport, f"{scratch}/{PRIVATE}", _MODES["nobody"])
        transport.stage([(folder.secrets, f"{scratch}/{FILE}")])
    return is_new


def _make(transport: Transport, there: str, mode: str, inside: str = "") -> tuple[bool, str]:
    """Make a folder there; whether it was not there before, and what `WALK` printed of it."""
    done = transport.run(["bash", "-c", _MAKE, "nsw", there, mode, inside], timeout=_COMMAND_S)
    if done.timed_out:
        raise UnreachableError(f"the campaign's folder {there} could not be made: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CampaignError(
            f"the campaign's folder {there} cannot be made and closed to other users: {done.stderr.strip()}",
            hint=_OTHER_SCRATCH,
        )
    made, _, walked = done.stdout.partition("\0")
    return made == "new", walked


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
    return any(_READS_SECRETS in read_bytes(script) for script in scripts if script.exists())


def reducer_to(scratch: str) -> tuple[Path, str]:
    """The file that reduces reports, and where the scripts of reductions look for it in the folder there."""
    return reducer(), f"{scratch}/{TOOLS}/reduce_export.py"


def forget_done(folder: CampaignFolder, ledger: Ledger, runs: Sequence[str]) -> None:
    """Let those of these runs that were done begin again: a job's script passes over what was.

    Raises:
        FencedError: Another nsw took the campaign over.
        UnreachableError: The site could not be asked.
    """
    done = [run.id for run in ledger.runs_named(runs) if run.state is State.DONE]
    done += [row.id for row in ledger.reductions((State.DONE,), run_ids=set(runs))]
    if not done:
        return
    with site_in_hand(folder, ledger) as (transport, scratch):
        homes = [run_folder(scratch, run, 1).rpartition("/")[0] for run in done]
        moved = transport.run(["bash", "-c", _ASIDE, "nsw", *homes], timeout=_ASIDE_S)
    if moved.returncode != 0:
        raise UnreachableError(CommandError(moved, subject="the earlier attempts could not be moved aside").message)


def follow_moved_folder(folder: CampaignFolder, ledger: Ledger) -> None:
    """Where the campaign was moved with its folder on the site inside its own: to the new place, in ledger and scripts.

    A copy, whose original is still there, keeps the original's folder. A folder on the site outside the campaign's own
    does not move with it. Jobs that were submitted before go on in the old place. The caller holds the lock.
    """
    was, now = Path(ledger.meta(SCRATCH)), (folder.path / "scratch").absolute()
    if was == now or was.name != now.name or not now.is_dir() or (was.parent / LEDGER).exists():
        return
    for script in folder.scripts.glob("*.sh"):
        text = read_text(script).replace(quote(str(was)), quote(str(now)))
        write_text(script, text, stat.S_IMODE(script.stat().st_mode))
    ledger.set_meta(SCRATCH, str(now))
