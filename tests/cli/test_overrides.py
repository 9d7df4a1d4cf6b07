"""What a command line changes of a recipe: values, passes, cases."""

import json
import subprocess
import sys

import pytest

RECIPE = """\
nsw: 1
name: t
app: {command: './prog {{ gpus }} {{ batch }}'}
matrix: {gpus: [1, 2, 4], batch: [8, 16]}
passes:
  - baseline: {}
  - timeline: {name: look, tool: nsys}
resources: {gpus: "{{ gpus }}", time: 10m}
"""
SITES = "nsw: 1\nsites: {two: {scheduler: slurm, transport: local, gpus: {per_node: 2}, profilers: {nsys: /x/nsys}}}\n"


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "r.yaml").write_text(RECIPE)
    (tmp_path / "sites.yaml").write_text(SITES)

    def do(*words, json_=True, command="render"):
        argv = [sys.executable, "-m", "nsw", command, "r.yaml", "--sites", "sites.yaml", "--site", "two", *words]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    return do


def runs(done):
    assert done.returncode == 0, done.stderr
    return sorted(
        line.split("nsw_run ")[1].split()[0] for line in done.stdout.splitlines() if line.strip().startswith("nsw_run ")
    )


def test_a_parameter_gets_other_values(plan):
    found = runs(plan("--set", "gpus=1,2", "--pass", "baseline"))
    assert found == [f"gpus-{g}_batch-{b}.baseline.r1" for g in (1, 2) for b in (16, 8)]


def test_a_key_is_set_by_its_path(plan):
    done = plan("--set", "resources.time=30m", "--set", "gpus=1", "--set", "repeats=2", "--pass", "look")
    assert len(runs(done)) == 4
    assert " 1800 " in done.stdout


def test_cases_are_chosen_by_parameters_and_by_patterns(plan):
    assert runs(plan("--case", "gpus=2,batch=8", "--pass", "baseline")) == ["gpus-2_batch-8.baseline.r1"]
    assert runs(plan("--case", "gpus-[12]_*", "--exclude", "batch=16", "--pass", "baseline")) == [
        "gpus-1_batch-8.baseline.r1", "gpus-2_batch-8.baseline.r1",
    ]  # fmt: skip
    assert runs(plan("--case", "gpus=1,2,batch=8", "--pass", "baseline")) == [
        "gpus-1_batch-8.baseline.r1", "gpus-2_batch-8.baseline.r1",
    ]  # fmt: skip


def test_single_parameters_must_all_hold_and_names_add_cases(plan):
    def chosen(*words):
        return [run.removesuffix(".baseline.r1") for run in runs(plan(*words, "--pass", "baseline"))]

    assert chosen("--case", "gpus=1", "--case", "batch=8") == ["gpus-1_batch-8"]
    assert chosen("--case", "gpus=1", "--case", "gpus=2", "--case", "batch=8") == ["gpus-1_batch-8", "gpus-2_batch-8"]
    both = ("--case", "gpus=1", "--case", "batch=8", "--case", "gpus-2_batch-16")
    assert chosen(*both) == ["gpus-1_batch-8", "gpus-2_batch-16"]
    assert chosen("--case", "gpus=1,batch=8", "--case", "gpus=2,batch=8") == ["gpus-1_batch-8", "gpus-2_batch-8"]
    said = plan("--case", "gpus=1", "--case", "batch=9")
    assert (said.returncode, "--case batch=9: no case matches" in said.stderr) == (2, True)


def test_cases_that_the_site_cannot_hold_are_skipped_with_fit_and_refused_without(plan):
    refused = plan("--pass", "baseline")
    assert refused.returncode == 2
    assert "4 GPUs asked, but site two has 2" in refused.stderr
    assert "--fit" in refused.stderr
    assert len(runs(plan("--fit", "--pass", "baseline"))) == 4


def test_the_plan_counts_the_cases_that_are_left_and_names_the_others_in_a_line(plan):
    done = plan("--fit", "--set", "repeats=3", command="plan")
    assert "\n4 of 6 cases, 24 runs, " in done.stdout
    why = "4 GPUs asked, but site two has 2 on a node (gpus.per_node: 2)\n"
    assert f"\nmissing: cases gpus-4_batch-8, gpus-4_batch-16 (12 runs): {why}" in done.stdout


