"""What a site does to an nsw behind a real sshd with a real Slurm: schedulers, servers, shells and disks that go wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.far.place import USER
from tests.far.staged import UNREACHABLE, Staged, ended
from tests.slurm.places import own_cluster
from tests.slurm.test_campaign import as_root

from . import figures
from .distant import distant

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slurm

DOWN = 'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
NOT_SUBMITTED = 'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1'
ACCEPTED_AND_FAILED = '"$REAL" "$@" >/dev/null; echo "wrapper: cannot write its log" >&2; exit 1'
# a shell that is no sh: tcsh and fish know none of these
NO_SH = """#!/bin/bash
case $2 in *[\\$\\(\\)\\{\\}=\\;\\&\\|\\<\\>]*) echo "Illegal variable name." >&2; exit 1 ;; esac
set -- $2
[ "$1" = exec ] && shift
exec "$@"
"""


def test_a_scheduler_that_is_down_late_and_lying(slurm_conf, tmp_path):
    with distant("openssh", slurm_conf) as it:
        it.plan("sbatch", NOT_SUBMITTED, ACCEPTED_AND_FAILED, "sleep 1")
        it.plan("squeue", DOWN, "exit 0", "sleep 2", ":", DOWN, 'echo "garbage|of|a|site"; exit 0', "exit 0", ":")
        it.plan("scontrol", DOWN)
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish()
        assert campaign.fault() is None, (campaign.fault(), it.planned())
        assert len(it.planned()) >= 7, it.planned()


@pytest.mark.parametrize("kind", [pytest.param("openssh", marks=pytest.mark.soak), "ssh"])
def test_an_sshd_that_is_restarted_in_the_middle(slurm_conf, tmp_path, kind):
    with distant(kind, slurm_conf) as it:
        campaign = Staged(tmp_path / "campaigns", it.site(), body=f"until [ -e {it.folder}/go ]; do sleep 0.1; done")
        process = campaign.start()
        until(campaign.begun)
        it.server.stop(sessions=True)
        (it.folder / "go").touch()
        time.sleep(1)  # nsw asks meanwhile, and nobody answers
        it.server.start()
        assert ended(process) in {0, UNREACHABLE}
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()


NOISE = "printf 'Welcome to the cluster\\n\\n*** 12 jobs were lost, $HOME is full ***\\n\\0\\377'; echo motd >&2;"


def shell_of(folder: Path, name: str) -> str:
    """The shell, or one that is no sh either and takes its place."""
    if found := shutil.which(name):
        return found
    stand_in = folder / f"like-{name}"
    stand_in.write_text(NO_SH)
    stand_in.chmod(0o755)
    return str(stand_in)


@pytest.mark.parametrize(("kind", "name"), [("openssh", "tcsh"), ("ssh", "fish")])
def test_a_login_shell_that_is_no_sh_a_banner_and_text_before_every_answer_and_no_user(
    slurm_conf, tmp_path, kind, name
):
    with distant(kind, slurm_conf) as it:
        shell = shell_of(it.folder, name)
        login = it.folder / "login.sh"
        login.write_text(f'{NOISE} unset USER LOGNAME; exec {shell} -c "$SSH_ORIGINAL_COMMAND"\n')
        (it.folder / "banner").write_text("Unauthorised use is forbidden.\n" * 50)
        it.server.more = f"ForceCommand /bin/bash {login}\nBanner {it.folder}/banner"
        it.server.stop()
        it.server.start()
        campaign = Staged(tmp_path / "campaigns", it.site())
        assert campaign.drive() == 0
        assert campaign.fault() is None, campaign.fault()


@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_restricted_shell_is_refused_with_what_it_said(slurm_conf, tmp_path, kind, capfd):
    with distant(kind, slurm_conf, more='ForceCommand /bin/rbash -c "$SSH_ORIGINAL_COMMAND"') as it:
        campaign = Staged(tmp_path / "campaigns", it.site())
        assert campaign.drive() == UNREACHABLE
        assert campaign.begun() == []
    said = capfd.readouterr().err
    assert "restricted" in said, said


@pytest.mark.parametrize("kind", ["ssh"])
def test_a_program_over_its_memory_fails_with_that_reason_and_its_second_stage_says_why_it_is_skipped(
    slurm_conf, tmp_path, kind
):
    eats = "/usr/bin/python3 -c 'import time; a = bytearray(200_000_000); time.sleep(60)'"
    with distant(kind, slurm_conf) as it:
        campaign = Staged(tmp_path / "campaigns", it.site(), cases=1, body=eats)
        assert campaign.drive() == 0
        first, second = campaign.states().values()
        assert first[0] == "failed"
        assert "out of memory" in first[1]
        assert second[0] == "cancelled"
        assert "skipped: n-1.look.r1" in second[1]
        figures.row(f"{kind}, out of memory").add(campaign, it, 1, 1, may_fail=True)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_node_that_dies_and_a_job_out_of_time(tmp_path, kind):
    with own_cluster(accounting=False) as daemons, distant(kind, daemons.place.conf) as it:
        body = f"[ STAGE != look ] || [ -e {it.folder}/second ] || sleep 300"
        campaign = Staged(tmp_path / "campaigns", it.site(), cases=1, body=body)
        process = campaign.start()
        until(campaign.begun)
        it.slurm.expire(it.slurm.run("squeue", "--me", "-h", "-t", "R", "-o", "%A").stdout.strip())
        assert ended(process) == 0
        first, second = campaign.states().values()
        assert first[0] == "failed"
        assert "time limit" in first[1]
        assert "skipped" in second[1]
        campaign.again()
        process = campaign.start()
        until(lambda: len(campaign.begun()) == 2)
        job, node = it.slurm.run("squeue", "--me", "-h", "-t", "R", "-o", "%A %N").stdout.split()
        (it.folder / "second").touch()
        daemons.kill_node(node)
        as_root(it.slurm, "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=died")
        until(lambda: it.slurm.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "PENDING")
        as_root(it.slurm, "scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")
        assert ended(process) == 0
        assert {state for state, _ in campaign.states().values()} == {"done"}
        assert campaign.begun() == ["n-1.look"] * 3 + ["n-1.measure"]


@contextmanager
def small_disk(folder: Path, size: str, owner: str | None = None) -> Iterator[None]:
    """A file system of its own that is soon full."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "nsw-test", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        if owner:
            shutil.chown(folder, owner)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_disk_that_is_full_over_there_fails_runs_with_their_reason_and_the_campaign_goes_on(slurm_conf, tmp_path):
    with distant("openssh", slurm_conf) as it, small_disk(it.folder / "small", "400k", USER):
        fills = f"[ -e {it.folder}/room ] || head -c 1000000 /dev/zero >data || {{ truncate -s 50k data; exit 28; }}"
        campaign = Staged(tmp_path / "campaigns", it.site(scratch=it.folder / "small"), body=fills)
        assert campaign.drive() == 0
        states = campaign.states()
        assert {state for state, _ in states.values()} <= {"failed", "cancelled", "lost"}, states
        assert all(reason for _, reason in states.values()), states
        for file in (it.folder / "small").rglob("data"):
            file.unlink()
        (it.folder / "room").touch()
        campaign.again()
        campaign.finish()
        assert {state for state, _ in campaign.states().values()} == {"done"}, campaign.states()


