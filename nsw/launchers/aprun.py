"""aprun, of Cray's ALPS."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from nsw.launchers.model import Launcher, Layout, Part, PlaceFacts


class Aprun(Launcher):
    """The options of aprun."""

    count_options = ("-n", "--pes")
    value_options = (
        "-cc -D -e -E -F -L -m -p -r -R -t --access-mode --cc --cpu-binding --cpu-time-limit --env"
        " --environment-override --exclude-node-list --memory-per-pe --mpmd-env --node-list"
        " --p-governor --p-state --protection-domain"
    )
    meanings = MappingProxyType({
        "-n": "processes", "--pes": "processes", "-N": "per_node", "--pes-per-node": "per_node", "-d": "cpus",
        "--cpus-per-pe": "cpus", "-cc": "binding", "--cc": "binding", "--cpu-binding": "binding",
    })  # fmt: skip

    def parts(self, layout: Layout, facts: PlaceFacts) -> Iterator[Part]:  # noqa: ARG002
        """The options that ask for a layout."""
        yield "processes", ("-n", f"{layout.total}")
        yield "per_node", ("-N", f"{layout.per_node}")
        if layout.cpus:
            yield "cpus", ("-d", f"{layout.cpus}")
            yield "binding", ("-cc", "depth")
