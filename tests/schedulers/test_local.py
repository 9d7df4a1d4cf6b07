"""This machine as a scheduler: tasks that outlive nsw, GPUs that are never shared, processes that are found again."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from nsw.errors import RefusedError
from nsw.schedulers.create import create
from nsw.schedulers.local import Gpu, LocalScheduler, claims_folder, detect, is_in_node_list
from nsw.schedulers.model import Phase, Submission
from nsw.transport.local import LocalTransport

FOUR = [Gpu(str(n), "H200", f"GPU-{n:08d}-aaaa") for n in range(4)]
DEADLINE_S = 120


def wait_until(condition) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the awaited condition did not come true"
        time.sleep(0.005)


def handed(scheduler: LocalScheduler, submission: Submission) -> str | None:
    """Its process, or None when there is no room for it; a refusal is raised."""
    (outcome,) = scheduler.submit([submission])
    if outcome.refused is not None:
        raise outcome.refused
    return outcome.native


def found(scheduler: LocalScheduler, submission: Submission) -> str | None:
    return scheduler.find([submission]).get(submission.name)


@pytest.fixture(autouse=True)
def own_claims(tmp_path, monkeypatch):
    """Claims of these tests stand in a folder of their own."""
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def processes(folder: Path) -> list[int]:
    """Those that work in the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


@pytest.fixture
def work(tmp_path):
    """A folder whose processes are ended with the test."""
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    wait_until(lambda: not [os.kill(pid, signal.SIGKILL) for pid in processes(folder)])


@pytest.fixture
def local(work):
    """Makes schedulers; their children are waited for in the end."""
    made = []

    def make(folder: Path = work, **how) -> LocalScheduler:
        made.append(LocalScheduler(folder, **how))
        return made[-1]

    yield make
    children = [child for scheduler in made for child in scheduler._children.values()]
    for child in children:
        child.kill()
        child.wait()


def task(work: Path, name: str, body: str, gpus: int = 0) -> Submission:
    script = work / f"{name}.sh"
    script.write_text(f"cd {shlex.quote(str(work))}\n{body}\n")
    return Submission(name, "j", script, 1, (0,), gpus)


HOLDS = 'echo $CUDA_VISIBLE_DEVICES > "$0.gpus"; while [ ! -e "$0.go" ]; do sleep 0.01; done'


def started(scheduler: LocalScheduler, submission: Submission) -> Submission:
    native = handed(scheduler, submission)
    assert native is not None
    return replace(submission, native_id=native)


def phase(scheduler, submission) -> Phase:
    return scheduler.poll([submission])[submission.name][0].phase


def let_go(submission: Submission) -> None:
    Path(f"{submission.script}.go").touch()


def told(submission: Submission, what: str = "gpus") -> str:
    file = Path(f"{submission.script}.{what}")
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    return file.read_text().strip()


# --- which GPUs there are ---------------------------------------------------------------------------------------


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    smi = folder / "nvidia-smi"

    def write(text: str, code: int = 0) -> None:
        smi.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
        smi.chmod(0o755)

    write("\n".join(f"GPU {g.index}: NVIDIA {g.name} (UUID: {g.uuid})" for g in FOUR))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return write


@pytest.mark.parametrize(
    ("mask", "indices"),
    [(None, "0123"), ("", ""), ("2", "2"), ("3,1", "31"), (" 0 , 2 ", "02"), ("GPU-00000001-aaaa", "1"),
     ("GPU-00000003", "3"), ("9", ""), ("0,9,1", "0"), ("-1", ""), ("0,-1,2", "0"), ("NoDevFiles", ""), ("0,0", "0")],
)  # fmt: skip
@pytest.mark.usefixtures("nvidia_smi")
def test_the_gpus_are_those_that_the_environment_lets_a_program_see(monkeypatch, mask, indices):
    if mask is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    assert "".join(g.index for g in detect()) == indices


