"""Jinja expressions in a recipe: sandboxed, strict about unknown names, bounded in what they may compute."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateSyntaxError, Undefined, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError

from nsw.errors import did_you_mean
from nsw.recipe.expression_budget import joined
from nsw.recipe.faults import Fault, plain, shown
from nsw.recipe.numbers_as_written import as_text
from nsw.recipe.sandbox import WRAP, RecipeEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Template

_COMPILING = 100  # steps that it takes to compile an expression: a millisecond
_STATEMENTS = (nodes.Output, nodes.If, nodes.For, nodes.Assign)


@lru_cache(1)
def _environment() -> RecipeEnvironment:
    return RecipeEnvironment()


def begin_recipe() -> None:
    """Begin another recipe: what its expressions cost together counts from here."""
    _environment().budget.renew()


def is_template(text: object) -> bool:
    """Whether a value holds an expression or a statement of Jinja."""
    return isinstance(text, str) and ("{{" in text or "{%" in text)


class _Operand:
    """One `{{ ... }}`: a name that is looked up, or a computation that Jinja does."""

    __slots__ = ("_expression", "_name", "_template", "_text")

    def __init__(self, expression: nodes.Expr, text: str) -> None:
        self._text = text
        self._name = expression.name if isinstance(expression, nodes.Name) else None
        self._expression = expression
        self._template: Template | None = None
        if self._name is None:
            self._template = self._compiled()

    def _compiled(self) -> Template:
        result = nodes.Assign(nodes.Name("result", "store", lineno=1), self._expression, lineno=1)
        return _compile(nodes.Template([result], lineno=1))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Its value, with its type."""
        if self._name is not None and self._name in values:
            return values[self._name]
        try:
            template = self._template = self._template or self._compiled()
            _environment().budget.begin()
            context = template.new_context({**_environment().globals, **values}, shared=True)
            for _ in template.root_render_func(context):
                pass
            result = context.vars["result"]
            if isinstance(result, Undefined):
                str(result)  # raises
        except Exception as fault:  # noqa: BLE001  # whatever a user's arithmetic raises is the user's to see
            raise _evaluation_fault(fault, self._text) from None
        return result


