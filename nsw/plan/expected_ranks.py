"""Which ranks of a run have a profiler of their own, and so leave a report each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.errors import NswError
from nsw.plan.counters_request import ranks as counted_ranks
from nsw.plan.launchers import ranks_of
from nsw.plan.resolve import Resolver
from nsw.recipe.faults import Fault
from nsw.recipe.fields import whole
from nsw.recipe.numbers_as_written import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.recipe.model import Recipe


def expected_ranks(recipe: Recipe, pass_name: str, case: str, params: Mapping[str, Any]) -> frozenset[int] | None:
    """The ranks that a pass profiles where each process has its own profiler; None: the recipe does not count them."""
    one = next((one for one in recipe.passes if one.name == pass_name), None)
    if one is None or one.kind == "baseline":
        return None
    ranks = counted_ranks(one, each=True) if one.kind == "counters" else one.ranks
    if ranks == "first":
        return frozenset({0})
    if not isinstance(ranks, str):
        return frozenset(ranks or ())
    launcher, resolver, values = recipe.app.launcher, Resolver(), {**params, "case": case}
    try:
        given = resolver.value(launcher.processes, values)
        options = tuple(as_text(resolver.value(option, values)) for option in launcher.options)
        total = ranks_of(launcher.kind, None if given is None else whole(given, 1), options)
    except (Fault, NswError):  # such as a name that only the site knows
        return None
    return None if total is None else frozenset(range(total))
