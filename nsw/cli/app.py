"""The commands and their options. Bodies import what they need, so that `nsw --help` stays fast."""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003  typer reads the annotations
from typing import Annotated

import typer

from nsw import __version__
from nsw.cli.command import Command, Commands
from nsw.cli.options import (
    Campaign,
    CampaignOption,
    CampaignOrRuns,
    Cases,
    Exclude,
    Fit,
    Format,
    Json,
    MaxUnpacked,
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
from nsw.cli.options import Document as _Document
from nsw.cli.options import OfMetrics as _OfMetrics
from nsw.cli.options import Tool as _Tool
from nsw.cli.options import chosen_format as _chosen
from nsw.cli.options import either as _either
from nsw.cli.options import overrides as _options
from nsw.cli.options import same_site as _same_site
from nsw.cli.options import selection as _selection
from nsw.cli.options import size as _size
from nsw.errors import UsageError

app = typer.Typer(
    name="nsw",
    cls=Commands,
    help="GPU profiling campaigns on clusters: one recipe in, an answer with evidence out.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_command = partial(app.command, cls=Command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nsw {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version.", show_default=False),
    ] = False,
) -> None:
    pass


@_command()
def init(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="The command line to make a recipe for, behind --.", show_default=False
        ),
    ] = None,
    new_site: Annotated[
        str | None,
        typer.Option("--site", "-s", metavar="NAME", help="Write a site of this name instead.", show_default=False),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", help="With --site: the machine to ask, by your own ssh; else this one.", show_default=False
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
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.", show_default=False)] = False,
) -> None:
    """Write a first recipe, for a command line or from a shipped one, or a first site."""
    from nsw.cli import starting

    if sum(map(bool, (command, new_site, shipped))) != 1:
        raise UsageError(
            "nsw init needs one of: a command line, --from, --site",
            hint="`nsw init -- python train.py --batch 8`, `nsw init --from alexnet_scaling`, `nsw init --site mine`",
        )
    if host is not None and new_site is None:
        raise UsageError("--host belongs to --site")
    if new_site is not None:
        raise typer.Exit(starting.site(new_site, host, output, force))
    if shipped is not None:
        raise typer.Exit(starting.from_shipped(shipped, output, force))
    raise typer.Exit(starting.from_command(command or [], output, force))


Now = Annotated[
    bool,
    typer.Option("--now", help="Start although another campaign runs on this machine.", show_default=False),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="CAMPAIGN",
        help="Add to this campaign the runs that it lacks, and do those again whose program or parameters changed.",
        show_default=False,
    ),
]


@_command()
def plan(
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
    """Show what a recipe would run on a site, what it costs at most, and what cannot be done there."""
    from nsw.cli import planning

    options = _options(settings, cases, exclude, passes, fit)
    chosen = _chosen(format, json, output)
    if campaign is not None:
        _same_site(site)
        raise typer.Exit(planning.plan_into(campaign, root, recipe, sites, chosen, output, options))
    raise typer.Exit(planning.plan(recipe, site, sites, chosen, output, options))


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
    """Print the job scripts of a recipe, to be read."""
    from nsw.cli import planning

    raise typer.Exit(planning.render(recipe, site, sites, into, _options(settings, cases, exclude, passes, fit)))


@_command()
def run(
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
    """Carry a recipe out: plan, run, collect, read, answer."""
    from nsw.cli import planning, running

    options = _options(settings, cases, exclude, passes, fit)
    if campaign is not None:
        _same_site(site)
        if dry_run:
            raise typer.Exit(planning.plan_into(campaign, root, recipe, sites, "table", None, options))
        raise typer.Exit(running.run_into(campaign, root, recipe, sites, yes, options, now))
    if dry_run:
        raise typer.Exit(planning.plan(recipe, site, sites, "table", None, options))
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
            help="How much may be brought from the site from now on, such as 50G; by default its limits.download.",
            show_default=False,
        ),
    ] = None,
    now: Now = False,
) -> None:
    """Go on with a campaign that was left; nothing that finished is done again."""
    from nsw.cli import running

    _size(download, "--download")
    raise typer.Exit(running.resume(_either(campaign, named), root, download, now))


