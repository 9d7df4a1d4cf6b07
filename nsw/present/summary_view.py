"""The answer of a campaign: scaling, comparison, findings, and what each case spends its time on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.present.kernels_view import show_kernels
from nsw.present.perturbation_view import show_perturbation
from nsw.present.phase_view import show_iterations, show_phases
from nsw.present.terminal import duration, number, numbered, percent, plural, rate, size, spread, table
from nsw.present.text_of_others import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from nsw.analysis.cases import CaseSummary, Share
    from nsw.analysis.summary import Summary

_BRIEF = 3  # kernels a case in the brief form
_OUTLIERS = 5  # in the brief form


def show_summary(out: Console, summary: Summary, *, brief: bool, verdict: bool = True) -> None:
    """Print it, the verdict last.

    Args:
        out: Where to.
        summary: What.
        brief: The top kernels of each case in one table instead of a block a case.
        verdict: Whether the findings are printed; else `show_findings` does, after what comes between.
    """
    if summary.note:
        out.print(summary.note, style="yellow")
    # a table of dashes says less than why nothing was measured, which follows
    if summary.curve is not None and any(p.figure is not None for p in summary.curve.points):
        _show_scaling(out, summary)
    elif summary.curve is None and not summary.variants:
        _show_figures(out, summary.cases)
    if any(v.figure is not None or v.gpu_ns is not None for v in summary.variants):
        _show_variants(out, summary)
    show_perturbation(out, summary.cases)
    show_iterations(out, summary.cases)
    _show_model(out, summary)
    if brief:
        _show_top(out, summary.cases)
    if brief:
        _show_kernels(out, summary.cases)
    if not brief:
        for case in summary.cases:
            _show_case(out, case, summary.cover)
    _show_outliers(out, summary, brief=brief)
    for missing in summary.missing:
        out.print(missing, style="yellow")
    if verdict:
        show_findings(out, summary)


def _show_outliers(out: Console, summary: Summary, *, brief: bool) -> None:
    shown = summary.outliers[:_OUTLIERS] if brief else summary.outliers
    for one in shown:
        out.print(f"outlier: {one.run}: {one.text}", style="yellow", soft_wrap=True)
    if left := len(summary.outliers) - len(shown):
        out.print(f"... and {plural(left, 'outlier')} more (`nsw problems` names all)", style="yellow")


def show_findings(out: Console, summary: Summary) -> None:
    """What the numbers say, a sentence each."""
    for finding in summary.findings:
        out.print(f"* {finding.text}")


def _show_scaling(out: Console, summary: Summary) -> None:
    curve = summary.curve
    assert curve is not None
    others = list(curve.points[0].series) if curve.points else []
    repeated = any(p.runs > 1 for p in curve.points)
    how = ("while being profiled" if curve.profiled else "without a profiler") + (
        ", median of the runs" if repeated else ""
    )
    title = f"{curve.kind} scaling of {curve.figure} along {curve.axis} ({how})"
    has_communication = any(p.communication_pct is not None for p in curve.points)
    columns = (*others, f"{curve.axis}>", f"{curve.unit or curve.figure}>", *(("range>",) if repeated else ()),
               "speed-up>", "efficiency>",
               *(("NCCL share of GPU time>",) if has_communication else ()), "runs>")  # fmt: skip
    rows = []
    last: object = None
    for p in curve.points:
        same, last = p.series == last, p.series
        rows.append(
            (*("" if same else v for v in p.series.values()), f"{p.at:g}", number(p.figure),
             *((spread(p.least, p.most),) if repeated else ()),
             "-" if p.speedup is None else f"{p.speedup:.2f}", percent(p.efficiency_pct),
             *((percent(p.communication_pct),) if has_communication else ()), p.missing or p.runs)
        )  # fmt: skip
    out.print(table(title, columns, rows, least=("runs", "NCCL share of GPU time", "range")))


def _show_variants(out: Console, summary: Summary) -> None:
    first = summary.variants[0]
    with_gpu = any(v.gpu_ns is not None for v in summary.variants)
    repeated = any(v.runs > 1 for v in summary.variants)
    columns = (*first.series, summary.compared or "variant", f"{first.unit or 'figure'}>",
               *(("range>",) if repeated else ()), f"times {summary.compared_to}>",
               *(("GPU time>",) if with_gpu else ()), "most time in")  # fmt: skip
    rows = [
        (*v.series.values(), v.variant, number(v.figure), *((spread(v.least, v.most),) if repeated else ()),
         "-" if v.ratio is None else f"{v.ratio:.2f}", *((duration(v.gpu_ns),) if with_gpu else ()), v.top)
        for v in summary.variants
    ]  # fmt: skip
    title = f"{summary.figure} by {summary.compared}, beside {summary.compared}={summary.compared_to}"
    out.print(
        table(
            title + (" (median of the runs)" if repeated else ""),
            columns,
            rows,
            wide="most time in",
            least=("GPU time", "range"),
        )
    )


def _show_model(out: Console, summary: Summary) -> None:
    """Effective rates of each case, and what it does against what the rates of the first case allow."""
    known = [m for m in summary.model if m.flop_per_s is not None]
    if known:
        links = [link.name for link in known[0].links]
        columns = ("case", "FLOP/byte>", "computing>", *(f"{name}>" for name in links), "modelled>", "measured>")
        rows = [
            (m.case_id, number(m.intensity), _flops(m.flop_per_s),
             *(rate(link.bytes_per_s) for link in m.links),
             _flops(m.modelled_flop_per_s), _flops(m.measured_flop_per_s))
            for m in known
        ]  # fmt: skip
        title = f"effective rates; modelled by those of {known[0].case_id}" if len(known) > 1 else "effective rates"
        out.print(table(title, columns, rows, wide="case"))
    for m in summary.model:
        if m.missing:
            out.print(f"model of {m.case_id}: {m.missing}", style="yellow", soft_wrap=True)


def _flops(per_second: float | None) -> str:
    return rate(per_second, "FLOP")


def _show_figures(out: Console, cases: Sequence[CaseSummary]) -> None:
    rows = [
        (case.id, f.name, number(f.median), f.unit,
         f"{number(f.least)} .. {number(f.most)}" if f.runs > 1 else "", f.runs,
         f.pass_name + (" (profiled)" if f.profiled else ""))
        for case in cases for f in case.figures
    ]  # fmt: skip
    if rows:
        out.print(
            table(
                "figures",
                ("case", "figure", "median>", "unit", "range", "runs>", "pass"),
                rows,
                least=("runs", "range"),
            )
        )


def _show_top(out: Console, cases: Sequence[CaseSummary]) -> None:
    with_gpu = [c for c in cases if c.hotspots]
    chosen = [(c, c.hotspots or c.functions) for c in (with_gpu or [c for c in cases if c.functions])]
    what = "GPU time" if with_gpu else "Python time"
    rows: list[Sequence[object]] = []
    for case, shares in chosen:
        rows += [
            (case.id if rank == 0 else "", h.short_name, percent(h.share_pct), duration(h.total_ns), _calls(h.calls))
            for rank, h in enumerate(shares[:_BRIEF])
        ]
        if not with_gpu and case.import_ns is not None:
            rows.append(("", "(imports of modules, beside these)", "", duration(case.import_ns), ""))
    if rows:
        mean = " (of a run, the mean of several)" if any(c.measured > 1 for c, _ in chosen) else ""
        where = _where(c for c, _ in chosen) if with_gpu else ""
        out.print(
            table(
                f"most {what}{where}{mean}",
                ("case", "name", "share>", "time>", "calls>"),
                rows,
                wide="name",
                least=("calls", "time"),
            )
        )


def _where(cases: Iterable[CaseSummary]) -> str:
    """Which part of the timelines is meant: said where all or some of them were split."""
    split = [bool(c.phases) for c in cases]
    if all(split) and split:
        return " of the steady state"
    return " (of the steady state where there are iterations)" if any(split) else ""


def _show_kernels(out: Console, cases: Sequence[CaseSummary]) -> None:
    """The kernel tables, of many cases that of the one with most GPU time."""
    measured = [case for case in cases if case.kernels]
    shown = measured if len(measured) <= _BRIEF else [max(measured, key=lambda case: case.gpu_ns or 0.0)]
    for case in shown:
        show_kernels(out, case.kernels, f"kernels of {case.id}" if len(cases) > 1 else "kernels")
    if len(shown) < len(measured):
        out.print(f"({plural(len(measured) - 1, 'case')} more: `nsw summarize --table kernels`)", style="dim")


def _show_case(out: Console, case: CaseSummary, cover: float) -> None:
    if not any((case.figures, case.hotspots, case.api, case.copies, case.functions, case.kernels)):
        out.print(f"{case.id}: nothing was read")
        return
    out.print()
    about = "" if case.gpu_ns is None else f": GPU time{_where([case])} {duration(case.gpu_ns)}"
    if case.communication_pct is not None:
        about += f", {percent(case.communication_pct)} of it in NCCL kernels"
    if case.measured > 1:
        about += f"; times, calls and bytes are those of a run, the mean of {case.measured}"
    out.print(case.id + about, style="bold")
    for f in case.figures:
        out.print(
            f"  {f.name} {number(f.median)} {f.unit or ''}"
            f" ({f.pass_name}{', profiled' if f.profiled else ''}; {plural(f.runs, 'run')})"
        )
    show_phases(out, case)
    portion = f"{100 * cover:g} %"
    where = _where([case])
    _show_shares(out, f"GPU operations that take {portion} of GPU time{where}", case.hotspots)
    show_kernels(out, case.kernels)
    _show_shares(out, f"CUDA API calls that take {portion} of API time{where}", case.api)
    if case.copies:
        rows = [
            (
                c.name,
                _calls(c.calls),
                duration(c.total_ns),
                size(c.total_bytes),
                rate(c.bytes_per_s),
            )
            for c in case.copies
        ]
        out.print(table(f"copies and sets{where}", ("kind", "calls>", "time>", "bytes>", "bandwidth>"), rows))
    if case.import_ns is not None:
        out.print(f"  imports of modules {duration(case.import_ns)}: not in what follows")
    _show_shares(out, f"Python functions that take {portion} of self time", case.functions)


def _calls(count: float) -> str:
    """A count, which is a mean where it is no whole number."""
    return f"{count:,}" if isinstance(count, int) else number(count)


def _distinct(shares: Sequence[Share]) -> list[str]:
    return numbered([s.name if s.kind == "function" else s.short_name for s in shares])


def _show_shares(out: Console, title: str, shares: Sequence[Share]) -> None:
    if shares:
        rows = [
            (name, percent(s.share_pct), percent(s.cumulative_pct), duration(s.total_ns), _calls(s.calls),
             duration(s.total_ns / s.calls) if s.calls else "-")
            for name, s in zip(_distinct(shares), shares, strict=True)
        ]  # fmt: skip
        out.print(
            table(
                title,
                ("name", "share>", "together>", "time>", "calls>", "mean>"),
                rows,
                wide="name",
                least=("mean", "together", "calls"),
            )
        )


def summary_data(summary: Summary) -> dict[str, Any]:
    """The summary as JSON data, unrounded."""
    return {
        "campaign": summary.campaign,
        "site": summary.site,
        "note": summary.note,
        "cover": summary.cover,
        "scaling": asdict(summary.curve) if summary.curve else None,
        "compare": [asdict(v) for v in summary.variants],
        "model": [asdict(m) for m in summary.model],
        "findings": [asdict(f) for f in summary.findings],
        "cases": [asdict(c) for c in summary.cases],
        "outliers": [asdict(o) for o in summary.outliers],
        "missing": [clean(m) for m in summary.missing],
    }