def test_a_disk_that_is_full_here_ends_nsw_with_what_it_is_and_nothing_is_lost(slurm_conf, tmp_path, capfd):
    with distant("openssh", slurm_conf) as it, small_disk(tmp_path / "small", "600k"):
        campaign = Staged(tmp_path / "small" / "campaigns", it.site(), body="head -c 300000 /dev/zero")
        ballast = tmp_path / "small" / "ballast"
        with ballast.open("wb") as file:
            left = os.statvfs(tmp_path / "small")
            file.write(b"x" * (left.f_bavail * left.f_frsize - 100_000))
        code = campaign.drive()
        assert code not in {0, 70, -9}, code
        said = capfd.readouterr().err
        assert "No space left on device" in said or "disk is full" in said, said
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=20m", str(tmp_path / "small")], check=True)
        campaign.finish()
        assert campaign.begun() == sorted(run.removesuffix(".r1") for run in campaign.runs)
        assert {state for state, _ in campaign.states().values()} == {"done"}, campaign.states()


@pytest.mark.parametrize("skew", ["+3d", pytest.param("-3d", marks=pytest.mark.soak)])
def test_a_clock_that_is_wrong_over_there(slurm_conf, tmp_path, skew):
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("no libfaketime (apt install faketime)")
    with distant("openssh", slurm_conf, LD_PRELOAD=str(library), FAKETIME=skew) as it:
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()


def test_two_nsw_at_once_with_a_campaign_each_and_two_with_one(slurm_conf, tmp_path):
    with distant("openssh", slurm_conf) as it:
        campaigns = []
        for name in ("one", "two"):
            work = it.folder / name
            work.mkdir()
            campaigns.append(Staged(tmp_path / "campaigns", replace(it.site(), work=work)))
        first, second, third = campaigns[0].start(), campaigns[1].start(), campaigns[0].start()
        codes = sorted((ended(first), ended(third)))
        assert codes == [0, 2], codes
        assert ended(second) == 0
        for campaign in campaigns:
            assert campaign.fault() is None, campaign.fault()


def until(holds, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
