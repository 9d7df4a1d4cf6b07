"""Launchers: a layout -> the words that start a program's processes where the layout wants them.

Each launcher is a table: which of its options say what of the layout. An option of the recipe that says the same as one
of nsw's replaces it; one that says something else is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsw.plan.layout import Layout, LayoutError
from nsw.profilers.cprofile import is_python
from nsw.profilers.model import MACHINERY, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "FAMILIES", "Launch", "PlaceFacts", "family_of", "functions_before", "launch", "layout_options", "notes_of",
    "processes_in", "rank_words", "start_on_nodes",
]  # fmt: skip

FAMILIES: Final = ("openmpi", "mpich", "pals")  # of mpirun and mpiexec; Intel MPI's is Hydra, as MPICH's
NODE_FILES: Final = {"pbs": Variable("PBS_NODEFILE"), "cobalt": Variable("COBALT_NODEFILE")}
HOSTS: Final = Variable("nsw_hosts")  # `a:4,b:4`: Open MPI takes no more ranks a node than it is told of
_FORWARD: Final = Variable("nsw_x[@]")
_ENVIRONMENT: Final = Variable("nsw_environment")
_MEETING: Final = Variable("nsw_meeting")  # the first node and a port
_OPTIONS = ("app", "launcher", "options")


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """What of a site decides on a launcher's words.

    Attributes:
        scheduler: The site's batch system.
        mpi: Which family mpirun and mpiexec are of; None: not known.
        node_launcher: The site's own words that start one process a node; () for nsw's.
        gres: What the job asks Slurm for in place of a number of GPUs.
        steps_share_nodes: Whether other runs of the job go on the same node at the same time.
    """

    scheduler: str = "local"
    mpi: str | None = None
    node_launcher: tuple[str, ...] = ()
    gres: str | None = None
    steps_share_nodes: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """How a recipe's launcher starts the program.

    `prefix` are the words of kind `custom`; `python` is the interpreter that a program starts with, also where a
    profiler is before it.
    """

    layout: Layout
    place: PlaceFacts = field(default_factory=PlaceFacts)
    options: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    python: str | None = None

    @property
    def kind(self) -> str:
        """The launcher's name."""
        return self.layout.kind

    @property
    def over_nodes(self) -> bool:
        """Whether a launcher of one node is started on several, once on each."""
        return self.kind == "torchrun" and self.layout.nodes > 1


# --- what the options of each launcher say: processes, nodes, per_node, cpus, gpus (of a node), or how ---

_SRUN: Final = {
    "-n": "processes", "--ntasks": "processes", "-N": "nodes", "--nodes": "nodes", "--ntasks-per-node": "per_node",
    "-c": "cpus", "--cpus-per-task": "cpus", "--gpus-per-node": "gpus", "-G": "all_gpus", "--gpus": "all_gpus",
    "--gres": "other_gpus", "--gpus-per-task": "other_gpus", "--tres-per-task": "other_gpus",
    "-m": "distribution", "--distribution": "distribution", "--cpu-bind": "binding", "--cpu_bind": "binding",
    "--exact": "exact", "--overlap": "exact", "--exclusive": "exact",
}  # fmt: skip
_APRUN: Final = {"-n": "processes", "-N": "per_node", "-d": "cpus", "-cc": "binding"}
_JSRUN: Final = {
    "-p": "processes", "--np": "processes", "-n": "sets", "--nrs": "sets",
    "-a": "set_ranks", "--tasks_per_rs": "set_ranks",
    "-c": "set_cpus", "--cpu_per_rs": "set_cpus", "-g": "set_gpus", "--gpu_per_rs": "set_gpus",
    "-r": "node_sets", "--rs_per_host": "node_sets", "-b": "binding", "--bind": "binding",
}  # fmt: skip
_MPI: Final = {
    "-n": "processes", "-np": "processes", "--n": "processes", "--np": "processes",
    "-ppn": "per_node", "--ppn": "per_node", "-perhost": "per_node", "-npernode": "per_node", "--npernode": "per_node",
    "-N": "per_node", "--map-by": "mapping", "-map-by": "mapping", "--depth": "cpus", "-d": "cpus",
    "--cpu-bind": "binding", "--bind-to": "binding", "-bind-to": "binding",
    "-f": "hosts", "-hosts": "hosts", "-host": "hosts", "--host": "hosts", "-H": "hosts", "--hosts": "hosts",
    "--hostlist": "hosts", "-hostfile": "hosts", "--hostfile": "hosts",
    "-machinefile": "hosts", "--machinefile": "hosts",
}  # fmt: skip
_TORCHRUN: Final = {
    "--nnodes": "nodes", "--nproc-per-node": "per_node", "--standalone": "alone",
    **dict.fromkeys(("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--master-addr", "--master-port",
                     "--node-rank"), "meeting"),
}  # fmt: skip
_SAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "srun": _SRUN, "aprun": _APRUN, "jsrun": _JSRUN, "mpirun": _MPI, "mpiexec": _MPI, "torchrun": _TORCHRUN,
}  # fmt: skip
_WITHOUT_VALUE: Final = frozenset({"exact", "alone"})
_WORDS: Final = {
    "processes": "processes", "nodes": "nodes", "per_node": "processes a node", "cpus": "CPU cores a process",
    "gpus": "GPUs a node", "all_gpus": "GPUs in all",
}  # fmt: skip


