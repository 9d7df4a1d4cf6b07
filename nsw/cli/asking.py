"""Ask the scheduler of a site whether and when it would take the jobs of a plan, without submitting one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.errors import CommandResult
    from nsw.plan.model import Job, Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport

_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the scheduler said of jobs that ask for the same: when they would start, or why not.

    `refused` holds what must be changed; `untold` says why it could not be asked, which is no fault of the plan.
    """

    jobs: tuple[str, ...]
    start: str | None = None
    refused: Diagnostic | None = None
    untold: str | None = None


def ask(
    plan: Plan,
    loaded: LoadedRecipe,
    place: LoadedSite,
    script: Callable[[Job, str, str], str],
    transport: Transport | None = None,
) -> list[Prospect]:
    """A prospect for each distinct set of resources; none where the site's scheduler cannot be asked."""
    if place.site.scheduler != "slurm" or place.site.transport.kind != "local":
        return []
    if transport is None:
        from nsw.transport.local import LocalTransport

        transport = LocalTransport()
    with tempfile.TemporaryDirectory(prefix="nsw-plan-") as folder:
        return list(_prospects(plan, loaded, place, lambda job: script(job, "CAMPAIGN", folder), transport, folder))


def _prospects(
    plan: Plan,
    loaded: LoadedRecipe,
    place: LoadedSite,
    script: Callable[[Job], str],
    transport: Transport,
    folder: str,
) -> Iterator[Prospect]:
    from nsw.schedulers import slurm
    from nsw.transport.runner import Runner

    runner = Runner(transport, transient=slurm.transient, without=slurm.CLEARED, keep=slurm.KEPT)
    unreachable: str | None = None
    for jobs in _alike(plan):
        names = tuple(job.name for job in jobs)
        if unreachable is not None:  # each further try would cost as many seconds, for the same answer
            yield Prospect(names, untold=unreachable)
            continue
        file = Path(folder) / "job.sh"
        file.write_text(script(jobs[0]), encoding="utf-8")
        result = runner.run(slurm.test_command(str(file)), timeout=_LIMIT_S)
        start = slurm.parse_test(result)
        if start is not None:
            yield Prospect(names, start=start)
        elif result.returncode == 0 or slurm.transient(result) or slurm.not_sent(result) or slurm.is_full(result):
            unreachable = _said(result)
            yield Prospect(names, untold=unreachable)
        else:
            yield Prospect(names, refused=_refused(loaded, place, jobs[0], result))


def _alike(plan: Plan) -> list[list[Job]]:
    """The jobs, those together that ask for the same."""
    groups: dict[object, list[Job]] = {}
    for job in plan.jobs:
        groups.setdefault((job.resources, job.walltime_s), []).append(job)
    return list(groups.values())


def _said(result: CommandResult) -> str:
    if result.timed_out:
        return f"sbatch --test-only gave no answer within {_LIMIT_S:g} s"
    text = "; ".join(line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip())
    return f"sbatch --test-only could not tell: {text or f'exit status {result.returncode}, without a word'}"


def _refused(loaded: LoadedRecipe, place: LoadedSite, job: Job, result: CommandResult) -> Diagnostic:
    """The refusal at the line that asks for it: the recipe's where it says so, else the site's."""
    from nsw.schedulers import slurm

    said, key, hint = slurm.refusal(result)
    message = f"sbatch would refuse {job.name}: {said}"
    keys = {"partition": ("partition", "queue"), "gres": ("gres", "gpus")}.get(key or "", (key,) if key else ())
    for name in keys:
        if loaded.document.node(("resources", name)) is not None:
            return loaded.document.diagnostic(("resources", name), message, hint=hint)
    for name in keys:
        path = ("sites", place.site.name, name)
        if place.document.node(path) is not None:
            return place.document.diagnostic(path, message, hint=hint)
    if loaded.document.node(("resources",)) is not None:
        return loaded.document.diagnostic(("resources",), message, hint=hint, key=True)
    return Diagnostic(message, hint=hint)
