"""Keep a terminal from printing ^C into a picture that is redrawn: the line would wrap, and a part of it stay."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

_LFLAG: Final = 3  # of the list that termios.tcgetattr gives


class KeyEcho:
    """Switches the echo of control characters off and on; nothing where nsw is not in a terminal's foreground."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def off(self) -> None:
        """From now on."""
        if self._before is not None or (fd := _terminal()) is None:
            return
        import termios

        self._before = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
        quiet[_LFLAG] &= ~termios.ECHOCTL
        termios.tcsetattr(fd, termios.TCSANOW, quiet)

    def on(self) -> None:
        """As it was."""
        before, self._before = self._before, None
        if before is None or (fd := _terminal()) is None:
            return
        import termios

        termios.tcsetattr(fd, termios.TCSANOW, before)


def _terminal() -> int | None:
    """Standard input, where it is the terminal whose foreground this is; a change of another would stop nsw."""
    try:
        fd = sys.stdin.fileno()
        return fd if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None
