"""The metric catalogue on the terminal."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from nsw.present.terminal import console, table
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH: Final = 80  # columns


def show_catalogue(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], chip: str | None, tool: str, left_out: int
) -> None:
    """Print groups and metrics, metrics by family."""
    out = console()
    if groups:
        cells = ((g["group"], plural(len(g["metrics"]), "metric"), g["meaning"]) for g in groups)
        out.print(table("groups", ("group", "holds>", "meaning"), cells, wide="meaning"))
    title = "metrics" + (f" on {chip} by {tool}" if chip else "")
    ordered = sorted(rows, key=lambda r: (r["family"], r["metric"]))
    if chip:
        columns: tuple[str, ...] = ("family", "metric", "unit", tool)
        cells_of = ([r[c] or "" for c in columns] for r in ordered)
        out.print(table(title, columns, cells_of, wide=tool))
    else:
        columns = ("family", "metric", "unit", "meaning")
        out.print(
            table(
                title, columns, ([r[c] or "" for c in columns] for r in ordered), wide="meaning", droppable=("family",)
            )
        )
    if left_out:
        out.print(f"({plural(left_out, 'metric')} more that {tool} does not measure{' on ' + chip if chip else ''}:"
                  " `nsw metrics show NAME` says why)", style="dim")  # fmt: skip


def show_metric(metric: Mapping[str, Any]) -> None:
    """Print one metric or group in full."""
    out = console()
    if "group" in metric:
        out.print(_filled(f"{metric['group']} (group): {metric['meaning']}"), style="bold")
        out.print(_filled(" ".join(metric["metrics"]), "  ", "  "))
        return
    out.print(_filled(f"{metric['metric']}: {metric['meaning']}"), style="bold")
    if "portable" in metric:
        lines = [("portable name", metric["portable"] or "none"), ("takes", metric["suffixes"]),
                 ("on", ", ".join(metric["chips"]))]  # fmt: skip
    else:
        lines = [
            ("unit", metric["unit"] or "none: a ratio"),
            ("nvprof", (metric["nvprof"] or "does not measure it")
             + (f" ({metric['nvprof_conversion']})" if metric["nvprof_conversion"] else "")),
            ("ncu", " |\n".join(metric["ncu"]) or "does not measure it"),
            ("why", metric["why"]),
            *((chip, _elsewhere(entry)) for chip, entry in metric["by_chip"].items()),
            ("groups", ", ".join(metric["groups"])),
        ]  # fmt: skip
    for head, text in lines:
        if text:
            first, *more_lines = text.split("\n")
            out.print(_filled(first, f"  {head + ':':<10} ", " " * 13))
            for more_line in more_lines:
                out.print(_filled(more_line, " " * 13, " " * 15))


def _filled(text: str, first: str = "", indent: str = "") -> str:
    """A text in lines of at most _WIDTH columns, wherever it is printed; a longer word has a line of its own."""
    return fill(text, _WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _elsewhere(entry: Mapping[str, Any]) -> str:
    """What a chip that differs has instead."""
    return " | ".join(entry["ncu"]) + f" ({entry['why']})" if entry["ncu"] else f"not there: {entry['why']}"


def show_translation(
    rows: Sequence[Mapping[str, Any]], tools: Sequence[str], lines: Mapping[str, str], chip: str | None
) -> None:
    """Print what each tool calls the metrics, and the argument that asks for all of them."""
    out = console()
    columns = ("metric", "unit", *tools)
    cells = ([r["metric"] or r["asked"], r["unit"] or "", *(r[t] or "-" for t in tools)] for r in rows)
    out.print(table(f"on {chip}" if chip else None, columns, cells, wide=tools[-1]))
    for row in rows:
        if row["why"]:
            out.print(f"{row['metric'] or row['asked']}: {row['why']}")
        if row["conversion"] and "nvprof" in tools:
            out.print(f"{row['metric']}: nvprof's {row['conversion']}")
    for tool, line in lines.items():
        if line:
            out.print(f"{tool} --metrics {line}", soft_wrap=True)
