"""Every report of `nsys stats`: read as the database itself is read, or named with the reason why not."""

import re
import subprocess

import pytest

from nsw.readers import Options, read
from nsw.readers.model import Sample
from nsw.readers.nsys.stats import reader as nsys_stats
from nsw.readers.nsys.stats.reports import REPORTS, TABLES, name_in_line, name_of_file
from nsw.tables import full_rows

FORMS = ["column", "csv", "tsv"]
FIGURES = ["calls", "total_ns", "avg_ns", "med_ns", "min_ns", "max_ns", "stddev_ns"]
RANGES = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Range\n"
RANGES += "75.0,300,3,100.0,100.0,90,110,10.0,frame\n25.0,100,1,100.0,100.0,100,100,0.0,load\n"
KERNELS = RANGES.replace(",Range", ",Name")


def said(nsys, *arguments, cwd):
    """What `nsys stats` says; `cwd` must hold no Python file, since nsys runs those that it finds there."""
    done = subprocess.run(
        [nsys, "stats", *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )
    return done.stdout + done.stderr


def report_of(text, tmp_path, name="out.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read(path)


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def processing(name, folder="/data"):
    return f"Processing [{folder}/run.sqlite] with [/opt/nsys/reports/{name}.py]... \n"


@pytest.fixture(scope="session")
def listed(nsys, tmp_path_factory):
    """The names of the reports that this nsys has."""
    text = said(nsys, "--help-reports", cwd=tmp_path_factory.mktemp("empty"))
    names = re.findall(r"^ {0,4}(\w+)(?:\[[^]]*\])* -- ", text, re.MULTILINE)
    if len(names) < 20:
        pytest.skip(f"this nsys does not list its reports: {text[:200]}")
    return names


@pytest.mark.nsys
def test_nsw_knows_every_report_of_this_nsys_by_its_name(listed):
    assert set(listed) <= REPORTS.keys()


@pytest.mark.nsys
@pytest.mark.parametrize("how", ["said", "written"])
@pytest.mark.parametrize("form", ["column", "csv"])
def test_every_report_with_rows_is_read_or_named_with_the_reason(nsys, listed, filled, form, how, tmp_path):
    """Printed, and in a file of its own that holds nothing but the table."""
    arguments = ["-r", ",".join(listed), "--format", form]
    text = said(nsys, *arguments, *(["-o", "run"] if how == "written" else []), str(filled), cwd=tmp_path)
    if how == "written":
        texts = {name_of_file(p.stem): p for p in tmp_path.iterdir() if p.suffix != ".sqlite"}
    else:
        texts = {}
        for part in re.split(r"^(?=Processing \[)", text, flags=re.MULTILINE)[1:]:
            name = name_in_line(part.splitlines()[0])
            texts[name] = tmp_path / f"{len(texts)}.txt"
            texts[name].write_text(part)
    with_rows = {name: path for name, path in texts.items() if _has_rows(path.read_text())}
    assert len(with_rows) > 20
    for name, path in with_rows.items():
        report = read(path)
        messages = [p.message for p in report.problems]
        assert report.format == "nsys-stats", name
        if REPORTS[name] == "other":
            assert not report.tables, name
            assert any(f"not read: {name}; " in m for m in messages), (name, messages)
        else:
            assert report.tables, name
            assert all(t in TABLES[REPORTS[name]] for t in report.tables), name
            assert not messages, (name, messages)


def _has_rows(text):
    if "no data was returned" in text:
        return False
    return len(re.findall(r"\d", text.split("Processing", 1)[-1].partition("\n")[2])) > 4 or '"' in text[:20]


@pytest.mark.nsys
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("report", "ours"),
    [
        ("nvtx_pushpop_trace nvtxpptrace", "nvtx_summary"),
        ("nvtx_gpu_proj_trace nvtxgpuproj", "nvtx_gpu_summary"),
        ("nvtx_gpu_proj_sum", "nvtx_gpu_summary"),
        ("mpi_event_trace", "communication"),
        ("um_cpu_page_faults_sum umcpupagefaults", "um_summary"),
    ],
)
def test_events_added_up_equal_the_database_read_directly(nsys, listed, filled, report, ours, form, tmp_path):
    name = next((n for n in report.split() if n in listed), None)
    if name is None:
        pytest.skip(f"this nsys has no {report}")
    printed = report_of(said(nsys, "-r", name, "--format", form, str(filled), cwd=tmp_path), tmp_path)
    assert not printed.problems
    direct = {}
    for row in full_rows(ours, read(filled).tables[ours]):
        if row.get("style", "pushpop") == "pushpop" and row.get("library") in (None, "mpi"):
            label = f"{row['domain']}:{row['name']}" if row.get("domain") else row["name"]
            direct[label] = row
    found = {row["name"]: row for row in table(printed, ours)}
    if ours == "um_summary":
        assert found["CPU page faults"]["calls"] == direct["CPU page faults"]["calls"]
        return
    assert found.keys() == direct.keys()
    for label, row in found.items():
        keys = ["calls", "gpu_ops", "projected_ns"] if ours == "nvtx_gpu_summary" else FIGURES
        assert [row[k] for k in keys] == [direct[label][k] for k in keys], label
        if ours == "communication":
            sent, exact = row["total_bytes"], direct[label]["total_bytes"]
            assert (sent is None) == (exact is None)
            assert sent is None or abs(sent - exact) <= row["total_bytes_pm"] + 1


@pytest.mark.nsys
@pytest.mark.parametrize("unit", ["us", "ms"])
def test_times_in_other_units_are_right_within_their_half_widths(nsys, listed, filled, unit, tmp_path):
    name = "nvtx_pushpop_trace" if "nvtx_pushpop_trace" in listed else "nvtxpptrace"
    text = said(nsys, "-r", name, "--format", "csv", "--timeunit", unit, str(filled), cwd=tmp_path)
    direct = {}
    for row in full_rows("nvtx_summary", read(filled).tables["nvtx_summary"]):
        if row["style"] == "pushpop":
            direct[f"{row['domain']}:{row['name']}" if row["domain"] else row["name"]] = row
    found = table(report_of(text, tmp_path), "nvtx_summary")
    assert len(found) == len(direct)
    for row in found:
        for key in FIGURES[1:]:
            exact = direct[row["name"]][key]
            assert (row[key] is None) == (exact is None)
            assert exact is None or abs(row[key] - exact) <= row[f"{key}_pm"] + 1e-6, (row["name"], key)


@pytest.mark.parametrize("name", ["vulkan_marker_sum", "dx12_pix_sum", "khrdebugsum", "opengl_khr_gpu_range_sum"])
@pytest.mark.parametrize("told_by", ["line", "file", "title"])
def test_ranges_of_graphics_are_not_taken_for_nvtx(name, told_by, tmp_path):
    before = {"line": processing(name), "file": "", "title": f" ** Some Range Summary ({name}):\n\n"}[told_by]
    report = report_of(before + RANGES, tmp_path, f"run_{name}.csv" if told_by == "file" else "out.csv")
    assert not report.tables
    assert f"not read: {name}; it is of graphics" in report.problems[0].message


@pytest.mark.parametrize(("name", "style"), [("nvtx_pushpop_sum", "pushpop"), ("nvtxsesum", "startend")])
@pytest.mark.parametrize("told_by", ["line", "file", "run of 2023"])
def test_the_name_of_the_report_tells_the_style_of_ranges(name, style, told_by, tmp_path):
    before = {"line": processing(name), "file": "", "run of 2023": f"[3/8] Executing '{name}' stats report\n\n"}[
        told_by
    ]
    report = report_of(before + RANGES, tmp_path, f"run_{name}.csv" if told_by == "file" else "out.csv")
    assert not report.problems
    assert {row["style"] for row in table(report, "nvtx_summary")} == {style}


def test_ranges_of_nobody_are_taken_for_nvtx_and_that_is_said(tmp_path):
    report = report_of(RANGES, tmp_path)
    assert [row["style"] for row in table(report, "nvtx_summary")] == [None, None]
    (problem,) = report.problems
    assert problem.severity == "warning"
    assert "read as NVTX" in problem.message
    assert "_nvtx_pushpop_sum.csv" in problem.fix


def test_a_report_that_nsw_does_not_know_is_named_and_not_guessed(tmp_path):
    report = report_of(processing("quantum_range_sum") + RANGES, tmp_path)
    assert not report.tables
    assert "not read: quantum_range_sum" in report.problems[0].message


@pytest.mark.parametrize(
    "folder", ["/home/u/mpi", "/scratch/OpenMP", "/w/vulkan api", "/x/cuda_api_sum", "/home/pix/openacc"]
)
@pytest.mark.parametrize("name", ["cuda_gpu_kern_sum", "gpukernsum"])
def test_the_folder_of_a_database_does_not_say_what_a_table_is(name, folder, tmp_path):
    report = report_of(processing(name, folder) + KERNELS, tmp_path)
    assert not report.problems
    assert list(report.tables) == ["gpu_summary"]


@pytest.mark.parametrize(
    "line", ["MPI initialised with 4 ranks", "Running OpenMP code on 8 threads", "Vulkan is not here"]
)
def test_what_a_program_printed_does_not_say_what_a_table_is(line, tmp_path):
    report = report_of(f"{line}\n{KERNELS}", tmp_path)
    assert list(report.tables) == ["gpu_summary"]


def test_calls_are_told_apart_by_the_name_of_the_report(tmp_path):
    calls = KERNELS.replace("Instances", "Num Calls").replace("frame", "read").replace("load", "futex")
    assert list(report_of(processing("osrt_sum") + calls, tmp_path).tables) == ["osrt_summary"]
    report = report_of(processing("syscall_sum") + calls, tmp_path)
    assert not report.tables
    assert "system calls" in report.problems[0].message


TRACE = "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,"
TRACE += "RangeStack,NameTree\n"


def ranges(*spans):
    body = "".join(f"{s},{e},{d},0,{d},{n},7,8,0,0,{i},,:{i},{n}\n" for i, (n, s, e, d) in enumerate(spans))
    return TRACE + body


def test_ranges_of_a_trace_are_added_up(tmp_path):
    report = report_of(ranges(("a", 10, 30, 20), (":b", 0, 5, 5), ("a", 40, 50, 10)), tmp_path)
    assert not report.problems
    a, b = table(report, "nvtx_summary")
    assert [a[k] for k in ["name", "style", *FIGURES[:6]]] == ["a", "pushpop", 2, 30.0, 15.0, 15.0, 10.0, 20.0]
    assert (b["name"], b["time_pct"], a["time_pct"]) == ("b", 100 * 5 / 35, 100 * 30 / 35)


def test_a_range_whose_end_is_not_its_start_and_duration_is_left_out_and_said(tmp_path):
    report = report_of(ranges(("a", 10, 30, 20), ("a", 40, 50, 19)), tmp_path)
    (row,) = table(report, "nvtx_summary")
    assert row["calls"] == 1
    (problem,) = report.problems
    assert problem.severity != "warning" or "contradict" in problem.message
    assert problem.line == 3


def test_a_range_without_end_or_of_hostile_length_does_no_harm(tmp_path):
    huge = 10**18
    report = report_of(ranges(*[("a", 0, huge, huge)] * 30, ("b", 0, 1, 1)), tmp_path)
    assert [row["name"] for row in table(report, "nvtx_summary")] == ["b"]


def test_a_sum_of_rounded_times_may_be_off_by_all_of_their_half_widths(tmp_path):
    text = TRACE.replace("(ns)", "(us)") + "".join(f"{n},{n}.25,0.25,0,0.25,a,7,8,0,0,{n},,:{n},a\n" for n in range(4))
    (row,) = table(report_of(text, tmp_path), "nvtx_summary")
    got = [row[k] for k in ("total_ns", "total_ns_pm", "avg_ns", "avg_ns_pm", "med_ns_pm", "max_ns_pm", "stddev_ns")]
    assert got == [1000.0, 20.0, 250.0, 5.0, 5.0, 5.0, 0.0]
    assert row["stddev_ns_pm"] == pytest.approx(5 * (4 / 3) ** 0.5)


def test_a_column_before_those_that_are_known_is_a_column_and_no_prefix(tmp_path):
    text = "DevId,Time (%),Total Time (ns),Instances,Avg (ns),Name\n0,75.0,3000,2,1500.0,gemm\n11,25.0,1000,1,1000.0,axpy\n"
    report = report_of(text, tmp_path)
    assert not report.problems
    assert [(r["name"], r["calls"], r["total_ns"]) for r in table(report, "gpu_summary")] == [
        ("gemm", 2, 3000.0),
        ("axpy", 1, 1000.0),
    ]


def test_long_traces_come_in_parts_and_are_one_block(tmp_path):
    report = report_of(ranges(*[(f"r{n % 3}", 10 * n, 10 * n + n % 7, n % 7) for n in range(50_100)]), tmp_path)
    assert not report.problems
    found = table(report, "nvtx_summary")
    assert sum(row["calls"] for row in found) == 50_100
    assert sum(row["total_ns"] for row in found) == sum(n % 7 for n in range(50_100))
    assert {row["block"] for row in found} == {0}


MPI = "Start (ns),End (ns),Duration (ns),Event,Pid,Tid,Tag,Rank,PeerRank,RootRank,Size (MB),CollSendSize (MB),CollRecvSize (MB)\n"
MPI_SUM = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Source,Name\n"
MPI_SUM += "60.0,60,2,30.0,30.0,20,40,14.1,p2p,MPI_Send\n40.0,40,2,20.0,20.0,20,20,0.0,collectives,MPI_Bcast\n"
MESSAGES = "Total Message Volume,Instances,Avg,Med,Min,Max,StdDev,Source,Name\n"
MESSAGES += "300,2,150.0,150.0,100,200,70.7,p2p,MPI_Send\n900,3,300.0,300.0,300,300,0.0,p2p,MPI_Recv\n"
MESSAGES += "64,2,32.0,32.0,32,32,0.0,coll_send,MPI_Bcast\n64,2,32.0,32.0,32,32,0.0,coll_recv,MPI_Bcast\n"


def test_mpi_calls_of_a_trace_are_added_up(tmp_path):
    text = MPI + "0,10,10,MPI_Send,7,7,1,3,2,,0.001,,\n10,40,30,MPI_Send,7,7,1,3,2,,0.002,,\n"
    text += "50,60,10,MPI_Recv,7,7,1,3,2,,0.004,,\n60,,,MPI_Barrier,7,7,,3,,,,,\n"
    report = report_of(text, tmp_path)
    send, receive = table(report, "communication")
    assert [send[k] for k in ("library", "name", "rank", "calls", "total_ns", "total_bytes", "total_bytes_pm")] == [
        "mpi", "MPI_Send", 3, 2, 40.0, 3000.0, 1000.0,
    ]  # fmt: skip
    assert (receive["name"], receive["total_bytes"]) == ("MPI_Recv", None)
    (problem,) = report.problems
    assert "had not ended when the trace did" in problem.message


@pytest.mark.parametrize("times_first", [True, False])
def test_message_sizes_stand_beside_the_times_of_their_calls(times_first, tmp_path):
    report = report_of(MPI_SUM + "\n" + MESSAGES if times_first else MESSAGES + "\n" + MPI_SUM, tmp_path)
    assert not report.problems
    found = {row["name"]: (row["calls"], row["total_ns"], row["total_bytes"]) for row in table(report, "communication")}
    assert found == {"MPI_Send": (2, 60.0, 300.0), "MPI_Bcast": (2, 40.0, 64.0)}


def test_message_sizes_alone_are_rows_of_their_own(tmp_path):
    found = table(report_of(MESSAGES, tmp_path), "communication")
    assert [(row["name"], row["calls"], row["total_ns"], row["total_bytes"]) for row in found] == [
        ("MPI_Send", 2, None, 300.0),
        ("MPI_Bcast", 2, None, 64.0),
    ]


def test_a_trace_and_its_summary_are_one(tmp_path):
    text = ranges(("frame", 0, 100, 100), ("frame", 200, 290, 90), ("frame", 300, 410, 110), ("load", 500, 600, 100))
    report = report_of(
        processing("nvtx_pushpop_sum") + RANGES + "\n" + processing("nvtx_pushpop_trace") + text, tmp_path
    )
    assert len(table(report, "nvtx_summary")) == 2
    assert "nvtx_pushpop_trace repeats rows" in report.problems[0].message


PROJECTED = (
    "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),Style,PID,TID,NumGPUOps,"
)
PROJECTED += "Lvl,NumChild,RangeId,ParentId,RangeStack\n"


def test_projected_ranges_are_added_up_by_name_and_what_is_in_no_range_is_left_out(tmp_path):
    text = PROJECTED + ",530,507636,,,,7,7,24,,0,,,\na,10,30,5,9,PushPop,7,7,2,0,0,4,,:4\n"
    text += "a,50,30,45,9,StartEnd,7,7,3,0,0,5,,:5\n:b,10,7,5,9,PushPop,7,7,1,1,0,6,4,:4:6\n"
    report = report_of(text, tmp_path)
    assert not report.problems
    assert [
        [row[k] for k in ("name", "calls", "gpu_ops", "projected_ns")] for row in table(report, "nvtx_gpu_summary")
    ] == [
        ["a", 2, 5, 60.0],
        ["b", 1, 1, 7.0],
    ]


def test_projected_times_in_other_units_know_how_far_they_were_rounded(tmp_path):
    text = "Range,Style,Total Proj Time (us),Total Range Time (us),Range Instances,Total GPU Ops\n"
    text += "a,PushPop,1.2,3.0,2,5\na,StartEnd,0.5,3.0,1,1\n"
    (row,) = table(report_of(text, tmp_path), "nvtx_gpu_summary")
    assert [row[k] for k in ("calls", "gpu_ops", "projected_ns", "projected_ns_pm")] == [3, 6, 1700.0, 100.0]


def test_the_median_of_a_projected_range_is_that_of_its_row_and_none_of_two_rows_together(tmp_path):
    text = "Range,Style,Total Proj Time (us),Total Range Time (us),Range Instances,Proj Med (us)\n"
    text += "a,PushPop,1.2,3.0,2,0.6\na,StartEnd,0.5,3.0,1,0.5\nb,PushPop,9.0,3.0,2,4.7\n"
    found = {row["name"]: row for row in table(report_of(text, tmp_path), "nvtx_gpu_summary")}
    assert found["a"]["projected_med_ns"] is None
    assert (found["b"]["projected_med_ns"], found["b"]["projected_med_ns_pm"]) == (4700.0, 50.0)


def test_projected_ranges_and_their_summary_are_one(tmp_path):
    text = (
        "Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Total GPU Ops\n:a,PushPop,60,9,2,5\n\n"
    )
    text += PROJECTED + "a,10,30,5,9,PushPop,7,7,2,0,0,4,,:4\na,50,30,45,9,PushPop,7,7,3,0,0,5,,:5\n"
    report = report_of(text, tmp_path)
    (row,) = table(report, "nvtx_gpu_summary")
    assert (row["calls"], row["gpu_ops"], row["projected_ns"]) == (2, 5, 60.0)
    assert "repeats rows" in report.problems[0].message or "left out" in report.problems[0].message


TOTALS = "Total HtoD Migration Size (MB),Total DtoH Migration Size (MB),Total CPU Page Faults,Total GPU PageFaults,"
TOTALS += "Minimum Virtual Address,Maximum Virtual Address\n0.328,0.332,30,43,0x0,0x1D000\n"
FAULTS = 'CPU Page Faults,CPU Instruction Address\n20,main\n10,"f(int, int)"\n'


@pytest.mark.parametrize("text", [TOTALS + "\n" + FAULTS, FAULTS + "\n" + TOTALS])
def test_page_faults_by_instruction_and_in_total_are_the_same_faults(text, tmp_path):
    found = [(row["name"], row["calls"]) for row in table(report_of(text, tmp_path), "um_summary")]
    assert found.count(("CPU page faults", 30)) == 1
    assert len(found) == 4


def test_page_faults_with_their_source_lines_are_added_up_too(tmp_path):
    text = "CPU Page Faults,CPU Instruction Address,Source File,Source Line\n20,main,a.cpp,7\n5,main,,\n"
    assert [row["calls"] for row in table(report_of(text, tmp_path), "um_summary")] == [25]


def test_names_with_ranges_before_them_are_said(tmp_path):
    before = "Processing [r.sqlite] with [/x/reports/cuda_gpu_kern_sum.py](nvtx-name:base)... \n"
    report = report_of(before + KERNELS.replace("frame", "step 1/gemm"), tmp_path)
    assert [row["name"] for row in table(report, "gpu_summary")] == ["step 1/gemm", "load"]
    assert "nvtx-name" in report.problems[0].message


def test_mangled_names_are_read(tmp_path):
    report = report_of(KERNELS.replace("frame", "_Z4axpyIfEvPT_i"), tmp_path)
    row = table(report, "gpu_summary")[0]
    assert (row["name"], row["mangled_name"], row["short_name"]) == (
        "void axpy<float>(float*, int)",
        "_Z4axpyIfEvPT_i",
        "axpy",
    )


def test_a_report_without_data_says_so(tmp_path):
    report = report_of(
        "\n ** CUDA API Summary (cuda_api_sum):\n\nReport was successfully run, but no data was returned.\n", tmp_path
    )
    assert report.format == "nsys-stats"
    assert any("no data was returned" in p.message and "--trace" in p.fix for p in report.problems)


@pytest.mark.parametrize("text", [PROJECTED, TRACE, MPI, TOTALS, FAULTS, MESSAGES])
def test_files_that_hold_nothing_but_the_table_are_known(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert nsys_stats.sniff(Sample(path)) >= 80


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("run7_cuda_api_sum", "cuda_api_sum"),
        ("cuda_api_gpu_sum", "cuda_api_gpu_sum"),
        ("r_cuda_gpu_kern_sum_nvtx-name_base", "cuda_gpu_kern_sum"),
        ("r_um_sum_rows=1000", "um_sum"),
        ("summary", None),
        ("my-gpusummary", None),
        (f"run_cuda_api_sum{'_rows=10_and_more' * 12}", "cuda_api_sum"),
        (f"run_cuda_api_sum{'_rows=10_and_more' * 12}_-", None),  # to say so took for ever
    ],
)
def test_the_name_of_a_file_that_nsys_wrote_tells_its_report(stem, name):
    assert name_of_file(stem) == name


def test_only_what_is_asked_for_is_made(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(ranges(("a", 10, 30, 20)))
    assert not nsys_stats.read(path, Options(frozenset(["gpu_summary"]))).tables


def test_the_advice_of_nsys_analyze_is_named_and_nothing_of_it_is_read(tmp_path):
    text = "Processing [r.sqlite] with [/opt/nsys/rules/cuda_memcpy_sync.py]... \n"
    text += "Duration (ns),Start (ns),Src Kind,Dst Kind,Bytes (MB),PID,Device ID,Context ID,Stream ID,API Name\n"
    text += "8000,530,Pageable,Device,0.778,7,0,1,7,cudaMemcpy\n\n"
    text += "Processing [r.sqlite] with [/opt/nsys/rules/gpu_gaps.py]... \n"
    report = report_of(text, tmp_path)
    assert not report.tables
    assert [p.message for p in report.problems] == [
        "not read: the advice of nsys analyze; nsw has no table for it",
        "the file contains no results",
    ]
