"""Forms of reports that people publish: read, or recognised with what to do."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from nsw.analysis.host import classify_function
from nsw.cli.main import run
from nsw.readers import read

FIXTURES = Path(__file__).parents[1] / "fixtures"
HEAD = """\
# Samples: {samples} of event '{event}'
# Event count (approx.): {count}
#
# Overhead  Command  Shared Object  Symbol
# ........  .......  .............  ......
#
"""


@pytest.fixture
def report(tmp_path):
    def written(text, name="report.txt"):
        (tmp_path / name).write_text(text)
        return read(tmp_path / name)

    return written


def shares(found):
    return {row["name"]: row["self_pct"] for row in found.tables["functions"]}


def errors(found):
    return [p for p in found.problems if p.severity == "error"]


def event(name, count, solve):
    rows = (
        f"{solve:>9.2f}%  app      app            [.] solve\n{100 - solve:>9.2f}%  app      app            [.] init\n\n"
    )
    return HEAD.format(samples="1K", event=name, count=count) + rows


def test_unlike_events_of_perf_are_never_averaged(report):
    found = report(event("L1-dcache-loads", 5577472279, 99) + event("LLC-stores", 4000000, 10))
    assert shares(found) == {"solve": 99, "init": 1}
    assert "LLC-stores: init 90 %, solve 10 %" in found.problems[0].message


def test_an_event_of_time_goes_before_others(report):
    assert shares(report(event("cache-misses", 10, 20) + event("cycles:u", 1000, 70)))["solve"] == 70


def test_both_kinds_of_cores_are_weighed_by_their_counts(report):
    found = report(event("cpu_atom/cycles/P", 1000, 10) + event("cpu_core/cycles/P", 3000, 90))
    assert sum(row["self_pct"] for row in found.tables["functions"] if row["name"] == "solve") == pytest.approx(70)
    assert sum(row["self_pct"] for row in found.tables["functions"]) == pytest.approx(100)


def test_an_event_without_samples_is_passed_over(report):
    found = report(HEAD.format(samples="0", event="dummy:u", count=0) + "\n" + event("cycles:P", 1000, 70))
    assert shares(found) == {"solve": 70, "init": 30}


def test_of_a_group_of_events_the_first_is_read(report):
    text = event("x", 1000, 70).replace("event 'x'", "events 'anon group { cycles:u, instructions:u }'")
    text = text.replace("# ........", "# ................").replace("# Overhead", "#         Overhead")
    found = report(text.replace("%  app ", "%  12.00%  app "))
    assert shares(found) == {"solve": 70, "init": 30}


GRAPH = """\
            |
            ---0
               |
                --4.84%--0
                          0
                          0x401136

