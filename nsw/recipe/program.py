"""The program of a recipe: the words of its command line as a shell would split them, its launcher, its files.

Of files: which the recipe names, which nsw ships, which the command needs and app.files lacks.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.errors import Diagnostic, did_you_mean
from nsw.recipe.launcher_names import launcher_commands, load_launcher
from nsw.resources import recipes_folder
from nsw.safe_files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.launchers.model import Launcher
    from nsw.recipe.document import Document, KeyPath
    from nsw.recipe.model import App

_FOLDER = "apps"


def source_path(folder: Path, name: str) -> Path:
    """The path of a file of `app.files`: beside the recipe, else the one that nsw ships; it need not exist."""
    local_file = folder / name
    try:
        if local_file.exists():
            return local_file
        shipped = _shipped_file(name)
    except (OSError, ValueError):
        return local_file
    return shipped or local_file


def taken_from_nsw(document: Document, folder: Path, files: Sequence[str]) -> Iterator[Diagnostic]:
    """Warn of each file that is not beside the recipe and that nsw ships.

    Args:
        document: The recipe.
        folder: Its folder.
        files: The names in `app.files`.
    """
    for number, name in enumerate(files):
        if (shipped_file := source_path(folder, name)) != folder / name:
            hint = f"copy {shipped_file} here to change it; `nsw init --from RECIPE` copies a recipe with its files"
            message = f"{name} is not beside the recipe: the one that nsw ships is used"
            yield document.diagnostic(("app", "files", number), message, hint=hint)


def _shipped_file(name: str) -> Path | None:

    parts = PurePosixPath(name).parts
    if parts[:1] != (_FOLDER,) or ".." in parts:
        return None
    path = recipes_folder().joinpath(*parts)
    return path if path.exists() else None


_IMAGE_FILES: Final = frozenset({".sif", ".simg", ".sqsh", ".sqfs", ".squashfs"})


def is_relative_image(runtime: str, image: str) -> bool:
    """Whether a container's image is a file that is looked for in the folder of the run."""
    path = PurePosixPath(image)
    is_file = runtime in {"apptainer", "singularity"} or path.suffix in _IMAGE_FILES or image.startswith("./")
    return is_file and "://" not in image and not path.is_absolute() and not image.startswith("$")


_MOST_BYTES = 1 << 20
_MOST_FILES = 50


def files_of(words: Sequence[str], folder: Path) -> list[str]:
    """The files below a folder that a command needs, relative to it: its words that are files, and their imports.

    Args:
        words: The command.
        folder: Where it is run.
    """
    needed_files: dict[str, None] = {}
    waiting = [
        word
        for word in words
        if not (path := PurePosixPath(word)).is_absolute() and ".." not in path.parts and _is_file(folder / word)
    ]
    while waiting and len(needed_files) < _MOST_FILES:
        name = PurePosixPath(waiting.pop(0)).as_posix()
        if name not in needed_files:
            needed_files[name] = None
            waiting += _local_imports(folder, name)
    return list(needed_files)


