"""Rules over iterations that are slower than the others: the first ones, each n-th, single ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.idle_gpu import BUSY_PCT
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.gaps import (
    LITTLE_OF_SLOWER,
    MORE_WORK,
    MOST_OF_SLOWER,
    find_slow_iterations,
    is_cause_of_slow_iterations_known,
    loads_in_slow_iterations,
)
from nsw.analysis.rules.hits import MOSTLY, WORTH_PCT, Context, Hit, detect_framework, make_hit
from nsw.analysis.rules.idle_causes import IDLE_TIME
from nsw.analysis.rules.long_gaps import KEEP_WORKERS, LongGaps, cause_of_long_gaps
from nsw.analysis.rules.profiler_cost import profiler_slowdown
from nsw.quantities import format_ns
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.idle_gpu import IdleGpu
    from nsw.analysis.steady import Iterations

__all__ = ["RULES"]

_SEVERAL: Final = 5  # operations, which are no copy or two
_PART: Final = 0.25  # of slow iterations
_FEW_ITERATIONS: Final = 8  # of fewer no one is an exception
_SLOW_TIMES: Final = 3.0  # the median
_PAUSE_NS: Final = 10e6  # that one iteration takes longer: shorter pauses are the system's, or the profiler's
_EARLIER: Final = 0.15  # of the traced time: what iterations' work before them takes longer that is worth a sentence
_PLANS: Final = 10  # modules that are loaded one after the other: plans for many shapes
_NOTICEABLE: Final = 0.05  # of what slow iterations take longer
_SLOWER_PCT: Final = 5.0  # of the steady state, that slow iterations take longer
_AS_FAST: Final = 2.0  # times the usual time of a launch
_COMPILES_NS: Final = 2e9  # less is the start of any program
_AGAIN: Final = 4  # times that a loop compiles a module
_OF_COMPILED, _MODULES, _TWICE = 0.1, 3, 1.5  # modules that a sentence lists, and those that are compiled again
_FIRST_PCT: Final = 30.0  # of all iterations' time
_FIRST: Final = 3  # iterations that try or compile kernels: more that are slow alike have a slow GPU
_TUNES: Final = 2.0  # times the GPU's work of an iteration
_OF_START: Final = 0.5  # of the gain: what is right for a long run
_COMPILES, _LATE_COMPILES = 3, 2  # in a run without iterations; behind half of its work: others are its start

_ONCE: Final = "Where it is the first time it is paid once: leave this iteration out of measurements."
_LOOK_AT_KERNELS: Final = (
    "Its GPU work takes longer: look at its kernels (`--table gpu_trace`), and whether its input is larger."
)


def _recompilation_hit(case: CaseSummary, context: Context) -> Hit | None:
    """A run without iterations in which modules are compiled and loaded again and again."""
    idle = case.idle_gpu
    use = idle.use if idle else {}
    if idle is None or idle.is_iteration or use.get("compiles", 0) < _COMPILES or use["late_compiles"] < _LATE_COMPILES:
        return None
    share = 100 * use["compile_ns"] / use["span_ns"]
    compiled = _compilation_hit(case, context)
    if share < WORTH_PCT or compiled is not None:  # which names the modules
        return None
    return make_hit(
        case, "recompilation", share, f"compiles {use['compiles']:.0f} times, {format_ns(use['compile_ns'])}",
        f"{share:.0f} % of the time from the first kernel on is {use['compiles']:.0f} gaps of"
        f" {format_ns(use['compile_ns'] / use['compiles'])}, at the end of each of which a module is loaded: a compiler"
        " compiles again, or libraries try kernels", f"{share:.0f} %", "gpu_use",
    )  # fmt: skip


def _periodic_slow_iteration_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Iterations at equal distances that take longer than the others, and what differs in them."""
    use, iterations = case.idle_gpu.use if case.idle_gpu else {}, case.iterations
    share = use.get("slower_pct", 0.0)
    if iterations is None or case.idle_gpu is None or share < _SLOWER_PCT or not use.get("slow"):
        return None
    more, gpu = use["slower_ns"], max(use.get("slower_gpu_ns", 0.0), 0.0)
    loads = loads_in_slow_iterations(case.idle_gpu)
    if loads >= _PART * use["slow"] and not use.get("period") and gpu <= LITTLE_OF_SLOWER * more:
        if loads <= MOSTLY * use["slow"]:  # of kernels at their first use
            return None
        return make_hit(
            case, "recompilation", share, f"{use['slow']:.0f} iterations compile anew",
            f"{use['slow']:.0f} of {iterations.count} iterations take {format_ns(more)} longer than the usual"
            f" {format_ns(iterations.med_ns)}, and modules are loaded in them: a compiler compiles again",
            f"{share:.0f} %", "iterations",
        )  # fmt: skip
    slow = find_slow_iterations(case)
    if slow is None or is_cause_of_slow_iterations_known(case, profiler_slowdown(case)):
        return None
    input_ns = use.get("slower_input_ns", 0.0) if slow.is_of_host else 0.0
    if case.idle_gpu.is_mean and input_ns >= MOST_OF_SLOWER * more and case.idle_gpu.in_gaps("input"):
        return None  # the mean iteration's wait for its input has them in it
    takes, remedy = f"{slow.subject} {slow.verb('take')}", None
    if gpu >= MOST_OF_SLOWER * more:
        remedy = "look at its kernels", _LOOK_AT_KERNELS
        differs = f"{format_ns(min(gpu, more))} of that are more work of the GPU: evaluation, or a larger input"
    elif _is_launching(use, iterations) and _long_gaps_ns(case.idle_gpu) < MOSTLY * more:
        remedy = _remedy_of(case, "launch-bound")
        count = use["slower_operations"]
        differs = (
            f"the host launches {count:,.0f} more operations in {'it' if slow.is_periodic else 'each'}, one every"
            f" {format_ns(more / count)}, and they keep"
            f" the GPU busy for {format_ns(gpu)}: launch-bound"
        )
    elif input_ns >= MOST_OF_SLOWER * more:
        remedy = _remedy_of(case, "data-loader")
        differs = (
            f"for {format_ns(min(input_ns, more))} of that the GPU waits for input, which the host reads or receives"
        )
    elif slow.is_of_host and use.get("slower_spawns", 0.0) >= MOSTLY * use["slow"]:
        differs = "the host starts processes in it"
        if (framework := detect_framework(case)) == "pytorch":
            differs += ", as an epoch does for its DataLoader's workers"
            remedy = "keep the workers", KEEP_WORKERS
        elif framework == "jax":
            differs += ", as XLA does to compile"
            remedy = _remedy_of(case, "recompilation")
    elif slow.is_of_host:
        more_work = "the GPU has no more work in it"
        if (operations := use.get("slower_operations", 0.0)) >= _SEVERAL:
            more_work = f"{plural(round(operations), 'more operation')} keep the GPU busy for {format_ns(gpu)} of that"
        elif (copies_ns := use.get("slower_copy_ns", 0.0)) >= _NOTICEABLE * more:
            more_work = f"{format_ns(copies_ns)} of that are copies, more than in the others"
        if operations >= MORE_WORK * case.idle_gpu.operations:
            more_work += ": another phase of the program"
        gap = _longest_gap_work(case, "periodic-slow-iteration", more)
        share *= min(1.0, (gap.took_ns + gpu) / more)
        differs, remedy = f"{more_work}; {gap.text}", (gap.do, gap.advice)
    else:
        differs = f"{format_ns(gpu)} of that are more work of the GPU, the rest the host's"
    hit = make_hit(
        case, "periodic-slow-iteration", share, f"{takes} {format_ns(more)} more",
        f"{takes} {format_ns(more)} longer than the usual {format_ns(iterations.med_ns)}; {differs}",
        f"{format_ns(more)} longer", "iterations",
    )  # fmt: skip
    return hit if remedy is None else replace(hit, do=remedy[0], advice=remedy[1])


