"""Rules over copies between host and GPU: their speed, what they wait for, and what runs beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.groups import group_by
from nsw.analysis.rules.hits import (
    AMPERE,
    COPIED_PCT,
    MOSTLY,
    MOSTLY_PCT,
    OF_GPU_TIME,
    OF_ITERATION,
    WORTH_PCT,
    Context,
    Hit,
    compute_capability,
    detect_framework,
    gpu_copy_direction,
    iteration_count,
    make_hit,
)
from nsw.analysis.rules.idle_causes import host_work_in_migrations_ns
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.spent import NOT_SHOWN
from nsw.quantities import duration, format_ns, rate
from nsw.quantities import size as size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Copy
    from nsw.analysis.idle_gpu import Copies, IdleGpu

__all__ = ["RULES"]

_PAGEABLE: Final = 16e9  # byte/s: what pageable memory gives at most over PCIe 4 and 5
_ANY_PAGEABLE: Final = 6e9  # byte/s, that any link gives
_CHECK_LINK, _FASTER_ONE_WAY = "check the link", ("copy into pinned memory", "reuse the host's memory")
_NAMED_PCT: Final = 2.0  # of the time: waits that a sentence on copies names
_ALIKE_COUNTS: Final = 0.05  # by which the numbers of copies each way differ, where they may be of the same data
_SLOWEST: Final = 1e9  # what it gives at least
_PAGEABLE_PCIE_3: Final = 8e9  # of GPUs before those of capability 8
_PINNED, _PINNED_PCIE_4, _PINNED_PCIE_3 = 50e9, 25e9, 12e9  # byte/s: what pinned memory gives
_LINK_REACHED: Final = 0.78  # of what a link's lanes carry: the same of any link
_LINK_FULL: Final = 0.7  # likewise, from which a copy has the link's speed
_OF_ALL_GPU_TIME: Final = "of all GPU time"
_FAST: Final = 20e9  # byte/s, which only pinned memory gives
_LARGE: Final = 64 << 10  # bytes of a copy, below which its rate says little
_MUCH_FASTER: Final = 2.0
_PINNED_RESULTS: Final = (
    "Copy into one pinned tensor, made before the loop (torch.empty(..., pin_memory=True)), with .copy_(x,"
    " non_blocking=True), and wait for it where it is used; or put results together on the GPU, and copy less."
)
_OFTEN, _LATE_PCT = 10, 25.0  # copies, and those in the second half of the time: fewer are set-up
_APART: Final = 0.8  # of the time in copies: with no kernel beside
_BESIDE: Final = 1.1  # times the busy time
_HOPPER: Final = (9, 0)  # over PCIe 5
_BUCKETS, _BUCKETS_PCT = 8, 2.0  # copies an iteration, and what they take of GPU time
_PIECE: Final = 256 << 10  # bytes of a migration by page faults at most; a prefetch moves 2 MiB at once
_MIGRATIONS: Final = 500
_FAULTS: Final = 0.25  # of the kernels' time
_EMPTY_NS: Final = 5e3  # of a kernel: hardly more than a launch that does nothing
_FEW_LAUNCHES: Final = 20  # more may be of a model that prints nothing
_ONE_OFF: Final = 4  # copies, which are of inputs or results, each once
_ALIKE: Final = 1.1  # times the mean copy: the longest of copies of one size
_DIVISIBLE_NS: Final = 1e6  # of a copy, whose pieces are worth a start each
_LARGE_INPUT: Final = 64 << 20  # bytes, which no kernel reads in so little time


def _pageable_copy_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies of pageable memory again and again, by what the timeline tells of their memory."""
    idle = case.idle_gpu
    if (
        idle is None
        or "computing_ns" not in idle.use
        or any(copy.memory is None for copy in idle.copies if copy.direction != "on the GPU")
    ):
        return _slow_copy_hit(case, context)
    link = _pinned_copy_bytes_per_s(case)
    pageable_copies = [copy for copy in idle.copies if copy.memory == "pageable" and _are_large(copy)]
    if not idle.is_iteration:  # what is copied once, at set-up, is not worth it
        pageable_copies = [copy for copy in pageable_copies if copy.calls >= _OFTEN and copy.late_pct >= _LATE_PCT]
    if not pageable_copies:
        return None
    by_direction = group_by(pageable_copies, lambda copy: copy.direction)
    direction = max(by_direction, key=lambda towards: _time_and_rate(by_direction[towards])[0])
    one_way_ns, one_way_speed = _time_and_rate(by_direction[direction])
    # what the sentence does not name is not in its gain
    reverse_pct = 100 * (_time_and_rate(pageable_copies)[0] - one_way_ns) / idle.med_ns
    named_copies = pageable_copies if reverse_pct >= WORTH_PCT else by_direction[direction]
    staged_ns = idle.in_gaps("copy") * _share_in_cuda_calls(idle)  # into a pinned buffer
    staged_ns *= staged_ns >= _NAMED_PCT / 100 * idle.med_ns
    speed = _time_and_rate(named_copies)[1]
    alone_ns = sum(copy.alone_ns for copy in named_copies)
    gain = 100 * (alone_ns * max(0.0, 1 - speed / link) + staged_ns) / idle.med_ns
    if gain < WORTH_PCT:
        return None
    share = 100 * one_way_ns / idle.med_ns
    all_pct = share + reverse_pct * (reverse_pct >= WORTH_PCT) + 100 * staged_ns / idle.med_ns
    size = f"{min(all_pct, 100.0):.0f} %"
    also = f", {reverse_pct:.0f} % the other way" if reverse_pct >= WORTH_PCT else ""
    if staged_ns:
        also += f", and {100 * staged_ns / idle.med_ns:.0f} % waits for the host's part of such copies"
    span = "of an iteration" if idle.is_iteration else f"of {idle.counted_time}"
    hit = make_hit(
        case, "pageable-copies", gain,
        f"{size} pageable copies {'both ways' if reverse_pct >= WORTH_PCT else direction},"
        f" {_gigabytes_per_s_text(speed)}",
        f"{share:.0f} % {span} is copying pageable memory {direction} at {rate(one_way_speed)}{also}; pinned memory"
        f" reaches some {_gigabytes_per_s_text(link)}", size, "host_copies", f"{span} is",
    )  # fmt: skip
    is_result = direction == "from the GPU" and detect_framework(case) == "pytorch"
    advice = _PINNED_RESULTS if is_result else hit.advice
    base = hit.gain_of if idle.is_iteration else "that time"
    return replace(hit, advice=f"{advice}{_returning_data_text(by_direction)}", gain_of=base)


