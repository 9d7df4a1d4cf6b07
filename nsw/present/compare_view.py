"""A comparison and a gate: on a terminal, as Markdown, as a page, as rows and as JSON data."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from nsw.analysis.blocks import Block, Column, Note, Table
from nsw.analysis.compared_screen import Comparison, comparison_blocks, log_ratio_to_percent
from nsw.analysis.first_screen import HEADLINE, find_headline
from nsw.analysis.gate import Judged, Outcome
from nsw.analysis.sides import Compared, Side, match_cases
from nsw.present import emit
from nsw.present.summary_view import as_markdown, block_data, show_blocks, show_first_screen
from nsw.present.terminal import console
from nsw.present.untrusted_text import clean_line
from nsw.wording import plural

COLUMNS: Final = (
    "case", "what", "unit", "first", "second", "first_runs", "second_runs", "verdict", "higher_is_better", "gain_pct",
    "gain_low_pct", "gain_high_pct", "chance", "could_show_pct", "more_runs", "paired", "noise_floor", "missing",
    "first_mean", "second_mean",
)  # fmt: skip


def show(comparison: Comparison, form: str, command: str) -> None:
    """Print a comparison.

    Args:
        comparison: The comparison.
        form: table, markdown, html or json.
        command: The command line that names its sides.
    """
    if form == "json":
        emit.as_json(comparison_data(comparison))
    elif form == "markdown":
        title = f"{comparison.second.name} beside {comparison.first.name}"
        sys.stdout.write(as_markdown(title, comparison_blocks(comparison)))
    elif form == "html":
        repeat = command if comparison.by == "case" else f"{command} --by {comparison.by}"
        sys.stdout.write(_html_page(comparison, comparison_blocks(comparison), repeat))
    else:
        show_screen(comparison, command)


def show_screen(
    comparison: Comparison, command: str, next_command: str | None = None, below: Sequence[str] = ()
) -> None:
    """Print the first screen of a comparison, with the commands that prove its sentences.

    Args:
        comparison: The comparison.
        command: The command line that names its sides.
        next_command: The line below it: the command that shows more of the campaign.
        below: What the caller prints below that.
    """
    functions = f"`{command} --by function` compares every function" if comparison.functions else None
    proofs = {
        "difference": f"{command} --by kernel",
        "counters": f"{command} --by metric",
        "cannot tell": f"{command} -o compared.html",  # has all runs
    }
    names = comparison.first.name, comparison.second.name
    blocks = comparison_blocks(comparison)
    if all(name in find_headline(blocks) for name in names):  # a line that has no more goes
        blocks = [block for block in blocks if getattr(block, "text", "") != "A: {}, B: {}".format(*names)]
    show_first_screen(
        console(), blocks, next_command, last_line=functions,
        proof=lambda finding: proofs.get(finding.name),
        rows_command=lambda _: f"{command} --by {comparison.by} --format csv", below=below,
    )  # fmt: skip


def _html_page(comparison: Comparison, blocks: Sequence[Block], command: str) -> str:
    """The comparison as an HTML page, with the rows of both sides that its blocks name as evidence."""
    from nsw.present.page import EvidenceRows, page

    sides = (comparison.first, comparison.second)
    pairs = match_cases(comparison.first, comparison.second)
    cases = {run.id: pair.name for pair in pairs for run in (*pair.first, *pair.second)}
    evidence = {  # the rows of both sides; their cases are called as in the comparison, those of one side as there
        name: [
            {"side": side.name, "case": cases.get(run.id, run.case_id)} | dict(row)
            for side in sides for run in side.runs for row in side.rows(name)(run.id)
        ]
        for name in dict.fromkeys(proof.table for block in blocks for proof in block.evidence)
    }  # fmt: skip
    return page(
        f"{comparison.second.name} beside {comparison.first.name}",
        blocks,
        behind=[
            EvidenceRows("compared", rows_of(comparison), f"{command} --format csv"),
            *(EvidenceRows(name, rows, f"nsw summarize --table {name}") for name, rows in evidence.items()),
        ],
        conditions=[(side.name, side.conditions) for side in sides],
        commands=[command],
    )


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a quantity of a case, unrounded."""
    return [_compared_row_data(row) for row in comparison.rows]


def _compared_row_data(row: Compared) -> dict[str, Any]:
    estimate = row.estimate
    gain, low, high = (
        None if log is None else log_ratio_to_percent(log) for log in (row.gain, *(row.interval or (None, None)))
    )
    floor = estimate and estimate.floor
    return {
        "case": row.case,
        "what": row.what,
        "unit": row.unit,
        "first": row.first,
        "second": row.second,
        "first_runs": row.runs[0],
        "second_runs": row.runs[1],
        "verdict": row.verdict,
        "higher_is_better": row.higher_is_better,
        "gain_pct": gain,
        "gain_low_pct": low,
        "gain_high_pct": high,
        "chance": estimate and estimate.chance,
        "could_show_pct": estimate and log_ratio_to_percent(estimate.detectable),
        "more_runs": estimate and estimate.more_needed,
        "paired": estimate and estimate.is_paired,
        "noise_floor": floor and ("measured" if floor.measured else "assumed"),
        "missing": row.missing,
        "first_mean": row.means and row.means[0],
        "second_mean": row.means and row.means[1],
    }


