"""A fake Cobalt for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .places import Cobalt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cobalt(tmp_path: Path) -> Cobalt:
    """In a folder of its own; what the real one takes seconds for, it does quickly."""
    (tmp_path / "w").mkdir()
    (tmp_path / "cobalt").mkdir()
    found = Cobalt(tmp_path / "w", tmp_path / "cobalt")
    found.settings(kill_s=0.3)
    return found
