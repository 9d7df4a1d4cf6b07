"""`check:` of a recipe: a run of which a check does not hold is invalid, named with its line, and in no statistics."""

import hashlib
import json
from pathlib import Path

import pytest

GOOD, BAD = "n-1.baseline.r1", "n-2.baseline.r1"
# does what SAY holds, with n in $n
APP = "{{command: 'n={{{{ n }}}}; . {home}/say', figures: {{f: {{regex: 'f=(.*)', unit: images/s}}}}}}"


@pytest.fixture
def carried_out(nsw, recipe, home):
    """Carry out a program as cases n=1 and n=2 under one check."""

    def run(say: str, check: str, more: str = ""):
        (home / "say").write_text(say)
        file = recipe(APP.format(home=home), f"matrix: {{n: [1, 2]}}\ncheck:\n- {check}\n{more}")
        return nsw("run", file, "-s", "here")

    return run


def states(nsw):
    return {row["id"]: row["state"] for row in json.loads(nsw("status", "--runs", "--json").out)["runs"]}


PRINTS = "echo begin; echo f=$((n * 100)); [ $n = 1 ] || echo loss nan; [ $n = 2 ] || echo Converged >&2\n"
LEAVES = "echo f=1; head -c $((3000 - 1000 * n)) /dev/zero >out.h5\n"
DIGEST = hashlib.sha256(b"good\n").hexdigest()


@pytest.mark.parametrize(
    ("say", "check", "reason"),
    [
        (PRINTS, "{regex: 'nan', never: true}", "'nan' matches, which must never be: stdout:3: loss nan"),
        (PRINTS, "{regex: Converged}", "'Converged' matches nothing that the program printed"),
        (PRINTS, "{figure: f, near: 100, within: 5%}",
         "figure f is 200, and must be at most 105 (100 within 5%): stdout:2: f=200"),
        ("echo f=$((3 - n))\n", "{figure: f, at_least: 2}", "figure f is 1, and must be at least 2: stdout:1: f=1"),
        ("echo f=$((300 - 100 * n))\n", "{figure: f, near: 200, within: -5%}",
         "figure f is 100, and must be at least 190 (200 within -5%): stdout:1: f=100"),
        (LEAVES, "{file: out.h5, at_least: 2000B}", "file out.h5 has 1,000 bytes, and must have at least 2000B"),
        ("echo f=1; [ $n = 2 ] || echo good >out-$n.h5\n", "{file: 'out-{{ n }}.h5', at_least: 1B}",
         "file out-2.h5 is not there, or is no regular file"),
        ("echo f=1; echo good$((n - 1)) | tr -d 0 >out\n",
         f"{{file: out, sha256: {DIGEST}}}",
         f"and must have {DIGEST}"),
        ("echo f=1; echo $n >out\n", "{command: 'echo looks at {{ n }}; test $(cat out) = 1'}",
         "ended with exit status 1: checks.log:1: looks at 2"),
    ],
)  # fmt: skip
def test_a_run_that_a_check_does_not_hold_of_is_invalid_and_says_why(nsw, carried_out, say, check, reason):
    said = carried_out(say, check)
    assert said.code == 1
    assert states(nsw) == {GOOD: "done", BAD: "invalid"}
    assert "2 runs: 1 done, 1 invalid" in said.err
    assert f"not in these numbers: 1 run invalid, such as {BAD}: check 1: " in said.out
    assert reason in " ".join(said.out.split())  # lines end at COLUMNS
    (problem,) = json.loads(nsw("problems", "--json").out)["problems"]
    assert (problem["run"], problem["severity"]) == (BAD, "error")
    assert reason in problem["message"]
    assert reason in " ".join(nsw("status").out.split())


def test_an_invalid_run_is_in_no_statistics_and_its_figures_are_kept_aside(nsw, carried_out, home):
    carried_out(PRINTS, "{regex: 'nan', never: true}")
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert {row["case"] for row in rows} == {"n-1"}
    (row,) = json.loads(nsw("summarize", "--table", "invalid_figures", "--json").out)["rows"]
    assert (row["run"], row["name"], row["value"]) == (BAD, "f", 200)
    assert (next(Path("campaigns").iterdir()) / "reports" / BAD / "stdout").is_file()


def test_reread_decides_anew_and_retry_does_an_invalid_run_again(nsw, carried_out, home):
    carried_out(PRINTS, "{regex: 'nan', never: true}")
    recipe = home / "r.yaml"
    recipe.write_text(recipe.read_text().replace("'nan'", "'inf'"))
    said = nsw("reread", exits=0)
    assert f"{BAD}: invalid -> read" in said.out
    assert states(nsw)[BAD] == "done"
    recipe.write_text(recipe.read_text().replace("'inf'", "'nan'"))
    assert nsw("reread").code == 1
    assert states(nsw)[BAD] == "invalid"
    (home / "say").write_text("echo f=7\n")
    said = nsw("retry", exits=0)
    assert "again: 1 run: 1 invalid" in said.err
    assert states(nsw) == {GOOD: "done", BAD: "done"}
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert {row["case"]: row["median"] for row in rows} == {"n-1": 100, "n-2": 7}
    assert not json.loads(nsw("summarize", "--table", "invalid_figures", "--json").out)["rows"]


