"""One table holds a metric whoever printed it: the same portable name, unit and value from every page and tool."""

import gzip
from pathlib import Path

import pytest

from nsw.metrics.printed_metrics import portable_metric
from nsw.readers import portable_metrics as filling
from nsw.readers import read
from nsw.readers.model import Report
from nsw.readers.portable_metrics import convert_metrics_to_one_unit
from nsw.tables import full_rows, to_arrow

H200 = Path(__file__).parents[1] / "fixtures" / "h200"


def portable_values(report, launch=0):
    found = {}
    for row in full_rows("metrics", report.tables["metrics"]):
        if row["portable"] and row["launch_id"] == launch and row["portable_value"] is not None:
            value = (row["portable_value"], row["portable_unit"], row["portable_value_pm"] or 0.0)
            found.setdefault(row["portable"], set()).add(value)
    return {name: sorted(values) for name, values in found.items()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    raw = tmp_path_factory.mktemp("raw") / "naive-raw.csv"
    raw.write_bytes(gzip.decompress((H200 / "naive-raw.csv.gz").read_bytes()))
    return {"details": read(H200 / "naive-details.csv"), "text": read(H200 / "naive-details.txt"), "raw": read(raw)}


def test_details_as_csv_and_text_and_the_raw_page_agree(pages):
    details, text, raw = (portable_values(pages[page]) for page in ("details", "text", "raw"))
    assert {"achieved_occupancy", "duration", "dram_throughput", "memory_throughput", "registers_per_thread"} <= (
        details.keys() & text.keys() & raw.keys()
    )
    assert details == text
    for name in details.keys() & raw.keys() - {"sm_frequency"}:  # of the SMs on one page, of the GPCs on the other
        ((about, unit, half),), ((exact, same, _),) = details[name], raw[name]
        assert unit == same
        assert exact == pytest.approx(about, abs=half * 1.001, rel=1e-9), name
    assert raw["duration"][0][:2] == (141184.0, "ns")
    assert raw["dram_throughput"][0][:2] == (3.7534e9, "byte/s")


def test_a_launch_has_a_portable_metric_once(pages):
    several = {name: found for name, found in portable_values(pages["raw"]).items() if len(found) > 1}
    assert several == {}


NVPROF = """==7== NVPROF is profiling process 7, command: ./a
==7== Profiling application: ./a
==7== Profiling result:
==7== Metric result:
Invocations                               Metric Name                        Metric Description         Min         Max         Avg
Device "Tesla P100-SXM2-16GB (0)"
    Kernel: k(float*)
         10                        achieved_occupancy                        Achieved Occupancy    0.500000    0.600000    0.548912
         10                          dram_utilization                 Device Memory Utilization     Low (1)    High (8)     Mid (4)
         10                           tex_utilization                         Texture Utilization    Idle (0)    Idle (0)    Idle (0)
         10                      dram_read_throughput             Device Memory Read Throughput  1.0000GB/s  3.0000GB/s  2.0000GB/s
         10                                       ipc                              Executed IPC    2.000000    2.600000    2.507215
"""


def test_what_nvprof_prints_becomes_the_same_units(tmp_path):
    file = tmp_path / "nvprof.txt"
    file.write_text(NVPROF)
    found = {r["portable"]: r for r in full_rows("metrics", read(file).tables["metrics"])}
    told = {n: (r["portable_value"], r["portable_value_pm"], r["portable_unit"]) for n, r in found.items()}
    assert told == {
        "achieved_occupancy": (pytest.approx(54.8912), pytest.approx(5e-5), "%"),
        "dram_utilization": (35.0, 5.0, "%"),
        "tex_utilization": (0.0, None, "%"),
        "dram_read_throughput": (2.0 * 2**30, pytest.approx(0.00005 * 2**30), "byte/s"),
        "ipc": (2.507215, pytest.approx(5e-7), "inst/cycle"),
    }


def test_large_tables_are_filled_as_small_ones_are(pages, tmp_path):
    file = tmp_path / "nvprof.txt"
    file.write_text(NVPROF)
    for report in (*pages.values(), read(file)):
        plain = list(full_rows("metrics", report.tables["metrics"]))
        bare = [{k: None if k.startswith("portable") else v for k, v in row.items()} for row in plain]
        columns = to_arrow("metrics", bare).drop_columns([c for c in plain[0] if c.startswith("portable")])
        large = Report(report.path, tool=report.tool, tables={"metrics": columns})
        filling.add_portable_names(large)
        again = list(full_rows("metrics", large.tables["metrics"]))
        for one, other in zip(plain, again, strict=True):
            assert {k: v for k, v in one.items() if not isinstance(v, float)} == {
                k: v for k, v in other.items() if not isinstance(v, float)
            }
            numbers = {k: v for k, v in one.items() if isinstance(v, float)}
            assert numbers == pytest.approx({k: other[k] for k in numbers}), one["metric"]


@pytest.mark.parametrize(
    ("printed", "unit", "name", "factor"),
    [
        ("Memory Throughput", "%", "memory_throughput", 1),
        ("Memory Throughput", "Gbyte/second", "dram_throughput", 1e9),
        ("Memory Throughput", "Tbyte/s", "dram_throughput", 1e12),
        ("Duration (gpu__time_duration.sum)", "msecond", "duration", 1e6),
        ("SM Frequency", "cycle/nsecond", "sm_frequency", 1e9),
        ("SM Frequency", "Mhz", "sm_frequency", 1e6),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", "byte/sector", "gld_efficiency", 3.125),
        ("dram__bytes_op_read.sum", "Mbyte", "dram_read_bytes", 1e6),
        ("sm__inst_executed.avg.per_cycle_active", "inst/cycle", "ipc", 1),
        ("smsp__inst_executed.avg.per_cycle_active", "inst/cycle", "ipc", 4),
    ],
)
def test_a_printed_name_and_unit_give_the_portable_metric(printed, unit, name, factor):
    found = portable_metric(printed, unit)
    assert (found.name, found.factor) == (name, pytest.approx(factor))


@pytest.mark.parametrize(("printed", "unit"), [("Mem Pipes Busy", "%"), ("sm__brand_new.sum", ""), ("", None)])
def test_what_has_no_portable_name_has_none(printed, unit):
    assert portable_metric(printed, unit) is None


def printed():
    cells = (("Duration", "us", 1.02, 0.005), ("Duration", "ns", 987.5, 0.05), ("Throughput", "%", 3.5, 0.05),
             ("Throughput", "Kbyte/s", 2.5, 0.05), ("Throughput", "byte/s", 7.0, None), ("Name", None, None, None))  # fmt: skip
    return [{"metric": m, "unit": u, "value": v, "value_pm": pm, "kernel": "k"} for m, u, v, pm in cells]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_metric_has_the_smallest_of_its_units(is_arrow):
    report = Report("x", tool="ncu")
    report.tables["metrics"] = to_arrow("metrics", printed()) if is_arrow else printed()
    convert_metrics_to_one_unit(report)
    found = [
        (r["metric"], r["unit"], r["value"], r["value_pm"]) for r in full_rows("metrics", report.tables["metrics"])
    ]
    assert found == [
        ("Duration", "ns", 1020.0, 5.0), ("Duration", "ns", 987.5, 0.05), ("Throughput", "%", 3.5, 0.05),
        ("Throughput", "byte/s", 2500.0, 50.0), ("Throughput", "byte/s", 7.0, None), ("Name", None, None, None),
    ]  # fmt: skip
    assert not report.problems
