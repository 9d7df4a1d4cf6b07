"""The versions of the program that a campaign's runs were done with, and the command that leaves one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.campaign.program_versions import done_versions
from nsw.quantities import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.findings import ProgramVersion
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.program_versions import Version

_SHOWN: Final = 2  # files in the name of a version
_DIGITS: Final = 12  # of a hash


def program_versions(ledger: Ledger) -> list[ProgramVersion]:
    """The versions with runs that are done, the oldest first."""
    return _named(done_versions(ledger, ledger.runs()))


def _named(found: Sequence[Version]) -> list[ProgramVersion]:
    from nsw.analysis.findings import ProgramVersion  # here: `nsw status` has nothing to analyse

    names = sorted({name for one in found for name in one.files})
    differing = [name for name in names if len({one.files.get(name) for one in found}) > 1]
    return [
        ProgramVersion(
            _name(one, differing),
            moment(one.since),
            tuple(dict.fromkeys(run.case_id for run in one.runs)),
            tuple(run.id for run in one.runs),
        )
        for one in found
    ]


def remedy(folder: CampaignFolder) -> str:
    """What does the runs of older versions again."""
    import shlex

    from nsw.campaign.runs_by_name import as_named

    named = as_named(folder)
    return f"`nsw run {shlex.quote(str(folder.recipe))} --into {named}` does the runs of older versions again"


def problems(folder: CampaignFolder, ledger: Ledger) -> list[tuple[str, str | None, str, str, str | None]]:
    """A warning for each run of an older version: (run, report, severity, message, what to do)."""
    found = done_versions(ledger, ledger.runs())
    if len(found) < 2:
        return []
    versions = _named(found)
    return [
        (run, None, "warning", f"done with an older version of the program, {one}; the newest is {versions[-1]}",
         remedy(folder))
        for one in versions[:-1] for run in one.runs
    ]  # fmt: skip


def _name(version: Version, differing: Sequence[str]) -> str:
    if not version.files:
        return "an unknown version"
    if not differing:
        return f"build {version.build + 1}"
    told = [f"{name} {version.files.get(name, 'absent')[:_DIGITS]}" for name in differing[:_SHOWN]]
    more = len(differing) - _SHOWN
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")
