"""Stands in for flux batch, jobs, cancel, job urgency, getattr and uptime; keeps its state in the folder NSW_FAKE_FLUX.

Written from flux-core's manual pages and issues. It refuses every option that it does not know and really runs the
scripts, one at a time. Faults come from the test: ../machinery.py.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machinery import Fake, fail, session_of, write_json

ROOT = Path(os.environ.get("NSW_FAKE_FLUX", "/nonexistent"))
FAKE = Fake(ROOT, {"queues": ["batch", "debug"]})
SENTINEL = re.compile(r"[^\w\n]*(?:flux|FLUX):")
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ENDED = "INACTIVE"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(f"usage: {self.prog} [OPTIONS]\n{self.prog}: error: {message}", 2)


def encoded(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return text


def number_of(word: str) -> str:
    """The base58 of an id, with either f."""
    if word[:1] not in {"f", "ƒ"} or not (ROOT / "jobs" / word[1:]).is_dir():
        fail(f"flux-job: {word}: unknown job id", 1)
    return word[1:]


def known(job: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "jobs" / job / "job.json").read_text())
    return found


def jobs() -> list[dict[str, Any]]:
    return sorted((known(path.name) for path in (ROOT / "jobs").glob("*")), key=lambda job: job["number"])


def save(job: dict[str, Any], **how: object) -> None:
    write_json(ROOT / "jobs" / job["id"] / "job.json", job | how)


def directives(script: Path) -> list[str]:
    """The words of the block of directives, as RFC 36 has it."""
    words, sentinel, is_over = [], None, False
    for line in script.read_text().splitlines():
        match = SENTINEL.match(line)
        if match is None:
            is_over = is_over or (sentinel is not None and bool(line.strip()) and not line.startswith("#"))
            continue
        if is_over:
            fail("flux-batch: ERROR: orphan 'flux:' detected", 1)
        if sentinel not in {None, match[0]}:
            fail(f"flux-batch: ERROR: sentinel changed from '{sentinel}' to '{match[0]}'", 1)
        sentinel = match[0]
        words += shlex.split(line[match.end() :], comments=True)
    return words


def batch(argv: list[str]) -> None:
    parser = Parser(prog="flux batch", allow_abbrev=False, add_help=False)
    for names in (("-N", "--nodes"), ("-n", "--nslots"), ("-c", "--cores-per-slot"), ("-g", "--gpus-per-slot")):
        parser.add_argument(*names, type=int)
    for names in (
        ("-t", "--time-limit"),
        ("-q", "--queue"),
        ("--job-name",),
        ("--output",),
        ("--urgency",),
        ("--cwd",),
    ):
        parser.add_argument(*names)
    parser.add_argument("-S", "--setattr", action="append")
    parser.add_argument("-x", "--exclusive", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    script = Path(parser.parse_args(argv).words[0])
    asked = parser.parse_args([*directives(script), *argv])
    if asked.nodes is None and asked.nslots is None:
        fail("flux-batch: ERROR: Number of slots to allocate must be specified", 1)
    if not re.fullmatch(r"\d+(?:\.\d+)?[smhd]?", asked.time_limit or "0"):
        fail(f"flux-batch: ERROR: invalid Flux standard duration '{asked.time_limit}'", 1)
    if asked.queue is not None and asked.queue not in FAKE.setting("queues"):
        fail(f"flux-batch: ERROR: [Errno 22] '{asked.queue}' is not a valid queue", 1)
    with FAKE.locked():
        number = 987_654_321_000 + len(jobs()) * 16_777_216
        job = encoded(number)
        (ROOT / "jobs" / job).mkdir(parents=True)
        (ROOT / "jobs" / job / "script").write_text(script.read_text())
        urgency = {"hold": "0", "default": "16", None: "16"}.get(asked.urgency, asked.urgency)
        save({
            "id": job, "number": number, "name": asked.job_name, "log": asked.output, "words": asked.words[1:],
            "state": "SCHED", "result": "", "code": "", "urgency": urgency, "type": "", "note": "",
        })  # fmt: skip
    _begin()
    print(f"ƒ{job}")


def _begin() -> None:
    """A process that runs what waits until nothing does."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([sys.executable, __file__, "_run"], start_new_session=True, **quiet)


