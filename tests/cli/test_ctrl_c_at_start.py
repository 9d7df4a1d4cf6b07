"""Ctrl-C while nsw starts, from its first line of code on: no traceback, exit code 130."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import nsw as package

POINTS = 15
# loaded by Python before nsw: counts function calls from nsw's first line on, and sends SIGINT at one of them
COUNTS = """
import os, sys, signal
at, package, end = int(os.environ["NSW_TEST_AT"]), os.environ["NSW_TEST_PACKAGE"], os.environ["NSW_TEST_COUNT"]
count, exit_now = 0, os._exit
def counted(frame, event, argument):
    global count
    if event != "call" or not (count or frame.f_code.co_filename.startswith(package)):
        return
    count += 1
    if count == at:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
def exit_counted(code):
    sys.setprofile(None)
    with open(end, "w") as file:
        file.write(str(count))
    exit_now(code)
os._exit = exit_counted
sys.setprofile(counted)
"""
PROGRAMS = {
    "nsw": [str(Path(sysconfig.get_path("scripts"), "nsw"))],
    "python -m nsw": [sys.executable, "-m", "nsw"],
}


@pytest.fixture
def interrupted(tmp_path, home):
    """Runs a command that gets SIGINT at its nth call of a function; 0: never, and the number of its calls."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(COUNTS)
    count = tmp_path / "count"

    def run(command, at):
        variables = {
            "PYTHONPATH": str(tmp_path / "site"),
            "NSW_TEST_AT": str(at),
            "NSW_TEST_PACKAGE": str(Path(package.__file__).parent),
            "NSW_TEST_COUNT": str(count),
        }
        done = subprocess.run(
            command, cwd=home, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=300
        )
        return done, int(count.read_text()) if at == 0 else None

    return run


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("words", [["ls"], ["plan", "r.yaml", "-s", "here"], ["read", "nothing.csv"]], ids=" ".join)
def test_it_prints_no_traceback_at_any_moment(interrupted, recipe, program, words):
    if not Path(PROGRAMS[program][0]).exists():
        pytest.skip("the command nsw is not installed beside this Python")
    recipe("{command: 'true'}")
    command = [*PROGRAMS[program], *words]
    _, calls = interrupted(command, 0)
    assert calls > 1000
    for at in [
        *range(3, 8),
        *(  # before are the module itself, and the question whether this is the command
            calls * number // POINTS for number in range(1, POINTS)
        ),
    ]:
        done, _ = interrupted(command, at)
        assert done.returncode == 130, (at, done.returncode, done.stderr)
        assert "Traceback" not in done.stderr, (at, done.stderr)
        assert "KeyboardInterrupt" not in done.stderr, (at, done.stderr)


def test_a_program_that_imports_nsw_keeps_its_hooks():
    code = "import sys, nsw; assert sys.excepthook is sys.__excepthook__; assert sys.unraisablehook is sys.__unraisablehook__"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0
