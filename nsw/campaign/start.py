"""From a plan to a campaign on disk: what is checked first, what it costs, what its folder holds."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.planning import Planned, ask_start_times, connect_to_site, require_scheduler_answer
from nsw.campaign.selection import campaign_argument
from nsw.campaign.versions import hashes_of_origins
from nsw.engine import folder as folders
from nsw.engine import ledger_rows
from nsw.engine.driven import ledger_to_read, write_state
from nsw.engine.handover import make_folder, write_secrets
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NAME, RECIPE, RECORDED, SITE, BuildRow, RunRow, State
from nsw.engine.recipe_lock import lock_differences, locked_recipe, make_before_lock, make_lock
from nsw.engine.tables import load_rows
from nsw.engine.trust import require_own_folder, require_own_place
from nsw.errors import CampaignError, InputError, NswError, UsageError
from nsw.plan.model import APP, OF_BEFORE, Job, Plan, Run
from nsw.quantities import percent, size
from nsw.recipe.document import as_yaml
from nsw.recipe.passes import TimelinePass
from nsw.recipe.units import format_duration, option_value, parse_amount, parse_canary, show_value
from nsw.safe_files import OTHERS_WRITE, copy_file, make_folders, open_plain, readable_by_group, write_text
from nsw.scripts.quoting import secrets_text
from nsw.scripts.render import write_machinery
from nsw.site.names import LOCAL
from nsw.transport.local import LocalTransport
from nsw.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nsw.engine.folder import CampaignFolder
    from nsw.recipe.model import Lock, Recipe
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport


_MOST_CAMPAIGNS: Final = 5  # the newest ones


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """What a plan will probably cost; of a case and pass that no earlier campaign did it is the limit."""

    gpu_hours: float
    node_hours: float


def expected_cost(root: Path, plan: Plan) -> ExpectedCost | None:
    """What a plan will probably cost; None where no earlier campaign did anything of it.

    Args:
        root: The folder of campaigns.
        plan: The plan.
    """
    durations = _earlier_durations(root, plan)
    if plan.replay or not any(_id_without_repeat(run) in durations for run in plan.runs):
        return None
    gpu_hours = node_hours = 0.0
    for job in (*plan.builds, *plan.jobs, *plan.reductions):
        if job.place == "job":
            seconds = sum(min(plan.requested_time_s(job), _task_seconds(job, task, durations)) for task in job.tasks)
            gpu_hours += plan.price(job.resources, seconds, "gpu-hour")
            node_hours += plan.price(job.resources, seconds, "node-hour")
    return ExpectedCost(gpu_hours, node_hours)


def expected_run_seconds(root: Path, plan: Plan) -> dict[str, float]:
    """The seconds that each run of a plan took in earlier campaigns; its time limit where it was never done.

    Args:
        root: The folder of campaigns.
        plan: The plan.
    """
    durations = _earlier_durations(root, plan)
    return {run.id: durations.get(_id_without_repeat(run), run.resources.time_s) for run in plan.runs}


def _task_seconds(job: Job, task: tuple[Run, ...], durations: dict[str, float]) -> float:
    return max(
        sum(durations.get(_id_without_repeat(run), run.resources.time_s) for run in lane) for lane in job.lanes(task)
    )


def earlier_campaigns(root: Path, plan: Plan) -> Iterator[tuple[CampaignFolder, list[RunRow | BuildRow]]]:
    """The newest campaigns of a plan's recipe on its site, newest first, each with what was done.

    Args:
        root: The folder of campaigns.
        plan: The plan.
    """
    same_plan = [campaign for campaign in folders.existing(root) if campaign.id.startswith(f"{plan.name}-")]
    for folder in same_plan[: -_MOST_CAMPAIGNS - 1 : -1]:
        try:
            if not folder.trusted:
                continue
            with ledger_to_read(folder) as ledger:
                if (ledger.meta(NAME), ledger.meta(SITE)) != (plan.name, plan.site):
                    continue
                rows: list[RunRow | BuildRow] = [*ledger.runs(), *ledger.builds(), *ledger.reductions()]
        except (NswError, OSError):
            continue
        yield folder, [row for row in rows if row.state is State.DONE]


def _earlier_durations(root: Path, plan: Plan) -> dict[str, float]:
    """Seconds that each case and pass, build and reduction took when it was last done."""
    durations: dict[str, float] = {}
    for _, rows in earlier_campaigns(root, plan):
        times: dict[str, list[float]] = {}
        for row in rows:
            if row.seconds is not None:
                times.setdefault(_id_without_repeat(row), []).append(row.seconds)
        durations = {key: max(seconds) for key, seconds in times.items()} | durations
    return durations


def _id_without_repeat(run: Run | RunRow | BuildRow) -> str:
    """The id without the number of the repeat."""
    return run.id if isinstance(run, BuildRow) else run.id.replace(f".r{run.repeat}", "")


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a campaign is made of beside its plan.

    `recipe` is the resolved recipe as data, `site` the site as data; `render` gives the script of a job for a
    campaign's id and scratch folder; `origin` is the recipe's file; `secrets` the text of the file with the secret
    environment variables, empty where there are none; `until` what the ledger keeps of `--until decided`.
    """

    recipe: dict[str, Any]
    site: dict[str, Any]
    scratch: str | None
    render: Callable[[Job, str, str], str]
    origin: Path | None = None
    secrets: str = field(default="", repr=False)
    until: Mapping[str, Any] = field(default_factory=dict)


