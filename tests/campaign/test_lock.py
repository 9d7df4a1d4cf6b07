"""Who drives a campaign: one nsw, and the commands that it began."""

import subprocess
import sys
import time

import pytest

from nsw.campaign.folder import CampaignFolder, is_driven, locked
from nsw.errors import CampaignLockedError
from nsw.transport.local import LocalTransport

HOLDER = """
import sys
from pathlib import Path
from nsw.campaign.folder import CampaignFolder, locked
from nsw.transport.local import LocalTransport
with locked(CampaignFolder(Path(sys.argv[1]))) as lock:
    submit = ["bash", "-c", "touch begun; until [ -e go ]; do sleep 0.05; done"]
    LocalTransport((lock,)).run(submit, timeout=60, cwd=sys.argv[1])
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path])
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    yield process
    (tmp_path / "go").touch()
    process.kill()
    process.wait()


def test_a_campaign_that_is_driven_is_refused_at_once_and_its_driver_named(holder, tmp_path):
    with pytest.raises(CampaignLockedError, match=rf"is driven by process {holder.pid} on"), \
            locked(CampaignFolder(tmp_path)):  # fmt: skip
        pass


def test_an_sbatch_that_a_killed_nsw_left_behind_is_waited_for(holder, tmp_path):
    folder = CampaignFolder(tmp_path)
    holder.kill()
    holder.wait()
    with pytest.raises(CampaignLockedError, match="was killed; a command that it began still runs"), \
            locked(folder, patience=0):  # fmt: skip
        pass
    assert is_driven(folder)
    late = subprocess.Popen(["bash", "-c", f"sleep 0.3; touch {tmp_path}/go"])
    with locked(folder):
        assert (tmp_path / "go").exists()
    late.wait()


def test_what_stays_behind_after_an_orderly_end_holds_nothing(tmp_path):
    folder = CampaignFolder(tmp_path)
    with locked(folder) as lock:
        LocalTransport((lock,)).run(["bash", "-c", "(until [ -e go ]; do sleep 0.05; done) &>/dev/null & :"], timeout=60,
                                    cwd=str(tmp_path))  # fmt: skip
    with locked(folder, patience=0):
        pass
    (tmp_path / "go").touch()
