"""A ninth set of programs in PyTorch, JAX and Triton: one planted illness of the timeline a case (or none); NAME.cured is its twin."""

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import itertools

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from torch_harness import case, run_cases

GPU = "cuda"
BF16 = torch.bfloat16


def mlp(*widths):
    """Linear layers with GELU between them."""
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1]).to(GPU)


# ----------------------------------------------------------------------------------------------------------------------
# data-loader. Contrastive learning of 1-D views: two views of 256 series of 4096 samples are cropped, scaled and noised by numpy (2 x 1 M normal numbers: ~2 x 12 ms) before a step of ~3 ms; the twin
# does that on the GPU (0.1 ms).
@case("gaits-of-horses", "numpy")
@case("gaits-of-horses.cured", "gpu")
def gaits(where):
    encoder = nn.Sequential(
        nn.Conv1d(1, 64, 15, 4, 7),
        nn.ReLU(),
        nn.Conv1d(64, 128, 9, 4, 4),
        nn.ReLU(),
        nn.Conv1d(128, 256, 5, 4, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(256, 128),
    ).to(GPU)
    optimizer = torch.optim.AdamW(encoder.parameters(), fused=True)
    length, crop, batch = 4608, 4096, 256
    recorded = np.random.default_rng(0).standard_normal((batch, length), dtype=np.float32)
    kept, random = torch.from_numpy(recorded).to(GPU), np.random.default_rng(1)
    steps = torch.arange(crop, device=GPU)

    def view():
        if where == "gpu":
            begin = torch.randint(0, length - crop, (batch, 1), device=GPU)
            scale = 0.8 + 0.4 * torch.rand(batch, 1, device=GPU)
            return torch.gather(kept, 1, begin + steps) * scale + 0.1 * torch.randn(batch, crop, device=GPU)
        series = []
        for row in recorded:
            begin = random.integers(0, length - crop)
            piece = row[begin : begin + crop] * np.float32(random.uniform(0.8, 1.2))
            series.append(piece + 0.1 * random.standard_normal(crop, dtype=np.float32))
        return torch.from_numpy(np.stack(series)).pin_memory().to(GPU, non_blocking=True)

    target = torch.arange(batch, device=GPU)

    def step(_):
        a = F.normalize(encoder(view()[:, None]), dim=1)
        b = F.normalize(encoder(view()[:, None]), dim=1)
        loss = F.cross_entropy(a @ b.T / 0.1, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# file-io. Scores of handwritten signatures, a small file each (2 KB): 800 files opened and read a step (~12 us each: 10 ms and up); the twin has read one packed file into pinned memory at start.
# The network: ~2 ms.
@case("signatures", True)
@case("signatures.cured", False)
def signatures(single):
    each, count, total = 512, 800, 4000
    folder = tempfile.TemporaryDirectory()
    everything = np.random.default_rng(0).standard_normal((total, each), dtype=np.float32)
    for index in range(total if single else 0):
        with open(f"{folder.name}/{index:05d}.raw", "wb") as file:
            file.write(everything[index].tobytes())
    packed = torch.from_numpy(everything).pin_memory()
    staged = torch.empty(count, each).pin_memory()
    network = mlp(each, 2048, 2048, 2048, 64).requires_grad_(False)

    def step(index):
        first = index * count % total
        if single:
            rows = staged.numpy()
            torch.cuda.current_stream().synchronize()
            for k in range(count):
                with open(f"{folder.name}/{first + k:05d}.raw", "rb") as file:
                    rows[k] = np.frombuffer(file.read(), np.float32)
            x = staged.to(GPU, non_blocking=True)
        else:
            x = packed[first : first + count].to(GPU, non_blocking=True)
        for _ in range(6):
            y = network(x)
        return y

    step.end = folder.cleanup
    return step


# ----------------------------------------------------------------------------------------------------------------------
# logging. Policy updates; each of 400 transitions of a step goes to a log at level DEBUG with a formatter of time and place (~15 us a line: 6 ms or more); the twin's level is WARNING. The updates: ~3 ms.
@case("cranes-in-a-port", logging.DEBUG)
@case("cranes-in-a-port.cured", logging.WARNING)
def cranes(level):
    folder = tempfile.TemporaryDirectory()
    log = logging.getLogger("policy", level)
    handler = logging.FileHandler(f"{folder.name}/policy.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(filename)s:%(lineno)d %(message)s"))
    log.addHandler(handler)
    policy = mlp(64, 512, 512, 8)
    optimizer = torch.optim.Adam(policy.parameters(), fused=True)
    seen, action = torch.randn(8192, 64, device=GPU), torch.randint(0, 8, (8192,), device=GPU)
    rewards = np.random.default_rng(0).standard_normal(400)

    def step(index):
        for number, reward in enumerate(rewards):
            log.debug("episode %d transition %d reward %.4f", index, number, reward)
        for _ in range(4):
            F.cross_entropy(policy(seen), action).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def end():
        handler.close()
        folder.cleanup()

    step.end = end
    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-optimizer. 64 residual layers (256 tensors): gradients clipped by hand and a heavy-ball step, tensor by tensor: 8 operations each: ~2000 launches: 8 to 12 ms; the twin uses torch._foreach_*: ~20 launches
# of some size. Forward and backward: ~6 ms.
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.mix(self.norm(x)))


