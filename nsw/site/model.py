"""A site as types. Each key is documented here once; the JSON Schema is made from it."""

from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, WithJsonSchema, model_validator

from nsw.recipe import fields
from nsw.recipe.fields import Count, Duration, Filled, Flag, Line, Model, Name, Parsed, Text, one_of, parse_filled_line
from nsw.recipe.passes import HOST_PROGRAMS, PROGRAMS, site_profilers
from nsw.recipe.units import Amount, Canary, Fault, show_value
from nsw.site.names import ADAPTERS, LOCAL, TRANSPORTS, schedulers, transports
from nsw.site.topology import racks_by_node

SchedulerName: TypeAlias = Annotated[str, Parsed(one_of(schedulers), {"type": "string", "enum": ["local", *ADAPTERS]})]
TransportName: TypeAlias = Annotated[str, Parsed(one_of(transports), {"type": "string", "enum": [*TRANSPORTS]})]
ProfilerName: TypeAlias = Annotated[
    str, Parsed(one_of(site_profilers), {"type": "string", "enum": [*PROGRAMS, *HOST_PROGRAMS]})
]
BlockName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]

_RECORDING: Final = "alexnet-4xH200"  # the package's, in nsw/demo/recordings


def _parse_recording(value: object) -> str:
    """Refuse a folder: nsw replays its own recordings."""
    if value != _RECORDING:
        raise Fault(
            f"expected {_RECORDING}, the recorded campaign that nsw has; found {show_value(value)}",
            hint="no other can be replayed; `nsw read FOLDER` reads reports that are there already",
        )
    return _RECORDING


