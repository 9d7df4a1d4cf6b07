"""Record the cases of truth.yaml on a machine with a GPU, nsys, ncu and nvcc.

    python record.py --nsys NSYS --out FOLDER [--programs kernels,others,host] [--parts time,ncu,nsys] [--only k01,t03]
                     [--budget SECONDS] [--workers 5]

Each part goes on after a case that fails, and ends within the budget. In the folder:

    times.txt             milliseconds a step of each case, ill and cured, run alone: lines `time CASE MS`
    counters/ID.csv       the raw page of ncu: each launch of a step, by the metrics of metrics.txt
    counters/cost.txt     passes and seconds of metric sets, and of `--set full`, for the same launches
    timelines/ID.sqlite.gz  reduced exports of nsys
    sources/ID.csv        the source page of ncu, for some cases
    failures.txt          what failed, with the end of its output

It needs PyYAML, and PyTorch, Triton and JAX for their cases. pack.py makes recordings of it. Programs that are traced
wait for each other before they touch the GPU (DIAGNOSIS_LOCK): one starts and another is exported while a third runs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PARTS = ("eighth", "ninth", "tenth")  # each of another author: PART_kernels.cu, PART_host.cu, PART_python.py
STEPS = {
    "kernels": 12, "others": 12, "triton": 12, "host": 20, "torch": 12, "jax": 12, "two": 8,
    **{f"{part}_{kind}": steps for part in PARTS for kind, steps in (("kernels", 12), ("host", 20), ("python", 12))},
}  # fmt: skip
COMPILED = {
    "kernels": "kernels.cu", "others": "kernels_others.cu", "host": "host.cu",
    **{f"{part}_{kind}": f"{part}_{kind}.cu" for part in PARTS for kind in ("kernels", "host")},
}  # fmt: skip
SCRIPTS = {
    "torch": "torch_cases.py", "jax": "jax_cases.py", "triton": "triton_cases.py", "two": "two_gpus.py",
    **{f"{part}_python": f"{part}_python.py" for part in PARTS},
}  # fmt: skip
COUNTED = ("kernels", "others", "triton", *(f"{part}_kernels" for part in PARTS))
WITH_SOURCE = ("k01", "k02", "k06", "k08", "k14")
# what the note of 39 metrics and others are compared on
COST_CASES = ("transpose-tile", "particles", "histogram", "triangle", "polynomial", "triad")
CASE_S = 100  # for a case, its wait for the others included


class Recorder:
    """What is recorded, where, and until when."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out: Path = options.out.absolute()
        self.binaries: Path = options.binaries.absolute()
        self.nsys, self.ncu, self.reduce = options.nsys, options.ncu, options.reduce
        self.ends = time.monotonic() + options.budget
        self.workers = options.workers
        self.gpus = options.gpus
        self.lock = threading.Lock()
        programs = options.programs.split(",")
        only = set(options.only.split(",")) if options.only else None
        truth = yaml.safe_load((HERE / "truth.yaml").read_text())["cases"]
        self.cases = [
            case | {"program": program, "name": name}
            for case in truth
            if not case.get("changed")
            for program, name in [case["run"].split(" ", 1)]
            if program in programs and (only is None or case["id"] in only)
        ]
        for folder in ("counters", "timelines", "sources", "files", "work"):
            (self.out / folder).mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """Seconds until the end of the budget."""
        return self.ends - time.monotonic()

    def failed(self, what: str, output: str) -> None:
        """Note a failure, and go on."""
        with self.lock, (self.out / "failures.txt").open("a") as file:
            file.write(f"== {what}\n{output[-1500:]}\n")
        print(f"failed: {what}: {output.strip().splitlines()[-1:] or ''}", flush=True)

    def ran(self, what: str, command: list[str], limit_s: float, **env: str) -> str | None:
        """Run a command, and return its output; None: it failed, which is noted."""
        limit_s = min(limit_s, self.left())
        if limit_s < 3:
            self.failed(what, "no time was left")
            return None
        environment = (
            os.environ | {"DIAGNOSIS_FILES": str(self.out / "files"), "TORCHINDUCTOR_COMPILE_THREADS": "1"} | env
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=environment, cwd=self.out / "work", start_new_session=True)  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output = process.communicate()[0] or ""
            self.failed(f"{what} (after {limit_s:.0f} s)", output)
            return None
        if process.returncode:
            self.failed(f"{what} (exit status {process.returncode})", output)
            return None
        return output

    def command(self, program: str) -> list[str]:
        """How a program starts."""
        if program in COMPILED:
            return [str(self.binaries / program)]
        return [sys.executable, str(HERE / "sources" / SCRIPTS[program])]

    def build(self) -> None:
        """Compile what is not compiled yet."""
        self.binaries.mkdir(parents=True, exist_ok=True)
        for program in sorted({case["program"] for case in self.cases} & set(COMPILED)):
            if not (self.binaries / program).exists():
                self.ran(f"nvcc {program}", ["nvcc", "-O3", "-std=c++17", "-lineinfo", "-arch=sm_90", "-o",
                         str(self.binaries / program), str(HERE / "sources" / COMPILED[program])], 120)  # fmt: skip

    @contextlib.contextmanager
    def beside(self, name: str) -> Iterator[None]:
        """Meanwhile another process keeps a GPU busy, where that is the case's illness."""
        if not name.startswith("late-shared"):
            yield
            return
        hog = subprocess.Popen([*self.command("two"), "hog"], stdout=subprocess.PIPE, text=True)
        try:
            hog.stdout.readline()
            yield
        finally:
            hog.kill()

    def time(self) -> None:
        """Run ill and cured programs alone, all of a program in a process."""
        for program in dict.fromkeys(case["program"] for case in self.cases):
            names: dict[str, None] = {}
            for case in self.cases:
                if case["program"] == program:
                    names |= dict.fromkeys(name for name in (case["name"], case.get("cured")) if name)
            alone = [name for name in names if program == "two" and name.startswith(("slow-link", "late-shared"))]
            names = {name: None for name in names if name not in alone}
            # what starts up again after each failure is lost: a process for every 12 of those that import much
            groups = (
                [list(names)] if program != "torch" else [list(names)[at : at + 12] for at in range(0, len(names), 12)]
            )
            groups += [[name] for name in alone if name.startswith("late-shared")]
            for group in groups:
                with self.beside(group[0]):
                    output = self.ran(
                        f"time {program}", [*self.command(program), "time", str(STEPS[program]), *group], 240
                    )
                with self.lock, (self.out / "times.txt").open("a") as file:
                    file.write(output or "")
                for line in (output or "").splitlines():
                    if line.startswith("failed"):
                        self.failed(f"time {program}", line)

    def count(self) -> None:
        """Count each launch of a step of each case, and of its cured twin."""
        metrics = ",".join((HERE / "metrics.txt").read_text().split())
        base = ["--csv", "--page", "raw", "--print-units", "base", "--rename-kernels", "off", "--clock-control", "none",
                "--profile-from-start", "off", "--target-processes", "all"]  # fmt: skip
        for program in COUNTED:
            ids = {case["name"]: case["id"] for case in self.cases if case["program"] == program}
            ids |= {case["cured"]: case["id"] + "c" for case in self.cases
                    if case["program"] == program and "cured" in case and case["cured"] not in ids}  # fmt: skip
            names = list(ids)
            for at in range(0, len(names), 20):
                group, log = names[at : at + 20], self.out / "counters" / f"{program}{at}.log"
                words = [self.ncu, *base, "--metrics", metrics, "--log-file", str(log)]
                begun = time.monotonic()
                output = self.ran(f"ncu {program} {at}", [*words, *self.command(program), "once", *group], 200)
                print(f"ncu {program} {at}: {time.monotonic() - begun:.1f} s", flush=True)
                if log.exists():
                    self.split(log, [(ids[name], int(count)) for name, count in
                                     re.findall(r"^launches (\S+) (\d+)", output or "", re.MULTILINE)])  # fmt: skip

    def split(self, log: Path, cases: list[tuple[str, int]]) -> None:
        """A CSV file a case, of the CSV of all."""
        text = log.read_text(errors="replace")
        table = list(csv.reader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"')))))
        header, units, rows = table[0], table[1], table[2:]
        for case, count in cases:
            own, rows = rows[:count], rows[count:]
            with (self.out / "counters" / f"{case}.csv").open("w", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([header, units, *own])
        if rows:
            self.failed(f"split {log.name}", f"{len(rows)} launches are of no case")

    def cost(self) -> None:
        """Passes and seconds of sets of metrics for the same launches."""
        every = (HERE / "metrics.txt").read_text().split()
        noted = (HERE / "metrics39.txt").read_text().split()
        sets = {
            "start": None,
            "39 metrics": ["--metrics", ",".join(noted)],
            "metrics.txt": ["--metrics", ",".join(every)],
            "set full": ["--set", "full"],
            "set basic": [],
        }
        command = [*self.command("kernels"), "once", *COST_CASES]
        with (self.out / "counters" / "cost.txt").open("w") as file:
            for name, words in sets.items():
                begun = time.monotonic()
                ncu = (
                    []
                    if words is None
                    else [self.ncu, "--clock-control", "none", "--profile-from-start", "off", *words]
                )
                output = self.ran(f"cost of {name}", [*ncu, *command], 90) or ""
                passes = [int(count) for count in re.findall(r"- (\d+) pass", output)]
                file.write(f"{name}: {time.monotonic() - begun:.2f} s, {len(passes)} launches, passes {passes}\n")

    def lines(self) -> None:
        """The source page of some cases."""
        for case in self.cases:
            if case["id"] not in WITH_SOURCE:
                continue
            report = self.out / "work" / f"{case['id']}.ncu-rep"
            words = [self.ncu, "--section", "SourceCounters", "--section", "SpeedOfLight", "--import-source", "yes",
                     "--clock-control", "none", "--profile-from-start", "off",
                     "-f", "-o", str(report.with_suffix(""))]  # fmt: skip
            if (
                self.ran(f"source {case['id']}", [*words, *self.command(case["program"]), "once", case["name"]], 60)
                is None
            ):
                continue
            shown = self.ran(f"source page {case['id']}", [self.ncu, "--import", str(report), "--page", "source",
                             "--csv", "--print-source", "sass,cuda"], 30)  # fmt: skip
            (self.out / "sources" / f"{case['id']}.csv").write_text(shown or "")

    def trace(self) -> None:
        """Trace all cases, several at a time, of which one at a time uses a GPU."""

        def traced(case: dict[str, Any], gpu: int | None) -> None:
            report = self.out / "work" / case["id"]
            steps = str(case.get("steps", STEPS[case["program"]]))
            env = {"DIAGNOSIS_LOCK": f"/tmp/diagnosis-{gpu}.lock"} | (
                {"DIAGNOSIS_MARKED": "1"} if case.get("marked") else {}
            )
            if gpu is not None and self.gpus > 1:
                env["CUDA_VISIBLE_DEVICES"] = str(gpu)
            words = [self.nsys, "profile", "-s", "none", "--cpuctxsw=none", "-t", "cuda,nvtx,osrt",
                     "--osrt-threshold=10000", "-f", "true", "-o", str(report)]  # fmt: skip
            with self.beside(case["name"]):
                output = self.ran(f"nsys {case['id']} {case['run']}",
                                  [*words, *self.command(case["program"]), "run", steps, case["name"]],
                                  CASE_S, **env)  # fmt: skip
            if output is None:
                return
            with self.lock, (self.out / "times.txt").open("a") as file:
                file.writelines(
                    f"traced {case['id']} {line}\n" for line in output.splitlines() if line.startswith("time ")
                )
            export = report.with_suffix(".sqlite")
            done = self.ran(f"export {case['id']}", [self.nsys, "export", "--type", "sqlite", "-f", "true",
                            "-o", str(export), str(report) + ".nsys-rep"], 60)  # fmt: skip
            if done is not None:
                self.ran(f"reduce {case['id']}", [sys.executable, self.reduce, str(export),
                         str(self.out / "timelines" / f"{case['id']}.sqlite.gz")], 60)  # fmt: skip
            for left in (export, report.with_suffix(".nsys-rep")):
                left.unlink(missing_ok=True)

        alone = [case for case in self.cases if case["program"] != "two"]
        with concurrent.futures.ThreadPoolExecutor(self.workers * self.gpus) as pool:
            list(pool.map(lambda pair: traced(pair[1], pair[0] % self.gpus), enumerate(alone)))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda case: traced(case, None), [c for c in self.cases if c["program"] == "two"
                                                            and not c["name"].startswith("late-shared")]))  # fmt: skip
        for case in self.cases:
            if case["name"].startswith("late-shared"):
                traced(case, None)


def main() -> None:
    """Record what the options say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nsys", default="nsys")
    parser.add_argument("--ncu", default=shutil.which("ncu") or "ncu")
    parser.add_argument("--reduce", default=str(HERE.parents[1] / "nsw" / "readers" / "nsys" / "reduce_export.py"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--binaries", type=Path, default=Path("binaries"))
    parser.add_argument("--programs", default=",".join((*COMPILED, *SCRIPTS)))
    parser.add_argument("--parts", default="time,ncu,cost,lines,nsys")
    parser.add_argument("--only")
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--gpus", type=int, default=1)
    options = parser.parse_args()
    recorder = Recorder(options)
    recorder.build()
    does = {"time": recorder.time, "ncu": recorder.count, "cost": recorder.cost, "lines": recorder.lines,
            "nsys": recorder.trace}  # fmt: skip
    for part in options.parts.split(","):
        begun = time.monotonic()
        does[part]()
        print(f"{part}: {time.monotonic() - begun:.0f} s; {recorder.left():.0f} s are left", flush=True)
    shutil.rmtree(recorder.out / "work")
    shutil.rmtree(recorder.out / "files")


if __name__ == "__main__":
    main()
