"""What `nsys stats` prints: every format, the words of every year, numbers of other places."""

import html
import json
import random
import shutil
import sqlite3
import statistics
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers.model import Options, Sample
from nsw.readers.nsys.stats import reader as nsys_stats
from nsw.readers.nsys.stats.reports import Marks, decide_marks
from nsw.readers.text.quantities import Votes
from nsw.tables import full_rows

NEW = """\
Processing [r.sqlite] with [/opt/nvidia/nsight-systems/2024.2.3/host-linux-x64/reports/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)            Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  ------------------------
     75.0            3,000          2   1,500.0   1,500.0     1,000     2,000        707.1  void gemm<int>(T1 *, in…
     25.0            1,000          1   1,000.0   1,000.0     1,000     1,000          0.0  axpy

 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

 Time (%)  Total Time (ns)  Count  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)           Operation
 --------  ---------------  -----  --------  --------  --------  --------  -----------  ---------------------------------
     99.2              992      2     496.0     496.0       400       592        135.8  [CUDA Unified Memory memcpy HtoD]
      0.8                8      1       8.0       8.0         8         8          0.0  [CUDA memset]

 ** CUDA GPU MemOps Summary (by Size) (cuda_gpu_mem_size_sum):

 Total (MB)  Count  Avg (MB)  Med (MB)  Min (MB)  Max (MB)  StdDev (MB)             Operation
 ----------  -----  --------  --------  --------  --------  -----------  ---------------------------------
  2,147.484      2     0.175     0.033     0.004     1.044        0.301  [CUDA Unified Memory memcpy HtoD]
      0.000      1     0.000     0.000     0.000     0.000        0.000  [CUDA memset]
"""

OLD = """\
Generating CUDA API Statistics...
CUDA API Statistics (nanoseconds)

Time(%)      Total Time       Calls         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ---------------------
   91.6       213337778          20      10666888.9            5259       211241494  cudaMalloc
    8.4        19563000          20        978150.0           32092         6697711  cudaMemcpy
Generating CUDA Memory Operation Statistics...
CUDA Memory Operation Statistics (nanoseconds)

Time(%)      Total Time  Operations         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ---------------------
  100.0         9969948           6       1661658.0           23168         5692184  [CUDA memcpy DtoH]

CUDA Memory Operation Statistics (KiB)

            Total      Operations            Average            Minimum            Maximum  Name
-----------------  --------------  -----------------  -----------------  -----------------  --------------
          18647.0               6             3107.9            148.535            10000.0  [CUDA memcpy DtoH]
"""

UNTITLED_CALLS = """\
 Time(%)  Total Time (ns)  Num Calls   Average    Minimum  Maximum    Name
 -------  ---------------  ---------  ----------  -------  -------  --------
    84,0       62.604.198         12  5.217.016,5    1.000  100.000  {name}
    16,0       11.924.609      1.234      9.663,4    1.000  100.000  {other}
"""


def read(path, tables=None):
    return nsys_stats.read(Path(path), Options(tables))


def read_text(tmp_path, text):
    path = tmp_path / "out.txt"
    path.write_text(text, encoding="utf-8")
    return read(path)


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def pick(row, *columns):
    return tuple(row[c] for c in columns)


def test_kernels_copies_and_their_bytes_make_one_block(tmp_path):
    report = read_text(tmp_path, NEW)
    got = [
        pick(r, "block", "kind", "name", "time_pct", "total_ns", "calls", "avg_ns", "total_bytes")
        for r in table(report, "gpu_summary")
    ]
    assert got == [
        (0, "kernel", "void gemm<int>(T1 *, in…", 75.0, 3000, 2, 1500.0, None),
        (0, "kernel", "axpy", 25.0, 1000, 1, 1000.0, None),
        (0, "memcpy", "[CUDA Unified Memory memcpy HtoD]", 99.2, 992, 2, 496.0, 2147484000.0),
        (0, "memset", "[CUDA memset]", 0.8, 8, 1, 8.0, 0.0),
    ]
    assert report.tool_version == "2024.2.3"
    assert not report.problems


