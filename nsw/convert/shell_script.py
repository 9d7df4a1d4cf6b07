"""A job script taken apart without being run: its statements, with the values that its variables have there.

Words are split and expanded as bash does where that needs no execution. What a command prints and variables that were
set in a loop or a conditional are not known, nor is arithmetic with them: such a piece of a word is `computed`.
"""

from __future__ import annotations

import ast
import operator
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from nsw.convert.script_options import reads_reports
from nsw.convert.shell_reader import (
    ASSIGNMENT,
    DECLARING,
    Block,
    Piece,
    RawStatement,
    Reader,
    Text,
    drop_quoting,
    merge_pieces,
    source_text,
    word_pieces,
)
from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_SHELLS: Final = re.compile(r"(ba|da|z|k)?sh\d*|")
STARTS_PROFILER: Final = re.compile(
    r"(?:^|[\s/])(?:nsys|ncu|nv-nsight-cu-cli|nvprof|vtune|amplxe-cl|rocprof(?:v[23]|-compute)?)(?:[\s)`]|$)"
)
_PROFILER_PATH: Final = re.compile(r"(?<!\S)\S*/(?=(?:nsys|ncu|nvprof|vtune)\s)")
_ARRAY_INDICES: Final = ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID")
_COMPUTED: Final = "a variable that the script computes"
_ARRAY: Final = re.compile(r"\w+\+?=\(")
_PRINTED_DOCUMENT: Final = re.compile(r"\$\(\s*cat\s*<<-?\s*(['\"]?)(\w+)\1\n(.*\n|)\2\s*\)", re.DOTALL)
_ARGUMENT: Final = re.compile(r"\$(?:[1-9@*#]|\{#?[1-9@*#])")
_START_FOLDER: Final = Text((Piece("variable", "$PWD", "PWD"),))
TESTS: Final = frozenset({"[", "[[", "test"})


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

    @property
    def without_values(self) -> str:
        """The assignments as `export NAME=...`: values may be secrets."""
        return f"{self.program} {' '.join(f'{name}=...' for name, _ in self.assigns)}".strip()

    @property
    def is_known(self) -> bool:
        """Whether the values that it sets are known before the job runs."""
        return all(value is not None and not any(word.computed for word in value) for _, value in self.assigns)

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


def shell_names(text: str) -> set[str]:
    """The variables that a piece of shell names."""
    sums = re.findall(r"\$\(\((.*?)\)\)", text)
    return set(re.findall(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)", text)) | set(re.findall(r"[A-Za-z_]\w*", " ".join(sums)))


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
    comments = [(at, line) for at, line in enumerate(lines[: first - 1], 1) if line.startswith("#")]
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
    return Script(shebang, comments, statements, reader.block_ends, evaluation.passed, skipped)


def _measures(statement: Statement) -> bool:
    return _starts_profiler(statement.words) and not reads_reports(statement.words)


def _profiled_words(statement: Statement) -> tuple[int, str]:
    """What two profiled commands have alike: the profiler's path does not count."""
    return statement.line, _PROFILER_PATH.sub("", " ".join(word.source_text for word in statement.words))


def _shebang_program(text: str) -> str:
    """The name of the program that the first line names; empty where it names none."""
    words = text.partition("\n")[0].removeprefix("#!").split() if text.startswith("#!") else []
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0].rpartition("/")[2] if words else ""


# --- values: what the variables hold where a statement stands ---------------------------------------------------------


_NAMES_PROFILER: Final = re.compile(r"(?:\S*/)?(?:nsys|ncu|nvprof|vtune|rocprof\w*)(?:\s.*)?", re.DOTALL)
_LONGEST_VALUE: Final = 1 << 16  # characters of a variable; one that is longer is taken as computed
_LARGEST_OUTPUT: Final = 16 << 20  # characters of all words of a script, its variables replaced by their values


