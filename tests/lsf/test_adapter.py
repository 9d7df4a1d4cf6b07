"""What nsw asks of LSF and makes of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsw.errors import CommandResult, RefusedError
from nsw.plan.model import Job, Resources, Run
from nsw.schedulers.adapter import Request, Watched
from nsw.schedulers.lsf import Lsf, answer, ended_lines
from nsw.schedulers.model import Native, Phase, Submission

LSF = Lsf()


def request(*tasks: int, **more: object) -> Request:
    return Request(Submission("nsw-abc", "j1", Path("/c/j1.sh"), 2, tasks), "/c/j1.sh", "/c/jobs/nsw-abc", **more)


def result(stdout: str = "", stderr: str = "", code: int = 0, *argv: str) -> CommandResult:
    return CommandResult(argv or ("bjobs",), code, stdout, stderr)


def watched(native: str, *tasks: int) -> Watched:
    return Watched("nsw-abc", Native.parse(native), "/c/jobs/nsw-abc", tasks or (0,))


def lines(**needs: object) -> list[str]:
    job = Job("j1", Resources(**needs), ((Run.__new__(Run),),))
    object.__setattr__(job.runs[0], "resources", job.resources)
    return LSF.directives(job, "/c")


def test_an_array_is_numbered_from_1_with_its_gaps():
    argv = LSF.submit_command(request(3, 4, 7, throttle=2, after=("9", "10"), walltime_s=90, comment="nsw:c"))
    assert argv == [
        "bsub", "-J", "nsw-abc[1-2,5]%2", "-o", "/c/jobs/nsw-abc.%I.log", "-env", "all, NSW_ATTEMPT=2, NSW_TASK=3",
        "-Jd", "nsw:c", "-W", "2", "-w", "done(9) && done(10)", "-ti",
    ]  # fmt: skip
    native = Native.of_submission(request(3, 4, 7).submission, "12", LSF.capabilities.first_index)
    assert [LSF.job_of(native, task) for task in (3, 4, 7)] == ["12[1]", "12[2]", "12[5]"]
    assert LSF.parse_job("12[5]") == ("12", 5)
    assert LSF.parse_job("12") == ("12", None)
    assert LSF.cancel_command([Watched("n", native, "", (3, 7)), watched("20")]) == ["bkill", "12[1,5]", "20"]


def test_what_a_job_needs():
    assert lines(nodes=2, gpus=8, tasks=8, cpus_per_task=4, memory_bytes=1 << 30, queue="q", account="p", exclusive=True) == [
        "#BSUB -n 32", '#BSUB -R "span[ptile=16]"', '#BSUB -R "rusage[mem=1GB]"', "#BSUB -M 1GB",
        "#BSUB -gpu num=4", "#BSUB -q q", "#BSUB -P p", "#BSUB -x", "#BSUB -W 11",
    ]  # fmt: skip
    with pytest.raises(RefusedError, match="cannot be divided"):
        lines(nodes=2, gpus=3)


@pytest.mark.parametrize("line", ["-J x", "#BSUB -oo f", "#BSUB -q q -Is", "-W 5", "#BSUB -w 'done(1)'"])
def test_lines_that_ask_for_what_nsw_sets_are_refused(line):
    with pytest.raises(RefusedError):
        lines(extra=(line,))


def test_lines_of_the_users_own_and_of_other_systems():
    assert lines(extra=("#BSUB -R 'select[-x]'", "#SBATCH -p gpu"))[-1] == "#BSUB -R 'select[-x]'"


@pytest.mark.parametrize(
    ("printed", "job"),
    [
        ("Job <12> is submitted to queue <normal>.\n", "12"),
        ("esub: ok\nJob <12> is submitted to default queue <normal>.\n", "12"),
        ("Job <12> is submitted to queue <a>.\nJob <13> is submitted to queue <a>.\n", None),
        ("", None),
    ],
)
def test_the_id_is_in_the_sentence_of_bsub(printed, job):
    assert LSF.parse_submitted(result(printed)) == job


@pytest.mark.parametrize(
    ("stderr", "key"),
    [
        ("x: No such queue. Job not submitted.", "queue"),
        ("RUNLIMIT: Cannot exceed queue's hard limit(s). Job not submitted.", "time"),
        ("Bad resource requirement syntax. Job not submitted.", "extra"),
        ("Request aborted by esub. Job not submitted.", None),
    ],
)
def test_only_what_ends_with_job_not_submitted_is_a_refusal(stderr, key):
    refusal = LSF.refusal(result("", stderr, 255))
    assert refusal is not None
    assert refusal.key == key
    assert "not submitted" not in refusal.message
    for unsure in ("Communication time out. Job not submitted.", "Segmentation fault", "LSF is down. Please wait ..."):
        assert LSF.refusal(result("", unsure, 255)) is None
    assert LSF.refusal(result("Job <1> is submitted to queue <q>.", stderr, 255)) is None


def test_a_listing_must_answer_for_every_id():
    text = "12^1^RUN^-^nsw-abc[1]^me^-^-\n12^2^PEND^-^nsw-abc[2]^me^-^Job dependency condition not satisfied;\n"
    asked = ("bjobs", "12", "13")
    assert LSF.parse_queue(result(text, "", 0, *asked)) is None
    found = LSF.parse_queue(result("motd\n" + text, "Job <13> is not found\n", 255, *asked))
    assert [(line.job, line.indices, line.name, line.answer.phase) for line in found] == [
        ("12", (1,), "nsw-abc", Phase.RUNNING), ("12", (2,), "nsw-abc", Phase.QUEUED),
    ]  # fmt: skip
    assert LSF.parse_queue(result("", "No job found", 255)) == []
    assert LSF.parse_queue(result("", "LSF is down. Please wait ...", 255)) is None
    assert LSF.parse_queue(result("", "who knows", 1)) is None


@pytest.mark.parametrize(
    ("columns", "words", "more"),
    [
        (("EXIT", "3", "", ""), "exit status 3", {}),
        (("EXIT", "139", "", ""), "signal 11", {}),
        (("EXIT", "140", "TERM_RUNLIMIT: job killed after reaching LSF run time limit", ""), "over its time limit", {}),
        (("EXIT", "130", "TERM_OWNER: job killed by owner", ""), "killed by its owner", {"cancelled": True}),
        (("EXIT", "", "TERM_ORPHAN_SYSTEM: orphan", ""), "never began", {}),
        (("PEND", "", "", "Dependency condition invalid or never satisfied"), "depends", {"never": True}),
    ],
)
def test_reasons(columns, words, more):
    told = answer(*columns)
    assert words in told.reason
    assert all(getattr(told, name) == value for name, value in more.items())


def test_unknown_states_are_no_statement():
    assert {answer(stat, "", "", "").phase for stat in ("UNKWN", "ZOMBI", "NEW")} == {Phase.UNKNOWN}


def test_the_last_event_of_bhist_decides():
    wrap = "\n" + " " * 21
    text = f"""
