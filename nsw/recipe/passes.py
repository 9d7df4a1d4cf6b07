"""The passes of a recipe: the ways to observe a case, a model for each kind."""

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeGuard

from pydantic import BeforeValidator, Field, model_validator

from nsw.recipe import fields
from nsw.recipe.fields import Count, Duration, Filled, KernelRegex, Model, Name, Number, Parsed, Ranks, empty_as_map
from nsw.recipe.units import Fault, show_value
from nsw.resources import entry_points_of

Kind: TypeAlias = Literal["baseline", "timeline", "counters", "host"]


# The profilers that a recipe may name, by kind of pass: a line each here, or an entry point of another package. That
# registers a module as `nsw.profilers.model.Profiler` says, under KIND.TOOL, the kind timeline or host:
#
#     [project.entry-points."nsw.profilers"]
#     "host.likwid" = "likwid_nsw.profiler"
GROUP: Final = "nsw.profilers"
AUTO: Final = "auto"  # the first of a kind that the site has

# kind of pass -> tool -> its module
PROFILERS: Final = {
    "timeline": {"nsys": "nsw.profilers.nsys", "nvprof": "nsw.profilers.nvprof"},
    "counters": {"ncu": "nsw.profilers.ncu", "nvprof": "nsw.profilers.nvprof"},
    "host": {
        "cprofile": "nsw.profilers.cprofile",
        "torch": "nsw.profilers.torch",
        "onednn": "nsw.profilers.onednn",
        "perf": "nsw.profilers.perf",
        "py-spy": "nsw.profilers.pyspy",
        "gprof": "nsw.profilers.gprof",
        "tau": "nsw.profilers.tau",
        "vtune": "nsw.profilers.vtune",
        "aps": "nsw.profilers.aps",
    },
}
PROGRAMS: Final = ("nsys", "ncu", "nvprof")  # those of nsw's own that a site must have
WITHIN_PYTHON: Final = frozenset({"cprofile", "torch", "onednn"})  # for which a site needs no program
HOST_PROGRAMS: Final = tuple(tool for tool in PROFILERS["host"] if tool not in WITHIN_PYTHON)
_OPEN: Final = ("timeline", "host")  # what a counters pass measures is told in each tool's own metric names


def profiler_modules(kind: str) -> dict[str, str]:
    """Tool -> module for a kind of pass; nsw's own come first."""
    own_modules = PROFILERS.get(kind, {})
    modules = dict(own_modules)
    for name, path in entry_points_of(GROUP).items() if kind in _OPEN else ():
        tool = name.removeprefix(f"{kind}.")
        if tool not in {name, AUTO, *own_modules}:
            modules[tool] = path.partition(":")[0]
    return modules


def all_profilers() -> tuple[str, ...]:
    """The profilers that have a module here or in another package."""
    return tuple(dict.fromkeys(tool for tools in map(profiler_modules, PROFILERS) for tool in tools))


def site_profilers() -> tuple[str, ...]:
    """The profilers whose paths a site may tell, and whose versions jobs write down."""
    return tuple(dict.fromkeys(tool for tool in (*PROGRAMS, *all_profilers()) if tool not in WITHIN_PYTHON))


class PassBase(Model):
    """The keys of every pass."""

    kind: ClassVar[Kind]

    given_name: Name | None = Field(default=None, alias="name", description="Name of the pass; defaults to its kind.")
    repeats: Count | None = Field(default=None, description="Repeats of this pass; defaults to the recipe's.")
    warmup: Number | None = Field(
        default=None, description="Warm-up runs of this pass; by default the recipe's, and none for counters."
    )
    time: Annotated[fields.DurationOrTemplate | None, fields.FREE] = Field(
        default=None, description="Walltime of a run of this pass, instead of resources.time."
    )

    @property
    def name(self) -> str:
        """The name, unique among the passes: as given, or the kind."""
        return self.given_name or self.kind


RANKS = (
    "Which processes are profiled: all, first, node (the first of each node), a share such as 5% (drawn by the recipe's"
    " name: the same ones in every run of as many ranks), or a list of ranks; the others run the program alone."
    " Only where each process has a profiler of its own (app.launcher.profiler)."
)


