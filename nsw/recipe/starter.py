"""A first recipe for a command line: what is known as keys, the rest as comments that become keys."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD: Final = """\
# What to run, over which parameters, under which profilers. `nsw schema recipe` has every key.
#
#   nsw plan {file}     what would run and what it costs at most; nothing is submitted
#   nsw run {file}      all of it, up to the answer
#
# Lines that begin with "#-" are keys to use: take the "#-" away.
"""
_LAUNCHERS: Final = {
    "torchrun": "torchrun", "srun": "srun", "mpirun": "mpirun", "mpiexec": "mpiexec", "aprun": "aprun",
    "jsrun": "jsrun",
}  # fmt: skip
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_OPTION: Final = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.+))?")
_JINJA: Final = re.compile(r"\{[{%#]|[#%}]\}")
_NO_NAMES: Final = frozenset({  # words that mean something else in a matrix or an expression
    "case", "site", "include", "exclude", "zip", "and", "or", "not", "in", "is", "if", "else", "true", "false", "none",
})  # fmt: skip
_INTERPRETERS: Final = re.compile(r"(?:python|bash|sh|perl|julia|Rscript|ruby)[\d.]*")


def recipe_for(words: Sequence[str], files: Sequence[str], *, gpus: bool, file: str = "recipe.yaml") -> str:
    """The text of a recipe.

    Args:
        words: The command line; one word is a line of shell.
        files: Its files, relative to the recipe.
        gpus: Whether the machine that it is for has GPUs.
        file: The name that the recipe will have.
    """
    words = [_beside(word, files) for word in words]
    option, value = _parameter(words)
    passes = _passes(gpus=gpus, python=_is_python(words))
    launcher = _LAUNCHERS.get(PurePosixPath(words[0]).name) if len(words) > 1 else None
    command = _JINJA.sub(lambda found: "{{ '" + found[0] + "' }}", words[0] if len(words) == 1 else shlex.join(words))
    listed = yaml.safe_dump(list(files), default_flow_style=True, width=1 << 20).strip() if files else ""
    start = f"  #- launcher: {{ kind: {launcher}, processes: 2 }} # instead of {launcher} in the command\n"
    return (
        _HEAD.format(file=file)
        + f"""nsw: 1
name: {_scalar(_name(words))}

app:
  # Parameters of the matrix are written {{{{ {option} }}}}; nsw quotes their values.
  command: {_scalar(command)}
"""
        + (f"  files: {listed} # travel with the job and are put beside the program\n" if listed else "")
        + (start if launcher else "")
        + f"""\
  #- figures: # numbers that the program prints, found by a regular expression
  #-   speed: {{ regex: 'speed=([\\d.]+)', unit: items/s }}

# Each combination of values is a case. To use {option}, write {{{{ {option} }}}} in the command.
#- matrix:
#-   {option}: [{value}, {_twice(value)}]

# One run says nothing of how much a measurement scatters.
#- repeats: 3

# Each pass does all cases again, observed in one way.
passes:
{passes}
# The time is the limit of one run.
resources: {{ gpus: {int(gpus)}, time: 10m }}

# What the answer compares: here the figure against the first value of {option}.
#- report:
#-   compare: {{ parameter: {option}, figure: speed }}
"""
    )


def with_all_keys(text: str) -> str:
    """The recipe with every proposed key in use."""
    return re.sub(r"^( *)#- ", r"\1", text, flags=re.MULTILINE)


def _passes(*, gpus: bool, python: bool) -> str:
    lines = [
        (True, "baseline: {} # no profiler: the speed that counts"),
        (gpus, "timeline: { tool: nsys, trace: [cuda, nvtx] } # which kernels and copies, when"),
        (python and not gpus, "host: { tool: cprofile } # which Python functions cost most"),
        (
            False,
            "counters: { kernels: { cover: 90% }, launches: { sample: 5 } } # why the kernels that cost most are slow",
        ),
    ]
    return "".join(f"  {'' if used else '#- '}- {line}\n" for used, line in lines)


def _beside(word: str, files: Sequence[str]) -> str:
    """A file as the command finds it where the job runs: beside the program."""
    name = PurePosixPath(word).as_posix()
    if name not in files:
        return word
    return f"./{PurePosixPath(name).name}" if word.startswith("./") else PurePosixPath(name).name


def _parameter(words: Sequence[str]) -> tuple[str, str]:
    """The option with a number that a matrix would most likely go over, and its number."""
    found = []
    parts = shlex.split(words[0]) if len(words) == 1 and "'" not in words[0] and '"' not in words[0] else list(words)
    for word, after in zip(parts, [*parts[1:], ""], strict=True):
        option = _OPTION.fullmatch(word)
        number = (option[2] or after) if option else ""
        if option and len(option[1]) > 1 and option[1].lower() not in _NO_NAMES and _NUMBER.fullmatch(number):
            found.append((re.sub(r"\W", "_", option[1]), number))
    return next((one for one in found if re.search("batch|size", one[0])), found[0] if found else ("size", "1"))


def _twice(value: str) -> str:
    return f"{float(value) * 2:g}" if "." in value else str(int(value) * 2)


def _is_python(words: Sequence[str]) -> bool:
    first = shlex.split(words[0])[:1] if len(words) == 1 and "'" not in words[0] and '"' not in words[0] else words[:1]
    return bool(first) and PurePosixPath(first[0]).name.startswith("python")


def _name(words: Sequence[str]) -> str:
    """A name for campaigns: the program's."""
    parts = words[0].split() if len(words) == 1 else list(words)
    own = [part for part in parts if not part.startswith("-") and "=" not in part]
    scripts = [part for part in own if PurePosixPath(part).suffix in {".py", ".sh", ".jl"}]
    rest = [part for part in own if not _INTERPRETERS.fullmatch(PurePosixPath(part).name) and part not in _LAUNCHERS]
    stem = PurePosixPath(next(iter([*scripts, *rest, *own]), "")).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:60] or "program"


def _scalar(text: str) -> str:
    if not text.isprintable():  # a line break: JSON's quotes are YAML's too
        return json.dumps(text)
    return yaml.safe_dump(text, width=1 << 20, allow_unicode=True).removesuffix("...\n").strip()
