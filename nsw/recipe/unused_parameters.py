"""Parts of a matrix that make no difference: repeated values, parameters that no text uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.recipe.numbers_as_written import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from nsw.errors import Diagnostic
    from nsw.recipe.document import Document
    from nsw.recipe.matrix import Case
    from nsw.recipe.parameters import Matrix

# names that hold the values of all parameters
_ALL = frozenset({"case", "run"})


def unused(document: Document, cases: list[Case], named: AbstractSet[str]) -> Iterator[Diagnostic]:
    """Warns of parameters for whose values the same is done again.

    Args:
        document: The recipe.
        cases: Its cases.
        named: The names in its texts, those of parameters' own expressions included.
    """
    names = list(cases[0].params) if cases else []
    if named & _ALL or named >= set(names):
        return
    alike: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        alike.setdefault(tuple(repr(case.params[name]) for name in names if name in named), []).append(case)
    for name in names:
        if name not in named and any(len({repr(c.params[name]) for c in same}) > 1 for same in alike.values()):
            hint = f"write {{{{ {name} }}}} where it belongs, such as in app: command, or take it out of the matrix"
            yield document.diagnostic(
                ("matrix", name), f"nothing uses {name}, so its cases are the same", hint=hint, key=True
            )


def repeated(document: Document, matrix: Matrix) -> Iterator[Diagnostic]:
    """Warns of values that are repeated in a list; in lists that vary together that has a meaning."""
    together = {name for group in matrix.zip for name in group}
    for name, values in matrix.parameters.items():
        if name in together or not isinstance(values, list):
            continue
        seen = set()
        for index, value in enumerate(values):
            if repr(plain(value)) in seen:
                message = f"{value!r} is listed a second time; it is one case"
                yield document.diagnostic(("matrix", name, index), message, hint="repeats: N runs every case N times")
            seen.add(repr(plain(value)))
