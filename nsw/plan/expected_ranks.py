"""Which ranks of a run have a profiler of their own, and so leave a report each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.plan.counters_request import ranks as counted_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.recipe.model import Recipe

__all__ = ["expected_ranks"]


def expected_ranks(recipe: Recipe, pass_name: str, local_ranks: Mapping[int, int]) -> frozenset[int] | None:
    """The ranks that a pass profiles where each process has its own profiler; None: they were not counted.

    Args:
        recipe: The recipe.
        pass_name: The pass.
        local_ranks: The ranks of the run as they landed, each with its place on its node; empty: not known.
    """
    one = next((one for one in recipe.passes if one.name == pass_name), None)
    if one is None or one.kind == "baseline":
        return None
    ranks = counted_ranks(one, each=True) if one.kind == "counters" else one.ranks
    if ranks == "first":
        return frozenset({0})
    if not isinstance(ranks, str):
        return frozenset(ranks or ())
    wanted = (rank for rank, local in local_ranks.items() if ranks == "all" or local == 0)
    return frozenset(wanted) or None
