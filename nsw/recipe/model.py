"""The recipe as types. Each key is documented here once; the JSON Schema is made from it."""

import copy
import json
from functools import cached_property, partial
from secrets import randbelow
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from nsw.recipe import fields
from nsw.recipe.fields import FREE, Count, CountOrTemplate, Filled, Flag, Line, Model, Name, Number, Template, Text
from nsw.recipe.launcher_names import LAUNCHERS, launchers
from nsw.recipe.matrix import Matrix
from nsw.recipe.passes import Pass, PassEntry
from nsw.recipe.units import Fault, parse_below, parse_number, parse_size

MEASURED = ("copies", "collectives")


def _parse_bytes(value: object) -> Any:
    return value if value in MEASURED else fields.or_template(partial(fields.parse_positive), value)


Bytes = Annotated[
    float | str,
    fields.Parsed(
        _parse_bytes,
        {"anyOf": [{"enum": list(MEASURED)}, {"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
    ),
]


class ModelLink(Model):
    """Data that moves in an iteration: over PCIe, MPI, a file system."""

    ranges: list[Filled] = Field(min_length=1, description="NVTX ranges in which it moves.")
    clock: Literal["gpu", "cpu"] = Field(
        default="gpu", description="Whose time counts: gpu: of the work that the range launched; cpu: of the range."
    )
    bytes: Bytes = Field(
        description="Bytes of an iteration, a number or a formula; copies: those between host and GPU that were"
        " measured; collectives: those of NCCL or MPI."
    )


class PerformanceModel(Model):
    """An iteration on one GPU computes and moves data; its effective rates make a roofline."""

    flop: fields.AmountOrTemplate = Field(description="Floating-point operations of an iteration on one GPU.")
    ranges: list[Filled] = Field(min_length=1, description="NVTX ranges that compute, timed by the GPU's work.")
    links: dict[Name, ModelLink] = Field(default={}, description="What moves, by a name such as pci or mpi.")
    iteration: Filled | None = Field(
        default=None, description="NVTX range that is an iteration: without it each range is one of each iteration."
    )


class LockedGit(Model):
    """The git repository that holds the application."""

    folder: Filled = Field(description="The application's folder.")
    commit: Filled = Field(description="The commit that was checked out.")
    dirty: Flag = Field(description="Whether files of the folder differed from the commit.")


class LockedBefore(Model):
    """What the cases whose side is before were made of."""

    ref: Filled | None = Field(default=None, description="What `--against` named.")
    files: dict[Filled, Text] = Field(
        default={}, description="SHA-256 of every file of their program, by name; none where it is the other side's."
    )
    git: LockedGit | None = Field(default=None, description="Where their program came from.")


class LockedChoice(Model):
    """What an earlier stage chose for a run."""

    arguments: list[Text] = Field(description="Arguments of the profiler.")
    limit_s: int | None = Field(default=None, description="Time limit in seconds; left out: that of the plan.")
    source: Filled = Field(description="The run whose tables decided.")
    note: Text = Field(default="", description="What was chosen, for people.")
    kernels: list[Text] = Field(
        default=[], description="Mangled names of the kernels that are measured; function names without them."
    )
    ordinals: list[Count] = Field(
        default=[], description="The launches of each of them that are measured, the first being 1."
    )


class LockedChoices(Model):
    """Choices of guided passes. They hold for the same chip, tools and files; else nsw warns and chooses again."""

    chip: Text | None = Field(default=None, description="The GPUs that the jobs ran on.")
    tools: dict[Filled, Text] = Field(default={}, description="Versions of profilers and driver, as the jobs met them.")
    files: Filled = Field(description="SHA-256 over the names and hashes of the application's files.")
    passes: Filled = Field(description="SHA-256 of the recipe's passes.")
    runs: dict[Filled, LockedChoice] = Field(description="What was chosen, by run.")


class Lock(Model):
    """Written by nsw, compared when the recipe is run again: what differs is told as a warning."""

    version: Filled = Field(description="Version of nsw.")
    site: Filled = Field(description="Name of the site.")
    date: Filled = Field(description="When the campaign was made.")
    files: dict[Filled, Text] = Field(default={}, description="SHA-256 of every file of the application, by name.")
    git: LockedGit | None = Field(default=None, description="Where the application came from.")
    before: LockedBefore | None = Field(default=None, description="The other side of a comparison (`--against`).")
    tools: dict[Filled, Text] = Field(
        default={}, description="Versions of profilers and driver, as the jobs met them; several are joined by ' | '."
    )
    machine: dict[Filled, Text] = Field(
        default={}, description="What the jobs ran on: CPU, chip, clocks, power limit, modules; several by ' | '."
    )
    choices: LockedChoices | None = Field(default=None, description="What an earlier stage chose for runs.")

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the program's files, those of the side before below a folder of their own."""
        before = self.before.files if self.before else {}
        return self.files | {f"app.before/{name}": digest for name, digest in before.items()}


Inside: TypeAlias = Literal["inside", "outside"]
LauncherName: TypeAlias = Annotated[
    str, fields.Parsed(fields.one_of(launchers), {"type": "string", "enum": [*LAUNCHERS]})
]


class Launcher(Model):
    """How the application's processes are started."""

    kind: LauncherName = Field(default="none", description="The launcher; none starts one process.")
    processes: CountOrTemplate | None = Field(
        default=None,
        description="How many processes in all; by default tasks_per_node on each node, else one on each node.",
    )
    prefix: Template | None = Field(default=None, description="Of kind custom: what is put before the command.")
    options: list[Template] = Field(
        default=[], description="More arguments for the launcher. One that says the same as one of nsw's replaces it."
    )
    gpus: Literal["own", "node"] | None = Field(
        default=None,
        description="Which GPUs each process sees: its own, or all of its node, to pick one by its local rank."
        " By default its own where each has exactly one; all of the node under torchrun.",
    )
    share_gpus: Flag = Field(
        default=False, description="Whether processes may share a GPU, or divide those of a node unequally."
    )
    profiler: Inside | None = Field(
        default=None,
        description="inside: the launcher starts a profiler for each process; outside: one profiler starts it."
        " By default inside, and outside for torchrun, whose processes are its own children.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`launcher: srun` is short for `launcher: {kind: srun}`."""
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_prefix(self) -> Self:
        if (self.kind == "custom") != (self.prefix is not None):
            message = (
                "a custom launcher needs its prefix" if self.kind == "custom" else "only a custom launcher has a prefix"
            )
            raise Fault(message, hint="such as {kind: custom, prefix: 'mylaunch -n {{ gpus }}'}")
        return self


class Build(Model):
    """How the application is built: once a campaign, or once for each value of the parameters that its command uses."""

    command: Template = Field(description="One line of shell, run in the folder of the application's files.")
    where: Literal["login", "job"] = Field(default="job", description="On the login node, or in a job of its own.")
    time: fields.Duration = Field(
        default=3600, description="Longest time that it may take.", json_schema_extra={"default": "1h"}
    )
    gpus: fields.NumberOrTemplate = Field(default=0, description="GPUs of its job.")


class Container(Model):
    """The container that the application runs in."""

    runtime: Literal["apptainer", "singularity", "shifter", "podman", "docker", "sarus", "pyxis", "charliecloud"] = (
        Field(description="The program that runs it; pyxis: srun itself, by its --container options.")
    )
    image: Template = Field(
        description="Image file or reference. $NAME is a variable of the job; a file needs its absolute path."
    )
    mounts: list[Template] = Field(
        default=[],
        description="Folders to mount: SOURCE, SOURCE:TARGET or SOURCE:TARGET:ro. $NAME is a variable of the job. The"
        " run's folder, app.files and a profiler from outside are mounted in any case.",
    )
    env: dict[fields.Variable, Template] = Field(
        default={}, description="Variables that have another value inside; those of app.env are known inside anyway."
    )
    gpus: Flag = Field(
        default=False,
        description="Whether to bring the GPUs in: --nv, --gpus=all or --device=nvidia.com/gpu=all. shifter, sarus and"
        " pyxis bring them in themselves; charliecloud by `ch-fromhost --nvidia IMAGE`, once.",
    )
    options: list[Template] = Field(default=[], description="More arguments for the runtime.")
    profiler: Inside = Field(
        default="inside",
        description="Whether the profiler is in the image, or on the site, which is mounted. It runs in the"
        " container either way.",
    )


class Figure(Model):
    """A number that the application prints of itself."""

    regex: fields.Regex = Field(
        description="Searched in what the run prints on stdout, all ranks together; not in stderr (`2>&1`) nor in files"
        " (`&& cat train.log`). Regular expression of Python's `re` with one group, the number (1,234.5 and 1.2e+03"
        " are such); capitals count, unless it begins with (?i). Single quotes keep its backslashes. A carriage return"
        " ends a line too; a line of more than 4096 characters is searched in pieces that overlap."
    )
    unit: Text = Field(description="Its unit, such as images/s.")
    pick: Literal["first", "last", "sum", "mean", "max"] = Field(
        default="last", description="Which of several matches."
    )
    higher_is_better: Flag | None = Field(
        default=None,
        description="Which direction is an improvement; by default less of a time (s, ms/step) and of an energy (J),"
        " more of all else.",
    )
    required: Flag = Field(
        default=True,
        description="Whether every run must print it. A run that does not makes `nsw run` exit with 1, and `nsw retry`"
        " does it again.",
    )


class App(Model):
    """The application."""

    command: fields.Command = Field(
        description="What is run: one line of shell, or a list of arguments. Jinja: {{ parameter }}. A line with a pipe"
        " fails when any of its parts does (bash with pipefail)."
    )
    files: Annotated[list[Filled], FREE] = Field(default=[], description="Files sent along, relative to the recipe.")
    before: Annotated[list[Filled], FREE] = Field(
        default=[],
        description="Files sent along instead for cases whose parameter `side` is before: another version of the"
        " program. `--against` sets it.",
    )
    setup: list[Template] = Field(
        default=[],
        description="Lines of shell before the command and its build, after the site's modules, such as source"
        " ~/venv/bin/activate. A job runs them once, for all its cases: without {{ }}.",
    )
    env: fields.EnvironmentTemplates = Field(
        default={},
        description="Environment variables. A value is secret where the name says so (TOKEN, PASSWORD, API_KEY, ...),"
        " where it has a secret in it (a URL with a password or signature, a connection string, a webhook),"
        " or where it is written {secret: VALUE}: it reaches the job through a file that only you can read.",
    )
    launcher: Launcher = Field(default=Launcher(), description="How its processes are started.")
    build: Build | None = Field(default=None, description="How it is built.")
    container: Container | None = Field(default=None, description="The container it runs in.")
    figures: Annotated[dict[Name, Figure], FREE] = Field(
        default={}, description="Numbers that it prints of itself, by name."
    )

    @model_validator(mode="after")
    def _check_both_sides(self) -> Self:
        if self.before and not self.files:
            raise Fault("app.before needs app.files, the program of the other cases")
        return self


class Resources(Model):
    """What one run needs. Each value may be an expression over the parameters."""

    nodes: CountOrTemplate = Field(default=1, description="Nodes.")
    gpus: fields.NumberOrTemplate | None = Field(
        default=None, description="GPUs of all nodes together; by default one on each node."
    )
    cpus_per_task: CountOrTemplate | None = Field(default=None, description="CPU cores a process.")
    tasks_per_node: CountOrTemplate | None = Field(
        default=None, description="Processes a node; by default the launcher's processes divided by the nodes."
    )
    memory: fields.SizeOrTemplate | None = Field(default=None, description="Memory a node, such as 32G.")
    time: Annotated[fields.DurationOrTemplate, FREE] = Field(
        default=600,
        description="Walltime of one run, such as 10m, 1h30m or 01:30:00.",
        json_schema_extra={"default": "10m"},
    )
    exclusive: fields.FlagOrTemplate = Field(default=False, description="Whether the nodes are shared with nobody.")
    queue: Line | None = Field(default=None, description="Queue, instead of the site's.")
    partition: Line | None = Field(default=None, description="Partition, instead of the site's.")
    account: Line | None = Field(default=None, description="Account or project, instead of the site's.")
    qos: Line | None = Field(default=None, description="Quality of service.")
    gres: Line | None = Field(
        default=None,
        description="Slurm's generic resources, or a part of PBS's chunk, instead of those made from gpus.",
    )
    reservation: Line | None = Field(default=None, description="Reservation.")
    constraint: Line | None = Field(default=None, description="Node features.")
    extra: list[Line] = Field(
        default=[], description="Lines for the head of the job script, as they are; {{ parameter }} is filled in."
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

    cover: fields.Percent = Field(
        default=0.9,
        description="Share of the GPU time that the listed kernels make.",
        json_schema_extra={"default": "90%"},
    )


class Compare(Model):
    """Variants against each other."""

    parameter: Filled = Field(description="The parameter whose values are the variants.")
    baseline: str | int | float | bool | None = Field(default=None, description="The value to compare with; the first.")
    figure: Filled | None = Field(default=None, description="The figure that is compared; the recipe's first.")


class Steps(Model):
    """What an iteration of the program is; found out where it is not said."""

    nvtx: Filled | None = Field(
        default=None, description="The NVTX range that is an iteration; `step` is `step 7` too."
    )
    warmup: Number | None = Field(
        default=None,
        description="How many iterations at the start are warm-up; by default those that take clearly longer than"
        " later ones.",
    )


class FlopsPerStep(Model):
    """Floating-point operations that a step of the program needs, from which model FLOP/s and MFU follow."""

    value: fields.AmountOrTemplate = Field(
        description="FLOP of a step on all GPUs together, a number or a formula: of a transformer 6 * parameters *"
        " tokens of a step."
    )
    precision: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8"] = Field(
        description="Whose dense peak counts: that of the matrix products."
    )


class Report(Model):
    """What the report says beyond its defaults."""

    scaling: Scaling | None = Field(default=None, description="Scaling over a parameter.")
    hotspots: Hotspots = Field(default=Hotspots(), description="The most expensive kernels.")
    compare: Compare | None = Field(default=None, description="Variants against each other.")
    steps: Steps = Field(default=Steps(), description="The program's iterations, by which timelines have phases.")
    classes: dict[Text, fields.Pattern] = Field(
        default={},
        description="Classes of kernels in which GPU time is counted, before nsw's own: a name, and a pattern that the"
        " kernel's name holds.",
    )
    gate: dict[Filled, fields.ToleranceRule] = Field(
        default={},
        description="How much figures may change for `nsw gate`: a figure, and -2% (it may fall by 2 % at most) or +2%"
        " (rise), with ' or undecided' behind it where what cannot be told passes.",
    )
    model: PerformanceModel | None = Field(
        default=None, description="A model of the program: effective rates of computing and moving data, a roofline."
    )
    flops_per_step: FlopsPerStep | None = Field(
        default=None, description="FLOP of a step: the answer has model FLOP/s and MFU."
    )


_LIMITS = {"regex": ("never",), "figure": ("at_least", "near", "within"), "file": ("at_least", "sha256"), "command": ()}


class Check(Model):
    """What must hold of a run beside exit status 0: one of regex, figure, file and command, with its limits."""

    regex: fields.Pattern | None = Field(
        default=None,
        description="Must match in what the program prints, on stdout or stderr: Python's `re`, capitals count unless"
        " it begins with (?i); single quotes keep its backslashes.",
    )
    never: Flag | None = Field(default=None, description="Of a regex: whether it must match nowhere.")
    figure: Filled | None = Field(default=None, description="A figure of app.figures.")
    near: fields.Real | None = Field(
        default=None,
        description="The value that the figure has here; it differs by at most `within`. Checked where no profiler"
        " slows the program.",
    )
    within: fields.Margin | None = Field(
        default=None, description="How far it may be from `near`: 5% both ways, -5% below alone, +5% above alone."
    )
    at_least: fields.Least | None = Field(
        default=None, description="The least that the figure may be, or the least size of the file, such as 1M."
    )
    file: Filled | None = Field(default=None, description="A file that the run must leave, relative to its folder.")
    sha256: fields.Sha256 | None = Field(default=None, description="The file's SHA-256, as `sha256sum` prints it.")
    command: Filled | None = Field(
        default=None,
        description="One line of shell, run in the run's folder in the job after the program, once, outside of"
        " profiler, launcher and container; it must exit with 0. It has what is left of the run's time.",
    )

    @property
    def kind(self) -> str:
        """The key that says what is checked."""
        return next(key for key in _LIMITS if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        kinds = [key for key in _LIMITS if getattr(self, key) is not None]
        if len(kinds) != 1:
            both = f", not of {' and '.join(kinds)}" if kinds else ""
            hint = r"such as {regex: '(?i)\bnan\b', never: true}"
            raise Fault(f"a check is of one of {', '.join(_LIMITS)}{both}", hint=hint)
        (kind,) = kinds
        for key in sorted(self.model_fields_set - {kind, *_LIMITS[kind]}):
            raise Fault(
                f"'{key}' is no limit of a {kind}", hint=f"a {kind} has {' and '.join(_LIMITS[kind]) or 'none'}"
            )
        if kind == "figure" and self.at_least is None and self.near is None:
            raise Fault("this check holds always", hint="add `at_least: 1`, or `near: 13000, within: -5%`")
        if (self.near is None) != (self.within is None):
            raise Fault("'near' and 'within' belong together", hint="such as near: 13000, within: -5%")
        if kind == "figure" and isinstance(self.at_least, str):
            parse_below("at_least", parse_number, self.at_least)
        if kind == "file" and isinstance(self.at_least, float):
            parse_below("at_least", parse_size, self.at_least)
        return self


class Interleave(Model):
    """In which order the runs of a block follow each other."""

    seed: Number = Field(
        default_factory=partial(randbelow, 10_000),
        description="Seed of the random order; by default drawn anew for each campaign, and kept in its lock.",
    )


def _parse_interleave(value: object) -> Any:
    """`interleave: true` is short for `interleave: {}`, and false for none."""
    return value if isinstance(value, dict | None) else {} if fields.parse_flag(value) else None


class Recipe(Model):
    """What to run, over which parameters, observed how, on what, and what to report."""

    nsw: Annotated[Literal[1], WithJsonSchema({"const": 1})] = Field(description="Version of the recipe's format: 1.")
    name: Annotated[Name, FREE] = Field(description="Name of the recipe; campaigns are named after it.")
    description: Annotated[Text, FREE] = Field(default="", description="One line for people.")
    app: App = Field(description="The application.")
    matrix: Annotated[Matrix, BeforeValidator(fields.empty_as_map), FREE] = Field(
        default_factory=Matrix, description="Parameters and their values; every combination is a case."
    )
    repeats: Count = Field(
        default=1, description="How often each case is run in each pass. More of some cases: `nsw run --into`."
    )
    interleave: Annotated[Interleave | None, BeforeValidator(_parse_interleave), FREE] = Field(
        default=None,
        description="Whether the runs of baseline passes are done in blocks: each holds one repeat of every case, in"
        " random order, and as many as the longest walltime allows follow each other in one job. Cases that need"
        " different resources have blocks of their own.",
    )
    warmup: Number = Field(
        default=0,
        description="Whole runs of each case before its repeats, in each pass but counters. They are kept, but nothing"
        " of them is in tables and statistics. Iterations within a run: report.steps.warmup.",
    )
    entries: Annotated[list[PassEntry], FREE] = Field(
        default=[PassEntry(baseline={})],  # type: ignore[arg-type]  # parsed
        alias="passes",
        min_length=1,
        description="The ways to observe each case, in order; the program alone (baseline) if left out.",
    )
    conditions: Annotated[Flag, FREE] = Field(
        default=True,
        description="Whether the clocks, power and temperature of GPUs and the load of hosts are sampled beside the"
        " program, in all passes but counters.",
    )
    resources: Resources = Field(default=Resources(), description="What one run needs.")
    collect: Annotated[Literal["tables", "reports", "node", "everything"], FREE] = Field(
        default="reports",
        description="What is downloaded; tables: what the site reduced; node: reports, which the ranks leave on their"
        " nodes (in TMPDIR, else /tmp) and each node packs into one file.",
    )
    check: Annotated[list[Check], FREE] = Field(
        default=[],
        description="What must hold of each run beside exit status 0. One of which a check does not hold is `invalid`:"
        " kept, in no statistics, and `nsw retry` does it again.",
    )
    allow_missing: Annotated[Number, FREE] = Field(
        default=0,
        description="Of how many ranks of a run the reports may be missing or lack records: then it is no error.",
    )
    report: Annotated[Report, FREE] = Field(default=Report(), description="What to report.")
    canary: Annotated[fields.CanaryRule | None, FREE] = Field(
        default=None,
        description="Whether the first run goes ahead alone: on, off, runs above N; by default the site's value.",
    )
    stop_after_failures: Annotated[Count | None, FREE] = Field(
        default=None,
        description="After this many failed runs nothing new is submitted, and waiting runs are withdrawn until"
        " `nsw resume`; by default the site's value.",
    )
    notify: Annotated[fields.Command | None, FREE] = Field(
        default=None,
        description="A command that is run where nsw runs, in the campaign's folder, once the campaign is over: words,"
        " or a line of shell. It"
        " learns of the end by NSW_VERDICT (good, bad), NSW_CAMPAIGN, NSW_MESSAGE, NSW_DONE, NSW_FAILED; that of the"
        " site where there is none.",
    )
    lock: Annotated[Lock | None, FREE] = Field(
        default=None, description="Of a recipe that a campaign left: with what it was done."
    )
    sites: dict[Name, dict[str, Any] | None] = Field(
        default={}, description="What only one site needs, by site: laid over the rest of the recipe."
    )

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in order."""
        return tuple(entry.only for entry in self.entries)


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"
_SETS = ("set:basic", "set:detailed", "set:full", "set:roofline", "set:analysis", "all")
_NOT_PER_SITE = ("nsw", "name", "lock", "sites")


def recipe_schema() -> dict[str, Any]:
    """The schema of a recipe."""
    schema = clean_schema(Recipe.model_json_schema(by_alias=True))
    # add examples of values for editors to complete; unlike an enum, `examples` refuse no other value
    counters = schema["$defs"]["CountersPass"]["properties"]
    from nsw.metrics import metric_groups_by_name, metrics_by_name

    counters["from"]["examples"] = ["timeline"]  # what a timeline pass without a name is called
    counters["metrics"]["items"]["examples"] = [*metric_groups_by_name(), *metrics_by_name(), *_SETS]
    schema["$defs"] |= _site_section_schemas(schema)
    (pattern,) = schema["properties"]["sites"]["patternProperties"]
    schema["properties"]["sites"]["patternProperties"] = {pattern: {"$ref": f"{_REF}SiteSection"}}
    return with_schema_head(
        schema,
        title="nsw recipe",
        description="What to run and what to profile. Begin the file with this line, and an editor knows its keys: "
        "# yaml-language-server: $schema=recipe.schema.json ('nsw schema recipe > recipe.schema.json' writes it)",
    )


def with_schema_head(schema: dict[str, Any], *, title: str, description: str) -> dict[str, Any]:
    """The schema with its dialect, title and description in front.

    Args:
        schema: A JSON Schema.
        title: Its title.
        description: What it describes.
    """
    return {"$schema": DIALECT, **schema, "title": title, "description": description}


def clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that merely repeat a key's name, and with the short forms that models take."""
    schema = _strip_schema_titles(schema)
    definitions = schema.get("$defs", {})
    for name in ("Launcher", "Transport"):
        if name in definitions:
            kinds = definitions[name]["properties"]["kind"]["enum"]
            definitions[name] = {"anyOf": [definitions[name], {"enum": kinds}]}
    if "Interleave" in definitions:
        definitions["Interleave"] = {"anyOf": [definitions["Interleave"], {"type": "boolean"}]}
    if "PassEntry" in definitions:
        entry = definitions["PassEntry"] | {"minProperties": 1, "maxProperties": 1}
        definitions["PassEntry"] = {"anyOf": [entry, {"enum": list(entry["properties"])}]}
    return schema


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it is shipped: a line each, without indentation, which would be a seventh of its packed size."""
    return json.dumps(schema, indent=0, ensure_ascii=False) + "\n"


def _strip_schema_titles(value: Any, *, keys_are_names: bool = False) -> Any:
    """Strip titles and null defaults. `keys_are_names`: `title` may be one of the names."""
    if isinstance(value, list):
        return [_strip_schema_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {"additionalProperties": False} if "patternProperties" in value and not keys_are_names else {}
    return closed | {
        key: _strip_schema_titles(item, keys_are_names=key in {"properties", "$defs"} and not keys_are_names)
        for key, item in value.items()
        if keys_are_names or not (key == "title" or (key == "default" and item is None))
    }


def _site_section_schemas(schema: dict[str, Any]) -> dict[str, Any]:
    """The definitions for the sections of sites: no key is required."""
    definitions = copy.deepcopy(schema["$defs"])
    section = {k: copy.deepcopy(v) for k, v in schema.items() if k != "$defs"}
    section["properties"] = {k: v for k, v in section["properties"].items() if k not in _NOT_PER_SITE}
    section["description"] = "What only this site needs; the keys of a recipe, none of them required."
    loose = {f"{name}OfSite": _without_required(definition) for name, definition in definitions.items()}
    return loose | {"SiteSection": {"anyOf": [_without_required(section), {"type": "null"}]}}


def _without_required(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_required(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return value | {"$ref": value["$ref"] + "OfSite"}
    drop = isinstance(value.get("required"), list)
    return {key: _without_required(item) for key, item in value.items() if not (drop and key == "required")}
