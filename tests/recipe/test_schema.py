"""The JSON Schemas: current, valid, and of one mind with the models on good and bad files."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from nsw.recipe import model as recipe_schemas
from nsw.recipe.document import parse
from nsw.recipe.passes import AUTO, PROFILERS
from nsw.site import model as site_schemas

FULL_RECIPE = Path(__file__).with_name("full.yaml").read_text()
FULL_SITES = (Path(__file__).parents[1] / "site/full.yaml").read_text()
RECIPE, SITES = recipe_schemas.recipe_schema(), site_schemas.sites_schema()


def faults(schema, text):
    return list(jsonschema.Draft202012Validator(schema).iter_errors(parse(text, "f").data))


@pytest.mark.parametrize(("schema", "name"), [(RECIPE, "recipe"), (SITES, "sites")])
def test_the_published_schema_is_current(schema, name):
    published = Path(__file__).parents[2] / "docs" / f"{name}.schema.json"
    assert json.loads(published.read_text()) == schema, f"run: nsw schema {name} > {published}"


@pytest.mark.parametrize(("schema", "text"), [(RECIPE, FULL_RECIPE), (SITES, FULL_SITES)])
def test_the_schema_is_one_and_the_full_file_fits_it(schema, text):
    jsonschema.Draft202012Validator.check_schema(schema)
    assert faults(schema, text) == []


@pytest.mark.parametrize("schema", [RECIPE, SITES])
def test_every_key_is_described(schema):
    for definition in schema["$defs"].values():
        assert definition.get("description") or "anyOf" in definition
    for definition in [schema, *schema["$defs"].values()]:
        for branch in [definition, *definition.get("anyOf", [])]:
            for key, value in branch.get("properties", {}).items():
                assert "$ref" in value or value.get("description"), key


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("command:", "comand:"),
        ("time: 10m", "time: 10"),
        ("kind: weak", "kind: week"),
        ("queue: debug", "queu: debug"),
        ("  - baseline: {}", "  - basline: {}"),
        ("cover: 90%}, launches", "cover: 90}, launches"),
        ("nsw: 1", "nsw: 2"),
        ("repeats: 3", "repeats: 0"),
    ],
)
def test_a_bad_recipe_does_not_fit(right, wrong):
    assert right in FULL_RECIPE
    assert faults(RECIPE, FULL_RECIPE.replace(right, wrong, 1))


def test_editors_are_given_passes_and_metrics_to_complete_and_no_other_name_is_refused():
    for name in ("CountersPass", "CountersPassOfSite"):
        keys = RECIPE["$defs"][name]["properties"]
        assert keys["from"]["examples"] == ["timeline"]
        assert {"occupancy", "achieved_occupancy", "set:full"} <= set(keys["metrics"]["items"]["examples"])
    own = (
        "nsw: 1\nname: a\napp: {command: a}\npasses:\n  - timeline: {name: t1}\n"
        "  - counters: {from: t1, metrics: [sm__warps_active.sum, 'section:Occupancy']}\n"
    )
    assert faults(RECIPE, own) == []


@pytest.mark.parametrize(
    ("right", "wrong"), [("scheduler: pbs", "scheduler: pbz"), ("limits:", "limit:"), ("per_node: 4", "per_node: four")]
)
def test_bad_sites_do_not_fit(right, wrong):
    assert faults(SITES, FULL_SITES.replace(right, wrong, 1))


def test_the_design_is_what_these_tests_take_for_it():
    design = Path(__file__).resolve().parents[2].parent / "shared/design.md"
    if not design.exists():
        pytest.skip("no design page beside the repository")
    blocks = re.findall(r"```yaml\n(.*?)```", design.read_text(), re.DOTALL)
    assert blocks[:2] == [FULL_RECIPE, FULL_SITES]


@pytest.mark.parametrize("kind", PROFILERS)
def test_the_profilers_that_a_pass_may_name_are_those_of_the_registry(kind):
    named = set(RECIPE["$defs"][f"{kind.title()}Pass"]["properties"]["tool"]["enum"])
    assert named - {AUTO} == set(PROFILERS[kind])
