"""Changes of a campaign: runs, program and recipe, as `nsw run --into`, `--until` and `nsw retry` ask for them.

Each becomes one delta, a part of the campaign: jobs with scripts of their own, a folder of its own for a program that
is copied again, and the recipe afterwards. `_apply_delta` alone carries it out.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.planning import Planned, make_plan
from nsw.campaign.selection import campaign_option
from nsw.campaign.versions import hashes_of_origins, record_version, sources_of_app_files, versions_of
from nsw.engine import ledger_rows
from nsw.engine.driven import ledger_to_read, locked_ledger
from nsw.engine.events import Message
from nsw.engine.folder import Log
from nsw.engine.handover import forget_done, reducer_and_target, site_in_hand, write_secrets
from nsw.engine.ledger_rows import APP_FOLDER, IN_FLIGHT, NOTE, ORIGINS, PARTS, PREPARED, RECIPE, SITE, Key, State
from nsw.engine.loop import reset_failures
from nsw.engine.recipe_lock import read_locked, write_locked
from nsw.engine.stages import release_reductions
from nsw.engine.tables import EARLIER_FIGURES, load_rows, replace_rows
from nsw.errors import CampaignError, UsageError
from nsw.plan.model import APP, Part, Plan, Resources, Run
from nsw.recipe.units import format_duration
from nsw.safe_files import changed_names, hashes, read_text
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from nsw.campaign.start import Ready
    from nsw.engine import folder as folders
    from nsw.engine.ledger import Ledger
    from nsw.recipe.load import Overrides

__all__ = ["Change", "Changes", "Extension", "add_pairs", "apply_extension", "extension", "replan"]

_FILES_IN_REASON: Final = 3  # files in a reason


@dataclass(frozen=True, slots=True)
class Changes:
    """A recipe against a campaign, by the ids of runs.

    Attributes:
        added: Runs that the campaign lacks.
        again: Runs that would be done otherwise now, with what changed.
        unchanged: How many runs stay as they are.
        absent: How many runs of the campaign the recipe does not have; they stay.
        program: Whether files of the application changed.
    """

    added: tuple[str, ...]
    again: Mapping[str, str]
    unchanged: int
    absent: int
    program: bool

    @property
    def runs(self) -> tuple[str, ...]:
        """All runs to do."""
        return (*self.added, *self.again)


def _compare_plans(
    before: Plan, now: Plan, files_of: Mapping[str, Mapping[str, str]], files: Mapping[str, str], done: Collection[str]
) -> Changes:
    """Compare what a campaign carried out with what a recipe asks for.

    Args:
        before: The plan of the campaign's own recipe.
        now: The plan of the recipe.
        files_of: The application's files that each run of the campaign has, by name, with their hashes.
        files: The newest of these in the campaign.
        done: The runs that are measured.
    """
    old, files_now = {run.id: run for run in before.runs}, hashes(now.sources)
    again = {}
    for run in now.runs:
        if run.id in files_of:
            changed = changed_names(files_of[run.id], files_now)
            reason = (
                f"{first_names(changed, _FILES_IN_REASON)} changed"
                if changed
                else _change_of_run(old.get(run.id), run, before, now, is_done=run.id in done)
            )
            if reason:
                again[run.id] = reason
    planned_ids = {run.id for run in now.runs}
    added = tuple(run.id for run in now.runs if run.id not in files_of)
    builds, builds_before = _build_commands(now), _build_commands(before)
    rebuilt = any(builds[app] != command for app, command in builds_before.items() if app in builds)
    unchanged, absent = len(planned_ids) - len(added) - len(again), len(files_of.keys() - planned_ids)
    return Changes(added, again, unchanged, absent, program=rebuilt or bool(changed_names(files, files_now)))


def _change_of_run(old: Run | None, new: Run, before: Plan, now: Plan, *, is_done: bool) -> str | None:
    """What changed in a run: not the time limit, the number of the repeat, nor who paid for a measured one."""
    if old is None:
        return "the campaign's recipe no longer has it, so its value then is unknown"
    was, becomes = (_resources_that_count(run, is_done=is_done) for run in (old, new))
    parts = (
        ("its parameters changed", old.params, new.params),
        ("the build changed", _build_commands(before).get(old.app), _build_commands(now).get(new.app)),
        ("its command changed", (old.command, old.after, old.tool), (new.command, new.after, new.tool)),
        ("its environment changed", _environment_of(old), _environment_of(new)),
        ("the set-up changed", (before.setup, before.modules), (now.setup, now.modules)),
        ("its resources changed", was, becomes),
    )
    return next((reason for reason, earlier, later in parts if earlier != later), None)


def _resources_that_count(run: Run, *, is_done: bool) -> Resources:
    resources = replace(run.resources, time_s=0)
    return replace(resources, account=None, qos=None) if is_done else resources


def _environment_of(run: Run) -> tuple[Any, ...]:
    return run.env, run.secrets and run.secrets.names


def _build_commands(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {job.runs[0].app: job.runs[0].command for job in plan.builds}


def _apply_delta(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    part: Part,
    ready: Ready,
    *,
    head: str,
    recipe: dict[str, Any],
    restarted: Sequence[str] = (),
    repeated: Collection[str] = (),
    programs: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    facts: Sequence[tuple[Key[Any], Any]] = (),
) -> None:
    """Carry a delta out; the caller holds the campaign's lock, and drives it afterwards.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        part: The jobs that are added, beside those of the campaign.
        ready: Their plan, which the site would take.
        head: The comments that recipe.lock.yaml begins with.
        recipe: Its recipe as data.
        restarted: Runs that begin again whatever became of them; a retry releases its own.
        repeated: All runs that are done again, whose figures of before are kept where the program is a new one.
        programs: The files of programs that are copied again, by folder.
        facts: What of the ledger's facts changes.
    """
    if programs:  # what the former version printed, to compare with
        figures = [row for row in load_rows(folder, "figures") if row["run"] in set(repeated)]
        replace_rows(folder, {EARLIER_FIGURES: figures}, sorted({row["run"] for row in figures}), ledger.meta(NOTE))
    _add_part(folder, ledger, part, ready, programs or {})
    with ledger.transaction():
        if restarted:
            # to planned, whatever their state
            forget_done(folder, ledger, restarted)
            ledger.release(run.id for run in ledger.runs_named(restarted) if run.state is not State.PLANNED)
            release_reductions(ledger, restarted)
            ledger.hold_stage(restarted)
        for key, value in facts:
            ledger.set_meta(key, value)
    write_locked(folder, head, recipe)


@dataclass(frozen=True, slots=True)
class Extension:
    """What a recipe adds to a campaign, and the plan of that alone (None: nothing to do)."""

    folder: folders.CampaignFolder
    changes: Changes
    planned: Planned | None = None
    part: Part | None = None


def extension(
    folder: folders.CampaignFolder,
    recipe: str,
    sites: Sequence[Path] | None,
    options: Overrides | None,
    notify: Callable[[Message], object],
) -> Extension:
    """Compare a recipe with a campaign, and plan what it adds; nothing is written.

    Args:
        folder: The campaign.
        recipe: The recipe's file, or the name of a shipped one.
        sites: Sites files to search first for the campaign's site.
        options: Changes of the recipe.
        notify: Called with what a person should know of the files that were taken.

    Raises:
        InputError, UsageError: As `make_plan` does.
        UsageError: A run that would be done again is not over.
        CampaignError: The campaign was made elsewhere.
    """
    folder.require_trust()
    with ledger_to_read(folder) as ledger:
        site, rows = ledger.meta(SITE), ledger.runs()
        now = make_plan(recipe, site, sites, options, notify)
        before = make_plan(str(folder.recipe), site, sites)
        lock = before.recipe.recipe.lock
        files = lock.hashes if lock else {}
        files_of: dict[str, Mapping[str, str]] = {run.id: files for run in rows}
        files_of |= {run.id: version.files for version in versions_of(ledger, rows)[:-1] for run in version.runs}
        done = {run.id for run in rows if run.state is State.DONE}
        changed = _compare_plans(before.plan, now.plan, files_of, files, done)
        if going := [run.id for run in rows if run.id in changed.again and run.state in IN_FLIGHT]:
            raise UsageError(
                f"{going[0]} would be run again ({changed.again[going[0]]}), and is not over",
                hint=(
                    f"`nsw resume{campaign_option(folder)}` waits for it, `nsw cancel{campaign_option(folder)}` ends it"
                ),
            )
        if not changed.runs:
            return Extension(folder, changed)
        part = _next_part(ledger, changed.runs, new_app=changed.program)
    return Extension(folder, changed, make_plan(recipe, site, sites, options, part=part), part)


def apply_extension(extension: Extension) -> None:
    """Add to the campaign what an extension says; it is to be driven then.

    Raises:
        CampaignLockedError: Another process drives it.
        InputError: The scheduler would refuse a job.
    """
    from nsw.campaign.start import check_readiness, lock_of, recipe_with_defaults
    from nsw.recipe.load import extend_recipe

    assert extension.planned is not None
    assert extension.part is not None
    folder, planned, part = extension.folder, extension.planned, extension.part
    with locked_ledger(folder) as ledger:
        ready = check_readiness(planned)
        lock, _ = lock_of(planned)
        data = recipe_with_defaults(planned, lock, app=part.app)
        case_ids = {run.case_id for run in ledger.runs()}
        kept_cases = [case.params for case in planned.recipe.left_out if case.id in case_ids]
        data["matrix"]["exclude"] = [case for case in data["matrix"]["exclude"] if case not in kept_cases]
        if extension.changes.absent:
            added = {run.case_id: run.params for run in planned.plan.runs if run.case_id not in case_ids}
            data = extend_recipe(read_locked(folder)[1], data, added.values()) or data
        facts: list[tuple[Key[Any], Any]] = []
        if planned.recipe.path.resolve() != folder.recipe.resolve():  # whose files are the campaign's own copies
            facts = [(RECIPE, str(planned.recipe.path.absolute())), (ledger_rows.FIGURES_FROM, None),
                     (ORIGINS, hashes_of_origins(planned.plan.files, planned.recipe.path))]  # fmt: skip
        again = tuple(extension.changes.again)
        _apply_delta(
            folder,
            ledger,
            part,
            ready,
            head=f"# The recipe of this campaign, part {part.number}.\n",
            recipe=data,
            restarted=again,
            repeated=again,
            programs=planned.plan.programs(part.app) if extension.changes.program else {},
            facts=facts,
        )
        reset_failures(ledger)


@dataclass(frozen=True, slots=True)
class Change:
    """What is other when runs are retried.

    Attributes:
        time_s: The time limit of each run, in seconds; None: as it was.
        update_app: Whether the program is copied again from where it came.
        sites: Sites files to search first for the campaign's site.
    """

    time_s: int | None = None
    update_app: bool = False
    sites: Sequence[Path] | None = None

    @property
    def is_requested(self) -> bool:
        """Whether a person asked for another limit or program."""
        return self.time_s is not None or self.update_app


def replan(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    runs: Sequence[str],
    change: Change,
    notify: Callable[[Message], object],
) -> None:
    """Give retried runs jobs of their own, with another time limit or the program as it is now.

    The caller holds the campaign's lock.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        runs: The ids of the runs.
        change: What is different from before.
        notify: Called with a message for each change.

    Raises:
        UsageError: The program's files are gone, or there are none.
        InputError: The site cannot do it, or its scheduler would refuse a job.
        CampaignError: The campaign's recipe lacks one of the runs.
    """
    from nsw.campaign.start import check_readiness

    head, data = read_locked(folder)
    recipe = ledger.meta(RECIPE)
    files = sources_of_app_files(ledger) if change.update_app else None
    now, before = hashes(files or ()), dict((data.get("lock") or {}).get("files") or {})
    changed = changed_names(before, now)
    if change.update_app and not changed:
        notify(Message("the program has not changed since it was copied, and is not copied again"))
        files = None
    part = _next_part(ledger, runs, new_app=files is not None, time_s=change.time_s)
    planned = make_plan(str(folder.recipe), ledger.meta(SITE), change.sites, part=part)
    if missing := set(runs) - {run.id for run in planned.plan.runs}:
        raise CampaignError(f"{folder.recipe} does not have {min(missing)}, so its runs cannot be planned again")
    programs = replace(planned.plan, files=tuple(files)).programs(part.app) if files else {}
    changes_made: list[str] = []
    facts: list[tuple[Key[Any], Any]] = []
    if files is not None:
        facts = [(ORIGINS, hashes_of_origins(files, Path(recipe) if recipe and Path(recipe).exists() else None))]
        data["app"] |= {
            key: [f"{app}/{name}" for _, name in program_files]
            for key, (app, program_files) in zip(("files", "before"), programs.items(), strict=False)
        }
        data["lock"]["files"] = now
        changes_made.append(
            "the program was copied again: " + ", ".join(f"{n} ({now.get(n, 'gone')[:12]})" for n in changed)
        )
    if change.time_s is not None:
        _set_time(data, limit := format_duration(change.time_s))
        changes_made.append(f"time limit {limit}")
    _apply_delta(
        folder,
        ledger,
        part,
        check_readiness(planned),
        head=head,
        recipe=data,
        repeated=runs,
        programs=programs,
        facts=facts,
    )
    for line in changes_made:
        notify(Message(line))
    Log(folder.log).say(f"part {part.number} ({len(runs)} runs again): {'; '.join(changes_made) or 'as before'}")


def add_pairs(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    runs: Sequence[str],
    *,
    repeats: int,
    sites: Sequence[Path] | None,
) -> None:
    """Add runs of more repeats to a campaign; the caller holds the campaign's lock.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        runs: The ids of the runs, all of baseline passes.
        repeats: How many repeats these passes have then.
        sites: Sites files to search first for the campaign's site.

    Raises:
        UsageError: The program's files are gone.
        InputError: The site cannot do it, or its scheduler would refuse a job.
    """
    from nsw.campaign.start import check_readiness

    head, data = read_locked(folder)
    data["passes"] = [
        {"baseline": (entry.get("baseline") or {}) | {"repeats": repeats}} if "baseline" in entry else entry
        for entry in data["passes"]
    ]
    write_locked(folder, head, data)  # first: an nsw that is killed here plans the same runs again
    part = _next_part(ledger, runs, new_app=False)
    planned = make_plan(str(folder.recipe), ledger.meta(SITE), sites, part=part)
    _apply_delta(folder, ledger, part, check_readiness(planned), head=head, recipe=data)


def _set_time(data: dict[str, Any], time: str) -> None:
    """The limit in a recipe as data: everywhere that one is set."""
    data.setdefault("resources", {})["time"] = time
    for entry in data.get("passes") or ():
        for options in entry.values():
            if isinstance(options, dict) and "time" in options:
                options["time"] = time


def _next_part(ledger: Ledger, runs: Iterable[str], *, new_app: bool, time_s: int | None = None) -> Part:
    """The next part of a campaign: these runs, where `new_app` with a new copy of the program, beside the others."""
    number = ledger.meta(PARTS) + 2
    app = f"{APP}-{number}" if new_app else ledger.meta(APP_FOLDER)
    return Part(number, frozenset(runs), app, frozenset(build.app for build in ledger.builds()), time_s)


def _add_part(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    part: Part,
    ready: Ready,
    programs: Mapping[str, Sequence[tuple[str, str]]],
) -> None:
    """Put a part's scripts and files here and on the site, then its jobs into the ledger, all or nothing.

    A campaign of which nothing is on its site (it was cleaned, or never began) gets the part here alone: whoever drives
    it sends everything before the first submission. `programs` are the files of those that are copied again, by folder.
    """
    from nsw.campaign.start import copy_files, write_scripts
    from nsw.engine.builds import programs_in

    plan, render = replace(ready.planned.plan, absent=()), ready.planned.renderer()
    _keep_secrets(folder, plan)
    with site_in_hand(folder, ledger) as (transport, scratch):
        apps = [build.runs[0].app for build in plan.builds]
        for app, files in programs.items():
            shutil.rmtree(folder.path / app, ignore_errors=True)  # of an nsw that was killed here
            copy_files(files, folder.path / app)
        # without new files only parameters that had no build yet need the program
        needed = apps or list(programs)
        in_folder = programs_in(folder.path, needed) if needed else []
        staged = [(local_folder, f"{scratch}/{app}") for local_folder, app in in_folder]
        scripts = write_scripts(folder, plan, lambda job: render(job, folder.id, scratch))
        sent = scripts if transport.remote else scripts[:1]  # its own scripts are read where they are
        staged += [(script, f"{scratch}/scripts/{script.name}") for script in sent]
        if plan.reductions:
            staged.append(reducer_and_target(scratch))
        if ledger.meta(PREPARED):
            transport.stage(staged)
            transport.make_folders([f"{scratch}/{app}" for app in apps])
    with ledger.transaction():
        ledger.add_part(plan)
        record_version(ledger, folder.path, part.app, [job.name for job in plan.jobs], copied=bool(programs))
        ledger.set_meta(PARTS, part.number - 1)
        ledger.set_meta(APP_FOLDER, part.app)


def _keep_secrets(folder: folders.CampaignFolder, plan: Plan) -> None:
    """Write down the secrets of a part.

    Raises:
        UsageError: They are others than those of the campaign.
    """
    from nsw.scripts.quoting import secrets_text

    text = secrets_text(plan.secrets, os.environ)
    if not text:
        return
    if not folder.secrets.exists():
        write_secrets(folder.secrets, text)
    elif read_text(folder.secrets) != text:
        raise UsageError(
            "the secrets differ from those that runs of this campaign still need",
            hint=f"finish the campaign first (`nsw resume{campaign_option(folder)}`), or run the recipe as a new one",
        )
