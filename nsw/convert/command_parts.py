"""The parts of a command line: prefixes such as numactl, launcher, container, profiler, and the program behind them.

Scripts that the command runs (`bash -c LINE`, a wrapper that ends with "$@") are read too: what they do before the
program becomes part of the program's line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise, takewhile
from pathlib import PurePosixPath
from typing import Any, Final

from nsw.convert.script_options import PassWords, called_tool, parse_pass, reads_reports
from nsw.convert.shell_reader import PRINTING, SETTING, STARTED_IN_TEXT, Block, Piece, Text, source_text
from nsw.convert.shell_script import Statement, parse_script
from nsw.errors import UsageError
from nsw.recipe.program import FILLED, Launched, split_at_launcher

_DROPPED: Final = {  # what starts the program behind it and changes nothing of it: options with a value
    "time": "-f -o --format --output", "exec": "-a", "nohup": "", "command": "", "unbuffer": "", "eval": "",
}  # fmt: skip
_PREFIXES: Final = {  # what stays before the program: options with a value, and the number of words behind the options
    "numactl": ("-N -C -m -i -p --cpunodebind --physcpubind --membind --interleave --preferred", 0),
    "taskset": ("", 1), "nice": ("-n", 0), "ionice": ("-c -n", 0), "chrt": ("", 1), "setarch": ("", 0),
    "timeout": ("-s -k --signal --kill-after", 1), "stdbuf": ("-i -o -e", 0), "catchsegv": ("", 0),
    "xvfb-run": ("-s -n", 0), "hwloc-bind": ("", 1), "likwid-pin": ("-c", 0),
}  # fmt: skip
_SSH: Final = "-b -c -D -E -e -F -i -J -l -m -O -o -p -Q -R -S -W -w"
_SALLOC: Final = (
    "-A -b -c -C -D -d -F -G -J -L -M -m -N -n -p -q -t -w -x --account --constraint --cpus-per-task --gpus"
    " --gpus-per-node --gpus-per-task --gres --mem --nodes --ntasks --ntasks-per-node --partition --qos --reservation"
    " --time"
)
_SUDO: Final = "-u -g --user --group"
_OTHER_LAUNCHERS: Final = {  # the same options under another name
    "mpiexec.hydra": "mpiexec", "mpirun.mpich": "mpirun", "mpirun.openmpi": "mpirun", "orterun": "mpirun",
    "prterun": "mpirun", "mpiexec.mpich": "mpiexec", "mpiexec.openmpi": "mpiexec",
}  # fmt: skip
_CUSTOM_LAUNCHERS: Final = {"ibrun": "-n -o", "lrun": "-n -T -N", "prun": "-n -N", "mpirun_rsh": "-np -hostfile"}
COUNTS: Final = frozenset({"-n", "-np", "--ntasks", "--np", "--n", "--pes", "--nrs"})  # options: how many processes
_INTERPRETERS: Final = re.compile(r"python[\d.]*|julia|Rscript|perl|java|matlab")
_SHELL: Final = re.compile(r"(ba|da|k|z)?sh")
_RANK: Final = re.compile(r"PROCID|LOCALID|RANK|PMI\w*|APP_PE")
_FIRST_RANKS: Final = re.compile(
    rf"(?:{_RANK.pattern})(?::?-\w*)?[^!\w]+?(-eq|==?|-lt|<=?|-le)\W*(\d+)\b|\b0\W+(?:-eq|==?)\W+\S*(?:PROCID|LOCALID|RANK|PMI)"
)
_DEEPEST: Final = 4  # scripts that start scripts

_OWN_MOUNT: Final = "-B -b --bind -v -V --volume --mount --container-mounts"
_OWN_ENV: Final = "-e --env --set-env"
_OWN_FOLDER: Final = "-w --workdir --pwd --cwd -c --cd --container-workdir --workdir"
_OF_DOCKER: Final = (
    "--name --network --net --ipc --pid --shm-size --ulimit -u --user --cap-add --cap-drop --security-opt --device -h"
    " --hostname --entrypoint --runtime -m --memory --cpus --cpuset-cpus --platform --log-driver -p --publish"
    " --group-add --userns --annotation --hooks-dir --add-host --label -l --restart --pull --env-file --gpus --tmpfs"
)
_OF_APPTAINER: Final = (
    "-W -H --home --env-file --overlay -o -S --scratch --network --network-args --dns --security --app --fusemount"
    " --add-caps --drop-caps --hostname --apply-cgroups"
)


@dataclass(frozen=True, slots=True)
class _Runtime:
    """A container runtime on a command line: its sub-commands, and options with a value that are no mounts or env."""

    commands: tuple[str, ...]
    valued: str
    kind: str  # of app.container; empty: nsw starts none
    gpus: tuple[str, ...] = ()  # options that bring the GPUs in
    dropped: tuple[str, ...] = ()  # what nsw writes itself, or what needs a terminal
    images: tuple[str, ...] = ()  # options that name the image


_CDI: Final = "nvidia.com/gpu=all"
_APPTAINER: Final = _Runtime(("exec", "run"), _OF_APPTAINER, "apptainer", ("--nv", "--nvccli"))
_DOCKER: Final = _Runtime(
    ("run",), _OF_DOCKER, "docker", ("--gpus all", "--gpus=all", f"--device {_CDI}", f"--device={_CDI}", "--gpu"),
    ("--rm", "-i", "-t", "-it", "-ti", "--interactive", "--tty", "--env-host"),
)  # fmt: skip
_PYXIS: Final = _Runtime(
    (), "--container-image --container-name --container-save --container-env", "pyxis", images=("--container-image",)
)
_RUNTIMES: Final = {
    "apptainer": _APPTAINER, "singularity": replace(_APPTAINER, kind="singularity"), "docker": _DOCKER,
    "nvidia-docker": _DOCKER, "podman": replace(_DOCKER, kind="podman"), "podman-hpc": replace(_DOCKER, kind="podman"),
    "shifter": _Runtime(
        (), "--image -i -m --module --env-file --entrypoint", "shifter", ("--module=gpu",), images=("--image", "-i")
    ),
    "sarus": _Runtime(("run",), "--mpi-type --entrypoint --device", "sarus", (), ("-t", "--tty")),
    "ch-run": _Runtime((), "-g -u --gid --uid --unset-env", "charliecloud"),
    "enroot": _Runtime(("start",), "--conf", "", (), ("--rw", "-w", "--root", "-r")),
}  # fmt: skip


@dataclass(slots=True)
class ContainerWords:
    """A container of a command line, with the keys of `app.container`."""

    runtime: str
    image: Text | None = None
    gpus: bool = False
    mounts: list[Text] = field(default_factory=list)
    env: list[tuple[str, Text]] = field(default_factory=list)
    options: list[Text] = field(default_factory=list)
    folder: Text | None = None  # where its program is started


@dataclass(slots=True)
class CommandParts:
    """What a command line starts.

    Attributes:
        start: Its launcher.
        count: The variable of a loop that is its number of processes; empty: there is none.
        prefix: The words of a launcher that nsw knows by its prefix alone, such as ibrun.
        words: Its profiler.
        program: The program's words, with what stays before them.
        is_outside: Whether the profiler starts the launcher.
        container: Its container.
        is_inside_container: Whether the profiler is started in it.
        assigns: Variables that `env` sets.
        ranks: The ranks that are profiled, as a pass has them; empty: not said.
        component: The components of a heterogeneous job that it is started in, as srun has them; empty: not said.
        prefixed: How many of the program's words stay before it, such as numactl's.
        count_of_profiled: How many commands of the script that it runs are profiled.
        allocation: What `salloc` asks for, as a directive has it; empty: it is not started by it.
        notes: What is not carried over, each with the reason.
    """

    start: Launched | None = None
    count: str = ""
    prefix: list[Text] = field(default_factory=list)
    words: PassWords | None = None
    program: list[Text] = field(default_factory=list)
    is_outside: bool = False
    container: ContainerWords | None = None
    is_inside_container: bool = False
    assigns: list[tuple[str, Text]] = field(default_factory=list)
    ranks: Any = ""
    component: str = ""
    prefixed: int = 0
    count_of_profiled: int = 1
    allocation: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)


def command_parts(words: Sequence[Text], read: Callable[[str], str | None]) -> list[CommandParts]:
    """Take a command line apart: several where it runs a script with several profiled commands.

    Args:
        words: Its words.
        read: Gives the text of a script by its name; None where it is not there.
    """
    first = _Parser(read).parse(list(words))
    return [first, *(_Parser(read, number=n).parse(list(words)) for n in range(1, first.count_of_profiled))]


class _Parser:
    def __init__(self, read: Callable[[str], str | None], depth: int = 0, number: int = 0) -> None:
        self._read = read
        self._depth = depth
        self._number = number  # of the profiled command of a script that is run
        self._parts = CommandParts()
        self._before: list[Text] = []  # words that stay before the program

    def parse(self, words: list[Text]) -> CommandParts:
        while words and (rest := self._take_next_part(words)) is not None:
            words = rest
        self._parts.program, self._parts.prefixed = [*self._before, *words], len(self._before)
        return self._parts

    def _take_next_part(self, words: list[Text]) -> list[Text] | None:
        """The words behind the next part; None where that part is the program."""
        name = _base_name(words[0])
        if self._parts.words is None and (profiler := parse_pass(words)) is not None and profiler.program:
            parts = self._parts
            parts.words = profiler
            parts.is_inside_container = parts.container is not None
            parts.is_outside = parts.start is None and not parts.prefix  # as long as a launcher follows
            return profiler.program
        if self._parts.start is None and (rest := self._take_launcher(words)) is not None:
            return rest
        if self._parts.container is None and (rest := self._take_container(words)) is not None:
            return rest
        if name == "eval" and (inlined := self._take_shell_command(words)) is not None:
            return inlined
        if name in _DROPPED and len(words) > 1:
            return words[_options_end(words, _DROPPED[name]) :]
        if name == "sudo":
            self._parts.notes.append(("sudo", "nsw starts the program as you"))
            return self._take_assignments(words[_options_end(words, _SUDO) :])
        if name == "salloc" and (at := _options_end(words, _SALLOC)) < len(words):
            self._parts.allocation = " ".join(word.source_text for word in words[1:at])
            return words[at:]
        if name == "ssh" and (at := _options_end(words, _SSH)) + 1 < len(words):
            self._parts.notes.append((f"ssh {words[at].source_text}", "nsw starts the program where the job starts"))
            pieces = [piece for word in words[at + 1 :] for piece in (Piece("text", " "), *word.pieces)]
            return [_as_text("bash"), _as_text("-c"), Text(tuple(pieces[1:]))]
        if name == "env" and len(words) > 1 and not _starts_with_dash(words[1]):
            return self._take_assignments(words[1:])
        if name in _PREFIXES or name == "env":
            valued, operands = _PREFIXES.get(name, ("-u -S", 0))
            end = _options_end(words, valued) + operands
            if name == "env":
                end += sum(1 for _ in _assignments(words[end:]))
            self._before += words[:end]
            return words[end:]
        if (inlined := self._take_shell_command(words)) is not None:
            return inlined
        return self._find_profiled_argument(words)

    def _take_assignments(self, words: list[Text]) -> list[Text]:
        assigned = list(_assignments(words))
        self._parts.assigns += assigned
        return words[len(assigned) :]

    def _find_profiled_argument(self, words: list[Text]) -> list[Text] | None:
        """A program that is given the profiled command as arguments, such as a script that binds processes."""
        if self._parts.words is not None or _INTERPRETERS.fullmatch(_base_name(words[0])) or _is_shell_line(words):
            return None
        for at in range(1, len(words)):
            if self._parts.start is None and find_launcher(words[at:])[0] is not None and profilers_in(words[at:]):
                reason = "nsw starts the launcher without it: write into app.env what it sets"
                self._parts.notes.append((words[0].source_text, reason))
                return words[at - len(self._take_assignments(words[1:at])) :]
            profiler = parse_pass(words[at:])
            if profiler is not None and profiler.program:
                self._before += words[:at]
                return words[at:]
            is_started = any(STARTED_IN_TEXT.search(word.source_text) for word in words[at:])
            if is_started and _SHELL.fullmatch(_base_name(words[at])):
                self._before += words[:at]
                return self._take_shell_command(words[at:])
        return None

    # --- launchers ----------------------------------------------------------------------------------------------------

    def _take_launcher(self, words: list[Text]) -> list[Text] | None:
        name = _base_name(words[0])
        if name in _CUSTOM_LAUNCHERS and not self._parts.prefix:
            end = _options_end(words, _CUSTOM_LAUNCHERS[name])
            self._parts.prefix = words[:end]
            return words[end:]
        segments = [list(part) for is_colon, part in groupby(words, lambda word: word.literal == ":") if not is_colon]
        if len(segments) > 1 and name.startswith(("mpi", "srun", "aprun", "jsrun", "orterun", "prterun")):
            return self._take_mpmd_segments(segments)
        start, program = find_launcher(words)
        if start is None:
            return None
        options = [option for option in start.options if option != "--multi-prog"]
        self._parts.count = _count_variable(words[: len(words) - len(program)]) if start.kind != "jsrun" else ""
        self._parts.component = _take_component(options)
        if any(option.startswith("--container-") for option in options):
            options = self._take_pyxis_options(words[1 : len(words) - len(program)], options)
        self._parts.start = start._replace(options=tuple(options))
        return self._take_programs_of_ranks(program[0]) if "--multi-prog" in start.options else program

    def _take_mpmd_segments(self, segments: list[list[Text]]) -> list[Text] | None:
        """Parse `mpirun -np 1 profiler a : -np 3 a`: one program, some of whose ranks are profiled."""
        first = segments[0][0]
        commands = [segments[0], *([first, *segment] for segment in segments[1:])]
        each = [_Parser(self._read, self._depth + 1).parse(command) for command in commands]
        counts = [(parts.start and parts.start.processes) or 1 for parts in each]
        if not all(parts.start for parts in each):
            return None
        ranks = [range(sum(counts[:n]), sum(counts[: n + 1])) for n in range(len(counts))]
        return self._merge_programs(f"{_base_name(first)} ... :", each, ranks)

    def _take_programs_of_ranks(self, file: Text) -> list[Text]:
        """Parse the file of `srun --multi-prog`: ranks and a command a line."""
        text, launcher = self._read(file.literal or ""), self._parts.start
        lines = [line.split(None, 1) for line in (text or "").splitlines() if re.match(r"\s*[\d*]", line)]
        each: list[CommandParts] = []
        ranks: list[Sequence[int]] = []
        rest = set(range((launcher and launcher.processes) or 0)).difference(*(_numbers_of_ranks(n) for n, *_ in lines))
        for numbers, command in (line for line in lines if len(line) == 2):
            for statement in parse_script(command, file.source_text).statements:
                each.append(_Parser(self._read, self._depth + 1).parse(list(statement.words)))
                each[-1].start = launcher
                ranks.append(sorted(rest) if numbers == "*" else _numbers_of_ranks(numbers))
        if not each:
            return [Text((Piece("computed", file.source_text, "the file of --multi-prog is not beside the script"),))]
        return self._merge_programs("--multi-prog:", each, ranks)

    def _merge_programs(self, label: str, each: Sequence[CommandParts], ranks: Sequence[Sequence[int]]) -> list[Text]:
        """Merge the commands of several ranks: one program, of which some ranks are profiled; others are named."""
        programs = {tuple(word.source_text for word in parts.program) for parts in each}
        chosen = next((parts for parts in each if parts.words is not None), each[0])
        count = sum(map(len, ranks))
        profiled = sorted(
            rank for parts, rank_group in zip(each, ranks, strict=True) if parts.words for rank in rank_group
        )
        if len(programs) > 1:
            names = [parts.program[0].source_text for parts in each if parts is not chosen and parts.program]
            reason = "another program beside the profiled one: nsw starts one program"
            self._parts.notes.append((f"{label} {' '.join(names)}", reason))
        elif chosen.start is not None:
            chosen.start = chosen.start._replace(processes=count or chosen.start.processes)
            if profiled and any(parts.words is None for parts in each):
                chosen.ranks = "first" if profiled == [0] else profiled
        chosen.notes = [*self._parts.notes, *chosen.notes]
        chosen.assigns = [*self._parts.assigns, *chosen.assigns]
        if self._parts.words is not None:
            chosen.words, chosen.is_outside = self._parts.words, True
        self._parts = chosen
        program, chosen.program = chosen.program, []
        self._before = []
        return program

    # --- containers ---------------------------------------------------------------------------------------------------

    def _take_container(self, words: list[Text]) -> list[Text] | None:
        name = _base_name(words[0])
        runtime = _RUNTIMES.get(name)
        at = 1
        if runtime is None:
            return None
        if runtime.commands:
            at = next((at for at, word in enumerate(words) if word.literal in runtime.commands), 0) + 1
            if at == 1 or at > 3:
                return None
        container = ContainerWords(runtime.kind or name)
        end = self._take_container_options(container, runtime, words, at)
        if name != "shifter" and end < len(words):
            container.image, end = words[end], end + 1
        rest = words[end:]
        if rest and rest[0].literal == "--":
            rest = rest[1:]
        if not rest:
            return None
        if not runtime.kind:
            self._parts.notes.append((name, "nsw starts no container by it: write app.container"))
            return rest
        if name == "podman-hpc":
            self._parts.notes.append((name, "nsw starts podman"))
        self._parts.container = container
        return rest

    def _take_container_options(self, container: ContainerWords, runtime: _Runtime, words: list[Text], at: int) -> int:
        """Take the options from an index on; returns the index behind them."""
        while at < len(words) and _starts_with_dash(words[at]) and words[at].literal != "--":
            word, at = words[at], at + 1
            first = word.pieces[0]
            name, equals, rest = first.text.partition("=")
            value: Text | None = Text((Piece("text", rest), *word.pieces[1:])) if equals else None
            valued_options = f"{_OWN_MOUNT} {_OWN_ENV} {_OWN_FOLDER} {runtime.valued}".split()
            if value is None and name in valued_options and at < len(words):
                value, at = words[at], at + 1
            self._take_container_option(container, runtime, name, value, joined=bool(equals))
        return at

    def _take_container_option(
        self, container: ContainerWords, runtime: _Runtime, name: str, value: Text | None, *, joined: bool
    ) -> None:
        option_text = name if value is None else f"{name}{'=' if joined else ' '}{value.source_text}"
        mount = _parse_mounts(value) if value is not None and name in _OWN_MOUNT.split() else None
        if option_text in runtime.gpus:
            container.gpus = True
        elif name in runtime.dropped:
            pass
        elif value is not None and name in _OWN_FOLDER.split() and value.computed is None:
            container.folder = value
        elif value is not None and name in runtime.images:
            container.image = value
        elif mount is not None and value is not None and value.computed is None:
            container.mounts += mount
        elif value is not None and name in _OWN_ENV.split() and "=" in value.source_text:
            for part in _comma_separated(value) if runtime.valued == _OF_APPTAINER else [value]:
                assigned = list(_assignments([part]))
                container.env += assigned
                self._parts.notes += [] if assigned else [(f"{name} {part.source_text}", "only the job knows its name")]
        elif value is not None and name in _OWN_ENV.split() and (value.literal or "").isidentifier():
            pass  # the job's own, which is known inside
        elif value is not None and value.literal is None:
            self._parts.notes.append((option_text, "only the job knows its value"))
        else:
            text = [Text((Piece("text", option_text),))] if joined or value is None else [_as_text(name), value]
            container.options += text

    def _take_pyxis_options(self, words: list[Text], options: Sequence[str]) -> list[str]:
        """Take the container of srun's options from its words; returns the other options."""
        container, rest, is_value = ContainerWords("pyxis"), list[str](), False
        for at, word in enumerate(words):
            if word.source_text.startswith("--container-"):
                self._take_container_options(container, _PYXIS, words[at : at + 1 + ("=" not in word.source_text)], 0)
        for option in options:
            is_of_container = option.startswith("--container-") or (is_value and not option.startswith("-"))
            is_value = option.startswith("--container-") and "=" not in option
            rest += [] if is_of_container else [option]
        self._parts.container = container
        return rest

    # --- scripts that the command runs --------------------------------------------------------------------------------

    def _take_shell_command(self, words: list[Text]) -> list[Text] | None:
        """The program of `bash -c LINE` or of a script that is there, if it starts a profiler or is given a command."""
        name, at = _base_name(words[0]), 0
        if _SHELL.fullmatch(name):
            at = next((n for n in range(1, len(words)) if not _starts_with_dash(words[n])), len(words))
        if at == len(words) or self._depth >= _DEEPEST or self._parts.words is not None:
            return None
        swaps: list[Piece] = []
        text: str | None
        file = ""
        if name == "eval":
            text, arguments, label = " ".join(_text_with_placeholders(word, swaps) for word in words[1:]), [], name
        elif _is_shell_line(words):
            text = _text_with_placeholders(words[at], swaps)
            arguments, label = words[at + 2 :], f"{name} -c"
        else:
            file = words[at].literal or ""
            label, arguments = PurePosixPath(file).name, words[at + 1 :]
            text = self._read(file) if at or file.endswith((".sh", ".bash")) or "/" in file else None
        if text is None:
            return None
        try:
            statements = parse_script(text, file or label, arguments).statements
        except UsageError:
            return None
        for statement in statements:
            statement.words = [_restore_placeholders(word, swaps) for word in statement.words]
        return self._take_statements(statements, label, swaps)

    def _take_statements(self, statements: Sequence[Statement], label: str, swaps: list[Piece]) -> list[Text] | None:
        """Put what a script does before its profiled command into the program's line; None: it profiles nothing."""
        before: list[str] = []
        notes: list[tuple[str, str]] = []
        each = [self._parse_inner(statement) for statement in statements]
        profiled = [number for number, parts in enumerate(each) if parts.words is not None]
        chosen = profiled[min(self._number, len(profiled) - 1)] if profiled else -1
        for number, (statement, parts) in enumerate(zip(statements, each, strict=True)):
            if number != chosen:
                if parts.words is None:
                    self._take_setup_statement(statement, label, before, notes)
                continue
            parts.count_of_profiled = max(len(profiled), parts.count_of_profiled)
            if ranks := next((ranks for block in statement.blocks if (ranks := profiled_ranks(block))), ""):
                parts.ranks = ranks
            elif statement.blocks:
                notes.append((statement.blocks[0].head, f"a condition of {label}: nsw profiles in any case"))
            reason = f"{label} runs it behind the profiled program: not carried over"
            notes += [(later.text, reason) for later in statements[number + 1 :] if _does_work(later)]
            parts.notes = [*self._parts.notes, *notes, *parts.notes]
            parts.assigns = [*self._parts.assigns, *parts.assigns, *((n, v[0]) for n, v in statement.assigns if v)]
            inputs = [target for sign, target in statement.redirects if sign.lstrip("0") == "<"]
            words = [Text((Piece("shell", "< "), *_restore_placeholders(word, swaps).pieces)) for word in inputs]
            program, self._parts = [*parts.program, *words], parts
            if before:
                line = Text((Piece("shell", f"{'; '.join(before)};"),))
                program, self._before = [_restore_placeholders(line, swaps), *self._before, *program], []
            return program
        return None

    def _parse_inner(self, statement: Statement) -> CommandParts:
        if not statement.words or reads_reports(statement.words):
            return CommandParts()
        inner = _Parser(self._read, self._depth + 1, self._number)
        inner._parts.start, inner._parts.container = self._parts.start, self._parts.container
        return inner.parse(list(statement.words))

    def _take_setup_statement(
        self, statement: Statement, label: str, before: list[str], notes: list[tuple[str, str]]
    ) -> None:
        is_setting = statement.program in SETTING or not statement.words
        is_value = not statement.words and statement.is_known
        if statement.blocks or statement.is_condition:
            if is_setting and not statement.is_condition and not is_value:
                notes.append((statement.text, f"a condition of {label}: not carried over"))
        elif is_setting and not is_value:
            before.append(statement.text)
        elif not is_setting and _does_work(statement):
            notes.append((statement.text, f"{label} runs it before the profiled program: not carried over"))


