"""The matrix expanded: one case for each combination of parameters, each with a stable, safe name."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from nsw.recipe.expressions import Expression, is_template
from nsw.recipe.faults import Fault, shown
from nsw.recipe.numbers_as_written import plain
from nsw.recipe.parameters import Matrix, Range, Scalar, refuse_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.recipe.model import Recipe
    from nsw.recipe.yaml_nodes import Path

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

    def __init__(self, path: Path, message: str, *, hint: str | None = None) -> None:
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


def expand(recipe: Recipe) -> list[Case]:
    """All cases in the order of the recipe, the first parameter varying slowest.

    Raises:
        MatrixFault: An expression fails, parameters depend on each other in a circle, zipped lists differ in
            length, or there are too many cases.
    """
    return expansion(recipe.matrix).cases


def expansion(matrix: Matrix) -> Expansion:
    """The cases with what did not matter for them; raises as `expand` does."""
    names = list(matrix.parameters)
    columns = {name: v.values() if isinstance(v, Range) else v for name, v in matrix.parameters.items()}
    axes = _axes(columns, matrix.zip)
    size = prod(len(rows) for _, rows in axes)
    if size > MOST_CASES:
        raise MatrixFault(("matrix",), f"the matrix has {size:,} cases; at most {MOST_CASES:,} are taken")
    complete = _completion(columns)
    rows: list[Params] = []
    if columns or not matrix.include:
        keys = [name for group, _ in axes for name in group]
        for combination in itertools.product(*(rows for _, rows in axes)):
            values = dict(zip(keys, itertools.chain.from_iterable(combination), strict=True))
            rows.append(complete({name: values[name] for name in names}))
    _check_comparisons(len(rows), matrix.exclude)
    kept, idle_excludes = _excluded(rows, matrix.exclude)
    cases, idle_includes = _named([*kept, *_included(matrix, complete)], len(kept))
    return Expansion(cases, idle_excludes, idle_includes)


def case_id(params: Mapping[str, Scalar]) -> str:
    """A name such as `gpus-2_batch-16`: it depends on these parameters alone, and others never share it."""
    if not params:
        return "case"
    name = "_".join(f"{key}-{_slug(value)}" for key, value in params.items())
    return name if len(name) <= LONGEST_ID else f"{name[: LONGEST_ID - 17].rstrip('-_.')}-{_digest(params)}"


def _slug(value: Scalar) -> str:
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


def _axes(
    columns: Mapping[str, Sequence[Scalar]], groups: Sequence[Sequence[str]]
) -> list[tuple[tuple[str, ...], list[tuple[Scalar, ...]]]]:
    """What the product runs over: parameters that vary alone, and zipped ones at the place of their first."""
    grouped: dict[str, tuple[int, Sequence[str]]] = {}
    for index, group in enumerate(groups):
        for name in group:
            if name not in columns:
                raise MatrixFault(("matrix", "zip", index), f"zip names {shown(name)}, which is not a parameter")
            if name in grouped:
                raise MatrixFault(("matrix", "zip", index), f"zip names {shown(name)} twice")
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
            found = ", ".join(f"{member} {length}" for member, length in lengths.items())
            raise MatrixFault(
                ("matrix", "zip", index), f"zipped parameters need the same number of values; found: {found}"
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


def _completion(columns: Mapping[str, Sequence[Scalar]]) -> Callable[[Params], Params]:
    """A function that replaces the expressions among a case's values by what they give."""
    order = order_of_expressions(columns)
    if not order:
        return lambda params: params

    def complete(params: Params) -> Params:
        for name in order:
            value = params[name]
            if is_template(value):
                params[name] = _computed(name, str(value), params)
        return params

    return complete


def _computed(name: str, text: str, params: Params) -> Scalar:
    try:
        value = Expression.parse(text).value(params)
    except Fault as fault:
        given = ", ".join(f"{k}={v}" for k, v in params.items() if not is_template(v))
        raise MatrixFault(("matrix", name), fault.message, hint=f"with {given}" if given else fault.hint) from None
    if not isinstance(value, str | int | float | bool):
        message = f"{shown(text)} gives {shown(value)}, which a case cannot have as a value"
        raise MatrixFault(("matrix", name), message, hint=_as_range(value))
    return value


def _as_range(value: object) -> str | None:
    """How a recipe writes the values of Python's `range`."""
    try:
        refuse_ranges(str(value))
    except Fault as fault:
        return fault.hint
    return None


def _same(one: object, other: object) -> bool:
    """Equality that tells true from 1, but not 4 from 4.0."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _check_comparisons(rows: int, excludes: Sequence[dict[str, list[Scalar]] | str]) -> None:
    """Bound the time that excludes take: each value is compared with each case."""
    values = sum(1 if isinstance(one, str) else sum(map(len, one.values())) for one in excludes)
    if rows * values > _MOST_COMPARISONS:
        raise MatrixFault(
            ("matrix", "exclude"),
            f"{values:,} values to exclude in {rows:,} cases take more than {_MOST_COMPARISONS:,} comparisons",
            hint="write fewer excludes, or a condition such as '{{ gpus * batch > 256 }}'",
        )


def _excluded(rows: list[Params], excludes: Sequence[dict[str, list[Scalar]] | str]) -> tuple[list[Params], list[int]]:
    """What no exclude matches, and the excludes that match nothing."""
    idle = []
    dropped: set[int] = set()
    for index, exclude in enumerate(excludes):
        matches = _condition(index, exclude) if isinstance(exclude, str) else _pattern(exclude)
        hit = {number for number, row in enumerate(rows) if matches(row)}
        if not hit:
            idle.append(index)
        dropped |= hit
    return [row for number, row in enumerate(rows) if number not in dropped], idle


def _pattern(exclude: dict[str, list[Scalar]]) -> Callable[[Params], bool]:
    wanted = list(exclude.items())
    return lambda row: all(name in row and any(_same(row[name], v) for v in values) for name, values in wanted)


def _condition(index: int, text: str) -> Callable[[Params], bool]:
    expression = Expression.parse(text)

    def matches(row: Params) -> bool:
        try:
            return bool(expression.value(row))
        except Fault as fault:
            raise MatrixFault(("matrix", "exclude", index), fault.message, hint=fault.hint) from None

    return matches


def _included(matrix: Matrix, complete: Callable[[Params], Params]) -> list[Params]:
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
                raise MatrixFault(("matrix", "include", index, name), f"{shown(name)} is not a parameter")
        cases.append(complete({name: values[name] for name in names}))
    return cases


def _plain(row: Params) -> Params:
    """The values themselves: 1e3 and 1000.0 are one."""
    return {name: plain(value) for name, value in row.items()}


def _named(rows: list[Params], from_product: int) -> tuple[list[Case], list[int]]:
    """The cases, each once; and which of the rows behind `from_product` were there already."""
    cases: dict[str, Case] = {}
    idle = []
    for number, row in enumerate(rows):
        name = case_id(row)
        same = name if all(plain(value) is value for value in row.values()) else case_id(_plain(row))
        if same in cases:
            if number >= from_product:
                idle.append(number - from_product)
            continue
        cases[same] = Case(row, name)
    return list(cases.values()), idle