def test_how_far_a_number_was_rounded_is_known(tmp_path):
    first, _, copy, _ = table(read_text(tmp_path, NEW), "gpu_summary")
    assert pick(first, "total_ns_pm", "avg_ns_pm", "time_pct_pm", "min_ns_pm") == (None, 0.05, 0.05, None)
    assert copy["total_bytes_pm"] == 500


def test_the_words_and_units_of_2019(tmp_path):
    report = read_text(tmp_path, OLD)
    assert [pick(r, "name", "total_ns", "calls", "avg_ns", "max_ns") for r in table(report, "api_summary")] == [
        ("cudaMalloc", 213337778, 20, 10666888.9, 211241494),
        ("cudaMemcpy", 19563000, 20, 978150.0, 6697711),
    ]
    [copy] = table(report, "gpu_summary")
    assert pick(copy, "total_ns", "calls", "total_bytes", "total_bytes_pm") == (
        9969948,
        6,
        18647 * 1024,
        51.2,
    )


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [("cudaMalloc", "cuInit", "api_summary"), ("futex", "poll", "osrt_summary")],
)
def test_without_a_title_the_names_tell_api_from_operating_system(name, other, expected, tmp_path):
    report = read_text(tmp_path, UNTITLED_CALLS.format(name=name, other=other))
    assert set(report.tables) == {expected}
    assert [pick(r, "name", "time_pct", "total_ns", "calls", "avg_ns") for r in table(report, expected)] == [
        (name, 84.0, 62604198, 12, 5217016.5),
        (other, 16.0, 11924609, 1234, 9663.4),
    ]


@pytest.mark.parametrize(
    ("decimal", "text", "value"),
    [
        (".", "1,234", 1234),
        (",", "62.604.198", 62604198),
        (",", "84,0", 84.0),
        (".", "22,1824,7417", 2218247417),
        (".", "1\u202f234\u202f567.5", 1234567.5),
        (".", "1'234'567", 1234567),
        (".", "12,34,567", 1234567),
        (".", "-1,000.5", -1000.5),
        (".", "1.5e+06", 1.5e6),
        (".", "1,2", None),
        (".", "1,23,4", None),
        (".", "1,234…", None),
        (".", "1.234.567", None),
        (".", "", None),
        (".", "None", None),
    ],
)
def test_numbers_of_other_places(decimal, text, value):
    found = Marks(decimal).digits(text)
    assert (found.scaled().value if found else None) == value


@pytest.mark.parametrize(
    ("cells", "before", "mark"),
    [
        (["1,234", "2", "4,413", "1,000"], [], None),
        (["1,234", "2", "4,413", "1,000"], [","], ","),
        (["1.234,567", "2", "4,413", "1,000"], [], ","),
        (["0.004", "2", "4.413", "1.000"], [], "."),
        (["1,5", "2", "4.4", "1.2"], [], "."),
        (["1,5", "2", "4,413", "1,000"], [".", ".", "."], "."),
        (["1,5", "2", "4,41", "1,25"], [".", ".", ".", "."], ","),
    ],
)
def test_the_decimal_mark_is_what_most_figures_prove(cells, before, mark):
    votes = Votes()
    votes.add(before)
    headers = ["Total (MB)", "Count", "Avg (MB)", "Max (MB)", "Operation"]
    assert decide_marks(headers, [[*cells, "x"]], votes) == (mark and Marks(mark))


def test_blocks_count_tables_of_one_kind(tmp_path):
    report = read_text(tmp_path, NEW + NEW.replace("3,000", "3,300"))
    assert [r["block"] for r in table(report, "gpu_summary")] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_lines_of_other_programs_within_a_table_are_passed_over_and_said(tmp_path):
    lines = NEW.splitlines()
    place = next(n for n, line in enumerate(lines) if "25.0" in line)
    lines.insert(place, "epoch 3: loss 0.5")
    report = read_text(tmp_path, "\n".join(lines))
    assert len(table(report, "gpu_summary")) == 4
    assert [(p.severity, p.line) for p in report.problems] == [("warning", place + 1)]


