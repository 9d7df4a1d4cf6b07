"""A campaign whose runs were done with several versions of the program: its numbers may not be comparable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = 2  # names in a sentence


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version of the program, and the runs that are done with it.

    Attributes:
        name: `train.py 3f2a1b0c9d8e`: the files that differ between the versions, with the beginning of their hashes.
        since: When the campaign copied it, as people write it.
        cases: The cases that have runs of it.
        runs: These runs.
    """

    name: str
    since: str
    cases: tuple[str, ...]
    runs: tuple[str, ...]

    def __str__(self) -> str:
        """With since when it is used."""
        return f"{self.name} (since {self.since})"


def findings(versions: Sequence[ProgramVersion], remedy: str) -> list[Finding]:
    """What a reader must know of numbers of several versions: one sentence, and one a case that mixes them.

    Args:
        versions: Those with runs that are done, the oldest first.
        remedy: The command that leaves one version only.
    """
    if len(versions) < 2:
        return []
    of = "; ".join(f"{one} in {_some(one.cases)}" for one in versions)
    cases = tuple(dict.fromkeys(case for one in versions for case in one.cases))
    whole = f"The numbers are of {len(versions)} versions of the program: {of}."
    found = [_finding(f"{whole} Compare cases of one version only; {remedy}.", cases)]
    for case in cases:
        mixed = [one for one in versions if case in one.cases]
        if len(mixed) > 1:
            of = ", ".join(str(one) for one in mixed)
            found.append(_finding(f"In {case} runs of {len(mixed)} versions of the program are mixed: {of}.", (case,)))
    return found


def _finding(text: str, cases: tuple[str, ...]) -> Finding:
    return Finding("program_versions", text=text, evidence=(Evidence("runs", cases),))


def _some(cases: Sequence[str]) -> str:
    more = len(cases) - _SHOWN
    return ", ".join(cases[:_SHOWN]) + (f" and {plural(more, 'more case')}" if more > 0 else "")
