"""What a rule says of a case, and what it may know of the other cases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from nsw.analysis.rules.causes import causes
from nsw.metrics import find_chip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

__all__ = [
    "ALL_TIME",
    "AMPERE",
    "COPIED_PCT",
    "MOSTLY",
    "MOSTLY_PCT",
    "OF_GPU_TIME",
    "OF_ITERATION",
    "UNMEASURED_GAPS",
    "WORTH_PCT",
    "Context",
    "Hit",
    "Reports",
    "compute_capability",
    "detect_framework",
    "gpu_copy_direction",
    "iteration_count",
    "make_hit",
]

Reports = Literal["readable", "unreadable", "absent"]  # the reports of timelines, by the nsys that is here

WORTH_PCT: Final = 8.0  # of an iteration
COPIED_PCT: Final = 20.0  # of an iteration, or of GPU time without iterations
MOSTLY_PCT: Final = 50.0  # of GPU time without iterations
OF_GPU_TIME, OF_ITERATION = "of GPU time is", "of an iteration is"  # between a share and its class
UNMEASURED_GAPS: Final = "gaps-unmeasured"  # the cause of idle time that tables do not explain
ALL_TIME: Final = "the time"  # what a gain is a share of, where a rule says nothing else
MOSTLY: Final = 0.5
AMPERE: Final = (8, 0)  # compute capability from which tensor cores multiply TF32, over PCIe 4
_PYTHON: Final = re.compile(r"\bat::|at_cuda_detail|multi_tensor_apply|elementwise_kernel")
_PYTHON_LIBRARY: Final = re.compile(r"cupy_\w+__|cupy::|cudapy::|\[abi:v\d|tensorflow::")  # CuPy, Numba, TensorFlow
# by the compilers of NVIDIA and LLVM: the function, its line, `gpu`; the function and its line in a kernel's prefix
_DIRECTIVES: Final = {
    "openacc": re.compile(r"\w+_\d+_gpu(?:__red)?\Z"),
    "openmp": re.compile(r"nvkernel_\w+_F\d+L\d+_\d+\Z|__omp_offloading_"),
}
_JAX: Final = re.compile(r"^(?:loop_|input_|wrapped_|fusion|gemm_fusion|command_buffer)\w*(?:fusion|_\d+)?$")


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that holds for a case.

    Attributes:
        cause: Its id in causes.toml; a rule of another package has one of its own.
        case: The case.
        gain_pct: What could be won at most, in per cent of the case's time.
        what: What is wrong, in a few words, for a table.
        do: What to try, in a few words, for a table.
        fact: The same as a sentence, without its case and its full stop.
        advice: What to try, in whole sentences.
        size: How much it is, for a list of cases: `12 %`.
        table: What `nsw summarize --table` takes for the rows that prove it.
        share_of: Where `what` begins with `size`, what goes between them in a headline: `of GPU time is`.
        costs_accuracy: Whether what it advises makes results less accurate, such as TF32: the user's choice, no waste.
        cured_case: Another case, which does what it advises.
        continued: `fact` where another hit before it names the same idle time; empty: it names none.
        gain_of: What the gain is a share of, in words.
    """

    cause: str
    case: str
    gain_pct: float
    what: str
    do: str
    fact: str
    advice: str
    size: str
    table: str
    share_of: str = ""
    costs_accuracy: bool = False
    cured_case: str | None = None
    continued: str = ""
    gain_of: str = ALL_TIME

    @property
    def headline(self) -> str:
        """What is wrong, with what its share is of: no table beside it tells."""
        return f"{self.size} {self.share_of}{self.what.removeprefix(self.size)}" if self.share_of else self.what

    @property
    def healthy(self) -> bool:
        """Whether it says what binds where nothing is wasted."""
        known = causes().get(self.cause)
        return known is not None and known.group == "healthy"

    @property
    def is_curable(self) -> bool:
        """Whether its remedy wins anything: what binds a sound program has none, nor has idle time of unknown cause."""
        return not self.healthy and self.cause != UNMEASURED_GAPS


@dataclass(frozen=True, slots=True)
class Context:
    """The campaign around a case.

    Attributes:
        copies: The fastest copies in each direction, byte/s with the case that has them.
        reports: Whether its reports can be read again here.
    """

    copies: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    reports: Reports = "absent"

    @classmethod
    def from_cases(cls, cases: Sequence[CaseSummary], *, reports: Reports = "absent") -> Context:
        """That of a campaign's cases."""
        best: dict[str, tuple[float, str]] = {}
        for case in cases:
            for copy in case.copies:
                key = gpu_copy_direction(copy.name)
                if key and copy.bytes_per_s and copy.bytes_per_s > best.get(key, (0.0, ""))[0]:
                    best[key] = copy.bytes_per_s, case.id
        return cls(best, reports)


def gpu_copy_direction(name: str) -> str:
    """`to` or `from` the GPU, by the name of a copy; empty for others, as those of unified memory."""
    if "Unified" in name:
        return ""
    if "Host-to-Device" in name or "HtoD" in name:
        return "to"
    return "from" if "Device-to-Host" in name or "DtoH" in name else ""


def detect_framework(case: CaseSummary) -> str:
    """What launches the kernels of a case, by the names of kernels that libraries and compilers give."""
    return _framework_of_names((
        *(share.name for share in case.gpu_work), *(kernel.name for kernel in case.kernels), *case.start_kernels
    ))  # fmt: skip


@cache  # cases have the same kernels
def _framework_of_names(names: tuple[str, ...]) -> str:
    if any(_PYTHON.search(name) for name in names):
        return "pytorch"
    if any(_JAX.match(name) for name in names):
        return "jax"
    if any("triton_" in name for name in names):  # XLA has such names too
        return "pytorch"
    if any(_PYTHON_LIBRARY.search(name) for name in names):
        return "python"
    return next((model for model, made in _DIRECTIVES.items() if any(made.match(name) for name in names)), "any")


def make_hit(
    case: CaseSummary, cause: str, gain: float, what: str, fact: str, size: str, table: str, share_of: str = ""
) -> Hit:
    """A hit with the remedies of its cause, as the case's framework has them.

    Args:
        case: The case.
        cause: Its id in causes.toml.
        gain: What could be won at most, in per cent of the case's time.
        what: What is wrong, in a few words.
        fact: The same as a sentence.
        size: How much it is: `12 %`.
        table: The table whose rows prove it.
        share_of: What goes between size and `what` in a headline.
    """
    known = causes()[cause]
    return Hit(cause, case.id, gain, what, known.do, fact, known.remedy(detect_framework(case)), size, table, share_of)


def compute_capability(case: CaseSummary) -> tuple[int, int]:
    """The compute capability of a case's GPU; (0, 0): not known."""
    chip = find_chip(case.gpus[0]) if case.gpus else None
    return (chip and chip.capability) or (0, 0)


def iteration_count(case: CaseSummary) -> int:
    """How many iterations the copies of a case are of: those of all its processes."""
    return case.iterations.count * case.iterations.processes if case.iterations else 0
