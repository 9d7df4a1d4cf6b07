"""A job script with a profiler in it -> the recipe and the site that do the same, and what was not understood.

The script is read, never run. What only a shell decides (conditionals, loops, what commands print) is not carried over:
it is named with its line, and the runs inside are taken once.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import yaml

from nsw.apart import limited
from nsw.convert.command_parts import COUNTS, CommandParts, ContainerWords, command_parts, profiled_ranks, profilers_in
from nsw.convert.script_options import (
    PLAIN_PATH,
    PRINTS_ONLY,
    Line,
    PassWords,
    read_directives,
    reads_reports,
    switches_recording,
)
from nsw.convert.shell_reader import Block, Piece, Text
from nsw.convert.shell_script import Script, Statement, parse_script, shell_names
from nsw.convert.starter import as_text, program_name, words_of
from nsw.errors import UsageError
from nsw.launchers.model import parse_layout_options
from nsw.metrics.catalogue import find_chip
from nsw.recipe.program import FILLED, Launched, files_of, is_relative_image
from nsw.recipe.secrets import holds_secret, looks_secret
from nsw.recipe.units import format_duration
from nsw.safe_files import read_bytes
from nsw.site.names import LOCAL
from nsw.site_check.starter import scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_PRINTS: Final = frozenset({
    "echo", "printf", "date", "hostname", "pwd", "printenv", "nvidia-smi", "which", "type", "whoami", "uname",
    "lscpu", "free", "df", "ls", "cat", "wait", "sleep", "true", ":", "set", "exit", "sync",
})  # fmt: skip
_FILTERS: Final = frozenset({"tee", "grep", "head", "tail", "awk", "sed", "sort", "cat", "less"})
_SETTING: Final = frozenset({
    "module", "ml", "source", ".", "conda", "mamba", "spack", "export", "unset", "ulimit", "umask", "alias", "eval",
    "shopt",
})  # fmt: skip
_MODULE_PRINTS: Final = frozenset({"list", "avail", "show", "spider", "help", "whatis"})
_COMPILERS: Final = re.compile(
    r"nvcc|gcc|g\+\+|cc|CC|c\+\+|ftn|gfortran|clang(\+\+)?|icc|icpc|icx|icpx|ifort|ifx|nvc|nvc\+\+|nvfortran|pgcc|pgc\+\+|pgfortran"
    r"|hipcc|mpicc|mpicxx|mpic\+\+|mpiCC|mpif90|mpifort|make|cmake|ninja"
)
_SOURCES: Final = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".f", ".f90", ".F90", ".hip"})
_TESTS: Final = frozenset({"[", "[[", "test"})
_SUBMIT_FOLDER: Final = re.compile(
    r"\$\{?(?:SLURM_SUBMIT_DIR|PBS_O_WORKDIR|COBALT_CWD|LS_SUBCWD|SGE_O_WORKDIR|FLUX_JOB_CWD|PWD)(?::?-.*)?\}?"
)
_OWN_FOLDER: Final = "nsw runs the program in a folder with app.files in it"
_KEEPS_OUTPUT: Final = "nsw keeps what a run prints: `nsw logs`"
_HIDDEN_PROFILER: Final = "nsw does not see what"
_FOLDER_IN_TEXT: Final = re.compile(r"PWD|\bpwd\b|SUBMIT_DIR|O_WORKDIR|SUBCWD|_CWD|BASH_SOURCE|\$\{?0")
_ARGUMENT: Final = re.compile(r"'[^']*'|(\$(?:[1-9@*]|\{[1-9@*][^}]*\}))")
_MAPPED: Final = re.compile(r"ppr:(\d+):node(?::pe=(\d+))?", re.IGNORECASE)  # of mpirun --map-by
_MARGIN: Final = 60  # seconds that nsw adds to the time of a run
_MAX_SHOWN: Final = 120  # characters of a line


@dataclass(frozen=True, slots=True)
class Converted:
    """What was made of a script.

    Attributes:
        recipes: The text of each recipe, by the end of its file's name: a script may start several programs.
        site_name: The name of the site.
        site: The lines of the site as they are below `sites:`; None: the script is for no batch system.
        lines: What each line became, in order.
    """

    recipes: list[tuple[str, str]]
    site_name: str
    site: str | None
    lines: list[Line]


@dataclass(slots=True)
class _Run:
    """A command that is measured, or the program alone."""

    statement: Statement
    folder: Text | None
    parts: CommandParts

    @property
    def words(self) -> PassWords | None:
        """The profiler; None: the program alone."""
        return self.parts.words

    @property
    def start(self) -> Launched | None:
        """The launcher."""
        return self.parts.start

    @property
    def program(self) -> list[Text]:
        """The program's words."""
        return self.parts.program

    @property
    def is_outside(self) -> bool:
        """Whether the profiler starts the launcher."""
        return self.parts.is_outside and self.start is not None

    @property
    def assigns(self) -> list[tuple[str, Text | None]]:
        """Variables that are set for it alone; None: an array."""
        assigns = self.statement.assigns if self.statement.words else ()
        return [*((name, value[0] if value else None) for name, value in assigns), *self.parts.assigns]

    @property
    def counts(self) -> Sequence[str]:
        """The numbers of processes that a loop goes over."""
        counts = self.statement.loops.get(self.parts.count, [])
        return counts if all(count.isdecimal() and int(count) for count in counts) else []

    @property
    def key(self) -> tuple[Any, ...]:
        """What two runs of one recipe have alike."""
        folder = self.folder and self.folder.source_text
        container = self.parts.container and str(self.parts.container)
        assigns = tuple((name, value and value.source_text) for name, value in self.assigns)
        program = tuple(word.source_text for word in self.program)
        return folder, container, self.start and self.start[:3], program, assigns, tuple(self.counts)


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


