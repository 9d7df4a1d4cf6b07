"""A guard against what never ends, such as a step for each pair of a million characters."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsw.apart import limited_block

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNAWAY_S = 60  # of processor time; no measure of speed: what ends takes a second or two


@contextmanager
def ends() -> Iterator[None]:
    """What happens inside fails with a LimitError where it would not end."""
    with limited_block("a test", seconds=RUNAWAY_S):
        yield
