"""Two sides beside each other from Python: `nsw.compare("before", "after").rows` is a pandas frame."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.analysis.certainty import EQUIVALENCE
from nsw.api.campaigns import Campaign
from nsw.api.frames import frame_of
from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from nsw.analysis.compared_screen import Comparison
    from nsw.analysis.sides import By

__all__ = ["Compared", "compare"]


class Compared:
    """What `nsw compare` shows."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __repr__(self) -> str:
        return f"<nsw comparison: {self.headline}>"

    def _repr_html_(self) -> str:
        """In a notebook: the headline, the table, the findings and the plots."""
        from nsw.present.notebook import html_of

        return html_of(self._blocks)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        from nsw.analysis.first_screen import headline_of

        return headline_of(self._blocks)

    @property
    def findings(self) -> list[str]:
        """What did it, and what would decide what cannot be told, a sentence or two each."""
        from nsw.analysis.blocks import Finding

        return [block.text for block in self._blocks if isinstance(block, Finding)]

    @property
    def differs(self) -> list[str]:
        """What else differs between both sides: driver, node, program ..."""
        return list(self._comparison.differs)

    @property
    def rows(self) -> pd.DataFrame:
        """A row a quantity of a case: values, verdict, by how much with its interval, and how certain that is."""
        from nsw.present.compare_view import COLUMNS, rows_of

        return frame_of(rows_of(self._comparison), COLUMNS)

    @cached_property
    def _blocks(self) -> list[Any]:
        from nsw.analysis.compared_screen import blocks_of_comparison

        return blocks_of_comparison(self._comparison)


def compare(
    first: Campaign | str | Path,
    second: Campaign | str | Path | None = None,
    *,
    by: By = "case",
    same: float = EQUIVALENCE,
    root: str | Path | None = None,
) -> Compared:
    """Compare two campaigns, cases or reports.

    Args:
        first: What is compared with: a campaign, its folder, id or baseline, `"CAMPAIGN:CASE"`, or a report. Alone:
            a campaign of `run(..., against=...)`, which holds both sides.
        second: What is compared.
        by: What is compared: case, figure, kernel, class, range or metric.
        same: Differences below count as none, 0.01 being 1 %.
        root: The folder of campaigns.

    Raises:
        UsageError: Both have nothing in common, ran on unlike chips, or cannot be compared so.
        CampaignError: There is no such campaign or report.
    """
    from nsw.analysis.sides import BY
    from nsw.campaign.compare import compare as compared
    from nsw.campaign.compare import sides_of

    if by not in BY:
        raise UsageError(f"by={by!r}: there is no such", hint=did_you_mean(by, BY) or f"one of {', '.join(BY)}")
    side_names = [
        str(side.folder if isinstance(side, Campaign) else side) for side in (first, second) if side is not None
    ]
    sides = sides_of(side_names, Path(root) if root is not None else None, by)
    return Compared(compared(*sides, by, same))
