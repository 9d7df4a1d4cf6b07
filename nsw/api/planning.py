"""A plan from Python: `nsw.dry_run("recipe.yaml").runs` is a pandas frame; nothing is submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.api.driving import site_or_default
from nsw.api.frames import frame_of
from nsw.api.recipe_options import Cases, Files, Names, Settings, files, overrides

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from nsw.campaign.events import Message
    from nsw.campaign.planning import Planned as Made


class Planned:
    """What a recipe would run on a site.

    Attributes:
        name: The recipe's.
        site: The site's.
        warnings: What a person should know.
        gpu_hours: At most, as the scheduler is asked for them.
        node_hours: At most, likewise.
    """

    def __init__(self, made: Made, warnings: list[str]) -> None:
        self._made = made
        self.name: str = made.plan.name
        self.site: str = made.plan.site
        self.warnings = warnings
        self.gpu_hours: float = made.plan.gpu_hours
        self.node_hours: float = made.plan.node_hours

    def __repr__(self) -> str:
        from nsw.wording import plural

        return f"<nsw plan of {self.name} on site {self.site}: {plural(len(self._made.plan.runs), 'run')}>"

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run: id, its parameters, pass, tool, repeat, job, what it asks for, command."""
        from nsw.present.plan_view import RUN_COLUMNS, run_rows

        params = {run.id: run.params for run in self._made.plan.runs}
        return frame_of([{**params[row["id"]], **row} for row in run_rows(self._made.plan)], RUN_COLUMNS)

    @property
    def absent(self) -> pd.DataFrame:
        """One row for what this site cannot do: what, reason, how many runs."""
        rows = [{"what": a.what, "reason": a.reason, "runs": len(a.run_ids)} for a in self._made.plan.absent]
        return frame_of(rows, ("what", "reason", "runs"))

    @property
    def scripts(self) -> dict[str, str]:
        """The script of each job, as `nsw render` prints it."""
        render, scratch = self._made.renderer(), self._made.scratch_to_show()
        return {job.name: render(job, "CAMPAIGN", scratch) for job in self._made.plan.jobs}


def dry_run(
    recipe: str | Path,
    site: str | None = None,
    *,
    sites: Files | None = None,
    set: Settings | None = None,  # noqa: A002  the name of the option
    case: Cases | None = None,
    exclude: Cases | None = None,
    passes: Names | None = None,
    fit: bool = False,
) -> Planned:
    """Plan as `nsw.run` does, with the same arguments, and stop there; no scheduler is asked.

    Raises:
        InputError: The recipe or a sites file has faults.
        UsageError: There is no such recipe, site, case or pass.
    """
    from nsw.campaign.planning import make_plan

    said: list[Message] = []
    chosen = overrides(set, case, exclude, passes, fit=fit)
    made = make_plan(str(recipe), site_or_default(site), files(sites), chosen, said.append)
    found = (*made.recipe.warnings, *made.unset_secrets())
    return Planned(made, [*(message.text for message in said), *(one.render() for one in found)])
