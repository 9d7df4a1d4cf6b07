"""Rules over gaps of milliseconds, in which the host does something of its own: input, files, locks, results, a log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import MOSTLY, WORTH_PCT, detect_framework
from nsw.analysis.rules.host import host_work_while_idle
from nsw.analysis.rules.idle_causes import EACH, GAP_WORDS, IDLE_TIME, LOCKING, NEARLY, PART, RARE, SOME, IdleCause
from nsw.quantities import format_ns
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.idle_gpu import Gaps, IdleGpu, Sides

__all__ = [
    "KEEP_WORKERS", "LongGaps", "cause_of_long_gaps", "has_few_iterations", "received_input_cause",
    "restarted_workers_cause",
]  # fmt: skip

_FEW_ITERATIONS: Final = 8  # of fewer no one is usual
_UNLIKE: Final = 1.5  # times by which waits differ whose range is worth a word
_LARGE_RESULT: Final = 1 << 18  # bytes that the host copies back an iteration: its work on them takes long
_BOTH: Final = 0.7  # of the time of gaps between a copy back and one to the GPU: else the latter is what they share
_NUMBER: Final = 64  # bytes of a copy that is no input, but what an operation is given
_LONGER: Final = 1.1  # times the rest of an iteration: input that one thread cannot make beside it
_LISTED: Final = 2  # pairs of operations between which gaps are
_A_LINE: Final = 0.02  # of gaps that end with input: writes that take less do not say what the rest is
_OF_ONE_STEP: Final = 2.9  # gaps before input of an iteration, of which a loader's batch has one or two
_ONE_GAP, _ROUNDED = 1.25, 0.1  # gaps an iteration; of a number, by which a whole one may differ
_READ_AHEAD: Final = "Read ahead, beside the GPU's work, or keep the data in memory."
_WRITE_LESS_OFTEN: Final = "Write from a thread of its own beside the GPU's next work, or less often."
_WRITE_BESIDE: Final = (
    "Convert and write results from a thread beside the GPU's next work, convert them on the GPU, write binary instead"
    " of text, or write less often."
)
KEEP_WORKERS: Final = "DataLoader(persistent_workers=True) keeps its workers from epoch to epoch."
_LESS_WORK: Final = (
    "less work in the dataset's __getitem__ (decode less, store the data ready), or more of them (num_workers), each"
    " with one thread where CPUs are few (OMP_NUM_THREADS=1)."
)
_PIN: Final = (
    "DataLoader(pin_memory=True) receives and pins the next batch in a thread of its own, and"
    " .to(device, non_blocking=True) copies it; fewer and larger tensors a batch take less time."
)
_COPY_ONCE: Final = "Copy once, before the loop, what does not change; make the rest on the GPU, or ahead,"
_BESIDE: Final = "in a thread beside the GPU's work"


@dataclass(frozen=True, slots=True)
class LongGaps:
    """Gaps of milliseconds that are explained together.

    Attributes:
        case: The case.
        idle: The use of its GPU.
        gaps: The gaps, counts and ns of an iteration.
        took_ns: Their part of an iteration's idle time.
        slow: The iterations that they make slow, as a clause that goes behind their number; empty: none.
        waits: What waits, and how long, before `for input`.
        are_of_slow: Whether they are of a slow iteration alone, and `took_ns` of what it takes longer.
    """

    case: CaseSummary
    idle: IdleGpu
    gaps: Sequence[Gaps]
    took_ns: float
    slow: str
    waits: str
    are_of_slow: bool = False

    def sum_of(self, column: str) -> float:
        """The sum of a column of table gaps over them, in its unit, of an iteration."""
        return float(sum(getattr(gap, column) for gap in self.gaps))

    def are_mostly(self, column: str) -> bool:
        """Whether most of their time is in those that are counted in a column, such as `to_gpu`."""
        counted_ns = sum(gap.total_ns * getattr(gap, column) / gap.gaps for gap in self.gaps)
        return bool(counted_ns >= MOSTLY * self.sum_of("total_ns"))

    def only(self, *columns: str) -> LongGaps | None:
        """Those that are counted in columns such as `to_gpu`; None where most are not."""
        if not all(map(self.are_mostly, columns)):
            return None
        if self.slow or any(gap.sides is None for gap in self.gaps):
            return self  # whose rows mix them
        gaps = [gap for gap in self.gaps if all(getattr(gap, name) >= MOSTLY * gap.gaps for name in columns)]
        together = self.part(gaps)
        return together if len(columns) < 2 or together.took_ns >= _BOTH * self.took_ns else None

    def part(self, gaps: Sequence[Gaps]) -> LongGaps:
        """Some of them, with their part of the time."""
        took_ns = self.took_ns * sum(gap.total_ns for gap in gaps) / self.sum_of("total_ns")
        return replace(self, gaps=gaps, took_ns=took_ns, waits=f"waits {format_ns(took_ns)} for ")

    @property
    def head(self) -> str:
        """How long they take and how many there are, before what the host does in them."""
        number = _gap_count_text(self.idle, self.gaps, self.took_ns)
        return f"{format_ns(self.took_ns)} of {IDLE_TIME} are {number}{self.slow}, in which "

    @property
    def recur(self) -> bool:
        """Whether most of their time is in gaps of which many are between the same operations."""
        alike = [g for g in self.gaps if g.sides and (g.sides.before_bytes or g.sides.behind_bytes)]
        return sum(gap.total_ns for gap in alike) >= MOSTLY * self.sum_of("total_ns")

    @property
    def does_not_wait(self) -> bool:
        """Whether the host is known to wait for no other process or thread, and to read nothing from it."""
        waits = [gap.poll_ns + gap.lock_ns + gap.read_ns for gap in self.gaps if gap.poll_ns is not None]
        return len(waits) == len(self.gaps) and sum(waits) < PART * self.sum_of("total_ns")

    @property
    def framework(self) -> str:
        """What launches the kernels."""
        return detect_framework(self.case)


def cause_of_long_gaps(gaps: LongGaps) -> tuple[IdleCause, LongGaps]:
    """What the host does in them, the first of these that the timeline shows, and those that it is said of."""
    return next(
        (cause, alike) for columns, look in _LOOKS
        if (alike := gaps.only(*columns)) is not None and (cause := look(alike)) is not None
    )  # fmt: skip


def _measured_host_work(gaps: LongGaps) -> IdleCause | None:
    """What a profiler of the host saw."""
    if gaps.case.host is None or (work := host_work_while_idle(gaps.case, gaps.took_ns)) is None:
        return None
    fact = f"{gaps.slow.removeprefix(': ')}; {work.fact}" if gaps.slow else work.fact
    return IdleCause(work.cause, gaps.took_ns, work.what, fact, work.advice, work.do)


def _compilation(gaps: LongGaps) -> IdleCause | None:
    """Modules that are loaded in each iteration, not apart from these gaps as by a library."""
    idle, iterations = gaps.idle, gaps.case.iterations
    loads_apart = sum(g.gaps for g in idle.gaps if g.cause == "load" and g.length == "long") >= RARE
    if not idle.is_iteration or loads_apart or iterations is None or idle.loads < iterations.count:
        return None
    text = f"{gaps.head}the host computes: modules are loaded in each iteration, as a compiler compiles again"
    return IdleCause("recompilation", gaps.took_ns, f"compiles {format_ns(gaps.took_ns)}", text)


def _locks(gaps: LongGaps) -> IdleCause | None:
    """Several threads that wait for a lock in turn."""
    idle, threads = gaps.idle, gaps.idle.use.get("lock_threads", 0.0)
    is_everywhere = gaps.sum_of("gaps") >= EACH * idle.operations
    if threads < LOCKING or not (gaps.sum_of("lock_ns") >= PART * gaps.sum_of("total_ns") or is_everywhere):
        return None
    text = f"the host waits for its other threads: {threads:.0f} wait for a lock in turn, as threads of Python do"
    return IdleCause("python-threads", gaps.took_ns, f"{gaps.waits}threads", f"{gaps.head}{text}")


def _started_workers(gaps: LongGaps) -> IdleCause | None:
    """Input from workers that PyTorch has started."""
    is_input = not gaps.are_mostly("opening") and not gaps.are_mostly("from_gpu")
    if gaps.framework != "pytorch" or not gaps.idle.use.get("spawns") or not is_input or gaps.does_not_wait:
        return None
    return IdleCause(
        "data-loader", gaps.took_ns, f"{gaps.waits}the DataLoader",
        f"{gaps.head}the host waits for input, which it then copies to the GPU, from processes that it started"
        " (a DataLoader's workers)",
    )  # fmt: skip


def _files(gaps: LongGaps) -> IdleCause | None:
    """Files that are read or written for much of the time, or opened for results."""
    reads, writes, opens = (gaps.sum_of(f"{does}_ns") for does in ("read", "write", "open"))
    all_ns, io_ns = gaps.sum_of("total_ns"), reads + writes + opens
    if io_ns >= PART * all_ns:
        does = "writes" if writes >= reads else "reads"
        rest = "" if io_ns >= MOSTLY * all_ns else " and works on something else"
        share = f"{min(100.0, 100 * io_ns / all_ns):.0f} % of that time"
        advice = ""
        if writes <= SOME * reads:
            advice = _READ_AHEAD
        elif reads <= SOME * writes and gaps.sum_of("gaps") >= RARE:
            advice = _WRITE_LESS_OFTEN if gaps.are_of_slow else _WRITE_BESIDE
        return IdleCause(
            "file-io", gaps.took_ns, f"{gaps.waits}files", f"{gaps.head}the host {does} files ({share}){rest}", advice
        )
    if not gaps.are_mostly("opening") or not gaps.are_mostly("from_gpu") or gaps.are_mostly("to_gpu"):
        return None
    return IdleCause(
        "file-io", gaps.took_ns, f"works {format_ns(gaps.took_ns)} on results",
        f"{gaps.head}the host works on results that were copied to it, and opens or closes a file: it writes them",
        _WRITE_BESIDE, "write beside",
    )  # fmt: skip


def _marked_loader(gaps: LongGaps) -> IdleCause | None:
    """Waits for PyTorch's DataLoader, which its ranges mark."""
    if (gaps.case.loading_ns or 0.0) < PART * gaps.took_ns:
        return None
    problem, fact = _loading_time_texts(gaps.case, gaps.idle, gaps.took_ns)
    waits, iterations = gaps.case.loading_waits_ns, gaps.case.iterations
    took_ns = gaps.took_ns
    if iterations is not None and len(waits) == iterations.count:  # the rest of these gaps is the host's
        took_ns = min(took_ns, sum(waits) / len(waits))
    return IdleCause("data-loader", took_ns, f"waits {problem}", fact, gaps_ns=gaps.took_ns)