class Transport(Model):
    """How the site is reached."""

    kind: TransportName = Field(
        default="local", description="local: this machine; ssh: nsw's own connection; openssh: the user's own ssh."
    )
    host: Filled | None = Field(default=None, description="Host name, or its alias in ~/.ssh/config.")
    user: Filled | None = Field(default=None, description="User there; ~/.ssh/config's or this machine's by default.")
    port: Count | None = Field(default=None, description="Port of the ssh server.")
    identity: Filled | None = Field(default=None, description="File of the private key; the agent's keys by default.")
    config: Filled | None = Field(default=None, description="Another ssh_config than ~/.ssh/config.")
    login_shell: Flag = Field(
        default=False,
        description="Whether commands run in a login shell there, where the batch system is on PATH only then.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        """`transport: local` is short for `transport: {kind: local}`."""
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _host_of_remote(self) -> Self:
        if self.kind != "local" and self.host is None:
            raise Fault(f"the transport {self.kind} needs a host", hint=f"such as {{kind: {self.kind}, host: polaris}}")
        if self.kind == "local" and self.host is not None:
            raise Fault("the transport local takes no host", hint="write kind: openssh or kind: ssh")
        return self


def _number_or_auto(value: object) -> int | str:
    return "auto" if value == "auto" else fields.parse_whole_number(value)


NumberOrAuto = Annotated[
    int | str, Parsed(_number_or_auto, {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "auto"}]})
]


FILL = "fill"
_HANDED_OVER = 1000  # runs that a machine without a batch system gets, so that they go on without nsw


def _count_or_fill(value: object) -> int | str:
    return FILL if value == FILL else fields.parse_whole_number(value, minimum=1)


CountOrFill = Annotated[
    int | str, Parsed(_count_or_fill, {"anyOf": [{"type": "integer", "minimum": 1}, {"const": FILL}]})
]


def _owner(value: object) -> int | str:
    return value if isinstance(value, str) and value else fields.parse_whole_number(value)


Owner = Annotated[
    int | str, Parsed(_owner, {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}]})
]


def _topology(value: object) -> str | dict[str, str]:
    """The file of a topology; or racks by nodes."""
    if not isinstance(value, dict):
        return parse_filled_line(value)
    racks = {parse_filled_line(nodes): parse_filled_line(rack) for nodes, rack in value.items()}
    racks_by_node(racks)
    return racks


_RACKS = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "additionalProperties": {"type": "string"}}]}
Topology = Annotated[str | dict[str, str], Parsed(_topology, _RACKS)]


class Gpus(Model):
    """The GPUs of a node."""

    chip: Name | None = Field(
        default=None,
        description="Chip, such as gh100 (H100, H200), ga100 (A100), gv100 (V100), gp100 (P100); decides on metrics.",
    )
    per_node: NumberOrAuto | None = Field(
        default=None, description="GPUs a node; auto: counted at run time, on this machine only."
    )
    order: list[fields.Number] = Field(
        default=[],
        description="In which order the processes of a node take its GPUs, such as [3, 2, 1, 0] where the first cores"
        " are next to the last GPU.",
    )
    no_metrics: Line | None = Field(
        default=None,
        description="Why nobody may sample GPU metrics here, such as: DCGM holds the counters. Timelines with"
        " `gpu_metrics` are refused with it.",
    )


class Limits(Model):
    """What a campaign may ask of the site."""

    max_in_flight: Count = Field(
        default=20,
        description="Jobs and array tasks of a campaign that run at a time; on this machine 1 by default. An array's"
        " other tasks wait in the queue: `max_array: 1` limits these too. Each campaign has its own. With"
        " `scheduler: local` over ssh: how many runs wait and run there without nsw; 1000 by default.",
    )
    cpu_runs: Count = Field(
        default=1,
        description="Runs without GPUs, and builds, that run at a time on a machine with `scheduler: local` over ssh,"
        " of all your campaigns there.",
    )
    max_array: Count = Field(default=1000, description="Most tasks of one array; 1: no arrays.")
    max_walltime: Duration | None = Field(default=None, description="Longest walltime of a job, such as 24h.")
    runs_per_job: CountOrFill = Field(
        default=1, description="Runs packed into one job; fill: as many as fit into max_walltime."
    )
    login_reductions: fields.Number = Field(
        default=32, description="Most reports that the login node reduces for `collect: tables`; more are a job array."
    )
    grace: Duration = Field(
        default=30,
        description="Time between SIGTERM and SIGKILL for a run that is over its time limit, such as 10m: nsys writes"
        " its report then.",
        json_schema_extra={"default": "30s"},
    )
    lost_after: Duration = Field(
        default=120,
        description="Time without a trace of a job in queue and history after which it counts as lost, such as 2m; and"
        " after which a job that its scheduler says can never run is given up.",
        json_schema_extra={"default": "2m"},
    )
    download: fields.Size = Field(
        default=20 << 30,
        description="Bytes that may be downloaded without asking, such as 20G.",
        json_schema_extra={"default": "20G"},
    )


class Site(Model):
    """Where campaigns run."""

    name: Name = Field(default="", description="The key of the site in the file; not set below it.")
    description: Text = Field(default="", description="One line for people.")
    default: Flag = Field(
        default=False, description="Whether runs go here where no site is named; one site of a file at most."
    )
    scheduler: SchedulerName = Field(description="The batch system; local runs the jobs here, one after the other.")
    transport: Transport = Field(default=Transport(), description="How the site is reached.")
    scratch: Line | None = Field(
        default=None,
        description="Folder for campaigns on the site. {{ account }} and other keys of the site are filled in; "
        "$USER and $HOME are the site's own.",
    )
    share: Literal["nobody", "group"] = Field(
        default="nobody",
        description="Who else may look at campaigns: nobody, or the group that the folders get from their parent.",
    )
    trusted_owners: list[Owner] = Field(
        default=[],
        description="Users, by name or number, who may own a folder above `scratch` (and above the folder of campaigns,"
        " where the site is this machine), such as the owner of a project's folder: they could replace what nsw runs.",
    )
    account: Filled | None = Field(default=None, description="Account or project that pays.")
    queue: Filled | None = Field(default=None, description="Queue, unless the recipe names one.")
    partition: Filled | None = Field(default=None, description="Partition, unless the recipe names one.")
    qos: Filled | None = Field(default=None, description="Quality of service, unless the recipe names one.")
    gres: Line | None = Field(
        default=None,
        description="How Slurm is asked for GPUs, such as gpu:a100:{{ gpus }}, where gpus is how many a node, or PBS,"
        " such as ngpus={{ gpus }}:gputype=A100, or system=aurora where it does not hand out GPUs; unless the recipe"
        " says so itself.",
    )
    extra: list[Line] = Field(
        default=[], description="Lines for the head of every job script, as they are; before the recipe's own."
    )
    login_shell: Flag = Field(
        default=False, description="Whether jobs start in a login shell, where 'module' needs it."
    )
    modules: list[Filled] = Field(
        default=[], description="Modules that each job loads, before the lines of a recipe's app.setup."
    )
    env: fields.Environment = Field(
        default={}, description="Environment variables of each run; secret ones as in a recipe's app.env."
    )
    profilers: dict[ProfilerName, Filled] = Field(default={}, description="Path or name of each profiler on the site.")
    python: Filled | None = Field(default=None, description="Python there; recipes use it as {{ site.python }}.")
    gpus: Gpus = Field(default=Gpus(), description="The GPUs of a node.")
    topology: Topology | None = Field(
        default=None,
        description="Which rack each node is in, so that late racks are named: {'node[01-18]': rack1}, or a file beside"
        " this one of such lines, of what `scontrol show topology` prints, or Slurm's topology.conf.",
    )
    cpus_per_node: Count | None = Field(
        default=None, description="CPU cores a node; a plan that needs more is refused."
    )
    mpi: Literal["openmpi", "mpich", "pals"] | None = Field(
        default=None,
        description="Which MPI's mpirun and mpiexec are: Open MPI, MPICH (also Intel MPI and MVAPICH: Hydra), or Cray"
        " PALS; by default what `nsw sites check` found.",
    )
    node_launcher: Line | None = Field(
        default=None,
        description="Words that start a command once on each of a job's nodes, such as mpiexec -n {{ nodes }} --ppn 1:"
        " for torchrun over several nodes, where nsw knows none.",
    )
    whole_nodes: Flag = Field(
        default=False,
        description="Whether a job gets whole nodes however little it asks for: all their GPUs are paid for, and runs"
        " of one job that fit go side by side on a node, each with GPUs of its own (limits.runs_per_job).",
    )
    limits: Limits = Field(default=Limits(), description="What a campaign may ask of the site.")
    canary: fields.CanaryRule = Field(
        default=Canary(None),
        description="Whether a campaign's first run goes ahead alone: on, off, runs above N.",
        json_schema_extra={"default": "off"},
    )
    stop_after_failures: Count | None = Field(
        default=None,
        description="After this many failed runs of a campaign nothing new of it is submitted, unless the recipe sets"
        " a number of its own.",
    )
    confirm_above: fields.AmountOf = Field(
        default=Amount(1.0, "node-hour"),
        description="What a plan may cost without a question, such as 1 node-hour or 20 gpu-hours: its expected cost"
        " where earlier campaigns tell it, else the most that it can cost. Without a terminal `nsw run` refuses it,"
        " unless --yes.",
        json_schema_extra={"default": "1 node-hour"},
    )
    notify: fields.Command | None = Field(
        default=None,
        description="A command that is run where nsw runs, in the campaign's folder, once a campaign is over; as in a"
        " recipe, which goes before.",
    )
    templates: dict[BlockName, Filled] = Field(
        default={}, description="Files that replace blocks of the job script, by block; relative to this file."
    )
    replay: Annotated[str, Parsed(_parse_recording, {"type": "string", "enum": [_RECORDING]})] | None = Field(
        default=None,
        description="Of the built-in demo site: the recorded campaign that stands in for a machine. There is no other.",
    )

    @model_validator(mode="before")
    @classmethod
    def _in_flight_without_a_scheduler(cls, value: Any) -> Any:
        """Here runs go side by side only where the site asks for it; a machine over ssh lets them wait itself."""
        if not isinstance(value, dict) or value.get("scheduler") != LOCAL:
            return value
        transport, limits = value.get("transport", LOCAL), value.get("limits", {})
        kind = transport.get("kind") if isinstance(transport, dict) else transport
        if not isinstance(limits, dict):
            return value
        return value | {"limits": {"max_in_flight": 1 if kind == LOCAL else _HANDED_OVER} | limits}

    @model_validator(mode="after")
    def _remote_scratch(self) -> Self:
        if self.transport.kind != "local" and self.scratch is None:
            hint = "such as /scratch/{{ account }}/$USER/nsw"
            raise Fault("a remote site needs 'scratch', a folder for campaigns", hint=hint)
        return self


class SitesFile(Model):
    """A file of sites."""

    nsw: Annotated[Literal[1], WithJsonSchema({"const": 1})] = Field(description="Version of the format: 1.")
    sites: dict[Name, Site] = Field(description="The sites by name.")


def sites_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of sites files, for editors."""
    from nsw.recipe.model import clean_schema, with_schema_head

    schema = clean_schema(SitesFile.model_json_schema(by_alias=True))
    del schema["$defs"]["Site"]["properties"]["name"]
    return with_schema_head(
        schema,
        title="nsw sites",
        description="Where campaigns run. Begin the file with this line, and an editor knows its keys: "
        "# yaml-language-server: $schema=sites.schema.json ('nsw schema sites > sites.schema.json' writes it)",
    )