def _returning_data_text(by_direction: Mapping[str, Sequence[Copies]]) -> str:
    """That as much is copied to the GPU as back, in as many copies of one size; empty: it is not."""
    if len(by_direction) == 1:
        return ""
    (calls, size), (back, back_size) = (
        (sum(copy.calls for copy in copies), max(copy.med_bytes or 0.0 for copy in copies))
        for copies in by_direction.values()
    )
    if size != back_size or size < _LARGE or not 1 - _ALIKE_COUNTS <= calls / back <= 1 + _ALIKE_COUNTS:
        return ""
    count = round(float(f"{calls:.2g}"))
    copies = (
        f"is one copy of {size / 1e6:.3g} MB" if count == 1 else f"are some {count:,} copies of {size / 1e6:.3g} MB"
    )
    return f" Each way {copies}: what comes back to the GPU unchanged can stay there."


def _are_large(copy: Copies) -> bool:
    """Whether copies are so large on average, small ones among them, that their rate tells of their memory."""
    return (copy.total_bytes or 0.0) >= _LARGE * copy.calls


def _share_in_cuda_calls(idle: IdleGpu) -> float:
    """What of the gaps around copies the host is in CUDA calls, 0 to 1: the rest is work of its own."""
    gaps = [gap for gap in idle.gaps if gap.cause == "copy"]
    total_ns = sum(gap.total_ns for gap in gaps)
    return min(sum(gap.cuda_ns for gap in gaps) / total_ns, 1.0) if total_ns and idle.has_calls else 1.0


def _time_and_rate(copies: Sequence[Copies]) -> tuple[float, float]:
    """The time that copies take, and how many bytes they move in a second."""
    took = sum(copy.total_ns for copy in copies)
    return took, 1e9 * sum(copy.total_bytes or 0.0 for copy in copies) / took


