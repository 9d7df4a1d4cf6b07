"""The campaign that bench/startup.py makes is one that nsw takes: else it would measure how fast a command fails."""

import importlib.util
from pathlib import Path

import pytest

from nsw.cli.main import run
from nsw.errors import Exit

FILE = Path(__file__).parents[2] / "bench" / "startup.py"


@pytest.fixture
def bench():
    spec = importlib.util.spec_from_file_location("bench_startup", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_status_knows_the_campaign_of_the_benchmark(bench, tmp_path, monkeypatch, capsys):
    small = bench.RECIPE.replace("[1, 100]", "[1, 3]").replace("[1, 50]", "[1, 2]")
    assert bench.make_campaign(tmp_path, small) == 12
    monkeypatch.chdir(tmp_path)
    assert run(["status"]) == Exit.GOOD
    printed = capsys.readouterr().out
    assert "12 runs: 12 planned" in printed
    assert "on site local" in printed