def test_rows_of_ranks_that_srun_labelled_are_told_apart(tmp_path):
    first, second = NEW.splitlines(), NEW.replace("3,000", "3,300").splitlines()
    mixed = "".join(f"0: {a}\n1: {b}\n" for a, b in zip(first, second, strict=True))
    report = read_text(tmp_path, mixed)
    gpu = table(report, "gpu_summary")
    assert [(r["rank"], r["block"]) for r in gpu] == [(0, 0)] * 4 + [(1, 1)] * 4
    assert [r["total_ns"] for r in gpu if r["short_name"] and "gemm" in r["name"]] == [3000, 3300]


def test_a_prefix_before_each_line_is_no_part_of_the_table(tmp_path):
    report = read_text(tmp_path, "".join(f"2024-01-01T10:00:00 node1 | {line}\n" for line in NEW.splitlines()))
    assert [r["total_ns"] for r in table(report, "gpu_summary")] == [3000, 1000, 992, 8]


def test_numbers_cut_to_their_column_are_absent_and_said(tmp_path):
    report = read_text(tmp_path, NEW.replace("    1,000          1   1,000.0", "    1,00…          1   1,000.0"))
    row = table(report, "gpu_summary")[1]
    assert pick(row, "total_ns", "calls", "avg_ns") == (None, 1, 1000.0)
    assert "cut numbers" in report.problems[0].message


def test_what_nsys_skipped_is_said(tmp_path):
    report = read_text(tmp_path, "SKIPPED: r.sqlite does not contain CUDA kernel data.\n" + OLD)
    [problem] = report.problems
    assert (problem.severity, problem.line) == ("warning", 1)
    assert "does not contain CUDA kernel data" in problem.message
    assert "--trace" in problem.fix


def test_complaints_with_no_table_are_errors_with_their_meaning(tmp_path):
    said = "ERROR: Report 'gpukernsums' could not be found.\n"
    problems = read_text(tmp_path, said).problems
    assert [p.severity for p in problems] == ["error"]
    assert "--help-reports" in problems[0].fix
    assert [p.severity for p in read_text(tmp_path, said + OLD).problems] == ["warning"]


@pytest.mark.parametrize(
    "title", ["", "Processing [r.sqlite] with [/x/reports/openmp_sum.py]...\n", "OpenMP Summary:\n"]
)
def test_openmp(title, tmp_path):
    text = "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    text += "80.0,80,2,40.0,40.0,20,60,28.3,Parallel\n20.0,20,1,20.0,20.0,20,20,0.0,Barrier\n"
    report = read_text(tmp_path, f"{title}\n{text}")
    assert not report.problems
    assert [pick(r, "name", "calls", "total_ns") for r in table(report, "openmp_summary")] == [
        ("Parallel", 2, 80.0),
        ("Barrier", 1, 20.0),
    ]


KERNELS_2021 = """\
CUDA Kernel Statistics:

 Time(%)  Total Time (ns)  Instances  Average  Minimum  Maximum  Name
 -------  ---------------  ---------  -------  -------  -------  --------
    75.0             3000          2   1500.0     1000     2000  k(int)
    25.0             1000          1   1000.0     1000     1000  b
"""


def pasted(how):
    """How people paste what nsys printed."""
    lines = KERNELS_2021.splitlines()
    match how:
        case "a row that lost its indent":
            return "\n".join(x.strip() if "75.0" in x else x for x in lines)
        case _:
            return KERNELS_2021.replace("75.0", "75.0%").replace("25.0", "25.0%")


@pytest.mark.parametrize(
    "how",
    [
        "a row that lost its indent",
        "shares with their sign",
    ],
)
def test_tables_that_were_pasted_elsewhere(how, tmp_path):
    report = read_text(tmp_path, pasted(how))
    assert not report.problems
    assert [pick(r, "name", "calls", "total_ns", "time_pct") for r in table(report, "gpu_summary")] == [
        ("k(int)", 2, 3000.0, 75.0),
        ("b", 1, 1000.0, 25.0),
    ]


