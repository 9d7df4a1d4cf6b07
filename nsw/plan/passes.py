"""One pass of one case -> the command line under its profiler, or why it cannot be had on this site."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.launchers.model import Launch, LayoutError, command_of_rank, command_once_per_node, launch_command
from nsw.metrics import find_chip
from nsw.plan import command as command_words
from nsw.plan import counters as counting
from nsw.plan.command import PYXIS, Box, folder_of_tool, in_container, with_container_env, with_secrets
from nsw.plan.jobs import reduces_in_tasks
from nsw.plan.layout import MAKERS
from nsw.plan.model import Resources, SiteFacts
from nsw.profilers import Profiled, Profiler, Request, load_profiler
from nsw.profilers.cprofile import is_python_interpreter
from nsw.profilers.model import CHOSEN, MACHINERY, NODE_ARCHIVES, NODE_FOLDER, Counting
from nsw.recipe.passes import AUTO, SecondStage, drawn_ranks, is_share, profiler_modules
from nsw.recipe.units import Fault, as_text
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.matrix import Case
    from nsw.recipe.model import Recipe
    from nsw.site.model import Site

__all__ = ["CaseProgram", "profile_pass"]

_RANKS_IN_NOTE = 32


def check_ranks(ranks: str | Sequence[int], launch: Launch, *, each: bool) -> None:
    """See that the named processes can be told from the others.

    Args:
        ranks: `all`, `first`, `node`, a share such as `5%`, or the ranks.
        launch: The launcher.
        each: Whether each of its processes gets a profiler of its own.

    Raises:
        Fault: They cannot, there is no such rank, or nobody knows of how many ranks the share is.
    """
    if ranks == "all":
        return
    total = launch.layout.total
    if is_share(ranks) and total is None:
        message = f"nsw does not know how many processes this launcher starts, of which {ranks} would be drawn"
        raise Fault(message, hint="write a list of ranks")
    missing_ranks = [] if isinstance(ranks, str) or total is None else [r for r in ranks if r >= total]
    if missing_ranks:
        existing = "there is one process, rank 0" if total == 1 else f"the ranks are 0 to {(total or 0) - 1}"
        raise Fault(f"there is no rank {', '.join(map(str, missing_ranks))}: {existing}")
    if not each and launch.kind != "none":
        hint = "leave `ranks` out, or let `app: launcher: profiler: inside` start a profiler for each process"
        raise Fault(f"one profiler runs around all processes of {launch.kind}, so it profiles every rank", hint=hint)


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
    checks: tuple[tuple[str, ...], ...] = ()


def profile_pass(
    pass_: Any, started: CaseProgram, recipe: Recipe, site: Site, facts: SiteFacts, *, chooses: bool = False
) -> tuple[str | None, Profiled]:
    """The tool of a pass and what it makes of the program.

    Args:
        pass_: The recipe's pass.
        started: The program that it measures.
        recipe: The recipe.
        site: The site.
        facts: What the site has.
        chooses: Whether the kernels of a guided pass are chosen from this one.

    Raises:
        Fault: The processes that the pass's `ranks` names cannot be told from the others, or are not there.
    """
    launch, box, program = started.launch, started.box, started.words
    chip = site.gpus.chip or facts.chip
    inside = None if recipe.app.launcher.profiler is None else recipe.app.launcher.profiler == "inside"
    if program and is_python_interpreter(program[0]):
        launch = replace(launch, python=program[0])
        started = replace(started, launch=launch)
    if pass_.kind == "baseline":
        return None, Profiled(_Nest(launch, box, started.secrets).launcher_command("all", program, program))
    if (reason := _no_gpus_reason(pass_, facts, chip)) is not None:
        return pass_.tool, Profiled(impossible=reason)
    # around a launcher, which is no program of the image, is the site's own profiler
    in_image = box is not None and box.profiler_inside and (launch.launcher.in_image or inside is not False)
    tool, path, missing = _find_tool(
        pass_, SiteFacts() if in_image else facts, {} if in_image else dict(site.profilers), chip
    )
    missing = missing or _no_metrics_reason(pass_, tool, site)
    if missing is not None:
        return tool, Profiled(impossible=missing)
    profiler = load_profiler(tool)
    each = _is_each_profiled(profiler, pass_, launch, inside)
    ranks = counting.counted_ranks(pass_, each=each) if pass_.kind == "counters" else pass_.ranks
    check_ranks(ranks, launch, each=each)
    notes: tuple[str, ...] = ()
    if is_share(ranks):
        total = launch.layout.total or 1
        share, ranks = ranks, drawn_ranks(ranks, total, recipe.name)
        several = "ranks" if len(ranks) > 1 else "rank"
        names = first_names([str(rank) for rank in ranks], _RANKS_IN_NOTE)
        notes = (f"{pass_.name}: {share} of {plural(total, 'rank')} profiled: {several} {names}",)
    if pass_.kind == "counters" and (reason := counting.replay_fault(pass_, launch, each=each)) is not None:
        return tool, Profiled(impossible=reason)
    tools = () if in_image else _folders_to_bind(profiler, path, box)
    if tools is None:
        return tool, Profiled(impossible=f"{path} cannot be mounted into the container: {_NOT_BROUGHT}")
    request = replace(
        _tool_request(pass_, tool, chip, chooses=chooses),
        path=path,
        export_here=recipe.collect == "tables",
        reduce_there=reduces_in_tasks(site) and not in_image,
        folder=NODE_FOLDER if recipe.collect == "node" and each and launch.layout.has_ranks and box is None else "",
    )
    hides_secrets = tool in command_words.RECORD_ENVIRONMENT
    done = _nest_profiler(
        started, profiler, request, ranks, hides_secrets=hides_secrets, each=each, in_image=in_image, tools=tools
    )
    if recipe.collect == "node" and launch.layout.has_ranks:
        done = _pack_on_nodes(done, launch, pass_.name)
    return tool, replace(done, notes=(*notes, *done.notes))


def _nest_profiler(
    started: CaseProgram, profiler: Profiler, request: Request, ranks: str | Sequence[int], *,
    hides_secrets: bool, each: bool, in_image: bool, tools: tuple[str, ...],
) -> Profiled:  # fmt: skip
    """What a profiler makes of a program, with launcher, ranks and container in their places.

    Args:
        started: The program.
        profiler: The profiler.
        request: What is asked of it.
        ranks: The processes that are profiled.
        hides_secrets: Whether it starts without the run's secrets, since it would write them into its report.
        each: Whether each process gets one of its own.
        in_image: Whether it is the container's own.
        tools: Its folders that are bound into the container.
    """
    launch, program = started.launch, started.words
    inner, outer = (started.secrets, 0) if hides_secrets else (0, started.secrets)
    nest = _Nest(launch, started.box, outer)
    outermost = not each and not launch.launcher.in_image
    if each:
        program = with_secrets(inner, program)
    words = (
        nest.launcher_command("all", program, program, tools)
        if outermost
        else program
        if each
        else nest.inner_command(program)
    )
    done = profiler.profile(
        replace(
            request,
            program=words if each else with_secrets(inner, words),
            per_rank=(each and launch.layout.has_ranks) or (not each and launch.starts_once_per_node),
            rank_variable="NSW_RANK" if each else "NSW_NODE",
            part="rank" if each else "node",
        )
    )
    if done.impossible is not None or outermost:
        return done
    command = (
        nest.launcher_command(ranks, done.command, program, tools) if each else nest.node_command(done.command, tools)
    )
    after = tuple(nest.in_box(words) for words in done.after) if in_image else done.after
    return replace(done, command=command, after=after)


_START_ELSEWHERE: Final = frozenset({"srun", "aprun", "jsrun"})  # none of their ranks need be where the script runs


def _pack_on_nodes(done: Profiled, launch: Launch, pass_name: str) -> Profiled:
    """The same, whose reports each node packs into one file once its ranks have ended.

    Args:
        done: The program under its profiler.
        launch: How it is started.
        pass_name: The pass, for a note where its reports stay in the run's folder.

    Raises:
        LayoutError: nsw knows no launcher for it on this site.
    """
    if done.impossible is not None:
        return done
    if not any(NODE_FOLDER in word for word in done.command):
        note = f"{pass_name}: `collect: node` packs none of its reports: they are written to the run's folder"
        return replace(done, notes=(note,))
    functions = [*(("in_node_folder", *words) for words in done.after), ("pack", *done.reports)]
    commands = [("bash", MACHINERY, *words) for words in functions]
    nodes = launch.layout.nodes
    if nodes > 1 or launch.kind in _START_ELSEWHERE:
        try:
            commands = [command_once_per_node(launch, words) for words in commands]
        except LayoutError as fault:
            message = f"nsw knows no command of this site that packs reports once on each of {plural(nodes, 'node')}"
            raise LayoutError(("collect",), message, f"{fault.hint}, or `collect: reports`") from None
    return replace(
        done,
        reports=(*done.reports, NODE_ARCHIVES),
        after=tuple(commands),
        before=("nsw_reports_on_nodes", *done.before),
    )


def _tool_request(pass_: Any, tool: str, chip: str | None, *, chooses: bool) -> Request:
    """What the recipe asks of the tool, before it is known where that is and what it starts."""
    counts = None
    if pass_.kind == "counters":
        requested = counting.metric_request(pass_, tool, chip)
        if isinstance(pass_, SecondStage):  # which of them, the first decides
            requested = replace(requested, metrics=(), sections=())
        counts = Counting(requested, pass_, CHOSEN if pass_.is_guided else None)
    return Request(
        path="",
        program=(),
        trace=tuple(getattr(pass_, "trace", ())),
        options=tuple(pass_.options),
        counting=counts,
        report=_timeline_report_kind(pass_, chooses=chooses),
        graph_nodes=chooses,
        record=tuple(getattr(pass_, "record", ())),
        steps=(pass_.steps.skip, pass_.steps.count) if getattr(pass_, "steps", None) is not None else None,
        analysis=getattr(pass_, "analysis", None),
        knobs=tuple((name, as_text(value)) for name, value in getattr(pass_, "knobs", {}).items()),
        gpu_metrics=getattr(pass_, "gpu_metrics", None),
        window=pass_ if pass_.kind == "timeline" and pass_.is_windowed else None,
    )


def _timeline_report_kind(pass_: Any, *, chooses: bool) -> str:
    """What nvprof leaves of a timeline: of one that chooses kernels every launch."""
    report: str = getattr(pass_, "report", "summary")
    return "file" if chooses and report == "summary" else report


_NOT_BROUGHT = "the site's profilers must name the path of one in a folder of its own, such as /opt/TOOL/bin/TOOL"


class _Nest:
    """Nesting order of profiler, launcher, ranks and container.

    A launcher of the image is in the container; others start containers.
    """

    def __init__(self, launch: Launch, box: Box | None, secrets: int) -> None:
        self._launch = launch
        self._box = box
        self._secrets = secrets
        self._outside = not launch.launcher.in_image

    def in_box(self, words: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
        return tuple(words) if self._box is None else in_container(self._box, words, tools)

    def inner_command(self, program: Sequence[str]) -> tuple[str, ...]:
        """What runs in the container when the profiler does not start each process."""
        return (
            tuple(program)
            if self._outside
            else launch_command(self._launch, self._rank_command("all", program, program))
        )

    def launcher_command(
        self, ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str], tools: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """The launcher's processes: those of `ranks` under their profiler, the others alone."""
        if self._outside and self._box is not None and self._box.runtime == PYXIS:
            if self._launch.kind != "srun":
                raise LayoutError(
                    ("app", "launcher"),
                    f"containers of pyxis are started by srun, and {self._launch.kind} is no srun",
                    "write `launcher: {kind: srun}`",
                )
            profiled, program = with_container_env(self._box, profiled), with_container_env(self._box, program)
            return command_words.step_in_containers(
                self._box, launch_command(self._launch, self._rank_command(ranks, profiled, program)), tools
            )
        if self._outside:
            return launch_command(
                self._launch, self._rank_command(ranks, self.in_box(profiled, tools), self.in_box(program, tools))
            )
        return self.node_command(launch_command(self._launch, self._rank_command(ranks, profiled, program)), tools)

    def node_command(self, words: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
        """What starts a node's processes, on each node of the run."""
        if self._box is not None and self._box.runtime == PYXIS and self._launch.starts_once_per_node:
            message = f"{self._launch.kind} over several nodes cannot be started in containers of pyxis"
            raise LayoutError(("app", "launcher"), message, "write `launcher: {kind: srun}`")
        words = self.in_box(words, tools)
        return command_once_per_node(self._launch, words, self._secrets) if self._launch.starts_once_per_node else words

    def _rank_command(
        self, ranks: str | Sequence[int], profiled: Sequence[str], program: Sequence[str]
    ) -> tuple[str, ...]:
        return command_of_rank(ranks, profiled, program) if self._launch.layout.has_ranks else tuple(profiled)


def _folders_to_bind(profiler: Profiler, path: str, box: Box | None) -> tuple[str, ...] | None:
    """Folders of the profiler that must be bound into the container; None when that cannot be done."""
    if box is None or profiler.EXECUTABLE is None:
        return ()
    folder = folder_of_tool(path)
    return None if folder is None else (folder,)


def _is_each_profiled(profiler: Profiler, pass_: Any, launch: Launch, inside: bool | None) -> bool:
    """Whether each process gets a profiler; where processes are a launcher's children, one around it sees all."""
    if launch.kind == "none":
        return False
    if profiler.ONE_PROCESS:
        return True
    if inside is not None:
        return inside
    return not launch.launcher.spawns or (pass_.kind == "counters" and counting.profiles_each_process(pass_, launch))


def _no_metrics_reason(pass_: Any, tool: str, site: Site) -> str | None:
    """Why a timeline with samples of GPU metrics is left out."""
    if getattr(pass_, "gpu_metrics", None) is None:
        return None
    if tool != "nsys":
        return f"{tool} does not sample GPU metrics: `gpu_metrics` needs nsys"
    if site.gpus.no_metrics is not None:
        return f"GPU metrics cannot be sampled here ({site.gpus.no_metrics}): take `gpu_metrics` out of the pass"
    return None


def _no_gpus_reason(pass_: Any, facts: SiteFacts, chip: str | None) -> str | None:
    """Why a pass that measures GPUs is left out on a site whose file says that it has none.

    A timeline whose tool the recipe names is made: nsys records CPUs, NVTX and MPI too. This machine has what it has.
    """
    if facts.tools is not None or facts.gpus_per_node != 0 or chip is not None:
        return None
    if pass_.kind == "counters":
        return "the site has no GPUs; baseline and host passes can be run"
    if pass_.kind == "timeline" and pass_.tool == AUTO:
        alternative = "nsys for what it records of CPUs: `timeline: {tool: nsys}`"
        return f"the site has no GPUs; baseline and host passes can be run, also {alternative}"
    return None


def _find_tool(
    pass_: Any, facts: SiteFacts, configured: Mapping[str, str], chip: str | None
) -> tuple[str, str, str | None]:
    """The pass's tool, its path, and why it cannot be used here (or None)."""
    maker = MAKERS.get((chip or "").lower())
    if maker is not None and pass_.kind in {"timeline", "counters"}:
        reason = f"the site's GPUs are {maker}'s ({chip}), and nsys, ncu and nvprof measure NVIDIA's only"
        return pass_.tool, "", f"{reason}; baseline and host passes can be run"
    candidates = [tool for tool in profiler_modules(pass_.kind) if pass_.tool in {AUTO, tool}]
    if pass_.kind == "counters":
        candidates = list(counting.candidate_tools(pass_, find_chip(chip)))
    reasons: list[str] = []
    for tool in candidates:
        executable = load_profiler(tool).EXECUTABLE
        if executable is None:
            return tool, "", None
        tool_path = configured.get(tool, executable) if facts.tools is None else facts.tools.get(tool)
        if tool_path is None:
            reasons.append(facts.missing.get(tool, f"{tool} was not found"))
        elif (
            pass_.kind == "counters" and (old := counting.unsupported_version_reason(tool, tool_path, chip)) is not None
        ):
            reasons.append(old)
        elif not reasons or facts.tools is not None or tool in configured:  # else nobody says that it is there
            return tool, tool_path, None
    return pass_.tool, "", "; ".join(reasons) or "not yet in this version"
