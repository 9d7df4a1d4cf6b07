"""What the nodes of a Slurm have, and whether they could run a job if all of them were up.

`sbatch --test-only` says of nodes that are drained or down what it says of a job that no node can run, while sbatch
itself queues the first and refuses the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_UNIT: Final = "\x1f"
_FIELDS: Final = ("%P", "%N", "%T", "%G", "%c", "%m", "%f")
COMMAND: Final = ("sinfo", "--noheader", "--all", "--Node", f"--format={_UNIT.join(_FIELDS)}")
# one that is powered down (~), powering up (#) or down (%, !), or planned for others (-), is as good as one that is up
_UP: Final = re.compile(r"(idle|allocated|mixed|completing|planned)[~#%!^+-]*", re.IGNORECASE)
_ITEM: Final = re.compile(
    r"(?:gres[/:])?(?P<name>[^:=,()]+)"
    r"(?::(?P<kind>(?!\d+[kKmMgG]?(?:[,(]|$))[^:=,()]+))?(?:[:=](?P<count>\d+)(?P<unit>[kKmMgG]?))?(?:\([^)]*\))?"
)
_TIMES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# options that neither choose nodes nor ask anything of one
_NEUTRAL: Final = frozenset(
    {"--output", "-o", "--error", "-e", "--time", "-t", "--job-name", "-J", "--account", "-A", "--qos", "-q",
     "--comment", "--exclusive", "--requeue", "--no-requeue", "--mail-type", "--mail-user", "--signal", "--export",
     "--gpu-bind"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A node as a partition has it."""

    partition: str
    name: str
    state: str
    gres: Mapping[tuple[str, str], int]
    cpus: int
    memory_mb: int
    features: frozenset[str]
    is_default: bool = False  # of the partition

    @property
    def is_up(self) -> bool:
        """Whether a job could begin there now or once others end."""
        return _UP.fullmatch(self.state) is not None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks of each of its nodes.

    `is_whole`: nothing else of what it asks for narrows the choice of nodes.
    """

    partitions: frozenset[str]
    nodes: int
    gres: Sequence[tuple[str, str, int]]
    cpus: int
    memory_mb: int
    features: Sequence[frozenset[str]]  # of each at least one
    is_whole: bool

    def fits(self, node: Node) -> bool:
        """Whether a node has what is asked of one."""
        for name, kind, count in self.gres:
            if sum(n for (a, b), n in node.gres.items() if a == name and kind in {"", b}) < count:
                return False
        enough = node.cpus >= self.cpus and node.memory_mb >= self.memory_mb
        return enough and all(group & node.features for group in self.features)


def nodes(stdout: str) -> list[Node]:
    """The nodes that `COMMAND` listed, one for each partition that has it; other lines are left out."""
    listed = []
    for line in stdout.splitlines():
        fields = [field.strip() for field in line.split(_UNIT)]
        if len(fields) != len(_FIELDS) or not fields[4].rstrip("+").isdigit() or not fields[5].rstrip("+").isdigit():
            continue
        partition, name, state, gres, cpus, memory, features = fields
        counted: dict[tuple[str, str], int] = {}
        for name_part, kind, count in parse_gres_items(gres):
            counted[name_part, kind] = counted.get((name_part, kind), 0) + count
        listed.append(
            Node(
                partition.removesuffix("*"), name, state, counted, int(cpus.rstrip("+")), int(memory.rstrip("+")),
                frozenset(features.split(",")), partition.endswith("*"),
            )
        )  # fmt: skip
    return listed


def parse_gres_items(text: str) -> list[tuple[str, str, int]]:
    """Name, kind and number of each of `gpu:a100:4(S:0-1),nvme:2`; a number that is not written is 1."""
    if text in {"", "(null)", "none"}:
        return []
    return [
        (match["name"], match["kind"] or "", int(match["count"] or 1) * _TIMES[(match["unit"] or "").lower()])
        for match in _ITEM.finditer(text)
    ]


def wish(options: Iterable[tuple[str, str]]) -> Wish:
    """What the options of a job script ask for; the last of each kind counts."""
    requests: dict[str, str] = {}
    is_whole = True
    for option, value in options:
        name = _NAMES.get(option)
        if name is not None:
            requests[name] = value
        elif option not in _NEUTRAL:
            is_whole = False
    count = _parse_positive(requests.get("nodes", "1").partition("-")[0].partition(",")[0], 1)
    tasks = _parse_positive(requests.get("tasks", ""), 1)
    each = _parse_positive(requests.get("per_node", ""), -(-tasks // count))
    gres = parse_gres_items(requests.get("gres", ""))
    for key, per_node in (("node_gpus", 1.0), ("task_gpus", each), ("gpus", 1 / count)):
        for _, kind, number in parse_gres_items(_as_gpu_gres(requests[key])) if key in requests else ():
            gres.append(("gpu", kind, -int(-number * per_node // 1)))
    features = requests.get("constraint", "")
    words = [part for part in re.split(r"[&,]", re.sub(r"[\[\]()]|\*\d+", "", features)) if part]
    return Wish(
        partitions=frozenset(filter(None, requests.get("partition", "").split(","))),
        nodes=count,
        gres=gres,
        cpus=each * _parse_positive(requests.get("cpus", ""), 1),
        memory_mb=_parse_megabytes(requests.get("memory", "")),
        features=[frozenset(word.split("|")) for word in words] if "[" not in features else [],
        is_whole=is_whole and "[" not in features and "!" not in features,
    )


def down_nodes(known: Sequence[Node], asked: Wish) -> list[str]:
    """The nodes for which a job must wait until they are up again, with their states; none where that would not help.

    That is so where no choice of nodes could run it, and where those that are up could by themselves: then it was
    refused for another reason.
    """
    mine = [
        node for node in known
        if (node.partition in asked.partitions if asked.partitions else node.is_default)
    ] or ([] if asked.partitions else list(known))  # fmt: skip
    by_partition: dict[str, list[Node]] = {}
    for node in mine:
        if asked.fits(node):
            by_partition.setdefault(node.partition, []).append(node)
    waiting: dict[str, str] = {}
    for fitting in by_partition.values():  # a job gets all of its nodes from one partition
        up = sum(node.is_up for node in fitting)
        if len(fitting) >= asked.nodes and not (asked.is_whole and up >= asked.nodes):
            waiting |= {node.name: node.state.rstrip("*$@") for node in fitting if not node.is_up}
    return [f"{name} {state}" for name, state in sorted(waiting.items())]


_NAMES: Final = {
    "-p": "partition", "--partition": "partition", "-N": "nodes", "--nodes": "nodes", "-n": "tasks",
    "--ntasks": "tasks", "--ntasks-per-node": "per_node", "-c": "cpus", "--cpus-per-task": "cpus", "--mem": "memory",
    "--gres": "gres",
    "-G": "gpus", "--gpus": "gpus", "--gpus-per-node": "node_gpus", "--gpus-per-task": "task_gpus",
    "-C": "constraint", "--constraint": "constraint",
}  # fmt: skip


def _as_gpu_gres(text: str) -> str:
    """Convert the value of a GPU option to a gres: 4, a100:4, a100."""
    return ",".join(f"gpu:{part.removeprefix('gpu:')}" for part in text.split(","))


def _parse_positive(text: str, otherwise: int) -> int:
    return int(text) if text.isdigit() and int(text) else otherwise


def _parse_megabytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([kKmMgGtT]?)", text)
    power = "kmgt".index((match[2] or "m").lower()) - 1 if match else 0
    return 0 if match is None else -int(-int(match[1]) * 1024.0**power // 1)
