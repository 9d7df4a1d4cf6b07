"""Iterations of a program: the part of a process's timeline that repeats.

They come from marks that repeat (NVTX ranges, PyTorch's step markers); without marks from the sequence of kernels.

A training loop launches the same kernels in the same order again and again. The length of a repetition is the lag at
which the sequence equals itself; where one begins is told by a kernel that occurs once in each, the one after the
longest pause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from nsw.readers.timeline.calls import time_order
from nsw.readers.timeline.columns import GrowingColumn, RunningSums, many_rows, select_rows
from nsw.readers.timeline.statistics import IntArray

FoundBy: TypeAlias = Literal["nvtx", "profiler_step", "kernel_sequence"]

_FEWEST: Final = 3  # repetitions that make iterations of marks
_MANY: Final = 10  # a mark that repeats less often gives way to one inside it: epochs to steps
_COVERED: Final = 0.5  # of the time from the first mark's start to the last one's end
_HELD: Final = 0.5  # of the GPU's work from the first mark on
_FULL_COVER: Final = 0.9  # of the time: marks that take less are a part of an iteration each
_LOOKED_AT: Final = 64  # marks of most time; iterations take most of it
_DIGITS: Final = re.compile(r"\d+")
_COMPILING: Final = re.compile(r"Xla(?!Module)")  # a module is executed; the rest is of its compiler
_STEP: Final = re.compile(
    r"(?i)(?<![a-z])(?:profiler|train|training)?[ _-]?(?:step|iter|iteration|(?:mini)?batch)(?![a-z])"
)
# a layer of a network with its number, or `#`, as PyTorch and FSDP name modules: encoder.block.3, layer_12
_LAYER: Final = re.compile(r"(?i)([\w.]*?(?:(?<![a-z])layers?|\w\.(?:blocks?|h)(?=\.)))[._ -]?(\d+|#)")
_FEWEST_LAYERS: Final = 3


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of one process: `starts[i]` to `starts[i + 1]`, the last one to `end`; ns of the host's clock."""

    found_by: FoundBy
    name: str | None
    starts: IntArray
    end: int

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Marks:
    """The ranges of one name on one thread; ns of the host's clock, in order of start."""

    name: str
    starts: IntArray
    ends: IntArray
    launches: bool = True  # whether the thread makes CUDA calls

    @property
    def total_duration(self) -> int:
        """The sum of the durations of the ranges (ns)."""
        return int((self.ends - self.starts).sum())

    def are_iterations(self) -> bool:
        """Whether they follow one another often enough to be iterations, and take most of the time meanwhile."""
        if len(self.starts) < _FEWEST:
            return False
        in_turn = bool((self.starts[1:] >= self.ends[:-1]).mean() > 0.99)  # recursion nests ranges of one name
        return in_turn and self.total_duration >= _COVERED * max(int(self.ends.max() - self.starts[0]), 1)


class LaunchedWork:
    """The GPU's work by the time of its launch."""

    def __init__(self, launched: IntArray, durations: IntArray) -> None:
        order = time_order(launched)
        self._launched = launched[order]
        self._sums = RunningSums.of_values(durations[order])

    def share_launched_by(self, marks: Marks) -> float:
        """How much of the work from the first mark on the marks launch, 0 to 1; 1 where there is no work."""
        at = np.searchsorted(self._launched, np.concatenate((marks.starts, marks.ends)))
        total = self._sums.before(at).astype(float)
        rest = float(self._sums.total) - float(total[0])
        count = len(marks.starts)
        return float((total[count:] - total[:count]).sum()) / rest if rest > 0 else 1.0


def name_without_numbers(name: str) -> str:
    """A mark's name with its running numbers replaced, so that `step 1` and `step 2` are one name."""
    return _DIGITS.sub("#", name)


