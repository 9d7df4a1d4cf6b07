"""VTune's reports: tables by any group and delimiter, summaries, alone and amid a job's output.

VTune does not run here: the shapes are those of its documentation (tests/fakes/intel_reports.py).
"""

import pytest

from nsw.readers import read
from tests.fakes import intel_reports as printed


def report_of(path, text):
    path.write_text(text, encoding="utf-8")
    return read(path)


@pytest.fixture
def reads(tmp_path):
    return lambda text: report_of(tmp_path / "report.txt", text)


def facts(report):
    return {row["key"]: row.get("text") or row["value"] for row in report.tables.get("facts", [])}


def functions(report):
    return {row["name"]: row for row in report.tables.get("functions", [])}


def test_a_row_of_csv_is_a_function(reads):
    report = reads(printed.HOTSPOTS_CSV)
    assert (report.tool, report.format, report.problems) == ("vtune", "vtune", [])
    rows = functions(report)
    assert list(rows) == ["conv_forward", "reduce<float, 4>", "decode_jpeg", "[Outside any known module]"]
    first = rows["conv_forward"]
    assert (first["self_s"], first["cpu_time_s"], first["effective_s"], first["spin_s"], first["overhead_s"]) == (
        12.345678, 12.345678, 11.345678, 0.75, 0.25,
    )  # fmt: skip
    assert (first["module"], first["file"]) == ("libnet.so", "conv.c")
    assert rows["[Outside any known module]"]["module"] is None
    assert rows["decode_jpeg"]["file"] is None


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
def test_any_delimiter_gives_the_same_rows(reads, delimiter):
    wanted = reads(printed.HOTSPOTS_CSV).tables["functions"]
    text = printed.HOTSPOTS_CSV.replace('"reduce<float, 4>"', "R").replace('"reduce<float, 4>(float*)"', "R")
    text = text.replace('"conv_forward(float const*, int)"', "R").replace(",", delimiter).replace("R,", "R")
    got = reads(text).tables["functions"]
    assert [row["self_s"] for row in got] == [row["self_s"] for row in wanted]


def test_text_says_what_csv_says_as_far_as_it_is_printed(reads):
    report = reads(f"epoch 1\n{printed.HOTSPOTS_TEXT}loss: 0.5\n")
    assert report.problems == []
    rows = functions(report)
    assert list(rows) == ["conv_forward", "decode_jpeg"]
    assert (rows["conv_forward"]["self_s"], rows["conv_forward"]["self_s_pm"]) == (12.346, 0.0005)
    assert (rows["decode_jpeg"]["self_s"], rows["decode_jpeg"]["module"]) == (0.5125, "libjpeg.so.62")


def test_modules_are_rows_too(reads):
    rows = functions(reads(printed.MODULES_CSV))
    assert rows["libnet.so"]["module"] == "libnet.so"
    assert (rows["libnet.so"]["self_s"], rows["libnet.so"]["instructions"]) == (15.595803, 41000500000)


def test_a_call_tree_gives_own_times_only(reads):
    """A function is there as often as it is called from somewhere: its time with callees would count twice."""
    rows = functions(reads(printed.TREE_CSV))
    assert [(name, row["self_s"], row.get("cpu_time_s")) for name, row in rows.items()] == [
        ("main", 0.25, None),
        ("conv_forward", 12.5, None),
    ]


def test_hardware_events_are_columns_where_there_are_some_and_sums_else(reads):
    report = reads(printed.FUNCTION_EVENTS)
    assert [(row["name"], row["instructions"], row["cycles"]) for row in report.tables["functions"]] == [
        ("conv_forward", 41000500000, 29000250000),
        ("decode_jpeg", 1200000000, 1100000000),
    ]
    assert facts(report) == {"instructions": 42200500000, "cycles": 30100250000, "mem_load_retired_l3_miss": 9800}
    packages = reads(printed.EVENTS_CSV)
    assert "functions" not in packages.tables
    assert facts(packages) == {"unc_m_cas_count_rd": 2625000, "unc_m_cas_count_wr": 1150000}


SAME = {
    "elapsed_s": 24.75, "cpu_time_s": 41.125, "spin_s": 2.125, "instructions": 98765400000, "cpi": 0.999,
    "threads": 9, "cpu_use_pct": 20.8, "cpu_use_cores": 1.662, "logical_cpus": 8, "memory_bound_pct": 28.7,
    "vectorization_pct": 61.8, "host": "node17", "nominal_frequency_hz": 2.394e9,
}  # fmt: skip


def test_a_summary_in_text_gives_facts_and_its_table_of_functions(reads):
    report = reads(f"epoch 1\n{printed.SUMMARY}after: 3\n")
    assert report.problems == []
    found = facts(report)
    assert SAME.items() <= found.items()
    assert found["command"] == './net "train: all"'
    assert (found["cache_bound_pct"], found["dram_bound_pct"], found["numa_remote_accesses_pct"]) == (18.8, 13.2, 5.1)
    assert (found["dram_bandwidth_bytes_per_s"], found["dram_bandwidth_limit_bytes_per_s"]) == (10.159e9, 218e9)
    assert (found["sp_flops_packed_pct"], found["sp_flops_packed_256_bit_pct"]) == (61.8, 1.8)
    assert found["mpi_busy_wait_s"] == 1.5
    assert not {"after", "collection_start_s", "epoch"} & set(found)
    assert [(r["name"], r["self_s"], r["self_pct"]) for r in report.tables["functions"]] == [
        ("conv_forward", 30.25, 73.6), ("decode_jpeg", 2.5, 6.1), ("[Others]", 8.375, 20.4),
    ]  # fmt: skip


