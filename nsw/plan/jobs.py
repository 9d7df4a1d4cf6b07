"""Runs, builds and reductions -> jobs: equal resources share an array, packed runs share a task."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nsw.errors import NswError
from nsw.launchers.model import LayoutError
from nsw.plan.command import command_words
from nsw.plan.model import APP, AROUND_S, REDUCTION, Job, Resources, Run
from nsw.recipe.expressions import is_template
from nsw.recipe.fields import parse_flag, parse_whole_number
from nsw.recipe.matrix import Case, case_id
from nsw.recipe.units import Fault, parse_duration, parse_size
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.recipe.expressions import Expression
    from nsw.site.model import Site

__all__ = [
    "WARM_UP",
    "Blocks",
    "build_job",
    "command_of",
    "make_blocks",
    "pack_jobs",
    "reduces_in_tasks",
    "reduction_jobs",
    "runs_per_node",
    "runs_within_walltime",
]

T = TypeVar("T")


def pack_jobs(
    name: str,
    runs: Sequence[Run],
    *,
    runs_per_task: int | None,
    max_array: int,
    longest_s: int | None = None,
    node_gpus: int = 0,
    around_s: int = AROUND_S,
    first: int = 1,
) -> tuple[Job, ...]:
    """Jobs that hold all runs once, in the order of the runs.

    Args:
        name: Beginning of the jobs' names.
        runs: What to pack.
        runs_per_task: How many runs share a task; None: as many as fit into `longest_s`.
        max_array: How many tasks a job may have.
        longest_s: Longest walltime of a job, in seconds.
        node_gpus: GPUs of a node where jobs take whole nodes: small runs of a task go side by side on them.
        around_s: Seconds of a job beside its runs.
        first: Number of the first job.
    """
    groups: dict[tuple[Resources, str, str], list[Run]] = {}
    for run in runs:
        stage = run.needs.removeprefix(f"{run.case_id}.")  # a task holds runs that wait for the same pass
        groups.setdefault((_without_time(run.resources), run.app, stage), []).append(run)
    jobs: list[Job] = []
    for group in groups.values():
        lanes = runs_per_node(group[0].resources, node_gpus)
        size = runs_per_task or lanes * runs_within_walltime(
            max(run.resources.time_s for run in group), longest_s, around_s
        )
        tasks = _split_into_batches(group, max(1, size))
        for chunk in _split_into_batches(tasks, max(1, max_array)):
            at_a_time = min(lanes, max(len(task) for task in chunk))
            jobs.append(Job(f"{name}-j{first + len(jobs)}", chunk[0][0].resources, chunk,
                            side_by_side=at_a_time, around_s=around_s))  # fmt: skip
    return tuple(jobs)


def _without_time(needs: Resources) -> Resources:
    """What decides on the job: a longer limit does not need another one, since it asks for the longest of its tasks."""
    return replace(needs, time_s=0)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of equal resources in blocks, each with one repeat of every case, and the jobs that hold whole blocks."""

    cases: int
    blocks: int
    jobs: tuple[Job, ...]
    seed: int

    def __str__(self) -> str:
        nodes = self.jobs[0].resources.nodes
        nodes_text = "one node" if nodes == 1 else f"{nodes} nodes"
        jobs = f"one job on {nodes_text}" if len(self.jobs) == 1 else f"{len(self.jobs)} jobs, each on {nodes_text}"
        blocks = f"{plural(self.blocks, 'block')} of {plural(self.cases, 'case')}"
        return f"{blocks}, in random order, in {jobs}; seed {self.seed}"


def make_blocks(
    name: str, runs: Sequence[Run], seed: int, *, longest_s: int | None, around_s: int = AROUND_S
) -> list[Blocks]:
    """Blocks of runs that follow each other, in an order that the seed decides; warm-ups are a block before them.

    Blocks that are added to a campaign have an order of their own, by the first of them: what drifts would else show
    the same in each part.

    Args:
        name: Beginning of the jobs' names.
        runs: What to pack.
        seed: Of the order within each block.
        longest_s: Longest walltime of a job, in seconds; a block that is longer has a job of its own.
        around_s: Seconds of a job beside its runs.
    """
    chance = random.Random(seed + max(0, min((run.repeat for run in runs), default=0) - 1))  # noqa: S311  an order, no secret
    groups: dict[Resources, dict[int, list[Run]]] = {}
    for run in runs:
        groups.setdefault(_without_time(run.resources), {}).setdefault(run.repeat, []).append(run)
    groups_of_blocks: list[Blocks] = []
    for group in groups.values():
        # random() is what Python promises never to change; shuffle is not
        ordered = [sorted(group[repeat], key=lambda _: chance.random()) for repeat in sorted(group)]
        before = sum(len(blocks.jobs) for blocks in groups_of_blocks)
        tasks = _fill_tasks(ordered, None if longest_s is None else longest_s - around_s)
        jobs = (Job(f"{name}-j{before + n}", task[0].resources, (task,), around_s=around_s)
                for n, task in enumerate(tasks, 1))  # fmt: skip
        cases = {run.case_id for block in ordered for run in block}
        groups_of_blocks.append(Blocks(len(cases), len(group) - (WARM_UP in group), tuple(jobs), seed))
    return groups_of_blocks


