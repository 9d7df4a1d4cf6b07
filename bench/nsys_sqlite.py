"""How long a summary of a large nsys database takes, in a fresh interpreter, and how much memory.

    python bench/nsys_sqlite.py [--launches 1000000 10000000] [--ranges 20000] [--repeat 3]

Compared are nsw, and `nsys stats -r cuda_gpu_kern_sum` where an nsys is on PATH. The best of the
repeats is printed; the load of the machine stands beside it.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nsys_sqlite_databases import make

READ = (
    "from pathlib import Path; from nsw.readers import read; import sys; r = read(Path(sys.argv[1])); assert r.tables"
)
ROOT = Path(__file__).resolve().parents[1]


def measured(command, repeat):
    """The shortest wall and CPU time in s and the largest resident set in MiB."""
    best, cpu, most = float("inf"), float("inf"), 0
    for _ in range(repeat):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        best = min(best, time.perf_counter() - started)
        cpu = min(cpu, usage.ru_utime + usage.ru_stime)
        most = max(most, usage.ru_maxrss >> 10)
        if status:
            sys.exit(f"{command}: status {status}\n{process.stderr.read().decode()}")
        process.stderr.close()
        process.returncode = 0
    return best, cpu, most


def ways(database):
    yield "nsw", [sys.executable, "-c", READ, str(database)]
    if nsys := shutil.which("nsys"):
        yield "nsys stats kern_sum", [nsys, "stats", "-q", "-r", "cuda_gpu_kern_sum", "--format", "csv", str(database)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--ranges", type=int, default=20_000, help="NVTX ranges of the second database")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    import adbc_driver_sqlite
    import numpy as np
    import pyarrow as pa

    versions = f"numpy {np.__version__}, pyarrow {pa.__version__}, adbc {adbc_driver_sqlite.__version__}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}")
    print(f"{'kernels':>10} {'ranges':>7}  {'way':<20} {'s':>6} {'CPU s':>6} {'MiB':>5}  load")
    with tempfile.TemporaryDirectory() as folder:
        for launches in options.launches:
            for ranges in (0, options.ranges):
                database = make(Path(folder) / f"{launches}-{ranges}.sqlite", launches=launches, ranges=ranges)
                for name, command in ways(database):
                    seconds, cpu, memory = measured(command, options.repeat)
                    figures = f"{seconds:>6.2f} {cpu:>6.2f} {memory:>5}  {os.getloadavg()[0]:.1f}"
                    print(f"{launches:>10} {ranges:>7}  {name:<20} {figures}", flush=True)
                database.unlink()


if __name__ == "__main__":
    main()
