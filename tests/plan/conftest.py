"""Recipes as text and sites as small files, planned."""

from pathlib import Path
from textwrap import dedent

import pytest

from nsw.errors import InputError
from nsw.plan.build import build_plan
from nsw.plan.model import SiteFacts
from nsw.recipe.load import load_recipe_text
from nsw.site.load import load_site

HEAD = "nsw: 1\nname: t\n"
BASELINE = HEAD + "app: {command: ./prog}\npasses: [baseline]\n"


class Planner:
    """`plan(recipe, ...)` and `faults(recipe, ...)`; the site is given as the inside of its YAML map."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plan(self, recipe: str, site: str = "scheduler: local", **facts):
        file = self._folder / "sites.yaml"
        file.write_text(f"nsw: 1\nsites:\n  here: {{{site}}}\n")
        place = load_site("here", [file])
        return build_plan(load_recipe_text(dedent(recipe), site="here"), place, SiteFacts(**facts))

    def faults(self, recipe: str, site: str = "scheduler: local", **facts):
        with pytest.raises(InputError) as caught:
            self.plan(recipe, site, **facts)
        return caught.value.diagnostics


@pytest.fixture
def planner(tmp_path) -> Planner:
    return Planner(tmp_path)
