"""What a rule says of a case, and what it may know of the other cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsw.analysis.rules.causes import causes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

__all__ = ["Context", "Hit", "gpu_copy_direction"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that holds for a case.

    Attributes:
        cause: Its id in causes.toml; a rule of another package has one of its own.
        case: The case.
        gain_pct: What could be won at most, in per cent of the case's time.
        what: What is wrong, in a few words, for a table.
        do: What to try, in a few words, for a table.
        fact: The same as a sentence, without its case and its full stop.
        advice: What to try, in whole sentences.
        size: How much it is, for a list of cases: `12 %`.
        table: What `nsw summarize --table` takes for the rows that prove it.
        share_of: Where `what` begins with `size`, what goes between them in a headline: `of GPU time is`.
        costs_accuracy: Whether what it advises makes results less accurate, such as TF32: the user's choice, no waste.
        cured_case: Another case, which does what it advises.
        continued: `fact` where another hit before it names the same idle time; empty: it names none.
    """

    cause: str
    case: str
    gain_pct: float
    what: str
    do: str
    fact: str
    advice: str
    size: str
    table: str
    share_of: str = ""
    costs_accuracy: bool = False
    cured_case: str | None = None
    continued: str = ""

    @property
    def headline(self) -> str:
        """What is wrong, with what its share is of: no table beside it tells."""
        return f"{self.size} {self.share_of}{self.what.removeprefix(self.size)}" if self.share_of else self.what

    @property
    def healthy(self) -> bool:
        """Whether it says what binds where nothing is wasted."""
        known = causes().get(self.cause)
        return known is not None and known.group == "healthy"


@dataclass(frozen=True, slots=True)
class Context:
    """The campaign around a case.

    Attributes:
        copies: The fastest copies in each direction, byte/s with the case that has them.
        rereadable: Whether its reports can be read again here.
    """

    copies: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    rereadable: bool = False

    @classmethod
    def from_cases(cls, cases: Sequence[CaseSummary], *, rereadable: bool = False) -> Context:
        """That of a campaign's cases."""
        best: dict[str, tuple[float, str]] = {}
        for case in cases:
            for copy in case.copies:
                key = gpu_copy_direction(copy.name)
                if key and copy.bytes_per_s and copy.bytes_per_s > best.get(key, (0.0, ""))[0]:
                    best[key] = copy.bytes_per_s, case.id
        return cls(best, rereadable)


def gpu_copy_direction(name: str) -> str:
    """`to` or `from` the GPU, by the name of a copy; empty for others, as those of unified memory."""
    if "Unified" in name:
        return ""
    if "Host-to-Device" in name or "HtoD" in name:
        return "to"
    return "from" if "Device-to-Host" in name or "DtoH" in name else ""