def _remedy_of(case: CaseSummary, cause: str) -> tuple[str, str]:
    """What cures another cause, in a few words and in whole sentences."""
    known = causes()[cause]
    return known.do, known.remedy(detect_framework(case))


def _is_launching(use: Mapping[str, float], iterations: Iterations) -> bool:
    """Whether slow iterations take longer to launch more operations, about as fast as the usual ones launch theirs."""
    added, usual = use.get("slower_operations", 0.0), use["operations"]
    if use["iterations"] > iterations.count - use["slow"]:  # the slow ones are counted in
        usual -= added * use["slow"] / use["iterations"]
    return usual > 0 and use["slower_ns"] <= _AS_FAST * added * iterations.med_ns / usual


def _long_gaps_ns(idle: IdleGpu) -> float:
    """How long a slow iteration waits in gaps that are too long for launches, ns."""
    return sum(gap.total_ns for gap in idle.slow_gaps if gap.length == "long")


class _GapWork(NamedTuple):
    """What the host does in the longest gaps of a slow iteration, what to do about that, and how long they take."""

    text: str
    do: str
    advice: str
    took_ns: float


def _longest_gap_work(case: CaseSummary, cause_of_slow: str, more_ns: float) -> _GapWork:
    """What the host does where a slow iteration waits longest, by what lies before and behind and by its calls.

    Args:
        case: The case.
        cause_of_slow: The finding that it is of, which has the remedy where nothing more is known.
        more_ns: What the iteration takes longer than the usual one.
    """
    idle, framework, known = case.idle_gpu, detect_framework(case), causes()[cause_of_slow]
    record = causes()["host-work"].remedy("python" if framework == "jax" else framework)
    is_recorded = case.host is not None and bool(case.host.profiled_by)
    advice = " ".join((known.remedy(framework), *([] if is_recorded else [record])))
    unknown = _GapWork("the report does not tell what the host does then", known.do, advice, more_ns)
    gaps = idle.slow_gaps if idle is not None else ()
    took_ns = sum(gap.total_ns for gap in gaps)
    if idle is None or took_ns < MOSTLY * more_ns or not (idle.has_calls or case.host):
        return unknown
    took_ns = min(took_ns, more_ns)
    cause, alike = cause_of_long_gaps(
        LongGaps(case, idle, gaps, took_ns=took_ns, slow="", waits=f"waits {format_ns(took_ns)} for ", are_of_slow=True)
    )
    text, remedy = cause.fact.replace(IDLE_TIME, "that"), causes()[cause.cause]
    if cause.cause == "host-work" and not cause.advice:
        return unknown._replace(text=f"{text}; what it does then was not recorded", took_ns=alike.took_ns)
    return _GapWork(text, cause.do or remedy.do, cause.advice or remedy.remedy(framework), alike.took_ns)


