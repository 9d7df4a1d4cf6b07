"""First screens of recorded campaigns: the lines that matter, and that no name of a case decides what is said."""

import io
import math
import random
import re
from dataclasses import replace
from itertools import permutations

import pytest

from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.blocks import Finding, Table
from nsw.analysis.compared_screen import comparison_blocks
from nsw.analysis.first_screen import find_headline, first_screen_blocks
from nsw.analysis.sides import Side
from nsw.analysis.summary import ReportRequest, summarize
from nsw.campaign.compare import compare
from nsw.present.emit import flat_rows
from nsw.present.summary_view import column_texts, show_summary
from nsw.present.terminal import console
from nsw.quantities import duration

from .recorded import ASKED, answer, campaign, screen


@pytest.fixture(scope="module", params=sorted(ASKED))
def name(request):
    return request.param


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_a_terminal_of_24_lines_keeps_headline_table_and_the_first_finding_in_sight(name, columns, monkeypatch):
    summary = answer(name)
    lines = screen(summary, monkeypatch, columns=columns, lines=24)
    findings = [at for at, line in enumerate(lines) if line.startswith("* ")]
    weighty = [
        block for block in answer_blocks(summary, full=False) if isinstance(block, Finding) and block.shown == "always"
    ]
    assert min(1, len(weighty)) <= len(findings) <= 5
    assert len(lines) < 24  # the last is the prompt's
    assert max(map(len, lines)) <= columns
    assert sum("─────" in line for line in lines) == 1


def test_the_headline_of_a_first_screen_is_its_first_line(name, monkeypatch):
    summary = answer(name)
    lines = screen(summary, monkeypatch, columns=160)
    assert lines[0].endswith("(H100 80GB HBM3, 1 run each)")
    assert lines[-1].startswith("`nsw summarize --full`") or lines[-2].startswith("`nsw summarize --full`")
    full = screen(summary, monkeypatch, full=True, columns=160)
    assert full[0] == lines[0]
    assert len(full) > 100


def row(lines, *cells):
    """Whether a line has these cells in their order."""
    return any(re.search(r"\s+(?:\S.*\s)?".join(map(re.escape, cells)), line) for line in lines)


@pytest.mark.parametrize(
    "cells",
    [("launch", "39.70", "9 %", "launch-bound, 2,000 operations of", "CUDA graphs"),
     ("loader", "13 %", "waits 17.7 ms for the host", "look at the host there"),
     ("sync", "15 %", "reads 50 values back an iteration", "keep values on the GPU"),
     ("pageable", "100 %", "77 % pageable copies to the GPU, 7.02 GB/s", "pinned memory"),
     ("pinned", "31 % copies, no kernel beside", "prefetch on a stream"),
     ("healthy", "100 % FP32 GEMM, no tensor cores", "TF32 or bf16, if accurate enough"),
     ("onebad", "100 %", "iteration 11 of 25 (counted from 0) takes 136 ms", "look at the host there"),
     ("malloc", "23 %", "allocates and frees 1.28 ms", "allocate once, or pool")],
)  # fmt: skip
def test_eight_programs_have_eight_illnesses(cells, monkeypatch):
    assert row(screen(answer("ills"), monkeypatch, columns=160), *cells)


@pytest.mark.parametrize(
    ("reports", "do"),
    [("readable", "nsw reread"), ("unreadable", "nsw reread, with an nsys"), ("absent", "record its timeline again")],
)
def test_tables_without_gaps_say_what_measures_them_and_what_shows_without(reports, do, monkeypatch):
    data = replace(campaign("ills"), reports=reports)
    del data.tables["gaps"]
    lines = screen(summarize(data, ASKED["ills"]), monkeypatch, columns=160)
    assert " ".join(lines).startswith(
        "ills: 6 of 8 cases could save 20 % of their time or more, most of all ill-launch: probably launch-bound; one more"
        " is idle as long, and why is not measured (H100"
    )
    assert row(lines, "loader", "idle 87 %, gaps not measured", do)
    assert row(lines, "launch", "probably launch-bound, 2,000 operations of 1.07 us", "CUDA graphs, larger batch")
    assert row(lines, "malloc", "probably allocates and frees 1.28 ms", "allocate once, or pool")
    assert row(lines, "sync", "probably reads 50 values back an iteration", "keep values on the GPU")


def test_the_profilers_part_is_said_once_and_taken_off(monkeypatch):
    text = " ".join(screen(answer("ills"), monkeypatch))
    assert text.startswith(
        "ills: 7 of 8 cases could save 20 % of their time or more, most of all ill-launch: launch-bound (H100"
    )
    assert (
        "The profiler slowed ill-launch 1.4x, ill-sync 1.2x (others less than 1.1x): iterations and their idle time are"
        " corrected for it." in text
    )


