"""Which rack each node of a site is in: a list of them, or the leaf switches or blocks of Slurm's topology."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice, product
from typing import Final

from nsw.recipe.units import Fault, show_value

__all__ = ["expand_hostlist", "parse_topology", "racks_by_node"]

_LINE: Final = re.compile(r"['\"]?([^\s:'\"]+)['\"]?[\s:]+['\"]?([^\s:'\"]+)['\"]?")
_SLURM: Final = re.compile(r"(\w+)=(\S+)")
_NAMES: Final = re.compile(r"(?:\[[^\]]*\]|[^,\[\]])+")  # between commas that are in no brackets
_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_MAX_NODES: Final = 100_000  # nodes
_LIST: Final = "such as node[01-18,20]"
_HINT: Final = "a line is such as `node[01-18]: rack1`; on Slurm `scontrol show topology > FILE` writes the file"


def parse_topology(text: str) -> dict[str, str]:
    """The rack of each node or list of nodes (`node[01-18]`), by a file of them.

    Args:
        text: Lines `node: rack`; or topology.conf, or what `scontrol show topology` prints.

    Raises:
        Fault: A line is neither, a list of nodes is none, or there is no node.
    """
    racks: dict[str, str] = {}
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        content = line.partition("#")[0].strip()
        values = {key.lower(): value for key, value in _SLURM.findall(content)}
        if rack := values.get("switchname") or values.get("blockname"):
            if "nodes" in values and "switches" not in values:  # switches above the leaves repeat all nodes
                racks[values["nodes"]] = rack
        elif match := _LINE.fullmatch(content):
            racks[match[1]] = match[2]
        elif content and not values:
            raise Fault(f"line {number} is {show_value(content)}, and no `node: rack`", hint=_HINT)
    if not racks:
        raise Fault("there is no node in it", hint=_HINT)
    racks_by_node(racks)
    return racks


def racks_by_node(topology: Mapping[str, str]) -> dict[str, str]:
    """The rack of each node, by its name as it is given and without its domain.

    Raises:
        Fault: A list of nodes is none.
    """
    racks: dict[str, str] = {}
    for nodes, rack in topology.items():
        for node in expand_hostlist(nodes):
            racks[node] = racks[node.partition(".")[0]] = rack
    return racks


def expand_hostlist(text: str) -> list[str]:
    """The names in a list of Slurm's: `gpu[01-03,07],login1`.

    Raises:
        Fault: It is none, or has too many names.
    """
    names: list[str] = []
    for part in _NAMES.findall(text):
        literals = _BRACKETS.split(part)
        parts = [_numbers(piece, text) if at % 2 else [piece] for at, piece in enumerate(literals)]
        names += map("".join, islice(product(*parts), _MAX_NODES + 1))
    if not names or len(names) > _MAX_NODES or text.count("[") != text.count("]"):
        raise Fault(f"{show_value(text)} is no list of at most {_MAX_NODES:,} nodes", hint=_LIST)
    return names


def _numbers(ranges: str, text: str) -> list[str]:
    """The numbers of `01-03,07`, with their leading zeros."""
    numbers: list[str] = []
    for piece in ranges.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", piece)
        last = int(match[2] or match[1]) if match else -1
        if match is None or not 0 <= last - int(match[1]) < _MAX_NODES:
            raise Fault(f"{show_value(piece)} in {show_value(text)} is no range of nodes", hint=_LIST)
        numbers += [f"{number:0{len(match[1])}d}" for number in range(int(match[1]), last + 1)]
    return numbers
