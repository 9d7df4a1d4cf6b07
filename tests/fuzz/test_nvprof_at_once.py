"""Rows of nvprof's text and CSV that are read many at once are read as they are one by one, whatever stands among them."""

import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import read
from nsw.readers.nvprof.text import reader as nvprof_text
from nsw.readers.nvprof.text.csv import CsvTable
from nsw.readers.nvprof.text.metrics import MetricTable
from nsw.readers.nvprof.text.numbers import OddRowsError, counts, rates, shares, sizes, times, whole_times
from nsw.readers.nvprof.text.summary import SummaryTable
from nsw.readers.nvprof.text.times import exact_to_a_ns, whole_ns
from nsw.readers.nvprof.text.trace import TraceTable
from nsw.readers.nvprof.text.unified_memory import MemoryTable
from nsw.readers.nvprof.text.values import Value, in_unit, in_units, metric_value, metric_values
from nsw.readers.text.quantities import duration, percent, rate, size, whole
from nsw.tables import rows

from .damage import TIMES

calm = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150 * TIMES)
KERNELS = (
    "gemm(float*, int)", "void k<int, 4>(int const *, A<float>)", "_Z4gemmPfi", "cudnn::detail::conv(int)", "f(int [3])",
    "copy<(", "a, b", "cuFoo", "acc_wait@a.c:3", "[Marker] x", "a...",
)  # fmt: skip
COPIES = ("[CUDA memcpy HtoD]", "[CUDA memset]", "[Unified Memory Memcpy HtoD]", "[Unified Memory GPU page faults]")
CALLS = ("cudaLaunchKernel", "cudaFree_v3020", "cuMemAlloc_v2", "cudaMemcpy")
SUMMARY = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
TRACE = (
    "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput"
    "  SrcMemType  DstMemType           Device   Context    Stream  Name\n"
)
UNIFIED = (
    "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*           Device   Context"
    "    Stream          Unified Memory  Virtual Address  Name\n"
)
MEMORY = "   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name\n"
METRICS = (
    "Invocations                               Metric Name                        Metric Description"
    "         Min         Max         Avg\n"
)
EVENTS = "Invocations                                Event Name         Min         Max         Avg       Total\n"
DEVICE = 'Device "Tesla V100 (0)"\n'
TRACE_CSV = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",'
    '"Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"\n'
    "s,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n"
)
UNIFIED_CSV = '"Start","Duration","Device","Context","Stream","Unified Memory","Virtual Address","Name"\ns,us,,,,KB,,\n'
CALLS_CSV = '"Start","Duration","Name","Correlation_ID"\nms,us,,\n'
SUMMARY_CSV = '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,ns,us,\n'
METRICS_CSV = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
EVENTS_CSV = '"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"\n'
MEMORY_CSV = '"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time","Name"\n,,KB,KB,KB,MB,ms,\n'


def _decimal(draw):
    whole_part = draw(st.integers(0, 10 ** draw(st.integers(0, 6))))
    places = draw(st.integers(0, 7))
    return f"{whole_part}.{draw(st.integers(0, 10**places - 1)):0{places}}" if places else str(whole_part)


def _number(draw, unit=""):
    """Mostly as nvprof prints it."""
    odd = ("-", "", "1e+03", "1,234", "nan", ".5", "5.", " 7", "0x12", "9" * 25, "-3", "1.2.3", "١٢")
    return draw(st.sampled_from(odd)) if draw(st.integers(0, 60)) == 7 else _decimal(draw) + unit


def _time(draw):
    return _number(draw, draw(st.sampled_from(["us", "us", "ms", "ns", "s"])))


def _kernel(draw, names=KERNELS):
    tail = draw(st.sampled_from(["", "", "", " [%d]", " [%d]", "  [%d]", " (f(int) [%d])", " "]))
    name = draw(st.sampled_from(names if draw(st.integers(0, 4)) == 0 else names[:3]))
    return name + (tail % draw(st.integers(0, 300)) if "%" in tail else tail)


