"""The commands that plan campaigns and drive them. Bodies import what they need, so that `nsw --help` stays fast."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations
from typing import Annotated

import typer

from nsw.cli.application import command as _command
from nsw.cli.options import (
    Campaign,
    CampaignOption,
    Cases,
    Exclude,
    Fit,
    Format,
    Json,
    Only,
    Output,
    Passes,
    Recipe,
    Root,
    Set,
    Site,
    Sites,
    Without,
    Yes,
)
from nsw.cli.options import chosen_format as _chosen
from nsw.cli.options import either as _either
from nsw.cli.options import overrides as _options
from nsw.cli.options import same_site as _same_site
from nsw.cli.options import selection as _selection
from nsw.cli.options import size as _size
from nsw.errors import UsageError


@_command()
def init(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND", help="The command line to make a recipe for, after --.", show_default=False
        ),
    ] = None,
    new_site: Annotated[
        str | None,
        typer.Option("--site", "-s", metavar="NAME", help="Write a site of this name instead.", show_default=False),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help="With --site: the machine to inspect, over your ssh; default: this machine.",
            show_default=False,
        ),
    ] = None,
    shipped: Annotated[
        str | None,
        typer.Option("--from", metavar="RECIPE", help="Copy a shipped recipe and its files.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: recipe.yaml; with --site your own sites file, ~/.config/nsw/sites.yaml.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.", show_default=False)] = False,
) -> None:
    """Write a first recipe, for a command line or from a shipped one, or a first site."""
    from nsw.cli import init_recipe_or_site

    if sum(map(bool, (command, new_site, shipped))) != 1:
        raise UsageError(
            "nsw init needs one of: a command line, --from, --site",
            hint="`nsw init -- python train.py --batch 8`, `nsw init --from alexnet_scaling`, `nsw init --site mine`",
        )
    if host is not None and new_site is None:
        raise UsageError("--host belongs to --site")
    if new_site is not None:
        raise typer.Exit(init_recipe_or_site.site(new_site, host, output, force))
    if shipped is not None:
        raise typer.Exit(init_recipe_or_site.from_shipped(shipped, output, force))
    raise typer.Exit(init_recipe_or_site.from_command(command or [], output, force))


Now = Annotated[
    bool,
    typer.Option("--now", help="Start although another campaign runs on this machine.", show_default=False),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="CAMPAIGN",
        help="Add the runs that this campaign lacks; run those again whose program or parameters changed.",
        show_default=False,
    ),
]


@_command()
def plan(
    context: typer.Context,
    recipe: Recipe,
    site: Site = None,
    sites: Sites = None,
    settings: Set = None,
    cases: Cases = None,
    exclude: Exclude = None,
    passes: Passes = None,
    fit: Fit = False,
    format: Format = None,
    json: Json = False,
    output: Output = None,
    campaign: Into = None,
    root: Root = None,
) -> None:
    """Show what a recipe would run on a site, its maximum cost, and what the site cannot do."""
    from nsw.cli import planning

    options = _options(settings, cases, exclude, passes, fit)
    chosen = _chosen(format, json, output)
    if campaign is not None:
        _same_site(context, campaign, root)
        raise typer.Exit(planning.plan_into(campaign, root, recipe, sites, chosen, output, options))
    raise typer.Exit(planning.plan(recipe, site, sites, chosen, output, options, root))


@_command()
def render(
    recipe: Recipe,
    site: Site = None,
    sites: Sites = None,
    settings: Set = None,
    cases: Cases = None,
    exclude: Exclude = None,
    passes: Passes = None,
    fit: Fit = False,
    into: Annotated[
        Path | None,
        typer.Option("--into", help="Write the scripts into this folder instead.", show_default=False),
    ] = None,
) -> None:
    """Print the job scripts of a recipe."""
    from nsw.cli import planning

    raise typer.Exit(planning.render(recipe, site, sites, into, _options(settings, cases, exclude, passes, fit)))


@_command()
def run(
    context: typer.Context,
    recipe: Recipe,
    site: Site = None,
    sites: Sites = None,
    root: Root = None,
    yes: Yes = False,
    settings: Set = None,
    cases: Cases = None,
    exclude: Exclude = None,
    passes: Passes = None,
    fit: Fit = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and stop, as `nsw plan` does.", show_default=False)
    ] = False,
    campaign: Into = None,
    now: Now = False,
) -> None:
    """Run a recipe: plan, run, collect, read, answer."""
    from nsw.cli import planning, running

    options = _options(settings, cases, exclude, passes, fit)
    if campaign is not None:
        _same_site(context, campaign, root)
        if dry_run:
            raise typer.Exit(planning.plan_into(campaign, root, recipe, sites, "table", None, options))
        raise typer.Exit(running.run_into(campaign, root, recipe, sites, yes, options, now))
    if dry_run:
        raise typer.Exit(planning.plan(recipe, site, sites, "table", None, options, root))
    raise typer.Exit(running.run(recipe, site, sites, root, yes, options, now))


@_command()
def resume(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    download: Annotated[
        str | None,
        typer.Option(
            "--download",
            metavar="SIZE",
            help="How much may be downloaded from the site from now on, such as 50G; by default its limits.download.",
            show_default=False,
        ),
    ] = None,
    now: Now = False,
) -> None:
    """Continue a campaign; finished runs are not repeated."""
    from nsw.cli import running

    _size(download, "--download")
    raise typer.Exit(running.resume(_either(campaign, named), root, download, now))


@_command()
def retry(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs to do again: their ids or a part that only one has, cases, parameters (gpus=2), patterns, job"
            " ids; a campaign may stand first. If none is named, all that failed, were lost or cancelled, or lack a"
            " required figure.",
            show_default=False,
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Only those that failed, were lost or lack a required figure.", show_default=False
        ),
    ] = False,
    choose_again: Annotated[
        bool,
        typer.Option(
            "--choose-again",
            help="Choose the kernels for guided counters again; by default the earlier choice is kept.",
            show_default=False,
        ),
    ] = False,
    case: Only = None,
    exclude: Without = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="TIME", help="A new time limit for what is retried, such as 30m.", show_default=False
        ),
    ] = None,
    update_app: Annotated[
        bool,
        typer.Option("--update-app", help="Copy the program again from its original place.", show_default=False),
    ] = False,
    sites: Sites = None,
    now: Now = False,
) -> None:
    """Repeat runs that did not succeed; earlier attempts are kept."""
    from nsw.cli import running

    selection = _selection(case, exclude)
    change = (time, update_app, sites)
    raise typer.Exit(running.retry(runs or [], campaign, root, failed, choose_again, selection, change, now))


@_command()
def reread(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            "--recipe",
            help="Take the figures and the report section from this recipe, also next time; default: from the one named"
            " last, else from the campaign's own file.",
            show_default=False,
        ),
    ] = None,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """Read a campaign's reports again: for lost tables, a new figure or a corrected regex."""
    from nsw.cli import rereading

    raise typer.Exit(rereading.reread(_either(campaign, named), root, recipe, _selection(case, exclude)))


