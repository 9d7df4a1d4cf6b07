"""Time and peak memory of reading a large CSV of Nsight Compute, beside pandas and the csv module.

    python bench/ncu_csv.py [--rows 1000000]

The files are made in a temporary folder: sections with rules; the same with a program's output, several
processes, a kernel with quotes in its name and rules over two lines; two metrics a launch; and a raw page, a
launch a row. Each reader (nsw's is `nsw.readers.read`, which recognises the format and makes every table) runs in
a process of its own, whose peak memory (ru_maxrss, with the interpreter and every import), wall time from its start
and CPU time are printed: the best of three.
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
    "nsw": "from pathlib import Path; from nsw.readers import read; r = read(Path(sys.argv[1])); "
    "n = r.tables['metrics'].num_rows",
    "pandas": "import pandas as pd; n = len(pd.read_csv(sys.argv[1], usecols=range(15), index_col=False))",
    "pandas, categories": "import pandas as pd; n = len(pd.read_csv(sys.argv[1], usecols=range(15), index_col=False, "
    "dtype='category'))",
    "csv module": "import csv; f = open(sys.argv[1], newline=''); n = sum(1 for r in csv.reader(f))",
}
REPORT = (
    "; import resource; u = resource.getrusage(resource.RUSAGE_SELF); "
    "print(n, u.ru_maxrss // 1000, u.ru_utime + u.ru_stime)"
)


RULES = {
    "SpeedOfLight": ("SOLBottleneck", (
        "This kernel grid is too small to fill the available resources on this device, resulting in only {} full waves "
        "across all SMs.")),
    "SpeedOfLight_RooflineChart": ("SOLFPRoofline", (
        "The ratio of peak float (fp32) to double (fp64) performance on this device is 64:1. The kernel achieved "
        "{}% of this device's fp32 peak performance.")),
    "SchedulerStats": ("IssueSlotUtilization", (
        "Every scheduler is capable of issuing one instruction per cycle, but for this kernel each scheduler only "
        "issues an instruction every {} cycles.")),
    "WarpStateStats": ("CPIStall", "On average, each warp of this kernel spends {} cycles being stalled."),
    "Occupancy": ("AchievedOccupancy", (
        "The difference between theoretical (100.0%) and measured occupancy ({}%) can be the result of warp scheduling "
        "overheads or workload imbalances during the kernel execution.")),
}  # fmt: skip
OUTPUT = ("epoch 3, loss 2.31", "", '==PROF== Profiling "kernel" - 17: 0%....50%....100% - 8 passes', 'said "yes"')


def write(path: Path, rows: int, *, mixed: bool = False) -> int:
    """A details CSV with `rows` metrics and five rules a launch; the number of launches."""
    rng = random.Random(7)
    kernels = [f"void at::native::elementwise_kernel<4, op_{i}<float>, array<char *, {i}>>(int, T2, T3)"
               for i in range(40)] + ['lambda at ""main.cu"":7'] * mixed  # fmt: skip
    written = launch = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in OUTPUT * 5000 * mixed) + HEADER + "\n")
        while written < rows:
            grid = rng.randint(1, 999)
            sizes = {"Grid Size": str(grid), "Block Size": "256"}  # as in the header: else they are of another launch
            head = (f'"{launch}","{4711 + (launch // 5000) * mixed}","python3.12","127.0.0.1","{rng.choice(kernels)}",'
                    f'"1","7","(256, 1, 1)","({grid}, 1, 1)","0","9.0",')  # fmt: skip
            for section, metrics in SECTIONS.items():
                for name, unit in metrics:
                    value = sizes.get(name) or _value(rng, name, unit)
                    file.write(f'{head}"{section}","{name}","{unit}","{value}",\n')
                    written += 1
            for section, (name, text) in RULES.items():
                told = text.format(f"{rng.random() * 90:.2f}") + "\n" * (mixed and launch % 1000 == 0)
                file.write(f'{head}"{section}","","","","{name}","OPT","{told}","global","{rng.random() * 90:.2f}"\n')
            if mixed and launch % 100 == 0:
                file.write(rng.choice(OUTPUT) + "\n")
            launch += 1
    return launch


def write_mixed(path: Path, rows: int) -> int:
    """The same amid a program's output, of several processes, with a few rows that are not plain."""
    return write(path, rows, mixed=True)


def write_pairs(path: Path, rows: int) -> int:
    """A details CSV of two metrics a launch, as `ncu --metrics` prints it."""
    rng = random.Random(7)
    columns = HEADER.split(',"Rule Name"', maxsplit=1)[0]
    with path.open("w", encoding="utf-8") as file:
        file.write(columns + "\n")
        for launch in range(rows // 2):
            head = (f'"{launch}","4711","python3.12","127.0.0.1","void op_{rng.randint(0, 40)}<float>(int, T2, T3)",'
                    f'"1","7","(256, 1, 1)","({rng.randint(1, 999)}, 1, 1)","0","9.0","Metrics"')  # fmt: skip
            file.write(f'{head},"gpu__time_duration.sum","us","{rng.random() * 5000:,.2f}"\n')
            file.write(f'{head},"sm__throughput.avg.pct_of_peak_sustained_elapsed","%","{rng.random() * 100:.2f}"\n')
    return rows // 2


def write_raw(path: Path, rows: int) -> int:
    """A raw CSV, a launch a row, with `rows` values in all."""
    rng = random.Random(7)
    metrics = [(f"{name} {i}", unit) for i, section in enumerate(SECTIONS.values()) for name, unit in section]
    columns = HEADER.split(',"Section Name"', maxsplit=1)[0]
    launches = rows // len(metrics)
    with path.open("w", encoding="utf-8") as file:
        file.write(columns + "".join(f',"{name}"' for name, _ in metrics) + "\n")
        file.write('""' + ',""' * columns.count(",") + "".join(f',"{unit}"' for _, unit in metrics) + "\n")
        for launch in range(launches):
            head = (f'"{launch}","4711","python3.12","127.0.0.1","void op_{rng.randint(0, 40)}<float>(int, T2, T3)",'
                    f'"1","7","(256, 1, 1)","({rng.randint(1, 999)}, 1, 1)","0","9.0"')  # fmt: skip
            file.write(head + "".join(f',"{_value(rng, name, unit)}"' for name, unit in metrics) + "\n")
    return launches


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
        for make in (write, write_mixed, write_pairs, write_raw):
            path = Path(folder) / "details.csv"
            launches = make(path, rows)
            print(f"{make.__name__}: {rows} metrics of {launches} launches, {path.stat().st_size / 1e6:.0f} MB")
            for name, code in READERS.items():
                runs = [done for _ in range(3) if (done := _run(code, path))]
                best = min(runs, default=None)
                shown = (
                    "cannot read it" if best is None else "{:6.2f} s  {:6.2f} s CPU {:6.0f} MB  {} rows".format(*best)
                )
                print(f"  {name:20} {shown}")


def _run(code: str, path: Path) -> tuple[float, float, float, int] | None:
    """Seconds, CPU seconds, megabytes, rows; None when it fails."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}{REPORT}", str(path)], check=False, cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode:
        return None
    rows, peak, cpu = done.stdout.split()
    return seconds, float(cpu), int(peak) * 1.024, int(rows)


if __name__ == "__main__":
    main()
