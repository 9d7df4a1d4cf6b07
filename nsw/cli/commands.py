"""The commands, in the order in which `nsw --help` shows them. Bodies import what they need, so that it stays fast."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations
from typing import Annotated

import typer

from nsw.cli.application import app, command
from nsw.cli.options import (
    AnswerFormat,
    AnswerFormats,
    Campaign,
    CampaignOption,
    CampaignOrRuns,
    Cases,
    Document,
    Exclude,
    Fit,
    Format,
    Into,
    Json,
    MaxUnpacked,
    Now,
    OfMetrics,
    Only,
    Output,
    Passes,
    Recipe,
    Root,
    Set,
    Site,
    Sites,
    Tool,
    Without,
    Yes,
    campaign_folder,
    folder_to_extend,
    overrides,
    selection,
    size,
    target,
)  # fmt: skip
from nsw.cli.output import Target
from nsw.errors import UsageError

__all__ = ["app"]


@command()
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
) -> int:
    """Write a first recipe, for a command line or from a shipped one, or a first site."""
    from nsw.cli import planning

    if sum(map(bool, (command, new_site, shipped))) != 1:
        raise UsageError(
            "nsw init needs one of: a command line, --from, --site",
            hint="`nsw init -- python train.py --batch 8`, `nsw init --from alexnet_scaling`, `nsw init --site mine`",
        )
    if host is not None and new_site is None:
        raise UsageError("--host belongs to --site")
    if new_site is not None:
        return planning.init_site(new_site, host, output, force)
    if shipped is not None:
        return planning.init_from_shipped(shipped, output, force)
    return planning.init_from_command(command or [], output, force)


@command()
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
) -> int:
    """Show what a recipe would run on a site, its maximum cost, and what the site cannot do."""
    from nsw.cli import planning

    options = overrides(settings, cases, exclude, passes, fit)
    goal = target(format, json, output)
    if campaign is not None:
        return planning.plan_into(folder_to_extend(context, campaign, root), recipe, sites, goal, options)
    return planning.plan(recipe, site, sites, goal, options, root)


@command()
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
) -> int:
    """Print the job scripts of a recipe."""
    from nsw.cli import planning

    return planning.render(recipe, site, sites, into, overrides(settings, cases, exclude, passes, fit))


@command()
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
) -> int:
    """Run a recipe: plan, run, collect, read, answer."""
    from nsw.cli import planning, running

    options = overrides(settings, cases, exclude, passes, fit)
    if campaign is not None:
        folder = folder_to_extend(context, campaign, root)
        if dry_run:
            return planning.plan_into(folder, recipe, sites, Target("table"), options)
        return running.run_into(folder, recipe, sites, options, yes=yes, now=now)
    if dry_run:
        return planning.plan(recipe, site, sites, Target("table"), options, root)
    return running.run(recipe, site, sites, root, options, yes=yes, now=now)


@command()
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
) -> int:
    """Continue a campaign; finished runs are not repeated."""
    from nsw.cli import running

    size(download, "--download")
    return running.resume(campaign_folder(campaign, root, named), download, now=now)


@command()
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
) -> int:
    """Repeat runs that did not succeed; earlier attempts are kept."""
    from nsw.cli import running

    chosen = selection(case, exclude)
    return running.retry(
        runs or [], campaign, root, chosen,
        time=time, update_app=update_app, sites=sites, failed=failed, choose_again=choose_again, now=now,
    )  # fmt: skip


@command()
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
) -> int:
    """Read a campaign's reports again: for lost tables, a new figure or a corrected regex."""
    from nsw.cli import running

    return running.reread(campaign_folder(campaign, root, named), recipe, selection(case, exclude))


@command()
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
) -> int:
    """Download files of runs that were left on the site, such as reports for Nsight's GUIs."""
    from nsw.cli import running

    return running.fetch(runs or [], files or [], campaign, root, selection(case, exclude), yes=yes)


@command()
def cancel(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
) -> int:
    """Cancel a campaign's queued and running runs; finished ones are kept."""
    from nsw.cli import running

    return running.cancel(campaign_folder(campaign, root, named), selection(case, exclude))


@command()
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
) -> int:
    """Take over a campaign that another machine began on a site, and go on with it here.

    The nsw that drove it before submits nothing more from then on.
    """
    from nsw.cli import running

    return running.attach(campaign, site, sites, root)


@command()
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
) -> int:
    """Remove what a finished campaign left on its site; reports and tables here stay."""
    from nsw.cli import running

    folder, chosen = campaign_folder(campaign, root, named), selection(case, exclude)
    return running.clean(folder, chosen, everything=everything, dry_run=dry_run, yes=yes)


@command()
def throttle(
    running: Annotated[
        int,
        typer.Argument(min=0, metavar="N", help="Jobs and array tasks; 0 holds all that wait.", show_default=False),
    ],
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
) -> int:
    """Change how many of a campaign's jobs and array tasks run at a time, while it runs.

    The nsw that drives it hears of it at once, on Slurm with one scontrol for an array; what runs already goes on.
    0 holds: nothing new begins until another number.
    """
    from nsw.cli import running as commands

    return commands.throttle(running, campaign_folder(campaign, root, named))


