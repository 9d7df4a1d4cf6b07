"""Colours only repeat what words say: NO_COLOR takes them away, and nothing with them."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

import pytest

ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
STYLED = re.compile(r"\x1b\[([\d;]*)m([^\x1b]*)")
COLOURS = {str(number) for number in (*range(30, 38), *range(40, 48), *range(90, 98), 38, 48)}
# what a line in red, yellow or green says in words too
MARKS = re.compile(
    r"error|warning|hint|bad\b|\bok\b|fail|lost|cancel|done|good|faster|slower|recorded|note|not |no |without|queued|running|planned"
    r"|broken|kept|undecided|problem|missing|stopped|limit|refus", re.IGNORECASE
)  # fmt: skip
BROKEN = "nsw: 1\nname: t\napp: {comand: x}\n"
SCREENS = [
    ("summarize",), ("summarize", "--full"), ("summarize", "--table", "figures"), ("status",), ("status", "--runs"), ("problems",),
    ("ls",), ("logs", "n-3"), ("plan", "r.yaml", "-s", "here"), ("plan", "broken.yaml"), ("sites",), ("sites", "check", "here"),
    ("compare", "first", "second"), ("gate", "first", "second"), ("metrics", "ls"), ("query", "select * from figures"),
    ("read", "broken.sqlite"), ("run", "r.yaml", "-s", "here", "--yes", "--root", "other"), ("help",), ("help", "exit-codes"),
    ("run", "--help"), ("stauts",),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two campaigns, of which runs failed, and files that are broken."""
    folder = tmp_path_factory.mktemp("colours")
    (folder / "sites.yaml").write_text("nsw: 1\nsites:\n  here: {scheduler: local, gpus: {per_node: 0}}\n")
    (folder / "r.yaml").write_text(
        "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\nrepeats: 2\nmatrix: {n: [1, 2, 3]}\n"
        "app: {command: 'echo f={{ n }}; test {{ n }} != 3', figures: {f: {regex: 'f=(.*)', unit: s}}}\n"
    )
    (folder / "broken.yaml").write_text(BROKEN)
    (folder / "broken.sqlite").write_text("SQLite format 3\0 and no more")
    for name in ("first", "second"):
        screen(folder, ("run", "r.yaml", "-s", "here", "--yes", "--root", "campaigns"))
        newest = max((folder / "campaigns").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        screen(folder, ("baseline", "set", name, newest.name))
    return folder


def screen(folder, words, **variables):
    """What a command prints on a terminal, with its escape sequences."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    terminal = {"TERM": "xterm-256color", "COLUMNS": "120", "PAGER": "cat", "XDG_CONFIG_HOME": str(folder / "config"),
                "XDG_STATE_HOME": str(folder / "state"), "NSW_SITES": str(folder / "sites.yaml")}  # fmt: skip
    with subprocess.Popen([sys.executable, "-m", "nsw", *words], cwd=folder, env=plain | terminal | variables,
                          stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs):  # fmt: skip
        os.close(theirs)
        text = b""
        with os.fdopen(ours, "rb", buffering=0) as stream, suppress(OSError):  # EIO: the other end is closed
            while piece := stream.read(1 << 16):
                text += piece
    return text.decode().replace("\r\n", "\n")


def words_of(text):
    """The words of a screen, less what differs from run to run."""
    plain = ESCAPE.sub("", text).replace("\r", "\n")
    plain = re.sub(r"-\d{8}-\d{6}-[0-9a-f]{4}|\d[\d:.,]*", "0", plain)
    return [line.split() for line in plain.split("\n") if line.strip()]


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_a_screen_has_the_same_words_without_colours(folder, words):
    coloured, plain = screen(folder, words), screen(folder, words, NO_COLOR="1")
    used = {code for codes, _ in STYLED.findall(plain) for code in codes.split(";")}
    assert not used & COLOURS, f"NO_COLOR: {plain!r}"
    if words[0] == "run" and "--help" not in words:  # a live screen is drawn as often as there is time
        assert set(map(tuple, words_of(plain))) & set(map(tuple, words_of(coloured)))
    else:
        assert words_of(coloured) == words_of(plain)
    for line in [] if "--help" in words else coloured.splitlines():  # whose colours are typer's
        for codes, text in STYLED.findall(line):
            if {"31", "32", "33"} & set(codes.split(";")) and text.strip():
                assert MARKS.search(ESCAPE.sub("", line)), f"only its colour tells what this line is: {line!r}"
