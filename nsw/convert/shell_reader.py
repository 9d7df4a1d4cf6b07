"""The characters of a shell script -> its commands, with words whose variables are not replaced yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from nsw.errors import UsageError

ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\+?)=")
DECLARING: Final = frozenset({"export", "declare", "typeset", "local", "readonly"})
SETTING: Final = frozenset({
    "module", "ml", "source", ".", "cd", "conda", "mamba", "spack", "export", "declare", "unset", "ulimit", "umask",
    "alias", "eval", "shopt",
})  # fmt: skip
PRINTING: Final = frozenset({
    "echo", "printf", "date", "hostname", "pwd", "printenv", "nvidia-smi", "which", "type", "whoami", "uname",
    "lscpu", "free", "df", "ls", "cat", "wait", "sleep", "true", ":", "set", "exit", "sync",
})  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED: Final = re.compile(r"(!?[A-Za-z_]\w*(?=\[)|[A-Za-z_]\w*|[0-9@*#?$!-])(\[[@*]\])?")
_OPERATORS: Final = (";;&", ";;", ";&", "&&", "||", "|&", "&>>", "&>", ";", "&", "|", "(", ")", "\n")
_REDIRECTION: Final = re.compile(r"\d*(?:<<<|<<-|<<|>>|>\||>&|<&|<>|>|<)|&>>|&>")
_OPENING: Final = {
    **dict.fromkeys(("for", "while", "until", "select"), "done"), "if": "fi", "case": "esac", "{": "}",
}  # fmt: skip
_CLOSING: Final = frozenset(_OPENING.values())
_WITHIN: Final = frozenset({"then", "do", "else", "elif", "!", "time"})  # keywords that a command follows
_JOINING: Final = frozenset({"&&", "||", "|", "|&"})
_END_OF_HEAD: Final = re.compile(r";|(?<!\S)#")
_PROCESSES: Final = ("<(", ">(")
STARTED_IN_TEXT: Final = re.compile(
    r"(?<![\w./-])(?:\S*/)?(?:nsys|ncu|nvprof|vtune|rocprof(?:v\d)?) +(?:profile|launch|-)"
)
_LAUNCHED: Final = re.compile(r"\$\(\s*(?:srun|mpirun|mpiexec|aprun|jsrun|torchrun)\s")
_SUBMITTED: Final = re.compile(r"\$\(\s*\w*(?:sub|batch)\s")  # a batch system's command
_IF_ABSENT: Final = r"(?: *2> */dev/null)?(?: *\|\| *(?:true|:|echo|echo \"\"))? *"
_SUBMIT_FOLDERS: Final = "(?:SLURM_SUBMIT_DIR|PBS_O_WORKDIR|COBALT_CWD|LS_SUBCWD|SGE_O_WORKDIR|FLUX_JOB_CWD|PWD)"
SUBMIT_FOLDER: Final = re.compile(rf"\${_SUBMIT_FOLDERS}|\$\{{{_SUBMIT_FOLDERS}(?::?-.*)?\}}")
SUBMIT_FOLDER_WITHIN: Final = re.compile(rf"(?<=.)\${_SUBMIT_FOLDERS}\b|(?<=.)\$\{{{_SUBMIT_FOLDERS}\}}")
LOOKED_UP: Final = re.compile(
    rf"\$\((?:which|command -v|type -p) +([\w.+-]+){_IF_ABSENT}\)|`(?:which|command -v) +([\w.+-]+){_IF_ABSENT}`"
)
_PRINTED_FOLDER: Final = re.compile(r"\$\( *pwd(?: -[PL])? *\)|` *pwd(?: -[PL])? *`")
_SPECIAL: Final = frozenset(" \t\n;&|()<>")


class Piece(NamedTuple):
    """A part of a word.

    Attributes:
        kind: text; shell (kept as the shell has it, such as *); variable (of the environment); list (of all arguments
            or elements); computed; parameter (of a loop over words, or an argument of the script).
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
    def as_pattern(self) -> str | None:
        """What it is where its * and ? are no file's: so they are meant in a profiler's options; None: not known."""
        pieces = [piece._replace(kind="text") if piece.text in {"*", "?"} else piece for piece in self.pieces]
        return Text(tuple(pieces)).literal

    @property
    def source_text(self) -> str:
        """As a person reads it."""
        return "".join(piece.text_shown for piece in self.pieces)

    @property
    def is_known(self) -> bool:
        """Whether the shell of the job has it as it is: it is neither computed nor a parameter."""
        return all(piece.kind in {"text", "shell", "variable"} for piece in self.pieces)

    @property
    def computed(self) -> Piece | None:
        """The first piece that is not known."""
        return next((piece for piece in self.pieces if piece.kind in {"computed", "list"}), None)