def _slow_iteration_hit(case: CaseSummary, context: Context) -> Hit | None:
    """An iteration that takes many times the median: it spoils means and totals, not the other iterations."""
    iterations = case.iterations
    if (
        iterations is None
        or not iterations.med_ns
        or iterations.most_ns < _SLOW_TIMES * iterations.med_ns
        or iterations.most_ns - iterations.med_ns < _PAUSE_NS
        or iterations.count < _FEW_ITERATIONS
        or (case.idle_gpu is not None and case.idle_gpu.use.get("slow"))
    ):
        return None
    busy = iterations.slowest_busy_pct
    all_ns = iterations.count * iterations.med_ns + iterations.most_ns - iterations.med_ns
    gain = 100 * (iterations.most_ns - iterations.med_ns) / all_ns
    if gain < _SLOWER_PCT:
        return None
    works = busy is not None and busy >= BUSY_PCT
    use = case.idle_gpu.use if case.idle_gpu is not None else {}
    load_ns = use.get("slowest_load_ns", 0.0)
    if not works and load_ns >= _PART * (
        iterations.most_ns - iterations.med_ns
    ):  # kernels at their first use, which is once
        return None
    which = f"iteration {iterations.slowest} of {iterations.count + iterations.warmup} (counted from 0)"
    is_loading = use.get("compile_ns", 0.0) >= MOST_OF_SLOWER * (iterations.most_ns - iterations.med_ns)
    if is_loading or (use.get("slowest_spawns") and detect_framework(case) == "jax"):
        does = "then modules are loaded" if is_loading else "the host starts processes"
        hit = make_hit(
            case, "recompilation", gain if is_loading else 0.0, f"{which} compiles",
            f"{which} takes {format_ns(iterations.most_ns)}, {iterations.most_ns / iterations.med_ns:.0f} times the"
            f" median of {format_ns(iterations.med_ns)}: the GPU waits in it, and {does}: a compiler"
            " has compiled again, or for the first time what this iteration alone uses",
            format_ns(iterations.most_ns), "iterations",
        )  # fmt: skip
        if not is_loading and _compilation_hit(case, context) is not None:  # which has its time
            return None
        return hit if is_loading else replace(hit, do="leave it out", advice=_ONCE)
    fact = (
        f"{which} takes {format_ns(iterations.most_ns)}, {iterations.most_ns / iterations.med_ns:.0f} times the median"
        f" of {format_ns(iterations.med_ns)}{'' if busy is None else f', with a GPU at work {busy:.0f} % of it'}"
    )
    do, advice = "look at its kernels", _LOOK_AT_KERNELS
    if not works:
        more_ns = iterations.most_ns - iterations.med_ns
        text, do, advice, took_ns = _longest_gap_work(case, "slow-iteration", more_ns)
        fact, gain = f"{fact}; {text}", gain * min(1.0, took_ns / more_ns)
    return Hit("slow-iteration", case.id, gain, f"{which} takes {format_ns(iterations.most_ns)}", do, fact, advice,
               format_ns(iterations.most_ns), "iterations")  # fmt: skip


