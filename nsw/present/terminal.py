"""The terminal: one console, tables whose cells are plain text, numbers for people."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from nsw.present.fitted_tables import Fitted
from nsw.present.program_name import as_typed
from nsw.present.untrusted_text import clean, harmless
from nsw.present.wrapping import wrapped
from nsw.quantities import duration, in_one_unit, number, percent, rate, seconds, size, spread
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

__all__ = [
    "clean", "console", "duration", "number", "percent", "plural", "rate", "seconds", "size", "spread",
    "table",
]  # fmt: skip

_PADDING = re.compile(r"(?<![ \t])[ \t]+(?=\n)")  # begins once a run of spaces: else their square in time
_SIZES = frozenset({"COLUMNS", "LINES"})
_LONGEST_CELL = 20_000  # characters; CSV and JSON have all of them
_NO_WIDTH = 100_000  # columns of what is no terminal: nothing is cut, wrapped or left out there


def console(stream: TextIO | None = None) -> Console:
    """The console of stdout or another stream; NO_COLOR and COLUMNS are honoured, a pipe has room for everything."""
    out = stream or sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")
    environment = {name: value for name, value in os.environ.items() if name not in _SIZES or _is_size(value)}
    width = None if out.isatty() or "COLUMNS" in environment else _NO_WIDTH
    return _plain_console()(file=out, width=width, markup=False, highlight=False, emoji=False, _environ=environment)


def _is_size(value: str) -> bool:
    """Whether it is a positive number: some programs leave COLUMNS=0 behind, and nothing fits into that."""
    return value.isdecimal() and int(value[:9]) > 0


@cache
def _plain_console() -> type[Console]:
    from rich.console import Console

    class PlainConsole(Console):
        """Prints texts as they are, less what would steer the terminal."""

        def on_broken_pipe(self) -> None:
            """Leave it to the caller: that `| head` has enough is no failure."""
            raise BrokenPipeError

        def print(self, *objects: Any, **how: Any) -> None:
            """As rich prints; line breaks and tabs of texts are kept.

            A single text breaks between words, and not within a command in backticks; with `soft_wrap` nothing of it
            breaks.
            """
            if len(objects) == 1 and isinstance(objects[0], str) and not how.get("soft_wrap"):
                objects, how = (wrapped(self, objects[0]),), {**how, "soft_wrap": True}
            texts = (as_typed(harmless(o)) if isinstance(o, str) else o for o in objects)
            if self.is_terminal or self._buffer_index:
                super().print(*texts, **how)
                return
            with self.capture() as printed:
                super().print(*texts, **how)
            # a table pads its lines, and its title's, up to its width
            self.file.write(_PADDING.sub("", printed.get()))
            try:
                self.file.flush()  # `nsw run | tee log` and `nsw logs -f | grep` show what is printed when it is
            except BrokenPipeError:
                raise
            except OSError:  # a full disk ends no campaign; main reports it at the end
                return

    return PlainConsole


def _shortened(cell: str) -> str:
    """A cell that can be laid out in a moment: words of megabytes would take half a minute."""
    more = len(cell) - _LONGEST_CELL
    return cell if more <= 0 else f"{cell[:_LONGEST_CELL]}… ({more:,} more characters)"


_SENTENCES = frozenset({
    "why", "message", "text", "description", "passes", "runs", "note", "reason", "meaning", "chips", "what"
})  # fmt: skip  # columns that wrap


def table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None,
    names: Sequence[str] = (), least: Sequence[str] = (), elsewhere: str | None = None,
) -> Fitted:  # fmt: skip
    """A table that fits its width; a column whose name ends in `>` is right-aligned, and holds numbers.

    A column of quantities gets one unit for all its cells, which is in its heading.

    Args:
        title: Above the table.
        columns: The headings.
        rows: The cells.
        wide: The column that gives way for space first: names give up their middles, sentences wrap.
        names: Other columns of names.
        least: Columns that may go where there is no room, the least important first.
        elsewhere: What else shows the columns that went.
    """
    made = [list(row) for row in rows]
    in_units = [in_one_unit(head, [row[n] for row in made]) for n, head in enumerate(columns)]
    heads = [clean(head) for head, _ in in_units]
    texts = [
        ["" if cell is None else _shortened(clean(cell)) for cell in row]
        for row in zip(*(cells for _, cells in in_units), strict=True)
    ]
    named = dict(zip((c.removesuffix(">") for c in columns), (head.removesuffix(">") for head in heads), strict=True))
    least = [named.get(name, name) for name in least]
    return Fitted(
        None if title is None else clean(title), heads, texts,
        wide=None if wide is None else clean(wide), names=names, least=least, sentences=wide in _SENTENCES,
        wrapping=[head for head in heads if head in _SENTENCES], elsewhere=elsewhere,
    )  # fmt: skip
