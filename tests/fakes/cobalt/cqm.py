"""The queue manager of the fake Cobalt: jobs and their states, run as processes of this machine.

State is one JSON file, `cqm.json`, under the lock of its folder. Clients change it; one server process, started by
qsub and gone when the queue is empty, lets time pass: `step` is what it does each time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from machinery import Fake, write_json

if TYPE_CHECKING:
    import subprocess
    from io import TextIOWrapper
    from typing import BinaryIO

Job = dict[str, Any]

ACTIVE = ("starting", "running", "killing", "exiting")
DEFAULTS: dict[str, Any] = {
    "nodes": 16,
    "minute_s": 60.0,  # a test makes minutes short
    "minimum_min": 5,
    "log_s": 0.2,  # the queue manager's lines reach the .cobaltlog so late; the real one: up to 10 s
    "kill_s": 300.0,  # from TERM to KILL
    "dep_fail_s": 0.2,  # a failed parent is noticed so late; the real one: up to 60 s
    "save_s": 10.0,  # the state is saved so often
    "tick_s": 0.03,
    "down": "",  # "cqm": nobody listens; "all": not even the service locator
    "filter": "",  # a site's filter, run by qsub
}
EMPTY: dict[str, Any] = {
    "next": 1,
    "jobs": {},
    "ended": {},
    "late": [],
    "queues": {name: {"state": "running"} for name in ("debug", "default")},
}


class State(Fake):
    """The state folder, with a JSON file each for what the queue manager knows and what it has saved."""

    def read(self, name: str) -> Any:
        try:
            return json.loads((self.root / f"{name}.json").read_bytes())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: object) -> None:
        write_json(self.root / f"{name}.json", data)


def state_of_tests() -> State:
    return State(Path(os.environ["NSW_FAKE_COBALT"]), DEFAULTS)


def stamp(at: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y +0000 (UTC)", time.gmtime(at))


def load(state: State) -> dict[str, Any]:
    found: dict[str, Any] = state.read("cqm") or EMPTY
    return found


def log(cqm: dict[str, Any], job: Job, text: str, late_s: float) -> None:
    """A line for the job's .cobaltlog, written when its time has come."""
    now = time.time()
    cqm["late"].append({"due": now + late_s, "path": job["cobaltlog"], "text": f"{stamp(now)} Info: {text}\n"})


def state_name(job: Job, cqm: dict[str, Any]) -> str:
    if job["state"] in ACTIVE:
        return str(job["state"])
    if job["user_hold"]:
        return "user_hold"
    if job["admin_hold"]:
        return "admin_hold"
    if job["dep_fail"]:
        return "dep_fail"
    if unmet(job):
        return "dep_hold"
    return "queued"


def unmet(job: Job) -> list[str]:
    return [dep for dep in job["deps"] if dep not in job["met"]]


