"""nvprof's text and CSV, whole and damaged, alone and inside the output of jobs."""

import html
import re
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import model, read
from nsw.readers.nvprof.text import counters as nvprof_metrics
from nsw.readers.nvprof.text import reader as nvprof_text
from nsw.readers.nvprof.text import state as nvprof_state
from nsw.readers.nvprof.text.state import clean_line
from nsw.tables import TABLES, full_rows, to_arrow
from tests.guard import ends

SUMMARY = """\
==351== NVPROF is profiling process 351, command: ./nbody 4096
Simulator is calculating positions correctly.
==351== Profiling application: ./nbody 4096
==351== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   75.00%  3.0752ms        10  307.52us  286.21us  377.89us  void ns::step<int=4>(Body*, float, int) [105]
                   25.00%  1.0250ms         2  512.50us     312ns  1.0247ms  [CUDA memcpy HtoD]
      API calls:   96.51%  160.34ms         1  160.34ms  160.34ms  160.34ms  cudaMallocManaged
                    3.49%  5.8000us         7     828ns     570ns  1.2040us  cudaLaunchKernel
"""
UNIFIED = """\

==351== Unified Memory profiling result:
Device "Tesla V100-SXM2-16GB (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
      36  32.889KB  4.0000KB  60.000KB  1.156250MB  196.5440us  Host To Device
      20         -         -         -           -  3.041344ms  Gpu page fault groups
Total CPU Page faults: 17
"""
NVTX = """\

==351== NVTX result:
==351==   Thread "<unnamed>" (id = 3242311680)
==351==     Domain "<unnamed>"
==351==       Range "declare"
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
          Range:  100.00%  8.3698ms         1  8.3698ms  8.3698ms  8.3698ms  declare
 GPU activities:  100.00%  1.9439ms        54  35.998us  35.776us  37.441us  void ns::step<int=4>(Body*, float, int)
      API calls:  100.00%  1.5909ms       270  5.8920us  3.2320us  322.48us  cudaLaunchKernel
"""
OLD = """\
==9== NVPROF is profiling process 9, command: ./a
==9== Profiling application: ./a
==9== Profiling result:
Time(%)      Time     Calls       Avg       Min       Max  Name
100.00%  125.70us         5  25.139us  25.088us  25.281us  kernel_dummy

==9== API calls:
Time(%)      Time     Calls       Avg       Min       Max  Name
 52.04%  4.08135s        10  408.14ms  1.1290us  1.02416s  cudaFree
"""
TRACE = """\
==7== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name
485.10ms  1.1980us                    -               -         -         -         -       24B  19.105MB/s    Pageable      Device  Quadro 4000 (0)         1         7  [CUDA memcpy HtoD]
486.23ms  252.38us              (4 2 1)         (8 1 1)        59      140B        0B         -           -           -           -  Quadro 4000 (0)         1         7  minmax(Nim*, Moves*) [107]

Regs: Number of registers used per CUDA thread. This number includes registers used internally by the CUDA driver
"""
TRACE_CSV = """\
==7== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"
s,ms,,,,,,,,KB,B,MB,GB/s,,,,,,,
10.042346,0.035730,,,,,,,,,,0.019531,0.533823,"Pageable","Device","NVIDIA Tegra X1 (0)","1","7","[CUDA memcpy HtoD]",135
10.048655,0.139587,8,1,1,256,1,1,50,0.000000,0,,,,,"NVIDIA Tegra X1 (0)","1","7","void k<int>(int, int)",155
"""
COPIES = (
    TRACE.splitlines()[1]
    + """
485.10ms  1.1980us                    -               -         -         -         -       24B  19.105MB/s    Pageable      Device  Quadro 4000 (0)         1         7  [CUDA memcpy HtoD]
485.20ms  1.2980us                    -               -         -         -         -  1.5000KB  1.1021GB/s    Pageable      Device  Quadro 4000 (0)         1         7  [CUDA memcpy HtoD]
485.30ms  1.2980us                    -               -         -         -         -      512B  376.18MB/s      Device           -  Quadro 4000 (0)         1         7  [CUDA memset]
485.40ms         -                    -               -         -         -         -         -           -           -           -  Quadro 4000 (0)         1         7  cudaFree [9]
485.50ms  1.2980us                    -               -         -         -         -      640B           -      Device           -  Quadro 4000 (0)         1         7  [CUDA memset]
485.60ms  1.2980us                    -               -         -         -         -       1 B  376.18MB/s      Device           -  Quadro 4000 (0)         1         7  [CUDA memset]
"""
)
COPIES_CSV = "\n".join(
    [
        *TRACE_CSV.splitlines()[1:4],
        TRACE_CSV.splitlines()[3].replace("0.019531,0.533823", "1.000000,2.5").replace("135", "136"),
        TRACE_CSV.splitlines()[3].replace("0.019531,0.533823", '"1.000000","2.5"').replace("135", "137"),
        TRACE_CSV.splitlines()[3].replace("0.019531,0.533823", "2.000000,").replace("135", "138"),
        "",
    ]
)
SUMMARY_CSV = """\
==3== Profiling result:
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,ms,,us,us,ms,
"GPU activities",70.736966,302.355298,6000,50.392000,43.490000,1.989134,"flux(int, int*, float*)"
"GPU activities",29.263034,125.079000,2000,62.539000,9.056000,0.063073,"[CUDA memcpy DtoD]"
"API calls",100.000000,1077.558077,5,215511.615000,6.776000,1077.530004,"cudaMemcpyToSymbol"
"""
METRICS = """\
==1== Metric result:
Invocations                               Metric Name                Metric Description         Min         Max         Avg
Device "GeForce GTX 1070 (0)"
    Kernel: GOL(int, int*, int*)
          2                      dram_read_throughput     Device Memory Read Throughput  0.00000B/s  1.0000GB/s  512.00MB/s
          2                        achieved_occupancy                Achieved Occupancy    0.834779    0.839047    0.836913
          2                        alu_fu_utilization      Arithmetic Unit Utilization      Low (2)     Mid (5)     Mid (4)
          2                            gld_efficiency     Global Memory Load Efficiency      83.96%      83.96%      83.96%
"""
EVENTS = """\
==1== Event result:
Invocations                                Event Name         Min         Max         Avg       Total
Device "Tesla P100-PCIE-16GB (1)"
    Kernel: vecAdd(float const *, int)
          3                            warps_launched        1024        2048        1536        4608
"""
ALL = {
    n: v
    for n, v in globals().items()
    if n
    in {
        "SUMMARY",
        "UNIFIED",
        "NVTX",
        "OLD",
        "TRACE",
        "TRACE_CSV",
        "SUMMARY_CSV",
        "METRICS",
        "EVENTS",
        "COPIES",
        "COPIES_CSV",
    }
}


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def errors(report):
    return [p for p in report.problems if p.severity == "error"]


