"""A machine elsewhere without a batch system: jobs run there, wait for their GPUs there, and outlive the connection."""

import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from nsw.schedulers.adapter import Request
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.local import Host
from nsw.schedulers.model import Native, Phase, Submission
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
        from nsw.transport.model import connect

        site = {"transport": {"kind": "openssh", "host": "far", "config": str(server.config)}}
        transport = connect(site, str(tmp_path / "scratch"))
        limits = Limits(in_flight=40, lost_after_s=5)
        return BatchScheduler(Host(1), transport, str(tmp_path / "scratch"), "c", limits)

    made = [open_()]
    yield lambda: made[0]
    for file in (tmp_path / "scratch").glob("jobs/*.host"):  # what a failed test left
        with suppress(ProcessLookupError, ValueError):
            os.killpg(int(file.read_text().partition(".")[0]), signal.SIGKILL)
    made[0].transport.close()


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
    assert calls("nvidia-smi") <= 2  # once for the campaign; twice if an hour began meanwhile
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED, Phase.ENDED])


def test_what_is_held_claims_no_gpu_until_it_is_released(machine, tmp_path):
    scheduler = machine()
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"g{n}", body, gpus=2) for n in range(2)))
    until(scheduler, sent, [Phase.RUNNING, Phase.QUEUED])
    scheduler.hold(sent, hold=True)
    (held,) = until(scheduler, sent[1:], [Phase.QUEUED])
    assert held.reason == "held by `nsw throttle 0`"
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED, Phase.QUEUED])
    scheduler.hold(sent, hold=False)
    until(scheduler, sent, [Phase.ENDED, Phase.ENDED])


def test_runs_without_gpus_take_turns_in_their_order_and_a_run_with_one_goes_beside_them(machine, tmp_path):
    scheduler = machine()
    body = f"echo $$ >>{tmp_path}/order; until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo NAME >>{tmp_path}/ended"
    sent = handed(scheduler, *(job(tmp_path, f"c{n}", body.replace("NAME", f"c{n}")) for n in range(3)))
    sent += handed(scheduler, job(tmp_path, "gpu", body, gpus=1))
    answers = until(scheduler, sent, [Phase.RUNNING, Phase.QUEUED, Phase.QUEUED, Phase.RUNNING])
    assert [a.reason for a in answers[1:3]] == ["waits for its turn: other runs are running"] * 2
    assert (tmp_path / "order").read_text().count("\n") == 2
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED] * 4)
    assert [line for line in (tmp_path / "ended").read_text().split() if line != "NAME"] == ["c0", "c1", "c2"]


def test_a_build_takes_its_turn_and_sees_the_gpus(machine, tmp_path):
    scheduler = machine()
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo ${{CUDA_VISIBLE_DEVICES-all}}"
    run, build = handed(scheduler, job(tmp_path, "run", body), job(tmp_path, "build", body, gpus=None))
    until(scheduler, [run, build], [Phase.RUNNING, Phase.QUEUED])
    (tmp_path / "go").touch()
    until(scheduler, [run, build], [Phase.ENDED, Phase.ENDED])
    logs = [(tmp_path / f"scratch/jobs/nsw-{name}.log").read_text() for name in ("run", "build")]
    assert logs == ["\n", "all\n"]


def test_on_a_login_node_nothing_waits_for_a_turn(machine, tmp_path):
    scheduler = machine().for_adapter(Host(), Limits(in_flight=2, array=1))
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"l{n}", body) for n in range(2)))
    until(scheduler, sent, [Phase.RUNNING, Phase.RUNNING])
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED, Phase.ENDED])


def processes_of(sent):
    """The programs of a job's session: what waits for its GPUs there."""
    leader = Native.parse(sent.native_id).job.partition(".")[0]
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            if rest.split()[3] == leader:
                found.append(name)
    return found


def soon(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_runs_that_wait_are_one_process_each_that_does_nothing(machine, tmp_path):
    scheduler = machine()
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"g{n}", body, gpus=2) for n in range(8)))
    until(scheduler, sent, [Phase.RUNNING] + [Phase.QUEUED] * 7)
    # the first of those that wait looks for GPUs
    soon(lambda: [processes_of(one) == ["flock"] for one in sent] == [False, False, *[True] * 6])
    scheduler.cancel(sent)
    until(scheduler, sent, [Phase.ENDED] * 8)
    soon(lambda: not any(processes_of(one) for one in sent))  # a process gives its lock back a moment before it is gone
    assert not list((tmp_path / "scratch/jobs").glob("*.hold"))


def test_a_throttle_holds_there_without_nsw(machine, tmp_path):
    scheduler = machine()
    scheduler.limit(1)
    body = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    sent = handed(scheduler, *(job(tmp_path, f"t{n}", body, gpus=1) for n in range(3)))
    assert scheduler.room(sent) == 37
    until(scheduler, sent, [Phase.RUNNING, Phase.QUEUED, Phase.QUEUED])
    scheduler.limit(2)
    until(scheduler, sent, [Phase.RUNNING, Phase.RUNNING, Phase.QUEUED])
    (tmp_path / "go").touch()
    until(scheduler, sent, [Phase.ENDED] * 3)


def test_without_flock_the_reason_names_it(tmp_path):
    (tmp_path / "few").mkdir()
    for program in ("bash", "mkdir"):
        (tmp_path / "few" / program).symlink_to(shutil.which(program))
    adapter = Host(1)
    argv = adapter.submit_command(Request(job(tmp_path, "turn", "true"), script="/x", log=f"{tmp_path}/jobs/turn"))
    done = LocalTransport().run(["env", f"PATH={tmp_path}/few", *argv], timeout=60)
    refused = adapter.refusal(done)
    assert refused.message == "there is no flock (util-linux), with which runs wait for their turn"
    assert "install util-linux" in refused.hint


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
    os.close(earlier._mark_descriptor)  # as the kernel does when nsw is killed
    earlier._mark_descriptor = None
    try:
        assert scheduler.poll([one])[one.name][0].phase is Phase.RUNNING
        later = LocalTransport(mark)
        assert not later.left_running()
        later.close()
    finally:
        (tmp_path / "go").touch()
