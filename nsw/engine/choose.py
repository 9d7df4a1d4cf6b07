"""Which kernels and launches a guided counters pass measures: by its case's timeline, or as a lockfile has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nsw.analysis.guided import (
    TABLE,
    LaunchRequest,
    NothingMatched,
    Within,
    chosen_rows,
    launched_inside,
    names_of,
    picked_again,
)
from nsw.analysis.guided import choose as choose_launches
from nsw.engine.ledger_rows import RECORDED, Choice, RunRow, State
from nsw.engine.recipe_lock import Basis, choice_mismatch, locked_choice, locked_recipe, read_basis
from nsw.engine.tables import load_rows, put_rows
from nsw.errors import NswError, nearest
from nsw.metrics import check, find_chip, unsupported
from nsw.metrics.requests import passes
from nsw.plan.counters import Limit, limit, planned_s, price, requested
from nsw.profilers.files_of_one_recording import parts
from nsw.profilers.nvprof import measured
from nsw.readers.detect import read
from nsw.readers.model import Options, Report
from nsw.recipe.model import LockedChoice, LockedChoices, Steps
from nsw.recipe.passes import CountersPass
from nsw.tables import rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LateCheck:
    """What is wrong with a pass: `fault` if nothing of it can be measured, else a warning for each such metric."""

    fault: str | None = None
    warnings: tuple[str, ...] = ()


def late_check(counters_pass: CountersPass, tool: Literal["ncu", "nvprof"], basis: Basis) -> LateCheck:
    """Check the tool and the metrics of a pass against the GPU and the versions that the jobs met."""
    chip = find_chip(basis.chip)
    if chip is None:
        return LateCheck()
    if reason := unsupported(tool, chip, basis.tools.get(tool)):
        return LateCheck(f"{reason} (the jobs ran on {basis.chip})")
    diagnostics = check(counters_pass.metrics, chip, tool, replay=counters_pass.replay)
    faults = [fault.message + (f" ({fault.hint})" if fault.hint else "") for fault in diagnostics]
    if len(faults) == len(counters_pass.metrics):
        return LateCheck(f"{'; '.join(faults)} (the jobs ran on {basis.chip})")
    return LateCheck(None, tuple(faults))


_TRACE = "gpu_trace"
_OF_RANGES = ("api_trace", "nvtx_trace")  # what tells which kernels were launched inside a range


class Chooser:
    """Decides for the guided runs of a campaign.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._campaign = campaign
        self._warned = False

    def current_basis(self) -> Basis:
        """What choices follow from, as the jobs met it so far."""
        return read_basis(
            self._campaign.folder, self._campaign.ledger, self._campaign.transport, self._campaign.scratch
        )

    def choose(self, run: RunRow, sources: Sequence[RunRow]) -> Choice | str:
        """A choice, or why there is none; it is as the lockfile records it where that applies here."""
        folder, ledger = self._campaign.folder, self._campaign.ledger
        recorded = self._recorded()
        if recorded is None or (before := locked_choice(recorded, run.id)) is None:
            return self._choose_now(run, sources[0])
        self._campaign.say(f"chosen    {run.id} as the lockfile records it: {before.note}")
        if reason := _write_locked_launches(folder, ledger, recorded.runs[run.id], run, sources[0]):
            self._campaign.warn(f"what {run.id} measures is not compared with {sources[0].id}: {reason}")
        return _within_plan(folder, run, before)

    def _choose_now(self, run: RunRow, source: RunRow) -> Choice | str:
        """The choice that a timeline leads to, with its launches in table chosen_launches; or why there is none."""
        folder, ledger = self._campaign.folder, self._campaign.ledger
        counters_pass = _pass_of(folder, run)
        tool = run.tool or "ncu"
        chip: str | None = ledger.site().get("gpus", {}).get("chip")
        if chip is None:
            basis = self.current_basis()
            late = late_check(counters_pass, "nvprof" if tool == "nvprof" else "ncu", basis)
            if late.fault is not None:
                return late.fault
            for text in late.warnings:
                self._campaign.warn(f"{run.id}: {text}; the rest is measured")
            chip = basis.chip
        try:
            trace = _candidate_kernels(folder, ledger, counters_pass, source)
            measured_metrics = measured(requested(counters_pass, tool, chip)) if tool == "nvprof" else ()
            chosen = choose_launches(trace, launch_request(counters_pass), tool, measured_metrics)
        except NothingMatched as fault:
            return f"{fault} (of {source.id})"
        put_rows(folder, TABLE, run.id, chosen_rows(chosen.picked, source.id))
        self._campaign.say(f"chosen    {run.id} from {source.id}: {chosen.note}")
        limit = _limit(folder, ledger, counters_pass, run, source, chip)
        if limit is not None:
            self._campaign.say(f"          {limit.note}")
        seconds = None if limit is None else limit.seconds
        return Choice(chosen.arguments, seconds, source.id, f"{chosen.note}: {', '.join(chosen.kernels)}")

    def _recorded(self) -> LockedChoices | None:
        """The choices of the lockfile while they hold; it warns once that they do not."""
        data = self._campaign.ledger.meta(RECORDED)
        if not data or self._warned:
            return None
        recorded = LockedChoices.model_validate(data)
        reason = choice_mismatch(recorded, self.current_basis())
        if reason is None:
            return recorded
        self._warned = True
        self._campaign.warn(f"the lockfile's choice does not apply here, and nsw chooses again: {reason}")
        return None


