"""The second part's PyTorch programs: one illness each, or none. NAME.cured is the same work without it.

second_torch.py list
second_torch.py time STEPS CASE...    milliseconds a step, after three steps to warm up
second_torch.py run STEPS CASE        once, to be traced; DIAGNOSIS_LOCK: a file that one program at a time holds
"""

import fcntl
import gc
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CASES = {}


def case(name, *settings):
    """Registers a case: its function gets `settings`, and returns what a step does."""

    def register(make):
        CASES[name] = (make, settings)
        return make

    return register


# ---- a model of speech: spectra are made from waves by NumPy, in the process (ill) or by workers (cured)


class Waves(Dataset):
    """Spectra of waves."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        wave = np.random.default_rng(index).standard_normal(12_000).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 512)[::128] * np.hanning(512).astype(np.float32)
        return np.log1p(np.abs(np.fft.rfft(frames, axis=1))).astype(np.float32)[:88], index % 40


@case("spectra", 0)
@case("spectra.cured", 8)
def spectra(workers):
    """Trains a recogniser."""
    model = nn.Sequential(
        nn.Conv1d(257, 512, 5, 2), nn.ReLU(), nn.Conv1d(512, 512, 5, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(40)
    ).cuda()
    model(torch.zeros(1, 257, 88, device="cuda"))
    extra = {"num_workers": workers, "persistent_workers": True, "prefetch_factor": 4} if workers else {}
    batches = iter(DataLoader(Waves(), 48, pin_memory=True, **extra))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, foreach=True)

    def step(index):
        x, y = next(batches)
        loss = F.cross_entropy(model(x.cuda(non_blocking=True).transpose(1, 2)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- a pair of networks against each other; the losses and the gradient's norms are read (ill) or kept (cured)


@case("two-players", True)
@case("two-players.cured", False)
def two_players(read):
    """Trains a generator and its judge."""

    def network(width, last):
        return nn.Sequential(
            nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
            nn.Linear(512, last),
        ).cuda()  # fmt: skip

    maker, judge = network(64, 256), network(256, 1)
    first = torch.optim.Adam(maker.parameters(), 1e-4, fused=True)
    second = torch.optim.Adam(judge.parameters(), 1e-4, fused=True)
    real = torch.randn(16384, 256, device="cuda")
    history = []

    def kept(value):
        history.append(value.item() if read else value.detach())

    def step(index):
        noise = torch.randn(16384, 64, device="cuda")
        made = maker(noise)
        loss = F.softplus(-judge(real)).mean() + F.softplus(judge(made.detach())).mean()
        second.zero_grad()
        loss.backward()
        for parameter in judge.parameters():
            kept(parameter.grad.norm())
        second.step()
        kept(loss)
        loss = F.softplus(-judge(made)).mean()
        first.zero_grad()
        loss.backward()
        for parameter in maker.parameters():
            kept(parameter.grad.norm())
        first.step()
        kept(loss)

    return step


# ---- a deep net of many small parameters, with AdamW a parameter at a time (ill) or fused (cured)


@case("deep-and-narrow", {"foreach": False})
@case("deep-and-narrow.cured", {"fused": True})
def deep_and_narrow(how):
    """Trains a model of tables."""
    blocks = [nn.Sequential(nn.LayerNorm(384), nn.Linear(384, 384), nn.GELU()) for _ in range(48)]
    model = nn.Sequential(*blocks, nn.Linear(384, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, **how)
    x, y = torch.randn(1024, 384, device="cuda"), torch.randn(1024, 1, device="cuda")

    def step(index):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- a language model, whose causal attention is written out (ill) or one call (cured, and healthy)


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width, heads, written):
        super().__init__()
        self.heads, self.written = heads, written
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """Attention and a perceptron."""
        b, t, c = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.written:
            weights = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
            mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
            y = weights.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


@case("long-texts", 2, 12, 768, 3072, 4, True)
@case("long-texts.cured", 2, 12, 768, 3072, 4, False)
@case("texts", 16, 16, 1024, 1024, 8, False)
def texts(batch, heads, width, length, layers, written):
    """Trains a language model in bf16."""
    model = nn.Sequential(*[Block(width, heads, written) for _ in range(layers)]).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)

    def step(index):
        loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- boxes are chosen by a mask, image by image (ill), or the best 300 are (cured)


@case("boxes-by-mask", True)
@case("boxes-by-mask.cured", False)
def boxes(masked):
    """Finds things in images."""
    trunk = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU()).cuda()
    head = nn.Conv2d(64, 5, 1).cuda()
    refine = nn.Sequential(nn.Linear(5, 256), nn.ReLU(), nn.Linear(256, 4)).cuda()
    images = torch.randn(24, 3, 256, 256, device="cuda")

    @torch.no_grad()
    def step(index):
        found = head(trunk(images)).flatten(2).transpose(1, 2)
        results = []
        if masked:
            for image in found:
                score = image[:, 4].sigmoid()
                chosen = image[score > score.mean()]
                chosen = chosen[chosen[:, 0] < chosen[:, 2] + 1]
                results.append(refine(chosen))
        else:
            best = found[..., 4].topk(300).indices
            results.append(refine(found.gather(1, best[..., None].expand(-1, -1, 5))))
        return results

    return step


# ---- a network for maps of land, NCHW (ill) or channels last (cured, and healthy)


@case("land-maps", False, 16, 96)
@case("land-maps.cured", True, 16, 96)
def land_maps(last, batch, width):
    """Trains a segmentation in half precision."""
    layers = [nn.Conv2d(8, width, 3, padding=1)]
    for _ in range(6):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    model = nn.Sequential(*layers, nn.Conv2d(width, 8, 1)).cuda()
    x = torch.randn(batch, 8, 256, 256, device="cuda")
    if last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, foreach=True)

    def step(index):
        with torch.autocast("cuda", torch.float16):
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- songs that are recommended: the table's gradient is dense (ill) or of its rows (cured)


@case("songs", False)
@case("songs.cured", True)
def songs(sparse):
    """Trains two towers over a table of 1.5 million songs."""
    table = nn.EmbeddingBag(1_500_000, 96, mode="mean", sparse=sparse).cuda()
    tower = nn.Sequential(nn.Linear(96, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
    adam = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizers = [adam(table.parameters(), 1e-3), torch.optim.Adam(tower.parameters(), 1e-3, fused=True)]
    lists = [torch.randint(0, 1_500_000, (4096, 20), device="cuda") for _ in range(4)]

    def step(index):
        loss = tower(table(lists[index % 4])).square().mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


# ---- a policy that plays 48 moves with a batch of 32, operator by operator (ill) or as a graph (cured)


@case("moves", False)
@case("moves.cured", True)
def moves(graph):
    """Plays with a recurrent policy."""
    first, cell, head = nn.Linear(24, 128).cuda(), nn.GRUCell(128, 128).cuda(), nn.Linear(128, 6).cuda()
    world = torch.randn(24 + 6, 24, device="cuda") * 0.1
    start, memory = torch.randn(32, 24, device="cuda"), torch.zeros(32, 128, device="cuda")

    @torch.no_grad()
    def played():
        state, hidden, total = start, memory, 0
        for _ in range(48):
            hidden = cell(first(state).tanh(), hidden)
            action = head(hidden).softmax(-1)
            state = (torch.cat([state, action], 1) @ world).tanh() + 0.9 * state
            total = total + state.square().mean(1)
        return total

    if not graph:
        return lambda index: played()
    for _ in range(2):
        played()
    torch.cuda.synchronize()
    replay = torch.cuda.CUDAGraph()
    with torch.cuda.graph(replay):
        played()
    return lambda index: replay.replay()


# ---- training that tests itself after each third step (ill) or at the end alone (cured)


@case("tests-each-third", 3)
@case("tests-each-third.cured", 0)
def tests_itself(every):
    """Trains a classifier, and tests it."""
    model = nn.Sequential(
        nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 100)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    x, y = torch.randn(2048, 1024, device="cuda"), torch.randint(0, 100, (2048,), device="cuda")
    others = torch.randn(40, 1024, 1024, device="cuda")

    def step(index):
        model.train()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if every and index % every == every - 1:
            model.eval()
            with torch.no_grad():
                right = [(model(other).argmax(1) == 0).float().mean() for other in others]
            torch.stack(right).mean().item()

    return step


# ---- answers of a model in single precision under autocast, whose weights are cast at each use (ill), or half (cured)


@case("answers-autocast", True)
@case("answers-autocast.cured", False)
def answers(autocast):
    """Answers a few questions at a time."""
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096), nn.SiLU()) for _ in range(16)]).cuda().eval()
    x = torch.randn(64, 4096, device="cuda")
    if not autocast:
        model, x = model.half(), x.half()

    @torch.inference_mode()
    def step(index):
        for _ in range(4):
            with torch.autocast("cuda", torch.float16, enabled=autocast):
                model(x)
        torch.cuda.synchronize()

    return step


# ---- healthy: products of matrices by the library, launched ahead


@case("library-products")
def library_products():
    """Multiplies."""
    a, b = (torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def step(index):
        for _ in range(10):
            torch.matmul(a, b)
        torch.cuda.synchronize()

    return step


def main():
    """Run what the arguments say."""
    how, *rest = sys.argv[1:] or ["list"]
    if how == "list":
        print("\n".join(CASES))
        return
    if path := os.environ.get("DIAGNOSIS_LOCK"):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    steps, names = int(rest[0]), rest[1:]
    torch.manual_seed(0)
    for name in names:
        make, settings = CASES[name]
        try:
            step = make(*settings)
            for index in range(0 if how == "run" else 3):
                step(index)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for index in range(steps):
                step(index)
            torch.cuda.synchronize()
            print(f"time {name} {(time.perf_counter() - begun) / steps * 1e3:.6f}", flush=True)
        except Exception as fault:  # the others go on
            print(f"failed {name} {type(fault).__name__}: {fault}", flush=True)
            if how == "run":
                raise
        step = None
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
