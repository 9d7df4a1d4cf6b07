"""The third part's programs in PyTorch, JAX and CuPy: one illness each, or none. NAME.cured is the work without it."""

import json
import os
import threading

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torch_harness import case, run_cases


def graphed(work):
    """A step that was captured once."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return lambda index: graph.replay()


# ---- scalar-reads: gradients of 12 small batches are added; each one's loss and hits are read (ill) or summed


@case("twelve-small-batches", True)
@case("twelve-small-batches.cured", False)
def accumulated(read):
    """Trains a tagger."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 1024), nn.GELU(),
                          nn.Linear(1024, 64)).cuda()  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x, y = torch.randn(12, 4096, 512, device="cuda"), torch.randint(0, 64, (12, 4096), device="cuda")
    history = []

    def step(index):
        optimizer.zero_grad()
        total, right = 0.0, 0.0
        for part in range(12):
            output = model(x[part])
            loss = F.cross_entropy(output, y[part]) / 12
            hits = (output.detach().argmax(1) == y[part]).sum()
            total += loss.item() if read else loss.detach()
            right += hits.item() if read else hits
            loss.backward()
        optimizer.step()
        history.append((total, right))

    return step


# ---- unfused-optimizer: a network of many scales, with RMSprop a parameter at a time (ill) or by lists (cured)


