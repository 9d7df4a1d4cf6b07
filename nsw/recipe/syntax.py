"""What is wrong with a text that is not YAML, in plain words and with what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from nsw.errors import Diagnostic, Mark
from nsw.recipe.faults import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

DASHED = re.compile(r"-[^\s-]")
_GLUED = re.compile(r"^(\s*(?:- )?[A-Za-z_][\w.-]*):(?![\s/])\S")
_TEMPLATE = re.compile(r"[:\-,\[]\s+\{\{")
_RESERVED = "@`%|>"
DEEPEST = 50  # levels of nesting
TOO_DEEP = f"nested more than {DEEPEST} levels deep"
_OPENS = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSES = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
MISSING_SPACE = "a space is missing after this dash"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def with_space(item: str) -> str:
    """What to write instead of an item whose dash has no space after it; '' stands for one that is not shown."""
    if not item:
        return "write '- ...' for an item of a list"
    word = plain(item.split(maxsplit=1)[0][1:])
    return f"write '- {word}{' ...' if word.endswith(':') else ''}' for an item of a list"


def explain(fault: yaml.YAMLError, text: str, lines: Sequence[str], file: str) -> Diagnostic:
    """One diagnostic for what the YAML parser refused.

    Args:
        fault: What it raised.
        text: The whole file.
        lines: The same, split at line ends.
        file: Its name for the mark.
    """
    if isinstance(fault, yaml.reader.ReaderError):
        return _bad_character(fault, text, file)
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    if mark is None:
        return Diagnostic(f"this is not YAML: {plain(str(fault))}", Mark(file, 1, 1, 1, 2))
    return _FaultContext(fault, text, lines, file, mark.line, mark.column).diagnostic()


def _bad_character(fault: yaml.reader.ReaderError, text: str, file: str) -> Diagnostic:
    code = fault.character if isinstance(fault.character, int) else ord(str(fault.character)[:1] or "?")
    # the C reader counts bytes, the other one characters: the first such character is the one either means
    index = text.find(chr(code))
    before = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text[: max(index, 0)])
    line, column = len(before), len(before[-1]) + 1
    return Diagnostic(
        f"the character U+{code:04X} is not allowed in YAML",
        Mark(file, line, column, line, column + 1),
        hint="remove it, or write it as an escape in double quotes",
    )


class _FaultContext:
    """A syntax fault with the lines around it."""

    def __init__(
        self, fault: yaml.YAMLError, text: str, lines: Sequence[str], file: str, line: int, column: int
    ) -> None:
        self.document = text
        self.problem = str(getattr(fault, "problem", "") or "")
        self.context = str(getattr(fault, "context", "") or "")
        self.context_mark = getattr(fault, "context_mark", None)
        self.lines = lines
        self.file = file
        self.row = min(line, max(len(lines) - 1, 0))
        self.column = column if line == self.row else 0
        self.text = lines[self.row] if lines else ""

    def _at(
        self, message: str, hint: str | None = None, *, row: int | None = None, column: int | None = None
    ) -> Diagnostic:
        row = self.row if row is None else row
        column = self.column if column is None else column
        return Diagnostic(message, Mark(self.file, row + 1, column + 1, row + 1, column + 2), hint=hint)

    def diagnostic(self) -> Diagnostic:
        """The fault in plain words."""
        return (
            self._too_deep()
            or self._tab()
            or self._escape()
            or self._open_quote()
            or self._late_quote()
            or self._glued_key()
            or self._glued_dash()
            or self._template()
            or self._reserved()
            or self._flow()
            or self._open_bracket()
            or self._structure()
            or self._at(f"this is not YAML: {plain(self.problem or self.context)}")
        )

    def _too_deep(self) -> Diagnostic | None:
        """The parser of PyYAML 6.0.4 has a limit of its own, which it can meet before it gives the first node."""
        return self._at(TOO_DEEP) if "maximum nesting depth" in self.problem else None

    def _tab(self) -> Diagnostic | None:
        indent = re.match(r"\s*", self.text)
        tab = indent[0].find("\t") if indent else -1
        if tab < 0 or not any(words in self.problem for words in ("cannot start any token", "tab character")):
            return None
        return self._at("a tab indents this line; YAML allows only spaces there", "replace it by spaces", column=tab)

    def _escape(self) -> Diagnostic | None:
        if "unknown escape" not in self.problem:
            return None
        column = self.text.rfind("\\", 0, self.column + 1)
        column = column if column >= 0 else self.column
        word = plain(self.text[column : column + 2])
        opened = self.context_mark
        if opened and opened.line < self.row:
            return self._at(
                f"this quote is not closed on its line, and '{word}' on line {self.row + 1} is not an escape in it",
                "close it on its line; in single quotes a backslash is only a backslash",
                row=opened.line,
                column=opened.column,
            )
        return self._at(
            f"'{word}' is not an escape in double quotes",
            "put the text in single quotes: there a backslash is only a backslash",
            column=column,
        )

    def _open_quote(self) -> Diagnostic | None:
        if "quoted scalar" not in self.context or "end of stream" not in self.problem or not self.context_mark:
            return None
        return self._at(
            "this quote is never closed",
            "close it, or remove it",
            row=self.context_mark.line,
            column=self.context_mark.column,
        )

    def _late_quote(self) -> Diagnostic | None:
        """A quote that the next one closes, lines below, where YAML then finds no key."""
        depth = 0
        try:
            for token in yaml.scan(self.document, Loader=LOADER):
                depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
                if depth > DEEPEST:  # each token takes a time that grows with the depth
                    return None
                start, end = token.start_mark, token.end_mark
                if (
                    start.line < end.line == self.row
                    and isinstance(token, yaml.ScalarToken)
                    and token.style in {"'", '"'}
                ):
                    return self._at(
                        f"this quote is closed only on line {end.line + 1}, by {token.style} in column {end.column}",
                        "close it on its own line, or remove it",
                        row=start.line,
                        column=start.column,
                    )
                if start.line > self.row:
                    return None
        except yaml.YAMLError:
            return None
        return None

    def _glued_dash(self) -> Diagnostic | None:
        """`-baseline: {}` is a key to YAML; the fault shows there, or at a later item."""
        rows = [(self.row, self.column)]
        if self.context_mark:
            rows.insert(0, (self.context_mark.line, self.context_mark.column))
        for row, column in rows if "flow" not in self.context else ():
            if DASHED.match(word := self.lines[row][column:].strip()):
                return self._at(MISSING_SPACE, with_space(word), row=row, column=column)
        return None

    def _glued_key(self) -> Diagnostic | None:
        """`name:foo` is one word to YAML; the fault shows on that line or the next."""
        if not any(
            w in self.problem
            for w in ("not allowed in this context", "not allowed here", "could not find expected ':'")
        ):
            return None
        for row in (self.row, self.row - 1):
            match = _GLUED.match(self.lines[row]) if 0 <= row < len(self.lines) else None
            if match:
                return self._at(
                    "a space is missing after this colon",
                    f"write '{match[1].strip()}: ...'",
                    row=row,
                    column=match.end(1),
                )
        return None

    def _template(self) -> Diagnostic | None:
        positions = [(self.row, self.column + 1)]
        if "flow mapping" in self.context and self.context_mark:  # a brace of it is missing: the next line is the fault
            row = self.context_mark.line
            positions += [(row, len(self.lines[row]))]
        for row, end in positions:
            if match := _TEMPLATE.search(self.lines[row][:end]):
                return self._at(
                    "an expression must be quoted, and what follows it too",
                    'such as "{{ batch }}m"',
                    row=row,
                    column=match.end() - 2,
                )
        return None

    def _reserved(self) -> Diagnostic | None:
        if "cannot start any token" not in self.problem:
            return None
        character = self.text[self.column : self.column + 1]
        word = f"'{plain(character)}'" if character in _RESERVED else "this character"
        return self._at(f"{word} cannot start a value", "quote the value")

    def _flow(self) -> Diagnostic | None:
        for kind, close in (("flow sequence", "]"), ("flow mapping", "}")):
            if kind in self.context and self.context_mark:
                row, column = self.context_mark.line, self.context_mark.column
                return self._at(
                    f"this bracket is not closed by '{close}', or a comma is missing after it",
                    "close it, or put a value that has a bracket or a comma in single quotes",
                    row=row,
                    column=column,
                )
        if self.text[self.column : self.column + 1] in {"]", "}"}:
            return self._at("this bracket closes nothing", "remove it, or quote the value")
        return None

    def _open_bracket(self) -> Diagnostic | None:
        """A bracket after which the text ends, before an item."""
        if "expected node content" not in self.problem or "flow" not in self.context:
            return None
        opened = []
        try:
            for token in yaml.scan(self.document, Loader=LOADER):
                if isinstance(token, _OPENS):
                    opened.append(token)
                elif opened and isinstance(token, _CLOSES):
                    opened.pop()
        except yaml.YAMLError:  # another fault, further below
            return None
        if not opened:
            return None
        close = "]" if isinstance(opened[-1], yaml.FlowSequenceStartToken) else "}"
        mark = opened[-1].start_mark
        return self._at(
            f"this bracket is not closed by '{close}'",
            "close it, or quote the value",
            row=mark.line,
            column=mark.column,
        )

    def _structure(self) -> Diagnostic | None:
        if "mapping values are not allowed" in self.problem:
            return self._at(
                "a ':' is not allowed here",
                "quote a value that holds ': ', and indent the keys of one map alike",
            )
        if "sequence entries are not allowed" in self.problem:
            return self._at("a list item cannot start here", "start it on a line of its own")
        if "block mapping" in self.context:
            return self._at(
                "a key was expected here",
                "indent the keys of one map alike, and quote a whole value or nothing of it",
            )
        if "block collection" in self.context:
            return self._at("a list item ('- ...') was expected here", "indent the items of one list alike")
        if "could not find expected ':'" in self.problem:
            row = self.context_mark.line if self.context_mark else self.row
            column = self.context_mark.column if self.context_mark else self.column
            return self._at("this line has no ':' after its key", "write 'key: value'", row=row, column=column)
        return None
