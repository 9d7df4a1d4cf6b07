"""Messages of the service on stderr, where nothing live is drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.present.text_of_others import say

if TYPE_CHECKING:
    from nsw.service.events import Message


def show(message: Message) -> None:
    """Print a message on stderr."""
    if message.level == "info":
        say(message.text, file=sys.stderr)
    else:
        warn(message.text, message.level)


def warn(text: str, level: str = "warning") -> None:
    """Print a warning on stderr."""
    from nsw.present.terminal import console

    out = console(sys.stderr)
    out.print(f"{level}: {text}", style="yellow" if level == "warning" else "red")
