"""One pass of one case -> the command line under its profiler, or why it cannot be had on this site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.plan.launchers import RANK_VARIABLE, Launch, launch
from nsw.profilers import BY_KIND, Profiled, Profiler, Request, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.plan.facts import SiteFacts


def profiled(
    one: Any,
    program: tuple[str, ...],
    how: Launch,
    facts: SiteFacts,
    configured: Mapping[str, str],
    *,
    inside: bool | None,
    export_here: bool,
) -> tuple[str | None, Profiled]:
    """The tool of a pass and what it makes of the program.

    Args:
        one: The recipe's pass.
        program: The program's words.
        how: Its launcher.
        facts: What the site has.
        configured: The site's profilers: tool -> path.
        inside: Whether the recipe wants a profiler for each process; None: what suits the launcher.
        export_here: Whether the job turns reports into tables' sources itself.
    """
    if one.kind == "baseline":
        return None, Profiled(launch(how, program))
    tool, path, missing = _tool(one, facts, configured)
    if missing is not None:
        return tool, Profiled(impossible=missing)
    profiler = load(tool)
    each = _each_process(profiler, how, inside)
    request = Request(
        path=path,
        program=program if each else launch(how, program),
        trace=tuple(getattr(one, "trace", ())),
        options=tuple(one.options),
        per_rank=each,
        rank_variable=RANK_VARIABLE.get(how.kind, "RANK"),
        export_here=export_here,
    )
    done = profiler.profile(request)
    if each and done.impossible is None:
        done = Profiled(launch(how, done.command), done.reports, done.after)
    return tool, done


def _each_process(profiler: Profiler, how: Launch, inside: bool | None) -> bool:
    """A profiler for each process? torchrun's processes are its children: one report around it is whole."""
    if how.kind == "none":
        return False
    if profiler.ONE_PROCESS:
        return True
    return how.kind != "torchrun" if inside is None else inside


def _tool(one: Any, facts: SiteFacts, configured: Mapping[str, str]) -> tuple[str, str, str | None]:
    """The pass's tool, its path, and why it cannot be used here (or None)."""
    known = BY_KIND.get(one.kind, ())
    candidates = [t for t in known if one.tool in {"auto", t}]
    reasons = []
    for tool in candidates:
        executable = load(tool).EXECUTABLE
        if executable is None:
            return tool, "", None
        found = configured.get(tool, executable) if facts.tools is None else facts.tools.get(tool)
        if found is not None:
            return tool, found, None
        reasons.append(facts.missing.get(tool, f"{tool} was not found"))
    return one.tool, "", "; ".join(reasons) or "not yet in this version"
