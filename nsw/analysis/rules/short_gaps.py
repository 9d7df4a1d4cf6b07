"""Rules over gaps of microseconds: launches, waits for the GPU, values read back, small copies, round trips."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import MOSTLY, detect_framework, iteration_count
from nsw.analysis.rules.idle_causes import (
    EACH,
    GAP_WORDS,
    IDLE_TIME,
    LOCKING,
    NEARLY,
    PART,
    RARE,
    SHORT,
    SOME,
    IdleCause,
    often_text,
    slow_reads,
)
from nsw.quantities import format_ns
from nsw.wording import plural

if TYPE_CHECKING:
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.idle_gpu import Copies, IdleGpu

__all__ = ["round_trip_cause", "small_copy_gap_cause", "wait_and_launch_gap_causes"]

_MANY: Final = 20  # launches of an iteration
_GRAPH: Final = re.compile(r"cu(?:da)?GraphLaunch")
_SELECTS: Final = re.compile(r"Select|Unique|Partition|nonzero", re.IGNORECASE)  # in a kernel's own name
_SELECTING: Final = re.compile(r"\bcub\b|nonzero|index|gather|scatter", re.IGNORECASE)
_SIZES: Final = 0.4  # values that are read for each kernel of a selection, which may take two: else they are no sizes
_STRETCH: Final = 25  # operations between two values that are read back, which a graph is worth for
_MANY_READS: Final = 10  # an iteration: no convergence test or log has so many
_ONCE: Final = 1.5  # an iteration, at whose end a value may be read back
_OUTWEIGHS: Final = 1.5  # times what waits cost: launches that are the first thing to cure
_PREVENTS: Final = 0.1  # of an iteration: waits of which so much comes are the first thing to cure
_LATE: Final = 0.3  # of an iteration: launches that take more are told by themselves
_OF_LOOPS: Final = 1000  # operations of one compiled program, from which a loop in it launches them
_UNROLL: Final = (
    "Give a step of the loop more work: jax.lax.scan(..., unroll=8) or more, jax.vmap over independent problems"
    " (chains, samples); where steps combine associatively, jax.lax.associative_scan."
)
_RECURRENT_STEP: Final = re.compile(r"elemWiseRNNcell|(?:LSTM|GRU)_elementWise")  # of cuDNN
_STEPS: Final = 0.2  # of all operations: steps of recurrent layers, beside which there are their products
# by PyTorch's documentation of nn.LSTM
_WHOLE_SEQUENCES: Final = (
    "The recurrent layers are launched step by step. In half precision, and with padded rather than packed input, cuDNN"
    " may run a whole sequence in one kernel (of nn.LSTM, nn.GRU, not of cells in a loop); or a larger batch."
)
_CELL: Final = re.compile(r"(?:lstm|gru)_cell_(?:for|back)ward")  # of PyTorch
_CELLS: Final = 0.05  # of all operations, beside which there are two products each
_LAYERS_FOR_CELLS: Final = (
    "Recurrent cells are launched step by step (nn.LSTMCell, nn.GRUCell). Where the inputs of all steps are known"
    " before, nn.LSTM or nn.GRU runs whole sequences; else CUDA graphs (torch.compile(mode='reduce-overhead')), or a"
    " larger batch."
)
_COMPUTE_ON_GPU: Final = (
    "Keep the values on the GPU, and compute there what the host computes from them (tensors, a kernel of one block,"
    " cuSOLVER), or do so less often."
)
_NUMBER, _A_FEW, _VALUE, _SMALL = 8, 64, 4096, 65536  # bytes
_PYTHONS: Final = frozenset({"pytorch", "jax", "python"})
_FEW_COPIES: Final = 4  # an iteration
_HOSTS_NS: Final = 100e3  # of few gaps, from which they are no launches


def small_copy_gap_cause(idle: IdleGpu) -> IdleCause | None:
    """Gaps around copies that block the host: many small ones."""
    share, follow = _small_copy_share(idle), float(_do_waits_follow_copies(idle))
    count, every = (sum(copy.calls for copy in copies) for copies in (_host_copies(idle), idle.copies))
    parts = {"copy": count / every if every else 1.0, "synchronise": follow, "launch": share, "queued": share}
    named = tuple((GAP_WORDS[kind], part * idle.in_gaps(kind, lengths=SHORT)) for kind, part in parts.items() if part)
    took = sum(ns for _, ns in named)
    small = _small_copies(idle)
    if not took or sum(copy.calls for copy in small) < max(MOSTLY * count, _FEW_COPIES):
        return None
    saved = (took + sum(c.alone_ns for c in small)) * (1 - 1 / count)
    size = max(small, key=lambda c: c.calls).med_bytes or 0.0
    return IdleCause(
        "small-copies",
        saved,
        f"{count:,.0f} copies of {_size_text(size)}",
        f"{format_ns(took)} of {IDLE_TIME} are gaps around {count:,.0f} small copies ({_size_text(size)} the median)",
        gaps_ns=took,
        named=named,
    )


def round_trip_cause(idle: IdleGpu) -> IdleCause | None:
    """Gaps between kernels in which the host works on what it copied from the GPU, many times an iteration."""
    gaps = [gap for gap in idle.gaps if gap.cause == "copy" and gap.length == "middle"]
    count, total_ns = sum(gap.gaps for gap in gaps), sum(gap.total_ns for gap in gaps)
    own_ns = total_ns - sum(gap.cuda_ns for gap in gaps)
    behind_copies = sum(gap.from_gpu for gap in gaps)
    if not idle.is_iteration or count < _FEW_COPIES or behind_copies < NEARLY * count or own_ns < PART * total_ns:
        return None
    took = idle.in_gaps("copy", lengths=("middle",))
    return IdleCause(
        "host-round-trips", took, f"{count:,.0f} round trips to the host",
        f"{count:,.0f} times an iteration, for {format_ns(took)} of {IDLE_TIME}, the next kernel waits while the host"
        f" copies a result from the GPU and works {format_ns(own_ns / count)} on it",
        named=((GAP_WORDS["copy"], took),),
    )  # fmt: skip


def _host_copies(idle: IdleGpu) -> list[Copies]:
    """The copies between host and GPU."""
    return [copy for copy in idle.copies if copy.direction != "on the GPU"]


def _small_copies(idle: IdleGpu) -> list[Copies]:
    """Those that are small."""
    return [copy for copy in _host_copies(idle) if copy.med_bytes is not None and copy.med_bytes <= _SMALL]


def _small_copy_share(idle: IdleGpu) -> float:
    """What of the gaps between launches is between small copies, 0 to 1: where most operations are such copies."""
    few = sum(copy.calls for copy in _small_copies(idle))
    is_most = few >= max(MOSTLY * idle.operations, MOSTLY * sum(copy.calls for copy in _host_copies(idle)), _FEW_COPIES)
    return min(few / idle.operations, 1.0) if is_most else 0.0


def _do_waits_follow_copies(idle: IdleGpu) -> bool:
    """Whether the GPU does little more than copies to it, and the host waits for each, as PyTorch's `copy_` does."""
    waits = [gaps for gaps in idle.gaps if gaps.cause == "synchronise" and gaps.length in SHORT]
    copies = sum(copy.calls for copy in idle.copies if copy.direction == "to the GPU")
    to_gpu, count = sum(gaps.to_gpu for gaps in waits), sum(gaps.gaps for gaps in waits)
    return copies >= NEARLY * idle.operations and to_gpu >= NEARLY * count


