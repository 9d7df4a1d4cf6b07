"""One pass of one case -> the command line under its profiler, or why it cannot be had on this site."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.metrics import find_chip
from nsw.plan import counters as counting
from nsw.plan.command import RECORD_ENVIRONMENT, Box, boxed, folder_of_tool, with_secrets
from nsw.plan.jobs import are_tasks
from nsw.plan.launchers import Launch, launch, rank_words, start_on_nodes
from nsw.plan.layout import MAKERS
from nsw.plan.model import SiteFacts
from nsw.profilers import Profiled, Profiler, Request, load
from nsw.profilers.cprofile import is_python
from nsw.profilers.model import CHOSEN, Counting
from nsw.recipe.faults import Fault
from nsw.recipe.profiler_names import AUTO, of_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.plan.model import Resources
    from nsw.recipe.matrix import Case
    from nsw.recipe.model import Recipe
    from nsw.recipe.passes import CountersPass
    from nsw.site.model import Site


__all__ = ["CaseProgram", "profiled"]


def check_ranks(ranks: str | Sequence[int], how: Launch, *, each: bool) -> None:
    """See that the named processes can be told from the others.

    Args:
        ranks: `all`, `first`, `node`, or the ranks.
        how: The launcher.
        each: Whether each of its processes gets a profiler of its own.

    Raises:
        Fault: They cannot, or there is no such rank.
    """
    if ranks == "all":
        return
    total = how.layout.total
    beyond = [] if isinstance(ranks, str) or total is None else [r for r in ranks if r >= total]
    if beyond:
        there = "there is one process, rank 0" if total == 1 else f"the ranks are 0 to {(total or 0) - 1}"
        raise Fault(f"there is no rank {', '.join(map(str, beyond))}: {there}")
    if not each and how.kind != "none":
        hint = "leave `ranks` out, or let `app: launcher: profiler: inside` start a profiler for each process"
        raise Fault(f"one profiler runs around all processes of {how.kind}, so it profiles every rank", hint=hint)


@dataclass(frozen=True, slots=True)
class CaseProgram:
    """What all runs of a case have in common: the program, how it is started and on what."""

    case: Case
    needs: Resources
    env: dict[str, str]
    secrets: int  # which of the plan's, counted from 1; 0: none
    words: tuple[str, ...]
    launch: Launch
    app: str
    box: Box | None


def profiled(
    one: Any, started: CaseProgram, recipe: Recipe, site: Site, facts: SiteFacts, *, chooses: bool = False
) -> tuple[str | None, Profiled]:
    """The tool of a pass and what it makes of the program.

    Args:
        one: The recipe's pass.
        started: The program that it measures.
        recipe: The recipe.
        site: The site.
        facts: What the site has.
        chooses: Whether the kernels of a guided pass are chosen from this one.

    Raises:
        Fault: The processes that the pass's `ranks` names cannot be told from the others, or are not there.
    """
    how, box, program = started.launch, started.box, started.words
    chip = site.gpus.chip or facts.chip
    inside = None if recipe.app.launcher.profiler is None else recipe.app.launcher.profiler == "inside"
    if program and is_python(program[0]):
        how = replace(how, python=program[0])
        started = replace(started, launch=how)
    if one.kind == "baseline":
        return None, Profiled(_Nest(how, box, started.secrets).ranks("all", program, program))
    if (why := _no_gpus(one, facts, chip)) is not None:
        return one.tool, Profiled(impossible=why)
    # around a launcher, which is no program of the image, is the site's own profiler
    in_image = box is not None and box.profiler_inside and not (how.kind not in _IN_IMAGE and inside is False)
    tool, path, missing = _tool(one, SiteFacts() if in_image else facts, {} if in_image else dict(site.profilers), chip)
    if missing is not None:
        return tool, Profiled(impossible=missing)
    profiler = load(tool)
    each = _each_process(profiler, one, how, inside)
    ranks = counting.counted_ranks(one, each=each) if one.kind == "counters" else one.ranks
    check_ranks(ranks, how, each=each)
    if one.kind == "counters" and (why := counting.replay_fault(one, how, each=each)) is not None:
        return tool, Profiled(impossible=why)
    tools = () if in_image else _brought_in(profiler, path, box)
    if tools is None:
        return tool, Profiled(impossible=f"{path} cannot be mounted into the container: {_NOT_BROUGHT}")
    request = replace(
        _asked(one, tool, chip, chooses=chooses),
        path=path,
        export_here=recipe.collect == "tables",
        reduce_there=are_tasks(site) and not in_image,
    )
    place = _Place(hides_secrets=tool in RECORD_ENVIRONMENT, each=each, in_image=in_image, tools=tools)
    return tool, _put_around(started, profiler, request, ranks, place)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a profiler is among launcher, container and program.

    Attributes:
        hides_secrets: Whether it starts without the run's secrets, since it would write them into its report.
        each: Whether each process gets one of its own.
        in_image: Whether it is the container's own.
        tools: Its folders that are bound into the container.
    """

    hides_secrets: bool
    each: bool
    in_image: bool
    tools: tuple[str, ...]