def _cuda_calls(gaps: LongGaps) -> IdleCause | None:
    """CUDA calls that take most of the time."""
    if gaps.sum_of("cuda_ns") < MOSTLY * gaps.sum_of("total_ns"):
        return None
    if gaps.are_of_slow:  # the calls that are known are of all iterations
        longest = max(gaps.gaps, key=lambda gap: gap.cuda_ns)
        text = f"{gaps.head}the host is in CUDA calls ({GAP_WORDS[longest.cause]})"
    else:
        calls = gaps.idle.calls.items()
        call, call_ns = max(calls, key=lambda item: item[1], default=("a CUDA call", gaps.took_ns))
        text = f"{gaps.head}the host is in CUDA calls, most in {call} ({format_ns(call_ns)})"
    return IdleCause("host-call", gaps.took_ns, f"waits {format_ns(gaps.took_ns)} for a CUDA call", text)


def _log(gaps: LongGaps) -> IdleCause | None:
    """Writes in most of them, and not in shorter gaps too, as threads have that wake each other."""
    between = [gap for gap in gaps.idle.gaps if gap.length == "middle"]
    is_everywhere = sum(g.writing for g in between) >= MOSTLY * sum(g.gaps for g in between) > 0
    if not gaps.are_mostly("writing") or is_everywhere or gaps.are_of_slow:  # a line that takes none of their time
        return None
    is_short = gaps.sum_of("write_ns") < _A_LINE * gaps.sum_of("total_ns")
    if is_short and (gaps.are_mostly("to_gpu") or gaps.framework == "jax"):
        return None  # beside the preparation of input; XLA wakes its threads by writing
    text, share = "and writes: a log", gaps.sum_of("writing") / gaps.sum_of("gaps")
    if share < NEARLY:
        text = f"and writes in {100 * share:.0f} % of the gaps: probably a log"
    fact = f"{gaps.head}the host computes or formats, {text}"
    return IdleCause("logging", gaps.took_ns, f"{gaps.waits}the host, which writes", fact)


