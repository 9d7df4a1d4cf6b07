"""The commands, in the order in which `nsw --help` shows them. Bodies import what they need, so that it stays fast."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsw.cli.application import app, command
from nsw.cli.output import Folder, Target, chosen, output_path
from nsw.errors import UsageError

if TYPE_CHECKING:
    from nsw.apart import Limits
    from nsw.campaign.selection import Selection
    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.load import Overrides

__all__ = ["app"]

argument = partial(typer.Argument, show_default=False)
option = partial(typer.Option, show_default=False)


# --- options that several commands take, and what their values mean ----------------------------------------


Formats = StrEnum("Formats", ["TABLE", "JSON", "CSV", "PARQUET"])
AnswerFormats = StrEnum("AnswerFormats", ["TABLE", "JSON", "CSV", "PARQUET", "MARKDOWN", "HTML"])
PlotFormats = StrEnum("PlotFormats", ["TABLE", "JSON", "CSV", "PARQUET", "MARKDOWN", "HTML", "SVG", "PNG"])
ReadFormats = StrEnum("ReadFormats", ["TABLE", "JSON", "CSV", "PARQUET", "HTML", "SVG", "PNG"])
By = StrEnum("By", ["CASE", "FIGURE", "KERNEL", "CLASS", "RANGE", "METRIC"])
BaselineAction = StrEnum("BaselineAction", ["SET", "LS", "RM"])
Action = StrEnum("Action", ["LS", "SHOW", "CHECK", "TRANSLATE"])
Tool = StrEnum("Tool", ["NCU", "NVPROF"])
Document = StrEnum("Document", ["RECIPE", "SITES", "ANSWERS"])

Recipe = Annotated[str, argument(help="Recipe file, or the name of a shipped one.")]
Site = Annotated[
    str | None,
    option(
        "--site",
        "-s",
        envvar="NSW_SITE",
        help="The site to run on; default: that of a sites file, else local. `nsw sites` lists them.",
        show_envvar=True,
    ),
]
Sites = Annotated[list[Path] | None, option("--sites", help="Sites file(s) to look in first.")]
Root = Annotated[Path | None, option("--root", help="Folder of campaigns; NSW_ROOT or ./campaigns if not given.")]
Campaign = Annotated[str | None, argument(help="Campaign: folder, id or its beginning; the newest if not given.")]
CampaignOrRuns = Annotated[
    str | None,
    argument(help="Campaign: folder, id or its beginning; the newest if not given. Or runs of it, as with --case."),
]
CampaignOption = Annotated[
    str | None, option("--campaign", "-c", help="Campaign: folder, id or its beginning; the newest if not given.")
]
_FORMAT = option("--format", "-f", help="Output format; default: by the ending of --output, else a table.")
Format = Annotated[Formats | None, _FORMAT]
AnswerFormat = Annotated[AnswerFormats | None, _FORMAT]
PlotFormat = Annotated[PlotFormats | None, _FORMAT]
ReadFormat = Annotated[ReadFormats | None, _FORMAT]
Json = Annotated[bool, option("--json", help="Short for --format json.")]
Plot = Annotated[
    str | None,
    option(
        "--plot",
        metavar="NAME",
        help="With -o FILE.svg or .png: scaling, time, sweep, map, roofline, timeline, intervals, waterfall ...;"
        " default: the first one.",
    ),
]
Output = Annotated[
    Path | None,
    option(
        "--output",
        "-o",
        help="File to write; for csv and parquet also a folder, with one file for each table.",
        parser=output_path,
        metavar="PATH",
    ),
]
MaxUnpacked = Annotated[
    str | None,
    option(
        "--max-unpacked",
        metavar="SIZE",
        help="The most that a packed file may unpack to, such as 20G; larger ones are refused.",
    ),
]
MaxMemory = Annotated[
    str | None,
    option(
        "--max-memory",
        metavar="SIZE",
        help="The most memory that reading may take, such as 64G; default: 16G, or three quarters of the machine's.",
    ),
]
MaxTime = Annotated[
    str | None,
    option(
        "--max-time",
        metavar="TIME",
        help="The most processor time that reading may take, such as 5h; default: 2m, and 5 s more for each MB.",
    ),
]
Yes = Annotated[bool, option("--yes", "-y", help="Answer yes to all questions.")]


Set = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a parameter (gpus=1,2) or a key (resources.time=30m) of the recipe; may be repeated.",
    ),
]
Cases = Annotated[
    list[str] | None,
    option(
        "--case",
        help="Only cases with these parameters (gpus=2,batch=16 or batch=8,16) or names. Repeated, single parameters"
        " must all hold (of one parameter any value); the rest adds cases.",
    ),
]
Exclude = Annotated[list[str] | None, option("--exclude", help="No cases with these parameters or names.")]
Passes = Annotated[list[str] | None, option("--pass", help="Only this pass; may be repeated.")]
Fit = Annotated[bool, option("--fit", help="Skip cases too large for the site, with the reason.")]

Against = Annotated[
    str | None,
    option(
        "--against",
        metavar="REF",
        help="Run each case on both sides, in pairs: before, with the program of a git revision or of a campaign's"
        " folder, or with other values (n=2,mode=fast); and after, as it is now.",
    ),
]

Now = Annotated[bool, option("--now", help="Start although another campaign runs on this machine.")]
Into = Annotated[
    str | None,
    option(
        "--into",
        metavar="CAMPAIGN",
        help="Add the runs that this campaign lacks; run those again whose program or parameters changed.",
    ),
]
Only = Annotated[
    list[str] | None,
    option(
        "--case",
        help="Only these: a case, parameters (gpus=2,batch=16), a pass, a run, a pattern or a job id. Repeated, single"
        " parameters must all hold (of one parameter any value); the rest adds runs.",
    ),
]
Without = Annotated[list[str] | None, option("--exclude", help="Without these, named as with --case.")]


def selection(only: list[str] | None, without: list[str] | None) -> Selection:
    """The runs that are meant."""
    from nsw.campaign.selection import Selection

    return Selection(tuple(only or ()), tuple(without or ()))


def folder_to_extend(context: typer.Context, campaign: str, root: Path | None) -> CampaignFolder:
    """The campaign of --into.

    Raises:
        UsageError: --site names another site than its own; NSW_SITE is a default, which a campaign's own site replaces.
    """
    folder = campaign_folder(campaign, root)
    source, named_site = context.get_parameter_source("site"), context.params.get("site")
    if source is None or source.name != "COMMANDLINE":
        return folder
    from nsw.campaign.attach import site_of_local_campaign

    own_site = site_of_local_campaign(campaign, root)
    if named_site != own_site:
        raise UsageError(
            f"a campaign stays on its site: {folder.id} is on {own_site}, and --site names {named_site}",
            hint="leave out --site, or run the recipe as a campaign of its own, without --into",
        )
    return folder


def overrides(
    settings: list[str] | None,
    cases: list[str] | None,
    excluded: list[str] | None,
    passes: list[str] | None,
    *,
    fit: bool,
    against: str | None,
) -> Overrides:
    """What a command line changes of a recipe."""
    from nsw.recipe.load import Overrides

    texts = tuple(settings or ()), tuple(passes or ()), tuple(cases or ()), tuple(excluded or ())
    return Overrides(*texts, fit=fit, against=against)


def limits(memory: str | None, time: str | None) -> Limits:
    """What a process that reads files may take."""
    from nsw.apart import Limits

    return Limits(quantity(memory, "--max-memory"), quantity(time, "--max-time"))


def quantity(text: str | None, flag: str) -> int | None:
    """The bytes of an option's value, of those of time the seconds."""
    if text is None:
        return None
    from nsw.recipe.units import Fault, parse_duration, parse_size

    try:
        return parse_duration(text) if flag in {"--max-time", "--since"} else parse_size(text)
    except Fault as fault:
        raise UsageError(f"{flag}: {fault.message}", hint=fault.hint) from None


