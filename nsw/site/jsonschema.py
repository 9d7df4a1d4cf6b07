"""The JSON Schema (draft 2020-12) of sites files, made from the models, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsw.recipe.jsonschema import cleaned, headed

SHIPPED = Path(__file__).with_name("sites.schema.json")


def sites_schema() -> dict[str, Any]:
    """The schema of a sites file."""
    from nsw.site.model import SitesFile

    schema = cleaned(SitesFile.model_json_schema(by_alias=True))
    del schema["$defs"]["Site"]["properties"]["name"]
    return headed(
        schema,
        title="nsw sites",
        description="Where campaigns run. Begin the file with this line, and an editor knows its keys: "
        "# yaml-language-server: $schema=sites.schema.json ('nsw schema sites > sites.schema.json' writes it)",
    )