def test_tables_of_one_shape_without_a_blank_line_between_stay_apart(tmp_path):
    titles = "Time (%),Total Time (ns),Num Calls,Avg (ns),Min (ns),Max (ns),Name\n"
    text = f"{titles}100.0,300,1,300.0,300,300,cuInit\nProcessing [x.sqlite] with [/x/reports/osrt_sum.py]...\n"
    report = read_text(tmp_path, f"{text}{titles}100.0,200,1,200.0,200,200,poll\n")
    assert not report.problems
    assert [r["name"] for r in table(report, "api_summary")] == ["cuInit"]
    assert [r["name"] for r in table(report, "osrt_summary")] == ["poll"]


def test_totals_of_unified_memory(tmp_path):
    text = "Total HtoD Migration Size (MB),Total DtoH Migration Size (MB),Total CPU Page Faults,Total GPU PageFaults,"
    text += "Minimum Virtual Address,Maximum Virtual Address\n0.328,0.332,30,43,0x0,0x1D000\n"
    report = read_text(tmp_path, text)
    assert not report.problems
    assert {r["name"]: (r["calls"], r["total_bytes"]) for r in table(report, "um_summary")} == {
        "Host To Device": (None, 328000.0),
        "Device To Host": (None, 332000.0),
        "CPU page faults": (30, None),
        "GPU page faults": (43, None),
    }


def test_sizes_whose_unit_is_in_the_title(tmp_path):
    text = "CUDA Memory Operation Statistics (by size in KiB):\n\n   Total  Operations  Average  Minimum  Maximum  Operation\n"
    text += " -------  ----------  -------  -------  -------  ---------\n 393216.000        8314   47.296    4.000   764.000  [CUDA memcpy HtoD]\n"
    (row,) = table(read_text(tmp_path, text), "gpu_summary")
    assert row["total_bytes"] == 393216 * 1024


def test_a_table_whose_first_row_fits_nowhere_says_so(tmp_path):
    text = KERNELS_2021.splitlines()
    damaged = "\n".join([*text[:4], "    75.0 3000 2 x 1000 2000 k(int)", "", "the end"])
    report = read_text(tmp_path, damaged)
    assert not report.tables
    assert any("not a row of it" in p.message and p.line == 5 for p in report.problems)


TITLES = ["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Min (ns)", "Max (ns)", "Name"]
BODY = [
    ["75.0", "3000", "2", "1500.5", "1000", "2000", 'k<"a", 1> & co(int)'],
    ["25.0", "1000", "1", "1000.0", "1000", "1000", "b()"],
]


def printed_json(form):
    if form == "compact json":
        return json.dumps([dict(zip(TITLES, row, strict=True)) for row in BODY])
    bodies = []
    for row in BODY:
        cells = [*row[:-1], json.dumps(row[-1])]
        pairs = ",\n".join(f'    "{t}": {c}' for t, c in zip(TITLES, cells, strict=True))
        bodies.append(f"  {{\n{pairs}\n  }}")
    return "[\n" + ",\n".join(bodies) + "\n]\n"


def printed_html(form):
    def row(tag, cells):
        return f"<tr>\n{''.join(f'<{tag}>{html.escape(c)}</{tag}>' for c in cells)}\n</tr>\n"

    table_ = f"<table>\n<thead>\n{row('th', TITLES)}</thead>\n{''.join(row('td', r) for r in BODY)}</table>\n"
    return f"<!DOCTYPE html>\n<html>\n<body>\n{table_}</body>\n</html>\n" if form == "hdoc" else table_


def printed_box():
    widths = [max(map(len, column)) for column in zip(TITLES, *BODY, strict=True)]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    lines = [
        "|" + "|".join(f" {cell:{w}} " for cell, w in zip(row, widths, strict=True)) + "|\n" for row in (TITLES, *BODY)
    ]
    return f"{border}{lines[0]}{border}{''.join(lines[1:])}{border}"


