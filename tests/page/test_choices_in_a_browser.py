"""What is chosen of a plot in a real Chromium: points of a roofline, figures and metrics of heat maps."""

from __future__ import annotations

import pytest

from nsw.analysis.blocks import Ceiling, Column, Evidence, Scatter
from nsw.present.page import page

ROOFLINE = (
    Column("kernel", "kernel", "name"), Column("precision", "precision"), Column("level", "level"),
    Column("intensity", "FLOP/byte", "number"), Column("flop_per_s", "reached", "FLOP/s"),
    Column("share_pct", "of the roof", "%"), Column("side", "limited by"), Column("time_pct", "of the time", "%"),
)  # fmt: skip
POINTS = tuple(
    (kernel, precision, level, 0.2 * factor * spread, 1e12 * spread, 10.0 * spread, side, share)
    for kernel, spread, side, share in (("gemm", 3.0, "compute", 80.0), ("<b>copy</b>", 1.0, "memory", 15.0))
    for precision in ("FP32", "FP16")
    for level, factor in (("DRAM", 10.0), ("L2", 2.0), ("L1", 0.5))
)
ROOFS = (
    Ceiling("FP32", 6e13, None), Ceiling("FP16", 1.2e14, None), Ceiling("DRAM", None, 3e12), Ceiling("L2", None, 1e13),
    Ceiling("L1", None, 1e14),
)  # fmt: skip
CHOOSE = (
    "const list = document.querySelectorAll('figure select')[arguments[0]];"
    "list.value = arguments[1]; list.dispatchEvent(new Event('change'));"
)
SEEN = (
    "const seen = (what) => [...document.querySelectorAll('figure svg ' + what)]"
    ".filter(part => !part.closest('[display]'));"
)


@pytest.fixture(scope="module")
def rooflines(tmp_path_factory):
    block = Scatter(
        "roofline", "rooflines", ROOFLINE, POINTS, x="intensity", y="flop_per_s", label="kernel",
        series=("precision", "level"), size=("time_pct",), ceilings=ROOFS, evidence=(Evidence("roofline"),),
    )  # fmt: skip
    file = tmp_path_factory.mktemp("roofline") / "roofline.html"
    file.write_text(page("rooflines", [block]))
    return file


@pytest.fixture
def roofline(browser, rooflines):
    browser.resize(1000)
    browser.open(rooflines)
    return browser


def points(browser):
    """The rows of the points that are seen."""
    rows = browser.run(SEEN + "return seen('[data-row]').map(mark => Number(mark.dataset.row))")
    return [POINTS[n] for n in sorted(rows)]


def roofs(browser):
    return set(browser.run(SEEN + "return seen('[data-roof]').map(roof => roof.dataset.roof)"))


def names(browser):
    """The names beside points."""
    return set(
        browser.run(SEEN + "return seen('[data-name] text, svg > g:last-child text').map(name => name.textContent)")
    )


def test_a_roofline_shows_a_memory_level_and_a_precision(roofline):
    assert len(points(roofline)) == len(POINTS)
    assert roofs(roofline) == {"FP32", "FP16", "DRAM", "L2", "L1"}
    before = names(roofline)
    roofline.run(CHOOSE, 1, "L2")
    assert points(roofline) == [row for row in POINTS if row[2] == "L2"]
    assert roofs(roofline) == {"FP32", "FP16", "L2"}
    roofline.run(CHOOSE, 0, "FP16")
    assert points(roofline) == [row for row in POINTS if row[1:3] == ("FP16", "L2")]
    assert roofs(roofline) == {"FP16", "L2"}
    assert names(roofline) == {"gemm", "<b>copy</b>"}
    assert roofline.run("return document.querySelector('figure [role=status]').textContent") == "2 of 12 points"
    roofline.run(CHOOSE, 0, "")
    roofline.run(CHOOSE, 1, "")
    assert len(points(roofline)) == len(POINTS)
    assert names(roofline) == before
    assert roofline.console() == []


def test_a_flat_roof_begins_at_the_slope_that_is_seen(roofline):
    begin = "return document.querySelector('[data-roof=FP32] line').x1.baseVal.value"
    whole = roofline.run(begin)
    roofline.run(CHOOSE, 1, "DRAM")
    end = roofline.run(
        "const path = document.querySelector('[data-roof=DRAM] path'), y = document.querySelector('[data-roof=FP32] line')"
        ".y1.baseVal.value; for (let at = 0; at < path.getTotalLength(); at += 0.1) {"
        " const point = path.getPointAtLength(at); if (point.y <= y) return point.x; }"
    )
    assert roofline.run(begin) == pytest.approx(end, abs=0.5)
    roofline.run(CHOOSE, 1, "")
    assert roofline.run(begin) == pytest.approx(whole, abs=0.5)


def test_a_roofline_shows_kernels_from_a_share_of_the_time_on(roofline):
    roofline.run(CHOOSE, 2, "20")
    assert points(roofline) == [row for row in POINTS if row[-1] >= 20]
    assert names(roofline) == {"gemm"}


def test_a_point_says_its_limiter_and_its_distance_to_the_roof(roofline):
    said = roofline.run("return document.querySelector('[data-row=\"0\"] title').textContent").split("\n")
    assert {
        "kernel: gemm",
        "level: DRAM",
        "of the roof: 30.0 %",
        "limited by: compute",
        "source: table roofline",
    } <= set(said)
    areas = roofline.run("return [0, 6].map(n => document.querySelector(`[data-row='${n}']`).getBBox().width)")
    assert areas[0] > areas[1], "gemm takes more of the time"
