"""A real Slurm that all tests of a session share, and a fake one; what drives them stands in places.py."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from .places import Behind, Fake, Real, behind_far, missing, shared_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    for item in items:
        if why and item.get_closest_marker("slurm"):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def accounted() -> Iterator[Real]:
    """A real Slurm with accounting."""
    with shared_cluster("accounted", accounting=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def unaccounted() -> Iterator[Real]:
    """A real Slurm without accounting."""
    with shared_cluster("bare", accounting=False) as cluster:
        yield cluster


@pytest.fixture
def far(unaccounted: Real) -> Iterator[Behind]:
    """A real Slurm behind the transport `far`."""
    if os.geteuid() != 0:
        pytest.skip("not root, who alone may become another user")
    with behind_far(unaccounted) as place:
        yield place


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Fake commands, first on PATH."""
    return Fake(tmp_path, monkeypatch)


@pytest.fixture(
    params=[
        "fake",
        pytest.param("accounted", marks=pytest.mark.slurm),
        pytest.param("unaccounted", marks=pytest.mark.slurm),
        pytest.param("far", marks=[pytest.mark.slurm, pytest.mark.soak]),
    ]
)
def place(request: pytest.FixtureRequest) -> Iterator[Fake | Real | Behind]:
    """Each of them in turn, with a folder of its own in `work`."""
    found = request.getfixturevalue(request.param)
    if isinstance(found, (Fake, Behind)):
        yield found
        return
    with found.in_folder() as folder:
        yield folder
        shutil.rmtree(folder.work, ignore_errors=True)