def target(
    format: Formats | AnswerFormats | PlotFormats | ReadFormats | None,
    json: bool,
    output: Path | None,
    formats: type[Formats | AnswerFormats | PlotFormats | ReadFormats] = Formats,
) -> Target:
    """How data is to be printed and where; an answer can be Markdown or a page, by the file's ending."""
    return Target("json", output) if json else chosen(format and format.value, output, list(formats))


def campaign_folder(campaign: str | None, root: Path | None, named: str | None = None) -> CampaignFolder:
    """The campaign, named by its place or with -c, which every command of a campaign takes."""
    from nsw.engine import folder as folders

    if campaign is not None and named is not None and campaign != named:
        raise UsageError(f"two campaigns are named: {campaign} and {named}")
    return folders.find(folders.root(root), campaign if named is None else named)


# --- planning and driving ----------------------------------------------------------------------------------


@command()
def init(
    command: Annotated[
        list[str] | None, argument(metavar="-- COMMAND", help="The command line to make a recipe for, after --.")
    ] = None,
    new_site: Annotated[
        str | None, option("--site", "-s", metavar="NAME", help="Write a site of this name instead.")
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
    from nsw.cli import planning

    if sum(map(bool, (command, new_site and script is None, shipped, script))) != 1:
        raise UsageError(
            "nsw init needs one of: a command line, --from, --from-script, --site",
            hint="`nsw init -- python train.py --batch 8`, `nsw init --from alexnet_scaling`,"
            " `nsw init --from-script job.sh`, `nsw init --site mine`",
        )
    if host is not None and (new_site is None or script is not None):
        raise UsageError("--host belongs to --site")
    if script is not None:
        return planning.init_from_script(script, new_site, output, force)
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
    against: Against = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
    campaign: Into = None,
    root: Root = None,
) -> int:
    """Show what a recipe would run on a site, its maximum cost, and what the site cannot do."""
    from nsw.cli import planning

    options = overrides(settings, cases, exclude, passes, fit=fit, against=against)
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
    against: Against = None,
    into: Annotated[Path | None, option("--into", help="Write the scripts into this folder instead.")] = None,
) -> int:
    """Print the job scripts of a recipe."""
    from nsw.cli import planning

    return planning.render(
        recipe, site, sites, into, overrides(settings, cases, exclude, passes, fit=fit, against=against)
    )


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
    against: Against = None,
    dry_run: Annotated[bool, option("--dry-run", help="Show the plan and stop, as `nsw plan` does.")] = False,
    campaign: Into = None,
    note: Annotated[
        str | None, option("--note", metavar="TEXT", help="What to know of it, shown by ls, status and compare.")
    ] = None,
    now: Now = False,
) -> int:
    """Run a recipe: plan, run, collect, read, answer."""
    from nsw.cli import planning, running

    options = overrides(settings, cases, exclude, passes, fit=fit, against=against)
    if campaign is not None:
        if note is not None:
            raise UsageError("--note cannot be combined with --into: a campaign keeps its own")
        folder = folder_to_extend(context, campaign, root)
        if dry_run:
            return planning.plan_into(folder, recipe, sites, Target("table"), options)
        return running.run_into(folder, recipe, sites, options, yes=yes, now=now)
    if dry_run:
        return planning.plan(recipe, site, sites, Target("table"), options, root)
    return running.run(recipe, site, sites, root, options, note=note, yes=yes, now=now)


