"""Rules over the gaps of a GPU: by how long they are, and by what the host does in them.

A gap of a few us is the price of a launch, one of 10 to 300 us a framework's or a wait's, one of milliseconds the
host's own work. What a remedy saves is bounded by what the host would then take, and by the GPU's work.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.groups import group_by
from nsw.analysis.idle_gpu import BUSY_PCT, Gaps, IdleGpu
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import MOSTLY, Hit, Reports, detect_framework, gpu_copy_direction, iteration_count
from nsw.analysis.rules.idle_causes import (
    EACH,
    GAP_WORDS,
    IDLE_TIME,
    PART,
    SHORT,
    SLOW_HOST_NS,
    IdleCause,
    host_work_in_migrations_ns,
    slow_reads,
)
from nsw.analysis.rules.long_gaps import (
    LongGaps,
    cause_of_long_gaps,
    has_few_iterations,
    received_input_cause,
    restarted_workers_cause,
)
from nsw.analysis.rules.short_gaps import round_trip_cause, small_copy_gap_cause, wait_and_launch_gap_causes
from nsw.analysis.spent import remove_profiler_idle_time
from nsw.quantities import format_ns, format_sum_and_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

__all__ = [
    "WORDS",
    "SlowIterations",
    "divide_idle_time",
    "find_slow_iterations",
    "first_idle_part",
    "idle_gpu_hits",
    "idle_time_by_cause",
    "idle_time_parts_text",
    "is_cause_of_slow_iterations_known",
    "loads_in_slow_iterations",
    "remove_profiler_slowdown",
]

_WORTH_PCT: Final = 8.0  # of an iteration
_NAMED_PCT: Final = 2.0  # of an iteration: idle time behind a cause that says nothing of more
_LAUNCHES_PCT: Final = 30.0  # of an iteration: a profiler adds to each launch
_UNSPLIT_PCT: Final = 15.0  # of the time of a program without iterations: idle time of another cause than launches
_VERY_MANY: Final = 1000  # of an iteration: so many short operations are launched one by one
_VALUE: Final = 4096  # bytes: larger copies to the host are results
_LAUNCH_NS: Final = 20e3  # a framework's launch takes no longer: neither do a short operation and the gap behind it
_SLOWER_PCT: Final = 5.0  # of the steady state, that slow iterations take longer
_PAUSE_NS: Final = 10e6  # that one iteration takes longer: shorter pauses are the system's, or the profiler's
_LOOP: Final = 4  # operations of a repetition: fewer may be a loop within an iteration
_ALIKE: Final = 0.25  # by which long gaps differ from what slow iterations take longer, where they are the same
MOST_OF_SLOWER, LITTLE_OF_SLOWER = 0.7, 0.2  # of what a slow iteration takes longer: the GPU's
_ALLOCATES: Final = re.compile(r"cu(?:da)?(?:Malloc|Free|Mem(?:Alloc|Free|Create|Map)|Host(?:Alloc|Register))")
_BY_OTHERS: Final = frozenset({"data-loader", "file-io", "logging", "python-threads"})  # told without CUDA calls
_COMPILED_NS: Final = 200e6  # of a slow iteration: one that compiles so long has gaps of 50 ms, as `compiles` counts
MORE_WORK: Final = 2.0  # times the operations of a usual iteration, that a slow one has more: an evaluation
_LITTLE: Final = 0.01  # of the idle time
_ON_GPU: Final = "Do that on the GPU, or in a thread beside its next work, from a second buffer."

# a cause -> its word beside the idle time of a table
WORDS: Final = {
    "launch-bound": "launches", "sync-each-operation": "waits for the GPU", "scalar-reads": "values read back",
    "changing-shapes": "values read back", "allocation-in-loop": "allocation", "recompilation": "modules loaded",
    "pageable-copies": "copies", "small-copies": "around small copies", "data-loader": "input", "file-io": "files",
    "logging": "a log", "python-threads": "locks", "host-work": "the host",
    "host-call": "a CUDA call", "late-rank-host": "the host", "page-faults": "page migrations",
    "host-round-trips": "round trips to the host",
    "periodic-slow-iteration": "slow iterations",
}  # fmt: skip
# causes of idle time that other rules report
_OF_OTHER_RULES: Final = frozenset({"page-faults", "periodic-slow-iteration"})
# causes of long gaps that say no more than that an iteration is slow
_VAGUE: Final = frozenset({"data-loader", "host-work"})
# long ones of others: the host's own
_OF_ANY_LENGTH: Final = frozenset({"allocate", "load", "migration", "input", "spawn"})


@dataclass(frozen=True, slots=True)
class SlowIterations:
    """Iterations that take longer than the usual ones, again and again.

    Attributes:
        subject: Which, as the subject of a sentence.
        is_periodic: Whether they come at equal distances, and `subject` is one.
        more_ns: What each takes longer, the median.
        gpu_ns: What of that is more work of the GPU.
        share_pct: What all take longer, of all time.
    """

    subject: str
    is_periodic: bool
    more_ns: float
    gpu_ns: float
    share_pct: float

    @property
    def is_of_host(self) -> bool:
        """Whether the GPU has no more work in them."""
        return self.gpu_ns <= LITTLE_OF_SLOWER * self.more_ns

    def verb(self, word: str) -> str:
        """A verb, given as of several, behind `subject`."""
        return f"{word}s" if self.is_periodic else word


def find_slow_iterations(case: CaseSummary) -> SlowIterations | None:
    """The iterations that take longer than the usual ones and are worth a sentence; None where there are none."""
    idle, iterations = case.idle_gpu, case.iterations
    if idle is None or iterations is None:
        return None
    use = idle.use
    if use.get("slower_pct", 0.0) < _SLOWER_PCT or not use.get("slow"):
        return None
    period, more_ns = use.get("period"), use["slower_ns"]
    subject = f"every {_ordinal_text(int(period))} iteration" if period else (
        f"{use['slow']:.0f} of {iterations.count} iterations"
    )  # fmt: skip
    slow = SlowIterations(
        subject, bool(period), more_ns, max(use.get("slower_gpu_ns", 0.0), 0.0), use["slower_pct"]
    )  # fmt: skip
    if loads_in_slow_iterations(idle) >= PART * use["slow"] and not period and slow.is_of_host:
        return None  # a compiler, or kernels' first use
    if slow.is_of_host and more_ns < (SLOW_HOST_NS if period else _PAUSE_NS):  # the system's, or Python's
        return None
    is_other_work = use.get("slower_operations", 0.0) >= MORE_WORK * idle.operations
    if not period and not slow.is_of_host and slow.gpu_ns < MOST_OF_SLOWER * more_ns and not is_other_work:
        return None
    is_inner_loop = idle.operations < _LOOP and not (slow.is_of_host or is_other_work)
    if iterations.found_by == "kernel_sequence" and ("launches" not in use or is_inner_loop):
        return None  # which may be a loop within an iteration
    return slow


def loads_in_slow_iterations(idle: IdleGpu) -> float:
    """The number of modules that a compiler may have loaded in slow iterations.

    Returns:
        A count over all of them: 0 where they are evaluations, or where no gap ends with a module.
    """
    use = idle.use
    is_as_usual = use.get("slower_operations", 0.0) < MORE_WORK * idle.operations
    ends_gaps = use.get("slower_ns", 0.0) < _COMPILED_NS or use.get("compiles", 1)
    return idle.loads if is_as_usual and ends_gaps else 0.0


def _ordinal_text(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def is_cause_of_slow_iterations_known(case: CaseSummary, slowed: float) -> bool:
    """Whether a finding about idle time says why iterations are slow.

    Args:
        case: The case.
        slowed: How many times the profiler slowed it.
    """
    if case.idle_gpu is None:
        return False
    idle = remove_profiler_slowdown(case.idle_gpu, slowed)
    return idle.busy_pct < BUSY_PCT and any(
        cause.is_of_slow_iterations and 100 * cause.saved_ns / idle.med_ns >= _WORTH_PCT
        for cause in idle_time_by_cause(case, idle)
    )


def remove_profiler_slowdown(idle: IdleGpu, slowed: float) -> IdleGpu:
    """The use of a GPU as it is without the profiler, which slows the program so many times."""
    mean_pct = None if idle.mean_busy_pct is None else min(100.0, idle.mean_busy_pct * slowed)
    return replace(
        idle, med_ns=idle.med_ns / slowed, busy_pct=min(100.0, idle.busy_pct * slowed), mean_busy_pct=mean_pct
    )


def idle_gpu_hits(case: CaseSummary, slowed: float, *, reports: Reports = "absent") -> list[Hit]:
    """What the GPU that is idle most waits for, each cause that is worth a sentence.

    Args:
        case: The case.
        slowed: How many times the profiler slowed it.
        reports: Whether its reports can be read again here, which measures gaps.
    """
    if case.idle_gpu is None:
        return []
    idle = remove_profiler_slowdown(case.idle_gpu, slowed)
    if idle.busy_pct >= BUSY_PCT:
        return []
    spent = case.spent and remove_profiler_idle_time(case.spent, slowed)
    mean = spent.idle_pct if spent and len(spent.idle_gpus) > 1 else None
    beside = "" if mean is None else f" (the mean GPU {mean:.0f} %)"
    busy_pct = idle.busy_pct
    if has_few_iterations(case) and idle.is_iteration and idle.mean_busy_pct is not None:
        busy_pct = idle.mean_busy_pct  # of the same iterations as the range beside it
    base = f"{idle.gpu} is idle {100 - busy_pct:.0f} %{beside} of {_iteration_time_text(case, idle)}"
    others = ""
    if idle.processes > 1:
        others = "; the others wait for it in NCCL kernels" if idle.collectives else ", or it waits for another process"
    found = idle_time_by_cause(case, idle)
    if idle.is_iteration and not found and not (idle.gaps and idle.has_calls):
        if 100 - idle.busy_pct < _LAUNCHES_PCT:
            return []
        return [_unmeasured_gaps_hit(case, idle, base, reports)]
    hits = []
    worth = [cause for cause in found if _is_worth_a_sentence(idle, cause)]
    launches_ns = max((cause.saved_ns for cause in worth if cause.cause == "launch-bound"), default=0.0)
    # what nobody knows of the host, in gaps that are some launches long, is cured with the launches
    worth = [cause for cause in worth if cause.cause != "host-work" or 3 * cause.saved_ns > launches_ns or case.host]
    for cause in found:
        gain = 100 * cause.saved_ns / idle.med_ns
        if cause in worth:
            known = causes()[cause.cause]
            hits.append(Hit(
                cause.cause, case.id, gain, cause.what, cause.do or known.do,
                f"{base}: {cause.fact.replace(IDLE_TIME, 'that')}{others}",
                cause.advice or known.remedy(detect_framework(case)), f"{100 - busy_pct:.0f} % idle", "gaps",
                continued=cause.fact_of_rest, gain_of="the time" if idle.is_iteration else "that time",
            ))  # fmt: skip
    return hits


def _is_worth_a_sentence(idle: IdleGpu, cause: IdleCause) -> bool:
    """Whether a cure of idle time saves so much that it gets a sentence of its own."""
    sure = (idle.is_iteration or cause.recurs) and cause.cause != "launch-bound"
    least_pct = _WORTH_PCT if sure else _LAUNCHES_PCT if cause.cause == "launch-bound" else _UNSPLIT_PCT
    if cause.explained_ns < _NAMED_PCT / 100 * idle.med_ns:
        return False
    base_ns = idle.med_ns
    if cause.cause == "launch-bound" and not idle.is_iteration:  # which long gaps of the host are not
        base_ns -= idle.in_gaps(*GAP_WORDS, lengths=("long",))
    if cause.cause in _OF_OTHER_RULES or 100 * cause.saved_ns / idle.med_ns < _WORTH_PCT:
        return False
    return 100 * cause.saved_ns / base_ns >= least_pct


def _unmeasured_gaps_hit(case: CaseSummary, idle: IdleGpu, base: str, reports: Reports) -> Hit:
    """A GPU that is idle, where no gap or no call says why: many short operations say that launches do."""
    idle_pct = 100 - idle.busy_pct
    size = f"{idle_pct:.0f} % idle"
    why = "its tables were made before gaps were measured"
    if idle.gaps:
        why = "its report has no CUDA calls, which would show why"
    work_ns, gap_ns = (ns / max(idle.operations, 1.0) for ns in (idle.med_ns - idle.idle_ns, idle.idle_ns))
    wait_ns = sum(ns for name, ns in idle.calls.items() if "Synchronize" in name)
    if idle.operations >= _VERY_MANY and max(work_ns, gap_ns) <= _LAUNCH_NS and wait_ns <= PART * idle.idle_ns:
        known = causes()["launch-bound"]
        launches = f"{idle.operations:,.0f} operations of {format_ns(work_ns)}"
        return Hit(
            "launch-bound", case.id, idle_pct, f"probably launch-bound, {launches}", known.do,
            f"{base}: probably launch-bound: {launches} an iteration, {format_ns(gap_ns)} apart ({why})",
            known.remedy(detect_framework(case)), size, "iterations",
        )  # fmt: skip
    alike = f"{base}: probably"
    allocations = {name: ns for name, ns in idle.calls.items() if _ALLOCATES.match(name)}
    if allocations and (took := min(sum(allocations.values()), idle.idle_ns)) >= PART * idle.idle_ns:
        known = causes()["allocation-in-loop"]
        return Hit(
            known.id, case.id, 100 * took / idle.med_ns, f"probably allocates and frees {format_ns(took)}", known.do,
            f"{alike} allocation, {_largest_calls_text(allocations)}; {why}", known.remedy(detect_framework(case)),
            size, "api",
        )  # fmt: skip
    if idle.calls and (values := _values_read_back(case, idle)):
        known = causes()["scalar-reads"]
        return Hit(
            known.id, case.id, idle_pct, f"probably reads {values:.0f} values back an iteration", known.do,
            f"{alike} {values:.0f} values of a few bytes that the host reads back an iteration ({why})",
            known.remedy(detect_framework(case)), size, "copies",
        )  # fmt: skip
    known = causes()["gaps-unmeasured"]
    what, do, advice = "gaps not measured", known.do, "Record the timeline again."
    if idle.gaps:
        what, do, advice = "no CUDA calls recorded", "record CUDA calls", "Record them: `nsys profile --trace=cuda`."
    elif reports == "readable":
        do, advice = "nsw reread", "`nsw reread` reads the reports again and measures them."
    elif reports == "unreadable":
        do = "nsw reread, with an nsys"
        advice = "`nsw reread` measures them, with an nsys for the reports (on PATH, or named by NSW_NSYS)."
    return Hit("gaps-unmeasured", case.id, idle_pct, f"idle {idle_pct:.0f} %, {what}", do, f"{base}: {why}",
               advice, size, "iterations")  # fmt: skip


def _values_read_back(case: CaseSummary, idle: IdleGpu) -> float:
    """How many copies of a few bytes to the host an iteration has; 0 where they are few beside its operations."""
    small = sum(
        copy.calls
        for copy in case.copies
        if gpu_copy_direction(copy.name) == "from" and (copy.total_bytes or math.inf) <= _VALUE * copy.calls
    )
    values = small / max(iteration_count(case), 1)
    return values if values >= EACH * idle.operations else 0.0


def divide_idle_time(idle: IdleGpu, causes_of_idle: Sequence[IdleCause]) -> dict[str, float]:
    """All idle time in ns by words: each gap of table gaps once, under the name of its cause or what the host does."""
    division = _gap_times_by_words(idle)
    for cause in causes_of_idle:
        words = WORDS[cause.cause]
        for name, ns in cause.named:
            division[name] -= ns
            division[words] = division.get(words, 0.0) + ns
    return division


def idle_time_parts_text(case: CaseSummary, idle: IdleGpu) -> str:
    """What the idle time goes to, the longest first: `1.8 ms of idle time: launches`; nothing where no gap tells."""
    parts = _largest_parts(idle, divide_idle_time(idle, idle_time_by_cause(case, idle)))
    if not parts:
        return ""
    size, listing = _sum_and_parts_text(parts)
    return f"{size} of idle time: {listing}"


def first_idle_part(case: CaseSummary, idle: IdleGpu) -> str:
    """What most of the idle time goes to, in the words of `idle_time_parts_text`; empty where no gap tells."""
    return next(iter(_largest_parts(idle, divide_idle_time(idle, idle_time_by_cause(case, idle)))), "")


def _largest_parts(idle: IdleGpu, parts: Mapping[str, float]) -> dict[str, float]:
    """Those that are no small part of the idle time, the longest first, in whole ns."""
    order = sorted(parts, key=lambda words: -parts[words])
    return {words: float(round(parts[words])) for words in order if parts[words] >= _LITTLE * idle.idle_ns}


def _sum_and_parts_text(parts: Mapping[str, float]) -> tuple[str, str]:
    total, sizes = format_sum_and_parts([*parts.values()])
    texts = [f"{words} {size.removesuffix(' more')}" for words, size in zip(parts, sizes, strict=True)]
    return total.removesuffix(" more"), ", ".join(texts) if len(parts) > 1 else next(iter(parts))


def _gap_times_by_words(idle: IdleGpu) -> dict[str, float]:
    """The idle time by what the host does in the gaps, as table gaps has it; long gaps are the host's own; ns."""
    of_any_length = _OF_ANY_LENGTH | ({"value"} if slow_reads(idle) else set())
    times = {
        words: idle.in_gaps(kind, lengths=(*SHORT, "long") if kind in of_any_length else SHORT)
        for kind, words in GAP_WORDS.items()
    }
    kinds = [kind for kind in GAP_WORDS if kind not in of_any_length]
    return times | {WORDS["host-work"]: idle.in_gaps(*kinds, lengths=("long",))}


