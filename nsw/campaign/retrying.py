"""Which runs a retry does again: those that are named, or all that did not succeed, and what cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from nsw.campaign.ledger import IN_FLIGHT, State
from nsw.campaign.ledger_rows import lacks_figure, lacks_reports
from nsw.campaign.runs_by_name import one_of
from nsw.campaign.select_runs import named as runs_named
from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from nsw.campaign.ledger import RunRow

AGAIN = (State.FAILED, State.LOST, State.CANCELLED)  # what a retry does again
_SHOWN = 3  # names in a message


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs to do again, in the plan's order, and what a person should know of the choice."""

    runs: list[str]
    told: list[str]


def choose(
    runs: Sequence[RunRow],
    named: Sequence[str],
    states: Collection[State],
    first: Collection[str],
    jobs: Mapping[str, str] = MappingProxyType({}),
    meant: Collection[str] | None = None,
) -> Chosen:
    """What to do again.

    Runs that the site packs into one task have one script: of those that did not succeed all are done again.

    Args:
        runs: All runs of the campaign.
        named: Those that a person named; none: all that did not succeed.
        states: The states from which a run is done again; one that lacks a required figure is in any case, and one
            with missing or unreadable reports if it is named: where only a reader was missing, a retry mends nothing.
        first: The canary, if it must be tried again whatever its state.
        jobs: The scheduler's job id of each run that has one.
        meant: Only these runs; None: all.

    Raises:
        UsageError: One that is named is not there, did not fail, or cannot be done yet.
    """
    may = [r.id for r in runs if r.state in states or lacks_figure(r) or r.id in first or (named and lacks_reports(r))]
    if meant is not None:
        may = [id_ for id_ in may if id_ in meant]
    again = {id_ for word in named for id_ in _named(word, runs, may, jobs)} if named else set(may)
    tasks = {(r.job, r.task) for r in runs if r.id in again}
    going = {(r.job, r.task): r.id for r in runs if (r.job, r.task) in tasks and r.state in IN_FLIGHT}
    held = [r for r in runs if r.id in again and (r.job, r.task) in going]
    told = []
    if held:
        of = going[held[0].job, held[0].task]
        why = f"{_some([r.id for r in held])}: shares a task with {of}, which is not over"
        if named:
            raise UsageError(f"{why}, and cannot be run again before that", hint="`nsw resume` waits for it")
        told.append(f"not yet again: {why}")
        again -= {r.id for r in held}
    beside = [r for r in runs if r.id not in again and (r.job, r.task) in tasks - going.keys() and _is_beside(r)]
    if beside:
        one = next(r.id for r in runs if r.id in again and (r.job, r.task) == (beside[0].job, beside[0].task))
        told.append(f"done too: {_some([r.id for r in beside])}, in one task with {one} (limits.runs_per_job)")
        again |= {r.id for r in beside if r.state in AGAIN}
    return Chosen([r.id for r in runs if r.id in again], told)


def _is_beside(run: RunRow) -> bool:
    return run.state in {State.PLANNED, *AGAIN}


def _some(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _named(word: str, known: Sequence[RunRow], again: Collection[str], jobs: Mapping[str, str]) -> Collection[str]:
    """Of what a word names the runs to do again; of a part of an id the only run that has it."""
    several = runs_named(word, known, jobs)
    if several and several[0].id != word:
        if ids := [r.id for r in several if r.id in again]:
            return ids
        if len(several) > 1:
            names = _some([r.id for r in several])
            raise UsageError(
                f"{word}: none of these runs failed, so none is run again: {names}",
                hint="`nsw run RECIPE --into CAMPAIGN` does those again whose program or parameters changed",
            )
        word = several[0].id
    some = [r for r in known if r.id in again and word in r.id]
    if several or not some:
        some = list(known)
    found = one_of(some, word)
    if found.id not in again:
        more = f"`nsw run RECIPE --into CAMPAIGN --case {found.case_id} --set repeats=N`"
        hint = (
            f"{more}, with more repeats than it has, adds a run of the same case" if found.state is State.DONE else None
        )
        raise UsageError(f"run {found.id} did not fail, and is not run again", hint=hint)
    return [found.id]
