"""A finished campaign's recipe.lock.yaml repeats it exactly, and what is different then is told."""

import json
import shutil
import subprocess

import pytest
import yaml

RECIPE = """
nsw: 1
name: locked
app:
  command: bash prog.sh {{ n }} {{ twice }}
  files: [parts/prog.sh, parts/data]
matrix: {n: [1, 2], twice: "{{ n * 2 }}"}
repeats: 2
passes: [baseline]
resources: {gpus: 0, time: 1m}
sites: {here: {app: {env: {WHERE: here}}}, one: {app: {env: {WHERE: one}}}}
"""


def begin(road):
    parts = road.home / "parts"
    (parts / "data").mkdir(parents=True)
    (parts / "prog.sh").write_text('echo "$1 $2 $WHERE"; cat data/table\n')
    (parts / "data" / "table").write_text("first\n")
    road.run(RECIPE, exits=0)
    return road.campaign


def again(road, first, site="here"):
    done = road.nsw("run", str(first / "recipe.lock.yaml"), "--site", site, exits=0)
    (second,) = [p for p in road.root.iterdir() if p.is_dir() and p.name != first.name]
    return done, second


def scripts(campaign):
    return {p.name: p.read_text().replace(campaign.name, "CAMPAIGN") for p in (campaign / "scripts").iterdir()}


def lock_of(campaign):
    return yaml.safe_load((campaign / "recipe.lock.yaml").read_text())["lock"]


def test_the_lock_gives_the_same_plan_and_the_same_scripts(road):
    first = begin(road)
    (road.home / "recipe.yaml").unlink()
    (road.home / "parts" / "prog.sh").write_text("exit 1\n")
    done, second = again(road, first)
    assert "warning" not in done.stderr
    assert scripts(second) == scripts(first)
    plans = [road.nsw("plan", str(c / "recipe.lock.yaml"), "--site", "here", "--json").stdout for c in (first, second)]
    assert json.loads(plans[0]) == json.loads(plans[1])
    assert (second / "reports/n-2_twice-4.baseline.r2/stdout").read_text() == "2 4 here\nfirst\n"
    assert lock_of(second)["files"] == lock_of(first)["files"]
    assert set(lock_of(first)["files"]) == {"prog.sh", "data/table"}


def test_what_is_not_as_it_was_is_named(road):
    first = begin(road)
    (first / "app" / "data" / "table").write_text("second\n")
    (first / "app" / "data" / "more").write_text("")
    path = first / "recipe.lock.yaml"
    text = path.read_text().replace(f"version: {lock_of(first)['version']}", "version: 0.0.7")
    path.write_text(text)
    done, second = again(road, first, site="one")
    said = " ".join(done.stderr.split())
    assert "warning: the lock is of nsw 0.0.7, and this is " in said
    assert "warning: the lock is of site here, and this is one" in said
    assert "warning: app/data/table has changed since the lock was written" in said
    assert "warning: app/data/more was added since the lock was written" in said
    assert lock_of(second)["files"]["data/table"] != lock_of(first)["files"]["data/table"]
    assert (second / "reports/n-1_twice-2.baseline.r1/stdout").read_text().startswith("1 2 here\n")


@pytest.mark.skipif(not shutil.which("git"), reason="no git here")
def test_the_commit_of_the_application_stands_in_the_lock_and_a_newer_one_is_told(road):
    def git(*words):
        subprocess.run(["git", "-C", road.home, *words], check=True, capture_output=True)

    git("init")
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    git(*who, "commit", "--allow-empty", "-m", "one")
    first = begin(road)
    locked = lock_of(first)["git"]
    assert locked["dirty"] is True
    assert locked["folder"] == str(road.home / "parts")
    git("add", "parts")
    git(*who, "commit", "-m", "two")
    done, second = again(road, first)
    assert f"gone on from commit {locked['commit'][:12]} to " in " ".join(done.stderr.split())
    assert lock_of(second)["git"] == locked


def test_versions_of_tools_are_taken_from_what_the_jobs_wrote():
    from nsw.engine.recipe_lock import tools_of

    hosts = "host=a\nmodules=\nnsys=NVIDIA Nsight Systems version 2024.2\nhost=b\nnsys=version 2023\n"
    gpus = "index, name, uuid, driver_version\n0, A100, GPU-1, 535.1\n1, A100, GPU-2, 535.1\n"
    assert tools_of(f"{hosts}=\n{gpus}") == {
        "driver": "535.1",
        "nsys": "NVIDIA Nsight Systems version 2024.2 | version 2023",
    }


def test_another_version_of_a_tool_is_told_at_the_end(road):
    first = begin(road)
    path = first / "recipe.lock.yaml"
    road.environment["PATH"] = f"{road.home}/bin:/usr/bin:/bin"
    (road.home / "bin").mkdir()
    (road.home / "bin" / "nvcc").write_text("#!/bin/sh\necho new\n")
    (road.home / "bin" / "nvcc").chmod(0o755)
    recipe = yaml.safe_load(path.read_text())
    recipe["lock"]["tools"] = {"nvcc": "old"}
    path.write_text(yaml.safe_dump(recipe))
    done, second = again(road, first)
    assert "warning: nvcc was old, and here it is new" in done.stderr
    assert lock_of(second)["tools"] == {"nvcc": "new"}
