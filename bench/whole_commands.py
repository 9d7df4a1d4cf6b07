"""What a user types, as whole processes: CPU and wall time and peak memory, each beside an alternative in the same run.

    python bench/whole_commands.py [--rows 1000000] [--launches 1000000] [--repeat 5]

The commands of a pair take turns, so that a busy minute falls on both; of each the median is printed. Read are a small
report, a details CSV of Nsight Compute, and an nsys database; summarized is a campaign of 24 runs that this makes.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ncu_csv
import nsys_sqlite_databases

ROOT = Path(__file__).resolve().parents[1]
NSW = [sys.executable, "-m", "nsw"]
SMALL = ROOT / "tests" / "fixtures" / "h200" / "tiled-stats.txt"
GOALS = {"small": "0.25 s", "json": "6 s", "parquet": "3 s, 400 MB", "summarize": "0.7 s", "sqlite": "1.2 s"}
EMPTY = "import typer\napp = typer.Typer()\n@app.command()\ndef main(): pass\napp()\n"
PANDAS = "import sys, pandas as pd; pd.read_csv(sys.argv[1], usecols=range(15), index_col=False)"
PANDAS_SQL = (
    "import sqlite3, sys, pandas as pd\n"
    "pd.read_sql('SELECT s.value, end - start AS d FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id ="
    " demangledName', sqlite3.connect(sys.argv[1])).groupby('value').d.agg(['sum', 'count', 'mean', 'min', 'max'])"
)
RECIPE = """nsw: 1
name: sums
app: {command: 'echo time={{ n }}.5', figures: {time: {regex: 'time=(.*)', unit: s}}}
matrix: {n: [1, 2, 3, 4, 5, 6, 7, 8]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
repeats: 3
"""


def measured(command: list[str], output: Path) -> tuple[float, float, int]:
    """Wall and CPU time in s, and the largest resident set in MB."""
    started = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, cwd=ROOT)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        sys.exit(f"{command}: status {process.returncode}\n{said.decode()}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1000


def pairs(folder: Path, options: argparse.Namespace) -> dict[str, list[tuple[str, list[str]]]]:
    """Of each goal the commands that are compared, nsw's first."""
    python = [sys.executable, "-c"]
    found = {"small": [("nsw read", [*NSW, "read", str(SMALL)]), ("empty typer program", [*python, EMPTY])]}
    if options.rows:
        details = folder / "details.csv"
        ncu_csv.write(details, options.rows)
        found["json"] = [
            ("nsw read --format json", [*NSW, "read", str(details), "--format", "json"]),
            ("pandas, to_json", [*python, f"{PANDAS}.to_json(sys.stdout, orient='records')", str(details)]),
        ]
        found["parquet"] = [
            ("nsw read -f parquet", [*NSW, "read", str(details), "--format", "parquet", "-o", f"{folder}/tables/"]),
            ("pandas, to_parquet", [*python, f"{PANDAS}.to_parquet('{folder}/pandas.parquet')", str(details)]),
        ]
    if options.launches:
        database = nsys_sqlite_databases.make(folder / "report.sqlite", launches=options.launches, ranges=0)
        found["sqlite"] = [("nsw read", [*NSW, "read", str(database)])]
        found["sqlite"].append(("pandas.read_sql, kernels", [*python, PANDAS_SQL, str(database)]))
        if nsys := shutil.which("nsys"):
            words = ["stats", "-q", "-r", "cuda_gpu_kern_sum", "--format", "csv", str(database)]
            found["sqlite"].append(("nsys stats kern_sum", [nsys, *words]))
    (folder / "sums.yaml").write_text(RECIPE)
    run = [*NSW, "run", str(folder / "sums.yaml"), "--site", "local", "--root", str(folder / "campaigns")]
    subprocess.run(run, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    frames = "import nsw, sys; nsw.open(sys.argv[1]).tables.figures.groupby('run').value.mean()"
    campaign = next((folder / "campaigns").iterdir())
    found["summarize"] = [
        ("nsw summarize, 24 runs", [*NSW, "summarize", str(campaign)]),
        ("one frame of it by nsw.open", [*python, frames, str(campaign)]),
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="metrics of the CSV; 0: without")
    parser.add_argument(
        "--launches", type=int, default=1_000_000, help="kernels, and calls, of the database; 0: without"
    )
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have their bytecode cached
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'goal':>12} {'command':28} {'wall s':>7} {'CPU s':>7} {'MB':>5}  load")
    with tempfile.TemporaryDirectory() as temporary:
        for goal, commands in pairs(Path(temporary), options).items():
            runs: dict[str, list[tuple[float, float, int]]] = {name: [] for name, _ in commands}
            for _ in range(options.repeat):
                for name, command in commands:
                    runs[name].append(measured(command, Path(temporary) / "output"))
            for name, figures in runs.items():
                wall, cpu, memory = (statistics.median(column) for column in zip(*figures, strict=True))
                wanted = GOALS[goal] if name == commands[0][0] else ""
                print(
                    f"{wanted:>12} {name:28} {wall:7.2f} {cpu:7.2f} {memory:5.0f}  {os.getloadavg()[0]:.1f}", flush=True
                )


if __name__ == "__main__":
    main()