def layout_options(kind: str, options: Sequence[str]) -> Iterator[tuple[str, str | None, int]]:
    """What a launcher's options say of the layout: (what, value, place in the list)."""
    known = _SAYS.get(kind, {})
    at = 0
    while at < len(options):
        word, here = options[at], at
        at += 1
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        if kind == "torchrun":
            name = name.replace("_", "-")
        if name not in known and word[:2] in known and word[2:].isdigit():  # -n4
            name, equals, value = word[:2], "=", word[2:]
        if name not in known:
            continue
        what = known[name]
        if not equals and what not in _WITHOUT_VALUE and at < len(options):
            value = options[at]
            at += 1
        yield what, value or None, here


def processes_in(kind: str, options: Sequence[str]) -> int | None:
    """How many processes the recipe's own options ask the launcher for; None where they do not say."""
    told = next((value for what, value, _ in layout_options(kind, options) if what == "processes"), None)
    return int(told) if told is not None and told.isdigit() else None


# --- nsw's own words -----------------------------------------------------------------------------------------------

_Part = tuple[str, tuple[str, ...]]  # what it says of the layout, and the words


def _srun(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:
    yield "nodes", (f"--nodes={layout.nodes}",)
    yield "processes", (f"--ntasks={layout.total}",)
    yield "per_node", (f"--ntasks-per-node={layout.per_node}",)
    if layout.cpus:
        yield "cpus", (f"--cpus-per-task={layout.cpus}",)
    if layout.node_gpus:
        yield "gpus", (f"--gres={place.gres}" if place.gres else f"--gpus-per-node={layout.node_gpus}",)
    if layout.nodes > 1:
        yield "distribution", ("--distribution=block",)
    if layout.cpus:  # without a number srun would bind a process to one core, whatever the job has
        yield "binding", ("--cpu-bind=cores",)
    if place.steps_share_nodes:
        yield "exact", ("--exact",)


def _aprun(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    yield "processes", ("-n", f"{layout.total}")
    yield "per_node", ("-N", f"{layout.per_node}")
    if layout.cpus:
        yield "cpus", ("-d", f"{layout.cpus}")
        yield "binding", ("-cc", "depth")


def _jsrun(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    """A resource set a rank where each rank sees its own GPU, else a resource set a node."""
    own = bool(layout.variable)
    ranks = 1 if own else layout.per_node
    yield "sets", ("-n", f"{layout.total if own else layout.nodes}")
    yield "node_sets", ("-r", f"{layout.per_node if own else 1}")
    yield "set_ranks", ("-a", f"{ranks}")
    yield "set_cpus", ("-c", f"{ranks * (layout.cpus or 1)}")
    if layout.node_gpus:
        yield "set_gpus", ("-g", f"{layout.node_gpus // layout.per_node if own else layout.node_gpus}")


def _openmpi(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:
    cores = f":PE={layout.cpus}" if layout.cpus else ""
    if cores or layout.nodes > 1:
        yield "mapping", ("--map-by", f"ppr:{layout.per_node}:node{cores}")
    if cores:
        yield "binding", ("--bind-to", "core")
    if layout.nodes > 1:
        if place.scheduler in NODE_FILES:
            yield "hosts", ("--host", HOSTS)
        yield "environment", (_FORWARD,)


def _mpich(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:
    if layout.nodes > 1:
        yield "per_node", ("-ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "binding", ("-bind-to", f"core:{layout.cpus}")
    if layout.nodes > 1 and place.scheduler in NODE_FILES:
        yield "hosts", ("-f", NODE_FILES[place.scheduler])


def _pals(layout: Layout, place: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    yield "per_node", ("--ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "cpus", (f"--depth={layout.cpus}",)
        yield "binding", ("--cpu-bind", "depth")


def _mpi(kind: str, layout: Layout, place: PlaceFacts) -> Iterator[_Part]:
    yield "processes", ("-np" if kind == "mpirun" else "-n", f"{layout.total}")
    if place.mpi is None and layout.nodes > 1 and place.scheduler == "cobalt":
        raise LayoutError(
            ("app", "launcher"),
            f"it is not known which MPI this site's {kind} is of, and so not how it gets the {layout.nodes} nodes of"
            " a job",
            f"write `mpi:` of the site: {', '.join(FAMILIES)}; `nsw sites check` finds out",
        )
    if place.mpi is not None:
        yield from {"openmpi": _openmpi, "mpich": _mpich, "pals": _pals}[place.mpi](layout, place)


def _parts(kind: str, layout: Layout, place: PlaceFacts) -> list[_Part]:
    made = {"srun": _srun, "aprun": _aprun, "jsrun": _jsrun}.get(kind)
    return list(_mpi(kind, layout, place) if made is None else made(layout, place))


def launch(how: Launch, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words under its launcher.

    Raises:
        LayoutError: An option of the recipe contradicts the layout.
    """
    words = tuple(program)
    if how.kind == "none":
        return words
    if how.kind == "custom":
        return (*how.prefix, *words)
    if how.kind == "torchrun":
        return _torchrun(how, words)
    given = _checked(how)
    own = [word for what, part in _parts(how.kind, how.layout, how.place) if what not in given for word in part]
    return (how.kind, *own, *how.options, *words)


def _checked(how: Launch) -> frozenset[str]:
    """What the recipe's own options say, which nsw's then need not.

    Raises:
        LayoutError: One contradicts the layout.
    """
    layout = how.layout
    gpus = layout.node_gpus or None
    planned = {
        "processes": layout.total, "nodes": layout.nodes, "per_node": layout.per_node, "cpus": layout.cpus,
        "gpus": gpus, "all_gpus": gpus and gpus * layout.nodes,
    }  # fmt: skip
    said = list(layout_options(how.kind, how.options))
    for what, value, at in said:
        wanted = planned.get(what)
        if wanted is not None and value is not None and value.isdigit() and int(value) != wanted:
            raise LayoutError(
                (*_OPTIONS, at),
                f"the option {how.options[at]} asks for {value} {_WORDS[what]}, and the recipe for {wanted}",
                "leave the option out: nsw writes it",
            )
        if what == "alone" and layout.nodes > 1:
            raise LayoutError((*_OPTIONS, at), f"--standalone is for one node, and the run has {layout.nodes}")
    given = {what for what, _, _ in said}
    if how.kind == "jsrun" and given & _OF_SETS:
        _check_sets(how, said)
        given |= _OF_SETS
    if given & {"gpus", "all_gpus", "other_gpus"}:
        given |= {"gpus"}
    if given & {"mapping", "per_node"}:
        given |= {"mapping", "per_node"}
    return frozenset(given)


_OF_SETS: Final = frozenset({"processes", "sets", "set_ranks", "set_cpus", "set_gpus", "node_sets"})


def _check_sets(how: Launch, said: Sequence[tuple[str, str | None, int]]) -> None:
    """See that the recipe's own resource sets hold as many processes as it asks for."""
    numbers = {what: int(value) for what, value, _ in said if value is not None and value.isdigit()}
    if "sets" not in numbers:
        return
    found = numbers["sets"] * numbers.get("set_ranks", 1)
    if found != how.layout.total:
        at = next(at for what, _, at in said if what == "sets")
        raise LayoutError(
            (*_OPTIONS, at),
            f"{numbers['sets']} resource sets of {numbers.get('set_ranks', 1)} are {found} processes,"
            f" and the recipe asks for {how.layout.total}",
            "jsrun's -n counts resource sets, -a the processes of each",
        )


# --- torchrun ------------------------------------------------------------------------------------------------------


def _torchrun(how: Launch, words: tuple[str, ...]) -> tuple[str, ...]:
    """`python train.py` is started by that same python: the torchrun on PATH may be another's."""
    given = _checked(how)
    own: list[_Part] = [("per_node", (f"--nproc_per_node={how.layout.per_node}",))]
    if how.over_nodes:
        meeting = ("--rdzv_backend=c10d", "--rdzv_endpoint", _MEETING, "--rdzv_id", Variable("nsw_job_id"))
        own = [("nodes", (f"--nnodes={how.layout.nodes}",)), *own, ("meeting", meeting)]
    elif not given & {"meeting", "nodes"}:  # else it listens on port 29500, and of two runs of a node one fails
        own = [("alone", ("--standalone",)), *own]
    count = tuple(word for what, part in own if what not in given for word in part)
    if words and is_python(words[0]) and len(words) > 1 and not words[1].startswith("-"):
        return (words[0], "-m", "torch.distributed.run", *count, *how.options, *words[1:])
    start = ("torchrun",) if how.python is None else (how.python, "-m", "torch.distributed.run")
    return (*start, *count, *how.options, "--no-python", *words)


def start_on_nodes(how: Launch, words: Sequence[str], secrets: int = 0) -> tuple[str, ...]:
    """Words that start others once on each node of the run, as torchrun over several nodes needs.

    Raises:
        LayoutError: nsw knows no launcher for it on this site.
    """
    layout, place = how.layout, how.place
    node = ("bash", MACHINERY, "on_node", *words)
    if place.node_launcher:
        return (*place.node_launcher, *node)
    cores = layout.cpus and layout.cpus * layout.per_node
    each = replace(layout, kind="", ranks=(1,) * layout.nodes, tasks=layout.nodes, cpus=cores, variable="")
    if place.scheduler == "slurm":
        kind = "srun"
    elif place.mpi is not None:
        kind = "mpirun" if place.mpi == "openmpi" else "mpiexec"
    elif place.scheduler == "pbs":
        number = str(secrets) if secrets else ""
        kept = ("--from", _ENVIRONMENT, number)
        return ("pbsdsh", "--", "bash", MACHINERY, "on_node", *kept, *words)
    else:
        raise LayoutError(
            ("app", "launcher"),
            f"nsw knows no command of this site that starts torchrun once on each of {layout.nodes} nodes",
            "write the site's `mpi:` or `node_launcher:`, such as `mpiexec -n {{ nodes }} --ppn 1`",
        )
    own = [word for _, part in _parts(kind, each, place) for word in part]
    return (kind, *own, *node)


# --- ranks ---------------------------------------------------------------------------------------------------------


def rank_words(ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str]) -> tuple[str, ...]:
    """What a launcher starts for each process: the profiled program where its rank is named, else the program alone.

    Args:
        ranks: `all`, `first`, `node` (the first of each node), or the ranks.
        profiled: The program under its profiler.
        program: The program alone.
    """
    if ranks == "all":
        return ("bash", MACHINERY, "rank", *profiled)
    if ranks == "first":
        ranks = (0,)
    named = ranks if isinstance(ranks, str) else ",".join(str(rank) for rank in sorted(set(ranks)))
    return ("bash", MACHINERY, "rank", "--profile", named, str(len(program)), *profiled, *program)


def functions_before(command: Sequence[str]) -> tuple[str, ...]:
    """The functions of the job's machinery that set the variables of a command, in the order of their calls."""
    needed = {HOSTS: "nsw_list_hosts", _FORWARD: "nsw_forward", _ENVIRONMENT: "nsw_keep_environment"}
    found = {word for word in command if isinstance(word, Variable)}
    return tuple(name for variable, name in needed.items() if variable in found)


def notes_of(how: Launch) -> tuple[str, ...]:
    """What a person should know of how the ranks are started, beyond the layout."""
    notes = []
    if how.layout.variable:
        notes.append(
            f"each rank sees its own GPU as number 0 ({how.layout.variable}); a program that picks by its local rank"
            " itself (such as SLURM_LOCALID) needs `launcher: {gpus: node}`"
        )
    if how.kind in {"mpirun", "mpiexec"} and how.place.mpi is None and how.layout.nodes > 1:
        notes.append(
            f"it is not known which MPI this site's {how.kind} is of: nsw leaves it to {how.kind} where ranks go, and"
            " checks where they landed; write the site's `mpi:`, which `nsw sites check` finds out"
        )
    return tuple(notes)


_FAMILY_SIGNS: Final = (
    ("openmpi", r"Open ?MPI|OpenRTE|PRTE|prterun"),
    ("pals", r"PALS|pals"),
    ("mpich", r"HYDRA|MPICH|Intel\(R\) MPI|MVAPICH"),
)  # fmt: skip


def family_of(version: str) -> str | None:
    """The family of an mpirun or mpiexec by what its `--version` prints; None where that does not tell."""
    return next((name for name, sign in _FAMILY_SIGNS if re.search(sign, version)), None)
