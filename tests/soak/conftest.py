"""Long tests: run only when asked for, as `make soak` does."""

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


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    why = None if config.option.markexpr == "soak" else "takes many minutes: make soak"
    for item in items:
        if HERE in item.path.parents and (reason := why or missing()):
            item.add_marker(pytest.mark.skip(reason=reason))
