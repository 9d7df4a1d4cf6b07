"""Which tool measures which chip."""

import pytest

from nsw.metrics import find_chip
from nsw.metrics.catalogue import chips_by_name
from nsw.metrics.requests import counters_tools, default_counters_tool, unsupported_reason


@pytest.mark.parametrize(
    ("chip", "tools"),
    [
        ("gp100", ("nvprof",)),
        ("gp102", ("nvprof", "ncu")),
        ("gv100", ("ncu", "nvprof")),
        ("tu104", ("ncu",)),
        ("gh100", ("ncu",)),
        ("gb202", ("ncu",)),
        ("gr100", ("ncu",)),
    ],
)
def test_auto_takes_ncu_from_volta_on(chip, tools):
    assert counters_tools(find_chip(chip)) == tools
    assert default_counters_tool(find_chip(chip)) == tools[0]


@pytest.mark.parametrize(
    ("tool", "version", "chip", "why"),
    [
        ("ncu", "2024.2.0.0", "gh100", None),
        ("ncu", None, "gh100", None),
        ("ncu", "2024.2.0.0", "gb100", "ncu 2024.2.0.0 is older than gb100: ncu 2025.1 is the first that measures it"),
        ("ncu", "2025.3.1.0", "gv100", "ncu 2025.3.1.0 no longer measures gv100: ncu 2025.2 is the last that does"),
        ("ncu", "2025.2.1.0", "gv100", None),
        ("ncu", "2026.1", "gr100", None),
        ("ncu", "2024.2", "gp100", "ncu does not measure counters on gp100 (compute capability 6.0): nvprof does"),
        ("nvprof", "12.4.127", "gp100", None),
        ("nvprof", "12.4.127", "ga100", "nvprof does not measure counters on ga100 (compute capability 8.0): ncu does"),
    ],
)
def test_a_version_that_cannot_measure_a_chip_says_which_can(tool, version, chip, why):
    assert unsupported_reason(tool, find_chip(chip), version) == why


def test_every_chip_has_a_tool():
    for chip in chips_by_name().values():
        assert unsupported_reason(default_counters_tool(chip), chip) is None, chip.name