def convert(
    text: str, script: Path, *, site: str | None, sites: str, recipe: str, gpus: Callable[[], int] = lambda: 0
) -> Converted:
    """Make a recipe and a site of a job script.

    Args:
        text: The script.
        script: Its file: the files of the program are looked for beside it.
        site: The name of the site; None: that of its batch system.
        sites: The name of the sites file, for the comments.
        recipe: The name of the recipe's file, likewise.
        gpus: Tells how many GPUs a run gets where the script is for no batch system.

    Raises:
        UsageError: The script cannot be taken apart.
        LimitError: That takes too much time or memory.
    """
    with limited(f"reading {script}"):
        conversion = _Conversion(parse_script(text, str(script)), script)
    if conversion.is_local:  # without limits: it starts programs that reserve more memory than the script may take
        conversion.directives.resources["gpus"] = gpus()
    with limited(f"reading {script}"):
        return conversion.convert(site, sites, recipe)


class _Conversion:
    """One script on its way to a recipe."""

    def __init__(self, script: Script, path: Path) -> None:
        self._script = script
        self._path = path
        self._lines: list[Line] = []
        self._modules: list[str] = []
        self._order = {id(statement): number for number, statement in enumerate(script.statements)}
        self._setup: list[tuple[Statement, str]] = []
        self._setup_names: set[str] = set()
        self._env: list[tuple[Statement, dict[str, str]]] = []
        self._assigned: dict[str, Statement] = {}
        self._build: list[tuple[Text | None, Statement]] = []
        self._runs: list[_Run] = []
        self._folder: Text | None = None
        self._left_folder: Text | None = None  # to which `cd -` goes
        self._unknown: dict[Block, bool] = {}  # blocks that are not understood: whether there are runs in them
        self._reported_blocks: set[Block] = set()
        self._in_condition = False
        self._written_files = {
            PurePosixPath(target.literal or "").name: statement.document
            for statement in script.statements
            for sign, target in statement.redirects
            if statement.document and sign == ">"
        }
        self._run_by_statement: dict[int, _Run | None] = {}
        self._report_readers: set[int] = set()  # statements that print what a profiler has measured, in a container
        runs = [run for statement in script.statements if (run := self._parse_known_run(statement)) and run.words]
        component = runs[0].parts.component if runs else ""
        commands = "\n".join(statement.text for statement in script.statements)
        self.directives = read_directives(script.comments, commands, int(component) if component.isdecimal() else 0)
        self._lines += self.directives.became
        self._take_statements()

    @property
    def is_local(self) -> bool:
        """Whether the script is for no batch system."""
        return self.directives.scheduler == LOCAL

    def convert(self, site: str | None, sites: str, recipe: str) -> Converted:
        """The recipes, the site, and what each line of the script became.

        Args:
            site: The name of the site; None: that of its batch system.
            sites: The name of the sites file, for the comments.
            recipe: The name of the recipe's file, likewise.
        """
        has_site = not self.is_local or site is not None or bool(self._profiler_paths)
        name = site or ("here" if self.is_local else self.directives.scheduler)
        groups = self._runs_by_program()
        site_options = f" --site {name} --sites {sites}" if has_site else ""
        recipes = []
        for number, group in enumerate(groups, 1):
            end = "" if number == 1 else f"-{number}"
            file = Path(recipe).with_stem(f"{Path(recipe).stem}{end}")
            recipes.append((end, self._recipe_text(group, number, f"nsw plan {file}{site_options}")))
        lines = sorted(dict.fromkeys(self._lines), key=lambda line: (line.first, line.is_understood))
        return Converted(recipes, name, self._site_text(name) if has_site else None, lines)

    def _report(self, statement: Statement, outcome: str, *, understood: bool = True, text: str | None = None) -> None:
        shown_text = _shown_statement(statement) if text is None else text
        self._lines.append(Line(statement.line, statement.last, " ".join(shown_text.split()), outcome, understood))

    # --- statements ---------------------------------------------------------------------------------------------------

    def _take_statements(self) -> None:
        runs = [run for statement in self._script.statements if (run := self._find_run(statement))]
        last_run = ([run for run in runs if run.words] or runs)[-1:]
        last = self._order[id(last_run[0].statement)] if last_run else 0
        rank_blocks = {
            run.statement.blocks[0].line for run in runs
            if run.words is not None and len(run.statement.blocks) == 1 and profiled_ranks(run.statement.blocks[0])
        }  # fmt: skip
        for block in self._script.called:
            self._report_block(block, "its lines are taken where it is called", understood=True)
        for statement in self._script.statements:
            unknown = next((block for block in statement.blocks if not _is_matrix_loop(block, statement)), None)
            run = self._find_run(statement)
            if unknown is not None and unknown.line in rank_blocks:
                self._take_rank_statement(unknown, statement, run)
                continue
            if run is not None:
                self._runs.append(run)
            if unknown is not None:
                self._unknown[unknown] = self._unknown.get(unknown, False) or run is not None
            elif run is None:
                self._take_plain_statement(statement, is_late=self._order[id(statement)] > last)
        for block, has_runs in self._unknown.items():
            reason = "nsw counts each run in it once" if has_runs else "not carried over"
            self._report_block(block, reason, understood=False)

    def _take_rank_statement(self, block: Block, statement: Statement, run: _Run | None) -> None:
        """Take a statement on some ranks: the profiled run is a pass with `ranks`, the others run the program alone."""
        if run is not None and run.words is not None and block.branch == 0:
            run.parts.ranks = profiled_ranks(block)
            self._runs.append(run)
            self._report_block(block, f"ranks: {run.parts.ranks}", understood=True)
            if run.start is None:
                reason = "its caller starts it on each rank: write app.launcher"
                self._report(statement, reason, understood=False, text=self._path.name)
        elif run is not None and run.words is None and block.branch:
            self._report(statement, "the ranks that are not profiled")
        elif statement.program in _PRINTS and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif not statement.is_condition:
            self._report(statement, "a condition: not carried over", understood=False)

    def _report_block(self, block: Block, outcome: str, *, understood: bool) -> None:
        last = self._script.block_ends.get(block.line, block.line)
        self._lines.append(Line(block.line, last, block.head, outcome, understood))

    def _take_plain_statement(self, statement: Statement, *, is_late: bool) -> None:
        """Convert a statement that is no run and in no block."""
        program = statement.program
        if statement.before not in {"&&", "||"}:
            self._in_condition = program in _TESTS
        if self._in_condition or statement.before == "||":
            self._report(statement, "a condition: not carried over", understood=False)
        elif not statement.words:
            self._take_assignments(statement)
        elif statement.before in {"|", "|&"} and program in _FILTERS:
            self._report(statement, _KEEPS_OUTPUT)
        elif statement.program == "shift" or any(
            statement.program == block.head.removeprefix("function ") for block in self._script.called
        ):
            self._report(statement, "the function's lines")
        elif switches_recording(statement.words):
            self._report(statement, "nsw records the whole run", understood=False)
        elif reads_reports(statement.words) or id(statement) in self._report_readers:
            self._report(statement, "nsw reads the reports itself: `nsw summarize`")
        elif program in _PRINTS and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif program in {"let", "read"}:
            self._report(statement, "the shell computes it", understood=False)
            self._assigned |= {name: statement for name, _ in statement.assigns}
        elif is_late and (program == "cd" or program in _SETTING):
            self._report(statement, "left out: it comes after the last run")
        elif program == "cd":
            self._take_cd(statement)
        elif program in _SETTING or _makes_folder(statement):
            self._take_setting(statement)
        elif _COMPILERS.fullmatch(PurePosixPath(program).name):
            self._build.append((self._folder, statement))
            self._report(statement, "app.build")
        else:
            self._report(statement, "nsw does not run it", understood=False)

    def _take_assignments(self, statement: Statement) -> None:
        for name, value in statement.assigns:
            self._assigned[name] = statement
            is_known = value is not None and not any(word.computed for word in value)
            outcome = "its value is in what uses it" if is_known else "the shell computes it"
            self._report(statement, outcome, understood=is_known, text=None if is_known else f"{name}=...")

    def _take_cd(self, statement: Statement) -> None:
        target = statement.words[1] if len(statement.words) > 1 else Text((Piece("variable", "$HOME", "HOME"),))
        folder = self._folder
        if target.literal == "-":
            self._folder, self._left_folder = self._left_folder, folder
            self._report(statement, "the folder of before")
            return
        self._left_folder = folder
        if _SUBMIT_FOLDER.fullmatch(target.source_text) or not target.source_text:
            self._folder = None
            self._report(statement, _OWN_FOLDER)
        elif not target.is_known:
            self._report(statement, "the shell computes the folder", understood=False)
        else:
            target = self._replace_submit_folder(statement, target)
            if not target.source_text.startswith(("/", "$", "~")):
                outer = folder.pieces if folder is not None else (Piece("text", str(self._path.parent.absolute())),)
                target = Text((*outer, Piece("text", "/"), *target.pieces))
            self._folder = target
            self._report(statement, "app.command: the runs below change to it")

    def _take_setting(self, statement: Statement) -> None:
        words = [word.literal for word in statement.words]
        if statement.program == "module" and len(words) > 1 and words[1] in _MODULE_PRINTS:
            self._report(statement, PRINTS_ONLY)
        elif (
            statement.program == "module"
            and words[1:2] == ["load"]
            and None not in words
            and self._can_site_load_modules
        ):
            self._modules += [word for word in words[2:] if word is not None]
            self._report(statement, "site: modules")
        elif statement.program == "export" and self._add_to_env(statement):
            self._report(statement, "app.env", text=_hide_values(statement))
        elif statement.program in {"source", "."} and (name := _file_in_start_folder(words[1:2])) is not None:
            # add a sourced file of the script's folder, or of that it changed to, to app.setup, by its absolute path
            file, folder = self._path.parent.absolute() / name, self._folder
            if folder is not None:
                path = _shell_word(Text((*folder.pieces, Piece("text", f"/{name}"))), "")
                words_behind = [_shell_word(word, f"line {statement.line}") for word in statement.words[2:]]
                self._setup.append((statement, " ".join([statement.program, path, *words_behind])))
                self._report(statement, "app.setup, by its whole path")
            elif file.is_file():
                self._setup.append((statement, statement.text.replace(name, shlex.quote(str(file)), 1)))
                self._report(statement, "app.setup, by its whole path")
            else:
                self._report(
                    statement, "the file is not beside the script: name it by its whole path", understood=False
                )
        else:
            self._add_to_setup(statement)
            self._report(statement, "app.setup", text=_hide_values(statement) if statement.assigns else None)

    @property
    def _can_site_load_modules(self) -> bool:
        """Whether modules can be loaded by the site, which does so before app.setup."""
        return not self._setup and not self._runs and not self.is_local

    @property
    def _profiler_paths(self) -> dict[str, str]:
        """Profilers that the script calls by their paths."""
        return {
            run.words.tool: run.words.path
            for run in self._runs
            if run.words and run.words.is_of_site and not run.parts.is_inside_container
        }

    def _add_to_env(self, statement: Statement) -> bool:
        """Add an export to app.env if its value is the same wherever it is set; whether it was added."""
        words = {name: self._replace_submit_folder(statement, value[0]) for name, value in statement.assigns if value}
        values = {name: _template_text(word) for name, word in words.items()}
        if len(values) != len(statement.words) - 1 or None in values.values():
            return False
        later = {
            name
            for later_statement in self._script.statements
            if later_statement.line > statement.line and later_statement.program in _SETTING
            for name in shell_names(later_statement.text)
        }
        if any(name in later or (name.endswith("PATH") and name in self._setup_names) for name in values):
            return False
        self._env.append((statement, {name: value for name, value in values.items() if value is not None}))
        return True

    def _add_to_setup(self, statement: Statement) -> None:
        """Add a line to app.setup: with the values of the script's variables, or after the lines that set them."""
        self._setup_names |= {name for name, _ in statement.assigns}
        if (line := self._known_line(statement)) is not None:
            self._setup.append((statement, line))
            return
        for name in sorted(shell_names(statement.text) & self._assigned.keys()):
            source = self._assigned[name]
            if source is not statement and all(source is not earlier for earlier, _ in self._setup):
                self._add_to_setup(source)
        text = re.sub(r"\\\n\s*", "", statement.text)
        if argument := next((match[1] for match in _ARGUMENT.finditer(text) if match[1]), ""):
            self._report(statement, "the caller gives it: fill it in in app.setup", understood=False, text=argument)
            text = _ARGUMENT.sub(lambda m: f"${{NSW_FILL_IN:?line {statement.line}}}" if m[1] else m[0], text)
        self._setup.append((statement, text))

    def _known_line(self, statement: Statement) -> str | None:
        """A statement with the values of the script's variables and folder; None: it names none or unknown ones."""
        if not (shell_names(statement.text) & self._assigned.keys() or _FOLDER_IN_TEXT.search(statement.text)):
            return None
        values = [(name, value[0]) for name, value in statement.assigns if value and len(value) == 1]
        count = len(statement.words) - 1 if statement.words else len(statement.assigns)
        words = [("", word) for word in (statement.words[:1] if values else statement.words)]
        if (values and len(values) != count) or "+=" in statement.text:
            return None
        if not all(word.is_known for _, word in [*words, *values]):
            return None
        parts = [(name, self._replace_submit_folder(statement, word)) for name, word in [*words, *values]]
        return " ".join(f"{name}={_shell_word(word, '')}" if name else _shell_word(word, "") for name, word in parts)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _find_run(self, statement: Statement) -> _Run | None:
        """A command that is profiled, that a launcher starts, or that is a program by its path; None for others."""
        run = self._parse_known_run(statement)
        return replace(run, folder=self._folder) if run else None

    def _parse_known_run(self, statement: Statement) -> _Run | None:
        """A run as it is parsed once."""
        if id(statement) not in self._run_by_statement:
            self._run_by_statement[id(statement)] = self._parse_run(statement)
        return self._run_by_statement[id(statement)]

    def _parse_run(self, statement: Statement) -> _Run | None:
        if not statement.words or statement.is_condition or reads_reports(statement.words):
            return None
        words = [self._replace_submit_folder(statement, word) for word in statement.words]
        parts = command_parts(words, self._read_script)
        is_started = parts.start is not None or parts.container is not None or bool(parts.prefix)
        if parts.words is None and reads_reports(parts.program):
            self._report_readers.add(id(statement))
            return None
        if not parts.program or not (parts.words or _is_program(parts.program, is_launched=is_started)):
            return None
        parts.program = [self._replace_submit_folder(statement, word) for word in parts.program]
        for text, reason in parts.notes:
            self._report(statement, reason, understood=False, text=text)
        path = parts.words.path if parts.words else ""
        if "/" in path and (parts.is_inside_container or not PLAIN_PATH.fullmatch(path)):
            reason = (
                "nsw starts the image's own"
                if parts.is_inside_container
                else "nsw starts the site's: name its path there"
            )
            self._report(statement, reason, understood=parts.is_inside_container, text=path)
        if parts.words is None and (left := profilers_in(parts.program)):
            self._report(statement, f"{_HIDDEN_PROFILER} {left[0]} starts", understood=False)
            return None
        return _Run(statement, None, parts)

    def _replace_submit_folder(self, statement: Statement, word: Text) -> Text:
        """Replace the submission folder in a word by the script's folder: nsw submits from another folder."""
        is_folder = [piece.kind == "variable" and _SUBMIT_FOLDER.fullmatch(piece.text) for piece in word.pieces]
        if not any(is_folder):
            return word
        folder = Piece("text", str(self._path.parent.absolute()))
        self._report(statement, f"{folder.text}: nsw submits from another folder", text=word.source_text)
        return Text(tuple(folder if is_it else piece for is_it, piece in zip(is_folder, word.pieces, strict=True)))

    def _read_script(self, name: str) -> str | None:
        """The text of a script that the job starts: written by it, or beside it."""
        if (text := self._written_files.get(PurePosixPath(name).name)) is not None:
            return text
        try:
            return read_bytes(self._path.parent.absolute() / name, 1 << 20).decode()
        except (OSError, ValueError):
            return None

    def _runs_by_program(self) -> list[list[_Run]]:
        """The runs of each recipe: one program, with and without a profiler."""
        profiled = [run for run in self._runs if run.words is not None]
        groups: dict[tuple[Any, ...], list[_Run]] = {}
        for run in self._runs:
            if run in profiled or not profiled:
                groups.setdefault((*run.key, run.is_outside), [])
        for run in self._runs:
            own_key = (*run.key, run.is_outside)
            key = (
                own_key if own_key in groups else (*run.key, True)
            )  # the program alone, of one whose profiler starts the launcher
            if key in groups:
                groups[key].append(run)
            elif not any(
                line.first <= run.statement.line <= line.last and not line.is_understood for line in self._lines
            ):
                self._report(run.statement, "another program: nsw does not run it", understood=False)
        if not groups:
            hidden = [line for line in self._lines if line.what.startswith(_HIDDEN_PROFILER)]
            reason = f": line {hidden[0].numbers}: {hidden[0].what}" if hidden else ""
            raise UsageError(
                f"{self._path} starts no profiler and no program that nsw recognises{reason}",
                hint="`nsw init -- COMMAND` makes a recipe for a command line",
            )
        return list(groups.values())

    def _launch_of_run(self, run: _Run) -> _Start:
        """The launch of a run's program, without the options that nsw writes itself."""
        start, directives = run.start, self.directives
        if run.parts.prefix:
            return _Start(
                "custom", directives.tasks or 1, prefix=" ".join(_shell_word(w, "") for w in run.parts.prefix)
            )
        if start is None:
            tasks = directives.tasks or 1
            if tasks > 1:
                message = f"the script asks for {tasks} processes, but no launcher starts them: nsw asks for one"
                is_one_node = (directives.nodes or 1) == 1
                self._report(
                    run.statement, f"{message}, with their CPUs" if is_one_node else message, understood=is_one_node
                )
                if is_one_node:
                    return _Start(settings={"cpus": tasks * directives.numbers.get("cpus", 1)})
            return _Start()
        component = run.parts.component
        if component and component != str(directives.component):
            reason = f"nsw's job is component {directives.component} alone"
            self._report(run.statement, reason, understood=False, text=f"{start.kind} --het-group={component}")
        if start.kind == "jsrun" and (sets := _jsrun_resource_sets(start)) is not None:
            return sets
        is_mpi = start.kind.startswith("mpi")  # whose own options stay: which MPI it is decides what nsw writes
        options, number = list(start.options), dict[str, int]()
        for message, value, at in reversed(list(parse_layout_options(start.kind, options))):
            if message in {"gpus", "rank_gpus", "gres"} and value is not None:
                number |= _parse_gpu_option(message, value)
            elif message == "mapping" and (mapped := _MAPPED.match(value or "")):
                number |= {"per_node": int(mapped[1])} | ({"cpus": int(mapped[2])} if mapped[2] else {})
            elif message in {"per_node", "cpus", "nodes", "all_gpus"} and value is not None and value.isdecimal():
                number[message] = int(value)
                width = 1 if value in options[at] else 2
                options[at : at + width] = options[at : at + width] if is_mpi else []
        nodes = number.get("nodes") or directives.nodes or 1
        each_node = nodes if start.kind == "srun" else 1  # srun's default
        counted = max(map(int, run.counts), default=0)
        processes = start.processes or counted or number.get("per_node", 0) * nodes or directives.tasks or each_node
        if processes < nodes and "nodes" not in number:
            message = f"{processes} process on {nodes} nodes: nsw asks for as many nodes as processes"
            self._report(
                run.statement, message, understood=False, text=f"{start.kind} {' '.join(start.options)}".strip()
            )
            number["nodes"] = processes
        if not (start.processes or counted) and _is_process_count_computed(options):
            message = f"the number is computed: nsw takes {processes}"
            self._report(run.statement, message, understood=False, text=f"{start.kind} -n")
        known_options = self._known_options(run, start.kind, options)
        return _Start(start.kind, processes, known_options, number, count=run.parts.count if run.counts else "")

    def _known_options(self, run: _Run, kind: str, options: list[str]) -> list[str]:
        """Options of a launcher whose values are known; those of others are named, but for the number of processes."""
        kept_words: list[str] = []
        for word in options:
            if FILLED not in word:
                kept_words.append(word)
                continue
            name = (
                kept_words.pop()
                if word == FILLED and kept_words and kept_words[-1].startswith("-")
                else word.replace(FILLED, "...")
            )
            is_count = name in COUNTS or (run.counts and name.removesuffix("...").removesuffix("=") in COUNTS)
            if not is_count:
                self._report(run.statement, "only the job knows its value", understood=False, text=f"{kind} {name}")
        return kept_words

    # --- the texts ----------------------------------------------------------------------------------------------------

    def _recipe_text(self, group: list[_Run], number: int, plan: str) -> str:
        """The text of a recipe, for runs of one program."""
        first = group[0]
        start = self._launch_of_run(first)
        app = "".join(self._app_lines(group, start))
        for run in group:
            statement = run.statement
            if any(">" in sign for sign, _ in statement.redirects):
                self._report(
                    statement,
                    _KEEPS_OUTPUT,
                    text=" ".join(f"{sign} {t.source_text}" for sign, t in statement.redirects),
                )
            if statement.before in {"|", "|&"}:
                self._report(statement, "its input comes through a pipe", understood=False)
        name = _recipe_name(self.directives.name, first, number)
        out = [
            f"# Made by `nsw init --from-script {self._path.name}`. Numbers of lines are those of that script.\n",
            f"#\n#   {plan}\nnsw: 1\nname: {_text_as_yaml(name)}\n\napp:\n",
            app,
        ]
        if matrix := self._matrix_parameters(group, set(re.findall(r"\{\{ (\w+) \}\}", app))):
            out.append("\nmatrix:\n")
            out += [f"  {name}: [{', '.join(map(_matrix_value, values))}]\n" for name, values in matrix.items()]
        out += ["\npasses:\n", *self._passes_lines(group), "\n", self._resources_text(start)]
        return "".join(out) + self._skipped_lines_comment()

    def _app_lines(self, group: list[_Run], start: _Start) -> Iterator[str]:
        """The lines below `app:`."""
        first = group[0]
        orders = sorted(self._order[id(run.statement)] for run in group)
        setup = [text for source, text in self._setup if self._is_set_before(source, orders)]
        yield f"  command: {_text_as_yaml(self._command_text(first))} # line {first.statement.line}\n"
        if files := [] if first.folder else self._app_files(group):
            yield f"  files: {_as_flow_yaml(files)} # put beside the program where it runs\n"
        if setup:
            yield "  setup: # the job's shell runs these lines before the program\n"
            yield from (f"    - {_text_as_yaml(line)}\n" for line in setup)
        env = dict[str, str]()
        for source, values in self._env:
            if self._is_set_before(source, orders):
                env |= values
        for run in group:
            env |= self._run_env(run)
        if env:
            yield "  env:\n"
            yield from (f"    {name}: {_text_as_yaml(value)}\n" for name, value in env.items())
        if start.kind != "none":
            yield f"  launcher: {_as_flow_yaml(_launcher_keys(start, group))}\n"
        if first.parts.container is not None:
            yield f"  container: {_as_flow_yaml(self._container_keys(first, first.parts.container))}\n"
        if self._build:
            yield f"  build: {_as_flow_yaml({'command': self._build_command()})}\n"

    def _is_set_before(self, source: Statement, runs: Sequence[int]) -> bool:
        """Whether a setting comes before the last run of a program; one between its runs is named."""
        order = self._order[id(source)]
        if runs[0] < order < runs[-1]:
            reason = "it comes between runs of one program: nsw does it before all of them"
            self._report(source, reason, understood=False, text=_hide_values(source) if source.assigns else None)
        return order < runs[-1]

    def _container_keys(self, run: _Run, container: ContainerWords) -> dict[str, Any]:
        """The keys of app.container."""

        def text_of(word: Text) -> str:
            if word.computed:
                self._report(run.statement, "only the job knows it", understood=False, text=word.source_text)
            return "".join(p.text_shown if p.kind == "parameter" else as_text(p.text) for p in word.pieces)

        keys: dict[str, Any] = {"runtime": container.runtime}
        image = text_of(container.image) if container.image else "write the image here"
        if is_relative_image(container.runtime, image):
            image = str(self._path.parent.absolute() / image)
        keys["image"] = image
        keys |= {"gpus": True} if container.gpus else {}
        keys |= {"mounts": [text_of(mount) for mount in container.mounts]} if container.mounts else {}
        keys |= {"env": {name: text_of(value) for name, value in container.env}} if container.env else {}
        keys |= {"options": [text_of(option) for option in container.options]} if container.options else {}
        if run.words is not None and not run.parts.is_inside_container:
            keys["profiler"] = "outside"
        return keys

    def _command_text(self, run: _Run) -> str:
        line = run.statement.line
        location = f"line {line} of {self._path.name}"
        program = [self._replace_outer_folder(run, word) for word in run.program]
        words = [_shell_word(word, f"{location}: write here what stands there") for word in program]
        for word in run.program:
            if (piece := word.computed) is not None:
                subject = "the script runs its own arguments" if piece.kind == "list" else piece.name
                self._report(run.statement, f"{subject}: fill it in in app.command", understood=False, text=piece.text)
        if profilers_in(run.program):
            self._report(run.statement, "it starts a profiler of its own: write the program", understood=False)
            words = [f'"${{NSW_FILL_IN:?{location}: write the program that the profiler starts}}"']
        command = " ".join(words)
        for sign, target in run.statement.redirects:
            if sign.lstrip("0") == "<":
                command += f" < {_shell_word(self._replace_outer_folder(run, target), 'the input')}"
        return command if run.folder is None else f"cd {_shell_word(run.folder, 'the folder')} && {command}"

    def _replace_outer_folder(self, run: _Run, word: Text) -> Text:
        """A word such as `../a.py` by its whole path: nsw runs the program in a folder of its own."""
        options = run.words.options if run.words is not None else []
        is_moved = run.folder is not None or any(o.lstrip("-").startswith("app-working-dir") for o in options)
        if is_moved or not word.source_text.startswith("../"):
            return word
        folder = self._path.parent.absolute()
        self._report(run.statement, f"{folder}: nsw submits from another folder", text=word.source_text)
        return Text((Piece("text", f"{folder}/"), *word.pieces))

    def _run_env(self, run: _Run) -> dict[str, str]:
        """Variables that are set for a run alone."""
        variables = {}
        for name, value in run.assigns:
            if value is None or (text := _template_text(value)) is None:
                self._report(run.statement, "only the job knows its value", understood=False, text=f"{name}=...")
            else:
                variables[name] = text
        return variables

    def _app_files(self, group: Sequence[_Run]) -> list[str]:
        """The files beside the script that the program needs or is built from."""
        words = [word.literal for run in group for word in run.program]
        words += [word.literal for _, built in self._build for word in built.words]
        built_files = {PurePosixPath(words[at + 1] or "").name for at, word in enumerate(words[:-1]) if word == "-o"}
        files = files_of([word for word in words if word], self._path.parent)
        for folder, built in self._build:
            for word in built.words:
                name = word.literal or ""
                if (
                    folder is None
                    and PurePosixPath(name).suffix in _SOURCES
                    and name not in files
                    and name not in built_files
                ):
                    message = f"{name} is not beside the script: list it in app.files"
                    self._report(built, message, understood=False)
        return [name for name in files if not (self._build and name in built_files)]

    def _build_command(self) -> str:
        """The compilers' lines, in the folder that the script changed to."""
        parts, folder = [], None
        for target, statement in self._build:
            if target is not None and target is not folder:
                parts.append(f"cd {_shell_word(target, 'the folder')}")
                folder = target
            hint = f"line {statement.line}"
            words = [f"{name}={_shell_word(value[0], hint)}" for name, value in statement.assigns if value]
            parts.append(" ".join([*words, *(_shell_word(word, hint) for word in statement.words)]))
            for word in [*statement.words, *(word for _, value in statement.assigns for word in value or ())]:
                if word.computed is not None:
                    reason = f"{word.computed.name}: fill it in in app.build"
                    self._report(statement, reason, understood=False, text=word.source_text)
        return " && ".join(parts)

    def _matrix_parameters(self, group: Sequence[_Run], used: set[str]) -> dict[str, Sequence[str]]:
        """The variables of loops, and the arguments of the script, that the keys of the program name."""
        inside = {block: run.statement for run in group for block in run.statement.blocks}
        for block, statement in inside.items():
            if block.loop is not None and block.loop[0] in statement.loops and block not in self._reported_blocks:
                name = block.loop[0]
                self._reported_blocks.add(block)
                outcome = (
                    f"matrix: {name}"
                    if name in used
                    else "the program's arguments do not name it: nsw counts the runs in it once"
                )
                self._report_block(block, outcome, understood=name in used)
        parameters = {name: values for run in group for name, values in run.statement.loops.items() if name in used}
        for name in sorted(parameters.keys() - {block.loop[0] for block in inside if block.loop is not None}):
            reason = f"its caller gives it: write its value in matrix.{name}, or `--set {name}=VALUE`"
            self._report(group[0].statement, reason, understood=False, text=parameters[name][0])
        return parameters

    def _passes_lines(self, group: Sequence[_Run]) -> Iterator[str]:
        """The lines below `passes:`; the program without a profiler is one pass."""
        kinds = [run.words.kind for run in group if run.words]
        alone = [run for run in group if run.words is None or run.words.kind == "baseline"]
        names: set[str] = set()
        for run in group:
            if run.words is None or run.words.kind == "baseline":
                self._report(run.statement, "passes: baseline")
                for text, reason in run.words.unknown if run.words else ():
                    self._report(run.statement, reason, understood=False, text=text)
                if run is alone[0]:
                    yield f"  - baseline: {{}} # line {run.statement.line}: the program alone\n"
            else:
                keys = {"name": _unique_name(run.words.tool, names)} if kinds.count(run.words.kind) > 1 else {}
                yield from self._pass_lines(run, run.words, keys)

    def _pass_lines(self, run: _Run, words: PassWords, keys: dict[str, Any]) -> Iterator[str]:
        """The lines of a pass with a profiler, and what nsw adds to its command line."""
        if words.kind == "counters" and run.start is not None and not run.is_outside:
            keys["ranks"] = "all"  # by default nsw's is the first alone
        if run.parts.ranks:
            keys["ranks"] = run.parts.ranks
        replay = words.fields.get("replay", "")
        if replay.endswith("application") and run.start is not None and not run.is_outside:
            del words.fields["replay"]
            reason = "nsw replays kernels: a launcher cannot start one process again"
            self._report(run.statement, reason, understood=False, text=f"--replay-mode {replay}")
        keys |= {"tool": words.tool, **words.fields} | ({"options": words.options} if words.options else {})
        yield f"  - {words.kind}: {_as_flow_yaml(keys)} # line {run.statement.line}\n"
        self._report(run.statement, f"passes: {words.kind} by {words.tool}")
        for text, reason in words.left_out:
            self._report(run.statement, reason, text=text)
        for text, reason in words.unknown:
            self._report(run.statement, reason, understood=False, text=text)
        if words.tool == "nsys" and not any(o.startswith(("-s", "--sample", "--cpuctxsw")) for o in words.options):
            yield "    # nsw adds --sample=none --cpuctxsw=none: nsys samples CPUs only where options say so\n"
        if words.tool == "ncu" and "processes" not in words.fields:
            yield "    # nsw adds --target-processes all; processes: application is the older ncu's default\n"

    def _resources_text(self, start: _Start) -> str:
        directives, settings = self.directives, start.settings
        keys: dict[str, Any] = dict(directives.resources)
        for setting, key in (("nodes", "nodes"), ("all_gpus", "gpus"), ("cpus", "cpus_per_task")):
            if setting in settings:
                keys[key] = settings[setting]
        if not keys["gpus"]:
            of_nodes = settings.get("node_gpus", 0) * keys.get("nodes", 1)
            keys["gpus"] = of_nodes or settings.get("rank_gpus", 0) * start.processes
        if "per_node" in settings and settings["per_node"] * keys.get("nodes", 1) != start.processes:
            keys["tasks_per_node"] = settings["per_node"]
        notes = []
        if seconds := keys.pop("time", None):
            run_seconds = seconds - _MARGIN if seconds > 2 * _MARGIN else seconds
            keys["time"] = format_duration(run_seconds)
            notes.append(f"nsw asks for {format_duration(run_seconds + _MARGIN)}: a minute more, for the job itself")
        keys |= {"extra": directives.extra} if directives.extra else {}
        order = ["nodes", "gpus", "cpus_per_task", "tasks_per_node", "memory", "time"]
        first = {key: keys[key] for key in order if key in keys}
        ordered = first | {key: value for key, value in keys.items() if key not in first}
        if not keys["gpus"] and not self.is_local:
            notes.append("the script asks for no GPUs")
        if "time" not in keys:
            notes.append("the script asks for no time: nsw asks for 10m")
        return f"resources: {_as_flow_yaml(ordered)}{' # ' + '; '.join(notes) if notes else ''}\n"

    def _skipped_lines_comment(self) -> str:
        lines = sorted((line for line in self._lines if not line.is_understood), key=lambda line: line.first)
        if not lines:
            return ""
        shown_lines = [
            f"#   {line.numbers:<8} {_as_comment(line.text)}: {_as_comment(line.what)}\n"
            for line in dict.fromkeys(lines)
        ]
        return f"\n# Not understood of {self._path.name}, and not done by this recipe:\n{''.join(shown_lines)}"

    def _site_text(self, name: str) -> str:
        directives = self.directives
        keys = [("scheduler", scalar(directives.scheduler))]
        keys += [
            (key, scalar(value) if key != "gres" else _text_as_yaml(value)) for key, value in directives.site.items()
        ]
        if re.search(r"\s-\w*l|--login", self._script.shebang):
            keys.append(("login_shell", "true"))
        if self._modules:
            keys.append(("modules", _as_flow_yaml(self._modules)))
        if chip := find_chip(directives.gpu_kind or None):
            keys.append(("gpus", f"{{ chip: {chip.name} }}"))
        if self._profiler_paths:
            keys.append(("profilers", _as_flow_yaml(self._profiler_paths)))
        return f"  {scalar(name)}: # made of {_as_comment(self._path.name)}\n" + "".join(
            f"    {key}: {text}\n" for key, text in keys
        )


