"""What is drawn is what the tables say: marks measured in a real Chromium, read through the ticks of their axes."""

from __future__ import annotations

import re
from math import exp, log

import pytest

from nsw.analysis.blocks import (
    Bars,
    Ceiling,
    Column,
    Curve,
    HeatMap,
    Intervals,
    Lanes,
    Scatter,
    StackedBars,
    Timeline,
    Waterfall,
)  # fmt: skip
from nsw.present.page import page

NEAR = 1.0  # px: half a line's width, and a triangle's middle
UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "GFLOP/s": 1e9, "TFLOP/s": 1e12}
FIGURE = """
    const figure = document.querySelectorAll('figure')[arguments[0]], svg = figure.querySelector('svg');
    const box = (part) => { const {x, y, width, height} = part.getBBox(); return [x, y, x + width, y + height]; };
    const table = document.querySelector(figure.querySelector('figcaption a').hash + ' table');
    const cells = (row) => [...row.cells].map(cell => cell.textContent);
    return {
      texts: [...svg.querySelectorAll('text')].map(text => ({text: text.textContent, box: box(text), turned:
        text.hasAttribute('transform'), anchor: text.getAttribute('text-anchor')})),
      marks: [...svg.querySelectorAll('[data-row]')].map(mark => ({row: Number(mark.dataset.row), box: box(mark),
        shade: Number(mark.getAttribute('fill-opacity'))})),
      whiskers: [...svg.querySelectorAll('path:not([data-row])')].map(path => box(path)),
      heads: cells(table.tHead.rows[0]), rows: [...table.tBodies[0].rows].map(cells),
    };
"""  # fmt: skip


class Drawn:
    """A plot as Chromium drew it, and the table behind it."""

    def __init__(self, found):
        self.texts, self.marks, self.whiskers = found["texts"], found["marks"], found["whiskers"]
        self.heads, self.rows = found["heads"], found["rows"]

    def cell(self, row, head):
        """A number of the table in the unit that all have: ns, FLOP/s."""
        at = next(n for n, title in enumerate(self.heads) if title.partition(" (")[0] == head)
        return number(self.rows[row][at]) * UNITS.get(unit_of(self.heads[at]), 1.0)

    def text(self, row, head):
        return self.rows[row][next(n for n, title in enumerate(self.heads) if title.partition(" (")[0] == head)]

    def across(self, px):
        """The value at a place of the axis below."""
        title = max((text for text in self.texts if not text["turned"]), key=lambda text: text["box"][3])
        low = [text for text in self.texts if text["anchor"] == "middle" and is_number(text["text"])]
        below = max(text["box"][3] for text in low)
        ticks = [(number(text["text"]), middle(text["box"])[0]) for text in low if text["box"][3] == below]
        return through(ticks, px, title["text"])

    def up(self, px):
        """The value at a place of the axis at the left; ticks are a little above the middle of their text's box."""
        title = next(text for text in self.texts if text["turned"])
        left = [text for text in self.texts if text["anchor"] == "end" and is_number(text["text"])]
        return through([(number(text["text"]), middle(text["box"])[1] - 0.5) for text in left], px, title["text"])


def through(ticks, px, title):
    """The value at a place between (or beyond) the first and the last tick, and how much a px is there."""
    scale, back = (log, exp) if "log" in title else (float, float)
    (low, a), (high, b) = ticks[0], ticks[-1]
    at = [back(scale(low) + (place - a) / (b - a) * (scale(high) - scale(low))) for place in (px, px + NEAR)]
    unit = UNITS.get(unit_of(title), 1.0)
    return at[0] * unit, abs(at[1] - at[0]) * unit


def unit_of(title):
    """What is in the brackets behind a title, but how its axis runs."""
    found = re.search(r"\(([^)]*)\)$", title)
    return found[1].split(",")[0] if found else ""


def is_number(text):
    return re.fullmatch(r"-?[\d,.]+", text) is not None


def number(text):
    return float(re.match(r"-?[\d,.]+", text)[0].replace(",", ""))


def middle(box):
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def same(found, cell):
    value, px = found
    assert value == pytest.approx(cell, abs=1.5 * px, rel=0.001)


