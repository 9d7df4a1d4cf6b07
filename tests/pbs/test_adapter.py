"""What nsw asks of PBS and makes of its answers, against transcripts of OpenPBS 23.06."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.errors import CommandResult
from nsw.schedulers.adapter import Request, Watched
from nsw.schedulers.model import Native, Phase, Submission, parse_spans
from nsw.schedulers.pbs import Pbs, answer, is_torque, listed_lines

from .transcripts import all_steps, stdout_of

PBS = Pbs()
SCRIPT = "/c/scripts/j1.sh"
REFUSED = [step for step in all_steps() if step.command.startswith("qsub") and step.rc and "Connection" not in step.stderr
           and "Unknown Host" not in step.stderr and "qsub:" in step.stderr]  # fmt: skip


def submission(*tasks: int, native: str | None = None, **more: object) -> Submission:
    return Submission("nsw-abc", "j1", Path(SCRIPT), 2, tasks, native_id=native, **more)


def submitted(sent: Submission, **more: object) -> list[str]:
    return PBS.submit_command(Request(sent, script=SCRIPT, log="/c/jobs/nsw-abc", **more))


def watched(native: str | None, *tasks: int, name: str = "nsw-abc") -> Watched:
    return Watched(name, Native.parse(native), "/c/jobs/nsw-abc", tasks or (0,))


def result(stdout: str = "", stderr: str = "", code: int = 0, argv: tuple[str, ...] = ("qstat",)) -> CommandResult:
    return CommandResult(argv, code, stdout, stderr)


def told(**attributes: str) -> object:
    known = {"state": "F", "substate": "", "status": "", "stageout": "", "comment": "", "hold": "", "limit": ""}
    return answer(**{**known, "depends": False, **attributes})


# --- submitting -------------------------------------------------------------------------------------------


def test_a_script_of_pbs_has_no_arguments():
    assert submitted(submission(7)) == [
        "qsub", "-f", "-N", "nsw-abc", "-j", "oe", "-v", "NSW_ATTEMPT=2,NSW_TASK=7", "-o", "/c/jobs/nsw-abc.log", SCRIPT,
    ]  # fmt: skip


def test_several_tasks_are_one_array_from_index_0():
    argv = submitted(submission(3, 4, 5, 6), throttle=2, after=("9.pbs0", "10.pbs0"), walltime_s=90)
    assert argv[argv.index("-J") + 1] == "0-3%2"
    assert argv[argv.index("-o") + 1] == "/c/jobs/nsw-abc.^array_index^.log"
    assert argv[argv.index("-l") + 1] == "walltime=00:01:30"
    assert argv[argv.index("-W") + 1] == "depend=afterok:9.pbs0:10.pbs0"
    assert "NSW_ATTEMPT=2,NSW_TASK=3" in argv


def test_a_throttle_that_changes_nothing_is_left_out():
    assert "0-1" in submitted(submission(0, 1), throttle=2)


@pytest.mark.parametrize(
    ("printed", "job"),
    [
        ("12.pbs0\n", "12.pbs0"),
        ("69[].pbs0\n", "69[].pbs0"),
        ("Your project has 12.5 hours left.\n5487654.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov\n",
         "5487654.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov"),
        ("", None),
        ("1.pbs0\n2.pbs0\n", None),
        ("12\n", None),
    ],
)  # fmt: skip
def test_the_id_is_the_only_line_that_is_one(printed, job):
    assert PBS.parse_submitted(result(printed)) == job


def test_every_refusal_of_the_transcripts_is_known_as_one():
    unsure = {"qsub: cannot connect to server", "qsub: script file::"}
    assert len(REFUSED) > 25
    for step in REFUSED:
        answer_of = result(step.stdout, step.stderr, step.rc)
        full = "would exceed" in step.stderr
        assert PBS.is_full(answer_of) == full, step
        refusal = PBS.refusal(answer_of)
        assert refusal is not None, (step.command, unsure)
        assert "usage" not in refusal.message
        assert "qsub" not in refusal.message


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("qsub -q nosuch ok.sh", "queue"),
        ("qsub -q debug ok.sh", "queue"),
        ("qsub -q debug -l walltime=02:00:00 ok.sh", "time"),
        ("qsub -l walltime=abc ok.sh", "time"),
        ("qsub -A p -q debug ok.sh", "time"),  # a site's hook, in two lines
        ("qsub ok.sh", "account"),  # a site's hook
        ("qsub -l nosuchres=1 ok.sh", "extra"),
        ("qsub -l select=1:ngpus=two ok.sh", "extra"),
        ("qsub -l select=1:ncpus=1 -l ncpus=4 ok.sh", "extra"),
    ],
)
def test_a_refusal_names_the_key_of_the_recipe_that_asks_for_it(command, key):
    step = next(step for step in REFUSED if step.command == command)
    assert PBS.refusal(result("", step.stderr, step.rc)).key == key


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("qsub: Resource: filesystems is required to be set.", "extra"),
        ("qsub: Account_Name is required to be set.", "account"),
        ("qsub: Job rejected by all possible destinations", "queue"),
        ("qsub: Unknown resource: ngpus", "gpus"),
        ("qsub: walltime exceeds the maximum of queue debug", "time"),
        ("allocation: 3 h left\nqsub: Job violates queue and/or server resource limits", "time"),  # a site's wrapper
    ],
)
def test_refusals_of_sites_are_known_by_their_words(said, key):
    assert PBS.refusal(result("", f"{said}\n", 32)).key == key


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('"-lresource=" cannot be used with "select" or "place", resource is: ngpus', 5),
        ('"-lresource=" cannot be used with "select" or "place", resource is: mem', 5),
        ("Cannot be used with select or place: nodes", 6),
        ('Resource invalid in "select" specification: walltime', 4),
        ("duplicated resource within a chunk: ngpus", 12),
    ],
)
def test_what_cannot_stand_beside_the_select_that_nsw_writes_is_a_fault_of_that_line(said, code):
    refusal = PBS.refusal(result("", f"qsub: {said}\n", code))
    assert (refusal.message, refusal.key) == (said, "extra")
    assert "nsw writes -l select" in refusal.hint


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("Connection refused\nqsub: cannot connect to server pbs0 (errno=15010)\n", 162),
        ("qsub: End of File\n", 159),
        ("qsub: No free connections\n", 185),
        ("", 137),
        ("Killed\n", 137),
        ("bash: qsub: command not found\n", 127),
        ("", 1),
    ],
)
def test_what_may_have_been_submitted_all_the_same_is_no_refusal(stderr, code):
    assert PBS.refusal(result("", stderr, code)) is None
    assert not PBS.is_full(result("", stderr, code))


# --- asking -----------------------------------------------------------------------------------------------


def test_one_question_holds_all_ids_and_their_subjobs():
    assert PBS.queue_command([watched("12[].pbs0/0", 0, 1), watched("13.pbs0")]) == [
        "qstat", "-t", "-f", "12[].pbs0", "13.pbs0",
    ]  # fmt: skip


def test_without_ids_only_own_jobs_of_these_names_are_asked_for():
    argv = PBS.queue_command([watched(None, name="nsw-1"), watched(None, name="nsw-2")])
    assert argv[0] == "bash"
    assert argv[-2:] == ["nsw-1", "nsw-2"]
    assert 'qselect $how -u "$user" -N "$name"' in argv[2]


def test_jobs_are_read_from_the_text_of_several_versions():
    (line,) = listed_lines(stdout_of("08", "qstat -f 47.pbs0"))
    assert (line.job, line.indices, line.name, line.answer.phase) == ("47.pbs0", None, "s1", Phase.RUNNING)
    (line,) = listed_lines(stdout_of("08", "qstat -x -f 47.pbs0"))
    assert line.answer.phase is Phase.ENDED
    assert line.answer.clean
    (line,) = listed_lines(stdout_of("11", "qstat -x -f '69[2]'"))
    assert (line.job, line.indices) == ("69[].pbs0", (2,))
    assert line.answer.reason == "the job failed: exit status 4"


ARRAY = """Please read the message of the day.
Job Id: 12[].pbs0
    Job_Name = nsw-abc
    job_state = B
    comment = Job Array Began at Sat Nov 21 at 00:20
    array = True
    array_indices_submitted = 0-9
    array_indices_remaining = 4-6,9

