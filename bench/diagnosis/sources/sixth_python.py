"""Programs in PyTorch and JAX of several fields, each with one illness of its timeline or none."""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch_harness import case, run_cases

GPU = torch.device("cuda")


def dense(sizes, dtype=torch.bfloat16, act=nn.GELU):
    """Layers of the sizes, an activation between them."""
    parts = []
    for a, b in itertools.pairwise(sizes):
        parts += [nn.Linear(a, b, device=GPU, dtype=dtype), act()]
    return nn.Sequential(*parts[:-1])


# scalar-reads (also sync-each-operation): each trial's power is compared on the host; the twin keeps the best on
# the GPU, and reads it once.
@case("pulsar-periods", True)
@case("pulsar-periods.cured", False)
def pulsar(on_host):
    times = torch.linspace(0, 600, 4 << 20, device=GPU)
    counts = torch.rand(4 << 20, device=GPU)

    def power_of(frequency):
        wave = torch.cos(times * frequency)
        return (wave * counts).sum().square()

    def step(index):
        trials = [0.5 + 0.01 * k + 1e-4 * index for k in range(120)]
        if on_host:
            best, at = 0.0, None
            for frequency in trials:
                power = power_of(frequency)
                if power > best:
                    at = frequency
                best = max(best, power.item())
            return best, at
        powers = torch.stack([power_of(frequency) for frequency in trials])
        best, at = powers.max(0)
        return best.item(), trials[at.item()]

    step(0)
    return step


# data-loader: each batch is parsed from lines of JSON in the loop; the twin has parsed them before, into page-
# locked memory.
@case("herbarium-sheets", True)
@case("herbarium-sheets.cured", False)
def herbarium(parsed_in_loop):
    random = np.random.default_rng(5)
    lines = [
        json.dumps({"id": k, "genus": int(k % 37), "leaf": [round(float(v), 5) for v in random.normal(size=96)]})
        for k in range(2048)
    ]
    sheets = [json.loads(line) for line in lines]
    leaves = torch.tensor([sheet["leaf"] for sheet in sheets])
    genera = torch.tensor([sheet["genus"] for sheet in sheets])
    model = dense([96, 8192, 8192, 8192, 8192, 37])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    orders = [random.permutation(2048)[:640] for _ in range(8)]

    def batch(index):
        rows = orders[index % 8]
        if parsed_in_loop:
            chosen = [json.loads(lines[row]) for row in rows]
            x = torch.tensor([sheet["leaf"] for sheet in chosen])
            y = torch.tensor([sheet["genus"] for sheet in chosen])
        else:
            rows = torch.from_numpy(rows)
            x, y = leaves[rows].pin_memory(), genera[rows].pin_memory()
        return x.to(GPU, torch.bfloat16, non_blocking=True), y.to(GPU, non_blocking=True)

    def step(index):
        x, y = batch(index)
        x = x.repeat(4, 1) + 0.01 * torch.randn(4 * len(y), 96, device=GPU, dtype=x.dtype)  # four views of each
        loss = F.cross_entropy(model(x).float(), y.repeat(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 4 == 3:
            loss.item()

    step(0)
    return step


class Strokes(nn.Module):
    """A layer of attention over strokes of a pen, and what follows it."""

    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
            mixed = torch.softmax(scores, -1) @ v
        return x + self.out(mixed.transpose(1, 2).reshape(b, t, width))


# unfused-attention: scores of 1536 x 1536 are stored, scaled, softmaxed and multiplied; the twin calls
# scaled_dot_product_attention.
@case("pen-strokes", False)
@case("pen-strokes.cured", True)
def pen_strokes(fused):
    model = nn.Sequential(*[Strokes(768, 12, fused) for _ in range(4)]).to(GPU, torch.bfloat16)
    x = torch.randn(3, 1536, 768, device=GPU, dtype=torch.bfloat16)

    def step(index):
        for _ in range(3):
            model.zero_grad()
            model(x).float().square().mean().backward()

    step(0)
    return step


# autocast-weight-casts: each small request enters autocast, which casts 0.5 GB of weights again; the twin's weights
# are bfloat16.
@case("recipes-ranked", True)
@case("recipes-ranked.cured", False)
def recipes(autocast):
    model = dense([4096] * 9, torch.float32, nn.ReLU)
    if not autocast:
        model.to(torch.bfloat16)
    requests = [torch.randn(32, 4096, device=GPU) for _ in range(20)]

    @torch.no_grad()
    def ranked(x):
        if autocast:
            with torch.autocast("cuda", torch.bfloat16):
                return model(x)
        return model(x.to(torch.bfloat16))

    def step(index):
        best = [ranked(x).amax(1) for x in requests]
        if index % 3 == 2:
            torch.stack(best).sum().item()

    step(0)
    return step


# layout-conversion: NCHW activations are permuted to NHWC for each normalisation and back; the twin is
# channels_last throughout.
@case("leaf-diseases", False)
@case("leaf-diseases.cured", True)
def leaf_diseases(last):
    width, layers = 192, 10
    convolutions = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(layers)]).to(GPU, torch.bfloat16)
    x = torch.randn(48, width, 56, 56, device=GPU, dtype=torch.bfloat16)
    if last:
        x = x.to(memory_format=torch.channels_last)
        convolutions.to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(index):
        y = x
        for convolution in convolutions:
            z = convolution(y).permute(0, 2, 3, 1)
            if not last:
                z = z.contiguous()
            z = F.layer_norm(z, (width,)).permute(0, 3, 1, 2)
            if not last:
                z = z.contiguous()
            y = y + F.gelu(z)
        return y.mean()

    step(0)
    return step


