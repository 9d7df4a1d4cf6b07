"""Words of a command that only the job knows: shell variables among words that are otherwise literal."""

from __future__ import annotations

from typing import Final, Self

__all__ = ["CHOSEN", "MACHINERY", "SCRIPTS", "Variable"]


class Variable(str):
    """A word that stands for a variable of the job script: `Variable("nsw")` is written as `"${nsw}"`.

    No word of a recipe is one: those are plain strings, and are quoted.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        """The variable of that name; `name[@]` for all words of an array."""
        return super().__new__(cls, f"${{{name}}}")

    def __getnewargs__(self) -> tuple[str]:
        """The name, for copies."""
        return (self[2:-1],)


SCRIPTS: Final = "scripts"  # folder beside `runs` in the campaign's folder on the site
MACHINERY: Final = Variable("nsw")  # the file of templates/job/machinery.sh beside the scripts of the campaign
CHOSEN: Final = Variable("nsw_chosen[@]")  # the arguments that an earlier stage decides