def iterations_by_marks(
    ranges: Iterable[Marks], work: LaunchedWork | None = None, *, named_step: str | None = None
) -> Iterations | None:
    """The marks that are a process's iterations, or None.

    Of marks that repeat and launch most of the GPU's work from the first of them on: those that are called steps,
    iterations or batches; else the outermost, unless it repeats less than ten times and one inside it does more often.

    Args:
        ranges: The marks of the process, by name and thread.
        work: The GPU's work; None: none is known.
        named_step: The name that a recipe gives; then only that one is looked at, however often it repeats.
    """
    marks = sorted(ranges, key=lambda m: -m.total_duration)
    if named_step is not None:
        for alike in (str, name_without_numbers, lambda name: name_without_numbers(name).rstrip("# -_:([<")):
            match = next((m for m in marks if alike(m.name) == alike(named_step)), None)
            if match is not None:
                return _iterations_of_marks(match)
        return None
    candidates = [
        m
        for m in marks[:_LOOKED_AT]
        if m.launches
        and m.are_iterations()
        and (work is None or work.share_launched_by(m) >= _HELD)
        and numbered_layer(m.name) is None
        and not _COMPILING.match(m.name)
    ]
    if not candidates:
        return None
    steps = [m for m in candidates if _STEP.search(m.name)]
    pool = steps or candidates
    often = [m for m in pool if len(m.starts) >= _MANY]
    return _iterations_of_marks((often or pool)[0])


def numbered_layer(name: str) -> tuple[str, str] | None:
    """The layer of a network that a mark is of: what layers are called there, and its number; None: of none."""
    match = _LAYER.search(name)
    return None if match is None else (match[1], match[2])


def are_layers(iterations: Iterations, starts: IntArray, layers: IntArray) -> bool:
    """Whether what repeats are layers of a network, one after the other: each repetition holds a few of all layers.

    Args:
        iterations: What repeats.
        starts: When marks of layers begin, ns of the host's clock.
        layers: The layer of each of them.
    """
    heads = iterations.starts
    inside = (starts >= heads[0]) & (starts < iterations.end)
    count = len(np.unique(layers[inside]))
    if count < _FEWEST_LAYERS:
        return False
    repetition = np.searchsorted(heads, starts[inside], side="right")
    distinct = np.unique(np.stack((repetition, layers[inside])), axis=1)
    each = np.unique(distinct[0], return_counts=True)[1]
    return 2 * len(each) >= len(heads) and 2 * float(np.median(each)) <= count


def _iterations_of_marks(marks: Marks) -> Iterations:
    """The iterations; where the marks cover a part of each only, the last one is not known whole, and is left out."""
    starts, ends = marks.starts, marks.ends
    if len(starts) > _FEWEST and marks.total_duration < _FULL_COVER * int(ends.max() - starts[0]):
        return Iterations("nvtx", marks.name, starts[:-1], int(starts[-1]))
    return Iterations("nvtx", marks.name, starts, int(ends[-1]))


