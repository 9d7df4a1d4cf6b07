"""A job script taken apart without being run: its statements, with the values that its variables have there.

Words are split and expanded as bash does where that needs no execution. What a command prints and variables that were
set in a loop or a conditional are not known, nor is arithmetic with them: such a piece of a word is `computed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Final
from zlib import crc32

from nsw.convert import shell_reader, shell_values
from nsw.convert.script_options import reads_reports
from nsw.convert.shell_reader import DECLARING, SETTING, Block, Piece, RawStatement, Reader, Text, source_text
from nsw.convert.shell_values import ShellState, pattern_of, shell_names, starts_profiler, test_result, unsplit_text
from nsw.errors import UsageError

_SHELLS: Final = re.compile(r"(ba|da|z|k)?sh\d*|")
_PROFILER_PATH: Final = re.compile(r"(?<!\S)\S*/(?=(?:nsys|ncu|nvprof|vtune)\s)")
_ARRAY: Final = re.compile(rf"(?:(?:{'|'.join(DECLARING)})\s+(?:-\w+\s+)*)?\w+\+?=\(")
TESTS: Final = frozenset({"[", "[[", "test"})
_LOOKING_UP: Final = frozenset({"command", "which", "type", "hash"})
_DEEPEST_CALL: Final = 8
_MOST_STATEMENTS: Final = 20_000
_MOST_CHOICES: Final = 16
_MOST_RUNS: Final = 16  # values of a loop that are taken one by one
_MOST_ROUNDS: Final = 200
_MOST_LOOPED: Final = 2_000  # statements of a loop
_JUMPS: Final = frozenset({"exit", "exec", "return", "break", "continue"})


@dataclass(slots=True)
class Statement:
    """A simple command.

    Attributes:
        line: Its first line; `last` its last one.
        text: As it is written.
        before: The operator before it: "", && or ||, |.
        words: Its words, with values where known.
        assigns: Variables that it sets, with the words of the value; None: not known.
        redirects: Operator and target.
        blocks: What it is in, the outermost first.
        loops: Of the loops over words that are known: the variable, and the words; so the arguments of the script.
        is_condition: Whether it decides of an `if` or `while`.
        is_of_job: Whether it sets variables that the job's shell computes from what each job has.
        is_decided: Whether it is a test whose result the values of the script give.
        folder: Where it is run, or where it goes to; None: where the script is started.
        document: The text of its here-document, or what it prints into a file; `document_line`: where that begins.
        job_values: Of a profiled command: what the job's shell computes in its words, and the variables that hold it.
    """

    line: int
    last: int
    text: str
    before: str = ""
    words: list[Text] = field(default_factory=list)
    assigns: list[tuple[str, list[Text] | None]] = field(default_factory=list)
    redirects: list[tuple[str, Text]] = field(default_factory=list)
    blocks: tuple[Block, ...] = ()
    loops: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_condition: bool = False
    is_of_job: bool = False
    is_decided: bool = False
    folder: Text | None = None
    document: str = ""
    document_line: int = 0
    job_values: dict[str, str] = field(default_factory=dict)

    @property
    def without_values(self) -> str:
        """The assignments as `export NAME=...`: values may be secrets."""
        return f"{self.program} {' '.join(f'{name}=...' for name, _ in self.assigns)}".strip()

    @property
    def is_known(self) -> bool:
        """Whether the values that it sets are known before the job runs."""
        return all(value is not None and not any(word.computed for word in value) for _, value in self.assigns)

    @property
    def target(self) -> Text:
        """Where `cd` or `pushd` goes to."""
        words = [word for word in self.words[1:] if not re.match("-[-A-Z]", word.source_text)]
        return words[0] if words else Text((Piece("variable", "$HOME", "HOME"),))

    @property
    def program(self) -> str:
        """Its first word; empty where that is not known."""
        return (self.words[0].literal or "") if self.words else ""


@dataclass(frozen=True, slots=True)
class Script:
    """A job script.

    Attributes:
        shebang: Its first line, if it names an interpreter.
        comments: Lines that begin with # and stand before the first command, with their numbers.
        late_comments: Those behind it, which no batch system needs to read.
        statements: Its commands in order.
        block_ends: The last line of each block, by the first.
        passed: Blocks whose statements are as if they were in none, with the reason.
        skipped: Commands that are never run: the script's own values decide so.
    """

    shebang: str
    comments: list[tuple[int, str]]
    statements: list[Statement]
    block_ends: Mapping[int, int]
    passed: Mapping[Block, str] = field(default_factory=dict)
    skipped: Sequence[Statement] = ()
    late_comments: Sequence[tuple[int, str]] = ()


def parse_script(text: str, name: str = "script", arguments: Sequence[Text] | None = None) -> Script:
    """Take a script apart.

    Args:
        text: The script.
        name: Its name, for messages.
        arguments: What it is started with; None: only its caller knows.

    Raises:
        UsageError: It is no shell script, or a quote or a parenthesis of it has no end.
    """
    text = text.replace("\r\n", "\n")
    if not _SHELLS.fullmatch(interpreter := _shebang_program(text)):
        raise UsageError(f"{name}:1: this is a script for {interpreter}", hint="nsw reads scripts for sh, bash and ksh")
    reader = Reader(text, name)
    raw = list(reader.statements())
    first = min((statement.line for statement in raw), default=text.count("\n") + 2)
    lines = text.split("\n")
    written = {r.document_line + n for r in raw if r.document for n in range(r.document.count("\n") + 1)}
    comments = [(at, line) for at, line in enumerate(lines, 1) if line.startswith("#") and at not in written]
    shebang = lines[0] if lines[0].startswith("#!") else ""
    evaluation = _Evaluation(raw, name, arguments)
    statements = list(evaluation.statements())
    if not any(map(_measures, statements)):  # a person who wants a profile chooses it
        undecided = _Evaluation(raw, name, arguments, decides=False)
        undecided_statements = list(undecided.statements())
        if any(map(_measures, undecided_statements)):
            evaluation, statements = undecided, undecided_statements
    known = {_profiled_words(statement) for statement in statements}
    for choices in evaluation.alternatives[:_MOST_CHOICES]:
        for statement in _Evaluation(raw, name, arguments, choices=choices, decides=evaluation.decides).statements():
            if _measures(statement) and _profiled_words(statement) not in known:
                known.add(_profiled_words(statement))
                at = max((n for n, before in enumerate(statements) if before.line <= statement.line), default=-1)
                statements.insert(at + 1, statement)
    left = [statement for statement in raw if id(statement) not in evaluation.seen and not statement.is_empty]
    skipped = [Statement(r.line, r.last, r.text, assigns=[(name, None) for name, *_ in r.assigns]) for r in left]
    early, late = ([line for line in comments if (line[0] < first) is is_early] for is_early in (True, False))
    return Script(shebang, early, statements, reader.block_ends, evaluation.passed, skipped, late)


def _measures(statement: Statement) -> bool:
    return starts_profiler(statement.words) and not reads_reports(statement.words)


def _profiled_words(statement: Statement) -> tuple[int, str]:
    """What two profiled commands have alike: the profiler's path does not count."""
    return statement.line, _PROFILER_PATH.sub("", " ".join(word.source_text for word in statement.words))


