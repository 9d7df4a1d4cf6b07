"""Tasks that wait: for builds and runs, for the canary, and for passes that decide what a later one measures.

What a later pass does is chosen from the tables of its source. The decision is in the ledger before the run is
submitted; each attempt gets it as a file of its own, which its script checks.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from nsw.analysis import guided
from nsw.analysis.cases import rows_of_runs, summarize_cases
from nsw.analysis.guided import TABLE, LaunchRequest, NothingMatched, Within, chosen_launch_rows, range_names
from nsw.analysis.guided import choose_kernel_launches as choose_launches
from nsw.analysis.rules.counters import follow_up_metrics_by_kernel
from nsw.analysis.summary import OF_KERNELS
from nsw.engine import ledger_rows
from nsw.engine.collect import Verdict
from nsw.engine.ledger_rows import ENDED, RECORDED, Cause, Choice, Kind, NeedState, Reading, Reason, RunRow, State
from nsw.engine.read import read_reports, reading_fault
from nsw.engine.recipe_lock import Basis, choice_mismatch, locked_choice, locked_recipe, read_basis
from nsw.engine.tables import load_rows, load_rows_lazily, load_tables, put_rows
from nsw.errors import CanaryError, NswError, nearest
from nsw.metrics import find_chip, find_metric_faults, ncu_metric_request, unsupported_reason
from nsw.metrics.requests import estimate_passes
from nsw.plan.counters import Limit, estimate_price, metric_request, passes_of, planned_limit_s, run_time_limit
from nsw.plan.model import GRACE_S, around_s
from nsw.profilers.files_of_one_recording import files_to_read
from nsw.profilers.ncu import ncu_metric_options
from nsw.profilers.nvprof import nvprof_metric_options
from nsw.readers.detect import read
from nsw.readers.model import Options, Report
from nsw.recipe.model import LockedChoice, LockedChoices, Steps
from nsw.recipe.passes import CountersPass, SecondStage
from nsw.recipe.units import parse_duration
from nsw.safe_files import write_text
from nsw.tables import full_rows
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.schedulers.model import Submission


class Canary:
    """Judges the run that all others of a campaign need, once it has ended.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._campaign = campaign
        self._ledger = campaign.ledger
        self._is_judged = False

    def check(self) -> None:
        """Let the rest go when the canary has ended well.

        Raises:
            CanaryError: It has not, and a person must say how to go on.
        """
        run = self._unjudged_run()
        if run is None or run.state not in ENDED or self._awaits_reduction(run):
            return
        wrong = self._fault_description(run)
        rest = self._ledger.held_by_canary()
        self._ledger.record_canary_verdict(NeedState.MET if wrong is None else NeedState.REFUSED)
        if wrong is None or (not rest and run.state is not State.DONE):  # the campaign's end tells of that one
            return
        raise CanaryError(
            f"the first run, {run.id}, ran alone and {wrong}",
            hint=(f"{rest} run{'s wait' if rest > 1 else ' waits'}; " if rest else "")
            + f"`nsw logs {run.id}` prints its output; `nsw retry` runs it again, alone at first;"
            " `nsw resume` runs the rest without it",
        )

    def fault(self, run: RunRow) -> str | None:
        """Read what a run left; what is wrong with it, or None."""
        return reading_fault(self._campaign.folder, self._ledger, run, self._campaign.progress)

    def _unjudged_run(self) -> RunRow | None:
        if self._is_judged:
            return None
        canary = self._ledger.canary()
        self._is_judged = canary is None or canary[1] is NeedState.REFUSED
        return None if canary is None or self._is_judged else self._ledger.runs_named([canary[0]])[0]

    def _awaits_reduction(self, run: RunRow) -> bool:
        """Whether its report is still to be reduced on the site: it cannot be read before."""
        reductions = self._ledger.reductions((State.PLANNED, *ledger_rows.IN_FLIGHT), run_ids={run.id})
        return run.state is State.DONE and bool(reductions)

    def _fault_description(self, run: RunRow) -> str | None:
        if run.state is not State.DONE:
            outcome = run.state if run.state is State.FAILED else f"was {run.state}"
            return outcome + (f": {run.reason}" if run.reason else "")
        fault = self.fault(run)
        return None if fault is None else f"finished, but its results are unusable: {fault}"


