"""One report on the terminal: what it is, its problems, and the top of each table."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from nsw.present.terminal import clean, duration, number, size, table
from nsw.tables import TABLES, count, rows

if TYPE_CHECKING:
    from rich.console import Console

    from nsw.readers.model import Report

_HIDDEN = frozenset({"run", "report", "mangled_name", "description"})


def show_report(out: Console, report: Report, most: int) -> None:
    """Print a report; each table's first `most` rows, absent columns left out."""
    what = " ".join(str(p) for p in (report.tool, report.tool_version) if p) or "unknown"
    out.print(
        f"{clean(report.path)}: {clean(what)}" + (f" ({report.format})" if report.format else ""),
        style="bold",
    )
    for problem in report.problems:
        where = f"line {problem.line}: " if problem.line else ""
        out.print(
            f"{problem.severity}: {where}{clean(problem.message)}",
            style="red" if problem.severity == "error" else "yellow",
            soft_wrap=True,
        )
        if problem.fix:
            out.print(f"  hint: {clean(problem.fix)}", soft_wrap=True)
    for name, data in report.tables.items():
        total = count(data)
        if not total:
            continue
        top = list(islice(rows(name, data), most))
        columns = [c for c in TABLES[name].columns if c.name not in _HIDDEN and not c.name.endswith("_pm")
                   and any(r[c.name] is not None for r in top)]  # fmt: skip
        if any(c.name == "short_name" for c in columns):
            columns = [c for c in columns if c.name != "name"]
        heads = [c.name + (">" if c.type != "string" else "") for c in columns]
        more = f" (first {most} of {total:,})" if total > most else ""
        out.print(table(name + more, heads, ([_cell(c.unit, r[c.name]) for c in columns] for r in top)))


def _cell(unit: str | None, value: Any) -> str | None:
    if value is None or isinstance(value, str | bool):
        return value if value is None else str(value)
    if unit == "ns":
        return duration(value)
    if unit in {"byte", "byte/s"}:
        return size(value) + ("/s" if unit == "byte/s" else "")
    return f"{value:,}" if isinstance(value, int) else number(value)
