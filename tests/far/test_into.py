"""`run --into` behind `far`: what changed is done again there once, whatever the connection does, by its owner alone."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_guided_from_lockfile import NCU, NSYS
from tests.recorded import alexnet

from .conftest import behind
from .laptop import AT, Laptop
from .place import Far

if TYPE_CHECKING:
    from pathlib import Path

    from .staged import Site

RECIPE = """
nsw: 1
name: grown
app: {command: 'sh prog.sh {{ n }}', files: [prog.sh], figures: {f: {regex: 'f=(.*)', unit: s}}}
matrix: {n: [1, 2]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""


def write(folder: Path, values: str, begin: str = "") -> None:
    """The program, which prints its parameter behind some digits, and the recipe with other values of it."""
    (folder / "prog.sh").write_text(f"echo f={begin}$1\n")
    (folder / "recipe.yaml").write_text(RECIPE.replace("[1, 2]", values))


def begun(far: Far, site: Site, folder: Path) -> tuple[Laptop, Path]:
    """A campaign of two runs that is over."""
    laptop = Laptop(far, site, folder, RECIPE)
    write(folder, "[1, 2]")
    return laptop, laptop.finish()


def figures(laptop: Laptop) -> dict[str, float]:
    said = laptop.nsw("summarize", "--table", "figures", "--json")
    return {row["case"]: row["median"] for row in json.loads(said.stdout)["rows"]}


def attempts(laptop: Laptop) -> dict[str, int]:
    return {run["case"]: run["attempt"] for run in json.loads(laptop.nsw("status", "--json").stdout)["runs"]}


def test_another_program_and_a_new_case_over_there(far_site, tmp_path):
    laptop, folder = begun(*far_site, tmp_path)
    write(tmp_path, "[1, 2, 3]", "1")
    plan = laptop.nsw("plan", "recipe.yaml", "--into", folder.name, "--sites", "sites.yaml")
    assert "does 2 runs again, since prog.sh changed" in plan.stdout, plan.stderr
    assert figures(laptop) == {"n-1": 1, "n-2": 2}
    laptop.finish("run", "recipe.yaml", "--into", folder.name, "--sites", "sites.yaml", "--yes")
    assert figures(laptop) == {"n-1": 11, "n-2": 12, "n-3": 13}
    assert attempts(laptop) == {"n-1": 2, "n-2": 2, "n-3": 1}
    (there,) = laptop.far.scratch.glob("*/")
    assert [(there / app / "prog.sh").read_text() for app in ("app", "app-2")] == ["echo f=$1\n", "echo f=1$1\n"]


def test_what_was_cleaned_over_there_is_sent_again(far_site, tmp_path):
    laptop, folder = begun(*far_site, tmp_path)
    assert laptop.nsw("clean", "--yes").returncode == 0
    assert not list(laptop.far.scratch.glob("*/"))
    write(tmp_path, "[1, 2, 3]", "1")
    laptop.nsw("run", "recipe.yaml", "--into", folder.name, "--sites", "sites.yaml", "--yes", exits=0)
    assert figures(laptop) == {"n-1": 11, "n-2": 12, "n-3": 13}


@pytest.fixture
def machine(both) -> tuple[Far, Site]:
    """The machine itself behind `far`."""
    far = Far(both)
    return far, behind(far, both, "local")


@pytest.mark.parametrize("match", ["app-2", "nsw submit"])
def test_the_connection_ends_while_the_new_program_is_brought_or_its_job_is_submitted(machine, tmp_path, match):
    laptop, folder = begun(*machine, tmp_path)
    write(tmp_path, "[1, 2, 3]", "1")
    laptop.far.order("cut", match=match)
    words = ("run", "recipe.yaml", "--into", folder.name, "--sites", "sites.yaml", "--yes")
    if laptop.nsw(*words).returncode:
        laptop.finish(*words)
    assert laptop.far.faults(), laptop.far.commands()
    assert figures(laptop) == {"n-1": 11, "n-2": 12, "n-3": 13}
    assert attempts(laptop) == {"n-1": 2, "n-2": 2, "n-3": 1}


def test_only_the_owner_adds_to_a_campaign_and_a_new_owner_has_all_programs(machine, tmp_path):
    laptop, folder = begun(*machine, tmp_path)
    write(tmp_path, "[1, 2]", "1")
    laptop.finish("run", "recipe.yaml", "--into", folder.name, "--sites", "sites.yaml", "--yes")
    laptop.nsw("attach", folder.name, "--yes", *AT, "--root", "elsewhere", exits=0)
    write(tmp_path, "[1, 2]", "2")
    (there,) = laptop.far.scratch.glob("*/")
    before = sorted(str(path) for path in there.rglob("*"))
    words = ("run", "recipe.yaml", "--sites", "sites.yaml", "--yes", "--into", folder.name, "--root")
    said = laptop.nsw(*words, "campaigns")
    assert (said.returncode, "was taken over by" in said.stderr) == (2, True), said.stderr
    assert sorted(str(path) for path in there.rglob("*")) == before
    assert figures(laptop) == {"n-1": 11, "n-2": 12}
    said = laptop.nsw(*words, "elsewhere", exits=0)
    assert (tmp_path / "elsewhere" / folder.name / "reports/n-2.baseline.r1/stdout").read_text() == "f=22\n"


GUIDED = """
nsw: 1
name: guided
app: {command: "./program {{ n }}", files: [program]}
matrix: {n: [1]}
passes:
  - timeline: {tool: nsys}
  - counters: {tool: ncu, kernels: {top: 2}, launches: {sample: 3}, metrics: [ipc]}
resources: {gpus: 0, time: 2h}
collect: tables
"""


def record(home: Path, batch: int) -> None:
    """The timeline that nsys gives from now on: other kernels would be chosen of another batch size."""
    (home / "timeline.sqlite").write_bytes(alexnet(f"g1-b{batch}"))


def test_a_guided_campaign_with_another_program_chooses_its_kernels_again(machine, tmp_path):
    far, site = machine
    for name, text in (("nsys", NSYS), ("ncu", NCU)):
        (far.folder / name).write_text(text.replace("HOME", f"'{far.folder}'"))
        (far.folder / name).chmod(0o755)
    (far.folder / "ncu-version").write_text("2024.1")
    record(far.folder, 8)
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    profilers = f"{{nsys: '{far.folder}/nsys', ncu: '{far.folder}/ncu'}}"
    laptop = Laptop(far, site, tmp_path, GUIDED, profilers)
    sites = (tmp_path / "sites.yaml").read_text()
    (tmp_path / "sites.yaml").write_text(sites.rstrip("\n") + "\n    gpus: {per_node: 0, chip: gh100}\n")
    laptop.nsw("run", "recipe.yaml", *AT, "--yes")  # the report of this ncu cannot be read
    (folder,) = (tmp_path / "campaigns").iterdir()
    (there,) = far.scratch.glob("*/")
    asked = [there / "runs" / "n-1.counters.r1" / f"attempt-{n}" / "asked" for n in (1, 2)]
    assert "--kernel-id" in asked[0].read_text()

    record(far.folder, 128)
    (tmp_path / "program").write_text("#!/bin/sh\n# mended\n")
    words = ("recipe.yaml", "--into", folder.name, "--sites", "sites.yaml")
    assert "does 2 runs again, since program changed" in laptop.nsw("plan", *words).stdout
    said = laptop.nsw("run", *words, "--yes")
    assert len(re.findall(r"chosen +n-1", said.stdout + said.stderr)) == 1, said.stderr
    assert "--kernel-id" in asked[1].read_text()
    assert asked[1].read_text() != asked[0].read_text()
    assert attempts(laptop) == {"n-1": 2}
