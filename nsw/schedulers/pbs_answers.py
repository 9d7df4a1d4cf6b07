"""The text of `qstat -f` -> what it says of jobs. Pure.

The JSON of qstat is not used: the client of OpenPBS's main branch prints only the first of several jobs, and that of
23.06 prints what is no JSON for some values of a job's environment. The text is whole in every version.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from nsw.recipe.units import format_duration
from nsw.schedulers.adapter import Line
from nsw.schedulers.model import BY_ITSELF, FAULTS, Answer, Phase
from nsw.schedulers.pbs_meanings import HOLDS, OVER_TIME, VERDICTS, held_too_often

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOB: Final = re.compile(r"^Job Id: *(\S+)[^\S\n]*\n", re.MULTILINE)
# a value goes on in lines that begin with a tab
_ATTRIBUTE: Final = re.compile(
    r"^    (Job_Name|Job_Owner|job_state|substate|Exit_status|Stageout_status|comment|Hold_Types|depend|exec_host"
    r"|run_count|array|array_indices_submitted|array_indices_remaining|Resource_List\.walltime) = (.*(?:\n\t.*)*)",
    re.MULTILINE,
)
_ID: Final = re.compile(r"(?P<seq>\d+)(?:\[(?P<index>\d*)\])?(?P<server>\.\S+)?")
_TERMINATED: Final = re.compile(r" and terminated by (\S+)$")
_CANNOT: Final = "Can Never Run: "
_WAITS: Final = "Not Running: "
_DELETED: Final = "91"  # substate
_NONE_THERE: Final = re.compile(r"\bT: 0[a-z]*\)")  # of what it lacks the nodes together have none
# PBS prints its array's attributes for a subjob without a record: it was removed while it waited, or it ended where
# there is no history, and its own files tell how
_NO_RECORD: Final = Answer(
    Phase.ENDED, "the job was deleted", clean=True, cancelled=True,
    if_begun=Answer(Phase.ENDED, "it ended, and PBS has no record of how,"),
)  # fmt: skip


def array_of(job: str) -> tuple[str, int | None]:
    """`12[].server` and 3 of `12[3].server`; any other id as it is, with None."""
    match = _ID.fullmatch(job)
    if match is None or not match["index"]:
        return job, None
    return f"{match['seq']}[]{match['server'] or ''}", int(match["index"])


def subjob(array: str, index: str) -> str:
    """`12[3].server` of `12[].server`; the index may be a range."""
    return array.replace("[]", f"[{index}]", 1)


def listed_lines(stdout: str) -> list[Line]:
    """The jobs that `qstat -f` listed; an array's own line stands for the subjobs that have none of their own.

    A job without a state (an answer cut short) is left out. A subjob that waits says nothing of a hold of its array.
    """
    found: list[Line] = []
    held: dict[str, Answer] = {}
    for job, attributes in listed_jobs(stdout):
        lines = list(_lines(job, attributes))
        if attributes["job_state"] == "H":
            held |= {line.job: line.answer for line in lines if line.job == job}
        elif attributes["job_state"] == "Q":
            lines = [replace(line, answer=held.get(line.job, line.answer)) for line in lines]
        found += lines
    return found


def listed_jobs(stdout: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Ids, each with those of its attributes that matter here. Text before the first job is passed over."""
    starts = list(_JOB.finditer(stdout))
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(stdout)
        found = {name: value.replace("\n\t", "") for name, value in _ATTRIBUTE.findall(stdout, start.end(), end)}
        if "job_state" in found:
            yield start[1], found


def _lines(job: str, attributes: dict[str, str]) -> Iterator[Line]:
    name, owner = attributes.get("Job_Name"), attributes.get("Job_Owner", "").partition("@")[0] or None
    told = answer(
        attributes["job_state"], attributes.get("substate", ""), attributes.get("Exit_status", ""),
        attributes.get("Stageout_status", ""), attributes.get("comment", ""), attributes.get("Hold_Types", ""),
        "depend" in attributes, attributes.get("Resource_List.walltime", ""),
    )  # fmt: skip
    array, index = array_of(job)
    if index is not None:
        if "run_count" not in attributes and "exec_host" not in attributes and told.phase is not Phase.RUNNING:
            told = _without_record(attributes)
        yield Line(array, (index,), name, told, owner=owner)
    elif "array" not in attributes and "[]" not in job:
        yield Line(job, None, name, told, owner=owner)
    elif attributes["job_state"] in "FMX":
        submitted = indices(attributes.get("array_indices_submitted", ""))
        yield Line(job, submitted, name, _array_over(attributes), owner=owner)
    else:
        yield Line(job, indices(attributes.get("array_indices_remaining", "")), name, told, owner=owner)


def _without_record(attributes: dict[str, str]) -> Answer:
    """Of a subjob that has no job of its own: its exit status and substate are its array's."""
    if attributes["job_state"] in "FX":
        return _NO_RECORD
    return answer(attributes["job_state"], "", "", "", attributes.get("comment", ""), "", False, "")


def _array_over(attributes: dict[str, str]) -> Answer:
    """Of subjobs without a record: the exit status of an array is not theirs."""
    if attributes.get("substate") == _DELETED:
        return Answer(Phase.ENDED, "the job was deleted", cancelled=True)
    if "Exit_status" not in attributes:
        return _never_began(attributes.get("substate", ""), "depend" in attributes)
    return Answer(Phase.ENDED, "its array is over, and PBS has no record of this task")


