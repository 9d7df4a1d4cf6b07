"""Start-up and scale: `nsw --version`, `--help` beside an empty typer program; 10,000 runs planned, rendered, shown.

python bench/startup.py [ROUNDS]
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nsw.campaign.planning import make_plan
from nsw.campaign.start import Ingredients, make_campaign_folders

EMPTY = "import typer\napp = typer.Typer()\n@app.command()\ndef main(): pass\napp()\n"
RECIPE = """nsw: 1
name: big
app: {command: 'prog -a {{ a }} -b {{ b }}', figures: {f: {regex: 'f=(.*)', unit: s}}}
matrix: {a: {range: [1, 100]}, b: {range: [1, 50]}}
passes: [baseline]
resources: {gpus: 0, time: 1m}
repeats: 2
"""
TARGETS = {
    "nsw --version": "1.5 x empty",
    "nsw --help": "1.5 x empty --help",
    "nsw plan, 10,000 runs": "1 s",
    "nsw render, 10,000 runs": "3 s",
    "nsw status, 10,000 runs": "0.5 s",
}


def make_campaign(home: Path, recipe: str = RECIPE) -> int:
    """Write `big.yaml` and begin its campaign below `home`, with no run begun; the number of its runs."""
    (home / "big.yaml").write_text(recipe)
    planned = make_plan(str(home / "big.yaml"), "local")
    site = planned.site.site.model_dump(mode="json", by_alias=True)
    make_campaign_folders(home / "campaigns", planned.plan, Ingredients({"nsw": 1}, site, None, lambda *_: ""))
    return len(planned.plan.runs)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have their bytecode cached
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "empty.py").write_text(EMPTY)
        assert make_campaign(home) == 10_000
        commands = {
            "empty typer program": [sys.executable, "empty.py"],
            "empty typer program --help": [sys.executable, "empty.py", "--help"],
            "nsw --version": [sys.executable, "-m", "nsw", "--version"],
            "nsw --help": [sys.executable, "-m", "nsw", "--help"],
            "nsw plan, 10,000 runs": [sys.executable, "-m", "nsw", "plan", "big.yaml"],
            "nsw render, 10,000 runs": [sys.executable, "-m", "nsw", "render", "big.yaml", "--into", "out"],
            "nsw status, 10,000 runs": [sys.executable, "-m", "nsw", "status"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):  # in turn, so that a busy minute falls on all of them
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=home, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                seconds[name].append(time.perf_counter() - start)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}")
    print(f"{'command':28} {'min ms':>8} {'median ms':>10}  target")
    for name, taken in seconds.items():
        print(f"{name:28} {min(taken) * 1e3:8.0f} {statistics.median(taken) * 1e3:10.0f}  {TARGETS.get(name, '')}")


if __name__ == "__main__":
    main()
