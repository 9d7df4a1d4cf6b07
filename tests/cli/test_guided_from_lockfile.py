"""A whole guided campaign, and the same again from its lockfile: its choices hold where everything is as it was.

Stand-ins take the place of nsys and ncu, since there is no GPU: nsys gives a recorded timeline of an H200, and ncu writes
down what it was asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.recorded import alexnet

FIRST, OTHER = "g1-b8", "g1-b128"  # of which other kernels would be chosen
NSYS = """#!/bin/bash
[ "$1" != --version ] || { echo "NVIDIA Nsight Systems version 2024.1"; exit; }
for word; do case $word in --output=*) out=${word#*=} ;; esac; done
if [ "$1" = export ]; then cp HOME/timeline.sqlite "$out"; else echo report >"$out.nsys-rep"; fi
"""
NCU = """#!/bin/bash
[ "$1" != --version ] || { echo "Version $(cat HOME/ncu-version)"; exit; }
[ "$1" != --import ] || exit 1
printf '%s\\n' "$@" >asked
"""
SITES = """
nsw: 1
sites:
  gpus:
    scheduler: local
    gpus: {per_node: 0, chip: gh100}
    profilers: {nsys: HOME/bin/nsys, ncu: HOME/bin/ncu}
"""
RECIPE = """
nsw: 1
name: guided
app: {command: "./program {{ n }}", files: [program]}
matrix: {n: [1, 2]}
passes:
  - timeline: {tool: nsys}
  - counters: {tool: ncu, kernels: {top: 2}, launches: {sample: 3}, metrics: [ipc]}
resources: {gpus: 0, time: 2h}
collect: tables
"""
COUNTERS = ("n-1.counters.r1", "n-2.counters.r1")
CHOSEN_AGAIN = "the lockfile's choice does not apply here, and nsw chooses again: "


@pytest.fixture
def guided(home):
    """A folder with the stand-ins, a recipe and its program."""
    (home / "bin").mkdir()
    for name, text in (("nsys", NSYS), ("ncu", NCU)):
        (home / "bin" / name).write_text(text.replace("HOME", str(home)))
        (home / "bin" / name).chmod(0o755)
    record(home, FIRST)
    (home / "ncu-version").write_text("2024.1")
    (home / "sites.yaml").write_text(SITES.replace("HOME", str(home)))
    (home / "recipe.yaml").write_text(RECIPE)
    (home / "program").write_text("#!/bin/sh\n")
    (home / "program").chmod(0o755)
    return home


def record(home: Path, name: str) -> None:
    """The timeline that nsys gives from now on."""
    (home / "timeline.sqlite").write_bytes(alexnet(name))


def run(nsw, recipe) -> tuple[Path, str]:
    """Carry a recipe out: the campaign's folder, and what nsw said on the way."""
    before = set(Path("campaigns").glob("*"))
    said = nsw("run", str(recipe), "-s", "gpus", "--now")
    (made,) = set(Path("campaigns").glob("*")) - before
    return made, said.err


def asked(campaign: Path) -> list[str]:
    """What ncu was asked for in each run."""
    return [(campaign / "scratch" / "runs" / run / "attempt-1" / "asked").read_text() for run in COUNTERS]


def test_a_campaign_from_a_lockfile_measures_what_the_first_one_chose(nsw, guided):
    first, said = run(nsw, "recipe.yaml")
    assert said.count("chosen    n-") == 2
    assert "as the lockfile records it" not in said
    chosen = asked(first)
    assert all("--kernel-id" in words for words in chosen)

    record(guided, OTHER)
    second, said = run(nsw, first / "recipe.lock.yaml")
    assert said.count("as the lockfile records it") == 2
    assert CHOSEN_AGAIN not in said
    assert asked(second) == chosen
    third, said = run(nsw, second / "recipe.lock.yaml")  # it is handed on
    assert said.count("as the lockfile records it") == 2
    assert asked(third) == chosen


def chip(home: Path, name: str) -> None:
    sites = home / "sites.yaml"
    sites.write_text(sites.read_text().replace("gh100", name))


def program(_home: Path) -> None:
    """Change the copy that the lockfile names, which is the first campaign's."""
    (copy,) = Path("campaigns").glob("*/app/program")
    copy.chmod(0o755)
    with copy.open("a") as file:
        file.write(f"# {os.getpid()}\n")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda home: (home / "ncu-version").write_text("2025.3"), "ncu was Version 2024.1, and here it is Version 2025.3"),
        (lambda home: chip(home, "ga100"), "the chip was gh100, and here it is ga100"),
        (program, "files of the application have changed"),
    ],
    ids=["another ncu", "another chip", "another program"],
)  # fmt: skip
def test_what_does_not_hold_is_chosen_again_with_one_warning(nsw, guided, change, why):
    first, _ = run(nsw, "recipe.yaml")
    change(guided)
    record(guided, OTHER)
    second, said = run(nsw, first / "recipe.lock.yaml")
    assert said.count(CHOSEN_AGAIN) == 1
    assert f"{CHOSEN_AGAIN}{why}" in " ".join(said.split())
    assert "as the lockfile records it" not in said
    assert asked(second) != asked(first)
    record(guided, FIRST)
    third, said = run(nsw, second / "recipe.lock.yaml")
    assert said.count("as the lockfile records it") == 2
    assert asked(third) == asked(second)
