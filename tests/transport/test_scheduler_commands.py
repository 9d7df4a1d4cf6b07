"""The runner of a scheduler's commands: counted, repeated after faults of the moment, with errors that hold all."""

import pytest

from nsw.errors import CommandError, CommandResult, HostKeyError, LoginError
from nsw.transport.commands import PATIENT, Runner
from nsw.transport.local import LocalTransport


class Scripted:
    """A transport that gives these exit statuses, then 0."""

    def __init__(self, *codes):
        self.codes = list(codes)

    def run(self, argv, **_how):
        code = self.codes.pop(0) if self.codes else 0
        return CommandResult(tuple(argv), code, "", "busy" if code == 1 else "wrong" if code else "")


def runner(*codes, slept=None):
    waits = [] if slept is None else slept
    return Runner(Scripted(*codes), transient=lambda r: r.stderr == "busy", sleep=waits.append, draw=lambda: 0.5)


def test_a_fault_of_the_moment_is_tried_again_with_growing_pauses():
    slept = []
    run = runner(1, 1, 1, slept=slept)
    assert run.run(["squeue"], timeout=1, retry=PATIENT).returncode == 0
    assert slept == [1, 2, 4]
    assert run.calls == {"squeue": 4}


def test_tries_end():
    run = runner(*[1] * 9)
    assert run.run(["squeue"], timeout=1, retry=3).returncode == 1
    assert run.calls["squeue"] == 3


@pytest.mark.parametrize(("codes", "retry"), [((2,), PATIENT), ((1,), 1)])
def test_other_faults_and_commands_that_must_not_be_repeated_are_run_once(codes, retry):
    run = runner(*codes)
    assert run.run(["sbatch"], timeout=1, retry=retry).returncode == codes[0]
    assert run.calls["sbatch"] == 1


@pytest.mark.parametrize("refusal", [LoginError, HostKeyError])
def test_a_refused_login_is_not_tried_again_since_every_try_may_ask_a_person(refusal):
    class Refused:
        def run(self, argv, **_how):
            return CommandResult(tuple(argv), -1, "", "", timed_out=True, unreachable=refusal("no"))

    run = Runner(Refused(), transient=lambda _: True, sleep=lambda _: None)
    assert run.run(["sinfo"], timeout=1, retry=PATIENT).unreachable is not None
    assert run.calls["sinfo"] == 1


def test_a_pause_is_never_longer_than_its_limit():
    slept = []
    run = Runner(Scripted(*[1] * 60), transient=lambda r: r.stderr == "busy", sleep=slept.append, draw=lambda: 1.0)
    assert run.run(["squeue"], timeout=1, retry=99).returncode == 0
    assert max(slept) == slept[-1] == 45


def test_the_error_holds_the_quoted_command_and_all_it_said():
    run = Runner(LocalTransport(), transient=lambda _: False)
    result = run.run(["sh", "-c", "echo out; echo err >&2; exit 7"], timeout=300)
    assert CommandError(result, subject="it went wrong").message == (
        "it went wrong: sh -c 'echo out; echo err >&2; exit 7' (exit status 7)\n  stdout: out\n  stderr: err"
    )


def test_a_command_that_hangs_is_ended():
    result = Runner(LocalTransport(), transient=lambda _: False).run(["sleep", "60"], timeout=0.1)
    assert result.timed_out
    assert "timed out" in CommandError(result, subject="slow").message


def test_named_variables_are_kept_from_every_command(monkeypatch):
    for name in ("SBATCH_PARTITION", "SLURM_JOB_ID", "SLURM_CONF"):
        monkeypatch.setenv(name, "set")
    run = Runner(LocalTransport(), transient=lambda _: False, without=("SBATCH_", "SLURM_"), keep=("SLURM_CONF",))
    seen = run.run(["env"], timeout=300).stdout
    assert "SLURM_CONF=set" in seen
    assert "SBATCH_PARTITION" not in seen
    assert "SLURM_JOB_ID" not in seen