class Server:
    """What only one process knows: the jobs' processes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.children: dict[int, subprocess.Popen[bytes]] = {}
        self.saved = time.time()

    def step(self) -> bool:
        """Let time pass; whether there is anything left to do."""
        with self.state.locked():
            cqm = load(self.state)
            now = time.time()
            if not self.state.setting("down"):
                self._jobs(cqm, now)
                self._write_late(cqm, now)
                if now - self.saved >= self.state.setting("save_s"):
                    self.state.write("saved", cqm)
                    self.saved = now
            self.state.write("cqm", cqm)
            return bool(cqm["jobs"] or cqm["late"])

    def _jobs(self, cqm: dict[str, Any], now: float) -> None:
        for job in list(cqm["jobs"].values()):
            self._dependencies(job, cqm, now)
            before = job["state"]
            if job["state"] == "queued":
                self._schedule(job, cqm, now)
            elif job["state"] == "starting":
                self._launch(job)
                job["state"] = "running"
            elif job["state"] in {"running", "killing"}:
                self._watch(job, cqm, now)
            elif job["state"] == "exiting":
                cqm["ended"][str(job["jobid"])] = [job["exit"], now]
                del cqm["jobs"][str(job["jobid"])]
            if job["state"] != before:
                job["since"] = now

    def _dependencies(self, job: Job, cqm: dict[str, Any], now: float) -> None:
        late_s = self.state.setting("log_s")
        if unmet(job) and not job["said_hold"]:
            job["said_hold"] = True
            log(cqm, job, "dep hold placed on job", late_s)
        for dep in unmet(job):
            code, at = cqm["ended"].get(dep, (None, 0.0))
            if at < job["submitted"] or code is None:
                continue  # one that had ended before is never met
            if code == 0:
                job["met"].append(dep)
            elif now - at >= self.state.setting("dep_fail_s"):
                job["dep_fail"] = True

    def _schedule(self, job: Job, cqm: dict[str, Any], now: float) -> None:
        queue = cqm["queues"][job["queue"]]["state"]
        if state_name(job, cqm) != "queued" or queue != "running":
            return
        names = [f"cc{n:02}" for n in range(1, self.state.setting("nodes") + 1)]
        taken = {node for other in cqm["jobs"].values() for node in other["location"]}
        free = [name for name in names if name not in taken]
        if len(free) >= job["nodes"]:
            job.update(state="starting", location=free[: job["nodes"]], started=now)

    def _launch(self, job: Job) -> None:
        nodefile = self.state.root / f"cobalt.{job['jobid']}"
        nodefile.write_text("".join(f"{node}\n" for node in job["location"]))
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "COBALT_NODEFILE": str(nodefile),
            "COBALT_PARTNAME": job["location"][0],
            "COBALT_JOBID": str(job["jobid"]),
            "COBALT_STARTTIME": str(int(job["started"])),
            "COBALT_ENDTIME": str(int(job["started"] + job["walltime"] * 60)),
            "COBALT_PARTSIZE": str(job["nodes"]),
            "COBALT_JOBSIZE": str(job["nodes"]),
            "LOGNAME": job["user"],
            "USER": job["user"],
            "HOME": job["home"],
            "PWD": job["cwd"],
        }
        argv = [job["command"], *job["args"]]
        lines = ["Command: " + " ".join(f"'{word}'" for word in argv), "Environment:"]
        lines += [f"{name}={value}" for name, value in env.items()]
        append(job["cobaltlog"], "".join(f"{stamp(time.time())} {line}\n" for line in lines))
        import subprocess

        with (
            opened(job["outputpath"] or f"{job['cwd']}/{job['jobid']}.output") as stdout,
            opened(job["errorpath"] or f"{job['cwd']}/{job['jobid']}.error") as stderr,
        ):
            child = subprocess.Popen(
                argv, env=env, cwd=job["cwd"], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
        self.children[child.pid] = child
        job["pid"] = child.pid

    def _watch(self, job: Job, cqm: dict[str, Any], now: float) -> None:
        setting = self.state.setting
        code = self._ended(job["pid"])
        if code is not None:
            job.update(state="exiting", exit=code)
            if not job["killed"]:
                text = f"task completed normally with an exit code of {code}; initiating job cleanup and removal"
                log(cqm, job, text, setting("log_s"))
            return
        limit = job["walltime"] or cqm["queues"][job["queue"]].get("maxtime", 24 * 60)
        if not job["killed"] and now - job["started"] >= limit * setting("minute_s"):
            log(cqm, job, "maximum execution time exceeded; initiating job termination", setting("log_s"))
            job["killed"] = "time"
        if job["killed"] and job["state"] == "running":
            job.update(state="killing", since=now)
            send(job["pid"], 15)
        elif job["state"] == "killing" and now - job["since"] >= setting("kill_s"):
            send(job["pid"], 9)

    def _ended(self, pid: int) -> int | None:
        child = self.children.get(pid)
        if child is None:  # started by an earlier server
            return None if alive(pid) else 1234567
        code = child.poll()
        if code is None:
            return None
        del self.children[pid]
        return 128 - code if code < 0 else code

    def _write_late(self, cqm: dict[str, Any], now: float) -> None:
        waits = []
        for line in cqm["late"]:
            if line["due"] > now:
                waits.append(line)
            else:
                append(line["path"], line["text"])
        cqm["late"] = waits

    def serve(self) -> None:
        """Step until the queue has been empty for a while; the only server of this folder."""
        with (self.state.root / "server").open("w") as file:
            if not take(file, tries=50):
                return
            idle = 0
            while True:
                idle = 0 if self.step() else idle + 1
                if idle >= 20:
                    with self.state.locked():  # a client that comes now finds the lock free
                        if not load(self.state)["jobs"]:
                            fcntl.flock(file, fcntl.LOCK_UN)
                            return
                time.sleep(self.state.setting("tick_s"))


def take(file: TextIOWrapper, tries: int) -> bool:
    for _ in range(tries):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def opened(path: str) -> BinaryIO:
    """A file for a job's output; where there is no room for it what the job says is lost."""
    try:
        return Path(path).open("ab")
    except OSError:
        return Path(os.devnull).open("ab")


def append(path: str, text: str) -> None:
    """The queue manager writes as the user, only where the user can write."""
    try:
        with Path(path).open("a") as file:
            file.write(text)
    except OSError:
        pass


def serve_in_background(state: State) -> None:
    with (state.root / "server").open("w") as file:
        if not take(file, tries=1):
            return
    import subprocess

    subprocess.Popen(
        [sys.executable, "-E", "-s", "-S", __file__],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def crash(state: State) -> None:
    """The queue manager is killed and started again: what it had not saved is forgotten, ids are given out again.

    Jobs that run go on running; lines that waited to be written are lost.
    """
    with state.locked():
        old = load(state)
        state.write("cqm", (state.read("saved") or EMPTY) | {"late": [], "queues": old["queues"]})


if __name__ == "__main__":
    if sys.argv[1:] == ["crash"]:
        crash(state_of_tests())
    else:
        Server(state_of_tests()).serve()
