"""The page in a real Chromium: what its script does, what it does without, and that no name on it does anything."""

from __future__ import annotations

import base64
import csv
import io
import time

import pytest

from . import browser as browsers
from .conftest import HOSTILE

ROWS = (
    "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
)
SHOWN = (
    "return [...document.querySelectorAll('.sheet')].map(s => [s.id, [...s.querySelectorAll('tbody tr')]"
    ".map(r => [...r.cells].map(c => [c.textContent, c.className]))])"
)
PIXELS = (
    "(async (text) => { const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));"
    " const image = await createImageBitmap(new Blob([bytes], {type: 'image/png'})), {width, height} = image;"
    " const context = new OffscreenCanvas(width, height).getContext('2d'); context.drawImage(image, 0, 0);"
    " const dots = context.getImageData(0, 0, width, height).data, colours = new Set();"
    " for (let at = 0; at < dots.length; at += 4) colours.add(`rgb(${dots.slice(at, at + 3).join(', ')})`);"
    " return {size: [width, height], colours: [...colours]}; })"
)  # the size and the colours of a PNG
LARGE = "#rows-hotspots"  # more rows than are shown at first


@pytest.fixture
def page(browser, demo):
    browser.resize(1000)
    browser.open(demo)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    return browser


def test_nothing_is_said_on_the_console(page):
    assert page.console() == []
    assert page.run("return document.querySelectorAll('.tools').length") > 10  # so that the script did run


def test_the_script_writes_rows_as_they_are_without_it(page):
    before = page.run(SHOWN)
    page.run(
        "document.querySelectorAll('.tools input').forEach(i => { i.value = ''; i.dispatchEvent(new Event('input')); })"
    )
    assert page.run(SHOWN) == before
    assert sum(len(rows) for _, rows in before) > 200


def test_a_press_on_a_heading_sorts_by_the_numbers(page):
    heads = page.run("return [...document.querySelectorAll(arguments[0] + ' th')].map(h => h.textContent)", LARGE)
    at = heads.index("total_ns")
    for order, sign in (("descending", -1), ("ascending", 1)):
        page.click(f"{LARGE} th:nth-child({at + 1}) button")
        values = [float(row[at].replace(",", "")) for row in page.run(ROWS, LARGE)]
        assert values == sorted(values, key=lambda value: sign * value)
        sorts = page.run("return [...document.querySelectorAll(arguments[0] + ' th')].map(h => h.ariaSort)", LARGE)
        assert [sort for sort in sorts if sort] == [order]
        assert sorts[at] == order


def test_headings_are_pressed_from_the_keyboard_and_the_focus_is_seen(page):
    page.type(f"{LARGE} th button", "\ue007")
    assert page.run("return document.querySelector(arguments[0] + ' th').ariaSort", LARGE) == "ascending"
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_filter_finds_rows_that_are_not_shown_at_first(page):
    assert len(page.run(ROWS, LARGE)) == 20
    page.type(f"{LARGE} input", "GEMMSN_NN")
    rows = page.run(ROWS, LARGE)
    assert rows
    assert all(any("gemmsn_nn" in cell.lower() for cell in row) for row in rows)
    status = page.run("return document.querySelector(arguments[0] + ' [role=status]').textContent", LARGE)
    assert status.startswith(f"{len(rows)} of ")


def test_all_rows_can_be_shown(page):
    count = int(
        page.run("return document.querySelector(arguments[0] + ' [role=status]').textContent", LARGE).split()[0]
    )
    page.click(f"{LARGE} .tools button")
    assert len(page.run(ROWS, LARGE)) == count > 200
    assert page.run("return document.querySelector(arguments[0] + ' .tools button').hidden", LARGE)


