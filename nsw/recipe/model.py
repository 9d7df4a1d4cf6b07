"""The recipe as types. Every key's meaning stands here once; the JSON Schema is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from nsw.recipe.faults import Fault, each, shown, within
from nsw.recipe.fields import (
    CanaryRule,
    Command,
    Count,
    CountOrTemplate,
    DurationOrTemplate,
    Filled,
    Flag,
    FlagOrTemplate,
    Name,
    NumberOrTemplate,
    Percent,
    Regex,
    SizeOrTemplate,
    Template,
    Text,
    template,
)
from nsw.recipe.passes import (
    BaselinePass,
    CountersPass,
    HostPass,
    Kernels,
    Launches,
    Model,
    Pass,
    PassEntry,
    TimelinePass,
    empty_as_map,
)

__all__ = [
    "App",
    "BaselinePass",
    "Build",
    "Compare",
    "Container",
    "CountersPass",
    "Figure",
    "HostPass",
    "Hotspots",
    "Kernels",
    "Launcher",
    "Launches",
    "Matrix",
    "Model",
    "Pass",
    "Range",
    "Recipe",
    "Report",
    "Resources",
    "Scaling",
    "TimelinePass",
]

Inside: TypeAlias = Literal["inside", "outside"]


class Launcher(Model):
    """How the application's processes are started."""

    kind: Literal["none", "srun", "mpirun", "mpiexec", "torchrun", "aprun", "jsrun", "custom"] = Field(
        default="none", description="The launcher; none starts one process."
    )
    processes: CountOrTemplate | None = Field(default=None, description="How many processes in all.")
    prefix: Template | None = Field(
        default=None, description="Of kind custom: what stands before the command."
    )
    options: list[Template] = Field(default=[], description="More arguments for the launcher.")
    profiler: Inside = Field(
        default="inside",
        description="inside: the launcher starts a profiler for each process; outside: one profiler starts the launcher.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`launcher: srun` is short for `launcher: {kind: srun}`."""
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _prefix_of_custom(self) -> Launcher:
        if (self.kind == "custom") != (self.prefix is not None):
            message = (
                "a custom launcher needs its prefix"
                if self.kind == "custom"
                else "only a custom launcher has a prefix"
            )
            raise Fault(message, hint="such as {kind: custom, prefix: 'mylaunch -n {{ gpus }}'}")
        return self


class Build(Model):
    """How the application is built, once a campaign."""

    command: Template = Field(description="One line of shell.")
    where: Literal["login", "job"] = Field(
        default="job", description="On the login node, or in a job of its own."
    )


class Container(Model):
    """The container that the application runs in."""

    runtime: Literal["apptainer", "singularity", "shifter", "podman"] = Field(
        description="The program that runs it."
    )
    image: Template = Field(description="Image file or reference.")
    options: list[Template] = Field(default=[], description="More arguments for the runtime.")
    profiler: Inside = Field(
        default="inside", description="Whether the profiler runs inside the container or starts it."
    )


class Figure(Model):
    """A number that the application prints of itself."""

    regex: Regex = Field(
        description="Regular expression with one group, the number; single quotes keep its backslashes."
    )
    unit: Text = Field(description="Its unit, such as images/s.")
    pick: Literal["first", "last", "sum", "mean", "max"] = Field(
        default="last", description="Which of several matches."
    )
    higher_is_better: Flag | None = Field(default=None, description="Which direction is an improvement.")


class App(Model):
    """The application."""

    command: Command = Field(
        description="What is run: one line of shell, or a list of arguments. Jinja: {{ parameter }}."
    )
    files: list[Filled] = Field(default=[], description="Files sent along, relative to the recipe.")
    setup: list[Template] = Field(
        default=[], description="Lines of shell before the command, such as module load."
    )
    env: dict[Name, Template] = Field(default={}, description="Environment variables.")
    launcher: Launcher = Field(default=Launcher(), description="How its processes are started.")
    build: Build | None = Field(default=None, description="How it is built.")
    container: Container | None = Field(default=None, description="The container it runs in.")
    figures: dict[Name, Figure] = Field(default={}, description="Numbers that it prints of itself, by name.")


Scalar: TypeAlias = "str | int | float | bool"


@dataclass(frozen=True, slots=True)
class Range:
    """Evenly spaced values: start, then steps up to stop, which is a value itself when a step hits it."""

    start: int | float
    stop: int | float
    step: int | float

    def values(self) -> list[int | float]:
        """The values; whole numbers when all three are, otherwise floats free of rounding drift."""
        if isinstance(self.start, int) and isinstance(self.stop, int) and isinstance(self.step, int):
            return list(range(self.start, self.stop + (1 if self.step > 0 else -1), self.step))
        start, stop, step = (Fraction(str(bound)) for bound in (self.start, self.stop, self.step))
        return [float(start + step * turn) for turn in range((stop - start) // step + 1)]


def _values(value: object) -> list[Scalar] | Range:
    """A parameter's values: a list, one value, an expression, or {range: [start, stop, step]}."""
    if isinstance(value, dict):
        return _range(value)
    if isinstance(value, list):
        if not value:
            raise Fault(
                "the list of values is empty",
                hint="without a value there is no case: give one, or remove the parameter",
            )
        return each(_scalar, value)
    return [_scalar(value)]


def _scalar(value: object) -> Scalar:
    if isinstance(value, dict):
        raise Fault("expected a value, found a map", hint='quote an expression: "{{ ... }}"')
    if not isinstance(value, str | int | float | bool):
        raise Fault(f"expected a value, found {shown(value)}")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124  # nan
        raise Fault(f"{value} is no value that a case can have")
    return template(value) if isinstance(value, str) else value


def _range(value: dict[str, Any]) -> Range:
    bounds = value.get("range")
    numbers = (
        [b for b in bounds if isinstance(b, int | float) and not isinstance(b, bool)]
        if isinstance(bounds, list)
        else []
    )
    if (
        len(value) != 1
        or not isinstance(bounds, list)
        or len(numbers) != len(bounds)
        or len(numbers) not in {2, 3}
    ):
        raise Fault(
            "expected a list of values or {range: [start, stop, step]}",
            hint='quote an expression: "{{ ... }}"',
        )
    start, stop, step = (*numbers, 1)[:3]
    if step == 0 or (stop - start) / step < 0:
        raise Fault(
            f"the range from {start} to {stop} in steps of {step} holds no value", hint="give it another step"
        )
    if (stop - start) / step > 100_000:
        raise Fault("the range holds more than 100,000 values")
    return Range(start=start, stop=stop, step=step)


_SCALAR = {"type": ["string", "number", "boolean"]}
Values = Annotated[
    list[Scalar] | Range,
    PlainValidator(_values),
    PlainSerializer(lambda v: {"range": [v.start, v.stop, v.step]} if isinstance(v, Range) else v),
    WithJsonSchema(
        {
            "description": "Values of a parameter: a list, {range: [start, stop, step]} (stop included), or an expression.",
            "anyOf": [
                {"type": "array", "items": _SCALAR, "minItems": 1},
                {
                    "type": "object",
                    "properties": {
                        "range": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}
                    },
                    "required": ["range"],
                    "additionalProperties": False,
                },
                _SCALAR,
            ],
        }
    ),
]


def _match(value: object) -> dict[str, list[Scalar]] | str:
    """What an exclude leaves out: a map of parameter to value or values, or a condition."""
    if isinstance(value, str):
        return template(value)
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {shown(value)}")
    return {key: within(key, _alternatives, item) for key, item in value.items()}


def _alternatives(value: object) -> list[Scalar]:
    return each(_scalar, value) if isinstance(value, list) else [_scalar(value)]


def _point(value: object) -> dict[str, Scalar]:
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {shown(value)}")
    return {key: within(key, _scalar, item) for key, item in value.items()}


def _groups(value: object) -> list[list[str]]:
    """`[[gpus, nodes]]`; one group may stand without the outer list."""
    groups = (
        [value] if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else value
    )
    if not isinstance(groups, list) or not all(isinstance(g, list) and len(g) > 1 for g in groups):
        raise Fault(
            f"expected lists of parameters that vary together, found {shown(value)}",
            hint="such as [[gpus, nodes]]",
        )
    return [[str(word) for word in group] for group in groups]


_POINT = {"type": "object", "minProperties": 1}


class Matrix(Model):
    """The parameters, by name, and how they are combined; the first varies slowest."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Values] = Field(init=False)

    exclude: list[
        Annotated[
            dict[str, list[Scalar]] | str,
            PlainValidator(_match),
            WithJsonSchema(
                {
                    "anyOf": [
                        {
                            **_POINT,
                            "additionalProperties": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
                        },
                        {"type": "string"},
                    ]
                }
            ),
        ]
    ] = Field(
        default=[],
        description='Cases left out: {gpus: 4, batch: [64, 128]}, or a condition "{{ gpus * batch > 256 }}".',
    )
    include: list[
        Annotated[
            dict[str, Scalar],
            PlainValidator(_point),
            WithJsonSchema({**_POINT, "additionalProperties": _SCALAR}),
        ]
    ] = Field(default=[], description="Cases added, each with a value for every parameter.")
    zip: Annotated[
        list[list[str]],
        PlainValidator(_groups),
        WithJsonSchema(
            {"type": "array", "items": {"type": ["array", "string"], "items": {"type": "string"}}}
        ),
    ] = Field(
        default=[],
        description="Parameters that vary together instead of in all combinations: [[gpus, nodes]].",
    )

    @property
    def parameters(self) -> dict[str, list[Scalar] | Range]:
        """The parameters in the order of the file."""
        return self.__pydantic_extra__


class Resources(Model):
    """What one run needs. Each value may be an expression over the parameters."""

    nodes: CountOrTemplate = Field(default=1, description="Nodes.")
    gpus: NumberOrTemplate = Field(default=1, description="GPUs in all.")
    cpus_per_task: CountOrTemplate | None = Field(default=None, description="CPU cores a process.")
    tasks_per_node: CountOrTemplate | None = Field(default=None, description="Processes a node.")
    memory: SizeOrTemplate | None = Field(default=None, description="Memory a node, such as 32G.")
    time: DurationOrTemplate = Field(
        default=600, description="Walltime of one run, such as 10m, 1h30m or 01:30:00."
    )
    exclusive: FlagOrTemplate = Field(default=False, description="Whether the nodes are shared with nobody.")
    queue: Template | None = Field(default=None, description="Queue, instead of the site's.")
    partition: Template | None = Field(default=None, description="Partition, instead of the site's.")
    account: Template | None = Field(default=None, description="Account or project, instead of the site's.")
    qos: Template | None = Field(default=None, description="Quality of service.")
    gres: Template | None = Field(
        default=None, description="Slurm's generic resources, instead of those made from gpus."
    )
    reservation: Template | None = Field(default=None, description="Reservation.")
    constraint: Template | None = Field(default=None, description="Node features.")
    extra: list[Template] = Field(
        default=[], description="Lines for the head of the job script, as they are."
    )


class Scaling(Model):
    """How a figure grows with a parameter."""

    axis: Filled = Field(description="The parameter that grows.")
    kind: Literal["weak", "strong"] = Field(
        description="weak: the work grows with the axis; strong: the work stays the same."
    )
    figure: Filled = Field(description="The figure that is compared.")
    baseline: str | int | float | bool | None = Field(
        default=None, description="Value of the axis that is 100 %; the least."
    )


class Hotspots(Model):
    """Which kernels cost most."""

    cover: Percent = Field(default=0.9, description="Share of the GPU time that the listed kernels make.")


class Compare(Model):
    """Variants against each other."""

    parameter: Filled = Field(description="The parameter whose values are the variants.")
    baseline: str | int | float | bool | None = Field(
        default=None, description="The value to compare with; the first."
    )


class Report(Model):
    """What the report says beyond its defaults."""

    scaling: Scaling | None = Field(default=None, description="Scaling over a parameter.")
    hotspots: Hotspots = Field(default=Hotspots(), description="The most expensive kernels.")
    compare: Compare | None = Field(default=None, description="Variants against each other.")


class Recipe(Model):
    """What to run, over which parameters, observed how, on what, and what to report."""

    nsw: Annotated[Literal[1], WithJsonSchema({"const": 1})] = Field(
        description="Version of the recipe's format: 1."
    )
    name: Name = Field(description="Name of the recipe; campaigns are named after it.")
    description: Text = Field(default="", description="One line for people.")
    app: App = Field(description="The application.")
    matrix: Annotated[Matrix, BeforeValidator(empty_as_map)] = Field(
        default_factory=Matrix, description="Parameters and their values; every combination is a case."
    )
    repeats: Count = Field(default=1, description="How often each case is run in each pass.")
    entries: list[PassEntry] = Field(
        default=[PassEntry(timeline={})],  # type: ignore[arg-type]  # parsed
        alias="passes",
        min_length=1,
        description="The ways to observe each case, in order.",
    )
    resources: Resources = Field(default=Resources(), description="What one run needs.")
    collect: Literal["tables", "reports", "everything"] = Field(
        default="reports", description="What is brought back."
    )
    report: Report = Field(default=Report(), description="What to report.")
    canary: CanaryRule | None = Field(
        default=None,
        description="Whether the first run goes ahead alone: on, off, runs above N; the site's choice by default.",
    )
    sites: dict[Name, dict[str, Any] | None] = Field(
        default={}, description="What only one site needs, by site: laid over the rest of the recipe."
    )

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in order."""
        return tuple(entry.only for entry in self.entries)
