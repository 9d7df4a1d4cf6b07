"""How much of a drift pairs cancel: the same program run again and again, its runs called A and B in two ways.

    python bench/gpu/drift.py --measure series.json [--runs 60]   needs a GPU, PyTorch and nvidia-smi
    python bench/gpu/drift.py series.json                         what follows; without a file: of simulated drifts

Nothing changes, so each difference is an error. Blocks: the first runs are A, those after them B, as two campaigns
are. Pairs: each two that follow each other are A and B in random order, as `nsw run --against` runs them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np

SIDE = 10  # runs of each side of a comparison
ORDERS = 200  # random orders of the pairs of each
CLOCKS = "clocks.sm,temperature.gpu,power.draw"


def measure(file: Path, runs: int) -> None:
    """Write the seconds of each run, and the clock (MHz), temperature (°C) and power (W) at its end.

    The GPU is idle at first, and again for some seconds between the programs.
    """
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)

    def products() -> None:
        for _ in range(350):
            a @ a

    def training() -> None:
        for _ in range(250):
            layer(x).sum().backward()

    series: dict[str, list[tuple[float, ...]]] = {}
    for program in (products, training):
        layer(x).sum().backward()
        a @ a
        torch.cuda.synchronize()
        time.sleep(8)
        taken = series[program.__name__] = []
        for _ in range(runs):
            begun = time.perf_counter()
            program()
            torch.cuda.synchronize()
            seconds = time.perf_counter() - begun
            command = ["nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv,noheader,nounits", "-i", "0"]
            state = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            taken.append((seconds, *map(float, state.split(","))))
    file.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "series": series}))


def errors(times: np.ndarray, random: np.random.Generator) -> tuple[float, float]:
    """The differences between A and B in per cent (root mean square over all spans of the series): blocks, pairs."""
    logs = np.log(times)
    blocks, pairs = [], []
    for at in range(len(logs) - 2 * SIDE + 1):
        span = logs[at : at + 2 * SIDE]
        blocks.append(span[SIDE:].mean() - span[:SIDE].mean())
        apart = span[1::2] - span[::2]
        pairs.append((random.choice((-1, 1), (ORDERS, SIDE)) * apart).mean(axis=1))
    return tuple(100 * float(np.sqrt(np.mean(np.square(some)))) for some in (blocks, pairs))  # type: ignore[return-value]


def simulated(random: np.random.Generator, runs: int) -> dict[str, np.ndarray]:
    """Times of runs that scatter by 0.3 %, of machines that drift in several ways."""
    n = np.arange(runs)
    scatter = random.normal(0, 0.003, (3, runs))
    drifts = {
        "simulated: no drift": 0 * n,
        "simulated: 4 % slower while it gets warm (time constant 15 runs)": 0.04 * (1 - np.exp(-n / 15)),
        "simulated: random walk of 0.5 % a run": np.cumsum(random.normal(0, 0.005, runs)),
    }
    return {name: np.exp(drift + noise) for (name, drift), noise in zip(drifts.items(), scatter, strict=True)}


def main() -> None:
    """Measure, or print a row a series."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.runs)
        return
    random = np.random.default_rng(1)
    if options.file is None:
        series = simulated(random, options.runs)
    else:
        data = json.loads(options.file.read_text())
        print(f"{data['gpu']}, PyTorch {data['torch']}")
        rows = {name: np.array(taken) for name, taken in data["series"].items()}
        for name, row in rows.items():
            first, last = row[:5].mean(axis=0), row[-5:].mean(axis=0)
            ends = "; ".join(
                f"{start:.3f} to {end:.3f} {unit}"
                for start, end, unit in zip(first, last, ("s", "MHz", "C", "W"), strict=True)
            )
            print(f"{name}, its first and last 5 of {len(row)} runs: {ends}")
        series = {name: row[:, 0] for name, row in rows.items()}
    print(f"error of {SIDE} runs a side, %: {'series':64}{'blocks':>8}{'pairs':>8}")
    for name, times in series.items():
        blocks, pairs = errors(times, random)
        print(f"{'':31} {name:64}{blocks:8.2f}{pairs:8.2f}")


if __name__ == "__main__":
    main()
