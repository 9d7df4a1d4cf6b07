"""This machine as a scheduler: so many tasks at a time, each in a session of its own that outlives nsw.

A task holds a lock (flock) named after its submission from before its first instruction to its end, inherited
by its processes: after a crash the lock tells whether it lives, without a race.

A claim on a GPU is such a lock too, which two runs never share; it ends with the last of the job's processes, also when
nsw has been killed. The files are in one folder per user, so that campaigns see each other. So is that of the turn: two
campaigns that run side by side disturb what they measure. It ends with the nsw that holds it; the file says whose it
was last, so that runs which outlive their nsw are waited for too.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsw.errors import CommandResult, RefusedError
from nsw.resources import shipped_text, user_folder
from nsw.safe_files import open_plain, read_text
from nsw.schedulers import model as scheduler_model  # fmt: skip
from nsw.schedulers.adapter import Adapter, Line, Refusal, Request, Watched
from nsw.schedulers.model import Answer, Capabilities, Outcome, Phase, Scheduler, Submission, parse_spans

INSIDE: Final = "NSW_CAMPAIGN"  # variable of a run: the campaign that it is of
_FILE: Final = "turn"
_LONGEST: Final = 1 << 16  # bytes of the file
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_FAREWELL_S = 0.2
_GRACE_S = 10.0  # between SIGTERM and SIGKILL when cancelling
_FIRST_OF_OURS = 100  # scripts write 3 to 9, and bash itself takes 10 and those after it
_LINE = re.compile(r"GPU (?P<index>\d+): (?P<name>.*?) \(UUID: (?P<uuid>[\w-]+)\)")


class LocalScheduler(Scheduler):
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
    can = Capabilities()
    after: Callable[[str], tuple[str, ...]] = staticmethod(lambda _job: ())  # nsw itself waits
    shares_machine = True

    def __init__(
        self,
        folder: Path,
        *,
        parallel: int = 1,
        gpus: Sequence[Gpu] = (),
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

    def __del__(self) -> None:
        """Let go of children: those about to end are waited for a moment, the others live on by design."""
        deadline = time.monotonic() + _FAREWELL_S
        for child in self._children.values():
            # a second Ctrl-C arrives here: what a destructor raises is printed with its traceback
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
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

    def hold(self, submissions: Sequence[Submission], *, hold: bool) -> None:
        """Nothing: what was started here runs."""

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Nothing: there is one process a submission."""

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Start the task of each."""
        return [self._submit_outcome(submission) for submission in submissions]

    def _submit_outcome(self, submission: Submission) -> Outcome:
        try:
            return Outcome(native=self._start_task(submission))
        except RefusedError as fault:
            return Outcome(refused=fault)

    def _start_task(self, submission: Submission) -> str | None:
        """Start the task; its process id and start time, or None when its GPUs are in use.

        Raises:
            RefusedError: This machine does not have so many GPUs, or no safe folder for claims on them, or the shell
                is in an allocation of Slurm's on other machines.
        """
        if (job := job_elsewhere()) is not None:
            raise RefusedError(
                f"this shell belongs to job {job} of Slurm, and {socket.gethostname()} is none of that job's nodes",
                hint=f"`srun --jobid={job} --overlap --pty bash` opens a shell on its first node: start nsw there;"
                " or leave the allocation (`exit`)",
            )
        needs = 0 if self._share else submission.gpus or 0
        if needs > len(self._gpus):
            have = len(self._gpus) or "none"
            raise RefusedError(
                f"{needs} GPU{'s' if needs > 1 else ''} asked, but nvidia-smi and CUDA_VISIBLE_DEVICES give {have}",
                key="gpus",
                hint="set the site's gpus.per_node to auto",
            )
        lock = self._open_lock(submission)
        if lock is None:  # somebody started it already and it lives
            return self._find_process(submission)
        gpu_locks: list[int] = []
        try:
            claimed = self._claim_gpus(needs) if needs else ([], [])
            if claimed is None:
                return None
            claimed_gpus, gpu_locks = claimed
            environment = os.environ | {"NSW_CAMPAIGN": str(self._jobs.parent)}
            if submission.gpus is not None:
                environment["CUDA_VISIBLE_DEVICES"] = ",".join(g.index for g in claimed_gpus)
            log_file = open_plain(self._jobs / f"{submission.name}.log", _APPEND, 0o644)
            with os.fdopen(log_file, "ab") as log:
                child = subprocess.Popen(
                    [*self._bash, str(submission.script), str(submission.attempt), str(submission.tasks[0])],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(lock, *gpu_locks),
                )
            native = f"{child.pid}.{_start_time(child.pid) or 0}"
            os.pwrite(lock, native.encode().ljust(64), 0)
        finally:
            for descriptor in (lock, *gpu_locks):
                os.close(descriptor)
        self._children[submission.name] = child
        self._watch_process(submission.name, child.pid)
        return native

    def _claim_gpus(self, count: int) -> tuple[list[Gpu], list[int]] | None:
        try:
            folder, refused = claims_folder()
            if refused != self._claims_refused:
                self._claims_refused = refused
                self._say(f"GPU claims go to {folder}, because nsw cannot use {'; '.join(refused)}")
            return claim(self._gpus, count, folder)
        except OSError as fault:
            raise RefusedError(
                f"nsw has no safe folder for GPU claims: {fault}",
                hint="set XDG_RUNTIME_DIR to a folder that only you can write",
            ) from None

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """The processes of submissions in doubt, by name."""
        natives = {s.name: self._find_process(s) for s in submissions}
        return {name: native for name, native in natives.items() if native is not None}

    def _find_process(self, submission: Submission) -> str | None:
        """The process of a submission in doubt: alive if its lock is held, else there is none."""
        if not self._is_locked(submission):
            return None
        # the process id is written by the nsw that started it; killed in between, the lock alone speaks
        text = read_text(self._jobs / f"{submission.name}.lock", errors="replace").strip()
        native = text or f"lock.{submission.name}"
        pid = _parse_pid(native)
        if pid is not None:
            self._watch_process(submission.name, pid)
        return native

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """Running or gone, from the process itself."""
        return {
            s.name: {t: Answer(Phase.RUNNING if self._is_alive(s) else Phase.GONE) for t in s.tasks}
            for s in submissions
        }

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """SIGTERM to every process of the tasks' sessions, SIGKILL to what is left after 10 s."""
        pids = [pid for s in submissions if self._is_alive(s) for pid in self._session_leaders(s)]
        deadline = time.monotonic() + _GRACE_S
        for sign in (signal.SIGTERM, signal.SIGKILL):
            members = [m for pid in pids for m in _session_processes(pid)]
            for member in members:
                with suppress(ProcessLookupError):
                    os.kill(member, sign)
            while time.monotonic() < deadline and any(self._is_alive(s) for s in submissions):
                self.wait(0.05)
            if not any(_session_processes(pid) for pid in pids):
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
            child = self._children.get(names[descriptor])
            if child is not None:
                child.poll()
            self._forget_process(names[descriptor])

    def _open_lock(self, submission: Submission) -> int | None:
        self._jobs.mkdir(parents=True, exist_ok=True)
        return locked(self._jobs / f"{submission.name}.lock")

    def _is_alive(self, submission: Submission) -> bool:
        child = self._children.get(submission.name)
        if child is not None:
            if child.poll() is None:
                return True
        else:
            pid = self._process_id(submission)
            if pid is not None:
                native = submission.native_id or ""
                if _start_time(pid) == native.partition(".")[2]:
                    return True
            elif self._is_locked(submission):
                return True
        self._forget_process(submission.name)
        self._ended = True
        return False

    def _is_locked(self, submission: Submission) -> bool:
        lock = self._open_lock(submission)
        if lock is None:
            return True
        os.close(lock)
        return False

    def _session_leaders(self, submission: Submission) -> list[int]:
        """The process of a task that leads its session, also where nsw was killed before it wrote down which it is.

        Then it holds the task's lock. A process that looks at the lock in passing leads no session, or is this one's.
        """
        if (recorded_pid := self._process_id(submission)) is not None:
            return [recorded_pid]
        lock = str((self._jobs / f"{submission.name}.lock").resolve())
        holders = [
            int(pid_text)
            for pid_text in (e.name for e in os.scandir("/proc"))
            if pid_text.isdigit() and _has_open(pid_text, lock)
        ]
        return [
            pid
            for pid in holders
            if (fields := _read_proc_stat(str(pid))) and fields[3] == str(pid) and pid != os.getsid(0)
        ]

    def _process_id(self, submission: Submission) -> int | None:
        child = self._children.get(submission.name)
        return child.pid if child else _parse_pid(submission.native_id)

    def _watch_process(self, name: str, pid: int) -> None:
        with suppress(OSError, AttributeError):  # no pidfd: wait() then only sleeps
            self._pidfds[name] = os.pidfd_open(pid)

    def _forget_process(self, name: str) -> None:
        self._children.pop(name, None)
        descriptor = self._pidfds.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)


