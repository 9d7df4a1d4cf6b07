"""What is chosen of a plot in a real Chromium: points of a roofline, figures and metrics of heat maps."""

from __future__ import annotations

import pytest

from nsw.analysis.blocks import Ceiling, Column, Evidence, HeatMap, Scatter
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


FIELDS = (
    Column("param.net", "net"), Column("param.n", "n", "plain"), Column("figure.speed", "speed (1/s)", "number"),
    Column("range.speed", "range", "range"), Column("figure.took", "took", "ns"),
)  # fmt: skip
MAP = tuple(
    (net, n, 10.0 * n + at, (10.0 * n, 11.0 * n), None if (net, n) == ("a", 4) else (9 - n) * 1e6 + 1e5 * at)
    for at, net in enumerate(("a", "<i>b</i>")) for n in (1, 2, 4)
)  # fmt: skip
MAP_SEEN = (
    "const svg = document.querySelector('figure svg'); return [...svg.querySelectorAll('[data-row]')].map(field =>"
    " [Number(field.getAttribute('fill-opacity')), svg.querySelector(`[data-text='${field.dataset.row}'] text`).textContent,"
    " field.querySelector('title').textContent.split('\\n')])"
)


def test_a_heat_map_shows_another_figure_of_its_table(browser, tmp_path):
    block = HeatMap(
        "map", "figures by n and net", FIELDS, MAP, x="param.n", y="param.net", value="figure.speed",
        others=("figure.took",), evidence=(Evidence("figures", tuple(str(n) for n in range(len(MAP)))),),
    )  # fmt: skip
    file = tmp_path / "map.html"
    file.write_text(page("map", [block]))
    browser.open(file)
    before, note = browser.run(MAP_SEEN), "return document.querySelector('[data-note]').textContent"
    assert browser.run(note) == "speed (1/s): from 10.00 to 41.00"
    assert before[0][2] == [
        "net: a",
        "n: 1",
        "speed (1/s): 10.00",
        "range: 10.00 .. 11.00",
        "source: table figures of 0",
    ]
    browser.run(CHOOSE, 0, "1")
    seen = browser.run(MAP_SEEN)
    assert [text for _, text, _ in seen] == ["8.000", "7.000", "-", "8.100", "7.100", "5.100"]
    assert browser.run(note) == "took (ms): from 5.100 to 8.100"
    shades = {row[4] or 0: shade for row, (shade, _, _) in zip(MAP, seen, strict=True)}
    assert [shades[value] for value in sorted(shades)] == sorted(shades.values())
    assert seen[3][2] == ["net: <i>b</i>", "n: 1", "took (ms): 8.100", "source: table figures of 3"]
    browser.run(CHOOSE, 0, "0")
    assert browser.run(MAP_SEEN) == before
    assert browser.console() == []
