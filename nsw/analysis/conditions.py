"""What was sampled beside the program: whether runs were measured alike, and what disturbed them.

Clocks of GPUs follow their temperature and their power limit, and times follow the clocks. Runs of which one was slowed
are not compared, unless they are pairs of one job: there the machine is the same for both, and a difference of the
clocks is the program's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Column, Evidence, Note, Table
from nsw.analysis.groups import group_by
from nsw.analysis.steady import column_median
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.summary import Summary

    Row = Mapping[str, Any]

__all__ = [
    "CLOCKS_DIFFER",
    "condition_blocks",
    "condition_notes",
    "disturbance_notes",
    "incomparable_reason",
    "median_sm_clock_mhz",
]

_CLOCKS_APART: Final = 0.03  # of the lower one
_SLOWED_PCT: Final = 5.0  # of the steady state
_OTHERS_MIB: Final = 1024.0  # in use before the program began: more than a driver and a desktop take
_OTHERS_AT_WORK: Final = (256.0, 20.0)  # MiB and % of utilisation: less memory, but at work
_LOADED: Final = 0.5  # of the cores
_STEAL_PCT: Final = 2.0
_RUNS_NAMED: Final = 3
_CLOCK_LIMITS: Final = (  # a share of the steady state, what held the clock down, what to do
    ("heat_limited_pct", "heat", "Measure on another node."),
    (
        "setting_limited_pct",
        "a set clock",
        "Compare it with runs under the same setting alone (`nvidia-smi -q -d CLOCK`).",
    ),
    ("power_limited_pct", "the power limit", "Heavy work does that; a rate below the peak is no fault of the program."),
)
CLOCKS_DIFFER: Final = "not comparable: clocks "  # begins the reason where those of the SMs do
_CLOCKS: Final = (("sm_mhz", "clocks"), ("memory_mhz", "memory clocks"))


def incomparable_reason(first: Sequence[Row], second: Sequence[Row]) -> str | None:
    """Return why two sides were not measured alike; None where they were, or where that is not known.

    Args:
        first: Rows of table `conditions` of the first side's runs.
        second: Those of the second side.
    """
    for column, words in _CLOCKS:
        clocks = [column_median(rows, column) for rows in (first, second)]
        if None not in clocks and _do_clocks_differ(clocks):
            return f"not comparable: {words} {_count_text(clocks[0])} against {_count_text(clocks[1])} MHz"
    for happened, words in (
        (_was_gpu_in_use_before, "a GPU was shared with somebody"),
        (_was_host_loaded_before, "a host was loaded"),
    ):
        counts = [sum(happened(row) for row in rows) for rows in (first, second)]
        if any(counts) and first and second and not all(counts):
            return f"not comparable: {words} on the {'first' if counts[0] else 'second'} side alone"
    return None


def median_sm_clock_mhz(rows: Sequence[Row]) -> float | None:
    """The median clock of the SMs, a number of MHz; None where none was sampled."""
    return column_median(rows, "sm_mhz")


def condition_notes(summary: Summary) -> list[Note]:
    """A sentence for each case and thing that disturbed its runs, the worst first, and for clocks that differ."""
    unequal = _notes_by_case(_unequal_clock_notes, summary.conditions)
    return [*disturbance_notes(summary.conditions), *unequal]


def disturbance_notes(rows_by_case: Mapping[str, Sequence[Row]]) -> list[Note]:
    """A sentence for each case and thing that disturbed its runs, the worst first.

    Args:
        rows_by_case: Rows of table `conditions`.
    """
    kinds = (_other_process_notes, _loaded_host_notes, _gpu_error_notes, _held_clock_notes)
    return [note for sentences_of in kinds for note in _notes_by_case(sentences_of, rows_by_case)]


def _notes_by_case(
    sentences_of: Callable[[Sequence[Row]], Iterable[str]], rows_by_case: Mapping[str, Sequence[Row]]
) -> list[Note]:
    return [
        Note("conditions", f"{case}: {text}", tone="warning", evidence=(Evidence("conditions", (case,)),))
        for case, rows in rows_by_case.items()
        for text in sentences_of(rows)
    ]


def _other_process_notes(rows: Sequence[Row]) -> Iterator[str]:
    if shared := [row for row in rows if _was_gpu_in_use_before(row)]:
        most = max(shared, key=lambda row: row["memory_before_mib"])
        yield (
            f"a GPU was shared with somebody: {_count_text(most['memory_before_mib'])} MiB were in use before"
            f" {_run_names_text(shared)} began, at {_count_text(most['busy_before_pct'] or 0.0)} % utilisation."
            " Measure on GPUs of your own."
        )


def _loaded_host_notes(rows: Sequence[Row]) -> Iterator[str]:
    if loaded := [row for row in rows if _was_host_loaded_before(row)]:
        most = max(loaded, key=lambda row: (row["steal_pct"] or 0.0, row["load_before"] or 0.0))
        stolen = most["steal_pct"] or 0.0
        reason = (
            f"the hypervisor gave {_count_text(stolen)} % of its CPU time to others"
            if stolen >= _STEAL_PCT
            else f"{_count_text(most['load_before'])} processes ran on its {most['cores']} cores before the program"
            " began"
        )
        yield (
            f"the host {most['host']} was loaded during {_run_names_text(loaded)}: {reason}."
            " Measure on a node of your own."
        )


def _held_clock_notes(rows: Sequence[Row]) -> Iterator[str]:
    for column, cause, advice in _CLOCK_LIMITS:
        if held := [row for row in rows if (row[column] or 0.0) >= _SLOWED_PCT and _is_clock_held(row, column)]:
            worst = max(held, key=lambda row: row[column])
            highest = worst.get("sm_max_mhz")
            measured = ((worst["power_w"], "W"), (worst["temperature_c"], "°C"))
            at = ", ".join(f"{_count_text(value)} {unit}" for value, unit in measured if value is not None)
            yield (
                f"{cause} held the clock down for {_count_text(worst[column])} % of the steady state"
                f" ({_count_text(worst['sm_mhz'])} {'' if highest is None else f'of {_count_text(highest)} '}MHz"
                f"{at and f' at {at}'}; {worst['host']}). {advice}"
            )


def _is_clock_held(row: Row, column: str) -> bool:
    """Whether a limit cost speed: drivers name a power limit and a set clock also where the clock is at its highest."""
    if column == "heat_limited_pct":
        return True
    clock, highest = row["sm_mhz"], row.get("sm_max_mhz")  # campaigns of an earlier nsw have no highest clock
    return clock is not None and highest is not None and _do_clocks_differ((clock, highest))


def _unequal_clock_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Of clocks that differ between the runs of a case; a power limit is said with it."""
    for column, words in _CLOCKS:
        clocks = sorted((row[column], row["run"]) for row in rows if row[column] is not None)
        if clocks and _do_clocks_differ([clocks[0][0], clocks[-1][0]]):
            limited = any((row["power_limited_pct"] or 0.0) >= _SLOWED_PCT for row in rows)
            yield (
                f"the {words} of its runs differ, {_count_text(clocks[0][0])} MHz in {clocks[0][1]} and"
                f" {_count_text(clocks[-1][0])} MHz in {clocks[-1][1]}{', under the power limit' if limited else ''}."
                " Pairs in one job (`interleave: true`) cancel that."
            )


