"""`nsw status`, `logs`, `ls`, `summarize`, `schema`, `sites`: looking, without driving anything."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign.collect import run_folder
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import BuildRow, Ledger, RunRow
from nsw.cli import answering
from nsw.errors import Exit, UsageError, did_you_mean
from nsw.present import emit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_PROBLEM = ("run", "report", "severity", "message", "fix")


def status(campaign: str | None, root: Path | None, everything: bool, format: str, output: Path | None) -> int:
    """Where a campaign stands."""
    from nsw.present import status_view
    from nsw.present.terminal import console

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        counts, problems = ledger.counts(), ledger.problems()
        some = everything or format != "table"
        runs = ledger.runs() if some else ledger.runs("state NOT IN ('done', 'planned')")
        head, jobs = _head(folder, ledger, counts), job_ids(ledger, runs)
    if format == "json":
        emit.as_json({**head, "counts": counts, "runs": [status_view.run_data(r, jobs) for r in runs],
                      "problems": [dict(zip(_PROBLEM, p, strict=True)) for p in problems]})  # fmt: skip
    elif format in {"csv", "parquet"}:
        rows = [{**r.params, **status_view.run_data(r, jobs)} for r in runs]
        columns = [
            *status_view.RUN_COLUMNS,
            *(k for k in (runs[0].params if runs else {}) if k not in status_view.RUN_COLUMNS),
        ]
        _rows(format, rows, columns, output, head["note"])
    else:
        status_view.show_status(console(), head, counts, runs, problems, jobs, everything=everything)
    return Exit.GOOD


def _head(folder: folders.CampaignFolder, ledger: Ledger, counts: dict[str, int]) -> dict[str, Any]:
    from nsw.present.status_view import build_data

    builds = ledger.builds()
    jobs = job_ids(ledger, builds)
    driven = folders.is_driven(folder)
    left = sum(counts.get(s, 0) for s in ("planned", "intent", "submitted", "queued", "running"))
    bad = sum(counts.get(s, 0) for s in ("failed", "lost", "cancelled"))
    unread = ledger.unread()
    steps = []
    if (left or unread) and not driven:
        steps.append(f"`nsw resume {folder.id}` goes on")
    if bad and not driven:
        steps.append(
            f"`nsw logs RUN` shows what a run said; `nsw retry -c {folder.id}` does again what did not succeed"
        )
    return {"campaign": folder.id, "folder": str(folder.path), "site": ledger.meta("site"), "note": ledger.meta("note"),
            "driven": driven, "absent": ledger.absent(), "next": steps, "scheduler_calls": ledger.calls(),
            "builds": [build_data(build, jobs) for build in builds]}  # fmt: skip


def logs(run: str, campaign: str | None, root: Path | None, lines: int) -> int:
    """The end of a run's output."""
    from nsw.present.terminal import console
    from nsw.schedulers.slurm import log_name

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        row = _one(run, ledger)
        scratch = ledger.meta("scratch") or ""
        native = ledger.native_id(row.submission) if row.submission else None
    from pathlib import Path

    out = console()
    out.print(
        f"{row.id}: {row.state}"
        + (f", {row.reason}" if row.reason else "")
        + (f", attempt {row.attempt}" if row.attempt > 1 else ""),
        style="bold",
    )
    home = Path(run_folder(scratch, row.id, row.attempt))
    if row.attempt == 0:
        out.print("it has not begun")
    for name in ("stdout", "stderr"):
        _show_end(out, home / name, name, lines)
    if row.submission:
        _show_end(out, Path(scratch) / "jobs" / log_name(row.submission, native, row.task), "job script", lines)
    return Exit.GOOD


def _show_end(out: Any, file: Path, name: str, lines: int) -> None:
    from nsw.present.terminal import clean

    try:
        text = file.read_bytes().decode(errors="replace").splitlines()
    except OSError:
        return
    if not text:
        return
    chosen = text[-lines:] if lines else text
    out.print(
        f"--- {name}" + (f" (last {lines} of {len(text)} lines)" if lines and len(text) > lines else ""),
        style="dim",
    )
    for line in chosen:
        out.print(clean(line), soft_wrap=True)


def _one(named: str, ledger: Ledger) -> RunRow | BuildRow:
    """The run or build of that id, or the only one that has it as a part."""
    known: list[RunRow | BuildRow] = [*ledger.runs(), *ledger.builds()]
    found = [r for r in known if r.id == named] or [r for r in known if named in r.id]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"'{named}' is part of {len(found)} runs, such as {', '.join(r.id for r in found[:4])}")
    raise UsageError(
        f"there is no run {named}",
        hint=did_you_mean(named, [r.id for r in known]) or "`nsw status --runs` lists them",
    )


