"""What the variables of a script hold where a command stands, and what its words and tests are then."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Final

from nsw.convert import shell_reader
from nsw.convert.shell_reader import Block, Piece, RawStatement, Reader, Text, merge_pieces, source_text, word_pieces
from nsw.errors import UsageError

STARTS_PROFILER: Final = re.compile(
    r"(?:^|[\s/])(?:nsys|ncu|nv-nsight-cu-cli|nvprof|vtune|amplxe-cl|rocprof(?:v[23]|-compute)?)(?:\.exe)?(?:[\s)`]|$)"
)
ARRAY_INDICES: Final = ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID")
_COMPUTED: Final = "a variable that the script computes"
_PRINTED_DOCUMENT: Final = re.compile(r"\$\(\s*cat\s*<<-?\s*(['\"]?)(\w+)\1\n(.*\n|)\2\s*\)", re.DOTALL)
_ARGUMENT: Final = re.compile(r"\$(?:[1-9@*#]|\{#?[1-9@*#])")
START_FOLDER: Final = Text((Piece("variable", "$PWD", "PWD"),))
_LONGEST_VALUE: Final = 1 << 16  # characters of a variable; one that is longer is taken as computed
_LARGEST_OUTPUT: Final = 16 << 20  # characters of all words of a script, its variables replaced by their values


@dataclass(slots=True)
class ShellState:
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

    def copied(self) -> ShellState:
        """A copy, which later commands do not change."""
        return replace(self, variables=dict(self.variables))


class ShellValues:
    """The variables of a script, as far as it was read."""

    def __init__(self, script: str, arguments: Sequence[Text] | None) -> None:
        self._script = script
        self._room = _LARGEST_OUTPUT
        self.loops: dict[str, Sequence[str]] = {}  # of the loops that are read, over words that are known
        self.state = ShellState({"PWD": [START_FOLDER]}, arguments=arguments)
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
        """The value behind `NAME+=VALUE`; None: not known.

        Args:
            name: The variable.
            value: What is appended.
            is_array: Whether it is appended as elements.
        """
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
        names = shell_names(source_text(pieces))
        if any(starts_profiler(self.state.variables.get(name) or ()) for name in names):
            return False  # nsw starts the profiler: the job does not know where it is
        computed = [piece for piece in pieces if piece.kind == "computed"]
        others_known = all(piece.kind in {"text", "variable", "shell"} for piece in pieces if piece.kind != "computed")
        computed_before = [self.state.variables.get(name) or () for name in names & self.state.exported]
        is_of_job = bool(computed) or any(word.computed for value in computed_before for word in value)
        return is_of_job and others_known and all(map(self.is_piece_of_job, computed))

    def is_piece_of_job(self, piece: Piece) -> bool:
        """Whether the job's shell computes a piece of a word as the script would."""
        if piece.name == "the shell's own" and re.search(r"RANDOM|SECONDS|\$\$", piece.text):
            return True
        names = shell_names(piece.text) - self.state.exported
        values = [None if name in self.loops else self.state.variables.get(name, ()) for name in names]
        if not all(value is not None and all(word.is_known for word in value) for value in values):
            return False
        element = _ELEMENT.fullmatch(piece.text)
        if piece.text.startswith("$((") or (element and element[2].isdecimal()):
            return True
        commands = self._commands_in(piece)
        inputs = [target[0] for raw in commands for sign, target in raw.redirects if sign == "<" and target]
        are_whole = all(path.kind == "variable" or path.text.startswith("/") for path in inputs)
        return bool(commands) and are_whole and all(_depends_on_job_alone(raw) for raw in commands)

    def _commands_in(self, piece: Piece) -> list[RawStatement]:
        """The commands of `$(...)`; none of other pieces."""
        if not piece.text.startswith(("$(", "`")):
            return []
        try:
            return list(Reader(piece.text.strip("`").removeprefix("$(").removesuffix(")"), self._script).statements())
        except UsageError:
            return []

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

    def whole_path(self, path: Text) -> Text | None:
        """A path, from the folder that the script is in; None: not known."""
        if path.source_text.startswith(("/", "$", "~")):
            return path
        folder = self.state.variables["PWD"]
        return None if not folder else Text(merge_pieces((*folder[0].pieces, Piece("text", f"/{path.source_text}"))))

    def _expand_path_command(self, piece: Piece) -> Sequence[Piece] | None:
        """What `cd FOLDER && pwd`, `realpath`, `dirname` and `basename` print; None: another command, or not known."""
        commands = self._commands_in(piece)
        programs = [source_text(raw.words[0]) if raw.words else "" for raw in commands]
        if programs not in _PATH_COMMANDS:
            return None
        words = [word for pieces in commands[0].words[1:] for word in self.words(pieces)]
        path, *rest = [word for word in words if not word.source_text.startswith("-")] or [Text(())]
        *before, last = path.pieces or (Piece("computed", ""),)
        if not path.is_known:
            return None
        if programs == ["basename"]:
            name = PurePosixPath(last.text).name
            suffix = rest[0].literal or "" if rest else ""
            return None if last.kind != "text" else [piece._replace(kind="text", text=name.removesuffix(suffix))]
        if programs != ["dirname"]:
            return (self.whole_path(path) or Text((piece,))).pieces
        if last.kind == "variable" or last.text.endswith("/.."):
            return merge_pieces([*path.pieces, Piece("text", "/..")])
        folder, slash, _ = last.text.rstrip("/").rpartition("/")
        text = folder or ("." if not slash else "" if before else "/")
        return None if before and not slash else [*before, *([last._replace(text=text)] if text else [])]

    def words(self, pieces: Sequence[Piece]) -> list[Text]:
        """The words that one of the script becomes: an array may hold several, unquoted values are split at blanks.

        Raises:
            UsageError: The script's words are too long in all.
        """
        fields: list[list[Piece]] = [[]]
        for piece in pieces:
            elements: Sequence[Text] | None = None
            if piece.kind == "list":
                elements = self.state.variables.get(piece.name.removeprefix("!"))
                if piece.name[0] == "!":
                    elements = elements and [Text((Piece("text", key),)) for key in self._elements(piece.name[1:])]
                elif piece.name[0] in "@*":
                    first = int(piece.name[2:] or 1) - 1
                    elements = self.state.arguments and self.state.arguments[first:]
            elif match := _ALTERNATIVE.fullmatch(piece.text):
                elements = self._alternative_words(match[1], match[2])
            parts = [self._expand_piece(piece)] if elements is None else [element.pieces for element in elements]
            for at, piece_group in enumerate(parts):
                fields += [[]] if at else []
                _append_pieces(fields, piece_group, is_split=not piece.quoted and piece.kind in {"variable", "list"})
        is_list = any(piece.kind == "list" for piece in pieces)
        if is_list:  # one without elements is no word, though it stands in quotes
            fields = [piece_group for piece_group in fields if any(piece.text for piece in piece_group)]
        texts = [Text(shell_reader.drop_quoting(piece_group)) for piece_group in fields if piece_group]
        self._room -= sum(len(piece.text) for text in texts for piece in text.pieces)
        if self._room < 0:  # a few KB of a script may name a long variable thousands of times
            raise UsageError(
                f"{self._script}: with its variables replaced by their values it has more than {_LARGEST_OUTPUT:,}"
                " characters",
                hint="`nsw init -- COMMAND` makes a recipe for one of its commands",
            )
        is_empty = not is_list and any(piece.quoted for piece in pieces)
        return texts or ([Text((Piece("text", ""),))] if is_empty else [])

    def _alternative_words(self, name: str, text: str) -> list[Text] | None:
        """The words of `${NAME:+TEXT}`, where it is known whether the variable has a value; else None."""
        value = self.state.variables.get(name)
        default = _DEFAULT.fullmatch(value[0].source_text) if value and len(value) == 1 else None
        if value is None or not (default or all(word.literal is not None for word in value)):
            return None
        raw = next(Reader(f": {text}\n", self._script).statements())
        is_set = default is not None or any(word.literal for word in value)
        return [word for pieces in raw.words[1:] for word in self.words(pieces)] if is_set else []

    def loop_words(self, block: Block) -> list[str]:
        """The words that a loop goes over; empty where they are not known."""
        if counter := _COUNTER.match(block.head):
            return self._counted(counter)
        words = [word for pieces in (block.loop[1] if block.loop else ()) for word in self.words(pieces)]
        texts = [text for word in words for text in self._expand_sequence(word)]
        return [] if None in texts else [text for text in texts if text is not None]

    def _counted(self, counter: re.Match[str]) -> list[str]:
        """The values of the variable of `for ((i = 0; i < N; i++))`."""
        texts = [counter[2], counter[4], counter[6] or "1"]
        expanded = [Text((self._expand_arithmetic(Piece("computed", f"(({text}))")),)).literal for text in texts]
        number, bound, step = expanded
        sign, values = (counter[5] or counter[7] or counter[8])[0], list[str]()
        while number and bound and step and _calculate(f"{number} {counter[3]} {bound}") and len(values) < 1000:
            values.append(number)
            number = str(_calculate(f"{number} {sign} {step}"))
        return values

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

        text = piece.text.removeprefix("$")[2:-2].replace('"', "")
        if self.state.arguments is not None:
            text = re.sub(r"\$(?:#|\{#\})", str(len(self.state.arguments)), text)
        value = _calculate(_NAME_OR_NUMBER.sub(number_of, text))
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

    def _expand_expression(self, text: str) -> str | None:
        """The value of `${NAME%.*}` and its like; None: not known."""
        if match := _EXPRESSION.fullmatch(text):
            variable = Piece("variable", f"${match[1]}", match[1], quoted=True)
            value = Text(tuple(self._expand_piece(variable))).literal
            words = [self.words(word_pieces(f"x{part}", self._script)) for part in match[3].split("/", 1)]
            parts = [word[0].as_pattern if len(word) == 1 else None for word in words]
            if value is None or None in parts or len(value) > _LONGEST_CUT:
                return None
            return _cut(value, match[2], [part[1:] for part in parts if part is not None])
        if match := _ELEMENT.fullmatch(text):
            number = Text((self._expand_arithmetic(Piece("computed", f"(({match[2]}))")),)).literal
            key = unsplit_text(self, word_pieces(match[2], self._script)).literal
            elements = self._elements(match[1])
            return elements.get(key or "", elements.get(number or ""))
        return None

    def _elements(self, name: str) -> dict[str, str]:
        """The elements of an array by their indices or keys, as far as they are known."""
        elements: dict[str, str] = {}
        for at, element in enumerate(self.state.variables.get(name) or ()):
            match = _KEYED.fullmatch(element.source_text) if element.is_known else None
            if match is not None and "$" not in match[0]:
                elements[match[1]] = match[2]
            elif element.literal is not None:
                elements[str(at)] = element.literal
        return elements

    def _expand_piece(self, piece: Piece) -> Sequence[Piece]:
        if _SCRIPT.fullmatch(piece.text):  # a batch system runs a copy of it: what is meant is the file
            file = Piece("text", self._script)
            return [file] if file.text[0] == "/" else [Piece("variable", "$PWD"), file._replace(text=f"/{file.text}")]
        if piece.kind == "computed" and piece.text.startswith(("$((", "((")):
            return [self._expand_arithmetic(piece)]
        if piece.kind == "computed" and (printed := _PRINTED_DOCUMENT.fullmatch(piece.text)):
            text = printed[3].rstrip("\n")
            if printed[1]:
                return [piece._replace(kind="text", text=text)]
            quoted = text.replace('"', '\\"')
            return unsplit_text(self, word_pieces(f'"{quoted}"', self._script)).pieces
        if piece.kind == "computed" and (path := self._expand_path_command(piece)) is not None:
            return path
        if piece.kind == "computed" and (text := self._expand_expression(piece.text)) is not None:
            return [piece._replace(kind="text", text=text)]
        if piece.text in {"$#", "${#}"} and self.state.arguments is not None:
            return [Piece("text", str(len(self.state.arguments)), quoted=piece.quoted)]
        if piece.kind != "variable":
            return [piece]
        if piece.name.isdecimal():
            return self._expand_argument(piece)
        if piece.name in ARRAY_INDICES:
            return [piece._replace(kind="computed", name="the index of an array job")]
        if piece.name in self.loops:
            return [Piece("parameter", piece.name)]
        if piece.name not in self.state.variables:
            return [self._expand_default(piece)]
        value = self.state.variables[piece.name]
        is_known = value is not None and (all(word.literal is not None for word in value) or starts_profiler(value))
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


