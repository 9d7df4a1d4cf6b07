"""Versions of a campaign's program: which run was done with which, and what has changed where the files came from.

A campaign runs the copies that it made. `retry --update-app` and `run --into` copy the program again, so that one
campaign can hold runs of several versions: their numbers may not be comparable. Who mends the program and retries
without that must hear that the old one is run.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.selection import campaign_argument, recipe_argument
from nsw.engine.folder import PROGRAM, CampaignFolder
from nsw.engine.ledger_rows import APP_FOLDER, ORIGINS, RECIPE, VERSIONS, RunRow, State
from nsw.errors import UsageError
from nsw.quantities import format_moment
from nsw.safe_files import changed_names, files_in, hash_of, hashes
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.blocks import Finding
    from nsw.engine.ledger import Ledger

__all__ = [
    "Version",
    "changed_program_warning",
    "hashes_of_origins",
    "record_version",
    "sources_of_app_files",
    "version_findings",
    "version_problems",
    "versions_of",
]

_CHANGED: Final = 3  # files in a message
_FILES_IN_NAME: Final = 2  # files in the name of a version, cases beside it
_DIGITS: Final = 12  # of a hash
_BEFORE: Final = "app.before/"  # how names of files of the side before begin
_GENERATED: Final = frozenset({"__pycache__", ".git"})  # what comes into being by itself


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the program.

    Attributes:
        files: The application's files by name, with their SHA-256.
        build: Counts the builds of these same files with different commands, from 0.
        since: When the campaign copied it, in Unix seconds.
        runs: The runs that have it.
    """

    files: Mapping[str, str]
    build: int
    since: float
    runs: tuple[RunRow, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of its runs."""
        return tuple(dict.fromkeys(run.case_id for run in self.runs))


def record_version(ledger: Ledger, home: Path, app: str, jobs: Sequence[str], *, copied: bool) -> None:
    """Record which version of the program new jobs run; call it before APP_FOLDER changes.

    Args:
        ledger: The campaign's ledger.
        home: The campaign's folder.
        app: The folder in it that holds the program of the new jobs.
        jobs: The names of the new jobs.
        copied: Whether the program was copied again, which makes a new version.
    """
    recorded = ledger.meta(VERSIONS)
    if not recorded:
        recorded = [(_program_hashes(home, ledger.meta(APP_FOLDER)), 0, ledger.created(), [])]
    if copied:
        files, (before, build, _, _) = _program_hashes(home, app), recorded[-1]
        # with the same files the command that builds them is a different one
        recorded.append((files, build + 1 if files == before else 0, time.time(), list(jobs)))
    else:
        recorded[-1][3].extend(jobs)
    ledger.set_meta(VERSIONS, recorded)


def _program_hashes(home: Path, app: str) -> dict[str, str]:
    """The files of a copy of the program, and of that of the side before, named as `Plan.sources` does."""
    return hashes([(home / app, ""), (home / f"{app}.before", _BEFORE.rstrip("/"))])


def versions_of(ledger: Ledger, runs: Sequence[RunRow], *, before: bool | None = None) -> list[Version]:
    """Return the versions of the program with their runs, oldest first; [] where it was never copied again.

    Where files return to an earlier state, they are the earlier version.

    Args:
        ledger: The campaign's ledger.
        runs: The campaign's runs.
        before: Count only files of the side before (True) or only the others (False); None: all.
    """
    recorded = ledger.meta(VERSIONS)
    of_job = {job: n for n, (_, _, _, jobs) in enumerate(recorded) for job in jobs}
    versions: dict[tuple[Any, ...], Version] = {}
    for n, (copied, build, since, _) in enumerate(recorded):
        files = {k: v for k, v in copied.items() if before is None or k.startswith(_BEFORE) == before}
        key = (*sorted(files.items()), build)
        own_runs = tuple(run for run in runs if of_job.get(run.job, 0) == n)
        previous = versions.pop(key, None)  # the newest comes last
        versions[key] = Version(
            files, build, previous.since if previous else since, (*(previous.runs if previous else ()), *own_runs)
        )
    return list(versions.values())


def _versions_with_done_runs(ledger: Ledger) -> Iterator[list[tuple[str, Version]]]:
    """For each side, the versions that have done runs; each with its name and since when it is used."""
    done = ledger.runs(states=[State.DONE])
    for before in (False, True):
        runs = [run for run in done if _is_of_side_before(run) == before]
        yield _named_versions([version for version in versions_of(ledger, runs, before=before) if version.runs])


def _is_of_side_before(run: RunRow) -> bool:
    match = PROGRAM.match(run.app or "")
    return match is not None and match[2] is not None


def _named_versions(done: Sequence[Version]) -> list[tuple[str, Version]]:
    names = sorted({name for version in done for name in version.files})
    changed = [name for name in names if len({version.files.get(name) for version in done}) > 1]
    return [(f"{_version_name(version, changed)} (since {format_moment(version.since)})", version) for version in done]


def _version_name(version: Version, changed: Sequence[str]) -> str:
    """`train.py 3f2a1b0c9d8e`: the files that differ between the versions, with the beginning of their hashes."""
    if not version.files:
        return "an unknown version"
    if not changed:
        return f"build {version.build + 1}"
    return first_names([f"{name} {version.files.get(name, 'absent')[:_DIGITS]}" for name in changed], _FILES_IN_NAME)


def version_problems(folder: CampaignFolder, ledger: Ledger) -> list[tuple[str, str | None, str, str, str | None]]:
    """A warning for each run of an older version: (run, report, severity, message, what to do)."""
    return [
        (run.id, None, "warning", f"done with an older version of the program, {name}; the newest is {done[-1][0]}",
         _rerun_hint(folder))
        for done in _versions_with_done_runs(ledger) for name, version in done[:-1] for run in version.runs
    ]  # fmt: skip


def version_findings(folder: CampaignFolder, ledger: Ledger) -> list[Finding]:
    """What a reader must know of numbers of several versions: one sentence, and one a case that mixes them."""
    return [
        finding
        for done in _versions_with_done_runs(ledger)
        if len(done) > 1
        for finding in _mixed_version_findings(folder, done)
    ]


def _mixed_version_findings(folder: CampaignFolder, done: Sequence[tuple[str, Version]]) -> list[Finding]:
    listing = "; ".join(f"{name} in {first_names(version.cases, _FILES_IN_NAME)}" for name, version in done)
    cases = tuple(dict.fromkeys(case for _, version in done for case in version.cases))
    sentence = f"The numbers are of {len(done)} versions of the program: {listing}. Compare cases of one version only;"
    sentences = [_versions_finding(f"{sentence} {_rerun_hint(folder)}.", cases)]
    for case in cases:
        mixed = [name for name, version in done if case in version.cases]
        if len(mixed) > 1:
            listing = ", ".join(mixed)
            sentences.append(
                _versions_finding(
                    f"In {case} runs of {len(mixed)} versions of the program are mixed: {listing}.", (case,)
                )
            )
    return sentences


def _versions_finding(text: str, cases: tuple[str, ...]) -> Finding:
    from nsw.analysis.blocks import Evidence, Finding  # here: `nsw status` has nothing to analyse

    return Finding("program_versions", text=text, evidence=(Evidence("runs", cases),))


def _rerun_hint(folder: CampaignFolder) -> str:
    """The command that repeats the runs of older versions."""
    return (
        f"`nsw run {recipe_argument(folder)} --into {campaign_argument(folder)}` does the runs of older versions again"
    )


def hashes_of_origins(files: Iterable[tuple[str, str]], recipe: Path | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is written down when a program is copied: its recipe's file and its own, with their hashes."""
    sources = [*([recipe] if recipe else []), *(Path(source) for source, _ in files)]
    return [(str(source.absolute()), list(_hashes_of_source(source).items())) for source in sources]


def sources_of_app_files(ledger: Ledger) -> list[tuple[str, str]]:
    """Where all of the application's files came from, changed or not, each with its name beside the program.

    Raises:
        UsageError: The campaign copied none, or one is gone.
    """
    sources = [Path(source) for source, _ in ledger.meta(ORIGINS) if source != ledger.meta(RECIPE)]
    if not sources:
        raise UsageError(
            "the recipe lists no program files (app.files), so there is nothing to copy again",
            hint="leave out --update-app: a program that the command finds itself always runs as it is now",
        )
    for source in sources:
        if not source.exists():
            raise UsageError(f"{source} no longer exists, and the program was copied from it")
    return [(str(source), source.name) for source in sources]


def changed_program_warning(ledger: Ledger) -> str | None:
    """What a person must know before the campaign goes on; None where nothing changed where it came from."""
    names = _changed_files(ledger)
    if not names:
        return None
    start_time = time.strftime("%Y-%m-%d %H:%M", time.localtime(ledger.created()))
    copies = f"its copy of {start_time} is" if len(names) == 1 else f"their copies of {start_time} are"
    have = "has" if len(names) == 1 else "have"
    sentence = f"{first_names(names, _CHANGED)} {have} changed since this campaign began: {copies} used here"
    recipe = _path_from_here(Path(ledger.meta(RECIPE) or ""))
    if program := [name for name in names if name != recipe]:
        new = "the new one" if len(program) == 1 else "the new ones"
        sentence += f"; `nsw retry --update-app` takes {new}" + (" of the program" if recipe in names else "")
    if recipe in names:
        return f"{sentence}; `nsw run {shlex.quote(recipe)} --into CAMPAIGN` repeats what the new recipe changes"
    return f"{sentence}, and so does a new `nsw run`"


def _changed_files(ledger: Ledger) -> list[str]:
    """The files that are not as they were; what is no longer there, or cannot be read, cannot mislead anyone."""
    changed: list[str] = []
    for source, before in ledger.meta(ORIGINS):
        try:
            now = _hashes_of_source(Path(source))
        except OSError:
            continue
        if now:
            changed += (_path_from_here(Path(source) / name) for name in changed_names(dict(before), now))
    return changed


def _hashes_of_source(source: Path) -> dict[str, str]:
    """Every file of it with its hash; the name of a file that is no folder is empty."""
    return {name: hash_of(file) for file, name in files_in(source, "") if not _GENERATED.intersection(file.parts)}


def _path_from_here(path: Path) -> str:
    """The path as a person in the present folder would name it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