def _results_and_input(gaps: LongGaps) -> IdleCause:
    """Work between a copy back and one to the GPU."""
    ahead = "in DataLoader's workers (num_workers)" if gaps.framework == "pytorch" else "in another thread"
    return IdleCause(
        "host-work", gaps.took_ns, f"{gaps.waits}the host",
        f"{gaps.head}the host makes no CUDA call, between a copy of results to it and one of input to the GPU: it works"
        " on what it read back, or prepares its input",
        f"Work on the results on the GPU, or in a thread beside its next work; prepare the input ahead, {ahead}."
        f" {causes()['host-work'].remedy(gaps.framework)}",
        "results on the GPU, input ahead",
    )  # fmt: skip


def _results(gaps: LongGaps) -> IdleCause | None:
    """Work behind large results, or behind each of several values or results of an iteration."""
    idle, count = gaps.idle, gaps.sum_of("gaps")
    behind_results = gaps.are_mostly("from_gpu")
    behind_values = sum(gap.gaps for gap in gaps.gaps if gap.cause == "value") >= MOSTLY * count
    is_large = any((c.total_bytes or 0.0) >= _LARGE_RESULT and c.direction == "from the GPU" for c in idle.copies)
    is_for_each = idle.is_iteration and count >= _OF_ONE_STEP and (behind_values or behind_results)
    if gaps.are_of_slow:  # the usual work on values is in usual iterations too
        is_for_each = behind_results
    if not is_for_each and not (behind_results and is_large):
        return None
    return IdleCause(
        "host-work", gaps.took_ns, f"works {format_ns(gaps.took_ns)} on results",
        f"{gaps.head}the host makes no CUDA call, behind a copy of results to it: it works on them{_sides_text(gaps)}",
        "Do that on the GPU (a sum, a norm, a selection), so that less is copied; do it less often, or in a thread"
        f" beside the GPU's next work. {causes()['host-work'].remedy(gaps.framework)}",
        "results on the GPU",
    )  # fmt: skip