@pytest.mark.parametrize(
    ("variables", "indices"),
    [({"SLURM_JOB_GPUS": "1,3"}, "13"), ({"SLURM_JOB_GPUS": "1,3", "SLURM_STEP_GPUS": "3"}, "3"),
     ({"SLURM_JOB_GPUS": "1,3", "CUDA_VISIBLE_DEVICES": "1"}, "1"), ({"SLURM_JOB_GPUS": "4,5,6,7"}, "0123")],
)  # fmt: skip
@pytest.mark.usefixtures("nvidia_smi")
def test_in_an_allocation_the_gpus_are_those_of_the_job_and_no_others(monkeypatch, variables, indices):
    """The last: cgroups show the job's own alone, numbered from 0, whatever their numbers on the node are."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "".join(g.index for g in detect()) == indices


@pytest.mark.parametrize(
    ("node_list", "inside"),
    [("here", True), ("n1,here,n2", True), ("n[1-4]", False), ("he[1-2]re", False), ("login1", False)],
)
def test_a_shell_of_an_allocation_on_other_machines_starts_nothing_here(local, work, monkeypatch, node_list, inside):
    monkeypatch.setattr("socket.gethostname", lambda: "here.site.org")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURM_JOB_NODELIST", node_list)
    outcome = local().submit([task(work, "a", "true")])[0]
    assert (outcome.refused is None) is inside
    if outcome.refused is not None:
        assert "job 42 of Slurm, and here.site.org is none of that job's nodes" in str(outcome.refused)
        assert "srun --jobid=42 --overlap --pty bash" in (outcome.refused.hint or "")
        monkeypatch.setenv("SLURMD_NODENAME", "n3")  # in the shell that it opens
        assert local().submit([task(work, "b", "true")])[0].refused is None


@pytest.mark.parametrize(
    ("host", "inside"),
    [("n2", True), ("n5", False), ("n7", True), ("gpu01", True), ("gpu1", False), ("r2n12", True), ("r3n12", False)],
)
def test_a_node_list_of_slurm_is_read_with_its_ranges(host, inside):
    assert is_in_node_list(host, "n[1-4,7],gpu01,r[1-2]n[10-12]") is inside


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9),
        ("No devices were found", 0),
    ],
)
def test_a_driver_that_does_not_answer_means_no_gpu(nvidia_smi, text, code):
    nvidia_smi(text, code)
    assert detect() == []


def test_parts_of_a_gpu_are_not_taken_for_gpus(nvidia_smi):
    nvidia_smi(
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89)\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-aaaa)\n  MIG 3g.20gb     Device  1: (UUID: MIG-bbbb)\n"
    )
    assert [(g.index, g.name, g.uuid) for g in detect()] == [("0", "NVIDIA A100-SXM4-40GB", "GPU-5c89")]


# --- claims -----------------------------------------------------------------------------------------------------


def test_a_task_sees_the_gpus_that_it_claimed_and_the_next_sees_others(local, work):
    scheduler = local(parallel=4, gpus=FOUR)
    one = started(scheduler, task(work, "one", HOLDS, gpus=1))
    three = started(scheduler, task(work, "three", HOLDS, gpus=3))
    assert (told(one), told(three)) == ("0", "1,2,3")
    assert handed(scheduler, task(work, "more", HOLDS, gpus=1)) is None
    let_go(one)
    wait_until(lambda: phase(scheduler, one) is Phase.GONE)
    more = started(scheduler, task(work, "more", HOLDS, gpus=1))
    assert told(more) == "0"


def test_a_task_that_asks_for_none_sees_none(local, work):
    scheduler = local(gpus=FOUR)
    assert told(started(scheduler, task(work, "t", HOLDS))) == ""


def test_a_claim_that_cannot_be_had_whole_leaves_nothing_behind(local, work):
    scheduler = local(parallel=4, gpus=FOUR)
    one = started(scheduler, task(work, "one", HOLDS, gpus=2))
    assert handed(scheduler, task(work, "many", HOLDS, gpus=3)) is None
    assert told(started(scheduler, task(work, "two", HOLDS, gpus=2))) == "2,3"
    assert told(one) == "0,1"


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_local import FOUR, HOLDS, task
from nsw.schedulers.local import LocalScheduler
work = Path(sys.argv[1]); work.mkdir()
scheduler = LocalScheduler(work, parallel=4, gpus=FOUR)
for n in range(4):
    made = task(work, "t" + str(n), HOLDS, gpus=1)
    print("taken" if scheduler.submit([made])[0].native else "refused", flush=True)
sys.stdin.read()
"""


