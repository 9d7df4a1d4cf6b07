"""A plan from the names of a recipe and a site: load both, find out what the site has, plan, render."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.engine.events import Message
from nsw.errors import Diagnostic, InputError, UsageError, did_you_mean
from nsw.recipe.launcher_names import launcher_commands, load_launcher
from nsw.recipe.program import first_program
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.plan.model import Job, Part, Plan, SiteFacts
    from nsw.recipe.load import LoadedRecipe, Overrides
    from nsw.schedulers.adapter import Adapter
    from nsw.site.load import LoadedSite
    from nsw.site.model import Site


_BARE: Final = re.compile(r"[\w.+-]+")  # neither a path, a template, an assignment nor anything of a shell
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
    if not _BARE.fullmatch(program) or program in sent or shutil.which(program) or _bash_knows(program):
        return
    hint = did_you_mean(program, [name for name in (*_INTERPRETERS, *launcher_commands()) if shutil.which(name)])
    message = f"{program} is not on PATH here: the runs will not find it"
    yield loaded.document.diagnostic(("app", "command"), message, hint=hint)


def _bash_knows(word: str) -> bool:
    """Whether it is a word of bash's own, or a function that it has from the environment."""
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
        for name, secret in (entry for secrets in self.plan.secrets for entry in secrets.items()):
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
        from nsw.engine.folder import root

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
        from nsw.recipe.passes import on_a_site
        from nsw.schedulers.create import adapter_of
        from nsw.scripts.render import render_job

        site = self.site.site
        used = {run.tool for run in self.plan.runs}
        tool_paths = self.facts.tools or {tool: tool for tool in on_a_site()} | {
            str(t): path for t, path in site.profilers.items()
        }
        tools = {tool: path for tool, path in tool_paths.items() if tool in used}
        overrides = {block: self.site.folder / file for block, file in site.templates.items()}
        _refuse_untrusted_templates(self.site, overrides)
        adapter = adapter_of(site.scheduler)

        def script(job: Job, campaign: str, scratch: str) -> str:
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

        return script


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
    from nsw.apart import limited
    from nsw.plan.build import build_plan
    from nsw.schedulers.adapter import foreign_lines, refused_keys
    from nsw.schedulers.create import adapter_of
    from nsw.site.load import load_site
    from nsw.site_check.check import find_facts

    loaded_site = load_site(site, list(sites) if sites else None, lambda text: notify(Message(text, "warning")))
    file = recipe_path(recipe, notify)
    loaded = _loaded(file, loaded_site.site.name, options)
    if site is None:
        _warn_of_batch_system(loaded_site, notify)
    site_facts = find_facts(loaded_site)
    with limited(f"the plan of {file}"):
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


def _loaded(file: Path, site: str, options: Overrides | None) -> LoadedRecipe:
    from nsw.apart import limited
    from nsw.recipe.load import load_recipe

    with limited(f"reading {file}"):
        loaded = load_recipe(file, site, options)
    if options is None or options.against is None or options.before is not None:
        return loaded
    from nsw.campaign.against import resolve_before

    return _loaded(file, site, replace(options, before=resolve_before(options.against, loaded)))


def _no_array_notes(plan: Plan, adapter: Adapter) -> list[str]:
    """What a job of the plan is to a batch system without arrays."""
    tasks = sum(len(job.tasks) for job in plan.jobs)
    if adapter.capabilities.arrays or tasks == len(plan.jobs):
        return []
    return [f"{adapter.name} has no job arrays: each of the {tasks:,} tasks is a job of its own there"]


def _unreadable_report_warning(plan: Plan, loaded: LoadedRecipe, loaded_site: LoadedSite) -> Diagnostic | None:
    """A warning of reports that are brought to a machine that cannot read them: it would come when all is over."""
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
        notify(Message(f"recipe: {shipped[file_name]}, as shipped with nsw ({name} is not here)"))
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
        hint=did_you_mean(name, [*near, *shipped]) or f"shipped recipes: {', '.join(sorted(shipped))}",
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
    from nsw.resources import recipes_folder

    return {p.name: p for p in sorted(recipes_folder().glob("*.yaml"))}


def _warn_of_batch_system(loaded_site: LoadedSite, notify: Callable[[Message], object]) -> None:
    """Warn where a batch system is at hand and nothing says that runs are for this very machine."""
    from nsw.schedulers.create import batch_commands_here

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
    from nsw.site.names import untrusted_reason

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