# --- words ------------------------------------------------------------------------------------------------------------


def _is_matrix_loop(block: Block, statement: Statement) -> bool:
    """Whether a block is a loop over words that the runs in it take as a parameter."""
    return block.loop is not None and block.loop[0] in statement.loops


def _is_program(words: Sequence[Text], *, is_launched: bool) -> bool:
    first = words[0].pieces[0] if words and words[0].pieces else None
    if first is None:
        return False
    name = PurePosixPath(words[0].literal or "").name
    interpreter = re.fullmatch(r"python[\d.]*|julia|Rscript|perl|bash|sh", name)
    return is_launched or first.kind == "list" or first.text.startswith(("./", "/")) or interpreter is not None


def _is_process_count_computed(options: Sequence[str]) -> bool:
    """Whether the number of processes is given, and only the job knows it."""
    pairs = (*pairwise(options), *(tuple(word.partition("=")[::2]) for word in options))
    return any(name in COUNTS and FILLED in value for name, value in pairs)


def _jsrun_resource_sets(start: Launched) -> _Start | None:
    """The resource sets that jsrun is given, which nsw leaves as they are; -n counts them."""
    option_values = {meaning: value for meaning, value, _ in parse_layout_options(start.kind, start.options)}
    if not option_values.keys() & {"set_ranks", "set_cpus", "set_gpus", "node_sets"} or start.processes is None:
        return None
    ranks = option_values.get("set_ranks") or "1"
    each = int(ranks) if ranks.isdecimal() else 1
    gpus = option_values.get("set_gpus") or ""
    settings = {"all_gpus": start.processes * int(gpus)} if gpus.isdecimal() else {}
    return _Start(start.kind, start.processes * each, ["-n", str(start.processes), *start.options], settings)