@pytest.mark.parametrize("form", ["table", "hdoc", "htable", "json", "compact json"])
def test_boxes_html_and_json_are_refused_with_the_format_to_print(form, tmp_path):
    text = printed_box() if form == "table" else printed_json(form) if "json" in form else printed_html(form)
    report = read_text(tmp_path, f"Processing [r.sqlite] with [/x/reports/cuda_gpu_kern_sum.py]... \n\n{text}{text}")
    assert not report.tables
    (problem,) = report.problems
    assert problem.severity == "error"
    assert form.split()[-1] in problem.message
    assert problem.fix == "print them with --format csv"


@pytest.mark.parametrize("titles", ["", "Time,Total Time,Instances,Avg,Min,Max,Name\n"])
def test_tables_without_titles_or_units_are_refused(titles, tmp_path):
    rows_ = "75.0,3000,2,1500.5,1000,2000,k(int)\n25.0,1000,1,1000.0,1000,1000,b()\n"
    report = read_text(tmp_path, f"Processing [r.sqlite] with [/x/reports/cuda_gpu_kern_sum.py]... \n{titles}{rows_}")
    assert not report.tables
    (problem,) = report.problems
    assert problem.severity == "error"
    assert "cuda_gpu_kern_sum was printed without titles, or without units" in problem.message


def test_columns_whose_titles_have_no_units_are_refused(tmp_path):
    text = " Time  Total Time  Instances   Avg     Name\n ----  ----------  ---------  ------  -----\n"
    report = read_text(tmp_path, text + " 35.6      580041        115  5043.8  gemm \n")
    assert not report.tables
    assert "no units" in report.problems[0].message


def test_rows_of_a_trace_that_span_lines_do_not_stop_the_hundreds_around_them(tmp_path):
    titles = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
    names = ['"cu\nInit"' if n % 700 == 650 else "cudaLaunchKernel" for n in range(3000)]
    body = "".join(f"{1000 * n},{n},{name},0,{n},7,8,20,python\n" for n, name in enumerate(names))
    report = read_text(tmp_path, titles + body)
    assert not report.problems
    got = [pick(r, "start_ns", "duration_ns", "correlation", "pid", "tid") for r in table(report, "api_trace")]
    assert got == [(1000 * n, n, n, 7, 8) for n in range(3000)]
    assert [r["name"] for r in table(report, "api_trace")] == [n.strip('"') for n in names]


def test_traces_in_other_units_know_how_far_they_were_rounded(tmp_path):
    text = "Start (us),Duration (us),Name,Result,CorrID,Pid,Tid\n1.234,0.200,cuInit,0,,7,8\n"
    (row,) = table(read_text(tmp_path, text), "api_trace")
    assert pick(row, "start_ns", "start_ns_pm", "duration_ns", "correlation") == (1234, 0.5, 200, None)


def test_tables_without_a_place_are_named(tmp_path):
    text = '"Start (ns)","End (ns)","Duration (ns)","Event","Pid","Tid","Tag","Rank"\n1,2,1,MPI_Send,1,1,0,0\n'
    report = read_text(tmp_path, OLD + "\nProcessing [r.sqlite] with [/x/reports/mpi_event_trace.py]...\n" + text)
    assert any("mpi_event_trace" in p.message for p in report.problems)


BOTH = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Category,Operation\n"
BOTH += '61.2,3000,2,1500.0,1000,2000,CUDA_KERNEL,"void gemm<int>(T1 *, int)"\n'
BOTH += "20.4,1000,1,1000.0,1000,1000,CUDA_KERNEL,axpy\n"
COPIES = "18.4,900,3,300.0,300,300,MEMORY_OPER,[CUDA memset]\n"


def report_of(name, text):
    return f"\nProcessing [r.sqlite] with [/x/reports/{name}.py]...\n{text}"