def test_two_schedulers_in_two_processes_never_hold_the_same_gpu_and_a_kill_frees_none(local, work):
    words = [sys.executable, "-c", CHILD.format(here=str(Path(__file__).parent))]
    both = [
        subprocess.Popen([*words, work / name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for name in ("a", "b")
    ]
    answers = [[p.stdout.readline().strip() for _ in range(4)] for p in both]
    assert sorted([*answers[0], *answers[1]]) == ["refused"] * 4 + ["taken"] * 4
    holders = [
        work / n / f"t{k}.sh" for n, got in zip("ab", answers, strict=True) for k in range(4) if got[k] == "taken"
    ]
    files = [Path(f"{script}.gpus") for script in holders]
    wait_until(lambda: all(f.exists() and f.read_text().endswith("\n") for f in files))
    assert sorted(f.read_text().strip() for f in files) == ["0", "1", "2", "3"]
    for process in both:  # the schedulers die, what they started lives on and keeps its GPUs
        process.kill()
        process.communicate()
    mine = local(work / "mine", gpus=FOUR)
    assert handed(mine, task(work, "late", HOLDS, gpus=1)) is None
    Path(f"{holders[0]}.go").touch()
    wait_until(lambda: handed(mine, task(work, "late", HOLDS, gpus=1)) is not None)
    for script in holders:
        Path(f"{script}.go").touch()


def test_a_claim_ends_with_the_last_process_of_the_task_not_with_the_first(local, work):
    scheduler = local(parallel=4, gpus=FOUR[:1])
    parent = started(scheduler, task(work, "t", f'({HOLDS}) & echo $! > "$0.pid"; wait', gpus=1))
    told(parent)
    os.kill(int(parent.native_id.split(".")[0]), signal.SIGKILL)
    wait_until(lambda: phase(scheduler, parent) is Phase.GONE)
    assert handed(scheduler, task(work, "next", HOLDS, gpus=1)) is None
    let_go(parent)
    wait_until(lambda: handed(scheduler, task(work, "next", HOLDS, gpus=1)) is not None)


def test_a_script_that_takes_descriptors_for_itself_ends_no_claim(local, work):
    one, other = local(gpus=FOUR[:1], parallel=2), task(work, "b", HOLDS, gpus=1)
    holds = started(one, task(work, "a", f'for n in {{3..99}}; do eval "exec $n>own"; done\n{HOLDS}', gpus=1))
    assert told(holds) == "0"
    again = local(gpus=FOUR[:1], parallel=2)
    assert handed(again, other) is None
    assert phase(again, holds) is Phase.RUNNING
    let_go(holds)
    wait_until(lambda: handed(again, other) is not None)
    let_go(other)


def test_where_nothing_touches_a_gpu_none_is_claimed(local, work):
    scheduler = local(parallel=4, gpus=[], share_gpus=True)
    for name in ("a", "b"):
        assert handed(scheduler, task(work, name, HOLDS, gpus=4)) is not None


# --- a folder for claims that others may have made first -------------------------------------------------------

STRANGER = 65534
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as a second user")


@pytest.fixture
def shared_tmp(tmp_path_factory, monkeypatch):
    """A folder as /tmp is: all users may make files there, and nobody else may remove them."""
    folder = Path(tempfile.mkdtemp(prefix="nsw-test-tmp-"))  # pytest's own folders are closed to other users
    folder.chmod(0o1777)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("home") / "state"))
    yield folder
    shutil.rmtree(folder)


def as_stranger(*words):
    """A command that another user runs."""
    subprocess.run(words, user=STRANGER, group=STRANGER, extra_groups=[], check=True, cwd="/")


def at_home() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "nsw" / f"gpus-{socket.gethostname()}"


def runs_on_a_gpu(local, work):
    """That a task gets a GPU in spite of all, and what nsw printed of it."""
    said = []
    scheduler = local(work, gpus=FOUR, parallel=4, say=said.append)
    tasks = [started(scheduler, task(work, name, HOLDS, gpus=2)) for name in ("a", "b")]
    assert sorted(told(one) for one in tasks) == ["0,1", "2,3"]
    assert handed(local(work, gpus=FOUR), task(work, "c", HOLDS, gpus=1)) is None  # claims hold across schedulers
    for one in tasks:
        let_go(one)
    return said


def test_claims_are_in_a_folder_of_the_user_that_nobody_else_may_write(local, work, shared_tmp):
    assert runs_on_a_gpu(local, work) == []
    folder = shared_tmp / f"nsw-{os.getuid()}"
    assert claims_folder() == (folder, [])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 4


@root_only
def test_a_claims_folder_that_another_user_made_first_is_not_used_and_named(local, work, shared_tmp):
    taken = shared_tmp / f"nsw-{os.getuid()}"
    as_stranger("mkdir", "-m", "777", taken)
    (said,) = runs_on_a_gpu(local, work)
    assert said == f"GPU claims go to {at_home()}, because nsw cannot use {taken}: it belongs to user {STRANGER}"
    assert not list(taken.iterdir())


@root_only
def test_a_link_that_another_user_put_there_leads_no_lock_elsewhere(local, work, shared_tmp, tmp_path):
    taken, victim = shared_tmp / f"nsw-{os.getuid()}", tmp_path / "victim"
    victim.mkdir()
    as_stranger("ln", "-s", victim, taken)
    (said,) = runs_on_a_gpu(local, work)
    assert f"{taken}: it is a symbolic link" in said
    assert not list(victim.iterdir())


