"""Guided counters: which kernels and launches a pass measures, by a timeline's kernels, and whether it measured those.

ncu takes one expression for kernels and one for ordinals, so each chosen ordinal is measured of every chosen kernel:
ordinals that several kernels need are preferred, and what comes along is told. Inside an NVTX range ncu counts the
launches of a kernel alone, over the instances that are asked for (docs/gpu-measurements.md).

The tool's filter counts launches of each kernel, so the n-th measured launch of a kernel is the n-th chosen ordinal. A
program that does not repeat itself moves its kernels: then the counters are of other work than the timeline's times.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, chain, repeat
from typing import Any, Final, TypeAlias

from nsw.analysis.groups import group_by
from nsw.errors import nearest
from nsw.profilers.kernel_filters import ncu_launch_filter_options, regex_of_names, regex_of_numbers
from nsw.recipe.passes import AT_MOST, COVER, SAMPLE
from nsw.tables.names import without_spaces
from nsw.wording import first_names

_Row: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class Within:
    """An NVTX range: its name, domain (None: the default one), style, and instances from 1 (empty: all)."""

    name: str
    domain: str | None = None
    start_end: bool = False
    instances: Collection[int] = ()


def kernels_launched_in_range(
    kernels: Iterable[_Row], calls: Iterable[_Row], ranges: Iterable[_Row], within: Within
) -> list[_Row]:
    """The kernels that were launched inside the range.

    Args:
        kernels: Rows of table gpu_trace.
        calls: Rows of table api_trace, in the same time.
        ranges: Rows of table nvtx_trace, in the same time.
        within: The range.
    """
    spans = _requested_spans_by_thread(ranges, within)
    launched: set[tuple[Any, Any]] = set()
    for call in calls:
        starts, ends = spans.get((call["pid"], None if within.start_end else call["tid"]), ([], []))
        at = bisect_right(starts, call["start_ns"]) - 1
        if at >= 0 and ends[at] >= call["start_ns"] + (call["duration_ns"] or 0):
            launched.add((call["pid"], call["correlation"]))
    return [row for row in kernels if (row["pid"], row["correlation"]) in launched]


def range_names(ranges: Iterable[_Row], within: Within) -> list[str]:
    """The names of the ranges of the asked style and domain."""
    return list(dict.fromkeys(row["name"] for row in ranges if row["name"] and _is_requested_range(row, within)))


def _is_requested_range(row: _Row, within: Within) -> bool:
    style = "startend" if within.start_end else "pushpop"
    return row["style"] == style and (row["domain"] or None) == within.domain


def _requested_spans_by_thread(
    ranges: Iterable[_Row], within: Within
) -> dict[tuple[Any, Any], tuple[list[int], list[int]]]:
    """The asked instances by process and thread: their starts in order, and the greatest end up to each.

    The instances of a process are counted by their start.
    """
    matching_ranges = sorted(
        (row for row in ranges if row["name"] == within.name and _is_requested_range(row, within)),
        key=lambda row: row["start_ns"],
    )
    counts: dict[Any, int] = defaultdict(int)
    spans_by_thread: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    for row in matching_ranges:
        counts[row["pid"]] += 1
        if not within.instances or counts[row["pid"]] in within.instances:
            span = (row["start_ns"], row["start_ns"] + (row["duration_ns"] or 0))
            spans_by_thread[row["pid"], None if within.start_end else row["tid"]].append(span)
    return {
        key: ([start for start, _ in spans_of_thread], list(accumulate((end for _, end in spans_of_thread), max)))
        for key, spans_of_thread in spans_by_thread.items()
    }


_CANDIDATES: Final = 400  # launches of a shape, those of most usual duration, that ordinals are taken from
_LONGEST: Final = 100_000  # characters of one argument; Linux takes 131,072


class NothingMatched(Exception):  # noqa: N818  # an answer, not an error of the program
    """No kernel of the timeline is what the pass asks for; the text says what is near."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a counters pass says of kernels and launches; None: nothing."""

    names: tuple[str, ...] = ()
    regex: str | None = None
    exclude: tuple[str, ...] = ()
    cover: float | None = None
    top: int | None = None
    at_most: int | None = None
    sample: int | None = None
    warmup: int = 0


