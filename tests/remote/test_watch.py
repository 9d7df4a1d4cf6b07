"""`nsw watch` over a real sshd: it shows what has become of runs and changes nothing, here or there."""

import signal
import time

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
    time.sleep(0.1)
    before = (contents(here), contents(there))
    seen = cluster.nsw(*words)
    assert seen.returncode == 0, seen.stderr
    assert "3 runs: 3 done" in seen.stdout
    assert "done      n-2.baseline.r1" in seen.stderr
    assert "nobody drives it: `nsw resume" in seen.stderr
    assert (contents(here), contents(there)) == before
