"""What a person may mean by a word: several builds, a campaign that is over, a command of later."""

import csv
import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nsw.cli.application import COMMANDS
from nsw.engine.ledger import Ledger
from nsw.present.status_view import driver_state_text

from .test_exit_codes import refused

PACKED = """
nsw: 1
sites:
  packed: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 1, runs_per_job: 3}}
"""


def test_an_ambiguous_log_lists_the_builds_and_how_they_stand(nsw, recipe):
    app = "{command: 'true', build: {command: 'echo built {{ n }} >&2; exit {{ n }}', where: login}}"
    assert nsw("run", recipe(app, "matrix: {n: [0, 2]}\n"), "-s", "here").code != 0
    said = nsw("logs", "build")
    refused(said, "matches 2 builds", "name one of them:")
    lines = [line.split() for line in said.err.splitlines() if line.startswith("    ")]
    assert [state for _, state in lines] == ["failed", "done"]
    assert "built 2" in nsw("logs", lines[0][0]).out


def test_a_campaign_that_is_over_has_nothing_to_throttle(nsw, good):
    said = nsw("throttle", "3")
    assert (said.code, said.out) == (0, "")
    assert "nothing is left to throttle (2 runs: 2 done)" in said.err


def test_a_throttle_before_a_retry_is_kept_for_it(nsw, failing):
    assert "`nsw retry` will keep to 3 tasks at a time" in nsw("throttle", "3").err


def test_campaigns_as_csv_have_the_moment_and_how_many_runs_are_in_each_state(nsw, failing):
    (row,) = csv.DictReader(nsw("ls", "-f", "csv").out.splitlines())
    begun = datetime.fromisoformat(row["created"])
    assert timedelta(0) <= datetime.now(UTC) - begun < timedelta(hours=1)
    assert (row["runs"], row["done"], row["failed"], row["lost"]) == ("2", "1", "1", "0")
    (same,) = json.loads(nsw("ls", "--json").out)["campaigns"]
    assert (same["created"], same["counts"]) == (row["created"], {"done": 1, "failed": 1})
    assert begun.astimezone().strftime("%Y-%m-%d %H:%M") in nsw("ls").out


@pytest.mark.parametrize(("word", "told"), [
    ("submit", "'nsw run'"), ("sumarize", "did you mean 'summarize'?"), ("frobnicate", "`nsw --help` lists the commands"),
])  # fmt: skip
def test_a_command_that_there_is_not_says_what_there_is(nsw, word, told):
    refused(nsw(word, "--json"), told)


def test_the_exit_code_of_a_retry_is_that_of_the_runs_it_was_asked_for(nsw, recipe, home):
    app = "{command: 'echo {{ n }} >> HOME/ran; test -e HOME/{{ n }}'}".replace("HOME", str(home))
    assert nsw("run", recipe(app, "matrix: {n: [1, 2]}\n"), "-s", "here").code == 1
    (home / "1").touch()
    assert nsw("retry", "n-1.baseline.r1").code == 0
    assert nsw("retry", "n-2.baseline.r1").code == 1
    assert nsw("resume").code == 1


def test_a_retry_of_a_packed_run_says_which_others_are_done_with_it(nsw, recipe, home):
    (home / "sites.yaml").write_text(PACKED)
    app = "{command: 'echo {{ n }} >> HOME/ran; test {{ n }} -eq 2 -o -e HOME/cure'}".replace("HOME", str(home))
    assert nsw("run", recipe(app, "matrix: {n: [1, 2, 3, 4, 5]}\n"), "-s", "packed").code == 1
    (home / "cure").touch()
    (home / "ran").unlink()
    said = nsw("retry", "n-3.baseline.r1", exits=0)
    assert "done too: n-1.baseline.r1, in one task with n-3.baseline.r1" in said.err
    assert sorted((home / "ran").read_text().split()) == ["1", "3"]
    runs = {r["id"]: r["state"] for r in json.loads(nsw("status", "--runs", "--json").out)["runs"]}
    assert [runs[f"n-{n}.baseline.r1"] for n in (1, 2, 3, 4, 5)] == ["done", "done", "done", "failed", "failed"]


def test_without_a_name_the_log_is_that_of_the_run_that_failed(nsw, failing):
    assert nsw("logs").out == nsw("logs", "n-3.baseline.r1").out


def test_without_a_name_several_runs_are_listed(nsw, good):
    refused(nsw("logs"), "which run? there are 2", "case.baseline.r1  done")


def test_without_a_name_the_log_is_that_of_the_run_that_runs(nsw, good, failing):
    newest = [path for path in Path("campaigns").iterdir() if path != good]
    with Ledger(good / "campaign.db") as ledger:
        ledger.update_tasks(["case.baseline.r2"], state="running")
    assert nsw("logs", "-c", good.name).out.startswith("case.baseline.r2: running\n")
    assert nsw("logs", "-f", "-c", good.name).out.startswith("case.baseline.r2: running\n")
    with Ledger(newest[0] / "campaign.db") as ledger:
        ledger.update_tasks(["n-0.baseline.r1"], state="running")
    assert nsw("logs").out.startswith("n-3.baseline.r1: failed")
    assert nsw("logs", "-f").out.startswith("n-0.baseline.r1: running\n")
    with Ledger(newest[0] / "campaign.db") as ledger:
        ledger.update_tasks(["n-3.baseline.r1"], state="running")
    refused(nsw("logs", "-f"), "which run? 2 run now", "n-0.baseline.r1  running")


