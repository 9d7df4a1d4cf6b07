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
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SLOWER = 12  # the first night with slower GEMMs


def tables(night, name, rows):
    if night < SLOWER or name not in {"gpu_summary", "phase_summary"}:
        return rows
    return [row | {"total_ns": 1.3 * row["total_ns"]} if "gemm" in (row["name"] or "") else row for row in rows]


def lock(night, text):
    recipe = yaml.safe_load(text)
    commit = ("a" if night < SLOWER else "b") * 40
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
            lines = [line for line in printed.splitlines() if "──" not in line and line.strip()]
            shown = [line.split() for line in text.splitlines() if line.strip()]
            assert [re.sub(r"\d{4}-\d\d-\d\d", "DATE", line).split() for line in lines[: len(shown)]] == shown
            (sentence,) = lines[len(shown) :]
            assert "and 2 more cases" in sentence
            assert "Changed with it: program aaaaaaaaaaaa and bbbbbbbbbbbb." in sentence
            assert "gemmSN_TN_kernel takes" in sentence
            assert "Class GEMM changed most: 146 us more." in sentence
            continue
        for line in text.splitlines():
            done = nsw(*shlex.split(line)[1:])
            codes.append(done.returncode)
            printed = done.stdout
    assert codes == [0, 4, 0, 0]
