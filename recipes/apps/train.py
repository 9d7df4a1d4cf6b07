"""Trains a network on synthetic images, on one GPU or several (DDP): a program to profile.

    python train.py -a alexnet -b 32 --steps 20
    torchrun --nproc_per_node=4 train.py -b 32 --steps 20

Prints one line: `arch=... gpus=... batch=... images_per_sec=... loss=...`. The batch is per GPU; images/s is
the sum over all GPUs, timed after the warm-up steps. Each step is marked with NVTX ranges: step, copy,
forward, backward, optim. Without a GPU it trains on the CPU, with no ranges. Needs PyTorch and nothing else.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMAGE = 224  # pixels a side
CLASSES = 1000


# --- The networks, as published, less what only training for real needs (weight initialisation)


def conv(channels: int, out: int, kernel: int, stride: int = 1, padding: int = 0) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, kernel, stride, padding), nn.ReLU(inplace=True)]


def linear(features: int, out: int) -> list[nn.Module]:
    return [nn.Linear(features, out), nn.ReLU(inplace=True)]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), *linear(3 * IMAGE * IMAGE, 512), *linear(512, 512), nn.Linear(512, CLASSES)
    )  # fmt: skip


def lenet() -> nn.Module:
    """LeCun et al. 1998, on larger images: the last pooling brings them down to its 5 x 5."""
    return nn.Sequential(
        *conv(3, 6, 5), nn.MaxPool2d(2),
        *conv(6, 16, 5), nn.AdaptiveAvgPool2d(5),
        nn.Flatten(), *linear(16 * 5 * 5, 120), *linear(120, 84), nn.Linear(84, CLASSES),
    )  # fmt: skip


def alexnet() -> nn.Module:
    """Krizhevsky 2014 ("one weird trick"), as in torchvision."""
    return nn.Sequential(
        *conv(3, 64, 11, stride=4, padding=2), nn.MaxPool2d(3, 2),
        *conv(64, 192, 5, padding=2), nn.MaxPool2d(3, 2),
        *conv(192, 384, 3, padding=1), *conv(384, 256, 3, padding=1), *conv(256, 256, 3, padding=1),
        nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), *linear(256 * 6 * 6, 4096), nn.Dropout(), *linear(4096, 4096), nn.Linear(4096, CLASSES),
    )  # fmt: skip


def vgg(*depths: int) -> nn.Module:
    """Simonyan and Zisserman 2015, with so many convolutions before each pooling."""
    layers: list[nn.Module] = []
    channels = 3
    for out, depth in zip((64, 128, 256, 512, 512), depths, strict=True):
        for _ in range(depth):
            layers += conv(channels, out, 3, padding=1)
            channels = out
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *layers, nn.Flatten(), *linear(512 * 7 * 7, 4096), nn.Dropout(),
        *linear(4096, 4096), nn.Dropout(), nn.Linear(4096, CLASSES),
    )  # fmt: skip


class Bottleneck(nn.Module):
    """A block of ResNet: 1x1, 3x3, 1x1, and a way around."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        same = stride == 1 and channels == out
        self.around = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.around(x))


def resnet50() -> nn.Module:
    """He et al. 2016, with the stride in the 3x3 convolution."""
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(depth):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "mlp": mlp,
    "lenet": lenet,
    "alexnet": alexnet,
    "vgg11": lambda: vgg(1, 1, 2, 2, 2),
    "vgg16": lambda: vgg(2, 2, 3, 3, 3),
    "resnet50": resnet50,
}


# --- Training


class Trainer:
    """The network, its optimiser and one batch, on one device."""

    def __init__(self, options: argparse.Namespace, device: torch.device, gpus: int) -> None:
        self.device = device
        self.amp = options.precision == "amp"
        net = NETWORKS[options.arch]().to(device)
        on_gpu = device.type == "cuda"
        if gpus > 1:
            net = nn.parallel.DistributedDataParallel(net, device_ids=[device.index] if on_gpu else None)
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
        self.loss = nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp and on_gpu)
        # pinned, so that the copy to the GPU overlaps with what the CPU does meanwhile
        self.images = torch.randn(options.batch, 3, IMAGE, IMAGE, pin_memory=on_gpu)
        self.labels = torch.randint(0, CLASSES, (options.batch,), pin_memory=on_gpu)

    def step(self) -> Tensor:
        with self.range("step"):
            with self.range("copy"):
                images = self.images.to(self.device, non_blocking=True)
                labels = self.labels.to(self.device, non_blocking=True)
            with self.range("forward"), torch.autocast(self.device.type, enabled=self.amp):
                loss = self.loss(self.net(images), labels)
            with self.range("backward"):
                self.optimizer.zero_grad()
                self.scaler.scale(loss).backward()
            with self.range("optim"):
                self.scaler.step(self.optimizer)
                self.scaler.update()
        return loss

    def range(self, name: str) -> AbstractContextManager[None]:
        """An NVTX range on the GPU's timeline."""
        return torch.cuda.nvtx.range(name) if self.device.type == "cuda" else nullcontext()

    def wait(self) -> None:
        """GPU work is asynchronous: wait for it before looking at the clock."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def train(trainer: Trainer, steps: int, warmup: int) -> tuple[float, Tensor]:
    """All steps; seconds that those after the warm-up took, and the last loss."""
    start = 0.0
    for step in range(steps):
        if step == warmup:
            trainer.wait()
            start = time.perf_counter()
        loss = trainer.step()
    trainer.wait()
    return time.perf_counter() - start, loss


@contextmanager
def torch_profiler(*, wanted: bool, rank: int) -> Iterator[None]:
    """PyTorch's own profiler: a table on the terminal, a trace in torch-trace-RANK.json."""
    if not wanted:
        yield
        return
    with torch.profiler.profile() as profile:
        yield
    profile.export_chrome_trace(f"torch-trace-{rank}.json")
    if rank == 0:
        print(profile.key_averages().table(row_limit=15))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-a", "--arch", choices=NETWORKS, default="alexnet")
    parser.add_argument("-b", "--batch", type=int, default=32, help="images per GPU and step (%(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="training steps, warm-up included (%(default)s)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the clock starts (%(default)s)")
    parser.add_argument(
        "--precision",
        choices=["default", "fp32", "amp"],
        default="default",
        help="default: PyTorch's, TF32 in convolutions; fp32: no TF32; amp: automatic mixed precision (%(default)s)",
    )
    parser.add_argument("--profile", choices=["torch"], help="profile with PyTorch's profiler")
    options = parser.parse_args()
    if not 0 <= options.warmup < options.steps:
        parser.error("--steps must be more than --warmup")
    return options


def main() -> None:
    options = parse()
    torch.manual_seed(1)
    if options.precision == "fp32":
        torch.backends.cudnn.allow_tf32 = False  # products of matrices use TF32 only where a program asks for it
    # torchrun tells each process who it is
    rank, gpus = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    if gpus > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    trainer = Trainer(options, device, gpus)
    with torch_profiler(wanted=options.profile == "torch", rank=rank):
        seconds, loss = train(trainer, options.steps, options.warmup)

    images_per_sec = options.batch * gpus * (options.steps - options.warmup) / seconds
    if rank == 0:
        print(
            f"arch={options.arch} gpus={gpus} batch={options.batch} "
            f"images_per_sec={images_per_sec:.1f} loss={loss.item():.4f}"
        )
    if gpus > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
