"""A job of the fake PBS: what the server knows about it, as the attributes that qstat prints, in qstat's order."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

# resources that belong to a chunk of `-l select`, with what they are when nobody says
PER_CHUNK = ("ncpus", "ngpus", "mem", "mpiprocs", "ompthreads")


def clock(seconds: float) -> str:
    """HH:MM:SS."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def ctime(at: float) -> str:
    return time.ctime(at)


def minute(at: float) -> str:
    """As comments write a time."""
    return time.strftime("%a %b %d at %H:%M", time.localtime(at))


@dataclass
class Asked:
    """What qsub sent: the attributes of a job, its script and how it was asked for."""

    name: str
    owner: str
    queue: str
    script: str
    workdir: str
    arguments: str
    variables: list[tuple[str, str]]
    resources: dict[str, str]
    account: str | None = None
    project: str = "_pbs_project_default"
    output: str | None = None
    error: str | None = None
    join: str = "n"
    keep: str = "n"
    hold: bool = False
    rerunnable: bool = True
    shell: str | None = None
    umask: int = 0o077
    depend: str | None = None
    indices: list[int] | None = None
    submitted: str | None = None
    throttle: int | None = None
    start_at: float | None = None
    group: str | None = None
    run_as: str | None = None
    command: list[str] | None = None


