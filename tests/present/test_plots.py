"""Plots: marks where the block's numbers are, nothing that a page's policy forbids, every name harmless."""

import re
from xml.etree import ElementTree as ET

import pytest

from nsw.analysis.blocks import Column, Curve, Evidence
from nsw.present.plots import svg_of
from nsw.present.svg import linear, logarithmic, spread_out

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\x1b[31m\u202e\ufffe\"' onload=x"


def parsed(block, **how):
    made = svg_of(block, **how)
    assert made is not None
    root = ET.fromstring(made)
    assert_allowed(root)
    return root


def assert_allowed(root):
    """What the contract with a page allows."""
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    classes = {*(f"s{n}" for n in range(1, 9)), "axis", "grid", "label", "ceiling", "upon"}
    for node in root.iter():
        assert node.tag.removeprefix(SVG) in {
            "svg", "title", "desc", "text", "line", "path", "rect", "circle", "g",
        }  # fmt: skip
        names = set(node.attrib)
        assert not {name for name in names if name == "style" or name.startswith("on") or "href" in name}, names
        assert not any("url(" in value or "javascript" in value for value in node.attrib.values())
        if {node.get("fill"), node.get("stroke")} - {None, "none"}:
            assert node.get("class") in classes, node.attrib


def texts(root):
    return [node.text or "" for node in root.iter(f"{SVG}text")]


def marks(root, **attributes):
    """The marks of each row."""
    found = {}
    for node in root.iter():
        if node.get("data-row") is not None and all(node.get(k) == v for k, v in attributes.items()):
            found.setdefault(int(node.get("data-row")), []).append(node)
    return found


def places(root):
    """Where the point of each row is."""
    return {
        row: (float(some[0].get("data-x")), float(some[0].get("data-y"))) for row, some in marks(root).items()
    }  # fmt: skip


def ticks(root, anchor):
    """The ticks of an axis: value and px."""
    found = []
    for node in root.iter(f"{SVG}text"):
        if node.get("text-anchor") == anchor and re.fullmatch(r"-?[\d,.]+", node.text or ""):
            px = float(node.get("x")) if anchor == "middle" else float(node.get("y")) - 4
            found.append((float(node.text.replace(",", "")), px))
    return found


def scaling(xs=(1, 2, 4), ys=(10.0, 18.0, 30.0), *, ranges=None, ideals=(), names=("a",)):
    columns = (Column("param.net", "net"), Column("param.gpus", "gpus", "plain"), Column("figure", "images/s", "number"),
               Column("range", "range", "range"))  # fmt: skip
    rows = tuple(
        (name, x, y * (n + 1), ranges[at] if ranges else None)
        for n, name in enumerate(names) for at, (x, y) in enumerate(zip(xs, ys, strict=True))
    )  # fmt: skip
    return Curve(
        "scaling", "weak scaling", columns, rows, x="param.gpus", y="figure", series=("param.net",), ideals=ideals,
        evidence=(Evidence("scaling", tuple(f"case-{n}" for n in range(len(rows)))),),
    )  # fmt: skip


def through(ticks, value, scale):
    """Where a value is by the first and the last tick."""
    (low, a), (high, b) = ticks[0], ticks[-1]
    return a + (scale(value) - scale(low)) / (scale(high) - scale(low)) * (b - a)


def test_points_are_where_the_ticks_say():
    block = scaling(names=("a", "b"))
    root = parsed(block)
    for row, (x, y) in places(root).items():
        assert abs(x - through(ticks(root, "middle"), block.rows[row][1], float)) < 0.5
        assert abs(y - through(ticks(root, "end"), block.rows[row][2], float)) < 0.5
    assert len(places(root)) == 6


def test_points_of_many_doublings_are_on_logarithmic_axes():
    from math import log

    block = scaling(xs=(1, 2, 8, 64), ys=(3.0, 5.0, 20.0, 100.0), ideals=(3.0, 6.0, 24.0, 192.0))
    root = parsed(block)
    for row, (x, y) in places(root).items():
        assert abs(x - through(ticks(root, "middle"), block.rows[row][1], log)) < 0.5
        assert abs(y - through(ticks(root, "end"), block.rows[row][2], log)) < 0.5
    assert {"gpus (log, from 1)", "images/s (log, from 2)"} <= set(texts(root))


def test_the_ideal_and_the_ranges_are_drawn_and_explained():
    root = parsed(scaling(ranges=[(9.0, 11.0), (17.0, 19.0), (29.0, 31.0)], ideals=(10.0, 20.0, 40.0)))
    dotted = [node.get("d") for node in root.iter(f"{SVG}path") if node.get("stroke-dasharray") == "2 4"]
    upright = [through(ticks(root, "end"), value, float) for value in (10.0, 20.0, 40.0)]
    (drawn,) = dotted
    assert [float(pair.split()[1]) for pair in drawn[1:].split("L")] == pytest.approx(upright, abs=0.5)
    ends = {round(through(ticks(root, "end"), value, float), 1) for value in (9.0, 11.0)}
    lines = [node.get("d") for node in root.iter(f"{SVG}path")]
    assert any(ends <= {round(float(y), 1) for y in re.findall(r" (\d+\.?\d*)", d)} for d in lines)
    assert any("ideal" in said and "least to most" in said for said in texts(root))


def test_a_mark_says_its_row_with_units_and_source():
    (mark,) = marks(parsed(scaling()))[1]
    said = mark.find(f"{SVG}title").text
    assert said.splitlines() == ["net: a", "gpus: 2", "images/s: 18.00", "source: table scaling of case-1"]


def test_one_point_is_no_plot():
    assert svg_of(scaling(xs=(1,), ys=(3.0,))) is None
    assert svg_of(scaling(xs=(1, 2), ys=(3.0, float("nan")))) is None
    assert svg_of(scaling(xs=(), ys=())) is None


def test_names_are_harmless_and_cut_to_their_room():
    made = svg_of(scaling(names=(HOSTILE, "long" * 40)))
    assert "<script" not in made
    assert "\x1b" not in made
    assert "\u202e" not in made
    root = ET.fromstring(made)
    assert_allowed(root)
    (cut,) = [node for node in root.iter(f"{SVG}text") if (node.text or "").startswith("net long")]
    assert cut.text.endswith("…")
    assert cut.find(f"{SVG}title").text == "net " + "long" * 40


def test_ticks_are_round_and_begin_at_zero():
    axis = linear(0, 50_110, 300, 0)
    assert axis.labels == ["0", "10,000", "20,000", "30,000", "40,000", "50,000", "60,000"]
    assert linear(0, 3.4e6, 0, 100, unit="ns").title("time") == "time (ms)"
    assert logarithmic(3, 700, 0, 100).labels == ["2", "5", "10", "20", "50", "100", "200", "500", "1,000"]


def test_labels_are_spread_out_and_keep_their_order():
    assert spread_out([10, 11, 12, 90], 15, 0, 100) == [10, 25, 40, 90]
    assert spread_out([98, 99], 15, 0, 100) == [85, 100]
