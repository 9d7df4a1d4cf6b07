"""`nsw status`, `watch`, `problems`, `ls`, `schema`: looking, without driving anything."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign import versions
from nsw.campaign.estimate import seconds_left
from nsw.campaign.ledger import ENDED, Ledger, Reading, RunRow, State
from nsw.campaign.ledger_rows import AT_A_TIME, NOTE, SITE, STOPPED, TAKEN_OVER, what_lacks
from nsw.campaign.ownership import owner_if_other
from nsw.campaign.selection import as_named, as_option, campaign_and_runs, job_ids, selected
from nsw.cli.output import tell
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.selection import Which
    from nsw.campaign.watch import Onlooker
    from nsw.cli.output import Target

_WIDE = 100  # columns of a terminal from which there is room for the time, which is in the id too
_NOTABLE = [state for state in State if state not in {State.DONE, State.PLANNED}]
_PROBLEM = ("run", "report", "severity", "message", "fix")


def status(which: Which, everything: bool, target: Target) -> int:
    """The state of a campaign, or of some of its runs."""
    from nsw.campaign.watch import ledger_now
    from nsw.present import status_view
    from nsw.present.terminal import console

    folder, selection = campaign_and_runs(which)
    with ledger_now(folder) as (ledger, onlooker):
        counts, problems = ledger.counts(), [*ledger.problems(), *versions.problems(folder, ledger)]
        everything = everything or bool(selection)  # who names runs wants to see them, whatever their state
        some = everything or target.format != "table"
        runs = ledger.runs() if some else _to_look_at(ledger)
        head, jobs = _head(folder, ledger, counts, onlooker), job_ids(ledger, runs)
        head |= _progress(folder, ledger, counts, runs)
        if selection:
            runs = selected(ledger, runs, selection)
            counts = Counter(str(run.state) for run in runs)
            ids = {run.id for run in runs}
            problems = [one for one in problems if one[0] in ids]
    rows = [status_view.flat_run(r, jobs) for r in runs] if target.is_of_rows else []
    target.put(
        rows,
        list(rows[0]) if rows else status_view.RUN_COLUMNS,
        data=lambda: {
            **head,
            "counts": counts,
            "runs": [status_view.run_data(r, jobs) for r in runs],
            "problems": [dict(zip(_PROBLEM, p, strict=True)) for p in problems],
        },
        show=lambda: status_view.show_status(
            console(),
            head,
            counts,
            runs,
            problems,
            jobs,
            everything=everything,
            looks=None if onlooker else f"nsw watch {as_named(folder)}",
        ),
        note=head["note"],
    )
    return Exit.GOOD


def _to_look_at(ledger: Ledger) -> list[RunRow]:
    """The runs that are neither planned nor done, and of those that are done what is to be known about."""
    lacking = [
        run
        for reading in (Reading.INCOMPLETE, Reading.UNREADABLE)
        for run in ledger.runs(states=(State.DONE,), reading=reading)
    ]
    more = [run for run in ledger.done_with_a_word() if what_lacks(run) is None]
    return [*ledger.runs(states=_NOTABLE), *lacking, *more]


def problems(which: Which, target: Target) -> int:
    """Everything that is wrong with a campaign's reports, with what to do."""
    from nsw.present.problems import show_problems
    from nsw.present.terminal import console

    folder, selection = campaign_and_runs(which)
    with Ledger(folder.ledger, read_only=True) as ledger:
        found, note = _all_problems(folder, ledger), ledger.meta(NOTE)
        if selection:
            ids = {run.id for run in selected(ledger, ledger.runs(), selection)}
            found = [one for one in found if one[0] in ids]
    rows = [dict(zip(_PROBLEM, p, strict=True)) for p in found]

    def show() -> None:
        if found:
            show_problems(console(), found)
        else:
            console().print(f"{folder.id}: no problem")

    target.put(rows, _PROBLEM, data=lambda: {"campaign": folder.id, "problems": rows}, show=show, note=note)
    return Exit.GOOD


def _all_problems(folder: CampaignFolder, ledger: Ledger) -> list[tuple[str, str | None, str, str, str | None]]:
    """Those of reports, outliers, and runs of an older version of the program."""
    return [*ledger.problems(), *_outliers(folder, ledger), *versions.problems(folder, ledger)]


def _outliers(folder: CampaignFolder, ledger: Ledger) -> list[tuple[str, str | None, str, str, str | None]]:
    """Outliers among the repeats of a case, as problems."""
    from nsw.analysis.figures import outliers
    from nsw.campaign.tables import load_rows

    fix = "look at what else ran there then; figures are medians, which a single outlier hardly moves"
    found = outliers(ledger.runs(), load_rows(folder, "figures"))
    return [(one.run, None, "warning", f"an outlier: {one.text}", fix) for one in found]


def _progress(
    folder: CampaignFolder, ledger: Ledger, counts: Mapping[str, int], runs: Sequence[RunRow]
) -> dict[str, Any]:
    """How long it goes on already, how long it will, and what the running programs printed last."""
    if not any(counts.get(state) for state in State if state not in ENDED):
        return {"elapsed_s": None, "seconds_left": None, "last_lines": {}}
    from nsw.campaign.running import lines_now

    now, driven = time.time(), folders.is_driven(folder)
    running = [run for run in runs if run.state is State.RUNNING]
    begun = ledger.began()
    return {
        "elapsed_s": None if begun is None else max(0.0, now - begun),
        "seconds_left": seconds_left(ledger.paces(now)) if driven else None,
        "last_lines": lines_now(folder, ledger, running, driven=driven),
    }


