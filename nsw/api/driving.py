"""Campaigns planned and driven from Python.

`for event in nsw.run("recipe.yaml", site="mycluster"): print(event)`; of `nsw.dry_run("recipe.yaml")`, which submits
nothing, `runs` is a pandas frame.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nsw.api.results import Campaign, Files, Names, find, frame_of, name_tuple, path_list
from nsw.campaign import retry as retrying
from nsw.campaign import start
from nsw.campaign.attach import adopt as take
from nsw.campaign.attach import refuse_without_consent
from nsw.campaign.changes import Change, apply_extension, extension
from nsw.campaign.planning import Planned as Made
from nsw.campaign.planning import make_plan, with_note
from nsw.campaign.running import Running as Driven
from nsw.campaign.selection import Selection
from nsw.engine import folder as folders
from nsw.engine.events import Event, Message
from nsw.errors import UsageError
from nsw.recipe.load import Overrides
from nsw.recipe.units import option_value, parse_duration
from nsw.wording import headline, plural

if TYPE_CHECKING:
    import pandas as pd

    from nsw.engine.folder import CampaignFolder

Settings: TypeAlias = Mapping[str, Any]
Cases: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]


class Running(Driven):
    """A campaign to be driven: iterate it for its events, or `wait` for its end. It does nothing until one of them.

    The thread that takes the first event drives it to the end. Nothing runs in the background: `next` returns when
    something happened, and while nobody asks, nsw neither submits nor collects; jobs that were submitted go on. To stop
    early leave the loop, with `close` or at the end of a `with` block: the jobs go on, and `nsw.resume` goes on with
    the campaign, as it does after Ctrl-C or a kill.
    """

    @property
    def campaign(self) -> Campaign:
        """The campaign, to be read at any time."""
        return Campaign(self.folder)

    def wait(self, listener: Callable[[Event], object] = lambda _event: None) -> Campaign:
        """Drive the campaign to its end.

        Args:
            listener: Called with each event at once; `print` will do.

        Returns:
            The campaign; its `good` says whether all went well.

        Raises:
            NswError: What ended it early; `nsw.resume` goes on.
        """
        self.drive(listener)
        return self.campaign

    def __repr__(self) -> str:
        left = "" if self.driving else "; iterate it or call wait() to drive it"
        return f"<nsw campaign {self.folder.id}: {headline(self.campaign.counts)}{left}>"


def run(
    recipe: str | Path,
    site: str | None = None,
    *,
    sites: Files | None = None,
    root: str | Path | None = None,
    set: Settings | None = None,  # noqa: A002  the name of the option
    case: Cases | None = None,
    exclude: Cases | None = None,
    passes: Names | None = None,
    fit: bool = False,
    against: str | Path | None = None,
    until: Literal["decided"] | None = None,
    at_most: str | None = None,
    note: str | None = None,
    into: str | Path | Campaign | None = None,
    yes: bool | str = False,
    now: bool = False,
) -> Running:
    """Plan a recipe on a site and make its campaign; iterate what comes back, or call its `wait`, to carry it out.

    Args:
        recipe: The recipe's file, or the name of a shipped one.
        site: The site's name; by default that of NSW_SITE, else the default site of the sites files, else this machine.
        sites: Sites files to search first.
        root: The folder of campaigns; NSW_ROOT or ./campaigns if not given.
        set: Values of parameters and keys: `{"gpus": [1, 2], "resources.time": "30m"}`.
        case: Only these cases: `{"gpus": 2}`, a pattern of names such as `"gpus-2_*"`, or several of these, of which
            those with a single parameter must all hold.
        exclude: None of these cases.
        passes: Only these passes.
        fit: Skip cases that the site cannot hold, instead of refusing the recipe.
        against: Run each case on both sides, in pairs: before, with the program of this git revision or of the campaign
            in this folder, or with other values (`"n=2,mode=fast"`); and after, as it is now.
        until: Add pairs until each case is decided, or `at_most` is reached.
        at_most: How long its jobs may run in all, such as `"40m"`, or `"2 node-hours"`, `"4 gpu-hours"`.
        note: Kept with the campaign and its tables.
        into: Add to this campaign the runs that it lacks, and do those again whose program or parameters changed; it
            stays on its site and keeps its note.
        yes: Start it although it costs more than the site's `confirm_above`; with a price such as `"2 gpu-hours"`:
            unless it may cost more than that.
        now: On this machine: start although another campaign runs here, instead of waiting for its turn.

    Raises:
        InputError: The recipe or a sites file has faults, or the site would refuse a job.
        UsageError: There is no such recipe, site, case or pass; or it costs too much without `yes`.
        UnreachableError: The site does not answer.
    """
    from nsw.campaign.until import until_decided

    messages: list[Message] = []
    chosen = _as_overrides(set, case, exclude, passes, fit=fit, against=against)
    is_comparison = against is not None and into is None
    adding = until_decided(until, at_most, path_list(sites), is_comparison=is_comparison)
    if into is not None:
        if site is not None or note is not None:
            raise UsageError("site and note cannot be combined with into: a campaign keeps its own")
        return _extend_campaign(_find_folder(into, root), str(recipe), path_list(sites), chosen, yes=yes, now=now)
    home = folders.root(Path(root) if root is not None else None)
    planned = make_plan(str(recipe), site_or_default(site), path_list(sites), chosen, messages.append)
    planned = with_note(planned, note)
    lock, differences = start.lock_of(planned)
    messages += [Message(w.render(), "warning") for w in planned.recipe.warnings]
    messages += [Message(text, "warning") for text in differences]
    ready = start.check_readiness(planned)
    messages += [Message(text, "warning") for text in ready.warnings]
    _refuse_high_cost(planned, home, yes=yes)
    folder = start.make_campaign(
        home, ready, lock, lambda text: messages.append(Message(text, "warning")), until=adding
    )
    return _emit_messages(Running(folder, now=now), messages)


def _extend_campaign(
    folder: CampaignFolder, recipe: str, sites: list[Path] | None, chosen: Overrides, *, yes: bool | str, now: bool
) -> Running:
    messages: list[Message] = []
    campaign_extension = extension(folder, recipe, sites, chosen, messages.append)
    if campaign_extension.planned is None:
        return _emit_messages(Running(folder, only=()), messages)
    _refuse_high_cost(campaign_extension.planned, folder.path.parent, yes=yes)
    apply_extension(campaign_extension)
    return _emit_messages(Running(folder, now=now), messages)


def _refuse_high_cost(planned: Made, home: Path, *, yes: bool | str) -> None:
    from nsw.campaign.start import cost_question, expected_cost, reason_above_price

    if isinstance(yes, str) and (cost := reason_above_price(planned, yes)):
        raise UsageError(f"{cost}; nothing was submitted", hint="fewer cases or passes, or a shorter time limit")
    if not yes and (cost := cost_question(planned, expected_cost(home, planned.plan))):
        raise UsageError(f"{cost}; nothing was submitted", hint="yes=True starts it")


def resume(
    campaign: str | Path | Campaign | None = None, root: str | Path | None = None, *, now: bool = False
) -> Running:
    """Continue a campaign; finished runs are not repeated.

    Args:
        campaign: Its folder, id or the beginning of its id; the newest under `root` if not given.
        root: The folder of campaigns; NSW_ROOT or ./campaigns if not given.
        now: On this machine: start although another campaign runs here, instead of waiting for its turn.

    Raises:
        CampaignError: There is no such campaign, or another process drives it.
    """
    messages: list[Message] = []
    folder = _find_folder(campaign, root)
    retrying.resume(folder, messages.append)
    return _emit_messages(Running(folder, now=now), messages)


def attach(
    campaign: str,
    site: str | None = None,
    *,
    sites: Files | None = None,
    root: str | Path | None = None,
    yes: bool = False,
) -> Running:
    """Take over a campaign that another machine began, and go on with it here; the other nsw changes nothing any more.

    Args:
        campaign: Its id, or the beginning of its id.
        site: The site that it runs on, as this machine's sites files have it; by default that of the campaign where it
            is here already, else of NSW_SITE, else the default site.
        sites: Sites files to search first.
        root: The folder of campaigns here; NSW_ROOT or ./campaigns if not given.
        yes: Let nsw act for it here; without it the error says what nsw would do.

    Raises:
        UsageError: There is no such site, or it is this machine; or `yes` is lacking.
        CampaignError: There is no such campaign, or it cannot be taken over.
        UnreachableError: The site gave no answer.
    """
    from nsw.campaign.attach import campaigns_on_site, site_of_local_campaign

    parent = Path(root) if root is not None else None
    site_name = site or site_of_local_campaign(campaign, parent)
    with campaigns_on_site(site_or_default(site_name), path_list(sites)) as on_site:
        attached = on_site.attach(campaign, parent, _consent_callback(yes=yes), lambda _text: None)
    return resume(attached.folder.path)


def adopt(campaign: str | Path, root: str | Path | None = None, *, yes: bool = False) -> Campaign:
    """Let nsw act for a campaign that was made elsewhere, such as one from an archive.

    Args:
        campaign: Its folder, or its id.
        root: The folder of campaigns; NSW_ROOT or ./campaigns if not given.
        yes: Do it; without it the error says what nsw would do.

    Raises:
        CampaignError: It is another user's, or others may write it.
        UsageError: `yes` is lacking.
    """
    folder = _find_folder(campaign, root)
    take(folder, _consent_callback(yes=yes), lambda _text: None)
    return Campaign(folder)


def _consent_callback(*, yes: bool) -> Callable[[str, list[str]], object]:
    return (lambda _question, _lines: None) if yes else refuse_without_consent


def retry(
    campaign: str | Path | Campaign | None = None,
    root: str | Path | None = None,
    *,
    runs: Names = (),
    exclude: Names = (),
    failed: bool = False,
    choose_again: bool = False,
    time: str | None = None,
    update_app: bool = False,
    sites: Files | None = None,
    now: bool = False,
) -> Running | None:
    """Do runs again that did not succeed; None where there are none.

    Args:
        campaign: Its folder, id or the beginning of its id; the newest under `root` if not given.
        root: The folder of campaigns; NSW_ROOT or ./campaigns if not given.
        runs: Only these: their ids or parts of them, cases, parameters (`"gpus=2"`), patterns or job ids.
        exclude: None of these, named likewise.
        failed: Leave those alone that were cancelled.
        choose_again: Choose kernels anew for guided counters.
        time: A new time limit for what is retried, such as `"30m"`.
        update_app: Copy the program again from its original place.
        sites: Sites files to search first for the campaign's site, where runs are planned anew.
        now: On this machine: start although another campaign runs here, instead of waiting for its turn.

    Raises:
        UsageError: A run that is named is not there, or did not fail; or `time` is no time.
        CampaignError: There is no such campaign, or another process drives it.
    """
    messages: list[Message] = []
    folder = _find_folder(campaign, root)
    limit = None if time is None else option_value("time", parse_duration, time)
    change = Change(limit, update_app, path_list(sites))
    again = retrying.retry(
        folder,
        name_tuple(runs),
        messages.append,
        failed=failed,
        choose_again=choose_again,
        selection=Selection(without=name_tuple(exclude)),
        change=change,
    )
    if again is None:
        return None
    return _emit_messages(Running(folder, only=again.only, now=now), messages)


def reread(
    campaign: str | Path | Campaign | None = None,
    root: str | Path | None = None,
    *,
    recipe: str | Path | None = None,
) -> list[str]:
    """Read the collected reports of a campaign again: for lost tables, a new figure or a corrected regex.

    Args:
        campaign: Its folder, id or the beginning of its id; the newest under `root` if not given.
        root: The folder of campaigns; NSW_ROOT or ./campaigns if not given.
        recipe: The recipe to take figures, checks and the report section from, also next time; if not given, the one
            named last, else the campaign's own file.

    Returns:
        How the tables differ from before, a line each.

    Raises:
        CampaignError: There is no such campaign, no report of it is here, or another process drives it.
        InputError: The recipe has faults.
    """
    from nsw.campaign.reread import reread as read_again

    recipe_path = Path(recipe) if recipe is not None else None
    result = read_again(_find_folder(campaign, root), recipe_path, lambda _message: None, lambda _done, _total: None)
    return result.changes


def _as_overrides(
    settings: Settings | None,
    case: Cases | None,
    exclude: Cases | None,
    passes: Names | None,
    *,
    fit: bool,
    against: str | Path | None,
) -> Overrides:
    """The overrides that `--set`, `--case`, `--exclude`, `--pass`, `--fit` and `--against` would give.

    Raises:
        UsageError: A value is which a recipe cannot hold.
    """
    texts = tuple(f"{name}={_as_yaml(name, value)}" for name, value in (settings or {}).items())
    against = None if against is None else str(against)
    return Overrides(texts, name_tuple(passes or ()), _case_conditions(case), _case_conditions(exclude), fit, against)


def _as_yaml(name: str, value: Any) -> str:
    """A value as YAML on one line, which JSON is."""
    try:
        return json.dumps(list(value) if isinstance(value, tuple | range) else value, allow_nan=False)
    except (TypeError, ValueError):
        raise UsageError(
            f"set: {name} is {value!r}, which a recipe cannot hold",
            hint="use numbers, text, true or false, and lists or mappings of these",
        ) from None


def _case_conditions(cases: Cases | None) -> tuple[str, ...]:
    if cases is None:
        return ()
    conditions = [cases] if isinstance(cases, str | Mapping) else cases
    return tuple(
        condition if isinstance(condition, str) else ",".join(f"{k}={v}" for k, v in condition.items())
        for condition in conditions
    )


def site_or_default(site: str | None) -> str | None:
    """The site that is named, here or in NSW_SITE; None: the default of the sites files."""
    return site or os.environ.get("NSW_SITE") or None


def _find_folder(campaign: str | Path | Campaign | None, root: str | Path | None) -> CampaignFolder:
    return find(campaign.folder if isinstance(campaign, Campaign) else campaign, root)


def _emit_messages(running: Running, messages: list[Message]) -> Running:
    for message in messages:
        running.emit(message)
    return running


class Planned:
    """What a recipe would run on a site.

    Attributes:
        name: The recipe's.
        site: The site's.
        warnings: What a person should know.
        gpu_hours: At most, as the scheduler is asked for them.
        node_hours: At most, likewise.
    """

    def __init__(self, planned: Made, warnings: list[str]) -> None:
        self._planned = planned
        self.name: str = planned.plan.name
        self.site: str = planned.plan.site
        self.warnings = warnings
        self.gpu_hours: float = planned.plan.gpu_hours
        self.node_hours: float = planned.plan.node_hours

    def __repr__(self) -> str:
        return f"<nsw plan of {self.name} on site {self.site}: {plural(len(self._planned.plan.runs), 'run')}>"

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run: id, its parameters, pass, tool, repeat, job, what it asks for, command."""
        from nsw.present.plan_view import RUN_COLUMNS, run_rows

        params = {run.id: run.params for run in self._planned.plan.runs}
        return frame_of([{**params[row["id"]], **row} for row in run_rows(self._planned.plan)], RUN_COLUMNS)

    @property
    def absent(self) -> pd.DataFrame:
        """One row for what this site cannot do: what, reason, how many runs."""
        rows = [{"what": a.what, "reason": a.reason, "runs": len(a.run_ids)} for a in self._planned.plan.absent]
        return frame_of(rows, ("what", "reason", "runs"))

    @property
    def scripts(self) -> dict[str, str]:
        """The script of each job, as `nsw render` prints it."""
        render, scratch = self._planned.renderer(), self._planned.scratch_to_show()
        return {job.name: render(job, "CAMPAIGN", scratch) for job in self._planned.plan.jobs}


