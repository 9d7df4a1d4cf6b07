"""No process of a test outlives it with the locks that it inherited, however the test ends."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .forked import ended, forked

PATIENCE_S = 30
HOLDER = """
import fcntl, sys, time
from tests.far.forked import ended, forked
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
def work():
    print("begun", flush=True)
    time.sleep(600)
    return 0
ended(forked(work))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["KILL", "TERM", "INT"])
def test_a_lock_is_free_once_the_test_that_holds_it_was_ended(tmp_path, how):
    lock = tmp_path / "lock"
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(root)}, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(how)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while not is_free(lock):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_free(lock: Path) -> bool:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_its_exit_status_is_that_of_its_work():
    assert ended(forked(lambda: 3)) == 3
    assert ended(forked(lambda: os.kill(os.getpid(), signal.SIGKILL) or 0)) == -signal.SIGKILL
