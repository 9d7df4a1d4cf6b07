"""More than limits.download ends nsw with what to do; the campaign goes on once a person allows more."""

from .test_attach import ONE
from .test_campaign import cluster  # noqa: F401  a fixture


@ONE
def test_a_campaign_stops_before_it_brings_too_much_and_goes_on_when_it_may(cluster):  # noqa: F811
    sites = (cluster.work / "sites.yaml").read_text().replace("lost_after: 20s", "download: 3K")
    (cluster.work / "sites.yaml").write_text(sites)
    (cluster.work / "prog.sh").write_text("head -c 5000 /dev/zero; echo speed=$1")
    stopped = cluster.nsw(*cluster.run_words())
    assert stopped.returncode == 2, stopped.stderr
    said = " ".join(stopped.stderr.split())
    assert "would be downloaded, but limits.download leaves 0.00 GiB" in said
    (here,) = (cluster.work / "campaigns").iterdir()
    assert f"resume {here.name} --download 50G" in said
    assert not list((here / "reports").rglob("stdout"))
    wrong = cluster.nsw("resume", "--root", "campaigns", "--download", "50")
    assert wrong.returncode == 2
    assert "--download" in wrong.stderr
    done = cluster.nsw("resume", "--root", "campaigns", "--download", "1M")
    assert done.returncode == 0, done.stderr
    assert (here / "reports/n-2.baseline.r1/stdout").stat().st_size > 5000
