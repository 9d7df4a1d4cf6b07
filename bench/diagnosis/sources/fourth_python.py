"""The fourth part's programs in PyTorch and JAX: one illness each, or none. NAME.cured is the work without it."""

import os

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


# ---- scalar-reads: a policy plays 64 moves; each action is read by the host (ill), or stays on the GPU (cured)


@case("rollout", True)
@case("rollout.cured", False)
def rollout(read):
    """Plays with a batch of one arm, then learns from it."""
    policy = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 8)).cuda()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-4, fused=True)
    moves = torch.randn(8, 256, 64, device="cuda") * 0.1

    def step(index):
        state, scores = torch.zeros(256, 64, device="cuda"), []
        for _ in range(64):
            logits = policy(state)
            best = logits[0].argmax()
            action = int(best.item()) if read else best.view(1)
            moved = moves[action] if read else moves.index_select(0, action)[0]
            state = state.detach() * 0.9 + moved
            scores.append(logits.logsumexp(1).mean())
        optimizer.zero_grad()
        torch.stack(scores).mean().backward()
        optimizer.step()

    return step


# ---- unfused-optimizer: a teacher follows a student parameter by parameter, as does SGD (ill), or by lists (cured)


@case("teacher", False)
@case("teacher.cured", True)
def teacher_and_student(lists):
    """Trains a deep student, whose teacher is its moving average."""
    student, teacher = (
        nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU()) for _ in range(60)]).cuda()
        for _ in range(2)
    )
    x = torch.randn(2048, 256, device="cuda")
    own, slow = list(student.parameters()), [p.detach() for p in teacher.parameters()]
    speed = [torch.zeros_like(p) for p in own]

    def step(index):
        student.zero_grad()
        student(x).square().mean().backward()
        with torch.no_grad():
            grads = [p.grad for p in own]
            if lists:
                torch._foreach_lerp_(speed, grads, 0.1)
                torch._foreach_add_(own, speed, alpha=-1e-3)
                torch._foreach_lerp_(slow, own, 0.01)
                return
            for p, g, v, t in zip(own, grads, speed, slow, strict=True):
                v.mul_(0.9).add_(g * 0.1)
                p.sub_(v * 1e-3)
                t.mul_(0.99).add_(p * 0.01)

    return step


# ---- logging: predictions of each step are written as lines of text (ill), or not (cured)


@case("predictions-written", True)
@case("predictions-written.cured", False)
def predictions(written):
    """Predicts from a table."""
    model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1))
    model = model.cuda().half()
    x = torch.randn(16384, 256, device="cuda", dtype=torch.half)
    file = open(os.path.join(os.environ.get("DIAGNOSIS_FILES", "/tmp"), f"rows-{os.getpid()}"), "w")  # noqa: SIM115

    @torch.no_grad()
    def step(index):
        for _ in range(4):
            y = model(x)
        rows = y[:4000, 0].float().cpu().tolist()
        if written:
            for row, value in enumerate(rows):
                print(f"step={index} row={row} prediction={value:.5f}", file=file, flush=True)

    return step


# ---- data-loader: sounds are stretched and padded by NumPy, in the process (ill) or by workers ahead (cured, healthy)


class Sounds(Dataset):
    """Waves of unequal length, framed and weighted."""

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        random = np.random.default_rng(index)
        wave = random.standard_normal(8000 + index * 37 % 8000).astype(np.float32)
        wave = np.interp(np.linspace(0, len(wave) - 1, 16000), np.arange(len(wave)), wave).astype(np.float32)
        return wave.reshape(100, 160) * np.hanning(160).astype(np.float32), index % 40


