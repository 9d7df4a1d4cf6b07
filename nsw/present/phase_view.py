"""Phases and iterations for people: what an iteration takes, and what came before the steady state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.present.terminal import duration, percent, plural, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.steady import Iterations, Phase

_WORDS = {"setup": "set-up", "warmup": "warm-up", "steady": "steady state", "end": "end"}
_FOUND_BY = {"profiler_step": "PyTorch's step markers", "kernel_sequence": "the sequence of kernels"}


def show_iterations(out: Console, cases: Sequence[CaseSummary]) -> None:
    """One row a case: median, shortest and longest iteration, share of time with a GPU at work, set-up, warm-up."""
    some = [(c, c.iterations) for c in cases if c.iterations is not None]
    if not some:
        return
    found = dict.fromkeys(told_by(i) for _, i in some)
    columns = ("case", "count>", "median>", "shortest>", "longest>", "GPU busy>", "set-up>", "warm-up>")
    rows = [
        (case.id, i.count, duration(i.med_ns), duration(i.least_ns), duration(i.most_ns), percent(i.gpu_busy_pct),
         duration(_wall(case, "setup")), _warmup(case, i))
        for case, i in some
    ]  # fmt: skip
    out.print(
        table(
            f"iterations of the steady state ({', '.join(found)})",
            columns,
            rows,
            wide="case",
            least=("warm-up", "set-up", "shortest"),
        )
    )


def told_by(iterations: Iterations) -> str:
    """What told the iterations, in words."""
    if iterations.name is not None and iterations.found_by == "nvtx":
        return f"NVTX range {iterations.name}"
    return _FOUND_BY.get(iterations.found_by, iterations.found_by)


def show_phases(out: Console, case: CaseSummary) -> None:
    """The phases of a case in a line each: how long, and what it was spent on."""
    one = case.iterations
    if one is None:
        return
    of = f", in each of {one.processes} processes" if one.processes > 1 else ""
    out.print(
        f"  {plural(one.count, 'iteration')} ({told_by(one)}{of}): median {duration(one.med_ns)},"
        f" {duration(one.least_ns)} .. {duration(one.most_ns)}, the longest is number {one.slowest};"
        f" a GPU is at work {percent(one.gpu_busy_pct)} of the time"
    )
    for phase in case.phases:
        if phase.phase != "steady":
            out.print(f"  not in what follows: {_line(phase)}")


def _line(phase: Phase) -> str:
    count = f", {plural(phase.iterations, 'iteration')}" if phase.iterations else ""
    spent = ", ".join(f"{name} {duration(ns)}" for name, ns in phase.what)
    return f"{_WORDS[phase.phase]} {duration(phase.duration_ns)}{count}" + (f": {spent}" if spent else "")


def _wall(case: CaseSummary, name: str) -> float | None:
    return next((p.duration_ns for p in case.phases if p.phase == name), None)


def _warmup(case: CaseSummary, iterations: Iterations) -> str:
    return f"{iterations.warmup} in {duration(_wall(case, 'warmup'))}" if iterations.warmup else "none"