def _pinned_copy_bytes_per_s(case: CaseSummary) -> float:
    """What copies of pinned memory reach, byte/s."""
    if case.link is not None:
        return _LINK_REACHED * case.link.bytes_per_s
    capability = compute_capability(case)
    if capability >= _HOPPER:
        return _PINNED
    return _PINNED_PCIE_3 if (0, 0) < capability < AMPERE else _PINNED_PCIE_4


def _has_pinned_memory(case: CaseSummary) -> bool:
    """Whether a program pins its memory and copies asynchronously alone; frameworks pin buffers of their own."""
    calls = case.longest_calls_ns.keys()
    copies = {call for call in calls if call.startswith("cudaMemcpy")}
    return (
        detect_framework(case) == "any"
        and any(call.startswith(("cudaHostAlloc", "cudaMallocHost", "cudaHostRegister")) for call in calls)
        and bool(copies)
        and all("Async" in call for call in copies)
    )


def _has_link_speed(case: CaseSummary, copy: Copy) -> bool:
    """Whether a copy is as fast as the link that the report records; an idle link may be recorded slower than it is."""
    if case.link is None or copy.bytes_per_s is None:
        return False
    return _LINK_FULL * case.link.bytes_per_s <= copy.bytes_per_s <= case.link.bytes_per_s


def _kernels_could_hide(case: CaseSummary, copies: Sequence[Copy]) -> bool:
    """Whether kernels take enough beside copies that running both at a time wins something."""
    kernel_ns = case.kernel_ns or 0.0
    return kernel_ns >= COPIED_PCT / 100 * (kernel_ns + sum(copy.total_ns for copy in copies))


def _has_dominant_call(copy: Copy) -> bool:
    """Whether a single copy of several takes most of their time."""
    return copy.longest_ns is not None and copy.calls >= 2 and copy.longest_ns >= MOSTLY * copy.total_ns


def _single_copy_text(copy: Copy) -> str:
    """How much of the time of copies a single one takes, where it is most of it."""
    if copy.longest_ns is None or not _has_dominant_call(copy):
        return ""
    return f"; one copy is {100 * copy.longest_ns / copy.total_ns:.0f} % of that"


def _full_link_hit(case: CaseSummary) -> Hit | None:
    """Copies that take much of the time, at the speed of the link."""
    copy = _dominant_copy(case)
    if copy is None or case.link is None or not case.kernel_ns or not _has_link_speed(case, copy):
        return None
    share = _copy_time_pct(case, [copy])
    if share < COPIED_PCT or (copy.total_bytes or 0.0) < _LARGE * copy.calls:
        return None
    speed, beside = rate(copy.bytes_per_s or 0.0), ""
    if _kernels_could_hide(case, [copy]):
        beside = (
            ", or copy in pieces beside the kernels that use them (streams, pinned memory)"
            if _has_dominant_call(copy)
            else ", or let copies run beside kernels, which needs pinned memory"
        )
    return Hit(
        "copies-dominate", case.id, share, f"{share:.0f} % copies at the link's speed", "move fewer bytes",
        f"{share:.0f} % {_OF_ALL_GPU_TIME} is copying {_direction_text(copy)} at {speed}, the speed of the GPU's link"
        f" ({case.link.name}){_single_copy_text(copy)}",
        f"The link is full: pinned memory gains little speed. Move fewer bytes (smaller types){beside}.",
        f"{share:.0f} %", "copies", OF_GPU_TIME,
    )  # fmt: skip


