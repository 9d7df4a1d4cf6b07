"""What guided counters cost against `ncu --set full` on every kernel, and whether they say the same.

AlexNet, batch 32, 20 steps; needs a GPU, PyTorch, nsys and ncu.

    python bench/gpu/guided_counters.py [--site SITE --sites FILE] [--launches 127] [--skip 635]

A machine that is lent for less time does it in parts, in one folder: --folder F --parts ab, then --folder F --parts c.

(a) the program alone; (b) `nsw run` of a recipe with the default `counters:`; (c) ncu --set full on every kernel,
ended after --launches (127, a step, take some 4 minutes) and scaled by the share of the launches that it
reached. All with --clock-control none. Then, over the kernels that both saw, the means of three metrics weighted by the
timeline's times.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = ROOT / "recipes" / "apps" / "train.py"
PROGRAM = ("train.py", "-a", "alexnet", "-b", "32", "--steps", "20")
COMPARED = ("achieved_occupancy", "dram_utilization", "tex_cache_hit_rate")
RECIPE = f"""\
nsw: 1
name: guided-bench
app: {{command: "{sys.executable} {" ".join(PROGRAM)}", files: [train.py]}}
passes:
  - timeline: {{tool: nsys}}
  - counters: {{tool: ncu, clocks: none}}
resources: {{gpus: 1, time: 30m}}
"""


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """Wall time and output of a command."""
    begun = time.monotonic()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit status {done.returncode}")
    return time.monotonic() - begun, done.stdout


def squeezed(name: str) -> str:
    """A kernel's name without spaces, which the profilers put at different places."""
    return "".join(name.split())


def means(launches: list[dict], metrics: list[dict], times: dict[tuple, float]) -> dict[str, dict[str, float]]:
    """Each compared metric by kernel: means by launch shape, weighted by the timeline's times."""
    keys = {row["launch_id"]: (squeezed(row["kernel"]), row["grid"], row["block_size"]) for row in launches}
    found: dict[tuple, dict[str, list[float]]] = {}
    for row in metrics:
        if row.get("portable") in COMPARED and row.get("portable_value") is not None:
            found.setdefault(keys[row["launch_id"]], {}).setdefault(row["portable"], []).append(row["portable_value"])
    result: dict[str, dict[str, float]] = {}
    for kernel in {key[0] for key in found}:
        shapes = [(times.get(key, 0), of) for key, of in found.items() if key[0] == kernel]
        for metric in COMPARED:
            some = [(time, sum(of[metric]) / len(of[metric])) for time, of in shapes if metric in of]
            if (weight := sum(time for time, _ in some)) > 0:
                result.setdefault(kernel, {})[metric] = sum(time * value for time, value in some) / weight
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", default="local")
    parser.add_argument("--sites")
    parser.add_argument("--launches", type=int, default=127, help="launches that (c) measures")
    parser.add_argument("--skip", type=int, default=635, help="launches that (c) passes over, to the sixth step")
    parser.add_argument("--folder", type=Path, help="where everything is kept; by default a new one")
    parser.add_argument("--parts", default="abc", help="which of (a), (b), (c); what the others took is in the folder")
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="nsw-bench-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_bytes(APP.read_bytes())
    (folder / "recipe.yaml").write_text(RECIPE)
    kept = folder / "times.json"
    took: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    if "a" in options.parts:
        took["bare"], said = timed([sys.executable, *PROGRAM], folder)
        print(f"(a) bare: {took['bare']:.1f} s  {said.strip().splitlines()[-1]}", flush=True)
    if "b" in options.parts:
        sites = ["--sites", options.sites] if options.sites else []
        nsw = [sys.executable, "-m", "nsw", "run", "recipe.yaml", "--site", options.site, *sites, "--yes"]
        took["guided"], said = timed([*nsw, "--root", "out"], folder)
        print(said)
        print(f"(b) guided: {took['guided']:.1f} s", flush=True)
    if "c" in options.parts:
        some = ["--launch-skip", str(options.skip), "--launch-count", str(options.launches)]
        ncu = ["ncu", "--set", "full", "--clock-control", "none", *some, "-f", "-o", "full", sys.executable, *PROGRAM]
        took["full"], said = timed(ncu, folder)
        took["reached"] = len(re.findall(r"^==PROF== Profiling .*100%", said, re.MULTILINE))
        print(f"(c) full: {took['full']:.1f} s, {took['reached']} launches, from launch {options.skip} on", flush=True)
        export(folder)
    kept.write_text(json.dumps(took))
    if {"bare", "guided", "full"} <= set(took):
        compare(folder, int(took["reached"]), took["bare"], took["guided"], took["full"])


