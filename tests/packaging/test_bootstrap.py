"""The set-up: pip fetched only when it is what the index says, and nothing done twice."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SETUP = Path(__file__).resolve().parents[2] / "tools" / "setup"
WHEEL = b"a wheel"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SETUP / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fetch_pip():
    return load("fetch_pip")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index in a folder, which pip's settings name; nothing else of this machine's settings counts."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    page = tmp_path / "an index" / "pip"
    page.mkdir(parents=True)
    monkeypatch.setenv("PIP_INDEX_URL", page.parent.as_uri())
    return page


def link(name: str, content: bytes = WHEEL, more: str = "") -> str:
    return f'<a href="{name}#sha256={hashlib.sha256(content).hexdigest()}" {more}>{name}</a>\n'


def put(index: Path, *links: str) -> None:
    (index / "index.html").write_text("".join(links))
    for version in ("9.0.3", "25.1", "26.0", "26.1", "27.0b1", "30.0"):
        (index / f"pip-{version}-py3-none-any.whl").write_bytes(WHEEL)


def test_the_newest_pip_that_fits_is_taken(fetch_pip, index: Path, tmp_path: Path):
    put(
        index,
        link("pip-9.0.3-py3-none-any.whl"),
        link("pip-26.0-py3-none-any.whl", more='data-requires-python="&gt;=3.10"'),
        link("pip-25.1-py3-none-any.whl"),
        link("pip-26.1-py3-none-any.whl", more='data-yanked="broken"'),
        link("pip-27.0b1-py3-none-any.whl"),
        link("pip-30.0-py3-none-any.whl", more='data-requires-python="&gt;=3.14"'),
        link("pip-31.0.tar.gz"),
    )
    wheel = fetch_pip.fetch_pip(tmp_path / "out", (3, 11))
    assert wheel == tmp_path / "out" / "pip-26.0-py3-none-any.whl"
    assert wheel.read_bytes() == WHEEL


@pytest.mark.parametrize(
    ("links", "why"),
    [
        ([link("pip-26.0-py3-none-any.whl", b"another wheel")], "damaged"),
        (['<a href="pip-26.0-py3-none-any.whl">no hash</a>'], "no sha256"),
        ([link("pip-30.0-py3-none-any.whl", more='data-requires-python="&gt;=3.14"')], "none for Python 3.11"),
        ([], "0 wheels"),
    ],
)
def test_a_pip_that_cannot_be_trusted_is_not_kept(fetch_pip, index: Path, tmp_path: Path, links: list[str], why: str):
    put(index, *links)
    with pytest.raises(fetch_pip.PipFetchError, match=why):
        fetch_pip.fetch_pip(tmp_path / "out", (3, 11))
    assert not (tmp_path / "out").exists()


def test_the_next_index_is_asked_when_one_fails(fetch_pip, index: Path, tmp_path: Path, monkeypatch):
    put(index, link("pip-26.0-py3-none-any.whl"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index.parent.as_uri())
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nowhere").as_uri())
    assert fetch_pip.fetch_pip(tmp_path / "out", (3, 11)).name == "pip-26.0-py3-none-any.whl"


def test_a_password_is_not_shown(fetch_pip):
    assert fetch_pip.without_password("https://me:secret@example.org/simple") == "https://example.org/simple"


def test_a_json_page_says_the_same_as_an_html_page(fetch_pip):
    digest = hashlib.sha256(WHEEL).hexdigest()
    file = {"url": "p/pip-26.0-py3-none-any.whl", "hashes": {"sha256": digest}, "requires-python": ">=3.10"}
    page = json.dumps({"files": [file, {**file, "yanked": "broken"}]}).encode()
    [found] = fetch_pip.json_files(page)
    wheel = fetch_pip.as_wheel(found, "https://example.org/simple/pip/")
    assert wheel == fetch_pip.Wheel(
        (26, 0), "https://example.org/simple/pip/p/pip-26.0-py3-none-any.whl", digest, ">=3.10"
    )


def test_the_environment_is_stronger_than_a_configuration_file(fetch_pip, tmp_path: Path):
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://example.org/a\nextra-index-url =\n  https://example.org/b\n")
    settings = fetch_pip.pip_settings({"PIP_CONFIG_FILE": str(config), "HOME": str(tmp_path)})
    assert fetch_pip.index_urls(settings) == ["https://example.org/a", "https://example.org/b"]
    settings = fetch_pip.pip_settings({"PIP_CONFIG_FILE": str(config), "PIP_INDEX_URL": "https://example.org/c"})
    assert fetch_pip.index_urls(settings)[0] == "https://example.org/c"
    assert fetch_pip.index_urls({}) == ["https://pypi.org/simple"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of a project that needs nothing, in a path with a space, with no index to ask."""
    root = tmp_path / "my checkout"
    shutil.copytree(SETUP, root / "tools" / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "pyproject.toml").write_text("[dependency-groups]\ndev = []\n")
    return root