def _input(gaps: LongGaps) -> IdleCause | None:
    """Work before a copy to the GPU, unless that is a number."""
    numbers = (gap.total_ns for gap in gaps.gaps if gap.sides and 0 < (gap.sides.behind_bytes or 0) <= _NUMBER)
    if sum(numbers) >= MOSTLY * gaps.sum_of("total_ns"):
        return None
    idle, does = gaps.idle, "the host makes no CUDA call, and then copies its input to the GPU"
    if not idle.has_calls:
        does = "the GPU waits for a copy to it"
    has_no_workers = idle.use.get("spawns") == 0
    is_of_step = (
        has_no_workers
        or gaps.does_not_wait
        or (  # else one or two gaps a step are a batch's
            idle.is_iteration and gaps.sum_of("gaps") >= _OF_ONE_STEP and not idle.use.get("spawns")
        )
    )
    where = _BESIDE + (" or in DataLoader's workers." if gaps.framework == "pytorch" else ".")
    advice = f"{_COPY_ONCE} {where}" if is_of_step or gaps.are_of_slow else ""
    if is_of_step and not gaps.are_of_slow:
        advice += _threads_text(gaps)
    return IdleCause("data-loader", gaps.took_ns, f"{gaps.waits}input", gaps.head + does + _sides_text(gaps), advice)


