"""Slurm's commands and answers, against transcripts of Slurm 22.05 and of what its source can print."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.errors import CommandResult
from nsw.schedulers import slurm
from nsw.schedulers.adapter import Facts, Request, Watched, limit_words
from nsw.schedulers.model import Answer, Native, Phase, Submission, parse_spans, spans
from nsw.schedulers.slurm import Slurm

SCRIPT = Path("/campaign/scripts/j1.sh")
SLURM = Slurm()


def submission(tasks: tuple[int, ...], native: str | None = None) -> Submission:
    return Submission("nsw-abc", "j1", SCRIPT, 2, tasks, native_id=native)


def result(stderr: str, code: int = 1, stdout: str = "") -> CommandResult:
    return CommandResult(("sbatch",), code, stdout, stderr)


def units(*lines: str) -> str:
    return "".join(line.replace("|", "\x1f") + "\n" for line in lines)


def test_an_array_is_submitted_with_its_throttle_and_the_task_of_its_first_index():
    argv = SLURM.submit_command(
        Request(submission((4, 5, 6, 9)), script=str(SCRIPT), log="/s/jobs/nsw-abc", comment="nsw:c", throttle=2)
    )
    assert argv == [
        "sbatch",
        "--parsable",
        "--job-name=nsw-abc",
        "--comment=nsw:c",
        "--open-mode=append",
        "--array=0-2,5%2",
        "--output=/s/jobs/nsw-abc.%a.log",
        str(SCRIPT),
        "2",
        "4",
    ]


def test_a_throttle_that_changes_nothing_is_left_out():
    argv = SLURM.submit_command(Request(submission((0, 1)), script=str(SCRIPT), log="/s/x", comment="c", throttle=2))
    assert "--array=0-1" in argv


def test_a_single_task_is_submitted_without_an_array():
    argv = SLURM.submit_command(Request(submission((7,)), script=str(SCRIPT), log="/s/100%/x", comment="c", throttle=2))
    assert not any(word.startswith("--array") for word in argv)
    assert argv[-3:] == [str(SCRIPT), "2", "7"]
    assert "--output=/s/100%%/x.log" in argv


@given(st.sets(st.integers(0, 3000), min_size=1))
def test_ranges_read_back_are_the_same_numbers(numbers):
    assert parse_spans(",".join(spans(sorted(numbers)))) == sorted(numbers)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2-7%2", [2, 3, 4, 5, 6, 7]), ("0-6:3", [0, 3, 6]), ("1,3-4,...", [1, 3, 4]), ("", []), ("x", [])],
)
def test_ranges_as_slurm_writes_them(text, numbers):
    assert parse_spans(text) == numbers


@pytest.mark.parametrize(
    ("stdout", "job"),
    [
        ("123\n", "123"),
        ("123;tux\n", "123"),
        ("Submitted batch job 77\n", "77"),
        ("Submitted batch job 77 on cluster tux\n", "77"),
        ("Submitted batch job 77 on cluster tux\n77\n", "77"),
        ("123\n500\n", None),  # one is the id, the other what is left of a budget: its name tells
        ("", None),
        ("queued\n", None),
        ("Welcome! 3 maintenances planned\n123\n", "123"),
        ("123\nYour project has 5 hours left\n", "123"),
    ],
)
def test_the_job_id_is_found_among_what_a_sites_wrapper_prints(stdout, job):
    assert SLURM.parse_submitted(result("", 0, stdout)) == job


@pytest.mark.parametrize(
    ("stderr", "key"),
    [
        (
            (
                "sbatch: error: invalid partition specified: nope\n"
                "sbatch: error: Batch job submission failed: Invalid partition name specified"
            ),
            "partition",
        ),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", "gpus"),
        (
            (
                "sbatch: error: Memory specification can not be satisfied\n"
                "sbatch: error: Batch job submission failed: Requested node configuration is not available"
            ),
            "memory",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested time limit is invalid",
            "time",
        ),
        ("sbatch: error: Batch job submission failed: Node count specification invalid", "nodes"),
        ("sbatch: error: Batch job submission failed: Invalid feature specification", "constraint"),
        ("sbatch: error: Batch job submission failed: Requested reservation is invalid", "reservation"),
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "account",
        ),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "qos"),
        (
            "sbatch: error: Batch job submission failed: Invalid GRES specification (with and without type)",
            "gres",
        ),
        ("sbatch: error: Batch job submission failed: More processors requested than permitted", "cpus_per_task"),
        ("sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information", "extra"),
    ],
)
def test_each_refusal_names_what_asks_too_much(stderr, key):
    refusal = SLURM.refusal(result(stderr))
    assert refusal is not None
    assert refusal.key == key
    assert (refusal.hint is not None) == (key is not None)
    assert "sbatch:" not in refusal.message
    assert refusal.certain
    assert not SLURM.transient(result(stderr))


@pytest.mark.parametrize(
    "failed",
    [
        result("sbatch: error: The cook is ill"),
        result("sbatch: error: Batch job submission failed: Connection timed out"),
        result("sbatch: error: Batch job submission failed: Broken pipe"),
        result("sbatch-log: cannot write /var/log/site.log"),
        result("sbatch: error: Batch job submission failed: Invalid qos specification", stdout="123\n"),
        result("sbatch: error: Batch job submission failed: Invalid qos specification", code=-9),
        result(""),
    ],
)
def test_what_is_not_sbatchs_own_verdict_is_no_refusal(failed):
    assert SLURM.refusal(failed) is None


@pytest.mark.parametrize("words", ["Unspecified error", "Invalid job credential", "The cook is ill"])
def test_words_that_are_not_known_are_no_certain_refusal(words):
    refusal = SLURM.refusal(result(f"sbatch: error: Batch job submission failed: {words}"))
    assert (refusal.message, refusal.certain) == (words, False)


@pytest.mark.parametrize(
    "stderr",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        (
            "sacct: error: slurm_persist_conn_open: Something happened\n"
            "sacct: error: Problem talking to the database: Connection refused"
        ),
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
        (
            "sbatch: error: slurm_msg_sendto: address:port=127.0.0.1:30410 msg_type=4003: Unexpected missing socket error\n"
            "sbatch: error: Batch job submission failed: Unexpected missing socket error"
        ),
    ],
)
def test_faults_of_the_moment_are_known(stderr):
    assert SLURM.transient(result(stderr))


@pytest.mark.parametrize(
    "stderr",
    [
        "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: Could not establish a configuration source",
        'sbatch: error: Parse error in file slurm.conf line 1: "x"\nsbatch: fatal: Unable to process configuration file',
        'sbatch: error: slurm_set_addr: Unable to resolve "nohost"\nallocation failure: No error',
        "sbatch: error: If munged is up, restart with --num-threads=10\nallocation failure: Protocol authentication error",
    ],
)
def test_commands_that_have_no_slurm_to_speak_to_refuse_nothing(stderr):
    assert slurm.was_not_sent(result(stderr))
    assert SLURM.refusal(result(stderr)) is None


def test_squeues_lines_become_answers_and_other_lines_do_not():
    found = slurm.queue_lines(
        units(
            "Message of the day | x",
            "10|0|RUNNING|nsw-abc|None|2:00|me",
            "10|3|PENDING|nsw-abc|JobArrayTaskLimit|2:00|me",
            "12|N/A|COMPLETED|nsw-def|None|2:00|me",
            "14|[5-7%2]|PENDING|nsw-x|Priority|2:00|me",
            "15|5-7,9%2|PENDING|nsw-x|Priority|2:00|me",
        )
    )
    assert [(line.job, line.indices, line.answer.phase) for line in found] == [
        ("10", (0,), Phase.RUNNING),
        ("10", (3,), Phase.QUEUED),
        ("12", None, Phase.ENDED),
        ("14", [5, 6, 7], Phase.QUEUED),
        ("15", [5, 6, 7, 9], Phase.QUEUED),
    ]
    assert "campaign's limit" in (found[1].answer.reason or "")
    assert not any(line.vague for line in found)


@pytest.mark.parametrize(
    ("indices", "reason", "vague"),
    [
        ("0-9,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54,56...%4", "Priority", True),
        ("0-2,4-9%2", "JobHeldUser,JobHeldAdmin", True),
        ("0-2,4-9%2", "ReqNodeNotAvail, UnavailableNodes:n[1-2]", False),
        ("0-2,4-9%2", "ReqNodeNotAvail,_UnavailableNodes:n[1-2]", False),
        ("7", "JobHeldUser,JobHeldAdmin", False),
    ],
)
def test_a_line_for_several_tasks_that_does_not_say_it_all_is_vague(indices, reason, vague):
    (line,) = slurm.queue_lines(units(f"10|{indices}|PENDING|nsw-abc|{reason}|2:00|me"))
    assert line.vague is vague


def test_saccts_lines_become_answers_and_what_sbatch_refused_does_not():
    found = slurm.history_lines(
        units(
            "10_0|nsw-abc|COMPLETED|0:0|n1|00:02:00",
            "10_[2-3%2]|nsw-abc|PENDING|0:0|None assigned|00:02:00",
            "11|nsw-abc|CANCELLED by 1000|0:0|n1|00:02:00",
            "12|nsw-abc|FAILED|1:0|None assigned|00:02:00",
            "13|nsw-abc|FAILED|0:53|n1|00:02:00",
            "14|nsw-abc|FAILED|0:11|n1|00:02:00",
            "15.batch|nsw-abc|FAILED|0:11|n1|00:02:00",
            "16|nsw-abc|TIMEOUT|0:0|n1|1-06:00:30",
            "17+0|nsw-abc|COMPLETED|0:0|n1|00:02:00",  # of a heterogeneous job the first part runs the script
            "17+1|nsw-abc|CANCELLED|0:0|n2|00:02:00",
        )
    )
    assert [(line.job, line.indices) for line in found] == [
        ("10", (0,)),
        ("10", [2, 3]),
        ("11", None),
        ("13", None),
        ("14", None),
        ("16", None),
        ("17", None),
    ]
    assert found[0].answer.clean
    assert found[2].answer.reason == "the job was cancelled"
    assert "output folder" in (found[3].answer.reason or "")
    assert "signal 11" in (found[4].answer.reason or "")
    assert found[5].answer.reason == "the job was over its time limit of 1d6h30s"


@pytest.mark.parametrize(
    ("limit", "words"),
    [("2:00", "2m"), ("00:02:00", "2m"), ("1:30:00", "1h30m"), ("1-00:00:00", "1d"), ("UNLIMITED", None), ("", None)],
)
def test_a_time_limit_in_words(limit, words):
    assert limit_words(limit) == words


@given(st.text(), st.text())
def test_no_state_and_no_reason_is_taken_for_an_end_that_is_none(state, reason):
    answer = slurm.answer(state, reason)
    known = slurm._states().get(state.split(" ", 1)[0].rstrip("+").upper())
    assert (answer.phase is Phase.ENDED) == (known is not None and known["phase"] == "ended")


@given(st.text())
def test_whatever_is_printed_parses_to_something(text):
    slurm.queue_lines(text)
    slurm.history_lines(text)
    SLURM.parse_facts(result("", 0, text))
    SLURM.parse_submitted(result("", 0, text))


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("COMPLETING", Phase.RUNNING),
        ("REQUEUED", Phase.QUEUED),
        ("SUSPENDED", Phase.RUNNING),
        ("NODE_FAIL", Phase.ENDED),
        ("PREEMPTED", Phase.ENDED),
        ("OUT_OF_MEMORY", Phase.ENDED),
        ("OUT_OF_ME+", Phase.UNKNOWN),
        ("WEIRD", Phase.UNKNOWN),
    ],
)
def test_states_mean(state, phase):
    assert slurm.answer(state, "None").phase is phase


@pytest.mark.parametrize(
    ("reason", "never", "part"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", False, "down, drained or reserved"),
        ("(launch failed requeued held)", True, "administrator"),
        ("AssocGrpGRES", False, "limit of the account"),
        ("QOSMaxGRESPerUser", False, "limit of the QOS"),
        ("AssocGrpCPUMinutesLimit", True, "used up its CPU minutes (AssocGrpCPUMinutesLimit); name another account"),
        ("AssocGrpCPURunMinutesLimit", False, "have claimed its CPU minutes"),
        ("QOSMaxGRESPerJob", True, "it asks for more GPUs than the QOS allows a job (QOSMaxGRESPerJob); ask for less"),
        ("Nodes_required_for_job_are_DOWN,_DRAINED", False, "down, drained or reserved"),
        ("launch_failed_requeued_held", True, "administrator"),
        ("SomethingOfNextYear", False, "SomethingOfNextYear"),
    ],
)
def test_reasons_mean(reason, never, part):
    answer = slurm.answer("PENDING", reason)
    assert answer.never is never
    assert part in (answer.reason or "")


# as the library of Slurm 22.05 prints them
ALL_REASONS = (Path(__file__).parent / "reasons_of_slurm_22_05.txt").read_text().split()
ALL_STATES = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REQUEUED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "RESIZING",
    "CONFIGURING",
    "COMPLETING",
    "STOPPED",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "STAGE_OUT",
]


@pytest.mark.parametrize("state", ALL_STATES)
def test_every_state_of_slurm_is_known(state):
    answer = slurm.answer(state, "None")
    assert answer.phase is not Phase.UNKNOWN
    assert answer.phase is not Phase.ENDED or answer.clean or answer.reason


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("TIMEOUT", "TimeLimit", "the job was over its time limit"),
        ("NODE_FAIL", "NodeFail", "a node of the job failed"),
        ("OUT_OF_MEMORY", "OutOfMemory", "the job ran out of memory"),
        ("FAILED", "NonZeroExitCode", "the job failed"),
        ("FAILED", "RaisedSignal:9", "the job failed: a signal ended it"),
        ("CANCELLED", "None", "the job was cancelled"),
    ],
)
def test_why_a_job_ended_is_said_once(state, reason, said):
    assert slurm.answer(state, reason).reason == said


REASONS_OF_ENDS = {name for name, reason in slurm._reasons().items() if reason.of == "end"}


@pytest.mark.parametrize("reason", sorted(set(ALL_REASONS) - REASONS_OF_ENDS - {"None"}))
def test_why_a_job_waited_is_no_reason_of_its_cancellation(reason):
    assert slurm.answer("CANCELLED", reason).reason == "the job was cancelled"


@pytest.mark.parametrize(
    "reason", ["BeginTime", "JobHeldUser", "JobHeldAdmin", "Priority", "ReqNodeNotAvail, May be reserved"]
)
@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "NODE_FAIL", "COMPLETED", "RUNNING"])
def test_a_reason_to_wait_that_slurm_keeps_is_not_that_of_what_runs_or_ended(state, reason):
    assert slurm.answer(state, reason).reason == slurm.answer(state, "None").reason


def test_a_job_that_runs_on_a_sibling_cluster_has_not_ended():
    assert slurm.answer("REVOKED", "None").phase is Phase.UNKNOWN


def test_history_is_asked_of_every_job_however_many_they_are():
    asked = SLURM.history_commands([Watched("nsw-x", Native(str(n)), "/jobs/x") for n in range(1, 1202)])
    ids = [id_ for argv in asked for id_ in argv[argv.index("-j") + 1].split(",")]
    assert ids == [str(n) for n in range(1, 1202)]
    assert len(asked) == 3


@pytest.mark.parametrize("reason", sorted(set(ALL_REASONS) - {"None"}))
def test_every_reason_of_slurm_has_a_sentence_and_one_that_means_never_says_what_to_do(reason):
    found = slurm.answer("PENDING", reason)
    sentence, _, todo = (found.reason or "").partition(f" ({reason})")
    assert sentence not in {"", reason}
    assert "{" not in sentence
    assert bool(todo.removeprefix("; ")) is found.never


@pytest.mark.parametrize("state", ["REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"])
def test_a_job_that_slurm_holds_is_not_waited_for(state):
    answer = slurm.answer(state, "None")
    assert answer.never
    assert f"({state}); " in (answer.reason or "")


def test_what_a_cluster_is_set_to():
    text = """AccountingStorageType   = accounting_storage/none
