"""Files of a site that grow: what was added to them since the last look, in one round trip for all."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.transport.model import Transport

# Prints the file's size and, in base64 since output need not be text, what lies behind a place. A place below zero
# counts from the end. A file that shrank was written anew, and is read from its beginning.
_ADDED: Final = r"""
size=$(wc -c 2>/dev/null <"$1") || { echo absent; exit 0; }
at=$2
if [ "$at" -lt 0 ]; then at=$((size + at)); [ "$at" -ge 0 ] || at=0; fi
[ "$at" -le "$size" ] || at=0
echo "$at"
tail -c "+$((at + 1))" -- "$1" | head -c "$3" | base64 -w 0
"""
_SECONDS: Final = 60.0


class GrowingFiles:
    """Follows files.

    Args:
        transport: The way to the site.
        paths: The files, which need not be there yet.
        last: With how many of their last bytes to begin.
        most: Bytes of a file a look at most; what is more comes with the next.
    """

    def __init__(self, transport: Transport, paths: Sequence[str], last: int, most: int = 1 << 18) -> None:
        self._transport = transport
        self._at = dict.fromkeys(paths, -last)
        self._most = most

    def added(self) -> dict[str, bytes]:
        """What was added to each file that has anything new.

        Raises:
            UnreachableError: The site could not be asked.
        """
        commands = [["bash", "-c", _ADDED, "nsw", path, str(at), str(self._most)] for path, at in self._at.items()]
        found: dict[str, bytes] = {}
        for path, done in zip(self._at, self._transport.run_many(commands, timeout=_SECONDS), strict=True):
            if done.returncode != 0 or done.timed_out:
                raise UnreachableError(f"{path} cannot be read: {done.stderr.strip() or 'no answer'}")
            start, _, text = done.stdout.partition("\n")
            if not start.isdigit():
                continue  # it is not there yet
            try:
                content = base64.b64decode(text)
            except binascii.Error:
                raise UnreachableError(f"{path} cannot be read: its content arrived damaged") from None
            self._at[path] = int(start) + len(content)
            if content:
                found[path] = content
        return found
