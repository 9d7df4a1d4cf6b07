"""A first recipe for a command line: what is known as keys, the rest as comments that become keys."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import yaml

from nsw.recipe.program import Launched, split_at_launcher

if TYPE_CHECKING:
    from nsw.convert.script_options import PassWords

_HEAD: Final = """\
# What to run, over which parameters, under which profilers. `nsw schema recipe` has every key.
#
#   nsw plan {file}     what would run and what it costs at most; nothing is submitted
#   nsw run {file}      all of it, up to the answer
#
# Lines that begin with "#- " are keys to use: take "#- ", with its space, away.
"""
_NODES: Final = re.compile(r"(?:^| )(?:-N ?|--nodes[ =])([1-9]\d*)(?= |$)")  # of srun, which needs a job with them
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_OPTION: Final = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.+))?")
_JINJA: Final = re.compile(r"\{[{%#]")
_NO_NAMES: Final = frozenset({  # words that mean something else in a matrix or an expression
    "case", "site", "include", "exclude", "zip", "and", "or", "not", "in", "is", "if", "else", "true", "false", "none",
})  # fmt: skip
_NOT_THE_PROGRAM: Final = re.compile(  # what starts one
    r"(?:python|bash|sh|perl|julia|Rscript|ruby)[\d.]*|env|time|nice|numactl|mpirun|mpiexec|srun|aprun|jsrun|torchrun"
)
_SCRIPTS: Final = frozenset({".py", ".sh", ".jl", ".pl", ".R", ".rb"})
_PLAIN: Final = re.compile(r"[\w\s./=,:+@%-]*")  # words that a shell would only split


def recipe_for(words: Sequence[str], files: Sequence[str], *, gpus: bool, file: str = "recipe.yaml") -> str:
    """The text of a recipe.

    Args:
        words: The command line; one word is a line of shell.
        files: Its files, relative to the recipe.
        gpus: Whether the machine that it is for has GPUs.
        file: The name that the recipe will have.
    """
    words, profiler = split_profiler([_path_in_job(word, files) for word in words_of(words)])
    start = split_at_launcher(words)
    counted = start is not None and start.processes is not None
    program = start.program if start else words
    words = program if counted else words
    option, value = _guess_parameter(program)
    double = f"{float(value) * 2:g}" if "." in value else int(value) * 2
    passes = _passes_text(profiler, gpus=gpus, python=_is_python(words))
    command = as_text(words[0] if len(words) == 1 else shlex.join(words))
    listed = yaml.safe_dump(list(files), default_flow_style=True, width=1 << 20).strip() if files else ""
    gpu_count = start.processes if gpus and start and start.kind == "torchrun" else int(gpus)
    nodes = _NODES.search(" ".join(start.options)) if start and start.kind == "srun" else None
    resources = f"nodes: {nodes[1]}, gpus: {int(nodes[1]) * int(gpus)}" if nodes else f"gpus: {gpu_count}"
    return (
        _HEAD.format(file=file)
        + f"""nsw: 1
name: {_as_yaml_scalar(program_name(program))}

app:
  # Parameters of the matrix are written {{{{ {option} }}}}; nsw quotes their values.
  command: {_as_yaml_scalar(command)}
"""
        + (f"  files: {listed} # travel with the job and are put beside the program\n" if listed else "")
        + (_launcher_text(start) if start else "")
        + f"""\
  #- figures: # numbers that the program prints, found by a regular expression
  #-   speed: {{ regex: 'speed=([\\d.]+)', unit: items/s }}

# Each combination of values is a case. To use {option}, write {{{{ {option} }}}} in the command.
#- matrix:
#-   {option}: [{value}, {double}]

# What must hold of each run beside exit status 0; one of which it does not is invalid, and in no statistics.
#- check:
#-   - {{ regex: '(?i)\\bnan\\b', never: true }}
#-   - {{ figure: speed, at_least: 1 }}

# One run says nothing of how much a measurement scatters.
#- repeats: 3

# Each pass does all cases again, observed in one way.
passes:
{passes}
# GPUs are those of all processes of a run together; the time is the limit of one run,
# and after a first run nsw tells a shorter one.
resources: {{ {resources}, time: 10m }}

# What the answer compares: here the figure against the first value of {option}.
#- report:
#-   compare: {{ parameter: {option}, figure: speed }}
"""
    )


def words_of(words: Sequence[str]) -> Sequence[str]:
    """A command line's words, also of a line that needs no shell to split it."""
    return words[0].split() if len(words) == 1 and _PLAIN.fullmatch(words[0]) else words


