"""The commands that look at campaigns, reports, metrics and sites. Bodies import what they need."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations
from typing import Annotated

import typer

from nsw.cli.application import command as _command
from nsw.cli.options import (
    AnswerFormat,
    Campaign,
    CampaignOption,
    CampaignOrRuns,
    Format,
    Json,
    MaxUnpacked,
    Only,
    Output,
    Root,
    Sites,
    Without,
    chosen_answer_format,
)
from nsw.cli.options import Document as _Document
from nsw.cli.options import OfMetrics as _OfMetrics
from nsw.cli.options import Tool as _Tool
from nsw.cli.options import chosen_format as _chosen
from nsw.cli.options import either as _either
from nsw.cli.options import selection as _selection
from nsw.cli.options import size as _size
from nsw.errors import UsageError


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
    """Show the state of a campaign and what went wrong."""
    from nsw.cli import looking

    which = (campaign, named, root, _selection(case, exclude))
    raise typer.Exit(looking.status(which, runs, _chosen(format, json, output), output))


@_command()
def watch(
    campaign: Campaign = None,
    named: CampaignOption = None,
    root: Root = None,
    once: Annotated[bool, typer.Option("--once", help="Print the state once and exit.", show_default=False)] = False,
) -> None:
    """Show the live progress of a campaign that another nsw drives or that no nsw drives; read-only."""
    from nsw.cli import looking

    raise typer.Exit(looking.watch(_either(campaign, named), root, once=once))


@_command()
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
) -> None:
    """Print the output, the errors and the outcome of a run."""
    from nsw.cli import logs as outputs

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
    """List all problems of a campaign's reports, and what to do."""
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
) -> None:
    """Print the results of a campaign: scaling, hotspots, API calls, copies, communication."""
    from nsw.cli import summarizing

    which = (campaign, named, root, _selection(case, exclude))
    chosen = chosen_answer_format(format, json, output)
    raise typer.Exit(summarizing.summarize(which, table, chosen, output, _size(max_unpacked), top))


@_command()
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
    """Print the JSON Schema of recipes or sites files, for editors, or of what --json prints."""
    from nsw.cli import looking

    raise typer.Exit(looking.schema(document.value))


@_command()
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
) -> None:
    """List the sites with their files, or check one: `nsw sites check NAME`."""
    from nsw.cli import checking_sites, looking

    if action is not None:
        if action != "check" or name is None:
            raise UsageError(f"nsw sites {action}: there is `nsw sites` and `nsw sites check NAME`")
        raise typer.Exit(checking_sites.check(name, sites, _chosen(format, json, output), node=node))
    raise typer.Exit(looking.list_sites(sites, _chosen(format, json, output), output))
