"""A seventh set of programs in PyTorch, JAX and Triton: one planted illness of the timeline a case (or none); NAME.cured is its twin."""

import itertools
import os
import sys
import threading

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from torch_harness import case, run_cases

GPU = torch.device("cuda")
BF16 = torch.bfloat16


def tower(*sizes, dtype=BF16):
    """Linear layers of the sizes with SiLU between them."""
    parts = []
    for a, b in itertools.pairwise(sizes):
        parts += [nn.Linear(a, b, device=GPU, dtype=dtype), nn.SiLU()]
    return nn.Sequential(*parts[:-1])


# ----------------------------------------------------------------------------------------------------------------------
# unfused-optimizer. A deep and narrow network (48 layers: 96 tensors): clipping and Adam written by hand, tensor by tensor: ~10 operations each, ~1000 launches of
# ~5 us = 6 ms and more; the twin has the clipping of PyTorch and the fused Adam (~0.3 ms). The rest: ~4 ms.
@case("tide-emulator", True)
@case("tide-emulator.cured", False)
def tide(by_hand):
    model = tower(*[384] * 49, dtype=torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = True
    parameters = list(model.parameters())
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=True)
    x, y = torch.randn(2048, 384, device=GPU), torch.randn(2048, 384, device=GPU)

    def clip_and_update(count):
        total = torch.zeros((), device=GPU)
        for p in parameters:
            total = total + p.grad.square().sum()
        scale = (1.0 / (total.sqrt() + 1e-6)).clamp(max=1.0)
        right1, right2 = 1 - 0.9**count, 1 - 0.999**count
        for p, m, v in zip(parameters, first, second, strict=True):
            g = p.grad * scale
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(m, (v / right2).sqrt_().add_(1e-8), value=-1e-4 / right1)

    def step(index):
        F.mse_loss(model(x), y).backward()
        if by_hand:
            with torch.no_grad():
                clip_and_update(index + 1)
            for p in parameters:
                p.grad = None
        else:
            nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-attention. A diffusion model's sampler: 4096 tokens, 8 heads of 64, 6 blocks; the scores (512 MB a block in bfloat16) are written, scaled, and read by
# the softmax and the product: ~0.8 ms a block against ~0.2.
@case("dunes-diffused", True)
@case("dunes-diffused.cured", False)
def dunes(written_out):
    width, heads, tokens, batch = 512, 8, 4096, 2
    blocks = [
        (
            nn.Linear(width, 3 * width, device=GPU, dtype=BF16),
            nn.Linear(width, width, device=GPU, dtype=BF16),
            tower(width, 4 * width, width),
        )
        for _ in range(6)
    ]
    noise = torch.randn(batch, tokens, width, device=GPU, dtype=BF16)

    def mixed(q, k, v):
        if not written_out:
            return F.scaled_dot_product_attention(q, k, v)
        weights = ((q @ k.transpose(-1, -2)) * (width // heads) ** -0.5).softmax(-1)
        return weights @ v

    @torch.no_grad()
    def step(index):
        x = noise
        for qkv, out, mlp in blocks:
            q, k, v = (
                qkv(F.layer_norm(x, (width,))).view(batch, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            )
            x = x + out(mixed(q, k, v).transpose(1, 2).reshape(batch, tokens, width))
            x = x + mlp(F.layer_norm(x, (width,)))
        return x * (1 - 0.01 * (index % 10))

    return step


# ----------------------------------------------------------------------------------------------------------------------
# autocast-weight-casts. A frozen judge (12 weights of 128 MB in FP32) scores the beams of each token, 8 tokens a step: frozen weights are not kept by autocast's cache: 192 MB of traffic a use
# (45 us) beside a product that reads 64 MB (16 us). The twin's weights are in bfloat16.
@case("frozen-judge", True)
@case("frozen-judge.cured", False)
def judge(autocast):
    model = tower(*[4096, 8192] * 6, 4096, dtype=torch.float32 if autocast else BF16).requires_grad_(False)
    head = torch.randn(4096, 16, device=GPU, dtype=BF16) * 0.02
    beams = torch.randn(16, 4096, device=GPU, dtype=BF16)

    def step(index):
        state = beams
        with torch.autocast("cuda", dtype=BF16, enabled=autocast):
            for _ in range(8):
                state = F.normalize(model(state).float(), dim=-1).to(BF16) * 64
                order = (state @ head).float().sum(-1).argsort(descending=True)
                state = state.index_select(0, order)
        return state

    return step


# ----------------------------------------------------------------------------------------------------------------------
# layout-conversion. A U-Net in NCHW, half precision, normalised over channels by a helper that permutes and copies, there and back; cuDNN converts besides. 134 MB an
# activation, 270 MB of traffic a conversion (65 us and more). The twin's tensors are channels-last all along: the permutations are views.
class Block(nn.Module):
    """Two convolutions, a norm over channels before each."""

    def __init__(self, a, b, copies):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)])
        self.norms = nn.ModuleList([nn.LayerNorm(a), nn.LayerNorm(b)])
        self.copies = copies

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            y = x.permute(0, 2, 3, 1)
            y = norm(y.contiguous() if self.copies else y).permute(0, 3, 1, 2)
            x = F.silu(conv(y.contiguous() if self.copies else y))
        return x