def summary_facts(report):
    return [(r["kind"], r["short_name"], r["calls"], r["total_ns"]) for r in table(report, "gpu_summary")]


def test_a_summary_has_values_units_and_half_widths(load):
    report = load(SUMMARY)
    step, copy = table(report, "gpu_summary")
    assert (step["name"], step["short_name"], step["pid"]) == ("void ns::step<int=4>(Body*, float, int)", "step", 351)
    assert (step["total_ns"], step["total_ns_pm"], step["time_pct"]) == (3075200, 50, 75.0)
    assert (copy["kind"], copy["min_ns"], copy["min_ns_pm"]) == ("memcpy", 312, None)
    assert [r["name"] for r in table(report, "api_summary")] == ["cudaMallocManaged", "cudaLaunchKernel"]
    assert errors(report) == []


def test_the_old_layout_without_types_is_one_block(load):
    report = load(OLD)
    assert [(r["block"], r["name"]) for r in table(report, "gpu_summary")] == [(0, "kernel_dummy")]
    assert [(r["block"], r["total_ns"]) for r in table(report, "api_summary")] == [(0, 4081350000)]


def test_unified_memory_stands_apart(load):
    report = load(SUMMARY + UNIFIED)
    assert len(table(report, "gpu_summary")) == 2
    down, faults = table(report, "um_summary")
    assert (down["calls"], down["total_bytes"], down["total_ns"]) == (36, 1.15625 * 2**20, 196544)
    assert (faults["calls"], faults["total_bytes"], faults["device"]) == (20, None, 0)
    assert [(r["key"], r["value"]) for r in table(report, "facts")][-1] == ("um_total_cpu_page_faults", 17)


def test_ranges_repeat_no_kernel(load):
    report = load(SUMMARY + NVTX)
    assert len(table(report, "gpu_summary")) == 2
    (span,) = table(report, "nvtx_summary")
    assert (span["name"], span["domain"], span["total_ns"]) == ("declare", None, 8369800)
    (work,) = table(report, "nvtx_gpu_summary")
    assert (work["name"], work["gpu_ops"], work["gpu_ns"]) == ("declare", 54, 1943900)


def test_a_process_without_kernels_is_a_block_all_the_same(load):
    empty = "==5== Profiling result:\nNo kernels were profiled.\nNo API activities were profiled.\n"
    report = load(empty + SUMMARY)
    assert {r["block"] for r in table(report, "gpu_summary")} == {1}
    assert any("--profile-child-processes" in (p.fix or "") and p.is_note for p in report.problems)


@pytest.mark.parametrize(("call", "launches"), [("cudaMalloc", False), ("cudaLaunchKernel", True), ("cuInit", None)])
def test_calls_without_a_launch_explain_that_there_are_no_kernels(load, call, launches):
    text = SUMMARY.splitlines()
    text[5:7] = ["No kernels were profiled."]
    report = load("\n".join(text).replace("cudaMallocManaged", "cudaGetDevice").replace("cudaLaunchKernel", call))
    (problem,) = report.problems
    assert ("launch no kernel" in problem.message) == (problem.fix is None) == (launches is False)
    assert not problem.is_note


