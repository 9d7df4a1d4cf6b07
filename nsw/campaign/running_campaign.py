"""A campaign being driven, as an iterator of events."""

from __future__ import annotations

import time
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Self

from nsw.campaign.events import Downloading, Finished, ReportsRead, RunsEnded, Started
from nsw.campaign.ledger_meta_keys import PREPARED
from nsw.campaign.message import Message
from nsw.errors import DISK_FULL, NswError, disk_full, resumable
from nsw.schedulers.campaign_turns import Owner, Turn, is_inside_a_run
from nsw.site.scheduler_and_transport_names import LOCAL
from nsw.wording import headline, plural

_TURN_S = 0.2  # between two looks whether another campaign is over

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nsw.campaign.driving import Held
    from nsw.campaign.events import Event
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger_rows import State


class Running:
    """Drives a campaign while it is iterated, in the thread that iterates; use one thread from the first event on.

    Each `next` carries the campaign on until something happened. Nothing runs in the background: between two events
    nsw neither submits nor collects, while jobs that were submitted go on. Ended early (`close`, Ctrl-C, an error in
    the loop's body), it leaves them alone, and the campaign can be resumed.

    Args:
        folder: The campaign.
        only: The runs to do, where not all that wait.
        now: Start although another campaign runs on this machine.
    """

    def __init__(self, folder: CampaignFolder, *, only: Sequence[str] | None = None, now: bool = False) -> None:
        self.folder = folder
        self.only = only
        self.now = now
        self._turn: Turn | None = None
        self.driving = False  # whether this process holds the campaign
        self._happened: deque[Event] = deque()
        self._listener: Callable[[Event], object] | None = None
        self._rounds = self._with_what_to_do()
        self._held: Held | None = None
        self._fault: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while not self._happened and self._fault is None:
            try:
                next(self._rounds)
            except (NswError, StopIteration, KeyboardInterrupt) as fault:  # after what happened before it
                self._fault = fault
        if self._happened:
            return self._happened.popleft()
        assert self._fault is not None
        raise self._fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop driving; jobs that were submitted go on."""
        self._rounds.close()

    def drive(self, listener: Callable[[Event], object]) -> None:
        """Drive to the end, in this thread; `listener` is called with each event at once.

        Iteration gives the events of a round together, once the round is over.

        Raises:
            NswError: What ended the campaign early.
        """
        self._listener = listener
        try:
            while self._happened:
                listener(self._happened.popleft())
            for _ in self._rounds:
                pass
        finally:
            self._listener = None
            self.close()

    def emit(self, event: Event) -> None:
        """Hand an event to the listener, or keep it for who iterates."""
        if self._listener is None:
            if isinstance(event, Downloading) and self._happened and isinstance(self._happened[-1], Downloading):
                self._happened.pop()  # who iterates hears of a round once it is over: its end is news enough
            self._happened.append(event)
        else:
            self._listener(event)

    def counts(self) -> dict[str, int]:
        """How many runs are in each state now; only while it drives."""
        return self._held.ledger.counts() if self._held else {}

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """State, reason, first run and number of the runs that wait; only while it drives."""
        return self._held.ledger.why_waiting() if self._held else []

    def _with_what_to_do(self) -> Generator[None]:
        """The rounds; an error that ends them names the command that goes on."""
        from nsw.campaign.runs_by_name import as_named

        try:
            yield from self._carry_out()
        except NswError as fault:
            resumable(fault, as_named(self.folder))
            raise
        except OSError as outside:
            if outside.errno not in DISK_FULL:
                raise
            told = disk_full(outside.filename or self.folder.path, outside.strerror)
            resumable(told, as_named(self.folder))
            raise told from None

    def _carry_out(self) -> Generator[None]:
        from nsw import __version__
        from nsw.campaign import private_folder as private
        from nsw.campaign.answers import is_good
        from nsw.campaign.driving import held
        from nsw.campaign.notifying import notify
        from nsw.campaign.read_collected import reading
        from nsw.campaign.recipe_lock import finish
        from nsw.campaign.takeover_archive import noting_owner

        folder = self.folder
        with held(folder, self.emit, only=self.only) as it, noting_owner(it.ledger):
            self._held, self.driving = it, True
            counts = it.ledger.counts()
            it.log.say(f"nsw {__version__} continues with {headline(counts)}")
            try:
                self.emit(Started(folder.id, counts))
                yield
                if not it.cleaned:
                    yield from self._run_what_is_left(it)
                for told in it.builds.conclude():
                    self.emit(Message(told, "error"))
                self.emit(RunsEnded())
                yield
                with closing(reading(folder, it.ledger)) as read:
                    for done, total in read:
                        self.emit(ReportsRead(done, total))
                        yield
                for told in finish(folder, it.ledger, it.transport, it.scratch):
                    self.emit(Message(told, "warning"))
                private.forget_secrets(folder, it.ledger, it.transport, it.scratch)
                good = is_good(it.ledger, self.only)
                if fault := notify(folder, it.ledger, good=good):
                    self.emit(Message(fault, "warning"))
                self.emit(Finished(it.ledger.counts(), good))
            except (KeyboardInterrupt, GeneratorExit):
                it.log.say("interrupted")
                raise
            finally:
                self._held, self.driving = None, False
                if self._turn is not None:
                    self._turn.release()
                    self._turn = None

    def _run_what_is_left(self, it: Held) -> Generator[None]:
        """Put what the runs need on the site, and submit, poll and judge until none is left."""
        from nsw.campaign import private_folder as private
        from nsw.campaign.progress import Looking

        is_new = private.prepare(self.folder, it.transport, it.scratch, it.share)
        if is_new and it.ledger.meta(PREPARED):
            it.ledger.set_meta(PREPARED, False)
            self.emit(Message(f"{it.scratch} was removed: nsw makes it again, with scripts and program", "warning"))
        it.builds.prepare()
        if adopted := it.driver.recover():
            self.emit(Message(f"{plural(adopted, 'submission')} in doubt found again"))
        yield from self._wait_for_turn(it)
        looking = Looking(it)
        with closing(it.driver.rounds()) as rounds:
            for _ in rounds:
                if (progress := looking.look()) is not None:
                    self.emit(progress)
                yield

    def _wait_for_turn(self, it: Held) -> Generator[None]:
        """Wait until no other campaign of this user runs on this machine, unless nothing of this one is to begin."""
        from nsw.campaign.runs_by_name import as_option

        site = it.ledger.site()
        here = site.get("scheduler") == LOCAL and (site.get("transport") or {}).get("kind", LOCAL) == LOCAL
        if self.now or not here or site.get("replay") or is_inside_a_run():
            return
        try:
            self._turn = Turn(Owner(it.folder.id, str(it.folder.path.absolute()), f"{it.scratch}/jobs"))
        except OSError as fault:
            self.emit(Message(f"nsw cannot see whether other campaigns run on this machine: {fault}", "warning"))
            return
        said = None
        while it.ledger.has_planned() and (why := self._turn.take()) is not None:
            if why != said:
                again = f"nsw resume{as_option(it.folder)}"
                hint = f"Ctrl-C ends the wait (`{again}` continues), `{again} --now` starts without waiting"
                self.emit(Message(f"waits for its turn: {why}; {hint}"))
                it.log.say(f"waits for its turn: {why}")
                said = why
            yield
            it.driver.cancel_if_asked()
            time.sleep(_TURN_S)
        if said:
            self.emit(Message("its turn has come"))
