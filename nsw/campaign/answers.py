"""What a campaign shows: its summary, and whether all of it is good."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.model_flops import StepFlops
from nsw.analysis.placement import Span, find_runs_sharing_gpus, gpu_sharing_sentences
from nsw.analysis.summary import OF_KERNELS, TABLES, CampaignData, ReportRequest, Summary, summarize
from nsw.campaign.selection import Selection, campaign_option, job_ids, selected
from nsw.campaign.start import unsent_file_hint
from nsw.campaign.versions import version_findings
from nsw.engine.collect import parse_status
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger_rows import BAD, NOTE, SITE, STOPPED, Cause, Problem, Reading, RunRow, State, lacks_reports
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import load_rows, load_rows_lazily, load_tables
from nsw.errors import UsageError, did_you_mean
from nsw.quantities import number, seconds
from nsw.recipe.matrix import expand_matrix
from nsw.recipe.passes import TimelinePass
from nsw.recipe.units import Fault, format_duration
from nsw.site.names import LOCAL
from nsw.site.topology import racks_by_node
from nsw.wording import absent_lines, headline, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nsw.analysis.blocks import Lanes
    from nsw.analysis.effective import AskedModel
    from nsw.analysis.rules.hits import Reports
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.recipe.model import FlopsPerStep, Lock, PerformanceModel


_LONGEST = 1 << 16  # bytes of a status file


def shared_gpus(folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow]) -> list[str]:
    """Return a sentence for each way in which runs that are done shared a GPU; [] where none did.

    Args:
        folder: The campaign's folder, with the status files that list the GPUs of each run.
        ledger: The campaign's ledger.
        runs: The campaign's runs; those that are not done are ignored.
    """
    site = ledger.site()
    if site.get("replay"):
        return []
    spans = [
        Span(run.id, run.host, run.started, run.ended)
        for run in runs
        if run.gpus and run.state is State.DONE and run.host and run.started is not None and run.ended is not None
    ]
    numbered_alike = site.get("scheduler") == LOCAL  # elsewhere a job may count only its own GPUs: 0 of each is another

    def gpus_of(run: str) -> frozenset[str] | None:
        names = _visible_devices(folder, run)
        if names is None or numbered_alike:
            return names
        return frozenset(f"{run}: {name}" if name.isdigit() else name for name in names)

    return gpu_sharing_sentences(find_runs_sharing_gpus(spans, gpus_of))


def _visible_devices(folder: CampaignFolder, run: str) -> frozenset[str] | None:
    """What CUDA_VISIBLE_DEVICES was to the run's job script; None where its status file is not here."""
    try:
        with folder.open(folder.reports / run / "status") as file:
            status = parse_status(file.read(_LONGEST))
    except OSError:
        return None
    return None if status is None else frozenset(filter(None, (status.gpus or "").split(",")))


_TRACING: Final = "timeline"  # the kind of the passes that record timelines
_LINE: Final = 100  # characters of a line that a program printed
_TIMES: Final = 4  # the new limit, in times of what the longest run took
_MUCH: Final = 5  # times of the limit that would do: so much more is worth a word
_UNKNOWN_S: Final = 450.0  # of a run whose times nobody wrote down: 30 minutes are offered


def repeat_command(folder: CampaignFolder, ledger: Ledger, option: str) -> str:
    """The command that mends what failed: with a file that was missing, a longer limit, or a corrected regex.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        option: The option that names the campaign, with a space before it; may be empty.
    """
    if (sending := unsent_file_hint(folder, ledger)) is not None:
        return sending
    counts, over = ledger.counts(), [r for r in ledger.runs(states=(State.FAILED,)) if r.cause is Cause.OVER_TIME]
    if not any(counts.get(state) for state in (*BAD, State.CANCELLED)):  # only figures lack
        return f"`nsw reread{option}` reads it again, once the recipe's regex matches"
    if not over:
        return f"`nsw retry{option}` repeats what did not succeed"
    took = max(run.ended - run.started if run.started and run.ended else _UNKNOWN_S for run in over)
    minutes = max(1, math.ceil(_TIMES * took / 60))
    return f"`nsw retry{option} --time {minutes}m` repeats what did not succeed, with a longer time limit"


