"""What a site does to an nsw behind a real sshd: schedulers, servers, shells and disks that go wrong."""

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

from tests.far.forked import ended
from tests.far.staged import UNREACHABLE, Staged
from tests.slurm.places import own_cluster
from tests.slurm.test_campaign import as_root

from . import figures
from .distant import distant
from .systems import ACCEPTED_AND_FAILED, REMOTE, RealSlurm, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .distant import Distant

# a shell that is no sh: tcsh and fish know none of these
NO_SH = """#!/bin/bash
case $2 in *[\\$\\(\\)\\{\\}=\\;\\&\\|\\<\\>]*) echo "Illegal variable name." >&2; exit 1 ;; esac
set -- $2
[ "$1" = exec ] && shift
exec "$@"
"""


@ways("slurm-openssh", "pbs-local", "pbs-ssh", "cobalt-local", "cobalt-openssh", kinds=("local", *REMOTE))
def test_a_scheduler_that_is_down_late_and_lying(system, tmp_path, kind):
    with distant(kind, system) as it:
        it.plan(system.submits, system.not_submitted, ACCEPTED_AND_FAILED, "sleep 1")
        garbage, nothing = 'echo "garbage|of|a|site"; exit 0', system.gone
        it.plan(system.lists, system.down, nothing, "sleep 2", ":", system.down, garbage, nothing, ":")
        for command in system.others:
            it.plan(command, system.down)
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish()
        assert campaign.fault() is None, (campaign.fault(), it.planned())
        assert len(it.planned()) >= 7, it.planned()
        assert system.tasks(campaign.folder.id) == len(campaign.runs)


@ways("slurm-ssh")
def test_an_sshd_that_is_restarted_in_the_middle(system, tmp_path, kind):
    with distant(kind, system) as it:
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


@ways("slurm-openssh", "slurm-ssh")
def test_a_login_shell_that_is_no_sh_a_banner_and_text_before_every_answer_and_no_user(system, tmp_path, kind):
    name = {"openssh": "tcsh", "ssh": "fish"}[kind]
    with distant(kind, system) as it:
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


@pytest.mark.slurm
@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_restricted_shell_is_refused_with_what_it_said(slurm, tmp_path, kind, capfd):
    with distant(kind, slurm, more='ForceCommand /bin/rbash -c "$SSH_ORIGINAL_COMMAND"') as it:
        campaign = Staged(tmp_path / "campaigns", it.site())
        assert campaign.drive() == UNREACHABLE
        assert campaign.begun() == []
    said = capfd.readouterr().err
    assert "restricted" in said, said


@pytest.mark.slurm
@pytest.mark.parametrize("kind", ["ssh"])
def test_a_program_over_its_memory_fails_with_that_reason_and_its_second_stage_says_why_it_is_skipped(
    slurm, tmp_path, kind
):
    eats = "/usr/bin/python3 -c 'import time; a = bytearray(200_000_000); time.sleep(60)'"
    with distant(kind, slurm) as it:
        campaign = Staged(tmp_path / "campaigns", it.site(), cases=1, body=eats)
        assert campaign.drive() == 0
        first, second = campaign.states().values()
        assert first[0] == "failed"
        assert "out of memory" in first[1]
        assert second[0] == "cancelled"
        assert "skipped: n-1.look.r1" in second[1]
        figures.row(f"slurm, {kind}, out of memory").add(campaign, it, 1, 1, may_fail=True)


@pytest.mark.soak
@pytest.mark.slurm
@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_node_that_dies_and_a_job_out_of_time(tmp_path, kind):
    with own_cluster(accounting=False) as daemons, distant(kind, RealSlurm(daemons.place.conf)) as it:
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


@contextmanager
def quota(folder: Path, size: str, owner: str) -> Iterator[Path]:
    """A folder in which a user may not have more than so much, on a file system with room; yields its subvolume."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no btrfs, whose quotas need no more than a kernel (apt install btrfs-progs)")
    image, disk = folder.with_suffix(".image"), folder.with_suffix(".disk")
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(200 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        for words in (("subvolume", "create", disk / "own"), ("quota", "enable", disk)):
            subprocess.run(["btrfs", *words], check=True, capture_output=True)
        limit(disk / "own", size)
        shutil.chown(disk / "own", owner)
        disk.chmod(0o755)
        folder.symlink_to(disk / "own")
        yield disk / "own"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def limit(subvolume: Path, size: str) -> None:
    """Set its quota, which holds from now on. Removing files would not do: btrfs counts for a while what it reserved.

    It is set through the folder above: asked through the subvolume, btrfs refuses the change for as long as
    the subvolume is at its limit (minutes, seen), because the change itself would count as written there.
    """
    command = ["btrfs", "inspect-internal", "rootid", subvolume]
    root = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["btrfs", "qgroup", "limit", size, f"0/{root}", subvolume.parent], check=True, capture_output=True)


def remove_data(folder: Path) -> None:
    for file in folder.rglob("data"):
        file.unlink()


def no_room_then_room(it: Distant, folder: Path, make_room: Callable[[], object]) -> None:
    """Runs fail with their reason while their program fills the disk, and are done once there is room."""
    fills = f"[ -e {it.folder}/room ] || head -c 1000000 /dev/zero >data || {{ truncate -s 50k data; exit 28; }}"
    campaign = Staged(folder, it.site(scratch=it.folder / "small"), body=fills)
    assert campaign.drive() == 0
    states = campaign.states()
    assert {state for state, _ in states.values()} <= {"failed", "cancelled", "lost"}, states
    assert all(reason for _, reason in states.values()), states
    make_room()
    (it.folder / "room").touch()
    campaign.again()
    campaign.finish()
    assert {state for state, _ in campaign.states().values()} == {"done"}, campaign.states()


@ways("slurm-openssh", "pbs-local", "cobalt-local", kinds=("local", *REMOTE))
def test_a_disk_that_is_full_over_there_fails_runs_with_their_reason_and_the_campaign_goes_on(system, tmp_path, kind):
    with distant(kind, system) as it, small_disk(it.folder / "small", "400k", system.user):
        no_room_then_room(it, tmp_path / "campaigns", lambda: remove_data(it.folder / "small"))


@ways("slurm-openssh", kinds=REMOTE)
def test_a_quota_that_is_used_up_over_there_fails_runs_with_their_reason_and_the_campaign_goes_on(
    system, tmp_path, kind
):
    with distant(kind, system) as it, quota(it.folder / "small", "600k", system.user) as own:
        no_room_then_room(it, tmp_path / "campaigns", lambda: limit(own, "none"))


@pytest.mark.slurm
def test_a_disk_that_is_full_here_ends_nsw_with_what_it_is_and_nothing_is_lost(slurm, tmp_path, capfd):
    with distant("openssh", slurm) as it, small_disk(tmp_path / "small", "600k"):
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
@ways("slurm-openssh", kinds=("openssh",))
def test_a_clock_that_is_wrong_over_there(system, tmp_path, kind, skew):
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("no libfaketime (apt install faketime)")
    with distant(kind, system, LD_PRELOAD=str(library), FAKETIME=skew) as it:
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()


@ways("slurm-openssh")
def test_two_nsw_at_once_with_a_campaign_each_and_two_with_one(system, tmp_path, kind):
    with distant(kind, system) as it:
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


def until(holds, seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