def test_a_table_is_copied_whole_as_csv_that_no_spreadsheet_works_out(browser, hostile):
    browser.open(hostile)
    browser.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    browser.click("#rows-figures summary, details:has(#rows-figures) summary")
    browser.click("#rows-figures .tools button:not([hidden]) ~ button")
    head, *rows = csv.reader(io.StringIO(browser.run("return window.copied")))
    assert len(rows) == len(HOSTILE) + 30
    assert [row[0] for row in rows[:5]] == list(HOSTILE[:5])
    assert rows[7][0] == "'=1+1"
    assert [row[head.index("n")] for row in rows] == [str(n) for n in range(len(rows))]


LINKS = (
    "return [...document.querySelectorAll('.findings li')].map(s => [s.textContent.trim(), [...s.querySelectorAll('.proof')]"
    ".map(p => [...p.querySelectorAll('a')].map(a => [a.textContent, a.hash, a.dataset.case || '']))])"
)


def test_a_sentence_opens_the_tables_of_its_case_and_its_timeline(page):
    sentences = page.run(LINKS)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    links = [link for _, proofs in sentences for proof in proofs for link in proof]
    of_cases = [(text, place) for text, place, case in links if text == case]
    assert len(of_cases) >= len(sentences) > 5
    for case, place in of_cases:
        page.run("document.querySelector(`.findings a[href='${arguments[0]}']`).click()", place)
        heading, is_open = page.run(
            "const d = document.querySelector(arguments[0]).closest('details');"
            "return [d.querySelector('summary').textContent, d.open]", place
        )  # fmt: skip
        assert heading.partition(":")[0] == case
        assert is_open
    timelines = [(text, place) for text, place, _ in links if text.startswith("timeline of ")]
    assert timelines
    for text, place in timelines:
        title = page.run("return document.querySelector(arguments[0] + ' svg title').textContent", place)
        assert title.endswith(f" of {text.removeprefix('timeline of ')}")


def test_the_rows_behind_a_sentence_are_those_of_its_cases(page):
    links = page.run(
        "return [...document.querySelectorAll('.findings a[data-cases]')].map(a => [a.hash, JSON.parse(a.dataset.cases)])"
    )
    assert len(links) > 5
    for at, (place, cases) in enumerate(links):
        page.run("document.querySelectorAll('.findings a[data-cases]')[arguments[0]].click()", at)
        rows = page.run(ROWS, place)
        assert rows
        assert all(set(row) & set(cases) for row in rows)
        assert page.run("return document.querySelectorAll(arguments[0] + ' tbody tr:not(.chosen)').length", place) == 0


def test_sentences_of_a_comparison_lead_to_the_rows_that_prove_them(browser, comparison):
    browser.open(comparison)
    sentences = browser.run(LINKS)
    assert len(sentences) == 3
    for sentence, proofs in sentences:
        case = sentence.partition(":")[0]
        assert [[text for text, *_ in proof] for proof in proofs] == [
            [case, "rows of figures"],
            [case, "rows of gpu_summary"],
        ]
        verdict, changes = (place for (_, place, _), _ in proofs)
        browser.run("document.querySelector(`.findings a[href='${arguments[0]}']`).click()", verdict)
        row = browser.run("const r = document.querySelector(arguments[0]);"
                          "return [r.className, ...[...r.cells].map(c => c.textContent)]", verdict)  # fmt: skip
        assert (row[0], row[1], row[-1]) == ("chosen", case, "probably faster")
        title = browser.run("return document.querySelector(arguments[0] + ' caption').textContent", changes)
        assert title.startswith(f"what changed in an iteration of {case} ")
        for _, (_, rows, _) in proofs:
            browser.open(comparison, rows)
            heads, *cells = browser.run(
                "return [...document.querySelectorAll(':target tr')].map(r => [...r.cells].map(c => c.textContent))"
            )
            assert browser.run("return document.querySelector(':target').closest('details').open"), rows
            assert {row[heads.index("side")].partition("=")[2] for row in cells} <= {"1", "4"}
            assert {row[heads.index("case")].partition("=")[0] for row in cells} == {"batch"}


