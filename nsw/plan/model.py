"""The plan as data, and what planning must know of a site beyond its sites file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsw.launchers.model import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from nsw.errors import Mark
    from nsw.metrics import Chip
    from nsw.recipe.fields import Secret
    from nsw.recipe.units import AmountUnit

__all__ = [
    "APP",
    "AROUND_S",
    "GRACE_S",
    "OF_BEFORE",
    "REDUCTION",
    "Absent",
    "Job",
    "Part",
    "Plan",
    "Resources",
    "Run",
    "RunSecrets",
    "SiteFacts",
    "around_s",
]


@dataclass(frozen=True)
class SiteFacts:
    """What a site has.

    Args:
        gpus_per_node: How many GPUs a node has; None when unknown.
        tools: Profilers that were found: tool -> path. None: not looked, take the sites file's word.
        missing: Why a tool is not in `tools`.
        mpi: The family of its mpirun and mpiexec, where the sites file names none; None: not known.
        chip: The GPUs' chip or product as found there, where the sites file names none; None: not looked.
        ncu_names: Of a chip the base names of the metrics that the site's own ncu lists; None: it was not asked.
        replay: The demo's recordings: (params, pass kind) -> the command that replays one, or None.
        note: Said with everything that comes of a campaign here.
    """

    gpus_per_node: int | None = None
    tools: Mapping[str, str] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    mpi: str | None = None
    chip: str | None = None
    ncu_names: Callable[[Chip], Collection[str] | None] = lambda _chip: None
    replay: Callable[[Mapping[str, Any], str], tuple[str, ...] | None] | None = None
    replayed_reports: tuple[str, ...] = ()
    replayed_tool: str | None = None
    note: str | None = None


APP = "app"  # folder of the application's files beside the runs' folders; `app-2` is that of a later copy
OF_BEFORE = ".before"  # behind the name of such a folder: of the program of cases whose side is before
REDUCTION = ".reduce"  # of a reduction's id, behind that of its run
_BESIDE_S = 30  # seconds of a job for what is around its runs: set-up, files
GRACE_S = 30  # seconds between SIGTERM and SIGKILL, unless the site says otherwise
AROUND_S = _BESIDE_S + GRACE_S


def around_s(grace_s: int) -> int:
    """Seconds of a job beside its runs: for what is around them, and for the end of one that is over its time."""
    return _BESIDE_S + grace_s


@dataclass(frozen=True, slots=True)
class Resources:
    """What one run needs, resolved. `gpus` counts all GPUs of the run and `tasks` its processes, over all its nodes.

    `one_a_node`: the batch system itself starts one process on each node, which starts the others.
    """

    nodes: int = 1
    gpus: int = 0
    tasks: int = 1
    one_a_node: bool = False
    cpus_per_task: int | None = None
    memory_bytes: int | None = None
    time_s: int = 600
    exclusive: bool = False
    queue: str | None = None
    account: str | None = None
    qos: str | None = None
    gres: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSecrets:
    """The secret environment variables of a run, without their values.

    `number` counts the plan's `secrets` from 1. `hidden_from_profiler`: the profiler writes its environment into the
    report, so it must not see these (the secrets, and what nsw took them from); the program that it starts gets them.
    """

    number: int
    names: tuple[str, ...]
    hidden_from_profiler: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """Case x pass x repeat: the smallest unit. Repeat 0 is a warm-up, which no statistics see.

    `command` is what is executed, profiler and launcher included; `reports` are the shell patterns, relative
    to the run's folder, of the files that the profiler will leave.
    """

    id: str
    case_id: str
    params: dict[str, Any]
    pass_name: str
    pass_kind: str
    tool: str | None
    repeat: int
    command: tuple[str, ...]
    env: dict[str, str]
    resources: Resources
    reports: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    app: str = "app"  # folder of the application that it uses, beside the runs' folders
    secrets: RunSecrets | None = None
    needs: str = ""  # CASE.PASS of which a repeat must have been read: it decides what CHOSEN in the command becomes
    reduction: tuple[str, ...] = ()  # command that reduces its reports on the site, once it is done
    layout: Layout = field(default_factory=Layout)
    before: tuple[str, ...] = ()  # functions of the job's machinery that its launcher needs before it
    checks: tuple[tuple[str, ...], ...] = ()  # functions of the machinery, with words, that write down what was checked


@dataclass(frozen=True, slots=True)
class Job:
    """What the scheduler sees: one task, or an array of them; each task holds runs, done one after another.

    `build` says of one that builds the application where it does: login or job; `reduction` the same of one that
    reduces reports. `side_by_side`: so many runs of a task go at a time, each with GPUs of its own: the first takes
    every so-manieth run, beginning with the first.
    """

    name: str
    resources: Resources
    tasks: tuple[tuple[Run, ...], ...]
    build: str | None = None
    side_by_side: int = 1
    reduction: str | None = None
    around_s: int = AROUND_S

    @property
    def place(self) -> str:
        """Where it is done: login or job."""
        return self.build or self.reduction or "job"

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in order."""
        return tuple(run for task in self.tasks for run in task)

    @property
    def walltime_s(self) -> int:
        """Longest that one task may take: its runs' limits and what is around them."""
        lanes = (lane for task in self.tasks for lane in self.lanes(task))
        return max(sum(run.resources.time_s for run in lane) for lane in lanes) + self.around_s

    def lanes(self, task: tuple[Run, ...]) -> list[tuple[Run, ...]]:
        """The runs of a task that follow each other, for each of those that go side by side."""
        return [lane for at in range(self.side_by_side) if (lane := task[at :: self.side_by_side])]


