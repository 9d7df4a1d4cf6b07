"""Trains a network of two layers on synthetic digits: how fast it learns, and how long an iteration takes by its parts.

    python digits.py --hidden 512 --rate 1 --epochs 10
    torchrun --nproc_per_node=2 digits.py --batch 3000

Of several processes each has its part of a batch, and gradients are summed through the host.
Prints one line: precision=... loss=... seconds=... iteration_ms=... p_flops=..., and with several processes p_pci=...
and p_mpi=...: TFLOP/s of the products of matrices, GB/s of copies and reductions of the gradients. The parts of an
iteration are marked with NVTX ranges, and the GPU is waited for at the end of each. Needs PyTorch and nothing else.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

PIXELS, CLASSES = 28 * 28, 10
TRAINING, TEST = 60_000, 10_000  # images, as many as MNIST has
COMPUTING = ("forward GEMM 1", "forward GEMM 2", "backward GEMM 1", "backward GEMM 3")
COPYING = ("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice")
REDUCING = "MPI_Allreduce"
DECAY = 1e-4  # of the weights


def digits(count: int) -> tuple[Tensor, Tensor]:
    """Images, a column each, and their labels: each label is written in several ways, with noise."""
    features, ways = 12, 20
    styles = torch.randn(CLASSES * ways, features)
    ink = torch.randn(PIXELS, features)
    style = torch.randint(CLASSES * ways, (count,))
    drawn = styles[style] + 0.4 * torch.randn(count, features)
    return (ink @ drawn.T / 3).clamp(0, 1), style % CLASSES


class Clock:
    """Times the parts of an iteration, each until the GPU is done with it."""

    def __init__(self, device: torch.device) -> None:
        self.on_gpu = device.type == "cuda"
        self.times: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        if self.on_gpu:
            torch.cuda.nvtx.range_push(part)
        start = time.perf_counter()
        yield
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.nvtx.range_pop()
        self.times[part].append(time.perf_counter() - start)

    def seconds(self, *parts: str) -> float:
        """What the parts take in an iteration: the sum of their medians."""
        return sum(median(self.times[part]) for part in parts)


class Network:
    """Two layers, their gradients and the training step; all parameters are views of one vector."""

    def __init__(self, hidden: int, clock: Clock, device: torch.device) -> None:
        sizes = [hidden * PIXELS, hidden, CLASSES * hidden, CLASSES]
        self.shapes = [(hidden, PIXELS), (hidden, 1), (CLASSES, hidden), (CLASSES, 1)]
        drawn = [torch.randn(shape) / max(shape[1] ** 0.5, 10) for shape in self.shapes]
        self.parameters = torch.cat([part.flatten() for part in drawn]).to(device)
        self.gradients = torch.zeros_like(self.parameters)
        self.on_host = torch.zeros(sum(sizes))
        views = [
            [part.view(shape) for part, shape in zip(flat.split(sizes), self.shapes, strict=True)]
            for flat in (self.parameters, self.gradients)
        ]
        (self.w1, self.b1, self.w2, self.b2), (self.dw1, self.db1, self.dw2, self.db2) = views
        self.clock, self.device = clock, device

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer, and each label's probability."""
        with self.clock("forward GEMM 1"):
            product = self.w1 @ images
        hidden = torch.sigmoid(product + self.b1)
        with self.clock("forward GEMM 2"):
            product = self.w2 @ hidden
        return hidden, torch.softmax(product + self.b2, dim=0)

    def backward(self, images: Tensor, hidden: Tensor, error: Tensor) -> None:
        """The gradients of this process's images."""
        with self.clock("backward GEMM 1"):
            torch.mm(error, hidden.T, out=self.dw2)
        with self.clock("backward GEMM 2"):
            product = self.w2.T @ error
        error_before = product * hidden * (1 - hidden)
        with self.clock("backward GEMM 3"):
            torch.mm(error_before, images.T, out=self.dw1)
        torch.sum(error, 1, keepdim=True, out=self.db2)
        torch.sum(error_before, 1, keepdim=True, out=self.db1)

    def reduce(self) -> None:
        """Gradients of all processes, through the host, as programs do whose MPI knows nothing of GPUs."""
        with self.clock(COPYING[0]):
            self.on_host.copy_(self.gradients)
        with self.clock(REDUCING):
            dist.all_reduce(self.on_host)
        with self.clock(COPYING[1]):
            self.gradients.copy_(self.on_host)

    def train(self, images: Tensor, labels: Tensor, rate: float, processes: int) -> None:
        """One iteration; images and labels are this process's part of the batch, on the host."""
        with self.clock("batch iteration"):
            with self.clock("copying images host -> device"):
                images, labels = images.to(self.device), labels.to(self.device)
            hidden, probabilities = self.forward(images)
            error = probabilities.clone()
            error[labels, torch.arange(len(labels), device=self.device)] -= 1
            self.backward(images, hidden, error / (len(labels) * processes))
            if processes > 1:
                self.reduce()
            with self.clock("step"):
                self.parameters -= rate * (self.gradients + DECAY * self.parameters)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=512, help="width of the hidden layer (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="learning rate (%(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="how often each image is seen (%(default)s)")
    parser.add_argument("--batch", type=int, default=1000, help="images an iteration, of all processes (%(default)s)")
    return parser.parse_args()


def main() -> None:
    options = parse()
    rank, processes = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    if processes > 1:
        dist.init_process_group("gloo")

    torch.manual_seed(1)
    images, labels = digits(TRAINING + TEST)
    batches = [
        (images[:, part].contiguous(), labels[part])
        for part in (batch.chunk(processes)[rank] for batch in torch.arange(TRAINING).split(options.batch))
    ]
    clock = Clock(device)
    network = Network(options.hidden, clock, device)
    start = time.perf_counter()
    for _ in range(options.epochs):
        for some, their_labels in batches:
            network.train(some, their_labels, options.rate, processes)
    seconds = time.perf_counter() - start

    _, probabilities = network.forward(images[:, TRAINING:].to(device))
    truth = labels[TRAINING:].to(device)
    precision = (probabilities.argmax(0) == truth).float().mean().item()
    loss = torch.nn.functional.nll_loss(probabilities.T.clamp_min(1e-30).log(), truth).item()
    flop = 4 * options.batch / processes * options.hidden * (PIXELS + CLASSES)
    line = (
        f"precision={precision:.4f} loss={loss:.4f} seconds={seconds:.3f} "
        f"iteration_ms={1e3 * clock.seconds('batch iteration'):.3f} "
        f"p_flops={flop / clock.seconds(*COMPUTING) / 1e12:.4f}"
    )
    if processes > 1:
        size = 2 * 4 * len(network.gradients)  # bytes there and back
        line += f" p_pci={size / clock.seconds(*COPYING) / 1e9:.3f} p_mpi={size / clock.seconds(REDUCING) / 1e9:.3f}"
        dist.destroy_process_group()
    if rank == 0:
        print(line)


if __name__ == "__main__":
    main()
