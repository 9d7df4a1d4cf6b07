"""What a recipe may ask for that this version does not support, each with the line that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.recipe.profiler_names import LATER, kinds

if TYPE_CHECKING:
    from nsw.errors import Diagnostic
    from nsw.plan.facts import SiteFacts
    from nsw.recipe.load import LoadedRecipe


def not_yet(loaded: LoadedRecipe, facts: SiteFacts) -> list[Diagnostic]:
    """A diagnostic for each thing that this version cannot do. The demo replays whatever was recorded."""
    found: list[Diagnostic] = []
    known = kinds()
    if facts.replay is not None:
        return found
    for number, one in enumerate(loaded.recipe.passes):
        if one.kind == "baseline":
            continue
        tool = getattr(one, "tool", None) or "auto"
        if one.kind not in known or tool in LATER.get(one.kind, ()):
            what = f"pass {one.kind}" if one.kind not in known else f"tool {tool} for pass {one.kind}"
            have = ", ".join(f"{k} ({', '.join(t)})" for k, t in known.items())
            found.append(
                loaded.document.diagnostic(
                    ("passes", number, one.kind),
                    f"{what}: not yet",
                    key=True,
                    hint=f"this version does baseline, {have}",
                )
            )
    return found
