"""MB/s and peak memory of nvprof's text reader: python bench/nvprof_text.py [MB,MB...] [runs] [form...].

Each form is written to a temporary folder and read in processes of their own, whose peak memory (ru_maxrss,
with the interpreter and every import) and CPU time are printed; the fastest run counts. Two sizes, 100,400,
show that beside the result (its buffers, or what its rows weigh as dicts) memory does not grow with the file.
"""

import itertools
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "void at::native::vectorized_elementwise_kernel<int=4, at::native::AddFunctor<float>>(int, float)"
TRACE = "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  "
TRACE += "SrcMemType  DstMemType           Device   Context    Stream  Name\n"
TRACE_CSV = '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",'
TRACE_CSV += '"Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream",'
TRACE_CSV += '"Name","Correlation_ID"\nms,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n'
OCCUPANCY = "    0.%06d    0.839047    0.836913"
UNIFIED = "   Start  Duration        Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput"
UNIFIED += "          Device   Context    Stream  Unified Memory  Virtual Address  Secondary Address  Name\n"
METRICS = "==1== Metric result:\nInvocations                               Metric Name                "
METRICS += 'Metric Description         Min         Max         Avg\nDevice "Tesla V100 (0)"\n'
METRICS_CSV = "==1== Metric result:\n"
METRICS_CSV += '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
SUMMARY_CSV = '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,ns,us,\n'
SUMMARY = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"


def trace(i: int) -> str:
    return (
        f"{400 + i / 1000:.4f}ms  {1 + i % 997 / 1000:.4f}us              (64 1 1)        (64 1 1)        36"
        f"      135B        0B         -           -           -           -  Tesla V100-SXM2         1"
        f"         7  {KERNEL} [{i}]\n"
    )


def copies(i: int) -> str:
    return (
        f"{400 + i / 1000:.4f}ms  {1 + i % 997 / 1000:.4f}us                    -               -         -         -"
        f"         -       {1 + i % 83}B  {1 + i % 7919 / 1000:.3f}GB/s"
        "    Pageable      Device  Tesla V100-SXM2         1"
        "         7  [CUDA memcpy HtoD]\n"
    )


def trace_csv(i: int) -> str:
    return (
        f"{400 + i / 1000:.6f},{1 + i % 997 / 1000:.6f},64,1,1,64,1,1,36,0.131836,0,,,,,"
        f'"Tesla V100-SXM2-16GB (0)","1","7","{KERNEL} ",{i}\n'
    )


def calls(i: int) -> str:
    return f"{400 + i / 1000:.4f}ms  {1 + i % 997 / 1000:.4f}us  cudaLaunchKernel ({KERNEL} [{i}])\n"


def copies_csv(i: int) -> str:
    return (
        f"{400 + i / 1000:.6f},{1 + i % 997 / 1000:.6f},,,,,,,,,,{1 + i % 83 / 1000:.6f},{1 + i % 7919 / 1000:.6f},"
        f'"Pageable","Device","Tesla V100-SXM2-16GB (0)","1","7","[CUDA memcpy HtoD]",{i}\n'
    )


def calls_csv(i: int) -> str:
    return f'{400 + i / 1000:.6f},{1 + i % 997 / 1000:.6f},"cudaLaunchKernel ({KERNEL} [{i}])",{i}\n'


def faults(i: int) -> str:
    return (
        f"{400 + i / 1000:.4f}ms  {1 + i % 997 / 1000:.4f}us              -               -         -         -"
        f"         -         -           -               -         -         -         {1 + i % 83}  0x{i:x}0000"
        "                -  [Unified Memory GPU page faults]\n"
    )


def metric(i: int) -> str:
    kernel = f"    Kernel: {KERNEL}\n" if i % 4 == 1 else ""
    return f"{kernel}        {i % 997}{'achieved_occupancy':>34}{'Achieved Occupancy':>49}{OCCUPANCY % (i % 9973)}\n"


def metric_csv(i: int) -> str:
    value = f"0.{i % 9973:06d}"
    return f'"Tesla V100 (0)","{KERNEL}",{i},"ipc","Executed IPC",{value},{value},{value}\n'


def summary_csv(i: int) -> str:
    calls = i % 89 + 26
    times = f"{calls * 2.708 / 1000:.6f},{calls},2.708000,610.000000,69.471000"
    return f'"GPU activities",0.{i % 997:06d},{times},"{KERNEL}"\n'


def summary(i: int) -> str:
    calls = i % 89 + 26
    return f"                    0.16%  {calls * 2.708:.3f}us        {calls}  2.7080us     610ns  69.471us  {KERNEL}\n"


def output(i: int) -> str:
    return (
        f"[epoch 3, step {i}] loss 0.2{i % 997:03d} at 1234.5 images/s, 41.68% of the data seen, nothing to profile\n"
    )


FORMS: dict[str, tuple[str, Callable[[int], str], str]] = {
    "gpu trace": (TRACE, trace, ""),
    "copies of all sizes": (TRACE, copies, ""),
    "gpu trace, csv": (TRACE_CSV, trace_csv, ""),
    "copies, csv": (TRACE_CSV, copies_csv, ""),
    "unified memory trace": (UNIFIED, faults, ""),
    "api trace": ("   Start  Duration  Name\n", calls, ""),
    "api trace, csv": ('"Start","Duration","Name","Correlation_ID"\nms,us,,\n', calls_csv, ""),
    "summary": (SUMMARY, summary, ""),
    "summary, csv": (SUMMARY_CSV, summary_csv, ""),
    "metrics": (METRICS, metric, ""),
    "metrics, csv": (METRICS_CSV, metric_csv, ""),
    "job output": ("", output, "==1== Profiling result:\n" + SUMMARY + summary(1)),
    "output after table": (SUMMARY + summary(1), output, ""),
}
READ = """
import resource, sys, time
from pathlib import Path
before = time.perf_counter()
from nsw.readers import read
from nsw.tables import count
report = read(Path(sys.argv[1]))
seconds = time.perf_counter() - before
used = resource.getrusage(resource.RUSAGE_SELF)
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
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, size >> 20, sum(map(count, report.tables.values())))
"""


def write(path: Path, form: str, megabytes: float) -> int:
    head, row, tail = FORMS[form]
    with path.open("w", encoding="utf-8") as file:
        size = file.write("==1== Profiling result:\n" + head if head else "")
        i = 0
        while size < megabytes * 1e6:
            i += 1
            size += file.write(row(i))
        return size + file.write(tail)


def run(path: Path) -> tuple[float, float, int, int, int]:
    done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, cwd=ROOT, capture_output=True, text=True)
    seconds, cpu, peak, result, rows = done.stdout.split()
    return float(seconds), float(cpu), int(peak), int(result), int(rows)


def main() -> None:
    sizes = [float(size) for size in sys.argv[1].split(",")] if len(sys.argv) > 1 else [30.0]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.txt"
        for form, megabytes in itertools.product(sys.argv[3:] or FORMS, sizes):
            size = write(path, form, megabytes)
            seconds, cpu, peak, result, rows = min(run(path) for _ in range(runs))
            print(
                f"{form:20} {megabytes:5g} MB {size / 1e6 / seconds:6.1f} MB/s  {cpu:5.2f} s CPU  {peak:5} MiB,"
                f" {result:5} the result's  {rows:8} rows",
                flush=True,
            )


if __name__ == "__main__":
    main()
