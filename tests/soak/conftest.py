"""Long tests of a real Slurm; all that is marked `soak` runs only when asked for, as `make soak` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.slurm.conftest import accounted, unaccounted
from tests.slurm.places import missing

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["accounted", "unaccounted"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    why = missing()
    for item in items:
        if why and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=why))
