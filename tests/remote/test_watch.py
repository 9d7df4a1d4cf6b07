"""`nsw watch` over a real sshd: it shows what has become of runs and changes nothing, here or there."""

import json
import re
import signal

from .test_attach import ONE, until
from .test_campaign import cluster  # noqa: F401  a fixture


def contents(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@ONE
def test_watch_shows_a_campaign_that_is_driven_and_one_left_alone_and_writes_nothing(cluster):  # noqa: F811
    gate = cluster.work / "gate"
    (cluster.work / "prog.sh").write_text(
        f'[ $1 = 1 ] || while [ ! -e {gate} ]; do sleep 0.1; done; echo speed=$1; echo "$1" >>{cluster.ran_file}'
    )
    driver = cluster.start(*cluster.run_words())
    until(lambda: cluster.ran() == ["1"], driver)
    words = ("watch", "--root", "campaigns", "--once")
    until(lambda: "1 done, 1 running" in cluster.nsw(*words).stdout, driver)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    gate.touch()
    until(lambda: len(cluster.ran()) == 3)
    (here,), (there,) = (cluster.work / "campaigns").iterdir(), cluster.scratch.glob("*/*")
    until(lambda: len(list(there.glob("runs/*/attempt-1/status"))) == 3)
    jobs = cluster.server.folder.parent / "fake-slurm" / "jobs"
    tasks = [file for file in jobs.glob("*/*.json") if file.name != "job.json"]
    until(lambda: all(json.loads(file.read_text())["state"] == "COMPLETED" for file in tasks))
    before = (contents(here), contents(there))
    seen = cluster.nsw(*words)
    assert seen.returncode == 0, seen.stderr
    assert "3 runs: 3 done" in seen.stdout
    assert "done      n-2.baseline.r1" in seen.stderr
    assert re.search(r"nobody drives it: `\S.*nsw resume far-", seen.stderr)  # as the command is typed
    assert (contents(here), contents(there)) == before


@ONE
def test_watch_follows_a_campaign_that_another_machine_took_over_and_writes_nothing(cluster, tmp_path):  # noqa: F811
    gates = {n: cluster.work / f"gate-{n}" for n in (1, 2, 3)}
    (cluster.work / "prog.sh").write_text(
        f'while [ ! -e {cluster.work}/gate-$1 ]; do sleep 0.1; done; echo speed=$1; echo "$1" >>{cluster.ran_file}'
    )
    former = cluster.start(*cluster.run_words())
    until(lambda: list(cluster.scratch.glob("*/*/runs/n-1.*/attempt-1/claim")), former)
    former.send_signal(signal.SIGKILL)
    former.communicate()
    other = tmp_path / "other home"
    (other / ".config" / "nsw").mkdir(parents=True)
    (other / ".config" / "nsw" / "sites.yaml").write_text((cluster.work / "sites.yaml").read_text())
    (campaign,) = (p.name for p in (cluster.work / "campaigns").iterdir())
    present = cluster.start("attach", campaign, "--yes", "--site", "cluster", home=other)
    there = next(cluster.scratch.glob("*/*"))
    until(lambda: (there / "owner").read_text().startswith("2 "), present)
    here = cluster.work / "campaigns"
    before = contents(here)
    words = ("watch", "--root", "campaigns", "--once")
    gates[1].touch()

    def seen(text):
        looked = cluster.nsw(*words)
        assert looked.returncode == 0, looked.stderr
        assert "an nsw on another machine drives it: root@" in looked.stderr
        assert f"nsw attach {campaign}` takes it back" in looked.stderr
        assert "nobody drives it" not in looked.stderr
        return text in looked.stdout

    until(lambda: seen("1 done"), present)  # which the ledger here never hears of
    for gate in gates.values():
        gate.touch()
    follower = cluster.start(*words[:-1])
    _, said = present.communicate(timeout=240)
    assert present.returncode == 0, said
    out, err = follower.communicate(timeout=240)
    assert follower.returncode == 0, err
    assert "3 runs: 3 done" in out
    assert contents(here) == before
    assert cluster.ran() == ["1", "2", "3"]
    assert (other / "campaigns" / campaign / "reports/n-3.baseline.r1/stdout").read_text() == "speed=3\n"
