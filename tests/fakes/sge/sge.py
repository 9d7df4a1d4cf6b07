"""Stands in for qsub, qstat, qacct, qalter, qhold, qrls and qdel of Grid Engine; keeps its state in the folder NSW_FAKE_SGE.

It prints what Debian's gridengine 8.1.9 printed (tests/sge/observed), refuses every option that it does not know, and
really runs the scripts, the tasks of an array one after the other. Faults come from the test: ../machinery.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machinery import Fake, fail, write_json

ROOT = Path(os.environ.get("NSW_FAKE_SGE", "/nonexistent"))
FAKE = Fake(ROOT, {"queues": ["all.q"]})


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(f"qsub: {message}", 1)


def qsub(argv: list[str]) -> None:
    parser = Parser(prog="", allow_abbrev=False, add_help=False)
    for option in ("-N", "-j", "-t", "-tc", "-o", "-S", "-q", "-P"):
        parser.add_argument(option)
    parser.add_argument("-l", action="append")
    parser.add_argument("-terse", action="store_true", required=True)
    parser.add_argument("-notify", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    asked = parser.parse_args(argv)
    lines = [line[3:] for line in Path(asked.words[0]).read_text().splitlines() if line.startswith("#$ ")]
    own = parser.parse_args([*(word for line in lines for word in shlex.split(line)), *argv])
    if (own.q or "all.q") not in FAKE.setting("queues"):
        fail(f'Unable to run job: Job was rejected because job requests unknown queue "{own.q}".\nExiting.', 1)
    last = int(asked.t.partition("-")[2]) if asked.t else 0
    with FAKE.locked():
        job = 1 + len(list(ROOT.glob("job-*")))
        folder = ROOT / f"job-{job}"
        folder.mkdir()
        tasks = {str(n): {"state": "qw", "code": None} for n in (range(1, last + 1) if last else [0])}
        write_json(
            folder / "job.json",
            {"id": job, "name": asked.N, "log": asked.o, "words": asked.words, "tasks": tasks, "notify": own.notify},
        )
    if not (ROOT / "hold").exists():
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen([sys.executable, __file__, "_run", str(job)], start_new_session=True, **quiet)
    print(f"{job}.1-{last}:1" if last else job)


def known(job: int | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / f"job-{job}" / "job.json").read_text())
    return found


def change(job: str, task: str, **how: object) -> None:
    with FAKE.locked():
        told = known(job)
        told["tasks"][task] |= how
        write_json(ROOT / f"job-{job}" / "job.json", told)


def _run(argv: list[str]) -> None:
    job = known(argv[0])
    for task in job["tasks"]:
        while known(argv[0])["tasks"][task]["state"] == "hqw":
            time.sleep(0.05)
        if known(argv[0])["tasks"][task]["state"] != "qw":
            continue
        change(argv[0], task, state="r")
        env = os.environ | {"JOB_ID": argv[0], "SGE_TASK_ID": "undefined" if task == "0" else task}
        with Path(job["log"].replace("$TASK_ID", task)).open("a") as log:
            script = subprocess.Popen(["bash", *job["words"]], env=env, stdout=log, stderr=log, start_new_session=True)
            change(argv[0], task, pid=script.pid)
            code = script.wait()
        if known(argv[0])["tasks"][task]["state"] == "r":
            change(argv[0], task, state="ended", code=code)


def jobs() -> list[dict[str, Any]]:
    return [known(path.name.removeprefix("job-")) for path in sorted(ROOT.glob("job-*"))]


def qstat(argv: list[str]) -> None:
    assert argv == ["-xml"]
    print("<?xml version='1.0'?>\n<job_info><queue_info>")
    for job in jobs():
        for task, told in job["tasks"].items():
            if told["state"] not in {"ended", "deleted"}:
                tasks = "" if task == "0" else f"<tasks>{task}</tasks>"
                print(f'<job_list state="x"><JB_job_number>{job["id"]}</JB_job_number><JB_name>{job["name"]}</JB_name>'
                      f"<JB_owner>{job.get('owner') or pwd.getpwuid(os.getuid()).pw_name}</JB_owner>"
                      f"<state>{told['state']}</state>{tasks}</job_list>")  # fmt: skip
    print("</queue_info></job_info>")


def qacct(argv: list[str]) -> None:
    assert argv[0] == "-j"
    found = False
    for job in jobs():
        if argv[1] not in {str(job["id"]), job["name"]}:
            continue
        for task, told in job["tasks"].items():
            if told["state"] == "ended":
                found = True
                print("=" * 62)
                print(f"qname        all.q\njobname      {job['name']}\njobnumber    {job['id']}")
                print(f"taskid       {'undefined' if task == '0' else task}")
                print(f"failed       {told.get('failed', '0')}    \nexit_status  {told['code']}                   ")
    if not found:
        fail(f"error: job {'id' if argv[1].isdigit() else 'name'} {argv[1]} not found", 1)


def qalter(argv: list[str]) -> None:
    assert re.fullmatch(r"-tc \d+ \d+", " ".join(argv))


def hold(argv: list[str], *, held: bool) -> None:
    """Of tasks that run too: these go on, and only a new start would be held."""
    (ids,) = argv
    code = 0
    for job in ids.split(","):
        if not (ROOT / f"job-{job}").is_dir():
            print(f'denied: job "{job}" does not exist')
            code = 3
            continue
        for task, told in known(job)["tasks"].items():
            if told["state"] not in {"ended", "deleted"}:
                state = told["state"].removeprefix("h")
                change(job, task, state=f"h{state}" if held else state)
        print(f"modified hold of job {job}")
    sys.exit(code)


def qdel(argv: list[str]) -> None:
    for word in argv:
        job, _, span = word.partition(".")
        first, _, last = span.partition("-")
        for task, told in known(job)["tasks"].items():
            wanted = not span or int(first) <= int(task) <= int(last or first)
            if wanted and told["state"] not in {"ended", "deleted"}:
                if "q" in told["state"]:  # what never began leaves no record for qacct
                    change(job, task, state="deleted")
                else:
                    change(job, task, state="ended", code=137, failed="100 : assumedly after job")
                    if told.get("pid"):  # SIGUSR2 a minute before with -notify; to the group of the script alone
                        number = signal.SIGUSR2 if known(job)["notify"] else signal.SIGKILL
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(told["pid"], number)
                print(f"me has deleted job {word}")


def main() -> None:
    command, argv = sys.argv[1], sys.argv[2:]
    if command == "_run":
        _run(argv)
        return
    work = {
        "qsub": qsub, "qstat": qstat, "qacct": qacct, "qalter": qalter, "qdel": qdel,
        "qhold": lambda argv: hold(argv, held=True), "qrls": lambda argv: hold(argv, held=False),
    }[command]  # fmt: skip
    FAKE.run(command, lambda: work(argv))


if __name__ == "__main__":
    main()
