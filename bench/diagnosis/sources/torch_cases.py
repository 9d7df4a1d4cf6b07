"""Programs in PyTorch with one illness each; NAME.cured is the same work without it.

python torch_cases.py list
python torch_cases.py time STEPS CASE...   milliseconds a step, after three steps to warm up
python torch_cases.py run STEPS CASE       the same, once and cold, to be traced

DIAGNOSIS_LOCK: a file that only one program at a time holds. DIAGNOSIS_MARKED: an NVTX range a step.
"""

import fcntl
import gc
import os
import sys
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CASES = {}
FILES = os.environ.get("DIAGNOSIS_FILES") or tempfile.gettempdir()


def case(name, *settings):
    """Registers a case: its function gets `settings`, and returns what a step does."""

    def register(make):
        CASES[name] = (make, settings)
        return make

    return register


def trained(model, batch, optimizer, loss_of=None, after=None):
    """A step of training."""
    loss_of = loss_of or (lambda output: output.float().square().mean())

    def step(index):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(batch(index) if callable(batch) else batch))
        loss.backward()
        optimizer.step()
        if after is not None:
            after(index, loss)

    return step


def mlp(width, depth, dtype=torch.float32):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*layers).to("cuda", dtype)


# ---- the host drives the GPU -----------------------------------------------------------------------------------------


def graphed(step):
    """A step that was captured once."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for index in range(3):
            step(index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(0)
    return lambda index: graph.replay()


@case("small-model", False)
@case("small-model.cured", True)
def small_model(captured):
    model = mlp(256, 12)
    x = torch.randn(16, 256, device="cuda")
    step = trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True))
    return graphed(step) if captured else step


@case("recurrent-cells", False)
@case("recurrent-cells.cured", True)
def recurrent(captured):
    cell = nn.GRUCell(256, 256).cuda()
    x = torch.randn(24, 32, 256, device="cuda")

    def forward():
        h = torch.zeros(32, 256, device="cuda")
        for t in range(24):
            h = cell(x[t], h)
            h = h * 0.9 + h.tanh() * 0.1
        return h

    step = torch.no_grad()(lambda index: forward())
    return graphed(step) if captured else step


@case("loss-read", True)
@case("loss-read.cured", False)
def loss_read(each):
    model = mlp(512, 8)
    x = torch.randn(256, 512, device="cuda")
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, 0.01, foreach=True)
    history = []

    def after(index, loss):
        if each:
            history.append(loss.item())
            history.extend(p.grad.norm().item() for p in parameters)
        else:
            torch.stack(torch._foreach_norm([p.grad for p in parameters]))

    return trained(model, x, optimizer, after=after)


@case("early-exit", True)
@case("early-exit.cured", False)
def early_exit(each):
    """Sampling of tokens, each of which is looked at on the host."""
    model = mlp(1024, 4, torch.bfloat16)
    head = nn.Linear(1024, 4096).to("cuda", torch.bfloat16)

    @torch.no_grad()
    def step(index):
        x = torch.ones(8, 1024, device="cuda", dtype=torch.bfloat16)
        scale = torch.full((), 1e-6, device="cuda", dtype=torch.bfloat16)
        for _ in range(12):
            x = model(x)
            token = head(x).argmax(-1)
            if each and bool((token == 4095).all()):
                break
            x = x + token[:, None].bfloat16() * scale
        if not each:
            torch.cuda.synchronize()

    return step


@case("synchronised-layers", True)
@case("synchronised-layers.cured", False)
def synchronised(each):
    layers = [nn.Linear(1024, 1024).cuda() for _ in range(24)]
    x = torch.randn(512, 1024, device="cuda")

    @torch.no_grad()
    def step(index):
        y = x
        for layer in layers:
            y = layer(y).relu()
            if each:
                torch.cuda.synchronize()
        torch.cuda.synchronize()

    return step


@case("wide-model", 0)
def wide(_):
    """Healthy: large products end to end."""
    model = mlp(4096, 4, torch.bfloat16)
    x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True))


@case("convolutions", 0)
def convolutions(_):
    """Healthy: convolutions in half precision, NHWC."""
    layers = [nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.ReLU()) for _ in range(4)]
    model = nn.Sequential(*layers).to("cuda", torch.float16, memory_format=torch.channels_last)
    x = torch.randn(128, 128, 56, 56, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
    return trained(model, x, torch.optim.SGD(model.parameters(), 1e-4, foreach=True))


# ---- input, copies, memory, files, logs ------------------------------------------------------------------------------


@case("numpy-augmentation", False)
@case("numpy-augmentation.cured", True)
def augmented(ahead):
    """Batches are made by numpy between the steps, or by a thread beforehand."""
    model = mlp(2048, 6)
    generator = np.random.default_rng(0)

    def make():
        images = generator.standard_normal((512, 2048), dtype=np.float32)
        images = np.clip(images * 1.1 + 0.05, -2, 2)
        images -= images.mean(axis=1, keepdims=True)
        return torch.from_numpy(images).pin_memory()

    if ahead:
        ready = [make() for _ in range(4)]
        batch = lambda index: ready[index % 4].cuda(non_blocking=True)  # noqa: E731
    else:
        batch = lambda index: make().cuda(non_blocking=True)  # noqa: E731
    step = trained(model, batch, torch.optim.SGD(model.parameters(), 0.01, foreach=True))

    def synchronised_step(index):
        step(index)
        torch.cuda.synchronize()

    return synchronised_step


class Decoded(torch.utils.data.Dataset):
    """Samples that take 2 ms of the processor each."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        end = time.perf_counter() + 0.002
        value = 0
        while time.perf_counter() < end:
            value += 1
        return torch.full((2048,), index % 7 + value * 1e-9)


