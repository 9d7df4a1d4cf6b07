"""Sites from the files that define them; of one name the first, in the order of the search."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsw.errors import Diagnostic, InputError, UsageError, did_you_mean
from nsw.recipe.checks import name_mark, validate_document
from nsw.recipe.document import LARGEST, Document, KeyPath, in_order
from nsw.recipe.expressions import Expression
from nsw.recipe.load import MOST_SITES, read_document
from nsw.recipe.units import Fault, show_value
from nsw.resources import recipes_folder
from nsw.safe_files import open_regular
from nsw.site.model import FILL, Site, SitesFile
from nsw.site.names import BUILTIN, LOCAL, searched_files, unsearched_file_hint, user_file
from nsw.site.topology import parse_topology

_SCALARS = ("name", "account", "queue", "partition", "qos", "scheduler")  # what `scratch` may use

_BUILT_IN = "built in"
_OF_GRES = frozenset({"gpus", "nodes"})


@dataclass(frozen=True, slots=True)
class LoadedSite:
    """A site without faults.

    Attributes:
        site: The site, its name filled in and `scratch` rendered (variables of the shell left as they are).
        document: The file; `document.diagnostic(("sites", site.name, key), ...)` points at a key.
        origin: Where it comes from, for people: the file's path, or `built in`.
        requested: Whether its file was asked for by name.
    """

    site: Site
    document: Document
    origin: str
    requested: bool = False

    @property
    def folder(self) -> Path:
        """The folder that the site's templates are relative to."""
        return Path(self.document.file).parent


def load_site(
    name: str | None, files: Sequence[Path] | None = None, warn: Callable[[str], object] = lambda _text: None
) -> LoadedSite:
    """The site called `name` from the first file that has it.

    Args:
        name: Its name; None: the default of the first file that has one, else `local`.
        files: Sites files named on the command line, searched before all others.
        warn: Called with each warning: of files that are not read.

    Raises:
        InputError: One of the files cannot be read or has faults, wherever the site is.
        UsageError: No file has it; the message lists those there are.
    """
    sites_by_name = {loaded.site.name: loaded for loaded in list_sites(files, warn)}
    if name is None:
        name = next((loaded.site.name for loaded in sites_by_name.values() if loaded.site.default), None)
        if name is None and (text := unsearched_file_hint(files)):
            warn(f"no site is named, so {LOCAL} is used: {text}")
        name = name or LOCAL
    if name in sites_by_name:
        return sites_by_name[name]
    listed = "".join(f"\n  {loaded.site.name} ({loaded.origin})" for loaded in sites_by_name.values())
    near = " ".join(filter(None, (_shipped_file(name), did_you_mean(name, sites_by_name), unsearched_file_hint(files))))
    own_file = f"in {path}" if (path := user_file()) is not None else "in a file that `--sites` or NSW_SITES names"
    raise UsageError(f"there is no site {show_value(name)}; there are:{listed}", hint=near or f"define it {own_file}")


def _shipped_file(name: str) -> str | None:
    """How to use the site of this name that nsw ships; None: it ships none."""
    for file in sorted((recipes_folder() / "sites").glob("*.yaml")):
        if name in {loaded.site.name for loaded in read_sites(file)}:
            return f"nsw ships it: `--sites {file}` uses it, in a copy with your account in it."
    return None


def list_sites(
    files: Sequence[Path] | None = None, warn: Callable[[str], object] = lambda _text: None
) -> list[LoadedSite]:
    """Every site, in the order of the search, the built-in ones last; of sites of one name the first.

    Args:
        files: Sites files named on the command line.
        warn: Called with a warning of each file that is not read.

    Raises:
        InputError: One of the files cannot be read or has faults; all of them are told.
    """
    sites: dict[str, LoadedSite] = {}
    faults: list[Diagnostic] = []
    for source in searched_files(files):
        if source.unsafe:
            warn(
                f"{source.path} is ignored, because another user may have written it: {source.unsafe}."
                f" Make it and its folder yours alone (chown, chmod go-w), or name it: `--sites {source.path}`"
            )
            continue
        try:
            for site in read_sites(source.path, requested=source.requested):
                sites.setdefault(site.site.name, site)
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    return list(sites.values())


def read_sites(path: Path, *, requested: bool = False) -> list[LoadedSite]:
    """The sites of one file; `named` as in LoadedSite.

    Raises:
        InputError: With every fault found, in the order of the file.
    """
    document = read_document(path, "sites file")
    origin = _BUILT_IN if path == BUILTIN else str(path)
    sites = document.node(("sites",))
    if sites is not None and isinstance(sites.value, dict) and len(sites.value) > MOST_SITES:
        raise InputError([document.diagnostic(("sites",), f"there are more than {MOST_SITES:,} sites", key=True)])
    parsed, faults, read_as = validate_document(SitesFile, document)
    faults += _site_faults(read_as, path.parent)
    if parsed is None or faults:
        raise InputError(in_order(faults))
    return [
        LoadedSite(_fill_in_site(site, name, path.parent), document, origin, requested)
        for name, site in parsed.sites.items()
    ]


