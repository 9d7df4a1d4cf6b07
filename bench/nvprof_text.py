"""MB/s and peak memory of nvprof's text reader: python bench/nvprof_text.py [MB] [runs].

Each form is written to a temporary folder and read in processes of their own, whose peak memory (ru_maxrss,
with the interpreter and every import) and CPU time are printed; the fastest run counts. Twice as large files
show what of the memory is the result's.
"""

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


def summary(i: int) -> str:
    return f"                    0.16%  {i % 997 + 1}.62us        {i % 89}  2.7080us     610ns  69.471us  {KERNEL}\n"


def output(i: int) -> str:
    return (
        f"[epoch 3, step {i}] loss 0.2{i % 997:03d} at 1234.5 images/s, 41.68% of the data seen, nothing to profile\n"
    )


FORMS: dict[str, tuple[str, Callable[[int], str], str]] = {
    "gpu trace": (TRACE, trace, ""),
    "copies of all sizes": (TRACE, copies, ""),
    "gpu trace, csv": (TRACE_CSV, trace_csv, ""),
    "api trace": ("   Start  Duration  Name\n", calls, ""),
    "summary": (SUMMARY, summary, ""),
    "job output": ("", output, "==1== Profiling result:\n" + SUMMARY + summary(1)),
    "output after table": (SUMMARY + summary(1), output, ""),
}
READ = (
    "import sys, time; from pathlib import Path; before = time.perf_counter(); from nsw.readers import read; "
    "from nsw.tables import count; report = read(Path(sys.argv[1])); seconds = time.perf_counter() - before; "
    "import resource; u = resource.getrusage(resource.RUSAGE_SELF); "
    "print(seconds, u.ru_utime + u.ru_stime, u.ru_maxrss >> 10, sum(map(count, report.tables.values())))"
)


def write(path: Path, form: str, megabytes: float) -> int:
    head, row, tail = FORMS[form]
    with path.open("w", encoding="utf-8") as file:
        size = file.write("==1== Profiling result:\n" + head if head else "")
        i = 0
        while size < megabytes * 1e6:
            i += 1
            size += file.write(row(i))
        return size + file.write(tail)


def run(path: Path) -> tuple[float, float, int, int]:
    done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, cwd=ROOT, capture_output=True, text=True)
    seconds, cpu, peak, rows = done.stdout.split()
    return float(seconds), float(cpu), int(peak), int(rows)


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {megabytes:g} MB each")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.txt"
        for form in FORMS:
            size = write(path, form, megabytes)
            seconds, cpu, peak, rows = min(run(path) for _ in range(runs))
            print(
                f"{form:20} {size / 1e6 / seconds:6.1f} MB/s  {cpu:5.2f} s CPU  {peak:5} MiB  {rows:8} rows", flush=True
            )


if __name__ == "__main__":
    main()