def _fill_tasks(blocks: Sequence[Sequence[Run]], seconds: int | None) -> list[tuple[Run, ...]]:
    """Tasks that hold whole blocks, as many as fit into so many seconds."""
    tasks: list[list[Run]] = [[]]
    for block in blocks:
        length = sum(run.resources.time_s for run in (*tasks[-1], *block))
        if tasks[-1] and seconds is not None and length > seconds:
            tasks.append([])
        tasks[-1] += block
    return [tuple(task) for task in tasks]


def runs_per_node(needs: Resources, node_gpus: int) -> int:
    """How many runs with these needs a whole node takes at a time; 1 for those of several nodes or without GPUs."""
    return max(1, node_gpus // needs.gpus) if needs.nodes == 1 and needs.gpus else 1


def runs_within_walltime(time_s: int, longest_s: int | None, around_s: int = AROUND_S) -> int:
    """How many runs of so many seconds follow each other within the longest walltime.

    Args:
        time_s: Seconds of a run.
        longest_s: The longest walltime in seconds.
        around_s: Seconds of a job before and after its runs.
    """
    return 1 if longest_s is None or time_s <= 0 else max(1, (longest_s - around_s) // time_s)


def _split_into_batches(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[at : at + size]) for at in range(0, len(items), size)]


WARM_UP = 0  # the repeat of every run that is thrown away from the statistics


_CHANGE_FOLDER = 'cd "../../../$0" && exec "$@"'  # from the folder that the job claims for it


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
    with faults_at("app", "build", "command"):
        expression = resolver.parse(step.command)
        used = {key: value for key, value in case.params.items() if key in expression.names}
        command = command_words(expression, values)
    suffix = f"-{case_id(used)}" if used else ""
    folder = f"{app}{suffix}"
    suffix = folder.removeprefix(APP)
    with faults_at("app", "build", "gpus"):
        gpus = parse_whole_number(resolver.value(step.gpus, values))
    gres = site_gres(site, 1, gpus, values, resolver)
    resources = replace(needs, nodes=1, tasks=1, gpus=gpus, gres=gres, exclusive=False, time_s=int(step.time))
    run = Run(
        f"build{suffix}",
        case.id,
        used,
        "build",
        "build",
        None,
        1,
        ("bash", "-c", _CHANGE_FOLDER, folder, *command),
        {},
        resources,
        app=folder,
    )
    return folder, Job(f"{name}-build{suffix}", resources, ((run,),), build=step.where)


def command_of(job: Job) -> tuple[str, ...]:
    """The words of a build's command."""
    return job.runs[0].command[4:]


_TIME_S: Final = 1800  # seconds of one: an export of 10 GB takes a few minutes


def reduces_in_tasks(site: Site) -> bool:
    """Whether reports are reduced by tasks of their own; on this machine a job exports its reports itself."""
    return site.scheduler != "local" or site.transport.kind != "local"


def reduction_jobs(name: str, runs: Sequence[Run], site: Site) -> tuple[Job, ...]:
    """The jobs that reduce the reports of these runs, a task a run; of a warm-up nothing is read.

    Args:
        name: Beginning of the jobs' names.
        runs: The runs.
        site: Where they are done: few on its login node, many by its scheduler.
    """
    reduced = [run for run in runs if run.reduction and run.repeat]
    # a login node is shared: two go there at a time, and a few are over in minutes
    location = "job" if site.scheduler == "local" or len(reduced) > site.limits.login_reductions else "login"
    longest = site.limits.max_walltime
    time_s = _TIME_S if longest is None else max(1, min(_TIME_S, int(longest) - AROUND_S))
    reduction_runs = [_reduction_run(run, time_s) for run in reduced]
    jobs = pack_jobs(f"{name}-reduce", reduction_runs, runs_per_task=1, max_array=site.limits.max_array)
    return tuple(replace(job, reduction=location) for job in jobs)


def _reduction_run(run: Run, time_s: int) -> Run:
    needs = run.resources
    resources = Resources(
        time_s=time_s, queue=needs.queue, account=needs.account, qos=needs.qos, reservation=needs.reservation,
        constraint=needs.constraint, extra=needs.extra,
    )  # fmt: skip
    return Run(
        f"{run.id}{REDUCTION}", run.case_id, run.params, run.pass_name, "reduction", run.tool, run.repeat,
        (*run.reduction, run.id), {}, resources, app=run.app,
    )  # fmt: skip


_GPUS = 1  # of a node, where a recipe does not say how many


class UnresolvedError(NswError):
    """A value that cannot be worked out for a case, or that is none of its kind; `path` is where it is."""

    def __init__(self, path: tuple[str | int, ...], message: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@contextmanager
def faults_at(*path: str | int) -> Iterator[None]:
    """Errors inside are reported at this path of the recipe.

    Raises:
        UnresolvedError: Something did.
    """
    try:
        yield
    except LayoutError as fault:  # which knows its place
        raise UnresolvedError(fault.path, fault.message, fault.hint) from None
    except (Fault, NswError) as fault:
        raise UnresolvedError(path, fault.message, fault.hint) from None


class Resolver:
    """Evaluates expressions, remembering what the same inputs gave."""

    def __init__(self) -> None:
        self._parsed: dict[str, Expression] = {}
        self._values: dict[tuple[str, tuple[Any, ...]], Any] = {}
        self._resource_names: list[str] | None = None
        self._resources: dict[tuple[str, ...], Resources] = {}

    def parse(self, text: str) -> Expression:
        """The expression of a text."""
        expression = self._parsed.get(text)
        if expression is None:
            from nsw.recipe.expressions import Expression

            expression = self._parsed[text] = Expression.parse(text)
        return expression

    def value(self, value: Any, values: Mapping[str, Any]) -> Any:
        """A literal as it is; a text with `{{ }}` filled in."""
        if not isinstance(value, str) or "{" not in value:
            return value
        expression = self.parse(value)
        key = (value, tuple(repr(values.get(name)) for name in sorted(expression.names)))
        if key not in self._values:
            self._values[key] = expression.value(values)
        return self._values[key]

    def resources(self, requested: Any, site: Any, values: Mapping[str, Any]) -> Resources:
        """The resources of one case; cases that differ in nothing they are made of share them.

        Args:
            requested: What the recipe asks for.
            site: The site.
            values: The case's parameters and what follows from them.
        """
        if self._resource_names is None:
            texts = [text for text in (*requested.model_dump().values(), *requested.extra) if is_template(text)]
            self._resource_names = sorted({name for text in texts for name in self.parse(text).names})
        key = tuple(repr(values.get(name)) for name in self._resource_names)
        if key not in self._resources:
            self._resources[key] = resources(requested, site, values, self)
        return self._resources[key]


def resources(requested: Any, site: Any, values: Mapping[str, Any], resolver: Resolver) -> Resources:
    """The resources of one case, with what the site says where the recipe is silent; its tasks follow from the layout.

    Args:
        requested: The recipe's `resources`.
        site: The site, for queue and account.
        values: What expressions may name.
        resolver: Evaluates them.
    """

    def evaluate_key(name: str, parse: Callable[[Any], Any] = str) -> Any:
        with faults_at("resources", name):
            value = resolver.value(getattr(requested, name), values)
            return None if value is None else parse(value)

    def fill_line(number: int, line: str) -> str:
        with faults_at("resources", "extra", number):
            return str(resolver.value(line, values))

    at_least_one = partial(parse_whole_number, minimum=1)
    nodes = evaluate_key("nodes", at_least_one)
    requested_gpus = evaluate_key("gpus", parse_whole_number)
    gpus = _GPUS * nodes if requested_gpus is None else requested_gpus
    return Resources(
        nodes=nodes,
        gpus=gpus,
        cpus_per_task=evaluate_key("cpus_per_task", at_least_one),
        memory_bytes=evaluate_key("memory", _parse_if_text(parse_size)),
        time_s=evaluate_key("time", _parse_if_text(parse_duration)),
        exclusive=evaluate_key("exclusive", parse_flag),
        queue=evaluate_key("queue") or evaluate_key("partition") or site.queue or site.partition,
        account=evaluate_key("account") or site.account,
        qos=evaluate_key("qos") or site.qos,
        gres=evaluate_key("gres") or site_gres(site, nodes, gpus, values, resolver),
        reservation=evaluate_key("reservation"),
        constraint=evaluate_key("constraint"),
        extra=(*site.extra, *starmap(fill_line, enumerate(requested.extra))),
    )


def site_gres(site: Any, nodes: int, gpus: int, values: Mapping[str, Any], resolver: Resolver) -> str | None:
    """The site's own expression for GPUs (`gres`), evaluated.

    Args:
        site: The site.
        nodes: How many nodes the job has.
        gpus: How many GPUs the job has on all its nodes.
        values: What expressions may name; `gpus` (of one node, as Slurm counts them) and `nodes` are added.
        resolver: Evaluates the expression.

    Returns:
        None where the site has no `gres` or the job requests no GPU.

    Raises:
        NswError: The GPUs cannot be divided equally among the nodes.
    """
    if site.gres is None or gpus == 0:
        return None
    if gpus % nodes:
        with faults_at("resources", "gpus"):
            raise NswError(
                f"{gpus} GPUs cannot be divided equally among {nodes} nodes, as this site's gres asks",
                hint=f"such as gpus: {-(-gpus // nodes) * nodes}",
            )
    return str(resolver.value(site.gres, {**values, "gpus": gpus // nodes, "nodes": nodes}))


def _parse_if_text(parse: Callable[[Any], float]) -> Callable[[Any], int]:
    """A number was parsed when the recipe was loaded; text is what an expression gave."""
    return lambda value: int(parse(value)) if isinstance(value, str) else int(value)