def _side_data(side: Side) -> dict[str, Any]:
    name, source = clean_line(side.name), clean_line(side.source)
    return {"name": name, "source": source, "note": side.note, "conditions": dict(side.conditions)}


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON data."""
    blocks = comparison_blocks(comparison)
    return {
        "first": _side_data(comparison.first),
        "second": _side_data(comparison.second),
        "by": comparison.by,
        "headline": clean_line(find_headline(blocks)),
        "differs": [clean_line(line) for line in comparison.differs],
        "programs": comparison.programs and clean_line(comparison.programs),
        "rows": rows_of(comparison),
        "only_in_first": list(comparison.lone[0]),
        "only_in_second": list(comparison.lone[1]),
        "differences": [
            {
                "case": case,
                "before_ns": difference.before,
                "after_ns": difference.after,
                "of_iteration": difference.of_iteration,
                "changes": [asdict(change) | {"ns": change.ns} for change in difference.changes],
            }
            for case, difference in comparison.explained.items()
        ],
        "blocks": [block_data(block) for block in blocks],
    }


# --- the gate -------------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("rule", "rule"), Column("case", "case", "name"), Column("outcome", "outcome"), Column("why", "why"),
)  # fmt: skip


def _gate_blocks(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome) -> list[Block]:
    names = f"{comparison.second.name} beside {comparison.first.name}"
    rows = tuple((f"{j.figure}: {j.tolerance}", j.case, str(j.outcome), j.why) for j in judged)
    head = f"Gate {outcome}: {names}" + ("" if judged else ": there is no rule")
    differs = [block for block in comparison_blocks(comparison) if block.name in {"differs", "programs"}]
    table: list[Block] = [Table("gate", title="", columns=_COLUMNS, rows=rows, wide="case")] if rows else []
    return [*differs, Note(HEADLINE, head, tone="heading"), *table]


def show_gate(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome) -> None:
    """Print the outcome of each rule.

    Args:
        comparison: What the rules were held against.
        judged: The rules, each over a case.
        outcome: The outcome of all rules together.
    """
    show_blocks(console(), _gate_blocks(comparison, judged, outcome), "full")


def gate_page(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome, command: str) -> str:
    """A page with the outcome of each rule, and what made the difference.

    Args:
        comparison: What the rules were held against.
        judged: The rules, each over a case.
        outcome: The outcome of all rules together.
        command: The command line that repeats it.
    """
    return _html_page(comparison, [*_gate_blocks(comparison, judged, outcome), *_finding_blocks(comparison)], command)


_MARK: Final = "<!-- nsw gate -->"  # a comment begins with it, so that a later one can replace it
_MOST_RULES: Final = 10  # rows and findings of a comment, which is to be read beside others
_MOST_FINDINGS: Final = 3


def gate_markdown(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome) -> str:
    """The gate as a comment on a pull request: the rules that do not hold, and what made the difference.

    Args:
        comparison: What the rules were held against.
        judged: The rules, each over a case.
        outcome: The outcome of all rules together.
    """
    order = [Outcome.FAILED, Outcome.UNDECIDED, Outcome.PASSED]
    worst_first = sorted(judged, key=lambda each: order.index(each.outcome))
    blocks = [
        *_gate_blocks(comparison, worst_first[:_MOST_RULES], outcome),
        *_finding_blocks(comparison)[:_MOST_FINDINGS],
    ]
    if judged[_MOST_RULES:]:
        counts = Counter(str(each.outcome) for each in judged)
        text = ", ".join(f"{count} {name}" for name, count in counts.items())
        blocks.append(Note("rest", f"of {plural(len(judged), 'rule')} over cases: {text} (--json lists all)"))
    rest = [block for block in blocks if block.name != HEADLINE]
    return f"{_MARK}\n{as_markdown(find_headline(blocks), rest)}"


def gate_junit(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome) -> str:
    """The gate as a JUnit report, which forges show beside tests: a rule over a case is a test.

    Args:
        comparison: What the rules were held against.
        judged: The rules, each over a case.
        outcome: The outcome of all rules together.
    """
    from xml.etree import ElementTree as ET

    outcomes = [each.outcome for each in judged]
    suite = ET.Element(
        "testsuite",
        name=clean_line(f"gate {outcome}: {comparison.second.name} beside {comparison.first.name}"),
        tests=str(len(judged)),
        failures=str(outcomes.count(Outcome.FAILED)),
        errors=str(outcomes.count(Outcome.UNDECIDED)),
    )
    for each in judged:
        rule = f"{each.figure}: {each.tolerance}"
        test = ET.SubElement(suite, "testcase", classname=clean_line(rule), name=clean_line(each.case or "every case"))
        if each.outcome is not Outcome.PASSED:
            kind = "failure" if each.outcome is Outcome.FAILED else "error"
            ET.SubElement(test, kind, type=str(each.outcome), message=clean_line(each.why))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _finding_blocks(comparison: Comparison) -> list[Block]:
    return [block for block in comparison_blocks(comparison) if block.name in {"difference", "cannot tell"}]


def gate_data(comparison: Comparison, judged: Sequence[Judged], outcome: Outcome) -> dict[str, Any]:
    """The gate as JSON data.

    Args:
        comparison: What the rules were held against.
        judged: The rules, each over a case.
        outcome: The outcome of all rules together.
    """
    rules = [
        {**asdict(j), "tolerance": str(j.tolerance), "outcome": str(j.outcome), "why": clean_line(j.why)}
        for j in judged
    ]
    return {"outcome": str(outcome), "rules": rules, "comparison": comparison_data(comparison)}