def make_campaign_folders(
    root: Path,
    plan: Plan,
    made_of: Ingredients,
    check_folder: Callable[[folders.CampaignFolder, Path, Path], object] = lambda _folder, _path, _later: None,
    connect: Callable[[], Transport] | None = None,
) -> folders.CampaignFolder:
    """Make the campaign's folder here, and the one on its site: both, or none here.

    Args:
        root: The folder of campaigns.
        plan: The plan.
        made_of: What the campaign is made of beside its plan.
        check_folder: Called with the new folder, its path and the one that it gets at the end, before anything is in
            it; it raises where the folder must not be used.
        connect: Opens a connection to the site; None: no folder is made there.

    Raises:
        CampaignError: One of them cannot be made.
        UnreachableError: The site could not be asked.
    """
    new = folders.make_campaign_folder(root, plan.name, share=plan.share, check=check_folder)
    with readable_by_group(plan.share), new as (hidden, folder):
        _fill_folder(hidden, folder, plan, made_of)
        if made_of.scratch and connect is not None:
            with closing(connect()) as transport:
                make_folder(transport, f"{made_of.scratch}/{folder.id}", made_of.site)
    return folder


def _fill_folder(
    folder: folders.CampaignFolder, final_folder: folders.CampaignFolder, plan: Plan, ingredients: Ingredients
) -> None:
    """Fill a campaign's folder that still has its temporary name."""
    scratch = (
        f"{ingredients.scratch}/{final_folder.id}"
        if ingredients.scratch
        else str((final_folder.path / "scratch").absolute())
    )
    os.close(open_plain(folder.lock, os.O_WRONLY | os.O_CREAT, 0o644))  # a read-only command of others tests it
    for app, files in plan.programs().items():
        copy_files(files, folder.path / app)
    write_scripts(folder, plan, lambda job: ingredients.render(job, final_folder.id, scratch))
    if ingredients.secrets:
        write_secrets(folder.secrets, ingredients.secrets)
    write_text(folder.recipe, _lock_text(ingredients.recipe, plan))
    rule = ingredients.recipe.get("canary") or ingredients.site.get("canary") or "off"
    stop_after = ingredients.recipe.get("stop_after_failures") or ingredients.site.get("stop_after_failures")
    with Ledger(folder.ledger, create=True) as ledger:
        with ledger.transaction():
            ledger.set_meta(ledger_rows.VERSION, __version__)
            ledger.set_meta(ledger_rows.NAME, plan.name)
            ledger.set_meta(ledger_rows.SITE, plan.site)
            ledger.set_meta(ledger_rows.SITE_DATA, ingredients.site)
            ledger.set_meta(ledger_rows.SCRATCH, scratch)
            ledger.set_meta(ledger_rows.CREATED, time.time())
            ledger.set_meta(ledger_rows.UNTIL, dict(ingredients.until))
            if stop_after:
                ledger.set_meta(ledger_rows.STOP_AFTER, int(stop_after))
            ledger.set_meta(ledger_rows.COLLECT, ingredients.recipe.get("collect") or "reports")
            ledger.set_meta(ledger_rows.RECIPE, str(ingredients.origin.absolute()) if ingredients.origin else None)
            ledger.set_meta(ledger_rows.ORIGINS, hashes_of_origins(plan.files, ingredients.origin))
            ledger.set_meta(ledger_rows.PLACES, {key: str(mark) for key, mark in plan.marks.items()})
            if plan.note:
                ledger.set_meta(ledger_rows.NOTE, plan.note)
        ledger.add_plan(plan)
        if parse_canary(rule).is_wanted(len(plan.runs)):
            ledger.hold_for_canary()
        write_state(folder, ledger)