@case("data-loader", 0)
@case("data-loader.cured", 8)
def data_loader(workers):
    loader = torch.utils.data.DataLoader(Decoded(), batch_size=16, num_workers=workers, pin_memory=True,
                                         persistent_workers=workers > 0)  # fmt: skip
    batches = iter(loader)
    model = mlp(2048, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, foreach=True)
    return trained(model, lambda index: next(batches).cuda(non_blocking=True).repeat(64, 1), optimizer)


@case("batches-from-numpy", False)
@case("batches-from-numpy.cured", True)
def from_numpy(pin):
    x = torch.randn(4096, 4096)
    x = x.pin_memory() if pin else x
    model = mlp(4096, 2, torch.bfloat16)
    return trained(model, lambda index: x.cuda(non_blocking=True).bfloat16(),
                   torch.optim.SGD(model.parameters(), 0.01, foreach=True))  # fmt: skip


@case("empty-cache", True)
@case("empty-cache.cured", False)
def empty_cache(each):
    model = mlp(1024, 8)
    x = torch.randn(4096, 1024, device="cuda")

    def after(index, loss):
        if each:
            torch.cuda.empty_cache()

    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True), after=after)


@case("saved-each-step", 1)
@case("saved-each-step.cured", 0)
@case("saved-each-fifth", 5)
@case("saved-each-fifth.cured", 0)
def saved(every):
    model = mlp(1024, 8)
    x = torch.randn(8192, 1024, device="cuda")

    def after(index, loss):
        if every and index % every == every - 1:
            torch.save(model.state_dict(), os.path.join(FILES, "model.pt"))

    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True), after=after)


@case("printed-tensors", True)
@case("printed-tensors.cured", False)
def printed(each):
    model = mlp(1024, 6)
    x = torch.randn(4096, 1024, device="cuda")
    log = open(os.path.join(FILES, "log.txt"), "w")  # noqa: SIM115

    def after(index, loss):
        if each:
            for name, parameter in model.named_parameters():
                log.write(f"{index} {name} {parameter.detach().flatten()[:200].cpu().tolist()}\n")
                log.flush()

    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True), after=after)