@pytest.mark.parametrize("name", ["stencil", "amp"])
def test_no_variant_is_faster_than_the_bound_of_what_it_lacks(name):
    summary = answer(name)
    void = {case for doubt in summary.doubts for case in doubt.cases}
    for one, fastest in permutations(summary.variants, 2):
        first, causes = summary.hits[one.case_id][:1], {hit.cause for hit in summary.hits[fastest.case_id]}
        if one.series == fastest.series and not {one.case_id, fastest.case_id} & void and one.ratio and fastest.ratio:
            for hit in first:
                gain = 100 * (1 - one.ratio / fastest.ratio)
                assert hit.cause in causes or not hit.is_curable or hit.gain_pct >= gain - 5


def test_an_iteration_that_is_corrected_stands_beside_that_of_table_iterations(name):
    data = campaign(name)
    for id_ in {run.case_id for run in data.runs}:
        summary = summarize(replace(data, runs=[run for run in data.runs if run.case_id == id_]), ASKED[name])
        iterations = summary.cases[0].iterations
        if iterations is not None and summary.cases[0].spent.is_iteration:
            assert duration(iterations.med_ns) in find_headline(first_screen_blocks(summary))


def test_variants_are_compared_by_figure_and_counters_and_a_cold_start_is_called_one(monkeypatch):
    lines = screen(answer("stencil"), monkeypatch)
    text = " ".join(lines)
    assert text.startswith(
        "naive is the fastest at n=16384: column 5.6x slower, fat 1.49x slower (H100 80GB HBM3, 1 run each)"
    )
    assert row(lines, "16384", "naive", "258.1", "the same", "1,084.0", "59 %")
    assert row(lines, "column", "5.6x slower", "7,362.9", "10 %", "4 of 32 bytes of a sector used")
    assert row(lines, "fat", "1.49x slower", "39 %", "only 62 % of the warps fit")
    assert "Gain: at most 34 % of the kernels' time (variant-naive_n-16384 takes so much less)." in text
    first, doubt = (text.index(f"* variant-{name}: ") for name in ("column_n-16384", "naive_n-2048"))
    assert first < doubt
    assert "* variant-naive_n-2048: its figure is 104 to 127 times lower than its kernels' times imply" in text
    assert "No ratio to it is printed." in text
    assert "by the largest kernel; kernel: a launch in the profiled runs; set aside: no ratio, since the" in text


def test_the_screen_of_a_case_has_its_cold_start_too(monkeypatch):
    text = " ".join(screen(answer("stencil").only(["variant-naive_n-2048"]), monkeypatch))
    assert text.startswith("variant-naive_n-2048: gpoints 2.30 Gpoint/s (set aside: a cold start is in it)")
    assert "* variant-naive_n-2048: its figure is 104 to 127 times lower" in text


def test_a_pair_with_a_cold_start_is_set_aside_and_no_gain():
    data = campaign("stencil")
    runs = [run for run in data.runs if run.params["variant"] in {"naive", "column"}]
    blocks = first_screen_blocks(summarize(replace(data, runs=runs), ASKED["stencil"]))
    assert blocks[0].text.startswith("variant=column is 5.6x slower than naive at n=16384 (gpoints)")
    assert {row[0]: row[3] for row in blocks[1].rows} == {2048: "set aside", 16384: "slows"}


def test_a_case_with_counters_names_the_command_that_has_them_all():
    data = campaign("stencil")
    runs = [run for run in data.runs if run.params == {"variant": "column", "n": 16384}]
    stream = io.StringIO()
    show_summary(console(stream), summarize(replace(data, runs=runs), ReportRequest()), full=False, campaign="c")
    command = "`nsw summarize c --case variant-column_n-16384 --table kernels --json`"
    assert stream.getvalue().endswith(f"{command} has every counter\n")
    assert (
        "\n  `nsw summarize c --case variant-column_n-16384 --table kernels`\n" in stream.getvalue()
    )  # a sentence's proof


def test_a_table_that_is_cut_keeps_idle_time_and_every_share(monkeypatch):
    data = campaign("amp")
    runs = [run for run in data.runs if run.params == {"net": "alexnet", "amp": True}]
    summary = summarize(replace(data, runs=runs), ReportRequest())
    (table,) = (block for block in first_screen_blocks(summary) if isinstance(block, Table))
    monkeypatch.setattr("nsw.present.summary_view._LINES", 1)
    lines = screen(summary, monkeypatch, lines=2)
    cut = next(n for n, line in enumerate(lines) if line.endswith(" more)"))
    printed = [share[1] for line in lines[3:cut] if (share := re.search(r"\b(\d+ %)", line))]
    shares = column_texts(table)[2]
    assert printed == [*shares[: len(printed) - 1], shares[-1]]
    assert 1 < len(printed) < len(shares)
    assert "GPU idle" in lines[cut - 2]


