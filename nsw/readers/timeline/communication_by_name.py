"""What is communication, by its name: kernels of NCCL, MPI calls that send."""

from __future__ import annotations

import re

_NCCL = re.compile(
    r"\bnccl(?:Dev)?(?:Kernel)?_?(AllReduce|AllGather|AllToAllV?|ReduceScatter|Broadcast|Reduce|SendRecv|Gather|Scatter"
    r"|Generic)",
    re.IGNORECASE,
)
_NCCL_KERNEL = re.compile(r"\bnccl(?:Dev)?Kernel|\bnccl\w*Kernel")


def nccl_operation(kernel: str) -> str | None:
    """The collective of an NCCL kernel, AllReduce of ncclDevKernel_AllReduce_Sum_f32_RING(...); or None."""
    head = kernel.split("(", 1)[0]
    if not _NCCL_KERNEL.search(head):
        return None
    match = _NCCL.search(head)
    return match[1] if match else "other"


def bytes_are_sent(call: str) -> bool:
    """Whether the size that an MPI call was recorded with is of what it sends; of MPI_Sendrecv that is not told."""
    return "recv" not in call.lower()
