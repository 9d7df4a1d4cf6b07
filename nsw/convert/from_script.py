"""A job script with a profiler in it -> the recipe and the site that do the same, and what was not understood.

The script is read, never run. What only a shell decides (conditionals, loops, what commands print) is not carried over:
it is named with its line, and the runs inside are taken once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from nsw.apart import limited_block
from nsw.convert.command_parts import PRINTING, SETTING, command_parts, profiled_ranks, profilers_in
from nsw.convert.recipe_text import Run, ScriptParts, recipe_text, shell_word, site_text, template_text
from nsw.convert.script_options import KEEPS_OUTPUT, PRINTS_ONLY, read_directives, reads_reports, switches_recording
from nsw.convert.shell_reader import SUBMIT_FOLDER, Block, Piece, Text
from nsw.convert.shell_script import Statement, parse_script, shell_names
from nsw.errors import UsageError
from nsw.safe_files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.convert.script_options import Line

__all__ = ["Converted", "convert"]

_FILTERS: Final = frozenset({"tee", "grep", "head", "tail", "awk", "sed", "sort", "cat", "less"})
_MODULE_PRINTS: Final = frozenset({"list", "avail", "show", "spider", "help", "whatis"})
_COMPILERS: Final = re.compile(
    r"nvcc|gcc|g\+\+|cc|CC|c\+\+|ftn|gfortran|clang(\+\+)?|icc|icpc|icx|icpx|ifort|ifx|nvc|nvc\+\+|nvfortran|pgcc|pgc\+\+|pgfortran"
    r"|hipcc|mpicc|mpicxx|mpic\+\+|mpiCC|mpif90|mpifort|make|cmake|ninja"
)
_TESTS: Final = frozenset({"[", "[[", "test"})
_HIDDEN_PROFILER: Final = "nsw does not see what"
_FOLDER: Final = re.compile(r"PWD|\bpwd\b|SUBMIT_DIR|O_WORKDIR|SUBCWD|_CWD|BASH_SOURCE|\$\{?0")
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
        UsageError: The script cannot be taken apart, or starts no program.
        LimitError: That takes too much time or memory.
    """
    with limited_block(f"reading {script}"):
        parts = ScriptParts(parse_script(text, str(script)), script)
        _ScriptReader(parts).read()
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


