"""Which kernel ncu was running again when it warned of a hang, and what follows from its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsw.readers.model import Problem

# `==PROF== Profiling "1:7:function:1": 0%` where --kernel-id is given, else `Profiling "function" - 3: 0%`
_PROFILING: Final = re.compile(r'Profiling "(?:\d*:\d*:)?(?P<kernel>[^"]+?)(?::\d+)?"')
_NCCL: Final = re.compile(r"nccl", re.IGNORECASE)


def kernel_in(text: str) -> str | None:
    """The kernel that a line of ncu's progress names; None where it names none."""
    found = _PROFILING.search(text)
    return found["kernel"] if found else None


def of_kernel(problem: Problem, kernel: str | None) -> Problem:
    """The problem of a hang, with what the kernel's name tells; as it is where the kernel is not known."""
    if kernel is None:
        return problem
    if _NCCL.search(kernel):
        why = f"{kernel} is run again and waits for the other ranks, which have done it once"
        fix = (
            "leave NCCL's kernels out: kernels: {exclude: [nccl]}, as nsw does where none is named; or measure them"
            " together with replay: range"
        )
    else:
        why = f"it was running {kernel} again, which takes long, or waits for what happens only once"
        fix = (
            "if the run ends by itself, give it more `time`; else leave the kernel out: kernels:"
            f" {{exclude: [{kernel}]}}, or run again what belongs together: replay: range"
        )
    head, _, _ = problem.message.partition(" (a kernel that ncu runs again")
    return replace(problem, message=f"{head} ({why})", fix=fix)
