"""The timeline of an iteration in a real Chromium: all boxes on a canvas, zoomed and moved, and what one says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsw.analysis.iteration_lanes import iteration_lanes
from nsw.present.page import page

from . import browser as browsers

KERNELS = 12_000  # of a rank
LENGTH, STEP = 600, 1_000  # ns
SPAN = KERNELS * STEP
CLASSES = {"own": "own_.*"}
TIP = "const tip = document.querySelector('.tip'); return tip.hidden ? null : tip.textContent.split('\\n')"
HOSTILE = "<img src=x onerror=window.hacked=1>"


def operations(rank):
    """A kernel each STEP, in two streams in turns; every third is a copy, one has a name that is markup."""
    return [
        {"report": f"r{rank}", "rank": rank, "pid": rank + 1, "device": rank, "stream": 7 + 6 * (n % 2),
         "kind": "memcpy" if n % 3 == 0 else "kernel", "name": HOSTILE if n == 7 else f"own_{n}", "short_name": None,
         "start_ns": n * STEP, "duration_ns": LENGTH}
        for n in range(KERNELS)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def lanes():
    steps = [{"report": f"r{rank}", "rank": rank, "pid": rank + 1, "iteration": 3, "phase": "steady", "start_ns": 0,
              "duration_ns": SPAN} for rank in range(4)]  # fmt: skip
    ranges = [{"report": "r0", "rank": 0, "pid": 1, "name": "forward", "start_ns": 0, "duration_ns": SPAN // 2}]
    gpu = [row for rank in range(4) for row in operations(rank)]
    return replace(iteration_lanes("a case", gpu, ranges, steps, classes=CLASSES), case=None)


@pytest.fixture(scope="module")
def file(lanes, tmp_path_factory):
    made = tmp_path_factory.mktemp("timeline") / "timeline.html"
    made.write_text(page("timeline", [lanes]))
    return made


@pytest.fixture
def timeline(browser, file):
    browser.resize(1000)
    browser.colour_scheme("light")
    browser.open(file)
    browser.run("document.querySelector('figure').scrollIntoView()")
    return browser


def area(browser):
    """Where in the window the boxes are: left, top, width; and the lanes' tops."""
    return browser.run(
        "const field = document.querySelector('[data-lanes]'), box = field.getBoundingClientRect();"
        "const scale = box.width / field.width.baseVal.value;"
        "return [box.x, box.width, field.dataset.lanes.split(' ').map(y => box.y + (y - field.y.baseVal.value + 7) * scale)]"
    )


def said(browser, ns, lane, view=(0, SPAN)):
    """What is said where a time is in a lane."""
    left, width, tops = area(browser)
    browser.mouse("Moved", left + (ns - view[0]) / (view[1] - view[0]) * width, tops[lane])
    return browser.run(TIP)


def test_the_picture_has_merged_boxes_and_the_data_all(timeline, lanes):
    assert len(lanes.rows) <= 2_000 < 4 * KERNELS < len(lanes.unmerged) <= 50_000
    assert timeline.run("return document.querySelectorAll('svg [data-row]').length") == len(lanes.rows)
    assert timeline.console() == []


def test_50_000_boxes_keep_the_file_small(file):
    assert file.stat().st_size < 2_000_000


