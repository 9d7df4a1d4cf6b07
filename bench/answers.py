"""What an answer takes, wall time and peak memory: `python bench/answers.py [--cases 1000] [--kernels 500]`.

The campaign is made: one run that was really done, as many times as there are cases, with tables as of timelines with
iterations. Aims for 1,000 cases of 500 kernels: 500 MB, 3 s for the first screen, 10 s for the others.
bench/whole_commands.py has one of 24 runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from multiprocessing import Process
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from whole_commands import NSW, ROOT, measured

from nsw.tables.parquet_tables import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

RECIPE = """nsw: 1
name: many
app: {command: 'echo speed=5', figures: {speed: {regex: 'speed=(.*)', unit: images/s}}}
matrix: {n: [1]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""
COMMANDS = (
    ["summarize"], ["summarize", "--json"], ["summarize", "--full"], ["summarize", "--table", "hotspots", "--top", "1"],
    ["report", "-o", "{to}/page.html"],
)  # fmt: skip
MS = 1e6
_AT_ONCE = 50  # cases, of which rows are in memory
WORDS = ("gemm", "elementwise", "reduce", "conv_fprop", "softmax", "layer_norm", "transpose", "gather", "my_own")


def make(root: Path, cases: int, kernels: int) -> None:
    """Make a campaign with so many cases, each of one run with so many kernels."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "many.yaml").write_text(RECIPE)
    run = [*NSW, "run", str(root / "many.yaml"), "--site", "local", "--root", str(root / "campaigns")]
    subprocess.run(run, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = next((root / "campaigns").iterdir())
    with contextlib.closing(sqlite3.connect(folder / "campaign.db")) as ledger, ledger:
        found = ledger.execute("SELECT * FROM tasks")
        columns = [column[0] for column in found.description]
        first = dict(zip(columns, found.fetchone(), strict=True))
        ledger.execute("DELETE FROM tasks")
        for n in range(cases):
            for kind in ("baseline", "timeline"):
                own = {"seq": 2 * n + (kind == "timeline"), "id": f"n-{n}.{kind}.r1", "case_id": f"n-{n}",
                       "params": f'{{"n": {n}}}', "pass_name": kind, "pass_kind": kind}  # fmt: skip
                ledger.execute(f"INSERT INTO tasks VALUES ({','.join('?' * len(columns))})", [*(first | own).values()])
    parts: dict[str, list[pa.Table]] = {}
    for first_case in range(0, cases, _AT_ONCE):
        for name, rows in tables(range(first_case, min(cases, first_case + _AT_ONCE)), cases, kernels):
            parts.setdefault(name, []).append(pa.Table.from_pylist(rows, arrow_schema(name)))
    for name, some in parts.items():
        pq.write_table(pa.concat_tables(some), folder / "tables" / f"{name}.parquet", compression="zstd")


def tables(numbers: range, cases: int, kernels: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Of each table the rows of some of the cases."""
    runs = [{"run": f"n-{n}.timeline.r1", "report": f"reports/n-{n}.timeline.r1/timeline.nsys-rep"} for n in numbers]
    names = [
        f"void at::native::{WORDS[k % len(WORDS)]}_{k}<float, {k}>(float*, float const*, int)" for k in range(kernels)
    ]
    gpu = [
        {"pid": 1, "device": 0, "kind": "kernel", "name": name, "short_name": name.split("::")[-1].partition("<")[0],
         "total_ns": MS / (1 + k), "calls": 20, "time_pct": 1.0, "avg_ns": MS / (20 + k), "med_ns": MS / (20 + k),
         "min_ns": MS / (30 + k), "max_ns": MS / (10 + k), "stddev_ns": MS / (90 + k)}
        for k, name in enumerate(names)
    ]  # fmt: skip
    api = [{"pid": 1, "name": f"cudaCall{k}", "total_ns": MS / (1 + k), "calls": 20} for k in range(20)]
    yield "gpu_summary", [run | row for run in runs for row in gpu]
    yield "api_summary", [run | row for run in runs for row in api]
    parts = [row | {"phase": "steady", "summary": "gpu_summary"} for row in gpu]
    parts += [row | {"phase": "setup", "summary": "gpu_summary", "calls": 1} for row in gpu[: kernels // 5]]
    parts += [row | {"phase": "steady", "summary": "api_summary", "short_name": row["name"]} for row in api]
    yield "phase_summary", [run | row for run in runs for row in parts]
    steps = {"pid": 1, "found_by": "nvtx", "name": "step", "iterations": 20, "warmup": 0, "steady": 20,
             "med_ns": 10 * MS, "min_ns": 9 * MS, "max_ns": 11 * MS, "slowest": 3, "slowest_gpu_busy_pct": 40.0,
             "med_longest_gap_ns": MS,
             "med_gpu_ops": 500.0, "med_gpu_ns": MS, "med_memory_pct": 0.0, "med_memory_alone_pct": 0.0,
             "med_communication_pct": 0.0, "med_communication_alone_pct": 0.0}  # fmt: skip
    busy = [10.0 + 90.0 * n / cases for n in numbers]
    yield (
        "iterations",
        [run | steps | {"gpu_busy_pct": b, "med_gpu_busy_pct": b} for run, b in zip(runs, busy, strict=True)],
    )
    yield (
        "phases",
        [
            run | {"pid": 1, "phase": phase, "duration_ns": 200 * MS, "gpu_ns": MS, "gpu_busy_ns": MS, "api_ns": MS}
            for run in runs
            for phase in ("setup", "steady", "end")
        ],
    )
    yield "facts", [run | {"key": "gpu_name", "text": "NVIDIA H100 80GB HBM3"} for run in runs]
    yield (
        "figures",
        [
            {"run": f"n-{n}.{kind}.r1", "report": "stdout", "name": "speed", "value": 1.0 + n, "unit": "images/s"}
            for n in numbers
            for kind in ("baseline", "timeline")
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="a folder to make the campaign in, and to leave it")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        kept = list((root / "campaigns").glob("*"))
        if not kept:
            # apart: Linux counts the peak of a parent as that of its children
            maker = Process(target=make, args=(root, options.cases, options.kernels))
            maker.start()
            maker.join()
        folder = next((root / "campaigns").iterdir())
        print(
            f"{options.cases} cases of {options.kernels} kernels, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        for words in COMMANDS:
            command, *rest = (word.format(to=temporary) for word in words)
            wall, cpu, memory = measured([*NSW, command, str(folder), *rest], Path(temporary) / "output")
            print(f"nsw {' '.join(words):38} {wall:6.2f} s  CPU {cpu:6.2f} s {memory:6,} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