def summary_of(folder: CampaignFolder, ledger: Ledger, figure: str | None = None) -> Summary:
    """The campaign's summary, from its tables and its recipe's `report`.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        figure: The figure that cases are compared by; None: the recipe's.

    Raises:
        UsageError: There is no such figure.
    """
    runs = _in_recipe_order(folder, ledger.runs())
    tables = {name: load_rows_lazily(folder, name) for name in TABLES}
    data = CampaignData(
        folder.id,
        ledger.meta(SITE),
        ledger.meta(NOTE),
        runs,
        tables,
        missing=_missing_data_lines(folder, ledger, runs),
        counters=load_tables(folder, OF_KERNELS),
        campaign_findings=version_findings(folder, ledger),
        reports=_timeline_reports(folder, ledger, runs),
        racks=racks_by_node(ledger.site().get("topology") or {}),
    )
    measured = {row["name"] for row in tables["figures"]} if figure is not None else set()
    if figure is not None and figure not in measured:
        hint = did_you_mean(figure, measured) or f"measured: {', '.join(sorted(measured)) or 'no figure'}"
        raise UsageError(f"--figure {figure}: no run of {folder.id} gave it", hint=hint)
    return summarize(data, _requested_analyses(folder, {run.case_id: run.params for run in runs}, figure))


def _timeline_reports(folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow]) -> Reports:
    """Whether `nsw reread` can read a timeline's report: nsw acts for the campaign, and has report and nsys here."""
    from nsw.engine.read import reports_of
    from nsw.readers.nsys.export.binary import is_readable

    nsys = (ledger.site().get("profilers") or {}).get("nsys")
    files = (file for run in runs if run.pass_kind == _TRACING for file in reports_of(folder, run))
    if (first := next(files, None)) is None:
        return "absent"
    is_any_readable = folder.trusted and any(is_readable(file, nsys) for file in (first, *files))
    return "readable" if is_any_readable else "unreadable"


def _in_recipe_order(folder: CampaignFolder, runs: list[RunRow]) -> list[RunRow]:
    """The runs by case in the order of the recipe: blocks run in random order, which nobody asks for."""
    recipe = locked_recipe(folder)
    if recipe.interleave is None:
        return runs
    order = {case.id: at for at, case in enumerate(expand_matrix(recipe.matrix).cases)}
    return sorted(runs, key=lambda run: order.get(run.case_id, len(order)))


def _requested_analyses(folder: CampaignFolder, cases: Mapping[str, Mapping[str, Any]], figure: str | None) -> Any:
    """What the recipe wants reported, by another figure where it is named."""
    recipe = locked_recipe(folder)
    report, figures = recipe.report, recipe.app.figures
    scaling, compare = report.scaling, report.compare
    asked = scaling.figure if scaling else (compare.figure if compare else None) or next(iter(figures), None)
    figure = figure or asked
    baseline = compare.baseline if compare else None
    if compare and baseline is None:
        values = recipe.matrix.parameters[compare.parameter]
        baseline = values[0] if isinstance(values, list) else values.start
    return ReportRequest(
        cover=report.hotspots.cover,
        axis=scaling.axis if scaling else None,
        base=scaling.baseline if scaling else None,
        kind=scaling.kind if scaling else "strong",
        figure=figure,
        compare=compare.parameter if compare else None,
        baseline=baseline,
        tied=next((group for group in recipe.matrix.zip if compare and compare.parameter in group), ()),
        higher_is_better=figures[figure].higher_is_better if figure in figures else None,
        models=_models_by_case(report.model, cases) if report.model else {},
        flops=_step_flops_by_case(report.flops_per_step, cases, recipe.lock) if report.flops_per_step else {},
        classes=report.classes,
        windowed={each.name for each in recipe.passes if isinstance(each, TimelinePass) and each.is_windowed},
    )


