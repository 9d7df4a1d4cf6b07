"""What the windows of a plan's timelines save, by the reports of earlier campaigns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.start import earlier_campaigns
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import load_rows
from nsw.errors import NswError
from nsw.quantities import percent, size
from nsw.recipe.passes import TimelinePass
from nsw.recipe.units import format_duration, show_value

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.engine.folder import CampaignFolder
    from nsw.plan.model import Plan
    from nsw.recipe.model import Recipe

_UNKNOWN: Final = (
    "{}: what its window saves is not known: no earlier campaign of this recipe has a timeline of the whole program"
)


def with_window_notes(plan: Plan, recipe: Recipe, root: Path) -> Plan:
    """The plan with a note for each timeline that records a part of the program: what that saves.

    Args:
        plan: The plan.
        recipe: Its recipe.
        root: The folder of campaigns.
    """
    names = {run.pass_name for run in plan.runs}
    timelines = [each for each in recipe.passes if isinstance(each, TimelinePass) and each.name in names]
    notes = [_report_size_note(plan, each, root) for each in timelines if each.is_windowed]
    return replace(plan, notes=(*plan.notes, *notes))


def _report_size_note(plan: Plan, timeline: TimelinePass, root: Path) -> str:
    """A sentence on the size of a report with the window and without."""
    name, whole, alike = timeline.name, None, None
    for folder, rows in earlier_campaigns(root, plan):
        if whole is not None and alike is not None:
            break
        try:
            before = next(each for each in locked_recipe(folder).passes if each.name == name)
            runs = [row.id for row in rows if getattr(row, "pass_name", None) == name]
            # bytes of the reports that a run's timeline left
            largest = max(
                (sum(file.stat().st_size for file in (folder.reports / run).glob("timeline*")), run) for run in runs
            )
        except (NswError, OSError, StopIteration, ValueError):
            continue
        if isinstance(before, TimelinePass) and largest[0]:
            if not before.is_windowed:
                whole = whole or (folder, *largest)
            elif _window_key(before) == _window_key(timeline):
                alike = alike or (folder, *largest)
    if whole is None:
        return _UNKNOWN.format(name) if alike is None else f"{name}: its window left {size(alike[1])} in {alike[0].id}"
    folder, taken, run = whole
    head = f"{name}: the reports of the whole program took {size(taken)} in {folder.id}"
    if alike is not None:
        return f"{head}, its window {size(alike[1])} in {alike[0].id}: {percent(100 * (1 - alike[1] / taken))} less"
    share = _window_share(folder, run, timeline)
    if share is None:
        return f"{head}; how much of it is in the window is not known"
    return f"{head}; its window is {share[0]}, about {percent(100 * share[1])} of it"


def _window_key(timeline: TimelinePass) -> tuple[Any, ...]:
    return timeline.within, timeline.after, timeline.duration


def _window_share(folder: CampaignFolder, run: str, timeline: TimelinePass) -> tuple[str, float] | None:
    """How much of a timeline of the whole program is in a window, in words and as a fraction; None: not known."""
    try:
        if timeline.within is not None:
            rows = [row for row in load_rows(folder, "nvtx_summary") if row["run"] == run]
            calls = [row["calls"] for row in rows if row["name"] == timeline.within.nvtx and row["calls"]]
            if not calls:
                return None
            count = min(timeline.within.count, max(calls))
            return f"{count} of {max(calls):,} ranges {show_value(timeline.within.nvtx)}", count / max(calls)
        rows = [row for row in load_rows(folder, "facts") if row["run"] == run and row["key"] == "duration_ns"]
    except NswError:
        return None
    whole_s = max((row["value"] / 1e9 for row in rows if row["value"]), default=None)
    if whole_s is None:
        return None
    left_s = max(0.0, whole_s - (timeline.after or 0))
    window_s = left_s if timeline.duration is None else min(left_s, float(timeline.duration))
    return f"{format_duration(round(window_s))} of {format_duration(round(whole_s))}", window_s / whole_s