def _unoverlapped_copy_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Large copies that do not run at all while kernels or copies the other way do."""
    idle = case.idle_gpu
    if idle is None or not idle.is_iteration or "computing_ns" not in idle.use:
        return _unoverlapped_copy_hit_by_totals(case)
    copies = [copy for copy in idle.copies if copy.direction != "on the GPU" and _are_large(copy)]
    took, alone = (sum(getattr(copy, column) for copy in copies) for column in ("total_ns", "alone_ns"))
    computing = idle.use.get("computing_ns", 0.0)
    if not took or alone < _APART * took or any(copy.memory in {"managed", "pageable"} for copy in copies):
        return None
    if took + computing > _BESIDE * idle.use.get("busy_ns", 0.0):  # copies of both ways run beside each other
        return None
    saved = 100 * min(alone, computing) / idle.med_ns
    if saved < WORTH_PCT:
        return None
    largest = max(copies, key=lambda copy: copy.total_ns)
    speed = f" at {rate(largest.total_bytes / largest.total_ns * 1e9)}" if largest.total_bytes else ""
    return make_hit(
        case, "no-copy-overlap", saved, f"{100 * alone / idle.med_ns:.0f} % copies, no kernel beside",
        f"{100 * alone / idle.med_ns:.0f} % of an iteration is copying {largest.direction}{speed} with no kernel beside"
        f" it: copies and kernels alternate, and could overlap", f"{100 * alone / idle.med_ns:.0f} %", "host_copies",
        OF_ITERATION,
    )  # fmt: skip


def _unoverlapped_copy_hit_by_totals(case: CaseSummary) -> Hit | None:
    """The same by tables that only tell how long copies are alone."""
    spent, largest = time_without_profiler(case), _dominant_copy(case)
    alone = spent.copies_pct if spent else None
    if alone is None or alone < WORTH_PCT or largest is None or (case.idle_gpu is not None and case.idle_gpu.copies):
        return None
    if _slow_copy_hit(case, Context()) is not None:
        return None
    speed = f" at {rate(largest.bytes_per_s)}" if largest.bytes_per_s else ""
    return make_hit(
        case, "no-copy-overlap", min(alone, 100 - alone), f"{alone:.0f} % copies, no kernel beside",
        f"{alone:.0f} % of an iteration is copying {_direction_text(largest)}{speed} with no kernel beside it",
        f"{alone:.0f} %", "copies", OF_ITERATION,
    )  # fmt: skip


def _slow_copy_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies between host and GPU that take much of the time, as slow as from pageable memory."""
    largest_copy = _dominant_copy(case)
    if (
        largest_copy is None
        or (not case.iterations and largest_copy.calls < _OFTEN)
        or largest_copy.bytes_per_s is None
        or not largest_copy.total_bytes
        or largest_copy.total_bytes < _LARGE * largest_copy.calls
        or _has_link_speed(case, largest_copy)
    ):
        return None
    share = _copy_time_pct(case, [largest_copy])
    certain = "Pageable" in largest_copy.name
    if (
        share < COPIED_PCT
        or not case.kernel_ns
        or not (certain or _is_pageable_copy_rate(case, largest_copy.bytes_per_s))
    ):
        return None
    best, fastest_case = context.copies.get(gpu_copy_direction(largest_copy.name), (0.0, ""))
    faster = best / largest_copy.bytes_per_s
    comparison = (
        f" ({fastest_case}: {_gigabytes_per_s_text(best)})"
        if faster >= _MUCH_FASTER and fastest_case != case.id
        else ""
    )
    if _has_pinned_memory(case) and not comparison:  # which that of PyTorch with GEMM alone is taken for
        return None
    kind = "pageable copies" if certain else "slow copies"
    both = [
        copy for copy in case.copies if gpu_copy_direction(copy.name) and _copy_time_pct(case, [copy]) >= COPIED_PCT / 2
    ]
    one_way = f" {_direction_text(largest_copy)}" if len(both) > 1 else ""
    share_base = "of an iteration" if case.iterations else _OF_ALL_GPU_TIME
    pinned = (
        f"Pinned memory (cudaHostAlloc, in PyTorch pin_memory=True) copies at {faster:.1f} times that rate in"
        f" {fastest_case},"
        if comparison
        else f"{'P' if certain else 'If it is pageable, p'}inned memory (cudaHostAlloc, in PyTorch pin_memory=True)"
        f" reaches {_link_speed_text(case)}"
    )
    often = (
        " and lets copies run beside kernels."
        if case.iterations
        else "; it pays where the same memory is copied often."
    )
    return Hit(
        "pageable-copies",
        case.id,
        share * (1 - 1 / faster if comparison else 0.6),
        f"{share:.0f} % {kind}{one_way}, {_gigabytes_per_s_text(largest_copy.bytes_per_s)}",
        f"pin it{comparison}",
        f"{share:.0f} % {share_base} is copying {_direction_text(largest_copy)} at"
        f" {rate(largest_copy.bytes_per_s)}, as slow as from pageable memory"
        if not certain
        else (
            f"{share:.0f} % {share_base} is copying pageable memory {_direction_text(largest_copy)} at"
            f" {rate(largest_copy.bytes_per_s)}"
        ),
        f"{pinned}{often}",
        f"{share:.0f} %",
        "copies",
        OF_ITERATION if case.iterations else OF_GPU_TIME,
        cured_case=fastest_case if comparison else None,
    )