_REPETITIONS: Final = 5  # repetitions
_LARGE: Final = 20  # kernels of a repetition that makes iterations of the last third of a run
_LONG, _FEW_LONG = 100, 3  # kernels of a repetition, of which fewer repetitions are no chance
_WINDOWS: Final = (1 << 14, 1 << 17)  # kernels looked at for the lag, from the later half of the sequence
_EQUAL: Final = 0.85  # of the kernels one lag apart
_NEARLY: Final = 0.02  # of two lags that fit equally well the shorter one counts: the other is its multiple
_REPEATED: Final = 0.5  # of all kernels
_REGULAR: Final = 0.98  # of the distances between repetitions
_LIKELY: Final = 32  # lags that the autocorrelation proposes
_WHOLE_REPETITION: Final = 0.9  # of a repetition's kernels
_ANCHORS: Final = 256  # kernels tried as the first of a repetition
_TRIVIAL: Final = 3  # kernels
_UNEQUAL: Final = 10.0  # times by which the quartiles of iterations' times differ at most
_FEW_KERNELS: Final = 32  # of a repetition that may be a loop within an iteration
_LAYER_KERNELS: Final = 128  # likewise where a wait, a copy or a pause ends the iteration: layers of a transformer
_MOST_LAYERS: Final = 96  # repetitions in an iteration: more are time steps, with a result now and then
_MOST_BATCHES: Final = 16  # likewise where each has input of its own, as the batches that a step adds up
_LONG_PAUSE, _LONG_PAUSE_NS = 5.0, 50_000.0  # times the usual one, and ns: a pause that may end an iteration
_SAME_DISTANCE: Final = 0.8  # of the distances between what ends iterations
_LONGEST_LAUNCH_NS: Final = 100_000.0  # a loop of one kernel that takes longer is a time step rather than a launch
_DEVICES: Final = 16  # whose sequences are looked at
_OPTIMIZER: Final = re.compile(r"multi_tensor_apply|fused_?(?:adam|sgd|lamb)|addcdiv", re.IGNORECASE)
_TRIES: Final = re.compile(
    r"redzone_?(?:allocator|checker)|xla_fp_comparison|stream_executor::.*(?:DelayK|RepeatB)", re.IGNORECASE
)
_CANDIDATE: Final = 16  # kernels between two of an autotuner, at most
_TRAINS: Final = 8  # kernels that a step has at least, between an optimizer and the next
_MOST_STEPS: Final = 0.6  # of a training's steps, that are about equal
# times the kernels of a parameter's update, and share of all, between two steps' updates
_UPDATE, _STEPS_REST = 10, 0.25
_ALIKE_STEPS: Final = 0.02  # of their kernels: one has some more where gradients are clipped, or a number is shown
_SLOW_STEP, _EQUAL_STEP = 1.3, 1.1  # times the usual one, that a slow one takes at least, and most others at most
_LONG_STEP_NS: Final = 1e6  # of a step whose wait for the GPU costs little
_PASSES: Final = 1.9  # of a step, each a repetition: two, where one at an end is cut off
_SEVERAL_STEPS: Final = 2.5  # of an iteration: three, where one at an end is cut off


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of a process, in any order: what each is, when and how long it ran, how long after its launch; ns."""

    names: IntArray
    starts: IntArray
    durations: IntArray
    delays: IntArray
    device: IntArray

    def launches(self) -> IntArray:
        """When each was launched."""
        return self.starts - self.delays

    def of_each_device(self) -> Iterator[Kernels]:
        """Yield those of each device, of most time first: threads that launch for several mix sequences by chance."""
        if len(self.device) == 0 or bool((self.device == self.device[0]).all()):
            yield self
            return
        devices = np.unique(self.device)
        took = np.array([self.durations[self.device == device].sum() for device in devices])
        for device in devices[np.argsort(-took, kind="stable")[:_DEVICES]]:
            yield self.select(self.device == device)

    def select(self, rows: IntArray) -> Kernels:
        """Some of them."""
        names = self.names[rows]
        return Kernels(names, *(select_rows(getattr(self, c), rows, len(names)) for c in self.__slots__[1:]))


def is_optimizer(kernel: str) -> bool:
    """Whether a kernel updates parameters, by its name: a training step ends with it."""
    return _OPTIMIZER.search(kernel) is not None


def is_autotuner(kernel: str) -> bool:
    """Whether XLA launches a kernel around the candidates that it tries, by its name."""
    return _TRIES.search(kernel) is not None


def without_trials(kernels: Kernels, autotuners: Collection[int]) -> Kernels:
    """The kernels without an autotuner's own and the candidates between them: the program repeats behind them.

    Args:
        kernels: The kernels of a process.
        autotuners: What kernels of an autotuner are, as in `kernels.names`.
    """
    if not autotuners:
        return kernels
    order = time_order(kernels.launches())
    in_order = kernels.select(np.arange(len(kernels.names))[order])
    at = np.flatnonzero(np.isin(in_order.names, list(autotuners)))
    is_trial = np.zeros(len(in_order.names) + 1, np.int64)
    near = np.diff(at, append=at[-1:] + 1)
    near[near > _CANDIDATE] = 1
    np.add.at(is_trial, at, 1)
    np.add.at(is_trial, at + near, -1)
    return in_order.select(np.flatnonzero(np.cumsum(is_trial)[:-1] == 0)) if len(at) else kernels


def iterations_by_kernels(
    kernels: Kernels,
    separators: Sequence[IntArray] = (),
    inputs: IntArray | None = None,
    optimizers: Collection[int] = (),
    *,
    operations: Callable[[], IntArray],
) -> Iterations | None:
    """The iterations of a process by its kernels: by those of the first device whose sequence repeats.

    Args:
        kernels: Its kernels.
        separators: Times of the host's clock, ns, of what may end an iteration: waits for the GPU, copies from it.
        inputs: When copies to the GPU were launched, which an iteration may begin with.
        optimizers: What kernels of optimizers are, as in `kernels.names`.
        operations: Makes an array of when kernels and all others were launched: a last iteration of few is a remainder.
    """
    repeated = (_repetition_of_kernels(part, separators, inputs, optimizers) for part in kernels.of_each_device())
    iterations = next(filter(None, repeated), None)
    if iterations is None or len(iterations) <= _FEWEST:
        return iterations
    launched = operations()
    launched.sort()
    counts = np.diff(np.searchsorted(launched, [*iterations.starts.tolist(), iterations.end]))
    if 2 * counts[-1] >= np.median(counts):
        return iterations
    return Iterations(iterations.found_by, iterations.name, iterations.starts[:-1], int(iterations.starts[-1]))


def _repetition_of_kernels(
    kernels: Kernels, separators: Sequence[IntArray], inputs: IntArray | None, optimizers: Collection[int]
) -> Iterations | None:
    """As `find_repetitions`, of kernels in any order."""
    names, starts, durations, launched = kernels.names, kernels.starts, kernels.durations, kernels.launches()
    order = time_order(launched)
    names, starts, durations, launched = (column[order] for column in (names, starts, durations, launched))
    repeated = find_repetitions(names, starts, durations) or _behind_trials(names, starts, durations)
    # a repetition so small may be a loop within an iteration: over layers, or parameters
    length = 0.0 if repeated is None or len(repeated[0]) < 2 else float(np.median(np.diff(repeated[0])))
    if repeated is not None and 0 < length <= _LAYER_KERNELS:
        by_input = None if inputs is None else _separated_repetition(launched, [inputs])
        pauses = GrowingColumn.of_parts(
            np.diff(launched[rows.start : rows.stop + 1]) for rows in many_rows(len(launched) - 1)
        )
        long = launched[1:][pauses > max(_LONG_PAUSE * float(np.median(pauses)), _LONG_PAUSE_NS)]
        outer = _separated_repetition(launched, [long, *separators])
        if length <= _FEW_KERNELS and (outer is None or not _is_outer_repetition(outer[0], repeated[0])):
            outer = find_repetitions(names, starts, durations, outermost=True)
        longer = [by_input] if by_input is not None and 2 * len(by_input[0]) <= len(repeated[0]) else []
        if outer is not None and _is_outer_repetition(outer[0], repeated[0]):
            longer += [] if _are_steps(launched, repeated[0], outer[0], inputs) else [outer]
        if longer:
            repeated = min(longer, key=lambda one: len(one[0]))
        elif length <= _FEW_KERNELS and _is_only_inner(names, starts, repeated[0]):
            repeated = None
    steps = _training_steps(names, optimizers)
    # what repeats may hold several, of which some have more to do, or be a part of each, as a pass over time
    if steps is not None and (
        repeated is None
        or len(steps[0]) >= _SEVERAL_STEPS * len(repeated[0])
        or len(repeated[0]) >= _PASSES * len(steps[0])
    ):
        repeated = steps
    if repeated is None:
        return None
    finer = (_separated_repetition(launched, [times]) for times in separators)
    repeated = next(
        (one for one in finer if one is not None and _has_slow_step_in_each(starts, one[0], repeated[0])), repeated
    )
    heads, behind = repeated
    at, count = np.unique(launched[heads], return_counts=True)  # launches before a recording begins have one time
    heads = heads[np.isin(launched[heads], at[count == 1])]
    if len(heads) < _FEWEST:
        return None
    is_exact = len(np.unique(np.diff(heads))) == 1  # then some may pause for long
    low, high = np.quantile(np.diff(starts[heads]), (0.25, 0.5 if is_exact else 0.75)).tolist()
    if len(heads) > _FEWEST and high > _UNEQUAL * low:
        return None
    end = int(launched[behind]) if behind < len(launched) else int(launched[-1]) + 1
    return Iterations("kernel_sequence", None, launched[heads], end)


def _behind_trials(names: IntArray, starts: IntArray, durations: IntArray) -> tuple[IntArray, int] | None:
    """The large repetitions that go on to the end of a run, of which more than half is autotuning or set-up."""
    first = len(names) - len(names) // 3
    found = find_repetitions(names[first:], starts[first:], durations[first:], fewest=_REPETITIONS)
    if found is None or len(names) - first - found[1] > 2 * (length := int(np.median(np.diff(found[0])))):
        return None
    if length < _LARGE or find_repetitions(names[:first], starts[:first], durations[:first]) is not None:
        return None
    heads = [int(found[0][0]) + first]
    while heads[-1] >= length:
        before = slice(heads[-1] - length, heads[-1])
        if (names[before] == names[heads[-1] : heads[-1] + length]).mean() < _EQUAL:
            break
        heads.append(heads[-1] - length)
    return np.concatenate((heads[:0:-1], found[0] + first)), found[1] + first


def _training_steps(names: IntArray, optimizers: Collection[int]) -> tuple[IntArray, int] | None:
    """The steps of a training, each behind the optimizer of the one before, where most are equal; else None."""
    updates = np.flatnonzero(np.isin(names, list(optimizers)))
    if not len(updates):
        return None
    ends = updates[np.append(np.diff(updates) > _TRAINS, True)] + 1
    distances, counts = np.unique(np.diff(ends), return_counts=True)
    if len(ends) < _REPETITIONS:
        return None
    usual = int(distances[np.argmax(counts)])
    if counts[np.abs(distances - usual) <= _ALIKE_STEPS * usual].sum() < _MOST_STEPS * counts.sum():
        return None
    bodies = names[ends[:-1][np.diff(ends) == usual][:, None] + np.arange(usual)]
    if (bodies == bodies[-1]).mean() < _EQUAL or _updates_one_parameter(names, ends, bodies[-1]):
        return None
    heads = ends[:-1] if ends[0] < usual else np.concatenate(([ends[0] - usual], ends[:-1]))
    return (heads, int(ends[-1])) if ends[-1] - heads[0] >= _REPEATED * len(names) else None


def _updates_one_parameter(names: IntArray, ends: IntArray, body: IntArray) -> bool:
    """Whether each update is of one parameter: a step's other work then lies in the longest spans between updates."""
    is_between = np.diff(ends) > _UPDATE * len(body)
    if len(body) > _FEW_KERNELS or not is_between.any():
        return False
    spans = zip(ends[:-1][is_between].tolist(), ends[1:][is_between].tolist(), strict=True)
    between = np.concatenate([names[begin : end - len(body)] for begin, end in spans])
    return len(between) >= _STEPS_REST * (ends[-1] - ends[0]) and float(np.isin(between, body).mean()) < _COVERED


