"""What changes a campaign, from `nsw run` to `nsw clean`: show what happens, and ask where it must be asked."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsw.campaign import cancel as cancelling
from nsw.campaign import start
from nsw.campaign.answers import Results, results
from nsw.campaign.cancel import standing_of
from nsw.campaign.running import Running
from nsw.campaign.selection import brief_campaign_argument, campaign_argument, campaign_of_words, campaign_option
from nsw.cli.application import command
from nsw.cli.options import (
    CampaignOption,
    ChosenCampaign,
    ChosenRuns,
    ForModel,
    Into,
    Now,
    PlannedRecipe,
    RecipeOptions,
    Root,
    Site,
    Sites,
    To,
    Yes,
    argument,
    campaign_folder,
    folder_to_extend,
    option,
    size_option,
    time_option,
)
from nsw.cli.output import Target, print_on_stderr, show_message
from nsw.engine import folder as folders
from nsw.engine.events import Event, Message
from nsw.engine.ledger_rows import BAD, State
from nsw.errors import Exit, UsageError
from nsw.present.plan_view import show_changes, show_plan
from nsw.present.status_view import DownloadBar, ReadingBar, Watch, calls_line
from nsw.present.terminal import TextTable, console
from nsw.present.untrusted_text import print_untrusted
from nsw.quantities import size
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.campaign.clean import Cleaning
    from nsw.campaign.modelling import ModelPlan
    from nsw.engine.folder import CampaignFolder

_FETCHED = 20  # files that are listed
_MAX_KEPT = 8

Until = StrEnum("Until", ["DECIDED"])


# --- nsw run -----------------------------------------------------------------------------------------------


@command("nsw run recipe.yaml --site mycluster --yes")
def run(
    options: PlannedRecipe,
    root: Root = None,
    yes: Yes = False,
    dry_run: Annotated[bool, option("--dry-run", help="Show the plan and stop, as `nsw plan` does.")] = False,
    campaign: Into = None,
    note: Annotated[
        str | None,
        option("--note", metavar="TEXT", help="A remark on the campaign, shown by ls, status and compare."),
    ] = None,
    now: Now = False,
    until: Annotated[
        Until | None,
        option("--until", help="With --against: add pairs until each case is decided, or --at-most is reached."),
    ] = None,
    at_most: Annotated[
        str | None,
        option(
            "--at-most",
            metavar="PRICE",
            help="Of --until and --for-model: how long the jobs may run in all, such as 40m, or '2 node-hours',"
            " '4 gpu-hours'.",
        ),
    ] = None,
    for_model: ForModel = None,
    to: To = None,
    within: Annotated[
        str | None,
        option(
            "--within",
            metavar="PERCENT",
            help="Of --for-model: add repeats until its range is so near to the prediction, by default 10%.",
        ),
    ] = None,
) -> int:
    """Run a recipe: plan, run, collect, read, answer."""
    from nsw.campaign.until import until_decided, until_predicted
    from nsw.cli import planning

    if (for_model, to, within) != (None, None, None):
        model_plan = planning.plan_for_model(options, root, for_model, to, at_most, campaign or until)
        adding = until_predicted(model_plan, within or "10%", options.sites)
        options = _options_for_model(options, model_plan)
    else:
        is_comparison = options.overrides.against is not None and campaign is None
        adding = until_decided(until, at_most, options.sites, is_comparison=is_comparison)
    if campaign is None:
        if dry_run:
            return planning.show_plan(options, Target("table"), root)
        return carry_out(Running(begin_campaign(options, root, note=note, yes=yes, until=adding)), now=now)
    if note is not None:
        raise UsageError("--note cannot be combined with --into: a campaign keeps its own")
    folder = folder_to_extend(options, campaign, root)
    if dry_run:
        return planning.show_extension(folder, options, Target("table"))
    return _extend_and_run(folder, options, yes=yes, now=now)


def _options_for_model(options: RecipeOptions, model_plan: ModelPlan) -> RecipeOptions:
    """The options with the chosen cases and the first repeats."""
    from nsw.campaign.until import FIRST_REPEATS

    chosen = ",".join(f"{value:g}" for value in model_plan.points.values)
    repeats = min(FIRST_REPEATS, model_plan.points.repeats)
    overrides = replace(
        options.overrides,
        cases=(*options.overrides.cases, f"{model_plan.over}={chosen}"),
        settings=(*options.overrides.settings, f"repeats={repeats}"),
    )
    return replace(options, overrides=overrides)


def begin_campaign(
    options: RecipeOptions,
    root: Path | None,
    *,
    note: str | None,
    yes: bool,
    until: Mapping[str, Any] = MappingProxyType({}),
) -> CampaignFolder:
    """Plan, ask when it is dear, make the campaign.

    Args:
        options: The recipe and its site.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.
        note: A remark that is stored with the campaign.
        yes: Whether a dear campaign begins without a question.
        until: What the ledger keeps of `--until decided` or `--for-model`; empty: no runs are added.

    Returns:
        The campaign's folder; nothing is submitted yet.

    Raises:
        InputError: The recipe has faults, or the site would refuse a job.
        UsageError: The answer was no, or there is no terminal to ask on.
    """
    from nsw.campaign.planning import make_plan, with_note
    from nsw.campaign.start import with_window_notes
    from nsw.site_check.check import warnings

    home = folders.root(root)
    planned = make_plan(options.recipe, options.site, options.sites, options.overrides, show_message)
    planned = with_note(planned, note)
    lock, differences = start.lock_of(planned)
    kinds = {run.pass_kind for run in planned.plan.runs}
    site_warnings = warnings(planned.site.site.model_dump(mode="json", by_alias=True), counters="counters" in kinds)
    warning_lines = [*(w.render() for w in planned.recipe.warnings), *differences, *site_warnings]
    expected = start.expected_cost(home, planned.plan)
    plan = with_window_notes(planned.plan, planned.recipe.recipe, home)
    if plan.replay:  # what is said of recordings, the answer says
        plan = replace(plan, note=None, absent=())
    show_plan(console(sys.stderr), plan, warning_lines, expected=expected)
    ready = start.check_readiness(planned)
    for text in ready.warnings:
        _show_warning(text)
    if not yes:
        _confirm_cost(start.cost_question(planned, expected))
    folder = start.make_campaign(home, ready, lock, _show_warning, until=until)
    if until:
        goal = (
            "repeats are added until the law predicts well"
            if "model" in until
            else ("pairs are added to these until each case is decided")
        )
        print_on_stderr(f"{goal}, for {until['at_most']} at most")
    print_on_stderr(f"campaign {folder.path}")
    return folder


def _extend_and_run(folder: CampaignFolder, options: RecipeOptions, *, yes: bool, now: bool) -> int:
    """Add the missing runs to a campaign, repeat those that changed, run it, and print the answer."""
    from nsw.campaign.changes import apply_extension, extension

    changes = extension(folder, options.recipe, options.sites, options.overrides, show_message)
    err = console(sys.stderr)
    show_changes(err, folder.id, changes.changes)
    if changes.planned is None:
        print_on_stderr("nothing to do: the campaign already has every run of the recipe in its current form")
        return Exit.GOOD
    expected = start.expected_cost(folder.path.parent, changes.planned.plan)
    warnings = [w.render() for w in changes.planned.recipe.warnings]
    show_plan(err, changes.planned.plan, warnings, expected=expected)
    if not yes:
        _confirm_cost(start.cost_question(changes.planned, expected))
    apply_extension(changes)
    return carry_out(Running(folder), now=now)


def _show_warning(text: str) -> None:
    show_message(Message(text, "warning"))


def _confirm_cost(cost: str | None) -> None:
    if cost:
        alone = f"{cost}; there is no terminal to confirm this on"
        confirm(f"{cost}. Go on?", alone, "not confirmed; nothing was submitted", err=False)


def confirm(question: str, alone: str, refused: str, *, default: bool = False, err: bool = True) -> None:
    """Ask a person whether to go on.

    Args:
        question: The question on the terminal.
        alone: The error where there is no terminal.
        refused: The error after a no.
        default: The answer of an empty line.
        err: Whether the question goes to stderr.

    Raises:
        UsageError: There is no terminal to ask on, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(alone, hint="--yes answers yes")
    if not typer.confirm(question, default=default, err=err):
        raise UsageError(refused)


