"""What can be typed, as data: commands, their options and arguments. Made from nsw.cli.app, shipped as words.json.

Completion reads the file: the command-line parser itself takes a quarter of a second to load, at every Tab.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import EnumType
from functools import cached_property
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("words.json")


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
    flags: tuple[str, ...]
    help: str
    takes: bool
    many: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command, or nsw itself, with its parameters."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def options(self) -> dict[str, Parameter]:
        """By each of their flags."""
        return {flag: p for p in self.parameters for flag in p.flags}

    @cached_property
    def arguments(self) -> list[Parameter]:
        """In their order."""
        return [p for p in self.parameters if not p.flags]


def shipped() -> tuple[Command, dict[str, Command]]:
    """The whole of nsw, and its commands by name."""
    data = json.loads(SHIPPED.read_text(encoding="utf-8"))
    root, *others = (_command(one) for one in data)
    return root, {one.name: one for one in others}


def text_of(app: Any) -> str:
    """The data of a typer app, as it is shipped."""
    import typer

    root: Any = typer.main.get_command(app)
    data = [_described("nsw", root), *(_described(name, one) for name, one in root.commands.items())]
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in data) + "\n]\n"


def _command(data: dict[str, Any]) -> Command:
    parameters = (
        Parameter(p["name"], tuple(p["flags"]), p["help"], p["takes"], p["many"], tuple(p["choices"]))
        for p in data["parameters"]
    )
    return Command(data["name"], data["help"], tuple(parameters))


def _described(name: str, command: Any) -> dict[str, Any]:
    parameters = [_parameter(p) for p in command.params if not p.hidden]
    helping = {"name": "help", "flags": ["--help", "-h"], "help": "Show what there is.", "takes": False,
               "many": False, "choices": []}  # fmt: skip
    text = (command.help or "").partition("\n")[0]
    return {"name": name, "help": text, "parameters": [*parameters, helping]}


def _parameter(made: Any) -> dict[str, Any]:
    flags = [word for word in made.opts if word.startswith("-")]
    kind = made.type_descriptor.annotation
    members: list[Any] = list(kind) if isinstance(kind, EnumType) else []
    return {
        "name": made.name,
        "flags": flags,
        "help": made.help or "",
        "takes": not getattr(made, "is_flag", False),
        "many": made.multiple or made.nargs == -1,
        "choices": [one.value for one in members],
    }
