"""What of a recipe and its site a batch system understands: keys that it has no word for, lines of other systems."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.errors import Diagnostic, NswError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.plan.model import Job
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Resources
    from nsw.schedulers.adapter import Adapter
    from nsw.site.load import LoadedSite
    from nsw.site.model import Site

# keys of `resources` and of sites that not every system has a word for
_OPTIONAL: Final = ("queue", "partition", "account", "qos", "gres", "reservation", "constraint", "exclusive")


def refused_keys(adapter: Adapter, loaded: LoadedRecipe, place: LoadedSite) -> list[Diagnostic]:
    """A diagnostic for each key that asks for what this batch system has no word for.

    A lockfile writes every key with its value: `exclusive: false` asks for nothing.
    """
    return [
        document.document.diagnostic(
            (*path, key),
            f"{adapter.name} has no option for {key}",
            key=True,
            hint=f"leave it out, or write a line of {adapter.name}'s own: extra: ['{adapter.marker} ...']",
        )
        for document, path, values in _places(loaded, place)
        for key in _OPTIONAL
        if key not in adapter.keys and document.document.node((*path, key)) is not None and getattr(values, key, None)
    ]


def foreign_lines(adapter: Adapter, loaded: LoadedRecipe, place: LoadedSite) -> list[Diagnostic]:
    """A warning for each line of `extra` that is another batch system's and is left out."""
    found = []
    for document, path, values in _places(loaded, place):
        for number, line in enumerate(values.extra):
            if not adapter.own_lines([line]):
                found.append(
                    document.document.diagnostic(
                        (*path, "extra", number),
                        f"this line is ignored: lines of {adapter.name} begin with {adapter.marker}",
                    )
                )
    return found


def refused_line(adapter: Adapter, job: Job, scratch: str, refusal: RefusedError) -> str | None:
    """The line of `extra` that a refusal of `directives` is about; None where no single line is."""

    def is_refused(extra: tuple[str, ...]) -> bool:
        try:
            adapter.directives(replace(job, resources=replace(job.resources, extra=extra)), scratch)
        except RefusedError as fault:
            return fault.message == refusal.message
        except NswError:
            pass
        return False

    if refusal.key != "extra" or is_refused(()):
        return None
    return next((line for line in job.resources.extra if is_refused((line,))), None)


def place_of_line(
    loaded: LoadedRecipe, place: LoadedSite, line: str
) -> tuple[LoadedRecipe | LoadedSite, tuple[str | int, ...]] | None:
    """The document with this line of `extra`, and its path there."""
    for document, path, values in _places(loaded, place):
        if line in values.extra:
            return document, (*path, "extra", list(values.extra).index(line))
    return None


def _places(
    loaded: LoadedRecipe, place: LoadedSite
) -> Iterator[tuple[LoadedRecipe | LoadedSite, tuple[str, ...], Resources | Site]]:
    """The documents that ask for resources, with the path there and the values."""
    yield loaded, ("resources",), loaded.recipe.resources
    yield place, ("sites", place.site.name), place.site