# --- what goes on with a campaign --------------------------------------------------------------------------


@command("nsw resume alexnet-scaling-20261121")
def resume(
    folder: ChosenCampaign,
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
    from nsw.campaign import retry

    size_option("--download", download)
    return carry_out(retry.resume(folder, show_message, download), now=now)


@command("")
def adopt(
    campaign: Annotated[str, argument(metavar="PATH", help="The campaign's folder, or its id.")],
    root: Root = None,
    yes: Yes = False,
) -> int:
    """Let nsw act for a campaign that was made elsewhere, such as one from an archive.

    Shown first: the host that nsw would connect to, the programs that it would start, the scratch folder, and notify.
    """
    from nsw.campaign.attach import adopt as adopt_folder

    folder = campaign_folder(campaign, None, root)
    new = adopt_folder(folder, _consent_callback(yes=yes), _show_warning)
    already = "" if new else " already"
    print_on_stderr(
        f"campaign {folder.id}: nsw acts for it{already}; `nsw summarize {shlex.quote(campaign)}` prints its answer"
    )
    return Exit.GOOD


def _consent_callback(*, yes: bool) -> Callable[[str, list[str]], object]:
    """Shows what nsw would do for a campaign that was made elsewhere, and asks unless the answer is yes."""

    def consent(question: str, lines: list[str]) -> None:
        for line in lines:
            print_untrusted(line, sys.stderr)
        if not yes:
            confirm(question, f"{question} There is no terminal to answer on; nothing was done", "nothing was done")

    return consent


@command("nsw attach alexnet-scaling-20261121 --site mycluster")
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
    from nsw.campaign.attach import campaigns_on_site, site_of_local_campaign

    if site is None and campaign is not None:
        site = site_of_local_campaign(campaign, root)
    with campaigns_on_site(site, sites) as site_campaigns:
        if campaign is None:
            if campaigns := [(c.id, c.owner) for c in site_campaigns.campaigns]:
                console().print(TextTable(None, ("campaign", "owner"), campaigns, wide="owner"))
            else:
                location = f"{site_campaigns.loaded_site.site.name}:{site_campaigns.base}"
                print_on_stderr(f"there is no campaign to attach to in {location}")
            return Exit.GOOD
        attached = site_campaigns.attach(campaign, root, _consent_callback(yes=yes), _show_warning)
    if attached.taken_over:
        by = f" from {attached.owner}" if attached.owner else ""
        print_on_stderr(f"campaign {attached.folder.path}: taken over{by}")
    return resume(attached.folder)


@command("nsw retry gpus-2_batch-8.timeline.r1")
def retry(
    runs: Annotated[
        list[str] | None,
        argument(
            help="Runs to do again: their ids or a part that only one has, cases, parameters (gpus=2), patterns, job"
            " ids; a campaign may stand first. If none is named, all that failed, are invalid, were lost or cancelled,"
            " or lack a required figure."
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    failed: Annotated[
        bool, option("--failed", help="Only those that failed, are invalid, were lost or lack a required figure.")
    ] = False,
    choose_again: Annotated[
        bool,
        option(
            "--choose-again",
            help="Choose the kernels for guided counters again; by default the earlier choice is kept.",
        ),
    ] = False,
    time: Annotated[
        str | None, option("--time", metavar="TIME", help="A new time limit for what is retried, such as 30m.")
    ] = None,
    update_app: Annotated[bool, option("--update-app", help="Copy the program again from its original place.")] = False,
    sites: Sites = None,
    now: Now = False,
    *,
    selection: ChosenRuns,
) -> int:
    """Repeat runs that did not succeed; earlier attempts are kept."""
    from nsw.campaign import retry as retrying
    from nsw.campaign.changes import Change

    folder, words = campaign_of_words(runs or [], campaign, root)
    change = Change(time_option("--time", time), update_app, sites)
    running = retrying.retry(
        folder, words, show_message, failed=failed, choose_again=choose_again, selection=selection, change=change
    )
    if running is None:
        print_on_stderr(
            "nothing to retry: no run failed, is invalid, was lost or cancelled, or lacks a required figure"
        )
        return Exit.GOOD
    return carry_out(running, now=now)


@command("nsw cancel alexnet-scaling-20261121")
def cancel(context: typer.Context, folder: ChosenCampaign, selection: ChosenRuns, yes: Yes = False) -> int:
    """Cancel a campaign's queued and running runs; finished ones are kept."""
    chosen = cancelling.cancellable_runs(folder, selection) if selection else None
    if chosen == []:
        print_on_stderr("nothing to cancel: these runs have ended")
        return Exit.GOOD
    before = cancelling.standing_of(folder)
    if before.is_over:
        print_on_stderr(f"{folder.id} has ended, and nothing is left to cancel ({headline(before.counts)})")
        return Exit.GOOD
    is_named = selection or context.params["campaign"] or context.params["named"]
    if not is_named and not yes and sys.stdin.isatty():
        question = (
            f"Cancel {plural(before.left, 'run')} of {folder.id}, the newest campaign ({headline(before.counts)})?"
        )
        confirm(question, "", "nothing was cancelled")
    asked = "asked the nsw that drives the campaign to cancel"
    cancelling.cancel(folder, _show_if_message, lambda: print_on_stderr(asked), chosen)
    after = cancelling.standing_of(folder)
    print_untrusted(headline(after.counts))
    if count := after.not_reduced:
        print_untrusted(
            f"reports of {plural(count, 'run')} were not reduced and stay on the site: `nsw retry` reduces them"
        )
    return Exit.GOOD


def _show_if_message(event: Event) -> None:
    if isinstance(event, Message):
        show_message(event)


@command("nsw throttle 4")
def throttle(
    running: Annotated[int, argument(min=0, metavar="N", help="Jobs and array tasks; 0 holds all that wait.")],
    folder: ChosenCampaign,
) -> int:
    """Change how many of a campaign's jobs and array tasks run at a time, while it runs.

    The nsw that drives it hears of it at once, on Slurm with one scontrol for an array; where none drives it, this
    command passes it on itself. What runs already goes on.
    0 holds: nothing new begins until another number.
    """
    standing = cancelling.standing_of(folder)
    unheld = cancelling.throttle(folder, running, _show_if_message)
    if not standing.left:
        later = (
            f"; `nsw retry` will keep to {plural(running, 'task')} at a time"
            if standing.retryable_runs and running
            else ""
        )
        later = later or (
            "; what `nsw retry` releases is held until `nsw throttle N`" if standing.retryable_runs else ""
        )
        print_on_stderr(f"{folder.id} is over, and nothing is left to throttle ({headline(standing.counts)}){later}")
        return Exit.GOOD
    not_over = f"{plural(standing.left, 'run')} not over"
    if running:
        print_untrusted(f"{folder.id}: {plural(running, 'task')} at a time; {not_over}")
    else:
        print_untrusted(f"{folder.id}: held; no new run starts until `nsw throttle N`; {not_over}")
        waiting = standing.counts.get(State.SUBMITTED, 0) + standing.counts.get(State.QUEUED, 0)
        if unheld and waiting:
            print_untrusted(f"nsw cannot hold jobs of {unheld}: the {waiting} that it has may begin")
    if not folders.is_driven(folder):
        print_on_stderr(f"`nsw resume {campaign_argument(folder)}` continues it")
    return Exit.GOOD


# --- until a campaign ends ---------------------------------------------------------------------------------


def carry_out(running: Running, *, now: bool) -> int:
    """Drive a campaign to its end with a live view, then print what it shows."""
    folder, running.now = running.folder, now
    with Watch(running) as watch:
        try:
            with _signals_as_ctrl_c():
                running.drive(watch.show)
        except KeyboardInterrupt:
            watch.stop()
            _report_interruption(folder)
            return Exit.INTERRUPTED
    with results(folder) as campaign_results:
        code = _print_answer(campaign_results, running.only)
        left, stopped = campaign_results.counts.get(State.PLANNED, 0), campaign_results.stopped
    if left:
        since = f", since {stopped}" if stopped else ""
        waits = f"{plural(left, 'run')} still {'waits' if left == 1 else 'wait'}{since}"
        print_on_stderr(f"{waits}: `nsw resume {campaign_argument(folder)}` continues with the rest")
    return code


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, unless they are ignored (nohup)."""

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    end_signals = (signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, raise_interrupt) for n in end_signals if signal.getsignal(n) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report_interruption(folder: CampaignFolder) -> None:
    counts = standing_of(folder).counts
    going, left = sum(counts.get(s, 0) for s in ("submitted", "queued", "running")), counts.get(State.PLANNED, 0)
    resume = f"`nsw resume {campaign_argument(folder)}` goes on"
    if going:
        in_flight = f"ended, with {plural(going, 'run')} in flight that nsw leaves alone"
        text = f"{in_flight}: {resume}, `nsw cancel {campaign_argument(folder)}` ends them."
    else:
        text = "ended; no run is in flight" + ("" if left else f": {resume}")
    print_on_stderr("")
    print_on_stderr(text)
    if left:  # what no scheduler has yet: nothing of it begins while nsw is away
        print_on_stderr(
            f"{plural(left, 'run')} {'waits' if left == 1 else 'wait'} for `nsw resume {campaign_argument(folder)}`"
        )


def show_sides(folder: CampaignFolder, next_command: str, below: Sequence[str] = ()) -> bool:
    """Print the verdict over both sides of a campaign, with room for what is `below`; False where it has not both."""
    from nsw.campaign.compare import compare_own_sides
    from nsw.present.compare_view import show_screen

    both = compare_own_sides(folder)
    if both is not None:
        show_screen(both, f"nsw compare {brief_campaign_argument(folder)}", next_command, below)
    return both is not None


def _print_answer(campaign_results: Results, only: Sequence[str] | None = None) -> int:
    """Print what the campaign shows, briefly; 1 when something failed, of all or of those runs that were asked for."""
    from nsw.recipe.matrix import SIDE

    name = brief_campaign_argument(campaign_results.folder)
    next_command = f"`nsw summarize {name} --full` has all tables and findings"
    styled_lines = _lines_below_answer(campaign_results, name)
    below = [text for text, _ in styled_lines]
    if SIDE not in campaign_results.parameters or not show_sides(campaign_results.folder, next_command, below):
        from nsw.present.summary_view import show_summary

        show_summary(
            console(), campaign_results.summary, full=False, next_command=next_command, campaign=name,
            drawable_cases=campaign_results.drawable_cases, below=below,
        )  # fmt: skip
    err = console(sys.stderr)
    for text, style in styled_lines:
        err.print(text, style=style)
    return Exit.GOOD if campaign_results.is_good(only) else Exit.SOME_FAILED


def _lines_below_answer(campaign_results: Results, name: str) -> list[tuple[str, str | None]]:
    """What went wrong in a campaign, how it ended and what comes next, each line with its style."""
    from nsw.present.problems import short_lines

    problems = campaign_results.problems
    if campaign_results.is_recorded:  # nobody can do anything about a warning of the machine that was recorded
        problems = [problem for problem in problems if problem.severity == "error"]
    plain = [*campaign_results.matched_lines(), campaign_results.headline, calls_line(campaign_results.calls)]
    plain += _next_steps(campaign_results)
    return [*short_lines(problems, f"nsw problems {name}"), *((text, None) for text in plain if text)]


def _next_steps(campaign_results: Results) -> list[str]:
    """What a person may want to see now: why something failed, and what is there."""
    bad = [r for r in campaign_results.runs if r.state in BAD]
    steps, option = [], campaign_option(campaign_results.folder)
    if bad:
        again = campaign_results.repeat_command(option)
        steps.append(f"`nsw logs {bad[0].id}{option}` prints its output; {again}")
    elif shorter := campaign_results.shorter_limit:
        steps.append(shorter)
    if campaign_results.is_recorded:
        steps.append(
            f"next: `nsw report {brief_campaign_argument(campaign_results.folder)}` writes this as a page;"
            " `nsw init -- python train.py` begins a recipe of your own; docs/tutorial.md"
        )
    return steps


# --- what came of a campaign, here and on its site ---------------------------------------------------------


@command("")
def reread(
    folder: ChosenCampaign,
    recipe: Annotated[
        Path | None,
        option(
            "--recipe",
            help="Take the figures, checks and the report section from this recipe, also next time; default: from the"
            " one named last, else from the campaign's own file.",
        ),
    ] = None,
    *,
    selection: ChosenRuns,
) -> int:
    """Read a campaign's reports again: for lost tables, a new figure or a corrected regex or check."""
    from nsw.campaign import reread as rereading

    done = rereading.reread(folder, recipe, show_message, ReadingBar(), selection)
    if done.taken:
        print_untrusted(f"from {done.source}:")
    for line in done.taken:
        print_untrusted(f"  {line}")
    for line in done.changes or ["nothing changed: the tables are as they were"]:
        print_untrusted(line)
    if done.unread and not done.changes:  # whose answer is that of before
        return Exit.SOME_FAILED
    with results(folder) as campaign_results:
        return max(_print_answer(campaign_results), Exit.SOME_FAILED if done.unread else Exit.GOOD)


@command("")
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
    *,
    selection: ChosenRuns,
) -> int:
    """Download files of runs that were left on the site, such as reports for Nsight's GUIs."""
    from nsw.campaign.fetch import GUI_FILES, files_on_site

    folder, words = campaign_of_words(runs or [], campaign, root)
    with files_on_site(folder, words, files or (), selection) as site_files:
        for file in site_files.files[:_FETCHED]:
            print_on_stderr(f"{size(file.size):>12}  {file.name}")
        if len(site_files.files) > _FETCHED:
            print_on_stderr(f"{'':12}  and {len(site_files.files) - _FETCHED} more")
        if not site_files.files:
            print_on_stderr(
                f"no file of these runs on the site matches {', '.join(files or GUI_FILES)}: `--file '*'` lists"
                " every file; `nsw clean` removes them"
            )
            return Exit.GOOD
        missing, over = site_files.missing, site_files.is_over_limit
        if not missing:
            print_on_stderr(f"{plural(len(site_files.files), 'file')}, all of them here")
            return Exit.GOOD
        summary_text = f"{plural(len(missing), 'file')}, {size(site_files.size)}"
        summary_text += f", more than the site's limits.download ({size(site_files.limit)})" if over else ""
        # without a terminal only what is above the limit needs a yes
        if not yes and (over or sys.stdin.isatty()):
            alone = f"{summary_text}: there is no terminal to confirm this on; nothing was downloaded"
            confirm(f"Bring {summary_text}?", alone, "nothing was downloaded", default=not over)
        with DownloadBar() as bar:
            site_files.bring(bar.show)
    print_untrusted(str(folder.path / "fetched"))
    return Exit.GOOD


@command("nsw clean alexnet-scaling-20261121")
def clean(
    folder: ChosenCampaign,
    everything: Annotated[
        bool, option("--everything", help="Also remove files of runs that were never downloaded.")
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", help="Show what would be removed, and stop.")] = False,
    yes: Yes = False,
    *,
    selection: ChosenRuns,
) -> int:
    """Remove what a finished campaign left on its site; reports and tables here stay."""
    from nsw.campaign.clean import open_cleaning

    with open_cleaning(folder, selection) as cleaning:
        if cleaning.leftovers.is_gone:
            state_text = "holds nothing of these runs" if selection else "is gone already"
            print_on_stderr(f"{cleaning.location} {state_text}")
            return Exit.GOOD
        _show_leftovers(cleaning, include_uncollected=everything)
        if not cleaning.leftovers.files(include_uncollected=everything):
            print_on_stderr("nothing to remove")
            return Exit.GOOD
        if dry_run:
            return Exit.GOOD
        if not yes:
            alone = "there is no terminal to confirm this on; nothing was removed"
            confirm("Remove them?", alone, "nothing was removed")
        cleaning.remove(include_uncollected=everything)
    print_on_stderr(f"removed; reports and tables are kept in {folder.path}")
    return Exit.GOOD


def _show_leftovers(cleaning: Cleaning, *, include_uncollected: bool) -> None:
    left = cleaning.leftovers
    files = plural(len(left.files(include_uncollected=include_uncollected)), "file")
    freed = size(left.freed_bytes(include_uncollected=include_uncollected))
    print_on_stderr(f"{cleaning.location}: {files} would be removed, which frees {freed}")
    if not left.uncollected:
        return
    total = size(sum(file.size for file in left.uncollected))
    verb = "go too" if include_uncollected else "stay"
    print_on_stderr(f"{plural(len(left.uncollected), 'file')} ({total}) never downloaded {verb}:")
    for file in sorted(left.uncollected, key=lambda file: -file.size)[:_MAX_KEPT]:
        print_on_stderr(f"  {size(file.size):>10}  {file.name}")
    if len(left.uncollected) > _MAX_KEPT:
        print_on_stderr(f"  and {len(left.uncollected) - _MAX_KEPT} more")
    if not include_uncollected:
        print_on_stderr("`nsw fetch --file '*'` downloads files of runs; --everything removes these too")
