"""Runs on a machine without a batch system do not disturb each other unless its site asks for it."""

import pytest

from nsw.site.load import load_site

THERE = "scheduler: local, transport: {kind: openssh, host: box}, scratch: /tmp/nsw"


@pytest.mark.parametrize(
    ("site", "most"),
    [
        ("scheduler: local", 1),
        ("scheduler: local, transport: local, limits: {max_array: 5}", 1),
        ("scheduler: local, limits: {max_in_flight: 4}", 4),
        (THERE, 1000),
        (f"{THERE}, limits: {{max_in_flight: 4}}", 4),
        ("scheduler: slurm", 20),
    ],
)
def test_on_this_machine_one_goes_after_the_other_unless_the_site_says_more(tmp_path, site, most):
    file = tmp_path / "sites.yaml"
    file.write_text(f"nsw: 1\nsites:\n  here: {{{site}}}\n")
    assert load_site("here", [file]).site.limits.max_in_flight == most


@pytest.mark.parametrize(("limits", "at_a_time"), [("", 1), (", limits: {cpu_runs: 4}", 4)])
def test_a_machine_over_there_keeps_runs_without_gpus_apart_unless_the_site_says_more(tmp_path, limits, at_a_time):
    file = tmp_path / "sites.yaml"
    file.write_text(f"nsw: 1\nsites:\n  here: {{{THERE}{limits}}}\n")
    assert load_site("here", [file]).site.limits.cpu_runs == at_a_time
