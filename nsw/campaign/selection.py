"""Campaigns and runs as a person names them: an id or part of it, a case, parameters, a pass, a pattern, a job id."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger_rows import BAD, BuildRow, RunRow, State
from nsw.errors import CampaignError, NswError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger

__all__ = [
    "RunsOption",
    "Selection",
    "absent_reports",
    "brief_campaign_argument",
    "campaign_and_runs",
    "campaign_argument",
    "campaign_of_words",
    "campaign_option",
    "complete_names",
    "default_run",
    "find_run",
    "job_ids",
    "matching_rows",
    "recipe_argument",
    "require_matches",
    "selected",
]

T = TypeVar("T", RunRow, RunRow | BuildRow)
_PATTERN: Final = re.compile(r"[*?\[]")
_HAVE: Final = "a case, its parameters (gpus=2), a pass, a run, a pattern or a job id; `nsw status --runs` lists them"
_CHOICES: Final = 8


@dataclass(frozen=True, slots=True)
class Selection:
    """What a command line says of runs; nothing: all of them.

    Attributes:
        only: Words for the runs that are meant; those with one parameter each (gpus=1) must all hold.
        without: Words for those that are not.
    """

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.only or self.without)

    @property
    def options(self) -> str:
        """The options that say it again, for a command that is printed; empty: all runs."""
        words = [("--case", word) for word in self.only] + [("--exclude", word) for word in self.without]
        return "".join(f" {option} {shlex.quote(word)}" for option, word in words)


# what a command line says of a campaign: the first word, that of -c, the folder of campaigns, the runs
RunsOption: TypeAlias = tuple[str | None, str | None, Path | None, Selection]


def job_ids(ledger: Ledger, runs: Iterable[RunRow | BuildRow]) -> dict[str, str]:
    """The scheduler's job id of each run or build that has one, by its id; on this machine none has.

    It is what squeue, seff and a help desk are asked with.
    """
    from nsw.schedulers.create import adapter_of

    adapter = adapter_of(ledger.site().get("scheduler", "local"))
    if adapter is None:
        return {}
    from nsw.schedulers.model import Native

    natives = ledger.native_ids()
    natives_of_runs = ((run, Native.parse(natives.get(run.submission or ""))) for run in runs)
    return {run.id: adapter.job_of(native, run.task) for run, native in natives_of_runs if native is not None}


def selected(ledger: Ledger, rows: Sequence[T], selection: Selection) -> list[T]:
    """Return the rows that a selection names, in their order.

    Args:
        ledger: The campaign's ledger, for the job ids.
        rows: The rows to choose from.
        selection: What `--case` and `--exclude` name; empty: all rows.

    Raises:
        UsageError: A word names none, or nothing is left.
    """
    if not selection:
        return list(rows)
    jobs = job_ids(ledger, rows)
    for word in selection.only:
        require_matches("--case", word, rows, jobs, part=False)
    only = {row.id for word in _merge_parameter_words(selection.only) for row in matching_rows(word, rows, jobs)}
    without = {
        row.id for word in selection.without for row in require_matches("--exclude", word, rows, jobs, part=False)
    }
    chosen = [row for row in rows if (not selection.only or row.id in only) and row.id not in without]
    if not chosen:
        raise UsageError("--case and --exclude leave no run")
    return chosen


def require_matches(
    option: str, word: str, rows: Sequence[T], jobs: Mapping[str, str], *, part: bool = True
) -> list[T]:
    """Return the rows that a word names.

    Args:
        option: The option that has the word, for the error message.
        word: A run, case, pass, job id, parameters or a pattern.
        rows: The rows to choose from.
        jobs: The scheduler's job id of each row, by row id.
        part: Whether a part of an id names all rows that contain it.

    Raises:
        UsageError: The word names none.
    """
    runs = matching_rows(word, rows, jobs) or [row for row in rows if part and word in row.id]
    if not runs:
        raise UsageError(f"{option} {word}: no run matches", hint=_nearest_names(word, rows))
    return runs


def _nearest_names(word: str, rows: Sequence[RunRow | BuildRow]) -> str:
    from nsw.recipe.load import unmatched_parameters  # here: most looks at a campaign need nothing of recipes

    cases = {row.case_id: row.params for row in rows if isinstance(row, RunRow)}
    names = [*cases, *(row.id for row in rows)]
    parameters = [item for params in cases.values() for item in params.items()]
    by_value = dict.fromkeys(f"{name}={value}" for name, value in parameters if str(value) == word)
    by_value_hint = f"did you mean {' or '.join(by_value)}?" if by_value else None
    return unmatched_parameters(word, cases.values()) or by_value_hint or did_you_mean(word, names) or _HAVE


def matching_rows(word: str, rows: Sequence[T], jobs: Mapping[str, str]) -> list[T]:
    """The runs that a word names: the run, else the case, the pass, the job, what has the parameters or fits.

    Args:
        word: As it was typed.
        rows: Runs, or runs and builds.
        jobs: The scheduler's job id of each that has one.
    """
    tests: tuple[Callable[[RunRow | BuildRow], bool], ...] = (
        lambda row: row.id == word,
        lambda row: isinstance(row, RunRow) and row.case_id == word,
        lambda row: isinstance(row, RunRow) and row.pass_name == word,
        lambda row: _matches_job_id(jobs.get(row.id, ""), word),
        lambda row: "=" in word and isinstance(row, RunRow) and _matches_parameters(row, word),
        lambda row: _PATTERN.search(word) is not None and _matches_pattern(row, word),
    )
    return next((runs for test in tests if (runs := [row for row in rows if test(row)])), [])


def _merge_parameter_words(words: Sequence[str]) -> Sequence[str]:
    from nsw.recipe.load import join_parameter_words  # here: most looks at a campaign need nothing of recipes

    return join_parameter_words(words) if len(words) > 1 else words


def _matches_parameters(row: RunRow, word: str) -> bool:
    from nsw.recipe.load import fits_parameters  # here: most looks at a campaign need nothing of recipes

    return fits_parameters(row.case_id, row.params, word)


def _matches_pattern(row: RunRow | BuildRow, pattern: str) -> bool:
    return fnmatchcase(row.id, pattern) or (isinstance(row, RunRow) and fnmatchcase(row.case_id, pattern))


def _matches_job_id(job: str, word: str) -> bool:
    """Whether a word is this job's id or that of the array which it is a task of: 12 of 12_3, 12[3].host."""
    rest = job.removeprefix(word)
    return word[:1].isdigit() and rest != job and not rest[:1].isalnum()