def _size_text(size: float) -> str:
    return f"{size / 1024:.0f} KiB" if size >= 1024 else f"{size:.0f} bytes"


def wait_and_launch_gap_causes(case: CaseSummary, idle: IdleGpu) -> list[IdleCause]:
    """Gaps of microseconds: waits for the GPU, as far as the host would be ahead without them, and launches."""
    gaps = _divide_short_gaps(case, idle)
    parts = []
    late = _late_launches_cause(idle, gaps)
    if late is not None:
        return [late]
    if gaps.waits_ns:
        by_wait = _gpu_wait_gap_cause(
            case, idle, gaps.waits_ns, is_value=gaps.value_gaps_ns >= gaps.wait_gaps_ns, a_kernel=_waits_a_kernel(idle)
        )
        parts.append(replace(by_wait, gaps_ns=max(gaps.value_gaps_ns, gaps.wait_gaps_ns)))
        if gaps.waits_ns >= _PREVENTS * idle.med_ns and not gaps.launches_outweigh:  # no graph can hold them
            return parts
    if gaps.launches_ns:
        locked = _lock_share_of_launch_gaps(idle)
        parts.append(
            _threads_cause(idle, gaps, locked) if locked
            else _host_work_cause(idle, gaps) if _are_launch_gaps_of_the_host(idle)
            else _launch_bound_cause(case, idle, gaps)
        )  # fmt: skip
    return parts


