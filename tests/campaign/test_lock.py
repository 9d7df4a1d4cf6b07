"""Who drives a campaign: one nsw; the commands that it began are waited for when it was killed."""

import subprocess
import sys
import time

import pytest

from nsw.engine.folder import CampaignFolder, is_driven, locked
from nsw.engine.handover import wait_for_commands
from nsw.errors import CampaignLockedError, UnreachableError
from nsw.transport.local import LocalTransport
from nsw.transport.model import connect

HOLDER = """
import sys
from pathlib import Path
from nsw.engine.folder import CampaignFolder, locked
from nsw.engine.handover import wait_for_commands
from nsw.transport.local import LocalTransport
folder = CampaignFolder(Path(sys.argv[1]))
with locked(folder):
    transport = LocalTransport(folder.commands)
    wait_for_commands(transport, print)
    submit = ["bash", "-c", "touch begun; until [ -e go ]; do sleep 0.05; done"]
    transport.run(submit, timeout=60, cwd=sys.argv[1])
"""


@pytest.fixture
def holder(tmp_path):
    CampaignFolder(tmp_path).trust()
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path])
    while process.poll() is None and not (tmp_path / "begun").exists():
        time.sleep(0.02)
    yield process
    (tmp_path / "go").touch()
    process.kill()
    process.wait()


def test_a_campaign_that_is_driven_is_refused_at_once_and_its_driver_named(holder, tmp_path):
    with pytest.raises(CampaignLockedError, match=rf"is driven by process {holder.pid} on"), \
            locked(CampaignFolder(tmp_path)):  # fmt: skip
        pass


def test_an_sbatch_that_a_killed_nsw_left_behind_is_waited_for_and_the_user_told(holder, tmp_path):
    folder, said, now = CampaignFolder(tmp_path), [], [0.0]
    holder.kill()
    holder.wait()
    assert not is_driven(folder)

    def sleep(seconds):
        now[0] += seconds
        if now[0] > 2:
            (tmp_path / "go").touch()
            time.sleep(0.01)

    with locked(folder, patience=0):
        wait_for_commands(LocalTransport(folder.commands), said.append, clock=lambda: now[0], sleep=sleep)
    assert now[0] > 2
    assert len(said) == 1
    assert "a command that a killed nsw started is still running" in said[0]


def test_a_command_that_stays_for_ever_is_not_waited_for_for_ever(holder, tmp_path):
    holder.kill()
    holder.wait()
    transport = connect({"transport": {"kind": "local"}}, mark=CampaignFolder(tmp_path).commands)
    with pytest.raises(UnreachableError, match="may yet submit a job"):
        wait_for_commands(transport, lambda _text: None, most_s=0)


def test_a_command_that_stays_is_looked_at_less_and_less_often_for_each_look_starts_a_shell_there(holder, tmp_path):
    holder.kill()
    holder.wait()
    now, pauses = [0.0], []

    def sleep(seconds):
        pauses.append(seconds)
        now[0] += seconds

    transport = LocalTransport(CampaignFolder(tmp_path).commands)
    with pytest.raises(UnreachableError):
        wait_for_commands(transport, lambda _text: None, most_s=100, clock=lambda: now[0], sleep=sleep)
    assert pauses[0] < 0.1
    assert len(pauses) < 100


def test_what_stays_behind_after_an_orderly_end_holds_nothing(tmp_path):
    folder = CampaignFolder(tmp_path)
    transport = LocalTransport(folder.commands)
    assert not transport.left_running()
    transport.run(["bash", "-c", "(until [ -e go ]; do sleep 0.05; done) &>/dev/null & :"], timeout=60,
                  cwd=str(tmp_path))  # fmt: skip
    transport.close()
    assert not LocalTransport(folder.commands).left_running()
    (tmp_path / "go").touch()