def find_run(rows: Sequence[T], word: str) -> T:
    """The run of that id, or the only one that has it as a part.

    Raises:
        UsageError: There is none, or several have it.
    """
    matches = [row for row in rows if row.id == word] or [row for row in rows if word in row.id]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        hint = did_you_mean(word, [row.id for row in rows]) or "`nsw status --runs` lists them"
        raise UsageError(f"there is no run {word}", hint=hint)
    kind = "builds" if all(isinstance(row, BuildRow) for row in matches) else "runs"
    raise UsageError(f"'{word}' matches {len(matches)} {kind}", hint=_choices_hint(matches))


def default_run(rows: Sequence[T], *, follow: bool = False) -> T:
    """Where none is named: the only one that failed or was lost, else that runs, or the only one at all.

    Args:
        rows: Those to choose from.
        follow: Whether it is to be followed: one that runs is meant rather than one that failed.

    Raises:
        UsageError: There are several.
    """
    bad = [row for row in rows if row.state in BAD]
    running = [row for row in rows if row.state is State.RUNNING]
    candidates = (running or bad if follow else bad or running) or rows
    if len(candidates) == 1:
        return candidates[0]
    situation = f"there are {len(rows)}"
    if candidates is not rows:
        situation = f"{len(candidates)} run now" if candidates is running else f"{len(candidates)} failed or were lost"
    raise UsageError(f"which run? {situation}", hint=_choices_hint(candidates))


def _choices_hint(rows: Sequence[RunRow | BuildRow]) -> str:
    """The names to choose from, with their states; failed ones first."""
    rows = sorted(rows, key=lambda row: row.state not in BAD)
    lines = [f"\n    {row.id}  {row.state}" for row in rows[:_CHOICES]]
    omitted = len(rows) - _CHOICES
    return "name one of them:" + "".join(lines) + (f"\n    ... and {omitted} more" if omitted > 0 else "")


def campaign_and_runs(option_values: RunsOption) -> tuple[CampaignFolder, Selection]:
    """The campaign, and the runs of it that are meant: a first word that is no campaign may name runs.

    Raises:
        UsageError: It names no runs of the campaign of -c.
        CampaignError: There is no such campaign, and no such run in the newest.
    """
    word, option, root, selection = option_values
    parent = folders.root(root)
    if word is None or word == option:
        return folders.find(parent, option), selection
    error: NswError = UsageError(
        f"two campaigns are named: {word} and {option}",
        hint=f"{word} is not a run, case, pattern or job of {option} either",
    )
    if option is None:
        try:
            return folders.find(parent, word), selection
        except CampaignError as fault:
            if Path(word).is_dir():
                raise
            error = fault
    try:
        folder = folders.find(parent, option)
    except CampaignError:
        raise error from None
    with ledger_to_read(folder) as ledger:
        runs = ledger.runs()
        if matching_rows(word, runs, job_ids(ledger, runs)):
            return folder, replace(selection, only=(*selection.only, word))
    if option is None and str(error).startswith("no campaign"):
        message = f"{error}, and no run, case, pattern or job of the newest one there, {folder.id}"
        raise UsageError(message, hint=error.hint) from None
    raise error


