"""What the programs in PyTorch and JAX share: a table of cases, and how they are run.

PROGRAM list
PROGRAM time STEPS CASE...    milliseconds a step, after three steps to warm up
PROGRAM run STEPS CASE        once, to be traced; DIAGNOSIS_LOCK: a file that one program at a time holds;
                              DIAGNOSIS_MARKED: an NVTX range a step
"""

import contextlib
import fcntl
import gc
import os
import sys
import time

import torch

CASES = {}


def case(name, *settings):
    """Registers a case: its function gets `settings`, and returns what a step does."""

    def register(make):
        CASES[name] = (make, settings)
        return make

    return register


def run_cases():
    """Run what the arguments say."""
    how, *rest = sys.argv[1:] or ["list"]
    if how == "list":
        print("\n".join(CASES))
        return
    if path := os.environ.get("DIAGNOSIS_LOCK"):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    steps, names = int(rest[0]), rest[1:]
    marked = "DIAGNOSIS_MARKED" in os.environ
    torch.manual_seed(0)
    for name in names:
        make, settings = CASES[name]
        step = None
        try:
            step = make(*settings)
            for index in range(0 if how == "run" else 3):
                step(index)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for index in range(steps):
                with torch.cuda.nvtx.range("step") if marked else contextlib.nullcontext():
                    step(index)
            torch.cuda.synchronize()
            print(f"time {name} {(time.perf_counter() - begun) / steps * 1e3:.6f}", flush=True)
        except Exception as fault:  # the others go on
            print(f"failed {name} {type(fault).__name__}: {fault}", flush=True)
            if how == "run":
                raise
        finally:
            getattr(step, "end", lambda: None)()
        step = None
        gc.collect()
        torch.cuda.empty_cache()
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = True
