"""`nsw run` on the fake Grid Engine, and what its adapter makes of answers."""

from __future__ import annotations

from nsw.errors import CommandResult
from nsw.schedulers.model import Phase
from nsw.schedulers.sge import Sge
from tests.contract.campaigns import runs, words
from tests.fakes import place

SGE = Sge()


def test_a_refusal_names_the_line(tmp_path):
    sge = place.Sge(tmp_path, tmp_path / "sge")
    sge.state.mkdir()
    assert sge.nsw(*words(sge, 4, extra=", queue: nosuch")).returncode == 1
    assert "resources.queue at recipe.yaml:9:" in runs(sge)[0][1]


def test_half_an_answer_is_none():
    whole = "<?xml version='1.0'?><job_info><job_list><JB_job_number>7</JB_job_number><JB_name>n</JB_name><state>Eqw</state><tasks>2-6:2</tasks></job_list></job_info>"
    (line,) = SGE.parse_queue(CommandResult(("qstat",), 0, "motd\n" + whole)) or ()
    assert (line.job, list(line.indices or ()), line.answer.phase, line.answer.never) == (
        "7",
        [2, 4, 6],
        Phase.QUEUED,
        True,
    )
    assert SGE.parse_queue(CommandResult(("qstat",), 0, whole[:90])) is None
    assert (
        SGE.parse_queue(CommandResult(("qstat",), 0, whole.replace("<job_info>", "<!DOCTYPE x><job_info>", 1))) is None
    )


def test_a_warning_of_qsub_is_no_refusal():
    said = "Unable to run job: warning: me your job is not allowed to run in any queue\nYour job 12 has been submitted"
    assert SGE.refusal(CommandResult(("qsub",), 1, "", said)) is None
