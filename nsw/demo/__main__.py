"""Replays one recording in the current folder, in the place of the program: `python -m nsw.demo NAME`.

Leaves the report that the profiler left, and prints what the program printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nsw.demo import extract, find, recordings
from nsw.errors import Exit, NswError


def main(words: list[str]) -> int:
    """Extract the named recording into the current folder and print its output; returns the exit code."""
    if len(words) != 1:
        print(f"usage: python -m nsw.demo NAME\n  {' '.join(r.name for r in recordings())}", file=sys.stderr)
        return Exit.BAD_INPUT
    try:
        for path in extract(find(words[0]), Path()):
            if path.suffix == ".out":
                sys.stdout.write(path.read_text(encoding="utf-8"))
                path.unlink()
    except NswError as error:
        print(f"error: {error.render()}", file=sys.stderr)
        return error.exit_code
    return Exit.GOOD


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