def _summary(draw):
    label = draw(st.sampled_from(["", "", "", "", "", "GPU activities:", "API calls:", "Range:", "OpenACC (incl):"]))
    name = _kernel(draw, draw(st.sampled_from([KERNELS, COPIES, CALLS])))
    figures = (_number(draw, "%"), _time(draw), draw(st.integers(0, 99)), _time(draw), _time(draw), _time(draw), name)
    return f"{label:>16}  {figures[0]:>7}  " + "  ".join(map(str, figures[1:])) + "\n"


def _summary_csv(draw):
    label = draw(st.sampled_from(["GPU activities", "GPU activities", "GPU activities", "API calls", ""]))
    name = _kernel(draw, draw(st.sampled_from([KERNELS, COPIES, CALLS])))
    figures = [_number(draw), _number(draw), str(draw(st.integers(0, 99))), *(_number(draw) for _ in range(3))]
    return f'"{label}",{",".join(figures)},"{name}"\n'


def _trace(draw):
    if draw(st.booleans()):
        middle = f"({draw(st.integers(1, 3))} 1 1)  (64 1 1)  36  {draw(st.sampled_from(['135B', '2.0KB', '?']))}  0B  -  -  -  -"
        name = _kernel(draw)
    else:
        size = _number(draw, draw(st.sampled_from(["B", "KB", "MB"])))
        middle = f"-  -  -  -  -  {size}  {_number(draw, 'GB/s')}  Pageable  {draw(st.sampled_from(['Device', '-']))}"
        name = draw(st.sampled_from(COPIES))
    device = draw(st.sampled_from(["Tesla V100-SXM2", "GeForce GTX 107", "-", "Quadro (0"]))
    return f"{_time(draw)}  {_time(draw)}          {middle}  {device}  1  7  {name}\n"


def _unified(draw):
    name = draw(st.sampled_from([*COPIES, KERNELS[0]]))
    moved = draw(st.sampled_from([_number(draw, "KB"), str(draw(st.integers(0, 99))), "-", "0x7f00"]))
    start, took = _time(draw), draw(st.sampled_from([_time(draw), "-"]))
    return f"{start}  {took}      -     -    -   -    -  Tesla P100-PCIE    1   7   {moved}  0x{draw(st.integers(0, 99))}a  {name}\n"


def _calls(draw):
    names = draw(st.sampled_from([CALLS, CALLS, KERNELS]))
    return f"{_time(draw)}  {_time(draw)}  {_kernel(draw, names)}\n"


def _trace_csv(draw):
    id_ = draw(
        st.sampled_from([str(draw(st.integers(0, 999))), "", "x"] if draw(st.integers(0, 9)) == 7 else ["12", "134"])
    )
    times = f"{_number(draw)},{_number(draw)}"
    if draw(st.booleans()):
        return f'{times},64,1,1,{draw(st.integers(1, 3))},1,1,36,0.131836,0,,,,,"V100 (0)","1","7","{_kernel(draw)}",{id_}\n'
    moved = f"{_number(draw)},{_number(draw)}"
    return f'{times},,,,,,,,,,{moved},"Pageable","Device","V100 (0)","1","7","{draw(st.sampled_from(COPIES))}",{id_}\n'


def _unified_csv(draw):
    moved = draw(st.sampled_from([_number(draw), str(draw(st.integers(0, 99))), "", "PC 0x12"]))
    times = f"{_number(draw)},{draw(st.sampled_from([_number(draw), '']))}"
    return f'{times},"P100 (0)",,,{moved},"0x{draw(st.integers(0, 99))}","{draw(st.sampled_from([*COPIES, *CALLS]))}"\n'


def _calls_csv(draw):
    return f'{_number(draw)},{_number(draw)},"{_kernel(draw, draw(st.sampled_from([CALLS, KERNELS])))}",{draw(st.integers(0, 99))}\n'


