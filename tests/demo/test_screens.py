"""The screens that README.md and docs print are what today's nsw prints (tools/screens.py)."""

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[2] / "tools" / "screens.py"


def test_the_screens_of_the_pages_are_made_by_todays_program(demo, tmp_path):
    spec = importlib.util.spec_from_file_location("screens", FILE)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    made = tool.screens(tmp_path, demo.root)
    pages = {page: page.read_text() for page in tool.PAGES}
    assert {name for text in pages.values() for _, name, _, _ in tool.BLOCK.findall(text)} == set(made)
    for page, text in pages.items():
        assert tool.updated(text, made) == text, f"{page.name}: `python tools/screens.py` makes its screens anew"