def _fill_in_site(site: Site, name: str, folder: Path) -> Site:
    """The site with what is known only now: its name, scratch folder and racks, this machine's interpreter and GPUs."""
    site = site.model_copy(update={"name": name})
    update: dict[str, object] = {}
    if site.scratch is not None:
        update["scratch"] = Expression.parse(site.scratch).render(_scalar_values(site.model_dump()))
    if isinstance(site.topology, str):
        update["topology"] = _read_topology(folder / site.topology)
    if site.transport.kind == "local" and site.python is None:
        update["python"] = sys.executable or None
    if site.scheduler == "local" and site.transport.kind == "local" and site.gpus.per_node is None:
        update["gpus"] = site.gpus.model_copy(update={"per_node": "auto"})
    return site.model_copy(update=update)


def _read_topology(path: Path) -> dict[str, str]:
    """The racks in a file of nodes.

    Raises:
        Fault: It cannot be read, or is no such file.
    """
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST)
    except (OSError, ValueError) as fault:
        raise Fault(f"{path} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    try:
        return parse_topology(text)
    except Fault as fault:
        raise Fault(f"{path}: {fault.message}", hint=fault.hint) from None


def _scalar_values(values: Mapping[str, object]) -> dict[str, object]:
    return {key: values[key] for key in _SCALARS if values.get(key) is not None}


def _site_faults(document: Document, folder: Path) -> Iterator[Diagnostic]:
    """Faults of a site's parts taken together, and of the sites taken together."""
    defaults = [path for path, value in document.find("sites", "*", "default") if value is True]
    for path in defaults if len(defaults) > 1 else ():
        other_names = ", ".join(show_value(other_path[1])[1:-1] for other_path in defaults if other_path != path)
        hint = f"{other_names} is the default too" if len(defaults) == 2 else f"{other_names} are too"
        yield document.diagnostic(path, "only one site in a file can be the default", hint=hint)
    for path, site in document.find("sites", "*"):
        if not isinstance(site, dict):
            continue
        if "name" in site:
            hint = f"the name is the key above: {show_value(path[-1])[1:-1]}"
            yield document.diagnostic((*path, "name"), "a site's name is not set below it", hint=hint, key=True)
        yield from _scratch_names(document, path, site)
        yield from _gres_names(document, path, site)
        limits = site.get("limits")
        if isinstance(limits, dict) and limits.get("runs_per_job") == FILL and limits.get("max_walltime") is None:
            yield document.diagnostic(
                (*path, "limits", "runs_per_job"),
                "fill packs a job up to max_walltime, which this site does not set",
                hint="set limits.max_walltime, or runs_per_job to a number",
            )
        if isinstance(site.get("topology"), str):
            try:
                _read_topology(folder / site["topology"])
            except Fault as fault:
                yield document.diagnostic((*path, "topology"), fault.message, hint=fault.hint)
        for block, file in document.find(*path, "templates", "*"):
            if isinstance(file, str) and "\0" not in file and not (folder / file).is_file():
                yield document.diagnostic(block, f"there is no file {show_value(file)} beside the sites file")


def _gres_names(document: Document, site_path: KeyPath, site: dict[str, object]) -> Iterator[Diagnostic]:
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
        hint = did_you_mean(name, _OF_GRES) or "gpus is how many GPUs a node, nodes how many nodes"
        message = f"the expression uses '{name}', which gres does not know"
        yield document.at(name_mark(document, path, name), message, hint=hint)


def _scratch_names(document: Document, site_path: KeyPath, site: dict[str, object]) -> Iterator[Diagnostic]:
    scratch = site.get("scratch")
    scalars = _scalar_values(site | {"name": site_path[-1]})
    if not isinstance(scratch, str):
        return
    path = (*site_path, "scratch")
    try:
        names = Expression.parse(scratch).names
        if names <= scalars.keys():
            Expression.parse(scratch).render(scalars)
    except Fault as fault:
        yield document.diagnostic(path, fault.message, hint=fault.hint)
        return
    for name in sorted(names - scalars.keys()):
        near = did_you_mean(name, scalars if name in _SCALARS else _SCALARS)
        hint = near or (f"set '{name}' of this site" if name in _SCALARS else None)
        message = f"the expression uses '{name}', which this site does not set"
        yield document.at(name_mark(document, path, name), message, hint=hint)
