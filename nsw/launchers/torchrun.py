"""torchrun: a launcher of one node, whose processes are its children; on several nodes nsw starts it on each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Final

from nsw.launchers.model import Launch, Launcher, Part
from nsw.profilers.cprofile import is_python_interpreter
from nsw.profilers.model import Variable

_MEETING: Final = Variable("nsw_meeting")  # the first node and a port


class Torchrun(Launcher):
    """The options of torchrun."""

    count_options = ("--nproc_per_node", "--nproc-per-node")
    value_options = (
        "--nnodes --rdzv_backend --rdzv-backend --rdzv_endpoint --rdzv-endpoint --rdzv_id --rdzv-id"
        " --rdzv_conf --rdzv-conf --master_addr --master-addr --log_dir --log-dir --role --tee --redirects"
    )
    meanings = MappingProxyType({
        "--nnodes": "nodes", "--nproc-per-node": "per_node", "--standalone": "alone",
        "--rdzv-backend": "meeting", "--rdzv-endpoint": "meeting", "--rdzv-id": "meeting", "--rdzv-conf": "meeting",
        "--master-addr": "meeting", "--master-port": "meeting", "--node-rank": "meeting",
    })  # fmt: skip
    flags = frozenset({"alone"})
    abbreviates = True
    has_underscores = True
    on_path = False  # it is a module of the program's python
    in_image = True
    spawns = True
    runs_modules = True
    local_rank = "LOCAL_RANK"

    def words(self, start: Launch, replaced: Collection[str], program: Sequence[str]) -> tuple[str, ...]:
        """`python train.py` is started by that same python: the torchrun on PATH may be another's."""
        own_parts: list[Part] = [("per_node", (f"--nproc_per_node={start.layout.per_node}",))]
        if start.starts_once_per_node:
            meeting = ("--rdzv_backend=c10d", "--rdzv_endpoint", _MEETING, "--rdzv_id", Variable("nsw_job_id"))
            own_parts = [("nodes", (f"--nnodes={start.layout.nodes}",)), *own_parts, ("meeting", meeting)]
        elif "meeting" not in replaced and "nodes" not in replaced:
            # else it listens on port 29500, and of two runs of a node one fails
            own_parts = [("alone", ("--standalone",)), *own_parts]
        own_words = tuple(word for meaning, part in own_parts if meaning not in replaced for word in part)
        if program and is_python_interpreter(program[0]) and len(program) > 1 and not program[1].startswith("-"):
            return (program[0], "-m", "torch.distributed.run", *own_words, *start.options, *program[1:])
        command = ("torchrun",) if start.python is None else (start.python, "-m", "torch.distributed.run")
        return (*command, *own_words, *start.options, "--no-python", *program)