def _threads_text(gaps: LongGaps) -> str:
    """How many threads hide input that takes longer than the rest of an iteration; empty: one does."""
    rest_ns = gaps.idle.med_ns - gaps.took_ns
    if not gaps.idle.is_iteration or gaps.took_ns <= _LONGER * rest_ns:
        return ""
    share, threads = 100 * rest_ns / gaps.idle.med_ns, math.ceil(gaps.took_ns / rest_ns)
    return (
        f" It takes longer than the rest of an iteration ({format_ns(rest_ns)}): one thread saves no more than"
        f" {share:.0f} %, {threads} of them hide all of it."
    )


def _host_work(gaps: LongGaps) -> IdleCause:
    """Work of which nothing else is known."""
    calls, all_ns = gaps.sum_of("cuda_ns"), gaps.sum_of("total_ns")
    does = "makes no CUDA call"
    if calls >= SOME * all_ns:
        does = f"is outside of CUDA calls for {100 * (1 - calls / all_ns):.0f} % of the time"
    return IdleCause(
        "host-work", gaps.took_ns, f"{gaps.waits}the host", f"{gaps.head}the host {does}{_sides_text(gaps)}"
    )


def _sides_text(gaps: LongGaps) -> str:
    """Between which copies they are, where the same ones have much of their time."""
    times: dict[Sides, float] = {}
    for gap in gaps.gaps:
        if gap.sides is not None and (gap.sides.before_bytes or gap.sides.behind_bytes):
            times[gap.sides] = times.get(gap.sides, 0.0) + gap.total_ns / gaps.sum_of("total_ns")
    largest = [sides for sides in sorted(times, key=lambda sides: -times[sides]) if times[sides] >= PART / 2][:_LISTED]
    if sum(times[sides] for sides in largest) < MOSTLY:
        return ""
    if times[largest[0]] >= NEARLY:
        return f" ({'each' if len(gaps.gaps) == 1 else 'nearly all'} {_between_text(largest[0])})"
    return f" ({', '.join(f'{format_ns(times[sides] * gaps.took_ns)} {_between_text(sides)}' for sides in largest)})"


def _between_text(sides: Sides) -> str:
    """Between which operations gaps are; a kernel before them says nothing."""
    behind = _operation_text(sides.behind, sides.behind_bytes)
    if sides.before == "kernel":
        return f"before {behind}"
    return f"between {_operation_text(sides.before, sides.before_bytes)} and {behind}"


def _operation_text(kind: str, size: int | None) -> str:
    """An operation of table gaps, such as `copy to the GPU, pageable`, with its bytes."""
    name, _, memory = kind.partition(", ")
    way = name.removeprefix("copy")
    towards = "to" if "from" in way else "from"
    size_text = f" of {plural(size, 'byte')}" if size else ""
    text = name if way == name else f"copy{size_text}{way}"
    return f"a {text}{f' {towards} {memory} memory' if memory else ''}"


# each with what most of the gaps share that it is said of
_LOOKS: Final[tuple[tuple[tuple[str, ...], Callable[[LongGaps], IdleCause | None]], ...]] = (
    ((), _measured_host_work), ((), _compilation), ((), _locks), (("to_gpu",), _started_workers), ((), _files),
    ((), _marked_loader), ((), _cuda_calls), ((), _log), (("to_gpu", "from_gpu"), _results_and_input),
    (("from_gpu",), _results), ((), _results), (("to_gpu",), _input), ((), _host_work),
)  # fmt: skip


def has_few_iterations(case: CaseSummary) -> bool:
    """Whether no one of its iterations is usual."""
    return case.iterations is not None and case.iterations.count < _FEW_ITERATIONS


