"""`nsw init`, `plan`, `render`, `sites` and `schema`: everything before something is submitted."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nsw.cli.application import command
from nsw.cli.options import (
    ForModel,
    Into,
    PlannedRecipe,
    RecipeOptions,
    Root,
    Sites,
    TableTarget,
    To,
    argument,
    folder_to_extend,
    option,
)
from nsw.cli.output import Target, print_on_stderr, show_message, warn
from nsw.errors import Exit, InputError, UnreachableError, UsageError
from nsw.present.terminal import TextTable, console
from nsw.present.untrusted_text import clean_line, escape_controls, print_untrusted
from nsw.safe_files import write_text
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.modelling import ModelPlan
    from nsw.campaign.planning import Prospect
    from nsw.convert.script_options import Line
    from nsw.engine.events import Event
    from nsw.engine.folder import CampaignFolder
    from nsw.site_check.check import Check

_RECIPE = Path("recipe.yaml")
_OUTPUT = ("-o", "--output")
_UNDERSTOOD = 12  # rows of what a script's lines became: with those below a screen of 24 lines
_NOT_UNDERSTOOD = 7
_TEXT = 30  # characters of a line of it

Document = StrEnum("Document", ["RECIPE", "SITES", "ANSWERS"])


# --- nsw init ----------------------------------------------------------------------------------------------


@command("nsw init -- python train.py --batch 8")
def init(
    command: Annotated[
        list[str] | None,
        argument(
            metavar="-- COMMAND",
            help="The command line to make a recipe for, after --; with --from-script the script's arguments.",
        ),
    ] = None,
    new_site: Annotated[
        str | None,
        option(
            "--site", "-s", metavar="NAME", help="Write a site of this name; with -- COMMAND: where that is to run."
        ),
    ] = None,
    host: Annotated[
        str | None, option("--host", help="With --site: the machine to inspect, over your ssh; default: this machine.")
    ] = None,
    shipped: Annotated[
        str | None, option("--from", metavar="RECIPE", help="Copy a shipped recipe and its files.")
    ] = None,
    script: Annotated[
        Path | None,
        option(
            "--from-script",
            metavar="FILE",
            help="Write the recipe and the site (named by --site) of a job script that starts a profiler.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            help="File to write: recipe.yaml; with --site your own sites file, ~/.config/nsw/sites.yaml.",
        ),
    ] = None,
    force: Annotated[bool, option("--force", help="Overwrite an existing file.")] = False,
) -> int:
    """Write a first recipe, for a command line, from a shipped one or from a job script, or a first site."""
    if sum(map(bool, (command and not script, new_site and not (script or command), shipped, script))) != 1:
        raise UsageError(
            "nsw init needs one of: a command line, --from, --from-script, --site",
            hint="`nsw init -- python train.py --batch 8`, `nsw init --from alexnet_scaling`,"
            " `nsw init --from-script job.sh`, `nsw init --site mine`",
        )
    if host is not None and (new_site is None or script is not None or command):
        raise UsageError("--host belongs to --site")
    if script is not None:
        return _init_from_script(script, new_site, output, force, command)
    if new_site is not None and not command:
        return _init_site(new_site, host, output, force)
    if shipped is not None:
        return _init_from_shipped(shipped, output, force)
    return _init_from_command(command or [], new_site, output, force)


def _init_from_command(words: Sequence[str], site: str | None, output: Path | None, force: bool) -> int:
    """Write a recipe for a command line.

    Raises:
        UsageError: The file is there already.
    """
    from nsw.campaign.starter_files import write_recipe

    first_recipe = write_recipe(words, output or _RECIPE, force=force, site=site)
    brings = (
        f"brings {', '.join(first_recipe.brings)}"
        if first_recipe.brings
        else "brings no file; list what it needs in app.files"
    )
    console().print(f"{first_recipe.path}: {brings}")
    if first_recipe.launcher:
        console().print(
            f"launcher: {first_recipe.launcher}, which nsw starts: the recipe's command is the program alone"
        )
    if first_recipe.profiler:
        console().print(f"pass: {first_recipe.profiler}, which nsw starts: the recipe's command is the program alone")
    output_option = next((word for word in words if word.partition("=")[0] in _OUTPUT), None)
    if output_option and not first_recipe.profiler:
        console().print(
            f"note: {output_option} follows --, so it is an option of the command; to name the recipe's file"
            " write it before:"
            " `nsw init -o FILE -- COMMAND`"
        )
    for text in first_recipe.warnings:
        warn(text)
    if not first_recipe.has_gpus:
        console().print(
            f"site {first_recipe.site} has no GPU, so the recipe asks for none; for another site:"
            " `nsw init --site NAME -- COMMAND`"
        )
    on_site = f" --site {shlex.quote(site)}" if site else ""
    console().print(f"next: `nsw plan {first_recipe.path}{on_site}`; the comments in it say what else a recipe can do")
    return Exit.GOOD


def _init_from_shipped(name: str, output: Path | None, force: bool) -> int:
    """Copy a shipped recipe with the files that it names.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.campaign.starter_files import copy_shipped

    written = copy_shipped(name, output, force=force)
    for path in written:
        console().print(str(path))
    console().print(f"next: `nsw plan {written[0]}`")
    return Exit.GOOD