@dataclass(slots=True)
class _State:
    """What a script's commands change.

    Attributes:
        variables: The words of each; None: they are not known.
        exported: Those that the job's processes have.
        unsure: Those that may have another value: a caller or a condition decides.
        chosen: Those whose value a branch has set that nsw chose, with the branch.
        arguments: What the script is started with; None: only its caller knows.
        shifted: How many of the caller's arguments are shifted away; None: not known.
        folder: Where it is; None: where it was started.
    """

    variables: dict[str, list[Text] | None]
    exported: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    chosen: Mapping[str, Block] = field(default_factory=dict)
    arguments: Sequence[Text] | None = None
    shifted: int | None = 0
    folder: Text | None = None

    def copied(self) -> _State:
        """A copy, which later commands do not change."""
        return replace(self, variables=dict(self.variables))


class _Values:
    """The variables of a script, as far as it was read."""

    def __init__(self, script: str, arguments: Sequence[Text] | None) -> None:
        self._script = script
        self._room = _LARGEST_OUTPUT
        self.loops: dict[str, Sequence[str]] = {}  # of the loops that are read, over words that are known
        self.state = _State({"PWD": [_START_FOLDER]}, arguments=arguments)
        self.blocks: tuple[Block, ...] = ()  # of the statement that is read
        self.used_arguments: dict[str, Sequence[str]] = {}  # of the caller: parameters, each with a value to replace

    def set(self, name: str, value: list[Text] | None, *, exported: bool = False, unsure: bool = False) -> None:
        """Give a variable its value.

        Args:
            name: The variable.
            value: Its words; None: they are not known.
            exported: Whether the job's processes have it.
            unsure: Whether a caller or a condition decides of it.
        """
        # a short script that doubles a value forty times would fill the memory
        is_long = value is not None and sum(len(p.text) for word in value for p in word.pieces) > _LONGEST_VALUE
        state = self.state
        state.variables[name] = None if is_long else value
        state.exported |= {name} if exported else set()
        state.unsure = state.unsure | {name} if unsure else state.unsure - {name}

    def appended(self, name: str, value: list[Text] | None, *, is_array: bool) -> list[Text] | None:
        """The value behind `NAME+=VALUE`; None: not known."""
        before = self.state.variables.get(name, [])
        if before is None or value is None:
            return None
        if is_array or not before or not value:
            return [*before, *value]
        return [*before[:-1], Text((*before[-1].pieces, *value[0].pieces))]

    def is_unsure(self, text: str) -> bool:
        """Whether a caller or a condition decides what a piece of shell is."""
        is_caller_s = self.state.arguments is None and _ARGUMENT.search(text) is not None
        return is_caller_s or bool(shell_names(text) & self.state.unsure)

    def in_document(self, document: str) -> str:
        """The text of a here-document, in which variables that are known have their values."""

        def value_of(match: re.Match[str]) -> str:
            value = self.state.variables.get(match[1] or match[2])
            known = value[0].literal if value and len(value) == 1 else None
            return match[0] if known is None else known

        text = re.sub(r"(?<!\\)\$(?:(\w+)|\{(\w+)\})", value_of, document)
        return re.sub(r"\\([$`\\])", r"\1", text)

    def is_of_job(self, value: list[Text] | None) -> bool:
        """Whether the job's shell computes a value as the script would: from its environment, not from its files."""
        pieces = value[0].pieces if value and len(value) == 1 else ()
        computed = [piece for piece in pieces if piece.kind == "computed"]
        others_known = all(piece.kind in {"text", "variable", "shell"} for piece in pieces if piece.kind != "computed")
        return bool(computed) and others_known and all(map(self._is_piece_of_job, computed))

    def _is_piece_of_job(self, piece: Piece) -> bool:
        text = piece.text.strip("`").removeprefix("$(").removesuffix(")")
        if piece.text.startswith("$(("):
            names = shell_names(piece.text) - self.state.exported
            return all(self.state.variables.get(name, ()) is not None for name in names)
        if not piece.text.startswith(("$(", "`")):
            return False
        try:
            commands = list(Reader(text, self._script).statements())
        except UsageError:
            return False
        inputs = [target[0] for raw in commands for sign, target in raw.redirects if sign == "<" and target]
        are_whole = all(path.kind == "variable" or path.text.startswith("/") for path in inputs)
        return are_whole and all(_depends_on_job_alone(raw) for raw in commands)

    def _expand_argument(self, piece: Piece) -> Sequence[Piece]:
        """The pieces of $1; where only the caller knows it, its default in ${1:-default}, or else a parameter."""
        number = int(piece.name)
        arguments, shifted = self.state.arguments, self.state.shifted
        if arguments is not None and number <= len(arguments) and number:
            return arguments[number - 1].pieces
        default = re.fullmatch(r"\$\{\d+:?-(.*)\}", piece.text)
        if default and not set(default[1]) & set("$`\\"):
            return [Piece("text", default[1].strip("\"'"))]
        if arguments is not None and number and not default:
            return []
        # a loop may shift them, and a function that is called in `$(...)` has its own
        is_other = any(block.head.startswith(("while ", "until ", "function ")) for block in self.blocks)
        if default or not number or shifted is None or is_other:
            return [piece._replace(kind="computed", name="an argument of the script")]
        parameter = Piece("parameter", f"arg{number + shifted}")
        self.used_arguments[parameter.text] = [f"${number + shifted}"]
        return [parameter]

    def words(self, pieces: Sequence[Piece]) -> list[Text]:
        """The words that one of the script becomes: an array may hold several, unquoted values are split at blanks.

        Raises:
            UsageError: The script's words are too long in all.
        """
        fields: list[list[Piece]] = [[]]
        for piece in pieces:
            elements: Sequence[Text] | None = None
            if piece.kind == "list":
                elements = self.state.variables.get(piece.name)
                if piece.name[0] in "@*":
                    first = int(piece.name[2:] or 1) - 1
                    elements = self.state.arguments and self.state.arguments[first:]
            parts = [self._expand_piece(piece)] if elements is None else [element.pieces for element in elements]
            for at, piece_group in enumerate(parts):
                fields += [[]] if at else []
                _append_pieces(fields, piece_group, is_split=not piece.quoted and piece.kind in {"variable", "list"})
        is_list = any(piece.kind == "list" for piece in pieces)
        if is_list:  # one without elements is no word, though it stands in quotes
            fields = [piece_group for piece_group in fields if any(piece.text for piece in piece_group)]
        texts = [Text(drop_quoting(piece_group)) for piece_group in fields if piece_group]
        self._room -= sum(len(piece.text) for text in texts for piece in text.pieces)
        if self._room < 0:  # a few KB of a script may name a long variable thousands of times
            raise UsageError(
                f"{self._script}: with its variables replaced by their values it has more than {_LARGEST_OUTPUT:,}"
                " characters",
                hint="`nsw init -- COMMAND` makes a recipe for one of its commands",
            )
        is_empty = not is_list and any(piece.quoted for piece in pieces)
        return texts or ([Text((Piece("text", ""),))] if is_empty else [])

    def loop_words(self, block: Block) -> list[str]:
        """The words that a loop goes over; empty where they are not known."""
        if counter := _COUNTER.match(block.head):
            first, end, step = int(counter[2]), int(counter[4]) + (counter[3] == "<="), int(counter[5] or 1)
            return [str(number) for number in range(first, min(end, first + 1000 * step), step)] if step else []
        words = [word for pieces in (block.loop[1] if block.loop else ()) for word in self.words(pieces)]
        texts = [text for word in words for text in self._expand_sequence(word)]
        return [] if None in texts else [text for text in texts if text is not None]

    def _expand_sequence(self, word: Text) -> list[str | None]:
        """The words of `$(seq 1 4)` and of `{1..4}`; of other words the word itself, None where it is not known."""
        match = _SEQUENCE.fullmatch(word.source_text)
        if [piece.kind for piece in word.pieces] == ["parameter"]:
            return list(self.used_arguments.get(word.pieces[0].text, [None]))  # what the caller gives
        if match is None:
            return [word.literal]
        if match[4]:
            first, step, last = int(match[4]), 1, int(match[5])
        else:
            numbers = [int(number) for number in match.groups()[:3] if number]
            first, step, last = {1: (1, 1, numbers[0]), 2: (numbers[0], 1, numbers[-1])}.get(
                len(numbers), tuple(numbers)
            )
        step = step if match[4] is None or first <= last else -1
        numbers_in_order = range(first, last + (1 if step > 0 else -1), step or 1)
        return [str(number) for number in numbers_in_order[:1000]]

    def _expand_arithmetic(self, piece: Piece) -> Piece:
        """The value of `$((N * 4))`, where all of its variables are numbers that are known."""

        def number_of(match: re.Match[str]) -> str:
            if match[1].isdecimal():
                return match[1]
            number = Text(tuple(self._expand_piece(Piece("variable", match[0], match[1])))).literal or ""
            return number if number.isdecimal() else "?"

        value = _calculate(_NAME_OR_NUMBER.sub(number_of, piece.text.removeprefix("$")[2:-2]))
        return piece if value is None else Piece("text", str(value), quoted=piece.quoted)

    def _expand_default(self, piece: Piece) -> Piece:
        """`${NAME:-default}` with the script's own variables of the default replaced."""
        match = re.fullmatch(r"(\$\{\w+:?-)(.*)\}", piece.text, re.DOTALL)
        if match is None or not shell_names(match[2]) & self.state.variables.keys():
            return piece
        words = self.words(word_pieces(f'"{match[2]}"', self._script))
        texts = [part.text for word in words for part in word.pieces if part.kind in {"text", "variable"}]
        is_known = len(words) == 1 and len(texts) == len(words[0].pieces) and not re.search(r"[\\\"`]", "".join(texts))
        if not is_known:
            return piece._replace(kind="computed", name=_COMPUTED)
        return piece._replace(text=f"{match[1]}{''.join(texts)}}}")

    def _expand_piece(self, piece: Piece) -> Sequence[Piece]:
        if piece.kind == "computed" and piece.text.startswith(("$((", "((")):
            return [self._expand_arithmetic(piece)]
        if piece.kind == "computed" and (printed := _PRINTED_DOCUMENT.fullmatch(piece.text)):
            text = printed[3] if printed[1] else self.in_document(printed[3])
            return [piece._replace(kind="text", text=text.rstrip("\n"))]
        if piece.text in {"$#", "${#}"} and self.state.arguments is not None:
            return [Piece("text", str(len(self.state.arguments)), quoted=piece.quoted)]
        if piece.kind != "variable":
            return [piece]
        if piece.name.isdecimal():
            return self._expand_argument(piece)
        if piece.name in _ARRAY_INDICES:
            return [piece._replace(kind="computed", name="the index of an array job")]
        if piece.name in self.loops:
            return [Piece("parameter", piece.name)]
        if piece.name not in self.state.variables:
            return [self._expand_default(piece)]
        value = self.state.variables[piece.name]
        is_known = value is not None and (all(word.literal is not None for word in value) or _starts_profiler(value))
        if piece.name in self.state.exported and not is_known:
            return [piece]  # the job has it
        if value is None:
            return [piece._replace(kind="computed", name=_COMPUTED)]
        return [
            part._replace(text=piece.text, name=_COMPUTED)
            if part.kind == "computed" and part.name != _COMPUTED
            else part._replace(quoted=piece.quoted if part.kind == "variable" else part.quoted)
            for part in (value[0].pieces if value else ())
        ]


