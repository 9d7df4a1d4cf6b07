"""`nsw plan` and `nsw render`: everything before something is submitted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nsw.cli import places, writing
from nsw.errors import Exit, InputError
from nsw.present.text_of_others import harmless, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nsw.errors import Diagnostic
    from nsw.plan.facts import SiteFacts
    from nsw.plan.model import Job, Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.overrides import Overrides
    from nsw.site.load import LoadedSite


_VERSIONED = ("nsys", "ncu", "nvprof")  # profilers that are programs; a name is looked for where the job runs


def plan(
    recipe: str,
    site: str | None,
    sites: Sequence[Path] | None,
    format: str,
    output: Path | None,
    options: Overrides | None = None,
) -> int:
    """Show the plan, and what the site's scheduler says of it where it can be asked.

    Raises:
        InputError: The scheduler would refuse a job.
    """
    from nsw.cli.asking import ask
    from nsw.present import emit, plan_view
    from nsw.present.terminal import console

    made, loaded, place, known = places.make_plan(recipe, site, sites, options)
    prospects = ask(made, loaded, place, renderer(made, place, known))
    warnings = [w.render() for w in (*loaded.warnings, *unset_secrets(made, loaded, place))]
    warnings += [f"{p.jobs[0]}: {p.untold}" for p in prospects if p.untold]
    starts = {name: p.start for p in prospects for name in p.jobs if p.start}
    if format in writing.OF_ROWS:
        writing.put_rows(format, plan_view.run_rows(made), plan_view.RUN_COLUMNS, output, made.note)
    else:
        with writing.printed(format, output):
            if format == "json":
                emit.as_json({**plan_view.plan_data(made), "starts": starts, "warnings": warnings})
            else:
                plan_view.show_plan(console(), made, warnings, starts)
    refused = [p.refused for p in prospects if p.refused]
    if refused:
        raise InputError(refused)
    return Exit.GOOD


def render(
    recipe: str, site: str | None, sites: Sequence[Path] | None, into: Path | None, options: Overrides | None = None
) -> int:
    """Print or write the scripts."""
    made, _, place, known = places.make_plan(recipe, site, sites, options)
    script = renderer(made, place, known)
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        for job in made.jobs:
            (into / f"{job.name}.sh").write_text(script(job, "CAMPAIGN", "CAMPAIGN/scratch"), encoding="utf-8")
        say(f"{len(made.jobs)} script{'s' if len(made.jobs) != 1 else ''} in {into}", file=sys.stderr)
        return Exit.GOOD
    for number, job in enumerate(made.jobs):
        if len(made.jobs) > 1:
            say(f"{chr(10) if number else ''}# ==== {job.name}.sh ====")
        text = script(job, "CAMPAIGN", "CAMPAIGN/scratch")
        sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)  # in a file or a pipe as it is
    return Exit.GOOD


def unset_secrets(made: Plan, loaded: LoadedRecipe, place: LoadedSite) -> list[Diagnostic]:
    """The secrets that come from nsw's own environment and are not there."""
    found: dict[tuple[str, str], Diagnostic] = {}
    for name, secret in (entry for one in made.secrets for entry in one.items()):
        source = secret.from_env
        if source is None or source in os.environ:
            continue
        in_recipe = name in loaded.recipe.app.env
        document = loaded.document if in_recipe else place.document
        path = ("app", "env", name) if in_recipe else ("sites", place.site.name, "env", name)
        message = f"the secret {name} comes from nsw's own environment, where {source} is not set"
        found[name, source] = document.diagnostic(path, message, hint=f"read -rs {source} && export {source}")
    return list(found.values())


def renderer(made: Plan, place: LoadedSite, known: SiteFacts) -> Callable[[Job, str, str], str]:
    """The function that renders a job of this plan on this site: (job, campaign, scratch) -> script."""
    from nsw.schedulers.create import adapter_of
    from nsw.scripts.render import render_job

    used = {run.tool for run in made.runs}
    there = known.tools or {tool: tool for tool in _VERSIONED} | {
        str(t): path for t, path in place.site.profilers.items()
    }
    tools = {tool: path for tool, path in there.items() if tool in used}
    overrides = {block: place.folder / file for block, file in place.site.templates.items()}
    _refuse_others(place, overrides)

    adapter = adapter_of(place.site.scheduler)

    def script(job: Job, campaign: str, scratch: str) -> str:
        return render_job(
            made,
            job,
            scheduler=place.site.scheduler,
            campaign=campaign,
            scratch=scratch,
            directives=adapter.directives(job, scratch) if adapter else (),
            login_shell=place.site.login_shell,
            tools=tools,
            overrides=overrides,
        )

    return script


def _refuse_others(place: LoadedSite, templates: Mapping[str, Path]) -> None:
    """Refuse templates that another user may have written, unless the sites file was asked for by name.

    Raises:
        InputError: One is such.
    """
    from nsw.site.files import unsafe

    faults = [
        place.document.diagnostic(
            ("sites", place.site.name, "templates", block),
            f"{file} is not read, for another user may have written it: {why}",
            hint="make it and its folder yours alone (chown, chmod go-w), or name the sites file:"
            f" `--sites {place.origin}`",
        )
        for block, file in templates.items()
        if not place.named and (why := unsafe(file))
    ]
    if faults:
        raise InputError(faults)
