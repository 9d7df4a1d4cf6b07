"""Compare what a counters pass measured with what it was asked for: metrics, and launches that a timeline chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.reading import load_rows
from nsw.readers.model import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow
    from nsw.campaign.reading import Rows
    from nsw.recipe.counters import CountersPass
    from nsw.recipe.model import Recipe


def checker(
    folder: CampaignFolder, ledger: Ledger, recipe: Recipe
) -> Callable[[RunRow, Rows], tuple[list[Problem], Rows]]:
    """The function that checks a run of the campaign; runs of other passes have nothing to check."""
    chip = (ledger.site().get("gpus") or {}).get("chip")
    passes = {one.name: one for one in recipe.passes if one.kind == "counters"}

    def check(run: RunRow, rows: Rows) -> tuple[list[Problem], Rows]:
        one = passes.get(run.pass_name)
        if one is None:
            return [], {}
        told = _metrics(one, run, chip, rows)
        more: Rows = {}
        if one.is_guided:
            from nsw.analysis import guided

            chosen = [row for row in load_rows(folder, guided.TABLE) if row["run"] == run.id]
            if chosen:
                more[guided.TABLE] = guided.matched(chosen, rows.get("launches", []))
                told += guided.moved_sentences(more[guided.TABLE])
        return [Problem("warning", text, fix=fix) for text, fix in told], more

    return check


def _metrics(one: CountersPass, run: RunRow, chip: str | None, rows: Rows) -> list[tuple[str, str]]:
    from nsw.analysis.unmeasured import sentences, unmeasured

    tool = run.tool or "ncu"
    found = unmeasured(one.metrics, tool, chip, one.replay, rows.get("metrics", []), rows.get("launches", []))
    return sentences(found)