def _has_slow_step_in_each(starts: IntArray, heads: IntArray, outer: IntArray) -> bool:
    """Whether each of the longer repetitions is several equal ones of milliseconds, of which one takes longer."""
    if len(outer) < _FEWEST:
        return False
    count = int(np.median(np.diff(np.searchsorted(heads, outer))))
    took = np.diff(starts[heads])
    usual = float(np.median(took))
    slow = took > _SLOW_STEP * usual
    if count < _SEVERAL_STEPS or usual < _LONG_STEP_NS or slow.sum() < _FEWEST:
        return False
    in_turn = float((np.diff(np.flatnonzero(slow)) == count).mean())
    return in_turn >= _SAME_DISTANCE and float(np.quantile(took[~slow], 0.9)) <= _EQUAL_STEP * usual


def _separated_repetition(launched: IntArray, separators: Sequence[IntArray]) -> tuple[IntArray, int] | None:
    """The outermost repetition of kernels that are much alike, by what comes between them at equal distances.

    The distances count launches. What comes between is a wait, a copy, or a pause of the host.
    """
    places = [np.searchsorted(launched, np.sort(times)) for times in separators]
    best: tuple[IntArray, int] | None = None
    for place in places:
        heads = np.unique(place[(place > 0) & (place < len(launched))])
        distances, counts = np.unique(np.diff(heads), return_counts=True)
        if not len(distances):
            continue
        usual = int(distances[np.argmax(counts)])
        if counts.max() < max(_SAME_DISTANCE * counts.sum(), _REPETITIONS - 1) or usual < 2:
            continue
        first = int(np.flatnonzero(np.diff(heads) == usual)[0])
        heads, before = heads[first:], int(heads[first])
        if before >= usual:  # what is before the first separator is an iteration as well
            heads = np.concatenate(([before - usual], heads))
        if len(launched) - int(heads[-1]) < _WHOLE_REPETITION * usual:
            heads = heads[:-1]
        behind = min(int(heads[-1]) + usual, len(launched))
        if behind - int(heads[0]) >= _REPEATED * len(launched) and (best is None or len(heads) < len(best[0])):
            best = heads, behind
    return best