def test_openacc_regions_that_ran_on_the_cpu_are_named(load):
    report = load(
        "==5== Profiling result:\nNo kernels were profiled.\nNo API activities were profiled.\n"
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " OpenACC (excl):   99.77%  549.55ms        50  10.991ms  8.9484ms  22.894ms  acc_compute_construct@gol.f90:38\n"
    )
    assert any("ran on the CPU" in p.message and "-acc=gpu" in (p.fix or "") for p in report.problems)


def test_metrics_without_their_kernel_are_one_error(load):
    report = load(
        "==5== Profiling result:\n==5== Metric result:\n"
        "Invocations                               Metric Name                        Metric Description         Min         Max         Avg\n"
        "          1                        achieved_occupancy                        Achieved Occupancy    0.790099    0.790099    0.790099\n"
    )
    assert [p.message for p in report.problems if p.severity == "error"] == ["a metric without its kernel"]


def test_labels_of_rows_may_have_a_line_of_their_own(load):
    text = SUMMARY.replace(" GPU activities:   75", "\n GPU activities:\n   75").replace("API calls:  ", "API calls:\n")
    report = load(text)
    assert not report.problems
    assert [len(table(report, name)) for name in ("gpu_summary", "api_summary")] == [2, 2]


def test_a_trace_says_where_and_when(load):
    report = load(TRACE)
    copy, kernel = table(report, "gpu_trace")
    assert (copy["start_ns"], copy["start_ns_pm"], copy["duration_ns"]) == (485100000, 5000, 1198)
    assert (copy["bytes"], copy["src_memory"], copy["device"], copy["device_name"]) == (
        24,
        "pageable",
        0,
        "Quadro 4000",
    )
    assert (kernel["name"], kernel["correlation"], kernel["grid_y"], kernel["registers"]) == (
        "minmax(Nim*, Moves*)", 107, 2, 59,
    )  # fmt: skip


def test_a_trace_that_lost_its_double_blanks_is_read(load):
    squeezed = "\n".join(re.sub(r"  +", " ", line) for line in TRACE.splitlines())
    kernel = table(load(squeezed), "gpu_trace")[1]
    assert (kernel["block_x"], kernel["device_name"], kernel["context"]) == (8, "Quadro 4000", 1)
    assert kernel["name"] == "minmax(Nim*, Moves*)"


def test_a_csv_trace_takes_units_from_their_line(load):
    copy, kernel = table(load(TRACE_CSV), "gpu_trace")
    assert (copy["start_ns"], copy["start_ns_pm"], copy["duration_ns"]) == (10042346000, 500, 35730)
    assert (kernel["duration_ns_pm"], kernel["correlation"]) == (None, 155)


def test_csv_columns_have_units_of_their_own(load):
    flux, _ = table(load(SUMMARY_CSV), "gpu_summary")
    assert (flux["total_ns"], flux["avg_ns"], flux["max_ns"]) == (302355298, 50392, 1989134)
    assert (flux["total_ns_pm"], flux["avg_ns_pm"]) == (None, 1)  # nvprof cuts its means to whole ns


@pytest.mark.parametrize("csv", [SUMMARY_CSV, TRACE_CSV], ids=["summary", "trace"])
def test_a_spreadsheet_takes_the_quotes_and_the_rows_stay(load, csv):
    spoilt = "\n".join(line + ",,," if line else "" for line in csv.replace('"', "").splitlines())
    name = "gpu_summary" if csv is SUMMARY_CSV else "gpu_trace"
    wanted = [r["name"] for r in table(load(csv), name)]
    assert [r["name"] for r in table(load(spoilt), name)] == wanted


def test_metrics_are_numbers_in_the_unit_of_their_row(load):
    read_, occupancy, alu, load_ = table(load(METRICS), "metrics")
    assert (read_["unit"], read_["min"], read_["max"], read_["avg"]) == ("MB/s", 0, 1024, 512)
    assert (occupancy["kernel"], occupancy["avg"], occupancy["invocations"]) == ("GOL(int, int*, int*)", 0.836913, 2)
    assert (alu["min"], alu["max"], alu["avg"], alu["unit"]) == (2, 5, 4, None)
    assert (load_["unit"], load_["avg"], load_["device_name"]) == ("%", 83.96, "GeForce GTX 1070")


def test_an_event_is_a_metric_without_description(load):
    (event,) = table(load(EVENTS), "metrics")
    assert (event["metric"], event["description"], event["avg"], event["device"]) == ("warps_launched", None, 1536, 1)


def test_a_trace_with_metrics_has_a_row_for_each(load):
    text = (
        "==7== Profiling result:\n"
        '"Device","Context","Stream","Kernel","Correlation_ID","achieved_occupancy","dram_read_throughput"\n'
        ",,,,,,GB/s\n"
        '"Tesla K20m (0)","1","7","void k<int>(int)",12,0.5,1.250000\n'
    )
    found = table(load(text), "metrics")
    assert [(r["launch_id"], r["metric"], r["value"], r["unit"]) for r in found] == [
        (12, "achieved_occupancy", 0.5, None),
        (12, "dram_read_throughput", 1.25, "GB/s"),
    ]