"""


def test_addresses_in_a_call_graph_are_no_rows(report):
    found = report(event("cycles", 1000, 70).replace("[.] solve\n", "[.] solve\n" + GRAPH))
    assert (shares(found), errors(found)) == ({"solve": 70, "init": 30}, [])


STACK = "\t          400570 func_b+0x10 (/home/u/app)\n\t          4005b1 main+0x5 (/home/u/app)\n\n"


@pytest.mark.parametrize(
    "head",
    ["app 31912 cpu-clock: ", "app 31912 123.456789: ", "app 31912/31913 [003] 123.456789: ", "app 31912 ", "cpu-clock: ",
     "app 31912 123.456789:     250000 cpu_core/cycles/P: ", "app 31912 [003] 12.345678901: cpu/event=0x3c,umask=0x0/u: "],
)  # fmt: skip
def test_samples_are_read_with_whatever_fields_perf_script_printed(report, head):
    found = report((head + "\n" + STACK) * 2)
    assert errors(found) == []
    assert shares(found) == {"func_b": 100, "main": 0}


def test_samples_without_stacks_and_modules_are_read(report):
    found = report("             app 31912 123.456789:          1 cycles:      400570 func_b\n" * 3)
    assert (shares(found), errors(found)) == ({"func_b": 100}, [])


def test_a_place_without_a_name_is_not_charged_to_its_caller(report):
    unnamed = STACK.replace("400570 func_b+0x10 ", "401c88  ")
    found = report(
        f"app 31912 123.456789: 1 cycles:P: \n{STACK}app 31912 123.457: 1 cycles:P: \n{unnamed}".replace(
            ".457:", ".457000:"
        )
    )
    assert shares(found) == {"[unknown]": 50, "func_b": 50, "main": 0}


def test_samples_before_the_first_stack_are_passed_over(report):
    found = report(f"perf-exec 7/7 5569.059897: 144 cycles:P: \napp 7/7 5569.059919: 9434 cycles:P: \n{STACK}")
    assert (shares(found), errors(found)) == ({"func_b": 100, "main": 0}, [])


STAT = """\
 Performance counter stats for './a':

         18,003.70 msec task-clock                       #    1.000 CPUs utilized
    93,026,790,157      cpu_core/cycles/                 #    5.167 GHz                         (62.50%)
     6,973,209,843      cpu_atom/cycles/                                                        (37.50%)
   140,000,000,000      cpu_core/instructions/           #    1.51  insn per cycle
                                                  #    0.00  stalled cycles per insn
    10,000,000,000      cpu_atom/instructions/           #    1.43  insn per cycle
     <not counted>      cpu_atom/branches/                                                      (0.00%)
             35.20 Joules power/energy-pkg/

      18.005087828 seconds time elapsed
"""


def test_lines_of_perf_stat_that_go_on_belong_to_the_event_above(report):
    found = report(STAT)
    facts = {row["key"]: row["value"] for row in found.tables["facts"]}
    assert errors(found) == []
    assert (facts["cycles"], facts["instructions"], facts["ipc"]) == (100_000_000_000, 150_000_000_000, 1.5)
    assert facts["power_energy_pkg"] == 35.2


def test_counts_by_cores_are_refused_with_what_to_do(report):
    (error, *_) = errors(report(STAT.replace("    93,026", "CPU0 93,026")))
    assert "count without" in error.message


FLAT = """\
Flat profile:

Each sample counts as 0.01 seconds.
{rows}  %   cumulative   self              self     total
 time   seconds   seconds    calls  Ts/call  Ts/call  name

 %         the percentage of the total running time of the
