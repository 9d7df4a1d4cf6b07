"""How runs and builds end: what they left is brought, and how it went is written down."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.campaign.collect import collect, read_tail
from nsw.campaign.last_words import reason_with
from nsw.campaign.rows import Reading, State
from nsw.campaign.witness import Verdict, judge, parse_status
from nsw.schedulers.model import Answer, Phase

if TYPE_CHECKING:
    from nsw.campaign.driven import Driven
    from nsw.campaign.rows import Flying, RunRow
    from nsw.campaign.witness import Status

_STATUS_BYTES = 65536
_LAST_BYTES = 4096


class Ending:
    """The files that runs leave on the site, and the ends that they tell of.

    Args:
        it: The campaign.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it

    def status(self, run: str, attempt: int) -> Status | None:
        """What an attempt wrote of itself; None before it began."""
        home = self._it.home(run, attempt)
        ended = self._it.transport.read(f"{home}/status", _STATUS_BYTES)
        return parse_status(ended or self._it.transport.read(f"{home}/claim", _STATUS_BYTES))

    def left_a_mark(self, one: Flying) -> bool:
        """Whether it began, or an earlier attempt of it was done."""
        return self.status(one.id, one.attempt) is not None or self._earlier(one) is not None

    def is_done(self, one: Flying | RunRow) -> bool:
        """Whether this attempt of it, or an earlier one, says that it was done."""
        status = self.status(one.id, one.attempt)
        return (status is not None and status.state == "done") or self._earlier(one) is not None

    def goes_on(self, one: Flying, verdict: Verdict, status: Status | None) -> None:
        """It is in another state than it was, or for another reason, and not over; or now it is known when it began."""
        one.state, one.reason, one.begun = verdict.state, verdict.reason, status is not None
        self._write([one.id], verdict, status, build=one.build)

    def wait(self, several: list[Flying], verdict: Verdict) -> None:
        """Several wait for the same reason."""
        for one in several:
            one.state, one.reason = verdict.state, verdict.reason
        for build in (False, True):
            self._write([one.id for one in several if one.build is build], verdict, None, build=build)

    def end(self, one: Flying, verdict: Verdict, status: Status | None) -> State:
        """Nothing more will come of this attempt: bring what it left, and write down how it ended."""
        if status is None and (earlier := self._earlier(one)):
            attempt, status = earlier
            verdict = judge(Answer(Phase.ENDED, clean=True), status)
            one.attempt = attempt
        if one.build:
            verdict = self._with_last_words(verdict, self._it.transport.tail(f"{self._home(one)}/stderr", _LAST_BYTES))
            self._write([one.id], verdict, status, build=True, attempt=one.attempt)
        else:
            (run,) = self._it.ledger.runs_named([one.id])
            self._bring(replace(run, attempt=one.attempt))
            verdict = self._with_last_words(
                verdict, read_tail(self._it.folder.reports / one.id / "stderr", _LAST_BYTES)
            )
            self._write([one.id], verdict, status, build=False, attempt=one.attempt, reading=Reading.COLLECTED)
        one.state, one.reason = verdict.state, verdict.reason
        return verdict.state

    def _bring(self, run: RunRow) -> None:
        collect(self._it.folder, self._it.transport, self._it.scratch, run)

    def _home(self, one: Flying) -> str:
        return self._it.home(one.id, one.attempt)

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
    def _login_shell(self) -> bool:
        return self._it.ledger.has_login_shell()

    def _write(self, ids: list[str], verdict: Verdict, status: Status | None, *, build: bool, **more: object) -> None:
        update = self._it.ledger.update_builds if build else self._it.ledger.update_runs
        update(ids, state=verdict.state, reason=verdict.reason, **_times(status), **more)


def _times(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }
