"""Who only looks at a campaign does not wait for what reads recipes and reports to be loaded."""

from __future__ import annotations

import os
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
HEAVY = ("jinja2", "yaml", "pydantic", "pandas", "numpy", "pyarrow", "paramiko", "nsw.recipe.model", "nsw.plan.build")
# of nsw itself: what decides, drives and analyses; `nsw logs` may have to ask a scheduler for its log
DRIVES = ("nsw.plan.model", "nsw.schedulers.model", "nsw.recipe.units", "nsw.analysis.blocks")
LOOK = f"""
import sys
DRIVES = () if "logs" in sys.argv else {DRIVES}
from nsw.cli.main import run
code = run(sys.argv[1:])
print("loaded:", sorted(set({HEAVY} + DRIVES) & sys.modules.keys()))
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
    words = [sys.executable, "-P", "-c", LOOK, command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "NSW_ROOT": str(root)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("loaded: []\n"), done.stdout


PLANS = """
import sys
from nsw.cli.main import run
assert run(sys.argv[1:]) == 0
print("loaded:", [name for name in sys.modules if name.startswith("nsw.readers")])
"""


def test_planning_on_this_machine_loads_no_reader(root):
    words = [sys.executable, "-P", "-c", PLANS, "plan", str(root.parent / "recipe.yaml"), "--site", "local"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("loaded: []\n"), done.stdout + done.stderr


HELPS = """
import sys
from nsw.cli.main import run
assert run(["--help"]) == 0
from nsw.cli.application import COMMANDS
print("loaded:", [name for name in ("options", *COMMANDS.values()) if f"nsw.cli.{name}" in sys.modules])
"""


def test_the_help_of_nsw_itself_builds_no_command_s_options():
    done = subprocess.run([sys.executable, "-P", "-c", HELPS], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("loaded: []\n"), done.stdout + done.stderr
