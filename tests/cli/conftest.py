"""The command line within this process: quick, and all that a user would see."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SITES = """
nsw: 1
sites:
  here: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 2}}
  batch: {scheduler: slurm, scratch: /tmp/none}
  dear: {scheduler: local, gpus: {per_node: 0}, confirm_above: 1 node-hour}
"""
HEAD = "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\n"


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def in_folder(folder: Path, *words: str, exits: int | None = None) -> Said:
    """A command in a process of its own, in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "nsw", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert exits in {None, done.returncode}, done
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder to work in, with a sites file and nobody's configuration."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "sites.yaml").write_text(SITES)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NSW_SITES", str(folder / "sites.yaml"))
    for name in ("NSW_ROOT", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def nsw(home, capsys):
    """`nsw("status", "--json")`: exit code, which is `exits` where that is given, stdout, stderr."""
    from nsw.cli.main import run

    def call(*words: str, exits: int | None = None) -> Said:
        capsys.readouterr()
        code = int(run([str(w) for w in words]))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert exits in {None, code}, f"exit code {code}\n{said.out}\n{said.err}"
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def recipe(home):
    def write(app: str, more: str = "", name: str = "r.yaml") -> str:
        (home / name).write_text(f"{HEAD}app: {app}\n{more}")
        return name

    return write


@pytest.fixture
def good(nsw, recipe):
    """A campaign whose two runs are done."""
    said = nsw(
        "run", recipe("{command: 'echo f=2', figures: {f: {regex: 'f=(.*)', unit: s}}}", "repeats: 2\n"), "-s", "here"
    )
    assert said.code == 0, said.err
    return next(Path("campaigns").iterdir())


@pytest.fixture
def failing(nsw, recipe):
    """A campaign of which one run failed."""
    nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 3]}\n"), "-s", "here", exits=1)
    return next(Path("campaigns").iterdir())
