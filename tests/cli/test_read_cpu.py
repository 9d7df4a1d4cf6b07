"""The first screen of `nsw read` of what CPU profilers leave: what costs most, and nothing that was not measured."""

import subprocess
import sys
from pathlib import Path

import pytest

CPU = Path(__file__).parents[1] / "fixtures" / "cpu"


def read(path, *words):
    done = subprocess.run(
        [sys.executable, "-m", "nsw", "read", str(path), *words], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("host.perf.txt", "step takes 81 % of self time"),
        ("perf-script.txt", "step takes 81 % of self time"),
        ("host.gprof.txt", "step takes 79 % of self time"),
        ("host.rate100.pyspy.txt", "square takes 98 % of self time"),
        ("pyspy-native.txt", "square takes 98 % of the samples"),
        ("profile.1.0.0", "step takes 83 % of self time"),
        ("pprof.txt", "rank 0 works 97 % longer"),
        ("perfstat.txt", "0.85 CPU cores at work on average"),
    ],
)
def test_the_headline_says_what_costs_most(name, headline):
    assert read(CPU / name).startswith(f"{name}: {headline}")


def test_what_is_not_known_has_no_column():
    assert read(CPU / "pyspy-native.txt").splitlines()[2].split() == ["function", "share"]
    assert read(CPU / "host.perf.txt").splitlines()[2].split() == ["function", "time", "(ms)", "share"]


def test_cycles_are_shares_and_cycles(tmp_path):
    path = tmp_path / "cycles.txt"
    path.write_text((CPU / "host.perf.txt").read_text().replace("cpu-clock:ppp", "cycles:P"))
    assert read(path).startswith("cycles.txt: step takes 81 % of the samples")
    assert "474747470" in read(path, "--full").replace(",", "")


def test_counts_of_a_run_are_its_table():
    printed = read(CPU / "host.perfstat.json")
    assert "page_faults" in printed
    assert "cycles" not in printed.partition("figure")[2].partition("warning")[0]
