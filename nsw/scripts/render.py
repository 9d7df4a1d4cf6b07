"""A job of a plan -> the text of its batch script, by the templates under templates/job."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nsw import __version__
from nsw.errors import NswError
from nsw.scripts.quoting import comment, quote, quote_all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import jinja2

    from nsw.plan.model import Job, Plan

BLOCKS = ("directives", "environment", "provenance", "runs", "finish")


def render_job(
    plan: Plan,
    job: Job,
    *,
    scheduler: str,
    campaign: str,
    scratch: str,
    tools: Mapping[str, str] | None = None,
    overrides: Mapping[str, Path] | None = None,
) -> str:
    """The script of one job.

    Args:
        plan: The plan that holds the job.
        job: What to render.
        scheduler: Names the template: templates/job/SCHEDULER.sh.j2.
        campaign: The campaign's id, for the header.
        scratch: Folder of the campaign on the site, where run folders are made.
        tools: Profilers whose version is recorded: name -> path.
        overrides: The site's own templates: name of a block -> file.
    """
    template = _template(scheduler, tuple(sorted((overrides or {}).items())))
    text = template.render(
        plan=plan,
        job=job,
        campaign=campaign,
        scratch=scratch,
        version=__version__,
        directives=_directives(scheduler, job, scratch),
        tools=sorted((tools or {}).items()),
    )
    return text.rstrip("\n") + "\n"


def _directives(scheduler: str, job: Job, scratch: str) -> list[str]:
    """The scheduler's own lines at the head of the script."""
    if scheduler == "slurm":
        from nsw.scripts.slurm import directives

        return directives(job, scratch)
    return []


@lru_cache(maxsize=8)
def _template(scheduler: str, overrides: tuple[tuple[str, Path], ...]) -> jinja2.Template:
    import jinja2

    environment = _environment()
    if not overrides:
        return environment.get_template(f"job/{scheduler}.sh.j2")
    parts = [f'{{% extends "job/{scheduler}.sh.j2" %}}']
    for block, file in overrides:
        try:
            body = file.read_text(encoding="utf-8")
        except OSError as fault:
            raise NswError(f"the site's template {file} cannot be read: {fault.strerror}") from None
        parts.append(f"{{% block {block} %}}{body}{{% endblock %}}")
    try:
        return environment.from_string("\n".join(parts))
    except jinja2.TemplateSyntaxError as fault:
        raise NswError(f"the site's template for {', '.join(b for b, _ in overrides)}: {fault.message}") from None


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2

    from nsw.resources import templates_folder

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(templates_folder())),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  shell, not HTML: every value goes through sh, sh_all or comment
        keep_trailing_newline=True,
    )
    environment.filters.update(sh=quote, sh_all=quote_all, comment=comment)
    return environment
