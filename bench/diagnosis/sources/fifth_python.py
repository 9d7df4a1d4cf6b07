"""The fifth part's programs in PyTorch and JAX: one illness each, or none. NAME.cured is the work without it."""

import contextlib
import itertools
import logging
import multiprocessing
import os
import sys
import threading
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_harness import case, run_cases

FILES = os.environ.get("DIAGNOSIS_FILES", "/tmp")


# tensor-cores-unused: overlaps of basis functions are contracted in single precision (ill: FMA units) or TF32 (cured)


@case("overlaps", "highest")
@case("overlaps.cured", "high")
def overlaps(precision):
    """Contracts a tensor of four indices with orbitals, for a density and its energy."""
    torch.set_float32_matmul_precision(precision)
    integrals = torch.randn(64, 64, 48, 48, device="cuda") * 0.01
    orbitals = torch.randn(16, 2304, 512, device="cuda") * 0.01

    @torch.no_grad()
    def step(index):
        density = torch.bmm(orbitals, orbitals.transpose(1, 2))
        fock = torch.einsum("pqrs,brs->bpq", integrals, density.view(16, 2304, 48, 48).mean(1))
        mixed = torch.bmm(density, orbitals)
        return fock.square().mean() + mixed.square().mean()

    return step


# tensor-cores-unused: convolutions of scans, TF32 switched off for equal results (ill: FMA units), or on (cured)


@case("tumours", False)
@case("tumours.cured", True)
def tumours(allowed):
    """Trains a few convolutions over slices."""
    torch.backends.cudnn.allow_tf32 = allowed
    widths = (16, 128, 128, 128, 16)
    model = nn.Sequential(*[m for a, b in itertools.pairwise(widths)
                            for m in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]).cuda()  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9, foreach=True)
    x = torch.randn(16, 16, 128, 128, device="cuda")

    def step(index):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# layout-conversion: normalised over channels, which are turned to the end and back by copies (ill) or views (cured)


@case("ridges", True)
@case("ridges.cured", False)
def ridges(copied):
    """Segments fingerprints by blocks of a convolution and a norm."""
    convs = nn.ModuleList([nn.Conv2d(128, 128, 3, padding=1, bias=False) for _ in range(6)]).cuda().half()
    convs = convs.to(memory_format=torch.channels_last)
    x = torch.randn(32, 128, 128, 128, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(index):
        y = x
        for conv in convs:
            y = conv(y).permute(0, 2, 3, 1)
            if copied:
                y = F.layer_norm(y.contiguous(), (128,)).permute(0, 3, 1, 2).contiguous()
            else:
                y = F.layer_norm(y, (128,)).permute(0, 3, 1, 2)
            y = F.relu(y)
        return y.mean()

    return step


# layout-conversion: heads are split and merged by transposed copies around each mix (ill), or mixed in place (cured)


@case("calls-of-whales", True)
@case("calls-of-whales.cured", False)
def whales(turned):
    """Gates frames of sound: a gain for each channel and frame, time first or last."""
    gains = [torch.randn(512, device="cuda", dtype=torch.half) for _ in range(10)]
    x = torch.randn(64, 2048, 512, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(index):
        y = x
        for gain in gains:
            if turned:
                y = y.transpose(1, 2).contiguous()
                y = y * gain[:, None]
                y = y.transpose(1, 2).contiguous()
            else:
                y = y * gain
        return y.mean()

    return step


# unfused-attention: a model of melodies, with a mask of minus infinity and softmax in single precision (ill)


@case("melodies", True)
@case("melodies.cured", False)
def melodies(written):
    """Attends causally, forwards and backwards."""
    width, heads, length = 512, 8, 2048
    layers = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(3)]).cuda().bfloat16()
    future = torch.full((length, length), float("-inf"), device="cuda").triu(1)
    x = torch.randn(4, length, width, device="cuda", dtype=torch.bfloat16)

    def step(index):
        y = x
        for layer in layers:
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in layer(y).chunk(3, -1))
            if written:
                scores = (q @ k.transpose(-2, -1)).float() / (width / heads) ** 0.5 + future
                a = scores.softmax(-1).to(v.dtype) @ v
            else:
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            y = y + a.transpose(1, 2).flatten(2)
        layers.zero_grad()
        y.float().square().mean().backward()

    return step


# dense-embedding-gradient: a graph of facts, whose entities all get a gradient and a step of Adam (ill), or a batch's