def _iteration_time_text(case: CaseSummary, idle: IdleGpu) -> str:
    """An iteration with its time: of a few their range, whose median says little."""
    if not idle.is_iteration:
        span = idle.counted_time.replace("time", format_ns(idle.med_ns))
        return f"{span} from its first kernel on" if idle.counted_time == "the time" else span
    if case.iterations is None or not has_few_iterations(case) or idle.is_mean:
        article = "the mean" if idle.is_mean else "its" if idle.processes > 1 else "an"
        return f"{article} iteration of {format_ns(idle.med_ns)}"
    return f"iterations of {format_ns(case.iterations.least_ns)} to {format_ns(case.iterations.most_ns)}"


def idle_time_by_cause(case: CaseSummary, idle: IdleGpu) -> list[IdleCause]:
    """What keeps a GPU idle, the longest first; no idle time has two causes."""
    migrations = _migration_causes(idle)
    paged = sum(copy.calls for copy in idle.copies if copy.memory == "managed")
    if paged >= MOSTLY * idle.operations:  # gaps between migrations, which page faults cause
        return migrations
    restarted = restarted_workers_cause(case, idle)
    apart = _OF_ANY_LENGTH if restarted else _OF_ANY_LENGTH - {"spawn"}
    received, long_gaps = received_input_cause(case, idle), _long_gap_causes(case, idle, apart)
    if received and (idle.is_mean or received.cause in {cause.cause for cause in long_gaps}):  # then they are one cause
        together = _long_gap_causes(case, idle, apart - {"input"})
        is_received = bool(together) and received.saved_ns >= MOSTLY * together[0].saved_ns
        if is_received and together[0].cause == "periodic-slow-iteration":  # which says less
            received = replace(received, is_of_slow_iterations=True)
        else:
            received, long_gaps = None, together
    parts = [
        *migrations, received, restarted, *long_gaps,
        _call_gap_cause(idle, "allocate", "allocation-in-loop", "allocates and frees memory"),
        _loading_gap_cause(case, idle),
        small_copy_gap_cause(idle) or round_trip_cause(idle),
        *wait_and_launch_gap_causes(case, idle),
    ]  # fmt: skip
    has_evidence = idle.has_calls or case.host is not None
    known = [part for part in parts if part is not None and (has_evidence or part.cause in _BY_OTHERS)]
    return sorted(known, key=lambda part: -part.saved_ns)


