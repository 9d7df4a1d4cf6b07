"""A real Slurm and doubles of PBS and Cobalt behind a real sshd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.slurm import places
from tests.slurm.conftest import accounted, unaccounted
from tests.slurm.crash_table import machine

from . import figures
from .distant import missing
from .systems import RealSlurm, double

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.slurm.places import Real

    from .systems import System

__all__ = ["accounted", "unaccounted"]


@pytest.fixture
def slurm(request: pytest.FixtureRequest) -> System:
    """A real Slurm that other tests use at the same time."""
    if why := missing() or places.missing():
        pytest.skip(why)
    unaccounted: Real = request.getfixturevalue("unaccounted")
    return RealSlurm(unaccounted.conf)


@pytest.fixture
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    """The batch system that the test names: `slurm`, or a double of its own."""
    if why := missing():
        pytest.skip(why)
    if request.param == "slurm":
        yield request.getfixturevalue("slurm")
        return
    folder = tmp_path / "system"
    folder.mkdir()
    with double(request.param, folder) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Prints the figures when all is done, past pytest's capture."""
    yield
    if figures.ROWS:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print("\n\n" + "\n".join([machine("faults of a site behind sshd"), "", *figures.lines()]))
