"""What a recipe asks for beyond a campaign that there is: runs to add, and runs that would be others now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nsw.plan.model import Plan, Run

_SHOWN = 3  # names in a reason


@dataclass(frozen=True, slots=True)
class Changes:
    """A recipe against a campaign, by the ids of runs.

    Attributes:
        added: Runs that the campaign lacks.
        again: Runs that would be done otherwise now, with what changed.
        same: How many runs stay as they are.
        absent: How many runs of the campaign the recipe does not have; they stay.
        program: Whether files of the application changed.
    """

    added: tuple[str, ...]
    again: Mapping[str, str]
    same: int
    absent: int
    program: bool

    @property
    def runs(self) -> tuple[str, ...]:
        """All runs to do."""
        return (*self.added, *self.again)


def changes(
    before: Plan, now: Plan, files_before: Mapping[str, str], files_now: Mapping[str, str], known: Iterable[str],
    files_of: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Changes:  # fmt: skip
    """Compare what a campaign carried out with what a recipe asks for.

    Args:
        before: The plan of the campaign's own recipe.
        now: The plan of the recipe.
        files_before: The application's files in the campaign, by name, with their hashes.
        files_now: Those that the recipe names.
        known: The runs of the campaign.
        files_of: The same files as `files_before` of those runs that had an older version of the program.
    """
    there = set(known)
    old = {run.id: run for run in before.runs}
    program = _files_changed(files_before, files_now)
    added, again = [], {}
    for run in now.runs:
        if run.id not in there:
            added.append(run.id)
            continue
        files = _files_changed(files_of.get(run.id, files_before), files_now)
        if why := files or _difference(old.get(run.id), run, before, now):
            again[run.id] = why
    wanted = {run.id for run in now.runs}
    kept = len(wanted) - len(added) - len(again)
    return Changes(tuple(added), again, kept, len(there - wanted), program is not None or _build_changed(before, now))


def _files_changed(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """`train.py changed`; None where all files are as they were."""
    files = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f"{', '.join(files[:_SHOWN])}{more} changed" if files else None


def _difference(old: Run | None, new: Run, before: Plan, now: Plan) -> str | None:
    """What of a run is other than it was; the time limit does not count, nor which repeat it is."""
    if old is None:
        return "the campaign's recipe no longer has it, so what it was is not known"
    if old.params != new.params:
        return "its parameters changed"
    if _builds(before).get(old.app) != _builds(now).get(new.app):
        return "the build changed"
    if (old.command, old.after, old.tool) != (new.command, new.after, new.tool):
        return "its command changed"
    if old.env != new.env or (old.secrets and old.secrets.names) != (new.secrets and new.secrets.names):
        return "its environment changed"
    if (before.setup, before.modules) != (now.setup, now.modules):
        return "the set-up changed"
    if replace(old.resources, time_s=0) != replace(new.resources, time_s=0):
        return "its resources changed"
    return None


def _builds(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {job.runs[0].app: job.runs[0].command for job in plan.builds}


def _build_changed(before: Plan, now: Plan) -> bool:
    old, new = _builds(before), _builds(now)
    return any(old[app] != command for app, command in new.items() if app in old)
