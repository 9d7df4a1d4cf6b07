"""`nsw init`: a first recipe from a command line or a shipped one, a first site from what a machine answers."""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.errors import Exit, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_RECIPE = Path("recipe.yaml")


def _say(text: str) -> None:
    """A sentence on stdout, with commands as the user types them."""
    from nsw.present.terminal import console
    from nsw.present.wrapping import wrapped

    out = console()
    out.print(wrapped(out, text), soft_wrap=True)


def from_command(words: Sequence[str], output: Path | None, force: bool) -> int:
    """Write a recipe for a command line.

    Raises:
        UsageError: The file is there already.
    """
    from nsw.recipe.imported_files import files_of
    from nsw.recipe.load import load_recipe_text
    from nsw.recipe.starter import recipe_for
    from nsw.service.site_facts import facts
    from nsw.site.load import load_site

    path = output or _RECIPE
    _free(path, force)
    here = path.parent
    place = load_site(os.environ.get("NSW_SITE") or None)
    gpus = facts(place).gpus_per_node != 0  # None: a site that does not say how many it has
    parts = words[0].split() if len(words) == 1 else words
    files = files_of(parts, here)
    text = recipe_for(words, files, gpus=gpus, file=str(path))
    load_recipe_text(text, str(path))
    _write(path, text)
    _say(f"{path}: " + (f"brings {', '.join(files)}" if files else "brings no file: name those it needs in app.files"))
    if not gpus:
        _say(f"site {place.site.name} has no GPU, so the recipe asks for none: set resources.gpus for another site")
    _say(f"next: `nsw plan {path}`; the comments in it say what else a recipe can do")
    return Exit.GOOD


def from_shipped(name: str, output: Path | None, force: bool) -> int:
    """Copy a shipped recipe with the files that it names.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.recipe.load import load_recipe
    from nsw.service.planning import shipped_recipe

    source = shipped_recipe(name)
    path = output or Path(source.name)
    loaded = load_recipe(source)
    wanted = [(source, path), *((source.parent / f, path.parent / f) for f in loaded.recipe.app.files)]
    others = [there for here, there in wanted[1:] if there.exists() and not _same(here, there)]
    for there in (path, *others):
        _free(there, force)
    for here, there in wanted:
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, dirs_exist_ok=True)
        else:
            shutil.copyfile(here, there)
        _say(str(there))
    _say(f"next: `nsw plan {path}`")
    return Exit.GOOD


def site(name: str, host: str | None, output: Path | None, force: bool) -> int:
    """Ask this machine or a host what it is, and write a site.

    Raises:
        UsageError: The file has such a site already, or its batch system is none that nsw knows.
        UnreachableError: The host does not answer.
    """
    from nsw.campaign.site_starter import site_for
    from nsw.campaign.site_survey import survey
    from nsw.site.files import user_file
    from nsw.transport.create import connect

    path = output or user_file()
    before = _sites_before(path, name, force)
    data = {"transport": {"kind": "local"} if host is None else {"kind": "openssh", "host": host}}
    with closing(connect(data)) as transport:
        answers = survey(transport, host)
    text, found, todo = site_for(name, answers)
    whole = (before.rstrip("\n") + "\n" if before else "nsw: 1\nsites:\n") + text
    _put_sites(whole, path, name, text)
    _say(f"{path}: site {name}" + (f", reached by `ssh {host}`" if host else ""))
    for line in found:
        _say(f"  found    {line}")
    for line in todo:
        _say(f"  fill in  {line}")
    there = "" if output is None else f" --sites {shlex.quote(str(path))}"
    _say(f"next: `nsw sites check {name}{there}`, then `nsw plan RECIPE --site {name}{there}`")
    return Exit.GOOD


def _sites_before(path: Path, name: str, force: bool) -> str:
    """What a sites file holds; nothing where it is to be made, or made anew."""
    if not path.exists():
        return ""
    from nsw.site.load import read_sites

    known = [one.site.name for one in read_sites(path, named=True)]
    if name in known:
        if not force:
            raise UsageError(
                f"{path} has a site {name}", hint="name another, or --output FILE; --force takes its place"
            )
        if known != [name]:
            raise UsageError(
                f"{path} has a site {name} beside others, and is not written anew",
                hint="delete the site there first, or name another file: --output FILE",
            )
        return ""
    return path.read_text(encoding="utf-8")


def _put_sites(whole: str, path: Path, name: str, text: str) -> None:
    """Write the file, in one step and only if it then holds the site.

    Raises:
        UsageError: Its own layout lets no site be put at its end.
    """
    from tempfile import mkstemp

    target = path.resolve()  # of a link the file, which may be kept elsewhere
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, made = mkstemp(dir=target.parent, prefix=".nsw-init-", suffix=".yaml")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
            file.write(whole)
        if name not in _names(Path(made)):
            _say(text.rstrip())
            raise UsageError(
                f"{path} is not laid out so that a site can be put at its end", hint="put in the lines above"
            )
        Path(made).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        Path(made).replace(target)
    finally:
        Path(made).unlink(missing_ok=True)


def _names(path: Path) -> list[str]:
    from nsw.site.load import read_sites

    try:
        return [one.site.name for one in read_sites(path, named=True)]
    except InputError:
        return []


def _free(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="name another with --output, or --force writes over it")


def _same(one: Path, other: Path) -> bool:
    if one.is_dir() or other.is_dir():
        return one.is_dir() and other.is_dir() and all(
            (other / f.relative_to(one)).is_file() and f.read_bytes() == (other / f.relative_to(one)).read_bytes()
            for f in one.rglob("*") if f.is_file()
        )  # fmt: skip
    return one.read_bytes() == other.read_bytes()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
