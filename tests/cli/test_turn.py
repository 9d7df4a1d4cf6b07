"""A second campaign on this machine waits for its turn and says so; it can be ended, or started beside the first."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEADLINE_S = 300  # on a busy machine an nsw alone takes a minute to start
APP = "{command: 'echo NAME >>HOME/ran; until [ -e HOME/go-NAME ]; do sleep 0.05; done'}"


def in_quotes(path):
    """A word of a shell's command that stands in a quoted text of YAML."""
    return shlex.quote(str(path)).replace("'", "''")


def wait_until(holds):
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "the awaited condition did not come true"
        time.sleep(0.02)


@pytest.fixture
def start(recipe, home):
    """Start a campaign in a process of its own: (name, more words) -> process; its stderr is in NAME.err."""
    processes = []

    def begin(name, *more):
        recipe(APP.replace("HOME", in_quotes(home)).replace("NAME", name), name=f"{name}.yaml")
        with (home / f"{name}.err").open("w") as err:
            words = [sys.executable, "-m", "nsw", "run", f"{name}.yaml", "-s", "here", "--root", name, *more]
            words += ["--set", "resources.time=1h"]  # the first runs for as long as the second takes to be seen waiting
            process = subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=err)
        processes.append(process)
        return process

    yield begin
    for name in ("a", "b"):
        (home / f"go-{name}").touch()
    for process in processes:
        process.wait(timeout=DEADLINE_S)


def ran(home):
    return (home / "ran").read_text().split() if (home / "ran").exists() else []


def said(home, name):
    return (home / f"{name}.err").read_text()


def end(home, process, name):
    (home / f"go-{name}").touch()
    assert process.wait(timeout=DEADLINE_S) == 0


def test_the_second_waits_names_the_first_and_goes_on_by_itself(start, home):
    first = start("a")
    wait_until(lambda: ran(home) == ["a"])
    second = start("b")
    wait_until(lambda: "waits for its turn" in said(home, "b"))
    (campaign,) = Path("a").iterdir()
    text = " ".join(said(home, "b").split())
    assert f"another campaign runs on this machine: {campaign.name} ({campaign.absolute()})" in text
    (waiting,) = Path("b").iterdir()
    assert "Ctrl-C ends the wait" in text
    assert text.count(f"resume -c b/{waiting.name}") == 2
    assert ran(home) == ["a"]
    end(home, first, "a")
    wait_until(lambda: ran(home) == ["a", "b"])
    end(home, second, "b")
    assert "its turn has come" in said(home, "b")


def test_who_does_not_want_to_wait_ends_it_or_starts_beside_the_first(start, home, nsw):
    first = start("a")
    wait_until(lambda: ran(home) == ["a"])
    second = start("b")
    wait_until(lambda: "waits for its turn" in said(home, "b"))
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=DEADLINE_S) == 130
    assert ran(home) == ["a"]
    (home / "go-b").touch()
    assert nsw("resume", "--root", "b", "--now").code == 0
    assert ran(home) == ["a", "b"]
    assert first.poll() is None


def test_runs_that_outlive_their_nsw_are_waited_for_but_not_by_their_own_campaign(start, home, nsw):
    first = start("a")
    wait_until(lambda: ran(home) == ["a"])
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=DEADLINE_S) == 130
    second = start("b")
    wait_until(lambda: "runs of another campaign are running on this machine" in said(home, "b"))
    assert ran(home) == ["a"]
    (home / "go-a").touch()
    wait_until(lambda: ran(home) == ["a", "b"])
    end(home, second, "b")
    assert nsw("resume", "--root", "a").code == 0


def test_a_campaign_that_a_run_starts_does_not_wait_for_the_run(nsw, recipe, home):
    recipe("{command: 'true'}", name="inner.yaml")
    inner = f"cd {in_quotes(home)} && {in_quotes(sys.executable)} -m nsw run inner.yaml -s here --root inner"
    recipe(f"{{command: '{inner}'}}", name="outer.yaml")
    nsw("run", "outer.yaml", "-s", "here", exits=0)


def test_a_waiting_campaign_can_be_cancelled(start, home, nsw):
    start("a")
    wait_until(lambda: ran(home) == ["a"])
    second = start("b")
    wait_until(lambda: "waits for its turn" in said(home, "b"))
    assert "1 run: 1 cancelled" in nsw("cancel", "--root", "b").out
    assert second.wait(timeout=DEADLINE_S) == 1
    assert ran(home) == ["a"]


def test_without_a_safe_folder_nothing_is_waited_for_and_that_is_said(nsw, recipe, home, monkeypatch):
    def none():
        raise OSError("no folder is safe")

    monkeypatch.setattr("nsw.schedulers.local.claims_folder", none)
    recipe("{command: 'true'}")
    said = nsw("run", "r.yaml", "-s", "here")
    assert (said.code, os.environ.get("NSW_CAMPAIGN")) == (0, None)
    assert "nsw cannot see whether other campaigns run on this machine: no folder is safe" in said.err
