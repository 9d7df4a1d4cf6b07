"""Programs in JAX with one illness each; NAME.cured is the same work without it. Arguments are those of torch_cases.py."""

import fcntl
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
import jax
import jax.numpy as jnp

CASES = {}


def case(name, *settings):
    def register(make):
        CASES[name] = (make, settings)
        return make

    return register


def network(parameters, x):
    for weight in parameters:
        x = jnp.tanh(x @ weight)
    return x


def weights(width, depth):
    keys = jax.random.split(jax.random.PRNGKey(0), depth)
    return [jax.random.normal(key, (width, width)) * 0.05 for key in keys]


@case("jit-by-length", False)
@case("jit-by-length.cured", True)
def by_length(padded):
    """Each length of input is compiled anew; or all are padded to one."""
    parameters = weights(512, 4)
    run = jax.jit(network)
    lengths = [96 + 8 * k for k in range(64)]

    def step(index):
        x = jnp.ones((608 if padded else lengths[index], 512))
        run(parameters, x).block_until_ready()

    return step


@case("operator-by-operator", False)
@case("operator-by-operator.cured", True)
def by_operator(compiled):
    parameters = weights(256, 16)
    run = jax.jit(network) if compiled else network
    x = jnp.ones((64, 256))

    def step(index):
        y = x
        for _ in range(3):
            y = run(parameters, y)
        y.block_until_ready()

    return step


@case("float-of-loss", True)
@case("float-of-loss.cured", False)
def float_of_loss(each):
    parameters = weights(512, 4)

    @jax.jit
    def update(parameters, x):
        loss, gradients = jax.value_and_grad(lambda p: jnp.mean(network(p, x) ** 2))(parameters)
        return [p - 0.01 * g for p, g in zip(parameters, gradients, strict=True)], loss

    x = jnp.ones((256, 512))
    state = {"parameters": parameters}

    def step(index):
        for _ in range(10):
            state["parameters"], loss = update(state["parameters"], x)
            if each:
                float(loss)
        loss.block_until_ready()

    return step


def main():
    how, *rest = sys.argv[1:] or ["list"]
    if how == "list":
        print("\n".join(CASES))
        return
    if path := os.environ.get("DIAGNOSIS_LOCK"):
        fcntl.flock(open(path, "w"), fcntl.LOCK_EX)  # noqa: SIM115  held to the end
    steps, names = int(rest[0]), rest[1:]
    for name in names:
        make, settings = CASES[name]
        step = make(*settings)
        for index in range(0 if how == "run" else 3):
            step(index)
        begun = time.perf_counter()
        for index in range(3, 3 + steps):
            step(index)
        print(f"time {name} {(time.perf_counter() - begun) / steps * 1e3:.6f}", flush=True)


if __name__ == "__main__":
    main()
