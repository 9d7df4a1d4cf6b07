"""Launchers: a layout -> the words that start a program's processes where the layout wants them.

Each launcher is a table: which of its options say what of the layout. An option of the recipe that says the same as one
of nsw's replaces it; one that says something else is refused.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsw.plan.layout import Layout, LayoutError
from nsw.profilers.cprofile import is_python
from nsw.profilers.model import MACHINERY, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "FAMILIES", "Launch", "PlaceFacts", "asked_for", "binding_in", "check_line", "family_of", "functions_before",
    "gpus_in", "is_cyclic", "launch", "layout_options", "notes_of", "processes_in", "rank_words", "start_on_nodes",
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
    place_facts: PlaceFacts = field(default_factory=PlaceFacts)
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
    "--gres": "gres", "--gpus-per-task": "rank_gpus", "--tres-per-task": "rank_gpus",
    "--ntasks-per-gpu": "gpu_ranks",
    "-m": "distribution", "--distribution": "distribution", "--cpu-bind": "binding", "--cpu_bind": "binding",
    "--exact": "exact", "--overlap": "exact", "--exclusive": "exact",
}  # fmt: skip
_APRUN: Final = {"-n": "processes", "-N": "per_node", "-d": "cpus", "-cc": "binding"}
_JSRUN: Final = {
    "-p": "processes", "--np": "processes", "-n": "sets", "--nrs": "sets",
    "-a": "set_ranks", "--tasks_per_rs": "set_ranks",
    "-c": "set_cpus", "--cpu_per_rs": "set_cpus", "-g": "set_gpus", "--gpu_per_rs": "set_gpus",
    "-r": "node_sets", "--rs_per_host": "node_sets", "-b": "binding", "--bind": "binding",
    "-d": "distribution", "--launch_distribution": "distribution",
}  # fmt: skip
_MPI: Final = {
    "-n": "processes", "-np": "processes", "--n": "processes", "--np": "processes",
    "-ppn": "per_node", "--ppn": "per_node", "-perhost": "per_node", "-npernode": "per_node", "--npernode": "per_node",
    "-N": "per_node", "--map-by": "mapping", "-map-by": "mapping", "--depth": "cpus", "-d": "cpus",
    "--rank-by": "distribution", "-rank-by": "distribution", "--bynode": "by_node", "-bynode": "by_node",
    "--pernode": "one_a_node", "-pernode": "one_a_node", "-rr": "by_node",
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
_ABBREVIATING: Final = frozenset({"srun", "torchrun"})  # take the beginning of an option's name for it
_WITHOUT_VALUE: Final = frozenset({"exact", "alone", "by_node", "one_a_node"})
_WORDS: Final = {
    "processes": "processes", "nodes": "nodes", "per_node": "processes a node", "cpus": "CPU cores a process",
    "gpus": "GPUs a node", "all_gpus": "GPUs in all", "rank_gpus": "GPUs a process", "gpu_ranks": "processes a GPU",
}  # fmt: skip


def layout_options(kind: str, options: Sequence[str]) -> Iterator[tuple[str, str | None, int]]:
    """What a launcher's options say of the layout: (what, value, place in the list)."""
    meanings = _SAYS.get(kind, {})
    at = 0
    while at < len(options):
        word, position = options[at], at
        at += 1
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        if kind == "torchrun":
            name = name.replace("_", "-")
        if name not in meanings and word[:2] in meanings and (word[2:].isdigit() or kind == "srun"):  # -n4, -mcyclic
            name, equals, value = word[:2], "=", word[2:]
        if kind in _ABBREVIATING and name not in meanings and len(name) > len("--n"):
            longer = {meanings[one] for one in meanings if one.startswith(name)}
            name = next(one for one in meanings if one.startswith(name)) if len(longer) == 1 else name
        if name not in meanings:
            continue
        meaning = meanings[name]
        if not equals and meaning not in _WITHOUT_VALUE and at < len(options):
            value = options[at]
            at += 1
        yield meaning, value or None, position


_GRES: Final = re.compile(r"(?:gres[/:])?gpu(?:[:/][A-Za-z][\w.-]*)?(?:[:=](\d+))?(?:\([^)]*\))?")
_TYPED: Final = re.compile(r"(?:[A-Za-z][\w.-]*:)?(\d+)")


def gpus_in(gres: str) -> int | None:
    """How many GPUs Slurm's generic resources hold, such as `gpu:a100:2,fs:1`; None where they name none."""
    return 0 if gres == "none" else _sum(_GRES, gres)


