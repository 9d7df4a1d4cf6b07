"""`nsw status`, `watch`, `problems`, `ls`, `schema`: looking, without driving anything."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any

from nsw.cli.output import tell
from nsw.engine.ledger_rows import State
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from nsw.campaign.selection import RunsOption
    from nsw.cli.output import Target
    from nsw.engine.folder import CampaignFolder

_WIDE = 100  # columns of a terminal from which there is room for the time, which is in the id too
_NOTE = 36  # characters of a note in a list
_PROBLEM = ("run", "report", "severity", "message", "fix")


def status(option_values: RunsOption, every_run: bool, target: Target) -> int:
    """The state of a campaign, or of some of its runs."""
    from nsw.campaign import status as states
    from nsw.present import status_view
    from nsw.present.terminal import console

    seen = states.status(option_values, every=every_run or target.format != "table")
    builds = [status_view.build_data(build, seen.jobs, needed_by) for build, needed_by in seen.builds]
    head = {**seen.head, "builds": builds, **seen.progress}
    rows = [status_view.flat_run(run, seen.jobs) for run in seen.runs] if target.is_of_rows else []
    target.put_data(
        rows,
        list(rows[0]) if rows else status_view.RUN_COLUMNS,
        data=lambda: {
            **head,
            "counts": seen.counts,
            "runs": [status_view.run_data(run, seen.jobs) for run in seen.runs],
            "problems": [dict(zip(_PROBLEM, problem, strict=True)) for problem in seen.problems],
        },
        show=lambda: status_view.show_status(
            console(),
            head,
            seen.counts,
            seen.runs,
            seen.problems,
            seen.jobs,
            every_run=every_run or seen.chosen,
            looks=seen.looks,
        ),
        note=head["note"],
    )
    return Exit.GOOD


def problems(option_values: RunsOption, target: Target) -> int:
    """Everything that is wrong with a campaign's reports, with what to do."""
    from nsw.campaign.status import problems_of
    from nsw.present.problems import show_problems
    from nsw.present.terminal import console

    folder, problem_rows, note = problems_of(option_values)
    rows = [dict(zip(_PROBLEM, p, strict=True)) for p in problem_rows]

    def show() -> None:
        if problem_rows:
            show_problems(console(), problem_rows)
        else:
            console().print(f"{folder.id}: no problem")

    target.put_data(rows, _PROBLEM, data=lambda: {"campaign": folder.id, "problems": rows}, show=show, note=note)
    return Exit.GOOD


def watch(folder: CampaignFolder, *, once: bool) -> int:
    """Show how a campaign's runs go until none is in flight, or once.

    Raises:
        UnreachableError: The site cannot be reached, at the first look.
    """
    from nsw.campaign.watch import Watching
    from nsw.engine.events import Started
    from nsw.present.live import Watch
    from nsw.present.untrusted_text import say
    from nsw.wording import headline

    with Watching(folder, once=once) as watching:
        view = Watch(watching)
        try:
            for event in watching:
                if isinstance(event, Started):  # it looks anew: at the site, or at what another nsw writes
                    view.stop()
                    view = Watch(watching)
                view.show(event)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        finally:
            view.stop()
        say(f"{folder.id}: {headline(watching.counts())}")
        if watching.advice:
            tell(watching.advice)
    return Exit.GOOD


def list_campaigns(root: Path | None, target: Target, *, since: float | None = None, figure: str | None = None) -> int:
    """The campaigns below the root, oldest first; those that began since so many seconds, with a figure."""
    from nsw.campaign import status as states

    parent, rows = states.list_campaigns(root, since, figure)
    flat = [{**r, **{state: r.get("counts", {}).get(state, 0) for state in State}} for r in rows]
    columns = ("campaign", "site", "created", "runs", *map(str, State), "driven", "note", "problem")
    if figure is not None:
        columns = (*columns, "least", "most")
        flat = [row | {"least": _end(row, min), "most": _end(row, max)} for row in flat]
    show = partial(_show_campaigns, flat, parent, figure)
    target.put_data(flat, columns, data=lambda: {"campaigns": rows}, show=show)
    return Exit.GOOD


def _end(row: Mapping[str, Any], end: Callable[[Iterable[float]], float]) -> float | None:
    """The least or greatest of a campaign's medians of a figure."""
    return end(medians) if (medians := row.get("medians", {}).values()) else None


def _show_campaigns(rows: Iterable[dict[str, Any]], root: Path, figure: str | None) -> None:
    from nsw.present.terminal import console, table
    from nsw.quantities import number, spread

    out = console()
    rows = list(rows)
    has_more_columns = figure is not None or any(row.get("note") for row in rows)
    columns = (
        ["campaign", "site", "begun", "runs"]
        if out.width >= _WIDE and not has_more_columns
        else ["campaign", "site", "runs"]
    )
    cells = [
        {**r, "begun": _local_time(r.get("created")), "runs": r.get("problem") or _in_words(r)}
        for r in rows
    ]  # fmt: skip
    if figure is not None:
        columns.append(figure)
        for cell in cells:
            lowest, highest = cell["least"], cell["most"]
            cell[figure] = number(lowest) if lowest == highest else spread(lowest, highest)
    if any(row.get("note") for row in rows):
        columns.append("note")
        for cell in cells:
            cell["note"] = textwrap.shorten(cell.get("note") or "", _NOTE, placeholder=" ...")
    if cells:
        out.print(table(None, columns, ([c.get(name) for name in columns] for c in cells), wide="runs"))
    else:
        out.print(f"no campaign under {root}")


def _in_words(row: Mapping[str, Any]) -> str:
    """The states of its runs, and whether an nsw drives it."""
    from nsw.wording import headline

    return headline(row["counts"], row["incomplete"], row["unreadable"]) + (", driven now" if row["driven"] else "")


def _local_time(created: str | None) -> str | None:
    """A moment as the clock on the wall shows it."""
    if created is None:
        return None
    from datetime import datetime

    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def schema(document: str) -> int:
    """A JSON Schema."""
    from nsw.present.answer_schema import answers_schema
    from nsw.recipe.model import recipe_schema, text_of
    from nsw.site.model import sites_schema

    schema_made = {"recipe": recipe_schema, "sites": sites_schema, "answers": answers_schema}[document]()
    print(text_of(schema_made), end="")
    return Exit.GOOD
