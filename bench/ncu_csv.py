"""Time and peak memory of reading a large details CSV of Nsight Compute, beside pandas and the csv module.

    python bench/ncu_csv.py [--rows 1000000]

The file is made in a temporary folder. Each reader runs in a process of its own, whose peak memory
(ru_maxrss, with the interpreter and every import), wall time from its start and CPU time are printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
    '"Rule Description","Estimated Speedup Type","Estimated Speedup"'
)
SECTIONS = {
    "GPU Speed Of Light Throughput": [("DRAM Frequency", "Ghz"), ("SM Frequency", "Ghz"), ("Elapsed Cycles", "cycle"),
                                      ("Memory Throughput", "%"), ("DRAM Throughput", "%"), ("Duration", "us"),
                                      ("L1/TEX Cache Throughput", "%"), ("L2 Cache Throughput", "%"),
                                      ("SM Active Cycles", "cycle"), ("Compute (SM) Throughput", "%")],
    "Launch Statistics": [("Block Size", ""), ("Function Cache Configuration", ""), ("Grid Size", ""),
                          ("Registers Per Thread", "register/thread"), ("Threads", "thread"), ("Waves Per SM", "")],
    "Occupancy": [("Block Limit SM", "block"), ("Theoretical Occupancy", "%"), ("Achieved Occupancy", "%"),
                  ("Achieved Active Warps Per SM", "warp")],
    "Memory Workload Analysis": [("Memory Throughput", "Gbyte/s"), ("Mem Busy", "%"), ("Max Bandwidth", "%"),
                                 ("L1/TEX Hit Rate", "%"), ("L2 Hit Rate", "%"), ("Mem Pipes Busy", "%")],
    "Scheduler Statistics": [("One or More Eligible", "%"), ("Issued Warp Per Scheduler", ""), ("No Eligible", "%"),
                             ("Active Warps Per Scheduler", "warp"), ("Eligible Warps Per Scheduler", "warp")],
    "Warp State Statistics": [("Warp Cycles Per Issued Instruction", "cycle"), ("Avg. Active Threads Per Warp", "")],
    "Instruction Statistics": [("Executed Instructions", "inst"), ("Issued Instructions", "inst"),
                               ("Avg. Issued Instructions Per Scheduler", "inst")],
    "Source Counters": [("Branch Instructions Ratio", "%"), ("Branch Instructions", "inst"),
                        ("Branch Efficiency", "%"), ("Avg. Divergent Branches", "")],
}  # fmt: skip
READERS = {
    "nsw": "from pathlib import Path; from nsw.readers.ncu_csv import read; from nsw.readers.model import Options; "
    "r = read(Path(sys.argv[1]), Options()); n = r.tables['metrics'].num_rows",
    "pandas": "import pandas as pd; n = len(pd.read_csv(sys.argv[1], usecols=range(15), index_col=False))",
    "pandas, categories": "import pandas as pd; n = len(pd.read_csv(sys.argv[1], usecols=range(15), index_col=False, "
    "dtype='category'))",
    "csv module": "import csv; f = open(sys.argv[1], newline=''); n = sum(1 for r in csv.reader(f))",
}
REPORT = (
    "; import resource; u = resource.getrusage(resource.RUSAGE_SELF); "
    "print(n, u.ru_maxrss >> 10, u.ru_utime + u.ru_stime)"
)


def write(path: Path, rows: int) -> int:
    """A details CSV with `rows` metrics, some text, some rules; the number of launches."""
    rng = random.Random(7)
    kernels = [f"void at::native::elementwise_kernel<4, op_{i}<float>, array<char *, {i}>>(int, T2, T3)"
               for i in range(40)]  # fmt: skip
    written = launch = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER + "\n")
        while written < rows:
            kernel = rng.choice(kernels)
            head = (f'"{launch}","4711","python3.12","127.0.0.1","{kernel}","1","7","(256, 1, 1)",'
                    f'"({rng.randint(1, 999)}, 1, 1)","0","9.0",')  # fmt: skip
            for section, metrics in SECTIONS.items():
                for name, unit in metrics:
                    file.write(f'{head}"{section}","{name}","{unit}","{_value(rng, name, unit)}",\n')
                    written += 1
            file.write(f'{head}"SpeedOfLight","","","","SOLBottleneck","OPT","This kernel grid is too small to fill '
                       f'the available resources on this device.","global","{rng.random() * 90:.2f}"\n')  # fmt: skip
            launch += 1
    return launch


def _value(rng: random.Random, name: str, unit: str) -> str:
    if name == "Function Cache Configuration":
        return "CachePreferNone"
    if unit in ("cycle", "thread", "inst"):
        return f"{rng.randint(1000, 9_999_999):,}"
    return f"{rng.random() * 100:.2f}" if unit else str(rng.randint(1, 2048))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    packages = ", ".join(f"{p} {version(p)}" for p in ("pyarrow", "pandas", "numpy"))
    print(f"{platform.machine()}, {os.cpu_count()} CPUs; Python {platform.python_version()}, {packages}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "details.csv"
        launches = write(path, rows)
        print(f"{rows} metrics of {launches} launches, {path.stat().st_size / 1e6:.0f} MB")
        for name, code in READERS.items():
            best = min(_run(code, path) for _ in range(2))
            print(f"  {name:20} {best[0]:6.2f} s  {best[3]:6.2f} s CPU  {best[1]:5d} MiB  {best[2]} rows")


def _run(code: str, path: Path) -> tuple[float, int, int, float]:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}{REPORT}", str(path)], check=True, cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip
    seconds = time.perf_counter() - start
    rows, peak, cpu = done.stdout.split()
    return seconds, int(peak), int(rows), float(cpu)


if __name__ == "__main__":
    main()
