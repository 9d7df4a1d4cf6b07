"""MB/s and memory of nvprof's text reader, by form: python bench/nvprof_text.py [MB,MB...] [runs] [form...].

Each form is written to a temporary folder and read in processes of their own, in turn by nsw and by what one would take
instead: `pandas.read_csv` of the rows alone (by its parser in C; of text, whose columns stand two blanks apart, by
its one in Python, which is given 20 000 rows). It makes strings of what nsw makes quantities with half-widths. The
fastest run counts, by wall clock and by the CPU time of all threads, with every import; the peak is ru_maxrss.
Two sizes, 50,200, show that beside the result (its buffers, or what its rows weigh as dicts) memory does not grow
with the file.
"""

import itertools
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from nvprof_forms import FORMS, Form

ROOT = Path(__file__).resolve().parents[1]
MEASURE = """
import resource, sys, time
from pathlib import Path
before = time.perf_counter()
path = Path(sys.argv[1])
{read}
seconds = time.perf_counter() - before
used = resource.getrusage(resource.RUSAGE_SELF)
{weigh}
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, size >> 20, rows)
"""
NSW = """
from nsw.readers import read
from nsw.tables import count
report = read(path)
"""
WEIGH_NSW = """
seen = set()
def weight(value):
    known = id(value) in seen
    seen.add(id(value))
    return 0 if known else sys.getsizeof(value)
size = 0
for table in report.tables.values():
    if isinstance(table, list):
        size += sys.getsizeof(table) + sum(weight(row) + sum(map(weight, row.values())) for row in table)
    else:
        size += table.nbytes
rows = sum(map(count, report.tables.values()))
"""
PANDAS = """
import pandas
with path.open() as file:
    for _ in range({skip}):
        file.readline()
    frame = pandas.read_csv(file, header=None, dtype=str, {how})
"""
WEIGH_PANDAS = "size, rows = int(frame.memory_usage(deep=True).sum()), len(frame)"
HOW_TEXT = r"sep=r'\s{2,}', engine='python', names=range(20), nrows=20_000"


def write(path: Path, form: Form, megabytes: float) -> int:
    with path.open("w", encoding="utf-8") as file:
        size = file.write(form.titles)
        i = 0
        while size < megabytes * 1e6:
            i += 1
            size += file.write(form.row(i))
        return size + file.write(form.tail)


def run(path: Path, read: str, weigh: str) -> tuple[float, float, int, int, int]:
    code = MEASURE.format(read=read, weigh=weigh)
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=ROOT, capture_output=True, text=True)
    seconds, cpu, peak, result, rows = done.stdout.split()
    return float(seconds), float(cpu), int(peak), int(result), int(rows)


def best(runs: list[tuple[float, float, int, int, int]]) -> tuple[float, float, int, int, int]:
    """The least of each but the rows, of which there are always as many."""
    return tuple(map(min, zip(*runs, strict=True)))  # type: ignore[return-value]


def pandas_of(form: Form) -> str:
    how = "" if form.is_csv else HOW_TEXT
    return PANDAS.format(skip=form.titles.count("\n"), how=how)


def main() -> None:
    sizes = [float(size) for size in sys.argv[1].split(",")] if len(sys.argv) > 1 else [30.0]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"{'':27}    MB | MB/s of wall  of CPU  peak  result MiB     rows | pandas: MB/s of wall  of CPU   peak")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.txt"
        for name, megabytes in itertools.product(sys.argv[3:] or FORMS, sizes):
            form = FORMS[name]
            size = write(path, form, megabytes) / 1e6
            pairs = [(run(path, NSW, WEIGH_NSW), run(path, pandas_of(form), WEIGH_PANDAS)) for _ in range(runs)]
            wall, cpu, peak, result, rows = best([own for own, _ in pairs])
            others = best([other for _, other in pairs])
            read = size if form.is_csv else size * min(1.0, others[4] / max(1, rows))
            print(
                f"{name:27} {megabytes:5g} | {size / wall:12.1f} {size / cpu:7.1f} {peak:5} {result:11} {rows:8}"
                f" | {read / others[0]:20.1f} {read / others[1]:7.1f} {others[2]:6}",
                flush=True,
            )


if __name__ == "__main__":
    main()
