"""A run that was done is done again only when a person asks for it: its folders must no longer say that it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.folder import run_folder
from nsw.errors import CommandError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.transport.model import Transport

# kept under another name, beside what else the attempt left; done twice it does no more than once
_ASIDE = r"""
for run in "$@"; do
  for file in "$run"/attempt-*/status; do
    [ ! -e "$file" ] || mv -f "$file" "$file.before-retry" || exit
  done
done
"""


def put_aside(transport: Transport, scratch: str, runs: Iterable[str]) -> None:
    """Let a job begin these runs though an attempt of each was done: a script passes over what was.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder there.
        runs: The ids of the runs.

    Raises:
        UnreachableError: The site could not be asked.
    """
    folders = [run_folder(scratch, run, 1).rpartition("/")[0] for run in runs]
    if not folders:
        return
    done = transport.run(["bash", "-c", _ASIDE, "nsw", *folders], timeout=120)
    if done.returncode != 0:
        raise UnreachableError(CommandError(done, what="the earlier attempts could not be moved aside").message)