def test_calls_from_the_device_count(load):
    text = SUMMARY.replace("    Calls  ", "  Calls (host)  Calls (device)  ").replace("  10  307", "   8   2  307")
    text = (
        text.replace(" 2  512", " 2   -  512")
        .replace("  1  160.34ms  160", "  1   -  160.34ms  160")
        .replace("7     828", "7   -   828")
    )
    assert [r["calls"] for r in table(load(text), "gpu_summary")] == [10, 2]


def piped(text):
    """The tables of a text as Markdown has them."""
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if "Time(%)" in line or re.search(r"\d%  ", line):
            yield f"|{'|'.join([''] * (8 - len(cells)) + cells)} |\n"
            if "Time(%)" in line:
                yield "|---|:--- " * 4 + "|\n"
        elif not line.startswith("=="):
            yield f"{line}\n"


DAMAGE = {
    "crlf": lambda t: t.replace("\n", "\r\n"),
    "utf-16": lambda t: t.encode("utf-16"),
    "utf-16 without a mark": lambda t: t.encode("utf-16-le"),
    "indented": lambda t: "".join("\t  " + line for line in t.splitlines(keepends=True)),
    "colours": lambda t: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in t.splitlines()),
    "entities": html.escape,
    "open mpi": lambda t: "".join("[1,0]<stderr>:" + line for line in t.splitlines(keepends=True)),
    "srun": lambda t: "".join(" 0: " + line for line in t.splitlines(keepends=True)),
    "timestamps": lambda t: "".join("2024-05-01T10:00:00.123Z " + line for line in t.splitlines(keepends=True)),
    "code fence": lambda t: "# Run\n```\n" + t + "```\n",
    "progress bar": lambda t: "10%\r20%\r" + t,
    "single blanks": lambda t: "\n".join(re.sub(r"  +", " ", line) for line in t.splitlines()),
    "tables of markdown": lambda t: "# Run\n\n" + "".join(piped(t)),
    "amid a log": lambda t: "".join(line + "step 3 loss 0.25% 12ms\n" for line in t.splitlines(keepends=True)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_transports_do_to_a_summary_does_not_matter(load, damage):
    report = load(damage(SUMMARY))
    assert summary_facts(report) == summary_facts(load(SUMMARY))
    assert errors(report) == []


def test_ranks_of_a_launcher_are_told_apart_line_by_line(load):
    other = SUMMARY.replace("351", "352").replace("3.0752ms", "3.0000ms")
    mixed = "".join(
        f"[1,0]<stderr>:{a}\n[1,1]<stderr>:{b}\n" for a, b in zip(SUMMARY.splitlines(), other.splitlines(), strict=True)
    )
    found = [(r["rank"], r["pid"], r["total_ns"]) for r in table(load(mixed), "gpu_summary") if r["kind"] == "kernel"]
    assert sorted(found) == [(0, 351, 3075200), (1, 352, 3000000)]


def test_processes_that_write_to_one_file_are_told_apart_by_their_prefix(load):
    first, second = OLD.split("\n\n")
    other = first.replace("==9==", "==10==").replace("kernel_dummy", "other")
    report = load(first + "\n" + other + "\n" + second)
    (api,) = table(report, "api_summary")
    assert (api["pid"], api["block"]) == (9, 0)
    assert [(r["pid"], r["block"]) for r in table(report, "gpu_summary")] == [(9, 0), (10, 1)]


def test_a_name_broken_over_lines_is_joined(load):
    broken = SUMMARY.replace("ns::step<int=4>(Body*, float", "ns::step<int=4>(Body*,\n float")
    assert table(load(broken), "gpu_summary")[0]["name"] == "void ns::step<int=4>(Body*, float, int) [105]"


def test_a_row_that_is_cut_short_is_told_with_its_line(load):
    cut = SUMMARY[: SUMMARY.index("512.50us")]
    report = load(cut)
    assert [(p.line, p.severity) for p in errors(report)] == [(7, "error")]
    assert len(table(report, "gpu_summary")) == 1


def test_titles_without_rows_are_told(load):
    report = load(SUMMARY[: SUMMARY.index("\n GPU") + 1])
    assert any(p.line == 5 for p in errors(report))


def test_messages_become_problems(load):
    report = load(
        "==1== Warning: 3 records have invalid timestamps due to insufficient device buffer space.\n" + SUMMARY
    )
    assert any("--device-buffer-size" in (p.fix or "") for p in report.problems)


def test_equal_names_are_rows_of_their_own(load):
    row = "                    1.74%  2.8900ms         7  412.86us  400.00us  420.00us  cudaLaunchKernel\n"
    report = load("\n".join(SUMMARY.splitlines()[:-1]) + "\n" + row + row.replace("2.8900ms", "2.8901ms"))
    names = [r["name"] for r in table(report, "api_summary")]
    assert names == ["cudaMallocManaged", "cudaLaunchKernel", "cudaLaunchKernel"]


def test_a_long_trace_becomes_arrow_with_the_same_rows(load):
    kernel = TRACE.splitlines()[3]
    name, correlation = kernel.rstrip("]").rsplit("[", 1)
    many = load(TRACE.replace(kernel, "\n".join(f"{name}[{int(correlation) + n}]" for n in range(5000))))
    data = many.tables["gpu_trace"]
    assert not isinstance(data, list)
    packed = to_arrow("gpu_trace", data).to_pylist()
    few = to_arrow("gpu_trace", load(TRACE).tables["gpu_trace"]).to_pylist()
    assert packed[:2] == few
    assert packed[5000] == few[1] | {"correlation": few[1]["correlation"] + 4999}


# ---- robustness: any bytes give a report, and every number in it was printed in the file


def _numbers(text):
    text = clean_line(text.replace("\0", ""))[1].replace("\r", "\n") + "\n" + text  # nvprof_lines takes colours out
    tokens = re.findall(r"\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?|\.\d+", text)
    tokens += re.findall(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?", text)
    return {float(t.replace(",", "")) for t in tokens if len(t) < 60}


_SCALES = [10**p for p in (0, 3, 6, 9)] + [1024**p for p in (1, 2, 3, 4, 5, 6)] + [1 / 1024**p for p in (1, 2, 3)]
_PERCENT = 100  # of a share: what portable_value makes of it
_FREE = {"block", "gpu_ops", "gpu_ns"}  # counted and summed, not printed


def assert_nothing_invented(report, text):
    printed = _numbers(text)
    signed = printed | {-p for p in printed}
    pairs = {a + b for a in printed for b in printed} if len(printed) < 60 else signed
    middles = {10 * p - 5 for p in printed if 0 < p <= 10}  # % of nvprof's levels 1 to 10
    for name, data in report.tables.items():
        for row in full_rows(name, data):
            assert set(row) <= set(TABLES[name].column_names)
            for column, value in row.items():
                if isinstance(value, str) or value is None or column.endswith("_pm") or column in _FREE:
                    continue
                near = any(abs(value - p * s) <= 0.5 + 1e-9 * abs(value) for p in signed for s in _SCALES)
                of_level = column == "portable_value" and (value in middles or any(
                    abs(value - p * _PERCENT) <= 1e-9 * abs(value) for p in printed
                ))  # fmt: skip
                assert near or of_level or value in pairs, (name, column, value)


_WHOLE = st.sampled_from(sorted(ALL.values()))


@st.composite
def damaged(draw):
    text = draw(_WHOLE) + draw(st.sampled_from(["", *sorted(ALL.values())]))
    for _ in range(draw(st.integers(1, 6))):
        at, to = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        how = draw(st.sampled_from(["cut", "drop", "splice", "flip", "double", "line"]))
        if how == "cut":
            text = text[:to]
        elif how == "drop":
            text = text[:at] + text[min(to, at + 40) :]
        elif how == "splice":
            other = draw(_WHOLE)
            text = text[:at] + other[draw(st.integers(0, len(other))) :][:200] + text[at:]
        elif how == "flip" and text:
            at = min(at, len(text) - 1)
            text = (
                text[:at]
                + draw(st.sampled_from([*list("0-,.%:;\"'()<>[]{}|=\t\x00\x1b é"), "ms", "e+99", "\r"]))
                + text[at + 1 :]
            )
        elif how == "double":
            text = text[:at] + text[at:to][:300] * 2 + text[to:]
        elif how == "line":
            lines = text.splitlines(keepends=True)
            draw(st.randoms(use_true_random=False)).shuffle(lines)
            text = "".join(lines)
    return text


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=damaged())
def test_no_damage_raises_or_invents(load, text):
    report = load(text)
    assert not any("Error:" in p.message and "damaged or unknown variant" in p.message for p in report.problems)
    assert_nothing_invented(report, text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400), text=_WHOLE, at=st.integers(0, 2000))
