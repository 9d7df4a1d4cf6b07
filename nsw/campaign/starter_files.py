"""The first files of a user: a recipe from a command line or a shipped one, a site from what its machine answers."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

from nsw.errors import InputError, UsageError
from nsw.site.names import FIRST_TRANSPORT

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FirstRecipe:
    """A recipe that was written.

    Attributes:
        path: Its file.
        brings: The files beside it that it brings along.
        site: The site that it was made for.
        has_gpus: Whether that site has GPUs, so that the recipe asks for one.
        launcher: The launcher that nsw starts the program under; None where the command line has none.
        warnings: What its runs would not find, a line each.
    """

    path: Path
    brings: Sequence[str]
    site: str
    has_gpus: bool
    launcher: str | None
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class FirstSite:
    """A site made of what its machine answered.

    Attributes:
        path: The sites file that it is for.
        name: Its name.
        text: Its lines as they are below `sites:`.
        found: What the machine answered, a line each.
        todo: What a person has to fill in or check.
    """

    path: Path
    name: str
    text: str
    found: Sequence[str]
    todo: Sequence[str]
    _before: str

    def write(self) -> None:
        """Put it at the end of its file, in one step and only if the file then holds it.

        Raises:
            UsageError: The file's own layout lets no site be put at its end.
        """
        target = self.path.resolve()  # of a link the file, which may be kept elsewhere
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = mkstemp(dir=target.parent, prefix=".nsw-init-", suffix=".yaml")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
                file.write((self._before.rstrip("\n") + "\n" if self._before else "nsw: 1\nsites:\n") + self.text)
            if self.name not in _names(Path(made)):
                raise UsageError(
                    f"{self.path} has a layout to which nsw cannot append a site",
                    hint="add the site's lines by hand",
                )
            Path(made).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            Path(made).replace(target)
        finally:
            Path(made).unlink(missing_ok=True)


def write_recipe(words: Sequence[str], path: Path, *, force: bool) -> FirstRecipe:
    """Write a recipe for a command line.

    Raises:
        UsageError: The file is there already.
    """
    from nsw.campaign.planning import missing_programs
    from nsw.campaign.site_facts import facts
    from nsw.recipe.load import load_recipe, load_recipe_text
    from nsw.recipe.program_files import files_of
    from nsw.recipe.starter import recipe_for, words_of
    from nsw.site.load import load_site

    _require_free(path, force=force)
    place = load_site(os.environ.get("NSW_SITE") or None)
    gpus = facts(place).gpus_per_node != 0  # None: a site that does not say how many it has
    files = files_of(words_of(words), path.parent)
    text = recipe_for(words, files, gpus=gpus, file=str(path))
    load_recipe_text(text, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    loaded = load_recipe(path, place.site.name)
    kind = loaded.recipe.app.launcher.kind
    missing = [one.message for one in (*loaded.warnings, *missing_programs(loaded, place.site))]
    return FirstRecipe(path, files, place.site.name, gpus, None if kind == "none" else kind, missing)


def copy_shipped(name: str, path: Path | None, *, force: bool) -> list[Path]:
    """Copy a shipped recipe with the files that it names; the files that were written.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.campaign.planning import shipped_recipe
    from nsw.recipe.load import load_recipe

    source = shipped_recipe(name)
    target = path or Path(source.name)
    files = load_recipe(source).recipe.app.files
    wanted = [(source, target), *((source.parent / f, target.parent / f) for f in files)]
    others = [there for here, there in wanted[1:] if _is_taken(there) and not (there.exists() and _same(here, there))]
    for there in (target, *others):
        _require_free(there, force=force)
    for here, there in wanted:
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, dirs_exist_ok=True)
        else:
            shutil.copyfile(here, there)
    return [there for _, there in wanted]


def survey_site(name: str, host: str | None, path: Path | None, *, force: bool) -> FirstSite:
    """Ask this machine or a host what it is; nothing is written yet.

    Args:
        name: The site's name.
        host: A host of the user's ssh; None: this machine.
        path: The sites file; None: the user's own.
        force: Whether the site may take the place of one of that name.

    Raises:
        UsageError: The file has such a site already, or there is no place for one, or the batch system is none that
            nsw knows.
        UnreachableError: The host does not answer.
    """
    from nsw.campaign.known_sites import known_site, shipped_site
    from nsw.campaign.site_starter import site_for
    from nsw.campaign.site_survey import survey
    from nsw.site.names import user_file
    from nsw.transport.model import connect

    target = path or user_file()
    if target is None:
        raise UsageError("you have no home folder for the sites file", hint="name the file with --output, or set HOME")
    before = _sites_before(target, name, force=force)
    data = {"transport": {"kind": "local"} if host is None else {"kind": FIRST_TRANSPORT, "host": host}}
    with closing(connect(data)) as transport:
        answers = survey(transport, host)
    known = known_site(answers)
    text, found, todo = site_for(name, answers) if known is None else shipped_site(known, name, answers)
    return FirstSite(target, name, text, found, todo, before)


def _sites_before(path: Path, name: str, *, force: bool) -> str:
    """What a sites file holds; nothing where it is to be made, or made anew."""
    if not path.exists():
        return ""
    from nsw.site.load import read_sites

    known = [one.site.name for one in read_sites(path, named=True)]
    if name in known:
        if not force:
            raise UsageError(
                f"{path} has a site {name}", hint="choose another name or --output FILE; --force replaces the site"
            )
        if known != [name]:
            raise UsageError(
                f"{path} has a site {name} and others; nsw does not rewrite the file",
                hint="delete the site there first, or name another file: --output FILE",
            )
        return ""
    return path.read_text(encoding="utf-8")


def _names(path: Path) -> list[str]:
    from nsw.site.load import read_sites

    try:
        return [one.site.name for one in read_sites(path, named=True)]
    except InputError:
        return []


def _require_free(path: Path, *, force: bool) -> None:
    if _is_taken(path) and not force:
        raise UsageError(
            f"{path} already exists", hint="choose another file with --output, or overwrite it with --force"
        )


def _is_taken(path: Path) -> bool:
    """Whether there is anything of that name, also a link that leads nowhere yet: what is written would go there."""
    return os.path.lexists(path)


def _same(one: Path, other: Path) -> bool:
    if one.is_dir() or other.is_dir():
        return one.is_dir() and other.is_dir() and all(
            (other / f.relative_to(one)).is_file() and f.read_bytes() == (other / f.relative_to(one)).read_bytes()
            for f in one.rglob("*") if f.is_file()
        )  # fmt: skip
    return one.read_bytes() == other.read_bytes()