_GATHER_S: Final = 600.0  # that runs which could go wait for others, so that they share an array


_READ_EVERY_S: Final = 20.0
_NOTHING_OPEN: Final = "not needed: the first counters leave no question that would change the advice"


class Stages:
    """The runs of a campaign that wait for an earlier stage; the caller holds its lock.

    Args:
        campaign: The campaign.
        clock: Seconds that only grow; tests hand in their own.
    """

    def __init__(self, campaign: DrivenCampaign, clock: Callable[[], float] = time.monotonic) -> None:
        self._campaign = campaign
        self._clock = clock
        self._waiting = bool(campaign.ledger.waiting_for_stages())
        self._has_choices = self._waiting or bool(campaign.ledger.choices())
        self._gathering_since: float | None = None
        self._read_at = float("-inf")

    def read(self) -> None:
        """Read all collected reports into the campaign's tables."""
        read_reports(self._campaign.folder, self._campaign.ledger, self._campaign.progress)

    def choose(self, run: RunRow, sources: Sequence[RunRow]) -> Choice | str | None:
        """What a run is to do, by the runs of its source that were read.

        Returns:
            A choice, or why the run is skipped; None: nothing is left to be done.
        """
        return self._chooser.choose(run, sources)

    def advance(self) -> None:
        """Decide for what can be decided, and let it go."""
        if not self._waiting:
            return
        waiting = self._campaign.ledger.waiting_for_stages()
        self._waiting = bool(waiting)
        ledger = self._campaign.ledger
        sources = {group: ledger.runs_named(ledger.source_runs(group)) for group in waiting}
        if self._has_unread_source(sources):
            self.read()
            self._read_at = self._clock()
            sources = {group: ledger.runs_named([run.id for run in runs]) for group, runs in sources.items()}
        chosen = ledger.choices()
        for group, runs in waiting.items():
            read_sources = [
                run for run in sources[group] if run.state is State.DONE and run.reading in ledger_rows.WERE_READ
            ]
            for run in runs:
                if run not in chosen and read_sources:
                    (row,) = ledger.runs_named([run])
                    try:
                        choice = self.choose(row, read_sources)
                    except NswError as fault:
                        choice = fault.message
                    if choice is None:
                        ledger.update_tasks([run], state=State.DONE, reading=Reading.READ, reason=_NOTHING_OPEN)
                        self._campaign.changed([run])
                    elif isinstance(choice, str):
                        self._skip_run(run, choice)
                    else:
                        ledger.record_choice(run, choice)
                elif not read_sources and (reason := _hopeless_reason(sources[group])):
                    self._skip_run(run, reason)
        self._release_decided(sources)

    def prepare(self, submission: Submission) -> Submission:
        """Put the files with the choices of a submission's runs on the site.

        Returns:
            The submission, with the time limit that the choices ask for where that is less than its script's.

        Raises:
            UnreachableError: The site could not be reached.
            CommandError: A file could not be written.
        """
        chosen = self._campaign.ledger.choices() if self._has_choices else {}
        if not chosen:
            return submission
        if submission.attempt > 1:  # the shorter limit may be what ended the first: now it is the plan's
            chosen = {run: replace(choice, limit_s=None) for run, choice in chosen.items()}
        runs = self._campaign.ledger.runs_of(submission.job, submission.tasks)
        chosen_runs = [run for run in runs if run.id in chosen]
        if not chosen_runs:
            return submission
        with tempfile.TemporaryDirectory(prefix="nsw-choices-") as folder:
            files = []
            for number, run in enumerate(chosen_runs):
                local_file = Path(folder) / str(number)
                write_text(local_file, choice_file(run.id, submission.attempt, chosen[run.id]))
                files.append((local_file, f"{self._campaign.scratch}/choices/{run.id}/attempt-{submission.attempt}"))
            self._campaign.transport.stage(files)
        return replace(submission, walltime_s=_walltime_of_choices(runs, chosen, self._job_overhead_s()))

    @cached_property
    def _chooser(self) -> Chooser:
        return Chooser(self._campaign)

    def _job_overhead_s(self) -> int:
        """Seconds of a job beside its runs, as the site's grace makes them."""
        grace = (self._campaign.ledger.site().get("limits") or {}).get("grace")
        return around_s(GRACE_S if grace is None else int(parse_duration(grace)))

    def _has_unread_source(self, sources: dict[str, list[RunRow]]) -> bool:
        """Whether a source has unread reports; on this machine only if no run of an earlier stage is disturbed."""
        if not any(run.state is State.DONE and run.reading is Reading.COLLECTED for s in sources.values() for run in s):
            return False
        if self._campaign.scheduler.shares_machine:
            ledger = self._campaign.ledger
            waiting = {run for runs in ledger.waiting_for_stages().values() for run in runs}
            left = ledger.runs(states=(State.PLANNED, *ledger_rows.IN_FLIGHT))
            return all(run.id in waiting for run in left)
        return self._clock() - self._read_at >= _READ_EVERY_S

    def _skip_run(self, run: str, reason: str) -> None:
        self._campaign.ledger.update_tasks([run], state=State.CANCELLED, reason=Reason(reason, Cause.SKIPPED))
        self._campaign.changed([run])

    def _release_decided(self, sources: dict[str, list[RunRow]]) -> None:
        """Release what was decided: when all sources were read, an array is full, or it waited long enough."""
        chosen = self._campaign.ledger.choices()
        waiting = self._campaign.ledger.waiting_for_stages()
        ready = [run for runs in waiting.values() for run in runs if run in chosen]
        if not ready:
            self._gathering_since = None
            return
        now = self._clock()
        self._gathering_since = now if self._gathering_since is None else self._gathering_since
        over = not any(_may_be_read(run) for group in waiting for run in sources.get(group, ()))
        if over or not self._campaign.scheduler.batches or now - self._gathering_since >= _GATHER_S:
            self._campaign.ledger.release_stage(ready)
            self._gathering_since = None
        elif len(ready) >= (max_tasks := self._campaign.scheduler.most_tasks()):
            undecided = {run for runs in waiting.values() for run in runs} - set(ready)
            rows = self._campaign.ledger.runs_named
            self._campaign.ledger.release_stage(_runs_of_full_arrays(rows(ready), rows(sorted(undecided)), max_tasks))


