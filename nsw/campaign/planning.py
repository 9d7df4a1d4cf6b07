"""A plan from the names of a recipe and a site, and what `--against` names: load both, ask the site, plan, render."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.apart import limited_block
from nsw.engine.events import Message
from nsw.engine.folder import LEDGER, CampaignFolder, root
from nsw.engine.recipe_lock import check_out, locked_recipe, resolve_commit
from nsw.errors import CommandResult, Diagnostic, InputError, RefusedError, UnreachableError, UsageError, did_you_mean
from nsw.recipe.document import parse
from nsw.recipe.expressions import is_template
from nsw.recipe.launcher_names import launcher_commands, load_launcher
from nsw.recipe.load import REPEATS, Before, LoadedRecipe, Overrides, load_recipe
from nsw.recipe.passes import site_profilers
from nsw.recipe.program import first_program, source_path
from nsw.resources import recipes_folder
from nsw.safe_files import write_text
from nsw.schedulers.adapter import Adapter, foreign_lines, place_of_line, refused_keys
from nsw.schedulers.batch import runner_of
from nsw.schedulers.create import adapter_of, batch_commands_here
from nsw.site.names import LOCAL, untrusted_reason
from nsw.transport.local import LocalTransport
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.plan.model import Job, Part, Plan, SiteFacts
    from nsw.recipe.matrix import Matrix
    from nsw.site.load import LoadedSite
    from nsw.site.model import Site
    from nsw.transport.commands import Runner
    from nsw.transport.model import Transport


_BARE: Final = re.compile(r"[\w.+-]+")  # neither a path, a template, an assignment nor anything of a shell
_JOBS_NAMED: Final = 4  # in a warning
_INTERPRETERS: Final = ("python", "python3", "bash", "sh", "julia", "perl", "Rscript")


def missing_programs(loaded: LoadedRecipe, site: Site) -> Iterator[Diagnostic]:
    """Warns of a program or a launcher that is not on PATH here; of none where only the runs can tell."""
    app = loaded.recipe.app
    elsewhere = site.scheduler != LOCAL or site.transport.kind != LOCAL or site.replay
    may_bring = app.setup or app.build or app.container or site.modules or site.login_shell
    if elsewhere or may_bring or "PATH" in {*app.env, *site.env}:
        return
    kind = app.launcher.kind
    if load_launcher(kind).on_path and not shutil.which(kind):
        message = f"{kind} is not on PATH here: the runs will not find it"
        yield loaded.document.diagnostic(("app", "launcher"), message)
    if kind != "none":
        return
    program = next(iter(first_program(loaded.document)), "")
    sent = {name.rpartition("/")[2] for name in app.files}
    if not _BARE.fullmatch(program) or program in sent or shutil.which(program) or _is_bash_command(program):
        return
    hint = did_you_mean(program, [name for name in (*_INTERPRETERS, *launcher_commands()) if shutil.which(name)])
    message = f"{program} is not on PATH here: the runs will not find it"
    yield loaded.document.diagnostic(("app", "command"), message, hint=hint)


def _is_bash_command(word: str) -> bool:
    """Whether a word is a bash builtin, or a function from the environment."""
    return subprocess.run(["bash", "-c", 'type -- "$1"', "nsw", word], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made of."""

    plan: Plan
    recipe: LoadedRecipe
    site: LoadedSite
    facts: SiteFacts

    def unset_secrets(self) -> list[Diagnostic]:
        """The secrets that come from nsw's own environment and are not set there."""
        diagnostics: dict[tuple[str, str], Diagnostic] = {}
        for name, secret in (entry for values in self.plan.secrets for entry in values.items()):
            source = secret.from_env
            if source is None or source in os.environ:
                continue
            in_recipe = name in self.recipe.recipe.app.env
            document = self.recipe.document if in_recipe else self.site.document
            path = ("app", "env", name) if in_recipe else ("sites", self.site.site.name, "env", name)
            message = f"the secret {name} comes from nsw's own environment, where {source} is not set"
            diagnostics[name, source] = document.diagnostic(path, message, hint=f"read -rs {source} && export {source}")
        return list(diagnostics.values())

    def scratch_to_show(self) -> str:
        """The campaign's folder in scripts that are only shown: `CAMPAIGN` is in place of its name.

        Variables of a site elsewhere are not asked for: their names are in their place, such as USER.
        """
        scratch = self.site.site.scratch
        if scratch is None:
            return f"{root().absolute()}/CAMPAIGN/scratch"
        if self.site.site.transport.kind == "local":
            scratch = os.path.expanduser(os.path.expandvars(scratch))  # noqa: PTH111  with the variables' expansion in one line
        return re.sub(r"\$\{?(\w+)\}?", r"\1", scratch) + "/CAMPAIGN"

    def renderer(self) -> Callable[[Job, str, str], str]:
        """The function that renders a job of this plan on its site: (job, campaign, scratch) -> script.

        Raises:
            InputError: A template of the site may have been written by another user.
        """
        from nsw.scripts.render import render_job

        site = self.site.site
        used = {run.tool for run in self.plan.runs}
        tool_paths = self.facts.tools or {tool: tool for tool in site_profilers()} | {
            str(t): path for t, path in site.profilers.items()
        }
        tools = {tool: path for tool, path in tool_paths.items() if tool in used}
        container = self.recipe.recipe.app.container
        if container is not None and not re.search(r"[{$]", container.image):  # the same for all runs
            tools["image"] = f"{container.runtime} {container.image}"
        overrides = {block: self.site.folder / file for block, file in site.templates.items()}
        _refuse_untrusted_templates(self.site, overrides)
        adapter = adapter_of(site.scheduler)

        def render_script(job: Job, campaign: str, scratch: str) -> str:
            return render_job(
                self.plan,
                job,
                scheduler=site.scheduler,
                campaign=campaign,
                scratch=scratch,
                directives=adapter.directives(job, scratch) if adapter else (),
                restarts=adapter.capabilities.restarts if adapter else "no",
                login_shell=site.login_shell,
                tools=tools,
                grace_s=int(site.limits.grace),
                overrides=overrides,
            )

        return render_script


