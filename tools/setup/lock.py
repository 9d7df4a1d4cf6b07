"""Writes the locks of tested versions with their hashes: `python3 lock.py [--keep]`, or `make lock`.

`make` and CI install what the locks name. uv makes them from pyproject.toml, for every Python that it allows and for
Linux on x86-64 and aarch64, and then looks whether each has a wheel for all of these, so that a set-up builds nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import bootstrap
from bootstrap import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOCK = ROOT / "tools" / "setup" / "requirements.txt"
DEV_LOCK = ROOT / "tools" / "setup" / "requirements-dev.txt"
DOCS_LOCK = ROOT / "tools" / "setup" / "requirements-docs.txt"  # of an environment of its own
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
ALIKE = (
    "--universal", "--python-version", PYTHONS[0], "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links",
    "--no-annotate", "--custom-compile-command", "make lock", "--quiet",
)  # fmt: skip


def main() -> None:
    """Parses the command line, writes the locks, checks them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep the locked versions that pyproject.toml still allows")
    options = parser.parse_args()
    uv = uv_in(ROOT / ".venv-lock")
    newest = () if options.keep else ("--upgrade",)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = "\n".join([*project["build-system"]["requires"], "editables"])  # hatchling's for an editable installation
    inputs = ("pyproject.toml", "-")
    run([uv, "pip", "compile", *inputs, "--group", "dev", *ALIKE, *newest, "--output-file", str(DEV_LOCK)], build)
    # the same versions in both
    run(
        [uv, "pip", "compile", *inputs, "--constraints", str(DEV_LOCK), *ALIKE, *newest, "--output-file", str(LOCK)],
        build,
    )
    run([uv, "pip", "compile", "--group", "docs", *ALIKE, *newest, "--output-file", str(DOCS_LOCK)])
    for python in PYTHONS:
        for platform in PLATFORMS:
            for lock in (DEV_LOCK, DOCS_LOCK):
                run([uv, "pip", "install", "--dry-run", "--quiet", "--target", str(ROOT / ".venv-lock" / "nothing"),
                     "--python-version", python, "--python-platform", platform, "--only-binary", ":all:",
                     "--require-hashes", "--requirements", str(lock)])  # fmt: skip
    names = f"{LOCK.relative_to(ROOT)}, {DEV_LOCK.name} and {DOCS_LOCK.name}"
    print(f"{names} hold for Python {', '.join(PYTHONS)} on {', '.join(PLATFORMS)}")


def uv_in(venv: Path) -> str:
    """The uv of an environment of its own, made when it is not there."""
    uv = venv / "bin" / "uv"
    if not uv.exists():
        bootstrap.create(venv)
        bootstrap.run_pip(venv, ["install", "--no-input", "uv"])
    return str(uv)


def run(command: list[str], stdin: str = "") -> None:
    """Runs uv; ends with what it printed when it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