@dataclass(frozen=True, slots=True)
class Block:
    """A loop, a conditional, a function, a subshell: what begins at `line` with `head`.

    Attributes:
        begin: Where it begins in the script; the same for all its branches.
        loop: Of a `for` over words: its variable and the words.
        branch: Of a conditional: how many `else`, `elif` or patterns came before.
        is_condition: Whether this is the part that decides of an `if` or `while`.
        subject, patterns: Of a `case`: the word, and what chooses this branch.
        test: What decides of it, with the values of the script's variables.
    """

    line: int
    head: str
    begin: int = 0
    loop: tuple[str, tuple[tuple[Piece, ...], ...]] | None = None
    branch: int = 0
    is_condition: bool = False
    subject: tuple[Piece, ...] = ()
    patterns: tuple[tuple[Piece, ...], ...] = ()
    test: str = ""


@dataclass(slots=True)
class RawStatement:
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
    is_negated: bool = False
    document: str = ""
    document_line: int = 0
    has_plain_document: bool = False  # without variables

    @property
    def is_condition(self) -> bool:
        """Whether it decides of an `if` or `while`."""
        return bool(self.blocks) and self.blocks[-1].is_condition

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was read."""
        return not (self.words or self.assigns or self.redirects)


class Reader:
    """Reads a script from its beginning to its end."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._at = 0
        self._blocks: list[tuple[str, Block]] = []  # the word that ends it, and the block
        self._documents: list[tuple[str, bool, RawStatement]] = []  # here-documents that begin after this line
        self.block_ends: dict[int, int] = {}

    @property
    def _line_number(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def statements(self) -> Iterator[RawStatement]:
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
                self._open_block("}", raw.line, f"function {source_text(raw.words[-1])}")
                self._skip_to("{")
                raw = self._new_command("")
            else:
                yield from self._finish_command(raw, operator)
                if operator.startswith(";") and operator != ";":
                    yield from [raw] if raw.is_empty else []  # a branch of a `case` may be empty
                    self._take_patterns()
                is_blank_line = operator == "\n" and raw.is_empty  # which may follow an operator
                raw = self._new_command(operator if operator in _JOINING else raw.before if is_blank_line else "")
        yield from self._finish_command(raw, "\n")
        if self._blocks:
            block = self._blocks[-1][1]
            raise UsageError(f"{self._name}:{block.line}: {block.head} has no end")

    def _new_command(self, before: str) -> RawStatement:
        return RawStatement(self._line_number, begin=self._at, before=before)

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

    def _take_word(self, raw: RawStatement) -> None:
        if raw.is_empty:
            raw.line, raw.begin = self._line_number, self._at
        if (operator := self._redirection_at()) is not None:
            self._at += len(operator)
            while self._at < len(self._text) and self._text[self._at] in " \t":
                self._at += 1
            target = self._parse_word()
            if "<<" in operator and operator != "<<<":
                self._documents.append((source_text(target), any(piece.quoted for piece in target), raw))
            raw.redirects.append((operator, target))
        elif self._text.startswith("((", self._at):
            end = self._find_nested_end("((", "))")
            raw.words.append((Piece("computed", self._text[self._at : end], "arithmetic"),))
            self._at = end
        elif not raw.words and (match := ASSIGNMENT.match(self._text, self._at)):
            self._at = match.end()
            raw.assigns.append((match[1], bool(match[2]), self._parse_value()))
        else:
            word = self._parse_word()
            if raw.words and source_text(raw.words[0]) in DECLARING and self._text.startswith("(", self._at):
                elements = self._parse_value()
                if match := ASSIGNMENT.fullmatch(source_text(word)):
                    raw.assigns.append((match[1], bool(match[2]), elements))
                word = (*word, Piece("computed", "(...)", "an array"))
            raw.words.append(word)
            if source_text(word) == "[[" and len(raw.words) == 1:
                self._take_test(raw)
            self._take_keyword(raw)
        raw.last, raw.end = self._line_number, self._at

    def _take_test(self, raw: RawStatement) -> None:
        """Parse the words of `[[ ... ]]`, in which operators are words."""
        sign = re.compile(r"&&|\|\||[()<>](?=\s)|=~\s+(?:[^\s\[]|\[[^\]]*\])+")
        while self._at < len(self._text) and source_text(raw.words[-1]) != "]]":
            if match := sign.match(self._text, self._at):
                self._at = match.end()
                raw.words.append((Piece("text", match[0]),))
            elif self._text[self._at] in _SPECIAL - {" ", "\t"}:
                self._at += 1
            elif not self._skip_blanks():
                raw.words.append(self._parse_word())

    def _take_patterns(self) -> None:
        """Parse what chooses the next branch of a `case`."""
        if not self._blocks or self._blocks[-1][0] != "esac":
            return
        patterns: list[tuple[Piece, ...]] = []
        while self._at < len(self._text) and not self._text.startswith(")", self._at):
            if self._text[self._at] in "\n|(":
                self._at += 1
            elif not self._skip_blanks():
                begin = self._at
                patterns.append(self._parse_word())
                if source_text(patterns[-1]) == "esac" and len(patterns) == 1:
                    self._at = begin
                    return
        self._at += 1
        end, block = self._blocks[-1]
        self._blocks[-1] = end, replace(block, branch=block.branch + 1, patterns=tuple(patterns))

    def _parse_value(self) -> list[tuple[Piece, ...]] | None:
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

    def _take_keyword(self, raw: RawStatement) -> None:
        """Open or close the blocks of a keyword; the words behind it are a command of their own."""
        word = source_text(raw.words[-1])
        if word == "{" and len(raw.words) == 3 and source_text(raw.words[0]) == "function":
            self._open_block("}", raw.line, f"function {source_text(raw.words[1])}")
            raw.words.clear()
            return
        if raw.assigns or len(raw.words) > 1:
            return
        if word in _CLOSING and self._blocks:
            end, block = self._blocks.pop()
            if end != word:
                raise UsageError(f"{self._name}:{raw.line}: {word} where {end} of line {block.line} is expected")
            self.block_ends[block.line] = self._line_number
            raw.words.clear()
        elif word in _WITHIN:
            raw.words.clear()
            raw.is_negated = word == "!"
            if word not in {"!", "time"} and self._blocks:
                end, block = self._blocks[-1]
                branch = block.branch + (word in {"else", "elif"})
                self._blocks[-1] = end, replace(block, branch=branch, is_condition=word == "elif")
        elif word in _OPENING:
            self._begin_block(raw, word)

    def _begin_block(self, raw: RawStatement, word: str) -> None:
        line = self._line_number
        end = self._text.find("\n", self._at)
        rest = self._text[self._at : len(self._text) if end < 0 else end]
        head = rest[: rest.find("))") + 2] if rest.lstrip().startswith("((") else _END_OF_HEAD.split(rest)[0]
        block = Block(line, f"{word} {head.strip()}".strip(), self._at)
        if word in {"for", "select"}:
            block = replace(block, loop=self._parse_loop_words())
        elif word == "case":
            while self._skip_blanks():
                pass
            subject, branches = self._parse_word(), self._text[self._at :].partition("esac")[0]
            if ";&" in branches:  # one goes on with the next: nothing is decided
                subject = (Piece("computed", source_text(subject), "a case"),)
            block = replace(block, subject=subject, branch=-1)
            self._skip_to("in")
        raw.words.clear()
        self._blocks.append((_OPENING[word], replace(block, is_condition=word in {"if", "while", "until"})))
        if word == "case":
            self._take_patterns()

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

    def _open_block(self, end: str, line: int, head: str) -> None:
        self._blocks.append((end, Block(line, head, self._at)))

    def _skip_to(self, word: str, *, keep: bool = False) -> None:
        match = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self._text, self._at)
        if match:
            self._at = match.start() if keep else match.end()

    def _skip_documents(self) -> None:
        while self._documents:
            delimiter, is_plain, raw = self._documents.pop(0)
            begin, raw.document_line = self._at, self._line_number
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line, self._at = self._text[self._at : end], end + 1
                if line.strip() == delimiter:
                    break
            raw.document = self._text[begin : self._at].rstrip("\n").rpartition("\n")[0]
            raw.has_plain_document = is_plain

    def _finish_command(self, raw: RawStatement, operator: str) -> Iterator[RawStatement]:
        """The command that ends here; handles subshells and here-documents."""
        if operator == "\n":
            self._skip_documents()
        raw.blocks = tuple(block for _, block in self._blocks)
        if not raw.is_empty:
            raw.text = self._text[raw.begin : raw.end]
            yield from self._profiled_substitutions(raw)
            yield raw
        if operator == "(":
            self._open_block(")", self._line_number, "(" + self._text[self._at :].partition("\n")[0].strip())
        elif operator == ")" and self._blocks and self._blocks[-1][0] == ")":
            self.block_ends[self._blocks.pop()[1].line] = self._line_number

    def _profiled_substitutions(self, raw: RawStatement) -> Iterator[RawStatement]:
        """The commands in `$(...)` of a command, where they start a profiler or a launcher, or submit a job."""
        words = [*raw.words, *(word for _, _, value in raw.assigns for word in value or ())]
        for piece in (piece for word in words for piece in word):
            is_started = STARTED_IN_TEXT.search(piece.text) or _LAUNCHED.match(piece.text)
            if piece.kind == "computed" and (is_started or _SUBMITTED.match(piece.text)):
                text = piece.text.removeprefix("$").strip("`")
                for inner in Reader(text, self._name).statements():
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
                end = text.find("'", self._at + 1)
                if end < 0:
                    raise UsageError(f"{self._name}:{self._line_number}: a quote begins and does not end")
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
        return merge_pieces(pieces)

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

    def _find_nested_end(self, opening: str, closing: str) -> int:
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