@case("vintages", "each")
@case("vintages.cured", "together")
@torch.no_grad()
def vintages(how):
    network = nn.Sequential(*[Layer(256) for _ in range(64)]).to(GPU)
    weights = list(network.parameters())
    speed = [torch.zeros_like(w) for w in weights]
    x, wanted = torch.randn(1024, 256, device=GPU), torch.randn(1024, 256, device=GPU)

    def each(grads):
        square = torch.zeros((), device=GPU)
        for g in grads:
            square = square + (g * g).sum()
        scale = (1.0 / (square.sqrt() + 1e-6)).clamp(max=1.0)
        for w, g, v in zip(weights, grads, speed, strict=False):
            scaled = g * scale + 0.01 * w
            v.mul_(0.9)
            v.add_(scaled)
            w.sub_(1e-3 * v)

    def together(grads):
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_mul_(grads, (1.0 / (norm + 1e-6)).clamp(max=1.0))
        torch._foreach_add_(grads, weights, alpha=0.01)
        torch._foreach_mul_(speed, 0.9)
        torch._foreach_add_(speed, grads)
        torch._foreach_add_(weights, speed, alpha=-1e-3)

    update = {"each": each, "together": together}[how]

    def step(_):
        with torch.enable_grad():
            grads = list(torch.autograd.grad(F.mse_loss(network(x), wanted), weights))
        with torch.no_grad():
            update(grads)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-attention. A set transformer over point clouds: 4 clouds of 3072 points, 8 heads of 64, 6 layers, inference: scores of 302 M (604 MB in bf16) are written, scaled, read by the softmax, written, read:
# ~3 GB a layer: 0.8 ms; the twin: scaled_dot_product_attention, ~0.12 ms.
@case("pebbles", "einsum")
@case("pebbles.cured", "sdpa")
@torch.no_grad()
def pebbles(how):
    clouds, heads, points, inner, layers = 4, 8, 3072, 64, 6
    width = heads * inner
    maps = [torch.randn(width, 3 * width, device=GPU, dtype=BF16) / width**0.5 for _ in range(layers)]
    x = torch.randn(clouds, points, width, device=GPU, dtype=BF16)

    def step(_):
        with torch.no_grad():
            h = x
            for m in maps:
                q, k, v = (h @ m).view(clouds, points, 3, heads, inner).permute(2, 0, 3, 1, 4)
                if how == "einsum":
                    score = torch.einsum("bhid,bhjd->bhij", q, k) / inner**0.5
                    y = torch.einsum("bhij,bhjd->bhid", score.softmax(-1), v)
                else:
                    y = F.scaled_dot_product_attention(q, k, v)
                h = h + y.transpose(1, 2).reshape(clouds, points, width)
            return h

    return step


# ----------------------------------------------------------------------------------------------------------------------
# autocast-weight-casts. A neural ODE of concentrations: 40 evaluations of a field of two layers 4096 x 4096; each evaluation opens its own autocast, and casts both weights anew (64 MB in, 32 MB out: 25 us each)
# for products of ~12 us (256 rows). The twin's weights are in bf16 once. ~3.5 ms against ~1.5 ms.
@case("brine-in-a-pan", True)
@case("brine-in-a-pan.cured", False)
def brine(cast):
    width, rows = 4096, 256
    field = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)).to(GPU).requires_grad_(False)
    if not cast:
        field = field.to(BF16)
    y0 = torch.randn(rows, width, device=GPU, dtype=BF16)

    def rate(y):
        with torch.autocast(GPU, dtype=BF16) if cast else contextlib.nullcontext():
            return field(y)

    def step(_):
        y = y0
        for _ in range(40):
            y = y + 0.025 * rate(y)
        return y

    return step


