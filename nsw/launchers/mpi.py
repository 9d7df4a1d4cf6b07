"""mpirun and mpiexec, whose options are those of the site's MPI: Open MPI, MPICH's Hydra, or PALS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from nsw.launchers.model import (
    FORWARD,
    HOSTS,
    Launch,
    Launcher,
    Layout,
    LayoutError,
    Part,
    PlaceFacts,
    RequestedOption,
)
from nsw.profilers.model import Variable

FAMILIES: Final = ("openmpi", "mpich", "pals")  # Intel MPI's is Hydra, as MPICH's
NODE_FILES: Final = {"pbs": Variable("PBS_NODEFILE"), "cobalt": Variable("COBALT_NODEFILE")}
_FAMILY_SIGNS: Final = (
    ("openmpi", r"Open ?MPI|OpenRTE|PRTE|prterun"),
    ("pals", r"PALS|pals"),
    ("mpich", r"HYDRA|MPICH|Intel\(R\) MPI|MVAPICH"),
)  # fmt: skip


def mpi_family(version_output: str) -> str | None:
    """The family of an mpirun or mpiexec by what its `--version` prints; None where that does not tell."""
    return next((name for name, sign in _FAMILY_SIGNS if re.search(sign, version_output)), None)


class _MpiLauncher(Launcher):
    """The options of all families."""

    name: ClassVar[str]
    value_options = (
        "-H -host --host -hosts -hostfile --hostfile -machinefile --machinefile -f -bind-to --bind-to -map-by"
        " --map-by -rank-by --rank-by --cpu-bind --mem-bind --env -x -wdir --wdir -wd -rf --rankfile -launcher"
        " -genvlist -envlist --genvlist --envlist --prefix -output-filename --output-filename --cpu-set --cpu-list"
        " --gpu-bind --tune -am --am --pmi -bootstrap -iface --app --path -path --preload-files"
    )
    meanings = MappingProxyType({
        "-n": "processes", "-np": "processes", "--n": "processes", "--np": "processes",
        "-ppn": "per_node", "--ppn": "per_node", "-perhost": "per_node", "-npernode": "per_node",
        "--npernode": "per_node",
        "-N": "per_node", "--map-by": "mapping", "-map-by": "mapping", "--depth": "cpus", "-d": "cpus",
        "--rank-by": "distribution", "-rank-by": "distribution", "--bynode": "by_node", "-bynode": "by_node",
        "--pernode": "one_a_node", "-pernode": "one_a_node", "-rr": "by_node",
        "--cpu-bind": "binding", "--bind-to": "binding", "-bind-to": "binding",
        "-f": "hosts", "-hosts": "hosts", "-host": "hosts", "--host": "hosts", "-H": "hosts", "--hosts": "hosts",
        "--hostlist": "hosts", "-hostfile": "hosts", "--hostfile": "hosts",
        "-machinefile": "hosts", "--machinefile": "hosts",
    })  # fmt: skip
    flags = frozenset({"by_node", "one_a_node"})

    def parts(self, layout: Layout, facts: PlaceFacts) -> Iterator[Part]:
        """The options that ask for a layout.

        Raises:
            LayoutError: Nobody knows which MPI it is of, and so how it gets the nodes of a job.
        """
        yield "processes", (self.count_options[0], f"{layout.total}")
        if facts.mpi is None and layout.nodes > 1 and facts.scheduler == "cobalt":
            raise LayoutError(
                ("app", "launcher"),
                f"nsw does not know which MPI this site's {self.name} is of, and so not how it gets the {layout.nodes}"
                " nodes of a job",
                f"write `mpi:` of the site: {', '.join(FAMILIES)}; `nsw sites check` finds out",
            )
        if facts.mpi is not None:
            yield from {"openmpi": _openmpi_options, "mpich": _mpich_options, "pals": _pals_options}[facts.mpi](
                layout, facts
            )

    def takes_turns(
        self,
        option: RequestedOption,
        requested: Sequence[RequestedOption],  # noqa: ARG002
        mpi: str | None,
    ) -> bool | None:
        """True for the order by node: of MPICH's Hydra the word is of the places within a node."""
        return (option.rank_order == "node" and (mpi != "mpich" or not option.words)) or None

    def notes(self, start: Launch) -> Iterator[str]:
        """That nsw leaves the layout to an MPI that it does not know."""
        if start.place_facts.mpi is None and start.layout.nodes > 1:
            yield (
                f"nsw does not know which MPI this site's {self.name} is of: {self.name} decides where ranks go,"
                " and checks where they landed; write the site's `mpi:`, which `nsw sites check` finds out"
            )


class Mpirun(_MpiLauncher):
    """mpirun."""

    name = "mpirun"
    count_options = ("-np", "-n", "--np")


class Mpiexec(_MpiLauncher):
    """mpiexec."""

    name = "mpiexec"
    count_options = ("-n", "-np", "--np")


def _openmpi_options(layout: Layout, place_facts: PlaceFacts) -> Iterator[Part]:
    cores = f":PE={layout.cpus}" if layout.cpus and not layout.bound else ""  # it refuses cores with another binding
    if cores or layout.nodes > 1:
        yield "mapping", ("--map-by", f"ppr:{layout.per_node}:node{cores}")
    if cores:
        yield "binding", ("--bind-to", "core")
    if layout.nodes > 1:
        if place_facts.scheduler in NODE_FILES:
            yield "hosts", ("--host", HOSTS)
        yield "environment", (FORWARD,)


def _mpich_options(layout: Layout, place_facts: PlaceFacts) -> Iterator[Part]:
    if layout.nodes > 1:
        yield "per_node", ("-ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "binding", ("-bind-to", f"core:{layout.cpus}")
    if layout.nodes > 1 and place_facts.scheduler in NODE_FILES:
        yield "hosts", ("-f", NODE_FILES[place_facts.scheduler])


def _pals_options(layout: Layout, place_facts: PlaceFacts) -> Iterator[Part]:  # noqa: ARG001
    yield "per_node", ("--ppn", f"{layout.per_node}")
    if layout.cpus:
        yield "cpus", (f"--depth={layout.cpus}",)
        yield "binding", ("--cpu-bind", "depth")
