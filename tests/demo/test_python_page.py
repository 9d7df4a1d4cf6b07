"""The examples of docs/python.md run, in their order, and print what the page says."""

import contextlib
import io
import re
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("NSW_ROOT", "NSW_SITES", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    names: dict[str, object] = {}
    printed, blocks = "", 0
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(PAGE), "exec"), names)
            printed, blocks = out.getvalue(), blocks + 1
        else:
            assert same(printed, text), f"{PAGE.name} says\n{text}\nand its example prints\n{printed}"
    assert blocks == 11


def same(printed: str, said: str) -> bool:
    """Line by line, blanks at the end aside; `...` stands for anything."""
    lines, wanted = printed.splitlines(), said.splitlines()
    return len(lines) == len(wanted) and all(
        fnmatchcase(line.rstrip(), re.sub(r"([\[\]*?])", r"[\1]", want).replace("...", "*"))
        for line, want in zip(lines, wanted, strict=True)
    )