def _sum(one: re.Pattern[str], words: str) -> int | None:
    asked = [match for item in words.split(",") if (match := one.fullmatch(item.strip()))]
    return sum(int(match[1] or 1) for match in asked) if asked else None


@dataclass(frozen=True, slots=True)
class Asked:
    """What an option asks for: how many, where it is a number; else its words. `at` is its place in the list."""

    what: str
    count: int | None
    words: str
    at: int


def asked_for(kind: str, options: Sequence[str]) -> list[Asked]:
    """What a launcher's options ask for of the layout, in whatever spelling they do."""
    found = []
    for what, value, at in layout_options(kind, options):
        words = value or ""
        if what in {"gpus", "all_gpus", "rank_gpus", "gres"}:
            count = gpus_in(words) if what == "gres" else _sum(_TYPED, words)
            if count is None and what == "rank_gpus":
                count = gpus_in(words)  # of --tres-per-task
            if count is None and what in {"gres", "rank_gpus"}:
                continue  # of other resources
            found.append(Asked("gpus" if what == "gres" else what, count, words, at))
        elif what == "one_a_node":
            found.append(Asked("per_node", 1, "", at))
        elif what == "by_node":
            found.append(Asked("mapping", None, "node", at))
        elif what == "mapping":
            found.append(Asked("mapping", None, words, at))
            if match := re.match(r"ppr:(\d+):node(?=:|$)", words, re.IGNORECASE):
                found.append(Asked("per_node", int(match[1]), words, at))
            if match := re.search(r":PE=(\d+)", words, re.IGNORECASE):
                found.append(Asked("cpus", int(match[1]), words, at))
        elif what == "binding":
            words = ",".join(word for word in words.split(",") if word not in {"v", "verbose", "q", "quiet"})
            if words:
                found.append(Asked("binding", None, words, at))
        else:
            found.append(Asked(what, int(words) if words.isdigit() else None, words, at))
    return found


def processes_in(kind: str, options: Sequence[str]) -> int | None:
    """How many processes the recipe's own options ask the launcher for; None where they do not say."""
    return next((one.count for one in asked_for(kind, options) if one.what == "processes"), None)


def is_cyclic(kind: str, options: Sequence[str], mpi: str | None) -> bool:
    """Whether the recipe's own options let the nodes take ranks in turn, as far as nsw knows the option.

    Raises:
        LayoutError: They ask for another order, which nsw cannot compare with where ranks landed.
    """
    cyclic = False
    for one in asked_for(kind, options):
        if one.what not in {"distribution", "mapping"}:
            continue
        order = re.split(r"[:,]", one.words.lower())[0]
        if one.what == "mapping" or kind.startswith("mpi"):
            # of MPICH's Hydra the word is of the places within a node
            cyclic = cyclic or (order == "node" and (mpi != "mpich" or not one.words))
            continue
        if kind == "jsrun":
            sets = {other.what: other.count for other in asked_for(kind, options)}
            if order == "packed" or (order == "cyclic" and sets.get("set_ranks") == 1):
                continue
        elif order in {"block", "*", ""}:
            cyclic = False
            continue
        elif order == "cyclic":
            cyclic = True
            continue
        raise LayoutError(
            (*_OPTIONS, one.at),
            f"{options[one.at]} asks for the order {one.words}, with which nsw cannot compare where ranks landed",
            "leave the option out: ranks fill the nodes in blocks"
            + ("; `--distribution=cyclic` lets the nodes take them in turn" if kind == "srun" else ""),
        )
    return cyclic


# words for the binding that nsw asks for itself
_SAME_BINDING: Final = frozenset({"cores", "core", "depth"})


def binding_in(kind: str, options: Sequence[str]) -> str:
    """The option of the recipe that binds processes to cores in a way of its own; empty where none does."""
    found = ""
    for one in asked_for(kind, options):
        if one.what == "mapping" and not re.search(r":PE=", one.words, re.IGNORECASE):
            found = found or _spelled(options, one)
        if one.what == "binding":
            same = one.words in _SAME_BINDING or re.fullmatch(r"core:\d+", one.words)
            found = found if same else _spelled(options, one)
    return found


def _spelled(options: Sequence[str], one: Asked) -> str:
    """An option as the recipe writes it."""
    word = options[one.at]
    return f"{word} {one.words}" if one.words and one.words not in word else word


# --- nsw's own words -----------------------------------------------------------------------------------------------

