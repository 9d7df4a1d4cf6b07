"""The figure of an application for computing time: efficiency, its range, predicted points, hours."""

import pytest

from nsw.analysis.comparison import scaling_curve
from nsw.analysis.figures import Figure
from nsw.analysis.growth import fit_growth_by_series
from nsw.analysis.proposal import proposal_curve

from .made import case

GPUS = (1, 2, 4, 8, 16)


def block(cases, *, kind="strong", repeats=3):
    curve = scaling_curve(cases, axis="gpus", kind=kind, figure="speed")
    runs = {each.id: [each] * repeats for each in cases}
    laws = fit_growth_by_series(cases, runs, over=["gpus"], at=(64.0,), figure="speed")
    gpus = {each.id: each.params["gpus"] for each in cases}
    made = proposal_curve(curve, laws, gpus, {each.id: 3600.0 for each in cases})
    names = [column.name for column in made.columns]
    return made, [dict(zip(names, row, strict=True)) for row in made.rows]


def test_strong_scaling_of_a_rate_has_measured_and_predicted_efficiency_and_hours():
    # a second of work that is shared by the GPUs, and 0.1 s that is not
    made, rows = block([case(1000 / (0.1 + 0.9 / gpus), gpus=gpus) for gpus in GPUS])
    assert [(row["param.gpus"], row["source"]) for row in rows[-3:]] == [
        (16, "measured"), (32, "predicted"), (64, "predicted"),
    ]  # fmt: skip
    assert rows[-1]["efficiency_pct"] == pytest.approx(100 / (0.1 + 0.9 / 64) / 64, rel=0.01)
    assert rows[-1]["speedup"] == pytest.approx(1 / (0.1 + 0.9 / 64), rel=0.01)
    assert rows[0]["gpu_hours"] == pytest.approx(1e6 / 1000 / 3600)
    assert rows[-1]["gpu_hours"] == pytest.approx(64 * 1e6 * (0.1 + 0.9 / 64) / 1000 / 3600, rel=0.01)
    assert made.title == "efficiency of strong scaling, speed (predicted from gpus=32 on)"


@pytest.mark.parametrize(("kind", "time_s"), [("strong", lambda n: 1 + 9 / n), ("weak", lambda n: 9 + n**0.5)])
def test_the_efficiency_of_a_time_is_that_of_the_scaling_table(kind, time_s):
    _, rows = block([case(time_s(gpus), unit="s", gpus=gpus) for gpus in GPUS], kind=kind)
    work = 64 if kind == "strong" else 1
    assert rows[-1]["efficiency_pct"] == pytest.approx(100 * time_s(1) / time_s(64) / work, rel=0.02)
    assert rows[1]["gpu_hours"] == 2  # of a run of an hour
    assert rows[-1]["gpu_hours"] is None


def test_the_range_of_a_time_is_of_its_worst_run_beside_the_best_of_the_base():
    def timed(gpus, median, least, most):
        return case(None, others=[Figure("speed", "s", "baseline", False, median, least, most, 3)], gpus=gpus)

    _, rows = block([timed(1, 100.0, 90.0, 100.0), timed(2, 50.0, 50.0, 100.0)])
    assert rows[1]["efficiency_range"] == pytest.approx((45.0, 100.0))


def test_three_values_of_one_run_each_have_no_predicted_points():
    made, rows = block([case(1000 / (0.1 + 0.9 / gpus), gpus=gpus) for gpus in (1, 2, 4)], repeats=1)
    assert {row["source"] for row in rows} == {"measured"}
    assert "predicted" not in made.title