# ----------------------------------------------------------------------------------------------------------------------
# layout-conversion. 12 blocks over maps of 256 channels (32 x 56 x 56, bf16: 51 MB): the norm over channels wants them last, the 1 x 1 convolution first: two transposing copies a block (~60 us each, and those of cuDNN);
# the twin keeps channels last: layer_norm and linear on the same numbers.
@case("satin-weaves", "first")
@case("satin-weaves.cured", "last")
@torch.no_grad()
def weaves(channels):
    width, blocks = 256, 12
    maps = [torch.randn(width, width, device=GPU, dtype=BF16) / width**0.5 for _ in range(blocks)]
    x = torch.randn(32, 56, 56, width, device=GPU, dtype=BF16)
    x_first = x.permute(0, 3, 1, 2).contiguous() if channels == "first" else None

    def step(_):
        with torch.no_grad():
            if channels == "last":
                h = x
                for m in maps:
                    h = h + F.gelu(F.linear(F.layer_norm(h, (width,)), m))
                return h
            h = x_first
            for m in maps:
                normed = F.layer_norm(h.permute(0, 2, 3, 1).contiguous(), (width,)).permute(0, 3, 1, 2).contiguous()
                h = h + F.gelu(F.conv2d(normed, m[:, :, None, None]))
            return h

    return step


# ----------------------------------------------------------------------------------------------------------------------
# dense-embedding-gradient. A recommender with a table of 2.5 M x 64 (640 MB), 16 K rows used a step, Adagrad: dense: zeros, and the whole table, its gradient and state through DRAM (~8 GB: 1.8 ms); sparse: ~0.5 ms.
@case("library-loans", False)
@case("library-loans.cured", True)
def loans(sparse):
    table = nn.Embedding(2_500_000, 64, sparse=sparse, device=GPU)
    head = mlp(64 * 4, 256, 1)
    of_table, of_head = (
        torch.optim.Adagrad(table.parameters(), lr=0.01),
        torch.optim.Adam(head.parameters(), fused=True),
    )
    ids = [torch.randint(0, 2_500_000, (4096, 4), device=GPU) for _ in range(8)]
    clicked = torch.rand(4096, 1, device=GPU).round()

    def step(index):
        score = head(table(ids[index % 8]).flatten(1))
        F.binary_cross_entropy_with_logits(score, clicked).backward()
        for optimizer in (of_table, of_head):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# changing-shapes. A step of part segmentation: the mean and spread of the points of each of 50 parts by boolean masks: nonzero, a wait and an allocation each (~60 us and more: 100 masks: 5 ms); the twin: a product with
# the one-hot parts. A network of ~1 ms beside.
@case("shards-of-amphorae", True)
@case("shards-of-amphorae.cured", False)
@torch.no_grad()
def shards(masked):
    points, parts, width = 65536, 50, 32
    x = torch.randn(points, width, device=GPU)
    network = mlp(width, 512, 512, width)

    def step(index):
        with torch.no_grad():
            y = network(x)
            part = (x[:, 0] * 7 + x[:, 1] * 5 + index).long() % parts
            if masked:
                centres, spreads = [], []
                for p in range(parts):
                    own = y[part == p]
                    centres.append(own.mean(0))
                    spreads.append((own - centres[-1])[own[:, 0] > 0].square().mean(0))
                return torch.stack(centres), torch.stack(spreads)
            belongs = F.one_hot(part, parts).to(y.dtype)
            centres = (belongs.T @ y) / belongs.sum(0)[:, None].clamp(min=1)
            right = belongs * (y[:, :1] > 0)
            spreads = (right.T @ (y - centres[part]).square()) / right.sum(0)[:, None].clamp(min=1)
            return centres, spreads

    return step