def find_launcher(words: Sequence[Text]) -> tuple[Launched | None, list[Text]]:
    """The launcher that a command starts with, and the words behind it."""
    literal = [_option_word(word) if _starts_with_dash(word) else word.literal or FILLED for word in words]
    name = _base_name(words[0]) if words else ""
    if name in _OTHER_LAUNCHERS or (words and "/" in words[0].source_text):
        literal[0] = _OTHER_LAUNCHERS.get(name, name)
    start = split_at_launcher(literal)
    if start is None:
        return None, list(words)
    if start.options and called_tool([_as_text(start.options[-1])]):  # an unknown option without a value
        start = start._replace(options=start.options[:-1], program=(start.options[-1], *start.program))
    program = list(words[len(words) - len(start.program) :]) if len(start.program) < len(words) else list(words[1:])
    if start.kind == "torchrun" and start.program[0] == "python":
        program = [_as_text("python"), *words[len(words) - len(start.program) + 1 :]]
    return start, program


def _count_variable(words: Sequence[Text]) -> str:
    """The variable of a loop that is the number of processes among a launcher's words; empty: there is none."""
    for option, word in pairwise(words):
        *name, value = word.pieces or (Piece("text", ""),)
        is_joined = [piece.text for piece in name] in (["-n"], *([f"{count}="] for count in COUNTS))
        if value.kind == "parameter" and (is_joined or (not name and option.literal in COUNTS)):
            return value.text
    return ""