def _init_from_script(
    script: Path, site: str | None, output: Path | None, force: bool, arguments: Sequence[str] | None
) -> int:
    """Write the recipe and the site that do what a job script does, and say what each of its lines became.

    Raises:
        UsageError: A file is there already, or the script cannot be read or starts no program.
    """
    from nsw.campaign.starter_files import write_from_script

    converted = write_from_script(script, output or _RECIPE, site, force=force, arguments=arguments)
    site_options = f" --site {converted.site} --sites {shlex.quote(str(converted.sites))}" if converted.sites else ""
    console().print(
        f"{', '.join(map(str, converted.recipes))}"
        + (f"; {converted.sites}: site {converted.site}" if converted.sites else "")
    )
    _show_lines([line for line in converted.lines if line.is_understood and line.does_more_than_print], _UNDERSTOOD, "")
    unknown = [line for line in converted.lines if not line.is_understood]
    if unknown:
        console().print(f"not understood of {script.name} (listed at the end of the recipe):")
        _show_lines(unknown, _NOT_UNDERSTOOD, f"; {converted.recipes[-1]} has all")
    for text in converted.warnings:
        warn(text)
    console().print(f"next: `nsw plan {converted.recipes[0]}{site_options}`")
    return Exit.GOOD


def _show_lines(lines: Sequence[Line], max_rows: int, omitted_note: str) -> None:
    """What lines became, a row for neighbours that became the same."""
    rows = [list(group) for _, group in groupby(lines, key=lambda line: line.what)]
    for row in rows[:max_rows]:
        first, last = row[0], row[-1]
        line_numbers = first.numbers if first.numbers == last.numbers else f"{first.first}..{last.last}"
        line_text = f"{first.text} and {len(row) - 1} more" if len(row) > 1 else first.text
        short = line_text if len(line_text) <= _TEXT else f"{line_text[: _TEXT - 3]}..."
        print_untrusted(f"  {line_numbers:<9} {short:<{_TEXT}}  {first.what}")
    if len(rows) > max_rows:
        print_untrusted(f"  and {sum(map(len, rows[max_rows:]))} more{omitted_note}")


def _init_site(name: str, host: str | None, output: Path | None, force: bool) -> int:
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
        console().print(first_site.text.rstrip())  # for a person to put in
        raise
    console().print(f"{first_site.path}: site {name}" + (f", reached by `ssh {host}`" if host else ""))
    for line in first_site.answers_shown:
        console().print(f"  found    {line}")
    for line in first_site.todo:
        console().print(f"  fill in  {line}")
    sites_option = "" if output is None else f" --sites {shlex.quote(str(first_site.path))}"
    console().print(f"next: `nsw sites check {name}{sites_option}`, then `nsw plan RECIPE --site {name}{sites_option}`")
    return Exit.GOOD


