"""What `--against REF` names: the folder of a campaign, a git revision, or other values of parameters."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.engine.folder import LEDGER, CampaignFolder, root
from nsw.engine.recipe_lock import check_out, locked_recipe, resolve_commit
from nsw.errors import InputError, UsageError
from nsw.recipe.document import parse
from nsw.recipe.expressions import is_template
from nsw.recipe.load import REPEATS, Before
from nsw.recipe.program import source
from nsw.transport.local import LocalTransport
from nsw.wording import and_more, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.matrix import Matrix

__all__ = ["resolve_before"]

_SETTINGS: Final = re.compile(r",(?=\w+=)")
_NAMES_IN_MESSAGE: Final = 3  # names in a message


def resolve_before(ref: str, loaded: LoadedRecipe) -> Before:
    """What a recipe is compared with.

    Raises:
        UsageError: It is nothing of what may be named, or several things, or cannot be compared.
    """
    campaign, commit, settings = _campaign(ref), _commit(ref, loaded), "=" in ref
    candidates: list[tuple[str, Callable[[], Before]]] = []
    if campaign is not None:
        candidates.append((f"the campaign {campaign.path}", partial(_of_campaign, ref, campaign, loaded)))
    if commit is not None:
        candidates.append(
            (f"commit {commit[:12]} of the program's git repository", partial(_of_commit, ref, commit, loaded))
        )
    if settings:
        candidates.append(("values of parameters", partial(_of_values, ref, loaded)))
    if len(candidates) == 1:
        before = candidates[0][1]()
        few = loaded.document.node(("repeats",)) is None
        return (
            replace(before, notes=(*before.notes, f"{REPEATS} repeats, since the recipe writes none"))
            if few
            else before
        )
    if candidates:
        descriptions = " and ".join(description for description, _ in candidates)
        raise UsageError(
            f"--against {ref} may be {descriptions}", hint="write a path as ./NAME, a branch as refs/heads/NAME"
        )
    no_git = "" if loaded.recipe.app.files else ", which the recipe does not list (app.files)"
    raise UsageError(
        f"--against {ref}: there is no campaign in a folder {ref}, neither here nor in {root()}; no revision {ref} in"
        f" the git repository of the program's files{no_git}; and it sets no parameter (NAME=VALUE)",
        hint="name the folder of a campaign, a commit, branch or tag, or values such as n=2",
    )


def _campaign(ref: str) -> CampaignFolder | None:
    folders = (Path(ref), root() / ref)
    return next((CampaignFolder(folder) for folder in folders if (folder / LEDGER).exists()), None)


def _sources(loaded: LoadedRecipe) -> list[Path]:
    return [source(loaded.folder, name) for name in loaded.recipe.app.files]


def _commit(ref: str, loaded: LoadedRecipe) -> str | None:
    files = _sources(loaded)
    return resolve_commit(files[0].absolute().parent, ref, LocalTransport()) if files else None


def _of_commit(ref: str, commit: str, loaded: LoadedRecipe) -> Before:
    temporary = tempfile.TemporaryDirectory(prefix="nsw-")
    revision = check_out(_sources(loaded), commit, Path(temporary.name), LocalTransport())
    ref_note = "" if commit.startswith(ref) else f" ({ref})"
    sentences = [f"before: the program's files of commit {commit[:12]}{ref_note}; after: as they are now"]
    if revision.shared:
        sentences.append(f"not in git, and the same on both sides: {and_more(revision.shared, _NAMES_IN_MESSAGE)}")
    return Before(
        ref, files=tuple(map(str, revision.files)), git=revision.git, notes=tuple(sentences), temporary_files=temporary
    )


def _of_values(ref: str, loaded: LoadedRecipe) -> Before:
    values: dict[str, Any] = {}
    for text in _SETTINGS.split(ref):
        name, _, written = text.partition("=")
        values[name] = _scalar(ref, written)
    parameters = loaded.recipe.matrix.parameters
    for name in values:
        if name not in parameters:
            hint = f"its parameters: {', '.join(parameters)}" if parameters else "it has none"
            raise UsageError(f"--against {ref}: the recipe has no parameter {name}", hint=hint)
    now = {name: _single(ref, loaded.recipe.matrix, name) for name in values}
    sentence = "; ".join(f"{name}: {value} before, {now[name]} after" for name, value in values.items())
    return Before(ref, values, notes=(sentence,))


def _scalar(ref: str, written: str) -> Any:
    try:
        value = parse(written, "--against").data
    except InputError:
        value = None
    if not isinstance(value, str | int | float | bool):
        raise UsageError(
            f"--against {ref}: {written!r} is not a value", hint="one value for each parameter, such as n=2"
        )
    return value


def _single(ref: str, matrix: Matrix, name: str) -> Any:
    """The only value of a parameter.

    Raises:
        UsageError: It has several.
    """
    values = _values(matrix, name)
    if len(values) != 1:
        raise UsageError(
            f"--against {ref}: {name} has {plural(len(values), 'value')} in the recipe",
            hint=f"choose the one to compare with: --set {name}={values[0]}",
        )
    return values[0]


def _values(matrix: Matrix, name: str) -> Sequence[Any]:
    values = matrix.parameters[name]
    return values if isinstance(values, list) else values.values()


def _of_campaign(ref: str, folder: CampaignFolder, loaded: LoadedRecipe) -> Before:
    folder.require_trust()
    recipe = locked_recipe(folder)
    files = tuple(str((folder.path / name).absolute()) for name in recipe.app.files)
    values = _other_values(ref, recipe.matrix, loaded.recipe.matrix)
    if not files and not values:
        raise UsageError(
            f"--against {ref}: that campaign has no copy of a program (app.files) and no parameter with another value",
            hint="list the program's files in app.files, so that each campaign keeps its own",
        )
    if files and not loaded.recipe.app.files:
        raise UsageError(f"--against {ref}: that campaign has a copy of its program, and the recipe lists no app.files")
    value_list = "".join(f", {name}: {value}" for name, value in values.items())
    sentence = (
        f"before: the {'program' if files else 'values'} of campaign {folder.id}{value_list}; after: this"
        " recipe as it is"
    )
    return Before(ref, values, files, recipe.lock.git if recipe.lock else None, (sentence,))


def _other_values(ref: str, earlier: Matrix, now: Matrix) -> Mapping[str, Any]:
    """The parameters that had one other value then; of several values those of now must be among them.

    Raises:
        UsageError: They are not.
    """
    values: dict[str, Any] = {}
    for name in now.parameters:
        old, new = _values(earlier, name) if name in earlier.parameters else (), _values(now, name)
        if any(is_template(value) for value in (*old, *new)) or set(new) <= set(old) or not old:
            continue
        if len(old) > 1:
            raise UsageError(
                f"--against {ref}: {name} was {', '.join(map(str, old))} there, and is {', '.join(map(str, new))} here",
                hint=f"--set {name}={old[0]} takes a value that both have",
            )
        _single(ref, now, name)
        values[name] = old[0]
    return values
