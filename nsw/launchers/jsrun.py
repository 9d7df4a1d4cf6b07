"""jsrun, of IBM's Spectrum LSF: resource sets, each with so many processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from nsw.launchers.model import OPTIONS, Launch, Launcher, Layout, LayoutError, Part, PlaceFacts, RequestedOption

_OF_SETS: Final = frozenset({"processes", "sets", "set_ranks", "set_cpus", "set_gpus", "node_sets"})


class Jsrun(Launcher):
    """The options of jsrun."""

    count_options = ("-n", "--nrs")
    value_options = "-b -d -l -L -m -e -E -M -o -k -t -S --bind --launch_distribution --smpiargs"
    meanings = MappingProxyType({
        "-p": "processes", "--np": "processes", "-n": "sets", "--nrs": "sets",
        "-a": "set_ranks", "--tasks_per_rs": "set_ranks",
        "-c": "set_cpus", "--cpu_per_rs": "set_cpus", "-g": "set_gpus", "--gpu_per_rs": "set_gpus",
        "-r": "node_sets", "--rs_per_host": "node_sets", "-b": "binding", "--bind": "binding",
        "-d": "distribution", "--launch_distribution": "distribution",
    })  # fmt: skip

    def parts(self, layout: Layout, facts: PlaceFacts) -> Iterator[Part]:  # noqa: ARG002
        """A resource set a rank where each rank sees its own GPU, else a resource set a node."""
        own_gpu = bool(layout.variable)
        ranks = 1 if own_gpu else layout.per_node
        yield "sets", ("-n", f"{layout.total if own_gpu else layout.nodes}")
        yield "node_sets", ("-r", f"{layout.per_node if own_gpu else 1}")
        yield "set_ranks", ("-a", f"{ranks}")
        yield "set_cpus", ("-c", f"{ranks * (layout.cpus or 1)}")
        if layout.node_gpus:
            yield "set_gpus", ("-g", f"{layout.node_gpus // layout.per_node if own_gpu else layout.node_gpus}")

    def takes_turns(
        self,
        option: RequestedOption,
        requested: Sequence[RequestedOption],
        mpi: str | None,  # noqa: ARG002
    ) -> bool | None:
        """None for the orders that fill the nodes in blocks; ValueError for others."""
        set_ranks = next((sibling.count for sibling in requested if sibling.meaning == "set_ranks"), None)
        if option.rank_order == "packed" or (option.rank_order == "cyclic" and set_ranks == 1):
            return None
        raise ValueError(option.words)

    def implied(self, start: Launch, requested: Sequence[RequestedOption], replaced: frozenset[str]) -> frozenset[str]:
        """All of the resource sets, once the recipe describes some of them.

        Raises:
            LayoutError: They hold another number of processes than the recipe asks for.
        """
        if not replaced & _OF_SETS:
            return frozenset()
        numbers = {option.meaning: option.count for option in requested if option.count is not None}
        if "sets" not in numbers:
            return _OF_SETS
        process_count = numbers["sets"] * numbers.get("set_ranks", 1)
        if process_count != start.layout.total:
            position = next(option.position for option in requested if option.meaning == "sets")
            raise LayoutError(
                (*OPTIONS, position),
                f"{numbers['sets']} resource sets of {numbers.get('set_ranks', 1)} are {process_count} processes,"
                f" and the recipe asks for {start.layout.total}",
                "jsrun's -n counts resource sets, -a the processes of each",
            )
        return _OF_SETS
