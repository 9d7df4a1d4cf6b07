"""The passes of a recipe: the ways to observe a case, a model for each kind."""

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from nsw.recipe.counters import CountersPass, Kernels, Launches, Within
from nsw.recipe.faults import Fault, shown
from nsw.recipe.fields import Count, Number
from nsw.recipe.pass_base import Model, PassBase, ProfiledPass, empty_as_map, profiler
from nsw.recipe.profiler_names import AUTO

__all__ = ["BaselinePass", "CountersPass", "HostPass", "Kernels", "Launches", "Model", "Pass", "PassEntry",
           "TimelinePass", "Within", "empty_as_map"]  # fmt: skip
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
    report: Literal["summary", "trace", "file"] = Field(
        default="summary",
        description="What nvprof leaves: summary: a row a kernel and call; trace: a row an event (--print-gpu-trace"
        " --print-api-trace); file: an .nvvp with all of it. nsys always leaves all.",
    )


class Steps(Model):
    """A stretch of training steps."""

    skip: Number = Field(default=2, description="Steps passed over; the last of them warms the profiler up.")
    count: Count = Field(default=3, description="Steps recorded.")


class HostPass(ProfiledPass):
    """Where the CPU's time went."""

    kind = "host"

    tool: Annotated[str, profiler("host")] = Field(description="Profiler of the host's side.")
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
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            found = " and ".join(sorted(self.model_fields_set)) or "none"
            hint = "start each pass with '- ' of its own; its options are indented below it"
            raise Fault(f"a pass is a map with one key, its kind; found {shown(found)[1:-1]}", hint=hint)
        return self

    @property
    def only(self) -> Pass:
        """The pass itself."""
        found = self.baseline or self.timeline or self.counters or self.host
        assert found is not None
        return found
