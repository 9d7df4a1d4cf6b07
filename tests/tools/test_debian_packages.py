"""Packages of tests are installed also where another apt is at work, and a failure says what apt printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("debian_packages.py")
APT = """#!/bin/bash
echo "$@" >>"$0.calls"
{fault}
case " $* " in *" install "*) touch "$0.done" ;; esac
"""
DPKG = """#!/bin/bash
[ -e "${0%/*}/apt-get.done" ] && printf installed
"""
HELD = """if [ ! -e "$0.held" ]; then
    touch "$0.held"
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)" >&2
    exit 100
fi"""
OFFLINE = "echo 'E: Failed to fetch http://example.org/Packages' >&2; exit 100"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")


def install(folder: Path, fault: str, *groups: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    for name, text in (("apt-get", APT.format(fault=fault)), ("dpkg-query", DPKG)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, TOOL, *groups], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    calls = folder / "apt-get.calls"
    return done, calls.read_text().splitlines() if calls.exists() else []


def test_it_waits_for_an_apt_that_holds_the_lists(tmp_path):
    done, calls = install(tmp_path, HELD, "queue")
    assert done.returncode == 0, done.stderr
    assert [call.split()[4:] for call in calls] == [
        ["update"], ["update"], ["install", "--no-install-recommends", "task-spooler"],
    ]  # fmt: skip
    _, again = install(tmp_path, HELD, "queue")
    assert again == calls


def test_a_failure_is_not_repeated_and_says_what_apt_printed(tmp_path):
    done, calls = install(tmp_path, OFFLINE, "queue")
    assert done.returncode == 1
    assert done.stderr == "debian_packages.py: E: Failed to fetch http://example.org/Packages\n"
    assert len(calls) == 1


def test_an_unknown_group_is_refused(tmp_path):
    done, calls = install(tmp_path, "", "slrum")
    assert (done.returncode, calls) == (1, [])
    assert "no group slrum; there are slurm, slurm-accounting" in done.stderr
