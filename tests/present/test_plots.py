"""Plots: marks where the block's numbers are, nothing that a page's policy forbids, every name harmless."""

import re
from xml.etree import ElementTree as ET

import pytest

from nsw.analysis.blocks import (
    Bars,
    Ceiling,
    Column,
    Curve,
    Evidence,
    HeatMap,
    Intervals,
    Lanes,
    Scatter,
    StackedBars,
    Table,
    Waterfall,
)  # fmt: skip
from nsw.present.plots import svg_of
from nsw.present.svg import linear_axis, logarithmic_axis, spread_labels

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\x1b[31m\u202e\ufffe\"' onload=x"


def parsed(block):
    made = svg_of(block)
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
    axis = linear_axis(0, 50_110, 300, 0)
    assert axis.labels == ["0", "10,000", "20,000", "30,000", "40,000", "50,000", "60,000"]
    assert linear_axis(0, 3.4e6, 0, 100, unit="ns").title("time") == "time (ms)"
    assert logarithmic_axis(3, 700, 0, 100).labels == ["2", "5", "10", "20", "50", "100", "200", "500", "1,000"]


def test_labels_are_spread_out_and_keep_their_order():
    assert spread_labels([10, 11, 12, 90], 15, 0, 100) == [10, 25, 40, 90]
    assert spread_labels([98, 99], 15, 0, 100) == [85, 100]


def table(kind, columns, rows, **parts):
    return kind("block", "a title", columns, rows, **parts)


def test_bars_begin_at_zero_and_are_as_long_as_their_values():
    columns = (Column("param.n", "n", "plain"), Column("variant", "variant"), Column("figure", "GB/s", "number"))
    rows = ((1, "slow", 20.0), (1, "fast", 75.0), (2, "slow", 31.0), (2, "none", None))
    root = parsed(table(Bars, columns, rows, label="variant", value="figure"))
    at = ticks(root, "middle")
    assert at[0][0] == 0
    for row, (bar,) in marks(root).items():
        assert float(bar.get("x")) == pytest.approx(at[0][1], abs=0.5)
        assert float(bar.get("x")) + float(bar.get("width")) == pytest.approx(through(at, rows[row][2], float), abs=0.5)
    assert {"n 1, slow", "n 2, slow"} <= set(texts(root))
    assert svg_of(table(Bars, columns, rows[:1], label="variant", value="figure")) is None


def test_stacked_bars_add_up_and_tell_their_parts_apart_without_colour():
    columns = (Column("case", "case", "name"), Column("class.GEMM", "GEMM", "ns"), Column("nccl_ns", "NCCL alone", "ns"),
               Column("idle_ns", "idle", "ns"))  # fmt: skip
    rows = (("a", 2e6, 1e6, 3e6), ("b", 4e6, 0.0, 1e6))
    root = parsed(table(StackedBars, columns, rows, label="case", values=("class.GEMM", "nccl_ns", "idle_ns")))
    at = ticks(root, "middle")
    assert "time (ms)" in texts(root)
    for row, parts in marks(root).items():
        end = 0.0
        for part, value in zip(parts, [value for value in rows[row][1:] if value], strict=True):
            assert float(part.get("x")) == pytest.approx(through(at, end, float), abs=0.5)
            end += value / 1e6
        assert float(parts[-1].get("x")) + float(parts[-1].get("width")) == pytest.approx(
            through(at, end, float), abs=0.5
        )
    hatched = [node for node in root.iter(f"{SVG}path") if node.get("class") == "upon"]
    assert len(hatched) >= 2, "NCCL in the legend and in its bar"
    assert {"50 %", "80 %", "20 %"} <= set(texts(root))


def test_of_many_bars_the_first_are_drawn_and_the_others_counted():
    columns = (Column("case", "case", "name"), Column("a_ns", "a", "ns"), Column("idle_ns", "idle", "ns"))
    rows = tuple((f"n-{n}", 1e6, 1e6) for n in range(1000))
    root = parsed(table(StackedBars, columns, rows, label="case", values=("a_ns", "idle_ns")))
    assert len(marks(root)) == 40
    assert "960 more rows: see the table" in texts(root)


def test_ratios_stand_beside_one_with_their_intervals():
    columns = (Column("what", "case", "name"), Column("ratio", "B over A", "times"), Column("between", "between", "range"),
               Column("verdict", "verdict"))  # fmt: skip
    rows = (("a", 1.2, (1.1, 1.3), "faster"), ("b", 1.1, (0.9, 1.4), "cannot tell"))
    parts = {"label": "what", "value": "ratio", "interval": "between", "verdict": "verdict"}
    root = parsed(table(Intervals, columns, rows, **parts))
    at = ticks(root, "middle")
    for row, (x, _) in places(root).items():
        assert x == pytest.approx(through(at, rows[row][1], float), abs=0.5)
    assert [some[0].get("class") for _, some in sorted(marks(root).items())] == ["s1", "s8"]
    one = [node for node in root.iter(f"{SVG}line") if node.get("class") == "axis" and node.get("x1") == node.get("x2")]
    assert float(one[0].get("x1")) == pytest.approx(through(at, 1.0, float), abs=0.5)
    assert "B over A (from 0.9)" in texts(root)


def test_a_waterfall_leads_from_one_whole_to_the_other():
    columns = (Column("what", "part", "name"), Column("from", "from", "ns"), Column("to", "to", "ns"))
    rows = (("before", 0.0, 10e6), ("gone", 10e6, 9e6), ("new", 9e6, 9.5e6), ("after", 0.0, 9.5e6))
    root = parsed(table(Waterfall, columns, rows, label="what", start="from", end="to"))
    at = ticks(root, "middle")
    for row in (1, 2):
        (bar,) = [node for node in marks(root)[row] if node.tag == f"{SVG}rect"]
        low, high = sorted(rows[row][1:])
        assert float(bar.get("x")) == pytest.approx(through(at, low / 1e6, float), abs=0.5)
        assert float(bar.get("width")) == pytest.approx(
            through(at, high / 1e6, float) - through(at, low / 1e6, float), abs=0.5
        )
    assert {"\N{MINUS SIGN}1.000 ms", "+500.0 us", "time (ms, from 8)"} <= set(texts(root))


def test_fields_of_a_heat_map_are_darker_the_larger_their_value_in_the_order_of_their_parameters():
    columns = (Column("param.b", "b", "plain"), Column("param.n", "n", "plain"), Column("v", "efficiency", "%"))
    rows = tuple((b, n, 10.0 * n + b) for b in (16, 8) for n in (1, 4, 2))
    root = parsed(table(HeatMap, columns, rows, x="param.n", y="param.b", value="v"))
    fields = {row: some[0] for row, some in marks(root).items()}
    assert len(fields) == 6
    by_value = sorted(fields, key=lambda row: rows[row][2])
    shades = [float(fields[row].get("fill-opacity")) for row in by_value]
    assert shades == sorted(shades)
    across = sorted({(rows[row][1], float(field.get("x"))) for row, field in fields.items()})
    up = sorted({(rows[row][0], -float(field.get("y"))) for row, field in fields.items()})
    assert [x for _, x in across] == sorted(x for _, x in across)
    assert [y for _, y in up] == sorted(y for _, y in up)
    assert len(across) == 3 and len(up) == 2  # noqa: PT018
    assert svg_of(table(HeatMap, columns, rows[:3], x="param.n", y="param.b", value="v")) is None


def test_points_of_a_roofline_are_under_their_roofs():
    from math import log

    columns = (Column("kernel", "kernel", "name"), Column("level", "level"), Column("x", "FLOP/byte", "number"),
               Column("y", "reached", "FLOP/s"), Column("share", "of the time", "%"))  # fmt: skip
    rows = ((HOSTILE, "DRAM", 0.5, 1e12, 90.0), ("b", "L2", 8.0, 2e13, 10.0))
    roofs = (Ceiling("FP32", 6e13, None), Ceiling("FP32", 5.9e13, None), Ceiling("DRAM", None, 3e12))
    root = parsed(
        table(Scatter, columns, rows, x="x", y="y", label="kernel", series=("level",), size=("share",), ceilings=roofs)
    )
    for row, (x, y) in places(root).items():
        assert x == pytest.approx(through(ticks(root, "middle"), rows[row][2], log), abs=0.5)
        assert y == pytest.approx(through(ticks(root, "end"), rows[row][3] / 1e12, log), abs=0.5)
    flat = [node for node in root.iter(f"{SVG}line") if node.get("class") == "ceiling"]
    assert [float(node.get("y1")) for node in flat] == pytest.approx(
        [through(ticks(root, "end"), 60.0, log)], abs=0.5
    ), "the highest of a name alone"
    assert len([node for node in root.iter(f"{SVG}path") if node.get("class") == "ceiling"]) == 1


def test_a_series_is_named_by_the_cells_that_are_not_empty():
    columns = (Column("kernel", "kernel", "name"), Column("precision", "precision"), Column("level", "level"),
               Column("x", "FLOP/byte", "number"), Column("y", "reached", "FLOP/s"))  # fmt: skip
    rows = (("a", "FP32", "DRAM", 0.5, 1e12), ("b", "", "DRAM", 8.0, 2e13))
    drawn = table(Scatter, columns, rows, x="x", y="y", label="kernel", series=("precision", "level"))
    assert {"FP32, DRAM", "DRAM"} <= set(texts(parsed(drawn)))


def test_boxes_of_a_timeline_are_where_their_times_are():
    columns = (Column("process", "process"), Column("lane", "stream"), Column("start", "start", "ns"),
               Column("length", "duration", "ns"), Column("name", "what", "name"), Column("class", "class"))  # fmt: skip
    rows = (("rank 0", "NVTX", 0.0, 4e6, HOSTILE, "NVTX"), ("rank 0", "stream 7", 1e6, 2e6, "gemm", "GEMM"),
            ("rank 1", "stream 7", 2.5e6, 5e5, "ncclDevKernel", "NCCL"))  # fmt: skip
    parts = {"lane": ("process", "lane"), "start": "start", "length": "length", "label": "name", "series": ("class",)}
    root = parsed(table(Lanes, columns, rows, **parts))
    at = ticks(root, "middle")
    for row, (box,) in marks(root).items():
        assert float(box.get("x")) == pytest.approx(through(at, rows[row][2] / 1e6, float), abs=0.5)
        assert float(box.get("width")) == pytest.approx(through(at, rows[row][3] / 1e6, float) - at[0][1], abs=0.5)
    assert {"rank 0", "rank 1", "NVTX", "stream 7", "GEMM", "NCCL"} <= set(texts(root))
    assert len({box.get("y") for (box,) in marks(root).values()}) == 3


def test_a_plain_table_has_no_picture():
    assert svg_of(Table("t", "t", (Column("a", "a"),), (("x",), ("y",)))) is None


def test_everything_is_within_the_picture():
    root = parsed(scaling(names=("a" * 60, "b")))
    width = float(root.get("viewBox").split()[2])
    for node in root.iter(f"{SVG}text"):
        assert 0 <= float(node.get("x")) <= width
        assert 0 <= float(node.get("y")) <= float(root.get("height"))
