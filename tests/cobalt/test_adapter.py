"""Cobalt's commands and answers, against what a Cobalt 1.0.33 printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nsw.errors import CommandResult, RefusedError, UsageError
from nsw.plan.model import Job, Resources, Run
from nsw.schedulers.adapter import Request, Watched
from nsw.schedulers.cobalt import Cobalt, answer_from_log_line, whole_minutes
from nsw.schedulers.model import Native, Phase, Submission

COBALT = Cobalt()
OBSERVED = Path(__file__).parent / "observed"
DATE = "Sat Nov 21 00:23:34 2026 +0000 (UTC)"
# what a site's filter prints of a job that it lets pass
CHATTER = (
    'Job routed to queue "debug".\nWARNING: Filesystem attribute not set for this job submission.\n'
    "This job will be set to request all filesystems.  In the event\nof a filesystem outage, this job may be put on"
    " hold unnecessarily.\n"
)
PROXY = 'No handlers could be found for logger "Proxy"\n'


def answer(stdout: str = "", stderr: str = "", code: int = 0, *, timed_out: bool = False) -> CommandResult:
    return CommandResult(("q",), code, stdout, stderr, timed_out=timed_out)


def job(**resources: object) -> Job:
    needs = Resources(**resources)
    run = Run("r1", "c", {}, "baseline", "baseline", None, 1, ("true",), {}, replace(needs, time_s=540))
    return Job("j1", needs, ((run,),))


def lines(**resources: object) -> list[str]:
    return [line for line in COBALT.directives(job(**resources), "/scratch/c") if not line.startswith("#COBALT -t")]


def watched(name: str, native: str | None) -> Watched:
    return Watched(name, Native.parse(native), f"/s/jobs/{name}")


# --- directives -----------------------------------------------------------------------------------------


def test_directives_name_nodes_queue_and_project():
    assert lines(nodes=2, queue="debug", account="P") == ["#COBALT -n 2", "#COBALT -q debug", "#COBALT -A P"]


@pytest.mark.parametrize(("seconds", "wanted"), [(1, 5), (299, 5), (301, 6), (3600, 60)])
def test_time_is_in_minutes_rounded_up_and_never_under_five(seconds, wanted):
    assert whole_minutes(seconds) == wanted


def test_attributes_of_several_lines_become_the_one_option_that_cobalt_takes():
    extra = ("#COBALT --attrs mcdram=flat:numa=quad", "--attrs=filesystems=home,eagle", "#COBALT -M me@x.org")
    assert lines(extra=extra) == [
        "#COBALT -n 1",
        "#COBALT --attrs mcdram=flat:numa=quad:filesystems=home,eagle",
        "#COBALT -M me@x.org",
    ]


def test_lines_of_other_systems_are_left_out():
    assert lines(extra=("#SBATCH --x", "#PBS -l filesystems=home")) == ["#COBALT -n 1"]


@pytest.mark.parametrize(
    "line",
    ["-n 2", "--time=5", "-t5", "--env A=1", "#COBALT --jobname x", "-O x", "--dependencies 1", "-h", "--mode c1"],
)
def test_what_nsw_does_itself_is_refused_in_extra(line):
    with pytest.raises(RefusedError):
        lines(extra=(line,))


def test_a_comment_would_end_the_directives():
    with pytest.raises(RefusedError, match="reads no directives after"):
        lines(extra=("# a comment",))


@pytest.mark.parametrize("wrong", [{"queue": "a b"}, {"account": 'My "Project"x y'}, {"account": "\t"}])
def test_values_with_blanks_cannot_be_written(wrong):
    with pytest.raises(RefusedError, match="no quotes"):
        lines(**wrong)


def test_a_scratch_that_cobalt_would_change_is_refused():
    with pytest.raises(UsageError, match="would change"):
        COBALT.directives(job(), "/scratch/$jobid")


# --- submitting -----------------------------------------------------------------------------------------


def request(**more: object) -> Request:
    submission = Submission("nsw-abc", "j1", Path("/s/scripts/j1.sh"), 2, (7,))
    return Request(submission, script="/s/scripts/j1.sh", log="/s/jobs/nsw-abc", **more)


def test_submission_names_the_job_and_its_files_on_the_command_line():
    assert COBALT.submit_command(request()) == [
        "qsub", "--mode", "script", "--jobname", "nsw-abc", "--cwd", "/s/jobs", "-O", "/s/jobs/nsw-abc",
        "-e", "/s/jobs/nsw-abc.output", "/s/scripts/j1.sh", "2", "7",
    ]  # fmt: skip
    assert COBALT.log_name("nsw-abc", None, 7) == "nsw-abc.output"


def test_a_time_limit_of_its_own_beats_the_scripts():
    assert COBALT.submit_command(request(walltime_s=1201))[-5:-3] == ["-t", "21"]


@pytest.mark.parametrize(
    ("stdout", "job"),
    [
        ("1\n", "1"),
        ("Welcome, 3 nodes are down\n60\n", "60"),
        ("5 is the number of your project's days left\n60\n", "60"),
        ("60 job is held since a file system is down\n", "60"),
        ("", None),
        ("60 a\n61 b\n", None),
        ("done\n", None),
    ],
)
def test_the_id_is_read_from_stdout_alone(stdout, job):
    noise = 'Job routed to queue "debug".\nWARNING: Filesystem attribute not set for this job submission.\n42\n'
    assert COBALT.parse_submitted(answer(stdout, noise)) == job


@pytest.mark.parametrize(
    ("stderr", "key", "said"),
    [
        (
            PROXY + "component error: XMLRPC failure <Fault 1004: 'mcdram x not valid must be one of: cache, flat'> in"
            " system.validate_job\n",
            "extra",
            "mcdram x not valid must be one of: cache, flat",
        ),
        (CHATTER + PROXY + "<Fault 1001: \"User 'a' is not a member of project 'p'\">\n", "account", None),
        (CHATTER + PROXY + "<Fault 1001: 'boom'>\n", None, None),
        ("boom\nFilter /soft/project_queue_filter.py failed\n", None, None),
    ],
)
def test_refusals_that_no_transcript_has_are_found_at_the_recipes_key(stderr, key, said):
    found = COBALT.refusal(answer("", stderr, 1))
    assert found is not None
    assert found.key == key
    assert said in {None, found.message}


OUTAGES = (
    PROXY + "<Fault 20: '---- START TRACEBACK ----\\n    Exception  : error: [Errno 111] Connection refused\\n'>\n",
    PROXY + "component error: Failed to connect to system: Proxy.py     :L#422:cn:system\n\n",
    PROXY + "component error: Following exception occurred while trying to execute queue-manager.get_queues: Proxy\n",
)


@pytest.mark.parametrize("stderr", OUTAGES)
def test_an_outage_is_no_refusal(stderr):
    assert COBALT.refusal(answer("", stderr, 1)) is None
    assert COBALT.transient(answer("", stderr, 1))


@pytest.mark.parametrize(
    "result", [answer("", "", 1), answer("", "boom", 1), answer("5\n", "x", 1), answer("", "Filter x failed", -9)]
)
def test_what_is_not_certainly_a_refusal_is_none(result):
    assert COBALT.refusal(result) is None


# --- asking ---------------------------------------------------------------------------------------------

HEADER = "JobID  User  State      JobName  \n=================================\n"


def test_the_queue_is_asked_for_ids_and_for_the_users_jobs_where_one_has_none():
    known, unknown = watched("a", "12"), watched("b", None)
    assert COBALT.queue_command([known]) == ["qstat", "--header", "JobID:User:State:JobName", "12"]
    assert COBALT.queue_command([known, unknown])[:2] == ["bash", "-c"]


@pytest.mark.parametrize(
    ("state", "phase", "never"),
    [
        ("queued", Phase.QUEUED, False),
        ("starting", Phase.RUNNING, False),
        ("running", Phase.RUNNING, False),
        ("killing", Phase.RUNNING, False),
        ("exiting", Phase.RUNNING, False),
        ("user_hold", Phase.QUEUED, False),
        ("admin_hold", Phase.QUEUED, False),
        ("dep_hold", Phase.QUEUED, False),
        ("dep_fail", Phase.QUEUED, True),
        ("maxrun_hold", Phase.QUEUED, False),
        ("fancy", Phase.UNKNOWN, False),
    ],
)
def test_states(state, phase, never):
    (line,) = COBALT.parse_queue(answer(HEADER + f"46     me    {state.ljust(9)}  nsw-a    \n"))
    assert (line.job, line.indices, line.name) == ("46", None, "nsw-a")
    assert (line.answer.phase, line.answer.never) == (phase, never)


def test_an_empty_queue_has_a_header():
    assert COBALT.parse_queue(answer("Welcome to cooley\n" + HEADER)) == []


def test_the_queue_of_jobs_that_name_none_is_listed_first():
    rest = "None   None    None     {}     None        None       None          None          None        running  \n"
    listed = "debug    " + rest.format("01:00:00") + "default  " + rest.format("None")
    found = COBALT.parse_queues(answer(f"Name     Users  Groups ...\n{'=' * 114}\n{listed}"))
    assert [(queue.name, queue.walltime) for queue in found] == [("default", None), ("debug", 3600)]


def test_silence_with_status_1_means_gone():
    assert COBALT.parse_queue(answer("", "", 1)) == []


@pytest.mark.parametrize(
    "result",
    [
        *(answer("", stderr, 1) for stderr in OUTAGES),
        answer("", "", 0),
        answer("motd\n", "", 1),
        answer("", "", 255),
        answer(HEADER, "", 1),
        answer("", "", 1, timed_out=True),
    ],
)
def test_anything_else_could_not_tell(result):
    assert COBALT.parse_queue(result) is None


def log(*said: str, name: str = "nsw-a", path: str = "/s/jobs") -> str:
    return "".join(f"{path}/{name}.cobaltlog:{line}\n" for line in said)


@pytest.mark.parametrize(
    ("said", "reason", "clean", "cancelled"),
    [
        ("task completed normally with an exit code of 0; initiating job cleanup and removal", None, True, False),
        (
            "task completed normally with an exit code of 3; initiating job",
            "the job failed: exit status 3",
            False,
            False,
        ),
        ("task completed normally with an exit code of 137; x", "signal 9", False, False),
        ("task completed normally with an exit code of 127; x", "interpreter", False, False),
        ("task completed normally with an exit code of None; x", "does not know its exit status", False, False),
        ("task completed normally with an exit code of 1234567; x", "lost track of the job", False, False),
        ("maximum execution time exceeded; initiating job termination", "over its time limit", False, False),
        ("user delete requested with signal SIGTERM by user alice", "deleted by alice", False, True),
        ("user delete requested; removing job from the queue", "deleted", False, True),
    ],
)
def test_how_a_job_ended_is_read_from_its_cobaltlog(said, reason, clean, cancelled):
    (line,) = COBALT.parse_history(answer(log("Jobid: 7", f"{DATE} Info: {said}")))
    assert (line.job, line.name, line.answer.phase) == ("7", "nsw-a", Phase.ENDED)
    assert (line.answer.clean, line.answer.cancelled) == (clean, cancelled)
    assert line.answer.reason is reason if reason is None else reason in line.answer.reason


def test_a_job_whose_end_is_not_written_yet_is_known_and_gone():
    (line,) = COBALT.parse_history(answer(log("Jobid: 7")))
    assert line.answer.phase is Phase.GONE


def test_each_end_belongs_to_the_job_above_it():
    text = log("Jobid: 7", "Jobid: 9", f"{DATE} Info: task completed normally with an exit code of 4; x")
    found = {line.job: line.answer.phase for line in COBALT.parse_history(answer(text, "", 2))}
    assert found == {"7": Phase.GONE, "9": Phase.ENDED}
    assert COBALT.parse_history(answer("", "", 1)) == []
    assert COBALT.parse_history(answer("", "", 127)) is None


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("example-ok", None),
        ("example-qdel", "deleted by alice"),
        ("example-term-ignored", "deleted by alice"),
        ("example-walltime", "over its time limit"),
        ("example-lost-forker", "lost track"),
    ],
)
def test_real_cobaltlogs(file, part, tmp_path):
    import subprocess

    source = OBSERVED / f"{file}.cobaltlog"
    (tmp_path / "nsw-a.cobaltlog").write_bytes(source.read_bytes())
    one = Watched("nsw-a", None, str(tmp_path / "nsw-a"))
    (command,) = COBALT.history_commands([one, Watched("nsw-b", None, str(tmp_path / "nsw-b"))])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (line,) = COBALT.parse_history(answer(done.stdout, done.stderr, done.returncode))
    assert line.name == "nsw-a"
    assert line.answer.reason is None if part is None else part in line.answer.reason


def test_what_only_happened_on_the_way_is_no_end():
    assert answer_from_log_line(f"{DATE} Info: dep hold placed on job") is None


def test_cancelling_is_one_command_and_its_silence_is_no_fault():
    assert COBALT.cancel_command([watched("a", "1"), watched("b", None), watched("c", "3")]) == ["qdel", "1", "3"]
    assert COBALT.cancel_command([watched("b", None)]) is None
    assert COBALT.cancelled(answer())
    assert not COBALT.cancelled(answer("", OUTAGES[0], 1))