@dataclass(frozen=True, slots=True)
class _ShortGaps:
    """Gaps of microseconds of an iteration, ns; the first two as what would be saved.

    Attributes:
        launches_ns: By faster launches.
        waits_ns: Without waits for the GPU and values read back.
        launch_gaps_ns: All gaps of launches.
        wait_gaps_ns: Those of waits that are a fault.
        value_gaps_ns: Those of values read back.
        launches_outweigh: Whether launches are the first thing to cure.
    """

    launches_ns: float
    waits_ns: float
    launch_gaps_ns: float
    wait_gaps_ns: float
    value_gaps_ns: float
    launches_outweigh: bool


def _divide_short_gaps(case: CaseSummary, idle: IdleGpu) -> _ShortGaps:
    """What of the gaps is of launches, and what of waits: without these the host is ahead as far as it is faster."""
    launches, waits, values = (idle.in_gaps(kind, lengths=SHORT) for kind in ("launch", "synchronise", "value"))
    if slow_reads(idle):
        values = idle.in_gaps("value")
    launches *= 1 - _small_copy_share(idle)
    launch_gaps_ns = launches
    if _do_waits_follow_copies(idle):
        waits = 0.0
    elif _waits_a_kernel(idle) < EACH or any(_GRAPH.match(name) for name in idle.calls):
        waits = 0.0  # behind many kernels, or a graph, is no fault
    by_waits, outweighed = waits + values, False
    if launches and by_waits:
        # without waits the host is ahead, unless it takes longer than the GPU
        ahead = max(_gpu_work_ns(idle), _host_ns(idle))
        freed = min(max(idle.med_ns - ahead, by_waits), launches + by_waits)
        selected = _selection_kernel_share(case, idle) if values > waits else 0.0
        freed = max(freed, by_waits + selected * launches)
        # graphs can hold what lies between the values, and save all launches
        is_rare = idle.operations >= _STRETCH * idle.use.get("values", 0.0)
        outweighed = launches >= _OUTWEIGHS * freed and (is_rare or not selected)
        if not outweighed:
            launches, by_waits = launches + by_waits - freed, freed
    return _ShortGaps(launches, by_waits, launch_gaps_ns, waits, values, outweighed)


def _late_launches_cause(idle: IdleGpu, gaps: _ShortGaps) -> IdleCause | None:
    """Launches that come late, since the host waits in each iteration for a value, and is not ahead behind it.

    Without the wait it would be, as far as it is faster than the GPU. Where there are gaps at the values themselves,
    or where launches are the first thing to cure, other causes tell.
    """
    values, waits_ns = idle.use.get("values", 0.0), idle.med_ns - _host_ns(idle)
    at_waits_ns = max(gaps.value_gaps_ns, gaps.wait_gaps_ns)
    if at_waits_ns > SOME * gaps.launch_gaps_ns or gaps.launch_gaps_ns >= _LATE * idle.med_ns:
        return None
    saved_ns = min(gaps.launch_gaps_ns, idle.med_ns - max(_gpu_work_ns(idle), _host_ns(idle)))
    if not idle.is_iteration or values < RARE or saved_ns <= waits_ns * PART:
        return None
    count = "a value" if values < _ONCE else f"{values:,.0f} values"
    return IdleCause(
        "scalar-reads", saved_ns, f"waits {format_ns(waits_ns)} for {count}",
        f"the host waits {format_ns(waits_ns)} an iteration for the GPU, where it reads {count} back, so that its next"
        " launches come late",
    )  # fmt: skip


def _waits_a_kernel(idle: IdleGpu) -> float:
    """How many waits for the GPU come on a kernel."""
    return idle.use.get("waits", 0.0) / max(idle.use.get("kernels", 0.0), 1.0)


def _gpu_work_ns(idle: IdleGpu) -> float:
    """How long the GPU works in an iteration, ns."""
    return idle.med_ns * idle.busy_pct / 100


