"""`nsw run`, `resume`, `retry`, `cancel`: what makes runs happen."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import ENDED, IN_FLIGHT, Ledger, State
from nsw.campaign.meta import AT_A_TIME, SCRATCH
from nsw.campaign.selecting import Selection, selected
from nsw.cli import answering, places
from nsw.cli.naming import as_named
from nsw.cli.planning import renderer, unset_secrets
from nsw.cli.retrying import AGAIN, choose
from nsw.errors import Exit, InputError, UnreachableError, UsageError
from nsw.present.terminal import plural
from nsw.present.text_of_others import say

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.build_step import Builds
    from nsw.campaign.drive import Driver
    from nsw.campaign.ledger import BuildRow, RunRow
    from nsw.campaign.log import Log
    from nsw.plan.model import Job, Plan
    from nsw.present.live import Watch
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.overrides import Overrides
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport


_ALL = Selection()


@dataclass(frozen=True, slots=True)
class _Open:
    """A campaign that this process drives."""

    folder: folders.CampaignFolder
    ledger: Ledger
    driver: Driver
    builds: Builds
    watch: Watch
    log: Log
    transport: Transport
    scratch: str
    share: str


def run(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    root: Path | None,
    yes: bool,
    options: Overrides | None = None,
) -> int:
    """Plan, ask when it is dear, make the campaign, carry it out, answer."""
    from nsw.campaign.begin import Ingredients, begin
    from nsw.campaign.lock import differences, taken
    from nsw.present.plan_view import show_plan
    from nsw.present.terminal import console
    from nsw.scripts.secrets import secrets_text
    from nsw.transport.local import LocalTransport

    home = folders.root_to_write(root)
    made, loaded, place, known = places.make_plan(recipe, site, sites, options)
    before, here = loaded.recipe.lock, LocalTransport()
    lock = taken(made.files, loaded.folder, place.site.name, here, before)
    warnings = [w.render() for w in loaded.warnings] + (differences(before, lock, here) if before else [])
    show_plan(console(sys.stderr), made, warnings)
    if absent := unset_secrets(made, loaded, place):
        raise InputError(absent)
    _reach(place)
    render = renderer(made, place, known)
    asked = _ask(made, loaded, place, render)
    _confirm(made, place, yes)
    # with every default written out: another version of nsw may have others
    data = loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["matrix"] = loaded.recipe.matrix.model_dump(mode="python", by_alias=True)  # numbers as they were written
    data["matrix"]["exclude"] = [*(data["matrix"].get("exclude") or []), *(case.params for case in loaded.left_out)]
    data["app"]["files"] = [f"app/{name}" for _, name in made.files]
    data.pop("sites", None)
    data["lock"] = lock.model_dump(mode="json", exclude_none=True) | {"tools": before.tools if before else {}}
    folder = begin(
        home,
        made,
        Ingredients(
            data,
            place.site.model_dump(mode="json", by_alias=True),
            _scratch(place),
            render,
            loaded.path,
            secrets_text(made.secrets, os.environ),
        ),
    )
    with Ledger(folder.ledger) as ledger:
        ledger.set_calls(asked)
    say(f"campaign {folder.path}", file=sys.stderr)
    return _carry_out(folder)


def _scratch(place: LoadedSite) -> str | None:
    """The site's scratch folder with its $VARIABLES and ~ filled in as the site means them.

    Raises:
        UsageError: A variable is not set, or the path is not absolute.
        UnreachableError: The site could not be asked.
    """
    from nsw.cli.asking import way_to

    given = place.site.scratch
    if given is None:
        return None
    with closing(way_to(place)) as transport:
        try:
            path = transport.expand(given)
        except UsageError as fault:
            raise UsageError(f"scratch of site {place.site.name}: {fault.message}", hint=fault.hint) from None
        if not transport.remote:
            _writable(path, place)
    return path


def _writable(path: str, place: LoadedSite) -> None:
    """Raise where the site names a folder that cannot be written, before there is a campaign that needs it."""
    from pathlib import Path

    there = next(p for p in (Path(path), *Path(path).parents) if p.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        what = f"{there} cannot be written" if there.is_dir() else f"{there} is no folder"
        hint = "name a folder of yours that the compute nodes see too, such as /scratch/$USER/nsw"
        where = ("sites", place.site.name, "scratch")
        raise InputError([place.document.diagnostic(where, f"scratch is {path}, but {what}", hint=hint)])


def resume(campaign: str | None, root: Path | None) -> int:
    """Go on where an earlier nsw was ended."""
    from nsw.campaign.canary import Canary

    folder = folders.find(folders.root(root), campaign)
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        Canary(ledger).waive()
        if any(ledger.counts().get(state) for state in (State.PLANNED, State.INTENT)):
            _tell_of_changes(ledger)
    return _carry_out(folder)


def retry(
    runs: list[str],
    campaign: str | None,
    root: Path | None,
    failed: bool,
    choose_again: bool = False,
    selection: Selection = _ALL,
) -> int:
    """Plan runs again that did not succeed, and carry them out; those alone that are named."""
    from nsw.campaign.canary import Canary
    from nsw.campaign.dependents import release_dependents

    folder = folders.find(folders.root(root), campaign)
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        canary = Canary(ledger)
        states = (State.FAILED, State.LOST) if failed else AGAIN
        every = ledger.runs()
        meant = {run.id for run in selected(ledger, every, selection)} if selection else None
        chosen = choose(every, runs, states, canary.again(), job_ids(ledger, every), meant)
        for told in chosen.told:
            say(told, file=sys.stderr)
        if not chosen.runs:
            say("nothing to retry: no run failed, was lost or cancelled, or lacks a required figure", file=sys.stderr)
            return Exit.GOOD
        _tell_of_changes(ledger)
        _forget_done(folder, ledger, chosen.runs)
        with ledger.transaction():
            ledger.release(chosen.runs)
            todo = release_dependents(ledger, chosen.runs, choose_again=choose_again)
            held = canary.tried_again(chosen.runs)
    return _carry_out(folder, only=todo if runs or selection else None, canary=held or not (runs or selection))


def _forget_done(folder: folders.CampaignFolder, ledger: Ledger, runs: Sequence[str]) -> None:
    """Of runs to do again those that were done, as a canary whose report is of no use, must be able to begin."""
    from nsw.campaign.again import put_aside
    from nsw.transport.create import connect

    done = [run.id for run in ledger.runs_named(runs) if run.state is State.DONE]
    if not done:
        return
    site, scratch = ledger.site(), ledger.meta(SCRATCH)
    with closing(connect(site, scratch, folder.commands)) as transport:
        put_aside(transport, scratch, done)


def _tell_of_changes(ledger: Ledger) -> None:
    """Say when the program or the recipe is another by now: the campaign goes on with what it began with."""
    from nsw.campaign.origins import warning
    from nsw.present.terminal import console

    if told := warning(ledger):
        console(sys.stderr).print(f"warning: {told}", style="yellow", soft_wrap=True)


def cancel(campaign: str | None, root: Path | None, selection: Selection = _ALL) -> int:
    """End what is queued or running, or some of it, here or through the nsw that drives the campaign.

    Raises:
        UsageError: No run is meant, or one shares its task with others that are not.
    """
    import time

    from nsw.campaign.drive import ask_to_cancel
    from nsw.errors import CampaignLockedError
    from nsw.present.status_view import headline

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        counts = ledger.counts()
        chosen = None if not selection else _to_cancel(ledger, selection)
    if chosen == []:
        say("nothing to cancel: these runs are over", file=sys.stderr)
        return Exit.GOOD
    if not any(counts.get(state) for state in State if state not in ENDED):
        say(f"{folder.id} is over, and nothing is left to cancel ({headline(counts)})", file=sys.stderr)
        return Exit.GOOD
    try:
        with _opened(folder, quiet=True) as it:
            it.driver.recover()
            it.driver.cancel(chosen)
    except CampaignLockedError:
        ask_to_cancel(folder, chosen)
        say("asked the nsw that drives it to cancel", file=sys.stderr)
        deadline = time.monotonic() + 60
        while (folder.path / "cancel").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    with Ledger(folder.ledger, read_only=True) as ledger:
        say(headline(ledger.counts()))
    return Exit.GOOD


def _to_cancel(ledger: Ledger, selection: Selection) -> list[str]:
    """The runs that are meant and not over: the scheduler ends tasks, so all of a task or none."""
    every = ledger.runs()
    chosen = [run for run in selected(ledger, every, selection) if run.state not in ENDED]
    ids, tasks = {run.id for run in chosen}, {(run.job, run.task): run.id for run in chosen}
    for run in every:
        if run.id not in ids and run.state in IN_FLIGHT and (run.job, run.task) in tasks:
            one = tasks[run.job, run.task]
            raise UsageError(
                f"{run.id} shares a task with {one} (limits.runs_per_job), and would end with it",
                hint="name it too, or exclude both",
            )
    return [run.id for run in chosen]


def throttle(running: int, campaign: str | None, root: Path | None) -> int:
    """Change how many tasks run at a time; the nsw that drives the campaign reads it from the ledger."""
    from nsw.present.status_view import headline

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger) as ledger:
        counts = ledger.counts()
        left = sum(n for state, n in counts.items() if state not in ENDED)
        again = sum(counts.get(state, 0) for state in AGAIN)
        if left or again:
            ledger.set_meta(AT_A_TIME, running)
    if not left:
        later = f"; `nsw retry` will keep to {plural(running, 'task')} at a time" if again else ""
        say(f"{folder.id} is over, and nothing is left to throttle ({headline(counts)}){later}", file=sys.stderr)
        return Exit.GOOD
    say(f"{folder.id}: {plural(running, 'task')} at a time; {plural(left, 'run')} not over")
    if not folders.is_driven(folder):
        say(f"`nsw resume {as_named(folder)}` goes on with it", file=sys.stderr)
    return Exit.GOOD


def _reach(place: LoadedSite) -> None:
    """Ask the scheduler for a sign of life before there is a campaign that would wait for it.

    Raises:
        UnreachableError: It gives none; nothing was made or submitted.
    """
    from nsw.cli.asking import runner_of, way_to
    from nsw.errors import CommandError
    from nsw.schedulers.create import adapter_of
    from nsw.transport.runner import Retry

    adapter = adapter_of(place.site.scheduler)
    if adapter is None:
        return
    runner, command = runner_of(adapter, way_to(place)), adapter.sign_of_life_command()
    try:
        runner.need(command, timeout=60, what=f"asking {adapter.name} for a sign of life", retry=Retry(tries=2))
    except CommandError as fault:
        said = (fault.result.stderr or fault.result.stdout).strip() or "it gave no answer within a minute"
        raise UnreachableError(
            f"the {adapter.name} of site {place.site.name} does not answer `{command[0]}`: {said}",
            hint=f"is this its login node, with {adapter.name}'s commands on PATH?",
        ) from None


def _ask(made: Plan, loaded: LoadedRecipe, place: LoadedSite, render: Callable[[Job, str, str], str]) -> Counter[str]:
    """Ask whether the jobs would be taken, so that a typo costs neither a campaign nor a wait in the queue.

    Returns:
        How often each command of the scheduler was run for it.

    Raises:
        InputError: One would be refused.
    """
    from collections import Counter

    from nsw.cli.asking import ask

    calls: Counter[str] = Counter()
    refused = [p.refused for p in ask(made, loaded, place, render, calls=calls) if p.refused]
    if refused:
        raise InputError(refused)
    return calls


def _confirm(made: Plan, place: LoadedSite, yes: bool) -> None:
    """Ask once when the plan costs more than the site's confirm_above.

    Raises:
        UsageError: It does, and there is nobody to ask or the answer is no.
    """
    limit = place.site.confirm_above
    # on this machine nobody else pays: only a limit that the site states is asked about
    silent = place.site.scheduler == "local" and "confirm_above" not in place.site.model_fields_set
    if yes or silent:
        return
    cost = made.node_hours if limit.unit == "node-hour" else made.gpu_hours
    if cost <= limit.number:
        return
    what = f"this costs up to {cost:.2f} {limit.unit}s, more than the site's confirm_above ({limit.number:g})"
    if not sys.stdin.isatty():
        raise UsageError(f"{what}, and there is no terminal to ask", hint="--yes answers yes")
    import typer

    if not typer.confirm(f"{what}. Go on?"):
        raise UsageError("not confirmed; nothing was submitted")


@contextmanager
def _opened(
    folder: folders.CampaignFolder, *, quiet: bool = False, only: Sequence[str] | None = None, canary: bool = True
) -> Iterator[_Open]:

    from nsw.campaign.access import group_may_read
    from nsw.campaign.build_step import Builds
    from nsw.campaign.canary import Canary
    from nsw.campaign.drive import Driver
    from nsw.campaign.driven import Driven
    from nsw.campaign.left_behind import wait_for_commands
    from nsw.campaign.log import Log
    from nsw.campaign.stages import Stages
    from nsw.cli.guiding import chooser
    from nsw.present.live import Watch
    from nsw.schedulers.create import create
    from nsw.transport.create import connect

    with ExitStack() as stack:
        stack.enter_context(folders.locked(folder))
        ledger = stack.enter_context(Ledger(folder.ledger))
        site: dict[str, Any] = ledger.site()
        share = "group" if site.get("share") == "group" else "nobody"
        stack.enter_context(group_may_read(share))
        scratch = ledger.meta(SCRATCH)
        transport = stack.enter_context(closing(connect(site, scratch, folder.commands)))
        watch, log = Watch(ledger), Log(folder.log)
        wait_for_commands(transport, watch.say)

        def changed(ids: list[str]) -> None:
            rows = ledger.runs_named(ids)
            made = [build for build in ledger.builds() if build.id in ids]
            both: list[RunRow | BuildRow] = [*made, *rows]
            for one in both:
                log.say(f"{one.id} {one.state}" + (f": {one.reason}" if one.reason else ""))
            if not quiet:
                watch.changed(rows)
                for build in made:
                    if build.state in {State.RUNNING, *ENDED}:
                        watch.say(f"{build.state:9} {build.id}" + (f": {build.reason}" if build.reason else ""))

        scheduler = create(site, transport, scratch, folder.id, watch.say)
        if only is not None:
            ledger.choose(only)
        ahead = Canary(ledger, lambda run: answering.fault_of(folder, ledger, run), wanted=canary)
        driven = Driven(folder, ledger, scheduler, transport, scratch, changed)
        builds = Builds(driven)
        stages = Stages(driven, lambda: answering.read_reports(folder, ledger), chooser(folder, ledger, watch.say))
        driver = Driver(driven, ahead, builds, stages)
        yield _Open(folder, ledger, driver, builds, watch, log, transport, scratch, share)


def _waiting(ledger: Ledger, campaign: str) -> str:
    """What no scheduler has yet: nothing of it begins while nsw is away."""
    left = ledger.counts().get(State.PLANNED, 0)
    return f"{plural(left, 'run')} {'waits' if left == 1 else 'wait'} for `nsw resume {campaign}`" if left else ""


def _carry_out(folder: folders.CampaignFolder, *, only: Sequence[str] | None = None, canary: bool = True) -> int:
    from nsw import __version__
    from nsw.campaign import private
    from nsw.campaign.lock import finish
    from nsw.present.status_view import headline

    with _opened(folder, only=only, canary=canary) as it:
        it.log.say(f"nsw {__version__} goes on with {headline(it.ledger.counts())}")
        try:
            with it.watch:
                private.prepare(folder, it.transport, it.scratch, it.share)
                it.builds.prepare()
                adopted = it.driver.recover()
                if adopted:
                    it.watch.say(f"{plural(adopted, 'submission')} in doubt found again")
                it.driver.run()
                for told in it.builds.conclude():
                    it.watch.say(f"error: {told}")
            answering.read_reports(folder, it.ledger)
            for told in finish(folder, it.transport, it.scratch):
                it.watch.say(f"warning: {told}")
            private.forget_secrets(folder, it.ledger, it.transport, it.scratch)
        except KeyboardInterrupt:
            it.log.say("interrupted")
            going = plural(sum(it.ledger.counts().get(s, 0) for s in ("submitted", "queued", "running")), "run")
            say(
                f"\nended, with {going} in flight that nsw leaves alone:"
                f" `nsw resume {as_named(folder)}` goes on, `nsw cancel {as_named(folder)}` ends them."
                + (f"\n{waiting}" if (waiting := _waiting(it.ledger, folder.id)) else ""),
                file=sys.stderr,
            )
            return Exit.INTERRUPTED
        code = answering.answer(folder, it.ledger, only)
        if left := it.ledger.counts().get(State.PLANNED, 0):
            waits = f"{plural(left, 'run')} still {'waits' if left == 1 else 'wait'}"
            say(f"{waits}: `nsw resume {as_named(folder)}` goes on with the rest", file=sys.stderr)
        return code
