"""The types of single values in recipes and sites: how each is checked, said in a schema and written back.

A type `...OrTemplate` holds either the parsed value or, as text, an expression that the plan evaluates for
each case; the functions that parse it then are the same ones (nsw/recipe/units.py, `whole` here).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer
from pydantic_core import core_schema

from nsw.errors import did_you_mean
from nsw.recipe import units
from nsw.recipe.expressions import Expression, is_template
from nsw.recipe.secrets import holds_secret, looks_secret
from nsw.recipe.units import Fault, parse_below, parse_each, show_value


class Parsed:
    """For `Annotated`: a function parses the value, and nothing else checks it.

    pydantic's own PlainValidator, PlainSerializer and WithJsonSchema together would say the same. They also build,
    for every field, a schema of the type that they replace, which was a quarter of the time to build the models.

    Args:
        parse: Value of the file -> value of the model; it raises Fault.
        schema: The JSON Schema of what it takes.
        write: Value of the model -> what is read again; None: the value itself.
        when_used: Where it is written so: always, or in JSON only.
    """

    __slots__ = ("_parse", "_schema", "_serialization")

    def __init__(
        self,
        parse: Callable[[Any], Any],
        schema: dict[str, Any],
        write: Callable[[Any], Any] | None = None,
        *,
        when_used: core_schema.WhenUsed = "json",
    ) -> None:
        self._parse, self._schema = parse, schema
        self._serialization = (
            None if write is None else core_schema.plain_serializer_function_ser_schema(write, when_used=when_used)
        )

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._parse, serialization=self._serialization)

    def __get_pydantic_json_schema__(self, _core: object, _handler: object) -> dict[str, Any]:
        return dict(self._schema)


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")
_SIGNS = frozenset("()[]{}*+?|")  # of regular expressions, which a backslash makes plain
_TEMPLATE_PATTERN = r"\{[{%]"


def parse_text(value: object) -> str:
    """Text; a number does as well, as it was written.

    Raises:
        Fault: It is something else, or holds a control character.
    """
    if isinstance(value, bool):
        raise Fault(f"expected text, found {show_value(value)}", hint="quote it to keep it as it is written")
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        hint = 'quote an expression: "{{ ... }}"' if isinstance(value, dict) else None
        raise Fault(f"expected text, found {show_value(value)}", hint=hint)
    if "\0" in value:
        raise Fault("a NUL character is not allowed", offset=value.find("\0"))
    return value


def parse_line(value: object) -> str:
    """Text without a line end, which may hold Jinja expressions: it becomes (part of) one line of a script.

    Raises:
        Fault: It is no text, has several lines, or a fault of Jinja's syntax.
    """
    word = parse_template(value)
    if re.search(r"[\r\n]", word):
        raise Fault(f"expected one line, found several: {show_value(word)}")
    return word


def parse_variable_name(value: object) -> str:
    """The name of an environment variable, checked.

    Raises:
        Fault: It is something else.
    """
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise Fault(f"{show_value(value)} cannot name an environment variable", hint="letters, digits and '_' only")
    return value


def parse_filled_line(value: object) -> str:
    """One line of text that is not empty.

    Raises:
        Fault: It is empty, or no line.
    """
    word = parse_line(value)
    if not word.strip():
        raise Fault("expected text, found an empty one")
    return word


def parse_template(value: object) -> str:
    """Text that may hold Jinja expressions; their syntax is checked."""
    word = parse_text(value)
    if is_template(word):
        Expression.parse(word)
    return word


def parse_command(value: object) -> str | list[str]:
    """A command: one line of shell, or a list of arguments; not empty.

    Raises:
        Fault: It is something else.
    """
    if isinstance(value, list):
        if not value:
            raise Fault("the command is an empty list")
        return parse_each(parse_template, value)
    if not isinstance(value, str):
        raise Fault(f"expected a command as text or as a list of arguments, found {show_value(value)}")
    if not value.strip():
        raise Fault("the command is empty")
    return parse_template(value)


def parse_name(value: object) -> str:
    """A name: letters, digits, `.`, `_`, `-`, not starting with `-` or `.`, at most 80 characters.

    Raises:
        Fault: It is something else.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Fault(f"expected a name, found {show_value(value)}")
    if not _NAME.fullmatch(value):
        bad = re.search(r"[^A-Za-z0-9._-]", value)
        hint = "letters, digits, '.', '_' and '-', not starting with '-' or '.', at most 80"
        raise Fault(f"{show_value(value)} is not a name", hint=hint, offset=bad.start() if bad else 0)
    return value


def parse_whole_number(value: object, minimum: int = 0) -> int:
    """A whole number of at least `least`.

    Raises:
        Fault: It is something else.
    """
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d{1,18}", value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise Fault(f"expected a whole number of at least {minimum}, found {show_value(value)}")
    return int(value)


