"""Runs as a person names them: a run, a case, its parameters, a pass, a pattern, a job id, a part of an id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeVar

from nsw.campaign.ledger_rows import BuildRow, RunRow
from nsw.errors import UsageError, did_you_mean
from nsw.schedulers.create import adapter_of
from nsw.schedulers.model import Native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.campaign.ledger import Ledger

T = TypeVar("T", RunRow, RunRow | BuildRow)
_PATTERN: Final = re.compile(r"[*?\[]")
_HAVE: Final = "a case, its parameters (gpus=2), a pass, a run, a pattern or a job id; `nsw status --runs` lists them"


def job_ids(ledger: Ledger, runs: Iterable[RunRow | BuildRow]) -> dict[str, str]:
    """The scheduler's job id of each run or build that has one, by its id; on this machine none has."""
    site = ledger.site()
    adapter = adapter_of(site.get("scheduler", "local"))
    if adapter is None:
        return {}
    natives = ledger.native_ids()
    known = ((run, Native.parse(natives.get(run.submission or ""))) for run in runs)
    return {run.id: adapter.job_of(native, run.task) for run, native in known if native is not None}


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


def selected(ledger: Ledger, rows: Sequence[T], selection: Selection) -> list[T]:
    """The runs that are meant, in their order.

    Raises:
        UsageError: A word names none, or nothing is left.
    """
    if not selection:
        return list(rows)
    jobs = job_ids(ledger, rows)
    for word in selection.only:
        needed("--case", word, rows, jobs, part=False)
    only = {row.id for word in _all_of_parameters(selection.only) for row in named(word, rows, jobs)}
    without = {row.id for word in selection.without for row in needed("--exclude", word, rows, jobs, part=False)}
    kept = [row for row in rows if (not selection.only or row.id in only) and row.id not in without]
    if not kept:
        raise UsageError("--case and --exclude leave no run")
    return kept


def needed(option: str, word: str, rows: Sequence[T], jobs: Mapping[str, str], *, part: bool = True) -> list[T]:
    """The runs that a word names; with `part` of a part of an id all that have it.

    Raises:
        UsageError: There is none; `option` is where the word is.
    """
    found = named(word, rows, jobs) or [row for row in rows if part and word in row.id]
    if not found:
        known = [*dict.fromkeys(row.case_id for row in rows if isinstance(row, RunRow)), *(row.id for row in rows)]
        hint = did_you_mean(word, known) or _HAVE
        raise UsageError(f"{option} {word}: no run matches", hint=hint)
    return found


def named(word: str, rows: Sequence[T], jobs: Mapping[str, str]) -> list[T]:
    """The runs that a word names: the run, else the case, the pass, the job, what has the parameters or fits.

    Args:
        word: As it was typed.
        rows: Runs, or runs and builds.
        jobs: The scheduler's job id of each that has one.
    """
    ways: tuple[Callable[[RunRow | BuildRow], bool], ...] = (
        lambda row: row.id == word,
        lambda row: isinstance(row, RunRow) and row.case_id == word,
        lambda row: isinstance(row, RunRow) and row.pass_name == word,
        lambda row: _is_job(jobs.get(row.id, ""), word),
        lambda row: "=" in word and isinstance(row, RunRow) and _has_parameters(row, word),
        lambda row: _PATTERN.search(word) is not None and _fits(row, word),
    )
    return next((found for way in ways if (found := [row for row in rows if way(row)])), [])


def _all_of_parameters(words: Sequence[str]) -> Sequence[str]:
    from nsw.recipe.overrides import all_of_parameters  # here: most looks at a campaign need nothing of recipes

    return all_of_parameters(words) if len(words) > 1 else words


def _has_parameters(row: RunRow, word: str) -> bool:
    from nsw.recipe.overrides import fits_parameters  # here: most looks at a campaign need nothing of recipes

    return fits_parameters(row.case_id, row.params, word)


def _fits(row: RunRow | BuildRow, pattern: str) -> bool:
    return fnmatchcase(row.id, pattern) or (isinstance(row, RunRow) and fnmatchcase(row.case_id, pattern))


def _is_job(job: str, word: str) -> bool:
    """Whether a word is this job's id or that of the array which it is a task of: 12 of 12_3, 12[3].host."""
    rest = job.removeprefix(word)
    return word[:1].isdigit() and rest != job and not rest[:1].isalnum()
