"""What of a recipe and its site a batch system understands: keys that it has no word for, lines of other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.errors import Diagnostic
    from nsw.recipe.load import LoadedRecipe
    from nsw.schedulers.adapter import Adapter
    from nsw.site.load import LoadedSite

# how the directive lines of the known batch systems begin
MARKERS: Final = ("#SBATCH", "#PBS", "#COBALT", "#BSUB", "#$ ", "#FLUX")
# keys of `resources` and of sites that not every system has a word for
_OPTIONAL: Final = ("queue", "partition", "account", "qos", "gres", "reservation", "constraint", "exclusive")


def own_lines(adapter: Adapter, lines: Iterable[str]) -> list[str]:
    """The lines of `extra` less those of other batch systems."""
    return [line for line in lines if not _of_another(adapter, line)]


def refused_keys(adapter: Adapter, loaded: LoadedRecipe, place: LoadedSite) -> list[Diagnostic]:
    """A diagnostic for each key that this batch system has no word for."""
    return [
        document.document.diagnostic(
            (*path, key),
            f"{adapter.name} has no word for {key}",
            key=True,
            hint=f"leave it out, or write a line of {adapter.name}'s own: extra: ['{adapter.marker} ...']",
        )
        for document, path in _places(loaded, place)
        for key in _OPTIONAL
        if key not in adapter.keys and document.document.node((*path, key)) is not None
    ]


def foreign_lines(adapter: Adapter, loaded: LoadedRecipe, place: LoadedSite) -> list[Diagnostic]:
    """A warning for each line of `extra` that is another batch system's and is left out."""
    found = []
    for (document, path), lines in zip(
        _places(loaded, place), (loaded.recipe.resources.extra, place.site.extra), strict=True
    ):
        for number, line in enumerate(lines):
            if _of_another(adapter, line):
                found.append(
                    document.document.diagnostic(
                        (*path, "extra", number),
                        f"this line is left out: it is none of {adapter.name}'s, which begin with {adapter.marker}",
                    )
                )
    return found


def _of_another(adapter: Adapter, line: str) -> bool:
    return not line.startswith(adapter.marker) and line.startswith(MARKERS)


def _places(loaded: LoadedRecipe, place: LoadedSite) -> Iterator[tuple[LoadedRecipe | LoadedSite, tuple[str, ...]]]:
    yield loaded, ("resources",)
    yield place, ("sites", place.site.name)