def indices(text: str) -> list[int]:
    """The numbers of `0-3,7` or `0-9:3`; none of `-`."""
    found: list[int] = []
    for match in re.finditer(r"(\d+)(?:-(\d+)(?::(\d+))?)?", text.partition("%")[0]):
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        found += range(first, last + 1, max(1, step))
    return found


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(
    state: str, substate: str, status: str, stageout: str, comment: str, hold: str, depends: bool, limit: str
) -> Answer:
    """What a job's attributes mean together; an unknown state is no statement.

    Args:
        state: The letter.
        substate: The number that says more; 91 is deleted.
        status: Exit_status, empty where there is none.
        stageout: Stageout_status, likewise.
        comment: What the scheduler says.
        hold: Letters of the holds.
        depends: Whether it depends on another job.
        limit: Its time limit, HH:MM:SS.
    """
    match state:
        case "Q" | "T" | "B":
            return _queued(comment, status)
        case "H":
            return _held(comment, hold, depends=depends)
        case "W":
            return Answer(Phase.QUEUED, "its start time lies ahead")
        case "R":
            return Answer(Phase.RUNNING)
        case "E":  # its exit status is there already, its output may not be
            return Answer(Phase.RUNNING, "its output is being copied back")
        case "S" | "U":
            return Answer(Phase.RUNNING, "suspended by the scheduler")
        case "F" | "X":
            return _ended(substate, status, stageout, comment, limit, depends=depends)
        case "M":
            return Answer(Phase.UNKNOWN, "PBS moved it to another server, and this one does not see how it goes there")
    return Answer(Phase.UNKNOWN, f"PBS says {state}, which nsw does not know")


def _queued(comment: str, status: str) -> Answer:
    if comment.startswith(_CANNOT):
        said = comment.removeprefix(_CANNOT)
        if _NONE_THERE.search(said):  # as after a restart of the server, before its nodes have reported
            reason = f"not running yet: PBS sees none of what it needs on any node now: {said}"
            return Answer(Phase.QUEUED, reason)
        return Answer(
            Phase.QUEUED, f"it can never run: {said}; ask for less in the recipe's resources, or name another queue",
            never=True,
        )  # fmt: skip
    if comment.startswith(_WAITS):
        return Answer(Phase.QUEUED, f"not running yet: {comment.removeprefix(_WAITS).rstrip('.')}")
    if status:
        return Answer(Phase.QUEUED, f"put back into the queue ({_verdict(int(status), '', '')})")
    return Answer(Phase.QUEUED)


def _held(comment: str, hold: str, *, depends: bool) -> Answer:
    if held_too_often(comment):
        reason = f"PBS holds it: {comment}; report it to the site's support; `nsw retry` submits it again"
        return Answer(Phase.QUEUED, reason, never=True, may_run=True)
    if "s" in hold and depends:
        return Answer(Phase.QUEUED, "waits for the job that it depends on")
    return Answer(Phase.QUEUED, "; ".join(HOLDS[letter] for letter in hold if letter in HOLDS) or "held")


def _ended(substate: str, status: str, stageout: str, comment: str, limit: str, *, depends: bool) -> Answer:
    by = _TERMINATED.search(comment)
    if not re.fullmatch(r"-?\d+", status):
        return _never_began(substate, depends)
    number = int(status)
    if by is not None or substate == _DELETED:
        return Answer(Phase.ENDED, f"the job was deleted by {by[1]}" if by else "the job was deleted", cancelled=True)
    if number == 0 and stageout == "0":
        return Answer(
            Phase.ENDED, "PBS could not deliver what the job printed; it is in the node's folder for undelivered files",
            clean=True,
        )  # fmt: skip
    if number == 0:
        return Answer(Phase.ENDED, clean=True)
    return Answer(Phase.ENDED, _verdict(number, comment, limit), fault=FAULTS.get(number))


def _never_began(substate: str, depends: bool) -> Answer:
    """Over without an exit status; substate 92 means success elsewhere, and here that it was removed."""
    if substate == _DELETED:
        return Answer(Phase.ENDED, "the job was deleted", cancelled=True)
    if depends:
        return Answer(Phase.ENDED, "it never began: the job that it depends on did not succeed, and PBS removed it")
    return Answer(Phase.ENDED, "it ended, and PBS has no exit status of it")


def _verdict(number: int, comment: str, limit: str) -> str:
    """What an exit status other than 0 says."""
    if number in VERDICTS:
        words = limit_words(limit) if number == OVER_TIME else None
        return f"{VERDICTS[number]} of {words}" if words else VERDICTS[number]
    if number < 0:
        return f"PBS ended the job (Exit_status {number}){f': {comment}' if comment else ''}"
    if number > 256:
        return f"{BY_ITSELF}: signal {number - 256} ended its script"
    if number > 128:
        return f"{BY_ITSELF}: exit status {number}, as after signal {number - 128}"
    return f"{BY_ITSELF}: exit status {number}"


def limit_words(limit: str) -> str | None:
    """`1h30m` for `01:30:00`; None for what is no time."""
    match = re.fullmatch(r"(\d+):(\d+):(\d+)", limit.strip())
    if match is None:
        return None
    hours, minutes, seconds = (int(number) for number in match.groups())
    return format_duration((hours * 60 + minutes) * 60 + seconds)
