"""Runs the commands of a page of docs as a reader would, and compares what they print with what the page shows.

A block `bash` is run, in the folder that the block before left; a block `text` behind it is what it printed, but for
numbers, and for lines left out (`...`). A block `diff` changes a file; a block `yaml`, `python` or `ini` that begins with
`# NAME` is written as that file. Blocks of other languages, and without one, are for the reader alone.
"""

import re
import subprocess
from pathlib import Path

from tools import screens

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(bash|text|diff|yaml|python|ini)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.(?:yaml|py|in))$", re.MULTILINE)


def words(text):
    """A text in one line, without what differs from run to run: numbers, and the width of columns."""
    text = " ".join(re.sub(r"─+", "─", re.sub(r"\d[\d,.]*", "0", text)).split())
    # a large change is a factor, and so is each end of its range
    text = re.sub(r"0x to 0x|\+0 to \+0", "+0 to +0", text).replace("0x faster", "0 % faster")
    return text.replace("(+0 to +0", "(0 to 0 %")


def compared_lines(page, home, **variables):
    """Run a page below docs.

    Args:
        page: Its path below docs.
        home: A folder for the reader's terminal to begin in.
        variables: Environment variables of that terminal.

    Returns:
        How many lines of the page were compared with what its commands printed.
    """
    folder, printed, compared = home, "", 0
    for kind, content in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if kind == "diff":
            subprocess.run(["git", "apply", "-"], input=content, text=True, cwd=folder, check=True)
        elif kind in {"yaml", "python", "ini"}:
            if file := FILE.match(content):
                (folder / file[1]).write_text(content)
        elif kind == "bash":
            # as a reader's terminal goes on in the folder that was entered
            script = f"set -e\n{content}pwd >{home}/.folder"
            out, err = screens.printed(folder, "bash", "-c", script, COLUMNS="200", **variables)
            assert (home / ".folder").exists(), f"{content} failed:\n{err}{out}"
            folder = Path((home / ".folder").read_text().strip())
            (home / ".folder").unlink()
            printed = words(err + out)
        else:
            # wherever lines are broken: a busy machine puts a sentence on the scatter before a headline
            rest = printed
            for line in filter(None, content.splitlines()):
                if line != "...":
                    _, is_there, rest = rest.partition(words(line))
                    assert is_there, f"{line!r} is not printed, or in another order: {printed}"
                    compared += 1
    return compared
