"""What grows in an iteration, and what takes most of it where nothing was measured."""

import math
import random
from dataclasses import replace

import pytest

from nsw.analysis.growth import FIGURE, ITERATION, KERNELS, fit_growth_by_series
from nsw.analysis.spent import Part, Spent

from .made import case

GPUS = (1, 2, 4, 8, 16, 32)


def span_ms(gpus):
    """Computing 10 ms, communication 2 ms a doubling, idle 1 ms."""
    return 10 + 2 * math.log2(gpus) + 1


def made(gpus, noise=0.0, batch=64):
    """A case with that iteration and what it prints, images/s."""
    span = span_ms(gpus) * (1 + noise)
    talk = 2 * math.log2(gpus) * (1 + noise)
    spent = Spent(
        is_iteration=True, span_ns=span * 1e6, fp32_ns=0.0, short_pct=0.0, operations=10.0,
        parts=(Part("GEMM", 10e6, 5, "gemm", 10e6), Part("NCCL", talk * 1e6, 2, "nccl", talk * 1e6)),
        computing_pct=1000 / span, exposed_pct=100 * talk / span, copies_pct=0.0,
        idle_pct=100 * (span - 10 - talk) / span,
    )  # fmt: skip
    return replace(case(batch * gpus / span * 1000, gpus=gpus, batch=batch), spent=spent, traced_by="timeline")


def series_of(gpus=GPUS, at=256.0, repeats=3):
    scatter = random.Random(5)
    cases = [made(count) for count in gpus]
    runs = {each.id: [made(each.params["gpus"], scatter.gauss(0, 0.01)) for _ in range(repeats)] for each in cases}
    (series,) = fit_growth_by_series(cases, runs, over=["gpus"], at=(at,), figure="speed")
    return series


def test_the_part_that_grows_takes_most_of_an_iteration_far_out():
    series = series_of()
    parts = series.by_share
    assert [part.name for part in parts] == ["communication alone", "computing", "idle"]
    share = parts[0].share_pct
    assert share.value == pytest.approx(100 * 16 / span_ms(256), abs=3)
    assert share.low < share.value < share.high
    assert sum(part.share_pct.value for part in parts) == pytest.approx(100)
    assert parts[0].law.growth == "log2(gpus)"
    assert series.extrapolation_factor == 8


def test_communication_that_begins_with_two_gpus_has_its_law_from_there():
    talk = next(row for row in series_of().rows if row.name == "communication alone")
    assert talk.first == 0
    assert talk.law.least == (2.0,)


def test_the_law_of_a_rate_is_that_of_its_cost():
    row = next(row for row in series_of().rows if row.kind == FIGURE)
    assert row.is_rate
    assert row.law.growth == "log2(gpus)"
    assert row.at.value == pytest.approx(64 * 256 / span_ms(256) * 1000, rel=0.03)
    assert row.at.low < row.at.value < row.at.high


def test_kernel_classes_have_laws_and_copies_of_nothing_have_no_row():
    rows = series_of().rows
    assert {row.name for row in rows if row.kind == KERNELS} == {"GEMM", "NCCL"}
    assert {row.name for row in rows if row.kind == ITERATION} == {
        "iteration", "computing", "communication alone", "idle",
    }  # fmt: skip


def test_three_values_give_no_share_and_the_reason():
    series = series_of((1, 2, 4), 16.0)
    assert series.by_share == []
    missing = {row.name: row.at.missing for row in series.rows if row.at.missing}
    assert missing["communication alone"] == "gpus has 2 measured values, and a law needs 3 at least"


def test_other_parameters_make_series():
    cases = [made(gpus, batch=batch) for batch in (32, 64) for gpus in GPUS]
    found = fit_growth_by_series(cases, {each.id: [each] for each in cases}, over=["gpus"], at=(128.0,), figure="speed")
    assert [series.params for series in found] == [{"batch": 32}, {"batch": 64}]


def test_a_rate_over_gpus_and_batch_is_one_law():
    scatter = random.Random(1)
    cases = [
        case(gpus * batch / (1 + 0.1 * batch + math.log2(gpus)) * (1 + scatter.gauss(0, 0.005)), gpus=gpus, batch=batch)
        for gpus in (1, 2, 4, 8, 16) for batch in (8, 16, 32, 64, 128)
    ]  # fmt: skip
    (series,) = fit_growth_by_series(
        cases, {each.id: [each] for each in cases}, over=["gpus", "batch"], at=(64.0, 256.0), figure="speed"
    )
    (row,) = series.rows
    assert row.law.growth == "log2(gpus) + batch"
    assert row.at.value == pytest.approx(64 * 256 / (1 + 25.6 + 6), rel=0.05)
