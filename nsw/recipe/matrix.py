"""The matrix: parameters and how they are combined, expanded to a case for each combination, each with a safe name."""

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from math import prod
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from nsw.recipe.document import KeyPath
from nsw.recipe.expressions import Expression, is_template
from nsw.recipe.fields import Model, Parsed, parse_template
from nsw.recipe.units import Fault, parse_below, parse_each, plain_number, show_value

Scalar: TypeAlias = str | int | float | bool

SIDE = "side"  # the parameter by which two programs are compared, and its values
BEFORE = "before"
AFTER = "after"
ITSELF = "itself"  # what `nsw noise` runs a recipe beside


@dataclass(frozen=True, slots=True)
class Range:
    """Evenly spaced values: start, then steps up to stop, which is a value itself when a step hits it."""

    start: int | float
    stop: int | float
    step: int | float

    def values(self) -> list[int | float]:
        """The values; whole numbers when all three are, otherwise floats free of rounding drift."""
        if isinstance(self.start, int) and isinstance(self.stop, int) and isinstance(self.step, int):
            return list(range(self.start, self.stop + (1 if self.step > 0 else -1), self.step))
        start, stop, step = (Fraction(str(bound)) for bound in (self.start, self.stop, self.step))
        return [float(start + step * turn) for turn in range((stop - start) // step + 1)]


_LISTED = 9  # values that a hint spells out
_RANGES = (
    # what other tools take for several values, and what is one text here: a, b and perhaps a step
    re.compile(r"([-+]?\d+) ?\.\.\.? ?([-+]?\d+)()"),
    re.compile(r"x?range\( ?([-+]?\d+) ?, ?([-+]?\d+) ?(?:, ?([-+]?\d+) ?)?\)"),
    re.compile(r"x?range\( ?()([-+]?\d+)() ?\)"),
)
_HALF_A_RANGE = re.compile(r"x?range\([^()]*")  # of [range(1, 4)] the first item, of {n: range(1, 4)} the value


def refuse_ranges(text: str) -> None:
    """Refuse a text that was meant to be several values, and would silently be one.

    Raises:
        Fault: It is a range of another notation; the hint has the recipe's.
    """
    for at, pattern in enumerate(_RANGES):
        match = pattern.fullmatch(text.strip())
        if match is None:
            continue
        start, stop, step = int(match[1] or 0), int(match[2]), int(match[3] or 1)
        last = stop if at == 0 else stop - (1 if step > 0 else -1)  # Python's range ends before its stop
        steps = f", {step}" if step != 1 else ""
        values = range(start, last + (1 if step > 0 else -1), step or 1)
        as_list = f" or {list(values)}" if 0 < len(values[: _LISTED + 1]) <= _LISTED else ""
        raise Fault(
            f"{show_value(text)} is text here, not a range", hint=f"write {{range: [{start}, {last}{steps}]}}{as_list}"
        )


def _parse_values(value: object) -> list[Scalar] | Range:
    """A parameter's values: a list, one value, an expression, or {range: [start, stop, step]}."""
    if isinstance(value, str):
        refuse_ranges(value)
        _refuse_partial_range(value, "map", "write {range: [FIRST, LAST]} as its value")
    if isinstance(value, dict):
        return _parse_range(value)
    if isinstance(value, list):
        if not value:
            hint = "without a value there is no case: give one, or remove the parameter"
            raise Fault("the list of values is empty", hint=hint)
        return parse_each(_parse_list_value, value)
    return [_parse_scalar(value)]


def _parse_list_value(value: object) -> Scalar:
    """Parse a value of a list, which may be any text but a range: `[1..9]` is meant to be nine values."""
    if isinstance(value, str):
        refuse_ranges(value)
        _refuse_partial_range(value, "list", "write {range: [FIRST, LAST]} in the place of the list")
    return _parse_scalar(value)


def _refuse_partial_range(text: str, container: str, hint: str) -> None:
    if _HALF_A_RANGE.fullmatch(text):
        message = f"{show_value(text)} is text here: YAML divides a {container} at each comma, also inside ( )"
        raise Fault(message, hint=hint)


def range_rest_keys(values: Mapping[str, object]) -> set[str]:
    """The keys that YAML makes of the rest of `{n: range(1, 9, 2)}`: the fault is reported once, at `n`."""
    rests: set[str] = set()
    inside = False
    for key, value in values.items():
        if inside and value is None:
            rests.add(key)
            inside = not key.endswith(")")
        else:
            inside = isinstance(value, str) and _HALF_A_RANGE.fullmatch(value) is not None
    return rests


def _parse_scalar(value: object) -> Scalar:
    if isinstance(value, dict):
        raise Fault("expected a value, found a map", hint='quote an expression: "{{ ... }}"')
    if not isinstance(value, str | int | float | bool):
        raise Fault(f"expected a value, found {show_value(value)}")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124  # nan
        raise Fault(f"{value} cannot be the value of a case")
    return parse_template(value) if isinstance(value, str) else value


def _parse_range(value: dict[str, Any]) -> Range:
    bounds = value.get("range")
    if isinstance(bounds, str):
        refuse_ranges(bounds)
    numbers = (
        [b for b in bounds if isinstance(b, int | float) and not isinstance(b, bool)]
        if isinstance(bounds, list)
        else []
    )
    if len(value) != 1 or not isinstance(bounds, list) or len(numbers) != len(bounds) or len(numbers) not in {2, 3}:
        raise Fault(
            "expected a list of values or {range: [start, stop, step]}",
            hint="such as {range: [1, 9]}" if "range" in value else 'quote an expression: "{{ ... }}"',
        )
    start, stop, step = (plain_number(number) for number in (*numbers, 1)[:3])
    if step == 0 or (stop - start) / step < 0:
        raise Fault(f"the range from {start} to {stop} in steps of {step} has no value", hint="give it another step")
    if (stop - start) / step > 100_000:
        raise Fault("the range has more than 100,000 values")
    return Range(start=start, stop=stop, step=step)


_SCALAR = {"type": ["string", "number", "boolean"]}
_VALUES = {
    "description": "A list, {range: [start, stop, step]} (stop included), or an expression.",
    "anyOf": [
        {"type": "array", "items": _SCALAR, "minItems": 1},
        {
            "type": "object",
            "properties": {"range": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}},
            "required": ["range"],
            "additionalProperties": False,
        },
        _SCALAR,
    ],
}


Values = Annotated[
    list[Scalar] | Range,
    Parsed(
        _parse_values,
        _VALUES,
        lambda values: {"range": [values.start, values.stop, values.step]} if isinstance(values, Range) else values,
        when_used="always",
    ),
]


def _parse_exclude(value: object) -> dict[str, list[Scalar]] | str:
    """Parse an exclude: a map of parameter to value or values, or a condition."""
    if isinstance(value, str):
        return parse_template(value)
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {show_value(value)}")
    return {
        key: parse_below(key, partial(parse_each, _parse_scalar), item if isinstance(item, list) else [item])
        for key, item in value.items()
    }


def _parse_include(value: object) -> dict[str, Scalar]:
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {show_value(value)}")
    return {key: parse_below(key, _parse_scalar, item) for key, item in value.items()}


def _parse_zip_groups(value: object) -> list[list[str]]:
    """Parse `[[gpus, nodes]]`; one group may be without the outer list."""
    groups = [value] if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else value
    if not isinstance(groups, list) or not all(isinstance(g, list) and len(g) > 1 for g in groups):
        raise Fault(
            f"expected lists of parameters that vary together, found {show_value(value)}",
            hint="such as [[gpus, nodes]]",
        )
    return [[str(word) for word in group] for group in groups]


def _serialize_unchanged(value: object) -> Any:
    """A number that remembers its text is no plain number to pydantic's own serializers."""
    return value


_POINT = {"type": "object", "minProperties": 1}
_MATCH = {
    "anyOf": [
        _POINT | {"additionalProperties": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}},
        {"type": "string"},
    ]
}
_GROUPS = {"type": "array", "items": {"type": ["array", "string"], "items": {"type": "string"}}}


