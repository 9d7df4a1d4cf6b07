"""Secret environment variables of runs: the file that holds them, and the words that give them to a program.

nsys writes its own environment into the report, and that of every other process that it can read when it begins. So it
is started without the secrets, and the program inside it gets them from the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.profilers.variables import MACHINERY

if TYPE_CHECKING:
    from collections.abc import Sequence

PRIVATE = "private"  # folder beside `runs` in the campaign's folder on the site, closed to all but its owner
FILE = f"{PRIVATE}/secrets.sh"
RECORD_ENVIRONMENT = frozenset({"nsys"})


def with_secrets(number: int, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words, to be started with a set of the plan's secrets; 0: the words as they are."""
    return ("bash", MACHINERY, "with_secrets", str(number), *program) if number else tuple(program)