def _option_word(word: Text) -> str:
    return "".join(piece.text if piece.kind == "text" else FILLED for piece in word.pieces)


def profiled_ranks(block: Block) -> str | list[int]:
    """The ranks that a conditional chooses, as a pass has them; empty for other blocks."""
    text = f"{block.head} {block.test}"
    if [source_text(pattern) for pattern in block.patterns] == ["0"] and _RANK.search(text):
        count = 1
    elif block.head.startswith("if ") and block.branch == 0 and (match := _FIRST_RANKS.search(text)):
        sign, number = match[1] or "=", int(match[2] or 0)
        count = number + (sign not in {"-lt", "<"}) if number == 0 or sign in {"-lt", "<", "-le", "<="} else 0
    else:
        count = 0
    if count == 1:
        return "node" if "LOCAL" in text else "first"
    return [] if "LOCAL" in text else list(range(count))


def profilers_in(program: Sequence[Text]) -> list[str]:
    """The profilers that the words of a program still start: none may be left."""
    names = []
    for at, word in enumerate(program):
        tool = called_tool(program[at:])
        if tool is not None and (at == 0 or at + 1 < len(program)):
            names.append(word.source_text)
        elif " " in word.source_text:
            names += [match[0] for match in STARTED_IN_TEXT.finditer(word.source_text)]
    return names


