"""What a real Slurm does not do on demand: commands that fail, lag, forget; jobs that wait for what will not come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsw.campaign import start
from nsw.errors import UnreachableError
from nsw.schedulers.batch import Limits
from nsw.schedulers.model import Phase, Submission
from nsw.site.load import load_site

from .places import found, handed, script, submit

TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def said():
    return []


@pytest.fixture
def scheduler(fake, clock, said):
    return fake.scheduler(clock=clock, sleep=clock.sleep, draw=lambda: 0.5, say=said.append)


def one(fake, tasks=(0,)):
    return Submission("nsw-0123456789abcdef", "j1", script(fake.work, "true"), 1, tasks)


def phases(scheduler, sent):
    return {task: answer.phase for task, answer in scheduler.poll([sent])[sent.name].items()}


def test_a_submission_that_was_taken_without_an_id_is_found_by_its_name(fake, scheduler):
    fake.hold()
    fake.fault("sbatch", stderr=TIMED_OUT, after=True)
    with pytest.raises(UnreachableError, match="Socket timed out"):
        handed(scheduler, one(fake, (0, 1)))
    assert found(scheduler, one(fake, (0, 1))) == "1/0"


def test_a_submission_is_never_sent_twice_by_itself(fake, scheduler):
    fake.fault("sbatch", stderr=TIMED_OUT)
    with pytest.raises(UnreachableError):
        handed(scheduler, one(fake))
    assert scheduler.calls()["sbatch"] == 1
    assert found(scheduler, one(fake)) is None


@pytest.mark.parametrize(
    "printed",
    [
        "{id};tux",
        "Submitted batch job {id} on cluster tux",
        "** Maintenance on 2026-12-01 **\n{id}\nyour project has 500 hours left",
    ],
)
def test_the_id_is_found_whatever_a_site_prints_around_it(fake, scheduler, printed):
    fake.hold()
    fake.settings(prints=printed)
    assert handed(scheduler, one(fake)) == "1"


def test_a_number_that_may_not_be_the_id_is_not_taken_for_it(fake, scheduler):
    fake.hold()
    fake.settings(prints="{id}\n500")
    with pytest.raises(UnreachableError, match="sbatch printed no job id"):
        handed(scheduler, one(fake))
    assert found(scheduler, one(fake)) == "1"


def phases_over(scheduler, sent, clock, seconds=60, polls=3):
    """The phases of task 0 in polls that lie so far apart."""
    told = []
    for _ in range(polls):
        told.append(phases(scheduler, sent)[0])
        clock.now += seconds
    return told


def test_a_failed_squeue_says_nothing_of_the_jobs(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.fault("squeue", stderr=DOWN)
    assert phases(scheduler, sent) == {0: Phase.UNKNOWN}
    assert phases(scheduler, sent) == {0: Phase.QUEUED}


def test_after_ten_minutes_without_an_answer_one_calm_line_is_said(fake, scheduler, clock, said):
    fake.hold()
    sent = submit(scheduler, one(fake))
    for _ in range(13):
        fake.fault("squeue", stderr=DOWN)
        scheduler.poll([sent])
        clock.now += 60
    assert len(said) == 1
    assert "does not mean that jobs have failed" in said[0]
    assert "connect failure" in said[0]


def test_a_job_that_squeue_forgot_is_asked_of_sacct(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.set(1, -1, "TIMEOUT")
    fake.forget(1, squeue=False)
    answer = scheduler.poll([sent])[sent.name][0]
    assert answer.phase is Phase.ENDED
    assert "time limit" in answer.reason


def test_a_job_is_lost_only_after_two_minutes_without_a_trace(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    assert phases_over(scheduler, sent, clock, 5, 20) == [Phase.UNKNOWN] * 20  # however often it is asked
    assert phases_over(scheduler, sent, clock, 21, 2) == [Phase.UNKNOWN, Phase.LOST]


def test_a_trace_in_between_starts_the_count_again(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    phases_over(scheduler, sent, clock, 60, 2)
    fake.forget(1)
    assert phases(scheduler, sent) == {0: Phase.QUEUED}
    fake.forget(1, squeue=False, sacct=False)
    assert phases(scheduler, sent) == {0: Phase.UNKNOWN}


def test_a_failed_sacct_is_no_absence(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    for _ in range(4):
        fake.fault("sacct", stderr="sacct: error: Problem talking to the database: Connection refused")
        assert phases(scheduler, sent) == {0: Phase.UNKNOWN}
        clock.now += 100


def test_of_an_accounting_that_stays_silent_the_user_hears_once(fake, scheduler, clock, said):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    for _ in range(14):
        fake.fault("sacct", stderr="sacct: error: Problem talking to the database: Connection refused")
        scheduler.poll([sent])
        clock.now += 60
    assert len(said) == 1
    assert "sacct, which records how they ended, has not answered for some minutes" in said[0]
    assert "Connection refused" in said[0]


@pytest.mark.parametrize(
    "fault", [{"rc": 127, "stderr": "sacct: command not found"}, {"stderr": "Slurm accounting storage is disabled"}]
)
def test_a_sacct_that_is_not_there_is_not_waited_for(fake, scheduler, clock, fault):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    fake.fault("sacct", **fault)
    assert phases_over(scheduler, sent, clock)[-1] is Phase.LOST
    assert scheduler.calls()["sacct"] == 1


def test_a_submission_in_doubt_is_looked_for_without_a_sacct_that_is_not_there(fake, scheduler):
    fake.fault("sacct", rc=127, stderr="sacct: command not found")
    assert found(scheduler, one(fake)) is None


def test_without_accounting_absence_from_squeue_counts_alone(fake, scheduler, clock):
    fake.settings(accounting=False)
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False)
    assert phases_over(scheduler, sent, clock)[-1] is Phase.LOST
    assert "sacct" not in scheduler.calls()


def test_a_task_that_leaves_the_queue_while_its_siblings_stay_was_cancelled(fake, scheduler, clock):
    fake.settings(accounting=False)
    fake.hold()
    sent = submit(scheduler, one(fake, (0, 1)))
    phases(scheduler, sent)
    (fake.state / "jobs" / "1" / "1.json").unlink()
    assert phases(scheduler, sent)[1] is Phase.UNKNOWN
    clock.now += 30
    answer = scheduler.poll([sent])[sent.name][1]
    assert (answer.phase, answer.cancelled) == (Phase.ENDED, True)


def test_a_task_without_a_trace_was_cancelled_also_when_its_siblings_are_over(fake, scheduler, clock):
    """A new nsw asks only for the task that is left: squeue lists the others as ended."""
    fake.settings(accounting=False)
    fake.hold()
    sent = submit(scheduler, one(fake, (0, 1)))
    (fake.state / "jobs" / "1" / "1.json").unlink()
    fake.set(1, 0, "COMPLETED")
    left = replace(sent, tasks=(1,))
    assert phases(scheduler, left) == {1: Phase.UNKNOWN}
    clock.now += 30
    answer = scheduler.poll([left])[left.name][1]
    assert (answer.phase, answer.cancelled) == (Phase.ENDED, True)


def test_an_id_that_was_used_again_for_another_job_is_not_ours(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.set(1, -1, "COMPLETED")
    fake.forget(1, name="somebody-elses")
    assert phases(scheduler, sent) == {0: Phase.UNKNOWN}


def test_the_first_rows_of_sacct_without_name_and_index_are_not_believed(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake, (0, 1)))
    for file in (fake.state / "jobs" / "1").glob("[01].json"):
        file.unlink()
    fake.set(1, -1, "COMPLETED")
    for name in ("allocation", sent.name):
        fake.forget(1, squeue=False, name=name)
        assert set(phases(scheduler, sent).values()) == {Phase.UNKNOWN}


@pytest.mark.parametrize(
    ("reason", "never"),
    [
        ("Priority", False),
        ("JobArrayTaskLimit", False),
        ("QOSMaxJobsPerUserLimit", False),
        ("JobHeldUser", False),
        ("DependencyNeverSatisfied", True),
        ("PartitionTimeLimit", True),
        ("launch failed requeued held", True),
        ("AssocGrpCPUMinutesLimit", True),
        ("BadConstraints", True),
    ],
)
def test_reasons_that_mean_never_are_told_from_those_that_pass_at_once_and_believed_after_minutes(
    fake, scheduler, clock, reason, never
):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.set(1, -1, "PENDING", reason)
    told = []
    for seconds in (0, 119, 1):
        clock.now += seconds
        told.append(scheduler.poll([sent])[sent.name][0])
    assert [answer.never for answer in told] == [False, False, never]
    assert {answer.phase for answer in told} == {Phase.QUEUED}
    assert all(reason in answer.reason for answer in told)


def test_what_neither_queue_nor_history_lists_says_for_how_long_nsw_asks_on(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.forget(1, squeue=False, sacct=False)
    answer = scheduler.poll([sent])[sent.name][0]
    assert answer.phase is Phase.UNKNOWN
    assert answer.reason == "squeue does not list its job, and sacct has no end of it; nsw keeps asking for 2m"
    fake.forget(1, squeue=False)
    assert "nsw keeps asking for 6m" in scheduler.poll([sent])[sent.name][0].reason


def test_too_much_memory_without_cgroups_is_read_from_the_jobs_output(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake, (0, 1)))
    (fake.work / "jobs" / f"{sent.name}.1.log").write_text(
        "slurmstepd: error: Job 1 exceeded memory limit (300000 > 204800), being killed\n"
    )
    fake.set(1, 1, "FAILED", code="0:9")
    assert scheduler.poll([sent])[sent.name][1].reason.startswith("out of memory: Job 1 exceeded memory limit")


def test_a_full_queue_makes_arrays_smaller_and_then_waits(fake, scheduler, clock, said):
    full = (
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)"
    )
    fake.fault("sbatch", stderr=full)
    assert handed(scheduler, one(fake, tuple(range(10)))) is None
    assert scheduler.most_tasks() == 5
    fake.fault("sbatch", stderr=full)
    assert handed(scheduler, one(fake)) is None
    assert scheduler.room([]) == 0
    assert "accepts no more" in said[0]
    clock.now += 61
    assert scheduler.room([]) > 0


def test_an_array_is_never_larger_than_the_cluster_takes(fake, scheduler):
    fake.settings(max_array=11)
    assert scheduler.most_tasks() == 10


def test_two_arrays_share_what_may_run_at_the_same_time(fake, clock):
    fake.hold()
    scheduler = fake.scheduler(limits=Limits(in_flight=8), clock=clock, sleep=clock.sleep)
    first = submit(scheduler, one(fake, tuple(range(20))))
    second = submit(scheduler, replace(one(fake, tuple(range(20))), name="nsw-second"))
    scheduler.poll([first, second])
    assert [job["throttle"] for job in fake.jobs()] == ["4", "4"]
    scheduler.poll([replace(second, tasks=tuple(range(8, 20)))])
    assert [job["throttle"] for job in fake.jobs()] == ["4", "8"]


def test_the_interval_doubles_to_a_minute_while_nothing_changes_and_starts_again_on_change(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    waits = []
    for _ in range(8):
        start = clock.now
        while not scheduler.due():
            scheduler.wait(0.5)
        waits.append(round(clock.now - start))
        scheduler.poll([sent])
    assert waits == [0, 2, 4, 8, 16, 32, 60, 60]
    fake.set(1, -1, "RUNNING")
    scheduler.poll([sent])
    start = clock.now
    while not scheduler.due():
        scheduler.wait(0.5)
    assert round(clock.now - start) == 2


def test_before_there_is_a_campaign_slurm_is_asked_twice_and_free_of_the_users_variables(fake, monkeypatch):
    (fake.work / "sites.yaml").write_text("nsw: 1\nsites: {c: {scheduler: slurm}}\n")
    monkeypatch.setenv("SLURM_CLUSTERS", "elsewhere")
    place = load_site("c", [fake.work / "sites.yaml"])
    fake.fault("sinfo", stderr=DOWN)
    start.require_scheduler_answer(place)
    for _ in range(2):
        fake.fault("sinfo", stderr=DOWN)
    with pytest.raises(UnreachableError, match=r"does not answer `sinfo`: .*connect failure"):
        start.require_scheduler_answer(place)


def test_a_scheduler_that_is_not_there_is_not_asked_without_a_pause(fake, scheduler, clock):
    fake.fault("sbatch", stderr="sbatch: fatal: Could not establish a configuration source")
    with pytest.raises(UnreachableError):
        handed(scheduler, one(fake))
    assert scheduler.due()
    fake.fault("squeue", stderr="squeue: fatal: Could not establish a configuration source")
    with pytest.raises(UnreachableError):
        found(scheduler, one(fake))
    start = clock.now
    while not scheduler.due():
        scheduler.wait(0.5)
    assert clock.now - start >= 2


def test_a_loop_that_has_nothing_to_ask_rests(scheduler, clock):
    start = clock.now
    for _ in range(10):
        scheduler.wait(0.5)
    assert clock.now - start > 4


def test_tasks_that_wait_for_different_reasons_are_each_asked_for(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake, (0, 1, 2)))
    scheduler.poll([sent])
    assert scheduler.calls()["squeue"] == 1
    fake.set(1, 1, "PENDING", "DependencyNeverSatisfied")
    scheduler.poll([sent])
    assert scheduler.calls()["squeue"] == 3
    clock.now += 121
    answers = scheduler.poll([sent])[sent.name]
    assert [answers[task].never for task in (0, 1, 2)] == [False, True, False]
    assert scheduler.calls()["squeue"] == 4


def test_an_array_whose_indices_squeue_cuts_short_is_asked_for_task_by_task(fake, scheduler):
    fake.hold()
    sent = submit(scheduler, one(fake, tuple(range(0, 200, 2))))
    assert set(phases(scheduler, sent).values()) == {Phase.QUEUED}
    assert len(phases(scheduler, sent)) == 100


def test_one_array_that_is_cut_short_among_others_is_enough_to_ask_task_by_task(fake, scheduler):
    fake.hold()
    long = submit(scheduler, one(fake, tuple(range(0, 200, 2))))
    short = submit(scheduler, replace(one(fake, (0, 1)), name="nsw-fedcba9876543210"))
    answers = scheduler.poll([short, long])
    assert {a.phase for a in answers[long.name].values()} == {Phase.QUEUED}
    assert [len(answers[one.name]) for one in (short, long)] == [2, 100]


def test_why_a_task_waits_may_change_without_a_poll_more(fake, scheduler, clock):
    fake.hold()
    sent = submit(scheduler, one(fake))
    for reason in ("Priority", "Resources", "Priority", "Resources", "Priority", "Resources"):
        fake.set(1, -1, "PENDING", reason)
        scheduler.poll([sent])
    start = clock.now
    while not scheduler.due():
        scheduler.wait(0.5)
    assert clock.now - start > 30


@pytest.mark.parametrize(
    "words",
    [
        "[Errno 11] Resource temporarily unavailable: 'sacct'",
        "[Errno 12] Cannot allocate memory: 'sacct'",
        "sacct: error while loading shared libraries: libslurm.so: cannot open: No such file or directory",
    ],
)
def test_a_sacct_that_cannot_be_started_for_the_moment_is_asked_again(fake, scheduler, words):
    fake.hold()
    sent = submit(scheduler, one(fake))
    fake.set(1, -1, "TIMEOUT")
    fake.forget(1, squeue=False)
    fake.fault("sacct", rc=127, stderr=words)
    assert [phases(scheduler, sent)[0] for _ in range(2)] == [Phase.UNKNOWN, Phase.ENDED]
