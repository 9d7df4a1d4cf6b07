"""The recipe's JSON Schema (draft 2020-12), made from the models, for editors."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SHIPPED = Path(__file__).with_name("recipe.schema.json")
_REF = "#/$defs/"
_SETS = ("set:basic", "set:detailed", "set:full", "set:roofline", "set:analysis", "all")
_NOT_PER_SITE = ("nsw", "name", "lock", "sites")


def recipe_schema() -> dict[str, Any]:
    """The schema of a recipe."""
    from nsw.recipe.model import Recipe

    schema = cleaned(Recipe.model_json_schema(by_alias=True))
    _suggest(schema["$defs"]["CountersPass"]["properties"])
    schema["$defs"] |= _partial(schema)
    (pattern,) = schema["properties"]["sites"]["patternProperties"]
    schema["properties"]["sites"]["patternProperties"] = {pattern: {"$ref": f"{_REF}SiteSection"}}
    return headed(
        schema,
        title="nsw recipe",
        description="What to run and what to profile. Begin the file with this line, and an editor knows its keys: "
        "# yaml-language-server: $schema=recipe.schema.json ('nsw schema recipe > recipe.schema.json' writes it)",
    )


def headed(schema: dict[str, Any], *, title: str, description: str) -> dict[str, Any]:
    """The schema with its dialect, title and description in front."""
    return {"$schema": DIALECT, **schema, "title": title, "description": description}


def cleaned(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that merely repeat a key's name, and with the short forms that models take."""
    schema = _without_titles(schema)
    definitions = schema.get("$defs", {})
    for name in ("Launcher", "Transport"):
        if name in definitions:
            kinds = definitions[name]["properties"]["kind"]["enum"]
            definitions[name] = {"anyOf": [definitions[name], {"enum": kinds}]}
    if "Interleave" in definitions:
        definitions["Interleave"] = {"anyOf": [definitions["Interleave"], {"type": "boolean"}]}
    if "PassEntry" in definitions:
        entry = definitions["PassEntry"] | {"minProperties": 1, "maxProperties": 1}
        definitions["PassEntry"] = {"anyOf": [entry, {"enum": list(entry["properties"])}]}
    return schema


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it is shipped."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _suggest(counters: dict[str, Any]) -> None:
    """Give editors values to complete; as `examples`, which refuse no other."""
    from nsw.metrics import catalogue, groups

    counters["from"]["examples"] = ["timeline"]  # what a timeline pass without a name is called
    counters["metrics"]["items"]["examples"] = [*groups(), *catalogue(), *_SETS]


def _without_titles(value: Any, *, keys_are_names: bool = False) -> Any:
    """Without null defaults either. `named`: the keys of `value` are names, and `title` may be one of them."""
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {"additionalProperties": False} if "patternProperties" in value and not keys_are_names else {}
    return closed | {
        key: _without_titles(item, keys_are_names=key in {"properties", "$defs"} and not keys_are_names)
        for key, item in value.items()
        if keys_are_names or not (key == "title" or (key == "default" and item is None))
    }


def _partial(schema: dict[str, Any]) -> dict[str, Any]:
    """Definitions in which no key is required, for the sections of sites."""
    definitions = copy.deepcopy(schema["$defs"])
    section = {k: copy.deepcopy(v) for k, v in schema.items() if k != "$defs"}
    section["properties"] = {k: v for k, v in section["properties"].items() if k not in _NOT_PER_SITE}
    section["description"] = "What only this site needs; the keys of a recipe, none of them required."
    loose = {f"{name}OfSite": _loosened(definition) for name, definition in definitions.items()}
    return loose | {"SiteSection": {"anyOf": [_loosened(section), {"type": "null"}]}}


def _loosened(value: Any) -> Any:
    if isinstance(value, list):
        return [_loosened(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return value | {"$ref": value["$ref"] + "OfSite"}
    drop = isinstance(value.get("required"), list)
    return {key: _loosened(item) for key, item in value.items() if not (drop and key == "required")}