Job <12[1]>, Job Name <nsw-abc[1]>, User <me>, Project <default>, Comm{wrap}and <x>
Thu Nov 19 12:00:00: Submitted from host <login1>, to Queue <normal>, CWD <$HOM{wrap}E>;
Thu Nov 19 12:00:01: Starting (Pid 1);
Thu Nov 19 12:00:02: Done successf{wrap}ully. The CPU time used is 0.1 seconds;
------------------------------------------------------------------------------
Job <12[2]>, Job Name <nsw-abc[2]>, User <me>, Project <default>, Command <x>
Thu Nov 19 12:00:01: Starting (Pid 1);
Thu Nov 19 12:00:02: Exited with exit code 140. The CPU time used is 0.1 seconds;
Thu Nov 19 12:00:02: Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit;
------------------------------------------------------------------------------
Job <13>, Job Name <b>, User <me>, Project <default>, Command <x>
Thu Nov 19 12:00:01: Exited with exit code 1. The CPU time used is 0.1 seconds;
Thu Nov 19 12:00:02: Requeued job is pending;
Thu Nov 19 12:00:03: Starting (Pid 2);
"""
    first, second, third = ended_lines(text)
    assert (first.job, first.indices, first.name, first.answer.clean) == ("12", (1,), "nsw-abc", True)
    assert second.answer.reason == "the job was over its time limit"
    assert (third.indices, third.answer.phase) == (None, Phase.RUNNING)


def test_a_history_that_knows_nothing_of_a_name_lists_nothing():
    asked = tuple(LSF.history_by_name_command(["nsw-abc"], 5))
    assert LSF.parse_history(result("", "No matching job found\n", 255, *asked)) == []
