"""The passes of a recipe: the ways to observe a case, a model for each kind."""

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from nsw.recipe.faults import Fault, shown
from nsw.recipe.fields import Count, DurationOrTemplate, Filled, Name, Number, Percent, Ranks, Template

Kind: TypeAlias = Literal["baseline", "timeline", "counters", "host"]
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


def empty_as_map(value: Any) -> Any:
    """`- timeline:` with nothing behind it means the defaults."""
    return {} if value is None else value


class Model(BaseModel):
    """What every model of a recipe or site has in common: unknown keys are faults, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Pass(Model):
    kind: ClassVar[Kind]

    given_name: Name | None = Field(default=None, alias="name", description="Name of the pass; defaults to its kind.")
    repeats: Count | None = Field(default=None, description="Repeats of this pass; defaults to the recipe's.")
    time: DurationOrTemplate | None = Field(
        default=None, description="Walltime of a run of this pass, instead of resources.time."
    )

    @property
    def name(self) -> str:
        """The name, unique among the passes: as given, or the kind."""
        return self.given_name or self.kind


class _Profiled(_Pass):
    options: list[Template] = Field(default=[], description="More arguments for the profiler, passed on as they are.")
    ranks: Ranks = Field(
        default="all",
        description="Which processes are profiled: all, first, or a list of ranks; the others run the program alone."
        " Only where each process has a profiler of its own (app.launcher.profiler).",
    )


class BaselinePass(_Pass):
    """The case without a profiler, against which the others' perturbation is measured."""

    kind = "baseline"


class TimelinePass(_Profiled):
    """When what ran: kernels, copies, API calls, ranges."""

    kind = "timeline"

    tool: Literal["auto", "nsys", "nvprof"] = Field(
        default="auto", description="Profiler; auto takes what the site has."
    )
    trace: list[TraceDomain] = Field(default=["cuda", "nvtx"], description="What is traced.")


class Kernels(Model):
    """Which kernels are measured; at most one way to choose them."""

    cover: Percent | None = Field(
        default=None,
        description="The kernels that together make this share of the GPU time, most expensive first.",
    )
    top: Count | None = Field(default=None, description="So many of the most expensive kernels.")
    names: list[Filled] | None = Field(default=None, description="These kernels, by function name.")
    regex: Filled | None = Field(default=None, description="Kernels whose function name fits this regular expression.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if len(ways := sorted(self.model_fields_set)) > 1:
            raise Fault(f"kernels are chosen in one way, and here stand {' and '.join(ways)}", hint="keep one of them")
        return self


class Launches(Model):
    """Which launches of a chosen kernel are measured: a sample over all of them, or a stretch."""

    sample: Count | None = Field(default=None, description="So many launches, spread evenly over the run.")
    skip: Number | None = Field(default=None, description="Launches passed over before the first that is measured.")
    count: Count | None = Field(default=None, description="So many launches from there on.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.sample is not None and (self.skip is not None or self.count is not None):
            raise Fault("launches are sampled, or a stretch of them is taken: 'sample' excludes 'skip' and 'count'")
        return self


class CountersPass(_Profiled):
    """What the hardware counted inside kernels."""

    kind = "counters"

    tool: Literal["auto", "ncu", "nvprof"] = Field(
        default="auto", description="Profiler; auto takes what fits the GPU."
    )
    kernels: Kernels = Field(default=Kernels(cover="90%"), description="Which kernels.")  # type: ignore[arg-type]  # parsed
    launches: Launches = Field(default=Launches(sample=5), description="Which launches of each kernel.")
    metrics: list[Filled] = Field(
        default=["roofline", "achieved_occupancy"],
        min_length=1,
        description="Portable metrics and groups (`nsw metrics ls`), set:NAME and section:NAME of ncu, event:NAME of"
        " nvprof, or a tool's own names.",
    )


class HostPass(_Profiled):
    """Where the CPU's time went."""

    kind = "host"

    tool: Literal["cprofile", "torch", "perf", "vtune", "aps"] = Field(description="Profiler of the host's side.")


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
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            found = " and ".join(sorted(self.model_fields_set)) or "none"
            hint = "start each pass with '- ' of its own; its options are indented below it"
            raise Fault(f"a pass is a map with one key, its kind, and here stands {shown(found)[1:-1]}", hint=hint)
        return self

    @property
    def only(self) -> Pass:
        """The pass itself."""
        found = self.baseline or self.timeline or self.counters or self.host
        assert found is not None
        return found