def make_plan(
    recipe: str,
    site: str | None = None,
    sites: Sequence[Path] | None = None,
    options: Overrides | None = None,
    notify: Callable[[Message], object] = lambda _message: None,
    part: Part | None = None,
) -> Planned:
    """Load a recipe and a site, and plan.

    Args:
        recipe: The recipe's file, or the name of a shipped one.
        site: The site's name; None: the default one.
        sites: Sites files to search first.
        options: Changes of the recipe.
        notify: Called with what a person should know of the files that were taken.
        part: Only this part of it, for a campaign that there is already.

    Raises:
        InputError: The recipe or a sites file has faults, or the site cannot do it.
        UsageError: There is no such recipe or site, or an option fits nothing.
    """
    from nsw.plan.build import build_plan
    from nsw.site.load import load_site
    from nsw.site_check.check import find_facts

    loaded_site = load_site(site, list(sites) if sites else None, lambda text: notify(Message(text, "warning")))
    file = recipe_path(recipe, notify)
    loaded = _load_with_before(file, loaded_site.site.name, options)
    if site is None:
        _warn_of_batch_system(loaded_site, notify)
    site_facts = find_facts(loaded_site)
    with limited_block(f"the plan of {file}"):
        plan = build_plan(loaded, loaded_site, site_facts, fit=options is not None and options.fit, part=part)
    adapter = adapter_of(loaded_site.site.scheduler)
    if adapter is not None:
        capabilities = adapter.capabilities
        plan = replace(plan, time_step_s=capabilities.time_step_s, least_time_s=capabilities.least_time_s)
        plan = replace(plan, notes=(*plan.notes, *_no_array_notes(plan, adapter)))
        if refused := refused_keys(adapter, loaded, loaded_site):
            raise InputError(refused)
        loaded = replace(loaded, warnings=[*loaded.warnings, *foreign_lines(adapter, loaded, loaded_site)])
    late_warnings = (_unreadable_report_warning(plan, loaded, loaded_site), *missing_programs(loaded, loaded_site.site))
    loaded = replace(loaded, warnings=[*loaded.warnings, *filter(None, late_warnings)])
    return Planned(plan, loaded, loaded_site, site_facts)


