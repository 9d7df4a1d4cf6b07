"""Which runs a pass of a case has: its warm-ups, then its repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.recipe.counters import CountersPass

if TYPE_CHECKING:
    from nsw.errors import Diagnostic
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Recipe
    from nsw.recipe.passes import Pass
    from nsw.site.model import Site

WARM_UP = 0  # the repeat of every run that is thrown away from the statistics
MOST_RUNS: Final = 200_000


def repeats_of(recipe: Recipe, one: Pass, case: str) -> list[tuple[str, int]]:
    """The id and the repeat (from 1; WARM_UP) of each run of a pass, in order."""
    begin = f"{case}.{one.name}"
    warm = [(f"{begin}.w{n}", WARM_UP) for n in range(1, warm_ups(recipe, one) + 1)]
    return [*warm, *((f"{begin}.r{n}", n) for n in range(1, (one.repeats or recipe.repeats) + 1))]


def warm_ups(recipe: Recipe, one: Pass) -> int:
    """How many warm-up runs a pass has; counters, for which each kernel is replayed, have only their own."""
    if one.warmup is not None:
        return one.warmup
    return 0 if isinstance(one, CountersPass) else recipe.warmup


def too_many_runs(loaded: LoadedRecipe) -> Diagnostic | None:
    """The fault of a recipe that asks for more runs than are planned; found before any of them is made."""
    recipe = loaded.recipe
    a_case = sum((one.repeats or recipe.repeats) + warm_ups(recipe, one) for one in recipe.passes)
    if len(loaded.cases) * a_case <= MOST_RUNS:
        return None
    place = ("repeats",) if loaded.document.node(("repeats",)) is not None else ("passes",)
    message = f"cases, passes and repeats make more than {MOST_RUNS:,} runs"
    return loaded.document.diagnostic(place, message, hint="`--case` and `--pass` choose some; repeats: 3 is usual")


def apart(recipe: Recipe, site: Site, per_task: int | None) -> str | None:
    """A sentence where warm-ups may not warm what the repeats use; None where they do.

    Args:
        recipe: The recipe.
        site: The site.
        per_task: How many runs follow each other in one task; None: as many as fit.
    """
    most = max(warm_ups(recipe, one) for one in recipe.passes)
    here = site.scheduler == "local" and site.limits.max_in_flight == 1
    if not most or here or per_task is None or per_task > most:
        return None
    return (
        "warm-up runs and repeats are jobs of their own here: they may run on different nodes, or at the same time"
        " (`limits.runs_per_job` of the site puts several runs into one job)"
    )
