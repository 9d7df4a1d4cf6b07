"""A cell that gives up its middle: template names differ at their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

_LEAST = 12  # characters that a column of names keeps


class Middle:
    """A text of one line, shown whole where there is room and else with `…` in its middle."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """From a few characters to all of it."""
        from rich.cells import cell_len
        from rich.measure import Measurement

        length = min(cell_len(self._text), options.max_width)
        return Measurement(min(_LEAST, length), length)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What fits."""
        from rich.text import Text

        yield Text(elided(self._text, options.max_width), no_wrap=True, overflow="ellipsis")


def elided(text: str, width: int) -> str:
    """At most `width` columns of a text: its beginning and its end."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    kept = max(width - 1, 0)
    head, tail = kept - kept // 2, kept // 2
    short = text[:head] + "…" + (text[-tail:] if tail else "")
    while cell_len(short) > width and head + tail:  # characters of two columns
        head, tail = (head - 1, tail) if head > tail else (head, tail - 1)
        short = text[:head] + "…" + (text[-tail:] if tail else "")
    return short


def distinct(texts: Sequence[str], width: int) -> list[str]:
    """The texts in this width; those that would look alike though they differ are numbered."""
    marks = _marks(texts, width)
    return [mark + elided(text, max(width - len(mark), 0)) for mark, text in zip(marks, texts, strict=True)]


def numbered(texts: Sequence[str], width: int) -> list[str]:
    """The whole texts; those that would look alike in this width though they differ are numbered."""
    return [mark + text for mark, text in zip(_marks(texts, width), texts, strict=True)]


def _marks(texts: Sequence[str], width: int) -> list[str]:
    short = [elided(text, width) for text in texts]
    clashes: dict[str, list[str]] = {}
    for text, cut in zip(texts, short, strict=True):
        if text not in clashes.setdefault(cut, []):
            clashes[cut].append(text)
    return [
        "" if len(clashes[cut]) == 1 else f"[{clashes[cut].index(text) + 1}] "
        for text, cut in zip(texts, short, strict=True)
    ]
