"""What a job script does -> the texts of its recipes and of its site, with comments on what is not understood."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import yaml

from nsw.convert.command_parts import COUNTS, CommandParts, ContainerWords, profilers_in
from nsw.convert.script_options import KEEPS_OUTPUT, Directives, Line, PassWords
from nsw.convert.shell_reader import SUBMIT_FOLDER, SUBMIT_FOLDER_WITHIN, Block, Piece, Text
from nsw.convert.starter import as_text, program_name, words_of
from nsw.launchers.model import parse_layout_options
from nsw.metrics.catalogue import find_chip
from nsw.plan.counters import WHOLE_PROGRAM
from nsw.recipe.program import FILLED, Launched, files_of
from nsw.recipe.secrets import holds_secret, looks_secret
from nsw.recipe.units import format_duration
from nsw.site.names import LOCAL
from nsw.site_check.starter import scalar

if TYPE_CHECKING:
    from nsw.convert.shell_script import Script, Statement

__all__ = ["Run", "ScriptParts", "recipe_text", "shell_word", "site_text", "template_text"]

_ALONE: Final = "passes: baseline (the script profiles nothing: add a pass such as `timeline: {}`)"
_SOURCES: Final = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".f", ".f90", ".F90", ".hip"})
_MAPPED: Final = re.compile(r"ppr:(\d+):node(?::pe=(\d+))?", re.IGNORECASE)  # of mpirun --map-by
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_DEFAULT: Final = re.compile(r"\$\{\w+:?-(.*)\}")  # what a variable is where the environment has none
_NO_PROGRAM: Final = re.compile(r"--|-[ocdpESr]")  # options with which a compiler may write no a.out
_MARGIN: Final = 60  # seconds that nsw adds to the time of a run
_MAX_SHOWN: Final = 120  # characters of a line


@dataclass(slots=True)
class Run:
    """A command that is measured, or the program alone."""

    statement: Statement
    folder: Text | None
    parts: CommandParts

    @property
    def is_outside(self) -> bool:
        """Whether the profiler starts the launcher."""
        return self.parts.is_outside and self.parts.start is not None

    @property
    def assigns(self) -> list[tuple[str, Text | None]]:
        """Variables that are set for it alone; None: an array."""
        assigns = self.statement.assigns if self.statement.words else ()
        return [*((name, value[0] if value else None) for name, value in assigns), *self.parts.assigns]

    @property
    def counts(self) -> Sequence[str]:
        """The numbers of processes that a loop goes over; `$1` where the caller gives it."""
        counts = self.statement.loops.get(self.parts.count, [])
        is_number = all(count.startswith("$") or (count.isdecimal() and int(count)) for count in counts)
        return counts if is_number else []

    @property
    def key(self) -> tuple[Any, ...]:
        """What two runs of one recipe have alike."""
        folder = self.folder and self.folder.source_text
        container = self.parts.container and str(self.parts.container)
        assigns = tuple((name, value and value.source_text) for name, value in self.assigns)
        program = tuple(word.source_text for word in self.parts.program)
        return folder, container, self.parts.start and self.parts.start[:3], program, assigns, tuple(self.counts)


@dataclass(slots=True)
class ScriptParts:
    """What a script does.

    Attributes:
        script: The script; `path` is its file.
        directives: What it asks its batch system for.
        runs: The commands that it measures, and the programs alone.
        modules: The modules that the site loads.
        setup, before: Lines of shell before the runs; those in `before` have parameters.
        env: Variables.
        build: The compilers' lines, each with the folder that it is in.
        lines: What its lines became.
        reported: Blocks of which this is said.
        order: The number of each statement, once a build asks for it.
    """

    script: Script
    path: Path
    directives: Directives = field(default_factory=Directives)
    runs: list[Run] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    setup: list[tuple[Statement, str]] = field(default_factory=list)
    before: list[tuple[Statement, str]] = field(default_factory=list)
    env: list[tuple[Statement, dict[str, str]]] = field(default_factory=list)
    build: list[tuple[Text | None, Statement]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    reported: set[Block] = field(default_factory=set)
    order: dict[int, int] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether the script is for no batch system."""
        return self.directives.scheduler == LOCAL

    @property
    def folder(self) -> str:
        """The folder that the script is in."""
        return str(self.path.parent.absolute())

    @property
    def profiler_paths(self) -> dict[str, str]:
        """Profilers that the script calls by their paths."""
        outside = [run.parts.words for run in self.runs if run.parts.words and not run.parts.is_inside_container]
        return {words.tool: words.path for words in outside if words.is_of_site}

    def builds_before(self, statement: Statement) -> list[tuple[Text | None, Statement]]:
        """The compilers' lines whose outputs a statement finds: a later one writes over an earlier one's."""
        last: dict[tuple[str, str], tuple[Text | None, Statement]] = {}
        if self.build and not self.order:
            self.order |= {id(each): number for number, each in enumerate(self.script.statements)}
        for folder, built in self.build:
            if self.order[id(built)] < self.order[id(statement)]:
                key = folder.source_text if folder else "", _output_of(built)
                last.pop(key, None)
                last[key] = folder, built
        return list(last.values())

    def report(
        self, source: Statement | Block, outcome: str, *, understood: bool = True, text: str | None = None
    ) -> None:
        """Say what a statement or a block became.

        Args:
            source: The statement or the block.
            outcome: The keys, or why there are none.
            understood: Whether the recipe and the site do the same.
            text: The part of the statement that it is said of.
        """
        if isinstance(source, Block):
            last, whole_text = self.script.block_ends.get(source.line, source.line), source.head
        else:
            is_secret = any(looks_secret(name) for name, _ in source.assigns) or holds_secret(source.text)
            last, whole_text = source.last, source.without_values if is_secret else source.text
        shown_text = " ".join((whole_text if text is None else text).split())
        self.lines.append(Line(source.line, last, shown_text, outcome, understood))

    def replace_submit_folder(self, statement: Statement, word: Text) -> Text:
        """Replace the submission folder in a word by the script's folder: nsw submits from another folder."""
        replaced = self.in_folder(word)
        if any(
            p.kind == "variable" and re.search(r"(?<=.)\$\{\w*(SUBMIT_DIR|WORKDIR|PWD)\b", p.text)
            for p in replaced.pieces
        ):
            reason = "nsw submits from another folder: write its whole path"
            self.report(statement, reason, understood=False, text=word.source_text)
        if replaced != word:
            self.report(statement, f"{self.folder}: nsw submits from another folder", text=word.source_text)
        return replaced

    def in_folder(self, word: Text) -> Text:
        """A word with the submission folder replaced by the script's."""
        folder = Piece("text", self.folder)
        is_plain = re.fullmatch(r"[\w/.+-]+", self.folder) is not None
        pieces = []
        for piece in word.pieces:
            if piece.kind == "variable" and SUBMIT_FOLDER.fullmatch(piece.text):
                pieces.append(folder)
            elif piece.kind == "variable" and is_plain:  # in a default
                pieces.append(piece._replace(text=SUBMIT_FOLDER_WITHIN.sub(self.folder, piece.text)))
            else:
                pieces.append(piece)
        return Text(tuple(pieces))