class Matrix(Model):
    """The parameters, by name, and how they are combined; the first varies slowest."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Values] = Field(init=False)

    exclude: list[
        Annotated[
            dict[str, list[Scalar]] | str, Parsed(_parse_exclude, _MATCH, _serialize_unchanged, when_used="always")
        ]
    ] = Field(
        default=[],
        description='Cases left out: {gpus: 4, batch: [64, 128]}, or a condition "{{ gpus * batch > 256 }}".',
    )
    include: list[
        Annotated[
            dict[str, Scalar],
            Parsed(
                _parse_include, _POINT | {"additionalProperties": _SCALAR}, _serialize_unchanged, when_used="always"
            ),
        ]
    ] = Field(default=[], description="Cases added, each with a value for every parameter.")
    zip: Annotated[list[list[str]], Parsed(_parse_zip_groups, _GROUPS)] = Field(
        default=[], description="Parameters that vary together instead of in all combinations: [[gpus, nodes]]."
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_range_rests(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        rests = range_rest_keys(values)
        return {key: value for key, value in values.items() if key not in rests}

    @property
    def parameters(self) -> dict[str, list[Scalar] | Range]:
        """The parameters in the order of the file."""
        return self.__pydantic_extra__


MOST_CASES = 100_000
_MOST_COMPARISONS = 20_000_000  # of cases with values of excludes: some ten seconds
LONGEST_ID = 80

_SAFE = re.compile(
    r"[A-Za-z0-9.-]+|[A-Za-z0-9._]+"
)  # with '-' or with '_', never both: names end at '-', values at '_'
_NUMBER_LIKE = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|0x[0-9a-f]+|0o[0-7]+|true|false", re.IGNORECASE)

Params: TypeAlias = "dict[str, Scalar]"


class MatrixFault(Fault):
    """A fault of the matrix; `path` says which of its values, from the root of the recipe."""

    def __init__(self, path: KeyPath, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@dataclass(frozen=True, slots=True)
class Case:
    """One point of the matrix; `id` is a name for it that is safe in file systems and shells."""

    params: Params
    id: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """The cases, and which excludes left nothing out and which includes brought nothing new (by index)."""

    cases: list[Case]
    idle_excludes: list[int]
    idle_includes: list[int]


def expand_matrix(matrix: Matrix) -> Expansion:
    """All cases, the first parameter varying slowest, and what did not matter for them.

    Raises:
        MatrixFault: An expression fails, parameters depend on each other in a circle, zipped lists differ in
            length, or there are too many cases.
    """
    names = list(matrix.parameters)
    columns = {name: v.values() if isinstance(v, Range) else v for name, v in matrix.parameters.items()}
    axes = _product_axes(columns, matrix.zip)
    size = prod(len(rows) for _, rows in axes)
    if size > MOST_CASES:
        raise MatrixFault(("matrix",), f"the matrix has {size:,} cases; at most {MOST_CASES:,} are taken")
    complete = _expression_evaluator(columns)
    rows: list[Params] = []
    if columns or not matrix.include:
        keys = [name for group, _ in axes for name in group]
        for combination in itertools.product(*(rows for _, rows in axes)):
            point = dict(zip(keys, itertools.chain.from_iterable(combination), strict=True))
            rows.append(complete({name: point[name] for name in names}))
    values = sum(1 if isinstance(exclude, str) else sum(map(len, exclude.values())) for exclude in matrix.exclude)
    if len(rows) * values > _MOST_COMPARISONS:
        raise MatrixFault(
            ("matrix", "exclude"),
            f"{values:,} values to exclude in {len(rows):,} cases take more than {_MOST_COMPARISONS:,} comparisons",
            hint="write fewer excludes, or a condition such as '{{ gpus * batch > 256 }}'",
        )
    remaining, idle_excludes = _apply_excludes(rows, matrix.exclude)
    cases, idle_includes = _unique_cases([*remaining, *_included_cases(matrix, complete)], len(remaining))
    return Expansion(cases, idle_excludes, idle_includes)


def case_id(params: Mapping[str, Scalar]) -> str:
    """A name such as `gpus-2_batch-16`: it depends on these parameters alone, and others never share it."""
    if not params:
        return "case"
    name = "_".join(f"{key}-{_safe_name(value)}" for key, value in params.items())
    return name if len(name) <= LONGEST_ID else f"{name[: LONGEST_ID - 17].rstrip('-_.')}-{_digest(params)}"


def _safe_name(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value).replace("+", "")
    if len(value) <= 40 and _SAFE.fullmatch(value) and not _NUMBER_LIKE.fullmatch(value):
        return value
    words = re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.")[:24]
    return f"{words}-{_digest(value)[:10]}".lstrip("-")


def _digest(value: object) -> str:
    canonical = json.dumps(value, ensure_ascii=True)
    return blake2b(canonical.encode(), digest_size=8).hexdigest()


def _product_axes(
    columns: Mapping[str, Sequence[Scalar]], groups: Sequence[Sequence[str]]
) -> list[tuple[tuple[str, ...], list[tuple[Scalar, ...]]]]:
    """The axes of the product: parameters that vary alone, and zipped ones at the position of their first."""
    grouped: dict[str, tuple[int, Sequence[str]]] = {}
    for index, group in enumerate(groups):
        for name in group:
            if name not in columns:
                raise MatrixFault(("matrix", "zip", index), f"zip names {show_value(name)}, which is not a parameter")
            if name in grouped:
                raise MatrixFault(("matrix", "zip", index), f"zip names {show_value(name)} twice")
            grouped[name] = (index, group)
    axes: list[tuple[tuple[str, ...], list[tuple[Scalar, ...]]]] = []
    done: set[int] = set()
    for name in columns:
        index, group = grouped.get(name, (-1, [name]))
        if index in done:
            continue
        if index >= 0:
            done.add(index)
        lengths = {member: len(columns[member]) for member in group}
        if len(set(lengths.values())) > 1:
            lengths_text = ", ".join(f"{member} {length}" for member, length in lengths.items())
            raise MatrixFault(
                ("matrix", "zip", index), f"zipped parameters need the same number of values; found: {lengths_text}"
            )
        axes.append((tuple(group), list(zip(*(columns[member] for member in group), strict=True))))
    return axes


def order_of_expressions(columns: Mapping[str, Sequence[Scalar]]) -> list[str]:
    """The parameters with expressions, each after those it needs.

    Raises:
        MatrixFault: Some need each other in a circle.
    """
    needs = {
        name: {n for v in values if is_template(v) for n in Expression.parse(str(v)).names}
        for name, values in columns.items()
        if any(is_template(v) for v in values)
    }
    ordered: list[str] = []
    while len(ordered) < len(needs):
        ready = [n for n in needs if n not in ordered and not (needs[n] & needs.keys()) - set(ordered)]
        if not ready:
            circle = sorted(needs.keys() - set(ordered))
            raise MatrixFault(
                ("matrix", circle[0]), f"these parameters depend on each other in a circle: {', '.join(circle)}"
            )
        ordered += ready
    return ordered


def _expression_evaluator(columns: Mapping[str, Sequence[Scalar]]) -> Callable[[Params], Params]:
    """A function that replaces the expressions among a case's values by their results."""
    order = order_of_expressions(columns)
    if not order:
        return lambda params: params

    def fill_expressions(params: Params) -> Params:
        for name in order:
            value = params[name]
            if is_template(value):
                params[name] = _evaluate_parameter(name, str(value), params)
        return params

    return fill_expressions


