"""A tenth set of programs in PyTorch, JAX and Triton: one planted illness of the timeline a case (or none); NAME.cured is its twin."""

import contextlib
import os
import random
import shutil
import tempfile
import threading

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from torch_harness import case, run_cases

GPU = "cuda"
BF16 = torch.bfloat16


# ----------------------------------------------------------------------------------------------------------------------
# python-threads. Federated averaging of 4 clients in one process: small networks, ~150 kernels a step; as is two threads count the syllables of the clients' messages in loops of Python meanwhile (the
# interpreter changes hands each 5 ms, the launches wait); the twin counts with numpy before the step (~1 ms).
@case("cottages", "threads")
@case("cottages.cured", "numpy")
def federated(how):
    clients = [
        nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(GPU)
        for _ in range(4)
    ]
    data = [(torch.randn(256, 256, device=GPU), torch.randint(0, 10, (256,), device=GPU)) for _ in clients]
    texts = np.random.default_rng(0).integers(97, 123, 1 << 18, dtype=np.uint8)
    stop, counts = threading.Event(), [0, 0]
    vowels = np.zeros(256, dtype=bool)
    vowels[[ord(c) for c in "aeiouy"]] = True

    def counting(which):
        text = texts.tobytes().decode()
        while not stop.is_set():
            inside, count = False, 0
            for letter in text:
                vowel = letter in "aeiouy"
                count += vowel and not inside
                inside = vowel
            counts[which] = count

    threads = [threading.Thread(target=counting, args=(k,), daemon=True) for k in range(2)] if how == "threads" else []
    for thread in threads:
        thread.start()

    def step(_):
        if how == "numpy":
            inside = vowels[texts]
            counts[0] = int((inside[1:] & ~inside[:-1]).sum())
        for client, (x, y) in zip(clients, data):
            loss = F.cross_entropy(client(x), y)
            gradients = torch.autograd.grad(loss, list(client.parameters()))
            with torch.no_grad():
                torch._foreach_add_(list(client.parameters()), gradients, alpha=-0.01)
        with torch.no_grad():
            for same in zip(*(client.parameters() for client in clients)):
                mean = torch.stack(same).mean(0)
                for p in same:
                    p.copy_(mean)
        torch.cuda.synchronize()

    def end():
        stop.set()
        for thread in threads:
            thread.join()

    step.end = end
    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-optimizer. A GAN with two optimizers of 100 parameters each: foreach=False is ~12 kernels a parameter (2400 launches: ~12 ms); the twin has fused=True.
@case("forged-stamps", {"foreach": False, "fused": False})
@case("forged-stamps.cured", {"fused": True})
def gan(options):
    def layers(first, last, depth=24, width=384):
        parts = [nn.Linear(first, width)]
        for _ in range(depth):
            parts += [nn.LeakyReLU(0.2), nn.LayerNorm(width), nn.Linear(width, width)]
        return nn.Sequential(*parts, nn.Linear(width, last)).to(GPU)

    generator, critic = layers(64, 784), layers(784, 1)
    for_generator = torch.optim.Adam(generator.parameters(), 1e-4, (0.5, 0.99), **options)
    for_critic = torch.optim.Adam(critic.parameters(), 1e-4, (0.5, 0.99), **options)
    real = torch.rand(512, 784, device=GPU)

    def step(_):
        fake = generator(torch.randn(512, 64, device=GPU))
        loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
        for_critic.zero_grad(set_to_none=True)
        loss.backward()
        for_critic.step()
        loss = F.softplus(-critic(fake)).mean()
        for_generator.zero_grad(set_to_none=True)
        loss.backward()
        for_generator.step()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# unfused-attention. Forecasts of many series: patches of 2048 steps, 8 heads of 64, 4 layers, BF16, no gradient: scores of 8 * 8 * 2048^2 * 2 B = 0.5 GB written, scaled, masked, softmaxed, read: ~3 GB a
