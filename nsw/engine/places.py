"""Whether strangers could move what nsw makes in a folder, here or on a site: by the owners of all folders above it.

A folder is made first and looked at then, from the root down: of one that is this user's, below folders that nobody
else may change, nothing changes any more. What is looked at before it is there may be another one a moment later.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from nsw.errors import CampaignError, CommandError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from nsw.engine.folder import CampaignFolder
    from nsw.transport.model import Transport

__all__ = ["WALK", "refuse_strangers", "require_own_folder", "require_own_place", "require_own_root"]

_SECONDS: Final = 60.0
_OTHER_ROOT: Final = "name another folder with --root or NSW_ROOT"
_OVERFLOW_UID: Final = 65534  # of whom a container, or a server that squashes root, says nothing more
# prints the user's number, then of each folder on the way its owner's number and name, mode and path; links on the way
# are printed and followed, and what is not there yet ends it
WALK: Final = r"""
walk() {
  local path=${2%/} rest=$1 part target
  while [ -n "$rest" ]; do
    part=${rest%%/*} rest=${rest#"$part"} rest=${rest#/}
    [ -n "$part" ] || continue
    path=$path/$part
    [ -e "$path" ] || [ -L "$path" ] || return 0
    seen+=("$path")
    [ "${#seen[@]}" -le 500 ] || exit 1
    [ -L "$path" ] || continue
    target=$(readlink -- "$path") || exit 1
    case $target in
      /*) walk "$target" "" ;;
      *) walk "$target" "${path%/*}" ;;
    esac
  done
}
seen=(/)
walk "$1" "" || exit
printf '%s\0' "$EUID"
stat --printf '%u\t%U\t%f\t%n\0' -- "${seen[@]}"
"""


def require_own_root(root: Path, trusted: Collection[str | int], warn: Callable[[str], object]) -> None:
    """The same as `require_own_place`, for the folder of campaigns on this machine."""
    from nsw.transport.local import LocalTransport

    require_own_place(LocalTransport(), str(root.absolute()), trusted, warn, hint=_OTHER_ROOT)


def require_own_folder(
    folder: CampaignFolder, path: Path, trusted: Collection[str | int], warn: Callable[[str], object]
) -> None:
    """The same, for the folder of a campaign that nsw just made, and that this path is to lead to."""
    require_own_root(path, trusted, warn)
    if not os.path.samestat(path.lstat(), os.fstat(folder.directory)):
        raise CampaignError(f"another user changed what {path} is while nsw made it", hint=_OTHER_ROOT)


def require_own_place(
    transport: Transport, path: str, trusted: Collection[str | int], warn: Callable[[str], object], *, hint: str
) -> None:
    """Raise where a stranger could put something else in the place of what nsw makes in a folder.

    Args:
        transport: The way to the machine.
        path: The folder, which need not be there.
        trusted: Names or numbers of other users that may own it, or a folder above it.
        warn: Called with a sentence where a folder's owner is not known.
        hint: What to do.

    Raises:
        CampaignError: One could.
        UnreachableError: The site gave no answer.
    """
    done = transport.run(["bash", "-c", WALK, "nsw", path], timeout=_SECONDS)
    if done.timed_out:
        raise UnreachableError(f"the owners of {path} could not be listed: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, subject=f"the owners of {path} cannot be listed")
    refuse_strangers(done.stdout, path, trusted, warn, hint=hint)


def refuse_strangers(
    walked: str, path: str, trusted: Collection[str | int], warn: Callable[[str], object], *, hint: str
) -> None:
    """Raise for what `WALK` printed of a folder as `require_own_place` does.

    Trusted are the user, root, the site's `trusted_owners`, and members of a group that may write.
    """
    user, *folders = walked.removesuffix("\0").split("\0")
    accepted_owners = {int(user), 0, *trusted}
    for uid, name, mode, folder in (record.split("\t", 3) for record in folders):
        bits = int(mode, 16)
        if int(uid) == _OVERFLOW_UID and _OVERFLOW_UID not in accepted_owners:
            warn(f"nobody knows who owns {folder}, and whether that user could replace what nsw runs from {path}")
        elif int(uid) not in accepted_owners and name not in accepted_owners:
            owner = f"user {uid if name == 'UNKNOWN' else name}"
            advice = "; a site's `trusted_owners` may name that user"
            raise CampaignError(
                f"{folder} belongs to {owner}, who could replace what nsw runs from {path}", hint=hint + advice
            )
        elif not stat.S_ISLNK(bits) and bits & stat.S_IWOTH and not bits & stat.S_ISVTX:
            raise CampaignError(
                f"{folder} may be written by everybody, who could replace what nsw runs from {path}", hint=hint
            )
