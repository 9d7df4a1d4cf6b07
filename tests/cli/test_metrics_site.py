"""`nsw metrics --site`: the site's chip, and the names that its own ncu lists."""

from pathlib import Path

import pytest

from nsw.metrics.query import listed

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
    found = listed(RECORDED.read_text())
    assert {"dram__bytes", "sm__throughput", "FBSP.TriageCompute.dramc__throughput"} <= found
    assert not any(" " in name or name.startswith(("-", "Metric", "=")) for name in found)
    assert listed("==ERROR== Invalid chip gk110\n") == frozenset()


def test_a_site_is_checked_by_what_its_own_ncu_lists(nsw, home, ncu):
    said = nsw(
        "metrics", "check", "dram__bytes.sum", "ipc", "l1tex__t_bytes.sum", "--site", "gpu", "--sites", "gpu.yaml"
    )
    assert said.code == 2
    assert "gh100 has no metric l1tex__t_bytes" in said.out  # which the shipped list has
    assert "2 names of 3" in said.out
    assert "names that" in said.err
    again = nsw("metrics", "check", "inst_executed", "--site", "gpu", "--sites", "gpu.yaml")
    assert again.code == 0
    assert "(kept)" in again.err
    assert (home / "asked").read_text() == "--query-metrics --chip gh100\n"  # once


def test_a_portable_metric_that_the_ncu_cannot_compute_is_a_fault(nsw, ncu):
    said = nsw("metrics", "check", "l2_utilization", "--site", "gpu", "--sites", "gpu.yaml")
    assert said.code == 2
    assert "the site's ncu does not list lts__t" in said.out


def test_an_ncu_that_cannot_be_asked_leaves_the_shipped_lists(nsw, ncu):
    ncu.write_text("#!/bin/sh\necho '==ERROR== Invalid chip gh100' >&2\nexit 1\n")
    said = nsw("metrics", "check", "l1tex__t_bytes.sum", "--site", "gpu", "--sites", "gpu.yaml")
    assert said.code == 0
    assert "Invalid chip gh100): by the shipped lists" in said.err


def test_a_site_without_a_known_chip_asks_for_it(nsw, home, ncu):
    (home / "gpu.yaml").write_text(SITES.replace(", chip: gh100", "").replace("scheduler: local", "scheduler: slurm"))
    said = nsw("metrics", "ls", "occupancy", "--site", "gpu", "--sites", "gpu.yaml")
    assert said.code == 2
    assert "name it with --chip, or at the site: gpus.chip" in said.err