@command()
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
) -> int:
    """Show the state of a campaign and what went wrong."""
    from nsw.cli import looking

    which = (campaign, named, root, selection(case, exclude))
    return looking.status(which, runs, target(format, json, output))


@command()
def watch(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    once: Annotated[bool, typer.Option("--once", help="Print the state once and exit.", show_default=False)] = False,
) -> int:
    """Show the live progress of a campaign that another nsw drives or that no nsw drives; read-only."""
    from nsw.cli import looking

    return looking.watch(campaign_folder(campaign, root, named), once=once)


@command()
def logs(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Run or build: its id or a part that only one has, its case, parameters, pass, a pattern, a job id;"
            " the one that failed if not given, also of a campaign that is named.",
            show_default=False,
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Number of last lines; 0 prints all.")] = 40,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the output until the run ends.", show_default=False)
    ] = False,
    case: Only = None,
    exclude: Without = None,
) -> int:
    """Print the output, the errors and the outcome of a run."""
    from nsw.cli import logs as outputs

    return outputs.logs(run, campaign, root, lines, selection(case, exclude), follow=follow)


@command()
def problems(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """List all problems of a campaign's reports, and what to do."""
    from nsw.cli import looking

    return looking.problems((campaign, named, root, selection(case, exclude)), target(format, json, output))


@command(name="ls")
def list_campaigns(root: Root = None, format: Format = None, json: Json = False, output: Output = None) -> int:
    """List the campaigns."""
    from nsw.cli import looking

    return looking.list_campaigns(root, target(format, json, output))


@command()
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
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            help="With --table: so many rows, of each case in hotspots, kernels, roofline, api, copies and functions,"
            " of each run in tables of reports.",
            show_default=False,
        ),
    ] = None,
    format: AnswerFormat = None,
    json: Json = False,
    output: Output = None,
    max_unpacked: MaxUnpacked = None,
) -> int:
    """Print the results of a campaign: scaling, hotspots, API calls, copies, communication."""
    from nsw.cli import summarizing

    which = (campaign, named, root, selection(case, exclude))
    goal = target(format, json, output, AnswerFormats)
    return summarizing.summarize(which, table, goal, size(max_unpacked), top)


@command()
def read(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Reports of any profiler, also packed with gzip; - is standard input.", show_default=False),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            help="Only this table; may be repeated. Traces, kernels and roofline are made only on request.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", help="The NVTX range that marks an iteration of the program.", show_default=False),
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
        int | None, typer.Option("--top", min=1, help="At most this many rows of each table.", show_default=False)
    ] = None,
    formats: Annotated[
        bool, typer.Option("--formats", help="List the formats that can be read.", show_default=False)
    ] = False,
    format: Format = None,
    json: Json = False,
    output: Output = None,
    max_unpacked: MaxUnpacked = None,
) -> int:
    """Read reports of any profiler into tables."""
    from nsw.cli import reading

    goal = target(format, json, output)
    limit = size(max_unpacked)
    return reading.read(
        files or [], table or [], goal,
        formats=formats, max_unpacked=limit, steps=steps, where=where or (), launch=launch, top=top,
    )  # fmt: skip


@command()
def metrics(
    action: Annotated[
        OfMetrics,
        typer.Argument(
            help="ls: list metrics. show: explain one. check: whether a chip has them. translate: each tool's names.",
            show_default=False,
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Portable names, groups, names of ncu or nvprof; of ls also families and parts of names.",
            show_default=False,
        ),
    ] = None,
    chip: Annotated[
        str | None,
        typer.Option("--chip", help="Chip, compute capability or GPU: gh100, 9.0, H100.", show_default=False),
    ] = None,
    tool: Annotated[Tool | None, typer.Option("--tool", help="Only by this tool.", show_default=False)] = None,
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
) -> int:
    """List, explain, check and translate the metrics that a recipe can ask for, offline unless a site is named."""
    from nsw.cli import metrics as commands
    from nsw.site.load import load_site

    goal = target(format, json, output)
    place = None if site is None else load_site(site, sites)
    by = tool.value if tool else None
    return commands.metrics(action.value, names or [], chip, by, goal, place)


@command()
def schema(document: Annotated[Document, typer.Argument(help="Which document.")]) -> int:
    """Print the JSON Schema of recipes or sites files, for editors, or of what --json prints."""
    from nsw.cli import looking

    return looking.schema(document.value)


@command()
def sites(
    action: Annotated[
        str | None, typer.Argument(metavar="check", help="check: test whether the site works.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The site to check.", show_default=False)] = None,
    node: Annotated[
        bool,
        typer.Option("--node", help="With check: also test a compute node, with a one-minute job.", show_default=False),
    ] = False,
    sites: Sites = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """List the sites with their files, or check one: `nsw sites check NAME`."""
    from nsw.cli import sites as commands

    if action is not None:
        if action != "check" or name is None:
            raise UsageError(f"nsw sites {action}: there is `nsw sites` and `nsw sites check NAME`")
        return commands.check(name, sites, target(format, json, output), node=node)
    return commands.list_sites(sites, target(format, json, output))