def list_campaigns(root: Path | None, format: str, output: Path | None) -> int:
    """The campaigns below the root, oldest first."""
    import sqlite3

    from nsw.errors import CampaignError
    from nsw.present.status_view import headline
    from nsw.present.terminal import console, table

    rows: list[dict[str, Any]] = []
    for folder in folders.existing(folders.root(root)):
        try:
            with Ledger(folder.ledger, read_only=True) as ledger:
                counts, created = ledger.counts(), float(ledger.meta("created") or 0)
                rows.append({"campaign": folder.id, "site": ledger.meta("site"), "created": created,
                             "runs": sum(counts.values()), "driven": folders.is_driven(folder), "counts": counts,
                             "note": ledger.meta("note")})  # fmt: skip
        except (CampaignError, sqlite3.Error, OSError) as fault:
            rows.append({"campaign": folder.id, "problem": str(fault)})
    if format == "json":
        emit.as_json({"campaigns": rows})
    elif format in {"csv", "parquet"}:
        flat = [{k: v for k, v in r.items() if k != "counts"} for r in rows]
        _rows(format, flat, ("campaign", "site", "created", "runs", "driven", "problem"), output, None)
    elif not rows:
        console().print(f"no campaign under {folders.root(root)}")
    else:
        cells = [
            (r["campaign"], r.get("site"), time.strftime("%Y-%m-%d %H:%M", time.localtime(r.get("created", 0))),
             r.get("problem") or headline(r["counts"]) + (", driven now" if r["driven"] else ""))
            for r in rows
        ]  # fmt: skip
        console().print(table(None, ("campaign", "site", "begun", "runs"), cells))
    return Exit.GOOD


def summarize(
    campaign: str | None,
    root: Path | None,
    cases: list[str],
    table: str | None,
    format: str,
    output: Path | None,
) -> int:
    """What a campaign shows."""
    from nsw.campaign.reading import load_rows
    from nsw.present import summary_view
    from nsw.present.terminal import console
    from nsw.tables import TABLES

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        known = {r.case_id for r in ledger.runs()}
        for case in cases:
            if case not in known:
                raise UsageError(f"there is no case {case}", hint=did_you_mean(case, known))
        if table is not None and table not in {*summary_view.FLAT, *TABLES}:
            raise UsageError(
                f"there is no table {table}",
                hint=did_you_mean(table, (*summary_view.FLAT, *TABLES))
                or f"tables: {', '.join((*summary_view.FLAT, *TABLES))}",
            )
        note = ledger.meta("note")
        if table is not None and table in TABLES and table not in summary_view.FLAT:
            wanted = {r.id for r in ledger.runs() if not cases or r.case_id in cases}
            rows = [r for r in load_rows(folder, table) if r["run"] in wanted]
            return _print_rows(format, table, rows, output, note)
        summary = answering.summary_of(folder, ledger)
        summary = summary.only(cases) if cases else summary
        bad = answering.exit_code(folder, ledger)
    if format == "json" and table is None:
        emit.as_json(summary_view.summary_data(summary))
    elif format != "table" or table is not None:
        chosen = table or ("scaling" if summary.curve else "compare" if summary.variants else "hotspots")
        _print_rows(format, chosen, summary_view.flat_rows(summary, chosen), output, note)
    else:
        out = console()
        out.print(f"{folder.id} on site {summary.site}", style="bold")
        summary_view.show_summary(out, summary, brief=False)
    return bad


def _print_rows(format: str, name: str, rows: list[dict[str, Any]], output: Path | None, note: str | None) -> int:
    from nsw.present.rows_view import show_rows
    from nsw.present.terminal import console

    columns = list(dict.fromkeys(k for r in rows for k in r))
    if format == "json":
        emit.as_json({"table": name, "note": note, "rows": rows})
    elif format in {"csv", "parquet"}:
        _rows(format, rows, columns, output, note)
    else:
        out = console()
        if note:
            out.print(note, style="yellow")
        if rows:
            show_rows(out, name, rows, columns, keep=("run",))
        else:
            out.print(f"{name}: no rows, since no pass of this campaign that was read gives them")
    return Exit.GOOD


def _rows(
    format: str, rows: Sequence[dict[str, Any]], columns: Sequence[str], output: Path | None, note: str | None
) -> None:
    if format == "csv":
        emit.as_csv(rows, columns)
    else:
        emit.as_parquet(rows, columns, output, note)


def schema(document: str) -> int:
    """A JSON Schema."""
    from nsw.recipe.jsonschema import recipe_schema
    from nsw.site.jsonschema import sites_schema

    print(json.dumps(recipe_schema() if document == "recipe" else sites_schema(), indent=2, ensure_ascii=False))
    return Exit.GOOD


def list_sites(sites: Sequence[Path] | None, format: str, output: Path | None) -> int:
    """The sites and where they come from."""
    from nsw.present.terminal import console, table
    from nsw.site.load import list_sites as known

    rows = [
        {"site": p.site.name, "scheduler": p.site.scheduler, "transport": p.site.transport.kind,
         "description": p.site.description, "from": str(p.origin)}
        for p in known(list(sites) if sites else None)
    ]  # fmt: skip
    columns = ("site", "scheduler", "transport", "description", "from")
    if format == "json":
        emit.as_json({"sites": rows})
    elif format in {"csv", "parquet"}:
        _rows(format, rows, columns, output, None)
    else:
        console().print(table(None, columns, ([r[c] for c in columns] for r in rows), wide="description"))
    return Exit.GOOD
