"""From a campaign's reports to its answer: read what was collected, summarise, print."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nsw.campaign.ledger import Ledger, Reading, State
from nsw.campaign.meta import NOTE, SITE
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.effective import AskedModel
    from nsw.analysis.summary import Summary
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import RunRow
    from nsw.recipe.model import Recipe
    from nsw.recipe.performance import PerformanceModel


def read_reports(folder: CampaignFolder, ledger: Ledger) -> None:
    """Read every collected report into the campaign's tables, with a progress bar on a terminal."""
    from functools import partial

    from nsw.campaign.reading import read_all
    from nsw.readers.figures import figures
    from nsw.readers.many import read_many
    from nsw.readers.model import Options
    from nsw.readers.said import said_in

    recipe = recipe_of(folder)
    wanted, steps = recipe.app.figures, recipe.report.steps
    site = ledger.site()
    nsys = (site.get("profilers") or {}).get("nsys")
    options = Options(nsys=nsys, steps=steps.nvtx, warmup=steps.warmup)
    read_files = partial(read_many, options=options)
    required = [name for name, figure in wanted.items() if figure.required]
    read_all(folder, ledger, read_files, lambda output: figures(output, wanted), _progress(), said_in, required)


def fault_of(folder: CampaignFolder, ledger: Ledger, run: RunRow) -> str | None:
    """Read what a run left, and say what is wrong with it or None: what a canary is asked."""
    from nsw.campaign.reading import load_rows

    read_reports(folder, ledger)
    wrong = [message for id_, _, severity, message, _ in ledger.problems() if id_ == run.id and severity == "error"]
    kind = run.pass_kind
    if (
        not wrong
        and kind == "counters"
        and run.repeat
        and not any(r["run"] == run.id for r in load_rows(folder, "metrics"))
    ):
        wrong = ["its report holds no metric: did the kernel filter match anything?"]
    return "; ".join(wrong) or None


def _progress() -> Any:
    from nsw.present.terminal import console

    out = console(sys.stderr)
    if not out.is_terminal:
        return lambda _done, _all: None
    from rich.progress import Progress

    bar = Progress(console=out, transient=True)
    task = bar.add_task("reading reports")

    def advance(done: int, total: int) -> None:
        if done == 1:
            bar.start()
        bar.update(task, completed=done, total=total)
        if done == total:
            bar.stop()

    return advance


def summary_of(folder: CampaignFolder, ledger: Ledger) -> Summary:
    """The campaign's summary, from its tables and its recipe's `report`."""
    from nsw.analysis.summary import OF_KERNELS, TABLES, summarize
    from nsw.campaign.reading import load_rows, load_table

    runs = ledger.runs()
    tables = {name: load_rows(folder, name) for name in TABLES}
    counters = {name: found for name in OF_KERNELS if (found := load_table(folder, name)) is not None}
    return summarize(
        folder.id,
        ledger.meta(SITE),
        ledger.meta(NOTE),
        runs,
        tables,
        _asked(folder, {run.case_id: run.params for run in runs}),
        _missing(ledger, runs),
        counters,
    )


def _asked(folder: CampaignFolder, cases: Mapping[str, Mapping[str, Any]]) -> Any:
    """What the recipe wants reported."""
    from nsw.analysis.summary import Asked

    recipe = recipe_of(folder)
    report, figures = recipe.report, recipe.app.figures
    scaling, compare = report.scaling, report.compare
    figure = scaling.figure if scaling else (compare.figure if compare else None) or next(iter(figures), None)
    baseline = compare.baseline if compare else None
    if compare and baseline is None:
        values = recipe.matrix.parameters[compare.parameter]
        baseline = values[0] if isinstance(values, list) else values.start
    return Asked(
        cover=report.hotspots.cover,
        axis=scaling.axis if scaling else None,
        base=scaling.baseline if scaling else None,
        kind=scaling.kind if scaling else "strong",
        figure=figure,
        compare=compare.parameter if compare else None,
        baseline=baseline,
        higher_is_better=figures[figure].higher_is_better if figure in figures else None,
        models=_models(report.model, cases) if report.model else {},
    )