# --- nsw plan, render --------------------------------------------------------------------------------------


@command("nsw plan recipe.yaml --site mycluster")
def plan(
    options: PlannedRecipe,
    campaign: Into = None,
    root: Root = None,
    for_model: ForModel = None,
    to: To = None,
    at_most: Annotated[
        str | None,
        option("--at-most", metavar="PRICE", help="Of --for-model: the price, such as '40 gpu-hours' or 40m."),
    ] = None,
    *,
    target: TableTarget,
) -> int:
    """Show what a recipe would run on a site, its maximum cost, and what the site cannot do."""
    if (for_model, to, at_most) != (None, None, None):
        return _show_model_plan(options, target, plan_for_model(options, root, for_model, to, at_most, campaign))
    if campaign is None:
        return show_plan(options, target, root)
    return show_extension(folder_to_extend(options, campaign, root), options, target)


def show_plan(options: RecipeOptions, target: Target, root: Path | None) -> int:
    """Show the plan, and what the site's scheduler says of it where it can be asked.

    Args:
        options: The recipe and its site.
        target: The format, and where it goes.
        root: The folder of campaigns, whose earlier runs tell the expected cost.

    Raises:
        InputError: The scheduler would refuse a job.
    """
    from nsw.campaign.planning import ask_start_times, make_plan, prospect_warnings
    from nsw.campaign.start import expected_cost, with_window_notes
    from nsw.engine import folder as folders
    from nsw.present import plan_view

    planned = make_plan(options.recipe, options.site, options.sites, options.overrides, show_message)
    made_plan = with_window_notes(planned.plan, planned.recipe.recipe, folders.root(root))
    expected = expected_cost(folders.root(root), made_plan)
    prospects, silent = list["Prospect"](), ""
    try:
        prospects = ask_start_times(planned)
    except UnreachableError as fault:
        silent = f"the scheduler of {made_plan.site} gave no answer whether it would accept this job: {fault.render()}"
    warnings = [w.render() for w in (*planned.recipe.warnings, *planned.unset_secrets())]
    warnings += [silent] if silent else prospect_warnings(prospects)
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


def show_extension(folder: CampaignFolder, options: RecipeOptions, target: Target) -> int:
    """Show which runs a recipe would add to a campaign and do again, and why.

    Args:
        folder: The campaign.
        options: The recipe; the campaign keeps its site.
        target: The format, and where it goes.
    """
    from nsw.campaign.changes import extension
    from nsw.campaign.start import expected_cost
    from nsw.present import plan_view

    changes = extension(folder, options.recipe, options.sites, options.overrides, show_message)
    planned = changes.planned
    expected = expected_cost(folder.path.parent, planned.plan) if planned else None

    def show() -> None:
        plan_view.show_changes(console(), folder.id, changes.changes)
        if planned:
            warnings = [w.render() for w in planned.recipe.warnings]
            plan_view.show_plan(console(), planned.plan, warnings, expected=expected)

    def data() -> dict[str, Any]:
        plan = plan_view.plan_data(planned.plan, expected) if planned else {}
        return {**plan, "into": plan_view.changes_data(folder.id, changes.changes)}

    rows = plan_view.run_rows(planned.plan) if planned else []
    target.put_data(rows, plan_view.RUN_COLUMNS, data=data, show=show)
    return Exit.GOOD


