"""Choose kernels and launches for a guided counters pass from the timeline of the same case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.errors import NswError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_needs import Choice
    from nsw.campaign.rows import RunRow
    from nsw.recipe.counters import CountersPass
    from nsw.recipe.model import Steps

_TRACE = "gpu_trace"


def chooser(
    folder: CampaignFolder, ledger: Ledger, say: Callable[[str], None]
) -> Callable[[RunRow, Sequence[RunRow]], Choice | str]:
    """The function that decides for the campaign's guided runs: a choice, or why there is none.

    Args:
        folder: The campaign's folder.
        ledger: Its ledger.
        say: Called with a line for people on each choice.
    """

    def choose(run: RunRow, sources: Sequence[RunRow]) -> Choice | str:
        from nsw.analysis.guided import NothingMatched
        from nsw.analysis.guided import choose as choose_launches
        from nsw.campaign.ledger_needs import Choice
        from nsw.plan.counting import counting
        from nsw.profilers.nvprof import measured
        from nsw.recipe.load import load_recipe

        source = sources[0]
        one = _pass_of(folder, run)
        tool = run.tool or "ncu"
        chip = ledger.site().get("gpus", {}).get("chip")
        try:
            nsys = (ledger.site().get("profilers") or {}).get("nsys")
            trace = _kernels(folder.reports / source.id, load_recipe(folder.recipe).recipe.report.steps, nsys)
            what = measured(counting(one, tool, chip)) if tool == "nvprof" else ()
            found = choose_launches(trace, asked(one), tool, what)
        except NothingMatched as fault:
            return f"{fault} (of {source.id})"
        say(f"chosen    {run.id} from {source.id}: {found.note}")
        return Choice(found.arguments, None, source.id, f"{found.note}: {', '.join(found.kernels)}")

    return choose


def asked(one: CountersPass) -> Any:
    """What a pass says of kernels and launches."""
    from nsw.analysis.guided import Asked
    from nsw.plan.counting import left_out

    kernels, launches = one.kernels, one.launches
    return Asked(
        tuple(kernels.names or ()), kernels.regex, left_out(one), kernels.cover, kernels.top, kernels.at_most,
        launches.sample, launches.warmup or 0,
    )  # fmt: skip


def _pass_of(folder: CampaignFolder, run: RunRow) -> CountersPass:
    from nsw.recipe.counters import CountersPass
    from nsw.recipe.load import load_recipe

    passes = load_recipe(folder.recipe).recipe.passes
    found = next((one for one in passes if one.name == run.pass_name and isinstance(one, CountersPass)), None)
    if found is None:
        raise NswError(f"{folder.recipe} has no counters pass {run.pass_name}")
    return found


def _kernels(home: Path, steps: Steps | None = None, nsys: str | None = None) -> list[dict[str, Any]]:
    """The kernels of the process that is profiled: of rank 0, else of the first GPU, else of the first process.

    Args:
        home: The folder of the timeline's run.
        steps: What the recipe says of the program's iterations.
        nsys: The site's nsys, used when it is here too.

    Raises:
        NswError: No report there holds a trace.
    """
    from nsw.profilers.beside import parts
    from nsw.readers.detect import read
    from nsw.readers.model import Options
    from nsw.tables import rows

    there = sorted(p for p in home.iterdir() if p.name.startswith("timeline"))
    first = [p for p in there if ".rank0." in p.name] or there
    for file in [home / name for name in parts(p.name for p in first)]:
        chosen = Options(
            tables=frozenset({_TRACE}), nsys=nsys, steps=steps.nvtx if steps else None,
            warmup=steps.warmup if steps else None,
        )  # fmt: skip
        report = read(file, chosen)
        trace = [row for row in rows(_TRACE, report.tables.get(_TRACE, [])) if row.get("kind") == "kernel"]
        if trace:
            device = min(row.get("device") or 0 for row in trace)
            of_device = [row for row in trace if (row.get("device") or 0) == device]
            process = of_device[0].get("pid")
            return [row for row in of_device if row.get("pid") == process]
    raise NswError(f"no report in {home} holds the launches of kernels, from which counters are chosen")
