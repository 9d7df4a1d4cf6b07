"""Ask the scheduler of a site whether and when it would take the jobs of a plan, without submitting one."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.errors import CommandResult, Diagnostic
    from nsw.plan.model import Job, Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.schedulers.dialect import Dialect
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
    from nsw.schedulers.create import dialect_of

    words = dialect_of(place.site.scheduler)
    if words is None:
        return []
    transport = transport or way_to(place)
    with tempfile.TemporaryDirectory(prefix="nsw-plan-") as folder:
        asking = _Asking(words, runner_of(words, transport), transport, Path(folder))
        found = list(_prospects(plan, loaded, place, lambda job: script(job, "CAMPAIGN", folder), asking))
    if calls is not None:
        calls += asking.calls
    return found


@dataclass(frozen=True, slots=True)
class _Asking:
    """Asks a scheduler whether it would take a script, which it finds in `folder`."""

    words: Dialect
    runner: Runner
    transport: Transport
    folder: Path
    calls: Counter[str] = field(default_factory=Counter)

    def test(self, script: str) -> CommandResult | None:
        """What it said; None where that cannot be asked."""
        file = self.folder / "job.sh"
        file.write_text(script, encoding="utf-8")
        argv = self.words.test_command(self.transport.show(file, str(file)))
        if argv is None:
            return None
        self.calls[" ".join(argv[:2])] += 1
        return self.runner.run(argv, timeout=_LIMIT_S)


def way_to(place: LoadedSite) -> Transport:
    """The way to a site for which there is no campaign yet."""
    from nsw.transport.create import connect

    return connect(place.site.model_dump(mode="json", by_alias=True))


def runner_of(words: Dialect, transport: Transport) -> Runner:
    """What runs a scheduler's commands, free of the user's variables."""
    from nsw.transport.runner import Runner

    return Runner(transport, transient=words.transient, without=words.CLEARED, keep=words.KEPT)


def _prospects(
    plan: Plan,
    loaded: LoadedRecipe,
    place: LoadedSite,
    script: Callable[[Job], str],
    asking: _Asking,
) -> Iterator[Prospect]:
    words = asking.words
    unreachable: str | None = None
    for jobs in _alike(plan):
        names = tuple(job.name for job in jobs)
        if unreachable is not None:  # each further try would cost as many seconds, for the same answer
            yield Prospect(names, untold=unreachable)
            continue
        try:
            result = asking.test(script(jobs[0]))
        except RefusedError as fault:
            yield Prospect(names, refused=_refused(loaded, place, jobs[0], fault))
            continue
        if result is None:
            return
        start = words.parse_test(result)
        if start is not None:
            yield Prospect(names, start=start)
        elif result.returncode == 0 or words.in_doubt(result) or words.is_full(result):
            unreachable = _untold(words, result)
            yield Prospect(names, untold=unreachable)
        else:
            said, key, hint = words.refusal(result)
            refusal = RefusedError(f"{words.SUBMIT} would refuse {jobs[0].name}: {said}", key=key, hint=hint)
            yield Prospect(names, refused=_refused(loaded, place, jobs[0], refusal))


def _alike(plan: Plan) -> list[list[Job]]:
    """The jobs, builds among them, those together that ask for the same."""
    groups: dict[object, list[Job]] = {}
    for job in (*(build for build in plan.builds if build.build == "job"), *plan.jobs):
        groups.setdefault((job.resources, job.walltime_s), []).append(job)
    return list(groups.values())


def _untold(words: Dialect, result: CommandResult) -> str:
    """Why there is no answer: the end of what the command said, where the cause stands."""
    command = " ".join(result.argv[:2])
    if result.timed_out:
        return f"{words.NAME} could not be asked: {command} gave no answer within {_LIMIT_S:g} s"
    said = "; ".join(words.complaints(result)[-_COMPLAINTS:])
    said = said or f"exit status {result.returncode}, without a word"
    if words.is_full(result):
        return f"{words.NAME} does not say when: {said}"
    return f"{words.NAME} could not be asked whether it would take this: {command}: {said}"


def _refused(loaded: LoadedRecipe, place: LoadedSite, job: Job, fault: RefusedError) -> Diagnostic:
    from nsw.plan.asked import refused_at

    own = ("app", "build", fault.key or "")
    if job.build and fault.key and loaded.document.node(own) is not None:
        return loaded.document.diagnostic(own, fault.message, hint=fault.hint)
    return refused_at(loaded, place, fault.key, fault.message, fault.hint, gpus=job.resources.gpus)