time       program used by this function.
"""


def test_an_empty_profile_of_gprof_says_why(report):
    found = report(FLAT.format(rows=" no time accumulated\n\n"))
    assert [p.message.partition(":")[0] for p in errors(found)] == ["the profile is empty"]


def test_an_index_that_gprof_cut_is_read(report):
    found = report(
        "index % time    self  children    called     name\n"
        "[10000  40.0    0.40    0.10      10         solve(double*) [10000]\n"
        "[12345   0.0    0.00    0.00       2         init [123456]\n"
    )
    assert errors(found) == []
    assert [row["name"] for row in found.tables["functions"]] == ["solve(double*)", "init"]


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("std::_Rb_tree<int, std::_Select1st<std::pair<int const, double> > >::find(int const&)", "other work"),
        ("{method 'join' of 'str' objects}", "other work"), ("aten::select", "other work"), ("__select", "waiting"),
        ("pthread_join", "waiting"), ("__GI___poll", "waiting"), ("do_lookup_x", "other work"),
        ("rcu_read_lock", "other work"), ("down_read", "other work"), ("read_tsc", "other work"),
        ("vfs_read", "reading files"), ("MPI_Init_thread()", "starting and ending MPI"), ("MPI_Send()", "MPI"),
        ("MPI_File_write_all()", "MPI file access"), ("idle_cpu", "other work"), ("intel_idle", "waiting"),
    ],
)  # fmt: skip
def test_look_ups_and_locks_are_neither_waits_nor_files(name, work):
    assert classify_function(name) == work


def test_a_profile_that_names_its_metric_alone_is_read(report):
    found = report(TAU.replace("_MULTI_TIME", "_TIME"), "profile.3.0.0")
    assert (errors(found), len(found.tables["functions"])) == ([], 4)


TAU = """\
4 templated_functions_MULTI_TIME
# Name Calls Subrs Excl Incl ProfileCalls #
".TAU application" 1 4 48000 100000 0 GROUP="TAU_DEFAULT"
"MPI_Init()" 1 0 18000 18000 0 GROUP="MPI"
"MPI_File_open()" 1 0 24000 24000 0 GROUP="MPI"
"MPI_Send()" 1 0 10000 10000 0 GROUP="MPI"
0 aggregates
"""


def test_start_up_and_files_are_no_messages(report):
    facts = {row["key"]: row.get("value") for row in report(TAU, "profile.0.0.0").tables["facts"]}
    assert facts["mpi_pct"] == 10


@pytest.mark.parametrize("command", [["cat", "-n"], ["grep", "-n", ""]])
@pytest.mark.parametrize("name", ["cpu/perf-report-graph.txt", "h200/naive-details.txt", "h200/tiled-stats.txt"])
def test_a_listing_with_numbers_of_lines_is_read_without_them(tmp_path, command, name):
    numbered = tmp_path / "numbered.txt"
    numbered.write_bytes(subprocess.run([*command, FIXTURES / name], capture_output=True, check=True).stdout)
    plain = read(FIXTURES / name)
    assert read(numbered).tables == plain.tables
    assert plain.tables


OUTPUT = "Collecting data...\nGenerating '/tmp/nsys-report-8d3e.qdstrm'\n{}"


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        (
            "[1/1] [=====100%] run.nsys-rep\nGenerated:\n    /scratch/u/run.nsys-rep\n",
            "nsys wrote",
            "nsw read /scratch",
        ),
        (
            "Importer error status: Importation failed.\nGenerated:\n\t/scratch/u/run.qdstrm\n",
            "did not import",
            "QdstrmImp",
        ),
        ("", "names no report", "program's own output"),
    ],
)
def test_the_output_of_nsys_profile_says_where_its_report_is(report, text, message, fix):
    problem = errors(report(OUTPUT.format(text)))[-1]
    assert message in problem.message
    assert fix in problem.fix


def test_one_cause_is_given_where_ncu_does_not_know_the_gpu(report):
    found = report(
        "==PROF== Connected to process 7 (/a)\n==ERROR== Profiling is not supported on device 0.\n"
        "==WARNING== No kernels were profiled.\n"
        "==WARNING== Profiling kernels launched by child processes requires the --target-processes all option.\n"
    )
    assert len(found.problems) == 1


def test_one_cause_is_given_where_a_monitor_holds_the_counters(report):
    found = report(
        "==PROF== Connected to process 7 (/a)\n==ERROR== An error was reported by the driver\n\n"
        "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is"
        ' concurrently collecting profiling data.\n==ERROR== Failed to profile "k" in process 7\n'
        "==PROF== Trying to shutdown target application\n==ERROR== The application returned an error code (9).\n"
        "==ERROR== An error occurred while trying to profile.\n==WARNING== No kernels were profiled.\n"
    )
    (problem,) = found.problems
    assert "dcgmi profile --pause" in problem.fix


def test_launches_without_gpu_work_are_named(tmp_path):
    path = tmp_path / "wsl.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
            " correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
            "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000');"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 0, 12465472231, 1, 1, 0), (30, 40, 0, 12465472231, 2, 1, 0);"
        )
    (problem,) = read(path).problems
    assert problem.message.startswith("2 kernels were launched, none recorded: the driver is newer")


def test_self_times_below_zero_are_left_out_with_a_note(report):
    cells = ["aten::select", "10.33%", "446.808ms", "12.45%", "538.581ms", "18.617us", "-688540.000us", "-17.68%",
             "806.382ms", "27.874us", "28930"]  # fmt: skip
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %",
              "CUDA total", "CUDA time avg", "# of Calls"]  # fmt: skip
    dashes = "  ".join(["-" * 14] * 11)
    lines = [dashes, "  ".join(f"{title:>14}" for title in titles), dashes, "  ".join(f"{cell:>14}" for cell in cells)]
    found = report("\n".join([*lines, dashes, "Self CPU time total: 4.327s", ""]))
    assert errors(found) == []
    assert found.tables["operators"][0]["self_device_ns"] is None
    assert "below zero" in found.problems[0].message


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("__rec=node,id=12,attr=8,data=64,parent=3\n", "Caliper"),
        ("Path             Min time/rank Max time/rank Avg time/rank Time %\nmain      0.1 0.1 0.1 5.0\n", "Caliper"),
        ('{"timemory": {"wall_clock": {}}}', "timemory"),
        ("STRUCT,Info,3,,,\nCPU name:,Intel Xeon,,,\nTABLE,Region solve,Group 1 Raw,FLOPS_DP,9,\n", "likwid"),
        ('"Index","KernelName","gpu-id","queue-id","BeginNs","EndNs"\n0,"add",1,0,5,9\n', "older rocprof"),
        ("# callgrind format\nversion: 1\ncreator: callgrind-3.18.1\n", "Valgrind"),
        (
            "Device NVIDIA H100 (GH100)\nMetric Name    Metric Type   Metric Unit   Metric Description\n",
            "ncu can measure",
        ),
    ],
)
def test_files_of_other_profilers_are_named_with_what_to_do(report, text, tool):
    (problem,) = report(text).problems
    assert tool in problem.message
    assert problem.fix


def test_a_database_of_dlprof_is_named(tmp_path):
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("CREATE TABLE nodes (op_node_name TEXT, tc_eligible INTEGER)")
    (problem,) = read(tmp_path / "run.sqlite").problems
    assert "DLProf" in problem.message


def test_statistics_of_the_older_rocprof_are_read(report):
    found = report(
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"add.kd",10,3400,340,100.0\n', "a.stats.csv"
    )
    assert found.tables["gpu_summary"][0]["total_ns"] == 3400


EUROPE = """\
 Performance counter stats for './a':

        692.208,67 msec task-clock:u                     #    3,999 CPUs utilized
            14.249      page-faults:u                    #   22,315 /sec
 1.624.700.003.936      cycles:u                         #    2,544 GHz                         (66,67%)

     319,302925821 seconds time elapsed