# ----------------------------------------------------------------------------------------------------------------------
# periodic-slow-iteration. Each sixth step ranks 300 K candidates on the CPU (a copy, numpy's argsort, ~30 ms: 5 ms a step on average); the twin ranks on the GPU. A step else: ~2 ms.
@case("stray-cats", "cpu")
@case("stray-cats.cured", "gpu")
def cats(where):
    network = mlp(128, 1024, 1024, 1)
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    x, wanted, candidates = (
        torch.randn(8192, 128, device=GPU),
        torch.randn(8192, 1, device=GPU),
        torch.randn(300_000, 128, device=GPU),
    )
    matches = (torch.arange(300_000, device=GPU) % 97 == 0).float()
    discount = 1 / torch.log2(torch.arange(300_000, device=GPU) + 2)
    on_host = matches.cpu().numpy(), discount.cpu().numpy()
    kept = []

    def step(index):
        F.mse_loss(network(x), wanted).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if index % 6 == 5:
            with torch.no_grad():
                score = candidates @ network[0].weight[0]
                if where == "cpu":
                    order = np.argsort(-score.cpu().numpy())
                    kept.append(float((on_host[0][order] * on_host[1]).sum()))
                else:
                    kept.append((matches[score.argsort(descending=True)] * discount).sum())

    return step


# ----------------------------------------------------------------------------------------------------------------------
# python-threads. Two threads split lines into pieces in pure Python for later steps (3 ms a page, then 1 ms of rest), and take the interpreter from the thread that launches (~600 small operations: ~4 ms alone,
# 8 to 20 ms beside them); the twin has them in processes.
SPLITTER = """
def pieces(word, known):
    out, at = [], 0
    while at < len(word):
        end = len(word)
        while end > at + 1 and word[at:end] not in known:
            end -= 1
        out.append(word[at:end])
        at = end
    return out
"""
exec(SPLITTER)
TEXT = "the keeper of the lighthouse recorded unaccountable phosphorescence beyond the southern breakwater "
KNOWN = {
    "the",
    "keep",
    "er",
    "light",
    "house",
    "record",
    "ed",
    "un",
    "account",
    "able",
    "phos",
    "pho",
    "res",
    "cence",
    "be",
    "yond",
}


@case("lighthouse-diaries", "threads")
@case("lighthouse-diaries.cured", "processes")
def diaries(how):
    stop, waiting = threading.Event(), []
    layers = [torch.randn(512, 512, device=GPU) / 23 for _ in range(12)]
    x = torch.randn(64, 512, device=GPU)

    def work():
        while not stop.is_set():
            waiting[:] = [pieces(word, KNOWN) for word in (TEXT * 140).split()]  # noqa: F821
            time.sleep(0.001)

    loop = f"{SPLITTER}\nimport os, time\nparent, known = os.getppid(), {KNOWN!r}\nwhile os.getppid() == parent:\n    [pieces(w, known) for w in ({TEXT!r} * 140).split()]\n    time.sleep(0.001)"
    if how == "threads":
        helpers = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for helper in helpers:
            helper.start()
    else:
        helpers = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(2)]

    @torch.no_grad()
    def step(_):
        h = x
        for _ in range(12):
            for w in layers:
                h = torch.tanh(h @ w) + 0.5 * h
        torch.cuda.synchronize()

    def end():
        stop.set()
        for helper in helpers:
            if how == "threads":
                helper.join()
            else:
                helper.terminate()
                helper.wait()

    step.end = end
    return step


# ----------------------------------------------------------------------------------------------------------------------
# scalar-reads. A conjugate gradient for a screened field, 60 iterations: alpha and beta are read to the host each time (two copies of 4 B, waited for: ~30 us of idling each); the twin leaves them on the GPU.
@case("pools-of-ink", True)
@case("pools-of-ink.cured", False)
@torch.no_grad()
def ink(read):
    n = 1024
    b = torch.randn(1, 1, n, n, device=GPU)
    kernel = torch.tensor([[0.0, -1, 0], [-1, 4.5, -1], [0, -1, 0]], device=GPU)[None, None]

    def dot(u, v):
        found = torch.dot(u.flatten(), v.flatten())
        return found.item() if read else found

    @torch.no_grad()
    def step(_):
        x, r = torch.zeros_like(b), b.clone()
        p, rr = r.clone(), dot(r, r)
        for _ in range(60):
            ap = F.conv2d(p, kernel, padding=1)
            alpha = rr / dot(p, ap)
            x += alpha * p
            r -= alpha * ap
            old, rr = rr, dot(r, r)
            p = r + (rr / old) * p
        return x

    return step


# ----------------------------------------------------------------------------------------------------------------------
# small-copies, Triton. Paged notes of 192 sequences: each sequence's table of pages (64 numbers) is sent on its own (192 copies of 256 B, pinned, ~6 us each) before one kernel; the twin fills one pinned array, one copy.
@triton.jit
def paged_mean(pages, tables, out, per, WIDTH: tl.constexpr):
    sequence = tl.program_id(0)
    lane = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for k in range(per):
        page = tl.load(tables + sequence * per + k)
        total += tl.load(pages + page.to(tl.int64) * WIDTH + lane)
    tl.store(out + sequence * WIDTH + lane, total / per)