def _link_speed_text(case: CaseSummary) -> str:
    """What pinned memory reaches: of the recorded link, else of usual ones."""
    if case.link is None:
        return "the link's speed (PCIe 3 x8: 6 GB/s, x16: 12, PCIe 4: 25, PCIe 5: 50)"
    return f"some {_gigabytes_per_s_text(_pinned_copy_bytes_per_s(case))} over the GPU's link ({case.link.name})"


def _is_pageable_copy_rate(case: CaseSummary, bytes_per_s: float) -> bool:
    """Whether a speed is one of copies of pageable memory: less is the link's, or that of something beside it."""
    return _SLOWEST <= bytes_per_s <= (_PAGEABLE if compute_capability(case) >= AMPERE else _PAGEABLE_PCIE_3)


def _copy_only_iteration_hit(case: CaseSummary, idle: IdleGpu) -> Hit | None:
    """Iterations that are copies between host and GPU, with hardly a kernel that could run beside them."""
    copies = [copy for copy in idle.copies if copy.direction != "on the GPU" and _are_large(copy)]
    alone = sum(copy.alone_ns for copy in copies)
    share = 100 * alone / idle.med_ns
    if share < MOSTLY_PCT or 100 * idle.use.get("computing_ns", 0.0) / idle.med_ns >= WORTH_PCT:
        return None
    largest = max(copies, key=lambda copy: copy.total_ns)
    speed = f" at {rate(largest.total_bytes / largest.total_ns * 1e9)}" if largest.total_bytes else ""
    return Hit(
        "copies-dominate", case.id, share, f"{share:.0f} % copies", "keep data on the GPU",
        f"{share:.0f} % of an iteration is copying {largest.direction}{speed}, with hardly a kernel to run beside it",
        "Keep on the GPU what several iterations use, or move fewer bytes (smaller types).", f"{share:.0f} %",
        "host_copies", OF_ITERATION,
    )  # fmt: skip


