"""`nsw retry --time --update-app`: another limit, and the program as it is now, for what is retried alone."""

import hashlib
import json
import re
import shlex
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.recipe.load import load_recipe


@pytest.fixture
def begun(nsw, recipe, home):
    """Two runs of a program from a file, of which one failed; the campaign's folder."""
    (home / "apps").mkdir()
    (home / "apps" / "go.sh").write_text("echo old; exit $1\n")
    recipe("{command: 'bash go.sh {{ n }}', files: [apps/go.sh]}", "matrix: {n: [0, 3]}\n")
    assert nsw("run", "r.yaml", "-s", "here").code == 1
    return next(Path("campaigns").iterdir())


def limits(folder):
    """The time limits in the scripts of the jobs that runs have now."""
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        jobs = {run.id: run.job for run in ledger.runs()}
    found = {}
    for run, job in jobs.items():
        text = (folder / "scripts" / f"{job}.sh").read_text()
        found[run] = int(text.split(f"nsw_run {run} ")[1].split()[0])
    return found


def test_another_limit_is_that_of_the_retried_runs_alone_and_of_the_lockfile(nsw, begun):
    said = nsw("retry", "--failed", "--time", "30m", exits=1)
    assert "time limit 30m" in said.err
    assert limits(begun) == {"n-0.baseline.r1": 60, "n-3.baseline.r1": 1800}
    runs = {r["id"]: (r["attempt"], r["job"]) for r in json.loads(nsw("status", "--json").out)["runs"]}
    assert runs == {"n-0.baseline.r1": (1, "t-j1"), "n-3.baseline.r1": (2, "t-2-j1")}
    assert load_recipe(begun / "recipe.lock.yaml").recipe.resources.time == 1800


def test_the_program_is_copied_again_and_its_hash_recorded(nsw, begun, home):
    new = "echo new\n"
    (home / "apps" / "go.sh").write_text(new)
    said = nsw("retry", "--failed", "--update-app", exits=0)
    digest = hashlib.sha256(new.encode()).hexdigest()
    assert f"the program was copied again: go.sh ({digest[:12]})" in said.err
    assert "changed since" not in said.err
    assert "\nnew\n" in nsw("logs", "n-3.baseline.r1").out
    assert "\nold\n" in nsw("logs", "n-0.baseline.r1").out
    assert (begun / "app" / "go.sh").read_text() == "echo old; exit $1\n"
    lock = load_recipe(begun / "recipe.lock.yaml").recipe
    assert (lock.app.files, lock.lock.files) == (["app-2/go.sh"], {"go.sh": digest})
    assert "part 2 (1 runs again)" in (begun / "log.txt").read_text()


def test_it_can_be_done_again_and_again(nsw, begun, home):
    (home / "apps" / "go.sh").write_text("exit 4\n")
    assert nsw("retry", "--update-app").code == 1
    (home / "apps" / "go.sh").write_text("echo third\n")
    assert nsw("retry", "--update-app", "--time", "2m").code == 0
    assert "\nthird\n" in nsw("logs", "n-3.baseline.r1").out
    assert limits(begun)["n-3.baseline.r1"] == 120


def test_a_program_that_did_not_change_is_not_copied(nsw, begun):
    said = nsw("retry", "--update-app")
    assert "the program has not changed since it was copied, and is not copied again" in said.err
    assert not (begun / "app-2").exists()


def test_what_cannot_be_done_is_refused_and_changes_nothing(nsw, begun, home):
    before = (begun / "recipe.lock.yaml").read_text()
    said = nsw("retry", "--time", "soon")
    assert (said.code, "--time: expected a duration" in said.err) == (2, True)
    (home / "apps" / "go.sh").unlink()
    said = nsw("retry", "--update-app")
    assert (said.code, "go.sh no longer exists, and the program was copied from it" in said.err) == (2, True)
    assert (begun / "recipe.lock.yaml").read_text() == before
    states = {r["id"]: r["state"] for r in json.loads(nsw("status", "--json").out)["runs"]}
    assert states["n-3.baseline.r1"] == "failed"