def _migration_causes(idle: IdleGpu) -> list[IdleCause]:
    """Gaps around migrations: faults of pages, and what the host does with their data."""
    took_ns, host_ns = idle.in_gaps("migration"), host_work_in_migrations_ns(idle)
    if not took_ns:
        return []
    faults = IdleCause("page-faults", took_ns - host_ns, "", "")
    if not host_ns:
        return [faults]
    work = IdleCause(
        "host-work", host_ns, f"waits {format_ns(host_ns)} for the host",
        f"for {format_ns(host_ns)} of {IDLE_TIME} the host works on data in unified memory", _ON_GPU, "work on the GPU",
        named=((GAP_WORDS["migration"], host_ns),),
    )  # fmt: skip
    return [work, faults]


def _long_gap_causes(case: CaseSummary, idle: IdleGpu, others: frozenset[str]) -> list[IdleCause]:
    """Gaps of milliseconds, in which the host does something of its own; `others`: causes of gaps told apart.

    The first is that of most of them; a second one is of those that it does not hold for.
    """
    gaps = [g for g in idle.gaps if g.length == "long" and g.cause not in others and g.gaps]
    gaps = [g for g in gaps if g not in slow_reads(idle)]
    by_kind = group_by(gaps, lambda gap: gap.cause).values()
    sums = [(sum(g.total_ns for g in part), sum(g.gaps for g in part), part) for part in by_kind]
    large_ns = PART * sum(g.total_ns for g in gaps)
    longest = max((ns / count for ns, count, _ in sums if ns >= large_ns), default=0.0)
    # those of a few ms beside them are others
    gaps = [g for ns, count, part in sums if ns >= PART * longest * count for g in part]
    took = idle.gap_scale * sum(g.total_ns for g in gaps)
    if not took:
        return []
    slow, iterations = find_slow_iterations(case) if idle.is_mean else None, case.iterations
    if (
        slow is None or iterations is None or not slow.is_of_host
        or abs(slow.share_pct / 100 * idle.med_ns - took) > _ALIKE * took
    ):  # fmt: skip
        together = LongGaps(case, idle, gaps, took_ns=took, slow="", waits=f"waits {format_ns(took)} for ")
        first, alike = cause_of_long_gaps(together)
        found = [replace(first, named=_words_of(idle, alike.gaps), recurs=alike.recur)]
        if rest := [gap for gap in gaps if gap not in alike.gaps]:
            second, alike = cause_of_long_gaps(together.part(rest))
            second = replace(second, named=_words_of(idle, alike.gaps), recurs=alike.recur)
            found += [second] if second.cause != first.cause else []
        return found
    excess, usual = format_ns(slow.more_ns), format_ns(iterations.med_ns)
    text = f": {slow.subject} {slow.verb('take')} {excess} longer than the usual {usual}"
    waits = f"{slow.subject} {slow.verb('wait')} {excess} for "
    cause, alike = cause_of_long_gaps(LongGaps(case, idle, gaps, took_ns=took, slow=text, waits=waits))
    vague = cause.cause in _VAGUE and case.host is None
    name = "periodic-slow-iteration" if vague else cause.cause
    return [replace(cause, cause=name, is_of_slow_iterations=not vague, named=_words_of(idle, alike.gaps))]