@case("many-scales", False)
@case("many-scales.cured", True)
def many_scales(lists):
    """Trains a network of depthwise convolutions of many sizes."""
    blocks = [nn.Sequential(nn.Conv2d(48, 48, k, padding=k // 2, groups=48), nn.GroupNorm(8, 48), nn.Conv2d(48, 48, 1))
              for k in (3, 5, 7) for _ in range(14)]  # fmt: skip
    model = nn.Sequential(*blocks).cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9, centered=True, foreach=lists)
    x = torch.randn(8, 48, 32, 32, device="cuda")

    def step(index):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


# ---- unfused-attention: the attention of a network that removes noise, written out (ill) or one call (cured, healthy)


class Noise(nn.Module):
    """Convolutions at 64 by 64, and attention over the pixels, heads of 40."""

    def __init__(self, width, heads, written):
        super().__init__()
        self.heads, self.written = heads, written
        self.convolve = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(2)])
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        """Two convolutions, and attention."""
        for layer in self.convolve:
            x = x + layer(F.silu(x))
        b, c, h, w = x.shape
        rows = x.flatten(2).transpose(1, 2)
        q, k, v = (f(rows).view(b, h * w, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.written:
            q, k, v = (t.reshape(b * self.heads, h * w, -1) for t in (q, k, v))
            empty = q.new_empty(1, 1, 1).expand(b * self.heads, h * w, h * w)
            scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=(c // self.heads) ** -0.5)
            y = torch.bmm(scores.float().softmax(-1).to(v.dtype), v).view(b, self.heads, h * w, -1)
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape(b, h * w, c)).transpose(1, 2).view(b, c, h, w)


@case("noise-removed", 4, True)
@case("noise-removed.cured", 4, False)
@case("noise-removed-large", 16, False)
def noise(batch, written):
    """Six rounds of removing noise."""
    model = nn.Sequential(*[Noise(320, 8, written) for _ in range(3)]).cuda().half().eval()
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(batch, 320, 64, 64, device="cuda", dtype=torch.half).contiguous(memory_format=torch.channels_last)

    @torch.inference_mode()
    def step(index):
        y = x
        for _ in range(6):
            y = y - 0.1 * model(y).clamp(-3, 3)

    return step


# ---- autocast-weight-casts: words one after the other from weights in single precision under autocast (ill), or bf16


@case("words-autocast", True)
@case("words-autocast.cured", False)
def words(autocast):
    """Writes eight words for 16 users."""
    layers = [
        nn.Sequential(nn.RMSNorm(3584), nn.Linear(3584, 7168, bias=False), nn.SiLU(), nn.Linear(7168, 3584, bias=False))
        for _ in range(10)
    ]
    model = nn.ModuleList(layers).cuda().eval()
    x = torch.randn(16, 3584, device="cuda")
    if not autocast:
        model, x = model.bfloat16(), x.bfloat16()

    @torch.no_grad()
    def step(index):
        y = x
        for _ in range(8):
            with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                for layer in model:
                    y = y + layer(y)
        return y

    return step


# ---- layout-conversion: video whose axes are turned and copied for each layer (ill) or kept (cured)


@case("video-axes", True)
@case("video-axes.cured", False)
def video(turned):
    """Mixes frames, then pixels, then channels."""
    model = nn.ModuleList([nn.Linear(192, 192) for _ in range(12)]).cuda().bfloat16()
    x = torch.randn(4, 16, 2304, 192, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = x
        for layer in model:
            if turned:
                z = y.permute(0, 3, 1, 2).contiguous()  # channels first, as a library of convolutions had it
                z = F.relu(layer(z.permute(0, 2, 3, 1).contiguous()))
                y = y + z
            else:
                y = y + F.relu(layer(y))

    return step


# ---- dense-embedding-gradient: words from their neighbours by Adagrad: a dense gradient of the table (ill) or its rows


@case("word-vectors", False)
@case("word-vectors.cured", True)
def word_vectors(sparse):
    """Trains vectors of two million words with samples that are no neighbours."""
    near, far = (nn.Embedding(2_000_000, 128, sparse=sparse).cuda() for _ in range(2))
    optimizer = torch.optim.Adagrad([*near.parameters(), *far.parameters()], 0.05, foreach=False)
    pairs = torch.randint(0, 2_000_000, (8, 7, 8192), device="cuda")

    def step(index):
        ids = pairs[index % 8]
        scores = (near(ids[0])[None] * far(ids[1:])).sum(-1)
        loss = F.softplus(-scores[0]).mean() + F.softplus(scores[1:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- changing-shapes: tokens go to 16 experts by nonzero (ill) or sorted into places of equal number (cured)


@case("experts", True)
@case("experts.cured", False)
def experts(chosen):
    """A layer of a mixture of experts, four times."""
    gate = nn.Linear(768, 16).cuda().bfloat16()
    sizes = ((768, 2048), (2048, 768))
    up, down = (torch.randn(16, a, b, device="cuda", dtype=torch.bfloat16) * 0.02 for a, b in sizes)
    x = torch.randn(8192, 768, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = x
        for _ in range(4):
            choice = gate(y).argmax(-1)
            if chosen:
                out = torch.zeros_like(y)
                for e in range(16):
                    at = (choice == e).nonzero().squeeze(1)
                    out[at] = F.gelu(y[at] @ up[e]) @ down[e]
            else:
                order = choice.argsort()
                batch = y[order].view(16, 512, 768)
                out = torch.empty_like(y)
                out[order] = torch.bmm(F.gelu(torch.bmm(batch, up)), down).view(8192, 768)
            y = y + out

    return step


# ---- periodic-slow-iteration: inside each marked iteration; each 5th one draws samples of its generator (ill), or none


@case("samples-each-fifth", 5)
@case("samples-each-fifth.cured", 0)
def samples_each(every):
    """Trains an autoencoder, and draws samples meanwhile."""
    coder = nn.Sequential(nn.Linear(3072, 2048), nn.GELU(), nn.Linear(2048, 256)).cuda()
    maker = nn.Sequential(nn.Linear(256, 2048), nn.GELU(), nn.Linear(2048, 3072)).cuda()
    optimizer = torch.optim.Adam([*coder.parameters(), *maker.parameters()], 1e-4, fused=True)
    x = torch.randn(8192, 3072, device="cuda")

    def step(index):
        loss = F.mse_loss(maker(coder(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if every and index % every == every - 1:
            with torch.no_grad():
                seen = [maker(torch.randn(8192, 256, device="cuda")).square().mean() for _ in range(24)]
            torch.stack(seen).mean().item()

    return step


# ---- data-loader: neighbours in a graph are sampled by NumPy in the process (ill) or by workers ahead (cured, healthy)


class Neighbourhoods(Dataset):
    """Vertices with samples of their neighbours' features."""

    def __init__(self):
        self.features = np.random.default_rng(0).standard_normal((20_000, 256)).astype(np.float32)

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        random = np.random.default_rng(index)
        first = random.choice(20_000, 15, replace=False)
        second = np.concatenate([random.choice(20_000, 10) for _ in first])
        return self.features[first], self.features[second].reshape(15, 10, 256).mean(1), index % 16


@case("neighbourhoods", 0, 128, 4096)
@case("neighbourhoods.cured", 10, 128, 4096)
@case("neighbourhoods-wide", 10, 96, 8192)
def neighbourhoods(workers, batch, width):
    """Trains a network on a graph."""
    extra = {"num_workers": workers, "persistent_workers": True, "prefetch_factor": 6} if workers else {}
    batches = iter(DataLoader(Neighbourhoods(), batch, pin_memory=True, **extra))
    own, other, last = nn.Linear(256, width).cuda(), nn.Linear(256, width).cuda(), nn.Linear(width, width).cuda()
    head = nn.Linear(width, 16).cuda()
    optimizer = torch.optim.Adam([p for m in (own, other, last, head) for p in m.parameters()], 1e-4, fused=True)

    def step(index):
        first, second, y = (t.cuda(non_blocking=True) for t in next(batches))
        hidden = F.relu(own(first) + other(second))
        for _ in range(4):
            hidden = F.relu(last(hidden))
        loss = F.cross_entropy(head(hidden.mean(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- launch-bound: words one after the other, whose keys and values are joined to the earlier ones (ill), or a graph


@case("next-words", False, 2, 1024, 12)
@case("next-words.cured", True, 2, 1024, 12)
@case("next-words-many", True, 256, 4096, 6)
def next_words(graph, users, width, layers):
    """Writes 16 words after 256 (with a graph: over places for all, which are masked)."""
    heads = width // 64
    sizes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    weights = [
        tuple(torch.randn(a, b, device="cuda", dtype=torch.bfloat16) * 0.02 for a, b in sizes) for _ in range(layers)
    ]
    keys, values = (torch.randn(layers, users, heads, 272, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x = torch.randn(users, width, device="cuda", dtype=torch.bfloat16)
    masks = [(torch.arange(272, device="cuda") <= at)[None, None, None] for at in range(256, 272)]

    def layer(y, at, n, cache):
        qkv, out, up, down = weights[n]
        q, k, v = (F.rms_norm(y, (width,)) @ qkv).view(users, 3, heads, 1, 64).unbind(1)
        if graph:
            keys[n][:, :, at : at + 1], values[n][:, :, at : at + 1] = k, v
            a = F.scaled_dot_product_attention(q, keys[n], values[n], attn_mask=masks[at - 256])
        else:
            cache[n] = tuple(torch.cat([old, new], 2) for old, new in zip(cache[n], (k, v), strict=True))
            a = F.scaled_dot_product_attention(q, *cache[n])
        y = y + a.reshape(users, width) @ out
        return y + F.silu(F.rms_norm(y, (width,)) @ up) @ down

    @torch.no_grad()
    def written():
        y, cache = x, [(keys[n][:, :, :256], values[n][:, :, :256]) for n in range(layers)]
        for at in range(256, 272):
            for n in range(layers):
                y = layer(y, at, n, cache)
            y = F.rms_norm(y, (width,))
        return y

    return graphed(written) if graph else lambda index: written()


# ---- tensor-cores-unused: a network of sets in single precision, its products on FP32 units (ill) or TF32 (cured)


@case("sets-in-single", "highest")
@case("sets-in-single.cured", "high")
def sets(precision):
    """Trains on batches of sets."""
    torch.set_float32_matmul_precision(precision)
    a, b = (nn.Parameter(torch.randn(24, 1280, 1280, device="cuda") * 0.02) for _ in range(2))
    x = torch.randn(24, 1024, 1280, device="cuda")
    optimizer = torch.optim.SGD([a, b], 1e-3, fused=True)

    def step(index):
        loss = torch.bmm(F.relu(torch.bmm(x, a)), b).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- python-threads: two threads read messages with Python's own code, while the loop launches (ill), or none (cured)


@case("messages", 2)
@case("messages.cured", 0)
def messages(threads):
    """Infers beside threads that parse."""
    text = json.dumps([{"id": k, "values": list(range(20))} for k in range(40)])
    ended = threading.Event()

    def parse():
        total = 0
        while not ended.is_set():
            for entry in json.loads(text):
                total += sum(value * 3 % 7 for value in entry["values"])

    for _ in range(threads):
        threading.Thread(target=parse, daemon=True).start()
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(40)]).cuda().half()
    x = torch.randn(4096, 1024, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(index):
        model(x)
        torch.cuda.synchronize()

    step.end = ended.set
    return step


# ---- recompilation: JAX compiles anew for each number of a step, which is static (ill) or traced (cured)


@case("annealed", True)
@case("annealed.cured", False)
def annealed(static):
    """Walks of many chains, colder with each step."""
    import jax
    import jax.numpy as jnp

    def moved(x, heat):
        for k in range(6):
            x = x - 0.01 * jnp.tanh(x @ w) * heat + 0.001 * jnp.sin(x * (k + heat))
        return x

    w = jax.random.normal(jax.random.PRNGKey(0), (1024, 1024)) * 0.03
    run = jax.jit(moved, static_argnums=1) if static else jax.jit(moved)
    state = [jax.random.normal(jax.random.PRNGKey(1), (16384, 1024))]

    def step(index):
        step.count += 1
        state[0] = run(state[0], 1.0 / step.count)
        state[0].block_until_ready()

    step.count = 0
    return step


# ---- scalar-reads: CuPy's largest eigenvalue, whose norm is read after each product (ill) or at the end (cured)


@case("largest-value", True)
@case("largest-value.cured", False)
def largest_value(read):
    """Forty rounds of a power iteration with a kernel of its own."""
    import cupy

    scaled = cupy.RawKernel(
        'extern "C" __global__ void k(const float* a, const float* s, float* b, int n)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i] * rsqrtf(*s); }",
        "k",
    )
    a = cupy.random.standard_normal((8192, 8192), dtype=cupy.float32)
    start = cupy.ones(8192, dtype=cupy.float32)

    def step(index):
        x, before = start, 0.0
        for _ in range(40):
            y = a @ x
            square = y @ y
            if read and abs(float(square) - before) < -1.0:
                break
            x = cupy.empty_like(y)
            scaled((32,), (256,), (y, square, x, np.int32(8192)))
        float(square)

    return step


# ---- healthy: transforms of Fourier in single precision by the library, end to end


@case("transforms")
def transforms():
    """Filters pictures by their spectra."""
    x = torch.randn(48, 2048, 2048, device="cuda")
    response = torch.rand(2048, 1025, device="cuda")

    def step(index):
        for _ in range(4):
            torch.fft.irfft2(torch.fft.rfft2(x) * response)

    return step


# ---- healthy: JAX trains a wide network in bf16, compiled as a whole


@case("wide-in-jax")
def wide_in_jax():
    """A step of training, compiled once."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    state = [[jax.random.normal(key, (6144, 6144), jnp.bfloat16) * 0.01 for key in keys[:4]]]
    x = jax.random.normal(keys[4], (8192, 6144), jnp.bfloat16)

    def loss(parameters, x):
        for w in parameters:
            x = x + jax.nn.gelu(x @ w)
        return jnp.square(x.astype(jnp.float32)).mean()

    run = jax.jit(lambda p, x: [w - 1e-3 * g for w, g in zip(p, jax.grad(loss)(p, x), strict=True)])

    def step(index):
        state[0] = run(state[0], x)
        jax.block_until_ready(state[0])

    return step


if __name__ == "__main__":
    run_cases()
