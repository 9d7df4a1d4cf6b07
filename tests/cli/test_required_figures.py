"""A run without a required figure is a run to look at: exit 1, in status, summary and problems, and retry takes it."""

import json
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.readers import program_figures

# prints its figure only where n is 1, or once `cure` is there
APP = "{{command: 'echo g=1; if [ {{{{ n }}}} = 1 ] || [ -e {home}/cure ]; then echo f={value}; fi', figures: {{{f}}}}}"
FIGURE = "f: {{regex: 'f=(.*)', unit: s{more}}}, g: {{regex: 'g=(.*)', unit: s}}"


@pytest.fixture
def carried_out(nsw, recipe, home):
    """Carry out a recipe of two runs, of which one prints no f."""

    def run(more="", value="2"):
        app = APP.format(home=home, value=value, f=FIGURE.format(more=more))
        return nsw("run", recipe(app, "matrix: {n: [1, 2]}\n"), "-s", "here")

    return run


def test_a_run_without_a_required_figure_is_one_to_look_at(nsw, carried_out):
    said = carried_out()
    assert said.code == 1
    what = "error: reports/n-2.baseline.r1/stdout: required figure f was not found in the program's output"
    assert what in said.err
    assert (
        "1 run done without a required figure, such as n-2.baseline.r1: `nsw problems` says what to correct" in said.out
    )
    assert "2 runs: 2 done (1 without a required figure)" in said.err
    assert (said.out + said.err).count("nsw reread") == 1, "what to do is printed once"
    assert nsw("summarize").code == 1
    status = nsw("status")
    assert "2 runs: 2 done (1 without a required figure)" in status.out
    assert what in status.out
    assert "2 runs: 2 done (1 without a required figure)" in nsw("ls").out
    assert "`nsw reread -c" in status.out
    (row,) = [line for line in status.out.splitlines() if line.lstrip().startswith("n-2.baseline.r1")]
    assert row.split()[1] == "done"
    assert row.rstrip().endswith("without a required figure")
    assert "n-1.baseline.r1" not in status.out
    head = nsw("logs", "n-2.baseline.r1").out.splitlines()[0]
    assert head.startswith("n-2.baseline.r1: done, without a required figure (`nsw problems")
    assert nsw("logs", "n-1.baseline.r1").out.splitlines()[0] == "n-1.baseline.r1: done"
    data = json.loads(nsw("status", "--json").out)
    assert data["incomplete"] == 1
    assert {r["id"]: (r["state"], r["reading"]) for r in data["runs"]} == {
        "n-1.baseline.r1": ("done", "read"),
        "n-2.baseline.r1": ("done", "incomplete"),
    }
    (problem,) = json.loads(nsw("problems", "--json").out)["problems"]
    assert (problem["run"], problem["severity"]) == ("n-2.baseline.r1", "error")
    assert "`required: false`" in problem["fix"]
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert {(r["case"], r["name"]) for r in rows} == {("n-1", "f"), ("n-1", "g"), ("n-2", "g")}


def test_where_nothing_was_measured_no_pass_is_proposed(nsw, recipe):
    app = "{command: 'echo f=1', figures: {f: {regex: 'nomatch (.*)', unit: s}}}"
    said = nsw("run", recipe(app, "matrix: {n: [1, 2]}\n"), "-s", "here")
    assert "nothing was measured of 2 cases" in said.out
    assert "Not measured: where the time goes" not in said.out


def test_the_first_line_that_a_figure_is_from_is_shown_and_a_text_that_is_no_number_says_so(nsw, recipe):
    figures = "figures: {speed: {regex: 'took (.*)', unit: ms}}"
    said = nsw("run", recipe("{command: \"printf 'took 804\\n took 9 '\", " + figures + "}"), "-s", "here")
    assert ".baseline.r1 printed 'took 804': speed = 804.0, the first of 2 matches (pick: last)\n" in said.err
    assert "speed =" not in nsw("summarize").err
    said = nsw("run", recipe("{command: 'echo took 804 ms', " + figures + "}"), "-s", "here")
    assert "required figure speed is not a number: its regex matched '804 ms'" in said.err
    assert "put the number alone into its group, such as ([\\d.]+), and `nsw reread`" in said.err
    assert "retry" not in said.out + said.err
    said = nsw("run", recipe("{command: 'echo took 3,14', " + figures + "}"), "-s", "here")
    assert "let the program print a point for the decimal comma" in said.err
    assert "[\\d.]+" not in said.err


