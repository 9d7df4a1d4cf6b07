"""What a Tab gives: the shell asks through _NSW_COMPLETE, and is answered without loading the command-line parser.

That takes a quarter of a second: the commands and their options come from words.json (tools/completion_words.py).
The scripts that ask are typer's (`nsw --show-completion`). What they are answered becomes part of a command line, and
names come from folders and files of others: each is quoted for the shell that asks. It is asked at every Tab, in
folders of all sizes: what it looks at is bounded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

SHIPPED: Final = Path(__file__).with_name("words.json")


@dataclass(frozen=True)
class Parameter:
    """An option or an argument.

    Attributes:
        name: The name of the parameter of its command's function.
        flags: `--format`, `-f`; none of an argument.
        help: What it is.
        takes: Whether a value follows.
        many: Whether there may be several.
        choices: The values, where they are fixed.
    """

    name: str
    flags: list[str]
    help: str
    takes: bool
    many: bool
    choices: list[str]


@dataclass(frozen=True)
class Command:
    """A command, or nsw itself, with its parameters."""

    name: str
    help: str
    parameters: list[Parameter]

    @cached_property
    def options(self) -> dict[str, Parameter]:
        """By each of their flags."""
        return {flag: p for p in self.parameters for flag in p.flags}

    @cached_property
    def arguments(self) -> list[Parameter]:
        """In their order."""
        return [p for p in self.parameters if not p.flags]


def load_commands() -> tuple[Command, dict[str, Command]]:
    """The whole of nsw, and its commands by name."""
    data = json.loads(SHIPPED.read_text(encoding="utf-8"))
    root, *command_list = (Command(d["name"], d["help"], [Parameter(**p) for p in d["parameters"]]) for d in data)
    return root, {command.name: command for command in command_list}


class Item(NamedTuple):
    """One completion of what is typed, and what it means."""

    value: str
    help: str = ""


def answer(shell_request: str) -> int | None:
    """Answer a shell on stdout; whatever goes wrong is no answer, and never a message in the middle of a line.

    Returns:
        The exit code; None where the question is not one of these.
    """
    shell = _SHELLS.get(shell_request)
    if shell is None:
        return None
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            return shell()
    except Exception:  # noqa: BLE001  the user types a command and has not asked for anything yet
        return 0


def completions(words: list[str], typed: str) -> list[Item]:
    """What may be typed at the cursor.

    Args:
        words: The words before it, without the program's name.
        typed: What of its word is typed.
    """
    root, commands = load_commands()
    at = next((n for n, word in enumerate(words) if not word.startswith("-")), None)
    command_items = [Item(name, one_command.help) for name, one_command in commands.items()]
    if at is None:
        command_items.append(Item("help", "Explain a command, or with --all each of them."))
        return (
            _complete_option(root, set(words), typed)
            if typed.startswith("-")
            else _filter_by_prefix(command_items, typed)
        )
    if words[at] == "help":
        return _filter_by_prefix([Item("--all", "all commands"), *command_items], typed)
    command = commands.get(words[at])
    return [] if command is None else _complete_command(command, words[at + 1 :], typed)


def _complete_command(command: Command, words: list[str], typed: str) -> list[Item]:
    values_given, argument_number, open_option, ended = _parse_words(command, words)
    if open_option is not None:
        return _complete_value(command, open_option, values_given, typed)
    flag, equals, value = typed.partition("=")
    if equals and not ended and flag in command.options:
        matches = _complete_value(command, command.options[flag], values_given, value)
        return [Item(f"{flag}={item.value}", item.help) for item in matches]
    if typed.startswith("-") and not ended:
        return _complete_option(command, set(words), typed)
    if argument_number < len(command.arguments):
        return _complete_value(command, command.arguments[argument_number], values_given, typed)
    return []


def _parse_words(command: Command, words: list[str]) -> tuple[dict[str, list[str]], int, Parameter | None, bool]:
    """What the words before the cursor say.

    Returns:
        The values given so far, the number of the next argument, the option that waits for its value, and whether
        `--` has ended the options.
    """
    values_given: dict[str, list[str]] = {}
    argument_number, waits, ended = 0, None, False
    for word in words:
        flag, equals, value = word.partition("=")
        if waits is not None:
            values_given.setdefault(waits.name, []).append(word)
            waits = None
        elif word == "--" and not ended:
            ended = True
        elif flag in command.options and not ended:
            option = command.options[flag]
            if equals:
                values_given.setdefault(option.name, []).append(value)
            elif option.takes:
                waits = option
        elif argument_number < len(command.arguments) and (ended or not word.startswith("-")):
            argument = command.arguments[argument_number]
            values_given.setdefault(argument.name, []).append(word)
            argument_number += not argument.many
    return values_given, argument_number, waits, ended


def _complete_value(
    command: Command, parameter: Parameter, values_given: dict[str, list[str]], typed: str
) -> list[Item]:
    if parameter.choices:
        return _filter_by_prefix(map(Item, parameter.choices), typed)
    matches = dict.fromkeys(value_completions(command.name, parameter.name, values_given, typed))
    # no name may steer a terminal, or be taken for an option
    return [Item(value) for value in matches if value.isprintable() and not value.startswith("-")]


def _complete_option(command: Command, used: set[str], typed: str) -> list[Item]:
    """The options that may still be given, each by its long name unless its short one is typed."""
    free = [p for p in command.parameters if p.flags and (p.many or not used.intersection(p.flags))]
    long = _filter_by_prefix((Item(p.flags[0], p.help) for p in free), typed)
    return long or _filter_by_prefix((Item(flag, p.help) for p in free for flag in p.flags), typed)


def _filter_by_prefix(items: Iterable[Item], typed: str) -> list[Item]:
    return [item for item in items if item.value.startswith(typed)]


# --- what the shells say and hear --------------------------------------------------------------------------


_PLAIN = "._/-+=,:@%"  # beside letters and digits, what no shell reads as anything else


def _ansi_quote(text: str, also: str) -> str:
    """A text as `$'...'` of bash and zsh; only letters, digits and `also` stand for themselves there."""
    return "$'" + "".join(c if c.isalnum() or c in also else _escape_character(c) for c in text) + "'"


def _escape_character(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())


def _answer_bash() -> int:
    typed = os.environ["COMP_WORDS"].split("\n")  # as they are written, quotes and all
    at = int(os.environ["COMP_CWORD"])
    words, last = ["".join(_split_line(word)) for word in typed[:at]], typed[at] if at < len(typed) else ""
    before, current = words[1:], "".join(_split_line(last))
    # bash takes `--site=lo` apart into three words, and replaces the last of them
    if last == "=":
        last = current = ""
    elif before[-1:] == ["="]:
        before.pop()
    bash_words = [_quote_for_bash(item.value, current, last) for item in completions(before, current)]
    print("\n".join(word for word in bash_words if word is not None))
    return 0


def _quote_for_bash(value: str, current: str, typed: str) -> str | None:
    """Quote a value as bash inserts it after it expands file names; None where nsw cannot quote it."""
    rest = value.removeprefix(current)
    if all(c.isalnum() or c in _PLAIN for c in rest):
        return typed + rest if typed[:1] not in {"'", '"'} else value
    if typed[:1] in {"'", '"', "$"} or typed.endswith("\\"):
        return None
    return typed + _ansi_quote(rest, _PLAIN + " $#&;|<>{}~!")


def _answer_zsh() -> int:
    items_found = completions(*_command_line_words())
    if not items_found:
        print("_files")
        return 0
    # evaluated by the script, word by word: compadd itself quotes what it inserts
    values = " ".join(_ansi_quote(item.value, _PLAIN) for item in items_found)
    shown_words = " ".join(
        _ansi_quote(f"{item.value}  -- {item.help}" if item.help else item.value, _PLAIN) for item in items_found
    )
    listed = "-l " if any(item.help for item in items_found) else ""
    print(f"local -a nsw_values nsw_shown; nsw_values=({values}); nsw_shown=({shown_words});"
          f" compadd {listed}-d nsw_shown -a nsw_values")  # fmt: skip
    return 0


def _answer_fish() -> int:
    items_found = completions(*_command_line_words())
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if items_found else 1  # 1: files
    print("\n".join(f"{item.value}\t{' '.join(item.help.split())}".rstrip("\t") for item in items_found))
    return 0


def _command_line_words() -> tuple[list[str], str]:
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split_line(line)[1:]
    return (words[:-1], words[-1]) if words and not line.endswith(" ") else (words, "")


def _split_line(line: str) -> list[str]:
    """The words of a line that may end in the middle of a quoted one."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