@case("bleached-corals", True)
@case("bleached-corals.cured", False)
def corals(nchw):
    kind = torch.contiguous_format if nchw else torch.channels_last
    widths = [64, 128, 256]
    down = nn.ModuleList([Block(64, 64, nchw), Block(64, 128, nchw), Block(128, 256, nchw)])
    up = nn.ModuleList([Block(256 + 128, 128, nchw), Block(128 + 64, 64, nchw)])
    model = nn.ModuleList([down, up]).to(GPU, BF16).to(memory_format=kind).requires_grad_(False)
    photos = torch.randn(16, widths[0], 256, 256, device=GPU, dtype=BF16).contiguous(memory_format=kind)

    @torch.no_grad()
    def step(index):
        kept, x = [], photos
        for level, block in enumerate(model[0]):
            x = block(F.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for level, block in zip((1, 0), model[1], strict=True):
            x = block(torch.cat([F.interpolate(x, scale_factor=2), kept[level]], 1))
        return x

    return step


# ----------------------------------------------------------------------------------------------------------------------
# dense-embedding-gradient. Links of a graph of 3.5 M songs (a table of 0.9 GB) are scored, 32 K a step: the gradient is dense, and Adagrad goes over table, gradient and state: ~10 GB,
# 2.5 ms; the twin's gradient is sparse (the same result: rows without a gradient do not change).
@case("songs-in-common", False)
@case("songs-in-common.cured", True)
def songs(sparse):
    table = nn.Embedding(3_500_000, 64, sparse=sparse, device=GPU)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=1e-2)
    random = torch.Generator(device=GPU).manual_seed(4)
    links = torch.randint(0, 3_500_000, (8, 2, 32 << 10), device=GPU, generator=random)
    linked = (torch.rand(8, 32 << 10, device=GPU, generator=random) < 0.5).float()

    def step(index):
        a, b = table(links[index % 8])
        F.binary_cross_entropy_with_logits((a * b).sum(-1), linked[index % 8]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# recompilation (JAX). An annealed spin chain: the temperature is a static argument, and new at each step, so each step traces and compiles (tens of ms); the twin's is traced.
@case("annealed-magnets", True)
@case("annealed-magnets.cured", False)
def magnets(static):
    import jax
    import jax.numpy as jnp

    def sweep(spins, temperature):
        field = jnp.roll(spins, 1) + jnp.roll(spins, -1)
        return jnp.tanh((spins * 0.3 + field) / temperature)

    swept = jax.jit(sweep, static_argnums=(1,) if static else ())
    state = {"spins": jnp.linspace(-1.0, 1.0, 32 << 20), "temperature": 4.0}

    def step(index):
        state["temperature"] *= 0.997
        spins = state["spins"]
        for _ in range(40):
            spins = swept(spins, state["temperature"])
        state["spins"] = spins
        spins.block_until_ready()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# changing-shapes. Packets of light in a fog: after each of 40 scatterings the absorbed ones are dropped by a mask (three times nonzero, a wait each, and new sizes); the twin
# gives the absorbed ones no weight.
@case("packets-in-fog", True)
@case("packets-in-fog.cured", False)
def fog(dropped):
    n = 192 << 10
    random = torch.Generator(device=GPU).manual_seed(8)
    fates = torch.rand(n, device=GPU, generator=random)
    turns = torch.rand(n, device=GPU, generator=random) - 0.5

    def step(index):
        height, slope, weight = torch.zeros_like(fates), turns, torch.ones_like(fates)
        fate, total = fates, torch.zeros((), device=GPU)
        for scattering in range(40):
            height = height + slope * 0.1
            slope = torch.sin(slope * 7.0 + scattering)
            fate = torch.frac(fate * 1.37 + 0.21)
            alive = fate > 0.04
            if dropped:
                height, slope, weight, fate = height[alive], slope[alive], weight[alive], fate[alive]
            else:
                weight = weight * alive
            total = total + (height.abs() * weight).sum()
        return total

    return step


# ----------------------------------------------------------------------------------------------------------------------
# data-loader. Reinforcement learning: 96 gliders fly 24 moments, glider by glider, in Python (~2300 x ~5 us = 11 ms), while the GPU waits; the twin flies them all at once in NumPy (~0.6 ms). The
# policy's update: ~4 ms; its bias is read once a step by both (the gliders need it).
@case("glider-school", True)
@case("glider-school.cured", False)
def gliders(one_by_one):
    count, moments = 96, 24
    random = np.random.default_rng(3)
    start = random.normal(size=(count, 4))
    gusts = random.normal(size=(moments, count)) * 0.1
    policy = tower(4, 4096, 4096, 4096, 1)
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-5)
    chosen = {"bias": 0.0}

    def flown_each(bias):
        seen = np.empty((moments, count, 4), np.float32)
        for glider in range(count):
            x, h, u, w = start[glider].tolist()
            for moment in range(moments):
                gust = float(gusts[moment, glider])
                lift = 0.4 * u * u - 0.1 * abs(w) + bias
                drag = 0.02 * u * abs(u) + 0.01 * lift * lift
                u = max(-5.0, min(5.0, u - drag * 0.05 + gust * 0.1))
                w = max(-5.0, min(5.0, w + (lift - 0.3) * 0.05 + gust))
                x, h = x + u * 0.05, max(0.0, h + w * 0.05)
                seen[moment, glider] = x, h, u, w
        return seen

    def flown_together(bias):
        seen = np.empty((moments, count, 4), np.float32)
        x, h, u, w = start.T
        for moment in range(moments):
            gust = gusts[moment]
            lift = 0.4 * u * u - 0.1 * np.abs(w) + bias
            drag = 0.02 * u * np.abs(u) + 0.01 * lift * lift
            u = np.clip(u - drag * 0.05 + gust * 0.1, -5, 5)
            w = np.clip(w + (lift - 0.3) * 0.05 + gust, -5, 5)
            x, h = x + u * 0.05, np.maximum(0.0, h + w * 0.05)
            seen[moment] = np.stack([x, h, u, w], -1)
        return seen

    def step(index):
        seen = (flown_each if one_by_one else flown_together)(chosen["bias"])
        states = torch.from_numpy(seen.reshape(-1, 4)).pin_memory().to(GPU, BF16, non_blocking=True)
        value = policy(states.repeat(3, 1))
        loss = (value - states.repeat(3, 1)[:, 1:2]).float().square().clamp(max=10).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        chosen["bias"] = float(policy[-1].bias.detach().float().clamp(-0.1, 0.1))

    return step


