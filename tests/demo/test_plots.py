"""Plots of the demo: by the commands, for a notebook, and the timeline that a report is read for."""

import importlib.util
from xml.etree import ElementTree as ET

import pytest

import nsw
from tests.present.test_plots import assert_allowed, marks, places, texts, through, ticks


def plot(demo, tmp_path, *words):
    file = tmp_path / "plot.svg"
    demo.nsw("summarize", str(demo.folder), "-o", str(file), *words, exits=0)
    root = ET.parse(file).getroot()
    assert_allowed(root)
    return root


def test_the_first_plot_of_the_demo_is_how_it_scales(demo, tmp_path):
    root = plot(demo, tmp_path)
    frame = nsw.open(demo.folder).answers.scaling
    assert len(places(root)) == len(frame) == 12
    for row, (x, y) in places(root).items():
        assert abs(x - through(ticks(root, "middle"), frame["gpus"][row], float)) < 0.5
        assert abs(y - through(ticks(root, "end"), frame["value"][row], float)) < 0.5
    assert {"batch 8", "batch 128", "dotted: ideal"} <= set(texts(root))


def test_parts_of_an_iteration_add_up_to_it(demo, tmp_path):
    root = plot(demo, tmp_path, "--plot", "time")
    at = ticks(root, "middle")
    medians = {case.id: case.spent.span_ns / 1e6 for case in nsw.open(demo.folder).answers._summary().cases}
    for (_, parts), span in zip(sorted(marks(root).items()), medians.values(), strict=True):
        end = max(float(part.get("x")) + float(part.get("width")) for part in parts)
        assert abs(end - through(at, span, float)) < 0.5


def test_the_timeline_is_read_from_the_report_of_one_case(demo, tmp_path):
    root = plot(demo, tmp_path, "--plot", "timeline", "--case", "gpus=4,batch=8")
    assert {"GPU 0", "GPU 3", "stream 7", "NVTX", "NCCL", "GEMM"} <= set(texts(root))
    assert 300 < len(marks(root)) <= 2_000


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--plot", "tim", "-o", "x.svg"], "there is no plot tim"), (["--plot", "time"], "--plot needs a file"),
     (["--table", "hotspots", "-o", "x.svg"], "--table prints rows")],
)  # fmt: skip
def test_what_is_no_plot_is_refused_with_what_to_do(demo, words, says):
    done = demo.nsw("summarize", str(demo.folder), *words, exits=2)
    assert says in done.stderr
    assert "hint" in done.stderr


@pytest.mark.parametrize("name", ["timeline", None])
def test_reports_without_a_campaign_have_plots_too(demo, tmp_path, name):
    files = sorted(demo.folder.glob("reports/gpus-*_batch-8.*/*.sqlite"))
    chosen, file = (files[-1:] if name else files), tmp_path / "plot.svg"
    demo.nsw("read", *map(str, chosen), "-o", str(file), *(["--plot", name] if name else []), exits=0)
    root = ET.parse(file).getroot()
    assert_allowed(root)
    if name:
        assert {"GPU 0", "GPU 3", "stream 7", "NVTX", "NCCL", "GEMM"} <= set(texts(root))
        same = plot(demo, tmp_path, "--plot", "timeline", "--case", "gpus=4,batch=8")
        assert [mark.attrib for (mark,) in marks(root).values()] == [mark.attrib for (mark,) in marks(same).values()]
    else:
        assert marks(root)


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--plot", "nothing", "-o", "x.svg"], "there is no plot nothing"), (["--plot", "time"], "--plot needs a file"),
     (["--table", "gpu_summary", "-o", "x.svg"], "choose rows, and a plot has none")],
)  # fmt: skip
def test_what_is_no_plot_of_a_report_is_refused(demo, words, says):
    (file,) = demo.folder.glob("reports/gpus-1_batch-8.*/*.sqlite")
    done = demo.nsw("read", str(file), *words, exits=2)
    assert says in done.stderr
    assert "hint" in done.stderr


def test_a_png_needs_its_library_or_is_one(demo, tmp_path):
    file = tmp_path / "plot.png"
    done = demo.nsw("summarize", str(demo.folder), "-o", str(file))
    if importlib.util.find_spec("resvg_py") is None:
        assert done.returncode != 0
        assert "nsw[png]" in done.stderr
    else:
        assert file.read_bytes().startswith(b"\x89PNG")


def test_a_notebook_shows_headline_table_and_plots(demo):
    campaign = nsw.open(demo.folder)
    shown = ET.fromstring(campaign._repr_html_())
    assert shown.find("p/b").text == campaign.answers.headline
    assert len(shown.find("table/tbody").findall("tr")) == 4
    assert len(shown.findall("{http://www.w3.org/2000/svg}svg")) == 4
    compared = nsw.compare(f"{demo.folder}:gpus-1_batch-8", f"{demo.folder}:gpus-4_batch-8")
    shown = ET.fromstring(compared._repr_html_())
    assert shown.find("p/b").text == compared.headline
    (waterfall,) = shown.findall("{http://www.w3.org/2000/svg}svg")
    assert_allowed(waterfall)
    steps = [row[1:] for block in compared._blocks if block.name == "waterfall" for row in block.rows]
    assert [end for _, end in steps[:-2]] == [start for start, _ in steps[1:-1]], "each step begins where one ended"
    assert steps[-1] == (0.0, pytest.approx(steps[-2][1]))
    report = min((demo.folder / "reports").glob("*/*.sqlite"), key=lambda p: p.stat().st_size)
    assert "<svg" in nsw.read(report)._repr_html_()
    assert "1 with errors" in nsw.read(__file__)._repr_html_()
