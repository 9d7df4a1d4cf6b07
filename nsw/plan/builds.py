"""The build step of a recipe -> a job for each distinct set of parameters that its command uses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsw.plan.command import words
from nsw.plan.model import Job, Run
from nsw.plan.resolve import site_gres, standing_at
from nsw.recipe.matrix import case_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.plan.model import Resources
    from nsw.plan.resolve import Resolver
    from nsw.recipe.matrix import Case

APP = "app"  # folder of the application's files beside the runs' folders
_THERE = 'cd "../../../$0" && exec "$@"'  # from the folder that the job claims for it


def build_job(
    name: str,
    step: Any,
    case: Case,
    needs: Resources,
    values: Mapping[str, Any],
    resolver: Resolver,
    site: Any,
    app: str = APP,
) -> tuple[str, Job]:
    """The folder of the application that a case uses, and the job that builds there.

    Args:
        name: The recipe's.
        step: Its `app.build`.
        case: The case.
        needs: What a run of it needs: the build asks for one process of one node of the same kind.
        values: What expressions may name.
        resolver: Evaluates them.
        site: The site, which may have words of its own for GPUs.
        app: The folder of the application's files, where nothing of the case is in its name.
    """
    with standing_at("app", "build", "command"):
        expression = resolver.parse(step.command)
        used = {key: value for key, value in case.params.items() if key in expression.names}
        command = words(expression, values)
    suffix = f"-{case_id(used)}" if used else ""
    folder = f"{app}{suffix}"
    suffix = folder.removeprefix(APP)
    gpus = _gpus(step, values, resolver)
    gres = site_gres(site, 1, gpus, values, resolver)
    asked = replace(needs, nodes=1, tasks=1, gpus=gpus, gres=gres, exclusive=False, time_s=int(step.time))
    run = Run(
        f"build{suffix}", case.id, used, "build", "build", None, 1, ("bash", "-c", _THERE, folder, *command), {},
        asked, app=folder,
    )  # fmt: skip
    return folder, Job(f"{name}-build{suffix}", asked, ((run,),), build=step.where)


def _gpus(step: Any, values: Mapping[str, Any], resolver: Resolver) -> int:
    from nsw.recipe.fields import whole

    with standing_at("app", "build", "gpus"):
        return whole(resolver.value(step.gpus, values))


def command_of(job: Job) -> tuple[str, ...]:
    """The words of a build's command."""
    return job.runs[0].command[4:]
