"""The commands of docs/tutorial.md that need neither GPU nor cluster work, and print the words that it shows."""

import importlib.util
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(bash|text|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def words(line):
    """A line without what differs from run to run: numbers, and the width of columns."""
    line = re.sub(r"\d[\d,.]*", "0", line)
    return " ".join(re.sub(r"─+", "─", line).replace("x 0 ", "0 % faster ").split())


def test_what_the_tutorial_shows_is_what_a_reader_sees(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("screens", ROOT / "tools" / "screens.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for name, value in tool.IDENTITY.items():
        monkeypatch.setenv(name, value)
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    folder, printed, compared = tmp_path, [], 0
    for kind, content in blocks:
        if kind == "diff":
            subprocess.run(["git", "apply", "-"], input=content, text=True, cwd=folder, check=True)
        elif kind == "bash":
            # as a reader's terminal goes on in the folder that was entered
            script = f"set -e\n{content}pwd >{tmp_path}/folder"
            out, err = tool.printed(folder, "bash", "-c", script, COLUMNS="200")
            folder = Path((tmp_path / "folder").read_text().strip())
            (tmp_path / "folder").unlink()
            printed = list(map(words, (err + out).splitlines()))
        else:
            rest = iter(printed)
            for line in filter(None, content.splitlines()):
                if line != "...":
                    wanted = words(line)  # a busy machine puts a sentence on the scatter before a headline
                    is_there = any(wanted in printed_line for printed_line in rest)
                    assert is_there, "\n".join((f"{line!r} is not printed, or in another order:", *printed[-40:]))
                    compared += 1
    assert compared > 20
