"""`nsw sites check NAME`: what of a site works, a line each, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.events import Message, RunChanged
from nsw.cli import notices
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.events import Event
    from nsw.site_check.facts import Check

_INDENT = 24  # columns before what was found
_LEAST = 20  # columns for it on a narrow terminal
_MARKS = {"good": ("ok", "green"), "warning": ("warning", "yellow"), "bad": ("bad", "red"), "skipped": ("-", "dim")}


def check(name: str, sites: Sequence[Path] | None, format: str, *, node: bool = False) -> int:
    """Look at a site, with `node` from a compute node too; 3 when something that campaigns need does not work."""
    from nsw.campaign import check_site
    from nsw.present import emit
    from nsw.site_check.facts import Verdict

    found: list[Check] = []
    for one in check_site.check(name, sites, _say, node=node):
        found.append(one)
        if format != "json":
            _print(one)
    if format == "json":
        rows = [{"what": one.what, "verdict": one.verdict, "found": one.found, "fix": one.fix or None} for one in found]
        emit.as_json({"site": name, "checks": rows})
    return Exit.UNREACHABLE if any(one.verdict is Verdict.BAD for one in found) else Exit.GOOD


def _print(one: Check) -> None:
    from textwrap import wrap

    from nsw.present.terminal import console
    from nsw.present.untrusted_text import clean

    out = console()
    mark, style = _MARKS[one.verdict]
    room = max(_LEAST, out.width - _INDENT - 1)
    first, *more = wrap(clean(one.found), room) or [""]
    out.print(f"{mark:8} {one.what:15} {first}", style=style)
    for line in more:
        out.print(f"{'':{_INDENT}} {line}", style=style)
    for line in wrap(one.fix, room):
        out.print(f"{'':{_INDENT}} {line}")


def _say(event: Event) -> None:
    if isinstance(event, Message):
        notices.show(event)
    elif isinstance(event, RunChanged) and event.run.state == "queued" and event.run.reason:
        notices.show(Message(f"the job waits: {event.run.reason}"))
