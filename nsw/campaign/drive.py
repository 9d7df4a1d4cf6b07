"""The loop that carries a campaign out: look up what is in doubt, submit, poll, judge, collect.

It can be ended at any moment; the ledger and the files of the runs are all that the next one needs.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from nsw.campaign.ledger import IN_FLIGHT, Ledger, Reading, RunRow, State
from nsw.campaign.witness import Status, judge, parse_status
from nsw.schedulers.model import Answer, Phase, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport

KEPT_FILES = ("stdout", "stderr", "status", "after.log")
_CANCEL = "cancel"


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """Where an attempt of a run stands on the site."""
    return f"{scratch}/runs/{run}/attempt-{attempt}"


class Driver:
    """Drives one campaign; the caller holds its lock.

    Args:
        folder: The campaign's folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: The campaign's folder on the site.
        changed: Called with the ids of runs that changed their state, once that is written down.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        ledger: Ledger,
        scheduler: Scheduler,
        transport: Transport,
        scratch: str,
        changed: Callable[[list[str]], None] = lambda _runs: None,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._scheduler = scheduler
        self._transport = transport
        self._scratch = scratch
        self._changed = changed
        self._open: dict[str, Submission] = {}

    def recover(self) -> int:
        """Adopt what an earlier nsw left: submissions with an id, and those in doubt that the scheduler knows.

        Returns:
            How many submissions in doubt were found to exist.

        Raises:
            UnreachableError: The scheduler could not tell; nothing may be submitted before it can.
        """
        scripts = _Scripts(self._folder)
        self._open = {s.name: s for s in self._ledger.submissions("submitted", scripts)}
        adopted = 0
        for submission in self._ledger.submissions("intent", scripts):
            native = self._scheduler.find(submission)
            if native is not None:
                self._ledger.submitted(submission.name, native)
                adopted += 1
            elif any(self._status(run) for run in self._runs_of(submission)):
                # gone from the scheduler, yet it left its mark: it was submitted and has ended
                self._ledger.submitted(submission.name, "ended")
                adopted += 1
            else:
                self._ledger.withdraw(submission.name)
        self._open = {s.name: s for s in self._ledger.submissions("submitted", scripts)}
        return adopted

    def run(self, wait_s: float = 0.5) -> None:
        """Until no run is planned or in flight."""
        while self.step():
            self._scheduler.wait(wait_s)

    def step(self) -> bool:
        """One round: submit what there is room for, poll, judge. False when nothing is left to do."""
        self._submit()
        self._poll()
        if self._cancel_asked():
            self.cancel()
        return bool(self._open) or self._ledger.has_planned()

    def cancel(self, runs: Sequence[str] | None = None) -> None:
        """End runs: all that are not over, or those named. What a cancelled task had finished stays."""
        (self._folder.path / _CANCEL).unlink(missing_ok=True)
        chosen = None if runs is None else set(runs)
        rows = [r for r in self._ledger.runs("state IN ('planned','intent','submitted','queued','running')")
                if chosen is None or r.id in chosen]  # fmt: skip
        hit = {r.submission for r in rows if r.submission}
        self._scheduler.cancel([s for s in self._open.values() if s.name in hit])
        self._poll()
        now_ended = {r.id for r in self._ledger.runs("state = 'done'")}
        self._ledger.update_runs(
            [r.id for r in rows if r.id not in now_ended],
            state=State.CANCELLED,
            reason="cancelled by nsw cancel",
        )
        for submission in list(self._open.values()):
            self._close_if_over(submission)
        self._changed([r.id for r in rows])

    def _cancel_asked(self) -> bool:
        return (self._folder.path / _CANCEL).exists()

    def _submit(self) -> None:
        room = self._scheduler.room(list(self._open.values()))
        if room <= 0:
            return
        for job, task, attempt, gpus in self._ledger.pending_tasks(room):
            submission = Submission(
                name=submission_name(self._folder.id, job, task, attempt),
                job=job,
                script=self._folder.script(job).absolute(),
                attempt=attempt,
                tasks=(task,),
                gpus=gpus,
            )
            self._ledger.intend(submission)
            native = self._scheduler.submit(submission)
            if native is None:
                self._ledger.withdraw(submission.name)
                continue
            self._ledger.submitted(submission.name, native)
            self._open[submission.name] = replace(submission, native_id=native)
            self._changed([r.id for r in self._runs_of(submission)])

    def _poll(self) -> None:
        if not self._open:
            return
        answers = self._scheduler.poll(list(self._open.values()))
        changed: list[str] = []
        with self._ledger.transaction():
            for submission in list(self._open.values()):
                told = answers.get(submission.name, {})
                for run in self._runs_of(submission):
                    if self._judge(run, told.get(run.task, Answer(Phase.UNKNOWN))):
                        changed.append(run.id)
                self._close_if_over(submission)
        if changed:
            self._changed(changed)

    def _judge(self, run: RunRow, answer: Answer) -> bool:
        if run.state not in IN_FLIGHT:
            return False
        status = self._status(run)
        verdict = judge(answer, status)
        if verdict.ended:
            self._collect(run)
            self._ledger.update_runs([run.id], state=verdict.state, reason=verdict.reason, reading=Reading.COLLECTED,
                                     **_times(status))  # fmt: skip
            return True
        if (verdict.state, verdict.reason) == (run.state, run.reason):
            return False
        self._ledger.update_runs([run.id], state=verdict.state, reason=verdict.reason, **_times(status))
        return True

    def _close_if_over(self, submission: Submission) -> None:
        if not any(run.state in IN_FLIGHT for run in self._runs_of(submission)):
            self._ledger.finish_submission(submission.name)
            self._open.pop(submission.name, None)

    def _runs_of(self, submission: Submission) -> list[RunRow]:
        return self._ledger.runs("submission = ?", (submission.name,))

    def _status(self, run: RunRow) -> Status | None:
        return parse_status(self._transport.read(f"{run_folder(self._scratch, run.id, run.attempt)}/status", 65536))

    def _collect(self, run: RunRow) -> None:
        """Bring a run's reports and its output; an earlier attempt's move aside."""
        source = run_folder(self._scratch, run.id, run.attempt)
        target = self._folder.reports / run.id
        if run.attempt > 1:
            _set_aside(target)
        for name in self._transport.glob(source, (*run.reports, *KEPT_FILES)):
            self._transport.get(f"{source}/{name}", target / name)


def submission_name(campaign: str, job: str, task: int, attempt: int) -> str:
    """The deterministic name under which tasks are submitted: the same tasks never get another."""
    digest = hashlib.sha256(f"{campaign}\0{job}\0{task}\0{attempt}".encode()).hexdigest()[:16]
    return f"nsw-{digest}"


def ask_to_cancel(folder: CampaignFolder) -> None:
    """Ask the nsw that drives this campaign to cancel it."""
    (folder.path / _CANCEL).touch()


def _times(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }


def _set_aside(target: Path) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    if not old:
        return
    number = 1
    while (target / f"attempt-{number}").exists():
        number += 1
    aside = target / f"attempt-{number}"
    aside.mkdir()
    for file in old:
        file.rename(aside / file.name)


class _Scripts(dict[str, "Path"]):
    def __init__(self, folder: CampaignFolder) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, job: str) -> Path:
        return self._folder.script(job).absolute()