def _copies_outweigh_kernels_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies that take more than the kernels, and whose rate is not known, or good."""
    if case.idle_gpu is not None and case.idle_gpu.is_iteration and "computing_ns" in case.idle_gpu.use:
        return None if _pageable_copy_hit(case, context) else _copy_only_iteration_hit(case, case.idle_gpu)
    if not case.iterations and (full := _full_link_hit(case)) is not None:
        return full
    largest_copy = _dominant_copy(case)
    alone_known = case.spent is not None and case.spent.copies_pct is not None
    if alone_known or largest_copy is None or not case.kernel_ns or _slow_copy_hit(case, context) is not None:
        return None
    moved = [copy for copy in case.copies if gpu_copy_direction(copy.name)]
    share, part = _copy_time_pct(case, moved), 100 * largest_copy.total_ns / sum(copy.total_ns for copy in moved)
    if share < MOSTLY_PCT:
        return None
    if (unread := _unread_result_hit(case, share)) is not None:
        return unread
    speed = f" at {rate(largest_copy.bytes_per_s)}" if largest_copy.bytes_per_s else ""
    do, advice = _remedy_of_many_copies(case, largest_copy, moved)
    gain, faster = share, _faster_opposite_copy(largest_copy, moved)
    if do in _FASTER_ONE_WAY and faster is not None:  # that direction alone, as fast as the other
        gain = share * part / 100 * (1 - (largest_copy.bytes_per_s or 0.0) / (faster.bytes_per_s or math.inf))
    elif do == _CHECK_LINK:
        gain = share * (1 - (largest_copy.bytes_per_s or 0.0) / _ANY_PAGEABLE)
    return Hit(
        "copies-dominate", case.id, gain, f"{share:.0f} % copies", do,
        f"{share:.0f} % {_OF_ALL_GPU_TIME} is copies between host and GPU, {part:.0f} % of them"
        f" {_direction_text(largest_copy)}{speed}{_single_copy_text(largest_copy)}", advice, f"{share:.0f} %",
        "copies", OF_GPU_TIME,
    )  # fmt: skip


def _remedy_of_many_copies(case: CaseSummary, largest_copy: Copy, moved: Sequence[Copy]) -> tuple[str, str]:
    """What to try with copies that outweigh kernels: in a few words, and in whole sentences.

    Args:
        case: The case.
        largest_copy: The kind of copy that takes most.
        moved: All copies between host and GPU.
    """
    speed, calls = largest_copy.bytes_per_s or 0.0, largest_copy.calls
    is_single = _has_dominant_call(largest_copy) or calls <= _ONE_OFF
    could_hide, is_pinned = _kernels_could_hide(case, moved), _has_pinned_memory(case)
    if case.uses_fsdp and gpu_copy_direction(largest_copy.name) == "to":
        cure = (
            ", or let the next layer's copy run beside kernels (forward_prefetch=True)"
            if could_hide
            else ", copy half as many bytes (BF16 parameters), or use each copy for more work (a larger batch)"
        )
        return "keep parameters on the GPU", (
            "If FSDP offloads parameters to the CPU, each layer's are copied at each use. Keep them on the GPUs"
            f" (sharded, without CPUOffload){cure}."
        )
    if is_pinned or speed >= _FAST:
        beside = ", or let kernels and copies of both directions run at the same time (streams)" if could_hide else ""
        return "move fewer bytes", (
            f"{'The memory is pinned' if is_pinned else 'That is a speed of pinned memory'}. Move fewer bytes (smaller"
            f" types), or keep on the GPU what several kernels use{beside}."
        )
    if 0 < speed < _SLOWEST and (largest_copy.total_bytes or 0.0) >= _LARGE * calls:
        return _CHECK_LINK, (
            "Even pageable memory gives 3 to 6 GB/s: look at the link (`nvidia-smi -q`: PCIe generation and width), and"
            " at what else uses it."
        )
    if (faster := _faster_opposite_copy(largest_copy, moved)) is not None and not is_single:
        return _FASTER_ONE_WAY[0], (
            f"Copies {_direction_text(faster)} reach {rate(faster.bytes_per_s or 0.0)} over the same link: copy into"
            " pinned memory (cudaMallocHost), which is allocated once."
        )
    if is_single and could_hide and (largest_copy.longest_ns or 0.0) >= _DIVISIBLE_NS:
        return (
            "copy beside kernels",
            "Copy in pieces beside the kernels that use them (streams, pinned memory), or move fewer bytes.",
        )
    if detect_framework(case) == "openacc":
        return "keep data on the GPU", (
            "Keep the arrays on the GPU: a data region around the loop, and update directives for what the host reads."
        )
    if is_single and faster is not None and gpu_copy_direction(largest_copy.name) == "from":
        return _FASTER_ONE_WAY[1], (
            f"Copies to the GPU reach {rate(faster.bytes_per_s or 0.0)} over the same link: the host's memory is"
            " probably new, and its pages are made during the copy. Copy into memory that was used before."
        )
    do, advice = "keep data on the GPU", "Keep on the GPU what several kernels use."
    if is_single:
        do, advice = "move fewer bytes", "Move fewer bytes (smaller types)."
    elif calls >= _OFTEN and (longest := largest_copy.longest_ns) and longest * calls <= _ALIKE * largest_copy.total_ns:
        advice = (
            f"The {calls:,.0f} copies {_direction_text(largest_copy)} take {duration(largest_copy.total_ns / calls)}"
            " each: if they are of the same arrays, keep these on the GPU."
        )
    if not speed:
        sizes = "The sizes of the copies tell whether the memory is pinned: `nvprof --print-gpu-trace`."
        return do, sizes if is_single else f"{advice} {sizes}"
    if _is_pageable_copy_rate(case, speed) and not is_single:
        advice += (
            " The speed is one of pageable memory: pinned memory (cudaHostAlloc) is faster where the same memory is"
            " copied often."
        )
    return do, advice


def _faster_opposite_copy(largest_copy: Copy, moved: Sequence[Copy]) -> Copy | None:
    """The large copies the other way, where they are much faster: the host's memory is what is slow, not the link."""
    opposite = "to" if gpu_copy_direction(largest_copy.name) == "from" else "from"
    fast = [
        copy
        for copy in moved
        if gpu_copy_direction(copy.name) == opposite
        and (copy.total_bytes or 0.0) >= _LARGE * copy.calls
        and (largest_copy.total_bytes or 0.0) >= _LARGE * largest_copy.calls
        and (copy.bytes_per_s or 0.0) >= _MUCH_FASTER * (largest_copy.bytes_per_s or math.inf)
    ]
    return max(fast, key=lambda copy: copy.bytes_per_s or 0.0, default=None)