# layer; the twin calls scaled_dot_product_attention.
@case("demand-for-power", "written")
@case("demand-for-power.cured", "fused")
def forecast(how):
    batch, heads, length, width = 8, 8, 2048, 512
    x = torch.randn(batch, length, width, device=GPU, dtype=BF16)
    layers = [(nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)) for _ in range(4)]
    layers = [[part.to(GPU, BF16) for part in layer] for layer in layers]
    future = torch.ones(length, length, dtype=torch.bool, device=GPU).triu(1)

    def mixed(q, k, v):
        if how == "fused":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-2, -1)) * (width // heads) ** -0.5
        return scores.masked_fill(future, float("-inf")).softmax(-1) @ v

    @torch.no_grad()
    def step(_):
        y = x
        for inwards, outwards, norm in layers:
            q, k, v = inwards(norm(y)).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = y + outwards(mixed(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return y

    return step


# ----------------------------------------------------------------------------------------------------------------------
# scalar-reads. Speculative decoding: 32 sequences of 12 drafted tokens are accepted one by one by `if p / q < u: break` of tensors on the GPU (~300 waits of ~20 us); the twin has the run of accepted tokens by
# cumprod. The verifier: ~1 ms.
@case("ghost-writers", "each")
@case("ghost-writers.cured", "together")
def speculative(how):
    sequences, drafted, width, words = 32, 12, 1024, 8192
    verifier = nn.Sequential(
        nn.Linear(width, 4 * width),
        nn.GELU(),
        nn.Linear(4 * width, width),
        nn.LayerNorm(width),
        nn.Linear(width, words),
    ).to(GPU, BF16)
    hidden = torch.randn(sequences, drafted, width, device=GPU, dtype=BF16)
    tokens = torch.randint(0, words, (sequences, drafted, 1), device=GPU)

    @torch.no_grad()
    def step(_):
        p = verifier(hidden).float().softmax(-1).gather(-1, tokens)[..., 0]
        ratio = (p * words * 3).clamp(max=1)
        u = torch.rand(sequences, drafted, device=GPU) * 0.2
        if how == "together":
            accepted = (ratio >= u).long().cumprod(1).sum(1)
            return accepted.sum().item()
        total = 0
        for s in range(sequences):
            for d in range(drafted):
                if ratio[s, d] < u[s, d]:
                    break
                total += 1
        return total

    return step


# ----------------------------------------------------------------------------------------------------------------------
# layout-conversion. Super-resolution, 16 blocks of 64 channels, FP16, channels_last; a helper of each block makes the picture contiguous (NCHW) for a gate that would not need it: two conversions of
# 64 MB tensors a block (~0.1 ms each) beside a convolution of ~0.1 ms. The twin's helper leaves the layout.
@case("old-postcards", True)
@case("old-postcards.cured", False)
def upscale(convert):
    last = torch.channels_last
    blocks = (
        nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1) for _ in range(16)).to(GPU, torch.float16).to(memory_format=last)
    )
    x = torch.randn(8, 64, 256, 256, device=GPU, dtype=torch.float16).to(memory_format=last)
    gain = torch.ones(1, 64, 1, 1, device=GPU, dtype=torch.float16)

    def gated(y):
        if convert:
            return (y.contiguous() * gain).contiguous(memory_format=last)
        return y * gain

    @torch.no_grad()
    def step(_):
        y = x
        for block in blocks:
            y = gated(F.relu_(block(y)))
        return F.pixel_shuffle(y, 2)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# recompilation. JAX: reaction and diffusion, the time step (it adapts) is a static argument: a compilation each step (~60 ms or more); the twin has it as an array.
@case("leopard-spots", True)
@case("leopard-spots.cured", False)
def reaction(static):
    import jax
    import jax.numpy as jnp

    def advance(u, dt):
        flow = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u
        return u + dt * (flow + u * (1 - u))

    advance = jax.jit(advance, static_argnums=(1,)) if static else jax.jit(advance)
    state = {"u": jnp.ones((2048, 1024), jnp.float32) * 0.3}

    def step(index):
        dt = 0.01 / (1 + 0.001 * (index + 1000 * state.get("round", 0)))
        if index == 0:
            state["round"] = state.get("round", 0) + 1
        for _ in range(10):
            state["u"] = advance(state["u"], dt)
        state["u"].block_until_ready()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# sync-each-operation. JAX: a particle filter over 150 observations, three small jitted functions each; as is block_until_ready after every call (habit from timing them); the twin waits once.
@case("submarine", True)
@case("submarine.cured", False)
def particle_filter(wait):
    import jax
    import jax.numpy as jnp

    predict = jax.jit(lambda x, t: x + 0.1 * jnp.sin(x + t))
    weigh = jax.jit(lambda x, z: jax.nn.softmax(-0.5 * jnp.sum((x - z) ** 2, 0)))
    pull = jax.jit(lambda x, w: 0.95 * x + 0.05 * jnp.sum(x * w, 1, keepdims=True))
    done = (lambda x: x.block_until_ready()) if wait else (lambda x: x)
    start = jnp.linspace(-1, 1, 8 * (1 << 17)).reshape(8, 1 << 17)
    observations = [jnp.float32(0.01 * k) for k in range(150)]  # on the GPU

    def step(_):
        x = start
        for z in observations:
            x = done(predict(x, z))
            w = done(weigh(x, z))
            x = done(pull(x, w))
        x.block_until_ready()

    step(0)  # compiled here
    return step


# ----------------------------------------------------------------------------------------------------------------------
# launch-bound. Triton: a selective scan of 512 steps; as is a kernel a step (~10 us of Python and launch for ~2 us on the GPU), the twin's kernel has the loop inside.
@triton.jit
def one_moment(h, a, b, out, t, channels, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < channels
    now = tl.load(h + c, m) * tl.load(a + t * channels + c, m) + tl.load(b + t * channels + c, m)
    tl.store(h + c, now, m)
    tl.store(out + t * channels + c, now, m)


@triton.jit
def all_moments(h, a, b, out, steps, channels, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < channels
    now = tl.load(h + c, m)
    for t in range(steps):
        now = now * tl.load(a + t * channels + c, m) + tl.load(b + t * channels + c, m)
        tl.store(out + t * channels + c, now, m)
    tl.store(h + c, now, m)


@case("adders-in-grass", "each")
@case("adders-in-grass.cured", "inside")
def selective_scan(how):
    steps, channels = 512, 16384
    a = torch.rand(steps, channels, device=GPU) * 0.9
    b = torch.randn(steps, channels, device=GPU)
    out, h = torch.empty_like(b), torch.zeros(channels, device=GPU)
    grid = (triton.cdiv(channels, 128),)

    def step(_):
        h.zero_()
        if how == "inside":
            all_moments[grid](h, a, b, out, steps, channels, BLOCK=128, num_warps=4)
        else:
            for t in range(steps):
                one_moment[grid](h, a, b, out, t, channels, BLOCK=128, num_warps=4, num_stages=1)
        return out.mean()

    step(0)  # compiled here
    return step


# ----------------------------------------------------------------------------------------------------------------------
# pageable-copies. Triton: quantised inference whose 8-bit weights (8 layers of 16 MB) live on the host and come each step, from plain tensors (~10 GB/s or less: ~13 ms, the host waits); the twin's are
# pinned (~2.5 ms). A kernel in Triton widens them.
@triton.jit
def widened(codes, scales, out, columns, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, (tl.load(codes + i, m).to(tl.float32) * tl.load(scales + i // columns, m)).to(tl.bfloat16), m)


@case("pocket-translator", False)
@case("pocket-translator.cured", True)
def offloaded(pinned):
    width, depth = 4096, 8
    kept = [torch.randint(-127, 127, (width, width), dtype=torch.int8) for _ in range(depth)]
    kept = [w.pin_memory() if pinned else w for w in kept]
    scales = torch.full((width,), 1e-3, device=GPU)
    x, wide = torch.randn(64, width, device=GPU, dtype=BF16), torch.empty(width, width, device=GPU, dtype=BF16)

    @torch.no_grad()
    def step(_):
        y = x
        for host in kept:
            codes = host.to(GPU, non_blocking=True)
            widened[(triton.cdiv(width * width, 1024),)](codes, scales, wide, width, width * width, BLOCK=1024)
            y = torch.tanh(y @ wide)
        return y

    step(0)  # compiled here
    return step


# ----------------------------------------------------------------------------------------------------------------------
# file-io. Distillation: the teacher's logits of a batch are in 8 files (.npy, 4 MB each), read at each step; the twin read all of the 4 batches at the start (128 MB on the GPU).
@case("apprentices", "files")
@case("apprentices.cured", "kept")
def distilled(where):
    folder = tempfile.mkdtemp(prefix="tenth-")
    batches, pieces, rows, classes = 4, 8, 128, 8192
    source = np.random.default_rng(0)
    for b in range(batches):
        for p in range(pieces):
            np.save(f"{folder}/{b}-{p}.npy", source.standard_normal((rows, classes), dtype=np.float32))

    def loaded(b):
        return torch.from_numpy(np.concatenate([np.load(f"{folder}/{b}-{p}.npy") for p in range(pieces)])).to(GPU)

    kept = [loaded(b) for b in range(batches)] if where == "kept" else None
    pupil = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, classes)).to(GPU, BF16)
    optimizer = torch.optim.SGD(pupil.parameters(), 1e-3)
    x = torch.randn(rows * pieces, 1024, device=GPU, dtype=BF16)

    def step(index):
        teacher = kept[index % batches] if kept else loaded(index % batches)
        loss = F.kl_div(pupil(x).float().log_softmax(-1), teacher.softmax(-1), reduction="batchmean")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step.end = lambda: shutil.rmtree(folder, ignore_errors=True)
    return step


# ----------------------------------------------------------------------------------------------------------------------
# changing-shapes. Detections in 48 pictures: the features and boxes of the candidates above a score are taken by masks (x[mask]: nonzero, a wait for the size, an allocation; ~60 us each, 96 of them) and summed up; the
# twin's sums are products with the mask: the same loop, sizes known.
@case("parking-lots", "masks")
@case("parking-lots.cured", "products")
def detections(how):
    pictures, candidates = 48, 1000
    boxes = torch.rand(pictures, candidates, 4, device=GPU)
    features = torch.randn(pictures, candidates, 512, device=GPU)
    head = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(GPU)

    @torch.no_grad()
    def step(_):
        masks = head(features)[..., 0] > 0
        pooled, places = [], []
        for mask, feature, box in zip(masks, features, boxes):
            if how == "masks":
                pooled.append(feature[mask].sum(0))
                places.append(box[mask].sum(0))
            else:
                weight = mask.to(feature.dtype)
                pooled.append(weight @ feature)
                places.append(weight @ box)
        return torch.stack(pooled), torch.stack(places)

    return step


# ----------------------------------------------------------------------------------------------------------------------
# autocast-weight-casts. A network of tied weights (three of 5120 x 5120) that iterates to its equilibrium, 24 times; each iteration enters autocast anew, under no_grad: the weights are cast from FP32 each time
# (~0.04 ms each beside a product of ~0.02); the twin has the weights in BF16.
@case("settled-minds", "autocast")
@case("settled-minds.cured", "half")
def equilibrium(how):
    width = 5120
    parts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3)).to(GPU)
    if how == "half":
        parts = parts.to(BF16)
    x = torch.randn(64, width, device=GPU, dtype=BF16)

    @torch.no_grad()
    def step(_):
        z = torch.zeros_like(x)
        for _ in range(24):
            with torch.autocast("cuda", BF16) if how == "autocast" else contextlib.nullcontext():
                z = torch.tanh(parts[2](torch.relu(parts[0](z) + parts[1](x))))
        return z

    return step


# ----------------------------------------------------------------------------------------------------------------------
# periodic-slow-iteration. A VAE whose weights are shown on a board: each fifth step all of them go to the host, np.histogram of 4 M numbers (~80 ms or more); the twin has torch.histc on the GPU.
@case("faces-in-clouds", "numpy")
@case("faces-in-clouds.cured", "gpu")
def vae(where):
    encoder, decoder = (
        nn.Sequential(nn.Linear(a, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, b)).to(GPU)
        for a, b in ((784, 64), (32, 784))
    )
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.AdamW(weights, 1e-4, fused=True)
    x = torch.rand(4096, 784, device=GPU)

    def step(index):
        mean, spread = encoder(x).chunk(2, -1)
        z = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        loss = (
            F.mse_loss(decoder(z), x, reduction="sum") / len(x)
            + 0.5 * (spread.exp() + mean**2 - 1 - spread).sum(1).mean()
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if index % 5 == 4:
            together = torch.cat([w.detach().flatten() for w in weights])
            if where == "gpu":
                return torch.histc(together, 64, -0.2, 0.2).cpu()
            return np.histogram(together.cpu().numpy(), 64, (-0.2, 0.2))

    return step


# ----------------------------------------------------------------------------------------------------------------------
# data-loader. NeRF: 8192 rays of random pixels and pictures are made by a loop of Python before each step (~2 us each: 16 ms and up) while the GPU waits; the twin draws them on the GPU.
@case("cathedral-nave", "loop")
@case("cathedral-nave.cured", "gpu")
def nerf(where):
    rays, samples = 8192, 64
    field = nn.Sequential(nn.Linear(39, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)).to(GPU)
    optimizer = torch.optim.Adam(field.parameters(), fused=True)
    colours = torch.rand(rays, 3, device=GPU)
    depth = torch.linspace(0.5, 4, samples, device=GPU)
    bands = 2.0 ** torch.arange(6, device=GPU)

    def drawn():
        if where == "gpu":
            x, y, camera = torch.rand(3, rays, device=GPU)
            return torch.stack([x - 0.5, y - 0.5, torch.ones_like(x), 0.1 * camera, 0.1 * x, 0.1 * y], 1)
        batch = []
        for _ in range(rays):
            x, y, camera = random.random(), random.random(), random.random()
            batch.append((x - 0.5, y - 0.5, 1.0, 0.1 * camera, 0.1 * x, 0.1 * y))
        return torch.tensor(batch, device=GPU)

    def step(_):
        ray = drawn()
        points = ray[:, None, 3:] + depth[:, None] * ray[:, None, :3]
        turned = (points[..., None] * bands).flatten(-2)
        raw = field(torch.cat([points, turned.sin(), turned.cos()], -1))
        weight = 1 - torch.exp(-F.softplus(raw[..., 3]) * 0.05)
        through = torch.cumprod(1 - weight + 1e-6, 1) * weight
        loss = F.mse_loss((through[..., None] * raw[..., :3].sigmoid()).sum(1), colours)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


# ======================================================================================================================
# Healthy.
# gpu-busy. A protein's pair representation: triangle products in BF16 at the tensor cores' roof; Python's loop is hidden behind ~5 ms of products.
@case("knots-in-proteins")
def triangles():
    pairs = torch.randn(64, 1536, 1536, device=GPU, dtype=BF16) * 0.02

    @torch.no_grad()
    def step(_):
        y = pairs
        for _ in range(8):
            y = torch.bmm(pairs, y)
        return y

    return step


# graphs. A small physics-informed network with second derivatives: hundreds of kernels of ~3 us, captured once.
@case("membranes")
def physics():
    first, second, third = (torch.randn(a, b, device=GPU) / a**0.5 for a, b in ((2, 128), (128, 128), (128, 1)))
    weights = [w.requires_grad_() for w in (first, second, third)]
    points = torch.rand(1024, 2, device=GPU, requires_grad=True)

    def once():
        u = torch.tanh(torch.tanh(points @ first) @ second) @ third
        slope = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
        bend = sum(torch.autograd.grad(slope[:, k].sum(), points, create_graph=True)[0][:, k] for k in (0, 1))
        gradients = torch.autograd.grad((bend + 1).square().mean(), weights)
        with torch.no_grad():
            for w, g in zip(weights, gradients):
                w -= 1e-4 * g

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(8):
            once()
    return lambda _: graph.replay()


# overlapped. Volumes for super-resolution come from pinned memory on a side stream (64 MB: 1.3 ms) while the volume before is worked on (~2.5 ms).
@case("sharper-moons")
def prefetched():
    shape = (32, 128, 128, 64)  # channels last
    host = [torch.randn(shape).half().pin_memory() for _ in range(2)]
    there = [torch.empty(shape, device=GPU, dtype=torch.float16) for _ in range(2)]
    network = (
        nn.Sequential(*(nn.Conv2d(64, 64, 3, padding=1) for _ in range(24)))
        .to(GPU, torch.float16)
        .to(memory_format=torch.channels_last)
    )
    side, copied, used = (
        torch.cuda.Stream(),
        [torch.cuda.Event() for _ in range(2)],
        [torch.cuda.Event() for _ in range(2)],
    )

    def fetch(k):
        with torch.cuda.stream(side):
            side.wait_event(used[k])
            there[k].copy_(host[k], non_blocking=True)
            copied[k].record(side)

    for k in (0, 1):
        used[k].record()
    fetch(0)

    @torch.no_grad()
    def step(index):
        k = index % 2
        fetch(1 - k)
        torch.cuda.current_stream().wait_event(copied[k])
        y = network(there[k].permute(0, 3, 1, 2))
        used[k].record()
        return y

    return step


# gpu-busy. An ensemble of 16 networks by vmap: large batched products in BF16, the host far ahead.
@case("sixteen-opinions")
def ensemble():
    models = [nn.Sequential(nn.Linear(2048, 4096), nn.Tanh(), nn.Linear(4096, 2048)).to(GPU, BF16) for _ in range(16)]
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.randn(4096, 2048, device=GPU, dtype=BF16)

    def one(p, b, data):
        return torch.func.functional_call(models[0], (p, b), (data,))

    together = torch.func.vmap(one, in_dims=(0, 0, None))

    @torch.no_grad()
    def step(_):
        y = together(parameters, buffers, x)
        return y.var(0).mean()

    return step


if __name__ == "__main__":
    run_cases()