def with_note(planned: Planned, note: str | None) -> Planned:
    """The same, with a person's note beside that of the site."""
    both = " ".join(filter(None, (planned.plan.note, note)))
    return replace(planned, plan=replace(planned.plan, note=both)) if note else planned


def _load_with_before(file: Path, site: str, options: Overrides | None) -> LoadedRecipe:
    with limited_block(f"reading {file}"):
        loaded = load_recipe(file, site, options)
    if options is None or options.against is None or options.before is not None:
        return loaded
    return _load_with_before(file, site, replace(options, before=resolve_before(options.against, loaded)))


def _no_array_notes(plan: Plan, adapter: Adapter) -> list[str]:
    """Note that each task becomes a job of its own on a batch system without arrays."""
    tasks = sum(len(job.tasks) for job in plan.jobs)
    if adapter.capabilities.arrays or tasks == len(plan.jobs):
        return []
    return [f"{adapter.name} has no job arrays: each of the {tasks:,} tasks is a job of its own there"]


def _unreadable_report_warning(plan: Plan, loaded: LoadedRecipe, loaded_site: LoadedSite) -> Diagnostic | None:
    """Warn before the runs if reports go to a machine that cannot read them."""
    passes = dict.fromkeys(run.pass_name for run in plan.runs if run.tool == "nsys")
    downloads_reports = loaded.recipe.collect != "tables" and loaded_site.site.transport.kind != LOCAL
    if not passes or not downloads_reports or plan.replay:
        return None
    from nsw.readers.nsys.export.binary import has_nsys  # with the readers, whose loading takes a tenth of a plan

    if has_nsys({str(tool): path for tool, path in loaded_site.site.profilers.items()}.get("nsys")):
        return None
    return loaded.document.diagnostic(
        ("collect",),
        f"this machine has no nsys to read the reports of {', '.join(passes)} with, which `collect:"
        f" {loaded.recipe.collect}` downloads: the summary will lack them",
        hint="`collect: tables` lets the site reduce them; `nsw fetch` downloads reports for the GUI later",
    )


def recipe_path(name: str, notify: Callable[[Message], object]) -> Path:
    """The recipe file: as named, or the shipped one of that name.

    Raises:
        UsageError: Neither is there.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = _shipped_recipes()
    file_name = path.name if path.suffix else f"{path.name}.yaml"
    if file_name in shipped and (path.parent == Path() or path.parts[:-1] == ("recipes",)):
        notify(Message(f"recipe: {shipped[file_name]}, as shipped with nsw"))
        return shipped[file_name]
    if path.is_dir():
        lock = path / "recipe.lock.yaml"
        hint = f"`{lock}` is the recipe that this campaign carried out" if lock.is_file() else "name a file in it"
        raise UsageError(f"{name} is a folder, not a recipe", hint=hint)
    if path.exists():
        raise UsageError(f"{name} is not a regular file, so no recipe is read from it", hint="name a file")
    near = [str(p) for p in (*path.parent.glob("*.yaml"), *path.parent.glob("*.yml"))] if path.parent.is_dir() else []
    raise UsageError(
        f"there is no recipe {name}",
        hint=did_you_mean(name, [*near, *shipped])
        or (f"files there: {first_names(sorted(near), _NAMES_IN_MESSAGE)}; " if near else "")
        + f"shipped recipes: {', '.join(sorted(shipped))}",
    )


def shipped_recipe(name: str) -> Path:
    """The shipped recipe of that name, with or without its ending.

    Raises:
        UsageError: There is none.
    """
    shipped = _shipped_recipes()
    if recipe := shipped.get(name) or shipped.get(f"{name}.yaml"):
        return recipe
    names = [name.removesuffix(".yaml") for name in shipped]
    hint = did_you_mean(name, names) or f"shipped recipes: {', '.join(names)}"
    raise UsageError(f"nsw ships no recipe {name}", hint=hint)


def _shipped_recipes() -> dict[str, Path]:
    """The recipes that nsw ships, by the name of their file."""
    return {p.name: p for p in sorted(recipes_folder().glob("*.yaml"))}


def _warn_of_batch_system(loaded_site: LoadedSite, notify: Callable[[Message], object]) -> None:
    """Warn where a batch system is at hand and nothing says that runs are for this very machine."""
    if loaded_site.site.default or loaded_site.site.name != LOCAL:
        return
    if commands := batch_commands_here():
        text = (
            f"no site is named, so all runs start on this machine itself, though it has {commands[0]}: name a site with"
            " --site or NSW_SITE, or write `default: true` at a site"
        )
        notify(Message(text, "warning"))


def _refuse_untrusted_templates(loaded_site: LoadedSite, templates: Mapping[str, Path]) -> None:
    """Refuse templates that another user may have written, unless the sites file was asked for by name.

    Raises:
        InputError: One is such.
    """
    faults = [
        loaded_site.document.diagnostic(
            ("sites", loaded_site.site.name, "templates", block),
            f"{file} is ignored, because another user may have written it: {reason}",
            hint="make it and its folder writable by you only (chown, chmod go-w), or name the sites file:"
            f" `--sites {loaded_site.origin}`",
        )
        for block, file in templates.items()
        if not loaded_site.requested and (reason := untrusted_reason(file))
    ]
    if faults:
        raise InputError(faults)


_LIMIT_S = 60.0


_COMPLAINTS = 2  # lines
_SHOWN = 4  # nodes in a message


_ANY_FOLDER = "/CAMPAIGN"


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the scheduler said of jobs that ask for the same: when they would start, or why not.

    `refused` holds what must be changed; `untold` says why it could not be asked, which is no fault of the plan;
    `waits` for what they would wait that is away now.
    """

    jobs: tuple[str, ...]
    start: str | None = None
    refused: Diagnostic | None = None
    untold: str | None = None
    waits: str | None = None