def test_a_summary_in_csv_says_the_same(reads):
    report = reads(printed.SUMMARY_CSV)
    assert report.problems == []
    found = facts(report)
    assert SAME.items() <= found.items()
    assert "dram_bound_pct" not in found  # N/A
    assert (found["dram_bandwidth_bytes_per_s"], found["dram_bandwidth_peak_bytes_per_s"]) == (8.352945e9, 47.9e9)
    assert [row["name"] for row in report.tables["functions"]] == ["conv_forward", "decode_jpeg"]


def test_waits_are_times_though_their_names_end_like_shares(reads):
    text = printed.SUMMARY_CSV.replace(
        "0,Memory Bound,", "1,Wait Time with poor CPU Utilization,48.359\n0,Memory Bound,"
    )
    assert facts(reads(text))["wait_time_with_poor_cpu_utilization_s"] == 48.359


def test_memory_consumption_tells_what_each_function_allocated(reads):
    report = reads(printed.MEMORY)
    assert [(r["name"], r["allocated_bytes"], r["allocations"]) for r in report.tables["functions"]] == [
        ("malloc_check", 1.6e9, 40), ("fread", 45100, 1040), ("[Others]", 1700, 3),
    ]  # fmt: skip
    assert facts(report)["allocation_size_bytes"] == 2.6e9


def test_slots_of_the_pipeline_are_facts(reads):
    report = reads(printed.UARCH.replace("Collection and", "Memory Bound: 31.0% of Pipeline Slots\nCollection and"))
    found = facts(report)
    assert len(found) == len(report.tables["facts"]), "each is there once, as it comes first"
    assert (found["memory_bound_pct"], found["dram_bound_pct"], found["core_bound_pct"]) == (29.6, 21.1, 20.3)
    assert (found["cpu_use_pct"], found["cpu_use_cores"], found["logical_cpus"]) == (0.7, 0.868, 128)
    assert (found["physical_core_use_pct"], found["physical_cores"]) == (1.3, 64)
    assert (found["ipc"], found["dp_gflops"], found["frequency_hz"]) == (1.193, 0.085, 3.38e9)


def test_metrics_of_a_kind_of_core_and_of_a_gpu_are_not_those_of_the_cpu(reads):
    found = facts(
        reads("""\
Elapsed Time: 4.427s
    CPU
        CPI Rate: 0.754
    GPU
        IPC Rate: 1.126
Memory Bound: 38.5% of Pipeline Slots
    Performance-core (P-core)
        Memory Bound: 48.5% of Pipeline Slots
            DRAM Bound: 0.4% of Clockticks
Collection and Platform Info
""")
    )
    assert (found["cpi"], found["memory_bound_pct"]) == (0.754, 38.5)
    assert (found["gpu_ipc_rate"], found["p_core_memory_bound_pct"], found["p_core_dram_bound_pct"]) == (
        1.126,
        48.5,
        0.4,
    )
    assert not {"ipc", "dram_bound_pct"} & set(found)


def test_two_reports_in_one_output_are_two_blocks(reads):
    report = reads(printed.SUMMARY + printed.HOTSPOTS_TEXT + printed.SUMMARY)
    assert [row["block"] for row in report.tables["functions"]] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert {row["block"] for row in report.tables["facts"]} == {0, 2}


def test_a_row_that_is_cut_short_is_said_with_its_line(reads):
    lines = printed.HOTSPOTS_CSV.splitlines()
    lines[2] = lines[2].replace('"reduce<float, 4>"', "reduce").replace(",0x402384", "")
    report = reads("\n".join(lines) + "\n")
    assert [row["name"] for row in report.tables["functions"]] == [
        "conv_forward",
        "decode_jpeg",
        "[Outside any known module]",
    ]
    [problem] = report.problems
    assert (problem.severity, problem.line) == ("error", 3)


UTILIZATION = """\
Function,CPU Time,CPU Time:Effective Time{0},CPU Time:Effective Time{0}:Idle,CPU Time:Effective Time{0}:Poor,CPU Time:Effective Time{0}:Ok
step,8.5,8.5,0.5,8.0,0.0
halo,1.5,1.5,0.0,1.0,0.5
"""


@pytest.mark.parametrize("title", ["", " by Utilization"])
def test_times_at_a_utilization_are_facts_of_the_run(reads, title):
    report = reads(UTILIZATION.format(title))
    found = {row["key"]: (row["value"], row["unit"]) for row in report.tables["facts"]}
    assert found == {"cpu_time_idle_s": (0.5, "s"), "cpu_time_poor_s": (9.0, "s"), "cpu_time_ok_s": (0.5, "s")}
    assert [row["self_s"] for row in report.tables["functions"]] == [8.5, 1.5]
    tree = reads(UTILIZATION.format(title).replace("Function,", "Function Stack,"))
    assert "facts" not in tree.tables


def test_other_tables_are_not_vtunes(reads):
    assert reads("Function,Calls\nf,3\n").tool is None
    assert reads("Elapsed Time: 3.5s\nall is well\n").tool is None


def test_a_result_is_told_how_to_print(tmp_path):
    folder = tmp_path / "r000hs"
    folder.mkdir()
    (folder / "r000hs.vtune").write_text("<?xml version='1.0'?><bag/>\n")
    [problem] = read(folder / "r000hs.vtune").problems
    assert "only VTune opens" in problem.message
    assert f"vtune -report hotspots -result-dir {folder} -format csv" in problem.fix
