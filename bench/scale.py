"""How time and memory grow: of one report with kernels, of many with reports and ranks, of answers with cases and runs.

    python bench/scale.py [one many ranks cases runs traces] [--most N] [--kernels 100000] [--hta PYTHON]

Three sizes a decade; nsw's command beside pandas, which reads the same tables and answers nothing, beside `nsys stats`
where there is one, and beside HolisticTraceAnalysis where the Python that has it is named (--hta). Time is processor
time, so that others who use the machine count little; memory is the largest process's. The exponent is that of the
last decade: of smaller sizes nsw's start is most.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import Process
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nsys_sqlite_databases
from whole_commands import NSW, PANDAS_SQL, ROOT, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEAST_OF_MOST = 50  # the largest size is so many times the smallest at most
DIFFERENT = 10  # files, which many reports are the links to
REPEATS = 10  # runs of a case
KERNELS_A_CASE = 500
_IMPORTS, _, _READ = PANDAS_SQL.replace("sys.argv[1]", "file").partition("\n")
PANDAS_MANY = f"{_IMPORTS}, pathlib\nfor file in pathlib.Path(sys.argv[1]).rglob('*.sqlite'): {_READ}"
PANDAS_TABLE = "import sys, pandas as pd; pd.read_parquet(sys.argv[1]).groupby('run', observed=True)[sys.argv[2]].sum()"
PYTHON = [sys.executable, "-c"]
TRACED = 4  # ranks of a trace of PyTorch each
KERNELS_A_STEP, STEP_US = 500, 25_000
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
traces = TraceAnalysis(trace_dir=sys.argv[1])
traces.get_gpu_kernel_breakdown(visualize=False)
traces.get_idle_time_breakdown(ranks=[0, 1, 2, 3], visualize=False)
traces.get_comm_comp_overlap(visualize=False)
"""


@dataclass
class Options:
    """What was asked for."""

    kernels: int
    most: int | None
    hta: str | None


def one(folder: Path, kernels: int, _: Options) -> dict[str, list[str]]:
    """One nsys database of so many kernels, and as many API calls, with an NVTX range for every fifty."""
    database = nsys_sqlite_databases.make(folder / "report.sqlite", launches=kernels, ranges=kernels // 50)
    commands = {
        "nsw read --format json": [*NSW, "read", str(database), "--format", "json"],
        "pandas, one table": [*PYTHON, PANDAS_SQL, str(database)],
    }
    if nsys := shutil.which("nsys"):  # its report of kernels alone
        words = ["stats", "-q", "-r", "cuda_gpu_kern_sum", "--format", "csv", str(database)]
        commands["nsys stats, kernels"] = [nsys, *words]
    return commands


def many(folder: Path, reports: int, options: Options) -> dict[str, list[str]]:
    """So many databases."""
    link(folder, folder / "reports", reports, options.kernels)
    return {
        "nsw read FOLDER -f parquet": [
            *NSW, "read", f"{folder}/reports", "--format", "parquet", "-o", f"{folder}/tables/"
        ],
        "pandas, one table of each": [*PYTHON, PANDAS_MANY, f"{folder}/reports"],
    }  # fmt: skip


def ranks(folder: Path, count: int, options: Options) -> dict[str, list[str]]:
    """A campaign with one run, of which each rank has a database."""
    campaign = campaign_of(folder)
    with contextlib.closing(sqlite3.connect(campaign / "campaign.db")) as ledger, ledger:
        ledger.execute("UPDATE tasks SET reading = 'collected'")
        (run,) = ledger.execute("SELECT id FROM tasks").fetchone()
    link(folder, campaign / "reports" / run, count, options.kernels)
    return {
        "nsw reread": [*NSW, "reread", str(campaign)],
        "nsw summarize": [*NSW, "summarize", str(campaign)],
        "pandas, one table of each": [*PYTHON, PANDAS_MANY, str(campaign / "reports")],
    }


def cases(folder: Path, count: int, _: Options) -> dict[str, list[str]]:
    """A campaign of so many cases with the kernels of a timeline each."""
    from answers import make

    make(folder, count, KERNELS_A_CASE)
    campaign = next((folder / "campaigns").iterdir())
    table = f"{campaign}/tables/phase_summary.parquet"
    return {
        "nsw summarize": [*NSW, "summarize", str(campaign)],
        "pandas, one table": [*PYTHON, PANDAS_TABLE, table, "total_ns"],
    }


def runs(folder: Path, count: int, _: Options) -> dict[str, list[str]]:
    """A campaign of so many runs with a figure each, ten of a case."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from nsw.tables.parquet_tables import arrow_schema

    campaign = campaign_of(folder)
    rows = []
    with contextlib.closing(sqlite3.connect(campaign / "campaign.db")) as ledger, ledger:
        found = ledger.execute("SELECT * FROM tasks")
        first = dict(zip((column[0] for column in found.description), found.fetchone(), strict=True))
        ledger.execute("DELETE FROM tasks")
        for at in range(count):
            n, repeat = divmod(at, REPEATS)
            own: dict[str, Any] = {"seq": at, "id": f"n-{n}.baseline.r{repeat + 1}", "case_id": f"n-{n}",
                                   "params": f'{{"n": {n}}}', "repeat": repeat + 1}  # fmt: skip
            ledger.execute(f"INSERT INTO tasks VALUES ({','.join('?' * len(first))})", [*(first | own).values()])
            value = 100 + n + at * 7919 % 10 / 10
            rows.append({"run": own["id"], "report": "stdout", "name": "speed", "value": value, "unit": "images/s"})
    table = campaign / "tables" / "figures.parquet"
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema("figures")), table, compression="zstd")
    return {
        "nsw status": [*NSW, "status", str(campaign)],
        "nsw summarize": [*NSW, "summarize", str(campaign)],
        "pandas, one table": [*PYTHON, PANDAS_TABLE, str(table), "value"],
    }


def traces(folder: Path, kernels: int, options: Options) -> dict[str, list[str]]:
    """A trace of PyTorch's profiler of each of four ranks, with so many kernels each."""
    home = folder / "traces"
    home.mkdir()
    for rank in range(TRACED):
        events = trace_events(rank, kernels)
        head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": TRACED}}
        (home / f"rank{rank}.json").write_text(json.dumps(head | {"traceEvents": events}))
    commands = {"nsw read FOLDER": [*NSW, "read", str(home)]}
    if options.hta:
        commands["HTA, kernels, idle, overlap"] = [options.hta, "-c", HTA, str(home)]
    return commands


def trace_events(rank: int, kernels: int) -> list[dict[str, Any]]:
    """Steps of operators, each with a launch and a kernel; each fiftieth kernel is an all-reduce beside the others."""
    host, events, begin = {"ph": "X", "pid": 1, "tid": 1}, [], 1_000_000.0
    for at in range(kernels):
        step, place = divmod(at, KERNELS_A_STEP)
        if not place:
            begin += STEP_US + 100 * rank
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": STEP_US, "args": {}}
            events.append(host | mark)
        start, key, talks = begin + 48 * place, at + 1, place % 50 == 49
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)" if talks else (
            f"void at::native::elementwise_kernel<{place % 40}, float>(int, float*)"
        )  # fmt: skip
        args = {"External id": key, "correlation": key}
        gpu = {"device": rank, "stream": 20 if talks else 7, "context": 1, "grid": [128, 1, 1], "block": [256, 1, 1]}
        events += [
            host | {"cat": "cpu_op", "name": f"aten::op{place % 80}", "ts": start, "dur": 12.0,
                    "args": {"External id": key}},
            host | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 4, "dur": 5.0,
                    "args": args | {"cbid": 211}},
            {"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": gpu["stream"], "ts": start + 12,
             "dur": 90.0 if talks else 20.0 + place % 7 * 4, "args": args | gpu},
        ]  # fmt: skip
    return events