def _median_scale(idle: IdleGpu) -> float:
    """What times of the mean iteration are multiplied by for the median one."""
    span_ns = idle.use.get("span_ns")
    return idle.med_ns / span_ns if span_ns and idle.is_iteration else 1.0


def _host_ns(idle: IdleGpu) -> float:
    """How long the host works in an iteration without its waits for the GPU, ns."""
    waiting = idle.use.get("wait_ns", 0.0) + idle.use.get("copy_ns", 0.0)
    return max(idle.med_ns - _median_scale(idle) * waiting, 0.0)


def _are_launch_gaps_of_the_host(idle: IdleGpu) -> bool:
    """Whether few operations have gaps between them that are too long for launches."""
    middle = [gap for gap in idle.gaps if gap.cause == "launch" and gap.length == "middle"]
    took_ns, count = sum(gap.total_ns for gap in middle), sum(gap.gaps for gap in middle)
    return bool(middle) and idle.operations < _MANY and took_ns >= _HOSTS_NS * count


def _threads_cause(idle: IdleGpu, gaps: _ShortGaps, locked: float) -> IdleCause:
    """Launches that wait for other threads, for `locked` of their gaps, 0 to 1."""
    threads = f"{idle.use['lock_threads']:.0f} wait for a lock in turn, as threads of Python do"
    locked_ns = gaps.launch_gaps_ns * locked
    took = format_ns(locked_ns)
    return IdleCause(
        "python-threads", gaps.launches_ns * locked, f"waits {took} for threads",
        f"for {took} of {IDLE_TIME}, between launches, the host waits for its other threads: {threads}",
        gaps_ns=locked_ns, named=((GAP_WORDS["launch"], locked_ns),),
    )  # fmt: skip


def _host_work_cause(idle: IdleGpu, gaps: _ShortGaps) -> IdleCause:
    operations = plural(round(idle.operations), "operation")
    return IdleCause("host-work", gaps.launches_ns, f"waits for the host, {operations}",
                     f"between its {operations} it waits for the host", gaps_ns=gaps.launch_gaps_ns,
                     named=((GAP_WORDS["launch"], gaps.launch_gaps_ns),))  # fmt: skip


def _launch_bound_cause(case: CaseSummary, idle: IdleGpu, gaps: _ShortGaps) -> IdleCause:
    operations = plural(round(idle.operations), "operation")
    # a mean says nothing of operations of which one takes most
    is_uneven = round(idle.operations) != 1 and _is_work_in_few_operations(case)
    work = _gpu_work_ns(idle) / max(idle.operations, 1.0)
    short = f"launch-bound, {operations}{'' if is_uneven else f' of {format_ns(work)}'}"
    fact, advice, do = _launches_text(idle, is_uneven=is_uneven), "", ""
    if _is_loop_of_compiled_step(case, idle):
        advice, do = _UNROLL, "unroll the loop, or make it parallel"
        program = "a compiled program (jax.jit) runs its loop step by step"
        if idle.is_iteration:
            program = "an iteration is one call of a compiled program (jax.jit), whose loop runs step by step"
        fact = f"{program}: {fact}"
    elif idle.use.get("values", 0.0) > _ONCE and _are_values_conditions(case, idle):
        advice = _conditions_advice(idle)
    elif detect_framework(case) == "jax":
        do = "larger jitted steps"
    elif _share_of_operations(case, _CELL) >= _CELLS:
        advice, do = _LAYERS_FOR_CELLS, "layers in place of cells"
    elif _share_of_operations(case, _RECURRENT_STEP) >= _STEPS and detect_framework(case) == "pytorch":
        advice, do = _WHOLE_SEQUENCES, "half precision, padded input"
    return IdleCause(
        "launch-bound", gaps.launches_ns, short, f"launch-bound: {fact}", advice, do, gaps_ns=gaps.launch_gaps_ns
    )