def _run() -> None:
    with (ROOT / "running").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        while _run_next():
            pass


def _run_next() -> bool:
    with FAKE.locked():
        waiting = [job for job in jobs() if job["state"] == "SCHED" and job["urgency"] != "0"]
        if not waiting:
            return False
        job = waiting[0]
        env = os.environ | {"NSW_FAKE_FLUX_JOB": job["id"]}
        with Path(job["log"]).open("a") as log:
            argv = ["bash", str(ROOT / "jobs" / job["id"] / "script"), *job["words"]]
            script = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
        save(job, state="RUN", pid=script.pid)
    code = script.wait()
    with FAKE.locked():
        job = known(job["id"])
        result = "CANCELED" if job["type"] == "cancel" else "FAILED" if code else "COMPLETED"
        save(job, state=ENDED, result=result, code=str(code))
    return True


FIELDS = {
    "id.f58": "id", "state": "state", "result": "result", "returncode": "code", "urgency": "urgency",
    "name": "name", "exception.type": "type", "exception.note": "note",
}  # fmt: skip


def list_jobs(argv: list[str]) -> None:
    parser = Parser(prog="flux jobs", allow_abbrev=False, add_help=False)
    parser.add_argument("-a", action="store_true")
    parser.add_argument("-A", action="store_true")
    parser.add_argument("-n", "--no-header", action="store_true", required=True)
    parser.add_argument("-c", "--count", type=int, default=1000)
    parser.add_argument("--color", choices=["never", "always", "auto"])
    parser.add_argument("-o", "--format", required=True)
    asked = parser.parse_args(argv)
    me = pwd.getpwuid(os.getuid()).pw_name
    for job in list(reversed(jobs()))[: asked.count or None]:
        owner = job.get("owner") or me
        if not (asked.A or owner == me) or not (asked.a or job["state"] != ENDED):
            continue
        columns = {field: str(job[key]) for field, key in FIELDS.items()} | {"username": owner}
        columns["id.f58"] = f"ƒ{job['id']}"
        print(re.sub(r"\{([\w.]+)\}", lambda match: columns[match[1]], asked.format))  # noqa: B023


def cancel(argv: list[str]) -> None:
    code = 0
    with FAKE.locked():
        for word in argv:
            job = known(number_of(word))
            if job["state"] == ENDED:
                print(f"flux-cancel: {word}: job is inactive", file=sys.stderr)
                code = 1
            elif job["state"] == "RUN":
                save(job, type="cancel")
                with contextlib.suppress(ProcessLookupError):
                    for pid in session_of(job["pid"]):
                        os.kill(pid, signal.SIGTERM)
            else:
                save(job, state=ENDED, result="CANCELED", code="-128", type="cancel")
    sys.exit(code)


def urgency(argv: list[str]) -> None:
    word, wanted = argv
    with FAKE.locked():
        job = known(number_of(word))
        if job["state"] == ENDED:
            fail("flux-job: job is inactive", 1)
        save(job, urgency={"hold": "0", "default": "16"}[wanted])
    _begin()


def main() -> None:
    command, argv = sys.argv[1], sys.argv[2:]
    if command == "_run":
        _run()
        return
    if command == "getattr":
        print(f"ƒ{os.environ['NSW_FAKE_FLUX_JOB']}" if argv == ["jobid"] else fail("flux-getattr: unknown", 1))
        return
    if command == "job":
        command, *argv = argv
    work = {"batch": batch, "jobs": list_jobs, "cancel": cancel, "urgency": urgency, "uptime": lambda _: print("run")}
    if command not in work:
        fail(f"flux: `{command}' is not a flux command. See 'flux --help'", 1)
    FAKE.run({"batch": "flux"}.get(command, f"flux {command}"), lambda: work[command](argv))


if __name__ == "__main__":
    main()
