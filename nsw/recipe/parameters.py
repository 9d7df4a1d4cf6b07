"""The matrix as types: a parameter's values, and how parameters are combined."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from nsw.recipe.faults import Fault, each, shown, within
from nsw.recipe.fields import template
from nsw.recipe.numbers_as_written import plain
from nsw.recipe.parsed import Parsed
from nsw.recipe.passes import Model

Scalar: TypeAlias = str | int | float | bool


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
        found = pattern.fullmatch(text.strip())
        if found is None:
            continue
        start, stop, step = int(found[1] or 0), int(found[2]), int(found[3] or 1)
        last = stop if at == 0 else stop - (1 if step > 0 else -1)  # Python's range ends before its stop
        steps = f", {step}" if step != 1 else ""
        values = range(start, last + (1 if step > 0 else -1), step or 1)
        as_list = f" or {list(values)}" if 0 < len(values[: _LISTED + 1]) <= _LISTED else ""
        raise Fault(
            f"{shown(text)} is text here, not a range",
            hint=f"write {{range: [{start}, {last}{steps}]}}{as_list}",
        )


def _values(value: object) -> list[Scalar] | Range:
    """A parameter's values: a list, one value, an expression, or {range: [start, stop, step]}."""
    if isinstance(value, str):
        refuse_ranges(value)
        _refuse_half_a_range(value, "map", "write {range: [FIRST, LAST]} as its value")
    if isinstance(value, dict):
        return _range(value)
    if isinstance(value, list):
        if not value:
            raise Fault(
                "the list of values is empty",
                hint="without a value there is no case: give one, or remove the parameter",
            )
        return each(_listed, value)
    return [_scalar(value)]


def _listed(value: object) -> Scalar:
    """One value of a list, which may be any text but a range: `[1..9]` is meant to be nine."""
    if isinstance(value, str):
        refuse_ranges(value)
        _refuse_half_a_range(value, "list", "write {range: [FIRST, LAST]} in the place of the list")
    return _scalar(value)


def _refuse_half_a_range(text: str, of: str, hint: str) -> None:
    if _HALF_A_RANGE.fullmatch(text):
        raise Fault(f"{shown(text)} is text here: YAML divides a {of} at each comma, also inside ( )", hint=hint)


def rests_of_ranges(values: Mapping[str, object]) -> set[str]:
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


def _scalar(value: object) -> Scalar:
    if isinstance(value, dict):
        raise Fault("expected a value, found a map", hint='quote an expression: "{{ ... }}"')
    if not isinstance(value, str | int | float | bool):
        raise Fault(f"expected a value, found {shown(value)}")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124  # nan
        raise Fault(f"{value} cannot be the value of a case")
    return template(value) if isinstance(value, str) else value


def _range(value: dict[str, Any]) -> Range:
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
    start, stop, step = (plain(number) for number in (*numbers, 1)[:3])
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


def _as_data(values: list[Scalar] | Range) -> Any:
    return {"range": [values.start, values.stop, values.step]} if isinstance(values, Range) else values


Values = Annotated[list[Scalar] | Range, Parsed(_values, _VALUES, _as_data, when="always")]


def _match(value: object) -> dict[str, list[Scalar]] | str:
    """What an exclude leaves out: a map of parameter to value or values, or a condition."""
    if isinstance(value, str):
        return template(value)
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {shown(value)}")
    return {key: within(key, _alternatives, item) for key, item in value.items()}


def _alternatives(value: object) -> list[Scalar]:
    return each(_scalar, value) if isinstance(value, list) else [_scalar(value)]


def _point(value: object) -> dict[str, Scalar]:
    if not isinstance(value, dict) or not value:
        raise Fault(f"expected a map such as {{gpus: 4, batch: 128}}, found {shown(value)}")
    return {key: within(key, _scalar, item) for key, item in value.items()}


def _groups(value: object) -> list[list[str]]:
    """`[[gpus, nodes]]`; one group may be without the outer list."""
    groups = [value] if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else value
    if not isinstance(groups, list) or not all(isinstance(g, list) and len(g) > 1 for g in groups):
        raise Fault(
            f"expected lists of parameters that vary together, found {shown(value)}",
            hint="such as [[gpus, nodes]]",
        )
    return [[str(word) for word in group] for group in groups]


def _as_it_is(value: object) -> Any:
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

    exclude: list[Annotated[dict[str, list[Scalar]] | str, Parsed(_match, _MATCH, _as_it_is, when="always")]] = Field(
        default=[],
        description='Cases left out: {gpus: 4, batch: [64, 128]}, or a condition "{{ gpus * batch > 256 }}".',
    )
    include: list[
        Annotated[
            dict[str, Scalar], Parsed(_point, _POINT | {"additionalProperties": _SCALAR}, _as_it_is, when="always")
        ]
    ] = Field(default=[], description="Cases added, each with a value for every parameter.")
    zip: Annotated[list[list[str]], Parsed(_groups, _GROUPS)] = Field(
        default=[],
        description="Parameters that vary together instead of in all combinations: [[gpus, nodes]].",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_fault_per_range(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        rests = rests_of_ranges(values)
        return {key: value for key, value in values.items() if key not in rests}

    @property
    def parameters(self) -> dict[str, list[Scalar] | Range]:
        """The parameters in the order of the file."""
        return self.__pydantic_extra__
