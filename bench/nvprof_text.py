"""MB/s and peak memory of nvprof's text reader: python bench/nvprof_text.py [MB]."""

import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

from nsw.readers import read
from nsw.tables import count

KERNEL = "void at::native::vectorized_elementwise_kernel<int=4, at::native::AddFunctor<float>>(int, float) "
HEADS = {
    "gpu trace": "==1== Profiling result:\n   Start  Duration            Grid Size      Block Size     Regs*    SSMem*"
    "    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name\n",
    "gpu trace, csv": '==1== Profiling result:\n"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y",'
    '"Block Z","Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType",'
    '"Device","Context","Stream","Name","Correlation_ID"\nms,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n',
    "summary": "==1== Profiling result:\n            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n",
    "job output": "",
}


def row(form: str, i: int) -> str:
    if form == "gpu trace":
        return (
            f"{400 + i / 1000:.4f}ms  {1 + i % 997 / 1000:.4f}us              (64 1 1)        (64 1 1)        36"
            f"      135B        0B         -           -           -           -  Tesla V100-SXM2         1"
            f"         7  {KERNEL}[{i}]\n"
        )
    if form == "gpu trace, csv":
        return (
            f"{400 + i / 1000:.6f},{1 + i % 997 / 1000:.6f},64,1,1,64,1,1,36,0.131836,0,,,,,"
            f'"Tesla V100-SXM2-16GB (0)","1","7","{KERNEL}",{i}\n'
        )
    if form == "summary":
        return (
            f"                    0.16%  {i % 997 + 1}.62us        {i % 89}  2.7080us     610ns  69.471us  {KERNEL}\n"
        )
    return (
        f"[epoch 3, step {i}] loss 0.2{i % 997:03d} at 1234.5 images/s, 41.68% of the data seen, nothing to profile\n"
    )


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(
        f"{platform.machine()} {platform.processor() or ''} Python {platform.python_version()}, {megabytes:g} MB each"
    )
    with tempfile.TemporaryDirectory() as folder:
        for form, head in HEADS.items():
            path = Path(folder) / "out.txt"
            with path.open("w") as file:
                file.write(head)
                size = i = 0
                while size < megabytes * 1e6:
                    i += 1
                    size += file.write(row(form, i))
                if form == "job output":
                    file.write(HEADS["summary"] + row("summary", 1))
            before = time.perf_counter()
            report = read(path)
            seconds = time.perf_counter() - before
            rows = sum(count(t) for t in report.tables.values())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{form:16} {size / 1e6 / seconds:6.1f} MB/s  {rows:8} rows  peak so far {peak:6.0f} MiB")


if __name__ == "__main__":
    main()