def is_share(ranks: str | Sequence[int] | None) -> TypeGuard[str]:
    """Whether a pass's `ranks` is a share of them, such as `5%`."""
    return isinstance(ranks, str) and ranks.endswith("%")


def drawn_ranks(share: str, total: int, recipe: str) -> list[int]:
    """The ranks that a share such as `5%` draws: at least one, always the same ones, those of 5% among those of 10%.

    Passes, cases and repeats of a recipe draw the same, so that what they measure can be compared.

    Args:
        share: The pass's `ranks`.
        total: How many ranks there are.
        recipe: The recipe's name.
    """
    drawn = sorted(range(total), key=lambda rank: hashlib.sha256(f"{recipe} {rank}".encode()).digest())
    return sorted(drawn[: math.ceil(Fraction(share[:-1]) / 100 * total)])


def profiler(kind: Kind, *before: str) -> Parsed:
    """The type of `tool`: what the registry of profilers holds for a kind of pass, behind the words `before`."""
    tools = [*before, *PROFILERS[kind]]
    return Parsed(fields.one_of(lambda: (*before, *profiler_modules(kind))), {"type": "string", "enum": tools})


class ProfiledPass(PassBase):
    """The keys of every pass that has a profiler."""

    options: list[fields.Template] = Field(
        default=[], description="More arguments for the profiler, passed on as they are."
    )
    ranks: Ranks = Field(default="all", description=RANKS)


Replay: TypeAlias = Literal["kernel", "application", "range", "app-range"]
COVER = 0.9  # of the GPU time of kernels that a guided pass measures, where the recipe names no share
AT_MOST = 20  # kernels, likewise
SAMPLE = 5  # launches of each kernel, likewise
NCCL = "nccl"  # kernels of NCCL wait for those of other GPUs, and one that is run again waits forever


class Kernels(Model):
    """Which kernels are measured: by name, by their share of the GPU time, or by share among those named."""

    cover: fields.Percent | None = Field(
        default=None, description="The kernels that together make this share of the GPU time, most expensive first."
    )
    top: Count | None = Field(default=None, description="So many of the most expensive kernels.")
    at_most: Count | None = Field(default=None, description="No more kernels than this, whatever share they cover.")
    names: list[fields.KernelName] | None = Field(
        default=None, min_length=1, description="These kernels, by function name."
    )
    regex: KernelRegex | None = Field(
        default=None,
        description="Kernels in whose function name this regular expression is found; capitals count, and single"
        " quotes keep its backslashes.",
    )
    exclude: list[KernelRegex] | None = Field(
        default=None,
        description="Kernels in whose function name one of these is found are left out. By default [nccl] where kernels"
        " are run again by themselves and none is named: NCCL's wait for other GPUs, and would wait forever.",
    )

    @model_validator(mode="after")
    def _check_one_choice(self) -> Self:
        for first, second in (("names", "regex"), ("cover", "top")):
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise Fault(f"kernels are chosen by {first} or by {second}, not by both", hint="keep one of them")
        if self.at_most is not None and self.top is not None:
            raise Fault("'at_most' limits what 'cover' takes; 'top' is a limit itself", hint="keep one of them")
        return self

    @property
    def by_time(self) -> bool:
        """Whether the GPU time decides, which a timeline must tell first."""
        return (self.cover, self.top, self.at_most) != (None, None, None)

    @property
    def is_named(self) -> bool:
        """Whether names or an expression are given."""
        return self.names is not None or self.regex is not None


class Launches(Model):
    """Which launches of each chosen kernel are measured: a sample over all of them, or a stretch."""

    sample: Count | None = Field(
        default=None,
        description="So many launches of each kernel, spread over its launch shapes by their share of its time.",
    )
    skip: Number | None = Field(
        default=None,
        description="Launches of each kernel passed over before the first that is measured; none if only `count` is"
        " written.",
    )
    count: Count | None = Field(default=None, description="So many launches of each kernel from there on.")
    warmup: Number | None = Field(
        default=None, description="Launches of any kernel passed over at the program's start (ncu only)."
    )

    @model_validator(mode="after")
    def _check_one_choice(self) -> Self:
        if self.sample is not None and (self.skip is not None or self.count is not None):
            raise Fault("launches are sampled, or a stretch of them is taken: 'sample' excludes 'skip' and 'count'")
        if self.warmup is not None and self.sample is None and (self.skip is not None or self.count is not None):
            raise Fault(
                "'warmup' counts launches of any kernel, 'skip' those of each kernel: ncu takes one of them",
                hint="keep one of them",
            )
        return self


