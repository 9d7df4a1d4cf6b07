"""Reports of Intel's Application Performance Snapshot: text of two generations, tables of aps-report, the HTML page.

APS does not run here: the shapes are those of its documentation (tests/fakes/intel_reports.py).
"""

import json

import pytest

from nsw.readers import read
from tests.fakes import intel_reports as printed


@pytest.fixture
def reads(tmp_path):
    def of(text, name="report.txt"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read(tmp_path / name)

    return of


def facts(report):
    return {row["key"]: row.get("text") or row["value"] for row in report.tables["facts"]}


def test_the_summary_is_facts(reads):
    report = reads(printed.APS)
    assert (report.tool, report.format, report.problems) == ("aps", "aps", [])
    found = facts(report)
    assert {
        "application": "net", "ranks": 16, "ranks_per_node": 8, "threads_per_rank": 4, "logical_cpus": 64,
        "cpu_name": "Intel(R) Xeon(R) Processor code named Icelake", "elapsed_s": 171.25, "dp_gflops": 6.63,
        "frequency_hz": 3.12e9, "nominal_frequency_hz": 3e9, "ipc": 1.39, "mpi_s": 65.98, "mpi_pct": 38.53,
        "mpi_imbalance_s": 32.38, "mpi_imbalance_pct": 18.91, "mpi_waitall_s": 58.48, "openmp_imbalance_s": 48.08,
        "openmp_imbalance_pct": 28.08, "serial_s": 12.5, "serial_pct": 7.3, "physical_core_use_pct": 63.9,
        "physical_core_use_cores": 20.45, "physical_cores": 32, "memory_stalls_pct": 37, "cache_bound_pct": 16,
        "dram_bound_pct": 10.1, "dram_bandwidth_bytes_per_s": 21.25e9, "dram_bandwidth_bound_pct": 12,
        "vectorization_pct": 37.3, "dp_flops_packed_128_bit_pct": 37.4, "dp_flops_scalar_pct": 62.6,
        "io_wait_s": 0.94, "io_wait_pct": 0.55, "peak_memory_bytes": 156e6, "disk_read_bytes": 153100,
    }.items() <= found.items()  # fmt: skip
    assert not {"cpu_use_pct", "memory_bound_pct", "report_creation_date"} & set(found)
    [elapsed] = [row for row in report.tables["facts"] if row["key"] == "elapsed_s"]
    assert (elapsed["value_pm"], elapsed["unit"], elapsed["block"]) == (0.005, "s", 0)


def test_what_is_not_available_has_no_fact(reads):
    text = printed.APS.replace("32.38 s            18.91% of Elapsed Time", "N/A*")
    assert not {"mpi_imbalance_s", "mpi_imbalance_pct"} & set(facts(reads(text)))


def test_the_text_before_2020_has_other_words_for_the_same(reads):
    found = facts(reads(printed.APS_OLD))
    assert {
        "elapsed_s": 784.33, "cpi": 2.07, "cpu_use_pct": 6.5, "cpu_use_cores": 16.6, "logical_cpus": 256,
        "dram_bandwidth_bytes_per_s": 3.73e9, "back_end_stalls_pct": 38.9, "l2_hit_bound_pct": 1.3,
    }.items() <= found.items()  # fmt: skip


def test_what_the_program_prints_behind_it_is_no_metric(reads):
    assert "loss" not in facts(reads(f"step: 1 s\n{printed.APS}loss: 0.5\n  loss: 0.25\n"))


OF_GPU = """\
  GPU Stack Utilization:                     90.00%
    XVE State:
       Active:                               {}%
       Stalled:                              20.00%
       Idle:                                 10.50%
  GPU Occupancy:                             50.00% of Peak Value
"""


def with_gpu(lines):
    return printed.APS.replace("  Memory Stalls:", f"{lines}  Memory Stalls:")


def test_shares_of_a_gpu_whose_states_exceed_all_time_are_left_out(reads):
    report = reads(with_gpu(OF_GPU.format("170.00").replace("10.50", "10.00")))
    assert not {"gpu_busy_pct", "gpu_occupancy_pct"} & set(facts(report))
    assert facts(report)["xve_state_active_pct"] == 170
    [problem] = report.problems
    assert problem.severity == "warning"
    assert "add up to 200 % (active 170 %, stalled 20 %, idle 10 %)" in problem.message


def test_states_that_add_up_to_all_time_keep_the_shares(reads):
    report = reads(with_gpu(OF_GPU.format("70.00")))  # 100.5 %: rounded
    assert report.problems == []
    assert (facts(report)["gpu_busy_pct"], facts(report)["gpu_occupancy_pct"]) == (90, 50)


def test_a_table_of_ranks_has_a_fact_a_rank(reads):
    report = reads(printed.APS_RANKS)
    assert report.problems == []
    assert [(r["rank"], r["key"], r["value"]) for r in report.tables["facts"]] == [
        (1, "elapsed_s", 482.96), (1, "mpi_s", 396.39), (1, "mpi_pct", 82.0756),
        (0, "elapsed_s", 477.18), (0, "mpi_s", 387.17), (0, "mpi_pct", 81.1378),
    ]  # fmt: skip


def test_a_table_of_metrics_has_them_by_rank_and_node(reads):
    report = reads(f"$ aps-report --metrics=all result\n{printed.APS_METRICS}")
    assert report.problems == []
    assert [(r.get("rank"), r["host"], r["key"], r["value"]) for r in report.tables["facts"]] == [
        (1, "node001", "mpi_s", 166.471), (0, "node001", "mpi_s", 159.1), (1, "node001", "mpi_pct", 19.2067),
        (None, "node001", "memory_stalls_pct", 42.5),
    ]  # fmt: skip


def test_csv_says_the_same(reads):
    assert facts(reads(printed.APS_METRICS_CSV)) == {"mpi_s": 166.471, "frequency_hz": 2.75e9}


def test_a_row_with_a_very_long_cell_costs_no_other_row(reads):
    titles, *rows = printed.APS_METRICS_CSV.splitlines()
    long = f"{'name' * 50_000}, s;node001;1;N/A;N/A;1.5;None"
    report = reads("\n".join([titles, long, *rows]))
    assert facts(report) == facts(reads(printed.APS_METRICS_CSV))
    assert [problem.line for problem in report.problems] == [2]


def test_a_torn_row_is_said_with_its_line(reads):
    report = reads(printed.APS_METRICS.replace("        166.471           None", ""))
    [problem] = report.problems
    assert (problem.severity, problem.line) == ("error", 4)
    assert [r["value"] for r in report.tables["facts"]] == [159.1, 19.2067, 42.5]


def test_the_page_has_the_same_keys_as_the_text(reads):
    report = reads(printed.APS_HTML, "aps_report.html")
    assert (report.tool, report.problems) == ("aps", [])
    assert facts(report) == {
        "application": "net", "ranks": 32, "ranks_per_node": 16, "elapsed_s": 250.03, "mpi_s": 23.25, "mpi_pct": 9.3,
        "mpi_imbalance_s": 14.8, "mpi_imbalance_pct": 5.92, "io_wait_s": 2.87, "io_wait_pct": 1.15,
        "peak_memory_bytes": 92.39e6, "per_rank_average_resident_set_size_bytes": 91.48e6, "cpu_use_pct": 6.5,
        "cpu_use_cores": 16.6, "logical_cpus": 256, "mpi_waitany_pct": 5.87, "mpi_send_pct": 3.08,
    }  # fmt: skip


def test_a_page_without_figures_says_where_they_are(reads):
    [problem] = reads(printed.APS_HTML[:300], "aps_report.html").problems
    assert "no figures were found" in problem.message
    assert problem.fix == "aps --report=RESULT prints them as text"


@pytest.mark.parametrize("usage", ["Usage: 1. aps [--result-dir=<dir>] <app>", "Usage: aps-report [keys] <file>"])
def test_the_help_is_told_from_results(reads, usage):
    [problem] = reads(f"$ aps -h\nSome version\n{usage}\n  --help  Show this\n").problems
    assert (problem.message, problem.fix) == (
        "the help of aps, without results", "`aps --report DIR` prints the results of a run",
    )  # fmt: skip
    assert reads(f"{usage}\n{printed.APS}").tables["facts"]


def test_another_page_is_no_report(reads):
    text = json.dumps({"INFO": {}})
    assert reads(f"<html><title>My page</title><script>var json={text}</script></html>").tool is None
