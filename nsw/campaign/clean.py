"""`nsw clean`: what a campaign that is over left on its site, how much it is, and its removal.

A file of a run is removed only when a copy is in the campaign's folder here, unless the caller wants everything gone.
Nothing outside the folder is touched: it is entered without following links, and names are relative to it.
"""

from __future__ import annotations

import re
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from nsw.campaign.selection import Selection, campaign_argument, selected
from nsw.engine import folder as folders
from nsw.engine.collect import KEPT_FILES, collected_attempt_folder
from nsw.engine.driven import locked_ledger
from nsw.engine.handover import TOOLS, noting_owner, require_owner, require_success, run_fenced
from nsw.engine.ledger_rows import CLEANED, ENDED, OWNED_BY, PREPARED, SCRATCH, SITE, Reading, State
from nsw.engine.node_archives import is_unpacked
from nsw.errors import CampaignError
from nsw.transport.commands import Fence
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.transport.model import Transport

__all__ = ["Cleaning", "FileThere", "Leftovers", "find_leftovers", "open_cleaning", "remove", "require_campaign_folder"]

_ALL_RUNS: Final = Selection()
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
_NSW_NAMES: Final = frozenset({
    "choices", "commands", "handover", "jobs", "owner", "private", "provenance", "scripts", "tools",
})  # fmt: skip
_MARKERS: Final = frozenset({"claim", "status", "again"})  # of attempts: nsw's own, brought or not
_OF_RUN: Final = re.compile(r"runs/([^/]+)/(?:attempt-(\d+)|[^/]+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileThere:
    """A plain file in the folder: its name relative to it, its size in bytes, how many names it has."""

    name: str
    size: int
    links: int


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is in the folder on the site: `spare` is nsw's own or was collected, `uncollected` never was.

    `owned`: it names the nsw that may change it. `complete`: nothing of the folder was left out.
    """

    scratch: str
    spare: tuple[FileThere, ...] = ()
    uncollected: tuple[FileThere, ...] = ()
    owned: bool = False
    complete: bool = True

    @property
    def is_gone(self) -> bool:
        """Whether nothing is there any more."""
        return not self.spare and not self.uncollected

    def files(self, *, include_uncollected: bool) -> tuple[FileThere, ...]:
        """What is removed: the spare ones, or all."""
        return (*self.spare, *self.uncollected) if include_uncollected else self.spare

    def freed_bytes(self, *, include_uncollected: bool) -> int:
        """Bytes that the removal frees; a file with another name elsewhere frees none."""
        return sum(file.size for file in self.files(include_uncollected=include_uncollected) if file.links == 1)

    def of_runs(self, runs: Collection[str]) -> Leftovers:
        """Only what these runs left."""

        def theirs(files: Iterable[FileThere]) -> tuple[FileThere, ...]:
            return tuple(file for file in files if (match := _OF_RUN.fullmatch(file.name)) and match[1] in runs)

        return replace(self, spare=theirs(self.spare), uncollected=theirs(self.uncollected), complete=False)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """A campaign's folder on its site, while the connection is open and no other nsw may drive the campaign.

    Attributes:
        leftovers: What is in it.
        location: The site and the folder.
    """

    leftovers: Leftovers
    location: str
    _ledger: Ledger
    _transport: Transport
    _fence: Fence | None

    def remove(self, *, include_uncollected: bool) -> None:
        """Remove what is nsw's own or has a copy here; with `include_uncollected` also what was never collected.

        Raises:
            FencedError: An nsw elsewhere owns the campaign.
            CommandError: Something could not be removed.
            UnreachableError: The site gave no answer; doing it again removes the rest.
        """
        is_complete = self.leftovers.complete
        if is_complete:
            self._ledger.set_meta(PREPARED, False)  # a retry sends scripts and files again
        remove(self._transport, self.leftovers, include_uncollected=include_uncollected, fence=self._fence)
        if is_complete:
            self._ledger.set_meta(CLEANED, time.time())


@contextmanager
def open_cleaning(folder: CampaignFolder, selection: Selection = _ALL_RUNS) -> Iterator[Cleaning]:
    """Look at what a campaign left on its site, or some of its runs.

    Raises:
        UsageError: No run is meant.
        CampaignError: The campaign is not over, or its reports are not read yet.
        CampaignLockedError: Another process drives it.
        FencedError: It is not over, and an nsw elsewhere owns it.
        UnreachableError: The site cannot be reached.
    """
    from nsw.transport.model import connect

    with locked_ledger(folder) as ledger:
        scratch = ledger.meta(SCRATCH)
        fault = _refuse_unfinished(folder, ledger)
        with closing(connect(ledger.site())) as transport, noting_owner(ledger):
            builds = [(build.id, build.app) for build in ledger.builds()]
            builds += [(row.id, TOOLS) for row in ledger.reductions()]  # what they made was brought, or made in vain
            leftovers = find_leftovers(folder, transport, scratch, builds)
            token = ledger.meta(OWNED_BY) if transport.remote else None
            # an earlier clean may have taken the file with the owner
            fence = Fence(scratch, token, folder.id) if token and leftovers.owned else None
            if fault is not None:
                require_owner(transport, fence)  # of another nsw's campaign all that the hint advises would be refused
                raise fault
            if selection:
                leftovers = leftovers.of_runs({run.id for run in selected(ledger, ledger.runs(), selection)})
            yield Cleaning(leftovers, f"{ledger.meta(SITE)}:{scratch}", ledger, transport, fence)


def _refuse_unfinished(folder: CampaignFolder, ledger: Ledger) -> CampaignError | None:
    """Why nothing may be removed yet; None where the campaign is over and read."""
    if left := sum(n for state, n in ledger.counts().items() if state not in ENDED):
        return CampaignError(
            f"{folder.id} is not over: {plural(left, 'run')} may still need its folder on the site",
            hint=(
                f"`nsw resume {campaign_argument(folder)}` finishes it, `nsw cancel"
                f" {campaign_argument(folder)}` abandons it"
            ),
        )
    unread = [
        *ledger.runs(states=(State.DONE, State.FAILED), reading=Reading.COLLECTED),
        *ledger.runs(states=[State.DONE], reading=Reading.NONE),
    ]
    if not unread:
        return None
    return CampaignError(
        f"{folder.id}: {plural(len(unread), 'run')} not read yet, such as {unread[0].id}",
        hint=f"`nsw resume {campaign_argument(folder)}` reads the reports that are here",
    )


def find_leftovers(
    folder: CampaignFolder, transport: Transport, scratch: str, builds: Iterable[tuple[str, str]]
) -> Leftovers:
    """List the files in a campaign's folder on its site, by whether they may be removed.

    Args:
        folder: The campaign's folder here, which shows what was collected.
        transport: The way to the site.
        scratch: The campaign's folder on the site.
        builds: The id of each build, and the folder below `scratch` that it builds in.

    Raises:
        CampaignError: What is there is not the campaign's own folder.
        CommandError: It cannot be listed.
        UnreachableError: The site gave no answer.
    """
    require_campaign_folder(folder, scratch)
    done = transport.run(["bash", "-c", _LIST, "nsw", scratch], timeout=_SECONDS)
    if done.returncode == _ABSENT and not done.timed_out:
        return Leftovers(scratch)
    require_success(
        done, late=f"{scratch} could not be listed", failure=f"{scratch} cannot be listed, and nothing was removed"
    )
    built, home_of = dict(builds), cache(partial(collected_attempt_folder, folder))
    spare: list[FileThere] = []
    uncollected: list[FileThere] = []
    for file in _parse_listing(done.stdout):
        is_spare = _may_be_removed(file, built) or _is_copied_here(file, folder, home_of)
        (spare if is_spare else uncollected).append(file)
    return Leftovers(scratch, tuple(spare), tuple(uncollected), owned=any(file.name == "owner" for file in spare))


def require_campaign_folder(folder: CampaignFolder, scratch: str) -> None:
    """Raise where a path cannot be the folder of this campaign on a site.

    Raises:
        CampaignError: It is not absolute, has `..` in it, or does not end in the campaign's id or in its `scratch`.
    """
    parts = scratch.split("/")
    is_named_so = parts[-1] == folder.id or parts[-2:] == [folder.id, "scratch"]
    if not scratch.startswith("/") or ".." in parts or len(parts) < 3 or not is_named_so:
        raise CampaignError(f"{scratch} is not a folder that nsw made for campaign {folder.id}, and is left alone")


def _parse_listing(text: str) -> Iterator[FileThere]:
    for record in text.split("\0"):
        size, _, rest = record.partition("\t")
        links, _, name = rest.partition("\t")
        if size.isdigit() and links.isdigit() and name:
            yield FileThere(name, int(size), int(links))


def _may_be_removed(file: FileThere, builds: Mapping[str, str]) -> bool:
    """Whether it is nsw's own, empty, or of a build."""
    top = file.name.partition("/")[0]
    if top.partition(".")[0] in _NSW_NAMES or top in builds.values() or folders.PROGRAM.fullmatch(top):
        return True
    match = _OF_RUN.fullmatch(file.name)
    return match is not None and (file.size == 0 or match[1] in builds or match[3].partition(".")[0] in _MARKERS)


def _is_copied_here(file: FileThere, folder: CampaignFolder, home_of: Callable[[str, int], Path | None]) -> bool:
    """Whether the same file of a run is here; `home_of` gives the folder of an attempt's collected files."""
    match = _OF_RUN.fullmatch(file.name)
    if match is None or match[2] is None or "/" in match[3] or match[1] in {".", ".."}:
        return False
    run, name = match[1], match[3]
    if (home := home_of(run, int(match[2]))) is None:
        return False
    if is_unpacked(home, name):
        return True
    copies = [home / name]
    if home == folder.reports / run and name not in KEPT_FILES:
        copies.append(folder.path / "fetched" / run / name)
    return any(_has_size(copy, file.size) for copy in copies)


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False


def remove(
    transport: Transport, leftovers: Leftovers, *, include_uncollected: bool, fence: Fence | None = None
) -> None:
    """Remove spare files, or the whole folder, from the site.

    Args:
        transport: The way to the site.
        leftovers: What is there, as `find_leftovers` returns it.
        include_uncollected: Remove also files that were never collected.
        fence: Refuses where an nsw elsewhere owns the campaign; None: none can.

    Raises:
        FencedError: An nsw elsewhere owns the campaign.
        CommandError: Something could not be removed.
        UnreachableError: The site gave no answer; doing it again removes the rest.
    """
    folder = leftovers.scratch
    only_files = not leftovers.complete or (bool(leftovers.uncollected) and not include_uncollected)
    argv = ["bash", "-c", _REMOVE_SOME if only_files else _REMOVE_ALL, "nsw", folder]
    files = leftovers.files(include_uncollected=include_uncollected) if only_files else ()
    names = "".join(f"./{file.name}\0" for file in files).encode(errors="surrogateescape")
    done = run_fenced(transport, fence, argv, timeout=_SECONDS, stdin=names)
    require_success(done, late=f"{folder} may be removed in part", failure=f"{folder} could not be removed completely")