def _head(folder: CampaignFolder, ledger: Ledger, counts: dict[str, int], onlooker: Onlooker | None) -> dict[str, Any]:
    from nsw.present.status_view import build_data
    from nsw.present.terminal import plural

    builds, needed_by = ledger.builds(), ledger.needed_by()
    jobs = job_ids(ledger, builds)
    driven = folders.is_driven(folder)
    left = sum(counts.get(s, 0) for s in ("planned", "intent", "submitted", "queued", "running"))
    bad = sum(counts.get(s, 0) for s in ("failed", "lost", "cancelled"))
    unread, incomplete = ledger.unread(), ledger.incomplete()
    steps = []
    other, taken = owner_if_other(folder.path), ledger.meta(TAKEN_OVER)
    reductions = dict(Counter(str(row.state) for row in ledger.reductions()))
    going = sum(count for state, count in reductions.items() if state not in ENDED)
    unseen = onlooker is not None and onlooker.changed_any  # runs whose reports nobody has read
    may_go_on = not driven and not other and taken is None
    if taken is not None and not other:
        steps.append(f"`nsw watch {as_named(folder)}` shows its progress there; `nsw attach {folder.id}` takes it back")
    if (left or unread or going or unseen) and may_go_on:
        waiting, resume = counts.get("planned", 0), f"`nsw resume {as_named(folder)}`"
        what = f"{plural(waiting, 'run')} {'waits' if waiting == 1 else 'wait'} for {resume}"
        steps.append(what if waiting else f"{resume} goes on")
    if (bad or incomplete) and may_go_on:
        from nsw.campaign.answers import how_to_repeat  # here: most looks need nothing of recipes

        again = how_to_repeat(folder, ledger, f" -c {as_named(folder)}")
        steps.append(f"`nsw logs RUN{as_option(folder)}` prints a run's output; {again}")
    return {"campaign": folder.id, "folder": str(folder.path), "owner": other,
            "taken_over_by": taken,
            "site": ledger.meta(SITE), "note": ledger.meta(NOTE), "driven": driven,
            "absent": ledger.absent(), "next": steps, "scheduler_calls": ledger.calls(),
            "incomplete": incomplete, "unreadable": ledger.unreadable(),
            "stopped": ledger.meta(STOPPED), "held": ledger.meta(AT_A_TIME) == 0,
            "reductions": reductions,
            "builds": [build_data(build, jobs, needed_by.get(build.id, [])) for build in builds]}  # fmt: skip


def watch(folder: CampaignFolder, *, once: bool) -> int:
    """Show how a campaign's runs go until none is in flight, or once.

    Raises:
        UnreachableError: The site cannot be reached, at the first look.
    """
    from nsw.campaign.events import Started
    from nsw.campaign.watch import Watching
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


def list_campaigns(root: Path | None, target: Target) -> int:
    """The campaigns below the root, oldest first."""
    parent = folders.root(root)
    rows = [_campaign(folder) for folder in folders.existing(parent)]
    flat = [{**r, **{state: r.get("counts", {}).get(state, 0) for state in State}} for r in rows]
    columns = ("campaign", "site", "created", "runs", *map(str, State), "driven", "note", "problem")
    target.put(flat, columns, data=lambda: {"campaigns": rows}, show=lambda: _show_campaigns(rows, parent))
    return Exit.GOOD


def _campaign(folder: CampaignFolder) -> dict[str, Any]:
    from nsw.errors import CampaignError

    try:
        with Ledger(folder.ledger, read_only=True) as ledger:
            counts, created = ledger.counts(), ledger.created()
            return {"campaign": folder.id, "site": ledger.meta(SITE), "created": _iso(created),
                    "runs": sum(counts.values()), "driven": folders.is_driven(folder), "counts": counts,
                    "incomplete": ledger.incomplete(), "unreadable": ledger.unreadable(),
                    "note": ledger.meta(NOTE)}  # fmt: skip
    except (CampaignError, OSError) as fault:
        return {"campaign": folder.id, "problem": str(fault)}


def _iso(seconds: float) -> str:
    """A moment as ISO 8601, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _show_campaigns(rows: Iterable[dict[str, Any]], root: Path) -> None:
    from nsw.present.terminal import console, table

    out = console()
    columns = ("campaign", "site", "begun", "runs") if out.width >= _WIDE else ("campaign", "site", "runs")
    cells = [
        {**r, "begun": _here(r.get("created")), "runs": r.get("problem") or _in_words(r)}
        for r in rows
    ]  # fmt: skip
    if cells:
        out.print(table(None, columns, ([c.get(name) for name in columns] for c in cells), wide="runs"))
    else:
        out.print(f"no campaign under {root}")


def _in_words(row: Mapping[str, Any]) -> str:
    """The states of its runs, and whether an nsw drives it."""
    from nsw.wording import headline

    return headline(row["counts"], row["incomplete"], row["unreadable"]) + (", driven now" if row["driven"] else "")


def _here(created: str | None) -> str | None:
    """A moment as the clock on the wall shows it."""
    if created is None:
        return None
    from datetime import datetime

    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def schema(document: str) -> int:
    """A JSON Schema."""
    from nsw.present.answer_schema import answers_schema
    from nsw.recipe.jsonschema import recipe_schema, text_of
    from nsw.site.model import sites_schema

    made = {"recipe": recipe_schema, "sites": sites_schema, "answers": answers_schema}[document]()
    print(text_of(made), end="")
    return Exit.GOOD