def _models_by_case(model: PerformanceModel, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, AskedModel | str]:
    """The recipe's model with its formulas computed for each case; or why one cannot be."""
    from nsw.analysis.effective import AskedLink, AskedModel

    models: dict[str, AskedModel | str] = {}
    for case, params in cases.items():
        values = {**params, "case": case}
        try:
            links = tuple(
                AskedLink(
                    name, tuple(link.ranges), link.clock,
                    "copies" if link.bytes == "copies" else "collectives" if link.bytes == "collectives"
                    else _evaluate_amount(link.bytes, values),
                )
                for name, link in model.links.items()
            )  # fmt: skip
            models[case] = AskedModel(_evaluate_amount(model.flop, values), tuple(model.ranges), links, model.iteration)
        except Fault as fault:
            models[case] = fault.message
    return models


def _step_flops_by_case(
    request: FlopsPerStep, cases: Mapping[str, Mapping[str, Any]], lock: Lock | None
) -> dict[str, StepFlops | str]:
    """The FLOP of a step of each case; or why they cannot be computed."""
    gpu = lock.machine.get("chip") if lock else None
    flops: dict[str, StepFlops | str] = {}
    for case, params in cases.items():
        try:
            flops[case] = StepFlops(_evaluate_amount(request.value, {**params, "case": case}), request.precision, gpu)
        except Fault as fault:
            flops[case] = fault.message
    return flops


def _evaluate_amount(amount_or_formula: float | str, values: Mapping[str, Any]) -> float:
    """A number of a recipe above zero, which may be a formula over a case's parameters.

    Raises:
        Fault: It is no such number.
    """
    from nsw.recipe.expressions import Expression
    from nsw.recipe.fields import parse_positive

    formula = Expression.parse(amount_or_formula) if isinstance(amount_or_formula, str) else None
    return parse_positive(formula.value(values) if formula else amount_or_formula)


def _missing_data_lines(folder: CampaignFolder, ledger: Ledger, runs: list[Any]) -> list[str]:
    option = campaign_option(folder)
    lines = absent_lines(ledger.absent())
    for state in State:
        if state is State.DONE:
            continue
        unfinished = [r for r in runs if r.state is state]
        if unfinished:
            reason = f": {unfinished[0].reason}" if unfinished[0].reason else ""
            lines.append(
                f"not in these numbers: {plural(len(unfinished), 'run')} {state}, such as {unfinished[0].id}{reason}"
            )
    lacking = [r for r in runs if r.state is State.DONE and r.reading is Reading.INCOMPLETE]
    no_reports = [r for r in runs if lacks_reports(r)]
    unread = [r for r in runs if r.state is State.DONE and r.reading in {Reading.NONE, Reading.COLLECTED}]
    for subset, begin, lack, remedy in (
        (lacking, "", "done without a required figure", f"`nsw problems{option}` says what to correct"),
        (no_reports, "", "with missing or unreadable reports",
         f"`nsw problems{option}` lists what is missing or wrong"),
        (unread, "not in these numbers: ", "done and not read yet",
         f"`nsw resume{option}` reads the reports that are here, and continues"),
    ):  # fmt: skip
        if subset:
            lines.append(f"{begin}{plural(len(subset), 'run')} {lack}, such as {subset[0].id}: {remedy}")
    if folder.trusted and not folder.tables.is_dir() and any(r.reading is Reading.READ for r in runs):
        lines.append(f"{folder.tables} is gone: `nsw reread{option}` reads the reports again")
    return [*lines, *shared_gpus(folder, ledger, runs), *_unmeasured_lines(ledger, runs)]