def _unread_result_hit(case: CaseSummary, share: float) -> Hit | None:
    """Kernels that are as short as empty ones, of large inputs, and whose results no copy brings back."""
    kernels = [work for work in case.gpu_work if work.kind == "kernel" and work.calls and work.total_ns]
    launches, kernel_ns = sum(work.calls or 0.0 for work in kernels), sum(work.total_ns or 0.0 for work in kernels)
    inputs = [copy for copy in case.copies if gpu_copy_direction(copy.name) == "to"]
    input_ns, input_bytes = sum(copy.total_ns for copy in inputs), sum(copy.total_bytes or 0.0 for copy in inputs)
    others = any("memset" not in copy.name for copy in case.copies if copy not in inputs)
    cut = case.spent is not None and case.spent.share_pct(NOT_SHOWN) > 0
    if (
        others
        or cut
        or case.iterations
        or not 0 < launches <= _FEW_LAUNCHES
        or kernel_ns >= _EMPTY_NS * launches
        or input_bytes < _LARGE_INPUT
    ):
        return None
    largest = max(kernels, key=lambda work: work.total_ns or 0.0).short_name
    return Hit(
        "copies-dominate", case.id, share,
        f"{duration(input_ns)} of copies to the GPU, {duration(kernel_ns)} of kernels, nothing copied back",
        "check the kernels",
        f"{size_text(input_bytes)} are copied to the GPU in {duration(input_ns)}, its kernels take"
        f" {duration(kernel_ns)} in all, and no copy brings a result back",
        f"Check that {largest} does its work: its grid, cudaGetLastError() after the launch, the use of its result.",
        f"{share:.0f} %", "copies",
    )  # fmt: skip


def _bucket_copy_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Copies on the GPU beside NCCL: gradients into and out of buckets."""
    spent, each = case.spent, iteration_count(case)
    if spent is None or not each or not spent.share_pct("NCCL"):
        return None
    inside = [c for c in case.copies if "Device-to-Device" in c.name or "DtoD" in c.name]
    calls, took = (sum(values) / each for values in ([c.calls for c in inside], [c.total_ns for c in inside]))
    share = 100 * took * each / (case.gpu_ns or 1.0)
    if calls < _BUCKETS or share < _BUCKETS_PCT:
        return None
    return Hit(
        "bucket-copies", case.id, share, f"{calls:.0f} copies into buckets", "gradient_as_bucket_view=True",
        f"{calls:.0f} copies on the GPU an iteration move gradients into buckets and back in {format_ns(took)}",
        "DistributedDataParallel(..., gradient_as_bucket_view=True) saves them.", f"{calls:.0f}", "copies",
    )  # fmt: skip


def _dominant_copy(case: CaseSummary) -> Copy | None:
    """The copy between host and GPU that takes most, where it is most of all copies' time."""
    largest_copy = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    return largest_copy if largest_copy is not None and gpu_copy_direction(largest_copy.name) else None


def _direction_text(copy: Copy) -> str:
    return "to the GPU" if gpu_copy_direction(copy.name) == "to" else "from the GPU"


