"""The job-side witness: what a run wrote of itself, and what it means together with the scheduler's answer."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from nsw.campaign.ledger import State
from nsw.schedulers.model import BY_ITSELF, Answer, Phase


@dataclass(frozen=True, slots=True)
class Status:
    """A run's status file; times are Unix seconds.

    `state` is running, done, failed, or withdrawn: nsw gave this attempt up before it began.
    """

    state: str
    host: str | None = None
    gpus: str | None = None
    job_id: str | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a run now; `ended` says that nothing more will come of this attempt."""

    state: State
    reason: str | None = None
    ended: bool = False


def parse_status(content: bytes | None) -> Status | None:
    """A status file (key=value lines); None when it is absent or holds no state yet.

    A run that a signal to its job cut off has written so, but why it was sent only the scheduler knows: until that
    says that the job is over it counts as running, and then as cut short.
    """
    if not content:
        return None
    facts = dict(line.split("=", 1) for line in content.decode(errors="replace").splitlines() if "=" in line)
    if facts.get("state") not in {"running", "done", "failed", "withdrawn"}:
        return None
    if facts.get("signalled"):
        facts = {key: value for key, value in facts.items() if key not in {"end", "exit_code", "reason"}}
        facts["state"] = "running"
    return Status(
        state=facts["state"],
        host=facts.get("host") or None,
        gpus=facts.get("gpus") or None,
        job_id=facts.get("job_id") or None,
        started=_number(facts.get("start")),
        ended=_number(facts.get("end")),
        exit_code=int(facts["exit_code"]) if facts.get("exit_code", "").isdigit() else None,
        reason=facts.get("reason") or None,
    )


def as_begun(answer: Answer, status: Status | None) -> Answer:
    """The scheduler's answer, as it holds of a run with this status."""
    begun = status is not None and status.state == "running"
    return answer.if_begun if begun and answer.if_begun is not None else answer


def judge(answer: Answer, status: Status | None) -> Verdict:
    """Weigh both witnesses: a finished status file decides; else a task is over only if the scheduler says so."""
    answer = as_begun(answer, status)
    if status is not None and status.state in {"done", "failed"}:
        if status.state == "done":
            return Verdict(State.DONE, status.reason, ended=True)
        tells = answer.phase in {Phase.ENDED, Phase.LOST} and not _is_own(answer.reason)
        more = answer.reason if tells else None
        return Verdict(State.FAILED, "; ".join(filter(None, (_why(status), more))) or None, ended=True)
    if status is not None and status.state == "withdrawn":
        status = None
    if answer.phase is Phase.LOST:
        begun = "" if status is None else "; it had begun and may still be running: only `nsw retry` begins it again"
        return Verdict(State.LOST, f"{answer.reason}{begun}", ended=True)
    if answer.phase is Phase.ENDED and answer.cancelled and status is None:
        return Verdict(State.CANCELLED, f"{answer.reason} before it began", ended=True)
    if answer.phase in {Phase.ENDED, Phase.GONE}:
        return Verdict(State.FAILED, _cut_short(answer, status), ended=True)
    if status is not None:
        return Verdict(State.RUNNING)
    return Verdict(
        {Phase.QUEUED: State.QUEUED, Phase.RUNNING: State.RUNNING}.get(answer.phase, State.SUBMITTED),
        answer.reason,
    )


def _is_own(reason: str | None) -> bool:
    return reason is not None and reason.startswith(BY_ITSELF)


def _cut_short(answer: Answer, status: Status | None) -> str:
    """Why a run that wrote no end of itself is over: its job's own reason comes first."""
    if answer.fault is not None:
        return answer.fault
    if status is None:
        return f"{answer.reason} before this run began" if answer.reason else "its job ended before this run began"
    if answer.reason:
        runs_on = ", whose processes may still be running" if answer.may_run else ""
        return f"{answer.reason} in the middle of this run{runs_on}"
    if answer.clean:  # a second start finds the run begun and ends at once, without a fault
        return (
            "its job ended well in the middle of this run: started a second time by a scheduler that had lost its"
            " state, or the run's folder could not be written"
        )
    return "its job ended in the middle of this run: killed, or the machine went down"


def _why(status: Status) -> str | None:
    """Its reason; an exit status that may tell of a signal, with its name."""
    signals = {int(s): s.name for s in signal.Signals}
    name = signals.get((status.exit_code or 0) - 128)
    plain = status.reason == f"exit status {status.exit_code}"
    return f"{status.reason} (128 + {name})" if name and plain else status.reason


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
