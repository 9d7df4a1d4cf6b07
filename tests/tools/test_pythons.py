"""Which Pythons are tested: those that pyproject.toml names, found on PATH or in pyenv's folder."""

import sys
from pathlib import Path

import pytest

from . import pythons


@pytest.fixture
def pyenv(tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(pythons.shutil, "which", lambda _name: None)

    def build(name: str, says: str) -> Path:
        path = tmp_path / "versions" / name / "bin" / f"python{name.rpartition('.')[0]}"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{says}\n")
        path.chmod(0o755)
        return path

    return build


def test_pyproject_names_the_pythons_and_this_is_one_of_them():
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in pythons.versions()


def test_the_newest_build_of_a_version_that_works_is_taken(pyenv):
    pyenv("3.12.2", "echo 3.12")
    good = pyenv("3.12.10", "echo 3.12")
    pyenv("3.12.11", "echo No module named sqlite3 >&2; exit 1")
    assert pythons.python_of("3.12") == str(good)


def test_a_version_that_is_not_here_is_none(pyenv):
    pyenv("3.12.2", "echo 3.12")
    assert pythons.python_of("3.13") is None


def test_a_name_on_path_that_runs_another_python_is_passed_over(pyenv, tmp_path, monkeypatch):
    shim = tmp_path / "shim"
    shim.write_text("#!/bin/sh\necho 3.11\n")
    shim.chmod(0o755)
    monkeypatch.setattr(pythons.shutil, "which", lambda _name: str(shim))
    assert pythons.python_of("3.13") is None
    good = pyenv("3.13.0", "echo 3.13")
    assert pythons.python_of("3.13") == str(good)
