"""Who only looks at a campaign does not wait for what reads recipes and reports to be loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nsw.cli.main import run

RECIPE = """
nsw: 1
name: small
app: {command: "true"}
resources: {gpus: 0, time: 1m}
"""
HEAVY = ("jinja2", "yaml", "pandas", "numpy", "pyarrow", "paramiko", "nsw.recipe.model", "nsw.plan.build")
LOOK = f"""
import sys
from nsw.cli.main import run
code = run(sys.argv[1:])
print("loaded:", sorted(set({HEAVY}) & sys.modules.keys()))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light")
    (folder / "recipe.yaml").write_text(RECIPE)
    assert run(["run", str(folder / "recipe.yaml"), "--site", "local", "--root", str(folder / "campaigns")]) == 0
    return folder / "campaigns"


@pytest.mark.parametrize("command", ["status", "ls", "logs", "problems"])
def test_looking_loads_nothing_that_reads_recipes_and_reports(root, command):
    words = [sys.executable, "-P", "-c", LOOK, command, "--root", str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("loaded: []\n"), done.stdout