_SHELLS = {"complete_bash": _answer_bash, "complete_zsh": _answer_zsh, "complete_fish": _answer_fish}


ParameterValues: TypeAlias = "Mapping[str, Sequence[str]]"  # the values that are before the cursor, by parameter
_MOST_LOOKED_AT: Final = 500  # files and folders
_MOST_RUNS: Final = 500
_HEAD_BYTES: Final = 4096
_RECIPE: Final = re.compile(rb"^nsw:", re.MULTILINE)
_SITES: Final = re.compile(rb"^sites:", re.MULTILINE)
_APP: Final = re.compile(rb"^app:", re.MULTILINE)


def value_completions(command: str, parameter: str, values_given: ParameterValues, typed: str) -> list[str]:
    """The values that begin as what is typed; none where files are the answer, or nobody can know.

    Args:
        command: The command's name.
        parameter: The name of the option or argument, as its function has it.
        values_given: The values before the cursor, by parameter.
        typed: What of the value is typed.
    """
    find = _BY_PARAMETER.get(f"{command} {parameter}") or _BY_PARAMETER.get(parameter)
    if find is None:
        return []
    already = set(values_given.get(parameter, ()))
    return [value for value in find(values_given, typed) if value.startswith(typed) and value not in already]


def _recipes(_: ParameterValues, typed: str) -> Iterator[str]:
    """Recipes in the folder that is typed and in those right below it, and the shipped ones by name."""
    stem = typed[: len(typed) - len(typed.rsplit("/", 1)[-1])]
    folder = Path(stem).expanduser() if stem else Path()
    for file in _yaml_files(folder):
        name = stem + file.relative_to(folder).as_posix()
        if _is_recipe(file):
            yield f"./{name}" if name.startswith("-") else name
    if not stem:
        from nsw.resources import recipes_folder

        yield from (file.name for file in sorted(recipes_folder().glob("*.yaml")))


