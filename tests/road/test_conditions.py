"""Whole campaigns on a GPU that the fake nvidia-smi shows: energy is a figure, and unlike clocks are not compared."""

import json
import os
import shlex
import sys

import pytest

from tests.scripts.test_conditions import FAKE, GPUS

# the fake's clock goes 20 times as fast: these are some 14 s of samples
RECIPE = """
nsw: 1
name: t
app:
  command: bash -c 'until [ $(cat .conditions/* | grep -c ^2) -gt 72 ]; do sleep 0.1; done; echo speed=100'
  figures: {speed: {regex: 'speed=(\\d+)', unit: images/s}}
resources: {gpus: 1, time: 5m}
"""


@pytest.fixture
def on_gpu(road, monkeypatch):
    """A machine with an H100."""
    command = road.home / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
    command.chmod(0o755)
    (road.home / "gpus").write_text(GPUS[0])
    road.environment |= {
        "PATH": f"{command.parent}:{os.environ['PATH']}", "NSW_FAKE_SMI": str(road.home / "gpus"),
        "NSW_FAKE_SMI_TIMES": "20",
    }  # fmt: skip
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return road


def test_energy_is_a_figure_and_a_gate_over_unlike_clocks_is_undecided(on_gpu):
    campaigns = []
    for clock in ("", "1980"):
        on_gpu.environment["NSW_FAKE_SMI_CLOCK"] = clock
        done = on_gpu.run(RECIPE, site="local")
        assert done.returncode == 0, done.stderr
        campaigns.append(max(on_gpu.root.iterdir(), key=lambda folder: folder.stat().st_ctime_ns).name)
    case = json.loads(on_gpu.nsw("summarize", campaigns[0], "--json").stdout)["cases"][0]
    figures = {figure["name"]: figure for figure in case["figures"]}
    assert [*figures] == ["speed", "energy", "energy_per_image"]
    assert figures["energy_per_image"]["median"] == pytest.approx(7, rel=0.05)  # 700 W, 100 images/s
    assert figures["energy_per_image"]["unit"] == "J/image"
    assert "1,365" in on_gpu.nsw("summarize", campaigns[0], "--full").stdout
    gate = on_gpu.nsw("gate", *campaigns, "--rule", "speed: -2%", "--rule", "energy_per_image: +5%", exits=5)
    assert gate.stdout.count("not comparable: clocks 1,365 against 1,980 MHz") == 2


def test_nothing_is_sampled_where_the_recipe_turns_it_off(on_gpu):
    done = on_gpu.run("nsw: 1\nname: t\nconditions: off\napp: {command: 'true'}\nresources: {time: 1m}", site="local")
    assert done.returncode == 0, done.stderr
    (campaign,) = on_gpu.root.iterdir()
    assert not list(campaign.rglob("conditions*"))