VALUES = ("%", "", "GB/s", "MB/s", "B/s", "KB/s", "B")


def _value(draw):
    words = ("Low (2)", "Mid (5)", "<OVERFLOW>", "n/a", "Idle (0)", "-", "12us", "inf")
    return (
        draw(st.sampled_from(words)) if draw(st.integers(0, 7)) == 0 else _number(draw, draw(st.sampled_from(VALUES)))
    )


def _metric(draw):
    if draw(st.integers(0, 3)) == 0:
        return f"    Kernel: {_kernel(draw)}\n"
    name = draw(
        st.sampled_from(
            ["ipc", "gld_throughput", "flop_count_sp", "Odd", "two words"][: draw(st.sampled_from([3, 3, 3, 5]))]
        )
    )
    values = "  ".join(_value(draw) for _ in range(3))
    return f"      {draw(st.integers(0, 99))}       {name}       Executed   IPC  {values}\n".replace("   IPC", " IPC")


def _event(draw):
    if draw(st.integers(0, 3)) == 0:
        return f"    Kernel: {_kernel(draw)}\n"
    return f"      {draw(st.integers(0, 99))}       warps_launched       {'  '.join(_number(draw) for _ in range(4))}\n"


def _metric_csv(draw):
    device = draw(st.sampled_from(["V100 (0)", "V100 (1)", ""]))
    values = ",".join(f'"{_value(draw)}"' if draw(st.booleans()) else _number(draw) for _ in range(3))
    return f'"{device}","{_kernel(draw)}",{draw(st.integers(0, 99))},"ipc","{draw(st.sampled_from(["", "Executed, IPC"]))}",{values}\n'


def _event_csv(draw):
    return (
        f'"V100 (0)","{_kernel(draw)}",{draw(st.integers(0, 99))},"warps",{",".join(_number(draw) for _ in range(4))}\n'
    )


def _memory(draw):
    sizes = "  ".join(_number(draw, draw(st.sampled_from(["KB", "MB", "B"]))) for _ in range(4))
    return f"   {draw(st.sampled_from(['3', '12', '-']))}  {sizes}  {_time(draw)}  {draw(st.sampled_from(MOVES))}\n"


def _memory_csv(draw):
    sizes = ",".join(_number(draw) for _ in range(4))
    count = draw(st.sampled_from(["3", "12", ""]))
    device = draw(st.sampled_from(["V100 (0)", "V100 (1)"]))
    return f'"{device}",{count},{sizes},{_number(draw)},"{draw(st.sampled_from(MOVES))}"\n'


