"""A job script with a profiler in it -> the recipe and the site that do the same, and what was not understood.

The script is read, never run. What only a shell decides (conditionals, loops, what commands print) is not carried over:
it is named with its line, and the runs inside are taken once.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from nsw.apart import limited_block
from nsw.convert import shell_reader
from nsw.convert.command_parts import command_parts, profiled_ranks, profilers_in
from nsw.convert.recipe_text import Run, ScriptParts, recipe_text, shell_word, site_text, template_text
from nsw.convert.script_options import (
    KEEPS_OUTPUT,
    PRINTS_ONLY,
    Line,
    read_directives,
    reads_reports,
    switches_recording,
)
from nsw.convert.shell_reader import DECLARING, PRINTING, SETTING, SUBMIT_FOLDER, Block, Piece, Text, merge_pieces
from nsw.convert.shell_script import TESTS, Script, Statement, parse_script
from nsw.convert.shell_values import ARRAY_INDICES, STARTS_PROFILER, shell_names, starts_profiler
from nsw.errors import UsageError
from nsw.recipe.program import is_relative_image
from nsw.safe_files import read_bytes
from nsw.schedulers.create import adapters
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsw.convert.command_parts import CommandParts, ContainerWords

__all__ = ["Converted", "convert"]

_FILTERS: Final = frozenset({"tee", "grep", "head", "tail", "awk", "sed", "sort", "cat", "less"})
_TOOLS: Final = frozenset({
    "rm", "cp", "mv", "ln", "mkdir", "rmdir", "chmod", "touch", "tar", "gzip", "gunzip", "unzip", "zip", "wget", "curl",
    "git", "pip", "pip3", "rsync", "scp", "find", "xargs", "mail", "kill", "trap", "return", "break", "continue",
    "shift", "read", "let", "pushd", "popd", "salloc", "ssh", "sudo", "apt", "apt-get", "deactivate",
})  # fmt: skip
_MODULE_PRINTS: Final = frozenset({"list", "avail", "show", "spider", "help", "whatis"})
_COMPILERS: Final = re.compile(
    r"nvcc|gcc|g\+\+|cc|CC|c\+\+|ftn|gfortran|clang(\+\+)?|icc|icpc|icx|icpx|ifort|ifx|nvc|nvc\+\+|nvfortran|pgcc|pgc\+\+|pgfortran"
    r"|hipcc|mpicc|mpicxx|mpic\+\+|mpiCC|mpif90|mpifort|make|cmake|ninja"
)
_READS_REPORTS: Final = "nsw reads the reports itself: `nsw summarize`"
_INTERPRETERS: Final = re.compile(r"python[\d.]*|julia|Rscript|perl|bash|sh")
_HIDDEN_PROFILER: Final = "nsw does not see what"
_IMAGE: Final = re.compile(r"#SBATCH(?:\s.*)?\s--image[= ](\S+)")  # Shifter's
_FOLDER: Final = re.compile(r"PWD|\bpwd\b|SUBMIT_DIR|O_WORKDIR|SUBCWD|_CWD|BASH_SOURCE|\$\{?0")
_INDEX: Final = re.compile(r"\$\{{(?:{0})\b[^}}]*\}}|\$?\b(?:{0})\b".format("|".join(ARRAY_INDICES)))
_ARGUMENT: Final = re.compile(r"'[^']*'|(\$(?:[1-9@*]|\{[1-9@*][^}]*\}))")


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


def convert(
    text: str, script: Path, *, site: str | None, sites: str, recipe: str, arguments: Sequence[str] | None = None,
    gpus: Callable[[], int] = lambda: 0,
) -> Converted:  # fmt: skip
    """Make a recipe and a site of a job script.

    Args:
        text: The script.
        script: Its file: the files of the program are looked for beside it.
        site: The name of the site; None: that of its batch system.
        sites: The name of the sites file, for the comments.
        recipe: The name of the recipe's file, likewise.
        arguments: What the script is started with; None: only its caller knows.
        gpus: Tells how many GPUs a run gets where the script is for no batch system.

    Raises:
        UsageError: The script cannot be taken apart, or starts no program.
        LimitError: That takes too much time or memory.
    """
    with limited_block(f"reading {script}"):
        given = None if arguments is None else [Text((Piece("text", word),)) for word in arguments]
        parts = _read(parse_script(text, script.name, given), script)
    if parts.is_local:  # without limits: it starts programs that reserve more memory than the script may take
        parts.directives.resources["gpus"] = gpus()
    with limited_block(f"reading {script}"):
        has_site = not parts.is_local or site is not None or bool(parts.profiler_paths)
        name = site or ("here" if parts.is_local else parts.directives.scheduler)
        site_options = f" --site {name} --sites {sites}" if has_site else ""
        recipes = []
        for number, group in enumerate(_runs_by_program(parts), 1):
            end = "" if number == 1 else f"-{number}"
            file = Path(recipe).with_stem(f"{Path(recipe).stem}{end}")
            recipes.append((end, recipe_text(parts, group, number, f"nsw plan {file}{site_options}")))
        lines = sorted(dict.fromkeys(parts.lines), key=lambda line: (line.first, line.is_understood))
        return Converted(recipes, name, site_text(parts, name) if has_site else None, lines)


def _read(script: Script, path: Path) -> ScriptParts:
    """What a script does; one that profiles nothing itself and submits a script that it writes: what that does."""
    parts = ScriptParts(script, path)
    _ScriptReader(parts).read()
    if any(run.parts.words is not None for run in parts.runs):
        return parts
    for statement, text, line in _submitted(script):
        inner = ScriptParts(parse_script("\n" * (line - 1) + text, path.name), path)
        _ScriptReader(inner).read()
        reason = "nsw takes what it submits: what this script does around it is not carried over"
        inner.report(statement, reason, understood=False)
        return inner
    return parts


def _submitted(script: Script) -> Iterator[tuple[Statement, str, int]]:
    """The commands that submit a text of the script in which a profiler is started, with the text and its line."""
    written = _written_files(script)
    for before, statement in zip([*script.statements[:1], *script.statements], script.statements, strict=False):
        markers = [one.marker for name, one in adapters().items() if name != LOCAL and one.submit == statement.program]
        words = [*statement.words[1:], *(file for sign, file in statement.redirects if sign == "<")]
        names = [word.literal or "" for word in words]
        source = before if statement.before == "|" else statement
        files = [written[name] for name in names if name in written]
        text, line = files[0] if files else (source.document, source.document_line)
        if markers and STARTS_PROFILER.search(text):
            options = shlex.join(takewhile(lambda name: name and name not in written, names))
            marker = next((marker for marker in markers if f"\n{marker} " in f"\n{text}"), "")
            if marker:  # what the command line asks for is as if the first directive did
                text = f"\n{text}".replace(f"\n{marker} ", f"\n{marker} {options} ", 1)[1:]
            elif options:
                text, line = f"{markers[0]} {options}\n{text}", max(line - 1, 1)
            yield statement, text, line


def _written_files(script: Script) -> dict[str, tuple[str, int]]:
    """The text of each file that a script writes by here-documents or `echo`, with the line where it begins."""
    files: dict[str, tuple[str, int]] = {}
    for statement in (statement for statement in script.statements if statement.document):
        for sign, target in statement.redirects:
            if target.literal and sign in {">", ">>"}:
                text, line = files.get(target.literal, ("", statement.document_line)) if sign == ">>" else ("", 0)
                files[target.literal] = f"{text}{statement.document}\n", line or statement.document_line
    return files


def _runs_by_program(parts: ScriptParts) -> list[list[Run]]:
    """The runs of each recipe: one program, built once, with and without a profiler."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    builds = {id(run): tuple(built.text for _, built in parts.builds_before(run.statement)) for run in parts.runs}
    for run in [run for run in parts.runs if run.parts.words is not None] or parts.runs:
        groups.setdefault((*run.key, builds[id(run)], run.is_outside), [])
    for run in parts.runs:
        key = (*run.key, builds[id(run)], run.is_outside)
        if key not in groups:  # the program alone, of one whose profiler starts the launcher
            key = (*key[:-1], True)
        number = run.statement.line
        if key in groups:
            groups[key].append(run)
        elif not any(line.first <= number <= line.last and not line.is_understood for line in parts.lines):
            parts.report(run.statement, "another program: nsw does not run it", understood=False)
    if not groups:
        hidden = [f"line {line.numbers}: {line.what}" for line in parts.lines if line.what.startswith(_HIDDEN_PROFILER)]
        named = [s for s in parts.script.statements if starts_profiler(s.words)]
        hidden += [f"line {s.line}: {_HIDDEN_PROFILER} {s.words[0].source_text} starts" for s in named]
        reason = f": {hidden[0]}" if hidden else ""
        raise UsageError(
            f"{parts.path} starts no profiler and no program that nsw recognises{reason}",
            hint="`nsw init -- COMMAND` makes a recipe for a command line",
        )
    return sorted(groups.values(), key=lambda group: parts.runs.index(group[0]))