def _take_component(options: list[str]) -> str:
    """Take `--het-group=1` from the options of srun; empty: it is not among them."""
    for at, option in enumerate(options):
        name, equals, value = option.partition("=")
        if name in {"--het-group", "--pack-group"}:
            value = value if equals else "".join(options[at + 1 : at + 2])
            options[at : at + (1 if equals else 2)] = []
            return value
    return ""


def _is_shell_line(words: Sequence[Text]) -> bool:
    flags = takewhile(_starts_with_dash, words[1:])
    is_line = any(re.fullmatch(r"-\w*c", flag.literal or "") for flag in flags)
    return _SHELL.fullmatch(_base_name(words[0])) is not None and is_line


def _base_name(word: Text) -> str:
    return PurePosixPath(word.source_text).name


def _as_text(text: str) -> Text:
    return Text((Piece("text", text),))


def _starts_with_dash(word: Text) -> bool:
    return bool(word.pieces) and word.pieces[0].kind == "text" and word.pieces[0].text.startswith("-")


def _options_end(words: Sequence[Text], valued: str) -> int:
    at = 1
    while at < len(words) and _starts_with_dash(words[at]):
        if words[at].literal == "--":
            return at + 1
        at += 2 if words[at].literal in valued.split() else 1
    return at


def _assignments(words: Sequence[Text]) -> Any:
    """The `NAME=value` words at the beginning, each as the name and the value."""
    for word in words:
        is_text = bool(word.pieces) and word.pieces[0].kind == "text"
        if not is_text or (match := re.match(r"([A-Za-z_]\w*)=", word.pieces[0].text)) is None:
            return
        yield match[1], Text((Piece("text", word.pieces[0].text[match.end() :]), *word.pieces[1:]))


