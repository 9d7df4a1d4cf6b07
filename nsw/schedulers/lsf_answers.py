"""The text of `bjobs -o` and `bhist -l` -> what it says of jobs. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from nsw.schedulers.adapter import Line
from nsw.schedulers.model import Answer, Phase, ended_by_itself

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS: Final = ("jobid", "jobindex", "stat", "exit_code", "name", "user", "exit_reason", "pend_reason")
DELIMITER: Final = "^"
_LAST: Final = len(FIELDS) - 1  # the free text may hold the delimiter

# why LSF ended a job: the key word of exit_reason -> in words
_ENDED_BY: Final = {
    "TERM_RUNLIMIT": "the job was over its time limit",
    "TERM_DEADLINE": "the job was over its time limit",
    "TERM_WINDOW": "the job was over the run window of its queue",
    "TERM_MEMLIMIT": "the job ran out of memory",
    "TERM_SWAP": "the job ran out of swap space",
    "TERM_CPULIMIT": "the job used more processor time than it may",
    "TERM_PROCESSLIMIT": "the job started more processes than it may",
    "TERM_THREADLIMIT": "the job started more threads than it may",
    "TERM_PREEMPT": "the job was preempted",
    "TERM_LOAD": "LSF ended the job because the host was too busy",
    "TERM_ZOMBIE": "the job ended while its host could not be reached",
    "TERM_RMS": "the resource manager of the host failed",
    "TERM_PRE_EXEC_FAIL": "the site's commands before the job failed too often",
    "TERM_CWD_NOTEXIST": "the job's working folder is not there on its host",
    "TERM_RC": "the host was taken back by the cloud",
}
_CANCELLED: Final = {
    "TERM_OWNER": "its owner",
    "TERM_ADMIN": "an administrator",
    "TERM_FORCE_OWNER": "its owner, by force",
    "TERM_FORCE_ADMIN": "an administrator, by force",
    "TERM_BUCKET_KILL": "bkill -b",
    "TERM_REMOVE_HUNG_JOB": "LSF, since it hung",
}
_ORPHAN: Final = "TERM_ORPHAN_SYSTEM"
_ORPHAN_SAID: Final = "it never began: the job that it depends on did not succeed, and LSF removed it"
_SUSPENDED: Final = {
    "USUSP": "suspended by its user or an administrator: `bresume JOB` continues it",
    "SSUSP": "suspended by LSF",
}
_NEVER: Final = re.compile(r"dependency condition invalid or never satisfied", re.IGNORECASE)
_TERM: Final = re.compile(r"\bTERM_[A-Z_]+")


def listed_lines(stdout: str) -> list[Line]:
    """The jobs that bjobs listed; other text is passed over."""
    lines = []
    for text in stdout.splitlines():
        fields = [field.strip() for field in text.split(DELIMITER, _LAST)]
        if len(fields) <= _LAST or not fields[0].isdigit() or not fields[1].isdigit():
            continue
        job, index, stat, code, name, owner, exit_reason, pend_reason = fields
        told = answer(stat, *("" if said == "-" else said for said in (code, exit_reason, pend_reason)))
        lines.append(Line(job, (int(index),) if index != "0" else None, _plain(name), told, owner=owner))
    return lines


def _plain(name: str) -> str:
    """An element of an array is called `name[3]`."""
    return re.sub(r"\[[\d,:-]+\](?:%\d+)?$", "", name)


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(stat: str, code: str, exit_reason: str, pend_reason: str) -> Answer:
    """What a job's columns mean together; an unknown state is no statement.

    Args:
        stat: The state.
        code: The exit status, empty where there is none.
        exit_reason: Why LSF ended it, such as `TERM_OWNER: job killed by owner`.
        pend_reason: Why it waits.
    """
    match stat:
        case "PEND" | "WAIT" | "FWD_PEND":
            return _waits(pend_reason)
        case "PSUSP":
            return Answer(Phase.QUEUED, "held: `bresume JOB` releases it")
        case "RUN" | "PROV":
            return Answer(Phase.RUNNING)
        case "USUSP" | "SSUSP":
            return Answer(Phase.RUNNING, _SUSPENDED[stat])
        case "UNKWN" | "ZOMBI":
            return Answer(Phase.UNKNOWN, "its host cannot be reached")
        case "DONE":
            return Answer(Phase.ENDED, clean=True)
        case "EXIT":
            return _exited(code, exit_reason)
    return Answer(Phase.UNKNOWN, f"LSF says {stat}, which nsw does not know")


def _waits(reason: str) -> Answer:
    if _NEVER.search(reason):
        return Answer(Phase.QUEUED, "the job that it depends on did not succeed", never=True)
    return Answer(Phase.QUEUED, f"not running yet: {reason.rstrip('.;')}" if reason else None)


def _exited(code: str, reason: str) -> Answer:
    match = _TERM.search(reason)
    word = match[0] if match else ""
    if word == _ORPHAN:
        return Answer(Phase.ENDED, _ORPHAN_SAID)
    if word in _CANCELLED:
        return Answer(Phase.ENDED, f"the job was killed by {_CANCELLED[word]}", cancelled=True)
    if word in _ENDED_BY:
        return Answer(Phase.ENDED, _ENDED_BY[word])
    if not code.isdigit() or code == "0":
        return Answer(Phase.ENDED, f"it ended ({reason})" if reason else "it ended, and LSF has no exit status of it")
    signal = f", as after signal {int(code) - 128}" if int(code) > 128 else ""
    return ended_by_itself(int(code), signal)


# --- bhist --------------------------------------------------------------------------------------------------

_JOB: Final = re.compile(r"^Job <(\d+)(?:\[(\d+)\])?>(?:, Job Name <([^>]*)>)?", re.MULTILINE)
_EVENT: Final = r"^\w{3} \w{3} +\d+ [\d:]+(?: \d{4})?: "
_DONE: Final = re.compile(_EVENT + r"Done successfully", re.MULTILINE)
_EXIT: Final = re.compile(_EVENT + r"Exited(?: with exit code (\d+)| by signal (\d+))?.*$", re.MULTILINE)
_KILLED: Final = re.compile(_EVENT + r"Signal <\w+> requested by user or administrator <([^>]*)>", re.MULTILINE)
_BEGAN: Final = re.compile(_EVENT + r"(?:Starting|Started|Dispatched)\b.*$", re.MULTILINE)
_REQUEUED: Final = re.compile(_EVENT + r"(?:Pending: |Requeued|Job has been requeued)", re.MULTILINE)
_WRAPPED: Final = re.compile(r"\n {21}")  # bhist breaks lines anywhere, also within a word


def ended_lines(stdout: str) -> list[Line]:
    """The jobs that `bhist -l` lists: the last event of each decides."""
    text = _WRAPPED.sub("", stdout)
    starts = list(_JOB.finditer(text))
    lines = []
    for start, after in zip(starts, [*(s.start() for s in starts[1:]), len(text)], strict=False):  # none: one too long
        index = start[2]
        name = None if start[3] is None else _plain(start[3])
        lines.append(Line(start[1], None if index is None else (int(index),), name, _last(text[start.start() : after])))
    return lines


def _last(events: str) -> Answer:
    """What the events of one job come to."""
    found = sorted(_events(events), key=lambda event: event[0])
    return found[-1][1] if found else Answer(Phase.QUEUED)


def _events(events: str) -> Iterator[tuple[int, Answer]]:
    reason = _TERM.search(events)
    killed = _KILLED.search(events)
    for match in _BEGAN.finditer(events):
        yield match.start(), Answer(Phase.RUNNING)
    for match in _REQUEUED.finditer(events):
        yield match.start(), Answer(Phase.QUEUED)
    for match in _DONE.finditer(events):
        yield match.start(), Answer(Phase.ENDED, clean=True)
    for match in _EXIT.finditer(events):
        if reason is None and killed is not None:
            yield match.start(), Answer(Phase.ENDED, f"the job was killed by {killed[1]}", cancelled=True)
            continue
        code = match[1] or (str(128 + int(match[2])) if match[2] else "")
        yield match.start(), answer("EXIT", code, reason[0] if reason else "", "")
