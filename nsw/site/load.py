"""Sites from the files that define them: the user's own first, the built-in ones last."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import Diagnostic, InputError, UsageError, did_you_mean
from nsw.recipe.document import Document, in_order
from nsw.recipe.expressions import Expression, find_name
from nsw.recipe.faults import Fault, shown
from nsw.recipe.load import read_document
from nsw.recipe.validate import validate
from nsw.site.files import BUILTIN, FILE_NAME, sites_files, user_file
from nsw.site.model import Site, SitesFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.recipe.nodes import Path as NodePath

_SCALARS = ("name", "account", "queue", "partition", "qos", "scheduler")  # what `scratch` may use

_OF_GRES = frozenset({"gpus", "nodes"})


@dataclass(frozen=True, slots=True)
class LoadedSite:
    """A site without faults.

    Attributes:
        site: The site, its name filled in and `scratch` rendered (variables of the shell left as they are).
        document: The file; `document.diagnostic(("sites", site.name, key), ...)` points at a key.
        origin: Where it comes from, for people: the file's path, or `built in`.
    """

    site: Site
    document: Document
    origin: str

    @property
    def folder(self) -> Path:
        """The folder that the site's templates are relative to."""
        return Path(self.document.file).parent


def load_site(name: str, files: Sequence[Path] | None = None) -> LoadedSite:
    """The site called `name` from the first file that has it.

    Args:
        name: Its name.
        files: Sites files named on the command line, searched before all others.

    Raises:
        InputError: One of the files cannot be read or has faults, wherever the site is.
        UsageError: No file has it; the message lists those there are.
    """
    sites = list_sites(files)
    for found in sites:
        if found.site.name == name:
            return found
    known = [found.site.name for found in sites]
    listed = "".join(f"\n  {found.site.name} ({found.origin})" for found in sites)
    hint = did_you_mean(name, known) or f"define it in {FILE_NAME}, in the current folder or in {user_file()}"
    raise UsageError(f"no site is called {shown(name)}; there are:{listed}", hint=hint)


def list_sites(files: Sequence[Path] | None = None) -> list[LoadedSite]:
    """Every site, in the order of the search; of sites of one name the first.

    Raises:
        InputError: One of the files cannot be read or has faults; all of them are told.
    """
    found: dict[str, LoadedSite] = {}
    faults: list[Diagnostic] = []
    for path in sites_files(files):
        try:
            for site in read_sites(path):
                found.setdefault(site.site.name, site)
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    return list(found.values())


def read_sites(path: Path) -> list[LoadedSite]:
    """The sites of one file.

    Raises:
        InputError: With every fault found, in the order of the file.
    """
    document = read_document(path, "sites file")
    origin = "built in" if path == BUILTIN else str(path)
    parsed, faults, read_as = validate(SitesFile, document)
    faults += _faults(read_as, path.parent)
    if parsed is None or faults:
        raise InputError(in_order(faults))
    return [LoadedSite(_complete(site, name), document, origin) for name, site in parsed.sites.items()]


def _complete(site: Site, name: str) -> Site:
    """The site with what is known only now: its name, its scratch folder, this machine's interpreter and GPUs."""
    site = site.model_copy(update={"name": name})
    update: dict[str, object] = {}
    if site.scratch is not None:
        update["scratch"] = Expression.parse(site.scratch).render(_scalars(site.model_dump()))
    if site.transport.kind == "local" and site.python is None:
        update["python"] = sys.executable or None
    if site.scheduler == "local" and site.transport.kind == "local" and site.gpus.per_node is None:
        update["gpus"] = site.gpus.model_copy(update={"per_node": "auto"})
    return site.model_copy(update=update)


def _scalars(values: Mapping[str, object]) -> dict[str, object]:
    return {key: values[key] for key in _SCALARS if values.get(key) is not None}


def _faults(document: Document, folder: Path) -> Iterator[Diagnostic]:
    """Faults of a site's parts taken together."""
    for path, site in document.find("sites", "*"):
        if not isinstance(site, dict):
            continue
        if "name" in site:
            hint = f"the name is the key above: {shown(path[-1])[1:-1]}"
            yield document.diagnostic((*path, "name"), "a site's name is not set below it", hint=hint, key=True)
        yield from _scratch_names(document, path, site)
        yield from _gres_names(document, path, site)
        for block, file in document.find(*path, "templates", "*"):
            if isinstance(file, str) and "\0" not in file and not (folder / file).is_file():
                yield document.diagnostic(block, f"there is no file {shown(file)} beside the sites file")


def _gres_names(document: Document, site_path: NodePath, site: dict[str, object]) -> Iterator[Diagnostic]:
    """A site's words for GPUs are the same for all recipes: they know no parameters."""
    gres = site.get("gres")
    if not isinstance(gres, str):
        return
    path = (*site_path, "gres")
    try:
        names = Expression.parse(gres).names
    except Fault as fault:
        yield document.diagnostic(path, fault.message, hint=fault.hint)
        return
    for name in sorted(names - _OF_GRES):
        offset = find_name(document.raw(path), name)
        mark = document.mark(path) if offset is None else document.mark_in_raw(path, offset, len(name))
        hint = did_you_mean(name, _OF_GRES) or "gpus is how many GPUs a node, nodes how many nodes"
        yield document.at(mark, f"the expression uses '{name}', which gres does not know", hint=hint)


def _scratch_names(document: Document, site_path: NodePath, site: dict[str, object]) -> Iterator[Diagnostic]:
    scratch = site.get("scratch")
    known = _scalars(site | {"name": site_path[-1]})
    if not isinstance(scratch, str):
        return
    path = (*site_path, "scratch")
    try:
        names = Expression.parse(scratch).names
        if names <= known.keys():
            Expression.parse(scratch).render(known)
    except Fault as fault:
        yield document.diagnostic(path, fault.message, hint=fault.hint)
        return
    for name in sorted(names - known.keys()):
        offset = find_name(document.raw(path), name)
        mark = document.mark(path) if offset is None else document.mark_in_raw(path, offset, len(name))
        hint = (
            did_you_mean(name, known) or f"set '{name}' of this site"
            if name in _SCALARS
            else did_you_mean(name, _SCALARS)
        )
        yield document.at(mark, f"the expression uses '{name}', which this site does not set", hint=hint)