def write_scripts(folder: folders.CampaignFolder, plan: Plan, render: Callable[[Job], str]) -> list[Path]:
    """Write the script of each job, build and reduction of a plan, and the file that they share.

    Args:
        folder: The campaign's folder.
        plan: The plan.
        render: Returns the text of a job's script.

    Returns:
        The files, the shared one first.
    """
    scripts = [write_machinery(folder.scripts)]
    for job in (*plan.builds, *plan.jobs, *plan.reductions):
        script = folder.script(job.name)
        write_text(script, render(job))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)  # Cobalt starts only what is executable
        scripts.append(script)
    return scripts


def copy_files(files: Iterable[tuple[str, str]], folder: Path) -> None:
    """Copy an application's files (where they are, their name beside the program) into a folder.

    Raises:
        CampaignError: One cannot be copied.
    """
    make_folders(folder)
    for source, name in files:
        _copy_into_campaign(Path(source), folder / name)


def _copy_into_campaign(source: Path, target: Path) -> None:
    try:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, copy_function=copy_file)
            for folder, *_ in os.walk(target):  # a copy has the modes of its original
                Path(folder).chmod(stat.S_IMODE(Path(folder).stat().st_mode) & ~OTHERS_WRITE)
        else:
            copy_file(source, target)
    except shutil.Error as fault:  # one entry for each file of the folder that failed
        name, _, reason = fault.args[0][0]
        raise CampaignError(f"{name} cannot be copied into the campaign: {reason}") from None
    except OSError as fault:
        raise CampaignError(f"{source} cannot be copied into the campaign: {fault.strerror or fault}") from None


def _lock_text(recipe: dict[str, Any], plan: Plan) -> str:
    head = f"# The recipe of this campaign as it was resolved on site {plan.site} by nsw {__version__}.\n"
    note = f"# {plan.note}\n" if plan.note else ""
    return head + note + as_yaml(recipe)


_NOT_FOUND: Final = re.compile(r"No such file|can't open file|not found")
_WORD: Final = re.compile(r"[^\s'\"`:,()\[\]]+")


def unsent_file_hint(folder: CampaignFolder, ledger: Ledger) -> str | None:
    """What to do about the first file beside the recipe that a failed run did not find; None: there is none."""
    recipe = Path(ledger.meta(RECIPE) or "")
    if not recipe.is_file():
        return None
    reasons = dict.fromkeys(run.reason for run in ledger.runs(states=(State.FAILED,)) if run.reason)
    for reason in reasons:
        if _NOT_FOUND.search(reason) and (name := _file_in_text(recipe.parent, reason)) is not None:
            working_folder = Path.cwd()
            shown = shlex.quote(
                str(recipe.relative_to(working_folder) if recipe.is_relative_to(working_folder) else recipe)
            )
            return (
                f"{name} is beside the recipe but not sent along: add {name.parts[0]} to app.files, then"
                f" `nsw run {shown} --into {campaign_argument(folder)}`"
            )
    return None


def _file_in_text(home: Path, reason: str) -> PurePosixPath | None:
    """The first relative path in a text that is a file below a folder."""
    for word in _WORD.findall(reason):
        name = PurePosixPath(word)
        if not name.is_absolute() and name.parts and ".." not in name.parts and (home / name).is_file():
            return name
    return None