class Expression:
    """A text with Jinja expressions in it, parsed once.

    Attributes:
        text: The text.
        names: The names it needs.
        is_constant: Whether it holds no expression at all.
    """

    __slots__ = ("_parts", "_template", "is_constant", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: frozenset[str] = frozenset()
        self.is_constant = not is_template(text)
        self._parts: tuple[str | _Operand, ...] = (text,)  # what a text without statements is made of
        self._template: Template | None = None  # a text with statements
        if not self.is_constant:
            self._compile()

    @staticmethod
    def parse(text: str) -> Expression:
        """Parse a text; the same text gives the same expression.

        Raises:
            Fault: A fault of Jinja's syntax, or something that recipes may not do.
        """
        return _parse(text)

    def _compile(self) -> None:
        environment = _environment()
        try:
            tree = environment.parse(self.text)
            _refuse_statements(tree)
            self.names = frozenset(meta.find_undeclared_variables(tree)) - environment.globals.keys()
            if all(isinstance(statement, nodes.Output) for statement in tree.body):
                self._parts = tuple(_part(node, self.text) for output in tree.body for node in _outputs(output))
            else:
                self._template = _compile(tree)
        except TemplateSyntaxError as fault:
            raise _syntax_fault(fault) from None
        except Fault:
            raise
        except (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError, TypeError) as fault:
            raise Fault(f"{_NOT_VALID}: {plain(str(fault))[:200]}", bare=_NOT_VALID) from None

    def value(self, values: Mapping[str, Any]) -> Any:
        """The value with its type where the text is exactly one `{{ ... }}`; otherwise the rendered text.

        Raises:
            Fault: A name is missing, or the computation fails.
        """
        if self._template is None and len(self._parts) == 1 and not isinstance(only := self._parts[0], str):
            return only.value(values)
        return self.render(values)

    def render(self, values: Mapping[str, Any], wrap: Callable[[object], str] | None = None) -> str:
        """The text with every expression replaced by its value.

        Args:
            values: What the names stand for.
            wrap: Applied to each interpolated value (to quote it, say), not to the text around it.

        Raises:
            Fault: A name is missing, or the computation fails.
        """
        if self._template is not None:
            return self._rendered(self._template, values, wrap)
        to_text = wrap or as_text
        found = (part if isinstance(part, str) else to_text(part.value(values)) for part in self._parts)
        try:
            return joined(found, len(self.text))
        except SecurityError as fault:
            raise _evaluation_fault(fault, self.text) from None

    def _rendered(self, template: Template, values: Mapping[str, Any], wrap: Callable[[object], str] | None) -> str:
        try:
            _environment().budget.begin()
            context = template.new_context({**_environment().globals, **values, WRAP: wrap}, shared=True)
            return joined(template.root_render_func(context), len(self.text))
        except Exception as fault:  # noqa: BLE001  # whatever a user's arithmetic raises is the user's to see
            raise _evaluation_fault(fault, self.text) from None


def _compile(tree: nodes.Template) -> Template:
    environment = _environment()
    environment.budget.begin()
    environment.budget.spend(_COMPILING)
    return environment.from_string(environment.bounded(tree))


def _outputs(output: nodes.Node) -> list[nodes.Expr]:
    assert isinstance(output, nodes.Output)
    return output.nodes


def _part(node: nodes.Expr, text: str) -> str | _Operand:
    return node.data if isinstance(node, nodes.TemplateData) else _Operand(node, text)


@lru_cache(4096)
def _parse(text: str) -> Expression:
    return Expression(text)


def find_name(raw: str, name: str) -> int | None:
    """Where `name` first stands as a name inside the expressions of a text, or None."""
    position, previous = 0, ""
    try:
        for _, kind, word in _environment().lex(raw):
            start = raw.find(word, position)
            if start < 0:
                return None
            if kind == "name" and word == name and previous != ".":
                return start
            position = start + len(word)
            if kind != "whitespace":
                previous = word
    except TemplateError:
        return None
    return None


def _refuse_statements(tree: nodes.Template) -> None:
    for statement in tree.find_all(nodes.Stmt):
        if not isinstance(statement, _STATEMENTS):
            word = type(statement).__name__.lower()
            raise Fault(f"'{word}' is not allowed in a recipe: only {{{{ ... }}}}, if, for and set are")
    for loop in tree.find_all(nodes.For):
        if loop.recursive or any(True for _ in loop.find_all(nodes.For)):
            raise Fault("a loop inside a loop is not allowed in a recipe")


_NOT_VALID, _NOT_COMPUTED = "this expression is not valid", "this cannot be computed"
_ONE_BRACE = re.compile(r"\{\{([^{}]*)\}(?!\})")

_NEVER_CLOSED = re.compile(r"\{\{\s*(\w+)(?:(?!\}\}|\{\{).)*(?:$|\{\{)", re.DOTALL)
_UNCLOSED = ("end of template", "got '{'")
_TOKENS = (("'end of print statement'", "'}}'"), ("'end of statement block'", "'%}'"))  # Jinja's names of what is typed


def _syntax_fault(fault: TemplateSyntaxError) -> Fault:
    source = str(fault.source or "")
    if (single := _ONE_BRACE.search(source)) is not None:
        closed = "this expression is closed by one '}' instead of two"
        return Fault(closed, hint=f"write {{{{ {single[1].strip()} }}}}", offset=single.start(), bare=closed)
    if any(w in str(fault.message) for w in _UNCLOSED) and (left := _NEVER_CLOSED.search(source)) is not None:
        unclosed = "this expression is never closed by '}}'"
        hint = f"write {{{{ {left[1].strip()} }}}}, or a literal '{{{{' as {{{{ '{{{{' }}}}"
        return Fault(unclosed, hint=hint, offset=left.start(), bare=unclosed)
    message, _, place = str(fault.message).partition(" at ")  # only the lexer says where
    offset = int(place) if place.isdigit() else None
    message = message if offset is not None else str(fault.message)
    for token, typed in _TOKENS:
        message = message.replace(token, typed)
    told = f"{_NOT_VALID}: {plain(message).rstrip('.')}"
    return Fault(told, hint=_syntax_hint(fault), offset=offset, bare=_NOT_VALID)


def _syntax_hint(fault: TemplateSyntaxError) -> str | None:
    message = str(fault.message)
    if "unknown tag" in message and (word := message.split("'")[1]).isidentifier():
        return f"write {{{{ {word} }}}} for its value, or a literal '{{%' as {{{{ '{{%' }}}}"
    if "end of template" in message or "unknown tag" in message:
        return "write a literal '{{' as {{ '{{' }}, and a literal '{%' as {{ '{%' }}"
    if message.startswith("No filter named"):
        close = did_you_mean(message.split("'")[1], _environment().filters)
        return close or "the filters are " + ", ".join(
            sorted(name for name in _environment().filters if name.isprintable())
        )
    return None


def _evaluation_fault(fault: Exception, text: str) -> Fault:
    if isinstance(fault, Fault):
        return fault
    unset = re.search(r"has no attribute '(\w+)'", str(fault)) if isinstance(fault, UndefinedError) else None
    if unset and re.search(rf"\bsite\s*\.\s*{unset[1]}\b", text):
        hint = f"write `{unset[1]}:` below the site, in its sites file"
        return Fault(f"{shown(text)}: the site does not set '{unset[1]}'", hint=hint, bare=_NOT_COMPUTED)
    if isinstance(fault, UndefinedError | SecurityError):
        return Fault(f"{shown(text)}: {plain(str(fault))[:200]}", bare=_NOT_COMPUTED)
    return Fault(f"{shown(text)} cannot be computed: {plain(str(fault))[:200]}", bare=_NOT_COMPUTED)
