"""Campaigns of small shell programs on this machine, driven from Python within this process."""

import pytest

SITES = """
nsw: 1
sites:
  here: {scheduler: local, gpus: {per_node: 0}, limits: {max_in_flight: 2}}
  dear: {scheduler: local, gpus: {per_node: 0}, confirm_above: 1 node-hour}
"""
HEAD = "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder to work in, with a sites file and nobody's configuration."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "sites.yaml").write_text(SITES)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("NSW_ROOT", "NSW_SITES", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def recipe(home):
    def write(app: str, more: str = "", name: str = "r.yaml") -> str:
        (home / name).write_text(f"{HEAD}app: {app}\n{more}")
        return name

    return write