def _shebang_program(text: str) -> str:
    """The name of the program that the first line names; empty where it names none."""
    words = text.partition("\n")[0].removeprefix("#!").split() if text.startswith("#!") else []
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0].rpartition("/")[2] if words else ""


# --- the commands in the order in which they are run -----------------------------------------------------------------


class _Jump(Exception):  # noqa: N818 - no error: it leaves a function, a loop or the script
    pass


class _Evaluation:
    """The statements of a script with their values, in the order in which they are run.

    What the values of the script decide is followed: branches, functions, loops. Else all branches are read, each with
    the values of before; behind them the values of before hold, or those of one branch that chooses a profiler: then
    `alternatives` has the other branches that choose one.
    """

    def __init__(
        self, raw: Sequence[RawStatement], script: str, arguments: Sequence[Text] | None, *,
        choices: Mapping[int, int] | None = None, decides: bool = True,
    ) -> None:  # fmt: skip
        self._raw = raw
        self._values = shell_values.ShellValues(script, arguments)
        self._choices = choices  # by the beginning of a block: the branch whose values hold behind it
        self.decides = decides  # whether the script's own values decide of conditions
        self._count = 0
        self._depth = 0
        self._unknown = 0  # how many blocks are open of which is not known whether they are run
        self._truth: bool | None = None  # of the commands before `&&`
        self._is_tested = False  # whether one of them is a test
        self._first: RawStatement | None = None  # of a block, whose `&&` is the block's
        self._functions: dict[str, tuple[Sequence[RawStatement], int, tuple[Block, ...]]] = {}
        self.alternatives: list[Mapping[int, int]] = []
        self.passed: dict[Block, str] = {}
        self.seen: set[int] = set()

    def statements(self) -> Iterator[Statement]:
        """The statements; those of functions that are not called come last."""
        with suppress(_Jump):
            yield from self._walk(self._raw, 0, ())
        for members, depth, blocks in list(self._functions.values()):
            block = members[0].blocks[depth]
            if block not in self.passed:
                yield from self._walk_unknown(members, depth + 1, (*blocks, block))

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _walk(self, raws: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]) -> Iterator[Statement]:
        """The statements of a block: `depth` blocks of each are around it."""
        for begin, group in groupby(raws, lambda raw: raw.blocks[depth].begin if len(raw.blocks) > depth else -1):
            members = list(group)
            if begin >= 0:
                yield from self._walk_block(members, depth, blocks)
                continue
            for raw in members:
                yield from self._run(raw, blocks)

    def _walk_block(
        self, members: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]
    ) -> Iterator[Statement]:
        block = members[0].blocks[depth]
        kind = block.head.partition(" ")[0]
        if kind == "function":
            self._functions[block.head.removeprefix("function ")] = members, depth, blocks
            self.seen |= set(map(id, members))
            return
        if members[0] is not self._first:
            if self._is_passed_over(members[0].before):
                return
            self._first = members[0]
        if self._is_conditional(members[0].before):
            yield from self._walk_unknown(members, depth + 1, (*blocks, block))
        elif kind == "{":
            self.passed[block] = "its lines are taken"
            yield from self._walk(members, depth + 1, blocks)
        elif kind.startswith("("):
            self.passed[block], base = "its lines are taken", self._values.state.copied()
            with suppress(_Jump):  # what ends it ends a shell of its own
                yield from self._walk(members, depth + 1, blocks)
            self._values.state = base
        elif kind in {"if", "case"}:
            yield from self._walk_branches(members, depth, blocks)
        else:
            yield from self._walk_loop(members, depth, blocks)

    def _walk_unknown(self, raws: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]) -> Iterator[Statement]:
        """The statements of a block that may be run, or several times, or in a shell of its own."""
        base = self._values.state.copied()
        yield from self._walk_branch(raws, depth, blocks)
        self._merge(base, [(0, None, self._values.state)], raws[0].begin)

    def _walk_branch(self, raws: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]) -> Iterator[Statement]:
        self._unknown += 1
        yield from self._walk(raws, depth, blocks)
        self._unknown -= 1

    def _walk_branches(
        self, members: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]
    ) -> Iterator[Statement]:
        """The branches of an `if` or a `case` that are run, or that may be."""
        values, ends = self._values, list[tuple[int, Block | None, ShellState]]()
        base, subject = values.state.copied(), members[0].blocks[depth].subject
        is_open = True
        for branch, group in groupby(members, lambda raw: raw.blocks[depth].branch):
            raws = list(group)
            tests = [raw for raw in raws if raw.blocks[depth].is_condition]
            body = raws[len(tests) :]
            truth: bool | None = True
            test = unsplit_text(values, subject).source_text
            values.state = base.copied() if ends else values.state
            if tests:
                decided = list(self._walk(tests, depth + 1, (*blocks, tests[0].blocks[depth])))
                truth = self._truth
                test = " ".join(word.source_text for statement in decided for word in statement.words)
                for statement in decided if truth is not None and not ends else ():
                    statement.blocks = statement.blocks[: len(blocks)]
                yield from decided
            elif subject:
                truth = self._is_chosen(subject, raws[0].blocks[depth].patterns)
            if truth is False or not body:
                continue
            part = replace(body[0].blocks[depth], test=test)
            if truth and not ends:
                self.passed[part] = "the script's own values choose it"
                yield from self._walk(body, depth + 1, blocks)
                return
            yield from self._walk_branch(body, depth + 1, (*blocks, part))
            ends.append((branch, part, values.state))
            if truth:
                is_open = False
                break
        if ends:
            self._merge(base, ends, members[0].blocks[depth].begin, is_open=is_open)

    def _is_chosen(self, subject: Sequence[Piece], patterns: Sequence[Sequence[Piece]]) -> bool | None:
        """Whether the word of a `case` matches a pattern; None: not known."""
        if [source_text(pattern) for pattern in patterns] == ["*"]:
            return True
        text = unsplit_text(self._values, subject).literal
        is_known = all(piece.kind in {"text", "shell"} for pattern in patterns for piece in pattern)
        if text is None or not is_known or not self.decides or self._values.is_unsure(source_text(subject)):
            return None
        return any(fnmatchcase(text, pattern_of(pattern)) for pattern in patterns)

    def _walk_loop(self, members: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]) -> Iterator[Statement]:
        """The body of a loop: as often as the script's own values say; once, with a parameter, where they do not."""
        values, block = self._values, members[0].blocks[depth]
        base, name, words = values.state.copied(), _loop_variable(block), values.loop_words(block)
        tests = [raw for raw in members if raw.blocks[depth].is_condition]
        decides = tests or _decides(members, depth, name, words, base.variables)
        rounds = [""] * _MOST_ROUNDS if tests else words if decides else []
        statements, counted = list[Statement](), list[str | None]()
        is_known, runs = False, 0
        counters = shell_names(" ".join(source_text(word) for raw in tests for word in raw.words))
        for word in rounds:
            before, done = values.state.copied(), len(statements)
            if tests:
                statements += self._walk(tests, depth + 1, blocks)
                is_known = self._truth is block.head.startswith("until ")
                if is_known or self._truth is None:
                    break
                value = before.variables.get(next(iter(counters), ""))
                counted.append(value[0].literal if value else None)
            else:
                values.set(name, [Text((Piece("text", word),))])
            try:
                statements += self._walk(members[len(tests) :], depth + 1, blocks)
            except _Jump as jump:
                if jump.args[0] not in {"break", "continue"}:
                    raise
                is_known = jump.args[0] == "break"
            runs += sum(map(_measures, statements[done:]))
            changes = before.variables != values.state.variables or before.arguments != values.state.arguments
            is_long = (runs > _MOST_RUNS and len(counters) != 1) or len(statements) > _MOST_LOOPED
            if is_known or not changes or is_long:
                break
        else:
            is_known = bool(rounds) and not tests
        if is_known and runs > 1 and tests and None not in counted and _counts_last(members, counters):
            name, words = next(iter(counters)), [text for text in counted if text]
            members = members[len(tests) :]
        elif is_known:
            self.passed[block] = "its lines are taken for each round"
            yield from statements
            return
        values.state, outer = base, values.loops
        if words:
            block = block if block.loop else replace(block, loop=(name, ()))
            values.loops = {**outer, name: words}
        elif name:
            values.set(name, None)
        yield from self._walk_unknown(members, depth + 1, (*blocks, block))
        values.loops = outer

    def _merge(
        self,
        base: ShellState,
        ends: Sequence[tuple[int, Block | None, ShellState]],
        begin: int,
        *,
        is_open: bool = True,
    ) -> None:
        """Go on behind branches of which one may be run.

        Args:
            base: The values before them.
            ends: The values at the end of each, with its number.
            begin: Where the conditional begins.
            is_open: Whether it may be that none is run.
        """
        before = base.variables
        changed = [{name for name, v in end.variables.items() if v is not before.get(name)} for _, _, end in ends]
        names = set[str]().union(*changed)
        options = [
            (branch, part, end, own) for (branch, part, end), own in zip(ends, changed, strict=True)
            if any(starts_profiler(end.variables[name] or ()) for name in own)
        ]  # fmt: skip
        if is_open and options and any(starts_profiler(before.get(name) or ()) for name in names):
            options.insert(0, (-1, None, base, set()))
        default = next((option for option in options if self._is_looked_up(option[2], names)), (*options, None)[0])
        if self._choices is None:
            self.alternatives += [{begin: option[0]} for option in options if option is not default]
        if default is not None:
            choice = (self._choices or {}).get(begin)
            _, part, end, own = next((option for option in options if option[0] == choice), default)
            chosen = dict.fromkeys(own, part) if part is not None else {}
            self._values.state = replace(end.copied(), chosen={**end.chosen, **chosen})
            return
        self._values.state = base
        for name in names:
            before.setdefault(name, None)
        base.unsure |= names
        if any(end.shifted != base.shifted or end.arguments is not base.arguments for _, _, end in ends):
            base.arguments = base.shifted = None

    @staticmethod
    def _is_looked_up(state: ShellState, names: set[str]) -> bool:
        """Whether a variable is a profiler's bare name, which each site finds; of paths it may have none."""
        values = [value for name in names if (value := state.variables.get(name)) and starts_profiler(value)]
        return any("/" not in value[0].source_text for value in values)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _is_passed_over(self, before: str) -> bool:
        if before not in {"&&", "||"}:
            self._truth, self._is_tested = None, False
        return self._truth is (before == "||") and before in {"&&", "||"}

    def _is_conditional(self, before: str) -> bool:
        """Whether a command may be run: that the one before failed, or the result of a test, is not known."""
        return self._truth is None and (before == "||" or (before == "&&" and self._is_tested))

    def _run(self, raw: RawStatement, blocks: tuple[Block, ...]) -> Iterator[Statement]:
        values, before = self._values, raw.before
        if raw.is_empty or (raw is not self._first and self._is_passed_over(before)):
            return
        if raw is self._first:
            self._first, before = None, ""
        self._count += 1
        self.seen.add(id(raw))
        base = values.state.copied() if (is_conditional := self._is_conditional(before)) else values.state
        values.blocks = blocks
        statement = self._evaluate_command(raw, blocks)
        if before in {"&&", "||"} and self._truth is not None:
            statement.before = ""
        self._follow(raw, statement, before)
        called, is_exec = self._functions.get(statement.program), statement.program == "exec"
        if called is not None and self._depth <= _DEEPEST_CALL and self._count <= _MOST_STATEMENTS:
            yield from self._call(raw, statement, called)
        else:
            yield from self._job_values(statement) if statement.program not in SETTING | shell_reader.PRINTING else ()
            yield statement
        if is_conditional:
            self._merge(base, [(0, None, values.state)], raw.begin)
        elif not self._unknown and self.decides and statement.program in _JUMPS and len(statement.words) > is_exec:
            raise _Jump("exit" if is_exec else statement.program)

    def _job_values(self, statement: Statement) -> Iterator[Statement]:
        """Assignments of what the job's shell computes in the words of a command: a process would get another value."""
        own_names = self._values.state.variables.keys() if self._unknown else frozenset[str]()  # a loop may change them
        for piece in {p.text: p for word in statement.words for p in word.pieces if p.kind == "computed"}.values():
            if self._values.is_piece_of_job(piece) and not shell_names(piece.text) & own_names:
                words = "_".join(re.findall(r"\w+", piece.text))[:20]
                name = f"job_{words}_{crc32(piece.text.encode()) & 0xFFFF:x}"
                statement.job_values[piece.text] = name
                value: list[tuple[str, list[Text] | None]] = [(name, [Text((piece,))])]
                yield Statement(statement.line, statement.last, f"{name}={piece.text}", assigns=value, is_of_job=True)

    def _call(
        self, raw: RawStatement, statement: Statement, called: tuple[Sequence[RawStatement], int, tuple[Block, ...]]
    ) -> Iterator[Statement]:
        members, depth, _ = called
        self.passed[members[0].blocks[depth]] = "its lines are taken where it is called"
        state = self._values.state
        outer = state.arguments, state.shifted, "@" in state.unsure
        if self._values.is_unsure(raw.text):
            state.unsure |= {"@"}
        state.arguments = statement.words[1:]
        self._depth += 1
        try:
            yield from self._walk(members, depth + 1, statement.blocks)
        except _Jump as jump:
            if jump.args[0] != "return":
                raise
        finally:
            self._depth -= 1
            state = self._values.state
            state.arguments, state.shifted, is_unsure = outer
            state.unsure = state.unsure | {"@"} if is_unsure else state.unsure - {"@"}
        self._truth = None

    def _follow(self, raw: RawStatement, statement: Statement, before: str) -> None:
        truth = self._truth_of(raw, statement)
        statement.is_decided = truth is not None
        truth = truth is False if raw.is_negated and truth is not None else truth
        if before not in {"&&", "||"}:
            self._truth, self._is_tested = truth, statement.program in TESTS
        elif self._truth is not None or truth is (before == "||"):
            self._truth = truth

    def _truth_of(self, raw: RawStatement, statement: Statement) -> bool | None:
        if not self.decides or self._values.is_unsure(raw.text) or statement.program in self._functions:
            return None
        if statement.program in {"true", ":", "false"}:
            return statement.program != "false"
        first = raw.words[0][0] if raw.words and raw.words[0] else None
        if first is not None and first.text.startswith("((") and len(raw.words) == 1:
            number = statement.words[0].literal
            return bool(int(number)) if number and number.isdecimal() else None
        # of `if command -v nsys`: nsw says itself where it is not; what is done where it is absent is to be named
        if statement.program in _LOOKING_UP and raw.is_condition and not raw.is_negated:
            return starts_profiler(statement.words[-1:]) or None
        if statement.program not in TESTS:
            return None
        words = [word.as_pattern for word in statement.words[1:]]
        words = words[:-1] if statement.program != "test" else words
        known = [word for word in words if word is not None]
        return test_result(known) if len(known) == len(words) else None

    def _evaluate_command(self, raw: RawStatement, blocks: tuple[Block, ...]) -> Statement:
        values, state = self._values, self._values.state
        statement = Statement(raw.line, raw.last, raw.text, raw.before, blocks=blocks)
        statement.words = [word for pieces in raw.words for word in values.words(pieces)]
        statement.redirects = [(sign, unsplit_text(values, target)) for sign, target in raw.redirects]
        statement.is_condition, statement.document_line = raw.is_condition, raw.document_line or raw.line
        statement.document = raw.document if raw.has_plain_document else values.in_document(raw.document)
        if statement.program in {"echo", "printf"} and len(statement.words) > 1:
            statement.document = " ".join(word.source_text for word in statement.words[1:])
        names = shell_names(raw.text)
        branches = {state.chosen[name]: None for name in sorted(names & state.chosen.keys())}
        if branches and _measures(statement):
            statement.blocks = (*blocks, *(block for block in branches if block not in blocks))
        is_export = bool(raw.words) and source_text(raw.words[0]) == "export"
        is_alone = (
            bool(raw.assigns and raw.words) and statement.program not in DECLARING
        )  # it is set for that command alone
        for name, append, assigned in _assignments(raw):
            texts = (text for pieces in assigned or () for text in self._assigned_texts(raw, pieces))
            value = None if assigned is None else list(texts)
            if append:
                value = values.appended(name, value, is_array=f"{name}+=(" in raw.text)
            statement.assigns.append((name, value))
            if is_alone:
                continue
            is_of_job = not raw.words and not self._unknown and values.is_of_job(value)
            statement.is_of_job = statement.is_of_job or is_of_job
            values.set(name, value, exported=is_export or is_of_job, unsure=values.is_unsure(raw.text))
            if branches:
                state.chosen = {**state.chosen, name: next(iter(branches))}
        if statement.program in {"cd", "pushd", "popd"}:
            self._change_folder(statement)
        if statement.program == "shift":
            count = statement.words[1].literal if len(statement.words) > 1 else "1"
            shifted = int(count) if count and count.isdecimal() else 1
            if state.arguments is not None:
                state.arguments = state.arguments[shifted:]
            else:
                state.shifted = None if blocks or state.shifted is None else state.shifted + shifted
        elif statement.program == "set" and [word.literal for word in statement.words[1:2]] == ["--"]:
            are_known = all(word.literal is not None for word in statement.words)
            state.arguments, state.shifted = statement.words[2:] if are_known else None, None
        statement.folder = state.folder
        statement.loops = values.loops | values.used_arguments
        return statement

    def _change_folder(self, statement: Statement) -> None:
        state, program = self._values.state, statement.program
        target = statement.target
        before, stack = state.variables["PWD"], state.variables.get("DIRSTACK") or []
        value: list[Text] | None = None
        if program == "popd" or target.literal == "-":
            value = stack[-1:] if program == "popd" else state.variables.get("OLDPWD")
            stack = stack[:-1] if program == "popd" else stack
        elif target.computed is None and (path := self._values.whole_path(target)) is not None:
            value = [path]
            stack = [*stack, *(before or ())] if program == "pushd" else stack
        state.variables |= {"PWD": value or None, "OLDPWD": before, "DIRSTACK": stack}
        state.folder = value[0] if value else state.folder

    def _assigned_texts(self, raw: RawStatement, pieces: Sequence[Piece]) -> list[Text]:
        """A value, which is not split at blanks; an array's element may be several words."""
        is_list = any(piece.kind == "list" for piece in pieces) and _ARRAY.match(raw.text) is not None
        return self._values.words(pieces) if is_list else [unsplit_text(self._values, pieces)]


