"""Which line of stderr is told as the reason of a failed run."""

from __future__ import annotations

import pytest

from nsw.engine.collect import Verdict, error_line, reason_with, with_disk_fault
from nsw.engine.ledger_rows import Cause, Reason, State

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n'
    "    import nvtx\n"
    "ModuleNotFoundError: No module named 'nvtx'\n"
)


@pytest.mark.parametrize(
    ("after", "tool"),
    [
        (
            (
                "Importer error status: An unknown error occurred.\n"
                "Unable to retrieve the importer version: skipping importation of the QDSTRM file.\n"
            ),
            "nsys without an importer",
        ),
        (
            "Generating '/tmp/nsys-report-a.qdstrm'\n[1/1] [====100%] t.nsys-rep\nGenerated:\n    /s/t.nsys-rep\n",
            "nsys",
        ),
        ("==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n", "ncu"),
        ("======== Error: Application returned non-zero code 1\n", "nvprof"),
        ("srun: error: ampere1: task 0: Exited with exit code 1\n", "srun"),
        (
            (
                "-----------------------------\n"
                "mpirun detected that one or more processes exited with non-zero status\n  Process name: [[1,1],0]\n"
            ),
            "mpirun",
        ),
        (
            (
                "E1121 05:33:15.123 42 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1)\n"
                "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                "============================================================\ntrain.py FAILED\n"
                "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-21_05:33:15\n"
                "============================================================\n"
            ),
            "torchrun",
        ),
    ],
    ids=lambda value: value if " " not in value and "\n" not in value else "",
)
def test_the_program_s_own_error_counts_not_what_is_said_around_it(after, tool):
    assert error_line((TRACEBACK + after).encode()) == "ModuleNotFoundError: No module named 'nvtx'", tool


def test_without_an_error_the_last_line_counts():
    assert error_line(b"loading\nepoch 3\n\n") == "epoch 3"


def test_a_launcher_s_words_count_where_nothing_else_was_said():
    told = "srun: error: Unable to create step: Invalid generic resource (gres) specification"
    assert error_line(told.encode()) == told


def test_nothing_said_is_none():
    assert error_line(b"\n \n") is None
    assert error_line(None) is None


def test_a_long_line_is_cut():
    assert len(error_line(b"Error: " + b"x" * 500) or "") == 200


FOR = "(jobs may know {} in a login shell only: `login_shell: true` at the site)"
LMOD = """Lmod has detected the following error: The following module(s) are unknown: "cuda/99"

Please check the spelling or version number. Also try "module spider ..."
"""


@pytest.mark.parametrize(("stderr", "words"), [
    ("/s/a b/x.sh: line 12: module: command not found\n", "module: command not found " + FOR.format("module")),
    ("\nError: Run 'conda init' before 'conda activate'\n", "Error: Run 'conda init' before 'conda activate' " + FOR.format("conda")),
    (LMOD, LMOD.splitlines()[0]),
    ("x.sh: line 3: /v/bin/activate: No such file or directory\n", "/v/bin/activate: No such file or directory"),
])  # fmt: skip
def test_a_set_up_that_failed_says_why_and_what_to_do(stderr, words):
    broken = Reason("set-up failed: x", Cause.SET_UP)
    told = str(reason_with(broken, stderr.encode(), login_shell=False))
    assert told.removeprefix("a module does not exist there: ").partition(";")[0] == f"set-up failed: x: {words}"
    assert str(reason_with(broken, b"", login_shell=False)) == "set-up failed: x"


def test_a_program_that_does_not_find_a_command_gets_no_advice_on_set_up():
    status = Reason("exit status 127", Cause.EXIT)
    said = reason_with(status, b"p.sh: line 1: module: command not found\n", login_shell=False)
    assert str(said) == "exit status 127: p.sh: line 1: module: command not found"


@pytest.mark.parametrize("word", ["Terminated", "Killed"])
def test_what_a_shell_says_of_a_signal_adds_nothing_to_a_reason(word):
    over = Reason("the job was over its time limit of 2m in the middle of this run", Cause.OVER_TIME)
    assert reason_with(over, f"{word}\n".encode(), login_shell=False) == over
    assert str(reason_with(None, f"{word}\n".encode(), login_shell=False)) == word


def test_of_an_exception_of_c_plus_plus_what_it_says_counts_and_not_its_frames():
    said = (
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [Rank 1] Watchdog caught collective operation timeout\n"
        "Exception raised from checkTimeout at /p/ProcessGroupNCCL.cpp:692 (most recent call first):\n"
        "frame #0: c10::Error::Error(c10::SourceLocation) + 0x9d (0x7f1 in /t/libc10.so)\n"
    )
    assert error_line(said.encode()) == "what():  [Rank 1] Watchdog caught collective operation timeout"


OPEN_MPI_RULE = "-" * 74 + "\n"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            (
                "srun: error: Unable to create step for job 5: More processors requested than permitted\n"
                "srun: Check the job's allocation\n"
            ),
            "srun: error: Unable to create step for job 5: More processors requested than permitted",
        ),
        (
            (
                "slurmstepd: error: execve(): ./prog: No such file or directory\n"
                "srun: error: n1: tasks 0-3: Exited with exit code 2\nsrun: Terminating StepId=5.0\n"
            ),
            "slurmstepd: error: execve(): ./prog: No such file or directory",
        ),
        (
            (
                f"{OPEN_MPI_RULE}There are not enough slots available in the system to satisfy the 8\nslots that were"
                f" requested by the application:\n\n  bash\n\nEither request fewer slots.\n{OPEN_MPI_RULE}"
            ),
            (
                "There are not enough slots available in the system to satisfy the 8 slots that were requested by the"
                " application:"
            ),
        ),
        (
            (
                "[mpiexec@n1] match_arg (args.c:163): unrecognized argument foo\n"
                "[mpiexec@n1] parse_args (params.c:313): error parsing input array\n"
                "[mpiexec@n1] main (mpiexec.c:149): error parsing parameters\n"
            ),
            "[mpiexec@n1] match_arg (args.c:163): unrecognized argument foo",
        ),
        (
            (
                f"ValueError: bad input\n{OPEN_MPI_RULE}Primary job  terminated normally, but 1 process returned\n"
                f"a non-zero exit code.\n{OPEN_MPI_RULE}"
            ),
            "ValueError: bad input",
        ),
        ("loading\nsrun: error: n1: task 0: Exited with exit code 1\n", "loading"),
    ],
)
def test_of_what_a_launcher_says_the_first_is_the_cause(said, cause):
    assert error_line(said.encode()) == cause


@pytest.mark.parametrize("end", [b"", b"later words\n" * 9])
def test_a_run_whose_shell_reports_a_full_disk_does_not_count_as_done(end):
    said = b"bash: line 1: echo: write error: No space left on device\n" + end
    verdict = with_disk_fault(Verdict(State.DONE, ended=True), said)
    assert (verdict.state, verdict.ended) == (State.FAILED, True)
    assert str(verdict.reason) == (
        "the disk was full while it ran: bash: line 1: echo: write error: No space left on device"
    )
    assert with_disk_fault(Verdict(State.DONE, ended=True), end).state is State.DONE
