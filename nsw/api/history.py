"""A figure over all campaigns of a recipe, from Python: `nsw.history("images_per_sec").steps`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.api.results import frame_of, name_tuple
from nsw.campaign.history import History, Request
from nsw.campaign.history import history as read_history
from nsw.present.emit import columns_of
from nsw.present.history_view import COLUMNS, case_rows, night_rows, step_row
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

__all__ = ["FigureHistory", "history"]


class FigureHistory:
    """What `nsw history` shows."""

    def __init__(self, result: History) -> None:
        self._history = result
        self.recipe, self.figure = result.recipe, result.figure

    def __repr__(self) -> str:
        return f"<nsw history: {self.figure} of {self.recipe}, {plural(len(self._history.campaigns), 'campaign')}>"

    @cached_property
    def cases(self) -> pd.DataFrame:
        """A row a case: last value, noise, last step."""
        rows = case_rows(self._history)
        return frame_of(rows, columns_of(rows))

    @cached_property
    def nights(self) -> pd.DataFrame:
        """A row a case and campaign: median, range and number of runs."""
        return frame_of(night_rows(self._history), COLUMNS)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row a step, with what changed with it."""
        rows = [step_row(self._history, series, step) for series in self._history.series for step in series.steps]
        return frame_of(rows, columns_of(rows))


def history(
    figure: str | None = None,
    *,
    recipe: str | None = None,
    since: float | None = None,
    cases: str | Sequence[str] = (),
    site: str | None = None,
    root: str | Path | None = None,
) -> FigureHistory:
    """A figure over all campaigns of a recipe, and when it stepped.

    Args:
        figure: The figure; None: that of the recipe's report.
        recipe: The recipe's name; None: that of the newest campaign.
        since: Only campaigns that began at most so many seconds ago.
        cases: Only cases with these parameters or names.
        site: Only campaigns on this site.
        root: Only campaigns in this folder; None: in all folders that nsw knows.

    Raises:
        CampaignError: There is no such campaign.
        UsageError: No campaign has the figure or the case.
    """
    folder = Path(root) if root is not None else None
    return FigureHistory(read_history(Request(figure, recipe, since, name_tuple(cases), site, folder)))