_SCRIPT: Final = re.compile(r"\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?(?::-\$\{?0\}?)?\})")
_PATH_COMMANDS: Final = (["cd", "pwd"], ["realpath"], ["readlink"], ["dirname"], ["basename"])
_ELEMENT: Final = re.compile(r"\$\{(\w+)\[([^]@*]+)\]\}")  # of an array
_KEYED: Final = re.compile(r"\[([^]]+)\]=(.*)", re.DOTALL)
_EXPRESSION: Final = re.compile(r"\$\{(\w+)(##?|%%?|//?)((?:[^{}\\]|\$\{?\w+\}?)*)\}")
_ALTERNATIVE: Final = re.compile(r"\$\{(\w+):?\+(.*)\}", re.DOTALL)
_DEFAULT: Final = re.compile(r"\$\{\w+:-[^}$]+\}")  # which is never empty
_LONGEST_CUT: Final = 200  # characters of a value of which a part is cut


def _cut(value: str, sign: str, parts: Sequence[str]) -> str:
    """The value of `${NAME#PATTERN}` and its like."""
    pattern, size = "/".join(parts) if sign[0] in "#%" else parts[0], len(value)
    ends = range(size + 1) if sign in {"#", "%"} else range(size, -1, -1)
    if sign[0] == "#":
        return next((value[at:] for at in ends if fnmatchcase(value[:at], pattern)), value)
    if sign[0] == "%":
        return next((value[: size - at] for at in ends if fnmatchcase(value[size - at :], pattern)), value)
    cut, at = "", 0
    while at < size:
        end = next((end for end in range(size, at, -1) if fnmatchcase(value[at:end], pattern)), at)
        if end > at and sign == "/":
            return cut + "".join(parts[1:]) + value[end:]
        cut, at = (cut + "".join(parts[1:]), end) if end > at else (cut + value[at], at + 1)
    return cut


