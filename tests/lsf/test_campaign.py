"""`nsw run` on the fake LSF, from recipe to answer, with what goes wrong on the way."""

from __future__ import annotations

import json

from nsw.schedulers.adapter import Watched
from nsw.schedulers.lsf import Lsf
from nsw.schedulers.model import Native
from tests.contract.campaigns import PATIENCE_S, RUN, ran, runs, until_go, wait_until, words


def test_runs_are_done_once_in_one_array_from_index_1_with_few_questions(lsf):
    lsf.nsw(*words(lsf, 6, "[ {{ n }} != 5 ] || exit 3", limits="max_in_flight: 4"), exits=1)
    assert ran(lsf) == list(range(1, 7))
    assert [state for state, _ in runs(lsf)] == ["done"] * 4 + ["failed", "done"]
    assert "exit status 3" in runs(lsf)[4][1]
    calls = json.loads(lsf.nsw("status", "--root", "campaigns", "--json").stdout)["scheduler_calls"]
    assert calls["bsub"] == 1
    assert set(calls) <= {"bsub", "bjobs", "bparams", "bhist"}
    (job,) = lsf.jobs()
    assert job["limit"] == "4"
    assert str(job["about"]).startswith("nsw:many")


def test_a_retry_of_runs_with_gaps_is_one_array_with_gaps(lsf):
    first = f"[ -e {lsf.work}/go ] || [ $(( {{{{ n }}}} % 2 )) = 1 ]"
    assert lsf.nsw(*words(lsf, 5, first)).returncode == 1
    (lsf.work / "go").touch()
    assert lsf.nsw("retry", "--failed", "--root", "campaigns").returncode == 0
    assert ran(lsf) == [1, 2, 2, 3, 4, 4, 5]
    assert len(lsf.jobs()) == 2


def test_a_refusal_is_shown_with_the_line_that_asks_for_it(lsf):
    lsf.nsw(*words(lsf, 2, extra=", queue: nosuch"), exits=1)
    assert {state for state, _ in runs(lsf)} == {"failed"}
    assert "bsub refused the job: nosuch: No such queue." in runs(lsf)[0][1]
    assert "resources.queue at recipe.yaml:9:" in runs(lsf)[0][1]
    assert ran(lsf) == []


def test_text_of_a_site_and_a_server_that_is_away_change_nothing(lsf):
    (lsf.state / "settings.json").write_text(json.dumps({"says": "NOTICE: Job <7> of 2019 is remembered\n"}))
    for _ in range(2):
        lsf.fault("bjobs", rc=255, stderr="LSF is down. Please wait ...\n")
    lsf.nsw(*words(lsf, 2), exits=0)
    assert ran(lsf) == [1, 2]


def test_a_job_that_somebody_killed_is_reported_so_even_when_only_bhist_knows_it(lsf):
    (lsf.state / "hold").touch()
    process = lsf.start(*words(lsf, 1))
    wait_until(lambda: len(lsf.jobs()) == 1)
    events = ["Submitted from host <login1>", "Signal <KILL> requested by user or administrator <root>", "Exited"]
    lsf.element(101, 0, stat="EXIT", events=events)
    lsf.forget(101)
    assert process.wait(timeout=PATIENCE_S) == 1
    ((state, reason),) = runs(lsf)
    assert state == "cancelled"
    assert "killed by root" in reason


def test_a_build_in_a_job_goes_first_and_the_runs_wait_for_it_in_the_queue(lsf):
    text = (lsf.work / "recipe.yaml", words(lsf, 2))[0].read_text()
    command = f"until [ -e {lsf.state}/jobs/102/job.json ]; do sleep 0.05; done; touch {lsf.work}/built"
    build = f"  build:\n    command: bash -c '{command}'\n    where: job\nmatrix:"
    (lsf.work / "recipe.yaml").write_text(
        text.replace("matrix:", build).replace("; true", f"; [ -e {lsf.work}/built ]")
    )
    lsf.nsw(*RUN, exits=0)
    assert [job["after"] for job in lsf.jobs()] == [None, "done(101)"]
    assert lsf.jobs()[1]["orphan"]


def test_a_job_that_begins_just_before_it_is_held_is_not_left_suspended(lsf):
    process = lsf.start(*words(lsf, 2, until_go(lsf, "1")))
    wait_until(lambda: ran(lsf) == [1])
    command = Lsf().hold_command([Watched("", Native("101", 0), "", (1, 2))], hold=True)
    assert command is not None
    assert lsf.run(*command).returncode == 0
    listed = lsf.run("bjobs", "-noheader", "-o", "jobindex stat").stdout
    assert listed.split() == ["1", "RUN", "2", "PSUSP"]
    (lsf.work / "go").touch()
    wait_until(lambda: runs(lsf)[0][0] == "done")
    assert runs(lsf)[1] == ("queued", "held: `bresume 101` releases it")
    assert lsf.run("bresume", "101").returncode == 0
    assert process.wait(timeout=PATIENCE_S) == 0