def _local_imports(folder: Path, name: str) -> Iterator[str]:
    """The modules and packages beside a Python script that it imports."""
    path = folder / name
    if path.suffix != ".py" or path.stat().st_size > _MOST_BYTES:
        return
    try:
        tree = ast.parse(read_bytes(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what it means is not nsw's to judge
        return
    parent = PurePosixPath(name).parent
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module
    ]
    for module in dict.fromkeys(name.partition(".")[0] for name in modules):
        if (folder / parent / f"{module}.py").is_file():
            yield (parent / f"{module}.py").as_posix()
        elif (folder / parent / module / "__init__.py").is_file():
            yield (parent / module).as_posix()


_MAY_BRING: Final = re.compile(r"\b(?:cd|pushd|cp|ln|mv|rsync|git|tar|unzip|curl|wget|make)\b")
# a set-up of other words may bring files or go elsewhere
_BRINGS_NOTHING: Final = re.compile(
    r"\s*(?:module|ml|source|\.|export|conda|mamba|micromamba|spack|set|ulimit|#)(?:\s|$)"
)
_WRITES: Final = re.compile(r">|--?(?:o|out|log|save)")  # the word behind it is what the program writes
_INTERPRETER: Final = re.compile(r"(?:.*/)?(?:python[\d.]*|bash|sh)")
_OPTIONS: Final = re.compile(r"-[uOBEsSIvqibxel]+")  # of an interpreter, and none that takes a word
_SCRIPT: Final = re.compile(r"[\w./+-]+\.(?:py|sh)")
_PROGRAM: Final = re.compile(r"[\w.+-]+/[\w./+-]+")  # a path; a bare word is looked for on PATH


class _Word(NamedTuple):
    path: KeyPath
    text: str
    is_written_whole: bool


def unshipped_file_warnings(document: Document, app: App, folder: Path) -> Iterator[Diagnostic]:
    """Warns of files that the runs will not find.

    Args:
        document: The recipe.
        app: Its application; one that is built or in a container may find the files there.
        folder: The recipe's folder, where the files are looked for.
    """
    lines = [line for setup in app.setup for line in setup.strip().splitlines()]
    if app.build or app.container or any(_MAY_BRING.search(line) or not _BRINGS_NOTHING.match(line) for line in lines):
        return
    sent = {PurePosixPath(name).name for name in app.files}
    reported = set()
    for word in _possible_file_words(document):
        name = PurePosixPath(word.text)
        if name.is_absolute() or ".." in name.parts or not name.parts or name.parts[0] in sent or name in reported:
            continue
        if not _is_file(folder / name):
            continue
        reported.add(name)
        files = f"files: [{', '.join([*app.files, str(name)])}]"
        hint = files if len(name.parts) == 1 else f"{files}, which puts {name.name} beside the program"
        mark = document.mark(word.path)
        if not word.is_written_whole:
            match = re.search(rf"(?<!\S){re.escape(word.text)}(?!\S)", document.get(word.path))
            mark = document.mark_in_value(word.path, match.start() if match else None, len(word.text))
        message = f"{name} is beside the recipe but not in app.files: the runs will not find it"
        yield document.at(mark, message, hint=hint)
    yield from _check_missing_scripts(document, sent, folder)


def _check_missing_scripts(document: Document, sent: set[str], folder: Path) -> Iterator[Diagnostic]:
    """Warns of a script that python or a shell is to run, or of a program named by its path, that is nowhere."""
    words = first_program(document)
    start = split_at_launcher(words)
    words = list(start.program) if start else words
    if not words:
        return
    is_script = _INTERPRETER.fullmatch(words[0]) is not None
    text = next((word for word in words[1:] if not _OPTIONS.fullmatch(word)), "") if is_script else words[0]
    name = PurePosixPath(text)
    if not (_SCRIPT if is_script else _PROGRAM).fullmatch(text) or name.is_absolute() or ".." in name.parts:
        return
    if name.parts[0] in sent or _is_file(folder / name):
        return
    hint = did_you_mean(str(name), sorted(sent)) or "add it to app.files, or write its absolute path"
    message = f"{name} is not in app.files: the runs will not find it"
    yield document.at(document.mark(("app", "command")), message, hint=hint)


def _possible_file_words(document: Document) -> Iterator[_Word]:
    """The words of the command that may be files which it needs."""
    command = document.get(("app", "command"))
    if isinstance(command, str):
        words = [] if _MAY_BRING.search(command) else split_shell_words(command)
        paths: list[KeyPath] = [("app", "command")] * len(words)
    else:
        words = [fill_templates(str(word)) for word in command]
        paths = [("app", "command", n) for n in range(len(words))]
    before = "&"
    for path, word in zip(paths, words, strict=True):
        starts, before_it, before = not before.strip(SHELL), before, word
        is_on_path = starts and "/" not in word
        if word and FILLED not in word and not is_on_path and not _WRITES.match(before_it):
            yield _Word(path, word, len(path) > len(("app", "command")))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


FILLED: Final = "\0"  # stands where a template did
LONGEST: Final = 128 << 10  # characters of a command: no argument may be longer, and splitting takes their square
SHELL: Final = "();<>|&"  # signs that are words of their own
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FAILS_TOO: Final = frozenset({"|", "|&", "&&", ">", ">>", "<", ">&", "&>"})  # if the first program fails, so does all


def first_program(document: Document) -> list[str]:
    """The words of the program that the command starts first; none where the command may do without it."""
    command = document.get(("app", "command"))
    if not isinstance(command, str):
        return [fill_templates(str(word)) for word in command]
    if "\n" in command.strip():
        return []
    words = split_shell_words(command)
    operators = [n for n, word in enumerate(words) if not word.strip(SHELL)]
    if any(words[n] not in _FAILS_TOO for n in operators):
        return []
    return words[: operators[0]] if operators else words


def split_shell_words(command: str) -> list[str]:
    """The words of a line of shell; none where a quote of it does not end, or where it is too long to be run."""
    if len(command) > LONGEST:
        return []
    lexer = shlex.shlex(fill_templates(command), posix=True, punctuation_chars=SHELL)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end: the shell will say so
        return []


def fill_templates(text: str) -> str:
    """The text with a sign in the place of each template."""
    return _TEMPLATE.sub(FILLED, text)


_PAIRED: Final = frozenset({"-env", "-genv", "-mca", "--mca", "-gmca", "--gmca"})  # two words follow
_NUMBER: Final = re.compile(r"\d[\d.,:]*")


class Launched(NamedTuple):
    """What a launcher starts: `kind` and `options` as `app.launcher` has them; `processes` is None where none says."""

    kind: str
    processes: int | None
    options: tuple[str, ...]
    program: tuple[str, ...]


def split_at_launcher(words: Sequence[str]) -> Launched | None:
    """The command line as its launcher's and its program's words; None where it starts with no launcher of PATH."""
    if not words or words[0] not in launcher_commands() or ":" in words:  # mpirun -np 1 a : -np 3 b
        return None
    launcher: Launcher = load_launcher(words[0])
    command = launcher.command or (words[0],)
    if tuple(words[: len(command)]) != command:
        return None
    processes, options, at = None, list[str](), len(command)
    while at < len(words) and words[at].startswith("-") and not (launcher.runs_modules and words[at] == "-m"):
        option_words = list(words[at : at + 1 + _count_values(launcher, words[at], words[at + 1 : at + 2])])
        count = _parse_process_count(launcher, option_words)
        processes = processes if count is None else count
        options += option_words if count is None else []
        at += len(option_words)
    program = tuple(words[at:])
    if launcher.runs_modules and program and (program[0] == "-m" or program[0].endswith(".py")):
        program = ("python", *program)  # which the launcher does by itself
    return Launched(words[0], processes, tuple(options), program) if program else None


def _count_values(launcher: Launcher, option: str, after: Sequence[str]) -> int:
    """How many words after an option are its values."""
    if option in _PAIRED:
        return 1 if "env" in option and "=" in "".join(after) else 2
    if "=" in option or not after:
        return 0
    return int(
        option in launcher.value_options.split()
        or option in launcher.count_options
        or _NUMBER.fullmatch(after[0]) is not None
    )


def _parse_process_count(launcher: Launcher, option_words: Sequence[str]) -> int | None:
    """Parse the number of processes from `-n 4`, `-n4` or `--ntasks=4`."""
    option, _, value = option_words[0].partition("=")
    joined = re.fullmatch(r"(-n)(\d+)", option)
    if joined:
        option, value = joined.groups()
    value = value or "".join(option_words[1:])
    return int(value) if option in launcher.count_options and value.isdecimal() and int(value) > 0 else None
