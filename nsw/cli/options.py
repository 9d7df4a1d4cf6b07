"""Options that several commands take, and what their values mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsw.cli.output import chosen_format as output_format
from nsw.cli.output import output_path
from nsw.errors import UsageError

if TYPE_CHECKING:
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
Format = Annotated[
    Formats | None,
    typer.Option(
        "--format", "-f", help="Output format; default: by the ending of --output, else a table.", show_default=False
    ),
]
AnswerFormat = Annotated[
    AnswerFormats | None,
    typer.Option(
        "--format", "-f", help="Output format; default: by the ending of --output, else a table.", show_default=False
    ),
]
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


def same_site(context: typer.Context, campaign: str, root: Path | None) -> None:
    """Refuse another site than the campaign's; NSW_SITE is a default, which a campaign's own site replaces."""
    source, named = context.get_parameter_source("site"), context.params.get("site")
    if source is None or source.name != "COMMANDLINE":
        return
    from nsw.campaign import folder as folders
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import SITE

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        own = ledger.meta(SITE)
    if named != own:
        raise UsageError(
            f"a campaign stays on its site: {folder.id} is on {own}, and --site names {named}",
            hint="leave out --site, or run the recipe as a campaign of its own, without --into",
        )


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


def chosen_format(format: Formats | None, json: bool, output: Path | None) -> str:
    """The format that was asked for; where none was, that of the file to write, else a table."""
    return "json" if json else output_format(format and format.value, output, [*Formats])


def chosen_answer_format(format: AnswerFormats | None, json: bool, output: Path | None) -> str:
    """The same for an answer, which can be Markdown, in a file that ends in .md."""
    return "json" if json else output_format(format and format.value, output, [*AnswerFormats])


def either(campaign: str | None, named: str | None) -> str | None:
    """The campaign, named by its place or with -c, which every command of a campaign takes."""
    if campaign is not None and named is not None and campaign != named:
        raise UsageError(f"two campaigns are named: {campaign} and {named}")
    return campaign if named is None else named