MOVES = ("Host To Device", "Device To Host", "Gpu page fault groups", "Remote mapping from device")
FORMS = {
    "summary": (SUMMARY, _summary), "trace": (TRACE, _trace), "unified trace": (UNIFIED, _unified),
    "calls": ("   Start  Duration  Name\n", _calls), "metrics": (METRICS + DEVICE, _metric),
    "events": (EVENTS + DEVICE, _event), "memory": (MEMORY, _memory), "summary csv": (SUMMARY_CSV, _summary_csv),
    "trace csv": (TRACE_CSV, _trace_csv), "unified trace csv": (UNIFIED_CSV, _unified_csv),
    "calls csv": (CALLS_CSV, _calls_csv), "metrics csv": (METRICS_CSV, _metric_csv),
    "events csv": (EVENTS_CSV, _event_csv), "memory csv": (MEMORY_CSV, _memory_csv),
}  # fmt: skip
# What stands among rows: of other processes, of programs, of tables, of people.
AMONG = (
    "\n", "step 3 loss 0.25% 12ms\n", "==7== Warning: 3 records have invalid timestamps\n", "==8== API calls:\n",
    "    float, int)\n", DEVICE, SUMMARY, TRACE, SUMMARY_CSV, METRICS_CSV, "==9== Profiling result:\n", ",,,,,,,\n",
    "    Kernel:\n", "1.5ms\n", "=1,2,3\n", '"GPU activities",1.0\n',
)  # fmt: skip
LINES = {
    "without a cell": lambda line: re.sub(r"(?<=[ ,])[^ ,]+(  +|,)", "", line, count=1),
    "a cell twice": lambda line: re.sub(r"(?<=[ ,])([^ ,]+(?:  +|,))", r"\1\1", line, count=1),
    "single blanks": lambda line: re.sub("  +", " ", line),
    "tabs": lambda line: re.sub("  +", "\t", line),
    "other blanks": lambda line: line.replace("  ", "\u2003 "),
    "unquoted": lambda line: line.replace('"', ""),
    "padded": lambda line: line[:-1] + ",,\n",
    "a quote lost": lambda line: line.replace('"', "", 1),
    "a quote more": lambda line: line.replace(",", ',"', 1),
    "in the middle of a line": lambda line: line[: len(line) // 2] + "\n",
    "of two lines": lambda line: line.replace("(", "(\n", 1),
    "crlf": lambda line: line.replace("\n", "\r\n"),
    "indented": lambda line: "  " + line,
    "ranked": lambda line: "[1,0]<stderr>:" + line,
    "of rank 1": lambda line: "[1,1]<stderr>:" + line,
    "in colour": lambda line: f"\x1b[32m{line[:-1]}\x1b[0m\n",
    "a quote doubled": lambda line: line.replace("k", 'k""', 1),
    "a formula": lambda line: "=" + line,
    "a cell behind": lambda line: line[:-1] + ",x\n",
    "a word behind": lambda line: line[:-1] + "  x\n",
    "a tab more": lambda line: line.replace(" V100", "\t V100").replace(" k", "\t k"),
    "another blank more": lambda line: line.replace(" V100", "\u2003 V100").replace(" k", " \u2003k"),
    "a grid lost": lambda line: line.replace("(64 1 1)", "?", 1).replace("0B", "?", 1),
    "an odd name": lambda line: line.replace("ipc", "Odd").replace("warps", "Warps"),
    "of several units": lambda line: re.sub(r"(ipc|warps_launched)", r"\1 (2 instances)", line),
    "units in brackets": lambda line: re.sub(r"(ipc|warps_launched)(.*)", r"\1  -  -  [  \2 ]", line),
    "without its end": lambda line: line.rstrip(')\n"') + "\n",
    "a digit garbled": lambda line: re.sub(r"\d(?=\d)", "#", line, count=1),
}


@st.composite
def reports(draw):
    """Several tables of a form or two, rows alike in runs, with other lines among them, and lines that were damaged."""
    text = ""
    for _ in range(draw(st.integers(1, 2))):
        head, row = FORMS[draw(st.sampled_from(sorted(FORMS)))]
        lines = [row(draw) for _ in range(draw(st.integers(1, 5)))]
        lines = [lines[i % len(lines)] for i in range(draw(st.integers(1, 12)))]
        for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
            at = draw(st.integers(0, len(lines)))
            if draw(st.booleans()) and at < len(lines):
                lines[at] = draw(st.sampled_from(list(LINES.values())))(lines[at])
            else:
                lines.insert(at, draw(st.sampled_from(AMONG)))
        text += "==7== Profiling result:\n" + head + "".join(lines)
    return text


ODD_NUMBERS = (
    "-",
    "",
    "1e+03",
    "1,234",
    "nan",
    ".5",
    "5.",
    " 7",
    "0x12",
    "9" * 25,
    "-3",
    "1.2.3",
    "\u0661\u0662",
    "7us",
    "7B",
    "7%",
)
ODD_NAMES = (
    *KERNELS, *COPIES, *CALLS, "f(int) [7]", "f(int)  [7]", "g (f(int) [7])", "cudaLaunch (f(int) [7])", "cudaFree [7]",
    "[CUDA memcpy HtoD] [7]", "[Temperature (C)]", "12", "12.5us", "cuFoo (x)", "f(int [\u0667])", "", " ", "-", '"',
)  # fmt: skip


def changed(line):
    """How, and the line changed so: as a whole, another number for each of its own, other names."""
    for how, change in LINES.items():
        yield how, change(line)
    for found in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?", line):
        for number in ODD_NUMBERS:
            yield f"{number!r} at {found.start()}", line[: found.start()] + number + line[found.end() :]
    for name in ODD_NAMES:
        for own in (r"(?:void )?k\d*(?:<int>)?\(.*?\)", r"\[(?:CUDA|Unified)[^]]*\]", r"cuda\w+", "Host To Device"):
            if re.search(own, line):
                yield f"named {name!r}", re.sub(own, lambda _, name=name: name, line, count=1)


def read_so(path, least, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvprof_text, "_LEAST", least)
        patch.setattr(nvprof_text, "_PART", part)
        report = read(path)
    return {name: list(rows(name, data)) for name, data in report.tables.items()}, report.problems


@calm
@given(text=reports(), part=st.sampled_from([1, 2, 3, 5]))
def test_what_is_read_at_once_is_what_is_read_line_by_line(tmp_path, text, part):
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_so(path, 1, part) == read_so(path, sys.maxsize, part)


PLAIN = {
    "summary": (SUMMARY, " 0.00{i}%  100.{i}us  {i}  2.7080us  61ns  69.47us  void k<int>(int)\n"),
    "trace": (TRACE, "1.{i}ms  2.5us  (64 1 1)  (64 1 1)  36  0B  0B  -  -  -  -  Tesla V100  1  7  k(int) [{i}]\n"),
    "copies": (TRACE, "1.{i}ms  2.5us  -  -  -  -  -  {i}B  {i}.5GB/s  Pageable  -  Tesla V100  1  7  [CUDA memcpy HtoD]\n"),
    "unified trace": (UNIFIED, "1.{i}ms  -  -  -  -  -  -  Tesla P100-PCIE  1  7  {i}  0x{i}00  [Unified Memory GPU page faults]\n"),
    "calls": ("   Start  Duration  Name\n", "1.{i}ms  2.5us  cudaLaunchKernel (k(int) [{i}])\n"),
    "metrics": (METRICS + DEVICE, "    Kernel: k{i}(int)\n    {i}   ipc   Executed IPC   1.5%   9.5%   2.{i}%\n"),
    "events": (EVENTS + DEVICE, "    Kernel: k{i}(int)\n     {i}  warps_launched  {i}  {i}  {i}  {i}\n"),
    "memory": (MEMORY, "   {i}  9.5KB  4.0KB  -  1.{i}MB  2.{i}us  Host To Device\n"),
    "memory csv": (MEMORY_CSV, '"V100 (0)",{i},1.5,0.5,9.{i},1.5,0.25,"Host To Device"\n'),
    "summary csv": (SUMMARY_CSV, '"GPU activities",0.00{i},0.1,{i},1.5,100.5,50.{i},"k{i}(int, int)"\n'),
    "trace csv": (TRACE_CSV, '0.{i},1.5,64,1,1,2,1,1,36,0.131836,0,,,,,"V100 (0)","1","7","k(int, int) ",{i}\n'),
    "copies csv": (TRACE_CSV, '0.{i},1.5,,,,,,,,,,{i}.5,{i}.25,"Pageable","Device","V100 (0)","1","7","[CUDA memset]",{i}\n'),
    "unified trace csv": (UNIFIED_CSV, '0.{i},,"P100 (0)",,,{i},"0x{i}","[Unified Memory GPU page faults]"\n'),
    "calls csv": (CALLS_CSV, '1.{i},2.5,"cudaFree",{i}\n'),
    "metrics csv": (METRICS_CSV, '"V100 (0)","k{i}(int, int)",{i},"ipc","Executed IPC",0.5%,999.5%,{i}.5%\n'),
    "events csv": (EVENTS_CSV, '"V100 (0)","k{i}(int, int)",{i},"warps",{i},{i},{i},{i}\n'),
}  # fmt: skip


@pytest.mark.parametrize("form", PLAIN)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "[1,0]<stderr>:"])
def test_rows_of_each_form_are_read_at_once(tmp_path, monkeypatch, form, ends, before):
    taken = []
    for kind in (CsvTable, MemoryTable, MetricTable, SummaryTable, TraceTable):
        take = kind.take
        monkeypatch.setattr(kind, "take", lambda *args, take=take: taken.append(args) or take(*args))
    head, row = PLAIN[form]
    text = "==7== Profiling result:\n" + head + "".join(row.replace("{i}", str(i)) for i in range(100, 900))
    path = tmp_path / "a.txt"
    path.write_text("".join(before + line + ends for line in text.splitlines()), newline="")
    report = read(path)
    assert len(taken) <= 101  # the first part, in which the titles are
    assert not report.problems
    assert max(len(data) for data in report.tables.values()) == 800


