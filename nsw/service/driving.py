"""A campaign in the hands of this process: everything that drives it, put together, under its lock."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign.collect import run_of
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_meta_keys import PREPARED, SCRATCH
from nsw.campaign.ledger_rows import ENDED, State
from nsw.campaign.log import Log
from nsw.campaign.stages import SKIPPED
from nsw.service.events import BuildChanged, ReportsRead, RunChanged
from nsw.service.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.campaign.build_step import Builds
    from nsw.campaign.drive import Driver
    from nsw.campaign.ledger_rows import BuildRow, RunRow
    from nsw.service.events import Event
    from nsw.transport.model import Transport


@dataclass(frozen=True, slots=True)
class Held:
    """A campaign that this process drives.

    `cleaned`: no run is left, and nothing of it is on its site; after `nsw clean` nothing is put back there.
    """

    folder: folders.CampaignFolder
    ledger: Ledger
    driver: Driver
    builds: Builds
    log: Log
    transport: Transport
    scratch: str
    share: str
    cleaned: bool


@contextmanager
def held(
    folder: folders.CampaignFolder,
    emit: Callable[[Event], object],
    *,
    only: Sequence[str] | None = None,
) -> Iterator[Held]:
    """Take the campaign's lock and put together what drives it.

    Args:
        folder: The campaign.
        emit: Called with each event, at once.
        only: The runs to do, where not all that wait.

    Raises:
        CampaignLockedError: Another process drives the campaign.
        UnreachableError: A command of a killed nsw still runs there.
    """
    from nsw.campaign.build_step import Builds
    from nsw.campaign.canary import Canary
    from nsw.campaign.drive import Driver
    from nsw.campaign.driven import Driven
    from nsw.campaign.folder_permissions import group_may_read
    from nsw.campaign.moved_campaign import follow
    from nsw.campaign.orphan_commands import wait_for_commands
    from nsw.campaign.recipe_lock import basis_of
    from nsw.campaign.stages import Stages
    from nsw.campaign.takeover_archive import handover_of, mark_of
    from nsw.schedulers.create import create, with_login_node
    from nsw.service.downloading import watch_downloads
    from nsw.service.kernel_choice import Choosing, chooser
    from nsw.service.read_collected import fault_of, read_reports
    from nsw.transport.model import connect

    def say(text: str) -> None:
        emit(Message(text))

    def progress(done: int, total: int) -> None:
        emit(ReportsRead(done, total))

    def warn(text: str) -> None:
        emit(Message(text, "warning"))

    with ExitStack() as stack:
        stack.enter_context(folders.locked(folder))
        ledger = stack.enter_context(Ledger(folder.ledger))
        site: dict[str, Any] = ledger.site()
        share = "group" if site.get("share") == "group" else "nobody"
        stack.enter_context(group_may_read(share))
        follow(folder, ledger)
        scratch = ledger.meta(SCRATCH)
        cleaned = _is_over_and_cleaned(ledger)
        way = connect(site) if cleaned else connect(site, scratch, mark_of(folder, ledger))  # the mark is a file there
        transport = stack.enter_context(closing(way))
        watch_downloads(transport, emit)
        wait_for_commands(transport, say)
        log = Log(folder.log)
        changed = _Changes(ledger, log, emit)
        handover = handover_of(folder, ledger, transport, scratch)
        scheduler = create(site, transport, scratch, folder.id, say, handover.fence if handover else None)
        if ledger.has_login_tasks():
            scheduler = with_login_node(scheduler, ledger.place_of)
        if only is not None:
            ledger.choose(only)
        ahead = Canary(ledger, lambda run: fault_of(folder, ledger, run, progress))
        driven = Driven(folder, ledger, scheduler, transport, scratch, changed, handover, say)
        builds = Builds(driven)
        choosing = Choosing(lambda: basis_of(folder, ledger, transport, scratch), say, warn)
        stages = Stages(driven, lambda: read_reports(folder, ledger, progress), chooser(folder, ledger, choosing))
        driver = Driver(driven, ahead, stages)
        yield Held(folder, ledger, driver, builds, log, transport, scratch, share, cleaned)


class _Changes:
    """From ids of runs and builds to a line in the log and an event of each."""

    def __init__(self, ledger: Ledger, log: Log, emit: Callable[[Event], object]) -> None:
        self._ledger = ledger
        self._log = log
        self._emit = emit
        self._reduces = ledger.has_reductions()
        counts = ledger.counts()
        self._total = sum(counts.values())
        self._over = _ended(counts)

    def __call__(self, ids: list[str]) -> None:
        rows = self._ledger.runs_named(ids)
        made = [build for build in self._ledger.builds() if build.id in ids]
        both: list[RunRow | BuildRow] = [*made, *rows]
        self._log.say(*(f"{one.id} {one.state}" + (f": {one.reason}" if one.reason else "") for one in both))
        if self._reduces:
            self._say_reductions(ids)
        for build in made:
            self._emit(BuildChanged(build))
        if ended := sum(row.state in ENDED for row in rows):
            self._over = max(0, _ended(self._ledger.counts()) - ended)
        refused = Counter(row.reason for row in rows if _has_failed_unbegun(row))
        for row in rows:
            self._over += row.state in ENDED
            alike = refused[row.reason] if _has_failed_unbegun(row) else 1
            self._emit(RunChanged(row, self._over, self._total, alike))

    def _say_reductions(self, ids: list[str]) -> None:
        """A line of the log for each that changed, and a message of each that ended: the runs are over by then."""
        rows = self._ledger.reductions()
        over = sum(row.state in ENDED for row in rows)
        for row in (row for row in rows if row.id in ids):
            why = f": {row.reason}" if row.reason else ""
            self._log.say(f"{row.id} {row.state}{why}")
            if row.state is State.DONE:
                self._emit(Message(f"{over}/{len(rows)} reduced   {run_of(row.id)}"))
            elif row.state in ENDED and not (row.reason or "").startswith(SKIPPED):
                self._emit(Message(f"the report of {run_of(row.id)} was not reduced on the site{why}", "warning"))


def _is_over_and_cleaned(ledger: Ledger) -> bool:
    """Whether no run is left to be done, and the campaign's files are not on its site."""
    left = any(count for state, count in ledger.counts().items() if state not in ENDED)
    return not left and not ledger.meta(PREPARED) and not ledger.has_reductions_to_do()


def _has_failed_unbegun(run: RunRow) -> bool:
    """Whether it failed before it began, such as one whose job the scheduler refused."""
    return run.state is State.FAILED and run.started is None and run.reason is not None


def _ended(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in ENDED)
