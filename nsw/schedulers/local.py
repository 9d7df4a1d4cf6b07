"""This machine as a scheduler: so many tasks at a time, each in a session of its own that outlives nsw.

A task holds a lock (flock) named after its submission from before its first instruction to its end, inherited
by its processes: after a crash the lock tells whether it lives, without a race.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import RefusedError
from nsw.schedulers import gpus as gpu_claims
from nsw.schedulers.model import NAME_CHARACTERS, Answer, Outcome, Phase, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FAREWELL_S = 0.2
_GRACE_S = 10.0  # between SIGTERM and SIGKILL when cancelling


def held_locks(jobs: Path) -> bool:
    """Whether a task lives whose lock is in this folder."""
    for path in jobs.glob("*.lock"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
    return False


class LocalScheduler:
    """Runs job scripts on this machine.

    Args:
        folder: The campaign's scratch folder; locks and job logs are below it.
        parallel: How many tasks at a time.
        gpus: The GPUs to claim from.
        share_gpus: Nothing here touches a GPU (the demo): claim none.
        login_shell: Whether jobs start in a login shell.
        say: Prints a line for the user.
    """

    batches = False
    contiguous = False
    longest_name = 64
    name_characters = NAME_CHARACTERS
    dependencies = False
    together = 1
    after: Callable[[str], str | None] = staticmethod(lambda _job: None)  # nsw itself waits
    shares_machine = True

    def __init__(
        self,
        folder: Path,
        *,
        parallel: int = 1,
        gpus: Sequence[gpu_claims.Gpu] = (),
        share_gpus: bool = False,
        login_shell: bool = False,
        say: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._say = say
        self._claims_refused: list[str] = []  # as last printed
        self._bash = ("bash", "-l") if login_shell else ("bash",)
        self._jobs = folder / "jobs"
        self._parallel = max(1, parallel)
        self._gpus = list(gpus)
        self._share = share_gpus
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._pidfds: dict[str, int] = {}
        self._ended = False  # something that a poll saw: there may be room now

    def most_tasks(self) -> int:
        """One: every task is a process of its own."""
        return 1

    def due(self) -> bool:
        """Always: looking at a process costs nothing."""
        return True

    def calls(self) -> dict[str, int]:
        """None: there is no command to run."""
        return {}

    def __del__(self) -> None:
        """Let go of children: those about to end are waited for a moment, the others live on by design."""
        deadline = time.monotonic() + _FAREWELL_S
        for child in self._children.values():
            # a second Ctrl-C arrives here: what a destructor raises is printed with its traceback
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                child.wait(max(0.0, deadline - time.monotonic()))
            if child.returncode is None:
                child.returncode = 0  # not ended, but not ours any more: Popen would warn of it
        for descriptor in self._pidfds.values():
            os.close(descriptor)

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may start now."""
        return max(0, self._parallel - len(in_flight))

    def limit(self, running: int) -> None:
        """So many tasks at a time from now on; what runs goes on."""
        self._parallel = running

    def hold(self, submissions: Sequence[Submission], *, held: bool) -> None:
        """Nothing: what was started here runs."""

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Start the task of each."""
        return [self._outcome(submission) for submission in submissions]

    def _outcome(self, submission: Submission) -> Outcome:
        try:
            return Outcome(native=self._start(submission))
        except RefusedError as fault:
            return Outcome(refused=fault)

    def _start(self, submission: Submission) -> str | None:
        """Start the task; its process id and start time, or None when its GPUs are in use.

        Raises:
            RefusedError: This machine does not have so many GPUs, or no safe folder for claims on them.
        """
        needs = 0 if self._share else submission.gpus or 0
        if needs > len(self._gpus):
            have = len(self._gpus) or "none"
            raise RefusedError(
                f"{needs} GPU{'s' if needs > 1 else ''} asked, but nvidia-smi and CUDA_VISIBLE_DEVICES give {have}",
                key="gpus",
                hint="set the site's gpus.per_node to auto",
            )
        lock = self._lock(submission)
        if lock is None:  # somebody started it already and it lives
            return self._find(submission)
        held: list[int] = []
        try:
            claimed = self._claim(needs) if needs else ([], [])
            if claimed is None:
                return None
            taken, held = claimed
            environment = os.environ | {"NSW_CAMPAIGN": str(self._jobs.parent)}
            if submission.gpus is not None:
                environment["CUDA_VISIBLE_DEVICES"] = ",".join(g.index for g in taken)
            with (self._jobs / f"{submission.name}.log").open("ab") as log:
                child = subprocess.Popen(
                    [*self._bash, str(submission.script), str(submission.attempt), str(submission.tasks[0])],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(lock, *held),
                )
            native = f"{child.pid}.{_start_time(child.pid) or 0}"
            os.pwrite(lock, native.encode().ljust(64), 0)
        finally:
            for descriptor in (lock, *held):
                os.close(descriptor)
        self._children[submission.name] = child
        self._watch(submission.name, child.pid)
        return native

    def _claim(self, count: int) -> tuple[list[gpu_claims.Gpu], list[int]] | None:
        try:
            folder, refused = gpu_claims.claims_folder()
            if refused != self._claims_refused:
                self._claims_refused = refused
                self._say(f"GPU claims go to {folder}, because nsw cannot use {'; '.join(refused)}")
            return gpu_claims.claim(self._gpus, count, folder)
        except OSError as fault:
            raise RefusedError(
                f"nsw has no safe folder for GPU claims: {fault}",
                hint="set XDG_RUNTIME_DIR to a folder that only you can write",
            ) from None

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """The processes of submissions in doubt, by name."""
        found = {s.name: self._find(s) for s in submissions}
        return {name: native for name, native in found.items() if native is not None}

    def job_of(self, submission: Submission, task: int) -> str | None:  # noqa: ARG002  as every scheduler is asked
        """None: a lock says which process it is."""
        return None

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Nothing: there is one process a submission."""

    def _find(self, submission: Submission) -> str | None:
        """The process of a submission in doubt: alive if its lock is held, else there is none."""
        lock = self._lock(submission)
        if lock is not None:
            os.close(lock)
            return None
        # the process id is written by the nsw that started it; killed in between, the lock alone speaks
        text = (self._jobs / f"{submission.name}.lock").read_text(errors="replace").strip()
        native = text or f"lock.{submission.name}"
        pid = _pid(native)
        if pid is not None:
            self._watch(submission.name, pid)
        return native

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """Running or gone, from the process itself."""
        return {
            s.name: {t: Answer(Phase.RUNNING if self._lives(s) else Phase.GONE) for t in s.tasks} for s in submissions
        }

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """SIGTERM to every process of the tasks' sessions, SIGKILL to what is left after 10 s."""
        pids = [pid for s in submissions if self._lives(s) for pid in self._leaders(s)]
        deadline = time.monotonic() + _GRACE_S
        for sign in (signal.SIGTERM, signal.SIGKILL):
            members = [m for pid in pids for m in _session(pid)]
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, sign)
            while time.monotonic() < deadline and any(self._lives(s) for s in submissions):
                self.wait(0.05)
            if not any(_session(pid) for pid in pids):
                return

    def wait(self, seconds: float) -> None:
        """Until a task ends or the time is over; not at all when one ended that the last poll saw."""
        if self._ended:
            self._ended = False
            return
        if not self._pidfds:
            time.sleep(seconds)
            return
        waiter = select.poll()
        names = {descriptor: name for name, descriptor in self._pidfds.items()}
        for descriptor in names:
            waiter.register(descriptor, select.POLLIN)
        for descriptor, _ in waiter.poll(seconds * 1000):
            self._reap(names[descriptor])

    def _lock(self, submission: Submission) -> int | None:
        self._jobs.mkdir(parents=True, exist_ok=True)
        descriptor = gpu_claims.out_of_the_way(
            os.open(self._jobs / f"{submission.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _lives(self, submission: Submission) -> bool:
        child = self._children.get(submission.name)
        if child is not None:
            if child.poll() is None:
                return True
        else:
            pid = self._process(submission)
            if pid is not None:
                native = submission.native_id or ""
                if _start_time(pid) == native.partition(".")[2]:
                    return True
            elif self._held(submission):
                return True
        self._forget(submission.name)
        self._ended = True
        return False

    def _held(self, submission: Submission) -> bool:
        lock = self._lock(submission)
        if lock is None:
            return True
        os.close(lock)
        return False

    def _leaders(self, submission: Submission) -> list[int]:
        """The process of a task that leads its session, also where nsw was killed before it wrote down which it is.

        Then it holds the task's lock. A process that looks at the lock in passing leads no session, or is this one's.
        """
        if (known := self._process(submission)) is not None:
            return [known]
        lock = str((self._jobs / f"{submission.name}.lock").resolve())
        holders = [int(one) for one in (e.name for e in os.scandir("/proc")) if one.isdigit() and _has_open(one, lock)]
        return [pid for pid in holders if (fields := _stat(str(pid))) and fields[3] == str(pid) and pid != os.getsid(0)]

    def _process(self, submission: Submission) -> int | None:
        child = self._children.get(submission.name)
        return child.pid if child else _pid(submission.native_id)

    def _watch(self, name: str, pid: int) -> None:
        with contextlib.suppress(OSError, AttributeError):  # no pidfd: wait() then only sleeps
            self._pidfds[name] = os.pidfd_open(pid)

    def _reap(self, name: str) -> None:
        """Let a process go that has ended."""
        child = self._children.get(name)
        if child is not None:
            child.poll()
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._children.pop(name, None)
        descriptor = self._pidfds.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)


def _pid(native: str | None) -> int | None:
    head = (native or "").partition(".")[0]
    return int(head) if head.isdigit() else None


def _stat(pid: int | str) -> list[str] | None:
    """The fields of /proc/PID/stat behind the command name, which may hold anything: state, ppid, pgrp, session ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Clock ticks after boot at which the process started; None for a dead or zombie one."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def _has_open(pid: str, path: str) -> bool:
    """Whether a process has a file open; of other users' nothing is known."""
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") == path:  # noqa: PTH115
                    return True
    return False


def _session(leader: int) -> list[int]:
    """The living processes of a session."""
    members = []
    for entry in (e.name for e in os.scandir("/proc")):
        if entry.isdigit():
            fields = _stat(entry)
            if fields and fields[0] not in "ZX" and fields[3] == str(leader):
                members.append(int(entry))
    return members