_NAME_OR_NUMBER: Final = re.compile(r"\$?\{?([A-Za-z_]\w*|\d+)\}?")
_OPERATIONS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_NUMBER_TESTS: Final = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}


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
    "srun",  # of hostname, as PyTorch's examples have it
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
    is_known = is_known and (source_text(raw.words[0]) != "srun" or "hostname" in plain)
    if is_known and source_text(raw.words[0]) == "mktemp":
        return True
    return is_known and all(text.startswith(("/", "-", "+")) for text in files)


def starts_profiler(value: Sequence[Text]) -> bool:
    """Whether words name a profiler."""
    return STARTS_PROFILER.search(" ".join(word.source_text for word in value)) is not None


_COUNTER: Final = re.compile(
    r"for\s*\(\(\s*(\w+)\s*=([^;]*);\s*\1\s*([<>]=?)([^;]*);\s*(?:\1\s*([-+*])=(.*)|\1(\+\+|--)|(\+\+|--)\1)\s*\)\)"
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


def shell_names(text: str) -> set[str]:
    """The variables that a piece of shell names."""
    sums = re.findall(r"\$\(\((.*?)\)\)", text)
    return set(re.findall(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)", text)) | set(re.findall(r"[A-Za-z_]\w*", " ".join(sums)))


def pattern_of(pattern: Sequence[Piece]) -> str:
    """A pattern of a `case` as fnmatch has it: what is quoted means itself."""
    return "".join(re.sub(r"([*?\[])", r"[\1]", p.text) if p.quoted else p.text for p in pattern)


def test_result(words: Sequence[str]) -> bool | None:
    """The result of `[ WORDS ]`; None: not known, as of a test of files."""
    for sign in ("||", "-o", "&&", "-a"):
        if sign in words[1:-1]:
            at = words.index(sign, 1)
            left, right = test_result(words[:at]), test_result(words[at + 1 :])
            decisive = sign in {"||", "-o"}
            return decisive if decisive in {left, right} else None if None in {left, right} else not decisive
    if words[:1] == ["!"] and len(words) > 1:
        return None if (truth := test_result(words[1:])) is None else not truth
    if len(words) < 2:
        return bool(words and words[0])
    if len(words) == 2:
        return {"-n": bool(words[1]), "-z": not words[1]}.get(words[0])
    left_word, sign, right_word = (*words, "")[:3]
    if len(words) == 3 and sign in {"=", "==", "!="}:
        return fnmatchcase(left_word, right_word) is (sign != "!=")
    if len(words) == 3 and sign in _NUMBER_TESTS and left_word.isdecimal() and right_word.isdecimal():
        return bool(_calculate(f"{int(left_word)} {_NUMBER_TESTS[sign]} {int(right_word)}"))
    return None


def unsplit_text(values: ShellValues, pieces: Sequence[Piece]) -> Text:
    """A value, which is not split at blanks."""
    quoted_pieces = [piece._replace(quoted=True) if piece.kind == "variable" else piece for piece in pieces]
    words = values.words(quoted_pieces)
    pieces = [piece for word in words for piece in (Piece("text", " "), *word.pieces)][1:]
    return Text(tuple(pieces)) if len(words) != 1 else words[0]