@dataclass(frozen=True, slots=True)
class Ready:
    """A plan whose site answers and would take its jobs.

    `calls` counts the scheduler's commands that finding this out took; `warnings` say which jobs would wait for nodes
    that are away.
    """

    planned: Planned
    calls: Counter[str]
    warnings: tuple[str, ...] = ()


def lock_of(planned: Planned) -> tuple[Lock, list[str]]:
    """The lock of a campaign that starts now, and how it differs from the one that the recipe repeats.

    Raises:
        UsageError: The recipe or a file of the program has a name that is not UTF-8.
    """
    loaded, local = planned.recipe, LocalTransport()
    before = loaded.recipe.lock
    lock = make_lock(planned.plan.files, loaded.folder, planned.site.site.name, local, before)
    other = make_before_lock(planned.plan.before, loaded.before, local, before.before if before else None)
    lock = lock.model_copy(update={"before": other})
    sources = (source for source, _ in (*planned.plan.files, *planned.plan.before))
    _require_utf8([str(loaded.path.absolute()), *sources, *lock.hashes], "rename it")
    return lock, lock_differences(before, lock, local) if before else []


def check_readiness(planned: Planned) -> Ready:
    """Make sure that nothing is missing and that the site would take the jobs.

    A typo then costs neither a campaign nor a wait in the queue.

    Raises:
        InputError: A secret is not set, or the scheduler would refuse a job.
        UnreachableError: The site's scheduler does not answer.
    """
    if absent := planned.unset_secrets():
        raise InputError(absent)
    require_scheduler_answer(planned.site)
    calls: Counter[str] = Counter()
    prospects = ask_start_times(planned, calls)
    refused = [p.refused for p in prospects if p.refused]
    if refused:
        raise InputError(refused)
    return Ready(planned, calls, tuple(f"{p.jobs[0]}: {p.waits}" for p in prospects if p.waits))


def reason_above_price(planned: Planned, price: str) -> str | None:
    """Why a plan may cost more than a price; None where it cannot.

    Args:
        planned: The plan.
        price: Such as `2 gpu-hours`.

    Raises:
        UsageError: It is no price.
    """
    limit = option_value("yes", parse_amount, price, "such as '2 gpu-hours'")
    plan = planned.plan
    if limit.unit == "gpu-hour" and not all(run.resources.gpus for run in plan.runs):
        return f"some runs ask for no GPU, so that {limit} do not limit what this costs; a price in node-hours does"
    cost = plan.node_hours if limit.unit == "node-hour" else plan.gpu_hours
    return f"this costs up to {cost:.2f} {limit.unit}s, and {limit} are allowed" if cost > limit.number else None


def cost_question(planned: Planned, expected: ExpectedCost | None) -> str | None:
    """What a person must confirm: the cost, where it is above the site's confirm_above; else None.

    Args:
        planned: The plan.
        expected: Its cost by earlier campaigns; None: there are none, and the most that it can cost counts.
    """
    site = planned.site.site
    limit = site.confirm_above
    # on this machine nobody else pays: only a limit that the site states is asked about
    if site.scheduler == "local" and "confirm_above" not in site.model_fields_set:
        return None
    counted = expected or planned.plan
    cost = counted.node_hours if limit.unit == "node-hour" else counted.gpu_hours
    if cost <= limit.number:
        return None
    costs = "will probably cost" if expected else "costs up to"
    return f"this {costs} {cost:.2f} {limit.unit}s, more than the site's confirm_above ({limit.number:g})"