def _is_outer_repetition(outer: IntArray, inner: IntArray) -> bool:
    """Whether a longer repetition has others than the shorter in it; of very few kernels always: a loop in it."""
    if min(len(outer), len(inner)) < 2:
        return False
    length, step = (int(np.median(np.diff(heads))) for heads in (outer, inner))
    count = int(np.median(np.diff(np.searchsorted(inner, outer))))
    return length >= 2 * step and (step <= _TRIVIAL or (length != count * step and count <= _MOST_LAYERS))


def _are_steps(launched: IntArray, heads: IntArray, outer: IntArray, inputs: IntArray | None) -> bool:
    """Whether each of many repetitions copies something to the GPU, as steps do, and layers of one do not.

    A chunk of a pipeline does so too, and has few kernels.
    """
    if inputs is None or int(np.median(np.diff(np.searchsorted(heads, outer)))) <= _MOST_BATCHES:
        return False
    if float(np.median(np.diff(heads))) < _TRAINS:
        return False
    copies = np.diff(np.searchsorted(np.sort(inputs), launched[heads]))
    return float((copies > 0).mean()) >= _SAME_DISTANCE


def _is_only_inner(names: IntArray, starts: IntArray, heads: IntArray) -> bool:
    """Whether a repetition is a part of iterations that nothing marks: one kernel, or few in unequal loops."""
    step = int(np.median(np.diff(heads)))
    one = len(np.unique(names[heads[0] : heads[-1] + step])) == 1
    if one:
        return float(np.median(np.diff(starts[heads]))) < _LONGEST_LAUNCH_NS * step
    return step <= _TRIVIAL and not _is_regular(heads, step)