def test_what_the_job_did_not_write_down_is_a_warning_and_makes_no_run_invalid(nsw, carried_out, home):
    carried_out(LEAVES, "{file: out.h5, at_least: 1B}")
    recipe = home / "r.yaml"
    recipe.write_text(recipe.read_text().replace("out.h5", "other.h5"))
    assert nsw("reread").code == 0
    problems = json.loads(nsw("problems", "--json").out)["problems"]
    assert {(p["run"], p["severity"]) for p in problems} == {(GOOD, "warning"), (BAD, "warning")}
    assert "check 1: the job has not written down file other.h5, so that nobody can tell" in problems[0]["message"]


def test_a_gate_over_invalid_runs_is_undecided_and_says_which(nsw, carried_out):
    gate = 'report: {gate: {f: "-2%"}}\n'
    carried_out("echo f=$n\n", "{regex: 'nan', never: true}", gate)
    carried_out("echo f=$n; [ $n = 1 ] || echo nan\n", "{regex: 'nan', never: true}", gate)
    first, second = sorted(Path("campaigns").glob("t-*"), key=lambda folder: folder.stat().st_mtime)
    said = nsw("gate", first.name, second.name, exits=5)
    reason = f"1 run invalid, such as {BAD}: check 1: 'nan' matches, which must never be: stdout:2: nan"
    assert reason in said.out
    assert reason in nsw("compare", first.name, second.name).out
    carried_out("echo f=$n nan\n", "{regex: 'nan', never: true}", gate)
    (third,) = set(Path("campaigns").glob("t-*")) - {first, second}
    said = nsw("gate", first.name, third.name, exits=5)
    assert f"Gate undecided: nothing of {third.name} can be compared: 2 runs invalid" in said.err


def test_a_gate_over_a_campaign_of_which_one_side_is_invalid_is_undecided(nsw, recipe, home):
    (home / "say").write_text("echo f=$n; [ $n = 1 ] || echo nan\n")
    more = "matrix: {n: [1]}\ncheck: [{regex: nan, never: true}]\nreport: {gate: {f: '-2%'}}\n"
    assert nsw("run", recipe(APP.format(home=home), more), "-s", "here", "--against", "n=2").code == 1
    said = nsw("gate", exits=5)
    assert "has no valid runs of both sides: 3 runs invalid, such as " in said.err


def test_a_reference_of_one_site_takes_the_place_of_the_recipes(nsw, recipe):
    app = "{command: 'echo f=100', figures: {f: {regex: 'f=(.*)', unit: images/s}}}"
    site = "sites: {here: {check: [{figure: f, near: 100, within: 1%}]}}\n"
    assert nsw("run", recipe(app, "check: [{figure: f, near: 500, within: 1%}]\n"), "-s", "here").code == 1
    assert nsw("run", recipe(app, f"check: [{{figure: f, near: 500, within: 1%}}]\n{site}"), "-s", "here").code == 0


def test_a_command_that_outlives_the_runs_time_is_ended_and_the_run_is_invalid(nsw, recipe):
    file = recipe("{command: 'echo f=1'}", "check: [{command: sleep 600}]\n")
    (Path(file)).write_text(Path(file).read_text().replace("time: 1m", "time: 2s"))
    said = nsw("run", file, "-s", "here", exits=1)
    assert "'sleep 600' ended with exit status 124 (over the run's time?)" in said.out


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("{regexp: nan}", "unknown key 'regexp' in check"),
        ("{regex: nan, never: maybe}", "expected true or false, found 'maybe'"),
        ("{regex: '(', never: true}", "this regular expression is not valid"),
        ("{figure: g, at_least: 1}", "'g' is not a figure of app.figures"),
        ("{figure: f}", "this check holds always"),
        ("{figure: f, near: 5}", "'near' and 'within' belong together"),
        ("{figure: f, near: 5, within: 5}", "expected how far it may be"),
        ("{figure: f, at_least: 1M}", "expected a number, found '1M'"),
        ("{file: out, at_least: 5}", "the size 5.0 has no unit"),
        ("{file: out, sha256: abc}", "expected the 64 hexadecimal digits"),
        ("{file: out, never: true}", "'never' is no limit of a file"),
        ("{file: out, regex: nan}", "a check is of one of regex, figure, file, command, not of regex and file"),
        ("{command: 'verify {{ m }}'}", "the expression uses 'm', which no matrix defines"),
    ],
)
def test_a_check_that_can_not_be_meant_is_refused_at_its_line(nsw, recipe, check, message):
    file = recipe("{command: 'echo f=1', figures: {f: {regex: 'f=(.*)', unit: s}}}", f"check:\n- {check}\n")
    said = nsw("plan", file, "-s", "here", exits=2)
    assert f"{file}:7:" in said.err
    assert message in said.err
