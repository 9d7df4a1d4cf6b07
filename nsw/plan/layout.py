"""Where each process of a run is to be: resources, launcher and site -> ranks, nodes, GPUs and CPUs.

Ranks fill the nodes in blocks: the first node gets the first ranks; where the recipe's own options ask for it, the
nodes take them in turn. What follows from the layout: the head of the job
script, the words of the launcher, which ranks are profiled, and what the job compares with where its ranks landed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nsw.launchers.model import Layout, LayoutError, Sees
from nsw.recipe.launcher_names import CUSTOM, NONE, load_launcher

__all__ = ["MAKERS", "Demand", "compute_layout", "layout_sentence"]

# chips that are not NVIDIA's, and the variable by which a process sees some of a node's GPUs
MAKERS: Final = {"pvc": "Intel", "gfx908": "AMD", "gfx90a": "AMD", "gfx942": "AMD"}
_VISIBLE: Final = {"AMD": "ROCR_VISIBLE_DEVICES", "Intel": "ZE_AFFINITY_MASK"}
_NVIDIA: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a recipe and a site say of one case's processes.

    Attributes:
        kind: The launcher's.
        nodes: Nodes of the run.
        processes: Processes in all; None where neither the recipe nor an option of the launcher says.
        tasks_per_node: Processes a node; None where the recipe does not say.
        gpus: GPUs in all.
        gpus_written: Whether the recipe says so, and it is not the default.
        cpus: CPU cores a process; None where the recipe does not say.
        sees: Which GPUs a process is to see; None: what suits.
        share_gpus: Whether the recipe allows processes to share a GPU, or to divide them unequally.
        node_cpus: CPU cores that it has; None: not known.
        order: The order in which local ranks take a node's GPUs; empty: as they are numbered.
        chip: The site's GPU; None: not known, and taken for NVIDIA's.
        one_machine: Whether the site is one machine, without a batch system.
        cyclic: Whether options of the launcher let the nodes take ranks in turn.
        bound: The launcher's option of the recipe that binds processes in a way of its own; empty: none.
        site_gpus: GPUs that a node has; None: not known.
    """

    kind: str
    nodes: int = 1
    processes: int | None = None
    tasks_per_node: int | None = None
    gpus: int = 0
    gpus_written: bool = False
    cpus: int | None = None
    sees: Sees | None = None
    share_gpus: bool = False
    node_cpus: int | None = None
    order: tuple[int, ...] = ()
    chip: str | None = None
    one_machine: bool = False
    cyclic: bool = False
    bound: str = ""
    site_gpus: int | None = None


class _ContradictionError(Exception):
    """What contradicts what, where, and ways out: their words, and the demand that follows."""

    def __init__(
        self, path: tuple[str | int, ...], message: str, ways: Sequence[tuple[str, Demand | None]] = ()
    ) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.ways = ways


def compute_layout(demand: Demand) -> Layout:
    """The layout of one case.

    Raises:
        LayoutError: What the recipe says of processes, nodes, GPUs and CPUs contradicts itself or the site; its hint
            names only what is accepted.
    """
    try:
        return _try_layout(demand)
    except _ContradictionError as fault:
        ways = [words for words, changed in fault.ways if changed is None or _is_accepted(changed)]
        ways = ways or list(filter(None, (_complete_way_out(*way, _MOST_CHANGES) for way in fault.ways)))[:1]
        raise LayoutError(fault.path, fault.message, ", or ".join(ways) or None) from None


_MOST_CHANGES: Final = 3  # in a hint, where a single change leads to the next contradiction


def _complete_way_out(words: str, changed: Demand | None, most: int) -> str | None:
    """A way out with the changes that it needs beside; None where so many do not suffice."""
    if changed is None or _is_accepted(changed):
        return words
    try:
        _try_layout(changed)
    except _ContradictionError as fault:
        further = ((f"{words} and {more}", after) for more, after in fault.ways if most > 1 and after is not None)
        return next(filter(None, (_complete_way_out(more, after, most - 1) for more, after in further)), None)
    return None


def _is_accepted(demand: Demand) -> bool:
    try:
        _try_layout(demand)
    except _ContradictionError:
        return False
    return demand.site_gpus is None or demand.gpus <= demand.site_gpus * demand.nodes


