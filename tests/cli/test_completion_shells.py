"""Tab in real shells, each in a terminal of its own: what a name holds is text, and is never run."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

RECIPE = "nsw: 1\nname: t\napp: {command: 'true'}\n"
NAMES = [
    "x$(touch${IFS}PWNED).yaml", "x`touch${IFS}PWNED`.yaml", "x;touch PWNED;.yaml", "x&touch PWNED&.yaml", "x|touch PWNED|.yaml",
    "x'$(touch PWNED)'.yaml", 'x"$(touch PWNED)".yaml', "x*(N).yaml", "x@(a|b).yaml", "x[a]?.yaml", "x\\$(touch PWNED).yaml",
    "x y  z.yaml", "x!!.yaml", "x~#{a,b}.yaml", "x<(touch PWNED).yaml", "xé漢.yaml", "x:y=z.yaml",
]  # fmt: skip
START = {
    "bash": (["--norc", "--noprofile", "-i"], "source {script}"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source {script}"),
    "fish": (["--no-config", "-i"], "source {script}"),
}
PROGRAM = """#!/bin/sh
[ -z "$_NSW_COMPLETE" ] || exec {python} -P -m nsw "$@"
for word; do printf '%s\\0' "$word"; done >"$0.part"; mv "$0.part" "$0.words"
"""


@pytest.fixture(params=START)
def shell(request, home, tmp_path):
    """`shell("nsw plan x")`: the words that nsw gets when Tab and Enter follow, in an empty folder."""
    name = request.param
    program = shutil.which(name)
    if not program or not shutil.which("setsid"):
        pytest.skip(f"no {name} here, or no setsid")
    (tmp_path / "bin").mkdir()
    nsw = tmp_path / "bin" / "nsw"
    nsw.write_text(PROGRAM.format(python=shlex.quote(sys.executable)))
    nsw.chmod(0o755)
    said = subprocess.run(
        [sys.executable, "-P", "-m", "nsw", "--show-completion", name], capture_output=True, text=True, check=True, cwd=home,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )  # fmt: skip
    script = tmp_path / "completion"
    script.write_text(said.stdout)
    options, prepare = START[name]
    words = tmp_path / "bin" / "nsw.words"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("BASH_", "ZDOTDIR"))} | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb", "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null", "fish_history": "",
    }  # fmt: skip
    terminal, inside = pty.openpty()
    # setsid makes it the shell's own terminal
    child = subprocess.Popen(
        ["setsid", "-c", program, *options], stdin=inside, stdout=inside, stderr=inside, cwd=home, env=env
    )
    os.close(inside)
    seen = bytearray()

    def until(what) -> None:
        """Read what the terminal shows until something is so."""
        deadline = time.monotonic() + 300
        while not what():
            assert time.monotonic() < deadline, seen.decode(errors="replace")
            if select.select([terminal], [], [], 0.05)[0]:
                seen.extend(os.read(terminal, 65536))

    ready = tmp_path / "ready"
    os.write(terminal, f"{prepare.format(script=shlex.quote(str(script)))}; touch {shlex.quote(str(ready))}\r".encode())
    until(ready.exists)

    def tab(line: str) -> list[str]:
        words.unlink(missing_ok=True)
        os.write(terminal, f"{line}\t\r".encode())
        until(words.exists)
        return words.read_text().split("\0")[:-1]

    yield tab
    child.kill()
    child.wait()
    os.close(terminal)


def test_names_are_inserted_as_text_in_every_shell(shell, home):
    for name in NAMES:
        folder = Path("d")
        folder.mkdir()
        (folder / name).write_text(RECIPE)
        assert shell("nsw plan d/") == ["plan", f"d/{name}"], name
        assert not list(home.rglob("PWNED")), name
        shutil.rmtree(folder)


@pytest.mark.parametrize("shell", ["bash", "zsh"], indirect=True)
def test_what_bash_makes_of_a_name_as_a_pattern_is_no_other_name(shell, home):
    """Bash expands what completion answers: no second file may be what the first one means as a pattern."""
    for name in ("x*.yaml", "x'$(touch PWNED)'.yaml", "$'x\x2a.yaml'"):
        (home / name).write_text(RECIPE)
    assert shell("nsw plan x\\*") == ["plan", "x*.yaml"]
    assert not list(home.rglob("PWNED"))


def test_options_and_their_values_are_completed_in_every_shell(shell):
    assert shell("nsw plan r --site he") == ["plan", "r", "--site", "here"]
    assert shell("nsw plan r --site=he") == ["plan", "r", "--site=here"]
    assert shell("nsw summ") == ["summarize"]
    assert shell("nsw status --ru") == ["status", "--runs"]
