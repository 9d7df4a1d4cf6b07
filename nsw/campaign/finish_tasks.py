"""How runs and builds end: what they left is brought, and how it went is written down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.campaign.collect import collect, collect_reduced, note_second_job, read_tail, run_of, started_again
from nsw.campaign.judge import Verdict, judge, read_status, read_statuses, reason_with
from nsw.campaign.ledger_meta_keys import COLLECT
from nsw.campaign.ledger_rows import Kind, Reading, State
from nsw.errors import UnreachableError
from nsw.schedulers.model import Answer, Phase
from nsw.transport.model import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.campaign.driven import Driven
    from nsw.campaign.judge import Status
    from nsw.campaign.ledger_rows import Flying, RunRow

_LAST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class End:
    """An attempt of which nothing more will come, and how it ended.

    `second`: the job that nsw submitted for it, where another one of the same name did it.
    """

    one: Flying
    verdict: Verdict
    status: Status | None
    attempt: int
    second: str | None = None


class Ending:
    """The files that runs leave on the site, and the ends that they tell of.

    Args:
        it: The campaign.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it
        self._seen: dict[str, Status | Unreadable | None] = {}
        self._useless: dict[str, str] = {}  # reductions whose files could not be unpacked

    def look(self, several: Iterable[Flying]) -> None:
        """Read the status of all of these in one round trip, for `status` until the next look.

        Raises:
            UnreachableError: The site could not be asked.
        """
        homes = [self._it.home(one.id, one.attempt) for one in several]
        self._seen = {}  # what is old must not be believed when the next line fails
        self._seen = read_statuses(self._it.transport, homes) if homes else {}

    def status(self, run: str, attempt: int) -> Status | None:
        """What an attempt wrote of itself; None before it began.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._it.home(run, attempt)
        if home not in self._seen:
            return read_status(self._it.transport, home)
        status = self._seen[home]
        if isinstance(status, Unreadable):
            raise UnreachableError(f"{home}/status cannot be read: {status.why}")
        return status

    def left_a_mark(self, one: Flying) -> bool:
        """Whether it began, or an earlier attempt of it was done."""
        status = self.status(one.id, one.attempt)
        return (status is not None and status.state != "withdrawn") or self._earlier(one) is not None

    def is_done(self, one: Flying | RunRow) -> bool:
        """Whether this attempt of it, or an earlier one, says that it was done."""
        status = self.status(one.id, one.attempt)
        return (status is not None and status.state == "done") or self._earlier(one) is not None

    def has_folder(self, one: Flying) -> bool:
        """Whether the folder of its attempt, which its job makes first, is still there with something in it.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._it.home(one.id, one.attempt)
        return bool(self._it.transport.list_many({home: ["*"]})[home])

    def goes_on(self, one: Flying, verdict: Verdict, status: Status | None) -> None:
        """It is in another state than it was, or for another reason, and not over; or now it is known when it began."""
        one.state, one.reason, one.begun = verdict.state, verdict.reason, status is not None
        self._write([one.id], verdict, status)

    def wait(self, several: list[Flying], verdict: Verdict) -> None:
        """Several wait for the same reason."""
        for one in several:
            one.state, one.reason = verdict.state, verdict.reason
        self._write([one.id for one in several], verdict, None)

    # --- ends ---------------------------------------------------------------------------------------------

    def end_of(self, one: Flying, verdict: Verdict, status: Status | None) -> End:
        """How an attempt ended, an earlier one that was done after all included.

        Raises:
            UnreachableError: It could not be told.
        """
        if status is None and (earlier := self._earlier(one)):
            attempt, status = earlier
            return End(one, judge(Answer(Phase.ENDED, clean=True), status), status, attempt)
        return End(one, verdict, status, one.attempt)

    def bring(self, ends: Sequence[End]) -> None:
        """Bring what these left, in a few round trips for all of them.

        Raises:
            UnreachableError: The connection was lost; what is missing can be brought again.
            CommandError: A file cannot be brought.
        """
        it = self._it
        attempts = {end.one.id: end.attempt for end in ends if end.one.kind is Kind.RUN}
        if attempts:
            runs = [replace(run, attempt=attempts[run.id]) for run in it.ledger.runs_named(list(attempts))]
            collect(it.folder, it.transport, it.scratch, runs, everything=self._everything, say=it.say)
        reduced = {end.one.id: end.attempt for end in ends if _is_reduced(end)}
        if reduced:
            self._useless |= collect_reduced(it.folder, it.transport, it.scratch, reduced, say=it.say)

    def write(self, end: End) -> None:
        """Write down an end whose files are here."""
        one, verdict = end.one, end.verdict
        if (wrong := self._useless.pop(one.id, None)) is not None:
            verdict = Verdict(State.FAILED, wrong, ended=True)
        if one.kind is Kind.RUN:
            stderr = read_tail(self._it.folder.reports / one.id / "stderr", _LAST_BYTES)
            waits = verdict.state is State.DONE and one.id in self._reduced
            more: dict[str, object] = {"reading": Reading.NONE if waits else Reading.COLLECTED}
            if end.second is not None:
                note_second_job(self._it.folder, one.id, end.second)
        else:  # what it left stays on the site
            stderr = self._it.transport.tail(f"{self._it.home(one.id, end.attempt)}/stderr", _LAST_BYTES)
            more = {}
        verdict = self._with_last_words(verdict, stderr)
        if (twice := started_again(self._it.folder, one.id)) is not None:
            verdict = replace(verdict, reason="; ".join(filter(None, (verdict.reason, twice))))
        self._write([one.id], verdict, end.status, attempt=end.attempt, **more)
        if one.kind is Kind.REDUCTION:  # also when it failed: then reading says so
            self._it.ledger.update_tasks([run_of(one.id)], reading=Reading.COLLECTED)
        one.attempt, one.state, one.reason = end.attempt, verdict.state, verdict.reason

    def _earlier(self, one: Flying | RunRow) -> tuple[int, Status] | None:
        """An earlier attempt that was done after it was given up: its job had been out of sight, and came back."""
        for attempt in range(one.attempt - 1, 0, -1):
            status = self.status(one.id, attempt)
            if status is not None and status.state == "done":
                return attempt, status
        return None

    def _with_last_words(self, verdict: Verdict, stderr: bytes | None) -> Verdict:
        """What the program said last belongs to why it failed."""
        if verdict.state is not State.FAILED:
            return verdict
        return replace(verdict, reason=reason_with(verdict.reason, stderr, login_shell=self._login_shell))

    @cached_property
    def _everything(self) -> bool:
        """Whether the recipe wants all that runs left, and not their reports alone."""
        return self._it.ledger.meta(COLLECT) == "everything"

    @cached_property
    def _reduced(self) -> frozenset[str]:
        """The runs whose reports are reduced on the site: they are read after that."""
        return frozenset(run_of(row.id) for row in self._it.ledger.reductions())

    @cached_property
    def _login_shell(self) -> bool:
        return self._it.ledger.has_login_shell()

    def _write(self, ids: list[str], verdict: Verdict, status: Status | None, **more: object) -> None:
        self._it.ledger.update_tasks(ids, state=verdict.state, reason=verdict.reason, **_times(status), **more)


def _is_reduced(end: End) -> bool:
    return end.one.kind is Kind.REDUCTION and end.verdict.state is State.DONE


def _times(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }
