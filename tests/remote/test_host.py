"""A machine elsewhere without a batch system: jobs run there, wait for their GPUs there, and outlive the connection."""

import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.host import Host
from nsw.schedulers.model import Phase, Submission
from nsw.schedulers.submission_ids import Native
from nsw.transport.local import LocalTransport

NVIDIA_SMI = """#!/bin/sh
for n in 0 1; do echo "GPU $n: NVIDIA H200 (UUID: GPU-0000000$n-aaaa)"; done
"""
SERVER_MORE = 'ForceCommand export PATH={path} XDG_RUNTIME_DIR={run}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'


@pytest.fixture
def machine(tmp_path, server):
    """A scheduler on the machine behind the server, which has two GPUs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "run").mkdir(mode=0o700)
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text(NVIDIA_SMI)
    smi.chmod(0o755)
    server.stop(sessions=True)
    server.more = SERVER_MORE.format(path=f"{tmp_path}/bin:/usr/bin:/bin", run=tmp_path / "run")
    server.start()

    def open_():
        from nsw.transport.create import connect

        site = {"transport": {"kind": "openssh", "host": "far", "config": str(server.config)}}
        transport = connect(site, str(tmp_path / "scratch"))
        return BatchScheduler(Host(), transport, str(tmp_path / "scratch"), "c", Limits(in_flight=8, lost_after_s=5))

    made = [open_()]
    yield lambda: made[0]
    for file in (tmp_path / "scratch").glob("jobs/*.host"):  # what a failed test left
        with suppress(ProcessLookupError, ValueError):
            os.killpg(int(file.read_text().partition(".")[0]), signal.SIGKILL)
    made[0]._transport.close()


def job(tmp_path, name, body, gpus=0):
    script = tmp_path / f"{name}.sh"
    script.write_text(f"#!/usr/bin/env bash\n{body}\n")
    there = tmp_path / "scratch" / "scripts"
    there.mkdir(parents=True, exist_ok=True)
    (there / script.name).write_text(script.read_text())
    return Submission(f"nsw-{name}", "j", script, 1, (0,), gpus)


def handed(scheduler, *some):
    outcomes = scheduler.submit(some)
    return [replace(one, native_id=outcome.native) for one, outcome in zip(some, outcomes, strict=True)]


def until(scheduler, sent, wanted):
    deadline = time.monotonic() + 60
    while True:
        answers = [scheduler.poll(sent)[one.name][0] for one in sent]
        if [a.phase for a in answers] == wanted:
            return answers
        assert time.monotonic() < deadline, answers
        time.sleep(0.2)


def test_a_job_runs_there_under_its_own_id_and_tells_how_it_ended(machine, tmp_path):
    scheduler = machine()
    sent = handed(scheduler, job(tmp_path, "good", "echo $NSW_JOB_ID $1 $2"), job(tmp_path, "bad", "exit 3"))
    good, bad = until(scheduler, sent, [Phase.ENDED, Phase.ENDED])
    assert good.clean
    assert bad.reason == "the job failed: exit status 3"
    assert (tmp_path / "scratch/jobs/nsw-good.log").read_text() == f"{Native.parse(sent[0].native_id).job} 1 0\n"


def test_two_jobs_never_share_a_gpu_and_a_third_waits(machine, tmp_path):
    scheduler = machine()
    body = f"echo $CUDA_VISIBLE_DEVICES; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"g{n}", body, gpus=1) for n in range(3)))
    answers = until(scheduler, sent[:2], [Phase.RUNNING, Phase.RUNNING])
    assert not any(a.reason for a in answers)
    (waits,) = until(scheduler, sent[2:], [Phase.QUEUED])
    assert waits.reason == "waits for its GPUs"
    used = {(tmp_path / f"scratch/jobs/nsw-g{n}.log").read_text().strip() for n in range(2)}
    assert used == {"0", "1"}
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED] * 3)


def test_a_job_that_waits_for_a_gpu_lists_the_gpus_once(machine, tmp_path):
    for program in ("nvidia-smi", "flock"):
        real = tmp_path / f"{program}-real"
        own = tmp_path / "bin" / program
        real.write_text(own.read_text() if own.exists() else f'#!/bin/sh\nexec {shutil.which(program)} "$@"\n')
        real.chmod(0o755)
        own.write_text(f'#!/bin/sh\necho >>"{tmp_path}/{program}.calls"\nexec "{real}" "$@"\n')
        own.chmod(0o755)
    scheduler = machine()
    sent = handed(scheduler, job(tmp_path, "long", f"until [ -e {tmp_path}/go ]; do sleep 0.2; done", gpus=2))
    until(scheduler, sent, [Phase.RUNNING])
    sent += handed(scheduler, job(tmp_path, "next", ":", gpus=1))
    until(scheduler, sent, [Phase.RUNNING, Phase.QUEUED])

    def calls(program):
        return (tmp_path / f"{program}.calls").read_text().count("\n")

    begun, deadline = calls("flock"), time.monotonic() + 60
    while calls("flock") < begun + 6:  # two locks a try
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert calls("nvidia-smi") == 4  # when it is submitted and when it begins, each
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED, Phase.ENDED])


def test_what_is_held_claims_no_gpu_until_it_is_released(machine, tmp_path):
    scheduler = machine()
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"g{n}", body, gpus=2) for n in range(2)))
    until(scheduler, sent, [Phase.RUNNING, Phase.QUEUED])
    scheduler.hold(sent, held=True)
    (held,) = until(scheduler, sent[1:], [Phase.QUEUED])
    assert held.reason == "held by `nsw throttle 0`"
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED, Phase.QUEUED])
    scheduler.hold(sent, held=False)
    until(scheduler, sent, [Phase.ENDED, Phase.ENDED])


def test_more_gpus_than_the_machine_has_are_refused(machine, tmp_path):
    (outcome,) = machine().submit([job(tmp_path, "many", "true", gpus=3)])
    assert outcome.refused.key == "gpus"
    assert "3 GPUs asked, and this machine has 2" in outcome.refused.message


def test_a_job_goes_on_when_the_connection_ends_and_is_found_by_its_name(machine, tmp_path, server):
    scheduler = machine()
    (sent,) = handed(scheduler, job(tmp_path, "long", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo done"))
    server.cut()
    assert scheduler.find([replace(sent, native_id=None)]) == {sent.name: sent.native_id}
    assert scheduler.submit([sent])[0].native == sent.native_id  # a name is taken once
    (tmp_path / "go").touch()
    until(scheduler, [sent], [Phase.ENDED])
    assert (tmp_path / "scratch/jobs/nsw-long.log").read_text() == "done\n"


def test_cancel_ends_every_process_of_a_job(machine, tmp_path):
    scheduler = machine()
    body = f"(trap '' TERM; while :; do date >{tmp_path}/alive; sleep 0.1; done) & wait"
    (sent,) = handed(scheduler, job(tmp_path, "stubborn", body))
    until(scheduler, [sent], [Phase.RUNNING])
    scheduler.cancel([sent])
    (answer,) = until(scheduler, [sent], [Phase.ENDED])
    assert not answer.clean
    (tmp_path / "alive").unlink(missing_ok=True)
    time.sleep(0.5)
    assert not (tmp_path / "alive").exists()


def test_a_process_on_this_machine_holds_no_lock_of_the_nsw_that_began_it(tmp_path):
    """A later nsw waits for commands of a killed one, and not for the tasks that these began."""
    mark = tmp_path / "commands"
    earlier = LocalTransport(mark)
    assert not earlier.left_running()
    scheduler = BatchScheduler(Host(), earlier, str(tmp_path / "scratch"), "c", Limits(in_flight=8))
    (one,) = handed(scheduler, job(tmp_path, "long", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"))
    os.close(earlier._held)  # as the kernel does when nsw is killed
    earlier._held = None
    try:
        assert scheduler.poll([one])[one.name][0].phase is Phase.RUNNING
        later = LocalTransport(mark)
        assert not later.left_running()
        later.close()
    finally:
        (tmp_path / "go").touch()