def make_campaign(
    home: Path,
    ready: Ready,
    lock: Lock,
    warn: Callable[[str], object] = lambda _text: None,
    *,
    until: Mapping[str, Any] = MappingProxyType({}),
) -> CampaignFolder:
    """Make the campaign's folder below `home`; nothing is submitted yet.

    Args:
        home: The folder of campaigns.
        ready: A plan that the site would take.
        lock: The lock of the new campaign.
        warn: Called with what a person should know of the folders above it.
        until: What the ledger keeps of `--until decided`; empty: the campaign has the runs of its plan alone.

    Raises:
        CampaignError: The folder cannot be made, or a stranger could replace it or its folder on the site.
        UsageError: No job script could be used there.
        InputError, UsageError: The site's scratch folder cannot be used.
    """
    planned = ready.planned
    _check_path(home.absolute(), planned.site)
    site = planned.site.site
    trusted = site.trusted_owners if site.transport.kind == LOCAL else ()
    ingredients = Ingredients(
        recipe_with_defaults(planned, lock),
        planned.site.site.model_dump(mode="json", by_alias=True),
        _expand_scratch(planned.site, warn),
        planned.renderer(),
        planned.recipe.path,
        secrets_text(planned.plan.secrets, os.environ),
        until,
    )

    def check_folder(made: CampaignFolder, path: Path, later: Path) -> None:
        require_own_folder(made.directory, path, trusted, warn, later=later)

    folder = make_campaign_folders(home, planned.plan, ingredients, check_folder, lambda: connect_to_site(planned.site))
    with Ledger(folder.ledger) as ledger:
        ledger.set_calls(ready.calls)
        if lock.choices is not None:
            ledger.set_meta(RECORDED, lock.choices.model_dump(mode="json"))
    return folder


def _check_path(home: Path, loaded_site: LoadedSite) -> None:
    """Raise where the path of the campaigns cannot be written into a job script, or be that of one."""
    from nsw.schedulers.create import adapter_of

    adapter, is_local = adapter_of(loaded_site.site.scheduler), loaded_site.site.transport.kind == LOCAL
    unfit = adapter.capabilities.unfit_in_script_paths if adapter is not None and is_local else ""
    hint = "name another folder for campaigns with --root or NSW_ROOT"
    _require_utf8([str(home)], hint)
    if adapter is not None and unfit and (match := re.search(f"[{unfit}]", str(home))):
        raise UsageError(
            f"{adapter.name} finds no job script in {home}: it drops or replaces {match[0]!r} in paths", hint=hint
        )


def _require_utf8(paths: Iterable[str], hint: str) -> None:
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the name {path!a} is not UTF-8, and nsw cannot write it down", hint=hint) from None


def recipe_with_defaults(planned: Planned, lock: Lock, app: str = APP) -> dict[str, Any]:
    """Return the recipe as data, with every default written out: another version of nsw may have other defaults.

    Args:
        planned: The plan with its recipe.
        lock: The lock of the new campaign.
        app: The folder in the campaign's that holds the program's files.
    """
    recipe = planned.recipe.recipe
    data = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["matrix"] = recipe.matrix.model_dump(mode="python", by_alias=True)  # numbers as they were written
    left_out = (case.params for case in planned.recipe.left_out)
    data["matrix"]["exclude"] = [*(data["matrix"].get("exclude") or []), *left_out]
    data["app"]["files"] = [f"{app}/{name}" for _, name in planned.plan.files]
    data["app"]["before"] = [f"{app}{OF_BEFORE}/{name}" for _, name in planned.plan.before]
    data.pop("sites", None)
    tools = {"tools": recipe.lock.tools if recipe.lock else {}}
    data["lock"] = lock.model_dump(mode="json", exclude_none=True) | tools
    return data


def _expand_scratch(loaded_site: LoadedSite, warn: Callable[[str], object]) -> str | None:
    """The site's scratch folder with its $VARIABLES and ~ filled in as the site means them.

    Raises:
        UsageError: A variable is not set, or the path is not absolute.
        UnreachableError: The site could not be asked.
    """
    scratch = loaded_site.site.scratch
    if scratch is None:
        return None
    with closing(connect_to_site(loaded_site)) as transport:
        try:
            path = transport.expand(scratch)
        except UsageError as fault:
            raise UsageError(f"scratch of site {loaded_site.site.name}: {fault.message}", hint=fault.hint) from None
        if not transport.remote:
            _check_writable_folders(path, loaded_site)
        hint = f"name a folder of yours as the scratch of site {loaded_site.site.name}"
        require_own_place(transport, path, loaded_site.site.trusted_owners, warn, hint=hint)
    return path


