"""Stands in for bsub, bjobs, bhist, bmod, bstop, bresume, bkill, bparams and lsid; keeps its state in the folder NSW_FAKE_LSF.

Written from the vendor's manual pages. It refuses every option that it does not know and really runs the scripts, the
elements of an array one after the other. Faults and settings come from the test: ../machinery.py.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machinery import Fake, fail, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(os.environ.get("NSW_FAKE_LSF", "/nonexistent"))
FAKE = Fake(ROOT, {"max_array": 1000, "queues": ["normal", "short"], "gpus": 8, "says": ""})
FORBIDDEN = ("LSB_", "BSUB_")
VALUED = {"J", "o", "env", "Jd", "W", "w", "n", "R", "M", "gpu", "q", "P", "U"}
FLAGS = {"ti", "x"}
STAMP = "Thu Nov 19 12:00:"


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def folders() -> Iterator[tuple[dict[str, Any], Path]]:
    for folder in sorted((ROOT / "jobs").glob("*"), key=lambda p: int(p.name)):
        if (folder / "job.json").exists():
            yield json.loads((folder / "job.json").read_text()), folder


def elements(folder: Path) -> list[tuple[int, dict[str, Any], Path]]:
    """Index (0: no array), what is known, the file."""
    found = [(int(p.stem), json.loads(p.read_text()), p) for p in folder.glob("*.json") if p.stem != "job"]
    return sorted(found, key=lambda one: one[0])


def change(file: Path, stat: str, code: int = 0, reason: str = "", event: str = "") -> None:
    known = json.loads(file.read_text()) if file.exists() else {"events": []}
    events = [*known["events"], event] if event else known["events"]
    write_json(file, {"stat": stat, "code": code, "reason": reason, "pend": "", "events": events})


# --- bsub -----------------------------------------------------------------------------------------------------


def options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        name = word[1:]
        if not word.startswith("-") or (name not in VALUED and name not in FLAGS):
            fail(f"{word}: Illegal option. Job not submitted.", 255)
        found[name] = left.pop(0) if name in VALUED else ""
    return found


def bsub(argv: list[str]) -> None:
    script = sys.stdin.read()
    lines = [line[6:] for line in script.splitlines() if line.startswith("#BSUB ")]
    asked = options([word for line in lines for word in shlex.split(line)]) | options(argv)
    check(asked)
    match = re.fullmatch(r"([^\[]+)(?:\[([\d,-]+)\](?:%(\d+))?)?", asked["J"])
    assert match is not None
    indices = numbers(match[2]) if match[2] else [0]
    if max(indices) > FAKE.setting("max_array"):
        fail("Job array index too large. Job not submitted.", 255)
    with FAKE.locked():
        counter = ROOT / "counter"
        job = int(counter.read_text()) + 1 if counter.exists() else 101
        counter.write_text(str(job))
        folder = ROOT / "jobs" / str(job)
        folder.mkdir(parents=True)
        for index in indices:
            change(folder / f"{index}.json", "PEND", event="Submitted from host <login1>, to Queue <normal>")
        (folder / "script").write_text(script)
        write_json(folder / "job.json", {
            "id": job, "name": match[1], "limit": match[3], "log": asked["o"], "env": asked.get("env", "all"),
            "about": asked.get("Jd"), "minutes": asked.get("W"), "after": asked.get("w"), "orphan": "ti" in asked,
            "listed": True, "remembered": True,
        })  # fmt: skip
    if not (ROOT / "hold").exists():
        start(job)
    print(FAKE.setting("says"), end="")
    queue = f"queue <{asked['q']}>" if "q" in asked else "default queue <normal>"
    print(f"Job <{job}> is submitted to {queue}.")


def start(job: int) -> None:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([sys.executable, __file__, "_run", str(job)], start_new_session=True, **quiet)


def check(asked: dict[str, str]) -> None:
    if asked.get("q", "normal") not in FAKE.setting("queues"):
        fail(f"{asked['q']}: No such queue. Job not submitted.", 255)
    if int(asked.get("gpu", "num=0").removeprefix("num=")) > FAKE.setting("gpus"):
        fail("Bad GPU resource requirement. Job not submitted.", 255)


# --- the hosts ------------------------------------------------------------------------------------------------


def _run(argv: list[str]) -> None:
    folder = ROOT / "jobs" / argv[0]
    job = json.loads((folder / "job.json").read_text())
    if job["after"] and not met(job["after"]):
        with FAKE.locked():
            for _, _, file in elements(folder):
                change(
                    file, "EXIT", 0, "TERM_ORPHAN_SYSTEM: orphaned job terminated by LSF", "Exited; TERM_ORPHAN_SYSTEM"
                )
        return
    for index, _, file in elements(folder):
        while json.loads(file.read_text())["stat"] == "PSUSP":
            time.sleep(0.05)
        with FAKE.locked():
            if json.loads(file.read_text())["stat"] != "PEND":
                continue
            change(file, "RUN", event="Starting (Pid 4711)")
        code = run_element(job, index)
        with FAKE.locked():
            if json.loads(file.read_text())["stat"] == "RUN":
                if code == 0:
                    change(file, "DONE", event="Done successfully. The CPU time used is 0.1 seconds")
                else:
                    change(file, "EXIT", code, "", f"Exited with exit code {code}. The CPU time used is 0.1 seconds")


def met(condition: str) -> bool:
    """Waits for the job of `done(ID)`; whether it succeeded."""
    match = re.fullmatch(r"done\((\d+)\)", condition)
    assert match is not None
    while True:
        stats = {one["stat"] for _, one, _ in elements(ROOT / "jobs" / match[1])}
        if stats <= {"DONE", "EXIT"}:
            return stats == {"DONE"}
        time.sleep(0.05)


def run_element(job: dict[str, Any], index: int) -> int:
    passed = dict(part.strip().split("=", 1) for part in job["env"].split(",") if "=" in part)
    env = {k: v for k, v in os.environ.items() if not k.startswith(FORBIDDEN)} | passed
    env |= {"LSB_JOBID": str(job["id"]), "LSB_JOBINDEX": str(index), "LSB_JOBNAME": job["name"]}
    folder = ROOT / "jobs" / str(job["id"])
    log_path = Path(job["log"].replace("%I", str(index)).replace("%J", str(job["id"])))
    with log_path.open("a") as log:
        process = subprocess.Popen(["bash", folder / "script"], env=env, stdout=log, stderr=log, start_new_session=True)
        (folder / f"{index}.pid").write_text(str(process.pid))
        code = process.wait()
    with log_path.open("a") as log:
        log.write("\n------------------------------------------------------------\nSender: LSF System\n")
    return 128 - code if code < 0 else code


def execute(argv: list[str]) -> None:
    """For tests: run an element of a held job here and now."""
    folder = ROOT / "jobs" / argv[0]
    job = json.loads((folder / "job.json").read_text())
    run_element(job, int(argv[1]))


# --- asking ---------------------------------------------------------------------------------------------------


def bjobs(argv: list[str]) -> None:
    finished, argv = argv[:1] == ["-a"], argv[argv[:1] == ["-a"] :]
    if argv[:2] != ["-noheader", "-o"]:
        fail(f"bjobs: Illegal option: {argv}", 255)
    fields = argv[2].split(" ")
    match = re.fullmatch(r"delimiter='(.)'", fields[-1])
    between = match[1] if match is not None else " "
    fields = fields[: -1 if match is not None else None]
    wanted = [word.partition("[")[0] for word in argv[3:]]
    code, printed = 0, False
    found = [(job, folder) for job, folder in folders() if job["listed"]]
    for job_id in wanted:
        if job_id not in {str(job["id"]) for job, _ in found}:
            print(f"Job <{job_id}> is not found", file=sys.stderr)
            code = 255
    for job, folder in found:
        if wanted and str(job["id"]) not in wanted:
            continue
        for index, one, _ in elements(folder):
            if one["stat"] in {"DONE", "EXIT"} and not finished:
                continue
            printed = True
            values = {
                "jobid": job["id"], "jobindex": index, "stat": one["stat"],
                "exit_code": one["code"] or "-", "name": f"{job['name']}[{index}]" if index else job["name"],
                "user": job.get("owner") or pwd.getpwuid(os.getuid()).pw_name, "exit_reason": one["reason"] or "-", "pend_reason": one["pend"] or "-",
            }  # fmt: skip
            print(between.join(str(values[field]) for field in fields))
    if not wanted and not printed:
        fail("No job found", 255)
    sys.exit(code)


def bhist(argv: list[str]) -> None:
    if argv[:4] != ["-a", "-n", "0", "-l"]:
        fail(f"bhist: Illegal option: {argv}", 255)
    by_name = argv[5] if argv[4] == "-J" else None
    wanted = argv[4:] if by_name is None else []
    printed = False
    for job, folder in folders():
        if not job["remembered"] or (str(job["id"]) not in wanted and job["name"] != by_name):
            continue
        for index, one, _ in elements(folder):
            printed = True
            brackets = f"[{index}]" if index else ""
            said = f"Job <{job['id']}{brackets}>, Job Name <{job['name']}{brackets}>, User <me>, Project <default>, Command <x>"
            wrapped(said)
            for number, event in enumerate(one["events"]):
                wrapped(f"{STAMP}{number:02}: {event};")
            print("\nSummary of time in seconds spent in various states by  Thu Nov 19 12:01:00")
            print(
                "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n  1        0        1        0        0        0        2"
            )
            print("-" * 78)
    if not printed:
        fail("No matching job found", 255)


def wrapped(text: str) -> None:
    """As bhist breaks lines: after 79 characters, wherever that is."""
    first, rest = text[:79], text[79:]
    print("\n".join([first, *(" " * 21 + rest[at : at + 58] for at in range(0, len(rest), 58))]))


def bparams(argv: list[str]) -> None:
    assert argv == ["-l"]
    print(f"\nMaximum size of a job array:\n    MAX_JOB_ARRAY_SIZE = {FAKE.setting('max_array')}\n")


def lsid(argv: list[str]) -> None:
    assert not argv
    print("IBM Spectrum LSF Standard 10.1.0.0, May 10 2023\n\nMy cluster name is c1\nMy master name is login1")


# --- changing -------------------------------------------------------------------------------------------------


def bmod(argv: list[str]) -> None:
    match = re.fullmatch(r"-J %(\d+) (\d+)", " ".join(argv))
    if match is None:
        fail(f"bmod: Illegal option: {argv}", 255)
    file = ROOT / "jobs" / match[2] / "job.json"
    with FAKE.locked():
        write_json(file, json.loads(file.read_text()) | {"limit": match[1]})
    print(f"Parameters of job <{match[2]}> are being changed")


def named(word: str) -> tuple[Path, list[int] | None]:
    """The folder of a job, and the elements that are meant; None for all."""
    match = re.fullmatch(r"(\d+)(?:\[([\d,-]+)\])?", word)
    if match is None:
        fail(f"{word}: Illegal job ID.", 255)
    return ROOT / "jobs" / match[1], numbers(match[2]) if match[2] else None


def signalled(argv: list[str], said: str, moves: dict[str, tuple[str, int]]) -> None:
    """Move elements from one state to another, and send what runs a signal."""
    code = 0
    for word in argv:
        folder, wanted = named(word)
        moved = False
        with FAKE.locked():
            for index, one, file in elements(folder) if folder.is_dir() else []:
                if one["stat"] in moves and (wanted is None or index in wanted):
                    stat, number = moves[one["stat"]]
                    change(file, stat, event=said)
                    moved = True
                    if number:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(int((folder / f"{index}.pid").read_text()), number)
        if moved:
            print(f"Job <{word}> is being {said}")
        else:
            why = "Job has already finished" if folder.is_dir() else "No matching job found"
            print(f"Job <{word}>: {why}", file=sys.stderr)
            code = 255
    sys.exit(code)


def bstop(argv: list[str]) -> None:
    signalled(argv, "stopped", {"PEND": ("PSUSP", 0), "RUN": ("USUSP", signal.SIGSTOP)})


def bresume(argv: list[str]) -> None:
    signalled(argv, "resumed", {"PSUSP": ("PEND", 0), "USUSP": ("RUN", signal.SIGCONT)})


def bkill(argv: list[str]) -> None:
    code = 0
    for word in argv:
        folder, wanted = named(word)
        if not folder.is_dir():
            print(f"Job <{word}>: No matching job found", file=sys.stderr)
            code = 255
            continue
        with FAKE.locked():
            live = [(index, file) for index, one, file in elements(folder)
                    if one["stat"] not in {"DONE", "EXIT"} and (wanted is None or index in wanted)]  # fmt: skip
            for index, file in live:
                event = "Signal <KILL> requested by user or administrator <me>"
                change(file, "EXIT", 130, "TERM_OWNER: job killed by owner", event)
                change(file, "EXIT", 130, "TERM_OWNER: job killed by owner", "Exited; TERM_OWNER: job killed by owner")
                pid = folder / f"{index}.pid"
                if pid.exists():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(int(pid.read_text()), signal.SIGTERM)  # SIGKILL follows after ten seconds
        if live:
            print(f"Job <{word}> is being terminated")
        else:
            print(f"Job <{word}>: Job has already finished", file=sys.stderr)
            code = 255
    sys.exit(code)


def main() -> None:
    command, argv = sys.argv[1], sys.argv[2:]
    if command in {"_run", "_execute"}:
        {"_run": _run, "_execute": execute}[command](argv)
        return
    work = {
        "bsub": bsub,
        "bjobs": bjobs,
        "bhist": bhist,
        "bmod": bmod,
        "bstop": bstop,
        "bresume": bresume,
        "bkill": bkill,
        "bparams": bparams,
        "lsid": lsid,
    }
    FAKE.run(command, lambda: work[command](argv), FORBIDDEN)


if __name__ == "__main__":
    main()