def test_a_program_that_is_built_is_built_again(nsw, recipe, home):
    (home / "make.sh").write_text("echo built >>built; echo 'exit 3' >prog.sh\n")
    recipe("{command: bash prog.sh, files: [make.sh], build: {command: bash make.sh}}")
    assert nsw("run", "r.yaml", "-s", "here").code == 1
    (home / "make.sh").write_text("echo 'echo mended' >prog.sh\n")
    assert nsw("retry", "--update-app").code == 0
    assert "\nmended\n" in nsw("logs", "case.baseline.r1").out
    assert [b["id"] for b in json.loads(nsw("status", "--json").out)["builds"]] == ["build", "build-2"]


@pytest.fixture
def mixed(nsw, begun, home):
    """A campaign of which one run was done with the program as it was, and one as it is now."""
    (home / "apps" / "go.sh").write_text("echo new\n")
    assert nsw("retry", "--failed", "--update-app").code == 0
    return begun


def test_numbers_of_two_versions_of_the_program_are_not_mixed_without_a_word(nsw, mixed):
    old, new = (
        hashlib.sha256(text).hexdigest()[:12] for text in (b"echo old; exit $1\n", b"echo new\n")
    )  # which cases come from which version, by hash, and since when
    told = nsw("summarize").out
    assert f"2 versions of the program: go.sh {old} (since 20" in told
    assert ") in n-0; go.sh " + new in told
    assert "does the runs of older versions again." in told
    assert f"go.sh {new}" in nsw("summarize", "-f", "markdown").out
    assert nsw("summarize", "--case", "n-0").out.count("versions of the program") == 0
    for command in ("status", "problems"):
        told = nsw(command).out
        assert f"n-0.baseline.r1: done with an older version of the program, go.sh {old} (since 20" in told
        assert f"the newest is go.sh {new}" in told


def test_the_command_that_is_named_does_the_runs_of_older_versions_again(nsw, mixed, home):
    (command,) = re.findall(r"`nsw (run .* --into [^`]*)`", nsw("problems").out)
    plan = nsw(*shlex.split(command.replace("run", "plan", 1)))
    assert "does 1 run again, since go.sh changed: n-0.baseline.r1" in plan.out
    nsw(*shlex.split(command), exits=0)
    assert "\nnew\n" in nsw("logs", "n-0.baseline.r1").out
    assert "versions of the program" not in nsw("summarize").out
    assert nsw("problems").out == f"{mixed.name}: no problem\n"
    (home / "apps" / "go.sh").write_text("exit 5\n")  # the program is still looked for where it came from
    assert "does 2 runs again" in nsw("plan", "r.yaml", "--into", mixed.name).out


def test_one_case_of_two_versions_is_named_and_a_version_that_comes_back_is_the_same(nsw, recipe, home):
    (home / "go.sh").write_text("sleep 0; exit 0\n")
    recipe("{command: bash go.sh, files: [go.sh]}", "repeats: 2\n")
    assert nsw("run", "r.yaml", "-s", "here").code == 0
    (folder,) = Path("campaigns").iterdir()
    with Ledger(folder / "campaign.db") as ledger:
        ledger.update_tasks(["case.baseline.r2"], state="failed")
    (home / "go.sh").write_text("exit 0\n")
    assert nsw("retry", "--update-app").code == 0
    assert "In case runs of 2 versions of the program are mixed: go.sh " in nsw("summarize", "--case", "case").out
    with Ledger(folder / "campaign.db") as ledger:
        ledger.update_tasks(["case.baseline.r2"], state="failed")
    (home / "go.sh").write_text("sleep 0; exit 0\n")
    assert nsw("retry", "--update-app").code == 0
    assert "versions of the program" not in nsw("summarize").out


def test_after_a_time_limit_a_retry_with_a_longer_one_is_offered(nsw, recipe):
    """The program ends of itself where its limit allows it."""
    name = recipe("{command: 'sleep 2'}")
    said = nsw("run", name, "-s", "here", "--set", "resources.time=1s", exits=1)
    for text in (said.err, nsw("status").out):
        (offered,) = re.findall(
            r"`nsw (retry.* --time 1m)` repeats what did not succeed, with a longer time limit", text
        )
        assert "logs" not in offered
    assert nsw(*offered.split()).code == 0