def _within_plan(folder: CampaignFolder, run: RunRow, choice: Choice) -> Choice:
    """A recorded choice whose limit is at most this plan's, which was confirmed; another plan had another."""
    planned = planned_s(locked_recipe(folder), _pass_of(folder, run), run.case_id, run.params)
    within = choice.limit_s is not None and planned is not None and choice.limit_s < planned
    return choice if within else replace(choice, limit_s=None)


def _write_locked_launches(
    folder: CampaignFolder, ledger: Ledger, locked: LockedChoice, run: RunRow, source: RunRow
) -> str | None:
    """Write the launches that a recorded choice means into table chosen_launches, as this campaign's timeline has them.

    Returns:
        Why that cannot be done; None: it is done.
    """
    from nsw.analysis.guided import TABLE, NothingMatched, chosen_rows
    from nsw.engine.tables import put_rows

    if not locked.kernels:
        return "the lockfile does not name the launches"
    try:
        picked = picked_again(
            _candidate_kernels(folder, ledger, _pass_of(folder, run), source), set(locked.kernels), locked.ordinals
        )
    except (NothingMatched, NswError) as fault:
        return str(fault)
    if not picked:
        return f"{source.id} holds none of these launches"
    put_rows(folder, TABLE, run.id, chosen_rows(picked, source.id))
    return None


def _candidate_kernels(
    folder: CampaignFolder, ledger: Ledger, counters_pass: CountersPass, source: RunRow
) -> list[dict[str, Any]]:
    """The kernels of a timeline's run that a pass chooses among.

    Raises:
        NswError: No report holds a trace.
        NothingMatched: No kernel was launched inside the pass's range.
    """
    nsys = (ledger.site().get("profilers") or {}).get("nsys")
    steps = locked_recipe(folder).report.steps
    return _kernels(folder.reports / source.id, steps, nsys, _within(counters_pass))


def _limit(
    folder: CampaignFolder, ledger: Ledger, counters_pass: CountersPass, run: RunRow, source: RunRow, chip: str | None
) -> Limit | None:
    """The time limit of a run whose launches are chosen; None where its price is not known."""
    planned = planned_s(locked_recipe(folder), counters_pass, run.case_id, run.params)
    if run.tool != "ncu" or planned is None or source.seconds is None:
        return None
    times = {run_row.id: run_row.seconds for run_row in ledger.runs()}
    launches: dict[str, list[int]] = {}
    sources: dict[str, str] = {}
    for row in load_rows(folder, TABLE):
        if row["duration_ns"] is not None:
            launches.setdefault(row["run"], []).append(row["duration_ns"])
            sources[row["run"]] = row["chosen_from"]
    asked_for = passes(counters_pass.metrics, find_chip(chip))

    finished = [
        (price(launches.get(run_row.id, ()), asked_for, program_s, counters_pass.replay).expected_s, run_row.seconds)
        for run_row in ledger.runs(states=(State.DONE,))
        if run_row.pass_name == counters_pass.name
        and run_row.seconds is not None
        and (program_s := times.get(sources.get(run_row.id, ""))) is not None
    ]
    return limit(price(launches.get(run.id, ()), asked_for, source.seconds, counters_pass.replay), planned, finished)