@dataclass
class Job:
    """A job, an array, or a subjob."""

    id: str
    seq: int
    asked: Asked
    server: str
    created: float
    index: int | None = None
    parent: Job | None = None
    state: str = "Q"
    substate: int = 10
    hold: str = "n"
    comment: str | None = None
    depend: list[tuple[str, list[str]]] = field(default_factory=list)
    before: list[tuple[str, str]] = field(default_factory=list)  # (kind, child's id)
    name: str = ""
    resources: dict[str, str] = field(default_factory=dict)
    queue: str = ""
    changed: float = 0
    started: float | None = None
    ended: float | None = None
    history: float | None = None
    used: dict[str, str] | None = None
    session: int | None = None
    slots: list[int] = field(default_factory=list)
    placed: str = ""
    run_count: int = 0
    exit: int | None = None
    stageout: int | None = None
    ending: str | None = None  # why the server ends it: walltime, mem, qdel, force, rerun
    killed_by: str | None = None
    begun: dict[int, Job] = field(default_factory=dict)  # subjobs
    queued: list[int] = field(default_factory=list)
    throttle: int | None = None
    process: subprocess.Popen[bytes] | None = None
    files: dict[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        return self.asked.indices is not None and self.index is None

    @property
    def over(self) -> bool:
        return self.state in "FX"

    def need(self, what: str) -> int:
        """How much of a resource it needs."""
        return int(self.resources.get(what, "0"))

    def path(self, which: str, host: str) -> str:
        """Where its output or error goes, as qstat prints it: HOST:PATH."""
        given = self.asked.output if which == "o" else self.asked.error
        if given is not None:
            path = given if given.startswith("/") else f"{self.asked.workdir}/{given}"
            found = f"localhost:{path}"
        else:
            index = ".^array_index^" if self.asked.indices is not None else ""
            found = f"{host}:{self.asked.workdir}/{self.asked.name}.{which}{self.seq}{index}"
        return found if self.index is None else found.replace("^array_index^", str(self.index))

    def counts(self) -> dict[str, int]:
        """Subjobs by state."""
        states = [sub.state for sub in self.begun.values()]
        expired = sum(state == "X" for state in states)
        return {
            "Queued": len(self.queued) + states.count("Q"),
            "Running": states.count("R") + states.count("S"),
            "Exiting": states.count("E"),
            "Expired": expired,
        }

    def attributes(self, host: str, *, manager: bool) -> Iterator[tuple[str, str | dict[str, str]]]:
        """Names and values in the server's order; resources and variables are several."""
        asked = self.asked
        yield "Job_Name", self.name
        yield "Job_Owner", f"{asked.owner}@{host}"
        if self.used:
            yield "resources_used", self.used
        yield "job_state", self.state
        yield "queue", self.queue
        yield "server", self.server
        if asked.account:
            yield "Account_Name", asked.account
        if self.index is None:
            yield "Checkpoint", "u"
        yield "ctime", ctime(self.created)
        if depend := self.depends():
            yield "depend", depend
        yield "Error_Path", self.path("e", host)
        if self.placed:
            count = range(len(self.slots))
            yield "exec_host", "+".join(f"{host}/{self.slots[i]}" for i in count)
            yield "exec_vnode", self.placed
        if self.index is None:
            yield "Hold_Types", self.hold
        yield "Join_Path", asked.join
        yield "Keep_Files", asked.keep
        yield "Mail_Points", "a"
        yield "mtime", ctime(self.changed)
        yield "Output_Path", self.path("o", host)
        yield "Priority", "0"
        yield "qtime", ctime(self.created)
        yield "Rerunable", str(asked.rerunnable)
        yield "Resource_List", dict(sorted(self.resources.items()))
        if self.started is not None:
            yield "stime", ctime(self.started)
        if self.ended is not None:
            yield "obittime", ctime(self.ended)
        if self.session is not None:
            yield "session_id", str(self.session)
            yield "jobdir", str(self.files.get("home", ""))
        yield "substate", str(self.substate)
        yield "Variable_List", dict(asked.variables)
        if manager:
            yield "euser", asked.run_as or asked.owner
        if self.comment is not None:
            yield "comment", self.comment
        yield "etime", ctime(self.created)
        if self.run_count:
            yield "run_count", str(self.run_count)
        if self.stageout is not None:
            yield "Stageout_status", str(self.stageout)
        exit_status = self.exit
        if self.parent is not None and not self.run_count:  # without a job of its own: the array's
            exit_status = self.parent.exit
        if exit_status is not None:
            yield "Exit_status", str(exit_status)
        yield from self._last()

    def _last(self) -> Iterator[tuple[str, str | dict[str, str]]]:
        if self.index is None:
            yield "Submit_arguments", self.asked.arguments
        else:
            assert self.parent is not None
            yield "array_id", self.parent.id
            yield "array_index", str(self.index)
        if self.is_array:
            yield "array", "True"
            yield "array_state_count", " ".join(f"{name}:{n}" for name, n in self.counts().items())
            yield "array_indices_submitted", self.asked.submitted or ""
            yield "array_indices_remaining", spans(self.queued) or "-"
            if self.throttle is not None:
                yield "max_run_subjobs", str(self.throttle)
        if self.history is not None:
            yield "history_timestamp", str(int(self.history))
        yield "project", self.asked.project
        yield "Submit_Host", "pbs0"

    def depends(self) -> str:
        words = [f"{kind}:{':'.join(f'{one}@{self.server}' for one in ids)}" for kind, ids in self.depend]
        return ",".join([*words, *(f"{kind}:{child}@{self.server}" for kind, child in self.before)])


def spans(found: list[int]) -> str:
    """`0-3,7` of rising numbers."""
    parts: list[list[int]] = []
    for number in found:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def resource_list(asked: dict[str, str], *, queue_walltime: float | None) -> tuple[dict[str, str], dict[str, int]]:
    """What a job gets of what it asks: Resource_List, and the sums that the scheduler counts.

    Raises:
        ValueError: A value is none.
        KeyError: A resource of a chunk is not known.
    """
    found = {name: value for name, value in asked.items() if name not in PER_CHUNK}
    select = asked.get("select")
    if select is None:
        own = {name: asked[name] for name in PER_CHUNK if name in asked}
        select = ":".join(["1", f"ncpus={own.pop('ncpus', '1')}", *(f"{k}={v}" for k, v in own.items())])
        found["place"] = asked.get("place", "pack")
    sums: dict[str, int] = {"ncpus": 0, "nodect": 0}
    memory: list[str] = []
    for chunk in select.split("+"):
        count, _, rest = chunk.partition(":")
        if not count.isdigit():
            count, rest = "1", chunk
        values = dict(part.partition("=")[::2] for part in rest.split(":") if part)
        values.setdefault("ncpus", "1")
        sums["nodect"] += int(count)
        for name, value in values.items():
            if name not in PER_CHUNK:
                raise KeyError(name)
            if name == "mem":
                size_kb(value)
                memory.append(value)
            else:
                sums[name] = sums.get(name, 0) + int(count) * int(value)
    found |= {name: str(value) for name, value in sums.items()} | {"select": select}
    found.setdefault("place", "free")
    if memory:
        found["mem"] = memory[0] if len(memory) == 1 else f"{sum(map(size_kb, memory))}kb"
    if "walltime" in asked:
        found["walltime"] = clock(duration(asked["walltime"]))
    elif queue_walltime is not None:
        found["walltime"] = clock(queue_walltime)
    return found, sums


def size_kb(text: str) -> int:
    """`100mb` in kB."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzB")
    unit = text[len(number) :].lower()
    return -(-int(number) * {"": 1, "b": 1, "kb": 1024, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}[unit] // 1024)


def duration(text: str) -> int:
    """Seconds of `90`, `1:30` (minutes and seconds) or `100:00:00`."""
    parts = text.split(":")
    if len(parts) > 3:
        raise ValueError(text)
    seconds = 0
    for part in parts:
        if not part.isdigit():
            raise ValueError(text)
        seconds = seconds * 60 + int(part)
    return seconds
