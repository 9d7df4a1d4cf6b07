"""After a canary that failed: what `nsw retry` and `nsw resume` do, and what they leave."""

import json

import pytest

from nsw.cli import running
from nsw.engine import folder as folders


@pytest.fixture
def stopped(nsw, recipe, home):
    """A campaign of four whose canary, n = 1, failed: `cure` exists when it would not."""
    app = "{command: 'echo {{ n }} >> ' + home + '/ran; test -e ' + home + '/cure'}".replace("' + home + '", str(home))
    said = nsw("run", recipe(app, "matrix: {n: [1, 2, 3, 4]}\ncanary: on\n"), "-s", "here", exits=1)
    assert "n-1.baseline.r1, ran alone and failed: exit status 1" in said.err
    assert "3 runs wait; " in said.err
    return home


def ran(home):
    return sorted((home / "ran").read_text().split())


def states(nsw):
    return [r["state"] for r in json.loads(nsw("status", "--runs", "--json").out)["runs"]]


def test_a_retry_tries_the_canary_alone_again(nsw, stopped):
    said = nsw("retry")
    assert (said.code, ran(stopped)) == (1, ["1", "1"])
    assert "ran alone" in said.err


def test_the_rest_follows_a_retried_canary_that_came_back(nsw, stopped):
    (stopped / "cure").touch()
    assert nsw("retry").code == 0
    assert ran(stopped) == ["1", "1", "2", "3", "4"]


def test_a_retry_of_named_runs_does_those_alone(nsw, stopped):
    (stopped / "cure").touch()
    said = nsw("retry", "n-1.baseline.r1")
    assert ran(stopped) == ["1", "1"]
    assert "3 runs still wait: `nsw resume" in said.err
    assert states(nsw) == ["done", "planned", "planned", "planned"]
    assert nsw("resume").code == 0
    assert ran(stopped) == ["1", "1", "2", "3", "4"]


def test_resume_does_the_rest_without_the_canary(nsw, stopped):
    assert nsw("resume").code == 1
    assert ran(stopped) == ["1", "2", "3", "4"]
    nsw("retry", "n-3.baseline.r1")  # the canary, which still failed, holds nothing any more
    assert ran(stopped) == ["1", "2", "3", "3", "4"]


def test_while_nsw_is_away_the_rest_is_said_to_wait_for_it(nsw, stopped, capsys):
    (name,) = [p.name for p in (stopped / "campaigns").iterdir()]
    assert "3 runs wait for `nsw resume" in nsw("status").out
    running._report_interruption(folders.find(stopped / "campaigns", name))
    assert "3 runs wait for `nsw resume" in capsys.readouterr().err
