"""The blocks of a page in docs/extending, installed as a package that nsw finds by its entry point."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "extending"


def block(page: str, language: str, number: int = 0) -> str:
    """One of the blocks of a language, counted from 0."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found[number]


def install(page: str, site: Path, module: str, number: int = 0, more: str = "") -> None:
    """Write the page's Python block of this number, with `more` behind it, as this file below `site`; and its entry points."""
    (site / module).parent.mkdir(parents=True, exist_ok=True)
    (site / module).write_text(block(page, "python", number) + more)
    info = site / "example-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    points = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", block(page, "toml", number))
    (info / "entry_points.txt").write_text(points.replace('"', ""))
