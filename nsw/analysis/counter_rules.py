"""Rules over counters of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.hits import Context, Hit

RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {}