def test_any_bytes_in_the_middle_are_survived(load, data, text, at):
    raw = text.encode()
    report = load(raw[:at] + data + raw[at:])
    assert not any("damaged or unknown variant" in p.message for p in report.problems)


@pytest.mark.parametrize(
    "line",
    [
        "1" * 300_000,
        " " * 300_000,
        "1.0% " * 60_000,
        "(1 1 1) " * 40_000,
        '"' * 100_000,
        "," * 200_000,
        "|" * 200_000,
        "|" + " " * 200_000 + "|",
        "|1.0%|" + " " * 200_000,
        "- " * 90_000,
    ],
)
@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_a_hostile_line_ends(load, text, line):
    report = load(text + line + "\n" + text)
    assert report.tables


# ---- what is read fast is read the same


@pytest.fixture
def slowly(load, monkeypatch):
    """Read a text without any of the shortcuts: every line looked at, every row taken apart."""

    def slowly(text):
        with monkeypatch.context() as patch:
            patch.setattr(nvprof_text, "_TELLS", re.compile(r".*\S", re.DOTALL))
            patch.setattr(nvprof_metrics, "_is_value", lambda _: False)
            patch.setattr(nvprof_state, "_MARKS", "\n" + nvprof_state._MARKS)
            return load(text)

    return slowly


