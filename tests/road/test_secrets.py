"""Secrets reach the job, and stand nowhere but in a file that only its owner can read; campaigns are closed to others."""

import os
import re
import shutil
import stat
import subprocess
from hashlib import sha256
from uuid import uuid4

import pytest

from tests.nsys_faults import retried

from .planted import APP_ENV, ENVIRONMENT, PROGRAM, SITE_ENV, expected, found_in, said

RECIPE = f"""\
nsw: 1
name: t
resources: {{gpus: 0, time: 1m}}
matrix: {{n: [1, 2]}}
app:
  command: "{{{{ site.python }}}} program.py"
  files: [program.py]
  setup: [set -xv]
  env:
{APP_ENV}"""

SECRETS = {"HF_TOKEN": "sesame-4", "OPENING": "sesame-5", "CASE_SECRET": "sesame-6", "DATABASE_URL": "sesame-7"}


def at(road, passes="[baseline]", share=""):
    """The recipe's path; the program and the site beside it."""
    (road.home / "program.py").write_text(PROGRAM)
    site = f"{{scheduler: local, env: {SITE_ENV}, gpus: {{per_node: 0}}{share}}}"
    (road.home / "sites.yaml").write_text(f"nsw: 1\nsites: {{here: {site}}}\n")
    road.environment |= ENVIRONMENT
    return str(road.recipe(f"{RECIPE}passes: {passes}\n"))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_reach_the_runs_and_nothing_of_a_finished_campaign_holds_them(road):
    done = road.nsw("run", at(road, "[baseline, {host: {tool: cprofile}}]"), "--site", "here", exits=0)
    assert (
        "secret, in no script and no log: CASE_SECRET, DATABASE_URL, DB_PASSWORD, HF_TOKEN, OPENING, WANDB_API_KEY"
        in done.stderr
    )
    for n in (1, 2):
        assert road.output(f"n-{n}.baseline.r1") == expected(n)
        assert road.output(f"n-{n}.host.r1") == expected(n)
    assert found_in(road.campaign) == set()
    assert not list(road.campaign.rglob("secrets.sh"))
    words = (
        ("status", "--json"),
        ("summarize",),
        ("problems",),
        ("logs", "n-1.baseline.r1"),
        ("ls", "--json"),
        ("sites",),
    )
    for command in words:
        shown = road.nsw(*command)
        assert not said(shown.stdout, shown.stderr), command
    assert not said(done.stdout, done.stderr)


@pytest.mark.nsys
def test_nsys_which_records_its_environment_does_not_see_them(road):
    # nsys also records the environment of all other processes that it can read, so that each try needs a word of its own
    word = f"sesame-{uuid4().hex}"
    code = "import os; print(len(os.environ['HF_TOKEN']))"
    recipe = f"""\
        nsw: 1
        name: t
        resources: {{gpus: 0, time: 1m}}
        passes: [{{timeline: {{tool: nsys, trace: [osrt]}}}}]
        app: {{command: ["{{{{ site.python }}}}", -c, "{code}"], env: {{HF_TOKEN: "{word}"}}}}
        """
    done = road.run(recipe, "--yes")
    (run,) = road.runs()
    done = retried(done, run, road.nsw)
    assert done.returncode == 0, done.stderr
    assert f"{len(word)}\n" in road.output(run)
    (report,) = road.campaign.glob("reports/*/*.nsys-rep")
    exported = road.home / "exported.sqlite"
    words = ["nsys", "export", "--type=sqlite", f"--output={exported}", str(report)]
    subprocess.run(words, check=True, capture_output=True)
    assert b"SHLVL=" in exported.read_bytes()  # it does record environments
    holders = [p for p in road.home.rglob("*") if p.is_file() and word.encode() in p.read_bytes()]
    assert holders == [road.home / "recipe.yaml"]


def test_plan_and_render_name_secrets_and_never_print_a_value(road):
    recipe = at(road)
    for command in (("plan",), ("plan", "--json"), ("plan", "--format", "csv"), ("render",)):
        shown = road.nsw(command[0], recipe, "--site", "here", *command[1:], exits=0)
        assert not said(shown.stdout, shown.stderr), command
    assert "nsw_secrets 1    # WANDB_API_KEY HF_TOKEN OPENING DB_PASSWORD CASE_SECRET DATABASE_URL" in shown.stdout
    assert "nsw_secrets 2 " in shown.stdout