def _shipped_recipes(_: ParameterValues, __: str) -> Iterator[str]:
    """The shipped recipes, by name."""
    from nsw.resources import recipes_folder

    yield from (file.stem for file in sorted(recipes_folder().glob("*.yaml")))


def _yaml_files(folder: Path) -> Iterator[Path]:
    looked = islice(folder.iterdir(), _MOST_LOOKED_AT)
    seen = sorted(entry for entry in looked if not entry.name.startswith("."))
    yield from (entry for entry in seen if entry.suffix in {".yaml", ".yml"} and entry.is_file())
    left = _MOST_LOOKED_AT
    for entry in seen:
        if entry.is_dir() and left > 0:
            below = list(islice(_folder_entries(entry), left))
            left -= len(below)
            yield from sorted(f for f in below if f.suffix in {".yaml", ".yml"})


def _folder_entries(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return


def _is_recipe(file: Path) -> bool:
    try:
        # a FIFO would wait for its other end; O_NONBLOCK is nothing to a file
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            head = stream.read(_HEAD_BYTES) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else b""
    except OSError:
        return False
    return bool(_RECIPE.search(head)) and (not _SITES.search(head) or bool(_APP.search(head)))


def _load_yaml(file: Path) -> Any:
    """What a YAML file holds, within the limits of size, depth and aliases that every recipe has.

    Raises:
        OSError, ValueError, NswError: It cannot be read.
    """
    from nsw.recipe.document import LARGEST, parse

    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
        return parse(stream.read(LARGEST + 1).decode(), str(file)).data


def _sites(values_given: ParameterValues, _: str) -> Iterator[str]:
    from nsw.errors import NswError
    from nsw.site.names import BUILTIN, searched_files

    sources_known = searched_files([Path(name).expanduser() for name in values_given.get("sites", ())])
    for source in sorted(
        (source_file for source_file in sources_known if not source_file.unsafe),
        key=lambda source_file: source_file.path == BUILTIN,
    ):
        try:
            sites_data = _load_yaml(source.path).get("sites")
        except (OSError, NswError, AttributeError, ValueError):
            continue
        yield from (str(name) for name in sites_data or ())


def _passes(values_given: ParameterValues, _: str) -> Iterator[str]:
    """The names of the passes of the recipe on the command line: `- baseline`, `- timeline: {name: x}`."""
    from nsw.resources import recipes_folder

    recipe_path = Path(values_given["recipe"][-1]).expanduser()
    file = recipe_path if recipe_path.exists() else recipes_folder() / recipe_path.with_suffix(".yaml").name
    if not _is_recipe(file):
        return
    for entry in _load_yaml(file).get("passes") or ["baseline"]:
        kind, keys = next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)
        yield str((keys or {}).get("name") or kind)


