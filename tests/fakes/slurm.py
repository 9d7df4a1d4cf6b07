"""Stands in for sbatch, squeue, sacct, scontrol, scancel and sinfo; keeps its state in the folder NSW_FAKE_SLURM.

It refuses every option that it does not know, so that a command which changes is noticed, and it really runs the
scripts, one task after the other. Faults and settings come from the test: machinery.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from machinery import Fake, fail, processes_of, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(os.environ.get("NSW_FAKE_SLURM", "/nonexistent"))
LIVE = ("PENDING", "RUNNING", "COMPLETING")
FORBIDDEN = ("SBATCH_", "SQUEUE_", "SACCT_", "SLURM_")
FAKE = Fake(ROOT, {
    "max_array": 1001,
    "accounting": True,
    "partitions": ["gpu", "short"],
    "gpus": 8,
    "nodes": [],
    "min_job_age": 300,
    "prints": "{id}",
})  # fmt: skip


class Parser(argparse.ArgumentParser):
    def __init__(self) -> None:
        super().__init__(prog="", allow_abbrev=False, add_help=False)

    def error(self, message: str) -> NoReturn:
        fail(f"{sys.argv[1]}: error: {message}", 255)


def jobs() -> Iterator[tuple[dict[str, Any], Path]]:
    for folder in sorted((ROOT / "jobs").glob("*"), key=lambda p: int(p.name)):
        if (folder / "job.json").exists():
            yield json.loads((folder / "job.json").read_text()), folder


def tasks(folder: Path) -> list[tuple[int, dict[str, Any], Path]]:
    """Index (-1: no array), what is known, the file."""
    found = [(int(p.stem), json.loads(p.read_text()), p) for p in folder.glob("*.json") if p.stem != "job"]
    return sorted(found, key=lambda t: t[0])


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


# --- sbatch ---------------------------------------------------------------------------------------------


def sbatch_parser() -> Parser:
    parser = Parser()
    for option in (
        "--job-name",
        "--comment",
        "--output",
        "--array",
        "--time",
        "--nodes",
        "--ntasks",
        "--mem",
        "--cpus-per-task",
        "--gres",
        "--gpus-per-node",
        "--gpus",
        "--partition",
        "--account",
        "--qos",
        "--constraint",
        "--reservation",
        "--open-mode",
        "--dependency",
        "--kill-on-invalid-dep",
    ):
        parser.add_argument(option)
    for flag in ("--parsable", "--test-only", "--exclusive"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def directives(script: Path) -> list[str]:
    import shlex

    lines = script.read_text().splitlines()
    return [word for line in lines if line.startswith("#SBATCH ") for word in shlex.split(line[8:])]


def sbatch(argv: list[str]) -> None:
    asked = sbatch_parser().parse_args(argv)
    script = Path(asked.words[0])
    if not script.exists():
        fail(f"sbatch: error: Unable to open file {script}")
    asked = sbatch_parser().parse_args([*directives(script), *argv])
    refused = check(asked)
    if refused and asked.test_only:
        fail(refused)
    if asked.test_only:
        print(
            "sbatch: Job 1 to start at 2030-01-01T00:00:00 using 1 processors in partition gpu",
            file=sys.stderr,
        )
        return
    indices, _, throttle = (asked.array or "-1").partition("%") if asked.array else ("", "", "")
    wanted = numbers(indices) if indices else [-1]
    with FAKE.locked():
        counter = ROOT / "counter"
        job = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(job))
        folder = ROOT / "jobs" / str(job)
        folder.mkdir(parents=True)
        for index in wanted:
            begins = {"state": "PENDING", "reason": "Priority", "exit": "0:0"}
            fails = {"state": "FAILED", "reason": "BadConstraints", "exit": "1:0"}
            write_json(folder / f"{index}.json", fails if refused else begins)
        write_json(
            folder / "job.json",
            {
                "id": job,
                "name": asked.job_name,
                "comment": asked.comment,
                "output": asked.output,
                "throttle": throttle,
                "after": asked.dependency,
                "words": asked.words,
                "squeue": True,
                "sacct": True,
            },
        )
    if refused:  # it has used up an id, and is listed under it
        fail(refused)
    if not (ROOT / "hold").exists():
        subprocess.Popen(
            [sys.executable, __file__, "_run", str(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    print(FAKE.setting("prints").replace("{id}", str(job)))


def check(asked: argparse.Namespace) -> str | None:
    """Refuse what is wrong in itself; what no node can satisfy is refused once it is a job, with these words."""
    if asked.partition is not None and asked.partition not in FAKE.setting("partitions"):
        print(f"sbatch: error: invalid partition specified: {asked.partition}", file=sys.stderr)
        fail("sbatch: error: Batch job submission failed: Invalid partition name specified")
    if asked.array and max(numbers(asked.array.partition("%")[0])) >= FAKE.setting("max_array"):
        fail("sbatch: error: Batch job submission failed: Invalid job array specification")
    if int(asked.gpus_per_node or 0) > FAKE.setting("gpus"):
        return "sbatch: error: Batch job submission failed: Requested node configuration is not available"
    return None


def _run(argv: list[str]) -> None:
    """The node: runs the tasks of a job one after the other."""
    folder = ROOT / "jobs" / argv[0]
    job = json.loads((folder / "job.json").read_text())
    for index, _, file in tasks(folder):
        with FAKE.locked():
            if json.loads(file.read_text())["state"] != "PENDING":
                continue
            write_json(file, {"state": "RUNNING", "reason": "None", "exit": "0:0"})
        code = run_task(job, index, file)
        with FAKE.locked():
            if json.loads(file.read_text())["state"] == "RUNNING":
                state = "TIMEOUT" if code is None else "COMPLETED" if code == 0 else "FAILED"
                reason = "TimeLimit" if code is None else "None" if code == 0 else "NonZeroExitCode"
                code = code or 0
                write_json(file, {"state": state, "reason": reason, "exit": f"{code}:0"})


def run_task(job: dict[str, Any], index: int, file: Path) -> int | None:
    """Its exit status; None when it was ended: by `scancel`, which writes into its file, or where its time was over:
    then the file `expired` stands in the job's folder."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")} | {"SLURM_JOB_ID": str(job["id"])}
    if index >= 0:
        env |= {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_JOB_ID": str(job["id"])}
    output = job["output"].replace("%a", str(index)).replace("%j", str(job["id"])).replace("%x", job["name"])
    with Path(output.replace("%%", "%")).open("a") as log:
        task = subprocess.Popen(["bash", *job["words"]], env=env, stdout=log, stderr=log, start_new_session=True)
        while task.poll() is None:
            cancelled = json.loads(file.read_text())["state"] != "RUNNING"
            if cancelled or (ROOT / "jobs" / str(job["id"]) / "expired").exists():
                end(task)
                return None
            time.sleep(0.02)
        return task.returncode


def end(task: subprocess.Popen[bytes]) -> None:
    """SIGTERM for every process, then SIGKILL. The program hears of it first and the script last, as with a real
    slurmstepd on a busy node: between two of them there is time to begin something else."""
    programs, shells = [], []  # all looked up before the first signal: /proc is read slowly on a busy machine
    for pid in processes_of(task.pid):
        with contextlib.suppress(ProcessLookupError):
            # coreutils' timeout makes a group of its own; subshells are in the script's
            (shells if os.getpgid(pid) == task.pid else programs).append(pid)
    for pids in (programs, [pid for pid in shells if pid != task.pid], [task.pid]):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.3)
    for pid in processes_of(task.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    task.wait()


# --- asking ---------------------------------------------------------------------------------------------


def squeue(argv: list[str]) -> None:
    parser = Parser()
    parser.add_argument("-h", action="store_true", required=True)
    for flag in ("--me", "-r"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-t", choices=["all", "failed"], required=True)
    for option in ("--name", "-j"):
        parser.add_argument(option)
    formats = parser.add_mutually_exclusive_group(required=True)
    formats.add_argument("-o")
    formats.add_argument("-O", dest="fields")
    asked = parser.parse_args(argv)
    names = asked.name.split(",") if asked.name else None
    ids = asked.j.split(",") if asked.j else None
    known = [(job, folder) for job, folder in jobs() if job["squeue"]]
    if ids is not None and len(ids) == 1 and ids[0] not in {str(job["id"]) for job, _ in known}:
        fail("slurm_load_jobs error: Invalid job id specified")  # of several it leaves out those that are none
    me = pwd.getpwuid(os.getuid()).pw_name
    for job, folder in known:
        owner = job.get("owner") or me
        if (names is not None and job["name"] not in names) or (asked.me and owner != me):
            continue
        if ids is not None and str(job["id"]) not in ids:
            continue
        for index, task in listed(folder, job, each=asked.r):
            if asked.t == "failed" and task["state"] != "FAILED":
                continue
            status, _, sign = task.get("exit", "0:0").partition(":")
            values = {
                "ArrayJobID": job["id"],
                "ArrayTaskID": index,
                "State": task["state"],
                "Name": job["name"],
                "exit_code": int(status) << 8 | int(sign),
                "%F": job["id"],
                "%K": index,
                "%T": task["state"],
                "%j": job["name"],
                "%r": task["reason"],
                "%k": job["comment"],
                "%l": "2:00",
                "%u": owner,
            }
            if asked.fields:
                print("".join(f"{values[field.partition(':')[0]]}|" for field in asked.fields.split(",")))
            else:
                print(re.sub(r"%\w", lambda m, v=values: str(v[m[0]]), asked.o))


def listed(folder: Path, job: dict[str, Any], *, each: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """As squeue names tasks; without -r those of an array that wait in one line, cut short, with all their reasons."""
    waiting: list[tuple[int, dict[str, Any]]] = []
    for index, task, _ in tasks(folder):
        if index >= 0 and task["state"] == "PENDING" and not each:
            waiting.append((index, task))
        else:
            yield "N/A" if index < 0 else str(index), task
    if waiting:
        text = spans([index for index, _ in waiting])
        text = text if len(text) <= 64 else text[:61] + "..."
        reasons = ",".join(dict.fromkeys(task["reason"] for _, task in waiting))
        yield text + (f"%{job['throttle']}" if job["throttle"] else ""), {"state": "PENDING", "reason": reasons}


def spans(found: list[int]) -> str:
    parts: list[list[int]] = []
    for number in found:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def sacct(argv: list[str]) -> None:
    if not FAKE.setting("accounting"):
        fail("Slurm accounting storage is disabled")
    parser = Parser()
    for flag in ("-P", "-n", "-X"):
        parser.add_argument(flag, action="store_true", required=True)
    for option in ("--delimiter", "-o", "-j", "--name", "-S"):
        parser.add_argument(option)
    asked = parser.parse_args(argv)
    if asked.S is not None and not re.fullmatch(r"now-\d+minutes", asked.S):
        fail(f"sacct: error: Invalid time specification (pos=0): {asked.S}")
    wanted = None if asked.j is None else [int(j) for j in asked.j.split(",")]
    midnight_hides = asked.j is None and asked.S is None  # by itself it looks no further back
    for job, folder in jobs():
        if (
            not job["sacct"]
            or (midnight_hides and job.get("yesterday"))
            or (wanted is not None and job["id"] not in wanted)
            or asked.name not in {None, job["name"]}
        ):
            continue
        for index, task, _ in tasks(folder):
            values = {
                "JobID": f"{job['id']}" if index < 0 else f"{job['id']}_{index}",
                "JobName": job["name"],
                "State": task["state"],
                "ExitCode": task["exit"],
                "NodeList": "None assigned" if task["reason"] == "BadConstraints" else "n1",
                "Timelimit": "00:02:00",
            }
            print(asked.delimiter.join(values[field] for field in asked.o.split(",")))


def scontrol(argv: list[str]) -> None:
    if argv == ["show", "config"]:
        storage = "accounting_storage/slurmdbd" if FAKE.setting("accounting") else "accounting_storage/none"
        print(f"AccountingStorageType   = {storage}\nMaxArraySize            = {FAKE.setting('max_array')}")
        print(f"MinJobAge               = {FAKE.setting('min_job_age')} sec\nSLURM_VERSION           = 22.05.8")
        return
    match = re.fullmatch(r"update JobId=(\d+) ArrayTaskThrottle=(\d+)", " ".join(argv))
    if match is None:
        fail(f"invalid entity: {argv}")
    file = ROOT / "jobs" / match[1] / "job.json"
    with FAKE.locked():
        write_json(file, json.loads(file.read_text()) | {"throttle": match[2]})


def sinfo(argv: list[str]) -> None:
    parser = Parser()
    parser.add_argument("--noheader", action="store_true", required=True)
    for flag in ("--all", "--Node"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--format", required=True)
    asked = parser.parse_args(argv)
    for number, name in enumerate(FAKE.setting("partitions")):
        if asked.format == "%P":
            print(name)
            continue
        for node in FAKE.setting("nodes"):
            values = {"%P": name + "*" * (number == 0), "%N": "n1", "%T": "idle", "%G": "(null)", "%c": 16, "%m": 64000,
                      "%f": "(null)"} | node  # fmt: skip
            print(re.sub(r"%\w", lambda m, v=values: str(v[m[0]]), asked.format))


def scancel(argv: list[str]) -> None:
    for word in argv:
        match = re.fullmatch(r"(\d+)(?:_\[([\d,-]+)\])?", word)
        if match is None:
            fail(f"scancel: error: Invalid job id {word}")
        wanted = numbers(match[2]) if match[2] else None
        folder = ROOT / "jobs" / match[1]
        with FAKE.locked():
            for index, task, file in tasks(folder) if folder.is_dir() else []:
                if task["state"] in LIVE and (wanted is None or index in wanted):
                    write_json(file, {"state": "CANCELLED", "reason": "None", "exit": "0:0"})


def main() -> None:
    command, argv = sys.argv[1], sys.argv[2:]
    if command == "_run":
        _run(argv)
        return
    work = {
        "sbatch": sbatch, "squeue": squeue, "sacct": sacct, "scontrol": scontrol, "scancel": scancel, "sinfo": sinfo,
    }[command]  # fmt: skip
    FAKE.run(command, lambda: work(argv), FORBIDDEN, kept=["SLURM_CONF"])


if __name__ == "__main__":
    main()
