"""A recipe from its file: parsed, the site's section laid over it, validated and checked as a whole."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import MOST_SHOWN, Diagnostic, InputError, first_of
from nsw.recipe import wrong_document as mistaken
from nsw.recipe.check import check, check_matrix
from nsw.recipe.document import LARGEST, Document, in_order, parse
from nsw.recipe.faults import shown
from nsw.recipe.model import Recipe
from nsw.recipe.overrides import Overrides, choose_cases, overridden
from nsw.recipe.shipped_files import taken_from_nsw
from nsw.recipe.unshipped_files import unshipped
from nsw.recipe.validate import validate
from nsw.safe_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.recipe.matrix import Case

MOST_SITES: Final = 1000  # of a file: each section is validated with the whole recipe
_NONE = Overrides()
_NOT_PER_SITE = frozenset({"nsw", "name", "lock", "sites"})


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe without faults.

    Attributes:
        recipe: The recipe as it holds for `site`.
        document: Its text with the places of all values; `document.diagnostic(path, ...)` points at one.
        path: The file.
        folder: Its folder: files of the recipe are relative to it.
        site: The site whose section was laid over it, if any.
        cases: The matrix, expanded.
        warnings: What is no fault and yet probably not meant.
        left_out: Cases of the matrix that the command line left out.
    """

    recipe: Recipe
    document: Document
    path: Path
    folder: Path
    site: str | None
    cases: list[Case]
    warnings: list[Diagnostic] = field(default_factory=list)
    left_out: list[Case] = field(default_factory=list)


def load_recipe(
    path: Path, site: str | None = None, options: Overrides | None = None, *, with_files: bool = True
) -> LoadedRecipe:
    """Load a recipe.

    Args:
        path: The file.
        site: Name of the site it is to run on; the section `sites: NAME:` is laid over the recipe.
        options: What a command line changes of it.
        with_files: Whether the application's files must be there.

    Raises:
        InputError: With every fault found, in the order of the file.
        UsageError: An option names what the recipe has not.
    """
    return _loaded(read_document(path, "recipe"), path, site, path.parent if with_files else None, options or _NONE)


def load_recipe_text(text: str, file: str = "recipe.yaml", site: str | None = None) -> LoadedRecipe:
    """Load a recipe from text; its files are not looked for. Raises as `load_recipe` does."""
    return _loaded(parse(text, file), Path(file), site, None)


def read_document(path: Path, wanted: mistaken.Wanted) -> Document:
    """Read and parse a YAML file.

    Raises:
        InputError: It cannot be read, is not UTF-8, is not YAML, or is clearly something else than what is wanted.
    """
    _refuse(mistaken.by_name(path.name), path, wanted)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            data = file.read(4 * LARGEST + 4)  # UTF-8; a file of gigabytes is not read whole
    except OSError as fault:
        raise InputError([Diagnostic(f"{path}: cannot be read: {fault.strerror or fault}")]) from None
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise InputError(
            [Diagnostic(f"{path}:{line}: this is not UTF-8 text", hint="save the file as UTF-8")]
        ) from None
    _refuse(mistaken.by_text(text, path.name), path, wanted)
    document = parse(text, str(path))
    _refuse(mistaken.by_keys(document.data, wanted), path, wanted)
    return document


def _refuse(other: mistaken.Other | None, path: Path, wanted: mistaken.Wanted) -> None:
    if other is not None:
        message, hint = mistaken.sentence(other, wanted)
        raise InputError([Diagnostic(f"{path}: {message}", hint=hint)])


def _loaded(
    document: Document, path: Path, site: str | None, folder: Path | None, options: Overrides = _NONE
) -> LoadedRecipe:
    chosen = overridden(document.overlaid(("sites", site)) if site is not None else document, options)
    recipe, faults, read_as = validate(Recipe, chosen)
    faults += check(read_as, folder)
    faults += islice(_faults_of_sites(document, site, folder), MOST_SHOWN + 1)
    cases: list[Case] = []
    warnings: list[Diagnostic] = []
    if recipe is not None and not faults:
        cases, faults, warnings = check_matrix(chosen, recipe)
        if folder is not None:
            warnings += unshipped(chosen, recipe.app, folder)
            warnings += taken_from_nsw(chosen, folder, recipe.app.files)
    if recipe is None or faults:
        raise InputError(in_order(faults))
    kept = choose_cases(cases, options)
    names = {case.id for case in kept}
    left_out = [case for case in cases if case.id not in names]
    told = list(first_of(in_order(warnings)))
    return LoadedRecipe(recipe, chosen, path, folder or path.parent, site, kept, told, left_out)


def _faults_of_sites(document: Document, chosen: str | None, folder: Path | None) -> Iterator[Diagnostic]:
    """Faults inside the sections of sites, also of those that are not asked for."""
    sections = document.node(("sites",))
    if sections is not None and isinstance(sections.value, dict) and len(sections.value) > MOST_SITES:
        yield document.diagnostic(("sites",), f"there are more than {MOST_SITES:,} sites", key=True)
        return
    for path, section in document.find("sites", "*"):
        if not isinstance(section, dict):
            continue
        for key in section:
            if key in _NOT_PER_SITE:
                yield document.diagnostic((*path, key), f"a site's section cannot set {shown(key)}", key=True)
        if path[-1] == chosen or _NOT_PER_SITE & section.keys():
            continue
        over = document.overlaid(path)
        _, faults, read_as = validate(Recipe, over)
        span = document.root.child("sites").child(path[-1]).span  # type: ignore[union-attr]  # just found
        for fault in [*faults, *check(read_as, folder)]:
            if fault.mark and (span.line, span.column) <= (fault.mark.line, fault.mark.column) < (
                span.end_line,
                span.end_column,
            ):
                yield fault