def test_until_every_run_is_done_one_file_of_the_owner_alone_holds_them_and_a_retry_needs_nothing_else(road):
    recipe = at(road)
    (road.home / "fail").write_text("as asked")
    text = (road.home / "recipe.yaml").read_text().replace("files: [program.py]", "files: [program.py, fail]")
    (road.home / "recipe.yaml").write_text(text)
    assert road.nsw("run", recipe, "--site", "here").returncode == 1
    holders = [
        p for p in road.campaign.rglob("*") if p.is_file() and not p.is_symlink() and b"sesame" in p.read_bytes()
    ]
    assert {str(p.relative_to(road.campaign)) for p in holders} == {"secrets.sh", "scratch/private/secrets.sh"}
    assert {mode(p) for p in holders} == {0o600}
    del road.environment["OPENER"]  # it was taken when the campaign began
    (road.home / "recipe.yaml").unlink()
    for copy in road.campaign.rglob("fail"):
        copy.write_text("")
    shutil.rmtree(road.campaign / "scratch" / "private")  # as a site's purge does
    road.nsw("retry", exits=0)
    assert road.output("n-1.baseline.r1") == expected(1)
    assert found_in(road.campaign) == set()


def test_a_run_that_is_done_and_lacks_a_figure_keeps_them_for_its_retry(road):
    recipe = at(road)
    text = (road.home / "recipe.yaml").read_text().replace("files: [program.py]", "files: [program.py, score]")
    figures = "app:\n  figures: {score: {regex: 'score=([0-9]+)', unit: points}}\n"
    (road.home / "recipe.yaml").write_text(text.replace("app:\n", figures))
    (road.home / "program.py").write_text(f"print(open('score').read())\n{PROGRAM}")
    (road.home / "score").write_text("score unknown\n")
    assert road.nsw("run", recipe, "--site", "here").returncode == 1
    assert {run["state"] for run in road.runs().values()} == {"done"}
    assert (road.campaign / "secrets.sh").exists()
    for copy in road.campaign.rglob("score"):
        copy.write_text("score=7\n")
    road.nsw("retry", exits=0)
    assert found_in(road.campaign) == set()
    assert not list(road.campaign.rglob("secrets.sh"))


def test_a_retry_after_they_were_removed_takes_them_from_the_environment(road):
    recipe = at(road)
    (road.home / "fail").write_text("as asked")
    text = (road.home / "recipe.yaml").read_text().replace("files: [program.py]", "files: [program.py, fail]")
    (road.home / "recipe.yaml").write_text(text)
    assert road.nsw("run", recipe, "--site", "here").returncode == 1
    before = road.runs()
    (road.campaign / "secrets.sh").unlink()
    shutil.rmtree(road.campaign / "scratch" / "private")
    for copy in road.campaign.rglob("fail"):
        copy.write_text("")
    refused = road.nsw("retry", exits=2)
    assert "the secret HF_TOKEN comes from nsw's own environment, where HF_TOKEN is not set" in refused.stderr
    assert "hint: read -rs HF_TOKEN && export HF_TOKEN" in refused.stderr
    assert road.runs() == before
    road.environment |= SECRETS
    road.nsw("retry", exits=0)
    assert f"HF_TOKEN {sha256(SECRETS['HF_TOKEN'].encode()).hexdigest()}" in road.output("n-1.baseline.r1")
    assert found_in(road.campaign) == set()


def test_the_lock_of_a_campaign_asks_for_its_secrets_again(road):
    assert road.nsw("run", at(road), "--site", "here").returncode == 0
    lock = road.campaign / "recipe.lock.yaml"
    shutil.move(road.root, road.home / "before")
    lock = road.home / "before" / lock.relative_to(road.root)
    refused = road.nsw("run", str(lock), "--site", "here", exits=2)
    assert "the secret HF_TOKEN comes from nsw's own environment, where HF_TOKEN is not set" in refused.stderr
    assert "recipe.lock.yaml:" in refused.stderr
    assert "hint: read -rs HF_TOKEN && export HF_TOKEN" in refused.stderr
    assert not road.root.exists()
    warned = road.nsw("plan", str(lock), "--site", "here", exits=0)
    assert "where HF_TOKEN is not set" in warned.stdout
    road.environment |= SECRETS
    road.nsw("run", str(lock), "--site", "here", exits=0)
    assert "TOKEN_LIMIT: {plain: '77'}" in re.sub(r":\n\s+plain: ('\d+')", r": {plain: \1}", lock.read_text())
    assert found_in(road.root) == set()