def _copy_time_pct(case: CaseSummary, copies: Sequence[Copy]) -> float:
    """What copies take: of an iteration, their part of what all take alone; without iterations of all GPU time."""
    ns, spent = sum(copy.total_ns for copy in copies), time_without_profiler(case)
    if spent is not None and spent.copies_pct is not None:
        return spent.copies_pct * ns / sum(copy.total_ns for copy in case.copies)
    gpu_ns = case.gpu_ns if case.spent is None or case.iterations else case.spent.gpu_ns  # with what a report cut off
    return 100 * ns / gpu_ns if gpu_ns else 0.0


def _page_migration_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Unified memory that moves page by page."""
    moved = [copy for copy in case.copies if "Unified" in copy.name or "UM" in copy.name.split()]
    calls, ns = sum(copy.calls for copy in moved), sum(copy.total_ns for copy in moved)
    size = sum(copy.total_bytes or 0.0 for copy in moved)
    if calls < _MIGRATIONS or size > _PIECE * calls or not case.gpu_ns:
        return _page_fault_hit(case)
    share, span = 100 * ns / case.gpu_ns, f"{100 * ns / case.gpu_ns:.0f} % of GPU time"
    waits, idle = "", case.idle_gpu
    pieces = f"{size / calls / 1024:.0f} KiB on average"
    paged = [copy for copy in idle.copies if copy.memory == "managed"] if idle is not None else []
    if idle is not None and idle.is_iteration and paged:  # kernels and the host wait for the pages
        calls, ns, size = (sum(getattr(c, name) or 0.0 for c in paged) for name in ("calls", "total_ns", "total_bytes"))
        host_ns = host_work_in_migrations_ns(idle)
        waits_ns = ns + idle.idle_ns - host_ns
        share = 100 * max(0.0, waits_ns - 1e9 * size / _pinned_copy_bytes_per_s(case)) / idle.med_ns
        span = f"{100 * ns / idle.med_ns:.0f} % of an iteration"
        if gaps_ns := idle.in_gaps("migration") - host_ns:
            gaps = [gap for gap in idle.gaps if gap.cause == "migration"]
            of_host = sum(gap.to_gpu for gap in gaps) < MOSTLY * sum(gap.gaps for gap in gaps)
            waits = f", and the GPU is idle {format_ns(gaps_ns)} ({100 * gaps_ns / idle.med_ns:.0f} %)"
            waits += " while the host touches pages" if of_host else " between them"
    elif idle is not None and idle.is_iteration:  # pages move before its iterations
        share = 0.0
    if share < WORTH_PCT:
        return None
    each = " an iteration" if paged and idle is not None and idle.is_iteration else ""
    headline = f"{calls:,.0f} page migrations take {format_ns(ns)}"
    if each:
        headline = f"{calls:,.0f} migrations of {pieces.removesuffix(' on average')}"
    elif case.kernel_ns:
        headline += f", kernels {format_ns(case.kernel_ns)}"
    return make_hit(
        case, "page-faults", min(95.0, share), headline,
        f"unified memory moves by page faults: {calls:,.0f} migrations{each} of {pieces} take {format_ns(ns)}, {span}"
        f"{waits}", f"{calls:,.0f}", "gaps" if waits else "copies",
    )  # fmt: skip


def _page_fault_hit(case: CaseSummary) -> Hit | None:
    """Page faults of the GPU that take much of the kernels' time, by the sum that a report prints."""
    if case.iterations or case.page_fault_ns < _FAULTS * (case.kernel_ns or math.inf):
        return None
    faults, kernels = format_ns(case.page_fault_ns), format_ns(case.kernel_ns)
    return make_hit(
        case, "page-faults", min(95.0, 100 * case.page_fault_ns / (case.gpu_ns or case.page_fault_ns)),
        f"GPU page faults take {faults}, kernels {kernels}",
        f"GPU page faults of unified memory take {faults}, and kernels, which wait for them, {kernels}",
        faults, "um_summary",
    )  # fmt: skip


def _gigabytes_per_s_text(per_second: float) -> str:
    return f"{per_second / 1e9:.3g} GB/s"


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    "pageable copies": _pageable_copy_hit,
    "copies": _copies_outweigh_kernels_hit,
    "no overlap of copies": _unoverlapped_copy_hit,
    "bucket copies": _bucket_copy_hit,
    "unified memory": _page_migration_hit,
}
