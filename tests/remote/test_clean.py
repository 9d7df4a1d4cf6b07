"""`nsw clean` over a real sshd: what is here goes, what was never brought stays, nothing outside is touched."""

import time

import pytest

from nsw.campaign.clean import require_campaign_folder
from nsw.engine.folder import CampaignFolder
from nsw.errors import CampaignError

from .test_campaign import cluster  # noqa: F401  a fixture

ONE = pytest.mark.parametrize("cluster", ["openssh"], indirect=True)
CLEAN = ("clean", "--root", "campaigns")


def plain_files(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def test_clean_removes_what_is_here_keeps_what_was_never_brought_and_follows_no_link(cluster):  # noqa: F811
    assert cluster.nsw(*cluster.run_words()).returncode == 0
    (here,), (there,) = (cluster.work / "campaigns").iterdir(), cluster.scratch.glob("*/*")
    outside = cluster.scratch / "precious"
    outside.mkdir()
    (outside / "data").write_text("do not touch")
    attempt = there / "runs/n-1.baseline.r1/attempt-1"
    (attempt / "model.pt").write_bytes(b"x" * 5000)
    (attempt / "elsewhere").symlink_to(outside)
    (here / "reports/n-2.baseline.r1/stdout").write_text("speed")  # cut short
    before = plain_files(there)
    refused = cluster.nsw(*CLEAN)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert "2 files (4.891 KiB) never downloaded stay:" in refused.stderr
    assert "runs/n-1.baseline.r1/attempt-1/model.pt" in refused.stderr
    assert plain_files(there) == before
    done = cluster.nsw(*CLEAN, "--yes")
    assert done.returncode == 0, done.stderr
    assert plain_files(there) == {"runs/n-1.baseline.r1/attempt-1/model.pt", "runs/n-2.baseline.r1/attempt-1/stdout"}
    assert (here / "reports/n-1.baseline.r1/stdout").read_text() == "speed=1\n"
    assert cluster.nsw(*CLEAN, "--yes", "--everything").returncode == 0
    assert not there.exists()
    assert (outside / "data").read_text() == "do not touch"
    assert "is gone already" in cluster.nsw(*CLEAN, "--yes").stderr
    assert not there.exists()
    resumed = cluster.nsw("resume", "--root", "campaigns")
    assert resumed.returncode == 0, resumed.stderr
    assert not there.exists(), sorted(there.rglob("*"))


@ONE
def test_a_campaign_that_is_not_over_keeps_its_folder_and_after_a_clean_a_retry_sends_it_again(cluster):  # noqa: F811
    mended = cluster.work / "mended"
    (cluster.work / "prog.sh").write_text(f"[ -e {mended} ] || exec sleep 600; echo speed=$1")
    process = cluster.start(*cluster.run_words(), "--set", "n=1")
    while not (found := list(cluster.scratch.glob("*/*/runs/*/attempt-1/claim"))):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    refused = cluster.nsw(*CLEAN, "--yes")
    assert refused.returncode == 2
    assert "is driven by" in refused.stderr
    process.kill()
    process.communicate()
    refused = cluster.nsw(*CLEAN, "--yes")
    assert refused.returncode == 2
    assert "is not over" in refused.stderr
    assert found[0].exists()
    assert cluster.nsw("cancel", "--root", "campaigns").returncode == 0
    assert cluster.nsw(*CLEAN, "--yes", "--everything").returncode == 0
    assert not list(cluster.scratch.glob("*/*"))
    mended.touch()
    again = cluster.nsw("retry", "--root", "campaigns")
    assert again.returncode == 0, again.stderr
    (here,) = (cluster.work / "campaigns").iterdir()
    assert (here / "reports/n-1.baseline.r1/stdout").read_text() == "speed=1\n"


@pytest.mark.parametrize(
    "scratch", ["/", "/scratch", "/home/me", "relative/x-1", "/s/../x-1", "", "/s/x-1/", "/s/other/scratch"]
)
def test_only_a_folder_of_the_campaigns_own_name_is_ever_removed(tmp_path, scratch):
    with pytest.raises(CampaignError, match="left alone"):
        require_campaign_folder(CampaignFolder(tmp_path / "x-1"), scratch)
