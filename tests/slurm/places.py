"""Slurms to test against: the fake commands, and a real cluster with somebody who is not root."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from nsw.errors import UnreachableError
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.model import Answer, Phase, Scheduler, Submission
from nsw.schedulers.slurm import Slurm
from nsw.transport.local import LocalTransport
from tests.exits import with_exit
from tests.fakes.machinery import write_json
from tests.far.far_nsw import connect, end_all
from tests.far.place import Far, make_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsw.errors import CommandResult
    from nsw.transport.model import Transport

CLUSTER = Path(__file__).parent / "cluster" / "cluster.py"
NOT_INSTALLED = 3  # its exit status where Slurm's packages cannot be had
FAKES = Path(__file__).parents[1] / "fakes" / "bin"
USER = "nswtest"
PORTS = {"accounted": 27110, "bare": 27120}
DEADLINE_S = 300  # other tests use the same cluster
_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def missing() -> str | None:
    """Why no real Slurm can be started here."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return "no Debian or Ubuntu, whose Slurm packages the test cluster is made of"
    if os.geteuid() == 0:
        return None
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return None
    return "neither root nor sudo without a password, which slurmd needs"


def script(folder: Path, body: str, *, head: str = "") -> Path:
    """A job script; `head` holds directives."""
    file = folder / f"job-{time.monotonic_ns()}.sh"
    file.write_text(f"#!/bin/bash\n{head}\n{body}\n")
    file.chmod(0o755)
    return file


class _Place:
    work: Path
    site_keys: ClassVar[str] = ""  # lines of a site in a sites file, beside its scheduler

    def scratch(self, campaign: Path) -> Path:
        """A campaign's folder on the site."""
        return campaign / "scratch"

    def transport(self) -> Transport:
        return LocalTransport()

    def scheduler(self, **more: object) -> BatchScheduler:
        limits = more.pop("limits", Limits())
        return BatchScheduler(Slurm(), self.transport(), str(self.work), "campaign-1", limits, **more)


class Fake(_Place):
    """Fake commands with their state in `state`."""

    def __init__(self, work: Path, patch: pytest.MonkeyPatch) -> None:
        self.work = work
        self.state = work / "fake-slurm"
        self.state.mkdir()
        patch.setenv("NSW_FAKE_SLURM", str(self.state))
        patch.setenv("NSW_FAKE_PYTHON", sys.executable)
        patch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")

    def settings(self, **values: object) -> None:
        write_json(self.state / "settings.json", values)

    def hold(self) -> None:
        """Jobs wait until `set` says otherwise."""
        (self.state / "hold").touch()

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong."""
        folder = self.state / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")

    def jobs(self) -> list[dict[str, object]]:
        return [json.loads(p.read_text()) for p in sorted(self.state.glob("jobs/*/job.json"))]

    def set(self, job: int, index: int, state: str, reason: str = "None", code: str = "0:0") -> None:
        file = self.state / "jobs" / str(job) / f"{index}.json"
        write_json(file, {"state": state, "reason": reason, "exit": code})

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start something in the work folder, with the fakes first on its PATH."""
        return subprocess.Popen(words, text=True, cwd=self.work, **_QUIET)

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, "-m", "nsw", *words)
        return with_exit(subprocess.run(argv, capture_output=True, text=True, check=False, cwd=self.work), exits)

    def expire(self, job: int) -> None:
        """The time of a running job is over."""
        (self.state / "jobs" / str(job) / "expired").touch()

    def execute(self, job: int, index: int = -1, *, restart: int = 0) -> None:
        """Run a task of a held job here and now, to its end."""
        known = json.loads((self.state / "jobs" / str(job) / "job.json").read_text())
        env = os.environ | {"SLURM_JOB_ID": str(job)} | ({"SLURM_RESTART_COUNT": str(restart)} if restart else {})
        env |= {"SLURM_ARRAY_JOB_ID": str(job), "SLURM_ARRAY_TASK_ID": str(index)} if index >= 0 else {}
        subprocess.run(["bash", *known["words"]], env=env, capture_output=True, check=True)

    def forget(self, job: int, *, squeue: bool = True, sacct: bool = True, name: str | None = None) -> None:
        """Whether squeue and sacct still know it; under a new name its id was used again."""
        file = self.state / "jobs" / str(job) / "job.json"
        old = json.loads(file.read_text())
        write_json(file, old | {"squeue": squeue, "sacct": sacct, "name": name or old["name"]})


