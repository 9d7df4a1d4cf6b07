"""Steps of an LSTM cell whose products of matrices are made one by one, or stacked: what do fewer, larger calls bring?

    python lstm.py --gemms 8 --hidden 512 --batch 64

A step has four gates, and each is `W x + R h`: eight products of hidden x hidden matrices with `batch` columns, or
two of the four matrices on top of each other. Prints one line: `gemms=... hidden=... batch=... steps_per_sec=...`.
Steps are marked with NVTX ranges. Without a GPU it runs on the CPU. Needs PyTorch and nothing else.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

GATES = 4  # input, forget, output, cell


def eight(weights: Tensor, columns: Tensor, out: Tensor) -> None:
    """A product for each gate; half of a step's eight."""
    for gate in range(GATES):
        torch.mm(weights[gate], columns, out=out[gate])


def two(weights: Tensor, columns: Tensor, out: Tensor) -> None:
    """One product for all gates: the same memory, seen as one tall matrix."""
    torch.mm(weights.flatten(0, 1), columns, out=out.view(-1, columns.shape[1]))


PRODUCTS: dict[int, Callable[[Tensor, Tensor, Tensor], None]] = {8: eight, 2: two}


class Cell:
    """Weights and state of the cell on one device."""

    def __init__(self, hidden: int, batch: int, device: torch.device) -> None:
        torch.manual_seed(1)
        self.of_input, self.of_state = torch.randn(2, GATES, hidden, hidden, device=device) / hidden**0.5
        self.state, self.memory = torch.zeros(2, hidden, batch, device=device)
        self.left, self.right = torch.empty(2, GATES, hidden, batch, device=device)

    def step(self, product: Callable[[Tensor, Tensor, Tensor], None], x: Tensor) -> Tensor:
        product(self.of_input, x, self.left)
        product(self.of_state, self.state, self.right)
        gates = self.left + self.right
        let_in, keep, let_out = gates[:3].sigmoid()
        self.memory = keep * self.memory + let_in * gates[3].tanh()
        self.state = let_out * self.memory.tanh()
        return self.state


def check(hidden: int, batch: int, device: torch.device, x: Tensor) -> None:
    """Both ways must give the same state."""
    states = [Cell(hidden, batch, device).step(product, x) for product in PRODUCTS.values()]
    if not torch.allclose(*states, atol=1e-4):
        raise SystemExit("error: wrong result")


def measure(step: Callable[[], Tensor], steps: int, device: torch.device) -> float:
    """Seconds of a step, after a tenth of them as warm-up."""
    on_gpu = device.type == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    start = 0.0
    for number in range(-(steps // 10), steps):
        if number == 0:
            wait()
            start = time.perf_counter()
        with torch.cuda.nvtx.range("step") if on_gpu else nullcontext():
            step()
    wait()
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemms", type=int, choices=PRODUCTS, default=8, help="products a step (%(default)s)")
    parser.add_argument("--hidden", type=int, default=512, help="width of the layer (%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="columns: sequences at a time (%(default)s)")
    parser.add_argument("--steps", type=int, default=500, help="steps that are timed (%(default)s)")
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(options.hidden, options.batch, device=device)
    check(options.hidden, options.batch, device, x)
    cell = Cell(options.hidden, options.batch, device)
    seconds = measure(lambda: cell.step(PRODUCTS[options.gemms], x), options.steps, device)
    print(f"gemms={options.gemms} hidden={options.hidden} batch={options.batch} steps_per_sec={1 / seconds:.1f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