def test_a_fault_in_a_recipe_with_a_secret_shows_no_line_and_says_so(road):
    at(road)
    for bad in (
        '    HF_TOKEN: "sesame {{ nope }}"\n',
        "    X: {secret: 'sesame {{ nope }}'}\n",
        '    HF_TOKEN: "sesame\n',
        '    DATABASE_URL: "a://u:sesame@h/{{ nope }}"\n',
    ):
        recipe = road.recipe(f"nsw: 1\nname: t\napp:\n  command: 'true'\n  env:\n{bad}  figures: {{}}\n", "bad.yaml")
        refused = road.nsw("plan", str(recipe), "--site", "here", exits=2)
        assert f"6 | (not shown: a secret is written in {recipe})" in refused.stderr
        assert not said(refused.stdout, refused.stderr), refused.stderr


def test_the_demo_needs_no_secret(road):
    recipe = road.home / "demo.yaml"
    from nsw.resources import recipes_folder

    text = (recipes_folder() / "alexnet_scaling.yaml").read_text()
    recipe.write_text(text.replace("app:\n", "app:\n  env: {HF_TOKEN: {secret: {from_env: NO_SUCH_VARIABLE}}}\n", 1))
    assert "NO_SUCH_VARIABLE" in recipe.read_text()
    shutil.copytree(recipes_folder() / "apps", road.home / "apps")
    done = road.nsw("plan", str(recipe), "--site", "demo", exits=0)
    assert "NO_SUCH_VARIABLE" not in done.stdout


# --- folders ------------------------------------------------------------------------------------------------------


def test_a_campaign_is_closed_to_other_users(road):
    scratch = road.home / "elsewhere"
    assert road.nsw("run", at(road, share=f", scratch: '{scratch}'"), "--site", "here").returncode == 0
    assert mode(road.campaign) == 0o700
    assert mode(scratch / road.campaign.name) == 0o700


def test_a_shared_campaign_can_be_read_by_the_group_and_by_nobody_else(road):
    scratch = road.home / "elsewhere"
    recipe = at(road, share=f", scratch: '{scratch}', share: group")
    road.root.mkdir()
    road.root.chmod(0o2750)  # as a project's folder, whose group all below it gets
    before = os.umask(0o077)
    try:
        done = road.nsw("run", recipe, "--site", "here")
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    assert mode(road.campaign) == 0o2750
    there = scratch / road.campaign.name
    assert mode(there) & 0o777 == 0o750
    assert mode(there / "private") & 0o777 == 0o700
    assert mode(road.campaign / "token") == 0o600
    for path in [*road.campaign.rglob("*"), *(there / "runs").rglob("*")]:
        if not path.is_symlink() and path.name != "token":
            assert mode(path) & 0o040, path
            assert not path.is_dir() or mode(path) & 0o010, path


STRANGER = 65534


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as a second user")
def test_another_user_sees_nothing_of_a_campaign(road, tmp_path_factory):
    import tempfile
    from pathlib import Path

    open_to_all = Path(tempfile.mkdtemp(prefix="nsw-open-"))
    open_to_all.chmod(0o1777)
    try:
        road.environment["NSW_ROOT"] = str(open_to_all / "campaigns")
        assert road.nsw("run", at(road, share=f", scratch: '{open_to_all}/scratch'"), "--site", "here").returncode == 0
        look = "find . -mindepth 3; cat campaigns/*/log.txt campaigns/*/scripts/* scratch/*/runs/*/*/stdout"
        seen = subprocess.run(
            ["sh", "-c", look], cwd=open_to_all, user=STRANGER, group=STRANGER, extra_groups=[], check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert seen.stdout == ""
        assert "Permission denied" in seen.stderr
    finally:
        shutil.rmtree(open_to_all)
