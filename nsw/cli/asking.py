"""Ask the scheduler of a site whether and when it would take the jobs of a plan, without submitting one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import RefusedError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator

    from nsw.errors import CommandResult, Diagnostic
    from nsw.plan.model import Job, Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport
    from nsw.transport.runner import Runner

_LIMIT_S = 60.0
_COMPLAINTS = 2  # lines


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
    calls: Counter[str] | None = None,
) -> list[Prospect]:
    """A prospect for each distinct set of resources; none where the site's scheduler cannot be asked.

    `calls` counts the scheduler's commands that this took.
    """
    if place.site.scheduler != "slurm" or place.site.transport.kind != "local":
        return []
    from nsw.schedulers import slurm
    from nsw.transport.runner import Runner

    if transport is None:
        from nsw.transport.local import LocalTransport

        transport = LocalTransport()
    with tempfile.TemporaryDirectory(prefix="nsw-plan-") as folder:
        runner = Runner(transport, transient=slurm.transient, without=slurm.CLEARED, keep=slurm.KEPT)
        found = list(_prospects(plan, loaded, place, lambda job: script(job, "CAMPAIGN", folder), runner, folder))
    if calls is not None:
        calls["sbatch --test-only"] += runner.calls["sbatch"]
    return found


def _prospects(
    plan: Plan,
    loaded: LoadedRecipe,
    place: LoadedSite,
    script: Callable[[Job], str],
    runner: Runner,
    folder: str,
) -> Iterator[Prospect]:
    from nsw.schedulers import slurm

    unreachable: str | None = None
    for jobs in _alike(plan):
        names = tuple(job.name for job in jobs)
        if unreachable is not None:  # each further try would cost as many seconds, for the same answer
            yield Prospect(names, untold=unreachable)
            continue
        file = Path(folder) / "job.sh"
        try:
            file.write_text(script(jobs[0]), encoding="utf-8")
        except RefusedError as fault:
            yield Prospect(names, refused=_refused(loaded, place, jobs[0], fault))
            continue
        result = runner.run(slurm.test_command(str(file)), timeout=_LIMIT_S)
        start = slurm.parse_test(result)
        if start is not None:
            yield Prospect(names, start=start)
        elif result.returncode == 0 or slurm.in_doubt(result) or slurm.is_full(result):
            unreachable = _untold(result)
            yield Prospect(names, untold=unreachable)
        else:
            said, key, hint = slurm.refusal(result)
            refusal = RefusedError(f"sbatch would refuse {jobs[0].name}: {said}", key=key, hint=hint)
            yield Prospect(names, refused=_refused(loaded, place, jobs[0], refusal))


def _alike(plan: Plan) -> list[list[Job]]:
    """The jobs, builds among them, those together that ask for the same."""
    groups: dict[object, list[Job]] = {}
    for job in (*(build for build in plan.builds if build.build == "job"), *plan.jobs):
        groups.setdefault((job.resources, job.walltime_s), []).append(job)
    return list(groups.values())


def _untold(result: CommandResult) -> str:
    """Why there is no answer: the end of what sbatch said, where the cause stands."""
    from nsw.schedulers import slurm

    if result.timed_out:
        return f"Slurm could not be asked: sbatch --test-only gave no answer within {_LIMIT_S:g} s"
    said = "; ".join(slurm.complaints(result)[-_COMPLAINTS:])
    said = said or f"exit status {result.returncode}, without a word"
    if slurm.is_full(result):
        return f"Slurm does not say when: {said}"
    return f"Slurm could not be asked whether it would take this: sbatch --test-only: {said}"


def _refused(loaded: LoadedRecipe, place: LoadedSite, job: Job, fault: RefusedError) -> Diagnostic:
    from nsw.plan.asked import refused_at

    own = ("app", "build", fault.key or "")
    if job.build and fault.key and loaded.document.node(own) is not None:
        return loaded.document.diagnostic(own, fault.message, hint=fault.hint)
    return refused_at(loaded, place, fault.key, fault.message, fault.hint, gpus=job.resources.gpus)