"""


def test_numbers_of_perf_stat_have_the_decimal_mark_of_their_language(report):
    found = report(EUROPE)
    facts = {row["key"]: row["value"] for row in found.tables["facts"]}
    assert errors(found) == []
    assert facts["task_clock_s"] == pytest.approx(692.20867)
    assert (facts["page_faults"], facts["cycles"]) == (14249, 1624700003936)
    assert facts["elapsed_s"] == pytest.approx(319.302925821)


def test_clocks_of_an_older_perf_are_in_milliseconds(report):
    older = EUROPE.translate(str.maketrans(".,", ",.")).replace("67 msec task-clock:u", "670000 task-clock:u (msec)")
    facts = {row["key"]: row["value"] for row in report(older.replace("(66.67%)", "[66.67%]")).tables["facts"]}
    assert facts["task_clock_s"] == pytest.approx(692.20867)


def test_a_log_of_a_program_is_no_recording_of_perf(report):
    log = "./main 10000 8 1\n==PROF== Connected to process 7 (/a)\n==PROF== Disconnected from process 7\n"
    assert report(log).format != "perf-script"


def test_addresses_of_a_verbose_report_are_left_out_of_names(report):
    text = (
        event("cycles", 1000, 70).replace("[.] solve", "0xe51e0            B [.] solve").replace("[.] init", "0xb498")
    )
    assert shares(report("build id event received for /usr/bin/find\n" + text)) == {"solve": 70, "0xb498": 30}


def test_shares_of_a_report_that_was_cut_are_those_it_prints(tmp_path, capsys):
    (tmp_path / "top.txt").write_text(event("cycles", 1000, 8).rpartition("   92.00%")[0])
    run(["read", str(tmp_path / "top.txt")])
    assert "solve takes 8 % of the samples" in capsys.readouterr().out


def label(kind, pid, name, tid=0):
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}}


def span(pid, tid, ts, dur, name, **args):
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


XLA = [
    label("process_name", 1, "/device:GPU:0 (pid 1)"), label("thread_name", 1, "Stream #15(Compute)", 15),
    label("thread_name", 1, "Stream #19(MemcpyH2D)", 19), label("thread_name", 1, "XLA Ops", 3),
    label("process_name", 701, "/host:CPU"), label("thread_name", 701, "python", 9),
    span(1, 15, 10.0, 50.0, "loop_add_fusion", correlation_id="7"), span(1, 15, 70.0, 30.0, "gemm_fusion_dot_3"),
    span(1, 19, 1.0, 8.0, "MemcpyH2D", memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1"),
    span(1, 3, 10.0, 50.0, "fusion.3"), span(701, 9, 0.0, 100.0, "PjitFunction(step)"),
]  # fmt: skip


def test_the_gpus_work_of_a_trace_of_jax_is_read(tmp_path):
    path = tmp_path / "host.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": XLA}).encode()))
    found = read(path)
    rows = {row["name"]: row for row in found.tables["gpu_summary"]}
    assert (found.tool, errors(found)) == ("jax", [])
    assert {name: row["total_ns"] for name, row in rows.items()} == {
        "loop_add_fusion": 50000, "gemm_fusion_dot_3": 30000, "Memcpy HtoD (Pageable -> Device)": 8000,
    }  # fmt: skip
    assert rows["Memcpy HtoD (Pageable -> Device)"]["total_bytes"] == 4096


HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"'
)
PEAK = "throughput.avg.pct_of_peak_sustained_elapsed"


def counters(*metrics, cc="9.0"):
    begin = f'"0","10","a","127.0.0.1","k(float *)","1","7","(256, 1, 1)","(40000, 1, 1)","0","{cc}","Command line profiler metrics"'
    lines = [
        ",".join((begin, *(f'"{cell}"' for cell in metric)))
        for metric in (("gpu__time_duration.sum", "us", "341.9"), *metrics)
    ]
    return "\n".join([HEADER, *lines, ""])


def screen(tmp_path, capsys, text):
    (tmp_path / "counters.csv").write_text(text)
    run(["read", str(tmp_path / "counters.csv")])
    return capsys.readouterr()


def test_memory_is_not_called_dram_or_a_cache_where_neither_was_measured(tmp_path, capsys):
    text = counters((f"gpu__compute_memory_{PEAK}", "%", "84"), (f"sm__{PEAK}", "%", "20"))
    assert "bound by memory, 84 % of its peak" in screen(tmp_path, capsys, text).out


def test_threads_that_share_bytes_use_no_more_than_all(tmp_path, capsys):
    used = ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%", "200")
    text = counters((f"gpu__dram_{PEAK}", "%", "90"), (f"sm__{PEAK}", "%", "20"), used)
    assert "200 %" not in screen(tmp_path, capsys, text).out


def test_counters_without_values_on_a_new_gpu_are_named(report):
    names = ("gpu__dram_", "sm__", "lts__")
    found = report(counters(*((name + PEAK, "%", "nan") for name in names), cc="10.0"))
    assert [p.message.partition(" metrics")[0] for p in found.problems] == ["3 of 4"]