@case("margins-of-a-codex", True)
@case("margins-of-a-codex.cured", False)
def codex(one_by_one):
    sequences, per, width, count = 192, 64, 1024, 65536
    pages, out = torch.randn(count, width, device=GPU), torch.empty(sequences, width, device=GPU)
    tables = torch.zeros(sequences, per, dtype=torch.int32, device=GPU)
    host = torch.randint(0, count, (sequences, per), dtype=torch.int32).pin_memory()
    matrix, product = torch.randn(1024, 1024, device=GPU), torch.empty(sequences, 1024, device=GPU)

    def step(_):
        if one_by_one:
            for row in range(sequences):
                tables[row].copy_(host[row], non_blocking=True)
        else:
            tables.copy_(host, non_blocking=True)
        paged_mean[(sequences,)](pages, tables, out, per, WIDTH=width)
        for _ in range(8):
            torch.mm(out, matrix, out=product)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# sync-each-operation, Triton. A cellular automaton of 2048 x 2048 in Triton, 60 generations; a helper that "times" each generation synchronises before and after (~25 us of idling beside ~12 us of work); the twin measures
# by events and waits once.
@triton.jit
def generation(old, new, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    up, down = (row + n - 1) % n, (row + 1) % n
    left, right = (x + n - 1) % n, (x + 1) % n
    here = tl.load(old + row * n + x).to(tl.int32)
    total += (
        tl.load(old + up * n + left).to(tl.int32)
        + tl.load(old + up * n + x).to(tl.int32)
        + tl.load(old + up * n + right).to(tl.int32)
    )
    total += tl.load(old + row * n + left).to(tl.int32) + tl.load(old + row * n + right).to(tl.int32)
    total += (
        tl.load(old + down * n + left).to(tl.int32)
        + tl.load(old + down * n + x).to(tl.int32)
        + tl.load(old + down * n + right).to(tl.int32)
    )
    lives = (total == 3) | ((total == 2) & (here == 1))
    tl.store(new + row * n + x, lives.to(tl.int8))


class Laps:
    """Times of pieces of work."""

    def __init__(self, waits):
        self.waits, self.laps = waits, []

    @contextlib.contextmanager
    def lap(self):
        if self.waits:
            torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        yield
        end.record()
        if self.waits:
            torch.cuda.synchronize()
        self.laps.append((begin, end))

    def total(self):
        torch.cuda.synchronize()
        milliseconds = sum(begin.elapsed_time(end) for begin, end in self.laps)
        self.laps.clear()
        return milliseconds


@case("lichen", True)
@case("lichen.cured", False)
def lichen(waits):
    n, laps = 2048, Laps(waits)
    field = (torch.rand(n, n, device=GPU) < 0.3).to(torch.int8)
    fields, spent = [field, torch.empty_like(field)], []

    def step(_):
        for k in range(60):
            with laps.lap():
                generation[(n, n // 1024)](fields[k % 2], fields[1 - k % 2], n, BLOCK=1024)
        spent.append(laps.total())

    return step


# ----------------------------------------------------------------------------------------------------------------------
# recompilation, JAX. Annealed placement: the temperature is a static argument, and a new one each sixth step: a compilation of ~100 to 200 ms (16 to 33 ms a step on average) beside ~3 ms of work; the twin passes it as an
# array.
@case("benches-in-a-park", True)
@case("benches-in-a-park.cured", False)
def benches(static):
    import jax
    import jax.numpy as jnp

    def improved(places, temperature):
        def sweep(p, _):
            apart = p[:, None, :] - p[None, :, :]
            square = (apart**2).sum(-1) + 1e-2
            force = (apart * (jnp.exp(-square / temperature) / square)[..., None]).sum(1)
            return p + 1e-3 * jnp.tanh(force), square.mean()

        return jax.lax.scan(sweep, places, None, length=20)

    compiled = jax.jit(improved, static_argnums=(1,) if static else ())
    places = [jax.random.uniform(jax.random.PRNGKey(0), (2048, 2))]

    def step(index):
        temperature = 1.0 / (1.0 + index // 6 * 0.1)
        places[0], _energy = compiled(places[0], temperature if static else jnp.float32(temperature))
        places[0].block_until_ready()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# launch-bound, JAX. An ensemble filter for 4096 buoys, 16 variables: not compiled: each of ~25 operations of a forecast is dispatched on its own (~40 us of Python each, ~3 us on the GPU): 12 forecasts: 10 ms; the twin is
# under jax.jit: < 1 ms.
@case("drifting-floats", False)
@case("drifting-floats.cured", True)
def floats(compiled):
    import jax
    import jax.numpy as jnp

    def forecast(x, spread, seen):
        for _ in range(12):
            ahead = jnp.roll(x, -1, 1) - jnp.roll(x, 2, 1)
            x = x + 0.01 * (ahead * jnp.roll(x, 1, 1) - x + 8.0)
            spread = spread * 1.02 + 0.01
            gain = spread / (spread + 0.3)
            x = x + gain * (seen - x)
            spread = (1.0 - gain) * spread
            x = jnp.clip(x, -20.0, 20.0)
        return x, spread

    run = jax.jit(forecast) if compiled else forecast
    state = [jnp.ones((4096, 16)) * jnp.arange(16.0), jnp.ones((4096, 16))]
    seen = jnp.cos(jnp.arange(65536.0)).reshape(4096, 16)

    def step(_):
        state[:] = run(*state, seen)
        state[0].block_until_ready()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# Healthy: gpu-busy. A wide network in bf16, whose Python keeps books of every layer: products of ~0.25 ms, ~15 us of Python each: hidden.
@case("strings-of-a-piano")
def piano():
    width, rows = 4096, 4096
    maps = [torch.randn(width, width, device=GPU, dtype=BF16) / 64 for _ in range(24)]
    x = torch.randn(rows, width, device=GPU, dtype=BF16)
    books = {}

    @torch.no_grad()
    def step(index):
        h = x
        for number, w in enumerate(maps):
            h = F.relu(h @ w)
            books[index % 16, number] = {
                "shape": tuple(h.shape),
                "bytes": h.numel() * h.element_size(),
                "name": f"layer {number:03d}",
            }
        books["total"] = sum(book["bytes"] for key, book in books.items() if key != "total" and key[0] == index % 16)

    return step


# Healthy: graphs. 400 small operations of a recurrent controller, replayed as one graph.
@case("gliders-on-thermals")
def gliders():
    weights = [torch.randn(256, 256, device=GPU) / 16 for _ in range(4)]
    x = torch.randn(32, 256, device=GPU)

    def forward():
        h = x
        for _ in range(50):
            for w in weights:
                h = torch.tanh(h @ w)
        return h

    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            forward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = forward()

    def step(_):
        for _ in range(4):
            graph.replay()
        return out

    return step


# Healthy: overlapped. Tiles of 64 MB come by pinned copies on their own stream (1.2 ms) while the tiles before them are worked on (~2 ms).
@case("murals-in-tiles")
def murals():
    n, copies = 4096, torch.cuda.Stream()
    host = [torch.randn(n, n).pin_memory() for _ in range(3)]
    tiles = [torch.empty(n, n, device=GPU) for _ in range(2)]
    arrived, used = [torch.cuda.Event() for _ in tiles], [torch.cuda.Event() for _ in tiles]
    filter_, work = torch.randn(n, n, device=GPU).to(BF16), torch.empty(n, n, device=GPU, dtype=BF16)
    count = [0]

    def send(number):
        with torch.cuda.stream(copies):
            copies.wait_event(used[number % 2])
            tiles[number % 2].copy_(host[number % 3], non_blocking=True)
            arrived[number % 2].record(copies)

    send(0)

    @torch.no_grad()
    def step(_):
        for _ in range(4):
            number = count[0]
            count[0] += 1
            send(number + 1)
            torch.cuda.current_stream().wait_event(arrived[number % 2])
            half = tiles[number % 2].to(BF16)
            used[number % 2].record()
            for _ in range(7):
                torch.mm(half, filter_, out=work)

    return step


# Healthy: gpu-busy. Training with a loss that is read each 20th step only, one fused optimizer, bf16 weights, batches on the GPU: kernels end to end.
@case("mosaics-of-glass")
def mosaics():
    network = mlp(2048, 8192, 8192, 2048).to(BF16)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)
    x, wanted = torch.randn(4096, 2048, device=GPU, dtype=BF16), torch.randn(4096, 2048, device=GPU, dtype=BF16)
    losses = []

    def step(index):
        loss = F.mse_loss(network(x), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if index % 20 == 19:
            losses.append(loss.item())

    return step


if __name__ == "__main__":
    run_cases()