def campaign_of_words(words: Sequence[str], option: str | None, root: Path | None) -> tuple[CampaignFolder, list[str]]:
    """Return the campaign, and the words that name its runs.

    A first word that fits no run of the newest campaign may name a campaign.

    Args:
        words: The words of the command line.
        option: The campaign that `-c` names; None: the newest.
        root: The folder of campaigns; None: NSW_ROOT or ./campaigns.

    Raises:
        CampaignError: There is no such campaign.
        UsageError: A word names neither a run of it nor a campaign.
    """
    parent = folders.root(root)
    folder = folders.find(parent, option)
    if not words:
        return folder, []
    with ledger_to_read(folder) as ledger:
        rows: list[RunRow | BuildRow] = [*ledger.builds(), *ledger.runs()]
        jobs = job_ids(ledger, rows)
        rows += ledger.reductions()
    unmatched = [word for word in words if not (any(word in row.id for row in rows) or matching_rows(word, rows, jobs))]
    if not unmatched:
        return folder, list(words)
    if option is None and unmatched[0] == words[0]:
        try:
            return folders.find(parent, words[0]), list(words[1:])
        except CampaignError:
            pass
    near = did_you_mean(unmatched[0], [row.id for row in rows])
    raise UsageError(
        f"there is no run {unmatched[0]} in {folder.id}" + (", the newest campaign" if option is None else ""),
        hint=_hint_for_path(unmatched[0], parent)
        or near
        or f"`nsw status --runs -c {campaign_argument(folder)}` lists them; `-c` names another campaign",
    )


def _hint_for_path(word: str, parent: Path) -> str | None:
    """The hint for a path inside a campaign; None for other paths."""
    for folder in folders.existing(parent):
        try:
            inside = Path(word).resolve().relative_to(folder.path.resolve()).parts
        except (OSError, ValueError):
            continue
        run = next((name for parent_name, name in pairwise(inside) if parent_name in {"reports", "runs"}), None)
        name = campaign_argument(folder)
        lists = f"`nsw status --runs -c {name}` lists those of that campaign"
        return f"a run is named by its id, not by a path: {f'{run} -c {name}' if run else lists}"
    return None


def campaign_argument(folder: CampaignFolder) -> str:
    """How a hint names a campaign: by its id where the next command looks for it there, else by its path."""
    path, working_folder = folder.path, Path.cwd()
    if folder.is_copy or path.parent.resolve() == folders.root(None).resolve():
        return folder.id
    return shlex.quote(
        str(path.relative_to(working_folder) if path.is_absolute() and path.is_relative_to(working_folder) else path)
    )


def brief_campaign_argument(folder: CampaignFolder) -> str:
    """How the commands of a screen name a campaign: by its name, where no other id begins so, else as in a hint."""
    argument, name = campaign_argument(folder), folder.id.rsplit("-", 3)[0]
    if argument != folder.id or folder.is_copy:
        return argument
    ids = [campaign.id for campaign in folders.existing(folders.root(None)) if campaign.id.startswith(name)]
    return name if ids == [folder.id] else argument


def recipe_argument(folder: CampaignFolder) -> str:
    """How a hint names the recipe of a campaign."""
    return folder.recipe.name if folder.is_copy else shlex.quote(str(folder.recipe))


def campaign_option(folder: CampaignFolder) -> str:
    """What a command in a hint needs to find a campaign: nothing for the one that is meant where none is named."""
    try:
        default_path = folders.find(folders.root(None), None).path.resolve()
    except CampaignError:
        default_path = None
    return "" if default_path == folder.path.resolve() else f" -c {campaign_argument(folder)}"


def absent_reports(folder: CampaignFolder) -> tuple[str, str]:
    """Return why a campaign has no report here, as a sentence without its end, and what to do."""
    from nsw.engine.recipe_lock import locked_recipe  # a status needs no recipe, which loads slowly

    left = ": `collect: tables` leaves them on the site" if locked_recipe(folder).collect == "tables" else ""
    fetch = f"`nsw fetch{campaign_option(folder)}` downloads those that are still on the site, for `nsw read FILE`"
    name = campaign_argument(folder)
    works = f"`nsw summarize {name}` and `nsw report {name}` need the tables alone"
    return f"no report of campaign {folder.id} is here{left}", f"{fetch}; {works}"


def complete_names(
    parent: Path, campaign: str | None, kind: Literal["run", "retry", "case"], prefix: str, *, limit: int
) -> list[str]:
    """Return names of runs or cases that begin with a prefix, for shell completion.

    Of a campaign that was made elsewhere there are none.

    Args:
        parent: The folder of campaigns.
        campaign: The campaign's folder, id or a beginning of it; None: the newest.
        kind: `run`, `case`, or `retry` for runs that may be retried; `run` adds all builds.
        prefix: What was typed.
        limit: The most runs or cases to return.

    Raises:
        CampaignError: There is no such campaign.
    """
    folder = folders.find(parent, campaign)
    if not folder.trusted:
        return []
    with ledger_to_read(folder) as ledger:
        if kind == "case":
            return ledger.names(prefix, limit, column="case_id")
        if kind == "retry":
            return ledger.names(prefix, limit, states=(*BAD, State.CANCELLED))
        return [*(build.id for build in ledger.builds()), *ledger.names(prefix, limit)]
