#!/usr/bin/env python3
"""Test nsw on the Pythons that pyproject.toml names and this machine has: `pythons.py`, by `make test-pythons`.

`make test` runs every test with one Python. Here the others run the tests of what depends most on Python: reading, tables,
analysis and campaigns. The newest of them reads once more with threads that Python changes every microsecond.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
NAMED = "Programming Language :: Python :: 3."
FOLDERS = "tests/readers tests/tables tests/analysis tests/campaign"
THREADED = ("tests/readers/test_nsys_*.py", "tests/readers/test_ncu_*.py", "tests/present/test_json_rows.py")
WORKERS = 4
OFTEN_S = "1e-6"
# what nsw needs of a Python, which one that was built without some libraries lacks
QUESTION = "import ctypes, sqlite3, ssl, sys, zlib; print('%d.%d' % sys.version_info[:2])"


def main() -> None:
    pythons = {version: python_of(version) for version in versions()}
    for version, path in pythons.items():
        print(f"Python {version}: {path or 'not on this machine'}", flush=True)
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    others = {version: path for version, path in pythons.items() if path and version != own}
    print(f"`make test` tests Python {own}; tested here: {', '.join(others) or 'no other'}", flush=True)
    failed = [version for version, path in others.items() if not passes(version, path, FOLDERS)]
    for version, path in list(others.items())[-1:]:
        files = sorted(str(file.relative_to(ROOT)) for pattern in THREADED for file in ROOT.glob(pattern))
        if not passes(f"{version}, a switch of threads each {OFTEN_S} s", path, " ".join(files), OFTEN_S):
            failed.append(f"{version} with switches of threads")
    if failed:
        raise SystemExit(f"pythons.py: tests fail with Python {', '.join(failed)}")


def versions() -> list[str]:
    """The Pythons that pyproject.toml names, the oldest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        named = tomllib.load(file)["project"]["classifiers"]
    minors = sorted(int(line.removeprefix(NAMED)) for line in named if line.startswith(NAMED))
    return [f"3.{minor}" for minor in minors]


def python_of(version: str) -> str | None:
    """The interpreter of a version: on PATH, or else of pyenv; None: there is none that works."""
    return next((path for path in candidates(version) if answers(path) == version), None)


def candidates(version: str) -> Iterator[str]:
    name = f"python{version}"
    if found := shutil.which(name):
        yield found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    builds = sorted((root / "versions").glob(f"{version}.*/bin/{name}"), key=lambda path: (len(path.parts[-3]), path))
    yield from (str(path) for path in reversed(builds))


def answers(path: str) -> str:
    """The version of an interpreter; empty where it does not run: pyenv puts names on PATH that run nothing."""
    try:
        asked = subprocess.run([path, "-c", QUESTION], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def passes(what: str, path: str, tests: str, interval: str = "") -> bool:
    """Whether the tests pass with this interpreter, in an environment of its own."""
    print(f"== Python {what}", flush=True)
    environment = {
        name: value for name, value in os.environ.items() if name != "MAKEFLAGS"
    }  # of the make that runs this
    if interval:
        environment["NSW_SWITCH_INTERVAL"] = interval
    words = ["make", "test", f"PYTHON={path}", f"TESTS={tests}", f"WORKERS={WORKERS}"]
    return subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    main()