def export(folder: Path) -> None:
    """The raw page of (c), beside its report and under $OUT where that is set."""
    printed = folder / "full.raw.csv"
    with printed.open("w") as out:
        subprocess.run(["ncu", "--import", "full.ncu-rep", "--page", "raw", "--csv", "--print-units", "base",
                        "--rename-kernels", "off"], cwd=folder, stdout=out, check=True)  # fmt: skip
    if keep := os.environ.get("OUT"):
        (Path(keep) / "full.raw.csv.gz").write_bytes(gzip.compress(printed.read_bytes()))


def kernels_of(run: Path) -> list[dict]:
    """The kernels of a timeline."""
    from nsw.readers.detect import read
    from nsw.readers.model import Options
    from nsw.tables import full_rows

    report = read(next(run.glob("timeline*.nsys-rep")), Options(tables=frozenset({"gpu_trace"})))
    return [row for row in full_rows("gpu_trace", report.tables["gpu_trace"]) if row["kind"] == "kernel"]


def compare(folder: Path, reached: int, bare: float, guided: float, full: float) -> None:
    import nsw
    from nsw.readers import read
    from nsw.tables import full_rows

    campaign = next(path for path in (folder / "out").iterdir() if not path.name.startswith("."))
    run = next((campaign / "reports").glob("*.timeline.r1"))
    trace = kernels_of(run)
    times: dict[str | tuple, float] = {}  # by kernel, and by kernel and shape
    for row in trace:
        shape = tuple(f"({', '.join(str(row[f'{part}_{axis}']) for axis in 'xyz')})" for part in ("grid", "block"))
        name = squeezed(row["name"])
        for key in (name, (name, *shape)):
            times[key] = times.get(key, 0) + row["duration_ns"]
    scaled = bare + (full - bare) * len(trace) / max(reached, 1)
    print(
        f"(c) full: {full:.1f} s for {reached} of {len(trace)} launches ({reached / len(trace):.1%});"
        f" scaled to all {scaled:.0f} s; (b)/(c) = {guided / full:.4f} as stopped, {guided / scaled:.4f} scaled"
    )

    tables = nsw.open(str(campaign)).tables
    mine = means(tables.launches.to_dict("records"), tables.metrics.to_dict("records"), times)
    report = read(folder / "full.raw.csv")
    theirs = means(*(list(full_rows(name, report.tables[name])) for name in ("launches", "metrics")), times)
    both = sorted(set(mine) & set(theirs), key=lambda name: -times.get(name, 0))
    share = sum(times.get(name, 0) for name in both) / sum(row["duration_ns"] for row in trace)
    print(f"kernels: guided {len(mine)}, full {len(theirs)}, both {len(both)} ({share:.1%} of the GPU time of kernels)")
    for metric in COMPARED:
        some = [name for name in both if metric in mine[name] and metric in theirs[name]]
        weight = sum(times.get(name, 0) for name in some)
        b, c = (sum(of[n][metric] * times.get(n, 0) for n in some) / weight if weight else 0 for of in (mine, theirs))
        print(f"{metric:20} guided {b:8.3f}  full {c:8.3f}  difference {100 * (b / c - 1) if c else 0:+.2f} %")


if __name__ == "__main__":
    main()