def _launches_text(idle: IdleGpu, *, is_uneven: bool) -> str:
    """How long operations keep the GPU busy, and how long the host takes for a launch, and on what."""
    gpu_ns, operations = _gpu_work_ns(idle), max(idle.operations, 1.0)
    count, is_single = idle.use.get("launches") or idle.operations, round(idle.operations) == 1
    head = f"{plural(round(idle.operations), 'operation')}{' an iteration' if idle.is_iteration else ''}"
    busy = f"keep{'s' * is_single} it busy for {format_ns(gpu_ns if is_uneven else gpu_ns / operations)}"
    busy += "" if is_single else " in all" if is_uneven else " each"
    in_calls_ns = idle.use.get("cuda_ns", 0.0) - idle.use.get("wait_ns", 0.0)
    spent = in_calls_ns / count if count else 0.0
    if not idle.is_iteration or not spent:  # its calls are those of set-up too
        return f"{head}, one every {format_ns(idle.med_ns / operations)}, {busy}"
    long_ns = idle.in_gaps(*GAP_WORDS, lengths=("long",))  # which the host does something else in
    host_ns = _host_ns(idle) if idle.is_mean else idle.use.get("host_ns") or _host_ns(idle)
    a_launch = max((host_ns - long_ns) / count, spent)
    launches = f"each of {count:,.0f} launches" if round(count) > 1 else "a launch"
    between = a_launch - spent
    part = f"{format_ns(spent)} of that in CUDA calls"
    if between >= MOSTLY * a_launch:
        part = f"{format_ns(between)} of that between CUDA calls (Python, the framework)"
    return f"{head} {busy}; the host takes {format_ns(a_launch)} for {launches}, {part}"


def _conditions_advice(idle: IdleGpu) -> str:
    """What to do where conditions on tensors are read back, which a graph cannot hold."""
    values = idle.use["values"]
    conditions = "conditions on tensors (`if tensor:`, validate_args of torch.distributions)"
    times, remedy = often_text(idle, values), causes()["launch-bound"].remedy("pytorch")
    if idle.operations >= _STRETCH * values:  # a graph holds what lies between them
        return f"{remedy} Remove {conditions} too: {values:,.0f} values are read back {times}."
    return (
        f"First remove {conditions}: {values:,.0f} values are read back {times}, most of one byte, and no graph can"
        f" hold them. Then {remedy}"
    )


def _is_work_in_few_operations(case: CaseSummary) -> bool:
    """Whether most of the GPU's work is in few of its operations."""
    first, calls = next(iter(case.gpu_work), None), sum(share.calls or 0.0 for share in case.gpu_work)
    return first is not None and first.share_pct >= 100 * MOSTLY and (first.calls or calls) < SOME * calls


def _are_values_conditions(case: CaseSummary, idle: IdleGpu) -> bool:
    """Whether most values that PyTorch reads back are of one byte: truth values."""
    sizes = [copy.med_bytes for copy in idle.copies if copy.direction == "from the GPU"]
    return detect_framework(case) == "pytorch" and bool(sizes) and all(size is not None and size <= 1 for size in sizes)


def _is_loop_of_compiled_step(case: CaseSummary, idle: IdleGpu) -> bool:
    """Whether an iteration is one call of a program that XLA compiled, which launches very many operations itself."""
    name = (case.iterations.name if case.iterations else None) or ""
    if not idle.is_iteration and case.loop_thunks >= PART * idle.operations:
        return True
    return idle.operations >= _OF_LOOPS and name.startswith("XlaModule")


def _share_of_operations(case: CaseSummary, name: re.Pattern[str]) -> float:
    """Which part of all operations has such a name, 0 to 1: of recurrent layers and cells a step each."""
    steps = sum(share.calls or 0.0 for share in case.gpu_work if name.search(share.name))
    return steps / max(sum(share.calls or 0.0 for share in case.gpu_work), 1.0)


def _lock_share_of_launch_gaps(idle: IdleGpu) -> float:
    """How much of the time between launches waits for a lock of several threads, 0 to 1; 0 where it is little.

    NCCL has threads of its own, which wait for locks beside the program's.
    """
    gaps = [gap for gap in idle.gaps if gap.cause == "launch" and gap.length in SHORT]
    share = sum(gap.lock_ns for gap in gaps) / max(sum(gap.total_ns for gap in gaps), 1.0)
    is_threads = idle.use.get("lock_threads", 0.0) >= LOCKING and not idle.collectives
    return share if share >= PART and is_threads else 0.0


def _read_back_size_text(idle: IdleGpu) -> str:
    """How large the values are that the host reads back."""
    sizes = [copy.med_bytes for copy in idle.copies if copy.direction == "from the GPU" and copy.med_bytes]
    if not sizes or not _A_FEW < max(sizes) <= _VALUE:
        return "a few bytes"
    return f"{'at most ' if min(sizes) < max(sizes) else ''}{_size_text(max(sizes))}"


