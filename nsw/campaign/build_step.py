"""The recipe's build step: here, or as jobs of their own that the runs' jobs wait for.

Each distinct build happens once. One in a job lives as a run does: intent is in the ledger before it is submitted,
under a name that is looked up after any doubt, it is polled with the runs, and its job claims its folder.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from nsw.campaign.last_words import reason_with
from nsw.campaign.meta import PREPARED
from nsw.campaign.rows import IN_FLIGHT, BuildRow, State
from nsw.campaign.status_files import read_status
from nsw.errors import CampaignError
from nsw.plan.builds import APP, command_of
from nsw.schedulers.native import NO_ID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from nsw.campaign.driven import Driven
    from nsw.campaign.submissions import Pending
    from nsw.campaign.witness import Status
    from nsw.plan.model import Plan

_TAIL = 25  # lines
_OUTPUT_BYTES = 1 << 20
_AROUND_S = 300.0
_BAD = (State.FAILED, State.LOST)
_AGAIN = (*_BAD, State.CANCELLED)


def builds(plan: Plan) -> list[BuildRow]:
    """The builds of a plan, as the ledger keeps them."""
    return [
        BuildRow(
            job.runs[0].id, job.name, job.runs[0].app, job.build or "login", shlex.join(command_of(job)),
            job.resources.time_s, job.resources.gpus,
            tuple(other.name for other in plan.jobs if other.runs[0].app == job.runs[0].app),
        )
        for job in plan.builds
    ]  # fmt: skip


class Builds:
    """The builds of one campaign; the caller holds its lock.

    Args:
        it: The campaign.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it
        self._none = not it.ledger.builds()
        it.scheduler.after = self.after

    def prepare(self) -> None:
        """Put the application's files on the site, and build here what is built here and not done yet.

        Raises:
            CampaignError: A build here failed; it holds the end of what it printed.
        """
        known = self._it.ledger.builds()
        if not self._it.ledger.meta(PREPARED):
            staged: list[tuple[Path, str]] = []
            if any(self._it.folder.app.iterdir()):
                apps = sorted({build.app for build in known} or {APP})
                staged += [(self._it.folder.app, f"{self._it.scratch}/{app}") for app in apps]
            if self._it.transport.remote:
                staged.append((self._it.folder.scripts, f"{self._it.scratch}/scripts"))
            if staged:
                self._it.transport.stage(staged)
            self._it.transport.make_folders([f"{self._it.scratch}/{build.app}" for build in known])
            self._it.ledger.set_meta(PREPARED, True)
        for build in self._needed(State.PLANNED):
            if self._is_done(build):
                continue
            if not self._in_job(build):
                self._build_here(build)
            elif build.state in _AGAIN:
                self._it.ledger.release_builds([build.id])

    # --- those in jobs, for the loop ----------------------------------------------------------------------

    def pending(self) -> list[Pending]:
        """The builds whose jobs are to be submitted now, before any run's."""
        if self._none:
            return []
        return [(b.job, 0, b.attempt + 1, b.gpus) for b in self._needed(State.PLANNED)
                if b.state is State.PLANNED and self._in_job(b)]  # fmt: skip

    def allowed(self, pending: list[Pending]) -> list[Pending]:
        """Of the tasks that wait those whose build is done, or has a job that theirs can wait for."""
        if self._none:
            return pending
        leave_it = self._it.scheduler.dependencies  # to the batch system, which starts theirs after its
        held = {job for b in self._it.ledger.builds() for job in b.needed_by
                if b.state is not State.DONE and (self._native(b) is None or not leave_it)}  # fmt: skip
        return [one for one in pending if one[0] not in held]

    def after(self, job: str) -> str | None:
        """The scheduler's id of the build that a job's tasks must wait for."""
        build = self._build_of(job)
        return None if build is None or build.state is State.DONE else self._native(build)

    def doomed(self) -> dict[str, str]:
        """The jobs whose runs can not begin, since their build went wrong, with the reason."""
        if self._none:
            return {}
        bad = [b for b in self._it.ledger.builds() if b.state in _BAD and self._in_job(b)]
        return {job: _blame(build) for build in bad for job in build.needed_by}

    def waiting_for(self, builds: Collection[str]) -> set[str]:
        """The jobs whose runs need one of these builds."""
        return {job for b in self._it.ledger.builds() if b.id in builds for job in b.needed_by} if builds else set()

    def unneeded(self) -> set[str]:
        """Builds in flight for which no run waits any more."""
        if self._none:
            return set()
        needed = {b.id for b in self._needed(State.PLANNED, *IN_FLIGHT)}
        return {b.id for b in self._it.ledger.builds() if b.id not in needed and self._native(b) is not None}

    def conclude(self) -> list[str]:
        """Once no run is planned or in flight: the builds that went wrong.

        Returns:
            A message for each, with the end of what it printed.

        Raises:
            CampaignError: No run of the campaign is done, for want of a build.
        """
        bad = [b for b in self._it.ledger.builds() if b.state in _BAD]
        told = [self._failure(b) for b in bad]
        if told and not self._it.ledger.counts().get("done"):
            raise CampaignError("\n".join(told), hint=self._hint(bad[0]))
        return told

    # --- here -------------------------------------------------------------------------------------------

    def _build_here(self, build: BuildRow) -> None:
        attempt = build.attempt + 1
        self._it.ledger.update_builds([build.id], state=State.RUNNING, attempt=attempt, reason=None)
        script = self._it.script(build.job)
        # the script's own first line, which says whether bash is a login shell
        shell = script.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!").split()
        there = self._it.transport.show(script, f"{self._it.scratch}/scripts/{script.name}")
        words = [*shell, there, str(attempt), "0"]
        self._it.transport.run(words, timeout=build.seconds_limit + _AROUND_S, cwd=self._it.scratch)
        build = self._row(build.id)
        if self._is_done(build):
            return
        status = self._status(build, attempt)
        how = (status.reason if status else None) or "it was ended before it was done"
        login_shell = self._it.ledger.has_login_shell()
        reason = reason_with(how, self._output(build).encode(), login_shell=login_shell)
        self._it.ledger.update_builds([build.id], state=State.FAILED, reason=reason)
        raise CampaignError(self._failure(build), hint=self._hint(build))

    # --- what is known of a build -----------------------------------------------------------------------

    def _in_job(self, build: BuildRow) -> bool:
        return build.place == "job" and self._it.scheduler.batches

    def _needed(self, *states: State) -> Iterator[BuildRow]:
        """Those that runs in one of these states need."""
        known = self._it.ledger.builds()
        jobs = self._it.ledger.jobs_in(*states) if known else set()
        return (b for b in known if not jobs.isdisjoint(b.needed_by))

    def _row(self, build: str) -> BuildRow:
        return next(b for b in self._it.ledger.builds() if b.id == build)

    def _build_of(self, job: str) -> BuildRow | None:
        return next((b for b in self._it.ledger.builds() if job in b.needed_by and self._in_job(b)), None)

    def _native(self, build: BuildRow) -> str | None:
        """The id of its job while that is in flight."""
        if build.submission is None or build.state not in {State.SUBMITTED, State.QUEUED, State.RUNNING}:
            return None
        native = self._it.ledger.native_id(build.submission)
        return None if native == NO_ID else native

    def _is_done(self, build: BuildRow) -> bool:
        """Whether it was ever done, as far as the ledger or one of its attempts says."""
        if build.state is State.DONE:
            return True
        for attempt in range(build.attempt, 0, -1):
            status = self._status(build, attempt)
            if status is not None and status.state == "done":
                self._it.ledger.update_builds([build.id], state=State.DONE, reason=None, host=status.host,
                                           started=status.started, ended=status.ended, exit_code=0)  # fmt: skip
                return True
        return False

    def _status(self, build: BuildRow, attempt: int) -> Status | None:
        home = self._it.home(build.id, attempt)
        return read_status(self._it.transport, home)

    def _output(self, build: BuildRow) -> str:
        home = self._it.home(build.id, build.attempt)
        found = [self._it.transport.tail(f"{home}/{name}", _OUTPUT_BYTES) for name in ("stdout", "stderr")]
        return b"".join(text for text in found if text).decode(errors="replace")

    def _failure(self, build: BuildRow) -> str:
        status, output = self._status(build, build.attempt), self._output(build)
        (self._it.folder.path / "build.txt").write_text(output, encoding="utf-8")
        how = "was not done"
        if status is None:
            how += f": {build.reason}" if build.reason else ""
        elif status.state == "running":
            how = "was ended before it was done" + (f": {build.reason}" if build.reason else "")
        elif (status.reason or "").startswith("exit status"):
            how = f"failed with {status.reason}"
        else:
            how = f"failed: {status.reason}"
        tail = "\n".join("  | " + line for line in output.splitlines()[-_TAIL:])
        return f"the build step {how}: {build.command}\n{tail}".rstrip("\n")

    def _hint(self, build: BuildRow) -> str:
        return (
            f"mend it and start again; `nsw logs {build.id}` shows what it printed, and all of that is in"
            f" {self._it.folder.path / 'build.txt'}"
        )


def _blame(build: BuildRow) -> str:
    how = "was lost" if build.state is State.LOST else "failed"
    return f"its build {how}: {build.reason}; `nsw logs {build.id}` shows what it said"
