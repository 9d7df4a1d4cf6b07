"""The recipe's build step: here, or as jobs of their own that the runs' jobs wait for.

Each distinct build happens once. As with runs, intent is in the ledger before a job is submitted, under a name that
is looked up after any doubt, and the job claims its folder.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from nsw.campaign.collect import run_folder
from nsw.campaign.last_words import last_words
from nsw.campaign.ledger import State
from nsw.campaign.submitting import submission_name
from nsw.campaign.witness import Status, parse_status
from nsw.errors import CampaignError, RefusedError, UnreachableError
from nsw.plan.builds import APP, command_of
from nsw.schedulers.model import Phase, Submission

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.plan.model import Plan
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport

_TAIL = 25  # lines
_OUTPUT_BYTES = 1 << 20
_AROUND_S = 300.0


@dataclass(frozen=True, slots=True)
class Step:
    """One build: its job and run, the folder that it builds in, and the jobs whose runs need it."""

    job: str
    run: str
    app: str
    where: str
    command: str
    seconds: int
    gpus: int
    needed_by: tuple[str, ...]


def steps(plan: Plan) -> list[dict[str, Any]]:
    """The builds of a plan, as the ledger keeps them."""
    return [
        asdict(
            Step(
                job.name, job.runs[0].id, job.runs[0].app, job.build or "login", shlex.join(command_of(job)),
                job.resources.time_s, job.resources.gpus,
                tuple(other.name for other in plan.jobs if other.runs[0].app == job.runs[0].app),
            )
        )
        for job in plan.builds
    ]  # fmt: skip


class Builds:
    """The builds of one campaign; the caller holds its lock.

    Args:
        folder: The campaign's folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: The campaign's folder on the site.
    """

    def __init__(
        self, folder: CampaignFolder, ledger: Ledger, scheduler: Scheduler, transport: Transport, scratch: str
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._scheduler = scheduler
        self._transport = transport
        self._scratch = scratch
        self._steps = [Step(**step) for step in json.loads(ledger.meta("builds") or "[]")]
        scheduler.after = self.after

    def prepare(self) -> None:
        """Put the application's files on the site, and build or have built what is not built yet.

        Raises:
            CampaignError: A build here failed; it holds the end of what it printed.
            UnreachableError: The scheduler could not tell whether a build's job was taken.
        """
        if not self._ledger.meta("prepared"):
            if any(self._folder.app.iterdir()):
                for app in {step.app for step in self._steps} or {APP}:
                    self._transport.put(self._folder.app, f"{self._scratch}/{app}")
            self._transport.make_folders([f"{self._scratch}/{step.app}" for step in self._steps])
            self._ledger.set_meta("prepared", "yes")
        if not self._ledger.has_planned():
            return
        for step in self._steps:
            if self._done(step):
                continue
            if step.where == "job" and self._scheduler.batches:
                self._have_built(step)
            else:
                self._build(step)

    def after(self, job: str) -> str | None:
        """The scheduler's id of the build that a job's tasks must wait for."""
        step = next((s for s in self._steps if job in s.needed_by), None)
        if step is None or step.where != "job" or self._done(step):
            return None
        return self._last(step).native_id

    def conclude(self) -> list[str]:
        """Once no run is planned or in flight: what became of builds whose runs never began.

        Returns:
            A message for each that failed, with the end of what it printed.

        Raises:
            CampaignError: No run of the campaign is done, for want of a build.
        """
        told = []
        for step in self._steps:
            waiting = [
                r for r in self._ledger.runs("state IN ('failed', 'cancelled', 'lost')")
                if r.job in step.needed_by and r.started is None
            ]  # fmt: skip
            if not waiting or self._done(step):
                continue
            self._end(step)
            if all(run.state is State.CANCELLED for run in waiting):
                continue
            told.append(self._failure(step))
            words = last_words(self._output(step).encode()) or "see build.txt"
            failed = [run.id for run in waiting if run.state is not State.CANCELLED]
            self._ledger.update_runs(failed, state=State.FAILED, reason=f"its build failed: {words}")
        if told and not self._ledger.counts().get("done"):
            raise CampaignError("\n".join(told), hint=self._hint())
        return told

    # --- here -------------------------------------------------------------------------------------------

    def _build(self, step: Step) -> None:
        last = self._last(step)
        now = replace(last, attempt=last.attempt + 1)
        self._remember(step, now)
        # the script's own first line, which says whether bash is a login shell
        shell = now.script.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!").split()
        words = [*shell, str(now.script), str(now.attempt), "0"]
        self._transport.run(words, timeout=step.seconds + _AROUND_S, cwd=self._scratch)
        if not self._done(step):
            raise CampaignError(self._failure(step), hint=self._hint())

    # --- as a job ---------------------------------------------------------------------------------------

    def _have_built(self, step: Step) -> None:
        last = self._last(step)
        if last.attempt and self._goes_on(step, last):
            return
        if not last.attempt or last.native_id is not None or self._status(step, last) is not None:
            last = replace(last, attempt=last.attempt + 1, native_id=None)
            last = replace(last, name=submission_name(self._folder.id, step.job, 0, last.attempt))
        self._remember(step, last)
        try:
            native = self._scheduler.submit(last)
        except RefusedError as fault:
            raise CampaignError(f"the build's job: {fault.message}", hint=fault.hint) from None
        if native is None:
            raise UnreachableError(
                "the queue takes no more of your jobs for now, and the build comes first",
                hint="`nsw resume` tries again",
            )
        self._remember(step, replace(last, native_id=native))

    def _goes_on(self, step: Step, last: Submission) -> bool:
        """Whether the job of the last attempt exists and has not ended; one in doubt is looked up."""
        if last.native_id is None:
            native = self._scheduler.find(last)
            if native is None:
                return False
            last = replace(last, native_id=native)
            self._remember(step, last)
        status = self._status(step, last)
        if status is not None and status.state != "running":
            return False
        answer = self._scheduler.poll([last])[last.name].get(0)
        return answer is None or answer.phase not in {Phase.ENDED, Phase.GONE, Phase.LOST}

    def _end(self, step: Step) -> None:
        """A build that nobody waits for any more need not go on."""
        last = self._last(step)
        if last.native_id is not None and self._goes_on(step, last):
            self._scheduler.cancel([last])

    # --- what is known of a build -----------------------------------------------------------------------

    def _last(self, step: Step) -> Submission:
        """The last attempt, number 0 before the first."""
        known = json.loads(self._ledger.meta(f"build {step.job}") or "{}")
        script = self._folder.script(step.job).absolute()
        native = known.get("native")
        return Submission(known.get("name", ""), step.job, script, known.get("attempt", 0), (0,), step.gpus, native)

    def _remember(self, step: Step, attempt: Submission) -> None:
        known = {"name": attempt.name, "attempt": attempt.attempt, "native": attempt.native_id}
        self._ledger.set_meta(f"build {step.job}", json.dumps(known))

    def _done(self, step: Step) -> bool:
        last = self._last(step)
        return any(
            (status := self._status(step, replace(last, attempt=n))) is not None and status.state == "done"
            for n in range(last.attempt, 0, -1)
        )

    def _status(self, step: Step, attempt: Submission) -> Status | None:
        home = run_folder(self._scratch, step.run, attempt.attempt)
        return parse_status(self._transport.read(f"{home}/status") or self._transport.read(f"{home}/claim"))

    def _output(self, step: Step) -> str:
        home = run_folder(self._scratch, step.run, self._last(step).attempt)
        found = [self._transport.tail(f"{home}/{name}", _OUTPUT_BYTES) for name in ("stdout", "stderr")]
        return b"".join(text for text in found if text).decode(errors="replace")

    def _failure(self, step: Step) -> str:
        status, output = self._status(step, self._last(step)), self._output(step)
        (self._folder.path / "build.txt").write_text(output, encoding="utf-8")
        how = "ended without a word of its own" if status is None else f"failed: {status.reason}"
        if status is not None and status.state == "running":
            how = "was ended before it was done"
        elif status is not None and (status.reason or "").startswith("exit status"):
            how = f"failed with {status.reason}"
        tail = "\n".join("  | " + line for line in output.splitlines()[-_TAIL:])
        return f"the build step {how}: {step.command}\n{tail}".rstrip("\n")

    def _hint(self) -> str:
        return f"mend it and start again; the whole output is in {self._folder.path / 'build.txt'}"
