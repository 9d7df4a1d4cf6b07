"""Cases that are measured in pairs: blocks in random order in one job, and two versions of the program side by side."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest
import yaml

from .test_going_on import wait_until

BLOCKS = """
nsw: 1
name: pairs
app: {command: "echo {{ n }} >>'HOME/began'; until [ -e 'HOME/go' ]; do sleep 0.05; done; echo time {{ n }}"}
matrix: {n: [1, 2, 3, 4]}
repeats: 3
interleave: true
resources: {gpus: 0, time: 1m}
"""


def blocks(road) -> str:
    return BLOCKS.replace("HOME", str(road.home))


def began(road) -> list[str]:
    """What the programs wrote when they began, in that order."""
    file = road.home / "began"
    return file.read_text().split() if file.exists() else []


def planned(road) -> list[str]:
    """The parameters of the runs in the order of the plan, as the ledger has it."""
    return [str(run["params"]["n"]) for run in road.status()["runs"]]


def test_blocks_are_done_in_the_order_of_the_plan_in_one_job_and_the_lock_repeats_it(road):
    (road.home / "go").touch()
    done = road.run(blocks(road), exits=0)
    lock = road.campaign / "recipe.lock.yaml"
    seed = yaml.safe_load(lock.read_text())["interleave"]["seed"]
    assert f"3 blocks of 4 cases, in random order, in one job on one node; seed {seed}" in done.stderr
    order = began(road)
    assert [sorted(order[at : at + 4]) for at in (0, 4, 8)] == [["1", "2", "3", "4"]] * 3
    assert planned(road) == order
    assert len({run["job_id"] for run in road.runs().values()}) == 1
    road.nsw("run", str(lock), "--root", str(road.home / "again"), exits=0)
    assert began(road) == [*order, *order]


def test_a_killed_nsw_leaves_the_blocks_going_and_each_run_is_done_once(road):
    process = road.start("run", str(road.recipe(blocks(road))), "--site", "here")
    wait_until(lambda: began(road))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (road.home / "go").touch()
    road.nsw("resume", exits=0)
    assert road.status()["counts"] == {"done": 12}
    assert began(road) == planned(road)


SIDES = """
nsw: 1
name: sides
app:
  command: bash prog.sh {{ n }}
  files: [src/prog.sh, table]
  figures: {time: {regex: 'time (\\d+) ms', unit: ms}}
