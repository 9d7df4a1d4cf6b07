"""A real Slurm behind a real sshd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.slurm.conftest import accounted, unaccounted

from .distant import missing

if TYPE_CHECKING:
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