def _models(model: PerformanceModel, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, AskedModel | str]:
    """The recipe's model with its formulas computed for each case; or why one cannot be."""
    from nsw.analysis.effective import AskedLink, AskedModel
    from nsw.recipe.expressions import Expression
    from nsw.recipe.faults import Fault
    from nsw.recipe.fields import amount

    def number(given: float | str, values: Mapping[str, Any]) -> float:
        return amount(Expression.parse(given).value(values) if isinstance(given, str) else given)

    found: dict[str, AskedModel | str] = {}
    for case, params in cases.items():
        values = {**params, "case": case}
        try:
            links = tuple(
                AskedLink(
                    name, tuple(link.ranges), link.clock,
                    "copies" if link.bytes == "copies" else "collectives" if link.bytes == "collectives"
                    else number(link.bytes, values),
                )
                for name, link in model.links.items()
            )  # fmt: skip
            found[case] = AskedModel(number(model.flop, values), tuple(model.ranges), links, model.iteration)
        except Fault as fault:
            found[case] = fault.message
    return found


def _missing(ledger: Ledger, runs: list[Any]) -> list[str]:
    from nsw.present.terminal import plural

    lines = [f"not here: {what}: {reason} ({plural(count, 'run')})" for what, reason, count in ledger.absent()]
    for state in State:
        if state is State.DONE:
            continue
        some = [r for r in runs if r.state is state]
        if some:
            why = f": {some[0].reason}" if some[0].reason else ""
            lines.append(f"not in these numbers: {plural(len(some), 'run')} {state}, such as {some[0].id}{why}")
    lacking = [r for r in runs if r.state is State.DONE and r.reading is Reading.INCOMPLETE]
    if lacking:
        they = "it" if len(lacking) == 1 else "them"
        lines.append(
            f"{plural(len(lacking), 'run')} done without a required figure, such as {lacking[0].id}:"
            f" `nsw logs {lacking[0].id}` shows what it printed, and `nsw retry` does {they} again"
        )
    unread = [r for r in runs if r.state is State.DONE and r.reading in {Reading.NONE, Reading.COLLECTED}]
    if unread:
        lines.append(
            f"not in these numbers: {plural(len(unread), 'run')} done and not read yet, such as {unread[0].id}:"
            " `nsw resume` reads what is there, and goes on"
        )
    return lines


def answer(folder: CampaignFolder, ledger: Ledger, only: Sequence[str] | None = None) -> int:
    """Print what the campaign shows, briefly; 1 when something failed, of all or of those runs that were asked for."""
    from nsw.cli.naming import as_named
    from nsw.present.problems import show_short
    from nsw.present.status_view import calls_line, headline
    from nsw.present.summary_view import show_findings, show_summary
    from nsw.present.terminal import console

    out = console()
    summary = summary_of(folder, ledger)
    show_summary(out, summary, brief=True, verdict=False)
    show_short(out, ledger.problems(), f"nsw problems {as_named(folder)}")
    show_findings(out, summary)
    err = console(sys.stderr)
    err.print(headline(ledger.counts(), ledger.incomplete()))
    if calls := calls_line(ledger.calls()):
        err.print(calls)
    for line in _next_steps(folder, ledger):
        err.print(line, soft_wrap=True)
    return exit_code(ledger, only)


def _next_steps(folder: CampaignFolder, ledger: Ledger) -> list[str]:
    """What a person may want to see now: why something failed, and what is there."""
    from nsw.cli.naming import as_named

    bad = [r for r in ledger.runs() if r.state in {State.FAILED, State.LOST} or r.reading is Reading.INCOMPLETE]
    steps, named = [], as_named(folder)
    which = "" if named == folder.id else f" -c {named}"  # the newest is meant where none is named
    if bad:
        steps.append(
            f"`nsw logs {bad[0].id}{which}` shows what it said; `nsw retry{which}` does again what did not succeed"
        )
    if ledger.counts().get(State.DONE):
        steps.append(f"`nsw summarize {named}` has each case in full; tables are in {folder.tables}")
    return steps


def recipe_of(folder: CampaignFolder) -> Recipe:
    """The recipe that the campaign carried out; the files that it names are not looked for."""
    from nsw.campaign.ownership import open_file
    from nsw.recipe.load import load_recipe_text

    with open_file(folder.path, folder.recipe) as file:
        return load_recipe_text(file.read().decode(errors="replace"), str(folder.recipe)).recipe


def exit_code(ledger: Ledger, only: Sequence[str] | None = None) -> int:
    """0 when every run (of `only`) is done, its reports were read and it printed every required figure, else 1."""
    runs = ledger.runs() if only is None else ledger.runs_named(only)
    bad = any(r.state is not State.DONE or r.reading in {Reading.UNREADABLE, Reading.INCOMPLETE} for r in runs)
    return Exit.SOME_FAILED if bad else Exit.GOOD
