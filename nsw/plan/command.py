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
    "FILE",
    "PRIVATE",
    "PYXIS",
    "RECORD_ENVIRONMENT",
    "RUNTIMES",
    "Box",
    "command_words",
    "folder_of_tool",
    "in_container",
    "step_in_containers",
    "with_container_env",
    "with_secrets",
]

PRIVATE = "private"  # folder beside `runs` in the campaign's folder on the site, closed to all but its owner
FILE = f"{PRIVATE}/secrets.sh"
PYXIS = "pyxis"
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


def command_words(expression: Expression, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a command written as one string, its `{{ }}` filled from `values`.

    Args:
        expression: The parsed string.
        values: The case's parameters and what else an expression may name.

    Raises:
        UsageError: It is too long, or a quote or a backslash of it has no end.
    """
    values_in_order: list[str] = []

    def placeholder(value: object) -> str:
        values_in_order.append(as_text(value))
        return f"{_OPEN}{len(values_in_order) - 1}{_CLOSE}"

    text = expression.render(values, wrap=placeholder)
    if len(text) > LONGEST:
        raise UsageError(
            f"the command has {len(text):,} characters, and Linux takes at most {LONGEST:,} in an argument",
            hint="write it into a script, which `app: files:` brings along, or as a list of arguments",
        )
    try:
        parts = _split_without_shell(text)
    except ValueError as fault:  # of shlex, which knows two
        if "quotation" not in str(fault):
            raise UsageError("the command ends with a backslash, and nothing follows it", hint="remove it") from None
        quote = '"' if _quoting_states(text)[-1] in {"d", "E"} else "'"
        hint = f"close it, or write a literal one as \\{quote}"
        raise UsageError(f"the command opens a quote {quote} but never closes it", hint=hint) from None
    if parts is None:
        return (
            "bash",
            "-o",
            "pipefail",
            "-c",
            _as_parameters(text, _quoting_states(text), values_in_order),
            "nsw",
            *values_in_order,
        )
    return tuple(_VALUE.sub(lambda match: values_in_order[int(match[1])], part) for part in parts)


@lru_cache(maxsize=256)
def _split_without_shell(text: str) -> tuple[str, ...] | None:
    """The words of a command that needs no shell, else None; the same for all cases that differ in values only."""
    return None if _needs_shell(text, _quoting_states(text)) else tuple(shlex.split(text, comments=False))


def _quoting_states(text: str) -> str:
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

    def parameter_reference(match: re.Match[str]) -> str:
        before, value, state = match[1], values[int(match[2])], states[match.start() + len(match[1])]
        if _PLAIN.fullmatch(value):
            return f"{before}{value}"
        parameter = f"${{{int(match[2]) + 1}}}"
        if state == "e":  # a backslash that quotes what is quoted here anyway
            return f'"{parameter}"'
        if state == "E":  # there it quotes nothing, and is one
            return f"{before}{before}{parameter}"
        return before + {"d": parameter, "s": f"'\"{parameter}\"'"}.get(state, f'"{parameter}"')

    return _VALUE_AND_BEFORE.sub(parameter_reference, text)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The words of one program that runs containers.

    Attributes:
        words: Its command.
        bind: What is written before `FOLDER:FOLDER`.
        workdir: What is written before the folder to start in.
        variable: What is written before `NAME=VALUE`; empty: `env` inside sets it.
        environment: Options that make the job's variables known inside, where that is not done anyway.
        names: Whether they are passed by their names, one by one.
        image: What is written before the image's name.
        gpus: Options that bring the GPUs in.
        end: What is written between the image and the program.
    """

    words: tuple[str, ...]
    bind: str
    workdir: str
    variable: str = "--env="
    environment: tuple[str, ...] = ()
    names: bool = False
    image: str = ""
    gpus: tuple[str, ...] = ()
    end: tuple[str, ...] = ()


RUNTIMES: dict[str, Runtime] = {
    "apptainer": Runtime(("apptainer", "exec"), "--bind=", "--pwd=", gpus=("--nv",)),
    "singularity": Runtime(("singularity", "exec"), "--bind=", "--pwd=", gpus=("--nv",)),
    "shifter": Runtime(("shifter",), "--volume=", "--workdir=", image="--image="),
    # the image's own variables (its PATH, for one) still come before the job's
    "podman": Runtime(
        ("podman", "run", "--rm"), "--volume=", "--workdir=", environment=("--env-host",),
        gpus=("--device=nvidia.com/gpu=all",),
    ),
    # process 1 of a container ignores SIGTERM, and what docker runs goes on when docker itself is killed
    "docker": Runtime(("docker", "run", "--rm", "--init"), "--volume=", "--workdir=", names=True, gpus=("--gpus=all",)),
    "sarus": Runtime(("sarus", "run"), "--mount=type=bind,source=", "--workdir="),
    "charliecloud": Runtime(("ch-run",), "--bind=", "--cd=", variable="--set-env=", end=("--",)),
    PYXIS: Runtime(("srun",), "--container-mounts=", "--container-workdir=", variable="", image="--container-image="),
}  # fmt: skip

_RUN = '"$PWD"'
_CAMPAIGN = '"${PWD%/*/*/*}"'  # of runs/RUN/attempt-N; the application's folder is beside runs
# over the image's own, these would leave nothing of the image
_TOO_MUCH = frozenset({"/", "/usr", "/usr/local", "/opt", "/home", "/root"})
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")
# the job's variables but for those that say where programs of the image are
_BY_NAME = (
    "for nsw_name in $(compgen -e); do case $nsw_name in PATH|HOME|LD_LIBRARY_PATH|PYTHONPATH) ;;"
    ' *) set -- --env "$nsw_name" "$@" ;; esac; done; '
)


@dataclass(frozen=True, slots=True)
class Box:
    """A recipe's container for one case.

    Attributes:
        runtime: The program that runs it.
        image: Its file or reference.
        options: More arguments.
        profiler_inside: Whether the profiler is the image's.
        folders: Names of folders beside `runs` that it must see.
        mounts: Folders of the site, `SOURCE:TARGET`.
        env: Variables with their values inside.
        gpus: Whether the GPUs are brought in by an option.
    """

    runtime: str
    image: str
    options: tuple[str, ...] = ()
    profiler_inside: bool = True
    folders: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    gpus: bool = False


def in_container(box: Box, program: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
    """The program's words inside its container; of pyxis as a step of one process.

    Args:
        box: The container.
        program: What runs inside.
        tools: Folders of this machine that it needs at the same place inside.
    """
    if box.runtime == PYXIS:
        return step_in_containers(box, ("srun", "--ntasks=1", *with_container_env(box, program)), tools)
    return _runtime_command(box, (), with_container_env(box, program), tools)


def step_in_containers(box: Box, step: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
    """The words of a step of srun whose processes are in containers of pyxis.

    Args:
        box: The container.
        step: The words of srun, with the program's.
        tools: Folders of this machine that it needs at the same place inside.
    """
    return _runtime_command(box, step[1:], (), tools)


def with_container_env(box: Box, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words with the container's variables, where the runtime has no option for them."""
    if RUNTIMES[box.runtime].variable or not box.env:
        return tuple(program)
    return ("env", *(f"{name}={value}" for name, value in box.env), *program)


def _runtime_command(box: Box, step: Sequence[str], program: Sequence[str], tools: Sequence[str]) -> tuple[str, ...]:
    runtime = RUNTIMES[box.runtime]
    folders = [_RUN, *(f"{_CAMPAIGN}/{shlex.quote(name)}" for name in box.folders)]
    binds = [_mount_option(runtime, f"{folder}:{folder}") for folder in folders]
    texts = [mount for mount in box.mounts if "$" in mount]  # the job's shell fills in its variables
    binds += [_mount_option(runtime, _quote_for_job_shell(mount)) for mount in texts]
    mounts = [*(f"{folder}:{folder}" for folder in tools), *(mount for mount in box.mounts if mount not in texts)]
    bound = [_mount_option(runtime, mount) for mount in mounts]
    if box.runtime == PYXIS and len(binds) + len(bound) > 1:  # one option, whose values commas divide
        binds += [_quote_for_job_shell(mount) for mount in bound]
        binds, bound = [runtime.bind + ",".join(bind.removeprefix(runtime.bind) for bind in binds)], []
    env = [f"{runtime.variable}{name}={value}" for name, value in box.env if runtime.variable]
    options = (*bound, *env, *(runtime.gpus if box.gpus else ()), *box.options)
    fixed = " ".join((*runtime.words, *runtime.environment, *binds, f"{runtime.workdir}{_RUN}"))
    image = f"{runtime.image}{box.image}"
    if "$" in image:
        image_text = f"{_quote_for_job_shell(image)} "
        text = f'set -- "${{@:1:{len(options)}}}" {image_text}"${{@:{len(options) + 1}}}"; '
        words = (*options, *runtime.end, *step, *program)
    else:
        text, words = "", (*options, image, *runtime.end, *step, *program)
    return ("bash", "-c", f'{text}{_BY_NAME if runtime.names else ""}exec {fixed} "$@"', "nsw", *words)


def _mount_option(runtime: Runtime, mount: str) -> str:
    """A mount as the runtime writes it, of `SOURCE:TARGET` or `SOURCE:TARGET:ro`."""
    source, _, target = mount.partition(":")
    target, _, rights = (target or source).partition(":")
    if "source=" in runtime.bind:
        return f"{runtime.bind}{source},destination={target}{',readonly' if rights == 'ro' else ''}"
    return f"{runtime.bind}{source}:{target}{':' + rights if rights else ''}"


def _quote_for_job_shell(text: str) -> str:
    """Text as a word of shell in which `$NAME` is filled in and nothing else."""
    parts = _VARIABLE.split(text)
    return "".join(
        f'"${{{part.strip("{}")}}}"' if number % 2 else shlex.quote(part) if part else ""
        for number, part in enumerate(parts)
    )


def folder_of_tool(path: str) -> str | None:
    """The folder that holds all of a profiler, of the path it is called by; None when it cannot be told.

    `/opt/nvidia/nsight-systems/2024.2.1/bin/nsys` needs what is beside `bin`.
    """
    parent = PurePosixPath(path).parent
    if not parent.is_absolute():
        return None
    folder = parent.parent if parent.name == "bin" or parent.name.startswith("target-") else parent
    return None if str(folder) in _TOO_MUCH else str(folder)