def prospect_warnings(prospects: Iterable[Prospect]) -> list[str]:
    """Why the scheduler did not say when jobs would start, the same words of several jobs once."""
    jobs: dict[str, list[str]] = {}
    for each in prospects:
        if text := each.untold or each.waits:
            jobs.setdefault(text, []).extend(each.jobs)
    return [f"{first_names(names, _JOBS_NAMED)}: {text}" for text, names in jobs.items()]


def ask_start_times(planned: Planned, calls: Counter[str] | None = None) -> list[Prospect]:
    """Ask the scheduler when the jobs of a plan would start; a prospect for each distinct set of resources.

    If the scheduler cannot be asked, only refusals of nsw's own are returned.

    Args:
        planned: The plan with its recipe and site.
        calls: Gets the number of the scheduler's commands that this took, by command; None: nobody counts them.
    """
    adapter = adapter_of(planned.site.site.scheduler)
    if adapter is None:
        return []
    if adapter.test_command("") is None:  # what nsw refuses itself is known without asking
        return list(_find_refused_jobs(planned, adapter))
    transport = connect_to_site(planned.site)
    with tempfile.TemporaryDirectory(prefix="nsw-plan-") as folder:
        asking = _Asking(adapter, runner_of(adapter, transport), transport, Path(folder))
        prospects = list(_test_jobs(planned, asking))
    if calls is not None:
        calls += asking.calls
    return prospects


@dataclass(frozen=True, slots=True)
class _Asking:
    """Asks a scheduler whether it would take a script, which it finds in `folder`."""

    adapter: Adapter
    runner: Runner
    transport: Transport
    folder: Path
    calls: Counter[str] = field(default_factory=Counter)

    def run_test(self, script: str) -> CommandResult | None:
        """What it said; None where that cannot be asked."""
        file = self.folder / "job.sh"
        write_text(file, script)
        remote_path = f"/tmp/nsw-plan-{secrets.token_hex(8)}/{file.name}"  # noqa: S108  a random name, on the site
        if self.transport.remote:
            self.transport.stage([(file, remote_path)])
        argv = self.adapter.test_command(self.transport.show(file, remote_path))
        if argv is None:
            return None
        self.calls[" ".join(argv[:2])] += 1
        try:
            return self.runner.run(argv, timeout=_LIMIT_S)
        finally:
            if self.transport.remote:
                self.transport.run(["rm", "-rf", remote_path.rpartition("/")[0]], timeout=_LIMIT_S)

    def down_nodes(self, script: str, refused: CommandResult) -> list[str]:
        """The nodes that are away now, where a job was refused because of that alone."""
        command = self.adapter.nodes_command(refused)
        if command is None:
            return []
        self.calls[command[0]] += 1
        return self.adapter.down_nodes(script, self.runner.run(command, timeout=_LIMIT_S))


