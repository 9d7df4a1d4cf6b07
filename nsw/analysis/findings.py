"""What the numbers say, in sentences, each with the cases that prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.idle_gpu_findings import of_idle_gpus
from nsw.analysis.perturbation import RUN_TIME
from nsw.quantities import changed_by, rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.scaling import Point, Scaling

_POOR_PCT = 70.0  # efficiency below which a point is worth a sentence
_MUCH_COMMUNICATION_PCT = 20.0
_MUCH_COPYING_PCT = 20.0
_MUCH_WAITING = 1 / 3  # of the time in NCCL kernels
_SLOW_TIMES = 3.0  # the median


def findings(cases: Sequence[CaseSummary], curve: Scaling | None) -> list[Finding]:
    """The most telling facts of a campaign, a handful at most."""
    found = _of_scaling(curve, {c.id: c for c in cases}) if curve else []
    return [*found, *of_idle_gpus(cases), *_of_copies(cases), *_of_slow_iterations(cases), *_of_profiling(cases)]


def _of_scaling(curve: Scaling, by_id: Mapping[str, CaseSummary]) -> list[Finding]:
    known = [p for p in curve.points if p.efficiency_pct is not None]
    last = max((p.at for p in known), default=0.0)
    at_end = [p for p in known if p.at == last and p.at != min(q.at for q in known)]
    if not at_end:
        return []
    best, worst = max(at_end, key=_efficiency), min(at_end, key=_efficiency)
    head = f"At {curve.axis}={_plain(last)} {curve.kind}-scaling efficiency"
    if len(at_end) == 1:
        said = f"{head} is {_efficiency(worst):.1f} %."
    else:
        said = (f"{head} runs from {_efficiency(worst):.1f} % ({_where(worst)}) to {_efficiency(best):.1f} %"
                f" ({_where(best)}).")  # fmt: skip
    result = [_finding("scaling", said, "scaling", dict.fromkeys((worst.case_id, best.case_id)))]
    share = worst.communication_pct
    if _efficiency(worst) < _POOR_PCT and share is not None and share >= _MUCH_COMMUNICATION_PCT:
        result.append(
            _finding("communication", _communication(by_id[worst.case_id], share), "communication", (worst.case_id,))
        )
    return result


def _communication(case: CaseSummary, share: float) -> str:
    """What NCCL kernels take; how much of it is waiting for a late rank, where the ranks are known apart."""
    text = f"In {case.id} NCCL kernels take {share:.1f} % of {_gpu_time(case)}"
    if case.waiting is None:
        return text + ": communication, or waiting for the slowest rank inside it, is what the extra GPUs are spent on."
    waited = case.waiting.pct
    if waited < _MUCH_WAITING * share:
        return text + ", on all ranks alike: no rank is late throughout; it is communication, or ranks late in turn."
    return (
        text
        + f", but at least {waited:.1f} points of it are waiting: {case.waiting.late} reaches the collectives last."
        " Look at what delays it, not at the network."
    )


def _of_copies(cases: Sequence[CaseSummary]) -> list[Finding]:
    """Copies that take much of every iteration: not those of set-up, of a single iteration, or hidden by kernels."""
    heavy = []
    for case in cases:
        copied = 100 * sum(c.total_ns for c in case.copies) / case.gpu_ns if case.gpu_ns else 0.0
        each = case.iterations.memory_pct if case.iterations else None
        share = copied if each is None else each
        alone = case.iterations.memory_alone_pct if case.iterations else None
        if min(share, share if alone is None else alone) >= _MUCH_COPYING_PCT:
            heavy.append((share, case))
    if not heavy:
        return []
    share, case = max(heavy, key=lambda item: item[0])
    more = f" and over {_MUCH_COPYING_PCT:.0f} % in {len(heavy) - 1} more" if len(heavy) > 1 else ""
    what = "all GPU time, set-up included,"
    if case.iterations:
        alone = case.iterations.memory_alone_pct
        part = f" ({alone:.1f} % without a kernel beside them)" if alone is not None and share - alone >= 1 else ""
        what = f"the GPU time of an iteration{part}"
    text = f"Copies and sets take {share:.1f} % of {what} in {case.id}{more}.{_remedy(case) if case.iterations else ''}"
    return [_finding("copies", text, "copies", (c.id for _, c in heavy))]


def _remedy(case: CaseSummary) -> str:
    """What takes most of the copies' time, how fast it is, and what to do about it."""
    most = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    if most is None or not any(way in most.name for way in ("Host-to-Device", "Device-to-Host", "HtoD", "DtoH")):
        return ""
    speed = f" ({rate(most.bytes_per_s)})" if most.bytes_per_s else ""
    return (
        f" Most of it is {most.name}{speed}: keep the data on the GPU, or copy it from pinned memory while kernels run"
        " (cudaMemcpyAsync on a stream of its own)."
    )


def _of_slow_iterations(cases: Sequence[CaseSummary]) -> list[Finding]:
    """An iteration that takes many times the median: it spoils means and totals, not the other iterations."""
    slow = [
        (case.iterations.most_ns / case.iterations.med_ns, case, case.iterations)
        for case in cases
        if case.iterations
        and case.iterations.med_ns
        and case.iterations.most_ns >= _SLOW_TIMES * case.iterations.med_ns
    ]
    if not slow:
        return []
    times, case, iterations = max(slow, key=lambda item: item[0])
    busy = iterations.slowest_busy_pct
    text = (
        f"Iteration {iterations.slowest} of {case.id} takes {_time(iterations.most_ns)}, {times:.0f} times the median"
        f" of {_time(iterations.med_ns)}"
        + (f", with a GPU at work {busy:.0f} % of it" if busy is not None else "")
        + (f"; {len(slow) - 1} more cases have such a one" if len(slow) > 1 else "")
        + "."
    )
    return [_finding("slow iteration", text, "iterations", (c.id for _, c, _ in slow))]


def _of_profiling(cases: Sequence[CaseSummary]) -> list[Finding]:
    """How much a profiler slowed the program: a finding only where repeats show that it is more than their scatter."""
    certain = [(p, case) for case in cases for p in case.perturbation if p.certain and p.is_much]
    if not certain:
        return []
    most, case = max(certain, key=lambda item: (item[0].figure != RUN_TIME, abs(item[0].change_pct)))
    what = "the run time, start and end included," if most.figure == RUN_TIME else most.figure
    text = (
        f"Profiling changed {what} by up to {changed_by(most.change_pct).lstrip('+-')} (pass"
        f" {most.pass_name}, {case.id}): figures here are those of the baseline pass."
    )
    return [_finding("profiling", text, "perturbation", (case.id,))]


def _finding(name: str, text: str, table: str, cases: Iterable[str]) -> Finding:
    """A sentence, and the rows that prove it."""
    return Finding(name, text, evidence=(Evidence(table, tuple(cases)),))


def _gpu_time(case: CaseSummary) -> str:
    return "GPU time in the steady state" if case.phases else "GPU time"


def _time(ns: float) -> str:
    return next(
        f"{ns / size:.3g} {unit}" for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)) if ns >= size
    )


def _efficiency(point: Point) -> float:
    return point.efficiency_pct or 0.0


def _where(point: Point) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.series.items()) or point.case_id


def _plain(number: float) -> str:
    return f"{number:g}"
