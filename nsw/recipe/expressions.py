"""Jinja expressions in a recipe: sandboxed, strict about unknown names, and none makes much of little.

What a single operation makes is bounded by the size of its operands; there is no budget of time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import lru_cache, wraps
from math import prod
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2 import filters, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range

from nsw.errors import did_you_mean
from nsw.recipe.units import Fault, as_text, escape_nonprinting, show_value

if TYPE_CHECKING:
    from jinja2.runtime import Context

LONGEST: Final = 100_000  # characters of a text, items of a list
LARGEST_OUTPUT: Final = 1_000_000  # characters of a text with expressions in it, beyond what the text itself has
MOST_BITS: Final = 4096  # of a whole number
_MOST_DIGITS: Final = 300  # that a number is rounded to
_WRAP: Final = "\0wrap"  # how the wrapping function travels to `_finalize`: no template can name it
# of `text % values`: width, precision, and a star where the values hold one of them
_FIELD: Final = re.compile(r"%(?:\([^)]*\))?[-+ #]*(\d*)\.?(\d*)(\*?)")
_STATEMENTS = (nodes.Output, nodes.If, nodes.For, nodes.Assign)
_FILTERS: Final = (
    "abs", "bool", "count", "d", "default", "first", "float", "format", "int", "join", "last", "length", "list",
    "lower", "max", "min", "replace", "round", "sort", "string", "sum", "title", "trim", "unique", "upper",
)  # fmt: skip
# methods of texts and numbers that make much of little; filters do what recipes need of them
_GROWING: Final = frozenset({
    "center", "encode", "expandtabs", "format", "format_map", "join", "ljust", "replace", "rjust", "to_bytes",
    "translate", "zfill",
})  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja with few filters and no comments (`${#array[@]}` is bash)."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def __init__(self) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            finalize=_finalize,
            keep_trailing_newline=True,
            comment_start_string="\0{",
            comment_end_string="}\0",
            cache_size=0,
        )
        self.globals = {"range": safe_range}
        bounded = {name: _bounded_filter(self.filters[name]) for name in ("join", "replace", "unique")}
        filters_by_name = {**self.filters, **bounded, "bool": bool, "format": _format_filter, "round": _round_filter}
        self.filters = {name: filters_by_name[name] for name in _FILTERS}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operation of two values, if what it makes is not too large."""
        if operator == "**" and not (_is_number_within(left, 1e6) and _is_number_within(right, 64)):
            raise SecurityError("the power is too large")
        if operator == "*" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            _check_size(prod(v if isinstance(v, int) else _count_characters(v) for v in (left, right)))
        if operator == "%" and isinstance(left, str):
            return _format_percent(as_text(left), right)
        return _check_value_size(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether an attribute may be looked up."""
        return attr not in _GROWING and super().is_safe_attribute(obj, attr, value)


@jinja2.pass_context
def _finalize(context: Context, value: Any) -> Any:
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises
    wrap = context.resolve_or_missing(_WRAP)
    return wrap(value) if callable(wrap) else as_text(value)


def _count_characters(value: object) -> int:
    """Characters of a text; items of a list, with the characters of those that are texts."""
    if not isinstance(value, Sized) or isinstance(value, str):
        return len(value) if isinstance(value, str) else 0
    items: Any = value.values() if isinstance(value, Mapping) else value
    return len(value) + sum(len(item) for item in items if isinstance(item, str))


def _check_size(size: int, limit: int = LONGEST) -> None:
    if size > limit:
        raise SecurityError(f"it makes more than {limit:,} characters or items")


def _check_value_size(value: Any) -> Any:
    """The value, if it is not too large."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise SecurityError(f"the number has more than {MOST_BITS} bits")
    _check_size(_count_characters(value))
    return value


def _is_number_within(value: object, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) <= limit


def _format_percent(text: str, values: object) -> str:
    """`text % values`; refuses wide fields."""
    fields = _FIELD.findall(text)
    if any(star for *_, star in fields):
        raise SecurityError("the format takes a width from its values")
    widest = max((int(number) for *numbers, _ in fields for number in numbers if number), default=0)
    values_size = _count_characters(values if isinstance(values, tuple | Mapping) else (values,))
    _check_size(len(fields) * (2 * widest + values_size))
    return text % values


def _format_filter(text: object, *values: Any) -> str:
    return _format_percent(str(text), values)


def _round_filter(value: float, precision: int = 0, method: Any = "common") -> float:
    if not _is_number_within(precision, _MOST_DIGITS):
        raise SecurityError(f"round to more than {_MOST_DIGITS} digits")
    return filters.do_round(value, precision, method)


def _bounded_filter(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter: it returns no iterator, and the product of its arguments' sizes is limited."""

    @wraps(apply)
    def bounded(*args: Any, **keywords: Any) -> Any:
        sizes = map(_count_characters, (*args, *keywords.values()))
        _check_size(prod(size for size in sizes if size), LARGEST_OUTPUT)
        result = apply(*args, **keywords)
        return list(result) if isinstance(result, Iterator) else result

    return bounded


def _join_bounded(parts: Iterable[str], extra_room: int) -> str:
    """The parts as one text, which may be `more` characters longer than any result."""
    checked, room = [], LARGEST_OUTPUT + extra_room
    for part in parts:
        room -= len(part)
        if room < 0:
            raise SecurityError(f"it makes a text of more than {LARGEST_OUTPUT:,} characters")
        checked.append(part)
    return "".join(checked)


@lru_cache(1)
def _environment() -> _Environment:
    return _Environment()


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
        self._template: jinja2.Template | None = None
        if self._name is None:
            self._template = self._compile_template()

    def _compile_template(self) -> jinja2.Template:
        result = nodes.Assign(nodes.Name("result", "store", lineno=1), self._expression, lineno=1)
        return _environment().from_string(nodes.Template([result], lineno=1))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Its value, with its type."""
        if self._name is not None and self._name in values:
            return values[self._name]
        try:
            template = self._template = self._template or self._compile_template()
            context = template.new_context({**_environment().globals, **values}, shared=True)
            for _ in template.root_render_func(context):
                pass
            result = context.vars["result"]
            if isinstance(result, jinja2.Undefined):
                str(result)  # raises
            return _check_value_size(result)
        except Exception as fault:  # noqa: BLE001  # whatever a user's arithmetic raises is the user's to see
            raise _evaluation_fault(fault, self._text) from None


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
        self._template: jinja2.Template | None = None  # a text with statements
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
                self._parts = tuple(
                    node.data if isinstance(node, nodes.TemplateData) else _Operand(node, self.text)
                    for output in tree.body
                    for node in output.nodes  # type: ignore[attr-defined]  # each is an Output
                )
            else:
                self._template = environment.from_string(tree)
        except jinja2.TemplateSyntaxError as fault:
            raise _syntax_fault(fault) from None
        except Fault:
            raise
        except (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError, TypeError) as fault:
            raise Fault(f"{_NOT_VALID}: {escape_nonprinting(str(fault))[:200]}") from None

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
            try:
                context = self._template.new_context({**_environment().globals, **values, _WRAP: wrap}, shared=True)
                return _join_bounded(self._template.root_render_func(context), len(self.text))
            except Exception as fault:  # noqa: BLE001  # whatever a user's arithmetic raises is the user's to see
                raise _evaluation_fault(fault, self.text) from None
        to_text = wrap or as_text
        rendered = (part if isinstance(part, str) else to_text(part.value(values)) for part in self._parts)
        try:
            return _join_bounded(rendered, len(self.text))
        except SecurityError as fault:
            raise _evaluation_fault(fault, self.text) from None


@lru_cache(4096)
def _parse(text: str) -> Expression:
    return Expression(text)


def find_name(raw: str, name: str) -> int | None:
    """The position of the first use of a variable in the expressions of a text; None without one.

    Args:
        raw: The text, as written in the recipe.
        name: The variable. An attribute of that name (`x.name`) does not count.

    Returns:
        Characters from the start of the text.
    """
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


def _syntax_fault(fault: jinja2.TemplateSyntaxError) -> Fault:
    source = str(fault.source or "")
    if (single := _ONE_BRACE.search(source)) is not None:
        closed = "this expression is closed by one '}' instead of two"
        return Fault(closed, hint=f"write {{{{ {single[1].strip()} }}}}", offset=single.start())
    if any(w in str(fault.message) for w in _UNCLOSED) and (left := _NEVER_CLOSED.search(source)) is not None:
        unclosed = "this expression is never closed by '}}'"
        hint = f"write {{{{ {left[1].strip()} }}}}, or a literal '{{{{' as {{{{ '{{{{' }}}}"
        return Fault(unclosed, hint=hint, offset=left.start())
    message, _, position = str(fault.message).partition(" at ")  # only the lexer says where
    offset = int(position) if position.isdigit() else None
    message = message if offset is not None else str(fault.message)
    for token, typed in _TOKENS:
        message = message.replace(token, typed)
    syntax_message = f"{_NOT_VALID}: {escape_nonprinting(message).rstrip('.')}"
    return Fault(syntax_message, hint=_syntax_hint(fault), offset=offset)


def _syntax_hint(fault: jinja2.TemplateSyntaxError) -> str | None:
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
    unset = re.search(r"has no attribute '(\w+)'", str(fault)) if isinstance(fault, jinja2.UndefinedError) else None
    if unset and re.search(rf"\bsite\s*\.\s*{unset[1]}\b", text):
        hint = f"write `{unset[1]}:` below the site, in its sites file"
        return Fault(f"{show_value(text)}: the site does not set '{unset[1]}'", hint=hint)
    if isinstance(fault, jinja2.UndefinedError | SecurityError):
        return Fault(f"{show_value(text)}: {escape_nonprinting(str(fault))[:200]}")
    return Fault(f"{show_value(text)} cannot be computed: {escape_nonprinting(str(fault))[:200]}")
