"""Reports that were cut, squeezed or put together before they are read."""

import re

import pytest

from nsw.readers.detect import read
from nsw.tables import full_rows

NCU = """\
==PROF== Disconnected from process 7
[7] a.out@127.0.0.1
  scale(float *, int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    --------------- ----------- ------------
    Metric Name     Metric Unit Metric Value
    --------------- ----------- ------------
    Elapsed Cycles        cycle        5,120
    Duration                 us         3.52
    # SMs                    SM          142
    --------------- ----------- ------------

    Section: Occupancy
    ------------------ ----------- ------------
    Metric Name        Metric Unit Metric Value
    ------------------ ----------- ------------
    Achieved Occupancy           %        71.25
    ------------------ ----------- ------------
"""

NCU_CSV = """\
==PROF== Disconnected from process 7
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","a.out","127.0.0.1","scale(float *, int)","1","7","(256, 1, 1)","(64, 1, 1)","0","8.9",\
"Command line profiler metrics","gpu__time_duration.sum","us","3.52"
"""

NVPROF = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Profiling application: ./a.out
==7== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   75.00%  3.0000ms         2  1.5000ms  1.4000ms  1.6000ms  void scale<float>(float*, int)
                   25.00%  1.0000ms         1  1.0000ms  1.0000ms  1.0000ms  [CUDA memcpy HtoD]
      API calls:  100.00%  9.0000ms         1  9.0000ms  9.0000ms  9.0000ms  cudaMalloc
"""

NSYS = """\
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)              Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  --------------------------
    100.0            4,000          2   2,000.0   2,000.0     1,900     2,100        141.4  void scale<float>(T1 *)
"""

TORCH = """\
----------------  ------------  ------------  ------------  ------------  ------------  ------------
            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls
----------------  ------------  ------------  ------------  ------------  ------------  ------------
        aten::mm        75.00%       3.000ms        75.00%       3.000ms       1.500ms             2
       aten::add        25.00%       1.000ms        25.00%       1.000ms       1.000ms             1
