"""Problems of many reports: equal messages are printed once, with the first report and how many more there are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.present.untrusted_text import clean
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

# a reader counts equal messages of one report; across reports that count is noise
_COUNTED: Final = re.compile(r" \(and \d+ like it\)")
_FEW: Final = 3  # warnings that are printed beside an answer
_SHORT: Final = 160  # characters of one of them
STYLES: Final = {"error": "red", "warning": "yellow", "note": "dim"}  # the worst first


@dataclass(slots=True)
class _Said:
    message: str
    fix: str | None
    where: dict[str, str] = field(default_factory=dict)  # report -> as it is shown, with the lines of the first one


class Merged:
    """Problems by what they say: errors first, of each severity in the order in which they first came."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], _Said] = {}

    def add(
        self, report: str, severity: str, message: str, fix: str | None, *, run: str = "", line: int | None = None
    ) -> bool:
        """Take one; whether no other report said the same before.

        Args:
            report: Its path.
            severity: error, warning or note.
            message: What is wrong.
            fix: What to do.
            run: The run whose name may be in the texts: they are alike but for it.
            line: Where in the report.
        """
        said = _COUNTED.sub("", message)
        key = (severity, _less(said, run), _less(fix or "", run))
        where = self._said.setdefault(key, _Said(said, fix)).where
        if line is not None and (not where or report in where):
            where[report] = f"{where[report]}, {line}" if report in where else f"{report}:{line}"
        else:
            where.setdefault(report, report)
        return next(iter(where)) == report

    def lines(self, *, repeated: bool = False) -> Iterator[tuple[str, str]]:
        """Severity and text of each, `FILE and 311 more: ...`, its hint behind a line end; or of repeated ones only."""
        for (severity, _, _), said in sorted(self._said.items(), key=_severity):
            if repeated and len(said.where) == 1:
                continue
            if severity == "note":  # an aside, whose files do not matter
                count, such = len(said.where), clean(next(iter(said.where)))
                yield severity, f"{severity}: {plural(count, 'run')} {clean(said.message)}, such as {such}"
                continue
            more = f" and {len(said.where) - 1} more" if len(said.where) > 1 else ""
            hint = f"\n  hint: {clean(said.fix)}" if said.fix and not repeated else ""
            yield severity, f"{severity}: {clean(next(iter(said.where.values())))}{more}: {clean(said.message)}{hint}"


def _severity(one: tuple[tuple[str, str, str], _Said]) -> int:
    """Errors before warnings, and those before notes."""
    order = list(STYLES)
    return order.index(one[0][0]) if one[0][0] in order else len(order)


def _less(text: str, run: str) -> str:
    return text.replace(run, "RUN") if run else text


def show_problems(out: Console, problems: Sequence[tuple[str, str | None, str, str, str | None]]) -> None:
    """What is wrong with reports: (run, report, severity, message, fix); the same words of several runs once."""
    show_merged(out, _merged(problems))


def _merged(problems: Sequence[tuple[str, str | None, str, str, str | None]]) -> Merged:
    merged = Merged()
    for run, report, severity, message, fix in problems:
        where = run if severity == "note" else report or run
        merged.add(where, severity, message, fix, run=run)
    return merged


def show_short(out: Console, problems: Sequence[tuple[str, str | None, str, str, str | None]], whole: str) -> None:
    """Errors with their hints; of warnings a line each of the first few, and where all of them are; then notes.

    Args:
        out: Where to.
        problems: (run, report, severity, message, fix).
        whole: The command that prints them whole.
    """
    lines = list(_merged(problems).lines())
    warnings = [text for severity, text in lines if severity == "warning"]
    for severity, text in lines:
        if severity not in {"warning", "note"}:
            out.print(text, style=STYLES.get(severity))
    for text in warnings[:_FEW]:
        out.print(shortened(text.partition("\n")[0]), style=STYLES["warning"])
    if len(warnings) > _FEW or any(shortened(t) != t for t in warnings):
        count = "1 warning" if len(warnings) == 1 else f"{len(warnings)} warnings"
        out.print(f"({count}: `{whole}` has them whole)", style="dim")
    for severity, text in lines:
        if severity == "note":
            out.print(text, style=STYLES["note"])


def shortened(text: str) -> str:
    """The beginning of a long line, up to the end of a word."""
    if len(text) <= _SHORT:
        return text
    return text[: text.rfind(" ", 0, _SHORT - 3)].rstrip(" ,;:(") + " ..."


def show_merged(out: Console, merged: Merged, **which: Any) -> None:
    """Print them, errors in red; `which` as `Merged.lines` takes it."""
    for severity, text in merged.lines(**which):
        line, _, hint = text.partition("\n")
        out.print(line, style=STYLES.get(severity, "yellow"))
        if hint:
            out.print(hint)
