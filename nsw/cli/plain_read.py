"""`nsw read FILE... [--table NAME] [--format NAME] [--output PATH]` without the parser of command lines.

To load that parser takes longer than to read a small report. Whatever is written in another way is left to it: it alone
reports what is wrong with a command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.cli.output import FORMATS, chosen_format, output_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VALUED: Final = {
    "--table": "table", "-t": "table", "--format": "format", "-f": "format", "--output": "output", "-o": "output",
}  # fmt: skip


def plain_read(arguments: Sequence[str]) -> Callable[[], int] | None:
    """What carries out the command line; None where the parser is to read it."""
    if arguments[:1] != ["read"]:
        return None
    files: list[Path] = []
    given: dict[str, list[str]] = {"table": [], "format": [], "output": []}
    words = iter(arguments[1:])
    for word in words:
        if word in _VALUED:
            value = next(words, "-")
            if value[:1] in ("", "-"):
                return None
            given[_VALUED[word]].append(value)
        elif word == "--json":
            given["format"].append("json")
        elif word == "-" or word[:1] not in ("", "-"):
            files.append(Path(word))
        else:
            return None
    if not files or max(len(given["format"]), len(given["output"])) > 1 or not {*given["format"]} <= {*FORMATS}:
        return None

    def carry_out() -> int:
        from nsw.cli import reading

        output = output_path(given["output"][0]) if given["output"] else None
        chosen = chosen_format(given["format"][0] if given["format"] else None, output)
        return reading.read(files, given["table"], formats=False, format=chosen, output=output)

    return carry_out
