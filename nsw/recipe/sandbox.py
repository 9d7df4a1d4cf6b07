"""Jinja for recipes: few filters and methods, no comments, and every operation within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from nsw.recipe.expression_budget import Budget, check_number, printf_size, size_of
from nsw.recipe.numbers_as_written import as_text

if TYPE_CHECKING:
    from jinja2.runtime import Context

LONGEST_RANGE: Final = 10_000  # values of range() and turns of a loop
WRAP: Final = "\0wrap"  # how the wrapping function travels to `finalize`: no template can name it
_HELD, _CONCAT, _TURNS = "\0held", "\0concat", "\0turns"  # filters that no template can name
_LARGEST_PRECISION: Final = 300
_FILTERS: Final = (
    "abs", "bool", "count", "d", "default", "first", "float", "format", "int", "join", "last", "length", "list",
    "lower", "max", "min", "replace", "round", "sort", "string", "sum", "title", "trim", "unique", "upper",
)  # fmt: skip
_TESTS: Final = (
    "boolean", "callable", "defined", "divisibleby", "eq", "equalto", "even", "false", "float", "ge", "greaterthan",
    "gt", "in", "integer", "iterable", "le", "lessthan", "lower", "lt", "mapping", "ne", "none", "number", "odd",
    "sameas", "sequence", "string", "true", "undefined", "upper", "==", "!=", "<", ">", "<=", ">=",
)  # fmt: skip
# None of these makes more than it is given.
_OF_TEXTS: Final = frozenset(
    {
        "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal",
        "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "lower",
        "lstrip", "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip",
        "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper",
    }
)  # fmt: skip
_BACKWARDS: Final = frozenset({"rfind", "rindex", "rpartition", "rsplit"})  # Python searches in n * m steps
_OF_LISTS: Final = frozenset({"count", "index"})
_OF_MAPS: Final = frozenset({"get", "items", "keys", "values"})
_METHODS: Final[tuple[tuple[Any, frozenset[str]], ...]] = (
    (str, _OF_TEXTS), (list | tuple | range, _OF_LISTS), (dict, _OF_MAPS), (int | float | bytes, frozenset()),
)  # fmt: skip


class RecipeEnvironment(ImmutableSandboxedEnvironment):
    """Jinja with few filters, no comments (`${#array[@]}` is bash) and a budget."""

    intercepted_binops = frozenset(["*", "**", "%", "+", "-", "/", "//"])

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            finalize=_finalize,
            keep_trailing_newline=True,
            comment_start_string="\0{",
            comment_end_string="}\0",
            cache_size=0,
            optimized=False,  # what is constant is worked out in the budget too
        )
        self.budget = Budget()
        self.globals = {"range": self._range}
        known = {**self.filters, "bool": bool, "format": _format}
        self.filters = {name: self._bounded(name, known[name]) for name in _FILTERS}
        self.filters |= {_HELD: self._held, _CONCAT: self._concat, _TURNS: self._turns}
        self.tests = {name: self.tests[name] for name in _TESTS}

    def bounded(self, tree: nodes.Template) -> nodes.Template:
        """The template, with what Jinja does without asking (lists, `~`, loops) done within the budget."""
        found: nodes.Template = _Bounds().visit(tree)
        return found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operation of two values."""
        if operator == "**" and not (_small(left, 1e6) and _small(right, 64)):
            raise SecurityError("the power is too large")
        if operator == "*" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            times = next((v for v in (left, right) if isinstance(v, int)), 1)
            self.budget.make(max(times, 0) * max(size_of(v) for v in (left, right) if not isinstance(v, int)))
        if operator == "%" and isinstance(left, str | bytes):
            self.budget.make(printf_size(as_text(left), right))
        return self._held(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063  # Jinja's names
        """A call of `range` or of a method."""
        if getattr(__obj, "__name__", None) in _BACKWARDS:
            searched = size_of(getattr(__obj, "__self__", ""))
            __self.budget.spend(searched * max(map(size_of, (*args, *kwargs.values())), default=0) // 1000)
        return __self._held(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:  # noqa: ARG002  # Jinja's name
        """Nothing: str.format is no method that `is_safe_attribute` allows."""
        return None

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether an attribute may be looked up; of plain values, methods that make nothing large."""
        for kind, methods in _METHODS:
            if isinstance(obj, kind):
                return attr in methods
        return super().is_safe_attribute(obj, attr, value)

    def _range(self, *bounds: int) -> range:
        values = range(*bounds)
        if len(values) > LONGEST_RANGE:
            raise SecurityError(f"range() of more than {LONGEST_RANGE} values")
        return values

    def _held(self, value: Any) -> Any:
        """A value that was made, if it is not too large."""
        check_number(value)
        self.budget.make(size_of(value))
        return value

    def _concat(self, values: list[Any]) -> str:
        self.budget.make(size_of(values))
        return str(self._held("".join(map(str, values))))

    def _turns(self, values: Any, nodes_inside: int) -> list[Any]:
        """What a loop goes over, paid for with all that each turn does."""
        found = list(values)
        if len(found) > LONGEST_RANGE:
            raise SecurityError(f"a loop of more than {LONGEST_RANGE} turns")
        self.budget.spend(len(found) * nodes_inside // 4)
        return found

    def _bounded(self, name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that first asks whether there is room for what it makes."""
        before = _BEFORE.get(name)
        passed = int(hasattr(apply, "jinja_pass_arg"))  # Jinja's own first argument

        @wraps(apply)
        def bounded(*args: Any, **named: Any) -> Any:
            self.budget.make(size_of(args[passed:]))
            if before is not None:
                self.budget.make(before(*args[passed:], **named))
            found = apply(*args, **named)
            return self._held(list(found) if hasattr(found, "__next__") else found)

        return bounded


def _replaced(text: Any, old: Any, new: Any, count: int | None = None) -> int:
    times = str(text).count(str(old))
    return len(str(text)) + (times if count is None or count < 0 else min(times, count)) * len(str(new))


def _joined(values: Any, d: Any = "", attribute: Any = None) -> int:  # noqa: ARG001  # Jinja's names
    count = len(values) if isinstance(values, Sized) else 0
    return size_of(values) + count * len(str(d))


def _rounded(value: Any, precision: Any = 0, method: Any = "common") -> int:  # noqa: ARG001  # Jinja's names
    if not _small(precision, _LARGEST_PRECISION):
        raise SecurityError(f"round to more than {_LARGEST_PRECISION} digits")
    return 0


def _summed(values: Any, attribute: Any = None, start: Any = 0) -> int:  # noqa: ARG001  # Jinja's names
    if not isinstance(start, int | float):
        raise SecurityError("sum is for numbers")
    return 0


def _printed(text: Any, *values: Any, **named: Any) -> int:
    return printf_size(str(text), values or named)


_BEFORE: Final[dict[str, Callable[..., int]]] = {
    "replace": _replaced, "join": _joined, "round": _rounded, "sum": _summed, "format": _printed,
}  # fmt: skip


class _Bounds(NodeTransformer):
    """Puts what Jinja does by itself through filters of the budget."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # Jinja's names, here and below
        found = self.generic_visit(node)
        assert isinstance(found, nodes.Concat)
        return _filter(nodes.List(found.nodes, lineno=node.lineno), _CONCAT)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        return self._hold(node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        return self._hold(node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        return self._hold(node) if node.ctx == "load" else node  # the others are names to assign to

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        inside = sum(1 for _ in node.find_all(nodes.Node))
        found = self.generic_visit(node)
        assert isinstance(found, nodes.For)
        found.iter = _filter(found.iter, _TURNS, nodes.Const(inside))
        return found

    def _hold(self, node: nodes.Expr) -> nodes.Filter:
        found = self.generic_visit(node)
        assert isinstance(found, nodes.Expr)
        return _filter(found, _HELD)


def _filter(node: Any, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(arguments), [], None, None, lineno=node.lineno)


def _small(value: object, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) <= limit


def _format(text: str, *values: Any) -> str:
    return str(text) % values


@pass_context
def _finalize(context: Context, value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # raises
    wrap = context.resolve_or_missing(WRAP)
    return wrap(value) if callable(wrap) else as_text(value)
