"""`nsw init`, `plan` and `render`: everything before something is submitted."""

from __future__ import annotations

import shlex
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.cli.output import show_message, tell, warn
from nsw.errors import Exit, InputError, UnreachableError, UsageError
from nsw.present.untrusted_text import harmless, say
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.planning import Prospect
    from nsw.cli.output import Target
    from nsw.convert.from_script import Line
    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.overrides import Overrides

__all__ = ["init_from_command", "init_from_script", "init_from_shipped", "init_site", "plan", "plan_into", "render"]

_RECIPE = Path("recipe.yaml")
_OUTPUT = ("-o", "--output")
_UNDERSTOOD = 12  # rows of what a script's lines became: with those below a screen of 24 lines
_NOT_UNDERSTOOD = 7
_TEXT = 30  # characters of a line of it


def _say(text: str) -> None:
    """A sentence on stdout, with commands as the user types them."""
    from nsw.present.terminal import console

    console().print(text)


def init_from_command(words: Sequence[str], output: Path | None, force: bool) -> int:
    """Write a recipe for a command line.

    Raises:
        UsageError: The file is there already.
    """
    from nsw.campaign.starter_files import write_recipe

    first_recipe = write_recipe(words, output or _RECIPE, force=force)
    brings = (
        f"brings {', '.join(first_recipe.brings)}"
        if first_recipe.brings
        else "needs no file: list those it needs in app.files"
    )
    _say(f"{first_recipe.path}: {brings}")
    if first_recipe.launcher:
        _say(f"launcher: {first_recipe.launcher}, which nsw starts: the recipe's command is the program alone")
    if output_option := next((word for word in words if word.partition("=")[0] in _OUTPUT), None):
        _say(
            f"note: {output_option} follows --, so it is an option of the command; to name the recipe's file"
            " write it before:"
            " `nsw init -o FILE -- COMMAND`"
        )
    for text in first_recipe.warnings:
        warn(text)
    if not first_recipe.has_gpus:
        _say(f"site {first_recipe.site} has no GPU, so the recipe asks for none: set resources.gpus for another site")
    _say(f"next: `nsw plan {first_recipe.path}`; the comments in it say what else a recipe can do")
    return Exit.GOOD


