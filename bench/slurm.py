"""A campaign on Slurm: what nsw itself costs for 1,000 equal runs, and while 10,000 wait.

`python bench/slurm.py [fake] [real]`: over the tests' fake commands, and over the tests' real Slurm where one can be
started (Debian or Ubuntu, root). CPU is nsw's own, without the commands that it starts.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw import __version__  # noqa: E402  after the path
from tests.slurm import places  # noqa: E402

DONE, WAITING = 1000, 10_000
SETTLED_S = 45.0  # between two polls: they are as far apart as they get, a minute more or less
WATCHED = 4  # spans from one poll to the next
WANTED = "wanted: at most 2 sbatch, one squeue a round, 5 ms a run; while 10,000 wait 500 MB and 1 % of a core"
# CPU ms a run, scheduler calls for 200 trivial jobs; each peer's own way on one machine
PEERS = (
    ("bare array", "-", "1 sbatch, 5 squeue"),
    ("Maestro", "8", "200 sbatch, 3 squeue"),
    ("JUBE", "45", "200 sbatch"),
    ("ReFrame", "190", "200 sbatch, 17 sacct, 3,800 scontrol"),
    ("PSI/J", "6", "200 sbatch, 400 scontrol, 2 squeue"),
)
SITES = "nsw: 1\nsites: {s: {scheduler: slurm, limits: {max_in_flight: 200, max_array: 1000}}}\n"
RECIPE = """
nsw: 1
name: bench
app:
  command: 'true'
matrix:
  n: {range: [1, COUNT]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m, memory: 10M, extra: EXTRA}
"""
# nsw in a process that says at its end what it used
MEASURED = (
    "import sys, resource; from nsw.cli.main import run; code = run(sys.argv[1:]);"
    " used = resource.getrusage(resource.RUSAGE_SELF);"
    " print('used', used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr); sys.exit(code)"
)


@dataclass
class Place:
    """Where the commands of a Slurm are: how to start a process that uses them."""

    name: str
    work: Path
    env: dict[str, str]
    real: places.Real | None = None

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", MEASURED, *words]
        return subprocess.Popen(
            argv if self.real is None else self.real.argv(argv), env=self.env, cwd=self.work, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip


@contextmanager
def fake() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="nsw-bench-") as folder:
        state = Path(folder) / "fake"
        state.mkdir()
        mine = {"NSW_FAKE_SLURM": str(state), "NSW_FAKE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
                "PATH": f"{places.FAKES}{os.pathsep}{os.environ['PATH']}"}  # fmt: skip
        yield Place("fake commands", Path(folder), os.environ | mine)


@contextmanager
def real() -> Iterator[Place]:
    with places.shared_cluster("bare", accounting=False) as cluster, cluster.in_folder() as found:
        version = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=False).stdout.strip()
        yield Place(version, found.work, found.env | {"PYTHONPATH": str(ROOT)}, found)


def words(place: Place, count: int, *, held: bool) -> list[str]:
    (place.work / "sites.yaml").write_text(SITES)
    extra = "['#SBATCH --hold']" if held and place.real else "[]"
    (place.work / "recipe.yaml").write_text(RECIPE.replace("COUNT", str(count)).replace("EXTRA", extra))
    if held and place.real is None:
        (place.work / "fake" / "hold").touch()
    root = f"campaigns-{count}"
    return ["run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--yes", "--root", root]


def calls(place: Place, count: int) -> dict[str, int]:
    from nsw.engine.ledger import Ledger

    (path,) = (place.work / f"campaigns-{count}").glob("[!.]*/campaign.db")
    with Ledger(path, read_only=True) as ledger:
        return ledger.calls()


def done_runs(place: Place) -> str:
    start = time.monotonic()
    process = place.start(words(place, DONE, held=False))
    _, said = process.communicate()
    assert process.returncode == 0, said[-2000:]
    _, cpu, memory = next(line for line in reversed(said.splitlines()) if line.startswith("used ")).split()
    asked = ", ".join(f"{n} {name}" for name, n in sorted(calls(place, DONE).items()))
    took, each = time.monotonic() - start, float(cpu) / DONE * 1000
    head = f"{place.name:18} {DONE:>6} done     {took:7.1f} s"
    return f"{head}  {each:6.2f} ms CPU a run  {int(memory) / 1024:5.0f} MB  {asked}"


def waiting_runs(place: Place) -> str:
    """Whole spans between polls, once these are as far apart as they get: each holds one poll and its minute."""
    process = place.start(words(place, WAITING, held=True))
    try:
        last = next_poll(place, process, 0)
        while (now := next_poll(place, process, last.polls)).at - last.at < SETTLED_S:
            last = now
        spans: list[tuple[float, float]] = []
        for _ in range(WATCHED):
            last, now = now, next_poll(place, process, now.polls)
            took = now.at - last.at
            spans.append(((now.own - last.own) / took * 100, (now.children - last.children) / took * 100))
        memory = peak_of(process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if place.real is not None:
            place.real.run("scancel", "--me")
    own, children = sorted(o for o, _ in spans), min(c for _, c in spans)
    head = f"{place.name:18} {WAITING:>6} waiting, a poll a minute"
    return (
        f"{head}  {own[0]:5.2f} to {own[-1]:.2f} % of a core in {WATCHED} minutes, its squeue {children:.2f} %"
        f"   {memory:4.0f} MB"
    )


@dataclass(frozen=True)
class Moment:
    """Just after a poll: how many there were, when, and the CPU seconds used until then."""

    polls: int
    at: float
    own: float
    children: float


def next_poll(place: Place, process: subprocess.Popen[str], polls: int) -> Moment:
    """When squeue was asked once more, and that is written down."""
    while (asked := squeues(place)) <= polls:
        assert process.poll() is None, process.communicate()[1][-2000:]
        time.sleep(0.5)
    return Moment(asked, time.monotonic(), *cpu_of(process.pid))


def squeues(place: Place) -> int:
    if not list((place.work / f"campaigns-{WAITING}").glob("[!.]*/campaign.db")):
        return 0
    return calls(place, WAITING).get("squeue", 0)


def cpu_of(pid: int) -> tuple[float, float]:
    """Seconds of the process, and of the commands that it waited for."""
    ticks = [int(x) for x in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks[:2]) / second, sum(ticks[2:]) / second


def peak_of(pid: int) -> float:
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    chosen = sys.argv[1:] or ["fake", "real"]
    model = next((x.partition(":")[2].strip() for x in Path("/proc/cpuinfo").read_text().splitlines()
                  if x.startswith("model name")), platform.machine())  # fmt: skip
    print(f"{os.cpu_count()} x {model}; Python {platform.python_version()}; nsw {__version__}\n{WANTED}", flush=True)
    for name, make in (("fake", fake), ("real", real)):
        why = places.missing() if name == "real" else None
        if name not in chosen or why:
            print(f"{name}: left out" + (f": {why}" if why else ""))
            continue
        with ExitStack() as stack:
            place = stack.enter_context(make())
            print(done_runs(place), flush=True)
            print(waiting_runs(place), flush=True)
    for name, cpu, asked in PEERS:
        print(f"{name:18}    200 done                {cpu:>4} ms CPU a run           {asked}")


if __name__ == "__main__":
    main()
