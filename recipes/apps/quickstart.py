"""A matrix product, written three ways: something to profile on any machine with Python and numpy.

    python quickstart.py --size 128 --variant rows

prints one line: `variant=rows size=128 repeats=... seconds=... gflops=...`.
"""

from __future__ import annotations

import argparse
import time
from typing import Callable  # noqa: UP035  for a Python older than 3.9

import numpy as np

Matrix = np.ndarray
Product = Callable[[Matrix, Matrix], Matrix]


def multiply_python(a: Matrix, b: Matrix) -> Matrix:
    """Three loops: the interpreter does all the work, one number at a time."""
    rows, columns = a.tolist(), b.T.tolist()
    return np.array([[dot(row, column) for column in columns] for row in rows])


def dot(x: list[float], y: list[float]) -> float:
    """The innermost loop."""
    total = 0.0
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


def multiply_rows(a: Matrix, b: Matrix) -> Matrix:
    """One numpy call a row: the innermost two loops run in compiled code."""
    return np.array([row_times(row, b) for row in a])


def row_times(row: Matrix, b: Matrix) -> Matrix:
    """A vector times a matrix."""
    return row @ b


def multiply_numpy(a: Matrix, b: Matrix) -> Matrix:
    """One numpy call: the library also reuses what it has in the caches."""
    return a @ b


VARIANTS: dict[str, Product] = {"python": multiply_python, "rows": multiply_rows, "numpy": multiply_numpy}


def check(product: Product, a: Matrix, b: Matrix) -> None:
    """A fast wrong answer is worth nothing: compare with numpy's own sum of products."""
    if not np.allclose(product(a, b), np.einsum("ik,kj->ij", a, b)):
        raise SystemExit("error: wrong result")


def measure(product: Product, a: Matrix, b: Matrix, at_least_s: float) -> tuple[int, float]:
    """Repeats the product until the clock can be trusted; how often, and how long it took."""
    # the thread's processor time: what else runs on this computer counts little
    repeats, start = 0, time.thread_time()
    while True:
        product(a, b)
        repeats += 1
        elapsed = time.thread_time() - start
        if elapsed >= at_least_s:
            return repeats, elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128, help="rows and columns of the matrices (%(default)s)")
    parser.add_argument("--variant", choices=VARIANTS, default="numpy")
    parser.add_argument("--seconds", type=float, default=0.2, help="measure at least this long (%(default)s)")
    options = parser.parse_args()

    random = np.random.default_rng(seed=1)
    a, b = random.random((2, options.size, options.size))
    product = VARIANTS[options.variant]
    check(product, a, b)  # also warms up
    repeats, seconds = measure(product, a, b, options.seconds)
    gflops = 2 * options.size**3 * repeats / seconds / 1e9
    timing = f"repeats={repeats} seconds={seconds:.4f} gflops={gflops:.4f}"
    print(f"variant={options.variant} size={options.size} {timing}")


if __name__ == "__main__":
    main()
