"""`stop_after_failures`: nothing new begins after so many failures; what waits is left for `nsw resume`."""

import json

import pytest

APP = "{command: 'echo {{ n }} >>%s/ran; exit {{ [n, 3] | min }}'}"


@pytest.fixture
def run(nsw, recipe, home):
    """Carry out ten runs, of which all but the first fail, one after the other."""

    def carry_out(more, site="one"):
        (home / "sites.yaml").write_text(
            "nsw: 1\nsites:\n  one: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 1}}\n"
            "  strict: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 1}, stop_after_failures: 2}\n"
            "  packed: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 1, runs_per_job: 5}}\n"
        )
        recipe(APP % home, f"matrix: {{n: {{range: [0, 9]}}}}\n{more}")
        return nsw("run", "r.yaml", "-s", site, exits=1)

    return carry_out


def ran(home):
    return [int(n) for n in (home / "ran").read_text().split()]


def test_nothing_new_begins_and_resume_goes_on_up_to_the_next(nsw, run, home):
    said = run("stop_after_failures: 3\n")
    assert ran(home) == [0, 1, 2, 3]
    why = "3 runs failed (stop_after_failures: 3)"
    assert f"stopped: {why}; no new run starts, and running ones continue" in said.err
    assert f"6 runs still wait, since {why}: `nsw resume" in said.err
    status = nsw("status")
    assert f"stopped: {why}\n" in status.out
    assert "wait for `nsw resume" in status.out
    assert json.loads(nsw("status", "--json").out)["stopped"] == why
    assert nsw("resume").code == 1
    assert ran(home) == [0, 1, 2, 3, 4, 5, 6]


def test_the_site_says_it_where_the_recipe_does_not(run, home):
    run("", site="strict")
    assert ran(home) == [0, 1, 2]


def test_the_recipe_comes_before_the_site(run, home):
    run("stop_after_failures: 4\n", site="strict")
    assert ran(home) == [0, 1, 2, 3, 4]


def test_a_retry_counts_anew(nsw, run, home):
    run("stop_after_failures: 1\n")
    assert ran(home) == [0, 1]
    nsw("retry", "n-1.baseline.r1")
    assert ran(home) == [0, 1, 1]


def test_the_runs_of_a_packed_job_that_wait_are_withdrawn(nsw, run, home):
    run("stop_after_failures: 2\n", site="packed")
    done = ran(home)
    assert len(done) < 10
    states = [r["state"] for r in json.loads(nsw("status", "--json").out)["runs"]]
    assert states.count("planned") == 10 - len(done)
    assert states.count("planned") >= 5


def test_it_is_not_there_unless_it_is_asked_for(run, home):
    run("")
    assert ran(home) == list(range(10))