def test_a_link_of_the_user_is_not_followed_either(local, work, shared_tmp, tmp_path):
    (shared_tmp / f"nsw-{os.getuid()}").symlink_to(tmp_path)
    assert "symbolic link" in runs_on_a_gpu(local, work)[0]


def test_a_claims_folder_that_others_may_write_is_not_used(local, work, shared_tmp):
    taken = shared_tmp / f"nsw-{os.getuid()}"
    taken.mkdir()
    taken.chmod(0o770)
    (said,) = runs_on_a_gpu(local, work)
    assert f"{taken}: others may write there (mode 0770)" in said
    assert not list(taken.iterdir())


def test_a_runtime_folder_that_is_not_there_is_passed_over(local, work, shared_tmp, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared_tmp / "absent"))
    (said,) = runs_on_a_gpu(local, work)
    assert f"{shared_tmp / 'absent' / claims_folder()[0].name}: No such file or directory" in said
    assert claims_folder()[0] == shared_tmp / f"nsw-{os.getuid()}"


def test_with_no_safe_folder_a_run_is_refused_with_all_reasons(local, work, shared_tmp):
    (shared_tmp / f"nsw-{os.getuid()}").write_text("")
    state = Path(os.environ["XDG_STATE_HOME"])
    state.write_text("a file in the way")
    with pytest.raises(RefusedError, match="no safe folder for GPU claims") as refused:
        handed(local(work, gpus=FOUR), task(work, "a", HOLDS, gpus=1))
    assert "Not a directory" in refused.value.message
    assert str(at_home()) in refused.value.message
    assert "XDG_RUNTIME_DIR" in (refused.value.hint or "")
    assert handed(local(work, gpus=FOUR), task(work, "b", HOLDS)) is not None  # no GPU, no claim


# --- finding again ----------------------------------------------------------------------------------------------


def test_find_adopts_a_task_that_lives_and_says_none_of_a_dead_one(local, work):
    first = local()
    submission = started(first, task(work, "t", HOLDS))
    second = local()
    assert found(second, replace(submission, native_id=None)) == submission.native_id
    assert phase(second, submission) is Phase.RUNNING
    let_go(submission)
    wait_until(lambda: phase(first, submission) is Phase.GONE)
    wait_until(lambda: phase(second, submission) is Phase.GONE)
    assert found(local(), submission) is None


def test_find_says_none_of_what_was_never_started(local, work):
    assert found(local(), task(work, "t", "true")) is None


def test_submitting_what_lives_already_gives_the_process_that_there_is_and_claims_nothing_more(local, work):
    submission = task(work, "t", "echo x >> count; " + HOLDS, gpus=1)
    native = handed(local(gpus=FOUR[:2]), submission)
    told(submission)
    again = local(gpus=FOUR[:2])
    assert handed(again, submission) == native
    assert (work / "count").read_text() == "x\n"
    assert handed(again, task(work, "other", HOLDS, gpus=1)) is not None


def test_a_task_whose_process_id_was_not_yet_written_is_known_by_its_lock(local, work):
    submission = started(local(), task(work, "t", HOLDS))
    (work / "jobs" / "t.lock").write_text("")
    second = local()
    native = found(second, submission)
    assert native == "lock.t"
    adopted = replace(submission, native_id=native)
    assert phase(second, adopted) is Phase.RUNNING
    let_go(submission)
    wait_until(lambda: phase(second, adopted) is Phase.GONE)


def test_a_process_id_that_another_program_has_now_is_not_taken_for_the_task(local, work):
    submission = replace(task(work, "t", "true"), native_id=f"{os.getpid()}.1")
    assert phase(local(), submission) is Phase.GONE


# --- waiting, room, cancelling ----------------------------------------------------------------------------------


def wait_until_it_returns(scheduler: LocalScheduler) -> None:
    """Let a scheduler wait for far longer than this test does."""
    waiting = threading.Thread(target=scheduler.wait, args=(100 * DEADLINE_S,), daemon=True)
    waiting.start()
    wait_until(lambda: not waiting.is_alive())


def test_wait_returns_when_a_task_ends_long_before_its_time_is_over(local, work):
    scheduler = local()
    submission = started(scheduler, task(work, "t", HOLDS))
    told(submission)
    let_go(submission)
    wait_until_it_returns(scheduler)
    assert phase(scheduler, submission) is Phase.GONE


