"""`nsw cancel` and `nsw throttle`: end what is under way, or change how many tasks run at a time."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.campaign.selection import Selection, selected
from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder, is_driven
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import AT_A_TIME, ENDED, IN_FLIGHT, State
from nsw.errors import CampaignLockedError, UnreachableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.engine.events import Event

__all__ = ["Standing", "cancel", "cancellable_runs", "standing_of", "throttle"]

_PATIENCE_S: Final = 60.0
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Standing:
    """How a campaign stands.

    Attributes:
        counts: How many runs are in each state.
        is_over: No run waits or runs, and no report of a run that is done is still to be reduced on the site.
        not_reduced: How many runs are done whose reports' reduction was cancelled.
    """

    counts: dict[str, int]
    is_over: bool
    not_reduced: int

    @property
    def left(self) -> int:
        """How many runs are not over."""
        return sum(count for state, count in self.counts.items() if state not in ENDED)

    @property
    def retryable_runs(self) -> int:
        """How many runs a retry would do."""
        return sum(self.counts.values()) - self.left - self.counts.get(State.DONE, 0)


def standing_of(folder: CampaignFolder) -> Standing:
    """How a campaign stands, as its ledger knows it."""
    with ledger_to_read(folder) as ledger:
        counts = ledger.counts()
        going = any(state not in ENDED for state in counts) or ledger.has_reductions_to_do()
        is_over = not going and not ledger.reductions(tuple(IN_FLIGHT))
        done = {run.id for run in ledger.runs(states=(State.DONE,))}
        not_reduced = len(ledger.reductions((State.CANCELLED,), run_ids=done))
    return Standing(counts, is_over, not_reduced)


def cancellable_runs(folder: CampaignFolder, selection: Selection) -> list[str]:
    """The runs that are meant and not over, and the reductions of all that did not fail: all of a task or none.

    A run may be done before it is cancelled; then its reduction is what was meant.

    Raises:
        UsageError: No run is meant, or one shares its task with others that are not.
    """
    with ledger_to_read(folder) as ledger:
        every = ledger.runs()
        selected_runs = selected(ledger, every, selection)
        chosen = [run for run in selected_runs if run.state not in ENDED]
        reduced = {run.id for run in selected_runs if run.state is State.DONE or run.state not in ENDED}
        reductions = [row.id for row in ledger.reductions((State.PLANNED, *IN_FLIGHT), run_ids=reduced)]
    ids, tasks = {run.id for run in chosen}, {(run.job, run.task): run.id for run in chosen}
    for run in every:
        if run.id not in ids and run.state in IN_FLIGHT and (run.job, run.task) in tasks:
            task_mate = tasks[run.job, run.task]
            raise UsageError(
                f"{run.id} shares a task with {task_mate}; both would be cancelled",
                hint="name both, or exclude both",
            )
    return [*(run.id for run in chosen), *reductions]


def cancel(
    folder: CampaignFolder,
    listener: Callable[[Event], object] = lambda _event: None,
    on_request: Callable[[], object] = lambda: None,
    runs: Sequence[str] | None = None,
) -> None:
    """End what is queued or running, here or through the nsw that drives the campaign.

    Args:
        folder: The campaign.
        listener: Called with each event.
        on_request: Called when another nsw was asked to cancel the campaign that it drives; a minute is waited for it.
            If that nsw ends before it did so, this one does it.
        runs: Only these; None: all.

    Raises:
        FencedError: Another nsw took the campaign over.
        CommandError: The scheduler did not cancel the jobs.
        UnreachableError: The site gave no answer, or the nsw that drives the campaign has not cancelled them yet; who
            drives it next does.
    """
    from nsw.engine.loop import is_cancel_requested, request_cancel

    def is_pending() -> bool:
        return is_cancel_requested(folder) and is_driven(folder)

    try:
        _cancel_here(folder, listener, runs)
    except UnreachableError as fault:
        request_cancel(folder, runs)
        fault.hint = "nsw remembers it: `nsw resume` cancels once the site answers, and so does `nsw cancel`"
        raise
    except CampaignLockedError:
        request_cancel(folder, runs)
        on_request()
        deadline = time.monotonic() + _PATIENCE_S
        while is_pending() and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        if is_pending():
            raise UnreachableError(
                f"the nsw that drives {folder.id} has cancelled nothing within {_PATIENCE_S:g} s; it still tries to",
                hint="`nsw status` shows what it waits for",
            ) from None
        if is_cancel_requested(folder):
            _cancel_here(folder, listener, runs)
    if standing_of(folder).is_over:
        with Ledger(folder.ledger) as ledger:
            if ledger.meta(AT_A_TIME) == 0:  # what `nsw throttle 0` held is cancelled; a retry would wait for ever
                ledger.set_meta(AT_A_TIME, None)


def _cancel_here(folder: CampaignFolder, listener: Callable[[Event], object], runs: Sequence[str] | None) -> None:
    from nsw.campaign.running import lock_campaign

    with lock_campaign(folder, listener) as campaign:
        campaign.driver.recover()
        campaign.driver.cancel(runs)


def _throttle_here(folder: CampaignFolder, listener: Callable[[Event], object]) -> None:
    from nsw.campaign.running import lock_campaign

    try:
        with lock_campaign(folder, listener) as it:
            it.driver.recover()
            it.driver.throttle()
    except UnreachableError as fault:
        fault.hint = "nsw remembers the number: `nsw resume` passes it on once the site answers, as does this command"
        raise


def throttle(
    folder: CampaignFolder, running: int, listener: Callable[[Event], object] = lambda _event: None
) -> str | None:
    """Set how many tasks may run at a time; the nsw that drives the campaign reads it from the ledger.

    If none drives it, this call passes the number on to the scheduler.

    Args:
        folder: The campaign.
        running: The most tasks that may run at a time; 0: start none.
        listener: Called with each event of the driver.

    Returns:
        The scheduler, where it may start what it has although 0 tasks are wanted.

    Raises:
        CampaignError: The campaign was made elsewhere.
        CommandError: The scheduler refused.
        UnreachableError: It gave no answer.
    """
    from nsw.schedulers.create import adapter_of

    folder.require_trust()
    with Ledger(folder.ledger) as ledger:
        counts, site = ledger.counts(), ledger.site()
        if sum(counts.values()) > counts.get(State.DONE, 0):
            ledger.set_meta(AT_A_TIME, running)
    adapter = adapter_of(site.get("scheduler", "local"))
    if adapter is not None and any(counts.get(state) for state in IN_FLIGHT):
        with suppress(CampaignLockedError):  # who drives it does it
            _throttle_here(folder, listener)
    return None if running or adapter is None or adapter.capabilities.hold else adapter.name