@case("sounds", 0, 1024, 32)
@case("sounds.cured", 8, 1024, 32)
@case("sounds-wide", 8, 4096, 24)
def sounds(workers, width, batch):
    """Trains a classifier of words."""
    extra = {"num_workers": workers, "persistent_workers": True, "prefetch_factor": 6} if workers else {}
    batches = iter(DataLoader(Sounds(), batch, pin_memory=True, **extra))
    model = nn.Sequential(nn.Linear(160, width), *[m for _ in range(6) for m in (nn.GELU(), nn.Linear(width, width))])
    model, head = model.cuda().bfloat16(), nn.Linear(width, 40).cuda().bfloat16()
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], 1e-4, fused=True)
    rounds = 4 if width > 2048 else 1

    def step(index):
        x, y = (t.cuda(non_blocking=True) for t in next(batches))
        x = x.bfloat16().repeat(rounds * 2, 1, 1)  # masks of spectra are drawn anew for each copy
        x = x * (torch.rand_like(x[:, :, :1]) > 0.1)
        loss = F.cross_entropy(head(model(x)).mean(1).float(), y.repeat(rounds * 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- autocast-weight-casts: adapters are added to weights in single precision, cast at each use (ill), or once (cured)


@case("adapted", True)
@case("adapted.cured", False)
def adapted(cast):
    """Answers 16 requests of a batch of 8."""
    weights = [torch.randn(4096, 4096, device="cuda") * 0.01 for _ in range(16)]
    if not cast:
        weights = [w.bfloat16() for w in weights]
    x = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        for _ in range(8):
            y = x
            for w in weights:
                y = y + F.silu(F.linear(F.rms_norm(y, (4096,)), w.to(y.dtype) if cast else w))

    return step


# ---- tensor-cores-unused: a field of physics by a wide network in single precision (ill) or TF32 (cured)


@case("heat-equation", "highest")
@case("heat-equation.cured", "high")
def heat_equation(precision):
    """Trains a network whose derivative is a loss."""
    torch.set_float32_matmul_precision(precision)
    model = nn.Sequential(nn.Linear(64, 2048), *[m for _ in range(4) for m in (nn.Tanh(), nn.Linear(2048, 2048))],
                          nn.Tanh(), nn.Linear(2048, 1)).cuda()  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    points = torch.randn(8192, 64, device="cuda", requires_grad=True)

    def step(index):
        u = model(points)
        (slope,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        loss = slope.square().mean() + u.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- changing-shapes: edges of a graph are kept by a mask in each layer (ill), or weighted by it (cured)


@case("kept-edges", True)
@case("kept-edges.cured", False)
def kept_edges(chosen):
    """Sends messages along edges, whose ends are alike."""
    source, target = (torch.randint(0, 20_000, (100_000,), device="cuda") for _ in range(2))
    layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(12)]).cuda()
    x = torch.randn(20_000, 64, device="cuda")

    @torch.no_grad()
    def step(index):
        y = x
        for layer in layers:
            alike = (y[source, 0] - y[target, 0]).abs() < 3.0
            if chosen:
                at = alike.nonzero().squeeze(1)
                a, b = source[at], target[at]
                sums = torch.zeros_like(y).index_add_(0, b, y[a])
            else:
                sums = torch.zeros_like(y).index_add_(0, target, y[source] * alike[:, None])
            y = F.layer_norm(y + F.relu(layer(sums)), (64,))

    return step


# ---- dense-embedding-gradient: clicks by a table of all pairs of columns: a dense gradient (ill) or its rows (cured)


@case("clicks", False)
@case("clicks.cured", True)
def clicks(sparse):
    """Predicts clicks from 20 columns of categories."""
    table = nn.Embedding(8_000_000, 64, sparse=sparse).cuda()
    head = nn.Sequential(nn.Linear(1280, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
    rows = torch.optim.SGD(table.parameters(), 0.1, foreach=False)
    others = torch.optim.Adam(head.parameters(), 1e-3, fused=True)
    ids = torch.randint(0, 8_000_000, (8, 2048, 20), device="cuda")

    def step(index):
        loss = F.softplus(head(table(ids[index % 8]).flatten(1))).mean()
        rows.zero_grad()
        others.zero_grad()
        loss.backward()
        rows.step()
        others.step()

    return step


# ---- unfused-attention: proteins, whose attention has a bias of pairs, written out (ill) or in one call (cured)


@case("pairs-of-residues", True)
@case("pairs-of-residues.cured", False)
def residues(written):
    """Attends over 1024 residues in four layers."""
    project = nn.ModuleList([nn.Linear(256, 768) for _ in range(4)]).cuda().bfloat16()
    bias = torch.randn(1, 8, 1024, 1024, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(16, 1024, 256, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = x
        for layer in project:
            q, k, v = layer(y).view(16, 1024, 3, 8, 32).permute(2, 0, 3, 1, 4).unbind(0)
            if written:
                a = torch.softmax(q @ k.transpose(-1, -2) * 32**-0.5 + bias, -1) @ v
            else:
                a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            y = y + a.transpose(1, 2).reshape(16, 1024, 256)

    return step


# ---- small-copies: a batch of 150 columns goes to the GPU column by column (ill) or as a block (cured)


@case("columns", True)
@case("columns.cured", False)
def columns(each):
    """Trains on a table."""
    table = [torch.randn(2048).pin_memory() for _ in range(150)]
    block = torch.stack(table).pin_memory()
    model = nn.Sequential(nn.Linear(150, 2048), nn.ReLU(), nn.Linear(2048, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

    def step(index):
        x = torch.stack([t.cuda(non_blocking=True) for t in table]) if each else block.cuda(non_blocking=True)
        loss = model(x.T).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---- pageable-copies: volumes of a scanner come from ordinary (ill) or page-locked memory (cured)


@case("scans", False)
@case("scans.cured", True)
def scans(pinned):
    """Filters volumes of 64 MB."""
    volume = torch.randn(1, 1, 256, 256, 256)
    volume = volume.pin_memory() if pinned else volume
    model = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 3, padding=1)).cuda().half()

    @torch.no_grad()
    def step(index):
        model(volume.cuda(non_blocking=True).half()).mean()

    return step


# ---- launch-bound: a neural equation is integrated in 40 steps of four stages, op by op (ill) or as a graph (cured)


@case("trajectories", False, 256, 128)
@case("trajectories.cured", True, 256, 128)
@case("trajectories-many", True, 16384, 1024)
def trajectories(graph, batch, width):
    """Integrates by Runge and Kutta's rule."""
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)).cuda()
    model = model.bfloat16() if batch > 1000 else model
    x = torch.randn(batch, width, device="cuda", dtype=next(model.parameters()).dtype)

    @torch.no_grad()
    def integrated():
        y = x
        for _ in range(40):
            a = model(y)
            b = model(y + 0.05 * a)
            c = model(y + 0.05 * b)
            y = y + 0.0167 * (a + 2 * b + 2 * c + model(y + 0.1 * c))
        return y

    return graphed(integrated) if graph else lambda index: integrated()


# ---- periodic-slow-iteration: each sixth step compares spectra of features on the host (ill), or none does (cured)


@case("compared-each-sixth", 6)
@case("compared-each-sixth.cured", 0)
def compared(every):
    """Trains a generator of features."""
    model = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), nn.Linear(4096, 768)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x = torch.randn(32768, 512, device="cuda", dtype=torch.bfloat16)

    def step(index):
        made = model(x)
        optimizer.zero_grad()
        made.float().square().mean().backward()
        optimizer.step()
        if every and index % every == every - 1:
            seen = made[:4096].detach().float().cpu().numpy()
            np.linalg.eigvalsh(np.cov(seen, rowvar=False))

    return step


# ---- recompilation: JAX meets texts of a new length in each step (ill), or padded ones (cured)


@case("lengths", False)
@case("lengths.cured", True)
def lengths(padded):
    """Mixes tokens of texts."""
    import jax
    import jax.numpy as jnp

    w = [jax.random.normal(jax.random.PRNGKey(k), (1024, 1024), jnp.bfloat16) * 0.03 for k in range(8)]

    def mixed(x):
        for each in w:
            x = x + jax.nn.gelu(x @ each) * jax.nn.softmax(x, -1)
        return x.astype(jnp.float32).mean()

    run = jax.jit(mixed)

    def step(index):
        step.count += 1
        size = 512 if padded else 512 - 3 * step.count
        run(np.ones((16, size, 1024), jnp.bfloat16)).block_until_ready()

    step.count = 0
    return step


# ---- healthy: a language model is trained in bf16, with a fused optimizer, its loss kept on the GPU


@case("language")
def language():
    """Trains six layers over 4096 tokens."""
    layer = nn.TransformerEncoderLayer(1536, 12, 6144, 0.0, "gelu", batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x = torch.randn(8, 1024, 1536, device="cuda", dtype=torch.bfloat16)
    history = []

    def step(index):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())

    return step


# ---- healthy: one number is read at the end of a step of some 20 ms


@case("pictures-scored")
def pictures_scored():
    """Scores pictures by convolutions, channels last."""
    model = nn.Sequential(nn.Conv2d(64, 256, 3, padding=1), nn.ReLU(inplace=True),
                          nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True),
                          nn.Conv2d(256, 256, 3, padding=1)).cuda().half()  # fmt: skip
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(64, 64, 128, 128, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def step(index):
        total = sum(model(x).float().mean() for _ in range(4))
        total.item()

    return step


if __name__ == "__main__":
    run_cases()