def assert_read_the_same(fast, slow):
    assert fast.problems == slow.problems
    assert fast.tables.keys() == slow.tables.keys()
    for name in slow.tables:
        assert table(fast, name) == table(slow, name), name


def rows_again(text):
    """The text with each line that may be a row twice, the second time with other times and ids."""
    lines = text.splitlines(keepends=True)
    return "".join(x + re.sub(r"(?<=\d)[1-8](?=\d*(?:[num]?s|\]?\n|,))", "9", x) if "." in x else x for x in lines)


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_shortcuts_change_nothing(load, slowly, text):
    again = rows_again(text)
    assert_read_the_same(load(again), slowly(again))


@pytest.mark.parametrize("line", ["= NVPROF is profiling process 9, command: ./a", "=9= NVPROF is profiling process"])
def test_a_damaged_line_of_a_process_is_reported_by_the_shortcuts_too(load, slowly, line):
    assert_read_the_same(load(f"{line}\n{SUMMARY}"), slowly(f"{line}\n{SUMMARY}"))
    assert any("names a process" in p.message for p in load(f"{line}\n{SUMMARY}").problems)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=damaged())
def test_shortcuts_change_nothing_of_a_damaged_report(load, slowly, text):
    assert_read_the_same(load(rows_again(text)), slowly(rows_again(text)))


def _peak_of_reading(path, megabytes):
    """MB that Python holds at most while it reads so much output with a summary at either end."""
    line = "[epoch 3] loss 0.2 at 1234.5 images/s, 41.68% of the data seen\n"
    path.write_text(SUMMARY + line * int(megabytes * 1e6 / len(line)) + SUMMARY)
    tracemalloc.start()
    try:
        assert len(table(read(path), "gpu_summary")) == 4
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_what_one_looks_for_is_found_wherever_pieces_end(tmp_path, monkeypatch):
    monkeypatch.setattr(model, "_PIECE_BYTES", 16)
    path = tmp_path / "a.txt"
    for at in range(40):
        path.write_text("x" * (model.HEAD_BYTES + at) + "== Profiling result:" + "y" * 40)
        sample = model.Sample(path)
        assert sample.contains("nothing", "== Profiling result:")
        assert not sample.contains("== Profiling result:y=")
        sample.is_looked_through = False
        assert not sample.contains("== Profiling result:")


def test_a_report_known_by_its_beginning_is_not_searched_by_others(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        model.Sample,
        "_search_whole_file",
        lambda self, _, look=model.Sample._search_whole_file: opened.append(0) or look(self, _),
    )
    path = tmp_path / "a.txt"
    path.write_text(SUMMARY + "step\n" * 20_000)
    assert read(path).format == "nvprof-text"
    known = len(opened)
    path.write_text("step\n" * 20_000 + SUMMARY)
    assert read(path).format == "nvprof-text"
    assert known < len(opened) - known


def test_memory_does_not_grow_with_the_file(tmp_path):
    _peak_of_reading(tmp_path / "a.txt", 0.1)  # what is imported and cached once
    assert _peak_of_reading(tmp_path / "a.txt", 9) < _peak_of_reading(tmp_path / "a.txt", 3) + 0.1


# ---- what people make of reports


COMMENTS = {"shell": "# ", "shell, close": "#", "c": "// ", "c block": " * ", "toml": "## "}


def test_a_name_that_goes_on_with_a_star_keeps_it(load):
    broken = SUMMARY.replace("(Body*, float", "(Body\n*, float")
    assert "(Body*, float, int)" in table(load(broken), "gpu_summary")[0]["name"]


def test_ranges_alone_repeat_no_kernel(load):
    report = load(NVTX)
    assert "gpu_summary" not in report.tables
    assert "api_summary" not in report.tables
    assert [r["gpu_ns"] for r in table(report, "nvtx_gpu_summary")] == [1943900]


def test_what_nvprof_says_behind_an_unfinished_line_is_heard(load):
    glued = SUMMARY.replace("==351== NVPROF", "Starting ... ==351== NVPROF").replace(
        "==351== Profiling result:", "done ==351== Profiling result:"
    )
    assert table(load(glued), "facts") == table(load(SUMMARY), "facts")
    twice = table(load(glued + glued), "gpu_summary")
    assert [r["block"] for r in twice] == [0, 0, 1, 1]


def test_a_device_that_was_cut_short_loses_its_bracket(load):
    for printed in ("Quadro M4000 (0", "Quadro M4000 ("):
        assert [
            (r["device"], r["device_name"])
            for r in table(load(TRACE.replace("Quadro 4000 (0)", printed)), "gpu_trace")[:1]
        ] == [(None, "Quadro M4000")]