class _ScriptReader:
    """Reads the statements of a script into its parts."""

    def __init__(self, parts: ScriptParts) -> None:
        self._parts = parts
        self._script = parts.script
        self._report = parts.report
        self._setup_names: set[str] = set()
        self._assigned: dict[str, Statement] = {}
        self._of_job: list[tuple[str, Statement]] = []  # what the job's shell computes, each time
        self._in_condition = self._is_profiled = self._takes_any = False
        written = _written_files(parts.script)
        self._written_files = {PurePosixPath(name).name: text for name, (text, _) in written.items()}
        self._profiler_names: set[str] = set()  # variables whose values start a profiler
        for name, text in [(name, s.text) for s in parts.script.statements for name, _ in s.assigns]:
            if STARTS_PROFILER.search(text) or shell_names(text) & self._profiler_names:
                self._profiler_names.add(name)
        self._outcomes: dict[int, str] = {}  # of commands that a launcher or a container starts and that are no runs

    def read(self) -> None:
        """Fill the parts."""
        parts, statements = self._parts, self._script.statements
        runs = [self._parse_runs(statement) for statement in statements]
        if not any(runs):  # then a command of any name is the program
            self._takes_any = True
            runs = [self._parse_runs(statement) for statement in statements]
        started = [number for number, group in enumerate(runs) if group]
        profiled = [number for number in started if runs[number][0].parts.words is not None]
        last, self._is_profiled = max(profiled or started, default=0), bool(profiled)
        component = next((runs[number][0].parts.component for number in profiled), "")
        commands = "\n".join(statement.text for statement in statements)
        number = int(component) if component.isdecimal() else 0
        allocations = [
            (run.statement.line, f"#SBATCH {run.parts.allocation}") for group in runs for run in group
            if run.parts.allocation
        ]  # fmt: skip
        comments = [*self._script.comments, *allocations[:1]]
        parts.directives = read_directives(comments, commands, number, self._script.late_comments)
        parts.lines += parts.directives.became
        reason = "the recipe asks for what the first salloc does"
        parts.lines += [Line(line, line, text, reason, is_understood=False) for line, text in allocations
                        if text != allocations[0][1]]  # fmt: skip
        single_blocks = [statements[number].blocks[0] for number in profiled if len(statements[number].blocks) == 1]
        rank_blocks = {block.line for block in single_blocks if profiled_ranks(block)}
        unknown_blocks: dict[int, tuple[Block, bool]] = {}  # by their beginnings, and whether there are runs in them
        for block, reason in self._script.passed.items():
            self._report(block, reason)
        for skipped in self._script.skipped:
            self._report(skipped, "never run: the script's own values decide so")
        for number, (statement, group) in enumerate(zip(statements, runs, strict=True)):
            # but a loop over words that the runs in it take as a parameter
            unknown = next((b for b in statement.blocks if b.loop is None or b.loop[0] not in statement.loops), None)
            if unknown is not None and unknown.line in rank_blocks:
                self._take_rank_statement(unknown, statement, next(iter(group), None))
                continue
            parts.runs += group
            if unknown is not None:
                _, has_runs = unknown_blocks.get(unknown.begin, (unknown, False))
                unknown_blocks[unknown.begin] = unknown, has_runs or bool(group)
            elif not group:
                self._take_plain_statement(statement, is_late=number > last)
        self._add_job_variables()
        for block, has_runs in unknown_blocks.values():
            reason = "nsw counts each run in it once" if has_runs else "not carried over"
            self._report(block, reason, understood=False)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _take_rank_statement(self, block: Block, statement: Statement, run: Run | None) -> None:
        """Take a statement on some ranks: the profiled run is a pass with `ranks`, the others run the program alone."""
        if run is not None and run.parts.words is not None and profiled_ranks(block):
            run.parts.ranks = profiled_ranks(block)
            self._parts.runs.append(run)
            self._report(block, f"ranks: {run.parts.ranks}")
            if run.parts.start is None:
                reason = "its caller starts it on each rank: write app.launcher"
                self._report(statement, reason, understood=False, text=self._parts.path.name)
        elif run is not None and run.parts.words is None and not profiled_ranks(block):
            self._report(statement, "the ranks that are not profiled")
        elif statement.program in PRINTING and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif not statement.words and statement.is_known:
            self._report(statement, "its value is in what uses it")
        elif not statement.is_condition:
            self._report(statement, "a condition: not carried over", understood=False)

    def _take_plain_statement(self, statement: Statement, *, is_late: bool) -> None:
        program = statement.program
        if statement.before not in {"&&", "||"}:
            is_test = program in TESTS or (statement.text.startswith("((") and not statement.assigns)
            self._in_condition = is_test and not statement.is_decided
        if statement.is_decided and (program in TESTS or statement.text.startswith("((")):
            self._report(statement, "the script's own values decide it")
        elif statement.before == "||" and program in PRINTING and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)  # `|| true`, `|| exit 1`
        elif self._in_condition or statement.before == "||":
            self._report(statement, "a condition: not carried over", understood=False)
        elif (
            not statement.words
            or program in {*DECLARING, "let", "read"} - SETTING
            or (statement.assigns and (program == ":" or statement.text.startswith("((")))
        ):
            self._take_assignments(statement)
        elif statement.before in {"|", "|&"} and program in _FILTERS:
            self._report(statement, KEEPS_OUTPUT)
        elif program == "shift":
            self._report(statement, "the function's lines")
        elif switches_recording(statement.words):
            self._report(statement, "nsw records the whole run", understood=False)
        elif reads_reports(statement.words):
            self._report(statement, _READS_REPORTS)
        elif id(statement) in self._outcomes and not _writes_file(statement):
            self._report(statement, self._outcomes[id(statement)])
        elif program in PRINTING and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif is_late and program in SETTING:
            self._report(statement, "left out: it comes after the last run")
        elif program in {"cd", "pushd", "popd"}:
            self._take_cd(statement)
        elif program in SETTING or _makes_folder(statement):
            self._take_setting(statement)
        elif _COMPILERS.fullmatch(PurePosixPath(program).name):
            self._parts.build.append((self._folder(statement), statement))
            self._report(statement, "app.build")
        else:
            self._report(statement, "nsw does not run it", understood=False)

    def _take_assignments(self, statement: Statement) -> None:
        self._assigned |= {name: statement for name, _ in statement.assigns}
        self._of_job += [(name, statement) for name, _ in statement.assigns if statement.is_of_job]
        names = {name for name, _ in statement.assigns}
        is_counter = any(b.loop and b.loop[0] in names and b.head[:5] in {"while", "until"} for b in statement.blocks)
        if statement.is_known or statement.is_of_job or is_counter:
            self._report(statement, "its value is in what uses it")
        else:
            self._report(statement, "the shell computes it", understood=False, text=statement.without_values)

    def _folder(self, statement: Statement) -> Text | None:
        """The folder in which a command is run; None: where the job starts."""
        folder = statement.folder
        if folder is None or not folder.source_text:
            return None
        is_start = len(folder.pieces) == 1 and SUBMIT_FOLDER.fullmatch(folder.source_text) is not None
        return None if is_start else self._parts.in_folder(folder)

    def _take_cd(self, statement: Statement) -> None:
        target = statement.target
        if target.computed is not None:
            self._report(statement, "the shell computes the folder", understood=False)
        elif target.literal == "-" or statement.program == "popd":
            self._report(statement, "the folder of before")
        elif self._folder(statement) is None:
            self._report(statement, "nsw runs the program in a folder with app.files in it")
        else:
            self._parts.replace_submit_folder(statement, target)
            self._report(statement, "app.command: the runs below change to it")

    def _take_setting(self, statement: Statement) -> None:
        parts, program = self._parts, statement.program
        words = [word.literal for word in statement.words]
        file = words[1] if len(words) > 1 and program in {"source", "."} else None
        if program == "module" and len(words) > 1 and words[1] in _MODULE_PRINTS:
            self._report(statement, PRINTS_ONLY)
        elif (  # the site loads modules before app.setup
            program == "module" and words[1:2] == ["load"] and None not in words
            and not (parts.setup or parts.runs or parts.is_local)
        ):  # fmt: skip
            parts.modules += [word for word in words[2:] if word is not None]
            self._report(statement, "site: modules")
        elif any(shell_reader.STARTED_IN_TEXT.search(value[0].source_text) for _, value in statement.assigns if value):
            is_used = self._is_profiled
            reason = "left out: nsw starts the profiler" if is_used else "nsw does not see what it profiles: add a pass"
            self._report(statement, reason, understood=is_used, text=statement.without_values)
        elif program == "export" and self._add_to_env(statement):
            self._report(statement, "app.env", text=statement.without_values)
        elif file is None or file.startswith(("/", "~")) or self._is_on_path(file):
            self._add_to_setup(statement)
            self._report(statement, "app.setup", text=statement.without_values if statement.assigns else None)
        elif (target := self._folder(statement)) is not None or (parts.path.parent / file).is_file():
            folder = target.pieces if target is not None else (Piece("text", parts.folder),)
            path = shell_word(Text((*folder, Piece("text", f"/{file}"))), "")
            words_behind = [shell_word(word, f"line {statement.line}") for word in statement.words[2:]]
            parts.setup.append((statement, " ".join([program, path, *words_behind])))
            self._report(statement, "app.setup, by its whole path")
        else:
            reason = "the file is not beside the script: name it by its whole path"
            self._report(statement, reason, understood=False)

    def _is_on_path(self, file: str) -> bool:
        """Whether bash looks for a sourced file on PATH alone, as for conda's `activate`."""
        return not {"/", "."} & set(file) and not (self._parts.path.parent / file).is_file()

    def _add_to_env(self, statement: Statement) -> bool:
        """Add an export to app.env if its value is the same wherever it is set; whether it was added."""
        replace_folder = self._parts.replace_submit_folder
        texts = {name: template_text(replace_folder(statement, value[0])) for name, value in statement.assigns if value}
        values = {name: text for name, text in texts.items() if text is not None}
        later = [s for s in self._script.statements if s.line > statement.line and s.program in SETTING - {"cd"}]
        changed = {name for setting in later for name in shell_names(setting.text)}
        changed |= {name for name in self._setup_names if name.endswith("PATH")}
        if len(values) != len(statement.words) - 1 or changed & values.keys():
            return False
        earlier = (s for s in self._script.statements if s.line < statement.line and (s.assigns or s.program == "cd"))
        used = {name for s in earlier if not values.keys() & dict(s.assigns) for name in shell_names(s.text)}
        if names := used & values.keys():
            reason = "lines before it use its value of before"
            self._report(statement, reason, understood=False, text=f"export {' '.join(sorted(names))}=...")
        self._parts.env.append((statement, values))
        return True

    def _add_to_setup(self, statement: Statement) -> None:
        """Add a line to app.setup: with the values of the script's variables, or after the lines that set them."""
        setup = self._parts.setup
        self._setup_names |= {name for name, _ in statement.assigns}
        if (words := self._known_words(statement)) is not None:
            line = " ".join(f"{name}={shell_word(word, '')}" if name else shell_word(word, "") for name, word in words)
            has_parameter = any(piece.kind == "parameter" for _, word in words for piece in word.pieces)
            (self._parts.before if has_parameter else setup).append((statement, line))
            return
        for name in sorted(shell_names(statement.text) & self._assigned.keys()):
            source = self._assigned[name]
            if source is not statement and all(source is not earlier for earlier, _ in setup):
                self._add_to_setup(source)
        text = re.sub(r"\\\n\s*", "", statement.text)
        if index := _INDEX.search(text):  # nsw's own arrays have others
            reason = "the index of an array job: fill it in in app.setup"
            self._report(statement, reason, understood=False, text=index[0])
            text = _INDEX.sub(f"${{NSW_FILL_IN:?line {statement.line}}}", text)
        if argument := next((match[1] for match in _ARGUMENT.finditer(text) if match[1]), ""):
            self._report(statement, "the caller gives it: fill it in in app.setup", understood=False, text=argument)
            text = _ARGUMENT.sub(lambda m: f"${{NSW_FILL_IN:?line {statement.line}}}" if m[1] else m[0], text)
        setup.append((statement, text))

    def _add_job_variables(self) -> None:
        """Add the variables that the job computes, and that the runs name, to app.setup, where each is set."""
        setup, order = self._parts.setup, {id(statement): n for n, statement in enumerate(self._script.statements)}
        texts = [str((run.parts.program, run.parts.container, run.folder, run.assigns)) for run in self._parts.runs]
        texts += [str((folder, built.words, built.assigns)) for folder, built in self._parts.build]
        texts += [line for _, line in [*setup, *self._parts.before]]
        for name, statement in reversed(self._of_job):
            if any(name in shell_names(text) for text in texts):
                texts.append(statement.text)
                setup[:] = [(source, line) for source, line in setup if source is not statement]
                self._add_to_setup(statement)
                setup[-1] = statement, f"export {setup[-1][1]}"
        setup.sort(key=lambda entry: order[id(entry[0])])

    def _known_words(self, statement: Statement) -> list[tuple[str, Text]] | None:
        """The words of a statement, and what it assigns, with known values; None: it names no variable, or others."""
        own_names, text = self._assigned.keys() | statement.loops.keys(), statement.text
        if not (shell_names(text) & own_names or _FOLDER.search(text) or _ARGUMENT.search(text)):
            return None
        values = [(name, value[0]) for name, value in statement.assigns if value and len(value) == 1]
        count = len(statement.words) - 1 if statement.words else len(statement.assigns)
        words = [*(("", word) for word in (statement.words[:1] if values else statement.words)), *values]
        is_known = all(word.computed is None for _, word in words) and not re.search(r"\+=|=\(", statement.text)
        if not is_known or (values and len(values) != count):
            return None
        return [(name, self._parts.replace_submit_folder(statement, word)) for name, word in words]

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _parse_runs(self, statement: Statement) -> list[Run]:
        """What a command starts: several runs where it starts a script with several profiled commands."""
        if not statement.words or statement.program in TESTS or reads_reports(statement.words):
            return []
        words = [self._parts.replace_submit_folder(statement, word) for word in statement.words]
        each = [self._parse_run(statement, parts) for parts in command_parts(words, self._read_script)]
        return [run for run in each if run is not None]

    def _parse_run(self, statement: Statement, parts: CommandParts) -> Run | None:
        """A command that is profiled, that a launcher starts, or that is a program by its path; None for others."""
        is_started = parts.start is not None or parts.container is not None or bool(parts.prefix)
        if parts.words is None and (
            reads_reports(parts.program) or _only_prints(parts.program, is_launched=is_started)
        ):
            self._outcomes[id(statement)] = _READS_REPORTS if reads_reports(parts.program) else PRINTS_ONLY
            return None
        is_started = is_started or (self._takes_any and _is_other(statement))
        is_program = not statement.is_condition and _is_program(parts.program, is_launched=is_started)
        if not parts.program or not (parts.words or is_program):
            return None
        job_values = {text: Piece("variable", f"${name}", name) for text, name in statement.job_values.items()}
        for at, word in enumerate(parts.program):
            pieces = [job_values[p.text]._replace(quoted=p.quoted) if p.text in job_values else p for p in word.pieces]
            parts.program[at] = self._parts.replace_submit_folder(statement, Text(tuple(pieces)))
        folder = self._folder(statement)
        if parts.container is not None:
            folder = self._enter_container(parts.container, folder, parts.notes)
        if parts.container is not None and parts.container.image is None:
            images = [match[1] for _, line in self._script.comments if (match := _IMAGE.match(line))]
            parts.container.image = Text((Piece("text", images[0]),)) if images else None
            reason = "the image is not on this line: write app.container.image"
            parts.notes += [] if images else [(parts.container.runtime, reason)]
        for text, reason in parts.notes:
            self._report(statement, reason, understood=False, text=text)
        path, is_inside = parts.words.path if parts.words else "", parts.is_inside_container
        if parts.words and "/" in path and (is_inside or not parts.words.is_path_known):
            reason = "nsw starts the image's own" if is_inside else "nsw starts the site's: name its path there"
            self._report(statement, reason, understood=is_inside, text=path)
        left = profilers_in(parts.program) or self._hidden_in(parts.program)
        if parts.words is None and left:
            self._report(statement, f"{_HIDDEN_PROFILER} {left[0]} starts", understood=False)
            return None
        return Run(statement, folder, parts)

    def _enter_container(
        self, container: ContainerWords, folder: Text | None, notes: list[tuple[str, str]]
    ) -> Text | None:
        """The folder of a program in a container: the container's, or the script's, in which its image is too."""
        start = (Piece("text", self._parts.folder),)
        if container.image is not None and is_relative_image(container.runtime, container.image.source_text):
            before = start if folder is None else folder.pieces
            container.image = Text(merge_pieces((*before, Piece("text", "/"), *container.image.pieces)))
        inside = container.folder
        if inside is None or inside.pieces == start:
            notes += [(inside.source_text, "nsw starts the container in the run's folder")] if inside else []
            return folder
        return inside

    def _hidden_in(self, program: Sequence[Text]) -> list[str]:
        """The variables among a program's words that hold a line of shell which starts a profiler."""
        is_line = bool(program) and (program[0].literal or "") in {"bash", "sh", "eval"}
        pieces = [piece for word in (program if is_line else program[:1]) for piece in word.pieces]
        return [piece.text for piece in pieces if shell_names(piece.text) & self._profiler_names]

    def _read_script(self, name: str) -> str | None:
        """The text of a script that the job starts: written by it, or beside it."""
        if (text := self._written_files.get(PurePosixPath(name).name)) is not None:
            return text
        try:
            return read_bytes(self._parts.path.parent.absolute() / name, 1 << 20).decode()
        except (OSError, ValueError):
            return None


