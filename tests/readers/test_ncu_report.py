"""A binary report by NVIDIA's `ncu_report`, for which a module of the same shape stands in: each value gets its place."""

import json

import pytest

from nsw.readers import read
from nsw.tables.parquet_tables import full_rows

# what a real one offers, as far as nsw asks: two ranges of which the second holds two actions
MODULE = """
import json
from pathlib import Path

REPORT = json.loads(Path(__file__).with_name("report.json").read_text())


def load_report(path):
    assert Path(path).read_bytes().startswith(b"NVR")
    return Context()


class Context:
    def num_ranges(self):
        return len(REPORT)

    def range_by_idx(self, index):
        return Range(REPORT[index])


class Range:
    def __init__(self, actions):
        self.actions = actions

    def num_actions(self):
        return len(self.actions)

    def action_by_idx(self, index):
        return Action(self.actions[index])


class Action:
    NameBase_DEMANGLED, NameBase_MANGLED = 0, 2
    WorkloadType_RANGE = 1

    def __init__(self, found):
        self.found = found

    def name(self, base):
        return self.found["names"][str(base)]

    def workload_type(self):
        return self.found.get("workload", 0)

    def metric_names(self):
        return list(self.found["metrics"])

    def __getitem__(self, name):
        return Metric(*self.found["metrics"][name])

    def rule_results_as_dicts(self):
        return self.found["rules"]


class Metric:
    def __init__(self, printed, unit, there):
        self.printed, self.there, self.printed_unit = printed, there, unit

    def value(self):
        return float(self.printed) if self.printed in ("nan", "inf") else self.printed

    def unit(self):
        return self.printed_unit

    def has_value(self):
        return self.there
"""
METRICS = {
    "gpu__time_duration.sum": (4512, "nsecond", True),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": (41.25, "%", True),
    "launch__device_id": (1, "", True),
    "launch__context_id": (3, "", True),
    "launch__stream_id": (7, "", True),
    **{f"launch__grid_dim_{axis}": (size, "block", True) for axis, size in zip("xyz", (64, 2, 1), strict=True)},
    **{f"launch__block_dim_{axis}": (size, "thread", True) for axis, size in zip("xyz", (256, 4, 5), strict=True)},
    "device__attribute_display_name": ("NVIDIA A100", "", True),
    "device__attribute_compute_capability_major": (8, "", True),
    "device__attribute_compute_capability_minor": (6, "", True),
    "launch__func_cache_config": ("CachePreferNone", "", True),
    "not_measured": (0, "%", False),
    "not_a_number": ("nan", "%", True),
    "endless": ("inf", "%", True),
    "group:memory__chart": (1, "", True),
    "breakdown:sm__throughput": (1, "", True),
}
RULE = {
    "section_identifier": "SpeedOfLight",
    "rule_identifier": "SOLBottleneck",
    "rule_message": {
        "type": 2,
        "message": "Look at the @section:MemoryWorkloadAnalysis:Memory@ section; see @url:the guide:https://x.org/a@.",
    },
    "speedup_estimation": {"type": 1, "speedup": 12.5},
}
RULES = [RULE, {"rule_message": {"type": 0, "message": "nothing said"}}, {"rule_message": {"type": 1, "message": ""}}]
FIRST = {"names": {"0": "gemm(float *)", "2": "_Z4gemmPf"}, "metrics": METRICS, "rules": RULES}
BARE = {"names": {"0": "plain", "2": "plain"}, "metrics": {"sm__cycles": (5, "cycle", True)}, "rules": []}

RANGE = {"names": {"0": "range", "2": "range"}, "metrics": METRICS, "rules": [], "workload": 1}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The report as nsw reads it."""
    site = tmp_path / "site"
    (site / "ncu_report-2026.1.dist-info").mkdir(parents=True)
    (site / "ncu_report-2026.1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: ncu_report\nVersion: 2026.1\n"
    )
    (site / "ncu_report.py").write_text(MODULE)
    (site / "report.json").write_text(json.dumps([[FIRST], [BARE, FIRST, RANGE]]))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("NSW_NCU", "/no/such/ncu")
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"NVR\0 2026.1.0.0 (build 1)")
    report = read(path)
    assert not report.problems
    return report


def test_the_launches_of_all_ranges_are_numbered_through_with_what_describes_them(found):
    first, bare, last, _ = full_rows("launches", found.tables["launches"])
    assert [first["launch_id"], bare["launch_id"], last["launch_id"]] == [0, 1, 2]
    expected = {
        "kernel": "gemm(float *)",
        "short_name": "gemm",
        "mangled_name": "_Z4gemmPf",
        "duration_ns": 4512,
        "grid": "(64, 2, 1)",
        "block_size": "(256, 4, 5)",
        "device": 1,
        "context": 3,
        "stream": 7,
        "device_name": "NVIDIA A100",
        "compute_capability": "8.6",
    }
    assert {name: first[name] for name in expected} == expected
    assert last == first | {"launch_id": 2}
    absent = {"kernel": "plain", **dict.fromkeys(expected.keys() - {"kernel", "short_name"})}
    assert {name: bare[name] for name in absent} == absent


def test_a_range_has_no_size_for_ncu_gives_the_mean_of_the_launches_in_it(found):
    *_, whole = full_rows("launches", found.tables["launches"])
    assert (whole["kernel"], whole["duration_ns"]) == ("range", 4512)
    assert (whole["grid"], whole["block_size"]) == (None, None)


def test_metrics_have_their_values_and_units_and_what_was_not_measured_is_absent(found):
    metrics = {m["metric"]: m for m in full_rows("metrics", found.tables["metrics"]) if m["launch_id"] == 0}
    throughput = metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"]
    assert (throughput["value"], throughput["value_pm"], throughput["unit"]) == (41.25, None, "%")
    assert metrics["gpu__time_duration.sum"]["value"] == 4512
    assert metrics["launch__func_cache_config"]["text"] == "CachePreferNone"
    assert {metrics[name]["value"] for name in metrics.keys() & {"not_measured", "not_a_number", "endless"}} <= {None}
    assert not any(":" in name for name in metrics)


def test_rules_are_told_as_ncu_tells_them(found):
    rules = [r for r in full_rows("rules", found.tables["rules"]) if r["launch_id"] == 0]
    expected = {
        "section": "GPU Speed Of Light Throughput",
        "rule": "SOLBottleneck",
        "type": "OPT",
        "message": "Look at the Memory section; see the guide (https://x.org/a).",
        "speedup_type": "local",
        "speedup_pct": 12.5,
    }
    assert [{name: rule[name] for name in expected} for rule in rules] == [expected]
