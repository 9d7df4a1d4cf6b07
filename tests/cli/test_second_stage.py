"""A second stage of counters: what the first ones leave open is asked once more, and nothing where nothing is open.

Stand-ins take the place of nsys and ncu, since there is no GPU: they give what was recorded of a program on an H100.
"""

from __future__ import annotations

import csv

import pytest

from tests.analysis.test_diagnosis import recordings

NSYS = """#!/bin/bash
[ "$1" != --version ] || { echo "NVIDIA Nsight Systems version 2024.2"; exit; }
for word; do case $word in --output=*) out=${word#*=} ;; esac; done
if [ "$1" = export ]; then cp HOME/timeline "$out"; else echo report >"$out.nsys-rep"; fi
"""
NCU = """#!/bin/bash
# of a report it prints the recorded page; a page of the source only where the section was collected
[ "$1" != --version ] || { echo "Version 2025.3"; exit; }
if [ "$1" = --import ]; then
  [ "$4" != source ] || grep -q SourceCounters "$2" || exit 1
  cat "HOME/$4" || exit 1
  exit
fi
printf '%s\\n' "$@" | tee asked >counters.ncu-rep
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
name: t
app: {command: ./program, files: [program]}
passes:
  - timeline: {tool: nsys}
  - counters: {}
resources: {gpus: 0, time: 10m}
collect: tables
"""


@pytest.fixture
def recorded(home):
    """Lay out a recipe, its program, and tools that give what was recorded of a case."""
    (home / "bin").mkdir()
    for name, text in (("nsys", NSYS), ("ncu", NCU)):
        (home / "bin" / name).write_text(text.replace("HOME", str(home)))
        (home / "bin" / name).chmod(0o755)
    (home / "sites.yaml").write_text(SITES.replace("HOME", str(home)))
    (home / "recipe.yaml").write_text(RECIPE)
    (home / "program").write_text("#!/bin/sh\n")
    (home / "program").chmod(0o755)

    def lay_out(case):
        files = recordings.unpack(case, home)
        files["timeline"].rename(home / "timeline")
        files["counters"].rename(home / "raw")
        if (source := home / f"{case}.source.csv").exists():
            source.rename(home / "source")
        for name in ("details", "session"):  # the raw page has what the rules need
            (home / name).write_text((home / "raw").read_text())

    return lay_out


def asked(home, run):
    (file,) = home.glob(f"campaigns/*/scratch/runs/{run}/attempt-1/asked")
    return file.read_text().split("\n")


def test_a_kernel_that_wastes_memory_is_measured_once_more_and_the_answer_names_its_line(nsw, recorded, home):
    recorded("k06")
    nsw("run", "recipe.yaml", "-s", "gpus", "--now", exits=0)
    words = asked(home, "case.counters-2.r1")
    assert words[words.index("--section") : words.index("--section") + 4] == [
        "--section", "SourceCounters", "--import-source", "yes",
    ]  # fmt: skip
    assert "--metrics" not in words
    kernel = words[words.index("--kernel-id") + 1]
    assert kernel.startswith("::regex:^(_Z11elementwise")
    assert "|" not in kernel  # a launch of one kernel
    said = " ".join(nsw("summarize").out.split())
    assert "worst access: kernels.cu:42, 97 % of its passes are conflicts" in said
    assert "-lineinfo" not in said

    (lock,) = home.glob("campaigns/*/recipe.lock.yaml")
    again = nsw("run", lock, "-s", "gpus", "--now")
    assert again.err.count("as the lockfile records it") == 2
    assert "not compared" not in again.err


def test_where_nothing_is_open_the_second_stage_is_done_without_a_job(nsw, recorded, home):
    recorded("k23")
    nsw("run", "recipe.yaml", "-s", "gpus", "--now", exits=0)
    assert "not needed: the first counters leave no question" in " ".join(nsw("status", "--runs").out.split())
    assert not list(home.glob("campaigns/*/scratch/runs/case.counters-2.r1"))
    reread = nsw("reread", exits=0)
    assert "counters-2" not in nsw("problems").out
    assert "not read again" not in reread.err


def test_the_plan_prices_the_second_stage_and_one_stage_has_none(nsw, recorded, home):
    recorded("k06")
    priced = " ".join(nsw("plan", "recipe.yaml", "-s", "gpus").out.split())
    assert (
        "counters-2: at most 5 passes more of a launch, only of kernels of which counters leaves a question" in priced
    )
    one = home / "one.yaml"
    one.write_text(RECIPE.replace("counters: {}", "counters: {stages: 1}"))
    assert "counters-2" not in nsw("plan", "one.yaml", "-s", "gpus").out
    one.write_text(RECIPE.replace("counters: {}", "counters: {stages: 3}"))
    refused = nsw("plan", "one.yaml", "-s", "gpus")
    assert refused.code != 0
    assert "stages" in refused.err


def test_without_source_lines_the_answer_says_once_how_to_get_them(nsw, recorded, home):
    recorded("k06")
    _, (_, kernel), *page = csv.reader((home / "source").read_text().splitlines())
    with (home / "source").open("w") as file:  # the page of the instructions alone
        rows = [row[2:] for row in page if row[2] != "-"]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["Kernel Name", kernel, ""], *rows])
    nsw("run", "recipe.yaml", "-s", "gpus", "--now")
    said = " ".join(nsw("summarize").out.split())
    assert said.count("Compile with -lineinfo to see the source line of the worst access.") == 1
    assert "worst access:" not in said
    assert "missing" not in said


def test_both_stages_are_done_when_the_timeline_that_failed_is_done_again(nsw, recorded, home):
    recorded("k06")
    (home / "timeline").rename(home / "later")
    failed = nsw("run", "recipe.yaml", "-s", "gpus", "--now")
    assert failed.code != 0
    assert "2 cancelled" in nsw("status").out
    (home / "later").rename(home / "timeline")
    nsw("retry", "case.timeline.r1", "--now", exits=0)
    assert asked(home, "case.counters-2.r1")
