"""A job script taken apart without being run: its statements, with the values that its variables have there.

Words are split and expanded as bash does where that needs no execution. What a command prints, arithmetic and variables
that were set in a loop or a conditional are not known: such a piece of a word is `computed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED: Final = re.compile(r"([A-Za-z_]\w*|[0-9@*#?$!-])(\[[@*]\])?")
_OPERATORS: Final = (";;&", ";;", ";&", "&&", "||", "|&", "&>>", "&>", ";", "&", "|", "(", ")", "\n")
_REDIRECTION: Final = re.compile(r"\d*(?:<<<|<<-|<<|>>|>\||>&|<&|<>|>|<)|&>>|&>")
_OPENING: Final = {
    "if": "fi",
    "for": "done",
    "while": "done",
    "until": "done",
    "select": "done",
    "case": "esac",
    "{": "}",
}
_CLOSING: Final = frozenset({"fi", "done", "esac", "}"})
_WITHIN: Final = frozenset({"then", "do", "else", "elif", "!", "time"})  # keywords that a command follows
_DECLARING: Final = frozenset({"export", "declare", "typeset", "local", "readonly"})
_JOINING: Final = frozenset({"&&", "||", "|", "|&"})
_END_OF_HEAD: Final = re.compile(r";|(?<!\S)#")
_SHELLS: Final = re.compile(r"(ba|da|z|k)?sh\d*|")
_PROCESSES: Final = ("<(", ">(")
_STARTS_PROFILER: Final = re.compile(
    r"(?:^|[\s/])(?:nsys|ncu|nv-nsight-cu-cli|nvprof|vtune|amplxe-cl|rocprof(?:v[23]|-compute)?)(?:[\s)`]|$)"
)
LOOKED_UP: Final = re.compile(r"\$\((?:which|command -v|type -p) +([\w.-]+)\)|`(?:which|command -v) +([\w.-]+)`")
STARTED_IN_TEXT: Final = re.compile(
    r"(?<![\w./-])(?:\S*/)?(?:nsys|ncu|nvprof|vtune|rocprof(?:v\d)?) +(?:profile|launch|-)"
)
_ARRAY_INDICES: Final = frozenset(
    {"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID"}
)
_SCRIPT: Final = r'"?\$(?:0|\{?BASH_SOURCE(?:\[0\])?(?::-\$0)?\}?)"?'
_OWN_FOLDER: Final = re.compile(  # the usual commands for the folder that a script is in
    rf"\$\((?:dirname (?:-- )?{_SCRIPT}"
    rf'|cd (?:-- )?"?\$\(dirname (?:-- )?{_SCRIPT}\)"?(?: [&\d]?>[^;]*)? && pwd(?: -P)?)\)'
)
_COMPUTED: Final = "a variable that the script computes"
_PRINTED_FOLDER: Final = re.compile(r"\$\( *pwd(?: -[PL])? *\)|` *pwd(?: -[PL])? *`")
_SPECIAL: Final = frozenset(" \t\n;&|()<>")


class Piece(NamedTuple):
    """A part of a word.

    Attributes:
        kind: text; shell (kept as the shell has it, such as *); variable (of the environment); list (of all arguments
            or elements); computed; parameter (of a loop over words).
        text: What is written; of a variable the expression, of a parameter its name.
        name: The name of a variable; the reason of what is computed.
        quoted: Whether it stands in quotes: then it is not split at blanks.
    """

    kind: str
    text: str
    name: str = ""
    quoted: bool = False

    @property
    def text_shown(self) -> str:
        """As a recipe has it: a parameter in its braces."""
        return f"{{{{ {self.text} }}}}" if self.kind == "parameter" else self.text


@dataclass(frozen=True, slots=True)
class Text:
    """A word whose variables have their values."""

    pieces: tuple[Piece, ...]

    @property
    def literal(self) -> str | None:
        """What it is whenever it is run; None where only the job knows."""
        return "".join(p.text for p in self.pieces) if all(p.kind == "text" for p in self.pieces) else None

    @property
    def source_text(self) -> str:
        """As a person reads it."""
        return "".join(piece.text_shown for piece in self.pieces)

    @property
    def computed(self) -> Piece | None:
        """The first piece that is not known."""
        return next((piece for piece in self.pieces if piece.kind in {"computed", "list"}), None)


@dataclass(frozen=True, slots=True)
class Block:
    """A loop, a conditional, a function, a subshell: what begins at `line` with `head`.

    Attributes:
        loop: Of a `for` over words: its variable and the words.
        branch: Of a conditional: how many `else`, `elif` or patterns came before.
    """

    line: int
    head: str
    loop: tuple[str, tuple[tuple[Piece, ...], ...]] | None = None
    branch: int = 0


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
        loops: Of the loops over words that are known: the variable, and the words.
        is_condition: Whether it decides of an `if` or `while`.
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
    document: str = ""

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
    return set(re.findall(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)", text))


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
    reader = _Reader(text, name)
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


# --- the reader: characters -> statements, with words that are not expanded yet ---------------------------------------


@dataclass(slots=True)
class _Raw:
    """A command with its words as pieces."""

    line: int
    last: int = 0
    begin: int = 0
    end: int = 0
    text: str = ""
    before: str = ""
    words: list[tuple[Piece, ...]] = field(default_factory=list)
    assigns: list[tuple[str, bool, list[tuple[Piece, ...]] | None]] = field(default_factory=list)  # name, +=, value
    redirects: list[tuple[str, tuple[Piece, ...]]] = field(default_factory=list)
    blocks: tuple[Block, ...] = ()
    is_condition: bool = False
    document: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.assigns or self.redirects)


class _Reader:
    """Reads a script from its beginning to its end."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._at = 0
        self._blocks: list[tuple[str, Block]] = []  # the word that ends it, and the block
        self._documents: list[tuple[str, bool, _Raw]] = []  # here-documents that begin after this line
        self.block_ends: dict[int, int] = {}

    @property
    def _line_number(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def statements(self) -> Iterator[_Raw]:
        """Read the commands in order.

        Raises:
            UsageError: A quote, parenthesis or block has no end.
        """
        raw = self._new_command("")
        while self._at < len(self._text):
            if self._skip_blanks():
                continue
            if (operator := self._take_operator()) is None:
                self._take_word(raw)
            elif operator == "(" and raw.words and self._text.startswith(")", self._at):
                # `NAME() {`: what is read so far is the name, and stands behind the parenthesis
                self._at += 1
                self._open_block("}", raw.line, f"function {_source_text(raw.words[-1])}")
                self._skip_to("{")
                raw = self._new_command("")
            else:
                yield from self._finish_command(raw, operator)
                is_blank_line = operator == "\n" and raw.is_empty  # which may follow an operator
                raw = self._new_command(operator if operator in _JOINING else raw.before if is_blank_line else "")
        yield from self._finish_command(raw, "\n")
        if self._blocks:
            block = self._blocks[-1][1]
            raise UsageError(f"{self._name}:{block.line}: {block.head} has no end")

    def _new_command(self, before: str) -> _Raw:
        return _Raw(self._line_number, begin=self._at, before=before)

    def _skip_blanks(self) -> bool:
        text, at = self._text, self._at
        if text[at] in " \t":
            self._at += 1
        elif text.startswith("\\\n", at):
            self._at += 2
        elif text[at] == "#" and (at == 0 or text[at - 1] in _SPECIAL):
            end = text.find("\n", at)
            self._at = len(text) if end < 0 else end
        else:
            return False
        return True

    def _take_operator(self) -> str | None:
        if self._redirection_at() is not None:
            return None
        for operator in _OPERATORS:
            if self._text.startswith(operator, self._at):
                if operator == "(" and self._text.startswith("((", self._at):
                    return None
                self._at += len(operator)
                return operator
        return None

    def _redirection_at(self) -> str | None:
        if self._text.startswith(_PROCESSES, self._at):
            return None
        match = _REDIRECTION.match(self._text, self._at)
        return match[0] if match else None

    def _take_word(self, raw: _Raw) -> None:
        """Parse the next word, assignment or redirection of a command."""
        if raw.is_empty:
            raw.line, raw.begin = self._line_number, self._at
        if (operator := self._redirection_at()) is not None:
            self._at += len(operator)
            while self._at < len(self._text) and self._text[self._at] in " \t":
                self._at += 1
            target = self._parse_word()
            if "<<" in operator and operator != "<<<":
                self._documents.append((_source_text(target), any(piece.quoted for piece in target), raw))
            raw.redirects.append((operator, target))
        elif self._text.startswith("((", self._at):
            end = self._find_nested_end("((", "))")
            raw.words.append((Piece("computed", self._text[self._at : end], "arithmetic"),))
            self._at = end
        elif not raw.words and (match := _ASSIGNMENT.match(self._text, self._at)):
            self._at = match.end()
            raw.assigns.append((match[1], bool(match[2]), self._parse_value()))
        else:
            word = self._parse_word()
            if raw.words and _source_text(raw.words[0]) in _DECLARING and self._text.startswith("(", self._at):
                self._parse_value()  # the elements of an array
                word = (*word, Piece("computed", "(...)", "an array"))
            if _source_text(word) == "[[" and not raw.words:
                end = self._text.find("]]", self._at)
                self._at = len(self._text) if end < 0 else end + 2
                word = (Piece("computed", "[[", "test"),)
            raw.words.append(word)
            self._take_keyword(raw)
        raw.last, raw.end = self._line_number, self._at

    def _parse_value(self) -> list[tuple[Piece, ...]] | None:
        """Parse an assigned value: a word, or the words of an array."""
        if not self._text.startswith("(", self._at):
            return [self._parse_word()] if self._at < len(self._text) and self._text[self._at] not in _SPECIAL else [()]
        self._at += 1
        words: list[tuple[Piece, ...]] = []
        while not self._text.startswith(")", self._at):
            if self._at >= len(self._text):
                raise UsageError(f"{self._name}:{self._line_number}: an array has no end")
            if self._text[self._at] in " \t\n":
                self._at += 1
            elif not self._skip_blanks():
                words.append(self._parse_word())
        self._at += 1
        return words

    def _take_keyword(self, raw: _Raw) -> None:
        """Open or close the blocks of a keyword; the words behind it are a command of their own."""
        word = _source_text(raw.words[-1])
        if word == "{" and len(raw.words) == 3 and _source_text(raw.words[0]) == "function":
            self._open_block("}", raw.line, f"function {_source_text(raw.words[1])}")
            raw.words.clear()
            return
        is_pattern = self._text.startswith(")", self._at) and self._blocks and self._blocks[-1][0] == "esac"
        if raw.assigns or len(raw.words) > 1 or is_pattern:
            return
        if word in _CLOSING and self._blocks:
            end, block = self._blocks.pop()
            if end != word:
                raise UsageError(f"{self._name}:{raw.line}: {word} where {end} of line {block.line} is expected")
            self.block_ends[block.line] = self._line_number
            raw.words.clear()
        elif word in _WITHIN:
            raw.words.clear()
            raw.is_condition = word == "elif" or (raw.is_condition and word == "!")
            if word in {"else", "elif"}:
                self._next_branch()
        elif word in _OPENING:
            self._begin_block(raw, word)

    def _begin_block(self, raw: _Raw, word: str) -> None:
        line = self._line_number
        end = self._text.find("\n", self._at)
        rest = self._text[self._at : len(self._text) if end < 0 else end]
        head = f"{word} {_END_OF_HEAD.split(rest)[0].strip()}".strip()
        loop = None
        if word in {"for", "select"}:
            loop = self._parse_loop_words()
        elif word == "case":
            self._skip_to("in")
        raw.words.clear()
        self._open_block(_OPENING[word], line, head, loop)
        raw.is_condition = word in {"if", "while", "until"}

    def _parse_loop_words(self) -> tuple[str, tuple[tuple[Piece, ...], ...]] | None:
        match = re.compile(r"\s*([A-Za-z_]\w*)\s+in\b").match(self._text, self._at)
        if match is None:  # for ((...)), or over the arguments
            self._skip_to("do", keep=True)
            return None
        self._at = match.end()
        words = []
        while self._at < len(self._text) and self._text[self._at] not in ";\n":
            if not self._skip_blanks():
                words.append(self._parse_word())
        return match[1], tuple(words)

    def _open_block(
        self, end: str, line: int, head: str, loop: tuple[str, tuple[tuple[Piece, ...], ...]] | None = None
    ) -> None:
        self._blocks.append((end, Block(line, head, loop)))

    def _next_branch(self) -> None:
        if self._blocks:
            end, block = self._blocks[-1]
            self._blocks[-1] = end, replace(block, branch=block.branch + 1)

    def _skip_to(self, word: str, *, keep: bool = False) -> None:
        match = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self._text, self._at)
        if match:
            self._at = match.start() if keep else match.end()

    def _skip_documents(self) -> None:
        """Pass over the here-documents that begin on the next line."""
        while self._documents:
            delimiter, is_literal, raw = self._documents.pop(0)
            begin = self._at
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line, self._at = self._text[self._at : end], end + 1
                if line.strip() == delimiter:
                    break
            document = self._text[begin : self._at].rstrip("\n").rpartition("\n")[0]
            raw.document = document if is_literal else re.sub(r"\\([$`\\])", r"\1", document)

    def _finish_command(self, raw: _Raw, operator: str) -> Iterator[_Raw]:
        """The command that ends here; handles subshells, here-documents and patterns of a `case`."""
        if operator == "\n":
            self._skip_documents()
        if operator == ")" and self._blocks and self._blocks[-1][0] == "esac":
            self._next_branch()
            return  # a pattern
        raw.blocks = tuple(block for _, block in self._blocks)
        if not raw.is_empty:
            raw.text = self._text[raw.begin : raw.end]
            yield from self._profiled_substitutions(raw)
            yield raw
        if operator == "(":
            self._open_block(")", self._line_number, "(" + self._text[self._at :].partition("\n")[0].strip())
        elif operator == ")" and self._blocks and self._blocks[-1][0] == ")":
            self.block_ends[self._blocks.pop()[1].line] = self._line_number

    def _profiled_substitutions(self, raw: _Raw) -> Iterator[_Raw]:
        """The commands in `$(...)` of a command, where they start a profiler."""
        words = [*raw.words, *(word for _, _, value in raw.assigns for word in value or ())]
        for piece in (piece for word in words for piece in word):
            if piece.kind == "computed" and STARTED_IN_TEXT.search(piece.text):
                text = piece.text.removeprefix("$").strip("`")
                for inner in _Reader(text, self._name).statements():
                    inner.line, inner.last = raw.line + inner.line - 1, raw.line + inner.last - 1
                    inner.blocks = (*raw.blocks, *(b for b in inner.blocks if not b.head.startswith(("(", "{"))))
                    yield inner

    # words

    def _parse_word(self) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        text = self._text
        if text.startswith(_PROCESSES, self._at):
            begin, self._at = self._at, self._find_nested_end("<(", ")")
            return (Piece("computed", text[begin : self._at], "the output of a command"),)
        while self._at < len(text) and text[self._at] not in _SPECIAL:
            char = text[self._at]
            if char == "'":
                end = self._find_closing_quote("'")
                pieces.append(Piece("text", text[self._at + 1 : end], quoted=True))
                self._at = end + 1
            elif char == '"':
                self._parse_double_quotes(pieces)
            elif char == "\\":
                if not text.startswith("\\\n", self._at):
                    pieces.append(Piece("text", text[self._at + 1 : self._at + 2], quoted=True))
                self._at += 2
            elif char in "$`" and (piece := self._parse_expansion(quoted=False)) is not None:
                pieces.append(piece)
            else:
                is_pattern = char in "*?" or (char == "~" and not pieces)
                pieces.append(Piece("shell" if is_pattern else "text", char))
                self._at += 1
        if not pieces and self._at < len(text) and text[self._at] in "()":
            raise UsageError(f"{self._name}:{self._line_number}: a parenthesis where a word is expected")
        return _merge_pieces(pieces)

    def _parse_double_quotes(self, pieces: list[Piece]) -> None:
        line = self._line_number
        self._at += 1
        pieces.append(Piece("text", "", quoted=True))
        while not self._text.startswith('"', self._at):
            if self._at >= len(self._text):
                raise UsageError(f"{self._name}:{line}: a quote begins and does not end")
            char = self._text[self._at]
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in {"$", "`", '"', "\\", "\n"}:
                escaped = self._text[self._at + 1]
                pieces.append(Piece("text", "" if escaped == "\n" else escaped, quoted=True))
                self._at += 2
            elif char in "$`" and (piece := self._parse_expansion(quoted=True)) is not None:
                pieces.append(piece)
            else:
                pieces.append(Piece("text", char, quoted=True))
                self._at += 1
        self._at += 1

    def _parse_expansion(self, *, quoted: bool) -> Piece | None:
        """Parse an expansion that begins with $ or a backtick; None: a plain dollar sign."""
        text, at = self._text, self._at
        if text[at] == "`":
            match = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL).match(text, at)
            if match is None:
                raise UsageError(f"{self._name}:{self._line_number}: a quote begins and does not end")
            self._at = match.end()
            return _substitution_piece(match[0], "the output of a command", quoted)
        for opening, closing, reason in (("$((", "))", "arithmetic"), ("$(", ")", "the output of a command")):
            if text.startswith(opening, at):
                self._at = self._find_nested_end(opening, closing)
                return _substitution_piece(text[at : self._at], reason, quoted)
        if text.startswith("${", at):
            self._at = self._find_nested_end("${", "}")
            return _braced_piece(text[at : self._at], quoted)
        if (match := _NAME.match(text, at + 1)) is None:
            return None
        self._at = match.end()
        return _variable_piece(match[0], text[at : self._at], quoted)

    def _find_closing_quote(self, quote: str) -> int:
        end = self._text.find(quote, self._at + 1)
        if end < 0:
            raise UsageError(f"{self._name}:{self._line_number}: a quote begins and does not end")
        return end

    def _find_nested_end(self, opening: str, closing: str) -> int:
        """Where a nested expression ends."""
        at, depth, begin = self._at + len(opening), 1, self._at
        pair = {")": "(", "))": "(", "}": "{"}[closing]
        depth += opening.count("(") - 1 if closing != "}" else 0
        while at < len(self._text):
            char = self._text[at]
            if char == "'" and closing == ")":
                at = max(at, self._text.find("'", at + 1))
            elif char == "\\" and closing == ")":
                at += 1
                char = ""
            elif char == '"' and closing == ")":  # what is quoted closes nothing
                self._at = at
                self._parse_double_quotes([])
                at, self._at = self._at, begin
                continue
            depth += (char == pair) - (char == closing[0])
            at += 1
            if depth == 0:
                return at
        raise UsageError(f"{self._name}:{self._line_number}: {opening} begins and does not end")