def test_wait_of_an_adopted_task_returns_when_it_ends_too(local, work):
    submission = started(local(), task(work, "t", HOLDS))
    second = local()
    found(second, submission)
    let_go(submission)
    wait_until_it_returns(second)


def test_room_is_what_may_run_at_a_time(local, work):
    scheduler = local(parallel=3)
    some = [task(work, n, "true") for n in "abcd"]
    assert [scheduler.room(some[:n]) for n in range(5)] == [3, 2, 1, 0, 0]
    assert local(parallel=0).room([]) == 1


def test_cancel_ends_every_process_of_the_session_also_of_a_task_adopted(local, work):
    body = '(sleep 600 & sleep 600) & setsid -f true; echo up > "$0.up"; wait'
    submission = started(local(), task(work, "t", body))
    told(submission, "up")
    wait_until(lambda: len(processes(work)) >= 3)
    second = local()
    second.cancel([submission])
    wait_until(lambda: not processes(work))
    assert phase(second, submission) is Phase.GONE


def test_cancel_ends_a_task_whose_process_nobody_wrote_down(local, work):
    """As when nsw is killed between the start and the ledger."""
    submission = started(local(), task(work, "t", 'sleep 600 & echo up > "$0.up"; wait'))
    told(submission, "up")
    local().cancel([replace(submission, native_id=None)])
    wait_until(lambda: not processes(work))


def test_cancel_kills_what_does_not_listen(local, work, monkeypatch):
    monkeypatch.setattr("nsw.schedulers.local._GRACE_S", 0.2)
    scheduler = local()
    submission = started(scheduler, task(work, "t", "trap '' TERM; echo up > \"$0.up\"; while :; do sleep 0.05; done"))
    told(submission, "up")
    scheduler.cancel([submission])
    wait_until(lambda: phase(scheduler, submission) is Phase.GONE)


def test_cancel_leaves_other_tasks_alone_and_one_that_is_over_is_no_error(local, work):
    scheduler = local(parallel=3)
    one, other, over = (started(scheduler, task(work, n, b)) for n, b in [("a", HOLDS), ("b", HOLDS), ("c", "true")])
    wait_until(lambda: phase(scheduler, over) is Phase.GONE)
    scheduler.cancel([one, over])
    wait_until(lambda: phase(scheduler, one) is Phase.GONE)
    assert phase(scheduler, other) is Phase.RUNNING
    let_go(other)


def test_what_a_task_prints_is_in_its_log(local, work):
    scheduler = local()
    submission = started(scheduler, task(work, "t", "echo out; echo err >&2"))
    wait_until(lambda: phase(scheduler, submission) is Phase.GONE)
    assert (work / "jobs" / "t.log").read_text() == "out\nerr\n"


def test_asking_costs_nothing_and_calls_no_command(local):
    scheduler = local()
    assert (scheduler.due(), scheduler.calls(), scheduler.most_tasks()) == (True, {}, 1)


def test_more_gpus_than_there_are_is_refused_and_not_waited_for(local, work):
    scheduler = local(gpus=FOUR[:2])
    with pytest.raises(RefusedError, match="3 GPUs asked, but nvidia-smi and CUDA_VISIBLE_DEVICES give 2"):
        handed(scheduler, task(work, "t", HOLDS, gpus=3))
    with pytest.raises(RefusedError, match=r"1 GPU asked.* give none"):
        handed(local(), task(work, "t", HOLDS, gpus=1))


@pytest.mark.parametrize("login", [False, True])
def test_a_job_starts_in_a_login_shell_where_the_site_says_so(local, work, monkeypatch, login):
    home = work / "home"
    home.mkdir()
    (home / ".bash_profile").write_text("export FROM_PROFILE=yes\n")
    monkeypatch.setenv("HOME", str(home))
    site = {"login_shell": login, "limits": {"max_in_flight": 1}}
    scheduler = create(site, LocalTransport(), str(work), "c")
    one = task(work, "t", 'echo "${FROM_PROFILE:-no}" > "$0.gpus"')
    handed(scheduler, one)
    assert told(one) == ("yes" if login else "no")
    wait_until(lambda: phase(scheduler, one) is Phase.GONE)


def test_a_second_ctrl_c_prints_no_traceback_of_the_destructor(tmp_path, monkeypatch):
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    class Interrupted:
        returncode = None

        def wait(self, _timeout):
            raise KeyboardInterrupt

    scheduler = LocalScheduler(tmp_path)
    child = scheduler._children["one"] = Interrupted()
    del scheduler
    assert raised == []
    assert child.returncode == 0
