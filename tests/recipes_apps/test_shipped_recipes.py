"""The shipped recipes ask what they say, and name files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsw.recipe.load import load_recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def cases(name: str) -> list[dict]:
    return [dict(case.params) for case in load_recipe(RECIPES / name, "local").cases]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_shipped_recipe_loads_and_its_files_exist(path: Path):
    recipe = load_recipe(path, "local").recipe
    assert recipe.app.files
    assert [name for name in recipe.app.files if not (RECIPES / str(name)).is_file()] == []


def test_alexnet_asks_for_1_2_4_gpus_and_batch_8_to_128():
    assert sorted((case["gpus"], case["batch"]) for case in cases("alexnet_scaling.yaml")) == sorted(
        (gpus, batch) for gpus in (1, 2, 4) for batch in (8, 16, 32, 128)
    )


def test_kernel_optimisation_asks_for_every_variant_of_the_program():
    source = (RECIPES / "apps" / "matmul" / "matmul.cu").read_text()
    asked = {case["variant"] for case in cases("kernel_optimisation.yaml")}
    assert asked == {"naive", "coalesced", "tiled", "blocked"}
    assert all(f'{{"{variant}", ' in source for variant in asked)


def test_convolution_steps_asks_for_every_variant_and_layer_of_the_program():
    source = (RECIPES / "apps" / "convolution" / "convolution.cu").read_text()
    asked = {(case["layer"], case["variant"]) for case in cases("convolution_steps.yaml")}
    variants = re.findall(r'^    \{"(\w+)", ', source, re.MULTILINE)
    assert len(variants) == 8
    assert asked == {(layer, variant) for layer in (1, 2) for variant in variants}


def test_amp_networks_asks_for_the_five_networks_of_the_document_in_both_precisions():
    source = (RECIPES / "apps" / "train.py").read_text()
    networks = ("mlp", "lenet", "alexnet", "vgg11", "resnet50")
    asked = {(case["arch"], case["precision"]) for case in cases("amp_networks.yaml")}
    assert asked == {(network, precision) for network in networks for precision in ("fp32", "amp")}
    assert all(f'"{network}": ' in source for network in networks)


def test_the_quickstart_asks_for_every_variant_of_the_program():
    source = (RECIPES / "apps" / "quickstart.py").read_text()
    assert all(f'"{case["variant"]}": ' in source for case in cases("cpu_quickstart.yaml"))