# dense-embedding-gradient: gradient and Adagrad of a table of 2 million rows are dense, 16384 rows are used; the
# twin's are sparse.
@case("playlists", False)
@case("playlists.cured", True)
def playlists(sparse):
    rows, width = 2_000_000, 64
    table = nn.Embedding(rows, width, sparse=sparse, device=GPU)
    tower = dense([width * 8, 4096, 4096, 64])
    of_table = torch.optim.Adagrad(table.parameters(), lr=0.05)
    of_tower = torch.optim.SGD(tower.parameters(), lr=0.01)
    songs = [torch.randint(rows, (2048, 8), device=GPU) for _ in range(4)]

    def step(index):
        x = table(songs[index % 4]).flatten(1)
        for _ in range(2):
            tower(x.detach().bfloat16()).float().square().mean().backward()
        loss = tower(x.bfloat16()).float().square().mean()
        loss.backward()
        of_table.step()
        of_tower.step()
        of_table.zero_grad()
        of_tower.zero_grad()

    step(0)
    return step


# recompilation: the load is a static argument of a jitted function, and another in each step; the twin traces it.
@case("bridge-loads", True)
@case("bridge-loads.cured", False)
def bridge(static):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    def deflection(u, load):
        def once(_, u):
            around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
            return 0.96 * u + 0.01 * around + 1e-3 * jnp.sin(load * u)

        return jax.lax.fori_loop(0, 60, once, u)

    solve = jax.jit(deflection, static_argnums=(1,)) if static else jax.jit(deflection)
    deck = jnp.linspace(0, 1, 4096 * 2048, dtype=jnp.float32).reshape(4096, 2048)
    loads = itertools.count()

    def step(index):
        solve(deck, 2.0 + 0.125 * next(loads)).block_until_ready()

    step(0)
    return step


# launch-bound: the steering of fish is dispatched operation by operation in JAX; the twin jits it as a loop.
@case("tuna-schools", False)
@case("tuna-schools.cured", True)
def tuna(jitted):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    def turn(k, fish):
        place, heading = fish
        pull = jnp.tanh(0.1 * place) - 0.05 * k * heading
        heading = 0.9 * heading + 0.1 * pull
        return place + 0.01 * heading, heading

    def steer(place, heading):
        fish = place, heading
        for k in range(60):
            fish = turn(k, fish)
        return fish

    if jitted:
        steer = jax.jit(lambda place, heading: jax.lax.fori_loop(0, 60, turn, (place, heading)))

    @jax.jit
    def current(weights, x):
        for _ in range(4):
            x = jnp.tanh(x @ weights)
        return x

    place = jnp.linspace(-1, 1, 200_000, dtype=jnp.float32)
    heading = jnp.cos(place)
    weights = jnp.full((4096, 4096), 1e-3, dtype=jnp.bfloat16)
    water = jnp.ones((4096, 4096), dtype=jnp.bfloat16)

    def step(index):
        flow = current(weights, water)
        a, b = steer(place, heading)
        jax.block_until_ready((flow, a, b))

    step(0)
    return step


