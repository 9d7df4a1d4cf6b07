"""`--against`: a recipe as it is beside the same recipe with another program or other values, case by case.

The cases get a parameter `side`, before or after, so that all that knows parameters knows the sides too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import UsageError
from nsw.recipe.document import as_yaml, merged, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.recipe.document import Document
    from nsw.recipe.model import LockedGit

__all__ = ["AFTER", "BEFORE", "REPEATS", "SIDE", "Before", "with_sides"]

SIDE: Final = "side"  # the parameter
BEFORE: Final = "before"
AFTER: Final = "after"
_BARE: Final = "baseline"  # the kind of pass
REPEATS: Final = 3  # the least of which a verdict can follow


@dataclass(frozen=True, slots=True)
class Before:
    """What a recipe is compared with.

    Attributes:
        ref: As it was named.
        values: Of parameters that have other values there.
        files: The program's files there; none where it is the same program.
        git: The commit that these were at.
        notes: What a person should know of it.
        temporary_files: What must live as long as the files are needed.
        only_bare: Whether only passes without a profiler are done.
    """

    ref: str
    values: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    git: LockedGit | None = None
    notes: tuple[str, ...] = ()
    temporary_files: object = None
    only_bare: bool = False


def with_sides(document: Document, before: Before) -> Document:
    """A recipe with a side for each case, in blocks.

    Raises:
        UsageError: It has a parameter of that name.
    """
    matrix = document.get(("matrix",)) or {}
    points = matrix.get("include") or []
    if SIDE in matrix or any(SIDE in point for point in points):
        raise UsageError(
            f"--against: the recipe has a parameter {SIDE} of its own",
            hint="give it another name; of a campaign that has sides already, take the recipe that it was made from",
        )
    over: dict[str, Any] = {"matrix": _matrix(matrix, points, before.values)}
    if not isinstance(document.get(("interleave",)), dict):
        over["interleave"] = True
    if document.node(("repeats",)) is None:
        over["repeats"] = REPEATS
    report = document.get(("report",)) or {}
    if not report.get("compare") and not report.get("scaling"):
        over["report"] = {"compare": {"parameter": SIDE, "baseline": BEFORE}}
    if before.only_bare:
        passes = document.get(("passes",)) or []
        over["passes"] = [entry for entry in passes if entry == _BARE or _BARE in entry] or [_BARE]
    if before.files:
        over["app"] = {BEFORE: list(before.files)}
    laid = parse(as_yaml(over), f"--against {before.ref}")
    options = {**document.options, laid.file: laid.source}
    return replace(document, root=merged(document.root, laid.root), options=options)


def _matrix(matrix: Mapping[str, Any], points: list[dict[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """What is laid over the matrix: the sides, and with them the parameters that have other values before."""
    overlay: dict[str, Any] = {}
    if matrix.keys() - {"include", "exclude", "zip"} or not points:
        overlay[SIDE] = [BEFORE, AFTER]
        overlay |= {name: [value, *_listed(matrix[name])] for name, value in values.items()}
    if values:
        groups = matrix.get("zip") or []
        overlay["zip"] = [*([groups] if groups and isinstance(groups[0], str) else groups), [SIDE, *values]]
    if points:
        sides = [({**point, **values, SIDE: BEFORE}, {**point, SIDE: AFTER}) for point in points]
        overlay["include"] = [point for pair in sides for point in pair]
    return overlay


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]
