"""Runs and builds by the names that people give: an id, or a part of it that only one has."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from nsw.campaign.ledger import BuildRow, RunRow, State
from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.select_runs import Selection

# what a command line says of a campaign: the first word, that of -c, the folder of campaigns, the runs
Which: TypeAlias = "tuple[str | None, str | None, Path | None, Selection]"
T = TypeVar("T", RunRow, RunRow | BuildRow)
_CHOICES = 8
_BAD = (State.FAILED, State.LOST)


def one_of(known: Sequence[T], named: str) -> T:
    """The one of that id, or the only one that has it as a part.

    Raises:
        UsageError: There is none, or several have it.
    """
    found = [r for r in known if r.id == named] or [r for r in known if named in r.id]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = did_you_mean(named, [r.id for r in known]) or "`nsw status --runs` lists them"
        raise UsageError(f"there is no run {named}", hint=hint)
    what = "builds" if all(isinstance(r, BuildRow) for r in found) else "runs"
    raise UsageError(f"'{named}' matches {len(found)} {what}", hint=choices(found))


def the_one(known: Sequence[T], *, follow: bool = False) -> T:
    """Where none is named: the only one that failed or was lost, else that runs, or the only one at all.

    Args:
        known: Those to choose from.
        follow: Whether it is to be followed: one that runs is meant rather than one that failed.

    Raises:
        UsageError: There are several.
    """
    bad = [r for r in known if r.state in _BAD]
    going = [r for r in known if r.state is State.RUNNING]
    some = (going or bad if follow else bad or going) or known
    if len(some) == 1:
        return some[0]
    what = f"there are {len(known)}"
    if some is not known:
        what = f"{len(some)} run now" if some is going else f"{len(some)} failed or were lost"
    raise UsageError(f"which run? {what}", hint=choices(some))


def choices(found: Sequence[RunRow | BuildRow]) -> str:
    """The names to choose from, those first that something is wrong with, each with its state."""
    found = sorted(found, key=lambda r: r.state not in _BAD)
    lines = [f"\n    {r.id}  {r.state}" for r in found[:_CHOICES]]
    more = len(found) - _CHOICES
    return "name one of them:" + "".join(lines) + (f"\n    ... and {more} more" if more > 0 else "")


def campaign_and_runs(which: Which) -> tuple[CampaignFolder, Selection]:
    """The campaign, and the runs of it that are meant: a first word that is no campaign may name runs.

    Raises:
        UsageError: It names no runs of the campaign of -c.
        CampaignError: There is no such campaign, and no such run in the newest.
    """
    from dataclasses import replace

    from nsw.campaign import folder as folders
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.select_runs import job_ids, named
    from nsw.errors import CampaignError, NswError

    word, option, root, selection = which
    parent = folders.root(root)
    if word is None or word == option:
        return folders.find(parent, option), selection
    none: NswError = UsageError(
        f"two campaigns are named: {word} and {option}",
        hint=f"{word} is not a run, case, pattern or job of {option} either",
    )
    if option is None:
        try:
            return folders.find(parent, word), selection
        except CampaignError as fault:
            none = fault
    try:
        folder = folders.find(parent, option)
    except CampaignError:
        raise none from None
    with Ledger(folder.ledger, read_only=True) as ledger:
        runs = ledger.runs()
        if named(word, runs, job_ids(ledger, runs)):
            return folder, replace(selection, only=(*selection.only, word))
    if option is None:
        message = f"{none}, and no run, case, pattern or job of the newest one there, {folder.id}"
        raise UsageError(message, hint=none.hint) from None
    raise none


def campaign_of_words(words: Sequence[str], option: str | None, root: Path | None) -> tuple[CampaignFolder, list[str]]:
    """The campaign, and the words that name runs of it: a first word that fits no run of the newest may be a campaign.

    Raises:
        CampaignError: There is no such campaign.
        UsageError: A word names neither a run of it nor a campaign.
    """
    from nsw.campaign import folder as folders
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.select_runs import job_ids, named
    from nsw.errors import CampaignError

    parent = folders.root(root)
    folder = folders.find(parent, option)
    if not words:
        return folder, []
    with Ledger(folder.ledger, read_only=True) as ledger:
        known: list[RunRow | BuildRow] = [*ledger.builds(), *ledger.runs()]
        jobs = job_ids(ledger, known)
        known += ledger.reductions()
    strange = [word for word in words if not (any(word in row.id for row in known) or named(word, known, jobs))]
    if not strange:
        return folder, list(words)
    if option is None and strange[0] == words[0]:
        try:
            return folders.find(parent, words[0]), list(words[1:])
        except CampaignError:
            pass
    near = did_you_mean(strange[0], [row.id for row in known])
    raise UsageError(
        f"there is no run {strange[0]} in {folder.id}" + (", the newest campaign" if option is None else ""),
        hint=_run_of_path(strange[0], parent)
        or near
        or f"`nsw status --runs -c {as_named(folder)}` lists them; `-c` names another campaign",
    )


def _run_of_path(word: str, parent: Path) -> str | None:
    """What to write instead of a path inside a campaign; None where it is none."""
    from nsw.campaign import folder as folders

    for folder in folders.existing(parent):
        try:
            inside = Path(word).resolve().relative_to(folder.path.resolve()).parts
        except (OSError, ValueError):
            continue
        run = next((name for where, name in pairwise(inside) if where in {"reports", "runs"}), None)
        name = as_named(folder)
        lists = f"`nsw status --runs -c {name}` lists those of that campaign"
        return f"a run is named by its id, not by a path: {f'{run} -c {name}' if run else lists}"
    return None


def as_named(folder: CampaignFolder) -> str:
    """How a hint names a campaign: by its id where the next command looks for it there, else by its path."""
    import shlex

    from nsw.campaign.folder import root

    if folder.path.parent.resolve() == root(None).resolve():
        return folder.id
    path = folder.path
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_absolute() and path.is_relative_to(here) else path))


def as_option(folder: CampaignFolder) -> str:
    """What a command in a hint needs to find a campaign: nothing for the one that is meant where none is named."""
    from nsw.campaign import folder as folders
    from nsw.errors import CampaignError

    try:
        meant = folders.find(folders.root(None), None).path.resolve()
    except CampaignError:
        meant = None
    return "" if meant == folder.path.resolve() else f" -c {as_named(folder)}"