@pytest.mark.parametrize("form", PLAIN)
def test_a_row_that_is_not_plain_is_read_as_alone(tmp_path, form):
    head, row = PLAIN[form]
    path = tmp_path / "a.txt"
    plain = row.replace("{i}", "3")
    for how, other in changed(row.replace("{i}", "2")):
        path.write_text("==7== Profiling result:\n" + head + plain * 2 + other + plain + "  int)\n" + plain, newline="")
        slow = read_so(path, sys.maxsize, 1)
        assert read_so(path, 1, 1) == slow, how
        assert read_so(path, 1, 2) == slow, how


CELLS = st.lists(
    st.from_regex(r"\A[0-9]{0,17}(\.[0-9]{0,12})?(e-0[1-9])?(ns|us|ms|s|%|KB|B|MB/s|GB/s| us|m|)\Z"),
    min_size=1,
    max_size=4,
)
SOME_UNITS = st.sampled_from([None, "ns", "us", "ms", "s", "msec", "%", "KB"])


def or_none(read, *args):
    try:
        return read(*args)
    except OddRowsError:
        return None


@given(cells=CELLS, unit=SOME_UNITS)
def test_columns_of_numbers_are_those_of_their_cells(cells, unit):
    found = or_none(whole_times, cells, unit)
    assert found is None or list(zip(*found, strict=True)) == [whole_ns(c, unit) for c in cells]
    found = or_none(times, cells, unit)
    assert found is None or list(zip(*found, strict=True)) == [
        (q.value, exact_to_a_ns(q.pm)) for q in (duration(c, unit) for c in cells)
    ]
    found = or_none(sizes, cells, unit)
    assert found is None or list(zip(*found, strict=True)) == [size(c, unit, base=1024) for c in cells]
    found = or_none(rates, cells, unit)
    assert found is None or list(zip(*found, strict=True)) == [rate(c, unit, base=1024) for c in cells]
    for sign in ("", "%"):
        found = or_none(shares, cells, sign)
        assert found is None or list(zip(*found, strict=True)) == list(map(percent, cells))
    found = or_none(counts, cells)
    assert found is None or found == list(map(whole, cells))


@given(cells=CELLS | st.lists(st.sampled_from(["Low (2)", "n/a", "-", "12", "1.5GB/s", "3MB/s"]), min_size=1))
def test_columns_of_values_are_those_of_their_cells(cells):
    found = metric_values(cells)
    one_by_one = [metric_value(c) for c in cells]
    assert [Value(*v) for v in zip(*found, strict=True)] == one_by_one
    units = ["GB/s"] * len(cells)
    changed = in_units(found, units)
    assert list(zip(*changed, strict=True)) == [in_unit(v, "GB/s") for v in one_by_one]