def _merge_pieces(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Merge neighbours of one kind into one piece; pieces that are quoted differently stay apart."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last is not None and piece.kind == last.kind == "text" and piece.quoted == last.quoted:
            merged[-1] = last._replace(text=last.text + piece.text)
        else:
            merged.append(piece)
    return tuple(merged)


def _drop_quoting(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of a word after it was split, when only the quoting of the environment's variables matters."""
    unquoted = [piece if piece.kind == "variable" else piece._replace(quoted=False) for piece in pieces]
    return _merge_pieces([piece for piece in unquoted if piece.text] or unquoted[:1])


def _source_text(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _variable_piece(name: str, text: str, quoted: bool) -> Piece:
    if name in {"@", "*"}:
        return Piece("list", text, name, quoted)
    if name.isidentifier() or name.isdecimal():
        return Piece("variable", text, name, quoted)
    return Piece("computed", text, "the shell's own", quoted)


def _substitution_piece(text: str, reason: str, quoted: bool) -> Piece:
    """A command in a word; the folder of the script is that of the submission, whatever the script changes to."""
    if _PRINTED_FOLDER.fullmatch(text):
        return Piece("variable", "$PWD", "PWD", quoted)
    if _OWN_FOLDER.fullmatch(text):
        return Piece("variable", "$PWD", "", quoted)
    return Piece("computed", text, reason, quoted)


def _braced_piece(text: str, quoted: bool) -> Piece:
    inner = text[2:-1]
    match = _BRACED.fullmatch(inner)
    if match and match[2]:
        return Piece("list", text, match[1], quoted)
    if match:
        return _variable_piece(match[1], text, quoted)
    if re.fullmatch(r"@:\d+", inner):
        return Piece("list", text, inner, quoted)
    name = _NAME.match(inner)
    if name and (name[0].isidentifier() or name[0].isdecimal()) and inner[name.end() :].startswith((":-", "-")):
        return Piece("variable", text, name[0], quoted)  # a default, which the job knows whether it needs
    return Piece("computed", text, "an expression of the shell", quoted)


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
        self.arguments: Sequence[Text] | None = None  # None: not known

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
        """The pieces of $1; where only the caller knows it, its default in ${1:-default}."""
        number = int(piece.name)
        if self.arguments is not None and number <= len(self.arguments) and number:
            return self.arguments[number - 1].pieces
        default = re.fullmatch(r"\$\{\d+:?-(.*)\}", piece.text)
        if default and not set(default[1]) & set("$`\\"):
            return [Piece("text", default[1].strip("\"'"))]
        if self.arguments is not None and number and not default:
            return []
        return [piece._replace(kind="computed", name="an argument of the script")]

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
        texts = [Text(_drop_quoting(piece_group)) for piece_group in fields if piece_group]
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
                words = [
                    text
                    for pieces in block.loop[1]
                    for word in self.words(pieces, ())
                    for text in _expand_sequence(word)
                ]
                self._loop_words[id(block)] = [] if None in words else [word for word in words if word is not None]
            if block.loop is not None and (known_words := self._loop_words[id(block)]):
                lists[block.loop[0]] = known_words
            elif block.loop is not None:
                self._variables.setdefault(block.loop[0], None)
            elif counter := _COUNTER.match(block.head):
                self._variables.setdefault(counter[1], None)
        return lists

    def _expand_piece(self, piece: Piece, loops: Collection[str]) -> Sequence[Piece]:
        if piece.kind != "variable":
            return [piece]
        if piece.name.isdecimal():
            return self._expand_argument(piece)
        if piece.name in _ARRAY_INDICES:
            return [piece._replace(kind="computed", name="the index of an array job")]
        if piece.name in loops:
            return [Piece("parameter", piece.name)]
        if piece.name not in self._variables:
            return [piece]
        value = self._variable_value(piece.name)
        is_known = value is not None and (all(word.literal is not None for word in value) or _starts_profiler(value))
        if piece.name in self._exported and not is_known:
            return [piece]  # the job has it
        if value is None:
            return [piece._replace(kind="computed", name=_COMPUTED)]
        return [
            part._replace(text=piece.text, name=_COMPUTED)
            if part.kind == "computed" and part.name != _COMPUTED and not LOOKED_UP.fullmatch(part.text)
            else part._replace(quoted=piece.quoted if part.kind == "variable" else part.quoted)
            for part in (value[0].pieces if value else ())
        ]


def _starts_profiler(value: Sequence[Text]) -> bool:
    return _STARTS_PROFILER.search(" ".join(word.source_text for word in value)) is not None


_COUNTER: Final = re.compile(r"for\s*\(\(\s*(\w+)")
_SEQUENCE: Final = re.compile(r"(?:\$\(|`)seq +(-?\d+)(?: +(-?\d+))?(?: +(-?\d+))? *[)`]|\{(-?\d+)\.\.(-?\d+)\}")


def _expand_sequence(word: Text) -> list[str | None]:
    """The words of `$(seq 1 4)` and of `{1..4}`; of other words the word itself, None where it is not known."""
    match = _SEQUENCE.fullmatch(word.source_text)
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

    def __init__(self, raw: Sequence[_Raw], script: str, arguments: Sequence[Text] | None) -> None:
        self._raw = raw
        self._values = _Values(script)
        self._values.arguments = arguments
        self._count = 0
        first_words = {_source_text(statement.words[0]) for statement in raw if statement.words}
        self._bodies: dict[str, list[tuple[int, _Raw]]] = {}  # how deep the function's block is, and the statement
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

    def _evaluate(self, raw: _Raw, blocks: tuple[Block, ...], depth: int) -> Iterator[Statement]:
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

    def _evaluate_command(self, raw: _Raw, blocks: tuple[Block, ...]) -> Statement:
        values = self._values
        loops = values.loops(blocks)
        statement = Statement(raw.line, raw.last, raw.text, raw.before, blocks=blocks, loops=loops)
        statement.words = [word for pieces in raw.words for word in values.words(pieces, loops)]
        statement.redirects = [(sign, _unsplit_text(values, target, loops)) for sign, target in raw.redirects]
        statement.is_condition, statement.document = raw.is_condition, raw.document
        is_export = bool(raw.words) and _source_text(raw.words[0]) == "export"
        for name, append, assigned in _assignments(raw):
            value = (
                None
                if assigned is None
                else [word for pieces in assigned for word in self._assigned_texts(raw, pieces)]
            )
            if append:
                value = values.appended(name, value, is_array=f"{name}+=(" in raw.text)
            statement.assigns.append((name, value))
            if any(not block.head.startswith("{") for block in blocks):
                values.set_in_block(name, value)
            elif not (raw.assigns and raw.words):  # else it is set for that command alone
                values.set(name, None if raw.before == "||" else value, exported=is_export)
        if statement.program in {"cd", "pushd", "popd"}:
            self._change_folder(raw, statement)
        if statement.program == "shift" and values.arguments is not None:
            count = statement.words[1].literal if len(statement.words) > 1 else "1"
            values.arguments = values.arguments[int(count) if count and count.isdecimal() else 1 :]
        return statement

    def _change_folder(self, raw: _Raw, statement: Statement) -> None:
        """Follow $PWD through a `cd`."""
        target = statement.words[1] if statement.program == "cd" and len(statement.words) > 1 else None
        value: list[Text] | None = None
        if target is not None and target.computed is None and raw.before != "||" and target.source_text != "-":
            before = self._values.words((Piece("variable", "$PWD", "PWD", quoted=True),), ())
            is_whole = target.source_text.startswith(("/", "$", "~"))
            parts = () if is_whole else (*before[0].pieces, Piece("text", "/"))
            value = [Text(_merge_pieces((*parts, *target.pieces)))]
        if statement.blocks:
            self._values.set_in_block("PWD", value)
        else:
            self._values.set("PWD", value)

    def _assigned_texts(self, raw: _Raw, pieces: Sequence[Piece]) -> list[Text]:
        """A value, which is not split at blanks; an array's element may be several words."""
        loops = self._values.loops(self._values.blocks)
        is_list = any(piece.kind == "list" for piece in pieces) and len(raw.assigns) == 1
        return self._values.words(pieces, loops) if is_list else [_unsplit_text(self._values, pieces, loops)]


def _unsplit_text(values: _Values, pieces: Sequence[Piece], loops: Collection[str]) -> Text:
    """A value, which is not split at blanks."""
    quoted_pieces = [piece._replace(quoted=True) if piece.kind == "variable" else piece for piece in pieces]
    words = values.words(quoted_pieces, loops)
    return words[0] if words else Text((Piece("text", ""),))


def _assignments(raw: _Raw) -> list[tuple[str, bool, list[tuple[Piece, ...]] | None]]:
    """What a command assigns, also by `export`, `let` and `read`."""
    first = _source_text(raw.words[0]) if raw.words else ""
    if first in _DECLARING:
        assignments: list[tuple[str, bool, list[tuple[Piece, ...]] | None]] = []
        for word in raw.words[1:]:
            match = _ASSIGNMENT.match(word[0].text) if word and word[0].kind == "text" and not word[0].quoted else None
            if match:
                rest = (word[0]._replace(text=word[0].text[match.end() :]), *word[1:])
                assignments.append(
                    (match[1], bool(match[2]), [tuple(piece for piece in rest if piece.text or piece.quoted)])
                )
        return assignments
    if first in {"let", "read"}:
        names = [re.match(r"[A-Za-z_]\w*", _source_text(word)) for word in raw.words[1:]]
        return [(name[0], False, None) for name in names if name]
    return raw.assigns