@dataclass(slots=True)
class _Kernel:
    """The launches of one kernel, by the name that the tool's filter takes; ordinals count from 1.

    `durations` and `shape_of` are those of all launches; `total` (ns) and `shapes` are of the steady state
    where it is known.
    """

    key: str
    name: str
    full_name: str
    durations: list[int] = field(default_factory=list)
    shape_of: list[tuple[object, ...]] = field(default_factory=list)
    shapes: dict[tuple[object, ...], list[int]] = field(default_factory=lambda: defaultdict(list))
    total: int = 0


@dataclass(frozen=True, slots=True)
class Picked:
    """One launch that is to be measured, as the timeline has it; `ordinal` counts the kernel's launches from 1."""

    kernel: str
    short_name: str
    mangled_name: str | None
    ordinal: int
    grid: str | None
    block_size: str | None
    duration_ns: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is measured.

    Attributes:
        arguments: For the tool's command line.
        kernels: Function names, most expensive first.
        share: Of the GPU time of all kernels of the process, in its steady state where that is known.
        launches: How many launches are measured.
        along: How many of them only came along.
        extrapolated: How many launches of these kernels are not measured; others stand for them.
        cut_short: That a greater share was asked for, with the limit that was in the way; empty: it was not.
        picked: Each launch that will be measured, by kernel and ordinal.
    """

    arguments: tuple[str, ...]
    kernels: tuple[str, ...]
    share: float
    launches: int
    along: int
    extrapolated: int
    cut_short: str = ""
    picked: tuple[Picked, ...] = ()

    @property
    def sentence(self) -> str:
        """For people."""
        along = f", {self.along} of them because ncu takes one list of ordinals" if self.along else ""
        return (
            f"{len(self.kernels)} kernels, {self.share:.1%} of the GPU time of kernels{self.cut_short}; {self.launches}"
            f" launches measured{along}, which stand for {self.extrapolated} more"
        )


def choose_kernel_launches(
    trace: Iterable[Mapping[str, Any]], request: LaunchRequest, tool: str, measure_words: Sequence[str] = ()
) -> Chosen:
    """Choose kernels by their time and launches by their shapes.

    Args:
        trace: The kernels of one process as rows of table gpu_trace.
        request: What the pass asks for.
        tool: ncu or nvprof.
        measure_words: Of nvprof: the words for metrics and events, which follow each filter.

    Raises:
        NothingMatched: No kernel is what is asked for.
    """
    kernels = _kernels_by_time(trace, request.warmup)
    if not kernels:
        raise NothingMatched("the timeline holds no kernel")
    base = "mangled" if all(k.key for k in kernels) else "function"
    fitting = [k for k in kernels if _name_matches_request(k.name, request)]
    if not fitting:
        raise NothingMatched(_no_match_message(request, [k.name for k in kernels]))
    total_ns = sum(k.total for k in kernels)
    heaviest = _requested_heaviest_kernels(fitting, request)
    needs = _launches_needed_by_shape(heaviest, request.sample or SAMPLE)
    ordinals = _fewest_ordinals(heaviest, needs)
    picked = tuple(_launches_of_ordinals(heaviest, ordinals))
    measured = len(picked)
    needed = sum(n for n, _ in needs.values())
    return Chosen(
        _profiler_arguments(heaviest, ordinals, tool, base, measure_words),
        tuple(k.name for k in heaviest),
        sum(k.total for k in heaviest) / total_ns if total_ns else 0.0,
        measured,
        max(0, measured - needed),
        sum(len(k.durations) for k in heaviest) - measured,
        _uncovered_share_text(fitting, heaviest, request),
        picked,
    )


def find_launches_in_trace(
    trace: Iterable[Mapping[str, Any]], names: Collection[str], ordinals: Sequence[int]
) -> list[Picked]:
    """The launches in this timeline that a choice made from another one means.

    Args:
        trace: The kernels of one process as rows of table gpu_trace.
        names: Mangled names of the chosen kernels; function names where that timeline had no mangled ones.
        ordinals: The launches of each that are measured, from 1.
    """
    rows = ({**row, "phase": None} for row in trace)  # what was chosen counts, wherever it falls this time
    return list(_launches_of_ordinals([k for k in _kernels_by_time(rows, 0) if (k.key or k.name) in names], ordinals))


def pick_launch_per_kernel(chosen: Iterable[Mapping[str, Any]], launches: Iterable[int]) -> list[Picked]:
    """A launch of each kernel among the chosen ones that were measured, at as few ordinals as can be.

    Args:
        chosen: The rows of table chosen_launches of the run that measured them.
        launches: The `launch_id` of those that count.
    """
    wanted = set(launches)
    measured = [row for row in chosen if row["ordinal"] is not None and row["launch_id"] in wanted]
    often = Counter(row["ordinal"] for row in measured)
    ordinal_of: dict[tuple[Any, str], int] = {}
    for row in sorted(measured, key=lambda row: (-often[row["ordinal"]], row["ordinal"])):
        ordinal_of.setdefault((row["mangled_name"], row["kernel"]), row["ordinal"])
    along = set(ordinal_of.values())  # of every kernel
    return [Picked(*(row[name] for name in Picked.__slots__)) for row in measured if row["ordinal"] in along]


def ncu_launch_filter(picked: Sequence[Picked]) -> tuple[str, ...]:
    """The arguments of ncu for these launches."""
    names = dict.fromkeys((pick.mangled_name or "", pick.short_name, pick.kernel) for pick in picked)
    kernels = [_Kernel(*several) for several in names]
    base = "mangled" if all(kernel.key for kernel in kernels) else "function"
    return _profiler_arguments(kernels, [pick.ordinal for pick in picked], "ncu", base, ())


def _launches_of_ordinals(kernels: Iterable[_Kernel], ordinals: Sequence[int]) -> Iterator[Picked]:
    """The launches that these ordinals mean, as far as each kernel has so many."""
    for kernel in kernels:
        for ordinal in ordinals:
            if ordinal <= len(kernel.durations):
                shape = kernel.shape_of[ordinal - 1]
                duration = kernel.durations[ordinal - 1]
                yield Picked(
                    kernel.full_name, kernel.name, kernel.key or None, ordinal, _grid_as_ncu_prints(shape[:3]),
                    _grid_as_ncu_prints(shape[3:6]), duration,
                )  # fmt: skip


def _grid_as_ncu_prints(sizes: Sequence[object]) -> str | None:
    """A grid or block as ncu prints it; None where the timeline does not tell it."""
    return None if None in sizes else f"({', '.join(map(str, sizes))})"


def _uncovered_share_text(fitting: Sequence[_Kernel], heaviest: Sequence[_Kernel], request: LaunchRequest) -> str:
    share = _requested_share(request)
    if request.top is not None or sum(k.total for k in heaviest) >= share * sum(k.total for k in fitting):
        return ""
    return f" (asked: {share:.0%} of {len(fitting)} kernels, at most {len(heaviest)} of them)"


def _requested_share(request: LaunchRequest) -> float:
    names_kernels = bool(request.names) or request.regex is not None
    return request.cover if request.cover is not None else 1.0 if names_kernels else COVER


def _kernels_by_time(trace: Iterable[Mapping[str, Any]], warmup: int) -> list[_Kernel]:
    """The kernels, most expensive first.

    Launches of set-up, of warm-up and before the end of the pass's own warm-up count as ordinals and are not chosen.
    """
    rows = [row for row in trace if row.get("kind") == "kernel" and row.get("duration_ns") is not None]
    # in the order of the calls that launched them, as the tools count; kernels of one graph share their call
    rows.sort(key=lambda row: (row.get("correlation") or 0, row["start_ns"]))
    by_mangled = all(row.get("mangled_name") for row in rows)
    split = any(row.get("phase") == "steady" for row in rows)
    kernels: dict[str, _Kernel] = {}
    for number, row in enumerate(rows):
        name = row.get("short_name") or row["name"]
        key = row["mangled_name"] if by_mangled else name
        kernel = kernels.setdefault(key, _Kernel(key if by_mangled else "", name, row["name"]))
        kernel.durations.append(int(row["duration_ns"]))
        sizes = (row.get(f"{part}_{axis}") for part in ("grid", "block") for axis in "xyz")
        kernel.shape_of.append((*sizes, row.get("static_smem_bytes"), row.get("dynamic_smem_bytes")))
        if split and row.get("phase") != "steady":
            continue
        kernel.total += int(row["duration_ns"])
        if number >= warmup:
            kernel.shapes[kernel.shape_of[-1]].append(len(kernel.durations))
    return sorted((k for k in kernels.values() if k.shapes), key=lambda k: (-k.total, k.key, k.name))


def _name_matches_request(name: str, request: LaunchRequest) -> bool:
    # the function alone, as ncu's --kernel-name has it: `ns::f<int>` -> `f`
    function = re.split(r"[<(]", name, maxsplit=1)[0].rpartition("::")[2]
    if request.names and not {name, function} & set(request.names):
        return False
    if request.regex is not None and not re.search(request.regex, name):
        return False
    return not any(re.search(pattern, name) for pattern in request.exclude)


def _no_match_message(request: LaunchRequest, names: Sequence[str]) -> str:
    """Which kernels there are instead, those of the nearest names first."""
    words = [*request.names, *re.findall(r"\w{3,}", request.regex or "")]
    near = [near_name for word in words if (near_name := nearest(word, names))]
    shown_names = list(dict.fromkeys([*near, *names]))[:3]
    introduction = "nearest" if near else "the most expensive are"
    return f"its filter matched 0 of {len(set(names))} kernels; {introduction}: {', '.join(shown_names)}"


def _requested_heaviest_kernels(kernels: Sequence[_Kernel], request: LaunchRequest) -> list[_Kernel]:
    if request.top is not None:
        return list(kernels[: request.top])
    names_kernels = bool(request.names) or request.regex is not None
    share = _requested_share(request)
    max_kernels = request.at_most
    if max_kernels is None:
        max_kernels = len(kernels) if request.cover is not None or names_kernels else AT_MOST
    goal, total = share * sum(k.total for k in kernels), 0
    heaviest: list[_Kernel] = []
    for kernel in kernels:
        if heaviest and (total >= goal or len(heaviest) >= max_kernels):
            break
        heaviest.append(kernel)
        total += kernel.total
    return heaviest


def _launches_needed_by_shape(
    kernels: Sequence[_Kernel], sample: int
) -> dict[tuple[int, tuple[object, ...]], tuple[int, list[int]]]:
    """How many launches of each kernel's shapes are wanted, and those that may stand for the shape."""
    needs = {}
    for number, kernel in enumerate(kernels):
        weights = {shape: sum(kernel.durations[o - 1] for o in ordinals) for shape, ordinals in kernel.shapes.items()}
        available = {shape: len(ordinals) for shape, ordinals in kernel.shapes.items()}
        for shape, count in _divide_sample_by_shape(sample, weights, available).items():
            needs[number, shape] = (count, _order_by_typical_duration(kernel, kernel.shapes[shape]))
    return needs


