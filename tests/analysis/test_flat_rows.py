"""A summary's tables as rows: parameters first, then what was found, and of what was not asked for nothing."""

from dataclasses import replace

import pytest

from nsw.analysis.answer.comparisons import variant_bar_blocks
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.present.emit import FLAT, flat_rows

from .made import figure_row, gpu_row, make_run


@pytest.fixture
def summary():
    runs = [make_run(f"r{n}", f"b-8_n-{n}", params={"b": 8, "n": n}) for n in (1, 2)]
    tables = {
        "figures": [figure_row(value, run=run) for run, value in (("r1", 100.0), ("r2", 150.0))],
        "gpu_summary": [gpu_row("k", 80, run="r1"), gpu_row("HtoD", 20, kind="memcpy", run="r1")],
    }

    def make(**asked):
        return summarize(CampaignData("c", "s", None, runs, tables), ReportRequest(**asked))

    return make


def test_each_point_of_a_curve_is_a_row(summary):
    first, second = flat_rows(summary(axis="n", figure="speed"), "scaling")
    assert list(first)[:3] == ["b", "n", "case"]
    expected = {
        "b": 8, "n": 2, "case": "b-8_n-2", "figure": "speed", "value": 150, "unit": "images/s", "runs": 1,
        "profiled": False, "speedup": 1.5, "efficiency_pct": 75, "communication_pct": None, "missing": None,
        "nccl_alone_pct": None, "nccl_hidden_pct": None,
        **dict.fromkeys(("iteration_ns", "computing_ns", "copies_ns", "nccl_alone_ns", "idle_ns")),
    }  # fmt: skip
    assert second == expected


def test_a_figure_has_the_mean_and_the_standard_deviation_of_its_runs():
    runs = [make_run(f"r{n}", "n-1", params={"n": 1}) for n in range(3)]
    figures = [figure_row(value, run=run.id) for run, value in zip(runs, (100.0, 110.0, 150.0), strict=True)]
    several, alone = (
        flat_rows(summarize(CampaignData("c", "s", None, of, {"figures": figures}), ReportRequest()), "figures")[0]
        for of in (runs, runs[:1])
    )
    assert (several["median"], several["mean"], several["stddev"]) == (110, 120, pytest.approx(26.457513))
    assert (alone["mean"], alone["stddev"]) == (100, None)


def test_each_variant_is_a_row(summary):
    _, second = flat_rows(summary(compare="n", baseline=1, figure="speed"), "compare")
    assert (second["b"], second["variant"], second["case_id"], second["ratio"]) == (8, 2, "b-8_n-2", 1.5)
    assert "series" not in second


def test_variants_without_a_gpu_have_no_column_of_kernels(summary):
    made = summary(compare="n", baseline=1, figure="speed")
    names = lambda block: [column.name for column in block.columns]  # noqa: E731
    assert names(variant_bar_blocks(made)[0])[-1] == "top"
    bare = replace(made, variants=tuple(replace(v, gpu_ns=None, top=None) for v in made.variants))
    assert "top" not in names(variant_bar_blocks(bare)[0])


def test_the_others_are_the_rows_of_each_case(summary):
    found = summary(cover=1)
    assert [(r["case"], r["b"], r["n"], r["name"], r["share_pct"]) for r in flat_rows(found, "hotspots")] == [
        ("b-8_n-1", 8, 1, "k", 80),
        ("b-8_n-1", 8, 1, "HtoD", 20),
    ]
    assert [r["median"] for r in flat_rows(found, "figures")] == [100, 150]
    assert [(r["name"], r["total_ns"]) for r in flat_rows(found, "copies")] == [("HtoD", 20)]


def test_what_was_not_asked_for_has_no_rows(summary):
    assert {name: len(flat_rows(summary(cover=1), name)) for name in FLAT} == {
        "scaling": 0, "compare": 0, "hotspots": 2, "kernels": 0, "roofline": 0, "api": 0, "copies": 1, "perturbation": 0,
        "figures": 2, "functions": 0, "model": 0, "stragglers": 0, "iteration_times": 0,
    }  # fmt: skip


def test_parameters_with_the_names_of_columns_are_told_apart_from_them():
    runs = [make_run(f"r{n}", f"c{n}", params={"value": n, "kind": "x", "case": n}) for n in (1, 2)]
    tables = {
        "figures": [figure_row(value, run=run) for run, value in (("r1", 100.0), ("r2", 150.0))],
        "gpu_summary": [gpu_row("k", 80, run="r1")],
    }
    asked = ReportRequest(cover=1, axis="value", figure="speed", compare="value", baseline=1)
    found = summarize(CampaignData("c", "s", None, runs, tables), asked)
    point = flat_rows(found, "scaling")[1]
    assert {k: point[k] for k in ("param_value", "kind", "param_case", "case", "value")} == {
        "param_value": 2, "kind": "x", "param_case": 2, "case": "c2", "value": 150,
    }  # fmt: skip
    (spot,) = flat_rows(found, "hotspots")
    assert (spot["case"], spot["param_case"], spot["kind"], spot["param_kind"], spot["value"]) == (
        "c1",
        1,
        "kernel",
        "x",
        1,
    )
    assert flat_rows(found, "compare")[1]["case"] == 2