class Range(Model):
    """An NVTX range of the program."""

    nvtx: Filled = Field(description="Name of an NVTX range; only what is launched inside it is measured.")
    domain: Filled | None = Field(default=None, description="NVTX domain of the range; the default one.")

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`within: train_step` is short for `within: {nvtx: train_step}`."""
        return {"nvtx": value} if isinstance(value, str) else value


CUDA_PROFILER_API: Final = "cuda_profiler_api"
_MIDDLE: Final = ("instances", "skip", "first")


class Window(Range):
    """The NVTX ranges that a timeline records, the first of that name on."""

    count: Count = Field(
        default=1,
        description="So many ranges, each a report of its own; they are read as one. nsys halts the program for some"
        " seconds after each: that time is in none of them.",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_middle_ranges(cls, value: Any) -> Any:
        if isinstance(value, dict) and (key := next((key for key in _MIDDLE if key in value), None)):
            raise Fault(
                f"nsys records the first ranges of a name and can skip none, so there is no '{key}'",
                hint="give the one in the middle a name of its own in the program, such as `step 100`; or call"
                f" cudaProfilerStart() there and write within: {CUDA_PROFILER_API}; or record by the clock, without"
                " `within`: after: 60s, for: 10s",
            )
        return value

    @model_validator(mode="after")
    def _check_range_name(self) -> Self:
        if "@" in f"{self.nvtx}{self.domain}":
            raise Fault(
                "nsys cannot begin at a range with '@' in its name", hint="give the program's range another name"
            )
        return self


class Within(Range):
    """The part of the program that is measured."""

    start_end: bool = Field(
        default=False, description="Whether it is a start/end range (nvtxRangeStart) and no push/pop range."
    )
    instances: list[Count] | None = Field(
        default=None, min_length=1, description="Only these instances of the range, the first being 1."
    )


DIAGNOSIS: Final = "diagnosis"  # the group of metrics that rules ask for


_SET_OPTION: Final = "--set"  # of ncu; what it adds to the metrics is planned where `metrics` has it


class CountersPass(ProfiledPass):
    """What the hardware counted inside kernels."""

    kind: ClassVar[Kind] = "counters"

    tool: Annotated[str, profiler("counters", AUTO)] = Field(
        default=AUTO,
        description="Profiler; auto selects what fits the site's GPU: ncu from compute capability 7.0, nvprof below.",
    )
    source: Name | None = Field(
        default=None,
        alias="from",
        description="Timeline pass that says which kernels cost most. By default the recipe's timeline, or one that is"
        " added, where kernels or launches are chosen by it.",
    )
    kernels: Kernels = Field(default=Kernels(), description="Which kernels; by default those that make 90 %.")
    launches: Launches = Field(
        default=Launches(), description="Which launches of each kernel; by default a sample of 5."
    )
    within: Within | None = Field(
        default=None,
        description="Only inside this NVTX range (ncu only); a timeline chooses among what was launched there.",
    )
    replay: Replay = Field(
        default="kernel",
        description="How a launch is run again for more counters than fit in one run: kernel: by itself, its memory"
        " restored in between; application: the whole program; range: all of a range together; app-range: both.",
    )
    clocks: Literal["base", "none"] | None = Field(
        default=None, description="base: locked to the base clock; none: as they are. ncu's default is base."
    )
    cache: Literal["all", "none"] | None = Field(
        default=None, description="all: caches are flushed before each run of a kernel; none: not. Default of ncu: all."
    )
    processes: Literal["all", "application"] = Field(
        default="all", description="all: child processes too; application: the started program alone."
    )
    ranks: Ranks | None = Field(default=None, description=RANKS + " By default first.")  # type: ignore[assignment]
    stages: Literal[1, 2] = Field(
        default=2,
        description="2: where the first counters leave a question that would change the advice, a launch of each kernel"
        " concerned is measured once more, for what decides it; 1: not. Only where a timeline chooses and the group"
        " diagnosis is measured (ncu only).",
    )
    metrics: list[Filled] = Field(
        default=[DIAGNOSIS],
        min_length=1,
        description="Portable metric names and groups (`nsw metrics ls`), a tool's own names, ncu's set:NAME and"
        " section:NAME, nvprof's event:NAME and set:analysis.",
    )

    @property
    def left_out(self) -> list[str]:
        """Expressions of kernels left out; by default NCCL, where single kernels are run again and none are named."""
        if self.kernels.exclude is not None:
            return self.kernels.exclude
        return [NCCL] if self.replay == "kernel" and self.kernels.names is None else []

    @property
    def is_guided(self) -> bool:
        """Whether a timeline chooses: asked for, or nothing else says which launches."""
        launches = self.launches
        stretch = (launches.skip, launches.count, launches.warmup) != (None, None, None)
        asks_for_timeline = self.source is not None or self.kernels.by_time or self.launches.sample is not None
        return asks_for_timeline or not (stretch or self.within is not None)

    @property
    def has_second_stage(self) -> bool:
        """Whether what the first counters leave open is asked for in a pass of its own."""
        is_asked = self.stages == 2 and DIAGNOSIS in self.metrics and self.tool != "nvprof"
        return is_asked and self.is_guided and self.replay == "kernel"

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        stretch = [name for name in ("skip", "count") if getattr(self.launches, name) is not None]
        if any(str(option).partition("=")[0] == _SET_OPTION for option in self.options):
            raise Fault(
                f"{_SET_OPTION} adds to the metrics of the pass, and its cost would not be planned",
                hint="write metrics: ['set:full'], alone or beside other names",
            )
        if self.source is not None and stretch:
            raise Fault(
                f"a timeline chooses the launches ('from'), and '{stretch[0]}' does too", hint="keep one of them"
            )
        if self.kernels.by_time and stretch:
            raise Fault(
                f"kernels chosen by time are measured in a sample of their launches, not by '{stretch[0]}'",
                hint="write launches: {sample: 5}",
            )
        if self.replay in {"range", "app-range"} and self.is_guided:
            raise Fault(
                f"replay: {self.replay} measures a range as a whole, and no single kernels",
                hint="say where: within: {nvtx: NAME, instances: [5]}",
            )
        if self.replay in {"range", "app-range"} and (self.kernels.is_named or stretch):
            raise Fault(f"replay: {self.replay} measures a range as a whole: kernels and launches cannot be chosen")
        return self


SOURCE_COUNTERS: Final = "SourceCounters"  # ncu's section of each instruction's and source line's counters


class SecondStage(CountersPass):
    """The pass that asks what a counters pass leaves open; `source` is that pass. No recipe has it: the plan adds it.

    `metrics` are all that it may ask for: which of them, and of which kernels, the first counters decide.
    """

    @classmethod
    def after(cls, first: CountersPass, name: str) -> Self:
        """The second stage of a pass, under a name of its own."""
        keys = {key: getattr(first, key) for key in CountersPass.model_fields}
        asked = [f"section:{SOURCE_COUNTERS}"]
        changes = {"given_name": name, "source": first.name, "repeats": 1, "metrics": asked}
        return cls.model_construct(**(keys | changes))


TraceDomain: TypeAlias = Literal[
    "cuda",
    "nvtx",
    "osrt",
    "cublas",
    "cudnn",
    "cusolver",
    "cusparse",
    "mpi",
    "ucx",
    "openacc",
    "openmp",
    "opengl",
    "vulkan",
]


class BaselinePass(PassBase):
    """The case without a profiler, against which the others' perturbation is measured."""

    kind = "baseline"


