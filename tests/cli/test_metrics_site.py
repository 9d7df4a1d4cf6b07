"""`nsw metrics --site`: the site's chip, and the names that its own ncu lists."""

import re
import time
from pathlib import Path

import pytest

from nsw.metrics.ncu_names import base_names_in_query_output
from nsw.site.load import load_site
from nsw.site_check.check import Check, Verdict, find_facts, save_checks

RECORDED = Path(__file__).parents[1] / "fixtures" / "h100" / "query-gh100.txt"  # of a real ncu, cut short
IPC = "sm__inst_executed.avg.per_cycle_active"
SITES = """\
nsw: 1
sites:
  gpu:
    scheduler: local
    gpus: {per_node: 1, chip: gh100}
    profilers: {ncu: NCU}
"""


@pytest.fixture
def ncu(home, monkeypatch):
    """Stands in for an ncu, which is not there: prints what a real one printed, and counts how often."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    program = home / "ncu"
    program.write_text(f'#!/bin/sh\necho "$@" >>{home}/asked\ncat {RECORDED}\n')
    program.chmod(0o755)
    (home / "gpu.yaml").write_text(SITES.replace("NCU", str(program)))
    return program


def test_the_names_in_what_a_real_ncu_prints():
    found = base_names_in_query_output(RECORDED.read_text())
    assert {"dram__bytes", "sm__throughput", "FBSP.TriageCompute.dramc__throughput"} <= found
    assert not any(" " in name or name.startswith(("-", "Metric", "=")) for name in found)
    assert base_names_in_query_output("==ERROR== Invalid chip gk110\n") == frozenset()


def test_a_site_is_checked_by_what_its_own_ncu_lists(nsw, home, ncu):
    said = nsw(
        "metrics", "check", "dram__bytes.sum", "ipc", "l1tex__t_bytes.sum", "--site", "gpu", "--sites", "gpu.yaml"
    )
    assert said.code == 2
    assert "the site's ncu does not list l1tex__t_bytes for gh100" in said.out  # the shipped list has it
    assert "2 names of 3" in said.out
    assert "names that" in said.err
    again = nsw("metrics", "check", "inst_executed", "--site", "gpu", "--sites", "gpu.yaml", exits=0)
    assert "(kept)" in again.err
    assert (home / "asked").read_text() == "--query-metrics --chip gh100\n"  # once


def test_a_portable_metric_that_the_ncu_cannot_compute_is_a_fault(nsw, ncu):
    said = nsw("metrics", "check", "l2_utilization", "--site", "gpu", "--sites", "gpu.yaml", exits=2)
    assert "the site's ncu does not list lts__t" in said.out


def test_an_ncu_that_cannot_be_asked_leaves_the_shipped_lists(nsw, ncu):
    ncu.write_text("#!/bin/sh\necho '==ERROR== Invalid chip gh100' >&2\nexit 1\n")
    said = nsw("metrics", "check", "l1tex__t_bytes.sum", "--site", "gpu", "--sites", "gpu.yaml", exits=0)
    assert "Invalid chip gh100): by the shipped lists" in said.err


RECIPE = """\
nsw: 1
name: t
app: {command: 'true'}
passes:
  - counters: {metrics: [ipc, l1tex__t_bytes.sum]}
resources: {gpus: 1}
"""


def test_a_plan_goes_by_the_names_that_the_check_of_the_site_got(nsw, home, ncu):
    (home / "r.yaml").write_text(RECIPE)
    of_site = ("--site", "gpu", "--sites", "gpu.yaml")
    before = nsw("plan", "r.yaml", *of_site)
    assert "l1tex__t_bytes" not in before.err  # the shipped list has it
    said = nsw("sites", "check", "gpu", "--sites", "gpu.yaml")
    assert re.search(
        r"^ok +metrics +ncu lists \d+ metrics for gh100; plans are checked against them$", said.out, re.MULTILINE
    )
    after = nsw("plan", "r.yaml", *of_site, exits=2)
    assert "r.yaml:5:31: the site's ncu does not list l1tex__t_bytes for gh100" in after.err
    assert (home / "asked").read_text().count("--query-metrics") == 1


def test_a_check_whose_ncu_lists_nothing_says_so(nsw, home, ncu):
    ncu.write_text("#!/bin/sh\n[ \"$1\" = --version ] || echo '==ERROR== Invalid chip gh100' >&2\n")
    said = nsw("sites", "check", "gpu", "--sites", "gpu.yaml")
    assert (
        "`" + str(ncu) + " --query-metrics --chip gh100` gave no list on site gpu (==ERROR== Invalid chip" in said.out
    )
    assert "recipes are checked by the lists that nsw ships" in said.out


def test_the_chip_of_a_site_elsewhere_is_the_one_that_its_check_found(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    (home / "s.yaml").write_text("nsw: 1\nsites:\n  far: {scheduler: slurm}\n")
    place = load_site("far", [home / "s.yaml"])
    data = place.site.model_dump(mode="json", by_alias=True)
    assert find_facts(place).chip is None
    login = Check("GPUs", Verdict.GOOD, "1 x Tesla T4", gpus=("Tesla T4",))
    node = Check("GPUs (node)", Verdict.GOOD, "4 x NVIDIA H200", gpus=("NVIDIA H200",) * 4)
    a_month_ago = time.time() - 30 * 24 * 3600
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: a_month_ago)
        save_checks(data, [login])
    assert find_facts(place).chip == "Tesla T4"
    save_checks(data, [login, node])
    assert find_facts(place).chip == "NVIDIA H200"
    save_checks(
        data, [Check("GPUs (node)", Verdict.GOOD, "1 x Tesla T4, 1 x NVIDIA H200", gpus=("Tesla T4", "NVIDIA H200"))]
    )
    assert find_facts(place).chip is None


def test_a_site_without_a_known_chip_asks_for_it(nsw, home, ncu):
    (home / "gpu.yaml").write_text(SITES.replace(", chip: gh100", "").replace("scheduler: local", "scheduler: slurm"))
    said = nsw("metrics", "ls", "occupancy", "--site", "gpu", "--sites", "gpu.yaml", exits=2)
    assert "name it with --chip, or at the site: gpus.chip" in said.err
