"""What a site allows beside what its description says, and whether its profilers measure its GPUs."""

import re

import pytest

from nsw.schedulers.adapter import Queue
from nsw.site_check.check import Check, Verdict, account_check, chip_check, host_key_check, limits_check
from nsw.transport.model import HostKeyCheck

DAY = 86400.0
QUEUES = [Queue("cpu", 0, walltime=2 * DAY, is_default=True), Queue("gpu", 4, "h100", DAY)]
GPU = {"partition": "gpu"}


@pytest.mark.parametrize(
    ("site", "verdict", "found"),
    [
        (GPU, Verdict.GOOD, "gpu: jobs of at most 24 h 0 min, 4 GPUs a node, arrays of at most 1000"),
        ({}, Verdict.GOOD, "cpu: jobs of at most 48 h 0 min, arrays of at most 1000"),
        (GPU | {"limits": {"max_walltime": "2d"}}, Verdict.WARNING, "48 h 0 min, and gpu takes jobs of 24 h 0 min"),
        (GPU | {"gpus": {"per_node": 8}}, Verdict.WARNING, "gpus.per_node is 8, and nodes of gpu have 4"),
        ({"gpus": {"per_node": 4}}, Verdict.WARNING, "nodes of cpu have none"),
        (GPU | {"limits": {"max_array": 5000}}, Verdict.GOOD, "an array may have 1000 tasks: nsw makes none longer"),
        ({"queue": "other"}, Verdict.SKIPPED, "other is not among the queues listed: cpu, gpu"),
    ],
)
def test_what_a_queue_allows_is_compared_with_what_the_site_says(site, verdict, found):
    check = limits_check(site, QUEUES, 1000)
    assert check.verdict is verdict
    assert found in check.found
    assert check.fix or verdict is Verdict.GOOD


def test_an_account_that_is_not_ones_own_is_warned_of():
    assert account_check({"account": "a"}, ["a", "b"]) == Check("account", Verdict.GOOD, "a")
    wrong = account_check({"account": "c"}, ["a", "b"])
    assert (wrong.verdict, wrong.found) == (Verdict.WARNING, "c is not among yours: a, b")
    assert account_check({}, ["a", "b"]).found == "the default one; yours: a, b"
    assert account_check({"account": "a"}, []).verdict is Verdict.SKIPPED


def good(**found):
    return [
        Check(name.replace("_node", " (node)"), Verdict.GOOD, text, gpus=gpus(text)) for name, text in found.items()
    ]


def gpus(text):
    """The GPUs that a check names: `2 x Tesla T4`."""
    return tuple(name for count, name in re.findall(r"(\d) x ([^,]+)", text) for _ in range(int(count)))


@pytest.mark.parametrize(
    ("named", "checks", "verdict", "found"),
    [
        (None, [], Verdict.SKIPPED, "no GPU was seen"),
        ("gh100", good(ncu="Version 2025.3.1.0 (build 3)"), Verdict.GOOD, "gh100: ncu 2025.3.1.0 measures it"),
        (None, good(GPUs="4 x NVIDIA H100 80GB HBM3", ncu="Version 2022.3.0.0"), Verdict.GOOD, "gh100: ncu 2022.3"),
        ("gh100", good(ncu="Version 2021.1.0.0"), Verdict.WARNING, "ncu 2022.3 is the first that measures it"),
        ("gh100", good(ncu="Version 2021.1.0.0", ncu_node="Version 2025.1.0.0"), Verdict.GOOD, "ncu 2025.1"),
        ("gh100", good(nvprof="Release version 12.4.127 (21)"), Verdict.SKIPPED, "counters need ncu"),
        ("gp100", good(nvprof="Release version 11.8.87 (21)"), Verdict.GOOD, "gp100: nvprof 11.8.87 measures it"),
        ("gp100", good(nvprof="Release version 13.0.1 (21)"), Verdict.WARNING, "no longer measures"),
        ("gh100", good(GPUs="4 x NVIDIA A100-SXM4-40GB"), Verdict.WARNING, "the site says gh100, and its node has"),
        (None, good(GPUs="2 x NVIDIA A100-SXM4-40GB, 2 x Tesla V100-SXM2-16GB"), Verdict.WARNING, "A100"),
        ("mi300", [], Verdict.SKIPPED, "mi300: no chip that nsw knows"),
    ],
)
def test_the_profilers_are_compared_with_the_gpus(named, checks, verdict, found):
    check = chip_check({"gpus": {"chip": named}} if named else {}, checks)
    assert (check.verdict, found in check.found) == (verdict, True), check
    assert check.fix or verdict is Verdict.GOOD


def test_a_host_whose_key_nobody_compares_is_warned_of():
    assert host_key_check(HostKeyCheck(verified=True, evidence="the one of known_hosts")).verdict is Verdict.GOOD
    warned = host_key_check(HostKeyCheck(verified=False, evidence="not verified"))
    assert warned.verdict is Verdict.WARNING
    assert "remove that line" in warned.fix