@case("facts", False)
@case("facts.cured", True)
def facts(sparse):
    """Scores facts by translation."""
    entities = nn.Embedding(4_000_000, 128, sparse=sparse, device="cuda")
    relations = nn.Embedding(500, 128, device="cuda")
    if sparse:
        optimizer = torch.optim.SparseAdam(list(entities.parameters()), 1e-3)
    else:
        optimizer = torch.optim.Adam(entities.parameters(), 1e-3, fused=True)
    other = torch.optim.Adam(relations.parameters(), 1e-3, fused=True)
    heads, tails = (torch.randint(0, 4_000_000, (8, 8192), device="cuda") for _ in range(2))
    kinds = torch.randint(0, 500, (8, 8192), device="cuda")

    def step(index):
        at = index % 8
        far = (entities(heads[at]) + relations(kinds[at]) - entities(tails[at])).square().mean()
        optimizer.zero_grad()
        other.zero_grad()
        far.backward()
        optimizer.step()
        other.step()

    return step


# unfused-optimizer: AdamW goes through 240 tensors one by one (ill), or in one kernel for many (cured)


@case("pollen", False)
@case("pollen.cured", True)
def pollen(fused):
    """Trains a deep mixer for patches of pictures."""
    blocks = [nn.Sequential(nn.LayerNorm(384), nn.Linear(384, 768), nn.GELU(), nn.Linear(768, 384)) for _ in range(40)]
    model = nn.Sequential(*blocks).cuda()
    options = {"fused": True} if fused else {"foreach": False, "fused": False}
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.05, **options)
    x = torch.randn(8192, 384, device="cuda")
    torch.set_float32_matmul_precision("high")

    def step(index):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# changing-shapes: neutrons that are lost are taken from the arrays in each of 30 flights (ill), or kept with weight 0


@case("neutron-tracks", True)
@case("neutron-tracks.cured", False)
def neutrons(taken):
    """Follows neutrons through a slab."""
    start = torch.rand(400_000, device="cuda")

    @torch.no_grad()
    def step(index):
        x, direction, weight = start, torch.ones_like(start), torch.ones_like(start)
        gone = torch.zeros((), device="cuda")
        for _ in range(30):
            x = x + direction * torch.rand_like(x) * 0.5
            inside = (x > 0) & (x < 8)
            if taken:
                gone = gone + weight[~inside].sum()
                x, direction, weight = x[inside], direction[inside], weight[inside]
            else:
                gone = gone + (weight * ~inside).sum()
                weight = weight * inside
            direction = torch.where(torch.rand_like(x) < 0.3, -direction, direction)
        return gone

    return step


# recompilation: torch.compile for fixed shapes meets a molecule of another size each step (ill), or padded ones (cured)


@case("molecules-of-all-sizes", False)
@case("molecules-of-all-sizes.cured", True)
def molecules(padded):
    """Smooths distances of atoms by Gaussians."""
    import torch._dynamo as dynamo

    dynamo.reset()

    @torch.compile(dynamic=False)
    def smeared(at, widths):
        far = (at[:, None, :] - at[None, :, :]).square().sum(-1)
        return torch.exp(-far[..., None] * widths).sum(1)

    atoms, widths = torch.randn(800, 3, device="cuda"), torch.rand(64, device="cuda")

    def step(index):
        step.count += 1
        size = 800 if padded else 800 - 11 * step.count
        out = smeared(atoms[:size], widths)
        torch.cuda.synchronize()
        return out

    step.count = 0
    return step


# python-threads: three threads parse lines of a feed while the main thread launches (ill), or three processes (cured)


def parse_feed(ends):
    """Parses lines until told to end, as a feed would give them."""
    lines = [f"{k};{k * 7 % 1000}.{k % 100:02d};bid" for k in range(1000)]
    while not ends.is_set():
        book = {}
        for line in lines:
            number, price, side = line.split(";")
            book[int(number) % 50, side] = float(price)
        ends.wait(0.001)


@case("order-feed", True)
@case("order-feed.cured", False)
def order_feed(threads):
    """Prices by a small network, several times a step."""
    model = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(256, 256), nn.SiLU())]).cuda()
    x = torch.randn(512, 256, device="cuda")
    if threads:
        ends = threading.Event()
        feeds = [threading.Thread(target=parse_feed, args=(ends,), daemon=True) for _ in range(3)]
    else:
        context = multiprocessing.get_context("fork")
        ends = context.Event()
        feeds = [context.Process(target=parse_feed, args=(ends,), daemon=True) for _ in range(3)]
    for feed in feeds:
        feed.start()

    @torch.no_grad()
    def step(index):
        for _ in range(2):
            y = model(x)
        y.mean().item()

    def end():
        ends.set()
        for feed in feeds:
            feed.join(5)

    step.end = end
    return step


