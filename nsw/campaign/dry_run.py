"""Ask the scheduler of a site whether and when it would take the jobs of a plan, without submitting one."""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import CommandResult, Diagnostic, RefusedError, UnreachableError
from nsw.safe_files import write_text
from nsw.wording import and_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.campaign.planning import Planned
    from nsw.plan.model import Job, Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.schedulers.adapter import Adapter
    from nsw.site.load import LoadedSite
    from nsw.transport.commands import Runner
    from nsw.transport.model import Transport


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


def ask(planned: Planned, script: Callable[[Job, str, str], str], calls: Counter[str] | None = None) -> list[Prospect]:
    """A prospect for each distinct set of resources; only refusals of nsw's own where the scheduler cannot be asked.

    `calls` counts the scheduler's commands that this took.
    """
    from nsw.schedulers.create import adapter_of

    plan, loaded, loaded_site = planned.plan, planned.recipe, planned.site
    adapter = adapter_of(loaded_site.site.scheduler)
    if adapter is None:
        return []
    if adapter.test_command("") is None:  # what nsw refuses itself is known without asking
        return list(_refused_here(plan, loaded, loaded_site, adapter))
    transport = connect_to_site(loaded_site)
    with tempfile.TemporaryDirectory(prefix="nsw-plan-") as folder:
        asking = _Asking(adapter, runner_of(adapter, transport), transport, Path(folder))
        prospects = list(_prospects(plan, loaded, loaded_site, lambda job: script(job, "CAMPAIGN", folder), asking))
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

    def test(self, script: str) -> CommandResult | None:
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


def reach(loaded_site: LoadedSite) -> None:
    """Ask the scheduler for a sign of life before there is a campaign that would wait for it.

    Raises:
        UnreachableError: It gives none; nothing was made or submitted.
    """
    from nsw.schedulers.create import adapter_of

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


def runner_of(adapter: Adapter, transport: Transport) -> Runner:
    """What runs a scheduler's commands, free of the user's variables."""
    from nsw.transport.commands import Runner

    return Runner(
        transport,
        transient=adapter.transient,
        plain=adapter.plain,
        without=adapter.cleared_variables,
        keep=adapter.kept_variables,
    )


def _prospects(
    plan: Plan,
    loaded: LoadedRecipe,
    loaded_site: LoadedSite,
    script: Callable[[Job], str],
    asking: _Asking,
) -> Iterator[Prospect]:
    adapter = asking.adapter
    unreachable: str | None = None
    for jobs in _jobs_by_resources(plan):
        names = tuple(job.name for job in jobs)
        if unreachable is not None:  # each further try would cost as many seconds, for the same answer
            yield Prospect(names, untold=unreachable)
            continue
        try:
            text = script(jobs[0])
            result = asking.test(text)
        except RefusedError as fault:
            yield Prospect(names, refused=_refused(loaded, loaded_site, jobs[0], fault, adapter))
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
            yield Prospect(names, waits=f"would wait until nodes are up again: {and_more(down, _SHOWN)}")
        else:
            message = f"{adapter.submit} would refuse {jobs[0].name}: {refused_by.message}"
            refusal = RefusedError(message, key=refused_by.key, hint=refused_by.hint)
            yield Prospect(names, refused=_refused(loaded, loaded_site, jobs[0], refusal))


def _refused_here(plan: Plan, loaded: LoadedRecipe, loaded_site: LoadedSite, adapter: Adapter) -> Iterator[Prospect]:
    """The jobs whose directives cannot be written."""
    for jobs in _jobs_by_resources(plan):
        try:
            adapter.directives(jobs[0], _ANY_FOLDER)
        except RefusedError as fault:
            refused = _refused(loaded, loaded_site, jobs[0], fault, adapter)
            yield Prospect(tuple(job.name for job in jobs), refused=refused)


def _jobs_by_resources(plan: Plan) -> list[list[Job]]:
    """The jobs, builds and reductions among them, those together that ask for the same."""
    groups: dict[object, list[Job]] = {}
    for job in (
        planned_job for planned_job in (*plan.builds, *plan.jobs, *plan.reductions) if planned_job.place == "job"
    ):
        groups.setdefault((job.resources, job.walltime_s), []).append(job)
    return list(groups.values())


def _no_answer_reason(adapter: Adapter, result: CommandResult) -> str:
    """Why there is no answer: the end of what the command said, where the cause is."""
    command = " ".join(result.argv[:2])
    if result.timed_out:
        return f"{adapter.name} could not be asked: {command} gave no answer within {_LIMIT_S:g} s"
    complaint = "; ".join(adapter.complaints(result)[-_COMPLAINTS:])
    complaint = complaint or f"exit status {result.returncode}, without a word"
    if adapter.is_full(result):
        return f"{adapter.name} does not say when: {complaint}"
    return f"{adapter.name} could not be asked whether it would take this: {command}: {complaint}"


def _refused(
    loaded: LoadedRecipe, loaded_site: LoadedSite, job: Job, fault: RefusedError, by: Adapter | None = None
) -> Diagnostic:
    """The refusal at the line that asks for it; `by` is the adapter, where it refused to write the job's directives."""
    from nsw.plan.build import refused_at
    from nsw.schedulers.adapter import place_of_line, refused_line

    line = refused_line(by, job, _ANY_FOLDER, fault) if by is not None else None
    if line is not None and (at := place_of_line(loaded, loaded_site, line)) is not None:
        return at[0].document.diagnostic(at[1], fault.message, hint=fault.hint)
    build_key = ("app", "build", fault.key or "")
    if job.build and fault.key and loaded.document.node(build_key) is not None:
        return loaded.document.diagnostic(build_key, fault.message, hint=fault.hint)
    return refused_at(loaded, loaded_site, fault.key, fault.message, fault.hint, gpus=job.resources.gpus)