def init_from_shipped(name: str, output: Path | None, force: bool) -> int:
    """Copy a shipped recipe with the files that it names.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.campaign.starter_files import copy_shipped

    written = copy_shipped(name, output, force=force)
    for path in written:
        _say(str(path))
    _say(f"next: `nsw plan {written[0]}`")
    return Exit.GOOD


def init_from_script(script: Path, site: str | None, output: Path | None, force: bool) -> int:
    """Write the recipe and the site that do what a job script does, and say what each of its lines became.

    Raises:
        UsageError: A file is there already, or the script cannot be read or starts no program.
    """
    from nsw.campaign.starter_files import write_from_script

    converted = write_from_script(script, output or _RECIPE, site, force=force)
    site_options = f" --site {converted.site} --sites {shlex.quote(str(converted.sites))}" if converted.sites else ""
    _say(
        f"{', '.join(map(str, converted.recipes))}"
        + (f"; {converted.sites}: site {converted.site}" if converted.sites else "")
    )
    _show_lines([line for line in converted.lines if line.is_understood and line.matters], _UNDERSTOOD, "")
    unknown = [line for line in converted.lines if not line.is_understood]
    if unknown:
        _say(f"not understood of {script.name} (listed at the end of the recipe):")
        _show_lines(unknown, _NOT_UNDERSTOOD, f"; {converted.recipes[-1]} has all")
    for text in converted.warnings:
        warn(text)
    _say(f"next: `nsw plan {converted.recipes[0]}{site_options}`")
    return Exit.GOOD


def _show_lines(lines: Sequence[Line], max_rows: int, omitted_note: str) -> None:
    """What lines became, a row for neighbours that became the same."""
    rows = [list(group) for _, group in groupby(lines, key=lambda line: line.what)]
    for row in rows[:max_rows]:
        first, last = row[0], row[-1]
        line_numbers = first.numbers if first.numbers == last.numbers else f"{first.first}..{last.last}"
        line_text = f"{first.text} and {len(row) - 1} more" if len(row) > 1 else first.text
        short = line_text if len(line_text) <= _TEXT else f"{line_text[: _TEXT - 3]}..."
        say(f"  {line_numbers:<9} {short:<{_TEXT}}  {first.what}")
    if len(rows) > max_rows:
        say(f"  and {sum(map(len, rows[max_rows:]))} more{omitted_note}")


def init_site(name: str, host: str | None, output: Path | None, force: bool) -> int:
    """Ask this machine or a host what it is, and write a site.

    Raises:
        UsageError: The file has such a site already, or its batch system is none that nsw knows.
        UnreachableError: The host does not answer.
    """
    from nsw.site_check.starter import survey_site

    first_site = survey_site(name, host, output, force=force)
    try:
        first_site.write()
    except UsageError:
        _say(first_site.text.rstrip())  # for a person to put in
        raise
    _say(f"{first_site.path}: site {name}" + (f", reached by `ssh {host}`" if host else ""))
    for line in first_site.answers_shown:
        _say(f"  found    {line}")
    for line in first_site.todo:
        _say(f"  fill in  {line}")
    sites_option = "" if output is None else f" --sites {shlex.quote(str(first_site.path))}"
    _say(f"next: `nsw sites check {name}{sites_option}`, then `nsw plan RECIPE --site {name}{sites_option}`")
    return Exit.GOOD


def plan(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    target: Target,
    options: Overrides,
    root: Path | None,
) -> int:
    """Show the plan, and what the site's scheduler says of it where it can be asked.

    Raises:
        InputError: The scheduler would refuse a job.
    """
    from nsw.campaign.planning import ask, make_plan
    from nsw.campaign.start import expected_cost
    from nsw.engine import folder as folders
    from nsw.present import plan_view
    from nsw.present.terminal import console

    planned = make_plan(recipe, site, sites, options, show_message)
    made_plan = planned.plan
    expected = expected_cost(folders.root(root), made_plan)
    script, prospects, silent = planned.renderer(), list["Prospect"](), ""
    try:
        prospects = ask(planned, script)
    except UnreachableError as fault:
        silent = f"the scheduler of {made_plan.site} could not be asked whether it would take this: {fault.render()}"
    warnings = [w.render() for w in (*planned.recipe.warnings, *planned.unset_secrets())]
    warnings += [silent] if silent else [f"{p.jobs[0]}: {told}" for p in prospects if (told := p.untold or p.waits)]
    starts = {name: p.start for p in prospects for name in p.jobs if p.start}
    target.put_data(
        plan_view.run_rows(made_plan),
        plan_view.RUN_COLUMNS,
        data=lambda: {**plan_view.plan_data(made_plan, expected), "starts": starts, "warnings": warnings},
        show=lambda: plan_view.show_plan(console(), made_plan, warnings, starts, expected),
        note=made_plan.note,
    )
    refused = [p.refused for p in prospects if p.refused]
    if refused:
        raise InputError(refused)
    return Exit.GOOD


def plan_into(
    folder: CampaignFolder, recipe: str, sites: Sequence[Path] | None, target: Target, options: Overrides
) -> int:
    """Show what a recipe would add to a campaign, what it would do again, and why."""
    from nsw.campaign.changes import extension
    from nsw.campaign.start import expected_cost
    from nsw.present import plan_view
    from nsw.present.terminal import console

    campaign_extension = extension(folder, recipe, sites, options, show_message)
    planned = campaign_extension.planned
    expected = expected_cost(folder.path.parent, planned.plan) if planned else None

    def show() -> None:
        plan_view.show_changes(console(), folder.id, campaign_extension.changes)
        if planned:
            warnings = [w.render() for w in planned.recipe.warnings]
            plan_view.show_plan(console(), planned.plan, warnings, expected=expected)

    def data() -> dict[str, Any]:
        plan = plan_view.plan_data(planned.plan, expected) if planned else {}
        return {**plan, "into": plan_view.changes_data(folder.id, campaign_extension.changes)}

    rows = plan_view.run_rows(planned.plan) if planned else []
    target.put_data(rows, plan_view.RUN_COLUMNS, data=data, show=show)
    return Exit.GOOD


def render(
    recipe: str, site: str | None, sites: Sequence[Path] | None, into: Path | None, options: Overrides | None = None
) -> int:
    """Print or write the scripts."""
    from nsw.campaign.planning import make_plan
    from nsw.safe_files import write_text
    from nsw.scripts.render import machinery_name, machinery_text

    planned = make_plan(recipe, site, sites, options, show_message)
    made_plan, script, scratch = planned.plan, planned.renderer(), planned.scratch_to_show()
    jobs = (*made_plan.builds, *made_plan.jobs, *made_plan.reductions)
    texts = {f"{job.name}.sh": script(job, "CAMPAIGN", scratch) for job in jobs} | {machinery_name(): machinery_text()}
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(into / name, text)
        tell(f"{plural(len(jobs), 'script')} in {into}, with the file that they share")
    else:
        for number, (name, text) in enumerate(texts.items()):
            say(f"{chr(10) if number else ''}# ==== {name} ====")
            sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)  # in a file or a pipe as it is
    sys.stdout.flush()
    tell(f"`nsw run` replaces CAMPAIGN by the campaign's name; its folder on the site is {scratch}")
    return Exit.GOOD
