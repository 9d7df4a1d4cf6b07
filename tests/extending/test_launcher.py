"""docs/extending/launcher.md: its blocks are installed as a package, and a recipe may name its launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nsw.recipe.launcher_names import LAUNCHERS

from .packages import block, install

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The package of the page, installed in a folder of its own."""
    install("launcher.md", tmp_path / "site", "flux_nsw.py")
    (tmp_path / "recipe.yaml").write_text("nsw: 1\nname: timed\n" + block("launcher.md", "yaml"))
    (tmp_path / "sites.yaml").write_text("nsw: 1\nsites: {s: {scheduler: slurm, gpus: {per_node: 4}}}\n")
    return os.environ | {"PYTHONPATH": str(tmp_path / "site")}


def nsw(env: dict[str, str], work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "nsw", *words, "--site", "s", "--sites", "sites.yaml")
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=work)


def test_a_recipe_may_name_the_launcher_of_another_package(env, tmp_path):
    done = nsw(env, tmp_path, "plan", "recipe.yaml", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    words = "flux run --nodes=2 --ntasks=8 --cores-per-task=4 -o cpu-affinity=per-task --gpus-per-task=1"
    assert run["command"].startswith(words)


def test_an_option_of_its_own_that_contradicts_the_recipe_is_refused(env, tmp_path):
    recipe = (tmp_path / "recipe.yaml").read_text().replace("processes: 8", "processes: 8, options: [-n, '4']")
    (tmp_path / "recipe.yaml").write_text(recipe)
    done = nsw(env, tmp_path, "plan", "recipe.yaml")
    assert done.returncode == 2
    assert "-n asks for 4 processes, and the recipe for 8" in done.stderr


def test_a_command_line_that_starts_with_it_is_taken_apart(env, tmp_path):
    argv = (
        sys.executable,
        "-c",
        "from nsw.recipe.program import split_at_launcher; import sys; print(split_at_launcher(sys.argv[1:]))",
    )
    done = subprocess.run(
        (*argv, "flux", "run", "-n", "4", "-o", "x", "./prog"),
        env=env,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "Launched(kind='flux', processes=4, options=('-o', 'x'), program=('./prog',))"


def test_without_the_package_the_name_is_refused_with_those_that_there_are(env, tmp_path):
    done = nsw(env | {"PYTHONPATH": ""}, tmp_path, "plan", "recipe.yaml")
    assert done.returncode == 2
    assert f"expected one of {', '.join(LAUNCHERS)}; found 'flux'" in done.stderr