def _parse_gpu_option(meaning: str, value: str) -> dict[str, int]:
    """The GPUs of a node or of a process that an option of srun asks for."""
    numbers = re.findall(r"(?:^|[:=])(\d+)$", value)
    if not numbers or (meaning == "gres" and "gpu" not in value):
        return {}
    return {"rank_gpus" if meaning == "rank_gpus" else "node_gpus": int(numbers[0])}


def _launcher_keys(start: _Start, group: Sequence[_Run]) -> dict[str, Any]:
    """A recipe's app.launcher; where the profiler is, if that is not where nsw puts it by default."""
    keys: dict[str, Any] = {
        "kind": start.kind,
        "processes": f"{{{{ {start.count} }}}}" if start.count else start.processes,
    }
    keys |= {"prefix": start.prefix} if start.prefix else {}
    if start.options:
        keys["options"] = [as_text(option) for option in start.options]
    outside = {run.is_outside for run in group if run.words is not None}
    if outside and outside != {start.kind == "torchrun"}:
        keys["profiler"] = "outside" if True in outside else "inside"
    return keys


def _writes_file(statement: Statement) -> bool:
    """Whether a statement writes a file, which the program may read."""
    return any(
        ">" in sign and target.source_text not in {"/dev/null", "1", "2"} for sign, target in statement.redirects
    )


