"""An eighth set of programs in PyTorch, JAX and Triton: one planted illness of the timeline a case (or none); NAME.cured is its twin."""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from torch_harness import case, run_cases

DEVICE = "cuda"
HALF = torch.bfloat16


class Residual(nn.Module):
    """A block of a residual network of vectors."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def busy(matrix, out, times):
    """Products of a matrix with itself: GPU time without much Python."""
    for _ in range(times):
        torch.mm(matrix, matrix, out=out)


# ----------------------------------------------------------------------------------------------------------------------
# unfused-optimizer. 48 residual blocks (288 tensors) and AdamW a tensor at a time (foreach=False): ~12 operations a tensor: ~3500 launches of ~4 us: 14 ms; the twin: fused=True, ~0.2 ms. The
# network itself: ~10 ms of launches forward and backward.
@case("clay-pots", {"foreach": False})
@case("clay-pots.cured", {"fused": True})
def clay(how):
    model = nn.Sequential(*[Residual(256, 512) for _ in range(48)]).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, **how)
    x = torch.randn(512, 256, device=DEVICE)

    def step(_):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-attention. Causal attention over 2048 notes, 16 heads, batch 4, 8 layers: scores of 268 MB written, masked, read by the softmax, written, read: ~0.5 ms a layer and direction; the twin
# calls scaled_dot_product_attention (~0.07 ms).
@case("organ-chorales", False)
@case("organ-chorales.cured", True)
def chorales(fused):
    layers, heads, width, notes, batch = 8, 16, 1024, 2048, 4
    mix = [nn.Linear(width, 3 * width, bias=False, device=DEVICE, dtype=HALF) for _ in range(layers)]
    join = [nn.Linear(width, width, bias=False, device=DEVICE, dtype=HALF) for _ in range(layers)]
    later = torch.ones(notes, notes, dtype=torch.bool, device=DEVICE).triu(1)
    x = torch.randn(batch, notes, width, device=DEVICE, dtype=HALF)

    def heard(q, k, v):
        if fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        weight = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
        return weight.masked_fill(later, float("-inf")).softmax(-1) @ v

    def step(_):
        y = x
        for m, j in zip(mix, join, strict=True):
            q, k, v = m(y).view(batch, notes, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = y + j(heard(q, k, v).transpose(1, 2).reshape(batch, notes, width))
        y.float().square().mean().backward()
        for layer in mix + join:
            layer.weight.grad = None

    return step


# ----------------------------------------------------------------------------------------------------------------------
# changing-shapes. An event camera: of each of 40 tiles the pixels that changed are selected by a mask and summed up: nonzero, so a wait and a new size each (~80 us); the twin weighs with the mask.
@case("eye-of-a-fly", True)
@case("eye-of-a-fly.cured", False)
def fly(select):
    tiles, pixels = 40, 256 * 256
    now, before = torch.rand(tiles, pixels, device=DEVICE), torch.rand(tiles, pixels, device=DEVICE)
    matrix = torch.randn(2048, 2048, device=DEVICE, dtype=HALF)
    out = torch.empty_like(matrix)

    def motion(a, b):
        change = a - b
        moved = change.abs() > 0.6
        if select:
            events = change[moved]
            return (events * events.abs()).sum()
        return (change * change.abs() * moved).sum()

    def step(_):
        sums = [motion(now[t], before[t]) for t in range(tiles)]
        busy(matrix, out, 8)
        return torch.stack(sums)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# data-loader. Receipts as lines of JSON are parsed and hashed to features in Python (~10 ms a batch) by the loop itself; the twin has four worker processes. The model: ~5 ms.
class Receipts(torch.utils.data.Dataset):
    """Batches of hashed features of receipts."""

    def __init__(self):
        draw = random.Random(7)
        self.lines = [
            json.dumps(
                {
                    "shop": draw.randrange(999),
                    "items": [{"name": f"item{draw.randrange(5000)}", "price": draw.random()} for _ in range(12)],
                }
            )
            for _ in range(512)
        ]

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        rows = np.zeros((256, 512), np.float32)
        for row in range(256):
            receipt = json.loads(self.lines[(index * 61 + row) % 512])
            for item in receipt["items"]:
                place = 0
                for letter in item["name"]:
                    place = (place * 131 + ord(letter)) % 509
                rows[row, place] += item["price"]
        return torch.from_numpy(rows)


@case("receipts", 0)
@case("receipts.cured", 4)
def receipts(workers):
    more = {"prefetch_factor": 4, "persistent_workers": True} if workers else {}
    batches = iter(
        torch.utils.data.DataLoader(Receipts(), batch_size=None, num_workers=workers, pin_memory=False, **more)
    )
    first = nn.Linear(512, 8192, device=DEVICE, dtype=HALF)
    matrix = torch.randn(8192, 8192, device=DEVICE, dtype=HALF)
    out = torch.empty_like(matrix)

    def step(_):
        batch = next(batches).to(DEVICE, dtype=HALF)
        hidden = first(batch)
        busy(matrix, out, 3)
        return hidden.relu() @ out

    return step


# ----------------------------------------------------------------------------------------------------------------------
# python-threads. 180 small operations a step (1 ms alone) and a few products, while two threads of Python count words for a dashboard in bursts of ~30 us: each operation gives the interpreter's
# lock away, and waits for it; the twin counts in other processes.
COUNTING = """
import time
words = [f"w{n * n % 977}" for n in range(400)]
while True:
    seen = {}
    for word in words:
        seen[word] = seen.get(word, 0) + len(word)
    time.sleep(0)
