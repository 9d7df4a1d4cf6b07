"""How much nsw asks of a PBS server, and what it costs nsw."""

from __future__ import annotations

from pathlib import Path

from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.model import Phase, Submission
from nsw.schedulers.pbs import Pbs as Adapter
from nsw.schedulers.pbs import listed_lines
from nsw.transport.local import LocalTransport
from tests.guard import ends


def scheduler(pbs, monkeypatch, **limits):
    for name, value in pbs.double.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(pbs.work)
    return BatchScheduler(Adapter(), LocalTransport(), str(pbs.work), "c", Limits(**limits))


def test_a_thousand_runs_are_one_qsub_and_a_poll_is_one_qstat(pbs, monkeypatch):
    pbs.double.hold()
    it = scheduler(pbs, monkeypatch, in_flight=20)
    script = pbs.work / "j.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    assert it.room([]) == 1000
    (outcome,) = it.submit([Submission("nsw-many", "j1", script, 1, tuple(range(1000)))])
    assert outcome.native == "1[].pbs0/0"
    assert it.calls() == {"qstat": 1, "qsub": 1}  # the server's settings, and the array
    sent = Submission("nsw-many", "j1", script, 1, tuple(range(1000)), native_id=outcome.native)
    for polls in (1, 2, 3):
        told = it.poll([sent])
        assert it.calls()["qstat"] == 1 + polls
        assert {answer.phase for answer in told["nsw-many"].values()} == {Phase.QUEUED}
        assert len(told["nsw-many"]) == 1000


def test_submissions_of_different_resources_go_together(pbs, monkeypatch):
    pbs.double.hold()
    it = scheduler(pbs, monkeypatch)
    script = pbs.work / "j.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    outcomes = it.submit([Submission(f"nsw-{n}", f"j{n}", script, 1, (0,)) for n in range(12)])
    assert [outcome.native for outcome in outcomes] == [f"{n}.pbs0" for n in range(1, 13)]
    assert it.can.submissions_per_command >= 12


def listing(subjobs: int) -> str:
    recorded = Path(__file__).parent / "observed" / "11_array.txt"
    one = recorded.read_text().partition("$ qstat -x -f '69[2]'\n")[2].partition("  rc=0")[0].replace("  1| ", "")
    return "\n".join(one.replace("69[2]", f"69[{index}]") for index in range(subjobs))


def test_a_poll_of_very_many_subjobs_is_read_to_its_end():
    text = listing(20_000)
    with ends():
        assert len(listed_lines(text)) == 20_000