def _file_in_start_folder(words: Sequence[str | None]) -> str | None:
    """The name of a file in the folder where the script is started; None for others."""
    name = words[0] if words else None
    return name if name and not name.startswith(("/", "~")) else None


def _makes_folder(statement: Statement) -> bool:
    """Whether it makes folders whose places do not depend on where it runs."""
    words = [word for word in statement.words[1:] if not word.source_text.startswith("-")]
    return (
        statement.program == "mkdir"
        and bool(words)
        and all(
            word.pieces
            and word.computed is None
            and (word.source_text.startswith("/") or word.pieces[0].kind == "variable")
            for word in words
        )
    )


def _shell_word(text: Text, hint: str) -> str:
    """A word as a recipe's command has it; what is not known is an error of the shell, with a hint."""
    shell_text = ""
    for piece in text.pieces:
        if piece.kind == "text":
            shell_text += as_text(shlex.quote(piece.text)) if piece.text or len(text.pieces) == 1 else ""
        elif piece.kind == "shell":
            shell_text += as_text(piece.text)
        elif piece.kind == "variable":
            is_split = text.pieces == (piece,) and not piece.quoted  # it may be no word, or several
            shell_text += as_text(piece.text) if is_split else f'"{as_text(piece.text)}"'
        elif piece.kind == "parameter":
            shell_text += f"{{{{ {piece.text} }}}}"
        else:
            plain = re.sub(r"[^\w ./:,-]", "", hint)
            shell_text += f'"${{NSW_FILL_IN:?{plain}}}"'
    return shell_text


