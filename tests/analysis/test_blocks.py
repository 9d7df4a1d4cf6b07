"""An answer in blocks: each renderer shows every kind, and one that it does not know as a table."""

import io
import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from nsw.analysis.answer import registry
from nsw.analysis.blocks import Ceiling, Column, Curve, Evidence, Finding, Note, Scatter, Table, Timeline
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.present.emit import strict_json
from nsw.present.summary_view import (
    as_markdown,
    block_data,
    rows_markdown,
    show_blocks,
    show_summary,
    summary_data,
    summary_markdown,
)
from nsw.present.terminal import console

from .made import figure_row, gpu_row, make_run

COLUMNS = (Column("param.n", "n", "plain"), Column("time_ns", "time", "ns"), Column("range", "range", "range"))
ROWS = ((1, 2_000_000.0, (1.0, 3.0)), (2, None, None))


@dataclass(frozen=True, slots=True)
class Violin(Table):
    """A kind that no renderer knows."""

    kind: ClassVar[str] = "violin"


def shown(blocks, form="always"):
    stream = io.StringIO()
    show_blocks(console(stream), blocks, form)
    return stream.getvalue()


def test_a_kind_that_nobody_knows_is_a_table_everywhere():
    block = Violin("x", "the title", COLUMNS, ROWS)
    for text in (shown([block]), as_markdown("c", [block])):
        assert all(word in text for word in ("the title", "time (ms)", "2.000", "1.00 .. 3.00"))
    data = block_data(block)
    assert data["kind"] == "violin"
    assert list(data["rows"]) == [(1, 2_000_000.0, (1.0, 3.0)), (2, None, None)]


def test_what_is_not_known_is_null_in_data_and_a_dash_for_people():
    block = Table("x", "t", COLUMNS, ROWS)
    assert block_data(block)["rows"][1] == (2, None, None)
    assert as_markdown("c", [block]).splitlines()[-1] == "| 2 | - | - |"


def test_a_row_has_a_cell_for_each_column_and_parts_are_columns():
    with pytest.raises(ValueError, match="another length"):
        Table("x", "t", COLUMNS, ((1, 2.0),))
    with pytest.raises(ValueError, match="nothing"):
        Curve("x", "t", COLUMNS, ROWS, x="param.n", y="nothing")


def test_data_names_the_parts_of_a_picture():
    curve = Curve("x", "t", COLUMNS, ROWS, x="param.n", y="time_ns", series=("range",))
    plot = Scatter("y", "t", COLUMNS, ROWS, x="param.n", y="time_ns", label="range",
                   ceilings=(Ceiling("DRAM", None, 3e12, "report"),))  # fmt: skip
    one, two = json.loads(strict_json([block_data(curve), block_data(plot)]))
    assert (one["x"], one["y"], one["series"]) == ("param.n", "time_ns", ["range"])
    assert two["ceilings"] == [{"name": "DRAM", "y": None, "slope": 3e12, "source": "report"}]


def test_each_form_shows_its_own_blocks():
    blocks = [Note(form, f"said {form}", shown=form) for form in ("always", "full", "data")]
    assert shown(blocks, "always").split("\n")[:-1] == ["said always"]
    assert shown(blocks, "full").split("\n")[:-1] == ["said always", "said full"]
    assert [block_data(b)["text"] for b in blocks] == ["said always", "said full", "said data"]
    assert "said data" not in as_markdown("c", blocks)


def test_a_timeline_on_a_terminal_says_what_is_not_in_the_steady_state():
    columns = (Column("phase", "phase"), Column("duration_ns", "duration", "ns"), Column("i", "iterations", "count"),
               Column("what", "spent on", "names and ns"))  # fmt: skip
    rows = (("set-up", 2e9, None, (("cuInit", 1e9),)), ("warm-up", 1e6, 1, ()), ("steady state", 1e9, 5, ()))
    text = shown([Timeline("phases", "phases", columns, rows, label="phase", length="duration_ns")])
    assert text.splitlines() == [
        "  not in what follows: set-up 2.000 s: cuInit 1.000 s",
        "  not in what follows: warm-up 1.000 ms, 1 iteration",
    ]


