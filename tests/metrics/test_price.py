"""What a request costs in replays: measured where it was, else an estimate that is called one."""

import pytest

from nsw.metrics import find_chip
from nsw.metrics.catalogue import groups
from nsw.metrics.data_files import rows
from nsw.metrics.price import replay_passes

GH100, GA100, GP100 = (find_chip(name) for name in ("gh100", "ga100", "gp100"))


def test_what_was_measured_on_the_chip_goes_before_estimates():
    assert replay_passes(["set:full"], "ncu", GH100).passes == 38
    assert replay_passes(["set:full"], "ncu", GH100).measured
    assert not replay_passes(["set:full"], "ncu", GA100).measured
    assert not replay_passes(["set:full", "ipc"], "ncu", GH100).measured


def test_parts_add_up_to_a_bound():
    price = replay_passes(["set:basic", "section:SpeedOfLight", "section:MyOwn", "ipc"], "ncu", GH100)
    assert price.passes == sum(price.parts.values())
    assert price.parts.keys() == {"set:basic", "section:SpeedOfLight", "section:MyOwn", "metrics"}


@pytest.mark.parametrize("chip", [GH100, GA100, None])
def test_more_metrics_never_cost_less_and_one_costs_a_pass(chip):
    assert replay_passes(["ipc"], "ncu", chip).passes == 1
    assert replay_passes(["registers_per_thread"], "ncu", chip).passes == 1
    whole = replay_passes(["set:full"], "ncu", chip).passes
    for group in groups().values():
        some = replay_passes(group.metrics[:3], "ncu", chip).passes
        assert 1 <= some <= replay_passes([group.name], "ncu", chip).passes <= whole


def test_nvprof_replays_for_each_metric():
    one, two = (replay_passes(["ipc", "gld_efficiency"][:n], "nvprof", GP100).passes for n in (1, 2))
    assert 1 <= one < two


def test_every_row_says_how_it_is_known():
    for row in rows("passes.csv"):
        assert row["known"].split(":")[0] in {"measured", "estimated", "known without a pass"}, row
