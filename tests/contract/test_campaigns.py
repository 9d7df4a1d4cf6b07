"""What nsw promises of a campaign, on every batch system: the fakes, and a real Slurm where one can be started."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from nsw.schedulers.model import Native
from nsw.site.names import ADAPTERS
from tests.slurm.conftest import accounted, unaccounted  # noqa: F401  fixtures

from .campaigns import folder, in_queue, ran, runs, submitted, until_go, wait_until, words, words_that_cancel
from .fakes import fake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .fakes import FakePlace

REAL = [pytest.param(name, marks=pytest.mark.slurm) for name in ("accounted", "unaccounted")]


@pytest.fixture(params=list(ADAPTERS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakePlace]:
    with fake(request.param, tmp_path) as found:
        yield found


@pytest.fixture(params=[*ADAPTERS, *REAL])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakePlace]:
    if request.param in ADAPTERS:
        with fake(request.param, tmp_path) as found:
            yield found
        return
    with request.getfixturevalue(request.param).in_folder() as real:
        yield real


def start(place, *argv):
    import sys

    return place.start(*argv) if hasattr(place, "state") else place.start(sys.executable, "-m", "nsw", *argv)


def test_killed_amid_a_failing_run_and_a_cancelled_task_nothing_is_lost_and_nothing_done_twice(any_place):
    place = any_place
    body = f"{until_go(place, '1')}; [ {{{{ n }}}} != 2 ] || [ -e {place.work}/cure ] || exit 3"
    limits = "max_in_flight: 16" if hasattr(place, "state") else "max_in_flight: 1"
    process = start(place, *words(place, 4, body, limits))
    wait_until(lambda: ran(place) == [1] and submitted(place).queued == 4, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = submitted(place).ids
    assert place.run(*words_that_cancel(place, 3)).returncode == 0
    (place.work / "go").touch()
    place.nsw("resume", "--root", "campaigns", exits=1)
    assert ran(place) == [1, 2, 4]
    assert submitted(place).ids == before
    states = [state for state, _ in runs(place)]
    assert (states[0], states[1], states[3]) == ("done", "failed", "done")
    assert states[2] in {"cancelled", "failed"}
    assert "exit status 3" in runs(place)[1][1]
    (place.work / "cure").touch()
    place.nsw("retry", "--root", "campaigns", exits=0)
    assert ran(place) == [1, 2, 2, 3, 4]


def test_a_submission_whose_answer_was_lost_is_found_by_its_name(place):
    place.fault(place.submits, rc=1, stderr="got read error", after=True)
    place.nsw(*words(place, 2), exits=0)
    assert ran(place) == [1, 2]
    assert all(attempt == "attempt-1" for attempt in attempts(place))


def test_what_waits_and_runs_is_ended_by_cancel_though_nsw_was_killed(place):
    process = start(place, *words(place, 3, until_go(place, "1")))
    wait_until(lambda: ran(place) == [1] and submitted(place).queued == 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    place.nsw("cancel", "--root", "campaigns", exits=0)
    assert {state for state, _ in runs(place)} <= {"cancelled", "failed"}
    wait_until(lambda: not in_queue(place))
    assert ran(place) == [1]


def test_cancel_reaches_the_program_and_what_it_started(place):
    """A signal to the script's process group, which Cobalt sends, does not reach timeout's, where the program is."""
    (place.work / "program.sh").write_text(f"""
        setsid bash -c 'trap "echo worker >>{place.work}/ended; exit" TERM
            echo >{place.work}/worker; while :; do sleep 0.05; done' &
        trap 'echo program >>{place.work}/ended; exit' TERM
        until [ -e {place.work}/worker ]; do sleep 0.05; done
        echo >{place.work}/ready
        while :; do sleep 0.05; done
    """)
    process = start(place, *words(place, 1, f"exec bash {place.work}/program.sh"))
    wait_until((place.work / "ready").exists, process)
    assert place.nsw("cancel", "--root", "campaigns").returncode == 0
    ended = place.work / "ended"
    # a second signal while the first is answered is answered too
    wait_until(lambda: ended.exists() and set(ended.read_text().split()) == {"program", "worker"})
    process.wait()


@pytest.mark.parametrize("other", [{"name": "mine"}, {"owner": "somebody"}], ids=["name", "owner"])
def test_an_id_that_is_another_job_now_is_neither_held_nor_ended_and_a_line_says_so(place, other):
    process = start(place, *words(place, 2, until_go(place, "1")))
    wait_until(lambda: ran(place) == [1] and submitted(place).queued == 2, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    jobs = [native.job for text in submitted(place).ids if (native := Native.parse(text))]
    for job in jobs:
        place.is_now(job, **other)
    waits = in_queue(place)
    done = place.nsw("cancel", "--root", "campaigns")
    told = done.stdout + done.stderr
    for job in jobs:
        assert f"id {job} is now job {other.get('name', '')}" in told
    assert told.count("nsw leaves that job alone") == len(jobs)
    assert in_queue(place) == waits


# how each system refuses a queue that is none: its exit status and words; Slurm is asked before; a new adapter needs a line here
REFUSED = {
    "pbs": (170, "qsub: Unknown queue"),
    "cobalt": (1, "<Fault 1001: \"trying to add job to non-existent queue 'x'\">"),
    "lsf": (255, "x: No such queue. Job not submitted."),
    "sge": (1, 'Unable to run job: Job was rejected because job requests unknown queue "x".'),
    "flux": (1, "flux-batch: ERROR: [Errno 22] 'x' is not a valid queue"),
}


@pytest.mark.parametrize("place", REFUSED, indirect=True)
def test_a_refusal_is_not_believed_where_a_job_of_that_name_exists(place):
    code, said = REFUSED[place.scheduler_name]
    place.fault(place.submits, rc=code, stderr=said, after=True)
    place.nsw(*words(place, 2), exits=0)
    assert ran(place) == [1, 2]
    assert attempts(place) == ["attempt-1"] * 2


HOLDING = [name for name in ADAPTERS if name != "slurm"]  # whose fake cannot hold; a real one does


@pytest.mark.parametrize("any_place", [*HOLDING, *REAL], indirect=True)
def test_a_throttle_of_0_holds_what_waits_and_another_number_releases_it_also_by_another_nsw(any_place):
    place = any_place
    limits = "max_in_flight: 16" if hasattr(place, "state") else "max_in_flight: 1"
    process = start(place, *words(place, 3, until_go(place, "1"), limits))
    wait_until(lambda: ran(place) == [1] and submitted(place).queued == 3, process)
    done = place.nsw("throttle", "0", "--root", "campaigns")
    assert "held; no new run starts until `nsw throttle N`; 3 runs not over" in done.stdout
    assert "cannot hold" not in done.stdout
    wait_until(lambda: all(state == "queued" and reason.startswith("held") for state, reason in runs(place)[1:]))
    (place.work / "go").touch()
    wait_until(lambda: runs(place)[0] == ("done", ""))
    assert [state for state, _ in runs(place)] == ["done", "queued", "queued"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert ran(place) == [1]
    assert place.nsw("throttle", "16", "--root", "campaigns").returncode == 0
    done = place.nsw("resume", "--root", "campaigns", exits=0)
    assert ran(place) == [1, 2, 3]


@pytest.mark.parametrize("place", HOLDING, indirect=True)
def test_a_throttle_reaches_the_batch_system_though_no_nsw_drives(place):
    process = start(place, *words(place, 3, until_go(place, "1")))
    wait_until(lambda: ran(place) == [1] and submitted(place).queued == 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    place.nsw("throttle", "0", "--root", "campaigns", exits=0)
    assert all(state == "queued" and reason.startswith("held") for state, reason in runs(place)[1:])
    (place.work / "go").touch()
    wait_until(lambda: len(list(place.work.glob("campaigns/*/scratch/runs/*/attempt-1/status"))) == 1)
    assert place.nsw("throttle", "16", "--root", "campaigns").returncode == 0
    wait_until(lambda: ran(place) == [1, 2, 3])


def attempts(place: FakePlace) -> list[str]:
    return [path.name for path in place.work.glob("campaigns/*/scratch/runs/*/attempt-*")]


# a line of `extra` that each system allows, and one that nsw sets itself; a new adapter needs one here
EXTRA = {
    "slurm": ("#SBATCH --nice=1", "#SBATCH --job-name=x"),
    "pbs": ("#PBS -p 1", "#PBS -N x"),
    "cobalt": ("#COBALT --notify=a@b", "#COBALT --jobname x"),
    "lsf": ("#BSUB -sp 1", "#BSUB -J x"),
    "sge": ("#$ -p 1", "#$ -N x"),
    "flux": ("#flux: --cwd=/tmp", "# flux: --job-name=x"),
}


def test_a_line_of_extra_that_nsw_sets_itself_is_refused_at_its_place_before_there_is_a_campaign(place):
    good, bad = EXTRA[place.scheduler_name]
    _, *argv = words(place, 2, extra=f",\n  extra: ['{good}',\n    '{bad}']")
    lines = (place.work / "recipe.yaml").read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if bad in line)
    for command in (("run", *argv), ("plan", *argv[: argv.index("--root")])):
        said = place.nsw(*command, exits=2)
        assert f"recipe.yaml:{number}:5" in said.stderr
        assert "cannot hold" in said.stderr
    assert not (place.work / "campaigns").exists()


def test_a_campaign_that_was_moved_goes_on_in_its_new_place(place):
    process = start(place, *words(place, 3, f"[ -e {place.work}/cure ] || exit 3"))
    wait_until(lambda: ran(place) == [1, 2, 3], process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not in_queue(place))
    old = folder(place)
    old.parent.rename(place.work / "moved")
    (place.work / "cure").touch()
    done = place.nsw("resume", "--root", "moved", exits=1)
    assert "exit status 3" in done.stderr + done.stdout
    done = place.nsw("retry", "--root", "moved", exits=0)
    assert ran(place) == [1, 1, 2, 2, 3, 3]
    assert not old.parent.exists()