def bootstrap(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, checkout / "tools" / "setup" / "bootstrap.py", *words]
    env = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "HOME": str(checkout)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_a_failed_installation_says_what_to_do_and_is_tried_again(checkout: Path):
    for steps in (5, 2):
        result = bootstrap(checkout)
        assert len(result.stdout.splitlines()) == steps, result.stdout  # one for each that takes long
        assert result.stdout.splitlines()[-1] == "Installing what nsw needs:"
        assert result.returncode == 1
        assert "Is the network up?" in result.stderr
        assert "Traceback" not in result.stderr
        assert (checkout / ".cache" / "setup.log").read_text()
        assert not (checkout / ".venv" / "nsw-setup.json").exists()


def test_a_folder_that_is_no_environment_is_left_alone(checkout: Path):
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "thesis.tex").touch()
    result = bootstrap(checkout)
    assert result.returncode == 1
    assert "is no virtual environment" in result.stderr
    assert (checkout / ".venv" / "thesis.tex").exists()


def test_a_current_environment_is_left_as_it_is_until_something_changes(checkout: Path, monkeypatch):
    module = load("bootstrap")
    monkeypatch.setattr(module, "ROOT", checkout)
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    (venv / module.STAMP).write_text(json.dumps(module.stamp(venv, dev=True, versions="locked")))
    done: list[bool] = []
    monkeypatch.setattr(module, "set_up", lambda _, want: done.append(want["dev"]))
    for words in (["--dev"], []):  # one made for tests serves without them too
        monkeypatch.setattr(sys, "argv", ["bootstrap.py", *words])
        module.main()
    assert done == []
    lock = checkout / module.LOCKS[True]
    before = lock.read_bytes()
    for change in (lambda: lock.write_bytes(b"# another lock"), lambda: lock.write_bytes(before)):
        change()
        module.main()
    assert done == [True]  # for the other lock; with the first one there is nothing to do
    (checkout / "pyproject.toml").write_text("[project]\n")
    module.main()
    assert done == [True, True]
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "--versions", "newest"])
    module.main()
    assert done == [True, True, True]


def a_wheel(folder: Path, name: str) -> str:
    """Makes a wheel with nothing in it; its hash."""
    import zipfile

    file = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_library_that_is_not_what_was_tested_is_not_installed(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    module = load("bootstrap")
    monkeypatch.setattr(module, "ROOT", checkout)
    (checkout / ".cache").mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", checkout.as_uri())
    right, wrong = a_wheel(checkout, "right"), a_wheel(checkout, "tampered")
    lock = checkout / module.LOCKS[False]
    venv = checkout / ".venv"
    module.create(venv)
    lock.write_text(f"right==1.0 --hash=sha256:{right}\ntampered==1.0 --hash=sha256:{wrong[::-1]}\n")
    with pytest.raises(SystemExit, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        module.install(venv, dev=False, versions="locked")
    assert not list(venv.glob("lib/*/site-packages/right*"))  # all or nothing
    lock.write_text(f"right==1.0 --hash=sha256:{right}\n")
    with pytest.raises(SystemExit, match="pip could not install"):  # nsw itself, which is not in this checkout
        module.install(venv, dev=False, versions="locked")
    assert list(venv.glob("lib/*/site-packages/right*"))


def test_the_oldest_versions_are_those_of_pyproject(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    module = load("bootstrap")
    monkeypatch.setattr(module, "ROOT", checkout)
    (checkout / "pyproject.toml").write_text(
        '[project]\ndependencies = ["a-b>=1.2.3", "C >= 4", "d==5"]\n'
        '[dependency-groups]\ndev = ["e>=6; python_version < \'3.13\'", "f"]\n'
    )
    assert module.oldest() == ["a-b==1.2.3", "C==4", "e==6"]