def test_a_table_without_rows_is_none(load):
    assert set(load(TRACE).tables) == {"gpu_trace"}


CPU = """\
======== CPU profiling result (bottom up):
Time(%)      Time  Name
 48.87%  3.03999s  gol__2F1L30_
 48.87%  3.03999s  | __kmp_invoke_microtask
 48.87%  3.03999s  |   __kmp_invoke_task_func
  8.04%  500.15ms  |     | __kmp_fork_call
  1.13%     70ms   matvec(matrix const &)
 10.00%     70ms  matvec(matrix const &)
  9.00%     70ms    main

======== Data collected at 100Hz frequency
41.68%  12ms  of the data seen
"""


def test_cpu_samples_are_functions_and_their_callers_none(load):
    found = table(load(CPU), "functions")
    assert [(r["name"], r["self_s"], r["cpu_time_s"]) for r in found] == [
        ("gol__2F1L30_", 3.03999, 3.03999),
        ("matvec(matrix const &)", 0.07, 0.07),
    ]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda t: t.replace("bottom up", "top down"), "from the top down"),
        (lambda t: "\n".join(re.sub(r"  +", " ", line) for line in t.splitlines()), "indentation"),
        (lambda t: re.sub(r"\A(.*\n).*\n(?s:.*)", r"\g<1>84.25% matvec(matrix)\n84.25% main\n", t), "shares"),
    ],
    ids=["of another order", "flattened", "shares"],
)
def test_cpu_samples_that_cannot_be_told_from_their_callers_are_left_out(load, how, said):
    report = load(how(CPU))
    assert "functions" not in report.tables
    assert sum(said in p.message for p in report.problems) == 1


def test_openmp_events_have_a_table(load):
    text = SUMMARY + " OpenMP (incl):  100.00%  6.0000ms         3  2.0000ms  1.0000ms  3.0000ms  omp_parallel\n"
    assert [(r["name"], r["calls"]) for r in table(load(text), "openmp_summary")] == [("omp_parallel", 3)]


def test_titles_of_a_web_page_are_known(load):
    text = OLD.replace("Time(%)", "Time (%)")
    text = "\n".join(re.sub(r"  +", " ", line) for line in text.splitlines())
    assert [r["name"] for r in table(load(text), "gpu_summary")] == ["kernel_dummy"]


def test_the_log_of_an_older_profiler_is_explained(load):
    log = (
        "# CUDA_PROFILE_LOG_VERSION 2.0\n# CUDA_DEVICE 0 GeForce GT 520\nmethod,gputime,cputime,occupancy\n"
        "method=[ memcpyHtoD ] gputime=[ 1.120 ] cputime=[ 26.000 ]\n"
    )
    for text in (log, log[log.index("method=") :]):
        (problem,) = load(text).problems
        assert "COMPUTE_PROFILE" in problem.message


def test_the_layout_of_cuda_5_has_shares_without_a_sign(load):
    text = (
        "======== NVPROF is profiling dct8x8...\n======== Command: dct8x8\n======== Profiling result:\n"
        " Time(%)     Time  Calls      Avg      Min      Max  Name\n"
        "   49.52   9.36ms    101  92.68us  92.31us  94.31us  CUDAkernel2DCT(float*, float*, int)\n"
        "   37.47   7.08ms     10 708.31us 707.99us 708.50us  [CUDA memcpy DtoA]\n"
        "   12.34   1.00ms of a log\n"
    )
    found = table(load(text), "gpu_summary")
    assert [(r["kind"], r["time_pct"], r["total_ns"], r["calls"]) for r in found] == [
        ("kernel", 49.52, 9_360_000, 101),
        ("memcpy", 37.47, 7_080_000, 10),
    ]
    assert load(SUMMARY.replace("%  ", "   ")).tables.get("gpu_summary", []) == []  # since CUDA 9 it is damage


def test_a_name_that_was_elided_takes_no_line_that_follows(load):
    text = (
        OLD.partition("\n\n")[0].replace("kernel_dummy", "matvec(matrix const &, ...")
        + "\n"
        + SUMMARY[SUMMARY.index("            Type") :]
    )
    for dots in ("...", "\u2026"):
        found = [r["name"] for r in table(load(text.replace("...", dots)), "gpu_summary")]
        assert found[0] == f"matvec(matrix const &, {dots}"
        assert len(found) == 3


def test_titles_go_on_no_name(load):
    text = (
        OLD.partition("\n\n")[0].replace("kernel_dummy", "matvec(matrix")
        + "\n"
        + SUMMARY[SUMMARY.index("            Type") :]
    )
    assert len(table(load(text), "gpu_summary")) == 3


def test_marks_that_markdown_needs_before_signs_go(load):
    text = (SUMMARY + UNIFIED).replace("*", "\\*").replace("_", "\\_").replace('"', '\\"')
    for name, data in load(SUMMARY + UNIFIED).tables.items():
        assert table(load(text), name) == list(full_rows(name, data))


