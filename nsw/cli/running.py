"""`nsw run`, `resume`, `attach`, `retry`, `cancel`, `throttle`: show what happens, and ask where it must be asked."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.ledger import Ledger, State
from nsw.campaign.ledger_rows import STOPPED
from nsw.campaign.selection import Selection, as_named, campaign_of_words
from nsw.cli import answering, notices
from nsw.cli.notices import tell
from nsw.errors import Exit, UsageError
from nsw.present.untrusted_text import say
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.attach import Attachable
    from nsw.campaign.events import Event
    from nsw.campaign.running import Running
    from nsw.recipe.overrides import Overrides

_ALL = Selection()


def run(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    root: Path | None,
    yes: bool,
    options: Overrides | None = None,
    now: bool = False,
) -> int:
    """Plan, ask when it is dear, make the campaign, carry it out, answer."""
    from nsw.campaign import start
    from nsw.campaign.planning import make_plan
    from nsw.campaign.running import Running
    from nsw.campaign.start import expected_cost
    from nsw.present.plan_view import show_plan
    from nsw.present.terminal import console
    from nsw.site_check.facts import warnings

    home = folders.root_to_write(root)
    planned = make_plan(recipe, site, sites, options, notices.show)
    lock, differences = start.lock_of(planned)
    kinds = {run.pass_kind for run in planned.plan.runs}
    known = warnings(planned.place.site.model_dump(mode="json", by_alias=True), counters="counters" in kinds)
    told = [*(w.render() for w in planned.recipe.warnings), *differences, *known]
    expected = expected_cost(home, planned.plan)
    show_plan(console(sys.stderr), planned.plan, told, expected=expected)
    ready = start.check(planned)
    if not yes and (cost := start.too_dear(planned, expected)):
        _confirm(cost)
    folder = start.start(home, ready, lock)
    tell(f"campaign {folder.path}")
    return _carry_out(Running(folder, now=now))


def run_into(
    campaign: str,
    root: Path | None,
    recipe: str,
    sites: Sequence[Path] | None,
    yes: bool,
    options: Overrides | None = None,
    now: bool = False,
) -> int:
    """Add to a campaign the runs that it lacks, do those again that changed, carry it out, answer."""
    from nsw.campaign import start
    from nsw.campaign.extend import extend, extension
    from nsw.campaign.running import Running
    from nsw.campaign.start import expected_cost
    from nsw.present.plan_view import show_changes, show_plan
    from nsw.present.terminal import console

    found = extension(folders.find(folders.root(root), campaign), recipe, sites, options, notices.show)
    err = console(sys.stderr)
    show_changes(err, found.folder.id, found.changes)
    if found.planned is None:
        tell("nothing to do: the campaign already has every run of the recipe in its current form")
        return Exit.GOOD
    expected = expected_cost(found.folder.path.parent, found.planned.plan)
    show_plan(err, found.planned.plan, [w.render() for w in found.planned.recipe.warnings], expected=expected)
    if not yes and (cost := start.too_dear(found.planned, expected)):
        _confirm(cost)
    extend(found)
    return _carry_out(Running(found.folder, now=now))


def _confirm(cost: str) -> None:
    """Ask a person whether to go on.

    Raises:
        UsageError: There is nobody to ask, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{cost}; there is no terminal to confirm this on", hint="--yes answers yes")
    import typer

    if not typer.confirm(f"{cost}. Go on?"):
        raise UsageError("not confirmed; nothing was submitted")


def resume(campaign: str | None, root: Path | None, download: str | None = None, now: bool = False) -> int:
    """Go on where an earlier nsw was ended."""
    from nsw.campaign import retry as retrying

    folder = folders.find(folders.root(root), campaign)
    return _carry_out(retrying.resume(folder, notices.show, download), now=now)