def choice_file(run: str, attempt: int, choice: Choice) -> str:
    """Return the text of the file from which an attempt's script reads what was chosen for it.

    The first line has the facts and the hash of the rest, which is an argument a line.

    Args:
        run: The run's id.
        attempt: The attempt's number, from 1.
        choice: What was chosen.
    """
    body = "".join(f"{word}\n" for word in choice.arguments)
    digest = hashlib.sha256(body.encode()).hexdigest()
    limit = "" if choice.limit_s is None else str(choice.limit_s)
    return f"nsw-choice 1 {run} {attempt} {digest} {limit}\n{body}"


def _may_be_read(run: RunRow) -> bool:
    """Whether a source may still be read: it is not over, or its reports are on their way."""
    unread = run.state is State.DONE and run.reading in {Reading.NONE, Reading.COLLECTED}
    return unread or run.state not in ENDED


def _runs_of_full_arrays(ready: Sequence[RunRow], undecided: Sequence[RunRow], min_tasks: int) -> list[str]:
    """The decided runs whose job has enough tasks for an array; a task counts once all its runs are decided."""
    open_tasks = {(run.job, run.task) for run in undecided}
    decided = [run for run in ready if (run.job, run.task) not in open_tasks]
    tasks = Counter(array for array, _task in {((run.job, run.attempt), run.task) for run in decided})
    return [run.id for run in decided if tasks[run.job, run.attempt] >= min_tasks]


