"""What changes a campaign, from `nsw run` to `nsw clean`: show what happens, and ask where it must be asked."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsw.campaign.answers import Results, results
from nsw.campaign.selection import Selection, campaign_argument, campaign_of_words, campaign_option
from nsw.cli.output import show_message, tell
from nsw.engine import folder as folders
from nsw.engine.events import Message
from nsw.engine.ledger_rows import Reading, State
from nsw.errors import Exit, UsageError
from nsw.present.terminal import size
from nsw.present.untrusted_text import say
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.attach import Attachable
    from nsw.campaign.clean import Cleaning
    from nsw.campaign.running import Running
    from nsw.engine.events import Event
    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.overrides import Overrides

__all__ = [
    "adopt",
    "attach",
    "begin",
    "cancel",
    "carry_out",
    "clean",
    "confirm",
    "fetch",
    "reread",
    "resume",
    "retry",
    "run",
    "run_into",
    "throttle",
]

_FETCHED = 20  # files that are listed
_MAX_KEPT = 8
_ALL_RUNS = Selection()


def run(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    root: Path | None,
    options: Overrides | None = None,
    *,
    note: str | None = None,
    yes: bool = False,
    now: bool = False,
) -> int:
    """Plan, ask when it is dear, make the campaign, carry it out, answer."""
    from nsw.campaign.running import Running

    folder = begin(recipe, site, sites, root, options, note=note, yes=yes)
    return carry_out(Running(folder), now=now)


def begin(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    root: Path | None,
    options: Overrides | None,
    *,
    note: str | None,
    yes: bool,
) -> CampaignFolder:
    """Plan, ask when it is dear, make the campaign."""
    from nsw.campaign import start
    from nsw.campaign.planning import make_plan, with_note
    from nsw.present.plan_view import show_plan
    from nsw.present.terminal import console
    from nsw.site_check.facts import warnings

    home = folders.root(root)
    planned = with_note(make_plan(recipe, site, sites, options, show_message), note)
    lock, differences = start.lock_of(planned)
    kinds = {run.pass_kind for run in planned.plan.runs}
    site_warnings = warnings(planned.site.site.model_dump(mode="json", by_alias=True), counters="counters" in kinds)
    warning_lines = [*(w.render() for w in planned.recipe.warnings), *differences, *site_warnings]
    expected = start.expected_cost(home, planned.plan)
    show_plan(console(sys.stderr), planned.plan, warning_lines, expected=expected)
    ready = start.check(planned)
    for text in ready.warnings:
        _warn(text)
    if not yes:
        _confirm_cost(start.cost_question(planned, expected))
    folder = start.start(home, ready, lock, _warn)
    tell(f"campaign {folder.path}")
    return folder


def run_into(
    folder: CampaignFolder, recipe: str, sites: Sequence[Path] | None, options: Overrides, *, yes: bool, now: bool
) -> int:
    """Add to a campaign the runs that it lacks, do those again that changed, carry it out, answer."""
    from nsw.campaign import start
    from nsw.campaign.changes import apply_extension, extension
    from nsw.campaign.running import Running
    from nsw.present.plan_view import show_changes, show_plan
    from nsw.present.terminal import console

    campaign_extension = extension(folder, recipe, sites, options, show_message)
    err = console(sys.stderr)
    show_changes(err, folder.id, campaign_extension.changes)
    if campaign_extension.planned is None:
        tell("nothing to do: the campaign already has every run of the recipe in its current form")
        return Exit.GOOD
    expected = start.expected_cost(folder.path.parent, campaign_extension.planned.plan)
    show_plan(
        err,
        campaign_extension.planned.plan,
        [w.render() for w in campaign_extension.planned.recipe.warnings],
        expected=expected,
    )
    if not yes:
        _confirm_cost(start.cost_question(campaign_extension.planned, expected))
    apply_extension(campaign_extension)
    return carry_out(Running(folder), now=now)


def _warn(text: str) -> None:
    show_message(Message(text, "warning"))


def _confirm_cost(cost: str | None) -> None:
    if cost:
        alone = f"{cost}; there is no terminal to confirm this on"
        confirm(f"{cost}. Go on?", alone, "not confirmed; nothing was submitted", err=False)


def confirm(question: str, alone: str, refused: str, *, default: bool = False, err: bool = True) -> None:
    """Ask a person whether to go on.

    Raises:
        UsageError: There is nobody to ask, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(alone, hint="--yes answers yes")
    import typer

    if not typer.confirm(question, default=default, err=err):
        raise UsageError(refused)


def resume(folder: CampaignFolder, download: str | None = None, *, now: bool = False) -> int:
    """Go on where an earlier nsw was ended."""
    from nsw.campaign import retry

    return carry_out(retry.resume(folder, show_message, download), now=now)


