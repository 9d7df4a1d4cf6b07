"""`nsw resume` and `nsw retry`: go on where an earlier nsw was ended, or with runs that did not succeed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from nsw.campaign.changes import Change, replan
from nsw.campaign.running import Running
from nsw.campaign.selection import Selection, find_run, job_ids, selected
from nsw.campaign.selection import matching_rows as runs_named
from nsw.engine.driven import locked_ledger
from nsw.engine.events import Message
from nsw.engine.folder import run_of
from nsw.engine.handover import forget_done, lacks_secrets
from nsw.engine.ledger_rows import BAD, IN_FLIGHT, SITE, SITE_DATA, Reading, RunRow, State, lacks_figure, lacks_reports
from nsw.engine.loop import reset_failures
from nsw.engine.stages import refused_canary, release_canary, release_dependents, release_reductions, waive_canary
from nsw.errors import NswError, UsageError
from nsw.wording import first_names, headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from nsw.engine import folder as folders
    from nsw.engine.ledger import Ledger

__all__ = ["Change", "resume", "retry"]

_AGAIN: Final = (*BAD, State.CANCELLED)  # what a retry does again
_ALL_RUNS: Final = Selection()
_AS_BEFORE: Final = Change()
_NAMES_IN_MESSAGE: Final = 3  # names in a message
_OPTIONS: Final = ("queue", "partition", "account", "qos", "gres", "extra")  # of a site, for the head of job scripts


def resume(folder: folders.CampaignFolder, notify: Callable[[Message], object], download: str | None = None) -> Running:
    """The campaign, to be driven on; runs that ended well are not done again.

    Args:
        folder: The campaign.
        notify: Called with what a person should know.
        download: How much may be brought from the site from now on, such as 50G; None: as before.

    Raises:
        CampaignLockedError: Another process drives it.
    """
    with locked_ledger(folder, notify) as ledger:
        waive_canary(ledger)
        reset_failures(ledger)
        if download is not None:
            site = ledger.site()
            ledger.set_meta(SITE_DATA, site | {"limits": (site.get("limits") or {}) | {"download": download}})
        if any(ledger.counts().get(state) for state in (State.PLANNED, State.INTENT)):
            _warn_of_changes(ledger, notify)
    return Running(folder)


def retry(
    folder: folders.CampaignFolder,
    runs: Sequence[str],
    notify: Callable[[Message], object],
    *,
    failed: bool = False,
    choose_again: bool = False,
    selection: Selection = _ALL_RUNS,
    change: Change = _AS_BEFORE,
) -> Running | None:
    """The campaign, to be driven with runs planned again that did not succeed; None where there are none.

    Args:
        folder: The campaign.
        runs: Ids of runs, or parts of them: only these are done. None named: all that failed, were lost or cancelled.
        notify: Called with what a person should know of the choice.
        failed: Leave those alone that were cancelled.
        choose_again: Choose kernels anew for guided counters.
        selection: Only of these runs.
        change: Another time limit for them, or the program as it is now.

    Raises:
        UsageError: A run that is named is not there, did not fail, or cannot be done yet.
        CampaignLockedError: Another process drives the campaign.
    """
    is_partial = bool(runs) or bool(selection)
    with locked_ledger(folder, notify) as ledger:
        every, canary = ledger.runs(), {*refused_canary(ledger)}
        states = BAD if failed else _AGAIN
        unreduced = _runs_to_reduce_again(ledger, every, states) - canary
        selected_runs = selected(ledger, every, selection)
        first = canary | unreduced
        repeatable = [run for run in selected_runs if _may_retry(run, states, by_name=bool(runs)) or run.id in first]
        chosen = _add_task_mates(
            every, _repeatable_named(every, repeatable, runs, job_ids(ledger, every)), notify, by_name=bool(runs)
        )
        if not chosen:
            # list runs with missing or unreadable reports: only a person knows whether another run would help
            if lacking := [run.id for run in selected_runs if lacks_reports(run)]:
                subject = f"{plural(len(lacking), 'run')} with missing or unreadable reports"
                notify(
                    Message(f"{subject}: `nsw problems` has the reasons, `nsw retry {lacking[0]}` measures one again")
                )
            return None
        again = [run for run in chosen if run.id not in unreduced]
        ids, only_reduced = [run.id for run in again], [run.id for run in chosen if run.id in unreduced]
        if again:
            _prepare_retry(folder, ledger, again, change, notify)
        forget_done(folder, ledger, ids)
        with ledger.transaction():
            ledger.release(ids)
            release_reductions(ledger, only_reduced)
            ledger.update_tasks(only_reduced, reading=Reading.NONE)
            todo = [*release_dependents(ledger, ids, choose_again=choose_again), *only_reduced]
            release_canary(ledger, ids, by_name=is_partial)
            reset_failures(ledger)
    return Running(folder, only=todo if is_partial else None)


def _may_retry(run: RunRow, states: Collection[State], *, by_name: bool) -> bool:
    """Whether a retry repeats the run; one with missing or unreadable reports only if it is named.

    Where only a reader was missing, a retry mends nothing.
    """
    return run.state in states or lacks_figure(run) or (by_name and lacks_reports(run))


def _repeatable_named(
    every: Sequence[RunRow], repeatable: Sequence[RunRow], words: Sequence[str], jobs: Mapping[str, str]
) -> list[RunRow]:
    """Of the runs that may be done again those that the words name; without words all."""
    if not words:
        return list(repeatable)
    ids = {run.id for word in words for run in _repeatable_of_word(word, every, repeatable, jobs)}
    return [run for run in repeatable if run.id in ids]


def _repeatable_of_word(
    word: str, every: Sequence[RunRow], repeatable: Sequence[RunRow], jobs: Mapping[str, str]
) -> Sequence[RunRow]:
    """Of what a word names the runs to do again; of a part of an id the only run that has it."""
    several, ids = runs_named(word, every, jobs), {run.id for run in repeatable}
    if several and several[0].id != word:
        if both := [run for run in several if run.id in ids]:
            return both
        if len(several) > 1:
            names = first_names([run.id for run in several], _NAMES_IN_MESSAGE)
            raise UsageError(
                f"{word}: none of these runs failed, so none is run again: {names}",
                hint="`nsw run RECIPE --into CAMPAIGN` does those again whose program or parameters changed",
            )
        word = several[0].id
    matches = [run for run in repeatable if word in run.id]
    run = find_run(every if several or not matches else matches, word)
    if run.id not in ids:
        command = f"`nsw run RECIPE --into CAMPAIGN --case {run.case_id} --set repeats=N`"
        hint = f"{command}, with more repeats than it has, adds a run of the same case"
        raise UsageError(
            f"run {run.id} did not fail, and is not run again", hint=hint if run.state is State.DONE else None
        )
    return [run]


def _add_task_mates(
    runs: Sequence[RunRow], chosen: Sequence[RunRow], notify: Callable[[Message], object], *, by_name: bool
) -> list[RunRow]:
    """The runs to repeat, in the plan's order: runs that the site packs into one task share a script.

    Of those that did not succeed all are done again, or none while one is not over.

    Raises:
        UsageError: One that is named cannot be done yet.
    """
    again, tasks = {run.id for run in chosen}, {_task_key(run): run.id for run in reversed(chosen)}
    unfinished = {_task_key(run): run.id for run in runs if _task_key(run) in tasks and run.state in IN_FLIGHT}
    if blocked := [run for run in chosen if _task_key(run) in unfinished]:
        names = first_names([run.id for run in blocked], _NAMES_IN_MESSAGE)
        reason = f"{names}: shares a task with {unfinished[_task_key(blocked[0])]}, which is not over"
        if by_name:
            raise UsageError(f"{reason}, and cannot be run again before that", hint="`nsw resume` waits for it")
        notify(Message(f"not yet again: {reason}"))
        again -= {run.id for run in blocked}
    free_tasks = tasks.keys() - unfinished.keys()
    mates = [run for run in runs if run.id not in again and _task_key(run) in free_tasks]
    if task_mates := [run for run in mates if run.state in {State.PLANNED, *_AGAIN}]:
        names = first_names([run.id for run in task_mates], _NAMES_IN_MESSAGE)
        with_one = tasks[_task_key(task_mates[0])]
        notify(Message(f"done too: {names}, in one task with {with_one}"))
        again |= {run.id for run in task_mates if run.state in _AGAIN}
    return [run for run in runs if run.id in again]


def _task_key(run: RunRow) -> tuple[str, int]:
    return run.job, run.task


def _prepare_retry(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    again: Sequence[RunRow],
    change: Change,
    notify: Callable[[Message], object],
) -> None:
    """Report which runs are repeated, and plan them anew where something has changed."""
    lacking, unread = sum(map(lacks_figure, again)), sum(map(lacks_reports, again))
    notify(Message(f"again: {headline(Counter(run.state for run in again), lacking, unread)}"))
    if not change.update_app:
        _warn_of_changes(ledger, notify)
    corrected = _changed_site_options(ledger, change.sites)
    # planning again also takes the secrets from nsw's environment, or names the variable that is not set
    if change.is_requested or corrected or lacks_secrets(folder, sorted({run.job for run in again})):
        replan(folder, ledger, [run.id for run in again], change, notify)
        ledger.set_meta(SITE_DATA, ledger.site() | corrected)
        if corrected:
            words = ", ".join(f"{key}: {value}" for key, value in corrected.items())
            notify(Message(f"the site's settings for jobs have changed since, and these runs follow them ({words})"))


def _changed_site_options(ledger: Ledger, sites: Sequence[Path] | None) -> dict[str, object]:
    """The site's present options of the batch system that differ from those at the campaign's start."""
    from nsw.site.load import load_site

    try:
        now = load_site(ledger.meta(SITE), list(sites) if sites else None).site.model_dump(mode="json", by_alias=True)
    except NswError:  # it is not described here any more
        return {}
    before = ledger.site()
    return {key: now[key] for key in _OPTIONS if now[key] != before.get(key, [] if key == "extra" else None)}


def _runs_to_reduce_again(ledger: Ledger, runs: Sequence[RunRow], states: Sequence[State]) -> set[str]:
    """The runs that are done and whose reduction failed: only the reduction is repeated."""
    bad = {run_of(row.id) for row in ledger.reductions(states)}
    return {run.id for run in runs if run.id in bad and run.state is State.DONE}


def _warn_of_changes(ledger: Ledger, notify: Callable[[Message], object]) -> None:
    """Report that the program or the recipe has changed: the campaign goes on with what it began with."""
    from nsw.campaign.versions import changed_program_warning

    if message := changed_program_warning(ledger):
        notify(Message(message, "warning"))
