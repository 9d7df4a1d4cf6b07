"""A file that is clearly something else is told so in one sentence; a recipe with faults still has its faults told."""

import pytest

from nsw.errors import InputError
from nsw.recipe.load import load_recipe
from nsw.site.load import read_sites

RECIPE = "nsw: 1\nname: x\napp: {command: ./a}\n"
SITES = "nsw: 1\nsites:\n  here: {scheduler: local}\n"
OTHERS = {
    "job.sh": ("#!/bin/bash\n#SBATCH --nodes=1\nsrun ./app: x\n", "a job script, with lines of #SBATCH"),
    "job": ("#PBS -l nodes=1\n./app\n", "a job script, with lines of #PBS"),
    "tsp.sh": ("#!/bin/bash\n#TSP -G 1\n./app\n", "a job script, with lines of #TSP"),  # of another package
    "flux.sh": ("#!/bin/bash\n# flux: -N4\n./app\n", "a job script, with lines of # flux:"),
    "note.sh": ("#!/bin/sh\n# TODO -x\n./app\n", "a program"),
    "run.sh": ("#!/bin/sh\n./app\n", "a program"),
    "train.py": ("import os\nx = {1: 2}\n", "a Python program"),
    "trace.json": ('{"traceEvents": []}', "a trace of a profiler"),
    "uv.lock": ("version = 1\n[[package]]\nname = 'x'\n", "a TOML or INI file"),
    "other.yaml": ("colour: red\nshape: round\n", "some other file: its keys are colour, shape"),
    "big.yaml": ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "a Git LFS pointer"),
    "page.yaml": ("<!DOCTYPE html>\n<html></html>\n", "a web page"),
    "a.nsys-rep": ("\0", "a profiler's report"),
}


def told(load, path) -> str:
    with pytest.raises(InputError) as caught:
        load(path)
    assert len(caught.value.diagnostics) == 1, caught.value.render()
    return caught.value.render()


@pytest.mark.parametrize("name", OTHERS)
def test_another_file_is_one_sentence_with_what_to_do(tmp_path, name):
    text, what = OTHERS[name]
    path = tmp_path / name
    path.write_text(text)
    assert f"{path}: this is {what}" in told(load_recipe, path)
    assert ", and no recipe\n  hint: " in told(load_recipe, path)
    assert ", and no sites file\n  hint: " in told(read_sites, path)


def test_a_sites_file_is_no_recipe_and_a_recipe_no_sites_file(tmp_path):
    (tmp_path / "r.yaml").write_text(RECIPE)
    (tmp_path / "s.yaml").write_text(SITES)
    assert "this is a sites file, and no recipe\n  hint: name it with --sites" in told(load_recipe, tmp_path / "s.yaml")
    assert "this is a recipe, and no sites file" in told(read_sites, tmp_path / "r.yaml")


@pytest.mark.parametrize("text", [
    "nsw: 1\nname: x\napp: {command: ./a}\nsites: {here: {repeats: 2}}\n",
    "# was:\n#SBATCH --nodes=1\nnsw: 1\nname: x\napp: {command: ./a}\n",
    '{"nsw": 1, "name": "x", "app": {"command": "./a"}}',
])  # fmt: skip
def test_a_recipe_with_sections_of_sites_with_comments_or_in_json_is_one(tmp_path, text):
    (tmp_path / "r.yaml").write_text(text)
    load_recipe(tmp_path / "r.yaml")


@pytest.mark.parametrize("text", ["nmae: x\naap: {command: ./a}\n", "nsw: 1\ncolour: red\n", "name: x\n", "[1, 2]\n"])
def test_a_recipe_with_faults_has_them_told(tmp_path, text):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_recipe(tmp_path / "r.yaml")
    assert "this is" not in caught.value.render()
