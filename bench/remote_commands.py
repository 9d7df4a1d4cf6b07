"""What a campaign behind ssh costs: remote commands to submit 1,000 runs, and CPU to poll 10,000 jobs of Slurm.

`python bench/remote_commands.py [slurm] [pbs] [cobalt]`: a real sshd on the loopback, the tests' fakes behind it. CPU
is nsw's own. Needs root, sshd and ssh.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw.campaign import start  # noqa: E402
from nsw.campaign.planning import make_plan  # noqa: E402
from nsw.campaign.running import lock_campaign  # noqa: E402
from nsw.engine import handover as private  # noqa: E402  after the path
from nsw.transport import remote, shell  # noqa: E402
from tests.faults.systems import double  # noqa: E402
from tests.remote.conftest import SSHD, Server  # noqa: E402
from tests.remote.test_campaign import FAKES, Cluster  # noqa: E402

RUNS, JOBS = 1000, 10_000
QSUBS = 200  # where each run is a submission, which costs the fake a process
WANTED = (
    "wanted: at most 5 remote commands to submit 1,000 runs, on Cobalt 3 for 100; one command and 0.5 s of CPU to poll"
    " 10,000 jobs"
)
COMMANDS = (
    "sbatch", "squeue", "scontrol", "sacct", "scancel", "qsub", "qstat", "qselect", "qdel", "owner.new", "handover",
    "mkdir", "sha256sum",
)  # fmt: skip
RECIPE = """
nsw: 1
name: bench
app: {command: 'true {{ n }}'}
matrix: {n: {range: [1, COUNT]}}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""


@contextmanager
def counted():
    """Counts messages to the remote shell, and streams of files."""
    calls: Counter[str] = Counter()
    call, send, receive = shell.Shell.call, remote.send, remote.receive

    def counting_call(self, commands, **how):
        text = " ".join(commands[0])
        calls[next((name for name in COMMANDS if name in text), "other")] += 1
        return call(self, commands, **how)

    def counting_send(*words):
        calls["files sent"] += 1
        return send(*words)

    def counting_receive(*words):
        calls["files brought"] += 1
        return receive(*words)

    shell.Shell.call, remote.send, remote.receive = counting_call, counting_send, counting_receive
    try:
        yield calls
    finally:
        shell.Shell.call, remote.send, remote.receive = call, send, receive


def measure(cluster: Cluster, count: int) -> None:
    (cluster.work / "recipe.yaml").write_text(RECIPE.replace("COUNT", str(count)))
    planned = make_plan(str(cluster.work / "recipe.yaml"), "cluster", [cluster.work / "sites.yaml"])
    folder = start.make_campaign(cluster.work, start.check_readiness(planned), start.lock_of(planned)[0])
    with counted() as calls, lock_campaign(folder, lambda _event: None) as it:
        private.prepare(folder, it.transport, it.scratch, it.share)
        it.builds.prepare()
        it.driver.recover()
        before = Counter(calls)
        started = time.process_time()
        while it.ledger.has_planned():
            it.driver.round()
        used = time.process_time() - started
        told = ", ".join(f"{n} {name}" for name, n in sorted((calls - before).items()))
        print(f"  {count:6} runs submitted in {sum((calls - before).values())} remote commands ({told})")
        print(f"         beside {sum(before.values())} to prepare the site; {used:.2f} s of CPU")
        for _ in range(3):
            before = Counter(calls)
            started = time.process_time()
            it.driver._watching.poll(at_once=True)  # noqa: SLF001  a step would wait for its time
            used = time.process_time() - started
            asked = calls - before
            print(
                f"         poll: {used:.2f} s of CPU; {', '.join(f'{n} {name}' for name, n in sorted(asked.items()))}"
            )
        it.driver.cancel()


@contextmanager
def system(name: str, top: Path):
    """A batch system in which nothing starts, so that what waits is what is polled: the variables that name it."""
    if name == "slurm":
        state = top / "fake-slurm"
        state.mkdir()
        (state / "hold").touch()
        yield {
            "PATH": f"{FAKES}:/usr/local/bin:/usr/bin:/bin",
            "NSW_FAKE_SLURM": state,
            "NSW_FAKE_PYTHON": sys.executable,
        }
        return
    with double(name, top) as found:
        found.hold()
        yield found.environment


def main() -> None:
    if SSHD is None or os.geteuid() != 0:
        print("skipped: no sshd, or not root")
        return
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}; {WANTED}")
    for name in sys.argv[1:] or ("slurm", "pbs", "cobalt"):
        for kind in ("openssh", "ssh"):
            with tempfile.TemporaryDirectory(prefix="nsw-bench-") as text, system(name, Path(text)) as variables:
                top = Path(text)
                env = " ".join(f"{key}={value}" for key, value in variables.items())
                more = f'ForceCommand export {env}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'
                server = Server(top / "sshd", more=more)
                server.start()
                try:
                    cluster = Cluster(top, server, kind)
                    sites = cluster.work / "sites.yaml"
                    told = sites.read_text().replace("scheduler: slurm", f"scheduler: {name}")
                    sites.write_text(told.replace("{lost_after", "{max_in_flight: 10000, lost_after"))
                    print(f"{name}, {kind}")
                    for count in {"slurm": (RUNS, JOBS), "pbs": (RUNS,), "cobalt": (QSUBS,)}[name]:
                        measure(cluster, count)
                finally:
                    server.stop(sessions=True)


if __name__ == "__main__":
    main()