def test_markdown_begins_with_the_headline_then_findings():
    blocks = [
        Note("headline", "*It* is slow", tone="heading"),
        Note("note", "beware"),
        Finding("f", "for want of a nail"),
    ]
    assert as_markdown("c", blocks).split("\n\n")[1:] == [r"**\*It\* is slow**", "- for want of a nail", "beware\n"]


def test_markdown_has_the_findings_first_and_takes_no_markup_from_names():
    block = Table("x", "1. a_b *c*", (Column("k", "k"),), (("a|b<script>_x_",),))
    text = as_markdown("c", [block, Finding("f", "# [so](it) is")])
    assert text.split("\n\n")[1] == r"- \# \[so\](it) is"
    assert r"**1\. a_b \*c\***" in text
    assert r"| a\|b\<script\>\_x\_ |" in text
    assert r"| \# \[x\] |" in rows_markdown("t", [{"a": "# [x]"}], ["a"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see `nsw logs n-1_b-2.r1 --lines 0` now", "see `nsw logs n-1_b-2.r1 --lines 0` now"),
        ("it said `rm *` and `x", r"it said \`rm \*\` and \`x"),
        ("a ` b `nsw logs x`` c_", r"a \` b `nsw logs x`\` c\_"),
        ("`nsw ls | head`", "`nsw ls | head`"),
    ],
)
def test_markdown_shows_commands_as_code_and_no_other_backticks(text, shown):
    assert as_markdown("c", [Note("n", text)]).split("\n\n")[1] == f"{shown}\n"


def test_a_bar_of_a_command_ends_no_cell_of_markdown():
    assert r"| `nsw ls \| head` \*x |" in rows_markdown("t", [{"a": "`nsw ls | head` *x"}], ["a"])


@pytest.fixture
def summary():
    runs = [make_run(f"r{n}", f"gpus-{n}", params={"gpus": n}) for n in (1, 2)]
    tables = {
        "gpu_summary": [gpu_row("k", 4e6, run=r.id) for r in runs],
        "figures": [figure_row(100.0 * n, run=f"r{n}") for n in (1, 2)],
    }
    return summarize(CampaignData("c", "s", None, runs, tables), ReportRequest(figure="speed", axis="gpus"))


def test_every_block_of_numbers_names_the_rows_that_prove_it(summary):
    for block in registry.answer_blocks(summary):
        assert block.evidence or (isinstance(block, Note) and block.tone != "plain"), block
    data = summary_data(summary)
    assert data["findings"] == [{"text": f.text, "cases": list(f.cases)} for f in summary.findings]
    blocks = list(data["blocks"])
    assert [block["name"] for block in blocks][:2] == ["headline", "answer"]
    assert data["headline"] == blocks[0]["text"]
    assert {block["shown"] for block in blocks} == {"always", "data", "full"}


def test_evidence_is_a_table_that_summarize_knows(summary):
    from nsw.cli.summarizing import table_names

    known = {*table_names()}
    assert {one.table for block in registry.answer_blocks(summary) for one in block.evidence} <= known


def test_a_new_analysis_is_a_line_in_the_registry(summary, monkeypatch):
    def of_luck(summary):
        return [Table("luck", "luck", (Column("case", "case"),), tuple((c.id,) for c in summary.cases),
                      evidence=(Evidence("figures"),))]  # fmt: skip

    monkeypatch.setattr(registry, "ANALYSES", {**registry.ANALYSES, "luck": of_luck})
    stream = io.StringIO()
    show_summary(console(stream), summary, full=True)
    assert "luck" in stream.getvalue()
    show_summary(console(stream := io.StringIO()), summary, full=False)
    assert "luck" not in stream.getvalue()
    assert not [line for line in stream.getvalue().splitlines() if line != line.rstrip()]
    assert "**luck**" in summary_markdown(summary)
    (luck,) = [block for block in summary_data(summary)["blocks"] if block["name"] == "luck"]
    assert list(luck["rows"]) == [("gpus-1",), ("gpus-2",)]