def _text_with_placeholders(word: Text, swaps: list[Piece]) -> str:
    """The line of shell in a word, with placeholders for pieces that would be parsed again as something else."""
    text = ""
    for piece in word.pieces:
        is_plain = piece.kind in {"text", "shell", "variable"}
        text += piece.text if is_plain else f"\ue010{len(swaps)}\ue011"
        swaps += [] if is_plain else [piece]
    return text


def _restore_placeholders(word: Text, swaps: Sequence[Piece]) -> Text:
    pieces: list[Piece] = []
    for piece in word.pieces:
        for number, text in enumerate(re.split("\ue010(\\d+)\ue011", piece.text)):
            if number % 2:
                pieces.append(swaps[int(text)])
            elif text or not swaps:
                pieces.append(piece._replace(text=text))
    return Text(tuple(pieces))


def _does_work(statement: Statement) -> bool:
    is_silent = statement.program in PRINTING or statement.program in {"", "shift"}
    return not statement.blocks and not is_silent and not reads_reports(statement.words)


def _numbers_of_ranks(text: str) -> list[int]:
    """The ranks of `0,2-3`; none of `*`, which are all others."""
    bounds = [part.split("-") for part in text.split(",") if part[:1].isdecimal()]
    return [rank for bound in bounds for rank in range(int(bound[0]), int(bound[-1]) + 1)]


def _comma_separated(value: Text) -> list[Text]:
    parts: list[list[Piece]] = [[]]
    for piece in value.pieces:
        texts = piece.text.split(",") if piece.kind == "text" else [piece.text]
        for number, text in enumerate(texts):
            parts += [[]] if number else []
            parts[-1] += [piece._replace(text=text)] if text else []
    return [Text(tuple(part)) for part in parts if part]


def _parse_mounts(value: Text) -> list[Text]:
    """Mounts as `SOURCE:TARGET`, also of `type=bind,source=A,destination=B` and of several with commas between."""
    fields = dict(re.findall(r"(source|src|destination|dst|target)=([^,]+)", value.source_text))
    if fields:
        source = fields.get("source", fields.get("src", ""))
        return [_as_text(f"{source}:{fields.get('destination', fields.get('dst', fields.get('target', source)))}")]
    return _comma_separated(value)