_Part = tuple[str, tuple[str, ...]]  # what it says of the layout, and the words


def _srun(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:
    yield "nodes", (f"--nodes={layout.nodes}",)
    yield "processes", (f"--ntasks={layout.total}",)
    yield "per_node", (f"--ntasks-per-node={layout.per_node}",)
    if layout.cpus:
        yield "cpus", (f"--cpus-per-task={layout.cpus}",)
    if layout.node_gpus:
        yield "gpus", (f"--gres={place_facts.gres}" if place_facts.gres else f"--gpus-per-node={layout.node_gpus}",)
    if layout.nodes > 1:
        yield "distribution", (f"--distribution={_order(layout)}",)
    if layout.cpus:  # without a number srun would bind a process to one core, whatever the job has
        yield "binding", ("--cpu-bind=cores",)
    if place_facts.steps_share_nodes:
        yield "exact", ("--exact",)


def _aprun(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    yield "processes", ("-n", f"{layout.total}")
    yield "per_node", ("-N", f"{layout.per_node}")
    if layout.cpus:
        yield "cpus", ("-d", f"{layout.cpus}")
        yield "binding", ("-cc", "depth")


def _jsrun(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    """A resource set a rank where each rank sees its own GPU, else a resource set a node."""
    own_gpu = bool(layout.variable)
    ranks = 1 if own_gpu else layout.per_node
    yield "sets", ("-n", f"{layout.total if own_gpu else layout.nodes}")
    yield "node_sets", ("-r", f"{layout.per_node if own_gpu else 1}")
    yield "set_ranks", ("-a", f"{ranks}")
    yield "set_cpus", ("-c", f"{ranks * (layout.cpus or 1)}")
    if layout.node_gpus:
        yield "set_gpus", ("-g", f"{layout.node_gpus // layout.per_node if own_gpu else layout.node_gpus}")


def _openmpi(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:
    cores = f":PE={layout.cpus}" if layout.cpus and not layout.bound else ""  # it refuses cores with another binding
    if cores or layout.nodes > 1:
        yield "mapping", ("--map-by", f"ppr:{layout.per_node}:node{cores}")
    if cores:
        yield "binding", ("--bind-to", "core")
    if layout.nodes > 1:
        if place_facts.scheduler in NODE_FILES:
            yield "hosts", ("--host", HOSTS)
        yield "environment", (_FORWARD,)


def _mpich(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:
    if layout.nodes > 1:
        yield "per_node", ("-ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "binding", ("-bind-to", f"core:{layout.cpus}")
    if layout.nodes > 1 and place_facts.scheduler in NODE_FILES:
        yield "hosts", ("-f", NODE_FILES[place_facts.scheduler])


def _pals(layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:  # noqa: ARG001  as the others
    yield "per_node", ("--ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "cpus", (f"--depth={layout.cpus}",)
        yield "binding", ("--cpu-bind", "depth")


def _mpi(kind: str, layout: Layout, place_facts: PlaceFacts) -> Iterator[_Part]:
    yield "processes", ("-np" if kind == "mpirun" else "-n", f"{layout.total}")
    if place_facts.mpi is None and layout.nodes > 1 and place_facts.scheduler == "cobalt":
        raise LayoutError(
            ("app", "launcher"),
            f"it is not known which MPI this site's {kind} is of, and so not how it gets the {layout.nodes} nodes of"
            " a job",
            f"write `mpi:` of the site: {', '.join(FAMILIES)}; `nsw sites check` finds out",
        )
    if place_facts.mpi is not None:
        yield from {"openmpi": _openmpi, "mpich": _mpich, "pals": _pals}[place_facts.mpi](layout, place_facts)


def _parts(kind: str, layout: Layout, place_facts: PlaceFacts) -> list[_Part]:
    parts_of_kind = {"srun": _srun, "aprun": _aprun, "jsrun": _jsrun}.get(kind)
    return list(_mpi(kind, layout, place_facts) if parts_of_kind is None else parts_of_kind(layout, place_facts))


def launch(start: Launch, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words under its launcher.

    Raises:
        LayoutError: An option of the recipe contradicts the layout.
    """
    words = tuple(program)
    if start.kind == "none":
        return words
    if start.kind == "custom":
        return (*start.prefix, *words)
    if start.kind == "torchrun":
        return _torchrun(start, words)
    stated = _checked(start)
    own_words = [
        word
        for meaning, part in _parts(start.kind, start.layout, start.place_facts)
        if meaning not in stated
        for word in part
    ]
    return (start.kind, *own_words, *start.options, *words)


def _checked(launch: Launch) -> frozenset[str]:
    """What the recipe's own options say, which nsw's then need not.

    Raises:
        LayoutError: One contradicts the layout.
    """
    layout = launch.layout
    asked = asked_for(launch.kind, launch.options)
    for one in asked:
        wanted = _planned(layout).get(one.what)
        if wanted is not None and one.count is not None and one.count != wanted:
            raise LayoutError(
                (*_OPTIONS, one.at),
                f"the option {launch.options[one.at]} asks for {one.count} {_WORDS[one.what]}, and the recipe for"
                f" {wanted}",
                "leave the option out: nsw writes it",
            )
        if one.what == "alone" and layout.nodes > 1:
            raise LayoutError((*_OPTIONS, one.at), f"--standalone is for one node, and the run has {layout.nodes}")
    given = {one.what for one in asked}
    if launch.kind == "jsrun" and given & _OF_SETS:
        _check_sets(launch, asked)
        given |= _OF_SETS
    if given & {"all_gpus", "rank_gpus"}:
        given |= {"gpus"}
    if given & {"mapping", "per_node"}:
        given |= {"mapping", "per_node"}
    return frozenset(given)


def _planned(layout: Layout) -> Mapping[str, int | None]:
    """The numbers of the layout by what options ask for; None where it has none."""
    gpus, ranks = layout.node_gpus or None, layout.per_node
    return {
        "processes": layout.total, "nodes": layout.nodes, "per_node": ranks, "cpus": layout.cpus,
        "gpus": gpus, "all_gpus": gpus and gpus * layout.nodes,
        "rank_gpus": gpus // ranks if gpus and gpus % ranks == 0 else None,
        "gpu_ranks": ranks // gpus if gpus and ranks % gpus == 0 else None,
    }  # fmt: skip


def check_line(line: str, layout: Layout, path: tuple[str | int, ...], *, of_site: bool = False) -> None:
    """See that a line for Slurm says nothing else of the layout than the recipe.

    Raises:
        LayoutError: It does.
    """
    try:
        words = shlex.split(line.removeprefix("#SBATCH"), comments=False)
    except ValueError:  # an open quote, of which sbatch says what it thinks
        return
    whose = "the site's line" if of_site else "the line"
    planned = dict(_planned(layout))
    if not layout.ranks or layout.kind == "none":  # room for what a program starts itself
        planned |= dict.fromkeys(("processes", "per_node", "rank_gpus", "gpu_ranks"))
    if not layout.divided:
        planned |= dict.fromkeys(("gpus", "all_gpus", "rank_gpus", "gpu_ranks"))
    for one in asked_for("srun", words):
        wanted = planned.get(one.what)
        if wanted is not None and one.count is not None and one.count != wanted:
            message = f"{whose} {words[one.at]} asks for {one.count} {_WORDS[one.what]}, and the recipe for {wanted}"
            raise LayoutError(path, message, "leave it out: nsw writes what follows from the recipe")
        order = re.split(r"[:,]", one.words.lower())[0]
        if one.what == "distribution" and layout.nodes > 1 and layout.kind == "srun" and order != _order(layout):
            message = f"{whose} {words[one.at]} asks for the order {one.words}, and srun is given {_order(layout)}"
            raise LayoutError(
                path, message, f"write it where srun reads it: `launcher: {{options: [{words[one.at]}]}}`"
            )


def _order(layout: Layout) -> str:
    return "cyclic" if layout.cyclic else "block"


_OF_SETS: Final = frozenset({"processes", "sets", "set_ranks", "set_cpus", "set_gpus", "node_sets"})


def _check_sets(how: Launch, asked: Sequence[Asked]) -> None:
    """See that the recipe's own resource sets hold as many processes as it asks for."""
    numbers = {one.what: one.count for one in asked if one.count is not None}
    if "sets" not in numbers:
        return
    process_count = numbers["sets"] * numbers.get("set_ranks", 1)
    if process_count != how.layout.total:
        at = next(one.at for one in asked if one.what == "sets")
        raise LayoutError(
            (*_OPTIONS, at),
            f"{numbers['sets']} resource sets of {numbers.get('set_ranks', 1)} are {process_count} processes,"
            f" and the recipe asks for {how.layout.total}",
            "jsrun's -n counts resource sets, -a the processes of each",
        )


# --- torchrun ------------------------------------------------------------------------------------------------------


def _torchrun(launch: Launch, words: tuple[str, ...]) -> tuple[str, ...]:
    """`python train.py` is started by that same python: the torchrun on PATH may be another's."""
    stated = _checked(launch)
    own_parts: list[_Part] = [("per_node", (f"--nproc_per_node={launch.layout.per_node}",))]
    if launch.over_nodes:
        meeting = ("--rdzv_backend=c10d", "--rdzv_endpoint", _MEETING, "--rdzv_id", Variable("nsw_job_id"))
        own_parts = [("nodes", (f"--nnodes={launch.layout.nodes}",)), *own_parts, ("meeting", meeting)]
    elif not stated & {"meeting", "nodes"}:  # else it listens on port 29500, and of two runs of a node one fails
        own_parts = [("alone", ("--standalone",)), *own_parts]
    count = tuple(word for meaning, part in own_parts if meaning not in stated for word in part)
    if words and is_python(words[0]) and len(words) > 1 and not words[1].startswith("-"):
        return (words[0], "-m", "torch.distributed.run", *count, *launch.options, *words[1:])
    start = ("torchrun",) if launch.python is None else (launch.python, "-m", "torch.distributed.run")
    return (*start, *count, *launch.options, "--no-python", *words)


def start_on_nodes(launch: Launch, words: Sequence[str], secrets: int = 0) -> tuple[str, ...]:
    """Words that start others once on each node of the run, as torchrun over several nodes needs.

    Raises:
        LayoutError: nsw knows no launcher for it on this site.
    """
    layout, place_facts = launch.layout, launch.place_facts
    node = ("bash", MACHINERY, "on_node", *words)
    if place_facts.node_launcher:
        return (*place_facts.node_launcher, *node)
    cores = layout.cpus and layout.cpus * layout.per_node
    each = replace(
        layout, kind="", ranks=(1,) * layout.nodes, tasks=layout.nodes, cpus=cores, variable="", cyclic=False, bound=""
    )
    if place_facts.scheduler == "slurm":
        kind = "srun"
    elif place_facts.mpi is not None:
        kind = "mpirun" if place_facts.mpi == "openmpi" else "mpiexec"
    elif place_facts.scheduler == "pbs":
        number = str(secrets) if secrets else ""
        environment_words = ("--from", _ENVIRONMENT, number)
        return ("pbsdsh", "--", "bash", MACHINERY, "on_node", *environment_words, *words)
    else:
        raise LayoutError(
            ("app", "launcher"),
            f"nsw knows no command of this site that starts torchrun once on each of {layout.nodes} nodes",
            "write the site's `mpi:` or `node_launcher:`, such as `mpiexec -n {{ nodes }} --ppn 1`",
        )
    own_words = [word for _, part in _parts(kind, each, place_facts) for word in part]
    return (kind, *own_words, *node)


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
    rank_names = ranks if isinstance(ranks, str) else ",".join(str(rank) for rank in sorted(set(ranks)))
    return ("bash", MACHINERY, "rank", "--profile", rank_names, str(len(program)), *profiled, *program)


def functions_before(command: Sequence[str]) -> tuple[str, ...]:
    """The functions of the job's machinery that set the variables of a command, in the order of their calls."""
    needed = {HOSTS: "nsw_list_hosts", _FORWARD: "nsw_forward", _ENVIRONMENT: "nsw_keep_environment"}
    variables = {word for word in command if isinstance(word, Variable)}
    return tuple(name for variable, name in needed.items() if variable in variables)


def notes_of(launch: Launch) -> tuple[str, ...]:
    """What a person should know of how the ranks are started, beyond the layout."""
    notes = []
    if launch.kind == "none" and launch.layout.tasks > launch.layout.nodes:
        notes.append(
            f"the job has room for {launch.layout.tasks} processes (tasks_per_node), and no launcher starts them: one"
            " runs; `app: {launcher: srun}`, or another that the site has, starts one for each"
        )
    if launch.layout.variable:
        notes.append(
            f"each rank sees its own GPU as number 0 ({launch.layout.variable}); a program that picks by its local rank"
            " itself (such as SLURM_LOCALID) needs `launcher: {gpus: node}`"
        )
    if launch.kind in {"mpirun", "mpiexec"} and launch.place_facts.mpi is None and launch.layout.nodes > 1:
        notes.append(
            f"it is not known which MPI this site's {launch.kind} is of: nsw leaves it to {launch.kind} where"
            " ranks go, and"
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
