"""Units of metrics: unknown ones are reported, and a metric of ncu has one unit in a report."""

import pytest

from nsw.readers import read
from nsw.readers.checks import units
from nsw.readers.model import Report
from nsw.tables import as_arrow, rows

from .test_contradictions import NCU, metric


@pytest.mark.parametrize("unit", ["ks", "Xbyte", "Xbyte/s", "XB/s", "byte/ks", "qhz"])
def test_a_unit_that_scales_by_no_known_prefix_is_unknown(unit):
    assert units.is_unknown(unit)


@pytest.mark.parametrize(
    "unit",
    ["us", "nsecond", "Gbyte/second", "KB", "GB/s", "Mhz", "cycle/nsecond", "register/thread", "%", "inst", "warp"],
)
def test_units_of_the_tools_are_known(unit):
    assert not units.is_unknown(unit)


def test_an_unknown_unit_is_reported_and_makes_no_time(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(NCU + metric("Duration", "ks", "7.232"))
    report = read(path)
    assert [p.severity for p in report.problems if "nsw does not know the unit 'ks' of 'Duration'" in p.message] == [
        "error"
    ]
    assert next(iter(rows("launches", report.tables["launches"])))["duration_ns"] is None


def printed():
    cells = (("Duration", "us", 1.02, 0.005), ("Duration", "ns", 987.5, 0.05), ("Throughput", "%", 3.5, 0.05),
             ("Throughput", "Kbyte/s", 2.5, 0.05), ("Throughput", "byte/s", 7.0, None), ("Name", None, None, None))  # fmt: skip
    return [{"metric": m, "unit": u, "value": v, "value_pm": pm, "kernel": "k"} for m, u, v, pm in cells]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_metric_has_the_smallest_of_its_units(is_arrow):
    report = Report("x", tool="ncu")
    report.tables["metrics"] = as_arrow("metrics", printed()) if is_arrow else printed()
    units.check_units(report)
    found = [(r["metric"], r["unit"], r["value"], r["value_pm"]) for r in rows("metrics", report.tables["metrics"])]
    assert found == [
        ("Duration", "ns", 1020.0, 5.0), ("Duration", "ns", 987.5, 0.05), ("Throughput", "%", 3.5, 0.05),
        ("Throughput", "byte/s", 2500.0, 50.0), ("Throughput", "byte/s", 7.0, None), ("Name", None, None, None),
    ]  # fmt: skip
    assert not report.problems


def test_what_nvprof_prints_stays_as_printed():
    report = Report("x", tool="nvprof")
    report.tables["metrics"] = printed()
    units.check_units(report)
    assert report.tables["metrics"] == printed()