def attach(campaign: str | None, site: str | None, sites: Sequence[Path] | None, root: Path | None) -> int:
    """Take a campaign over and go on with it; with none named, list those of the site.

    Without `site` it is the one of the campaign, where that is here already, else the default one.

    Raises:
        UsageError: The site is this machine.
        CampaignError: There is no such campaign, or it cannot be taken over.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.attach import campaigns_on_site, site_of_campaign_here

    if site is None and campaign is not None:
        site = site_of_campaign_here(campaign, root)
    with campaigns_on_site(site, sites) as there:
        if campaign is None:
            _list_campaigns(there.campaigns, f"{there.place.site.name}:{there.base}")
            return Exit.GOOD
        found = there.attach(campaign, root)
    if found.taken_over:
        by = f" from {found.owner}" if found.owner else ""
        tell(f"campaign {found.folder.path}: taken over{by}")
    return resume(str(found.folder.path), root)


def _list_campaigns(known: Sequence[Attachable], where: str) -> None:
    from nsw.present.terminal import console, table

    if known:
        console().print(table(None, ("campaign", "owner"), [(one.id, one.owner) for one in known], wide="owner"))
    else:
        tell(f"there is no campaign to attach to in {where}")


def retry(
    runs: list[str],
    campaign: str | None,
    root: Path | None,
    failed: bool,
    choose_again: bool = False,
    selection: Selection = _ALL,
    change: tuple[str | None, bool, Sequence[Path] | None] = (None, False, None),
    now: bool = False,
) -> int:
    """Plan runs again that did not succeed, and carry them out; those alone that are named."""
    from nsw.campaign import retry as retrying

    folder, runs = campaign_of_words(runs, campaign, root)
    time, update_app, sites = change
    running = retrying.retry(
        folder, runs, notices.show, failed=failed, choose_again=choose_again, selection=selection,
        change=retrying.Change(retrying.seconds("--time", time), update_app, sites),
    )  # fmt: skip
    if running is None:
        tell("nothing to retry: no run failed, was lost or cancelled, or lacks a required figure")
        return Exit.GOOD
    return _carry_out(running, now=now)


def cancel(campaign: str | None, root: Path | None, selection: Selection = _ALL) -> int:
    """End what is queued or running, or some of it, here or through the nsw that drives the campaign."""
    from nsw.campaign import cancel as cancelling
    from nsw.campaign.events import Message

    def listener(event: Event) -> None:
        if isinstance(event, Message):
            notices.show(event)

    folder = folders.find(folders.root(root), campaign)
    chosen = cancelling.to_cancel(folder, selection) if selection else None
    if chosen == []:
        tell("nothing to cancel: these runs have ended")
        return Exit.GOOD
    before = cancelling.standing_of(folder)
    if before.is_over:
        tell(f"{folder.id} has ended, and nothing is left to cancel ({headline(before.counts)})")
        return Exit.GOOD
    cancelling.cancel(folder, listener, lambda: tell("asked the nsw that drives the campaign to cancel"), chosen)
    after = cancelling.standing_of(folder)
    say(headline(after.counts))
    if count := after.not_reduced:
        say(f"reports of {plural(count, 'run')} were not reduced and stay on the site: `nsw retry` reduces them")
    return Exit.GOOD


def throttle(running: int, campaign: str | None, root: Path | None) -> int:
    """Change how many tasks run at a time."""
    from nsw.campaign import cancel as cancelling

    folder = folders.find(folders.root(root), campaign)
    standing = cancelling.standing_of(folder)
    unheld = cancelling.throttle(folder, running)
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
        tell(f"`nsw resume {as_named(folder)}` continues it")
    return Exit.GOOD


def _carry_out(running: Running, *, now: bool = False) -> int:
    """Drive a campaign to its end with a live view, then print what it shows."""
    running.now = running.now or now
    from nsw.present.live import Watch

    folder = running.folder
    with Watch(running) as watch:
        try:
            with _ended_as_by_ctrl_c():
                running.drive(watch.show)
        except KeyboardInterrupt:
            watch.stop()
            _tell_of_interruption(folder)
            return Exit.INTERRUPTED
    with Ledger(folder.ledger, read_only=True) as ledger:
        code = answering.answer(folder, ledger, running.only)
        left, stopped = ledger.counts().get(State.PLANNED, 0), ledger.meta(STOPPED)
    if left:
        waits = f"{plural(left, 'run')} still {'waits' if left == 1 else 'wait'}" + (
            f", since {stopped}" if stopped else ""
        )
        tell(f"{waits}: `nsw resume {as_named(folder)}` continues with the rest")
    return code


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, unless they are ignored (nohup)."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    known = (signal.SIGTERM, signal.SIGHUP)
    before = {one: signal.signal(one, end) for one in known if signal.getsignal(one) is signal.SIG_DFL}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _tell_of_interruption(folder: folders.CampaignFolder) -> None:
    with Ledger(folder.ledger, read_only=True) as ledger:
        counts = ledger.counts()
    going, left = sum(counts.get(s, 0) for s in ("submitted", "queued", "running")), counts.get(State.PLANNED, 0)
    # what no scheduler has yet: nothing of it begins while nsw is away
    waiting = (
        f"\n{plural(left, 'run')} {'waits' if left == 1 else 'wait'} for `nsw resume {as_named(folder)}`"
        if left
        else ""
    )
    if not going:
        _say_wrapped("ended; no run is in flight" + (waiting or f": `nsw resume {as_named(folder)}` goes on"))
        return
    _say_wrapped(
        f"ended, with {plural(going, 'run')} in flight that nsw leaves alone:"
        f" `nsw resume {as_named(folder)}` goes on, `nsw cancel {as_named(folder)}` ends them.{waiting}"
    )


def _say_wrapped(text: str) -> None:
    """Lines on stderr that are broken between words and in no command."""
    from nsw.present.terminal import console
    from nsw.present.wrapping import wrapped

    out = console(sys.stderr)
    out.print()
    for line in text.splitlines():
        out.print(wrapped(out, line), soft_wrap=True)