def _words_of(idle: IdleGpu, gaps: Sequence[Gaps]) -> tuple[tuple[str, float], ...]:
    """The words of long gaps beside the idle time of a table, each with its ns."""
    return tuple(
        (GAP_WORDS[gap.cause] if gap.cause in _OF_ANY_LENGTH else WORDS["host-work"], idle.gap_scale * gap.total_ns)
        for gap in gaps
    )


def _call_gap_cause(idle: IdleGpu, kind: str, cause: str, text: str) -> IdleCause | None:
    """Gaps that calls of a kind fill."""
    took = idle.in_gaps(kind)
    if not took:
        return None
    allocations = {name: ns for name, ns in idle.calls.items() if _ALLOCATES.match(name)} if kind == "allocate" else {}
    if allocations:
        took = min(took, sum(allocations.values()))  # a gap may hold copies too
    most = f", most in {_largest_calls_text(allocations)}" if allocations else ""
    return IdleCause(cause, took, f"{text.replace('memory', '').strip()} {format_ns(took)}",
                     f"for {format_ns(took)} of {IDLE_TIME} the host {text}{most}")  # fmt: skip


def _largest_calls_text(calls: Mapping[str, float]) -> str:
    """The one or two calls that take much of the time of all, each with its ns an iteration."""
    much = [name for name in sorted(calls, key=lambda name: -calls[name]) if calls[name] >= PART * sum(calls.values())]
    return " and ".join(f"{name} ({format_ns(calls[name])} an iteration)" for name in much[:2])


def _loading_gap_cause(case: CaseSummary, idle: IdleGpu) -> IdleCause | None:
    """Gaps in which modules are loaded, by a compiler; where nothing compiles, by a library that is set up anew."""
    if detect_framework(case) != "any":
        return _call_gap_cause(idle, "load", "recompilation", "loads modules that were compiled")
    loading = _call_gap_cause(idle, "load", "recompilation", "loads modules, as a library does for each plan or handle")
    advice = "Make plans and handles of libraries (cuFFT, cuBLAS, cuDNN) once, before the loop."
    return loading and replace(loading, advice=advice, do="make plans once")
