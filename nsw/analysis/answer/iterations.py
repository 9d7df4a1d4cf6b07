"""What an iteration of the steady state takes, a row a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Column, Evidence, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.blocks import Block
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.steady import Iterations
    from nsw.analysis.summary import Summary

_FOUND_BY: Final = {"profiler_step": "PyTorch's step markers", "kernel_sequence": "the sequence of kernels"}
_COLUMNS: Final = (
    Column("case", "case", "name"), Column("count", "count", "count"), Column("med_ns", "median", "ns"),
    Column("least_ns", "shortest", "ns"), Column("most_ns", "longest", "ns"), Column("gpu_busy_pct", "GPU busy", "%"),
    Column("setup_ns", "set-up", "ns"), Column("warmup_ns", "warm-up", "ns"),
    Column("warmup", "in iterations", "count"),
)  # fmt: skip


def blocks(summary: Summary) -> list[Block]:
    """Median, shortest and longest iteration, share of time with a GPU at work, set-up, warm-up."""
    return of_cases(summary.cases)


def of_cases(cases: Sequence[CaseSummary]) -> list[Block]:
    """The same, of these cases."""
    some = [(c, c.iterations) for c in cases if c.iterations is not None]
    if not some:
        return []
    found = dict.fromkeys(told_by(i) for _, i in some)
    rows = tuple(
        (case.id, i.count, i.med_ns, i.least_ns, i.most_ns, i.gpu_busy_pct, _wall(case, "setup"),
         _wall(case, "warmup") if i.warmup else None, i.warmup)
        for case, i in some
    )  # fmt: skip
    return [
        Table(
            "iterations",
            f"iterations of the steady state ({', '.join(found)})",
            _COLUMNS,
            rows,
            wide="case",
            least=("warmup", "warmup_ns", "setup_ns", "least_ns"),
            evidence=(Evidence("iterations", tuple(case.id for case, _ in some)),),
        )
    ]


def told_by(iterations: Iterations) -> str:
    """What told the iterations, in words."""
    if iterations.name is not None and iterations.found_by == "nvtx":
        return f"NVTX range {iterations.name}"
    return _FOUND_BY.get(iterations.found_by, iterations.found_by)


def _wall(case: CaseSummary, name: str) -> float | None:
    return next((p.duration_ns for p in case.phases if p.phase == name), None)