def _gpu_error_notes(rows: Sequence[Row]) -> Iterator[str]:
    if wrong := [row for row in rows if (row["ecc_errors"] or 0.0) > 0]:
        yield (
            f"GPU memory had uncorrected ECC errors during {_run_names_text(wrong)} ({wrong[0]['host']},"
            f" {wrong[0]['gpu']}): do not trust its results."
        )


def _was_gpu_in_use_before(row: Row) -> bool:
    memory, busy = row["memory_before_mib"] or 0.0, row["busy_before_pct"] or 0.0
    return memory >= _OTHERS_MIB or (memory >= _OTHERS_AT_WORK[0] and busy >= _OTHERS_AT_WORK[1])


def _was_host_loaded_before(row: Row) -> bool:
    load, cores = row["load_before"], row["cores"]
    return (row["steal_pct"] or 0.0) >= _STEAL_PCT or bool(load and cores and load >= max(_LOADED * cores, 2.0))


def _do_clocks_differ(clocks: Sequence[float | None]) -> bool:
    low, high = sorted(clock or 0.0 for clock in clocks)
    return high > low * (1 + _CLOCKS_APART)


def _count_text(value: float | None) -> str:
    return "an unknown number of" if value is None else f"{value:,.0f}"


def _run_names_text(rows: Sequence[Row]) -> str:
    return first_names(list(dict.fromkeys(row["run"] for row in rows)), _RUNS_NAMED)


# --- the table ------------------------------------------------------------------------------------------------------

_MEDIANS: Final = (
    Column("sm_mhz", "SM MHz", "count"), Column("memory_mhz", "memory MHz", "count"),
    Column("power_w", "power, W", "number"), Column("power_error_w", "± W", "number"),
    Column("energy_j", "energy, J", "number"), Column("energy_error_j", "± J", "number"),
    Column("temperature_c", "°C", "count"), Column("power_limited_pct", "power limit", "whole %"),
    Column("heat_limited_pct", "heat", "whole %"), Column("setting_limited_pct", "set clock", "whole %"),
)  # fmt: skip
_LEAST: Final = ("setting_limited_pct", "power_error_w", "memory_mhz", "energy_error_j")


def condition_blocks(summary: Summary) -> list[Block]:
    """A row a case, with medians over its runs and GPUs; and why there is no energy."""
    on_gpus = {case: [row for row in rows if row["gpu"] is not None] for case, rows in summary.conditions.items()}
    rows: list[tuple[Any, ...]] = []
    for case, gpu_rows in on_gpus.items():
        if gpu_rows:
            medians = [column_median(gpu_rows, column.name) for column in _MEDIANS]
            rows.append((case, *(
                round(value) if value is not None and column.unit == "count" else value
                for column, value in zip(_MEDIANS, medians, strict=True)
            )))  # fmt: skip
    if not rows:
        return []
    evidence = (Evidence("conditions", tuple(row[0] for row in rows)),)
    lacking = group_by((row for rows in on_gpus.values() for row in rows if row["missing"]), lambda row: row["missing"])
    notes = [
        Note("no energy", f"no energy of {_run_names_text(rows)}: {reason}", tone="aside")
        for reason, rows in lacking.items()
    ]
    title = "conditions of a GPU in the steady state (medians)"
    return [Table("conditions", title, (Column("case", "case"), *_MEDIANS), tuple(rows), least=_LEAST,
                  evidence=evidence), *condition_notes(summary), *notes]  # fmt: skip