NORMALIZED = """\
======== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
                        %        us                  us        us        us
 GPU activities:    98.47  9.76e+04         1  9.76e+04  9.76e+04  9.76e+04  main_69_gpu
                     1.53  1.52e+03         3  506.3300  469.6690  531.8440  [CUDA memcpy DtoH]
      API calls:   100.00  0.334000         2  0.167000  0.034000  0.300000  cuDeviceGet
"""
NORMALIZED_TRACE = """\
======== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name
      us        ms                                             KB         B        MB        GB/s
0.000000  97.64157          (65535 1 1)       (128 1 1)        30  1.000000         0         -           -           -           -  Tesla P100-SXM2         1        13  main_69_gpu [49]
1.03e+05  0.469669                    -               -         -         -         -  14.53918   30.230700      Device      Pinned  Tesla P100-SXM2         1        13  [CUDA memcpy DtoH]
"""


def test_a_line_of_units_holds_for_the_rows_below(load):
    """As nvprof --normalized-time-unit prints them."""
    report = load(NORMALIZED)
    kernel, copy = table(report, "gpu_summary")
    assert (kernel["total_ns"], kernel["total_ns_pm"], kernel["time_pct"]) == (97_600_000, 50_000, 98.47)
    assert (copy["avg_ns"], copy["min_ns"], copy["calls"]) == (506_330, 469_669, 3)
    assert [(r["name"], r["max_ns"]) for r in table(report, "api_summary")] == [("cuDeviceGet", 300)]
    assert errors(report) == []


@pytest.mark.parametrize("squeeze", [False, True])
def test_a_line_of_units_holds_for_a_trace(load, squeeze):
    text = re.sub(r"(?<=\S)  +", " ", NORMALIZED_TRACE) if squeeze else NORMALIZED_TRACE
    report = load(text)
    kernel, copy = table(report, "gpu_trace")
    assert (kernel["duration_ns"], kernel["static_smem_bytes"], kernel["registers"]) == (97_641_570, 1024, 30)
    assert (copy["start_ns"], copy["duration_ns"], copy["bytes"]) == (103_000_000, 469_669, 14.53918 * 2**20)
    assert copy["bytes_per_s"] == 30.2307 * 2**30
    assert errors(report) == []


def test_events_of_openacc_are_no_kernels_of_a_trace(load):
    text = (
        "======== Profiling result:\n   Start  Duration      Size           Device   Context    Stream  Name\n"
        "     0ns  142.72us         -  Tesla P100-SXM2         1         7  acc_device_init@main.cpp:69\n"
        "1.2488ms       0ns  46.539MB  Tesla P100-SXM2         1        13  acc_alloc[data]@main.cpp:69 (x)\n"
        "1.3488ms     100ns         -  Tesla P100-SXM2         1        13  acc_runtime_shutdown\n"
    )
    report = load(text)
    assert "gpu_trace" not in report.tables
    assert [r["name"] for r in table(report, "openacc_summary")] == [
        "acc_device_init@main.cpp:69",
        "acc_runtime_shutdown",
        "acc_alloc[data]@main.cpp:69 (x)",
    ]


def test_a_kernel_may_stand_before_the_titles_of_its_metrics(load):
    lines = METRICS.splitlines()
    moved = "\n".join([lines[0], lines[3], lines[1], *lines[4:]])
    assert {r["kernel"] for r in table(load(moved), "metrics")} == {"GOL(int, int*, int*)"}
    twice = moved + "\n" + "\n".join([lines[1], *lines[4:]])
    assert len(table(load(twice), "metrics")) == 4  # the second table has no kernel
    assert errors(load(twice))


def test_a_result_in_one_line_is_told(load):
    (problem,) = [p for p in load(SUMMARY.replace("\n", " ")).problems if p.line]
    assert "line breaks" in problem.message


def test_a_process_has_its_command_in_its_block(load):
    other = SUMMARY.replace("351", "352").replace("nbody 4096", "other 1")
    first, second = SUMMARY.split("\n", 1), other.split("\n", 1)
    report = load("\n".join([first[0], second[0], first[1], second[1]]))
    assert [(r["block"], r["pid"], r["text"]) for r in table(report, "facts")] == [
        (0, 351, "./nbody 4096"),
        (1, 352, "./other 1"),
    ]


@pytest.mark.parametrize("length", [60, 100_000])
def test_a_name_of_many_underscores_is_read_to_its_end(tmp_path, length):
    row = "          1  {}     Instructions Executed           1           1           1\n"
    lines = (
        "==1== NVPROF is profiling process 1, command: ./a\n==1== Profiling result:\n==1== Metric result:\n"
        "Invocations                               Metric Name                        Metric Description         Min"
        '         Max         Avg\nDevice "Tesla P100 (0)"\n    Kernel: k(int)\n'
    )
    path = tmp_path / "a.txt"
    path.write_text(
        lines + row.format("inst_executed") + f"          1  a{'_' * length}!\n" + row.format("inst_issued")
    )
    with ends():
        report = read(path)
    assert {one["metric"] for one in report.tables["metrics"]} >= {"inst_executed", "inst_issued"}
