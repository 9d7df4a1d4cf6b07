"""`nsw run --until decided`: pairs are added until they decide or the price is reached, through kills at any moment."""

import json
import random
import signal
import subprocess
import sys
from collections import Counter

import pytest
import yaml

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import UNTIL

from .test_going_on import executions, wait_until

RECIPE = """
nsw: 1
name: decided
app:
  command: "echo $PWD >>'HOME/done.txt'; n=$(wc -l <'HOME/done.txt'); echo time {{ n }}$(( n * 7 % 10 ))"
  figures: {time: {regex: 'time (\\d+)', unit: ms}}
matrix: {n: [10]}
interleave: {seed: 7}
resources: {gpus: 0, time: 1m}
"""
DECIDED = ("--against", "n=14", "--until", "decided", "--at-most", "1h")
SAME = ("--against", "n=10", "--until", "decided")


def recipe(road) -> str:
    """A program that takes 1 ms for each n, give or take some per cent: the 7th digit of how often it ran."""
    return RECIPE.replace("HOME", str(road.home))


def repeats(road) -> Counter[str]:
    return Counter(run["params"]["side"] for run in road.status()["runs"])


def locked_repeats(road) -> int:
    (entry,) = yaml.safe_load((road.campaign / "recipe.lock.yaml").read_text())["passes"]
    return entry["baseline"]["repeats"]


def each_ran_once(road) -> bool:
    return set(Counter(executions(road)).values()) == {1}


@pytest.mark.far(quick=True)
def test_pairs_are_added_until_they_decide_and_no_further(road):
    done = road.run(recipe(road), *DECIDED, exits=0)
    assert "3 pairs do not decide: nsw adds 5" in done.stderr
    assert "time: takes" in done.stdout
    assert "less time" in done.stdout
    assert "Pairs were added until they decide: 8 pairs," in done.stdout
    assert "of 1 h 0 min." in done.stdout
    assert repeats(road) == {"before": 8, "after": 8}
    assert locked_repeats(road) == 8
    assert each_ran_once(road)
    (row,) = json.loads(road.nsw("compare", "--json").stdout)["rows"]
    assert (row["verdict"], row["paired"], row["more_runs"]) == ("faster", True, 0)
    assert road.nsw("resume").returncode == 0
    assert repeats(road) == {"before": 8, "after": 8}


def ledger_of(folder) -> dict:
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        return ledger.meta(UNTIL)


def test_pairs_that_do_not_fit_in_the_price_are_not_run(road):
    done = road.run(recipe(road), *SAME, "--at-most", "0.0000001 node-hours", exits=0)
    assert "not decided after 3 pairs (price reached): the difference is " in done.stdout
    assert "of 1e-07 node-hours." in done.stdout
    assert repeats(road) == {"before": 3, "after": 3}


def test_only_the_cases_that_are_undecided_get_more_pairs(road):
    text = recipe(road).replace("[10]", "[10]\n  m: [1, 2]").replace("{{ n }}$", "{{ n if m == 1 else 10 }}$")
    done = road.run(text.replace("matrix: {n: [10]\n  m: [1, 2]}", "matrix: {n: [10], m: [1, 2]}"), *DECIDED, exits=0)
    assert "3 pairs of 2 cases do not decide: nsw adds 5" in done.stderr
    assert "8 pairs do not decide: nsw adds 4" in done.stderr
    counts = Counter(run["params"]["m"] for run in road.status()["runs"])
    assert counts[1] == 16
    assert counts[2] > 16


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_and_resumed_it_goes_on_deciding_and_each_run_is_done_once(road, seed):
    dice = random.Random(seed)
    process = road.start("run", str(road.recipe(recipe(road))), "--site", "here", *DECIDED)
    wait_until(lambda: road.root.exists() and any(road.root.glob("[!.]*/campaign.db")))
    for enough in sorted(dice.sample(range(2, 14), 3)):
        wait_until(lambda enough=enough, of=process: len(executions(road)) >= enough or of.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process = road.start("resume")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "8 pairs" in out
    assert repeats(road) == {"before": 8, "after": 8}
    assert each_ran_once(road)


# an nsw that is killed when it calls a function of a module for the n-th time
KILLED = """
import os, signal, sys
import nsw.campaign.changes as changes
from nsw.cli.main import main
name, before = sys.argv[1], getattr(changes, sys.argv[1])
left = int(sys.argv[2])
def killed(*words, **options):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return before(*words, **options)
setattr(changes, name, killed)
sys.argv[1:] = sys.argv[3:]
main()
"""


@pytest.mark.parametrize(
    ("function", "call"),
    [("write_locked", 1), ("_apply_delta", 1), ("_add_part", 1), ("record_version", 1), ("write_locked", 2)],
)
def test_killed_while_it_adds_pairs_it_adds_them_when_it_is_resumed(road, function, call):
    words = ("run", str(road.recipe(recipe(road))), "--site", "here", *DECIDED)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, function, str(call), *words], env=road.env, cwd=road.home, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(executions(road)) == 6
    done = road.nsw("resume", exits=0)
    assert "8 pairs" in done.stdout
    assert repeats(road) == {"before": 8, "after": 8}
    assert locked_repeats(road) == 8
    assert each_ran_once(road)


@pytest.mark.parametrize("change", [("time (", "no time ("), ("echo time", "exit 3; echo time")])
def test_where_no_run_has_results_no_pairs_are_added(road, change):
    done = road.run(recipe(road).replace(*change), *DECIDED, exits=1)
    assert "nsw adds" not in done.stderr
    assert ledger_of(road.campaign)["ended"] == "none of the last runs has results"


def test_what_was_cancelled_is_not_replaced_by_other_pairs(road):
    text = recipe(road).replace("; n=$(", f"; until [ -e '{road.home}/go' ]; do sleep 0.05; done; n=$(")
    process = road.start("run", str(road.recipe(text)), "--site", "here", *DECIDED)
    wait_until(lambda: executions(road))
    assert road.nsw("cancel", "--yes").returncode == 0
    _, err = process.communicate(timeout=300)
    assert "nsw adds" not in err
    assert ledger_of(road.campaign)["ended"] == "6 runs cancelled"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--against", "n=14", "--until", "decided"), "--until decided needs --against REF and --at-most PRICE"),
        (("--against", "n=14", "--at-most", "1h"), "--until decided needs --against REF and --at-most PRICE"),
        (("--until", "decided", "--at-most", "1h"), "--until decided needs --against REF and --at-most PRICE"),
        ((*SAME, "--at-most", "40"), "--at-most: the duration '40' has no unit"),
        ((*SAME, "--at-most", "2 gpu-hour", "--into", "x"), "a campaign of its own (no --into)"),
        ((*SAME, "--at-most", "2 cpu-hours"), "--at-most: 'cpu-hours' is not a unit of an amount"),
    ],
)
def test_a_price_without_a_meaning_is_refused_before_anything_runs(road, words, told):
    done = road.run(recipe(road), *words)
    assert (done.returncode, road.root.exists()) == (2, False)
    assert told in done.stderr


def test_python_adds_pairs_too(road):
    code = (
        "import nsw, sys\n"
        "campaign = nsw.run(sys.argv[1], 'here', against='n=14', until='decided', at_most='1h').wait()\n"
        "print(len(campaign.runs))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(road.recipe(recipe(road)))], env=road.env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == "16\n", done.stderr
