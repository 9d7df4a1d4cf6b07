"""Advice of Nsight Compute on a terminal: a paragraph each, since a table has no room for sentences with addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.present.elided_names import elided
from nsw.present.terminal import percent
from nsw.present.untrusted_text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

_ORIGIN: Final = ("host", "rank", "pid", "device")  # where a launch was, shown where it is not the same for all

_LEAST_NAME: Final = 40  # characters of a kernel's name


def show_rules(out: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print type, estimated speed-up, rule and launch of each row of table `rules`, and its message below."""
    out.print(title, style="bold")
    before: tuple[object, ...] | None = None
    varies = [c for c in _ORIGIN if len({row.get(c) for row in rows}) > 1]
    for row in rows:
        of = (*(row.get(c) for c in varies), row.get("run"), row.get("launch_id"), row.get("kernel"))
        if of != before:
            out.print()
            out.print(_launch(row, varies, out.width), style="bold")
        before = of
        out.print(f"  {_head(row)}")
        out.print(f"    {clean(row.get('message') or '')}")
    out.print()


def _launch(row: Mapping[str, Any], varies: Sequence[str], width: int) -> str:
    words = [f"{column} {clean(row.get(column))}" for column in varies]
    words += [clean(row["run"])] if row.get("run") is not None else []
    words += [f"launch {row['launch_id']}"] if row.get("launch_id") is not None else []
    told = ", ".join(words)
    kernel = elided(clean(row.get("kernel") or ""), max(_LEAST_NAME, width - len(told) - len(": ")))
    return ": ".join(part for part in (told, kernel) if part) or "all launches"


def _head(row: Mapping[str, Any]) -> str:
    speedup = row.get("speedup_pct")
    gain = None if speedup is None else f"estimated speed-up {percent(speedup)}"
    if gain and row.get("speedup_type"):
        gain += f" ({clean(row['speedup_type'])})"
    facts = (row.get("type"), gain, row.get("rule"), row.get("section"))
    return ", ".join(clean(fact) for fact in facts if fact)
