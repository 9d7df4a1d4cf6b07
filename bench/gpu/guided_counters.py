"""What guided counters cost against `ncu --set full` on every kernel, and whether they say the same.

AlexNet, batch 32, 20 steps; needs a GPU, PyTorch, nsys and ncu.

    python bench/gpu/guided_counters.py [--site SITE --sites FILE] [--seconds 480] [--skip 0]

(a) the program alone; (b) `nsw run` of a guided recipe: timeline and counters; (c) ncu --set full on every kernel,
ended after --seconds and scaled by the share of the launches that it reached. All with --clock-control none. Then, over
the kernels that both saw, the means of three metrics weighted by the timeline's times.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = ROOT / "recipes" / "apps" / "train.py"
PROGRAM = ("train.py", "-a", "alexnet", "-b", "32", "--steps", "20")
COMPARED = ("achieved_occupancy", "ipc", "dram_utilization")
RECIPE = f"""\
nsw: 1
name: guided-bench
app: {{command: "{sys.executable} {" ".join(PROGRAM)}", files: [train.py]}}
passes:
  - timeline: {{tool: nsys}}
  - counters: {{tool: ncu, kernels: {{cover: 90%, at_most: 20}}, launches: {{sample: 5}}, clocks: none,
      metrics: [speed_of_light, occupancy, stalls, roofline, ipc]}}
resources: {{gpus: 1, time: 30m}}
"""


def timed(command: list[str], folder: Path, seconds: float | None = None) -> tuple[float, str]:
    """Wall time and output of a command, interrupted after some seconds."""
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    return time.monotonic() - begun, out


def means(launches: list[dict], metrics: list[dict]) -> dict[str, dict[str, float]]:
    """Mean of each compared metric by kernel (mangled or full name)."""
    names = {row["launch_id"]: row["mangled_name"] or row["kernel"] for row in launches}
    found: dict[str, dict[str, list[float]]] = {}
    for row in metrics:
        if row.get("portable") in COMPARED and row.get("portable_value") is not None:
            values = found.setdefault(names[row["launch_id"]], {})
            values.setdefault(row["portable"], []).append(row["portable_value"])
    return {kernel: {m: sum(v) / len(v) for m, v in of.items()} for kernel, of in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", default="local")
    parser.add_argument("--sites")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--skip", type=int, default=0, help="launches that (c) passes over, to reach the steady state")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nsw-bench-"))
    (folder / "train.py").write_bytes(APP.read_bytes())
    (folder / "recipe.yaml").write_text(RECIPE)

    bare, said = timed([sys.executable, *PROGRAM], folder)
    print(f"(a) bare: {bare:.1f} s  {said.strip().splitlines()[-1]}", flush=True)

    sites = ["--sites", options.sites] if options.sites else []
    nsw = [sys.executable, "-m", "nsw", "run", "recipe.yaml", "--site", options.site, *sites, "--yes", "--root", "out"]
    guided, said = timed(nsw, folder)
    print(said)
    print(f"(b) guided: {guided:.1f} s", flush=True)

    skip = ["--launch-skip", str(options.skip)] if options.skip else []
    ncu = ["ncu", "--set", "full", "--clock-control", "none", *skip, "-f", "-o", "full", sys.executable, *PROGRAM]
    full, said = timed(ncu, folder, options.seconds)
    reached = len(re.findall(r"^==PROF== Profiling .*100%", said, re.MULTILINE))
    compare(folder, reached, bare, guided, full)


def compare(folder: Path, reached: int, bare: float, guided: float, full: float) -> None:
    import nsw
    from nsw.readers import read
    from nsw.service.kernel_choice import _kernels
    from nsw.tables import rows

    campaign = next(path for path in (folder / "out").iterdir() if not path.name.startswith("."))
    run = next((campaign / "reports").glob("*.timeline.r1"))
    trace = _kernels(run)
    times: dict[str, float] = {}
    for row in trace:
        for name in {row["mangled_name"], row["name"]} - {None}:
            times[name] = times.get(name, 0) + row["duration_ns"]
    scaled = bare + (full - bare) * len(trace) / max(reached, 1)
    print(
        f"(c) full: {full:.1f} s for {reached} of {len(trace)} launches;"
        f" scaled {scaled:.0f} s; (b)/(c) = {guided / scaled:.4f}"
    )

    tables = nsw.open(str(campaign)).tables
    mine = means(tables.launches.to_dict("records"), tables.metrics.to_dict("records"))
    printed = folder / "full.raw.csv"
    with printed.open("w") as out:
        subprocess.run(["ncu", "--import", "full.ncu-rep", "--page", "raw", "--csv", "--print-units", "base",
                        "--rename-kernels", "off"], cwd=folder, stdout=out, check=True)  # fmt: skip
    report = read(printed)
    theirs = means(list(rows("launches", report.tables["launches"])), list(rows("metrics", report.tables["metrics"])))
    both = sorted(set(mine) & set(theirs), key=lambda name: -times.get(name, 0))
    share = sum(times.get(name, 0) for name in both) / sum(row["duration_ns"] for row in trace)
    print(f"kernels: guided {len(mine)}, full {len(theirs)}, both {len(both)} ({share:.1%} of the GPU time of kernels)")
    for metric in COMPARED:
        some = [name for name in both if metric in mine[name] and metric in theirs[name]]
        weight = sum(times.get(name, 0) for name in some)
        b, c = (sum(of[n][metric] * times.get(n, 0) for n in some) / weight if weight else 0 for of in (mine, theirs))
        print(f"{metric:20} guided {b:8.3f}  full {c:8.3f}  difference {100 * (b / c - 1) if c else 0:+.2f} %")
    if keep := os.environ.get("OUT"):
        subprocess.run(["cp", str(printed), keep], check=False)


if __name__ == "__main__":
    main()