# data-loader: windows of recordings are cut, scaled and noised by NumPy, one by one (ill), or on the GPU (cured)


@case("heartbeats", True)
@case("heartbeats.cured", False)
def heartbeats(on_host):
    """Trains on 64 windows of 12 leads."""
    random = np.random.default_rng(0)
    records = random.standard_normal((64, 12, 10000)).astype(np.float32)
    held = torch.from_numpy(records).cuda()
    model = nn.Sequential(nn.Conv1d(12, 128, 9, stride=2), nn.ReLU(), nn.Conv1d(128, 128, 9, stride=2), nn.ReLU(),
                          nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 5)).cuda()  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    near = torch.arange(2048, device="cuda")

    def cut():
        windows = []
        for _ in range(64):
            record, at = records[random.integers(64)], random.integers(10000 - 2048)
            window = record[:, at : at + 2048]
            window = (window - window.mean(1, keepdims=True)) / window.std(1, keepdims=True)
            windows.append(window + 0.05 * random.standard_normal(window.shape, dtype=np.float32))
        return torch.from_numpy(np.stack(windows)).pin_memory().cuda(non_blocking=True)

    def step(index):
        if on_host:
            x = cut()
        else:
            at = torch.randint(0, 10000 - 2048, (64, 1), device="cuda") + near
            x = held[torch.randint(0, 64, (64,), device="cuda")].gather(2, at[:, None].expand(-1, 12, -1))
            x = (x - x.mean(2, keepdim=True)) / x.std(2, keepdim=True)
            x = x + 0.05 * torch.randn_like(x)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# data-loader: a batch of baskets is made of Python's lists, padded by hand (ill), or sliced from an array (cured)


@case("baskets", True)
@case("baskets.cured", False)
def baskets(lists):
    """Recommends from what was bought."""
    rows = [{"items": [(k * 31 + j * 17) % 50000 for j in range(20 + k % 60)], "paid": k % 97} for k in range(8192)]
    array = torch.tensor([(r["items"] + [0] * 80)[:80] for r in rows]).pin_memory()
    paid = torch.tensor([float(r["paid"]) for r in rows]).pin_memory()
    table = nn.EmbeddingBag(50000, 256, mode="mean", sparse=True).cuda()
    head = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
    optimizer = torch.optim.SGD(list(table.parameters()), 0.01)

    def step(index):
        first = index * 2048 % 8192
        if lists:
            batch = rows[first : first + 2048]
            longest = 80
            ids = torch.tensor([row["items"] + [0] * (longest - len(row["items"])) for row in batch])
            y = torch.tensor([float(row["paid"]) for row in batch])
            ids, y = ids.pin_memory().cuda(non_blocking=True), y.pin_memory().cuda(non_blocking=True)
        else:
            ids = array[first : first + 2048].cuda(non_blocking=True)
            y = paid[first : first + 2048].cuda(non_blocking=True)
        loss = (head(table(ids))[:, 0] - y).square().mean()
        optimizer.zero_grad()
        head.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# periodic-slow-iteration: each fifth step saves the network and its optimizer (ill), or none does in this run (cured)


@case("glaciers", 5)
@case("glaciers.cured", 1000)
def glaciers(every):
    """Trains a surrogate of flowing ice."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 1024))
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x = torch.randn(16384, 1024, device="cuda")
    torch.set_float32_matmul_precision("high")
    path = os.path.join(FILES, f"glaciers-{os.getpid()}.pt")

    def step(index):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % every == every - 1:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": index}, path)

    def end():
        Path(path).unlink(missing_ok=True)

    step.end = end
    return step


# allocation-in-loop: the cache of memory is emptied after each step, to be safe (ill: cudaFree, cudaMalloc), or not


@case("tiles-of-forest", True)
@case("tiles-of-forest.cured", False)
def tiles(emptied):
    """Maps trees in tiles of pictures from the air."""
    model = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 1, 1)).cuda().half()  # fmt: skip
    model = model.to(memory_format=torch.channels_last)
    tile = torch.randn(8, 4, 512, 512, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(index):
        for _ in range(4):
            trees = model(tile).sigmoid()
            trees = trees.float().mean()
            if emptied:
                torch.cuda.empty_cache()
        return trees

    return step


# logging: each example's score goes to a log with the time, in each step (ill), or only their mean does (cured)


@case("spam", True)
@case("spam.cured", False)
def spam(each):
    """Scores 3000 letters a step."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 2))
    model = model.cuda().bfloat16()
    letters = torch.randn(16384, 1024, device="cuda", dtype=torch.bfloat16)
    handler = logging.FileHandler(os.path.join(FILES, f"letters-{os.getpid()}.log"), mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log = logging.getLogger("letters")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers[:] = [handler]

    @torch.no_grad()
    def step(index):
        scores = model(letters)[:3000].float().softmax(-1)[:, 1].tolist()
        if each:
            for letter, score in enumerate(scores):
                log.info("letter %d of step %d: score %.4f", letter, index, score)
        else:
            log.info("step %d: mean score %.4f", index, sum(scores) / len(scores))

    return step


# scalar-reads: the norm of each parameter's gradient is read by the host, to clip (ill), or stays on the GPU (cured)


@case("proteins-folded", True)
@case("proteins-folded.cured", False)
def proteins(read):
    """Trains 30 layers, with clipped gradients."""
    layers = [nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.ReLU()) for _ in range(30)]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x = torch.randn(8192, 512, device="cuda")
    torch.set_float32_matmul_precision("high")

    def step(index):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if read:
            total = 0.0
            for p in model.parameters():
                total += p.grad.norm().item() ** 2
                if not torch.isfinite(p.grad).all():
                    raise ValueError("a gradient is not finite")
            if total**0.5 > 1.0:
                torch._foreach_mul_([p.grad for p in model.parameters()], 1.0 / total**0.5)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()

    return step