def _output_of(built: Statement) -> str:
    """What a compiler's line writes; the whole line where that is not known."""
    words = [word.literal or "" for word in built.words]
    if "-o" in words[1:-1]:
        return words[words.index("-o") + 1]
    is_linked = built.program not in {"make", "cmake", "ninja"} and not any(_NO_PROGRAM.match(word) for word in words)
    return "a.out" if is_linked else built.text


@dataclass(frozen=True, slots=True)
class _Start:
    """A launcher: its options less those that nsw writes, and what those say (nodes, per_node, cpus, all_gpus).

    `count`: the variable of a loop that is its number of processes, whose largest `processes` is.
    """

    kind: str = "none"
    processes: int = 1
    options: Sequence[str] = ()
    settings: Mapping[str, int] = field(default_factory=dict)
    prefix: str = ""
    count: str = ""


def recipe_text(parts: ScriptParts, group: Sequence[Run], number: int, plan: str) -> str:
    """The text of a recipe.

    Args:
        parts: What the script does; what its lines became is added to it.
        group: The runs of the recipe, which are of one program.
        number: The recipe's number, from 1.
        plan: The command that plans it, for the comments.
    """
    return _RecipeWriter(parts, group).text(number, plan)


class _RecipeWriter:
    """Writes the recipe of one program's runs."""

    def __init__(self, parts: ScriptParts, group: Sequence[Run]) -> None:
        self._parts = parts
        self._group = group
        self._first = group[0]
        self._order = {id(statement): number for number, statement in enumerate(parts.script.statements)}
        self._orders = sorted(self._order[id(run.statement)] for run in group)
        self._build = parts.builds_before(self._first.statement)

    def text(self, number: int, plan: str) -> str:
        """The whole text."""
        parts = self._parts
        start = self._start()
        app = "".join(self._app_lines(start))
        for run in self._group:
            statement = run.statement
            if any(">" in sign for sign, _ in statement.redirects):
                text = " ".join(f"{sign} {target.source_text}" for sign, target in statement.redirects)
                parts.report(statement, KEEPS_OUTPUT, text=text)
            if statement.before in {"|", "|&"}:
                parts.report(statement, "its input comes through a pipe", understood=False)
        matrix = self._matrix_parameters(set(re.findall(r"\{\{ (\w+) \}\}", app)))
        out = [
            f"# Made by `nsw init --from-script {parts.path.name}`. Numbers of lines are those of that script.\n",
            f"#\n#   {plan}\nnsw: 1\nname: {_text_as_yaml(self._name(number))}\n\napp:\n{app}",
            "\nmatrix:\n" if matrix else "",
        ]
        for name, values in matrix.items():
            texts = [text if _NUMBER.fullmatch(text) else _text_as_yaml(text) for text in values]
            out.append(f"  {name}: [{', '.join(texts)}]\n")
        out += ["\npasses:\n", *self._passes_lines(start.processes), "\n", self._resources_text(start)]
        unknown = sorted((line for line in parts.lines if not line.is_understood), key=lambda line: line.first)
        out += [f"\n# Not understood of {parts.path.name}, and not done by this recipe:\n"] if unknown else []
        for line in dict.fromkeys(unknown):
            out.append(f"#   {line.numbers:<8} {_as_comment(line.text)}: {_as_comment(line.what)}\n")
        return "".join(out)

    def _name(self, number: int) -> str:
        parts = self._first.parts
        words = words_of([word.literal or "program" for word in parts.program[parts.prefixed :]])
        job = re.sub(r"[^A-Za-z0-9._-]+", "-", self._parts.directives.name).strip("-._")[:60]
        return (job or program_name(words)) + (f"-{number}" if number > 1 else "")

    # --- the launcher -------------------------------------------------------------------------------------------------

    def _start(self) -> _Start:
        """The launch of the program, without the options that nsw writes itself."""
        run, report, directives = self._first, self._parts.report, self._parts.directives
        start = run.parts.start
        if run.parts.prefix:
            prefix = " ".join(shell_word(word, "") for word in run.parts.prefix)
            return _Start("custom", directives.tasks or 1, prefix=prefix)
        if start is None:
            return self._start_alone(directives.tasks or 1)
        component = run.parts.component
        if component and component != str(directives.component):
            reason = f"nsw's job is component {directives.component} alone"
            report(run.statement, reason, understood=False, text=f"{start.kind} --het-group={component}")
        if start.kind == "jsrun" and (sets := _jsrun_resource_sets(start)) is not None:
            return sets
        is_mpi = start.kind.startswith("mpi")  # whose own options stay: which MPI it is decides what nsw writes
        options, number = list(start.options), dict[str, int]()
        for meaning, value, at in reversed(list(parse_layout_options(start.kind, options))):
            if meaning in {"gpus", "rank_gpus", "gres"} and (meaning != "gres" or "gpu" in (value or "")):
                gpus = re.findall(r"(?:^|[:=])(\d+)$", value or "")
                number |= {"rank_gpus" if meaning == "rank_gpus" else "node_gpus": int(gpus[0])} if gpus else {}
            elif meaning == "mapping" and (mapped := _MAPPED.match(value or "")):
                number |= {"per_node": int(mapped[1])} | ({"cpus": int(mapped[2])} if mapped[2] else {})
            elif meaning in {"per_node", "cpus", "nodes", "all_gpus"} and value is not None and value.isdecimal():
                number[meaning] = int(value)
                width = 1 if value in options[at] else 2
                options[at : at + width] = options[at : at + width] if is_mpi else []
        nodes = number.get("nodes") or directives.nodes or 1
        each_node = nodes if start.kind == "srun" else 1  # srun's default
        counted = max((int(count) for count in run.counts if count.isdecimal()), default=0)
        if start.kind == "torchrun" and start.processes and any(o.startswith("--nnodes") for o in start.options):
            start = start._replace(processes=start.processes * nodes)
        processes = start.processes or counted or number.get("per_node", 0) * nodes or directives.tasks or each_node
        if processes < nodes and "nodes" not in number:
            reason = f"{processes} process on {nodes} nodes: nsw asks for as many nodes as processes"
            report(run.statement, reason, understood=False, text=f"{start.kind} {' '.join(start.options)}".strip())
            number["nodes"] = processes
        count_reason = "" if start.processes or run.counts else f"the number is computed: nsw takes {processes}"
        known_options = self._known_options(start.kind, options, count_reason)
        return _Start(start.kind, processes, known_options, number, count=run.parts.count if run.counts else "")

    def _start_alone(self, tasks: int) -> _Start:
        """A program without a launcher, in a job that asks for several processes."""
        directives, statement = self._parts.directives, self._first.statement
        message = f"the script asks for {tasks} processes, but no launcher starts them: nsw asks for one"
        if tasks > 1 and (directives.nodes or 1) > 1:
            self._parts.report(statement, message, understood=False)
        elif tasks > 1:
            self._parts.report(statement, f"{message}, with their CPUs")
            return _Start(settings={"cpus": tasks * directives.numbers.get("cpus", 1)})
        return _Start()

    def _known_options(self, kind: str, options: list[str], count_reason: str) -> list[str]:
        """Options of a launcher whose values are known; others are named, the number of processes with its reason.

        Args:
            kind: The launcher.
            options: Its options.
            count_reason: What to say of a number of processes; empty: nothing.
        """
        literal: list[str] = []
        folder = self._parts.folder if self._first.folder is None else self._first.folder.literal
        for word in options:
            if word.startswith("../") and folder is not None:  # nsw starts the launcher in another folder
                self._parts.report(self._first.statement, f"{folder}: nsw submits from another folder", text=word)
                literal.append(f"{folder}/{word}")
                continue
            if FILLED not in word:
                literal.append(word)
                continue
            is_value = word == FILLED and literal and literal[-1].startswith("-")
            name = literal.pop() if is_value else word.replace(FILLED, "...")
            is_count = name.removesuffix("...").removesuffix("=") in COUNTS
            if reason := count_reason if is_count else "only the job knows its value":
                text = f"{kind} {'-n' if is_count else name}"
                self._parts.report(self._first.statement, reason, understood=False, text=text)
        return literal

    def _launcher_keys(self, start: _Start) -> dict[str, Any]:
        processes = f"{{{{ {start.count} }}}}" if start.count else start.processes
        keys: dict[str, Any] = {"kind": start.kind, "processes": processes}
        keys |= {"prefix": start.prefix} if start.prefix else {}
        keys |= {"options": [as_text(option) for option in start.options]} if start.options else {}
        outside = {run.is_outside for run in self._group if run.parts.words is not None}
        if outside and outside != {start.kind == "torchrun"}:
            keys["profiler"] = "outside" if True in outside else "inside"
        resources = self._resources(start)
        nodes = resources.get("nodes", 1)
        counts = [
            -(-int(count) // nodes) for count in self._first.counts or [str(start.processes)] if count.isdecimal()
        ]
        if resources["gpus"] and (not counts or any(resources["gpus"] // nodes % count for count in counts)):
            keys["share_gpus"] = True  # the script lets them
        return keys

    # --- the program --------------------------------------------------------------------------------------------------

    def _app_lines(self, start: _Start) -> Iterator[str]:
        parts, first = self._parts, self._first
        before = [text for source, text in parts.before if self._is_set_before(source)]
        setup = [text for source, text in parts.setup if self._is_set_before(source)]
        command = "; ".join([*before, self._command()])
        yield f"  command: {_text_as_yaml(command)} # line {first.statement.line}\n"
        if files := [] if first.folder else self._files():
            yield f"  files: {_as_flow_yaml(files)} # put beside the program where it runs\n"
        if setup:
            yield "  setup: # the job's shell runs these lines before the program\n"
            yield from (f"    - {_text_as_yaml(line)}\n" for line in setup)
        env = dict[str, str]()
        for source, values in parts.env:
            env |= values if self._is_set_before(source) else {}
        for run in self._group:
            env |= self._run_env(run)
        if env:
            yield "  env:\n"
            yield from (f"    {name}: {_text_as_yaml(value)}\n" for name, value in env.items())
        if start.kind != "none":
            yield f"  launcher: {_as_flow_yaml(self._launcher_keys(start))}\n"
        if first.parts.container is not None:
            yield f"  container: {_as_flow_yaml(self._container_keys(first.parts.container))}\n"
        if self._build:
            yield f"  build: {_as_flow_yaml({'command': self._build_command()})}\n"

    def _is_set_before(self, source: Statement) -> bool:
        """Whether a setting comes before the last run of a program; one between its runs is named."""
        order = self._order[id(source)]
        if self._orders[0] < order < self._orders[-1]:
            reason = "it comes between runs of one program: nsw does it before all of them"
            self._parts.report(source, reason, understood=False, text=source.without_values if source.assigns else None)
        return order < self._orders[-1]

    def _command(self) -> str:
        run, report = self._first, self._parts.report
        line = run.statement.line
        location = f"line {line} of {self._parts.path.name}"
        program = [self._replace_outer_folder(word) for word in run.parts.program]
        words = [shell_word(word, f"{location}: write here what stands there") for word in program]
        for word in run.parts.program:
            if (piece := word.computed) is not None:
                subject = "the script runs its own arguments" if piece.kind == "list" else piece.name
                report(run.statement, f"{subject}: fill it in in app.command", understood=False, text=piece.text)
        if profilers_in(run.parts.program):
            report(run.statement, "it starts a profiler of its own: write the program", understood=False)
            words = [f'"${{NSW_FILL_IN:?{location}: write the program that the profiler starts}}"']
        variables = [(name, value) for name, value in run.assigns if value is not None and value.computed is None]
        assigns = [f"{name}={shell_word(value, '')}" for name, value in variables if template_text(value) is None]
        words = ["env", *assigns, *words] if assigns else words  # app.env has no variables of the job
        inputs = [target for sign, target in run.statement.redirects if sign.lstrip("0") == "<"]
        words += [f"< {shell_word(self._replace_outer_folder(target), 'the input')}" for target in inputs]
        command = " ".join(words)
        return command if run.folder is None else f"cd {shell_word(run.folder, 'the folder')} && {command}"

    def _replace_outer_folder(self, word: Text) -> Text:
        """A word such as `../a.py` by its whole path: nsw runs the program in a folder of its own."""
        run, folder = self._first, self._parts.folder
        options = run.parts.words.options if run.parts.words is not None else []
        is_moved = run.folder is not None or any(o.lstrip("-").startswith("app-working-dir") for o in options)
        if is_moved or not word.source_text.startswith("../"):
            return word
        self._parts.report(run.statement, f"{folder}: nsw submits from another folder", text=word.source_text)
        return Text((Piece("text", f"{folder}/"), *word.pieces))

    def _run_env(self, run: Run) -> dict[str, str]:
        variables = {}
        for name, value in run.assigns:
            if value is None or value.computed is not None:
                self._parts.report(run.statement, "only the job knows its value", understood=False, text=f"{name}=...")
            elif (text := template_text(value)) is not None:
                variables[name] = text
        return variables

    def _container_keys(self, container: ContainerWords) -> dict[str, Any]:
        run = self._first

        def text_of(word: Text) -> str:
            if word.computed:
                self._parts.report(run.statement, "only the job knows it", understood=False, text=word.source_text)
            texts = [p.text_shown if p.kind == "parameter" else as_text(p.text) for p in word.pieces]
            for at, (piece, default) in enumerate((p, _DEFAULT.fullmatch(p.text)) for p in word.pieces):
                if default is not None:  # nsw fills in $NAME alone
                    reason = f"the default is taken: write there what {piece.name} is to be"
                    self._parts.report(run.statement, reason, understood=False, text=piece.text)
                    texts[at] = default[1]
            return "".join(texts)

        keys: dict[str, Any] = {"runtime": container.runtime}
        image = text_of(container.image) if container.image else "write the image here"
        keys["image"] = image
        mounts, options = ([text_of(word) for word in words] for words in (container.mounts, container.options))
        env = {name: text_of(value) for name, value in container.env}
        optional = {"gpus": container.gpus, "mounts": mounts, "env": env, "options": options}
        keys |= {key: value for key, value in optional.items() if value}
        if run.parts.words is not None and not run.parts.is_inside_container:
            keys["profiler"] = "outside"
        return keys

    def _files(self) -> list[str]:
        build = self._build
        words = [word.literal for run in self._group for word in run.parts.program]
        words += [word.literal for _, built in build for word in built.words]
        built_files = {PurePosixPath(after or "").name for word, after in pairwise(words) if word == "-o"}
        files = files_of([word for word in words if word], self._parts.path.parent)
        for statement in (statement for folder, statement in build if folder is None):
            for name in (word.literal or "" for word in statement.words):
                if PurePosixPath(name).suffix in _SOURCES and name not in files and name not in built_files:
                    reason = f"{name} is not beside the script: list it in app.files"
                    self._parts.report(statement, reason, understood=False)
        return [name for name in files if not (build and name in built_files)]

    def _build_command(self) -> str:
        """The compilers' lines, in the folder that the script changed to."""
        commands, folder = [], None
        for target, statement in self._build:
            if target is not None and target != folder:
                commands.append(f"cd {shell_word(target, 'the folder')}")
                folder = target
            hint = f"line {statement.line}"
            words = [f"{name}={shell_word(value[0], hint)}" for name, value in statement.assigns if value]
            commands.append(" ".join([*words, *(shell_word(word, hint) for word in statement.words)]))
            for word in [*statement.words, *(word for _, value in statement.assigns for word in value or ())]:
                if word.computed is not None:
                    reason = f"{word.computed.name}: fill it in in app.build"
                    self._parts.report(statement, reason, understood=False, text=word.source_text)
        return " && ".join(commands)

    # --- parameters, passes, resources --------------------------------------------------------------------------------

    def _matrix_parameters(self, used: set[str]) -> dict[str, Sequence[str]]:
        """The variables of loops, and the arguments of the script, that the keys of the program name."""
        blocks = {block: run.statement for run in self._group for block in run.statement.blocks}
        loops = {block: block.loop[0] for block in blocks if block.loop is not None}
        for block, name in loops.items():
            if name in blocks[block].loops and block not in self._parts.reported:
                self._parts.reported.add(block)
                reason = "the program's arguments do not name it: nsw counts the runs in it once"
                outcome = f"matrix: {name}" if name in used else reason
                self._parts.report(block, outcome, understood=name in used)
        all_values = (item for run in self._group for item in run.statement.loops.items())
        parameters = {name: values for name, values in all_values if name in used}
        for name in sorted(name for name, values in parameters.items() if values[0].startswith("$")):
            reason = f"its caller gives it: write its value in matrix.{name}, or `--set {name}=VALUE`"
            self._parts.report(self._first.statement, reason, understood=False, text=parameters[name][0])
        for name in sorted(name for name, values in parameters.items() if "" in values):
            reason = "an empty value is a word of its own: take it out of the matrix, or out of app.command"
            self._parts.report(self._first.statement, reason, understood=False, text=f"${name}")
        return parameters

    def _passes_lines(self, processes: int) -> Iterator[str]:
        """The lines below `passes:`; the program without a profiler is one pass."""
        report = self._parts.report
        kinds = [run.parts.words.kind for run in self._group if run.parts.words]
        names: list[str] = []
        is_alone_written, profiled = False, any(kind != "baseline" for kind in kinds)
        for run in self._group:
            words = run.parts.words
            if words is not None and words.kind != "baseline":
                names.append(words.tool)
                number = names.count(words.tool)
                name = words.tool if number == 1 else f"{words.tool}-{number}"
                keys = {"name": name} if kinds.count(words.kind) > 1 else {}
                yield from self._pass_lines(run, words, keys, processes=processes)
                continue
            report(run.statement, "passes: baseline" if profiled else _ALONE)
            for text, reason in words.unknown if words else ():
                report(run.statement, reason, understood=False, text=text)
            if not is_alone_written:
                yield f"  - baseline: {{}} # line {run.statement.line}: the program alone\n"
            is_alone_written = True

    def _pass_lines(self, run: Run, words: PassWords, keys: dict[str, Any], *, processes: int) -> Iterator[str]:
        """The lines of a pass with a profiler, and what nsw adds to its command line."""
        report, statement = self._parts.report, run.statement
        is_launched = run.parts.start is not None and not run.is_outside
        if words.kind == "counters" and is_launched:
            keys["ranks"] = "all"  # by default nsw's is the first alone
        if run.parts.ranks:
            keys["ranks"] = run.parts.ranks
        replay = words.fields.get("replay", "")
        if replay in WHOLE_PROGRAM and is_launched and processes > 1:
            del words.fields["replay"]
            reason = "nsw replays kernels: a launcher cannot start one process of several again"
            report(statement, reason, understood=False, text=f"--replay-mode {replay}")
        keys |= {"tool": words.tool, **words.fields} | ({"options": words.options} if words.options else {})
        yield f"  - {words.kind}: {_as_flow_yaml(keys)} # line {statement.line}\n"
        report(statement, f"passes: {words.kind} by {words.tool}")
        for text, reason in words.left_out:
            report(statement, reason, text=text)
        for text, reason in words.unknown:
            report(statement, reason, understood=False, text=text)
        if words.tool == "nsys" and not any(o.startswith(("-s", "--sample", "--cpuctxsw")) for o in words.options):
            yield "    # nsw adds --sample=none --cpuctxsw=none: nsys samples CPUs only where options say so\n"
        if words.tool == "ncu" and "processes" not in words.fields:
            yield "    # nsw adds --target-processes all; processes: application is the older ncu's default\n"

    def _resources(self, start: _Start) -> dict[str, Any]:
        directives, settings = self._parts.directives, start.settings
        keys: dict[str, Any] = dict(directives.resources)
        for setting, key in (("nodes", "nodes"), ("all_gpus", "gpus"), ("cpus", "cpus_per_task")):
            if setting in settings:
                keys[key] = settings[setting]
        if not keys["gpus"]:
            from_nodes = settings.get("node_gpus", 0) * keys.get("nodes", 1)
            keys["gpus"] = from_nodes or settings.get("rank_gpus", 0) * start.processes
        if "per_node" in settings and settings["per_node"] * keys.get("nodes", 1) != start.processes:
            keys["tasks_per_node"] = settings["per_node"]
        return keys

    def _resources_text(self, start: _Start) -> str:
        directives, keys, notes = self._parts.directives, self._resources(start), list[str]()
        if seconds := keys.pop("time", None):
            run_seconds = seconds - _MARGIN if seconds > 2 * _MARGIN else seconds
            keys["time"] = format_duration(run_seconds)
            notes.append(f"nsw asks for {format_duration(run_seconds + _MARGIN)}: a minute more, for the job itself")
        keys |= {"extra": directives.extra} if directives.extra else {}
        order = ["nodes", "gpus", "cpus_per_task", "tasks_per_node", "memory", "time"]
        ordered = {key: keys[key] for key in [*order, *keys] if key in keys}
        if not keys["gpus"] and not self._parts.is_local:
            notes.append("the script asks for no GPUs")
        if "time" not in keys:
            notes.append("the script asks for no time: nsw asks for 10m")
        return f"resources: {_as_flow_yaml(ordered)}{' # ' + '; '.join(notes) if notes else ''}\n"


def site_text(parts: ScriptParts, name: str) -> str:
    """The lines of a site of this name, as they are below `sites:`."""
    directives = parts.directives
    keys = [("scheduler", scalar(directives.scheduler))]
    keys += [(key, scalar(value) if key != "gres" else _text_as_yaml(value)) for key, value in directives.site.items()]
    if re.search(r"\s-\w*l|--login", parts.script.shebang):
        keys.append(("login_shell", "true"))
    if parts.modules:
        keys.append(("modules", _as_flow_yaml(parts.modules)))
    if chip := find_chip(directives.gpu_kind or None):
        keys.append(("gpus", f"{{ chip: {chip.name} }}"))
    if parts.profiler_paths:
        keys.append(("profilers", _as_flow_yaml(parts.profiler_paths)))
    head = f"  {scalar(name)}: # made of {_as_comment(parts.path.name)}\n"
    return head + "".join(f"    {key}: {text}\n" for key, text in keys)


def _jsrun_resource_sets(start: Launched) -> _Start | None:
    """The resource sets that jsrun is given, which nsw leaves as they are; -n counts them."""
    values = {meaning: value or "" for meaning, value, _ in parse_layout_options(start.kind, start.options)}
    if not values.keys() & {"set_ranks", "set_cpus", "set_gpus", "node_sets"} or start.processes is None:
        return None
    ranks, gpus = values.get("set_ranks", ""), values.get("set_gpus", "")
    settings = {"all_gpus": start.processes * int(gpus)} if gpus.isdecimal() else {}
    processes = start.processes * (int(ranks) if ranks.isdecimal() else 1)
    return _Start(start.kind, processes, ["-n", str(start.processes), *start.options], settings)


# --- words ------------------------------------------------------------------------------------------------------------


def shell_word(text: Text, hint: str) -> str:
    """A word as a recipe's command has it; what is not known is an error of the shell, with a hint."""
    out = ""
    for piece in text.pieces:
        if piece.kind == "text":
            out += as_text(shlex.quote(piece.text)) if piece.text or len(text.pieces) == 1 else ""
        elif piece.kind == "shell":
            out += as_text(piece.text)
        elif piece.kind == "variable":
            is_split = text.pieces == (piece,) and not piece.quoted  # it may be no word, or several
            out += as_text(piece.text) if is_split else f'"{as_text(piece.text)}"'
        elif piece.kind == "parameter":
            out += piece.text_shown
        else:
            plain = re.sub(r"[^\w ./:,-]", "", hint)
            out += f'"${{NSW_FILL_IN:?{plain}}}"'
    return out


def template_text(text: Text) -> str | None:
    """A word as text with parameters; None where only the job knows it."""
    if {piece.kind for piece in text.pieces} - {"text", "parameter"}:
        return None
    return "".join(piece.text_shown if piece.kind == "parameter" else as_text(piece.text) for piece in text.pieces)


def _as_flow_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1 << 20, allow_unicode=True).strip()


def _text_as_yaml(text: str) -> str:
    return _as_flow_yaml([text])[1:-1]


def _as_comment(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_MAX_SHOWN]
