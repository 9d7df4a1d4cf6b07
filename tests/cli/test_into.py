"""`nsw run --into CAMPAIGN`: cases that it lacks are added, what changed is done again, the rest is left alone."""

import json
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.recipe.load import load_recipe

APP = "{command: 'bash go.sh {{ n }}', files: [go.sh], figures: {f: {regex: 'f=(.*)', unit: s}}}"


@pytest.fixture
def write(recipe, home):
    """Write the recipe and its program: (values of n, what the program prints before them)."""

    def both(values, begin="", more=""):
        (home / "go.sh").write_text(f"echo $1 >>{home}/ran; echo f={begin}$1\n")
        recipe(APP, f"matrix: {{n: {values}}}\n{more}")

    return both


@pytest.fixture
def begun(nsw, write):
    write([1, 2])
    nsw("run", "r.yaml", "-s", "here", exits=0)
    return next(Path("campaigns").iterdir())


def figures(nsw):
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    return {row["case"]: row["median"] for row in rows}


def ran(home):
    return sorted(int(n) for n in (home / "ran").read_text().split())


def test_cases_that_it_lacks_are_added(nsw, begun, write, home):
    write([1, 2, 3, 4])
    plan = nsw("plan", "r.yaml", "--into", begun.name, exits=0)
    assert "adds 2 runs: n-3.baseline.r1, n-4.baseline.r1" in plan.out
    assert "leaves 2 runs as they are" in plan.out
    assert "2 cases" not in plan.out or "2 runs, 1 job" in plan.out
    assert ran(home) == [1, 2]
    nsw("run", "r.yaml", "--into", begun.name, exits=0)
    assert ran(home) == [1, 2, 3, 4]
    assert figures(nsw) == {"n-1": 1, "n-2": 2, "n-3": 3, "n-4": 4}
    assert len(list(Path("campaigns").iterdir())) == 1
    assert load_recipe(begun / "recipe.lock.yaml").recipe.matrix.parameters["n"] == [1, 2, 3, 4]
    again = nsw("run", "r.yaml", "--into", begun.name)
    assert (again.code, "nothing to do" in again.err) == (0, True)


def test_what_has_another_program_is_done_again_and_why_is_said(nsw, begun, write, home):
    write([1, 2, 3], begin="1")
    data = json.loads(nsw("plan", "r.yaml", "--into", begun.name, "--json").out)
    assert data["into"] == {
        "campaign": begun.name, "added": ["n-3.baseline.r1"], "same": 0, "not_in_recipe": 0,
        "again": dict.fromkeys(["n-1.baseline.r1", "n-2.baseline.r1"], "go.sh changed"),
    }  # fmt: skip
    assert [r["id"] for r in data["runs"]] == ["n-1.baseline.r1", "n-2.baseline.r1", "n-3.baseline.r1"]
    said = nsw("run", "r.yaml", "--into", begun.name, exits=0)
    assert "does 2 runs again, since go.sh changed: n-1.baseline.r1, n-2.baseline.r1" in said.err
    assert figures(nsw) == {"n-1": 11, "n-2": 12, "n-3": 13}
    assert {r["id"]: r["attempt"] for r in json.loads(nsw("status", "--json").out)["runs"]} == {
        "n-1.baseline.r1": 2, "n-2.baseline.r1": 2, "n-3.baseline.r1": 1,
    }  # fmt: skip
    assert "changed since" not in nsw("retry").err
    assert nsw("run", begun / "recipe.lock.yaml", "-s", "here").code == 0


def test_only_the_runs_whose_environment_changed_are_done_again(nsw, begun, recipe, home):
    recipe(APP.replace("files:", "env: {N: '{{ n * (n - 1) }}'}, files:"), "matrix: {n: [1, 2]}\n")
    plan = nsw("plan", "r.yaml", "--into", begun.name)
    assert "does 2 runs again, since its environment changed" in plan.out
    nsw("run", "r.yaml", "--into", begun.name)
    recipe(APP.replace("files:", "env: {N: '{{ (n - 1) * 5 }}'}, files:"), "matrix: {n: [1, 2]}\n")
    plan = nsw("plan", "r.yaml", "--into", begun.name)
    assert "does 1 run again, since its environment changed: n-2.baseline.r1" in plan.out
    assert "leaves 1 run as it is" in plan.out


def test_another_time_limit_or_figure_does_nothing_again(nsw, begun, home):
    text = (home / "r.yaml").read_text().replace("time: 1m", "time: 5m").replace("f=(.*)", "f=(.+)")
    (home / "r.yaml").write_text(text)
    assert "nothing to do" in nsw("run", "r.yaml", "--into", begun.name).err


def test_another_account_does_only_what_is_not_measured_again(nsw, recipe, home):
    (home / "go.sh").write_text("echo f=$1; test $1 != 2\n")
    recipe(APP, "matrix: {n: [1, 2]}\n")
    nsw("run", "r.yaml", "-s", "here")
    (campaign,) = Path("campaigns").iterdir()
    for key in ("account", "qos"):
        plan = nsw("plan", "r.yaml", "--into", campaign.name, "--set", f"resources.{key}=other")
        assert "does 1 run again, since its resources changed: n-2.baseline.r1" in plan.out
        assert "leaves 1 run as it is" in plan.out