BLOCKS = {
    "curve": Curve(
        "curve", "curve", (Column("net", "net"), Column("gpus", "gpus", "plain"), Column("speed", "images/s", "number")),
        (("a", 1, 2543.0), ("a", 2, 4210.5), ("a", 4, 6790.25), ("b", 1, 8856.0), ("b", 2, 16650.7), ("b", 4, 25702.6)),
        x="gpus", y="speed", series=("net",),
    ),
    "wide curve": Curve(
        "curve", "wide curve", (Column("n", "n", "plain"), Column("took", "took", "ns")),
        ((16, 2_543.0), (256, 42_105.0), (4096, 679_025.0), (65536, 11_330_000.0)), x="n", y="took",
    ),
    "bars": Bars(
        "bars", "bars", (Column("variant", "variant"), Column("took", "took", "ns")),
        (("slow", 7.3e6), ("fast", 1.25e6), ("middle", 3.9e6)), label="variant", value="took",
    ),
    "stacked bars": StackedBars(
        "stacked", "stacked bars",
        (Column("case", "case", "name"), Column("gemm", "GEMM", "ns"), Column("nccl_ns", "NCCL", "ns"), Column("idle_ns", "idle", "ns")),
        (("a", 2.1e6, 1.3e6, 3.7e6), ("b", 4.4e6, 0.9e6, 1.2e6)), label="case", values=("gemm", "nccl_ns", "idle_ns"),
    ),
    "timeline": Timeline(
        "phases", "phases", (Column("phase", "phase"), Column("took", "took", "ns")),
        (("set-up", 5.3e8), ("warm-up", 2.2e8), ("steady", 1.9e9)), label="phase", length="took",
    ),
    "intervals": Intervals(
        "intervals", "intervals",
        (Column("what", "case", "name"), Column("ratio", "ratio", "times"), Column("between", "between", "range"), Column("verdict", "verdict")),
        (("a", 1.21, (1.11, 1.32), "faster"), ("b", 1.04, (0.92, 1.18), "cannot tell")),
        label="what", value="ratio", interval="between", verdict="verdict",
    ),
    "waterfall": Waterfall(
        "waterfall", "waterfall", (Column("what", "part", "name"), Column("from", "from", "ns"), Column("to", "to", "ns")),
        (("before", 0.0, 10.3e6), ("gone", 10.3e6, 4.1e6), ("new", 4.1e6, 6.6e6), ("after", 0.0, 6.6e6)),
        label="what", start="from", end="to",
    ),
    "heat map": HeatMap(
        "map", "heat map", (Column("net", "net"), Column("n", "n", "plain"), Column("share", "share", "%")),
        tuple((net, n, share) for net, shares in (("a", (12.5, 50.0, 99.0)), ("b", (33.0, 4.5, 71.25)))
              for n, share in zip((1, 2, 8), shares, strict=True)),
        x="n", y="net", value="share",
    ),
    "roofline": Scatter(
        "roofline", "roofline",
        (Column("kernel", "kernel", "name"), Column("level", "level"), Column("x", "FLOP/byte", "number"), Column("y", "reached", "FLOP/s")),
        (("gemm", "DRAM", 12.5, 2.1e13), ("gemm", "L2", 3.7, 2.1e13), ("copy", "DRAM", 0.32, 0.9e12), ("copy", "L2", 0.11, 0.9e12)),
        x="x", y="y", label="kernel", series=("level",), ceilings=(Ceiling("FP32", 6e13, None), Ceiling("DRAM", None, 3e12)),
    ),
    "lanes": Lanes(
        "lanes", "lanes",
        (Column("process", "process"), Column("lane", "stream"), Column("start", "start", "ns"), Column("length", "duration", "ns"),
         Column("name", "what", "name"), Column("class", "class")),
        (("rank 0", "NVTX", 0.0, 4.3e6, "step", "NVTX"), ("rank 0", "stream 7", 1.1e6, 2.2e6, "gemm", "GEMM"),
         ("rank 1", "stream 9", 2.6e6, 1.05e6, "all reduce", "NCCL")),
        lane=("process", "lane"), start="start", length="length", label="name", series=("class",),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    made = tmp_path_factory.mktemp("plots") / "plots.html"
    made.write_text(page("plots", BLOCKS.values()))
    return made


@pytest.fixture
def drawn(browser, file):
    def of(name):
        browser.resize(1000)
        browser.open(file)
        found = Drawn(browser.run(FIGURE, list(BLOCKS).index(name)))
        assert found.rows
        assert {mark["row"] for mark in found.marks} == set(range(len(found.rows))), "each row is drawn"
        return found

    return of


def points(plot, x, y):
    for mark in plot.marks:
        across, up = middle(mark["box"])
        same(plot.across(across), plot.cell(mark["row"], x))
        same(plot.up(up), plot.cell(mark["row"], y))


def stacks(plot, heads):
    for row in range(len(plot.rows)):
        end, parts = 0.0, [mark for mark in plot.marks if mark["row"] == row]
        for mark, head in zip(parts, (head for head in heads if plot.cell(row, head)), strict=True):
            same(plot.across(mark["box"][0]), end)
            end += plot.cell(row, head)
            same(plot.across(mark["box"][2]), end)


def ratios(plot, ratio):
    for mark in plot.marks:
        across, up = middle(mark["box"])
        same(plot.across(across), plot.cell(mark["row"], ratio))
        beside = [box for box in plot.whiskers if abs(middle(box)[1] - up) < NEAR]
        ends = [number(part) for part in plot.text(mark["row"], "between").split(" .. ")]
        same(plot.across(min(box[0] for box in beside)), ends[0])
        same(plot.across(max(box[2] for box in beside)), ends[1])


def steps(plot):
    start = plot.across(min(mark["box"][0] for mark in plot.marks))[0]  # an axis may begin above zero
    for mark in plot.marks:
        low, high = sorted(plot.cell(mark["row"], head) for head in ("from", "to"))
        same(plot.across(mark["box"][0]), max(low, start))
        same(plot.across(mark["box"][2]), high)


def fields(plot, value, x, y):
    shades = []
    for mark in plot.marks:
        (inside,) = (text["text"] for text in plot.texts if within(middle(text["box"]), mark["box"]))
        assert inside.removesuffix(" %") == plot.text(mark["row"], value)
        across, up = middle(mark["box"])
        assert plot.text(mark["row"], x) in texts_at(plot, 0, across)
        assert plot.text(mark["row"], y) in texts_at(plot, 1, up)
        shades.append((plot.cell(mark["row"], value), mark["shade"]))
    assert [shade for _, shade in sorted(shades)] == sorted(shade for _, shade in shades)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [("curve", "gpus", "images/s"), ("wide curve", "n", "took"), ("roofline", "FLOP/byte", "reached")],
)
def test_points_of_curves_and_rooflines(drawn, name, x, y):
    points(drawn(name), x, y)


def test_lengths_of_bars(drawn):
    plot = drawn("bars")
    for mark in plot.marks:
        same(plot.across(mark["box"][0]), 0.0)
        same(plot.across(mark["box"][2]), plot.cell(mark["row"], "took"))


def test_parts_of_stacked_bars(drawn):
    stacks(drawn("stacked bars"), ("GEMM", "NCCL", "idle"))


def test_stretches_of_a_timeline(drawn):
    plot, end = drawn("timeline"), 0.0
    for mark in plot.marks:
        same(plot.across(mark["box"][0]), end)
        end += plot.cell(mark["row"], "took")
        same(plot.across(mark["box"][2]), end)


def test_ratios_and_their_intervals(drawn):
    ratios(drawn("intervals"), "ratio")


def test_steps_of_a_waterfall(drawn):
    steps(drawn("waterfall"))


def test_fields_of_a_heat_map(drawn):
    fields(drawn("heat map"), "share", x="n", y="net")


def test_boxes_of_lanes(drawn):
    plot = drawn("lanes")
    for mark in plot.marks:
        start = plot.cell(mark["row"], "start")
        same(plot.across(mark["box"][0]), start)
        same(plot.across(mark["box"][2]), start + plot.cell(mark["row"], "duration"))
        assert plot.text(mark["row"], "stream") in texts_at(plot, 1, middle(mark["box"])[1])


def test_plots_of_the_demo(browser, demo):
    browser.open(demo)
    curve, efficiency, parts, speed = (Drawn(browser.run(FIGURE, at)) for at in range(4))
    points(curve, "gpus", "images_per_sec")
    fields(efficiency, "efficiency", x="gpus", y="batch")
    stacks(parts, [head.partition(" (")[0] for head in parts.heads[1:]])
    fields(speed, "images_per_sec", x="batch", y="gpus")
    assert [len(plot.marks) >= 12 for plot in (curve, efficiency, parts, speed)] == [True] * 4


def test_plots_of_a_comparison(browser, comparison):
    browser.open(comparison)
    intervals, *waterfalls = (Drawn(browser.run(FIGURE, at)) for at in range(4))
    ratios(intervals, "gpus=4: times as fast as gpus=1")
    for waterfall in waterfalls:
        steps(waterfall)
        assert len(waterfall.marks) == len(waterfall.rows) > 5


def within(place, box):
    return box[0] <= place[0] <= box[2] and box[1] <= place[1] <= box[3]


def texts_at(plot, side, place):
    """The texts whose middle is there, within 3 px: across (0) or up (1)."""
    return [text["text"] for text in plot.texts if abs(middle(text["box"])[side] - place) < 3]
