"""Each figure of a sentence about kernels is in the table that its command prints: over all that was recorded."""

import io
import re

import pytest

from nsw.analysis.answer.kernels import counters_behind_findings, kernel_table_blocks
from nsw.analysis.rules.counters import share_of_time_with_kernels
from nsw.present.summary_view import show_blocks, show_counters_behind_findings
from nsw.present.terminal import console

from .test_diagnosis import OPEN, score

COUNTED = sorted(case for case in OPEN if case[0] in "kh")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?\b")


def number(text):
    return float(text.replace(",", ""))


def printed(kernels):
    """The numbers of the table, as they are and in the larger units of sentences."""
    stream = io.StringIO()
    show_blocks(console(stream), kernel_table_blocks(kernels, limit=None), "always")
    show_counters_behind_findings(console(stream), {None: kernels})
    return [number(text) / 1000**power for text in NUMBER.findall(stream.getvalue()) for power in range(4)]


def is_printed(text, table):
    """Whether a number of a sentence is in a table, to its digits."""
    if "e" in text:
        return any(f"{value:.3g}" == text for value in table)
    decimals = len(text.partition(".")[2])
    return any(abs(value - number(text)) <= 0.51 / 10**decimals for value in table)


@pytest.mark.parametrize("case", COUNTED)
def test_figures_of_a_sentence_are_in_the_table_that_proves_it(case):
    summary = score.summary_of(OPEN[case])
    for hit in (hit for hits in summary.hits.values() for hit in hits if hit.table == "kernels"):
        table = printed(next(each.kernels for each in summary.cases if each.id == hit.case))
        fact = re.sub(r"^\S+( \(\d+ % of the kernels' time\))?", "", hit.fact)
        figures = [text for text in NUMBER.findall(fact) if number(text) >= 100]
        figures += [
            share for pair in re.findall(r"(\d+) % busy|\b(?:DRAM|L2|L1) (\d+) %", fact) for share in pair if share
        ]
        assert [text for text in figures if not is_printed(text, table)] == [], hit.fact


@pytest.mark.parametrize("case", COUNTED)
def test_a_gain_is_what_its_table_says_can_be_won_of_the_kernel_times_its_share(case):
    summary = score.summary_of(OPEN[case])
    for each in summary.cases:
        at_work = 100 * share_of_time_with_kernels(each.idle_gpu) if each.idle_gpu else 100.0
        values = {(cause, name): text for block in counters_behind_findings(None, each.kernels)
                  for _, cause, name, text in block.rows}  # fmt: skip
        for hit in summary.hits[each.id]:
            if hit.table == "kernels" and "; likewise " not in hit.fact:
                won, share = (
                    number(values[hit.cause, name].removesuffix(" %"))
                    for name in ("can be won of the kernel's time", "its share of the kernels' time")
                )
                assert hit.gain_pct == pytest.approx(at_work * won * share / 1e4, abs=0.2), hit.fact
        assert not any(name.startswith("inst_") and text == "0 inst" for (_, name), text in values.items())