# ---- operators of frameworks -----------------------------------------------------------------------------------------


@case("adam-loop", "loop")
@case("adam-loop.cured", "fused")
@case("lamb-by-hand", "hand")
@case("lamb-by-hand.cured", "fused")
def optimizers(how):
    width = 512 if how == "loop" else 384
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(24)]).cuda()
    x = torch.randn(4096, width, device="cuda")
    parameters = list(model.parameters())
    if how != "hand":
        choice = {"foreach": False, "fused": False} if how == "loop" else {"fused": True}
        return trained(model, x, torch.optim.AdamW(parameters, 1e-4, **choice))
    state = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(index):
        loss = model(x).square().mean()
        for p in parameters:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, (first, second) in zip(parameters, state, strict=True):
                first.mul_(0.9).add_(p.grad * 0.1)
                second.mul_(0.99).add_(p.grad * p.grad * 0.01)
                update = first / (second.sqrt() + 1e-6) + p * 0.01
                p.sub_(update * 1e-4 * (p.norm() / (update.norm() + 1e-6)).clamp(0.1, 10))

    return step


@case("attention-written-out", False, 8, 16, 1024, 64, 2)
@case("attention-written-out.cured", True, 8, 16, 1024, 64, 2)
@case("attention-large", True, 64, 16, 1024, 64, 2)
@case("masked-attention-large", True, 16, 12, 2048, 64, 3)
@case("masked-attention", False, 2, 12, 2048, 64, 3)
@case("masked-attention.cured", True, 2, 12, 2048, 64, 3)
def attention(fused, batch, heads, length, size, layers):
    width = heads * size
    projections = [nn.Linear(width, 3 * width).to("cuda", torch.bfloat16) for _ in range(layers)]
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)
    mask = torch.ones(length, length, device="cuda", dtype=torch.bool).tril()
    masked = layers == 3

    def step(index):
        y = x
        for projection in projections:
            q, k, v = (part.view(batch, length, heads, size).transpose(1, 2) for part in projection(y).chunk(3, -1))
            if fused:
                out = F.scaled_dot_product_attention(q, k, v, is_causal=masked)
            else:
                scores = q @ k.transpose(-1, -2) / size**0.5
                if masked:
                    scores = scores.masked_fill(~mask, float("-inf"))
                out = torch.softmax(scores.float(), -1).to(q.dtype) @ v
            y = y + out.transpose(1, 2).reshape(batch, length, width)
        y.float().square().mean().backward()
        for projection in projections:
            projection.zero_grad(set_to_none=True)

    return step


@case("autocast-small-batches", True, 6, 3072)
@case("autocast-small-batches.cured", False, 6, 3072)
@case("autocast-inference", True, 10, 2560)
@case("autocast-inference.cured", False, 10, 2560)
def autocast(cast, depth, width):
    """Weights in FP32 that autocast casts at each use, with little work between; or kept in BF16."""
    model = mlp(width, depth, torch.float32 if cast else torch.bfloat16)
    x = torch.randn(16, width, device="cuda", dtype=torch.float32 if cast else torch.bfloat16)
    uses = 4

    @torch.no_grad()
    def step(index):
        for _ in range(uses):  # each leaves autocast, which then forgets its casts
            with torch.autocast("cuda", torch.bfloat16, enabled=cast):
                model(x)
        torch.cuda.synchronize()

    return step


@case("nchw-half", False)
@case("nchw-half.cured", True)
def nchw(last):
    layout = torch.channels_last if last else torch.contiguous_format
    layers = [nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()) for _ in range(4)]
    model = nn.Sequential(*layers).to("cuda", torch.float16, memory_format=layout)
    x = torch.randn(128, 64, 56, 56, device="cuda", dtype=torch.float16).to(memory_format=layout)
    return trained(model, x, torch.optim.SGD(model.parameters(), 1e-4, foreach=True))