def require_scheduler_answer(loaded_site: LoadedSite) -> None:
    """Ask the scheduler for a sign of life before there is a campaign that would wait for it.

    Raises:
        UnreachableError: It gives none; nothing was made or submitted.
    """
    adapter = adapter_of(loaded_site.site.scheduler)
    if adapter is None:
        return
    runner, command = runner_of(adapter, connect_to_site(loaded_site)), adapter.sign_of_life_command()
    result = runner.run(command, timeout=60, retry=2)
    if result.returncode == 0 and not result.timed_out:
        return
    answer = (result.stderr or result.stdout).strip() or "it gave no answer within a minute"
    answer, _, hint = answer.partition("\n  hint: ")  # of the transport: the machine itself was not reached
    advice = f"is this its login node, with {adapter.name}'s commands on PATH?"
    if adapter.transient(result):
        advice = "its server does not answer: try again later"
    raise UnreachableError(
        f"the {adapter.name} of site {loaded_site.site.name} does not answer `{command[0]}`: {answer}",
        hint=hint or advice,
    )


def connect_to_site(loaded_site: LoadedSite) -> Transport:
    """The way to a site for which there is no campaign yet."""
    from nsw.transport.model import connect

    return connect(loaded_site.site.model_dump(mode="json", by_alias=True))


def _test_jobs(planned: Planned, asking: _Asking) -> Iterator[Prospect]:
    adapter, script = asking.adapter, planned.renderer()
    unreachable: str | None = None
    for jobs in _jobs_by_resources(planned.plan):
        names = tuple(job.name for job in jobs)
        if unreachable is not None:  # each further try would cost as many seconds, for the same answer
            yield Prospect(names, untold=unreachable)
            continue
        try:
            text = script(jobs[0], "CAMPAIGN", str(asking.folder))
            result = asking.run_test(text)
        except RefusedError as fault:
            yield Prospect(names, refused=_refusal_at_line(planned, jobs[0], fault))
            continue
        if result is None:
            return
        start = adapter.parse_test(result)
        if start is not None:
            yield Prospect(names, start=start)
        elif adapter.is_full(result) or (refused_by := adapter.refusal(result)) is None:
            unreachable = _no_answer_reason(adapter, result)
            yield Prospect(names, untold=unreachable)
        elif down := asking.down_nodes(text, result):
            yield Prospect(names, waits=f"would wait until nodes are up again: {first_names(down, _SHOWN)}")
        else:
            message = f"{adapter.submit} would refuse {jobs[0].name}: {refused_by.message}"
            refusal = RefusedError(message, key=refused_by.key, hint=refused_by.hint)
            yield Prospect(names, refused=_refusal_at_line(planned, jobs[0], refusal))


def _find_refused_jobs(planned: Planned, adapter: Adapter) -> Iterator[Prospect]:
    """The jobs whose directives cannot be written."""
    for jobs in _jobs_by_resources(planned.plan):
        try:
            adapter.directives(jobs[0], _ANY_FOLDER)
        except RefusedError as fault:
            refused = _refusal_at_line(planned, jobs[0], fault)
            yield Prospect(tuple(job.name for job in jobs), refused=refused)


def _jobs_by_resources(plan: Plan) -> list[list[Job]]:
    """The jobs, builds and reductions among them, those together that ask for the same."""
    groups: dict[object, list[Job]] = {}
    for job in (*plan.builds, *plan.jobs, *plan.reductions):
        if job.place == "job":
            groups.setdefault((job.resources, job.walltime_s), []).append(job)
    return list(groups.values())