def _evaluate_parameter(name: str, text: str, params: Params) -> Scalar:
    try:
        value = Expression.parse(text).value(params)
    except Fault as fault:
        parameters_text = ", ".join(f"{k}={v}" for k, v in params.items() if not is_template(v))
        raise MatrixFault(
            ("matrix", name), fault.message, hint=f"with {parameters_text}" if parameters_text else fault.hint
        ) from None
    if not isinstance(value, str | int | float | bool):
        message = f"{show_value(text)} gives {show_value(value)}, which a case cannot have as a value"
        raise MatrixFault(("matrix", name), message, hint=_range_syntax(value))
    return value


def _range_syntax(value: object) -> str | None:
    """How a recipe writes the values of Python's `range`."""
    try:
        refuse_ranges(str(value))
    except Fault as fault:
        return fault.hint
    return None


def _apply_excludes(
    rows: list[Params], excludes: Sequence[dict[str, list[Scalar]] | str]
) -> tuple[list[Params], list[int]]:
    """The rows that no exclude matches, and the indices of the excludes that match nothing."""
    idle = []
    dropped: set[int] = set()
    for index, exclude in enumerate(excludes):
        matches = _compile_condition(index, exclude) if isinstance(exclude, str) else partial(_matches_exclude, exclude)
        hit = {number for number, row in enumerate(rows) if matches(row)}
        if not hit:
            idle.append(index)
        dropped |= hit
    return [row for number, row in enumerate(rows) if number not in dropped], idle