def _selection_kernel_share(case: CaseSummary, idle: IdleGpu) -> float:
    """How much of the kernels select or gather rows by data, 0 to 1; 0 where most values read are no selection's size.

    A selection has a kernel by whose name it is known, and the host reads its size; the gradient of an embedding has
    such kernels too, and reads nothing.
    """
    kernels = [share for share in case.gpu_work if share.kind == "kernel"]
    total = sum(share.calls or 0.0 for share in kernels)
    selections = sum(share.calls or 0.0 for share in kernels if _SELECTS.search(share.short_name.partition("<")[0]))
    selections /= max(iteration_count(case), 1) if idle.is_iteration else 1
    values = idle.use.get("values", 0.0)
    if not selections or selections < MOSTLY * values or values < _SIZES * selections:
        return 0.0
    return sum(share.calls or 0.0 for share in kernels if _SELECTING.search(share.name)) / total


def _gpu_wait_gap_cause(
    case: CaseSummary, idle: IdleGpu, saved: float, *, is_value: bool, a_kernel: float
) -> IdleCause:
    waits, values = idle.use.get("waits", 0.0), idle.use.get("values", 0.0)
    if is_value:
        count, often = "a value" if values < 1.5 else f"{values:,.0f} values", often_text(idle, values)
        if _selection_kernel_share(case, idle):
            if idle.in_gaps("value") < MOSTLY * saved:  # what else a selection launches takes longer
                return IdleCause("changing-shapes", saved, f"launch-bound, {count.removeprefix('a ')} of selections",
                                 "selections by data (masks, nonzero, unique) are much of its launches, and before it"
                                 f" launches on the host reads the size of each ({count} {often})")  # fmt: skip
            return IdleCause("changing-shapes", saved, f"waits for {count} {often}",
                             f"the host waits for the size of a selection ({count} read from the GPU {often}),"
                             " since shapes depend on data")  # fmt: skip
        read = [gap for gap in idle.gaps if gap.cause == "value"]
        if not slow_reads(idle):  # the long ones are the host's
            read = [gap for gap in read if gap.length in SHORT]
        own = sum(gap.total_ns - gap.cuda_ns for gap in read) / max(sum(gap.gaps for gap in read), 1.0)
        # of a value that is read a gap may be before its copy, and one behind it
        if 2 * sum(gap.to_gpu for gap in read) >= NEARLY * sum(gap.gaps for gap in read) > 0:
            return IdleCause(
                "scalar-reads", saved, f"{count} to the host and back",
                f"the host reads {count} of {_read_back_size_text(idle)} back {often}, and copies to the GPU what it"
                " computes from each", _COMPUTE_ON_GPU,
            )  # fmt: skip
        then = "and only then launches on"
        if own >= _HOSTS_NS:  # more than a framework takes to launch the next operation
            then = f"and works {format_ns(own)} behind it before it launches on (a print, a log, other work)"
        are_numbers = all(
            (copy.med_bytes or 0.0) <= _NUMBER for copy in idle.copies if copy.direction == "from the GPU"
        )
        advice = _COMPUTE_ON_GPU if idle.is_iteration and values >= _MANY_READS else ""
        if advice and not are_numbers:
            advice = f"Put what is read together on the GPU, and copy it once an iteration. {_COMPUTE_ON_GPU}"
        by = " (.item(), print)" if are_numbers and detect_framework(case) in _PYTHONS else ""
        return IdleCause(
            "scalar-reads",
            saved,
            f"reads {count} back {often}",
            f"the host reads {count} of {_read_back_size_text(idle)} back {often}{by}, waits for each, {then}",
            advice,
        )
    which = "each operation" if a_kernel >= 0.8 else "many operations"
    count, often = plural(round(waits), "wait") if waits >= RARE else f"{waits:.1f} waits", often_text(idle, 1.0)
    return IdleCause("sync-each-operation", saved, f"{count} for the GPU {often}",
                     f"the host synchronises with the GPU after {which} ({count} for"
                     f" {plural(round(idle.operations), 'operation')} {often}), launching none ahead")  # fmt: skip