def test_a_run_to_retry_may_be_named_by_a_part(nsw, recipe):
    assert nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 1, 2]}\n"), "-s", "here").code == 1
    assert nsw("retry", "n-1").code == 1
    attempts = {r["id"]: r["attempt"] for r in json.loads(nsw("status", "--runs", "--json").out)["runs"]}
    assert attempts == {"n-0.baseline.r1": 1, "n-1.baseline.r1": 2, "n-2.baseline.r1": 1}
    refused(nsw("retry", ".r1"), "matches 2 runs", "n-2.baseline.r1  failed")
    more = "`nsw run RECIPE --into CAMPAIGN --case n-0 --set repeats=N`, with more repeats than it has, adds a run"
    refused(nsw("retry", "n-0"), "run n-0.baseline.r1 did not fail", more)


@pytest.mark.parametrize("command", [["status"], ["summarize"], ["throttle", "2"], ["cancel"], ["resume"]])
def test_the_campaign_may_be_named_with_an_option_by_every_command(nsw, good, command):
    assert nsw(*command, "-c", good.name[:5]).code == 0
    assert nsw(*command, good.name, "-c", good.name).code == 0
    refused(nsw(*command, good.name, "-c", "other"), "two campaigns are named")


def test_a_campaign_that_is_over_has_nothing_to_cancel(nsw, good):
    said = nsw("cancel")
    assert (said.code, said.out) == (0, "")
    assert "nothing is left to cancel (2 runs: 2 done)" in said.err


def test_on_a_narrow_terminal_what_counts_is_not_cut(nsw, failing, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = failing.name
    assert f" {name} " in nsw("ls").out
    assert "2 runs: 1 done, 1 failed" in nsw("ls").out
    plan = nsw("plan", "cpu_quickstart", "-s", "here").out
    for head in ("tasks", "nodes", "GPUs", "limit", "each task"):  # a heading may wrap
        assert f" {head}" in plan


def test_a_reason_is_never_cut(nsw, recipe, monkeypatch):
    words = "RuntimeError: " + " ".join(f"word{n}" for n in range(20))
    assert nsw("run", recipe(f"{{command: 'echo {words} >&2; false'}}"), "-s", "here").code == 1
    monkeypatch.setenv("COLUMNS", "80")
    told = nsw("status").out.split()
    assert all(word in told for word in words.split())


def test_the_end_of_a_run_says_where_to_look_next(nsw, recipe):
    said = nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [1, 2]}\n"), "-s", "here")
    assert "not in these numbers: 2 runs failed, such as n-1.baseline.r1: exit status 1" in said.out
    assert "`nsw logs n-1.baseline.r1` prints its output" in said.err
    said = nsw("run", recipe("{command: 'true'}"), "-s", "here")
    assert "nsw logs" not in said.err
    assert said.out.rstrip().endswith("--full` has all tables and findings")


def test_ls_elsewhere_shows_the_campaigns_that_nsw_acts_for_by_their_folders(nsw, good, tmp_path, monkeypatch):
    folder = good.absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said = nsw("ls")
    assert "no campaign under campaigns; those elsewhere, by their folders" in said.out
    assert f" {folder} " in said.out
    assert "begun" in said.out
    assert nsw("status", str(folder)).code == 0
    assert str(folder) not in nsw("ls", "--root", "nowhere").out
    shutil.rmtree(folder)
    assert str(folder) not in nsw("ls").out


def test_what_waits_is_not_driven_now():
    assert driver_state_text({"running": 1, "planned": 3}) == "driven by an nsw now"
    assert driver_state_text({"queued": 2, "planned": 3}) == "an nsw waits with it for the queue"
    assert driver_state_text({"done": 2, "planned": 3}) == "an nsw waits with it for its turn"


def test_the_help_has_the_daily_commands_on_a_screen_and_names_the_others(nsw):
    text = nsw("--help").out
    lines = text.splitlines()
    assert len(lines) <= 35
    assert max(map(len, lines)) <= 80
    assert all(re.search(rf"\b{name}\b", text) for name in COMMANDS)
    assert {"Start", "Watch", "Results", "Compare", "Sites"} <= set(lines)
    assert nsw("help").out == nsw().out == text


def test_help_all_explains_each_command_and_help_of_one_that_one(nsw):
    every = nsw("help", "--all").out
    assert all(re.search(rf"│ {name} ", every) for name in COMMANDS)
    assert nsw("help", "ls").out == nsw("ls", "--help").out
