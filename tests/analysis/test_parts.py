"""The parts of a whole add up to it, in data and as printed, and a word has one meaning: over all that was recorded."""

import re

import pytest

from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.blocks import Table
from nsw.analysis.groups import sum_by
from nsw.analysis.rules.gaps import WORDS, divide_idle_time, idle_time_by_cause
from nsw.analysis.rules.idle_causes import slow_reads
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.spent import remove_profiler_idle_time
from nsw.present.summary_view import column_texts

from .recorded import ASKED, answer
from .test_diagnosis import OPEN, score

TIMELINES = sorted(case for case in OPEN if (score.recordings.FOLDER / f"{case}.timeline.xz").exists())


def of_wholes(blocks):
    """The shares of each whole, as data and as printed."""
    for block in blocks:
        if isinstance(block, Table) and block.whole:
            at = [n for n, column in enumerate(block.columns) if column.name in block.whole]
            printed = column_texts(block)
            cells = [[(row[n], printed[n][number]) for n in at] for number, row in enumerate(block.rows)]
            yield from [[cell for (cell,) in cells]] if len(at) == 1 else cells


IN_TABLE = {"launches": "launch", "waits for the GPU": "synchronise", "values read back": "value", "copies": "copy",
            "starts of queued operations": "queued"}  # fmt: skip


def check_idle_time(case):
    """Hold the division of idle time to table gaps: a word is the sum of its rows, of which long ones are the host's."""
    idle = case.idle_gpu
    if idle is None or not idle.gaps or not idle.has_calls:
        return
    division = divide_idle_time(idle, found := idle_time_by_cause(case, idle))
    shares = {words: 100 * ns / idle.idle_ns for words, ns in division.items()}
    assert sum(shares.values()) == pytest.approx(100)
    assert min(shares.values()) >= -1e-6
    rows = sum_by(((row.cause, row.length), row.total_ns) for row in idle.gaps)
    renamed = {words for cause in found for words, _ in cause.named}
    for words, kind in IN_TABLE.items():
        if words not in renamed:
            short = rows.get((kind, "short"), 0.0) + rows.get((kind, "middle"), 0.0)
            if kind == "value":  # long ones that are hardly longer are reads too
                short += sum(gaps.total_ns for gaps in slow_reads(idle))
            assert shares[words] == pytest.approx(100 * short / sum(rows.values()))
    for cause in found:
        assert cause.explained_ns <= division[WORDS[cause.cause]] * (1 + 1e-9)


def check(summary):
    """Hold an answer to what its words mean."""
    blocks = answer_blocks(summary)
    for shares in of_wholes(blocks):
        if None in (share for share, _ in shares):  # of a case without iterations nothing is idle or computing
            assert {share for share, _ in shares} == {None}
            continue
        assert sum(share for share, _ in shares) == pytest.approx(100, abs=1), shares
        printed = [float(text.removesuffix(" %")) for _, text in shares]
        assert sum(printed) == pytest.approx(100), shares
        if len(shares) == 3 and abs(sum(share for share, _ in shares) - 100) < 0.05:  # sentences name each of them
            assert printed == pytest.approx([share for share, _ in shares], abs=0.501), shares
    idle = {case.id: spent.idle_pct for case in summary.cases if (spent := time_without_profiler(case)) is not None}
    for case in summary.cases:
        check_idle_time(case)
        spent = case.spent
        if spent is None or spent.computing_pct is None:
            continue
        for slowed in (1.0, 1.7, 1000.0):
            seen = remove_profiler_idle_time(spent, slowed)
            parts = (seen.computing_pct, seen.copies_pct, seen.exposed_pct, seen.idle_pct)
            assert sum(parts) == pytest.approx(100, abs=1e-6)
            assert min(parts) >= 0
            assert seen.most_idle_pct >= seen.idle_pct - 1e-6
            times = [
                spent.span_ns * share / 100 for share in (spent.computing_pct, spent.copies_pct, spent.exposed_pct)
            ]
            kept = [seen.span_ns * share / 100 for share in (seen.computing_pct, seen.copies_pct, seen.exposed_pct)]
            assert kept == pytest.approx(times)  # a profiler adds to idle time alone
    of_case = {case.id: spent for case in summary.cases if (spent := time_without_profiler(case)) is not None}
    for block in blocks:
        if block.name == "spent":
            shares = dict(zip([row[0] for row in block.rows], [row[2] for row in block.rows], strict=True))
            spent, words = of_case[block.case], {"NCCL alone": "exposed_pct", "copies alone": "copies_pct"}
            assert {word: shares[word] for word in words if word in shares} == {
                word: getattr(spent, name) for word, name in words.items() if word in shares
            }
            if spent.computing_pct is not None:  # `alone` has one meaning, and no class of copies is beside it
                assert not {"copies", "NCCL", "sets"} & shares.keys()
        if block.name == "iterations" and isinstance(block, Table):
            names = [column.name for column in block.columns]
            for row in block.rows:
                if idle.get(row[0]) is not None:
                    assert row[names.index("gpu_busy_pct")] == pytest.approx(100 - idle[row[0]])
    for finding in summary.findings:
        if mean := re.search(r"\(the mean GPU (\d+) %\)", finding.text):
            assert int(mean[1]) == round(idle[finding.cases[0]])


@pytest.mark.parametrize("name", sorted(ASKED))
def test_the_parts_of_recorded_campaigns_add_up(name):
    check(answer(name))


@pytest.mark.parametrize("case", TIMELINES)
def test_the_parts_of_recorded_programs_add_up(case):
    check(score.summary_of(OPEN[case]))
