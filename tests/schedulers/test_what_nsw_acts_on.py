"""What nsw acts on in a scheduler's answer is data, whatever the words beside it are."""

import pytest

from nsw.engine.collect import Status, judge
from nsw.engine.ledger_rows import Cause, Reason, State
from nsw.schedulers import cobalt, flux, lsf, pbs, sge, slurm
from nsw.schedulers.adapter import known_answers
from nsw.schedulers.model import ended_by_itself

OVER = {
    "slurm": slurm.answer("TIMEOUT", "None", "2:00"),
    "pbs": pbs._ended_answer("93", "-29", "0", "", "00:02:00", depends=False),
    "cobalt": cobalt.answer_from_log_line("maximum execution time exceeded; initiating job termination"),
    "lsf": lsf.answer("EXIT", "140", "TERM_RUNLIMIT: job killed after reaching LSF run time limit", ""),
    "sge": sge._ended_answer("37 : qmaster enforced h_rt", "137"),
    "flux": flux.answer("INACTIVE", "TIMEOUT", "142", "16", "timeout", "resource allocation expired"),
}
HELD = {
    "slurm": slurm.answer("PENDING", "JobHeldUser"),
    "cobalt": known_answers("cobalt")["user_hold"],
    "lsf": lsf.answer("PSUSP", "", "", ""),
    "sge": sge._answer_in_queue("hqw"),
    "flux": flux.answer("SCHED", "", "", "0", "", ""),
}


@pytest.mark.parametrize("system", OVER)
def test_a_job_that_was_over_its_time_limit_gives_that_cause(system):
    verdict = judge(OVER[system], None)
    assert (verdict.state, verdict.reason.cause) == (State.FAILED, Cause.OVER_TIME)


@pytest.mark.parametrize("system", HELD)
def test_a_job_that_its_user_holds_gives_that_cause(system):
    verdict = judge(HELD[system], None)
    assert (verdict.state, verdict.reason.cause) == (State.QUEUED, Cause.HELD_BY_SCHEDULER)


def test_of_a_job_that_failed_by_itself_the_run_tells_more():
    status = Status("failed", exit_code=3, reason=Reason("exit status 3", Cause.EXIT))
    assert judge(ended_by_itself(3), status).reason == status.reason