def _unmeasured_lines(ledger: Ledger, runs: list[Any]) -> list[str]:
    """What counters passes requested and did not measure, once for all runs of a pass."""
    pass_of = {run.id: run.pass_name for run in runs}
    runs_by_message: dict[tuple[str, str], list[str]] = {}
    for problem in ledger.not_as_asked():
        if problem.run in pass_of:
            runs_by_message.setdefault((pass_of[problem.run], problem.message), []).append(problem.run)
    return [
        f"{message} (pass {name}, {plural(len(run_ids), 'run')})"
        for (name, message), run_ids in runs_by_message.items()
    ]


def is_good(ledger: Ledger, only: Sequence[str] | None = None) -> bool:
    """Whether every run (of `only`) is done, its reports were read and it printed every required figure."""
    runs = ledger.runs() if only is None else ledger.runs_named(only)
    return not any(r.state is not State.DONE or r.reading in {Reading.UNREADABLE, Reading.INCOMPLETE} for r in runs)


class Results:
    """What a campaign shows, of the cases of some runs or of all, as long as its ledger is open."""

    def __init__(self, folder: CampaignFolder, ledger: Ledger, selection: Selection, figure: str | None = None) -> None:
        self.folder = folder
        self._figure = figure
        self._ledger = ledger
        every = _in_recipe_order(folder, ledger.runs())
        cases = {run.case_id for run in selected(ledger, every, selection)} if selection else None
        self._cases = sorted(cases or ())
        self.runs: list[RunRow] = [run for run in every if cases is None or run.case_id in cases]
        self.parameters: frozenset[str] = frozenset(key for run in every for key in run.params)
        self.site: str = ledger.meta(SITE)
        self.note: str | None = ledger.meta(NOTE)
        self.trace_errors: list[tuple[str, str | None]] = []  # of reports whose traces were read, with what to do
        self.is_recorded = bool(ledger.site().get("replay"))  # nothing of it was measured where it ran

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        return self._ledger.counts()

    @property
    def headline(self) -> str:
        """The counts in words, with what runs lack."""
        return headline(self.counts, self._ledger.incomplete(), self._ledger.unreadable())

    @property
    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run."""
        return self._ledger.calls()

    @property
    def stopped(self) -> str | None:
        """Why nothing new is submitted."""
        return self._ledger.meta(STOPPED)

    def is_good(self, only: Sequence[str] | None = None) -> bool:
        """Whether every run (of `only`) is done, its reports were read and it printed every required figure."""
        return is_good(self._ledger, only)

    def repeat_command(self, option: str) -> str:
        """The command that repeats what failed; `which` is the option that names the campaign, or empty."""
        return repeat_command(self.folder, self._ledger, option)

    @property
    def shorter_limit(self) -> str | None:
        """The time limit that the recipe could ask for, as a sentence; None: its own fits, or the runs are recorded."""
        limit = locked_recipe(self.folder).resources.time
        took = max((run.seconds or 0.0 for run in self.runs), default=0.0)
        minutes = max(1, math.ceil(_TIMES * took / 60))
        if self.is_recorded or not took or not isinstance(limit, int) or limit < _MUCH * 60 * minutes:
            return None
        return (
            f"runs took at most {seconds(took)} of their {format_duration(limit)}: with `time: {minutes}m` the recipe"
            " costs less at most, and a queue starts it earlier"
        )

    def matched_lines(self) -> list[str]:
        """From which line of the first run that was read each figure is; [] of recorded runs.

        It is the first number that the figure's regex matches.
        """
        run = next((run for run in self.runs if run.state is State.DONE and run.reading is Reading.READ), None)
        output = None if run is None or self.is_recorded else self.folder.reports / run.id / "stdout"
        if run is None or output is None or not output.is_file():
            return []
        from nsw.readers.program_figures import read_figure_rows

        specs = locked_recipe(self.folder).app.figures
        sentences = []
        for row in read_figure_rows(
            output, {name: spec.model_copy(update={"pick": "first"}) for name, spec in specs.items()}
        ):
            if row["value"] is not None:
                name, line, count = row["name"], row["line"].strip(), row["matches"]
                line = line if len(line) <= _LINE else f"{line[:_LINE]}..."
                more = f", the first of {count} matches (pick: {specs[name].pick})" if count > 1 else ""
                sentences.append(f"{run.id} printed '{line}': {name} = {number(row['value'])}{more}")
        return sentences

    @property
    def jobs(self) -> dict[str, str]:
        """The scheduler's job id of each run."""
        return job_ids(self._ledger, self.runs)

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with reports."""
        return self._ledger.problems()

    @cached_property
    def summary(self) -> Summary:
        """The answer."""
        summary = summary_of(self.folder, self._ledger, self._figure)
        return summary.only(self._cases) if self._cases else summary

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table of the reports."""
        ids = {run.id for run in self.runs}
        return [row for row in load_rows(self.folder, table) if row["run"] in ids]

    def trace(self, table: str, runs: Sequence[RunRow]) -> list[dict[str, Any]]:
        """The rows of one trace; it raises what `traces` does."""
        return [row for _, tables in self.traces(runs, [table]) for row in tables.get(table, [])]

    def traces(
        self, runs: Sequence[RunRow], names: Collection[str]
    ) -> Iterator[tuple[RunRow, dict[str, list[dict[str, Any]]]]]:
        """The rows of traces by their names, run after run, which are read from the collected reports.

        What is wrong with these reports is added to `trace_errors`.

        Raises:
            CampaignError: The campaign was made elsewhere, and so were the reports and the program that exports them.
        """
        from nsw.engine.read import read_traces

        for run, tables, errors in read_traces(self.folder, self._ledger, runs, names):
            self.trace_errors += errors
            yield run, tables

    @property
    def lacks_timelines(self) -> bool:
        """Whether runs with a timeline were done, and no report of theirs is here."""
        from nsw.engine.read import reports_of

        traced_runs = [run for run in self.runs if run.pass_kind == _TRACING]
        return bool(traced_runs) and not any(reports_of(self.folder, run) for run in traced_runs)

    @property
    def drawable_cases(self) -> list[str]:
        """The cases of which an iteration can be drawn: nsw acts for the campaign, and can read a report of theirs."""
        from nsw.engine.read import reports_of
        from nsw.readers.nsys.export.binary import is_readable

        nsys = (self._ledger.site().get("profilers") or {}).get("nsys")
        passes = {case.id: case.traced_by for case in self.summary.cases if case.iterations and self.folder.trusted}
        traced_runs = [run for run in self.runs if passes.get(run.case_id) == run.pass_name]
        return [r.case_id for r in traced_runs if any(is_readable(file, nsys) for file in reports_of(self.folder, r))]

    def timeline(self, case: str | None = None) -> Lanes | None:
        """One iteration of a case by process and stream, read from its report; None where no timeline tells of any.

        Args:
            case: Which; None: the first one of which there is a timeline.

        Raises:
            CampaignError: As `traces`.
        """
        from nsw.analysis.iteration_lanes import iteration_lanes

        traced_runs = {row["run"] for row in self.rows("iterations")}
        run = next((run for run in self.runs if run.id in traced_runs and case in {None, run.case_id}), None)
        if run is None:
            return None
        names = ("gpu_trace", "nvtx_trace", "iteration_trace", "gpu_metric_trace", "cpu_trace", "collectives")
        ((_, tables),) = self.traces([run], names)
        return iteration_lanes(run.case_id, *(tables.get(name, []) for name in names))


@contextmanager
def results(
    folder: CampaignFolder,
    selection: Selection = Selection(),  # noqa: B008  it is frozen
    figure: str | None = None,
) -> Iterator[Results]:
    """What a campaign shows, as it is now.

    Args:
        folder: The campaign.
        selection: Of which runs; all of them by default.
        figure: The figure that cases are compared by; None: the recipe's.
    """
    with ledger_to_read(folder) as ledger:
        yield Results(folder, ledger, selection, figure)
