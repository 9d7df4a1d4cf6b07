"""`nsw sites` and `nsw sites check NAME`: where sites come from, and what of one works, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.cli.output import show_message, warn
from nsw.engine.events import Message, RunChanged
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.cli.output import Target
    from nsw.engine.events import Event
    from nsw.site_check.check import Check

_INDENT = 24  # columns before what was found
_MIN_COLUMNS = 20  # columns for it on a narrow terminal
_MARKS = {"good": ("ok", "green"), "warning": ("warning", "yellow"), "bad": ("bad", "red"), "skipped": ("-", "dim")}


def list_sites(sites: Sequence[Path] | None, target: Target) -> int:
    """The sites and where they come from."""
    from nsw.present.terminal import console, table
    from nsw.site import load
    from nsw.site.names import not_searched

    warnings: list[str] = []
    sites_known = load.list_sites(sites, warnings.append)
    if unread := not_searched(sites):
        warnings.append(unread)
    for text in warnings:
        warn(text)
    rows = [
        {"site": p.site.name, "scheduler": p.site.scheduler, "transport": p.site.transport.kind,
         "description": p.site.description, "default": p.site.default, "from": str(p.origin)}
        for p in sites_known
    ]  # fmt: skip
    columns = ("site", "scheduler", "transport", "description", "from")
    shown_rows = ({**r, "site": f"{r['site']} (default)" if r["default"] else r["site"]} for r in rows)
    target.put_data(
        rows,
        ("default", *columns),
        data=lambda: {"sites": rows, "warnings": warnings},
        show=lambda: console().print(
            table(None, columns, ([r[c] for c in columns] for r in shown_rows), wide="description")
        ),
    )
    return Exit.GOOD


def check(name: str, sites: Sequence[Path] | None, target: Target, *, node: bool) -> int:
    """Look at a site, with `node` from a compute node too; 3 when something that campaigns need does not work."""
    from nsw.campaign import check_site
    from nsw.present import emit
    from nsw.site_check.check import Verdict

    checks: list[Check] = []
    for site_check in check_site.check(name, sites, _say, node=node):
        checks.append(site_check)
        if target.format != "json":
            _print(site_check)
    if target.format == "json":
        rows = [
            {
                "what": site_check.what,
                "verdict": site_check.verdict,
                "found": site_check.found,
                "fix": site_check.fix or None,
            }
            for site_check in checks
        ]
        emit.as_json({"site": name, "checks": rows})
    return Exit.UNREACHABLE if any(site_check.verdict is Verdict.BAD for site_check in checks) else Exit.GOOD


def _print(site_check: Check) -> None:
    from textwrap import wrap

    from nsw.present.terminal import console
    from nsw.present.untrusted_text import clean

    out = console()
    mark, style = _MARKS[site_check.verdict]
    room = max(_MIN_COLUMNS, out.width - _INDENT - 1)
    first, *more_lines = wrap(clean(site_check.found), room) or [""]
    out.print(f"{mark:8} {site_check.what:15} {first}", style=style)
    for line in more_lines:
        out.print(f"{'':{_INDENT}} {line}", style=style)
    for line in wrap(site_check.fix, room):
        out.print(f"{'':{_INDENT}} {line}")


def _say(event: Event) -> None:
    if isinstance(event, Message):
        show_message(event)
    elif isinstance(event, RunChanged) and event.run.state == "queued" and event.run.reason:
        show_message(Message(f"the job waits: {event.run.reason}"))