def _no_answer_reason(adapter: Adapter, result: CommandResult) -> str:
    """Why there is no answer: the end of the command's output, where the cause is."""
    command = " ".join(result.argv[:2])
    if result.timed_out:
        return f"{adapter.name} could not be asked: {command} gave no answer within {_LIMIT_S:g} s"
    complaint = "; ".join(adapter.complaints(result)[-_COMPLAINTS:])
    complaint = complaint or f"exit status {result.returncode}, with no output"
    if adapter.is_full(result):
        return f"{adapter.name} does not say when: {complaint}"
    return f"{adapter.name} gave no answer whether it would accept this job: {command}: {complaint}"


def _refusal_at_line(planned: Planned, job: Job, fault: RefusedError) -> Diagnostic:
    """The refusal at the line of the refused request."""
    from nsw.plan.build import refusal_diagnostic

    loaded, loaded_site = planned.recipe, planned.site
    if fault.line is not None and (at := place_of_line(loaded, loaded_site, fault.line)) is not None:
        return at[0].document.diagnostic(at[1], fault.message, hint=fault.hint)
    build_key = ("app", "build", fault.key or "")
    if job.build and fault.key and loaded.document.node(build_key) is not None:
        return loaded.document.diagnostic(build_key, fault.message, hint=fault.hint)
    return refusal_diagnostic(loaded, loaded_site, fault.key, fault.message, fault.hint, gpus=job.resources.gpus)


_SETTINGS: Final = re.compile(r",(?=\w+=)")
_NAMES_IN_MESSAGE: Final = 3  # names in a message


def resolve_before(ref: str, loaded: LoadedRecipe) -> Before:
    """What a recipe is compared with.

    Raises:
        UsageError: It is nothing of what may be named, or several things, or cannot be compared.
    """
    campaign, commit, settings = _campaign_by_ref(ref), _resolve_commit(ref, loaded), "=" in ref
    candidates: list[tuple[str, Callable[[], Before]]] = []
    if campaign is not None:
        candidates.append((f"the campaign {campaign.path}", partial(_before_from_campaign, ref, campaign, loaded)))
    if commit is not None:
        candidates.append(
            (f"commit {commit[:12]} of the program's git repository", partial(_before_from_commit, ref, commit, loaded))
        )
    if settings:
        candidates.append(("values of parameters", partial(_before_from_values, ref, loaded)))
    if len(candidates) == 1:
        before = candidates[0][1]()
        if loaded.document.node(("repeats",)) is None and any(job.repeats is None for job in loaded.recipe.passes):
            return replace(before, notes=(*before.notes, f"{REPEATS} repeats, since the recipe writes none"))
        return before
    if candidates:
        descriptions = " and ".join(description for description, _ in candidates)
        raise UsageError(
            f"--against {ref} may be {descriptions}", hint="write a path as ./NAME, a branch as refs/heads/NAME"
        )
    no_git = "" if loaded.recipe.app.files else ", which the recipe does not list (app.files)"
    raise UsageError(
        f"--against {ref}: there is no campaign in a folder {ref}, neither here nor in {root()}; no revision {ref} in"
        f" the git repository of the program's files{no_git}; and it sets no parameter (NAME=VALUE)",
        hint="name the folder of a campaign, a commit, branch or tag, or values such as n=2",
    )


def _campaign_by_ref(ref: str) -> CampaignFolder | None:
    folders = (Path(ref), root() / ref)
    return next((CampaignFolder(folder) for folder in folders if (folder / LEDGER).exists()), None)


def _app_files(loaded: LoadedRecipe) -> list[Path]:
    return [source_path(loaded.folder, name) for name in loaded.recipe.app.files]


def _resolve_commit(ref: str, loaded: LoadedRecipe) -> str | None:
    files = _app_files(loaded)
    return resolve_commit(files[0].absolute().parent, ref, LocalTransport()) if files else None


def _before_from_commit(ref: str, commit: str, loaded: LoadedRecipe) -> Before:
    temporary = tempfile.TemporaryDirectory(prefix="nsw-")
    revision = check_out(_app_files(loaded), commit, Path(temporary.name), LocalTransport())
    ref_note = "" if commit.startswith(ref) else f" ({ref})"
    sentences = [f"before: the program's files of commit {commit[:12]}{ref_note}; after: as they are now"]
    if revision.shared:
        sentences.append(f"not in git, and the same on both sides: {first_names(revision.shared, _NAMES_IN_MESSAGE)}")
    return Before(
        ref, files=tuple(map(str, revision.files)), git=revision.git, notes=tuple(sentences), temporary_files=temporary
    )