def campaign_of(folder: Path) -> Path:
    """A campaign of one run that was done."""
    from answers import RECIPE

    (folder / "many.yaml").write_text(RECIPE)
    command = [*NSW, "run", str(folder / "many.yaml"), "--site", "local", "--root", str(folder / "campaigns")]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next((folder / "campaigns").iterdir())


def link(folder: Path, home: Path, count: int, kernels: int) -> None:
    """Put so many databases there, of which ten are different."""
    home.mkdir(exist_ok=True)
    for at in range(count):
        file = folder.parent / f"{kernels}-{at % DIFFERENT}.sqlite"
        if not file.exists():
            nsys_sqlite_databases.make(file, launches=kernels - at, ranges=kernels // 50)
        os.link(file, home / f"timeline.rank{at}.sqlite")


KINDS: dict[str, tuple[Callable[[Path, int, Options], dict[str, list[str]]], str, int]] = {
    "one": (one, "kernels", 1_000_000), "many": (many, "reports", 1000), "ranks": (ranks, "ranks", 1000),
    "cases": (cases, "cases", 1000), "runs": (runs, "runs", 10_000), "traces": (traces, "kernels", 100_000),
}  # fmt: skip


def sizes(most: int) -> Iterator[int]:
    """Three sizes a decade up to the largest, the smallest first."""
    steps = [number * 10**power for power in range(8) for number in (1, 2, 5)]
    return (size for size in steps if most / LEAST_OF_MOST <= size <= most)


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of the logarithms, by least squares over the last decade."""
    logs = [(math.log(size), math.log(value)) for size, value in points if 10 * size >= points[-1][0]]
    x, y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    return sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[*KINDS], metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--most", type=int, help="the largest size")
    parser.add_argument("--kernels", type=int, default=100_000, help="of each of many reports")
    parser.add_argument("--hta", metavar="PYTHON", help="one with HolisticTraceAnalysis")
    given = parser.parse_args()
    options = Options(given.kernels, given.most, given.hta)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have their bytecode cached
    libraries = ", ".join(f"{name} {version(name)}" for name in ("pandas", "pyarrow", "numpy"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}")
    for kind in given.kinds:
        make, unit, most = KINDS[kind]
        series: dict[str, list[tuple[int, float, float]]] = {}
        print(f"\n{unit:>9}  {'command':27} {'CPU s':>8} {'wall s':>8} {'MB':>6}  load", flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            for size in sizes(options.most or most):
                folder = Path(temporary) / f"{size}"
                folder.mkdir()
                for name, command in prepared(make, folder, size, options).items():
                    wall, cpu, memory = measured(command, Path(temporary) / "output")
                    series.setdefault(name, []).append((size, cpu, memory))
                    load = os.getloadavg()[0]
                    print(f"{size:9,}  {name:27} {cpu:8.2f} {wall:8.2f} {memory:6,}  {load:.1f}", flush=True)
        for name, points in series.items():
            time_of, memory_of = (exponent([(point[0], point[at]) for point in points]) for at in (1, 2))
            print(f"exponent   {name:27} {time_of:8.2f} {'':8} {memory_of:6.2f}")


def prepared(
    make: Callable[[Path, int, Options], dict[str, list[str]]], folder: Path, size: int, options: Options
) -> dict[str, list[str]]:
    """The commands; in a process of its own, since Linux counts the peak of a parent as that of its children."""
    from multiprocessing import Queue

    queue: Queue[dict[str, list[str]]] = Queue()
    process = Process(target=lambda: queue.put(make(folder, size, options)))
    process.start()
    commands = queue.get()
    process.join()
    return commands


if __name__ == "__main__":
    main()
