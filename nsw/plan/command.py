"""A program's command: its words, its container, its secrets."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from nsw.errors import UsageError
from nsw.profilers.model import MACHINERY
from nsw.recipe.program import LONGEST
from nsw.recipe.units import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.expressions import Expression

__all__ = [
    "FILE", "PRIVATE", "RECORD_ENVIRONMENT", "RUNTIMES", "Box", "boxed", "folder_of_tool", "with_secrets", "words",
]  # fmt: skip

PRIVATE = "private"  # folder beside `runs` in the campaign's folder on the site, closed to all but its owner
FILE = f"{PRIVATE}/secrets.sh"
RECORD_ENVIRONMENT = frozenset({"nsys"})


def with_secrets(number: int, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words, to be started with a set of the plan's secrets; 0: the words as they are."""
    return ("bash", MACHINERY, "with_secrets", str(number), *program) if number else tuple(program)


# Private-use characters that stand for the interpolated value number N while a command is taken apart.
_OPEN, _CLOSE = "\ue000", "\ue001"
_VALUE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_VALUE_AND_BEFORE = re.compile(rf"(\\?){_VALUE.pattern}")
# Safe in any shell context, quoted or not; no `=`, which would make an assignment of a first word.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+")
_SPECIAL = frozenset("|&;<>()$`*?[]{}!#~\n")
_SPECIAL_IN_DOUBLE = frozenset("$`")
# words that only a shell knows: a command that begins with one needs it
_BUILTIN = frozenset((
    ".", ":", "alias", "case", "cd", "declare", "eval", "exec", "exit", "export", "for", "function", "if", "local",
    "module", "read", "readonly", "return", "set", "shift", "shopt", "source", "time", "trap", "ulimit", "umask",
    "unset", "until", "wait", "while",
))  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def words(expression: Expression, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a command written as one string, its `{{ }}` filled from `values`.

    Args:
        expression: The parsed string.
        values: The case's parameters and what else an expression may name.

    Raises:
        UsageError: It is too long, or a quote or a backslash of it has no end.
    """
    values_in_order: list[str] = []

    def keep(value: object) -> str:
        values_in_order.append(as_text(value))
        return f"{_OPEN}{len(values_in_order) - 1}{_CLOSE}"

    text = expression.render(values, wrap=keep)
    if len(text) > LONGEST:
        raise UsageError(
            f"the command has {len(text):,} characters, and Linux takes at most {LONGEST:,} in an argument",
            hint="write it into a script, which `app: files:` brings along, or as a list of arguments",
        )
    try:
        parts = _taken_apart(text)
    except ValueError as fault:  # of shlex, which knows two
        if "quotation" not in str(fault):
            raise UsageError("the command ends with a backslash, and nothing follows it", hint="remove it") from None
        quote = '"' if _contexts(text)[-1] in {"d", "E"} else "'"
        hint = f"close it, or write a literal one as \\{quote}"
        raise UsageError(f"the command opens a quote {quote} but never closes it", hint=hint) from None
    if parts is None:
        return (
            "bash",
            "-o",
            "pipefail",
            "-c",
            _as_parameters(text, _contexts(text), values_in_order),
            "nsw",
            *values_in_order,
        )
    return tuple(_VALUE.sub(lambda match: values_in_order[int(match[1])], part) for part in parts)


@lru_cache(maxsize=256)
def _taken_apart(text: str) -> tuple[str, ...] | None:
    """The words of a command that needs no shell, else None; the same for all cases that differ in values only."""
    return None if _needs_shell(text, _contexts(text)) else tuple(shlex.split(text, comments=False))


def _contexts(text: str) -> str:
    """The quoting of each character: u(nquoted), d(ouble-quoted), s(ingle-quoted), e(scaped), E: both d and e."""
    states: list[str] = []
    state = "u"
    escaped = False
    for char in text:
        if escaped or (char == "\\" and state != "s"):
            states.append("E" if state == "d" else "e")
            escaped = not escaped
        elif (char == "'" and state != "d") or (char == '"' and state != "s"):
            opening = state == "u"
            states.append("s" if char == "'" else "d")
            state = ("s" if char == "'" else "d") if opening else "u"
        else:
            states.append(state)
    return "".join(states)


def _needs_shell(text: str, states: str) -> bool:
    if _ASSIGNMENT.match(text.lstrip()) or next(iter(text.split(maxsplit=1)), "") in _BUILTIN:
        return True
    return any(
        (s == "u" and c in _SPECIAL) or (s in "dE" and c in _SPECIAL_IN_DOUBLE) or (s in "eE" and c == "\n")
        for c, s in zip(text, states, strict=True)
    )


def _as_parameters(text: str, states: str, values: list[str]) -> str:
    """The text with each value as `$N`, quoted for its place; plain values stay readable."""

    def reference(match: re.Match[str]) -> str:
        before, value, state = match[1], values[int(match[2])], states[match.start() + len(match[1])]
        if _PLAIN.fullmatch(value):
            return f"{before}{value}"
        parameter = f"${{{int(match[2]) + 1}}}"
        if state == "e":  # a backslash that quotes what is quoted here anyway
            return f'"{parameter}"'
        if state == "E":  # there it quotes nothing, and is one
            return f"{before}{before}{parameter}"
        return before + {"d": parameter, "s": f"'\"{parameter}\"'"}.get(state, f'"{parameter}"')

    return _VALUE_AND_BEFORE.sub(reference, text)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The words of one program that runs containers.

    `bind` and `workdir` are written before `FOLDER:FOLDER` and `FOLDER`; `environment` makes the job's variables
    known inside, where that is not done anyway; `image` is written before the image's name.
    """

    words: tuple[str, ...]
    bind: str
    workdir: str
    environment: tuple[str, ...] = ()
    image: str = ""


RUNTIMES: dict[str, Runtime] = {
    "apptainer": Runtime(("apptainer", "exec"), "--bind=", "--pwd="),
    "singularity": Runtime(("singularity", "exec"), "--bind=", "--pwd="),
    "shifter": Runtime(("shifter",), "--volume=", "--workdir=", image="--image="),
    # the image's own variables (its PATH, for one) still come before the job's
    "podman": Runtime(("podman", "run", "--rm"), "--volume=", "--workdir=", environment=("--env-host",)),
}

_RUN = '"$PWD"'
_CAMPAIGN = '"${PWD%/*/*/*}"'  # of runs/RUN/attempt-N; the application's folder is beside runs
# over the image's own, these would leave nothing of the image
_TOO_MUCH = frozenset({"/", "/usr", "/usr/local", "/opt", "/home", "/root"})


@dataclass(frozen=True, slots=True)
class Box:
    """A recipe's container for one case.

    `profiler_inside`: whether the profiler is the image's; `folders`: names of folders beside `runs` that it must see.
    """

    runtime: str
    image: str
    options: tuple[str, ...] = ()
    profiler_inside: bool = True
    folders: tuple[str, ...] = ()


def boxed(box: Box, program: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
    """The program's words inside its container.

    Args:
        box: The container.
        program: What runs inside.
        tools: Folders of this machine that it needs at the same place inside.
    """
    runtime = RUNTIMES[box.runtime]
    folders = [_RUN, *(f"{_CAMPAIGN}/{shlex.quote(name)}" for name in box.folders)]
    binds = " ".join(f"{runtime.bind}{folder}:{folder}" for folder in folders)
    fixed = " ".join((*runtime.words, *runtime.environment))
    text = f'exec {fixed} {binds} {runtime.workdir}{_RUN} "$@"'
    bound = tuple(f"{runtime.bind}{folder}:{folder}" for folder in tools)
    return ("bash", "-c", text, "nsw", *bound, *box.options, f"{runtime.image}{box.image}", *program)


def folder_of_tool(path: str) -> str | None:
    """The folder that holds all of a profiler, of the path it is called by; None when it cannot be told.

    `/opt/nvidia/nsight-systems/2024.2.1/bin/nsys` needs what is beside `bin`.
    """
    parent = PurePosixPath(path).parent
    if not parent.is_absolute():
        return None
    folder = parent.parent if parent.name == "bin" or parent.name.startswith("target-") else parent
    return None if str(folder) in _TOO_MUCH else str(folder)
