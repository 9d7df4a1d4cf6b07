"""What 3, 6 and 12 pairs decide on a real GPU: the same program twice (A/A), and one with 5 % more work.

Two programs: one bound by the host (small operations one after the other), one by the GPU (matrix products). Each has
12 pairs for its noise floor, 12 more of A/A, and 12 against 5 % more work. Needs a GPU and PyTorch.

    python bench/gpu/pairs.py [--python PYTHON] [--bound host|gpu] [--pairs 12] [--folder F]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nsw.analysis.certainty import ASSUMED, Floor, estimate_from_pairs
from nsw.analysis.compared_screen import log_ratio_to_percent

PROGRAM = """\
import sys, time, torch
bound, work = sys.argv[1], int(sys.argv[2])
if bound == "host":
    x = torch.ones(64, 64, device="cuda")
    step = lambda: [x.add_(0.0) for _ in range(20 * work)]
else:
    a = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
    step = lambda: [a @ a for _ in range(work)]
for _ in range(3):
    step()
torch.cuda.synchronize()
begun, steps = time.perf_counter(), 40
for _ in range(steps):
    step()
    torch.cuda.synchronize()
print(f"steps_per_sec={steps / (time.perf_counter() - begun):.6f}")
"""
RECIPE = """\
nsw: 1
name: pairs-{bound}
app:
  command: {python} steps.py {bound} {{{{ work }}}}
  files: [steps.py]
  figures: {{steps_per_sec: {{regex: 'steps_per_sec=(.*)', unit: steps/s}}}}
matrix: {{work: [100]}}
resources: {{gpus: 1, time: 5m}}
"""
AFTER = (3, 6, 12)


def pairs_of(folder: Path) -> list[tuple[float, float]]:
    """The figure of both sides of each pair, in order."""
    import nsw

    figures = nsw.open(folder).tables.figures
    figures["repeat"] = figures["run"].str.extract(r"\.r(\d+)$").astype(int)
    sides = figures.pivot_table(index="repeat", columns="side", values="value").sort_index()
    return list(zip(sides["before"], sides["after"], strict=True))


def said(pairs: list[tuple[float, float]], floor: Floor) -> str:
    """The verdict of pairs, with its interval."""
    made = estimate_from_pairs([math.log(after / before) for before, after in pairs], floor)
    return f"{made.verdict:12} {log_ratio_to_percent(made.low):+6.2f} to {log_ratio_to_percent(made.high):+6.2f} %"


def main() -> None:
    """Run the campaigns, and print a row a program and change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--bound", choices=("host", "gpu"), action="append")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="nsw-pairs-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    (folder / "steps.py").write_text(PROGRAM)
    for bound in options.bound or ("host", "gpu"):
        recipe = folder / f"{bound}.yaml"
        recipe.write_text(RECIPE.format(bound=bound, python=options.python))
        more = ["--site", "local", "--yes", "--root", str(folder / bound)]
        noise = ["noise", str(recipe), "--pairs", str(options.pairs), *more]
        change = ["run", str(recipe), "--against", "work=100", "--set", "work=105", "--set", f"repeats={options.pairs}"]
        campaigns = []
        for words in (noise, noise, [*change, *more]):
            subprocess.run([sys.executable, "-m", "nsw", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            campaigns.append(max((folder / bound).glob("pairs-*"), key=lambda path: path.stat().st_ctime_ns))
            print(f"{bound}: {json.dumps(pairs_of(campaigns[-1]))}", flush=True)
        kept = json.loads((folder / "state" / "nsw" / "noise.json").read_text())
        (known,) = next(noises for key, noises in kept.items() if key.endswith(f"pairs-{bound}"))
        floor = Floor(known["pair"], known["run"], known["freedom"])
        print(
            f"{bound}: floor: pairs {log_ratio_to_percent(floor.pair):.2f} %,"
            f" runs {log_ratio_to_percent(floor.run):.2f} %"
        )
        for name, campaign in (("A/A", campaigns[0]), ("A/A", campaigns[1]), ("+5 % of work", campaigns[2])):
            measured = pairs_of(campaign)
            for count in AFTER:
                some = measured[:count]
                print(
                    f"{bound:5} {name:13} {count:3} pairs: {said(some, floor)}; without a floor: {said(some, ASSUMED)}"
                )


if __name__ == "__main__":
    main()
