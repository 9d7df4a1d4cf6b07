"""A real Slurm behind a real sshd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.slurm.conftest import accounted, unaccounted
from tests.slurm.crash_table import machine

from . import figures
from .distant import missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.slurm.places import Real

__all__ = ["accounted", "unaccounted"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    for item in items:
        if why and "slurm_conf" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def slurm_conf(unaccounted: Real) -> Path:
    """A Slurm that other tests use at the same time."""
    return unaccounted.conf


@pytest.fixture(scope="session", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Prints the figures when all is done, past pytest's capture."""
    yield
    if figures.ROWS:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print("\n\n" + "\n".join([machine("faults of a site behind sshd"), "", *figures.lines()]))