def _hopeless_reason(sources: Sequence[RunRow]) -> str | None:
    """Why a source will never be read; None while it may be."""
    if not sources:
        return "there is no run to choose it from"
    if any(map(_may_be_read, sources)):
        return None
    run = sources[0]
    if run.cause is Cause.SKIPPED:  # the reason is that of the first in the row
        return run.detail
    outcome = "its report could not be read" if run.state is State.DONE else f"{run.state}: {run.reason or 'no reason'}"
    return f"{run.id}, which it is chosen from, gave nothing ({outcome}); `nsw retry {run.id}` does both"


def _walltime_of_choices(runs: Sequence[RunRow], chosen: dict[str, Choice], overhead_s: int) -> int | None:
    """The longest of the tasks, where a choice says so for each of their runs; the plan's own limit is the most."""
    tasks: dict[int, int] = {}
    for run in runs:
        choice = chosen.get(run.id)
        if choice is None or choice.limit_s is None:
            return None
        tasks[run.task] = tasks.get(run.task, 0) + choice.limit_s
    return max(tasks.values()) + overhead_s


class Dependencies:
    """What of a campaign may go, waits, or can not begin any more; the caller holds its lock.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._ledger = campaign.ledger
        self._scheduler = campaign.scheduler
        campaign.scheduler.after = campaign.ledger.native_dependencies

    def pending(
        self, limit: int, location: str | None = None, kinds: Sequence[Kind] = tuple(Kind)
    ) -> list[ledger_rows.Pending]:
        """Return the next tasks to submit.

        Args:
            limit: At most so many runs, and so many of each other kind, are looked at.
            location: Only tasks that run there: job or login; None: both.
            kinds: The kinds of tasks.
        """
        if self._ledger.has_open_needs():
            self._ledger.meet_done()
        return self._ledger.pending(
            limit, leave_builds=self._scheduler.can.dependencies, location=location, kinds=kinds
        )

    def doomed(self) -> dict[str, Verdict]:
        """The tasks, planned or in flight, that can not begin, each with its end."""
        if not self._ledger.has_open_needs():
            return {}
        return {doomed.task: _doomed_verdict(doomed) for doomed in self._ledger.doomed()}

    def end_of(self, task: str) -> Verdict | None:
        """How a task ends whose source went wrong; None for any other."""
        return next((_doomed_verdict(doomed) for doomed in self._ledger.doomed(task)), None)


def _doomed_verdict(doomed: ledger_rows.Doomed) -> Verdict:
    outcome = (
        "was lost"
        if doomed.state is State.LOST
        else f"was {doomed.state}"
        if doomed.state is State.CANCELLED
        else "failed"
    )
    if doomed.why is ledger_rows.NeedReason.BUILD:
        reason = f"its build {outcome}: {doomed.reason}; `nsw logs {doomed.source}` prints its output"
        return Verdict(State.FAILED, Reason(reason), ended=True)
    reason = f"{doomed.source} {outcome}: {doomed.reason or 'no reason'}"
    return Verdict(State.CANCELLED, Reason(reason, Cause.SKIPPED), ended=True)


def release_dependents(ledger: Ledger, runs: Sequence[str], *, choose_again: bool) -> list[str]:
    """Release what was skipped for want of these runs; the ids of all runs to do now, in the plan's order.

    Args:
        ledger: The campaign's open ledger, in a transaction.
        runs: The runs that are done again.
        choose_again: What was chosen for these runs is chosen anew.
    """
    release_reductions(ledger, runs)
    dependents = ledger.dependents(runs)
    depending = ledger.runs_named(dict.fromkeys([*dependents, *ledger.dependents(dependents)]))
    skipped = [r.id for r in depending if r.state is State.CANCELLED and r.cause is Cause.SKIPPED]
    ledger.release(skipped)
    ledger.hold_stage(skipped)
    if choose_again:
        ledger.hold_stage(runs)
        ledger.set_meta(RECORDED, {})
    for run in depending:
        if run.state is State.DONE:
            ledger.update_tasks([run.id], reason="older than the run that it was chosen from, which is run again")
    return [run.id for run in ledger.runs_named([*runs, *skipped])]


def release_reductions(ledger: Ledger, runs: Sequence[str]) -> None:
    """Plan the reductions of these runs again; they wait until their runs are done."""
    again = [row.id for row in ledger.reductions(run_ids=set(runs)) if row.state is not State.PLANNED]
    ledger.release(again)
    ledger.hold_reductions(again)


def refused_canary(ledger: Ledger) -> list[str]:
    """The canary that failed, or left a bad report: it goes ahead alone once more when all is tried again."""
    canary = ledger.canary()
    return [canary[0]] if canary and canary[1] is NeedState.REFUSED else []


def release_canary(ledger: Ledger, runs: Collection[str], *, by_name: bool) -> None:
    """Let the canary go ahead alone once more if it is among the released runs, and hold the others.

    If it is not, runs that a person named go without waiting for it.

    Args:
        ledger: The campaign's ledger.
        runs: The ids of the runs that are released.
        by_name: Whether a person named them.
    """
    canary = ledger.canary()
    if canary and canary[0] in runs:
        ledger.record_canary_verdict(NeedState.OPEN)
    elif by_name:
        ledger.waive_canary(runs)


def waive_canary(ledger: Ledger) -> None:
    """A person wants the rest although the canary failed."""
    if refused_canary(ledger):
        ledger.record_canary_verdict(NeedState.MET)


@dataclass(frozen=True, slots=True)
class LateCheck:
    """What is wrong with a pass: `fault` if nothing of it can be measured, else a warning for each such metric."""

    fault: str | None = None
    warnings: tuple[str, ...] = ()


def check_against_machine(counters_pass: CountersPass, tool: Literal["ncu", "nvprof"], basis: Basis) -> LateCheck:
    """Check the tool and the metrics of a pass against the GPU and the versions that the jobs met.

    Args:
        counters_pass: The pass.
        tool: The profiler that runs it.
        basis: What the jobs met; nothing is checked where its chip is unknown.
    """
    chip = find_chip(basis.chip)
    if chip is None:
        return LateCheck()
    if reason := unsupported_reason(tool, chip, basis.tools.get(tool)):
        return LateCheck(f"{reason} (the jobs ran on {basis.chip})")
    diagnostics = find_metric_faults(counters_pass.metrics, chip, tool, replay=counters_pass.replay)
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

    def choose(self, run: RunRow, sources: Sequence[RunRow]) -> Choice | str | None:
        """A choice, or why there is none, as the lockfile records it where that applies here; None: nothing is open."""
        folder, ledger = self._campaign.folder, self._campaign.ledger
        recorded = self._valid_locked_choices()
        if recorded is None or (before := locked_choice(recorded, run.id)) is None:
            return self._choose_launches(run, sources[0])
        self._campaign.say(f"chosen    {run.id} as the lockfile records it: {before.note}")
        if reason := _write_locked_launches(folder, ledger, recorded.runs[run.id], run, sources[0]):
            self._campaign.warn(f"what {run.id} measures is not compared with {sources[0].id}: {reason}")
        return _limit_by_plan(folder, run, before)

    def _choose_launches(self, run: RunRow, source: RunRow) -> Choice | str | None:
        """The choice that a source leads to, with its launches in table chosen_launches; or why there is none."""
        folder, ledger = self._campaign.folder, self._campaign.ledger
        counters_pass = _counters_pass_of(folder, run)
        if isinstance(counters_pass, SecondStage):
            return self._choose_follow_up_metrics(run, source)
        tool = run.tool or "ncu"
        chip: str | None = ledger.site().get("gpus", {}).get("chip")
        if chip is None:
            basis = self.current_basis()
            late = check_against_machine(counters_pass, "nvprof" if tool == "nvprof" else "ncu", basis)
            if late.fault is not None:
                return late.fault
            for text in late.warnings:
                self._campaign.warn(f"{run.id}: {text}; the rest is measured")
            chip = basis.chip
        try:
            trace = _candidate_kernels(folder, ledger, counters_pass, source)
            measured_metrics = (
                nvprof_metric_options(metric_request(counters_pass, tool, chip)) if tool == "nvprof" else ()
            )
            chosen = choose_launches(trace, launch_request(counters_pass), tool, measured_metrics)
        except NothingMatched as fault:
            return f"{fault} (of {source.id})"
        put_rows(folder, TABLE, run.id, chosen_launch_rows(chosen.picked, source.id))
        self._campaign.say(f"chosen    {run.id} from {source.id}: {chosen.sentence}")
        limit = _time_limit(folder, ledger, counters_pass, run, source, chip)
        if limit is not None:
            self._campaign.say(f"          {limit.note}")
        seconds = None if limit is None else limit.seconds
        return Choice(chosen.arguments, seconds, source.id, f"{chosen.sentence}: {', '.join(chosen.kernels)}")

    def _choose_follow_up_metrics(self, run: RunRow, source: RunRow) -> Choice | str | None:
        """Choose the metrics that settle what a counters run left open, for a launch of each kernel concerned."""
        folder, ledger = self._campaign.folder, self._campaign.ledger
        tables = load_tables(folder, OF_KERNELS)
        runs = [row for row in ledger.runs() if row.case_id == run.case_id]
        (case,) = summarize_cases(runs, {"gpu_summary": load_rows_lazily(folder, "gpu_summary")}, 1.0, tables)
        questions = follow_up_metrics_by_kernel(case)
        launches = [
            row["launch_id"]
            for row in full_rows(
                "launches", rows_of_runs(tables["launches"], {source.id}) if "launches" in tables else []
            )
            if row["kernel"] in questions
        ]
        chosen = [row for row in load_rows(folder, TABLE) if row["run"] == source.id]
        picked = guided.pick_launch_per_kernel(chosen, launches)
        if not picked:
            return None
        chip = find_chip(ledger.site().get("gpus", {}).get("chip") or self.current_basis().chip)
        metrics = sorted({metric for asked in questions.values() for metric in asked})
        put_rows(folder, TABLE, run.id, chosen_launch_rows(picked, source.id))
        names = list(dict.fromkeys(pick.short_name for pick in picked))
        note = f"a launch of {plural(len(names), 'kernel')} once more for {', '.join(metrics)}"
        self._campaign.say(f"chosen    {run.id} from {source.id}: {note}")
        arguments = (*guided.ncu_launch_filter(picked), *ncu_metric_options(ncu_metric_request(metrics, chip)))
        return Choice(arguments, None, source.id, f"{note}: {', '.join(names)}")

    def _valid_locked_choices(self) -> LockedChoices | None:
        """The choices of the lockfile while they apply; warns once when they do not."""
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


def _limit_by_plan(folder: CampaignFolder, run: RunRow, choice: Choice) -> Choice:
    """A recorded choice whose limit is at most this plan's, which was confirmed; another plan had another."""
    planned = planned_limit_s(locked_recipe(folder), _counters_pass_of(folder, run), run.case_id, run.params)
    within = choice.limit_s is not None and planned is not None and choice.limit_s < planned
    return choice if within else replace(choice, limit_s=None)


