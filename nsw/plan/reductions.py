"""Reductions: tasks that turn the reports of done runs into small files on the site, beside the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.plan.jobs import pack
from nsw.plan.model import AROUND_S, REDUCTION, Job, Resources, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.site.model import Site

_TIME_S: Final = 1800  # seconds of one: an export of 10 GB takes a few minutes


def are_tasks(site: Site) -> bool:
    """Whether reports are reduced by tasks of their own; on this machine a job exports its reports itself."""
    return site.scheduler != "local" or site.transport.kind != "local"


def reductions(name: str, runs: Sequence[Run], site: Site) -> tuple[Job, ...]:
    """The jobs that reduce the reports of these runs, a task a run; of a warm-up nothing is read.

    Args:
        name: Beginning of the jobs' names.
        runs: The runs.
        site: Where they are done: few on its login node, many by its scheduler.
    """
    reduced = [run for run in runs if run.reduction and run.repeat]
    # a login node is shared: two go there at a time, and a few are over in minutes
    place = "job" if site.scheduler == "local" or len(reduced) > site.limits.login_reductions else "login"
    longest = site.limits.max_walltime
    time_s = _TIME_S if longest is None else max(1, min(_TIME_S, int(longest) - AROUND_S))
    some = [_reduction(run, time_s) for run in reduced]
    jobs = pack(f"{name}-reduce", some, runs_per_task=1, max_array=site.limits.max_array)
    return tuple(replace(job, reduction=place) for job in jobs)


def _reduction(run: Run, time_s: int) -> Run:
    needs = run.resources
    asked = Resources(
        time_s=time_s, queue=needs.queue, account=needs.account, qos=needs.qos, reservation=needs.reservation,
        constraint=needs.constraint, extra=needs.extra,
    )  # fmt: skip
    return Run(
        f"{run.id}{REDUCTION}", run.case_id, run.params, run.pass_name, "reduction", run.tool, run.repeat,
        (*run.reduction, run.id), {}, asked, app=run.app,
    )  # fmt: skip