class TimelinePass(ProfiledPass):
    """When what ran: kernels, copies, API calls, ranges."""

    kind = "timeline"

    tool: Annotated[str, profiler("timeline", AUTO)] = Field(
        default=AUTO, description="Profiler; auto selects what the site has."
    )
    trace: list[TraceDomain] = Field(default=["cuda", "nvtx"], description="What is traced.")
    within: Window | None = Field(
        default=None,
        description="Record only the first NVTX range of this name, or the first `count` of them (nsys): the report is"
        " small, and the program runs on. nsys can skip none: for one in the middle give it a name of its own, such as"
        " `step 100`. cuda_profiler_api: from the program's cudaProfilerStart() to its cudaProfilerStop().",
    )
    after: Duration | None = Field(
        default=None, description="Record from so long after the program's start on (nsys); the program runs on."
    )
    duration: Duration | None = Field(
        default=None, alias="for", description="Record no longer than this (nsys); the program runs on."
    )
    gpu_metrics: fields.Frequency | None = Field(
        default=None,
        description="How often nsys samples how busy the parts of each GPU are (SMs, tensor cores, DRAM, PCIe, NVLink),"
        " such as 10kHz; not by default. It needs permission to read the GPU's counters, which one program at a time"
        " can: where nsys does not get them, the rest is recorded, and the run says why.",
    )
    report: Literal["summary", "trace", "file"] = Field(
        default="summary",
        description="What nvprof leaves: summary: a row a kernel and call; trace: a row an event (--print-gpu-trace"
        " --print-api-trace); file: an .nvvp with all of it. nsys always leaves all.",
    )

    @property
    def is_windowed(self) -> bool:
        """Whether a part of the program is recorded alone."""
        return (self.within, self.after, self.duration) != (None, None, None)

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.gpu_metrics is not None and self.tool == "nvprof":
            raise Fault("nvprof does not sample GPU metrics", hint="`gpu_metrics` needs tool: nsys")
        if self.is_windowed and self.tool == "nvprof":
            raise Fault("nvprof records the whole program", hint="`within`, `after` and `for` need tool: nsys")
        if self.within is None:
            return self
        if self.after is not None or self.duration is not None:
            raise Fault(
                "a timeline is recorded within a range or by the clock, not both",
                hint="keep `within`, or `after` and `for`",
            )
        if (traced := "cuda" if self.within.nvtx == CUDA_PROFILER_API else "nvtx") not in self.trace:
            raise Fault(f"`within` needs {traced} traced", hint="give it trace: [cuda, nvtx]")
        return self


