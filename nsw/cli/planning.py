"""`nsw plan` and `nsw render`: everything before something is submitted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.cli import notices, writing
from nsw.cli.notices import tell
from nsw.errors import Exit, InputError, UnreachableError
from nsw.present.untrusted_text import harmless, say
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.dry_run import Prospect
    from nsw.recipe.overrides import Overrides


def plan(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    format: str,
    output: Path | None,
    options: Overrides | None = None,
    root: Path | None = None,
) -> int:
    """Show the plan, and what the site's scheduler says of it where it can be asked.

    Raises:
        InputError: The scheduler would refuse a job.
    """
    from nsw.campaign import folder as folders
    from nsw.campaign.dry_run import ask
    from nsw.campaign.planning import make_plan
    from nsw.campaign.start import expected_cost
    from nsw.present import emit, plan_view
    from nsw.present.terminal import console

    planned = make_plan(recipe, site, sites, options, notices.show)
    made = planned.plan
    expected = expected_cost(folders.root(root), made)
    script, prospects, silent = planned.renderer(), list["Prospect"](), ""
    try:
        prospects = ask(planned, script)
    except UnreachableError as fault:
        silent = f"the scheduler of {made.site} could not be asked whether it would take this: {fault.render()}"
    warnings = [w.render() for w in (*planned.recipe.warnings, *planned.unset_secrets())]
    warnings += [silent] if silent else [f"{p.jobs[0]}: {p.untold}" for p in prospects if p.untold]
    starts = {name: p.start for p in prospects for name in p.jobs if p.start}
    if format in writing.OF_ROWS:
        writing.put_rows(format, plan_view.run_rows(made), plan_view.RUN_COLUMNS, output, made.note)
    else:
        with writing.printed(format, output):
            if format == "json":
                emit.as_json({**plan_view.plan_data(made, expected), "starts": starts, "warnings": warnings})
            else:
                plan_view.show_plan(console(), made, warnings, starts, expected)
    refused = [p.refused for p in prospects if p.refused]
    if refused:
        raise InputError(refused)
    return Exit.GOOD


def plan_into(
    campaign: str,
    root: Path | None,
    recipe: str,
    sites: Sequence[Path] | None,
    format: str,
    output: Path | None,
    options: Overrides | None = None,
) -> int:
    """Show what a recipe would add to a campaign, what it would do again, and why."""
    from nsw.campaign import folder as folders
    from nsw.campaign.extend import extension
    from nsw.campaign.start import expected_cost
    from nsw.present import emit, plan_view
    from nsw.present.terminal import console

    found = extension(folders.find(folders.root(root), campaign), recipe, sites, options, notices.show)
    made = found.planned.plan if found.planned else None
    expected = expected_cost(found.folder.path.parent, made) if made else None
    if format in writing.OF_ROWS:
        writing.put_rows(format, plan_view.run_rows(made) if made else [], plan_view.RUN_COLUMNS, output)
        return Exit.GOOD
    with writing.printed(format, output):
        if format == "json":
            data = plan_view.plan_data(made, expected) if made else {}
            emit.as_json({**data, "into": plan_view.changes_data(found.folder.id, found.changes)})
        else:
            plan_view.show_changes(console(), found.folder.id, found.changes)
            if made and found.planned:
                warnings = [w.render() for w in found.planned.recipe.warnings]
                plan_view.show_plan(console(), made, warnings, expected=expected)
    return Exit.GOOD


def render(
    recipe: str, site: str | None, sites: Sequence[Path] | None, into: Path | None, options: Overrides | None = None
) -> int:
    """Print or write the scripts."""
    from nsw.campaign.planning import make_plan
    from nsw.safe_files import open_anew
    from nsw.scripts.render import machinery_name, machinery_text

    planned = make_plan(recipe, site, sites, options, notices.show)
    made, script, scratch = planned.plan, planned.renderer(), planned.scratch_to_show()
    jobs = (*made.builds, *made.jobs, *made.reductions)
    texts = {f"{job.name}.sh": script(job, "CAMPAIGN", scratch) for job in jobs} | {machinery_name(): machinery_text()}
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with open(open_anew(into / name), "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
                file.write(text)
        tell(f"{plural(len(jobs), 'script')} in {into}, with the file that they share")
    else:
        for number, (name, text) in enumerate(texts.items()):
            say(f"{chr(10) if number else ''}# ==== {name} ====")
            sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)  # in a file or a pipe as it is
    sys.stdout.flush()
    tell(f"`nsw run` replaces CAMPAIGN by the campaign's name; its folder on the site is {scratch}")
    return Exit.GOOD
