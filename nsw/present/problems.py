"""Problems of many reports: equal messages are printed once, with the first report and how many more there are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.present.terminal import wrap_text
from nsw.present.untrusted_text import clean_line
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

# a reader counts equal messages of one report; across reports that count is noise
_COUNTED: Final = re.compile(r" \(and \d+ like it\)")
_FEW: Final = 3  # warnings that are printed beside an answer
_SHORT: Final = 160  # characters of one of them
STYLES: Final = {"error": "red", "warning": "yellow", "note": "dim", "aside": "dim"}  # the worst first
LABELS: Final = {severity: severity for severity in STYLES} | {"aside": "note"}


@dataclass(slots=True)
class _MergedProblem:
    message: str
    fix: str | None
    shown_reports: dict[str, str] = field(default_factory=dict)  # as it is shown, with the lines of the first one


class Merged:
    """Problems by what they say: errors first, of each severity in the order in which they first came."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, str], _MergedProblem] = {}

    def add(
        self, report: str, severity: str, message: str, fix: str | None, *, run: str = "", line: int | None = None
    ) -> bool:
        """Take one; whether no other report said the same before.

        Args:
            report: Its path.
            severity: error, warning, note or aside.
            message: What is wrong.
            fix: What to do.
            run: The run whose name may be in the texts: they are alike but for it.
            line: Where in the report.
        """
        plain_message = _COUNTED.sub("", message)
        key = (severity, _with_run_masked(plain_message, run), _with_run_masked(fix or "", run))
        shown_reports = self._problems.setdefault(key, _MergedProblem(plain_message, fix)).shown_reports
        if line is not None and (not shown_reports or report in shown_reports):
            shown_reports[report] = (
                f"{shown_reports[report]}, {line}" if report in shown_reports else f"{report}:{line}"
            )
        else:
            shown_reports.setdefault(report, report)
        return next(iter(shown_reports)) == report

    def lines(self, *, repeated: bool = False, brief: bool = False) -> Iterator[tuple[str, str]]:
        """Severity and text of each, `FILE and 311 more: ...`, its hint behind a line end; or of repeated ones only.

        `brief` leaves out the hints of all but errors.
        """
        order = {severity: at for at, severity in enumerate(STYLES)}
        by_severity = sorted(self._problems.items(), key=lambda item: order.get(item[0][0], len(order)))
        for (severity, _, _), problem in by_severity:
            if repeated and len(problem.shown_reports) == 1:
                continue
            if severity == "note":  # an aside, whose files do not matter
                count, example = len(problem.shown_reports), clean_line(next(iter(problem.shown_reports)))
                yield severity, f"{severity}: {plural(count, 'run')} {clean_line(problem.message)}, such as {example}"
                continue
            has_hint = severity == "error" or not brief
            hint = f"\n  hint: {clean_line(problem.fix)}" if problem.fix and not repeated and has_hint else ""
            reports = clean_line(first_names([*problem.shown_reports.values()]))
            yield severity, f"{LABELS[severity]}: {reports}: {clean_line(problem.message)}{hint}"


def _with_run_masked(text: str, run: str) -> str:
    return text.replace(run, "RUN") if run else text


def show_problems(out: Console, problems: Sequence[tuple[str, str | None, str, str, str | None]]) -> None:
    """What is wrong with reports: (run, report, severity, message, fix); the same words of several runs once."""
    show_merged(out, _merge_problems(problems))


def _merge_problems(problems: Sequence[tuple[str, str | None, str, str, str | None]]) -> Merged:
    merged = Merged()
    for run, report, severity, message, fix in problems:
        location = run if severity == "note" else report or run
        merged.add(location, severity, message, fix, run=run)
    return merged


def short_lines(
    problems: Sequence[tuple[str, str | None, str, str, str | None]], full_command: str
) -> list[tuple[str, str | None]]:
    """Errors with their hints; of warnings a line each of the first few, and where all are; then notes, and no asides.

    Args:
        problems: (run, report, severity, message, fix).
        full_command: The command that prints them whole.

    Returns:
        Each line with its style.
    """
    lines = list(_merge_problems(problems).lines())
    warnings = [text for severity, text in lines if severity == "warning"]
    shown = [(text, STYLES.get("error")) for severity, text in lines if severity == "error"]
    shown += [(shorten_line(text.partition("\n")[0]), STYLES["warning"]) for text in warnings[:_FEW]]
    if len(warnings) > _FEW or any(shorten_line(t) != t for t in warnings):
        shown.append((f"({plural(len(warnings), 'warning')}: `{full_command}` has them whole)", "dim"))
    return [*shown, *((text, STYLES["note"]) for severity, text in lines if severity == "note")]


def shorten_line(text: str) -> str:
    """The beginning of a long line, up to the end of a word."""
    if len(text) <= _SHORT:
        return text
    return text[: text.rfind(" ", 0, _SHORT - 3)].rstrip(" ,;:(") + " ..."


def show_merged(out: Console, merged: Merged, **options: Any) -> None:
    """Print them, errors in red; `which` as `Merged.lines` takes it."""
    for severity, text in merged.lines(**options):
        line, _, hint = text.partition("\n")
        out.print(wrap_text(out, line, in_pipes=True), style=STYLES.get(severity, "yellow"))
        if hint:
            out.print(wrap_text(out, hint, in_pipes=True))
