"""The terminal: one console, tables whose cells are plain text, numbers for people."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from nsw.present.fitting import Fitted, numbered
from nsw.present.quantities import BYTES, PERCENT, TIMES, Quantity, in_one_unit, rates
from nsw.present.text_of_others import clean, harmless
from nsw.present.typed import as_typed
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from nsw.present.quantities import Units

__all__ = [
    "clean", "console", "duration", "number", "numbered", "percent", "plural", "rate", "seconds", "size", "spread",
    "table",
]  # fmt: skip

_PADDING = re.compile(r"[ \t]+(?=\n)")
_NO_WIDTH = 100_000  # columns of what is no terminal: nothing is cut, wrapped or left out there


def console(stream: TextIO | None = None) -> Console:
    """The console of stdout or another stream; NO_COLOR and COLUMNS are honoured, a pipe has room for everything."""
    out = stream or sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")
    width = None if out.isatty() or "COLUMNS" in os.environ else _NO_WIDTH
    return _plain_console()(file=out, width=width, markup=False, highlight=False, emoji=False)


@cache
def _plain_console() -> type[Console]:
    from rich.console import Console

    class PlainConsole(Console):
        """Prints texts as they are, less what would steer the terminal."""

        def on_broken_pipe(self) -> None:
            """Leave it to the caller: that `| head` has enough is no failure."""
            raise BrokenPipeError

        def print(self, *objects: Any, **how: Any) -> None:
            """As rich prints; line breaks and tabs of texts are kept."""
            texts = (as_typed(harmless(o)) if isinstance(o, str) else o for o in objects)
            if self.is_terminal or self._buffer_index:
                super().print(*texts, **how)
                return
            with self.capture() as printed:
                super().print(*texts, **how)
            # a table pads its lines, and its title's, up to its width
            self.file.write(_PADDING.sub("", printed.get()))

    return PlainConsole


_SENTENCES = frozenset({
    "why", "message", "text", "description", "passes", "runs", "reason", "meaning", "chips", "what"
})  # fmt: skip  # columns that wrap


def table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None,
    least: Sequence[str] = (),
) -> Fitted:  # fmt: skip
    """A table that fits its width; a column whose name ends in `>` is right-aligned, and holds numbers.

    A column of quantities gets one unit for all its cells, which stands in its heading.

    Args:
        title: Above the table.
        columns: The headings.
        rows: The cells.
        wide: The column that gives way for space first: names give up their middles, sentences wrap.
        least: Columns that may go where there is no room, the least important first.
    """
    made = [list(row) for row in rows]
    in_units = [in_one_unit(head, [row[n] for row in made]) for n, head in enumerate(columns)]
    heads = [clean(head) for head, _ in in_units]
    texts = [
        ["" if cell is None else clean(cell) for cell in row]
        for row in zip(*(cells for _, cells in in_units), strict=True)
    ]
    named = dict(zip((c.removesuffix(">") for c in columns), (head.removesuffix(">") for head in heads), strict=True))
    least = [named.get(name, name) for name in least]
    return Fitted(
        None if title is None else clean(title), heads, texts,
        wide=None if wide is None else clean(wide), least=least, sentences=wide in _SENTENCES,
        wrapping=[head for head in heads if head in _SENTENCES],
    )  # fmt: skip


def duration(ns: float | None) -> str:
    """Nanoseconds for people, four digits: 1.234 ms."""
    if ns is None:
        return "-"
    return Quantity.of(_in_units(ns, TIMES), ns, TIMES)


def size(count: float | None) -> str:
    """Bytes for people, powers of 1024: 1.234 GiB."""
    if count is None:
        return "-"
    return Quantity.of(_in_units(count, BYTES), count, BYTES)


def rate(per_second: float | None, of: str = "B") -> str:
    """Bytes (or other things) a second for people, powers of 1000 as in data sheets: 1.234 GB/s."""
    if per_second is None:
        return "-"
    units = rates(of)
    return Quantity.of(_in_units(per_second, units), per_second, units)


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
    return "-" if value is None else Quantity.of(f"{value:.1f} %", value, PERCENT)


def _in_units(value: float, units: Units) -> str:
    for unit, scale in units[:-1]:
        if abs(value) >= scale:
            return f"{_four(value / scale)} {unit}"
    return f"{value:.0f} {units[-1][0]}"


def _four(value: float) -> str:
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:.{digits}f}"