def adopt(folder: CampaignFolder, *, yes: bool) -> int:
    """Let nsw act for a campaign that was made elsewhere.

    Raises:
        CampaignError: It is another user's, or others may write it.
        UsageError: Nobody said yes.
    """
    from nsw.campaign import adopt as adopting

    new = adopting.adopt(folder, _consent(yes=yes), _warn)
    tell(f"campaign {folder.id}: nsw acts for it" + ("" if new else " already"))
    return Exit.GOOD


def _consent(*, yes: bool) -> Callable[[str, list[str]], object]:
    """Shows what nsw would do for a campaign that was made elsewhere, and asks unless the answer is yes."""

    def consent(question: str, lines: list[str]) -> None:
        for line in lines:
            say(line, sys.stderr)
        if not yes:
            confirm(question, f"{question} There is no terminal to answer on; nothing was done", "nothing was done")

    return consent


def attach(
    campaign: str | None, site: str | None, sites: Sequence[Path] | None, root: Path | None, *, yes: bool
) -> int:
    """Take a campaign over and go on with it; with none named, list those of the site.

    Without `site` it is the one of the campaign, where that is here already, else the default one.

    Raises:
        UsageError: The site is this machine.
        CampaignError: There is no such campaign, or it cannot be taken over.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.attach import campaigns_on_site, site_of_local_campaign

    if site is None and campaign is not None:
        site = site_of_local_campaign(campaign, root)
    with campaigns_on_site(site, sites) as site_campaigns:
        if campaign is None:
            _list_campaigns(site_campaigns.campaigns, f"{site_campaigns.loaded_site.site.name}:{site_campaigns.base}")
            return Exit.GOOD
        attached = site_campaigns.attach(campaign, root, _consent(yes=yes), _warn)
    if attached.taken_over:
        by = f" from {attached.owner}" if attached.owner else ""
        tell(f"campaign {attached.folder.path}: taken over{by}")
    return resume(attached.folder)


def _list_campaigns(campaigns: Sequence[Attachable], location: str) -> None:
    from nsw.present.terminal import console, table

    if campaigns:
        console().print(
            table(
                None,
                ("campaign", "owner"),
                [(campaign_there.id, campaign_there.owner) for campaign_there in campaigns],
                wide="owner",
            )
        )
    else:
        tell(f"there is no campaign to attach to in {location}")


def retry(
    runs: list[str],
    campaign: str | None,
    root: Path | None,
    selection: Selection = _ALL_RUNS,
    *,
    time: str | None = None,
    update_app: bool = False,
    sites: Sequence[Path] | None = None,
    failed: bool = False,
    choose_again: bool = False,
    now: bool = False,
) -> int:
    """Plan runs again that did not succeed, and carry them out; those alone that are named."""
    from nsw.campaign import retry as retrying

    folder, runs = campaign_of_words(runs, campaign, root)
    change = retrying.Change(retrying.seconds("--time", time), update_app, sites)
    running = retrying.retry(
        folder, runs, show_message, failed=failed, choose_again=choose_again, selection=selection, change=change
    )
    if running is None:
        tell("nothing to retry: no run failed, was lost or cancelled, or lacks a required figure")
        return Exit.GOOD
    return carry_out(running, now=now)


def cancel(folder: CampaignFolder, selection: Selection) -> int:
    """End what is queued or running, or some of it, here or through the nsw that drives the campaign."""
    from nsw.campaign import cancel as cancelling

    chosen = cancelling.cancellable_runs(folder, selection) if selection else None
    if chosen == []:
        tell("nothing to cancel: these runs have ended")
        return Exit.GOOD
    before = cancelling.standing_of(folder)
    if before.is_over:
        tell(f"{folder.id} has ended, and nothing is left to cancel ({headline(before.counts)})")
        return Exit.GOOD
    asked = "asked the nsw that drives the campaign to cancel"
    cancelling.cancel(folder, _show_if_message, lambda: tell(asked), chosen)
    after = cancelling.standing_of(folder)
    say(headline(after.counts))
    if count := after.not_reduced:
        say(f"reports of {plural(count, 'run')} were not reduced and stay on the site: `nsw retry` reduces them")
    return Exit.GOOD


def _show_if_message(event: Event) -> None:
    if isinstance(event, Message):
        show_message(event)


def throttle(running: int, folder: CampaignFolder) -> int:
    """Change how many tasks run at a time."""
    from nsw.campaign import cancel as cancelling

    standing = cancelling.standing_of(folder)
    unheld = cancelling.throttle(folder, running, _show_if_message)
    if not standing.left:
        later = f"; `nsw retry` will keep to {plural(running, 'task')} at a time" if standing.again and running else ""
        later = later or ("; what `nsw retry` releases is held until `nsw throttle N`" if standing.again else "")
        tell(f"{folder.id} is over, and nothing is left to throttle ({headline(standing.counts)}){later}")
        return Exit.GOOD
    not_over = f"{plural(standing.left, 'run')} not over"
    if running:
        say(f"{folder.id}: {plural(running, 'task')} at a time; {not_over}")
    else:
        say(f"{folder.id}: held; no new run starts until `nsw throttle N`; {not_over}")
        waiting = standing.counts.get(State.SUBMITTED, 0) + standing.counts.get(State.QUEUED, 0)
        if unheld and waiting:
            say(f"nsw cannot hold jobs of {unheld}: the {waiting} that it has may begin")
    if not folders.is_driven(folder):
        tell(f"`nsw resume {campaign_argument(folder)}` continues it")
    return Exit.GOOD


def carry_out(running: Running, *, now: bool) -> int:
    """Drive a campaign to its end with a live view, then print what it shows."""
    from nsw.present.live import Watch

    folder, running.now = running.folder, now
    with Watch(running) as watch:
        try:
            with _ended_as_by_ctrl_c():
                running.drive(watch.show)
        except KeyboardInterrupt:
            watch.stop()
            _tell_of_interruption(folder)
            return Exit.INTERRUPTED
    with results(folder) as campaign_results:
        code = _answer(campaign_results, running.only)
        left, stopped = campaign_results.counts.get(State.PLANNED, 0), campaign_results.stopped
    if left:
        waits = f"{plural(left, 'run')} still {'waits' if left == 1 else 'wait'}" + (
            f", since {stopped}" if stopped else ""
        )
        tell(f"{waits}: `nsw resume {campaign_argument(folder)}` continues with the rest")
    return code


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, unless they are ignored (nohup)."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    end_signals = (signal.SIGTERM, signal.SIGHUP)
    before = {
        number: signal.signal(number, end) for number in end_signals if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_of_interruption(folder: CampaignFolder) -> None:
    from nsw.campaign.cancel import standing_of

    counts = standing_of(folder).counts
    going, left = sum(counts.get(s, 0) for s in ("submitted", "queued", "running")), counts.get(State.PLANNED, 0)
    resume = f"`nsw resume {campaign_argument(folder)}` goes on"
    if going:
        in_flight = f"ended, with {plural(going, 'run')} in flight that nsw leaves alone"
        text = f"{in_flight}: {resume}, `nsw cancel {campaign_argument(folder)}` ends them."
    else:
        text = "ended; no run is in flight" + ("" if left else f": {resume}")
    tell("")
    tell(text)
    if left:  # what no scheduler has yet: nothing of it begins while nsw is away
        tell(f"{plural(left, 'run')} {'waits' if left == 1 else 'wait'} for `nsw resume {campaign_argument(folder)}`")


def _show_sides(folder: CampaignFolder, next_command: str) -> bool:
    """Print the verdict over both sides of a campaign; False where it has not both."""
    from nsw.analysis.compared_screen import blocks_of_comparison
    from nsw.campaign.compare import compare_own_sides
    from nsw.present.summary_view import show_first_screen
    from nsw.present.terminal import console

    both = compare_own_sides(folder)
    if both is not None:
        show_first_screen(console(), blocks_of_comparison(both), next_command)
    return both is not None


def _answer(campaign_results: Results, only: Sequence[str] | None = None) -> int:
    """Print what the campaign shows, briefly; 1 when something failed, of all or of those runs that were asked for."""
    from nsw.present.problems import show_short
    from nsw.present.status_view import calls_line
    from nsw.present.terminal import console
    from nsw.recipe.overrides import SIDE

    next_command = f"`nsw summarize {campaign_argument(campaign_results.folder)} --full` has all tables"
    if SIDE not in campaign_results.parameters or not _show_sides(campaign_results.folder, next_command):
        from nsw.present.summary_view import show_summary

        show_summary(console(), campaign_results.summary, full=False, next_command=next_command)
    err = console(sys.stderr)
    show_short(err, campaign_results.problems, f"nsw problems {campaign_argument(campaign_results.folder)}")
    err.print(campaign_results.headline)
    if calls := calls_line(campaign_results.calls):
        err.print(calls)
    for line in _next_steps(campaign_results):
        err.print(line)
    return Exit.GOOD if campaign_results.is_good(only) else Exit.SOME_FAILED


def _next_steps(campaign_results: Results) -> list[str]:
    """What a person may want to see now: why something failed, and what is there."""
    bad = [r for r in campaign_results.runs if r.state in {State.FAILED, State.LOST} or r.reading is Reading.INCOMPLETE]
    steps, option = [], campaign_option(campaign_results.folder)
    if bad:
        again = campaign_results.repeat_command(option)
        steps.append(f"`nsw logs {bad[0].id}{option}` prints its output; {again}")
    return steps


def reread(folder: CampaignFolder, recipe: Path | None, selection: Selection) -> int:
    """Read the collected reports again, print what changed, and answer."""
    from nsw.campaign import reread as rereading
    from nsw.present.live import ReadingBar

    done = rereading.reread(folder, recipe, show_message, ReadingBar(), selection)
    if done.taken:
        say(f"from {done.source}:")
    for line in done.taken:
        say(f"  {line}")
    for line in done.changes or ["nothing changed: the tables are as they were"]:
        say(line)
    with results(folder) as campaign_results:
        return _answer(campaign_results)


def fetch(
    runs: Sequence[str],
    patterns: Sequence[str],
    campaign: str | None,
    root: Path | None,
    selection: Selection,
    *,
    yes: bool,
) -> int:
    """Bring files of runs into the campaign's folder `fetched`; their sizes are shown first.

    Raises:
        CampaignError: The campaign is another user's.
        UsageError: No run has such a name, or nobody said yes.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.fetch import GUI_FILES, files_on_site
    from nsw.present.live import DownloadBar

    folder, runs = campaign_of_words(runs, campaign, root)
    with files_on_site(folder, runs, patterns, selection) as site_files:
        for file in site_files.files[:_FETCHED]:
            tell(f"{size(file.size):>12}  {file.name}")
        if len(site_files.files) > _FETCHED:
            tell(f"{'':12}  and {len(site_files.files) - _FETCHED} more")
        if not site_files.files:
            tell(
                f"no file of these runs on the site matches {', '.join(patterns or GUI_FILES)}: `--file '*'` lists"
                " every file; `nsw clean` removes them"
            )
            return Exit.GOOD
        missing, over = site_files.missing, site_files.is_over_limit
        if not missing:
            tell(f"{plural(len(site_files.files), 'file')}, all of them here")
            return Exit.GOOD
        summary_text = f"{plural(len(missing), 'file')}, {size(site_files.size)}"
        summary_text += f", more than the site's limits.download ({size(site_files.limit)})" if over else ""
        # without a terminal only what is above the limit needs a yes
        if not yes and (over or sys.stdin.isatty()):
            alone = f"{summary_text}: there is no terminal to confirm this on; nothing was downloaded"
            confirm(f"Bring {summary_text}?", alone, "nothing was downloaded", default=not over)
        with DownloadBar() as bar:
            site_files.bring(bar.show)
    say(str(folder.path / "fetched"))
    return Exit.GOOD