_NAME_OR_NUMBER: Final = re.compile(r"\$?\{?([A-Za-z_]\w*|\d+)\}?")
_OPERATIONS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_NUMBER_TESTS: Final = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt, "-le": operator.le, "-gt": operator.gt,
    "-ge": operator.ge,
}  # fmt: skip


def _calculate(text: str) -> int | None:
    """The value of a sum, difference, product or power of whole numbers, or of a division without rest, or None."""

    def value_of(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            left, right, kind = value_of(node.left), value_of(node.right), type(node.op)
            if kind is ast.Div and right and left % right == 0:
                return left // right
            if kind is ast.Pow and (right < 0 or abs(left).bit_length() * right >= 63):  # bash's numbers have 64 bits
                raise ValueError(text)
            if kind in _OPERATIONS and max(abs(left), abs(right)) < 1 << 31:
                return _OPERATIONS[kind](left, right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return int(_COMPARISONS[type(node.ops[0])](value_of(node.left), value_of(node.comparators[0])))
        raise ValueError(text)

    try:
        return value_of(ast.parse(text.replace("#", "?").strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
        return None


_OF_JOB: Final = frozenset({
    "scontrol", "hostname", "date", "mktemp", "nproc", "nvidia-smi", "whoami", "id", "uname", "seq", "getent", "shuf",
    "echo", "printf", "expr", "bc", "awk", "sed", "cut", "tr", "grep", "wc", "head", "tail", "sort", "uniq", "cat",
})  # fmt: skip


def _depends_on_job_alone(raw: RawStatement) -> bool:
    """Whether a command prints the same in the job of a recipe: it reads no file of the folder that it is in."""
    words = raw.words[1:]
    plain = [word[0].text for word in words if word and word[0].kind == "text" and not word[0].quoted]
    is_file = source_text(raw.words[0]) in {"cat", "wc", "head", "tail", "sort", "uniq"} if raw.words else True
    files = [text for text in plain if "." in text or "/" in text or (is_file and not text.isdecimal())]
    has_pattern = any(piece.kind not in {"text", "variable"} for word in words for piece in word)
    is_known = bool(raw.words) and source_text(raw.words[0]) in _OF_JOB and not has_pattern
    if is_known and source_text(raw.words[0]) == "mktemp":
        return True
    return is_known and all(text.startswith(("/", "-", "+")) for text in files)


def _starts_profiler(value: Sequence[Text]) -> bool:
    return STARTS_PROFILER.search(" ".join(word.source_text for word in value)) is not None


_COUNTER: Final = re.compile(
    r"for\s*\(\(\s*(\w+)\s*=\s*(\d+)\s*;\s*\1\s*(<=?)\s*(\d+)\s*;\s*(?:\1\+\+|\+\+\1|\1\s*\+=\s*(\d+))\s*\)\)"
)
_SEQUENCE: Final = re.compile(r"(?:\$\(|`)seq +(-?\d+)(?: +(-?\d+))?(?: +(-?\d+))? *[)`]|\{(-?\d+)\.\.(-?\d+)\}")


def _append_pieces(fields: list[list[Piece]], pieces: Iterable[Piece], *, is_split: bool) -> None:
    """Append a value to the last word; where it is split at its blanks, the text behind a blank begins a new word."""
    for piece in pieces:
        if piece.kind != "text" or not is_split:
            fields[-1].append(piece)
            continue
        for number, text in enumerate(re.split(r"\s+", piece.text)):
            fields += [[]] if number else []
            fields[-1] += [piece._replace(text=text)] if text else []


_DEEPEST_CALL: Final = 8
_MOST_STATEMENTS: Final = 20_000
_MOST_CHOICES: Final = 16
_MOST_RUNS: Final = 8  # values of a loop that are taken one by one
_MOST_ROUNDS: Final = 200
_JUMPS: Final = frozenset({"exit", "exec", "return", "break", "continue"})


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
        self._values = _Values(script, arguments)
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
        if self._is_conditional(members[0].before) or kind.startswith("("):
            yield from self._walk_unknown(members, depth + 1, (*blocks, block))
        elif kind == "{":
            self.passed[block] = "its lines are taken"
            yield from self._walk(members, depth + 1, blocks)
        elif kind in {"if", "case"}:
            yield from self._walk_branches(members, depth, blocks)
        elif words := self._values.loop_words(block):
            yield from self._walk_words(members, depth, blocks, words)
        else:
            yield from self._walk_rounds(members, depth, blocks)

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
        values, ends = self._values, list[tuple[int, Block | None, _State]]()
        base, subject = values.state.copied(), members[0].blocks[depth].subject
        is_open = True
        for branch, group in groupby(members, lambda raw: raw.blocks[depth].branch):
            raws = list(group)
            tests = [raw for raw in raws if raw.blocks[depth].is_condition]
            body = raws[len(tests) :]
            truth: bool | None = True
            values.state = base.copied() if ends else values.state
            if tests:
                decided = list(self._walk(tests, depth + 1, (*blocks, tests[0].blocks[depth])))
                truth = self._truth
                for statement in decided if truth is not None and not ends else ():
                    statement.blocks = statement.blocks[: len(blocks)]
                yield from decided
            elif subject:
                truth = self._is_chosen(subject, raws[0].blocks[depth].patterns)
            if truth is False or not body:
                continue
            part = body[0].blocks[depth]
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
        text = _unsplit_text(self._values, subject).literal
        is_known = all(piece.kind in {"text", "shell"} for pattern in patterns for piece in pattern)
        if text is None or not is_known or not self.decides or self._values.is_unsure(source_text(subject)):
            return None
        return any(fnmatchcase(text, _glob(pattern)) for pattern in patterns)

    def _walk_words(
        self, members: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...], words: Sequence[str]
    ) -> Iterator[Statement]:
        """The body of a loop over known words: for each word where the word decides, else once, with a parameter."""
        block, values = members[0].blocks[depth], self._values
        name = block.loop[0] if block.loop else block.head[3:].strip(" (").partition("=")[0].strip()
        tests = [source_text(piece) for raw in members if raw.is_condition for piece in raw.words]
        subjects = [source_text(inner.subject) for raw in members for inner in raw.blocks[depth + 1 :]]
        decides = name in shell_names(" ".join([*tests, *subjects])) and len(words) <= _MOST_RUNS
        is_list = any(append for raw in members for _, append, _ in _assignments(raw))
        if (decides or is_list or any(map(_NAMES_PROFILER.fullmatch, words))) and len(words) <= _MOST_ROUNDS:
            self.passed[block] = "its lines are taken for each value"
            for word in words:
                values.set(name, [Text((Piece("text", word),))])
                try:
                    yield from self._walk(members, depth + 1, blocks)
                except _Jump as jump:
                    if jump.args[0] not in {"break", "continue"}:
                        raise
                    if jump.args[0] == "break":
                        break
            return
        block = block if block.loop else replace(block, loop=(name, ()))
        outer, values.loops = values.loops, {**values.loops, name: words}
        yield from self._walk_unknown(members, depth + 1, (*blocks, block))
        values.loops = outer

    def _walk_rounds(
        self, members: Sequence[RawStatement], depth: int, blocks: tuple[Block, ...]
    ) -> Iterator[Statement]:
        """The body of a `while`: as often as the script's own values say; once where they do not."""
        values, block = self._values, members[0].blocks[depth]
        base = values.state.copied()
        tests = [raw for raw in members if raw.blocks[depth].is_condition]
        body, statements, is_known = members[len(tests) :], list[Statement](), False
        for _ in range(_MOST_ROUNDS if tests and self._count < _MOST_STATEMENTS else 0):
            statements += self._walk(tests, depth + 1, blocks)
            if self._truth is None:
                break
            if self._truth is block.head.startswith("until "):
                is_known = True
                break
            try:
                statements += self._walk(body, depth + 1, blocks)
            except _Jump as jump:
                if jump.args[0] not in {"break", "continue"}:
                    raise
                is_known = jump.args[0] == "break"
            if is_known or sum(map(_measures, statements)) > _MOST_RUNS:
                break
        if is_known:
            self.passed[block] = "its lines are taken for each round"
            yield from statements
            return
        values.state = base
        if block.loop is not None:
            values.set(block.loop[0], None)
        yield from self._walk_unknown(members, depth + 1, (*blocks, block))

    def _merge(
        self, base: _State, ends: Sequence[tuple[int, Block | None, _State]], begin: int, *, is_open: bool = True
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
            if any(_starts_profiler(end.variables[name] or ()) for name in own)
        ]  # fmt: skip
        if is_open and options and any(_starts_profiler(before.get(name) or ()) for name in names):
            options.insert(0, (-1, None, base, set()))
        choice = options[0][0] if options and self._choices is None else (self._choices or {}).get(begin)
        if self._choices is None:
            self.alternatives += [{begin: branch} for branch, *_ in options[1:]]
        for branch, part, end, own in options if choice is not None or options else ():
            if branch == (options[0][0] if choice is None else choice):
                chosen = dict.fromkeys(own, part) if part is not None else {}
                self._values.state = replace(end.copied(), chosen={**end.chosen, **chosen})
                return
        self._values.state = base
        for name in names:
            before.setdefault(name, None)
        base.unsure |= names
        if any(end.shifted != base.shifted or end.arguments is not base.arguments for _, _, end in ends):
            base.arguments = base.shifted = None

    # --- commands -----------------------------------------------------------------------------------------------------

    def _is_passed_over(self, before: str) -> bool:
        """Whether the commands before `&&` or `||` decide that the next one is not run."""
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
            yield statement
        if is_conditional:
            self._merge(base, [(0, None, values.state)], raw.begin)
        elif not self._unknown and self.decides and statement.program in _JUMPS and len(statement.words) > is_exec:
            raise _Jump("exit" if is_exec else statement.program)

    def _call(
        self, raw: RawStatement, statement: Statement, called: tuple[Sequence[RawStatement], int, tuple[Block, ...]]
    ) -> Iterator[Statement]:
        """The statements of a function."""
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
        """Follow the result of a command to the `&&` behind it."""
        truth = self._truth_of(raw, statement)
        statement.is_decided = truth is not None
        truth = truth is False if raw.is_negated and truth is not None else truth
        if before not in {"&&", "||"}:
            self._truth, self._is_tested = truth, statement.program in TESTS
        elif self._truth is not None or truth is (before == "||"):
            self._truth = truth

    def _truth_of(self, raw: RawStatement, statement: Statement) -> bool | None:
        """The result of a test; None: not known."""
        if not self.decides or self._values.is_unsure(raw.text) or statement.program in self._functions:
            return None
        if statement.program in {"true", ":", "false"}:
            return statement.program != "false"
        first = raw.words[0][0] if raw.words and raw.words[0] else None
        if first is not None and first.text.startswith("((") and len(raw.words) == 1:
            number = statement.words[0].literal
            return bool(int(number)) if number and number.isdecimal() else None
        if statement.program not in TESTS:
            return None
        words = [word.as_pattern for word in statement.words[1:]]
        words = words[:-1] if statement.program != "test" else words
        known = [word for word in words if word is not None]
        return _test(known) if len(known) == len(words) else None

    def _evaluate_command(self, raw: RawStatement, blocks: tuple[Block, ...]) -> Statement:
        values, state = self._values, self._values.state
        statement = Statement(raw.line, raw.last, raw.text, raw.before, blocks=blocks)
        statement.words = [word for pieces in raw.words for word in values.words(pieces)]
        statement.redirects = [(sign, _unsplit_text(values, target)) for sign, target in raw.redirects]
        statement.is_condition, statement.document_line = raw.is_condition, raw.document_line or raw.line
        statement.document = raw.document if raw.has_plain_document else values.in_document(raw.document)
        if statement.program in {"echo", "printf"} and len(statement.words) > 1:
            statement.document = " ".join(word.source_text for word in statement.words[1:])
        names = shell_names(raw.text)
        branches = {state.chosen[name]: None for name in sorted(names & state.chosen.keys())}
        if branches and _measures(statement):
            statement.blocks = (*blocks, *(block for block in branches if block not in blocks))
        is_export = bool(raw.words) and source_text(raw.words[0]) == "export"
        is_alone = bool(raw.assigns and raw.words)  # it is set for that command alone
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
        """Follow $PWD."""
        state, program = self._values.state, statement.program
        target = statement.words[1] if len(statement.words) > 1 else Text((Piece("variable", "$HOME", "HOME"),))
        before, stack = state.variables["PWD"], state.variables.get("DIRSTACK") or []
        value: list[Text] | None = None
        if program == "popd" or target.literal == "-":
            value = stack[-1:] if program == "popd" else state.variables.get("OLDPWD")
            stack = stack[:-1] if program == "popd" else stack
        elif target.is_known and (target.source_text.startswith(("/", "$", "~")) or before is not None):
            is_whole = target.source_text.startswith(("/", "$", "~"))
            parts = () if is_whole else (*(before or [_START_FOLDER])[0].pieces, Piece("text", "/"))
            value = [Text(merge_pieces((*parts, *target.pieces)))]
            stack = [*stack, *(before or ())] if program == "pushd" else stack
        state.variables |= {"PWD": value or None, "OLDPWD": before, "DIRSTACK": stack}
        state.folder = value[0] if value else state.folder

    def _assigned_texts(self, raw: RawStatement, pieces: Sequence[Piece]) -> list[Text]:
        """A value, which is not split at blanks; an array's element may be several words."""
        is_list = any(piece.kind == "list" for piece in pieces) and _ARRAY.match(raw.text) is not None
        return self._values.words(pieces) if is_list else [_unsplit_text(self._values, pieces)]


def _glob(pattern: Sequence[Piece]) -> str:
    """A pattern of a `case` as fnmatch has it: what is quoted means itself."""
    return "".join(re.sub(r"([*?\[])", r"[\1]", p.text) if p.quoted else p.text for p in pattern)


def _test(words: Sequence[str]) -> bool | None:
    """The result of `[ WORDS ]`; None: not known, as of a test of files."""
    for sign in ("||", "-o", "&&", "-a"):
        if sign in words[1:-1]:
            at = words.index(sign, 1)
            left, right = _test(words[:at]), _test(words[at + 1 :])
            decisive = sign in {"||", "-o"}
            return decisive if decisive in {left, right} else None if None in {left, right} else not decisive
    if words[:1] == ["!"] and len(words) > 1:
        return None if (truth := _test(words[1:])) is None else not truth
    if len(words) < 2:
        return bool(words and words[0])
    if len(words) == 2:
        return {"-n": bool(words[1]), "-z": not words[1]}.get(words[0])
    left_word, sign, right_word = (*words, "")[:3]
    if len(words) == 3 and sign in {"=", "==", "!="}:
        return fnmatchcase(left_word, right_word) is (sign != "!=")
    if len(words) == 3 and sign in _NUMBER_TESTS and left_word.isdecimal() and right_word.isdecimal():
        return bool(_NUMBER_TESTS[sign](int(left_word), int(right_word)))
    return None


def _unsplit_text(values: _Values, pieces: Sequence[Piece]) -> Text:
    """A value, which is not split at blanks."""
    quoted_pieces = [piece._replace(quoted=True) if piece.kind == "variable" else piece for piece in pieces]
    words = values.words(quoted_pieces)
    pieces = [piece for word in words for piece in (Piece("text", " "), *word.pieces)][1:]
    return Text(tuple(pieces)) if len(words) != 1 else words[0]


def _assignments(raw: RawStatement) -> list[tuple[str, bool, list[tuple[Piece, ...]] | None]]:
    """What a command assigns, also by `export`, `let` and `read`."""
    first = source_text(raw.words[0]) if raw.words else ""
    if first in DECLARING:
        assignments: list[tuple[str, bool, list[tuple[Piece, ...]] | None]] = []
        for word in raw.words[1:]:
            match = ASSIGNMENT.match(word[0].text) if word and word[0].kind == "text" and not word[0].quoted else None
            if match:
                rest = (word[0]._replace(text=word[0].text[match.end() :]), *word[1:])
                value = tuple(piece for piece in rest if piece.text or piece.quoted)
                assignments.append((match[1], bool(match[2]), [value]))
        return assignments
    if first in {"let", "read"}:
        names = [re.match(r"[A-Za-z_]\w*", source_text(word)) for word in raw.words[1:]]
        return [(name[0], False, None) for name in names if name]
    return raw.assigns