# changing-shapes: echoes above a threshold are taken by a mask, of a size unknown until then; the twin weights them
# with zero and one.
@case("hail-echoes", True)
@case("hail-echoes.cured", False)
def hail(selected):
    sweeps = [torch.randn(6 << 20, device=GPU) for _ in range(12)]
    thresholds = [0.1 * k - 0.3 for k in range(5)]

    def statistics(echo, threshold):
        above = echo > threshold
        if selected:
            strong = echo[above]
            return torch.stack([strong.mean(), (strong * strong).mean()])
        weight = above.to(echo.dtype)
        strong = echo * weight
        count = weight.sum()
        return torch.stack([strong.sum() / count, (strong * strong).sum() / count])

    def step(index):
        return torch.stack([statistics(echo, threshold) for echo in sweeps for threshold in thresholds])

    step(0)
    return step


TALLY = """
import time


def tally(going):
    text = "51.2N 003.1E 17.25 0.81;" * 1600  # some milliseconds of decoding, each 12 ms and more
    while going():
        time.sleep(0.012)
        found = {}
        for part in text.split(";"):
            for word in part.split():
                value = 0
                for letter in word:
                    value = (value * 31 + ord(letter)) % 65521
                found[word] = found.get(word, 0) + value
"""


# python-threads: two threads decode messages in pure Python beside the loop that launches; the twin decodes in two
# processes.
@case("buoy-messages", True)
@case("buoy-messages.cured", False)
def buoys(threads):
    weights = torch.randn(1024, 1024, device=GPU, dtype=torch.bfloat16) * 0.03
    bias = torch.zeros(1024, device=GPU, dtype=torch.bfloat16)
    start = torch.randn(1024, 1024, device=GPU, dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        x = start
        for _ in range(400):
            x = torch.tanh(torch.addmm(bias, x, weights))
        if index % 4 == 3:
            x.float().mean().item()

    step(0)
    if threads:
        going = [True]
        names = {}
        exec(TALLY, names)
        beside = [threading.Thread(target=names["tally"], args=(lambda: going[0],), daemon=True) for _ in range(2)]
        for thread in beside:
            thread.start()

        def end():
            going[0] = False
            for thread in beside:
                thread.join()
    else:  # each ends by itself, should this process die: it asks for its parent
        code = TALLY + "\nimport os\nparent = os.getppid()\ntally(lambda: os.getppid() == parent)"
        beside = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]

        def end():
            for process in beside:
                process.kill()
                process.wait()

    step.end = end
    return step


# periodic-slow-iteration: each fifth step the neighbours of atoms are found anew by NumPy on the host; the twin
# finds them on the GPU.
@case("argon-box", True)
@case("argon-box.cured", False)
def argon(on_host):
    atoms, near, replicas = 1400, 32, 64
    first = torch.rand(atoms, 3, device=GPU) * 10
    state = {"place": first + 0.01 * torch.randn(replicas, atoms, 3, device=GPU), "near": None}
    state["speed"] = torch.zeros_like(state["place"])

    def neighbours(place):
        if on_host:
            p = place.cpu().numpy()
            squares = ((p[:, None] - p[None]) ** 2).sum(-1)
            np.fill_diagonal(squares, np.inf)
            return torch.from_numpy(np.argpartition(squares, near, axis=1)[:, :near].copy()).to(GPU)
        squares = torch.cdist(place, place).fill_diagonal_(torch.inf)
        return squares.topk(near, largest=False, sorted=False).indices

    def step(index):
        if state["near"] is None or index % 5 == 4:
            state["near"] = neighbours(state["place"][0])
        place, speed = state["place"], state["speed"]
        for _ in range(32):
            away = place.unsqueeze(2) - place[:, state["near"]]
            inverse = 1 / (away.square().sum(-1, keepdim=True) + 0.5)
            force = (away * (inverse**4 - 0.5 * inverse**2)).sum(2)
            speed = 0.99 * speed + 1e-4 * force
            place = place + 1e-3 * speed
        state["place"], state["speed"] = place, speed

    step(0)
    return step


