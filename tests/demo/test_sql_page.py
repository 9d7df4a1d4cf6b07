"""docs/howto/sql.md: its commands run on the demo's campaign, and print what the page shows."""

import re
import shlex
import sqlite3
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "sql.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytest.importorskip("duckdb")


def test_the_page_prints_what_it_shows(demo):
    printed, commands = "", 0
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "text":
            assert [line.split() for line in printed.splitlines() if "──" not in line and line.strip()] == [
                line.split() for line in text.splitlines()
            ]
            continue
        for line in re.split(r"\n(?=\S)", text.rstrip()):
            program, *words = shlex.split(line)
            commands += 1
            if program == "sqlite3":
                file, sql = words
                with sqlite3.connect(demo.root / file) as database:
                    assert len(database.execute(sql).fetchall()) == 4
            elif program == "nsw":
                done = demo.nsw(*words, exits=0)
                printed = done.stdout
    assert commands == 4
