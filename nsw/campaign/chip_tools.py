"""Whether the profilers that a site check found measure the GPUs that it has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.campaign.site_check_result import Check, Verdict
from nsw.metrics import find_chip, unsupported
from nsw.metrics.requests import tool_for, tools_for
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WHAT = "chip"
_VERSION = re.compile(r"[Vv]ersion (\d+(?:\.\d+)+)")
_NAMED = "profilers: {%s: ...} names another one, or modules: the module that brings it"


def chip_check(site: Mapping[str, Any], checks: Iterable[Check]) -> Check:
    """Compare the GPUs with the profilers' versions, those of a compute node where one was looked at.

    Args:
        site: The site as data.
        checks: What was found of the site so far.
    """
    found = {one.what: one.found for one in checks if one.verdict is Verdict.GOOD}
    seen = re.findall(r"\d+ x ([^,]+)", found.get("GPUs (node)") or found.get("GPUs") or "")
    named = (site.get("gpus") or {}).get("chip")
    if not named and not seen:
        fix = "gpus: {chip: ...} of the site names it, such as H100"
        if site.get("scheduler") != LOCAL:
            fix = f"`--node` looks at a compute node's; {fix}"
        return Check(WHAT, Verdict.SKIPPED, "no GPU was seen, and the site names none", fix)
    text = seen[0] if seen else str(named)
    chip = find_chip(text)
    if chip is None:
        fix = "recipes are checked once jobs have run; `nsw metrics` lists the chips that nsw knows"
        return Check(WHAT, Verdict.SKIPPED, f"{text}: no chip that nsw knows", fix)
    others = [one for one in seen if (other := find_chip(one)) is not None and other is not chip]
    said = find_chip(str(named)) if named else None
    if others or (seen and said is not None and said is not chip):
        found_here = ", ".join([text, *others])
        fix = "correct gpus.chip; a queue with one kind of GPU each is a site each"
        return Check(WHAT, Verdict.WARNING, f"the site says {named or 'nothing'}, and its node has {found_here}", fix)
    reasons = []
    for tool in tools_for(chip):
        printed = found.get(f"{tool} (node)") or found.get(tool)
        if printed is None:
            continue
        version = _VERSION.search(printed)
        why = unsupported(tool, chip, version[1] if version else None)
        if why is None:
            return Check(WHAT, Verdict.GOOD, f"{chip.name}: {tool}{f' {version[1]}' if version else ''} measures it")
        reasons.append(why)
    wanted = tool_for(chip)
    if reasons:
        return Check(WHAT, Verdict.WARNING, "; ".join(reasons), _NAMED % wanted)
    return Check(WHAT, Verdict.SKIPPED, f"{chip.name}: counters need {wanted}, which was not found", _NAMED % wanted)
