"""What a launcher gets, a layout and facts of the site, and what each launcher must fill in.

A launcher is one file: which of its options say what of the layout, as data, and the words that nsw gives it. It is
registered by a line in nsw/recipe/launcher_names.py, or an entry point of another package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from nsw.errors import NswError
from nsw.profilers.model import Variable
from nsw.recipe.launcher_names import load_launcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

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
    def compared(self) -> str:
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
    def planned(self) -> str:
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
    def over_nodes(self) -> bool:
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
    def order(self) -> str:
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
        if option.order in {"block", "*", ""}:
            return False
        if option.order == "cyclic":
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