def _divide_sample_by_shape(
    sample: int, weights: Mapping[tuple[object, ...], int], available: Mapping[tuple[object, ...], int]
) -> dict[tuple[object, ...], int]:
    """The sample over shapes by their time: one each for the most expensive, the rest by what is left of each."""
    order = sorted(weights, key=lambda shape: (-weights[shape], str(shape)))
    counts: Counter[tuple[object, ...]] = Counter(order[:sample])
    while sum(counts.values()) < sample:
        open_ = [s for s in counts if counts[s] < available[s]]
        if not open_:
            break
        counts[max(open_, key=lambda s: weights[s] / (counts[s] + 1))] += 1
    return dict(counts)


def _order_by_typical_duration(kernel: _Kernel, ordinals: Sequence[int]) -> list[int]:
    """Launches in the order in which they may stand for all: of usual duration, not the first ones of the program."""
    later = [o for o in ordinals if 10 * o > len(kernel.durations)] or list(ordinals)
    middle = sorted(kernel.durations[o - 1] for o in later)[len(later) // 2]
    return sorted(later, key=lambda o: (abs(kernel.durations[o - 1] - middle), o))[:_CANDIDATES]


def _fewest_ordinals(
    kernels: Sequence[_Kernel], needs: Mapping[tuple[int, tuple[object, ...]], tuple[int, list[int]]]
) -> list[int]:
    """Few ordinals that give each need its launches: at each step the one that serves most and brings least along."""
    left = {key: count for key, (count, _) in needs.items()}
    serves: dict[int, set[tuple[int, tuple[object, ...]]]] = defaultdict(set)
    for key, (_, candidates) in needs.items():
        for ordinal in candidates:
            serves[ordinal].add(key)
    lengths = [len(k.durations) for k in kernels]
    rank = {(key, o): at for key, (_, candidates) in needs.items() for at, o in enumerate(candidates)}
    chosen: list[int] = []
    while any(left.values()):
        best, best_value = 0, (float("-inf"), 0.0, 0)
        for ordinal, keys in serves.items():
            open_ = [key for key in keys if left[key] > 0]
            if not open_:
                continue
            along = sum(length >= ordinal for length in lengths) - len(open_)
            unusual = sum(rank[key, ordinal] for key in open_) / len(open_)
            value = (len(open_) - 0.5 * along, -unusual, -ordinal)
            if value > best_value:
                best, best_value = ordinal, value
        if best == 0:
            break
        for key in serves.pop(best):
            left[key] = max(0, left[key] - 1)
        chosen.append(best)
    return sorted(chosen)


def _profiler_arguments(
    kernels: Sequence[_Kernel], ordinals: Sequence[int], tool: str, base: str, measure_words: Sequence[str]
) -> tuple[str, ...]:
    if tool == "nvprof":
        names = "|".join(dict.fromkeys(regex_of_names([k.name])[1:-1] for k in kernels))
        return (
            "--kernels",
            f"::(^|[^A-Za-z0-9_])({names})($|[^A-Za-z0-9_]):{regex_of_numbers(ordinals)}",
            *measure_words,
        )
    keys = [k.key for k in kernels]
    if base == "mangled" and sum(map(len, keys)) < _LONGEST:
        return ncu_launch_filter_options(keys, ordinals)
    names_only = regex_of_names(dict.fromkeys(k.name for k in kernels))
    return ("--kernel-name-base", "function", "--kernel-id", f"::regex:{names_only}:{regex_of_numbers(ordinals)}")


TABLE: Final = "chosen_launches"
MEASURED, OTHER_SHAPE, MISSING, UNEXPECTED = "measured", "other shape", "missing", "unexpected"
_LISTED: Final = 3
_FIX: Final = (
    "make each run launch the same kernels (fixed seeds, no autotuning such as cudnn.benchmark); or choose by name:"
    " kernels: {regex: ...}, launches: {skip: 10, count: 3}"
)


def chosen_launch_rows(picked: Iterable[Picked], source: str) -> list[dict[str, Any]]:
    """The rows of table chosen_launches before anything was measured.

    Args:
        picked: The chosen launches.
        source: The run of the timeline that they were chosen from.
    """
    return [asdict(pick) | {"chosen_from": source, "state": None, "launch_id": None} for pick in picked]


def match_chosen_launches(
    chosen: Iterable[Mapping[str, Any]], launches: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The chosen launches, each with what became of it, and the launches that were measured unasked.

    Args:
        chosen: The rows of table chosen_launches of a run.
        launches: The rows of table launches of that run.
    """
    chosen_by_name = group_by(
        (row for row in chosen if row.get("ordinal") is not None),
        lambda row: (str(row.get("mangled_name") or ""), str(row["kernel"])),
    )
    left = group_by(
        _launches_of_first_process(launches),
        lambda row: str(row.get("mangled_name") or without_spaces(str(row.get("kernel") or ""))),
    )
    matched_rows: list[dict[str, Any]] = []
    for (mangled, kernel), rows in chosen_by_name.items():
        names = (mangled, without_spaces(kernel), str(rows[0]["short_name"]))
        measured_launches = next((left.pop(name) for name in names if name and name in left), [])
        ordered = sorted(rows, key=lambda row: int(row["ordinal"]))
        matched_rows += map(_add_measured_launch, ordered, chain(measured_launches, repeat(None)))
        matched_rows += [_unexpected_launch_row(launch) for launch in measured_launches[len(ordered) :]]
    return [*matched_rows, *(_unexpected_launch_row(launch) for unexpected in left.values() for launch in unexpected)]


def unmatched_launch_sentences(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What did not match, each with a hint; none where every chosen launch was measured."""
    chosen = [row for row in rows if row["state"] != UNEXPECTED]
    sentences = []
    if affected := [row for row in chosen if row["state"] == MISSING]:
        source = affected[0].get("chosen_from") or "the timeline"
        sentences.append(
            f"{len(affected)} of {len(chosen)} launches chosen from {source} were not measured:"
            f" {_launch_counts_text(affected)}"
        )
    if affected := [row for row in chosen if row["state"] == OTHER_SHAPE]:
        example = affected[0]
        sentences.append(
            f"{len(affected)} of {len(chosen)} launches have another grid or block than in the timeline, such as"
            f" launch {example['ordinal']} of {example['short_name']}: {example['measured_grid']} x"
            f" {example['measured_block_size']}"
            f" instead of {example['grid']} x {example['block_size']}"
        )
    if affected := [row for row in rows if row["state"] == UNEXPECTED]:
        sentences.append(
            f"{len(affected)} launches were measured that the timeline did not choose: {_launch_counts_text(affected)}"
        )
    return [(f"launches moved between the passes: {text}", _FIX) for text in sentences]


def _launches_of_first_process(launches: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The launches of the first rank, of its process with most of them: kernels were chosen from one process."""
    groups = group_by(launches, lambda row: (row.get("rank") or 0, row.get("pid")))
    if not groups:
        return []
    first = min(rank for rank, _ in groups)
    largest = max((group for (rank, _), group in groups.items() if rank == first), key=len)
    return sorted(largest, key=lambda row: row.get("launch_id") or 0)


def _add_measured_launch(row: Mapping[str, Any], launch: Mapping[str, Any] | None) -> dict[str, Any]:
    if launch is None:
        return dict(row) | {"state": MISSING, "launch_id": None}
    is_same_shape = all(
        row.get(name) is None or launch.get(name) is None or without_spaces(row[name]) == without_spaces(launch[name])
        for name in ("grid", "block_size")
    )
    return dict(row) | _measured_fields(launch, MEASURED if is_same_shape else OTHER_SHAPE)


def _unexpected_launch_row(launch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kernel": launch.get("kernel"),
        "short_name": launch.get("short_name") or launch.get("kernel"),
        "mangled_name": launch.get("mangled_name"),
    } | _measured_fields(launch, UNEXPECTED)


def _measured_fields(launch: Mapping[str, Any], state: str) -> dict[str, Any]:
    sizes = {"measured_grid": launch.get("grid"), "measured_block_size": launch.get("block_size")}
    return {"state": state, "launch_id": launch.get("launch_id"), **sizes}


def _launch_counts_text(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(str(row["short_name"]) for row in rows)
    return first_names([f"{count} of {name}" for name, count in counts.items()], _LISTED, "kernels")