def _loop_variable(block: Block) -> str:
    counted = re.match(r"for\s*\(\(\s*(\w+)", block.head)
    return block.loop[0] if block.loop else counted[1] if counted else ""


def _counts_last(members: Sequence[RawStatement], counters: set[str]) -> bool:
    """Whether a loop's counter is only changed behind the commands that use it."""
    changes = [n for n, raw in enumerate(members) if counters & {name for name, *_ in _assignments(raw)}]
    return bool(changes) and not any(counters & shell_names(raw.text) for raw in members[changes[0] + 1 :])


def _decides(
    members: Sequence[RawStatement], depth: int, name: str, words: Sequence[str], variables: Mapping[str, object]
) -> bool:
    """Whether the words of a loop decide what its commands do: of conditions, of a list, or they are profilers."""
    deciding = [r for r in members if r.words and source_text(r.words[0]).startswith(("[", "test", "(("))]
    texts = [source_text(word) for raw in deciding for word in raw.words]
    texts += [source_text(inner.subject) for raw in members for inner in raw.blocks[depth + 1 :]]
    is_list = any(append for raw in members for _, append, _ in _assignments(raw))
    indices = [match for raw in members for match in _INDEX.finditer(raw.text)]
    texts += [match[2] for match in indices if variables.get(match[1])]
    return is_list or name in shell_names(" ".join(texts)) or any(map(shell_values.STARTS_PROFILER.search, words))


