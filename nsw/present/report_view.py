"""One report on the terminal: what it is, its problems, its kernels if it has metrics, the top of each table."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from nsw.present.rows_view import show_rows
from nsw.present.untrusted_text import clean
from nsw.tables import TABLES, count, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from nsw.present.problems import Merged
    from nsw.readers.model import Report

_RANGES = 5  # names in a line
_OF_KERNELS = ("metrics", "launches", "rules")  # which the kernel table sums up
_SHARED = ("gpu_summary", "api_summary")
_WHOLE = 101.0  # per cent: printed shares are rounded


def show_report(out: Console, report: Report, most: int, told: Merged, *, kernels: bool = True) -> None:
    """Print a report: each table's first `most` rows, absent columns left out, problems that were not told before.

    With `kernels` its metrics, launches and rules are shown as one row a kernel instead.
    """
    what = " ".join(str(p) for p in (report.tool, report.tool_version) if p) or "unknown"
    out.print(
        f"{clean(report.path)}: {clean(what)}" + (f" ({report.format})" if report.format else ""),
        style="bold",
    )
    for problem in report.problems:
        if not told.add(report.path, problem.severity, problem.message, problem.fix):
            continue
        where = f"line {problem.line}: " if problem.line else ""
        out.print(
            f"{problem.severity}: {where}{clean(problem.message)}",
            style="red" if problem.severity == "error" else "yellow",
        )
        if problem.fix:
            out.print(f"  hint: {clean(problem.fix)}")
    summed_up = kernels and _show_kernels(out, report)
    for name, data in report.tables.items():
        total = count(data)
        if not total or (summed_up and name in _OF_KERNELS):
            continue
        top = list(islice(rows(name, data), most))
        more = f" (first {most} of {total:,})" if total > most else ""
        show_rows(out, name + more, top, TABLES[name].names, of=name)
        if name in _SHARED and sum(row["time_pct"] or 0.0 for row in top) > _WHOLE:
            out.print(
                "(time (%) is the share within each part of the report, as printed; the sum is over 100 %)\n",
                style="dim",
            )


def _show_kernels(out: Console, report: Report) -> bool:
    """Print the kernel table; False where the report has no metrics of kernels."""
    if not count(report.tables.get("metrics", [])):
        return False
    from nsw.analysis.kernels import of_report
    from nsw.present.kernels_view import show_kernels

    found = of_report(report.tables)
    if not any(kernel.metrics for kernel in found):
        return False
    show_kernels(out, found)
    for line in _of_launches(report):
        out.print(line)
    held = ", ".join(f"{name} {count(report.tables[name]):,}" for name in _OF_KERNELS if name in report.tables)
    out.print(f"(weighted over the launches; rows of {held}: `--table metrics` lists them)", style="dim")
    return True


def _of_launches(report: Report) -> Iterator[str]:
    """What one launch was; of several the NVTX ranges that they were in."""
    launches = rows("launches", report.tables.get("launches", []))
    if count(report.tables.get("launches", [])) == 1:
        one = next(iter(launches))
        told = (("grid", one["grid"]), ("block", one["block_size"]), ("NVTX", one["nvtx"]))
        if any(said for _, said in told):
            yield f"launch {one['launch_id']}: " + ", ".join(f"{what} {clean(said)}" for what, said in told if said)
        return
    ranges = Counter(one["nvtx"] for one in launches if one["nvtx"])
    if ranges:
        some = ", ".join(
            f"{clean(name)} ({times:,} launch{'' if times == 1 else 'es'})"
            for name, times in ranges.most_common(_RANGES)
        )
        yield f"NVTX ranges: {some}" + (f" and {len(ranges) - _RANGES} more" if len(ranges) > _RANGES else "")
