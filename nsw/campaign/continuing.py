"""Go on with a campaign: where an earlier nsw was ended, or with runs that did not succeed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.engine import go_on
from nsw.campaign.events import Message
from nsw.campaign.folder import run_of
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import Ledger, Reading, State
from nsw.campaign.ledger_meta_keys import SITE, SITE_DATA
from nsw.campaign.ledger_rows import lacks_figure, lacks_reports
from nsw.campaign.private_folder import lacks_secrets
from nsw.campaign.restart_done_runs import forget_done
from nsw.campaign.retrying import AGAIN, choose
from nsw.campaign.running import Running
from nsw.campaign.select_runs import Selection, selected
from nsw.errors import NswError, UsageError
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from nsw.campaign.ledger import RunRow

ALL = Selection()
_OPTIONS = ("queue", "partition", "account", "qos", "gres", "extra")  # of a site, for the head of job scripts


@dataclass(frozen=True, slots=True)
class Change:
    """What is other when runs are retried.

    Attributes:
        time_s: The time limit of each run, in seconds; None: as it was.
        update_app: Whether the program is copied again from where it came.
        sites: Sites files to search first for the campaign's site.
    """

    time_s: int | None = None
    update_app: bool = False
    sites: Sequence[Path] | None = None

    @property
    def asked(self) -> bool:
        """Whether a person asked for another limit or program."""
        return self.time_s is not None or self.update_app


AS_BEFORE = Change()


def seconds(option: str, time: str | None) -> int | None:
    """The seconds of a duration such as 30m, which `option` gave.

    Raises:
        UsageError: It is none.
    """
    from nsw.recipe.faults import Fault
    from nsw.recipe.units import parse_duration

    if time is None:
        return None
    try:
        return parse_duration(time)
    except Fault as fault:
        raise UsageError(f"{option}: {fault.message}", hint=fault.hint) from None


def resume(folder: folders.CampaignFolder, notify: Callable[[Message], object], download: str | None = None) -> Running:
    """The campaign, to be driven on; runs that ended well are not done again.

    Args:
        folder: The campaign.
        notify: Called with what a person should know.
        download: How much may be brought from the site from now on, such as 50G; None: as before.

    Raises:
        CampaignLockedError: Another process drives it.
    """
    from nsw.campaign.dependencies import Canary

    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        Canary(ledger).waive()
        go_on(ledger)
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
    selection: Selection = ALL,
    change: Change = AS_BEFORE,
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
    from nsw.campaign.dependencies import Canary, release_dependents, release_reductions

    some = bool(runs) or bool(selection)
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        canary = Canary(ledger)
        states = (State.FAILED, State.LOST) if failed else AGAIN
        every = ledger.runs()
        meant = {run.id for run in selected(ledger, every, selection)} if selection else None
        unreduced = _unreduced(ledger, every, states) - {*canary.again()}
        chosen = choose(every, runs, states, {*canary.again(), *unreduced}, job_ids(ledger, every), meant)
        for told in chosen.told:
            notify(Message(told))
        if not chosen.runs:
            _offer_unread(every, meant, notify)
            return None
        again = [run for run in chosen.runs if run not in unreduced]
        only_reduced = [run for run in chosen.runs if run in unreduced]
        if again:
            _prepare(folder, ledger, [run for run in every if run.id in again], change, notify)
        forget_done(folder, ledger, again)
        with ledger.transaction():
            ledger.release(again)
            release_reductions(ledger, only_reduced)
            ledger.update_tasks(only_reduced, reading=Reading.NONE)
            todo = [*release_dependents(ledger, again, choose_again=choose_again), *only_reduced]
            canary.tried_again(again, named=bool(some))
            go_on(ledger)
    return Running(folder, only=todo if some else None)


def _prepare(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    again: Sequence[RunRow],
    change: Change,
    notify: Callable[[Message], object],
) -> None:
    """Say which runs are done again, and plan them anew where something is other."""
    lacking, unread = sum(map(lacks_figure, again)), sum(map(lacks_reports, again))
    notify(Message(f"again: {headline(Counter(run.state for run in again), lacking, unread)}"))
    if not change.update_app:
        _warn_of_changes(ledger, notify)
    corrected = _corrected(ledger, change.sites)
    # planning again also takes the secrets from nsw's environment, or names the variable that is not set
    if change.asked or corrected or lacks_secrets(folder, sorted({run.job for run in again})):
        from nsw.campaign.extending import replan

        ids = [run.id for run in again]
        replan(folder, ledger, ids, notify, time_s=change.time_s, update_app=change.update_app, sites=change.sites)
        ledger.set_meta(SITE_DATA, ledger.site() | corrected)
        if corrected:
            words = ", ".join(f"{key}: {value}" for key, value in corrected.items())
            notify(Message(f"the site asks for jobs otherwise by now, and so do these runs ({words})"))


def _corrected(ledger: Ledger, sites: Sequence[Path] | None) -> dict[str, object]:
    """What the campaign's site by now says of the batch system's options, where that is other than at its start."""
    from nsw.site.load import load_site

    try:
        now = load_site(ledger.meta(SITE), list(sites) if sites else None).site.model_dump(mode="json", by_alias=True)
    except NswError:  # it is not described here any more
        return {}
    before = ledger.site()
    return {key: now[key] for key in _OPTIONS if now[key] != before.get(key, [] if key == "extra" else None)}


def _offer_unread(runs: Sequence[RunRow], meant: Collection[str] | None, notify: Callable[[Message], object]) -> None:
    """Name the runs whose reports are missing or unreadable: only a person knows whether another run would help."""
    lacking = [run.id for run in runs if lacks_reports(run) and (meant is None or run.id in meant)]
    if lacking:
        of = f"{plural(len(lacking), 'run')} with missing or unreadable reports"
        notify(Message(f"{of}: `nsw problems` has the reasons, `nsw retry {lacking[0]}` measures one again"))


def _unreduced(ledger: Ledger, runs: Sequence[RunRow], states: Sequence[State]) -> set[str]:
    """The runs that are done and whose reports could not be reduced: only that is done again."""
    bad = {run_of(row.id) for row in ledger.reductions(states)}
    return {run.id for run in runs if run.id in bad and run.state is State.DONE}


def _warn_of_changes(ledger: Ledger, notify: Callable[[Message], object]) -> None:
    """Report that the program or the recipe has changed: the campaign goes on with what it began with."""
    from nsw.campaign.origins import warning

    if told := warning(ledger):
        notify(Message(told, "warning"))
