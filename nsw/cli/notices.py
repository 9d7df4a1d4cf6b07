"""Sentences and messages of the service on stderr, where nothing live is drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsw.campaign.events import Message


def tell(text: str) -> None:
    """Print a sentence on stderr: a terminal breaks it between words, with commands as the user types them."""
    from nsw.present.terminal import console

    console(sys.stderr).print(text)


def show(message: Message) -> None:
    """Print a message on stderr."""
    if message.level == "info":
        tell(message.text)
    else:
        warn(message.text, message.level)


def warn(text: str, level: str = "warning") -> None:
    """Print a warning on stderr."""
    from nsw.present.terminal import console

    out = console(sys.stderr)
    out.print(f"{level}: {text}", style="yellow" if level == "warning" else "red")