# autocast-weight-casts: each of 40 words enters autocast anew, which casts all weights (ill), or they are cast once


@case("words-one-by-one", True)
@case("words-one-by-one.cured", False)
def words(anew):
    """Writes 40 words for 4 requests."""
    layers = nn.ModuleList([nn.Linear(4096, 4096, bias=False) for _ in range(8)]).cuda().requires_grad_(False)
    if not anew:
        layers = layers.bfloat16()
    first = torch.randn(4, 4096, device="cuda", dtype=torch.float32 if anew else torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = first
        for _ in range(40):
            with torch.autocast("cuda", torch.bfloat16) if anew else contextlib.nullcontext():
                for layer in layers:
                    y = torch.tanh(layer(y))
        return y

    return step


# launch-bound: JAX dispatches the operations of 20 short steps of swimmers one by one (ill), or as one program (cured)


@case("swimmers", False)
@case("swimmers.cured", True)
def swimmers(compiled):
    """Moves swimmers, which turn to their neighbours."""
    import jax
    import jax.numpy as jnp

    def moved(state):
        x, angle = state
        turned = 0.5 * jnp.roll(angle, 1) + 0.5 * jnp.roll(angle, -1)
        angle = angle + 0.1 * jnp.sin(turned - angle)
        x = x + 0.01 * jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1)
        return x - jnp.floor(x), angle

    def rounds(state):
        for _ in range(20):
            state = moved(state)
        return state

    run = jax.jit(rounds) if compiled else rounds
    state = (jnp.zeros((4096, 2)), jnp.linspace(0.0, 6.0, 4096))

    def step(index):
        jax.block_until_ready(run(state))

    return step


# healthy: the loss is printed in each step, flushed, but a step has 30 ms of kernels


@case("seismograms")
def seismograms():
    """Trains a wide network in bf16."""
    model = nn.Sequential(nn.Linear(4096, 8192), nn.GELU(), nn.Linear(8192, 8192), nn.GELU(), nn.Linear(8192, 4096))
    model = model.cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
    x = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)

    def step(index):
        loss = (model(x) - x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {index} loss {loss.item():.4f}", file=sys.stderr, flush=True)

    return step


# healthy: a step of training of many small layers, captured once, and replayed


@case("small-reactor")
def small_reactor():
    """Trains a deep network of middling width, as a graph."""
    model = nn.Sequential(*[m for _ in range(24) for m in (nn.Linear(512, 512), nn.Tanh())]).cuda().bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), 1e-5, capturable=True, foreach=True)
    x = torch.randn(8192, 512, device="cuda", dtype=torch.bfloat16)

    def work():
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        work()
    return lambda index: graph.replay()


# healthy: a mask is written out and shapes change, but once a step, after and before long products


@case("kept-spectra")
def kept_spectra():
    """Keeps spectra that score well, and projects them on."""
    weights = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 0.015 for _ in range(8)]
    spectra = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = spectra
        for w in weights:
            y = F.relu(y @ w)
        kept = spectra[y.float().mean(1) >= 0]
        for w in weights:
            kept = F.relu(kept @ w)
        return kept.float().mean()

    return step


if __name__ == "__main__":
    run_cases()
