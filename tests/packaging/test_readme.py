"""README.md is short, its recipe is one that nsw plans, and what moved from it is in docs."""

import json
import re
import tomllib
from pathlib import Path

import nsw

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_it_is_at_most_140_lines_and_a_first_success_comes_before_secrets():
    assert len(README.splitlines()) <= 140
    assert README.index("make demo") < README.index("Secrets")


def test_nsw_plans_its_recipe(tmp_path):
    (recipe,) = re.findall(r"```yaml\n(nsw: 1\n.*?)```", README, re.DOTALL)
    assert len(recipe.splitlines()) <= 11
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "train.py").write_text("")
    (tmp_path / "recipe.yaml").write_text(recipe)
    (tmp_path / "sites.yaml").write_text("nsw: 1\nsites: {node: {scheduler: local, gpus: {per_node: 4}}}\n")
    planned = nsw.dry_run(tmp_path / "recipe.yaml", site="node", sites=tmp_path / "sites.yaml")
    assert planned.runs.groupby("pass")["case"].nunique().to_dict() == {"baseline": 12, "timeline": 12}


def test_every_command_is_on_the_page_of_commands():
    page = (ROOT / "docs" / "commands.md").read_text()
    commands = {entry["name"].split()[-1] for entry in json.loads((ROOT / "nsw/cli/words.json").read_text())} - {"nsw"}
    assert not {name for name in commands if f"`nsw {name}" not in page}


def test_the_docs_name_every_extra_and_all_leaves_out_the_proprietary_one():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (ROOT / "docs" / "environment.md").read_text().partition("## Extras")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(extras)
    (every,) = extras["all"]
    assert set(every.removeprefix("nsw[").removesuffix("]").split(",")) == set(extras) - {"all", "ncu"}