def parse_positive(value: object) -> float:
    """A number above zero: of operations, of bytes.

    Raises:
        Fault: It is something else.
    """
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 < number < math.inf:
        raise Fault(f"expected a number above 0, found {show_value(value)}")
    return float(number)


def parse_flag(value: object) -> bool:
    """True or false; on, off, yes and no do as well.

    Raises:
        Fault: It is something else.
    """
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise Fault(f"expected true or false, found {show_value(value)}")


def parse_group_regex(value: object) -> str:
    """A regular expression with exactly one group that catches.

    Raises:
        Fault: It does not compile, catches nothing or several things, or holds a control character
            that YAML's double quotes made of a backslash.
    """
    pattern = parse_regex(value)
    groups = re.compile(pattern).groups
    if groups != 1:
        group_count = "none" if groups == 0 else str(groups)
        hint = (
            "put ( ) around the part that is the figure" if groups == 0 else "write (?: ) for the groups that only bind"
        )
        raise Fault(
            f"the expression needs exactly one group, which captures the figure; it has {group_count}", hint=hint
        )
    return pattern


def parse_regex(value: object) -> str:
    """A regular expression.

    Raises:
        Fault: It does not compile, or holds a control character that YAML's double quotes made of a backslash.
    """
    pattern = parse_text(value)
    control = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", pattern)
    if control:
        letter = {"\b": "b", "\a": "a", "\f": "f", "\v": "v", "\x1b": "e", "\r": "r", "\0": "0"}.get(control[0], "x..")
        raise Fault(
            f"double quotes turned '\\{letter}' into the control character U+{ord(control[0]):04X}",
            hint="put the expression in single quotes",
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as fault:
        position = getattr(fault, "pos", None)
        sign = "" if position is None else pattern[position : position + 1]
        end = {"(": "close it with ), or ", "[": "close it with ], or "}.get(sign, "")
        hint = f"{end}write '\\{sign}' for the character {sign} itself" if sign in _SIGNS else None
        message = f"this regular expression is not valid: {getattr(fault, 'msg', fault)}"
        raise Fault(message, hint=hint, offset=position) from None
    return pattern


def parse_kernel_regex(value: object) -> str:
    """A regular expression over kernels' function names, in words that Python, ncu and nvprof read alike.

    Raises:
        Fault: It is none, or holds what only Python knows or what ncu takes for a separator.
    """
    pattern = parse_filled_line(parse_regex(value))
    for match, hint in (
        (re.search(r"\(\?P[<=>]", pattern), "write ( ) for a group"),
        (re.search(r"(?<!\\)(?:\\\\)*(\\[1-9])", pattern), "write out what repeats: nsw adds groups before yours"),
        (re.search(r":", pattern.replace("(?:", "(__")), "function names hold no ':': namespaces are left out of them"),
    ):
        if match:
            raise Fault(
                f"'{match[0]}' is not allowed in a profiler's filter: {show_value(pattern)}",
                hint=hint,
                offset=match.start(),
            )
    return pattern


def parse_kernel_name(value: object) -> str:
    """The name of a kernel's function, without the namespaces and arguments that a demangled name has around it.

    Raises:
        Fault: It is a demangled name: ncu's filter is split at colons, and function names end before the arguments.
    """
    name = parse_filled_line(value)
    match = re.search(r"::|[:<(]", name)
    if match is None:
        return name
    head = re.split(r"[<(]", name)[0].split("::")[-1].split(":")[-1].strip()
    hint = f"write {head.split()[-1]}" if head else "write the function's name alone"
    raise Fault(f"'{match[0]}' is in no function's name: {show_value(name)}", hint=hint, offset=match.start())


def parse_ranks(value: object) -> str | list[int]:
    """Which processes: all, first, node (the first of each node), a share of them such as 5%, or a list of ranks.

    Raises:
        Fault: It is something else.
    """
    if value in ("all", "first", "node"):
        return str(value)
    if isinstance(value, str) and value.endswith("%"):
        return units.format_percent(units.parse_percent(value))
    if not isinstance(value, list) or not value:
        raise Fault(f"expected all, first, node, a share such as 5% or a list of ranks, found {show_value(value)}")
    return parse_each(parse_whole_number, value)


def or_template(parse: Callable[[object], Any], value: object) -> Any:
    """A value, or a text with an expression that will give it."""
    return parse_template(value) if is_template(value) else parse(value)


def _with_serializer(parse: Callable[[Any], Any], schema: dict[str, Any], write: Callable[[Any], str]) -> Parsed:
    """A type that is written to JSON in the form that is read; what is text already (an expression) stays."""
    return Parsed(parse, schema, lambda value: value if value is None or isinstance(value, str) else write(value))


def _or_expression(parse: Callable[[Any], Any], **schema: Any) -> Parsed:
    """A type that is a value or an expression, with the schema of the value."""
    return Parsed(partial(or_template, parse), {"anyOf": [schema, {"type": "string", "pattern": _TEMPLATE_PATTERN}]})


_TEXT = {"type": ["string", "number"]}
_DURATION = {"type": "string", "examples": ["10m", "1h30m", "90s", "01:30:00"]}
_SIZE = {"type": "string", "examples": ["32G", "512M"]}
_PERCENT = {"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$", "examples": ["90%"]}
_REGEX = {"type": "string", "format": "regex"}

Text = Annotated[str, Parsed(parse_text, _TEXT)]
Filled = Annotated[str, Parsed(parse_filled_line, _TEXT | {"minLength": 1})]
Template = Annotated[str, Parsed(parse_template, _TEXT)]
Line = Annotated[str, Parsed(parse_line, _TEXT)]
Variable = Annotated[str, Parsed(parse_variable_name, {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})]
Command = Annotated[
    str | list[str],
    Parsed(
        parse_command, {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": _TEXT, "minItems": 1}]}
    ),
]
Name = Annotated[str, Parsed(parse_name, _TEXT | {"pattern": r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$"})]
Regex = Annotated[str, Parsed(parse_group_regex, _REGEX)]
KernelName = Annotated[str, Parsed(parse_kernel_name, _TEXT | {"minLength": 1})]
Pattern = Annotated[str, Parsed(parse_regex, _REGEX | {"minLength": 1})]
KernelRegex = Annotated[str, Parsed(parse_kernel_regex, _REGEX | {"minLength": 1})]
Flag = Annotated[
    bool, Parsed(parse_flag, {"type": ["boolean", "string"], "enum": [True, False, "on", "off", "yes", "no"]})
]
FlagOrTemplate = Annotated[bool | str, _or_expression(parse_flag, type="boolean")]
Count = Annotated[int, Parsed(partial(parse_whole_number, minimum=1), {"type": "integer", "minimum": 1})]
Number = Annotated[int, Parsed(partial(parse_whole_number, minimum=0), {"type": "integer", "minimum": 0})]
CountOrTemplate = Annotated[
    int | str, _or_expression(partial(parse_whole_number, minimum=1), type="integer", minimum=1)
]
NumberOrTemplate = Annotated[
    int | str, _or_expression(partial(parse_whole_number, minimum=0), type="integer", minimum=0)
]
AmountOrTemplate = Annotated[float | str, _or_expression(parse_positive, type="number", exclusiveMinimum=0)]
Ranks = Annotated[
    str | list[int],
    Parsed(
        parse_ranks,
        {
            "anyOf": [
                {"enum": ["all", "first", "node"]},
                _PERCENT,
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        },
    ),
]
_AMOUNT = {"type": "string", "examples": ["1 node-hour", "4 gpu-hours"]}
_TOLERANCE = {"type": "string", "pattern": units.TOLERANCE, "examples": ["-2%", "+2%"]}
Duration = Annotated[int, _with_serializer(units.parse_duration, _DURATION, units.format_duration)]
DurationOrTemplate = Annotated[
    int | str, _with_serializer(partial(or_template, units.parse_duration), _DURATION, units.format_duration)
]
_FREQUENCY = {"type": "string", "examples": ["10kHz", "500Hz"]}
Frequency = Annotated[int, _with_serializer(units.parse_sampling_frequency, _FREQUENCY, "{}Hz".format)]
Size = Annotated[int, _with_serializer(units.parse_size, _SIZE, units.format_size)]
SizeOrTemplate = Annotated[
    int | str, _with_serializer(partial(or_template, units.parse_size), _SIZE, units.format_size)
]
Percent = Annotated[float, _with_serializer(units.parse_percent, _PERCENT, units.format_percent)]
AmountOf = Annotated[units.Amount, _with_serializer(units.parse_amount, _AMOUNT, str)]
ToleranceRule = Annotated[units.Tolerance, _with_serializer(units.parse_tolerance, _TOLERANCE, str)]
_LEAST = {"anyOf": [{"type": "number"}, _SIZE]}
Least = Annotated[float | str, Parsed(units.parse_least, _LEAST)]
Real = Annotated[float, Parsed(units.parse_number, {"type": "number"})]
Margin = Annotated[
    str, Parsed(units.parse_margin, {"type": "string", "pattern": units.MARGIN, "examples": ["-5%", "5%"]})
]
Sha256 = Annotated[str, Parsed(units.parse_sha256, {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"})]
_CANARY = {"anyOf": [{"enum": ["on", "off", True, False]}, {"type": "string", "pattern": r"^runs above [0-9]+$"}]}
CanaryRule = Annotated[units.Canary, _with_serializer(units.parse_canary, _CANARY, str)]


def one_of(names: Callable[[], tuple[str, ...]]) -> Callable[[object], str]:
    """A parser of a name that a registry holds."""

    def parse(value: object) -> str:
        allowed = names()
        if value in allowed:
            return str(value)
        hint = did_you_mean(value, allowed) if isinstance(value, str) else None
        raise Fault(f"expected one of {', '.join(allowed)}; found {show_value(value)}", hint=hint)

    return parse


class _Free:
    """Marks a key that does not decide how a run is done, only which runs there are, how long, or what is made of them.

    A recipe that adds to a campaign may have other values there (nsw/recipe/load.py).
    """

    __slots__ = ()


FREE: Final = _Free()


def empty_as_map(value: Any) -> Any:
    """`- timeline:` with nothing behind it means the defaults."""
    return {} if value is None else value


class Model(BaseModel):
    """What every model of a recipe or site has in common: unknown keys are faults, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is shown nowhere: the text itself, or the variable of nsw's own environment that holds it."""

    value: str = field(default="", repr=False)
    from_env: str | None = None


class _Plain(str):  # noqa: SLOT000  a text with a mark, gone once the map is read
    """A text that is no secret, whatever its variable is called."""


def _parse_variable_value(parse: Callable[[object], str], value: object) -> str | Secret:
    if not isinstance(value, dict) or not {"secret", "plain"}.intersection(value):
        return parse(value)
    if len(value) > 1:
        raise Fault("a variable has one value, in a map with one key: 'secret' or 'plain'")
    if "plain" in value:
        return _Plain(parse_below("plain", parse, value["plain"]))
    inner = value["secret"]
    if not isinstance(inner, dict):
        return Secret(parse_below("secret", parse, inner))
    if list(inner) != ["from_env"]:
        raise Fault("expected text or {from_env: NAME}, found a map", hint="such as {secret: {from_env: HF_TOKEN}}")
    return Secret(from_env=parse_below("secret", partial(parse_below, "from_env", _parse_from_env), inner["from_env"]))


def _parse_from_env(value: object) -> str:
    """Parse the name of the variable that holds a secret; a wrong name may be the secret itself."""
    try:
        return parse_variable_name(value)
    except Fault as fault:
        raise Fault(
            "from_env takes the name of an environment variable; this is not such a name",
            hint="write {secret: VALUE} for the value itself" if isinstance(value, str) else fault.hint,
        ) from None


def _mark_secrets(values: dict[str, str | Secret]) -> dict[str, str | Secret]:
    """The values; those that look secret by name or content are marked as secrets."""
    marked: dict[str, str | Secret] = {}
    for name, value in values.items():
        is_secret = not isinstance(value, Secret | _Plain) and _looks_secret(name, value)
        marked[name] = Secret(str(value)) if is_secret else str(value) if isinstance(value, _Plain) else value
    return marked


def _looks_secret(name: str, value: str) -> bool:
    return looks_secret(name) or holds_secret(value)


def _as_recipe_data(values: Mapping[str, str | Secret]) -> dict[str, Any]:
    """The variables as recipe data; nsw's own environment holds the secret ones."""
    return {name: _variable_as_data(name, value) for name, value in values.items()}


def _variable_as_data(name: str, value: str | Secret) -> Any:
    if isinstance(value, Secret):
        return {"secret": {"from_env": value.from_env or name}}
    return {"plain": value} if _looks_secret(name, value) else value


_FROM_ENV = {
    "type": "object",
    "properties": {
        "from_env": {
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
            "description": "The variable of nsw's own environment that holds the value when a campaign begins.",
        }
    },
    "required": ["from_env"],
    "additionalProperties": False,
}
_MAP = {
    "type": "object",
    "properties": {
        "secret": {
            "anyOf": [_TEXT, _FROM_ENV],
            "description": "The value, which nsw writes to a file that only you can read, or {from_env: NAME}.",
        },
        "plain": _TEXT
        | {"description": "A value that is not secret although the variable's name looks so, as HF_TOKEN does."},
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_SCHEMA = {"anyOf": [_TEXT, _MAP]}
_BY_NAME, _AS_DATA = AfterValidator(_mark_secrets), PlainSerializer(_as_recipe_data)

Environment = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_parse_variable_value, parse_text), _SCHEMA)]],
    _BY_NAME,
    _AS_DATA,
]
EnvironmentTemplates = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_parse_variable_value, parse_template), _SCHEMA)]],
    _BY_NAME,
    _AS_DATA,
]