Job Id: 12[0].pbs0
    Job_Name = nsw-abc
    job_state = X
    substate = 93
    run_count = 1
    Exit_status = -29
    Resource_List.walltime = 00:02:00
    Variable_List = PBS_O_HOME=/home/x,A=l1
l2	tab,job_state = Q,
	PBS_O_WORKDIR=/w

Job Id: 12[1].pbs0
    Job_Name = nsw-abc
    job_state = R
"""


def test_an_array_answers_for_subjobs_that_have_no_line_of_their_own():
    lines = listed_lines(ARRAY)
    assert [(line.job, list(line.indices), line.answer.phase) for line in lines] == [
        ("12[].pbs0", [4, 5, 6, 9], Phase.QUEUED),
        ("12[].pbs0", [0], Phase.ENDED),
        ("12[].pbs0", [1], Phase.RUNNING),
    ]
    assert lines[1].answer.reason == "the job was over its time limit of 2m"


def test_the_exit_status_of_an_array_says_nothing_of_its_subjobs():
    (line,) = listed_lines(
        ARRAY.replace("job_state = B", "job_state = F\n    Exit_status = 0").partition("Job Id: 12[0")[0]
    )
    assert list(line.indices) == list(range(10))
    assert line.answer.phase is Phase.ENDED
    assert not line.answer.clean


def test_a_job_is_absent_only_where_qstat_says_so_of_it():
    both = ("qstat", "-t", "-f", "47.pbs0", "48.pbs0")
    text = stdout_of("08", "qstat -f 47.pbs0")
    over = "qstat: 48.pbs0 Job has finished, use -x or -H to obtain historical job information\n"
    assert len(PBS.parse_queue(result(text, over, 35, both))) == 1
    assert len(PBS.parse_queue(result(text, "qstat: Unknown Job Id 48.pbs0\n", 153, both))) == 1
    assert PBS.parse_queue(result(text, "", 0, both)) is None  # cut short, or a client that prints the first only
    assert PBS.parse_queue(result("", "", 0, both)) is None
    assert PBS.parse_queue(result("", "something else\n", 1, both)) is None


@pytest.mark.parametrize("command", ["qstat 117.pbs0", "PBS_SERVER=localhost qstat", "PBS_DEFAULT=nosuchhost qstat"])
def test_a_server_that_is_down_says_nothing_of_any_job(command):
    step = next(s for s in all_steps() if s.command == command)
    answered = CommandResult(("qstat", "-t", "-f", "117.pbs0"), step.rc, step.stdout, step.stderr)
    assert PBS.parse_queue(answered) is None
    assert PBS.parse_history(answered) is None


def test_a_server_without_history_says_so_with_exit_status_0():
    step = next(s for s in all_steps() if s.command == "qstat -x 128.pbs0")
    answered = result(step.stdout, step.stderr, step.rc)
    assert PBS.no_history(answered)
    assert PBS.parse_history(answered) is None


def test_the_settings_of_a_server_are_read_and_old_versions_have_no_throttles():
    text = "Server: pbs0\n    server_state = Active\n    job_history_enable = True\n    max_array_size = 500\n    pbs_version = {}\n"
    new = PBS.parse_facts(result(text.format("23.06.06")))
    assert (new.version, new.longest_array, new.history, new.throttle) == ("23.06.06", 500, True, True)
    assert not PBS.parse_facts(result(text.format("19.1.3"))).throttle
    assert PBS.parse_facts(result("")).history  # what cannot be seen is found out


@given(st.text())
def test_any_text_is_read_without_a_fault(text):
    assert isinstance(listed_lines(text), list)
    assert isinstance(listed_lines(f"Job Id: 1.a\n    job_state = F\n    Exit_status = {text}"), list)
    assert isinstance(parse_spans(text), list)


# --- what answers mean ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("1", "exit status 1"), ("137", "signal 9"), ("-29", "over its time limit"), ("-27", "ran out of memory"),
        ("-20", "a node of the job failed"), ("266", "signal 10"), ("-99", "Exit_status -99"), ("-3", "could not start"),
    ],
)  # fmt: skip
def test_each_form_of_exit_status_has_its_words(status, words):
    found = told(status=status, substate="93")
    assert found.phase is Phase.ENDED
    assert not found.clean
    assert words in found.reason


def test_a_deleted_job_is_cancelled_by_whom_pbs_says():
    found = told(status="271", substate="91", comment="Job run at X on (pbs0:ncpus=1) and terminated by alice@pbs0")
    assert found.reason == "the job was deleted by alice@pbs0"
    assert found.cancelled
    assert told(substate="91").cancelled


def test_over_without_an_exit_status_never_began_though_its_substate_is_that_of_success():
    (line,) = listed_lines(
        "Job Id: 58.pbs0\n    Job_Name = x\n    job_state = F\n    depend = afterok:57.pbs0@pbs0\n    substate = 92\n"
    )
    assert not line.answer.clean
    assert "the job that it depends on did not succeed" in line.answer.reason


def test_output_that_was_not_delivered_does_not_make_a_run_fail():
    found = told(status="0", substate="92", stageout="0")
    assert found.clean
    assert "could not deliver" in found.reason


def test_a_job_that_is_requeued_after_its_node_failed_is_not_over():
    found = told(state="Q", substate="10", status="-20", comment="Not Running: Not enough free nodes available")
    assert found.phase is Phase.QUEUED
    assert not found.never


def test_a_job_that_can_never_run_is_known_as_such():
    found = told(state="Q", comment="Can Never Run: Insufficient amount of resource: ngpus (R: 9 A: 4 T: 4)")
    assert found.never
    assert "ngpus (R: 9 A: 4 T: 4)" in found.reason


def test_of_what_no_node_has_any_nothing_is_said_for_ever():
    comment = "Can Never Run: Insufficient amount of resource: mem (R: 200mb A: 0kb T: 0kb)"
    found = told(state="Q", comment=comment)
    assert not found.never
    assert "sees none of what it needs on any node now: Insufficient amount of resource: mem (R: 200mb" in found.reason
    assert told(state="Q", comment=comment.replace("T: 0kb", "T: 100kb")).never


@pytest.mark.parametrize("status", ["", "0", "1", "2"])
def test_a_subjob_that_has_no_job_of_its_own_has_its_arrays_attributes_and_they_say_nothing_of_it(status):
    text = "Job Id: 12[3].pbs0\n    Job_Name = nsw-abc\n    job_state = {}\n    substate = 70\n    comment = {}\n"
    text += f"    Exit_status = {status}\n" if status else ""
    (waits,) = listed_lines(text.format("Q", "Job Array Began at Sat Nov 21 at 00:20"))
    assert (waits.answer.phase, waits.answer.reason) == (Phase.QUEUED, None)
    (gone,) = listed_lines(text.format("X", "Subjob finished"))
    assert (gone.answer.phase, gone.answer.reason, gone.answer.cancelled) == (Phase.ENDED, "the job was deleted", True)
    assert "no record" in gone.answer.if_begun.reason
    (again,) = listed_lines(text.format("Q", "Not Running: x") + "    run_count = 1\n")
    assert again.answer.reason == "not running yet: x"


@pytest.mark.parametrize(
    ("hold", "depends", "words"),
    [("u", False, "qrls"), ("s", True, "depends on"), ("o", False, "operator"), ("us", False, "qrls")],
)
def test_a_held_job_says_by_whom(hold, depends, words):
    assert words in told(state="H", hold=hold, depends=depends).reason


def test_states_that_are_no_end_are_none():
    phases = {state: told(state=state, status="0").phase for state in "QHWTRESUBM?"}
    assert {state for state, phase in phases.items() if phase is Phase.QUEUED} == set("QHWTB")
    assert {state for state, phase in phases.items() if phase is Phase.RUNNING} == set("RESU")
    assert {state for state, phase in phases.items() if phase is Phase.UNKNOWN} == set("M?")


# --- names, ending ----------------------------------------------------------------------------------------


def test_a_subjob_has_its_index_in_its_id():
    native = Native.parse("12[].pbs0/3")
    assert PBS.job_of(native, 5) == "12[2].pbs0"
    assert PBS.parse_job("12[2].pbs0") == ("12[].pbs0", 2)
    assert PBS.parse_job("12.pbs0") == ("12.pbs0", None)


def test_of_an_array_only_the_named_tasks_are_deleted():
    argv = PBS.cancel_command([watched("12[].pbs0/3", 3, 4, 5, 9), watched("13.pbs0"), watched(None)])
    assert argv == ["qdel", "12[0-2].pbs0", "12[6].pbs0", "13.pbs0"]
    assert PBS.cancel_command([watched(None)]) is None


def test_deleting_what_is_over_is_no_fault():
    assert PBS.cancelled(result("", "qdel: Job has finished 49.pbs0\nqdel: Unknown Job Id 1.pbs0\n", 153))
    assert PBS.cancelled(result())
    assert not PBS.cancelled(result("", "qdel: Unauthorized Request  216.pbs0\n", 159))
    assert not PBS.cancelled(result("", "Connection refused\nCouldn't connect to cluster: pbs0\n", 162))


def test_torque_is_told_apart_by_its_version():
    assert is_torque("Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e\n")
    assert not is_torque(stdout_of("08", "qstat --version"))


def test_names_fit_the_oldest_version():
    assert PBS.capabilities.longest_name == 15
    assert all(re.fullmatch(r"\S+", word) for word in submitted(submission(0)))
