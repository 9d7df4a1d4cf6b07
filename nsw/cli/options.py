"""The options that several commands take, and the groups of them that a command gets as one object."""

# no `from __future__ import annotations`: the parameters of a group become those of its commands

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsw.cli.application import Group
from nsw.cli.output import Target, format_by_ending, output_path
from nsw.errors import UsageError

if TYPE_CHECKING:
    from nsw.apart import Limits
    from nsw.campaign.selection import RunsOption, Selection
    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.load import Overrides

argument = partial(typer.Argument, show_default=False)
option = partial(typer.Option, show_default=False)

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
Plot = Annotated[
    str | None,
    option(
        "--plot",
        metavar="NAME",
        help="With -o FILE.svg or .png: scaling, time, sweep, map, roofline, timeline, intervals, waterfall ...;"
        " default: the first one. PNG needs nsw's extra `png`.",
    ),
]
Yes = Annotated[bool, option("--yes", "-y", help="Answer yes to all questions.")]
Now = Annotated[bool, option("--now", help="Start although another campaign runs on this machine.")]
ForModel = Annotated[
    str | None,
    option(
        "--for-model",
        metavar="NAME",
        help="Choose which of its cases to run, and how often, so that `nsw model` over this parameter predicts best.",
    ),
]
To = Annotated[float | None, option("--to", metavar="N", help="Of --for-model: where to predict.")]
Into = Annotated[
    str | None,
    option(
        "--into",
        metavar="CAMPAIGN",
        help="Add the runs that this campaign lacks; run those again whose program or parameters changed.",
    ),
]


# --- what is planned ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecipeOptions:
    """A recipe, what the command line changes of it, and where it is to run.

    Attributes:
        recipe: Its file, or the name of a shipped one.
        site: The site's name; None: the default one.
        sites: Sites files to search first.
        overrides: What is changed of the recipe.
        names_site: Whether --site is on the command line: NSW_SITE is a default.
    """

    recipe: str
    site: str | None
    sites: list[Path] | None
    overrides: "Overrides"
    names_site: bool = False


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
        help="Only cases with these parameters (gpus=2,batch=16 or batch=8,16) or names. Repeat it to narrow: every"
        " parameter must match one of its values. Names add cases.",
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


def _recipe_options(
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
) -> RecipeOptions:
    from nsw.recipe.load import Overrides

    texts = tuple(settings or ()), tuple(passes or ()), tuple(cases or ()), tuple(exclude or ())
    source = context.get_parameter_source("site")
    names_site = source is not None and source.name == "COMMANDLINE"
    return RecipeOptions(recipe, site, sites, Overrides(*texts, fit=fit, against=against), names_site)


PlannedRecipe = Annotated[RecipeOptions, Group(_recipe_options)]
PairedRecipe = Annotated[RecipeOptions, Group(_recipe_options, without=("passes", "against"))]


def folder_to_extend(options: RecipeOptions, campaign: str, root: Path | None) -> "CampaignFolder":
    """Find the campaign of --into.

    Args:
        options: The recipe and its site.
        campaign: The campaign's folder, its id or the beginning of its id.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.

    Raises:
        UsageError: --site names another site than its own; NSW_SITE is a default, which a campaign's own site replaces.
        CampaignError: There is no such campaign.
    """
    folder = campaign_folder(campaign, None, root)
    if not options.names_site:
        return folder
    from nsw.campaign.attach import site_of_local_campaign

    own_site = site_of_local_campaign(campaign, root)
    if options.site != own_site:
        raise UsageError(
            f"a campaign stays on its site: {folder.id} is on {own_site}, and --site names {options.site}",
            hint="leave out --site, or run the recipe as a campaign of its own, without --into",
        )
    return folder


# --- a campaign and its runs -------------------------------------------------------------------------------

Only = Annotated[
    list[str] | None,
    option(
        "--case",
        help="Only these: a case, parameters (gpus=2,batch=16), a pass, a run, a pattern or a job id. Repeat it to"
        " narrow: every parameter must match one of its values. Names add runs.",
    ),
]
Without = Annotated[list[str] | None, option("--exclude", help="Without these, named as with --case.")]