def received_input_cause(case: CaseSummary, idle: IdleGpu) -> IdleCause | None:
    """Gaps in which the host receives what it then copies to the GPU; None: there are none."""
    took = idle.in_gaps("input")
    if not took:
        return None
    received = [gap for gap in idle.gaps if gap.cause == "input"]
    sender, advice, waited = "another process", "", ""
    if detect_framework(case) == "pytorch":
        sender = "a DataLoader's worker"
        advice = f"Where the workers are late: {_LESS_WORK} Where they are not: {_PIN}"
        polls = [gap.poll_ns for gap in received if gap.poll_ns is not None]
        all_ns = sum(gap.total_ns for gap in received)
        share, reads = sum(polls) / all_ns, sum(gap.read_ns for gap in received) / all_ns
        if share >= NEARLY:
            waited = f" ({100 * share:.0f} % of that time it waits for the worker)"
            advice = f"The workers are late: {_LESS_WORK}"
        elif len(polls) == len(received) and share < SOME and reads < PART:
            waited, advice = ", hardly waiting for it", f"The batches are ready: {_PIN}"
    fact = f"{format_ns(took)} of {IDLE_TIME} are {_gap_count_text(idle, received, took)}, in which the host receives"
    return IdleCause(
        "data-loader", took, f"waits {format_ns(took)} for input",
        f"{fact} its input from {sender}{waited}, and then copies it to the GPU", advice,
    )  # fmt: skip


def restarted_workers_cause(case: CaseSummary, idle: IdleGpu) -> IdleCause | None:
    """Gaps in which PyTorch starts a DataLoader's workers, before it copies their first batch; None: there are none."""
    if not (took := idle.in_gaps("spawn")) or detect_framework(case) != "pytorch":
        return None
    gaps = _gap_count_text(idle, [gap for gap in idle.gaps if gap.cause == "spawn"], took)
    return IdleCause(
        "data-loader", took, f"starts workers {format_ns(took)}",
        f"{format_ns(took)} of {IDLE_TIME} are {gaps}, in which the host starts processes, as an epoch does for its"
        " DataLoader's workers, and then copies their first input to the GPU", KEEP_WORKERS, "keep the workers",
        named=((GAP_WORDS["spawn"], took),), is_of_slow_iterations=True,
    )  # fmt: skip


def _loading_time_texts(case: CaseSummary, idle: IdleGpu, took: float) -> tuple[str, str]:
    """How long the DataLoader is waited for, in a few words and as a fact.

    Of few unlike waits it is their range, or, where one is no wait, those that are.
    """
    median, (shortest, longest) = format_ns(min(case.loading_ns or 0.0, took)), case.loading_range_ns or (0.0, 0.0)
    least, most = format_ns(shortest), format_ns(longest)
    problem, fact = f"{median} for the DataLoader", f"the program waits {median} (the median) for its DataLoader"
    if longest <= _UNLIKE * shortest:
        return problem, fact
    if not has_few_iterations(case):
        return problem, f"the program waits {median} (the median; {least} to {most}) for its DataLoader"
    noticeable_ns = WORTH_PCT / 100 * idle.med_ns
    if shortest >= noticeable_ns:
        return f"{least} to {most} for the DataLoader", f"the program waits {least} to {most} for its DataLoader"
    problem, waits = f"up to {most} for the DataLoader", case.loading_waits_ns
    if case.iterations is None or case.iterations.count != len(waits):
        return problem, f"the program waits up to {most} for its DataLoader"
    long_waits = [format_ns(ns) for ns in waits if ns >= noticeable_ns]
    share = f"{len(long_waits)} of {len(waits)}"
    return (
        f"{problem} in {share} iterations",
        f"in {share} the program waits {' and '.join(long_waits)} for its DataLoader",
    )


def _gap_count_text(idle: IdleGpu, gaps: Sequence[Gaps], took_ns: float) -> str:
    """How many gaps there are in an iteration, with the length of the mean one; few are counted over all.

    Args:
        idle: The use of the GPU.
        gaps: The gaps.
        took_ns: How long a sentence says that they take.
    """
    count = sum(gap.gaps for gap in gaps)
    if idle.is_iteration and count < RARE and (iterations := idle.use.get("iterations")):
        length = format_ns(sum(gap.total_ns for gap in gaps) / count)
        return f"{plural(round(count * iterations), 'gap')} of {length} on average in {iterations:.0f} iterations"
    if count <= _ONE_GAP:
        return "one gap"
    number = f"{count:.0f}" if abs(count - round(count)) < _ROUNDED * count else f"{count:.1f}"
    return f"{number} gaps of {format_ns(took_ns / count)}"