def count_rare_repetitions(kernels: Kernels) -> int:
    """The number of times that a sequence of kernels repeats, where that is too seldom for iterations; 0: none does."""
    for part in kernels.of_each_device():
        order = time_order(part.launches())
        found = find_repetitions(part.names[order], part.starts[order], part.durations[order], fewest=2)
        if found is not None:
            return len(found[0])
    return 0


def find_repetitions(
    names: IntArray, starts: IntArray, durations: IntArray, *, fewest: int | None = None, outermost: bool = False
) -> tuple[IntArray, int] | None:
    """Where each repetition of a sequence begins.

    Args:
        names: Shape (n,), what each kernel is, in order of launch; any integers.
        starts: Shape (n,), ns on the GPU.
        durations: Shape (n,), ns.
        fewest: How many there must be; None: fewer, the longer they are.
        outermost: Whether shorter repetitions inside the best do not count.

    Returns:
        The indices of the first kernels, ascending, and the index behind the last repetition; None where nothing
        repeats often enough.
    """
    for lag, is_best in _candidate_lags(names):
        if outermost and not is_best:
            continue
        heads = _heads_by_anchor(names, starts, durations, lag)
        if not is_best and (heads is None or not _is_regular(heads, lag)):
            continue
        if heads is None:
            heads = _heads_by_blocks(names, lag)
        if len(heads) and len(names) - int(heads[-1]) < _WHOLE_REPETITION * lag:
            heads = heads[:-1]  # cut short: the end of the one before it
        if len(heads) < (fewest or (_FEW_LONG if lag >= _LONG else _REPETITIONS)):
            continue
        behind = min(int(heads[-1]) + lag, len(names))
        if behind - int(heads[0]) >= _REPEATED * len(names):
            return np.asarray(heads, np.int64), behind
    return None


def _is_regular(heads: IntArray, lag: int) -> bool:
    """Whether the heads follow each other about one lag apart: those of equal layers leave out the rest of a step."""
    distances = np.diff(heads)
    return len(distances) > 0 and bool(((distances >= lag / 2) & (distances <= 2 * lag)).mean() >= _REGULAR)


