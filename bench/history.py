"""How long `nsw history` takes over many campaigns: cold (nothing is kept) and warm.

    python bench/history.py [--campaigns 500]

Each campaign has 12 cases with 5 figures, 3 runs each; in the second half each case is 4 % slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from whole_commands import NSW, ROOT

sys.path.insert(0, str(ROOT / "tests"))

RECIPE = """\
nsw: 1
name: nightly
app:
  command: 'echo f={{ 1000 * n }} a=1 b=2 c=3 d=4'
  figures:
    f: {regex: 'f=(\\d+)', unit: images/s}
    a: {regex: 'a=(\\d+)', unit: s}
    b: {regex: 'b=(\\d+)', unit: s}
    c: {regex: 'c=(\\d+)', unit: s}
    d: {regex: 'd=(\\d+)', unit: s}
passes: [baseline]
repeats: 3
matrix: {n: {range: [1, 12]}}
resources: {gpus: 0, time: 1m}
"""


def main() -> None:
    from nights import make_nights

    parser = argparse.ArgumentParser()
    parser.add_argument("--campaigns", type=int, default=500)
    count = parser.parse_args().campaigns
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        os.environ |= {"XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
        (home / "r.yaml").write_text(RECIPE)
        subprocess.run([*NSW, "run", "r.yaml", "-s", "local", "--yes"], cwd=home, check=True, capture_output=True)
        rng = np.random.default_rng(0)
        factors = np.exp(0.01 * rng.standard_normal(count)) * np.where(np.arange(count) < count // 2, 1, 0.96)
        make_nights(next((home / "campaigns").iterdir()), list(factors), figure="f")
        for name in ("cold", "warm", "warm"):
            begin, before = time.perf_counter(), os.times()
            done = subprocess.run([*NSW, "history"], cwd=home, check=True, capture_output=True, text=True)
            spent = os.times()
            processor = spent.children_user + spent.children_system - before.children_user - before.children_system
            print(
                f"{count} campaigns, {name}: {time.perf_counter() - begin:.2f} s, {processor:.2f} s of processor time"
            )
        print(done.stdout)


if __name__ == "__main__":
    main()
