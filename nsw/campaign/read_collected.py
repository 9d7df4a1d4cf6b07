"""Read collected reports into the campaign's tables, as its recipe and site ask."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow
    from nsw.readers.model import Options
    from nsw.recipe.model import Recipe


def read_reports(folder: CampaignFolder, ledger: Ledger, progress: Callable[[int, int], object]) -> None:
    """Read every report that was collected and not read yet; `progress` is called with (done, total) runs."""
    for done, total in reading(folder, ledger):
        progress(done, total)


def reading(folder: CampaignFolder, ledger: Ledger) -> Generator[tuple[int, int]]:
    """The same a run at a time: yields (done, total) runs."""
    from functools import partial

    from nsw.campaign.reading import read_each
    from nsw.campaign.requested_vs_measured import checker
    from nsw.plan.counters import expected_ranks
    from nsw.readers.messages_in_output import said_in
    from nsw.readers.program_figures import figures
    from nsw.readers.read_many import read_many

    recipe = recipe_of(folder)
    read_files = partial(read_many, options=options_of(recipe, ledger))
    wanted = recipe.app.figures
    required = [name for name, figure in wanted.items() if figure.required]
    yield from read_each(
        folder, ledger, read_files, lambda output: figures(output, wanted), said_in, required,
        checker(folder, ledger, recipe), lambda run, landed: expected_ranks(recipe, run.pass_name, landed.local_ranks),
    )  # fmt: skip


def options_of(recipe: Recipe, ledger: Ledger) -> Options:
    """How the campaign's reports are read."""
    from nsw.readers.model import Options

    steps = recipe.report.steps
    nsys = (ledger.site().get("profilers") or {}).get("nsys")
    return Options(nsys=nsys, steps=steps.nvtx, warmup=steps.warmup)


def read_trace(folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow], name: str) -> list[dict[str, Any]]:
    """The rows of a trace, from the collected reports of these runs; nothing is written."""
    from dataclasses import replace
    from functools import partial

    from nsw.campaign.owning_user import owner_if_other
    from nsw.campaign.reading import read_table
    from nsw.readers.read_many import read_many

    options = replace(options_of(recipe_of(folder), ledger), tables=frozenset({name}), max_unpacked=folder.max_unpacked)
    if owner_if_other(folder.path):  # the program that another user's campaign names is not run
        options = replace(options, nsys=None)
    return read_table(folder, runs, name, partial(read_many, options=options))


def fault_of(folder: CampaignFolder, ledger: Ledger, run: RunRow, progress: Callable[[int, int], object]) -> str | None:
    """Read what a run left; what is wrong with it, or None: the canary's question."""
    from nsw.campaign.reading import load_rows

    read_reports(folder, ledger, progress)
    wrong = [message for id_, _, severity, message, _ in ledger.problems() if id_ == run.id and severity == "error"]
    kind = run.pass_kind
    if (
        not wrong
        and kind == "counters"
        and run.repeat
        and not any(r["run"] == run.id for r in load_rows(folder, "metrics"))
    ):
        wrong = ["its report holds no metric: did the kernel filter match anything?"]
    return "; ".join(wrong) or None


def recipe_of(folder: CampaignFolder) -> Recipe:
    """The recipe that the campaign carried out; the files that it names are not looked for."""
    from nsw.campaign.recipe_lock import locked_text

    return _parsed(locked_text(folder), str(folder.recipe))


@lru_cache(maxsize=4)
def _parsed(text: str, file: str) -> Recipe:
    """A recipe, which nothing changes once it is validated: every choice of a campaign asks for it again."""
    from nsw.recipe.load import load_recipe_text

    return load_recipe_text(text, file).recipe
