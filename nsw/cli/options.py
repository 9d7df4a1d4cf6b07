"""Options that several commands take, and what their values mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsw.cli.output import Target, chosen, output_path
from nsw.errors import UsageError

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.selection import Selection
    from nsw.recipe.overrides import Overrides


class Formats(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class AnswerFormats(StrEnum):
    """How an answer is printed, which has more than rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"


class OfMetrics(StrEnum):
    """What `nsw metrics` does."""

    LS = "ls"
    SHOW = "show"
    CHECK = "check"
    TRANSLATE = "translate"


class Tool(StrEnum):
    """Profilers with metrics."""

    NCU = "ncu"
    NVPROF = "nvprof"


class Document(StrEnum):
    """Documents with a JSON Schema."""

    RECIPE = "recipe"
    SITES = "sites"
    ANSWERS = "answers"


Recipe = Annotated[str, typer.Argument(help="Recipe file, or the name of a shipped one.", show_default=False)]
Site = Annotated[
    str | None,
    typer.Option(
        "--site",
        "-s",
        envvar="NSW_SITE",
        help="The site to run on; default: that of a sites file, else local. `nsw sites` lists them.",
        show_envvar=True,
        show_default=False,
    ),
]
Sites = Annotated[
    list[Path] | None, typer.Option("--sites", help="Sites file(s) to look in first.", show_default=False)
]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder of campaigns; NSW_ROOT or ./campaigns if not given.", show_default=False),
]
Campaign = Annotated[
    str | None,
    typer.Argument(help="Campaign: folder, id or its beginning; the newest if not given.", show_default=False),
]
CampaignOrRuns = Annotated[
    str | None,
    typer.Argument(
        help="Campaign: folder, id or its beginning; the newest if not given. Or runs of it, as with --case.",
        show_default=False,
    ),
]
CampaignOption = Annotated[
    str | None,
    typer.Option(
        "--campaign", "-c", help="Campaign: folder, id or its beginning; the newest if not given.", show_default=False
    ),
]
_FORMAT = typer.Option(
    "--format", "-f", help="Output format; default: by the ending of --output, else a table.", show_default=False
)
Format = Annotated[Formats | None, _FORMAT]
AnswerFormat = Annotated[AnswerFormats | None, _FORMAT]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.", show_default=False)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write; for csv and parquet also a folder, with one file for each table.",
        show_default=False,
        parser=output_path,
        metavar="PATH",
    ),
]
MaxUnpacked = Annotated[
    str | None,
    typer.Option(
        "--max-unpacked",
        metavar="SIZE",
        help="The most that a packed file may unpack to, such as 20G; larger ones are refused.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to all questions.", show_default=False)]


Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a parameter (gpus=1,2) or a key (resources.time=30m) of the recipe; may be repeated.",
        show_default=False,
    ),
]
Cases = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        help="Only cases with these parameters (gpus=2,batch=16 or batch=8,16) or names. Repeated, single parameters"
        " must all hold (of one parameter any value); the rest adds cases.",
        show_default=False,
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", help="No cases with these parameters or names.", show_default=False)
]
Passes = Annotated[
    list[str] | None, typer.Option("--pass", help="Only this pass; may be repeated.", show_default=False)
]
Fit = Annotated[
    bool, typer.Option("--fit", help="Skip cases too large for the site, with the reason.", show_default=False)
]

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
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        help="Only these: a case, parameters (gpus=2,batch=16), a pass, a run, a pattern or a job id. Repeated, single"
        " parameters must all hold (of one parameter any value); the rest adds runs.",
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None, typer.Option("--exclude", help="Without these, named as with --case.", show_default=False)
]


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
    source, named = context.get_parameter_source("site"), context.params.get("site")
    if source is None or source.name != "COMMANDLINE":
        return folder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import SITE

    with Ledger(folder.ledger, read_only=True) as ledger:
        own = ledger.meta(SITE)
    if named != own:
        raise UsageError(
            f"a campaign stays on its site: {folder.id} is on {own}, and --site names {named}",
            hint="leave out --site, or run the recipe as a campaign of its own, without --into",
        )
    return folder


def overrides(
    settings: list[str] | None, cases: list[str] | None, excluded: list[str] | None, passes: list[str] | None, fit: bool
) -> Overrides:
    """What a command line changes of a recipe."""
    from nsw.recipe.overrides import Overrides

    return Overrides(tuple(settings or ()), tuple(passes or ()), tuple(cases or ()), tuple(excluded or ()), fit)


def size(text: str | None, option: str = "--max-unpacked") -> int | None:
    """The bytes of an option's value."""
    if text is None:
        return None
    from nsw.recipe.faults import Fault
    from nsw.recipe.units import parse_size

    try:
        return parse_size(text)
    except Fault as fault:
        raise UsageError(f"{option}: {fault.message}", hint=fault.hint) from None


def target(
    format: Formats | AnswerFormats | None,
    json: bool,
    output: Path | None,
    known: type[Formats | AnswerFormats] = Formats,
) -> Target:
    """How data is to be printed and where; an answer can be Markdown, in a file that ends in .md."""
    return Target("json", output) if json else chosen(format and format.value, output, list(known))


def campaign_folder(campaign: str | None, root: Path | None, named: str | None = None) -> CampaignFolder:
    """The campaign, named by its place or with -c, which every command of a campaign takes."""
    from nsw.campaign import folder as folders

    if campaign is not None and named is not None and campaign != named:
        raise UsageError(f"two campaigns are named: {campaign} and {named}")
    return folders.find(folders.root(root), campaign if named is None else named)
