"""Writes nsw/cli/words.json, which completion reads, from the commands and options of nsw."""

import json
import sys
from enum import EnumType
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw.cli.application import COMMANDS, program  # noqa: E402
from nsw.cli.completion import SHIPPED  # noqa: E402


def text() -> str:
    """The commands as they are shipped, a line a command."""
    root: Any = typer.main.get_command(program(list(COMMANDS)))
    data = [_command("nsw", root), *(_command(name, command) for name, command in root.commands.items())]
    lines = (json.dumps(command, ensure_ascii=False, separators=(",", ":")) for command in data)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _command(name: str, command: Any) -> dict[str, Any]:
    parameters = [_parameter(p) for p in command.params if not p.hidden]
    helping = {"name": "help", "flags": ["--help", "-h"], "help": "Show what there is.", "takes": False,
               "many": False, "choices": []}  # fmt: skip
    first_line = (command.help or "").partition("\n")[0]
    return {"name": name, "help": first_line, "parameters": [*parameters, helping]}


def _parameter(made: Any) -> dict[str, Any]:
    kind = made.type_descriptor.annotation
    members: list[Any] = list(kind) if isinstance(kind, EnumType) else []
    return {
        "name": made.name,
        "flags": [word for word in made.opts if word.startswith("-")],
        "help": made.help or "",
        "takes": not getattr(made, "is_flag", False),
        "many": made.multiple or made.nargs == -1,
        "choices": [member.value for member in members],
    }


if __name__ == "__main__":
    SHIPPED.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{SHIPPED}\n")