def _parse_pid(native: str | None) -> int | None:
    head = (native or "").partition(".")[0]
    return int(head) if head.isdigit() else None


def _read_proc_stat(pid: int | str) -> list[str] | None:
    """The fields of /proc/PID/stat behind the command name, which may hold anything: state, ppid, pgrp, session ..."""
    try:
        return read_text(f"/proc/{pid}/stat", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Clock ticks after boot at which the process started; None for a dead or zombie one."""
    fields = _read_proc_stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def _has_open(pid: str, path: str) -> bool:
    """Whether a process has a file open; of other users' nothing is known."""
    with suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") == path:  # noqa: PTH115
                    return True
    return False


def _session_processes(leader: int) -> list[int]:
    """The living processes of a session."""
    members = []
    for entry in (e.name for e in os.scandir("/proc")):
        if entry.isdigit():
            fields = _read_proc_stat(entry)
            if fields and fields[0] not in "ZX" and fields[3] == str(leader):
                members.append(int(entry))
    return members


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it; `index` is what CUDA_VISIBLE_DEVICES takes."""

    index: str
    name: str
    uuid: str


def detect() -> list[Gpu]:
    """The GPUs of this machine that the environment lets us use; none: [].

    CUDA_VISIBLE_DEVICES says which, and where a shell in a job of Slurm's has none, the job's own list.
    """
    if not shutil.which("nvidia-smi"):
        return []
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    gpus = [Gpu(m["index"], m["name"], m["uuid"]) for m in map(_LINE.match, done.stdout.splitlines()) if m]
    of_job = os.environ.get("SLURM_STEP_GPUS") or os.environ.get("SLURM_JOB_GPUS")
    if of_job is not None and of_job.count(",") + 1 == len(gpus):
        of_job = None  # cgroups hide the others, and number the job's own from 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", of_job)
    if visible is None:
        return gpus
    chosen: list[Gpu] = []
    for name in (v.strip() for v in visible.split(",")):
        gpu = next((g for g in gpus if name and (name == g.index or g.uuid.startswith(name))), None)
        if gpu is None:  # CUDA looks no further than the first that there is not
            break
        if gpu not in chosen:
            chosen.append(gpu)
    return chosen


def job_elsewhere() -> str | None:
    """The job of Slurm that this shell belongs to, where no node of it is this machine: `salloc` on a login node."""
    job, node_list = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_JOB_NODELIST")
    if (
        job is None or node_list is None or "SLURMD_NODENAME" in os.environ
    ):  # what slurmd starts is on a node of the job
        return None
    return None if is_in_node_list(socket.gethostname().partition(".")[0], node_list) else job


def is_in_node_list(host: str, node_list: str) -> bool:
    """Whether a host is among Slurm's `n[1-4,7],gpu01`."""
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", node_list):
        pieces = re.split(r"\[([^\]]*)\]", item)  # every second is what stood in brackets
        match = re.fullmatch(r"(\d+)".join(map(re.escape, pieces[::2])), host)
        if match and all(int(m) in parse_spans(spans) for m, spans in zip(match.groups(), pieces[1::2], strict=True)):
            return True
    return False


def claims_folder() -> tuple[Path, list[str]]:
    """The folder that holds this user's claims on this machine.

    Returns:
        The folder, and why each folder before it in the order was not used. Any user can make /tmp/nsw-UID first, so
        a folder counts only if it is this user's own and nobody else may write there.

    Raises:
        OSError: No folder can be used; the text lists them with the reasons.
    """
    refused: list[str] = []
    for folder in _lock_folder_candidates():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            os.close(_open_own_folder(folder))
        except OSError as fault:
            refused.append(f"{folder}: {fault.strerror or fault}")
        else:
            return folder, refused
    raise OSError("; ".join(refused))


def _lock_folder_candidates() -> Iterator[Path]:
    name = f"nsw-{os.getuid()}"
    if base := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(base) / name
    yield Path(tempfile.gettempdir()) / name
    with suppress(OSError):
        state = user_folder("state")  # only this user makes folders in their home; several machines may share it
        with suppress(OSError):
            state.mkdir(parents=True, exist_ok=True)
        yield state / f"gpus-{socket.gethostname()}"


def _open_own_folder(folder: Path) -> int:
    """Open the folder and return its descriptor.

    Raises:
        OSError: It is a link or no folder, or others own it or may write there.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as fault:
        if folder.is_symlink():
            raise OSError(fault.errno, "it is a symbolic link") from None
        raise
    status = os.fstat(descriptor)
    objection = ""
    if status.st_uid != os.getuid():
        objection = f"it belongs to user {status.st_uid}"
    elif status.st_mode & 0o022:
        objection = f"others may write there (mode {stat.S_IMODE(status.st_mode):04o})"
    if objection:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, objection)
    return descriptor


def with_high_number(descriptor: int) -> int:
    """The same open file under a number that scripts do not use: `exec 9>file` of a site's set-up ends no lock."""
    try:
        file_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(_FIRST_OF_OURS, file_limit // 2))
    finally:
        os.close(descriptor)


def locked(path: str | Path, folder: int | None = None) -> int | None:
    """A descriptor of the file that holds its lock, made where it is not there; None while another has the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = with_high_number(os.open(path, flags, 0o600, dir_fd=folder))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        os.close(descriptor)
        if isinstance(fault, BlockingIOError):
            return None
        raise
    return descriptor


def claim(gpus: list[Gpu], count: int, folder: Path) -> tuple[list[Gpu], list[int]] | None:
    """Claim `count` of the GPUs.

    Returns:
        The GPUs and the open file descriptors that hold the claims, to be passed to the job and then closed
        here; None when fewer are free.

    Args:
        gpus: The GPUs of this machine.
        count: How many to claim.
        folder: The folder of the locks.

    Raises:
        OSError: The folder is not safe, or its file system has no locks.
    """
    gpu_by_lock: dict[int, Gpu] = {}
    with ExitStack() as always, ExitStack() as too_few:
        within = _open_own_folder(folder)
        always.callback(os.close, within)
        for gpu in gpus:
            if len(gpu_by_lock) < count and (lock := locked(f"{gpu.uuid}.lock", within)) is not None:
                too_few.callback(os.close, lock)
                gpu_by_lock[lock] = gpu
        if len(gpu_by_lock) == count:
            too_few.pop_all()
            return list(gpu_by_lock.values()), list(gpu_by_lock)
    return None


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


@dataclass(frozen=True, slots=True)
class Owner:
    """A campaign that has, or had, the turn: its id, its folder, the folder of its jobs' locks, its nsw's process."""

    campaign: str
    folder: str
    jobs: str
    process: int = 0


class Turn:
    """The turn of one campaign; `take` until it gives None, then `release`.

    Args:
        me: The campaign.

    Raises:
        OSError: This user has no safe folder for it.
    """

    def __init__(self, me: Owner) -> None:
        self._me = me
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(claims_folder()[0] / _FILE, flags, 0o600)
        self._has_turn = False

    def take(self) -> str | None:
        """Try to get the turn: None when this campaign has it, else what it waits for."""
        if not self._has_turn:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = self._read_owner()
                if owner is not None and owner.process == os.getpid():
                    return None  # a program that drives several campaigns at a time means it
                return "another campaign runs on this machine" + (
                    f": {owner.campaign} ({owner.folder})" if owner else ""
                )
            self._has_turn = True
        last = self._read_owner()
        is_own = last is None or last.jobs == self._me.jobs or last.process == os.getpid()
        if last is not None and not is_own and held_locks(Path(last.jobs)):
            return f"runs of another campaign are running on this machine: {last.campaign} ({last.folder})"
        data = json.dumps([self._me.campaign, self._me.folder, self._me.jobs, os.getpid()]).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, data, 0)
        return None

    def release(self) -> None:
        """Let the next campaign have it."""
        with suppress(OSError):
            os.close(self._file)

    def _read_owner(self) -> Owner | None:
        try:
            fields = json.loads(os.pread(self._file, _LONGEST, 0))
        except ValueError:  # nobody had it yet, or an nsw was killed while it wrote
            return None
        kinds = (str, str, str, int)
        if not isinstance(fields, list) or len(fields) != len(kinds) or not all(map(isinstance, fields, kinds)):
            return None
        return Owner(*fields)


def is_inside_a_run() -> bool:
    """Whether this nsw was started by a run of a campaign on this machine, which holds the turn for it."""
    return bool(os.environ.get(INSIDE))


_CANCELLED = "143"
_WAITS = {"held": "held by `nsw throttle 0`", "turn": "waits for its turn: other runs are running"}


class Host(Adapter):
    """The machine behind a transport.

    Args:
        cpu_runs: How many jobs that claim no GPU run at a time, of all the user's campaigns there; None: all at once,
            as on a login node, where the caller limits them.
    """

    name = "the machine"
    marker = "#NSW"
    submit = "bash"
    queue = "the supervisor"
    submitted = r"(\d+\.\d+)"  # process and start time
    sign_of_life = ("true",)
    capabilities = Capabilities(unique_names=True, hold=True, submissions_per_command=50)
    keys = frozenset({"queue", "partition", "account", "qos", "gres", "constraint", "reservation", "exclusive"})

    def __init__(self, cpu_runs: int | None = None) -> None:
        self._cpu_runs = cpu_runs

    def submit_command(self, request: Request) -> list[str]:
        """Start the supervisor of one task."""
        submission = request.submission
        needs = "any" if submission.gpus is None else str(submission.gpus)
        if self._cpu_runs and not submission.gpus:
            needs += f"/{self._cpu_runs}"
        return _supervisor_command(
            "submit", request.log, needs, request.script, submission.attempt, submission.tasks[0]
        )

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Too many GPUs, or no way to wait for them."""
        messages = [line[5:] for line in result.stderr.splitlines() if line.startswith("nsw: ")]
        if result.returncode != 3 or not messages:
            return None
        if "flock" in messages[0]:
            return Refusal(messages[0], None, "install util-linux there, or put its flock on PATH")
        return Refusal(messages[0], "gpus", "`nvidia-smi -L` there lists what the machine has")

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """The states of all of these."""
        return _supervisor_command("list", *(job.log for job in watched))

    def owners_command(self, watched: Sequence[Watched]) -> None:
        """None: a job is known by its files, which bear its name."""

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """A line a job; the last line says that the list is whole."""
        lines = result.stdout.splitlines()
        if result.returncode != 0 or result.timed_out or lines[-1:] != ["end"]:
            return None
        rows = [line.split("\t") for line in lines[:-1]]
        return [
            Line(job, None, name, _parse_supervisor_state(state))
            for name, job, state in (row for row in rows if len(row) == 3)
        ]

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """End every process of these jobs."""
        return _supervisor_command("cancel", *(job.log for job in watched)) if watched else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """Keep the jobs that wait from beginning, or let them."""
        return _supervisor_command("hold" if hold else "release", *(job.log for job in watched)) if watched else None

    def limit_command(self, jobs: str, running: int) -> list[str] | None:
        """Let the supervisors of a campaign start only so many at a time; none on a login node."""
        return _supervisor_command("limit", jobs, running) if self._cpu_runs else None


def _parse_supervisor_state(state: str) -> Answer:
    word, _, rest = state.partition(" ")
    if word == "queued":
        return Answer(Phase.QUEUED, _WAITS.get(rest, "waits for its GPUs"))
    if word == "running":
        return Answer(Phase.RUNNING)
    code, _, message = rest.strip().partition(" ")
    if word != "ended":
        return Answer(Phase.UNKNOWN)
    if code == "0":
        return Answer(Phase.ENDED, clean=True)
    if code == "-":
        return Answer(Phase.ENDED, "its processes were killed, or the machine restarted")
    if code == _CANCELLED:
        return Answer(Phase.ENDED, "the job was cancelled", cancelled=True)
    return Answer(Phase.ENDED, message) if message else scheduler_model.ended_by_itself(int(code))


def _supervisor_command(*words: object) -> list[str]:
    return ["bash", "-c", shipped_text("schedulers/host_supervisor.sh"), "nsw", *map(str, words)]