def test_a_table_printed_twice_is_read_once(tmp_path):
    report = read_text(tmp_path, NEW + "\n" + BOTH)
    assert len(table(report, "gpu_summary")) == 4
    assert "repeats" in report.problems[0].message


def test_copies_beside_kernels_that_are_known_are_not_lost(tmp_path):
    report = read_text(tmp_path, NEW + report_of("cuda_gpu_sum", BOTH + COPIES))
    rows = table(report, "gpu_summary")
    assert [pick(r, "name", "calls", "total_ns") for r in rows[4:]] == [("[CUDA memset]", 3, 900)]
    (problem,) = report.problems
    assert problem.message == "the kernels of cuda_gpu_sum repeat rows of a table before it and were left out"


def test_reports_of_one_layout_and_totals_made_of_rounded_means_are_repeats_too(tmp_path):
    sizes = "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n"
    sizes += "0.003,3,0.001,0.001,0.001,0.001,0.000,[CUDA memset]\n"
    times = "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
    times += "100.0,900,3,300.0,300.0,300,300,0.0,[CUDA memset]\n"
    off = BOTH.replace(",3000,2,1500.0", ",2999.9,2,1499.95")
    text = report_of("cuda_api_gpu_sum", BOTH + COPIES) + report_of("cuda_gpu_mem_size_sum", sizes)
    text += report_of("cuda_gpu_mem_time_sum", times) + report_of("cuda_gpu_sum", BOTH + COPIES)
    report = read_text(tmp_path, text + report_of("cuda_other_sum", off))
    rows = table(report, "gpu_summary")
    assert [pick(r, "block", "calls", "total_ns", "total_bytes") for r in rows] == [
        (0, 2, 3000, None), (0, 1, 1000, None), (0, 3, 900, 3000),
    ]  # fmt: skip
    (problem,) = report.problems
    assert problem.message.startswith(
        "3 tables repeat rows of tables before them and were left out: cuda_gpu_mem_time_sum"
    )


def test_one_report_printed_twice_is_of_two_runs(tmp_path):
    report = read_text(tmp_path, 2 * report_of("cuda_gpu_sum", BOTH + COPIES))
    assert [r["block"] for r in table(report, "gpu_summary")] == [0, 0, 0, 1, 1, 1]
    assert report.problems == []


def test_shares_of_api_and_gpu_together_are_not_given_as_shares_of_either(tmp_path):
    csv = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Category,Operation\n"
    csv += "80.0,4000,2,2000.0,1000,3000,CUDA_API,cudaMalloc\n20.0,1000,1,1000.0,1000,1000,CUDA_KERNEL,axpy\n"
    report = read_text(tmp_path, csv)
    assert [pick(r, "name", "time_pct", "total_ns") for r in table(report, "api_summary")] == [
        ("cudaMalloc", None, 4000)
    ]
    assert [pick(r, "name", "time_pct", "total_ns") for r in table(report, "gpu_summary")] == [("axpy", None, 1000)]


def test_names_over_several_lines_and_with_quotes_stay_whole(tmp_path):
    csv = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Style,Range\n"
    csv += '60.0,3000,2,1500.0,1000,2000,PushPop,"a ""b"",\nc"\n40.0,2000,1,2000.0,2000,2000,StartEnd,:step\n'
    report = read_text(tmp_path, csv)
    got = [pick(r, "style", "name", "calls") for r in table(report, "nvtx_summary")]
    assert got == [("pushpop", 'a "b",\nc', 2), ("startend", "step", 1)]


def test_a_quote_that_is_never_closed_costs_its_row_only(tmp_path):
    csv = 'Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n100.0,1,1,1.0,1,1,"broken\n\n\n'
    report = read_text(tmp_path, csv + "\n" * 200 + NEW)
    assert len(table(report, "gpu_summary")) >= 4


