"""200 trivial runs on this machine: milliseconds each above the program's own time.

    python bench/local_runs.py [RUNS] [ROUNDS]

What a campaign of one run takes is taken off, so that start-up and the answer's printing do not count.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECIPE = (
    "nsw: 1\nname: trivial\napp: {{command: 'true'}}\n"
    "passes: [baseline]\nresources: {{gpus: 0, time: 1m}}\nrepeats: {}\n"
)
# wall time a trivial local run, as published figures of one 2-core machine have it; another machine than this one
PEERS = {"signac-flow": 2, "Maestro": 4, "JUBE": 39, "ReFrame": 97}


def seconds(home: Path, runs: int) -> float:
    """How long a campaign of so many runs takes."""
    (home / "recipe.yaml").write_text(RECIPE.format(runs))
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nsw", "run", "recipe.yaml"], cwd=home, check=True, capture_output=True)
    return time.perf_counter() - start


def own_time(runs: int) -> float:
    """How long the program itself takes, so many times."""
    start = time.perf_counter()
    for _ in range(runs):
        subprocess.run(["true"], check=True)
    return time.perf_counter() - start


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        one = min(seconds(home, 1) for _ in range(rounds))
        many = sorted(seconds(home, runs) for _ in range(rounds))
    own = own_time(runs) / runs
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}")
    for name, taken in (("least", many[0]), ("median", many[len(many) // 2])):
        print(
            f"nsw, {runs} runs, {name} of {rounds}: {((taken - one) / (runs - 1) - own) * 1e3:.1f} ms a run (target 15)"
        )
    print("peers, elsewhere: " + ", ".join(f"{name} {ms} ms" for name, ms in PEERS.items()))


if __name__ == "__main__":
    main()
