"""`nsw sites check NAME`: what of a site works, a line each, with what to do."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MARKS = {"good": ("ok", "green"), "warning": ("warning", "yellow"), "bad": ("bad", "red"), "skipped": ("-", "dim")}


def check(name: str, sites: Sequence[Path] | None, format: str) -> int:
    """Look at a site; 3 when something that campaigns need does not work."""
    from nsw.campaign.site_check import Verdict, check_site
    from nsw.present import emit
    from nsw.present.terminal import console
    from nsw.present.text_of_others import clean
    from nsw.schedulers.create import adapter_of
    from nsw.service.dry_run import way_to
    from nsw.site.load import load_site

    place = load_site(name, list(sites) if sites else None)
    site, adapter = place.site.model_dump(mode="json", by_alias=True), adapter_of(place.site.scheduler)
    out, found = console(), []
    with closing(way_to(place)) as transport:
        for one in check_site(site, transport, adapter):
            found.append(one)
            if format == "json":
                continue
            mark, style = _MARKS[one.verdict]
            out.print(f"{mark:8} {one.what:11} {clean(one.found)}", style=style, soft_wrap=True, markup=False)
            if one.fix:
                out.print(f"{'':20} {one.fix}", soft_wrap=True, markup=False)
    if format == "json":
        rows = [{"what": one.what, "verdict": one.verdict, "found": one.found, "fix": one.fix or None} for one in found]
        emit.as_json({"site": name, "checks": rows})
    return Exit.UNREACHABLE if any(one.verdict is Verdict.BAD for one in found) else Exit.GOOD
