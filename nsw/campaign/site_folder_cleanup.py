"""A campaign's folder on its site, when the campaign is over: what is in it, and its removal.

A file of a run is removed only when a copy is in the campaign's folder here, unless the caller wants everything gone.
Nothing outside the folder is touched: it is entered without following links, and names are relative to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nsw.campaign.collect import KEPT_FILES, attempt_of
from nsw.errors import CampaignError, CommandError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.transport.commands import Fence
    from nsw.transport.model import Transport

_SECONDS: Final = 600.0
_ABSENT: Final = 44
# each plain file with size, number of links and name; `find` does not follow links
_LIST: Final = r"""
[ ! -L "$1" ] || { echo "it is a symbolic link, which nsw does not follow" >&2; exit 1; }
[ -e "$1" ] || exit 44
[ "$EUID" -ne 0 ] || [ -O "$1" ] || { echo "it belongs to another user" >&2; exit 1; }
cd -P -- "$1" && find . -xdev -type f -printf '%s\t%n\t%P\0'
"""
# first the files named on standard input, then links into the application's folder and the folders left empty
_REMOVE_SOME: Final = r"""
[ ! -L "$1" ] && cd -P -- "$1" || exit
xargs -0 -r rm -f -- || exit
find . -xdev -type l -lname '../../../*' -delete
find . -xdev -depth -mindepth 1 -type d -empty -delete
rmdir -- "$1" 2>/dev/null
:
"""
_REMOVE_ALL: Final = '[ ! -L "$1" ] && rm -rf --one-file-system -- "$1"'
# what nsw itself put or wrote there, by the first part of its name
_OWN: Final = frozenset({
    "app", "choices", "commands", "handover", "jobs", "owner", "private", "provenance", "scripts", "tools",
})  # fmt: skip
_MARKERS: Final = frozenset({"claim", "status", "again"})  # of attempts: nsw's own, brought or not
_APP_OF_PART: Final = re.compile(r"app-\d+")  # the application's files, copied again
_OF_RUN: Final = re.compile(r"runs/([^/]+)/(?:attempt-(\d+)|[^/]+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Found:
    """A plain file in the folder: its name relative to it, its size in bytes, how many names it has."""

    name: str
    size: int
    links: int = 1


@dataclass(frozen=True, slots=True)
class Space:
    """What is in the folder: `spare` is nsw's own or was brought, `kept` was never brought.

    `owned`: it names the nsw that may change it. `whole`: nothing of the folder was left out.
    """

    folder: str
    spare: tuple[Found, ...]
    kept: tuple[Found, ...]
    owned: bool = False
    whole: bool = True

    def of_runs(self, runs: Collection[str]) -> Space:
        """Only what these runs left."""

        def left_by(one: Found) -> bool:
            match = _OF_RUN.fullmatch(one.name)
            return match is not None and match[1] in runs

        return replace(
            self, spare=tuple(filter(left_by, self.spare)), kept=tuple(filter(left_by, self.kept)), whole=False
        )


def space_of(folder: CampaignFolder, transport: Transport, scratch: str, builds: Iterable[tuple[str, str]]) -> Space:
    """Look at a campaign's folder on its site.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        builds: The id of each build and the folder it builds in.

    Raises:
        CampaignError: What is there is not the campaign's own folder.
        CommandError: It cannot be listed.
        UnreachableError: The site gave no answer.
    """
    require_campaign_folder(folder, scratch)
    done = transport.run(["bash", "-c", _LIST, "nsw", scratch], timeout=_SECONDS)
    if done.timed_out:
        raise UnreachableError(f"{scratch} could not be listed: {done.stderr.strip()}")
    if done.returncode == _ABSENT:
        return Space(scratch, (), ())
    if done.returncode != 0:
        raise CommandError(done, what=f"{scratch} cannot be listed, and nothing was removed")
    built = dict(builds)
    spare: list[Found] = []
    kept: list[Found] = []
    attempts: dict[str, int | None] = {}
    for found in _parse(done.stdout):
        own = _is_own(found, folder, built, attempts)
        (spare if own else kept).append(found)
    return Space(scratch, tuple(spare), tuple(kept), owned=any(one.name == "owner" for one in spare))


def remove(transport: Transport, space: Space, *, everything: bool, fence: Fence | None = None) -> None:
    """Remove what is spare, or the folder whole.

    Args:
        transport: The way to the site.
        space: What is there.
        everything: Whether what is kept goes too.
        fence: The right to change the folder, where an nsw elsewhere may own the campaign.

    Raises:
        FencedError: One does.
        CommandError: Something could not be removed.
        UnreachableError: The site gave no answer; doing it again removes the rest.
    """
    some = not space.whole or (bool(space.kept) and not everything)
    files = (*space.spare, *space.kept) if everything else space.spare
    argv = ["bash", "-c", _REMOVE_SOME if some else _REMOVE_ALL, "nsw", space.folder]
    names = "".join(f"./{one.name}\0" for one in files).encode() if some else b""
    if fence is None:
        done = transport.run(argv, timeout=_SECONDS, stdin=names)
    else:
        done = fence.passed(argv, transport.run(fence.around(argv), timeout=_SECONDS, stdin=names))
    if done.timed_out:
        raise UnreachableError(f"{space.folder} may be removed in part: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, what=f"{space.folder} could not be removed completely")


def freed(files: Collection[Found]) -> int:
    """Bytes that the removal of these files frees; a file with another name elsewhere frees none."""
    return sum(one.size for one in files if one.links == 1)


def require_campaign_folder(folder: CampaignFolder, scratch: str) -> None:
    """Raise where a path cannot be the folder of this campaign on a site.

    Raises:
        CampaignError: It is not absolute, has `..` in it, or does not end in the campaign's id or in its `scratch`.
    """
    parts = scratch.split("/")
    own = parts[-1] == folder.id or parts[-2:] == [folder.id, "scratch"]
    if not scratch.startswith("/") or ".." in parts or len(parts) < 3 or not own:
        raise CampaignError(f"{scratch} is not a folder that nsw made for campaign {folder.id}, and is left alone")


def _parse(text: str) -> Iterable[Found]:
    for record in text.split("\0"):
        size, _, rest = record.partition("\t")
        links, _, name = rest.partition("\t")
        if size.isdigit() and links.isdigit() and name:
            yield Found(name, int(size), int(links))


def _is_own(found: Found, folder: CampaignFolder, builds: dict[str, str], attempts: dict[str, int | None]) -> bool:
    """Whether the file may go: nsw's own, empty, a build's, or the same file is here."""
    top = found.name.partition("/")[0]
    if top.partition(".")[0] in _OWN or top in builds.values() or _APP_OF_PART.fullmatch(top):
        return True
    match = _OF_RUN.fullmatch(found.name)
    if match is None:
        return False
    run, attempt, name = match[1], match[2], match[3]
    if found.size == 0 or run in builds or name.partition(".")[0] in _MARKERS:
        return True
    if attempt is None or "/" in name or run in {".", ".."}:
        return False
    home = folder.reports / run
    if run not in attempts:
        attempts[run] = attempt_of(home)
    newest = attempts[run] == int(attempt)
    places = [home / name if newest else home / f"attempt-{attempt}" / name]
    if newest and name not in KEPT_FILES:
        places.append(folder.path / "fetched" / run / name)
    return any(_has(place, found.size) for place in places)


def _has(place: Path, size: int) -> bool:
    try:
        return place.is_file() and place.stat().st_size == size
    except OSError:
        return False


def largest(files: Sequence[Found], most: int) -> list[Found]:
    """The largest of these files, at most so many."""
    return sorted(files, key=lambda one: -one.size)[:most]