def _try_layout(demand: Demand) -> Layout:
    ranks, tasks = _ranks_and_room(demand)
    node_gpus = _gpus_of_node(demand)
    _check_room(demand, tasks)
    if ranks and demand.gpus_written:
        _check_division(demand, ranks, node_gpus)
    alone = bool(ranks) and all(count == node_gpus for count in ranks)
    sees: Sees = demand.sees or (
        "own" if alone and demand.gpus_written and not load_launcher(demand.kind).spawns else "node"
    )
    several = demand.kind != NONE and sum(ranks) != 1 and bool(ranks)
    variable = _VISIBLE.get(MAKERS.get((demand.chip or "").lower(), ""), _NVIDIA)
    return Layout(
        kind=demand.kind,
        nodes=demand.nodes,
        ranks=ranks,
        tasks=tasks,
        node_gpus=node_gpus,
        cpus=demand.cpus,
        sees=sees,
        variable=variable if sees == "own" and several and node_gpus else "",
        order=demand.order,
        divided=demand.gpus_written,
        shared=demand.share_gpus,
        cyclic=demand.cyclic and demand.nodes > 1,
        bound=demand.bound,
    )


def _ranks_and_room(demand: Demand) -> tuple[tuple[int, ...], int]:
    """The processes of each node, and how many the scheduler makes room for."""
    nodes, each = demand.nodes, demand.tasks_per_node
    by_nodes = nodes * (each or 1)
    if demand.kind in {NONE, CUSTOM}:  # what these start where, is their own
        room = by_nodes if each or demand.processes is None else demand.processes
        return ((1,) if demand.kind == NONE and nodes == 1 else ()), room
    if demand.one_machine and nodes > 1:
        raise _ContradictionError(
            ("resources", "nodes"),
            f"{nodes} nodes, but the site is one machine (`scheduler: local`)",
            [
                ("name a site with a batch system (`--site`)", None),
                ("`nodes: 1`", replace(demand, nodes=1)),
            ],
        )
    total = demand.processes or by_nodes
    if each is not None and total != by_nodes:
        fewer = -(-total // nodes)
        raise _ContradictionError(
            ("resources", "tasks_per_node"),
            f"{total} processes, but {_node_count_text(nodes)} with tasks_per_node {each}"
            f" {'have' if nodes > 1 else 'has'} {by_nodes}",
            [
                (
                    "leave out tasks_per_node",
                    replace(demand, tasks_per_node=None),
                ),
                (f"`tasks_per_node: {fewer}`", replace(demand, tasks_per_node=fewer)),
                (f"`processes: {by_nodes}`", replace(demand, processes=by_nodes)),
            ],
        )
    full = -(-total // nodes)
    if demand.cyclic:
        ranks = tuple(total // nodes + (at < total % nodes) for at in range(nodes))
    else:
        ranks = tuple(min(full, max(0, total - full * at)) for at in range(nodes))
    if ranks[-1] == 0:
        empty = ranks.count(0)
        raise _ContradictionError(
            ("resources", "nodes"),
            f"{total} process{'es' if total > 1 else ''} on {_node_count_text(nodes)}: {_node_count_text(empty)} would"
            " get none",
            [
                (f"`nodes: {nodes - empty}`", replace(demand, nodes=nodes - empty)),
                (f"`processes: {full * nodes}`", replace(demand, processes=full * nodes)),
            ],
        )
    if load_launcher(demand.kind).spawns and len(set(ranks)) > 1:
        raise _ContradictionError(
            ("app", "launcher", "processes"),
            f"{total} processes cannot be divided equally among {_node_count_text(nodes)}, as {demand.kind} needs",
            [
                (f"`processes: {count}`", replace(demand, processes=count))
                for count in (full * nodes, (full - 1) * nodes)
            ],
        )
    return ranks, total


def _gpus_of_node(demand: Demand) -> int:
    """The GPUs that the run has of each node."""
    rest = demand.gpus % demand.nodes
    if not rest:
        return demand.gpus // demand.nodes
    if not demand.gpus_written:
        return 0
    raise _ContradictionError(
        ("resources", "gpus"),
        f"{_gpu_count_text(demand.gpus)} cannot be divided equally among {_node_count_text(demand.nodes)}",
        [
            (f"`gpus: {count}`", replace(demand, gpus=count))
            for count in (demand.gpus - rest + demand.nodes, demand.gpus - rest)
            if count
        ],
    )


def _check_room(demand: Demand, tasks: int) -> None:
    """See that a node has the CPU cores that its processes ask for."""
    on_node = -(-tasks // demand.nodes)
    needed = on_node * (demand.cpus or 1)
    if demand.node_cpus is None or needed <= demand.node_cpus:
        return
    each = f" of {demand.cpus} CPU cores" if demand.cpus else ""
    fewer = demand.node_cpus // on_node
    at_once = demand.node_cpus // (demand.cpus or 1)
    nodes = -(-tasks // at_once) if at_once else 0
    ways: list[tuple[str, Demand | None]] = []
    if nodes and demand.tasks_per_node is None:
        ways.append((f"`nodes: {nodes}` spreads them", replace(demand, nodes=nodes)))
    if fewer and demand.cpus:
        ways.append((f"`cpus_per_task: {fewer}`", replace(demand, cpus=fewer)))
    raise _ContradictionError(
        ("resources", "cpus_per_task" if demand.cpus else "tasks_per_node"),
        f"{on_node} processes{each} on a node need {needed} cores,"
        f" and the site's nodes have {demand.node_cpus} (cpus_per_node)",
        ways,
    )


def _check_division(demand: Demand, ranks: Sequence[int], node_gpus: int) -> None:
    """See that the processes of each node divide its GPUs among them."""
    if demand.share_gpus or not node_gpus:
        return
    odd = next((count for count in ranks if node_gpus % count), None)
    if odd is None:
        return
    subject = "a node" if demand.nodes > 1 else "the node"
    many = odd > node_gpus
    gpus = sum(ranks) if many else odd * demand.nodes
    message = (
        f"{odd} processes would share the {_gpu_count_text(node_gpus)} of {subject}"
        if many
        else f"{odd} processes cannot divide the {_gpu_count_text(node_gpus)} of {subject} equally"
    )
    raise _ContradictionError(
        ("resources", "gpus"),
        f"{message} ({sum(ranks)} processes, {_gpu_count_text(demand.gpus)} in all)",
        [
            (f"`gpus: {gpus}` gives each {'its own' if many else 'one'}", replace(demand, gpus=gpus)),
            ("`launcher: {share_gpus: true}` allows that", replace(demand, share_gpus=True)),
        ],
    )


# --- sentences ---


def layout_sentence(layout: Layout) -> str | None:
    """The layout for a person, such as `8 ranks: 4 on each of 2 nodes, one GPU each`; None for a single process."""
    gpus = layout.node_gpus if layout.divided else 0
    if layout.kind == NONE:
        if layout.nodes == 1 and layout.tasks == 1:
            return None
        if layout.nodes == 1:
            return (
                f"one process, in a job with room for {layout.tasks}: no launcher starts them, and what the process"
                " starts is its own, and is not checked"
            )
        return (
            f"one process, on the first of {layout.nodes} nodes: what it starts on the others is its own, and is not"
            " checked"
        )
    if not layout.ranks:
        return f"a custom launcher places its processes on {_node_count_text(layout.nodes)} itself: that is not checked"
    total = sum(layout.ranks)
    if total == 1:
        return None
    if layout.nodes == 1:
        distribution = f"{total} ranks on one node"
    elif len(set(layout.ranks)) == 1:
        each = layout.ranks[0]
        distribution = f"{total} ranks: {each if each > 1 else 'one'} on each of {layout.nodes} nodes"
    else:
        distribution = f"{total} ranks: {' + '.join(map(str, layout.ranks))} on {layout.nodes} nodes"
    if layout.cyclic:
        distribution += f", which take them in turn (0, {layout.nodes}, ... on the first)"
    cpus = f", {layout.cpus} CPU core{'s' if layout.cpus > 1 else ''} each" if layout.cpus else ""
    bound = f", bound to cores only as `{layout.bound}` says" if layout.bound and layout.cpus else ""
    return f"{distribution}{_gpus_in_words(layout, gpus)}{cpus}{bound}"


def _gpus_in_words(layout: Layout, node_gpus: int) -> str:
    if not node_gpus:
        return ""
    count = max(layout.ranks)
    share, rest = divmod(node_gpus, count)
    if rest or share == 0:
        words = f", {_gpu_count_text(node_gpus)} of a node shared by {count} ranks"
    else:
        words = f", {'one GPU' if share == 1 else _gpu_count_text(share)} each"
    if layout.variable:
        return words
    rank = load_launcher(layout.kind).local_rank
    return f"{words} (each sees all {node_gpus} of its node and picks by {rank})" if node_gpus > 1 else words


def _node_count_text(count: int) -> str:
    return f"{count} nodes" if count > 1 else "1 node"


def _gpu_count_text(count: int) -> str:
    return f"{count} GPU{'s' if count != 1 else ''}"