def _put_around(
    started: CaseProgram, profiler: Profiler, request: Request, ranks: str | Sequence[int], place: _Place
) -> Profiled:
    """What a profiler makes of a program, with launcher, ranks and container in their places."""
    how, program, each, tools = started.launch, started.words, place.each, place.tools
    inner, outer = (started.secrets, 0) if place.hides_secrets else (0, started.secrets)
    nest = _Nest(how, started.box, outer)
    outermost = not each and how.kind not in _IN_IMAGE
    if each:
        program = with_secrets(inner, program)
    words = nest.ranks("all", program, program, tools) if outermost else program if each else nest.inside(program)
    done = profiler.profile(
        replace(
            request,
            program=words if each else with_secrets(inner, words),
            per_rank=(each and how.layout.has_ranks) or (not each and how.over_nodes),
            rank_variable="NSW_RANK" if each else "NSW_NODE",
            part="rank" if each else "node",
        )
    )
    if done.impossible is not None or outermost:
        return done
    command = nest.ranks(ranks, done.command, program, tools) if each else nest.on_nodes(done.command, tools)
    after = tuple(nest.boxed(words) for words in done.after) if place.in_image else done.after
    return replace(done, command=command, after=after)


def _asked(one: Any, tool: str, chip: str | None, *, chooses: bool) -> Request:
    """What the recipe asks of the tool, before it is known where that is and what it starts."""
    return Request(
        path="",
        program=(),
        trace=tuple(getattr(one, "trace", ())),
        options=tuple(one.options),
        counting=_counting(one, tool, chip) if one.kind == "counters" else None,
        report=_report(one, chooses=chooses),
        graph_nodes=chooses,
        record=tuple(getattr(one, "record", ())),
        steps=(one.steps.skip, one.steps.count) if getattr(one, "steps", None) is not None else None,
        analysis=getattr(one, "analysis", None),
        knobs=tuple((name, _word(value)) for name, value in getattr(one, "knobs", {}).items()),
    )