def test_what_an_iteration_gains_is_told_beside_the_figure_and_spans_are_not_mixed(monkeypatch):
    lines = screen(answer("amp"), monkeypatch)
    text = " ".join(lines)
    assert text.startswith("amp=true helps 3, slows 2 of 5 (1.89x slower to 2.72x faster by images_per_sec)")
    assert row(lines, "mlp", "48,445.8 -> 34,088.3", "1.42x slower", "0.364 -> 0.316", "31 -> 51", "83 %")
    assert row(lines, "alexnet", "1.47x faster", "8.81 -> 3.68", "42 %")
    assert row(lines, "vgg11", "2.72x faster", "62.3 -> no iterations", "-", "-")
    assert "net-alexnet_amp-true 2.4x faster, the program 1.47x faster" in text
    assert (
        "net-lenet_amp-true (56 -> 94 operations, 1.89x slower), net-mlp_amp-true (31 -> 51 operations, 1.42x slower)"
        in text
    )


def renamed(name):
    """The campaign with other names of cases, in another order, and the old names."""
    data = campaign(name)
    cases = list(dict.fromkeys(run.case_id for run in data.runs))
    random.Random(7).shuffle(cases)
    new = {case: f"c{at}" for at, case in enumerate(cases, 1)}
    runs = [replace(run, case_id=new[run.case_id]) for case in cases for run in data.runs if run.case_id == case]
    if name == "ills":
        runs = [replace(run, params={"program": run.case_id}) for run in runs]
    return replace(data, runs=runs), {short: case for case, short in new.items()}


def test_names_and_order_of_cases_decide_nothing(name):
    data, old = renamed(name)
    known, other = answer(name), summarize(data, ASKED[name])

    def mapped(text):
        return re.sub(r"\bc\d+\b", lambda match: old.get(match[0], match[0]), text)

    hits = {old[case]: [(hit.cause, hit.what, mapped(hit.do), hit.fact, mapped(hit.advice)) for hit in some]
            for case, some in other.hits.items()}  # fmt: skip
    assert hits == {
        case: [(h.cause, h.what, h.do, h.fact, h.advice) for h in some] for case, some in known.hits.items()
    }
    # of cases that weigh the same the recipe's first leads a sentence
    assert {(f.name, frozenset(map(mapped, f.cases))) for f in other.findings} == {
        (f.name, frozenset(f.cases)) for f in known.findings
    }
    of_pairs = {"cold start", "host is the limit", "launch-bound"}
    assert {mapped(f.text) for f in other.findings if f.name in of_pairs} == {
        f.text for f in known.findings if f.name in of_pairs
    }


def test_a_contradicted_figure_is_in_no_headline_and_no_ratio():
    summary = summarize(campaign("stencil"), ASKED["stencil"])
    chosen = summary.only({case.id for case in summary.cases if case.params["n"] == 2048})
    blocks = first_screen_blocks(chosen)
    assert blocks[0].text.startswith(
        "no figure tells the fastest at n=2048, as that of naive is set aside; a launch of its kernel takes"
        " naive 16.70 us, fat 24.98 us, column 114.4 us ("
    )
    at = [column.name for column in blocks[1].columns].index("ratio")
    assert {row[at] for row in blocks[1].rows} == {"set aside"}
    assert {(row["ratio"], row["void"]) for row in flat_rows(chosen, "compare")} == {(None, True)}
    bars = next(block for block in answer_blocks(summary) if block.name == "compare")
    at = [column.name for column in bars.columns].index("ratio")
    assert [row[at] for row in bars.rows].count("set aside") == 3


def test_of_two_sides_summarize_prints_no_verdict_but_names_the_command_that_does():
    data = campaign("stencil")
    sides = {"naive": "before", "column": "after"}
    runs = [
        replace(run, params={"n": run.params["n"], "side": sides[run.params["variant"]]})
        for run in data.runs
        if run.params["variant"] in sides
    ]
    asked = replace(ASKED["stencil"], compare="side", baseline="before")
    blocks = first_screen_blocks(summarize(replace(data, runs=runs), asked))
    assert blocks[0].text.startswith(f"the verdict on before and after: `nsw compare {data.campaign}`")
    assert "effect" not in {column.name for column in blocks[1].columns}


def test_a_difference_between_two_cases_adds_up_and_says_where_it_is_not_the_figures(name):
    data = campaign(name)
    sides = [
        Side(case, "c", [run for run in data.runs if run.case_id == case], data.tables, ASKED[name].figure)
        for case in dict.fromkeys(run.case_id for run in data.runs)
    ]
    for first, second in permutations(sides, 2):
        comparison = compare(first, second)
        (row,) = comparison.rows
        sentences = [b.text for b in comparison_blocks(comparison) if isinstance(b, Finding) and b.name == "difference"]
        for explained, sentence in zip(comparison.explained.values(), sentences, strict=False):
            assert sum(change.ns for change in explained.changes) == pytest.approx(explained.ns, abs=1.0)
            gain = math.log(explained.before / explained.after)
            assert abs(gain - (row.gain or 0.0)) <= 0.05 or re.search(
                r"That is of the traced runs: |The figure does not change alike|Slow iterations do it", sentence
            ), sentence