def _compilation_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A JAX program that XLA compiles for much of a run, and which modules it compiles several times."""
    compiled_ns, run_ns = sum(ns for *_, ns in case.compiled), case.traced_ns
    share = min(100.0, 100 * compiled_ns / run_ns) if run_ns else 0.0
    if share < _FIRST_PCT or compiled_ns < _COMPILES_NS:
        return None
    largest = [module for module in case.compiled if module[2] >= _OF_COMPILED * compiled_ns][:_MODULES]
    listed = ", ".join(
        f"{name}{f' ({calls:.0f} times)' if calls >= _TWICE else ''} {format_ns(ns)}" for name, calls, ns in largest
    )
    # jit__mean and its like are of operations outside of any jit, each compiled by itself
    again = any(
        calls >= _TWICE and not name.startswith("jit__") and ns >= _PART * compiled_ns for name, calls, ns in largest
    )
    apart = any(name.startswith("jit__") for name, *_ in largest)
    fact = (
        f"XLA compiles for {format_ns(compiled_ns)} of {format_ns(run_ns)} (from the first CUDA call to the last):"
        f" {listed}"
    )
    name, calls, ns = max(case.compiled, key=lambda module: module[2])
    if calls >= _AGAIN and ns >= MOSTLY * compiled_ns and not name.startswith("jit__"):  # again and again, in a loop
        return Hit(
            "recompilation", case.id, 100 * ns * (1 - 1 / calls) / run_ns, f"compiles {name} {calls:.0f} times",
            "compile once", fact,
            f"What differs between the calls of {name} is static or a shape: make it a traced value (jax.lax.fori_loop"
            " in place of a loop of its length, no static_argnums), or pad to few lengths.",
            f"{share:.0f} %", "nvtx_summary", gain_of="this run",
        )  # fmt: skip
    advice = (
        "A folder of compiled programs (jax.config.update('jax_compilation_cache_dir', FOLDER), and"
        " 'jax_persistent_cache_min_compile_time_secs' 0 for those of less than a second) saves it in later runs; a"
        " longer run has less of it."
    )
    if apart:
        advice = f"Put operations that are compiled one by one (jit__...) into one jitted function. {advice}"
    if again:
        advice = (
            "What is compiled several times differs in shapes or static arguments: pad to few shapes (a last, smaller"
            f" batch), or trace the arguments. {advice}"
        )
    return Hit(
        "slow-first-iteration", case.id, share, f"compiles {format_ns(compiled_ns)}", "keep compiled programs",
        fact, advice, f"{share:.0f} %", "nvtx_summary",
    )  # fmt: skip


def _slow_start_hit(case: CaseSummary, context: Context) -> Hit | None:
    """A start in which the GPU works much more than in the iterations: kernels are tried, or compiled."""
    if (hit := _compilation_hit(case, context)) is not None:
        return hit
    iterations, of = case.iterations, {phase.phase: phase for phase in case.phases}
    if (
        iterations is None or "steady" not in of or iterations.processes > 1 or not iterations.gpu_ns
    ):  # ranks start apart
        return None
    setup, warmup, steady = of.get("setup"), of.get("warmup"), of["steady"]
    copied = sum(ns for name, ns in setup.what if name.startswith("[CUDA mem")) if setup else 0.0
    if (
        warmup is not None
        and warmup.iterations
        and warmup.iterations <= _FIRST
        and warmup.gpu_ns >= _TUNES * warmup.iterations * iterations.gpu_ns
    ):
        more = warmup.duration_ns - warmup.iterations * iterations.med_ns
        count = (
            "the first iteration takes" if warmup.iterations == 1 else f"the first {warmup.iterations} iterations take"
        )
        start = warmup
    elif setup is not None and setup.times_kernels and setup.gpu_ns - copied > steady.gpu_ns:  # else it makes its data
        more, count, start = setup.duration_ns, "the start takes", setup
    else:  # libraries are loaded at each start
        return None
    share = 100 * more / (start.duration_ns + steady.duration_ns)
    if share < _FIRST_PCT:
        return None
    return make_hit(
        case, "slow-first-iteration", share * _OF_START, f"{count} {format_ns(start.duration_ns)}",
        f"{count} {format_ns(start.duration_ns)}, as long as {start.duration_ns / iterations.med_ns:,.0f} later"
        f" iterations, with {start.gpu_ns / iterations.gpu_ns:,.0f} times the GPU's work of one (initialisation, or"
        " kernels that are tried: autotuning)", format_ns(start.duration_ns), "phases",
    )  # fmt: skip


def _earlier_work_hit(case: CaseSummary, _: Context) -> Hit | None:
    """The iterations' work that was done more slowly before them, as where plans are made and loaded for new shapes."""
    idle, iterations, run_ns = case.idle_gpu, case.iterations, sum(phase.duration_ns for phase in case.phases)
    if idle is None or iterations is None or not idle.use.get("earlier_ns") or case.compiled:  # by XLA, at the start
        return None
    count, all_ns, load_ns = (idle.use[f"earlier_{name}"] for name in ("iterations", "ns", "load_ns"))
    usual_ns = count * iterations.med_ns
    took_ns = min(sum(gap.total_ns for gap in idle.earlier_gaps), all_ns - usual_ns)
    if took_ns < MOSTLY * (all_ns - usual_ns) or took_ns < _EARLIER * run_ns:
        return None
    head = (
        f"the {format_ns(all_ns)} before the iterations have the work of some {count:.0f} of them, which take"
        f" {format_ns(usual_ns)} later; "
    )
    if load_ns >= MOSTLY * took_ns:
        if (loads := idle.use["earlier_loads"]) < _PLANS:  # of kernels at their first use
            return None
        return Hit(
            "recompilation", case.id, 100 * load_ns / run_ns, f"loads modules for {format_ns(load_ns)} before them",
            "reuse shapes",
            f"{head}{format_ns(load_ns)} of that are {loads:.0f} gaps of {format_ns(load_ns / loads)} in which modules"
            " are loaded: a library makes plans for new shapes, or a compiler compiles",
            "Keep shapes the same (pad to few lengths, buffers of the largest size), so that plans and kernels are used"
            " again.", format_ns(load_ns), "gaps", gain_of="this run",
        )  # fmt: skip
    waits = f"waits {format_ns(took_ns)} for "
    cause, alike = cause_of_long_gaps(
        LongGaps(case, idle, idle.earlier_gaps, took_ns=took_ns, slow="", waits=waits, are_of_slow=True)
    )
    known = causes()[cause.cause]
    return Hit(
        cause.cause, case.id, 100 * alike.took_ns / run_ns, f"{cause.what} before them",
        cause.do or known.do,
        head + cause.fact.replace(IDLE_TIME, "that"), cause.advice or known.remedy(detect_framework(case)),
        format_ns(alike.took_ns), "gaps", gain_of="this run",
    )  # fmt: skip


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    "recompilation": _recompilation_hit,
    "slow first iteration": _slow_start_hit,
    "earlier work": _earlier_work_hit,
    "periodic iteration": _periodic_slow_iteration_hit,
    "slow iteration": _slow_iteration_hit,
}