_INDEX: Final = re.compile(r"\$\{(\w+)\[([^]]*)\]\}")  # an array's element


def _assignments(raw: RawStatement) -> list[tuple[str, bool, list[tuple[Piece, ...]] | None]]:
    """What a command assigns, also by `export`, `let` and `read`."""
    first = source_text(raw.words[0]) if raw.words else ""
    if first in DECLARING:
        assignments: list[tuple[str, bool, list[tuple[Piece, ...]] | None]] = []
        for word in raw.words[1:]:
            match = (
                shell_reader.ASSIGNMENT.match(word[0].text)
                if word and word[0].kind == "text" and not word[0].quoted
                else None
            )
            if match and word[-1].name != "an array":
                rest = (word[0]._replace(text=word[0].text[match.end() :]), *word[1:])
                if rest[0].text.startswith("~"):
                    rest = (Piece("shell", "~"), rest[0]._replace(text=rest[0].text[1:]), *word[1:])
                value = tuple(piece for piece in rest if piece.text or piece.quoted)
                assignments.append((match[1], bool(match[2]), [value]))
        return [*assignments, *raw.assigns]
    if first == "let" or first.startswith("(("):
        texts = [first[2:-2]] if first != "let" else [source_text(word) for word in raw.words[1:]]
        return [sum_ for text in texts for sum_ in _arithmetic_assignments(text)]
    if first == ":":  # `: ${NAME:=value}`
        return [
            (match[1], False, [(Piece("variable", f"${{{match[1]}{match[2]}-{match[3]}}}", match[1], quoted=True),)])
            for pieces in raw.words[1:] for piece in pieces
            if (match := re.fullmatch(r"\$\{(\w+)(:?)=(.*)\}", piece.text, re.DOTALL))
        ]  # fmt: skip
    if first == "read":
        names = [re.match(r"[A-Za-z_]\w*", source_text(word)) for word in raw.words[1:]]
        return [(name[0], False, None) for name in names if name]
    return raw.assigns


_ARITHMETIC: Final = re.compile(r"\s*(\w+)\s*(?:([-+*/%]?)=(?!=)(.*)|(\+\+|--))\s*|\s*(\+\+|--)\s*(\w+)\s*")


def _arithmetic_assignments(text: str) -> Iterator[tuple[str, bool, list[tuple[Piece, ...]] | None]]:
    """What `N = N * 2`, `N += 1`, `N++` assign."""
    if match := _ARITHMETIC.fullmatch(text):
        name, sign, value, behind, ahead, last = match.groups()
        name, sign, value = name or last, sign or (behind or ahead or "")[:1], value or "1"
        yield name, False, [(Piece("computed", f"$(({f'{name} {sign} ' if sign else ''}({value})))", "arithmetic"),)]
