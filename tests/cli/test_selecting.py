"""Runs as a person names them, the same in every command that takes them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from nsw.campaign.selection import matching_rows
from nsw.engine.ledger import Ledger

from .test_exit_codes import refused


@pytest.fixture
def four(nsw, recipe):
    """A campaign of four cases, a to the power of b, of which those with b=2 failed."""
    app = "{command: 'echo out-{{ a }}-{{ b }}; exit $(({{ b }} - 1))'}"
    assert nsw("run", recipe(app, "matrix: {a: [1, 2], b: [1, 2]}\n"), "-s", "here").code == 1
    return next(Path("campaigns").iterdir())


WAYS = [
    (("--case", "a-1_b-1"), ["a-1_b-1"]),
    (("--case", "a-1_b-1.baseline.r1"), ["a-1_b-1"]),
    (("--case", "a=1"), ["a-1_b-1", "a-1_b-2"]),
    (("--case", "a=1,b=2"), ["a-1_b-2"]),
    (("--case", "*b-2"), ["a-1_b-2", "a-2_b-2"]),
    (("--case", "a=2", "--exclude", "b=1"), ["a-2_b-2"]),
    (("--case", "a-1_b-1", "--case", "a=2"), ["a-1_b-1", "a-2_b-1", "a-2_b-2"]),
    (("--case", "a=1", "--case", "b=2"), ["a-1_b-2"]),
    (("--case", "a=1", "--case", "a=2", "--case", "b=2"), ["a-1_b-2", "a-2_b-2"]),
    (("--case", "a=1,2", "--case", "b=2"), ["a-1_b-2", "a-2_b-2"]),
    (("--case", "a=1", "--case", "b=2", "--case", "a-2_b-1"), ["a-1_b-2", "a-2_b-1"]),
    (("--case", "a=1,b=2", "--case", "a=2"), ["a-1_b-2", "a-2_b-1", "a-2_b-2"]),
    (("a=1", "--case", "b=2"), ["a-1_b-2"]),
    (("--exclude", "a=1"), ["a-2_b-1", "a-2_b-2"]),
    (("--exclude", "a=1", "--exclude", "b=1"), ["a-2_b-2"]),
    (("a=2",), ["a-2_b-1", "a-2_b-2"]),
    (("a-2_b-1.baseline.r1",), ["a-2_b-1"]),
]


@pytest.mark.parametrize(("words", "cases"), WAYS)
def test_status_and_summarize_show_what_is_named(nsw, four, words, cases):
    assert [run["case"] for run in json.loads(nsw("status", "--json", *words).out)["runs"]] == cases
    assert [case["id"] for case in json.loads(nsw("summarize", "--json", *words).out)["cases"]] == cases


def test_a_pass_names_its_runs_of_all_cases(nsw, recipe, home):
    name = recipe("{command: 'echo {{ a }}'}", "matrix: {a: [1, 2]}\n")
    two = "passes: [{baseline: {name: free}}, {baseline: {name: again}}]"
    (home / name).write_text(re.sub("passes:.*", two, (home / name).read_text()))
    assert nsw("run", name, "-s", "here").code == 0
    for words, found in (
        (("again",), ["a-1.again.r1", "a-2.again.r1"]),
        (("--case", "a=2", "--exclude", "free"), ["a-2.again.r1"]),
    ):
        assert [run["id"] for run in json.loads(nsw("status", "--json", *words).out)["runs"]] == found


def test_status_counts_and_shows_the_named_runs_alone(nsw, four):
    said = nsw("status", "a=1")
    assert "2 runs: 1 done, 1 failed" in said.out
    assert "a-1_b-1.baseline.r1" in said.out
    assert "a-2" not in said.out


def test_logs_takes_the_same_names(nsw, four):
    assert "out-1-2" in nsw("logs", "a-1_b-2").out
    assert "out-2-1" in nsw("logs", "a=2,b=1").out
    assert "out-2-2" in nsw("logs", "a=2").out, "of several that which failed"
    assert "out-2-2" in nsw("logs", "--case", "a=2").out
    refused(nsw("logs", "*"), "which run? 2 failed or were lost")
    refused(nsw("logs", "--case", "a=3"), "--case a=3: no run matches")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("name=slow", "no case has name=slow; did you mean 'slower'? parameters: n (1, 2), name (slower, fast)"),
        ("n=1,name=slow", "no case has name=slow; did you mean 'slower'? parameters: n (1, 2), name (slower, fast)"),
        ("nam=fast", "no case has nam=fast; did you mean 'name'? parameters: n (1, 2), name (slower, fast)"),
        ("speed=1", "no case has speed=1; parameters: n (1, 2), name (slower, fast)"),
        ("n=3,4", "no case has n=3,4; parameters: n (1, 2), name (slower, fast)"),
    ],
)
def test_parameters_that_no_case_has_are_named_beside_those_that_there_are(nsw, recipe, word, hint):
    name = recipe("{command: 'echo {{ n }}'}", "matrix: {n: [1, 2], name: [slower, fast]}\n")
    refused(nsw("run", name, "-s", "here", "--case", word), f"--case {word}: no case matches", f"hint: {hint}\n")
    assert nsw("run", name, "-s", "here").code == 0
    refused(nsw("summarize", "--case", word), f"--case {word}: no run matches", f"hint: {hint}\n")
    campaign = next(Path("campaigns").iterdir()).name
    refused(nsw("compare", f"{campaign}:{word}", "nothing"), f"{campaign} has no run {word}\n", f"hint: {hint}\n")


def test_of_many_values_the_first_are_listed(nsw, recipe):
    name = recipe("{command: 'echo {{ n }}'}", "matrix: {n: [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]}\n")
    refused(nsw("plan", name, "-s", "here", "--case", "x=1"), "n (10, 11, 12, 13, 14, 15, 16, 17 and 2 more)\n")


def test_retry_takes_the_same_names_and_does_what_failed_of_them(nsw, four):
    def attempts():
        with Ledger(four / "campaign.db", read_only=True) as ledger:
            return [run.attempt for run in ledger.runs()]

    assert nsw("retry", "a=1").code == 1
    assert attempts() == [1, 2, 1, 1]
    assert nsw("retry", "--case", "a=2").code == 1
    assert attempts() == [1, 2, 1, 2]
    assert nsw("retry", "*b-2*", "--exclude", "a=1").code == 1
    assert attempts() == [1, 2, 1, 3]
    refused(nsw("retry", "b=1"), "b=1: none of these runs failed")
    refused(nsw("retry", "b=1"), "hint: `nsw run RECIPE --into CAMPAIGN` does those again")
    assert attempts() == [1, 2, 1, 3]


def test_problems_are_those_of_the_named_runs(nsw, home, recipe):
    app = "{command: 'echo {{ a }}', figures: {f: {regex: 'f=(.*)', unit: s, required: false}}}"
    nsw("run", recipe(app, "matrix: {a: [1, 2]}\n"), "-s", "here")
    said = nsw("problems", "--json", "--case", "a=2", exits=0)
    rows = json.loads(said.out)["problems"]
    assert {row["run"] for row in rows} == {"a-2.baseline.r1"}


def test_mistaken_names_have_a_hint_that_works(nsw, four, home):
    (home / "e09.sqlite").write_text("")
    (home / "campaigns" / "amp-1" / "tables").mkdir(parents=True)
    shutil.copytree(four, home / "campaigns" / "stencil-20200101-000000-aaaa")
    for words, hint in (
        (["summarize", "--case", "1"], "did you mean a=1 or b=1?"),
        (["compare", four.name, "1", "a=2"], "did you mean a=1 or b=1?"),
        (["summarize", four.name, "a-1_b-1"], "`--case a-1_b-1` names a case"),
        (["run", "r.yaml", "--site", "local", "--full"], "run --help` lists the options"),
        (["compare", "stencl", four.name], "did you mean 'stencil'?"),
        (["compare", "a=1", "a=2", four.name], "the campaign comes first"),
        (["compare", four.name, "e99.sqlite"], "did you mean 'e09.sqlite'?"),
        (["compare", "e09.sqlite"], "`nsw compare A B` takes two"),
        (["compare", four.name, "--case", "a=1"], "`nsw compare CAMPAIGN CASE CASE` compares two cases"),
        (["read", four.name], f"`nsw summarize {four.name}` has its answer"),
        (["summarize", "amp"], "reads reports that are in it"),
    ):
        refused(nsw(*words), hint)
    assert "amp-1 has tables, and no campaign.db" in nsw("ls").out


def test_a_word_that_names_neither_campaign_nor_run_is_refused(nsw, four):
    refused(nsw("status", "nothing"), "no campaign 'nothing'", f"job of the newest one there, {four.name}")
    refused(
        nsw("status", "nothing", "-c", four.name),
        "two campaigns are named",
        "nothing is not a run, case, pattern or job",
    )
    assert nsw("status", four.name).code == 0
    assert nsw("status", four.name, "-c", four.name).code == 0


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("12", ["a-1_b-1.baseline.r1", "a-1_b-2.baseline.r1"]),
        ("12_3", ["a-1_b-1.baseline.r1"]),
        ("123", ["a-2_b-1.baseline.r1"]),
        ("1", []),
    ],
)
def test_a_job_id_names_its_run_and_that_of_an_array_all_of_its_tasks(four, word, found):
    with Ledger(four / "campaign.db", read_only=True) as ledger:
        rows = ledger.runs()
    ids = [row.id for row in rows]
    jobs = dict(zip(ids, ["12_3", "12[4].host", "123.host", "1234"], strict=True))
    assert [row.id for row in matching_rows(word, rows, jobs)] == found


@pytest.fixture
def newer(nsw, recipe, four):
    """A campaign that was made after that of `four`, which is named."""
    text = Path("r.yaml").read_text()
    assert nsw("run", recipe("{command: 'true'}", "matrix: {c: [1]}\n"), "-s", "here").code == 0
    Path("r.yaml").write_text(text)
    return four


def test_a_campaign_may_stand_before_the_runs_in_every_command_that_takes_runs(nsw, newer):
    assert "c-1" in nsw("status", "--runs").out
    assert "out-1-2" in nsw("logs", newer.name, "--case", "a=1").out
    assert nsw("fetch", newer.name, "a-1_b-1", "--file", "stdout", "--yes").code == 0
    assert (newer / "fetched/a-1_b-1.baseline.r1/stdout").exists()
    assert nsw("retry", newer.name, "a=1").code == 1
    with Ledger(newer / "campaign.db", read_only=True) as ledger:
        assert {run.id: run.attempt for run in ledger.runs()} == {
            "a-1_b-1.baseline.r1": 1, "a-1_b-2.baseline.r1": 2, "a-2_b-1.baseline.r1": 1, "a-2_b-2.baseline.r1": 1,
        }  # fmt: skip
    refused(nsw("retry", "nothing"), "there is no run nothing")


def test_reread_and_clean_keep_to_the_named_runs(nsw, four):
    assert nsw("reread", "--case", "a=1").code == 1, "one of them had failed"
    refused(nsw("reread", "--case", "a=3"), "--case a=3: no run matches")
    scratch = four / "scratch" / "runs"
    before = {path.name for path in scratch.iterdir()}
    nsw("clean", "--case", "a=1", "--dry-run", exits=0)
    assert {path.name for path in scratch.iterdir()} == before
    nsw("clean", "--case", "a=1", "--exclude", "b=2", "--everything", "--yes", exits=0)
    assert {path.name for path in scratch.iterdir()} == before - {"a-1_b-1.baseline.r1"}
    assert "holds nothing of these runs" in nsw("clean", "--case", "a-1_b-1", "--yes").err
    assert nsw("retry").code == 1, "scripts and files of the campaign are still there"
    assert nsw("clean", "--everything", "--yes").code == 0
    assert not scratch.exists()


def test_another_figure_compares_the_cases(nsw, recipe):
    figures = "{f: {regex: 'f=(.*)', unit: s}, g: {regex: 'g=(.*)', unit: MB}}"
    one = recipe(
        f"{{command: 'echo f={{{{ n }}}}; echo g=$((10 - {{{{ n }}}}))', figures: {figures}}}",
        "matrix: {n: [1, 2, 3]}\n",
    )
    assert nsw("run", one, "-s", "here").code == 0
    assert "best 1.00 s at n=1" in nsw("summarize").out
    assert "best 9.00 MB at n=1" in nsw("summarize", "--figure", "g").out
    refused = nsw("summarize", "--figure", "h", exits=2)
    assert "--figure h: no run of" in refused.err
    assert "measured: f, g" in refused.err


def test_a_campaign_that_cannot_be_read_has_its_reason_on_a_line_of_its_own(nsw, good):
    (good.parent / "old").mkdir()
    (good.parent / "old/campaign.db").write_text("no ledger")
    shown = nsw("ls").out.splitlines()
    assert shown[-1].startswith("old: campaigns/old/campaign.db is damaged: ")