@pytest.mark.parametrize("path", ["passes.1.timeline.time", "passes.look.time", "passes.1.timeline={time: 7m}"])
def test_a_key_that_a_pass_lacks_is_set_by_its_path(plan, path):
    setting = path if "=" in path else f"{path}=7m"
    done = plan("--set", setting, "--set", "gpus=1", "--pass", "look")
    assert len(runs(done)) == 2
    assert " 420 " in done.stdout


@pytest.mark.parametrize("passes", ["[baseline]", "[{baseline: {}}]", "[{baseline: }]"])
def test_a_key_of_a_pass_in_its_short_form_is_set(plan, tmp_path, passes):
    head, tail = RECIPE.partition("passes:")[0], RECIPE[RECIPE.index("resources:") :]
    (tmp_path / "r.yaml").write_text(f"{head}passes: {passes}\n{tail}")
    for path in ("passes.0.baseline.time", "passes.baseline.time"):
        assert " 420 " in plan("--set", f"{path}=7m", "--set", "gpus=1").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--set", "passes.1.timeline.tmie=7m"), "did you mean 'time'?"),
        (("--set", "passes.look.tmie=7m"), "did you mean 'time'?"),
        (("--set", "passes.1.timeline.time=soon"), "--set passes.1.timeline.time:1:24: "),
        (("--set", "passes.2.timeline.time=7m"), "there is no pass 2; the recipe has 0 baseline, 1 look"),
        (("--set", "passes.1.baseline.time=7m"), "pass 1 is a timeline, no baseline"),
        (("--set", "passes.lok.time=7m"), "did you mean 'look'?"),
        (("--set", "gpsu=1"), "the recipe has no gpsu"),
        (("--set", "gpsu=1"), "did you mean 'gpus'?"),
        (("--set", "zzz=1"), "its parameters: batch, gpus; a key is written by its path, such as resources.time"),
        (("--set", "gpus"), "expected NAME=VALUE"),
        (("--set", "resources.time=soon"), "--set resources.time:1:16: "),
        (("--set", "resources.tiem=1h"), "did you mean 'time'?"),
        (("--case", "gpus=3"), "--case gpus=3: no case matches"),
        (("--pass", "loook"), "did you mean 'look'?"),
        (("--set", "gpus=[1"), "--set gpus:1:6: this bracket is not closed by ']'"),
        (("--set", "gpus=[1"), "\n  1 | gpus=[1\n    |      ^\n"),
        (("--set", "gpus="), "\n  1 | gpus=\n"),
        (("--set", "resources.gpus=["), "--set resources.gpus:1:16: this bracket is not closed by ']'"),
        (("--set", "batch='8"), "--set batch:1:7: this quote is never closed"),
        (("--set", "app.command=x: y"), "--set app.command:1:13: this value is a map to YAML"),
        (("--set", "app.command=- x"), "--set app.command:1:13: this value is a list to YAML"),
    ],
)
def test_what_is_wrong_is_told_where_it_was_written(plan, words, told):
    done = plan(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_is_a_parameter_and_a_key_must_be_a_path(plan, tmp_path):
    (tmp_path / "r.yaml").write_text(RECIPE.replace("batch: [8, 16]", "repeats: [8, 16]").replace("batch", "repeats"))
    assert "write matrix.repeats" in plan("--set", "repeats=2").stderr
    assert ".repeats for the key" in plan("--set", "repeats=2").stderr
    assert len(runs(plan("--set", "matrix.repeats=2", "--set", "gpus=1", "--pass", "baseline"))) == 1
    assert len(runs(plan("--set", ".repeats=2", "--set", "gpus=1", "--pass", "baseline"))) == 2 * 2


def test_the_lockfile_repeats_what_was_chosen(tmp_path):
    text = RECIPE.replace("./prog", "echo").replace('"{{ gpus }}"', "0")
    (tmp_path / "r.yaml").write_text(text)
    words = ["--case", "gpus=2", "--set", "batch=8,32", "--pass", "baseline"]
    argv = [sys.executable, "-m", "nsw", "run", "r.yaml", "--site", "local", "--root", "c", *words]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    (lock,) = tmp_path.glob("c/*/recipe.lock.yaml")
    again = subprocess.run(
        [sys.executable, "-m", "nsw", "plan", lock, "--site", "local", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(again.stdout)["cases"] == ["gpus-2_batch-8", "gpus-2_batch-32"]


def test_a_dry_run_is_the_plan_and_makes_nothing(plan, tmp_path):
    done = plan("--dry-run", "--fit", command="run")
    assert "GPU-hours" in done.stdout or done.returncode in {0, 3}
    assert not (tmp_path / "campaigns").exists()
