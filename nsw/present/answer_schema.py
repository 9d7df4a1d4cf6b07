"""The JSON Schema (draft 2020-12) of what `--json` prints: a definition a command, and one a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from nsw.present.answer_shapes import NAMES, SHAPES
from nsw.present.emit import JSON_VERSION
from nsw.recipe.jsonschema import cleaned, headed
from nsw.tables import TABLES

SHIPPED: Final = Path(__file__).with_name("answers.schema.json")
_REF: Final = "#/$defs/"
_JSON_TYPES: Final = {"int64": "integer", "float64": "number", "string": "string", "bool": "boolean"}


def answers_schema() -> dict[str, Any]:
    """The schema: a document fits the definition of its command."""
    from pydantic import TypeAdapter

    made: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = []
    for name, (shape, _) in SHAPES.items():
        adapter = TypeAdapter(shape)
        adapter.rebuild(force=True, _types_namespace=NAMES)
        made.append((name, "serialization", adapter))
    found, rest = TypeAdapter.json_schemas(made, ref_template=f"{_REF}{{model}}")
    definitions: dict[str, Any] = cleaned(rest)["$defs"]
    for (name, _), own in found.items():
        target = own["$ref"].removeprefix(_REF)
        definitions[target]["properties"]["nsw_json"] = {"const": JSON_VERSION}
        definitions[str(name)] = {"description": SHAPES[str(name)][1], "$ref": f"{_REF}{target}"}
    definitions["tables"] = _tables()
    definitions["Report"]["properties"]["tables"] = {"$ref": f"{_REF}tables"}
    schema = {
        "$defs": dict(sorted(definitions.items())),
        "type": "object",
        "required": ["nsw_json"],
        "properties": {"nsw_json": {"const": JSON_VERSION}},
    }
    return headed(
        schema,
        title=f"answers of nsw, version {JSON_VERSION}",
        description="Each command prints one object that fits `$defs/COMMAND`. Keys may be added; none goes or changes"
        " its meaning unless nsw_json counts up.",
    )


def _tables() -> dict[str, Any]:
    """The tables of reports by their names, each an array of rows."""
    return {
        "type": "object",
        "description": "Tables of reports: a row is an object, what a report does not say is null.",
        "properties": {
            table.name: {
                "type": "array",
                "description": table.meaning,
                "items": {
                    "type": "object",
                    "properties": {
                        c.name: {
                            "type": [_JSON_TYPES[c.type], "null"],
                            "description": c.meaning + (f" [{c.unit}]" if c.unit else ""),
                        }
                        for c in table.columns
                    },
                },
            }
            for table in TABLES.values()
        },
    }