def dry_run(
    recipe: str | Path,
    site: str | None = None,
    *,
    sites: Files | None = None,
    set: Settings | None = None,  # noqa: A002  the name of the option
    case: Cases | None = None,
    exclude: Cases | None = None,
    passes: Names | None = None,
    fit: bool = False,
    against: str | Path | None = None,
) -> Planned:
    """Plan a recipe on a site as `nsw.run` does, without submitting anything or asking a scheduler.

    Args:
        recipe: The recipe's file, or the name of a shipped one.
        site: The site's name; by default that of NSW_SITE, else the default site of the sites files, else this machine.
        sites: Sites files to search first.
        set: Values of parameters and keys: `{"gpus": [1, 2], "resources.time": "30m"}`.
        case: Only these cases: `{"gpus": 2}`, a pattern of names such as `"gpus-2_*"`, or several of these, of which
            those with a single parameter must all hold.
        exclude: None of these cases.
        passes: Only these passes.
        fit: Skip cases that the site cannot hold, instead of refusing the recipe.
        against: Plan each case on both sides, in pairs: before, with the program of this git revision or of the
            campaign in this folder, or with other values (`"n=2,mode=fast"`); and after, as it is now.

    Raises:
        InputError: The recipe or a sites file has faults.
        UsageError: There is no such recipe, site, case or pass.
    """
    messages: list[Message] = []
    chosen = _as_overrides(set, case, exclude, passes, fit=fit, against=against)
    planned = make_plan(str(recipe), site_or_default(site), path_list(sites), chosen, messages.append)
    diagnostics = (*planned.recipe.warnings, *planned.unset_secrets())
    return Planned(
        planned, [*(message.text for message in messages), *(diagnostic.render() for diagnostic in diagnostics)]
    )