def plan_for_model(
    options: RecipeOptions,
    root: Path | None,
    over: str | None,
    target: float | None,
    at_most: str | None,
    other: str | None,
) -> ModelPlan:
    """Choose the cases of a recipe for --for-model NAME --to N --at-most PRICE, which belong together.

    Raises:
        UsageError: One is missing, or `other`, the value of --into or --until, is there.
    """
    from nsw.campaign.modelling import plan_model
    from nsw.engine import folder as folders

    if over is None or target is None or at_most is None or other is not None:
        raise UsageError(
            "--for-model NAME, --to N and --at-most PRICE belong together, and not to --into or --until",
            hint="`nsw plan RECIPE --for-model gpus --to 256 --at-most '40 gpu-hours'`; `nsw run` takes the same",
        )
    return plan_model(
        options.recipe, options.site, options.sites, options.overrides, over=over, target=target, at_most=at_most,
        home=folders.root(root), notify=show_message,
    )  # fmt: skip


def _show_model_plan(options: RecipeOptions, target: Target, model_plan: ModelPlan) -> int:
    from nsw.present import plan_view

    over, points = model_plan.over, model_plan.points
    rows = plan_view.model_plan_rows(model_plan)
    words = ["nsw", "run", options.recipe, *(["--site", options.site] if options.names_site and options.site else [])]
    words += [word for file in options.sites or () for word in ("--sites", str(file))]
    words += [word for setting in options.overrides.settings for word in ("--set", setting)]
    overrides = options.overrides
    words += [word for case in overrides.cases for word in ("--case", case)]
    words += [word for case in overrides.excluded for word in ("--exclude", case)]
    words += [word for name in overrides.passes for word in ("--pass", name)]
    words += ["--fit"] if overrides.fit else []
    words += ["--case", f"{over}={','.join(f'{value:g}' for value in points.values)}"]
    words += ["--set", f"repeats={points.repeats}"]
    commands = [shlex.join(words), f"nsw model --over {over} --at {points.target:g}"]
    target.put_data(
        rows,
        list(rows[0]),
        data=lambda: {**plan_view.model_plan_data(model_plan), "rows": rows, "next": commands},
        show=lambda: plan_view.show_model_plan(console(), model_plan, commands),
    )
    return Exit.GOOD


@command("nsw render recipe.yaml --site mycluster --into scripts/")
def render(
    options: PlannedRecipe,
    into: Annotated[Path | None, option("--into", help="Write the scripts into this folder instead.")] = None,
) -> int:
    """Print the job scripts of a recipe."""
    from nsw.campaign.planning import make_plan
    from nsw.scripts.render import machinery_name, machinery_text

    planned = make_plan(options.recipe, options.site, options.sites, options.overrides, show_message)
    made_plan, script, scratch = planned.plan, planned.renderer(), planned.scratch_to_show()
    jobs = (*made_plan.builds, *made_plan.jobs, *made_plan.reductions)
    texts = {f"{job.name}.sh": script(job, "CAMPAIGN", scratch) for job in jobs} | {machinery_name(): machinery_text()}
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(into / name, text)
        print_on_stderr(f"{plural(len(jobs), 'script')} in {into}, with the file that they share")
    else:
        for number, (name, text) in enumerate(texts.items()):
            print_untrusted(f"{chr(10) if number else ''}# ==== {name} ====")
            sys.stdout.write(escape_controls(text) if sys.stdout.isatty() else text)  # in a file or a pipe as it is
    sys.stdout.flush()
    print_on_stderr(f"`nsw run` replaces CAMPAIGN by the campaign's name; its folder on the site is {scratch}")
    return Exit.GOOD


# --- nsw schema, sites -------------------------------------------------------------------------------------


@command("nsw schema recipe > recipe.schema.json")
def schema(document: Annotated[Document, argument(help="Which document.")]) -> int:
    """Print the JSON Schema of recipes or sites files, for editors, or of what --json prints."""
    from nsw.recipe.model import recipe_schema, text_of
    from nsw.site.model import sites_schema

    schemas = {Document.RECIPE: recipe_schema, Document.SITES: sites_schema, Document.ANSWERS: _answers_schema}
    print(text_of(schemas[document]()), end="")
    return Exit.GOOD