def _shown_statement(statement: Statement) -> str:
    """A statement as it may be shown: without values that look secret."""
    is_secret = any(looks_secret(name) for name, _ in statement.assigns) or holds_secret(statement.text)
    return _hide_values(statement) if is_secret else statement.text


def _hide_values(statement: Statement) -> str:
    """The assignments as `export NAME=...`, without values: they may be secrets."""
    return f"{statement.program} {' '.join(f'{name}=...' for name, _ in statement.assigns)}".strip()


def _template_text(text: Text) -> str | None:
    """A word as text with parameters; None where only the job knows it."""
    if {piece.kind for piece in text.pieces} - {"text", "parameter"}:
        return None
    return "".join(piece.text_shown if piece.kind == "parameter" else as_text(piece.text) for piece in text.pieces)


def _unique_name(name: str, names: set[str]) -> str:
    number = next(n for n in range(1, 1000) if (name if n == 1 else f"{name}-{n}") not in names)
    unused = name if number == 1 else f"{name}-{number}"
    names.add(unused)
    return unused


def _recipe_name(job: str, run: _Run, number: int) -> str:
    words = words_of([word.literal or "program" for word in run.program[run.parts.prefixed :]])
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", job).strip("-._")[:60] or program_name(words)
    return name if number == 1 else f"{name}-{number}"


def _as_flow_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1 << 20, allow_unicode=True).strip()


def _text_as_yaml(text: str) -> str:
    return _as_flow_yaml([text])[1:-1]


def _matrix_value(text: str) -> str:
    """A value of a matrix: a number as it is written."""
    return text if re.fullmatch(r"-?\d+(\.\d+)?", text) else _text_as_yaml(text)


def _as_comment(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_MAX_SHOWN]
