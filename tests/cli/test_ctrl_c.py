"""Ctrl-C at a real terminal: what stays on the screen is whole, and the terminal is as it was."""

import os
import pty
import select
import sys
import termios
import time

DEADLINE_S = 300  # on a busy machine an nsw alone takes a minute to start


def read_until(terminal, is_there):
    """What the terminal shows until it holds something, or until the program ends."""
    shown, deadline = b"", time.monotonic() + DEADLINE_S
    while not is_there(shown):
        assert time.monotonic() < deadline, shown
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:  # the program ended
            break
    return shown


def test_no_key_is_echoed_and_status_knows_of_the_run_that_goes_on_alone(recipe, home, nsw):
    recipe(f"{{command: 'until [ -e {home}/go ]; do sleep 0.05; done'}}", "matrix: {n: [1, 2]}\n")
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm", COLUMNS="80")
        os.execv(sys.executable, [sys.executable, "-m", "nsw", "run", "r.yaml", "-s", "here", "--now"])
    before = termios.tcgetattr(terminal)
    read_until(terminal, lambda shown: b"so far" in shown)
    os.write(terminal, b"\x03")
    shown = read_until(terminal, lambda shown: b"goes on" in shown and b"ends them" in shown)
    assert b"^C" not in shown
    assert termios.tcgetattr(terminal)[3] == before[3]
    (home / "go").touch()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    status = ("status", "--runs")
    deadline = time.monotonic() + DEADLINE_S
    while len(list(home.glob("campaigns/*/scratch/runs/*/attempt-1/status"))) < 2:
        assert time.monotonic() < deadline, nsw(*status).out
        time.sleep(0.05)
    said = nsw(*status).out
    assert "2 runs: 2 done\n" in said
    assert "goes on" in said  # which reads their reports
    assert "2 runs: 2 done\n" in nsw("watch", "--once").out