def _word(value: object) -> str:
    """A setting as a profiler reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counting(one: CountersPass, tool: str, chip: str | None) -> Counting:
    return Counting(counting.requested(one, tool, chip), one, CHOSEN if one.is_guided else None)


def _report(one: Any, *, chooses: bool) -> str:
    """What nvprof leaves of a timeline: of one that chooses kernels every launch."""
    given: str = getattr(one, "report", "summary")
    return "file" if chooses and given == "summary" else given


_NOT_BROUGHT = "the site's profilers must name the path of one in a folder of its own, such as /opt/TOOL/bin/TOOL"


_IN_IMAGE: Final = frozenset({"none", "torchrun"})  # launchers that a container's image has


class _Nest:
    """Nesting order of profiler, launcher, ranks and container.

    torchrun is in the image, and so in the container; other launchers start containers.
    """

    def __init__(self, how: Launch, box: Box | None, secrets: int) -> None:
        self._how = how
        self._box = box
        self._secrets = secrets
        self._outside = how.kind not in _IN_IMAGE

    def boxed(self, words: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
        return tuple(words) if self._box is None else boxed(self._box, words, tools)

    def inside(self, program: Sequence[str]) -> tuple[str, ...]:
        """What runs in the container when the profiler does not start each process."""
        return tuple(program) if self._outside else launch(self._how, self._rank("all", program, program))

    def ranks(
        self, ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str], tools: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """The launcher's processes: those of `ranks` under their profiler, the others alone."""
        if self._outside:
            return launch(self._how, self._rank(ranks, self.boxed(profiled, tools), self.boxed(program, tools)))
        return self.on_nodes(launch(self._how, self._rank(ranks, profiled, program)), tools)

    def on_nodes(self, words: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
        """What starts a node's processes, on each node of the run."""
        words = self.boxed(words, tools)
        return start_on_nodes(self._how, words, self._secrets) if self._how.over_nodes else words

    def _rank(self, ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str]) -> tuple[str, ...]:
        return rank_words(ranks, profiled, program) if self._how.layout.has_ranks else tuple(profiled)


def _brought_in(profiler: Profiler, path: str, box: Box | None) -> tuple[str, ...] | None:
    """Folders of the profiler that must be bound into the container; None when that cannot be done."""
    if box is None or profiler.EXECUTABLE is None:
        return ()
    folder = folder_of_tool(path)
    return None if folder is None else (folder,)


def _each_process(profiler: Profiler, one: Any, how: Launch, inside: bool | None) -> bool:
    """A profiler for each process? torchrun's processes are its children: one report around it is whole."""
    if how.kind == "none":
        return False
    if profiler.ONE_PROCESS:
        return True
    if inside is not None:
        return inside
    return how.kind != "torchrun" or (one.kind == "counters" and counting.starts_each(one, how))


def _no_gpus(one: Any, facts: SiteFacts, chip: str | None) -> str | None:
    """Why a pass that measures GPUs is left out on a site whose file says that it has none.

    A timeline whose tool the recipe names is made: nsys records CPUs, NVTX and MPI too. This machine has what it has.
    """
    if facts.tools is not None or facts.gpus_per_node != 0 or chip is not None:
        return None
    if one.kind == "counters":
        return "the site has no GPUs; baseline and host passes can be run"
    if one.kind == "timeline" and one.tool == AUTO:
        named = "nsys for what it records of CPUs: `timeline: {tool: nsys}`"
        return f"the site has no GPUs; baseline and host passes can be run, also {named}"
    return None


def _tool(one: Any, facts: SiteFacts, configured: Mapping[str, str], chip: str | None) -> tuple[str, str, str | None]:
    """The pass's tool, its path, and why it cannot be used here (or None)."""
    maker = MAKERS.get((chip or "").lower())
    if maker is not None and one.kind in {"timeline", "counters"}:
        why = f"the site's GPUs are {maker}'s ({chip}), and nsys, ncu and nvprof measure NVIDIA's only"
        return one.tool, "", f"{why}; baseline and host passes can be run"
    candidates = [tool for tool in of_kind(one.kind) if one.tool in {AUTO, tool}]
    if one.kind == "counters":
        candidates = list(counting.tools(one, find_chip(chip)))
    reasons: list[str] = []
    for tool in candidates:
        executable = load(tool).EXECUTABLE
        if executable is None:
            return tool, "", None
        found = configured.get(tool, executable) if facts.tools is None else facts.tools.get(tool)
        if found is None:
            reasons.append(facts.missing.get(tool, f"{tool} was not found"))
        elif one.kind == "counters" and (old := counting.dropped(tool, found, chip)) is not None:
            reasons.append(old)
        elif not reasons or facts.tools is not None or tool in configured:  # else nobody says that it is there
            return tool, found, None
    return one.tool, "", "; ".join(reasons) or "not yet in this version"
