"""How long a trace of PyTorch takes to read, and how much memory: `python bench/kineto.py [MB]` (1000 by default).

Writes a trace of that size (operators, CUDA calls, kernels, copies, memory events, flow arrows; three quarters of an
event is arguments, as in real ones), reads it in a process of its own, prints seconds and peak memory.
"""

# ruff: noqa: E501  events are clearer on one line

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def write(path, megabytes):
    dice = random.Random(1)
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 132}],
        "distributedInfo": {"rank": 0},
    }
    events = 0
    with path.open("w") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        now, separator = 1371624315968.95, ""
        while file.tell() < megabytes * 1_000_000:
            for event in step(dice, now, events):
                file.write(separator + json.dumps(event, indent=1))
                separator, events = ",\n", events + 1
            now += 100.0
        file.write('\n], "traceName": "bench"}\n')
    return events


def step(dice, now, n):
    name = f"aten::op{dice.randrange(80)}"
    dims = [[dice.randrange(512), 3, 224, 224], [64, 3, 7, 7], []]
    args = {
        "External id": n,
        "Sequence number": n,
        "Concrete Inputs": ["", "", "6", "False"],
        "Input Dims": dims,
        "Ev Idx": n,
    }
    kernel = (
        f"void at::native::kernel<{dice.randrange(200)}, float, at::native::Functor<float>>(int, float*, float const*)"
    )
    where = {"External id": n, "device": 0, "context": 1, "stream": 7, "correlation": n}
    shape = {
        "grid": [128, 1, 1],
        "block": [256, 1, 1],
        "blocks per SM": 1.9,
        "est. achieved occupancy %": 47,
        "warps per SM": 8,
    }
    host = {"pid": 9, "tid": 9}
    memory = {"Total Allocated": n, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 139978000000000 + n}
    return [
        {"ph": "X", "cat": "cpu_op", "name": name, **host, "ts": now, "dur": 60.125, "args": args},
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", **host, "ts": now + 5, "dur": 3.5, "args": args | {"External id": n + 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host, "ts": now + 20, "dur": 5.125, "args": {"cbid": 211, "correlation": n}},
        {"ph": "s", "id": n, **host, "ts": now + 20, "cat": "ac2g", "name": "ac2g"},
        {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": now + 30, "dur": 40.5, "args": {**where, **shape}},
        {"ph": "f", "id": n, "pid": 0, "tid": 7, "ts": now + 30, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **host, "ts": now + 6, "args": memory},
    ]  # fmt: skip


def measure(path):
    from nsw.readers.model import Options
    from nsw.readers.pytorch import kineto

    began, cpu = time.perf_counter(), time.process_time()
    report = kineto.read(path, Options())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    size = path.stat().st_size / 1e6
    print(
        f"{size:.0f} MB read in {seconds:.1f} s ({cpu:.1f} s of CPU), peak {peak} MB, {len(report.problems)} problems"
    )


def main():
    if sys.argv[1:2] == ["--read"]:
        measure(Path(sys.argv[2]))
        return
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.pt.trace.json"
        print(f"{write(path, megabytes)} events")
        subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


if __name__ == "__main__":
    main()
