"""The page of an answer as text: its order, what is escaped, what is left out, and that it refers to nothing outside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape

import pytest

from nsw.analysis.blocks import Column, Evidence, Finding, Note, Table
from nsw.present.page import EvidenceRows, page

COLUMNS = (Column("case", "case", "name"), Column("time", "time", "ns"))
BAD = "</script><img src=x onerror=alert(1)>\u202e"


def table(rows, *, name="times", title="times", case=None, evidence=()):
    return Table(name, title=title, columns=COLUMNS, rows=tuple(rows), case=case, evidence=evidence)


def island(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def words(text):
    """What a person reads."""
    body = text.partition("<body>")[2].partition("<script")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_the_answer_is_first_and_what_proves_it_follows():
    proof = (Evidence("figures", ("a",)),)
    text = words(
        page(
            "campaign c",
            [
                Note("note", "Recorded elsewhere"),
                Note("differs", "Not alike"),
                table([("x", 1.0)], title="a long table"),
                Finding("f", "Do this.", evidence=proof),
                table([("first", 2.0)], name="answer", title=""),
                Note("headline", "It is slow", tone="heading"),
                table([("a", 3.0)], case="a", title="of a case"),
                Note("case", "a: 1 ms", tone="heading", case="a"),
            ],
            behind=[EvidenceRows("figures", [{"case": "a", "value": 7}], "nsw summarize --table figures")],
            conditions=[("c", {"chip": "H100"})],
            commands=["nsw run again"],
        )
    )
    parts = ("It is slow", "Recorded elsewhere", "Not alike", "first", "Do this.", "a long table", "a: 1 ms", "of a case", "1 row",
             "H100", "nsw run again")  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_the_first_screen_cuts_short_is_there_once():
    brief, full = "missing: pass a (and 1 more)", ("missing: pass a", "missing: pass b")
    blocks = [Note("missing", brief), *(Note("missing", text, shown="full") for text in full), Note("slowed", "slowed")]
    text = page("t", blocks)
    assert brief not in text
    assert all(text.count(line) == 1 for line in (*full, "slowed"))


def test_every_name_is_escaped_and_steers_nothing():
    behind = [EvidenceRows(BAD, [{BAD: BAD, "case": BAD}], BAD)]
    text = page(
        BAD,
        [Note("headline", BAD), Finding("f", BAD, evidence=(Evidence(BAD, (BAD,)),)), table([(BAD, 1.0)], title=BAD),
         table([(BAD, 1.0)], case=BAD), Note("case", BAD, tone="heading", case=BAD)],
        behind=behind, conditions=[(BAD, {BAD: BAD})], commands=[BAD],
    )  # fmt: skip
    assert "<img" not in text
    assert "\u202e" not in text
    assert len(re.findall("<script", text)) == len(re.findall("</script>", text)) == 2
    assert BAD.replace("\u202e", "\ufffd") in json.dumps(island(text), ensure_ascii=False)


def test_the_policy_allows_the_script_and_the_style_of_the_page_by_their_hashes_alone():
    text = page("c", [table([("a", 1.0)])])
    policy = unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1])

    def hashed(pattern):
        found = re.search(pattern, text, re.DOTALL)[1].encode()
        return f"'sha256-{base64.b64encode(hashlib.sha256(found).digest()).decode()}'"

    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == {
        "default-src": "'none'", "script-src": hashed(r"<script>(.*?)</script>"), "base-uri": "'none'",
        "style-src": hashed(r"<style>(.*?)</style>"), "form-action": "'none'", "img-src": "blob:",
    }  # fmt: skip


def test_it_refers_to_nothing_outside_and_styles_nothing_inline():
    text = page("c", [table([("a", 1.0)])], behind=[EvidenceRows("figures", [{"case": "a"}], "nsw")])
    outside = set(re.findall(r"https?://[^\s\"'<]*", text))
    assert outside <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r"\s(?:style|on\w+)=", re.sub(r"<(script|style)[ >].*?</\1>", "", text, flags=re.DOTALL)) == []
    assert "eval(" not in text
    assert "innerHTML" not in text


def test_a_table_shows_20_rows_and_the_data_has_all():
    text = page("c", [table((f"k{n}", float(n)) for n in range(50))])
    assert text.count("<tr id=") == 20
    assert "The first 20 of 50 rows." in text
    (sheet,) = island(text).values()
    assert sheet["n"] == 50
    assert sheet["d"][0]["x"] == [f"k{n}" for n in range(50)]
    assert sheet["d"][1]["v"][-1] == 49.0


def test_of_too_many_rows_it_has_the_first_of_each_case_and_says_so():
    rows = [{"case": f"c{case}", "n": n} for case in range(100) for n in range(1000)]
    text = page("c", [], behind=[EvidenceRows("figures", rows, "nsw summarize --table figures")])
    (sheet,) = island(text).values()
    assert sheet["n"] == 20_000
    assert set(sheet["d"][1]["v"]) == set(range(200))
    assert "20,000 of 100,000 rows are in this file, the first of each case" in words(text)


def test_cases_that_findings_name_have_a_section_where_not_all_do():
    rows = [(f"kernel {n} " + "x" * 200, float(n)) for n in range(400)]
    blocks = [
        table(rows, case=f"case-{n:03}", evidence=(Evidence("hotspots", (f"case-{n:03}",)),)) for n in range(1000)
    ]
    finding = Finding("f", "See.", evidence=(Evidence("hotspots", ("case-998",)),))
    text = page("c", [finding, *blocks])
    assert len(text) < 15e6
    headings = re.findall(r"<summary>(case-\d+)</summary>", text)
    assert headings[0] == "case-000"
    assert headings[-1] == "case-998"
    assert f"{1000 - len(headings):,} more cases have no section" in text
    assert re.search(r'<a href="#case-0-0" data-case="case-998">', text)


def test_a_sentence_leads_to_the_row_of_its_case():
    proof = (Evidence("iterations", ("b", "gone")),)
    text = page(
        "c",
        [
            Finding("f", "See.", evidence=proof),
            table([("a", 1.0), ("b", 2.0)], evidence=(Evidence("iterations", ("a", "b")),)),
        ],
    )
    (target,) = re.findall(r'<a href="#([^"]*)" data-case="b">', text)
    assert re.search(rf'<tr id="{target}"><td>b</td>', text)
    assert "gone" not in text


def test_both_sides_of_a_comparison_have_their_conditions_beside_each_other():
    text = page("c", [], conditions=[("A", {"chip": "H100", "z": "1"}), ("B", {"driver": "580", "chip": "H200"})])
    rows = re.findall(r'<th scope="row">(.*?)</th>\n?<td>(.*?)</td>\n?<td>(.*?)</td>', text)
    assert rows == [("chip", "H100", "H200"), ("driver", "-", "580"), ("z", "1", "-")]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (float("nan"), "-"), (1234567, "1,234,567"), (1528547.5, "1,528,548"), (0.1, "0.1"),
     (12345.25, "12345.3"), (5e-05, "5e-5"), (2.0, "2")],
)  # fmt: skip
def test_values_are_written_as_the_script_writes_them(value, shown):
    text = page("c", [], behind=[EvidenceRows("figures", [{"case": "a", "x": value, "y": 1}], "nsw")])
    assert shown in re.findall(r"<td[^>]*>(.*?)</td>", text) or value is None


def test_without_data_it_is_small():
    assert len(page("c", []).encode()) < 40_000