matrix: {n: [1, 2]}
resources: {gpus: 0, time: 1m}
"""
BUILD = "  build: {command: bash make.sh, where: login}\n"
PROGRAM = "echo time $(({base} + $1)) ms; cat table"


def git(road, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.email=a@b", "-c", "user.name=n", *words], cwd=road.home, check=True, capture_output=True,
        text=True, env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
    )  # fmt: skip
    return done.stdout.strip()


def program(road, base: int) -> None:
    (road.home / "src").mkdir(exist_ok=True)
    (road.home / "src" / "prog.sh").write_text(PROGRAM.replace("{base}", str(base)))


@pytest.fixture
def versions(road):
    """A program that takes 100 ms in the last commit and 90 ms now, and data that git does not have; the commit."""
    program(road, 100)
    (road.home / "table").write_text("data\n")
    git(road, "init", "-q")
    git(road, "add", "src")
    git(road, "commit", "-qm", "one")
    program(road, 90)
    return git(road, "rev-parse", "HEAD")


def printed(road, *, n: int = 1) -> dict[str, set[str]]:
    """What the programs of a case printed on each side."""
    found: dict[str, set[str]] = {}
    for name, run in road.runs().items():
        if run["params"]["n"] == n:
            found.setdefault(run["params"]["side"], set()).add(road.output(name))
    return found


def lock_of(campaign) -> dict:
    return yaml.safe_load((campaign / "recipe.lock.yaml").read_text())["lock"]


def programs(road) -> dict[str, str]:
    """The folder of the program that each run has, as the ledger knows it."""
    with closing(sqlite3.connect(road.campaign / "campaign.db")) as db:
        return dict(db.execute("SELECT id, app FROM tasks WHERE kind = 'run'"))


@pytest.mark.far(quick=True)
def test_each_side_runs_its_own_program_and_the_lock_says_which(road, versions):
    done = road.run(SIDES, "--against", "HEAD", exits=0)
    assert f"before: the program's files of commit {versions[:12]} (HEAD); after: as they are now" in done.stderr
    assert "not in git, and the same on both sides: table" in done.stderr
    assert "3 repeats, since the recipe writes none" in done.stderr
    assert "3 blocks of 4 cases, in random order, in one job on one node" in done.stderr
    assert printed(road) == {"before": {"time 101 ms\ndata\n"}, "after": {"time 91 ms\ndata\n"}}
    assert "Programs: " in done.stdout
    assert "prog.sh changed" in done.stdout
    assert "after beside before, 2 cases: 2 cannot be told" in done.stdout  # by 3 pairs, where no noise floor is known
    lock = lock_of(road.campaign)
    before = lock["before"]
    assert (before["ref"], before["git"]["commit"], before["git"]["dirty"]) == ("HEAD", versions, False)
    assert (lock["git"]["commit"], lock["git"]["dirty"]) == (versions, True)
    assert before["files"].keys() == lock["files"].keys() == {"prog.sh", "table"}
    assert before["files"]["prog.sh"] != lock["files"]["prog.sh"]
    assert before["files"]["table"] == lock["files"]["table"]
    assert set(programs(road).values()) == {"app", "app.before"}
    assert all((app == "app.before") == ("side-before" in run) for run, app in programs(road).items())


def test_the_lock_repeats_both_sides_without_their_repository(road, versions):
    assert road.run(SIDES, "--against", versions[:8]).returncode == 0
    first = road.campaign
    shutil.rmtree(road.home / "src")
    shutil.rmtree(road.home / ".git")
    done = road.nsw("run", str(first / "recipe.lock.yaml"), "--site", "here", "--root", str(road.home / "again"))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    (again,) = (road.home / "again").glob("sides-*")
    assert lock_of(again)["before"] == lock_of(first)["before"]
    assert lock_of(again)["git"] == lock_of(first)["git"]
    scripts = [
        (one / "scripts" / "sides-j1.sh").read_text().partition("case $nsw_task in")[2] for one in (first, again)
    ]
    assert scripts[0] == scripts[1]  # the order is that of the seed
    (folder,) = again.glob("reports/n-2_side-before.baseline.r1")
    assert (folder / "stdout").read_text() == "time 102 ms\ndata\n"


def test_each_side_is_built_once(road, versions):
    git(road, "stash", "-q")
    made = f"printf '%s\\n' \"$(cat prog.sh)\" >>'{road.home}/built'\n"  # in one piece: both sides may be built at once
    (road.home / "src" / "make.sh").write_text(made)
    git(road, "add", "src")
    git(road, "commit", "-qm", "two")
    program(road, 90)
    recipe = SIDES.replace("[src/prog.sh, table]", "[src/prog.sh, src/make.sh, table]\n" + BUILD.rstrip())
    road.run(recipe, "--against", "HEAD", exits=0)
    built = [PROGRAM.replace("{base}", base) for base in ("90", "100")]
    assert sorted((road.home / "built").read_text().splitlines()) == sorted(built)
    assert printed(road) == {"before": {"time 101 ms\ndata\n"}, "after": {"time 91 ms\ndata\n"}}
    assert {build["id"]: build["state"] for build in road.status()["builds"]} == {
        "build": "done", "build.before": "done",
    }  # fmt: skip


def test_where_one_side_cannot_be_built_no_pair_is_measured(road, versions):
    (road.home / "src" / "make.sh").write_text("grep -q 90 prog.sh\n")
    recipe = SIDES.replace("[src/prog.sh, table]", "[src/prog.sh, src/make.sh, table]\n" + BUILD.rstrip())
    done = road.run(recipe, "--against", "HEAD", exits=2)
    assert "the build step failed with exit status 1: bash make.sh" in done.stderr
    assert road.status()["counts"] == {"failed": 12}
    assert not (road.campaign / "scratch" / "runs" / "n-1_side-after.baseline.r1").exists()


def test_values_of_parameters_are_compared_with_the_same_program(road, versions):
    done = road.run(SIDES, "--set", "n=2", "--against", "n=12", exits=0)
    assert "n: 12 before, 2 after" in done.stderr
    assert {(run["params"]["side"], run["params"]["n"]) for run in road.runs().values()} == {
        ("before", 12),
        ("after", 2),
    }
    assert "after beside before: time: cannot tell" in done.stdout
    assert "9.8 % less time" in done.stdout  # 102 and 92
    assert lock_of(road.campaign)["before"] == {"ref": "n=12", "files": {}}


def test_plan_render_and_python_know_both_sides_too(road, versions):
    recipe = str(road.recipe(SIDES))
    words = (recipe, "--site", "here", "--against", "HEAD")
    (job,) = json.loads(road.nsw("plan", *words, "--json").stdout)["jobs"]
    assert len(job["runs"]) == 12
    script = road.nsw("render", *words).stdout
    assert (script.count("nsw_app=app\n"), script.count("nsw_app=app.before\n")) == (6, 6)
    code = "import nsw, sys; print(len(nsw.dry_run(sys.argv[1], 'here', against='HEAD').runs))"
    done = subprocess.run(
        [sys.executable, "-c", code, recipe], env=road.env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "12\n", done.stderr


def test_a_campaigns_program_and_values_are_the_side_before(road, versions):
    git(road, "stash", "-q")
    assert road.run(SIDES, "--set", "n=1").returncode == 0
    first = road.campaign
    git(road, "stash", "pop", "-q")
    root = ("--root", str(road.home / "pairs"))
    done = road.run(SIDES, "--set", "n=2", "--against", str(first), *root, exits=0)
    assert f"before: the program of campaign {first.name}, n: 1; after: this recipe as it is" in done.stderr
    (pairs,) = (road.home / "pairs").glob("sides-*")
    texts = {name: (pairs / "reports" / f"{name}.baseline.r1" / "stdout").read_text() for name in
             ("n-1_side-before", "n-2_side-after")}  # fmt: skip
    assert texts == {"n-1_side-before": "time 101 ms\ndata\n", "n-2_side-after": "time 92 ms\ndata\n"}
    before = lock_of(pairs)["before"]
    assert (before["git"], before["files"]) == (lock_of(first)["git"], lock_of(first)["files"])


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ("nothing", "there is no campaign in a folder nothing, neither here nor in"),
        ("nothing", "no revision nothing in the git repository of the program's files; and it sets no parameter"),
        ("m=1", "the recipe has no parameter m"),
        ("n=1", "n has 2 values in the recipe"),
        ("n=[1, 2]", "'[1, 2]' is not a value"),
    ],
)
def test_what_cannot_be_compared_with_is_told(road, versions, ref, told):
    done = road.run(SIDES, "--against", ref)
    assert (done.returncode, road.root.exists()) == (2, False)
    assert told in done.stderr


def test_a_branch_that_is_called_as_a_campaign_is_ambiguous(road, versions):
    assert road.run(SIDES).returncode == 0
    git(road, "branch", road.campaign.name)
    done = road.run(SIDES, "--against", road.campaign.name, exits=2)
    assert f"may be the campaign {road.campaign} and commit {versions[:12]} of" in done.stderr
    assert "refs/heads/NAME" in done.stderr


def test_of_a_folder_comes_what_git_has_of_it_and_no_product_of_a_build(road, versions):
    """What was built of the new program would be newer than the sources of the old one: make would leave it."""
    (road.home / "src" / "prog.o").write_text("of the new program")
    (road.home / "src" / "later.sh").write_text("")
    (road.home / ".gitattributes").write_text("src/prog.sh export-ignore\n")
    git(road, "add", "src/later.sh")
    recipe = SIDES.replace("[src/prog.sh, table]", "[src, table]").replace("prog.sh", "src/prog.sh")
    road.run(recipe, "--against", "HEAD", exits=0)
    names = {app: sorted(p.name for p in (road.campaign / app / "src").iterdir()) for app in ("app", "app.before")}
    assert names == {"app": ["later.sh", "prog.o", "prog.sh"], "app.before": ["prog.sh"]}


def test_a_file_that_git_has_only_since_is_of_the_side_after_alone(road, versions):
    (road.home / "later.sh").write_text("")
    git(road, "add", "later.sh")
    road.run(SIDES.replace("table]", "table, later.sh]"), "--against", "HEAD", exits=0)
    names = {app: sorted(p.name for p in (road.campaign / app).iterdir()) for app in ("app", "app.before")}
    assert names == {"app": ["later.sh", "prog.sh", "table"], "app.before": ["prog.sh", "table"]}


def test_a_file_that_git_lfs_keeps_is_refused_and_no_program_of_the_repository_is_run(road, versions):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n"
    (road.home / "src" / "prog.sh").write_text(pointer)
    git(road, "commit", "-qam", "two")
    for key in ("filter.lfs.smudge", "core.fsmonitor", "filter.lfs.process"):
        git(road, "config", key, f"touch '{road.home}/ran'")
    (road.home / ".git" / "info").mkdir(exist_ok=True)
    (road.home / ".git" / "info" / "attributes").write_text("*.sh filter=lfs\n")
    hook = road.home / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{road.home}/ran'\n")
    hook.chmod(0o755)
    done = road.run(SIDES, "--against", "HEAD", exits=2)
    assert "src/prog.sh is stored in Git LFS" in done.stderr
    assert not (road.home / "ran").exists()


def test_a_killed_comparison_goes_on_with_both_programs_and_no_run_is_done_twice(road, versions):
    text = SIDES.replace(
        "bash prog.sh {{ n }}",
        f"echo {{{{ case }}}} >>'{road.home}/began'; until [ -e '{road.home}/go' ]; do sleep 0.05; done; bash prog.sh {{{{ n }}}}",
    ).replace("command: ", 'command: "').replace("{{ n }}\n", '{{ n }}"\n')  # fmt: skip
    process = road.start("run", str(road.recipe(text)), "--site", "here", "--against", "HEAD")
    wait_until(lambda: began(road))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (road.home / "go").touch()
    road.nsw("resume", exits=0)
    assert printed(road) == {"before": {"time 101 ms\ndata\n"}, "after": {"time 91 ms\ndata\n"}}
    assert began(road) == [run["id"].partition(".")[0] for run in road.status()["runs"]]


def test_a_retry_keeps_the_side_of_a_run_and_a_new_program_is_only_of_the_side_after(road, versions):
    once = f"if [ -e '{road.home}/fails' ]; then rm '{road.home}/fails'; exit 3; fi\n"
    prog = road.home / "src" / "prog.sh"
    prog.write_text(once + PROGRAM.replace("{base}", "100"))
    git(road, "commit", "-qam", "two")
    prog.write_text("exit 3")
    (road.home / "fails").touch()
    assert road.run(SIDES, "--against", "HEAD").returncode == 1
    assert road.status()["counts"] == {"done": 5, "failed": 7}
    program(road, 80)
    road.nsw("retry", "--update-app", exits=0)
    assert printed(road) == {"before": {"time 101 ms\ndata\n"}, "after": {"time 81 ms\ndata\n"}}
    assert Counter(programs(road).values()) == {"app-2": 6, "app.before": 5, "app-2.before": 1}
    assert "version" not in road.nsw("problems").stdout + road.nsw("summarize").stdout  # of each side there is one
    lock = yaml.safe_load((road.campaign / "recipe.lock.yaml").read_text())
    assert (lock["app"]["files"][0], lock["app"]["before"][0]) == ("app-2/prog.sh", "app-2.before/prog.sh")
    again = road.nsw(
        "run", str(road.campaign / "recipe.lock.yaml"), "--site", "here", "--root", str(road.home / "again")
    )
    assert again.returncode == 0, again.stderr
    assert "warning" not in again.stderr


def test_a_new_program_is_added_to_a_campaign_in_whole_pairs(road, versions):
    assert road.run(SIDES, "--against", "HEAD").returncode == 0
    program(road, 80)
    done = road.nsw("run", "recipe.yaml", "--against", "HEAD", "--into", road.campaign.name, exits=0)
    assert "does 12 runs again, since prog.sh changed" in done.stderr
    assert printed(road) == {"before": {"time 101 ms\ndata\n"}, "after": {"time 81 ms\ndata\n"}}
    assert set(programs(road).values()) == {"app-2", "app-2.before"}
    same = road.nsw("run", "recipe.yaml", "--against", "HEAD", "--into", road.campaign.name)
    assert "nothing to do" in same.stderr
    more = road.nsw("run", "recipe.yaml", "--against", "HEAD", "--set", "repeats=5", "--into", road.campaign.name)
    assert more.returncode == 0, more.stderr
    assert "2 blocks of 4 cases, in random order, in one job on one node" in more.stderr
    assert road.status()["counts"] == {"done": 20}