def word_pieces(text: str, name: str) -> tuple[Piece, ...]:
    """The pieces of one word of shell.

    Args:
        text: The word.
        name: The script's name, for messages.
    """
    raw = next(Reader(f": {text}\n", name).statements())
    return raw.words[1] if len(raw.words) == 2 else (Piece("computed", text, "an expression of the shell"),)


def merge_pieces(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Merge neighbours of one kind into one piece; pieces that are quoted differently stay apart."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last is not None and piece.kind == last.kind == "text" and piece.quoted == last.quoted:
            merged[-1] = last._replace(text=last.text + piece.text)
        else:
            merged.append(piece)
    return tuple(merged)


def drop_quoting(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of a word after it was split, when only the quoting of what the job puts in matters."""
    kinds = {"variable", "computed"}
    unquoted = [piece if piece.kind in kinds else piece._replace(quoted=False) for piece in pieces]
    return merge_pieces([piece for piece in unquoted if piece.text] or unquoted[:1])


def source_text(pieces: Iterable[Piece]) -> str:
    """The pieces of a word as they are written."""
    return "".join(piece.text for piece in pieces)


def _variable_piece(name: str, text: str, quoted: bool) -> Piece:
    if name in {"@", "*"}:
        return Piece("list", text, name, quoted)
    if name in {"RANDOM", "SRANDOM", "SECONDS"}:  # each process would have another
        return Piece("computed", text, "the shell's own", quoted)
    if name.isidentifier() or name.isdecimal():
        return Piece("variable", text, name, quoted)
    return Piece("computed", text, "the shell's own", quoted)


def _substitution_piece(text: str, reason: str, quoted: bool) -> Piece:
    """A command in a word."""
    if _PRINTED_FOLDER.fullmatch(text):
        return Piece("variable", "$PWD", "PWD", quoted)
    if LOOKED_UP.fullmatch(text):
        return Piece("shell", text, "", quoted)
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
    has_default = name is not None and inner[name.end() :].startswith((":-", "-", ":?", "?"))
    if name and has_default and (name[0].isidentifier() or name[0].isdecimal()):
        return Piece("variable", text, name[0], quoted)  # a default, which the job knows whether it needs
    return Piece("computed", text, "an expression of the shell", quoted)