def clean(folder: CampaignFolder, selection: Selection, *, include_uncollected: bool, dry_run: bool, yes: bool) -> int:
    """Show what would be removed and its size, ask, remove.

    Raises:
        CampaignError: The campaign is not over, or its reports are not read yet.
        UsageError: Nobody said yes, or no run is meant.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.clean import on_site

    with on_site(folder, selection) as cleaning:
        if cleaning.leftovers.is_gone:
            state_text = "holds nothing of these runs" if selection else "is gone already"
            tell(f"{cleaning.location} {state_text}")
            return Exit.GOOD
        _show_leftovers(cleaning, include_uncollected=include_uncollected)
        if not cleaning.leftovers.files(include_uncollected=include_uncollected):
            tell("nothing to remove")
            return Exit.GOOD
        if dry_run:
            return Exit.GOOD
        if not yes:
            alone = "there is no terminal to confirm this on; nothing was removed"
            confirm("Remove them?", alone, "nothing was removed")
        cleaning.remove(include_uncollected=include_uncollected)
    tell(f"removed; reports and tables are kept in {folder.path}")
    return Exit.GOOD


def _show_leftovers(cleaning: Cleaning, *, include_uncollected: bool) -> None:
    left = cleaning.leftovers
    files = plural(len(left.files(include_uncollected=include_uncollected)), "file")
    tell(
        f"{cleaning.location}: {files} would be removed, which frees"
        f" {size(left.freed(include_uncollected=include_uncollected))}"
    )
    if not left.uncollected:
        return
    total = size(sum(file.size for file in left.uncollected))
    verb = "go too" if include_uncollected else "stay"
    tell(f"{plural(len(left.uncollected), 'file')} ({total}) never downloaded {verb}:")
    for file in sorted(left.uncollected, key=lambda file: -file.size)[:_MAX_KEPT]:
        tell(f"  {size(file.size):>10}  {file.name}")
    if len(left.uncollected) > _MAX_KEPT:
        tell(f"  and {len(left.uncollected) - _MAX_KEPT} more")
    if not include_uncollected:
        tell("`nsw fetch --file '*'` downloads files of runs; --everything removes these too")
