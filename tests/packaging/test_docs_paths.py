"""The pages for people name files, folders and commands that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.test_architecture import BASE

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(REPOSITORY).as_posix()
    for page in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), REPOSITORY / "tests/README.md"]
    if page.name != "CHANGELOG.md"
)
FOLDERS = "nsw|docs|tests|tools|templates|recipes|bench"
PATH = re.compile(rf"(?<![\w/.~-])(?:{FOLDERS})/[\w./*-]*[\w/*]")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([a-z_]+\.py)`")
COMMAND = re.compile(r"`nsw ([a-z]+)\b")
# what a page tells to make, and what is made while nsw runs
EXAMPLES = {"nsw/readers/rocprof/stats.py", "tools/"}


def prose(page: str) -> str:
    return FENCED.sub("", (REPOSITORY / page).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page):
    named = {path for path in PATH.findall(prose(page)) if "NAME" not in path} - EXAMPLES
    missing = [path for path in sorted(named) if not any(REPOSITORY.glob(path.rstrip("/")))]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (REPOSITORY / page).read_text()
    assert not [link for link in LINK.findall(text) if not (REPOSITORY / page).parent.joinpath(link).exists()]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "tests/README.md"])
def test_files_named_without_their_folder_exist(page):
    there = {path.name for folder in ("nsw", "tests", "tools") for path in (REPOSITORY / folder).rglob("*.py")}
    assert set(FILE.findall(prose(page))) <= there | {"conftest.py"}


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    commands = {command["name"].split()[-1] for command in json.loads((REPOSITORY / "nsw/cli/words.json").read_text())}
    assert set(COMMAND.findall(prose(page))) <= commands | {"help"}


def test_every_folder_of_nsw_and_of_the_tests_is_described():
    for page, folder in (("docs/architecture.md", "nsw"), ("tests/README.md", "tests")):
        text = prose(page)
        rooms = [p.parent.name for p in (REPOSITORY / folder).glob("*/*.py")]
        assert not [room for room in rooms if not re.search(rf"\b{room}\b", text)]


def test_the_base_layer_on_the_page_is_the_one_that_imports_are_held_to():
    picture = FENCED.search((REPOSITORY / "docs/architecture.md").read_text())
    shown = {Path(path).stem for path in PATH.findall(picture[0])}
    assert shown == BASE - {"nsw"}