def test_every_link_of_the_page_leads_somewhere(page):
    targets = page.run("return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    known = set(page.run("return [...document.querySelectorAll('[id]')].map(a => a.id)"))
    assert targets
    assert {target for target in targets if target[0] != "#" or target[1:] not in known} == set()


def test_a_number_says_what_it_is_under_the_pointer(page):
    title = page.run(
        "const c = document.querySelector('#b1 tbody td.n');"
        "c.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); return c.title"
    )
    value, unit, source = title.split("\n")
    assert float(value) > 2000
    assert unit.endswith(", number")
    assert source == "from scaling"


@pytest.mark.parametrize("width", [360, 1000, 2000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_window_and_both_schemes(page, width, scheme):
    page.resize(width)
    page.colour_scheme(scheme)
    assert page.run("return document.documentElement.scrollWidth") <= width
    paper, ink = page.run(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        ".map(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))"
    )
    assert abs(paper - ink) > 400
    assert (paper > ink) == (scheme == "light")


def test_no_name_is_obeyed(browser, hostile):
    browser.open(hostile)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for at in range(1, 3):
        browser.run(
            "document.querySelectorAll(`th:nth-child(${arguments[0]}) button`).forEach(b => b.click());"
            "document.querySelectorAll('.tools input').forEach(i => { i.value = 'hacked';"
            " i.dispatchEvent(new Event('input')); })",
            at,
        )
        browser.run(
            "document.querySelectorAll('td').forEach(c => c.dispatchEvent(new Event('mouseover', {bubbles: 1})))"
        )
    browser.run("document.querySelectorAll('a[data-case]').forEach(a => a.click())")
    assert browser.run("return document.querySelectorAll('figure svg [data-row] title').length") > len(HOSTILE)
    assert browser.run("return window.hacked === undefined")
    assert (
        browser.run("return document.querySelectorAll('main img, header img, main script, [onerror], [onload]').length")
        == 0
    )
    assert browser.console() == []
    text = browser.run("return document.body.textContent")
    assert HOSTILE[0] in text
    assert "\u202e" not in text


def test_the_policy_stops_what_would_get_past_the_escapes(browser, hostile):
    browser.open(hostile)
    browser.run(
        "window.stopped = []; document.addEventListener('securitypolicyviolation', e => stopped.push(e.effectiveDirective));"
        "const add = (name, made) => document.body.append(Object.assign(document.createElement(name), made));"
        "add('script', {textContent: 'window.hacked = 1'}); add('img', {src: 'http://127.0.0.1:9/x.png'});"
        "add('style', {textContent: 'body { color: red }'}); add('iframe', {src: 'http://127.0.0.1:9/'});"
        "document.body.setAttribute('onclick', 'window.hacked = 1'); document.body.click();"
    )
    assert "Refused" in browser.wait_for("fetch('http://127.0.0.1:9/')") or browser.run(
        "return stopped.includes('connect-src')"
    )
    stopped = set(browser.run("return window.stopped"))
    assert {"script-src-elem", "script-src-attr", "img-src", "style-src-elem", "frame-src", "connect-src"} <= stopped
    assert browser.run("return window.hacked === undefined")


def test_without_scripts_everything_is_there_but_the_rows_beyond_the_first(demo, tmp_path):
    with browsers.browser(tmp_path / "profile", scripts=False) as browser:
        browser.open(demo)
        text = browser.run("return document.body.textContent")
        for part in ("90 % efficiency", "Recorded on", "Findings", "channels_last", "weak scaling", "Conditions"):
            assert part in text
        assert "The first 20 of 267 rows." in text
        assert len(browser.run(ROWS, LARGE)) == 20
        assert browser.run("return document.querySelectorAll('tbody tr').length") > 300
        assert browser.run("return document.querySelectorAll('figure svg').length") > 0
        assert browser.run("return document.querySelectorAll('.tools, button').length") == 0


def test_a_plot_is_zoomed_and_shown_whole_again(page):
    view = "return document.querySelector('figure svg').getAttribute('viewBox').split(' ').map(Number)"
    whole = page.run(view)
    page.click("figure .tools button:nth-child(1)")
    page.click("figure .tools button:nth-child(1)")
    left, top, width, height = page.run(view)
    assert width == pytest.approx(whole[2] / 2.25)
    assert (left + width / 2, top + height / 2) == pytest.approx((whole[2] / 2, whole[3] / 2))
    page.click("figure .tools button:nth-child(2)")
    assert page.run(view)[2] == pytest.approx(whole[2] / 1.5)
    page.click("figure .tools button:nth-child(3)")
    assert page.run(view) == whole


def test_what_a_mark_of_a_plot_says_is_in_the_row_that_it_stands_for(page):
    marks = page.run(
        "return [...document.querySelectorAll('figure')].flatMap(f => {"
        " const rows = document.querySelectorAll(f.querySelector('figcaption a').hash + ' tbody tr');"
        " return [...f.querySelectorAll('[data-row]')].filter(m => m.dataset.row < rows.length).map(m =>"
        " [m.querySelector('title').textContent, [...rows[m.dataset.row].cells].map(c => c.textContent)]); })"
    )
    assert len(marks) > 100
    for says, cells in marks:
        assert any(cell and cell in says for cell in cells), (says, cells)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plot_is_saved_as_png_as_it_is_seen(page, scheme, tmp_path):
    page.save_to(tmp_path)
    page.colour_scheme(scheme)
    width, height, *colours = page.run(
        "const plot = document.querySelector('figure svg'), of = (what, name) => getComputedStyle(what)[name];"
        "return [2 * plot.width.baseVal.value, 2 * plot.height.baseVal.value,"
        " of(document.body, 'backgroundColor'), of(plot.querySelector('path.s1'), 'stroke')]"
    )
    page.click("figure .tools button[title='save as PNG']")
    file = tmp_path / "weak-scaling-of-images_per_sec-along-gpus-while-being-profiled-.png"
    wait_until(file.exists)
    saved = page.wait_for(f"{PIXELS}('{base64.b64encode(file.read_bytes()).decode()}')")
    assert saved["size"] == [width, height]
    assert set(colours) <= set(saved["colours"])
    assert page.console() == []


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


TEXT = "return document.body.innerText"
IN_SIGHT = "return [...document.querySelectorAll(arguments[0])].filter(part => part.checkVisibility()).length"


@pytest.fixture
def paper(browser, demo):
    browser.resize(1000)
    browser.open(demo)
    browser.media("print")
    yield browser
    browser.media("")


def test_paper_has_the_answer_and_the_first_rows_of_tables(paper):
    text = paper.run(TEXT)
    for part in (
        "90 % efficiency",
        "Recorded on",
        "Findings",
        "channels_last",
        "weak scaling",
        "Conditions",
        "nsw run",
    ):
        assert part in text
    assert paper.run(IN_SIGHT, "figure svg") >= 4
    assert paper.run(IN_SIGHT, f"{LARGE} tbody tr") == 5
    assert "5 of 267 rows are printed." in text
    assert "The first 20 of" not in text
    assert paper.run(IN_SIGHT, ".tools *") == 0
    assert 5 <= paper.pages_on_paper() <= 10


def test_paper_says_units_and_sources(paper):
    assert "from table iterations" in paper.run(TEXT)
    unit = "return getComputedStyle([...document.querySelectorAll('#rows-iterations th')].find(h => h.textContent === 'med_ns'), '::after').content"
    assert paper.run(unit) == '" (ns)"'


def test_paper_has_the_cases_that_are_open_and_the_rows_that_are_filtered(paper):
    paper.media("")
    paper.run("document.querySelector('#case-1').open = true")
    paper.run("const d = document.querySelector(arguments[0]).closest('details'); d.open = true", LARGE)
    paper.type(f"{LARGE} input", "max_pool_forward")
    found = len(paper.run(ROWS, LARGE))
    assert found > 0
    paper.media("print")
    assert [paper.run(IN_SIGHT, f"#case-{n} .sheet") > 0 for n in (0, 1, 2)] == [False, True, False]
    assert paper.run(IN_SIGHT, "#case-0 summary, #case-2 summary") == 2
    assert f"{min(found, 5)} of 267 rows are printed." in paper.run(TEXT)


@pytest.mark.parametrize("width", [380, 1280])
def test_what_is_wider_than_its_frame_scrolls_there_and_says_so(browser, demo, width):
    browser.resize(width)
    browser.open(demo)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    wider = "[...document.querySelectorAll('.wide, figure')].filter(f => f.scrollWidth > f.clientWidth + 1)"
    drawn = "new Promise(then => requestAnimationFrame(() => requestAnimationFrame(() => then(true))))"
    assert browser.wait_for(drawn)
    assert browser.run(f"return {wider}.every(f => f.hasAttribute('data-scrolls'))")
    hint = browser.run(f"return {wider}.map(f => getComputedStyle(f, '::before').content)")
    assert all("scroll sideways" in text for text in hint)
    assert bool(hint) or width > 380
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("part", ["answer", "others"])
def test_on_a_telephone_the_case_is_seen_beside_each_number(browser, demo, part):
    browser.resize(380)
    browser.open(demo)
    if part == "answer":
        cells = browser.run(
            "return [...document.querySelectorAll('.cards td')].map(c => [c.dataset.head, c.getBoundingClientRect().right])"
        )
        heads = browser.run("return [...document.querySelectorAll('.cards th')].map(h => h.textContent)")
        assert [head for head, _ in cells] == heads * 4
        assert all(right <= 380 for _, right in cells)
        return
    frames = browser.run(
        "return [...document.querySelectorAll('[data-scrolls].wide')].filter(f => f.checkVisibility()).map(f => {"
        " f.scrollLeft = f.scrollWidth; const left = (part) => part.getBoundingClientRect().left;"
        " return [left(f.querySelector('td')) - left(f), left(f.querySelector('td + td')) - left(f)]; })"
    )
    assert frames
    assert all(first == 0 > second for first, second in frames)


FAINT = """
const parts = (colour) => {
  const numbers = colour.match(/[\\d.]+/g).map(Number);
  return colour.startsWith("color(srgb") ? numbers.map((value, n) => (n < 3 ? 255 * value : value)) : numbers;
};
const blend = (over, under, share) => [0, 1, 2].map((n) => share * over[n] + (1 - share) * under[n]);
const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, n) => {
  const value = colour[n] / 255;
  return sum + weight * (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
}, 0);
const paper = (node) => {
  if (!node) return [255, 255, 255];
  const [r, g, b, a = 1] = parts(getComputedStyle(node).backgroundColor);
  return a === 0 ? paper(node.parentElement) : [r, g, b];
};
const below = (text, under) => {  // what rectangles of a plot are under the middle of a text
  const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  for (const mark of text.closest("svg").querySelectorAll("rect")) {
    const { left, right, top, bottom } = mark.getBoundingClientRect(), style = getComputedStyle(mark);
    if (style.fill === "none" || x < left || x > right || y < top || y > bottom) continue;
    under = blend(parts(style.fill), under, Number(style.fillOpacity) * (parts(style.fill)[3] ?? 1));
  }
  return under;
};
const faint = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !node.checkVisibility() || ["SCRIPT", "TITLE", "OPTION"].includes(node.tagName.toUpperCase())) continue;
  const style = getComputedStyle(node), inPlot = node.closest("svg");
  const pair = [parts(inPlot ? style.fill : style.color), inPlot ? below(node, paper(node)) : paper(node)].map(light);
  if ((Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 4.5) faint.push(walk.currentNode.data.trim());
}
return faint;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(page, scheme):
    page.colour_scheme(scheme)
    page.run("document.querySelectorAll('.findings a[data-case]').forEach(link => link.click())")  # rows are marked
    assert page.run(FAINT) == []
