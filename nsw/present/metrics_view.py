"""The metric catalogue on the terminal."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from nsw.present.terminal import console, plural, table

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
            table(title, columns, ([r[c] or "" for c in columns] for r in ordered), wide="meaning", least=("family",))
        )
    if left_out:
        out.print(f"({plural(left_out, 'metric')} more that {tool} does not measure{' on ' + chip if chip else ''}:"
                  " `nsw metrics show NAME` says why)", style="dim")  # fmt: skip


def show_metric(told: Mapping[str, Any]) -> None:
    """Print one metric or group in full."""
    out = console()
    if "group" in told:
        out.print(_filled(f"{told['group']} (group): {told['meaning']}"), style="bold")
        out.print(_filled(" ".join(told["metrics"]), "  ", "  "))
        return
    out.print(_filled(f"{told['metric']}: {told['meaning']}"), style="bold")
    if "portable" in told:
        lines = [("portable name", told["portable"] or "none"), ("takes", told["suffixes"]),
                 ("on", ", ".join(told["chips"]))]  # fmt: skip
    else:
        lines = [
            ("unit", told["unit"] or "none: a ratio"),
            ("nvprof", (told["nvprof"] or "does not measure it")
             + (f" ({told['nvprof_conversion']})" if told["nvprof_conversion"] else "")),
            ("ncu", " |\n".join(told["ncu"]) or "does not measure it"),
            ("why", told["why"]),
            *((chip, _elsewhere(there)) for chip, there in told["by_chip"].items()),
            ("groups", ", ".join(told["groups"])),
        ]  # fmt: skip
    for head, text in lines:
        if text:
            first, *others = text.split("\n")
            out.print(_filled(first, f"  {head + ':':<10} ", " " * 13))
            for other in others:
                out.print(_filled(other, " " * 13, " " * 15))


def _filled(text: str, first: str = "", others: str = "") -> str:
    """A text in lines of at most _WIDTH columns, wherever it is printed; a longer word has a line of its own."""
    return fill(text, _WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _elsewhere(there: Mapping[str, Any]) -> str:
    """What a chip that differs has instead."""
    return " | ".join(there["ncu"]) + f" ({there['why']})" if there["ncu"] else f"not there: {there['why']}"


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