def _before_from_values(ref: str, loaded: LoadedRecipe) -> Before:
    values: dict[str, Any] = {}
    for text in _SETTINGS.split(ref):
        name, _, written = text.partition("=")
        values[name] = _parse_scalar(ref, written)
    parameters = loaded.recipe.matrix.parameters
    for name in values:
        if name not in parameters:
            hint = f"its parameters: {', '.join(parameters)}" if parameters else "it has none"
            raise UsageError(f"--against {ref}: the recipe has no parameter {name}", hint=hint)
    now = {name: _single_value(ref, loaded, name, values[name]) for name in values}
    sentence = "; ".join(f"{name}: {value} before, {now[name]} after" for name, value in values.items())
    sentence += ": both sides are the same" if now == values else ""
    return Before(ref, values, notes=(sentence,))


def _parse_scalar(ref: str, written: str) -> Any:
    try:
        value = parse(written, "--against").data
    except InputError:
        value = None
    if not isinstance(value, str | int | float | bool):
        raise UsageError(
            f"--against {ref}: {written!r} is not a value", hint="one value for each parameter, such as n=2"
        )
    return value


def _single_value(ref: str, loaded: LoadedRecipe, name: str, before: Any) -> Any:
    """The only value of a parameter.

    Raises:
        UsageError: It has several.
    """
    values = list(_parameter_values(loaded.recipe.matrix, name))
    if len(values) != 1:
        chosen = [case.params[name] for case in loaded.cases]  # by --case, which chooses runs and leaves the parameter
        after = next((value for value in (*chosen, *values) if value != before), before)
        raise UsageError(
            f"--against {ref}: {name} has {plural(len(values), 'value')} in the recipe",
            hint=f"choose the one that is compared with {before}: --set {name}={after}",
        )
    return values[0]


def _parameter_values(matrix: Matrix, name: str) -> Sequence[Any]:
    values = matrix.parameters[name]
    return values if isinstance(values, list) else values.values()


def _before_from_campaign(ref: str, folder: CampaignFolder, loaded: LoadedRecipe) -> Before:
    folder.require_trust()
    recipe = locked_recipe(folder)
    files = tuple(str((folder.path / name).absolute()) for name in recipe.app.files)
    values = _changed_values(ref, recipe.matrix, loaded)
    if not files and not values:
        raise UsageError(
            f"--against {ref}: that campaign has no copy of a program (app.files) and no parameter with another value",
            hint="list the program's files in app.files, so that each campaign keeps its own",
        )
    if files and not loaded.recipe.app.files:
        raise UsageError(f"--against {ref}: that campaign has a copy of its program, and the recipe lists no app.files")
    value_list = "".join(f", {name}: {value}" for name, value in values.items())
    sentence = (
        f"before: the {'program' if files else 'values'} of campaign {folder.id}{value_list}; after: this"
        " recipe as it is"
    )
    return Before(ref, values, files, recipe.lock.git if recipe.lock else None, (sentence,))


def _changed_values(ref: str, earlier: Matrix, loaded: LoadedRecipe) -> Mapping[str, Any]:
    """The parameters that had one other value then; of several values, the present ones must be among them.

    Raises:
        UsageError: They are not.
    """
    values: dict[str, Any] = {}
    now = loaded.recipe.matrix
    for name in now.parameters:
        old, new = _parameter_values(earlier, name) if name in earlier.parameters else (), _parameter_values(now, name)
        if any(is_template(value) for value in (*old, *new)) or set(new) <= set(old) or not old:
            continue
        if len(old) > 1:
            raise UsageError(
                f"--against {ref}: {name} was {', '.join(map(str, old))} there, and is {', '.join(map(str, new))} here",
                hint=f"--set {name}={old[0]} takes a value that both have",
            )
        _single_value(ref, loaded, name, old[0])
        values[name] = old[0]
    return values
