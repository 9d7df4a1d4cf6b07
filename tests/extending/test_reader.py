"""docs/extending/reader.md: its blocks are installed as a package, whose reader reads a report and reports damage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .packages import install

if TYPE_CHECKING:
    from pathlib import Path

REPORT = """"Name","TotalCalls","TotalDuration","Ave","Percentage"
"void gemm<float>(float*)",10,2,0.2,80.0
"copy(int*)",5,0.5,0.1,20.0
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The package of the page, installed in a folder of its own."""
    install("reader.md", tmp_path / "site", "rpd_nsw/top.py")
    return os.environ | {"PYTHONPATH": str(tmp_path / "site")}


def nsw(env: dict[str, str], work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "nsw", "read", *words)
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=work)


def report(done: subprocess.CompletedProcess[str]) -> dict:
    (first,) = json.loads(done.stdout)["reports"]
    return first


def test_a_report_is_read_by_the_reader_of_another_package(env, tmp_path):
    (tmp_path / "top.csv").write_text(REPORT)
    done = nsw(env, tmp_path, "top.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert report(done)["format"] == "rpd-top"
    rows = report(done)["tables"]["gpu_summary"]
    assert [(row["short_name"], row["total_ns"]) for row in rows] == [("gemm", 2000), ("copy", 500)]
    assert "rpd-top" in nsw(env, tmp_path, "--formats").stdout


# the name of a test is in its environment, whose words have a longest length
@pytest.mark.parametrize("row", ["cut,1", f"{'long' * 50_000},1,2,2,0.1"], ids=["cut", "long"])
def test_a_damaged_row_is_reported_with_its_line(env, tmp_path, row):
    (tmp_path / "top.csv").write_text(f"{REPORT}{row}\n")
    done = nsw(env, tmp_path, "top.csv", "--format", "json")
    assert [(p["severity"], p["line"]) for p in report(done)["problems"]] == [("error", 4)]
    assert len(report(done)["tables"]["gpu_summary"]) == 2


def test_a_reader_that_cannot_be_loaded_is_named_where_nsw_does_not_know_a_file(env, tmp_path):
    (tmp_path / "site" / "rpd_nsw" / "top.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "top.csv").write_text(REPORT)
    done = nsw(env, tmp_path, "top.csv", "--format", "json")
    assert done.returncode != 0
    messages = [p["message"] for p in report(done)["problems"]]
    assert "no known report format" in messages[0]
    assert "the reader rpd-top (rpd_nsw.top) of another package cannot be loaded: No module" in messages[1]