@case("permuted-blocks", False)
@case("permuted-blocks.cured", True)
def permuted(once):
    """A mixer that transposes its input before and after each product, or at the beginning and the end."""
    tokens = [nn.Linear(256, 256).to("cuda", torch.bfloat16) for _ in range(6)]
    x = torch.randn(128, 256, 1024, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(index):
        y = x.permute(0, 2, 1).contiguous() if once else x
        for layer in tokens:
            y = layer(y) if once else layer(y.permute(0, 2, 1).contiguous()).permute(0, 2, 1).contiguous()
        if once:
            y = y.permute(0, 2, 1).contiguous()
        torch.cuda.synchronize()

    return step


@case("embedding-dense", False, 6_000_000, 128, 4096)
@case("embedding-dense.cured", True, 6_000_000, 128, 4096)
@case("item-tables", False, 3_000_000, 256, 1024)
@case("item-tables.cured", True, 3_000_000, 256, 1024)
def embedding(sparse, rows, width, used):
    table = nn.Embedding(rows, width, sparse=sparse).cuda()
    head = mlp(width, 2)
    ids = torch.randint(0, rows, (used,), device="cuda")
    dense = torch.optim.Adam(head.parameters(), 1e-3, fused=True)
    own = torch.optim.SparseAdam(table.parameters()) if sparse else torch.optim.Adam(table.parameters(), 1e-3, fused=True)

    def step(index):
        loss = head(table(ids)).square().mean()
        loss.backward()
        dense.step()
        own.step()
        dense.zero_grad(set_to_none=True)
        own.zero_grad(set_to_none=True)

    return step


@case("compiled-lengths", False)
@case("compiled-lengths.cured", True)
def compiled(dynamic):
    import torch._dynamo as dynamo

    dynamo.reset()
    dynamo.config.cache_size_limit = dynamo.config.recompile_limit = 64

    def chain(x):
        for k in range(6):
            x = torch.sin(x) * 0.5 + x * (0.1 * k)
        return x.sum(-1)

    run = torch.compile(chain, dynamic=dynamic)
    if dynamic:
        for length in (100, 137):
            run(torch.randn(64, length, device="cuda"))

    @torch.no_grad()
    def step(index):
        run(torch.randn(2048, 100 + 37 * index, device="cuda"))

    return step


@case("selected-rows", True)
@case("selected-rows.cured", False)
def selected(shaped):
    """Rows are chosen by a mask: a shape that the host must know; or weighted by it."""
    layers = [nn.Linear(512, 512).cuda() for _ in range(8)]
    x = torch.randn(8192, 512, device="cuda")

    @torch.no_grad()
    def step(index):
        y = x
        for layer in layers:
            mask = y[:, 0] > -0.2
            if shaped:
                rows = mask.nonzero(as_tuple=True)[0]
                y = y.index_copy(0, rows, layer(y[rows]).relu())
            else:
                y = torch.where(mask[:, None], layer(y).relu(), y)

    return step


@case("unique-ids", True)
@case("unique-ids.cured", False)
def unique_ids(shaped):
    ids = torch.randint(0, 20000, (16, 65536), device="cuda")
    weights = torch.randn(20000, 64, device="cuda")

    @torch.no_grad()
    def step(index):
        for row in range(16):
            if shaped:
                values, counts = torch.unique(ids[row], return_counts=True)
                weights.index_add_(0, values, weights[values] * counts[:, None] * 1e-6)
            else:
                counts = torch.zeros(20000, device="cuda").index_add_(0, ids[row], torch.ones(65536, device="cuda"))
                weights.add_(weights * counts[:, None] * 1e-6)

    return step


@case("sgemm", False)
@case("sgemm.cured", True)
def sgemm(tensor_cores):
    torch.backends.cuda.matmul.allow_tf32 = tensor_cores
    a = torch.randn(4096, 4096, device="cuda")

    def step(index):
        torch.backends.cuda.matmul.allow_tf32 = tensor_cores
        b = a
        for _ in range(4):
            b = a @ b * 1e-3
        torch.cuda.synchronize()

    return step


# ---- unequal iterations ----------------------------------------------------------------------------------------------


@case("benchmarked-convolutions", True)
@case("benchmarked-convolutions.cured", False)
def benchmarked(choose):
    """The first iteration tries algorithms, and builds what later ones use."""
    torch.backends.cudnn.benchmark = choose
    layers = [nn.Sequential(nn.Conv2d(3 if k == 0 else 32 * k, 32 * (k + 1), 3, padding=1), nn.ReLU()) for k in range(6)]
    model = nn.Sequential(*layers).cuda()
    x = torch.randn(32, 3, 64, 64, device="cuda")
    return trained(model, x, torch.optim.SGD(model.parameters(), 1e-4, foreach=True))


@case("validated-each-fourth", 4)
@case("validated-each-fourth.cured", 0)
def validated(every):
    model = mlp(2048, 4)
    x, other = torch.randn(2048, 2048, device="cuda"), torch.randn(8192, 2048, device="cuda")

    def after(index, loss):
        if every and index % every == every - 1:
            with torch.no_grad():
                for _ in range(5):
                    model(other)
            torch.cuda.synchronize()

    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True), after=after)


