"""Makes the screens that README.md and docs print, with today's nsw: from the demo's recordings and small programs.

python tools/screens.py

A screen is the block behind a line `<!-- tools/screens.py: NAME -->`. What differs from run to run, the random part of
campaigns' names, is replaced.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "pairs.md", ROOT / "docs" / "recipe.md")
BLOCK = re.compile(r"(<!-- tools/screens\.py: (\w+) -->\n```text\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
RANDOM = {re.compile(r"-\d{8}-\d{6}-[0-9a-f]{4}"): "-20261128-120000-1a2b", re.compile(r"seed \d+"): "seed 8907"}
# speeds scatter by 0.3 %, in each run by its name: the same whenever the screen is made
PROGRAM = """\
import pathlib, random
print(f"speed={random.Random(pathlib.Path.cwd().parent.name).gauss(SPEED, 0.3):.2f}")
"""
RECIPE = """\
nsw: 1
name: g
app:
  command: python p.py
  files: [p.py, table]
  figures: {speed: {regex: 'speed=(.*)', unit: images/s}}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "x"), ("EMAIL", "x@example.org"), ("DATE", "2026-11-28T00:00:00Z"))
}


def printed(folder: Path, *words: str, **variables: str) -> tuple[str, str]:
    """What a command prints on a terminal of 100 columns: stdout and stderr."""
    bin_folder = folder / ".bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "nsw").write_text(f"#!{sys.executable}\nfrom nsw.cli.main import main\nmain()\n")
    (bin_folder / "nsw").chmod(0o755)
    terminal = {
        "COLUMNS": "100",
        "LINES": "34",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }
    ends = [pty.openpty() for _ in range(2)]
    process = subprocess.Popen(
        words, cwd=folder, env=os.environ | IDENTITY | terminal | variables, stdin=subprocess.DEVNULL,
        stdout=ends[0][1], stderr=ends[1][1],
    )  # fmt: skip
    with ThreadPoolExecutor() as threads:
        streams = [threads.submit(_read, ours) for ours, _ in ends]
        process.wait()
        for _, theirs in ends:
            os.close(theirs)
        out, err = (stream.result() for stream in streams)
    return out, err


def _read(terminal: int) -> str:
    text = b""
    with os.fdopen(terminal, "rb", buffering=0) as stream, suppress(OSError):  # EIO: the other end is closed
        while piece := stream.read(1 << 16):
            text += piece
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text.decode().replace("\r\n", "\n"))


def nsw(folder: Path, *words: str, **variables: str) -> tuple[str, str]:
    """What `nsw ...` prints there."""
    return printed(folder, "nsw", *words, **variables)


def demo(folder: Path, root: Path) -> str:
    """The answer of the demo's campaign below a folder."""
    return nsw(folder, "summarize", NSW_ROOT=str(root))[0]


def fault(folder: Path) -> str:
    """What nsw says of the recipe in docs/recipe.md with a key that is misspelt."""
    yaml = re.compile(r"^```yaml\n(nsw: 1\nname: alexnet-scaling\n.*?)^```$", re.DOTALL | re.MULTILINE)
    (recipe,) = yaml.findall(PAGES[2].read_text())
    (folder / "recipe.yaml").write_text(re.sub(r" +#.*", "", recipe).replace("  figures:", "  figurs:"))
    return nsw(folder, "plan", "recipe.yaml")[1]


def pairs(folder: Path) -> dict[str, str]:
    """The plan and the verdict of a program that is made slower, beside the one before."""
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "p.py").write_text(PROGRAM.replace("SPEED", "99.7"))
    (folder / "table").write_text("")
    for words in (["init", "-q", "-b", "main"], ["add", "p.py", "recipe.yaml"], ["commit", "-qm", "fast"]):
        printed(folder, "git", *words)
    (folder / "p.py").write_text(PROGRAM.replace("SPEED", "90"))
    words = ("recipe.yaml", "--site", "local", "--against", "main")
    plan = nsw(folder, "plan", *words)[0].splitlines()
    first = next(n for n, line in enumerate(plan) if line.startswith("2 cases"))
    nsw(folder, "run", *words, "--set", "repeats=7", "--yes", "--now")
    return {"plan": "\n".join(plan[first:]), "verdict": nsw(folder, "compare")[0]}


def screens(folder: Path, root: Path) -> dict[str, str]:
    """All screens by their names.

    Args:
        folder: A folder to work in, which is empty.
        root: The folder of the demo's campaign.
    """
    made = {"demo": demo(folder, root), "fault": fault(folder), **pairs(folder)}
    for name, text in made.items():
        for pattern, fixed in RANDOM.items():
            text = pattern.sub(fixed, text)  # noqa: PLW2901
        made[name] = "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n"))
    return made


def updated(page: str, made: dict[str, str]) -> str:
    """The text of a page with these screens."""
    return BLOCK.sub(lambda block: f"{block[1]}{made[block[2]]}{block[4]}", page)


def main() -> None:
    """Write the pages."""
    with tempfile.TemporaryDirectory(prefix="nsw-screens-") as name:
        folder, root = Path(name, "work"), Path(name, "campaigns")
        folder.mkdir()
        nsw(folder, "run", str(ROOT / "recipes/alexnet_scaling.yaml"), "--site", "demo", "--root", str(root))
        made = screens(folder, root)
    for page in PAGES:
        page.write_text(updated(page.read_text(), made))


if __name__ == "__main__":
    main()
