"""A fake PBS for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .double import Double
from .places import Pbs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def pbs(tmp_path: Path) -> Iterator[Pbs]:
    """In a folder of its own; what the real one takes seconds for, it does quickly."""
    with Double(tmp_path / "pbs", kill_delay=0.3, mom_poll=0.2, retry_delivery=0.3) as double:
        (tmp_path / "w").mkdir()
        yield Pbs(tmp_path / "w", double)
