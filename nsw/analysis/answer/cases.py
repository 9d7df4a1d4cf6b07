"""What the time of each case goes to: most of it in one table, its iterations, and each case in full."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.answer.kernels import kernel_table_blocks
from nsw.analysis.blocks import (
    Bars,
    Block,
    Column,
    Evidence,
    Note,
    Table,
    Timeline,
    drop_empty_columns,
    names_with_column,
)
from nsw.analysis.pipeline import pipeline_text
from nsw.analysis.rules.profiler_cost import recorded_span_text, time_without_profiler
from nsw.analysis.single_case import time_by_kernel_class
from nsw.quantities import duration, number, percent
from nsw.tables.names import number_repeated_names
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.analysis.cases import CaseSummary, Share
    from nsw.analysis.steady import Iterations, Phase
    from nsw.analysis.summary import Summary


def timeline_part_note(cases: Iterable[CaseSummary]) -> str:
    """Which part of the timelines is meant; printed where all or some of them were split."""
    split = [bool(c.phases) for c in cases]
    if all(split) and split:
        return " of the steady state"
    return " (of the steady state where there are iterations)" if any(split) else ""


_RANKS: Final = 8  # rows of a table of ranks
_STRAGGLERS: Final = (
    Column("name", "who", "name"), Column("node", "node", "name"), Column("rack", "rack", "name"),
    Column("last_pct", "comes last", "whole %"), Column("late_ns", "late by", "ns"),
    Column("cost_ns", "costs all ranks", "ns"), Column("cost_pct", "of an iteration", "%"), Column("why", "why"),
)  # fmt: skip


def _straggler_blocks(case: CaseSummary) -> list[Block]:
    """Who comes last to the collectives, what that costs, and why; nothing of fewer than four ranks."""
    columns, rows = drop_empty_columns(_STRAGGLERS, [
        (entry.name, entry.node, entry.rack, entry.last_pct, entry.late_ns, entry.cost_ns, entry.cost_pct,
         entry.why or None)
        for entry in case.stragglers[:_RANKS]
    ])  # fmt: skip
    if not rows:
        return []
    title = "who comes last to the collectives"
    title += "" if any(entry.late for entry in case.stragglers) else ": nobody more than others"
    least = names_with_column(columns, "node", "late_ns")
    fields = _full_answer_block_fields(case, "stragglers")
    return [Table("stragglers", title, columns, rows, wide=next(iter(names_with_column(columns, "why")), None),
                  least=least, **fields)]  # fmt: skip


_SPEEDS: Final = (
    Column("name", "collective", "name"), Column("ranks", "ranks", "count"), Column("message_bytes", "message", "byte"),
    Column("calls", "calls", "count"), Column("med_ns", "median", "ns"),
    Column("alg_bytes_per_s", "algorithm", "byte/s"), Column("bus_bytes_per_s", "bus", "byte/s"),
    Column("nvlink_pct", "of NVLink", "whole %"),
)  # fmt: skip


def _communication_blocks(case: CaseSummary) -> list[Block]:
    """The speeds of the collectives that move most bytes, and what the ranks of a pipeline wait."""
    columns, rows = drop_empty_columns(
        _SPEEDS, [[getattr(speed, column.name) for column in _SPEEDS] for speed in case.bandwidth[:_RANKS]]
    )
    blocks: list[Block] = []
    if case.pipeline is not None:
        text, fields = pipeline_text(case.pipeline), _full_answer_block_fields(case, "communication")
        blocks.append(Note("pipeline", text, **fields))
    if rows:
        title = "speed of collectives, by the rank that waits least"
        fields = _full_answer_block_fields(case, "bandwidth")
        blocks.append(Table("bandwidth", title, columns, rows, wide="name", **fields))
    return blocks


_FOUND_BY: Final = {"profiler_step": "PyTorch's step markers", "kernel_sequence": "the sequence of kernels"}
_ITERATIONS: Final = (
    Column("case", "case", "name"), Column("count", "count", "count"), Column("med_ns", "median", "ns"),
    Column("least_ns", "shortest", "ns"), Column("most_ns", "longest", "ns"), Column("gpu_busy_pct", "GPU busy", "%"),
    Column("setup_ns", "set-up", "ns"), Column("warmup_ns", "warm-up", "ns"),
    Column("warmup", "warm-up iterations", "count"),
)  # fmt: skip


def iteration_rows(summary: Summary) -> list[tuple[CaseSummary, dict[str, Any]]]:
    """The cases with iterations, each with their number, times (ns) and share of time with a GPU at work (%)."""
    rows = []
    for case in summary.cases:
        if (times := case.iterations) is None:
            continue
        warmup_ns = _phase_duration_ns(case, "warmup") if times.warmup else None
        values = (times.count, times.med_ns, times.least_ns, times.most_ns, _mean_gpu_busy_pct(case),
                  _phase_duration_ns(case, "setup"), warmup_ns, times.warmup)  # fmt: skip
        rows.append((case, dict(zip((column.name for column in _ITERATIONS[1:]), values, strict=True))))
    return rows


def iteration_blocks(summary: Summary) -> list[Block]:
    """Median, shortest and longest iteration, share of time with a GPU at work, set-up, warm-up."""
    rows = iteration_rows(summary)
    if not rows:
        return []
    sources = dict.fromkeys(iteration_detection_text(case.iterations) for case, _ in rows if case.iterations)
    return [
        Table(
            "iterations",
            f"iterations of the steady state ({', '.join(sources)})",
            _ITERATIONS,
            tuple((case.id, *row.values()) for case, row in rows),
            wide="case",
            least=("warmup", "warmup_ns", "setup_ns", "least_ns"),
            evidence=(Evidence("iterations", tuple(case.id for case, _ in rows)),),
        )
    ]


def _mean_gpu_busy_pct(case: CaseSummary) -> float | None:
    """How much of an iteration the mean GPU is at work."""
    spent = time_without_profiler(case)
    if spent is not None and spent.idle_pct is not None:
        return 100 - spent.idle_pct
    return case.iterations.gpu_busy_pct if case.iterations else None


def iteration_detection_text(iterations: Iterations) -> str:
    """What told the iterations, in words."""
    if iterations.name is not None and iterations.found_by == "nvtx":
        return f"NVTX range {iterations.name}"
    return _FOUND_BY.get(iterations.found_by, iterations.found_by)


def _phase_duration_ns(case: CaseSummary, name: str) -> float | None:
    return next((p.duration_ns for p in case.phases if p.phase == name), None)


_LITTLE_PCT: Final = 1.0
_WAITS: Final = 2  # classes of waiting that are named
_WORDS: Final = {"setup": "set-up", "warmup": "warm-up", "steady": "steady state", "end": "end"}
_SHARES: Final = (
    Column("name", "name", "name"), Column("share_pct", "share", "%"), Column("cumulative_pct", "together", "%"),
    Column("total_ns", "time", "ns"), Column("calls", "calls", "count"), Column("mean_ns", "mean", "ns"),
)  # fmt: skip
_COPIES: Final = (
    Column("kind", "kind"), Column("calls", "calls", "count"), Column("total_ns", "time", "ns"),
    Column("total_bytes", "bytes", "byte"), Column("bytes_per_s", "bandwidth", "byte/s"),
)  # fmt: skip
_PHASES: Final = (
    Column("phase", "phase"), Column("duration_ns", "duration", "ns"), Column("iterations", "iterations", "count"),
    Column("what", "spent on", "names and ns"),
)  # fmt: skip


def case_blocks(summary: Summary) -> Iterator[Block]:
    """What is known of each case."""
    return (block for case in summary.cases for block in _full_case_blocks(case, summary.cover))


def _full_case_blocks(case: CaseSummary, cover: float) -> list[Block]:
    """What is known of one; `cover`: the share of the time that those listed take together, 0 to 1."""
    if not any((case.figures, case.hotspots, case.api, case.copies, case.functions, case.kernels)):
        return [Note("case", f"{case.id}: nothing was read", case=case.id, shown="full")]
    portion, phase_note = f"{100 * cover:g} %", timeline_part_note([case])
    blocks: list[Block] = [
        Note("case", _case_heading(case, phase_note), tone="heading", case=case.id, shown="full"),
        *(
            Note("figure", f"{f.name} {number(f.median)} {f.unit or ''}"
                 f" ({f.pass_name}{', profiled' if f.profiled else ''}; {plural(f.runs, 'run')})",
                 **_full_answer_block_fields(case, "figures"))
            for f in case.figures
        ),
        *_phase_blocks(case),
        *(replace(block, shown="full") for block in time_by_kernel_class(case)),
        *_straggler_blocks(case),
        *_communication_blocks(case),
        *_share_table_blocks(case, "hotspots", f"GPU operations that take {portion} of GPU time{phase_note}",
         case.hotspots, case.gpu_work),
        *kernel_table_blocks(case.kernels, case=case.id, visibility="full"),
        *_share_table_blocks(case, "api", f"CUDA API calls that take {portion} of API time{phase_note}", case.api),
    ]  # fmt: skip
    if case.copies:
        rows = tuple((c.name, c.calls, c.total_ns, c.total_bytes, c.bytes_per_s) for c in case.copies)
        blocks.append(
            Table("copies", f"copies and sets{phase_note}", _COPIES, rows, **_full_answer_block_fields(case, "copies"))
        )
    if case.import_ns:
        text = f"imports of modules {duration(case.import_ns)}: not in what follows"
        blocks.append(Note("imports", text, **_full_answer_block_fields(case, "functions")))
    functions = f"functions that take {portion} of the CPU's time, each without those that it calls"
    return [
        *blocks,
        *_cpu_time_by_class_blocks(case),
        *_share_table_blocks(case, "functions", functions, case.functions),
    ]


_WORK: Final = (Column("work", "the CPU's work", "name"), Column("share_pct", "share", "whole %"),
                Column("top", "largest function", "name"))  # fmt: skip


def _cpu_time_by_class_blocks(case: CaseSummary) -> list[Block]:
    """What the CPU works on by class, and what it waits for."""
    host = case.host
    if host is None or not (host.work or host.waits):
        return []
    rows = tuple((work.name, work.share_pct, work.top) for work in host.work if work.share_pct >= _LITTLE_PCT)
    waits = "".join(f"; {wait.share_pct:.0f} % of all time {wait.name}" for wait in host.waits[:_WAITS])
    title = f"what the CPU works on, by its functions{waits}"
    return [Table("host", title, _WORK, rows, wide="top", **_full_answer_block_fields(case, "functions"))]


def _full_answer_block_fields(case: CaseSummary, table: str) -> dict[str, Any]:
    """What the blocks of a case in full share."""
    return {"case": case.id, "shown": "full", "evidence": (Evidence(table, (case.id,)),)}


def _case_heading(case: CaseSummary, phase_note: str) -> str:
    heading = "" if case.gpu_ns is None else f": GPU time{phase_note} {duration(case.gpu_ns)}"
    if case.communication_pct and case.gpu_ns:
        heading += f", {duration(case.communication_pct / 100 * case.gpu_ns)} of it in NCCL kernels"
    if case.measured > 1:
        heading += f"; times, calls and bytes are those of a run, the mean of {case.measured}"
    return case.id + heading


def _phase_blocks(case: CaseSummary) -> list[Block]:
    """How its iterations were told and what they take; the phases, with what each was spent on."""
    iterations = case.iterations
    if iterations is None and case.one_phase:
        text = (
            f"no iterations were found ({case.one_phase}): what follows is of the whole run, set-up included."
            " `report: {steps: {nvtx: RANGE}}` in the recipe names a range of the program"
        )
        return [Note("phases", text, **_full_answer_block_fields(case, "phases"))]
    if iterations is None:
        return []
    process_note = f", in each of {iterations.processes} processes" if iterations.processes > 1 else ""
    spent = time_without_profiler(case)
    basis = "mean" if spent is not None and spent.is_mean else "median"
    unprofiled = ""
    if spent is not None and not spent.is_mean and recorded_span_text(case):
        unprofiled = f" ({duration(spent.span_ns)} without the idle time that the profiler adds)"
    text = (
        f"{plural(iterations.count, 'iteration')} ({iteration_detection_text(iterations)}{process_note}): median"
        f" {duration(iterations.med_ns)}{unprofiled},"
        f" {duration(iterations.least_ns)} .. {duration(iterations.most_ns)}, the longest is number"
        f" {iterations.slowest};"
        f" a GPU is at work {percent(_mean_gpu_busy_pct(case))} of the {basis} one"
    )
    rows = tuple((_WORDS[p.phase], p.duration_ns, p.iterations, _largest_shares_of_phase(p)) for p in case.phases)
    return [
        Note("iterations", text, **_full_answer_block_fields(case, "iterations")),
        Timeline(
            "phases",
            "phases; what follows is of the steady state",
            _PHASES,
            rows,
            label="phase",
            length="duration_ns",
            **_full_answer_block_fields(case, "phases"),
        ),
    ]


def _largest_shares_of_phase(phase: Phase) -> tuple[tuple[str, float], ...]:
    """What a phase took most of its time for; around the steady state first what is no CUDA call, if that is most.

    The end begins with the end of the GPU's last work: a call that is longer than it waited for that work.
    """
    if phase.phase == "steady" or phase.api_ns is None or not phase.what:
        return phase.what
    what = tuple(part for part in phase.what if phase.phase != "end" or part[1] <= phase.duration_ns)
    outside = phase.duration_ns - phase.api_ns
    return (("outside CUDA calls", outside), *what) if outside > phase.duration_ns / 2 else what


def _share_table_blocks(
    case: CaseSummary, name: str, title: str, shares: Sequence[Share], among: Sequence[Share] = ()
) -> list[Block]:
    """A bar for each share; `among` is what they are the largest of, by which names are numbered."""
    if not shares:
        return []
    # names of instances of one template look alike, and are not the same kernel
    every = among or shares
    labels = number_repeated_names([s.name if s.kind == "function" else s.short_name for s in every])
    label = dict(zip(((s.kind, s.name) for s in every), labels, strict=True))
    distinct = [label[s.kind, s.name] for s in shares]
    rows = tuple(
        (
            distinct_name,
            s.share_pct,
            s.cumulative_pct,
            s.total_ns,
            s.calls,
            s.total_ns / s.calls if s.calls and s.total_ns is not None else None,
        )
        for distinct_name, s in zip(distinct, shares, strict=True)
    )
    return [
        Bars(
            name,
            title,
            _SHARES,
            rows,
            wide="name",
            least=("mean_ns", "cumulative_pct", "calls"),
            label="name",
            value="share_pct",
            **_full_answer_block_fields(case, name),
        )
    ]