def _campaigns(values_given: ParameterValues, _: str) -> list[str]:
    from nsw.engine import folder as folders

    return [folder.id for folder in folders.existing(_root(values_given))]


def _baselines(values_given: ParameterValues, _: str) -> list[str]:
    from nsw.campaign.baselines import read_baselines

    return sorted(read_baselines(_root(values_given)))


def _campaigns_and_baselines(values_given: ParameterValues, typed: str) -> list[str]:
    return [*_campaigns(values_given, typed), *_baselines(values_given, typed)]


def _root(values_given: ParameterValues) -> Path:
    from nsw.engine import folder as folders

    return folders.root(Path(values_given["root"][-1]).expanduser() if values_given.get("root") else None)


def _campaign_names(kind: Literal["run", "retry", "case"]) -> Callable[[ParameterValues, str], list[str]]:
    """A function that completes runs or cases of the campaign on the command line."""

    def names_of_kind(values_given: ParameterValues, typed: str) -> list[str]:
        from nsw.campaign.selection import complete_names

        campaign_words = values_given.get("campaign") or values_given.get("named")
        return complete_names(
            _root(values_given), campaign_words[-1] if campaign_words else None, kind, typed, limit=_MOST_RUNS
        )

    return names_of_kind


def _tables(_: ParameterValues, __: str) -> list[str]:
    from nsw.tables.schema import TABLES

    return list(TABLES)


def _read_tables(values_given: ParameterValues, typed: str) -> list[str]:
    from nsw.present.emit import COMPUTED

    return [*_tables(values_given, typed), *COMPUTED]


def _all_tables(values_given: ParameterValues, typed: str) -> list[str]:
    from nsw.present.emit import FLAT

    return list(dict.fromkeys((*FLAT, *_tables(values_given, typed))))


def _metric_names(_: ParameterValues, typed: str) -> list[str]:
    """Portable metrics and groups; what is begun as a name of ncu goes on as one."""
    from nsw.metrics import metric_groups_by_name, metrics_by_name, ncu_names

    return ncu_names.base_names() if "__" in typed else [*metric_groups_by_name(), *metrics_by_name()]


def _chips(_: ParameterValues, __: str) -> list[str]:
    from nsw.metrics.catalogue import chips_by_name

    return list(chips_by_name())


# the names of blocks that plots.py draws
_PLOTS: Final = (
    "scaling", "efficiency", "compare", "time", "sweep", "map", "metric_map", "rooflines", "roofline", "timeline",
    "phases", "hotspots", "api", "functions",
)  # fmt: skip
_OF_COMPARISONS: Final = ("intervals", "waterfall")

_BY_PARAMETER: Final[dict[str, Callable[[ParameterValues, str], Iterable[str]]]] = {
    "recipe": _recipes,
    "site": _sites,
    "passes": _passes,
    "campaign": _campaigns,
    "campaigns": _campaigns,
    "against": _campaigns,
    "named": _campaigns,
    "sides": _campaigns_and_baselines,
    "run": _campaign_names("run"),
    "runs": _campaign_names("retry"),
    "case": _campaign_names("case"),
    "timeline": _campaign_names("case"),
    "table": _tables,
    "read table": _read_tables,
    "summarize table": _all_tables,
    "plot": lambda _given, _begun: list(_OF_COMPARISONS),
    "summarize plot": lambda _given, _begun: list(_PLOTS),
    "read plot": lambda _given, _begun: list(_PLOTS),
    "names": _metric_names,
    "chip": _chips,
    "action": lambda _given, _begun: ["check"],
    "name": _sites,
    "baseline name": _baselines,
    "shipped": _shipped_recipes,
}
