"""The programs that the shipped recipes profile: they run, and print what the recipes look for."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.recipe.load import load_recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
APPS = RECIPES / "apps"

PYTHON = os.environ.get("NSW_TORCH_PYTHON") or sys.executable
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and "NSW_TORCH_PYTHON" not in os.environ,
    reason="PyTorch is not installed (NSW_TORCH_PYTHON names a Python with it)",
)
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")


def figure(recipe: str, name: str, printed: str) -> float:
    """The figure as the recipe would find it."""
    pattern = load_recipe(RECIPES / recipe, "local").recipe.app.figures[name].regex
    found = re.findall(pattern, printed)
    assert len(found) == 1, printed
    return float(found[0])


def run(*words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **env}, timeout=120
    )


@pytest.mark.parametrize("variant", ["python", "rows", "numpy"])
def test_the_quickstart_prints_its_figure(variant: str):
    result = run(sys.executable, APPS / "quickstart.py", "--size", 48, "--variant", variant, "--seconds", 0.01)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"variant={variant} size=48 ")
    assert figure("cpu_quickstart.yaml", "gflops", result.stdout) > 0


def test_the_quickstart_refuses_a_wrong_product():
    code = "import numpy, quickstart as q; q.check(lambda a, b: a * b, *numpy.ones((2, 8, 8)))"
    result = run(sys.executable, "-c", code, PYTHONPATH=str(APPS))
    assert result.returncode == 1
    assert result.stderr == "error: wrong result\n"


@needs_nvcc
def test_matmul_compiles_and_knows_its_variants(tmp_path: Path):
    shutil.copytree(APPS / "matmul", tmp_path / "matmul", ignore=lambda *_: ["matmul"])
    built = run("make", "-C", tmp_path / "matmul")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stderr
    program = tmp_path / "matmul" / "matmul"
    for words in (["--size", "100"], ["--variant", "fastest"], ["--size"], ["--help", "me"]):
        refused = run(program, *words)
        assert refused.returncode == 2
        assert "naive coalesced tiled blocked" in refused.stderr


@needs_nvcc
@pytest.mark.gpu
@pytest.mark.parametrize("variant", ["naive", "coalesced", "tiled", "blocked"])
def test_matmul_is_right_on_a_gpu(variant: str, tmp_path: Path):
    shutil.copytree(APPS / "matmul", tmp_path / "matmul", ignore=lambda *_: ["matmul"])
    assert run("make", "-C", tmp_path / "matmul").returncode == 0
    result = run(tmp_path / "matmul" / "matmul", "--variant", variant, "--size", "256")
    assert result.returncode == 0, result.stderr
    assert figure("kernel_optimisation.yaml", "gflops", result.stdout) > 0


@needs_torch
@pytest.mark.parametrize("arch", ["mlp", "lenet", "alexnet", "vgg11", "vgg16", "resnet50"])
def test_every_network_trains(arch: str):
    result = run(PYTHON, APPS / "train.py", "-a", arch, "-b", 2, "--steps", 2, "--warmup", 1)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"arch={arch} gpus=1 batch=2 ")
    assert figure("alexnet_scaling.yaml", "images_per_sec", result.stdout) > 0


@needs_torch
@pytest.mark.parametrize(
    ("arch", "millions"), [("alexnet", 61.10), ("vgg11", 132.86), ("vgg16", 138.36), ("resnet50", 25.56)]
)
def test_a_network_has_the_published_number_of_parameters(arch: str, millions: float):
    code = f"import train; print(sum(p.numel() for p in train.NETWORKS[{arch!r}]().parameters()))"
    result = run(PYTHON, "-c", code, PYTHONPATH=str(APPS))
    assert round(int(result.stdout) / 1e6, 2) == millions


@needs_torch
def test_two_processes_train_together():
    words = ["--standalone", "--nproc_per_node=2", APPS / "train.py", "-a", "lenet", "-b", 2, "--steps", 4]
    result = run(PYTHON, "-m", "torch.distributed.run", *words, CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 0, result.stderr
    assert re.findall(r"gpus=(\d) batch=(\d)", result.stdout) == [("2", "2")]


@needs_torch
def test_the_profile_is_printed_and_traced(tmp_path: Path):
    words = ["-a", "lenet", "-b", 2, "--steps", 2, "--warmup", 1, "--profile", "torch", "--precision", "amp"]
    result = run(PYTHON, APPS / "train.py", *words, cwd=tmp_path)
    assert "Self CPU time total" in result.stdout
    assert json.loads((tmp_path / "torch-trace-0.json").read_text())["traceEvents"]


@needs_torch
def test_a_clock_that_would_never_start_is_refused():
    result = run(PYTHON, APPS / "train.py", "--steps", 3)
    assert result.returncode == 2
    assert "--steps must be more than --warmup" in result.stderr


@needs_nvcc
def test_convolution_compiles_and_knows_its_variants(tmp_path: Path):
    shutil.copytree(APPS / "convolution", tmp_path / "convolution", ignore=lambda *_: ["convolution"])
    built = run("make", "-C", tmp_path / "convolution")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stderr
    program = tmp_path / "convolution" / "convolution"
    for words in (["--images", "0"], ["--layer", "3"], ["--variant", "fastest"], ["--layer"], ["--help", "me"]):
        refused = run(program, *words)
        assert refused.returncode == 2
        assert "naive constant shared double_buffer unrolled fused registers half" in refused.stderr


@needs_nvcc
@pytest.mark.gpu
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize(
    "variant", ["naive", "constant", "shared", "double_buffer", "unrolled", "fused", "registers", "half"]
)
def test_convolution_is_right_on_a_gpu(variant: str, layer: int, tmp_path: Path):
    shutil.copytree(APPS / "convolution", tmp_path / "convolution", ignore=lambda *_: ["convolution"])
    assert run("make", "-C", tmp_path / "convolution").returncode == 0
    words = ["--variant", variant, "--layer", layer, "--images", 100]
    result = run(tmp_path / "convolution" / "convolution", *words)
    assert result.returncode == 0, result.stderr
    assert figure("convolution_steps.yaml", "op_ms", result.stdout) > 0
    assert figure("convolution_steps.yaml", "gflops", result.stdout) > 0


@needs_torch
@pytest.mark.parametrize("gemms", [8, 2])
def test_the_lstm_cell_steps(gemms: int):
    result = run(PYTHON, APPS / "lstm.py", "--gemms", gemms, "--hidden", 16, "--batch", 4, "--steps", 10)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"gemms={gemms} hidden=16 batch=4 ")
    assert figure("gemm_batching.yaml", "steps_per_sec", result.stdout) > 0


@needs_torch
def test_the_lstm_cell_refuses_products_that_differ():
    code = (
        "import lstm, torch\n"
        "lstm.PRODUCTS[2] = lambda weights, columns, out: out.zero_()\n"
        "with torch.no_grad(): lstm.check(8, 2, torch.device('cpu'), torch.ones(8, 2))"
    )
    result = run(PYTHON, "-c", code, PYTHONPATH=str(APPS))
    assert result.returncode == 1
    assert result.stderr == "error: wrong result\n"


@needs_torch
def test_the_network_learns_the_digits():
    result = run(PYTHON, APPS / "digits.py", "--hidden", 32, "--epochs", 2, CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 0, result.stderr
    assert figure("mnist_hyperparameters.yaml", "precision", result.stdout) > 0.3
    assert figure("mnist_hyperparameters.yaml", "loss", result.stdout) < 2.2
    assert figure("mnist_hyperparameters.yaml", "seconds", result.stdout) > 0


@needs_torch
def test_two_processes_learn_what_one_does_and_time_what_they_share():
    words = [APPS / "digits.py", "--hidden", 8, "--batch", 3000]
    alone = run(PYTHON, *words, CUDA_VISIBLE_DEVICES="")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    both = run(PYTHON, *torchrun, *words, CUDA_VISIBLE_DEVICES="")
    assert both.returncode == 0, both.stderr
    same = [figure("mnist_hyperparameters.yaml", "precision", result.stdout) for result in (alone, both)]
    assert same[0] == pytest.approx(same[1], abs=0.001)
    for name in ("iteration_ms", "p_flops", "p_pci", "p_mpi"):
        assert figure("mnist_performance_model.yaml", name, both.stdout) > 0


@needs_torch
@pytest.mark.parametrize("layout", ["nchw", "channels_last"])
def test_the_cnn_trains_on_the_cpu(layout: str):
    result = run(PYTHON, APPS / "mnist_cnn.py", "-b", 4, "--steps", 3, "--warmup", 1, "--layout", layout)
    assert result.returncode == 0, result.stderr
    assert f"layout={layout} " in result.stdout
    assert figure("theta_mnist_cpu.yaml", "images_per_sec", result.stdout) > 0
