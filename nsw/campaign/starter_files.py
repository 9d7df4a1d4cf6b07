"""The first recipe of a user: from a command line, or a shipped one."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError
from nsw.recipe.secrets import holds_secret, looks_secret, named_secrets
from nsw.safe_files import open_output, read_bytes, read_text
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.convert.script_options import Line


_LONGEST_SCRIPT: Final = 4 << 20  # bytes
_OPTION: Final = re.compile(r"(?<!\S)--?([A-Za-z][\w-]*)\s+[^\s-]")  # with its value as the next word


@dataclass(frozen=True, slots=True)
class FirstRecipe:
    """A recipe that was written.

    Attributes:
        path: Its file.
        brings: The files beside it that it brings along.
        site: The site that it was made for.
        has_gpus: Whether that site has GPUs, so that the recipe asks for one.
        launcher: The launcher that nsw starts the program under; None where the command line has none.
        profiler: The profiler that the command line began with, and the pass that it became; None where it had none.
        warnings: What its runs would not find, a line each.
    """

    path: Path
    brings: Sequence[str]
    site: str
    has_gpus: bool
    launcher: str | None
    profiler: str | None
    warnings: Sequence[str]


def write_recipe(words: Sequence[str], path: Path, *, force: bool, site: str | None = None) -> FirstRecipe:
    """Write a recipe for a command line.

    Args:
        words: The command line; a single word is a line of shell.
        path: The recipe's file.
        force: Whether it may be written over.
        site: Where it is to run; None: NSW_SITE, or this machine.

    Raises:
        UsageError: The file is there already, or there is no such site.
    """
    from nsw.campaign.planning import missing_programs
    from nsw.convert.starter import recipe_for, split_profiler, words_of
    from nsw.recipe.load import load_recipe, load_recipe_text
    from nsw.recipe.program import files_of
    from nsw.site.load import load_site
    from nsw.site_check.check import find_facts

    _refuse_overwrite(path, force=force)
    loaded_site = load_site(site or os.environ.get("NSW_SITE") or None)
    gpus = find_facts(loaded_site).gpus_per_node != 0  # None: a site that does not say how many it has
    program, profiler = split_profiler(words_of(words))
    files = files_of(program, path.parent)
    text = recipe_for(words, files, gpus=gpus, file=str(path))
    load_recipe_text(text, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    secret = _write_recipe(path, text)
    loaded = load_recipe(path, loaded_site.site.name)
    kind = loaded.recipe.app.launcher.kind
    passed_over = (
        [f"{text} of {profiler.tool} is left out: {why}" for text, why in profiler.unknown] if profiler else []
    )
    missing = [
        *secret,
        *passed_over,
        *(warning.message for warning in (*loaded.warnings, *missing_programs(loaded, loaded_site.site))),
    ]
    launcher, tool = None if kind == "none" else kind, f"{profiler.tool} ({profiler.kind})" if profiler else None
    return FirstRecipe(path, files, loaded_site.site.name, gpus, launcher, tool, missing)


def copy_shipped(name: str, path: Path | None, *, force: bool) -> list[Path]:
    """Copy a shipped recipe with the files that it names.

    Args:
        name: The recipe.
        path: Where to; None: a file of its name here.
        force: Whether files may be written over.

    Returns:
        The files that were written.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.campaign.planning import shipped_recipe
    from nsw.recipe.load import load_recipe

    source = shipped_recipe(name)
    target = path or Path(source.name)
    files = load_recipe(source).recipe.app.files
    pairs = [(source, target), *((source.parent / f, target.parent / f) for f in files)]
    taken_targets = [
        copy
        for origin, copy in pairs[1:]
        if os.path.lexists(copy) and not (copy.exists() and _is_same_content(origin, copy))
    ]
    for copy in (target, *taken_targets):
        _refuse_overwrite(copy, force=force)
    for origin, copy in pairs:
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, dirs_exist_ok=True)
        else:
            shutil.copyfile(origin, copy)
    return [copy for _, copy in pairs]