def campaign_folder(campaign: Campaign = None, named: CampaignOption = None, root: Root = None) -> "CampaignFolder":
    """Find the campaign that the first word or -c names; without a name the newest one.

    Args:
        campaign: The first word: a folder, an id or its beginning.
        named: The value of -c, which every command of a campaign takes.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.

    Raises:
        UsageError: Both name a campaign, and not the same one.
        CampaignError: There is no such campaign.
    """
    from nsw.engine import folder as folders

    if campaign is not None and named is not None and campaign != named:
        raise UsageError(f"two campaigns are named: {campaign} and {named}")
    return folders.find(folders.root(root), campaign if named is None else named)


def _selection(case: Only = None, exclude: Without = None) -> "Selection":
    from nsw.campaign.selection import Selection

    return Selection(tuple(case or ()), tuple(exclude or ()))


def _runs_of_campaign(
    campaign: CampaignOrRuns = None,
    named: CampaignOption = None,
    root: Root = None,
    case: Only = None,
    exclude: Without = None,
) -> "RunsOption":
    return campaign, named, root, _selection(case, exclude)


ChosenCampaign = Annotated["CampaignFolder", Group(campaign_folder)]
ChosenRuns = Annotated["Selection", Group(_selection)]
CampaignAndRuns = Annotated["RunsOption", Group(_runs_of_campaign)]


# --- what is read and printed ------------------------------------------------------------------------------

Formats = StrEnum("Formats", ["TABLE", "JSON", "CSV", "PARQUET"])
GateFormats = StrEnum("GateFormats", ["TABLE", "JSON", "CSV", "PARQUET", "MARKDOWN", "HTML", "JUNIT"])
PageFormats = StrEnum("PageFormats", ["TABLE", "JSON", "CSV", "PARQUET", "HTML"])
PlotFormats = StrEnum("PlotFormats", ["TABLE", "JSON", "CSV", "PARQUET", "MARKDOWN", "HTML", "SVG", "PNG"])
ReadFormats = StrEnum("ReadFormats", ["TABLE", "JSON", "CSV", "PARQUET", "HTML", "SVG", "PNG"])


def _output_options(formats: Any) -> Group:
    """The options --format, --json and --output of a command that prints in these formats."""

    def target(
        format: Annotated[
            formats | None,
            option("--format", "-f", help="Output format; default: by the ending of --output, else a table."),
        ] = None,
        json: Annotated[bool, option("--json", help="Short for --format json.")] = False,
        output: Annotated[
            Path | None,
            option(
                "--output",
                "-o",
                help="File to write; for csv and parquet also a folder, with one file for each table.",
                parser=output_path,
                metavar="PATH",
            ),
        ] = None,
    ) -> Target:
        if json:
            return Target("json", output)
        by_name = None if format or output is None else format_by_ending(output, list(formats))
        return Target((format.value if format else by_name) or "table", output)

    return Group(target)


TableTarget = Annotated[Target, _output_options(Formats)]
PageTarget = Annotated[Target, _output_options(PageFormats)]
GateTarget = Annotated[Target, _output_options(GateFormats)]
PlotTarget = Annotated[Target, _output_options(PlotFormats)]
ReadTarget = Annotated[Target, _output_options(ReadFormats)]


def _limits(
    max_memory: Annotated[
        str | None,
        option(
            "--max-memory",
            metavar="SIZE",
            help="The most memory that reading may take, such as 64G; default: 16G, or three quarters of the"
            " machine's.",
        ),
    ] = None,
    max_time: Annotated[
        str | None,
        option(
            "--max-time",
            metavar="TIME",
            help="The most processor time that reading may take, such as 5h; default: 2m, and 5 s more for each MB.",
        ),
    ] = None,
) -> "Limits":
    from nsw.apart import Limits

    return Limits(size_option("--max-memory", max_memory), time_option("--max-time", max_time))


ReadingLimits = Annotated["Limits", Group(_limits)]


def size_option(flag: str, text: str | None) -> int | None:
    """The value of an option in bytes; None where it is not given.

    Raises:
        UsageError: It is no size.
    """
    if text is None:
        return None
    from nsw.recipe.units import option_value, parse_size  # here: most looks at a campaign need nothing of recipes

    return option_value(flag, parse_size, text)


def time_option(flag: str, text: str | None) -> int | None:
    """The value of an option in seconds; None where it is not given.

    Raises:
        UsageError: It is no time.
    """
    if text is None:
        return None
    from nsw.recipe.units import option_value, parse_duration  # here: most looks at a campaign need nothing of recipes

    return option_value(flag, parse_duration, text)
