"""What nsw asks of Slurm, against fake commands and against real ones: both must agree."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nsw.engine.ledger import Ledger
from nsw.errors import RefusedError
from nsw.schedulers.batch import Limits
from nsw.schedulers.model import Phase, Submission

from .places import all_ended, found, handed, polled, script, submit
from .test_campaign import campaign, nsw_words, ran, recipe, wait_until

if TYPE_CHECKING:
    from .places import Fake, Real

    Place = Fake | Real


def of(place: Place, body: str, tasks: tuple[int, ...] = (0,), head: str = "") -> Submission:
    return Submission(f"nsw-{time.monotonic_ns():x}", "j1", script(place.work, body, head=head), 1, tasks)


def test_each_task_of_an_array_runs_once_with_its_own_number(place):
    scheduler = place.scheduler()
    (place.work / "out").mkdir()
    (place.work / "out").chmod(0o777)
    body = f'echo "attempt $1" >> {place.work}/out/$(( $2 + SLURM_ARRAY_TASK_ID ))'
    sent = submit(scheduler, of(place, body, tasks=(3, 4, 5, 8)))
    answers = polled(scheduler, sent, all_ended)
    assert {t: a.clean for t, a in answers.items()} == dict.fromkeys((3, 4, 5, 8), True)
    assert {p.name: p.read_text() for p in (place.work / "out").iterdir()} == dict.fromkeys("3458", "attempt 1\n")
    assert scheduler.calls()["sbatch"] == 1


def test_a_single_task_is_no_array(place):
    scheduler = place.scheduler()
    sent = submit(scheduler, of(place, '[ -z "$SLURM_ARRAY_TASK_ID" ] && [ "$2" = 7 ]', tasks=(7,)))
    assert sent.native_id.isdigit()
    assert polled(scheduler, sent, all_ended)[7].clean


def test_a_job_that_fails_is_over_and_not_clean(place):
    scheduler = place.scheduler()
    answers = polled(scheduler, of_ended := submit(scheduler, of(place, "exit 3")), all_ended)
    assert not answers[0].clean
    assert "failed" in answers[0].reason
    assert of_ended.native_id


def test_a_job_is_found_by_its_name_while_it_waits_and_after_it_ended(place):
    scheduler = place.scheduler()
    sent = submit(scheduler, of(place, "sleep 1", tasks=(0, 1)))
    assert found(place.scheduler(), replace(sent, native_id=None)) == sent.native_id
    polled(scheduler, sent, all_ended)
    assert found(place.scheduler(), replace(sent, native_id=None)) == sent.native_id


def test_a_name_that_was_never_submitted_is_not_found(place):
    assert found(place.scheduler(), of(place, "true")) is None


@pytest.mark.parametrize(
    ("head", "key"), [("#SBATCH --partition=nope", "partition"), ("#SBATCH --gpus-per-node=99", "gpus")]
)
def test_a_refusal_names_what_the_recipe_asks_too_much_of(place, head, key):
    with pytest.raises(RefusedError) as refused:
        handed(place.scheduler(), of(place, "true", head=head))
    assert refused.value.key == key


def test_only_the_named_tasks_of_an_array_are_cancelled(place):
    scheduler = place.scheduler(limits=Limits(in_flight=1, lost_after_s=2))
    sent = submit(scheduler, of(place, f"until [ -e {place.work}/go ]; do sleep 0.1; done", tasks=(0, 1, 2, 3)))
    polled(scheduler, sent, lambda a: any(x.phase is Phase.RUNNING for x in a.values()))
    scheduler.cancel([replace(sent, tasks=(1, 3))])
    (place.work / "go").touch()
    kept = replace(sent, tasks=(0, 2))
    assert all(a.clean for a in polled(scheduler, kept, all_ended).values())
    gone = polled(
        scheduler, replace(sent, tasks=(1, 3)), lambda a: all(x.phase in {Phase.ENDED, Phase.LOST} for x in a.values())
    )
    assert not any(a.clean for a in gone.values())


def test_a_job_of_another_name_is_not_ended_by_its_id_nor_is_one_that_is_none(place):
    said = []
    scheduler = place.scheduler(say=said.append)
    mine = submit(scheduler, of(place, f"until [ -e {place.work}/go ]; do sleep 0.1; done"))
    lost = replace(of(place, "true"), native_id=mine.native_id)
    never = replace(of(place, "true"), native_id="987654")
    for some in ([lost], [never], [lost, never]):
        scheduler.cancel(some)
    assert "scancel" not in scheduler.calls()
    assert len(said) == 1
    assert f"id {mine.native_id} is now job {mine.name} of " in said[0]
    scheduler.cancel([mine, never])
    assert not polled(scheduler, mine, all_ended)[0].clean


def test_variables_of_the_user_do_not_change_what_is_asked(place, monkeypatch):
    for name, value in {
        "SBATCH_PARTITION": "nope",
        "SQUEUE_FORMAT": "%j",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_JOB_ID": "1",
        "SBATCH_ARRAY_INX": "0-9",
        "SLURM_CLUSTERS": "elsewhere",
        "SACCT_FORMAT": "JobID",
    }.items():
        monkeypatch.setenv(name, value)
    scheduler = place.scheduler()
    assert polled(scheduler, submit(scheduler, of(place, "true")), all_ended)[0].clean


def test_the_campaign_stands_in_the_comment(place):
    scheduler = place.scheduler()
    sent = submit(scheduler, of(place, "sleep 1"))
    found = place.transport().run(
        ["squeue", "--me", "-h", "-r", "-t", "all", f"--name={sent.name}", "-o", "%k"], timeout=30
    )
    assert found.stdout.strip() == "nsw:campaign-1"


def test_many_polls_cost_one_squeue_each_and_no_sacct_while_squeue_knows_all(place):
    scheduler = place.scheduler()
    several = [submit(scheduler, of(place, "true", tasks=(0, 1))) for _ in range(3)]
    before = scheduler.calls().get("squeue", 0)
    answers = scheduler.poll(several)
    assert set(answers) == {s.name for s in several}
    assert scheduler.calls()["squeue"] - before == 1
    assert "sacct" not in scheduler.calls()


def test_a_walltime_that_ends_a_packed_job_midway_costs_only_the_runs_that_were_not_done(place):
    waits = f"[ {{{{ n }}}} != 2 ] || [ -e {place.work}/go ] || sleep 300"
    process = place.start(*nsw_words("run", *recipe(place, 3, body=waits, packed=3)))
    wait_until(lambda: ran(place) == [1, 2])
    with Ledger(campaign(place) / "campaign.db", read_only=True) as ledger:
        (native,) = ledger.native_ids().values()
    place.expire(int(native))
    assert process.wait(timeout=300) == 1
    with Ledger(campaign(place) / "campaign.db", read_only=True) as ledger:
        told = [(str(run.state), (run.reason or "").replace("of 1m", "of 2m")) for run in ledger.runs()]
    over = "the job was over its time limit of 2m"
    amid, before = f"{over} in the middle of this run", f"{over} before this run began"
    assert told == [("done", ""), ("failed", amid), ("failed", before)]
    (place.work / "go").touch()
    assert place.nsw("retry", "--failed", "--root", "campaigns").returncode == 0
    assert ran(place) == [1, 2, 2, 3]