def _only_prints(words: Sequence[Text], *, is_launched: bool) -> bool:
    """Whether a program only says what is there."""
    texts = [word.literal for word in words]
    is_asked = len(texts) == 2 and texts[1] in {"--version", "-V", "--help"}
    return bool(words) and (is_asked or (is_launched and texts[0] in PRINTING))


def _is_program(words: Sequence[Text], *, is_launched: bool) -> bool:
    first = words[0].pieces[0] if words and words[0].pieces else None
    if first is None:
        return False
    name = PurePosixPath(words[0].literal or "").name
    interpreter = _INTERPRETERS.fullmatch(name)
    if interpreter and not is_launched and [word.literal for word in words[1:2]] == ["-c"] and name[-2:] != "sh":
        return False  # a check of what is installed
    return is_launched or first.kind == "list" or first.text.startswith(("./", "/")) or interpreter is not None


def _is_other(statement: Statement) -> bool:
    """Whether a command is none of the shell's, of the system's, of a compiler's or of a batch system's."""
    name = statement.program
    submits = {adapter.submit for adapter in adapters().values()}
    is_known = name in {*SETTING, *PRINTING, *DECLARING, *_FILTERS, *_TOOLS, *submits}
    is_known = is_known or (_COMPILERS.fullmatch(name) or _INTERPRETERS.fullmatch(name)) is not None
    return bool(name) and not is_known and statement.before not in {"|", "|&", "||"}


def _writes_file(statement: Statement) -> bool:
    outputs = [target.source_text for sign, target in statement.redirects if ">" in sign]
    return not {"/dev/null", "1", "2"}.issuperset(outputs)


def _makes_folder(statement: Statement) -> bool:
    """Whether it makes folders whose places do not depend on where it runs."""
    words = [word for word in statement.words[1:] if not word.source_text.startswith("-")]
    fixed = [word for word in words if word.pieces and word.computed is None]
    rooted = [word for word in fixed if word.source_text.startswith("/") or word.pieces[0].kind == "variable"]
    return statement.program == "mkdir" and bool(words) and len(rooted) == len(words)