@dataclass(frozen=True)
class Real(_Place):
    """A real Slurm; commands run as `user`."""

    scheduler_name: ClassVar[str] = "slurm"
    submits: ClassVar[str] = "sbatch"
    lists: ClassVar[str] = "squeue"

    conf: Path
    user: str
    accounting: bool
    work: Path = Path("/nonexistent")

    def transport(self) -> Transport:
        return _AsUser(self)

    def argv(self, words: Sequence[str]) -> list[str]:
        """The words as run by the submitting user; root lends it the right to read this checkout, and no more."""
        if os.geteuid() != 0:
            return list(words)
        may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups", *may_read, *words]

    @property
    def env(self) -> dict[str, str]:
        home = {"HOME": str(self.work), "XDG_STATE_HOME": str(self.work / "state")}
        return os.environ | home | {"SLURM_CONF": str(self.conf), "COLUMNS": "160"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(words), env=self.env, capture_output=True, text=True, check=False, cwd=self.work
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.argv(words), env=self.env, text=True, cwd=self.work, **_QUIET)

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        return with_exit(self.run(sys.executable, "-m", "nsw", *words), exits)

    def expire(self, job: int) -> None:
        """The time of a running job is over; slurmctld looks every half minute."""
        # of a job that began in this very second `now` is no valid end
        words = ["scontrol", "update", f"JobId={job}", "EndTime=now+1"]
        subprocess.run([*_SUDO, "env", f"SLURM_CONF={self.conf}", *words], check=True)

    def listed(self, campaign: str) -> dict[tuple[str, str], int]:
        """How many tasks each job of a campaign has, by its name and id, as squeue and sacct list them."""
        tasks: dict[tuple[str, str], set[str]] = {}
        asked = [("squeue", "--me", "-h", "-r", "-t", "all", "-o", "%F_%K|%j|%k")]
        if self.accounting:
            asked.append(("sacct", "-n", "-X", "-P", "-S", "now-1day", "-o", "JobID,JobName,Comment"))
        for words in asked:
            for line in self.run(*words).stdout.splitlines():
                id_, name, comment = line.split("|", 2)
                job, _, index = id_.partition("_")
                if comment == f"nsw:{campaign}" and "[" not in index:
                    tasks.setdefault((name, job), set()).add(index.replace("N/A", ""))
        return {key: len(some) for key, some in tasks.items()}

    @contextmanager
    def in_folder(self) -> Iterator[Real]:
        """With a folder that the user owns."""
        work = Path(tempfile.mkdtemp(prefix="nsw-slurm-work-", dir="/tmp"))
        if os.geteuid() == 0:
            shutil.chown(work, self.user)
        work.chmod(0o755)
        try:
            yield replace(self, work=work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@dataclass(frozen=True)
class Behind(Real):
    """A real Slurm behind the transport `far`: nsw is another user here, and the one over there sees no campaign."""

    far: Far | None = None
    made: list[Transport] = field(default_factory=list)

    @property
    def site_keys(self) -> str:  # type: ignore[override]
        assert self.far is not None
        return (
            f"    transport: {{kind: far, host: {USER}, config: {self.far.control}}}\n    scratch: {self.far.scratch}\n"
        )

    def scratch(self, campaign: Path) -> Path:
        assert self.far is not None
        return self.far.scratch / campaign.name

    def transport(self) -> Transport:
        assert self.far is not None
        made = connect({"transport": {"kind": "far", "host": USER, "config": str(self.far.control)}}, None, None)
        self.made.append(made)
        return made

    def _as_here(self, **how: Any) -> dict[str, Any]:
        assert self.far is not None
        return {"env": os.environ | {"COLUMNS": "160"} | self.far.environment, "text": True, "cwd": self.work, **how}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(words, **self._as_here(**_QUIET))

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, "-m", "nsw", *words)
        return with_exit(subprocess.run(argv, check=False, **self._as_here(capture_output=True)), exits)

    @contextmanager
    def in_folder(self) -> Iterator[Behind]:
        """With a folder that both users may write in."""
        with super().in_folder() as place:
            shutil.chown(place.work, 0)
            place.work.chmod(0o1777)  # as /tmp: neither can move what is the other's
            (place.work / "scripts").symlink_to(place.work)  # a job script lies here as it does there
            yield replace(self, work=place.work, far=Far(place.work, SLURM_CONF=str(self.conf)))
            for transport in self.made:
                transport.close()
            end_all()


class _AsUser(LocalTransport):
    def __init__(self, place: Real) -> None:
        super().__init__()
        self._place = place

    def run(self, argv: Sequence[str], **how: object) -> CommandResult:  # type: ignore[override]
        words = ["env", f"SLURM_CONF={self._place.conf}", *argv]
        return super().run(self._place.argv(words), **how)

    def make_folders(self, paths: Sequence[str]) -> None:
        assert self.run(["mkdir", "-p", *paths], timeout=60).returncode == 0