@_command()
def retry(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs to do again: their ids or a part that only one has, cases, parameters (gpus=2), patterns, job"
            " ids; if none is named, all that failed, were lost or cancelled, or lack a required figure.",
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
            "--choose-again", help="Choose kernels anew for guided counters; else as before.", show_default=False
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
        typer.Option("--update-app", help="Copy the program again from where it came.", show_default=False),
    ] = False,
    sites: Sites = None,
    now: Now = False,
) -> None:
    """Do runs again that did not succeed; earlier attempts are kept."""
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
            help="Take figures and the report section from this recipe; from the campaign's own if not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Read a campaign's reports again: for lost tables, a new figure or a corrected regex."""
    from nsw.cli import rereading

    raise typer.Exit(rereading.reread(_either(campaign, named), root, recipe))


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
            help="Patterns of file names; by default reports for the GUIs (*.nsys-rep, *.ncu-rep, *.nvvp).",
            show_default=False,
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    yes: Yes = False,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """Bring files of runs that were left on the site, such as reports for Nsight's GUIs."""
    from nsw.cli import fetching

    raise typer.Exit(fetching.fetch(runs or [], files or [], campaign, root, yes, _selection(case, exclude)))


@_command()
def cancel(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """End a campaign's runs, queued and running; what is done stays."""
    from nsw.cli import running

    raise typer.Exit(running.cancel(_either(campaign, named), root, _selection(case, exclude)))


@_command()
def attach(
    campaign: Annotated[
        str | None,
        typer.Argument(
            metavar="CAMPAIGN",
            help="Its id or the beginning; those on the site are listed if not given.",
            show_default=False,
        ),
    ] = None,
    site: Site = "local",
    sites: Sites = None,
    root: Root = None,
) -> None:
    """Take over a campaign that another machine began on a site, and go on with it here.

    The nsw that drove it before submits nothing more from then on.
    """
    from nsw.cli import attaching

    raise typer.Exit(attaching.attach(campaign, site, sites, root))


@_command()
def clean(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Also files of runs that were never brought here.", show_default=False),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go, and stop.", show_default=False)
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove what a finished campaign left on its site; reports and tables here stay."""
    from nsw.cli import cleaning

    which = _either(campaign, named)
    raise typer.Exit(cleaning.clean(which, root, everything=everything, dry_run=dry_run, yes=yes))


@_command()
def throttle(
    running: Annotated[
        int,
        typer.Argument(min=0, metavar="N", help="Jobs and array tasks; 0 holds all that waits.", show_default=False),
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


@_command()
def status(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    runs: Annotated[bool, typer.Option("--runs", help="List every run.", show_default=False)] = False,
    case: Only = None,
    exclude: Without = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Show where a campaign stands and what went wrong."""
    from nsw.cli import looking

    which = (campaign, named, root, _selection(case, exclude))
    raise typer.Exit(looking.status(which, runs, _chosen(format, json, output), output))


@_command()
def watch(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.", show_default=False)] = False,
) -> None:
    """Show live how a campaign goes that another nsw drives, or that was left alone; nothing is changed by it."""
    from nsw.cli import watching

    raise typer.Exit(watching.watch(_either(campaign, named), root, once=once))


@_command()
def logs(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Run or build: its id or a part that only one has, its case, parameters, a pattern, a job id; the one"
            " that failed if not given.",
            show_default=False,
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines; 0: all.")] = 40,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what it prints, until it ends.", show_default=False)
    ] = False,
    case: Only = None,
    exclude: Without = None,
) -> None:
    """Print what a run wrote: its output, errors and end."""
    from nsw.cli import outputs

    raise typer.Exit(outputs.logs(run, campaign, root, lines, _selection(case, exclude), follow=follow))