@dataclass(frozen=True, slots=True)
class Part:
    """What is planned of a recipe for a campaign that there is already: jobs that are added to its own.

    Attributes:
        number: Counts the parts of the campaign, from 2; it is in the names of jobs and builds.
        runs: The ids of the runs that the part holds.
        app: The folder of the application's files.
        built: Folders in which the campaign has built already, or will.
        time_s: A time limit of each run instead of the recipe's, in seconds.
    """

    number: int
    runs: frozenset[str]
    app: str = "app"
    built: frozenset[str] = frozenset()
    time_s: int | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """Runs that cannot be done on this site, with the reason."""

    what: str
    reason: str
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A recipe on a site, before anything is submitted.

    `note` is printed with everything that comes of the plan (the demo: where the numbers were recorded).
    """

    name: str
    site: str
    cases: tuple[str, ...]
    jobs: tuple[Job, ...]
    absent: tuple[Absent, ...] = ()
    note: str | None = None
    notes: tuple[str, ...] = ()  # what a pass costs, what it leaves out
    files: tuple[tuple[str, str], ...] = ()  # (source on this machine, name beside the program)
    before: tuple[tuple[str, str], ...] = ()  # the same of the program of cases whose side is before
    setup: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    builds: tuple[Job, ...] = ()  # each before the jobs whose runs use its folder
    reductions: tuple[Job, ...] = ()  # of the reports of runs, each once its run is done
    marks: dict[str, Mark] = field(default_factory=dict)
    secrets: tuple[Mapping[str, Secret], ...] = ()  # each distinct set of secret environment variables
    replay: bool = False  # recordings stand in for the machine: it costs nothing of it
    share: str = "nobody"  # who else may look at the campaign: nobody or group
    node_gpus: int = 0  # GPUs of a node where every job takes whole nodes, used or not
    time_step_s: int = 1  # the batch system's time limits are multiples of it
    least_time_s: int = 0  # its shortest time limit

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All runs that will be done."""
        return tuple(run for job in self.jobs for run in job.runs)

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """All files of the program, those of the side before below a folder of their own."""
        return (*self.files, *((source, f"{APP}{OF_BEFORE}/{name}") for source, name in self.before))

    def programs(self, app: str = APP) -> dict[str, tuple[tuple[str, str], ...]]:
        """The files of each program by its folder; `app` is that of the cases that are not of the side before."""
        return {app: self.files, f"{app}{OF_BEFORE}": self.before} if self.before else {app: self.files}

    @property
    def gpu_hours(self) -> float:
        """At most: each task's GPUs for all of its limit, as the scheduler is asked for it."""
        return sum(
            len(j.tasks) * self.price(j.resources, self.requested_time_s(j), "gpu-hour") for j in self._jobs_on_nodes
        )

    @property
    def node_hours(self) -> float:
        """At most: each task's nodes for all of its limit, as the scheduler is asked for it."""
        return sum(
            len(j.tasks) * self.price(j.resources, self.requested_time_s(j), "node-hour") for j in self._jobs_on_nodes
        )

    def price(self, needs: Resources, run_s: float, unit: AmountUnit) -> float:
        """What a time costs that a job holds its nodes, in the unit of a price.

        Args:
            needs: What the job asks for.
            run_s: How long, in seconds.
            unit: The price's unit.
        """
        reserved_gpus = max(needs.gpus, self.node_gpus * needs.nodes)  # nobody else gets them
        return run_s * {"second": 1.0, "node-hour": needs.nodes / 3600, "gpu-hour": reserved_gpus / 3600}[unit]

    def requested_time_s(self, job: Job) -> int:
        """The time limit of each task of a job, in seconds, as the scheduler is asked for it."""
        if job.place != "job":
            return job.walltime_s
        return max(self.least_time_s, -(-job.walltime_s // self.time_step_s) * self.time_step_s)

    @property
    def _jobs_on_nodes(self) -> tuple[Job, ...]:
        """All that takes the site's nodes: what is done on the login node does not."""
        return tuple(j for j in (*self.builds, *self.jobs, *self.reductions) if j.place == "job")
