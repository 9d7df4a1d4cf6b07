"""A job script taken apart without being run: its statements, with the values that its variables have there.

Words are split and expanded as bash does where that needs no execution. What a command prints and variables that were
set in a loop or a conditional are not known, nor is arithmetic with them: such a piece of a word is `computed`.
"""

from __future__ import annotations

import ast
import operator
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

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
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

_SHELLS: Final = re.compile(r"(ba|da|z|k)?sh\d*|")
_STARTS_PROFILER: Final = re.compile(
    r"(?:^|[\s/])(?:nsys|ncu|nv-nsight-cu-cli|nvprof|vtune|amplxe-cl|rocprof(?:v[23]|-compute)?)(?:[\s)`]|$)"
)
_ARRAY_INDICES: Final = ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID")
_COMPUTED: Final = "a variable that the script computes"


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
        document: The text of its here-document.
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
    document: str = ""

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
        called: The functions that it calls: their statements are where the calls are.
    """

    shebang: str
    comments: list[tuple[int, str]]
    statements: list[Statement]
    block_ends: Mapping[int, int]
    called: Sequence[Block] = ()


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
    return Script(shebang, comments, statements, reader.block_ends, tuple(evaluation.called))


def _shebang_program(text: str) -> str:
    """The name of the program that the first line names; empty where it names none."""
    words = text.partition("\n")[0].removeprefix("#!").split() if text.startswith("#!") else []
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0].rpartition("/")[2] if words else ""


# --- values: what the variables hold where a statement stands ---------------------------------------------------------


_LONGEST_VALUE: Final = 1 << 16  # characters of a variable; one that is longer is taken as computed
_LARGEST_OUTPUT: Final = 16 << 20  # characters of all words of a script, its variables replaced by their values


class _Values:
    """The variables of a script, as far as it was read."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._room = _LARGEST_OUTPUT
        self._loop_words: dict[int, list[str]] = {}  # of loops over words that are known, by the id of their block
        start = Text((Piece("variable", "$PWD", "PWD"),))
        self._variables: dict[str, list[Text] | None] = {"PWD": [start]}  # None: computed
        self._exported: set[str] = set()
        self._in_blocks: dict[str, tuple[tuple[Block, ...], list[Text] | None]] = {}  # set in a block, for its rest
        self.blocks: tuple[Block, ...] = ()  # of the statement that is read
        self.arguments: Sequence[Text] | None = None  # None: the caller's
        self.shifted: int | None = 0  # how many of the caller's arguments are shifted away; None: not known
        self.used_arguments: dict[str, Sequence[str]] = {}  # of the caller: parameters, each with a value to replace

    def set(self, name: str, value: list[Text] | None, *, exported: bool = False) -> None:
        """Give a variable its value.

        Args:
            name: The variable.
            value: Its words; None: they are not known.
            exported: Whether the job's processes have it.
        """
        # a short script that doubles a value forty times would fill the memory
        is_long = value is not None and sum(len(p.text) for word in value for p in word.pieces) > _LONGEST_VALUE
        self._variables[name] = None if is_long else value
        self._exported |= {name} if exported else set()

    def appended(self, name: str, value: list[Text] | None, *, is_array: bool) -> list[Text] | None:
        """The value behind `NAME+=VALUE`; None: not known."""
        before = self._variable_value(name) if name in self._variables else []
        if before is None or value is None:
            return None
        if is_array or not before or not value:
            return [*before, *value]
        return [*before[:-1], Text((*before[-1].pieces, *value[0].pieces))]

    def value_behind_test(self, name: str, value: list[Text] | None) -> list[Text] | None:
        """The value behind `test || NAME=VALUE`: the one of before, or the new one that starts a profiler."""
        before = self._variable_value(name)
        return next(
            (candidate for candidate in (before, value) if candidate is not None and _starts_profiler(candidate)),
            before,
        )

    def is_of_job(self, value: list[Text] | None) -> bool:
        """Whether the job's shell computes a value as the script would: from its environment, not from its files."""
        pieces = value[0].pieces if value and len(value) == 1 else ()
        computed = [piece for piece in pieces if piece.kind == "computed"]
        others_known = all(piece.kind in {"text", "variable", "shell"} for piece in pieces if piece.kind != "computed")
        return bool(computed) and others_known and all(map(self._is_piece_of_job, computed))

    def _is_piece_of_job(self, piece: Piece) -> bool:
        text = piece.text.strip("`").removeprefix("$(").removesuffix(")")
        if piece.text.startswith("$(("):
            names = shell_names(piece.text) - self._exported
            return all(self._variables.get(name, ()) is not None for name in names)
        if not piece.text.startswith(("$(", "`")):
            return False
        try:
            commands = list(Reader(text, self._script).statements())
        except UsageError:
            return False
        inputs = [target[0] for raw in commands for sign, target in raw.redirects if sign == "<" and target]
        are_whole = all(path.kind == "variable" or path.text.startswith("/") for path in inputs)
        return are_whole and all(_depends_on_job_alone(raw) for raw in commands)

    def set_in_block(self, name: str, value: list[Text] | None) -> None:
        """Give a variable a value for the rest of the block that is read; one that starts a profiler stays.

        Behind the block the value of before holds, and none is not the environment's.
        """
        self._in_blocks[name] = self.blocks, value
        if value and _starts_profiler(value):
            self._variables[name] = value
        self._variables.setdefault(name, None)

    def _variable_value(self, name: str) -> list[Text] | None:
        blocks, value = self._in_blocks.get(name, ((), None))
        if name in self._in_blocks and self.blocks[: len(blocks)] == blocks:
            return value
        return self._variables.get(name)

    def _expand_argument(self, piece: Piece) -> Sequence[Piece]:
        """The pieces of $1; where only the caller knows it, its default in ${1:-default}, or else a parameter."""
        number = int(piece.name)
        if self.arguments is not None and number <= len(self.arguments) and number:
            return self.arguments[number - 1].pieces
        default = re.fullmatch(r"\$\{\d+:?-(.*)\}", piece.text)
        if default and not set(default[1]) & set("$`\\"):
            return [Piece("text", default[1].strip("\"'"))]
        if self.arguments is not None and number and not default:
            return []
        # a loop may shift them, and a function that is called in `$(...)` has its own
        is_other = any(block.head.startswith(("while ", "until ", "function ")) for block in self.blocks)
        if default or not number or self.shifted is None or is_other:
            return [piece._replace(kind="computed", name="an argument of the script")]
        parameter = Piece("parameter", f"arg{number + self.shifted}")
        self.used_arguments[parameter.text] = [f"${number + self.shifted}"]
        return [parameter]

    def words(self, pieces: Sequence[Piece], loops: Collection[str]) -> list[Text]:
        """The words that one of the script becomes: an array may hold several, unquoted values are split at blanks.

        Raises:
            UsageError: The script's words are too long in all.
        """
        fields: list[list[Piece]] = [[]]
        for piece in pieces:
            elements: Sequence[Text] | None = None
            if piece.kind == "list":
                elements = self._variable_value(piece.name)
                if piece.name[0] in "@*":
                    first = int(piece.name[2:] or 1) - 1
                    elements = self.arguments and self.arguments[first:]
            parts = [self._expand_piece(piece, loops)] if elements is None else [element.pieces for element in elements]
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

    def loops(self, blocks: Iterable[Block]) -> dict[str, list[str]]:
        """The variables of loops over words that are known, with these words as they were where the loop begins."""
        lists = {}
        for block in blocks:
            if block.loop is not None and id(block) not in self._loop_words:
                words = [word for pieces in block.loop[1] for word in self.words(pieces, ())]
                texts = [text for word in words for text in _expand_sequence(word)]
                self._loop_words[id(block)] = [] if None in texts else [text for text in texts if text is not None]
            if block.loop is not None and (known_words := self._loop_words[id(block)]):
                lists[block.loop[0]] = known_words
            elif block.loop is not None:
                self._variables.setdefault(block.loop[0], None)
            elif counter := _COUNTER.match(block.head):
                self._variables.setdefault(counter[1], None)
        return lists

    def _expand_arithmetic(self, piece: Piece, loops: Collection[str]) -> Piece:
        """The value of `$((N * 4))`, where all of its variables are numbers that are known."""

        def number_of(match: re.Match[str]) -> str:
            if match[1].isdecimal():
                return match[1]
            number = Text(tuple(self._expand_piece(Piece("variable", match[0], match[1]), loops))).literal or ""
            return number if number.isdecimal() else "?"

        value = _calculate(_NAME_OR_NUMBER.sub(number_of, piece.text[3:-2]))
        return piece if value is None else Piece("text", str(value), quoted=piece.quoted)

    def _expand_default(self, piece: Piece, loops: Collection[str]) -> Piece:
        """`${NAME:-default}` with the script's own variables of the default replaced."""
        match = re.fullmatch(r"(\$\{\w+:?-)(.*)\}", piece.text, re.DOTALL)
        if match is None or not shell_names(match[2]) & self._variables.keys():
            return piece
        words = self.words(word_pieces(f'"{match[2]}"', self._script), loops)
        texts = [part.text for word in words for part in word.pieces if part.kind in {"text", "variable"}]
        is_known = len(words) == 1 and len(texts) == len(words[0].pieces) and not re.search(r"[\\\"`]", "".join(texts))
        if not is_known:
            return piece._replace(kind="computed", name=_COMPUTED)
        return piece._replace(text=f"{match[1]}{''.join(texts)}}}")

    def _expand_piece(self, piece: Piece, loops: Collection[str]) -> Sequence[Piece]:
        if piece.kind == "computed" and piece.text.startswith("$(("):
            return [self._expand_arithmetic(piece, loops)]
        if piece.kind != "variable":
            return [piece]
        if piece.name.isdecimal():
            return self._expand_argument(piece)
        if piece.name in _ARRAY_INDICES:
            return [piece._replace(kind="computed", name="the index of an array job")]
        if piece.name in loops:
            return [Piece("parameter", piece.name)]
        if piece.name not in self._variables:
            return [self._expand_default(piece, loops)]
        value = self._variable_value(piece.name)
        is_known = value is not None and (all(word.literal is not None for word in value) or _starts_profiler(value))
        if piece.name in self._exported and not is_known:
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
        raise ValueError(text)

    try:
        return value_of(ast.parse(text.replace("#", "?").strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_OF_JOB: Final = frozenset({
    "scontrol", "hostname", "date", "nproc", "nvidia-smi", "whoami", "id", "uname", "seq", "getent", "shuf",
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
    return is_known and all(text.startswith(("/", "-", "+")) for text in files)


def _starts_profiler(value: Sequence[Text]) -> bool:
    return _STARTS_PROFILER.search(" ".join(word.source_text for word in value)) is not None


_COUNTER: Final = re.compile(r"for\s*\(\(\s*(\w+)")
_SEQUENCE: Final = re.compile(r"(?:\$\(|`)seq +(-?\d+)(?: +(-?\d+))?(?: +(-?\d+))? *[)`]|\{(-?\d+)\.\.(-?\d+)\}")


def _expand_sequence(word: Text) -> list[str | None]:
    """The words of `$(seq 1 4)` and of `{1..4}`; of other words the word itself, None where it is not known."""
    match = _SEQUENCE.fullmatch(word.source_text)
    if [piece.kind for piece in word.pieces] == ["parameter"]:
        return [f"${word.pieces[0].text.removeprefix('arg')}"]  # what the caller gives
    if match is None:
        return [word.literal]
    if match[4]:
        first, step, last = int(match[4]), 1, int(match[5])
    else:
        numbers = [int(number) for number in match.groups()[:3] if number]
        first, step, last = {1: (1, 1, numbers[0]), 2: (numbers[0], 1, numbers[-1])}.get(len(numbers), tuple(numbers))
    step = step if match[4] is None or first <= last else -1
    numbers_in_order = range(first, last + (1 if step > 0 else -1), step or 1)
    return [str(number) for number in numbers_in_order[:1000]]


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


class _Evaluation:
    """The statements of a script with their values; those of a function where it is called."""

    def __init__(self, raw: Sequence[RawStatement], script: str, arguments: Sequence[Text] | None) -> None:
        self._raw = raw
        self._values = _Values(script)
        self._values.arguments = arguments
        self._count = 0
        self._is_tested = False  # whether the command before `&&` is a test
        first_words = {source_text(statement.words[0]) for statement in raw if statement.words}
        self._bodies: dict[
            str, list[tuple[int, RawStatement]]
        ] = {}  # how deep the function's block is, and the statement
        for statement in raw:
            for depth, block in enumerate(statement.blocks):
                name = block.head.removeprefix("function ")
                if name != block.head and name in first_words:
                    self._bodies.setdefault(name, []).append((depth, statement))
        self.called = list(dict.fromkeys(body[0][1].blocks[body[0][0]] for body in self._bodies.values()))

    def statements(self) -> Iterator[Statement]:
        """The statements in the order in which they are run."""
        for raw in self._raw:
            if not any(block in self.called for block in raw.blocks):
                yield from self._evaluate(raw, raw.blocks, 0)

    def _evaluate(self, raw: RawStatement, blocks: tuple[Block, ...], depth: int) -> Iterator[Statement]:
        self._values.blocks = blocks
        statement = self._evaluate_command(raw, blocks)
        self._count += 1
        body = self._bodies.get(statement.program)
        if body is None or depth > _DEEPEST_CALL or self._count > _MOST_STATEMENTS:
            yield statement
            return
        arguments, self._values.arguments = self._values.arguments, statement.words[1:]
        for block_depth, inner in body:
            yield from self._evaluate(inner, (*blocks, *inner.blocks[block_depth + 1 :]), depth + 1)
        self._values.arguments = arguments

    def _evaluate_command(self, raw: RawStatement, blocks: tuple[Block, ...]) -> Statement:
        values = self._values
        loops = values.loops(blocks)
        statement = Statement(raw.line, raw.last, raw.text, raw.before, blocks=blocks)
        statement.words = [word for pieces in raw.words for word in values.words(pieces, loops)]
        statement.redirects = [(sign, _unsplit_text(values, target, loops)) for sign, target in raw.redirects]
        statement.is_condition, statement.document = raw.is_condition, raw.document
        is_export = bool(raw.words) and source_text(raw.words[0]) == "export"
        if raw.before not in {"&&", "||"}:
            self._is_tested = statement.program in {"[", "[[", "test"}
        is_conditional = raw.before == "||" or (raw.before == "&&" and self._is_tested)
        for name, append, assigned in _assignments(raw):
            texts = (text for pieces in assigned or () for text in self._assigned_texts(raw, pieces))
            value = None if assigned is None else list(texts)
            if append:
                value = values.appended(name, value, is_array=f"{name}+=(" in raw.text)
            statement.assigns.append((name, value))
            if any(not block.head.startswith("{") for block in blocks):
                values.set_in_block(name, value)
            elif not (raw.assigns and raw.words):  # else it is set for that command alone
                is_of_job = not raw.words and not is_conditional and values.is_of_job(value)
                statement.is_of_job = statement.is_of_job or is_of_job
                value = values.value_behind_test(name, value) if is_conditional else value
                values.set(name, value, exported=is_export or is_of_job)
        if statement.program in {"cd", "pushd", "popd"}:
            self._change_folder(raw, statement)
        if statement.program == "shift":
            count = statement.words[1].literal if len(statement.words) > 1 else "1"
            shifted = int(count) if count and count.isdecimal() else 1
            if values.arguments is not None:
                values.arguments = values.arguments[shifted:]
            else:
                values.shifted = None if blocks or values.shifted is None else values.shifted + shifted
        elif statement.program == "set" and [word.literal for word in statement.words[1:2]] == ["--"]:
            are_known = all(word.literal is not None for word in statement.words)
            values.arguments, values.shifted = statement.words[2:] if are_known else None, None
        statement.loops = loops | values.used_arguments
        return statement

    def _change_folder(self, raw: RawStatement, statement: Statement) -> None:
        """Follow $PWD through a `cd`."""
        target = statement.words[1] if statement.program == "cd" and len(statement.words) > 1 else None
        value: list[Text] | None = None
        if target is not None and target.is_known and raw.before != "||" and target.source_text != "-":
            before = self._values.words((Piece("variable", "$PWD", "PWD", quoted=True),), ())
            is_whole = target.source_text.startswith(("/", "$", "~"))
            parts = () if is_whole else (*before[0].pieces, Piece("text", "/"))
            value = [Text(merge_pieces((*parts, *target.pieces)))]
        if statement.blocks:
            self._values.set_in_block("PWD", value)
        else:
            self._values.set("PWD", value)

    def _assigned_texts(self, raw: RawStatement, pieces: Sequence[Piece]) -> list[Text]:
        """A value, which is not split at blanks; an array's element may be several words."""
        loops = self._values.loops(self._values.blocks)
        is_list = any(piece.kind == "list" for piece in pieces) and len(raw.assigns) == 1
        return self._values.words(pieces, loops) if is_list else [_unsplit_text(self._values, pieces, loops)]


def _unsplit_text(values: _Values, pieces: Sequence[Piece], loops: Collection[str]) -> Text:
    """A value, which is not split at blanks."""
    quoted_pieces = [piece._replace(quoted=True) if piece.kind == "variable" else piece for piece in pieces]
    words = values.words(quoted_pieces, loops)
    return words[0] if words else Text((Piece("text", ""),))


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
