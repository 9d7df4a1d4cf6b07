"""What a site's template of a script may cost: steps, and the size of what it makes, whatever loops and macros it has.

A step is about a microsecond, or 100 characters made. Wall time itself is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from nsw.recipe.expression_budget import check_number, printf_size, size_of

if TYPE_CHECKING:
    from jinja2.runtime import Context

LONGEST: Final = 4 << 20  # characters of a text, items of a list with all that is in them
STEPS: Final = 1_000_000  # of one script: a second or two
STEPS_A_RUN: Final = 1000  # more, for each run in the script
_A_STEP: Final = 100  # characters that cost a step
_INCLUDE: Final = 5000  # steps of reading another template
_SPEND, _HELD, _CONCAT = "\0spend", "\0held", "\0concat"  # filters that no template can name


class BudgetedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with a budget; call `begin` before each script."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=_written, optimized=False, **options)  # what is constant is in the budget too
        self._left = STEPS
        del self.globals["lipsum"]  # text without end
        self.filters = {name: self._bounded(name, apply) for name, apply in self.filters.items()}
        self.filters |= {_SPEND: self._spent, _HELD: self._held, _CONCAT: self._concat}

    def begin(self, runs: int) -> None:
        """Begin a script with so many runs."""
        self._left = STEPS + STEPS_A_RUN * runs

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            SecurityError: There were too many.
        """
        self._left -= steps
        if self._left < 0:
            raise SecurityError(f"it takes more than {STEPS:,} steps and {STEPS_A_RUN:,} for each run")

    def make(self, size: int) -> None:
        """Make room for a value of this size, before it is made.

        Raises:
            SecurityError: It would be too large.
        """
        if size > LONGEST:
            raise SecurityError(f"it makes more than {LONGEST:,} characters or items")
        self.spend(1 + size // _A_STEP)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operation of two values."""
        if operator == "**" and not (_small(left, 1e6) and _small(right, 64)):
            raise SecurityError("the power is too large")
        if operator == "*" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            times = next((v for v in (left, right) if isinstance(v, int)), 1)
            self.make(max(times, 0) * max(size_of(v, LONGEST) for v in (left, right) if not isinstance(v, int)))
        if operator == "%" and isinstance(left, str):
            self.make(printf_size(left, right, LONGEST))
        return self._held(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063  # Jinja's names
        """A call of a function, a macro or a method."""
        of = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(of, str | bytes | int | float):
            __self.make(_made_by(getattr(__obj, "__name__", ""), of, (*args, *kwargs.values())))
        found = super().call(__context, __obj, *args, **kwargs)
        return __self._held(found) if isinstance(found, str | bytes | int | list | tuple | dict) else found

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        found: nodes.Template = _Bounds().visit(super()._parse(source, name, filename))
        return found

    def _spent(self, value: str, steps: int) -> str:
        self.spend(steps)
        return value

    def _held(self, value: Any) -> Any:
        check_number(value)
        self.make(size_of(value, LONGEST))
        return value

    def _concat(self, values: list[Any]) -> str:
        self.make(size_of(values, LONGEST))
        return str(self._held("".join(map(str, values))))

    def _bounded(self, name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that first asks whether there is room for what it makes."""
        before = _BEFORE.get(name)
        passed = int(hasattr(apply, "jinja_pass_arg"))  # Jinja's own first argument

        @wraps(apply)
        def bounded(*args: Any, **named: Any) -> Any:
            self.make(sum(map(_shallow, args[passed:])))
            if before is not None:
                self.make(before(*args[passed:], **named))
            found = apply(*args, **named)
            self.make(_shallow(found))
            return found

        return bounded


def _shallow(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 1


def _small(value: object, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) <= limit


def _made_by(name: str, of: object, args: tuple[Any, ...]) -> int:
    """The most characters that a method of a text or number may give: its numbers are widths, its texts repeat."""
    size, texts = size_of(of, LONGEST), size_of([a for a in args if not isinstance(a, int)], LONGEST)
    widths = sum(abs(a) for a in args if isinstance(a, int))
    if name in {"format", "format_map"} and isinstance(of, str):
        numbers = (int(digits) for digits in _digits(of))
        return (1 + of.count("{")) * (texts + widths) + size + sum(numbers)
    if name == "replace":
        return _replaced(of, *args)
    if name == "join":
        return size_of(args, LONGEST) + sum(map(_shallow, args)) * size
    if name in {"translate", "expandtabs"}:
        return size * (1 + texts + widths)
    return size + texts + widths


def _digits(text: str) -> list[str]:
    import re

    return [digits[:12] for digits in re.findall(r"\d+", text)]


def _replaced(text: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> int:
    return len(str(text)) + str(text).count(str(old)) * len(str(new))


def _join(values: Any, d: Any = "", attribute: Any = None) -> int:  # noqa: ARG001  # Jinja's names
    return size_of(values, LONGEST) + _shallow(values) * len(str(d))


def _indented(s: Any, width: Any = 4, *_: Any, **__: Any) -> int:
    return len(str(s)) + (str(s).count("\n") + 1) * (width if isinstance(width, int) else len(str(width)))


def _wrapped(s: Any, *options: Any, **named: Any) -> int:
    return len(str(s)) * (1 + size_of([*options, *named.values()], LONGEST))


def _wide(_: Any, width: Any = 80, *__: Any, **___: Any) -> int:
    return int(width)


def _printed(text: Any, *values: Any, **named: Any) -> int:
    return printf_size(str(text), values or named, LONGEST)


def _summed(values: Any, attribute: Any = None, start: Any = 0) -> int:  # noqa: ARG001  # Jinja's names
    if not isinstance(start, int | float):
        raise SecurityError("sum is for numbers")
    return 0


def _rounded(value: Any, precision: Any = 0, *_: Any, **__: Any) -> int:  # noqa: ARG001  # Jinja's names
    if not _small(precision, 300):
        raise SecurityError("round to more than 300 digits")
    return 0


def _as_json(value: Any, indent: Any = 0) -> int:
    return size_of(value, LONGEST) * (1 + (indent if isinstance(indent, int) else 0))


_BEFORE: Final[dict[str, Callable[..., int]]] = {
    "replace": _replaced, "join": _join, "indent": _indented, "wordwrap": _wrapped, "center": _wide, "batch": _wide,
    "slice": _wide, "format": _printed, "sum": _summed, "round": _rounded, "tojson": _as_json,
}  # fmt: skip


class _Bounds(NodeTransformer):
    """Lets each turn of a loop, each macro and each block pay for what is in it, and literals for their size."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # Jinja's names, here and below
        return self._paid(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802
        return self._paid(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        return self._paid(node)

    def visit_Block(self, node: nodes.Block) -> nodes.Node:  # noqa: N802
        return self._paid(node)

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802
        return [_spend(_INCLUDE, node.lineno), node]

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        found = self.generic_visit(node)
        assert isinstance(found, nodes.Concat)
        return _filter(nodes.List(found.nodes, lineno=node.lineno), _CONCAT)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        return _filter(self.generic_visit(node), _HELD)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        return _filter(self.generic_visit(node), _HELD)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        return _filter(self.generic_visit(node), _HELD) if node.ctx == "load" else node  # else names to assign to

    def _paid(self, node: Any) -> nodes.Node:
        inside = sum(
            1 + (len(one.data) // _A_STEP if isinstance(one, nodes.TemplateData) else 0)
            for one in node.find_all(nodes.Node)
        )
        found: Any = self.generic_visit(node)
        found.body = [_spend(1 + inside // 4, node.lineno), *found.body]
        return found  # type: ignore[no-any-return]


def _spend(steps: int, line: int) -> nodes.Node:
    return nodes.Output([_filter(nodes.Const("", lineno=line), _SPEND, nodes.Const(steps, lineno=line))], lineno=line)


def _filter(node: Any, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(arguments), [], None, None, lineno=node.lineno)


@pass_context
def _written(context: Context, value: Any) -> str:
    """What an expression prints, paid for by its length."""
    environment = context.environment
    assert isinstance(environment, BudgetedEnvironment)
    if not isinstance(value, str):
        environment.make(size_of(value, LONGEST))
    text = str(value)
    environment.make(len(text))
    return text