def test_boxes_are_where_their_times_are_and_say_what_they_are(timeline):
    left, width, tops = area(timeline)
    x = int(left + width / 4)
    for _ in range(37):
        timeline.mouse("Wheel", x, tops[1], deltaX=0, deltaY=-100, modifiers=2)
    share, span = (x - left) / width, SPAN / 1.2**37
    view = (share * (SPAN - span), share * (SPAN - span) + span)
    at = 6 * STEP * (view[0] // STEP // 6 + 1)  # a copy in the first stream
    assert said(timeline, at + 300, 1, view=view)[1:] == [
        f"start: {at / 1e6:.6f} ms", "duration: 600 ns", "rank 0, stream 7", "copies",
    ]  # fmt: skip
    assert said(timeline, at + 1_300, 1, view=view) is None, "which is the other stream's"
    colours = timeline.run(
        "const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect();"
        "const [xs, y] = arguments, dots = canvas.width / box.width, context = canvas.getContext('2d');"
        "return xs.map(x => [...context.getImageData((x - box.x) * dots, (y - box.y) * dots, 1, 1).data].slice(0, 3))",
        [left + (ns - view[0]) / span * width for ns in (at + 50, at - 50)],
        tops[1] + 5,
    )
    assert colours == [[204, 187, 68], [255, 255, 255]], "a copy's colour from its start on, the paper before it"


def test_it_is_zoomed_and_moved_by_buttons_keys_and_the_mouse(timeline):
    left, width, tops = area(timeline)
    middle = SPAN / 2
    timeline.click("figure .tools button:nth-child(1)")
    view = (middle - SPAN / 3, middle + SPAN / 3)
    assert is_seen(timeline, view=view)
    timeline.type("canvas", "0++")
    view = (middle - SPAN / 4.5, middle + SPAN / 4.5)
    assert is_seen(timeline, view=view)
    timeline.type("canvas", "\ue014")  # arrow to the right
    moved = (view[0] + SPAN / 22.5, view[1] + SPAN / 22.5)
    assert is_seen(timeline, view=moved)
    timeline.type("canvas", "\ue012")
    timeline.mouse("Moved", left + 300, tops[1])
    timeline.mouse("Pressed", left + 300, tops[1], button="left", buttons=1, clickCount=1)
    for step in range(1, 101):
        timeline.mouse("Moved", left + 300 - step, tops[1], buttons=1)
    timeline.mouse("Released", left + 200, tops[1], button="left", clickCount=1)
    moved = (view[0] + 100 / width * SPAN / 2.25, view[1] + 100 / width * SPAN / 2.25)
    assert is_seen(timeline, view=moved)
    timeline.type("canvas", "0")
    assert is_seen(timeline, view=(0, SPAN))


def test_the_wheel_scrolls_the_page_until_the_plot_has_the_focus(timeline):
    zoomed, scrolled = "return document.querySelector('canvas').classList.contains('zoomed')", "return scrollY"
    before = timeline.run(scrolled)
    for focus, moves in (("", True), ("document.querySelector('canvas').focus()", False)):
        timeline.run(focus)
        left, width, tops = area(timeline)
        timeline.mouse("Wheel", left + width / 2, tops[1], deltaX=0, deltaY=-100)
        assert timeline.run(zoomed) != moves
        assert (timeline.run(scrolled) < before) == moves
        before = timeline.run(scrolled)


def test_a_name_that_is_markup_is_said_as_it_is(timeline):
    left, _, tops = area(timeline)
    for _ in range(30):
        timeline.mouse("Wheel", left, tops[2], deltaX=0, deltaY=-100, modifiers=2)
    span = SPAN / 1.2**30
    assert said(timeline, 7_300, 2, view=(0, span))[0] == HOSTILE
    assert timeline.run("return window.hacked === undefined")
    assert timeline.run("return document.querySelectorAll('main img').length") == 0


def test_on_paper_it_is_the_picture(timeline):
    timeline.media("print")
    try:
        assert timeline.run("return getComputedStyle(document.querySelector('canvas')).display") == "none"
    finally:
        timeline.media("")


def test_without_scripts_it_is_the_picture(file, lanes, tmp_path):
    with browsers.browser(tmp_path / "profile", scripts=False) as browser:
        browser.open(file)
        assert browser.run("return document.querySelectorAll('canvas').length") == 0
        assert browser.run("return document.querySelectorAll('svg [data-row] title').length") == len(lanes.rows)


def is_seen(browser, view):
    """Whether the box in the middle of the iteration is where it is when this is seen, but for two px."""
    (_, start, *_), px = said(browser, SPAN / 2, 1, view=view), (view[1] - view[0]) / area(browser)[1]
    return abs(1e6 * float(start.split()[1]) - SPAN / 2) <= 2 * px + STEP


def test_a_sample_is_as_high_as_its_share(browser, tmp_path):
    """At 50 % the upper half of the lane has the background, the lower half the colour."""
    steps = [
        {"report": "r", "rank": 0, "pid": 1, "iteration": 0, "phase": "steady", "start_ns": 0, "duration_ns": 10**6}
    ]
    gpu = [row | {"report": "r", "rank": 0, "pid": 1} for row in operations(0)[:1000]]
    columns = ("sms_active_pct", "dram_read_pct", "dram_write_pct", "pcie_rx_pct", "pcie_tx_pct", "nvlink_rx_pct",
               "nvlink_tx_pct")  # fmt: skip
    samples = [
        dict.fromkeys(columns) | {"report": "r", "rank": 0, "pid": 1, "device": 0, "tensor_pct": 50.0,
                                  "start_ns": 1000 * n, "duration_ns": 1000}
        for n in range(1000)
    ]  # fmt: skip
    lanes = replace(iteration_lanes("a case", gpu, [], steps, samples, classes=CLASSES), case=None)
    file = tmp_path / "samples.html"
    file.write_text(page("samples", [lanes]))
    browser.open(file)
    browser.run("document.querySelector('figure').scrollIntoView()")
    upper, lower = browser.run(
        "const field = document.querySelector('[data-lanes]'), canvas = document.querySelector('canvas');"
        "const top = Number(field.dataset.lanes.split(' ').at(-1)), svg = document.querySelector('figure svg');"
        "const box = canvas.getBoundingClientRect(), whole = svg.getBoundingClientRect();"
        "const scale = whole.width / svg.viewBox.baseVal.width, dots = canvas.width / box.width;"
        "const y = (part) => Math.round((whole.y + (top + part) * scale - box.y) * dots);"
        "const strip = canvas.getContext('2d').getImageData(canvas.width / 2, 0, 1, canvas.height).data;"
        "const at = (part) => strip.slice(4 * y(part), 4 * y(part) + 4).join();"
        "return [at(3), at(12)]"
    )
    assert upper != lower
    assert "tensor cores 50 %" in browser.run("return document.querySelector('svg [data-row] title, svg').textContent")
    assert browser.console() == []
