"""What `--json` prints fits the JSON Schema that nsw ships, to the last key."""

import json
from pathlib import Path

import pydantic
import pytest
from jsonschema import Draft202012Validator

from nsw.recipe.model import text_of
from nsw.tables.schema import tables_json_schema
from tools.answers_schema import SHAPES, SHIPPED, answers_schema

RECORDED = Path("nsw/demo/recordings")


def whole_schema():
    """The schema as it is printed: with that of tables."""
    schema = answers_schema()
    return schema | {"$defs": schema["$defs"] | {"tables": tables_json_schema()}}


def exact(value):
    """The schema without room for keys that it does not name."""
    if isinstance(value, list):
        return [exact(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: exact(one) for key, one in value.items()}
    if isinstance(value.get("properties"), dict) and value.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


SCHEMA = exact(whole_schema())


def fits(text, name):
    data = json.loads(text)
    validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    faults = [f"{name}: {'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in validator.iter_errors(data)]
    assert not faults
    return data


@pytest.mark.skipif(
    tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 13),
    reason="this pydantic leaves out descriptions of classes",
)
def test_the_shipped_schema_is_that_of_the_code():
    assert SHIPPED.read_text() == text_of(answers_schema()), "run: python tools/answers_schema.py"


def test_the_command_prints_the_shipped_schema_with_the_columns_of_tables(nsw):
    printed = json.loads(nsw("schema", "answers").out)
    tables = printed["$defs"].pop("tables")["properties"]
    assert printed == json.loads(SHIPPED.read_text())
    assert tables["gaps"]["items"]["properties"]["total_ns"]["type"] == ["number", "null"]


def test_the_schema_is_one_and_lets_keys_be_added(nsw):
    Draft202012Validator.check_schema(whole_schema())
    said = json.loads(nsw("ls", "--json").out)
    open_schema = whole_schema()
    validator = Draft202012Validator({"$ref": "#/$defs/ls", "$defs": open_schema["$defs"]})
    assert validator.is_valid(said | {"new": 1})
    assert not validator.is_valid(said | {"nsw_json": 2})
    assert not validator.is_valid({"nsw_json": 1})


COMMANDS = [
    ("ls", ["ls"]), ("status", ["status"]), ("problems", ["problems"]), ("sites", ["sites"]),
    ("plan", ["plan", "r.yaml", "-s", "here"]), ("summarize", ["summarize"]), ("formats", ["read", "--formats"]),
    ("table", ["summarize", "--table", "figures"]), ("table", ["summarize", "--table", "runs"]),
    ("metrics_ls", ["metrics", "ls"]), ("metrics_ls", ["metrics", "ls", "--chip", "gh100"]),
    ("metrics_ls", ["metrics", "ls", "sm__warps"]), ("metrics_show", ["metrics", "show", "achieved_occupancy"]),
    ("metrics_show", ["metrics", "show", "occupancy", "sm__warps_active.sum"]),
    ("metrics_check", ["metrics", "check", "achieved_occupancy", "no_such_metric"]),
    ("metrics_translate", ["metrics", "translate", "achieved_occupancy", "--chip", "gh100"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words"), COMMANDS, ids=lambda v: v if isinstance(v, str) else "_".join(v))
def test_a_command_prints_what_the_schema_says(nsw, good, name, words):
    fits(nsw(*words, "--json").out, name)


def test_a_campaign_that_failed_fits_too(nsw, failing):
    assert fits(nsw("status", "--json").out, "status")["runs"]
    fits(nsw("summarize", "--json").out, "summarize")
    (Path("campaigns") / "broken").mkdir()
    (Path("campaigns") / "broken" / "campaign.db").write_text("none")
    assert len(fits(nsw("ls", "--json").out, "ls")["campaigns"]) == 2


def test_two_campaigns_beside_each_other_fit(nsw, good):
    first = json.loads(nsw("ls", "--json").out)["campaigns"][0]["campaign"]
    assert nsw("run", "r.yaml", "-s", "here").code == 0
    second = json.loads(nsw("ls", "--json").out)["campaigns"][1]["campaign"]
    assert nsw("baseline", "set", "main", first).code == 0
    fits(nsw("baseline", "ls", "--json").out, "baselines")
    assert fits(nsw("compare", "main", second, "--json").out, "compare")["rows"]
    for by in ("figure", "kernel", "class", "range", "metric"):
        fits(nsw("compare", "main", second, "--by", by, "--json").out, "compare")
    fits(nsw("gate", "main", second, "--rule", "f: -2%", "--json").out, "gate")


def test_the_recorded_campaign_fits(nsw):
    assert nsw("run", "alexnet_scaling", "--site", "demo", "--case", "gpus=1,batch=8").code == 0
    data = fits(nsw("summarize", "--json").out, "summarize")
    assert {block["kind"] for block in data["blocks"]} >= {"finding", "note", "timeline", "bars", "table"}
    report = next(Path("campaigns").glob("*/reports/*/*.sqlite"))
    read = fits(nsw("read", report, "--json").out, "read")
    assert read["reports"][0]["tables"]["gpu_summary"]
    fits(nsw("plan", "alexnet_scaling", "--site", "demo", "--json").out, "plan")


def test_each_shape_is_tried():
    tried = {name for name, _ in COMMANDS} | {"read", "plan_of_nothing", "sites_check"}
    tried |= {"compare", "gate", "baselines"}
    assert tried == SHAPES.keys()
