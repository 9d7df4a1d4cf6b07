"""What a recipe adds to a campaign, for people and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.wording import and_more, plural

if TYPE_CHECKING:
    from rich.console import Console

    from nsw.campaign.extend import Changes

_SHOWN = 5  # names of runs


def show_changes(out: Console, campaign: str, found: Changes) -> None:
    """Which runs are added and which are done again, and why."""
    out.print(f"into {campaign}", style="bold")
    if found.added:
        out.print(f"adds {plural(len(found.added), 'run')}: {and_more(found.added, _SHOWN)}")
    reasons: dict[str, list[str]] = {}
    for run, why in found.again.items():
        reasons.setdefault(why, []).append(run)
    for why, runs in reasons.items():
        out.print(f"does {plural(len(runs), 'run')} again, since {why}: {and_more(runs, _SHOWN)}")
    if found.same:
        out.print(f"leaves {plural(found.same, 'run')} as they are" if found.same > 1 else "leaves 1 run as it is")
    if found.absent:
        those = "is not in the recipe, and stays" if found.absent == 1 else "are not in the recipe, and stay"
        out.print(f"{plural(found.absent, 'run')} of the campaign {those}")


def changes_data(campaign: str, found: Changes) -> dict[str, Any]:
    """The same as JSON data."""
    return {
        "campaign": campaign, "added": list(found.added), "again": dict(found.again), "same": found.same,
        "not_in_recipe": found.absent,
    }  # fmt: skip
