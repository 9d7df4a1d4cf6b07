"""However a job ends, nothing of its run is left: the program, its children, and theirs get SIGTERM, then SIGKILL."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.jobs import in_a_job

from .conftest import BASH, make_plan, make_run

# a program, a child in its process group, and one in a session of its own, as torchrun starts its workers; each writes
# down that it was asked to end, and the last takes its time
PROGRAM = """
said() { echo "$1" >>DIR/said; }
(trap 'said child; exit' TERM; echo ready >>DIR/ready; while :; do sleep 0.05; done) &
setsid bash -c 'trap "sleep 0.3; echo worker >>DIR/said; exit" TERM; echo ready >>DIR/ready; while :; do sleep 0.05; done' &
trap 'said program; exit 0' TERM
echo ready >>DIR/ready
while :; do sleep 0.05; done
"""
DEAF = "trap '' TERM; echo ready >>DIR/ready; while :; do sleep 0.05; done"
PATIENCE_S = 60


def running(folder) -> list[str]:
    """Processes that the run has left; a zombie is none."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = file.read_bytes()
            state = (file.parent / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"NSW_MARK={folder}".encode() in words and state != "Z":
            found.append(file.parent.name)
    return found


def until(condition, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def begin(scripts, text: str, *, ready: int, grace_s: int = 20, time_s: int = 0, more=(), **how):
    """The job, in a process group of its own, once the program and its children can be asked to end."""
    command = [BASH, "-c", text.replace("DIR", str(scripts.folder))]
    runs = (make_run(command, time_s=time_s), *more)
    script = scripts.render(make_plan(*runs, per_task=len(runs)), grace_s=grace_s, **how)
    job = subprocess.Popen([BASH, script, "1", "0"], cwd=scripts.folder, start_new_session=True)
    until(lambda: len(lines(scripts.folder / "ready")) == ready, "the program did not begin")
    return job


def ended(scripts, job) -> dict[str, str]:
    job.wait(PATIENCE_S)
    assert running(scripts.scratch) == []
    return scripts.status()


@pytest.mark.parametrize(
    "whole_group", [True, False]
)  # Cobalt and PBS signal a group or session, others the shell alone
def test_a_signal_to_the_job_reaches_the_program_its_children_and_theirs(scripts, whole_group):
    after = make_run(["true"], "r2")
    job = begin(scripts, PROGRAM, ready=3, more=(after,) if whole_group else ())
    (os.killpg if whole_group else os.kill)(job.pid, signal.SIGTERM)
    status = ended(scripts, job)
    assert sorted(lines(scripts.folder / "said")) == ["child", "program", "worker"]
    assert (status["state"], status["exit_code"], status["reason"]) == ("failed", "143", "ended by a signal")
    assert not (scripts.home("r2") / "claim").exists()  # nothing more is begun


def test_the_time_limit_reaches_them_too(scripts):
    job = begin(scripts, PROGRAM, ready=3, time_s=2)
    status = ended(scripts, job)
    assert sorted(lines(scripts.folder / "said")) == ["child", "program", "worker"]
    assert status["reason"] == "over its time limit of 2 s"


def test_what_ignores_the_signal_is_killed_after_the_grace(scripts):
    job = begin(scripts, DEAF, ready=1, grace_s=1)
    os.killpg(job.pid, signal.SIGTERM)
    status = ended(scripts, job)
    assert (status["state"], status["reason"]) == ("failed", "ended by a signal")


def test_runs_that_go_side_by_side_all_get_the_signal_and_their_time(scripts):
    from dataclasses import replace

    text = "trap 'sleep 0.3; echo ended >>DIR/said; exit' TERM; echo ready >>DIR/ready; while :; do sleep 0.05; done"
    runs = [make_run([BASH, "-c", text.replace("DIR", str(scripts.folder))], name, time_s=0) for name in ("r1", "r2")]
    plan = make_plan(*runs, per_task=2)
    plan = replace(plan, jobs=(replace(plan.jobs[0], side_by_side=2),))
    job = subprocess.Popen(
        [BASH, scripts.render(plan, grace_s=20), "1", "0"], cwd=scripts.folder, start_new_session=True
    )
    until(lambda: len(lines(scripts.folder / "ready")) == 2, "the programs did not begin")
    os.killpg(job.pid, signal.SIGTERM)
    ended(scripts, job)
    assert lines(scripts.folder / "said") == ["ended", "ended"]
    assert {scripts.status(name)["reason"] for name in ("r1", "r2")} == {"ended by a signal"}


def test_a_program_that_ends_well_may_leave_a_daemon_alone(scripts):
    text = "setsid sleep 30 & echo $! >DIR/daemon"
    scripts.run(scripts.render(make_plan(make_run([BASH, "-c", text.replace("DIR", str(scripts.folder))]))))
    assert scripts.status()["state"] == "done"
    daemon = int((scripts.folder / "daemon").read_text())
    os.kill(daemon, signal.SIGKILL)  # it was there


def test_ctrl_c_of_a_terminal_is_not_ignored_in_the_program(scripts):
    ask = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    scripts.run(scripts.render(make_plan(make_run(["python3", "-c", ask]))))
    assert scripts.output() == "True\n"


@pytest.fixture
def small(scripts):
    """Scripts whose scratch folder has room for next to nothing."""
    scripts.scratch.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", scripts.scratch]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no small file system can be mounted here")
    yield scripts
    subprocess.run(["umount", "-l", scripts.scratch], check=True)


def test_a_run_whose_output_a_full_disk_swallowed_is_not_done_though_there_is_room_again(small):
    filler = small.scratch / "filler"
    filler.write_bytes(b"x" * 500_000)
    job = small.start(small.render(make_plan(make_run([BASH, "-c", "head -c 4000k /dev/zero; exit 0"]))))
    until((small.home() / "status.new").exists, "the run did not end")
    filler.unlink()
    job.communicate(timeout=PATIENCE_S)
    assert small.status()["state"] == "failed"
    assert "may be cut off" in small.status()["reason"]


def test_a_status_whose_first_line_found_no_room_is_written_again_whole(tmp_path):
    # room is made between two lines: the first printf fails, all later ones find room
    functions = """
        printf() { if [ -z "${tried-}" ]; then tried=1; return 1; fi; builtin printf "$@"; }
        sleep() { :; }
        nsw_job=j nsw_job_id=1 nsw_task=1 nsw_attempt=1 nsw_restart=0 nsw_start=1.0"""
    done = in_a_job(["nsw_end", "done", "end", "2.0"], functions=functions, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "status").read_text().startswith("state=done\njob=j\n")


def test_a_run_beside_which_there_is_room_is_done(small):
    small.run(small.render(make_plan(make_run([BASH, "-c", "head -c 100k /dev/zero"]))))
    assert small.status()["state"] == "done"
