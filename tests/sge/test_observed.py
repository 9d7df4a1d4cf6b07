"""What the adapter makes of the answers of Debian's gridengine 8.1.9, with `qmaster` and `execd` on one machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from nsw.errors import CommandResult
from nsw.schedulers.model import Phase
from nsw.schedulers.sge import Sge
from tests.fakes import transcripts

SGE = Sge()
FOLDER = Path(__file__).parent / "observed"


def results(command: str, file: str = "") -> list[CommandResult]:
    """The answers to the commands that begin so, in order."""
    return [
        CommandResult(tuple(shlex.split(exchange.command)), exchange.code, exchange.stdout, exchange.stderr)
        for path in sorted(FOLDER.glob(f"{file}*.txt"))
        for exchange in transcripts.read(path)
        if exchange.command.startswith(command)
    ]


def test_a_submission_gives_an_id_or_a_refusal_or_no_room_or_doubt():
    kinds = []
    for result in results("qsub"):
        job, refusal = SGE.parse_submitted(result), SGE.refusal(result)
        passing, full = SGE.transient(result), SGE.is_full(result)
        assert (job is None) == (result.returncode != 0)
        kinds.append("id" if job else "full" if full else "doubt" if passing else refusal and refusal.key)
    asked = ["queue", "account", "extra", "extra", "extra", None, "extra", None, None, "extra", "extra"]
    ids = ["id"] * 8
    assert kinds == [*asked, *ids, "full", *ids[:2], "doubt"]


def test_each_refused_submission_is_recognized_as_certain():
    refused = [r for r in results("qsub", "01") if r.returncode != 0 and not SGE.is_full(r)]
    assert len(refused) == 11
    assert all((refusal := SGE.refusal(result)) and refusal.certain for result in refused)


def test_the_queue_lists_every_task_with_its_state():
    first, later = (SGE.parse_queue(result) for result in results("qstat -xml", "01"))
    phases = {(line.name, tuple(line.indices or ())): line.answer for line in first or ()}
    assert {key: answer.phase for key, answer in phases.items()} == {
        ("limit", ()): Phase.RUNNING, ("arr", (1,)): Phase.RUNNING, ("noout", ()): Phase.QUEUED,
        ("dead", ()): Phase.QUEUED, ("arr", (2, 3, 4, 5)): Phase.QUEUED, ("held", ()): Phase.QUEUED,
    }  # fmt: skip
    assert phases["noout", ()].never
    assert phases["held", ()].held
    assert {line.owner for line in first or ()} == {"alice"}
    assert (4, 5) in [tuple(line.indices or ()) for line in later or ()]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("ok", [(None, True)]),
        ("fail", [("exit status 3", False)]),
        ("noout", [("output file", False)]),
        ("limit", [("over its time limit", False)]),
        ("arr", [(None, True), (None, True)]),
        ("held", []),
    ],
)
def test_the_history_knows_how_jobs_ended(name, ends):
    (result,) = results(f"qacct -j {name}", "01")
    lines = SGE.parse_history(result)
    assert lines is not None
    assert [line.answer.clean for line in lines] == [clean for _, clean in ends]
    assert all(
        words is None or words in (line.answer.reason or "") for line, (words, _) in zip(lines, ends, strict=True)
    )
    assert all(line.answer.over_time == (name == "limit") for line in lines)


def test_what_had_ended_is_no_fault_of_a_command_that_ends_or_holds_others_too():
    ended = [*results("qdel", "02"), *results("qhold", "02"), *results("qrls", "02")]
    assert {result.returncode for result in ended} == {0, 1, 3}
    assert all(SGE.cancelled(result) for result in ended)
    assert SGE.is_hold_accepted(
        CommandResult(("qhold",), 3, 'modified hold of job 17\ndenied: job "16" does not exist\n', "")
    )


def test_without_a_qmaster_nothing_is_said_of_any_job():
    (listing,) = results("qstat", "03")
    assert SGE.parse_queue(listing) is None
    assert SGE.transient(listing)