MaxArraySize            = 101
MinJobAge               = 2 sec
SLURM_VERSION           = 22.05.8
"""
    assert SLURM.parse_facts(result("", 0, text)) == Facts("22.05.8", 100, history=False)


def test_one_scancel_ends_jobs_and_parts_of_arrays():
    some = [submission((3, 4, 9), "12/3"), submission((1,), "13"), submission((1,), "ended")]
    argv = SLURM.cancel_command([Watched.of_submission(one, "/jobs") for one in some])
    assert argv == ["scancel", "12_[0-1,6]", "13"]
    assert SLURM.cancel_command([Watched.of_submission(submission((1,), "ended"), "/jobs")]) is None


@given(st.integers(1, 2**32), st.none() | st.integers(0, 5000))
def test_a_native_id_reads_back(job, offset):
    assert Native.parse(str(Native(str(job), offset))) == Native(str(job), offset)


def test_the_start_of_a_search_by_name_is_relative_so_that_midnight_and_time_zones_do_not_matter():
    assert SLURM.history_by_name_command(["nsw-abc"], 90)[-2:] == ["-S", "now-90minutes"]


def test_too_much_memory_is_read_from_a_jobs_output():
    killed = SLURM.killed_by_limit("a\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.\n")
    assert killed == Answer(Phase.ENDED, "out of memory: Detected 1 oom-kill event(s) in StepId=1.batch.")
    assert SLURM.killed_by_limit("all is well\n") is None