# ----------------------------------------------------------------------------------------------------------------------
# python-threads. Two threads cut verses into tokens in Python, all the time, and each operation of the training loop has to win the interpreter back (half a millisecond each);
# the twin's verses were cut before. GPU: ~4 ms a step.
@case("verses-by-the-way", True)
@case("verses-by-the-way.cured", False)
def verses(beside):
    verse = [
        "the",
        "moon",
        "on",
        "the",
        "one",
        "hand",
        "the",
        "dawn",
        "on",
        "the",
        "other",
        "the",
        "moon",
        "is",
        "my",
        "sister",
        "the",
        "dawn",
        "is",
        "my",
        "brother",
    ]
    vocabulary = {word: k for k, word in enumerate(sorted(set(verse)))}
    tokens, over = [], threading.Event()

    def cut():
        while not over.is_set():
            line = [vocabulary[word] * 31 + len(word) for _ in range(40) for word in verse]
            merged = [a * 7 + b for a, b in itertools.pairwise(line) if a != b]
            tokens[:] = merged[:1024]

    threads = [threading.Thread(target=cut, daemon=True) for _ in range(2 if beside else 0)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    for thread in threads:
        thread.start()
    model = tower(1024, 4096, 4096, 4096, 4096, 1024)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    x = torch.randn(4096, 1024, device=GPU, dtype=BF16)
    y = torch.randn(4096, 1024, device=GPU, dtype=BF16)

    def step(index):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if index % 8 == 7:
            return loss.item()
        return None

    def end():
        over.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(usual)

    step.end = end
    return step


# ----------------------------------------------------------------------------------------------------------------------
# launch-bound. An LSTM written cell by cell over 96 days: ~14 small kernels a day (hidden size 256, 256 bonds), launched at ~6 us each: 8 ms; the twin is cuDNN's (~1 ms), of the same weights.
@case("bond-yields", True)
@case("bond-yields.cured", False)
def bonds(by_cell):
    lstm = nn.LSTM(32, 256, num_layers=1, device=GPU).requires_grad_(False)
    days = torch.randn(96, 256, 32, device=GPU)
    wi, wh, bi, bh = (
        lstm.weight_ih_l0.t().contiguous(),
        lstm.weight_hh_l0.t().contiguous(),
        lstm.bias_ih_l0,
        lstm.bias_hh_l0,
    )
    risk = tower(256, 4096, 4096, 1)

    @torch.no_grad()
    def step(index):
        if by_cell:
            h = c = torch.zeros(256, 256, device=GPU)
            for day in days:
                gates = torch.addmm(bi, day, wi) + torch.addmm(bh, h, wh)
                i, f, g, o = gates.chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
        else:
            h = lstm(days)[1][0][0]
        return risk(h.to(BF16)).float().mean().item()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# periodic-slow-iteration. Each fifth step the area under the curve of 400 K scores is computed in NumPy (an argsort: ~35 ms); the twin sorts on the GPU (~0.2 ms). Other steps: ~4 ms.
@case("gene-circuits", True)
@case("gene-circuits.cured", False)
def circuits(in_numpy):
    model = tower(64, 4096, 4096, 4096, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(4096, 64, device=GPU, dtype=BF16)
    y = (torch.rand(4096, 1, device=GPU) < 0.3).to(BF16)
    held = torch.rand(400_000, device=GPU)
    truth = (torch.rand(400_000, device=GPU) < held * 0.5).float()

    def area():
        if in_numpy:
            scores, true = held.cpu().numpy(), truth.cpu().numpy()
            true = true[np.argsort(-scores, kind="stable")]
            hits = np.cumsum(true, dtype=np.float64)
            return float((hits * (1 - true)).sum() / (hits[-1] * (len(true) - hits[-1])))
        true = truth[torch.argsort(-held, stable=True)].double()
        hits = true.cumsum(0)
        return ((hits * (1 - true)).sum() / (hits[-1] * (len(true) - hits[-1]))).item()

    def step(index):
        loss = F.binary_cross_entropy_with_logits(model(x).float(), y.float())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        if index % 5 == 4:
            area()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# small-copies (Triton). Requests of a language server, 224: the numbers of each request's pages are copied to the GPU one by one (~12 us each: 3 ms); the twin copies one
# table. Then a kernel sums the pages of each request.
@triton.jit
def pages_summed(cache, table, lengths, out, width: tl.constexpr, most: tl.constexpr):
    request = tl.program_id(0)
    lane = tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    for k in range(tl.load(lengths + request)):
        page = tl.load(table + request * most + k).to(tl.int64)
        total += tl.load(cache + page * width + lane)
    tl.store(out + request * width + lane, total)


@case("pages-of-requests", True)
@case("pages-of-requests.cured", False)
def requests(one_by_one):
    count, most, width, pages = 224, 128, 2048, 32768
    random = np.random.default_rng(6)
    rows = [random.integers(0, pages, size=int(random.integers(64, most))).astype(np.int32) for _ in range(count)]
    cache = torch.randn(pages, width, device=GPU)
    table = torch.zeros(count, most, dtype=torch.int32, device=GPU)
    lengths = torch.zeros(count, dtype=torch.int32, device=GPU)
    out = torch.empty(count, width, device=GPU)
    # The twin fills these on the host, and copies them at once.
    host_table = torch.zeros(count, most, dtype=torch.int32).pin_memory()
    host_lengths = torch.zeros(count, dtype=torch.int32).pin_memory()

    def step(index):
        if one_by_one:
            for request, row in enumerate(rows):
                table[request, : len(row)] = torch.from_numpy(row)
        else:
            for request, row in enumerate(rows):
                host_table.numpy()[request, : len(row)] = row
            table.copy_(host_table, non_blocking=True)
        host_lengths.numpy()[:] = [len(row) for row in rows]
        lengths.copy_(host_lengths, non_blocking=True)
        for _ in range(4):
            pages_summed[(count,)](cache, table, lengths, out, width, most, num_warps=8)
        torch.cuda.synchronize()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# scalar-reads (Triton). 32 layers, each of which rounds its input to eight bits by its largest value: read by the host to be the kernel's argument; the twin's kernel reads it from memory.
@triton.jit
def rounded_by_value(x, out, n, largest, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    steps = tl.floor(value * (127.0 / largest) + 0.5)
    tl.store(out + at, (steps * (largest / 127.0)).to(tl.bfloat16), mask=at < n)


@triton.jit
def rounded_by_pointer(x, out, n, largest, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    most = tl.load(largest).to(tl.float32)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    steps = tl.floor(value * (127.0 / most) + 0.5)
    tl.store(out + at, (steps * (most / 127.0)).to(tl.bfloat16), mask=at < n)


@case("eight-bit-tower", True)
@case("eight-bit-tower.cured", False)
def eight_bits(by_host):
    weights = [torch.randn(2048, 2048, device=GPU, dtype=BF16) * 0.03 for _ in range(32)]
    start = torch.randn(1024, 2048, device=GPU, dtype=BF16)
    rounded = torch.empty_like(start)
    n = start.numel()

    def step(index):
        x = start
        for weight in weights:
            largest = torch.linalg.vector_norm(x, float("inf"))
            if by_host:
                rounded_by_value[(triton.cdiv(n, 2048),)](x, rounded, n, largest.item(), 2048)
            else:
                rounded_by_pointer[(triton.cdiv(n, 2048),)](x, rounded, n, largest, 2048)
            x = F.silu(rounded @ weight)
        return x

    return step


# ----------------------------------------------------------------------------------------------------------------------
# sync-each-operation (JAX). A lagoon in shallow water: 80 compiled moments a step, each waited for before the next is launched (a leftover of timing); the twin waits once. A moment is ~40 us.
@case("shallow-lagoon", True)
@case("shallow-lagoon.cured", False)
def lagoon(waits):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def moment(height, u, v):
        u = u - 0.1 * (jnp.roll(height, -1, 1) - height)
        v = v - 0.1 * (jnp.roll(height, -1, 0) - height)
        return height - 0.1 * (u - jnp.roll(u, 1, 1) + v - jnp.roll(v, 1, 0)), u * 0.999, v * 0.999

    wave = jnp.exp(-(jnp.linspace(-4, 4, 2048) ** 2))
    state = {"all": (wave[:, None] * wave[None, :], jnp.zeros((2048, 2048)), jnp.zeros((2048, 2048)))}

    def step(index):
        now = state["all"]
        for _ in range(80):
            now = moment(*now)
            if waits:
                jax.block_until_ready(now)
        state["all"] = jax.block_until_ready(now)

    return step


# ======================================================================================================================
# Healthy.


# gpu-busy: products at the tensor cores' roof (1.1 TFLOP each, ~1.5 ms), end to end.
@case("ranking-tower")
def ranking():
    a, b = (torch.randn(8192, 8192, device=GPU, dtype=BF16) for _ in range(2))
    out = torch.empty_like(a)

    def step(index):
        for _ in range(5):
            torch.matmul(a, b, out=out)
            torch.matmul(b, a, out=out)

    return step


# gpu-busy: 4 ms of Python a step (features of the next trains) that the GPU's 12 ms hide; the host waits for the step before the last.
@case("night-trains")
def trains():
    model = tower(512, 8192, 8192, 8192, 512).requires_grad_(False)
    host = [torch.empty(4096, 512, dtype=BF16).pin_memory() for _ in range(2)]
    given = [torch.empty(4096, 512, device=GPU, dtype=BF16) for _ in range(2)]
    done = [torch.cuda.Event() for _ in range(2)]
    delays = [(k * 7919) % 113 for k in range(20000)]

    def step(index):
        at = index % 2
        done[at].synchronize()
        late = 0
        for a, b in itertools.pairwise(delays):
            late += a - b if a > b else (b - a) // 2
        host[at][0].fill_(late % 97)
        given[at].copy_(host[at], non_blocking=True)
        for _ in range(5):
            model(given[at])
        done[at].record()

    return step


# graphs: 300 operations of a microsecond or two in a CUDA graph, one launch a step.
@case("spring-lattice")
def springs():
    x, v = torch.randn(64, 1024, device=GPU), torch.zeros(64, 1024, device=GPU)

    def moments():
        for _ in range(75):
            pull = x.roll(1, 1) - x
            v.add_(pull, alpha=0.01).mul_(0.999)
            x.add_(v, alpha=0.1)

    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        moments()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        moments()

    def step(index):
        for _ in range(4):
            graph.replay()
        if index % 2:
            torch.cuda.synchronize()

    return step


# overlapped: 96 MB a step come from page-locked memory in a stream of their own (~1.9 ms) beside ~5 ms of products.
@case("rows-of-vines")
def vines():
    model = tower(1024, 8192, 8192, 1024).requires_grad_(False)
    host = [torch.randn(6144, 4096).pin_memory() for _ in range(2)]
    given = [torch.empty(6144, 4096, device=GPU) for _ in range(2)]
    copying = torch.cuda.Stream()
    used = [torch.cuda.Event() for _ in range(2)]

    def fetch(index):
        with torch.cuda.stream(copying):
            used[index % 2].wait(copying)
            given[index % 2].copy_(host[index % 2], non_blocking=True)

    def step(index):
        main = torch.cuda.current_stream()
        if index == 0:
            fetch(0)
        main.wait_stream(copying)
        fetch(index + 1)
        x = given[index % 2].view(-1, 1024)[:16384].to(BF16)
        for _ in range(2):
            model(x)
        used[index % 2].record(main)
        if index % 4 == 3:
            main.synchronize()

    return step


if __name__ == "__main__":
    run_cases()
