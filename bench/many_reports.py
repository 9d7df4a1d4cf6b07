"""How long many small reports take: `python bench/many_reports.py [REPORTS]` (1000 by default; target 15 s on 2 cores).

The reports are made from tests/fixtures (every kind, the smallest first); `nsw read` reads their folder into
Parquet, one file a table, in fresh processes. The obvious alternative stands beside it: one `nsw read` a file, of
which a few are timed.
"""

import gzip
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "h200"
SMALL = ["lenet-table.txt", "naive-details.csv", "naive-details.txt", "naive-summary.csv", "ncu-mixed.csv",
         "tiled-details.csv", "tiled-stats.txt", "tiled.sqlite.gz"]  # fmt: skip
ALONE = 5


def make(folder, count):
    kinds = []
    for name in SMALL:
        data = (FIXTURES / name).read_bytes()
        kinds.append((name.removesuffix(".gz"), gzip.decompress(data) if name.endswith(".gz") else data))
    for number in range(count):
        name, data = kinds[number % len(kinds)]
        place = folder / f"run{number // 100:02}"
        place.mkdir(exist_ok=True)
        (place / f"{number:04}-{name}").write_bytes(data)


def timed(*words):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nsw", "read", *words], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - began


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "reports"
        folder.mkdir()
        make(folder, count)
        size = sum(p.stat().st_size for p in folder.rglob("*.*")) / 1e6
        load = os.getloadavg()[0]
        print(f"{count} reports, {size:.0f} MB, {len(os.sched_getaffinity(0))} cores, load {load:.1f} before")
        seconds = timed(str(folder), "--format", "parquet", "-o", f"{temporary}/tables")
        print(f"nsw read FOLDER:       {seconds:6.1f} s")
        few = sorted(folder.rglob("*.*"))[:ALONE]
        alone = sum(timed(str(f), "--format", "parquet", "-o", f"{temporary}/one") for f in few) / len(few) * count
        print(f"nsw read, file by file: {alone:5.0f} s (by {len(few)} of them)")


if __name__ == "__main__":
    main()
