"""docs/howto/since-when.md: its commands run on nights of the demo's campaign, and print what the page shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.nights import make_nights

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "since-when.md"
BLOCK = re.compile(r"^```(sh|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SLOWER = 12  # the first night with slower GEMMs


def tables(night, name, rows):
    if night < SLOWER or name not in {"gpu_summary", "phase_summary"}:
        return rows
    return [row | {"total_ns": 1.3 * row["total_ns"]} if "gemm" in (row["name"] or "") else row for row in rows]


def lock(night, text):
    recipe = yaml.safe_load(text)
    commit = ("7fba01dc4b44" if night < SLOWER else "db81fde1b2b6").ljust(40, "0")
    recipe["lock"]["git"] = {"commit": commit, "dirty": False, "folder": "/alexnet"}
    return yaml.safe_dump(recipe)


@pytest.fixture
def nsw(tmp_path, monkeypatch):
    """nsw in a folder with 20 nights, as processes of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words):
        command = [sys.executable, "-m", "nsw", *words]
        return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False, cwd=tmp_path)

    done = call("run", "alexnet_scaling", "-s", "demo", "--case", "batch=8", "--yes")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(next((tmp_path / "campaigns").iterdir()) / "reports")  # only tables are looked at
    noise = np.exp(0.005 * np.random.default_rng(1).standard_normal(20))
    factors = list(noise * np.where(np.arange(20) < SLOWER, 1, 0.94))
    first = next((tmp_path / "campaigns").iterdir())
    make_nights(first, factors, figure="images_per_sec", tables=tables, lock=lock)
    return call


def test_the_page_prints_what_it_shows(nsw):
    printed, codes = "", []
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "text":
            for line in filter(None, text.splitlines()):
                if line != "...":
                    _, is_there, printed = printed.partition(" ".join(line.split()))
                    assert is_there, line
        elif kind == "sh":
            for line in text.splitlines():
                done = nsw(*shlex.split(line)[1:])
                codes.append(done.returncode)
                printed = without_dates(done.stdout)
    assert codes == [0, 4, 0, 0]


def without_dates(text):
    """What nsw printed in one line, with DATE for times and for those in campaigns' names, and nsw as a reader has it."""
    text = re.sub(r"(?<=-)\d{8}-\d{6}-\w{4}|\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", "DATE", text)
    return re.sub(r"`\S+ -m nsw", "`nsw", " ".join(re.sub("─+", "", text).split()))


RECIPE = """nsw: 1
name: train
app:
  command: python3 train.py
  files: [train.py]
  figures: {images_per_sec: {regex: 'images_per_sec=(\\S+)', unit: images/s}}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""


def test_bisecting_as_the_page_shows_finds_the_slow_commit(tmp_path):
    """Of a program that prints a speed which scatters by 0.1 %, and is 6 % lower from the fourth commit on."""
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "nsw").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsw "$@"\n')
    (tmp_path / "nsw").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_STATE_HOME": str(tmp_path / "state")}

    def shell(script):
        done = subprocess.run(
            ["sh", "-ec", script], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell("git init -q; git config user.email me@example.org; git config user.name me")
    for number, speed in enumerate((100, 100, 100, 94, 94)):
        program = f"import random  # {number}\nprint(f'images_per_sec={{random.gauss({speed}, 0.1):.3f}}')\n"
        (tmp_path / "train.py").write_text(program)
        shell(f"git add train.py; git commit -qm 'commit {number}'")
    good, bad = shell("git rev-parse HEAD~4 HEAD~1").split()
    (script,) = (text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == "bash")
    assert f"{bad} is the first bad commit" in shell(script.replace("GOOD", good).replace("mycluster", "local"))
