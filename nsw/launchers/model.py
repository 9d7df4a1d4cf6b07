"""What a launcher gets, a layout and facts of the site, and what each launcher must fill in.

A launcher is one file: which of its options say what of the layout, as data, and the words that nsw gives it. It is
registered by a line in nsw/recipe/launcher_names.py, or an entry point of another package.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final, Literal, TypeAlias

from nsw.errors import NswError
from nsw.profilers.model import MACHINERY, Variable
from nsw.recipe.launcher_names import load_launcher

Sees = Literal["own", "node"]
Part: TypeAlias = tuple[str, tuple[str, ...]]  # what it says of the layout, as `Launcher.meanings`, and the words
FORWARD = Variable("nsw_x[@]")
HOSTS = Variable("nsw_hosts")  # `a:4,b:4`: Open MPI takes no more ranks a node than the list of hosts names
OPTIONS = ("app", "launcher", "options")


class LayoutError(NswError):
    """Parts of a recipe contradict each other; `path` is the one to point at."""

    def __init__(self, path: tuple[str | int, ...], message: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the processes of a run are to be.

    Attributes:
        kind: The launcher's.
        nodes: Nodes of the run.
        ranks: Processes on each node, in order; empty where nsw does not decide it.
        tasks: Processes that the scheduler is asked to make room for.
        node_gpus: GPUs that the run has of each node, where they divide equally; else 0.
        cpus: CPU cores a process; None where the recipe does not say.
        sees: Which GPUs a process sees.
        variable: The variable by which it sees its own; empty where it sees all of its node.
        order: The order in which local ranks take a node's GPUs; empty: as they are numbered.
        divided: Whether the recipe says how many GPUs there are, and they are the processes'.
        shared: Whether the recipe allows processes to share a GPU.
        cyclic: Whether the nodes take the ranks in turn.
        bound: The option of the recipe by which processes are bound to cores, in place of nsw's; empty: none.
    """

    kind: str = "none"
    nodes: int = 1
    ranks: tuple[int, ...] = (1,)
    tasks: int = 1
    node_gpus: int = 0
    cpus: int | None = None
    sees: Sees = "node"
    variable: str = ""
    order: tuple[int, ...] = ()
    divided: bool = False
    shared: bool = False
    cyclic: bool = False
    bound: str = ""

    @property
    def gpu_visibility(self) -> str:
        """Which GPUs the job sees to: `own` ones of each rank, `all` of a node's by its ranks, or `-`: none."""
        if not self.divided or self.shared or not self.node_gpus:
            return "-"
        return "own" if self.variable else "all"

    @property
    def total(self) -> int | None:
        """The number of processes on all nodes; None where nsw does not decide it."""
        return sum(self.ranks) or None

    @property
    def per_node(self) -> int:
        """The number of processes to request per node: `tasks` divided by `nodes`, rounded up."""
        return -(-self.tasks // self.nodes)

    @property
    def has_ranks(self) -> bool:
        """Whether a launcher starts several processes, or nobody knows how many."""
        return self.kind != "none" and self.total != 1

    @property
    def processes_of_each_node(self) -> str:
        """The processes of each node, such as `4+4`; `-` where nsw does not decide it."""
        return "+".join(map(str, self.ranks)) or "-"


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
    def launcher(self) -> Launcher:
        """What starts the program."""
        launcher: Launcher = load_launcher(self.kind)
        return launcher

    @property
    def starts_once_per_node(self) -> bool:
        """Whether a launcher of one node is started on several, once on each."""
        return self.launcher.spawns and self.layout.nodes > 1


@dataclass(frozen=True, slots=True)
class RequestedOption:
    """What an option of the recipe asks of a launcher.

    Attributes:
        meaning: What of the layout, as `Launcher.meanings`.
        count: How many, where it is a number.
        words: Its value as it is written.
        position: Its place in the list of options.
    """

    meaning: str
    count: int | None
    words: str
    position: int

    @property
    def rank_order(self) -> str:
        """Of an order of ranks its first word, such as `block`."""
        return re.split(r"[:,]", self.words.lower())[0]


class Launcher:
    """A launcher: its options as data, and the words that nsw gives it.

    `meanings` says what of the layout an option sets: processes, nodes, per_node (processes a node), cpus (a process),
    gpus (a node), all_gpus, rank_gpus, gpu_ranks, binding, distribution, mapping, hosts; other words are its own.
    """

    command: ClassVar[tuple[str, ...]] = ()  # its words; empty: its name
    # of a command line that a person wrote: options with the number of processes; others, separated by blanks, whose
    # value is the next word, which may look like the program
    count_options: ClassVar[tuple[str, ...]] = ()
    value_options: ClassVar[str] = ""
    meanings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    flags: ClassVar[frozenset[str]] = frozenset()  # meanings whose options have no value
    abbreviates: ClassVar[bool] = False  # takes the beginning of a long option's name for it
    joins_values: ClassVar[bool] = False  # takes `-mcyclic` for `-m cyclic`; `-n4` is always read so
    has_underscores: ClassVar[bool] = False  # takes `--nproc_per_node` for `--nproc-per-node`
    on_path: ClassVar[bool] = True  # is a program on PATH, and no module of the program's interpreter
    in_image: ClassVar[bool] = False  # is in a container's image, and starts no containers
    spawns: ClassVar[bool] = False  # its processes are its children; on several nodes it must be started on each
    runs_modules: ClassVar[bool] = False  # takes `-m MODULE` and `file.py` for Python programs
    local_rank: ClassVar[str] = "its local rank"  # by which a process picks its GPU
    cyclic_option: ClassVar[str] = ""  # with which the nodes take ranks in turn

    def parts(self, layout: Layout, facts: PlaceFacts) -> Iterator[Part]:
        """The options that ask for a layout.

        Raises:
            LayoutError: The site's facts do not suffice for them.
        """
        raise NotImplementedError

    def takes_turns(
        self,
        option: RequestedOption,
        requested: Sequence[RequestedOption],  # noqa: ARG002
        mpi: str | None,  # noqa: ARG002
    ) -> bool | None:
        """Whether the nodes take ranks in turn by this option of order; None: it does not decide that.

        Args:
            option: One that means distribution or mapping.
            requested: All of the recipe's own options.
            mpi: The family of the site's MPI; None: not known.

        Raises:
            ValueError: It asks for another order.
        """
        if option.rank_order in {"block", "*", ""}:
            return False
        if option.rank_order == "cyclic":
            return True
        raise ValueError(option.words)

    def implied(self, start: Launch, requested: Sequence[RequestedOption], replaced: frozenset[str]) -> frozenset[str]:  # noqa: ARG002
        """Meanings that need not be written where the recipe's own options have those of `replaced`.

        Args:
            start: The layout, the site's facts and the recipe's own options.
            requested: What those options ask for.
            replaced: The meanings that they have.

        Raises:
            LayoutError: The options contradict the layout together.
        """
        return frozenset()

    def words(self, start: Launch, replaced: Collection[str], program: Sequence[str]) -> tuple[str, ...]:
        """The program's words under the launcher.

        Args:
            start: The layout, the site's facts and the recipe's own options.
            replaced: The meanings that those options have, which nsw's own words leave out.
            program: The program's words.
        """
        parts = self.parts(start.layout, start.place_facts)
        own_words = (word for meaning, part in parts if meaning not in replaced for word in part)
        return (*(self.command or (start.kind,)), *own_words, *start.options, *program)

    def notes(self, start: Launch) -> Iterator[str]:  # noqa: ARG002
        """What a person should know of how the ranks are started, beyond the layout."""
        return iter(())


class NoLauncher(Launcher):
    """The program alone."""

    on_path = False
    in_image = True

    def words(self, start: Launch, replaced: Collection[str], program: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """The program's own."""
        return tuple(program)

    def notes(self, start: Launch) -> Iterator[str]:
        """That one process runs where there is room for several."""
        if start.layout.tasks > start.layout.nodes:
            yield (
                f"the job has room for {start.layout.tasks} processes (tasks_per_node), and no launcher starts them:"
                " one runs; `app: {launcher: srun}`, or another that the site has, starts one for each"
            )


class CustomLauncher(Launcher):
    """The recipe's own words before the program's."""

    on_path = False

    def words(self, start: Launch, replaced: Collection[str], program: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """The prefix and the program."""
        return (*start.prefix, *program)


_ENVIRONMENT: Final = Variable("nsw_environment")
QUANTITIES: Final = {
    "processes": "processes", "nodes": "nodes", "per_node": "processes a node", "cpus": "CPU cores a process",
    "gpus": "GPUs a node", "all_gpus": "GPUs in all", "rank_gpus": "GPUs a process", "gpu_ranks": "processes a GPU",
}  # fmt: skip
_GRES: Final = re.compile(r"(?:gres[/:])?gpu(?:[:/][A-Za-z][\w.-]*)?(?:[:=](\d+))?(?:\([^)]*\))?")
_TYPED: Final = re.compile(r"(?:[A-Za-z][\w.-]*:)?(\d+)")
_SAME_BINDING: Final = frozenset({"cores", "core", "depth"})  # words for the binding that nsw asks for itself


def parse_layout_options(launcher_name: str, options: Sequence[str]) -> Iterator[tuple[str, str | None, int]]:
    """What a launcher's options say of the layout: (meaning, value, place in the list)."""
    launcher: Launcher = load_launcher(launcher_name)
    meanings = launcher.meanings
    at = 0
    while at < len(options):
        word, position = options[at], at
        at += 1
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        if launcher.has_underscores:
            name = name.replace("_", "-")
        if name not in meanings and word[:2] in meanings and (word[2:].isdigit() or launcher.joins_values):
            name, equals, value = word[:2], "=", word[2:]
        if launcher.abbreviates and name not in meanings and len(name) > len("--n"):
            longer = [option for option in meanings if option.startswith(name)]
            name = longer[0] if len({meanings[option] for option in longer}) == 1 else name
        if name not in meanings:
            continue
        meaning = meanings[name]
        if not equals and meaning not in launcher.flags and at < len(options):
            value = options[at]
            at += 1
        yield meaning, value or None, position


def gpu_count_in_gres(gres: str) -> int | None:
    """How many GPUs Slurm's generic resources hold, such as `gpu:a100:2,fs:1`; None where they name none."""
    return 0 if gres == "none" else _sum_of_matching_counts(_GRES, gres)


def _sum_of_matching_counts(pattern: re.Pattern[str], comma_separated: str) -> int | None:
    matches = [match for item in comma_separated.split(",") if (match := pattern.fullmatch(item.strip()))]
    return sum(int(match[1] or 1) for match in matches) if matches else None


def parse_requested_options(launcher_name: str, options: Sequence[str]) -> list[RequestedOption]:
    """What a launcher's options ask for of the layout, in whatever spelling they do."""
    requested = []
    for meaning, value, position in parse_layout_options(launcher_name, options):
        words = value or ""
        if meaning in {"gpus", "all_gpus", "rank_gpus", "gres"}:
            count = gpu_count_in_gres(words) if meaning == "gres" else _sum_of_matching_counts(_TYPED, words)
            if count is None and meaning == "rank_gpus":
                count = gpu_count_in_gres(words)  # of --tres-per-task
            if count is None and meaning in {"gres", "rank_gpus"}:
                continue  # of other resources
            requested.append(RequestedOption("gpus" if meaning == "gres" else meaning, count, words, position))
        elif meaning == "one_a_node":
            requested.append(RequestedOption("per_node", 1, "", position))
        elif meaning == "by_node":
            requested.append(RequestedOption("mapping", None, "node", position))
        elif meaning == "mapping":
            requested.append(RequestedOption("mapping", None, words, position))
            if match := re.match(r"ppr:(\d+):node(?=:|$)", words, re.IGNORECASE):
                requested.append(RequestedOption("per_node", int(match[1]), words, position))
            if match := re.search(r":PE=(\d+)", words, re.IGNORECASE):
                requested.append(RequestedOption("cpus", int(match[1]), words, position))
        elif meaning == "binding":
            words = ",".join(word for word in words.split(",") if word not in {"v", "verbose", "q", "quiet"})
            if words:
                requested.append(RequestedOption("binding", None, words, position))
        else:
            requested.append(RequestedOption(meaning, int(words) if words.isdigit() else None, words, position))
    return requested


def requested_process_count(launcher_name: str, options: Sequence[str]) -> int | None:
    """How many processes the recipe's own options ask the launcher for; None where they do not say."""
    requested = parse_requested_options(launcher_name, options)
    return next((option.count for option in requested if option.meaning == "processes"), None)


def options_ask_for_cyclic_ranks(launcher_name: str, options: Sequence[str], mpi: str | None) -> bool:
    """Whether the recipe's own options let the nodes take ranks in turn, as far as nsw knows the option.

    Args:
        launcher_name: The launcher's name.
        options: The recipe's own options for it.
        mpi: The family of the site's MPI; None: not known.

    Raises:
        LayoutError: They ask for another order, which nsw cannot compare with where ranks landed.
    """
    launcher: Launcher = load_launcher(launcher_name)
    requested = parse_requested_options(launcher_name, options)
    cyclic = False
    for option in requested:
        if option.meaning not in {"distribution", "mapping"}:
            continue
        try:
            in_turn = launcher.takes_turns(option, requested, mpi)
        except ValueError:
            raise LayoutError(
                (*OPTIONS, option.position),
                f"{options[option.position]} asks for the order {option.words}, with which nsw cannot compare where"
                " ranks landed",
                "leave the option out: ranks fill the nodes in blocks"
                + (f"; `{launcher.cyclic_option}` lets the nodes take them in turn" if launcher.cyclic_option else ""),
            ) from None
        cyclic = cyclic if in_turn is None else in_turn
    return cyclic


def binding_option(launcher_name: str, options: Sequence[str]) -> str:
    """The option of the recipe that binds processes to cores in a way of its own; empty where none does."""
    binding = ""
    for option in parse_requested_options(launcher_name, options):
        word = options[option.position]  # as the recipe writes it
        spelled = f"{word} {option.words}" if option.words and option.words not in word else word
        if option.meaning == "mapping" and not re.search(r":PE=", option.words, re.IGNORECASE):
            binding = binding or spelled
        if option.meaning == "binding":
            is_same = option.words in _SAME_BINDING or re.fullmatch(r"core:\d+", option.words)
            binding = binding if is_same else spelled
    return binding


def launch_command(start: Launch, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words under its launcher.

    Raises:
        LayoutError: An option of the recipe contradicts the layout.
    """
    layout, options = start.layout, start.options
    requested = parse_requested_options(start.kind, options)
    planned = layout_numbers_by_meaning(layout)
    for option in requested:
        number = planned.get(option.meaning)
        if number is not None and option.count is not None and option.count != number:
            raise LayoutError(
                (*OPTIONS, option.position),
                f"the option {options[option.position]} asks for {option.count} {QUANTITIES[option.meaning]}, and the"
                f" recipe for {number}",
                "leave the option out: nsw writes it",
            )
        if option.meaning == "alone" and layout.nodes > 1:
            message = f"--standalone is for one node, and the run has {layout.nodes}"
            raise LayoutError((*OPTIONS, option.position), message)
    replaced = frozenset(option.meaning for option in requested)
    replaced |= start.launcher.implied(start, requested, replaced)
    if replaced & {"all_gpus", "rank_gpus"}:
        replaced |= {"gpus"}
    if replaced & {"mapping", "per_node"}:
        replaced |= {"mapping", "per_node"}
    return start.launcher.words(start, replaced, program)


def layout_numbers_by_meaning(layout: Layout) -> Mapping[str, int | None]:
    """The numbers of the layout by what options ask for; None where it has none."""
    gpus, ranks = layout.node_gpus or None, layout.per_node
    return {
        "processes": layout.total, "nodes": layout.nodes, "per_node": ranks, "cpus": layout.cpus,
        "gpus": gpus, "all_gpus": gpus and gpus * layout.nodes,
        "rank_gpus": gpus // ranks if gpus and gpus % ranks == 0 else None,
        "gpu_ranks": ranks // gpus if gpus and ranks % gpus == 0 else None,
    }  # fmt: skip


def command_once_per_node(launch: Launch, words: Sequence[str], secrets: int = 0) -> tuple[str, ...]:
    """Words that start others once on each node of the run, as torchrun over several nodes needs.

    Args:
        launch: The layout and the site's facts.
        words: The words to start on each node.
        secrets: Which of the plan's secrets they need, from 1; 0: none.

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
    if place_facts.scheduler == "slurm" or launch.kind == "srun":
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
    launcher: Launcher = load_launcher(kind)
    own_words = [word for _, part in launcher.parts(each, place_facts) for word in part]
    return (kind, *own_words, *node)


def command_of_rank(ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str]) -> tuple[str, ...]:
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


def shell_functions_setting_variables(command: Sequence[str]) -> tuple[str, ...]:
    """The functions of the job's machinery that set the variables of a command, in the order of their calls."""
    needed = {HOSTS: "nsw_list_hosts", FORWARD: "nsw_forward", _ENVIRONMENT: "nsw_keep_environment"}
    variables = {word for word in command if isinstance(word, Variable)}
    return tuple(name for variable, name in needed.items() if variable in variables)


def launch_notes(start: Launch) -> tuple[str, ...]:
    """What a person should know of how the ranks are started, beyond the layout."""
    notes = []
    if start.layout.variable:
        notes.append(
            f"each rank sees its own GPU as number 0 ({start.layout.variable}); a program that picks by its local rank"
            " itself (such as SLURM_LOCALID) needs `launcher: {gpus: node}`"
        )
    return (*notes, *start.launcher.notes(start))