def _check_writable_folders(path: str, loaded_site: LoadedSite) -> None:
    """Raise where the site names a folder that cannot be written, before there is a campaign that needs it."""
    existing = next(p for p in (Path(path), *Path(path).parents) if p.exists())
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        problem = f"{existing} cannot be written" if existing.is_dir() else f"{existing} is no folder"
        hint = "name a folder of yours that the compute nodes see too, such as /scratch/$USER/nsw"
        key_path = ("sites", loaded_site.site.name, "scratch")
        raise InputError([loaded_site.document.diagnostic(key_path, f"scratch is {path}, but {problem}", hint=hint)])


# --- what the windows of timelines save, by the reports of earlier campaigns ----------------------------------


_UNKNOWN: Final = (
    "{}: what its window saves is not known: no earlier campaign of this recipe has a timeline of the whole program"
)


def with_window_notes(plan: Plan, recipe: Recipe, root: Path) -> Plan:
    """The plan with a note for each timeline that records a part of the program: what that saves.

    Args:
        plan: The plan.
        recipe: Its recipe.
        root: The folder of campaigns.
    """
    names = {run.pass_name for run in plan.runs}
    timelines = [each for each in recipe.passes if isinstance(each, TimelinePass) and each.name in names]
    notes = [_report_size_note(plan, each, root) for each in timelines if each.is_windowed]
    return replace(plan, notes=(*plan.notes, *notes))


def _report_size_note(plan: Plan, timeline: TimelinePass, root: Path) -> str:
    """A sentence on the size of a report with the window and without."""
    name, whole, alike = timeline.name, None, None
    for folder, rows in earlier_campaigns(root, plan):
        if whole is not None and alike is not None:
            break
        try:
            before = next(each for each in locked_recipe(folder).passes if each.name == name)
            runs = [row.id for row in rows if getattr(row, "pass_name", None) == name]
            # bytes of the reports that a run's timeline left
            largest = max(
                (sum(file.stat().st_size for file in (folder.reports / run).glob("timeline*")), run) for run in runs
            )
        except (NswError, OSError, StopIteration, ValueError):
            continue
        if isinstance(before, TimelinePass) and largest[0]:
            if not before.is_windowed:
                whole = whole or (folder, *largest)
            elif _window_key(before) == _window_key(timeline):
                alike = alike or (folder, *largest)
    if whole is None:
        return _UNKNOWN.format(name) if alike is None else f"{name}: its window left {size(alike[1])} in {alike[0].id}"
    folder, taken, run = whole
    head = f"{name}: the reports of the whole program took {size(taken)} in {folder.id}"
    if alike is not None:
        return f"{head}, its window {size(alike[1])} in {alike[0].id}: {percent(100 * (1 - alike[1] / taken))} less"
    share = _window_share(folder, run, timeline)
    if share is None:
        return f"{head}; how much of it is in the window is not known"
    return f"{head}; its window is {share[0]}, about {percent(100 * share[1])} of it"


def _window_key(timeline: TimelinePass) -> tuple[Any, ...]:
    return timeline.within, timeline.after, timeline.duration


def _window_share(folder: CampaignFolder, run: str, timeline: TimelinePass) -> tuple[str, float] | None:
    """How much of a timeline of the whole program is in a window, in words and as a fraction; None: not known."""
    try:
        if timeline.within is not None:
            rows = [row for row in load_rows(folder, "nvtx_summary") if row["run"] == run]
            calls = [row["calls"] for row in rows if row["name"] == timeline.within.nvtx and row["calls"]]
            if not calls:
                return None
            count = min(timeline.within.count, max(calls))
            return f"{count} of {max(calls):,} ranges {show_value(timeline.within.nvtx)}", count / max(calls)
        rows = [row for row in load_rows(folder, "facts") if row["run"] == run and row["key"] == "duration_ns"]
    except NswError:
        return None
    whole_s = max((row["value"] / 1e9 for row in rows if row["value"]), default=None)
    if whole_s is None:
        return None
    left_s = max(0.0, whole_s - (timeline.after or 0))
    window_s = left_s if timeline.duration is None else min(left_s, float(timeline.duration))
    return f"{format_duration(round(window_s))} of {format_duration(round(whole_s))}", window_s / whole_s