@_command()
def fetch(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs: ids, parts or patterns of them, cases, job ids; all if none is named.", show_default=False
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            help="Patterns of file names; by default reports for the GUIs (*.nsys-rep, *.ncu-rep, *.nvvp, ...).",
            show_default=False,
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    yes: Yes = False,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """Download files of runs that were left on the site, such as reports for Nsight's GUIs."""
    from nsw.cli import site_files

    raise typer.Exit(site_files.fetch(runs or [], files or [], campaign, root, yes, _selection(case, exclude)))


@_command()
def cancel(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """Cancel a campaign's queued and running runs; finished ones are kept."""
    from nsw.cli import running

    raise typer.Exit(running.cancel(_either(campaign, named), root, _selection(case, exclude)))


@_command()
def attach(
    campaign: Annotated[
        str | None,
        typer.Argument(
            metavar="CAMPAIGN",
            help="Its id or the beginning of it; without it, list the campaigns on the site.",
            show_default=False,
        ),
    ] = None,
    site: Site = None,
    sites: Sites = None,
    root: Root = None,
) -> None:
    """Take over a campaign that another machine began on a site, and go on with it here.

    The nsw that drove it before submits nothing more from then on.
    """
    from nsw.cli import running

    raise typer.Exit(running.attach(campaign, site, sites, root))


@_command()
def clean(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Also remove files of runs that were never downloaded.", show_default=False),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, and stop.", show_default=False)
    ] = False,
    case: Only = None,
    exclude: Without = None,
    yes: Yes = False,
) -> None:
    """Remove what a finished campaign left on its site; reports and tables here stay."""
    from nsw.cli import site_files

    which, selection = _either(campaign, named), _selection(case, exclude)
    raise typer.Exit(site_files.clean(which, root, selection, everything=everything, dry_run=dry_run, yes=yes))


@_command()
def throttle(
    running: Annotated[
        int,
        typer.Argument(min=0, metavar="N", help="Jobs and array tasks; 0 holds all that wait.", show_default=False),
    ],
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
) -> None:
    """Change how many of a campaign's jobs and array tasks run at a time, while it runs.

    The nsw that drives it hears of it at once, on Slurm with one scontrol for an array; what runs already goes on.
    0 holds: nothing new begins until another number.
    """
    from nsw.cli import running as commands

    raise typer.Exit(commands.throttle(running, _either(campaign, named), root))