@_command()
def problems(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Print everything that is wrong with a campaign's reports, and what to do."""
    from nsw.cli import looking

    raise typer.Exit(
        looking.problems((campaign, named, root, _selection(case, exclude)), _chosen(format, json, output), output)
    )


@_command(name="ls")
def list_campaigns(root: Root = None, format: Format = None, json: Json = False, output: Output = None) -> None:
    """List the campaigns."""
    from nsw.cli import looking

    raise typer.Exit(looking.list_campaigns(root, _chosen(format, json, output), output))


@_command()
def summarize(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            help="One table as rows: scaling, compare, hotspots, kernels, roofline, api, copies, figures, functions,"
            " model, gpu_summary ...",
            show_default=False,
        ),
    ] = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Say what a campaign shows: scaling, hotspots, API calls, copies, communication."""
    from nsw.cli import summarizing

    which, chosen = (campaign, named, root, _selection(case, exclude)), _chosen(format, json, output)
    raise typer.Exit(summarizing.summarize(which, table, chosen, output, _size(max_unpacked)))


@_command()
def read(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Reports of any profiler; - is standard input.", show_default=False)
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            help="Only this table (may be repeated); traces are made only so, and kernels and roofline computed.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", help="The NVTX range that is an iteration of the program.", show_default=False),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="TEST",
            help="Only rows with name~gemm, kind=memcpy, calls>10 (times in ns); may be repeated.",
            show_default=False,
        ),
    ] = None,
    launch: Annotated[
        int | None, typer.Option("--launch", help="Only rows of this launch (Nsight Compute).", show_default=False)
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="So many rows of each table.", show_default=False)
    ] = None,
    formats: Annotated[bool, typer.Option("--formats", help="List what can be read.", show_default=False)] = False,
    format: Format = None,
    json: Json = False,
    output: Output = None,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Read reports of any profiler into tables."""
    from nsw.cli import reading

    chosen = _chosen(format, json, output)
    limit = _size(max_unpacked)
    raise typer.Exit(
        reading.read(files or [], table or [], formats, chosen, output, limit, steps, where or (), launch, top)
    )


@_command()
def metrics(
    action: Annotated[
        _OfMetrics,
        typer.Argument(
            help="ls: what there is. show: one in full. check: whether a chip has them. translate: each tool's names.",
            show_default=False,
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="Portable names, groups, names of ncu or nvprof; of ls also families and parts of names.",
            show_default=False,
        ),
    ] = None,
    chip: Annotated[
        str | None,
        typer.Option("--chip", help="Chip, compute capability or GPU: gh100, 9.0, H100.", show_default=False),
    ] = None,
    tool: Annotated[_Tool | None, typer.Option("--tool", help="Only by this tool.", show_default=False)] = None,
    site: Annotated[
        str | None,
        typer.Option(
            "--site", "-s", help="On this site's chip; check also asks its own ncu, once a week.", show_default=False
        ),
    ] = None,
    sites: Sites = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """List, explain, check and translate the metrics that a recipe can ask for, offline unless a site is named."""
    from nsw.cli import metrics as commands
    from nsw.site.load import load_site

    chosen = _chosen(format, json, output)
    place = None if site is None else load_site(site, sites)
    by = tool.value if tool else None
    raise typer.Exit(commands.metrics(action.value, names or [], chip, by, chosen, output, place))


@_command()
def schema(document: Annotated[_Document, typer.Argument(help="Which document.")]) -> None:
    """Print the JSON Schema of recipes or sites files, for editors."""
    from nsw.cli import looking

    raise typer.Exit(looking.schema(document.value))


@_command()
def sites(
    action: Annotated[
        str | None, typer.Argument(metavar="[check", help="check: see what of a site works.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME]", help="The site to check.", show_default=False)] = None,
    node: Annotated[
        bool,
        typer.Option("--node", help="With check: also from a compute node, by a job of a minute.", show_default=False),
    ] = False,
    sites: Sites = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """List the sites and the files that they come from, or check one: `nsw sites check NAME`."""
    from nsw.cli import checking, looking

    if action is not None:
        if action != "check" or name is None:
            raise UsageError(f"nsw sites {action}: there is `nsw sites` and `nsw sites check NAME`")
        raise typer.Exit(checking.check(name, sites, _chosen(format, json, output), node=node))
    raise typer.Exit(looking.list_sites(sites, _chosen(format, json, output), output))