def _candidate_lags(names: IntArray) -> list[tuple[int, bool]]:
    """Lengths that a repetition may have, the shortest first; marked is the one at which most is equal."""
    for size in _WINDOWS:
        window = _late_window(names, size)
        lags = _lags_within(window)
        if lags:
            return lags
        if len(window) == len(names):
            break
    return _lags_within(names[len(names) // 4 : len(names) - len(names) // 10])  # behind a start that is much of it


def _late_window(names: IntArray, size: int) -> IntArray:
    """The stretch that ends a little before the end: the beginning is set-up."""
    last = len(names) - len(names) // 10
    return names[max(last - size, 0) : last] if len(names) > size else names


def _lags_within(window: IntArray) -> list[tuple[int, bool]]:
    max_lag = len(window) // 3
    if max_lag < 1:
        return []
    _, codes = np.unique(window, return_inverse=True)
    # a random direction for each name: the autocorrelation then counts, up to noise, the equal pairs at each lag
    chance = np.random.default_rng(0)
    signal = np.exp(2j * np.pi * chance.random(int(codes.max()) + 1))[codes]
    spectrum = np.fft.fft(signal, 2 * len(window))
    equal = np.fft.ifft(np.abs(spectrum) ** 2).real[: max_lag + 1]
    equal /= len(window) - np.arange(max_lag + 1)
    likely = (np.argsort(-equal[1:], kind="stable")[:_LIKELY] + 1).tolist()
    # fractions of a lag too: where many multiples fit equally well the shortest may not be among the likely
    tried = sorted({*likely, *(lag // n for lag in likely for n in range(2, 33) if lag % n == 0)})
    shares = {lag: float((window[:-lag] == window[lag:]).mean()) for lag in tried}
    if max(shares.values()) < _EQUAL:
        return []
    best = min(lag for lag in tried if shares[lag] >= max(shares.values()) - _NEARLY)
    divisors = [lag for lag in range(1, best // 2 + 1) if best % lag == 0]
    exact = (lag for lag in divisors if bool((window[:-lag] == window[lag:]).all()))
    if (shortest := next(exact, None)) is not None:
        return [(shortest, True)]
    # another repetition before it, of a phase of its own, may fit a multiple alone
    late = window[len(window) // 2 : len(window) - len(window) // 10]
    exact = (lag for lag in divisors if len(late) > 2 * best and bool((late[:-lag] == late[lag:]).all()))
    if (shortest := next(exact, None)) is not None:
        return [(shortest, True), (best, True)]
    return [*((lag, False) for lag in tried if lag < best and shares[lag] >= _EQUAL), (best, True)]


def _heads_by_anchor(names: IntArray, starts: IntArray, durations: IntArray, lag: int) -> IntArray | None:
    """Where the kernel occurs that begins a repetition; None where every kernel occurs several times in one."""
    at = max(len(names) - len(names) // 10 - lag, 0)
    values, counts = np.unique(names[at : at + lag], return_counts=True)
    once = values[counts == 1]
    near = slice(max(at + lag - max(8 * lag, _WINDOWS[0]), 0), at + lag)
    pauses = starts[near][1:] - np.maximum.accumulate(starts[near] + durations[near])[:-1]
    codes = np.searchsorted(once, names[near][1:])
    anchors = [
        (float(np.median(pauses[occurs])), -code)
        for code, name in enumerate(once[:_ANCHORS].tolist())
        if (occurs := (codes == code) & (names[near][1:] == name)).any()
    ]
    if not anchors:
        return None
    occurrences = np.flatnonzero(names == once[-max(anchors)[1]])
    distances = np.diff(occurrences)
    regular = np.flatnonzero((distances >= lag / 2) & (distances <= 2 * lag))
    if not len(regular):
        return None
    return np.asarray(occurrences[regular[0] : regular[-1] + 2])


def _heads_by_blocks(names: IntArray, lag: int) -> IntArray:
    """Every lag-th kernel of the longest stretch in which the sequence repeats."""
    is_equal = names[:-lag] == names[lag:]
    equal = RunningSums.of_values(is_equal)
    blocks = np.arange(0, len(is_equal) - lag + 1, lag)
    good = equal.before(blocks + lag) - equal.before(blocks) >= _EQUAL * lag
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False])).astype(np.int8)))
    if not len(edges):
        return np.empty(0, np.int64)
    first, last = edges[::2], edges[1::2]
    longest = int(np.argmax(last - first))
    # the block behind the last good one equals it: it is a repetition too
    return np.arange(int(first[longest]), int(last[longest]) + 1, dtype=np.int64) * lag