"""


@case("dashboard", True)
@case("dashboard.cured", False)
def dashboard(in_threads):
    x = torch.randn(64, 256, device=DEVICE)
    w = torch.randn(256, 256, device=DEVICE) * 0.05
    matrix = torch.randn(4096, 4096, device=DEVICE, dtype=HALF)
    out = torch.empty_like(matrix)
    stop = threading.Event()
    helpers = []

    def count():
        words = [f"w{n * n % 977}" for n in range(400)]
        while not stop.is_set():
            seen = {}
            for word in words:
                seen[word] = seen.get(word, 0) + len(word)
            time.sleep(0)

    if in_threads:
        helpers = [threading.Thread(target=count, daemon=True) for _ in range(2)]
        for helper in helpers:
            helper.start()
    else:
        helpers = [subprocess.Popen([sys.executable, "-c", COUNTING]) for _ in range(2)]

    @torch.no_grad()
    def step(_):
        y = x
        busy(matrix, out, 4)
        for _ in range(60):
            y = torch.tanh(y @ w) + 0.1
        return y.sum().item()

    def end():
        stop.set()
        for helper in helpers:
            if in_threads:
                helper.join()
            else:
                helper.kill()
                helper.wait()

    step.end = end
    return step


# ----------------------------------------------------------------------------------------------------------------------
# periodic-slow-iteration. Each fifth step the distribution of 1.5 M activations goes to NumPy for a histogram (~25 ms); the twin takes the histogram on the GPU. A step: ~5 ms.
@case("gut-bacteria", True)
@case("gut-bacteria.cured", False)
def bacteria(by_numpy):
    model = nn.Sequential(nn.Linear(2048, 4096), nn.SiLU(), nn.Linear(4096, 2048)).to(DEVICE, HALF)
    x = torch.randn(8192, 2048, device=DEVICE, dtype=HALF)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []

    def step(index):
        for _ in range(4):
            y = model(x)
            loss = F.mse_loss(y, x)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if index % 5 == 4:
            values = y.detach()[:768].float().flatten()
            if by_numpy:
                kept.append(np.histogram(values.cpu().numpy(), bins=200, range=(-4.0, 4.0))[0])
            else:
                kept.append(torch.histc(values, bins=200, min=-4.0, max=4.0))
        return loss.item()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# logging. A race's predictions: 3000 lines a step are formatted and written to a log, flushed each (~5 ms); the twin keeps the numbers in page-locked memory and would write them at the end.
@case("yacht-race", True)
@case("yacht-race.cured", False)
def yachts(each):
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 2)).to(DEVICE, HALF)
    x = torch.randn(3000, 1024, device=DEVICE, dtype=HALF)
    matrix = torch.randn(4096, 4096, device=DEVICE, dtype=HALF)
    out = torch.empty_like(matrix)
    kept = torch.empty(64, 3000, 2, pin_memory=True)
    log = tempfile.TemporaryFile("w")  # noqa: SIM115  closed with the program

    @torch.no_grad()
    def step(index):
        busy(matrix, out, 6)
        kept[index % 64].copy_(model(x), non_blocking=True)
        torch.cuda.current_stream().synchronize()
        if each:
            for boat, (speed, heading) in enumerate(kept[index % 64].tolist()):
                log.write(f"step {index} boat {boat:05d} speed {speed:.4f} heading {heading:.4f}\n")
                log.flush()

    step.end = log.close
    return step


# ----------------------------------------------------------------------------------------------------------------------
# autocast-weight-casts. A world model dreams 24 moves ahead, and each move enters autocast anew: the cache of cast weights is emptied at each exit, and six matrices of 4096 x 4096 (FP32, 64 MB) are cast each
# time: 24 x 6 x 96 MB = 14 GB: 3.3 ms; the twin enters autocast once a dream.
@case("dreams-of-a-rover", True)
@case("dreams-of-a-rover.cured", False)
def dreams(each_move):
    layers = [nn.Linear(4096, 4096, bias=False, device=DEVICE) for _ in range(6)]
    state = torch.randn(32, 4096, device=DEVICE)

    def move(s):
        for layer in layers:
            s = torch.tanh(layer(s))
        return s

    def step(_):
        s = state
        if each_move:
            for _ in range(24):
                with torch.autocast("cuda", HALF):
                    s = move(s).detach()
        else:
            with torch.autocast("cuda", HALF):
                for _ in range(24):
                    s = move(s).detach()
        return s

    return step


# ----------------------------------------------------------------------------------------------------------------------
# dense-embedding-gradient. Stamps of the world: a table of 5 M x 32 (640 MB), 16 Ki rows used a step: a dense gradient and Adam over the whole table: ~9 GB: 2.2 ms and more; the twin has sparse=True and
# SparseAdam.
@case("postage-stamps", False)
@case("postage-stamps.cured", True)
def stamps(sparse):
    rows = 5_000_000
    table = nn.EmbeddingBag(rows, 32, mode="sum", sparse=sparse, device=DEVICE)
    head = nn.Linear(32, 1, device=DEVICE)
    make = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizer = make(list(table.parameters()), lr=1e-3)
    batches = [torch.randint(rows, (2048, 8), device=DEVICE) for _ in range(4)]

    def step(index):
        head(table(batches[index % 4])).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        head.weight.grad = head.bias.grad = None

    return step


# ----------------------------------------------------------------------------------------------------------------------
# pageable-copies. Embeddings of a whole library's pages go to the host (.cpu(): pageable and new memory, 64 MB: ~15 ms and more); the twin copies into a page-locked tensor that it keeps (~1.2 ms). Model: ~0.6 ms.
@case("pages-embedded", True)
@case("pages-embedded.cured", False)
def pages(plain):
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(DEVICE, HALF)
    x = torch.randn(16384, 1024, device=DEVICE, dtype=HALF)
    kept = torch.empty(16384, 1024, pin_memory=True)

    @torch.no_grad()
    def step(_):
        y = F.normalize(model(x).float(), dim=-1)
        if plain:
            return y.cpu()
        kept.copy_(y, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return kept

    return step


# ----------------------------------------------------------------------------------------------------------------------
# no-copy-overlap. Microscope stacks: four of 96 MB (page-locked) a step, each copied (1.8 ms) in the stream of the model (1.8 ms); the twin copies the next in another stream meanwhile.
@case("living-cells", False)
@case("living-cells.cured", True)
def living(beside):
    stacks = [torch.rand(24 << 20, pin_memory=True) for _ in range(2)]
    places = [torch.empty(24 << 20, device=DEVICE) for _ in range(2)]
    matrix = torch.randn(6144, 6144, device=DEVICE, dtype=HALF)
    out = torch.empty_like(matrix)
    side = torch.cuda.Stream()
    came = [torch.cuda.Event() for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]

    def fetch(k):
        with torch.cuda.stream(side if beside else torch.cuda.current_stream()):
            used[k % 2].wait()
            places[k % 2].copy_(stacks[k % 2], non_blocking=True)
            came[k % 2].record()

    fetch(0)

    def step(_):
        for k in range(4):
            came[k % 2].wait()
            fetch(k + 1)
            places[k % 2].mul_(0.5).add_(0.1)
            busy(matrix, out, 2)
            used[k % 2].record()
        torch.cuda.current_stream().synchronize()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# recompilation. JAX: each step makes a new function of its bend (a closure) and compiles it (~40 ms), for 12 passes of ~0.07 ms; the twin compiles once, and the bend is an argument.
@case("bent-light", True)
@case("bent-light.cured", False)
def bent(anew):
    import jax
    import jax.numpy as jnp

    rays = jnp.linspace(0.0, 1.0, 1 << 25)

    def traced(x, bend):
        return x + bend * jnp.sin(x) * 0.1

    once = jax.jit(traced)

    def step(index):
        bend = 0.5 + 0.01 * index
        through = jax.jit(lambda x: traced(x, bend)) if anew else lambda x: once(x, bend)
        x = rays
        for _ in range(12):
            x = through(x)
        x.block_until_ready()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# scalar-reads. JAX: a relaxation of 40 sweeps (~60 us each) that reads the largest change after each to see if it may stop; the twin looks once a step.
@case("soap-films", True)
@case("soap-films.cured", False)
def films(each):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def sweep(u):
        new = 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1))
        new = new.at[0].set(1.0).at[-1].set(-1.0)
        return new, jnp.abs(new - u).max()

    start = jax.random.uniform(jax.random.PRNGKey(1), (2048, 2048))
    float(sweep(start)[1])

    def step(_):
        u, change = start, None
        for _ in range(40):
            u, change = sweep(u)
            if each and float(change) < 1e-6:
                break
        return float(change)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# launch-bound. Triton: alignment of two songs by anti-diagonals: 600 small kernels a step, each launched from Python (~15 us and more); the twin replays them from a CUDA graph (~2 us).
@triton.jit
def diagonal(cost, path, first, count, size, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = first + k
    here = k < count
    a = tl.load(path + row, mask=here, other=0.0)
    b = tl.load(path + row + 1, mask=here, other=0.0)
    c = tl.load(cost + row % size, mask=here, other=0.0)
    tl.store(path + size + 2 + row, tl.minimum(a, b) + c, mask=here)


@case("songs-aligned", False)
@case("songs-aligned.cured", True)
def songs(graphed):
    size = 4096
    cost = torch.rand(size, device=DEVICE)
    path = torch.zeros(2 * size + 8, device=DEVICE)

    def align():
        for d in range(600):
            diagonal[(16,)](cost, path, 16, 2048 + 16 * (d % 64), size, BLOCK=256, num_warps=4)

    align()
    torch.cuda.synchronize()
    if not graphed:
        return lambda _: align()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        align()
    return lambda _: graph.replay()


# ----------------------------------------------------------------------------------------------------------------------
# layout-conversion. Triton: gains along the other axis of a field of 4096 x 8192 (128 MB), by a kernel over rows: the field is transposed and copied before and after each of six passes (2 x 256 MB at a
# transposition's rate); the twin gives the kernel the strides of the field as it lies.
@triton.jit
def gained(x, gain, y, columns, row_step, column_step, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    at = r[:, None] * row_step + c[None, :] * column_step
    g = tl.load(gain + r)
    v = tl.load(x + at)
    tl.store(y + at, v * g[:, None] + 0.01)


@case("tides-in-a-fjord", True)
@case("tides-in-a-fjord.cured", False)
def fjord(copies):
    field = torch.rand(4096, 8192, device=DEVICE)
    gain = torch.rand(8192, device=DEVICE)

    def along_columns(f):
        turned = f.t().contiguous() if copies else f.t()
        out = torch.empty_like(turned)
        rows, columns = turned.shape
        tall, wide = (8, 256) if copies else (256, 8)
        gained[(rows // tall, columns // wide)](
            turned, gain, out, columns, turned.stride(0), turned.stride(1), BLOCK_R=tall, BLOCK_C=wide
        )
        return out.t().contiguous() if copies else out.t()

    def step(_):
        f = field
        for _ in range(6):
            f = along_columns(f)
        return f

    return step


# ----------------------------------------------------------------------------------------------------------------------
# Healthy, gpu-busy: training of a segmenter of retinas: convolutions in channels_last and half precision; a loss read at the end of each step, whose launches were far ahead.
@case("retinas")
def retinas():
    parts = [nn.Conv2d(3, 128, 3, padding=1), nn.ReLU(inplace=True)]
    for _ in range(6):
        parts += [nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(inplace=True)]
    model = nn.Sequential(*parts, nn.Conv2d(128, 2, 1)).to(DEVICE, HALF, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.rand(12, 3, 256, 256, device=DEVICE, dtype=HALF).to(memory_format=torch.channels_last)

    def step(_):
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


# Healthy, graphs: 400 small operations of a controller, in a CUDA graph.
@case("pendulums")
def pendulums():
    angle, speed = torch.rand(4096, device=DEVICE), torch.zeros(4096, device=DEVICE)

    def swing():
        for _ in range(100):
            speed.sub_(torch.sin(angle), alpha=0.01)
            speed.mul_(0.999)
            angle.add_(speed, alpha=0.01)

    swing()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        swing()

    def step(_):
        for _ in range(4):
            graph.replay()

    return step


# Healthy, overlapped: weights of a large model come layer by layer from page-locked memory (64 MB each, 1.2 ms) in a stream of their own beside the products of the layer before (~1.6 ms).
@case("borrowed-layers")
def borrowed():
    width, count = 5792, 6
    host = [torch.randn(width, width, dtype=HALF).mul_(0.01).pin_memory() for _ in range(2)]
    place = [torch.empty(width, width, device=DEVICE, dtype=HALF) for _ in range(2)]
    x = torch.randn(16384, width, device=DEVICE, dtype=HALF)
    side = torch.cuda.Stream()
    came = [torch.cuda.Event() for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]

    def fetch(k):
        with torch.cuda.stream(side):
            used[k % 2].wait()
            place[k % 2].copy_(host[k % 2], non_blocking=True)
            came[k % 2].record()

    fetch(0)

    @torch.no_grad()
    def step(_):
        y = x
        for k in range(count):
            fetch(k + 1)
            came[k % 2].wait()
            y = y @ place[k % 2]
            used[k % 2].record()
        return y

    return step


# Healthy, gpu-busy: a transformer's training whose attention, optimizer and precision are as they should be; ~3 ms of Python behind ~20 ms of the GPU.
@case("court-records")
def court():
    width, heads, words, batch, layers = 1024, 16, 1024, 16, 4
    mix = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)]).to(DEVICE, HALF)
    wide = nn.ModuleList([Residual(width, 4 * width) for _ in range(layers)]).to(DEVICE, HALF)
    optimizer = torch.optim.AdamW([*mix.parameters(), *wide.parameters()], lr=1e-4, fused=True)
    x = torch.randn(batch, words, width, device=DEVICE, dtype=HALF)

    def step(_):
        y = x
        for m, w in zip(mix, wide, strict=True):
            q, k, v = m(y).view(batch, words, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = w(
                y + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, words, width)
            )
        y.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# Healthy, gpu-busy: JAX: a compiled scan of 30 moves of a fluid of 4096 x 4096; one read a step.
@case("rivers-of-lava")
def lava():
    import jax
    import jax.numpy as jnp

    @jax.jit
    def flow(u):
        def move(v, _):
            near = jnp.roll(v, 1, 0) + jnp.roll(v, -1, 0) + jnp.roll(v, 1, 1) + jnp.roll(v, -1, 1)
            return v + 0.2 * (near - 4 * v), None

        return jax.lax.scan(move, u, None, length=30)[0]

    state = [jax.random.uniform(jax.random.PRNGKey(2), (4096, 4096))]

    def step(_):
        state[0] = flow(state[0])
        return float(state[0][0, 0])

    return step


if __name__ == "__main__":
    run_cases()
