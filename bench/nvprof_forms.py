"""Reports of nvprof as long as one wants, a form each: lines of titles, the rows, what stands behind them."""

from collections.abc import Callable
from typing import NamedTuple

KERNEL = "void at::native::vectorized_elementwise_kernel<int=4, at::native::AddFunctor<float>>(int, float)"
TRACE = "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  "
TRACE += "SrcMemType  DstMemType           Device   Context    Stream  Name\n"
TRACE_CSV = '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",'
TRACE_CSV += '"Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream",'
TRACE_CSV += '"Name","Correlation_ID"\nms,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n'
OCCUPANCY = "    0.%06d    0.839047    0.836913"
UNIFIED = "   Start  Duration        Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput"
UNIFIED += "          Device   Context    Stream  Unified Memory  Virtual Address  Secondary Address  Name\n"
UNIFIED_CSV = '"Start","Duration","Device","Context","Stream","Unified Memory","Virtual Address","Name"\ns,us,,,,KB,,\n'
MEMORY = 'Device "Tesla V100 (0)"\n   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name\n'
MEMORY_CSV = '"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time","Name"\n,,KB,KB,MB,MB,ms,\n'
METRICS = "Invocations                               Metric Name                "
METRICS += 'Metric Description         Min         Max         Avg\nDevice "Tesla V100 (0)"\n'
EVENTS = "Invocations                                Event Name         Min         Max         Avg       Total\n"
EVENTS += 'Device "Tesla V100 (0)"\n'
METRICS_CSV = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
EVENTS_CSV = '"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"\n'
SUMMARY_CSV = '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,ns,us,\n'
SUMMARY = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"


class Form(NamedTuple):
    """`titles` are the lines before the rows, of CSV the titles and perhaps the units."""

    titles: str
    row: Callable[[int], str]
    tail: str = ""
    is_csv: bool = False


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
    kernel = f"    Kernel: {KERNEL}\n" if i % 100 == 1 else ""
    values = OCCUPANCY % (i % 9973) if i % 10 else "     Low (2)     Mid (5)     Low (3)"
    return f"{kernel}        {i % 997}{f'achieved_occupancy_{i % 100}':>34}{'Achieved Occupancy':>49}{values}\n"


def metric_of_another(i: int) -> str:
    kernel = f"    Kernel: {i}{KERNEL}\n"
    return f"{kernel}        {i % 997}{'achieved_occupancy':>34}{'Achieved Occupancy':>49}{OCCUPANCY % (i % 9973)}\n"


def values_csv(i: int) -> str:
    return (
        f"{i % 9973}.{i % 997:06d}GB/s,{i % 9973 + 2}.5GB/s,{i % 9973 + 1}.5GB/s"
        if i % 10
        else '"Low (1)","Mid (4)","Low (2)"'
    )


def metric_csv(i: int) -> str:
    return f'"Tesla V100 (0)","{KERNEL}",{i},"gld_throughput","Global Load Throughput",{values_csv(i)}\n'


def metric_of_another_csv(i: int) -> str:
    return f'"Tesla V100 (0)","{i}{KERNEL}",{i},"gld_throughput","Global Load Throughput",{values_csv(i)}\n'


def event(i: int) -> str:
    kernel = f"    Kernel: {KERNEL}\n" if i % 4 == 1 else ""
    return f"{kernel}        {i % 997}{f'shared_st_bank_conflict_{i % 4}':>40}{i:12}{i + 9:12}{i + 5:12}{3 * i:12}\n"


def event_csv(i: int) -> str:
    return f'"Tesla V100 (0)","{KERNEL}",{i},"shared_st_bank_conflict",{i},{i + 9},{i + 5},{3 * i}\n'


def moved(i: int) -> str:
    total = f"{(i % 89 + 3) * 170.67 / 1024:.6f}MB  {i % 9973}.0480us"
    return f"{i % 89 + 3:8}  170.67KB  4.0000KB  0.9961MB  {total}  Host To Device\n"


def moved_csv(i: int) -> str:
    total = f"{(i % 89 + 3) * 170.67 / 1024:.6f},{i % 9973}.048000"
    return f'"Tesla V100 (0)",{i % 89 + 3},170.670000,4.000000,0.996100,{total},"Host To Device"\n'


def faults_csv(i: int) -> str:
    device = '"Tesla P100-PCIE-16GB (0)"'
    return f'{400 + i / 1000:.6f},,{device},,,{1 + i % 83},"0x{i:x}0000","[Unified Memory GPU page faults]"\n'


def span(i: int) -> str:
    times = f"{1 + i % 97}.3698ms         1  {1 + i % 97}.3698ms  {1 + i % 97}.3698ms  {1 + i % 97}.3698ms"
    return (
        f'==1==       Range "step {i}"\n{SUMMARY}          Range:  100.00%  {times}  step {i}\n'
        f" GPU activities:  100.00%  1.9439ms        54  35.998us  35.776us  37.441us  {KERNEL}\n"
        "      API calls:  100.00%  1.5909ms       270  5.8920us  3.2320us  322.48us  cudaLaunchKernel\n"
    )


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


RESULT = "==1== Profiling result:\n"
FORMS = {
    "summary": Form(RESULT + SUMMARY, summary),
    "gpu trace": Form(RESULT + TRACE, trace),
    "gpu trace, copies": Form(RESULT + TRACE, copies),
    "api trace": Form(RESULT + "   Start  Duration  Name\n", calls),
    "metrics": Form("==1== Metric result:\n" + METRICS, metric),
    "metrics, other kernels": Form("==1== Metric result:\n" + METRICS, metric_of_another),
    "events": Form("==1== Event result:\n" + EVENTS, event),
    "unified memory": Form("==1== Unified Memory profiling result:\n" + MEMORY, moved),
    "unified memory trace": Form(RESULT + UNIFIED, faults),
    "ranges": Form('==1== NVTX result:\n==1==   Thread "<unnamed>" (id = 7)\n==1==     Domain "<unnamed>"\n', span),
    "job output": Form("", output, RESULT + SUMMARY + summary(1)),
    "output after table": Form(RESULT + SUMMARY + summary(1), output),
    "summary csv": Form(RESULT + SUMMARY_CSV, summary_csv, is_csv=True),
    "gpu trace csv": Form(RESULT + TRACE_CSV, trace_csv, is_csv=True),
    "gpu trace, copies csv": Form(RESULT + TRACE_CSV, copies_csv, is_csv=True),
    "api trace csv": Form(RESULT + '"Start","Duration","Name","Correlation_ID"\nms,us,,\n', calls_csv, is_csv=True),
    "metrics csv": Form("==1== Metric result:\n" + METRICS_CSV, metric_csv, is_csv=True),
    "metrics, other kernels csv": Form("==1== Metric result:\n" + METRICS_CSV, metric_of_another_csv, is_csv=True),
    "events csv": Form("==1== Event result:\n" + EVENTS_CSV, event_csv, is_csv=True),
    "unified memory csv": Form("==1== Unified Memory profiling result:\n" + MEMORY_CSV, moved_csv, is_csv=True),
    "unified memory trace csv": Form(RESULT + UNIFIED_CSV, faults_csv, is_csv=True),
}
