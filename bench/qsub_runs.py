"""A campaign of 1,000 runs on Cobalt and on PBS: nsw's own CPU, from plan to answer.

    python bench/qsub_runs.py [ROUNDS] [TREE...]

The batch system costs nothing: inside nsw's process `qsub` writes what a finished run leaves, `qstat` knows that, and
the CPU of both is taken off. The trees (by default this one) take turns, so that two versions of nsw can be compared.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS, WANTED_MS = 1000, 5
RECIPE = f"""nsw: 1
name: many
app: {{command: 'true'}}
matrix: {{n: {{range: [1, {RUNS}]}}}}
passes: [baseline]
resources: {{gpus: 0, time: 5m}}
"""
SITE = "nsw: 1\nsites: {s: {scheduler: SCHEDULER, account: proj, limits: {max_in_flight: 20}}}\n"
STATUS = """state=done
job=J
job_id=ID
task=TASK
attempt=1
restart=0
host=h
gpus=
start=1.0
end=2.0
exit_code=0
reason=
"""
RUN = ("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--yes", "--root", "campaigns")


def end_run(scratch: Path, task: int, job: str) -> None:
    """What a job leaves of a run that is done."""
    folder = scratch / "runs" / f"n-{task + 1}.baseline.r1" / "attempt-1"
    folder.mkdir(parents=True, exist_ok=True)
    status = STATUS.replace("ID", job).replace("TASK", str(task))
    for name, text in (("claim", status), ("status", status), ("stdout", ""), ("stderr", "")):
        (folder / name).write_text(text)


class Cobalt:
    """A job is over, with its .cobaltlog, once qsub has returned."""

    def __init__(self) -> None:
        self.jobs = 0

    def qsub(self, words: list[str]) -> tuple[int, str, str]:
        """A job of one task."""
        self.jobs += 1
        log = Path(words[words.index("-O") + 1])
        end_run(log.parents[1], int(words[-1]), str(self.jobs))
        said = "Info: task completed normally with an exit code of 0; initiating job cleanup and removal"
        Path(f"{log}.cobaltlog").write_text(f"Jobid: {self.jobs}\n{said}\n")
        return 0, f"{self.jobs}\n", ""

    def qstat(self, words: list[str]) -> tuple[int, str, str]:
        """No job is in the queue."""
        return (0, "", "") if "-Q" in words else (1, "", "")


class Pbs:
    """An array is over once qsub has returned."""

    FACTS = "Server: s\n    pbs_version = 23.06.06\n    max_array_size = 10000\n    job_history_enable = True\n"
    SUBJOB = "Job Id: 1[{}].s\n    Job_Name = j\n    job_state = X\n    Exit_status = 0\n    array_index = {}\n"

    def qsub(self, words: list[str]) -> tuple[int, str, str]:
        """One array of all tasks."""
        scratch = Path(words[words.index("-o") + 1]).parents[1]
        for task in range(RUNS):
            end_run(scratch, task, f"1[{task}].s")
        return 0, "1[].s\n", ""

    def qstat(self, words: list[str]) -> tuple[int, str, str]:
        """All subjobs, in the history alone."""
        if "-B" in words:
            return 0, self.FACTS, ""
        if "-x" in words:
            return 0, "\n".join(self.SUBJOB.format(task, task) for task in range(RUNS)), ""
        return 35, "", "qstat: 1[].s Job has finished, use -x or -H to obtain historical job information\n"


def carry_out(scheduler: str) -> None:
    """nsw, in this process; prints the CPU seconds that it used."""
    from nsw.cli.main import run
    from nsw.errors import CommandResult
    from nsw.schedulers import batch
    from nsw.transport.local import LocalTransport

    site = Cobalt() if scheduler == "cobalt" else Pbs()
    batch.FIRST_S = 0.01  # nothing is waited for
    really, free = LocalTransport.run, 0.0

    def answer(self: LocalTransport, argv: list[str], **named: object) -> CommandResult:
        if argv[0] not in {"qsub", "qstat"}:
            return really(self, argv, **named)  # type: ignore[arg-type]
        nonlocal free
        began = time.process_time()
        result = CommandResult(tuple(argv), *getattr(site, argv[0])(list(argv)))
        free += time.process_time() - began
        return result

    LocalTransport.run = answer  # type: ignore[method-assign,assignment]
    code = run(list(RUN))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print("used", used.ru_utime + used.ru_stime - free, file=sys.stderr)
    sys.exit(code)


def seconds(scheduler: str, tree: Path) -> float:
    """CPU seconds of a campaign."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "recipe.yaml").write_text(RECIPE)
        (home / "sites.yaml").write_text(SITE.replace("SCHEDULER", scheduler))
        done = subprocess.run(
            [sys.executable, __file__, "--carry-out", scheduler], cwd=home, env=os.environ | {"PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return float(next(line for line in reversed(done.stderr.splitlines()) if line.startswith("used ")).split()[1])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    trees = [Path(one).resolve() for one in sys.argv[2:]] or [ROOT]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for scheduler in ("cobalt", "pbs"):
        used: dict[Path, list[float]] = {tree: [] for tree in trees}
        for _ in range(rounds):
            for tree in trees:
                used[tree].append(seconds(scheduler, tree))
        for tree, found in used.items():
            each = f"min {min(found):.2f} median {statistics.median(found):.2f} max {max(found):.2f} s CPU"
            per_run = f"{statistics.median(found) / RUNS * 1e3:.2f} ms a run (wanted: {WANTED_MS})"
            where = f"  {tree}" if len(trees) > 1 else ""
            print(f"{scheduler:8} {each}, {per_run}, load {os.getloadavg()[0]:.1f}{where}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--carry-out"]:
        carry_out(sys.argv[2])
    main()
