"""Training on two GPUs with one illness each; NAME.cured is the same work without it.

python two_gpus.py list
python two_gpus.py time STEPS CASE...   milliseconds a step, after five steps to warm up
python two_gpus.py run STEPS CASE       the same, once, to be traced: a process a GPU

It starts both processes itself. DIAGNOSIS_LOCK: a file that only one program at a time holds.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
import time

FILES = os.environ.get("DIAGNOSIS_FILES") or tempfile.gettempdir()
# case -> what differs from DDP with buckets of 25 MB, in the first or second of two models
CASES = {
    "ddp": {},
    "late-host": {"late": "host", "rank": 1},
    "late-data": {"late": "data", "rank": 1},
    "small-buckets": {"bucket_mb": 0.05, "model": "thin"},
    "small-buckets.cured": {"model": "thin"},
    "little-work": {"batch": 32},
    "little-work.cured": {"batch": 2048},
    "slow-link": {"env": {"NCCL_P2P_DISABLE": "1"}},
    "stray-context": {"stray": True},
    "wide-ddp": {"model": "wide"},
    "late-host-0": {"late": "host", "rank": 0, "model": "wide"},
    "late-data-0": {"late": "data", "rank": 0, "model": "wide"},
    "small-buckets-wide": {"manual": "each", "model": "thin"},
    "little-work-wide": {"batch": 16, "model": "wide"},
    "little-work-wide.cured": {"batch": 1024, "model": "wide"},
    "slow-link-wide": {"env": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, "model": "wide"},
    "stray-context-wide": {"stray": True, "model": "wide"},
    # work enough that the GPUs, and not the host, bind
    "ddp-deep": {"model": "deep"},
    "late-shared-deep": {"model": "deep"},
    "reduce-at-end-deep": {"manual": "end", "model": "deep"},
    "uneven-deep": {"more": 1.7, "rank": 1, "model": "deep"},
    "ddp-broad": {"model": "broad"},
    "late-shared-broad": {"model": "broad"},
    "reduce-at-end-broad": {"manual": "end", "model": "broad"},
    "uneven-broad": {"more": 1.4, "rank": 0, "model": "broad"},
}
MODELS = {"narrow": (2048, 8, 4096), "wide": (4096, 4, 2048), "thin": (512, 48, 8192), "deep": (4096, 8, 8192),
          "broad": (8192, 3, 4096)}  # fmt: skip  # width, layers, batch


def worker(how, steps, names):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    rank = int(os.environ["RANK"])
    if rank == 0 and (path := os.environ.get("DIAGNOSIS_LOCK")):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    numbers = os.path.join(FILES, f"batch{rank}.bin")

    def made(settings):
        width, depth, batch = MODELS[settings.get("model", "narrow")]
        batch = settings.get("batch", batch)
        own = rank == settings.get("rank")
        if own:
            batch = int(batch * settings.get("more", 1))
        torch.manual_seed(0)
        layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*layers).to("cuda", torch.bfloat16)
        manual = settings.get("manual")
        trained = model
        if not manual:
            trained = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=settings.get("bucket_mb", 25),
                                              gradient_as_bucket_view=True)  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), 0.001, foreach=True)
        x = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
        late = settings.get("late") if own else None
        stray = settings.get("stray") and rank == 1
        if late == "data":
            host = torch.randn(batch, width).pin_memory()
            host.numpy().tofile(numbers)

        def step(index):
            data = x
            if late == "data":
                with open(numbers, "rb") as file:
                    values = file.read()
                data = torch.frombuffer(bytearray(values), dtype=torch.float32).view(batch, width)
                data = data.pin_memory().cuda(non_blocking=True).bfloat16()
            if late == "host":
                value = 0
                for k in range(120_000):
                    value = (value * 31 + k) % 1_000_003
            if stray:  # a tensor on the first GPU, though the second is this process's
                torch.zeros(64, device="cuda:0").add_(index)
            optimizer.zero_grad(set_to_none=True)
            loss = trained(data).float().square().mean()
            loss.backward()
            if manual == "each":
                for p in model.parameters():
                    dist.all_reduce(p.grad)
            elif manual == "end":
                flat = torch.cat([p.grad.flatten() for p in model.parameters()])
                dist.all_reduce(flat)
                at = 0
                for p in model.parameters():
                    p.grad.copy_(flat[at : at + p.numel()].view_as(p))
                    at += p.numel()
            optimizer.step()

        return step

    for name in names:
        step = made(CASES[name])
        for index in range(5 if how == "time" else 2):
            step(index)
        torch.cuda.synchronize()
        dist.barrier()
        begun = time.perf_counter()
        for index in range(steps):
            step(index)
        torch.cuda.synchronize()
        if rank == 0:
            print(f"time {name} {(time.perf_counter() - begun) / steps * 1e3:.6f}", flush=True)
        dist.barrier()
        step = None
        torch.cuda.empty_cache()
    dist.destroy_process_group()


def hog():
    """Products on the second GPU, by a process of somebody else's: until it is killed."""
    import torch

    a = torch.randn(2048, 2048, device="cuda:1", dtype=torch.bfloat16)
    print("ready", flush=True)
    while True:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()


def main():
    how, *rest = sys.argv[1:] or ["list"]
    if how == "list":
        print("\n".join(CASES))
    elif how == "hog":
        hog()
    elif "RANK" in os.environ:
        worker(how, int(rest[0]), rest[1:])
    else:
        env = dict(os.environ)
        for name in rest[1:]:
            env.update(CASES[name].get("env", {}))
        env |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000)}
        ranks = [subprocess.Popen([sys.executable, *sys.argv], env=env | {"RANK": str(r), "LOCAL_RANK": str(r)})
                 for r in range(2)]  # fmt: skip
        sys.exit(max(abs(process.wait()) for process in ranks))


if __name__ == "__main__":
    main()