def test_runs_that_the_recipe_has_no_more_stay(nsw, begun, write, home):
    write([2, 3])
    said = nsw("run", "r.yaml", "--into", begun.name)
    assert "1 run of the campaign is not in the recipe, and stays" in said.err
    assert figures(nsw) == {"n-1": 1, "n-2": 2, "n-3": 3}


def test_a_campaign_stays_on_its_site(nsw, begun):
    said = nsw("run", "r.yaml", "--into", begun.name, "--site", "batch")
    assert (said.code, f"{begun.name} is on here, and --site names batch" in said.err) == (2, True)


def test_its_own_site_may_be_named_beside_a_campaign(nsw, begun, write):
    write([1, 2, 3])
    for command in ("plan", "run"):
        said = nsw(command, "r.yaml", "--into", begun.name, "--site", "here")
        assert (said.code, "adds 1 run: n-3.baseline.r1" in said.out + said.err) == (0, True), said


def test_a_default_site_is_not_meant_where_a_campaign_is_named(nsw, begun, write, monkeypatch):
    monkeypatch.setenv("NSW_SITE", "batch")
    write([1, 2, 3])
    plan = nsw("plan", "r.yaml", "--into", begun.name)
    assert (plan.code, "adds 1 run: n-3.baseline.r1" in plan.out) == (0, True), plan.err
    assert nsw("run", "r.yaml", "--into", begun.name).code == 0
    assert nsw("run", "r.yaml", "--into", begun.name, "--dry-run").code == 0
    said = nsw("run", "r.yaml", "--into", begun.name, "-s", "batch")
    assert (said.code, "a campaign stays on its site" in said.err) == (2, True)


def test_a_retry_after_clean_sends_the_newest_program_again(nsw, begun, write):
    write([1, 2], begin="1")
    assert nsw("run", "r.yaml", "--into", begun.name).code == 0
    assert nsw("clean", "--yes").code == 0
    with Ledger(begun / "campaign.db") as ledger:
        ledger.update_tasks(["n-2.baseline.r1"], state="failed")
    nsw("retry", exits=0)
    assert figures(nsw) == {"n-1": 11, "n-2": 12}


def test_a_campaign_that_was_cleaned_is_added_to_at_once(nsw, begun, write, home):
    assert nsw("clean", "--yes").code == 0
    write([1, 2, 3])
    nsw("run", "r.yaml", "--into", begun.name, exits=0)
    assert ran(home) == [1, 2, 3]
    assert nsw("clean", "--yes").code == 0
    write([1, 2, 3], begin="1")
    nsw("run", "r.yaml", "--into", begun.name, exits=0)
    assert figures(nsw) == {"n-1": 11, "n-2": 12, "n-3": 13}


def test_a_campaign_that_was_cleaned_is_retried_with_another_program(nsw, begun, write):
    assert nsw("clean", "--yes").code == 0
    write([1, 2], begin="1")
    with Ledger(begun / "campaign.db") as ledger:
        ledger.update_tasks(["n-2.baseline.r1"], state="failed")
    nsw("retry", "--update-app", "--time", "2m", exits=0)
    assert figures(nsw) == {"n-1": 1, "n-2": 12}


def test_a_recipe_with_other_cases_only_keeps_those_of_the_campaign(nsw, begun, write, home):
    """The lock has both, so that a later recipe leaves them all as they are, in the order in which they came."""
    assert nsw("run", "r.yaml", "--set", "n=4", "--into", begun.name, "--pass", "baseline").code == 0
    locked = load_recipe(begun / "recipe.lock.yaml")
    assert [case.id for case in locked.cases] == ["n-1", "n-2", "n-4"]
    for recipe_of in ("r.yaml", begun / "recipe.lock.yaml"):
        said = nsw("run", recipe_of, "--into", begun.name, "--pass", "baseline")
        assert (said.code, "nothing to do" in said.err) == (0, True), said.err
    assert ran(home) == [1, 2, 4]


def test_the_newest_program_is_brought_to_the_cases_that_a_part_did_not_have(nsw, begun, write, home):
    write([4], begin="1")
    assert nsw("run", "r.yaml", "--into", begun.name).code == 0
    assert figures(nsw) == {"n-1": 1, "n-2": 2, "n-4": 14}
    said = nsw("run", begun / "recipe.lock.yaml", "--into", begun.name)
    assert "does 2 runs again, since go.sh changed" in said.err
    assert figures(nsw) == {"n-1": 11, "n-2": 12, "n-4": 14}


def test_where_a_run_would_be_another_one_the_campaigns_cases_are_not_claimed(nsw, begun, recipe, home):
    recipe(APP.replace("{{ n }}'", "{{ n }} more'"), "matrix: {n: [4]}\n")
    assert nsw("run", "r.yaml", "--into", begun.name).code == 0
    assert [case.id for case in load_recipe(begun / "recipe.lock.yaml").cases] == ["n-4"]
    recipe(APP, "matrix: {n: [1, 2]}\n")
    said = nsw("plan", "r.yaml", "--into", begun.name)
    assert "does 2 runs again, since the campaign's recipe no longer has it, so its value then is unknown" in said.out
