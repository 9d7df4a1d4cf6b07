"""A job of a plan -> the text of its batch script, by the templates under templates/job."""

from __future__ import annotations

import hashlib
import os
from contextlib import nullcontext
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner

from nsw.apart import limited_block
from nsw.errors import NswError, did_you_mean
from nsw.profilers import shell_functions_of_profiler
from nsw.recipe.passes import all_profilers
from nsw.resources import templates_folder
from nsw.safe_files import open_regular, write_text
from nsw.scripts.quoting import escape_comment, quote, quote_all
from nsw.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsw.plan.model import Job, Plan


def render_job(
    plan: Plan,
    job: Job,
    *,
    scheduler: str,
    campaign: str,
    scratch: str,
    directives: Sequence[str] = (),
    restarts: str = "no",
    login_shell: bool = False,
    tools: Mapping[str, str] | None = None,
    overrides: Mapping[str, Path] | None = None,
    grace_s: int = 30,
) -> str:
    """The script of one job.

    Args:
        plan: The plan that holds the job.
        job: What to render.
        scheduler: Names the template: templates/job/SCHEDULER.sh.j2.
        campaign: The campaign's id, for the header.
        scratch: Folder of the campaign on the site, where run folders are made.
        directives: The scheduler's own lines at the head of the script; a job of the login node gets none.
        restarts: `restarts` of the scheduler's capabilities: how a job learns that it was started anew.
        login_shell: Whether bash starts as a login shell, where a site's `module` needs it.
        tools: Profilers whose version is recorded: name -> path.
        overrides: The site's own templates: name of a block -> file.
        grace_s: Seconds between SIGTERM and SIGKILL for a run that is over its time.

    Raises:
        NswError: A template of the site cannot be read or used.
    """
    site_templates = tuple(sorted((overrides or {}).items()))
    template = _template(scheduler, site_templates)
    try:
        with limited_block(_template_owner(site_templates)) if site_templates else nullcontext():
            text = template.render(
                plan=plan,
                job=job,
                campaign=campaign,
                scratch=scratch,
                version=__version__,
                login_shell=login_shell,
                directives=() if job.place == "login" else directives,  # no scheduler reads that script
                restarts=restarts,
                tools=sorted((tools or {}).items()),
                machinery=machinery_name(),
                grace=grace_s,
            )
    except jinja2.TemplateError as fault:  # nsw's own templates are tested; a site's may name what there is not
        raise NswError(f"{_template_owner(site_templates)}: {fault.message or fault}") from None
    except NswError:
        raise
    except Exception as fault:  # whatever a site's arithmetic raises is its author's to see
        if not site_templates:
            raise
        raise NswError(f"{_template_owner(site_templates)}: {type(fault).__name__}: {fault}") from None
    return text.rstrip("\n") + "\n"


@lru_cache(maxsize=8)
def _template(scheduler: str, overrides: tuple[tuple[str, Path], ...]) -> jinja2.Template:
    environment = _environment(sandboxed=bool(overrides))
    name = f"job/{scheduler}.sh.j2"
    if not overrides:
        return environment.get_template(name)

    block_names = {*environment.get_template("job/base.sh.j2").blocks, *environment.get_template(name).blocks}
    parts = [f'{{% extends "job/{scheduler}.sh.j2" %}}']
    for block, file in overrides:
        if block not in block_names:
            hint = did_you_mean(block, block_names) or f"blocks: {', '.join(sorted(block_names))}"
            raise NswError(f"the job script has no block {block}, for which the site names {file}", hint=hint)
        parts.append(f"{{% block {block} %}}{read_template(file)}{{% endblock %}}")
    try:
        return environment.from_string("\n".join(parts))
    except jinja2.TemplateError as fault:
        raise NswError(f"{_template_owner(overrides)}: {fault.message or fault}") from None
    except (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError) as fault:
        raise NswError(f"{_template_owner(overrides)}: {type(fault).__name__}: {fault}") from None


_OF_PROFILERS = "# --- what profilers bring along ---\n"


def machinery_text() -> str:
    """What all job scripts share, in a file of its own beside them."""
    text = templates_folder().joinpath("job", "machinery.sh").read_text(encoding="utf-8")
    head, mark, end = text.partition(_OF_PROFILERS)
    return "".join((head, mark, *(shell_functions_of_profiler(tool) for tool in all_profilers()), end))


@lru_cache(maxsize=1)
def machinery_name() -> str:
    """The name of that file; its hash is in it, so that a script finds the version that it was written for."""
    return f"nsw-{hashlib.sha256(machinery_text().encode()).hexdigest()[:12]}.sh"


def write_machinery(folder: Path) -> Path:
    """Write that file into a folder of scripts."""
    file = folder / machinery_name()
    write_text(file, machinery_text())
    return file


def _template_owner(overrides: Sequence[tuple[str, Path]]) -> str:
    """Whose fault a template's is, as far as can be told."""
    files = ", ".join(f"{file} (block {block})" for block, file in overrides)
    return f"the site's templates for the job script, {files}" if files else "the job script"


@lru_cache(maxsize=2)
def _environment(*, sandboxed: bool) -> jinja2.Environment:
    from nsw.site.names import template_folders

    folders = [str(folder) for folder in (templates_folder(), *template_folders())]
    environment = (
        SiteEnvironment(folders)
        if sandboxed
        else jinja2.Environment(
            loader=jinja2.FileSystemLoader(folders),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701  shell, not HTML: every value goes through sh, sh_all or comment
            keep_trailing_newline=True,
        )
    )
    environment.filters.update(sh=quote, sh_all=quote_all, comment=escape_comment)
    return environment


LARGEST: Final = 1 << 20  # bytes of a template
_PLAIN: Final = (str, int, float, list, tuple, dict, set, frozenset, MappingProxyType)
_OF_JINJA: Final = (BlockReference, LoopContext, Macro, Cycler, Joiner)


class SiteEnvironment(ImmutableSandboxedEnvironment):
    """Jinja whose templates call nothing but Jinja's own and the methods of plain values, which they cannot change.

    They may extend and include the job templates in these folders, and no other file.
    """

    def __init__(self, templates: Sequence[str]) -> None:
        super().__init__(
            loader=FileSystemLoader(templates),
            undefined=StrictUndefined,
            autoescape=False,  # shell, not HTML: every value goes through sh, sh_all or comment
            keep_trailing_newline=True,
        )
        self._functions = tuple(self.globals.values())

    def is_safe_callable(self, obj: Any) -> bool:
        """Whether a template may call it."""
        bound = getattr(obj, "__wrapped__", obj)  # the sandbox's own str.format
        owner = obj if isinstance(obj, _OF_JINJA) else getattr(bound, "__self__", None)
        is_known = isinstance(owner, (*_PLAIN, *_OF_JINJA)) or any(obj is function for function in self._functions)
        return is_known and super().is_safe_callable(obj)


def read_template(file: Path) -> str:
    """The text of a site's template.

    Raises:
        NswError: It cannot be read, is too large or is no text.
    """
    try:
        with os.fdopen(open_regular(file), "rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise NswError(f"the site's template {file} is larger than {LARGEST} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise NswError(f"the site's template {file} cannot be read: {reason}") from None