def _answers_schema() -> dict[str, Any]:
    """The shapes of answers, which tools/answers_schema.py made, with the columns of all tables."""
    import json

    from nsw.resources import shipped_text
    from nsw.tables.schema import tables_json_schema

    schema: dict[str, Any] = json.loads(shipped_text("present/answers.schema.json"))
    return schema | {"$defs": dict(sorted((schema["$defs"] | {"tables": tables_json_schema()}).items()))}


@command("")
def sites(
    action: Annotated[str | None, argument(metavar="check", help="check: test whether the site works.")] = None,
    name: Annotated[str | None, argument(metavar="NAME", help="The site to check.")] = None,
    node: Annotated[
        bool, option("--node", help="With check: also test a compute node, with a one-minute job.")
    ] = False,
    sites: Sites = None,
    *,
    target: TableTarget,
) -> int:
    """List the sites with their files, or check one: `nsw sites check NAME`."""
    if action is None:
        return _list_sites(sites, target)
    if action != "check" or name is None:
        raise UsageError(f"nsw sites {action}: there is `nsw sites` and `nsw sites check NAME`")
    # look at a site, with `node` from a compute node too; 3 when something that campaigns need does not work
    from nsw.campaign import check_site
    from nsw.present import emit
    from nsw.site_check.check import Verdict

    checks: list[Check] = []
    for site_check in check_site.check(name, sites, _show_event, node=node):
        checks.append(site_check)
        if target.format != "json":
            show_check(site_check)
    if target.format == "json":
        rows = [{"what": c.what, "verdict": c.verdict, "found": c.found, "fix": c.fix or None} for c in checks]
        emit.as_json({"site": name, "checks": rows})
    return Exit.UNREACHABLE if any(site_check.verdict is Verdict.BAD for site_check in checks) else Exit.GOOD


_INDENT = 24  # columns before what was found
_MIN_COLUMNS = 20  # columns for it on a narrow terminal
_MARKS = {"good": ("ok", "green"), "warning": ("warning", "yellow"), "bad": ("bad", "red"), "skipped": ("-", "dim")}


def _list_sites(sites: Sequence[Path] | None, target: Target) -> int:
    """The sites and where they come from."""
    from nsw.site import load
    from nsw.site.names import unsearched_file_hint

    warnings: list[str] = []
    sites_known = load.list_sites(sites, warnings.append)
    if unread := unsearched_file_hint(sites):
        warnings.append(unread)
    for text in warnings:
        warn(text)
    rows = [
        {"site": p.site.name, "scheduler": p.site.scheduler, "transport": p.site.transport.kind,
         "description": p.site.description, "default": p.site.default, "from": str(p.origin)}
        for p in sites_known
    ]  # fmt: skip
    columns = ("site", "scheduler", "transport", "description", "from")
    shown_rows = ({**r, "site": f"{r['site']} (default)" if r["default"] else r["site"]} for r in rows)
    target.put_data(
        rows,
        ("default", *columns),
        data=lambda: {"sites": rows, "warnings": warnings},
        show=lambda: console().print(
            TextTable(None, columns, ([r[c] for c in columns] for r in shown_rows), wide="description")
        ),
    )
    return Exit.GOOD


def show_check(site_check: Check) -> None:
    """Print one check with its mark, and below it what to do."""
    from textwrap import wrap

    out = console()
    mark, style = _MARKS[site_check.verdict]
    room = max(_MIN_COLUMNS, out.width - _INDENT - 1)
    first, *more_lines = wrap(clean_line(site_check.found), room) or [""]
    out.print(f"{mark:8} {site_check.what:15} {first}", style=style)
    for line in more_lines:
        out.print(f"{'':{_INDENT}} {line}", style=style)
    for line in wrap(site_check.fix, room):
        out.print(f"{'':{_INDENT}} {line}")


def _show_event(event: Event) -> None:
    from nsw.engine.events import Message, RunChanged

    if isinstance(event, Message):
        show_message(event)
    elif isinstance(event, RunChanged) and event.run.state == "queued" and event.run.reason:
        show_message(Message(f"the job waits: {event.run.reason}"))