def _write_locked_launches(
    folder: CampaignFolder, ledger: Ledger, locked: LockedChoice, run: RunRow, source: RunRow
) -> str | None:
    """Write the launches that a recorded choice means into table chosen_launches, as this campaign's timeline has them.

    Returns:
        Why that cannot be done; None: it is done.
    """
    if not locked.kernels:
        return "the lockfile does not name the launches"
    if isinstance(counters_pass := _counters_pass_of(folder, run), SecondStage):
        return None  # whose launches are those of the first stage
    try:
        picked = guided.find_launches_in_trace(
            _candidate_kernels(folder, ledger, counters_pass, source), set(locked.kernels), locked.ordinals
        )
    except (NothingMatched, NswError) as fault:
        return str(fault)
    if not picked:
        return f"{source.id} holds none of these launches"
    put_rows(folder, TABLE, run.id, chosen_launch_rows(picked, source.id))
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
    return _profiled_kernels(folder.reports / source.id, steps, nsys, _range_of_pass(counters_pass))


def _time_limit(
    folder: CampaignFolder, ledger: Ledger, counters_pass: CountersPass, run: RunRow, source: RunRow, chip: str | None
) -> Limit | None:
    """The time limit of a run whose launches are chosen; None where its price is not known."""
    planned = planned_limit_s(locked_recipe(folder), counters_pass, run.case_id, run.params)
    if run.tool != "ncu" or planned is None or source.seconds is None:
        return None
    times = {run_row.id: run_row.seconds for run_row in ledger.runs()}
    launches: dict[str, list[int]] = {}
    sources: dict[str, str] = {}
    for row in load_rows(folder, TABLE):
        if row["duration_ns"] is not None:
            launches.setdefault(row["run"], []).append(row["duration_ns"])
            sources[row["run"]] = row["chosen_from"]
    asked_for = estimate_passes(counters_pass.metrics, find_chip(chip))

    finished = [
        (
            estimate_price(launches.get(run_row.id, ()), asked_for, program_s, counters_pass.replay).expected_s,
            run_row.seconds,
        )
        for run_row in ledger.runs(states=(State.DONE,))
        if run_row.pass_name == counters_pass.name
        and run_row.seconds is not None
        and (program_s := times.get(sources.get(run_row.id, ""))) is not None
    ]
    return run_time_limit(
        estimate_price(launches.get(run.id, ()), asked_for, source.seconds, counters_pass.replay), planned, finished
    )


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


