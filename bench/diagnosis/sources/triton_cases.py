"""Kernels in Triton with one illness each; NAME.cured is the same work without it. Arguments are those of harness.h."""

import fcntl
import os
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_columns(x, y, out, rows, columns, BLOCK: tl.constexpr):  # neighbours in a program are rows: far apart
    column = tl.program_id(0)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row * columns + column
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


@triton.jit
def add_rows(x, y, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * columns + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


@triton.jit
def softmax_double(x, out, columns: tl.constexpr):  # computes in double, of floats
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    values = tl.load(x + at).to(tl.float64)
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, (values / tl.sum(values, 0)).to(tl.float32))


@triton.jit
def softmax(x, out, columns: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    values = tl.load(x + at)
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, values / tl.sum(values, 0))


@triton.jit
def layer(a, b, c, n, DOT: tl.constexpr):  # a product of halves, as sums of FMA (ill) or on tensor cores (cured)
    row = tl.program_id(0) * 64 + tl.arange(0, 64)
    column = tl.program_id(1) * 64 + tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, n, 16):
        inner = k + tl.arange(0, 16)
        u = tl.load(a + row[:, None] * n + inner[None, :])
        v = tl.load(b + inner[:, None] * n + column[None, :])
        if DOT:
            total += tl.dot(u, v)
        else:
            total += tl.sum(u.to(tl.float32)[:, :, None] * v.to(tl.float32)[None, :, :], 1)
    tl.store(c + row[:, None] * n + column[None, :], total)


@triton.jit
def rows_scaled(x, y, columns: tl.constexpr):  # healthy: rows by their norm, 16 bytes a thread
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    values = tl.load(x + at)
    tl.store(y + at, values * tl.rsqrt(tl.sum(values * values, 0) / columns + 1e-6))


def case(name):
    halves = [torch.randn(2048, 2048, device="cuda", dtype=torch.half) for _ in range(2)]
    a, b, c = (torch.rand(8192, 4096, device="cuda") for _ in range(3))
    return {
        "add-columns": lambda: add_columns[4096, 8](a, b, c, 8192, 4096, BLOCK=1024),
        "add-columns.cured": lambda: add_rows[8192, 4](a, b, c, 8192, 4096, BLOCK=1024),
        "softmax-double": lambda: softmax_double[8192,](a, c, columns=4096),
        "softmax-double.cured": lambda: softmax[8192,](a, c, columns=4096),
        "layer-by-sums": lambda: layer[32, 32](*halves, c, 2048, DOT=False),
        "layer-by-sums.cured": lambda: layer[32, 32](*halves, c, 2048, DOT=True),
        "rows-scaled": lambda: rows_scaled[8192,](a, c, columns=4096),
    }[name]


def main():
    how, *rest = sys.argv[1:] or ["list"]
    if path := os.environ.get("DIAGNOSIS_LOCK"):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    steps, names = (1, rest) if how == "once" else (int(rest[0]), rest[1:])
    for name in names:
        step = case(name)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        if how == "once":
            torch.cuda.profiler.start()
            step()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            print(f"launches {name} 1", flush=True)
            continue
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(steps):
            step()
        end.record()
        torch.cuda.synchronize()
        print(f"time {name} {begin.elapsed_time(end) / steps:.6f}", flush=True)


if __name__ == "__main__":
    main()