@dataclass(frozen=True, slots=True)
class FromScript:
    """What was written for a job script.

    Attributes:
        recipes: The files of the recipes: one for each program that the script starts.
        sites: The sites file; None: the script is for no batch system.
        site: The name of the site in it.
        lines: What each line of the script became.
        warnings: What the runs would not find, a line each.
    """

    recipes: Sequence[Path]
    sites: Path | None
    site: str
    lines: Sequence[Line]
    warnings: Sequence[str]


def write_from_script(
    script: Path, path: Path, site: str | None, *, force: bool, arguments: Sequence[str] | None = None
) -> FromScript:
    """Write the recipes and the site of a job script; the site is in sites.yaml beside the recipe.

    Args:
        script: The job script.
        path: The file of the first recipe.
        site: The name of the site; None: that of its batch system.
        force: Whether files may be written over.
        arguments: What the script is started with; None: not known.

    Raises:
        UsageError: A file is there already, or the script cannot be read or taken apart, or starts no program.
    """
    from nsw.convert.from_script import convert
    from nsw.recipe.load import load_recipe, load_recipe_text
    from nsw.site.load import load_site
    from nsw.site_check.check import find_facts
    from nsw.site_check.starter import FirstSite, sites_before

    try:
        text = read_text(script, _LONGEST_SCRIPT)
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"{script} is not UTF-8: byte {fault.start} is {fault.object[fault.start]:#04x}",
            hint="`iconv -f latin1 -t utf8` converts an older script",
        ) from None
    except OSError as fault:
        raise UsageError(f"{script} cannot be read: {fault.strerror or fault}") from None
    sites = path.with_name("sites.yaml")
    converted = convert(
        text,
        script,
        site=site,
        sites=str(sites),
        recipe=str(path),
        arguments=arguments,
        gpus=lambda: int(find_facts(load_site(LOCAL)).gpus_per_node != 0),
    )
    files = [path.with_stem(path.stem + end) for end, _ in converted.recipes]
    for file in files:
        _refuse_overwrite(file, force=force)
    before = "" if converted.site is None else sites_before(sites, converted.site_name, force=force)
    for file, (_, recipe) in zip(files, converted.recipes, strict=True):
        load_recipe_text(recipe, str(file))
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = script.stat().st_mode & 0o666 | 0o600
    warnings = [
        line
        for file, (_, recipe) in zip(files, converted.recipes, strict=True)
        for line in _write_recipe(file, recipe, mode)
    ]
    if converted.site is not None:
        FirstSite(sites, converted.site_name, converted.site, (), (), before).write()
    warnings += [warning.message for file in files for warning in load_recipe(file).warnings]
    return FromScript(
        recipes=files,
        sites=sites if converted.site else None,
        site=converted.site_name,
        lines=converted.lines,
        warnings=list(dict.fromkeys(warnings)),
    )


def _write_recipe(path: Path, recipe: str, mode: int = 0o666) -> list[str]:
    """Write a recipe; one that holds what looks like a secret so that only its owner can read it, and a warning.

    Args:
        path: Its file.
        recipe: Its text.
        mode: Who may read and write it at most: those who may read what it was made of.
    """
    options = (match[1] for match in _OPTION.finditer(recipe))
    is_secret = holds_secret(recipe) or any(named_secrets(recipe)) or any(map(looks_secret, options))
    mode = 0o600 if is_secret else mode
    with os.fdopen(open_output(path, mode), "w", encoding="utf-8") as file:
        if mode != 0o666:
            os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & mode)  # of a file that was there
        file.write(recipe)
    hint = "write it as `app: env: {NAME: {secret: {from_env: NAME}}}` instead"
    return [f"{path} holds what looks like a secret, and only you can read it: {hint}"] if is_secret else []


def _refuse_overwrite(path: Path, *, force: bool) -> None:
    if os.path.lexists(path) and not force:  # also a link that leads nowhere yet: what is written would go there
        raise UsageError(
            f"{path} already exists", hint="choose another file with --output, or overwrite it with --force"
        )


def _is_same_content(first: Path, second: Path) -> bool:
    if first.is_dir() or second.is_dir():
        return (
            first.is_dir()
            and second.is_dir()
            and all(
                (second / f.relative_to(first)).is_file() and read_bytes(f) == read_bytes(second / f.relative_to(first))
                for f in first.rglob("*")
                if f.is_file()
            )
        )
    return read_bytes(first) == read_bytes(second)