def _counters_pass_of(folder: CampaignFolder, run: RunRow) -> CountersPass:
    counters_pass = next(
        (
            recipe_pass
            for recipe_pass in passes_of(locked_recipe(folder))
            if recipe_pass.name == run.pass_name and isinstance(recipe_pass, CountersPass)
        ),
        None,
    )
    if counters_pass is None:
        raise NswError(f"{folder.recipe} has no counters pass {run.pass_name}")
    return counters_pass


def _range_of_pass(counters_pass: CountersPass) -> Within | None:
    nvtx_range = counters_pass.within
    if nvtx_range is None:
        return None
    return Within(nvtx_range.nvtx, nvtx_range.domain, nvtx_range.start_end, frozenset(nvtx_range.instances or ()))


def _profiled_kernels(
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
    for file in [home / name for name in files_to_read(p.name for p in first)]:
        chosen = Options(
            tables=frozenset({_TRACE} if within is None else {_TRACE, *_OF_RANGES}), nsys=nsys,
            steps=steps.nvtx if steps else None, warmup=steps.warmup if steps else None,
        )  # fmt: skip
        report = read(file, chosen)
        trace = [row for row in _table_rows(report, _TRACE) if row.get("kind") == "kernel"]
        if trace:
            process, device = _first_process_and_gpu(trace)
            found = [row for row in trace if (row.get("pid"), row.get("device")) == (process, device)]
            return found if within is None else _kernels_in_range(found, report, within)
    raise NswError(f"no report in {home} contains the kernel launches that the choice of counters needs")


def _first_process_and_gpu(kernels: list[dict[str, Any]]) -> tuple[int | None, int | None]:
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


def _kernels_in_range(kernels: list[dict[str, Any]], report: Report, within: Within) -> list[dict[str, Any]]:
    """The kernels that were launched inside a range."""
    calls, ranges = (_table_rows(report, name) for name in _OF_RANGES)
    inside = guided.kernels_launched_in_range(kernels, calls, ranges, within)
    if inside:  # asked for by number, an instance may be of the warm-up
        return [dict(row) | ({"phase": None} if within.instances else {}) for row in inside]
    names = range_names(ranges, within)
    if within.name in names:
        raise NothingMatched(f"no kernel was launched inside NVTX range {within.name}, or its instances")
    near = nearest(within.name, names)
    suggestion = f"; nearest: {near}" if near else f"; there are: {', '.join(names[:5])}" if names else ""
    raise NothingMatched(f"the timeline has no NVTX range {within.name}{suggestion}")


def _table_rows(report: Report, table: str) -> list[Any]:
    return list(full_rows(table, report.tables.get(table, [])))