----------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 4.000ms
"""


def found(tmp_path, text, name="report"):
    path = tmp_path / name
    path.write_text(text)
    report = read(path)
    wanted = ("gpu_summary", "api_summary", "launches", "metrics", "operators")
    told = {t: list(full_rows(t, report.tables[t])) for t in wanted if t in report.tables}
    return report, told


def test_messages_of_nvprof_without_a_result_are_an_error(tmp_path):
    """The command that a message names is no result."""
    report, _ = found(tmp_path, "==7== NVPROF is profiling process 7, command: ./a.out\nSegmentation fault\n")
    assert [p.severity for p in report.problems] == ["error"]


def test_a_launch_of_ncu_without_figures_is_an_error(tmp_path):
    """Of a report printed with a blank line after each, the tables cannot be told."""
    report, told = found(tmp_path, NCU.replace("\n", "\n\n"))
    assert "metrics" not in told
    assert [(p.severity, p.line) for p in report.problems] == [("error", 5)]


def test_figures_of_ncu_below_the_headers_of_several_launches_are_of_none(tmp_path):
    """An extract of all headers, then of all tables."""
    lines = NCU.splitlines()
    headers = [lines[2], lines[2].replace("scale", "shift")]
    report, told = found(tmp_path, "\n".join([*headers, "", *lines[4:11], "", *lines[4:11]]))
    assert [r["duration_ns"] for r in told["launches"]] == [None, None]
    assert "metrics" not in told
    assert [p.severity for p in report.problems] == ["error", "error"]


def test_a_second_table_outside_of_sections_is_of_another_launch(tmp_path):
    lines = NCU.splitlines()
    report, told = found(tmp_path, "\n".join([lines[2], *lines[4:11], "", *lines[4:11]]))
    assert [r["metric"] for r in told["metrics"]] == ["Elapsed Cycles", "Duration", "# SMs"]
    assert [p.severity for p in report.problems] == ["error"]


@pytest.mark.parametrize("blanks", [" ", "\t"], ids=["one blank", "tab"])
def test_figures_of_ncu_whose_columns_are_lost_are_refused(blanks, tmp_path):
    """As a web page or an editor squeezes them."""
    report, told = found(tmp_path, re.sub(" {2,}", blanks, NCU.replace("\n  ", "\n   ")))
    assert "metrics" not in told
    assert [p.severity for p in report.problems] == ["error", "error"]


def test_an_ellipsis_of_an_author_ends_no_table_of_ncu(tmp_path):
    _, plain = found(tmp_path, NCU)
    report, told = found(tmp_path, NCU.replace("    Duration", "    ...\n    Duration"))
    assert told == plain
    assert report.problems == []


def test_figures_below_a_header_of_ncu_that_was_broken_in_two_are_of_no_other_launch(tmp_path):
    second = "\n".join(NCU.splitlines()[2:]).replace(", Context", ", Con\ntext").replace("Speed Of Light", "of Other")
    report, told = found(tmp_path, f"{NCU}\n{second}\n")
    _, plain = found(tmp_path, NCU)
    assert told == plain
    assert {p.severity for p in report.problems} == {"error"}


def test_a_launch_whose_name_was_broken_in_two_is_one_launch(tmp_path):
    report, told = found(tmp_path, NCU.replace("(float *, int) (", "(float *,\n int) ("))
    _, plain = found(tmp_path, NCU)
    assert told == plain
    assert not report.problems


@pytest.mark.parametrize("last", ["Durat", "Duration                 us         3.5"])
def test_a_table_of_ncu_that_stops_before_its_end_is_warned_of(last, tmp_path):
    """The row that it stops in is none."""
    report, told = found(tmp_path, NCU[: NCU.index("Duration")] + last)
    assert [r["metric"] for r in told["metrics"]] == ["Elapsed Cycles"]
    assert any("a table stops before its end" in p.message for p in report.problems)


def test_names_of_kernels_that_nvprof_did_not_print_whole_are_warned_of(tmp_path):
    lines = [line[: NVPROF.splitlines()[4].index(" int)")] for line in NVPROF.splitlines()]
    report, told = found(tmp_path, "\n".join(lines))
    assert told["gpu_summary"][0]["name"] == "void scale<float>(float*,"
    assert [(p.severity, p.message) for p in report.problems] == [("warning", "a name is cut")]


def test_calls_of_nvprof_that_have_one_name_were_cut(tmp_path):
    call = NVPROF.splitlines()[-1]
    cropped = [
        call.replace("cudaMalloc", "cud"),
        call.replace("API calls:", " " * 10).replace("cudaMalloc", "cud").replace("9.0", "8.0"),
    ]
    report, _ = found(tmp_path, "\n".join([*NVPROF.splitlines()[:-1], *cropped]))
    assert [(p.severity, p.message) for p in report.problems] == [("warning", "a name is cut")]


def test_metrics_of_nvprof_whose_kernel_is_lost_are_left_out(tmp_path):
    """A metric stands once below a kernel."""
    titles = "Invocations   Metric Name   Metric Description   Min   Max   Avg"
    rows_ = [
        "   1   ipc   Executed IPC   0.500000   0.500000   0.500000",
        "   1   dram_utilization   x   Low (1)   Low (1)   Low (1)",
    ]
    lines = ["==7== Metric result:", titles, 'Device "GPU (0)"', "    Kernel: scale(int)", *rows_, *rows_]
    report, told = found(tmp_path, "\n".join(["==7== NVPROF is profiling process 7, command: ./a.out", *lines]))
    assert [(r["kernel"], r["metric"]) for r in told["metrics"]] == [
        ("scale(int)", "ipc"),
        ("scale(int)", "dram_utilization"),
    ]
    assert {p.severity for p in report.problems} == {"error"}


def test_figures_of_ncu_with_another_decimal_mark_than_the_rest_are_warned_of(tmp_path):
    report, told = found(tmp_path, NCU.replace("71.25", "71,25"))
    assert [r["value"] for r in told["metrics"]] == [5120, 3.52, 142, None]
    assert [p.severity for p in report.problems] == ["error"]


def test_a_csv_of_nsys_that_ends_within_a_name_has_no_such_row(tmp_path):
    titles = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    lines = [
        titles,
        '75.0,300,1,300.0,300.0,300,300,0.0,"scale(int, int)"',
        '25.0,100,1,100.0,100.0,100,100,0.0,"shift(int, ',
    ]
    report, told = found(tmp_path, "\n".join(lines))
    assert [r["name"] for r in told["gpu_summary"]] == ["scale(int, int)"]
    assert len(report.problems) == 1


@pytest.mark.parametrize("first", ["nsys", "ncu"])
def test_the_reports_of_two_tools_in_one_file_are_both_read(first, tmp_path):
    _, kernels = found(tmp_path, NSYS)
    _, launches = found(tmp_path, NCU)
    text = f"{NSYS}\n{NCU}" if first == "nsys" else f"{NCU}\n{NSYS}"
    report, told = found(tmp_path, text)
    assert told == kernels | launches
    assert [(p.severity, "ncu too" in p.message) for p in report.problems] == [("warning", True)]


@pytest.mark.parametrize(("one", "other"), [(NSYS, NVPROF), (NCU, NCU_CSV)], ids=["nsys and nvprof", "ncu twice"])
def test_a_report_that_would_fill_the_tables_of_another_is_said_and_left(one, other, tmp_path):
    report, told = found(tmp_path, f"{one}\n{other}")
    assert told in [found(tmp_path, text)[1] for text in (one, other)]
    assert ["which is not read" in p.message for p in report.problems if p.severity == "error"] == [True]


def test_rows_of_nvprof_without_their_titles_are_known_by_their_labels(tmp_path):
    _, plain = found(tmp_path, NVPROF)
    _, told = found(tmp_path, "\n".join(NVPROF.splitlines()[4:]))
    for table in plain:
        assert told[table] == [row | {"pid": None} for row in plain[table]]


def test_dashes_behind_other_text_are_not_those_of_the_columns(tmp_path):
    _, plain = found(tmp_path, TORCH)
    report, told = found(tmp_path, "test_profile (tests.Profile) ... " + TORCH)
    assert told == plain
    assert report.problems == []


def test_totals_without_their_table_are_warned_of(tmp_path):
    report, told = found(tmp_path, "it took long:\nSelf CPU time total: 4.000ms\n")
    assert not told["operators"]
    assert [p.severity for p in report.problems] == ["warning"]


def test_blank_lines_between_the_rows_of_a_table_take_none_away(tmp_path):
    _, plain = found(tmp_path, TORCH)
    _, told = found(tmp_path, TORCH.replace("\n       aten::add", "\n\n\n       aten::add"))
    assert told == plain
