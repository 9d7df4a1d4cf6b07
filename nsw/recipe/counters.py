"""The keys of a counters pass: which kernels, which launches of them, where in the program, how, which metrics."""

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from nsw.recipe.faults import Fault
from nsw.recipe.fields import Count, Filled, KernelName, KernelRegex, Name, Number, Percent, Ranks
from nsw.recipe.pass_base import RANKS, Kind, Model, ProfiledPass, profiler
from nsw.recipe.profiler_names import AUTO

Replay: TypeAlias = Literal["kernel", "application", "range", "app-range"]
COVER = 0.9  # of the GPU time of kernels that a guided pass measures, where the recipe names no share
AT_MOST = 20  # kernels, likewise
SAMPLE = 5  # launches of each kernel, likewise
NCCL = "nccl"  # kernels of NCCL wait for those of other GPUs, and one that is run again waits forever


class Kernels(Model):
    """Which kernels are measured: by name, by their share of the GPU time, or by share among those named."""

    cover: Percent | None = Field(
        default=None,
        description="The kernels that together make this share of the GPU time, most expensive first.",
    )
    top: Count | None = Field(default=None, description="So many of the most expensive kernels.")
    at_most: Count | None = Field(default=None, description="No more kernels than this, whatever share they cover.")
    names: list[KernelName] | None = Field(default=None, min_length=1, description="These kernels, by function name.")
    regex: KernelRegex | None = Field(
        default=None,
        description="Kernels in whose function name this regular expression is found; single quotes keep its"
        " backslashes.",
    )
    exclude: list[KernelRegex] | None = Field(
        default=None,
        description="Kernels in whose function name one of these is found are left out. By default [nccl] where kernels"
        " are run again by themselves and none is named: NCCL's wait for other GPUs, and would wait forever.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        for one, other in (("names", "regex"), ("cover", "top")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise Fault(f"kernels are chosen by {one} or by {other}, not by both", hint="keep one of them")
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
        default=None, description="Launches of each kernel passed over before the first that is measured."
    )
    count: Count | None = Field(default=None, description="So many launches of each kernel from there on.")
    warmup: Number | None = Field(
        default=None, description="Launches of any kernel passed over at the program's start (ncu only)."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.sample is not None and (self.skip is not None or self.count is not None):
            raise Fault("launches are sampled, or a stretch of them is taken: 'sample' excludes 'skip' and 'count'")
        if self.warmup is not None and self.sample is None and (self.skip is not None or self.count is not None):
            raise Fault(
                "'warmup' counts launches of any kernel, 'skip' those of each kernel: ncu takes one of them",
                hint="keep one of them",
            )
        return self


class Within(Model):
    """The part of the program that is measured."""

    nvtx: Filled = Field(description="Name of an NVTX range; only what is launched inside it is measured.")
    domain: Filled | None = Field(default=None, description="NVTX domain of the range; the default one.")
    start_end: bool = Field(
        default=False, description="Whether it is a start/end range (nvtxRangeStart) and no push/pop range."
    )
    instances: list[Count] | None = Field(
        default=None, min_length=1, description="Only these instances of the range, the first being 1."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`within: train_step` is short for `within: {nvtx: train_step}`."""
        return {"nvtx": value} if isinstance(value, str) else value


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
        default=None,
        description="base: locked to the base clock; none: as they are. ncu's default is base.",
    )
    cache: Literal["all", "none"] | None = Field(
        default=None,
        description="all: caches are flushed before each run of a kernel; none: not. Default of ncu: all.",
    )
    processes: Literal["all", "application"] = Field(
        default="all", description="all: child processes too; application: the started program alone."
    )
    ranks: Ranks | None = Field(default=None, description=RANKS + " By default first.")  # type: ignore[assignment]
    metrics: list[Filled] = Field(
        default=["speed_of_light", "occupancy", "stalls", "roofline"],
        min_length=1,
        description="Portable metric names and groups (`nsw metrics ls`), a tool's own names, ncu's set:NAME and"
        " section:NAME, nvprof's event:NAME and set:analysis.",
    )

    @property
    def is_guided(self) -> bool:
        """Whether a timeline chooses: asked for, or nothing else says which launches."""
        launches = self.launches
        stretch = (launches.skip, launches.count, launches.warmup) != (None, None, None)
        asked = self.source is not None or self.kernels.by_time or self.launches.sample is not None
        return asked or not (stretch or self.within is not None)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        stretch = [name for name in ("skip", "count") if getattr(self.launches, name) is not None]
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
            raise Fault(f"replay: {self.replay} measures a range as a whole, and no single kernels",
                        hint="say where: within: {nvtx: NAME, instances: [5]}")  # fmt: skip
        if self.replay in {"range", "app-range"} and (self.kernels.is_named or stretch):
            raise Fault(f"replay: {self.replay} measures a range as a whole: kernels and launches cannot be chosen")
        return self
