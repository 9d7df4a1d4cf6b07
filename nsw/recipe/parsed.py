"""What a type of a recipe or site says of its values: how they are parsed, written back and described in a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

if TYPE_CHECKING:
    from collections.abc import Callable


class Parsed:
    """For `Annotated`: a function parses the value, and nothing else checks it.

    pydantic's own PlainValidator, PlainSerializer and WithJsonSchema together would say the same. They also build,
    for every field, a schema of the type that they replace, which was a quarter of the time to build the models.

    Args:
        parse: Value of the file -> value of the model; it raises Fault.
        schema: The JSON Schema of what it takes.
        write: Value of the model -> what is read again; None: the value itself.
        when: Where it is written so: always, or in JSON only.
    """

    __slots__ = ("_parse", "_schema", "_serialization")

    def __init__(
        self,
        parse: Callable[[Any], Any],
        schema: dict[str, Any],
        write: Callable[[Any], Any] | None = None,
        *,
        when: core_schema.WhenUsed = "json",
    ) -> None:
        self._parse, self._schema = parse, schema
        self._serialization = (
            None if write is None else core_schema.plain_serializer_function_ser_schema(write, when_used=when)
        )

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._parse, serialization=self._serialization)

    def __get_pydantic_json_schema__(self, _core: object, _handler: object) -> dict[str, Any]:
        return dict(self._schema)