@case("collected-each-sixth", 6)
@case("collected-each-sixth.cured", 0)
def collected(every):
    """Python's garbage collector walks a million objects in each sixth step."""
    model = mlp(1024, 6)
    x = torch.randn(4096, 1024, device="cuda")
    objects = [[index] for index in range(1_000_000)] if every else []

    def after(index, loss):
        torch.cuda.synchronize()
        if every and index % every == every - 1:
            gc.collect()
        return objects

    return trained(model, x, torch.optim.SGD(model.parameters(), 0.01, foreach=True), after=after)


@case("threads-of-python", 6)
@case("threads-of-python.cured", 0)
@case("logging-thread", 2)
@case("logging-thread.cured", 0)
def threads(count):
    """Threads that compute in Python while the main thread launches."""
    layers = [nn.Linear(512, 512).cuda() for _ in range(20)]
    x = torch.randn(256, 512, device="cuda")
    ended = threading.Event()

    def work():
        value = 0
        while not ended.is_set():
            for index in range(20000):
                value = (value * 31 + index) % 1000003

    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()

    @torch.no_grad()
    def step(index):
        y = x
        for layer in layers:
            y = layer(y).relu()
        torch.cuda.synchronize()

    step.end = ended.set
    return step


def main():
    how, *rest = sys.argv[1:] or ["list"]
    if how == "list":
        print("\n".join(CASES))
        return
    if path := os.environ.get("DIAGNOSIS_LOCK"):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    steps, names = int(rest[0]), rest[1:]
    marked = "DIAGNOSIS_MARKED" in os.environ
    torch.manual_seed(0)
    for name in names:
        make, settings = CASES[name]
        try:
            step = make(*settings)
            # what the first step does is a part of a case that is traced, and of one about the first step
            for index in range(0 if how == "run" or "benchmarked" in name else 3):
                step(index)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for index in range(steps):
                if marked:
                    with torch.cuda.nvtx.range("step"):
                        step(index)
                else:
                    step(index)
            torch.cuda.synchronize()
            print(f"time {name} {(time.perf_counter() - begun) / steps * 1e3:.6f}", flush=True)
            getattr(step, "end", lambda: None)()
        except Exception as fault:  # the others go on
            print(f"failed {name} {type(fault).__name__}: {fault}", flush=True)
            if how == "run":
                raise
        step = None
        gc.collect()
        torch.cuda.empty_cache()
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.benchmark = False


if __name__ == "__main__":
    main()