@command()
def resume(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    download: Annotated[
        str | None,
        option(
            "--download",
            metavar="SIZE",
            help="How much may be downloaded from the site from now on, such as 50G; by default its limits.download.",
        ),
    ] = None,
    now: Now = False,
) -> int:
    """Continue a campaign; finished runs are not repeated."""
    from nsw.cli import running

    quantity(download, "--download")
    return running.resume(campaign_folder(campaign, root, named), download, now=now)


@command()
def retry(
    runs: Annotated[
        list[str] | None,
        argument(
            help="Runs to do again: their ids or a part that only one has, cases, parameters (gpus=2), patterns, job"
            " ids; a campaign may stand first. If none is named, all that failed, were lost or cancelled, or lack a"
            " required figure."
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    failed: Annotated[
        bool, option("--failed", help="Only those that failed, were lost or lack a required figure.")
    ] = False,
    choose_again: Annotated[
        bool,
        option(
            "--choose-again",
            help="Choose the kernels for guided counters again; by default the earlier choice is kept.",
        ),
    ] = False,
    case: Only = None,
    exclude: Without = None,
    time: Annotated[
        str | None, option("--time", metavar="TIME", help="A new time limit for what is retried, such as 30m.")
    ] = None,
    update_app: Annotated[bool, option("--update-app", help="Copy the program again from its original place.")] = False,
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
        option(
            "--recipe",
            help="Take the figures and the report section from this recipe, also next time; default: from the one named"
            " last, else from the campaign's own file.",
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
        list[str] | None, argument(help="Runs: ids, parts or patterns of them, cases, job ids; all if none is named.")
    ] = None,
    files: Annotated[
        list[str] | None,
        option(
            "--file",
            help="Patterns of file names; by default reports for the GUIs (*.nsys-rep, *.ncu-rep, *.nvvp, ...).",
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
        argument(metavar="CAMPAIGN", help="Its id or the beginning of it; without it, list the campaigns on the site."),
    ] = None,
    site: Site = None,
    sites: Sites = None,
    root: Root = None,
    yes: Yes = False,
) -> int:
    """Take over a campaign that another machine began on a site, and go on with it here.

    The nsw that drove it before submits nothing more from then on. What nsw would do here for it is shown first.
    """
    from nsw.cli import running

    return running.attach(campaign, site, sites, root, yes=yes)


@command()
def adopt(
    campaign: Annotated[str, argument(metavar="PATH", help="The campaign's folder, or its id.")],
    root: Root = None,
    yes: Yes = False,
) -> int:
    """Let nsw act for a campaign that was made elsewhere, such as one from an archive.

    Shown first: the host that nsw would connect to, the programs that it would start, the scratch folder, and notify.
    """
    from nsw.cli import running

    return running.adopt(campaign_folder(campaign, root), yes=yes)


@command()
def clean(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    everything: Annotated[
        bool, option("--everything", help="Also remove files of runs that were never downloaded.")
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", help="Show what would be removed, and stop.")] = False,
    case: Only = None,
    exclude: Without = None,
    yes: Yes = False,
) -> int:
    """Remove what a finished campaign left on its site; reports and tables here stay."""
    from nsw.cli import running

    folder, chosen = campaign_folder(campaign, root, named), selection(case, exclude)
    return running.clean(folder, chosen, include_uncollected=everything, dry_run=dry_run, yes=yes)


@command()
def throttle(
    running: Annotated[int, argument(min=0, metavar="N", help="Jobs and array tasks; 0 holds all that wait.")],
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
) -> int:
    """Change how many of a campaign's jobs and array tasks run at a time, while it runs.

    The nsw that drives it hears of it at once, on Slurm with one scontrol for an array; where none drives it, this
    command passes it on itself. What runs already goes on.
    0 holds: nothing new begins until another number.
    """
    from nsw.cli import running as commands

    return commands.throttle(running, campaign_folder(campaign, root, named))


# --- looking -------------------------------------------------------------------------------------------------


@command()
def status(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    runs: Annotated[bool, option("--runs", help="List every run.")] = False,
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
    once: Annotated[bool, option("--once", help="Print the state once and exit.")] = False,
) -> int:
    """Show the live progress of a campaign that another nsw drives or that no nsw drives; read-only."""
    from nsw.cli import looking

    return looking.watch(campaign_folder(campaign, root, named), once=once)


@command()
def logs(
    run: Annotated[
        str | None,
        argument(
            help="Run or build: its id or a part that only one has, its case, parameters, pass, a pattern, a job id;"
            " the one that failed if not given, also of a campaign that is named."
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Number of last lines; 0 prints all.")] = 40,
    follow: Annotated[bool, option("--follow", "-f", help="Follow the output until the run ends.")] = False,
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
def list_campaigns(
    root: Root = None,
    since: Annotated[
        str | None, option("--since", metavar="TIME", help="Only those that began so long ago at most, such as 30d.")
    ] = None,
    figure: Annotated[str | None, option("--figure", help="With this figure of each case: its median.")] = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """List the campaigns."""
    from nsw.cli import looking

    ago = quantity(since, "--since")
    return looking.list_campaigns(root, target(format, json, output), since=ago, figure=figure)


@command()
def summarize(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    table: Annotated[
        str | None,
        option(
            "--table",
            help="One table as rows: scaling, compare, hotspots, kernels, roofline, api, copies, figures, functions,"
            " model, gpu_summary ...",
        ),
    ] = None,
    top: Annotated[
        int | None,
        option(
            "--top",
            min=1,
            help="With --table: so many rows, of each case in hotspots, kernels, roofline, api, copies and functions,"
            " of each run in tables of reports.",
        ),
    ] = None,
    full: Annotated[bool, option("--full", help="All tables behind the first screen.")] = False,
    plot: Plot = None,
    format: PlotFormat = None,
    json: Json = False,
    output: Output = None,
    max_memory: MaxMemory = None,
    max_time: MaxTime = None,
) -> int:
    """Print the answer of a campaign: what was found, a table, what to try."""
    from nsw.cli import summarizing

    which = (campaign, named, root, selection(case, exclude))
    goal = target(format, json, output, PlotFormats)
    return summarizing.summarize(which, table, goal, limits(max_memory, max_time), top, full=full, plot=plot)


@command()
def report(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    output: Annotated[
        Path | None,
        option("--output", "-o", help="File to write; default: CAMPAIGN.html in this folder.", parser=output_path),
    ] = None,
    timeline: Annotated[
        str | None,
        option("--timeline", metavar="CASE", help="Also draw one iteration of this case, whose report is read for it."),
    ] = None,
    max_memory: MaxMemory = None,
    max_time: MaxTime = None,
) -> int:
    """Write the answer of a campaign as a page: one HTML file with plots, tables and conditions."""
    from nsw.cli import summarizing

    which = (campaign, named, root, selection(case, exclude))
    return summarizing.report(which, output, limits(max_memory, max_time), timeline)


@command()
def export(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
    trace: Annotated[
        Path | None,
        option("--trace", metavar="FILE", help="The timelines, for https://ui.perfetto.dev; its size is shown first."),
    ] = None,
    ranks: Annotated[list[int] | None, option("--rank", help="With --trace: only this rank; may be repeated.")] = None,
    step: Annotated[
        str | None,
        option("--step", metavar="N", help="With --trace: only this iteration, or these: 5-7; the first of all is 0."),
    ] = None,
    csv: Annotated[Path | None, option("--csv", metavar="FOLDER", help="All tables, a CSV file each.")] = None,
    parquet: Annotated[
        Path | None, option("--parquet", metavar="FOLDER", help="All tables, a Parquet file each.")
    ] = None,
    yes: Yes = False,
    max_memory: MaxMemory = None,
    max_time: MaxTime = None,
) -> int:
    """Write what a campaign measured for other programs: timelines for Perfetto, all tables as CSV or Parquet."""
    from nsw.cli import exporting

    which = (campaign, named, root, selection(case, exclude))
    bounds = limits(max_memory, max_time)
    if (trace is not None) + (csv is not None) + (parquet is not None) != 1:
        raise UsageError(
            "nsw export needs one of: --trace FILE, --csv FOLDER, --parquet FOLDER",
            hint="`nsw export --trace timeline.pftrace`, `nsw export --csv tables/`",
        )
    if trace is None and (ranks or step):
        raise UsageError("--rank and --step belong to --trace")
    if trace is not None:
        return exporting.export_trace(which, trace, bounds, ranks=ranks, steps=exporting.steps_of(step), yes=yes)
    target = Target("csv", Folder(csv)) if csv is not None else Target("parquet", Folder(parquet or ""))
    return exporting.export_tables(which, target, bounds)


Sides = Annotated[
    list[str] | None,
    argument(
        metavar="A B",
        help="What is compared with, and what is compared: campaigns, baselines, CAMPAIGN:CASE, reports. Or one"
        " campaign of `nsw run --against`, which holds both; the newest if none is named.",
    ),
]


@command()
def compare(
    sides: Sides = None,
    root: Root = None,
    by: Annotated[By, typer.Option("--by", help="What is compared.")] = By.CASE,
    same: Annotated[str, typer.Option("--same", metavar="PERCENT", help="Differences below count as none.")] = "1%",
    plot: Plot = None,
    format: PlotFormat = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """Compare two campaigns, cases or reports: what got faster, how certain that is, what did it."""
    from nsw.cli import comparing

    goal = target(format, json, output, PlotFormats)
    return comparing.compare(sides or [], root, goal, by=by.value, same=comparing.share(same), plot=plot)


@command()
def gate(
    sides: Sides = None,
    rules: Annotated[
        list[str] | None,
        option(
            "--rule",
            metavar="RULE",
            help="Such as 'images_per_sec: -2%' (it may fall by 2 % at most) or 'step_ms: +2% or undecided'; may be"
            " repeated. Default: report.gate of B's recipe.",
        ),
    ] = None,
    root: Root = None,
    format: AnswerFormat = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """Hold B to rules beside A: exit code 4 where one fails, 5 where the runs do not decide."""
    from nsw.cli import comparing

    return comparing.gate(sides or [], root, target(format, json, output, AnswerFormats), rules=rules or [])


@command()
def noise(
    recipe: Recipe,
    site: Site = None,
    sites: Sites = None,
    root: Root = None,
    pairs: Annotated[int, typer.Option("--pairs", min=3, help="How many pairs of each case.")] = 12,
    settings: Set = None,
    cases: Cases = None,
    exclude: Exclude = None,
    fit: Fit = False,
    yes: Yes = False,
    now: Now = False,
) -> int:
    """Run a recipe beside itself: how much its figures scatter where nothing changed, for compare and gate."""
    from nsw.cli import comparing

    options = overrides(settings, cases, exclude, None, fit=fit, against=None)
    return comparing.noise(recipe, site, sites, root, options, pairs=pairs, yes=yes, now=now)


@command()
def baseline(
    action: Annotated[BaselineAction, argument(help="set: name a campaign. ls: list the names. rm: forget one.")],
    name: Annotated[str | None, argument(metavar="NAME", help="The name, such as main.")] = None,
    campaign: Campaign = None,
    root: Root = None,
    format: Format = None,
    json: Json = False,
    output: Output = None,
) -> int:
    """Give campaigns names, for `nsw compare` and `nsw gate`."""
    from nsw.cli import comparing

    return comparing.baseline(action.value, name, campaign, root, target(format, json, output))


@command()
def read(
    files: Annotated[
        list[Path] | None, argument(help="Reports of any profiler, also packed with gzip; - is standard input.")
    ] = None,
    table: Annotated[
        list[str] | None,
        option(
            "--table",
            "-t",
            help="Only this table; may be repeated. Traces, kernels and roofline are made only on request.",
        ),
    ] = None,
    steps: Annotated[
        str | None, option("--steps", help="The NVTX range that marks an iteration of the program.")
    ] = None,
    where: Annotated[
        list[str] | None,
        option(
            "--where",
            metavar="TEST",
            help="Only rows with name~gemm, kind=memcpy, calls>10 (times in ns); may be repeated.",
        ),
    ] = None,
    launch: Annotated[int | None, option("--launch", help="Only rows of this launch (Nsight Compute).")] = None,
    top: Annotated[int | None, option("--top", min=1, help="At most this many rows of each table.")] = None,
    full: Annotated[bool, option("--full", help="All tables instead of the answer.")] = False,
    formats: Annotated[bool, option("--formats", help="List the formats that can be read.")] = False,
    plot: Plot = None,
    format: ReadFormat = None,
    json: Json = False,
    output: Output = None,
    max_unpacked: MaxUnpacked = None,
    max_memory: MaxMemory = None,
    max_time: MaxTime = None,
) -> int:
    """Read reports of any profiler: what they show, and their tables."""
    from nsw.cli import reading

    goal = target(format, json, output, ReadFormats)
    bounds = limits(max_memory, max_time)
    return reading.read(
        files or [], table or [], goal, formats=formats, max_unpacked=quantity(max_unpacked, "--max-unpacked"),
        limits=bounds, steps=steps, conditions=where or (), launch=launch, top=top, full=full,
        plot=plot,
    )  # fmt: skip


@command()
def metrics(
    action: Annotated[
        Action,
        argument(
            help="ls: list metrics. show: explain one. check: whether a chip has them. translate: each tool's names."
        ),
    ],
    names: Annotated[
        list[str] | None,
        argument(
            metavar="NAME",
            help="Portable names, groups, names of ncu or nvprof; of ls also families and parts of names.",
        ),
    ] = None,
    chip: Annotated[str | None, option("--chip", help="Chip, compute capability or GPU: gh100, 9.0, H100.")] = None,
    tool: Annotated[Tool | None, option("--tool", help="Only by this tool.")] = None,
    site: Annotated[
        str | None, option("--site", "-s", help="On this site's chip; check also asks its own ncu, once a week.")
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
    action: Annotated[str | None, argument(metavar="check", help="check: test whether the site works.")] = None,
    name: Annotated[str | None, argument(metavar="NAME", help="The site to check.")] = None,
    node: Annotated[
        bool, option("--node", help="With check: also test a compute node, with a one-minute job.")
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
