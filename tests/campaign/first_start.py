"""`nsw run` killed at its first start, hundreds of times: run by itself, `first_start.py SEED KILLS FOLDER`.

nsw and all that it needs is imported once, and forked for each command, so that a start takes hundredths of a second and most of the kills hit
what matters: the folder being made, the ledger being written, the first runs being handed over. Prints what was found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from nsw.cli.main import run

RECIPE = """
nsw: 1
name: first
app:
  command: bash -c 'echo {{ n }} >>HERE/ran'
matrix:
  n: {range: [1, 3]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""
RUN = ["run", "recipe.yaml", "--site", "local", "--yes"]


def main(seed: int, kills: int, folder: Path) -> None:
    draw = random.Random(seed)
    home = Path.cwd()
    os.chdir(made(folder / "first"))
    assert run(RUN) == 0  # imports all that nsw needs
    os.chdir(home)
    begun = time.perf_counter()
    code = os.waitstatus_to_exitcode(os.waitpid(nsw(RUN, made(folder / "whole")), 0)[1])
    assert code == 0, (folder / "whole/said").read_text()
    whole = time.perf_counter() - begun
    left: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(kills):
        what, fault = one(made(folder / str(number)), draw.uniform(0, whole))
        left[what] += 1
        faults += [f"{folder / str(number)}: {fault}"] if fault else []
    print(json.dumps({"left": left, "faults": faults}))


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text(RECIPE.replace("HERE", str(folder)))
    (folder / "ran").touch()
    return folder


def one(folder: Path, after: float) -> tuple[str, str | None]:
    """What a kill left, and what was wrong with going on from there."""
    pid = nsw(RUN, folder)
    until = time.perf_counter() + after
    while time.perf_counter() < until:
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    seen = [p for p in folder.glob("campaigns/*") if not p.name.startswith(".")]
    hidden = [p for p in folder.glob("campaigns/.*") if p.is_dir()]
    what = "a campaign" if seen else "a half-made one, hidden" if hidden else "nothing"
    commands = [["status"], ["resume"]] if seen else [["ls"], RUN]
    for words in commands:
        code = os.waitstatus_to_exitcode(os.waitpid(nsw(words, folder), 0)[1])
        if code != 0:
            return what, f"{what}: nsw {words[0]}: exit {code}: {(folder / 'said').read_text()[-400:]}"
    ran = sorted((folder / "ran").read_text().split())
    return what, None if ran == ["1", "2", "3"] else f"{what}: ran {ran}"


def nsw(words: list[str], folder: Path) -> int:
    """Start nsw in a folder; its process."""
    if pid := os.fork():
        return pid
    os.chdir(folder)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    code = 99
    try:
        code = run(words)
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