@dataclass(frozen=True)
class _Daemons:
    """The words that start and stop a cluster, and what its clients need."""

    root: Path
    port: int
    accounting: bool
    min_job_age: int = 300

    @property
    def place(self) -> Real:
        return Real(self.root / "etc" / "slurm.conf", _user(), self.accounting)

    def up(self) -> None:
        done = self._do("up")
        if done.returncode == NOT_INSTALLED:
            pytest.skip(f"Slurm could not be installed: {done.stderr.strip()}")
        assert done.returncode == 0, done.stdout + done.stderr

    def down(self) -> None:
        self._do("down")

    def end_controller(self, sign: str) -> None:
        """SIGTERM or SIGKILL for slurmctld; `up` starts it again."""
        pid = (self.root / "run" / "slurmctld.pid").read_text().strip()
        subprocess.run([*_SUDO, "kill", f"-{sign}", pid], check=True)

    def kill_node(self, name: str) -> None:
        """SIGKILL for a slurmd, the watchers of all jobs and what they watch: as if the power had gone."""
        pid = (self.root / "run" / f"slurmd.{name}.pid").read_text().strip()
        subprocess.run([*_SUDO, "kill", "-KILL", pid], check=True)
        for stepd in subprocess.run(
            ["pgrep", "-x", "slurmstepd"], capture_output=True, text=True, check=False
        ).stdout.split():
            environment = subprocess.run(
                [*_SUDO, "cat", f"/proc/{stepd}/environ"], capture_output=True, check=False
            ).stdout
            if f"SLURM_CONF={self.place.conf}".encode() in environment.split(b"\0"):
                job = subprocess.run(["pgrep", "-P", stepd], capture_output=True, text=True, check=False).stdout.split()
                subprocess.run([*_SUDO, "kill", "-KILL", stepd, *job], check=False)

    def _do(self, action: str) -> subprocess.CompletedProcess[str]:
        words = [
            *_SUDO,
            sys.executable,
            str(CLUSTER),
            action,
            str(self.root),
            "--user",
            _user(),
            "--port",
            str(self.port),
        ]
        words += ["--accounting"] if self.accounting else []
        words += ["--min-job-age", str(self.min_job_age)]
        return subprocess.run(words, capture_output=True, text=True, check=False)


_SUDO = () if os.geteuid() == 0 else ("sudo", "-n")


def _user() -> str:
    return USER if os.geteuid() == 0 else getpass.getuser()


@contextmanager
def shared_cluster(name: str, *, accounting: bool) -> Iterator[Real]:
    """A cluster that all processes of all sessions share; the last to leave stops it (NSW_KEEP_SLURM=1: it stays)."""
    root = Path(tempfile.gettempdir()) / f"nsw-slurm-{name}-{os.getuid()}"
    daemons = _Daemons(root, PORTS[name], accounting)
    with root.with_suffix(".lock").open("w") as lock, root.with_suffix(".users").open("w") as users:
        fcntl.flock(lock, fcntl.LOCK_EX)
        daemons.up()
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(lock, fcntl.LOCK_UN)
        try:
            yield daemons.place
        finally:
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_UN)
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                if not os.environ.get("NSW_KEEP_SLURM"):
                    daemons.down()


@contextmanager
def behind_far(cluster: Real) -> Iterator[Behind]:
    """The cluster behind `far`, with a folder of its own; only root may become the user over there."""
    make_user()
    with Behind(cluster.conf, cluster.user, cluster.accounting).in_folder() as place:
        yield place


@contextmanager
def own_cluster(*, accounting: bool, min_job_age: int = 300) -> Iterator[_Daemons]:
    """A cluster of one's own, whose daemons may be ended."""
    root = Path(tempfile.mkdtemp(prefix="nsw-slurm-own-", dir="/tmp"))
    root.chmod(0o755)
    daemons = _Daemons(root, 27200 + os.getpid() % 500 * 10, accounting, min_job_age)
    try:
        daemons.up()
        yield daemons
    finally:
        daemons.down()
        subprocess.run([*_SUDO, "rm", "-rf", str(root)], check=False)


def handed(scheduler: Scheduler, submission: Submission) -> str | None:
    """Its id, or None when there is no room for it; a refusal and doubt are raised."""
    (outcome,) = scheduler.submit([submission])
    if outcome.refused is not None:
        raise outcome.refused
    if outcome.doubt is not None:
        raise UnreachableError(outcome.doubt.message)
    return outcome.native


def found(scheduler: Scheduler, submission: Submission) -> str | None:
    """Its id, looked up by its name."""
    return scheduler.find([submission]).get(submission.name)


def submit(scheduler: BatchScheduler, submission: Submission) -> Submission:
    """Submit, and the submission with its id."""
    native = handed(scheduler, submission)
    assert native is not None
    return replace(submission, native_id=native)


def polled(
    scheduler: BatchScheduler, submission: Submission, until: Callable[[dict[int, Answer]], bool]
) -> dict[int, Answer]:
    """Poll until the answers are as wanted."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answers = scheduler.poll([submission])[submission.name]
        if until(answers):
            return answers
        assert time.monotonic() < deadline, f"still {answers}"
        time.sleep(0.1)


def all_ended(answers: dict[int, Answer]) -> bool:
    """Every task is over."""
    return all(a.phase is Phase.ENDED for a in answers.values())
