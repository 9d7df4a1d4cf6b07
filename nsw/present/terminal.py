"""The terminal: one console, tables whose cells are plain text, numbers for people."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TextIO

from nsw.present.text_of_others import clean, harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 140


def console(stream: TextIO | None = None) -> Console:
    """The console of stdout or another stream; NO_COLOR and COLUMNS are honoured, a pipe gets 140 columns."""
    out = stream or sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")
    width = None if out.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return _plain_console()(file=out, width=width, markup=False, highlight=False, emoji=False)


@cache
def _plain_console() -> type[Console]:
    from rich.console import Console

    class PlainConsole(Console):
        """Prints texts as they are, less what would steer the terminal."""

        def print(self, *objects: Any, **how: Any) -> None:
            """As rich prints; line breaks and tabs of texts are kept."""
            super().print(*(harmless(o) if isinstance(o, str) else o for o in objects), **how)

    return PlainConsole


_FOLDED = frozenset({"why"})  # columns that are never cut, since the rest of the sentence says it
_SENTENCES = frozenset({"message", "text", "description", "passes", "runs"})  # columns that are cut at their end


def table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None
) -> Table:
    """A table; a column whose name ends in `>` is right-aligned, `wide` is the one that gives way for space.

    A name gives up its middle, a sentence its end; a reason goes on in the next line.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    head = None if title is None else Text(clean(title))
    made = Table(title=head, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        name = column.removesuffix(">")
        # rich takes space first from columns that may wrap; the texts themselves never do
        side: Literal["right", "left"] = "right" if column.endswith(">") else "left"
        made.add_column(Text(clean(name)), justify=side, no_wrap=name != wide, overflow="ellipsis")
    for row in rows:
        texts = ["" if cell is None else clean(cell) for cell in row]
        made.add_row(*(_cell(text, column, wide) for column, text in zip(columns, texts, strict=True)))
    return made


def _cell(text: str, column: str, wide: str | None) -> Any:
    from rich.text import Text

    from nsw.present.middle import Middle

    if column == wide and column in _FOLDED:
        return Text(text, overflow="fold")
    if column == wide and column not in _SENTENCES:
        return Middle(text)
    return Text(text, overflow="ellipsis", no_wrap=True)


def numbered(names: Sequence[str]) -> list[str]:
    """Names for people; several instances of one template are numbered, since they are not the same kernel."""
    often, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"[{seen[name]}] {name}" if often[name] > 1 else name)
    return result


def duration(ns: float | None) -> str:
    """Nanoseconds for people, four digits: 1.234 ms."""
    if ns is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{_four(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def size(count: float | None) -> str:
    """Bytes for people, powers of 1000: 1.234 GB."""
    if count is None:
        return "-"
    for unit, step in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= step:
            return f"{_four(count / step)} {unit}"
    return f"{count:.0f} B"


def seconds(value: float | None) -> str:
    """Seconds for people: 0.31 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.2f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def number(value: float | None) -> str:
    """A number with thousands separated, at least three digits of it, or `-`: 50,110.1, 12.34, 0.0312."""
    if value is None:
        return "-"
    if value and abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.{1 if abs(value) >= 100 else 2}f}"


def spread(least: float | None, most: float | None) -> str:
    """The range of several measurements: 18,948 .. 28,247."""
    return "-" if least is None or most is None else f"{number(least)} .. {number(most)}"


def percent(value: float | None) -> str:
    """A percentage with one digit, or `-`."""
    return "-" if value is None else f"{value:.1f} %"


def plural(count: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _four(value: float) -> str:
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:.{digits}f}"