class Steps(Model):
    """A stretch of training steps."""

    skip: Number = Field(default=2, description="Steps passed over; the last of them warms the profiler up.")
    count: Count = Field(default=3, description="Steps recorded.")


class HostPass(ProfiledPass):
    """Where the CPU's time went."""

    kind = "host"

    tool: Annotated[str, profiler("host")] = Field(description="Profiler of the host's side.")
    analysis: Name | None = Field(
        default=None,
        description="What the profiler collects, in its own words (vtune: hotspots, uarch-exploration, memory-access;"
        " perf: record, stat); by default what it collects first.",
    )
    knobs: dict[Name, str | bool | int | float] = Field(
        default={},
        description="Settings of that analysis, as the profiler names them (vtune: sampling-mode: hw;"
        " perf: freq: 999).",
    )
    record: list[Literal["shapes", "stacks", "memory", "flops"]] = Field(
        default=["shapes", "flops"],
        description="What torch records of operators beside their times: input shapes, Python stacks, memory, FLOP.",
    )
    steps: Steps | None = Field(
        default=None,
        description="Training steps that torch records, counted by an optimizer's calls; by default the whole program.",
    )


Pass: TypeAlias = BaselinePass | TimelinePass | CountersPass | HostPass


class PassEntry(Model):
    """One pass: a map with one key, its kind."""

    baseline: Annotated[BaselinePass | None, BeforeValidator(empty_as_map)] = Field(
        default=None, description="The case without a profiler."
    )
    timeline: Annotated[TimelinePass | None, BeforeValidator(empty_as_map)] = Field(
        default=None, description="When what ran (nsys, nvprof)."
    )
    counters: Annotated[CountersPass | None, BeforeValidator(empty_as_map)] = Field(
        default=None, description="Hardware counters of kernels (ncu, nvprof)."
    )
    host: Annotated[HostPass | None, BeforeValidator(empty_as_map)] = Field(
        default=None, description="Where the CPU's time went, by the tool that it names."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`- baseline` alone means the pass with its defaults."""
        return {value: {}} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            kinds = " and ".join(sorted(self.model_fields_set)) or "none"
            hint = "start each pass with '- ' of its own; its options are indented below it"
            raise Fault(f"a pass is a map with one key, its kind; found {show_value(kinds)[1:-1]}", hint=hint)
        return self

    @property
    def only(self) -> Pass:
        """The pass itself."""
        chosen = self.baseline or self.timeline or self.counters or self.host
        assert chosen is not None
        return chosen