def _matches_exclude(exclude: dict[str, list[Scalar]], row: Params) -> bool:
    """Whether a case has one of the values of each parameter; 4.0 is 4, but true is not 1."""
    return all(
        name in row and any(row[name] == v and isinstance(row[name], bool) == isinstance(v, bool) for v in values)
        for name, values in exclude.items()
    )


def _compile_condition(index: int, text: str) -> Callable[[Params], bool]:
    expression = Expression.parse(text)

    def matches(row: Params) -> bool:
        try:
            return bool(expression.value(row))
        except Fault as fault:
            raise MatrixFault(("matrix", "exclude", index), fault.message, hint=fault.hint) from None

    return matches


def _included_cases(matrix: Matrix, complete: Callable[[Params], Params]) -> list[Params]:
    """The added cases: every parameter is given, or computed where its only value is an expression."""
    names = list(matrix.parameters) or list(matrix.include[0] if matrix.include else ())
    computed = {
        name: values[0]
        for name, values in matrix.parameters.items()
        if isinstance(values, list) and len(values) == 1 and is_template(values[0])
    }
    cases = []
    for index, point in enumerate(matrix.include):
        values = computed | point
        for name in names:
            if name not in values:
                raise MatrixFault(("matrix", "include", index), f"this case lacks a value for '{name}'")
        for name in point:
            if name not in names:
                raise MatrixFault(("matrix", "include", index, name), f"{show_value(name)} is not a parameter")
        cases.append(complete({name: values[name] for name in names}))
    return cases


def _unique_cases(rows: list[Params], from_product: int) -> tuple[list[Case], list[int]]:
    """The cases, each once; and which of the rows behind `from_product` were there already."""
    cases: dict[str, Case] = {}
    idle = []
    for number, row in enumerate(rows):
        name = case_id(row)
        plain_row = {key: plain_number(value) for key, value in row.items()}  # 1e3 and 1000.0 are one case
        plain_name = name if all(plain_row[key] is row[key] for key in row) else case_id(plain_row)
        if plain_name in cases:
            if number >= from_product:
                idle.append(number - from_product)
            continue
        cases[plain_name] = Case(row, name)
    return list(cases.values()), idle