def test_a_regex_that_explodes_costs_its_figure_and_no_other(nsw, recipe, monkeypatch):
    monkeypatch.setattr(program_figures, "_SECONDS", 0.3)
    app = "{command: 'echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac g=1', figures: {f: {regex: '(a+)+b', unit: s}, "
    app += "g: {regex: 'g=(.*)', unit: s}}}"
    assert nsw("run", recipe(app, "matrix: {n: [1]}\n"), "-s", "here").code == 1
    (problem,) = json.loads(nsw("problems", "--json").out)["problems"]
    assert problem["report"] == "reports/n-1.baseline.r1/stdout"
    assert problem["message"] == "figure f was given up: its regex '(a+)+b' takes too long on the program's output"
    assert "without a repetition of a repetition, such as (a+)+, then `nsw reread`" in problem["fix"]
    (row,) = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert row["name"] == "g"


def test_status_lists_a_run_that_is_done_and_that_something_is_to_be_said_of(nsw, carried_out):
    carried_out()
    with Ledger(next(Path("campaigns").iterdir()) / "campaign.db") as ledger:
        ledger.update_tasks(["n-1.baseline.r1", "n-2.baseline.r1"], reason="job 7 started it a second time")
    rows = {line.split()[0]: line.rstrip() for line in nsw("status").out.splitlines() if line.startswith(" n-")}
    assert rows["n-1.baseline.r1"].endswith("  job 7 started it a second time")
    assert rows["n-2.baseline.r1"].endswith("  without a required figure; job 7 started it a second time")


def test_a_retry_does_it_again_and_nothing_else(nsw, carried_out, home):
    carried_out()
    (home / "cure").touch()
    assert nsw("retry", "--failed").code == 0
    runs = {r["id"]: (r["attempt"], r["reading"]) for r in json.loads(nsw("status", "--json").out)["runs"]}
    assert runs == {"n-1.baseline.r1": (1, "read"), "n-2.baseline.r1": (2, "read")}
    assert "nothing to retry" in nsw("retry").err


def test_a_figure_that_is_not_required_may_be_absent(nsw, carried_out):
    said = carried_out(", required: false")
    assert said.code == 0
    note = "note: 1 run without figure f, which is not required, such as n-2.baseline.r1"
    for text in (said.err, nsw("status").out, nsw("problems").out):
        assert (text.count(note), "warning" in text) == (1, False)
    assert "figure f" not in nsw("summarize").out
    (problem,) = json.loads(nsw("problems", "--json").out)["problems"]
    assert (problem["run"], problem["severity"]) == ("n-2.baseline.r1", "note")
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert {(r["case"], r["name"]) for r in rows} == {("n-1", "f"), ("n-1", "g"), ("n-2", "g")}
    assert "without a required figure" not in said.out + said.err
    assert "nothing to retry" in nsw("retry").err


def test_a_figure_that_is_no_number_counts_as_absent(carried_out):
    said = carried_out(value="nan")
    assert said.code == 1
    assert "n-1.baseline.r1/stdout: required figure f is not a number: nan or inf" in said.err


def test_a_text_that_matched_and_is_no_number_is_named(carried_out):
    said = carried_out(value="5ms")
    assert said.code == 1
    assert "n-1.baseline.r1/stdout: required figure f is not a number: its regex matched '5ms'" in said.err
    assert "n-2.baseline.r1/stdout: required figure f was not found" in said.err


def test_a_figure_that_is_not_required_and_no_number_is_warned_about(carried_out):
    said = carried_out(", required: false", value="nan")
    assert said.code == 0
    assert "warning: reports/n-1.baseline.r1/stdout: figure f is not a number: nan or inf" in said.err
    assert "note: 1 run without figure f" in said.err


def test_completion_of_retry_offers_it(carried_out):
    from nsw.cli.completion import value_completions

    carried_out()
    assert value_completions("retry", "runs", {}, "") == ["n-2.baseline.r1"]
