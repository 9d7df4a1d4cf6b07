"""Files beside a recipe that its command names and its app.files do not: runs have folders of their own."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as FilePath

    from nsw.errors import Diagnostic, Mark
    from nsw.recipe.document import Document
    from nsw.recipe.model import App
    from nsw.recipe.yaml_nodes import Path

_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FILLED: Final = "\0"  # stands where a template did
_SHELL: Final = "();<>|&"
_MAY_BRING: Final = re.compile(r"\b(?:cd|pushd|cp|ln|mv|rsync|git|tar|unzip|curl|wget|make)\b")
# a set-up of other words may bring files or go elsewhere
_BRINGS_NOTHING: Final = re.compile(
    r"\s*(?:module|ml|source|\.|export|conda|mamba|micromamba|spack|set|ulimit|#)(?:\s|$)"
)
_WRITES: Final = re.compile(r">|--?(?:o|out|log|save)")  # the word behind it is what the program writes


class _Word(NamedTuple):
    path: Path
    text: str
    is_written_whole: bool


def unshipped(document: Document, app: App, folder: FilePath) -> Iterator[Diagnostic]:
    """Warns of files that the runs will not find.

    Args:
        document: The recipe.
        app: Its application; one that is built or in a container may find the files there.
        folder: The recipe's folder, where the files are looked for.
    """
    if app.build or app.container or any(map(_may_bring, app.setup)):
        return
    sent = {PurePosixPath(name).name for name in app.files}
    told = set()
    for word in _words(document):
        name = PurePosixPath(word.text)
        if name.is_absolute() or ".." in name.parts or not name.parts or name.parts[0] in sent or name in told:
            continue
        if not _is_file(folder / name):
            continue
        told.add(name)
        files = f"files: [{', '.join([*app.files, str(name)])}]"
        hint = files if len(name.parts) == 1 else f"{files}, which puts {name.name} beside the program"
        mark = document.mark(word.path) if word.is_written_whole else _mark(document, word)
        message = f"{name} is beside the recipe but not in app.files: the runs will not find it"
        yield document.at(mark, message, hint=hint)


def _may_bring(setup: str) -> bool:
    return _MAY_BRING.search(setup) is not None or not all(map(_BRINGS_NOTHING.match, setup.strip().splitlines()))


def _words(document: Document) -> Iterator[_Word]:
    """The words of the command that may be files which it needs."""
    command = document.get(("app", "command"))
    if isinstance(command, str):
        words = [] if _MAY_BRING.search(command) else _split(command)
        paths: list[Path] = [("app", "command")] * len(words)
    else:
        words = [_TEMPLATE.sub(_FILLED, str(word)) for word in command]
        paths = [("app", "command", n) for n in range(len(words))]
    before = "&"
    for path, word in zip(paths, words, strict=True):
        starts, before_it, before = not before.strip(_SHELL), before, word
        is_on_path = starts and "/" not in word
        if word and _FILLED not in word and not is_on_path and not _WRITES.match(before_it):
            yield _Word(path, word, len(path) > len(("app", "command")))


def _split(command: str) -> list[str]:
    lexer = shlex.shlex(_TEMPLATE.sub(_FILLED, command), posix=True, punctuation_chars=_SHELL)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end: the shell will say so
        return []


def _mark(document: Document, word: _Word) -> Mark | None:
    found = re.search(rf"(?<!\S){re.escape(word.text)}(?!\S)", document.get(word.path))
    return document.mark_in_value(word.path, found.start() if found else None, len(word.text))


def _is_file(path: FilePath) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
