"""`nsw history`: a figure over all campaigns of a recipe, and when it stepped."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from nsw.campaign.history import Request
from nsw.campaign.history import history as read_history
from nsw.cli.application import command
from nsw.cli.options import PageTarget, argument, option, time_option
from nsw.errors import Exit
from nsw.present.history_view import COLUMNS, history_data, history_page, night_rows, show_history


@command("nsw history images_per_sec --since 60d --case gpus=4")
def history(
    figure: Annotated[
        str | None, argument(metavar="FIGURE", help="The figure; that of the recipe's report if not given.")
    ] = None,
    recipe: Annotated[
        str | None,
        option("--recipe", metavar="NAME", help="The recipe's name; that of the newest campaign if not given."),
    ] = None,
    since: Annotated[
        str | None,
        option("--since", metavar="TIME", help="Only campaigns that began so long ago at most, such as 30d."),
    ] = None,
    cases: Annotated[list[str] | None, option("--case", help="Only cases with these parameters or names.")] = None,
    site: Annotated[str | None, option("--site", "-s", help="Only campaigns on this site.")] = None,
    root: Annotated[
        Path | None, option("--root", help="Only the campaigns in this folder; all that nsw knows if not given.")
    ] = None,
    *,
    target: PageTarget,
) -> int:
    """Show a figure over all campaigns of a recipe: since when is it slower, and what changed then."""
    result = read_history(Request(figure, recipe, time_option("--since", since), tuple(cases or ()), site, root))
    data = partial(history_data, result)

    def show() -> None:
        if target.format == "html":
            sys.stdout.write(history_page(result))
        else:
            show_history(result)

    target.put_data(night_rows(result), COLUMNS, data=data, show=show)
    return Exit.GOOD