class Song(nn.Module):
    """A residual block of a small model of bird song."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.relu(self.a(self.norm(x))))


# unfused-optimizer: AdamW with foreach=False, a dozen small kernels for each of 240 parameters; the twin's is fused.
@case("bird-songs", False)
@case("bird-songs.cured", True)
def bird_songs(fused):
    model = nn.Sequential(*[Song(512) for _ in range(40)]).to(GPU, torch.bfloat16)
    settings = {"fused": True} if fused else {"foreach": False, "fused": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **settings)
    x = torch.randn(12288, 512, device=GPU, dtype=torch.bfloat16)

    def step(index):
        loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step(0)
    return step


# tensor-cores-unused: products of floats in full precision, which the emulator does not need; the twin allows TF32.
@case("ocean-emulator", "highest")
@case("ocean-emulator.cured", "high")
def ocean(precision):
    torch.set_float32_matmul_precision(precision)
    model = dense([2048, 4096, 4096, 4096, 2048], torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    state = torch.randn(4096, 2048, device=GPU)

    def step(index):
        loss = F.mse_loss(model(state), state)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step(0)
    return step


# healthy, gpu-busy: a loss is read each step, but that of the step before, from page-locked memory: the GPU has
# work queued.
@case("glacier-retreat")
def glacier():
    model = dense([4096, 8192, 8192, 4096])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    ice = torch.randn(4096, 4096, device=GPU, dtype=torch.bfloat16)
    shown = torch.zeros(2).pin_memory()
    events = [torch.cuda.Event(), torch.cuda.Event()]
    lowest = [float("inf")]

    def step(index):
        for _ in range(2):
            loss = F.mse_loss(model(ice), ice)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        now = index % 2
        shown[now].copy_(loss.detach().float(), non_blocking=True)
        events[now].record()
        if index:
            events[1 - now].synchronize()
            lowest[0] = min(lowest[0], float(shown[1 - now]))

    step(0)
    return step


# healthy, gpu-busy: a thread decodes batches of 12 MB (NumPy, which lets the interpreter go) two ahead: hidden
# behind products.
@case("mammograms")
def mammograms():
    random = np.random.default_rng(7)
    pool = random.integers(0, 256, (64, 1024, 1024), dtype=np.uint8)
    ready, going = queue.Queue(2), [True]

    def decode():
        for turn in itertools.count():
            if not going[0]:
                return
            images = np.multiply(pool[turn * 3 % 60 : turn * 3 % 60 + 3], np.float32(1 / 255), dtype=np.float32)
            batch = torch.from_numpy(images.reshape(-1, 4096)).pin_memory()
            while going[0]:
                try:
                    ready.put(batch, timeout=0.1)
                    break
                except queue.Full:
                    pass

    thread = threading.Thread(target=decode, daemon=True)
    thread.start()
    model = dense([4096, 8192, 8192, 8192, 8192, 4096])
    tissue = torch.randn(4096, 4096, device=GPU, dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        images = ready.get().to(GPU, non_blocking=True)
        mixed = tissue + images.mean(0).bfloat16()
        for _ in range(4):
            mixed = torch.tanh(model(mixed))
        return mixed

    def end():
        going[0] = False
        thread.join()

    step(0)
    step.end = end
    return step


# healthy, graphs: hundreds of small kernels a step, replayed from a CUDA graph.
@case("flight-controller")
def flight():
    weights = torch.randn(256, 256, device=GPU) * 0.05
    state = torch.randn(512, 256, device=GPU)
    out = torch.zeros_like(state)

    @torch.no_grad()
    def controlled():
        x = state
        for _ in range(150):
            x = torch.tanh(x @ weights) + 0.1 * state
        out.copy_(x)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            controlled()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        controlled()

    def step(index):
        for _ in range(3):
            graph.replay()
        if index % 5 == 4:
            out.sum().item()

    step(0)
    return step


# healthy, gpu-busy: a jitted scan of large products in JAX, awaited once a step.
@case("sediment-layers")
def sediment():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    weights = jnp.full((6, 4096, 4096), 2e-3, dtype=jnp.bfloat16)
    bed = jnp.ones((8192, 4096), dtype=jnp.bfloat16)

    @jax.jit
    def settled(bed, weights):
        def layer(x, w):
            return jnp.tanh(x @ w), None

        for _ in range(3):
            bed, _ = jax.lax.scan(layer, bed, weights)
        return bed

    def step(index):
        settled(bed, weights).block_until_ready()

    step(0)
    return step


if __name__ == "__main__":
    run_cases()
