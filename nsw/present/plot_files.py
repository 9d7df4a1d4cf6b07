"""One plot of an answer as a file: SVG, or PNG where the library for it is installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Table
from nsw.errors import NswError, UsageError, did_you_mean
from nsw.present.plots import svg_of
from nsw.present.svg import FONT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.blocks import Block

__all__ = ["plot_of", "png_of"]

_ZOOM: Final = 2  # dots for each px, for a screen and a slide
_LETTER: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15" font-family="{}">{}</text></svg>'
)


def plot_of(blocks: Iterable[Block], name: str | None) -> str:
    """The plot of that name as SVG, or the first one.

    Raises:
        UsageError: There is none.
    """
    names: dict[str, None] = {}
    for block in blocks:
        if isinstance(block, Table) and (svg := svg_of(block)) is not None:
            if name in {None, block.name}:
                return svg
            names[block.name] = None
    if name is None:
        raise UsageError("there is no plot: nothing was measured that more than one point would show")
    raise UsageError(
        f"there is no plot {name}", hint=did_you_mean(name, names) or f"plots: {', '.join(names) or 'none'}"
    )


def png_of(svg: str) -> bytes:
    """The plot as PNG on white.

    Raises:
        NswError: The library that draws it is not installed, or this machine has no font.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError:
        raise NswError(
            "a plot as PNG needs the package resvg-py", hint="pip install 'nsw[png]', or write SVG: -o plot.svg"
        ) from None
    letter, blank = (resvg.svg_to_bytes(svg_string=_LETTER.format(FONT, text)) for text in ("A", ""))
    if letter == blank:
        raise NswError("no font was found, so that a PNG would have no text", hint="write SVG: -o plot.svg")
    return bytes(resvg.svg_to_bytes(svg_string=svg, background="white", zoom=_ZOOM))