def _launcher_text(start: Launched) -> str:
    """The launcher as a key, or as a comment where the command line does not give the number of processes."""
    options = ", ".join(_as_flow_item(as_text(word)) for word in start.options)
    options_key = f", options: [{options}]" if options else ""
    launcher_keys = f"kind: {start.kind}, processes: {start.processes or 2}{options_key}"
    if start.processes is None:
        return (
            f"  # {start.kind} starts as many processes as it thinks right. With their number here, and without"
            f" {start.kind} in the command,\n  # the job asks for them, and a profiler watches each.\n"
            f"  #- launcher: {{ {launcher_keys} }}\n"
        )
    return (
        f"  # nsw puts {start.kind} before the command: the job asks for that many processes, and a profiler watches"
        f" each.\n  launcher: {{ {launcher_keys} }}\n"
    )


def split_profiler(words: Sequence[str]) -> tuple[Sequence[str], PassWords | None]:
    """A command line without the profiler that it begins with, and the pass that this is."""
    from nsw.convert.script_options import parse_pass
    from nsw.convert.shell_reader import Piece, Text

    profiler = parse_pass([Text((Piece("text", word),)) for word in words])
    if profiler is None or not profiler.program:
        return words, None
    return [word.literal or "" for word in profiler.program], profiler


def _passes_text(profiler: PassWords | None, *, gpus: bool, python: bool) -> str:
    lines = [
        (True, "baseline: {} # no profiler: the speed that counts"),
        (gpus, "timeline: { tool: nsys, trace: [cuda, nvtx] } # which kernels and copies, when"),
        (python and not gpus, "host: { tool: cprofile } # which Python functions cost most"),
        (
            False,
            "counters: { kernels: { cover: 90% }, launches: { sample: 5 } } # why the kernels that cost most are slow",
        ),
    ]
    if profiler is not None:
        keys = {"tool": profiler.tool, **profiler.fields} | ({"options": profiler.options} if profiler.options else {})
        text = yaml.safe_dump({profiler.kind: keys}, default_flow_style=True, sort_keys=False, width=1 << 20)
        lines = [lines[0], (True, f"{text.strip()[1:-1]} # the {profiler.tool} of your command line")]
    return "".join(f"  {'' if used else '#- '}- {line}\n" for used, line in lines)


def _path_in_job(word: str, files: Sequence[str]) -> str:
    """The path of a file as the command finds it where the job runs: beside the program."""
    name = PurePosixPath(word).as_posix()
    if name not in files:
        return word
    return f"./{PurePosixPath(name).name}" if word.startswith("./") else PurePosixPath(name).name


def as_text(words: str) -> str:
    """Text in which Jinja finds nothing of its own."""
    return _JINJA.sub(lambda match: "{{ '" + match[0] + "' }}", words)


def _guess_parameter(words: Sequence[str]) -> tuple[str, str]:
    """The option with a number that a matrix would most likely go over, and its number."""
    number_options = []
    parts = shlex.split(words[0]) if len(words) == 1 and "'" not in words[0] and '"' not in words[0] else list(words)
    for word, after in zip(parts, [*parts[1:], ""], strict=True):
        option = _OPTION.fullmatch(word)
        number = (option[2] or after) if option else ""
        if option and len(option[1]) > 1 and option[1].lower() not in _NO_NAMES and _NUMBER.fullmatch(number):
            number_options.append((re.sub(r"\W", "_", option[1]), number))
    return next(
        (option_pair for option_pair in number_options if re.search("batch|size", option_pair[0])),
        number_options[0] if number_options else ("size", "1"),
    )


def _is_python(words: Sequence[str]) -> bool:
    first = shlex.split(words[0])[:1] if len(words) == 1 and "'" not in words[0] and '"' not in words[0] else words[:1]
    return bool(first) and PurePosixPath(first[0]).name.startswith("python")


def program_name(words: Sequence[str]) -> str:
    """A name for campaigns: the program's."""
    parts = words[0].split() if len(words) == 1 else list(words)
    program_words = [part for part in parts if not part.startswith("-") and "=" not in part]
    scripts = [part for part in program_words if PurePosixPath(part).suffix in _SCRIPTS]
    rest = [
        candidate
        for candidate in program_words
        if not _NOT_THE_PROGRAM.fullmatch(PurePosixPath(candidate).name) and not candidate.isdecimal()
    ]
    program = PurePosixPath(next(iter([*scripts, *rest, *program_words]), ""))
    name = program.stem if program.suffix in _SCRIPTS else program.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:60] or "program"


def _as_flow_item(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z-][\w./=-]*", text) and text != "-" else json.dumps(text)


def _as_yaml_scalar(text: str) -> str:
    if not text.isprintable():  # a line break: JSON's quotes are YAML's too
        return json.dumps(text)
    return yaml.safe_dump(text, width=1 << 20, allow_unicode=True).removesuffix("...\n").strip()