def launch_request(counters_pass: CountersPass) -> Any:
    """What a pass says of kernels and launches."""
    kernels, launches = counters_pass.kernels, counters_pass.launches
    return LaunchRequest(
        tuple(kernels.names or ()),
        kernels.regex,
        tuple(counters_pass.left_out),
        kernels.cover,
        kernels.top,
        kernels.at_most,
        launches.sample,
        launches.warmup or 0,
    )


def _pass_of(folder: CampaignFolder, run: RunRow) -> CountersPass:
    passes = locked_recipe(folder).passes
    counters_pass = next(
        (
            recipe_pass
            for recipe_pass in passes
            if recipe_pass.name == run.pass_name and isinstance(recipe_pass, CountersPass)
        ),
        None,
    )
    if counters_pass is None:
        raise NswError(f"{folder.recipe} has no counters pass {run.pass_name}")
    return counters_pass


def _within(counters_pass: CountersPass) -> Within | None:
    nvtx_range = counters_pass.within
    if nvtx_range is None:
        return None
    return Within(nvtx_range.nvtx, nvtx_range.domain, nvtx_range.start_end, frozenset(nvtx_range.instances or ()))


def _kernels(
    home: Path, steps: Steps | None = None, nsys: str | None = None, within: Within | None = None
) -> list[dict[str, Any]]:
    """The kernels of the process that is profiled: of rank 0, else of the first GPU, else of the first process.

    Args:
        home: The folder of the timeline's run.
        steps: What the recipe says of the program's iterations.
        nsys: The site's nsys, used when it is here too.
        within: Only what was launched inside this range; None: all.

    Raises:
        NswError: No report there holds a trace.
        NothingMatched: No kernel was launched inside the range.
    """
    files = sorted(p for p in home.iterdir() if p.name.startswith("timeline"))
    first = [p for p in files if ".rank0." in p.name] or files
    for file in [home / name for name in parts(p.name for p in first)]:
        chosen = Options(
            tables=frozenset({_TRACE} if within is None else {_TRACE, *_OF_RANGES}), nsys=nsys,
            steps=steps.nvtx if steps else None, warmup=steps.warmup if steps else None,
        )  # fmt: skip
        report = read(file, chosen)
        trace = [row for row in _rows(report, _TRACE) if row.get("kind") == "kernel"]
        if trace:
            process, device = _first_worked_on(trace)
            found = [row for row in trace if (row.get("pid"), row.get("device")) == (process, device)]
            return found if within is None else _inside(found, report, within)
    raise NswError(f"no report in {home} contains the kernel launches that the choice of counters needs")


def _first_worked_on(kernels: list[dict[str, Any]]) -> tuple[int | None, int | None]:
    """The process and the GPU of the least number among those that processes work on."""
    from nsw.readers.timeline.phases import WORKED_ON  # with numpy

    took: dict[tuple[int | None, int | None], float] = {}
    for row in kernels:
        key = row.get("pid"), row.get("device")
        took[key] = took.get(key, 0.0) + (row["duration_ns"] or 0)
    most: dict[int | None, float] = {}
    for (process, _), ns in took.items():
        most[process] = max(ns, most.get(process, 0.0))
    return min((key for key, ns in took.items() if ns >= WORKED_ON * most[key[0]]), key=lambda key: key[1] or 0)


def _inside(kernels: list[dict[str, Any]], report: Report, within: Within) -> list[dict[str, Any]]:
    """The kernels that were launched inside a range."""
    calls, ranges = (_rows(report, name) for name in _OF_RANGES)
    inside = launched_inside(kernels, calls, ranges, within)
    if inside:  # asked for by number, an instance may be of the warm-up
        return [dict(row) | ({"phase": None} if within.instances else {}) for row in inside]
    names = names_of(ranges, within)
    if within.name in names:
        raise NothingMatched(f"no kernel was launched inside NVTX range {within.name}, or its instances")
    near = nearest(within.name, names)
    suggestion = f"; nearest: {near}" if near else f"; there are: {', '.join(names[:5])}" if names else ""
    raise NothingMatched(f"the timeline has no NVTX range {within.name}{suggestion}")


def _rows(report: Report, table: str) -> list[Any]:
    return list(rows(table, report.tables.get(table, [])))