def _runs_by_program(parts: ScriptParts) -> list[list[Run]]:
    """The runs of each recipe: one program, with and without a profiler."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in [run for run in parts.runs if run.parts.words is not None] or parts.runs:
        groups.setdefault((*run.key, run.is_outside), [])
    for run in parts.runs:
        key = (*run.key, run.is_outside)
        if key not in groups:  # the program alone, of one whose profiler starts the launcher
            key = (*run.key, True)
        number = run.statement.line
        if key in groups:
            groups[key].append(run)
        elif not any(line.first <= number <= line.last and not line.is_understood for line in parts.lines):
            parts.report(run.statement, "another program: nsw does not run it", understood=False)
    if not groups:
        hidden = [line for line in parts.lines if line.what.startswith(_HIDDEN_PROFILER)]
        reason = f": line {hidden[0].numbers}: {hidden[0].what}" if hidden else ""
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
        self._folder: Text | None = None
        self._left_folder: Text | None = None  # to which `cd -` goes
        self._in_condition = False
        writers = [statement for statement in parts.script.statements if statement.document]
        written = [(target.literal, s.document) for s in writers for sign, target in s.redirects if sign == ">"]
        self._written_files = {PurePosixPath(name or "").name: document for name, document in written}
        self._report_readers: set[int] = set()  # statements that print what a profiler has measured, in a container

    def read(self) -> None:
        """Fill the parts."""
        parts, statements = self._parts, self._script.statements
        runs = [self._parse_run(statement) for statement in statements]
        profiled = [number for number, run in enumerate(runs) if run is not None and run.parts.words is not None]
        started = [number for number, run in enumerate(runs) if run is not None]
        last = max(profiled or started, default=0)
        component = next((run.parts.component for run in runs if run is not None and run.parts.words), "")
        commands = "\n".join(statement.text for statement in statements)
        number = int(component) if component.isdecimal() else 0
        parts.directives = read_directives(self._script.comments, commands, number)
        parts.lines += parts.directives.became
        single_blocks = [statements[number].blocks[0] for number in profiled if len(statements[number].blocks) == 1]
        rank_blocks = {block.line for block in single_blocks if profiled_ranks(block)}
        unknown_blocks: dict[Block, bool] = {}  # whether there are runs in them
        for block in self._script.called:
            self._report(block, "its lines are taken where it is called")
        for number, (statement, run) in enumerate(zip(statements, runs, strict=True)):
            # but a loop over words that the runs in it take as a parameter
            unknown = next((b for b in statement.blocks if b.loop is None or b.loop[0] not in statement.loops), None)
            if run is not None:
                run.folder = self._folder
            if unknown is not None and unknown.line in rank_blocks:
                self._take_rank_statement(unknown, statement, run)
                continue
            if run is not None:
                parts.runs.append(run)
            if unknown is not None:
                unknown_blocks[unknown] = unknown_blocks.get(unknown, False) or run is not None
            elif run is None:
                self._take_plain_statement(statement, is_late=number > last)
        self._add_job_variables()
        for block, has_runs in unknown_blocks.items():
            reason = "nsw counts each run in it once" if has_runs else "not carried over"
            self._report(block, reason, understood=False)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _take_rank_statement(self, block: Block, statement: Statement, run: Run | None) -> None:
        """Take a statement on some ranks: the profiled run is a pass with `ranks`, the others run the program alone."""
        if run is not None and run.parts.words is not None and block.branch == 0:
            run.parts.ranks = profiled_ranks(block)
            self._parts.runs.append(run)
            self._report(block, f"ranks: {run.parts.ranks}")
            if run.parts.start is None:
                reason = "its caller starts it on each rank: write app.launcher"
                self._report(statement, reason, understood=False, text=self._parts.path.name)
        elif run is not None and run.parts.words is None and block.branch:
            self._report(statement, "the ranks that are not profiled")
        elif statement.program in PRINTING and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif not statement.is_condition:
            self._report(statement, "a condition: not carried over", understood=False)

    def _take_plain_statement(self, statement: Statement, *, is_late: bool) -> None:
        """Convert a statement that is no run and in no block."""
        program = statement.program
        functions = {block.head.removeprefix("function ") for block in self._script.called}
        if statement.before not in {"&&", "||"}:
            self._in_condition = program in _TESTS
        if self._in_condition or statement.before == "||":
            self._report(statement, "a condition: not carried over", understood=False)
        elif not statement.words:
            self._take_assignments(statement)
        elif statement.before in {"|", "|&"} and program in _FILTERS:
            self._report(statement, KEEPS_OUTPUT)
        elif program == "shift" or program in functions:
            self._report(statement, "the function's lines")
        elif switches_recording(statement.words):
            self._report(statement, "nsw records the whole run", understood=False)
        elif reads_reports(statement.words) or id(statement) in self._report_readers:
            self._report(statement, "nsw reads the reports itself: `nsw summarize`")
        elif program in PRINTING and not _writes_file(statement):
            self._report(statement, PRINTS_ONLY)
        elif program in {"let", "read"}:
            self._report(statement, "the shell computes it", understood=False)
            self._assigned |= {name: statement for name, _ in statement.assigns}
        elif is_late and program in SETTING:
            self._report(statement, "left out: it comes after the last run")
        elif program == "cd":
            self._take_cd(statement)
        elif program in SETTING or _makes_folder(statement):
            self._take_setting(statement)
        elif _COMPILERS.fullmatch(PurePosixPath(program).name):
            self._parts.build.append((self._folder, statement))
            self._report(statement, "app.build")
        else:
            self._report(statement, "nsw does not run it", understood=False)

    def _take_assignments(self, statement: Statement) -> None:
        self._assigned |= {name: statement for name, _ in statement.assigns}
        if statement.is_known or statement.is_of_job:
            self._report(statement, "its value is in what uses it")
        else:
            self._report(statement, "the shell computes it", understood=False, text=statement.without_values)

    def _take_cd(self, statement: Statement) -> None:
        target = statement.words[1] if len(statement.words) > 1 else Text((Piece("variable", "$HOME", "HOME"),))
        folder = self._folder
        if target.literal == "-":
            self._folder, self._left_folder = self._left_folder, folder
            self._report(statement, "the folder of before")
            return
        self._left_folder = folder
        if SUBMIT_FOLDER.fullmatch(target.source_text) or not target.source_text:
            self._folder = None
            self._report(statement, "nsw runs the program in a folder with app.files in it")
        elif not target.is_known:
            self._report(statement, "the shell computes the folder", understood=False)
        else:
            target = self._parts.replace_submit_folder(statement, target)
            if not target.source_text.startswith(("/", "$", "~")):
                outer = folder.pieces if folder is not None else (Piece("text", self._parts.folder),)
                target = Text((*outer, Piece("text", "/"), *target.pieces))
            self._folder = target
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
        elif program == "export" and self._add_to_env(statement):
            self._report(statement, "app.env", text=statement.without_values)
        elif file is None or file.startswith(("/", "~")):
            self._add_to_setup(statement)
            self._report(statement, "app.setup", text=statement.without_values if statement.assigns else None)
        elif self._folder is not None or (parts.path.parent / file).is_file():
            folder = self._folder.pieces if self._folder is not None else (Piece("text", parts.folder),)
            path = shell_word(Text((*folder, Piece("text", f"/{file}"))), "")
            words_behind = [shell_word(word, f"line {statement.line}") for word in statement.words[2:]]
            parts.setup.append((statement, " ".join([program, path, *words_behind])))
            self._report(statement, "app.setup, by its whole path")
        else:
            reason = "the file is not beside the script: name it by its whole path"
            self._report(statement, reason, understood=False)

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
        for name, statement in reversed(self._assigned.items()):
            if statement.is_of_job and any(name in shell_names(text) for text in texts):
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
        is_known = all(word.computed is None for _, word in words) and "+=" not in statement.text
        if not is_known or (values and len(values) != count):
            return None
        return [(name, self._parts.replace_submit_folder(statement, word)) for name, word in words]

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _parse_run(self, statement: Statement) -> Run | None:
        """A command that is profiled, that a launcher starts, or that is a program by its path; None for others."""
        if not statement.words or statement.program in _TESTS or reads_reports(statement.words):
            return None
        replace_folder = self._parts.replace_submit_folder
        parts = command_parts([replace_folder(statement, word) for word in statement.words], self._read_script)
        is_started = parts.start is not None or parts.container is not None or bool(parts.prefix)
        if parts.words is None and reads_reports(parts.program):
            self._report_readers.add(id(statement))
            return None
        is_program = not statement.is_condition and _is_program(parts.program, is_launched=is_started)
        if not parts.program or not (parts.words or is_program):
            return None
        parts.program = [replace_folder(statement, word) for word in parts.program]
        for text, reason in parts.notes:
            self._report(statement, reason, understood=False, text=text)
        path, is_inside = parts.words.path if parts.words else "", parts.is_inside_container
        if parts.words and "/" in path and (is_inside or not parts.words.is_path_known):
            reason = "nsw starts the image's own" if is_inside else "nsw starts the site's: name its path there"
            self._report(statement, reason, understood=is_inside, text=path)
        if parts.words is None and (left := profilers_in(parts.program)):
            self._report(statement, f"{_HIDDEN_PROFILER} {left[0]} starts", understood=False)
            return None
        return Run(statement, None, parts)

    def _read_script(self, name: str) -> str | None:
        """The text of a script that the job starts: written by it, or beside it."""
        if (text := self._written_files.get(PurePosixPath(name).name)) is not None:
            return text
        try:
            return read_bytes(self._parts.path.parent.absolute() / name, 1 << 20).decode()
        except (OSError, ValueError):
            return None


def _is_program(words: Sequence[Text], *, is_launched: bool) -> bool:
    first = words[0].pieces[0] if words and words[0].pieces else None
    if first is None:
        return False
    name = PurePosixPath(words[0].literal or "").name
    interpreter = re.fullmatch(r"python[\d.]*|julia|Rscript|perl|bash|sh", name)
    return is_launched or first.kind == "list" or first.text.startswith(("./", "/")) or interpreter is not None


def _writes_file(statement: Statement) -> bool:
    """Whether a statement writes a file, which the program may read."""
    outputs = [target.source_text for sign, target in statement.redirects if ">" in sign]
    return not {"/dev/null", "1", "2"}.issuperset(outputs)


def _makes_folder(statement: Statement) -> bool:
    """Whether it makes folders whose places do not depend on where it runs."""
    words = [word for word in statement.words[1:] if not word.source_text.startswith("-")]
    fixed = [word for word in words if word.pieces and word.computed is None]
    rooted = [word for word in fixed if word.source_text.startswith("/") or word.pieces[0].kind == "variable"]
    return statement.program == "mkdir" and bool(words) and len(rooted) == len(words)
