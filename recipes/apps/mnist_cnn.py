"""Trains a small CNN on synthetic images of 28 x 28, on the CPU: a program to profile the host's side with.

    python mnist_cnn.py --layout channels_last

The network is that of Keras' example mnist_cnn.py. Prints one line:
`threads=... layout=... images_per_sec=... loss=...`. Needs PyTorch and nothing else.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}


def network() -> nn.Module:
    """Two convolutions, pooling, two dense layers."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-b", "--batch", type=int, default=128, help="images a step (%(default)s)")
    parser.add_argument("--steps", type=int, default=30, help="training steps, warm-up included (%(default)s)")
    parser.add_argument("--warmup", type=int, default=5, help="steps before the clock starts (%(default)s)")
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="nchw", help="order of an image's numbers in memory (%(default)s)"
    )
    options = parser.parse_args()
    if not 0 <= options.warmup < options.steps:
        parser.error("--steps must be more than --warmup")

    torch.manual_seed(1)
    layout = LAYOUTS[options.layout]
    net = network().to(memory_format=layout)
    optimizer = torch.optim.Adadelta(net.parameters())
    loss_of = nn.CrossEntropyLoss()
    images = torch.rand(options.batch, 1, 28, 28).to(memory_format=layout)
    labels = torch.randint(10, (options.batch,))
    start = 0.0
    for step in range(options.steps):
        if step == options.warmup:
            start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
    images_per_sec = options.batch * (options.steps - options.warmup) / (time.perf_counter() - start)
    print(
        f"threads={torch.get_num_threads()} layout={options.layout} "
        f"images_per_sec={images_per_sec:.1f} loss={loss.item():.4f}"
    )


if __name__ == "__main__":
    main()