@pytest.mark.parametrize(
    "text", ["a,b,c,d\n1,2,3,4\n", "Time(%)      Time     Calls       Avg       Min       Max  Name\n", ""]
)
def test_other_texts_are_not_taken_for_nsys(text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert nsys_stats.sniff(Sample(path)) == 0


def test_utf16_of_powershell_is_read(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(NEW, encoding="utf-16")
    assert nsys_stats.sniff(Sample(path)) > 50
    assert len(table(read(path), "gpu_summary")) == 4


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_texts_never_raise_and_never_give_numbers_that_are_not_in_them(seed, tmp_path_factory):
    dice = random.Random(seed)
    text = list(NEW + OLD + UNTITLED_CALLS)
    for _ in range(dice.randrange(1, 30)):
        place = dice.randrange(len(text))
        match dice.randrange(4):
            case 0:
                del text[place : place + dice.randrange(40)]
            case 1:
                text[place] = dice.choice(' \n\t,.0…"-|+\r\x00é')
            case 2:
                text[place:place] = dice.choice(["\n", "   ", "9", "\x1b[31m"])
            case _:
                text[place:place] = text[place // 2 : place // 2 + dice.randrange(200)]
    mutated = "".join(text)
    path = tmp_path_factory.getbasetemp() / "mutated.txt"
    path.write_text(mutated, encoding="utf-8", newline="")
    report = read(path)
    digits = "".join(c for c in mutated if c.isdigit())
    for name in report.tables:
        for row in table(report, name):
            json.dumps(row, allow_nan=False)
            if row.get("calls") is not None:
                assert str(row["calls"]) in digits


SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
  shortName INTEGER, mangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
  blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,
  copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,
  value INTEGER, memKind INTEGER);
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1,'HTOD','Host-to-Device'),(2,'DTOH','Device-to-Host');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0,'PAGEABLE','Pageable'),(2,'DEVICE','Device');
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA Test');
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 77);
"""
PROCESS = 77 << 24
KERNELS = ["void gemm<float, (int)4>(const T1 *, T1 *)", "axpy", "a" * 140 + "(int)", "reduce(float *)"]
CALLS = ["cudaLaunchKernel_v7000", "cudaMemcpy_v3020", "cuInit"]


def synthetic(path):
    """A database that `nsys stats` reads, and the kernels, copies and calls in it."""
    dice = random.Random(7)
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(KERNELS + CALLS))
    kernels, copies, calls = [], [], []
    for n in range(300):
        start, length, which = 10_000 * n, dice.randrange(500, 9000), dice.randrange(len(KERNELS))
        kernels.append((KERNELS[which], length))
        db.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,NULL,7,?,?,?,?,?,32,?,2,1,128,1,1,0,0)",
            (start, start + length, n, PROCESS, which, which, which, 8 + which),
        )
        which = dice.randrange(len(CALLS))
        calls.append((CALLS[which], length // 3))
        row = (start - 900, start - 900 + length // 3, 0, PROCESS + 78, n, len(KERNELS) + which, 0)
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?)", row)
        if n % 3 == 0:
            kind, size = dice.choice([1, 2]), dice.randrange(1, 10**8)
            copies.append(
                (
                    ("", "[CUDA memcpy Host-to-Device]", "[CUDA memcpy Device-to-Host]")[kind],
                    length // 2,
                    size,
                )
            )
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,0,1,NULL,7,?,?,?,?,0,2)",
                (start, start + length // 2, 1000 + n, PROCESS, size, kind),
            )
    db.commit()
    db.close()
    return kernels, copies, calls


def by_name(events):
    grouped = {}
    for name, *numbers in events:
        grouped.setdefault(name, []).append(numbers)
    return grouped


def nsys_stats_output(database, form, reports):
    made = subprocess.run(
        ["nsys", "stats", "--format", form, "--report", reports, str(database)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    return made.stdout.decode()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    if shutil.which("nsys") is None:
        pytest.skip("no nsys here")
    version = subprocess.run(["nsys", "--version"], capture_output=True, text=True, check=False).stdout
    if " 2022." in version:
        pytest.skip("the reports of this nsys have other names; test_nsys_stats_reports reads them")
    path = tmp_path_factory.mktemp("nsys") / "s.sqlite"
    return path, *synthetic(path)


SUMMARIES = "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_gpu_mem_size_sum,cuda_api_sum"


@pytest.mark.nsys
@pytest.mark.parametrize("form", ["column", "csv", "tsv"])
def test_nsys_says_what_was_put_into_its_database(form, database, tmp_path):
    path, kernels, copies, calls = database
    report = read_text(tmp_path, nsys_stats_output(path, form, SUMMARIES))
    assert not report.problems
    gpu = {r["name"].rstrip("…"): r for r in table(report, "gpu_summary")}
    limit = 99 if form == "column" else 10**6
    for name, numbers in (by_name(kernels) | by_name(copies)).items():
        row, lengths = gpu[name[:limit]], [n[0] for n in numbers]
        assert pick(row, "calls", "total_ns", "min_ns", "max_ns") == (
            len(lengths),
            sum(lengths),
            min(lengths),
            max(lengths),
        )
        assert row["stddev_ns"] == pytest.approx(statistics.stdev(lengths), abs=row["stddev_ns_pm"])
        assert row["med_ns"] == pytest.approx(statistics.median(lengths), abs=row["med_ns_pm"])
        if len(numbers[0]) > 1:
            assert row["total_bytes"] == pytest.approx(sum(n[1] for n in numbers), abs=row["total_bytes_pm"])
    api = {r["name"]: r for r in table(report, "api_summary")}
    # nsys cuts some versions off the names of calls, and not others
    got = {name.split("_v")[0]: row["calls"] for name, row in api.items()}
    assert got == {name.split("_v")[0]: len(lengths) for name, lengths in by_name(calls).items()}


@pytest.mark.nsys
@pytest.mark.parametrize("form", ["column", "csv"])
def test_nsys_traces_are_the_events_of_its_database(form, database, tmp_path):
    path, kernels, copies, calls = database
    report = read_text(tmp_path, nsys_stats_output(path, form, "cuda_gpu_trace,cuda_api_trace"))
    gpu, api = table(report, "gpu_trace"), table(report, "api_trace")
    assert len(gpu) == len(kernels) + len(copies)
    traced = [r for r in gpu if r["kind"] == "kernel"]
    assert [r["duration_ns"] for r in traced] == [length for _, length in kernels]
    assert [r["start_ns"] for r in traced] == [10_000 * n for n in range(300)]
    assert {pick(r, "grid_y", "block_x", "registers", "stream", "device", "device_name") for r in traced} == {
        (2, 128, 32, 7, 0, "NVIDIA Test")
    }
    copied = [r for r in gpu if r["kind"] == "memcpy"]
    assert {pick(r, "src_memory", "dst_memory", "grid_x") for r in copied} == {("pageable", "device", None)}
    for row, (_, _, size) in zip(copied, copies, strict=True):
        assert row["bytes"] == pytest.approx(size, abs=row["bytes_pm"])
    assert [pick(r, "duration_ns", "tid", "pid", "return_value") for r in api] == [(n, 78, 77, 0) for _, n in calls]


@pytest.mark.nsys
@pytest.mark.parametrize("form", ["table", "hdoc", "htable", "json"])
def test_boxes_html_and_json_of_nsys_are_refused(form, database, tmp_path):
    report = read_text(tmp_path, nsys_stats_output(database[0], form, SUMMARIES))
    assert not report.tables
    assert [p.fix for p in report.problems if p.severity == "error"] == ["print them with --format csv"]


@pytest.mark.nsys
def test_the_same_kernels_in_three_reports_of_nsys_are_read_once(database, tmp_path):
    path, kernels, _, _ = database
    text = nsys_stats_output(path, "csv", "cuda_gpu_kern_sum,cuda_gpu_kern_gb_sum,cuda_gpu_sum")
    report = read_text(tmp_path, text)
    assert sum(r["calls"] for r in table(report, "gpu_summary") if r["kind"] == "kernel") == len(kernels)
